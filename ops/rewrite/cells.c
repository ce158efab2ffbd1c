/* ops/rewrite/cells.c - equal cells of one level are computed as one: their rows lie under each
 * other.
 *
 *     h1 = tanh(x1 w + b)                        X = stack of x1, x2, x3      [3, n]
 *     h2 = tanh(x2 w + b)          ->            H = tanh(X w + b)            [3, m]
 *     h3 = tanh(x3 w + b)
 *     h4 = tanh((h1 + h2) w + b)                 H' = tanh((stack of H 0 + of H 1) w + b)
 *
 * What a network over trees does at each node, or any number of equal small networks side by side:
 * w is read once for all rows, and there are as many launches as levels, not as nodes. A cell is a
 * product of few rows by a large operand that other products share, with what is computed of it
 * alone and is so in all cells of its kind: activations, gates, the state. Its level is the number
 * of products on the longest way to it.
 *
 *     kind      products by the same operand, through equal maps
 *     part      what is computed from the product, by the operators on the way: each cell has all
 *     chunk     cells of one kind and level, in few sizes: other graphs have equal groups then
 *
 * How a chunk is computed says ops/rewrite/cells_rows.c. Cells of a kind stay as they are if few of
 * them stand beside others. A node that somebody else reads becomes its row.
 *
 *   requires  a list in order, its mark and places      keeps  values      breaks  lists of nodes
 *
 * Done where the graph is walked anyway (ops/rewrite/batch.c), before gradients: they come by
 * chunks then.
 *
 * Read before: ops/rewrite/stack.c. After: ops/rewrite/batch.c, ops/grad/grad.c. */
#include "ops/rewrite/cells.h"

enum {
    CELL_FLOPS = 1 << 27,   /* a product that is large alone stays */
    CELL_LARGER = 8         /* its operand than its rows, coming and going */
};

/* key -> 1 + number, in open addressing */
typedef struct { uint64_t *key; uint32_t *at, cap; } CellMap;

/* ---- keys --------------------------------------------------------------------------------- */

static bool
cells_map_open(jot_Ctx *ctx, CellMap *map, uint32_t n)
{
    for (map->cap = 16; map->cap < 2 * n;)
        map->cap *= 2;
    map->key = jot_mem_new(&ctx->mem, map->cap, sizeof *map->key);
    map->at = jot_mem_new(&ctx->mem, map->cap, sizeof *map->at);
    return map->key && map->at;
}

static void
cells_map_close(jot_Ctx *ctx, CellMap *map)
{
    jot_mem_free(&ctx->mem, map->key, map->cap * sizeof *map->key);
    jot_mem_free(&ctx->mem, map->at, map->cap * sizeof *map->at);
}

/* Where the number of the key stands, or will. */
static uint32_t *
cells_map_of(CellMap *map, uint64_t key)
{
    uint32_t i = (uint32_t)(key ^ key >> 32) & (map->cap - 1);

    while (map->at[i] && map->key[i] != key)
        i = (i + 1) & (map->cap - 1);
    map->key[i] = key;
    return &map->at[i];
}

static uint64_t
cell_hash_shape(uint64_t h, const Node *n)
{
    return jot_hash(h ^ n->dtype ^ (uint64_t)n->rank << 8, n->ext, n->rank * sizeof *n->ext);
}

/* The operator itself, without its operands. */
static uint64_t
cell_hash_node(uint64_t h, const Node *n)
{
    h = cell_hash_shape(h ^ (uint64_t)n->kind << 32 ^ (uint64_t)n->op << 40, n);
    h = jot_hash(h ^ n->value.u ^ (uint64_t)n->nindex << 48, n->index,
                 n->nindex * sizeof *n->index);
    return jot_hash(h ^ n->ninputs, n->cond, n->ncond * sizeof *n->cond);
}

