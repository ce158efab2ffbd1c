/* plan/function/function.c - a compiled function's handle, the two ways to call it, and its end.
 *
 *     jot_call(f, in, out)         elements of the caller's: read and written where they lie
 *     jot_call_vars(f, in, out)    variables: read where they lie, results in new ones
 *
 * Both fill in the leaves, let plan/function/run.c do the work and take the results out. Copied is
 * what is not aligned as its elements are; inputs that results lie in or that an update changes;
 * results that lie in each other, that an update keeps or that are asked for twice. JOT_DUMP=p says
 * which and why.
 *
 * Read before: plan/function/function.h, plan/function/run.c. After: examples/10_export.c. */
#include "plan/function/function.h"

static Func *
func_live(jot_Func h)
{
    const struct PlanCache *c = h.ctx ? h.ctx->plans : NULL;
    bool live = c && h.slot && h.slot <= c->funcs.n && c->funcs.v[h.slot - 1].gen == h.gen;

    return live ? c->funcs.v[h.slot - 1].f : NULL;
}

/* The function of a handle; NULL, and an error that names op: it is stale or poison. */
JOT_FN Func *
jot_func_of(jot_Func h, const char *op)
{
    Func *f = func_live(h);

    if (!f && h.ctx && !h.slot)
        jot_fail(h.ctx, JOT_EHANDLE, "%s: f is poison: what was to make it failed", op);
    else if (!f && h.ctx)
        jot_fail(h.ctx, JOT_EHANDLE, "%s: f is a stale handle: the function was freed", op);
    return f;
}

bool
jot_func_ok(jot_Func h)
{
    return func_live(h) != NULL;
}

/* A slot of the context's, of a function that ended or a new one; they count from 1. */
static bool
func_enter(Func *f)
{
    struct PlanCache *c = f->ctx->plans;
    uint32_t k;

    for (k = 0; k < c->funcs.n && c->funcs.v[k].f; k++)
        ;
    if (k == c->funcs.n) {
        if (!jot_vec_reserve(&f->ctx->mem, c->funcs, 1))
            return false;
        c->funcs.v[c->funcs.n++].gen = 1;
    }
    c->funcs.v[k].f = f;
    f->slot = k + 1;
    return true;
}

JOT_FN Func *
jot_func_new(jot_Ctx *ctx, const char *op)
{
    Func *f;

    if (ctx->running || !ctx->backend) {
        jot_fail(ctx, ctx->backend ? JOT_EUSE : JOT_EDEVICE, "%s: %s", op,
                 ctx->running ? "called from within an evaluation or a fetch's callback"
                              : "the context has no backend");
        return NULL;
    }
    if (!jot_home_only(ctx, op) || !jot_flow_outside(ctx, op))
        return NULL;
    f = jot_plan_cache_open(ctx) ? jot_mem_new(&ctx->mem, 1, sizeof *f) : NULL;
    if (f) {
        f->ctx = ctx;
        f->arena.mem = &ctx->mem;
        if (func_enter(f))
            return f;
        jot_mem_free(&ctx->mem, f, sizeof *f);
    }
    jot_fail_memory(ctx, op);
    return NULL;
}

JOT_FN jot_Func
jot_func_handle(jot_Ctx *ctx, const Func *f)
{
    jot_Func handle = {0};

    handle.ctx = ctx;
    if (f) {
        handle.slot = f->slot;
        handle.gen = ctx->plans->funcs.v[f->slot - 1].gen;
    }
    return handle;
}

jot_Func
jot_compile(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs)
{
    static const FuncFor of = {.op = "compile"};

    return jot_func_handle(ctx, ctx && !ctx->status ? jot_func_make(ctx, inputs, outputs, &of)
                                                    : NULL);
}

