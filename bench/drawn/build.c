/* bench/drawn/build.c - the operators of drawn workloads, and graphs of their lines.
 *
 * What PyTorch has as one function and jot has not (group norm, attention, cells) is composed here
 * as a user of jot would. Numbers of operators (scale, offset) are eighths. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "bench/drawn/drawn.h"
#include "nn.h"

typedef const DrawnStep S;
typedef const jot_Var V;

/* ---- inputs ------------------------------------------------------------------------------- */

static uint64_t
mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Element k of input number `key`: floats are whole multiples of a power of two, exact in f32. */
static double
element(uint64_t key, uint64_t k, bool whole, int64_t a, int64_t b)
{
    uint64_t h = mixed(key << 32 | k) >> 40;

    return whole ? (double)((int64_t)(h % (uint64_t)a) + b)
                 : ldexp((double)((int64_t)h - (1 << 23)), (int)a - 22);
}

/* Rounded once where the dtype is half of a float's. */
static jot_Var
cast_once(jot_Ctx *c, jot_Var wide, jot_DType dtype, jot_Ints shape, void *room)
{
    jot_Var x = jot_cast(wide, dtype);

    jot_copy(x, room, (size_t)jot_nelem(x) * jot_dtype_nbytes(dtype));
    jot_free(x);
    jot_free(wide);
    return jot_param(c, dtype, shape, room);
}

static jot_Var
input(Bench *b, int k, S *s)
{
    jot_DType dtype = (jot_DType)s->op;
    bool whole = dtype < JOT_F16;
    int64_t n = 1, one = s->nlist > 1 ? s->number[1][0] : 0, two = s->number[1][1];

    if (b->made[k])
        return b->in[k];
    for (int i = 0; i < s->list[0].n; i++)
        n *= s->list[0].v[i];
    double *p = malloc((size_t)n * sizeof *p + 1);
    for (int64_t i = 0; i < n; i++)
        p[i] = element((uint64_t)k, (uint64_t)i, whole, one, two);
    jot_Var wide = jot_array(b->c, JOT_F64, s->list[0], p);
    b->in[k] = dtype == JOT_F64 ? jot_param(b->c, dtype, s->list[0], p)
                                : cast_once(b->c, wide, dtype, s->list[0], p);
    b->made[k] = true;
    free(p);
    return b->in[k];
}

/* ---- operators ---------------------------------------------------------------------------- */

#define UNARY(X) X(neg) X(abs) X(exp) X(tanh) X(sigmoid) X(sqrt) X(rsqrt) X(log) X(sin) X(erf) \
    X(relu) X(gelu) X(gelu_tanh) X(softplus) X(square)
#define BINARY(X) X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(lt) X(matmul) \
    X(cross_entropy)
#define REDUCE(X) X(sum) X(mean) X(max) X(min)
#define ONE_DIM(X) X(softmax) X(log_softmax)
#define POOL(X) X(max_pool2d) X(avg_pool2d)
#define DIM0(s) (int)(s)->number[0][0]

static jot_Dims
dims_of(const S *s)
{
    return jot_dims(s->list[0].n, s->list[0].v, false);
}

#define ONE(name) static jot_Var do_##name(S *s, V *v) { return (void)s, jot_##name(v[0]); }
#define TWO(name) static jot_Var do_##name(S *s, V *v) { return (void)s, jot_##name(v[0], v[1]); }
#define SOME(name) static jot_Var do_##name(S *s, V *v) { return jot_##name(v[0], s->list[0]); }
#define OVER(name) static jot_Var do_##name(S *s, V *v) { return jot_##name(v[0], dims_of(s)); }
#define DIM(name) \
    static jot_Var do_##name(S *s, V *v) { return jot_##name(v[0], (int)s->number[0][0]); }
#define WINDOW(name)                                                      \
    static jot_Var do_##name(S *s, V *v)                                  \
    {                                                                     \
        const int64_t *n = s->number[0];                                  \
        jot_Pool p = {{(int)n[0], (int)n[1]}, {(int)n[2], (int)n[3]}, {(int)n[4], (int)n[5]}}; \
        return jot_##name(v[0], &p);                                      \
    }
UNARY(ONE)
BINARY(TWO)
REDUCE(OVER)
ONE_DIM(DIM)
POOL(WINDOW)
SOME(transpose)
SOME(reshape)
SOME(flip)

static jot_Var do_argmax(S *s, V *v) { return jot_argmax(v[0], JOT_DIMS(DIM0(s))); }
static jot_Var do_select(S *s, V *v) { return (void)s, jot_where(v[0], v[1], v[2]); }
static jot_Var do_linear(S *s, V *v) { return (void)s, jot_linear(v[0], v[1], v[2]); }
static jot_Var do_scale(S *s, V *v) { return jot_scale(v[0], (double)s->number[0][0] / 8); }
static jot_Var do_offset(S *s, V *v) { return jot_offset(v[0], (double)s->number[0][0] / 8); }
static jot_Var do_concat(S *s, V *v) { return jot_concat(jot_vars(s->nin, v), DIM0(s)); }
static jot_Var do_gather(S *s, V *v) { return jot_take(v[0], v[1], DIM0(s)); }
static jot_Var do_pad(S *s, V *v) { return jot_pad(v[0], s->list[0], s->list[1], 0); }
static jot_Var do_slice(S *s, V *v) { return jot_slice(v[0], s->list[0], s->list[1], s->list[2]); }
static jot_Var do_layer_norm(S *s, V *v) { return (void)s, jot_layer_norm(v[0], v[1], v[2], 1e-5); }
static jot_Var do_instance_norm(S *s, V *v) { return (void)s, jot_instance_norm(v[0], 1e-5); }

