/* nn/attention.c - what sequences are mixed by: attention, positions, embeddings.
 *
 *     q (b, h, t, d)  k, v (b, g, s, d)      head i of h reads head i / (h / g) of g
 *         scores = q k' scale --mask, causal--> softmax --dropout--> v
 *
 * Scores of what may not be seen are -inf, so their weights are 0 exactly. No score is stored where
 * fusion finds room to have a block of rows at a time (ccode/contract/chain.c).
 *
 * Read before: nn/parts.h, nn/nn.c. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

static bool
attention_check(jot_Ctx *ctx, jot_Var q, jot_Var k, jot_Var v)
{
    static const char op[] = "attention";
    if (!nn_rank_is(ctx, q, 4, op, "q", "(b, h, t, d)")
        || !nn_rank_is(ctx, k, 4, op, "k", "(b, g, s, d)")
        || !nn_rank_is(ctx, v, 4, op, "v", "(b, g, s, e)"))
        return false;
    int64_t h = jot_extent(q, 1), g = jot_extent(k, 1);
    if (jot_extent(k, 0) != jot_extent(q, 0) || jot_extent(k, 3) != jot_extent(q, 3))
        jot_raise(ctx, JOT_ESHAPE, "attention: k: (%lld, g, s, %lld) asked (b and d of q), (%lld, "
                  "%lld, %lld, %lld) found", (long long)jot_extent(q, 0),
                  (long long)jot_extent(q, 3), (long long)jot_extent(k, 0), (long long)g,
                  (long long)jot_extent(k, 2), (long long)jot_extent(k, 3));
    else if (g < 1 ? h != g : h % g != 0)
        jot_raise(ctx, JOT_ESHAPE, "attention: k: a number of heads asked that divides q's %lld, "
                  "%lld found", (long long)h, (long long)g);
    else if (jot_extent(v, 0) != jot_extent(k, 0) || jot_extent(v, 1) != g
             || jot_extent(v, 2) != jot_extent(k, 2))
        jot_raise(ctx, JOT_ESHAPE, "attention: v: (%lld, %lld, %lld, e) asked (as k), (%lld, %lld, "
                  "%lld, %lld) found", (long long)jot_extent(k, 0), (long long)g,
                  (long long)jot_extent(k, 2), (long long)jot_extent(v, 0),
                  (long long)jot_extent(v, 1), (long long)jot_extent(v, 2),
                  (long long)jot_extent(v, 3));
    else
        return true;
    return false;
}

/* What is added or asked broadcasts to (b, h, t, s); with groups heads are two dimensions. */
static jot_Var
attention_grouped(jot_Var mask, int64_t g, int64_t each)
{
    int64_t shape[5];
    int rank = jot_rank(mask), n = 0;
    bool all = rank > 2 && jot_extent(mask, -3) != 1;
    for (int k = 0; k < rank; k++) {
        if (k == rank - 3)
            shape[n++] = all ? g : 1;
        shape[n++] = k == rank - 3 && all ? each : jot_extent(mask, k);
    }
    return jot_reshape(mask, jot_ints(n, shape));
}

static jot_Var
attention_masked(jot_Var scores, jot_Var mask)
{
    if (jot_dtype(mask) != JOT_BOOL)
        return jot_add(scores, jot_cast(mask, jot_dtype(scores)));
    jot_Var never = nn_number(scores, -nn_infinity());
    return jot_where(mask, scores, never);
}

/* scores (..., t, s) where row i may see columns 0 .. i + s - t */
static jot_Var
attention_causal(jot_Var scores, int64_t t, int64_t s)
{
    jot_Var row = jot_iota(scores.ctx, JOT_I64, JOT_SHAPE(t, s), 0);
    jot_Var column = jot_iota(scores.ctx, JOT_I64, JOT_SHAPE(t, s), 1);
    return attention_masked(scores, jot_le(column, jot_offset(row, (double)(s - t))));
}

/* Of scores (b, ..., t, s), the columns that count: those before lengths (b), and of causal rows
 * those before lengths - t + 1 + row. */
static jot_Var
attention_filled(jot_Var scores, jot_Var lengths, bool causal)
{
    static const char *const conds[2][2] = {{"i3 < @e0(i0)", "i3 <= i2 + @e0(i0) - ys2"},
                                            {"i4 < @e0(i0)", "i4 <= i3 + @e0(i0) - ys3"}};
    jot_Var yes = jot_full_int(scores.ctx, JOT_BOOL, JOT_SHAPE(), 1);
    jot_Strs asked = jot_strs(causal ? 2 : 1, conds[jot_rank(scores) == 5]);
    return jot_reindex_ex(yes, jot_shape(scores), JOT_NONE_STRS, asked, 0, JOT_VARS(lengths));
}

