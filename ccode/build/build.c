/* ccode/build/build.c - a group becomes a kernel: its axes, buffers and guards, and a store for
 * each member that is kept in memory; the values are found by descent (ccode/build/value.c).
 *
 *     group stores %6, axes of %5     i0, i1 of the kernel     y0[i0, i1] = value(%6, (i0, i1))
 *     one reduction, stored alone     ccode/build/reduce.c: its axes are free to be solved for
 *
 * A guard is a condition over the kernel's axes. Of two bounds of one expression the stronger one
 * stays, and quotients are taken apart, so that a chain of maps does not ask twice.
 *
 * Read before: ccode/build/build.h. After: ccode/build/value.c, ccode/build/reduce.c,
 * ccode/build/order.c, then ccode/strategy/passes.c. */
#include "ccode/build/build.h"
#include "ops/maps.h"

JOT_FN bool
jot_build_fail(Build *b, const char *what)
{
    if (b->ctx->status)
        return false;
    return b->ctx->mem.failed ? jot_fail_memory(b->ctx, "build")
                              : jot_fail(b->ctx, JOT_EUSE, "build: %s", what);
}

/* ---- pieces ------------------------------------------------------------------------------- */

JOT_FN bool
jot_build_axis(Build *b, const char *letter, int number, int64_t ext, Ix *index)
{
    int axis;

    *index = jot_ix_const(&b->ctx->ix, 0);
    if (ext == 1)
        return true;
    axis = jot_kernel_axis_f(b->k, ext, "%s%d", letter, number);
    if (axis < 0)
        return false;
    b->ext[axis] = ext;
    *index = jot_ix_axis(&b->ctx->ix, axis);
    return true;
}

JOT_FN NodeId
jot_build_real(jot_Ctx *ctx, NodeId id)
{
    while (jot_node(ctx, id)->kind == NODE_ALIAS && !jot_node(ctx, id)->data)
        id = jot_node(ctx, id)->input[0];
    return id;
}

JOT_FN bool
jot_build_in_memory(Build *b, NodeId id)
{
    const Node *node = jot_node(b->ctx, id);
    const Fusion *f = b->graph->fusion;

    return node->data || f->place[node->at] == PLACE_LEAF
        || (f->place[node->at] == PLACE_STORED && f->group[node->at] != b->group);
}

JOT_FN uint32_t
jot_build_buffer(Build *b, NodeId id, BufRole role)
{
    const Node *node = jot_node(b->ctx, id);
    char name[16];
    Text text = {NULL, NULL, 0, 0};
    uint32_t buf = jot_find_u32(b->args->bufs.v, b->args->bufs.n, id);

    if (buf)
        return buf;
    text.s = name;
    text.cap = sizeof name;
    jot_text_f(&text, "%s%u", role == BUF_INPUT ? "x" : "y", b->args->bufs.n);
    if (!jot_vec_reserve(&b->ctx->mem, b->args->bufs, 1))
        return 0;
    buf = jot_kernel_buf(b->k, name, node->dtype, role, node->rank, node->ext);
    if (buf)
        *(NodeId *)jot_vec_push(&b->ctx->mem, b->args->bufs) = id;
    return buf;
}

/* floor(e / c) + k >= 0 is e + ck >= 0, and k - floor(e / c) >= 0 is ck + c - 1 - e >= 0. */
static Ix
build_plain_bound(IxPool *p, Ix cond, const Space *space)
{
    const IxRec *r = &p->recs.v[cond];
    const IxTerm *t;
    IxTerm tmp;
    int64_t k, c, sign;
    uint32_t n;
    Ix e;

    if (r->op != IX_GE0)
        return cond;
    t = jot_ix_linear(p, r->a, &k, &n, &tmp);
    if (n != 1 || (t->k != 1 && t->k != -1) || p->recs.v[t->atom].op != IX_DIV
        || !jot_ix_is_const(p, p->recs.v[t->atom].b, &c) || c < 1 || k > 1 << 30 || k < -(1 << 30)
        || c > 1 << 30)
        return cond;
    sign = t->k;
    e = jot_ix_scale(p, p->recs.v[t->atom].a, sign);
    e = jot_ix_add(p, e, jot_ix_const(p, c * k + (sign < 0 ? c - 1 : 0)));
    return build_plain_bound(p, jot_ix_ge0(p, e, space), space);
}

