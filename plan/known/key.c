/* plan/known/key.c - keys of plans and groups: the structure of a graph as numbers, by which what
 * was planned is found (plan/known/cache.c, plan/known/known.c).
 *
 *     node      kind op dtype flags | rank, extents | inputs as positions | maps | what is special
 *     %3 mul    EW MUL f32          | 2, 64 10      | 1 2                 |
 *
 * A map's expressions are in it by number: the pool shares equal expressions and never forgets one.
 * Literals other than 0, 1 and infinities, seeds and streams are left out: kernels take them as
 * arguments, so the graph of the next step finds this step's plan.
 *
 * Read before: plan/parts.h. After: plan/known/cache.c, plan/known/known.c. */
#include "plan/parts.h"
#include "ops/flow/flow.h"

enum { KEY_INDICES = 4096 }; /* of a whole key, at most */

JOT_FN uint32_t *
jot_key_put64(uint32_t *w, uint64_t word)
{
    *w++ = (uint32_t)word;
    *w++ = (uint32_t)(word >> 32);
    return w;
}

/* What a node is beyond its operands: literals that are part of a kernel (jot_node_literal) are
 * told apart. */
static uint32_t *
key_special(jot_Ctx *ctx, uint32_t *w, NodeId id)
{
    const Node *n = jot_node(ctx, id);

    switch (n->kind) {
    case NODE_CONST:
        *w++ = (uint32_t)jot_node_literal(ctx, id);
        return w;
    case NODE_REINDEX:
    case NODE_REDUCE:
        return jot_key_put64(w, n->value.u);
    case NODE_CODE:
    case NODE_MAP:
        return jot_key_put64(w, n->code->flow ? n->code->flow->form->hash : n->code->hash);
    default:
        return w;
    }
}

JOT_FN uint32_t *
jot_key_shape(uint32_t *w, const Node *n, NodeKind kind, uint8_t role)
{
    int k;

    *w++ = (uint32_t)kind | (uint32_t)n->dtype << 8 | (uint32_t)n->rank << 16
         | (uint32_t)role << 24;
    for (k = 0; k < n->rank; k++)
        w = jot_key_put64(w, (uint64_t)n->ext[k]);
    return w;
}

JOT_FN uint32_t *
jot_key_node(jot_Ctx *ctx, uint32_t *w, NodeId id, uint8_t role, KeyNumber *number, void *of)
{
    const Node *n = jot_node(ctx, id);
    int k;

    *w++ = (uint32_t)n->op | (uint32_t)n->ninputs << 8 | (uint32_t)n->flags << 16
         | (uint32_t)role << 24;
    for (k = 0; k < n->ninputs; k++)
        *w++ = number ? number(of, jot_node(ctx, n->input[k])->at) : jot_node(ctx, n->input[k])->at;
    *w++ = (uint32_t)n->nindex | (uint32_t)n->ncond << 16;
    for (k = 0; k < n->nindex; k++)
        *w++ = n->index[k];
    for (k = 0; k < n->ncond; k++)
        *w++ = n->cond[k];
    return key_special(ctx, w, id);
}

/* Four hashes side by side: a key is long, and one alone waits for itself at every word. */
JOT_FN uint64_t
jot_plan_hash(const uint32_t *key, uint32_t n)
{
    uint64_t h[4] = {1, 2, 3, 4};
    uint32_t i;
    int k;

    for (i = 0; i + 8 <= n; i += 8)
        for (k = 0; k < 4; k++)
            h[k] = jot_hash_u64(h[k], (uint64_t)key[i + 2 * (uint32_t)k + 1] << 32
                                          | key[i + 2 * (uint32_t)k]);
    return jot_hash(jot_hash(h[0] ^ n, &h[1], 3 * sizeof *h), key + i, (n - i) * sizeof *key);
}

