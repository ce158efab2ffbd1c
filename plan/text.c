/* plan/text.c - the text of one group's kernel: put into layouts, scheduled, printed, in each of
 * its tiers.
 *
 *     group -> Kernel -> layouts -> Sched (ccode/strategy/) -> "void jot_k_0000000000000000(...)"
 *
 * Where the backend has a quick tier and the kernel's function is not there yet, the group is
 * printed a second time, with the plain schedule as strict C99 whose extents, strides and constants
 * are arguments: a compiler that does not optimise gains nothing by vectors, nor by numbers, and
 * shapes that differ in numbers share the text.
 *
 *   requires  groups, layouts and copies of the plan     keeps  the plan
 * Read before: plan/built.c, plan/step.c, ccode/strategy/strategy.h.
 * After: plan/kernel.c. */
#include "ccode/rewrite/rewrite.h"
#include "plan/parts.h"
#include "ops/user/code.h"

/* Of a drawn schedule without vectors, whose values a compiler may have on the stack, all of them:
 * some 30 bytes a line, where a thread of the library's own has 256 KB. */
enum { TEXT_LINES = 2048 };

static bool
text_refused(Make *m, Text *why, const char *what)
{
    if (!m->ctx->status && !m->ctx->mem.failed)
        jot_fail(m->ctx, JOT_EUSE, "plan: kernel \"%s\": %s", what,
                 why->s ? why->s : "refused by the emitter");
    return jot_fail_memory(m->ctx, "plan");
}

static Wanted
kernel_wanted(const Make *m)
{
    Wanted want;

    memset(&want, 0, sizeof want);
    want.config = &m->ctx->config;
    want.target = &m->ctx->target;
    want.dialect = m->dialect;
    if (m->printed) {
        want.products = jot_plan_products(m->printed, NULL);
        want.no_own = m->no_winograd ? m->no_winograd : m->printed->no_winograd;
    }
    want.first = !m->ctx->stats.plans;
    return want;
}

JOT_FN int
jot_plan_lanes(const Make *m, int dtype)
{
    Wanted want = kernel_wanted(m);

    return jot_schedule_lanes(&want, dtype);
}

JOT_FN bool
jot_plan_fast(const Make *m)
{
    return jot_str_eq(m->ctx->config.precision, "fast");
}

JOT_FN bool
jot_plan_scheduled(Make *m, Kernel *k, PlanTier tier, const SchedOwn *own, bool plain, bool dump,
                   Text *out, EmitInfo *info, Text *why, Text *schedule)
{
    bool quick = tier == TIER_QUICK;
    Wanted want = kernel_wanted(m);
    const Dialect *dialect = quick ? jot_dialect_find("c_any") : want.dialect;
    Sched s;
    bool ok;

    if (!jot_ir_verify(k, why))
        return false;
    want.own = own;
    want.quick = quick;
    want.plain = plain;
    want.seed = plain ? 0 : jot_hash_u64(jot_str_seed(m->ctx->config.schedule), m->plan->steps.n);
    want.refusals = dump && !quick && jot_plan_dumps(m->ctx, 'r') ? &m->dump : NULL;
    ok = jot_schedule(&s, k, &want, why) && jot_sched_verify(&s, why);
    if (ok && schedule)
        jot_sched_print(&s, schedule);
    s.vector_nbytes = dialect->vectors ? m->ctx->target.vector_nbytes : 0;
    ok = ok
         && jot_emit(k, &s, dialect, PLAN_NO_NAME, quick || !dump ? NULL : m->ctx->config.dump,
                     &m->dump, out, info, why);
    jot_sched_close(&s);
    return ok;
}

/* Schedule and print: as was measured, if it was. `plain`: the schedule by rule, whatever the
 * configuration says. */
static bool
text_print(Make *m, Kernel *k, PlanTier tier, const SchedOwn *own, bool plain, Text *out,
           EmitInfo *info, Text *why)
{
    if (tier == TIER_BEST && !own && plain && !out->n && jot_plan_tunes(m)
        && jot_plan_tune(m, k, out, info))
        return true;
    return jot_plan_scheduled(m, k, tier, own, plain, true, out, info, why, NULL);
}

