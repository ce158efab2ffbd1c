/* ccode/build/value.c - descent from what a group stores to what it loads: graph nodes become
 * values.
 *
 *     value(node, index, guards)
 *         in memory          LOAD  buf[index] where guards
 *         element-wise       EW    of value(operand, index, guards)
 *         reindex            value(x, map(index), guards + "map(index) is inside x")
 *         reduction          of a nest: REDUCE over the axes that its index leaves out
 *         constant           0, 1, infinities: CONST; others, which compile nothing, are arguments
 *
 * Index tuples are expressions over the kernel's axes, so a chain of reindexes is composed by
 * substitution, and a node reached twice at the same index is one value (the memo). Guards say
 * where the value matters: whatever it is elsewhere, it may not read outside its buffer. A reindex
 * that can leave its operand makes new guards; a load right below takes them with the overflow
 * value, anything else becomes SELECT(guards, value, overflow).
 *
 * A group may be deep, the stack is not: a value is asked for again once what it needs is known
 * (build_all).
 *
 * Read before: ccode/build/build.c. After: ccode/build/reduce.c. */
#include "ccode/build/build.h"
#include "ops/user/code.h"

enum { BUILD_EXACT = 6 }; /* levels of picks among numbers of a dtype */

/* An entry of the memo, in keys[at..): the value (0: not known yet), number of words behind, node,
 * indices, guards. */
struct BuildMemo { uint64_t hash; uint32_t at; };
enum { ENTRY_VALUE, ENTRY_WORDS, ENTRY_NODE, ENTRY_INDEX };

/* What is being built: an entry; of a reindex the entry of its operand (0: not met yet), and the
 * guards it adds, in keys. */
struct BuildWait {
    uint32_t entry, inner, added, nadded;
    jot_Scalar overflow;
};

/* ---- memo --------------------------------------------------------------------------------- */