/* softmax(scores) v over the columns that count: what others weigh is 0 and their rows of v are not
 * read (ccode/lower/filled.c). */
static jot_Var
attention_of_filled(jot_Var scores, jot_Var v, jot_Var filled)
{
    jot_Var most = jot_max(attention_masked(scores, filled), JOT_KEEP(-1));
    jot_Var e = jot_where(filled, jot_exp(jot_sub(scores, most)), nn_number(scores, 0));
    return jot_div(jot_matmul(e, v), jot_sum(e, JOT_KEEP(-1)));
}

static bool
attention_options(jot_Ctx *ctx, const jot_Attention *how, jot_Var scores, int64_t b)
{
    static const char op[] = "attention";
    if (nn_given(how->mask) && !nn_fits(ctx, how->mask, scores, op, "mask"))
        return false;
    if (!nn_given(how->lengths))
        return true;
    if (!nn_rank_is(ctx, how->lengths, 1, op, "lengths", "(b)")
        || !nn_integer(how->lengths, op, "lengths"))
        return false;
    if (jot_extent(how->lengths, 0) != b)
        jot_raise(ctx, JOT_ESHAPE, "attention: lengths: (%lld) asked (b of q), (%lld) found",
                  (long long)b, (long long)jot_extent(how->lengths, 0));
    else if (how->dropout != 0)
        jot_raise(ctx, JOT_EUSE, "attention: dropout: none asked where lengths are given");
    else
        return true;
    return false;
}

static jot_Var
attention_mixed(jot_Var scores, jot_Var v, const jot_Attention *how)
{
    int64_t t = jot_extent(scores, -2), s = jot_extent(scores, -1);
    if (nn_given(how->lengths))
        return attention_of_filled(scores, v, attention_filled(scores, how->lengths, how->causal));
    if (how->causal)
        scores = attention_causal(scores, t, s);
    jot_Var w = jot_softmax(scores, -1);
    if (how->dropout != 0)
        w = jot_dropout(w, how->dropout);
    return jot_matmul(w, v);
}

jot_Var
jot_attention(jot_Var q, jot_Var k, jot_Var v, const jot_Attention *how)
{
    static const jot_Attention plain;
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(q, k, v));
    if (!attention_check(ctx, q, k, v))
        return nn_poison(ctx);
    how = how ? how : &plain;
    int64_t b = jot_extent(q, 0), h = jot_extent(q, 1), t = jot_extent(q, 2), d = jot_extent(q, 3);
    int64_t g = jot_extent(k, 1), s = jot_extent(k, 2), e = jot_extent(v, 3);
    bool masked = nn_given(how->mask);
    if ((masked && !jot_check(ctx, how->mask, "attention", "mask"))
        || (nn_given(how->lengths) && !jot_check(ctx, how->lengths, "attention", "lengths")))
        return nn_poison(ctx);
    jot_push(ctx);
    jot_DType dtype = jot_promote(jot_dtype(q), jot_promote(jot_dtype(k), jot_dtype(v)));
    dtype = nn_float_of(dtype);
    q = jot_cast(q, dtype), k = jot_cast(k, dtype), v = jot_cast(v, dtype);
    double scale = how->scale != 0 ? how->scale : 1 / nn_root((double)(d > 0 ? d : 1));
    jot_Var any = jot_full(ctx, dtype, JOT_SHAPE(b, h, t, s), 0);
    if (!attention_options(ctx, how, any, b)) {
        jot_pop(ctx);
        return nn_poison(ctx);
    }
    bool grouped = g != h;
    if (grouped) {
        q = jot_reshape(q, JOT_SHAPE(b, g, h / g, t, d));
        k = jot_unsqueeze(k, 2);
        v = jot_unsqueeze(v, 2);
    }
    bool before = dtype == JOT_F16; /* so that they stay in range, at the price of a kernel */
    jot_Var scores = jot_matmul(before ? jot_scale(q, scale) : q, jot_swap(k, -1, -2));
    scores = before ? scores : jot_scale(scores, scale);
    if (masked)
        scores = attention_masked(scores, grouped ? attention_grouped(how->mask, g, h / g)
                                                  : how->mask);
    return jot_leave(ctx, jot_reshape(attention_mixed(scores, v, how), JOT_SHAPE(b, h, t, e)));
}

/* ---- positions ---- */

/* (..., d / 2): position / base^(2 i / d), in f64 for f64, else in f32 */
static jot_Var
positions_angles(jot_Var positions, jot_DType dtype, int64_t d, double base)
{
    jot_Ctx *ctx = positions.ctx;
    jot_DType wide = dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    jot_Var p = jot_unsqueeze(jot_cast(positions, wide), -1);
    jot_Var i = jot_arange(ctx, wide, 0, d > 0 ? 2.0 / (double)d : 0, d / 2);
    jot_Var rate = jot_pow(jot_full(ctx, wide, JOT_SHAPE(), base), jot_neg(i));
    return jot_mul(p, rate);
}

