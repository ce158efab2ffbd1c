/* ops/user/code.c - user code over whole arrays: checks, copies, and the nodes that carry them.
 *
 *     operands ---> CODE (spec) <--- PICK 0 (first output), PICK 1, ...
 *
 * The user's texts are not understood, only copied: a spec holds copies of all that the user gave,
 * so that a node needs nothing of the caller's later.
 *
 * Read before: ops/user/code.h. After: ops/user/names.c, ops/user/grad.c (maps and gradients),
 * ccode/emit/user.c. */
#include "ops/user/code.h"

/* ---- making specs ------------------------------------------------------------------------- */

JOT_FN CodeSpec *
jot_codespec_open(jot_Ctx *ctx, int inputs, int outputs, int scalars)
{
    Arena arena = {&ctx->mem, NULL};
    CodeSpec *s = jot_arena_array(&arena, CodeSpec, 1);

    if (!s)
        return NULL;
    s->arg = jot_arena_array(&arena, CodeArg, (size_t)(inputs + outputs));
    s->scalar_name = jot_arena_array(&arena, const char *, (size_t)scalars);
    s->scalar = jot_arena_array(&arena, jot_Scalar, (size_t)scalars);
    if (!s->arg || !s->scalar_name || !s->scalar) {
        jot_arena_free(&arena);
        return NULL;
    }
    s->refs = 1;
    s->arena = arena;
    s->inputs = inputs;
    s->outputs = outputs;
    s->scalars = scalars;
    s->examples = 1;
    return s;
}

JOT_FN bool
jot_codespec_string(CodeSpec *s, const char **to, const char *prefix, const char *text)
{
    size_t a = jot_str_len(prefix), b = text ? jot_str_len(text) : 0;
    char *p;

    *to = NULL;
    if (!text)
        return true;
    p = jot_arena_new(&s->arena, a + b + 1, 1);
    if (!p)
        return false;
    memcpy(p, prefix, a);
    memcpy(p + a, text, b);
    *to = p;
    return true;
}

JOT_FN bool
jot_codespec_arg(CodeSpec *s, int k, jot_DType dtype, int rank, const int64_t *ext)
{
    int64_t *copy = jot_arena_array(&s->arena, int64_t, (size_t)rank);
    int d;

    s->arg[k].dtype = (uint8_t)dtype;
    s->arg[k].rank = (uint8_t)rank;
    s->arg[k].ext = copy;
    s->arg[k].nelem = 1;
    for (d = 0; copy && d < rank; d++) {
        copy[d] = ext[d];
        s->arg[k].nelem *= ext[d];
    }
    return copy != NULL;
}

/* Names stand in #line directives, comments and messages: plain characters only, and not too
 * many. */
JOT_FN bool
jot_codespec_name(CodeSpec *s, const char *prefix, const char *name)
{
    char *p;
    size_t k;

    if (!jot_codespec_string(s, &s->name, prefix, name))
        return false;
    p = (char *)(uintptr_t)s->name;
    for (k = 0; p[k] && k < 100; k++)
        if (p[k] < ' ' || p[k] > '~' || p[k] == '"' || p[k] == '\\' || p[k] == '%' || p[k] == '?'
            || p[k] == '*')
            p[k] = '_';
    p[k] = 0;
    return true;
}

static uint64_t
code_hash_text(uint64_t h, const char *s)
{
    return s ? jot_hash(h, s, jot_str_len(s)) : jot_hash_u64(h, 0x5eed);
}

JOT_FN void
jot_codespec_finish(CodeSpec *s)
{
    uint64_t h =
        jot_hash_u64((uint64_t)s->inputs | (uint64_t)s->outputs << 16, (uint64_t)s->scalars);
    int k;

    for (k = 0; k < s->inputs + s->outputs; k++) {
        const CodeArg *a = &s->arg[k];

        h = jot_hash_u64(code_hash_text(code_hash_text(h, a->name), a->grad),
                         a->dtype | (uint64_t)a->shared << 8);
        h = jot_hash(h, a->ext, (size_t)a->rank * sizeof *a->ext);
    }
    for (k = 0; k < s->scalars; k++)
        h = code_hash_text(h, s->scalar_name[k]);
    h = code_hash_text(code_hash_text(code_hash_text(h, s->name), s->helpers), s->source);
    for (k = 0; k < CODE_DEVICES; k++)
        h = code_hash_text(code_hash_text(h, s->device_source[k]), s->device_helpers[k]);
    h = jot_hash_u64(h ^ (uint64_t)s->examples << 20,
                     (uint64_t)s->parallel << 32 | (uint32_t)s->parallel_dim);
    if (!s->source) /* then the host function is what it does */
        h = jot_hash(jot_hash(h, &s->host, sizeof s->host), &s->user, sizeof s->user);
    s->hash = h;
}

