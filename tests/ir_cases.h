/* tests/ir_cases.h - kernels of the shapes a deep-learning compiler meets, in small, each with its
 * expected result from straightforward loops. Axes are numbered in the order they are made. */
#ifndef IR_CASES_H
#define IR_CASES_H
#include "tests/ir_weight.h"

static inline void
ir_default(IrCase *c, int cc, const char *what)
{
    Sched s;
    int order[KERNEL_AXES];
    for (int i = 0; i < (int)c->k.axes.n; i++)
        order[i] = i;
    CHECK(jot_sched_default(&s, &c->k, 1, (int)c->k.axes.n, order), "%s: no schedule", what);
    ir_check(c, &s, "c", cc, what);
    jot_sched_close(&s);
}

/* y = exp(x) / (exp(x) + 1) */
static inline void
make_sigmoid(IrCase *c, int64_t n)
{
    uint32_t x, y, e;
    ir_start(c);
    ir_axes(c, "i", &n);
    x = IN("x", 1, n, 0, 0, 0);
    y = OUT("y", 1, n, 0, 0, 0);
    e = ir_ew(c, EW_EXP, ir_load(c, x, AX(0), 0, 0, 0), 0);
    ir_store(c, y, AX(0), 0, 0, 0, ir_ew(c, EW_DIV, e,
                                         ir_ew(c, EW_ADD, e, jot_v_constf(&c->k, JOT_F32, 1))));
    for (int64_t i = 0; i < n; i++)
        c->data[y][i] = exp(c->data[x][i]) / (exp(c->data[x][i]) + 1);
}

static inline void
make_softmax(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t x, y, v, e, mx, s;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "rj", ext);
    x = IN("x", 2, n, m, 0, 0);
    y = OUT("y", 2, n, m, 0, 0);
    v = ir_load(c, x, AX(0), AX(1), 0, 0);
    mx = ir_sum(c, EW_MAX, BIT(1), v, "mx");
    e = ir_ew(c, EW_EXP, ir_ew(c, EW_SUB, v, mx), 0);
    jot_v_name(&c->k, e, "e");
    s = ir_sum(c, EW_ADD, BIT(1), e, "s");
    ir_store(c, y, AX(0), AX(1), 0, 0, ir_ew(c, EW_DIV, e, s));
    for (int64_t r = 0; r < n; r++) {
        double most = -1e30, sum = 0;
        for (int64_t j = 0; j < m; j++)
            most = fmax(most, c->data[x][r * m + j]);
        for (int64_t j = 0; j < m; j++)
            sum += exp(c->data[x][r * m + j] - most);
        for (int64_t j = 0; j < m; j++)
            c->data[y][r * m + j] = exp(c->data[x][r * m + j] - most) / sum;
    }
}

/* (x - mean) / sqrt(var + 1e-5) over rows, per column */
static inline void
make_columns(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t x, y, v, s, q, mean, var, t;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "rj", ext);
    x = IN("x", 2, n, m, 0, 0);
    y = OUT("y", 2, n, m, 0, 0);
    v = ir_load(c, x, AX(0), AX(1), 0, 0);
    s = jot_v_reduce(&c->k, EW_ADD, BIT(0), v, 0, NULL, 1.0 / (double)n);
    q = jot_v_reduce(&c->k, EW_ADD, BIT(0), ir_ew(c, EW_MUL, v, v), 0, NULL, 1.0 / (double)n);
    jot_v_name(&c->k, s, "s");
    jot_v_name(&c->k, q, "q");
    mean = s;
    var = ir_ew(c, EW_SUB, q, ir_ew(c, EW_MUL, mean, mean));
    t = ir_ew(c, EW_SQRT, ir_ew(c, EW_ADD, var, jot_v_constf(&c->k, JOT_F32, 1e-5)), 0);
    ir_store(c, y, AX(0), AX(1), 0, 0, ir_ew(c, EW_DIV, ir_ew(c, EW_SUB, v, mean), t));
    for (int64_t j = 0; j < m; j++) {
        double sum = 0, square = 0;
        for (int64_t r = 0; r < n; r++) {
            sum += c->data[x][r * m + j] / (double)n;
            square += c->data[x][r * m + j] * c->data[x][r * m + j] / (double)n;
        }
        for (int64_t r = 0; r < n; r++)
            c->data[y][r * m + j] = (c->data[x][r * m + j] - sum) / sqrt(square - sum * sum + 1e-5);
    }
}