JOT_FN bool
jot_cell_same(const Node *a, const Node *b)
{
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->flags == b->flags
        && a->rank == b->rank && a->ninputs == b->ninputs && a->nindex == b->nindex
        && a->ncond == b->ncond && a->value.u == b->value.u
        && !memcmp(a->ext, b->ext, a->rank * sizeof *a->ext)
        && (!a->nindex || !memcmp(a->index, b->index, a->nindex * sizeof *a->index))
        && (!a->ncond || !memcmp(a->cond, b->cond, a->ncond * sizeof *a->cond));
}

JOT_FN CellAt *
jot_cell_at(const Cells *s, NodeId id)
{
    const Node *n = jot_node(s->ctx, id);

    return n->mark == s->ctx->walk && n->at < s->list->n && s->list->v[n->at] == id ? &s->at[n->at]
                                                                                   : NULL;
}

JOT_FN void
jot_cell_wants(Cells *s, NodeId id)
{
    CellAt *at = jot_cell_at(s, id);

    if (at)
        at->wanted = true;
}

/* ---- products ----------------------------------------------------------------------------- */

JOT_FN bool
jot_cell_grows(const Cells *s, const Node *n)
{
    return (n->kind == NODE_EW || n->kind == NODE_REINDEX
            || (n->kind == NODE_REDUCE && n->ninputs == 1 && !n->ncond))
        && !n->data && n->hash && n->rank < JOT_MAX_RANK && n->nelem && !s->at[n->at].stays;
}

/* Elements that the map reads. */
static double
cell_reads(const Cells *s, const Node *map)
{
    uint64_t axes = jot_stack_axes(s->ctx, map->index, map->nindex);
    double all = 1;
    int k;

    for (k = 0; k < map->rank; k++)
        all *= axes >> k & 1 ? (double)map->ext[k] : 1;
    return all;
}

/* Is it a product of few rows by what is larger than they? p->side: the rows. */
static bool
cell_product(const Cells *s, const Node *n, CellProduct *p)
{
    const Node *y, *map[2];
    double reads[2];
    int k;

    if (n->kind != NODE_REDUCE || n->op != JOT_ADD || !jot_cell_grows(s, n))
        return false;
    y = jot_node(s->ctx, n->input[0]);
    if (y->kind != NODE_EW || y->op != EW_MUL || !jot_cell_grows(s, y) || y->nelem > CELL_FLOPS / 2)
        return false;
    for (k = 0; k < 2; k++) {
        map[k] = jot_node(s->ctx, y->input[k]);
        if (map[k]->kind != NODE_REINDEX || !jot_cell_grows(s, map[k]))
            return false;
        reads[k] = cell_reads(s, map[k]);
    }
    p->side = reads[0] > reads[1];
    return map[1 - p->side]->ninputs == 1 && map[0] != map[1]
        && CELL_LARGER * (reads[p->side] + (double)n->nelem) < reads[1 - p->side];
}

static uint64_t
cell_product_key(const Cells *s, const Node *n, const CellProduct *p)
{
    const Node *y = jot_node(s->ctx, n->input[0]), *map = jot_node(s->ctx, y->input[p->side]);
    uint64_t h = cell_hash_node(cell_hash_node(cell_hash_node(1, n), y), map);
    int k;

    for (k = 0; k < map->ninputs; k++)
        h = cell_hash_shape(h, jot_node(s->ctx, map->input[k]));
    return jot_hash_u64(h, (uint64_t)y->input[1 - p->side] << 1 | (uint64_t)p->side);
}

/* All products, by kinds. False: memory. */
static bool
cells_products(Cells *s)
{
    Mem *mem = &s->ctx->mem;
    CellMap map = {0};
    uint32_t i, *at;
    bool ok = true;

    for (i = 0; i < s->list->n && ok; i++) {
        const Node *n = jot_node(s->ctx, s->list->v[i]);
        CellProduct p = {0};

        if (n->kind != NODE_REDUCE || !cell_product(s, n, &p))
            continue;
        p.pos = i;
        ok = jot_vec_reserve(mem, s->product, 1);
        if (ok)
            *(CellProduct *)jot_vec_push(mem, s->product) = p;
    }
    ok = ok && (s->product.n < 2 || cells_map_open(s->ctx, &map, s->product.n));
    for (i = 0; i < s->product.n && ok && map.cap; i++) {
        CellProduct *p = &s->product.v[i];
        uint64_t key = cell_product_key(s, jot_node(s->ctx, s->list->v[p->pos]), p);

        at = cells_map_of(&map, key);
        ok = *at || jot_vec_reserve(mem, s->kind, 1);
        if (ok && !*at) {
            memset(jot_vec_push(mem, s->kind), 0, sizeof *s->kind.v);
            s->kind.v[s->kind.n - 1].key = key;
            *at = s->kind.n;
        }
        if (ok) {
            p->kind = *at - 1;
            s->kind.v[p->kind].n++;
        }
    }
    cells_map_close(s->ctx, &map);
    return ok;
}

