/* picture.h - what the demo leaves to look at beside its curve. */
#ifndef PICTURE_H
#define PICTURE_H
#include "data.h"

/* A PNG of n pictures of side x side floats (0 paper, 1 ink), `across` to a row; below each
 * small[2 k] -> small[2 k + 1]: what it is, and what it was read as. 0: the context says why. */
int picture_sheet(jot_Ctx *c, const char *path, const float *const *pictures, const uint8_t *small,
                  int n, int side, int across);

#endif
