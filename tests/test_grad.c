/* tests/test_grad.c - gradients. Every rule is compared with central finite differences of f64
 * values, to first and second order, with simplification and without, and so are tangents by it;
 * then what gradients look like as graphs, what blocks them, what is refused, long chains, every
 * allocation refused in turn.
 *
 * Guards: ops/grad/call.c, ops/grad/forward.c, ops/grad/give.c, ops/grad/grad.c,
 * ops/grad/rules.c. */
#include "ops/graph.h"
#include "tests/hooks.h"
#include "tests/test.h"

static int no_simplify;

static jot_Ctx *
open_ctx(void)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = "interp";
    config.no_simplify = no_simplify;
    return jot_open(&config);
}

/* ---- finite differences ------------------------------------------------------------------- */

enum { MAX_IN = 3, MAX_N = 64 };

typedef jot_Var Build(jot_Var *in);

typedef struct {
    const char *name;
    Build *build;
    int inputs, rank[MAX_IN];
    int64_t ext[MAX_IN][4];
    double data[MAX_IN][MAX_N];
    int64_t n[MAX_IN];
} Problem;

/* Numbers in (0.2, 1) that follow no pattern. */
static double
noise(int k)
{
    double v = sin(k * 12.9898 + 1) * 43758.5453;

    return 0.2 + 0.8 * (v - floor(v));
}

static jot_Var
weighted_sum(jot_Var v, int salt)
{
    double w[MAX_N * 4];
    int64_t k;

    for (k = 0; k < jot_nelem(v) && k < MAX_N * 4; k++)
        w[k] = noise((int)k + salt) - 0.3;
    return jot_sum(jot_mul(v, jot_array(v.ctx, jot_dtype(v), jot_shape(v), w)), JOT_ALL_DIMS);
}

/* The scalar whose gradient is tested. order 1: sum(w * f(x)); 2: sum(w * gradient of that). */
static jot_Var
problem_loss(jot_Ctx *c, const Problem *p, int order, jot_Var *in)
{
    jot_Var loss, g[MAX_IN];
    int k;

    for (k = 0; k < p->inputs; k++)
        in[k] = jot_array(c, JOT_F64, jot_ints(p->rank[k], p->ext[k]), p->data[k]);
    loss = weighted_sum(p->build(in), 17);
    for (; order > 1; order--) {
        jot_grad(loss, jot_vars(p->inputs, in), g);
        loss = weighted_sum(g[0], 31);
        for (k = 1; k < p->inputs; k++)
            loss = jot_add(loss, weighted_sum(g[k], 31 + 7 * k));
    }
    return loss;
}

static double
problem_value(jot_Ctx *c, const Problem *p, int order)
{
    jot_Var in[MAX_IN];
    double v;

    jot_push(c);
    v = jot_item(problem_loss(c, p, order, in));
    jot_pop(c);
    return v;
}

/* The tangent along drawn directions is that of the gradients g; so is the tangent of them what the
 * gradient of their product with the directions gives. */
static void
check_forward(jot_Ctx *c, const Problem *p, int order, const jot_Var *in, const jot_Var *g)
{
    jot_Var loss, fresh[MAX_IN], dx[MAX_IN], dy, dg[MAX_IN], gg[MAX_IN], along, curve, want;
    double w[MAX_N], slope;
    int k, j;

    loss = problem_loss(c, p, order, fresh);
    along = want = curve = jot_zeros(c, JOT_F64, JOT_SHAPE());
    for (k = 0; k < p->inputs; k++) {
        for (j = 0; j < MAX_N; j++)
            w[j] = noise(j + 7 * k) - 0.4;
        dx[k] = jot_array(c, JOT_F64, jot_shape(in[k]), w);
        along = jot_add(along, jot_sum(jot_mul(g[k], dx[k]), JOT_ALL_DIMS));
    }
    slope = jot_item(along);
    jot_jvp(JOT_VARS(loss), jot_vars(p->inputs, fresh), jot_vars(p->inputs, dx), &dy);
    CHECK(fabs(jot_item(dy) - slope) <= 1e-11 * (1 + fabs(slope)),
          "%s, order %d: tangent %.17g, of gradients %.17g: %s", p->name, order, jot_item(dy),
          slope, jot_message(c));
    if (order > 1)
        return;
    jot_jvp(jot_vars(p->inputs, g), jot_vars(p->inputs, in), jot_vars(p->inputs, dx), dg);
    jot_grad(along, jot_vars(p->inputs, in), gg);
    for (k = 0; k < p->inputs; k++) {
        want = jot_add(want, weighted_sum(gg[k], k));
        curve = jot_add(curve, weighted_sum(dg[k], k));
    }
    slope = jot_item(want);
    CHECK(fabs(jot_item(curve) - slope) <= 1e-11 * (1 + fabs(slope)),
          "%s: tangent of gradients %.17g, gradient of them %.17g: %s", p->name, jot_item(curve),
          slope, jot_message(c));
    jot_jvp(JOT_VARS(dy), jot_vars(p->inputs, fresh), jot_vars(p->inputs, dx), &dy);
    jot_jvp(JOT_VARS(along), jot_vars(p->inputs, in), jot_vars(p->inputs, dx), &want);
    slope = jot_item(want);
    CHECK(fabs(jot_item(dy) - slope) <= 1e-11 * (1 + fabs(slope)),
          "%s: tangent of a tangent %.17g, of gradients %.17g: %s", p->name, jot_item(dy), slope,
          jot_message(c));
}

