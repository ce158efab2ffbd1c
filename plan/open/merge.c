/* plan/open/merge.c - plans of many extents become one.
 *
 *     as for one size     steps whose texts agree but for numbers that are polynomials
 *     blocks clamped      of the others, in a second round: a rest is a block whose copies beyond
 *                         the end store nothing (ccode/schedule/sched.c, ccode/lower/walk.c)
 *     ... as for few      in a third: a schedule for most may have blocks of blocks
 *     scalars             of those that do not agree either
 *     none                else: each size has a plan of its own
 *
 * Small extents have kernels that are built otherwise: a loop of one is none, a block that does not
 * fit is not there. Where some steps do, the plan is for extents from there on (o->low).
 *
 *   requires  a backend that compiles      keeps  assignments, the generator
 * Read before: plan/open/merge.h, plan/open/groups.c, plan/open/fit.c, plan/open/text.c,
 * plan/open/sample.c.
 * After: plan/open/whole.c, plan/open/range.c. */
#include "plan/open/merge.h"

/* A number at each sample as a polynomial; samples that do not lie on it are no good. */
JOT_FN void
jot_merge_number(const OpenMerge *m, const int64_t *v, bool *good, OpenFit *fit)
{
    const OpenSpace *s = &m->o->space;
    int i;

    jot_open_fit(s, v, fit);
    for (i = 0; i < s->samples; i++)
        good[i] = good[i] && jot_open_value(s, fit, s->at[i]) == v[i];
}

/* ---- steps ---------------------------------------------------------------------------------- */

JOT_FN const PlanLaunch *
jot_merge_launch(const OpenMerge *m, int sample, uint32_t step)
{
    return &m->set.f[sample]->plan->steps.v[step].best;
}

/* What is asked of a launch beside its text: as many numbers of its own, no more scratch than at
 * most. */
static void
merge_own(OpenMerge *m, OpenStep *p, uint32_t step, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const PlanLaunch *base = jot_merge_launch(m, m->base, step);
    int64_t v[OPEN_SAMPLES];
    uint32_t k;
    int i, phase;

    for (i = 0; i < s->samples; i++) {
        const PlanLaunch *l = good[i] ? jot_merge_launch(m, i, step) : base;

        good[i] = good[i] && l->nints == base->nints && l->scratch_nbytes <= base->scratch_nbytes
               && l->kernel->kind == base->kernel->kind;
    }
    for (k = 0; k < base->nints; k++) {
        for (i = 0; i < s->samples; i++) {
            const PlanLaunch *l = good[i] ? jot_merge_launch(m, i, step) : NULL;

            v[i] = l ? m->set.f[i]->plan->ints.v[l->ints + k].i : 0;
        }
        jot_merge_number(m, v, good, &p->own[k]);
    }
    for (phase = 0; phase < base->phases; phase++) {
        for (i = 0; i < s->samples; i++)
            v[i] = good[i] ? jot_merge_launch(m, i, step)->count[phase] : 0;
        jot_merge_number(m, v, good, &p->count[phase]);
    }
    jot_merge_groups(m, p, step, good);
}

/* How a number of the text follows; false: it does not change, or does not follow (good). */
static bool
merge_word(const OpenMerge *m, const OpenStep *p, const int64_t *v, bool literal, bool *good,
           OpenLiteral *how)
{
    const OpenSpace *s = &m->o->space;
    jot_Scalar x[OPEN_SAMPLES];
    int i, same = 0;

    memset(how, 0, sizeof *how);
    how->dtype = JOT_I64;
    if (!literal) {
        jot_merge_count(m, p, v, good, how);
        return how->form == OPEN_BLOCKS || !jot_open_constant(s, &how->fit);
    }
    for (i = 0; i < s->samples; i++) {
        x[i].i = good[i] ? v[i] : v[m->base];
        same += x[i].i == v[m->base];
    }
    if (same == s->samples)
        return false;
    if (jot_open_literal(s, x, good, JOT_F32, how))
        return true;
    good[m->base] = false;
    return false;
}

