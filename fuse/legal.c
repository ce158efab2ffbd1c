/* fuse/legal.c - what may not be fused, one predicate per reason, and what is not worth repeating.
 *
 *     operator        before it                        after it
 *     reindex         rule 1: a group boundary         fused into each reader
 *     element-wise    fused                            fused
 *     reindex-reduce  fused                            rule 2: a group boundary
 *
 * Rules 1 to 3: [J] 4.1. Rule 3 is not here: levels keep groups free of cycles (fuse/label.c).
 *
 * Read before: fuse/work.h. After: fuse/vertex.c. */
#include "fuse/work.h"
#include "ops/maps.h"
#include "target/thresholds.h"

JOT_FN const char *
jot_fuse_why(FuseWhy why)
{
    static const char *const text[WHYS] = {
        "policy none: each operator is a kernel",
        "rule 1: a reindex is not fused with what precedes it",
        "rule 2: nothing is fused after a reindex-reduce",
        "rule 3: it would close a cycle",
        "two contractions never share a nest",
        "stop_fuse",
        "an index variable is in memory",
        "user code reads and writes whole arrays",
        "a scatter is solved for its outputs in a nest of its own",
        "a scatter begins with what is added to it, if that sum is stored alone, read by no other",
        "the group would have too many nodes",
        "the group would read and store too many variables",
        "a long sum is cut into pieces of one length",
        "a contraction stores what element-wise work on its own axes makes of it, no more",
        "products are summed over windows by a nest of their own, and not summed up there",
        "a running reduction shares a nest with no sum but others that run the same way",
        "one step of the shared axes would not stay in a cache",
        "it would cost more than it saves",
    };

    return (unsigned)why < WHYS ? text[why] : "";
}

JOT_FN bool
jot_fuse_is_elementwise(const Node *node)
{
    return node->kind == NODE_EW || node->kind == NODE_MAP;
}

JOT_FN uint8_t
jot_fuse_weight(const Node *node)
{
    return 1 + (node->dtype == JOT_F16 || node->dtype == JOT_BF16);
}

/* Each index an axis of its own, as long as the dimension it indexes; 0 where that is 1 long. */
JOT_FN bool
jot_fuse_is_broadcast(const Fuser *f, uint32_t pos)
{
    const Node *r = f->node[pos], *x;
    uint64_t used = 0;
    int64_t c;
    int d, axis;

    if (r->kind != NODE_REINDEX || r->ncond || r->ninputs != 1)
        return false;
    x = f->node[f->in[f->in0[pos]]];
    for (d = 0; d < r->nindex; d++) {
        if (jot_ix_is_const(&f->ctx->ix, r->index[d], &c)) {
            if (c || x->ext[d] != 1)
                return false;
            continue;
        }
        if (!jot_ix_is_axis(&f->ctx->ix, r->index[d], &axis) || axis >= r->rank ||
            r->ext[axis] != x->ext[d] || (used >> axis & 1))
            return false;
        used |= (uint64_t)1 << axis;
    }
    return true;
}

JOT_FN bool
jot_fuse_is_merged(const Fuser *f, uint32_t pos, int *dim)
{
    return f->merged[pos] && jot_maps_merged(&f->ctx->ix, f->node[pos],
                                             f->node[f->in[f->in0[pos]]], dim);
}

/* Axes that a factor of a product depends on, if it is a reindex, or one that is converted. */
static bool
legal_factor_axes(const Fuser *f, uint32_t pos, uint64_t *axes)
{
    const Node *r = f->node[pos];
    int d;

    while (r->kind == NODE_EW && r->op == EW_CAST && !(f->bits[pos] & FN_LEAF)) {
        pos = f->in[f->in0[pos]];
        r = f->node[pos];
    }
    if (r->kind != NODE_REINDEX)
        return false;
    *axes = 0;
    for (d = 0; d < r->nindex; d++)
        *axes |= jot_ix_axes(&f->ctx->ix, r->index[d]);
    return true;
}

/* Sum of a product of two variables, each of which lacks an axis of the product. What schedules
 * call a contraction is found in the kernel (ccode/contract/contract.c); here are nodes only. */
JOT_FN bool
jot_fuse_is_contraction(const Fuser *f, uint32_t pos)
{
    const Node *sum = f->node[pos], *mul;
    uint64_t full = 0, a, b;
    uint32_t m;
    int k;

    if (sum->kind != NODE_REDUCE || (sum->op != JOT_ADD && sum->op != JOT_MEAN))
        return false;
    m = f->in[f->in0[pos]];
    mul = f->node[m];
    if (mul->kind != NODE_EW || mul->op != EW_MUL || (f->bits[m] & FN_LEAF) ||
        !legal_factor_axes(f, f->in[f->in0[m]], &a) ||
        !legal_factor_axes(f, f->in[f->in0[m] + 1], &b))
        return false;
    for (k = 0; k < mul->rank; k++)
        full |= (uint64_t)(mul->ext[k] > 1) << k;
    return (full & ~a) && (full & ~b);
}

