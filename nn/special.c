/* nn/special.c - functions that no processor has, composed of those that kernels know: accuracies
 * are in nn.h and tests/test_arrays.c asks for them.
 *
 *     erfinv      a rational start (Giles 2012), then steps of Halley's on erf, or erfc near +-1
 *     lgamma      Stirling's series at x + 8 (f32: x + 3), less the logarithm of the factors in
 *                 between; below 1/2 by reflection
 *     digamma     the derivative of that series, term by term
 *     sinc        Taylor's series near 0, where sin(x) / x would lose the digits of its derivatives
 *
 * What is not a side's business is replaced by a harmless number there (special_or): a gradient of
 * 0 * inf is NaN.
 *
 * Read before: nn/array.c. After: nn/random.c. */
#include "nn.h"
#include "nn/parts.h"

/* c[0] + c[1] x + ... */
static jot_Var
special_poly(jot_Var x, const double *c, int n)
{
    jot_Var y = nn_number(x, c[n - 1]);
    for (int k = n - 2; k >= 0; k--)
        y = jot_offset(jot_mul(y, x), c[k]);
    return y;
}

/* where ? x : k */
static jot_Var
special_or(jot_Var where, jot_Var x, double k)
{
    return jot_where(where, x, nn_number(x, k));
}

/* ---- erfinv ---- */

/* Of a in 0..1, not 1: central and tail polynomials in w = -log(1 - a^2). */
static jot_Var
special_erfinv_start(jot_Var a)
{
    static const double central[] = {
        1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
        -3.5233877e-06, 3.43273939e-07, 2.81022636e-08
    };
    static const double tail[] = {
        2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
        0.00134934322, 0.000100950558, -0.000200214257
    };
    jot_Var one = nn_number(a, 1);
    jot_Var w = jot_neg(jot_log(jot_mul(jot_sub(one, a), jot_add(one, a))));
    jot_Var near = jot_lt(w, nn_number(a, 5));
    jot_Var in = special_poly(jot_offset(special_or(near, w, 0), -2.5), central, 9);
    jot_Var root = jot_sqrt(jot_where(near, nn_number(a, 9), w));
    jot_Var out = special_poly(jot_offset(root, -3), tail, 9);
    return jot_mul(a, jot_where(near, in, out));
}

/* y nearer to where erf(y) = a: u = (erf(y) - a) / erf'(y), y - u / (1 + u y) */
static jot_Var
special_erfinv_step(jot_Var y, jot_Var a)
{
    jot_Var low = jot_lt(a, nn_number(a, 0.5));
    jot_Var off = jot_where(low, jot_sub(jot_erf(y), a),
                             jot_sub(jot_offset(jot_neg(a), 1), jot_erfc(y)));
    jot_Var u = jot_mul(jot_scale(off, 0.88622692545275801365), jot_exp(jot_square(y)));
    return jot_sub(y, jot_div(u, jot_offset(jot_mul(u, y), 1)));
}

jot_Var
jot_erfinv(jot_Var x)
{
    if (!nn_begin(&x, "erfinv"))
        return nn_poison(x.ctx);
    jot_Var wide = nn_wide(x), size = jot_abs(wide), inside = jot_lt(size, nn_number(wide, 1));
    jot_Var a = special_or(inside, size, 0);
    jot_Var y = special_erfinv_step(special_erfinv_start(a), a);
    y = jot_mul(jot_sign(wide), special_erfinv_step(y, a));
    jot_Var edge = jot_mul(jot_stop_grad(wide), nn_number(wide, nn_infinity()));
    edge = jot_where(jot_eq(size, nn_number(wide, 1)), edge, nn_number(wide, nn_nan()));
    return jot_leave(x.ctx, jot_cast(jot_where(inside, y, edge), jot_dtype(x)));
}

/* ---- gamma ---- */

/* How far a series is from x where x is small: as far as it needs for its digits, since each step
 * costs some. */
static int
special_steps(jot_Var x)
{
    return jot_dtype(x) == JOT_F64 ? 8 : 3;
}

/* sin(pi x) or cos(pi x), but for the sign: of the distance from the nearest whole number, which is
 * exact */
static jot_Var
special_turn(jot_Var x, jot_Var (*f)(jot_Var))
{
    return f(jot_scale(jot_sub(x, jot_stop_grad(jot_round(x))), 3.14159265358979323846));
}