/* The text's numbers: v[number][sample]. */
static bool
merge_words(OpenMerge *m, OpenStep *p, uint32_t step, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const PlanKernel *base = jot_merge_launch(m, m->base, step)->kernel;
    size_t samples = (size_t)s->samples, nv = ((size_t)p->n + 1) * (samples + 1);
    int64_t *v = jot_mem_new(&m->o->ctx->mem, nv, sizeof *v);
    int64_t *row = v ? v + (size_t)p->n * samples : NULL;
    OpenLiteral how;
    uint32_t k, a;
    int i;

    if (!v)
        return jot_fail_memory(m->o->ctx, "compile_open");
    for (i = 0; i < s->samples; i++) {
        good[i] = good[i] && jot_open_alike(base, jot_merge_launch(m, i, step)->kernel, row, p->n);
        for (k = 0; good[i] && k < p->n; k++)
            v[(size_t)k * samples + (size_t)i] = row[k];
    }
    jot_open_literals(base, p->literal);
    for (k = 0, p->nargs = 0; k < p->n && jot_open_level(&m->o->space, good) < OPEN_LEVELS; k++) {
        p->argument[k] = -1;
        if (!merge_word(m, p, v + (size_t)k * samples, p->literal[k], good, &how))
            continue;
        for (a = 0; a < p->nargs && memcmp(&p->how[a], &how, sizeof how); a++)
            ;
        if (a == p->nargs)
            p->how[p->nargs++] = how;
        p->argument[k] = (int)a;
    }
    jot_mem_free(&m->o->ctx->mem, v, nv * sizeof *v);
    return true;
}

/* *level: from where on the step's texts serve. */
static bool
merge_step(OpenMerge *m, OpenStep *p, uint32_t step, uint8_t *level)
{
    const PlanLaunch *base = jot_merge_launch(m, m->base, step);
    const Func *f = m->set.f[m->base];
    bool good[OPEN_SAMPLES];
    int i;

    for (i = 0; i < m->o->space.samples; i++)
        good[i] = m->like[i] && jot_open_same_step(f, m->set.f[i], step);
    p->n = jot_open_count(base->kernel);
    p->argument = jot_arena_array(&m->arena, int, (size_t)p->n + 1);
    p->literal = jot_arena_array(&m->arena, bool, (size_t)p->n + 1);
    p->how = jot_arena_array(&m->arena, OpenLiteral, (size_t)p->n + 1);
    p->own = jot_arena_array(&m->arena, OpenFit, (size_t)base->nints + 1);
    p->launch = jot_arena_array(&m->arena, OpenLiteral, (size_t)base->launches + 1);
    if (!p->argument || !p->literal || !p->how || !p->own || !p->launch)
        return jot_fail_memory(m->o->ctx, "compile_open");
    merge_own(m, p, step, good);
    if (!merge_words(m, p, step, good))
        return false;
    good[m->base] = good[m->base] && (!m->open.device || p->nargs <= OPEN_ARGUMENTS);
    *level = jot_open_level(&m->o->space, good);
    for (i = 0; i < m->o->space.grid; i++)
        p->near |= !good[i];
    return true;
}

/* Steps that agree nowhere have another form in the next round; *again: there is one. */
static bool
merge_steps(OpenMerge *m, const uint8_t *was, bool *again)
{
    uint8_t *form = m->open.form, last = m->open.device ? TEXT_CLAMPED : TEXT_LOOPS;
    uint32_t i, n = m->set.f[m->base]->plan->steps.n;
    Text why = {NULL, m->o->why, 0, sizeof m->o->why};

    m->step = jot_arena_array(&m->arena, OpenStep, (size_t)n + 1);
    if (!m->step)
        return jot_fail_memory(m->o->ctx, "compile_open");
    for (i = 0; i < n; i++) {
        uint8_t level = OPEN_LEVELS;

        if (!merge_step(m, &m->step[i], i, &level))
            return false;
        m->step[i].level = level;
        if (level > m->level)
            m->level = level;
        if (level < OPEN_LEVELS)
            continue;
        *again |= was[i] < last;
        m->near |= was[i] >= last && m->step[i].near;
        form[i] += form[i] < last && form[i] == was[i];
        why.n = 0;
        jot_text_f(&why, "the kernel \"%s\" is another for some of them",
                   jot_merge_launch(m, m->base, i)->kernel->what);
    }
    return true;
}

