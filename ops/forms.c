/* ops/forms.c - the specialised forms of reindex that move elements of one variable about:
 *
 *     broadcast   out[i, j] = x[j]            transpose  out[i, j] = x[j, i]
 *     slice       out[i] = x[start + step*i]  pad        out[i] = x[i - before], or a value
 *     flip        out[i] = x[n - 1 - i]       tile       out[i] = x[i % n]
 *     reshape     out[i, j] = x[(m*i + j) / n, (m*i + j) % n]
 *
 * Each checks its arguments, writes down one index per dimension of x, and leaves the rest to
 * jot_reindex_node, which makes one map of a chain of them.
 *
 * Read before: ops/reindex.c. After: ops/forms_join.c (several variables). */
#include "ops/maps.h"

/* What every form begins with: the operand, and room for the answer. */
typedef struct {
    const char *op;
    jot_Ctx *ctx;
    NodeId x;
    const Node *node;
    IxPool *pool;
    uint32_t mark;
    int rank;                   /* of the result */
    int64_t ext[JOT_MAX_RANK];
    Ix index[JOT_MAX_RANK];     /* per dimension of x */
} FormsBuilder;

static bool
forms_begin(FormsBuilder *f, const char *op, jot_Var x)
{
    memset(f, 0, sizeof *f);
    f->op = op;
    f->ctx = x.ctx;
    f->x = jot_node_of(x, op, "x");
    if (!f->x)
        return false;
    f->node = jot_node(f->ctx, f->x);
    f->pool = &f->ctx->ix;
    f->mark = f->ctx->loose.n;
    return true;
}

static jot_Var
forms_end(FormsBuilder *f, double overflow)
{
    int64_t nelem;
    jot_DType dtype = (jot_DType)f->node->dtype;
    NodeId id = 0;

    if (jot_shape_ok(f->ctx, f->op, dtype, f->rank, f->ext, &nelem))
        id = jot_reindex_node(f->ctx, f->x, f->rank, f->ext, f->index, 0, NULL,
                              jot_scalar_from_f64(overflow, dtype), 0, NULL);
    return jot_maps_done(f->ctx, id, f->mark);
}

/* A list with one entry per dimension of x. */
static bool
forms_list(FormsBuilder *f, const char *what, jot_Ints list)
{
    if (list.n > 0 && !list.v)
        return jot_fail(f->ctx, JOT_EUSE, "%s: the list %s is NULL", f->op, what);
    if (list.n == f->node->rank)
        return true;
    return jot_fail(f->ctx, JOT_ESHAPE, "%s: %s has %d entries, x has rank %d", f->op, what, list.n,
                    f->node->rank);
}

/* A user's shape as the result's. */
static bool
forms_shape(FormsBuilder *f, jot_Ints shape)
{
    int64_t nelem;

    if (!jot_shape_ok(f->ctx, f->op, (jot_DType)f->node->dtype, shape.n, shape.v, &nelem))
        return false;
    f->rank = shape.n;
    if (shape.n)
        memcpy(f->ext, shape.v, sizeof *shape.v * (size_t)shape.n);
    return true;
}

static bool
forms_misfit(FormsBuilder *f, const char *why, jot_Ints shape)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];

    return jot_fail(f->ctx, JOT_ESHAPE, "%s: x is %s, asked is %s: %s", f->op,
                    jot_shape_str(a, f->node->rank, f->node->ext),
                    jot_shape_str(b, shape.n, shape.v), why);
}

/* ---- broadcast ---------------------------------------------------------------------------- */

/* x's dimensions are those of the shape that mask leaves out. */
static jot_Var
forms_spread(FormsBuilder *f, jot_Ints shape, uint32_t mask)
{
    int k, at = 0;

    for (k = 0; k < shape.n; k++) {
        if (mask >> k & 1)
            continue;
        if (f->node->ext[at] != shape.v[k] && f->node->ext[at] != 1)
            return forms_misfit(f, "extents must be equal or 1", shape), JOT_POISON(f->ctx);
        f->index[at] = f->node->ext[at] == shape.v[k] ? jot_ix_axis(f->pool, k)
                                                      : jot_ix_const(f->pool, 0);
        at++;
    }
    return forms_end(f, 0);
}

