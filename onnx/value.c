/* onnx/value.c - values of a graph that is being built: of a name, in either context, held.
 *
 * Every value knows on which inputs its elements depend. What depends on none and is small is built
 * in the model's own context, whose interpreter has the value at once when it is asked for: shape
 * arithmetic never reaches the caller's graph. What depends on none and is large is built in the
 * caller's, and computed once, at the end, where something that depends on an input stands on it.
 *
 * Read before: onnx/tensor.c. After: onnx/attr.c, onnx/build.c. */
#include "onnx/parts.h"

OnnxValue *
onnx_value(OnnxBuild *b, const char *name, uint64_t deps)
{
    OnnxValue *v = onnx_take(&b->arena, 1, sizeof *v);

    if (!v) {
        jot_raise(b->m->ctx, JOT_EMEM, "onnx: no memory");
        return NULL;
    }
    v->name = name;
    v->deps = deps;
    return v;
}

OnnxValue *
onnx_value_of(OnnxBuild *b, jot_Var x, uint64_t deps)
{
    OnnxValue *v = onnx_value(b, "", deps);
    if (v) {
        v->at[x.ctx == b->m->fold] = x;
        v->made = x.ctx != b->m->fold;
    }
    return v;
}

int64_t
onnx_value_nelem(const OnnxValue *v)
{
    return jot_ok(v->at[1]) ? jot_nelem(v->at[1]) : jot_ok(v->at[0]) ? jot_nelem(v->at[0])
         : v->tensor ? onnx_tensor_nelem(v->tensor) : INT64_MAX;
}

/* A constant of the other context: one number where all elements are the same. */
static jot_Var
value_move(jot_Ctx *ctx, jot_Var x)
{
    const uint8_t *p = jot_data(x);
    size_t size = jot_dtype_nbytes(jot_dtype(x));
    int64_t n = jot_nelem(x), k = 1;

    if (!p && n)
        return jot_raise(ctx, jot_error(x.ctx) ? jot_error(x.ctx) : JOT_EMEM, "%s",
                         jot_message(x.ctx));
    while (k < n && k < ONNX_SMALL && !memcmp(p, p + (size_t)k * size, size))
        k++;
    if (!n || k < n)
        return jot_array(ctx, jot_dtype(x), jot_shape(x), p);
    if (n > 1)
        x = jot_slice(jot_reshape(x, JOT_SHAPE(-1)), JOT_INTS(0), JOT_INTS(1), JOT_INTS(1));
    jot_Ints shape = jot_ints(0, NULL);
    jot_Var one = onnx_float(jot_dtype(x)) ? jot_full(ctx, jot_dtype(x), shape, jot_item(x))
                                           : jot_full_int(ctx, jot_dtype(x), shape,
                                                          jot_item_int(x));
    return one;
}

jot_Var
onnx_on(OnnxBuild *b, OnnxValue *v, jot_Ctx *ctx)
{
    int at = ctx == b->m->fold;
    jot_Var from = v->at[!at];

    if (jot_ok(v->at[at]))
        return v->at[at];
    if (jot_ok(from)) {
        v->at[at] = value_move(ctx, from);
        if (jot_rank(v->at[at]) == 0 && jot_rank(from))
            v->at[at] = jot_broadcast_to(v->at[at], jot_shape(from));
        return v->at[at];
    }
    if (v->tensor) {
        v->at[at] = onnx_tensor(b->m, ctx, v->tensor, v->name);
        if (jot_ok(v->at[at]))
            jot_name(v->at[at], v->name);
        return v->at[at];
    }
    return jot_raise(b->m->ctx, JOT_EUSE, "onnx: %s: a tensor asked", v->name);
}

bool
onnx_bind(OnnxBuild *b, OnnxScope *s, const char *name, OnnxValue *v)
{
    if (!v)
        return false;
    if (!*v->name)
        v->name = name;
    if (onnx_map_put(&s->names, name, v))
        return true;
    jot_raise(b->m->ctx, JOT_EMEM, "onnx: no memory");
    return false;
}

/* The model's weights are seen from everywhere but from functions. */
OnnxValue *
onnx_find(OnnxBuild *b, const OnnxScope *s, const char *name)
{
    const OnnxScope *top = s;
    OnnxValue *v = NULL, *w;

    for (; s && !v; s = s->up) {
        v = onnx_map_get(&s->names, name);
        top = s;
    }
    w = v || top->function ? NULL : onnx_map_get(&b->m->weights, name);
    if (!w)
        return v;
    if (!(v = onnx_value(b, w->name, jot_ok(w->given) ? ONNX_GIVEN : 0)))
        return NULL;
    v->tensor = w->tensor;
    v->at[0] = w->given;
    return onnx_bind(b, (OnnxScope *)(uintptr_t)top, w->name, v) ? v : NULL;
}

bool
onnx_given(const OnnxCall *c, int k)
{
    return k < c->n && c->in[k];
}

bool
onnx_known(const OnnxCall *c, int k)
{
    return !onnx_given(c, k) || !c->in[k]->deps;
}

static void
hold(OnnxBuild *b, jot_Var v)
{
    if (b->n_held == b->room_held) {
        int room = b->room_held ? 2 * b->room_held : 64;
        jot_Var *held = realloc(b->held, (size_t)room * sizeof *held);
        if (!held)
            return; /* then it is computed each time */
        b->held = held;
        b->room_held = room;
    }
    b->held[b->n_held++] = v;
}

jot_Var
onnx_hold(OnnxCall *c, jot_Var v, unsigned mask)
{
    bool known = c->ctx != c->b->m->fold && c->deps && jot_ok(v);
    for (int k = 0; k < c->n && k < 32; k++)
        known &= !(mask >> k & 1) || onnx_known(c, k);
    if (known)
        hold(c->b, v);
    return v;
}

void
onnx_hold_operands(OnnxCall *c)
{
    for (int k = 0; k < c->n && c->ctx != c->b->m->fold && c->deps; k++)
        if (c->in[k] && jot_ok(c->x[k]) && !c->in[k]->deps && c->in[k]->made) {
            hold(c->b, c->x[k]);
            c->in[k]->made = false;
        }
}