/* One buffer against its place: there, and of its size. */
static bool
call_fits_buffer(Func *f, const char *list, uint32_t k, const void *p, size_t nbytes,
                 const FuncShape *want)
{
    char text[SHAPE_TEXT];

    if (nbytes != want->nbytes)
        return jot_fail(f->ctx, JOT_ESHAPE, "call: %s[%u] is %s %s: %zu bytes asked, %zu found",
                        list, k, jot_dtype_name(want->dtype),
                        jot_shape_str(text, want->rank, want->ext), want->nbytes, nbytes);
    return p || !nbytes || jot_fail(f->ctx, JOT_EUSE, "call: %s[%u] is NULL", list, k);
}

static bool
call_given(Func *f, jot_Ins in, jot_Outs out)
{
    uint32_t i;

    if (in.n < 0 || (uint32_t)in.n != f->ninputs)
        return jot_fail(f->ctx, JOT_ERANGE, "call: in: %u buffers asked, %d found", f->ninputs,
                        in.n);
    if (out.n < 0 || (uint32_t)out.n != f->noutputs)
        return jot_fail(f->ctx, JOT_ERANGE, "call: out: %u buffers asked, %d found", f->noutputs,
                        out.n);
    if ((in.n && !in.v) || (out.n && !out.v))
        return jot_fail(f->ctx, JOT_EUSE, "call: the list of %s is NULL", in.n && !in.v ? "in"
                                                                                         : "out");
    for (i = 0; i < f->ninputs; i++)
        if (!call_fits_buffer(f, "in", i, in.v[i].data, in.v[i].nbytes, &f->input[i].shape))
            return false;
    for (i = 0; i < f->noutputs; i++)
        if (!call_fits_buffer(f, "out", i, out.v[i].data, out.v[i].nbytes, &f->output[i].shape))
            return false;
    return true;
}

static bool
call_apart(const void *p, size_t n, const void *q, size_t m)
{
    return (uintptr_t)p + n <= (uintptr_t)q || (uintptr_t)q + m <= (uintptr_t)p;
}

static bool
call_aligned(const FuncShape *shape, const void *p)
{
    return (uintptr_t)p % jot_dtype_nbytes(shape->dtype) == 0;
}

static void
call_told(jot_Ctx *ctx, const char *list, uint32_t k, size_t nbytes, const char *why)
{
    Text t = {&ctx->mem, NULL, 0, 0};

    if (!jot_plan_dumps(ctx, 'p'))
        return;
    jot_text_f(&t, "call: %s[%u] is copied, %zu bytes: %s\n", list, k, nbytes, why);
    jot_plan_log(ctx, &t);
}

/* Are elements a part of a state's, over which the call computes new ones? */
static bool
call_changes(const Func *f, const void *p, size_t nbytes)
{
    uint32_t i;

    for (i = 0; i < f->roots.n; i++) {
        const FuncRoot *root = &f->roots.v[i];

        if (root->over && root->buf && !call_apart(p, nbytes, root->buf->p, root->nbytes))
            return true;
    }
    return false;
}

/* Does a result other than number `but` lie there? */
static bool
call_written(const Func *f, uint32_t but, const void *p, size_t nbytes, jot_Outs out)
{
    uint32_t i;

    for (i = 0; i < f->noutputs; i++)
        if (i != but && !call_apart(p, nbytes, out.v[i].data, f->output[i].shape.nbytes))
            return true;
    return false;
}

/* An input where it lies, or its copy. */
static bool
call_placed(Func *f, uint32_t k, const void *p, jot_Outs out, Buffer *view)
{
    FuncInput *input = &f->input[k];
    size_t nbytes = input->shape.nbytes;
    const char *why = !call_aligned(&input->shape, p) ? "not aligned as its elements are"
                    : call_changes(f, p, nbytes) ? "of a variable that the function updates"
                    : call_written(f, UINT32_MAX, p, nbytes, out) ? "a result lies in it" : NULL;

    memset(view, 0, sizeof *view);
    view->nbytes = nbytes;
    view->p = (void *)(uintptr_t)p;
    if (!nbytes || !why)
        return true;
    call_told(f->ctx, "in", k, nbytes, why);
    if (!input->copy && !(input->copy = jot_buffer_new(f->ctx, nbytes)))
        return jot_fail_memory(f->ctx, "call");
    memcpy(input->copy->p, p, nbytes);
    view->p = input->copy->p;
    return true;
}

