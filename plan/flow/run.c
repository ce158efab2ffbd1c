/* plan/flow/run.c - branches and loops are run: which body, where its inputs are, where its results
 * go.
 *
 *     trip     carry read    written         the last trip writes to the output, where it is known
 *     0        init          other place     to be the last; else a copy follows
 *     1        other place   output
 *
 * The plan of a body is launched here on memory of this process; a device does the same with its
 * handles (plan/device/flow.c), and says so by three functions.
 *
 * Read before: plan/flow/make.c, plan/run.c. After: plan/flow/export.c. */
#include "plan/flow/flow.h"

/* ---- what all backends do ------------------------------------------------------------------- */

static FlowPlace
run_own(const FlowRun *r, size_t at)
{
    FlowPlace p = r->arg[r->spec->inputs + r->spec->outputs];

    p.at += at;
    return p;
}

static bool
run_cond(FlowRun *r)
{
    uint8_t test;
    int k;

    if (!r->read(r, &test, r->arg[0], 1))
        return false;
    for (k = 0; k < r->spec->inputs; k++)
        r->in[k] = r->arg[k];
    for (k = 0; k < r->spec->outputs; k++)
        r->to[k] = r->arg[r->spec->inputs + k];
    return r->launch(r, test ? FLOW_THEN : FLOW_OTHERWISE);
}

/* Slice s of what is at p; *there: it begins where it has to. */
static FlowPlace
run_slice(const FlowRun *r, FlowPlace p, int64_t s, size_t nbytes, bool *there)
{
    p.at += (size_t)s * nbytes;
    *there = p.at % r->align == 0;
    return p;
}

static bool
run_inputs(FlowRun *r, int64_t s)
{
    const Flow *f = r->spec->flow;
    bool there, ok = true;
    int k;

    for (k = f->lead; k < r->spec->inputs && ok; k++) {
        size_t nbytes = jot_flow_input_nbytes(r->spec, k);

        r->in[k] = k - f->lead < f->carries ? r->now[k - f->lead] : r->arg[k];
        if (!flow_bit(f->sliced, k))
            continue;
        r->in[k] = run_slice(r, r->arg[k], s, nbytes, &there);
        if (!there) {
            ok = r->copy(r, run_own(r, r->flow->place[2 * f->carries + k]), r->in[k], nbytes);
            r->in[k] = run_own(r, r->flow->place[2 * f->carries + k]);
        }
    }
    return ok;
}

/* A carry's output, or what it has where that is not wanted. */
static FlowPlace
run_final(const FlowRun *r, int k)
{
    return flow_bit(r->flow->form->want, k) ? r->arg[r->spec->inputs + k]
                                            : run_own(r, r->flow->place[2 * k + 1]);
}

/* Where the results of a trip go. final: carries to their outputs. */
static void
run_outputs_to(FlowRun *r, int64_t s, bool final)
{
    const Flow *f = r->spec->flow;
    bool there;
    int k;

    for (k = 0; k < f->carries; k++)
        r->to[k] = final ? run_final(r, k) : run_own(r, r->flow->place[2 * k]);
    for (; k < r->spec->outputs; k++) {
        if (!flow_bit(r->flow->form->want, k))
            continue;
        r->to[k] = run_slice(r, r->arg[r->spec->inputs + k], s,
                             jot_flow_output_nbytes(r->spec, k), &there);
        if (!there)
            r->to[k] = run_own(r, r->flow->place[2 * f->carries + r->spec->inputs + k]);
    }
}

/* What did not go to its slice at once. */
static bool
run_stacked(FlowRun *r, int64_t s)
{
    const Flow *f = r->spec->flow;
    bool there, ok = true;
    int k;

    for (k = f->carries; k < r->spec->outputs && ok; k++) {
        size_t nbytes = jot_flow_output_nbytes(r->spec, k);
        FlowPlace slice;

        if (!flow_bit(r->flow->form->want, k))
            continue;
        slice = run_slice(r, r->arg[r->spec->inputs + k], s, nbytes, &there);
        ok = there || r->copy(r, slice, r->to[k], nbytes);
    }
    return ok;
}

static bool
run_asks(FlowRun *r, bool *go)
{
    uint8_t test = 1;
    bool ok = true;

    if (r->flow->part[FLOW_TEST]) {
        r->to[0] = run_own(r, r->flow->test);
        ok = r->launch(r, FLOW_TEST) && r->read(r, &test, r->to[0], 1);
    }
    *go = test != 0;
    return ok;
}

static bool
run_trips(FlowRun *r, int64_t n)
{
    const Flow *f = r->spec->flow;
    bool known = !r->flow->part[FLOW_TEST], go;
    int64_t t, s;

    for (t = 0; t < n; t++) {
        s = f->reverse ? n - 1 - t : t;
        if (!run_inputs(r, s) || !run_asks(r, &go))
            return false;
        if (!go)
            break;
        run_outputs_to(r, s, known ? (n - t) % 2 != 0 : t % 2 == 0);
        if (!r->launch(r, FLOW_TRIP) || !run_stacked(r, s))
            return false;
        memcpy(r->now, r->to, (size_t)f->carries * sizeof *r->now);
    }
    return true;
}

