/* onnx/op/attention.c - attention, rotary embeddings, attention with a state.
 *
 * Attention is jot's own where nothing but causality masks; with masks a row that sees nothing is
 * 0, which is told by the mask, not by the products.
 *
 * Read before: onnx/op/rnn.c. After: onnx/op/quant.c. */
#include "onnx/op/ops.h"

/* (b, t, heads d) -> (b, heads, t, d) */
static jot_Var
heads(OnnxCall *c, jot_Var x, int64_t n)
{
    if (jot_rank(x) == 4)
        return x;
    if (jot_rank(x) != 3 || n < 1 || jot_extent(x, 2) % n)
        return jot_raise(c->ctx, JOT_ESHAPE, "(b, t, heads d) asked, %lld heads", (long long)n);
    x = jot_reshape(x, JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1), n, jot_extent(x, 2) / n));
    return jot_transpose(x, JOT_INTS(0, 2, 1, 3));
}

static jot_Var
unheads(jot_Var y)
{
    int64_t d = jot_extent(y, 1) * jot_extent(y, 3);
    y = jot_transpose(y, JOT_INTS(0, 2, 1, 3));
    return jot_reshape(y, JOT_SHAPE(jot_extent(y, 0), jot_extent(y, 1), d));
}

/* bool (.., t, s): what the query at i + offset, () or (b), may see. */
static jot_Var
allowed(OnnxCall *c, int64_t t, int64_t s, jot_Var offset, int64_t left, int64_t right)
{
    jot_Ints space = JOT_SHAPE(1, 1, t, s);
    jot_Var at = jot_add(jot_iota(c->ctx, JOT_I64, space, 2), offset);
    jot_Var key = jot_iota(c->ctx, JOT_I64, space, 3), far = jot_sub(at, key);
    jot_Var in = jot_none();
    if (onnx_i(c, "is_causal", 0))
        in = jot_ge(far, onnx_number(far, 0));
    if (left >= 0) {
        jot_Var w = jot_le(far, onnx_number(far, (double)left));
        in = in.ctx ? jot_logical_and(in, w) : w;
    }
    if (right >= 0) {
        jot_Var w = jot_ge(far, onnx_number(far, -(double)right));
        in = in.ctx ? jot_logical_and(in, w) : w;
    }
    return in;
}

/* What is added to the products, or none. */
static jot_Var
attention_bias(OnnxCall *c, jot_DType dtype, int64_t t, int64_t s, int64_t past)
{
    int64_t left = onnx_i(c, "left_window_size", -1), right = onnx_i(c, "right_window_size", -1);
    jot_Var none = jot_full(c->ctx, dtype, JOT_SHAPE(), -INFINITY);
    jot_Var zero = jot_full(c->ctx, dtype, JOT_SHAPE(), 0), bias = jot_none(), in;

    if (onnx_given(c, 3)) {
        jot_Var m = c->x[3];
        int64_t before[JOT_MAX_RANK] = {0}, after[JOT_MAX_RANK] = {0};
        m = jot_dtype(m) == JOT_BOOL ? jot_where(m, zero, none) : jot_cast(m, dtype);
        after[jot_rank(m) - 1] = s - jot_extent(m, -1);
        if (after[jot_rank(m) - 1] > 0)
            m = jot_pad(m, jot_ints(jot_rank(m), before), jot_ints(jot_rank(m), after), -INFINITY);
        bias = m;
    }
    bool external = onnx_given(c, 6);
    jot_Var filled = external ? jot_reshape(jot_cast(c->x[6], JOT_I64), JOT_SHAPE(-1, 1, 1, 1))
                              : jot_none();
    jot_Var offset = external ? jot_offset(filled, -(double)t)
                              : jot_full_int(c->ctx, JOT_I64, JOT_SHAPE(), past);
    if ((in = allowed(c, t, s, offset, left, right)).ctx) {
        in = jot_where(in, zero, none);
        bias = bias.ctx ? jot_add(bias, in) : in;
    }
    if (external) {
        in = jot_lt(jot_iota(c->ctx, JOT_I64, JOT_SHAPE(1, 1, 1, s), 3), filled);
        in = jot_where(in, zero, none);
        bias = bias.ctx ? jot_add(bias, in) : in;
    }
    return bias;
}

