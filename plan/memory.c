/* plan/memory.c - where temporaries lie: offsets in one block, reused over time.
 *
 *     step     0    1    2    3            A lives in steps 0..1, B in 1..2, C in 2..3
 *     offset 0 [AAAAAAA] [CCCCCCC]         C takes A's place
 *           64      [BBBBBBB]
 *
 * Each variable goes into the smallest gap that holds it between those placed already that live at
 * a time with it (best fit). Placed in order of their first steps and, where that is well above the
 * bound, again from the largest to the smallest: the smaller block of the two is taken. All offsets
 * are multiples of 64 bytes. The kernels' scratch lies behind them. No placing needs less than the
 * bound: the most bytes alive in one step.
 *
 * Read before: plan/order.c. After: plan/run.c. */
#include "plan/parts.h"
#include "target/thresholds.h"

enum { MEMORY_ALIGN = 64, MEMORY_BY_SIZE = 8192, MEMORY_APART = 1024 };

static size_t
memory_round(size_t nbytes)
{
    return (nbytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* ---- the bound ----------------------------------------------------------------------------- */

enum { MEMORY_BEGUN = 1, MEMORY_ENDED = 2, MEMORY_PASSED = 4 }; /* to a result in its place */

/* Bytes of those that a step is the first to have. */
static size_t
memory_begins(const Plan *plan, uint32_t at, uint8_t *seen)
{
    const PlanStep *step = &plan->steps.v[at];
    size_t sum = 0;
    uint32_t k;

    for (k = 0; k < step->narg; k++) {
        uint32_t var = plan->args.v[step->arg + k];
        const PlanVar *v = &plan->vars.v[var];
        bool holds = jot_donate_holds(plan, var);

        if (holds)
            seen[v->over - 1] |= MEMORY_PASSED;
        if (v->kind == VAR_TEMP && v->first == at && !(seen[var] & MEMORY_BEGUN) && !holds)
            sum += memory_round(v->nbytes);
        seen[var] |= MEMORY_BEGUN;
    }
    return sum;
}

/* ... and of those that end with it and leave their place. */
static size_t
memory_ends(const Plan *plan, uint32_t at, uint8_t *seen)
{
    const PlanStep *step = &plan->steps.v[at];
    size_t sum = 0;
    uint32_t k;

    for (k = 0; k < step->narg; k++) {
        uint32_t var = plan->args.v[step->arg + k];
        const PlanVar *v = &plan->vars.v[var];

        if (v->kind != VAR_TEMP || v->last != at || seen[var] & MEMORY_ENDED)
            continue;
        seen[var] |= MEMORY_ENDED;
        if (!(seen[var] & MEMORY_PASSED))
            sum += memory_round(v->nbytes);
    }
    return sum;
}

JOT_FN size_t
jot_plan_bound(const Plan *plan, uint8_t *seen)
{
    size_t most = 0, now = 0;
    uint32_t i;

    memset(seen, 0, plan->vars.n);
    for (i = 0; i < plan->steps.n; i++) {
        now += memory_begins(plan, i, seen);
        most = most < now ? now : most;
        now -= memory_ends(plan, i, seen);
    }
    return most;
}

/* ---- placing ------------------------------------------------------------------------------- */

/* What placing looks at again and again, in ascending order of offset. */
typedef struct { uint32_t first, last; size_t offset, end; } MemoryPlaced;

/* Those of the n placed that live at a time with the variable, in their order; without a branch,
 * for it would be guessed wrong as often as right. */
static uint32_t
memory_coexisting(const MemoryPlaced *placed, uint32_t n, const MemoryPlaced *var,
                  MemoryPlaced *coexisting)
{
    uint32_t i, count = 0;

    for (i = 0; i < n; i++) {
        coexisting[count] = placed[i];
        count += (uint32_t)((placed[i].last >= var->first) & (var->last >= placed[i].first));
    }
    return count;
}

/* The place among the n that are placed of a variable, where it fits best; sets its offset. */
static uint32_t
memory_fit(const MemoryPlaced *placed, uint32_t n, MemoryPlaced *var, size_t need,
           MemoryPlaced *coexisting)
{
    size_t end = 0, best = (size_t)-1;
    uint32_t count = memory_coexisting(placed, n, var, coexisting), i, at;

    var->offset = (size_t)-1;
    for (i = 0; i < count; i++) {
        const MemoryPlaced *v = &coexisting[i];

        if (v->offset >= end + need && v->offset - end < best) {
            best = v->offset - end;
            var->offset = end;
        }
        if (end < v->end)
            end = v->end;
    }
    if (var->offset == (size_t)-1)
        var->offset = end;
    var->end = var->offset + need;
    for (at = n; at && placed[at - 1].offset > var->offset; at--)
        ;
    return at;
}

/* Places order[0..n), with room for twice as many in placed; the bytes that this takes, or, as soon
 * as it is seen to take more than `most`, more. `forget`: those that ended are no longer looked at,
 * which needs an order of first steps. */
static size_t
memory_place(Plan *plan, const Rank *order, uint32_t n, MemoryPlaced *placed, bool forget,
             size_t most)
{
    size_t end = 0;
    uint32_t count = 0, i, j;

    for (i = 0; i < n && end <= most; i++) {
        PlanVar *v = &plan->vars.v[order[i].b];
        MemoryPlaced var = {v->first, v->last, 0, 0};
        uint32_t kept = 0, at;

        if (forget && i && var.first != plan->vars.v[order[i - 1].b].first) {
            for (j = 0; j < count; j++)
                if (placed[j].last >= var.first)
                    placed[kept++] = placed[j];
            count = kept;
        }
        at = memory_fit(placed, count, &var, memory_round(v->nbytes), placed + n);
        memmove(placed + at + 1, placed + at, (count++ - at) * sizeof *placed);
        placed[at] = var;
        v->offset = var.offset;
        end = end < var.end ? var.end : end;
    }
    return end;
}

/* ---- orders -------------------------------------------------------------------------------- */

/* By first steps, or the largest first. */
static void
memory_sort(const Plan *plan, Rank *order, Rank *tmp, uint32_t n, bool by_size)
{
    uint32_t i;

    for (i = 0; i < n; i++) {
        const PlanVar *v = &plan->vars.v[order[i].b];

        order[i].key = by_size ? ~(uint64_t)v->nbytes : 0;
        order[i].tie = v->first;
    }
    jot_rank_sort(order, tmp, n);
}

/* Each worker's scratch in pages of its own, nearly: what one writes must not be brought into
 * another's cache by who reads ahead there. A 3 x 3 pool with a row's 113 elements in scratch took
 * 1.52 ms on two threads where these lay side by side, 1.83 on one; apart 0.97. */
static size_t
memory_scratch(jot_Ctx *ctx, Plan *plan)
{
    bool alone = plan->dialect || ctx->backend->workers <= 1; /* an exported file has one worker */
    size_t most = 0, workers = alone ? 1 : (size_t)ctx->backend->workers;
    uint32_t i;

    for (i = 0; i < plan->steps.n; i++) {
        const PlanStep *s = &plan->steps.v[i];

        most = s->best.scratch_nbytes > most ? s->best.scratch_nbytes : most;
        most = s->quick.scratch_nbytes > most ? s->quick.scratch_nbytes : most;
    }
    plan->scratch_nbytes = memory_round(most);
    if (most && !alone) /* a worker's lines are not brought beside another's */
        plan->scratch_nbytes = (most + MEMORY_APART + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
    return plan->scratch_nbytes * workers;
}

/* A variable and those that one after the other take its place are one to place: it lives as long
 * as the last of them (`joined`), until all have its offset. Later ones follow earlier ones in
 * steps, not in number. */
static void
memory_chains(Plan *plan, bool joined)
{
    uint32_t i, k, of;

    for (i = 0; i < plan->vars.n; i++) {
        PlanVar *v = &plan->vars.v[i];

        if (v->kind != VAR_TEMP || !v->over)
            continue;
        for (of = v->over - 1, k = 0; plan->vars.v[of].over && k < plan->vars.n; k++)
            of = plan->vars.v[of].over - 1;
        if (!joined)
            v->offset = plan->vars.v[of].offset;
        else if (plan->vars.v[of].last < v->last)
            plan->vars.v[of].last = v->last;
    }
}

/* The smaller block of the two: by first steps; by size, where what that could save is worth it: of
 * what stays in a cache a tenth, but not in an exported file. */
static size_t
memory_best(Plan *plan, Rank *order, Rank *tmp, uint32_t n, MemoryPlaced *placed)
{
    size_t end, other, worth;

    memory_sort(plan, order, tmp, n, false);
    end = memory_place(plan, order, n, placed, true, (size_t)-1);
    worth = plan->bound / (end <= PLAN_SMALL && !plan->dialect ? MEMORY_SMALL : MEMORY_WORTH);
    if (end <= plan->bound + worth || n > MEMORY_BY_SIZE)
        return end;
    memory_sort(plan, order, tmp, n, true);
    other = memory_place(plan, order, n, placed, false, end);
    if (other <= end)
        return other;
    memory_sort(plan, order, tmp, n, false);
    return memory_place(plan, order, n, placed, true, (size_t)-1);
}

JOT_FN bool
jot_plan_memory(jot_Ctx *ctx, Plan *plan)
{
    Arena arena = {&ctx->mem, NULL};
    Rank *order = jot_arena_array(&arena, Rank, 2 * (size_t)plan->vars.n + 1);
    MemoryPlaced *placed = jot_arena_array(&arena, MemoryPlaced, 2 * (size_t)plan->vars.n + 1);
    uint8_t *seen = jot_arena_array(&arena, uint8_t, plan->vars.n);
    bool ok = order && placed && seen;
    uint32_t n = 0, i;

    for (i = 0; ok && i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_TEMP && !plan->vars.v[i].over)
            order[n++].b = i;
    if (ok) {
        plan->bound = jot_plan_bound(plan, seen);
        memory_chains(plan, true);
        plan->scratch = memory_best(plan, order, order + plan->vars.n, n, placed);
        memory_chains(plan, false);
        plan->block_nbytes = plan->scratch + memory_scratch(ctx, plan);
    }
    jot_arena_free(&arena);
    return ok || jot_fail_memory(ctx, "plan");
}
