/* ops/grad/past.c - what a node was made past: kept with it, asked, let go.
 *
 *     x = reindex z by a,  y = reindex x by b     is built as     y = reindex z by a(b)
 *
 * So y does not read x, but keeps by which map it was called, and behind that what x keeps:
 *
 *     y.past -> (x, b) -> x.past -> (w, c) -> ...
 *
 * A walk that comes to y with its gradient d gives x the dual of d by b, w that of this by c, and
 * goes on to z as ever. A past holds no reference, or a weight that somebody has transposed could
 * not be updated in place: it knows its node by number and birth.
 *
 * Whoever is gone past in another way (minus of minus, a sum of a sum, operands in a batch) is
 * lost (ops/grad/past_rules.c). For the graph of y = reshape(x), x = reshape(z), is that of y = z,
 * in which no x is read.
 *
 * Read before: ops/grad/grad.h. After: ops/reindex.c, ops/grad/past_rules.c. */
#include "ops/grad/grad.h"

/* ---- keeping ------------------------------------------------------------------------------ */

JOT_FN Node *
jot_past_node(jot_Ctx *ctx, const Past *p)
{
    Node *n = jot_node(ctx, p->node);

    return n->born == p->born ? n : NULL;
}

JOT_FN void
jot_past_unref(jot_Ctx *ctx, Past *p)
{
    while (p && !--p->refs) {
        Past *next = p->next;

        jot_mem_free(&ctx->mem, p, p->nbytes);
        p = next;
    }
}

static void
past_mark(jot_Ctx *ctx, const Past *p, uint8_t passed)
{
    for (; p; p = p->next)
        if (jot_past_node(ctx, p))
            jot_past_node(ctx, p)->passed |= passed;
}

JOT_FN void
jot_past_lose(jot_Ctx *ctx, const Past *p)
{
    past_mark(ctx, p, PASSED_LOST);
}

JOT_FN void
jot_past_lost(jot_Ctx *ctx, NodeId x, uint8_t how)
{
    jot_node(ctx, x)->passed |= how;
    past_mark(ctx, jot_node(ctx, x)->past, how);
}

static bool
past_same(const Past *p, const Node *x, int nindex, const Ix *index, int ncond, const Ix *cond)
{
    return p->born == x->born && p->nindex == nindex && p->ncond == ncond
        && (!nindex || !memcmp(p->map, index, (size_t)nindex * sizeof *index))
        && (!ncond || !memcmp(p->map + nindex, cond, (size_t)ncond * sizeof *cond));
}

JOT_FN void
jot_past_keep(jot_Ctx *ctx, NodeId y, bool made, NodeId x, int nindex, const Ix *index, int ncond,
              const Ix *cond)
{
    Node *n = jot_node(ctx, y), *from = jot_node(ctx, x);
    size_t nbytes = sizeof(Past) + (size_t)(nindex + ncond) * sizeof *index;
    Attempt before = jot_attempt(ctx);
    Past *p = n->past;

    if (y == x || (p && past_same(p, from, nindex, index, ncond, cond)))
        return;
    p = made ? jot_mem_new(&ctx->mem, nbytes, 1) : NULL;
    jot_give_up(ctx, before);
    if (!p) {
        jot_past_lost(ctx, x, PASSED_LOST);
        return;
    }
    p->refs = 1;
    p->node = x;
    p->born = from->born;
    p->next = from->past;
    p->nbytes = (uint32_t)nbytes;
    p->rank = from->rank;
    p->nindex = nindex;
    p->ncond = ncond;
    memcpy(p->ext, from->ext, (size_t)from->rank * sizeof *from->ext);
    if (nindex)
        memcpy(p->map, index, (size_t)nindex * sizeof *index);
    if (ncond)
        memcpy(p->map + nindex, cond, (size_t)ncond * sizeof *cond);
    if (p->next)
        p->next->refs++;
    n->past = p;
    past_mark(ctx, p, PASSED_KEPT);
}

/* ---- asking ------------------------------------------------------------------------------- */

JOT_FN void
jot_past_ask(Grad *g, bool on)
{
    int k;

    for (k = 0; k < g->nwrt; k++) {
        Node *x = jot_node(g->ctx, g->wrt[k]);

        x->passed = (uint8_t)(on ? x->passed | PASSED_ASKED : x->passed & ~PASSED_ASKED);
    }
}

JOT_FN bool
jot_past_asked(jot_Ctx *ctx, const Past *p)
{
    for (; p; p = p->next)
        if (jot_past_node(ctx, p) && jot_past_node(ctx, p)->passed & PASSED_ASKED)
            return true;
    return false;
}

JOT_FN int
jot_past_find(jot_Ctx *ctx, const Past *p, int n, const NodeId *x)
{
    int k;

    for (; p; p = p->next)
        for (k = 0; k < n; k++)
            if (p->node == x[k] && jot_past_node(ctx, p))
                return k + 1;
    return 0;
}

JOT_FN bool
jot_past_has(jot_Ctx *ctx, const Past *p, NodeId x)
{
    for (; p; p = p->next)
        if (p->node == x && jot_past_node(ctx, p))
            return true;
    return false;
}
