/* ccode/build/reduce.c - reductions of a group as kernel values; scatters turned into gathers.
 *
 *     plain      out[i0, i2] op= y[i0, i1, i2] a REDUCE over the missing axes
 *     inverted   out[map(i)] op= y[i]          solve map(i) = o for some axes of i: out[o] = op
 *                                              over the rest of y[solution] where that is inside
 *     scattered  out[@e0(i0)] op= y[i0]        an accumulating store: what cannot be solved, or
 *                                              stands in one nest with other stores
 *     begun      z[e0] = x[e0]                 of z = x op out, which alone reads out: out's terms
 *                z[@e0(i0)] op= y[i0]          go to z
 *
 * requires a REDUCE node     keeps the order of summation within an output element unspecified
 *
 * Read before: ccode/build/build.c. After: ccode/build/invert.c. */
#include "ccode/build/build.h"

JOT_FN bool
jot_build_is_plain(jot_Ctx *ctx, const Node *reduce)
{
    return jot_ix_whole(&ctx->ix, reduce->nindex, reduce->index, reduce->ext,
                        jot_node(ctx, reduce->input[0])->ext);
}

static double
reduce_scale(const Node *node)
{
    return node->op == JOT_MEAN || node->op == REDUCE_VAR ? node->value.f : 1.0;
}

/* y at the given point, in the dtype that is accumulated. */
static uint32_t
reduce_body(Build *b, const Node *node, const Ix *at, const Guards *g)
{
    uint32_t v = jot_build_value(b, node->input[0], at, g);

    return v ? jot_v_cast(b->k, jot_dtype_compute((jot_DType)node->dtype), v) : 0;
}

static uint32_t
reduce_times(Build *b, const Node *node, uint32_t v)
{
    jot_DType dtype = jot_dtype_compute((jot_DType)node->dtype);

    if (reduce_scale(node) == 1.0 || !v)
        return v;
    return jot_v_ew(b->k, EW_MUL, dtype, v, jot_v_constf(b->k, dtype, reduce_scale(node)), 0);
}

static bool
reduce_store(Build *b, NodeId id, const Ix *index, uint32_t value, EwOp acc, const Guards *g)
{
    uint32_t buf = value ? jot_build_buffer(b, id, BUF_OUTPUT) : 0;

    return (buf
            && jot_kernel_store(b->k, buf, index, value, acc, g ? g->n : 0, g ? g->v : NULL) >= 0)
        || jot_build_fail(b, "a reduction was refused");
}

/* The node's own conditions at a point; *never: one cannot hold. */
static bool
reduce_conditions(Build *b, const Node *node, const Ix *at, Guards *g, bool *never)
{
    int rank = jot_node(b->ctx, node->input[0])->rank, slots[64], i;

    if (!jot_build_slots(b, node, slots))
        return false;
    for (i = 0; i < node->ncond; i++)
        *never |= !jot_build_guard(b, g, jot_ix_subst(&b->ctx->ix, node->cond[i], rank, at, slots,
                                                      &b->space));
    return true;
}

/* 0 <= at < ext, as far as it is not known. */
JOT_FN void
jot_build_bounds(Build *b, Ix at, int64_t ext, Guards *g, bool *never)
{
    IxPool *p = &b->ctx->ix;

    if (jot_ix_inside(p, at, ext, &b->space))
        return;
    *never |= !jot_build_guard(b, g, jot_ix_ge0(p, at, &b->space));
    *never |= !jot_build_guard(b, g, jot_ix_lt(p, at, jot_ix_const(p, ext), &b->space));
}

/* The square of how far v lies from its mean over the axes. */
static uint32_t
reduce_deviation(Build *b, const Node *node, uint64_t axes, uint32_t v)
{
    jot_DType dtype = jot_dtype_compute((jot_DType)node->dtype);
    uint32_t mean = jot_v_reduce(b->k, EW_ADD, axes, v, 0, NULL, reduce_scale(node));

    v = mean ? jot_v_ew(b->k, EW_SUB, dtype, v, mean, 0) : 0;
    return v ? jot_v_ew(b->k, EW_MUL, dtype, v, v, 0) : 0;
}