/* Do both say x >= constant of the same x? Then *a_stronger: a implies b. */
static bool
build_same_bound(const IxPool *p, Ix a, Ix b, bool *a_stronger)
{
    IxTerm tmp[2];
    const IxTerm *t[2];
    int64_t c[2];
    uint32_t n[2], i;

    if (p->recs.v[a].op != IX_GE0 || p->recs.v[b].op != IX_GE0)
        return false;
    t[0] = jot_ix_linear(p, p->recs.v[a].a, &c[0], &n[0], &tmp[0]);
    t[1] = jot_ix_linear(p, p->recs.v[b].a, &c[1], &n[1], &tmp[1]);
    for (i = 0; i < n[0] && n[0] == n[1]; i++)
        if (t[0][i].atom != t[1][i].atom || t[0][i].k != t[1][i].k)
            return false;
    *a_stronger = c[0] <= c[1];
    return n[0] == n[1];
}

JOT_FN bool
jot_build_guard(Build *b, Guards *g, Ix cond)
{
    IxPool *p = &b->ctx->ix;
    int64_t value;
    bool stronger;
    int i;

    cond = build_plain_bound(p, cond, &b->space);
    if (jot_ix_is_const(p, cond, &value))
        return value != 0;
    for (i = 0; i < g->n; i++) {
        if (g->v[i] == cond)
            return true;
        if (build_same_bound(p, cond, g->v[i], &stronger)) {
            g->v[i] = stronger ? cond : g->v[i];
            return true;
        }
    }
    if (g->n == BUILD_GUARDS) /* cannot happen in practice; still right: one longer condition */
        g->v[g->n - 1] = jot_ix_and(p, g->v[g->n - 1], cond);
    else
        g->v[g->n++] = cond;
    return true;
}

JOT_FN bool
jot_build_slots(Build *b, const Node *node, int *slots)
{
    uint64_t used = 0;
    int i, s;

    for (i = 0; i < node->nindex; i++)
        used |= jot_ix_slots(&b->ctx->ix, node->index[i]);
    for (i = 0; i < node->ncond; i++)
        used |= jot_ix_slots(&b->ctx->ix, node->cond[i]);
    for (i = 0; i + 1 < node->ninputs; i++) {
        NodeId id = jot_build_real(b->ctx, node->input[i + 1]);
        uint32_t buf;

        slots[i] = 0;
        if (!(used >> i & 1))
            continue;
        if (!jot_build_in_memory(b, id))
            return jot_build_fail(b, "an index variable is not in memory");
        buf = jot_build_buffer(b, id, BUF_INPUT);
        for (s = 0; s < (int)b->k->slots.n && b->k->slots.v[s] != buf; s++)
            ;
        if (!buf || s >= 64)
            return jot_build_fail(b, "more than 64 index variables in one kernel");
        jot_kernel_slot(b->k, s, buf);
        slots[i] = s;
    }
    return true;
}

/* ---- a group ------------------------------------------------------------------------------ */

/* An axis of the kernel for each of the group's of more than one element. */
static bool
build_axes(Build *b, const FuseGroup *group)
{
    uint32_t d;

    for (d = 0; d < group->rank; d++)
        if (!jot_build_axis(b, "i", (int)d, group->ext[d], &b->axis[d]))
            return jot_build_fail(b, "too many axes");
    return true;
}

