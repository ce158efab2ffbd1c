/* ops/optim.c - optimisers: new values of parameters from gradients, assigned lazily.
 *
 *     sgd    d = g + decay p     b = momentum b + d     p = p - lr b
 *     adam   m = b1 m + (1-b1) g     v = b2 v + (1-b2) g^2     p = p - k m / (sqrt(v) + e)
 *            k = lr sqrt(1 - b2^t) / (1 - b1^t)     e = eps sqrt(1 - b2^t)        t = 1, 2, ...
 *
 * Adam's bias corrections are gathered in k and e (top and bottom of the textbook's quotient times
 * sqrt(1 - b2^t)). What changes from step to step is state: b1^t and b2^t are variables that every
 * step assigns, the learning rate is one that jot_set_lr sets. So a step is the same graph each
 * time, and may be compiled (jot_compile). These scalars are f64 and rounded once, where they meet
 * a parameter.
 *
 * An optimiser is plain memory, and a composition has no allocator: the record is kept in the bytes
 * of a parameter of the context, which gives it the promised lifetime. All new values are built
 * before the first is assigned.
 *
 * Read before: ops/loss.c. */
#include <float.h>
#include "core.h"

typedef enum { OPTIM_SGD, OPTIM_ADAM } OptimKind;

/* One parameter: its state (a: momentum or first moment, b: second moment), and the new values. */
typedef struct { jot_Var param, a, b, next_param, next_a, next_b; } OptimSlot;

struct jot_Optim {
    jot_Ctx *ctx;
    jot_Var bytes; /* where this record lives */
    OptimKind kind;
    int n;
    double momentum, decay;     /* sgd */
    double beta1, beta2, eps;   /* adam */
    jot_Var lr;                 /* scalars: the learning rate; */
    jot_Var power1, power2;     /* adam: beta1^t, beta2^t */
    OptimSlot slot[];
};

static jot_Var
optim_scalar(jot_Ctx *ctx, double value)
{
    return jot_param(ctx, JOT_F64, JOT_SHAPE(), &value);
}

/* Live floats, each of them once: the second of two assignments would be the one that counts. */
static bool
optim_params_ok(jot_Ctx *ctx, jot_Vars params, const char *op)
{
    for (int k = 0; k < params.n; k++) {
        jot_Var p = params.v[k];
        if (!jot_ok(p) || p.ctx != ctx) {
            jot_raise(ctx, JOT_EHANDLE,
                      "%s: parameter %d: a live handle of this context asked, none "
                      "found",
                      op, k);
            return false;
        }
        if (jot_dtype(p) < JOT_F16) {
            jot_raise(ctx, JOT_EDTYPE, "%s: parameter %d: a float dtype asked, %s found", op, k,
                      jot_dtype_name(jot_dtype(p)));
            return false;
        }
        for (int j = 0; j < k; j++)
            if (params.v[j].slot == p.slot) {
                jot_raise(ctx, JOT_EUSE, "%s: parameters %d and %d are the same variable", op, j,
                          k);
                return false;
            }
    }
    return params.n > 0;
}

/* At least 0 and finite, or below 1 where it is a fraction; NaN is neither. */
static bool
optim_rate_ok(jot_Ctx *ctx, const char *op, const char *name, double rate, bool fraction)
{
    if (rate >= 0 && (fraction ? rate < 1 : rate <= DBL_MAX))
        return true;
    if (fraction) /* a bias correction divides by 0 there, above it moments grow */
        jot_raise(ctx, JOT_ERANGE, "%s: %s: 0 <= %s < 1 asked, %g found", op, name, name, rate);
    else
        jot_raise(ctx, JOT_ERANGE, "%s: %s: a finite number of at least 0 asked, %g found", op,
                  name, rate);
    return false;
}

/* A cleared record for n parameters, or NULL. The bytes are an optimiser's alone: a parameter
 * shares its elements with nobody. */
static jot_Optim *
optim_record(jot_Ctx *ctx, int n)
{
    size_t nbytes = sizeof(jot_Optim) + (size_t)n * sizeof(OptimSlot);
    jot_Var bytes = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)nbytes), NULL);
    jot_Optim *o = (jot_Optim *)(uintptr_t)jot_data(bytes);
    if (!o) {
        jot_free(bytes);
        return NULL;
    }
    o->ctx = ctx;
    o->bytes = bytes;
    return o;
}

