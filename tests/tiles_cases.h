/* tests/tiles_cases.h - contractions that a device does by tiles, for test_tiles.c (values) and
 * test_cuda.c (text). */
#ifndef JOT_TILES_CASES_H
#define JOT_TILES_CASES_H
#include <stdlib.h>
#include "core.h"

typedef struct {
    const char *name;
    char kind;           /* m: product, b: of a batch, t, u: of a transposed one, c: convolution */
    int a[4], b[4];      /* shapes */
    int stride, pad, dilation, groups;
    char also; /* e: epilogue, p: prologue, d: of f64, h: of f16, b: of bf16, r: f32 that may be
                  rounded to tf32; 0 */
} TileCase;

static const TileCase tile_cases[] = {
    {"odd", 'm', {37, 53}, {53, 71}, 0, 0, 0, 0, 0},
    {"tall", 'm', {613, 19}, {19, 5}, 0, 0, 0, 0, 'e'},
    {"long sum", 'm', {6, 3001}, {3001, 9}, 0, 0, 0, 0, 0},
    {"short sum", 'm', {130, 2}, {2, 140}, 0, 0, 0, 0, 'p'},
    {"large", 'm', {1030, 17}, {17, 1041}, 0, 0, 0, 0, 'e'},
    {"doubles", 'm', {45, 67}, {67, 33}, 0, 0, 0, 0, 'd'},
    {"halves", 'm', {45, 67}, {67, 33}, 0, 0, 0, 0, 'h'},
    {"wide halves", 'b', {2, 150, 50}, {2, 50, 170}, 0, 0, 0, 0, 'b'},
    {"halves of images", 'c', {2, 8, 9, 11}, {16, 8, 3, 3}, 1, 1, 1, 1, 'h'},
    {"rounded", 'm', {145, 67}, {67, 133}, 0, 0, 0, 0, 'r'},
    {"rounded images", 'c', {2, 8, 9, 11}, {16, 8, 3, 3}, 1, 1, 1, 1, 'r'},
    {"rows of halves", 'm', {160, 104}, {104, 72}, 0, 0, 0, 0, 'h'},
    {"turned rows", 't', {72, 144}, {72, 136}, 0, 0, 0, 0, 'b'},
    {"rows rounded", 'm', {72, 52}, {52, 68}, 0, 0, 0, 0, 'r'},
    {"halves of points", 'c', {1, 16, 8, 16}, {24, 16, 1, 1}, 1, 0, 1, 1, 'b'},
    {"left turned", 't', {53, 37}, {53, 71}, 0, 0, 0, 0, 'p'},
    {"batch", 'b', {7, 21, 33}, {7, 33, 18}, 0, 0, 0, 0, 'e'},
    {"3x3", 'c', {2, 5, 13, 11}, {7, 5, 3, 3}, 1, 1, 1, 1, 'e'},
    {"stride", 'c', {3, 4, 15, 14}, {6, 4, 3, 3}, 2, 1, 1, 1, 0},
    {"wide taps", 'c', {1, 3, 17, 23}, {5, 3, 5, 7}, 1, 2, 2, 1, 'p'},
    {"groups", 'c', {2, 8, 9, 10}, {12, 4, 3, 3}, 1, 1, 1, 2, 0},
};
enum { TILE_CASES = sizeof tile_cases / sizeof tile_cases[0] };

/* With the largest blocks, as products have them that keep a device busy: Target.busy is 1. */
static const TileCase large_cases[] = {
    {"large halves", 'm', {136, 328}, {328, 520}, 0, 0, 0, 0, 'b'},
    {"large turned", 't', {320, 136}, {320, 264}, 0, 0, 0, 0, 'h'},
    {"large rounded", 'm', {136, 52}, {52, 264}, 0, 0, 0, 0, 'r'},
};
enum { LARGE_CASES = sizeof large_cases / sizeof large_cases[0] };

/* More blocks than a device has at a time: Target.busy is 4. */
static const TileCase band_cases[] = {
    {"bands", 'm', {120, 17}, {17, 200}, 0, 0, 0, 0, 'e'},
    {"bands of a batch", 'b', {2, 120, 17}, {2, 17, 200}, 0, 0, 0, 0, 0},
    {"bands of halves", 'm', {500, 24}, {24, 520}, 0, 0, 0, 0, 'h'}, /* with four warps */
    {"columns turned", 't', {24, 136}, {24, 1032}, 0, 0, 0, 0, 'b'},
};
enum { BAND_CASES = sizeof band_cases / sizeof band_cases[0] };

static const char *
tile_precision(const TileCase *t)
{
    return t->also == 'r' ? "tf32" : NULL;
}

static jot_Var
tile_operand(jot_Ctx *c, const int *shape, int seed, char also)
{
    int64_t ext[4], n = 1;
    int rank = 0;
    jot_Var x;
    float *v;

    for (; rank < 4 && shape[rank]; rank++)
        n *= ext[rank] = shape[rank];
    v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((i * 7919 + seed * 104729) % 2003 - 1001) / 1001;
    x = jot_array(c, JOT_F32, (jot_Ints){rank, ext}, v);
    free(v);
    return also == 'd' ? jot_cast(x, JOT_F64) : also == 'h' ? jot_cast(x, JOT_F16)
         : also == 'b' ? jot_cast(x, JOT_BF16) : x;
}

/* The result and the gradients of a sum of its products with waves. */
static int
tile_build(jot_Ctx *c, const TileCase *t, jot_Var *out)
{
    jot_Conv conv = {.stride = {t->stride, t->stride}, .pad = {t->pad, t->pad},
                     .dilation = {t->dilation, t->dilation}, .groups = t->groups};
    jot_Var in[2], a, b, y;

    in[0] = tile_operand(c, t->a, 1, t->also);
    in[1] = tile_operand(c, t->b, 2, t->also);
    a = t->also == 'p' ? jot_relu(jot_add(in[0], jot_scale(in[0], 0.5))) : in[0];
    b = in[1];
    if (t->kind == 't')
        a = jot_transpose(a, JOT_INTS(1, 0));
    if (t->kind == 'u')
        b = jot_transpose(b, JOT_INTS(1, 0));
    y = t->kind == 'c' ? jot_conv2d(a, b, &conv) : jot_matmul(a, b);
    if (t->also == 'e')
        y = jot_relu(jot_add(jot_scale(y, 0.25), jot_sin(y)));
    out[0] = jot_cast(y, JOT_F64);
    if (!jot_grad(jot_sum(jot_mul(y, jot_cos(y)), JOT_ALL_DIMS), jot_vars(2, in), out + 1))
        return 0;
    out[1] = jot_cast(out[1], JOT_F64);
    out[2] = jot_cast(out[2], JOT_F64);
    return 3;
}

#endif