/* The caller's elements as the call's. */
static bool
call_inputs(Func *f, jot_Ins in, jot_Outs out)
{
    uint32_t i;

    for (i = 0; i < f->leaves.n; i++) {
        FuncLeaf *leaf = &f->leaves.v[i];
        const FuncInput *input = &f->input[leaf->input];

        if (leaf->kind != LEAF_INPUT)
            continue;
        if (!f->graphed) {
            if (!call_placed(f, leaf->input, in.v[leaf->input].data, out, &leaf->view))
                return false;
            continue;
        }
        leaf->buf = jot_buffer_new(f->ctx, input->shape.nbytes);
        if (!leaf->buf)
            return jot_fail_memory(f->ctx, "call");
        if (input->shape.nbytes)
            memcpy(leaf->buf->p, in.v[leaf->input].data, input->shape.nbytes);
    }
    return true;
}

/* Results are computed in the caller's memory where nobody can tell that they were not copied. */
static void
call_outputs(Func *f, jot_Outs out)
{
    uint32_t k;

    for (k = 0; k < f->noutputs && !f->graphed && !f->ctx->config.check; k++) {
        const FuncOutput *o = &f->output[k];
        FuncRoot *root = o->from.computed ? &f->roots.v[o->from.at] : NULL;
        const char *why = !root ? "elements that nothing computes"
                        : root->to ? "another output is the same"
                        : jot_func_keeps(f, o->from.at) ? "a variable keeps it"
                        : !call_aligned(&o->shape, out.v[k].data)
                              ? "not aligned as its elements are"
                        : call_written(f, k, out.v[k].data, o->shape.nbytes, out)
                              ? "another output lies in it" : NULL;

        if (!o->shape.nbytes)
            continue;
        if (why) {
            call_told(f->ctx, "out", k, o->shape.nbytes, why);
            continue;
        }
        memset(&root->given, 0, sizeof root->given);
        root->given.p = out.v[k].data;
        root->given.nbytes = root->nbytes;
        root->to = &root->given;
    }
}

/* What is the caller's is no longer the function's. */
static void
call_end(Func *f)
{
    uint32_t i;

    for (i = 0; i < f->roots.n; i++)
        f->roots.v[i].to = NULL;
    for (i = 0; i < f->leaves.n; i++)
        if (f->leaves.v[i].kind == LEAF_INPUT) {
            jot_buffer_unref(f->ctx, f->leaves.v[i].buf);
            f->leaves.v[i].buf = NULL;
        }
}

/* The function of a handle that is called without extents; NULL, and an error. */
static Func *
call_closed(jot_Func h, const char *op)
{
    Func *f = jot_func_of(h, op);

    if (!f || !f->open)
        return f;
    jot_fail(f->ctx, JOT_EUSE, "%s: extents of the function are open: jot_%s_open says them", op,
             op);
    return NULL;
}

JOT_FN bool
jot_func_call(Func *f, jot_Ins in, jot_Outs out)
{
    uint32_t i;
    bool ok = call_given(f, in, out);

    if (ok)
        call_outputs(f, out);
    ok = ok && jot_func_ready(f) && call_inputs(f, in, out) && jot_func_launch(f)
      && jot_func_fetch(f, f->noutputs);
    for (i = 0; ok && i < f->noutputs; i++)
        jot_func_take(f, &f->output[i], out.v[i].data);
    return jot_func_finish(f, ok);
}

