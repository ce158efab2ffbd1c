/* model.c - the network: norms, attention over a cache, gated layers; the same graph for training,
 * prompts and generation.
 *
 *     h = table[token]
 *     each layer   h = h + wo attention(turned wq n, keys, values)      n = rms_norm(h)
 *                  h = h + w2 (silu(w1 n) * w3 n)
 *     logits = out rms_norm(h)
 *
 * Keys lie in their cache as columns, (.., head_dim, length), so that the scores of neighbouring
 * tokens lie side by side; values as rows. */
#include "llama.h"

/* ---- weights ---- */

enum { BLOCK = 32, FEW = 8 }; /* weights of one scale; rows from which on a product packs them */

/* (out, blocks, 16): of each byte the low half, or the high one, 0 to 15 */
static void
weight_halves(LlamaWeight w, jot_Var *low, jot_Var *high)
{
    int64_t blocks = jot_extent(w.scale, 1);
    jot_Var bytes = jot_reshape(w.data, JOT_SHAPE(-1, blocks, BLOCK / 2));
    jot_Var x = jot_cast(bytes, JOT_F32);

    *high = jot_floor(jot_scale(x, 1.0 / 16));
    *low = jot_sub(x, jot_scale(*high, 16));
}

/* (out, in) of f32 */
static jot_Var
weight_matrix(LlamaWeight w)
{
    jot_Var x, low, high, scale;

    if (w.form == LLAMA_PLAIN)
        return jot_cast(w.data, JOT_F32);
    scale = jot_unsqueeze(jot_cast(w.scale, JOT_F32), 2);
    if (w.form == LLAMA_Q8_0) {
        x = jot_reshape(w.data, JOT_SHAPE(-1, jot_extent(w.scale, 1), BLOCK));
        x = jot_mul(jot_cast(x, JOT_F32), scale);
    } else {
        weight_halves(w, &low, &high);
        x = jot_mul(jot_offset(jot_concat(JOT_VARS(low, high), 2), -8), scale);
    }
    return jot_reshape(x, JOT_SHAPE(jot_extent(w.scale, 0), -1));
}

/* Sum over blocks and what is in them: x (rows, blocks, n), w (out, blocks, n) -> (rows, out) */
static jot_Var
weight_blocks(jot_Var x, jot_Var w)
{
    return jot_sum(jot_mul(jot_unsqueeze(x, 1), w), JOT_DIMS(2, 3));
}

/* Of 4 bits, x (rows, in). The 8 that every weight is less is left to a sum of its own. */
static jot_Var
weight_times_q4(jot_Var x, LlamaWeight w)
{
    int64_t rows = jot_extent(x, 0), blocks = jot_extent(w.scale, 1);
    jot_Var scale = jot_cast(w.scale, JOT_F32), each = jot_unsqueeze(scale, 2), low, high, parts;
    jot_Var half[2], whole = jot_reshape(x, JOT_SHAPE(rows, blocks, BLOCK));

    weight_halves(w, &low, &high);
    for (int k = 0; k < 2; k++)
        half[k] = jot_narrow(whole, 2, k * BLOCK / 2, BLOCK / 2);
    if (rows >= FEW) {
        parts = weight_blocks(half[0], jot_mul(jot_offset(low, -8), each));
        return jot_add(jot_stop_fuse(parts),
                       weight_blocks(half[1], jot_mul(jot_offset(high, -8), each)));
    }
    parts = jot_add(jot_mul(jot_unsqueeze(half[0], 1), low), jot_mul(jot_unsqueeze(half[1], 1),
                                                                     high));
    whole = jot_stop_fuse(jot_sum(whole, JOT_DIMS(2)));
    return jot_sub(jot_sum(jot_mul(parts, each), JOT_DIMS(2, 3)),
                   jot_scale(jot_stop_fuse(jot_matmul(whole, jot_swap(scale, 0, 1))), 8));
}

/* x (rows, blocks, 32) as bytes, each block's largest 127 (of a block within 1e-36, for which 127
 * times as many would be no number, all are 0); what they are times, and that times their sum and
 * `less`: (rows, blocks). A kernel of their own makes them, once for all that x meets. */
