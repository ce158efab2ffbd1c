/* save/write.c - a graph becomes text: which nodes it has, and what each is.
 *
 *     outputs, updates, inputs     the roots
 *     all                          what they stand on, inputs first
 *     DEPENDS                      on an input, a parameter, chance: computed by every call
 *     CUT                          what does not, and has elements: a tensor of the file, as
 *                                  jot_compile makes a constant of it
 *     NEEDED                       what a root reaches without passing a cut: the file's nodes
 *
 * Nothing of the context changes: assignments that wait for the next evaluation still do.
 *
 * Read before: save/save.h. After: save/write_map.c, save/write_code.c, save/write_flow.c,
 * save/read.c. */
#include "save/save.h"
#ifndef JOT_NO_HOST
#include "layer.h"
#include <string.h>

const char *const jot_save_words[SAVE_WORDS] = {
#define SAVE_WORD(ID, name) name,
#define SAVE_KIND(...)
#include "save/save.def"
};

const SaveKind jot_save_kinds[] = {
#define SAVE_WORD(...)
#define SAVE_KIND(name, kind, must, may) {name, kind, must, may},
#include "save/save.def"
};

JOT_FN const SaveKind *
jot_save_kind(const char *name)
{
    const SaveKind *kind = jot_save_kinds;
    int op;

    for (; *kind->name; kind++)
        if (jot_str_eq(kind->name, name))
            return kind;
    for (op = 1; op < EW_OPS; op++)
        if (jot_str_eq(jot_ew_info[op].name, name))
            return kind;
    return NULL;
}

/* ---- roots -------------------------------------------------------------------------------- */

static bool
saving_is_input(const Saving *s, NodeId id)
{
    return jot_find_u32(s->in.v, s->in.n, id) != 0;
}

static bool
saving_lists(Saving *s, jot_Vars inputs, jot_Vars outputs)
{
    jot_Ctx *ctx = s->ctx;
    int k;

    for (k = 0; k < inputs.n; k++) {
        NodeId id = jot_node_at(ctx, inputs, k, "save", "inputs");

        if (!id)
            return false;
        if (jot_node(ctx, id)->kind != NODE_LEAF)
            return jot_fail(ctx, JOT_EUSE, "save: inputs[%d] is an expression; an array or a "
                            "parameter is asked, which the graph was built on", k);
        if (saving_is_input(s, id))
            return jot_fail(ctx, JOT_EUSE, "save: inputs[%d] is there twice", k);
        if (!jot_vec_add(ctx, s->in, id, "save"))
            return false;
    }
    for (k = 0; k < outputs.n; k++) {
        NodeId id = jot_node_at(ctx, outputs, k, "save", "outputs");

        if (!id || !jot_vec_add(ctx, s->out, id, "save"))
            return false;
    }
    return true;
}

/* Set to what no call can change; as jot_compile has it. */
static bool
saving_is_fixed(const Saving *s, NodeId id)
{
    const Node *n;

    while ((n = jot_node(s->ctx, id))->kind == NODE_ALIAS)
        id = n->input[0];
    return n->kind == NODE_CONST
        || (n->kind == NODE_LEAF && !(n->flags & NODE_STATE) && !saving_is_input(s, id));
}

static bool
saving_waits(const Saving *s, const char *what)
{
    return jot_fail(s->ctx, JOT_EUSE, "save: %s and has not run: call jot_run before the step is "
                    "built", what);
}

/* Where no step waits, what else does runs now. */
static bool
saving_updates(Saving *s)
{
    jot_Ctx *ctx = s->ctx;
    bool any = false;
    uint32_t k;

    for (k = 0; k < ctx->undo.n; k++) {
        NodeId now = jot_undo_now(ctx, k);

        any = any || (now && !saving_is_fixed(s, now));
    }
    if (!any)
        return jot_plan_run(ctx, NULL, 0);
    for (k = 0; k < ctx->undo.n; k++) {
        SaveUpdate u = {ctx->undo.v[k].slot, ctx->undo.v[k].old, jot_undo_now(ctx, k)};

        if (!u.value)
            continue;
        if (saving_is_fixed(s, u.value))
            return saving_waits(s, "a variable was set");
        if (jot_node(ctx, u.old)->kind != NODE_LEAF)
            return saving_waits(s, "what is assigned was made by jot_param_of");
        if (saving_is_input(s, u.old))
            return jot_fail(ctx, JOT_EUSE, "save: an input is assigned");
        if (jot_node(ctx, u.value)->kind == NODE_ALIAS)
            u.value = jot_node(ctx, u.value)->input[0];
        if (!jot_vec_add(ctx, s->updates, u, "save"))
            return false;
    }
    return true;
}

