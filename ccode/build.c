/* ccode/build.c - descent from what a group stores to what it loads: graph nodes become values.
 *
 *     value(node, index, guards)
 *         in memory          LOAD  buf[index] where guards
 *         element-wise       EW    of value(operand, index, guards)
 *         reindex            value(x, map(index), guards + "map(index) is inside x")
 *         reduction          of a nest: REDUCE over the axes that its index leaves out
 *         constant           0, 1: CONST; others are arguments: a new literal compiles nothing
 *
 * Index tuples are expressions over the kernel's axes, so a chain of reindexes is composed by
 * substitution, and a node reached twice at the same index is one value (the memo). Guards say
 * where the value matters: whatever it is elsewhere, it may not read outside its buffer. A reindex
 * that can leave its operand makes new guards; a load right below takes them with the overflow
 * value, anything else becomes SELECT(guards, value, overflow).
 *
 * The recursion is as deep as a group, which the fuser bounds; BUILD_DEPTH makes sure.
 *
 * Read before: ccode/build.h. After: ccode/build_reduce.c, build_order.c, then ccode/sched.c. */
#include "ccode/build.h"
#include "ops/code.h"

enum { BUILD_DEPTH = 2000 };

struct BuildMemo { uint64_t hash; uint32_t at, n, value; };

static bool
build_fail(Build *b, const char *what)
{
    if (b->ctx->status)
        return false;
    return b->ctx->mem.failed ? jot_fail_memory(b->ctx, "build")
                              : jot_fail(b->ctx, JOT_EUSE, "build: %s", what);
}

/* ---- memo --------------------------------------------------------------------------------- */

static uint64_t
build_key(Build *b, NodeId id, const Ix *index, int rank, const Guards *g)
{
    uint32_t at = b->keys.n, i;

    if (!jot_vec_reserve(&b->ctx->mem, b->keys, (uint32_t)(rank + g->n + 1)))
        return 0;
    b->keys.v[b->keys.n++] = id;
    for (i = 0; i < (uint32_t)rank; i++)
        b->keys.v[b->keys.n++] = index[i];
    for (i = 0; i < (uint32_t)g->n; i++)
        b->keys.v[b->keys.n++] = g->v[i];
    return jot_hash(1, b->keys.v + at, (b->keys.n - at) * sizeof *b->keys.v) | 1;
}

static bool
build_memo_grow(Build *b)
{
    uint32_t cap = b->cap ? b->cap * 2 : 64, i;
    struct BuildMemo *table = jot_mem_new(&b->ctx->mem, cap, sizeof *table);

    if (!table)
        return false;
    for (i = 0; i < b->cap; i++)
        if (b->table[i].hash) {
            uint32_t j = (uint32_t)b->table[i].hash & (cap - 1);

            while (table[j].hash)
                j = (j + 1) & (cap - 1);
            table[j] = b->table[i];
        }
    jot_mem_free(&b->ctx->mem, b->table, b->cap * sizeof *b->table);
    b->table = table;
    b->cap = cap;
    return true;
}

/* The entry whose key is keys[at..): its value is 0 when it is new. */
static struct BuildMemo *
build_memo_find(Build *b, uint64_t hash, uint32_t at)
{
    uint32_t n = b->keys.n - at, i;

    if (b->used * 2 >= b->cap && !build_memo_grow(b))
        return NULL;
    for (i = (uint32_t)hash & (b->cap - 1); b->table[i].hash; i = (i + 1) & (b->cap - 1)) {
        struct BuildMemo *m = &b->table[i];

        if (m->hash == hash && m->n == n
            && !memcmp(b->keys.v + m->at, b->keys.v + at, n * sizeof *b->keys.v)) {
            b->keys.n = at;
            return m;
        }
    }
    b->table[i].hash = hash;
    b->table[i].at = at;
    b->table[i].n = n;
    b->used++;
    return &b->table[i];
}

/* ---- pieces ------------------------------------------------------------------------------- */

JOT_FN int
jot_build_axis(Build *b, const char *letter, int number, int64_t ext)
{
    char name[16];
    Text text = {NULL, NULL, 0, 0};
    int axis;

    text.s = name;
    text.cap = sizeof name;
    jot_text_f(&text, "%s%d", letter, number);
    axis = jot_kernel_axis(b->k, name, ext);
    if (axis >= 0)
        b->ext[axis] = ext;
    return axis;
}

