/* tests/test_tails.c - slopes of f64 where a function is next to its limit, or to where it ends: as
 * exact as elsewhere, though the function's own value no longer says how far it is; and slopes of
 * slopes are finite there. Against long doubles.
 *
 * Guards: ops/grad/rules.c. */
#include "core.h"
#include "tests/test.h"

static long double
slope_sigmoid(long double x)
{
    return 1 / (1 + expl(-x)) / (1 + expl(x));
}

static long double
slope_tanh(long double x)
{
    return 1 / coshl(x) / coshl(x);
}

static long double
slope_gelu_tanh(long double x)
{
    long double k = 1.595769121605730711759L, t = k * (x + 0.044715L * x * x * x);

    return 1 / (1 + expl(-t)) + x * slope_sigmoid(t) * k * (1 + 3 * 0.044715L * x * x);
}

static long double
slope_asin(long double x)
{
    return 1 / sqrtl((1 - x) * (1 + x));
}

static long double
slope_acosh(long double x)
{
    return 1 / sqrtl((x - 1) * (x + 1));
}

static long double
slope_atanh(long double x)
{
    return 1 / ((1 - x) * (1 + x));
}

/* To 14 digits; to 13 where an exponent is large, whose rounding counts. */
static void
test_tails(void)
{
    static const struct {
        const char *name;
        jot_Var (*of)(jot_Var);
        long double (*slope)(long double);
        double x[6], off;
    } t[] = {
        {"sigmoid", jot_sigmoid, slope_sigmoid, {0, 1, -3, 20, 38, -700}, 1e-14},
        {"tanh", jot_tanh, slope_tanh, {0, 1, -3, 10, -25, 300}, 1e-14},
        {"gelu_tanh", jot_gelu_tanh, slope_gelu_tanh, {0, 1, -3, 6.9, 7.15, -10}, 1e-13},
        {"gelu_tanh", jot_gelu_tanh, slope_gelu_tanh, {4, 5, 5.5, 6, 12, 40}, 2e-15},
        {"expm1", jot_expm1, expl, {0, 1, -3, -30, -50, -700}, 1e-14},
        {"asin", jot_asin, slope_asin, {0, .5, -.9, 1 - 1e-9, 1e-12 - 1, .999}, 1e-14},
        {"acosh", jot_acosh, slope_acosh, {1 + 1e-12, 1 + 1e-9, 1.5, 10, 1e9, 2}, 1e-14},
        {"atanh", jot_atanh, slope_atanh, {0, .5, -.9, 1 - 1e-9, 1e-12 - 1, .999}, 1e-14},
    };
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});

    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(6), t[k].x), g, h;
        const double *got, *second;

        CHECK(jot_grad(jot_sum(t[k].of(x), JOT_ALL_DIMS), JOT_VARS(x), &g) &&
              jot_grad(jot_sum(g, JOT_ALL_DIMS), JOT_VARS(x), &h), "%s", jot_message(c));
        got = jot_data(g);
        second = jot_data(h);
        for (int i = 0; got && second && i < 6; i++) {
            double want = (double)t[k].slope(t[k].x[i]);

            CHECK(fabs(got[i] - want) <= t[k].off * fabs(want) && isfinite(second[i]),
                  "%s at %g: slope %.17g and should be %.17g; of it %g", t[k].name, t[k].x[i],
                  got[i], want, second[i]);
        }
    }
    jot_close(c);
}

int
main(void)
{
    test_tails();
    return DONE();
}
