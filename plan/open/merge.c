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
 * Read before: plan/open/open.h, plan/open/fit.c, plan/open/text.c, plan/open/sample.c.
 * After: plan/open/open.c. */
#include "plan/open/open.h"

enum { MERGE_STEPS = 1024,    /* of a plan, at most */
       OPEN_BLOCKED = 6 };    /* axes in blocks, of the launches of a kernel */

/* One step: how its numbers follow. */
typedef struct {
    uint32_t n;              /* numbers of the text */
    int *argument;           /* per number: of the merged text, or -1 */
    bool *literal;           /* ... it is one of a float */
    OpenLiteral *how;        /* per argument */
    uint32_t nargs;
    OpenFit *own;            /* per number that the launch has anyhow */
    OpenFit count[SCHED_PHASES];
    uint32_t launches;       /* of a device: their steps; blocks of open axes */
    OpenLiteral *launch;
    int nblocks;
    int64_t block[OPEN_BLOCKED];
    OpenFit whole[OPEN_BLOCKED];
} OpenStep;

typedef struct {
    Open *o;
    OpenSet set;
    OpenSteps open;
    bool like[OPEN_SAMPLES]; /* the same steps; other arguments, maybe */
    bool valid[OPEN_SAMPLES];
    int base;                /* the sample of the most extents */
    uint8_t level;           /* the plan is for extents from low[level] on */
    Arena arena;
    OpenStep *step;
    Func *f;                 /* what becomes the function, at most extents */
} OpenMerge;

/* The level from which on samples that fail are not needed; OPEN_LEVELS: they always are. */
static uint8_t
merge_level(const OpenMerge *m, const bool *good)
{
    const OpenSpace *s = &m->o->space;
    uint8_t level = 0;
    int i;

    for (i = 0; i < s->samples; i++)
        if (!good[i] && (!s->level[i] || s->level[i] > level))
            level = s->level[i] ? s->level[i] : OPEN_LEVELS;
    return level;
}

/* A number at each sample as a polynomial; samples that do not lie on it are no good. */
static void
merge_number(const OpenMerge *m, const int64_t *v, bool *good, OpenFit *fit)
{
    const OpenSpace *s = &m->o->space;
    int i;

    jot_open_fit(s, v, fit);
    for (i = 0; i < s->samples; i++)
        good[i] = good[i] && jot_open_value(s, fit, s->at[i]) == v[i];
}

/* ---- steps ---------------------------------------------------------------------------------- */

static const PlanLaunch *
merge_launch(const OpenMerge *m, int sample, uint32_t step)
{
    return &m->set.f[sample]->plan->steps.v[step].best;
}

/* ... as one times blocks. */
static void
merge_blocks(const OpenMerge *m, const int64_t *v, bool *good, OpenLiteral *how)
{
    const OpenSpace *s = &m->o->space;
    int64_t rest[OPEN_SAMPLES];
    int i;

    for (i = 0; i < s->samples; i++) {
        int64_t blocks = jot_open_blocks(s, how, s->at[i]);

        rest[i] = blocks ? v[i] / blocks : 0;
        good[i] = good[i] && rest[i] * blocks == v[i];
    }
    merge_number(m, rest, good, &how->fit);
}

/* ... as the one of these that serves more: blocks of one axis, or of two. */
static void
merge_count(const OpenMerge *m, const OpenStep *p, const int64_t *v, bool *good, OpenLiteral *how)
{
    bool was[OPEN_SAMPLES], as[OPEN_SAMPLES];
    int i, j;

    memcpy(was, good, sizeof was);
    how->dtype = JOT_I64;
    how->form = OPEN_POLY;
    merge_number(m, v, good, &how->fit);
    for (i = 0; i < p->nblocks; i++)
        for (j = i; j < p->nblocks; j++) {
            OpenLiteral blocks = {.form = OPEN_BLOCKS, .dtype = JOT_I64};

            blocks.block[0] = p->block[i];
            blocks.whole[0] = p->whole[i];
            if (j > i) {
                blocks.block[1] = p->block[j];
                blocks.whole[1] = p->whole[j];
            }
            memcpy(as, was, sizeof as);
            merge_blocks(m, v, as, &blocks);
            if (merge_level(m, as) < merge_level(m, good)) {
                memcpy(good, as, sizeof as);
                *how = blocks;
            }
        }
}

