/* nn/train.c - what stands around an optimiser's step: gradients that are cut off, averages of
 * parameters, the learning rate over time, gradients that are checked.
 *
 *     grads --clip--> grads --jot_step--> parameters --average--> what is evaluated
 *     t --jot_lr_*--> jot_set_lr          plain functions of the step's number, kept by the caller
 *
 * Read before: nn/optim.c. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

/* ---- gradients ---- */

static bool
train_all_ok(const jot_Var *v, int n, const char *op, const char *arg, jot_Ctx **ctx)
{
    *ctx = jot_ctx_of(jot_vars(v ? n : 0, v));
    if (n > 0 && !v)
        return false;
    for (int k = 0; k < n; k++)
        if (!jot_check(*ctx, v[k], op, arg))
            return false;
    return n > 0;
}

static bool
train_clip_ok(jot_Vars grads, double most, const jot_Var *clipped, const char *op, jot_Ctx **ctx)
{
    if (!train_all_ok(grads.v, grads.n, op, "grads", ctx))
        return false;
    if (!clipped)
        jot_raise(*ctx, JOT_EUSE, "%s: clipped: room for %d handles asked, none found", op,
                  grads.n);
    return clipped && nn_least(*ctx, most, 0, op, "most");
}

/* Out of the scope that began with jot_push, and into `clipped`: all or none. */
static bool
train_clip_leave(jot_Ctx *ctx, jot_Var room, int n, bool ok, jot_Var *clipped)
{
    jot_Var *next = nn_handles(room);
    int kept = 0;
    ok = ok && next;
    for (int k = 0; k < n && ok; k++)
        ok = jot_ok(next[k]);
    for (; kept < n && ok; kept += ok)
        ok = jot_ok(next[kept] = jot_keep(next[kept]));
    for (int k = 0; k < kept; k++)
        if (ok)
            clipped[k] = next[k];
        else
            jot_free(next[k]);
    jot_free(room);
    jot_pop(ctx);
    return ok;
}

jot_Var
jot_clip_grad_norm(jot_Vars grads, double most, jot_Var *clipped)
{
    jot_Ctx *ctx;
    if (!train_clip_ok(grads, most, clipped, "clip_grad_norm", &ctx))
        return nn_poison(ctx);
    jot_push(ctx);
    jot_Var room = nn_room(ctx, grads.n), *next = nn_handles(room);
    jot_Var sum = jot_sum(jot_square(nn_wide(grads.v[0])), JOT_ALL_DIMS);
    for (int k = 1; k < grads.n; k++)
        sum = jot_add(sum, jot_sum(jot_square(nn_wide(grads.v[k])), JOT_ALL_DIMS));
    jot_Var norm = jot_sqrt(sum), one = nn_number(norm, 1);
    jot_Var times = jot_minimum(one, jot_div(jot_scale(one, most), jot_offset(norm, 1e-6)));
    for (int k = 0; k < grads.n && next; k++)
        next[k] = jot_mul(grads.v[k], jot_cast(times, jot_dtype(grads.v[k])));
    norm = jot_keep(norm);
    if (train_clip_leave(ctx, room, grads.n, jot_ok(norm), clipped))
        return norm;
    jot_free(norm);
    return nn_poison(ctx);
}

bool
jot_clip_grad_value(jot_Vars grads, double most, jot_Var *clipped)
{
    jot_Ctx *ctx;
    if (!train_clip_ok(grads, most, clipped, "clip_grad_value", &ctx))
        return false;
    jot_push(ctx);
    jot_Var room = nn_room(ctx, grads.n), *next = nn_handles(room);
    for (int k = 0; k < grads.n && next; k++)
        next[k] = jot_clamp(grads.v[k], -most, most);
    return train_clip_leave(ctx, room, grads.n, true, clipped);
}

/* ---- parameters ---- */