/* op over those of the axes that are not in `to` of y[at] where g. */
static uint32_t
reduce_value(Build *b, const Node *node, uint64_t axes, const Ix *to, const Ix *at,
             const Guards *g, bool never)
{
    EwOp op = (EwOp)jot_reduce_info[node->op].combine;
    jot_DType dtype = jot_dtype_compute((jot_DType)node->dtype);
    jot_Scalar identity;
    uint32_t v;
    int d;

    for (d = 0; d < node->rank; d++)
        axes &= ~jot_ix_axes(&b->ctx->ix, to[d]);
    if (never) {
        if (!jot_reduce_op_identity(op, dtype, &identity)) {
            jot_build_fail(b, "a reduction without an identity");
            return 0;
        }
        return reduce_times(b, node, jot_v_const(b->k, dtype, identity));
    }
    v = reduce_body(b, node, at, g);
    if (node->op == REDUCE_VAR && v)
        v = reduce_deviation(b, node, axes, v);
    if (v && (op == EW_MAX || op == EW_MIN) && dtype == JOT_F32) /* it is compared with the terms */
        v = jot_build_rounded(b, (jot_DType)node->dtype, v);
    return v ? jot_v_reduce(b->k, op, axes, v, g->n, g->v, reduce_scale(node)) : 0;
}

/* The axes of a point of y. */
static uint64_t
reduce_axes(Build *b, const Node *node, const Ix *at)
{
    uint64_t axes = 0;
    int d;

    for (d = jot_node(b->ctx, node->input[0])->rank; d-- > 0;)
        axes |= jot_ix_axes(&b->ctx->ix, at[d]);
    return axes;
}

/* A choice of axes: conditions, and where the output lies if the input lies at `index`. */
static bool
reduce_where(Build *b, const Node *node, const Ix *index, Ix *to, Guards *g, bool *never)
{
    int rank = jot_node(b->ctx, node->input[0])->rank, d;

    if (!reduce_conditions(b, node, index, g, never))
        return false;
    for (d = 0; d < node->rank; d++)
        to[d] = jot_ix_subst(&b->ctx->ix, node->index[d], rank, index, NULL, &b->space);
    return true;
}

static bool
reduce_plain(Build *b, NodeId id, const Ix *index)
{
    const Node *node = jot_node(b->ctx, id);
    Guards g = {0, {0}};
    bool never = false;
    Ix to[JOT_MAX_RANK];
    uint32_t v;

    if (!reduce_where(b, node, index, to, &g, &never))
        return false;
    v = reduce_value(b, node, reduce_axes(b, node, index), to, index, &g, never);
    return reduce_store(b, id, to, v, EW_NONE, NULL);
}

JOT_FN uint32_t
jot_build_inner(Build *b, NodeId id, const Ix *index)
{
    const Node *node = jot_node(b->ctx, id);
    Guards g = {0, {0}};
    bool never = false;
    Ix at[JOT_MAX_RANK], to[JOT_MAX_RANK];
    uint32_t v;
    int axis[JOT_MAX_RANK], n = 0, d;

    if (b->graph->fusion->group[node->at] != b->group || !jot_build_is_plain(b->ctx, node)) {
        jot_build_fail(b, "a reduction of another group");
        return 0;
    }
    jot_build_space(b, id, at);
    if (!reduce_where(b, node, at, to, &g, &never))
        return 0;
    v = reduce_value(b, node, reduce_axes(b, node, at), to, at, &g, never);
    for (d = 0; d < node->rank; d++) {
        if (to[d] == index[d] || node->ext[d] == 1)
            continue;
        if (!jot_ix_is_axis(&b->ctx->ix, to[d], &axis[n])) {
            jot_build_fail(b, "a reduction is read where it is not");
            return 0;
        }
        to[n++] = index[d];
    }
    v = n ? jot_v_at(b->k, v, n, axis, to) : v;
    return jot_build_rounded(b, (jot_DType)node->dtype, v);
}

