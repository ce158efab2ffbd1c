/* save/read.c - text becomes a graph: the nodes of the file, one after the other.
 *
 * Fields are looked up by the words of save.def; a word that is none of its kind's is refused by
 * name, and so is one that lacks. A node is made of nodes that are there by then, once
 * save/check.c found that its operands fit. Draws are numbered on from where the context stands, as
 * if the graph were built now.
 *
 * cJSON takes at most 64 bytes for each of the text, and some 20 more go into nodes.
 *
 * Read before: save/save.h, save/write.c. After: save/check.c, save/read_code.c, save/file.c. */
#include "save/save.h"
#if !defined JOT_NO_HOST && defined JOT_CJSON
#include "ops/flow/flow.h"
#include "ops/rewrite/stack.h"
#include "layer.h"
#include <string.h>

/* Names of tensors are a jot_Named's, which jot_saved_write makes of them. */
enum { LOADING_ROOM = 8 << 20, LOADING_NAME = sizeof((jot_Named *)0)->name };

/* ---- a node's words ----------------------------------------------------------------------- */

JOT_FN bool
jot_load_numbers(Loading *l, const cJSON *array, const char *what, uint32_t below, uint32_t *to)
{
    const cJSON *item;
    int64_t v;

    if (!jot_load_array(l, array, what))
        return false;
    for (item = array->child; item; item = item->next) {
        if (!jot_load_whole(l, item, what, 0, UINT32_MAX, &v))
            return false;
        if (v >= below)
            return jot_load_bad(l, "%s has node %lld, and there is none of this number before it",
                                what, (long long)v);
        *to++ = (uint32_t)v;
    }
    return true;
}

static bool
loading_inputs(Loading *l, LoadNode *n)
{
    uint32_t number[UINT8_MAX], k, count = jot_load_count(n->word[SAVE_IN]);

    if (count > UINT8_MAX)
        return jot_load_bad(l, "it reads %u nodes; %d are taken", count, UINT8_MAX);
    if (!jot_load_numbers(l, n->word[SAVE_IN], "in", l->list.at, number))
        return false;
    for (k = 0; k < count; k++)
        n->input[k] = l->list.id[number[k]];
    n->spec.ninputs = (int)count;
    n->spec.input = n->input;
    return true;
}

static bool
loading_scalar(Loading *l, LoadNode *n, jot_DType dtype)
{
    unsigned char element[8] = {0};
    const cJSON *value = n->word[SAVE_VALUE], *bits = n->word[SAVE_BITS];
    jot_Scalar v = {0};

    if (value && bits)
        return jot_load_bad(l, "it has a value and bits");
    if (bits && !jot_load_bits(l, bits, &v))
        return false;
    if (value && !cJSON_IsNumber(value))
        return jot_load_bad(l, "value is no number");
    if (value)
        v = jot_scalar_from_f64(value->valuedouble, dtype);
    jot_scalar_write(element, dtype, v); /* what the dtype has no element for becomes one */
    n->spec.value = jot_scalar_read(element, dtype);
    return true;
}

/* A sum that is read makes a record of each of its beginnings: they are counted, or few characters
 * could become a great many. */
static Ix
loading_expression(Loading *l, IxParse *parse, const char *text, const char *what)
{
    const IxPool *pool = &l->ctx->ix;
    size_t n = strlen(text);
    Ix ix = n <= SAVE_EXPRESSION ? jot_ix_parse(parse, text) : 0;

    if (!ix)
        return jot_load_bad(l, "%s: \"%.*s\": %s", what, 100, text,
                            n > SAVE_EXPRESSION ? "it is too long" : parse->message), 0;
    parse->nguards = 0;
    l->pool += 32 * n;
    if (pool->recs.n * sizeof *pool->recs.v + pool->terms.n * sizeof *pool->terms.v > l->pool)
        return jot_load_bad(l, "%s: the maps so far are larger than a graph's are", what), 0;
    return ix;
}

