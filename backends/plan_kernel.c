/* backends/plan_kernel.c - one group becomes a step of the plan: its kernel as text, shared by that
 * text with every other step that computes the same.
 *
 *     group -> Kernel -> Sched -> "void jot_k_0000000000000000(...)" -> hash -> found, or fresh
 *
 * The text is printed under a placeholder of a name; its hash is the name that goes in. All fresh
 * kernels of a plan are compiled as one text, user code apart: two users' helpers may have one
 * name.
 *
 * Read before: backends/plan_parts.h, ccode/build.h, ccode/emit.h. After: backends/plan_make.c. */
#include "backends/plan_parts.h"
#include "ops/code.h"

#define KERNEL_NO_NAME "jot_k_0000000000000000"

/* ---- variables ---------------------------------------------------------------------------- */

static uint64_t
kernel_seed(const char *word)
{
    uint64_t seed = 0;

    while (*word && *word != ':')
        word++;
    for (; *word; word++)
        if (*word >= '0' && *word <= '9')
            seed = seed * 10 + (uint64_t)(*word - '0');
    return seed;
}

static bool
kernel_random(const char *word)
{
    return word && word[0] == 'r' && word[1] == 'a';
}

static int64_t
kernel_elements(const Make *m, uint32_t pos)
{
    return m->layout[pos] ? m->layout[pos]->nelem : jot_node(m->ctx, m->s->list.v[pos])->nelem;
}

JOT_FN void
jot_plan_var_touch(Make *m, uint32_t number)
{
    m->plan->vars.v[number].last = m->plan->steps.n;
}

JOT_FN bool
jot_plan_var(Make *m, uint32_t pos, uint32_t *number)
{
    const Node *node = jot_node(m->ctx, m->s->list.v[pos]);
    PlanVar *v;

    if (!m->var[pos]) {
        if (!jot_vec_reserve(&m->ctx->mem, m->plan->vars, 1))
            return jot_fail_memory(m->ctx, "plan");
        v = jot_vec_push(&m->ctx->mem, m->plan->vars);
        v->kind = (uint8_t)(node->data ? VAR_LEAF : m->root[pos] ? VAR_ASKED : VAR_TEMP);
        v->pos = pos;
        v->root = m->root[pos] ? m->root[pos] - 1 : 0;
        v->first = m->plan->steps.n;
        if (v->kind == VAR_TEMP)
            v->nbytes = (size_t)kernel_elements(m, pos)
                      * jot_dtype_nbytes((jot_DType)node->dtype);
        m->var[pos] = m->plan->vars.n;
    }
    *number = m->var[pos] - 1;
    jot_plan_var_touch(m, *number);
    return true;
}

static bool
kernel_arg(Make *m, uint32_t number)
{
    if (!jot_vec_reserve(&m->ctx->mem, m->plan->args, 1))
        return jot_fail_memory(m->ctx, "plan");
    *(uint32_t *)jot_vec_push(&m->ctx->mem, m->plan->args) = number;
    return true;
}

/* ---- text --------------------------------------------------------------------------------- */

/* What the kernel computes, for comments and messages: the operators of the group, in order. */
static void
kernel_describe(const Make *m, uint32_t group, char *what, size_t nbytes)
{
    const FuseGroup *g = &m->fusion->groups[group];
    Text t = {NULL, NULL, 0, 0};
    uint32_t i;

    t.s = what;
    t.cap = nbytes;
    what[0] = 0;
    for (i = 0; i < g->n && t.n + 24 < nbytes; i++) {
        const Node *n = jot_node(m->ctx, m->s->list.v[m->fusion->member[g->first + i]]);
        const char *name = n->kind == NODE_EW || n->kind == NODE_RANDOM ? jot_ew_info[n->op].name
                         : n->kind == NODE_REDUCE ? jot_reduce_info[n->op].name
                         : n->kind == NODE_REINDEX ? "reindex" : n->kind == NODE_MAP ? "map"
                         : n->kind == NODE_CONST ? "const" : n->kind == NODE_IOTA ? "iota" : "code";

        jot_text_f(&t, "%s%s", i ? " " : "", name);
    }
    if (i < g->n)
        jot_text_f(&t, " ... %u", g->n);
}

static PlanKernel *
kernel_known(jot_Ctx *ctx, const Text *text, uint64_t hash)
{
    PlanKernel *k = ctx->plans->kernels[hash % PLAN_BUCKETS];

    while (k && (k->hash != hash || k->nbytes != text->n || memcmp(k->text, text->s, text->n)))
        k = k->next;
    return k;
}

