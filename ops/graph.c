/* ops/graph.c - nodes: making, sharing, freeing.
 *
 *   chunks   [ node 0 .. 1023 ] [ 1024 .. 2047 ] ...       a node never moves
 *   table    hash -> node -> node -> 0                     through hash_next
 *   free     free_node -> node -> 0                        through hash_next as well
 *
 * A builder describes the node it wants in a NodeSpec; jot_node_make answers with the node that is
 * already there, compared field by field, or with a new one. Each node has one allocation of its
 * own, for extents, inputs and index expressions.
 *
 * A new node has no reference, since its maker has not yet decided what to do with it. Such nodes
 * are noted in ctx->loose; jot_graph_sweep frees those that nobody took. That is how what a folded
 * expression or a refused allocation leaves behind goes away.
 *
 * Freeing uses no stack and no memory: nodes that lost their last reference wait in a list through
 * hash_next, which they need no more once they are out of the table.
 *
 * Read before: ops/graph.h. After: ops/buffer.c (elements), ops/order.c (walks), ops/slots.c
 * (handles), ops/text.c. */
#include "ops/graph.h"

enum { GRAPH_TABLE_FIRST = 256 };

/* What ext points to in a scalar: of no use, but not NULL. */
static const int64_t graph_no_ext[1] = {0};

/* ---- what a spec must satisfy ------------------------------------------------------------- */

static const char *
spec_name(const NodeSpec *spec)
{
    static const char *const kinds[] = {"free", "array", "full", "iota", "random", "element-wise",
                                        "code_map", "reindex", "reindex_reduce", "stack", "code",
                                        "code", "alias", "custom_grad"};

    return spec->kind == NODE_EW ? jot_ew_info[spec->op].name : kinds[spec->kind];
}

static bool
spec_ok(jot_Ctx *ctx, const NodeSpec *spec, int64_t *nelem)
{
    const char *op = spec_name(spec);
    int k;

    for (k = 0; k < spec->ninputs; k++)
        if (!spec->input[k])
            return false;
    for (k = 0; k < spec->nindex + spec->ncond; k++) {
        if (k < spec->nindex ? spec->index[k] : spec->cond[k - spec->nindex])
            continue;
        if (ctx->mem.failed)
            return jot_fail_memory(ctx, op);
        return jot_fail(ctx, JOT_ERANGE, "%s: %s %d overflows or is nested too deeply", op,
                        k < spec->nindex ? "index" : "condition",
                        k < spec->nindex ? k : k - spec->nindex);
    }
    return jot_shape_ok(ctx, op, spec->dtype, spec->rank, spec->ext, nelem);
}

/* ---- sharing ------------------------------------------------------------------------------ */

static uint64_t
spec_mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static uint64_t
spec_mix_words(uint64_t h, const uint32_t *word, int n)
{
    int k;

    for (k = 0; k < n; k++)
        h = spec_mix(h, word[k]);
    return h;
}

/* Operands of an operator that commutes, in either order, are the same node. (They are not put in
 * an order of their own: node numbers are reused, and a graph that is built again must come out the
 * same.) */
static bool
spec_commutes(const NodeSpec *s)
{
    return s->kind == NODE_EW && s->ninputs == 2 && jot_ew_info[s->op].flags & EW_COMMUTES;
}

static uint64_t
spec_hash(const NodeSpec *s)
{
    uint64_t h = spec_mix((uint64_t)s->kind | (uint64_t)s->op << 8, (uint64_t)s->dtype |
                          (uint64_t)s->flags << 8 | (uint64_t)s->ninputs << 16 |
                          (uint64_t)s->nindex << 24 | (uint64_t)s->ncond << 40);
    int k;

    h = spec_mix(h, s->value.u);
    if (s->stream || s->code || s->also)
        h = spec_mix(h ^ (uint64_t)s->also << 20, s->stream ^ (uint64_t)(uintptr_t)s->code);
    for (k = 0; k < s->rank; k++)
        h = spec_mix(h, (uint64_t)s->ext[k]);
    if (spec_commutes(s))
        h = spec_mix(h, (uint64_t)s->input[0] * s->input[1] + s->input[0] + s->input[1]);
    else
        h = spec_mix_words(h, s->input, s->ninputs);
    h = spec_mix_words(spec_mix_words(h, s->index, s->nindex), s->cond, s->ncond);
    return h ? h : 1; /* 0 is kept for nodes that are not shared */
}