/* y[i, j] = a[j, i] + b[i, j] */
static inline void
make_transpose(IrCase *c, int64_t n, int64_t m)
{
    int64_t ext[2];
    uint32_t a, b, y, t;
    ext[0] = n, ext[1] = m;
    ir_start(c);
    ir_axes(c, "ij", ext);
    a = IN("a", 2, m, n, 0, 0);
    b = IN("b", 2, n, m, 0, 0);
    y = OUT("y", 2, n, m, 0, 0);
    t = ir_load(c, a, AX(1), AX(0), 0, 0);
    jot_v_name(&c->k, t, "t");
    ir_store(c, y, AX(0), AX(1), 0, 0, ir_ew(c, EW_ADD, t, ir_load(c, b, AX(0), AX(1), 0, 0)));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            c->data[y][i * m + j] = c->data[a][j * n + i] + c->data[b][i * m + j];
}

/* ---- convolutions ---- */

/* y = relu(conv(x, w)), 3 x 3, stride, padding 1; stats: sums of y and y * y over n' pixels */
static inline void
make_conv(IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h, int64_t stride, bool stats)
{
    int64_t ho = (h - 1) / stride + 1, ext[7];
    uint32_t x, w, y, acc, v, b1 = 0, b2 = 0;
    ext[0] = n, ext[1] = o, ext[2] = ho, ext[3] = ho, ext[4] = ci, ext[5] = 3, ext[6] = 3;
    ir_start(c);
    ir_axes(c, "nohwipq", ext);
    x = IN("x", 4, n, ci, h, h);
    w = IN("wt", 4, o, ci, 3, 3);
    y = OUT("y", 4, n, o, ho, ho);
    acc = ir_sum(c, EW_ADD, BIT(4) | BIT(5) | BIT(6),
                 ir_ew(c, EW_MUL,
                       ir_guarded(c, x, AX(0), AX(4), IADD(IMUL(AX(2), stride), ISUB(AX(5), IC(1))),
                                  IADD(IMUL(AX(3), stride), ISUB(AX(6), IC(1)))),
                       ir_load(c, w, AX(1), AX(4), AX(5), AX(6))), "acc");
    v = ir_ew(c, EW_MAX, acc, jot_v_constf(&c->k, JOT_F32, 0));
    ir_store(c, y, AX(0), AX(1), AX(2), AX(3), v);
    if (stats) {
        b1 = OUT("b1", 2, n, o, 0, 0);
        b2 = OUT("b2", 2, n, o, 0, 0);
        ir_store(c, b1, AX(0), AX(1), 0, 0, ir_sum(c, EW_ADD, BIT(2) | BIT(3), v, "s1"));
        ir_store(c, b2, AX(0), AX(1), 0, 0,
                 ir_sum(c, EW_ADD, BIT(2) | BIT(3), ir_ew(c, EW_MUL, v, v), "s2"));
    }
    for (int64_t i = 0; i < n * o * ho * ho; i++) {
        int64_t q = i % ho, p = i / ho % ho, oc = i / ho / ho % o, im = i / ho / ho / o;
        double sum = 0;
        for (int64_t k = 0; k < ci * 9; k++)
            sum += at4(c->data[x], c->k.bufs.v[x].ext, im, k / 9, p * stride + k / 3 % 3 - 1,
                       q * stride + k % 3 - 1) *
                   c->data[w][oc * ci * 9 + k];
        c->data[y][i] = fmax(sum, 0);
        if (stats) {
            c->data[b1][im * o + oc] += fmax(sum, 0);
            c->data[b2][im * o + oc] += fmax(sum, 0) * fmax(sum, 0);
        }
    }
}

/* Stride 2 by input: dx[n, i, h, w] = sum over o p q of dy[n, o, (h+1-p)/2, (w+1-q)/2] * w, for the
 * points where 2 divides both. */