static const EmitLaunch *
merge_shapes(const OpenMerge *m, int sample, uint32_t step)
{
    return m->set.f[sample]->plan->launches.v + merge_launch(m, sample, step)->first;
}

/* Blocks of the open axes that a launch tells. */
static void
merge_blocked(OpenMerge *m, OpenStep *p, uint32_t step, uint32_t k, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const EmitLaunch *a = &merge_shapes(m, m->base, step)[k];
    int64_t v[OPEN_SAMPLES];
    int i, j;

    for (j = 0; j < 3 && a->block[j] && p->nblocks < OPEN_BLOCKED; j++) {
        for (i = 0; i < s->samples; i++) {
            const EmitLaunch *b = good[i] ? &merge_shapes(m, i, step)[k] : a;

            good[i] = good[i] && b->block[j] == a->block[j];
            v[i] = b->whole[j];
        }
        p->block[p->nblocks] = a->block[j];
        merge_number(m, v, good, &p->whole[p->nblocks++]);
    }
}

/* On a device: as many launches, of the same kinds. */
static void
merge_shaped(OpenMerge *m, OpenStep *p, uint32_t step, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const PlanLaunch *base = merge_launch(m, m->base, step);
    int64_t v[OPEN_SAMPLES];
    uint32_t k;
    int i;

    p->launches = base->launches;
    p->nblocks = 0;
    for (i = 0; i < s->samples; i++) {
        const PlanLaunch *l = good[i] ? merge_launch(m, i, step) : base;

        good[i] = good[i] && l->launches == base->launches && l->group == base->group;
    }
    for (k = 0; k < base->launches; k++) {
        const EmitLaunch *a = &merge_shapes(m, m->base, step)[k];

        merge_blocked(m, p, step, k, good);
        for (i = 0; i < s->samples; i++) {
            const EmitLaunch *b = good[i] ? &merge_shapes(m, i, step)[k] : a;

            good[i] = good[i] && b->kind == a->kind && b->group_nbytes == a->group_nbytes;
            v[i] = b->steps;
        }
        merge_count(m, p, v, good, &p->launch[k]);
    }
}

/* What is asked of a launch beside its text: as many numbers of its own, no more scratch than at
 * most. */
