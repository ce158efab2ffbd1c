/* plan/donate.c - what is written over what it is computed from: updates of state, and
 * temporaries whose last reader has a result of their kind.
 *
 *     step 3   dx = ... w ...             reads w
 *     step 4   w1 = w - rate * dw         the last that reads w: w1 in the memory of w
 *
 *     wish     of a group: this result over that input; before its kernel is printed, the same of
 *              its buffers                                       asked of ccode/emit/alias.c
 *     note     it may: the variables are a pair
 *     settle   after the order: pairs whose old variable ends where the new one begins stay
 *     run      state: may its old value go now?
 *
 * The old value of a state may go when nothing that a handle names needs it any more, but for
 * temporaries of the innermost scope that other nodes were made of: who reads one of these later is
 * told (plan.c). A result, which nothing was made of, and a handle outside, or kept by jot_keep, go
 * on meaning the old value, and the new one gets memory of its own; so do all in an evaluation that
 * a builder begins (JOT_START_NODES). Nothing can fail between the first such writing and the end
 * of the run.
 *
 *   requires  fused groups      keeps  values
 *   breaks    nothing: fills PlanVar.over, Selection.over
 *
 * Read before: plan/kernel.c. After: plan/order.c, plan/memory.c, plan/run.c. */
#include "plan/function/function.h"
#include "target/thresholds.h"

/* ---- wishes -------------------------------------------------------------------------------- */

static bool
donate_at(const Make *m, NodeId id, uint32_t *pos)
{
    *pos = jot_node(m->ctx, id)->at;
    return *pos < m->s->list.n && m->s->list.v[*pos] == id;
}

/* The state whose new value stands at this position. False: none that has its old one there. */
static bool
donate_state(const Make *m, uint32_t pos, uint32_t *leaf)
{
    jot_Ctx *ctx = m->ctx;
    uint32_t i, at;

    if (ctx->config.check) /* what fails when all has run leaves every state as it was */
        return false;
    for (i = 0; i + 1 < m->s->updates.n; i += 2)
        if (donate_at(m, jot_build_real(ctx, m->s->updates.v[i + 1]), &at) && at == pos)
            return donate_at(m, m->s->updates.v[i], leaf);
    for (i = 0; i < ctx->undo.n; i++) {
        NodeId now = jot_undo_now(ctx, i);

        if (now && donate_at(m, jot_build_real(ctx, now), &at) && at == pos)
            return donate_at(m, ctx->undo.v[i].old, leaf)
                && jot_node(ctx, ctx->undo.v[i].old)->kind == NODE_LEAF;
    }
    return false;
}

/* The group has the variable in memory, row-major or in a layout without a halo, and no copy of
 * it. */
static bool
donate_plain(Make *m, uint32_t group, uint32_t pos)
{
    const Layout *l = m->layout[pos];
    int d;

    for (d = 0; l && d < l->rank; d++)
        if (l->halo_lo[d] || l->halo_hi[d])
            return false;
    return !jot_plan_copy_of(m, group, pos);
}

static bool
donate_same(const Make *m, uint32_t a, uint32_t b)
{
    const Node *x = jot_node(m->ctx, m->s->list.v[a]), *y = jot_node(m->ctx, m->s->list.v[b]);
    const Layout *l = m->layout[a], *k = m->layout[b];

    return x->dtype == y->dtype && x->rank == y->rank
        && !memcmp(x->ext, y->ext, x->rank * sizeof *x->ext)
        && (l && k ? jot_layout_eq(l, k) : l == k);
}

/* A temporary that the group reads, of which it is not the only one to know. */
static bool
donate_is_temp(const Make *m, uint32_t group, uint32_t pos)
{
    return !jot_node(m->ctx, m->s->list.v[pos])->data && !m->root[pos]
        && m->fusion->place[pos] == PLACE_STORED && m->fusion->group[pos] != group;
}

/* What result `out` may lie over: the state's old value, or the temporary that the fewest read.
 * False: nothing. */
