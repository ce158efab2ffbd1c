/* bench/drawn/draw.h - what drawing a line takes: random numbers, extents, text that is appended.
 *
 * Read after: drawn.h. */
#ifndef JOT_BENCH_DRAW_H
#define JOT_BENCH_DRAW_H
#include "bench/drawn/drawn.h"

typedef struct {
    uint64_t random;
    double most;      /* operations, or elements of an array */
    int made;         /* values */
    const char *dtype;
    bool grad;
    int param[WORK_OUTPUTS], nparam; /* inputs that gradients are asked of */
    char *text;
    int at;
} Draw;
typedef struct { int n; int64_t v[6]; } Shape;

int64_t draw_between(Draw *d, int64_t lo, int64_t hi);
bool draw_chance(Draw *d, int percent);
/* By its logarithm, and often one that people choose: whole powers of two, multiples of 8. */
int64_t draw_extent(Draw *d, int64_t lo, int64_t hi);
int64_t draw_nelem(const Shape *s);

/* Appends a step of printf's form; the number of its (first) value. */
int draw_step(Draw *d, const char *format, ...);
/* An input of the workload's dtype times 2^scale, a parameter where gradients are drawn. */
int draw_input(Draw *d, const Shape *s, int scale);
/* Something that keeps y's shape: one, two or no functions of one operand. */
int draw_activation(Draw *d, int y);
/* out of y; or, with gradients, of the sum of y times an input of its shape, and the gradients. */
void draw_end(Draw *d, int y, const Shape *s);

/* Families, each of which writes a whole line: draw.c, draw_nets.c. */
void draw_recurrent(Draw *d), draw_convnet(Draw *d), draw_mlp(Draw *d), draw_block(Draw *d);
#endif