/* One of its extents, and the arrays' names and sizes, are new; texts stay where they are. */
JOT_FN CodeSpec *
jot_codespec_examples(jot_Ctx *ctx, CodeSpec *f, int64_t n, const bool *shared)
{
    CodeSpec *s = jot_codespec_open(ctx, f->inputs, f->outputs, 0), own;
    int k;

    if (!s)
        return jot_fail_memory(ctx, "code"), NULL;
    own = *s;
    *s = *f;
    s->refs = 1;
    s->arena = own.arena;
    s->arg = memcpy(own.arg, f->arg, (size_t)(f->inputs + f->outputs) * sizeof *f->arg);
    for (k = 0; k < f->inputs; k++)
        s->arg[k].shared = shared[k];
    s->lead_ext[0] = n;
    memcpy(s->lead_ext + 1, f->lead_ext, (size_t)f->lead * sizeof *f->lead_ext);
    s->lead = f->lead + 1;
    s->examples = f->examples * n;
    s->base = f;
    jot_code_ref(f);
    jot_codespec_finish(s);
    return s;
}

static bool
code_same_text(const char *a, const char *b)
{
    return a && b ? jot_str_eq(a, b) : a == b;
}

JOT_FN bool
jot_code_same(const CodeSpec *a, const CodeSpec *b)
{
    int k;

    if (a == b)
        return true;
    if (a->hash != b->hash || a->map != b->map || a->inputs != b->inputs || a->outputs != b->outputs
        || a->scalars != b->scalars || a->parallel != b->parallel
        || a->parallel_dim != b->parallel_dim || a->examples != b->examples
        || !code_same_text(a->name, b->name)
        || !code_same_text(a->helpers, b->helpers) || !code_same_text(a->source, b->source)
        || (!a->source && (a->host != b->host || a->user != b->user)))
        return false;
    for (k = 0; k < CODE_DEVICES; k++)
        if (!code_same_text(a->device_source[k], b->device_source[k])
            || !code_same_text(a->device_helpers[k], b->device_helpers[k]))
            return false;
    for (k = 0; k < a->inputs + a->outputs; k++) {
        const CodeArg *x = &a->arg[k], *y = &b->arg[k];

        if (x->dtype != y->dtype || x->rank != y->rank || x->shared != y->shared
            || !code_same_text(x->name, y->name)
            || !code_same_text(x->grad, y->grad)
            || (x->rank && memcmp(x->ext, y->ext, x->rank * sizeof *x->ext)))
            return false;
    }
    for (k = 0; k < a->scalars; k++)
        if (!jot_str_eq(a->scalar_name[k], b->scalar_name[k]))
            return false;
    return true;
}

/* ---- checks ------------------------------------------------------------------------------- */

static bool
code_check_counts(jot_Ctx *ctx, const char *op, const jot_Code *c)
{
    const int counts[3] = {c->inputs, c->outputs, c->scalars};
    static const char *const what[3] = {"inputs", "outputs", "scalars"};
    int k;

    for (k = 0; k < 3; k++)
        if (counts[k] < (k == 1) || counts[k] > CODE_MOST)
            return jot_fail(ctx, JOT_ERANGE, "code %s: %d %s; there may be %d to %d", op, counts[k],
                            what[k], k == 1, CODE_MOST);
    if ((c->inputs && (!c->in || !c->in_names)) || !c->out || (c->scalars && !c->scalar)
        || (!c->source && !c->host))
        return jot_fail(ctx, JOT_EUSE, "code %s: %s is NULL", op,
                        !c->source && !c->host      ? "source"
                        : !c->out                   ? "out"
                        : c->inputs && !c->in       ? "in"
                        : c->inputs && !c->in_names ? "in_names"
                                                    : "scalar");
    if (c->parallel && !c->source)
        return jot_fail(ctx, JOT_EUSE, "code %s: parallel is of a source, and there is none: host "
                        "is called once", op);
    return true;
}

