/* nn/index.c - elements at places that are data: gathers, and scatters, which are the same maps the
 * other way round.
 *
 *     gather     out[i, j] = x[i, index[i, j]]       reindex "i0", "@e0(i0,i1)"
 *     scatter    out[i, index[i, j]] op= y[i, j]     reindex-reduce of the same expressions
 *
 * To overwrite is no reduction, for the order of several writes would count: the last one's place
 * is found by a maximum, and what stood there is gathered (index_last).
 *
 * Read before: nn/array.c. After: nn/product.c. */
#include "nn.h"
#include "nn/parts.h"

/* Expressions of a map: those of dimensions that are read from the index are texts. */
typedef struct { const char *at[JOT_MAX_RANK]; char text[JOT_MAX_RANK][96]; } PlaceMap;

/* i0, ..., @e0(i0, ..., i_rank-1) at dim, ... */
static jot_Strs
index_along(PlaceMap *m, int rank, int dim)
{
    nn_axes(m->at, rank);
    m->at[dim] = nn_load(m->text[0], rank, NULL);
    return jot_strs(rank, m->at);
}

/* @e0(i0, ..., i_lead-1, 0), @e0(..., 1), ... k of them, then the axes that follow lead */
static jot_Strs
index_tuple(PlaceMap *m, int lead, int k, int rank)
{
    static const char *const digit[JOT_MAX_RANK] = {
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"
    };
    for (int d = 0; d < rank; d++)
        m->at[d] = d < k ? nn_load(m->text[d], lead, digit[d]) : nn_axis[d - k + lead];
    return jot_strs(rank, m->at);
}

/* index: integers, of x's rank and no further than x in all dimensions but dim */
static bool
index_check(jot_Ctx *ctx, jot_Var x, jot_Var index, int *dim, const char *op)
{
    if (!jot_check(ctx, x, op, "x") || !jot_check(ctx, index, op, "index") ||
        !nn_dim(x, dim, op) || !nn_integer(index, op, "index"))
        return false;
    if (jot_rank(index) != jot_rank(x)) {
        jot_raise(ctx, JOT_ESHAPE, "%s: index: rank %d asked (x's), %d found", op, jot_rank(x),
                  jot_rank(index));
        return false;
    }
    for (int d = 0; d < jot_rank(x); d++)
        if (d != *dim && jot_extent(index, d) > jot_extent(x, d)) {
            jot_raise(ctx, JOT_ESHAPE, "%s: index: extent of at most %lld asked (x's dimension "
                      "%d), %lld found", op, (long long)jot_extent(x, d), d,
                      (long long)jot_extent(index, d));
            return false;
        }
    return true;
}

/* ---- gathers ---- */

jot_Var
jot_take_along(jot_Var x, jot_Var index, int dim)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, index));
    PlaceMap m;
    if (!index_check(ctx, x, index, &dim, "take_along"))
        return nn_poison(ctx);
    jot_push(ctx);
    index = jot_check_index(index, JOT_INTS(jot_extent(x, dim)), "take_along");
    return jot_leave(ctx, jot_reindex_ex(x, jot_shape(index), index_along(&m, jot_rank(x), dim),
                                         JOT_NONE_STRS, 0, JOT_VARS(index)));
}

/* index (..., k), k of at most x's rank; the shape (...) and what x has after k dimensions */
static bool
index_tuples(jot_Ctx *ctx, jot_Var x, jot_Var index, int64_t ext[JOT_MAX_RANK], int *rank,
             const char *op)
{
    if (!jot_check(ctx, x, op, "x") || !jot_check(ctx, index, op, "index") ||
        !nn_integer(index, op, "index"))
        return false;
    int lead = jot_rank(index) - 1;
    int64_t k = lead < 0 ? -1 : jot_extent(index, -1);
    if (k < 1 || k > jot_rank(x)) {
        jot_raise(ctx, JOT_ESHAPE, "%s: index: a last extent of 1..%d asked (x's rank), rank %d "
                  "and %lld elements found", op, jot_rank(x), jot_rank(index),
                  (long long)jot_nelem(index));
        return false;
    }
    *rank = lead + jot_rank(x) - (int)k;
    if (*rank > JOT_MAX_RANK) {
        jot_raise(ctx, JOT_ESHAPE, "%s: index: a result of rank %d at most asked, %d found", op,
                  JOT_MAX_RANK, *rank);
        return false;
    }
    for (int d = 0; d < *rank; d++)
        ext[d] = d < lead ? jot_extent(index, d) : jot_extent(x, d - lead + (int)k);
    return true;
}

