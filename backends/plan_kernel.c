/* backends/plan_kernel.c - one group becomes a step of the plan: its kernel as text, shared by that
 * text with every other step that computes the same.
 *
 *     group -> Kernel -> Sched -> "void jot_k_0000000000000000(...)" -> hash -> found, or fresh
 *
 * The text is printed under a placeholder of a name; its hash is the name that goes in. Where the
 * backend has a quick tier and the kernel's function is not there yet, the group is printed a second
 * time, with the plain schedule as strict C99 whose extents, strides and constants are arguments: a
 * compiler that does not optimise gains nothing by vectors and unrolled copies, nor by numbers, and
 * shapes that differ in numbers share the text.
 *
 * Read before: backends/plan_parts.h, ccode/build.h, ccode/emit.h. After: backends/plan_compile.c. */
#include "backends/plan_parts.h"
#include "ccode/contract.h"
#include "ccode/lines.h"
#include "ccode/pair.h"
#include "ccode/stencil.h"
#include "ops/code.h"

#define KERNEL_NO_NAME PLAN_NO_NAME

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
        if (v->kind != VAR_LEAF)
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
kernel_known(jot_Ctx *ctx, const Text *text, uint64_t hash, PlanTier tier)
{
    PlanKernel *k = ctx->plans->kernels[hash % PLAN_BUCKETS];

    while (k && (k->hash != hash || k->tier != tier || k->nbytes != text->n
                 || memcmp(k->text, text->s, text->n)))
        k = k->next;
    return k;
}