/* An ALIAS is the node it stands for. */
static NodeId
build_real(jot_Ctx *ctx, NodeId id)
{
    while (jot_node(ctx, id)->kind == NODE_ALIAS && !jot_node(ctx, id)->data)
        id = jot_node(ctx, id)->input[0];
    return id;
}

static bool
build_in_memory(Build *b, NodeId id)
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
    uint32_t i, buf;

    for (i = 0; i < b->args->bufs.n; i++)
        if (b->args->bufs.v[i] == id)
            return i + 1;
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

static uint32_t
build_scalar(Build *b, NodeId id, BuildField field, jot_DType dtype)
{
    static const char *const letter[] = {"k", "seed", "stream"};
    BuildScalar *s;
    char name[20];
    Text text = {NULL, NULL, 0, 0};
    uint32_t i;

    for (i = 0; i < b->args->scalars.n; i++)
        if (b->args->scalars.v[i].node == id && b->args->scalars.v[i].field == field)
            return jot_v_scalar(b->k, (int)i);
    text.s = name;
    text.cap = sizeof name;
    jot_text_f(&text, "%s%u", letter[field], b->args->scalars.n);
    if (!jot_vec_reserve(&b->ctx->mem, b->args->scalars, 1)
        || jot_kernel_scalar(b->k, name, dtype) < 0)
        return 0;
    s = jot_vec_push(&b->ctx->mem, b->args->scalars);
    s->node = id;
    s->field = field;
    s->dtype = (uint8_t)jot_dtype_compute(dtype);
    return jot_v_scalar(b->k, (int)b->args->scalars.n - 1);
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

/* Add a condition; false: it can never hold. */
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
        NodeId id = build_real(b->ctx, node->input[i + 1]);
        uint32_t buf;

        slots[i] = 0;
        if (!(used >> i & 1))
            continue;
        if (!build_in_memory(b, id))
            return build_fail(b, "an index variable is not in memory");
        buf = jot_build_buffer(b, id, BUF_INPUT);
        for (s = 0; s < (int)b->k->slots.n && b->k->slots.v[s] != buf; s++)
            ;
        if (!buf || s >= 64)
            return build_fail(b, "more than 64 index variables in one kernel");
        jot_kernel_slot(b->k, s, buf);
        slots[i] = s;
    }
    return true;
}

static bool
build_guards_join(Build *b, Guards *to, const Guards *from)
{
    bool ok = true;
    int i;

    for (i = 0; i < from->n; i++)
        ok &= jot_build_guard(b, to, from->v[i]);
    return ok;
}

/* An element of memory, `outside` where one of `added` fails. The guards g are there to keep it
 * inside its buffer: an index that is inside in any case does without them. */
static uint32_t
build_load(Build *b, NodeId id, const Ix *index, const Guards *g, const Guards *added,
           jot_Scalar outside)
{
    const Node *node = jot_node(b->ctx, id);
    uint32_t buf = jot_build_buffer(b, id, BUF_INPUT);
    Guards all = *added;
    int d;

    for (d = 0; d < node->rank; d++)
        if (!jot_ix_inside(&b->ctx->ix, index[d], node->ext[d], &b->space))
            break;
    if (d < node->rank)
        build_guards_join(b, &all, g);
    return jot_v_load(b->k, buf, index, all.n, all.v, outside);
}

static uint32_t
build_literal(Build *b, NodeId id)
{
    const Node *node = jot_node(b->ctx, id);

    if (jot_node_is(b->ctx, id, 0) || jot_node_is(b->ctx, id, 1))
        return jot_v_const(b->k, node->dtype, node->value);
    return build_scalar(b, id, BUILD_VALUE, jot_dtype_compute(node->dtype));
}

/* Row-major position of an element, as an index expression. */
static Ix
build_position(Build *b, const Node *node, const Ix *index)
{
    Ix pos = jot_ix_const(&b->ctx->ix, 0);
    int d;

    for (d = 0; d < node->rank; d++)
        pos = jot_ix_add(&b->ctx->ix, jot_ix_scale(&b->ctx->ix, pos, node->ext[d]), index[d]);
    return pos;
}

static uint32_t
build_random(Build *b, NodeId id, const Ix *index)
{
    const Node *node = jot_node(b->ctx, id);
    uint32_t at = jot_v_index(b->k, JOT_U64, build_position(b, node, index));
    uint32_t seed = build_scalar(b, id, BUILD_SEED, JOT_U64);
    uint32_t stream = build_scalar(b, id, BUILD_STREAM, JOT_U64);

    at = jot_v_ew(b->k, EW_ADD, JOT_U64, at, stream, 0);
    return jot_v_ew(b->k, (EwOp)node->op, (jot_DType)node->dtype, seed, at, 0);
}