static bool
spec_same(const void *a, const void *b, int n, size_t size)
{
    return !n || !memcmp(a, b, (size_t)n * size);
}

static bool
spec_same_inputs(const Node *n, const NodeSpec *s)
{
    return spec_same(n->input, s->input, s->ninputs, sizeof *s->input) ||
           (spec_commutes(s) && n->input[0] == s->input[1] && n->input[1] == s->input[0]);
}

static bool
spec_equal(const Node *n, const NodeSpec *s)
{
    return n->kind == s->kind && n->op == s->op && n->dtype == s->dtype && n->flags == s->flags &&
           n->rank == s->rank && n->ninputs == s->ninputs && n->nindex == s->nindex &&
           n->ncond == s->ncond && n->value.u == s->value.u && n->stream == s->stream &&
           n->code == s->code && n->also == s->also &&
           spec_same(n->ext, s->ext, s->rank, sizeof *s->ext) && spec_same_inputs(n, s) &&
           spec_same(n->index, s->index, s->nindex, sizeof *s->index) &&
           spec_same(n->cond, s->cond, s->ncond, sizeof *s->cond);
}

static NodeId
table_find(jot_Ctx *ctx, const NodeSpec *spec, uint64_t hash)
{
    NodeId id = ctx->table[hash & (ctx->table_cap - 1)];

    while (id) {
        Node *n = jot_node(ctx, id);

        if (n->hash == hash && spec_equal(n, spec))
            break;
        id = n->hash_next;
    }
    return id;
}

static void
table_insert(jot_Ctx *ctx, NodeId id)
{
    Node *n = jot_node(ctx, id);
    uint32_t *bucket = &ctx->table[n->hash & (ctx->table_cap - 1)];

    n->hash_next = *bucket;
    *bucket = id;
}

/* Keep buckets at one node on average: double before the table holds more nodes than buckets. */
static bool
table_room(jot_Ctx *ctx)
{
    uint32_t old_cap = ctx->table_cap, *old = ctx->table, k, id, next;

    if (ctx->live_nodes < old_cap)
        return true;
    ctx->table = jot_mem_new(&ctx->mem, (size_t)old_cap * 2, sizeof *old);
    if (!ctx->table) {
        ctx->table = old;
        return false;
    }
    ctx->table_cap = old_cap * 2;
    for (k = 0; k < old_cap; k++)
        for (id = old[k]; id; id = next) {
            next = jot_node(ctx, id)->hash_next;
            table_insert(ctx, id);
        }
    jot_mem_free(&ctx->mem, old, (size_t)old_cap * sizeof *old);
    return true;
}

static void
table_remove(jot_Ctx *ctx, NodeId id)
{
    Node *n = jot_node(ctx, id);
    uint32_t *link = &ctx->table[n->hash & (ctx->table_cap - 1)];

    if (!n->hash)
        return;
    while (*link != id) {
        JOT_ASSERT(*link, "a shared node is in its bucket");
        link = &jot_node(ctx, *link)->hash_next;
    }
    *link = n->hash_next;
    n->hash = 0;
}

/* ---- making ------------------------------------------------------------------------------- */

/* A record to write a node into; 0 when refused. */
static NodeId
node_take(jot_Ctx *ctx)
{
    NodeId id = ctx->free_node;
    Node *chunk;

    if (id) {
        ctx->free_node = jot_node(ctx, id)->hash_next;
        return id;
    }
    if (ctx->nodes_made / NODE_CHUNK >= ctx->chunks.n) {
        if (ctx->nodes_made > UINT32_MAX - NODE_CHUNK ||
            !jot_vec_reserve(&ctx->mem, ctx->chunks, 1) ||
            !(chunk = jot_mem_new(&ctx->mem, NODE_CHUNK, sizeof *chunk)))
            return 0;
        ctx->chunks.v[ctx->chunks.n++] = chunk;
    }
    return ctx->nodes_made++;
}