/* The kernel of this text, with a reference for the caller; a fresh one may be found on disk. */
static PlanKernel *
kernel_share(Make *m, const Text *text, const char *what, PlanKind kind, PlanTier tier)
{
    jot_Ctx *ctx = m->ctx;
    uint64_t hash = jot_hash(kind == KIND_CODE, text->s, text->n);
    PlanKernel *k = kernel_known(ctx, text, hash, tier);
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
    k->kind = (uint8_t)kind;
    k->tier = (uint8_t)tier;
    name.s = k->name;
    name.cap = sizeof k->name;
    jot_text_f(&name, "jot_k_");
    for (i = 60; i >= 0; i -= 4)
        jot_text_f(&name, "%x", (unsigned)(hash >> i & 15));
    memcpy(k->what, what, jot_str_len(what) + 1);
    k->next = ctx->plans->kernels[hash % PLAN_BUCKETS];
    ctx->plans->kernels[hash % PLAN_BUCKETS] = k;
    jot_plan_recall(m, k);
    if (tier == TIER_QUICK && !k->fn)
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

static int
kernel_lanes(const Make *m, PlanTier tier)
{
    return tier == TIER_QUICK ? 1 : m->ctx->config.lanes;
}

JOT_FN int
jot_plan_lanes(const Make *m, int dtype)
{
    int lanes = m->ctx->config.lanes;

    if (!lanes && m->dialect->vectors)
        lanes = m->ctx->target.vector_nbytes / (int)jot_dtype_nbytes((jot_DType)dtype);
    return lanes > 1 ? lanes : 1;
}

JOT_FN bool
jot_plan_fast(const Make *m)
{
    return jot_str_eq(m->ctx->config.precision, "fast");
}

/* A contraction's schedule, in as many lanes as the machine has for it. */
static bool
kernel_contract(const Make *m, Kernel *k, Sched *s)
{
    const Target *t = &m->ctx->target;
    double points = 1;
    Contract c;
    uint32_t i;

    for (i = 0; i < k->axes.n; i++)
        points *= (double)k->axes.v[i].ext;
    if (points < 4096) /* blocks and packing are not worth their text */
        return false;
    if (!jot_contract_classes(k) || !jot_contract_only(k, &c))
        return false;
    if (m->dialect->device ? jot_contract_grid(s, k, &c, m->dialect->device->matrix)
                           : jot_contract_sched(s, k, &c, t, jot_plan_lanes(m, k->values.v[c.reduce].dtype)))
        return true;
    jot_sched_close(s);
    return false;
}

static bool
kernel_schedule(const Make *m, Kernel *k, PlanTier tier, const PlanSched *own, bool plain,
                Sched *s, Text *why)
{
    const jot_Config *c = &m->ctx->config;
    int order[KERNEL_AXES], n, lanes = kernel_lanes(m, tier);

    if (own) { /* U stays in panels of the best tier's */
        Winograd w = *own->w;

        w.lanes = tier == TIER_QUICK ? 1 : jot_plan_lanes(m, JOT_F32);
        return own->make(s, k, &w, why);
    }
    if (plain && tier == TIER_BEST && kernel_contract(m, k, s))
        return true;
    if (k->mem->failed) /* indices may be missing */
        return false;
    if (plain && tier != TIER_QUICK && m->dialect->vectors
        && (jot_stencil_sched(s, k, &m->ctx->target, jot_plan_lanes(m, JOT_F32))
            || jot_plane_sched(s, k, &m->ctx->target, jot_plan_lanes(m, JOT_F32))
            || (!lanes && jot_rows_sched(s, k, &m->ctx->target))))
        return true;
    if (!m->dialect->device && !jot_merge_axes(k))
        return false;
    if (!m->dialect->device && tier != TIER_QUICK && !jot_lines(k, plain ? LINE_LEAST : 2))
        return false;
    n = lanes ? jot_build_order(k, order) : jot_build_order_outer(k, order);
    if (!plain)
        return jot_sched_random(s, k, lanes ? lanes : 1,
                                jot_hash_u64(kernel_seed(c->schedule), m->plan->steps.n));
    if (m->dialect->device && (jot_sched_grid(s, k) || k->mem->failed))
        return !k->mem->failed;
    if (m->dialect->device) {
        jot_sched_close(s);
        return jot_sched_default(s, k, 1, n, order);
    }
    return lanes ? jot_sched_default(s, k, lanes, n, order)
                 : jot_sched_choose(s, k, &m->ctx->target, n, order);
}

/* Schedule and print. `plain`: the schedule by rule, whatever the configuration says. */
static bool
kernel_print(Make *m, Kernel *k, PlanTier tier, const PlanSched *own, bool plain, Text *out,
             EmitInfo *info, Text *why)
{
    const jot_Config *c = &m->ctx->config;
    bool quick = tier == TIER_QUICK;
    const Dialect *dialect = quick ? jot_dialect_find("c_any") : m->dialect;
    Sched s;
    bool ok;

    if (!jot_ir_verify(k, why))
        return false;
    memset(&s, 0, sizeof s);
    ok = kernel_schedule(m, k, tier, own, plain, &s, why) && jot_sched_verify(&s, why)
      && jot_emit_dump(k, &s, dialect, KERNEL_NO_NAME, quick ? NULL : c->dump, &m->dump, out, info,
                       why);
    jot_sched_close(&s);
    return ok;
}

/* The layouts that were chosen; halos are written by steps of their own. */
JOT_FN void
jot_plan_kernel_layouts(Make *m, uint32_t group, Kernel *k, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < args->bufs.n && i + 1 < k->bufs.n; i++) {
        uint32_t pos = jot_node(m->ctx, args->bufs.v[i])->at;
        const PlanCopied *copy = jot_plan_copy_of(m, group, pos);
        const Layout *layout = copy && !copy->tiles ? copy->layout : m->layout[pos];

        if (layout)
            jot_kernel_layout(k, i + 1, layout);
        k->bufs.v[i + 1].bordered = layout != NULL;
    }
}

/* Does the group read U in place of taps? */
static bool
kernel_tiled(const Make *m, uint32_t group)
{
    uint32_t i;

    for (i = 0; i < m->reads.n; i++)
        if (m->reads.v[i].group == group && m->copies.v[m->reads.v[i].copy].tiles)
            return true;
    return false;
}

static bool
kernel_print_tiles(Make *m, Kernel *k, PlanTier tier, Text *out, EmitInfo *info, Text *why)
{
    PlanSched sched = {jot_winograd_sched, NULL};
    Winograd w;
    Kernel tiled;
    bool ok;

    sched.w = &w;
    ok = jot_winograd_find(k, jot_plan_lanes(m, JOT_F32), &m->ctx->target, jot_plan_fast(m), &w);
    JOT_ASSERT(ok || m->ctx->mem.failed, "plan_tiles.c found it");
    if (!ok)
        return false;
    ok = jot_winograd_kernel(k, &w, &tiled)
      && kernel_print(m, &tiled, tier, &sched, true, out, info, why);
    jot_kernel_close(&tiled);
    return ok;
}