typedef struct { jot_Var bytes, scale, sum; } Rounded;

static Rounded
weight_round(jot_Var x, double less)
{
    jot_Var most = jot_max(jot_abs(x), JOT_DIMS(2));
    jot_Var zero = jot_full(x.ctx, JOT_F32, JOT_SHAPE(), 0);
    jot_Var least = jot_full(x.ctx, JOT_F32, JOT_SHAPE(), 1e-36);
    jot_Var by = jot_unsqueeze(jot_where(jot_gt(most, least), jot_div(jot_full(
                                   x.ctx, JOT_F32, JOT_SHAPE(), 127), most), zero), 2);
    jot_Var whole = jot_round(jot_mul(x, by));

    return (Rounded){
        .bytes = jot_stop_fuse(jot_cast(whole, JOT_I8)),
        .scale = jot_stop_fuse(jot_scale(most, 1.0 / 127)),
        .sum = jot_stop_fuse(jot_mul(jot_scale(most, less / 127), jot_sum(whole, JOT_DIMS(2))))};
}

/* Sums of products of bytes, x (rows, 1, blocks, n) of i32 and w (out, blocks, n) of u8 */
static jot_Var
weight_dots(jot_Var x, jot_Var w)
{
    return jot_mul(x, jot_cast(w, JOT_I32));
}

static jot_Var
weight_number(jot_Var w, int64_t number)
{
    return jot_full_int(w.ctx, JOT_U8, JOT_SHAPE(), number);
}

/* Of x (rows, in) that is rounded, weights unsigned: of 8 bits all are 128 more, of 4 bits 8.
 *     sum over b of scale[o, b] * (x's scale[r, b] * (integers) - 128 * (x's sum)[r, b]) */
static jot_Var
weight_times_rounded(jot_Var x, LlamaWeight w)
{
    int64_t rows = jot_extent(x, 0), blocks = jot_extent(w.scale, 1);
    bool q8 = w.form == LLAMA_Q8_0;
    Rounded r = weight_round(jot_reshape(x, JOT_SHAPE(rows, blocks, BLOCK)), q8 ? 128 : 8);
    jot_Var bytes = jot_cast(jot_unsqueeze(r.bytes, 1), JOT_I32), y;
    jot_Var each = jot_reshape(w.data, JOT_SHAPE(-1, blocks, q8 ? BLOCK : BLOCK / 2));

    if (q8)
        y = weight_dots(bytes, jot_bit_xor(jot_cast(each, JOT_U8), weight_number(w.data, 128)));
    else
        y = jot_add(weight_dots(jot_narrow(bytes, 3, 0, BLOCK / 2),
                                jot_bit_and(each, weight_number(w.data, 15))),
                    weight_dots(jot_narrow(bytes, 3, BLOCK / 2, BLOCK / 2),
                                jot_shift_right(each, weight_number(w.data, 4))));
    y = jot_cast(jot_sum(y, JOT_DIMS(3)), JOT_F32);
    y = jot_sub(jot_mul(y, jot_unsqueeze(r.scale, 1)), jot_unsqueeze(r.sum, 1));
    return jot_sum(jot_mul(y, jot_cast(w.scale, JOT_F32)), JOT_DIMS(2));
}

