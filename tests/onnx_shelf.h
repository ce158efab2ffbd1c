/* tests/onnx_shelf.h - graphs to export: every element-wise operator in every dtype that has it,
 * forms, maps, reductions, the shelf of nn.h, networks of examples/models/. */
#ifndef JOT_TEST_ONNX_SHELF_H
#define JOT_TEST_ONNX_SHELF_H
#include "examples/models/model.h"
#include "expr.h"
#include "nn.h"
#include "tests/fuzz_programs.h"

enum { SHELF_IN = 8, SHELF_OUT = 64 };
typedef struct {
    jot_Ctx *c;
    char name[64];
    jot_Var in[SHELF_IN], out[SHELF_OUT];
    int nin, nout;
    uint32_t seed;
} Shelf;

/* An input of drawn quarters from lo to hi, whole numbers for integers. */
static jot_Var
shelf_in(Shelf *s, jot_DType dtype, jot_Ints shape, int lo, int hi)
{
    int64_t n = 1;
    double *v;
    jot_Var x;

    for (int k = 0; k < shape.n; k++)
        n *= shape.v[k];
    v = malloc((size_t)(n + 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        s->seed = s->seed * 1664525u + 1013904223u;
        v[i] = lo + (s->seed >> 8) % (unsigned)(4 * (hi - lo) + 1) / 4.0;
        v[i] = dtype < JOT_F16 ? floor(v[i]) : v[i];
    }
    jot_push(s->c);
    x = jot_cast(jot_array(s->c, JOT_F64, shape, v), dtype);
    const void *data = jot_data(x);
    x = jot_keep(jot_array(s->c, dtype, shape, data));
    jot_pop(s->c);
    free(v);
    return s->in[s->nin++] = x;
}

static void
shelf_out(Shelf *s, jot_Var v)
{
    s->out[s->nout++] = v;
}

#define F(...) shelf_in(s, JOT_F32, JOT_SHAPE(__VA_ARGS__), -3, 3)
#define P(...) shelf_in(s, JOT_F32, JOT_SHAPE(__VA_ARGS__), 0, 1) /* 0..1 */
#define I(lo, hi, ...) shelf_in(s, JOT_I64, JOT_SHAPE(__VA_ARGS__), lo, hi)
#define OUT(v) shelf_out(s, v)
#define CASE(text) if (k-- == 0 && (snprintf(s->name, sizeof s->name, "%s", text), true))

/* Every unary and binary operator, by dtype. */
static bool
shelf_element(Shelf *s, int k)
{
    static const struct { const char *name; jot_Var (*f)(jot_Var); } one[] = {
#define X(name) {#name, jot_##name},
        JOT_UNARY(X)
    };
    static const struct { const char *name; jot_Var (*f)(jot_Var, jot_Var); } two[] = {
        JOT_BINARY(X)
#undef X
    };
    enum { ONE = sizeof one / sizeof *one, TWO = sizeof two / sizeof *two };
    int op = k % (ONE + TWO), dtype = k / (ONE + TWO), lo, hi;
    jot_Var a, b, y;

    if (dtype == JOT_DTYPES) {
        static const double far[] = {1e4, -1e4, 800, -800, 40, -40, 1e-3, 0, INFINITY, -INFINITY};
        int n = sizeof far / sizeof *far;
        s->in[s->nin++] = a = jot_array(s->c, JOT_F64, JOT_SHAPE(n), far);
        snprintf(s->name, sizeof s->name, "softplus_far");
        OUT(jot_softplus(a));
        return op == 0;
    }
    snprintf(s->name, sizeof s->name, "%s_%s", op < ONE ? one[op].name : two[op - ONE].name,
             jot_dtype_name((jot_DType)dtype));
    lo = dtype < JOT_F16 && (dtype == JOT_BOOL || dtype >= JOT_U8) ? 0 : -9;
    hi = dtype == JOT_BOOL ? 1 : 9;
    if (dtype >= JOT_F16)
        lo = -3, hi = 3;
    a = shelf_in(s, (jot_DType)dtype, JOT_SHAPE(5, 7), lo, hi);
    b = op < ONE ? a : shelf_in(s, (jot_DType)dtype, JOT_SHAPE(7), lo, hi);
    y = op < ONE ? one[op].f(a) : two[op - ONE].f(a, b);
    if (jot_ok(y))
        OUT(y);
    else
        jot_clear(s->c);
    return true;
}

static bool
shelf_cast(Shelf *s, int k)
{
    int from = k / JOT_DTYPES, to = k % JOT_DTYPES;
    double lo = from == JOT_BOOL || (from >= JOT_U8 && from <= JOT_U64) ? 0 : -200;

    if (from == JOT_DTYPES)
        return false;
    snprintf(s->name, sizeof s->name, "cast_%s_%s", jot_dtype_name((jot_DType)from),
             jot_dtype_name((jot_DType)to));
    jot_Var x = shelf_in(s, (jot_DType)from, JOT_SHAPE(41), (int)lo, 300);
    if (from >= JOT_F32)
        x = jot_div(x, jot_offset(jot_floor(jot_scale(x, 0.01)), 1)); /* infinities and NaN */
    OUT(jot_cast(x, (jot_DType)to));
    return true;
}

static bool
shelf_forms(Shelf *s, int k)
{
    jot_Var x, y, z, w;

    CASE("reshape") { x = F(4, 6); OUT(jot_reshape(x, JOT_SHAPE(8, 3))); return true; }
    CASE("transpose") { x = F(2, 3, 4); OUT(jot_transpose(x, JOT_INTS(2, 0, 1))); return true; }
    CASE("heads") {
        x = F(2, 5, 12);
        OUT(jot_transpose(jot_reshape(x, JOT_SHAPE(2, 5, 3, 4)), JOT_INTS(0, 2, 1, 3)));
        return true;
    }
    CASE("slice") {
        x = F(7, 9);
        OUT(jot_slice(x, JOT_INTS(1, 7), JOT_INTS(6, 0), JOT_INTS(2, -3)));
        return true;
    }
    CASE("pad") {
        x = F(3, 4);
        OUT(jot_pad(x, JOT_INTS(1, -1), JOT_INTS(2, 3), 0.5));
        return true;
    }
    CASE("pad_i16") {
        x = shelf_in(s, JOT_I16, JOT_SHAPE(3, 4), -9, 9);
        OUT(jot_pad(x, JOT_INTS(1, 1), JOT_INTS(2, 3), 5));
        return true;
    }
    CASE("flip") { x = F(3, 4); OUT(jot_flip(x, JOT_INTS(0, 1))); return true; }
    CASE("tile") { x = F(3, 4); OUT(jot_tile(x, JOT_INTS(2, 3))); return true; }
    CASE("broadcast") { x = F(3, 1); OUT(jot_broadcast_to(x, JOT_SHAPE(2, 3, 4))); return true; }
    CASE("repeat") { x = F(3, 4); OUT(jot_repeat_interleave(x, 1, 3)); return true; }
    CASE("concat") {
        x = F(2, 3), y = F(2, 5), z = F(2, 1);
        OUT(jot_concat(JOT_VARS(x, y, z), 1));
        return true;
    }
    CASE("concat_transposed") {
        x = F(3, 2), y = F(4, 5);
        OUT(jot_concat(JOT_VARS(jot_transpose(x, JOT_INTS(1, 0)), jot_reshape(y, JOT_SHAPE(2, 10)),
                                jot_flip(jot_transpose(x, JOT_INTS(1, 0)), JOT_INTS(1))), 1));
        return true;
    }
    CASE("concat_bool") {
        x = F(2, 3), y = F(1, 3);
        OUT(jot_concat(JOT_VARS(jot_gt(x, y), jot_lt(y, jot_neg(y))), 0));
        return true;
    }
    CASE("stack") { x = F(2, 3), y = F(2, 3); OUT(jot_stack(JOT_VARS(x, y, x), 1)); return true; }
    CASE("take") {
        x = F(5, 3, 4), y = I(-1, 3, 2, 3);
        OUT(jot_take(x, y, 1));
        OUT(jot_take(x, y, 0));
        return true;
    }
    CASE("one_hot") { y = I(-1, 5, 4); OUT(jot_one_hot(y, 5, JOT_F32)); return true; }
    CASE("roll") { x = F(3, 5); OUT(jot_roll(x, 1, 2)); return true; }
    CASE("tril") { x = F(4, 5); OUT(jot_tril(x, 1)); OUT(jot_triu(x, -1)); return true; }
    CASE("diagonal") {
        x = F(2, 4, 5);
        OUT(jot_diagonal(x, 1));
        OUT(jot_diag_embed(jot_diagonal(x, 1), -1));
        OUT(jot_trace(x));
        return true;
    }
    CASE("reindex") {
        x = F(5, 6), y = I(0, 4, 3, 3);
        OUT(jot_reindex_ex(x, JOT_SHAPE(3, 3, 4), JOT_INDEX("@e0(i0,i1)-i2", "i0*i1+i2"),
                           JOT_INDEX("i0+i1<4"), -1.5, JOT_VARS(y)));
        OUT(jot_reindex(x, JOT_SHAPE(4, 7), JOT_INDEX("(i0+i1)%5", "(i0*3+i1)/2-1")));
        OUT(jot_reindex_ex(x, JOT_SHAPE(3, 3), JOT_INDEX("@e0(i1,i0+1)", "@e0(0,i0)%3"),
                           JOT_NONE_STRS, INFINITY, JOT_VARS(y)));
        return true;
    }
    CASE("iota") {
        x = F(3, 4);
        OUT(jot_add(x, jot_iota(s->c, JOT_F32, JOT_SHAPE(3, 4), 1)));
        OUT(jot_iota(s->c, JOT_I32, JOT_SHAPE(3, 2), 0));
        return true;
    }
    CASE("same_twice") { x = F(3); OUT(x); OUT(x); OUT(jot_neg(x)); OUT(s->out[2]); return true; }
    CASE("constant") { F(3); OUT(jot_full(s->c, JOT_F16, JOT_SHAPE(2, 3), 0.1)); return true; }
    CASE("empty") {
        x = F(0, 3);
        OUT(jot_add(x, x));
        OUT(jot_sum(x, JOT_DIMS(0)));
        OUT(jot_mean(x, JOT_DIMS(0)));
        return true;
    }
    CASE("scalar") { x = F(); OUT(jot_exp(x)); return true; }
    CASE("where") {
        x = F(3, 4), y = F(4), w = F(3, 1);
        OUT(jot_where(jot_gt(x, y), w, jot_scalar(s->c, JOT_F32, 2)));
        OUT(jot_where(jot_gt(x, y), jot_lt(w, x), jot_isnan(x)));
        return true;
    }
    return false;
}

static bool
shelf_reduce(Shelf *s, int k)
{
    jot_Var x, y;
    int op = k % JOT_REDUCE_OPS, dtype = k / JOT_REDUCE_OPS;
    static const char *const names[] = {"sum", "prod", "max", "min", "and", "or", "xor", "bitand",
                                        "bitor", "bitxor", "mean"};

    if (dtype < JOT_DTYPES) {
        snprintf(s->name, sizeof s->name, "reduce_%s_%s", names[op],
                 jot_dtype_name((jot_DType)dtype));
        x = shelf_in(s, (jot_DType)dtype, JOT_SHAPE(3, 4, 5), dtype >= JOT_U8 && dtype < JOT_F16
                     ? 0 : -2, dtype == JOT_BOOL ? 1 : 3);
        y = I(-1, 3, 3, 4, 5);
        jot_Var r[3] = {jot_reduce((jot_ReduceOp)op, x, JOT_DIMS(1)),
                        jot_reduce((jot_ReduceOp)op, x, JOT_KEEP(0, 2)),
                        jot_reindex_reduce_ex((jot_ReduceOp)op, x, JOT_SHAPE(3, 2),
                                              JOT_INDEX("@e0(i0,i1,i2)", "i1-1"), JOT_NONE_STRS,
                                              JOT_VARS(y))};
        for (int i = 0; i < 3; i++)
            if (jot_ok(r[i]))
                OUT(r[i]);
        jot_clear(s->c);
        return true;
    }
    k -= JOT_REDUCE_OPS * JOT_DTYPES;
    CASE("argmax") {
        x = F(4, 5);
        OUT(jot_argmax(x, JOT_DIMS(1)));
        OUT(jot_argmin(x, JOT_ALL_DIMS));
        return true;
    }
    CASE("variance") { x = F(4, 5, 3); OUT(jot_variance(x, JOT_DIMS(0, 2))); return true; }
    CASE("reduce_map") {
        x = F(4, 6);
        OUT(jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(8, 3), JOT_INDEX("i0*2+i1/3", "i1%3")));
        OUT(jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(9), JOT_INDEX("i0+i1")));
        OUT(jot_reindex_reduce(JOT_MAX, x, JOT_SHAPE(3), JOT_INDEX("i1/2")));
        OUT(jot_reindex_reduce(JOT_MEAN, x, JOT_SHAPE(3), JOT_INDEX("i1/2")));
        return true;
    }
    CASE("alike") {
        x = F(4);
        y = jot_broadcast(x, JOT_SHAPE(4, 3), JOT_INTS(1));
        OUT(jot_sum(y, JOT_DIMS(1)));
        OUT(jot_prod(y, JOT_DIMS(1)));
        OUT(jot_max(y, JOT_DIMS(0)));
        OUT(jot_mean(jot_mul(y, y), JOT_ALL_DIMS));
        return true;
    }
    CASE("softmax") {
        x = F(3, 7);
        OUT(jot_softmax(x, 1));
        OUT(jot_log_softmax(x, 0));
        OUT(jot_logsumexp(x, JOT_DIMS(1)));
        return true;
    }
    return false;
}

