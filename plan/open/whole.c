/* plan/open/whole.c - the function and the plan that steps which agree become: what of them follows
 * the extents, and how.
 *
 *   requires  steps that agree (plan/open/merge.c)      keeps  the samples
 * Read before: plan/open/merge.h. After: plan/open/range.c. */
#include "plan/open/merge.h"

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
    jot_merge_number(m, v, good, &fit);
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
        jot_merge_number(m, v, good, &fit);
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

JOT_FN bool
jot_merge_function(OpenMerge *m)
{
    Text why = {NULL, m->o->why, 0, sizeof m->o->why};
    bool good[OPEN_SAMPLES];
    uint8_t level;

    memcpy(good, m->valid, sizeof good);
    if (!merge_sizes(m, good) || !merge_literals(m, good))
        return false;
    level = jot_open_level(&m->o->space, good);
    if (level > m->level)
        m->level = level;
    if (level == OPEN_LEVELS)
        jot_text_f(&why, "a size or a literal of it follows none of the forms that are known");
    return true;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Numbers of a launch: its own, then the text's arguments. */
static bool
merge_ints(OpenMerge *m, Plan *plan, const OpenStep *p, uint32_t step, PlanLaunch *launch)
{
    const PlanLaunch *from = jot_merge_launch(m, m->base, step);
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
    return jot_merge_launches(m, plan, p, step, launch);
}

static bool
merge_kernel(OpenMerge *m, Make *make, OpenStep *p, uint32_t step, PlanLaunch *launch)
{
    const PlanLaunch *from = jot_merge_launch(m, m->base, step);
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
    jot_open_text(from->kernel, p->argument, m->open.device, &text);
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
    make.dialect = jot_dialect_find(m->o->dialect ? m->o->dialect : m->o->ctx->backend->dialect);
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
        if (!jot_merge_there(plan, &plan->steps.v[i].best)) {
            why.n = 0;
            jot_text_f(&why, "the compiler refused the kernel \"%s\"", list.v[i]->what);
            m->level = OPEN_LEVELS;
        }
    jot_vec_free(&ctx->mem, list);
    return ok;
}

JOT_FN bool
jot_merge_plan(OpenMerge *m)
{
    jot_Ctx *ctx = m->o->ctx;
    Plan *plan = m->f->plan;

    plan->dialect = m->o->dialect;
    plan->open = NULL;
    plan->ints.n = plan->launches.n = 0;
    return merge_kernels(m, plan) && merge_numbers(m, plan) && jot_plan_memory(ctx, plan)
        && (plan->dialect || (jot_plan_parallel(ctx, plan) && merge_compile(m, plan)));
}