static bool
train_alike(jot_Var average, jot_Var param, int k)
{
    bool same = jot_check(param.ctx, average, "ema", "averages")
             && jot_rank(average) == jot_rank(param);
    for (int d = 0; same && d < jot_rank(param); d++)
        same = jot_extent(average, d) == jot_extent(param, d);
    if (!same && jot_ok(average))
        jot_raise(param.ctx, JOT_ESHAPE, "ema: average %d: its parameter's shape asked (rank %d, "
                  "%lld elements), rank %d and %lld elements found", k, jot_rank(param),
                  (long long)jot_nelem(param), jot_rank(average), (long long)jot_nelem(average));
    return same;
}

bool
jot_ema(jot_Vars averages, jot_Vars params, double decay)
{
    jot_Ctx *ctx;
    bool ok = train_all_ok(params.v, params.n, "ema", "params", &ctx);
    if (ok && !(decay >= 0 && decay <= 1)) {
        jot_raise(ctx, JOT_ERANGE, "ema: decay: 0..1 asked, %g found", decay);
        return false;
    }
    if (ok && averages.n != params.n) {
        jot_raise(ctx, JOT_EUSE, "ema: averages: %d asked (one per parameter), %d found", params.n,
                  averages.n);
        return false;
    }
    if (!ok)
        return false;
    jot_push(ctx);
    jot_Var room = nn_room(ctx, params.n), *next = nn_handles(room);
    for (int k = 0; next && ok && k < params.n; k++) {
        jot_Var a = averages.v[k], p = params.v[k];
        ok = train_alike(a, p, k);
        if (ok)
            next[k] = jot_add(jot_scale(a, decay),
                              jot_scale(jot_cast(p, jot_dtype(a)), 1 - decay));
    }
    ok = ok && next && jot_assign_all(averages, jot_vars(params.n, next));
    jot_free(room);
    jot_pop(ctx);
    return ok;
}

/* ---- learning rates ---- */

/* cos(pi x) for x in 0..1: from the nearest of 0, 1/2 and 1 a series of less than 1/4. */
static double
train_cos(double x)
{
    const double pi = 3.14159265358979323846;
    double sign = x > 0.5 ? -1 : 1, y = x > 0.5 ? 1 - x : x, term = 1, sum = 0;
    bool sine = y > 0.25;
    y = (sine ? 0.5 - y : y) * pi;
    if (sine)
        term = y;
    for (int k = sine ? 1 : 0; k < 24; k += 2) {
        sum += term;
        term *= -y * y / ((k + 1) * (k + 2));
    }
    return sign * sum;
}

static double
train_part(int64_t t, int64_t steps)
{
    return t <= 0 ? 0 : t >= steps ? 1 : (double)t / (double)steps;
}

static double
train_between(double from, double to, double part)
{
    return to + (from - to) * (1 + train_cos(part)) / 2;
}

static double
train_power(double x, int64_t n)
{
    double y = 1;
    for (; n > 0; n /= 2, x *= x)
        y *= n % 2 ? x : 1;
    return y;
}

double
jot_lr_step(double lr, int64_t t, int64_t every, double factor)
{
    return lr * train_power(factor, every > 0 ? t / every : 0);
}

double
jot_lr_linear(double from, double to, int64_t t, int64_t steps)
{
    return from + (to - from) * train_part(t, steps);
}

double
jot_lr_cosine(double from, double to, int64_t t, int64_t steps)
{
    return train_between(from, to, train_part(t, steps));
}

double
jot_lr_one_cycle(double most, int64_t t, int64_t steps, double rising, double from, double to)
{
    double top = rising * (double)steps - 1, last = (double)steps - 1, at = (double)t;
    if (at <= top)
        return train_between(most * from, most, top > 0 ? (at < 0 ? 0 : at) / top : 1);
    return train_between(most, most * to, at < last ? (at - top) / (last - top) : 1);
}

double
jot_lr_plateau(jot_Plateau *p, double loss)
{
    if (!p->begun || loss < p->best * (1 - p->threshold)) {
        p->best = loss;
        p->begun = true;
        p->bad = 0;
    } else if (++p->bad > p->patience) {
        p->lr = p->lr * p->factor > p->least ? p->lr * p->factor : p->least;
        p->bad = 0;
    }
    return p->lr;
}

