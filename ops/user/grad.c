/* ops/user/grad.c - user expressions that fuse (MAP nodes), and the gradients of user code.
 *
 *     y = code_map("a * exp(b)", {a, b}, ..., {"exp(b)", "y"})
 *
 *     da = dy * MAP(a, b, y: "exp(b)")       a gradient expression is a MAP of the operands and y
 *     db = dy * MAP(a, b, y: "y")
 *
 *     CODE x -> y, gradient text of x        CODE (x, y, dy) -> dx
 *
 * Gradients of gradients would need texts that nobody gave: they are refused by name. Who has them
 * says so in a gradient of one's own (ops/transform/custom.c) that is made of such code again.
 *
 * Read before: ops/user/code.c. After: ops/grad/grad.c, ccode/emit/user.c. */
#include "ops/maps.h"
#include "ops/user/code.h"

/* ---- expressions -------------------------------------------------------------------------- */

/* Step over a comment or quoted text that begins at s[k]; k itself where none does; -1: no end. */
static long
expr_skip(const char *s, long k)
{
    char quote = s[k];

    if (s[k] == '/' && s[k + 1] == '*') {
        for (k += 2; s[k]; k++)
            if (s[k] == '*' && s[k + 1] == '/')
                return k + 1;
        return -1;
    }
    if (s[k] == '/' && s[k + 1] == '/') {
        while (s[k] && s[k] != '\n')
            k++;
        return k - !s[k];
    }
    if (quote != '\'' && quote != '"')
        return k;
    for (k++; s[k] && s[k] != quote && s[k] != '\n'; k++)
        k += s[k] == '\\' && s[k + 1];
    return s[k] == quote ? k : -1;
}

/* The text goes between two parentheses and must not close them. NULL, or what is wrong. */
static const char *
expr_problem(const char *s)
{
    char open[64];
    int depth = 0;
    bool empty = true;
    long k;

    for (k = 0; s[k]; k++) {
        long end = expr_skip(s, k);

        if (end < 0)
            return "has a comment or quoted text without an end";
        if (end != k) {
            k = end;
            continue;
        }
        if (s[k] == ';' || s[k] == '{' || s[k] == '}' || s[k] == '#')
            return "is not one expression (it has ; { } or #)";
        if ((s[k] == '(' || s[k] == '[') && depth == 64)
            return "is nested too deeply";
        if (s[k] == '(' || s[k] == '[')
            open[depth++] = s[k] == '(' ? ')' : ']';
        else if ((s[k] == ')' || s[k] == ']') && (!depth || open[--depth] != s[k]))
            return "closes a bracket that is not open";
        empty &= s[k] == ' ' || s[k] == '\n' || s[k] == '\t' || s[k] == '\r';
    }
    return depth ? "leaves a bracket open" : empty ? "is empty" : NULL;
}

/* ---- maps --------------------------------------------------------------------------------- */

static bool
map_check(jot_Ctx *ctx, const char *expression, jot_Vars operands, jot_DType dtype,
          const char *const *gradients)
{
    const char *why;
    int k;

    if (operands.n < 1 || operands.n > CODE_MAP_MOST)
        return jot_fail(ctx, JOT_ERANGE, "code_map: %d operands; there may be 1 to %d", operands.n,
                        CODE_MAP_MOST);
    if (!jot_dtype_nbytes(dtype))
        return jot_fail(ctx, JOT_EDTYPE, "code_map: no dtype (%d)", (int)dtype);
    why = expression ? expr_problem(expression) : "is NULL";
    if (why)
        return jot_fail(ctx, JOT_EUSE, "code_map: the expression %s: \"%.*s\"", why, 200,
                        expression ? expression : "");
    for (k = 0; k < operands.n && gradients; k++) {
        why = gradients[k] ? expr_problem(gradients[k]) : NULL;
        if (why)
            return jot_fail(ctx, JOT_EUSE, "code_map: the gradient of operand %c %s: \"%.*s\"",
                            'a' + k, why, 200, gradients[k]);
    }
    return true;
}

static NodeId
map_node(jot_Ctx *ctx, CodeSpec *s, jot_DType dtype, int rank, const int64_t *ext, const NodeId *x)
{
    NodeSpec spec = jot_spec_of(NODE_MAP, dtype, rank, ext);

    spec.ninputs = s->inputs;
    spec.input = x;
    spec.code = s;
    return jot_node_make(ctx, &spec);
}