static bool
code_inputs(jot_Ctx *ctx, const char *op, const jot_Code *c, NodeId *input)
{
    char what[100];
    int k;

    for (k = 0; k < c->inputs; k++) {
        Text text = {NULL, what, 0, sizeof what};

        jot_text_f(&text, "code %.*s", 60, op);
        input[k] = jot_node_in(ctx, c->in[k], what, c->in_names[k]);
        if (!input[k])
            return false;
        if (c->grad_source && c->grad_source[k]
            && jot_dtype_class((jot_DType)jot_node(ctx, input[k])->dtype) != CLASS_FLOAT)
            return jot_fail(ctx, JOT_EDTYPE,
                            "code %s: input %s is %s and has no gradient, but a gradient "
                            "source is given",
                            op, c->in_names[k],
                            jot_dtype_name((jot_DType)jot_node(ctx, input[k])->dtype));
    }
    return true;
}

/* The input that an output is like, c->inputs for none of that name. */
static int
code_like(const jot_Code *c, const char *name)
{
    int k = 0;

    while (k < c->inputs && !jot_str_eq(c->in_names[k], name))
        k++;
    return k;
}

/* Shape and dtype of output k into arg inputs + k. */
static bool
code_output(jot_Ctx *ctx, const jot_Code *c, CodeSpec *s, int k)
{
    const jot_CodeOut *out = &c->out[k];
    char what[140];
    Text text = {NULL, what, 0, sizeof what};
    int64_t nelem;

    if (out->like) {
        int at = code_like(c, out->like);
        const CodeArg *in = &s->arg[at];

        if (at == c->inputs)
            return jot_fail(ctx, JOT_EUSE, "code %s: output %s is like %s, and no input has "
                            "that name", s->name, out->name, out->like);
        return jot_codespec_arg(s, c->inputs + k, (jot_DType)in->dtype, in->rank, in->ext)
            || jot_fail_memory(ctx, "code");
    }
    if (!jot_dtype_nbytes(out->dtype))
        return jot_fail(ctx, JOT_EDTYPE, "code %s: output %s has no dtype (%d)", s->name, out->name,
                        (int)out->dtype);
    if (!out->shape.v)
        return jot_fail(ctx, JOT_EUSE, "code %s: output %s has no shape and is like no input "
                        "(JOT_SHAPE() is a scalar's)", s->name, out->name);
    jot_text_f(&text, "code %.*s: output %.*s", 60, s->name, 60, out->name);
    if (!jot_shape_ok(ctx, what, out->dtype, out->shape.n, out->shape.v, &nelem))
        return false;
    return jot_codespec_arg(s, c->inputs + k, out->dtype, out->shape.n, out->shape.v)
        || jot_fail_memory(ctx, "code");
}

/* ---- the builder -------------------------------------------------------------------------- */

static bool
code_device(const jot_CodeText *text, int device, int inputs, CodeSpec *s)
{
    int k;

    for (k = 0; k < inputs; k++)
        if (!jot_codespec_string(s, &s->arg[k].device_grad[device], "",
                                 text->grad_source ? text->grad_source[k] : NULL))
            return false;
    return jot_codespec_string(s, &s->device_helpers[device], "", text->helpers)
        && jot_codespec_string(s, &s->device_source[device], "", text->source);
}

static bool
code_copies(const jot_Code *c, CodeSpec *s)
{
    int k;

    for (k = 0; k < c->inputs; k++)
        if (!jot_codespec_string(s, &s->arg[k].name, "", c->in_names[k])
            || !jot_codespec_string(s, &s->arg[k].grad, "",
                                    c->grad_source ? c->grad_source[k] : NULL))
            return false;
    for (k = 0; k < c->outputs; k++)
        if (!jot_codespec_string(s, &s->arg[c->inputs + k].name, "", c->out[k].name))
            return false;
    for (k = 0; k < c->scalars; k++) {
        if (!jot_codespec_string(s, &s->scalar_name[k], "", c->scalar[k].name))
            return false;
        s->scalar[k].f = c->scalar[k].value;
    }
    s->host = c->host;
    s->user = c->user;
    return code_device(&c->opencl, CODE_OPENCL, c->inputs, s)
           && code_device(&c->cuda, CODE_CUDA, c->inputs, s)
           && jot_codespec_string(s, &s->helpers, "", c->helpers)
           && jot_codespec_string(s, &s->source, "", c->source);
}