/* The layouts that were chosen; halos are written by steps of their own. */
JOT_FN void
jot_plan_kernel_layouts(Make *m, uint32_t group, Kernel *k, const BuildArgs *args)
{
    uint32_t i;

    for (i = 0; i < args->bufs.n && i + 1 < k->bufs.n; i++) {
        uint32_t pos = jot_node(m->ctx, args->bufs.v[i])->at;
        const PlanCopied *copy = jot_plan_copy_of(m, group, pos);
        const Layout *layout = copy && !copy->winograd ? copy->layout : m->layout[pos];

        if (layout)
            jot_kernel_layout(k, i + 1, layout);
        k->bufs.v[i + 1].bordered = layout != NULL;
    }
}

static bool
kernel_print_tiles(Make *m, Kernel *k, const PlanBuilt *built, PlanTier tier, Text *out,
                   EmitInfo *info, Text *why)
{
    SchedOwn sched = {jot_winograd_sched, NULL};
    const Target *t = &m->ctx->target;
    Winograd w = *built->winograd;
    Epilogue sums;
    Kernel tiled;
    bool ok;

    sched.w = &w;
    if (built->products.form == PRODUCTS_EPILOGUE) {
        sums = built->products.sums;
        jot_epilogue_take(k, &sums);
        jot_epilogue_detach(k, &sums, true);
        w.epilogue = &sums;
        jot_winograd_band(k, t, &w, &sums);
    }
    ok = jot_winograd_kernel(k, &w, &tiled)
      && (!w.epilogue || jot_winograd_epilogue(k, t, &w, &sums, &tiled))
      && text_print(m, &tiled, tier, &sched, true, out, info, why);
    jot_kernel_close(&tiled);
    return ok;
}

/* Lay out the kernel of a group and print it. */
static bool
kernel_print(Make *m, uint32_t group, Kernel *k, const PlanBuilt *built, PlanTier tier, bool plain,
             Text *out, EmitInfo *info, Text *why)
{
    const BuildArgs *args = &built->args;
    bool ok = true;
    uint32_t i;

    for (i = 0; ok && i < args->maps.n; i++)
        ok = jot_code_map_text(m->ctx, args->maps.v[i],
                               m->dialect->device ? m->dialect->device->function : "static ", out);
    if (!ok)
        return false;
    jot_plan_kernel_layouts(m, group, k, args);
    jot_donate_wish(m, k, args);
    if (!jot_kernel_partial(k))
        return false;
    if (built->winograd)
        return kernel_print_tiles(m, k, built, tier, out, info, why);
    if (!m->dialect->device && !m->plan->dialect)
        jot_kernel_views(k);
    return jot_passes(k, PASS_LAID_OUT, &m->ctx->target, 0)
        && text_print(m, k, tier, NULL, plain, out, info, why);
}

/* A random schedule too long to print, or to run, gives way to the plain one; blocks that cannot be
 * clamped, to scalars. */
static bool
text_group(Make *m, uint32_t group, PlanTier tier, const char *what, const BuildArgs **args,
           Text *out, EmitInfo *info, KernelCost *cost)
{
    Text why = {&m->ctx->mem, NULL, 0, 0};
    bool plain = tier == TIER_QUICK || !jot_plan_random(m), ok, again;

    do {
        PlanBuilt *built;
        Kernel k;

        why.n = 0;
        out->n = 0;
        built = jot_plan_built(m, group, &k);
        ok = built != NULL;
        if (ok) {
            *args = &built->args;
            m->printed = built;
            jot_kernel_cost(&k, cost);
            k.name = jot_arena_copy(&k.arena, what, jot_str_len(what));
            ok = kernel_print(m, group, &k, built, tier, plain, out, info, &why)
              && (plain || m->dialect->vectors || info->lines <= TEXT_LINES);
            m->printed = NULL;
            jot_kernel_close(&k);
        }
        again = !ok && !m->ctx->status && !m->ctx->mem.failed
             && !plain;
        plain = true;
    } while (again);
    if (!ok)
        text_refused(m, &why, what);
    jot_text_free(&why);
    return ok;
}

/* ---- in its tiers ------------------------------------------------------------------------- */