/* The kernel of this text, with a reference for the caller; a fresh one is noted for compiling. */
static PlanKernel *
kernel_share(Make *m, const Text *text, const char *what, bool code)
{
    jot_Ctx *ctx = m->ctx;
    uint64_t hash = jot_hash(code, text->s, text->n);
    PlanKernel *k = kernel_known(ctx, text, hash);
    Text name = {NULL, NULL, 0, 0};
    int i;

    if (k) {
        k->refs++;
        return k;
    }
    k = jot_vec_reserve(&ctx->mem, m->fresh, 1) ? jot_mem_new(&ctx->mem, 1, sizeof *k) : NULL;
    if (k && !(k->text = jot_mem_new(&ctx->mem, text->n, 1))) {
        jot_mem_free(&ctx->mem, k, sizeof *k);
        k = NULL;
    }
    if (!k)
        return NULL;
    memcpy(k->text, text->s, text->n);
    k->nbytes = text->n;
    k->hash = hash;
    k->refs = 1;
    k->code = code;
    name.s = k->name;
    name.cap = sizeof k->name;
    jot_text_f(&name, "jot_k_");
    for (i = 60; i >= 0; i -= 4)
        jot_text_f(&name, "%x", (unsigned)(hash >> i & 15));
    memcpy(k->what, what, jot_str_len(what) + 1);
    k->next = ctx->plans->kernels[hash % PLAN_BUCKETS];
    ctx->plans->kernels[hash % PLAN_BUCKETS] = k;
    m->fresh.v[m->fresh.n++] = k;
    return k;
}

static bool
kernel_refused(Make *m, Text *why, const char *what)
{
    if (!m->ctx->status && !m->ctx->mem.failed)
        jot_fail(m->ctx, JOT_EUSE, "plan: kernel \"%s\": %s", what,
                 why->s ? why->s : "refused by the emitter");
    return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
}

/* Schedule and print. `plain`: the schedule by rule, whatever the configuration says. */
static bool
kernel_print(Make *m, Kernel *k, bool plain, Text *out, EmitInfo *info, Text *why)
{
    const jot_Config *c = &m->ctx->config;
    Sched s;
    int order[KERNEL_AXES], n;
    bool ok;

    if (!jot_ir_verify(k, why))
        return false;
    n = jot_build_order(k, order);
    memset(&s, 0, sizeof s);
    ok = plain ? jot_sched_default(&s, k, c->lanes, n, order)
               : jot_sched_random(&s, k, c->lanes,
                                  jot_hash_u64(kernel_seed(c->schedule), m->plan->steps.n));
    ok = ok && jot_sched_verify(&s, why)
      && jot_emit_dump(k, &s, m->dialect, KERNEL_NO_NAME, c->dump, &m->dump, out, info, why);
    jot_sched_close(&s);
    return ok;
}

/* The layouts that were chosen; halos are written by steps of their own. */
static void
kernel_layouts(Make *m, uint32_t group, Kernel *k, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < args->bufs.n && i + 1 < k->bufs.n; i++) {
        uint32_t pos = jot_node(m->ctx, args->bufs.v[i])->at;
        const PlanCopied *copy = jot_plan_copy_of(m, group, pos);
        const Layout *layout = copy ? copy->layout : m->layout[pos];

        if (layout)
            jot_kernel_layout(k, i + 1, layout);
        k->bufs.v[i + 1].bordered = layout != NULL;
    }
}

static double
kernel_work(const Kernel *k)
{
    double work = 1;
    uint32_t i;

    for (i = 0; i < k->axes.n; i++)
        work *= (double)k->axes.v[i].ext;
    return work;
}

/* Build and print a group; a random schedule too long to print gives way to the plain one. */
static bool
kernel_text(Make *m, uint32_t group, const char *what, BuildArgs *args, Text *out, EmitInfo *info,
            double *work)
{
    BuildGraph graph;
    Text why = {NULL, NULL, 0, 0};
    bool plain = !kernel_random(m->ctx->config.schedule), ok = false, again;
    uint32_t i;

    graph.list = &m->s->list;
    graph.fusion = m->fusion;
    why.mem = &m->ctx->mem;
    do {
        Kernel k;

        args->bufs.n = args->scalars.n = args->maps.n = 0;
        why.n = 0;
        out->n = 0;
        ok = jot_build_kernel(m->ctx, &graph, group, &k, args);
        for (i = 0; ok && i < args->maps.n; i++)
            ok = jot_code_map_text(m->ctx, args->maps.v[i], out);
        *work = kernel_work(&k);
        if (ok) {
            k.name = jot_arena_copy(&k.arena, what, jot_str_len(what));
            kernel_layouts(m, group, &k, args);
            ok = kernel_print(m, &k, plain, out, info, &why);
        }
        jot_kernel_close(&k);
        again = !ok && !plain && !m->ctx->status && !m->ctx->mem.failed;
        plain = true;
    } while (again);
    if (!ok)
        kernel_refused(m, &why, what);
    jot_text_free(&why);
    return ok;
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool
kernel_scalars(Make *m, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < args->scalars.n; i++) {
        PlanScalar *s;

        if (!jot_vec_reserve(&m->ctx->mem, m->plan->scalars, 1))
            return jot_fail_memory(m->ctx, "plan");
        s = jot_vec_push(&m->ctx->mem, m->plan->scalars);
        s->pos = jot_node(m->ctx, args->scalars.v[i].node)->at;
        s->field = args->scalars.v[i].field;
    }
    return true;
}

