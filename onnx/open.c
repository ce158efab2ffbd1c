/* onnx/open.c - models whose open extents have bounds: one function for all calls within them.
 *
 *     batch 1 to 64    x ("batch", 3) -> jot_compile_open, whose builder builds the model's graph
 *     run, x (17, 3)   batch = 17 -> jot_call_open
 *
 * What is not open by such a name is as in the first call: others have a function of their own. A
 * model whose graph depends on elements of inputs cannot be built so: its runs have plans as ever.
 *
 * Read before: onnx/call.c. After: plan/open/open.c. */
#include "onnx/parts.h"

/* ---- bounds -------------------------------------------------------------------------------- */

/* The bound by the name of an input's extent; -1: it has none. */
static int
opened_bound(const jot_Onnx *m, const jot_OnnxValue *v, int d)
{
    for (int b = 0; b < m->n_bounds && d < v->rank; b++)
        if (v->shape[d] < 0 && !strcmp(v->symbols[d], m->bound[b].name))
            return b;
    return -1;
}

/* Is this the first extent of its name? */
static bool
bound_first(const jot_Onnx *m, int k, int d)
{
    for (int i = 0; i <= k; i++)
        for (int j = 0; j < (i < k ? m->in[i].rank : d); j++)
            if (m->in[i].shape[j] < 0 && !strcmp(m->in[i].symbols[j], m->in[k].symbols[d]))
                return false;
    return true;
}

/* The names there are, for a message. */
static void
bound_names(const jot_Onnx *m, char *to, size_t n)
{
    size_t at = 0;

    *to = 0;
    for (int k = 0; k < m->n_in; k++)
        for (int d = 0; d < m->in[k].rank; d++)
            if (m->in[k].shape[d] < 0 && *m->in[k].symbols[d] && at < n && bound_first(m, k, d))
                at += (size_t)snprintf(to + at, n - at, "%s%s", at ? ", " : "",
                                       m->in[k].symbols[d]);
}

static bool
bound_fits(jot_Onnx *m, const jot_Extent *b)
{
    char names[200];
    bool there = false;

    for (int k = 0; k < m->n_in; k++)
        for (int d = 0; d < m->in[k].rank; d++)
            there |= m->in[k].shape[d] < 0 && b->name && !strcmp(m->in[k].symbols[d], b->name);
    bound_names(m, names, sizeof names);
    if (!there || !*b->name)
        return jot_raise(m->ctx, JOT_EUSE, "onnx: %s: no input has an open extent %s; there are: "
                         "%s", m->name, b->name ? b->name : "(NULL)", *names ? names : "none"),
               false;
    if (b->least < 0 || b->most < 1 || b->most < b->least || b->step < 0)
        return jot_raise(m->ctx, JOT_ERANGE, "onnx: %s: %s is %lld to %lld in steps of %lld: 1 and "
                         "more asked", m->name, b->name, (long long)b->least, (long long)b->most,
                         (long long)b->step), false;
    return true;
}

bool
jot_onnx_open(jot_Onnx *m, const jot_Extent *bounds, int n)
{
    if (!m || jot_error(m->ctx))
        return false;
    if (n < 0 || n > JOT_OPEN_EXTENTS || (n && !bounds))
        return jot_raise(m->ctx, JOT_ERANGE, "onnx: %s: %d bounds: 0 to %d asked", m->name, n,
                         JOT_OPEN_EXTENTS), false;
    for (int b = 0; b < n; b++) {
        for (int j = 0; j < b && bounds[b].name && bounds[j].name; j++)
            if (!strcmp(bounds[j].name, bounds[b].name))
                return jot_raise(m->ctx, JOT_EUSE, "onnx: %s: %s is bound twice", m->name,
                                 bounds[b].name), false;
        if (!bound_fits(m, &bounds[b]))
            return false;
    }
    char *name[JOT_OPEN_EXTENTS];
    for (int b = 0; b < n; b++)
        if (!(name[b] = onnx_copy(&m->arena, bounds[b].name)))
            return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false;
    onnx_open_drop(m);
    for (int b = 0; b < n; b++) {
        m->bound[b] = bounds[b];
        m->bound[b].name = name[b];
        m->bound[b].least += !bounds[b].least;
    }
    m->n_bounds = n;
    m->open_why[0] = 0;
    return true;
}