static void
merge_own(OpenMerge *m, OpenStep *p, uint32_t step, bool *good)
{
    const OpenSpace *s = &m->o->space;
    const PlanLaunch *base = merge_launch(m, m->base, step);
    int64_t v[OPEN_SAMPLES];
    uint32_t k;
    int i, phase;

    for (i = 0; i < s->samples; i++) {
        const PlanLaunch *l = good[i] ? merge_launch(m, i, step) : base;

        good[i] = good[i] && l->nints == base->nints && l->scratch_nbytes <= base->scratch_nbytes
               && l->kernel->kind == base->kernel->kind;
    }
    for (k = 0; k < base->nints; k++) {
        for (i = 0; i < s->samples; i++) {
            const PlanLaunch *l = good[i] ? merge_launch(m, i, step) : NULL;

            v[i] = l ? m->set.f[i]->plan->ints.v[l->ints + k].i : 0;
        }
        merge_number(m, v, good, &p->own[k]);
    }
    for (phase = 0; phase < base->phases; phase++) {
        for (i = 0; i < s->samples; i++)
            v[i] = good[i] ? merge_launch(m, i, step)->count[phase] : 0;
        merge_number(m, v, good, &p->count[phase]);
    }
    merge_shaped(m, p, step, good);
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
        merge_count(m, p, v, good, how);
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
    const PlanKernel *base = merge_launch(m, m->base, step)->kernel;
    size_t samples = (size_t)s->samples, nv = ((size_t)p->n + 1) * (samples + 1);
    int64_t *v = jot_mem_new(&m->o->ctx->mem, nv, sizeof *v);
    int64_t *row = v ? v + (size_t)p->n * samples : NULL;
    OpenLiteral how;
    uint32_t k, a;
    int i;

    if (!v)
        return jot_fail_memory(m->o->ctx, "compile_open");
    for (i = 0; i < s->samples; i++) {
        good[i] = good[i] && jot_open_alike(base, merge_launch(m, i, step)->kernel, row, p->n);
        for (k = 0; good[i] && k < p->n; k++)
            v[(size_t)k * samples + (size_t)i] = row[k];
    }
    jot_open_literals(base, p->literal);
    for (k = 0, p->nargs = 0; k < p->n && merge_level(m, good) < OPEN_LEVELS; k++) {
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
    const PlanLaunch *base = merge_launch(m, m->base, step);
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
    *level = merge_level(m, good);
    return true;
}

/* Steps that agree nowhere have another form in the next round; *again: there is one. */
static bool
merge_steps(OpenMerge *m, const uint8_t *was, bool *again)
{
    uint8_t *form = m->open.form;
    uint32_t i, n = m->set.f[m->base]->plan->steps.n;
    Text why = {NULL, m->o->why, 0, sizeof m->o->why};

    m->step = jot_arena_array(&m->arena, OpenStep, (size_t)n + 1);
    if (!m->step)
        return jot_fail_memory(m->o->ctx, "compile_open");
    for (i = 0; i < n; i++) {
        uint8_t level = OPEN_LEVELS;

        if (!merge_step(m, &m->step[i], i, &level))
            return false;
        if (level > m->level)
            m->level = level;
        if (level < OPEN_LEVELS)
            continue;
        *again |= was[i] < (m->open.device ? TEXT_CLAMPED : TEXT_LOOPS);
        form[i] += form[i] < (m->open.device ? TEXT_CLAMPED : TEXT_LOOPS) && form[i] == was[i];
        why.n = 0;
        jot_text_f(&why, "the kernel \"%s\" is another for some of them",
                   merge_launch(m, m->base, i)->kernel->what);
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

    *again = false;
    memcpy(was, m->open.form, MERGE_STEPS);
    if (!jot_open_sample(m->o, &m->open, &m->set))
        return false;
    for (i = 0; i < s->samples; i++)
        m->like[i] = jot_open_like(m->o, m->set.f[m->base], m->set.f[i]);
    m->level = merge_level(m, m->like);
    if (m->level == OPEN_LEVELS || m->set.f[m->base]->plan->steps.n > MERGE_STEPS)
        return true;
    if (!merge_steps(m, was, again))
        return false;
    if (*again)
        return true;
    for (i = 0; i < s->samples; i++)
        m->valid[i] = m->like[i] && jot_open_same(m->o, m->set.f[m->base], m->set.f[i]);
    level = merge_level(m, m->valid);
    m->level = level > m->level ? level : m->level;
    return true;
}

/* ---- the function ---------------------------------------------------------------------------- */

static bool
merge_follow(OpenMerge *m, void *at, uint8_t kind, const OpenLiteral *how)
{
    OpenNumber number = {at, kind, *how};

    return (how->form != OPEN_BLOCKS && jot_open_constant(&m->o->space, &how->fit))
        || jot_vec_add(m->o->ctx, m->o->numbers, number, "compile_open");
}

static bool
merge_fitted(OpenMerge *m, void *at, uint8_t kind, const OpenFit *fit)
{
    OpenLiteral how;

    memset(&how, 0, sizeof how);
    how.fit = *fit;
    return merge_follow(m, at, kind, &how);
}

/* A size of the function that is *at, by what it is in the samples (NULL: there is no such). */
static bool
merge_size(OpenMerge *m, size_t *at, const size_t *const *sample, bool *good)
{
    int64_t v[OPEN_SAMPLES];
    OpenFit fit;
    int i;

    for (i = 0; i < m->o->space.samples; i++)
        v[i] = sample[i] ? (int64_t)*sample[i] : 0;
    merge_number(m, v, good, &fit);
    return merge_fitted(m, at, OPEN_SIZE, &fit);
}

static FuncShape *
merge_shape_of(Func *f, uint32_t k)
{
    return k < f->ninputs ? &f->input[k].shape : &f->output[k - f->ninputs].shape;
}

static bool
merge_shape(OpenMerge *m, uint32_t k, bool *good)
{
    FuncShape *to = merge_shape_of(m->f, k);
    const size_t *nbytes[OPEN_SAMPLES];
    int64_t v[OPEN_SAMPLES];
    OpenFit fit;
    int i, r;

    for (r = 0; r < to->rank; r++) {
        for (i = 0; i < m->o->space.samples; i++)
            v[i] = m->valid[i] ? merge_shape_of(m->set.f[i], k)->ext[r] : 0;
        merge_number(m, v, good, &fit);
        if (!merge_fitted(m, (void *)(uintptr_t)&to->ext[r], OPEN_I64, &fit))
            return false;
    }
    for (i = 0; i < m->o->space.samples; i++)
        nbytes[i] = m->valid[i] ? &merge_shape_of(m->set.f[i], k)->nbytes : NULL;
    return merge_size(m, &to->nbytes, nbytes, good);
}

/* Shapes, results, and variables: none is larger than at most. */
static bool
merge_sizes(OpenMerge *m, bool *good)
{
    const size_t *nbytes[OPEN_SAMPLES];
    Func *f = m->f;
    uint32_t k;
    int i;

    for (k = 0; k < f->ninputs + f->noutputs; k++)
        if (!merge_shape(m, k, good))
            return false;
    for (k = 0; k < f->roots.n; k++) {
        for (i = 0; i < m->o->space.samples; i++)
            nbytes[i] = m->valid[i] ? &m->set.f[i]->roots.v[k].nbytes : NULL;
        if (!merge_size(m, &f->roots.v[k].nbytes, nbytes, good))
            return false;
    }
    for (k = 0; k < f->plan->vars.n; k++) {
        for (i = 0; i < m->o->space.samples; i++) {
            nbytes[i] = m->valid[i] ? &m->set.f[i]->plan->vars.v[k].nbytes : NULL;
            good[i] = good[i] && *nbytes[i] <= f->plan->vars.v[k].nbytes;
        }
        if (f->plan->vars.v[k].kind != VAR_TEMP
            && !merge_size(m, &f->plan->vars.v[k].nbytes, nbytes, good))
            return false;
    }
    return true;
}

static bool
merge_literals(OpenMerge *m, bool *good)
{
    const OpenSpace *s = &m->o->space;
    Func *f = m->f;
    jot_Scalar v[OPEN_SAMPLES];
    OpenLiteral how;
    uint32_t k;
    int i;

    for (k = 0; k < f->plan->scalars.n; k++) {
        jot_DType dtype = (jot_DType)f->plan->scalars.v[k].dtype;

        if (f->random[k])
            continue;
        for (i = 0; i < s->samples; i++)
            v[i] = m->valid[i] ? m->set.f[i]->bind.scalar[k] : f->bind.scalar[k];
        for (i = 0; i < s->samples && v[i].u == f->bind.scalar[k].u; i++)
            ;
        if (i == s->samples)
            continue;
        if (!jot_open_literal(s, v, good, dtype, &how))
            good[m->base] = false;
        else if (!merge_follow(m, &f->bind.scalar[k], OPEN_LITERAL, &how))
            return false;
    }
    return true;
}

static bool
merge_function(OpenMerge *m)
{
    Text why = {NULL, m->o->why, 0, sizeof m->o->why};
    bool good[OPEN_SAMPLES];
    uint8_t level;

    memcpy(good, m->valid, sizeof good);
    if (!merge_sizes(m, good) || !merge_literals(m, good))
        return false;
    level = merge_level(m, good);
    if (level > m->level)
        m->level = level;
    if (level == OPEN_LEVELS)
        jot_text_f(&why, "a size or a literal of it follows none of the forms that are known");
    return true;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* A device's launches; numbers of the text are scalars there, and have dtypes. */
static bool
merge_device(OpenMerge *m, Plan *plan, const OpenStep *p, uint32_t step, PlanLaunch *launch)
{
    const PlanLaunch *from = merge_launch(m, m->base, step);
    uint32_t k;

    launch->first = plan->launches.n;
    launch->launches = from->launches;
    launch->group = from->group;
    launch->kernel->group_nbytes = from->kernel->group_nbytes;
    for (k = 0; k < from->launches; k++)
        if (!jot_vec_add(m->o->ctx, plan->launches, merge_shapes(m, m->base, step)[k],
                         "compile_open"))
            return false;
    for (k = 0; k < launch->nints; k++) {
        jot_DType dtype = k < from->nints ? JOT_I64 : p->how[k - from->nints].dtype;

        if (!jot_vec_add(m->o->ctx, plan->int_dtypes, (uint8_t)dtype, "compile_open"))
            return false;
    }
    return true;
}

/* Numbers of a launch: its own, then the text's arguments. */
static bool
merge_ints(OpenMerge *m, Plan *plan, const OpenStep *p, uint32_t step, PlanLaunch *launch)
{
    const PlanLaunch *from = merge_launch(m, m->base, step);
    const Plan *texts = m->set.f[m->base]->plan;
    jot_Scalar v;
    uint32_t k;

    launch->ints = plan->ints.n;
    launch->nints = from->nints + p->nargs;
    for (k = 0; k < launch->nints; k++) {
        v = k < from->nints ? texts->ints.v[from->ints + k]
          : jot_open_literal_at(&m->o->space, &p->how[k - from->nints],
                                m->o->space.at[m->base]);
        if (!jot_vec_add(m->o->ctx, plan->ints, v, "compile_open"))
            return false;
    }
    return m->o->ctx->backend->device ? merge_device(m, plan, p, step, launch) : true;
}

static bool
merge_kernel(OpenMerge *m, Make *make, OpenStep *p, uint32_t step, PlanLaunch *launch)
{
    const PlanLaunch *from = merge_launch(m, m->base, step);
    Text text = {&m->o->ctx->mem, NULL, 0, 0};
    EmitInfo info;
    uint32_t k;

    memset(&info, 0, sizeof info);
    info.phases = from->phases;
    memcpy(info.steps, from->count, sizeof info.steps);
    info.scratch_nbytes = from->scratch_nbytes;
    info.vectors = from->kernel->kind == KIND_VECTOR;
    for (k = 0; k < p->n; k++)
        p->argument[k] += p->argument[k] >= 0 ? (int)from->nints : 0;
    jot_open_text(from->kernel, p->argument, m->o->ctx->backend->device != NULL, &text);
    if (!m->o->ctx->mem.failed)
        jot_plan_step_launch(make, launch, &text, from->kernel->what, false, TIER_BEST, &info);
    jot_text_free(&text);
    return launch->kernel || jot_fail_memory(m->o->ctx, "compile_open");
}

/* Steps get their merged kernels; texts of the samples are theirs until the end. */
static bool
merge_kernels(OpenMerge *m, Plan *plan)
{
    Make make;
    PlanLaunch launch[1];
    uint32_t i;
    bool ok = true;

    memset(&make, 0, sizeof make);
    make.ctx = m->o->ctx;
    make.plan = plan;
    make.dialect = jot_dialect_find(m->o->ctx->backend->dialect);
    make.dump.mem = &m->o->ctx->mem;
    for (i = 0; ok && i < plan->steps.n; i++) {
        memset(launch, 0, sizeof launch);
        ok = merge_kernel(m, &make, &m->step[i], i, launch)
          && merge_ints(m, plan, &m->step[i], i, launch);
        if (launch->kernel) {
            jot_plan_kernel_unref(m->o->ctx, plan->steps.v[i].best.kernel);
            plan->steps.v[i].best = *launch;
        }
    }
    jot_plan_units_free(&make);
    jot_vec_free(&m->o->ctx->mem, make.fresh);
    return ok;
}

static bool
merge_numbers(OpenMerge *m, Plan *plan)
{
    uint32_t i, k, own;
    int phase;

    for (i = 0; i < plan->steps.n; i++) {
        PlanLaunch *l = &plan->steps.v[i].best;
        const OpenStep *p = &m->step[i];

        own = l->nints - p->nargs;
        for (k = 0; k < l->nints; k++) {
            jot_Scalar *at = &plan->ints.v[l->ints + k];

            if (k < own ? !merge_fitted(m, &at->i, OPEN_I64, &p->own[k])
                        : !merge_follow(m, at, OPEN_LITERAL, &p->how[k - own]))
                return false;
        }
        for (phase = 0; phase < l->phases; phase++)
            if (!merge_fitted(m, &l->count[phase], OPEN_I64, &p->count[phase]))
                return false;
        for (k = 0; k < l->launches; k++)
            if (!merge_follow(m, &plan->launches.v[l->first + k].steps, OPEN_LITERAL,
                              &p->launch[k]))
                return false;
    }
    return true;
}

/* On a device with work-groups as large as its text says. */
static bool
merge_there(const Plan *plan, const PlanLaunch *l)
{
    uint32_t k;

    if (!l->kernel->device)
        return l->kernel->fn != NULL;
    for (k = 0; k < l->launches; k++)
        if (plan->launches.v[l->first + k].kind == LAUNCH_TEAMS && l->kernel->items
            && l->kernel->items < l->group)
            return false;
    return true;
}

static bool
merge_compile(OpenMerge *m, Plan *plan)
{
    jot_Ctx *ctx = m->o->ctx;
    PlanKernels list = {NULL, 0, 0};
    Text why = {NULL, m->o->why, 0, sizeof m->o->why};
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < plan->steps.n; i++)
        ok = jot_vec_add(ctx, list, plan->steps.v[i].best.kernel, "compile_open");
    ok = ok && (jot_plan_compile_now(ctx, list.v, list.n)
                || jot_fail_memory(ctx, "compile_open"));
    for (i = 0; ok && i < list.n; i++)
        if (!merge_there(plan, &plan->steps.v[i].best)) {
            why.n = 0;
            jot_text_f(&why, "the compiler refused the kernel \"%s\"", list.v[i]->what);
            m->level = OPEN_LEVELS;
        }
    jot_vec_free(&ctx->mem, list);
    return ok;
}

static bool
merge_plan(OpenMerge *m)
{
    jot_Ctx *ctx = m->o->ctx;
    Plan *plan = m->f->plan;

    plan->dialect = NULL;
    plan->open = NULL;
    plan->ints.n = plan->launches.n = 0;
    return merge_kernels(m, plan) && merge_numbers(m, plan) && jot_plan_memory(ctx, plan)
        && jot_plan_parallel(ctx, plan) && merge_compile(m, plan);
}

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
merge_all(OpenMerge *m)
{
    Open *o = m->o;
    uint8_t *was = jot_arena_array(&m->arena, uint8_t, MERGE_STEPS);
    bool again = true;

    m->open.form = jot_arena_array(&m->arena, uint8_t, MERGE_STEPS);
    m->open.axes = jot_arena_array(&m->arena, uint64_t, MERGE_STEPS);
    m->open.most = jot_arena_array(&m->arena, OpenKernel, MERGE_STEPS);
    m->open.few = jot_arena_array(&m->arena, OpenKernel, MERGE_STEPS);
    m->open.arena = &m->arena;
    m->open.n = MERGE_STEPS;
    m->open.device = o->ctx->backend->device != NULL;
    m->open.learn = OPEN_OTHER;
    if (!was || !m->open.form || !m->open.axes || !m->open.most
        || !m->open.few)
        return jot_fail_memory(o->ctx, "compile_open");
    while (again) {
        jot_open_drop(&m->set);
        if (!merge_round(m, was, &again))
            return false;
        m->open.learn = OPEN_KNOWN;
    }
    if (m->level == OPEN_LEVELS)
        return true;
    m->f = jot_open_text_of(o, o->space.at[m->base], &m->open, true);
    return m->f && merge_function(m) && (m->level == OPEN_LEVELS || merge_plan(m));
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
