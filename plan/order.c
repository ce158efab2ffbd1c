/* plan/order.c - steps in an order in which few temporaries are alive at a time.
 *
 *     a backward pass built    dy3 dy2 dy1 | dw1 w1' | dw2 w2' | dw3 w3'    dy waits for its dw
 *     as run                   dw3 w3' dy2 | dw2 w2' dy1 | dw1 w1'          gone once consumed
 *
 * A step whose temporaries are all read by one and the same step is run right before it: the two,
 * and what joins them likewise, are a unit, an in-tree whose results leave by its last step. Of the
 * units that can run, one that leaves less memory in use than before goes first, the one that frees
 * most; else the earliest as built, or, in a second attempt, the one that adds least. Of the three
 * orders the one that needs least is taken, and that as built if the others are no better. One that
 * stays in a cache anyway (PLAN_SMALL), and in which all that may is updated in place, is taken as
 * it is, but for an exported file.
 *
 *   requires  steps, variables' kinds and sizes
 *   keeps     what each step reads and writes      breaks  numbers of steps (first, last: set anew)
 *
 * Who writes a variable: the first step that touches it, or as many as write parts of it, and
 * before and among these steps that touch nothing else (borders: each goes right before the next
 * writer).
 *
 * Read before: plan/parts.h. After: plan/memory.c. */
#include "plan/parts.h"

enum { ORDER_MOST = 4096 };   /* steps: among those that can run the best is searched for */

typedef struct {
    const Plan *plan;
    uint32_t *unit;           /* per step: the last step of its unit */
    uint32_t *first, *next;   /* per unit: its first step; per step: the next of its unit */
    PlanTouches t;
    uint32_t *waits;          /* per unit: touches of others that must come before */
    uint32_t *uses;           /* per variable: units that will touch it */
    uint32_t *seen;           /* per variable: 1 + the unit that met it last */
    uint32_t *met; /* per variable: 1 + the step that met it last: one may have it twice */
    uint32_t *over;           /* per LEAF: 1 + the step that writes a new value over it; 0: none */
    uint8_t *done, *written;  /* per unit; per variable */
    uint8_t *marks;           /* of jot_plan_bound */
    uint8_t *stale;           /* per unit: delta is to be computed */
    int64_t *delta;           /* per unit: bytes more in use after it than before */
    uint32_t *left;           /* units that did not run yet, as built */
    uint32_t *order;          /* the result: steps */
} StepOrder;

static bool
order_counts(const Plan *plan, uint32_t var)
{
    return plan->vars.v[var].kind != VAR_LEAF;
}

static size_t
order_nbytes(const Plan *plan, uint32_t var)
{
    return plan->vars.v[var].kind == VAR_TEMP ? plan->vars.v[var].nbytes : 0;
}

/* ---- who touches what ---------------------------------------------------------------------- */

/* Is argument k of step s the first of its variable? */
static bool
order_meets(StepOrder *o, uint32_t s, uint32_t k)
{
    uint32_t *met = &o->met[o->plan->args.v[o->plan->steps.v[s].arg + k]];
    bool first = *met != s + 1;

    *met = s + 1;
    return first;
}

JOT_FN bool
jot_plan_touches(Arena *arena, const Plan *p, PlanTouches *t)
{
    uint32_t *met = jot_arena_array(arena, uint32_t, p->vars.n), i, k, pass;

    t->plan = p;
    t->from = jot_arena_array(arena, uint32_t, (size_t)p->vars.n + 2);
    t->step = jot_arena_array(arena, uint32_t, p->args.n);
    if (!met || !t->from || !t->step)
        return false;
    for (pass = 0; pass < 2; pass++) { /* how many there are; which: from[v + 1] runs to the end */
        memset(met, 0, p->vars.n * sizeof *met);
        for (i = 0; i < p->steps.n; i++)
            for (k = 0; k < p->steps.v[i].narg; k++) {
                uint32_t var = p->args.v[p->steps.v[i].arg + k];

                if (met[var] == i + 1)
                    continue;
                met[var] = i + 1;
                if (pass)
                    t->step[t->from[var + 1]++] = i;
                else
                    t->from[var + 2]++;
            }
        for (i = 2; !pass && i < p->vars.n + 2; i++)
            t->from[i] += t->from[i - 1];
    }
    return true;
}

