/* nn/optim.c - optimisers: new values of parameters from gradients, assigned lazily.
 *
 *     sgd    d = g + decay p     b = momentum b + d     p = p - lr b
 *     adam   m = b1 m + (1-b1) g     v = b2 v + (1-b2) g^2     p = p - k m / (sqrt(v) + e)
 *            k = lr sqrt(1 - b2^t) / (1 - b1^t)     e = eps sqrt(1 - b2^t)        t = 1, 2, ...
 *
 * The others are variations (nn.h has their formulas): a row of optim_kinds says how many variables
 * each keeps for a parameter, and which function makes the new values of all of them.
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
 *           own numbers of each parameter: its part of the rate, its decay
 *
 * Read before: nn/loss/margin.c. */
#include <float.h>
#include "nn.h"
#include "nn/parts.h"

/* Numbers of an optimiser; each kind has some of them. decay: of weights. */
typedef struct { double lr, momentum, beta1, beta2, eps, decay; } OptimNumbers;
/* ... of one parameter: by how much its rate is the optimiser's. */
typedef struct { double times, decay; } OptimOwn;

typedef struct OptimRecord OptimRecord;
/* now: the variables of a parameter; next: room for their new values. */
typedef void OptimFn(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g);

typedef struct {
    const char *name;
    const char *kept[2]; /* what is kept for a parameter, in order */
    OptimFn *step;
    int each;      /* variables of a parameter, with what is kept for it; one more with momentum: */
    bool momentum, corrected; /* b1^t and b2^t are kept */
    bool unit;     /* its k is without lr */
} OptimKind;

struct OptimRecord {
    jot_Ctx *ctx;
    jot_Var bytes; /* where this record lives: the handle's `state` */
    const OptimKind *kind;
    int n, each;   /* parameters; variables of each */
    int count;     /* variables in all */
    OptimNumbers is; /* decay: of the parameter whose step is built */
    jot_Var lr0;   /* a scalar: the learning rate */
    jot_Var lr;    /* of the parameter whose step is built */
    jot_Var rate, small; /* ... lr, or k and e of Adam */
    OptimOwn *own; /* one per parameter, behind var */
    jot_Var var[]; /* count variables, then as many new values */
};

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

/* A cleared record for n parameters and so many variables, or NULL. The bytes are an optimiser's
 * alone: a parameter shares its elements with nobody. */
static OptimRecord *
optim_bytes(jot_Ctx *ctx, int n, int count)
{
    size_t vars = 2 * (size_t)count * sizeof(jot_Var);
    size_t nbytes = sizeof(OptimRecord) + vars + (size_t)n * sizeof(OptimOwn);
    jot_Var bytes = jot_param(ctx, JOT_U8, JOT_SHAPE((int64_t)nbytes), NULL);
    OptimRecord *o = (OptimRecord *)(uintptr_t)jot_data(bytes);
    if (!o) {
        jot_free(bytes);
        return NULL;
    }
    o->ctx = ctx;
    o->bytes = bytes;
    o->n = n;
    o->count = count;
    o->own = (OptimOwn *)(o->var + 2 * count);
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
                      o->kind->name, (int)met[at] - 1, k);
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
    if (o->lr0.gen)
        jot_free(o->lr0);
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