static void
check_order(Problem *p, int order, double h, double tolerance)
{
    jot_Ctx *c = open_ctx();
    jot_Var in[MAX_IN], g[MAX_IN];
    double worst = 0, seen = 0;
    int k, j;

    jot_grad(problem_loss(c, p, order, in), jot_vars(p->inputs, in), g);
    for (k = 0; k < p->inputs; k++) {
        const double *d = jot_data(g[k]);

        for (j = 0; d && j < p->n[k]; j++) {
            double x = p->data[k][j], high, low, error;

            p->data[k][j] = x + h;
            high = problem_value(c, p, order);
            p->data[k][j] = x - h;
            low = problem_value(c, p, order);
            p->data[k][j] = x;
            error = fabs((high - low) / (2 * h) - d[j]) / (1 + fabs(d[j]));
            if (!(error <= worst))
                worst = error;
            seen += fabs(d[j]);
        }
        if (!d)
            worst = INFINITY;
    }
    CHECK(worst <= tolerance && !jot_error(c), "%s, order %d: error %g (gradients %g): %s", p->name,
          order, worst, seen, jot_message(c));
    check_forward(c, p, order, in, g);
    jot_close(c);
}

static Problem
problem(const char *name, Build *build)
{
    Problem p;

    memset(&p, 0, sizeof p);
    p.name = name;
    p.build = build;
    return p;
}

/* An input of noise scaled to [lo, hi]. */
static void
add_input(Problem *p, jot_Ints shape, double lo, double hi)
{
    int k = p->inputs++, j;

    p->rank[k] = shape.n;
    p->n[k] = 1;
    for (j = 0; j < shape.n; j++) {
        p->ext[k][j] = shape.v[j];
        p->n[k] *= shape.v[j];
    }
    for (j = 0; j < p->n[k]; j++)
        p->data[k][j] = lo + (hi - lo) * (noise(j + 100 * k) - 0.2) / 0.8;
}

/* ---- element-wise ------------------------------------------------------------------------- */

#define UNARY(X) \
    X(neg, -2, 2) X(abs, 0.1, 2) X(abs, -2, -0.1) X(sqrt, 0.3, 3) X(rsqrt, 0.3, 3) X(cbrt, 0.3, 3) \
    X(exp, -2, 2) X(exp2, -2, 2) X(expm1, -2, 2) X(log, 0.3, 3) X(log2, 0.3, 3) X(log10, 0.3, 3) \
    X(log1p, -0.5, 3) X(sin, -3, 3) X(cos, -3, 3) X(tan, -1, 1) X(asin, -0.8, 0.8) \
    X(acos, -0.8, 0.8) X(atan, -3, 3) X(sinh, -2, 2) X(cosh, -2, 2) X(tanh, -2, 2) \
    X(asinh, -3, 3) X(acosh, 1.3, 3) X(atanh, -0.8, 0.8) X(sigmoid, -3, 3) X(softplus, -3, 3) \
    X(erf, -2, 2) X(erfc, -2, 2) X(square, -2, 2) X(reciprocal, 0.4, 2) X(floor, 0.1, 0.9) \
    X(sign, 0.1, 2) X(round, 0.6, 0.9) X(ceil, 0.1, 0.9) X(trunc, 0.1, 0.9)
#define BINARY(X) \
    X(add, -2, 2) X(sub, -2, 2) X(mul, -2, 2) X(div, 0.4, 2) X(pow, 0.4, 2) X(maximum, -2, 2) \
    X(minimum, -2, 2) X(hypot, 0.4, 2) X(atan2, 0.4, 2) X(copysign, 0.3, 2) X(copysign, -2, -0.3) \
    X(fmax, -2, 2) X(fmin, -2, 2) X(logaddexp, -2, 2) X(heaviside, 0.1, 2) X(heaviside, -2, -0.1)
#define BUILD1(name, lo, hi) {#name, jot_##name, lo, hi},
typedef struct { const char *name; jot_Var (*f)(jot_Var); double lo, hi; } Unary;
typedef struct { const char *name; jot_Var (*f)(jot_Var, jot_Var); double lo, hi; } Binary;
static const Unary unary[] = {UNARY(BUILD1)};
static const Binary binary[] = {BINARY(BUILD1)};
static const Unary *unary_now;
static const Binary *binary_now;

static jot_Var
build_unary(jot_Var *in)
{
    return unary_now->f(in[0]);
}