/* The general case, with every product that is asked for. */
static jot_Var
attend(OnnxCall *c, jot_Var q, jot_Var k, jot_Var v, double scale, int64_t past)
{
    int64_t t = jot_extent(q, 2), s = jot_extent(k, 2);
    int64_t mode = onnx_i(c, "qk_matmul_output_mode", 0);
    int64_t times = jot_extent(k, 1) ? jot_extent(q, 1) / jot_extent(k, 1) : 1;
    int64_t precise = onnx_i(c, "softmax_precision", 0);
    double cap = onnx_f(c, "softcap", 0), root = sqrt(scale);
    jot_DType dtype = jot_dtype(q);
    jot_Var bias = attention_bias(c, dtype, t, s, past), p;

    if (times > 1) {
        k = jot_repeat_interleave(k, 1, times);
        v = jot_repeat_interleave(v, 1, times);
    }
    p = jot_matmul(jot_scale(q, root), jot_swap(jot_scale(k, root), 2, 3));
    c->out[3] = p;
    if (cap > 0)
        p = jot_scale(jot_tanh(jot_scale(p, 1 / cap)), cap);
    c->out[3] = mode == 1 ? p : c->out[3];
    p = bias.ctx ? jot_add(p, bias) : p;
    c->out[3] = mode == 2 ? p : c->out[3];
    if (precise && onnx_float(onnx_dtype((int)precise)))
        p = jot_cast(p, onnx_dtype((int)precise));
    p = jot_softmax(p, -1);
    if (bias.ctx) {
        jot_Var most = jot_max(bias, JOT_KEEP(-1));
        p = jot_where(jot_eq(most, onnx_number(most, -INFINITY)), onnx_number(p, 0), p);
    }
    p = jot_cast(p, dtype);
    c->out[3] = mode == 3 ? p : c->out[3];
    return jot_matmul(p, v);
}

bool
onnx_op_attention(OnnxCall *c)
{
    bool flat = jot_rank(c->x[0]) == 3, causal = onnx_i(c, "is_causal", 0);
    int64_t hq = onnx_i(c, "q_num_heads", 0), hk = onnx_i(c, "kv_num_heads", 0), past = 0;
    jot_Var q = heads(c, c->x[0], hq), k = heads(c, c->x[1], hk), v = heads(c, c->x[2], hk), y;

    if (!jot_ok(q) || !jot_ok(k) || !jot_ok(v))
        return false;
    if (onnx_given(c, 4) && onnx_given(c, 5)) {
        past = jot_extent(c->x[4], 2);
        k = jot_concat(JOT_VARS(c->x[4], k), 2);
        v = jot_concat(JOT_VARS(c->x[5], v), 2);
    }
    c->out[1] = k;
    c->out[2] = v;
    if (!jot_extent(k, 1) || jot_extent(q, 1) % jot_extent(k, 1))
        return onnx_fail(c, JOT_ESHAPE, "heads of keys that divide those of queries asked");
    double scale = onnx_f(c, "scale", 0);
    scale = scale != 0 ? scale : 1 / sqrt((double)jot_extent(q, 3));
    bool plain = c->n_out < 4 && !onnx_given(c, 3) && !onnx_given(c, 6)
        && onnx_f(c, "softcap", 0) == 0 && onnx_i(c, "left_window_size", -1) < 0
        && onnx_i(c, "right_window_size", -1) < 0 && !onnx_i(c, "softmax_precision", 0)
        && (!causal || jot_extent(k, 2) - jot_extent(q, 2) == past);
    if (plain) {
        jot_Attention how = {.causal = causal, .scale = scale};
        y = jot_attention(q, k, v, &how);
    } else {
        y = attend(c, q, k, v, scale, past);
    }
    return onnx_put(c, 0, onnx_like(flat ? unheads(y) : y, c->x[0]));
}

