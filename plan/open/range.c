/* plan/open/range.c - sizes in ranges, each with a plan of its own.
 *
 *     batch 1 to 1000    one plan from 8 on         the rest, 1 to 7, is a range of its own
 *     batch 1 to 1000    they are not one plan      1 to 30, 31 to 1000, and each in two again
 *
 * A range is tried when a call first falls into it: the whole at once, the others later, no more
 * than OPEN_RANGES of them. Sizes of ranges of a few have a plan each.
 *
 * A range has the plan for its most extents, masked, where its graph allows.
 *
 * Read before: plan/open/masked.h. After: plan/open/open.c. */
#include "plan/open/masked.h"

/* ---- trying ------------------------------------------------------------------------------- */

JOT_FN OpenCost *
jot_open_costs(Arena *arena, const Plan *plan)
{
    OpenCost *cost = jot_arena_array(arena, OpenCost, (size_t)plan->steps.n + 1);
    uint32_t i;
    int phase;

    for (i = 0; cost && i < plan->steps.n; i++) {
        const PlanStep *step = &plan->steps.v[i];

        cost[i].seconds = step->seconds;
        cost[i].cost = step->cost;
        for (phase = 0; phase < step->best.phases; phase++)
            cost[i].count += step->best.count[phase];
    }
    return cost;
}

JOT_FN void
jot_open_cost(PlanStep *step, const OpenCost *most)
{
    int64_t count = 0;
    double part;
    int phase;

    for (phase = 0; phase < step->best.phases; phase++)
        count += step->best.count[phase];
    part = most->count ? (double)count / (double)most->count : 1;
    step->seconds = most->seconds * part;
    step->cost.read = most->cost.read * part;
    step->cost.written = most->cost.written * part;
    step->cost.flops = most->cost.flops * part;
    step->cost.points = most->cost.points * part;
}

/* What jot_open_why says of a range, below it first said of the whole. */
static void
range_told(const Open *o, const Open *root, Text *t)
{
    int d;

    if (!o->tried)
        return;
    if (o != root) {
        jot_text_f(t, "; ");
        jot_open_between(o, o->space.least, o->space.most, t);
        jot_text_f(t, o->masked ? ": one plan" : ": ");
    }
    if (!o->masked)
        jot_text_f(t, "%s: %s", o->half[0] || o->half[1] ? "no one plan serves each size"
                                                         : "each size has a plan of its own",
                   o->why);
    else if (memcmp(o->low, o->space.least, (size_t)o->space.n * sizeof *o->low)) {
        jot_text_f(t, "%ssizes below ", o == root ? "" : ", ");
        jot_open_extents(o, o->low, t);
        jot_text_f(t, " have plans of their own");
    }
    for (d = 0; d < o->space.n; d++)
        if (o->below[d])
            range_told(o->below[d], root, t);
    for (d = 0; d < 2; d++)
        if (o->half[d])
            range_told(o->half[d], root, t);
}

static void
range_tell(Open *root)
{
    Text t = {NULL, root->told, 0, sizeof root->told}, dump = {&root->ctx->mem, NULL, 0, 0};

    root->told[0] = 0;
    range_told(root, root, &t);
    if (!jot_plan_dumps(root->ctx, 'p'))
        return;
    jot_text_f(&dump, "open: %s\n", root->told[0] ? root->told : "one plan for all extents");
    jot_plan_log(root->ctx, &dump);
}

JOT_FN bool
jot_open_try(Open *o, Open *root)
{
    const Backend *backend = o->ctx->backend;
    Text why = {NULL, o->why, 0, sizeof o->why};

    if (o->tried)
        return true;
    o->whole = !o->dialect && !backend->compile;
    if (o->whole)
        jot_text_f(&why, "the interpreter has no kernels");
    else if (!jot_open_mask(o, &o->masked))
        return false;
    o->tried = true;
    range_tell(root);
    return true;
}

/* ---- dividing ------------------------------------------------------------------------------ */

static int64_t
range_values(const OpenSpace *s, int d)
{
    return (s->most[d] - s->least[d]) / s->step[d] + 1;
}

/* A range within, which has the bounds of the one around it for now. */
static Open *
range_new(const Open *o)
{
    Open *in = jot_mem_new(&o->ctx->mem, 1, sizeof *in);

    if (!in) {
        jot_fail_memory(o->ctx, "call_open");
        return NULL;
    }
    in->ctx = o->ctx;
    in->op = o->op;
    in->dialect = o->dialect;
    in->space = o->space;
    memcpy(in->name, o->name, sizeof in->name);
    in->build = o->build;
    in->user = o->user;
    in->in = o->in;
    in->out = o->out;
    in->dtype = o->dtype;
    in->nin = o->nin;
    in->nout = o->nout;
    return in;
}

/* In the middle of the ratio of its bounds: what is chosen by size is so by its order. */
static int64_t
range_middle(const OpenSpace *s, int d)
{
    int64_t at = s->least[d];

    while ((at + s->step[d]) * (at + s->step[d]) <= s->least[d] * s->most[d])
        at += s->step[d];
    return at;
}

JOT_FN void
jot_open_within(Open *o, const int64_t *extent, Open ***at, OpenSpace *s)
{
    int d, longest = 0;

    *s = o->space;
    *at = NULL;
    if (o->masked) {
        for (d = 0; extent[d] >= o->low[d]; d++)
            s->least[d] = o->low[d];
        s->most[d] = o->low[d] - s->step[d];
        *at = &o->below[d];
    } else if (!o->whole) {
        for (d = 1; d < s->n; d++)
            longest = s->most[d] * s->least[longest] > s->most[longest] * s->least[d] ? d : longest;
        d = extent[longest] > range_middle(s, longest);
        *at = &o->half[d];
        if (d)
            s->least[longest] = range_middle(s, longest) + s->step[longest];
        else
            s->most[longest] = range_middle(s, longest);
    }
}

JOT_FN bool
jot_open_range(Open *root, const int64_t *extent, Open **range)
{
    Open *o = root, **at;
    OpenSpace s;
    double values;
    int d;

    for (*range = NULL;; o = *at) {
        if (!jot_open_try(o, root))
            return false;
        for (d = 0; o->masked && d < o->space.n && extent[d] >= o->low[d]; d++)
            ;
        if (o->masked && d == o->space.n) {
            *range = o;
            return true;
        }
        jot_open_within(o, extent, &at, &s);
        for (values = 1, d = 0; at && d < s.n; d++)
            values *= (double)range_values(&s, d);
        if (!at || values <= OPEN_FEW || (!*at && root->ranges == OPEN_RANGES))
            return true;
        if (*at)
            continue;
        if (!jot_plan_run(o->ctx, NULL, 0) || !(*at = range_new(o)))
            return false;
        root->ranges++;
        (*at)->space = s;
        jot_open_space(&(*at)->space);
    }
}

JOT_FN void
jot_open_end(Open *o)
{
    uint32_t i;
    int d;

    if (!o)
        return;
    jot_masked_end(o->masked);
    for (d = 0; d < OPEN_MOST; d++)
        jot_open_end(o->below[d]);
    for (d = 0; d < 2; d++)
        jot_open_end(o->half[d]);
    for (i = 0; i < o->sizes.n; i++)
        jot_func_end(o->sizes.v[i].f);
    jot_vec_free(&o->ctx->mem, o->sizes);
    jot_mem_free(&o->ctx->mem, o, sizeof *o);
}