static jot_Var
optim_state(jot_Var param)
{
    return jot_param(param.ctx, jot_dtype(param), jot_shape(param), NULL);
}

static jot_Optim *
optim_new(OptimKind kind, jot_Vars params, double lr, bool a, bool b)
{
    jot_Optim *o;
    bool fine = true;
    if (!(o = optim_record(jot_ctx_of(params), params.n)))
        return NULL;
    o->kind = kind;
    o->lr = optim_scalar(o->ctx, lr);
    fine = jot_ok(o->lr);
    for (; o->n < params.n && fine; o->n++) {
        OptimSlot *s = &o->slot[o->n];
        s->param = params.v[o->n];
        if (a)
            s->a = optim_state(s->param);
        if (b)
            s->b = optim_state(s->param);
        fine = (!a || jot_ok(s->a)) && (!b || jot_ok(s->b));
    }
    if (!fine) {
        jot_optim_free(o);
        return NULL;
    }
    return o;
}

jot_Optim *
jot_sgd(jot_Vars params, double lr, double momentum, double weight_decay)
{
    jot_Ctx *ctx = jot_ctx_of(params);
    jot_Optim *o;
    if (!ctx || !optim_params_ok(ctx, params, "sgd") ||
        !optim_rate_ok(ctx, "sgd", "lr", lr, false) ||
        !optim_rate_ok(ctx, "sgd", "momentum", momentum, false) ||
        !optim_rate_ok(ctx, "sgd", "weight_decay", weight_decay, false))
        return NULL;
    o = optim_new(OPTIM_SGD, params, lr, momentum != 0, false);
    if (o) {
        o->momentum = momentum;
        o->decay = weight_decay;
    }
    return o;
}

jot_Optim *
jot_adam(jot_Vars params, double lr, double beta1, double beta2, double eps)
{
    jot_Ctx *ctx = jot_ctx_of(params);
    jot_Optim *o;
    if (!ctx || !optim_params_ok(ctx, params, "adam") ||
        !optim_rate_ok(ctx, "adam", "lr", lr, false) ||
        !optim_rate_ok(ctx, "adam", "beta1", beta1, true) ||
        !optim_rate_ok(ctx, "adam", "beta2", beta2, true) ||
        !optim_rate_ok(ctx, "adam", "eps", eps, false))
        return NULL;
    if (!(o = optim_new(OPTIM_ADAM, params, lr, true, true)))
        return NULL;
    o->beta1 = beta1;
    o->beta2 = beta2;
    o->eps = eps;
    o->power1 = optim_scalar(o->ctx, 1);
    o->power2 = optim_scalar(o->ctx, 1);
    if (jot_ok(o->power1) && jot_ok(o->power2))
        return o;
    jot_optim_free(o);
    return NULL;
}

/* a scalar as an operand of v */
static jot_Var
optim_as(jot_Var scalar, jot_Var v)
{
    return jot_cast(scalar, jot_dtype(v));
}

static void
optim_sgd(const jot_Optim *o, OptimSlot *s, jot_Var g)
{
    if (o->decay != 0)
        g = jot_add(g, jot_scale(s->param, o->decay));
    if (o->momentum != 0)
        g = s->next_a = jot_add(jot_scale(s->a, o->momentum), g);
    s->next_param = jot_sub(s->param, jot_mul(g, optim_as(o->lr, g)));
}

/* rate: k, eps: e of the head of this file. */
static void
optim_adam(const jot_Optim *o, OptimSlot *s, jot_Var g, jot_Var rate, jot_Var eps)
{
    s->next_a = jot_add(jot_scale(s->a, o->beta1), jot_scale(g, 1 - o->beta1));
    s->next_b = jot_add(jot_scale(s->b, o->beta2), jot_scale(jot_mul(g, g), 1 - o->beta2));
    jot_Var step = jot_div(s->next_a, jot_add(jot_sqrt(s->next_b), optim_as(eps, g)));
    s->next_param = jot_sub(s->param, jot_mul(step, optim_as(rate, g)));
}