/* ---- levels ------------------------------------------------------------------------------- */

/* Levels of products of which there are several; what else a product is made of. */
static void
cells_levels(Cells *s)
{
    jot_Ctx *ctx = s->ctx;
    uint32_t i, k;
    int d;

    for (i = 0; i < s->product.n; i++) {
        CellProduct *p = &s->product.v[i];
        const Node *n = jot_node(ctx, s->list->v[p->pos]), *y = jot_node(ctx, n->input[0]);

        if (s->kind.v[p->kind].n < 2)
            continue;
        s->at[p->pos].product = i + 1;
        s->at[y->at].inner = true;
        for (k = 0; k < 2; k++)
            s->at[jot_node(ctx, y->input[k])->at].inner = true;
    }
    for (i = 0; i < s->list->n; i++) {
        const Node *n = jot_node(ctx, s->list->v[i]);
        CellAt *at = &s->at[i];

        for (d = 0; d < n->ninputs; d++) {
            const Node *x = jot_node(ctx, n->input[d]);

            if (x->mark == ctx->walk && x->at < i && s->at[x->at].level > at->level)
                at->level = s->at[x->at].level;
        }
        at->level += at->product > 0;
        s->levels = at->level > s->levels ? at->level : s->levels;
    }
}

/* The most cells of n that are taken at once. */
static uint32_t
cell_chunk(uint32_t n)
{
    uint32_t most = CELL_ROWS;

    while (most > n)
        most = most & (most - 1) ? (most / 3) * 2 : most > 2 ? most / 4 * 3 : most / 2;
    return most;
}

/* Groups of a kind and a level; how many chunks each kind has. False: memory. */
static bool
cells_groups(Cells *s)
{
    Mem *mem = &s->ctx->mem;
    CellMap map = {0};
    uint32_t i, left, *at;
    bool ok = cells_map_open(s->ctx, &map, s->product.n);

    for (i = 0; i < s->product.n && ok; i++) {
        CellProduct *p = &s->product.v[i];
        uint32_t level = s->at[p->pos].level;
        CellGroup *g;

        if (!s->at[p->pos].product)
            continue;
        at = cells_map_of(&map, jot_hash_u64(s->kind.v[p->kind].key, level));
        ok = *at || jot_vec_reserve(mem, s->group, 1);
        if (!ok)
            break;
        if (!*at) {
            g = jot_vec_push(mem, s->group);
            memset(g, 0, sizeof *g);
            g->kind = p->kind;
            g->level = level;
            g->first = i + 1;
            *at = s->group.n;
        } else
            s->product.v[s->group.v[*at - 1].last - 1].next = i + 1;
        g = &s->group.v[*at - 1];
        g->last = i + 1;
        g->n++;
    }
    for (i = 0; i < s->group.n; i++)
        for (left = s->group.v[i].n; left; left -= cell_chunk(left))
            s->kind.v[s->group.v[i].kind].chunks++;
    cells_map_close(s->ctx, &map);
    return ok;
}

/* Do enough cells of the kind stand beside others? */
static bool
cell_joins(const CellKind *kind)
{
    return kind->n > 1 && 3 * (double)kind->n >= 4 * (double)kind->chunks;
}

/* ---- parts -------------------------------------------------------------------------------- */

