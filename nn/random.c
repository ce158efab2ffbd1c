/* nn/random.c - draws: all of them are functions of core.h's uniform numbers, so they have its
 * promise: the same numbers on every backend and any number of threads.
 *
 *     bernoulli          u < p
 *     exponential        -log(1 - u) / rate           1 - u is never 0
 *     categorical        arg-max of logits - log(E)   E exponential: Gumbel noise
 *     truncated normal   Phi^-1 of a uniform number between Phi(lo) and Phi(hi); in a tail by the
 *                        logarithm of 1 - Phi
 *
 * Read before: nn/special.c. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

static bool
random_float(jot_Ctx *ctx, jot_DType dtype, const char *op)
{
    bool is_float = (unsigned)dtype < JOT_DTYPES && dtype >= JOT_F16;
    if (!is_float)
        jot_raise(ctx, JOT_EDTYPE, "%s: dtype: a float dtype asked, %s found", op,
                  (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
    return is_float;
}

/* u, but never 0, whose logarithm is not finite */
static jot_Var
random_open(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape)
{
    jot_Var u = jot_uniform(ctx, dtype, shape);
    return jot_offset(jot_neg(u), 1);
}

/* -log(E), E exponential: where E is 0, u having steps, it is taken for half a step */
static jot_Var
random_gumbel(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape)
{
    double half = 1.0 / (double)((int64_t)1 << (dtype == JOT_F64 ? 54 : 25));
    jot_Var e = jot_neg(jot_log(random_open(ctx, dtype, shape)));
    return jot_neg(jot_log(jot_maximum(e, jot_full(ctx, dtype, JOT_SHAPE(), half))));
}

/* 1 at the largest along dim, else 0 */
static jot_Var
random_largest(jot_Var x, int dim)
{
    jot_Var at = jot_unsqueeze(jot_argmax(x, JOT_DIMS(dim)), dim);
    return jot_cast(jot_eq(at, jot_iota(x.ctx, JOT_I64, jot_shape(x), dim)), jot_dtype(x));
}

jot_Var
jot_gumbel_softmax(jot_Var logits, int dim, double tau, bool hard)
{
    static const char op[] = "gumbel_softmax";
    jot_Ctx *ctx = logits.ctx;
    if (!jot_check(ctx, logits, op, "x") || !nn_dim(logits, &dim, op) ||
        !nn_above(ctx, tau, 0, op, "tau"))
        return nn_poison(ctx);
    jot_push(ctx);
    jot_Var wide = nn_wide(logits);
    jot_Var y = jot_add(wide, random_gumbel(ctx, jot_dtype(wide), jot_shape(wide)));
    y = jot_softmax(jot_scale(y, 1 / tau), dim);
    if (hard && jot_nelem(y))
        y = jot_add(y, jot_stop_grad(jot_sub(random_largest(y, dim), y)));
    return jot_leave(ctx, jot_cast(y, nn_float_of(jot_dtype(logits))));
}

jot_Var
jot_bernoulli(jot_Var p)
{
    if (!jot_check(p.ctx, p, "bernoulli", "p"))
        return nn_poison(p.ctx);
    jot_DType dtype = nn_float_of(jot_dtype(p));
    jot_push(p.ctx);
    p = nn_wide(p);
    jot_Var u = jot_uniform(p.ctx, jot_dtype(p), jot_shape(p));
    return jot_leave(p.ctx, jot_cast(jot_lt(u, jot_stop_grad(p)), dtype));
}

jot_Var
jot_exponential(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double rate)
{
    if (!random_float(ctx, dtype, "exponential") || !nn_above(ctx, rate, 0, "exponential", "rate"))
        return nn_poison(ctx);
    jot_DType wide = dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    jot_push(ctx);
    return jot_leave(ctx, jot_cast(jot_scale(jot_log(random_open(ctx, wide, shape)), -1 / rate),
                                   dtype));
}