static bool
loading_expressions(Loading *l, const LoadNode *n, const cJSON *array, const char *what, int most,
                    Ix *to, int *count)
{
    const Node *over = n->spec.kind == NODE_REDUCE ? jot_node(l->ctx, n->input[0]) : NULL;
    Ix guards[2 * JOT_MAX_RANK * MAP_MAX_EXTRA];
    const int64_t *ext[MAP_MAX_EXTRA];
    int rank[MAP_MAX_EXTRA], k;
    IxParse parse = {.pool = &l->ctx->ix, .extra_rank = rank, .extra_ext = ext, .guards = guards};
    const cJSON *item;
    const char *text;

    parse.space.n = over ? over->rank : n->spec.rank;
    parse.space.ext = over ? over->ext : n->spec.ext;
    parse.max_guards = (int)(sizeof guards / sizeof *guards);
    parse.extra_n = n->spec.ninputs - 1;
    if (parse.extra_n > MAP_MAX_EXTRA)
        return jot_load_bad(l, "%d index variables; %d are taken", parse.extra_n, MAP_MAX_EXTRA);
    for (k = 0; k < parse.extra_n; k++) {
        rank[k] = jot_node(l->ctx, n->input[k + 1])->rank;
        ext[k] = jot_node(l->ctx, n->input[k + 1])->ext;
    }
    if (!jot_load_array(l, array, what))
        return false;
    for (*count = 0, item = array->child; item; item = item->next, ++*count) {
        if (*count == most)
            return jot_load_bad(l, "%s: %d expressions asked, there are more", what, most);
        if (!jot_load_string(l, item, what, &text))
            return false;
        to[*count] = loading_expression(l, &parse, text, what);
        if (!to[*count])
            return false;
    }
    return true;
}

static bool
loading_map(Loading *l, LoadNode *n)
{
    n->spec.index = n->index;
    n->spec.cond = n->cond;
    if (n->spec.ninputs < 1)
        return jot_load_bad(l, "it reads nothing");
    return loading_expressions(l, n, n->word[SAVE_INDEX], "index", JOT_MAX_RANK, n->index,
                               &n->spec.nindex)
        && (!n->word[SAVE_WHERE]
            || loading_expressions(l, n, n->word[SAVE_WHERE], "where", MAP_MAX_COND, n->cond,
                                   &n->spec.ncond));
}

static bool
loading_reduce(Loading *l, LoadNode *n)
{
    const char *how;
    int op = 0;

    if (!jot_load_string(l, n->word[SAVE_HOW], "how", &how))
        return false;
    while (op < REDUCE_OPS && !jot_str_eq(jot_reduce_info[op].name, how))
        op++;
    n->spec.op = op;
    if (op == REDUCE_OPS)
        return jot_load_bad(l, "there is no reduction \"%.*s\"", 40, how);
    return loading_map(l, n) && loading_scalar(l, n, JOT_F64);
}

static bool
loading_pieces(Loading *l, LoadNode *n)
{
    const cJSON *item;
    int64_t v;
    int k = 0;

    if (!jot_load_array(l, n->word[SAVE_PIECES], "pieces"))
        return false;
    for (item = n->word[SAVE_PIECES]->child; item; item = item->next) {
        if (k == 2 * STACK_MOST)
            return jot_load_bad(l, "more than %d pieces", STACK_MOST);
        if (!jot_load_whole(l, item, "a piece", k % 2 ? 0 : -1, (int64_t)1 << 53, &v))
            return false;
        n->index[k++] = jot_ix_const(&l->ctx->ix, v);
    }
    n->spec.index = n->index;
    n->spec.nindex = k;
    return true;
}

static bool
loading_random(Loading *l, LoadNode *n)
{
    jot_Ctx *ctx = l->ctx;
    int64_t draw;

    n->spec.op = n->kind->name[0] == 'u' ? EW_UNIFORM : EW_NORMAL;
    n->spec.unshared = true;
    if (n->spec.dtype != JOT_F32 && n->spec.dtype != JOT_F64)
        return jot_load_bad(l, "%s are drawn; f32 and f64 can be", jot_dtype_name(n->spec.dtype));
    if (!jot_load_whole(l, n->word[SAVE_DRAW], "draw", 0, UINT32_MAX, &draw))
        return false;
    n->spec.value.u = jot_random_seed(ctx, n->spec.op, n->spec.dtype, ctx->stream + (uint64_t)draw,
                                      &n->spec.stream);
    if (l->draws <= (uint64_t)draw)
        l->draws = (uint64_t)draw + 1;
    return true;
}

static bool
loading_flags(Loading *l, LoadNode *n)
{
    static const struct { SaveWord word; int flag; } flags[] = {
        {SAVE_STOP_GRAD, NODE_STOP_GRAD}, {SAVE_STOP_FUSE, NODE_STOP_FUSE}, {SAVE_STATE, NODE_STATE}
    };
    int64_t v = 0;
    int k;

    for (k = 0; k < 3; k++) {
        const cJSON *item = n->word[flags[k].word];

        if (item && !jot_load_whole(l, item, jot_save_words[flags[k].word], 1, 1, &v))
            return false;
        n->spec.flags |= item ? flags[k].flag : 0;
    }
    n->spec.unshared = n->spec.flags & NODE_STATE;
    v = 0;
    if (n->word[SAVE_OUTPUT]
        && !jot_load_whole(l, n->word[SAVE_OUTPUT], "output", 0, UINT8_MAX - 1, &v))
        return false;
    n->spec.op = (int)v;
    return true;
}