JOT_FN bool
jot_plan_writes(const PlanTouches *t, uint32_t var, uint32_t k)
{
    uint32_t writers = t->plan->vars.v[var].writers, i;

    for (i = t->from[var]; i < k; i++)
        if (t->plan->steps.v[t->step[i]].narg > 1 && writers-- <= 1)
            return false;
    return true;
}

/* The one step that reads what step s writes to temporaries, as all that it writes; s: there is
 * none such. */
static uint32_t
order_reader(const StepOrder *o, uint32_t s)
{
    const PlanStep *step = &o->plan->steps.v[s];
    uint32_t k, t, reader = s;

    for (k = 0; k < step->narg; k++) {
        uint32_t var = o->plan->args.v[step->arg + k];

        if (!order_counts(o->plan, var))
            continue;
        for (t = o->t.from[var]; o->t.step[t] != s; t++)
            ;
        if (!jot_plan_writes(&o->t, var, t))
            continue;
        if (step->narg == 1 && t + 1 < o->t.from[var + 1] && jot_plan_writes(&o->t, var, t + 1))
            return o->t.step[t + 1]; /* a border goes right before what it surrounds */
        if (o->plan->vars.v[var].kind != VAR_TEMP)
            return s;
        for (; t < o->t.from[var + 1]; t++) {
            if (o->t.step[t] != s && reader != s && o->t.step[t] != reader)
                return s;
            if (o->t.step[t] != s)
                reader = o->t.step[t];
        }
    }
    return reader;
}

/* What a unit waits for: of each variable that it touches, the writers before, if in other
 * units. */
static void
order_edges(StepOrder *o, uint32_t var, uint32_t t, int change)
{
    uint32_t i;

    for (i = t + 1; i < o->t.from[var + 1]; i++)
        if (o->unit[o->t.step[i]] != o->unit[o->t.step[t]])
            o->waits[o->unit[o->t.step[i]]] += (uint32_t)change;
}

/* What is written over waits for all others that read it. */
static void
order_over(StepOrder *o, uint32_t var, uint32_t step, int change)
{
    if (o->over[var] && o->unit[step] != o->unit[o->over[var] - 1])
        o->waits[o->unit[o->over[var] - 1]] += (uint32_t)change;
}

static void
order_find_over(StepOrder *o)
{
    const Plan *p = o->plan;
    uint32_t i;

    memset(o->over, 0, p->vars.n * sizeof *o->over);
    for (i = 0; i < p->vars.n; i++)
        if (p->vars.v[i].kind == VAR_ASKED && p->vars.v[i].over)
            o->over[p->vars.v[i].over - 1] = 1 + o->t.step[o->t.from[i]];
}

static void
order_find_units(StepOrder *o)
{
    uint32_t i;

    for (i = o->plan->steps.n; i-- > 0;) {
        uint32_t reader = order_reader(o, i);

        o->unit[i] = reader == i ? i : o->unit[reader];
        o->next[i] = reader == i ? UINT32_MAX : o->first[o->unit[i]];
        o->first[o->unit[i]] = i;
    }
}

