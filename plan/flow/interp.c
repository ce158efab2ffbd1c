/* plan/flow/interp.c - branches and loops in the interpreter: bodies are run as graphs, trip by
 * trip.
 *
 * Read before: plan/flow/flow.h. After: backends/interp.c. */
#include "plan/flow/flow.h"

typedef struct {
    jot_Ctx *ctx;
    const CodeSpec *spec;
    Flow *flow;
    FlowForm *form;
    void *const *given;               /* elements of inputs */
    Buffer view[FLOW_MOST], *in[FLOW_MOST], *now[FLOW_MOST], *made[FLOW_MOST], **out;
} FlowInterp;

/* The body of this trip, of the buffers in f->in; one per root in f->made. */
static bool
interp_part(FlowInterp *f, int body)
{
    FlowPart *p = &f->form->part[body];
    bool ok;

    jot_graph_number(f->ctx, &p->list);
    jot_flow_lend(f->ctx, f->flow, p, f->in);
    ok = jot_interp_run(f->ctx, &p->list, p->root.v, p->root.n, f->made);
    jot_flow_back(f->ctx, p);
    return ok;
}

static bool
interp_cond(FlowInterp *f)
{
    int body = *(const unsigned char *)f->given[0] ? FLOW_THEN : FLOW_OTHERWISE;
    const FlowPart *p = &f->form->part[body];
    uint32_t i;

    if (!interp_part(f, body))
        return false;
    for (i = 0; i < p->root.n; i++)
        f->out[p->output[i]] = f->made[i];
    return true;
}

/* What goes in: carries as they are now, slices of trip `at`. */
static void
interp_inputs(FlowInterp *f, int64_t at)
{
    int k;

    for (k = 0; k < f->spec->inputs; k++) {
        f->in[k] = &f->view[k];
        f->view[k].nbytes = jot_flow_input_nbytes(f->spec, k);
        f->view[k].p = f->given[k];
        if (flow_bit(f->flow->sliced, k))
            f->view[k].p = (unsigned char *)f->given[k] + (size_t)at * f->view[k].nbytes;
    }
    for (k = 0; k < f->flow->carries; k++)
        if (f->now[k])
            f->in[f->flow->lead + k] = f->now[k];
}

static void
interp_results(FlowInterp *f, int64_t at)
{
    FlowPart *p = &f->form->part[FLOW_TRIP];
    uint32_t i;

    for (i = 0; i < p->root.n; i++) {
        Buffer *made = f->made[i];
        int o = p->output[i];

        if (o < f->flow->carries) {
            jot_buffer_unref(f->ctx, f->now[o]);
            f->now[o] = made;
            continue;
        }
        if (made->nbytes)
            memcpy((unsigned char *)f->out[o]->p + (size_t)at * made->nbytes, made->p,
                   made->nbytes);
        jot_buffer_unref(f->ctx, made);
    }
}

static bool
interp_asks(FlowInterp *f, bool *go)
{
    *go = true;
    if (!f->form->part[FLOW_TEST].root.n)
        return true;
    if (!interp_part(f, FLOW_TEST))
        return false;
    *go = *(const unsigned char *)f->made[0]->p != 0;
    jot_buffer_unref(f->ctx, f->made[0]);
    return true;
}

static bool
interp_trips(FlowInterp *f)
{
    int64_t n = f->flow->most, t, at;
    bool go;

    if (f->flow->counted) {
        memcpy(&at, f->given[0], sizeof at);
        n = at < 0 ? 0 : at < n ? at : n;
    }
    for (t = 0; t < n; t++) {
        at = f->flow->reverse ? n - 1 - t : t;
        interp_inputs(f, at);
        if (!interp_asks(f, &go))
            return false;
        if (!go)
            break;
        if (!interp_part(f, FLOW_TRIP))
            return false;
        interp_results(f, at);
    }
    return true;
}

static bool
interp_loop(FlowInterp *f)
{
    const Flow *flow = f->flow;
    int k;
    bool ok = true;

    for (k = flow->carries; k < f->spec->outputs && ok; k++)
        if (flow_bit(f->form->want, k)) {
            const CodeArg *a = &f->spec->arg[f->spec->inputs + k];
            size_t nbytes = (size_t)a->nelem * jot_dtype_nbytes((jot_DType)a->dtype);

            f->out[k] = jot_buffer_new(f->ctx, nbytes);
            ok = f->out[k] != NULL;
            if (ok && nbytes) /* trips that do not come leave zeros */
                memset(f->out[k]->p, 0, nbytes);
        }
    ok = ok && interp_trips(f);
    for (k = 0; k < flow->carries; k++) {
        size_t nbytes = jot_flow_input_nbytes(f->spec, flow->lead + k);

        if (ok && !f->now[k] && (f->now[k] = jot_buffer_new(f->ctx, nbytes)) != NULL && nbytes)
            memcpy(f->now[k]->p, f->given[flow->lead + k], nbytes);
        ok = ok && f->now[k];
        f->out[k] = f->now[k];
    }
    return ok;
}

JOT_FN bool
jot_flow_interp(jot_Ctx *ctx, const CodeSpec *spec, void *const *in, Buffer **out)
{
    FlowInterp *f = jot_mem_new(&ctx->mem, 1, sizeof *f);
    bool ok;

    if (!f)
        return false;
    f->ctx = ctx;
    f->spec = spec;
    f->flow = spec->flow;
    f->form = spec->flow->form;
    f->given = in;
    f->out = out;
    interp_inputs(f, 0);
    ok = spec->flow->kind == FLOW_COND ? interp_cond(f) : interp_loop(f);
    jot_mem_free(&ctx->mem, f, sizeof *f);
    return ok;
}