/* Bytes that all calls of a launch share: the last argument, a temporary of this step alone. */
static bool
kernel_shared(Make *m, size_t nbytes, PlanStep *step)
{
    PlanVar *v;

    if (!nbytes)
        return true;
    if (!jot_vec_reserve(&m->ctx->mem, m->plan->vars, 1))
        return jot_fail_memory(m->ctx, "plan");
    v = jot_vec_push(&m->ctx->mem, m->plan->vars);
    v->kind = VAR_TEMP;
    v->first = v->last = m->plan->steps.n;
    v->nbytes = nbytes;
    step->narg++;
    return kernel_arg(m, m->plan->vars.n - 1);
}

/* The variable that a group reads or writes for a position: a copy of it, maybe. */
static bool
kernel_var(Make *m, uint32_t group, uint32_t pos, uint32_t *var)
{
    const PlanCopied *copy = jot_plan_copy_of(m, group, pos);

    if (!copy)
        return jot_plan_var(m, pos, var);
    *var = copy->var - 1;
    jot_plan_var_touch(m, *var);
    return true;
}

static bool
kernel_step_args(Make *m, uint32_t group, const BuildArgs *args, size_t shared_nbytes,
                 PlanStep *step)
{
    uint32_t i, var;

    step->arg = m->plan->args.n;
    step->narg = args->bufs.n;
    step->scalar = m->plan->scalars.n;
    step->nscalar = args->scalars.n;
    for (i = 0; i < args->bufs.n; i++)
        if (!kernel_var(m, group, jot_node(m->ctx, args->bufs.v[i])->at, &var)
            || !kernel_arg(m, var))
            return false;
    return kernel_shared(m, shared_nbytes, step) && kernel_scalars(m, args);
}

static bool
kernel_push(Make *m, const PlanStep *step)
{
    Plan *plan = m->plan;

    if (!jot_vec_reserve(&m->ctx->mem, plan->steps, 1)) {
        jot_plan_kernel_unref(m->ctx, step->kernel);
        return jot_fail_memory(m->ctx, "plan");
    }
    *(PlanStep *)jot_vec_push(&m->ctx->mem, plan->steps) = *step;
    return true;
}

/* Memory for an output of user code: the node that picks it, or a temporary of this step alone. */
static bool
kernel_code_output(Make *m, uint32_t group, const CodeSpec *spec, int k)
{
    const FuseGroup *g = &m->fusion->groups[group];
    const CodeArg *arg = &spec->arg[spec->inputs + k];
    uint32_t i, var = m->plan->vars.n;
    PlanVar *v;

    for (i = g->first; i < g->first + g->n; i++)
        if (jot_node(m->ctx, m->s->list.v[m->fusion->member[i]])->op == k)
            return jot_plan_var(m, m->fusion->member[i], &var) && kernel_arg(m, var);
    if (!jot_vec_reserve(&m->ctx->mem, m->plan->vars, 1))
        return jot_fail_memory(m->ctx, "plan");
    v = jot_vec_push(&m->ctx->mem, m->plan->vars);
    v->kind = VAR_TEMP;
    v->first = v->last = m->plan->steps.n;
    v->nbytes = (size_t)arg->nelem * jot_dtype_nbytes((jot_DType)arg->dtype);
    return kernel_arg(m, var);
}

static bool
kernel_code_args(Make *m, uint32_t group, NodeId id, PlanStep *step)
{
    const Node *node = jot_node(m->ctx, id);
    const CodeSpec *spec = node->code;
    uint32_t var;
    int k;

    while (m->plan->codes.v[step->code++].pos != node->at)
        ;
    step->arg = m->plan->args.n;
    step->narg = (uint32_t)(spec->inputs + spec->outputs);
    for (k = 0; k < spec->inputs; k++)
        if (!jot_plan_var(m, m->fusion->real[jot_node(m->ctx, node->input[k])->at], &var)
            || !kernel_arg(m, var))
            return false;
    for (k = 0; k < spec->outputs; k++)
        if (!kernel_code_output(m, group, spec, k))
            return false;
    return true;
}