static bool
donate_choose(Make *m, uint32_t group, uint32_t out, uint32_t *in)
{
    const GroupKey *sought = &m->sought;
    uint32_t leaf = 0, least = DONATE_READERS + 1, i;
    bool state = m->root[out] != 0, found = false;

    if ((state && !donate_state(m, out, &leaf)) || !donate_plain(m, group, out))
        return false;
    for (i = 0; i < sought->pos.n; i++) {
        uint32_t pos = sought->pos.v[i];

        if ((state ? pos != leaf : !donate_is_temp(m, group, pos) || m->readers[pos] >= least)
            || !donate_plain(m, group, pos) || !donate_same(m, pos, out))
            continue;
        *in = pos;
        found = true;
        least = m->readers[pos];
    }
    return found;
}

static bool
donate_taken(const Make *m, uint32_t pos)
{
    uint32_t i;

    for (i = 0; i < m->wishes.n; i++)
        if (m->wishes.v[i].in == pos)
            return true;
    return false;
}

/* Is the result a scatter's, which begins with `in` where that ends? Then it need not be stored. */
static bool
donate_begins(const Make *m, uint32_t group, uint32_t out, uint32_t in)
{
    return (m->root[out] || m->readers[in] == 1)
        && jot_build_begun(m->ctx, m->fusion, group, m->s->list.v[out]);
}

JOT_FN bool
jot_donate_wishes(Make *m, uint32_t group)
{
    const FuseGroup *g = &m->fusion->groups[group];
    uint32_t i, in;

    m->wishes.n = 0;
    for (i = g->first; i < g->first + g->n && !m->dialect->device && !m->plan->dialect; i++) {
        uint32_t out = m->fusion->member[i];

        if (m->fusion->place[out] != PLACE_STORED || !donate_choose(m, group, out, &in)
            || donate_taken(m, in))
            continue;
        if (!jot_vec_reserve(&m->ctx->mem, m->wishes, 1))
            return false;
        m->wishes.v[m->wishes.n++] = (PlanWish){out, in, donate_begins(m, group, out, in)};
    }
    return true;
}

/* The number of the buffer that is the variable at a position; 0: none. */
static uint32_t
donate_buf(const Make *m, const BuildArgs *args, uint32_t pos)
{
    uint32_t most = args->bufs.n < 255 ? args->bufs.n : 255;

    return jot_find_u32(args->bufs.v, most, m->s->list.v[pos]);
}

JOT_FN void
jot_donate_wish(const Make *m, Kernel *k, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < m->wishes.n; i++) {
        uint32_t out = donate_buf(m, args, m->wishes.v[i].out);
        uint32_t in = donate_buf(m, args, m->wishes.v[i].in);

        if (out && in && k->bufs.v[out].role == BUF_OUTPUT && k->bufs.v[in].role == BUF_INPUT) {
            k->bufs.v[out].over = (uint8_t)in;
            k->bufs.v[out].ends = m->wishes.v[i].ends;
        }
    }
}

/* The step's arguments are there, in the order of the kernel's buffers. */
JOT_FN void
jot_donate_note(Make *m, const PlanStep *step, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < m->wishes.n; i++) {
        uint32_t out = donate_buf(m, args, m->wishes.v[i].out);
        uint32_t in = donate_buf(m, args, m->wishes.v[i].in), var;
        PlanVar *v;

        if (!out || !in || !jot_buf_in(&step->over, out))
            continue;
        var = m->plan->args.v[step->arg + in - 1];
        v = &m->plan->vars.v[m->plan->args.v[step->arg + out - 1]];
        if (v->kind == VAR_ASKED ? m->plan->vars.v[var].kind == VAR_LEAF
            : v->kind == VAR_TEMP && m->plan->vars.v[var].kind == VAR_TEMP
              && v->nbytes == m->plan->vars.v[var].nbytes)
            v->over = var + 1;
    }
}

JOT_FN bool
jot_donate_holds(const Plan *plan, uint32_t var)
{
    const PlanVar *v = &plan->vars.v[var];

    return v->over && plan->vars.v[v->over - 1].last == v->first;
}

JOT_FN void
jot_donate_settle(Plan *plan)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        if (!jot_donate_holds(plan, i))
            plan->vars.v[i].over = 0;
        plan->overs |= plan->vars.v[i].over && plan->vars.v[i].kind == VAR_ASKED;
    }
}