/* With the variables of its kind for each parameter, and scalars that begin as 1. */
static OptimRecord *
optim_new(const OptimKind *kind, jot_Vars params, const OptimNumbers *is)
{
    int each = kind->each + (kind->momentum && is->momentum != 0);
    int count = params.n * each + 2 * kind->corrected;
    OptimRecord *o = optim_bytes(jot_ctx_of(params), params.n, count);
    bool fine;
    if (!o)
        return NULL;
    o->kind = kind;
    o->is = *is;
    o->each = each;
    fine = optim_apart(o, params) && jot_ok(o->lr0 = optim_scalar(o->ctx, is->lr));
    for (int k = 0; k < o->n && fine; k++) {
        jot_Var *of = optim_of(o, k);
        o->own[k].times = 1;
        o->own[k].decay = is->decay;
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

/* ---- kinds: the new values of a parameter and of what is kept for it ---- */

/* a scalar as an operand of v */
static jot_Var
optim_as(jot_Var scalar, jot_Var v)
{
    return jot_cast(scalar, jot_dtype(v));
}

/* b a + (1 - b) v */
static jot_Var
optim_mean(jot_Var a, double b, jot_Var v)
{
    return jot_add(jot_scale(a, b), jot_scale(v, 1 - b));
}

static jot_Var
optim_decayed(const OptimRecord *o, jot_Var g, jot_Var p)
{
    return o->is.decay != 0 ? jot_add(g, jot_scale(p, o->is.decay)) : g;
}

/* p - lr (step + decay p): of weights by themselves, not through the gradient */
static jot_Var
optim_apart_decayed(const OptimRecord *o, jot_Var p, jot_Var step)
{
    jot_Var keep = jot_offset(jot_scale(o->lr, -o->is.decay), 1);
    return jot_sub(o->is.decay != 0 ? jot_mul(p, optim_as(keep, p)) : p, step);
}

static jot_Var
optim_times(jot_Var step, jot_Var rate)
{
    return jot_mul(step, optim_as(rate, step));
}

/* now: parameter, momentum */
static void
optim_sgd(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    g = optim_decayed(o, g, now[0]);
    if (o->is.momentum != 0)
        g = next[1] = jot_add(jot_scale(now[1], o->is.momentum), g);
    next[0] = jot_sub(now[0], optim_times(g, o->rate));
}

static void
optim_nesterov(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    g = optim_decayed(o, g, now[0]);
    next[1] = jot_add(jot_scale(now[1], o->is.momentum), g);
    g = jot_add(g, jot_scale(next[1], o->is.momentum));
    next[0] = jot_sub(now[0], optim_times(g, o->rate));
}

/* now: parameter, first and second moment; m / (sqrt(v) + e) */
static jot_Var
optim_moments(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    next[1] = optim_mean(now[1], o->is.beta1, g);
    next[2] = optim_mean(now[2], o->is.beta2, jot_mul(g, g));
    return jot_div(next[1], jot_add(jot_sqrt(next[2]), optim_as(o->small, g)));
}

static void
optim_adam(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    next[0] = jot_sub(now[0], optim_times(optim_moments(o, now, next, g), o->rate));
}

static void
optim_adamw(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    jot_Var step = optim_times(optim_moments(o, now, next, g), o->rate);
    next[0] = optim_apart_decayed(o, now[0], step);
}

/* The step of Adam as a direction, as long as the parameter: where either is 0, as it is. */
static void
optim_lamb(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    jot_Var step = optim_times(optim_moments(o, now, next, g), o->rate);
    step = optim_decayed(o, step, now[0]);
    jot_Var long_p = jot_sum(jot_square(nn_wide(now[0])), JOT_ALL_DIMS);
    jot_Var long_s = jot_sum(jot_square(nn_wide(step)), JOT_ALL_DIMS);
    jot_Var none = jot_eq(jot_mul(long_p, long_s), nn_zero(long_p));
    jot_Var one = nn_number(long_p, 1);
    jot_Var trust = jot_sqrt(jot_where(none, one, jot_div(long_p, long_s)));
    next[0] = jot_sub(now[0], optim_times(step, jot_mul(trust, optim_as(o->lr, trust))));
}

/* now: parameter, mean of squares, momentum */
static void
optim_rmsprop(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    g = optim_decayed(o, g, now[0]);
    next[1] = optim_mean(now[1], o->is.beta2, jot_mul(g, g));
    jot_Var step = jot_div(g, jot_offset(jot_sqrt(next[1]), o->is.eps));
    if (o->is.momentum != 0)
        step = next[2] = jot_add(jot_scale(now[2], o->is.momentum), step);
    next[0] = jot_sub(now[0], optim_times(step, o->rate));
}

/* now: parameter, sum of squares */
static void
optim_adagrad(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    g = optim_decayed(o, g, now[0]);
    next[1] = jot_add(now[1], jot_mul(g, g));
    jot_Var step = jot_div(g, jot_offset(jot_sqrt(next[1]), o->is.eps));
    next[0] = jot_sub(now[0], optim_times(step, o->rate));
}

/* now: parameter, momentum */
static void
optim_lion(const OptimRecord *o, const jot_Var *now, jot_Var *next, jot_Var g)
{
    jot_Var step = jot_sign(optim_mean(now[1], o->is.beta1, g));
    next[1] = optim_mean(now[1], o->is.beta2, g);
    next[0] = optim_apart_decayed(o, now[0], optim_times(step, o->rate));
}

enum { OPTIM_SGD, OPTIM_NESTEROV, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_LAMB, OPTIM_RMSPROP,
       OPTIM_ADAGRAD, OPTIM_LION };
static const OptimKind optim_kinds[] = {
    {"sgd", {"momentum"}, optim_sgd, 1, true, false, false},
    {"nesterov", {"momentum"}, optim_nesterov, 2, false, false, false},
    {"adam", {"mean", "square"}, optim_adam, 3, false, true, false},
    {"adamw", {"mean", "square"}, optim_adamw, 3, false, true, false},
    {"lamb", {"mean", "square"}, optim_lamb, 3, false, true, true},
    {"rmsprop", {"square", "momentum"}, optim_rmsprop, 2, true, false, false},
    {"adagrad", {"square"}, optim_adagrad, 2, false, false, false},
    {"lion", {"momentum"}, optim_lion, 2, false, false, false},
};

/* ---- one of a kind ---- */

static jot_Optim
optim_make(int kind, jot_Vars params, OptimNumbers is)
{
    const OptimKind *k = &optim_kinds[kind];
    jot_Ctx *ctx = jot_ctx_of(params);
    if (!ctx || !optim_params_ok(ctx, params, k->name) ||
        !optim_rate_ok(ctx, k->name, "lr", is.lr, false) ||
        !optim_rate_ok(ctx, k->name, "momentum", is.momentum, false) ||
        !optim_rate_ok(ctx, k->name, "beta1", is.beta1, true) ||
        !optim_rate_ok(ctx, k->name, kind == OPTIM_RMSPROP ? "alpha" : "beta2", is.beta2, true) ||
        !optim_rate_ok(ctx, k->name, "eps", is.eps, false) ||
        !optim_rate_ok(ctx, k->name, "weight_decay", is.decay, false))
        return optim_handle(ctx, NULL);
    return optim_handle(ctx, optim_new(k, params, &is));
}

jot_Optim
jot_sgd(jot_Vars params, double lr, double momentum, double weight_decay)
{
    OptimNumbers is = {.lr = lr, .momentum = momentum, .decay = weight_decay};
    return optim_make(OPTIM_SGD, params, is);
}

jot_Optim
jot_nesterov(jot_Vars params, double lr, double momentum, double weight_decay)
{
    OptimNumbers is = {.lr = lr, .momentum = momentum, .decay = weight_decay};
    return optim_make(OPTIM_NESTEROV, params, is);
}

jot_Optim
jot_adam(jot_Vars params, double lr, double beta1, double beta2, double eps)
{
    OptimNumbers is = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps};
    return optim_make(OPTIM_ADAM, params, is);
}

jot_Optim
jot_adamw(jot_Vars params, double lr, double beta1, double beta2, double eps, double weight_decay)
{
    OptimNumbers is = {lr, 0, beta1, beta2, eps, weight_decay};
    return optim_make(OPTIM_ADAMW, params, is);
}

jot_Optim
jot_lamb(jot_Vars params, double lr, double beta1, double beta2, double eps, double weight_decay)
{
    OptimNumbers is = {lr, 0, beta1, beta2, eps, weight_decay};
    return optim_make(OPTIM_LAMB, params, is);
}

jot_Optim
jot_rmsprop(jot_Vars params, double lr, double alpha, double eps, double momentum,
            double weight_decay)
{
    OptimNumbers is = {lr, momentum, 0, alpha, eps, weight_decay};
    return optim_make(OPTIM_RMSPROP, params, is);
}

jot_Optim
jot_adagrad(jot_Vars params, double lr, double eps, double weight_decay)
{
    OptimNumbers is = {.lr = lr, .eps = eps, .decay = weight_decay};
    return optim_make(OPTIM_ADAGRAD, params, is);
}

jot_Optim
jot_lion(jot_Vars params, double lr, double beta1, double beta2, double weight_decay)
{
    OptimNumbers is = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .decay = weight_decay};
    return optim_make(OPTIM_LION, params, is);
}

