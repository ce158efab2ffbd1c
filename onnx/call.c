/* onnx/call.c - what a caller builds of a model: graphs, functions of given shapes, and functions
 * that are kept.
 *
 * A plan is a function for the dtypes and shapes of inputs and, where shapes within depend on them,
 * for the elements of some: these are found by building, with one more input fixed each time that
 * its elements are wanted.
 *
 * Read before: onnx/build.c. After: onnx/table.c. */
#include "onnx/parts.h"

/* ---- graphs ---- */

bool
onnx_built(jot_Onnx *m, jot_Vars in, uint64_t fixed, uint64_t few, jot_Var *out, uint64_t *wanted)
{
    OnnxBuild b = {.m = m, .few = few};
    bool done = onnx_build(&b, in, fixed, out);
    *wanted = b.wanted;
    onnx_end(&b);
    return done;
}

bool
jot_onnx_build_fixed(jot_Onnx *m, jot_Vars in, const bool *fixed, jot_Var *out)
{
    uint64_t mask = 0, wanted;
    for (int k = 0; fixed && k < in.n && k < 61; k++)
        mask |= (uint64_t)fixed[k] << k;
    return m && onnx_built(m, in, mask, 0, out, &wanted);
}

bool
jot_onnx_build(jot_Onnx *m, jot_Vars in, jot_Var *out)
{
    return jot_onnx_build_fixed(m, in, NULL, out);
}

static OnnxValue *
weight_find(jot_Onnx *m, const char *name)
{
    OnnxValue *v = m ? onnx_map_get(&m->weights, name) : NULL;
    if (m && !v)
        jot_raise(m->ctx, JOT_EUSE, "onnx: %s: there is no weight %s", m->name, name);
    return v;
}

jot_Var
jot_onnx_weight(jot_Onnx *m, const char *name)
{
    OnnxValue *v = weight_find(m, name);
    return v ? onnx_tensor(m, m->ctx, v->tensor, v->name) : jot_raise(NULL, JOT_EUSE, "");
}

bool
jot_onnx_set_weight(jot_Onnx *m, const char *name, jot_Var value)
{
    OnnxValue *v = weight_find(m, name);
    bool fits = v != NULL;

    if (!v)
        return false;
    if (value.ctx) {
        const OnnxTensor *t = v->tensor;
        if (!jot_check(m->ctx, value, "onnx_set_weight", "value"))
            return false;
        fits = jot_dtype(value) == onnx_dtype(t->type) && jot_rank(value) == (int)t->n_dims;
        for (size_t d = 0; fits && d < t->n_dims; d++)
            fits = jot_extent(value, (int)d) == t->dims[d];
    }
    if (!fits)
        return jot_raise(m->ctx, JOT_ESHAPE, "onnx: %s: weight %s: a variable of its dtype and "
                         "shape asked", m->name, name), false;
    v->given = value;
    onnx_open_drop(m); /* their builders would take it from now on */
    return true;
}

/* ---- functions ---- */

size_t
onnx_nbytes(const jot_Tensor *t)
{
    size_t n = jot_dtype_nbytes(t->dtype);
    for (int d = 0; d < t->shape.n; d++)
        n *= (size_t)t->shape.v[d];
    return n;
}

static bool
tensors_check(jot_Onnx *m, int n, const jot_Tensor *in, int n_out)
{
    if (n != m->n_in || n_out < 0 || n_out > m->n_out)
        return jot_raise(m->ctx, JOT_EUSE, "onnx: %s: %d inputs and at most %d outputs asked, %d "
                         "and %d found", m->name, m->n_in, m->n_out, n, n_out), false;
    for (int k = 0; k < n; k++) {
        bool good = in[k].dtype >= 0 && in[k].dtype < JOT_DTYPES && in[k].shape.n >= 0
                 && in[k].shape.n <= JOT_MAX_RANK;
        for (int d = 0; good && d < in[k].shape.n; d++)
            good = in[k].shape.v[d] >= 0;
        if (!good || (in[k].data && onnx_nbytes(&in[k]) != in[k].nbytes))
            return jot_raise(m->ctx, JOT_ESHAPE, "onnx: %s: input %s: a dtype, a shape and as many "
                             "bytes asked, %zu found", m->name, m->in[k].name, in[k].nbytes), false;
    }
    return true;
}