/* ---- descent ------------------------------------------------------------------------------ */

static uint32_t
build_ew(Build *b, const Node *node, const Ix *index, const Guards *g)
{
    uint32_t v[3] = {0, 0, 0};
    int i;

    for (i = 0; i < node->ninputs && i < 3; i++) {
        v[i] = jot_build_value(b, node->input[i], index, g);
        if (!v[i])
            return 0;
    }
    if (node->op == EW_CAST)
        return jot_v_cast(b->k, (jot_DType)node->dtype, v[0]);
    return jot_v_ew(b->k, (EwOp)node->op, (jot_DType)node->dtype, v[0], v[1], v[2]);
}

/* The reindex's map at `index`: `to` over the kernel's axes, and the guards it adds. *never: one of
 * them cannot hold. */
static bool
build_map(Build *b, const Node *node, const Ix *index, Ix *to, Guards *added, bool *never)
{
    const Node *x = jot_node(b->ctx, node->input[0]);
    IxPool *p = &b->ctx->ix;
    int slots[64], i;

    if (!jot_build_slots(b, node, slots))
        return false;
    for (i = 0; i < node->ncond; i++)
        *never |= !jot_build_guard(b, added, jot_ix_subst(p, node->cond[i], node->rank, index,
                                                          slots, &b->space));
    for (i = 0; i < node->nindex; i++) {
        to[i] = jot_ix_subst(p, node->index[i], node->rank, index, slots, &b->space);
        if (jot_ix_inside(p, to[i], x->ext[i], &b->space))
            continue;
        *never |= !jot_build_guard(b, added, jot_ix_ge0(p, to[i], &b->space));
        *never |= !jot_build_guard(b, added, jot_ix_lt(p, to[i], jot_ix_const(p, x->ext[i]),
                                                       &b->space));
    }
    return true;
}

/* SELECT(all conditions, value, overflow) */
static uint32_t
build_select(Build *b, const Guards *added, uint32_t value, jot_DType dtype, jot_Scalar overflow)
{
    Ix all = jot_ix_const(&b->ctx->ix, 1);
    uint32_t cond, other;
    int i;

    for (i = 0; i < added->n; i++)
        all = jot_ix_and(&b->ctx->ix, all, added->v[i]);
    cond = jot_v_index(b->k, JOT_BOOL, all);
    other = jot_v_const(b->k, dtype, overflow);
    return jot_v_ew(b->k, EW_SELECT, dtype, cond, value, other);
}

/* A chain of reindexes with one overflow value is one map; where it changes, another begins. */
static uint32_t
build_reindex(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    Guards added = {0, {0}}, all = *g;
    Ix at[JOT_MAX_RANK], to[JOT_MAX_RANK];
    jot_Scalar overflow = jot_node(b->ctx, id)->value;
    jot_DType dtype = (jot_DType)jot_node(b->ctx, id)->dtype;
    bool never = false;
    uint32_t v;

    memcpy(at, index, jot_node(b->ctx, id)->rank * sizeof *at);
    for (;;) {
        const Node *node = jot_node(b->ctx, id);
        Guards more = {0, {0}};

        if (!build_map(b, node, at, to, &more, &never))
            return 0;
        if (added.n && more.n && node->value.u != overflow.u)
            break; /* stays: the rest of the chain is a value of its own */
        if (never) { /* always outside */
            v = jot_v_const(b->k, dtype, node->value);
            return added.n ? build_select(b, &added, v, dtype, overflow) : v;
        }
        if (more.n)
            overflow = node->value;
        build_guards_join(b, &added, &more);
        memcpy(at, to, node->nindex * sizeof *at);
        id = build_real(b->ctx, node->input[0]);
        if (jot_node(b->ctx, id)->kind != NODE_REINDEX || build_in_memory(b, id))
            break;
    }
    if (build_in_memory(b, id))
        return build_load(b, id, at, g, &added, overflow);
    build_guards_join(b, &all, &added);
    v = jot_build_value(b, id, at, &all);
    return v && added.n ? build_select(b, &added, v, dtype, overflow) : v;
}

