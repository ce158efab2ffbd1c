/* backends/plan_memory.c - where temporaries lie: offsets in one block, reused over time.
 *
 *     step     0    1    2    3            A lives in steps 0..1, B in 1..2, C in 2..3
 *     offset 0 [AAAAAAA] [CCCCCCC]         C takes A's place
 *           64      [BBBBBBB]
 *
 * Variables are placed in order of their first step, each into the smallest gap between those alive
 * at that time that holds it (best fit). All offsets are multiples of 64 bytes. The kernels'
 * scratch lies behind them.
 *
 * Read before: backends/plan_parts.h. After: backends/plan_run.c. */
#include "backends/plan_parts.h"

enum { MEMORY_ALIGN = 64 };

static size_t
memory_round(size_t nbytes)
{
    return (nbytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* alive: variables in ascending order of offset. Leaves out those whose last step is over. */
static uint32_t
memory_expire(const Plan *plan, uint32_t *alive, uint32_t n, uint32_t step)
{
    uint32_t i, kept = 0;

    for (i = 0; i < n; i++)
        if (plan->vars.v[alive[i]].last >= step)
            alive[kept++] = alive[i];
    return kept;
}

/* The place in `alive` before which var fits best; sets its offset. */
static uint32_t
memory_fit(Plan *plan, const uint32_t *alive, uint32_t n, PlanVar *var)
{
    size_t need = memory_round(var->nbytes), end = 0, best = (size_t)-1;
    uint32_t at = n, i;

    for (i = 0; i < n; i++) {
        const PlanVar *v = &plan->vars.v[alive[i]];
        size_t gap = v->offset - end;

        if (gap >= need && gap < best) {
            best = gap;
            at = i;
            var->offset = end;
        }
        end = v->offset + memory_round(v->nbytes);
    }
    if (at == n)
        var->offset = end;
    return at;
}

/* Temporaries in order of their first step: a counting sort over steps. */
static uint32_t
memory_sort(const Plan *plan, uint32_t *order, uint32_t *count)
{
    uint32_t i, n = 0, sum = 0;

    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_TEMP)
            count[plan->vars.v[i].first]++;
    for (i = 0; i < plan->steps.n; i++) {
        uint32_t here = count[i];

        count[i] = sum;
        sum += here;
    }
    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_TEMP) {
            order[count[plan->vars.v[i].first]++] = i;
            n++;
        }
    return n;
}

JOT_FN bool
jot_plan_memory(jot_Ctx *ctx, Plan *plan)
{
    uint32_t nvars = plan->vars.n, words = 2 * nvars + plan->steps.n + 1, alive = 0, i, j;
    uint32_t *tmp = jot_mem_new(&ctx->mem, words, sizeof *tmp), *order, n;
    size_t scratch = 0, end = 0;
    size_t workers = ctx->backend->workers > 1 ? (size_t)ctx->backend->workers : 1;

    if (!tmp)
        return jot_fail_memory(ctx, "plan");
    order = tmp + nvars;
    n = memory_sort(plan, order, tmp + 2 * nvars);
    for (i = 0; i < n; i++) {
        PlanVar *var = &plan->vars.v[order[i]];
        uint32_t at;

        alive = memory_expire(plan, tmp, alive, var->first);
        at = memory_fit(plan, tmp, alive, var);
        for (j = alive++; j > at; j--)
            tmp[j] = tmp[j - 1];
        tmp[at] = order[i];
        if (end < var->offset + memory_round(var->nbytes))
            end = var->offset + memory_round(var->nbytes);
    }
    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *s = &plan->steps.v[i];

        scratch = s->best.scratch_nbytes > scratch ? s->best.scratch_nbytes : scratch;
        scratch = s->quick.scratch_nbytes > scratch ? s->quick.scratch_nbytes : scratch;
    }
    plan->scratch = end;
    plan->scratch_nbytes = memory_round(scratch);
    plan->block_nbytes = end + plan->scratch_nbytes * workers;
    jot_mem_free(&ctx->mem, tmp, words * sizeof *tmp);
    return true;
}