const char *
jot_onnx_open_why(const jot_Onnx *m)
{
    return !m ? "" : m->opened && !*m->open_why ? jot_open_why(m->opened->f) : m->open_why;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* A jot_BuildFn. */
static bool
opened_build(jot_Ctx *ctx, const int64_t *extent, jot_Var *in, jot_Var *out, void *user)
{
    OnnxOpened *o = user;

    for (int k = 0; k < o->m->n_in; k++) {
        int64_t shape[JOT_MAX_RANK];
        for (int d = 0; d < o->rank[k]; d++) {
            int b = opened_bound(o->m, &o->m->in[k], d);
            shape[d] = b < 0 ? o->shape[k][d] : extent[b];
        }
        in[k] = jot_array(ctx, o->dtype[k], jot_ints(o->rank[k], shape), NULL);
    }
    return !jot_error(ctx) && onnx_built(o->m, jot_vars(o->m->n_in, in), 0, 0, out, &o->wanted);
}

static OnnxOpened *
opened_new(jot_Onnx *m, const jot_Tensor *in)
{
    OnnxOpened *o = calloc(1, sizeof *o);
    size_t n = (size_t)m->n_in + 1, outs = (size_t)m->n_out + 1;

    if (!o)
        return NULL;
    o->m = m;
    o->dtype = onnx_take(&o->arena, n, sizeof *o->dtype);
    o->rank = onnx_take(&o->arena, n, sizeof *o->rank);
    o->shape = onnx_take(&o->arena, n, sizeof *o->shape);
    o->in = onnx_take(&o->arena, n, sizeof *o->in);
    o->out = onnx_take(&o->arena, outs, sizeof *o->out);
    o->room = onnx_take(&o->arena, outs, sizeof *o->room);
    o->out_shape = onnx_take(&o->arena, outs, sizeof *o->out_shape);
    o->result = onnx_take(&o->arena, outs, sizeof *o->result);
    if (!o->dtype || !o->rank || !o->shape || !o->in || !o->out || !o->room || !o->out_shape
        || !o->result) {
        onnx_opened_free(o);
        return NULL;
    }
    for (int k = 0; k < m->n_in; k++) {
        o->dtype[k] = in[k].dtype;
        o->rank[k] = in[k].shape.n;
        for (int d = 0; d < in[k].shape.n; d++)
            o->shape[k][d] = in[k].shape.v[d];
    }
    return o;
}

/* NULL: failed, or, without an error, it cannot be (m->open_why). */
static OnnxOpened *
opened_make(jot_Onnx *m, const jot_Tensor *in)
{
    OnnxOpened *o = opened_new(m, in);
    jot_Builder how = {m->n_bounds, m->bound, m->n_in, m->n_out, opened_build, o};

    if (!o)
        return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), NULL;
    o->f = jot_compile_open(m->ctx, &how);
    if (jot_func_ok(o->f)) {
        if (m->n_opened == JOT_ONNX_PLANS)
            onnx_open_drop(m);
        o->next = m->opened;
        m->n_opened++;
        return m->opened = o;
    }
    if (o->wanted && jot_error(m->ctx) != JOT_EMEM) {
        snprintf(m->open_why, sizeof m->open_why, "%s", jot_message(m->ctx));
        jot_clear(m->ctx);
    }
    onnx_opened_free(o);
    return NULL;
}

static bool
opened_is(const OnnxOpened *o, const jot_Tensor *in)
{
    for (int k = 0; k < o->m->n_in; k++) {
        if (o->dtype[k] != in[k].dtype || o->rank[k] != in[k].shape.n)
            return false;
        for (int d = 0; d < o->rank[k]; d++)
            if (o->shape[k][d] != in[k].shape.v[d] && opened_bound(o->m, &o->m->in[k], d) < 0)
                return false;
    }
    return true;
}