jot_Var
llama_times(jot_Var x, LlamaWeight w, bool rounded)
{
    int64_t b = jot_extent(x, 0), t = jot_extent(x, 1), in = jot_extent(x, 2), blocks;
    jot_Var y, each;

    if (w.form == LLAMA_PLAIN) {
        if (rounded && jot_dtype(w.data) == JOT_BF16) { /* few rows are read by floats again */
            x = jot_cast(x, JOT_BF16);
            x = jot_cast(b * t < FEW ? x : jot_stop_fuse(x), JOT_F32);
            x = b * t < FEW ? jot_stop_fuse(x) : x;
        }
        return jot_matmul(x, jot_swap(jot_cast(w.data, JOT_F32), 0, 1));
    }
    blocks = jot_extent(w.scale, 1);
    x = jot_reshape(x, JOT_SHAPE(b * t, in));
    if (rounded)
        y = weight_times_rounded(x, w);
    else if (w.form == LLAMA_Q8_0) {
        each = jot_unsqueeze(jot_cast(w.scale, JOT_F32), 2);
        y = jot_cast(jot_reshape(w.data, JOT_SHAPE(-1, blocks, BLOCK)), JOT_F32);
        y = weight_blocks(jot_reshape(x, JOT_SHAPE(b * t, blocks, BLOCK)), jot_mul(y, each));
    } else
        y = weight_times_q4(x, w);
    return jot_reshape(y, JOT_SHAPE(b, t, -1));
}

/* ---- caches ---- */

/* A cache with value's tokens from each conversation's place on, assigned to it; dim: of tokens. It
 * is changed in place before it is read: what would be fused with its readers writes all of it. */
static jot_Var
cache_update(jot_Var cache, jot_Var value, jot_Var place, int dim)
{
    const char *rows[] = {"i0", "i1", "i2 - @e0(i0)", "i3"};
    const char *columns[] = {"i0", "i1", "i2", "i3 - @e0(i0)"};
    jot_Strs index = jot_strs(4, dim == 2 ? rows : columns);
    jot_Var yes = jot_full_int(cache.ctx, JOT_BOOL, jot_shape(value), 1);
    jot_Var inside = jot_reindex_ex(yes, jot_shape(cache), index, JOT_NONE_STRS, 0,
                                    JOT_VARS(place));
    jot_Var there = jot_reindex_ex(jot_cast(value, jot_dtype(cache)), jot_shape(cache), index,
                                   JOT_NONE_STRS, 0, JOT_VARS(place));
    value = jot_stop_fuse(jot_where(inside, there, cache));
    jot_assign(cache, value);
    return value;
}

/* Which column c of the cache row i of a conversation sees: the token that lies there, q, is no
 * later than the row's own, p, and not too early. The last token written is e = start + t - 1.
 *     q = e - (e - c) mod room         0 <= q, p - (room - t) <= q <= p
 * All of it less e - e mod room, what the cache had been filled with, so that no column divides:
 *     q = c, and behind e mod room c - room */
static jot_Var
cache_mask(const Llama *m, jot_Var start, int64_t t)
{
    jot_Ctx *c = m->c;
    jot_Var room = jot_full_int(c, JOT_I64, JOT_SHAPE(), m->room);
    jot_Var e = jot_offset(jot_reshape(start, JOT_SHAPE(m->rows, 1, 1, 1)), (double)(t - 1));
    jot_Var last = jot_mod(e, room), first = jot_minimum(jot_sub(e, last), room);
    jot_Var q = jot_iota(c, JOT_I32, JOT_SHAPE(m->room), 0), p;

    last = jot_cast(last, JOT_I32);
    first = jot_neg(jot_cast(first, JOT_I32));
    p = jot_add(last, jot_offset(jot_iota(c, JOT_I32, JOT_SHAPE(t, 1), 0), (double)(1 - t)));
    first = jot_stop_fuse(jot_maximum(first, jot_offset(p, (double)(t - m->room))));
    p = jot_stop_fuse(p);
    q = jot_where(jot_gt(q, last), jot_offset(q, (double)-m->room), q);
    return jot_logical_and(jot_ge(q, first), jot_le(q, p));
}

/* ---- the layers ---- */

/* (rows, t, heads * d) -> (rows, heads, t, d), turned by position */
static jot_Var
heads_of(const Llama *m, jot_Var x, int64_t heads, jot_Var positions)
{
    int64_t b = jot_extent(x, 0), t = jot_extent(x, 1);

    x = jot_reshape(x, JOT_SHAPE(b, t, heads, m->of.head_dim));
    x = jot_transpose(x, JOT_INTS(0, 2, 1, 3));
    return jot_ok(positions) ? jot_rotary(x, positions, m->of.base, m->of.neighbours) : x;
}