/* Graph and function in one scope; out: handles of outputs in it, whose shapes count. */
static jot_Func
compile_in_scope(jot_Onnx *m, int n, const jot_Tensor *in, uint64_t fixed, uint64_t more,
                 jot_Var *all, int n_out, uint64_t *wanted)
{
    jot_Func none = {m->ctx, 0, 0};
    jot_Var *x = all, *open = all + n, *out = all + 2 * n;
    uint64_t few = 0;
    int n_open = 0;

    for (int k = 0; k < n; k++) {
        bool is = k < 61 && fixed >> k & 1;
        x[k] = jot_array(m->ctx, in[k].dtype, in[k].shape, is ? in[k].data : NULL);
        if (!is)
            open[n_open++] = x[k];
        if (!is && k < 61 && jot_nelem(x[k]) <= ONNX_FEW)
            few |= more & (uint64_t)1 << k;
    }
    *wanted = 0;
    if (jot_error(m->ctx) || !onnx_built(m, jot_vars(n, x), fixed, few, out, wanted))
        return none;
    return jot_compile(m->ctx, jot_vars(n_open, open), jot_vars(n_out, out));
}

/* A copy of shapes that lives as long as arena does. */
static bool
results(jot_Onnx *m, OnnxArena *arena, const jot_Var *y, int n, jot_Tensor *out)
{
    for (int k = 0; k < n; k++) {
        int64_t *shape = onnx_take(arena, JOT_MAX_RANK, sizeof *shape);
        jot_Ints s = jot_shape(y[k]);
        if (!shape)
            return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), false;
        if (s.n)
            memcpy(shape, s.v, (size_t)s.n * sizeof *shape);
        out[k].dtype = jot_dtype(y[k]);
        out[k].shape = jot_ints(s.n, shape);
        out[k].data = NULL;
        out[k].nbytes = onnx_nbytes(&out[k]);
    }
    return true;
}

/* more: inputs whose elements are known and may be fixed when they are wanted. */
static jot_Func
compile(jot_Onnx *m, int n, const jot_Tensor *in, uint64_t *fixed, uint64_t more, OnnxArena *arena,
        int n_out, jot_Tensor *out)
{
    jot_Func f = {m->ctx, 0, 0};
    jot_Var *all = calloc((size_t)(2 * n + m->n_out) + 1, sizeof *all);
    uint64_t wanted = 0;
    bool again = all != NULL;

    if (!all)
        jot_raise(m->ctx, JOT_EMEM, "onnx: no memory");
    while (again) {
        jot_push(m->ctx);
        f = compile_in_scope(m, n, in, *fixed, more, all, n_out, &wanted);
        if (jot_func_ok(f) && !results(m, arena, all + 2 * n, n_out, out)) {
            jot_func_free(f);
            f = (jot_Func){m->ctx, 0, 0};
        }
        jot_pop(m->ctx);
        wanted &= ~*fixed;
        again = !jot_func_ok(f) && wanted && !(wanted & ~more);
        if (again)
            jot_clear(m->ctx);
        *fixed |= again ? wanted : 0;
    }
    free(all);
    return f;
}

jot_Func
jot_onnx_compile(jot_Onnx *m, const jot_Tensor *in, int n, jot_Tensor *out, int n_out)
{
    jot_Func none = {m ? m->ctx : NULL, 0, 0};
    uint64_t fixed = 0;

    if (!m || jot_error(m->ctx) || !tensors_check(m, n, in, n_out))
        return none;
    for (int k = 0; k < n && k < 61; k++)
        fixed |= (uint64_t)(in[k].data != NULL) << k;
    return compile(m, n, in, &fixed, 0, &m->arena, n_out, out);
}

/* ---- plans ---- */

static bool
plan_is(const OnnxPlan *p, const jot_Tensor *in)
{
    for (int k = 0; k < p->n; k++) {
        if (p->dtype[k] != in[k].dtype || p->rank[k] != in[k].shape.n)
            return false;
        for (int d = 0; d < p->rank[k]; d++)
            if (p->shape[k][d] != in[k].shape.v[d])
                return false;
        if (p->data[k] && memcmp(p->data[k], in[k].data, in[k].nbytes))
            return false;
    }
    return true;
}