static void
node_give(jot_Ctx *ctx, NodeId id)
{
    Node *n = jot_node(ctx, id);

    memset(n, 0, sizeof *n);
    n->hash_next = ctx->free_node;
    ctx->free_node = id;
}

/* Copy the lists of the spec into one block: extents first, since they are the widest. */
static bool
node_fill_lists(jot_Ctx *ctx, Node *n, const NodeSpec *s)
{
    size_t ext = (size_t)s->rank * sizeof *s->ext, input = (size_t)s->ninputs * sizeof *s->input;
    size_t index = (size_t)s->nindex * sizeof *s->index, cond = (size_t)s->ncond * sizeof *s->cond;
    size_t nbytes = ext + input + index + cond;
    char *p;

    n->ext = graph_no_ext;
    if (!nbytes)
        return true;
    p = jot_mem_new(&ctx->mem, nbytes, 1);
    if (!p)
        return false;
    n->block = p;
    n->block_nbytes = (uint32_t)nbytes;
    if (ext)
        n->ext = memcpy(p, s->ext, ext);
    n->input = input ? memcpy(p + ext, s->input, input) : NULL;
    n->index = index ? memcpy(p + ext + input, s->index, index) : NULL;
    n->cond = cond ? memcpy(p + ext + input + index, s->cond, cond) : NULL;
    return true;
}

static void
node_fill(Node *n, const NodeSpec *s, int64_t nelem)
{
    n->kind = (uint8_t)s->kind;
    n->op = (uint8_t)s->op;
    n->dtype = (uint8_t)s->dtype;
    n->flags = (uint8_t)s->flags;
    n->rank = (uint8_t)s->rank;
    n->ninputs = (uint8_t)s->ninputs;
    n->nindex = (uint16_t)s->nindex;
    n->ncond = (uint16_t)s->ncond;
    n->value = s->value;
    n->stream = s->stream;
    n->code = s->code;
    n->also = s->also;
    n->nelem = nelem;
}

static bool
node_waits(const Node *n)
{
    return n->kind != NODE_LEAF && n->kind != NODE_CONST && !n->data;
}

/* Everything that can be refused comes first; what follows cannot fail. */
static NodeId
node_new(jot_Ctx *ctx, const NodeSpec *spec, int64_t nelem, uint64_t hash)
{
    NodeId id = 0;
    Node *n;
    int k;

    if (spec->ninputs > UINT8_MAX || spec->nindex > UINT16_MAX || spec->ncond > UINT16_MAX) {
        jot_fail(ctx, JOT_ERANGE, "%s: %d inputs, %d conditions are too many", spec_name(spec),
                 spec->ninputs, spec->ncond);
        return 0;
    }
    if (!jot_vec_reserve(&ctx->mem, ctx->loose, 1) || !table_room(ctx) || !(id = node_take(ctx)) ||
        !node_fill_lists(ctx, jot_node(ctx, id), spec)) {
        if (id)
            node_give(ctx, id);
        jot_fail_memory(ctx, spec_name(spec));
        return 0;
    }
    n = jot_node(ctx, id);
    node_fill(n, spec, nelem);
    n->hash = hash;
    n->hash_next = n->mark = 0;
    n->born = n->origin = ++ctx->born;
    if (hash)
        table_insert(ctx, id);
    for (k = 0; k < n->ninputs; k++)
        jot_node_ref(ctx, n->input[k]);
    jot_node_ref(ctx, n->also);
    if (n->code)
        jot_code_ref(n->code);
    ctx->live_nodes++;
    ctx->unrun_nodes += node_waits(n);
    ctx->loose.v[ctx->loose.n++] = id;
    return id;
}

JOT_FN NodeId
jot_node_make(jot_Ctx *ctx, const NodeSpec *spec)
{
    bool shared = !spec->unshared && !ctx->config.no_simplify;
    uint64_t hash = shared ? spec_hash(spec) : 0;
    int64_t nelem;
    NodeId id;

    if (!spec_ok(ctx, spec, &nelem))
        return 0;
    if (shared && (id = table_find(ctx, spec, hash)))
        return id;
    return node_new(ctx, spec, nelem, hash);
}

JOT_FN NodeSpec
jot_spec_of(NodeKind kind, jot_DType dtype, int rank, const int64_t *ext)
{
    return (NodeSpec){.kind = kind, .dtype = dtype, .rank = rank, .ext = ext};
}

