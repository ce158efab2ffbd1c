/* plan/parallel.c - steps that run side by side, each on one thread, where none of them alone can
 * keep several busy.
 *
 *     step     0 gate i    1 gate f    2 gate o    3 gate g    4 cell
 *     needs    x h         x h         x h         x h         0 1 2 3
 *     run      [ ------------- beside ------------ ]           then 4
 *
 * A run of consecutive steps goes together when each is too short, or too narrow, to be shared by
 * itself, none reads what another writes, their temporaries lie apart, and all of them together
 * save more time than waking threads costs. What a step computes does not depend on who runs it
 * when.
 *
 * User code is left out: what it may share with itself is not known.
 *
 *   requires  steps in their final order, temporaries placed
 *   keeps     everything      breaks  nothing: fills PlanStep.concurrent
 *
 * Read before: plan/order.c, plan/memory.c. After: plan/run.c. */
#include "plan/parts.h"
#include "target/thresholds.h"

enum { PARALLEL_MOST = 32 };  /* steps of a run */

typedef struct {
    const Plan *plan;
    uint32_t *writer;       /* per variable: 1 + the step that writes it, or the last part of it */
    double handoff;
} ParallelSteps;

/* Too short to be shared, or with nothing in it to share. */
static bool
parallel_fits(const ParallelSteps *b, const PlanStep *step)
{
    int64_t most = 1;
    int phase;

    for (phase = 0; phase < step->best.phases; phase++)
        if (step->best.count[phase] > most)
            most = step->best.count[phase];
    return !step->code && !step->copy && step->narg > 1
        && (most < 2 || step->seconds < THREAD_HANDOFFS * b->handoff);
}

static bool
parallel_overlap(const PlanVar *a, const PlanVar *b)
{
    return a->kind == VAR_TEMP && b->kind == VAR_TEMP && a->offset < b->offset + b->nbytes
        && b->offset < a->offset + a->nbytes;
}

/* Steps a and b of a run that begins at `from`: neither waits for the other, nor takes its memory.
 */
static bool
parallel_apart(const ParallelSteps *s, uint32_t from, uint32_t a, uint32_t b)
{
    const Plan *p = s->plan;
    const PlanStep *x = &p->steps.v[a], *y = &p->steps.v[b];
    uint32_t i, k;

    for (i = 0; i < x->narg; i++)
        for (k = 0; k < y->narg; k++) {
            uint32_t u = p->args.v[x->arg + i], v = p->args.v[y->arg + k];
            bool written = p->vars.v[v].kind != VAR_LEAF
                        && (!s->writer[v] || s->writer[v] > from);

            if (u == v ? written : parallel_overlap(&p->vars.v[u], &p->vars.v[v]))
                return false;
            if (p->vars.v[u].over == v + 1 || p->vars.v[v].over == u + 1)
                return false;
        }
    return true;
}

/* How many steps from `from` on can run together. */
static uint32_t
parallel_count(const ParallelSteps *s, uint32_t from)
{
    const Plan *p = s->plan;
    uint32_t n = 0, i;

    for (; n < PARALLEL_MOST && from + n < p->steps.n; n++) {
        if (!parallel_fits(s, &p->steps.v[from + n]))
            break;
        for (i = 0; i < n && parallel_apart(s, from, from + i, from + n); i++)
            ;
        if (i < n)
            break;
    }
    return n;
}

/* All but the longest of them are saved, at best. */
static bool
parallel_pays(const ParallelSteps *s, uint32_t from, uint32_t n)
{
    double sum = 0, most = 0;
    uint32_t i;

    for (i = from; i < from + n; i++) {
        double one = s->plan->steps.v[i].seconds;

        sum += one;
        most = one > most ? one : most;
    }
    most = most > sum / 2 ? most : sum / 2;
    return sum - most > THREAD_HANDOFFS * s->handoff;
}

JOT_FN bool
jot_plan_parallel(jot_Ctx *ctx, Plan *plan)
{
    Arena arena = {&ctx->mem, NULL};
    ParallelSteps s = {plan, NULL, ctx->target.handoff};
    PlanTouches t;
    uint32_t i, k, n;
    bool ok;

    if (!ctx->backend->parallel)
        return true;
    s.writer = jot_arena_array(&arena, uint32_t, plan->vars.n);
    ok = s.writer && jot_plan_touches(&arena, plan, &t);
    for (i = 0; ok && i < plan->vars.n; i++)
        for (k = t.from[i]; k < t.from[i + 1] && jot_plan_writes(&t, i, k); k++)
            s.writer[i] = t.step[k] + 1;
    for (i = 0; ok && i < plan->steps.n; i += n) {
        n = parallel_count(&s, i);
        if (n > 1 && parallel_pays(&s, i, n))
            plan->steps.v[i].concurrent = n;
        else
            n = 1;
    }
    jot_arena_free(&arena);
    return ok || jot_fail_memory(ctx, "plan");
}