bool
jot_call(jot_Func h, jot_Ins in, jot_Outs out)
{
    Func *f = call_closed(h, "call");

    return f && jot_func_call(f, in, out);
}

static bool
call_fits(Func *f, jot_Vars in, uint32_t k)
{
    NodeId id = jot_node_at(f->ctx, in, (int)k, "call_vars", "in");
    const FuncShape *want = &f->input[k].shape;
    const Node *n = id ? jot_node(f->ctx, id) : NULL;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];

    if (!n)
        return false;
    if (n->dtype == want->dtype && n->rank == want->rank
        && !memcmp(n->ext, want->ext, (size_t)want->rank * sizeof *want->ext))
        return true;
    return jot_fail(f->ctx, n->dtype != want->dtype ? JOT_EDTYPE : JOT_ESHAPE,
                    "call_vars: in[%u] is %s %s, the function was compiled for %s %s", k,
                    jot_dtype_name((jot_DType)n->dtype), jot_shape_str(a, n->rank, n->ext),
                    jot_dtype_name(want->dtype), jot_shape_str(b, want->rank, want->ext));
}

static Node *
call_node(const Func *f, jot_Var v)
{
    return jot_node(f->ctx, f->ctx->slots.v[v.slot].node);
}

static bool
call_vars_in(Func *f, jot_Vars in)
{
    uint32_t k;

    if (in.n < 0 || (uint32_t)in.n != f->ninputs)
        return jot_fail(f->ctx, JOT_ERANGE, "call_vars: in: %u variables asked, %d found",
                        f->ninputs, in.n);
    for (k = 0; k < f->ninputs; k++)
        if (!call_fits(f, in, k))
            return false;
    if (!jot_run(f->ctx, in))
        return false;
    for (k = 0; k < f->ninputs; k++) /* one whose elements are in another layout alone */
        if (!jot_buffer_back(f->ctx, call_node(f, in.v[k])->data))
            return jot_fail_memory(f->ctx, "call_vars");
    return true;
}

/* New arrays; the first that asks for a result has it computed there, and where the graph runs all
 * of them share results. */
static bool
call_vars_out(Func *f, jot_Var *out)
{
    uint32_t k;

    for (k = 0; k < f->noutputs; k++) {
        const FuncShape *shape = &f->output[k].shape;
        const FuncFrom *from = &f->output[k].from;

        out[k] = jot_array_unset(f->ctx, "call_vars", shape->dtype,
                                 jot_ints(shape->rank, shape->ext), !f->graphed);
        if (!out[k].slot)
            return false;
        if (from->computed && !f->graphed && !f->roots.v[from->at].to)
            f->roots.v[from->at].to = jot_node(f->ctx, f->ctx->slots.v[out[k].slot].node)->data;
    }
    return true;
}

static void
call_bind_input(FuncLeaf *leaf, Buffer *buf)
{
    leaf->view = *buf;
    leaf->buf = buf;
    buf->refs++;
}

static void
call_vars_bind(Func *f, jot_Vars in)
{
    uint32_t k;

    for (k = 0; k < f->leaves.n; k++)
        if (f->leaves.v[k].kind == LEAF_INPUT)
            call_bind_input(&f->leaves.v[k], call_node(f, in.v[f->leaves.v[k].input])->data);
}

JOT_FN bool
jot_func_begin(Func *f, Buffer *const *in)
{
    uint32_t k;
    bool ok = jot_func_ready(f);

    for (k = 0; ok && k < f->leaves.n; k++)
        if (f->leaves.v[k].kind == LEAF_INPUT)
            call_bind_input(&f->leaves.v[k], in[f->leaves.v[k].input]);
    return ok && jot_func_launch(f) && jot_func_fetch(f, 0);
}

JOT_FN bool
jot_func_finish(Func *f, bool ok)
{
    if (ok)
        jot_func_updates(f);
    else
        jot_func_drop(f);
    call_end(f);
    return ok;
}