static jot_Var
build_binary(jot_Var *in)
{
    return binary_now->f(in[0], in[1]);
}

static jot_Var
build_mod(jot_Var *in)
{
    return jot_mod(in[0], in[1]);
}

static jot_Var
build_fmod(jot_Var *in)
{
    return jot_fmod(in[0], in[1]);
}

static jot_Var
build_select(jot_Var *in)
{
    return jot_where(jot_gt(in[0], in[1]), jot_mul(in[0], in[1]), jot_exp(in[1]));
}

static jot_Var
build_cubic(jot_Var *in)
{
    return jot_pow(in[0], jot_full(in[0].ctx, JOT_F64, JOT_SHAPE(), 3));
}

static void
test_elementwise(void)
{
    size_t k;
    Problem p;

    for (k = 0; k < sizeof unary / sizeof *unary; k++) {
        unary_now = &unary[k];
        p = problem(unary[k].name, build_unary);
        add_input(&p, JOT_SHAPE(7), unary[k].lo, unary[k].hi);
        check_order(&p, 1, 1e-5, 1e-7);
        check_order(&p, 2, 1e-5, 1e-6);
    }
    for (k = 0; k < sizeof binary / sizeof *binary; k++) {
        binary_now = &binary[k];
        p = problem(binary[k].name, build_binary);
        add_input(&p, JOT_SHAPE(2, 3), binary[k].lo, binary[k].hi);
        add_input(&p, JOT_SHAPE(3), binary[k].lo, binary[k].hi);
        check_order(&p, 1, 1e-5, 1e-7);
        check_order(&p, 2, 1e-5, 1e-6);
    }
    p = problem("mod", build_mod);
    add_input(&p, JOT_SHAPE(3), 2.1, 2.4);
    add_input(&p, JOT_SHAPE(3), 0.9, 1);
    check_order(&p, 1, 1e-5, 1e-7);
    p.build = build_fmod;
    p.name = "fmod";
    check_order(&p, 1, 1e-5, 1e-7);
    p = problem("where", build_select);
    add_input(&p, JOT_SHAPE(6), -1, 1);
    add_input(&p, JOT_SHAPE(6), -1, 1);
    check_order(&p, 2, 1e-5, 1e-6);
    p = problem("cubic of negative", build_cubic);
    add_input(&p, JOT_SHAPE(5), -2, -0.5);
    check_order(&p, 1, 1e-5, 1e-7);
    check_order(&p, 2, 1e-5, 1e-6);
    check_order(&p, 3, 1e-4, 1e-5);
}

/* ---- maps and reductions ------------------------------------------------------------------ */

static jot_Var
curve(jot_Var x) /* so that second derivatives are not all zero */
{
    return jot_mul(jot_sin(x), x);
}

static jot_Var
indices(jot_Ctx *c)
{
    int64_t at[5] = {2, 0, 2, -1, 1};

    return jot_array(c, JOT_I64, JOT_SHAPE(5), at);
}

#define FORM(name, expression) \
    static jot_Var build_##name(jot_Var *in) \
    { \
        jot_Var x = curve(in[0]); \
        return jot_square(expression); \
    }
#define FORMS(X) \
    X(broadcast, jot_broadcast(x, JOT_SHAPE(3, 2, 4), JOT_INTS(1))) \
    X(transpose, jot_transpose(x, JOT_INTS(1, 0))) \
    X(reshape, jot_reshape(x, JOT_SHAPE(2, 6))) \
    X(slice, jot_slice(x, JOT_INTS(0, 3), JOT_INTS(3, JOT_END), JOT_INTS(2, -2))) \
    X(pad, jot_pad(x, JOT_INTS(1, -1), JOT_INTS(0, 2), 3)) \
    X(flip, jot_flip(x, JOT_INTS(0))) \
    X(tile, jot_tile(x, JOT_INTS(2, 3))) \
    X(concat, jot_concat(JOT_VARS(x, jot_mul(x, x), x), 1)) \
    X(stack, jot_stack(JOT_VARS(x, jot_exp(x)), 1)) \
    X(take, jot_take(x, indices(x.ctx), 0)) \
    X(windows, jot_reindex(x, JOT_SHAPE(3, 2, 3), JOT_INDEX("i0", "i1*2 + i2 - 1"))) \
    X(outside, jot_reindex_ex(x, JOT_SHAPE(5, 5), JOT_INDEX("i0 - 1", "i1*i0"), \
                              JOT_INDEX("i0 != 2"), \
                              7, JOT_NONE_VARS)) \
    X(overlap, jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(4), JOT_INDEX("i0 + i1 - 1"))) \
    X(scatter, jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(3, 4), JOT_INDEX("@e0(i0)", "i1"), \
                                     JOT_INDEX("i1 != 1"), JOT_VARS(indices(x.ctx)))) \
    X(sum, jot_sum(x, JOT_DIMS(1))) \
    X(sum_all, jot_sum(x, JOT_ALL_DIMS)) \
    X(mean, jot_mean(x, JOT_DIMS(0))) \
    X(mean_map, jot_reindex_reduce(JOT_MEAN, x, JOT_SHAPE(3), JOT_INDEX("(i0 + i1)/2"))) \
    X(max, jot_max(x, JOT_DIMS(1))) \
    X(min, jot_min(x, JOT_DIMS(0))) \
    X(max_of_max, jot_max(jot_max(x, JOT_DIMS(1)), JOT_DIMS(0))) \
    X(pool, jot_reindex_reduce(JOT_MAX, x, JOT_SHAPE(3, 2), JOT_INDEX("i0", "i1/2"))) \
    X(prod, jot_prod(x, JOT_DIMS(1))) \
    X(prod_map, jot_reindex_reduce(JOT_MUL, x, JOT_SHAPE(2), JOT_INDEX("i1/2"))) \
    X(softmax, jot_div(jot_exp(x), jot_reduce(JOT_ADD, jot_exp(x), JOT_KEEP(1)))) \
    X(normal, jot_div(jot_sub(x, jot_reduce(JOT_MEAN, x, JOT_KEEP(1))), \
                      jot_sqrt(jot_offset(jot_reduce(JOT_MEAN, jot_square(x), JOT_KEEP(1)), \
                                          1))))
