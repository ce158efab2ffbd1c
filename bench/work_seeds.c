/* bench/work_seeds.c - what the papers measure: box overlaps, uniformity, capsules, cells. */
#include "bench/work.h"

/* a: rows, columns, backward */
static int
iou(Bench *b, jot_Var *out)
{
    int64_t n = b->work->a[0], m = b->work->a[1];
    jot_Var v[8], xi, yi, wi, hi, area;
    int k;

    for (k = 0; k < 8; k++)
        v[k] = k < 4 ? work_uniform(b, k, JOT_SHAPE(n, 1)) : work_uniform(b, k, JOT_SHAPE(1, m));
    xi = jot_maximum(v[0], v[4]);
    yi = jot_maximum(v[1], v[5]);
    wi = jot_sub(jot_minimum(jot_add(v[0], v[2]), jot_add(v[4], v[6])), xi);
    hi = jot_sub(jot_minimum(jot_add(v[1], v[3]), jot_add(v[5], v[7])), yi);
    area = jot_mul(jot_relu(wi), jot_relu(hi));
    out[0] = jot_div(area, jot_sub(jot_add(jot_mul(v[2], v[3]), jot_mul(v[6], v[7])), area));
    return b->work->a[2] ? work_backward(b, 8, out[0], 8, v, out) : 1;
}

static int
uniformity(Bench *b, jot_Var *out)
{
    int64_t n = 1024;
    jot_Var x = work_scaled(b, 0, JOT_SHAPE(n, 128), 0.088388);
    jot_Var s = jot_sum(jot_mul(x, x), JOT_DIMS(1));
    jot_Var p = jot_matmul(x, jot_transpose(x, JOT_INTS(1, 0)));
    jot_Var d = jot_relu(jot_sub(jot_add(jot_unsqueeze(s, 1), jot_unsqueeze(s, 0)),
                                 jot_scale(p, 2)));
    jot_Var upper = jot_lt(jot_iota(b->c, JOT_I64, JOT_SHAPE(n, n), 0),
                           jot_iota(b->c, JOT_I64, JOT_SHAPE(n, n), 1));
    jot_Var e = jot_mul(jot_exp(jot_scale(d, -2)), jot_cast(upper, JOT_F32));

    out[0] = jot_log(jot_scale(jot_sum(e, JOT_ALL_DIMS), 2.0 / (double)(n * (n - 1))));
    return work_backward(b, 1, out[0], 1, &x, out);
}

/* out[n,k,p,q,i,j] = sum c r s l  x[n,c,2p+r,2q+s,i,l] w[k,c,r,s,l,j] */
static int
caps(Bench *b, jot_Var *out)
{
    jot_Var in[2], xx, ww;

    in[0] = work_normal(b, 0, JOT_SHAPE(8, 32, 14, 14, 4, 4));
    in[1] = work_normal(b, 1, JOT_SHAPE(32, 32, 3, 3, 4, 4));
#define SPACE JOT_SHAPE(8, 32, 6, 6, 4, 4, 32, 3, 3, 4)
    xx = jot_reindex(in[0], SPACE, JOT_INDEX("i0", "i6", "2*i2 + i7", "2*i3 + i8", "i4", "i9"));
    ww = jot_reindex(in[1], SPACE, JOT_INDEX("i1", "i6", "i7", "i8", "i9", "i5"));
    out[0] = jot_sum(jot_mul(xx, ww), JOT_DIMS(6, 7, 8, 9));
    return b->work->a[0] ? work_backward(b, 2, out[0], 2, in, out) : 1;
}

enum { H = 256, B = 64, T = 32 };

static jot_Var
part(jot_Var g, int k)
{
    return jot_slice(g, JOT_SHAPE(0, k * H), JOT_SHAPE(JOT_END, (k + 1) * H), JOT_SHAPE(1, 1));
}

static jot_Var
elu(jot_Var x)
{
    jot_Var zero = jot_full(x.ctx, JOT_F32, JOT_SHAPE(), 0);

    return jot_where(jot_gt(x, zero), x, jot_expm1(jot_minimum(x, zero)));
}

enum { LSTM, MILSTM, SUBLSTM, LLTM, SCRN };