/* A new entry behind the others; 0: out of memory. */
static uint32_t
build_key(Build *b, NodeId id, const Ix *index, int rank, const Guards *g)
{
    uint32_t at = b->keys.n ? b->keys.n : 1, words = (uint32_t)(rank + g->n + 1), *key;

    if (!jot_vec_reserve(&b->ctx->mem, b->keys, words + ENTRY_INDEX))
        return 0;
    b->keys.n = at + ENTRY_NODE + words;
    key = b->keys.v + at;
    key[ENTRY_VALUE] = 0;
    key[ENTRY_WORDS] = words;
    key[ENTRY_NODE] = id;
    memcpy(key + ENTRY_INDEX, index, (size_t)rank * sizeof *index);
    memcpy(key + ENTRY_INDEX + rank, g->v, (size_t)g->n * sizeof *g->v);
    return at;
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

/* The entry of a node at an element; 0: out of memory. */
static uint32_t
build_entry(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    uint32_t at = build_key(b, id, index, jot_node(b->ctx, id)->rank, g), i;
    size_t nbytes = at ? (b->keys.v[at + ENTRY_WORDS] + 1) * sizeof *b->keys.v : 0;
    uint64_t hash;

    if (!at || (b->used * 2 >= b->cap && !build_memo_grow(b)))
        return 0;
    hash = jot_hash(1, b->keys.v + at + ENTRY_WORDS, nbytes) | 1;
    for (i = (uint32_t)hash & (b->cap - 1); b->table[i].hash; i = (i + 1) & (b->cap - 1)) {
        uint32_t found = b->table[i].at;

        if (b->table[i].hash == hash
            && b->keys.v[found + ENTRY_WORDS] == b->keys.v[at + ENTRY_WORDS]
            && !memcmp(b->keys.v + found + ENTRY_WORDS, b->keys.v + at + ENTRY_WORDS, nbytes)) {
            b->keys.n = at;
            return found;
        }
    }
    b->table[i].hash = hash;
    b->table[i].at = at;
    b->used++;
    return at;
}

/* ---- leaves -------------------------------------------------------------------------------- */

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
    uint32_t buf = jot_build_buffer(b, id, jot_build_in_memory(b, id) ? BUF_INPUT : BUF_OUTPUT);
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

    if (jot_node_literal(b->ctx, id))
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

/* Is it one of the dtype's numbers without being rounded? */
static bool
build_exact(const Kernel *k, jot_DType dtype, uint32_t value, int depth)
{
    const Value *v = &k->values.v[value];
    bool picks = v->op == VAL_EW && (v->ew == EW_SELECT || v->ew == EW_MAX || v->ew == EW_MIN
                                     || v->ew == EW_FMAX || v->ew == EW_FMIN || v->ew == EW_NEG
                                     || v->ew == EW_ABS);
    int i;

    if (v->op == VAL_LOAD)
        return k->bufs.v[v->buf].dtype == dtype;
    if (v->op == VAL_CONST || v->op == VAL_SCALAR || (v->op == VAL_EW && v->ew == EW_CAST))
        return v->op != VAL_EW || v->round == dtype;
    picks |= v->op == VAL_REDUCE && (v->ew == EW_MAX || v->ew == EW_MIN) && !v->scaled;
    for (i = v->op == VAL_EW && v->ew == EW_SELECT; picks && i < v->narg; i++)
        picks = depth < BUILD_EXACT
             && build_exact(k, dtype, k->args.v[v->arg + (uint32_t)i], depth + 1);
    return picks;
}

JOT_FN uint32_t
jot_build_rounded(Build *b, jot_DType dtype, uint32_t value)
{
    bool half = dtype == JOT_F16 || dtype == JOT_BF16;

    return value && half && build_exact(b->k, dtype, value, 0) ? value
                                                               : jot_v_cast(b->k, dtype, value);
}

static uint32_t
build_ew(Build *b, const Node *node, const Ix *index, const Guards *g)
{
    uint32_t v[3] = {0, 0, 0};
    int i;

    for (i = 0; i < node->ninputs && i < 3; i++) {
        v[i] = jot_build_value(b, node->input[i], index, g);
        if (node->op >= EW_EQ && node->op <= EW_GE)
            v[i] = jot_build_rounded(b, (jot_DType)jot_node(b->ctx, node->input[i])->dtype, v[i]);
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
        jot_build_bounds(b, to[i], x->ext[i], added, never);
    }
    return true;
}

/* SELECT(all conditions, value, overflow) */
static uint32_t
build_select(Build *b, const Guards *added, uint32_t value, jot_DType dtype, jot_Scalar overflow)
{
    Ix all = jot_ix_all(&b->ctx->ix, added->n, added->v);
    uint32_t cond = jot_v_index(b->k, JOT_BOOL, all), other;
    const Value *v = &b->k->values.v[value];

    if (dtype == JOT_BOOL && v->op == VAL_CONST && v->c.u && !overflow.u)
        return cond;
    other = jot_v_const(b->k, dtype, overflow);
    return jot_v_ew(b->k, EW_SELECT, dtype, cond, value, other);
}

/* Its operand's value is known, or asked for. */
static uint32_t
build_around(Build *b, const Node *node, const struct BuildWait *wait)
{
    uint32_t value = b->keys.v[wait->inner + ENTRY_VALUE];
    Guards added;

    if (!value) {
        b->asked = wait->inner;
        return 0;
    }
    added.n = (int)wait->nadded;
    memcpy(added.v, b->keys.v + wait->added, wait->nadded * sizeof *added.v);
    return added.n ? build_select(b, &added, value, (jot_DType)node->dtype, wait->overflow) : value;
}

/* The operand of a map, whose guards it adds, is a value of its own. */
static uint32_t
build_wait(Build *b, const Node *node, NodeId id, const Ix *at, const Guards *g,
           const Guards *added, jot_Scalar overflow)
{
    struct BuildWait *wait = &b->way.v[b->way.n - 1];
    Guards all = *g;

    build_guards_join(b, &all, added);
    wait->inner = build_entry(b, id, at, &all);
    if (!wait->inner || !jot_vec_reserve(&b->ctx->mem, b->keys, (uint32_t)added->n))
        return 0;
    wait->added = b->keys.n;
    wait->nadded = (uint32_t)added->n;
    wait->overflow = overflow;
    memcpy(b->keys.v + b->keys.n, added->v, (size_t)added->n * sizeof *added->v);
    b->keys.n += wait->nadded;
    return build_around(b, node, wait);
}

/* A chain of reindexes with one overflow value is one map; where it changes, another begins. */
static uint32_t
build_reindex(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    Guards added = {0, {0}};
    Ix at[JOT_MAX_RANK], to[JOT_MAX_RANK];
    const Node *outer = jot_node(b->ctx, id);
    jot_Scalar overflow = outer->value;
    bool never = false;

    if (b->way.v[b->way.n - 1].inner)
        return build_around(b, outer, &b->way.v[b->way.n - 1]);
    memcpy(at, index, outer->rank * sizeof *at);
    for (;;) {
        const Node *node = jot_node(b->ctx, id);
        Guards more = {0, {0}};

        if (!build_map(b, node, at, to, &more, &never))
            return 0;
        if (added.n && more.n && node->value.u != overflow.u)
            break; /* stays: the rest of the chain is a value of its own */
        if (never) { /* always outside */
            uint32_t v = jot_v_const(b->k, (jot_DType)outer->dtype, node->value);

            return added.n ? build_select(b, &added, v, (jot_DType)outer->dtype, overflow) : v;
        }
        if (more.n)
            overflow = node->value;
        build_guards_join(b, &added, &more);
        memcpy(at, to, node->nindex * sizeof *at);
        id = jot_build_real(b->ctx, node->input[0]);
        if (jot_node(b->ctx, id)->kind != NODE_REINDEX || jot_build_in_memory(b, id))
            break;
    }
    if (jot_build_in_memory(b, id))
        return build_load(b, id, at, g, &added, overflow);
    return build_wait(b, outer, id, at, g, &added, overflow);
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
    if (jot_code_map_name(b->ctx, id, &text) && text.s)
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
    if (jot_build_in_memory(b, id))
        return build_load(b, id, index, g, &none, zero);
    switch (node->kind) {
    case NODE_CONST: return build_literal(b, id);
    case NODE_IOTA: return jot_v_index(b->k, (jot_DType)node->dtype, index[node->op]);
    case NODE_RANDOM: return build_random(b, id, index);
    case NODE_EW: return build_ew(b, node, index, g);
    case NODE_MAP: return build_call(b, id, index, g);
    case NODE_REINDEX: return build_reindex(b, id, index, g);
    case NODE_REDUCE: return jot_build_inner(b, id, index);
    default: return jot_build_fail(b, "user's kernel inside of a group");
    }
}

/* The last one on the way: its value; 0 with b->asked: it waits for that entry. */
static uint32_t
build_step(Build *b)
{
    const uint32_t *key = b->keys.v + b->way.v[b->way.n - 1].entry;
    NodeId id = key[ENTRY_NODE];
    uint32_t rank = jot_node(b->ctx, id)->rank;
    Ix index[JOT_MAX_RANK];
    Guards g;

    g.n = (int)(key[ENTRY_WORDS] - rank - 1);
    memcpy(index, key + ENTRY_INDEX, rank * sizeof *index);
    memcpy(g.v, key + ENTRY_INDEX + rank, (size_t)g.n * sizeof *g.v);
    return build_compute(b, id, index, &g);
}

/* The entry and all that it waits for. */
static uint32_t
build_all(Build *b, uint32_t root)
{
    b->asked = root;
    while (b->asked || b->way.n) {
        struct BuildWait *wait;
        uint32_t value;

        if (b->asked) {
            wait = jot_vec_push(&b->ctx->mem, b->way);
            wait->entry = b->asked;
            b->asked = 0;
        }
        value = b->ctx->mem.failed ? 0 : build_step(b);
        if (b->asked)
            continue;
        if (!value) {
            b->way.n = 0;
            return jot_build_fail(b, "too many values in one kernel");
        }
        b->keys.v[b->way.v[--b->way.n].entry + ENTRY_VALUE] = value;
    }
    return b->keys.v[root + ENTRY_VALUE];
}

JOT_FN uint32_t
jot_build_value(Build *b, NodeId id, const Ix *index, const Guards *g)
{
    uint32_t entry = build_entry(b, jot_build_real(b->ctx, id), index, g);

    if (!entry)
        return jot_build_fail(b, "memo");
    if (b->keys.v[entry + ENTRY_VALUE])
        return b->keys.v[entry + ENTRY_VALUE];
    if (!b->way.n)
        return build_all(b, entry);
    b->asked = entry;
    return 0;
}

JOT_FN void
jot_build_values_free(Build *b)
{
    jot_vec_free(&b->ctx->mem, b->keys);
    jot_vec_free(&b->ctx->mem, b->way);
    jot_mem_free(&b->ctx->mem, b->table, b->cap * sizeof *b->table);
}