/* Whose cell the node at this position is in, and what it is there. */
static void
cell_owner(Cells *s, uint32_t i)
{
    const Node *n = jot_node(s->ctx, s->list->v[i]);
    CellAt *at = &s->at[i];
    uint32_t owner = 0;
    uint64_t key;
    int k;

    if (at->product) {
        const CellKind *kind = &s->kind.v[s->product.v[at->product - 1].kind];

        at->key = kind->key;
        at->owner = cell_joins(kind) ? at->product : 0;
        return;
    }
    if (!at->level || at->inner || !jot_cell_grows(s, n) || n->nelem > CELL_NELEM)
        return;
    key = cell_hash_node(2, n);
    for (k = 0; k < n->ninputs; k++) {
        const Node *x = jot_node(s->ctx, n->input[k]);
        const CellAt *from = &s->at[x->at];

        if (from->level < at->level) {
            key = cell_hash_shape(key, x);
            continue;
        }
        if (!from->owner || (owner && owner != from->owner))
            return;
        owner = from->owner;
        key = jot_hash_u64(key, from->key);
    }
    at->key = key;
    at->owner = owner;
}

/* Parts that every cell of their kind has once. False: memory. */
static bool
cells_parts(Cells *s)
{
    Mem *mem = &s->ctx->mem;
    CellMap map = {0};
    uint32_t i, *of, used = 0;
    bool ok = cells_map_open(s->ctx, &map, s->list->n);

    for (i = 0; i < s->list->n && ok; i++) {
        CellAt *at = &s->at[i];
        CellPart *part;
        uint32_t kind;

        cell_owner(s, i);
        if (!at->owner || at->product)
            continue;
        kind = s->product.v[at->owner - 1].kind;
        of = cells_map_of(&map, jot_hash_u64(at->key, kind));
        ok = *of || jot_vec_reserve(mem, s->part, 1);
        if (!ok)
            break;
        if (!*of) {
            part = jot_vec_push(mem, s->part);
            memset(part, 0, sizeof *part);
            part->kind = kind;
            *of = s->part.n;
        }
        part = &s->part.v[*of - 1];
        part->often |= part->last == at->owner;
        part->last = at->owner;
        part->n++;
        at->part = *of;
    }
    cells_map_close(s->ctx, &map);
    for (i = 0; i < s->part.n; i++) {
        CellPart *part = &s->part.v[i];

        part->often |= part->n != s->kind.v[part->kind].n;
        if (!part->often)
            part->number = s->kind.v[part->kind].parts++;
    }
    for (i = 0; i < s->product.n; i++) {
        s->product.v[i].cell = used;
        used += s->kind.v[s->product.v[i].kind].parts;
    }
    ok = ok && (!used || jot_vec_reserve(mem, s->cell, used));
    for (i = 0; i < s->list->n && ok; i++) {
        const CellAt *at = &s->at[i];

        if (at->owner && at->part && !s->part.v[at->part - 1].often)
            s->cell.v[s->product.v[at->owner - 1].cell + s->part.v[at->part - 1].number] = i;
    }
    return ok;
}

/* ---- all chunks --------------------------------------------------------------------------- */

/* One chunk of a group, from product `first` on: the product, then its cell, part by part. */
static void
cells_chunk(Cells *s, const CellGroup *g, uint32_t n, uint32_t *first)
{
    uint32_t product[CELL_ROWS], pos[CELL_ROWS], k, i;
    const CellKind *kind = &s->kind.v[g->kind];

    for (k = 0; k < n; k++) {
        product[k] = *first - 1;
        pos[k] = s->product.v[product[k]].pos;
        *first = s->product.v[product[k]].next;
    }
    if (!jot_cells_chunk(s, n, pos))
        return;
    for (i = 0; i < kind->parts && !s->ctx->mem.failed; i++) {
        for (k = 0; k < n; k++)
            pos[k] = s->cell.v[s->product.v[product[k]].cell + i];
        jot_cells_chunk(s, n, pos);
    }
}

