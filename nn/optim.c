/* nn/optim.c - optimisers: new values of parameters from gradients, assigned lazily.
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
 * of a parameter of the context, whose handle tells a live optimiser from a stale one. All new
 * values are built before the first is assigned, and then all are, or none.
 *
 *     var   p0 m0 v0 | p1 m1 v1 | ... | b1^t b2^t     targets (of sgd: p, or p and b)
 *           their new values, in the same order
 *
 * Read before: nn/loss_margin.c. */
#include <float.h>
#include "core.h"

typedef enum { OPTIM_SGD, OPTIM_ADAM } OptimKind;

typedef struct {
    jot_Ctx *ctx;
    jot_Var bytes; /* where this record lives: the handle's `state` */
    OptimKind kind;
    int n, each;   /* parameters; variables of each, with what is kept for it */
    int count;     /* variables in all */
    double momentum, decay;     /* sgd */
    double beta1, beta2, eps;   /* adam */
    jot_Var lr;                 /* a scalar: the learning rate */
    jot_Var var[];              /* count variables, then as many new values */
} OptimRecord;

static jot_Var
optim_scalar(jot_Ctx *ctx, double value)
{
    return jot_param(ctx, JOT_F64, JOT_SHAPE(), &value);
}

/* Live floats. */
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

/* A cleared record for so many variables, or NULL. The bytes are an optimiser's alone: a parameter
 * shares its elements with nobody. */
static OptimRecord *
optim_bytes(jot_Ctx *ctx, int count)
{
    size_t nbytes = sizeof(OptimRecord) + 2 * (size_t)count * sizeof(jot_Var);
    jot_Var bytes = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)nbytes), NULL);
    OptimRecord *o = (OptimRecord *)(uintptr_t)jot_data(bytes);
    if (!o) {
        jot_free(bytes);
        return NULL;
    }
    o->ctx = ctx;
    o->bytes = bytes;
    o->count = count;
    return o;
}

/* Each parameter once: the second of two assignments would be the one that counts. The room for new
 * values, four numbers or more for each, is a table of those that were met, by slot. */
static bool
optim_apart(OptimRecord *o, jot_Vars params)
{
    uint32_t *met = (uint32_t *)(o->var + o->count), bits = 1, at; /* 1 + its number; 0: none */
    bool apart = true;
    while ((size_t)8 << bits <= (size_t)o->count * sizeof *o->var)
        bits++;
    for (int k = 0; k < params.n && apart; k++) {
        at = params.v[k].slot * 2654435769u >> (32 - bits);
        while (met[at] && params.v[met[at] - 1].slot != params.v[k].slot)
            at = (at + 1) & ((1u << bits) - 1);
        apart = !met[at];
        if (!apart)
            jot_raise(o->ctx, JOT_EUSE, "%s: parameters %d and %d are the same variable",
                      o->kind == OPTIM_SGD ? "sgd" : "adam", (int)met[at] - 1, k);
        met[at] = (uint32_t)k + 1;
    }
    for (at = 0; at >> bits == 0; at++)
        met[at] = 0;
    return apart;
}

/* The variables of parameter k: itself, then what is kept for it. */
static jot_Var *
optim_of(OptimRecord *o, int k)
{
    return o->var + k * o->each;
}

static jot_Var
optim_state(jot_Var param)
{
    return jot_param(param.ctx, jot_dtype(param), jot_shape(param), NULL);
}

/* All but the parameters: what is kept for them, and the record. */
static void
optim_end(OptimRecord *o)
{
    if (!o)
        return;
    for (int k = 0; k < o->count; k++) {
        bool param = k < o->n * o->each && k % o->each == 0;
        if (!param && o->var[k].gen)
            jot_free(o->var[k]);
    }
    if (o->lr.gen)
        jot_free(o->lr);
    jot_free(o->bytes);
}

/* o NULL: poison. */
static jot_Optim
optim_handle(jot_Ctx *ctx, OptimRecord *o)
{
    jot_Optim optim = {{0}, NULL};
    optim.state.ctx = ctx;
    if (o)
        optim.state = o->bytes;
    optim.record = o;
    return optim;
}

/* Where the handle's record is; NULL, and an error that names op: it is stale or poison. */
static OptimRecord *
optim_record(jot_Optim optim, const char *op)
{
    jot_Ctx *ctx = optim.state.ctx;
    return ctx && jot_check(ctx, optim.state, op, "optim") ? optim.record : NULL;
}

bool
jot_optim_ok(jot_Optim optim)
{
    return jot_ok(optim.state);
}

/* With so many variables for each parameter, and so many for all: scalars that begin as 1. */
static OptimRecord *
optim_new(OptimKind kind, jot_Vars params, double lr, int each, int more)
{
    OptimRecord *o = optim_bytes(jot_ctx_of(params), params.n * each + more);
    bool fine;
    if (!o)
        return NULL;
    o->kind = kind;
    o->each = each;
    o->n = params.n;
    fine = optim_apart(o, params) && jot_ok(o->lr = optim_scalar(o->ctx, lr));
    for (int k = 0; k < o->n && fine; k++) {
        jot_Var *of = optim_of(o, k);
        of[0] = params.v[k];
        for (int j = 1; j < each && fine; j++)
            fine = jot_ok(of[j] = optim_state(of[0]));
    }
    for (int k = o->n * each; k < o->count && fine; k++)
        fine = jot_ok(o->var[k] = optim_scalar(o->ctx, 1));
    if (!fine) {
        optim_end(o);
        return NULL;
    }
    return o;
}