/* A spec of n operands a, b, ...; the one after the user's operands in a gradient is y. */
static CodeSpec *
map_spec(jot_Ctx *ctx, const char *name, const char *expression, int n, const NodeId *x,
         jot_DType dtype, const char *const *gradients)
{
    CodeSpec *s = jot_codespec_open(ctx, n, 1, 0);
    bool ok = s && jot_codespec_name(s, "", name)
            && jot_codespec_string(s, &s->source, "", expression)
            && jot_codespec_arg(s, n, dtype, 0, NULL);
    int k;

    for (k = 0; k < n && ok; k++)
        ok = jot_codespec_arg(s, k, (jot_DType)jot_node(ctx, x[k])->dtype, 0, NULL)
          && jot_codespec_string(s, &s->arg[k].grad, "", gradients ? gradients[k] : NULL);
    if (!ok) {
        jot_code_unref(ctx, s);
        jot_fail_memory(ctx, "code_map");
        return NULL;
    }
    s->map = true;
    jot_codespec_finish(s);
    return s;
}

static NodeId
map_build(jot_Ctx *ctx, const char *expression, jot_Vars operands, jot_DType dtype,
          const char *const *gradients)
{
    static const char *const names[CODE_MAP_MOST] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                                     "j", "k", "l", "m", "n", "o", "p"};
    NodeId x[CODE_MAP_MOST], id;
    int64_t ext[JOT_MAX_RANK];
    jot_DType common = JOT_BOOL;
    CodeSpec *s;
    int rank, k;

    if (!map_check(ctx, expression, operands, dtype, gradients))
        return 0;
    for (k = 0; k < operands.n; k++) {
        x[k] = jot_node_in(ctx, operands.v[k], "code_map", names[k]);
        if (!x[k])
            return 0;
        common = jot_promote(common, (jot_DType)jot_node(ctx, x[k])->dtype);
    }
    if (!jot_maps_shape(ctx, "code_map", names, operands.n, x, &rank, ext))
        return 0;
    for (k = 0; k < operands.n; k++)
        if (!(x[k] = jot_maps_expand(ctx, jot_maps_cast(ctx, x[k], common), rank, ext)))
            return 0;
    s = map_spec(ctx, "code_map", expression, operands.n, x, dtype, gradients);
    if (!s)
        return 0;
    id = map_node(ctx, s, dtype, rank, ext, x);
    jot_code_unref(ctx, s);
    return id;
}

jot_Var
jot_code_map(const char *expression, jot_Vars operands, jot_DType dtype,
             const char *const *gradients)
{
    jot_Ctx *ctx = jot_ctx_of(operands);
    uint32_t mark = ctx ? ctx->loose.n : 0;

    if (!ctx)
        return JOT_POISON(NULL);
    return jot_maps_done(ctx, map_build(ctx, expression, operands, dtype, gradients), mark);
}

/* ---- gradients of maps -------------------------------------------------------------------- */

/* d out / d operand k. */
static NodeId
map_slope(jot_Ctx *ctx, NodeId node, int k)
{
    const Node *n = jot_node(ctx, node);
    NodeId x[CODE_MAP_MOST + 1], slope;
    char name[40];
    Text text = {NULL, name, 0, sizeof name};
    CodeSpec *s;
    int i;

    for (i = 0; i < n->ninputs; i++)
        x[i] = n->input[i];
    x[i] = node;
    jot_text_f(&text, "code_map gradient of %c", 'a' + k);
    s = map_spec(ctx, name, n->code->arg[k].grad, i + 1, x, (jot_DType)n->dtype, NULL);
    if (!s)
        return 0;
    s->arg[i].name = "y";
    jot_codespec_finish(s);
    slope = map_node(ctx, s, (jot_DType)n->dtype, n->rank, n->ext, x);
    jot_code_unref(ctx, s);
    return slope;
}

static NodeId
map_grad_operand(jot_Ctx *ctx, NodeId node, NodeId dout, int k)
{
    jot_DType own = (jot_DType)jot_node(ctx, jot_node(ctx, node)->input[k])->dtype;

    return jot_maps_cast(ctx, jot_ew_of(ctx, EW_MUL, dout, map_slope(ctx, node, k), 0), own);
}