/* Levels from below: what a chunk reads is there. False: memory. */
static bool
cells_chunks(Cells *s)
{
    uint32_t *head = jot_mem_new(&s->ctx->mem, s->levels + 1, sizeof *head), i, level, left, first;

    for (i = s->group.n; i-- > 0 && head;) {
        s->group.v[i].next = head[s->group.v[i].level];
        head[s->group.v[i].level] = i + 1;
    }
    for (level = 1; level <= s->levels && head; level++)
        for (i = head[level]; i; i = s->group.v[i - 1].next) {
            const CellGroup *g = &s->group.v[i - 1];

            first = g->first;
            for (left = g->n; left && cell_joins(&s->kind.v[g->kind]) && !s->ctx->mem.failed;) {
                uint32_t n = cell_chunk(left);

                cells_chunk(s, g, n, &first);
                left -= n;
            }
        }
    jot_mem_free(&s->ctx->mem, head, (s->levels + 1) * sizeof *head);
    return head && !s->ctx->mem.failed;
}

/* ---- what reads cells --------------------------------------------------------------------- */

static bool
cell_becomes_row(Cells *s, uint32_t i)
{
    jot_Ctx *ctx = s->ctx;
    const Node *n = jot_node(ctx, s->list->v[i]);
    Piece piece = {s->at[i].all, s->at[i].row * n->nelem};
    NodeSpec spec;
    NodeId row;

    if (s->at[i].rows == 1)
        return jot_stack_becomes_row(ctx, s->list->v[i], piece.x, 0);
    row = jot_stack_node(ctx, (jot_DType)n->dtype, n->rank, n->ext, 1, &piece);
    if (!row)
        return false;
    spec = jot_node_spec(jot_node(ctx, row));
    return jot_node_become(ctx, s->list->v[i], &spec);
}

/* From the roots down: a member of a chunk that others read becomes its row. */
static void
cells_exits(Cells *s)
{
    uint32_t i;
    int k;

    for (i = s->list->n; i-- > 0 && !s->ctx->mem.failed;) {
        const Node *n;

        if (!s->at[i].wanted)
            continue;
        if (s->at[i].all) {
            cell_becomes_row(s, i);
            continue;
        }
        n = jot_node(s->ctx, s->list->v[i]);
        for (k = 0; k < n->ninputs; k++)
            jot_cell_wants(s, n->input[k]);
    }
}

static bool
cells_run(Cells *s)
{
    bool any = false;
    uint32_t i;

    if (!cells_products(s))
        return false;
    for (i = 0; i < s->kind.n; i++)
        any |= s->kind.v[i].n > 1;
    if (!any)
        return false;
    cells_levels(s);
    if (!cells_groups(s))
        return false;
    for (i = 0, any = false; i < s->kind.n; i++)
        any |= cell_joins(&s->kind.v[i]);
    if (!any || !cells_parts(s) || !cells_chunks(s))
        return false;
    cells_exits(s);
    return true;
}

JOT_FN bool
jot_cells_join(jot_Ctx *ctx, const NodeList *list, const NodeId *roots, uint32_t n,
               const NodeId *keep, uint32_t nkeep)
{
    Cells s = {0};
    bool changed = false;
    uint32_t i;

    if (ctx->release) /* a kernel of a device takes no table of pointers */
        return false;
    s.ctx = ctx;
    s.list = list;
    s.at = jot_mem_new(&ctx->mem, list->n, sizeof *s.at);
    for (i = 0; i < n && s.at; i++)
        s.at[jot_node(ctx, roots[i])->at].wanted = true;
    for (i = 0; i < nkeep && s.at; i++)
        if (jot_node(ctx, keep[i])->mark == ctx->walk)
            s.at[jot_node(ctx, keep[i])->at].stays = true;
    changed = s.at && cells_run(&s);
    jot_mem_free(&ctx->mem, s.at, list->n * sizeof *s.at);
    jot_vec_free(&ctx->mem, s.product);
    jot_vec_free(&ctx->mem, s.kind);
    jot_vec_free(&ctx->mem, s.group);
    jot_vec_free(&ctx->mem, s.part);
    jot_vec_free(&ctx->mem, s.cell);
    return changed;
}