/* ---- which nodes -------------------------------------------------------------------------- */

#define at_of(s, id) (jot_node((s)->ctx, id)->at)

static uint32_t
saving_place(const Saving *s, NodeId id)
{
    return s->list.number[at_of(s, id)];
}

JOT_FN void
jot_save_places(Saving *s, const char *field, const NodeId *id, uint32_t n)
{
    uint32_t k;

    jot_text_f(&s->json, "%s: [", field);
    for (k = 0; k < n; k++)
        jot_text_f(&s->json, k ? ", %u" : "%u", saving_place(s, id[k]));
    jot_text_f(&s->json, "]");
}

/* A body has no elements of its own. */
static uint8_t
saving_depends(const Saving *s, NodeId id)
{
    const Node *n = jot_node(s->ctx, id);
    int k;

    if (s->depth || n->kind == NODE_RANDOM || (n->kind == NODE_LEAF && n->flags & NODE_STATE)
        || saving_is_input(s, id))
        return SAVED_DEPENDS;
    for (k = 0; k < n->ninputs; k++)
        if (s->list.state[at_of(s, n->input[k])] & SAVED_DEPENDS)
            return SAVED_DEPENDS;
    return n->data && n->kind != NODE_CONST && n->kind != NODE_LEAF ? SAVED_CUT : 0;
}

static void
saving_need(Saving *s, NodeId id)
{
    s->list.state[at_of(s, id)] |= SAVED_NEEDED;
}

/* What the roots stand on. */
static bool
saving_list(Saving *s, const NodeId *root, uint32_t n)
{
    SaveList *l = &s->list;
    Mem *mem = &s->ctx->mem;
    uint32_t k;

    if (!jot_graph_order(s->ctx, root, n, false, &l->all))
        return false;
    l->state = jot_mem_new(mem, l->all.n, 1);
    l->number = jot_mem_new(mem, l->all.n, sizeof *l->number);
    if (!l->state || !l->number)
        return jot_fail_memory(s->ctx, "save");
    for (k = 0; k < l->all.n; k++)
        l->state[k] = saving_depends(s, l->all.v[k]);
    for (k = 0; k < n; k++)
        saving_need(s, root[k]);
    return true;
}

static bool
saving_roots(Saving *s, NodeList *roots)
{
    jot_Ctx *ctx = s->ctx;
    bool ok = true;
    uint32_t k;

    for (k = 0; ok && k < s->out.n; k++)
        ok = jot_vec_add(ctx, *roots, s->out.v[k], "save");
    for (k = 0; ok && k < s->updates.n; k++)
        ok = jot_vec_add(ctx, *roots, s->updates.v[k].value, "save");
    for (k = 0; ok && k < s->updates.n; k++)
        ok = jot_vec_add(ctx, *roots, s->updates.v[k].old, "save");
    for (k = 0; ok && k < s->in.n; k++)
        ok = jot_vec_add(ctx, *roots, s->in.v[k], "save");
    return ok;
}

/* A parameter that begins as an expression, and has not run: an alias that a handle names, and that
 * no update left there. */
static bool
saving_began(const Saving *s, NodeId id)
{
    const jot_Ctx *ctx = s->ctx;
    const Node *n = jot_node(ctx, id);
    uint32_t k;

    if (n->kind != NODE_ALIAS || !(n->flags & NODE_STATE) || n->data)
        return false;
    for (k = 0; k < ctx->undo.n; k++)
        if (jot_undo_now(ctx, k) == id)
            return false;
    for (k = 1; k < ctx->slots.n; k++)
        if (ctx->slots.v[k].node == id)
            return true;
    return false;
}