JOT_FN void
jot_build_space(Build *b, NodeId id, Ix *index)
{
    const Node *node = jot_node(b->ctx, id);
    const uint8_t *axis = b->graph->fusion->axis[node->at];
    const Node *x = node->ninputs ? jot_node(b->ctx, jot_build_real(b->ctx, node->input[0])) : node;
    bool merged;
    int d, dim[JOT_MAX_RANK];
    Ix at[JOT_MAX_RANK];

    merged = b->graph->fusion->merged[node->at] && jot_maps_merged(&b->ctx->ix, node, x, dim);
    node = node->kind == NODE_REDUCE ? jot_node(b->ctx, node->input[0]) : merged ? x : node;
    for (d = 0; d < node->rank; d++)
        at[d] = !axis                     ? b->axis[d]
              : axis[d] == FUSE_NO_AXIS ? jot_ix_const(&b->ctx->ix, 0) : b->axis[axis[d]];
    for (d = 0; merged && d < jot_node(b->ctx, id)->rank; d++)
        index[d] = jot_ix_const(&b->ctx->ix, 0); /* where x has no dimension, of one element */
    for (d = 0; d < node->rank; d++) {
        int to = merged ? dim[d] : d;

        index[to] = d && merged && to == dim[d - 1]
                        ? jot_ix_add(&b->ctx->ix, jot_ix_scale(&b->ctx->ix, index[to],
                                                               node->ext[d]), at[d])
                        : at[d];
    }
}

static bool
build_store(Build *b, NodeId id, const Ix *index)
{
    Guards none = {0, {0}};
    uint32_t value = jot_build_value(b, id, index, &none), buf;

    if (!value)
        return false;
    buf = jot_build_buffer(b, id, BUF_OUTPUT);
    return jot_kernel_store(b->k, buf, index, value, EW_NONE, 0, NULL) >= 0
        || jot_build_fail(b, "a store was refused");
}

/* The n-th stored member of the group, 0: there is none. */
static NodeId
build_stored(const Build *b, uint32_t n)
{
    const Fusion *f = b->graph->fusion;
    const FuseGroup *g = &f->groups[b->group];
    uint32_t i;

    for (i = g->first; i < g->first + g->n; i++)
        if (f->place[f->member[i]] == PLACE_STORED && !n--)
            return b->graph->list->v[f->member[i]];
    return 0;
}

static bool
build_group(Build *b)
{
    NodeId id = build_stored(b, 0);
    const Node *node = jot_node(b->ctx, id);
    Ix index[JOT_MAX_RANK];
    uint32_t i;

    if (node->kind == NODE_REDUCE && !build_stored(b, 1) && !jot_build_is_plain(b->ctx, node))
        return jot_build_reduce(b, id, NULL, true);
    if (!build_axes(b, &b->graph->fusion->groups[b->group]))
        return false;
    for (i = 0; id; id = build_stored(b, ++i)) {
        NodeId begun = jot_build_begun(b->ctx, b->graph->fusion, b->group, id);

        jot_build_space(b, id, index);
        if (begun                                         ? !jot_build_begin(b, id, begun)
            : jot_node(b->ctx, id)->kind == NODE_REDUCE ? !jot_build_reduce(b, id, index, false)
                                                          : !build_store(b, id, index))
            return false;
    }
    return true;
}

JOT_FN bool
jot_build_kernel(jot_Ctx *ctx, const BuildGraph *graph, uint32_t group, Kernel *k, BuildArgs *args)
{
    Build b;
    bool ok;
    int i;

    memset(&b, 0, sizeof b);
    b.ctx = ctx;
    b.graph = graph;
    b.group = group;
    b.k = k;
    b.args = args;
    b.space.n = BUILD_SYMBOLS;
    b.space.ext = b.ext;
    for (i = 0; i < BUILD_SYMBOLS; i++)
        b.ext[i] = 1;
    ok = jot_kernel_open(k, &ctx->mem, &ctx->ix) && build_group(&b);
    jot_build_values_free(&b);
    return (ok && !ctx->mem.failed) || jot_build_fail(&b, "a kernel was refused");
}

JOT_FN void
jot_build_free(jot_Ctx *ctx, BuildArgs *args)
{
    jot_vec_free(&ctx->mem, args->bufs);
    jot_vec_free(&ctx->mem, args->scalars);
    jot_vec_free(&ctx->mem, args->maps);
}