static bool
shelf_products(Shelf *s, int k)
{
    jot_Var x, y, z;

    CASE("matmul") { x = F(4, 5), y = F(5, 6); OUT(jot_matmul(x, y)); return true; }
    CASE("matmul_transposed") {
        x = F(5, 4), y = F(6, 5);
        OUT(jot_matmul(jot_transpose(x, JOT_INTS(1, 0)), jot_transpose(y, JOT_INTS(1, 0))));
        return true;
    }
    CASE("matmul_batch") { x = F(2, 3, 4, 5), y = F(3, 5, 6); OUT(jot_matmul(x, y)); return true; }
    CASE("matmul_rows") { x = F(2, 3, 5), y = F(5, 6); OUT(jot_matmul(x, y)); return true; }
    CASE("matmul_vector") {
        x = F(5), y = F(5, 6), z = F(6);
        OUT(jot_matmul(x, y));
        OUT(jot_matmul(y, z));
        OUT(jot_matmul(x, x));
        return true;
    }
    CASE("matmul_i8") {
        x = shelf_in(s, JOT_I8, JOT_SHAPE(4, 5), -9, 9);
        y = shelf_in(s, JOT_I8, JOT_SHAPE(5, 6), -9, 9);
        OUT(jot_matmul(x, y));
        return true;
    }
    CASE("matmul_f16") {
        x = shelf_in(s, JOT_F16, JOT_SHAPE(4, 5), -2, 2);
        y = shelf_in(s, JOT_F16, JOT_SHAPE(5, 6), -2, 2);
        OUT(jot_matmul(x, y));
        return true;
    }
    CASE("matmul_f64") {
        x = shelf_in(s, JOT_F64, JOT_SHAPE(4, 5), -2, 2);
        y = shelf_in(s, JOT_F64, JOT_SHAPE(5, 6), -2, 2);
        OUT(jot_matmul(x, y));
        return true;
    }
    CASE("linear") {
        x = F(3, 4, 5), y = F(5, 6), z = F(6);
        OUT(jot_linear(x, y, z));
        return true;
    }
    CASE("einsum") {
        x = F(2, 3, 4), y = F(3, 4, 5), z = F(2, 5);
        OUT(jot_einsum(s->c, "abc,bcd->ad", JOT_VARS(x, y)));
        OUT(jot_einsum(s->c, "abc,bcd,ad->b", JOT_VARS(x, y, z)));
        OUT(jot_einsum(s->c, "abc,bcd->bda", JOT_VARS(x, y)));
        OUT(jot_einsum(s->c, "abc->cb", JOT_VARS(x)));
        return true;
    }
    CASE("outer") { x = F(3), y = F(4); OUT(jot_outer(x, y)); OUT(jot_kron(x, y)); return true; }
    CASE("cdist") {
        x = F(3, 4), y = F(5, 4);
        OUT(jot_cdist(x, y, 2));
        OUT(jot_cdist(x, y, 1));
        return true;
    }
    CASE("cumsum") { x = F(3, 9); OUT(jot_cumsum(x, 1)); OUT(jot_cummax(x, 0)); return true; }
    CASE("scan") {
        x = F(3, 9, 4), y = shelf_in(s, JOT_I32, JOT_SHAPE(7), -9, 9);
        for (unsigned how = 0; how < 4; how++) {
            OUT(jot_scan(JOT_ADD, x, (int)how % 3, how));
            OUT(jot_scan(JOT_ADD, y, 0, how));
            OUT(jot_scan(JOT_MUL, x, 1, how));
        }
        return true;
    }
    CASE("gradients") {
        x = F(4, 5), y = F(5, 3);
        jot_Var l = jot_sum(jot_square(jot_tanh(jot_matmul(x, y))), JOT_ALL_DIMS);
        jot_grad(l, JOT_VARS(x, y), &s->out[s->nout]);
        s->nout += 2;
        return true;
    }
    return false;
}

