/* nn/array.c - parts of arrays and arrays out of parts, as reindexes of core.h: nothing is copied
 * that the next kernel can read where it is.
 *
 * Read before: nn/parts.h. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

jot_Var
jot_narrow(jot_Var x, int dim, int64_t start, int64_t n)
{
    static const char op[] = "narrow";
    int64_t from[JOT_MAX_RANK], to[JOT_MAX_RANK], by[JOT_MAX_RANK], extent;
    int rank = jot_rank(x);
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
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