JOT_FN NodeSpec
jot_spec_over(jot_Ctx *ctx, NodeKind kind, int ninputs, const NodeId *input)
{
    const Node *first = jot_node(ctx, input[0]);
    NodeSpec s = jot_spec_of(kind, (jot_DType)first->dtype, first->rank, first->ext);

    s.ninputs = ninputs;
    s.input = input;
    return s;
}

JOT_FN NodeId
jot_node_find(jot_Ctx *ctx, const NodeSpec *spec)
{
    return ctx->config.no_simplify ? 0 : table_find(ctx, spec, spec_hash(spec));
}

/* ---- data --------------------------------------------------------------------------------- */

/* The evaluator sets unrun_nodes to 0 when it is done, though what was fused away has no data:
 * hence a count that stops at 0. */
static void
node_ran(jot_Ctx *ctx, const Node *n)
{
    if (node_waits(n) && ctx->unrun_nodes)
        ctx->unrun_nodes--;
}

JOT_FN void
jot_node_set_data(jot_Ctx *ctx, NodeId id, Buffer *buf)
{
    Node *n = jot_node(ctx, id);
    Buffer *old = n->data;

    node_ran(ctx, n);
    n->data = buf;
    jot_buffer_unref(ctx, old);
}

JOT_FN void
jot_node_to_leaf(jot_Ctx *ctx, NodeId id)
{
    Node *n = jot_node(ctx, id);
    NodeId input = n->input[0];
    Buffer *data = jot_node(ctx, input)->data;

    JOT_ASSERT(n->kind == NODE_ALIAS && n->flags & NODE_STATE, "only states become leaves");
    if (!n->data) {
        JOT_ASSERT(data, "the value of a state was evaluated");
        data->refs++;
        jot_node_set_data(ctx, id, data);
    }
    table_remove(ctx, id);
    n->kind = NODE_LEAF;
    n->ninputs = 0;
    jot_node_unref(ctx, input);
}

/* ---- references --------------------------------------------------------------------------- */

/* Builders take references in the reverse order of making, so ctx->loose is mostly empty. */
static void
loose_trim(jot_Ctx *ctx)
{
    while (ctx->loose.n) {
        Node *n = jot_node(ctx, ctx->loose.v[ctx->loose.n - 1]);

        if (!n->refs && n->kind != NODE_FREE)
            break;
        ctx->loose.n--;
    }
}

JOT_FN void
jot_node_ref(jot_Ctx *ctx, NodeId id)
{
    if (!id)
        return;
    jot_node(ctx, id)->refs++;
    loose_trim(ctx);
}

static void
node_release(jot_Ctx *ctx, NodeId id)
{
    Node *n = jot_node(ctx, id);

    node_ran(ctx, n);
    jot_buffer_unref(ctx, n->data);
    if (n->code)
        jot_code_unref(ctx, n->code);
    if (n->name)
        jot_mem_free(&ctx->mem, n->name, jot_str_len(n->name) + 1);
    jot_past_unref(ctx, n->past);
    jot_mem_free(&ctx->mem, n->block, n->block_nbytes);
    node_give(ctx, id);
    ctx->live_nodes--;
}

/* Free a node without references, and what it alone held. */
static void
node_bury(jot_Ctx *ctx, NodeId dead)
{
    table_remove(ctx, dead);
    jot_node(ctx, dead)->hash_next = 0;
    while (dead) {
        Node *n = jot_node(ctx, dead);
        NodeId next = n->hash_next;
        int k;

        for (k = 0; k < n->ninputs + (n->also != 0); k++) {
            NodeId held = k < n->ninputs ? n->input[k] : n->also;
            Node *in = jot_node(ctx, held);

            JOT_ASSERT(in->refs, "an input is held by its consumer");
            if (--in->refs)
                continue;
            table_remove(ctx, held);
            in->hash_next = next;
            next = held;
        }
        node_release(ctx, dead);
        dead = next;
    }
}

JOT_FN void
jot_node_unref(jot_Ctx *ctx, NodeId id)
{
    if (!id)
        return;
    JOT_ASSERT(jot_node(ctx, id)->refs, "a reference is dropped once");
    if (!--jot_node(ctx, id)->refs)
        node_bury(ctx, id);
}