jot_Var
jot_broadcast_to(jot_Var x, jot_Ints shape)
{
    FormsBuilder f;

    if (!forms_begin(&f, "broadcast_to", x) || !forms_shape(&f, shape))
        return JOT_POISON(f.ctx);
    if (shape.n < f.node->rank)
        return forms_misfit(&f, "x has more dimensions", shape), JOT_POISON(f.ctx);
    return forms_spread(&f, shape, ((uint32_t)1 << (shape.n - f.node->rank)) - 1);
}

jot_Var
jot_broadcast(jot_Var x, jot_Ints shape, jot_Ints dims)
{
    FormsBuilder f;
    uint32_t mask;

    if (!forms_begin(&f, "broadcast", x) || !forms_shape(&f, shape)
        || !jot_maps_dims(f.ctx, f.op, dims, shape.n, &mask))
        return JOT_POISON(f.ctx);
    if (f.node->rank + jot_bits_count(mask) != shape.n)
        return jot_raise(f.ctx, JOT_ESHAPE, "broadcast: %d dimensions of x and %d new ones do not "
                         "make the %d asked for", f.node->rank, jot_bits_count(mask), shape.n);
    return forms_spread(&f, shape, mask);
}

jot_Var
jot_unsqueeze(jot_Var x, int dim)
{
    FormsBuilder f;
    int at, k;

    if (!forms_begin(&f, "unsqueeze", x))
        return JOT_POISON(f.ctx);
    at = jot_maps_dim(f.ctx, f.op, dim, f.node->rank + 1);
    if (at < 0)
        return JOT_POISON(f.ctx);
    f.rank = f.node->rank + 1;
    if (f.rank > JOT_MAX_RANK)
        return jot_raise(f.ctx, JOT_ESHAPE, "unsqueeze: x has rank %d, the highest there is",
                         JOT_MAX_RANK);
    f.ext[at] = 1;
    for (k = 0; k < f.node->rank; k++) {
        f.ext[k + (k >= at)] = f.node->ext[k];
        f.index[k] = jot_ix_axis(f.pool, k + (k >= at));
    }
    return forms_end(&f, 0);
}

jot_Var
jot_squeeze(jot_Var x, int dim)
{
    FormsBuilder f;
    int at, k;

    if (!forms_begin(&f, "squeeze", x))
        return JOT_POISON(f.ctx);
    at = jot_maps_dim(f.ctx, f.op, dim, f.node->rank);
    if (at < 0)
        return JOT_POISON(f.ctx);
    if (f.node->ext[at] != 1)
        return jot_raise(f.ctx, JOT_ESHAPE, "squeeze: dimension %d has extent %lld, not 1", at,
                         (long long)f.node->ext[at]);
    for (k = 0; k < f.node->rank; k++) {
        f.index[k] = k == at ? jot_ix_const(f.pool, 0) : jot_ix_axis(f.pool, f.rank);
        if (k != at)
            f.ext[f.rank++] = f.node->ext[k];
    }
    return forms_end(&f, 0);
}

/* ---- reshape ------------------------------------------------------------------------------ */

/* The extents asked for, with -1 worked out. */
static bool
forms_reshape_ext(FormsBuilder *f, jot_Ints shape)
{
    int64_t known = 1, ext[JOT_MAX_RANK];
    int hole = -1, k;

    if (shape.n < 0 || shape.n > JOT_MAX_RANK || (shape.n && !shape.v))
        return forms_shape(f, shape);
    for (k = 0; k < shape.n; k++) {
        ext[k] = shape.v[k];
        if (ext[k] == -1 && hole >= 0)
            return forms_misfit(f, "only one extent may be -1", shape);
        if (ext[k] == -1)
            hole = k;
        else if (!jot_mul_ok(known, ext[k], &known))
            return forms_misfit(f, "the number of elements differs", shape);
    }
    if (hole >= 0 && (known <= 0 || f->node->nelem % known))
        return forms_misfit(f, "no extent in place of -1 fits", shape);
    if (hole >= 0)
        ext[hole] = f->node->nelem / known;
    if (!forms_shape(f, jot_ints(shape.n, ext)))
        return false;
    return known * (hole >= 0 ? ext[hole] : 1) == f->node->nelem
        || forms_misfit(f, "the number of elements differs", shape);
}

/* Dimensions [a, a_end) of x and [b, b_end) of the result hold the same number of elements: x's
 * indices are digits of the position in there. */