static bool
saving_number(Saving *s)
{
    uint32_t k;
    int i;

    for (k = s->list.all.n; k-- > 0;) {
        const Node *n = jot_node(s->ctx, s->list.all.v[k]);

        if (!(s->list.state[k] & SAVED_NEEDED) || s->list.state[k] & SAVED_CUT)
            continue;
        for (i = 0; i < n->ninputs; i++)
            saving_need(s, n->input[i]);
        if (n->also)
            saving_need(s, n->also);
    }
    for (k = 0; k < s->list.all.n; k++) {
        const Node *n = jot_node(s->ctx, s->list.all.v[k]);

        if (!(s->list.state[k] & SAVED_NEEDED))
            continue;
        if (saving_began(s, s->list.all.v[k]))
            return saving_waits(s, "a parameter was made by jot_param_of");
        if (n->kind == NODE_RANDOM && n->stream >> 40 < s->first_draw)
            s->first_draw = n->stream >> 40;
        s->list.number[k] = s->list.nodes++;
    }
    return true;
}

/* ---- text --------------------------------------------------------------------------------- */

/* Bytes of the character at s; 0: it is none of UTF-8, which has no halves of pairs (U+D800 to
 * U+DFFF), nothing beyond U+10FFFF and each character in its least bytes. */
static int
saving_utf8(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0, k;
    uint32_t code = n > 1 ? *s & 0x7fu >> n : *s;

    for (k = 1; k < n; k++) {
        if (s[k] >> 6 != 2)
            return 0;
        code = code << 6 | (s[k] & 0x3f);
    }
    return code < least[n] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : n;
}

JOT_FN bool
jot_save_string(Saving *s, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    int n;

    jot_text_put(&s->json, "\"", 1);
    for (; *p; p += n) {
        n = saving_utf8(p);
        if (!n)
            return jot_fail(s->ctx, JOT_EUSE, "save: \"%.*s\" is no UTF-8 text", 60, text);
        if (*p == '"' || *p == '\\')
            jot_text_f(&s->json, "\\%c", *p);
        else if (*p < 32)
            jot_text_f(&s->json, "\\u%04x", *p);
        else
            jot_text_put(&s->json, (const char *)p, (size_t)n);
    }
    jot_text_put(&s->json, "\"", 1);
    return true;
}

static bool
saving_named(Saving *s, SaveWord word, const char *text)
{
    jot_text_f(&s->json, ", \"%s\": ", jot_save_words[word]);
    return jot_save_string(s, text);
}

/* A number of JSON's, if it says all of the value; else its bits. */
static void
saving_value(Saving *s, jot_Scalar v, jot_DType dtype)
{
    double d = jot_scalar_f64(v, dtype);
    bool number = d >= -9007199254740992.0 && d <= 9007199254740992.0;
    bool narrow = jot_dtype_compute(dtype) == JOT_F32;
    char text[40];
    int n;

    number = number && jot_scalar_from_f64(d, dtype).u == v.u && (d || !v.u);
    if (number && d == (double)(int64_t)d)
        jot_text_f(&s->json, ", \"value\": %lld", (long long)d);
    else if (number && (n = jot_text_float(text, d, narrow)) && !memchr(text, 'x', (size_t)n))
        jot_text_f(&s->json, ", \"value\": %.*s", n - narrow, text);
    else
        jot_text_f(&s->json, ", \"bits\": \"%08x%08x\"", (unsigned)(v.u >> 32), (unsigned)v.u);
}

/* ---- nodes -------------------------------------------------------------------------------- */

/* The name of a tensor: the node's, or the kind's and a number; no two are the same. */
static const char *
saving_tensor_name(Saving *s, NodeId id, const char *kind)
{
    const char *given = jot_node(s->ctx, id)->name; /* a tensor's may be as long as a layer's */
    Text name = {&s->ctx->mem, NULL, 0, 0};
    const char *copy;
    uint32_t k, tries = 0;

    given = given && jot_str_len(given) < JOT_NAME_SIZE ? given : NULL;
    do {
        name.n = 0;
        if (given)
            jot_text_f(&name, tries ? "%s.%u" : "%s", given, tries + 1);
        else
            jot_text_f(&name, "%s.%u", kind, s->tensors.n + tries);
        for (k = 0; name.s && k < s->tensors.n && !jot_str_eq(s->tensors.v[k].name, name.s); k++)
            ;
        tries++;
    } while (name.s && k < s->tensors.n);
    copy = name.s ? jot_arena_copy(&s->arena, name.s, name.n) : NULL;
    jot_text_free(&name);
    return copy;
}