FORMS(FORM)
#undef FORM

static jot_Var
build_matmul(jot_Var *in)
{
    jot_Var a = jot_broadcast(curve(in[0]), JOT_SHAPE(3, 4, 2), JOT_INTS(2));
    jot_Var b = jot_broadcast(in[1], JOT_SHAPE(3, 4, 2), JOT_INTS(0));

    return jot_sum(jot_mul(a, b), JOT_DIMS(1));
}

static jot_Var
build_conv(jot_Var *in)
{
    jot_Var x = jot_reindex(in[0], JOT_SHAPE(2, 3, 4, 2, 3), JOT_INDEX("i3", "i1*2 + i4 - 1"));
    jot_Var w = jot_broadcast(in[1], JOT_SHAPE(2, 3, 4, 2, 3), JOT_INTS(1, 2));

    return jot_sum(jot_mul(x, w), JOT_DIMS(2, 3, 4));
}

/* A weight that is used twice, as in a recurrent cell. */
static jot_Var
build_shared(jot_Var *in)
{
    jot_Var a = jot_broadcast(in[1], JOT_SHAPE(3, 4, 4), JOT_INTS(0)), h = in[0];
    int k;

    for (k = 0; k < 2; k++)
        h = jot_tanh(jot_sum(jot_mul(jot_broadcast(h, JOT_SHAPE(3, 4, 4), JOT_INTS(2)), a),
                             JOT_DIMS(1)));
    return h;
}

/* h times columns of a weight from `first` */
static jot_Var
by_part(jot_Var h, jot_Var w, int64_t first)
{
    return jot_matmul(h, jot_slice(w, JOT_SHAPE(0, first), JOT_SHAPE(4, first + 4),
                                   JOT_SHAPE(1, 1)));
}

/* Two parts of one weight, in three steps each. */
static jot_Var
build_parts(jot_Var *in)
{
    jot_Var h = in[0];

    for (int k = 0; k < 3; k++)
        h = jot_tanh(jot_add(by_part(h, in[1], 0), by_part(jot_sin(h), in[1], 5)));
    return h;
}