static void
forms_reshape_part(FormsBuilder *f, int a, int a_end, int b, int b_end)
{
    Space space = {f->rank, f->ext, NULL};
    Ix at = jot_ix_const(f->pool, 0);
    int64_t stride = 1;
    int k;

    for (k = b; k < b_end; k++) {
        at = jot_ix_scale(f->pool, at, f->ext[k]);
        at = jot_ix_add(f->pool, at, jot_ix_axis(f->pool, k));
    }
    for (k = a_end; k-- > a; stride *= f->node->ext[k]) {
        Ix digit = jot_ix_div(f->pool, at, jot_ix_const(f->pool, stride), &space);

        if (k > a)
            digit = jot_ix_mod(f->pool, digit, jot_ix_const(f->pool, f->node->ext[k]), &space);
        f->index[k] = digit;
    }
}

jot_Var
jot_reshape(jot_Var x, jot_Ints shape)
{
    FormsBuilder f;
    int a = 0, b = 0;

    if (!forms_begin(&f, "reshape", x) || !forms_reshape_ext(&f, shape))
        return JOT_POISON(f.ctx);
    if (!f.node->nelem) {
        for (; a < f.node->rank; a++)
            f.index[a] = jot_ix_const(f.pool, 0);
        return forms_end(&f, 0);
    }
    while (a < f.node->rank || b < f.rank) { /* the shortest parts of equal size, from the left */
        int a0 = a, b0 = b;
        int64_t in = a < f.node->rank ? f.node->ext[a++] : 1, out = b < f.rank ? f.ext[b++] : 1;

        while (in != out) {
            if (in < out)
                in *= f.node->ext[a++];
            else
                out *= f.ext[b++];
        }
        forms_reshape_part(&f, a0, a, b0, b);
    }
    return forms_end(&f, 0);
}

/* ---- transpose ---------------------------------------------------------------------------- */

jot_Var
jot_transpose(jot_Var x, jot_Ints order)
{
    FormsBuilder f;
    uint32_t mask;
    int k;

    if (!forms_begin(&f, "transpose", x) || !forms_list(&f, "order", order)
        || !jot_maps_dims(f.ctx, f.op, order, f.node->rank, &mask))
        return JOT_POISON(f.ctx);
    f.rank = f.node->rank;
    for (k = 0; k < f.rank; k++) {
        int from = (int)(order.v[k] < 0 ? order.v[k] + f.rank : order.v[k]);

        f.ext[k] = f.node->ext[from];
        f.index[from] = jot_ix_axis(f.pool, k);
    }
    return forms_end(&f, 0);
}

jot_Var
jot_swap(jot_Var x, int dim_a, int dim_b)
{
    FormsBuilder f;
    int64_t order[JOT_MAX_RANK];
    int a, b, k;

    if (!forms_begin(&f, "swap", x))
        return JOT_POISON(f.ctx);
    a = jot_maps_dim(f.ctx, f.op, dim_a, f.node->rank);
    b = a < 0 ? -1 : jot_maps_dim(f.ctx, f.op, dim_b, f.node->rank);
    if (b < 0)
        return JOT_POISON(f.ctx);
    for (k = 0; k < f.node->rank; k++)
        order[k] = k;
    order[a] = b;
    order[b] = a;
    return jot_transpose(x, jot_ints(f.node->rank, order));
}

/* ---- slice, pad, flip, tile --------------------------------------------------------------- */

/* Python's rule for one bound: from the end if negative, then into [lo, hi]. */
static int64_t
forms_bound(int64_t at, int64_t n, int64_t lo, int64_t hi)
{
    if (at < 0)
        at += n;
    return at < lo ? lo : at > hi ? hi : at;
}

/* One dimension of a slice: its first element, and how many. */
static int64_t
forms_slice_dim(int64_t n, int64_t start, int64_t stop, int64_t step, int64_t *count)
{
    int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1, span;

    start = start == JOT_END ? (step > 0 ? lo : hi) : forms_bound(start, n, lo, hi);
    stop = stop == JOT_END ? (step > 0 ? hi : lo) : forms_bound(stop, n, lo, hi);
    span = step > 0 ? stop - start : start - stop;
    *count = 0;
    if (span > 0) /* steps longer than the span count 1, whatever their length */
        *count = 1 + (step > 0 ? (span - 1) / step : (span - 1) / (step == INT64_MIN ? INT64_MAX
                                                                                    : -step));
    return start;
}