static bool
shelf_images(Shelf *s, int k)
{
    jot_Var x, w, b;

    CASE("conv") {
        x = F(2, 6, 9, 8), w = F(4, 6, 3, 2), b = F(4);
        OUT(jot_conv(x, w, b, &(jot_ConvNd){.stride = {2, 1}, .pad = {1, 1}, .dilation = {1, 2}}));
        return true;
    }
    CASE("conv_groups") {
        x = F(2, 6, 9, 8), w = F(4, 3, 3, 3);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.pad = {1, 1}, .groups = 2}));
        return true;
    }
    CASE("conv_depthwise") {
        x = F(2, 6, 9, 8), w = F(6, 1, 3, 3);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.pad = {1, 1}, .groups = 6}));
        return true;
    }
    CASE("conv_1x1") {
        x = F(2, 6, 9, 8), w = F(4, 6, 1, 1);
        OUT(jot_conv(x, w, jot_none(), NULL));
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.stride = {2, 2}}));
        return true;
    }
    CASE("conv_1xk") {
        x = F(2, 6, 9, 8), w = F(4, 6, 1, 5);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.pad = {0, 2}}));
        return true;
    }
    CASE("conv_patches") {
        x = F(2, 3, 8, 8), w = F(5, 3, 4, 4);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.stride = {4, 4}}));
        return true;
    }
    CASE("conv_whole") { /* one result */
        x = F(2, 3, 4, 4), w = F(5, 3, 4, 4);
        OUT(jot_conv(x, w, jot_none(), NULL));
        return true;
    }
    CASE("conv1d") {
        x = F(2, 3, 11), w = F(5, 3, 4);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.same = true, .stride = {2}}));
        return true;
    }
    CASE("conv3d") {
        x = F(1, 2, 5, 6, 4), w = F(3, 2, 3, 2, 2);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.pad = {1, 0, 1}}));
        return true;
    }
    CASE("conv_f16") {
        x = shelf_in(s, JOT_F16, JOT_SHAPE(1, 3, 6, 6), -2, 2);
        w = shelf_in(s, JOT_F16, JOT_SHAPE(4, 3, 3, 3), -1, 1);
        OUT(jot_conv(x, w, jot_none(), NULL));
        return true;
    }
    CASE("conv_f64") {
        x = shelf_in(s, JOT_F64, JOT_SHAPE(1, 3, 6, 6), -2, 2);
        w = shelf_in(s, JOT_F64, JOT_SHAPE(4, 3, 3, 3), -1, 1);
        OUT(jot_conv(x, w, jot_none(), &(jot_ConvNd){.pad = {1, 1}}));
        return true;
    }
    CASE("conv_i8") {
        x = shelf_in(s, JOT_I8, JOT_SHAPE(1, 3, 6, 6), -9, 9);
        w = shelf_in(s, JOT_I8, JOT_SHAPE(4, 3, 3, 3), -9, 9);
        OUT(jot_conv(x, w, jot_none(), NULL));
        return true;
    }
    CASE("conv_nhwc") { /* Listing 1 of the Jittor paper, images last */
        x = F(2, 7, 6, 3), w = F(3, 3, 3, 4);
        jot_Ints space = JOT_SHAPE(2, 7, 6, 4, 3, 3, 3);
        jot_Var xx = jot_reindex(x, space, JOT_INDEX("i0", "i1+i5-1", "i2+i6-1", "i4"));
        jot_Var ww = jot_reindex(w, space, JOT_INDEX("i5", "i6", "i4", "i3"));
        OUT(jot_sum(jot_mul(xx, ww), JOT_DIMS(4, 5, 6)));
        return true;
    }
    CASE("conv_paper") { /* taps that count backwards */
        x = F(1, 2, 5, 5), w = F(3, 2, 3, 3);
        jot_Ints space = JOT_SHAPE(1, 3, 5, 5, 2, 3, 3);
        jot_Var xx = jot_reindex(x, space, JOT_INDEX("i0", "i4", "i2-i5", "i3-i6"));
        jot_Var ww = jot_broadcast(w, space, JOT_INTS(0, 2, 3));
        OUT(jot_relu(jot_sum(jot_mul(xx, ww), JOT_DIMS(4, 5, 6))));
        return true;
    }
    CASE("conv_gradients") {
        x = F(2, 4, 7, 6), w = F(6, 2, 3, 3);
        jot_Var y = jot_conv(x, w, jot_none(), &(jot_ConvNd){.stride = {2, 1}, .pad = {1, 0},
                                                             .groups = 2});
        jot_grad(jot_sum(jot_square(y), JOT_ALL_DIMS), JOT_VARS(x, w), &s->out[s->nout]);
        s->nout += 2;
        return true;
    }
    CASE("conv_transpose") {
        x = F(2, 4, 5, 6), w = F(4, 3, 3, 4), b = F(3);
        OUT(jot_conv_transpose(x, w, b, &(jot_ConvNd){.stride = {2, 3}, .pad = {1, 0},
                                                      .out_pad = {1, 0}}));
        return true;
    }
    CASE("conv_transpose_groups") {
        x = F(2, 4, 5), w = F(4, 3, 3);
        OUT(jot_conv_transpose(x, w, jot_none(), &(jot_ConvNd){.stride = {2}, .dilation = {2},
                                                               .groups = 2}));
        return true;
    }
    CASE("max_pool") {
        x = F(2, 3, 8, 9);
        OUT(jot_max_pool(x, &(jot_PoolNd){.size = {2, 2}}));
        OUT(jot_max_pool(x, &(jot_PoolNd){.size = {3, 3}, .stride = {2, 2}, .pad = {1, 1}}));
        OUT(jot_max_pool(x, &(jot_PoolNd){.size = {2, 3}, .stride = {2, 2}, .dilation = {2, 1},
                                          .ceil = true}));
        return true;
    }
    CASE("avg_pool") {
        x = F(2, 3, 8, 9);
        OUT(jot_avg_pool(x, &(jot_PoolNd){.size = {2, 2}}));
        OUT(jot_avg_pool(x, &(jot_PoolNd){.size = {3, 3}, .stride = {2, 2}, .pad = {1, 1}}));
        OUT(jot_avg_pool(x, &(jot_PoolNd){.size = {3, 2}, .pad = {1, 0}, .exclude = true,
                                          .ceil = true}));
        OUT(jot_lp_pool(x, 2, &(jot_PoolNd){.size = {2, 2}}));
        return true;
    }
    CASE("pool_more") {
        x = F(1, 2, 6, 5);
        OUT(jot_max_pool_at(x, &(jot_PoolNd){.size = {2, 2}}));
        OUT(jot_adaptive_avg_pool(x, JOT_INTS(4, 2)));
        OUT(jot_adaptive_max_pool(x, JOT_INTS(3, 3)));
        OUT(jot_global_avg_pool(x));
        return true;
    }
    CASE("resize") {
        x = F(1, 2, 4, 5);
        OUT(jot_resize(x, &(jot_Resize){.mode = JOT_NEAREST, .size = {8, 10}}));
        OUT(jot_resize(x, &(jot_Resize){.mode = JOT_LINEAR, .size = {7, 9}}));
        OUT(jot_resize(x, &(jot_Resize){.mode = JOT_CUBIC, .size = {6, 8}, .align_corners = true}));
        OUT(jot_resize(x, &(jot_Resize){.mode = JOT_AREA, .size = {3, 2}}));
        return true;
    }
    CASE("shuffles") {
        x = F(2, 8, 3, 4);
        OUT(jot_pixel_shuffle(x, 2));
        OUT(jot_pixel_unshuffle(jot_pixel_shuffle(x, 2), 2));
        OUT(jot_channel_shuffle(x, 4));
        return true;
    }
    CASE("unfold") {
        x = F(1, 2, 5, 6);
        jot_Var u = jot_unfold(x, JOT_INTS(3, 2), &(jot_ConvNd){.pad = {1, 0}});
        OUT(u);
        OUT(jot_fold(u, JOT_INTS(5, 6), JOT_INTS(3, 2), &(jot_ConvNd){.pad = {1, 0}}));
        return true;
    }
    CASE("pad_edges") {
        x = F(1, 2, 5, 6);
        OUT(jot_pad_edges(x, JOT_INTS(1, 2), JOT_INTS(2, 1), JOT_PAD_REFLECT));
        OUT(jot_pad_edges(x, JOT_INTS(1, 2), JOT_INTS(2, 1), JOT_PAD_REPLICATE));
        OUT(jot_pad_edges(x, JOT_INTS(1, 2), JOT_INTS(2, 1), JOT_PAD_CIRCULAR));
        return true;
    }
    CASE("grid_sample") {
        x = F(1, 2, 5, 6), w = P(1, 4, 3, 2);
        OUT(jot_grid_sample(x, w, &(jot_GridSample){.mode = JOT_LINEAR}));
        OUT(jot_grid_sample(x, w, &(jot_GridSample){.mode = JOT_NEAREST, .border = true}));
        return true;
    }
    return false;
}