static void
test_maps(void)
{
    Problem p;
#define TRY(name, expression) \
    p = problem(#name, build_##name); \
    add_input(&p, JOT_SHAPE(3, 4), -1.5, 1.5); \
    check_order(&p, 1, 1e-5, 1e-7); \
    check_order(&p, 2, 1e-5, 1e-6);
    FORMS(TRY)
#undef TRY
    p = problem("matmul", build_matmul);
    add_input(&p, JOT_SHAPE(3, 4), -1, 1);
    add_input(&p, JOT_SHAPE(4, 2), -1, 1);
    check_order(&p, 1, 1e-5, 1e-7);
    check_order(&p, 2, 1e-5, 1e-6);
    p = problem("convolution", build_conv);
    add_input(&p, JOT_SHAPE(2, 6), -1, 1);
    add_input(&p, JOT_SHAPE(2, 2, 3), -1, 1);
    check_order(&p, 1, 1e-5, 1e-7);
    check_order(&p, 2, 1e-5, 1e-6);
    p = problem("shared weight", build_shared);
    add_input(&p, JOT_SHAPE(3, 4), -1, 1);
    add_input(&p, JOT_SHAPE(4, 4), -1, 1);
    check_order(&p, 1, 1e-5, 1e-7);
    check_order(&p, 2, 1e-5, 1e-6);
    p = problem("parts of a weight", build_parts);
    add_input(&p, JOT_SHAPE(3, 4), -1, 1);
    add_input(&p, JOT_SHAPE(4, 9), -1, 1);
    check_order(&p, 1, 1e-5, 1e-7);
    check_order(&p, 2, 1e-5, 1e-6);
}

static jot_Var
build_prod_of_zeros(jot_Var *in)
{
    return jot_prod(in[0], JOT_DIMS(1));
}

static jot_Var
scalar(jot_Ctx *c, double v)
{
    return jot_array(c, JOT_F64, JOT_SHAPE(), &v);
}

static void
test_zeros_and_ties(void)
{
    Problem p = problem("prod with zeros", build_prod_of_zeros);
    jot_Ctx *c = open_ctx();
    double tied[4] = {3, 1, 3, 3};
    jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(4), tied), g, y;
    const double *d;

    add_input(&p, JOT_SHAPE(4, 3), 0.5, 2);
    p.data[0][0] = 0;
    p.data[0][4] = p.data[0][5] = 0;
    p.data[0][6] = p.data[0][7] = p.data[0][8] = 0; /* rows with 1, 2, 3, no zeros */
    check_order(&p, 1, 1e-4, 1e-7);
    check_order(&p, 2, 1e-4, 1e-6);
    CHECK(jot_grad(jot_max(x, JOT_DIMS(0)), JOT_VARS(x), &g) && (d = jot_data(g)) && d[0] == 1.0 / 3
          && d[1] == 0 && d[2] == 1.0 / 3 && d[3] == 1.0 / 3, "ties of max: %s", jot_message(c));
    y = jot_sum(jot_maximum(x, jot_full(c, JOT_F64, JOT_SHAPE(4), 3)), JOT_DIMS(0));
    CHECK(jot_grad(y, JOT_VARS(x), &g) && (d = jot_data(g)) && d[0] == 0.5 && d[1] == 0
          && d[3] == 0.5,
          "ties of maximum: %s", jot_message(c));
    jot_close(c);
}

/* By what a variable means now, by what it meant before assignments that have run or have not, and
 * not at all: through integers and jot_stop_grad, or by the assigned value's history. */
static void
test_reaches(void)
{
    jot_Ctx *c = open_ctx();
    double one[2] = {1, 2};
    jot_Var p = jot_param(c, JOT_F64, JOT_SHAPE(2), one);
    jot_Var q = jot_param(c, JOT_F64, JOT_SHAPE(2), one);
    jot_Var r = jot_param(c, JOT_F64, JOT_SHAPE(2), one), whole = jot_cast(q, JOT_I32);
    jot_Var y = jot_mul(jot_exp(p), jot_mul(jot_cast(whole, JOT_F64), jot_stop_grad(r)));
    jot_Reach is[3];

    CHECK(jot_reaches(y, JOT_VARS(p, q, r), is) && is[0] == JOT_REACH_NOW
          && is[1] == JOT_REACH_NONE && is[2] == JOT_REACH_NONE, "%d %d %d: %s", is[0], is[1],
          is[2], jot_message(c));
    for (int run = 0; run < 3; run++) { /* pending, evaluated, set from memory */
        CHECK(run == 2 ? jot_set(p, one, sizeof one) : jot_assign(p, jot_add(p, r)), "%s",
              jot_message(c));
        if (run)
            jot_run(c, JOT_NONE_VARS);
        CHECK(jot_reaches(y, JOT_VARS(p, r), is) && is[0] == JOT_REACH_PAST
              && is[1] == JOT_REACH_NONE, "run %d: %d %d", run, is[0], is[1]);
        CHECK(jot_reaches(jot_add(y, p), JOT_VARS(p, r), is) && is[0] == JOT_REACH_NOW
              && is[1] == JOT_REACH_NONE, "run %d, now: %d %d", run, is[0], is[1]);
    }
    CHECK(!jot_reaches(y, JOT_VARS(jot_none()), is) && jot_error(c), "an empty handle");
    jot_close(c);
}

/* Of a variable with itself as of two that are equal: where it is NaN, too. */
static void
test_extreme_of_itself(void)
{
    static jot_Var (*const of[])(jot_Var, jot_Var) = {jot_maximum, jot_minimum, jot_fmax, jot_fmin};
    jot_Ctx *c = open_ctx();
    double data[3] = {NAN, 2, -7};
    jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(3), data), g[3];
    jot_Var y = jot_array(c, JOT_F64, JOT_SHAPE(3), data);

    for (int k = 0; k < 4; k++) {
        const double *one, *a, *b;

        jot_grad(jot_sum(of[k](x, x), JOT_ALL_DIMS), JOT_VARS(x), &g[0]);
        jot_vjp(JOT_VARS(jot_sum(of[k](x, y), JOT_ALL_DIMS)), JOT_VARS(scalar(c, 1)),
                JOT_VARS(x, y), g + 1);
        one = jot_data(g[0]), a = jot_data(g[1]), b = jot_data(g[2]);
        for (int i = 0; i < 3 && a && b; i++)
            CHECK(one && one[i] == a[i] + b[i], "%d: element %d: %g, of two %g and %g", k, i,
                  one ? one[i] : NAN, a[i], b[i]);
        CHECK(a && b && one && one[1] == 1, "%d: %s", k, jot_message(c));
    }
    jot_close(c);
}