jot_Var
jot_gather_nd(jot_Var x, jot_Var index)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, index));
    int64_t ext[JOT_MAX_RANK];
    int rank;
    PlaceMap m;
    if (!index_tuples(ctx, x, index, ext, &rank, "gather_nd"))
        return nn_poison(ctx);
    int k = (int)jot_extent(index, -1);
    jot_Strs at = index_tuple(&m, jot_rank(index) - 1, k, jot_rank(x));
    jot_push(ctx);
    index = jot_check_index(index, jot_ints(k, jot_shape(x).v), "gather_nd");
    return jot_leave(ctx, jot_reindex_ex(x, jot_ints(rank, ext), at, JOT_NONE_STRS, 0,
                                         JOT_VARS(index)));
}

/* ---- scatters ---- */

static bool
index_shape_is(jot_Ctx *ctx, jot_Var y, jot_Ints shape, const char *op)
{
    if (!jot_check(ctx, y, op, "y"))
        return false;
    bool same = jot_rank(y) == shape.n;
    for (int d = 0; same && d < shape.n; d++)
        same = jot_extent(y, d) == shape.v[d];
    if (!same)
        jot_raise(ctx, JOT_ESHAPE, "%s: y: an element for each of the index asked, rank %d and "
                  "%lld elements found", op, jot_rank(y), (long long)jot_nelem(y));
    return same;
}

static bool
index_op(jot_Ctx *ctx, jot_ReduceOp op, const char *name)
{
    if (op == JOT_ADD || op == JOT_MUL || op == JOT_MAX || op == JOT_MIN)
        return true;
    jot_raise(ctx, JOT_ERANGE, "%s: op: JOT_ADD, JOT_MUL, JOT_MAX or JOT_MIN asked, %d found", name,
              (int)op);
    return false;
}

/* x op what falls on it, in x's dtype */
static jot_Var
index_reduce(jot_ReduceOp op, jot_Var x, jot_Var index, jot_Var y, jot_Strs at)
{
    jot_Var (*const join[])(jot_Var, jot_Var) = {jot_add, jot_mul, jot_maximum, jot_minimum};
    jot_DType dtype = jot_dtype(x);
    jot_push(x.ctx);
    y = jot_cast(y, dtype);
    if (dtype >= JOT_F16)
        y = nn_wide(y);
    jot_Var r = jot_reindex_reduce_ex(op, y, jot_shape(x), at, JOT_NONE_STRS, JOT_VARS(index));
    return jot_leave(x.ctx, jot_cast(join[op](jot_cast(x, jot_dtype(y)), r), dtype));
}

/* x, but y where something falls; place: which position of y's dimension dim wrote last, of x's
 * first dimensions; back: how y is read there */
static jot_Var
index_last(jot_Var x, jot_Var place, jot_Var y, jot_Strs back)
{
    jot_Var value = jot_reindex_ex(jot_cast(y, jot_dtype(x)), jot_shape(x), back, JOT_NONE_STRS, 0,
                                   JOT_VARS(place));
    jot_Var hit = jot_ge(place, nn_zero(place));
    for (int d = jot_rank(hit); d < jot_rank(x); d++)
        hit = jot_unsqueeze(hit, d);
    return jot_where(hit, value, x);
}