JOT_FN bool
jot_node_become(jot_Ctx *ctx, NodeId id, const NodeSpec *spec)
{
    Node *n = jot_node(ctx, id), lists;
    uint64_t hash = n->hash ? spec_hash(spec) : 0; /* what nobody shared stays so */
    NodeId input[1 + UINT8_MAX];
    int k, ninputs = n->ninputs;

    JOT_ASSERT(!n->data && !n->code && n->also == spec->also, "a node without data");
    memset(&lists, 0, sizeof lists);
    if (!node_fill_lists(ctx, &lists, spec))
        return jot_fail_memory(ctx, spec_name(spec));
    for (k = 0; k < spec->ninputs; k++)
        jot_node_ref(ctx, spec->input[k]);
    memcpy(input, n->input, (size_t)ninputs * sizeof *input);
    table_remove(ctx, id);
    node_fill(n, spec, n->nelem); /* before the old lists go: the spec may point into them */
    jot_mem_free(&ctx->mem, n->block, n->block_nbytes);
    n->ext = lists.ext;
    n->input = lists.input;
    n->index = lists.index;
    n->cond = lists.cond;
    n->block = lists.block;
    n->block_nbytes = lists.block_nbytes;
    n->hash = hash;
    if (hash)
        table_insert(ctx, id);
    for (k = 0; k < ninputs; k++)
        jot_node_unref(ctx, input[k]);
    return true;
}

JOT_FN void
jot_graph_sweep(jot_Ctx *ctx, uint32_t mark)
{
    while (ctx->loose.n > mark) {
        NodeId id = ctx->loose.v[--ctx->loose.n];
        Node *n = jot_node(ctx, id);

        if (n->kind != NODE_FREE && !n->refs)
            node_bury(ctx, id);
    }
}

/* ---- opening and closing ------------------------------------------------------------------ */

JOT_FN bool
jot_graph_open(jot_Ctx *ctx)
{
    ctx->table = jot_mem_new(&ctx->mem, GRAPH_TABLE_FIRST, sizeof *ctx->table);
    if (ctx->table)
        ctx->table_cap = GRAPH_TABLE_FIRST;
    /* node 0 and slot 0 are poison: taken, and never given out */
    if (!ctx->table || (node_take(ctx), !ctx->chunks.n) ||
        !jot_vec_reserve(&ctx->mem, ctx->slots, 16) || !jot_ix_open(&ctx->ix, &ctx->mem)) {
        jot_graph_close(ctx);
        return jot_fail_memory(ctx, "open");
    }
    memset(&ctx->slots.v[0], 0, sizeof ctx->slots.v[0]);
    ctx->slots.n = 1;
    return true;
}

/* Nodes go one by one, whatever refers to them: all references end here. */
JOT_FN void
jot_graph_close(jot_Ctx *ctx)
{
    uint32_t id;

    ctx->closing = true;
    for (id = 1; id < ctx->nodes_made; id++)
        if (jot_node(ctx, id)->kind != NODE_FREE)
            node_release(ctx, id);
    for (id = 0; id < ctx->chunks.n; id++)
        jot_mem_free(&ctx->mem, ctx->chunks.v[id], NODE_CHUNK * sizeof(Node));
    jot_mem_free(&ctx->mem, ctx->table, (size_t)ctx->table_cap * sizeof *ctx->table);
    jot_vec_free(&ctx->mem, ctx->chunks);
    jot_vec_free(&ctx->mem, ctx->slots);
    jot_vec_free(&ctx->mem, ctx->scoped);
    jot_vec_free(&ctx->mem, ctx->marks);
    jot_vec_free(&ctx->mem, ctx->pending);
    jot_vec_free(&ctx->mem, ctx->undo);
    jot_vec_free(&ctx->mem, ctx->held);
    jot_vec_free(&ctx->mem, ctx->fetches);
    jot_vec_free(&ctx->mem, ctx->loose);
    jot_ix_close(&ctx->ix);
    ctx->table = NULL;
    ctx->table_cap = ctx->nodes_made = ctx->free_node = 0;
    ctx->live_slots = ctx->free_slot = 0;
}