/* One step of a cell; p: w, u, b and what else it has. */
static void
cell(int kind, jot_Var x, jot_Var *h, jot_Var *c, const jot_Var *p)
{
    jot_Var a, z, g;

    if (kind == SCRN) {
        jot_Var bias = jot_slice(p[2], JOT_SHAPE(0), JOT_SHAPE(H), JOT_SHAPE(1));

        *c = jot_add(jot_scale(*c, 0.95), jot_scale(jot_matmul(x, part(p[0], 0)), 0.05));
        g = jot_add(jot_matmul(x, part(p[0], 1)), jot_matmul(*h, part(p[1], 0)));
        *h = jot_sigmoid(jot_add(jot_add(g, jot_matmul(*c, part(p[1], 1))), bias));
        return;
    }
    a = jot_matmul(x, p[0]);
    z = jot_matmul(*h, p[1]);
    if (kind == MILSTM)
        g = jot_add(jot_add(jot_add(jot_mul(jot_mul(p[3], a), z), jot_mul(p[4], a)),
                            jot_mul(p[5], z)), p[2]);
    else
        g = jot_add(jot_add(a, z), p[2]);
    switch (kind) {
    case LSTM: case MILSTM:
        *c = jot_add(jot_mul(jot_sigmoid(part(g, 1)), *c),
                     jot_mul(jot_sigmoid(part(g, 0)), jot_tanh(part(g, 3))));
        *h = jot_mul(jot_sigmoid(part(g, 2)), jot_tanh(*c));
        break;
    case SUBLSTM:
        g = jot_sigmoid(g);
        *c = jot_sub(jot_add(jot_mul(part(g, 1), *c), part(g, 3)), part(g, 0));
        *h = jot_sub(jot_sigmoid(*c), part(g, 2));
        break;
    default: /* LLTM */
        *c = jot_add(*c, jot_mul(elu(part(g, 2)), jot_sigmoid(part(g, 0))));
        *h = jot_mul(jot_tanh(*c), jot_sigmoid(part(g, 1)));
    }
}

static int
rnn(Bench *b, jot_Var *out)
{
    int kind = (int)b->work->a[0], n = kind == MILSTM ? 6 : 3, t, k;
    jot_Var xs = work_normal(b, 0, JOT_SHAPE(T, B, H)), h = work_normal(b, 1, JOT_SHAPE(B, H));
    jot_Var c = work_normal(b, 2, JOT_SHAPE(B, H)), p[6];

    for (k = 0; k < n; k++)
        p[k] = k < 2 ? work_scaled(b, 3 + k, JOT_SHAPE(H, 4 * H), 0.05)
                     : work_normal(b, 3 + k, JOT_SHAPE(4 * H));
    for (t = 0; t < T; t++) {
        jot_Var x = jot_slice(xs, JOT_SHAPE(t, 0, 0), JOT_SHAPE(t + 1, B, H), JOT_SHAPE(1, 1, 1));

        cell(kind, jot_reshape(x, JOT_SHAPE(B, H)), &h, &c, p);
    }
    return work_backward(b, 10, h, n, p, out);
}

#define RNN (3 * 2.0 * T * 2 * B * H * 4 * H)
const Work work_seeds[] = {
    {"iou_100x1000", iou, {100, 1000, 0}, 0, 17600, 4e5, NULL},
    {"iou_100x1000_bwd", iou, {100, 1000, 1}, 0, 4e5, 17600, NULL},
    {"iou_1000x10000", iou, {1000, 10000, 0}, 0, 176000, 4e7, NULL},
    {"iou_1000x10000_bwd", iou, {1000, 10000, 1}, 0, 4e7, 176000, NULL},
    {"uniformity_1024x128_bwd", uniformity, {0}, 3 * 2.0 * 1024 * 1024 * 128, 0, 0, NULL},
    {"caps32_14", caps, {0}, 2.0 * 8 * 32 * 36 * 16 * 32 * 9 * 4, 0, 0, NULL},
    {"caps32_14_bwd", caps, {1}, 6.0 * 8 * 32 * 36 * 16 * 32 * 9 * 4, 0, 0, NULL},
    {"rnn_lstm_bwd", rnn, {LSTM}, RNN, 0, 0, NULL},
    {"rnn_milstm_bwd", rnn, {MILSTM}, RNN, 0, 0, NULL},
    {"rnn_sublstm_bwd", rnn, {SUBLSTM}, RNN, 0, 0, NULL},
    {"rnn_lltm_bwd", rnn, {LLTM}, RNN, 0, 0, NULL},
    {"rnn_scrn_bwd", rnn, {SCRN}, 3 * 2.0 * T * 4 * B * H * H, 0, 0, NULL},
    {0}
};