/* Plans of all samples; m->level == OPEN_LEVELS: they are not one. */
static bool
merge_round(OpenMerge *m, uint8_t *was, bool *again)
{
    const OpenSpace *s = &m->o->space;
    uint8_t level;
    int i;

    *again = m->near = false;
    memcpy(was, m->open.form, MERGE_STEPS);
    if (!jot_open_sample(m->o, &m->open, &m->set))
        return false;
    for (i = 0; i < s->samples; i++)
        m->like[i] = jot_open_like(m->o, m->set.f[m->base], m->set.f[i]);
    m->level = jot_open_level(&m->o->space, m->like);
    if (m->level == OPEN_LEVELS || m->set.f[m->base]->plan->steps.n > MERGE_STEPS)
        return true;
    if (!merge_steps(m, was, again))
        return false;
    if (*again)
        return true;
    for (i = 0; i < s->samples; i++)
        m->valid[i] = m->like[i] && jot_open_same(m->o, m->set.f[m->base], m->set.f[i]);
    level = jot_open_level(&m->o->space, m->valid);
    m->level = level > m->level ? level : m->level;
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void
merge_told(const OpenMerge *m)
{
    static const char *const forms[] = {"as for one size", "blocks clamped",
                                        "blocks clamped, as for few", "scalars", "scalars"};
    Text t = {&m->o->ctx->mem, NULL, 0, 0};
    const Plan *plan = m->f->plan;
    uint32_t i;

    if (!jot_plan_dumps(m->o->ctx, 'p'))
        return;
    for (i = 0; i < plan->steps.n; i++)
        jot_text_f(&t, "open: step %u %s (%s): %s, %u of %u numbers are arguments\n", i,
                   plan->steps.v[i].best.kernel->name, plan->steps.v[i].best.kernel->what,
                   forms[m->open.form[i]], m->step[i].nargs, m->step[i].n);
    jot_plan_log(m->o->ctx, &t);
}

static bool
merge_rounds(OpenMerge *m, uint8_t *was, OpenLearn learn)
{
    bool again = true;

    m->open.learn = learn;
    while (again) {
        jot_open_drop(&m->set);
        if (!merge_round(m, was, &again))
            return false;
        m->open.learn = OPEN_KNOWN;
    }
    return true;
}

/* Small extents have other schedules, too: shorter blocks, for all threads to have some. With the
 * one for most a step may serve them as well. */
static bool
merge_lower(OpenMerge *m, uint8_t *was)
{
    uint32_t n = m->set.f[m->base]->plan->steps.n, i;
    const OpenStep *step = m->step;
    uint8_t level = m->level;
    bool some = false, back = false;

    if (level < 2 || level == OPEN_LEVELS)
        return true;
    for (i = 0; i < n; i++)
        if (m->open.form[i] == TEXT_CLOSED && step[i].level > 1) {
            m->open.form[i] = TEXT_CLAMPED;
            some = true;
        }
    if (!some)
        return true;
    if (!merge_rounds(m, was, OPEN_KNOWN))
        return false;
    for (i = 0; i < n; i++)
        if (step[i].level > 1 && m->open.form[i] > TEXT_CLOSED
            && (m->level >= level || m->step[i].level >= step[i].level)) {
            m->open.form[i] = TEXT_CLOSED;
            back = true;
        }
    return !back || merge_rounds(m, was, OPEN_KNOWN);
}

/* Contractions in turn on blocks of rows have schedules of one size: where they are kernels that
 * are not merged, or as scalars only, each contraction is to be a kernel of its own. */
static bool
merge_in_turn(const OpenMerge *m)
{
    const Plan *plan = m->set.f[m->base]->plan;
    uint32_t i;

    if (m->open.apart || plan->steps.n > MERGE_STEPS)
        return false;
    for (i = 0; i < plan->steps.n; i++)
        if (m->open.most[i].blocks && (m->level == OPEN_LEVELS || m->open.form[i] >= TEXT_SCALAR))
            return true;
    return false;
}

/* From the beginning: with layouts or without, contractions apart or not. */
static bool
merge_way(OpenMerge *m, uint8_t *was, bool rows, bool apart)
{
    m->open.rows = rows;
    m->open.apart = apart;
    memset(m->open.form, 0, MERGE_STEPS);
    memset(m->open.axes, 0, MERGE_STEPS * sizeof *m->open.axes);
    return merge_rounds(m, was, OPEN_OTHER);
}

/* Extents of more than the schedules for few have: those of the halves are no simpler. */
static bool
merge_many(const OpenMerge *m)
{
    const OpenSpace *s = &m->o->space;
    bool many = false;
    int d;

    for (d = 0; d < s->n; d++)
        many |= s->most[d] > OPEN_FEW_ROWS;
    return many;
}

/* Layouts are chosen by size; where plans have others, all are row-major, which is slower. The
 * first way by which all are one; of those that leave contractions in turn to scalars, if no other
 * does. */
static bool
merge_ways(OpenMerge *m, uint8_t *was)
{
    int way, second = -1;
    bool slow = false;

    for (way = m->o->dialect ? 2 : 0; way < 4 && !m->o->whole; way++) {
        if (way % 2 && !slow)
            continue; /* nothing to take apart */
        if (!merge_way(m, was, way / 2, way % 2))
            return false;
        slow = merge_in_turn(m);
        m->o->whole |= way >= 2 && second < 0 && m->near && (!slow || way == 3) && merge_many(m);
        if (m->level < OPEN_LEVELS && !slow)
            return merge_lower(m, was);
        if (m->level < OPEN_LEVELS && second < 0)
            second = way;
    }
    return second < 0 || (merge_way(m, was, second / 2, second % 2) && merge_lower(m, was));
}

static bool
merge_all(OpenMerge *m)
{
    Open *o = m->o;
    uint8_t *was = jot_arena_array(&m->arena, uint8_t, MERGE_STEPS);

    m->open.form = jot_arena_array(&m->arena, uint8_t, MERGE_STEPS);
    m->open.axes = jot_arena_array(&m->arena, uint64_t, MERGE_STEPS);
    m->open.most = jot_arena_array(&m->arena, OpenKernel, MERGE_STEPS);
    m->open.few = jot_arena_array(&m->arena, OpenKernel, MERGE_STEPS);
    m->open.fused = jot_arena_array(&m->arena, OpenFused, 1);
    m->open.arena = &m->arena;
    m->open.n = MERGE_STEPS;
    m->open.device = !o->dialect && o->ctx->backend->device;
    if (!was || !m->open.form || !m->open.axes || !m->open.most
        || !m->open.few || !m->open.fused)
        return jot_fail_memory(o->ctx, "compile_open");
    if (!merge_ways(m, was))
        return false;
    if (m->level == OPEN_LEVELS)
        return true;
    m->f = jot_open_text_of(o, o->space.at[m->base], &m->open, true);
    return m->f && jot_merge_function(m) && (m->level == OPEN_LEVELS || jot_merge_plan(m));
}

JOT_FN bool
jot_open_merge(Open *o)
{
    OpenMerge *m = jot_mem_new(&o->ctx->mem, 1, sizeof *m);
    bool ok;

    if (!m)
        return jot_fail_memory(o->ctx, "compile_open");
    m->o = o;
    m->arena.mem = &o->ctx->mem;
    m->base = o->space.grid - 1;
    ok = merge_all(m);
    if (ok && m->f && m->level < OPEN_LEVELS) {
        merge_told(m);
        o->shared = m->f;
        memcpy(o->low, o->space.low[m->level], sizeof o->low);
        memset(o->now, 0, sizeof o->now); /* no extents: the first call writes all numbers */
        o->why[0] = 0;
        m->f = NULL;
    }
    ok = ok && !o->ctx->status;
    jot_func_end(m->f);
    if (!o->shared)
        jot_vec_free(&o->ctx->mem, o->numbers);
    jot_open_drop(&m->set);
    jot_arena_free(&m->arena);
    jot_mem_free(&o->ctx->mem, m, sizeof *m);
    return ok;
}