/* ---- a run --------------------------------------------------------------------------------- */

typedef struct {
    jot_Ctx *ctx;
    const Selection *s;
    uint8_t *needed;         /* per position: a leaf whose value must stay */
    uint8_t *seen;           /* bits, per node */
    Vec(NodeId) stack;
} DonateRun;

/* The node's value is needed after the run: what is computed by it is there then, what it stands on
 * stays. False: refused. */
static bool
donate_need(DonateRun *r, NodeId id)
{
    Mem *mem = &r->ctx->mem;

    r->stack.n = 0;
    for (;;) {
        const Node *n = jot_node(r->ctx, id);
        bool listed = jot_plan_listed(r->ctx, r->s, id);
        int k;

        if (listed && n->data)
            r->needed[n->at] = 1;
        if (!n->data && !(listed && r->s->asked[n->at]) && !(r->seen[id / 8] >> id % 8 & 1)) {
            r->seen[id / 8] |= (uint8_t)(1 << id % 8);
            if (!jot_vec_reserve(mem, r->stack, (uint32_t)n->ninputs))
                return false;
            for (k = 0; k < n->ninputs; k++)
                *(NodeId *)jot_vec_push(mem, r->stack) = n->input[k];
        }
        if (!r->stack.n)
            return true;
        id = r->stack.v[--r->stack.n];
    }
}

static bool
donate_needed(DonateRun *r)
{
    jot_Ctx *ctx = r->ctx;
    uint32_t i, k;

    for (k = 0; k < ctx->plans->funcs.n; k++) {
        const Func *f = ctx->plans->funcs.v[k].f;

        for (i = 0; f && i < f->leaves.n; i++)
            if (f->leaves.v[i].kind == LEAF_CONST && !donate_need(r, f->leaves.v[i].node))
                return false;
    }
    for (i = 0; i < ctx->held.n; i++)
        if (!donate_need(r, ctx->held.v[i].old))
            return false;
    for (i = 0; i < r->s->wanted.n; i++)
        if (!donate_need(r, r->s->wanted.v[i]))
            return false;
    for (i = 1; i < ctx->slots.n; i++) {
        const Slot *slot = &ctx->slots.v[i];
        const Node *n = slot->node ? jot_node(ctx, slot->node) : NULL;
        bool used = n && slot->depth && slot->depth == ctx->marks.n && n->refs > 1;

        if (n && (!used || n->data) && !donate_need(r, slot->node))
            return false;
    }
    return true;
}

static void
donate_allow(DonateRun *r, const Plan *plan, uint32_t *over)
{
    uint32_t i, k;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];
        uint32_t pos = v->over ? plan->vars.v[v->over - 1].pos : 0;
        NodeId id = r->s->list.v[pos];

        if (!v->over || v->kind != VAR_ASKED || r->needed[pos]
            || !jot_buffer_own(jot_node(r->ctx, id)->data))
            continue;
        for (k = 0; k < r->ctx->undo.n && r->ctx->undo.v[k].old != id; k++)
            ;
        if (k < r->ctx->undo.n)
            over[v->root] = pos + 1;
    }
}

JOT_FN void
jot_donate_run(jot_Ctx *ctx, const Plan *plan, Selection *s)
{
    DonateRun r;
    Mem *mem = &ctx->mem;
    bool failed = mem->failed;
    size_t bits = ctx->nodes_made / 8 + 1;

    if (!plan->overs || ctx->unasked)
        return;
    memset(&r, 0, sizeof r);
    r.ctx = ctx;
    r.s = s;
    r.needed = jot_mem_new(mem, s->list.n, 1);
    r.seen = jot_mem_new(mem, bits, 1);
    s->over = jot_mem_new(mem, s->roots.n, sizeof *s->over);
    if (r.needed && r.seen && s->over && donate_needed(&r))
        donate_allow(&r, plan, s->over);
    jot_mem_free(mem, r.needed, s->list.n);
    jot_mem_free(mem, r.seen, bits);
    jot_vec_free(mem, r.stack);
    mem->failed = failed; /* without memory to ask in, nothing is written over */
}