static jot_Var
do_swap(S *s, V *v)
{
    return jot_swap(v[0], (int)s->number[0][0], (int)s->number[0][1]);
}

static jot_Var
do_cast(S *s, V *v)
{
    return jot_cast(v[0], (jot_DType)s->number[0][0]);
}

static jot_Var
do_conv2d(S *s, V *v)
{
    const int64_t *n = s->number[0];
    jot_Conv c = {{(int)n[0], (int)n[1]}, {(int)n[2], (int)n[3]}, {(int)n[4], (int)n[5]},
                  (int)n[6]};

    return jot_conv2d(v[0], v[1], &c);
}

static jot_Var
do_batch_norm(S *s, V *v)
{
    return s->nin == 3 ? jot_batch_norm_train(v[0], v[1], v[2], 1e-5, 0.1, NULL, NULL)
                       : jot_batch_norm_eval(v[0], v[1], v[2], v[3], v[4], 1e-5);
}

static jot_Var
do_group_norm(S *s, V *v)
{
    return jot_group_norm(v[0], s->number[0][0], v[1], v[2], 1e-5);
}

/* softmax(q k' / sqrt d) v */
static jot_Var
do_attention(S *s, V *v)
{
    jot_Var a = jot_matmul(v[0], jot_swap(v[1], -1, -2));

    (void)s;
    return jot_matmul(jot_softmax(jot_scale(a, 1 / sqrt((double)jot_extent(v[0], -1))), -1), v[2]);
}

/* x w' + b: weights of cells are stored (out, in) */
static jot_Var
gates(jot_Var x, jot_Var w, jot_Var b)
{
    return jot_linear(x, jot_swap(w, 0, 1), b);
}

static jot_Var
gate(jot_Var all, int k, int of)
{
    int64_t n = jot_extent(all, 0), h = jot_extent(all, 1) / of;

    return jot_slice(all, JOT_SHAPE(0, k * h), JOT_SHAPE(n, (k + 1) * h), JOT_SHAPE(1, 1));
}

/* x, h, w, u, b, bu */
static jot_Var
do_rnn_cell(S *s, V *v)
{
    (void)s;
    return jot_tanh(jot_add(gates(v[0], v[2], v[4]), gates(v[1], v[3], v[5])));
}

static jot_Var
do_gru_cell(S *s, V *v)
{
    jot_Var x = gates(v[0], v[2], v[4]), h = gates(v[1], v[3], v[5]);
    jot_Var r = jot_sigmoid(jot_add(gate(x, 0, 3), gate(h, 0, 3)));
    jot_Var z = jot_sigmoid(jot_add(gate(x, 1, 3), gate(h, 1, 3)));
    jot_Var n = jot_tanh(jot_add(gate(x, 2, 3), jot_mul(r, gate(h, 2, 3))));

    (void)s;
    return jot_add(n, jot_mul(z, jot_sub(v[1], n)));
}

#define ROW(name) {#name, do_##name},
#define INPUT(name) {#name, NULL},
const DrawnOp drawn_ops[] = {
    INPUT(bool) INPUT(i8) INPUT(i16) INPUT(i32) INPUT(i64) INPUT(u8) INPUT(u16) INPUT(u32)
    INPUT(u64) INPUT(f16) INPUT(bf16) INPUT(f32) INPUT(f64) INPUT(grad) INPUT(out)
    UNARY(ROW) BINARY(ROW) REDUCE(ROW) ONE_DIM(ROW) POOL(ROW) ROW(argmax)
    ROW(transpose) ROW(reshape) ROW(flip) ROW(select) ROW(linear) ROW(scale) ROW(offset)
    ROW(concat) ROW(gather) ROW(pad) ROW(slice) ROW(layer_norm) ROW(instance_norm) ROW(swap)
    ROW(cast) ROW(conv2d) ROW(batch_norm) ROW(group_norm) ROW(attention) ROW(rnn_cell)
    ROW(gru_cell) {NULL, NULL}
};

/* ---- graphs ------------------------------------------------------------------------------- */

int
drawn_make(Bench *b, const DrawnProgram *p, jot_Var *out)
{
    jot_Var value[DRAWN_STEPS * 2], v[DRAWN_OPERANDS];
    int n = 0, inputs = 0;

    for (int i = 0; i < p->n && n < DRAWN_STEPS * 2 - DRAWN_OPERANDS; i++) {
        S *s = &p->step[i];

        for (int k = 0; k < s->nin; k++)
            v[k] = value[s->in[k]];
        if (s->op == DRAWN_OUT) {
            for (int k = 0; k < s->nin; k++)
                out[k] = v[k];
            return s->nin;
        }
        if (s->op == DRAWN_GRAD) {
            jot_grad(v[0], jot_vars(s->nin - 1, v + 1), value + n);
            n += s->nin - 1;
        } else if (s->op < JOT_DTYPES) {
            if (inputs == WORK_INPUTS)
                return 0;
            value[n++] = input(b, inputs++, s);
        } else
            value[n++] = drawn_ops[s->op].build(s, v);
    }
    return 0;
}