/* x (b, heads, t, d) or (b, t, heads d); sines and cosines (b, t, half), or rows of a table. */
bool
onnx_op_rotary(OnnxCall *c)
{
    bool flat = jot_rank(c->x[0]) == 3, neighbours = onnx_i(c, "interleaved", 0);
    jot_Var x = heads(c, c->x[0], onnx_i(c, "num_heads", 0)), table[2], a, b, y;

    if (!jot_ok(x))
        return false;
    int64_t d = jot_extent(x, 3), turned = onnx_i(c, "rotary_embedding_dim", 0);
    turned = turned ? turned : d;
    if (turned < 2 || turned > d || turned % 2)
        return onnx_fail(c, JOT_ESHAPE, "an even number of %lld to turn asked, %lld found",
                         (long long)d, (long long)turned);
    for (int k = 0; k < 2; k++) {
        table[k] = onnx_given(c, 3) ? jot_take(c->x[1 + k], c->x[3], 0) : c->x[1 + k];
        table[k] = jot_unsqueeze(table[k], 1);
    }
    jot_Var part = jot_narrow(x, 3, 0, turned);
    if (neighbours) {
        a = jot_slice_dim(part, 3, 0, JOT_END, 2);
        b = jot_slice_dim(part, 3, 1, JOT_END, 2);
    } else {
        a = jot_narrow(part, 3, 0, turned / 2);
        b = jot_narrow(part, 3, turned / 2, turned / 2);
    }
    jot_Var re = jot_sub(jot_mul(table[0], a), jot_mul(table[1], b));
    jot_Var im = jot_add(jot_mul(table[1], a), jot_mul(table[0], b));
    y = neighbours ? jot_reshape(jot_stack(JOT_VARS(re, im), -1), jot_shape(part))
                   : jot_concat(JOT_VARS(re, im), 3);
    if (turned < d)
        y = jot_concat(JOT_VARS(y, jot_narrow(x, 3, turned, d - turned)), 3);
    return onnx_put(c, 0, onnx_like(flat ? unheads(y) : y, c->x[0]));
}

/* A state (b, h, k, v) that decays, and each step is written to and read from:
 *     s = exp(decay) s;  v = beta (v - s' k) (delta);  s = s + k v';  y = scale s' q */
bool
onnx_op_linear_attention(OnnxCall *c)
{
    const char *rule = onnx_text(c, "update_rule", "gated_delta");
    int64_t hq = onnx_i(c, "q_num_heads", 0), hk = onnx_i(c, "kv_num_heads", 0), t;
    bool delta = strstr(rule, "delta"), gated = strstr(rule, "gated");
    jot_Var q = heads(c, c->x[0], hq), k = heads(c, c->x[1], hk), v = heads(c, c->x[2], hk);
    jot_Var decay = jot_none(), beta = jot_none(), s, *y;

    if (!jot_ok(q) || !jot_ok(k) || !jot_ok(v) || hq % hk
        || (gated && !onnx_given(c, 4)) || (delta && !onnx_given(c, 5)))
        return onnx_fail(c, JOT_ESHAPE, "queries, keys, values and what the rule needs asked");
    jot_DType dtype = jot_dtype(q), kept = onnx_given(c, 3) ? jot_dtype(c->x[3]) : dtype;
    q = jot_cast(q, JOT_F32), k = jot_cast(k, JOT_F32), v = jot_cast(v, JOT_F32);
    t = jot_extent(q, 2);
    if (gated)
        decay = jot_exp(jot_cast(heads(c, c->x[4], hk), JOT_F32));
    if (delta)
        beta = jot_cast(heads(c, c->x[5], jot_extent(c->x[5], 2)), JOT_F32);
    double scale = onnx_f(c, "scale", 0);
    scale = scale != 0 ? scale : 1 / sqrt((double)jot_extent(q, 3));
    jot_Ints shape = JOT_SHAPE(jot_extent(q, 0), hk, jot_extent(k, 3), jot_extent(v, 3));
    s = onnx_given(c, 3) ? jot_cast(c->x[3], JOT_F32) : jot_zeros(c->ctx, JOT_F32, shape);
    if (t < 1 || t > ONNX_STEPS || !(y = onnx_take(&c->b->arena, (size_t)t, sizeof *y)))
        return onnx_fail(c, JOT_ESHAPE, "1..%d steps asked, %lld found", ONNX_STEPS, (long long)t);
    for (int64_t i = 0; i < t; i++) {
        jot_Var ki = jot_unsqueeze(jot_select(k, 2, i), -1), vi = jot_narrow(v, 2, i, 1);
        jot_Var qi = jot_narrow(q, 2, i, 1), read;
        if (gated)
            s = jot_mul(s, jot_unsqueeze(jot_select(decay, 2, i), -1));
        if (delta)
            vi = jot_mul(jot_narrow(beta, 2, i, 1),
                         jot_sub(vi, jot_matmul(jot_swap(ki, 2, 3), s)));
        s = jot_add(s, jot_mul(ki, vi));
        read = hq > hk ? jot_repeat_interleave(s, 1, hq / hk) : s;
        y[i] = jot_scale(jot_matmul(qi, read), scale);
    }
    c->out[1] = jot_cast(s, kept);
    return onnx_put(c, 0, jot_cast(unheads(jot_concat(jot_vars((int)t, y), 2)), dtype));
}