jot_Var
jot_scatter_reduce(jot_ReduceOp op, jot_Var x, jot_Var index, jot_Var y, int dim)
{
    static const char name[] = "scatter_reduce";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, index, y));
    PlaceMap m;
    if (!index_check(ctx, x, index, &dim, name) || !index_op(ctx, op, name) ||
        !index_shape_is(ctx, y, jot_shape(index), name))
        return nn_poison(ctx);
    jot_push(ctx);
    index = jot_check_index(index, JOT_INTS(jot_extent(x, dim)), name);
    return jot_leave(ctx, index_reduce(op, x, index, y, index_along(&m, jot_rank(x), dim)));
}

jot_Var
jot_scatter(jot_Var x, jot_Var index, jot_Var y, int dim)
{
    static const char op[] = "scatter";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, index, y));
    PlaceMap m;
    if (!index_check(ctx, x, index, &dim, op) || !index_shape_is(ctx, y, jot_shape(index), op))
        return nn_poison(ctx);
    jot_push(ctx);
    index = jot_check_index(index, JOT_INTS(jot_extent(x, dim)), op);
    jot_Strs at = index_along(&m, jot_rank(x), dim);
    jot_Var place = jot_reindex_reduce_ex(JOT_MAX, jot_iota(ctx, JOT_I64, jot_shape(index), dim),
                                          jot_shape(x), at, JOT_NONE_STRS, JOT_VARS(index));
    return jot_leave(ctx, index_last(x, place, y, at));
}

jot_Var
jot_scatter_nd_reduce(jot_ReduceOp op, jot_Var x, jot_Var index, jot_Var y)
{
    static const char name[] = "scatter_nd_reduce";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, index, y));
    int64_t ext[JOT_MAX_RANK];
    int rank;
    PlaceMap m;
    if (!index_tuples(ctx, x, index, ext, &rank, name) || !index_op(ctx, op, name) ||
        !index_shape_is(ctx, y, jot_ints(rank, ext), name))
        return nn_poison(ctx);
    int k = (int)jot_extent(index, -1);
    jot_push(ctx);
    index = jot_check_index(index, jot_ints(k, jot_shape(x).v), name);
    return jot_leave(ctx, index_reduce(op, x, index, y, index_tuple(&m, jot_rank(index) - 1, k,
                                                                    jot_rank(x))));
}

/* The index as (n, k) and y as (n, ...), so that a place is one number. */
jot_Var
jot_scatter_nd(jot_Var x, jot_Var index, jot_Var y)
{
    static const char op[] = "scatter_nd";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, index, y));
    int64_t ext[JOT_MAX_RANK];
    int rank, lead, k, rest;
    PlaceMap m, back;
    if (!index_tuples(ctx, x, index, ext, &rank, op) ||
        !index_shape_is(ctx, y, jot_ints(rank, ext), op))
        return nn_poison(ctx);
    lead = jot_rank(index) - 1;
    k = (int)jot_extent(index, -1);
    rest = jot_rank(x) - k;
    jot_push(ctx);
    int64_t n = jot_nelem(index) / k, flat[JOT_MAX_RANK + 1] = {n};
    for (int d = 0; d < rest; d++)
        flat[d + 1] = ext[lead + d];
    index = jot_check_index(index, jot_ints(k, jot_shape(x).v), op);
    jot_Var tuples = jot_reshape(index, JOT_SHAPE(n, k));
    jot_Var rows = jot_reshape(y, jot_ints(rest + 1, flat));
    jot_Var place = jot_reindex_reduce_ex(JOT_MAX, jot_iota(ctx, JOT_I64, JOT_SHAPE(n), 0),
                                          jot_ints(k, jot_shape(x).v), index_tuple(&m, 1, k, k),
                                          JOT_NONE_STRS, JOT_VARS(tuples));
    for (int d = 0; d < rest; d++)
        back.at[d + 1] = nn_axis[k + d];
    back.at[0] = nn_load(back.text[0], k, NULL);
    return jot_leave(ctx, index_last(x, place, rows, jot_strs(rest + 1, back.at)));
}