static bool
kernel_code_step(Make *m, uint32_t group, NodeId id)
{
    PlanStep step = {0};
    Text text = {NULL, NULL, 0, 0};
    const char *name = jot_node(m->ctx, id)->code->name;
    char what[96];
    Text t = {NULL, NULL, 0, 0};

    t.s = what;
    t.cap = sizeof what;
    jot_text_f(&t, "code %.*s", 80, name);
    text.mem = &m->ctx->mem;
    if (jot_code_text(m->ctx, id, KERNEL_NO_NAME, &text, &step.count[0]) && text.s)
        step.kernel = kernel_share(m, &text, what, true);
    step.phases = 1;
    step.work = RUN_SHARED; /* the user says so */
    jot_text_free(&text);
    if (!step.kernel)
        return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
    if (!kernel_code_args(m, group, id, &step)) {
        jot_plan_kernel_unref(m->ctx, step.kernel);
        return false;
    }
    return kernel_push(m, &step);
}

/* The dump was written before the name was known. */
static void
kernel_dump_name(Text *dump, size_t from, const PlanKernel *k)
{
    const size_t n = sizeof KERNEL_NO_NAME - 1;
    size_t i;

    for (i = from; i + n <= dump->n; i++)
        if (dump->s[i] == 'j' && !memcmp(dump->s + i, KERNEL_NO_NAME, n))
            memcpy(dump->s + i, k->name, n);
}

/* What must be there before a group runs: the copies that it reads, the halos of what it writes. */
static bool
kernel_before(Make *m, uint32_t group)
{
    const FuseGroup *g = &m->fusion->groups[group];
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < m->reads.n; i++)
        if (m->reads.v[i].group == group)
            ok = jot_plan_pack(m, &m->copies.v[m->reads.v[i].copy]);
    for (i = g->first; ok && i < g->first + g->n; i++) {
        const Layout *l = m->layout[m->fusion->member[i]];
        int d;

        for (d = 0; l && d < l->rank; d++)
            if (l->halo_lo[d] || l->halo_hi[d]) {
                ok = jot_plan_border(m, m->fusion->member[i]);
                break;
            }
    }
    return ok;
}

static bool
kernel_own_args(Make *m, const uint32_t *var, uint32_t n, size_t shared_nbytes, PlanStep *step)
{
    uint32_t i;

    step->arg = m->plan->args.n;
    step->narg = n;
    step->scalar = m->plan->scalars.n;
    for (i = 0; i < n; i++) {
        jot_plan_var_touch(m, var[i]);
        if (!kernel_arg(m, var[i]))
            return false;
    }
    return kernel_shared(m, shared_nbytes, step);
}

JOT_FN bool
jot_plan_own_step(Make *m, Kernel *k, const char *what, uint32_t copy, const uint32_t *var,
                  uint32_t n)
{
    Text text = {NULL, NULL, 0, 0}, why = {NULL, NULL, 0, 0};
    EmitInfo info = {0};
    PlanStep step = {0};
    size_t dumped = m->dump.n;

    text.mem = why.mem = &m->ctx->mem;
    k->name = jot_arena_copy(&k->arena, what, jot_str_len(what));
    step.work = kernel_work(k);
    step.copy = copy;
    if (!kernel_print(m, k, true, &text, &info, &why))
        kernel_refused(m, &why, what);
    else
        step.kernel = kernel_share(m, &text, what, false);
    jot_text_free(&text);
    jot_text_free(&why);
    step.phases = info.phases;
    memcpy(step.count, info.steps, sizeof step.count);
    step.scratch_nbytes = info.scratch_nbytes;
    if (!step.kernel)
        return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
    kernel_dump_name(&m->dump, dumped, step.kernel);
    if (!kernel_own_args(m, var, n, info.shared_nbytes, &step)) {
        jot_plan_kernel_unref(m->ctx, step.kernel);
        return false;
    }
    return kernel_push(m, &step);
}

