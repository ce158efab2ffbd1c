/* plan/compile.c - from the texts of fresh kernels to functions.
 *
 *     on disk?      --> its unit is loaded, and looked into for the next kernels first
 *     quick tier    the fresh ones of a plan as one text
 *     best tier     kernels, the dearest first --> units of some kilobytes --> jobs, or one text;
 *                   at once, or when a plan is run again (plan/tier/tier.c)
 *     user code     a text of its own each: two users' helpers may have one name
 *
 * A unit is what one run of a compiler is given: prelude and kernels. Few large ones waste the
 * other cores and let the first wait for the last; many small ones pay the compiler's start, some
 * 25 ms or 10 KB, each time. A kernel's size counts what it needs of the prelude, which is expanded
 * into it.
 *
 * Read before: plan/parts.h. After: plan/step.c, plan/tier/tier.c. */
#include "plan/parts.h"
#include "target/thresholds.h"

enum { UNITS = 4 };

/* ---- modules ------------------------------------------------------------------------------ */

static PlanModule *
module_new(jot_Ctx *ctx, Backend *backend, uint32_t n)
{
    PlanModule *module = jot_mem_new(&ctx->mem, 1, sizeof *module);

    if (!module)
        return NULL;
    module->backend = backend;
    module->n = n;
    module->refs = 1; /* the maker's */
    module->sym = n ? jot_mem_new(&ctx->mem, n, sizeof *module->sym) : NULL;
    if (!n || module->sym)
        return module;
    jot_mem_free(&ctx->mem, module, sizeof *module);
    return NULL;
}

JOT_FN void
jot_plan_module_unref(jot_Ctx *ctx, PlanModule *module)
{
    if (--module->refs)
        return;
    if (module->job)
        module->backend->end(module->backend, ctx, module->job, NULL, NULL);
    if (module->code && module->backend->unload)
        module->backend->unload(module->backend, ctx, module->code);
    if (module->why)
        jot_mem_free(&ctx->mem, module->why, jot_str_len(module->why) + 1);
    jot_mem_free(&ctx->mem, module->sym, module->n * sizeof *module->sym);
    jot_mem_free(&ctx->mem, module, sizeof *module);
}

JOT_FN void
jot_plan_kernel_unref(jot_Ctx *ctx, PlanKernel *kernel)
{
    PlanKernel **link;

    if (!kernel || --kernel->refs)
        return;
    link = &ctx->plans->kernels[kernel->hash % PLAN_BUCKETS];
    while (*link && *link != kernel)
        link = &(*link)->next;
    if (*link)
        *link = kernel->next;
    if (kernel->module)
        jot_plan_module_unref(ctx, kernel->module);
    if (kernel->better)
        jot_plan_module_unref(ctx, kernel->better);
    jot_mem_free(&ctx->mem, kernel->text, kernel->nbytes);
    jot_mem_free(&ctx->mem, kernel, sizeof *kernel);
}

static void
module_hold(PlanModule *module, PlanKernel *k, uint32_t at)
{
    *(k->module ? &k->better : &k->module) = module;
    k->at = at;
    module->refs++;
}

/* ---- text --------------------------------------------------------------------------------- */

/* A kernel's text with its name in place of the placeholder. */
JOT_FN void
jot_plan_kernel_text(const PlanKernel *k, Text *out)
{
    const size_t n = sizeof PLAN_NO_NAME - 1;
    size_t from = 0, i;

    for (i = 0; i + n <= k->nbytes; i++)
        if (k->text[i] == 'j' && !memcmp(k->text + i, PLAN_NO_NAME, n)) {
            jot_text_put(out, k->text + from, i - from);
            jot_text_put(out, k->name, n);
            from = i + n;
            i = from - 1;
        }
    jot_text_put(out, k->text + from, k->nbytes - from);
}

static void
compile_what(PlanKernel *const *k, uint32_t n, Text *what)
{
    uint32_t i;

    for (i = 0; i < n; i++)
        if (what->n < 600)
            jot_text_f(what, "%s%s (%s)", i ? ", " : "", k[i]->name, k[i]->what);
        else if (i + 1 == n)
            jot_text_f(what, ", ... %u kernels", n);
}

/* ---- what is on disk ---------------------------------------------------------------------- */