static bool
optim_grad_ok(const jot_Optim *o, int k, jot_Var g)
{
    jot_Var p = o->slot[k].param;
    bool same;
    if (!jot_ok(p) || !jot_ok(g)) {
        jot_raise(o->ctx, JOT_EHANDLE, "step: %s %d: a live handle asked, none found",
                  jot_ok(p) ? "gradient" : "parameter", k);
        return false;
    }
    same = jot_rank(p) == jot_rank(g) && jot_dtype(p) == jot_dtype(g);
    for (int d = 0; same && d < jot_rank(p); d++)
        same = jot_extent(p, d) == jot_extent(g, d);
    if (!same)
        jot_raise(o->ctx, JOT_ESHAPE, "step: gradient %d: shape and dtype of its parameter asked "
                  "(%s, rank %d, %lld elements), %s, rank %d, %lld elements found", k,
                  jot_dtype_name(jot_dtype(p)), jot_rank(p), (long long)jot_nelem(p),
                  jot_dtype_name(jot_dtype(g)), jot_rank(g), (long long)jot_nelem(g));
    return same;
}

static bool
optim_slot_ok(const jot_Optim *o, const OptimSlot *s)
{
    bool a = o->kind == OPTIM_ADAM || o->momentum != 0, b = o->kind == OPTIM_ADAM;
    return jot_ok(s->next_param) && (!a || jot_ok(s->next_a)) && (!b || jot_ok(s->next_b));
}

static bool
optim_assign(jot_Optim *o)
{
    bool fine = true;
    for (int k = 0; k < o->n && fine; k++) {
        OptimSlot *s = &o->slot[k];
        fine = jot_assign(s->param, s->next_param);
        if (fine && (o->kind == OPTIM_ADAM || o->momentum != 0))
            fine = jot_assign(s->a, s->next_a);
        if (fine && o->kind == OPTIM_ADAM)
            fine = jot_assign(s->b, s->next_b);
    }
    return fine;
}

static bool
optim_build(jot_Optim *o, const jot_Var *grads)
{
    jot_Var power[2] = {{0}, {0}}, rate = {0}, eps = {0};
    bool fine = true;
    if (o->kind == OPTIM_ADAM) {
        power[0] = jot_scale(o->power1, o->beta1);
        power[1] = jot_scale(o->power2, o->beta2);
        jot_Var root = jot_sqrt(jot_offset(jot_neg(power[1]), 1));
        eps = jot_scale(root, o->eps);
        rate = jot_div(jot_mul(root, o->lr), jot_offset(jot_neg(power[0]), 1));
    }
    for (int k = 0; k < o->n && fine; k++) {
        if (o->kind == OPTIM_ADAM)
            optim_adam(o, &o->slot[k], grads[k], rate, eps);
        else
            optim_sgd(o, &o->slot[k], grads[k]);
        fine = optim_slot_ok(o, &o->slot[k]);
    }
    return fine && optim_assign(o)
        && (o->kind != OPTIM_ADAM
            || (jot_assign(o->power1, power[0]) && jot_assign(o->power2, power[1])));
}

bool
jot_step(jot_Optim *o, const jot_Var *grads)
{
    bool fine = o != NULL;
    if (!o)
        return false;
    if (o->n && !grads)
        return jot_raise(o->ctx, JOT_EUSE, "step: grads is NULL"), false;
    for (int k = 0; k < o->n && fine; k++)
        fine = optim_grad_ok(o, k, grads[k]);
    if (!fine)
        return false;
    jot_push(o->ctx);
    fine = optim_build(o, grads);
    jot_pop(o->ctx);
    return fine;
}

void
jot_set_lr(jot_Optim *o, double lr)
{
    if (o && optim_rate_ok(o->ctx, "set_lr", "lr", lr, false))
        jot_set(o->lr, &lr);
}

void
jot_optim_free(jot_Optim *o)
{
    if (!o)
        return;
    for (int k = 0; k < o->n; k++) {
        if (o->slot[k].a.gen)
            jot_free(o->slot[k].a);
        if (o->slot[k].b.gen)
            jot_free(o->slot[k].b);
    }
    if (o->lr.gen)
        jot_free(o->lr);
    if (o->power1.gen)
        jot_free(o->power1);
    if (o->power2.gen)
        jot_free(o->power2);
    jot_free(o->bytes);
}