JOT_FN void
jot_fuse_factors(const Fuser *f, uint32_t pos, uint64_t axes[2])
{
    uint32_t mul = f->in[f->in0[pos]];
    int k;

    for (k = 0; k < 2; k++)
        if (!legal_factor_axes(f, f->in[f->in0[mul] + (uint32_t)k], &axes[k]))
            axes[k] = 0;
}

/* A reduction whose map is not merely a choice of axes. */
JOT_FN bool
jot_fuse_is_scatter(const Fuser *f, uint32_t pos)
{
    const Node *r = f->node[pos];
    uint64_t used = 0;
    int64_t c;
    int d, axis;

    if (r->kind != NODE_REDUCE)
        return false;
    if (r->ncond || r->ninputs != 1)
        return true;
    for (d = 0; d < r->nindex; d++) {
        if (jot_ix_is_const(&f->ctx->ix, r->index[d], &c))
            continue;
        if (!jot_ix_is_axis(&f->ctx->ix, r->index[d], &axis) || (used >> axis & 1))
            return true;
        used |= (uint64_t)1 << axis;
    }
    return false;
}

/* ... and reads no index variable: it can be solved for its outputs. */
JOT_FN bool
jot_fuse_is_solved(const Fuser *f, uint32_t pos)
{
    const Node *r = f->node[pos];
    bool slots = false;
    int d;

    for (d = 0; d < r->nindex; d++)
        slots = slots || jot_ix_slots(&f->ctx->ix, r->index[d]);
    return !slots && jot_fuse_is_scatter(f, pos);
}

JOT_FN FuseWhy
jot_fuse_edge_why(const Fuser *f, uint32_t p, uint32_t c, uint32_t k, bool through)
{
    const Node *from = f->node[p], *to = f->node[c];

    if (f->ask->policy == FUSE_NONE)
        return WHY_POLICY;
    if (from->kind == NODE_PICK || from->kind == NODE_STACK || to->kind == NODE_CODE
        || to->kind == NODE_STACK)
        return WHY_CODE;
    if (k && (to->kind == NODE_REINDEX || to->kind == NODE_REDUCE))
        return WHY_INDEX;
    if (f->bits[p] & FN_BARRIER)
        return f->cut[p] ? WHY_PIECES : WHY_STOP_FUSE;
    if (from->kind == NODE_REDUCE)
        return WHY_RULE2;
    if (through || to->kind == NODE_REINDEX)
        return WHY_RULE1;
    return WHYS;
}

JOT_FN bool
jot_fuse_sizes_ok(uint32_t weight, uint32_t ncontract, uint32_t nbuf, FuseWhy *why)
{
    *why = ncontract > 1         ? WHY_CONTRACTIONS
           : weight > FUSE_NODES ? WHY_NODES
           : nbuf > FUSE_BUFFERS ? WHY_BUFFERS
                                 : WHYS;
    return *why == WHYS;
}

/* ---- what a reindex touches --------------------------------------------------------------- */

/* Distance in elements of x between two neighbours of the result; -1: at random. */
static int64_t
legal_step(const Fuser *f, const Node *r, const Node *x)
{
    const IxPool *ix = &f->ctx->ix;
    int64_t stride = 1, step = 0;
    int d, inner = r->rank - 1;

    while (inner >= 0 && r->ext[inner] == 1)
        inner--;
    for (d = r->nindex; d-- > 0; stride *= x->ext[d] > 0 ? x->ext[d] : 1) {
        bool inside = false;
        int64_t c = inner < 0 ? 0 : jot_ix_coef(ix, r->index[d], inner, &inside);

        if (inside && jot_ix_slots(ix, r->index[d]))
            return -1;
        step += c * stride;
    }
    return step < 0 ? -step : step;
}

/* k x touched > touched + (1 + k) x bytes: reading once and storing is less traffic. Expanding maps
 * never are; nor is what stays in a cache while its lines are read again. */
JOT_FN bool
jot_fuse_reindex_dear(const Fuser *f, uint32_t pos, uint32_t k)
{
    const Node *r = f->node[pos], *x = f->node[f->in[f->in0[pos]]];
    int64_t size = (int64_t)jot_dtype_nbytes((jot_DType)r->dtype), step;

    if (k < 2 || r->nelem > x->nelem || x->nelem * size <= LEGAL_CACHE)
        return false;
    step = legal_step(f, r, x);
    if (step >= 0 && step * size < CACHE_LINE)
        return false;
    if (step > 0 && r->rank && r->ext[r->rank - 1] * CACHE_LINE <= LEGAL_CACHE)
        return false; /* a transpose whose lines are still there for the next row */
    return (k - 1) * (int64_t)CACHE_LINE > (1 + k) * size;
}