static bool
saving_leaf(Saving *s, NodeId id, const char **op, const char **tensor)
{
    const Node *n = jot_node(s->ctx, id);
    SaveTensor t = {id, NULL};

    *op = n->flags & NODE_HOLE && n->kind == NODE_LEAF ? "hole" : saving_is_input(s, id) ? "input"
        : n->flags & NODE_STATE && n->kind == NODE_LEAF ? "param" : "array";
    if (**op == 'h' || **op == 'i')
        return true;
    t.name = *tensor = saving_tensor_name(s, id, *op);
    return t.name ? jot_vec_add(s->ctx, s->tensors, t, "save") : jot_fail_memory(s->ctx, "save");
}

static const char *
saving_op(const Node *n)
{
    const SaveKind *kind = jot_save_kinds;

    if (n->kind == NODE_EW || n->kind == NODE_RANDOM)
        return jot_ew_info[n->op].name;
    if (n->kind == NODE_CODE && !n->code->flow)
        return "code";
    while (kind->kind != n->kind)
        kind++;
    return kind->name;
}

static void
saving_flag(Saving *s, const Node *n, int flag, SaveWord word)
{
    if (n->flags & flag)
        jot_text_f(&s->json, ", \"%s\": 1", jot_save_words[word]);
}

/* What a node is beyond its operands. */
static bool
saving_special(Saving *s, const Node *n)
{
    int k;

    switch (n->kind) {
    case NODE_CONST:
        saving_value(s, n->value, (jot_DType)n->dtype);
        return true;
    case NODE_IOTA:
        jot_text_f(&s->json, ", \"dim\": %d", n->op);
        return true;
    case NODE_RANDOM:
        jot_text_f(&s->json, ", \"draw\": %llu",
                   (unsigned long long)((n->stream >> 40) - s->first_draw));
        return true;
    case NODE_REDUCE:
        jot_text_f(&s->json, ", \"how\": \"%s\"", jot_reduce_info[n->op].name);
        if (n->op == JOT_MEAN || n->op == REDUCE_VAR)
            saving_value(s, n->value, JOT_F64);
        return jot_save_map(s, n);
    case NODE_REINDEX:
        if (n->value.u)
            saving_value(s, n->value, (jot_DType)n->dtype);
        return jot_save_map(s, n);
    case NODE_STACK:
        for (k = 0; k < n->nindex; k++) {
            int64_t v = 0;

            jot_ix_is_const(&s->ctx->ix, n->index[k], &v);
            jot_text_f(&s->json, k ? ", %lld" : ", \"pieces\": [%lld", (long long)v);
        }
        jot_text_f(&s->json, "]");
        return true;
    case NODE_CODE:
    case NODE_MAP:
    case NODE_CUSTOM:
        return n->code->flow ? jot_save_flow(s, n) : jot_save_code(s, n);
    case NODE_PICK:
    case NODE_ALIAS:
        if (n->op || n->kind == NODE_PICK)
            jot_text_f(&s->json, ", \"output\": %d", n->op);
        saving_flag(s, n, NODE_STOP_GRAD, SAVE_STOP_GRAD);
        saving_flag(s, n, NODE_STOP_FUSE, SAVE_STOP_FUSE);
        saving_flag(s, n, NODE_STATE, SAVE_STATE);
        return true;
    default:
        return true;
    }
}

