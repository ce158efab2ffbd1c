/* tests/ir_weight.h - a case that several programs have: the gradient by weight of a
 * convolution. */
#ifndef IR_WEIGHT_H
#define IR_WEIGHT_H
#include "tests/ir_run.h"

static inline double
at4(const double *v, const int64_t *ext, int64_t a, int64_t b, int64_t d, int64_t e)
{
    if (d < 0 || e < 0 || d >= ext[2] || e >= ext[3])
        return 0;
    return v[((a * ext[1] + b) * ext[2] + d) * ext[3] + e];
}

/* dw[o, i, p, q] = sum over n h w of x * dy */
static inline void
make_by_weight(IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h)
{
    int64_t ext[7];
    uint32_t x, dy, dw, g;
    ext[0] = n, ext[1] = o, ext[2] = h, ext[3] = h, ext[4] = ci, ext[5] = 3, ext[6] = 3;
    ir_start(c);
    ir_axes(c, "nohwipq", ext);
    x = IN("x", 4, n, ci, h, h);
    dy = IN("dy", 4, n, o, h, h);
    dw = OUT("dw", 4, o, ci, 3, 3);
    g = ir_sum(c, EW_ADD, BIT(0) | BIT(2) | BIT(3),
               ir_ew(c, EW_MUL,
                     ir_guarded(c, x, AX(0), AX(4), IADD(AX(2), ISUB(AX(5), IC(1))),
                                IADD(AX(3), ISUB(AX(6), IC(1)))),
                     ir_load(c, dy, AX(0), AX(1), AX(2), AX(3))), "g");
    ir_store(c, dw, AX(1), AX(4), AX(5), AX(6), g);
    for (int64_t k = 0; k < o * ci * 9; k++)
        for (int64_t i = 0; i < n * h * h; i++)
            c->data[dw][k] += at4(c->data[x], c->k.bufs.v[x].ext, i / h / h, k / 9 % ci,
                                  i / h % h + k / 3 % 3 - 1,
                                  i % h + k % 3 - 1) *
                              c->data[dy][(i / h / h * o + k / 9 / ci) * h * h + i % (h * h)];
}

#endif