/* The kernels that a unit's text defines, by the hashes in their names. */
static bool
unit_names(Make *m, uint32_t unit)
{
    static const char prefix[] = "\njot_k_"; /* of a definition, on a line of its own */
    const size_t n = sizeof prefix - 1;
    const Text *text = &m->units.v[unit].text;
    const char *s = text->s, *end = s + text->n;
    int i;

    for (; s + n + 16 <= end; s++) {
        PlanUnitName name = {0, unit};

        if (*s != '\n' || memcmp(s, prefix, n))
            continue;
        for (i = 0, s += n; i < 16; i++, s++)
            name.hash = name.hash << 4 | (uint64_t)(*s >= 'a' ? *s - 'a' + 10 : *s - '0');
        if (!jot_vec_reserve(&m->ctx->mem, m->unit_names, 1))
            return false;
        m->unit_names.v[m->unit_names.n++] = name;
    }
    return true;
}

static bool
compile_new_unit(Make *m, KernelSym *sym, PlanKernel *k)
{
    jot_Ctx *ctx = m->ctx;
    PlanModule *module = jot_vec_reserve(&ctx->mem, m->units, 1)
                       ? module_new(ctx, ctx->backend, 0) : NULL;
    PlanUnit unit;

    memset(&unit, 0, sizeof unit);
    if (!module)
        return false;
    if (!ctx->backend->recall(ctx->backend, ctx, sym, &module->code, &unit.text)) {
        jot_plan_module_unref(ctx, module);
        return false;
    }
    unit.module = module;
    m->units.v[m->units.n++] = unit;
    module_hold(module, k, 0);
    return unit_names(m, m->units.n - 1);
}

JOT_FN void
jot_plan_recall(Make *m, PlanKernel *k)
{
    Backend *backend = m->ctx->backend;
    Text text = {NULL, NULL, 0, 0};
    KernelSym sym;
    bool found = false;
    uint32_t i;

    if (!backend->recall || m->plan->dialect)
        return;
    text.mem = &m->ctx->mem;
    jot_plan_kernel_text(k, &text);
    memset(&sym, 0, sizeof sym);
    sym.name = k->name;
    sym.text = text.s;
    for (i = 0; !found && text.s && i < m->unit_names.n; i++) {
        PlanUnit *unit = &m->units.v[m->unit_names.v[i].unit];

        if (m->unit_names.v[i].hash != k->hash)
            continue;
        found = backend->recall(backend, m->ctx, &sym, &unit->module->code, &unit->text);
        if (found)
            module_hold(unit->module, k, 0);
    }
    if (found || (text.s && !m->ctx->mem.failed && compile_new_unit(m, &sym, k)))
        k->fn = sym.fn, k->good = true;
    jot_text_free(&text);
}