/* What p is for, and memory for what it gives. */
static bool
plan_fill(OnnxPlan *p, const jot_Tensor *in, int n_out)
{
    for (int k = 0; k < p->n; k++) {
        p->dtype[k] = in[k].dtype;
        p->rank[k] = in[k].shape.n;
        if (p->rank[k])
            memcpy(p->shape[k], in[k].shape.v, (size_t)p->rank[k] * sizeof(int64_t));
        if (k < 61 && p->fixed >> k & 1) {
            if (!(p->data[k] = malloc(in[k].nbytes + 1)))
                return false;
            memcpy(p->data[k], in[k].data, in[k].nbytes);
        }
    }
    for (int k = 0; k < n_out; k++) {
        void *room = onnx_take(&p->arena, p->result[k].nbytes + 1, 1);
        if (!room)
            return false;
        p->result[k].data = room;
        p->out[k] = jot_out(room, p->result[k].nbytes);
    }
    return true;
}

static OnnxPlan *
plan_make(jot_Onnx *m, int n, const jot_Tensor *in)
{
    OnnxPlan *p = calloc(1, sizeof *p);
    size_t room = (size_t)n + 1, outs = (size_t)m->n_out;
    uint64_t known = n < 61 ? ((uint64_t)1 << n) - 1 : ((uint64_t)1 << 61) - 1;

    if (!p)
        return jot_raise(m->ctx, JOT_EMEM, "onnx: no memory"), NULL;
    p->n = n;
    p->dtype = onnx_take(&p->arena, room, sizeof *p->dtype);
    p->rank = onnx_take(&p->arena, room, sizeof *p->rank);
    p->shape = onnx_take(&p->arena, room, sizeof *p->shape);
    p->data = onnx_take(&p->arena, room, sizeof *p->data);
    p->in = onnx_take(&p->arena, room, sizeof *p->in);
    p->out = onnx_take(&p->arena, outs, sizeof *p->out);
    p->result = onnx_take(&p->arena, outs, sizeof *p->result);
    bool good = p->dtype && p->rank && p->shape && p->data && p->in && p->out && p->result;
    if (good)
        p->f = compile(m, n, in, &p->fixed, known, &p->arena, m->n_out, p->result);
    if (good && jot_func_ok(p->f) && plan_fill(p, in, m->n_out))
        return p;
    if (!jot_error(m->ctx))
        jot_raise(m->ctx, JOT_EMEM, "onnx: no memory");
    onnx_plan_free(p);
    return NULL;
}

/* The plan for these inputs, first in the list; the last one goes when there are too many. */
static OnnxPlan *
plan_of(jot_Onnx *m, int n, const jot_Tensor *in)
{
    OnnxPlan **at = &m->plans, *p;

    while (*at && !plan_is(*at, in))
        at = &(*at)->next;
    if ((p = *at)) {
        *at = p->next;
    } else {
        if (!(p = plan_make(m, n, in)))
            return NULL;
        if (++m->n_plans > JOT_ONNX_PLANS) {
            for (at = &m->plans; (*at)->next; at = &(*at)->next)
                continue;
            onnx_plan_free(*at);
            *at = NULL;
            m->n_plans--;
        }
    }
    p->next = m->plans;
    return m->plans = p;
}

bool
jot_onnx_run(jot_Onnx *m, const jot_Tensor *in, int n, jot_Tensor *out, int n_out)
{
    OnnxPlan *p;
    int open = 0;

    if (!m || jot_error(m->ctx) || !tensors_check(m, n, in, n_out))
        return false;
    for (int k = 0; k < n; k++)
        if (!in[k].data && onnx_nbytes(&in[k]))
            return jot_raise(m->ctx, JOT_EUSE, "onnx: %s: input %s: elements asked", m->name,
                             m->in[k].name), false;
    bool done;
    if (!onnx_open_run(m, in, out, n_out, &done) || done)
        return done;
    if (!(p = plan_of(m, n, in)))
        return false;
    for (int k = 0; k < n; k++)
        if (!(k < 61 && p->fixed >> k & 1))
            p->in[open++] = jot_in(in[k].data, in[k].nbytes);
    if (!jot_call(p->f, jot_ins(open, p->in), jot_outs(m->n_out, p->out)))
        return false;
    if (n_out)
        memcpy(out, p->result, (size_t)n_out * sizeof *out);
    return true;
}