/* ---- known values ------------------------------------------------------------------------- */

/* An extreme over elements of which none falls on some place: nothing to share, to second order
 * too. y0 and y1 fall on place 0, none on place 1. */
static void
test_empty_extremes(void)
{
    static const float ys[2] = {3, 5}, ds[2] = {2, 7};
    jot_Ctx *c = open_ctx();
    jot_Var y = jot_array(c, JOT_F32, JOT_SHAPE(2), ys), d = jot_array(c, JOT_F32, JOT_SHAPE(2), ds);
    jot_Var z = jot_reindex_reduce(JOT_MIN, y, JOT_SHAPE(2), JOT_INDEX("i0/2")), g, dd;
    const float *v;

    CHECK(jot_vjp(JOT_VARS(z), JOT_VARS(d), JOT_VARS(y), &g), "%s", jot_message(c));
    CHECK(jot_grad(jot_sum(g, JOT_ALL_DIMS), JOT_VARS(d), &dd), "%s", jot_message(c));
    CHECK((v = jot_data(g)) && v[0] == 2 && v[1] == 0, "%g %g", v[0], v[1]);
    CHECK((v = jot_data(dd)) && v[0] == 1 && v[1] == 0, "by the place nothing falls on: %g", v[1]);
    jot_close(c);
}

/* A reduction of one element by itself passes its gradient on, whatever the element is. */
static void
test_alone(void)
{
    static const jot_ReduceOp ops[] = {JOT_ADD, JOT_MUL, JOT_MAX, JOT_MIN, JOT_MEAN};
    static const float xs[4] = {NAN, INFINITY, 0, 2}, ds[4] = {2, 3, 5, 7};
    jot_Ctx *c = open_ctx();

    for (int k = 0; k < 5; k++) {
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), xs), g, second;
        jot_Var d = jot_array(c, JOT_F32, JOT_SHAPE(4), ds);
        jot_Var y = jot_reduce(ops[k], x, JOT_DIMS(1));
        const float *v;

        CHECK(jot_vjp(JOT_VARS(y), JOT_VARS(d), JOT_VARS(x), &g), "%s", jot_message(c));
        CHECK(jot_grad(jot_sum(g, JOT_ALL_DIMS), JOT_VARS(x), &second), "%s", jot_message(c));
        v = jot_data(g);
        for (int i = 0; v && i < 4; i++)
            CHECK(v[i] == ds[i], "operator %d at %g: %g", (int)ops[k], xs[i], v[i]);
        v = jot_data(second);
        for (int i = 0; v && i < 4; i++)
            CHECK(v[i] == 0, "operator %d at %g, second order: %g", (int)ops[k], xs[i], v[i]);
    }
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
test_fourth_power(void)
{
    static const double want[6] = {16, 32, 48, 48, 24, 0};
    jot_Ctx *c = open_ctx();
    jot_Var x = scalar(c, 2), y = jot_mul(jot_mul(x, x), jot_mul(x, x)), z;
    int k;

    z = jot_pow(x, jot_full(c, JOT_F64, JOT_SHAPE(), 4));
    for (k = 0; k < 6; k++) {
        CHECK(jot_item(y) == want[k], "derivative %d of x*x*x*x: %g", k, jot_item(y));
        CHECK(fabs(jot_item(z) - want[k]) < 1e-12, "derivative %d of x^4: %g", k, jot_item(z));
        jot_grad(y, JOT_VARS(x), &y);
        jot_grad(z, JOT_VARS(x), &z);
    }
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
test_vjp(void)
{
    jot_Ctx *c = open_ctx();
    double av[2] = {1, 2}, dv[2] = {10, 100};
    jot_Var a = jot_array(c, JOT_F64, JOT_SHAPE(2), av), b = scalar(c, 3), g[3];
    jot_Var d = jot_array(c, JOT_F64, JOT_SHAPE(2), dv), one = jot_scalar(c, JOT_F64, 1);
    const double *p, *q;

    CHECK(jot_vjp(JOT_VARS(jot_mul(a, b), jot_mul(b, b)), JOT_VARS(d, one), JOT_VARS(a, b, a), g),
          "%s", jot_message(c));
    p = jot_data(g[0]);
    q = jot_data(g[2]);
    CHECK(p && q && p[0] == 30 && p[1] == 300 && q[1] == 300, "by a: %s", jot_message(c));
    CHECK(jot_item(g[1]) == 210 + 6, "by b: %g", jot_item(g[1]));
    CHECK(jot_grad(b, JOT_VARS(b), g) && jot_item(g[0]) == 1, "of itself");
    CHECK(jot_grad(jot_mul(b, b), JOT_VARS(a), g) && (p = jot_data(g[0])) && p[0] == 0 && p[1] == 0
          && jot_nelem(g[0]) == 2, "not reached: zeros");
    CHECK(jot_grad(jot_sum(jot_mul(a, b), JOT_ALL_DIMS), jot_vars(0, &a), NULL), "by nothing");
    jot_close(c);
}

/* ---- structure ---------------------------------------------------------------------------- */

static int
count_kind(jot_Ctx *c, jot_Var v, NodeKind kind, int op, int *rank)
{
    NodeId root = c->slots.v[v.slot].node;
    NodeList list;
    uint32_t k;
    int n = 0;

    *rank = 0;
    if (!jot_graph_order(c, &root, 1, false, &list))
        return -1;
    for (k = 0; k < list.n; k++) {
        const Node *p = jot_node(c, list.v[k]);

        if (p->kind != kind || (op >= 0 && p->op != op))
            continue;
        n++;
        *rank = p->rank > *rank ? p->rank : *rank;
    }
    jot_list_free(c, &list);
    return n;
}

static void
test_structure(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3, 4), NULL), in[2], g[2], y;
    int rank;

    CHECK(jot_grad(jot_sum(jot_transpose(jot_mul(x, x), JOT_INTS(1, 0)), JOT_ALL_DIMS), JOT_VARS(x),
                   g)
          && count_kind(c, g[0], NODE_REDUCE, -1, &rank) == 0, "a transpose needs no sum");
    CHECK(jot_grad(jot_sum(jot_square(jot_concat(JOT_VARS(x, x), 0)), JOT_ALL_DIMS), JOT_VARS(x), g)
          && count_kind(c, g[0], NODE_REDUCE, -1, &rank) == 0, "slices of a concat need no sum");
    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(3, 4), NULL);
    in[1] = jot_array(c, JOT_F32, JOT_SHAPE(4, 4), NULL);
    y = jot_sum(build_shared(in), JOT_ALL_DIMS);
    CHECK(jot_grad(y, jot_vars(2, in), g), "%s", jot_message(c));
    CHECK(count_kind(c, g[1], NODE_REDUCE, JOT_ADD, &rank) == 5 && rank == 2,
          "a shared weight: two products forward, one and two backward; rank %d", rank);
    in[1] = jot_array(c, JOT_F32, JOT_SHAPE(4, 9), NULL);
    CHECK(jot_grad(jot_sum(build_parts(in), JOT_ALL_DIMS), jot_vars(2, in), g), "%s",
          jot_message(c));
    CHECK(count_kind(c, g[1], NODE_EW, EW_ADD, &rank) > 2 && rank == 2,
          "parts of a weight: products are added up, not their terms; rank %d", rank);
    y = jot_cast(jot_sum(jot_cast(jot_square(jot_ones(c, JOT_F16, JOT_SHAPE(2))), JOT_F32),
                         JOT_ALL_DIMS), JOT_F64);
    x = jot_array(c, JOT_F16, JOT_SHAPE(2), NULL);
    y = jot_cast(jot_sum(jot_cast(jot_square(x), JOT_F32), JOT_ALL_DIMS), JOT_F64);
    CHECK(jot_grad(y, JOT_VARS(x), g) && jot_dtype(g[0]) == JOT_F16, "the dtype of its variable");
    x = scalar(c, 1.5);
    CHECK(jot_grad(jot_cast(jot_cast(x, JOT_I32), JOT_F32), JOT_VARS(x), g) && jot_item(g[0]) == 0,
          "integers carry none");
    jot_close(c);
}