/* ---- a step ---- */

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

/* The scalars of the step of a parameter whose part of the rate is `times`. */
static void
optim_rates(OptimRecord *o, double times)
{
    o->rate = o->lr = times != 1 ? jot_scale(o->lr0, times) : o->lr0;
    if (!o->kind->corrected)
        return;
    const jot_Var *next = o->var + o->count + o->n * o->each;
    jot_Var root = jot_sqrt(jot_offset(jot_neg(next[1]), 1));
    o->small = jot_scale(root, o->is.eps);
    jot_Var top = o->kind->unit ? root : jot_mul(root, o->lr);
    o->rate = jot_div(top, jot_offset(jot_neg(next[0]), 1));
}

static bool
optim_build(OptimRecord *o, const jot_Var *grads, jot_Var when)
{
    jot_Var *now = o->var, *next = o->var + o->count;
    if (o->kind->corrected) {
        int at = o->n * o->each;
        next[at] = jot_scale(now[at], o->is.beta1);
        next[at + 1] = jot_scale(now[at + 1], o->is.beta2);
    }
    for (int k = 0; k < o->n; k++, now += o->each, next += o->each) {
        if (!k || o->own[k].times != o->own[k - 1].times)
            optim_rates(o, o->own[k].times);
        o->is.decay = o->own[k].decay;
        o->kind->step(o, now, next, grads[k]);
    }
    for (int k = 0; k < o->count && nn_given(when); k++)
        o->var[o->count + k] = jot_where(when, o->var[o->count + k], o->var[k]);
    return jot_assign_all(jot_vars(o->count, o->var), jot_vars(o->count, o->var + o->count));
}

