/* plan/open/padded.c - calls of a masked function: its variables are as large as at the most
 * extents, the caller's as at those of the call.
 *
 *     caller   (2, 3)     a b c / d e f
 *     here     (2, 5)     a b c 0 0 / d e f 0 0       the rest is 0 where it is read, else anything
 *
 *   requires  a call that is in bounds      keeps  results until all of them are there
 * Read before: plan/open/masked.h. After: plan/open/open.c. */
#include "plan/open/masked.h"

/* ---- sizes ---------------------------------------------------------------------------------- */

static int64_t
padded_end(const OpenMasked *m, const EmitEnd *e, int64_t most)
{
    int64_t n = e->size ? (m->now[e->size - 1] * e->per + e->step - 1) / e->step * e->times : most;

    return n < most ? n : most;
}

static void
padded_launch(const OpenMasked *m, PlanLaunch *l, const int64_t *most)
{
    int phase;

    for (phase = 0; phase < l->phases; phase++)
        l->count[phase] = padded_end(m, &l->end[phase], most[phase]);
}

/* Steps of launches, and what they cost, from which the number of threads follows. */
static void
padded_steps(OpenMasked *m)
{
    Plan *plan = m->f->plan;
    uint32_t i;

    for (i = 0; i < plan->steps.n; i++) {
        padded_launch(m, &plan->steps.v[i].best, m->count[i][0]);
        padded_launch(m, &plan->steps.v[i].quick, m->count[i][1]);
        jot_open_cost(&plan->steps.v[i], &m->cost[i]);
    }
    for (i = 0; i < plan->launches.n; i++)
        plan->launches.v[i].steps = padded_end(m, &plan->launches.v[i].end, m->steps[i]);
}

/* Those of the call; inputs are cleared if they are others than before. */
static void
padded_sizes(Open *o, const int64_t *extent)
{
    OpenMasked *m = o->masked;
    size_t nbytes = (size_t)o->space.n * sizeof *extent;
    int i;

    if (!memcmp(o->now, extent, nbytes))
        return;
    memcpy(o->now, extent, nbytes);
    for (i = 0; i < m->nsizes; i++)
        m->now[i] = jot_open_value(&o->space, &m->size[i], extent);
    memcpy(m->sizes->p, m->now, (size_t)m->nsizes * sizeof *m->now);
    for (i = 0; i < m->nreals; i++)
        ((float *)m->reals->p)[i] = (float)jot_open_literal_at(&o->space, &m->real[i], extent).f;
    for (i = 0; i < m->nin; i++)
        if ((m->in[i].cleared = m->in[i].clear))
            memset(m->in[i].buf->p, 0, m->in[i].shape.nbytes);
    padded_steps(m);
}

