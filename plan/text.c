/* plan/text.c - the text of one group's kernel: built, put into layouts, scheduled, printed.
 *
 *     group -> Kernel -> pairs, layouts, moments -> Sched -> "void jot_k_0000000000000000(...)"
 *
 * Which schedule: one that the caller has; a contraction's, a stencil's, one by planes; else by
 * price (ccode/schedule/choose.c), by rule for lanes that are asked for, or drawn. The quick tier's
 * is plain, for one text is to serve all extents; but a program's first plan, before any extent has
 * changed, has its large contractions in blocks of scalars.
 *
 *   requires  groups, layouts and copies of the plan     keeps  the plan
 * Read before: ccode/build/build.h, ccode/schedule/sched.h, ccode/emit.h. After: plan/kernel.c. */
#include "plan/parts.h"
#include "ccode/contract/chain.h"
#include "ccode/contract/epilogue.h"
#include "ccode/contract/panels.h"
#include "ccode/rewrite/line_buffer.h"
#include "ccode/rewrite/rewrite.h"
#include "ccode/schedule/transpose.h"
#include "ccode/stencil/stencil.h"
#include "ops/user/code.h"
#include "target/choice.h"

#define KERNEL_BLOCKS 1e6 /* points from which blocks are worth their text to the quick tier */

static bool
kernel_random(const char *word)
{
    return word && word[0] == 'r' && word[1] == 'a';
}

JOT_FN bool
jot_plan_refused(Make *m, Text *why, const char *what)
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

/* Schedules of their own are taken where they are found; the one that is there for all kernels is
 * an alternative, to contractions only for a drawn machine. */
static bool
kernel_takes(const Make *m, uint64_t what)
{
    return jot_choice_rule(&m->ctx->target, what, 2, 0) == 0;
}

/* Lanes of the widest sums. */
static int
kernel_sum_lanes(const Make *m, const Kernel *k)
{
    int dtype = JOT_F32;
    uint32_t i;

    for (i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_REDUCE && k->values.v[i].dtype == JOT_F64)
            dtype = JOT_F64;
    return jot_plan_lanes(m, dtype);
}

static MatrixUse
plan_matrix(const Make *m)
{
    return !m->dialect->device->matrix ? MATRIX_NONE
         : jot_str_eq(m->ctx->config.precision, "tf32") ? MATRIX_TF32 : MATRIX_HALVES;
}

static double
kernel_points(const Kernel *k)
{
    double points = 1;
    uint32_t i;

    for (i = 0; i < k->axes.n; i++)
        points *= (double)k->axes.v[i].ext;
    return points;
}

/* A large contraction of the quick tier in a program's first plan: blocks of scalars, 4 times as
 * fast as one sum after the other, in a text that other extents do not share. */
static bool
kernel_contract_quick(const Make *m, Kernel *k, Sched *s)
{
    Target t = m->ctx->target;
    Contract c;

    t.vector_nbytes = 0;
    t.fma = t.tiles = false;
    if (m->ctx->stats.plans || kernel_points(k) < KERNEL_BLOCKS || !jot_kernel_residues(k))
        return false;
    if (jot_contract_only(k, &c) && jot_contract_sched(s, k, &c, &t, 1, NULL))
        return true;
    jot_sched_close(s);
    return !k->mem->failed && jot_panels_sched(s, k, &t, 1);
}

static bool
kernel_contract_grid(const Make *m, Kernel *k, Sched *s, const Contract *c, const Target *t)
{
    Kernel was;

    return jot_kernel_settle(k, &was, jot_kernel_copy(&was, k)
                                          && jot_contract_grid(s, k, c, t, plan_matrix(m)));
}

/* A contraction's schedule, in as many lanes as the machine has for it. */
static bool
kernel_contract(const Make *m, Kernel *k, Sched *s)
{
    Target t = m->ctx->target;
    Contract c;
    Rides rides, *own = NULL;
    int64_t by;
    int at, lanes = jot_plan_lanes(m, JOT_F32);
    bool weight = !m->dialect->device && !jot_str_eq(m->ctx->config.precision, "exact");

    t.tiles = t.tiles && m->dialect->vectors;
    if (kernel_points(k) < jot_target_least(&t, 4096)) /* not worth the text of blocks and packs */
        return false;
    if (!jot_kernel_residues(k))
        return false;
    if (!m->dialect->device && jot_rides_find(k, &rides)) {
        if (!jot_rides_block(k, &t, &rides, true, &at, &by))
            return false;
        jot_rides_apart(k, &rides, true);
        own = &rides;
    }
    if (weight && !own && jot_contract_only(k, &c)) {
        if (jot_winograd_weight(s, k, &c, &t, lanes))
            return true;
        jot_sched_close(s);
    }
    if (jot_contract_only(k, &c)) {
        if (m->dialect->device ? kernel_contract_grid(m, k, s, &c, &t)
                               : jot_contract_sched(s, k, &c, &t,
                                                    jot_plan_lanes(m, k->values.v[c.reduce].dtype),
                                                    own))
            return true;
        jot_sched_close(s);
    }
    if (own)
        jot_rides_apart(k, own, false);
    else if (!m->dialect->device)
        return jot_panels_sched(s, k, &t, kernel_sum_lanes(m, k))
            || (!k->mem->failed && jot_chain_sched(s, k, &t, kernel_sum_lanes(m, k)));
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
    if (plain && !k->steps && jot_target_price(&m->ctx->target, 4000, 1) <= 1
        && (tier == TIER_BEST ? kernel_contract(m, k, s) : kernel_contract_quick(m, k, s)))
        return true;
    if (k->mem->failed) /* indices may be missing */
        return false;
    if (plain && !k->steps && tier != TIER_QUICK && m->dialect->vectors
        && ((kernel_takes(m, 4020)
             && jot_stencil_sched(s, k, &m->ctx->target, jot_plan_lanes(m, JOT_F32)))
            || (kernel_takes(m, 4022)
                && jot_plane_sched(s, k, &m->ctx->target, jot_plan_lanes(m, JOT_F32)))
            || (!lanes && kernel_takes(m, 4024) && jot_rows_sched(s, k, &m->ctx->target))))
        return true;
    if (!m->dialect->device
        && (!jot_kernel_turned(k) || !jot_merge_axes(k) || !jot_kernel_scatters(k)))
        return false;
    jot_steps_fold(k);
    if (!m->dialect->device && tier != TIER_QUICK && !jot_lines(k, plain ? LINE_LEAST : 2))
        return false;
    if (!jot_steps_in_all(k))
        return false;
    if (plain && !lanes && tier != TIER_QUICK && m->dialect->vectors && kernel_takes(m, 4026)
        && jot_turn_sched(s, k, jot_plan_lanes(m, JOT_F32)))
        return true;
    if (k->mem->failed)
        return false;
    n = lanes ? jot_build_order(k, order) : jot_build_order_outer(k, order);
    if (!plain)
        return jot_sched_random(s, k, lanes ? lanes : 1,
                                jot_hash_u64(jot_str_seed(c->schedule), m->plan->steps.n));
    if (m->dialect->device && (jot_sched_grid(s, k, &m->ctx->target) || k->mem->failed))
        return !k->mem->failed;
    if (m->dialect->device) {
        jot_sched_close(s);
        return jot_sched_default(s, k, 1, n, order);
    }
    return lanes ? jot_sched_default(s, k, lanes, n, order)
                 : jot_sched_choose(s, k, &m->ctx->target, n, order);
}