/* No text was given for the gradient of a float: always false. */
static bool
code_no_text(jot_Ctx *ctx, const CodeSpec *f, int k)
{
    if (f->map)
        return jot_fail(ctx, JOT_EGRAD,
                        "grad: %s \"%.*s\" has no gradient expression for operand %d (%c)",
                        f->name, 200, f->source, k,
                        f->arg[k].name ? f->arg[k].name[0] : 'a' + k);
    return jot_fail(ctx, JOT_EGRAD, "grad: code %s has no gradient source for input %s", f->name,
                    f->arg[k].name);
}

JOT_FN NodeId
jot_code_tangent(jot_Ctx *ctx, NodeId map, int k, NodeId t)
{
    const Node *n = jot_node(ctx, map);

    if (!n->code->arg[k].grad)
        return code_no_text(ctx, n->code, k), 0;
    return jot_ew_of(ctx, EW_MUL, jot_maps_cast(ctx, t, (jot_DType)n->dtype),
                     map_slope(ctx, map, k), 0);
}

/* ---- gradients of whole-array code -------------------------------------------------------- */

static bool
grad_devices(CodeSpec *s, const CodeSpec *f, int input)
{
    int d;

    for (d = 0; d < CODE_DEVICES; d++)
        if (!jot_codespec_string(s, &s->device_source[d], "", f->arg[input].device_grad[d])
            || !jot_codespec_string(s, &s->device_helpers[d], "", f->device_helpers[d]))
            return false;
    return true;
}

/* It runs over the same examples, in parallel along what its input k says. */
static bool
grad_runs(CodeSpec *s, const CodeSpec *f, int k)
{
    int i;

    s->parallel = f->arg[k].grad_parallel;
    s->parallel_dim = f->arg[k].grad_dim;
    s->lead = f->lead;
    memcpy(s->lead_ext, f->lead_ext, sizeof f->lead_ext);
    s->examples = f->examples;
    for (i = 0; i < f->inputs; i++)
        s->arg[i].shared = f->arg[i].shared;
    return grad_devices(s, f, k);
}

/* Inputs x.., y.., dy.. (of float outputs) and their names; the output is dx of input k. */
static CodeSpec *
code_grad_spec(jot_Ctx *ctx, const CodeSpec *f, int k)
{
    int all = f->inputs + f->outputs, n = all, i;
    CodeSpec *s;
    bool ok;

    for (i = 0; i < f->outputs; i++)
        n += jot_dtype_class((jot_DType)f->arg[f->inputs + i].dtype) == CLASS_FLOAT;
    s = jot_codespec_open(ctx, n, 1, f->scalars);
    ok = s && jot_codespec_string(s, &s->source, "", f->arg[k].grad)
      && jot_codespec_string(s, &s->helpers, "", f->helpers)
      && grad_runs(s, f, k)
      && jot_codespec_string(s, &s->arg[n].name, "d", f->arg[k].name)
      && jot_codespec_arg(s, n, (jot_DType)f->arg[k].dtype, f->arg[k].rank, f->arg[k].ext);
    for (i = 0, n = all; i < all && ok; i++) {
        const CodeArg *a = &f->arg[i];

        ok = jot_codespec_string(s, &s->arg[i].name, "", a->name)
          && jot_codespec_arg(s, i, (jot_DType)a->dtype, a->rank, a->ext);
        if (i < f->inputs || jot_dtype_class((jot_DType)a->dtype) != CLASS_FLOAT)
            continue;
        ok = ok && jot_codespec_string(s, &s->arg[n].name, "d", a->name)
          && jot_codespec_arg(s, n, (jot_DType)a->dtype, a->rank, a->ext);
        n++;
    }
    for (i = 0; i < f->scalars && ok; i++) {
        ok = jot_codespec_string(s, &s->scalar_name[i], "", f->scalar_name[i]);
        s->scalar[i] = f->scalar[i];
    }
    if (ok) {
        char name[170];
        Text text = {NULL, name, 0, sizeof name};

        jot_text_f(&text, "%s gradient of %.*s", f->name, 60, f->arg[k].name);
        ok = jot_codespec_name(s, "", name);
    }
    if (ok) {
        s->gradient = true;
        jot_codespec_finish(s);
        return s;
    }
    jot_code_unref(ctx, s);
    jot_fail_memory(ctx, "grad: code");
    return NULL;
}