static bool
run_loop(FlowRun *r)
{
    const Flow *f = r->spec->flow;
    int64_t n = f->most, count;
    bool ok = true;
    int k;

    if (f->counted) {
        if (!r->read(r, &count, r->arg[0], sizeof count))
            return false;
        n = count < 0 ? 0 : count < n ? count : n;
    }
    for (k = 0; k < f->carries; k++)
        r->now[k] = r->arg[f->lead + k];
    ok = run_trips(r, n);
    for (k = 0; k < f->carries && ok; k++) {
        FlowPlace to = run_final(r, k);

        if (flow_bit(r->flow->form->want, k) && (to.mem != r->now[k].mem || to.at != r->now[k].at))
            ok = r->copy(r, to, r->now[k], jot_flow_input_nbytes(r->spec, f->lead + k));
    }
    return ok;
}

JOT_FN void *
jot_flow_run_at(FlowRun *r, void *bindings)
{
    size_t n = (size_t)(r->spec->inputs + r->spec->outputs);

    r->arg = bindings;
    r->in = r->arg + n + 1;
    r->to = r->in + r->spec->inputs;
    r->now = r->to + r->spec->outputs;
    return r->now + r->spec->flow->carries;
}

JOT_FN bool
jot_flow_run(FlowRun *r)
{
    return r->spec->flow->kind == FLOW_COND ? run_cond(r) : run_loop(r);
}

/* ---- on memory of this process -------------------------------------------------------------- */

static unsigned char *
host_at(FlowPlace p)
{
    return (unsigned char *)p.mem + p.at;
}

static bool
host_launch(FlowRun *r, int body)
{
    Plan *plan = r->flow->part[body];
    PlanBind *bind = (PlanBind *)r->of + body;
    const uint8_t *output = r->flow->form->part[body].output;
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];

        bind->var[i] = v->kind == VAR_LEAF ? host_at(r->in[r->flow->input[body][i]])
                     : v->kind == VAR_ASKED ? host_at(r->to[output[v->root]])
                     : bind->block + v->offset;
    }
    jot_plan_launch(r->ctx, plan, bind);
    return true;
}

static bool
host_copy(FlowRun *r, FlowPlace to, FlowPlace from, size_t nbytes)
{
    (void)r;
    if (nbytes)
        memcpy(host_at(to), host_at(from), nbytes);
    return true;
}

static bool
host_read(FlowRun *r, void *to, FlowPlace from, size_t nbytes)
{
    (void)r;
    memcpy(to, host_at(from), nbytes);
    return true;
}

/* Literals and user code of the bodies, as the node of this run has them. */
static void *
host_bind(FlowRun *r, int body, FlowForm *form, void *bindings)
{
    const Plan *plan = r->flow->part[body];
    const Selection part = {.list = form->part[body].list};
    PlanBind *bind = (PlanBind *)r->of + body;
    uint32_t i;

    jot_plan_bind_at(bind, plan, bindings);
    bind->block = host_at(run_own(r, 0));
    for (i = 0; i < plan->vars.n; i++)
        bind->made[i] = NULL;
    for (i = 0; i < plan->scalars.n; i++)
        bind->scalar[i] = jot_plan_scalar(r->ctx, &part, &plan->scalars.v[i]);
    for (i = 0; i < plan->codes.n; i++)
        bind->code[i] = jot_node(r->ctx, part.list.v[plan->codes.v[i].pos])->code;
    return (jot_Scalar *)bindings + jot_plan_bind_key(plan);
}

JOT_FN void
jot_flow_host(jot_Ctx *ctx, const Plan *plan, const PlanStep *step, const PlanBind *bind)
{
    PlanBind part[FLOW_BODIES];
    FlowRun r = {.ctx = ctx, .flow = &plan->flows.v[step->flow - 1], .align = 1, .of = part,
                 .launch = host_launch, .copy = host_copy, .read = host_read};
    FlowForm *form;
    void *bindings;
    uint32_t k;
    int b;

    r.spec = bind->code[step->code - 1];
    bindings = jot_flow_run_at(&r, (jot_Scalar *)bind->flows + r.flow->bindings);
    for (k = 0; k < step->narg; k++)
        r.arg[k] = (FlowPlace){bind->var[plan->args.v[step->arg + k]], 0};
    form = jot_flow_form(ctx, r.spec, r.flow->form->want);
    for (b = 0; b < FLOW_BODIES; b++)
        if (r.flow->part[b])
            bindings = host_bind(&r, b, form, bindings);
    jot_flow_run(&r);
}