/* Who waits for whom, and how many units touch each variable. */
static void
order_edges_all(StepOrder *o)
{
    const Plan *p = o->plan;
    uint32_t i, t;

    for (i = 0; i < p->vars.n; i++) {
        o->uses[i] = 0;
        for (t = o->t.from[i]; t < o->t.from[i + 1]; t++) {
            uint32_t *met = &o->order[o->unit[o->t.step[t]]]; /* not yet in use as an order */

            o->uses[i] += *met != i + 1;
            *met = i + 1;
            if (order_counts(p, i) && jot_plan_writes(&o->t, i, t))
                order_edges(o, i, t, 1);
            order_over(o, i, o->t.step[t], 1);
        }
    }
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* Bytes more in use after unit u than before it. */
static int64_t
order_delta(StepOrder *o, uint32_t u)
{
    const Plan *p = o->plan;
    int64_t delta = 0;
    uint32_t s, k;

    for (s = o->first[u]; s != UINT32_MAX; s = o->next[s])
        for (k = 0; k < p->steps.v[s].narg; k++) {
            uint32_t var = p->args.v[p->steps.v[s].arg + k];
            size_t nbytes = order_nbytes(p, var);

            if (!nbytes || o->seen[var] == u + 1)
                continue;
            o->seen[var] = u + 1;
            if (!o->written[var])
                delta += o->uses[var] > 1 ? (int64_t)nbytes : 0;
            else if (o->uses[var] == 1)
                delta -= (int64_t)nbytes;
        }
    for (s = o->first[u]; s != UINT32_MAX; s = o->next[s])
        for (k = 0; k < p->steps.v[s].narg; k++)
            o->seen[p->args.v[p->steps.v[s].arg + k]] = 0;
    return delta;
}

static void
order_run(StepOrder *o, uint32_t u, uint32_t *n)
{
    const Plan *p = o->plan;
    uint32_t s, k, t;

    o->done[u] = 1;
    for (s = o->first[u]; s != UINT32_MAX; s = o->next[s]) {
        o->order[(*n)++] = s;
        for (k = 0; k < p->steps.v[s].narg; k++) {
            uint32_t var = p->args.v[p->steps.v[s].arg + k];

            if (!order_meets(o, s, k))
                continue;
            o->written[var] = 1;
            for (t = o->t.from[var]; order_nbytes(p, var) && t < o->t.from[var + 1]; t++)
                o->stale[o->unit[o->t.step[t]]] = 1;
            order_over(o, var, s, -1);
            if (o->seen[var] != u + 1) {
                o->seen[var] = u + 1;
                o->uses[var]--;
            }
            for (t = o->t.from[var]; order_counts(p, var) && t < o->t.from[var + 1]; t++)
                if (o->t.step[t] == s && jot_plan_writes(&o->t, var, t))
                    order_edges(o, var, t, -1);
        }
    }
    for (s = o->first[u]; s != UINT32_MAX; s = o->next[s])
        for (k = 0; k < p->steps.v[s].narg; k++)
            o->seen[p->args.v[p->steps.v[s].arg + k]] = 0;
}

/* least_first: what adds least, where nothing frees. False: units wait for each other, which only
 * those that write over something can. */
static bool
order_choose(StepOrder *o, bool least_first)
{
    uint32_t n = 0, u, i, left = 0, steps = o->plan->steps.n;

    for (u = 0; u < steps; u++)
        if (o->unit[u] == u)
            o->left[left++] = u;
    while (n < steps) {
        uint32_t best = UINT32_MAX, at = 0;
        int64_t least = 0;

        for (i = 0; i < left; i++) {
            int64_t delta;

            u = o->left[i];
            if (o->waits[u])
                continue;
            if (o->stale[u])
                o->delta[u] = order_delta(o, u);
            o->stale[u] = 0;
            delta = least_first || o->delta[u] < 0 ? o->delta[u] : 0;
            if (best == UINT32_MAX || delta < least) {
                best = u;
                least = delta;
                at = i;
            }
        }
        if (best == UINT32_MAX)
            return false;
        memmove(o->left + at, o->left + at + 1, (--left - at) * sizeof *o->left);
        order_run(o, best, &n);
    }
    return true;
}

/* ---- as run -------------------------------------------------------------------------------- */

static void
order_lives(Plan *plan)
{
    uint32_t i, k;

    for (i = 0; i < plan->vars.n; i++)
        plan->vars.v[i].first = UINT32_MAX;
    for (i = 0; i < plan->steps.n; i++)
        for (k = 0; k < plan->steps.v[i].narg; k++) {
            PlanVar *v = &plan->vars.v[plan->args.v[plan->steps.v[i].arg + k]];

            v->last = i;
            if (v->first == UINT32_MAX)
                v->first = i;
        }
    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].first == UINT32_MAX)
            plan->vars.v[i].first = plan->vars.v[i].last = 0;
}

static bool
order_open(StepOrder *o, Arena *arena, const Plan *plan)
{
    uint32_t steps = plan->steps.n, vars = plan->vars.n;

    o->plan = plan;
    o->unit = jot_arena_array(arena, uint32_t, steps);
    o->waits = jot_arena_array(arena, uint32_t, steps);
    o->uses = jot_arena_array(arena, uint32_t, vars);
    o->seen = jot_arena_array(arena, uint32_t, vars);
    o->met = jot_arena_array(arena, uint32_t, vars);
    o->over = jot_arena_array(arena, uint32_t, vars);
    o->done = jot_arena_array(arena, uint8_t, steps);
    o->written = jot_arena_array(arena, uint8_t, vars);
    o->stale = jot_arena_array(arena, uint8_t, steps);
    o->delta = jot_arena_array(arena, int64_t, steps);
    o->left = jot_arena_array(arena, uint32_t, steps);
    o->order = jot_arena_array(arena, uint32_t, steps);
    o->first = jot_arena_array(arena, uint32_t, steps);
    o->next = jot_arena_array(arena, uint32_t, steps);
    return jot_plan_touches(arena, plan, &o->t) && !arena->mem->failed;
}