static bool
shelf_layers(Shelf *s, int k)
{
    jot_Var x, y, z, w;

    CASE("activations") {
        x = F(3, 8);
        jot_Var all[] = {jot_relu(x), jot_gelu(x), jot_gelu_tanh(x), jot_silu(x), jot_elu(x, 0.7),
                         jot_selu(x), jot_mish(x), jot_hard_swish(x), jot_softsign(x),
                         jot_glu(x, 1), jot_swiglu(x, 1), jot_leaky_relu(x, 0.1),
                         jot_hard_shrink(x, 0.5), jot_log_sigmoid(x), jot_clamp(x, -1, 2)};
        for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
            OUT(all[i]);
        return true;
    }
    CASE("norms") {
        x = F(2, 6, 4, 4), y = F(6), z = F(6), w = F(4);
        OUT(jot_batch_norm_eval(x, y, z, z, jot_abs(y), 1e-3));
        OUT(jot_group_norm(x, 3, y, z, 1e-3));
        OUT(jot_layer_norm(x, w, w, 1e-3));
        OUT(jot_rms_norm(x, w, 1e-3));
        OUT(jot_instance_norm(x, 1e-3));
        OUT(jot_local_response_norm(x, 3, 0.1, 0.7, 1));
        OUT(jot_normalize(x, 1, 2, 1e-6));
        return true;
    }
    CASE("losses") {
        x = F(4, 5), y = P(4, 5), z = I(0, 4, 4);
        OUT(jot_cross_entropy(x, z));
        OUT(jot_nll_loss(jot_log_softmax(x, 1), z, NULL));
        OUT(jot_bce_with_logits_loss(x, y, jot_none(), jot_none(), JOT_REDUCTION_MEAN));
        OUT(jot_huber_loss(x, y, 1, JOT_REDUCTION_SUM));
        OUT(jot_kl_div_loss(x, y, false, JOT_REDUCTION_NONE));
        return true;
    }
    CASE("attention") {
        x = F(2, 4, 5, 8), y = F(2, 2, 7, 8), z = F(2, 2, 7, 6);
        OUT(jot_attention(x, y, z, &(jot_Attention){.causal = true}));
        w = I(1, 6, 2);
        OUT(jot_attention(x, y, z, &(jot_Attention){.lengths = w}));
        return true;
    }
    CASE("rotary") {
        x = F(2, 3, 5, 8), y = I(0, 9, 5);
        OUT(jot_rotary(x, y, 10000, true));
        OUT(jot_rotary(x, y, 10000, false));
        return true;
    }
    CASE("embedding") { x = F(9, 4), y = I(0, 8, 2, 3); OUT(jot_embedding(x, y, 0)); return true; }
    CASE("gru") {
        x = F(4, 2, 3), y = F(3, 15), z = F(5, 15), w = F(2, 5);
        OUT(jot_gru(x, &w, &(jot_Cell){.in = y, .state = z}));
        OUT(w);
        return true;
    }
    CASE("lstm") {
        x = F(4, 2, 3), y = F(3, 20), z = F(5, 20), w = F(2, 5);
        jot_Var state = F(2, 5), n = I(1, 4, 2);
        OUT(jot_lstm(x, &w, &state,
                     &(jot_Cell){.in = y, .state = z, .lengths = n, .reverse = true}));
        OUT(state);
        return true;
    }
    CASE("scatter") {
        x = F(5, 4), y = I(-1, 4, 3, 4), z = F(3, 4);
        OUT(jot_scatter(x, y, z, 0));
        OUT(jot_scatter_reduce(JOT_ADD, x, y, z, 0));
        OUT(jot_take_along(x, y, 0));
        OUT(jot_bincount(y, jot_none(), 5));
        OUT(jot_histogram(z, 4, -2, 2));
        return true;
    }
    CASE("update") {
        x = F(5, 4), y = F(2, 2), z = I(0, 3, 2);
        OUT(jot_update_slice(x, JOT_INTS(1, -3), y));
        OUT(jot_update_slice_at(x, z, y));
        return true;
    }
    CASE("special") {
        x = P(20);
        jot_Var u = jot_offset(x, -0.5);
        OUT(jot_erfinv(u));
        OUT(jot_sinc(u));
        OUT(jot_logit(x, 0.01));
        OUT(jot_erfc(jot_scale(u, 12)));
        OUT(jot_expm1(jot_scale(u, 1e-6)));
        OUT(jot_log1p(jot_scale(u, 1e-6)));
        return true;
    }
    CASE("big_integers") {
        x = I(-9, 9, 12);
        y = jot_mul(x, jot_full_int(s->c, JOT_I64, JOT_SHAPE(), INT64_C(0x1234567890abcdef)));
        OUT(y);
        z = jot_cast(y, JOT_U64);
        OUT(jot_maximum(z, jot_cast(x, JOT_U64)));
        OUT(jot_lt(z, jot_cast(jot_neg(x), JOT_U64)));
        OUT(jot_floordiv(y, x));
        OUT(jot_mod(z, jot_cast(x, JOT_U64)));
        OUT(jot_pow(y, x));
        OUT(jot_max(z, JOT_ALL_DIMS));
        return true;
    }
    return false;
}

