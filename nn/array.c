/* nn/array.c - parts of arrays and arrays out of parts, as reindexes of core.h: nothing is copied
 * that the next kernel can read where it is.
 *
 * Read before: nn/parts.h. After: nn/index.c. */
#include "nn.h"
#include "nn/parts.h"

jot_Var
jot_narrow(jot_Var x, int dim, int64_t start, int64_t n)
{
    static const char op[] = "narrow";
    int64_t from[JOT_MAX_RANK], to[JOT_MAX_RANK], by[JOT_MAX_RANK], extent;
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
    int rank = jot_rank(x);
    extent = jot_extent(x, dim);
    if (start < -extent || start > extent)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: start: %lld..%lld asked (dimension %d), %lld "
                         "found", op, (long long)-extent, (long long)extent, dim, (long long)start);
    start += start < 0 ? extent : 0;
    if (n < 0 || n > extent - start)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: n: 0..%lld asked (dimension %d from %lld on), "
                         "%lld found", op, (long long)(extent - start), dim, (long long)start,
                         (long long)n);
    for (int d = 0; d < rank; d++) {
        from[d] = d == dim ? start : 0;
        to[d] = d == dim ? start + n : jot_extent(x, d);
        by[d] = 1;
    }
    return jot_slice(x, jot_ints(rank, from), jot_ints(rank, to), jot_ints(rank, by));
}

jot_Var
jot_select(jot_Var x, int dim, int64_t at)
{
    static const char op[] = "select";
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
    int64_t n = jot_extent(x, dim);
    if (at < -n || at >= n)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: at: %lld..%lld asked (dimension %d), %lld "
                         "found", op, (long long)-n, (long long)n - 1, dim, (long long)at);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_squeeze(jot_narrow(x, dim, at, 1), dim));
}

/* All of several results, or none: where one is poison, each is. */
static bool
array_all(jot_Ctx *ctx, jot_Var *parts, int n)
{
    int made = 0;
    while (made < n && jot_ok(parts[made]))
        made++;
    for (int k = 0; k < n && made < n; k++)
        parts[k] = nn_poison(ctx);
    return made == n;
}

bool
jot_split(jot_Var x, int dim, jot_Ints sizes, jot_Var *parts)
{
    static const char op[] = "split";
    int64_t at = 0, n = 0;
    for (int k = 0; parts && k < sizes.n; k++)
        parts[k] = nn_poison(x.ctx);
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op) ||
        !nn_list(x.ctx, sizes.n, sizes.v && parts, op, "sizes"))
        return false;
    for (int k = 0; k < sizes.n; k++) {
        if (sizes.v[k] < 0 || sizes.v[k] > jot_extent(x, dim) - n) {
            jot_raise(x.ctx, JOT_ESHAPE, "%s: sizes[%d]: 0..%lld asked (what is left of dimension "
                      "%d), %lld found", op, k, (long long)(jot_extent(x, dim) - n), dim,
                      (long long)sizes.v[k]);
            return false;
        }
        n += sizes.v[k];
    }
    if (n != jot_extent(x, dim)) {
        jot_raise(x.ctx, JOT_ESHAPE, "%s: sizes: a sum of %lld asked (dimension %d), %lld found",
                  op, (long long)jot_extent(x, dim), dim, (long long)n);
        return false;
    }
    for (int k = 0; k < sizes.n; k++, at += sizes.v[k - 1])
        parts[k] = jot_narrow(x, dim, at, sizes.v[k]);
    return array_all(x.ctx, parts, sizes.n);
}

int
jot_chunk(jot_Var x, int dim, int n, jot_Var *parts)
{
    static const char op[] = "chunk";
    int made = 0;
    for (int k = 0; parts && k < n; k++)
        parts[k] = nn_poison(x.ctx);
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op) || !nn_least(x.ctx, n, 1, op, "n") ||
        !nn_list(x.ctx, n, parts, op, "parts"))
        return 0;
    int64_t extent = jot_extent(x, dim), each = extent ? (extent + n - 1) / n : 0, at = 0;
    do {
        int64_t size = each < extent - at ? each : extent - at;
        parts[made++] = jot_narrow(x, dim, at, size);
        at += size;
    } while (at < extent);
    return array_all(x.ctx, parts, made) ? made : 0;
}

/* ---- in other places ---- */

/* out[i] = x[(i - shift) mod n] */
jot_Var
jot_roll(jot_Var x, int dim, int64_t shift)
{
    static const char op[] = "roll";
    const char *at[JOT_MAX_RANK];
    char text[64], *t = text;
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
    int64_t n = jot_extent(x, dim), by = n ? shift % n : 0;
    t = nn_put(nn_put(t, "("), nn_axis[dim]);
    t = nn_put_int(nn_put(t, "+"), by > 0 ? n - by : -by);
    nn_put_int(nn_put(t, ")%"), n ? n : 1);
    nn_axes(at, jot_rank(x));
    at[dim] = text;
    return jot_reindex(x, jot_shape(x), jot_strs(jot_rank(x), at));
}