/* ---- checking ---- */

/* f of the inputs, weighted so that each element of it counts by another number. */
static jot_Var
train_weighed(jot_GradFn *f, void *user, jot_Vars in)
{
    jot_Var y = f(user, in);
    jot_Var w = jot_reshape(jot_arange(y.ctx, JOT_F64, 0, 0.61803398874989485, jot_nelem(y)),
                            jot_shape(y));
    w = jot_offset(jot_sub(w, jot_floor(w)), 0.5);
    return jot_sum(jot_mul(jot_cast(y, JOT_F64), w), JOT_ALL_DIMS);
}

static double
train_value(jot_GradFn *f, void *user, jot_Vars in, jot_Ctx *ctx)
{
    jot_push(ctx);
    double value = jot_item(train_weighed(f, user, in));
    jot_pop(ctx);
    return value;
}

/* The elements of in[k], one after the other a little more and a little less. */
static bool
train_check_one(jot_GradFn *f, void *user, jot_Vars in, int k, const double *slope,
                double eps, double tolerance)
{
    jot_Ctx *ctx = in.v[k].ctx;
    jot_Var copy = jot_param(ctx, JOT_F64, jot_shape(in.v[k]), jot_data(in.v[k]));
    double *x = (double *)(uintptr_t)jot_data(copy); /* nobody else has this parameter */
    size_t nbytes = (size_t)jot_nelem(copy) * sizeof *x;
    bool ok = x != NULL;
    for (int64_t i = 0; i < jot_nelem(copy) && ok; i++) {
        double was = x[i], up, down, difference, off;
        x[i] = was + eps;
        ok = jot_set(in.v[k], x, nbytes);
        up = train_value(f, user, in, ctx);
        x[i] = was - eps;
        ok = ok && jot_set(in.v[k], x, nbytes);
        down = train_value(f, user, in, ctx);
        x[i] = was;
        difference = (up - down) / (2 * eps);
        off = difference - slope[i];
        ok = ok && (off < 0 ? -off : off) <= tolerance * (1 + (difference < 0 ? -difference
                                                                              : difference));
        if (!ok && !jot_error(ctx))
            jot_raise(ctx, JOT_ERANGE, "grad_check: input %d, element %lld: the gradient is %.10g, "
                      "differences say %.10g", k, (long long)i, slope[i], difference);
    }
    if (x)
        jot_set(in.v[k], x, nbytes);
    jot_free(copy);
    return ok;
}

bool
jot_grad_check(jot_GradFn *f, void *user, jot_Vars in, double eps, double tolerance)
{
    enum { MOST = 32 };
    jot_Ctx *ctx;
    jot_Var grads[MOST];
    bool ok = train_all_ok(in.v, in.n, "grad_check", "in", &ctx);
    for (int k = 0; k < in.n && ok; k++)
        if (jot_dtype(in.v[k]) != JOT_F64) {
            jot_raise(ctx, JOT_EDTYPE, "grad_check: in %d: f64 asked, %s found", k,
                      jot_dtype_name(jot_dtype(in.v[k])));
            ok = false;
        }
    if (ok && (in.n > MOST || !(eps > 0) || !(tolerance >= 0))) {
        jot_raise(ctx, JOT_ERANGE, "grad_check: at most %d inputs, eps above 0 and a tolerance of "
                  "at least 0 asked; %d, %g, %g found", (int)MOST, in.n, eps, tolerance);
        ok = false;
    }
    if (!ok)
        return false;
    jot_push(ctx);
    ok = jot_grad(train_weighed(f, user, in), in, grads);
    ok = ok && jot_run(ctx, jot_vars(in.n, grads));
    for (int k = 0; k < in.n && ok; k++) {
        const double *slope = jot_data(grads[k]);
        ok = slope && train_check_one(f, user, in, k, slope, eps, tolerance);
    }
    jot_pop(ctx);
    return ok;
}