static void
test_blocks(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = scalar(c, 3), y = jot_square(x), s = jot_stop_grad(y), g[2], w;

    CHECK(jot_grad(jot_mul(s, x), JOT_VARS(x), g) && jot_item(g[0]) == 9, "stop_grad: %g",
          jot_item(g[0]));
    CHECK(jot_grad(jot_mul(s, x), JOT_VARS(s), g) && jot_item(g[0]) == 3, "by what is stopped");
    CHECK(jot_grad(jot_mul(jot_stop_fuse(y), x), JOT_VARS(x), g) && jot_item(g[0]) == 27,
          "stop_fuse");
    CHECK(jot_item(y) == 9 && jot_grad(jot_mul(y, x), JOT_VARS(x), g) && jot_item(g[0]) == 27,
          "what has been evaluated still has its history");
    w = jot_param_of(jot_square(x));
    g[0] = x;
    g[1] = w;
    CHECK(jot_grad(jot_mul(w, x), jot_vars(2, g), g) && jot_item(g[0]) == 9 && jot_item(g[1]) == 3,
          "a parameter is a leaf; grads may be wrt: %g %g", jot_item(g[0]), jot_item(g[1]));
    CHECK(jot_assign(w, jot_mul(w, x)) && jot_grad(jot_square(w), JOT_VARS(x), g)
          && jot_item(g[0]) == 0,
          "an assigned variable is a leaf");
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static void
test_errors(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), NULL), i = jot_ones(c, JOT_I64, JOT_SHAPE());
    jot_Var y = jot_sum(x, JOT_ALL_DIMS), g[2], two[2];

    two[0] = x;
    two[1] = i;