JOT_FN bool
jot_plan_scheduled(Make *m, Kernel *k, PlanTier tier, const PlanSched *own, bool plain, bool dump,
                   Text *out, EmitInfo *info, Text *why, Text *schedule)
{
    bool quick = tier == TIER_QUICK;
    const Dialect *dialect = quick ? jot_dialect_find("c_any") : m->dialect;
    Sched s;
    bool ok;

    if (!jot_ir_verify(k, why))
        return false;
    memset(&s, 0, sizeof s);
    ok = kernel_schedule(m, k, tier, own, plain, &s, why) && jot_sched_verify(&s, why);
    if (ok && schedule)
        jot_sched_print(&s, schedule);
    s.vector_nbytes = dialect->vectors ? m->ctx->target.vector_nbytes : 0;
    ok = ok
         && jot_emit_dump(k, &s, dialect, PLAN_NO_NAME, quick || !dump ? NULL : m->ctx->config.dump,
                          &m->dump, out, info, why);
    jot_sched_close(&s);
    return ok;
}

/* Schedule and print: as was measured, if it was. `plain`: the schedule by rule, whatever the
 * configuration says. */
JOT_FN bool
jot_plan_print(Make *m, Kernel *k, PlanTier tier, const PlanSched *own, bool plain, Text *out,
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
    const Target *t = &m->ctx->target;
    Winograd w;
    Rides rides;
    Kernel tiled;
    bool ok, sums = jot_rides_find(k, &rides);

    sched.w = &w;
    if (sums)
        jot_rides_apart(k, &rides, true);
    ok = jot_winograd_find(k, jot_plan_lanes(m, JOT_F32), t, jot_plan_fast(m), &w);
    JOT_ASSERT(ok || m->ctx->mem.failed, "plan/layout/winograd.c found it");
    if (!ok)
        return false;
    if (sums) {
        w.rides = &rides;
        jot_winograd_band(k, t, &w, &rides);
    }
    ok = jot_winograd_kernel(k, &w, &tiled)
      && (!sums || jot_winograd_rides(k, t, &w, &rides, &tiled))
      && jot_plan_print(m, &tiled, tier, &sched, true, out, info, why);
    jot_kernel_close(&tiled);
    return ok;
}

/* Build and print a group; a random schedule too long to print gives way to the plain one. */
JOT_FN bool
jot_plan_text(Make *m, uint32_t group, PlanTier tier, const char *what, BuildArgs *args, Text *out,
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
        ok = jot_build_kernel(m->ctx, &graph, group, &k, args) && jot_kernel_pairs(&k)
          && jot_kernel_singles(&k) && jot_kernel_narrow(&k);
        for (i = 0; ok && i < args->maps.n; i++)
            ok = jot_code_map_text(m->ctx, args->maps.v[i],
                                   m->dialect->device ? m->dialect->device->function : "static ",
                                   out);
        jot_kernel_cost(&k, cost);
        if (ok) {
            k.name = jot_arena_copy(&k.arena, what, jot_str_len(what));
            jot_plan_kernel_layouts(m, group, &k, args);
            jot_over_wish(m, &k, args);
            if (!m->dialect->device && !m->plan->dialect && !kernel_tiled(m, group))
                jot_kernel_views(&k);
            ok = jot_kernel_moments(&k, &m->ctx->target)
              && (kernel_tiled(m, group)
                      ? kernel_print_tiles(m, &k, tier, out, info, &why)
                      : jot_plan_print(m, &k, tier, NULL, plain, out, info, &why));
        }
        jot_kernel_close(&k);
        again = !ok && !plain && !m->ctx->status && !m->ctx->mem.failed;
        plain = true;
    } while (again);
    if (!ok)
        jot_plan_refused(m, &why, what);
    jot_text_free(&why);
    return ok;
}