JOT_FN bool
jot_plan_step(Make *m, uint32_t group)
{
    const Node *first = jot_node(m->ctx,
                                 m->s->list.v[m->fusion->member[m->fusion->groups[group].first]]);
    BuildArgs args;
    EmitInfo info = {0};
    PlanStep step = {0};
    Text text = {NULL, NULL, 0, 0};
    size_t dumped = m->dump.n;
    char what[96];
    bool ok;

    if (first->kind == NODE_PICK)
        return kernel_code_step(m, group, first->input[0]);
    if (!kernel_before(m, group))
        return false;
    dumped = m->dump.n;
    memset(&args, 0, sizeof args);
    text.mem = &m->ctx->mem;
    kernel_describe(m, group, what, sizeof what);
    ok = kernel_text(m, group, what, &args, &text, &info, &step.work);
    if (ok)
        step.kernel = kernel_share(m, &text, what, false);
    if (step.kernel)
        kernel_dump_name(&m->dump, dumped, step.kernel);
    step.phases = info.phases;
    memcpy(step.count, info.steps, sizeof step.count);
    step.scratch_nbytes = info.scratch_nbytes;
    if (step.kernel && !kernel_step_args(m, group, &args, info.shared_nbytes, &step)) {
        jot_plan_kernel_unref(m->ctx, step.kernel);
        step.kernel = NULL;
    }
    jot_build_free(m->ctx, &args);
    jot_text_free(&text);
    if (!step.kernel)
        return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
    return kernel_push(m, &step);
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* A kernel's text with its name in place of the placeholder. */
static void
kernel_write(const PlanKernel *k, Text *out)
{
    size_t n = sizeof KERNEL_NO_NAME - 1, from = 0, i;

    for (i = 0; i + n <= k->nbytes; i++)
        if (k->text[i] == 'j' && !memcmp(k->text + i, KERNEL_NO_NAME, n)) {
            jot_text_put(out, k->text + from, i - from);
            jot_text_put(out, k->name, n);
            from = i + n;
            i = from - 1;
        }
    jot_text_put(out, k->text + from, k->nbytes - from);
    jot_text_put(out, "\n", 1);
}

static bool
kernel_compile_text(Make *m, PlanKernel **k, uint32_t n, const Text *text, const char *what)
{
    jot_Ctx *ctx = m->ctx;
    KernelSym *sym = jot_mem_new(&ctx->mem, n, sizeof *sym);
    PlanModule *module = sym ? jot_mem_new(&ctx->mem, 1, sizeof *module) : NULL;
    bool ok = false;
    uint32_t i;

    for (i = 0; module && i < n; i++)
        sym[i].name = k[i]->name;
    if (module)
        ok = ctx->backend->compile((Backend *)ctx->backend, ctx, what, text->s, text->n, sym,
                                   (int)n, &module->code);
    for (i = 0; ok && i < n; i++) {
        k[i]->fn = sym[i].fn;
        k[i]->module = module;
        module->refs++;
    }
    if (!ok)
        jot_mem_free(&ctx->mem, module, sizeof *module);
    jot_mem_free(&ctx->mem, sym, n * sizeof *sym);
    return ok || (ctx->status ? false : jot_fail_memory(ctx, "compile"));
}

/* Kernels k[0..n) as one text behind their prelude. */
static bool
kernel_compile(Make *m, PlanKernel **k, uint32_t n)
{
    Mem *mem = &m->ctx->mem;
    Text body = {NULL, NULL, 0, 0}, text = {NULL, NULL, 0, 0}, what = {NULL, NULL, 0, 0};
    bool ok;
    uint32_t i;

    body.mem = text.mem = what.mem = mem;
    for (i = 0; i < n; i++) {
        kernel_write(k[i], &body);
        if (what.n < 600)
            jot_text_f(&what, "%s%s (%s)", i ? ", " : "", k[i]->name, k[i]->what);
        else if (i + 1 == n)
            jot_text_f(&what, ", ... %u kernels", n);
    }
    ok = !mem->failed && jot_emit_prelude(m->dialect, body.s, body.n, &text);
    if (ok)
        jot_text_put(&text, body.s, body.n);
    if (!ok || mem->failed)
        ok = m->ctx->status ? false : jot_fail_memory(m->ctx, "compile");
    else
        ok = kernel_compile_text(m, k, n, &text, what.s);
    jot_text_free(&body);
    jot_text_free(&text);
    jot_text_free(&what);
    return ok;
}

JOT_FN bool
jot_plan_compile(Make *m)
{
    uint32_t i, n = 0;

    for (i = 0; i < m->fresh.n; i++) { /* the library's to the front */
        PlanKernel *k = m->fresh.v[i];

        if (k->code)
            continue;
        m->fresh.v[i] = m->fresh.v[n];
        m->fresh.v[n++] = k;
    }
    if (n && !kernel_compile(m, m->fresh.v, n))
        return false;
    for (i = n; i < m->fresh.n; i++)
        if (!kernel_compile(m, &m->fresh.v[i], 1))
            return false;
    return true;
}
#undef KERNEL_NO_NAME