JOT_FN void
jot_plan_units_free(Make *m)
{
    uint32_t i;

    for (i = 0; i < m->units.n; i++) {
        jot_text_free(&m->units.v[i].text);
        jot_plan_module_unref(m->ctx, m->units.v[i].module);
    }
    jot_vec_free(&m->ctx->mem, m->units);
    jot_vec_free(&m->ctx->mem, m->unit_names);
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* At once, or as a job if the backend has jobs. */
static bool
compile_module(jot_Ctx *ctx, PlanModule *module, PlanKernel **k, const char *what, const Text *text)
{
    Backend *b = module->backend;
    double before = ctx->stats.compile_seconds;
    uint32_t i;
    bool ok;

    if (b->start)
        module->job = b->start(b, ctx, what, text->s, text->n, module->sym, (int)module->n);
    if (module->job)
        return true;
    ok = !ctx->mem.failed
      && b->compile(b, ctx, what, text->s, text->n, module->sym, (int)module->n, &module->code);
    ctx->stats.wait_seconds += ctx->stats.compile_seconds - before;
    for (i = 0; ok && i < module->n; i++) {
        k[i]->fn = module->sym[i].fn;
        k[i]->device = module->sym[i].kernel;
        k[i]->items = module->sym[i].items;
    }
    return ok;
}

/* The definitions behind each other in `body`, a 0 after each; symbols point into it. */
static bool
compile_bodies(PlanKernel **k, PlanModule *module, Text *body)
{
    size_t at = 0;
    uint32_t i;

    for (i = 0; i < module->n; i++) {
        jot_plan_kernel_text(k[i], body);
        jot_text_put(body, "", 1);
    }
    for (i = 0; i < module->n && !body->mem->failed; i++) {
        module->sym[i].name = k[i]->name;
        module->sym[i].text = body->s + at;
        module->sym[i].group_nbytes = k[i]->group_nbytes;
        at += jot_str_len(body->s + at) + 1;
    }
    return !body->mem->failed;
}

static bool
compile_text(const Dialect *dialect, const PlanModule *module, const Text *body, Text *text)
{
    uint32_t i;

    if (!jot_emit_prelude(dialect, body->s, body->n, text))
        return false;
    for (i = 0; i < module->n; i++)
        jot_text_f(text, "%s\n", module->sym[i].text);
    return !text->mem->failed;
}

/* Kernels k[0..n) as one text behind their prelude. */
static bool
compile_unit(jot_Ctx *ctx, Backend *backend, PlanKernel **k, uint32_t n)
{
    Text body = {NULL, NULL, 0, 0}, text = {NULL, NULL, 0, 0}, what = {NULL, NULL, 0, 0};
    PlanModule *module = module_new(ctx, backend, n);
    bool ok = module != NULL;
    uint32_t i;

    body.mem = text.mem = what.mem = &ctx->mem;
    compile_what(k, n, &what);
    ok = ok && compile_bodies(k, module, &body)
      && compile_text(jot_dialect_find(backend->dialect), module, &body, &text)
      && compile_module(ctx, module, k, what.s, &text);
    for (i = 0; module && i < n; i++) {
        module->sym[i].name = module->sym[i].text = NULL; /* they end here */
        if (ok)
            module_hold(module, k[i], i);
    }
    if (module)
        jot_plan_module_unref(ctx, module);
    jot_text_free(&body);
    jot_text_free(&text);
    jot_text_free(&what);
    return ok || (ctx->status ? false : jot_fail_memory(ctx, "compile"));
}

/* What the quick tier refuses (user code that calls a library, say) waits for the best one. */
static bool
compile_quick(jot_Ctx *ctx, PlanKernel **k, uint32_t n)
{
    uint64_t compiled = ctx->stats.kernels_compiled;

    if (!compile_unit(ctx, ctx->backend->quick, k, n) && ctx->status == JOT_EMEM)
        return false;
    if (ctx->status) {
        ctx->status = JOT_OK;
        ctx->message[0] = 0;
    }
    ctx->stats.kernels_quick += ctx->stats.kernels_compiled - compiled;
    ctx->stats.kernels_compiled = compiled;
    return true;
}

static bool
compile_due(const PlanKernel *k, uint64_t now)
{
    return k->launch && k->launch < now;
}

/* Code for the extents that a step has is worth it where these come again: the plan, or the group.
 * That sizes which do not share a text is no reason. */
static bool
compile_wanted(const Plan *plan, const PlanStep *step, PlanTier tier, PlanKind kind, uint64_t now)
{
    const PlanKernel *best = step->best.kernel, *quick = step->quick.kernel;
    bool missing = !best->fn && !best->module;
    bool own = now ? compile_due(best, now) && (plan->runs > 1 || step->known)
                   : !plan->generic || !jot_tier_varies(step);

    if (tier == TIER_BEST)
        return missing && best->kind == kind && own;
    return missing && !own && kind != KIND_CODE && quick && quick->kind == kind && quick->fn
           && !quick->good && !quick->better
           && (!now || (compile_due(quick, now) && jot_tier_worth(quick)));
}

/* Kernels of one tier and kind that are to be compiled; with what the quick tier would take for
 * them in a run. */
static bool
compile_collect(jot_Ctx *ctx, const Plan *plan, PlanTier tier, PlanKind kind, uint64_t now,
                PlanKernels *list)
{
    uint32_t i;

    list->n = 0;
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        if (compile_wanted(plan, step, tier, kind, now))
            (tier == TIER_BEST ? step->best.kernel : step->quick.kernel)->cost = -1;
    }
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];
        PlanKernel *k = tier == TIER_BEST ? step->best.kernel : step->quick.kernel;

        if (!compile_wanted(plan, step, tier, kind, now))
            continue;
        if (k->cost < 0) {
            if (!jot_vec_reserve(&ctx->mem, *list, 1))
                return jot_fail_memory(ctx, "compile");
            list->v[list->n++] = k;
            k->cost = 0;
        }
        k->cost += jot_tier_cost(ctx, step);
    }
    return true;
}

/* The dearest first, in the order of the steps among equals. */
static void
compile_sort(PlanKernel **k, uint32_t n)
{
    uint32_t i, j;

    for (i = 1; i < n; i++) {
        PlanKernel *one = k[i];

        for (j = i; j && k[j - 1]->cost < one->cost; j--)
            k[j] = k[j - 1];
        k[j] = one;
    }
}