static bool
loading_code(Loading *l, LoadNode *n)
{
    int64_t kept = -1;

    if (n->word[SAVE_FLOW]) {
        n->spec.code = jot_load_flow(l, n->word[SAVE_FLOW], &n->spec);
        return n->spec.code != NULL;
    }
    if (!l->code && n->spec.kind != NODE_CUSTOM)
        return jot_load_bad(l, "it has C code, which would be run; jot_load takes such with "
                            "JOT_LOAD_CODE, of files from whom you would run programs");
    if (n->word[SAVE_KEPT]
        && !jot_load_whole(l, n->word[SAVE_KEPT], "kept", 0, n->spec.ninputs, &kept))
        return false;
    n->spec.code = jot_load_code(l, n->word[SAVE_CODE], &n->spec, kept);
    return n->spec.code != NULL;
}

static bool
loading_special(Loading *l, LoadNode *n)
{
    int64_t v;

    switch (n->spec.kind) {
    case NODE_CONST: return loading_scalar(l, n, n->spec.dtype);
    case NODE_IOTA:
        if (!jot_load_whole(l, n->word[SAVE_DIM], "dim", 0, n->spec.rank - 1, &v))
            return false;
        n->spec.op = (int)v;
        return true;
    case NODE_RANDOM: return loading_random(l, n);
    case NODE_REINDEX: return loading_scalar(l, n, n->spec.dtype) && loading_map(l, n);
    case NODE_REDUCE: return loading_reduce(l, n);
    case NODE_STACK: return loading_pieces(l, n);
    case NODE_CODE: case NODE_MAP: case NODE_CUSTOM: return loading_code(l, n);
    case NODE_PICK: case NODE_ALIAS: return loading_flags(l, n);
    default: return true;
    }
}

/* ---- nodes -------------------------------------------------------------------------------- */

/* Has it elements, state or chance, which a body has not? */
static bool
loading_outside(const LoadNode *n)
{
    return n->kind->kind == NODE_RANDOM || n->word[SAVE_STATE]
        || (n->kind->kind == NODE_LEAF && !jot_str_eq(n->kind->name, "hole"));
}

/* Which kind it is, and that it has the words of one. */
static bool
loading_kind(Loading *l, const cJSON *item, LoadNode *n)
{
    const uint32_t always = 1u << SAVE_OP | 1u << SAVE_DTYPE | 1u << SAVE_SHAPE | 1u << SAVE_NAME
                          | 1u << SAVE_BESIDE;
    const char *op;
    int k;

    if (!jot_load_fields(l, item, "it", jot_save_words, SAVE_WORDS, n->word)
        || !jot_load_string(l, n->word[SAVE_OP], "op", &op))
        return false;
    n->kind = *op ? jot_save_kind(op) : NULL;
    if (!n->kind)
        return jot_load_bad(l, "there is no operator \"%.*s\"", 60, op);
    for (k = 0; k < SAVE_WORDS; k++) {
        if (n->word[k] && !((n->kind->must | n->kind->may | always) >> k & 1))
            return jot_load_bad(l, "%s has no field \"%s\"", op, jot_save_words[k]);
        if (!n->word[k] && n->kind->must >> k & 1)
            return jot_load_bad(l, "%s lacks the field \"%s\"", op, jot_save_words[k]);
    }
    if (loading_outside(n) ? l->depth > 0 : !l->depth && jot_str_eq(op, "hole"))
        return jot_load_bad(l, "%s is %s of a branch or loop", op, l->depth ? "within a body"
                            : "outside the bodies");
    n->spec.kind = (NodeKind)n->kind->kind;
    while (n->spec.kind == NODE_EW && !jot_str_eq(jot_ew_info[n->spec.op].name, op))
        n->spec.op++;
    return true;
}

static bool
loading_tensor(Loading *l, const cJSON *item, const char **name)
{
    if (!jot_load_string(l, item, "tensor", name))
        return false;
    return jot_str_len(*name) < LOADING_NAME
        || jot_load_bad(l, "tensor is a name of %zu bytes; %d are taken", jot_str_len(*name),
                        LOADING_NAME - 1);
}