/* Of matrices (..., m, n), what stands on the diagonal k and on one side of it, else 0. */
static jot_Var
array_triangle(jot_Var x, int64_t k, const char *compare, const char *op)
{
    const char *at[JOT_MAX_RANK];
    char text[64], *t = text;
    const char *const condition[1] = {text};
    if (!nn_matrix(x, k, op))
        return nn_poison(x.ctx);
    int rank = jot_rank(x);
    t = nn_put(nn_put(nn_put(nn_put(t, nn_axis[rank - 1]), "-"), nn_axis[rank - 2]), compare);
    nn_put_int(t, k);
    nn_axes(at, rank);
    return jot_reindex_ex(x, jot_shape(x), jot_strs(rank, at), jot_strs(1, condition), 0,
                          JOT_NONE_VARS);
}

jot_Var
jot_tril(jot_Var x, int64_t k)
{
    return array_triangle(x, k, "<=", "tril");
}

jot_Var
jot_triu(jot_Var x, int64_t k)
{
    return array_triangle(x, k, ">=", "triu");
}

/* (..., m, n) -> (..., l): x[..., i, i + k] */
jot_Var
jot_diagonal(jot_Var x, int64_t k)
{
    const char *at[JOT_MAX_RANK];
    int64_t ext[JOT_MAX_RANK];
    char text[64];
    if (!nn_matrix(x, k, "diagonal"))
        return nn_poison(x.ctx);
    int rank = jot_rank(x);
    int64_t rows = jot_extent(x, -2) + (k < 0 ? k : 0);
    int64_t columns = jot_extent(x, -1) - (k > 0 ? k : 0);
    int64_t length = rows < columns ? rows : columns;
    nn_axes(at, rank);
    for (int d = 0; d < rank - 1; d++)
        ext[d] = jot_extent(x, d);
    ext[rank - 2] = length > 0 ? length : 0;
    at[rank - 1] = at[rank - 2];
    nn_put_int(nn_put(nn_put(text, nn_axis[rank - 2]), "+"), k < 0 ? -k : k);
    at[k < 0 ? rank - 2 : rank - 1] = text;
    return jot_reindex(x, jot_ints(rank - 1, ext), jot_strs(rank, at));
}

/* (..., n) -> (..., n + |k|, n + |k|) */
jot_Var
jot_diag_embed(jot_Var x, int64_t k)
{
    static const char op[] = "diag_embed";
    const char *at[JOT_MAX_RANK];
    int64_t ext[JOT_MAX_RANK + 1];
    char text[64], *t = text;
    const char *const condition[1] = {text};
    if (!jot_check(x.ctx, x, op, "x"))
        return nn_poison(x.ctx);
    int rank = jot_rank(x);
    if (rank < 1 || rank == JOT_MAX_RANK)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: x: rank of 1..%d asked, %d found", op,
                         JOT_MAX_RANK - 1, rank);
    if (!nn_offset(x.ctx, k, op))
        return nn_poison(x.ctx);
    nn_axes(at, rank);
    for (int d = 0; d < rank; d++)
        ext[d] = jot_extent(x, d);
    ext[rank - 1] += k < 0 ? -k : k;
    ext[rank] = ext[rank - 1];
    at[rank - 1] = nn_axis[k < 0 ? rank : rank - 1]; /* the smaller of row and column */
    t = nn_put(nn_put(nn_put(nn_put(t, nn_axis[rank]), "-"), nn_axis[rank - 1]), "==");
    nn_put_int(t, k);
    return jot_reindex_ex(x, jot_ints(rank + 1, ext), jot_strs(rank, at), jot_strs(1, condition), 0,
                          JOT_NONE_VARS);
}