/* Bytes of the kernels with what they need of the prelude. */
static size_t
compile_sizes(jot_Ctx *ctx, PlanKernel **k, uint32_t n)
{
    const Dialect *dialect = jot_dialect_find(ctx->backend->dialect);
    Text prelude = {NULL, NULL, 0, 0};
    size_t total = 0;
    uint32_t i;

    prelude.mem = &ctx->mem;
    for (i = 0; i < n; i++) {
        prelude.n = 0;
        (void)jot_emit_prelude(dialect, k[i]->text, k[i]->nbytes, &prelude);
        k[i]->size = k[i]->nbytes + prelude.n;
        total += k[i]->size;
    }
    jot_text_free(&prelude);
    return total;
}

static bool
compile_units(jot_Ctx *ctx, PlanKernel **k, uint32_t n)
{
    size_t total, size, here;
    uint32_t i, from = 0;

    if (!ctx->backend->start)
        return !n || compile_unit(ctx, ctx->backend, k, n);
    compile_sort(k, n);
    total = compile_sizes(ctx, k, n);
    size = total / UNITS < UNIT_LEAST ? UNIT_LEAST : total / UNITS > UNIT_MOST ? UNIT_MOST
                                                                              : total / UNITS + 1;
    for (i = 0, here = 0; i < n; i++) {
        here += k[i]->size;
        if (here < size && i + 1 < n)
            continue;
        if (!compile_unit(ctx, ctx->backend, k + from, i + 1 - from))
            return false;
        from = i + 1;
        here = 0;
    }
    return true;
}

static bool
compile_start(jot_Ctx *ctx, const Plan *plan, PlanTier tier, PlanKind kind, uint64_t now,
              PlanKernels *list)
{
    uint32_t i;
    bool ok = compile_collect(ctx, plan, tier, kind, now, list);

    if (ok && kind != KIND_CODE)
        return compile_units(ctx, list->v, list->n);
    for (i = 0; ok && i < list->n; i++)
        ok = compile_unit(ctx, ctx->backend, &list->v[i], 1);
    return ok;
}

JOT_FN bool
jot_plan_start(jot_Ctx *ctx, const Plan *plan, uint64_t now)
{
    PlanKernels list = {NULL, 0, 0};
    int kind;
    bool ok = true;

    if (ctx->target.late) /* priced by estimates */
        return true;
    for (kind = KIND_SCALAR; ok && kind <= KIND_CODE; kind++)
        ok = compile_start(ctx, plan, TIER_BEST, (PlanKind)kind, now, &list)
          && compile_start(ctx, plan, TIER_QUICK, (PlanKind)kind, now, &list);
    jot_vec_free(&ctx->mem, list);
    return ok;
}

JOT_FN bool
jot_plan_compile_now(jot_Ctx *ctx, PlanKernel **k, uint32_t n)
{
    bool memory = true;
    uint32_t i;

    for (i = 0; i < n && memory; i++) {
        if (k[i]->fn || k[i]->module || compile_unit(ctx, ctx->backend, &k[i], 1))
            continue;
        memory = ctx->status != JOT_EMEM;
        ctx->status = JOT_OK;
        ctx->message[0] = 0;
    }
    for (i = 0; i < n; i++)
        jot_tier_await(ctx, k[i]);
    return memory && !ctx->mem.failed;
}

/* The user's to the end. */
static uint32_t
compile_part(PlanKernels *fresh)
{
    uint32_t i, n = 0;

    for (i = 0; i < fresh->n; i++) {
        PlanKernel *k = fresh->v[i];

        if (k->kind == KIND_CODE)
            continue;
        fresh->v[i] = fresh->v[n];
        fresh->v[n++] = k;
    }
    return n;
}

JOT_FN bool
jot_plan_compile(Make *m)
{
    jot_Ctx *ctx = m->ctx;
    uint32_t n = compile_part(&m->fresh), i;
    bool ok = !n || compile_quick(ctx, m->fresh.v, n), begins;

    for (i = n; ok && i < m->fresh.n; i++)
        ok = compile_quick(ctx, &m->fresh.v[i], 1);
    begins = ok && jot_tier_begins(ctx, m->plan);
    m->plan->early |= begins && ctx->target.late; /* or a body of its is */
    m->plan->generic = begins && jot_tier_generic(ctx, m->plan);
    ok = ok && jot_plan_start(ctx, m->plan, begins ? 0 : ctx->plans->launches + 1)
      && (m->plan->early || jot_tier_settle(ctx, m->plan, false));
    if (ok && begins)
        jot_kept_write(ctx, m->plan, true);
    for (i = 0; ok && !m->plan->early && i < m->plan->steps.n; i++)
        if (m->plan->steps.v[i].quick.kernel)
            m->plan->steps.v[i].quick.kernel->met = true;
    return ok;
}
