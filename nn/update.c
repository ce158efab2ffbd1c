/* nn/update.c - a part of a variable becomes another one: a cache that grows.
 *
 *     x with value from (s, t) on
 *         inside = 1 where s <= i0 < s + n and t <= i1 < t + m       reindex of a 1, conditions
 *         there  = value[i0 - s, i1 - t], 0 outside                  reindex
 *         out    = inside ? there : x
 *
 * Where it begins is data: another start is no other graph. An assignment to x itself is made in
 * its memory (plan/donate.c).
 *
 * Read before: nn/index.c. After: nn/product.c. */
#include "nn.h"
#include "nn/parts.h"

/* Two conditions for each dimension that value does not fill, an index for each. */
typedef struct {
    const char *at[JOT_MAX_RANK], *cond[2 * JOT_MAX_RANK];
    char text[3 * JOT_MAX_RANK][48];
    int conds;
} UpdateMap;

static bool
update_check(jot_Ctx *ctx, jot_Var x, jot_Var value, const char *op)
{
    if (!jot_check(ctx, x, op, "x") || !jot_check(ctx, value, op, "value"))
        return false;
    bool fits = jot_rank(x) == jot_rank(value);
    if (!fits)
        jot_raise(ctx, JOT_ESHAPE, "%s: value: rank %d asked (x's), %d found", op, jot_rank(x),
                  jot_rank(value));
    for (int d = 0; fits && d < jot_rank(x); d++)
        if (jot_extent(value, d) > jot_extent(x, d)) {
            jot_raise(ctx, JOT_ESHAPE, "%s: value: extent of at most %lld asked (x's dimension "
                      "%d), %lld found", op, (long long)jot_extent(x, d), d,
                      (long long)jot_extent(value, d));
            return false;
        }
    return fits;
}

static void
update_map(UpdateMap *m, jot_Var value)
{
    m->conds = 0;
    for (int d = 0; d < jot_rank(value); d++) {
        char *from = m->text[3 * d], *to = m->text[3 * d + 1], *at = m->text[3 * d + 2];
        nn_put(nn_put_int(nn_put(nn_put(at, nn_axis[d]), " - @e0("), d), ")");
        nn_put(nn_put(from, at), " >= 0");
        nn_put_int(nn_put(nn_put(to, at), " < "), jot_extent(value, d));
        m->at[d] = at;
        m->cond[m->conds++] = from;
        m->cond[m->conds++] = to;
    }
}

jot_Var
jot_update_slice_at(jot_Var x, jot_Var start, jot_Var value)
{
    static const char op[] = "update_slice_at";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, start, value));
    UpdateMap m;
    if (!update_check(ctx, x, value, op) || !jot_check(ctx, start, op, "start") ||
        !nn_integer(start, op, "start") || !nn_rank_is(ctx, start, 1, op, "start", "(rank)"))
        return nn_poison(ctx);
    int rank = jot_rank(x);
    if (jot_extent(start, 0) != rank)
        return jot_raise(ctx, JOT_ESHAPE, "%s: start: (%d) asked (x's rank), (%lld) found", op,
                         rank, (long long)jot_extent(start, 0));
    update_map(&m, value);
    jot_push(ctx);
    jot_Var yes = jot_full_int(ctx, JOT_BOOL, JOT_SHAPE(), 1);
    jot_Var inside = jot_reindex_ex(yes, jot_shape(x), JOT_NONE_STRS, jot_strs(m.conds, m.cond), 0,
                                    JOT_VARS(start));
    jot_Var there = jot_reindex_ex(jot_cast(value, jot_dtype(x)), jot_shape(x),
                                   jot_strs(rank, m.at), JOT_NONE_STRS, 0, JOT_VARS(start));
    return jot_leave(ctx, jot_where(inside, there, x));
}

jot_Var
jot_update_slice(jot_Var x, jot_Ints start, jot_Var value)
{
    static const char op[] = "update_slice";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, value));
    int64_t from[JOT_MAX_RANK + 1];
    if (!update_check(ctx, x, value, op))
        return nn_poison(ctx);
    if (start.n != jot_rank(x))
        return jot_raise(ctx, JOT_ERANGE, "%s: start: %d numbers asked (x's rank), %d found", op,
                         jot_rank(x), start.n);
    if (start.n && !start.v)
        return jot_raise(ctx, JOT_EUSE, "%s: start: the list is NULL", op);
    for (int d = 0; d < start.n; d++) {
        int64_t room = jot_extent(x, d) - jot_extent(value, d);
        from[d] = start.v[d] + (start.v[d] < 0 ? jot_extent(x, d) : 0);
        if (from[d] < 0 || from[d] > room)
            return jot_raise(ctx, JOT_ERANGE, "%s: start: 0..%lld asked (dimension %d), %lld found",
                             op, (long long)room, d, (long long)start.v[d]);
    }
    jot_push(ctx);
    jot_Var at = jot_array(ctx, JOT_I64, JOT_SHAPE(start.n), from);
    return jot_leave(ctx, jot_update_slice_at(x, at, value));
}

bool
jot_assign_slice(jot_Var target, jot_Ints start, jot_Var value)
{
    jot_push(target.ctx);
    jot_Var next = jot_update_slice(target, start, value);
    bool ok = jot_ok(next) && jot_assign(target, next);
    jot_pop(target.ctx);
    return ok;
}
