/* onnx/attr.c - attributes and operands as C has them.
 *
 * Operands that say how (axes, shapes, counts) are read as numbers while the graph is built; one
 * whose elements depend on an input is `wanted`, and jot_onnx_run builds again with that input's
 * elements as constants.
 *
 * Read before: onnx/value.c. After: onnx/table.c. */
#include "onnx/parts.h"
#include <stdarg.h>

bool
onnx_fail(OnnxCall *c, jot_Status status, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    jot_raise(c->ctx, status, "%s", text);
    return false;
}

/* In a function's body an attribute may be its caller's. */
const OnnxAttr *
onnx_attr(const OnnxScope *s, const OnnxNode *node, const char *name)
{
    for (size_t k = 0; k < node->n_attributes; k++) {
        const OnnxAttr *a = node->attributes[k];
        if (strcmp(onnx_s(a->name), name))
            continue;
        if (!*onnx_s(a->of_caller))
            return a;
        for (; s && !s->function; s = s->up)
            continue;
        const OnnxAttr *of = s ? onnx_attr(s->from, s->caller, a->of_caller) : NULL;
        for (size_t d = 0; s && !of && d < s->function->n_defaults; d++)
            if (!strcmp(onnx_s(s->function->defaults[d]->name), a->of_caller))
                of = s->function->defaults[d];
        return of;
    }
    return NULL;
}

int64_t
onnx_i(const OnnxCall *c, const char *name, int64_t otherwise)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, name);
    return a && a->has_i ? a->i : otherwise;
}

int
onnx_int(const OnnxCall *c, const char *name, int otherwise)
{
    int64_t i = onnx_i(c, name, otherwise);
    return i > INT32_MAX ? INT32_MAX : i < INT32_MIN ? INT32_MIN : (int)i;
}

double
onnx_f(const OnnxCall *c, const char *name, double otherwise)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, name);
    return a && a->has_f ? (double)a->f : otherwise;
}

const char *
onnx_text(OnnxCall *c, const char *name, const char *otherwise)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, name);
    char *to = a && a->has_s ? onnx_take(&c->b->arena, a->s.len + 1, 1) : NULL;
    if (to && a->s.len)
        memcpy(to, a->s.data, a->s.len);
    return to ? to : otherwise;
}

bool
onnx_is(OnnxCall *c, const char *name, const char *text)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, name);
    return a && a->has_s && a->s.len == strlen(text) && !memcmp(a->s.data, text, a->s.len);
}

jot_Ints
onnx_ints(const OnnxCall *c, const char *name)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, name);
    return a && a->n_ints <= 1 << 20 ? jot_ints((int)a->n_ints, a->ints) : jot_ints(0, NULL);
}

/* The first input that deps names. */
static const char *
deps_name(const OnnxBuild *b, uint64_t deps)
{
    for (int k = 0; k < b->n_in && k < 61; k++)
        if (deps >> k & 1)
            return b->in[k]->name;
    return deps & ONNX_RANDOM ? "random numbers" : deps & ONNX_GIVEN ? "a weight that was set"
                                                                     : "an input";
}

static const void *
read_as(OnnxCall *c, int k, jot_DType dtype, int64_t *n)
{
    OnnxValue *v = onnx_given(c, k) ? c->in[k] : NULL;
    jot_Var x;

    if (!v)
        return onnx_fail(c, JOT_EUSE, "operand %d: asked, none found", k), NULL;
    if (v->deps) {
        c->b->wanted |= v->deps;
        return onnx_fail(c, JOT_EUSE, "operand %d (%s): its elements are asked while the graph is "
                         "built, and depend on %s", k, v->name, deps_name(c->b, v->deps)), NULL;
    }
    if (onnx_value_nelem(v) > ONNX_LARGE)
        return onnx_fail(c, JOT_ESHAPE, "operand %d (%s): at most %d elements asked, %lld found", k,
                         v->name, ONNX_LARGE, (long long)onnx_value_nelem(v)), NULL;
    x = onnx_on(c->b, v, c->b->m->fold);
    *n = jot_nelem(x);
    return jot_data(jot_cast(x, dtype));
}

bool
onnx_read(OnnxCall *c, int k, jot_Ints *to)
{
    int64_t n = 0;
    to->v = read_as(c, k, JOT_I64, &n);
    to->n = (int)n;
    return to->v != NULL;
}

const double *
onnx_read_f64(OnnxCall *c, int k)
{
    int64_t n;
    return read_as(c, k, JOT_F64, &n);
}

bool
onnx_scalar(OnnxCall *c, int k, int64_t *to)
{
    jot_Ints v;
    if (!onnx_read(c, k, &v))
        return false;
    if (v.n != 1)
        return onnx_fail(c, JOT_ESHAPE, "operand %d: one element asked, %d found", k, v.n);
    *to = v.v[0];
    return true;
}

bool
onnx_ints_or(OnnxCall *c, const char *name, int since, int k, jot_Ints *to, bool *given)
{
    if (onnx_version(c) >= since) {
        *to = jot_ints(0, NULL);
        *given = onnx_given(c, k);
        return !*given || onnx_read(c, k, to);
    }
    *given = onnx_attr(c->s, c->node, name) != NULL;
    *to = onnx_ints(c, name);
    return true;
}

bool
onnx_axis(OnnxCall *c, int64_t *axis, int rank)
{
    if (*axis < -rank || *axis >= rank)
        return onnx_fail(c, JOT_ERANGE, "axis: %d..%d asked, %lld found", -rank, rank - 1,
                         (long long)*axis);
    *axis += *axis < 0 ? rank : 0;
    return true;
}

bool
onnx_axes(OnnxCall *c, jot_Ints axes, int rank, int64_t to[JOT_MAX_RANK])
{
    uint32_t seen = 0;
    for (int k = 0; k < axes.n; k++) {
        int64_t a = axes.v[k];
        if (!onnx_axis(c, &a, rank))
            return false;
        if (seen >> a & 1)
            return onnx_fail(c, JOT_ERANGE, "axes: %lld stands twice", (long long)a);
        seen |= 1u << a;
        to[k] = a;
    }
    return true;
}

bool
onnx_const(OnnxCall *c, int out, jot_DType dtype, jot_Ints shape, const void *data)
{
    jot_Ctx *fold = c->b->m->fold;
    c->value[out] = onnx_value_of(c->b, jot_array(fold, dtype, shape, data), 0);
    return c->value[out] && jot_ok(c->value[out]->at[1]);
}