/* A fresh start: of the walk, not of who touches what. */
static void
order_reset(StepOrder *o)
{
    uint32_t i;

    memset(o->waits, 0, o->plan->steps.n * sizeof *o->waits);
    memset(o->done, 0, o->plan->steps.n);
    memset(o->stale, 1, o->plan->steps.n);
    memset(o->order, 0, o->plan->steps.n * sizeof *o->order);
    for (i = 0; i < o->plan->vars.n; i++)
        o->written[i] = 0, o->met[i] = 0;
    order_edges_all(o);
}

/* Those that did not run keep what they would have written over. */
static void
order_yield(StepOrder *o, Plan *plan)
{
    uint32_t i, dropped = 0;

    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_ASKED && plan->vars.v[i].over
            && !o->done[o->unit[o->t.step[o->t.from[i]]]]) {
            plan->vars.v[i].over = 0;
            dropped++;
        }
    JOT_ASSERT(dropped, "units wait for earlier ones only");
    order_find_over(o);
}

/* Bytes that this order takes: of temporaries, and of new values beside old ones; *apart: there are
 * such. */
static size_t
order_takes(const StepOrder *o, const Plan *plan, bool *apart)
{
    size_t sum = jot_plan_bound(plan, o->marks);
    uint32_t i;

    *apart = false;
    for (i = 0; i < plan->vars.n; i++)
        if (plan->vars.v[i].kind == VAR_ASKED && plan->vars.v[i].over
            && !jot_donate_holds(plan, i)) {
            sum += plan->vars.v[i].nbytes;
            *apart = true;
        }
    return sum;
}

/* One attempt on the steps as built; they stay so if that needs less than `least`, else as they
 * were. */
static size_t
order_try(StepOrder *o, Plan *plan, PlanStep *steps, bool least_first, size_t least)
{
    PlanStep *best = steps + plan->steps.n;
    size_t bound;
    bool apart;
    uint32_t i;

    memcpy(best, plan->steps.v, plan->steps.n * sizeof *best);
    memcpy(plan->steps.v, steps, plan->steps.n * sizeof *best);
    order_reset(o);
    while (!order_choose(o, least_first)) {
        order_yield(o, plan);
        order_reset(o);
    }
    for (i = 0; i < plan->steps.n; i++)
        plan->steps.v[i] = steps[o->order[i]];
    order_lives(plan);
    bound = order_takes(o, plan, &apart);
    if (bound < least)
        return bound;
    memcpy(plan->steps.v, best, plan->steps.n * sizeof *best);
    order_lives(plan);
    return least;
}

/* Both attempts. False: refused. */
static bool
order_search(StepOrder *o, Arena *arena, Plan *plan, size_t least)
{
    PlanStep *steps = jot_arena_array(arena, PlanStep, 2 * (size_t)plan->steps.n);

    if (!steps || !order_open(o, arena, plan))
        return false;
    memcpy(steps, plan->steps.v, plan->steps.n * sizeof *steps);
    order_find_over(o);
    order_find_units(o);
    least = order_try(o, plan, steps, false, least);
    if (least > PLAN_SMALL || plan->dialect)
        order_try(o, plan, steps, true, least);
    return true;
}

JOT_FN bool
jot_plan_order(jot_Ctx *ctx, Plan *plan)
{
    Arena arena = {&ctx->mem, NULL};
    StepOrder o;
    size_t least;
    bool ok, apart = false;

    order_lives(plan);
    if (plan->steps.n < 2 || plan->steps.n > ORDER_MOST)
        return true;
    memset(&o, 0, sizeof o);
    o.marks = jot_arena_array(&arena, uint8_t, plan->vars.n);
    ok = o.marks != NULL;
    least = ok ? order_takes(&o, plan, &apart) : 0;
    if (ok && (least > PLAN_SMALL || plan->dialect || apart))
        ok = order_search(&o, &arena, plan, least);
    jot_arena_free(&arena);
    return ok || jot_fail_memory(ctx, "plan");
}