static bool
code_grad_parallel(jot_Ctx *ctx, const jot_Code *c, CodeSpec *s)
{
    bool ok = true;
    int k;

    for (k = 0; k < c->inputs && c->grad_parallel && ok; k++)
        ok = !c->grad_parallel[k]
          || jot_codespec_parallel(ctx, c->grad_parallel[k], s, true, &s->arg[k].grad_parallel,
                                   &s->arg[k].grad_dim);
    return ok;
}

static CodeSpec *
code_spec(jot_Ctx *ctx, const char *op, const jot_Code *c, const NodeId *input)
{
    CodeSpec *s = jot_codespec_open(ctx, c->inputs, c->outputs, c->scalars);
    bool ok = s && jot_codespec_name(s, "", op) && code_copies(c, s);
    int k;

    for (k = 0; k < c->inputs && ok; k++) {
        const Node *n = jot_node(ctx, input[k]);

        ok = jot_codespec_arg(s, k, (jot_DType)n->dtype, n->rank, n->ext);
    }
    if (!ok)
        jot_fail_memory(ctx, "code");
    for (k = 0; k < c->outputs && ok; k++)
        ok = code_output(ctx, c, s, k);
    ok = ok && (!c->parallel || jot_codespec_parallel(ctx, c->parallel, s, false, &s->parallel,
                                                      &s->parallel_dim))
      && code_grad_parallel(ctx, c, s);
    if (ok) {
        jot_codespec_finish(s);
        return s;
    }
    jot_code_unref(ctx, s);
    return NULL;
}

JOT_FN int
jot_codespec_ext(const CodeSpec *s, const CodeArg *a, int64_t *ext)
{
    memcpy(ext, s->lead_ext, (size_t)s->lead * sizeof *ext);
    memcpy(ext + s->lead, a->ext, (size_t)a->rank * sizeof *ext);
    return s->lead + a->rank;
}

JOT_FN bool
jot_codespec_picks(jot_Ctx *ctx, NodeId code, NodeId *pick)
{
    const CodeSpec *s = jot_node(ctx, code)->code;
    int k;

    for (k = 0; k < s->outputs; k++) {
        const CodeArg *a = &s->arg[s->inputs + k];
        int64_t ext[2 * JOT_MAX_RANK];
        int rank = jot_codespec_ext(s, a, ext);
        NodeSpec out = jot_spec_of(NODE_PICK, (jot_DType)a->dtype, rank, ext);

        out.op = k;
        out.ninputs = 1;
        out.input = &code;
        pick[k] = jot_node_make(ctx, &out);
        if (!pick[k])
            return false;
    }
    return true;
}

JOT_FN bool
jot_codespec_node(jot_Ctx *ctx, CodeSpec *s, const NodeId *input, NodeId *pick)
{
    /* of a value that nobody sees: the outputs are the picks */
    NodeSpec code = jot_spec_of(NODE_CODE, JOT_BOOL, 0, NULL);
    NodeId id;

    code.ninputs = s->inputs;
    code.input = input;
    code.code = s;
    id = jot_node_make(ctx, &code);
    return id && jot_codespec_picks(ctx, id, pick);
}

bool
jot_code(jot_Ctx *ctx, const jot_Code *code, jot_Var *outputs)
{
    const char *op = code && code->name && *code->name ? code->name : "(unnamed)";
    NodeId input[CODE_MOST], pick[CODE_MOST];
    CodeSpec *spec;
    uint32_t mark;
    bool ok;
    int k;

    if (!ctx)
        return false;
    if (!code || !outputs)
        return jot_fail(ctx, JOT_EUSE, "code: %s is NULL", code ? "outputs" : "the description");
    for (k = 0; k < code->outputs && k < CODE_MOST; k++)
        outputs[k] = JOT_POISON(ctx);
    if (!code_check_counts(ctx, op, code) || !jot_codespec_names(ctx, op, code)
        || !code_inputs(ctx, op, code, input))
        return false;
    spec = code_spec(ctx, op, code, input);
    if (!spec)
        return false;
    mark = ctx->loose.n;
    ok = jot_codespec_node(ctx, spec, input, pick)
         && jot_vars_of(ctx, spec->outputs, pick, outputs);
    jot_graph_sweep(ctx, mark);
    jot_code_unref(ctx, spec);
    return ok;
}