/* A new array has its elements already, or a copy of them; where the graph ran, a share. */
static void
call_vars_take(Func *f, const jot_Var *out)
{
    uint32_t k;

    for (k = 0; k < f->noutputs; k++) {
        const FuncOutput *output = &f->output[k];
        Buffer *result = jot_func_result(f, &output->from);

        if (f->graphed) {
            result->refs++;
            jot_node_set_data(f->ctx, f->ctx->slots.v[out[k].slot].node, result);
        } else {
            jot_func_take(f, output, call_node(f, out[k])->data->p);
        }
    }
}

JOT_FN bool
jot_func_call_vars(Func *f, jot_Vars in, jot_Var *out)
{
    uint32_t k;
    bool ok;

    if (!out && f->noutputs)
        return jot_fail(f->ctx, JOT_EUSE, "call_vars: out is NULL, %u variables come out",
                        f->noutputs);
    for (k = 0; k < f->noutputs; k++)
        out[k] = JOT_POISON(f->ctx);
    ok = !f->ctx->status && call_vars_in(f, in) && call_vars_out(f, out) && jot_func_ready(f);
    if (ok) {
        call_vars_bind(f, in);
        ok = jot_func_launch(f) && jot_func_fetch(f, 0);
    }
    if (ok)
        call_vars_take(f, out);
    jot_func_finish(f, ok);
    for (k = 0; !ok && k < f->noutputs; k++) {
        if (out[k].slot)
            jot_free(out[k]);
        out[k] = JOT_POISON(f->ctx);
    }
    return ok;
}

bool
jot_call_vars(jot_Func h, jot_Vars in, jot_Var *out)
{
    Func *f = call_closed(h, "call_vars");

    return f && jot_func_call_vars(f, in, out);
}

void
jot_func_free(jot_Func h)
{
    if (h.slot)
        jot_func_end(jot_func_of(h, "func_free"));
}

JOT_FN void
jot_func_end(Func *f)
{
    jot_Ctx *ctx = f ? f->ctx : NULL;
    FuncSlot *slot;
    uint32_t i;

    if (!f)
        return;
    jot_home(ctx);
    if (f->open)
        f->end(f->open);
    slot = &ctx->plans->funcs.v[f->slot - 1];
    slot->f = NULL;
    if (!++slot->gen)
        slot->gen = 1;
    for (i = 0; i < f->leaves.n; i++)
        if (f->leaves.v[i].kind == LEAF_CONST)
            jot_node_unref(ctx, f->leaves.v[i].node);
    for (i = 0; i < f->graph.roots.n; i++)
        jot_node_unref(ctx, f->graph.roots.v[i]);
    for (i = 0; i < f->roots.n; i++)
        jot_buffer_unref(ctx, f->roots.v[i].buf);
    for (i = 0; i < f->ninputs; i++)
        jot_buffer_unref(ctx, f->input[i].copy);
    jot_plan_selection_free(ctx, &f->graph);
    if (f->plan)
        jot_plan_free(ctx, f->plan);
    jot_vec_free(&ctx->mem, f->updates);
    jot_vec_free(&ctx->mem, f->leaves);
    jot_vec_free(&ctx->mem, f->roots);
    jot_vec_free(&ctx->mem, f->randoms);
    jot_arena_free(&f->arena);
    jot_mem_free(&ctx->mem, f, sizeof *f);
}

JOT_FN void
jot_func_close(jot_Ctx *ctx)
{
    struct PlanCache *c = ctx->plans;
    uint32_t i;

    for (i = 0; c && i < c->funcs.n; i++) /* with those that they are made of */
        if (c->funcs.v[i].f && c->funcs.v[i].f->open)
            jot_func_end(c->funcs.v[i].f);
    for (i = 0; c && i < c->funcs.n; i++)
        jot_func_end(c->funcs.v[i].f);
    if (c)
        jot_vec_free(&ctx->mem, c->funcs);
}