jot_Var
jot_trace(jot_Var x)
{
    if (!nn_matrix(x, 0, "trace"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_sum(jot_diagonal(x, 0), JOT_DIMS(-1)));
}

/* ---- made of numbers ---- */

jot_Var
jot_eye(jot_Ctx *ctx, jot_DType dtype, int64_t m, int64_t n)
{
    jot_push(ctx);
    jot_Ints shape = JOT_SHAPE(m, n);
    jot_Var on = jot_eq(jot_iota(ctx, JOT_I64, shape, 0), jot_iota(ctx, JOT_I64, shape, 1));
    return jot_leave(ctx, jot_cast(on, dtype));
}

/* From both ends, so that both are met. */
jot_Var
jot_linspace(jot_Ctx *ctx, jot_DType dtype, double start, double end, int64_t n)
{
    static const char op[] = "linspace";
    if ((unsigned)dtype >= JOT_DTYPES || dtype < JOT_F16)
        return jot_raise(ctx, JOT_EDTYPE, "%s: dtype: a float dtype asked, %s found", op,
                         (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
    if (!nn_least(ctx, (double)n, 0, op, "n"))
        return nn_poison(ctx);
    double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    jot_push(ctx);
    jot_Var i = jot_iota(ctx, JOT_I64, JOT_SHAPE(n), 0);
    jot_Var last = jot_full_int(ctx, JOT_I64, JOT_SHAPE(), n > 1 ? n - 1 : 0);
    jot_Var low = jot_lt(i, jot_full_int(ctx, JOT_I64, JOT_SHAPE(), n / 2 + n % 2));
    jot_Var up = jot_scale(jot_cast(i, JOT_F64), step);
    jot_Var down = jot_scale(jot_cast(jot_sub(last, i), JOT_F64), -step);
    return jot_leave(ctx, jot_cast(jot_where(low, jot_offset(up, start), jot_offset(down, end)),
                                   dtype));
}

bool
jot_meshgrid(jot_Vars vectors, jot_Var *grids)
{
    static const char op[] = "meshgrid";
    jot_Ctx *ctx = vectors.v ? jot_ctx_of(vectors) : NULL;
    int64_t ext[JOT_MAX_RANK];
    for (int k = 0; grids && k < vectors.n; k++)
        grids[k] = nn_poison(ctx);
    if (!nn_list(ctx, vectors.n, vectors.v && grids, op, "vectors"))
        return false;
    if (vectors.n > JOT_MAX_RANK) {
        jot_raise(ctx, JOT_ESHAPE, "%s: vectors: at most %d asked, %d found", op, JOT_MAX_RANK,
                  vectors.n);
        return false;
    }
    for (int k = 0; k < vectors.n; k++) {
        if (!nn_rank_is(ctx, vectors.v[k], 1, op, "vectors", "(n)"))
            return false;
        ext[k] = jot_extent(vectors.v[k], 0);
    }
    for (int k = 0; k < vectors.n; k++)
        grids[k] = jot_reindex(vectors.v[k], jot_ints(vectors.n, ext), jot_strs(1, &nn_axis[k]));
    return array_all(ctx, grids, vectors.n);
}

/* ---- other shapes ---- */

jot_Var
jot_flatten(jot_Var x, int first, int last)
{
    static const char op[] = "flatten";
    int64_t ext[JOT_MAX_RANK + 1];
    if (!jot_check(x.ctx, x, op, "x"))
        return nn_poison(x.ctx);
    int rank = jot_rank(x), n = 0;
    if (!rank)
        return jot_reshape(x, JOT_SHAPE(1));
    if (!nn_dim(x, &first, op) || !nn_dim(x, &last, op))
        return nn_poison(x.ctx);
    if (first > last)
        return jot_raise(x.ctx, JOT_ERANGE, "%s: last: %d..%d asked, %d found", op, first, rank - 1,
                         last);
    for (int d = 0; d < rank; d++)
        if (d > first && d <= last)
            ext[n - 1] *= jot_extent(x, d);
        else
            ext[n++] = jot_extent(x, d);
    return jot_reshape(x, jot_ints(n, ext));
}

jot_Var
jot_repeat_interleave(jot_Var x, int dim, int64_t times)
{
    static const char op[] = "repeat_interleave";
    int64_t ext[JOT_MAX_RANK];
    const char *at[JOT_MAX_RANK];
    char text[64];
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op) ||
        !nn_least(x.ctx, (double)times, 0, op, "times"))
        return nn_poison(x.ctx);
    nn_axes(at, jot_rank(x));
    for (int d = 0; d < jot_rank(x); d++)
        ext[d] = jot_extent(x, d);
    if (ext[dim] && times > INT64_MAX / ext[dim])
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: times: too large a product with %lld, %lld found",
                         op, (long long)ext[dim], (long long)times);
    ext[dim] *= times;
    nn_put_int(nn_put(nn_put(text, nn_axis[dim]), "/"), times ? times : 1);
    at[dim] = text;
    return jot_reindex(x, jot_ints(jot_rank(x), ext), jot_strs(jot_rank(x), at));
}

jot_Var
jot_masked_fill(jot_Var x, jot_Var mask, double value)
{
    static const char op[] = "masked_fill";
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, mask));
    if (!jot_check(ctx, x, op, "x") || !nn_fits(ctx, mask, x, op, "mask"))
        return nn_poison(ctx);
    jot_push(ctx);
    return jot_leave(ctx, jot_where(mask, nn_number(x, value), x));
}