/* Terms are added to variable `into`, which is the node itself, or a sum that goes on from it. */
static bool
reduce_scatter(Build *b, NodeId id, NodeId into, const Ix *index)
{
    const Node *node = jot_node(b->ctx, id);
    EwOp op = (EwOp)jot_reduce_info[node->op].combine;
    int rank = jot_node(b->ctx, node->input[0])->rank, slots[64], d;
    Guards g = {0, {0}};
    bool never = false;
    Ix to[JOT_MAX_RANK];

    if (!jot_build_slots(b, node, slots) || !reduce_conditions(b, node, index, &g, &never))
        return false;
    for (d = 0; d < node->nindex; d++) {
        to[d] = jot_ix_subst(&b->ctx->ix, node->index[d], rank, index, slots, &b->space);
        jot_build_bounds(b, to[d], node->ext[d], &g, &never);
    }
    if (never) { /* nothing lands: a condition that never holds keeps the clearing of the buffer */
        g.n = 1;
        g.v[0] = jot_ix_const(&b->ctx->ix, 0);
    }
    return reduce_store(b, into, to, reduce_times(b, node, reduce_body(b, node, index, &g)), op,
                        &g);
}

JOT_FN NodeId
jot_build_begun(jot_Ctx *ctx, const Fusion *f, uint32_t group, NodeId id)
{
    const Node *z = jot_node(ctx, id);

    for (int k = 0; z->kind == NODE_EW && k < z->ninputs; k++) {
        NodeId r = jot_build_real(ctx, z->input[k]);
        const Node *node = jot_node(ctx, r);

        if (node->kind == NODE_REDUCE && !node->data && f->place[node->at] == PLACE_INSIDE
            && f->group[node->at] == group && !jot_build_is_plain(ctx, node))
            return r;
    }
    return 0;
}

/* Axes of z are walked by its first store alone, which goes before all others of the kernel: those
 * share loops with the second (ccode/rewrite/scatter.c has such, too). */
JOT_FN bool
jot_build_begin(Build *b, NodeId id, NodeId scatter)
{
    const Node *z = jot_node(b->ctx, id);
    bool first = jot_build_real(b->ctx, z->input[0]) == scatter;
    Guards none = {0, {0}};
    Ix index[JOT_MAX_RANK];
    uint32_t x, n;
    KStore begin;
    int axis;

    jot_build_space(b, id, index);
    for (int d = 0; d < z->rank; d++)
        if (jot_ix_is_axis(&b->ctx->ix, index[d], &axis))
            b->k->axes.v[axis].kind = AXIS_CLEAR;
    x = jot_build_value(b, z->input[first], index, &none);
    if (!reduce_store(b, id, index, x, EW_NONE, NULL))
        return false;
    n = b->k->stores.n - 1;
    begin = b->k->stores.v[n];
    memmove(b->k->stores.v + 1, b->k->stores.v, n * sizeof begin);
    b->k->stores.v[0] = begin;
    jot_build_space(b, scatter, index);
    if (!reduce_scatter(b, scatter, id, index))
        return false;
    b->k->stores.v[n + 1].onto = true;
    jot_kernel_refresh(b->k);
    return true;
}

/* ---- alone in its group ------------------------------------------------------------------- */

static bool
reduce_inverted(Build *b, NodeId id, bool *done)
{
    const Node *node = jot_node(b->ctx, id);
    BuildSolved s;
    uint32_t v;

    *done = jot_build_invert(b, node, &s);
    if (!*done)
        return !b->ctx->mem.failed || jot_build_fail(b, "invert");
    if (!reduce_conditions(b, node, s.sol, &s.g, &s.never))
        return false;
    v = reduce_value(b, node, ((uint64_t)1 << b->k->axes.n) - 1, s.out, s.sol, &s.g, s.never);
    return reduce_store(b, id, s.out, v, EW_NONE, NULL);
}

static bool
reduce_scatter_alone(Build *b, NodeId id)
{
    const Node *y = jot_node(b->ctx, jot_node(b->ctx, id)->input[0]);
    Ix index[JOT_MAX_RANK];
    int d;

    for (d = 0; d < y->rank; d++)
        if (!jot_build_axis(b, "i", d, y->ext[d], &index[d]))
            return jot_build_fail(b, "too many axes");
    return reduce_scatter(b, id, id, index);
}

JOT_FN bool
jot_build_reduce(Build *b, NodeId id, const Ix *index, bool alone)
{
    bool done;

    if (!alone)
        return jot_build_is_plain(b->ctx, jot_node(b->ctx, id)) ? reduce_plain(b, id, index)
                                                               : reduce_scatter(b, id, id, index);
    if (!reduce_inverted(b, id, &done))
        return false;
    return done || reduce_scatter_alone(b, id);
}
