/* ops/transform/part.c - which nodes between x and y are computed again: what stands on x or on
 * draws, and maps, as far as y needs them.
 *
 *     w ---------+                       w goes in like x; z, which stands on neither, stays
 *     x --> h1 --+--> h2 --> y           h1, h2, y come again
 *
 * A part within this one that is computed again comes again with it.
 *
 * Read before: ops/transform/transform.h. After: ops/transform/checkpoint.c, ops/flow/body.c. */
#include "ops/grad/grad.h"
#include "ops/transform/transform.h"
#include "ops/user/code.h"

JOT_FN bool
jot_part_open(PartAgain *p, jot_Ctx *ctx, int ny, const NodeId *y)
{
    uint32_t at;

    memset(p, 0, sizeof *p);
    p->ctx = ctx;
    if (!jot_graph_order(ctx, y, (uint32_t)ny, false, &p->order))
        return false;
    p->state = jot_mem_new(&ctx->mem, p->order.n, 1);
    p->within = jot_mem_new(&ctx->mem, p->order.n, 1);
    p->past = jot_mem_new(&ctx->mem, p->order.n, 1);
    p->to = jot_mem_new(&ctx->mem, p->order.n, sizeof *p->to);
    for (at = 0; p->to && at < p->order.n; at++)
        p->to[at] = p->order.v[at];
    return (p->state && p->within && p->past && p->to) || jot_fail_memory(ctx, "checkpoint");
}

JOT_FN void
jot_part_close(PartAgain *p)
{
    jot_mem_free(&p->ctx->mem, p->state, p->state ? p->order.n : 0);
    jot_mem_free(&p->ctx->mem, p->within, p->within ? p->order.n : 0);
    jot_mem_free(&p->ctx->mem, p->past, p->past ? p->order.n : 0);
    jot_mem_free(&p->ctx->mem, p->to, p->to ? p->order.n * sizeof *p->to : 0);
    jot_list_free(p->ctx, &p->order);
}

static bool
part_is_source(const Node *n)
{
    return n->kind == NODE_LEAF || n->kind == NODE_CONST || n->kind == NODE_IOTA
        || (n->kind == NODE_ALIAS && n->flags & NODE_STATE);
}

/* Of the first `end` nodes, what stands on x or on draws, and maps, come again. */
static void
part_scan(const PartAgain *p, uint8_t *state, uint32_t end, int ny, const NodeId *y, int nx,
          const NodeId *x)
{
    jot_Ctx *ctx = p->ctx;
    uint32_t at;
    int k;

    for (k = 0; k < nx; k++)
        if (jot_node(ctx, x[k])->mark == ctx->walk)
            state[part_at(p, x[k])] |= PART_GIVEN | PART_STANDS;
    for (at = 0; at < end; at++) {
        const Node *n = jot_node(ctx, p->order.v[at]);
        uint8_t *s = &state[at];

        for (k = 0; k < n->ninputs; k++)
            *s |= state[part_at(p, n->input[k])] & PART_STANDS;
        if (state == p->state)
            p->past[at] = (uint8_t)jot_past_find(ctx, n->past, nx, x);
        *s |= n->kind == NODE_RANDOM || (state == p->state && p->past[at]) ? PART_STANDS : 0;
        if ((*s & PART_STANDS || n->kind == NODE_REINDEX) && !(*s & PART_GIVEN)
            && !part_is_source(n))
            *s |= PART_AGAIN;
    }
    for (k = 0; k < ny; k++)
        state[part_at(p, y[k])] |= PART_NEEDED;
}

/* Does the node come again, for y? Then y needs what it is made of. */
static bool
part_need(const PartAgain *p, uint8_t *state, uint32_t at)
{
    const Node *n = jot_node(p->ctx, p->order.v[at]);
    int k;

    if (!(state[at] & PART_AGAIN) || !(state[at] & PART_NEEDED))
        return false;
    for (k = 0; k < n->ninputs && !(state == p->state && p->past[at]); k++)
        state[part_at(p, n->input[k])] |= PART_NEEDED;
    if (n->also && jot_node(p->ctx, n->also)->kind == NODE_CUSTOM)
        state[part_at(p, n->also)] |= PART_NEEDED;
    return true;
}

/* What a part within this one computes again comes again, too: its y stands on its x there. */
static void
part_within(PartAgain *p, uint32_t end)
{
    const Node *n = jot_node(p->ctx, p->order.v[end]);
    uint32_t at;

    if (n->kind != NODE_CUSTOM || !n->code->part)
        return;
    memset(p->within, 0, end);
    part_scan(p, p->within, end, n->code->outputs, n->input + n->code->inputs, n->code->inputs,
              n->input);
    for (at = end; at-- > 0;)
        if (part_need(p, p->within, at) && !(p->state[at] & PART_GIVEN))
            p->state[at] |= PART_AGAIN;
}

JOT_FN void
jot_part_mark(PartAgain *p, int ny, const NodeId *y, int nx, const NodeId *x)
{
    uint32_t at;

    part_scan(p, p->state, p->order.n, ny, y, nx, x);
    for (at = p->order.n; at-- > 0;)
        if (part_need(p, p->state, at))
            part_within(p, at);
}

JOT_FN bool
jot_part_inside(jot_Ctx *ctx, NodeId custom, NodeList *out)
{
    const Node *n = jot_node(ctx, custom);
    const NodeId *y = n->input + n->code->inputs;
    int ny = n->code->outputs;
    PartAgain p;
    uint32_t at;
    bool ok = jot_part_open(&p, ctx, ny, y);

    if (ok)
        jot_part_mark(&p, ny, y, n->code->inputs, n->input);
    for (at = 0; at < p.order.n && ok; at++)
        if (p.state[at] & PART_AGAIN && p.state[at] & PART_NEEDED) {
            ok = jot_vec_reserve(&ctx->mem, *out, 1) || jot_fail_memory(ctx, "checkpoint");
            if (ok)
                out->v[out->n++] = p.order.v[at];
        }
    jot_part_close(&p);
    return ok;
}