static size_t
padded_extents(const OpenMasked *m, const MaskedVar *v, int64_t *ext)
{
    size_t nbytes = jot_dtype_nbytes(v->shape.dtype);
    int d;

    for (d = 0; d < v->shape.rank; d++) {
        ext[d] = v->size[d] ? m->now[v->size[d] - 1] : v->shape.ext[d];
        nbytes *= (size_t)ext[d];
    }
    return nbytes;
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Between the box, or a result of that shape, and the caller's elements, of which the last
 * dimensions lie in one piece. */
static void
padded_copy(const OpenMasked *m, const MaskedVar *v, char *box, char *own, bool in)
{
    int64_t ext[JOT_MAX_RANK], at[JOT_MAX_RANK] = {0};
    size_t run = jot_dtype_nbytes(v->shape.dtype), total = padded_extents(m, v, ext);
    char *end = own + total;
    int d = v->shape.rank, k;

    for (; d > 0 && ext[d - 1] == v->shape.ext[d - 1]; d--)
        run *= (size_t)ext[d - 1];
    run *= d > 0 ? (size_t)ext[--d] : 1;
    while (own < end) {
        size_t from = 0;

        for (k = 0; k < v->shape.rank; k++)
            from = from * (size_t)v->shape.ext[k] + (size_t)(k < d ? at[k] : 0);
        from *= jot_dtype_nbytes(v->shape.dtype);
        memcpy(in ? box + from : own, in ? own : box + from, run);
        own += run;
        for (k = d; k-- > 0 && ++at[k] == ext[k]; at[k] = 0)
            ;
    }
}

/* Bytes of the box up to the last of the call's elements. */
static size_t
padded_span(const OpenMasked *m, const MaskedVar *v)
{
    int64_t ext[JOT_MAX_RANK];
    size_t last = 0;
    int d;

    if (!padded_extents(m, v, ext))
        return 0;
    for (d = 0; d < v->shape.rank; d++)
        last = last * (size_t)v->shape.ext[d] + (size_t)(ext[d] - 1);
    return (last + 1) * jot_dtype_nbytes(v->shape.dtype);
}

/* A device that has the box has the call's elements. */
static bool
padded_upload(const OpenMasked *m, const Buffer *buf, size_t nbytes)
{
    Backend *backend = m->ctx->backend;

    return !buf->device || !nbytes
        || backend->device->upload(backend, m->ctx, buf->device, buf->p, nbytes);
}

static bool
padded_put(const OpenMasked *m, MaskedVar *v, const void *own)
{
    size_t nbytes = v->cleared ? v->shape.nbytes : padded_span(m, v);

    bool ok;

    padded_copy(m, v, v->buf->p, (char *)(uintptr_t)own, true);
    ok = padded_upload(m, v->buf, nbytes);
    v->cleared = v->cleared && !ok; /* else the whole box is to go there again */
    return ok;
}

/* A result on the device comes as far as it is asked for. */
static bool
padded_fetch(OpenMasked *m, MaskedVar *v, uint32_t k, char **box)
{
    const Buffer *result = jot_func_result(m->f, &m->f->output[k].from);
    Backend *backend = m->ctx->backend;
    size_t nbytes = padded_span(m, v);

    *box = result->p;
    if (*box || !nbytes)
        return true;
    if (!v->buf && !(v->buf = jot_buffer_new(m->ctx, v->shape.nbytes)))
        return jot_fail_memory(m->ctx, "call");
    *box = v->buf->p;
    return backend->device->download(backend, m->ctx, *box, result->device, nbytes);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static bool
padded_fits(Open *o, const char *list, int n, const MaskedVar *v, const void *p, size_t nbytes)
{
    int64_t ext[JOT_MAX_RANK];
    size_t want = padded_extents(o->masked, v, ext);
    char text[SHAPE_TEXT];

    if (nbytes != want)
        return jot_fail(o->ctx, JOT_ESHAPE, "call: %s[%d] is %s %s: %zu bytes asked, %zu found",
                        list, n, jot_dtype_name(v->shape.dtype),
                        jot_shape_str(text, v->shape.rank, ext), want, nbytes);
    return p || !nbytes || jot_fail(o->ctx, JOT_EUSE, "call: %s[%d] is NULL", list, n);
}

static bool
padded_run(Open *o, const void *const *in, void *const *out)
{
    OpenMasked *m = o->masked;
    Buffer *buf[MASKED_VARS + 2];
    char *box[MASKED_VARS];
    int i, n = 0;
    bool ok = true;

    for (i = 0; ok && i < m->nin; i++) {
        ok = padded_put(m, &m->in[i], in[i]);
        buf[n++] = m->in[i].buf;
    }
    ok = ok && padded_upload(m, m->sizes, m->sizes->nbytes)
      && padded_upload(m, m->reals, m->reals->nbytes);
    buf[n++] = m->sizes;
    if (m->nreals)
        buf[n++] = m->reals;
    ok = ok && jot_func_begin(m->f, buf);
    for (i = 0; ok && i < m->nout; i++)
        ok = padded_fetch(m, &m->out[i], (uint32_t)i, &box[i]);
    for (i = 0; ok && i < m->nout; i++)
        padded_copy(m, &m->out[i], box[i], out[i], false);
    return jot_func_finish(m->f, ok);
}

JOT_FN bool
jot_masked_call(Open *o, const int64_t *extent, jot_Ins in, jot_Outs out)
{
    OpenMasked *m = o->masked;
    const void *from[MASKED_VARS];
    void *to[MASKED_VARS];
    int i;

    if (in.n != m->nin || out.n != m->nout)
        return jot_fail(o->ctx, JOT_ERANGE, "call: %s: %d buffers asked, %d found",
                        in.n != m->nin ? "in" : "out", in.n != m->nin ? m->nin : m->nout,
                        in.n != m->nin ? in.n : out.n);
    if ((in.n && !in.v) || (out.n && !out.v))
        return jot_fail(o->ctx, JOT_EUSE, "call: the list of %s is NULL", in.n && !in.v ? "in"
                                                                                       : "out");
    padded_sizes(o, extent);
    for (i = 0; i < in.n; i++)
        if (!padded_fits(o, "in", i, &m->in[i], in.v[i].data, in.v[i].nbytes))
            return false;
    for (i = 0; i < out.n; i++)
        if (!padded_fits(o, "out", i, &m->out[i], out.v[i].data, out.v[i].nbytes))
            return false;
    for (i = 0; i < in.n; i++)
        from[i] = in.v[i].data;
    for (i = 0; i < out.n; i++)
        to[i] = out.v[i].data;
    return padded_run(o, from, to);
}

static Node *
padded_node(const Open *o, jot_Var v)
{
    return jot_node(o->ctx, o->ctx->slots.v[v.slot].node);
}

static bool
padded_var_fits(Open *o, jot_Vars in, int k)
{
    const MaskedVar *v = &o->masked->in[k];
    NodeId id = jot_node_at(o->ctx, in, k, "call_vars", "in");
    const Node *n = id ? jot_node(o->ctx, id) : NULL;
    int64_t ext[JOT_MAX_RANK];
    char a[SHAPE_TEXT], b[SHAPE_TEXT];

    if (!n)
        return false;
    padded_extents(o->masked, v, ext);
    if (n->dtype == v->shape.dtype && n->rank == v->shape.rank
        && !memcmp(n->ext, ext, (size_t)n->rank * sizeof *ext))
        return true;
    return jot_fail(o->ctx, n->dtype != v->shape.dtype ? JOT_EDTYPE : JOT_ESHAPE,
                    "call_vars: in[%d] is %s %s, the extents of the call ask %s %s", k,
                    jot_dtype_name((jot_DType)n->dtype), jot_shape_str(a, n->rank, n->ext),
                    jot_dtype_name(v->shape.dtype), jot_shape_str(b, v->shape.rank, ext));
}

JOT_FN bool
jot_masked_call_vars(Open *o, const int64_t *extent, jot_Vars in, jot_Var *out)
{
    OpenMasked *m = o->masked;
    const void *from[MASKED_VARS];
    void *to[MASKED_VARS];
    int64_t ext[JOT_MAX_RANK];
    int k, made = 0;
    bool ok;

    if (!out && m->nout)
        return jot_fail(o->ctx, JOT_EUSE, "call_vars: out is NULL, %d variables come out",
                        m->nout);
    if (in.n != m->nin)
        return jot_fail(o->ctx, JOT_ERANGE, "call_vars: in: %d variables asked, %d found", m->nin,
                        in.n);
    padded_sizes(o, extent);
    for (k = 0, ok = true; ok && k < in.n; k++)
        ok = padded_var_fits(o, in, k);
    ok = ok && jot_run(o->ctx, in);
    for (k = 0; ok && k < in.n; k++)
        ok = (from[k] = jot_data_host(o->ctx, padded_node(o, in.v[k])->data, "call_vars")) != NULL
          || !padded_node(o, in.v[k])->nelem;
    for (; ok && made < m->nout; made++) {
        padded_extents(m, &m->out[made], ext);
        out[made] = jot_array_unset(o->ctx, "call_vars", m->out[made].shape.dtype,
                                    jot_ints(m->out[made].shape.rank, ext), true);
        ok = out[made].slot != 0;
        to[made] = ok ? padded_node(o, out[made])->data->p : NULL;
    }
    ok = ok && padded_run(o, from, to);
    for (k = 0; !ok && k < made; k++)
        if (out[k].slot)
            jot_free(out[k]);
    for (k = 0; !ok && k < m->nout; k++)
        out[k] = JOT_POISON(o->ctx);
    return ok;
}

JOT_FN jot_Ints
jot_masked_shape(Open *o, const int64_t *extent, int output)
{
    OpenMasked *m = o->masked;
    const MaskedVar *v = &m->out[output];
    int d;

    for (d = 0; d < v->shape.rank; d++)
        o->shown[d] = v->size[d] ? jot_open_value(&o->space, &m->size[v->size[d] - 1], extent)
                                 : v->shape.ext[d];
    return jot_ints(v->shape.rank, o->shown);
}

JOT_FN void
jot_masked_end(OpenMasked *m)
{
    int i;

    if (!m)
        return;
    jot_func_end(m->f);
    for (i = 0; i < m->nin && m->in; i++)
        jot_buffer_unref(m->ctx, m->in[i].buf);
    for (i = 0; i < m->nout && m->out; i++)
        jot_buffer_unref(m->ctx, m->out[i].buf);
    jot_buffer_unref(m->ctx, m->sizes);
    jot_buffer_unref(m->ctx, m->reals);
    jot_arena_free(&m->arena);
    jot_mem_free(&m->ctx->mem, m, sizeof *m);
}