/* ---- counting ---- */

/* In the caller's scope: how much falls on each of n places; what is outside falls on none. */
static jot_Var
index_count(jot_Var at, jot_Var weight, int64_t n)
{
    PlaceMap m;
    const char *load = nn_load(m.text[0], jot_rank(at), NULL);
    if (!jot_rank(at)) {
        at = jot_reshape(at, JOT_SHAPE(1));
        weight = jot_reshape(weight, JOT_SHAPE(1));
        load = "@e0(i0)";
    }
    return jot_reindex_reduce_ex(JOT_ADD, weight, JOT_SHAPE(n), jot_strs(1, &load), JOT_NONE_STRS,
                                 JOT_VARS(at));
}

jot_Var
jot_bincount(jot_Var x, jot_Var weight, int64_t n)
{
    static const char op[] = "bincount";
    if (!jot_check(x.ctx, x, op, "x") || !nn_integer(x, op, "x") ||
        (nn_given(weight) && !nn_same(x.ctx, weight, x, op, "weight", "x")) ||
        !nn_least(x.ctx, (double)n, 0, op, "n"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    if (!nn_given(weight))
        weight = jot_full_int(x.ctx, JOT_I64, jot_shape(x), 1);
    return jot_leave(x.ctx, index_count(x, weight, n));
}

jot_Var
jot_histogram(jot_Var x, int64_t bins, double lo, double hi)
{
    static const char op[] = "histogram";
    if (!jot_check(x.ctx, x, op, "x") || !nn_least(x.ctx, (double)bins, 1, op, "bins") ||
        !nn_above(x.ctx, hi, lo, op, "hi"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var wide = nn_wide(x), least = nn_number(wide, lo);
    jot_Var most = nn_number(wide, hi);
    jot_Var inside = jot_logical_and(jot_ge(wide, least), jot_le(wide, most));
    jot_Var bin = jot_floor(jot_scale(jot_offset(wide, -lo), (double)bins / (hi - lo)));
    jot_Var last = jot_full_int(x.ctx, JOT_I64, JOT_SHAPE(), bins - 1); /* hi is of it */
    bin = jot_minimum(jot_cast(bin, JOT_I64), last);
    bin = jot_where(inside, bin, jot_full_int(x.ctx, JOT_I64, JOT_SHAPE(), -1));
    return jot_leave(x.ctx, index_count(bin, jot_full_int(x.ctx, JOT_I64, jot_shape(x), 1), bins));
}

jot_Var
jot_searchsorted(jot_Var sorted, jot_Var x, bool right)
{
    static const char op[] = "searchsorted";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(sorted, x));
    int64_t ext[JOT_MAX_RANK + 1];
    const char *at[JOT_MAX_RANK];
    if (!nn_rank_is(ctx, sorted, 1, op, "sorted", "(n)") || !jot_check(ctx, x, op, "x"))
        return nn_poison(ctx);
    int rank = jot_rank(x);
    if (rank == JOT_MAX_RANK)
        return jot_raise(ctx, JOT_ESHAPE, "%s: x: rank of at most %d asked, %d found", op,
                         JOT_MAX_RANK - 1, rank);
    nn_axes(at, rank);
    for (int d = 0; d < rank; d++)
        ext[d] = jot_extent(x, d);
    ext[rank] = jot_extent(sorted, 0);
    jot_push(ctx);
    jot_Var v = jot_reindex(x, jot_ints(rank + 1, ext), jot_strs(rank, at));
    jot_Var s = jot_reindex(sorted, jot_ints(rank + 1, ext), jot_strs(1, &nn_axis[rank]));
    return jot_leave(ctx, jot_sum(right ? jot_le(s, v) : jot_lt(s, v), JOT_DIMS(rank)));
}