jot_Var
jot_slice(jot_Var x, jot_Ints start, jot_Ints stop, jot_Ints step)
{
    FormsBuilder f;
    int k;

    if (!forms_begin(&f, "slice", x) || !forms_list(&f, "start", start)
        || !forms_list(&f, "stop", stop) || (step.n && !forms_list(&f, "step", step)))
        return JOT_POISON(f.ctx);
    f.rank = f.node->rank;
    for (k = 0; k < f.rank; k++) {
        int64_t by = step.n ? step.v[k] : 1, from;

        if (!by)
            return jot_raise(f.ctx, JOT_ERANGE, "slice: step of dimension %d is 0", k);
        from = forms_slice_dim(f.node->ext[k], start.v[k], stop.v[k], by, &f.ext[k]);
        f.index[k] = jot_ix_const(f.pool, f.ext[k] ? from : 0);
        if (f.ext[k] > 1)
            f.index[k] = jot_ix_add(f.pool, f.index[k],
                                    jot_ix_scale(f.pool, jot_ix_axis(f.pool, k), by));
    }
    return forms_end(&f, 0);
}

jot_Var
jot_slice_dim(jot_Var x, int dim, int64_t start, int64_t stop, int64_t step)
{
    int64_t from[JOT_MAX_RANK], to[JOT_MAX_RANK], by[JOT_MAX_RANK];
    FormsBuilder f;
    int at = forms_begin(&f, "slice_dim", x) ? jot_maps_dim(f.ctx, f.op, dim, f.node->rank) : -1, k;

    if (at < 0)
        return JOT_POISON(f.ctx);
    for (k = 0; k < f.node->rank; k++) {
        from[k] = k == at ? start : 0;
        to[k] = k == at ? stop : JOT_END;
        by[k] = k == at ? step : 1;
    }
    return jot_slice(x, jot_ints(f.node->rank, from), jot_ints(f.node->rank, to),
                     jot_ints(f.node->rank, by));
}

jot_Var
jot_pad(jot_Var x, jot_Ints before, jot_Ints after, double value)
{
    FormsBuilder f;
    int k;

    if (!forms_begin(&f, "pad", x) || !forms_list(&f, "before", before)
        || !forms_list(&f, "after", after))
        return JOT_POISON(f.ctx);
    f.rank = f.node->rank;
    for (k = 0; k < f.rank; k++) {
        if (!jot_add_ok(f.node->ext[k], before.v[k], &f.ext[k])
            || !jot_add_ok(f.ext[k], after.v[k], &f.ext[k]) || f.ext[k] < 0)
            return jot_raise(f.ctx, JOT_ESHAPE, "pad: dimension %d of extent %lld with %lld before "
                             "and %lld after is no extent", k, (long long)f.node->ext[k],
                             (long long)before.v[k], (long long)after.v[k]);
        f.index[k] = jot_ix_sub(f.pool, jot_ix_axis(f.pool, k), jot_ix_const(f.pool, before.v[k]));
    }
    return forms_end(&f, value);
}

jot_Var
jot_flip(jot_Var x, jot_Ints dims)
{
    FormsBuilder f;
    uint32_t mask;
    int k;

    if (!forms_begin(&f, "flip", x) || !jot_maps_dims(f.ctx, f.op, dims, f.node->rank, &mask))
        return JOT_POISON(f.ctx);
    f.rank = f.node->rank;
    for (k = 0; k < f.rank; k++) {
        f.ext[k] = f.node->ext[k];
        f.index[k] = jot_ix_axis(f.pool, k);
        if (mask >> k & 1)
            f.index[k] = jot_ix_sub(f.pool, jot_ix_const(f.pool, f.ext[k] - 1), f.index[k]);
    }
    return forms_end(&f, 0);
}

jot_Var
jot_tile(jot_Var x, jot_Ints times)
{
    FormsBuilder f;
    int k;

    if (!forms_begin(&f, "tile", x) || !forms_list(&f, "times", times))
        return JOT_POISON(f.ctx);
    f.rank = f.node->rank;
    for (k = 0; k < f.rank; k++) {
        if (times.v[k] < 0)
            return jot_raise(f.ctx, JOT_ERANGE, "tile: times[%d]: at least 0 asked, %lld found", k,
                             (long long)times.v[k]);
        if (!jot_mul_ok(f.node->ext[k], times.v[k], &f.ext[k]))
            return jot_raise(f.ctx, JOT_ERANGE, "tile: %lld times dimension %d of extent %lld "
                             "leaves 64 bits", (long long)times.v[k], k,
                             (long long)f.node->ext[k]);
        f.index[k] = jot_ix_mod(f.pool, jot_ix_axis(f.pool, k),
                                jot_ix_const(f.pool, f.node->ext[k]), NULL);
    }
    return forms_end(&f, 0);
}