/* floor(lo + n u), u of 53 bits */
jot_Var
jot_randint(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t lo, int64_t hi)
{
    const int64_t most = (int64_t)1 << 53;
    if ((unsigned)dtype > JOT_U64 || dtype == JOT_BOOL)
        return jot_raise(ctx, JOT_EDTYPE, "randint: dtype: an integer dtype asked, %s found",
                         (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
    bool is_signed = dtype <= JOT_I64;
    int bits = (8 << (dtype - JOT_I8) % 4) - is_signed; /* 8 to 64 in order */
    int64_t end = bits < 53 ? (int64_t)1 << bits : most, least = is_signed ? -end : 0;
    if (hi <= lo || lo < least || hi > end || hi - lo > most)
        return jot_raise(ctx, JOT_ERANGE, "randint: lo < hi asked, of %lld..%lld (%s) and at most "
                         "2^53 apart, %lld and %lld found", (long long)least, (long long)end,
                         jot_dtype_name(dtype), (long long)lo, (long long)hi);
    jot_push(ctx);
    jot_Var u = jot_scale(jot_uniform(ctx, JOT_F64, shape), (double)(hi - lo));
    jot_Var k = jot_add(jot_cast(u, JOT_I64), jot_full_int(ctx, JOT_I64, JOT_SHAPE(), lo));
    return jot_leave(ctx, jot_cast(k, dtype));
}

jot_Var
jot_categorical(jot_Var logits, int dim)
{
    static const char op[] = "categorical";
    if (!jot_check(logits.ctx, logits, op, "x") || !nn_dim(logits, &dim, op))
        return nn_poison(logits.ctx);
    jot_push(logits.ctx);
    jot_Var wide = nn_wide(logits);
    jot_Var noise = random_gumbel(logits.ctx, jot_dtype(wide), jot_shape(wide));
    return jot_leave(logits.ctx, jot_argmax(jot_add(wide, noise), JOT_DIMS(dim)));
}

/* Phi(x) = erfc(-x / sqrt 2) / 2, of a number that is known now */
static jot_Var
random_phi(jot_Ctx *ctx, double x)
{
    return jot_scale(jot_erfc(jot_full(ctx, JOT_F64, JOT_SHAPE(), x * -0.70710678118654752440)),
                     0.5);
}

/* Mills' ratio (1 - Phi(t)) / phi(t), t >= 3, as a continued fraction: 1/(t + 1/(t + 2/(t + .. */
static jot_Var
random_mills(jot_Var t)
{
    jot_Var r = t;
    for (int k = 40; k > 0; k--)
        r = jot_add(t, jot_div(nn_number(t, k), r));
    return jot_div(nn_number(t, 1), r);
}

/* From a to b, 3 <= a, where 1 - Phi is small or 0: as the logarithm of its ratio to that of a,
 *     log v = (a^2 - t^2) / 2 + log(mills(t) / mills(a)),  v between 1 and the ratio at b,
 * which three of Newton's steps solve from where mills would stand still. */
static jot_Var
random_tail(jot_Var u, double a, double b)
{
    jot_Var from = nn_number(u, a), to = nn_number(u, b), at = random_mills(from), t;
    jot_Var least = jot_log(jot_div(random_mills(to), at));
    least = jot_exp(jot_sub(least, nn_number(u, b < nn_infinity() ? (b - a) * (b + a) / 2 : b)));
    jot_Var log_v = jot_log1p(jot_mul(u, jot_offset(least, -1)));
    t = jot_sqrt(jot_sub(jot_square(from), jot_scale(log_v, 2)));
    for (int step = 0; step < 3; step++) {
        jot_Var r = random_mills(t), off = jot_mul(jot_sub(t, from), jot_add(t, from));
        off = jot_sub(jot_scale(off, 0.5), jot_log(jot_div(r, at)));
        t = jot_sub(t, jot_mul(r, jot_add(off, log_v)));
    }
    return t;
}

/* Computed in f64, since between two f32 near 1 there are no numbers; beyond some deviations f64
 * has too few as well. */
jot_Var
jot_truncated_normal(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double mean, double deviation,
                     double lo, double hi)
{
    static const char op[] = "truncated_normal";
    const double a = (lo - mean) / deviation, b = (hi - mean) / deviation, tail = 4, far = 1e9;
    if (!random_float(ctx, dtype, op) || !nn_above(ctx, deviation, 0, op, "deviation") ||
        !nn_above(ctx, hi, lo, op, "hi"))
        return nn_poison(ctx);
    if (!(a <= far && b >= -far))
        return jot_raise(ctx, JOT_ERANGE, "%s: lo, hi: some of the 10^9 deviations about the mean "
                         "asked, %g to %g deviations found", op, a, b);
    jot_push(ctx);
    jot_Var u = jot_uniform(ctx, JOT_F64, shape), y;
    if (a > tail)
        y = random_tail(u, a, b);
    else if (b < -tail)
        y = jot_neg(random_tail(u, -b, -a));
    else {
        jot_Var from = random_phi(ctx, a), to = random_phi(ctx, b);
        u = jot_add(from, jot_mul(u, jot_sub(to, from)));
        y = jot_scale(jot_erfinv(jot_offset(jot_scale(u, 2), -1)), 1.41421356237309504880);
    }
    return jot_leave(ctx, jot_cast(jot_clamp(jot_offset(jot_scale(y, deviation), mean), lo, hi),
                                   dtype));
}