static jot_Var
attend(Llama *m, LlamaLayer *l, jot_Var x, const LlamaAt *at, jot_Var positions)
{
    int64_t b = jot_extent(x, 0), t = jot_extent(x, 1);
    jot_Attention how = {.causal = !jot_ok(at->start)};
    jot_Var q = heads_of(m, llama_times(x, l->wq, m->rounded), m->of.heads, positions);
    jot_Var k = heads_of(m, llama_times(x, l->wk, m->rounded), m->of.kv_heads, positions);
    jot_Var v = heads_of(m, llama_times(x, l->wv, m->rounded), m->of.kv_heads, jot_none());

    if (jot_ok(at->start)) {
        how.mask = cache_mask(m, at->start, t);
        how.lengths = jot_minimum(jot_offset(at->start, (double)t),
                                  jot_full_int(m->c, JOT_I64, JOT_SHAPE(), m->room));
        k = jot_swap(cache_update(l->keys, jot_swap(k, 2, 3), at->place, 3), 2, 3);
        v = cache_update(l->values, v, at->place, 2);
    }
    x = jot_transpose(jot_attention(q, k, v, &how), JOT_INTS(0, 2, 1, 3));
    x = jot_reshape(x, JOT_SHAPE(b, t, m->of.heads * m->of.head_dim));
    return llama_times(x, l->wo, m->rounded);
}

/* x + y, a variable of its own where y is of words: no norm's sums have a place in such kernels. */
static jot_Var
then(const Llama *m, jot_Var x, jot_Var y)
{
    x = jot_add(x, y);
    return m->rounded ? jot_stop_fuse(x) : x;
}

/* Rows of the table. */
static jot_Var
table_rows(LlamaWeight w, jot_Var tokens)
{
    jot_Var flat = jot_reshape(tokens, JOT_SHAPE(-1)), x;
    LlamaWeight some = w;

    some.data = jot_take(w.data, flat, 0);
    if (w.form != LLAMA_PLAIN)
        some.scale = jot_take(w.scale, flat, 0);
    x = weight_matrix(some);
    return jot_reshape(x, JOT_SHAPE(jot_extent(tokens, 0), jot_extent(tokens, 1), -1));
}

jot_Var
llama_graph(Llama *m, const LlamaAt *at, bool last)
{
    int64_t t = jot_extent(at->tokens, 1);
    jot_Var x, n, positions;

    jot_push(m->c);
    positions = jot_iota(m->c, JOT_I64, JOT_SHAPE(1, t), 1);
    if (jot_ok(at->start))
        positions = jot_add(jot_reshape(at->start, JOT_SHAPE(-1, 1, 1)), positions);
    x = table_rows(m->table, at->tokens);
    for (int64_t i = 0; i < m->of.layers; i++) {
        LlamaLayer *l = &m->layer[i];
        n = jot_rms_norm(x, l->norm, m->of.eps);
        x = then(m, x, attend(m, l, n, at, positions));
        n = jot_rms_norm(x, l->ff_norm, m->of.eps);
        n = jot_mul(jot_silu(llama_times(n, l->w1, m->rounded)), llama_times(n, l->w3, m->rounded));
        x = then(m, x, llama_times(n, l->w2, m->rounded));
    }
    if (last)
        x = jot_slice_dim(x, 1, -1, JOT_END, 1);
    x = llama_times(jot_rms_norm(x, m->norm, m->of.eps), m->out, m->rounded);
    return jot_leave(m->c, last ? jot_squeeze(x, 1) : x);
}

jot_Var
llama_loss(Llama *m, jot_Var tokens, int64_t t)
{
    LlamaAt at = {.tokens = jot_slice_dim(tokens, 1, 0, t, 1)};
    jot_Var y = llama_graph(m, &at, false);
    jot_Var next = jot_reshape(jot_slice_dim(tokens, 1, 1, t + 1, 1), JOT_SHAPE(-1));

    return jot_cross_entropy(jot_reshape(y, JOT_SHAPE(-1, m->of.vocab)), next);
}