static bool
saving_node(Saving *s, uint32_t at)
{
    NodeId id = s->list.all.v[at];
    const Node *n = jot_node(s->ctx, id);
    bool leaf = n->kind == NODE_LEAF || s->list.state[at] & SAVED_CUT, ok = true;
    const char *op = saving_op(n), *tensor = NULL;
    int k;

    if (leaf && !saving_leaf(s, id, &op, &tensor))
        return false;
    jot_text_f(&s->json, "{\"op\": \"%s\", \"dtype\": \"%s\", \"shape\": [", op,
               jot_dtype_name((jot_DType)n->dtype));
    for (k = 0; k < n->rank; k++)
        jot_text_f(&s->json, k ? ", %lld" : "%lld", (long long)n->ext[k]);
    jot_text_f(&s->json, "]");
    if (n->name)
        ok = saving_named(s, SAVE_NAME, n->name);
    if (tensor)
        ok = ok && saving_named(s, SAVE_TENSOR, tensor);
    if (leaf && !tensor)
        saving_flag(s, n, NODE_STATE, SAVE_STATE);
    if (!leaf) {
        if (n->ninputs || n->kind == NODE_CODE || n->kind == NODE_CUSTOM)
            jot_save_places(s, ", \"in\"", n->input, n->ninputs);
        ok = ok && saving_special(s, n);
        if (n->also)
            jot_text_f(&s->json, ", \"beside\": %u", saving_place(s, n->also));
    }
    jot_text_f(&s->json, "}");
    return ok;
}

JOT_FN bool
jot_save_list(Saving *s, const NodeId *root, uint32_t n)
{
    return saving_list(s, root, n) && saving_number(s);
}

JOT_FN bool
jot_save_nodes(Saving *s)
{
    uint32_t k;

    jot_text_f(&s->json, "\"nodes\": [");
    for (k = 0; k < s->list.all.n; k++)
        if (s->list.state[k] & SAVED_NEEDED) {
            jot_text_f(&s->json, s->list.number[k] ? ",\n" : "\n");
            if (!saving_node(s, k))
                return false;
        }
    jot_text_f(&s->json, "]");
    return true;
}

static bool
saving_text(Saving *s)
{
    NodeList roots = {0, 0, NULL};
    bool ok;
    uint32_t k;

    s->first_draw = UINT64_MAX;
    ok = saving_roots(s, &roots) && jot_save_list(s, roots.v, roots.n);
    jot_list_free(s->ctx, &roots);
    if (!ok)
        return false;
    jot_text_f(&s->json, "{\n\"jot\": \"%s\",\n", SAVE_MAGIC);
    jot_save_places(s, "\"inputs\"", s->in.v, s->in.n);
    jot_text_f(&s->json, ",\n");
    jot_save_places(s, "\"outputs\"", s->out.v, s->out.n);
    jot_text_f(&s->json, ",\n\"updates\": [");
    for (k = 0; k < s->updates.n; k++)
        jot_text_f(&s->json, k ? ", [%u, %u]" : "[%u, %u]",
                   saving_place(s, s->updates.v[k].old),
                   saving_place(s, s->updates.v[k].value));
    jot_text_f(&s->json, "],\n");
    if (!jot_save_nodes(s))
        return false;
    jot_text_f(&s->json, "\n}\n");
    return (s->json.s && !s->ctx->mem.failed) || jot_fail_memory(s->ctx, "save");
}

JOT_FN bool
jot_save_graph(Saving *s, jot_Vars inputs, jot_Vars outputs)
{
    s->arena.mem = s->json.mem = &s->ctx->mem;
    return saving_lists(s, inputs, outputs) && saving_updates(s) && saving_text(s);
}

JOT_FN void
jot_save_list_free(Saving *s)
{
    SaveList *l = &s->list;

    jot_mem_free(&s->ctx->mem, l->state, l->state ? l->all.n : 0);
    jot_mem_free(&s->ctx->mem, l->number, l->number ? l->all.n * sizeof *l->number : 0);
    jot_list_free(s->ctx, &l->all);
}

JOT_FN void
jot_save_end(Saving *s)
{
    Mem *mem = &s->ctx->mem;

    jot_save_list_free(s);
    jot_list_free(s->ctx, &s->in);
    jot_list_free(s->ctx, &s->out);
    jot_vec_free(mem, s->updates);
    jot_vec_free(mem, s->tensors);
    jot_text_free(&s->json);
    jot_arena_free(&s->arena);
}
#undef at_of
#else
typedef int jot_save_nothing;
#endif