static NodeId
loading_leaf(Loading *l, LoadNode *n, const char *tensor)
{
    bool param = n->word[SAVE_STATE] || n->kind->name[0] == 'p';
    jot_Var v;

    if (l->depth)
        return jot_shape_ok(l->ctx, "load", n->spec.dtype, n->spec.rank, n->ext, &(int64_t){0})
             ? jot_flow_hole(l->ctx, n->spec.dtype, n->spec.rank, n->ext) : 0;
    v = l->leaf(l->user, tensor, n->spec.dtype, jot_ints(n->spec.rank, n->spec.ext), param);

    if (v.slot && param && !jot_vec_add(l->ctx, l->params, v, "load")) {
        jot_free(v);
        return 0;
    }
    if (v.slot && ((param && !jot_vec_add(l->ctx, l->param_at, l->list.at, "load"))
                   || (tensor && !jot_vec_add(l->ctx, l->tensor_at, l->list.at, "load"))))
        return 0;
    l->param[l->list.at] = param ? l->params.n : 0;
    return v.slot ? l->ctx->slots.v[v.slot].node : 0;
}

static bool
loading_beside(Loading *l, LoadNode *n)
{
    int64_t v;

    if (!n->word[SAVE_BESIDE])
        return true;
    if (!l->list.at)
        return jot_load_bad(l, "beside: there is no node before it");
    if (!jot_load_whole(l, n->word[SAVE_BESIDE], "beside", 0, l->list.at - 1, &v))
        return false;
    n->spec.also = l->list.id[v];
    return true;
}

static bool
loading_node(Loading *l, const cJSON *item, LoadNode *n)
{
    const char *name = NULL, *tensor = NULL;
    NodeId id = 0;
    bool ok;

    memset(n, 0, sizeof *n);
    n->spec.ext = n->ext;
    if (!loading_kind(l, item, n) || !jot_load_dtype(l, n->word[SAVE_DTYPE], &n->spec.dtype)
        || !jot_load_shape(l, n->word[SAVE_SHAPE], &n->spec.rank, n->ext)
        || (n->word[SAVE_NAME] && !jot_load_string(l, n->word[SAVE_NAME], "name", &name))
        || (n->word[SAVE_TENSOR] && !loading_tensor(l, n->word[SAVE_TENSOR], &tensor))
        || (n->word[SAVE_IN] && !loading_inputs(l, n)) || !loading_beside(l, n))
        return false;
    ok = loading_special(l, n) && (n->spec.kind == NODE_LEAF || jot_load_check(l, &n->spec));
    if (ok)
        id = n->spec.kind == NODE_LEAF ? loading_leaf(l, n, tensor)
                                       : jot_node_make(l->ctx, &n->spec);
    if (n->spec.code)
        jot_code_unref(l->ctx, n->spec.code);
    jot_node_ref(l->ctx, id);
    l->list.id[l->list.at] = id;
    l->list.name[l->list.at] = tensor ? tensor : name;
    if (ok && !id && !l->ctx->status)
        return jot_fail_memory(l->ctx, "load");
    return id && (!name || jot_node(l->ctx, id)->name || jot_node_name(l->ctx, id, name, "load"));
}

/* ---- the graph ---------------------------------------------------------------------------- */

static bool
loading_list(Loading *l, const cJSON *array, const char *what, uint32_t **to, uint32_t *n)
{
    *n = jot_load_count(array);
    *to = jot_arena_array(&l->arena, uint32_t, *n);
    return (*to || jot_fail_memory(l->ctx, "load"))
        && jot_load_numbers(l, array, what, l->list.n, *to);
}

static bool
loading_updates(Loading *l, const cJSON *array)
{
    uint32_t pair[2], k = 0;
    const cJSON *item;

    if (!jot_load_array(l, array, "updates"))
        return false;
    l->nupdates = jot_load_count(array);
    l->old = jot_arena_array(&l->arena, uint32_t, l->nupdates);
    l->value = jot_arena_array(&l->arena, uint32_t, l->nupdates);
    if (!l->old || !l->value)
        return jot_fail_memory(l->ctx, "load");
    for (item = array->child; item; item = item->next, k++) {
        if (jot_load_count(item) != 2)
            return jot_load_bad(l, "an update is no pair of nodes");
        if (!jot_load_numbers(l, item, "updates", l->list.n, pair))
            return false;
        l->old[k] = pair[0];
        l->value[k] = pair[1];
    }
    return true;
}