/* The dump was written before the name was known. */
static void
kernel_dump_name(Text *dump, size_t from, const PlanKernel *k)
{
    const size_t n = sizeof PLAN_NO_NAME - 1;
    size_t i;

    for (i = from; i + n <= dump->n; i++)
        if (dump->s[i] == 'j' && !memcmp(dump->s + i, PLAN_NO_NAME, n))
            memcpy(dump->s + i, k->name, n);
}

JOT_FN bool
jot_plan_own_known(Make *m, const PlanKnown *known, uint32_t copy, const uint32_t *var, uint32_t n)
{
    PlanStep step = {0};
    size_t shared_nbytes = 0;
    bool ok = jot_plan_known_step(m, known, &step, &m->args, &shared_nbytes);

    step.copy = copy;
    ok = ok && jot_plan_own_args(m, var, n, shared_nbytes, &step);
    return jot_plan_step_end(m, &step, ok);
}

/* Its text for a tier is what the step launches there. */
static bool
kernel_tier(KernelStep *s, PlanTier tier)
{
    Make *m = s->m;
    PlanStep *step = s->step;
    PlanLaunch *launch = tier == TIER_BEST ? &step->best : &step->quick;
    Text text = {&m->ctx->mem, NULL, 0, 0}, why = {&m->ctx->mem, NULL, 0, 0};
    EmitInfo info = {0};
    size_t dumped = m->dump.n;
    bool ok;
    int i;

    if (s->own)
        ok = text_print(m, s->own, tier, s->sched, true, &text, &info, &why)
          || text_refused(m, &why, s->what);
    else
        ok = text_group(m, s->group, tier, s->what, &s->args, &text, &info, &step->cost);
    if (ok)
        jot_plan_step_launch(m, launch, &text, s->what, false, tier, &info);
    if (launch->kernel && tier == TIER_BEST)
        kernel_dump_name(&m->dump, dumped, launch->kernel);
    if (info.shared_nbytes > s->shared_nbytes)
        s->shared_nbytes = info.shared_nbytes;
    for (i = 0; i < 4; i++)
        step->over.bit[i] = info.over.bit[i] & (tier == TIER_BEST ? ~(uint64_t)0
                                                                  : step->over.bit[i]);
    step->begins = info.begins;
    step->as = info.as;
    jot_text_free(&text);
    jot_text_free(&why);
    return launch->kernel != NULL;
}

JOT_FN bool
jot_plan_tiers(KernelStep *s, bool keep)
{
    Make *m = s->m;
    bool whole = keep && m->plan->kept && (s->own || jot_plan_group_key_whole(m, s->group)), ok;
    const GroupKey *key = s->own ? &m->sought : &m->whole;

    s->kept = whole && jot_kept_step(m, key, s->what, s->step, &s->shared_nbytes);
    if (s->kept)
        s->args = &m->args;
    ok = s->kept || kernel_tier(s, TIER_BEST);
    if (ok && whole)
        jot_kept_note(m, key, s->step, s->args, s->shared_nbytes, !s->kept);
    /* how much of what begins as it is will change is not known: little */
    s->step->seconds = s->step->begins ? 0 : jot_cost_seconds(&s->step->cost, &m->ctx->target);
    if (ok && jot_plan_step_quick(m, s->step) && !jot_tier_waits(m->ctx, s->step))
        ok = kernel_tier(s, TIER_QUICK);
    return ok && (!keep || jot_plan_known_keep(m, s->step, s->args, s->shared_nbytes));
}

JOT_FN bool
jot_plan_own_step(Make *m, Kernel *k, const char *what, const SchedOwn *sched, uint32_t copy,
                  const uint32_t *var, uint32_t n, bool keep)
{
    PlanStep step = {0};
    KernelStep s = {m, 0, k, sched, what, &m->args, 0, &step, false};
    bool ok;

    k->name = jot_arena_copy(&k->arena, what, jot_str_len(what));
    jot_kernel_cost(k, &step.cost);
    step.copy = copy;
    m->args.bufs.n = m->args.scalars.n = 0; /* kept is what it does, whichever its variables */
    ok = jot_plan_tiers(&s, keep) && jot_plan_own_args(m, var, n, s.shared_nbytes, &step);
    return jot_plan_step_end(m, &step, ok);
}