jot_Var
jot_lgamma(jot_Var x)
{
    static const double stirling[] = { /* B(2k) / (2k (2k - 1)) */
        1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156
    };
    if (!nn_begin(&x, "lgamma"))
        return nn_poison(x.ctx);
    jot_Var wide = nn_wide(x), low = jot_lt(wide, nn_number(wide, 0.5));
    jot_Var r = jot_where(low, jot_offset(jot_neg(wide), 1), wide);
    const int steps = special_steps(r);
    jot_Var small = jot_lt(r, nn_number(r, steps)), few = special_or(small, r, 1), factors = few;
    for (int k = 1; k < steps; k++)
        factors = jot_mul(factors, jot_offset(few, k));
    jot_Var z = jot_where(small, jot_offset(few, steps), r), per = jot_reciprocal(z);
    jot_Var y = jot_mul(jot_offset(z, -0.5), jot_offset(jot_log(z), -1));
    y = jot_add(jot_offset(y, 0.91893853320467274178 - 0.5),
                jot_mul(per, special_poly(jot_square(per), stirling, 7)));
    y = jot_sub(y, special_or(small, jot_log(factors), 0));
    jot_Var s = jot_log(jot_abs(special_turn(special_or(low, wide, 0.25), jot_sin)));
    y = jot_where(low, jot_sub(jot_offset(jot_neg(s), 1.14472988584940017414), y), y);
    return jot_leave(x.ctx, jot_cast(y, jot_dtype(x)));
}

jot_Var
jot_digamma(jot_Var x)
{
    static const double series[] = { /* B(2k) / 2k */
        1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12
    };
    if (!nn_begin(&x, "digamma"))
        return nn_poison(x.ctx);
    jot_Var wide = nn_wide(x), low = jot_lt(wide, nn_number(wide, 0.5));
    jot_Var r = jot_where(low, jot_offset(jot_neg(wide), 1), wide);
    const int steps = special_steps(r);
    jot_Var small = jot_lt(r, nn_number(r, steps)), few = special_or(small, r, 1);
    jot_Var between = jot_reciprocal(few);
    for (int k = 1; k < steps; k++)
        between = jot_add(between, jot_reciprocal(jot_offset(few, k)));
    jot_Var z = jot_where(small, jot_offset(few, steps), r), per = jot_square(jot_reciprocal(z));
    jot_Var y = jot_sub(jot_log(z), jot_scale(jot_reciprocal(z), 0.5));
    y = jot_sub(y, jot_mul(per, special_poly(per, series, 7)));
    y = jot_sub(y, special_or(small, between, 0));
    jot_Var t = special_or(low, wide, 0.25);
    jot_Var turn = jot_div(special_turn(t, jot_cos), special_turn(t, jot_sin));
    y = jot_where(low, jot_sub(y, jot_scale(turn, 3.14159265358979323846)), y);
    return jot_leave(x.ctx, jot_cast(y, jot_dtype(x)));
}

/* ---- elementary ---- */

jot_Var
jot_sinc(jot_Var x)
{
    static const double taylor[] = { /* in t^2: (-1)^k / (2k + 1)! */
        1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
        -1.0 / 1307674368000, 1.0 / 355687428096000
    };
    if (!nn_begin(&x, "sinc"))
        return nn_poison(x.ctx);
    const double pi = 3.14159265358979323846;
    jot_Var wide = nn_wide(x), near = jot_lt(jot_abs(wide), nn_number(wide, 0.25));
    jot_Var in = jot_scale(special_or(near, wide, 0), pi);
    jot_Var out = jot_where(near, nn_number(wide, 1), wide);
    jot_Var y = jot_div(jot_sin(jot_scale(out, pi)), jot_scale(out, pi));
    y = jot_where(near, special_poly(jot_square(in), taylor, 9), y);
    return jot_leave(x.ctx, jot_cast(y, jot_dtype(x)));
}

jot_Var
jot_logit(jot_Var x, double eps)
{
    if (!nn_begin(&x, "logit"))
        return nn_poison(x.ctx);
    if (!(eps <= 0.5)) {
        jot_pop(x.ctx);
        return jot_raise(x.ctx, JOT_ERANGE, "logit: eps: at most 0.5 asked, %g found", eps);
    }
    jot_Var p = eps >= 0 ? jot_clamp(x, eps, 1 - eps) : x;
    return jot_leave(x.ctx, jot_sub(jot_log(p), jot_log1p(jot_neg(p))));
}

jot_Var
jot_nan_to_num(jot_Var x, double nan, double above, double below)
{
    if (!nn_begin(&x, "nan_to_num"))
        return nn_poison(x.ctx);
    jot_Var big = jot_where(jot_signbit(x), nn_number(x, below), nn_number(x, above));
    return jot_leave(x.ctx, jot_where(jot_isnan(x), nn_number(x, nan),
                                       jot_where(jot_isinf(x), big, x)));
}