static inline void
make_by_input_of(IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h, int64_t taps)
{
    int64_t ext[7], ho = h / 2, pad = taps / 2, square = taps * taps;
    uint32_t dy, w, dx, g;
    Ix a, b, cond[2];
    ext[0] = n, ext[1] = o, ext[2] = h, ext[3] = h, ext[4] = ci, ext[5] = ext[6] = taps;
    ir_start(c);
    ir_axes(c, "nohwipq", ext);
    dy = IN("dy", 4, n, o, ho, ho);
    w = IN("wt", 4, o, ci, taps, taps);
    dx = OUT("dx", 4, n, ci, h, h);
    a = taps > 1 ? IADD(AX(2), ISUB(IC(pad), AX(5))) : AX(2);
    b = taps > 1 ? IADD(AX(3), ISUB(IC(pad), AX(6))) : AX(3);
    cond[0] = jot_ix_eq0(&ir_ix, IMOD(a, 2), NULL);
    cond[1] = jot_ix_eq0(&ir_ix, IMOD(b, 2), NULL);
    g = jot_v_reduce(&c->k, EW_ADD, BIT(1) | BIT(5) | BIT(6),
                     ir_ew(c, EW_MUL, ir_guarded(c, dy, AX(0), AX(1), IDIV(a, 2), IDIV(b, 2)),
                           ir_load(c, w, AX(1), AX(4), AX(5), AX(6))), 2, cond, 1.0);
    jot_v_name(&c->k, g, "g");
    ir_store(c, dx, AX(0), AX(4), AX(2), AX(3), g);
    for (int64_t i = 0; i < n * o * ho * ho; i++)
        for (int64_t k = 0; k < ci * square; k++) {
            int64_t p = i / ho % ho * 2 + k / taps % taps - pad, q = i % ho * 2 + k % taps - pad;
            if (p >= 0 && q >= 0 && p < h && q < h)
                c->data[dx][((i / ho / ho / o * ci + k / square) * h + p) * h + q] +=
                    c->data[dy][i] * c->data[w][i / ho / ho % o * ci * square + k];
        }
}

static inline void
make_by_input(IrCase *c, int64_t n, int64_t ci, int64_t o, int64_t h)
{
    make_by_input_of(c, n, ci, o, h, 3);
}

/* o = softmax(Q K^T / sqrt(d)) V */
static inline void
make_attention(IrCase *c, int64_t z, int64_t t, int64_t d, int64_t p)
{
    int64_t ext[5];
    uint32_t q, kt, vt, o, s, sm, mx, e, sum, sl, ov;
    double scale = 1 / sqrt((double)d);
    ext[0] = z, ext[1] = t, ext[2] = t, ext[3] = d, ext[4] = d;
    ir_start(c);
    ir_axes(c, "zqtdk", ext);
    q = IN("Q", 3, z, t, d, 0);
    kt = IN("Kt", 3, z, t, d, 0);
    vt = IN("Vt", 3, z, t, d, 0);
    o = OUT("O", 3, z, t, d, 0);
    TMP("SS", 2, p, t, 0, 0);
    TMP("SE", 2, p, t, 0, 0);
    TMP("SL", 1, p, 0, 0, 0);
    s = ir_sum(c, EW_ADD, BIT(4), ir_ew(c, EW_MUL, ir_load(c, q, AX(0), AX(1), AX(4), 0),
                                        ir_load(c, kt, AX(0), AX(2), AX(4), 0)), "S");
    sm = ir_ew(c, EW_MUL, s, jot_v_constf(&c->k, JOT_F32, scale));
    jot_v_name(&c->k, sm, "sm");
    mx = ir_sum(c, EW_MAX, BIT(2), sm, "mx");
    e = ir_ew(c, EW_EXP, ir_ew(c, EW_SUB, sm, mx), 0);
    jot_v_name(&c->k, e, "e");
    sum = ir_sum(c, EW_ADD, BIT(2), e, "s");
    sl = ir_ew(c, EW_DIV, jot_v_constf(&c->k, JOT_F32, 1), sum);
    jot_v_name(&c->k, sl, "sl");
    ov = ir_sum(c, EW_ADD, BIT(2), ir_ew(c, EW_MUL, e, ir_load(c, vt, AX(0), AX(2), AX(3), 0)),
                "o");
    ir_store(c, o, AX(0), AX(1), AX(3), 0, ir_ew(c, EW_MUL, ov, sl));
    for (int64_t i = 0; i < z * t; i++) {
        double w[256], most = -1e30, all = 0;
        for (int64_t j = 0; j < t; j++) {
            w[j] = 0;
            for (int64_t k = 0; k < d; k++)
                w[j] += c->data[q][i * d + k] * c->data[kt][(i / t * t + j) * d + k] * scale;
            most = fmax(most, w[j]);
        }
        for (int64_t j = 0; j < t; j++)
            all += w[j] = exp(w[j] - most);
        for (int64_t j = 0; j < t; j++)
            for (int64_t k = 0; k < d; k++)
                c->data[o][i * d + k] += w[j] / all * c->data[vt][(i / t * t + j) * d + k];
    }
}

#endif