/* when an empty handle: always */
static bool
optim_step(jot_Optim optim, jot_Vars grads, jot_Var when, const char *op)
{
    OptimRecord *o = optim_record(optim, op);
    bool fine = o != NULL;
    if (!o)
        return false;
    if (grads.n != o->n)
        return jot_raise(o->ctx, JOT_ERANGE, "%s: grads: %d asked, one for each parameter, %d "
                         "found", op, o->n, grads.n), false;
    if (o->n && !grads.v)
        return jot_raise(o->ctx, JOT_EUSE, "%s: grads is NULL", op), false;
    for (int k = 0; k < o->n && fine; k++)
        fine = optim_grad_ok(o, k, grads.v[k]);
    if (!fine)
        return false;
    jot_push(o->ctx);
    fine = optim_build(o, grads.v, when);
    jot_pop(o->ctx);
    return fine;
}

bool
jot_step(jot_Optim optim, jot_Vars grads)
{
    return optim_step(optim, grads, jot_none(), "step");
}

bool
jot_step_if(jot_Optim optim, jot_Vars grads, jot_Var when)
{
    OptimRecord *o = optim_record(optim, "step_if");
    if (!o || !jot_check(o->ctx, when, "step_if", "when"))
        return false;
    if (jot_dtype(when) != JOT_BOOL || jot_rank(when) != 0) {
        jot_raise(o->ctx, JOT_EDTYPE, "step_if: when: a bool of rank 0 asked, %s of rank %d found",
                  jot_dtype_name(jot_dtype(when)), jot_rank(when));
        return false;
    }
    return optim_step(optim, grads, when, "step_if");
}

void
jot_set_lr(jot_Optim optim, double lr)
{
    OptimRecord *o = optim_record(optim, "set_lr");
    if (o && optim_rate_ok(o->ctx, "set_lr", "lr", lr, false))
        jot_set(o->lr0, &lr, sizeof lr);
}

bool
jot_optim_own(jot_Optim optim, int param, double times, double weight_decay)
{
    static const char op[] = "optim_own";
    OptimRecord *o = optim_record(optim, op);
    if (!o)
        return false;
    if (param < 0 || param >= o->n) {
        jot_raise(o->ctx, JOT_ERANGE, "%s: param: 0..%d asked, %d found", op, o->n - 1, param);
        return false;
    }
    if (!optim_rate_ok(o->ctx, op, "times", times, false) ||
        !optim_rate_ok(o->ctx, op, "weight_decay", weight_decay, false))
        return false;
    o->own[param].times = times;
    o->own[param].decay = weight_decay;
    return true;
}

int
jot_optim_state(jot_Optim optim, jot_OptimState *out, int most)
{
    OptimRecord *o = optim_record(optim, "optim_state");
    int n = 0;
    if (!o)
        return 0;
    for (int k = 0; k < o->count; k++) {
        bool own = k < o->n * o->each;
        int j = own ? k % o->each : k - o->n * o->each;
        if (own && !j)
            continue;
        jot_OptimState is = {own ? k / o->each : -1, NULL, o->var[k]};
        is.name = own ? o->kind->kept[j - 1] : j ? "beta2_power" : "beta1_power";
        if (n++ < most)
            out[n - 1] = is;
    }
    jot_OptimState lr = {-1, "lr", o->lr0};
    if (n++ < most)
        out[n - 1] = lr;
    return n;
}

void
jot_optim_free(jot_Optim optim)
{
    if (optim.state.slot)
        optim_end(optim_record(optim, "optim_free"));
}