static bool
positions_even(jot_Ctx *ctx, int64_t d, double base, const char *op)
{
    if (d % 2 || d < 0)
        jot_raise(ctx, JOT_ESHAPE, "%s: an even width asked, %lld found", op, (long long)d);
    return d % 2 == 0 && d >= 0 && nn_above(ctx, base, 0, op, "base");
}

jot_Var
jot_sinusoids(jot_Ctx *ctx, jot_DType dtype, int64_t n, int64_t d, double base)
{
    if (!positions_even(ctx, d, base, "sinusoids"))
        return nn_poison(ctx);
    jot_push(ctx);
    jot_Var a = positions_angles(jot_iota(ctx, JOT_I64, JOT_SHAPE(n), 0), dtype, d, base);
    jot_Var y = jot_stack(JOT_VARS(jot_sin(a), jot_cos(a)), 2); /* side by side */
    return jot_leave(ctx, jot_cast(jot_reshape(y, JOT_SHAPE(n, d)), dtype));
}

/* x (..., t, d): each pair (x[i], x[j]) turned by the angle of its position. Pairs are neighbours,
 * or of the two halves. */
jot_Var
jot_rotary(jot_Var x, jot_Var positions, double base, bool neighbours)
{
    static const char op[] = "rotary";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, positions));
    if (!jot_check(ctx, x, op, "x") || !jot_check(ctx, positions, op, "positions")
        || !nn_integer(positions, op, "positions"))
        return nn_poison(ctx);
    int rank = jot_rank(x), own = jot_rank(positions);
    if (own < 1 || rank < own + 1 || jot_extent(x, -2) != jot_extent(positions, -1))
        return jot_raise(ctx, JOT_ESHAPE, "rotary: x: (..., %lld, d) asked (t of positions, which "
                         "has rank %d), rank %d found",
                         (long long)(own < 1 ? -1 : jot_extent(positions, -1)), own, rank);
    for (int k = 2; k <= own; k++)
        if (jot_extent(positions, -k) != 1 && jot_extent(positions, -k) != jot_extent(x, -k - 1))
            return jot_raise(ctx, JOT_ESHAPE, "rotary: positions: extent 1 or %lld asked "
                             "(dimension %d, as x), %lld found", (long long)jot_extent(x, -k - 1),
                             own - k, (long long)jot_extent(positions, -k));
    int64_t d = jot_extent(x, -1);
    if (!positions_even(ctx, d, base, op))
        return nn_poison(ctx);
    nn_begin(&x, op);
    int64_t shape[JOT_MAX_RANK + 1];
    jot_DType dtype = jot_dtype(x);
    jot_Var a = positions_angles(positions, dtype, d, base), pairs, low, high;
    jot_Var c = jot_cast(jot_cos(a), dtype), s = jot_cast(jot_sin(a), dtype);
    int at = neighbours ? rank : rank - 1; /* the pair's dimension */
    if (rank == JOT_MAX_RANK) {
        jot_pop(ctx);
        return jot_raise(ctx, JOT_ESHAPE, "rotary: x: rank of less than %d asked", JOT_MAX_RANK);
    }
    for (int k = 0; k < rank - 1; k++)
        shape[k] = jot_extent(x, k);
    shape[at] = 2;
    shape[neighbours ? rank - 1 : rank] = d / 2;
    pairs = jot_reshape(x, jot_ints(rank + 1, shape));
    low = jot_squeeze(jot_narrow(pairs, at, 0, 1), at);
    high = jot_squeeze(jot_narrow(pairs, at, 1, 1), at);
    jot_Var y = jot_stack(JOT_VARS(jot_sub(jot_mul(low, c), jot_mul(high, s)),
                                   jot_add(jot_mul(high, c), jot_mul(low, s))), at);
    return jot_leave(ctx, jot_reshape(y, jot_shape(x)));
}

/* ---- embeddings ---- */

jot_Var
jot_embedding(jot_Var table, jot_Var index, int64_t padding)
{
    static const char op[] = "embedding";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(table, index));
    if (!nn_rank_is(ctx, table, 2, op, "table", "(n, d)") || !jot_check(ctx, index, op, "index")
        || !nn_integer(index, op, "index"))
        return nn_poison(ctx);
    jot_push(ctx);
    index = jot_check_index(index, JOT_INTS(jot_extent(table, 0)), op);
    jot_Var y = jot_take(table, index, 0);
    if (padding >= 0) {
        jot_Var pad = jot_eq(jot_cast(index, JOT_I64),
                             jot_full_int(ctx, JOT_I64, JOT_SHAPE(), padding));
        y = jot_where(jot_unsqueeze(pad, -1), nn_zero(y), y);
    }
    return jot_leave(ctx, y);
}