/* Build and print a group; a random schedule too long to print gives way to the plain one. */
static bool
kernel_text(Make *m, uint32_t group, PlanTier tier, const char *what, BuildArgs *args, Text *out,
            EmitInfo *info, KernelCost *cost)
{
    BuildGraph graph;
    Text why = {NULL, NULL, 0, 0};
    bool plain = tier == TIER_QUICK || !kernel_random(m->ctx->config.schedule), ok = false, again;
    uint32_t i;

    graph.list = &m->s->list;
    graph.fusion = m->fusion;
    why.mem = &m->ctx->mem;
    do {
        Kernel k;

        args->bufs.n = args->scalars.n = args->maps.n = 0;
        why.n = 0;
        out->n = 0;
        ok = jot_build_kernel(m->ctx, &graph, group, &k, args) && jot_kernel_pairs(&k);
        for (i = 0; ok && i < args->maps.n; i++)
            ok = jot_code_map_text(m->ctx, args->maps.v[i],
                                   m->dialect->device ? m->dialect->device->function : "static ", out);
        jot_kernel_cost(&k, cost);
        if (ok) {
            k.name = jot_arena_copy(&k.arena, what, jot_str_len(what));
            jot_plan_kernel_layouts(m, group, &k, args);
            jot_over_wish(m, &k, args);
            ok = jot_kernel_moments(&k, &m->ctx->target)
              && (kernel_tiled(m, group)
                      ? kernel_print_tiles(m, &k, tier, out, info, &why)
                      : kernel_print(m, &k, tier, NULL, plain, out, info, &why));
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
        s->dtype = args->scalars.v[i].dtype;
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
    jot_over_note(m, step, args);
    return kernel_shared(m, shared_nbytes, step) && kernel_scalars(m, args);
}

static void
kernel_step_drop(Make *m, const PlanStep *step)
{
    if (step->best.kernel)
        jot_plan_kernel_unref(m->ctx, step->best.kernel);
    if (step->quick.kernel)
        jot_plan_kernel_unref(m->ctx, step->quick.kernel);
}

static bool
kernel_push(Make *m, const PlanStep *step)
{
    Plan *plan = m->plan;

    if (!jot_vec_reserve(&m->ctx->mem, plan->steps, 1)) {
        kernel_step_drop(m, step);
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

/* What a device does for the step. */
static void
kernel_shapes(Make *m, PlanLaunch *launch, const EmitInfo *info)
{
    Plan *plan = m->plan;
    int i;

    launch->group = info->group;
    launch->first = plan->launches.n;
    launch->launches = (uint32_t)info->launches;
    for (i = 0; i < info->launches; i++)
        *(EmitLaunch *)jot_vec_push(&m->ctx->mem, plan->launches) = info->launch[i];
}

static void
kernel_launch(Make *m, PlanLaunch *launch, const Text *text, const char *what, bool code,
              PlanTier tier, const EmitInfo *info)
{
    int i;

    launch->kernel = kernel_share(m, text, what, code ? KIND_CODE
                                                 : info->vectors ? KIND_VECTOR : KIND_SCALAR, tier);
    launch->phases = info->phases;
    memcpy(launch->count, info->steps, sizeof launch->count);
    launch->scratch_nbytes = info->scratch_nbytes;
    launch->ints = m->plan->ints.n;
    for (i = 0; i < info->nints; i++)
        *(jot_Scalar *)jot_vec_push(&m->ctx->mem, m->plan->ints) = info->ints[i];
    if (m->dialect->device)
        kernel_shapes(m, launch, info);
}

static bool
kernel_wants_quick(const Make *m, const PlanStep *step)
{
    return m->ctx->backend->quick && !m->plan->dialect && !step->best.kernel->fn;
}

static int
kernel_device(const Make *m)
{
    return jot_str_eq(m->dialect->name, "cuda") ? CODE_CUDA : CODE_OPENCL;
}

static bool
kernel_code_text(Make *m, NodeId id, Text *text, EmitInfo *info)
{
    if (!m->dialect->device)
        return jot_code_text(m->ctx, id, KERNEL_NO_NAME, text, &info->steps[0]);
    if (!jot_code_device_text(m->ctx, id, m->dialect->device, kernel_device(m), KERNEL_NO_NAME, text,
                              &info->steps[0]))
        return false;
    info->group = 64;
    info->launches = 1;
    info->launch[0].kind = info->steps[0] == 1 ? LAUNCH_ONE : LAUNCH_ITEMS;
    info->launch[0].steps = info->steps[0];
    return true;
}

static bool
kernel_code_step(Make *m, uint32_t group, NodeId id)
{
    EmitInfo info = {0};
    PlanStep step = {0};
    Text text = {NULL, NULL, 0, 0};
    const char *name = jot_node(m->ctx, id)->code->name;
    char what[96];
    Text t = {NULL, NULL, 0, 0};

    if (m->dialect->device && !jot_node(m->ctx, id)->code->device_source[kernel_device(m)])
        return jot_fail(m->ctx, JOT_EDEVICE, "code %s: it has no source for %s", name,
                        m->ctx->backend->name);
    t.s = what;
    t.cap = sizeof what;
    jot_text_f(&t, "code %.*s", 80, name);
    text.mem = &m->ctx->mem;
    info.phases = 1;
    if (kernel_code_text(m, id, &text, &info) && text.s)
        kernel_launch(m, &step.best, &text, what, true, TIER_BEST, &info);
    step.cost.points = 20000; /* of whatever it does; whether to share it is the user's to say */
    step.seconds = 1;
    if (step.best.kernel && kernel_wants_quick(m, &step))
        kernel_launch(m, &step.quick, &text, what, true, TIER_QUICK, &info);
    jot_text_free(&text);
    if (m->ctx->mem.failed || !step.best.kernel || !kernel_code_args(m, group, id, &step)) {
        kernel_step_drop(m, &step);
        return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
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
    for (i = g->first; ok && i < g->first + g->n; i++)
        if (m->layout[m->fusion->member[i]])
            ok = jot_plan_border(m, m->fusion->member[i]);
    return ok;
}

/* What the group wrote in a layout of its own goes where it was asked for. */
static bool
kernel_after(Make *m, uint32_t group)
{
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < m->reads.n; i++) {
        const PlanCopied *copy = &m->copies.v[m->reads.v[i].copy];

        if (m->reads.v[i].group == group && copy->written)
            ok = jot_plan_unpack(m, copy);
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

static bool
kernel_own_launch(Make *m, Kernel *k, const char *what, PlanTier tier, const PlanSched *sched,
                  PlanLaunch *launch, size_t *shared_nbytes)
{
    Text text = {NULL, NULL, 0, 0}, why = {NULL, NULL, 0, 0};
    EmitInfo info = {0};

    text.mem = why.mem = &m->ctx->mem;
    if (!kernel_print(m, k, tier, sched, true, &text, &info, &why))
        kernel_refused(m, &why, what);
    else
        kernel_launch(m, launch, &text, what, false, tier, &info);
    if (info.shared_nbytes > *shared_nbytes)
        *shared_nbytes = info.shared_nbytes;
    jot_text_free(&text);
    jot_text_free(&why);
    return launch->kernel != NULL;
}

JOT_FN bool
jot_plan_own_step(Make *m, Kernel *k, const char *what, const PlanSched *sched, uint32_t copy,
                  const uint32_t *var, uint32_t n)
{
    PlanStep step = {0};
    size_t dumped = m->dump.n, shared_nbytes = 0;
    bool ok;

    k->name = jot_arena_copy(&k->arena, what, jot_str_len(what));
    jot_kernel_cost(k, &step.cost);
    step.seconds = jot_cost_seconds(&step.cost, &m->ctx->target);
    step.copy = copy;
    ok = kernel_own_launch(m, k, what, TIER_BEST, sched, &step.best, &shared_nbytes);
    if (ok)
        kernel_dump_name(&m->dump, dumped, step.best.kernel);
    if (ok && kernel_wants_quick(m, &step) && !jot_tier_waits(m->ctx, &step))
        ok = kernel_own_launch(m, k, what, TIER_QUICK, sched, &step.quick, &shared_nbytes);
    if (ok && kernel_own_args(m, var, n, shared_nbytes, &step))
        return kernel_push(m, &step);
    kernel_step_drop(m, &step);
    return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
}

/* The same for the quick tier, if there is one and it is of use. */
static bool
kernel_quick(Make *m, uint32_t group, const char *what, PlanStep *step, size_t *shared_nbytes)
{
    BuildArgs args;
    EmitInfo info = {0};
    Text text = {NULL, NULL, 0, 0};
    KernelCost cost;
    bool ok;
    int i;

    if (!kernel_wants_quick(m, step) || jot_tier_waits(m->ctx, step))
        return true;
    memset(&args, 0, sizeof args);
    text.mem = &m->ctx->mem;
    ok = kernel_text(m, group, TIER_QUICK, what, &args, &text, &info, &cost);
    if (ok)
        kernel_launch(m, &step->quick, &text, what, false, TIER_QUICK, &info);
    if (info.shared_nbytes > *shared_nbytes)
        *shared_nbytes = info.shared_nbytes;
    for (i = 0; i < 4; i++)
        step->over.bit[i] &= info.over.bit[i];
    jot_build_free(m->ctx, &args);
    jot_text_free(&text);
    return ok && step->quick.kernel;
}

/* The step of a group that is met for the first time: built, printed, remembered if `keep`. */
static bool
kernel_new_step(Make *m, uint32_t group, bool keep, PlanStep *step)
{
    BuildArgs args;
    EmitInfo info = {0};
    Text text = {NULL, NULL, 0, 0};
    size_t dumped = m->dump.n, shared_nbytes;
    char what[96];
    bool ok;

    memset(&args, 0, sizeof args);
    text.mem = &m->ctx->mem;
    kernel_describe(m, group, what, sizeof what);
    ok = kernel_text(m, group, TIER_BEST, what, &args, &text, &info, &step->cost);
    step->seconds = jot_cost_seconds(&step->cost, &m->ctx->target);
    if (ok)
        kernel_launch(m, &step->best, &text, what, false, TIER_BEST, &info);
    ok = ok && step->best.kernel;
    if (ok) {
        kernel_dump_name(&m->dump, dumped, step->best.kernel);
        shared_nbytes = info.shared_nbytes;
        step->over = info.over;
        ok = kernel_quick(m, group, what, step, &shared_nbytes)
          && (!keep || jot_plan_known_keep(m, step, &args, shared_nbytes))
          && kernel_step_args(m, group, &args, shared_nbytes, step);
    }
    jot_build_free(m->ctx, &args);
    jot_text_free(&text);
    m->ctx->stats.groups_built++;
    return ok;
}

static bool
kernel_known_step(Make *m, uint32_t group, const PlanKnown *known, PlanStep *step)
{
    size_t shared_nbytes;

    m->ctx->stats.groups_known++;
    return jot_plan_known_step(m, known, step, &m->args, &shared_nbytes)
        && kernel_step_args(m, group, &m->args, shared_nbytes, step);
}

JOT_FN bool
jot_plan_step(Make *m, uint32_t group)
{
    const Node *first = jot_node(m->ctx,
                                 m->s->list.v[m->fusion->member[m->fusion->groups[group].first]]);
    PlanStep step = {0};
    const PlanKnown *known = NULL;
    bool ok, keep;

    if (first->kind == NODE_PICK)
        return kernel_code_step(m, group, first->input[0]);
    if (!kernel_before(m, group))
        return false;
    keep = jot_plan_words(m, group, WORDS_STEP) && jot_plan_known_fits(m);
    if (keep)
        known = jot_plan_known(m);
    ok = !m->ctx->mem.failed && (known ? kernel_known_step(m, group, known, &step)
                                       : kernel_new_step(m, group, keep, &step));
    if (ok)
        return kernel_push(m, &step) && kernel_after(m, group);
    kernel_step_drop(m, &step);
    return m->ctx->status ? false : jot_fail_memory(m->ctx, "plan");
}
#undef KERNEL_NO_NAME