/* The user's expression: a call of the function that the kernel's text will bring along. */
static uint32_t
build_call(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    const Node *node = jot_node(b->ctx, id);
    Text text = {NULL, NULL, 0, 0};
    uint32_t v[CODE_MAP_MOST], value = 0, i;

    for (i = 0; i < node->ninputs && i < CODE_MAP_MOST; i++) {
        v[i] = jot_build_value(b, node->input[i], index, g);
        if (!v[i])
            return 0;
    }
    if (!jot_vec_reserve(&b->ctx->mem, b->args->maps, 1))
        return 0;
    *(NodeId *)jot_vec_push(&b->ctx->mem, b->args->maps) = id;
    text.mem = &b->ctx->mem;
    if (jot_code_map_template(b->ctx, id, &text) && text.s)
        value = jot_v_call(b->k, (jot_DType)node->dtype, text.s, (int)i, v);
    jot_text_free(&text);
    return value;
}

static uint32_t
build_compute(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    const Node *node = jot_node(b->ctx, id);
    Guards none = {0, {0}};
    jot_Scalar zero;

    zero.u = 0;
    if (build_in_memory(b, id))
        return build_load(b, id, index, g, &none, zero);
    switch (node->kind) {
    case NODE_CONST: return build_literal(b, id);
    case NODE_IOTA: return jot_v_index(b->k, (jot_DType)node->dtype, index[node->op]);
    case NODE_RANDOM: return build_random(b, id, index);
    case NODE_EW: return build_ew(b, node, index, g);
    case NODE_MAP: return build_call(b, id, index, g);
    case NODE_REINDEX: return build_reindex(b, id, index, g);
    case NODE_REDUCE: return jot_build_inner(b, id, index);
    default: return build_fail(b, "user's kernel inside of a group");
    }
}

JOT_FN uint32_t
jot_build_value(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    const Node *node;
    struct BuildMemo *memo;
    uint32_t at = b->keys.n, slot, value;
    uint64_t hash;

    id = build_real(b->ctx, id);
    node = jot_node(b->ctx, id);
    hash = build_key(b, id, index, node->rank, g);
    memo = hash ? build_memo_find(b, hash, at) : NULL;
    if (!memo || memo->value)
        return memo ? memo->value : build_fail(b, "memo");
    if (b->depth >= BUILD_DEPTH)
        return build_fail(b, "a group is too deep");
    b->depth++;
    value = build_compute(b, id, index, g);
    b->depth--;
    if (!value)
        return build_fail(b, "too many values in one kernel");
    slot = (uint32_t)hash & (b->cap - 1);
    while (b->table[slot].at != at || b->table[slot].hash != hash)
        slot = (slot + 1) & (b->cap - 1); /* the table may have grown in between */
    b->table[slot].value = value;
    return value;
}

/* ---- a group ------------------------------------------------------------------------------ */

/* An axis of the kernel for each of the group's of more than one element. */
static bool
build_axes(Build *b, const FuseGroup *group)
{
    uint32_t d;
    int axis;

    for (d = 0; d < group->rank; d++) {
        b->axis[d] = jot_ix_const(&b->ctx->ix, 0);
        if (group->ext[d] == 1)
            continue;
        axis = jot_build_axis(b, "i", (int)d, group->ext[d]);
        if (axis < 0)
            return build_fail(b, "too many axes");
        b->axis[d] = jot_ix_axis(&b->ctx->ix, axis);
    }
    return true;
}

JOT_FN void
jot_build_space(Build *b, NodeId id, Ix *index)
{
    const Node *node = jot_node(b->ctx, id);
    const uint8_t *axis = b->graph->fusion->axis[node->at];
    int d, rank = node->kind == NODE_REDUCE ? jot_node(b->ctx, node->input[0])->rank : node->rank;

    for (d = 0; d < rank; d++)
        index[d] = !axis ? b->axis[d]
                 : axis[d] == FUSE_NO_AXIS ? jot_ix_const(&b->ctx->ix, 0) : b->axis[axis[d]];
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
        || build_fail(b, "a store was refused");
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
        jot_build_space(b, id, index);
        if (jot_node(b->ctx, id)->kind == NODE_REDUCE ? !jot_build_reduce(b, id, index, false)
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
    jot_vec_free(&ctx->mem, b.keys);
    jot_mem_free(&ctx->mem, b.table, b.cap * sizeof *b.table);
    return (ok && !ctx->mem.failed) || build_fail(&b, "a kernel was refused");
}

JOT_FN void
jot_build_free(jot_Ctx *ctx, BuildArgs *args)
{
    jot_vec_free(&ctx->mem, args->bufs);
    jot_vec_free(&ctx->mem, args->scalars);
    jot_vec_free(&ctx->mem, args->maps);
}
