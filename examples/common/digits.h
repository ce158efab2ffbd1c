/* digits.h - pictures of handwritten digits, drawn or read. */
#ifndef DIGITS_H
#define DIGITS_H
#include <stdint.h>

enum { DIGIT_SIDE = 28, DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE };

typedef struct {
    int n;
    float *pixels;   /* n * DIGIT_PIXELS, rows from the top, 0 paper .. 1 ink */
    uint8_t *labels; /* n, 0..9 */
} Digits;

/* n digits drawn with strokes, each with its own slant, size, place, pen and noise: the same for
 * the same seed. 0 when memory is refused. */
int digits_draw(Digits *digits, int n, uint32_t seed);

/* Images and labels from a folder of idx files (name.gz or name), as MNIST is published. On failure
 * prints what is wrong with which file and returns 0. */
int digits_read(Digits *digits, const char *folder, const char *images, const char *labels);

void digits_free(Digits *digits);

#endif