/* The operands of every gradient kernel of this node: x.., y.., dy... */
static bool
code_grad_inputs(jot_Ctx *ctx, NodeId node, const NodeId *dout, NodeId *x)
{
    const Node *n = jot_node(ctx, node);
    const CodeSpec *f = n->code;
    int64_t ext[2 * JOT_MAX_RANK];
    int at = f->inputs + f->outputs, i;

    for (i = 0; i < f->inputs; i++)
        x[i] = n->input[i];
    if (!jot_codespec_picks(ctx, node, x + f->inputs))
        return false;
    for (i = 0; i < f->outputs; i++) {
        const CodeArg *a = &f->arg[f->inputs + i];

        if (jot_dtype_class((jot_DType)a->dtype) != CLASS_FLOAT)
            continue;
        x[at] = dout[i] ? dout[i] : jot_const_f64(ctx, (jot_DType)a->dtype,
                                                  jot_codespec_ext(f, a, ext), ext, 0);
        if (!x[at++])
            return false;
    }
    return true;
}

/* The sum of what all examples give to an input that they share. */
static NodeId
code_grad_shared(jot_Ctx *ctx, const CodeSpec *f, int k, NodeId d)
{
    const CodeArg *a = &f->arg[k];
    Ix index[JOT_MAX_RANK];
    int i;

    for (i = 0; i < a->rank; i++)
        index[i] = jot_ix_axis(&ctx->ix, f->lead + i);
    return jot_reduce_node(ctx, JOT_ADD, d, a->rank, a->ext, index, 0, NULL, 1, 0, NULL);
}

static NodeId
code_grad_operand(jot_Ctx *ctx, NodeId node, const NodeId *x, int k)
{
    const CodeSpec *f = jot_node(ctx, node)->code;
    CodeSpec *s = code_grad_spec(ctx, f, k);
    NodeId pick = 0;

    if (!s)
        return 0;
    if (!jot_codespec_node(ctx, s, x, &pick))
        pick = 0;
    jot_code_unref(ctx, s);
    return pick && f->arg[k].shared ? code_grad_shared(ctx, f, k, pick) : pick;
}

JOT_FN bool
jot_code_grad(jot_Ctx *ctx, NodeId node, const NodeId *dout, NodeId *din)
{
    const Node *n = jot_node(ctx, node);
    const CodeSpec *f = n->code;
    NodeId x[200];
    bool flows = false, any = false;
    int k;

    for (k = 0; k < f->outputs; k++)
        flows |= dout[k] != 0;
    for (k = 0; k < f->inputs; k++) {
        bool wanted = din[k] && flows;
        bool is_float = jot_dtype_class((jot_DType)f->arg[k].dtype) == CLASS_FLOAT;

        din[k] = wanted && is_float && f->arg[k].grad;
        any |= din[k] != 0;
        if (!wanted || !is_float || f->arg[k].grad)
            continue;
        return code_no_text(ctx, f, k);
    }
    if (any && !f->map && !code_grad_inputs(ctx, node, dout, x))
        return false;
    for (k = 0; k < f->inputs; k++) {
        if (!din[k])
            continue;
        din[k] =
            f->map ? map_grad_operand(ctx, node, dout[0], k) : code_grad_operand(ctx, node, x, k);
        if (!din[k])
            return false;
    }
    return true;
}

/* ---- without a compiler ------------------------------------------------------------------- */

/* Example by example, each with its part of what they do not share. */
static void
code_host_all(const CodeSpec *f, void *const *buf)
{
    void *own[4 * CODE_MOST];
    int64_t e;
    int k;

    for (e = 0; e < f->examples; e++) {
        for (k = 0; k < f->inputs + f->outputs; k++) {
            const CodeArg *a = &f->arg[k];
            size_t nbytes = (size_t)a->nelem * jot_dtype_nbytes((jot_DType)a->dtype);

            own[k] = a->shared ? buf[k] : (char *)buf[k] + (size_t)e * nbytes;
        }
        f->host(f->user, f->inputs + f->outputs, own, f->scalar);
    }
}

JOT_FN bool
jot_code_host(jot_Ctx *ctx, NodeId node, void *const *buf)
{
    const CodeSpec *f = jot_node(ctx, node)->code;

    if (f->host) {
        code_host_all(f, buf);
        return true;
    }
    if (f->map)
        return jot_fail(ctx, JOT_EDEVICE,
                        "%s \"%.*s\" is C code and this backend has no compiler: cpu, tcc, cc, "
                        "opencl and cuda run it",
                        f->name, 200, f->source);
    return jot_fail(ctx, JOT_EDEVICE,
                    "code %s is C code and this backend has no compiler: cpu, tcc and cc run "
                    "it, a device with a source of its own, any with a host function",
                    f->name);
}