/* What the inputs' shapes say of the bounded extents: each the same wherever it stands. */
static bool
opened_extents(jot_Onnx *m, const jot_Tensor *in, int64_t *extent)
{
    memset(extent, 0, JOT_OPEN_EXTENTS * sizeof *extent);
    for (int k = 0; k < m->n_in; k++)
        for (int d = 0; d < in[k].shape.n; d++) {
            int b = opened_bound(m, &m->in[k], d);
            if (b < 0)
                continue;
            if (extent[b] && extent[b] != in[k].shape.v[d])
                return jot_raise(m->ctx, JOT_ESHAPE, "onnx: %s: input %s: dimension %d: %s is %lld "
                                 "elsewhere, %lld here", m->name, m->in[k].name, d,
                                 m->bound[b].name, (long long)extent[b],
                                 (long long)in[k].shape.v[d]), false;
            extent[b] = in[k].shape.v[d];
            int64_t step = m->bound[b].step ? m->bound[b].step : 1;
            if (extent[b] < m->bound[b].least || extent[b] > m->bound[b].most
                || (extent[b] - m->bound[b].least) % step)
                return jot_raise(m->ctx, JOT_ERANGE, "onnx: %s: input %s: %s is %lld: %lld to %lld "
                                 "in steps of %lld asked", m->name, m->in[k].name,
                                 m->bound[b].name, (long long)extent[b],
                                 (long long)m->bound[b].least, (long long)m->bound[b].most,
                                 (long long)step), false;
        }
    return true;
}

/* Shapes of outputs at these extents, and memory for them. */
static bool
opened_results(OnnxOpened *o, jot_Ints extents)
{
    jot_Ctx *ctx = o->m->ctx;

    for (int k = 0; k < o->m->n_out; k++) {
        jot_Tensor *r = &o->result[k];
        jot_Ints shape = jot_open_shape(o->f, extents, k);
        if (shape.n < 0)
            return false;
        if (shape.n)
            memcpy(o->out_shape[k], shape.v, (size_t)shape.n * sizeof *shape.v);
        r->dtype = jot_open_dtype(o->f, k);
        r->shape = jot_ints(shape.n, o->out_shape[k]);
        r->nbytes = onnx_nbytes(r);
        if (!r->data || r->nbytes > o->room[k]) {
            void *room = realloc((void *)(uintptr_t)r->data, r->nbytes + 1);
            if (!room)
                return jot_raise(ctx, JOT_EMEM, "onnx: no memory"), false;
            r->data = room;
            o->room[k] = r->nbytes;
        }
        o->out[k] = jot_out((void *)(uintptr_t)r->data, r->nbytes);
    }
    return true;
}

bool
onnx_open_run(jot_Onnx *m, const jot_Tensor *in, jot_Tensor *out, int n_out, bool *done)
{
    int64_t extent[JOT_OPEN_EXTENTS];
    jot_Ints extents = {m->n_bounds, extent};
    OnnxOpened *o = m->opened;

    *done = false;
    if (!m->n_bounds)
        return true;
    if (!opened_extents(m, in, extent))
        return false;
    if (*m->open_why)
        return true;
    while (o && !opened_is(o, in))
        o = o->next;
    if (!o && !(o = opened_make(m, in)))
        return !jot_error(m->ctx);
    for (int k = 0; k < m->n_in; k++)
        o->in[k] = jot_in(in[k].data, in[k].nbytes);
    if (!opened_results(o, extents)
        || !jot_call_open(o->f, extents, jot_ins(m->n_in, o->in), jot_outs(m->n_out, o->out)))
        return false;
    if (n_out)
        memcpy(out, o->result, (size_t)n_out * sizeof *out);
    *done = true;
    return true;
}