JOT_FN bool
jot_key_list(jot_Ctx *ctx, const NodeList *list, const uint8_t *asked)
{
    struct PlanCache *c = ctx->plans;
    uint32_t i;

    for (i = 0; i < list->n; i++) {
        const Node *n = jot_node(ctx, list->v[i]);
        uint32_t most = 5 + 2 * (uint32_t)n->rank + n->ninputs + n->nindex + n->ncond, *w;
        bool leaf = n->kind == NODE_LEAF || n->data;

        if (c->key.cap - c->key.n < most && !jot_vec_reserve(&ctx->mem, c->key, most))
            return jot_fail_memory(ctx, "plan");
        w = jot_key_shape(c->key.v + c->key.n, n, leaf ? NODE_LEAF : (NodeKind)n->kind,
                          asked[i]);
        w = leaf ? w : jot_key_node(ctx, w, list->v[i], 0, NULL, NULL);
        c->key.n = (uint32_t)(w - c->key.v);
    }
    return true;
}

JOT_FN bool
jot_plan_key(jot_Ctx *ctx, const Selection *s, uint64_t *hash)
{
    struct PlanCache *c = ctx->plans;

    c->key.n = 0;
    if (!jot_vec_reserve(&ctx->mem, c->key, 1))
        return jot_fail_memory(ctx, "plan");
    c->key.v[c->key.n++] = ctx->target.late; /* priced by other rates */
    if (!jot_key_list(ctx, &s->list, s->asked))
        return false;
    *hash = jot_plan_hash(c->key.v, c->key.n);
    return true;
}

JOT_FN uint32_t
jot_key_index(Make *m, Ix ix)
{
    GroupKey *key = &m->sought;
    uint32_t i = key->ix.n;

    while (i && key->ix.v[i - 1] != ix) /* what was met last comes again soonest */
        i--;
    if (i)
        return i;
    *(Ix *)jot_vec_push(&m->ctx->mem, key->ix) = ix;
    return key->ix.n;
}

/* Operands and terms by number: they follow. */
static uint32_t *
key_put_index(Make *m, uint32_t *w, Ix ix)
{
    const IxPool *pool = &m->ctx->ix;
    const IxRec *r = &pool->recs.v[ix];
    bool two = r->op == IX_DIV || r->op == IX_MOD || r->op == IX_MUL || r->op == IX_AND
            || r->op == IX_OR;
    bool one = two || r->op == IX_GE0 || r->op == IX_EQ0 || r->op == IX_NOT;
    uint32_t i;

    *w++ = r->op | r->n << 8;
    *w++ = one ? jot_key_index(m, r->a) : r->a;
    *w++ = two ? jot_key_index(m, r->b) : r->b;
    w = jot_key_put64(w, (uint64_t)r->c);
    for (i = 0; i < r->n && r->op == IX_SUM; i++) {
        w = jot_key_put64(w, (uint64_t)pool->terms.v[r->at + i].k);
        *w++ = jot_key_index(m, pool->terms.v[r->at + i].atom);
    }
    for (i = 0; i < r->n && r->op == IX_LOAD; i++)
        *w++ = jot_key_index(m, pool->args.v[r->at + i]);
    return w;
}

JOT_FN bool
jot_key_indices(Make *m)
{
    GroupKey *key = &m->sought;
    Mem *mem = &m->ctx->mem;
    uint32_t i, *w;

    for (i = 0; i < key->ix.n; i++) {
        const IxRec *r = &m->ctx->ix.recs.v[key->ix.v[i]];

        if (key->ix.n > KEY_INDICES || !jot_vec_reserve(mem, key->key, 5 + 3 * r->n))
            return false;
        w = key_put_index(m, key->key.v + key->key.n, key->ix.v[i]);
        key->key.n = (uint32_t)(w - key->key.v);
    }
    key->hash = jot_plan_hash(key->key.v, key->key.n);
    return !mem->failed;
}

JOT_FN bool
jot_plan_listed(jot_Ctx *ctx, const Selection *s, NodeId id)
{
    uint32_t at = jot_node(ctx, id)->at;

    return at < s->list.n && s->list.v[at] == id;
}