JOT_FN bool
jot_load_nodes(Loading *l, const cJSON *nodes)
{
    LoadNode *n = jot_mem_new(&l->ctx->mem, 1, sizeof *n);
    const cJSON *item;
    bool ok;

    l->list.n = jot_load_count(nodes);
    l->list.id = jot_arena_array(&l->arena, NodeId, l->list.n);
    l->list.name = jot_arena_array(&l->arena, const char *, l->list.n);
    ok = (n && l->list.id && l->list.name) || jot_fail_memory(l->ctx, "load");
    for (l->list.at = 0, item = nodes->child; ok && item; item = item->next) {
        ok = loading_node(l, item, n);
        l->list.at += ok;
    }
    jot_mem_free(&l->ctx->mem, n, n ? sizeof *n : 0);
    return ok;
}

JOT_FN void
jot_load_list_free(Loading *l)
{
    uint32_t k;

    for (k = 0; l->list.id && k < l->list.n; k++)
        jot_node_unref(l->ctx, l->list.id[k]);
}

/* Do two nodes have the same dtype and shape, as what is assigned and its value must? */
static bool
loading_alike(const Loading *l, uint32_t a, uint32_t b)
{
    const Node *x = jot_node(l->ctx, l->list.id[a]), *y = jot_node(l->ctx, l->list.id[b]);

    return x->dtype == y->dtype && x->rank == y->rank
        && !memcmp(x->ext, y->ext, (size_t)x->rank * sizeof *x->ext)
        && y->kind != NODE_CODE && y->kind != NODE_CUSTOM;
}

/* Inputs are leaves, each once; outputs have values; what is assigned is a parameter. */
static bool
loading_roots(Loading *l)
{
    uint32_t k;

    for (k = 0; k < l->nin; k++) {
        bool twice = l->given[l->in[k]];

        if (twice || jot_node(l->ctx, l->list.id[l->in[k]])->kind != NODE_LEAF)
            return jot_load_bad(l, "input %u is %s", k, twice ? "there twice" : "no leaf");
        l->given[l->in[k]] = true;
    }
    for (k = 0; k < l->nout; k++)
        if (!loading_alike(l, l->out[k], l->out[k]))
            return jot_load_bad(l, "output %u has no value", k);
    for (k = 0; k < l->nupdates; k++) {
        if (!l->param[l->old[k]])
            return jot_load_bad(l, "node %u is assigned, and is no parameter", l->old[k]);
        if (!loading_alike(l, l->old[k], l->value[k]))
            return jot_load_bad(l, "node %u is assigned node %u, of another dtype or shape",
                                l->old[k], l->value[k]);
        l->old[k] = l->param[l->old[k]] - 1;
    }
    return true;
}

static bool
loading_root(Loading *l)
{
    static const char *const names[] = {"jot", "inputs", "outputs", "updates", "nodes"};
    cJSON *field[5];
    const char *magic;

    if (!jot_load_fields(l, l->root, "the graph", names, 5, field)
        || !jot_load_string(l, field[0], "\"jot\"", &magic))
        return false;
    if (!jot_str_eq(magic, SAVE_MAGIC))
        return jot_load_bad(l, "it is a \"%.*s\"; this version reads \"%s\"", 40, magic,
                            SAVE_MAGIC);
    if (!jot_load_array(l, field[4], "nodes"))
        return false;
    l->list.n = l->list.at = jot_load_count(field[4]);
    l->param = jot_arena_array(&l->arena, uint32_t, l->list.n);
    l->given = jot_arena_array(&l->arena, bool, l->list.n);
    return ((l->param && l->given) || jot_fail_memory(l->ctx, "load"))
        && loading_list(l, field[1], "inputs", &l->in, &l->nin)
        && loading_list(l, field[2], "outputs", &l->out, &l->nout) && loading_updates(l, field[3])
        && jot_load_nodes(l, field[4]) && loading_roots(l);
}

JOT_FN bool
jot_load_graph(Loading *l, const char *text)
{
    const IxPool *pool = &l->ctx->ix;

    l->arena.mem = &l->ctx->mem;
    l->pool = LOADING_ROOM + pool->recs.n * sizeof *pool->recs.v
            + pool->terms.n * sizeof *pool->terms.v;
    l->root = cJSON_Parse(text);
    return l->root ? loading_root(l) : jot_load_bad(l, "its graph is no JSON");
}

JOT_FN void
jot_load_end(Loading *l)
{
    jot_load_list_free(l);
    jot_vec_free(&l->ctx->mem, l->params);
    jot_vec_free(&l->ctx->mem, l->param_at);
    jot_vec_free(&l->ctx->mem, l->tensor_at);
    jot_arena_free(&l->arena);
    cJSON_Delete(l->root);
}
#else
typedef int jot_load_nothing;
#endif