/* ---- what it is made of ---- */

jot_DType
llama_room_dtype(const Llama *m)
{
    jot_DType dtype = jot_dtype(m->out.data);

    return !m->rounded || (m->out.form == LLAMA_PLAIN && dtype != JOT_BF16) ? JOT_F32
           : m->out.form == LLAMA_PLAIN ? JOT_BF16 : JOT_F16;
}

bool
llama_room(Llama *m, int64_t rows, int64_t room, jot_DType dtype)
{
    int64_t g = m->of.kv_heads, d = m->of.head_dim;

    m->rows = rows, m->room = room;
    for (int64_t i = 0; i < m->of.layers; i++) {
        m->layer[i].keys = jot_param(m->c, dtype, JOT_SHAPE(rows, g, d, room), NULL);
        m->layer[i].values = jot_param(m->c, dtype, JOT_SHAPE(rows, g, room, d), NULL);
    }
    return !jot_error(m->c);
}

static LlamaWeight
drawn(jot_Ctx *c, int64_t out, int64_t in, jot_DType dtype, LlamaForm form)
{
    LlamaWeight w = {.form = form};
    jot_Ints shape = JOT_SHAPE(out, in);
    bool q8 = form == LLAMA_Q8_0;
    jot_Var x;

    jot_push(c);
    if (form == LLAMA_PLAIN)
        w.data = jot_param_of(jot_cast(jot_scale(jot_normal(c, JOT_F32, shape), 0.02), dtype));
    else {
        x = jot_randint(c, q8 ? JOT_I8 : JOT_U8, q8 ? shape : JOT_SHAPE(out, in / 2),
                        q8 ? -127 : 0, q8 ? 128 : 256);
        w.data = jot_param_of(x);
        w.scale = jot_param_of(jot_full(c, JOT_F16, JOT_SHAPE(out, in / BLOCK), q8 ? 3e-4 : 4e-3));
    }
    jot_run(c, JOT_NONE_VARS);
    jot_pop(c);
    return w;
}

static jot_Var
ones(jot_Ctx *c, int64_t n)
{
    jot_Var x = jot_param_of(jot_ones(c, JOT_F32, JOT_SHAPE(n)));

    jot_run(c, JOT_NONE_VARS);
    return x;
}

bool
llama_drawn(Llama *m, jot_Ctx *c, const LlamaSizes *of, jot_DType dtype, LlamaForm form)
{
    int64_t d = of->dim, q = of->heads * of->head_dim, kv = of->kv_heads * of->head_dim;

    *m = (Llama){.c = c, .of = *of};
    m->table = m->out = drawn(c, of->vocab, d, dtype, form);
    m->norm = ones(c, d);
    for (int64_t i = 0; i < of->layers; i++)
        m->layer[i] = (LlamaLayer){
            .wq = drawn(c, q, d, dtype, form), .wk = drawn(c, kv, d, dtype, form),
            .wv = drawn(c, kv, d, dtype, form), .wo = drawn(c, d, q, dtype, form),
            .w1 = drawn(c, of->hidden, d, dtype, form), .w2 = drawn(c, d, of->hidden, dtype, form),
            .w3 = drawn(c, of->hidden, d, dtype, form), .norm = ones(c, d), .ff_norm = ones(c, d)};
    return !jot_error(c);
}

int
llama_parameters(const Llama *m, jot_Var *list, int most)
{
    int n = 0;

    if (most < 2 + LLAMA_WEIGHTS * (int)m->of.layers)
        return 0;
    list[n++] = m->table.data;
    list[n++] = m->norm;
    for (int64_t i = 0; i < m->of.layers; i++) {
        const LlamaLayer *l = &m->layer[i];
        jot_Var own[LLAMA_WEIGHTS] = {l->wq.data, l->wk.data, l->wv.data, l->wo.data, l->w1.data,
                                      l->w2.data, l->w3.data, l->norm, l->ff_norm};
        for (int k = 0; k < LLAMA_WEIGHTS; k++)
            list[n++] = own[k];
    }
    return n;
}