static jot_Var
shelf_encoder(Model *m, jot_Var x)
{
    return encoder(m, x, 2, 4);
}

static bool
shelf_net(Shelf *s, int k)
{
    static const struct {
        const char *name;
        jot_Var (*net)(Model *, jot_Var);
        int64_t shape[4];
        int rank;
    } nets[] = {
        {"lenet", lenet, {2, 1, 28, 28}, 4}, {"mlp", mlp, {2, 784}, 2},
        {"encoder", shelf_encoder, {2, 8, 64}, 3}, {"squeezenet", squeezenet, {1, 3, 64, 64}, 4},
        {"unet", unet, {1, 3, 20, 20}, 4}, {"mobilenet", mobilenet, {1, 3, 64, 64}, 4},
        {"generator", generator, {1, 100, 1, 1}, 4}, {"resnet18", resnet18, {1, 3, 64, 64}, 4},
    };
    static Model m;

    if (k >= (int)(sizeof nets / sizeof *nets))
        return false;
    snprintf(s->name, sizeof s->name, "net_%s", nets[k].name);
    memset(&m, 0, sizeof m);
    model_begin(&m, s->c, false);
    jot_Var x = shelf_in(s, JOT_F32, jot_ints(nets[k].rank, nets[k].shape), -1, 1);
    OUT(nets[k].net(&m, x));
    return true;
}

static bool
shelf_drawn(Shelf *s, uint64_t seed)
{
    static Prog prog;

    snprintf(s->name, sizeof s->name, "drawn_%llu", (unsigned long long)seed);
    s->nout = fuzz_program(&prog, s->c, seed, s->out);
    for (int k = 0; k < 3; k++)
        s->in[s->nin++] = prog.in[k];
    s->in[s->nin++] = prog.index;
    return true;
}
#undef F
#undef P
#undef I
#undef OUT
#undef CASE

#endif