#define FAILS(call, status, message) \
    CHECK(!(call) && jot_error(c) == status && !strcmp(jot_message(c), message) && !jot_ok(g[0]), \
          "%s", jot_message(c)); \
    jot_clear(c)
    FAILS(jot_grad(x, JOT_VARS(x), g), JOT_EGRAD,
          "grad: y has shape (2, 3); it must have one element (sum it, or see jot_vjp)");
    FAILS(jot_grad(i, JOT_VARS(x), g), JOT_EGRAD, "grad: y[0] is i64; only floats have gradients");
    FAILS(jot_grad(y, jot_vars(2, two), g), JOT_EGRAD,
          "grad: wrt[1] is i64; only floats have gradients");
    two[1] = jot_ones(c, JOT_F32, JOT_SHAPE(2));
    FAILS(jot_grad(y, jot_vars(2, two), g), JOT_EGRAD,
          "grad: wrt[1] is a constant; what gradients are asked of "
          "is made by jot_array or jot_param");
    i = jot_array(c, JOT_I64, JOT_SHAPE(2), NULL);
    jot_name(i, "labels");
    two[1] = i;
    FAILS(jot_grad(y, jot_vars(2, two), g), JOT_EGRAD,
          "grad: wrt[1] 'labels' is i64; only floats have gradients");
    FAILS(jot_vjp(JOT_VARS(x), JOT_VARS(y), JOT_VARS(x), g), JOT_ESHAPE,
          "vjp: y[0] is f32 (2, 3), dy[0] is f32 ()");
    FAILS(jot_vjp(JOT_VARS(x), JOT_VARS(y, y), JOT_VARS(x), g), JOT_ESHAPE,
          "vjp: 1 variables in y, 2 in dy");
    FAILS(jot_grad(y, jot_vars(-1, two), g), JOT_ERANGE,
          "grad: -1 variables in wrt; 0 to 4096 are taken");
#undef FAILS
    CHECK(jot_grad(y, JOT_VARS(x), g), "%s", jot_message(c));
    jot_close(c);
}

/* ---- size and memory ---------------------------------------------------------------------- */

static void
test_long_chain(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = scalar(c, 0.5), y = x, g;
    uint32_t nodes;
    int k;

    jot_push(c);
    for (k = 0; k < 30000; k++)
        y = jot_sin(y);
    CHECK(jot_grad(y, JOT_VARS(x), &g), "%s", jot_message(c));
    nodes = c->live_nodes;
    CHECK(nodes >= 90000 && nodes < 100000, "%u nodes", (unsigned)nodes);
    jot_pop(c);
    CHECK(c->live_nodes == 1, "%u nodes", (unsigned)c->live_nodes);
    jot_close(c);
}

static void
test_refusals(void)
{
    long n;
    bool done = false;

    for (n = 1; n < 2000 && !done; n++) {
        Heap heap = {0};
        jot_Config config;
        jot_Ctx *c;
        jot_Var in[2], y, g[2];
        uint32_t slots, depth;
        bool ok;

        memset(&config, 0, sizeof config);
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        config.backend = "interp";
        c = jot_open(&config);
        in[0] = jot_array(c, JOT_F64, JOT_SHAPE(3, 4), NULL);
        in[1] = jot_array(c, JOT_F64, JOT_SHAPE(4, 4), NULL);
        jot_push(c);
        y = jot_add(jot_sum(build_shared(in), JOT_ALL_DIMS),
                    jot_prod(jot_max(in[0], JOT_DIMS(1)), JOT_DIMS(0)));
        slots = c->live_slots;
        depth = c->marks.n;
        heap.countdown = n;
        ok = jot_grad(y, jot_vars(2, in), g);
        done = !heap.refused;
        CHECK(ok == !jot_error(c) && (ok || (!done && jot_error(c) == JOT_EMEM)),
              "request %ld: %s", n, jot_message(c));
        CHECK(ok || (!jot_ok(g[0]) && !jot_ok(g[1]) && c->live_slots == slots),
              "request %ld: %u handles", n, (unsigned)c->live_slots);
        CHECK(c->marks.n == depth, "request %ld: scopes", n);
        jot_pop(c);
        CHECK(c->live_nodes == 2, "request %ld: %u nodes are left", n, (unsigned)c->live_nodes);
        jot_close(c);
        CHECK(heap.live == 0, "request %ld: %zu bytes are left", n, heap.live);
    }
    CHECK(done && n > 20, "%ld requests", n);
}

int
main(void)
{
    for (no_simplify = 0; no_simplify < 2; no_simplify++) {
        test_elementwise();
        test_maps();
        test_zeros_and_ties();
        test_extreme_of_itself();
        test_empty_extremes();
        test_alone();
        test_reaches();
    }
    no_simplify = 0;
    test_fourth_power();
    test_vjp();
    test_structure();
    test_blocks();
    test_errors();
    test_long_chain();
    test_refusals();
    return DONE();
}
