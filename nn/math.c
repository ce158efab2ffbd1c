/* nn/math.c - matrix products, as a sum of products over an iteration space.
 *
 *     a[m,k] ---reindex(i0, i2)---\
 *                                  mul ---sum(2)--- out[m,n]       space (m, n, k)
 *     b[k,n] ---reindex(i2, i1)---/
 *
 * Nothing here knows how to multiply matrices fast, and nothing is stored in between: the two
 * reindexes, the product and the sum are one loop nest after fusion, and what the nest *is* (a
 * contraction: m in a, n in b, k in both) is read off its index maps, never off a name. Batches are
 * further axes in front; a batch extent of 1 reads index 0, which is all that broadcasting is; a
 * vector is a matrix whose m (or n) axis does not exist.
 *
 * Written with the public header alone, as a user's own operator would be. Each composition works
 * in a scope of its own, so that only its result outlives it.
 *
 * Read before: core.h. After: nn/conv.c. */
#include "nn/parts.h"

/* The space of a product and how a and b are read in it. */
typedef struct {
    int rank, batch;
    int64_t ext[JOT_MAX_RANK + 3];
    const char *a[JOT_MAX_RANK], *b[JOT_MAX_RANK];
} MathSpace;

static int64_t
math_batch_extent(jot_Var v, int dim)
{
    return dim < 0 ? 1 : jot_extent(v, dim);
}

/* Leading dimensions of both, aligned at their ends. */
static bool
math_batch(jot_Var a, int na, jot_Var b, int nb, MathSpace *s)
{
    s->batch = na > nb ? na : nb;
    for (int d = 0; d < s->batch; d++) {
        int da = d - s->batch + na, db = d - s->batch + nb;
        int64_t ea = math_batch_extent(a, da), eb = math_batch_extent(b, db);
        if (ea != eb && ea != 1 && eb != 1) {
            jot_raise(a.ctx, JOT_ESHAPE,
                      "matmul: b: batch extent %lld or 1 asked (a's dimension %d), %lld found",
                      (long long)ea, da, (long long)eb);
            return false;
        }
        s->ext[d] = ea == 1 ? eb : ea;
        if (da >= 0)
            s->a[da] = ea == s->ext[d] ? nn_axis[d] : "0";
        if (db >= 0)
            s->b[db] = eb == s->ext[d] ? nn_axis[d] : "0";
    }
    s->rank = s->batch;
    return true;
}

static bool
math_matmul_check(jot_Var a, jot_Var b)
{
    int ra = jot_rank(a), rb = jot_rank(b);
    if (ra < 1 || rb < 1) {
        jot_raise(a.ctx, JOT_ESHAPE, "matmul: %s: rank of at least 1 asked, 0 found",
                  ra < 1 ? "a" : "b");
        return false;
    }
    int64_t ka = jot_extent(a, -1), kb = jot_extent(b, rb == 1 ? 0 : rb - 2);
    if (ka != kb) {
        jot_raise(a.ctx, JOT_ESHAPE, "matmul: b: %lld rows asked (a's last extent), %lld found",
                  (long long)ka, (long long)kb);
        return false;
    }
    int batch = (ra > rb ? ra : rb) - 2;
    if (batch + 3 > JOT_MAX_RANK) {
        jot_raise(a.ctx, JOT_ESHAPE, "matmul: a, b: rank of at most %d asked, %d found",
                  JOT_MAX_RANK - 1, batch + 2);
        return false;
    }
    return true;
}

/* Axes m and n where they exist, then k. */
static void
math_matmul_axes(jot_Var a, jot_Var b, MathSpace *s)
{
    int ra = jot_rank(a), rb = jot_rank(b);
    if (ra > 1) {
        s->a[ra - 2] = nn_axis[s->rank];
        s->ext[s->rank++] = jot_extent(a, -2);
    }
    if (rb > 1) {
        s->b[rb - 1] = nn_axis[s->rank];
        s->ext[s->rank++] = jot_extent(b, -1);
    }
    s->a[ra - 1] = s->b[rb == 1 ? 0 : rb - 2] = nn_axis[s->rank];
    s->ext[s->rank++] = jot_extent(a, -1);
}

jot_Var
jot_matmul(jot_Var a, jot_Var b)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(a, b));
    jot_Var poison = {ctx, 0, 0};
    MathSpace s;
    if (!jot_check(ctx, a, "matmul", "a") || !jot_check(ctx, b, "matmul", "b") ||
        !math_matmul_check(a, b))
        return poison;
    int ra = jot_rank(a), rb = jot_rank(b);
    if (!math_batch(a, ra > 2 ? ra - 2 : 0, b, rb > 2 ? rb - 2 : 0, &s))
        return poison;
    math_matmul_axes(a, b, &s);
    jot_push(a.ctx);
    jot_Var aa = jot_reindex(a, jot_ints(s.rank, s.ext), jot_strs(ra, s.a));
    jot_Var bb = jot_reindex(b, jot_ints(s.rank, s.ext), jot_strs(rb, s.b));
    return jot_leave(a.ctx, jot_sum(nn_terms(aa, bb), JOT_DIMS(s.rank - 1)));
}

jot_Var
jot_linear(jot_Var x, jot_Var w, jot_Var b)
{
    jot_Ctx *ctx = jot_ctx_of(JOT_VARS(x, w, b));
    jot_Var poison = {ctx, 0, 0};
    if (!jot_check(ctx, x, "linear", "x") || !jot_check(ctx, w, "linear", "w") ||
        !jot_check(ctx, b, "linear", "b"))
        return poison;
    if (jot_rank(x) < 1)
        return jot_raise(x.ctx, JOT_ESHAPE, "linear: x: rank of at least 1 asked, 0 found");
    if (jot_rank(w) != 2)
        return jot_raise(x.ctx, JOT_ESHAPE, "linear: w: rank 2 (in, out) asked, %d found",
                         jot_rank(w));
    if (jot_extent(w, 0) != jot_extent(x, -1))
        return jot_raise(x.ctx, JOT_ESHAPE,
                         "linear: w: %lld rows asked (x's last extent), %lld found",
                         (long long)jot_extent(x, -1), (long long)jot_extent(w, 0));
    if (jot_rank(b) != 1 || jot_extent(b, 0) != jot_extent(w, 1))
        return jot_raise(x.ctx, JOT_ESHAPE,
                         "linear: b: (%lld) asked (w's columns), rank %d and %lld elements found",
                         (long long)jot_extent(w, 1), jot_rank(b), (long long)jot_nelem(b));
    jot_push(x.ctx);
    return jot_leave(x.ctx, jot_add(jot_matmul(x, w), b));
}
