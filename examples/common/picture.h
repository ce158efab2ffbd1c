/* picture.h - what the demo leaves to look at: a curve (SVG) and a sheet of digits (PNG). Each
 * function prints what went wrong and returns 0 when the file cannot be written. */
#ifndef PICTURE_H
#define PICTURE_H
#include <stdint.h>

/* Grey picture, 8 bits, rows from the top. */
int picture_png(const char *path, const uint8_t *grey, int width, int height);

/* y[0..n) against 0..n: each step, and a running mean; the axis of y is logarithmic. */
int picture_curve(const char *path, const char *title, const char *xlabel, const char *ylabel,
                  const float *y, int n);

/* A sheet of n pictures of side x side floats (0 paper, 1 ink), `across` to a row; below each
 * small[2 k] -> small[2 k + 1]: what it is, and what it was read as. */
int picture_sheet(const char *path, const float *const *pictures, const uint8_t *small, int n,
                  int side, int across);

#endif