jot_Optim
jot_sgd(jot_Vars params, double lr, double momentum, double weight_decay)
{
    jot_Ctx *ctx = jot_ctx_of(params);
    OptimRecord *o;
    if (!ctx || !optim_params_ok(ctx, params, "sgd") ||
        !optim_rate_ok(ctx, "sgd", "lr", lr, false) ||
        !optim_rate_ok(ctx, "sgd", "momentum", momentum, false) ||
        !optim_rate_ok(ctx, "sgd", "weight_decay", weight_decay, false))
        return optim_handle(ctx, NULL);
    o = optim_new(OPTIM_SGD, params, lr, momentum != 0 ? 2 : 1, 0);
    if (o) {
        o->momentum = momentum;
        o->decay = weight_decay;
    }
    return optim_handle(ctx, o);
}

jot_Optim
jot_adam(jot_Vars params, double lr, double beta1, double beta2, double eps)
{
    jot_Ctx *ctx = jot_ctx_of(params);
    OptimRecord *o;
    if (!ctx || !optim_params_ok(ctx, params, "adam") ||
        !optim_rate_ok(ctx, "adam", "lr", lr, false) ||
        !optim_rate_ok(ctx, "adam", "beta1", beta1, true) ||
        !optim_rate_ok(ctx, "adam", "beta2", beta2, true) ||
        !optim_rate_ok(ctx, "adam", "eps", eps, false))
        return optim_handle(ctx, NULL);
    o = optim_new(OPTIM_ADAM, params, lr, 3, 2);
    if (o) {
        o->beta1 = beta1;
        o->beta2 = beta2;
        o->eps = eps;
    }
    return optim_handle(ctx, o);
}

/* a scalar as an operand of v */
static jot_Var
optim_as(jot_Var scalar, jot_Var v)
{
    return jot_cast(scalar, jot_dtype(v));
}

/* now: parameter, momentum; next: their new values. */
static void
optim_sgd(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    if (o->decay != 0)
        g = jot_add(g, jot_scale(now[0], o->decay));
    if (o->momentum != 0)
        g = next[1] = jot_add(jot_scale(now[1], o->momentum), g);
    next[0] = jot_sub(now[0], jot_mul(g, optim_as(o->lr, g)));
}

/* now: parameter, first and second moment; rate: k, eps: e of the head of this file. */
static void
optim_adam(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g, jot_Var rate,
           jot_Var eps)
{
    next[1] = jot_add(jot_scale(now[1], o->beta1), jot_scale(g, 1 - o->beta1));
    next[2] = jot_add(jot_scale(now[2], o->beta2), jot_scale(jot_mul(g, g), 1 - o->beta2));
    jot_Var step = jot_div(next[1], jot_add(jot_sqrt(next[2]), optim_as(eps, g)));
    next[0] = jot_sub(now[0], jot_mul(step, optim_as(rate, g)));
}

static bool
optim_grad_ok(OptimRecord *o, int k, jot_Var g)
{
    jot_Var p = *optim_of(o, k);
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
optim_build(OptimRecord *o, const jot_Var *grads)
{
    jot_Var *now = o->var, *next = o->var + o->count, rate = {0}, eps = {0};
    if (o->kind == OPTIM_ADAM) {
        int at = o->n * o->each;
        next[at] = jot_scale(now[at], o->beta1);
        next[at + 1] = jot_scale(now[at + 1], o->beta2);
        jot_Var root = jot_sqrt(jot_offset(jot_neg(next[at + 1]), 1));
        eps = jot_scale(root, o->eps);
        rate = jot_div(jot_mul(root, o->lr), jot_offset(jot_neg(next[at]), 1));
    }
    for (int k = 0; k < o->n; k++, now += o->each, next += o->each) {
        if (o->kind == OPTIM_ADAM)
            optim_adam(o, now, next, grads[k], rate, eps);
        else
            optim_sgd(o, now, next, grads[k]);
    }
    return jot_assign_all(jot_vars(o->count, o->var), jot_vars(o->count, o->var + o->count));
}

bool
jot_step(jot_Optim optim, const jot_Var *grads)
{
    OptimRecord *o = optim_record(optim, "step");
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
jot_set_lr(jot_Optim optim, double lr)
{
    OptimRecord *o = optim_record(optim, "set_lr");
    if (o && optim_rate_ok(o->ctx, "set_lr", "lr", lr, false))
        jot_set(o->lr, &lr);
}

void
jot_optim_free(jot_Optim optim)
{
    if (optim.state.slot)
        optim_end(optim_record(optim, "optim_free"));
}
