/* cases.h - the driver of reference cases: results and gradients of compositions against a table of
 * PyTorch's values in f32 and f64, against finite differences to second order, of many examples at
 * once against one after the other; and what the checks
 * of wrong arguments share. A program includes one table of tests/ref/make.py and this, lists how
 * jot builds the cases of the table,
 *
 *     #define COMPOSITIONS(X) X(elu, jot_elu(in[0], 0.7)) X(glu, jot_glu(in[0], -1)) ...
 *     REF_BUILDS(COMPOSITIONS)
 *
 * and calls check_references on each backend and check_differences once. */
#ifndef REF_CASES_H
#define REF_CASES_H
#include "core.h"
#include "tests/ref/fill.h"
#include "tests/test.h"

enum { MAX = 4096, CASES = (int)(sizeof ref_cases / sizeof *ref_cases) };

static const char *backend; /* NULL: the default */

static jot_Ctx *
open_ctx(void)
{
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = ""; /* leave nothing behind */
    return jot_open(&config);
}

/* ---- the list of compositions ---- */

typedef struct { const char *name; jot_Var (*build)(const jot_Var *in); } RefBuild;
#define REF_BUILDS(LIST) \
    LIST(REF_BUILD_) \
    static const RefBuild ref_builds[] = {LIST(REF_ROW_) {NULL, NULL}}; \
    static const RefBuild * \
    ref_all(void) \
    { \
        return ref_builds; \
    }
#define REF_BUILD_(name, ...) \
    static jot_Var build_##name(const jot_Var *in) { return __VA_ARGS__; }
#define REF_ROW_(name, ...) {#name, build_##name},

static const RefBuild *ref_all(void); /* the program's REF_BUILDS */

static jot_Var
build(const char *name, const jot_Var *in)
{
    for (const RefBuild *b = ref_all(); b->name; b++)
        if (!strcmp(b->name, name))
            return b->build(in);
    CHECK(0, "no composition named %s", name);
    return in[0];
}

/* ---- comparison ---- */

static jot_Ints
ints_of(const RefShape *s, int64_t ext[5])
{
    for (int d = 0; d < s->rank; d++)
        ext[d] = s->ext[d];
    return jot_ints(s->rank, ext);
}

/* Largest difference, in units of 1 + the largest reference; infinite without a value. */
static double
difference(jot_Var v, const double *ref, long n)
{
    static double got[MAX];
    double worst = 0, most = 0;
    if ((long)jot_nelem(v) != n || !ref_read(v, got, MAX))
        return INFINITY;
    for (long k = 0; k < n; k++) {
        double d = fabs(got[k] - ref[k]);
        worst = d > worst || d != d ? d : worst;
        most = fabs(ref[k]) > most ? fabs(ref[k]) : most;
    }
    return worst / (1 + most);
}

/* sum(build(inputs) * fill(9)), where input k is fill(k + 1), and moved by h * fill(k + 20) if it
 * has a gradient. */
static jot_Var
objective(jot_Ctx *c, const RefCase *r, jot_DType dtype, double h, jot_Var *in, jot_Var *y)
{
    int64_t ext[5];
    for (int k = 0; k < r->inputs; k++) {
        jot_Ints shape = ints_of(&r->in[k], ext);
        in[k] = ref_array(c, dtype, shape, k + 1, 1);
        if (h != 0 && r->grad[k])
            in[k] = jot_add(in[k], ref_array(c, dtype, shape, k + 20, h));
    }
    *y = build(r->name, in);
    jot_Var dy = ref_array(c, dtype, jot_shape(*y), 9, 1);
    return jot_sum(jot_mul(*y, dy), JOT_ALL_DIMS);
}

static bool
has_gradient(const RefCase *r)
{
    int k = 0;
    while (k < r->inputs && !r->grad[k])
        k++;
    return k < r->inputs;
}

static void
check_case(const RefCase *r, jot_DType dtype, double tolerance)
{
    jot_Ctx *c = open_ctx();
    const char *on = c ? jot_backend(c) : "none", *of = jot_dtype_name(dtype);
    jot_Var in[5], g[5], y, loss = objective(c, r, dtype, 0, in, &y), all[6];
    int nall = 0;
    double d;

    if (has_gradient(r))
        jot_grad(loss, jot_vars(r->inputs, in), g);
    all[nall++] = y;
    for (int k = 0; k < r->inputs; k++)
        if (r->grad[k])
            all[nall++] = g[k];
    jot_run(c, jot_vars(nall, all)); /* one plan: a device's compiler takes long to begin */
    d = difference(y, r->value, (long)jot_nelem(y));
    CHECK(jot_rank(y) == r->y.rank, "%s %s on %s: rank %d", r->name, of, on, jot_rank(y));
    for (int k = 0; k < r->y.rank; k++)
        CHECK(jot_extent(y, k) == r->y.ext[k], "%s: extent %d", r->name, k);
    CHECK(jot_dtype(y) == dtype, "%s %s on %s: %s", r->name, of, on, jot_dtype_name(jot_dtype(y)));
    CHECK(d <= tolerance, "%s %s on %s: off by %g: %s", r->name, of, on, d, jot_message(c));
    for (int k = 0; k < r->inputs; k++)
        if (r->grad[k]) {
            d = difference(g[k], r->grad[k], (long)jot_nelem(in[k]));
            CHECK(d <= tolerance, "%s %s on %s: gradient %d off by %g: %s", r->name, of, on, k, d,
                  jot_message(c));
        }
    jot_close(c);
}

/* ---- finite differences along one direction: v = fill(k + 20) per input ---- */

/* sum over inputs of a[k] * fill(k + 20) */
static jot_Var
along(jot_Ctx *c, const jot_Var *a, int n)
{
    jot_Var s = jot_zeros(c, JOT_F64, JOT_SHAPE());
    for (int k = 0; k < n; k++) {
        jot_Var v = ref_array(c, JOT_F64, jot_shape(a[k]), k + 20, 1);
        s = jot_add(s, jot_sum(jot_mul(a[k], v), JOT_ALL_DIMS));
    }
    return s;
}

/* Where it starts, tangents along the direction are `first` for the value, `second` for that. */
static void
check_tangents(jot_Ctx *c, const RefCase *r, const jot_Var *in, jot_Var value, jot_Var slope,
               double first, double second)
{
    jot_Var x[5], dx[5], dy[2];
    int n = 0;
    for (int k = 0; k < r->inputs; k++)
        if (r->grad[k]) {
            x[n] = in[k];
            dx[n++] = ref_array(c, JOT_F64, jot_shape(in[k]), k + 20, 1);
        }
    jot_jvp(JOT_VARS(value, slope), jot_vars(n, x), jot_vars(n, dx), dy);
    double d1 = jot_item(dy[0]), d2 = jot_item(dy[1]);
    CHECK(fabs(d1 - first) <= 1e-9 * (1 + fabs(first)), "%s: slope %.12g, tangent %.12g: %s",
          r->name, first, d1, jot_message(c));
    CHECK(fabs(d2 - second) <= 1e-8 * (1 + fabs(second)),
          "%s: curvature %.12g, tangent of the slope %.12g: %s", r->name, second, d2,
          jot_message(c));
}

/* Value, first and second derivative along the direction, at a distance h from the start. */
static void
derivatives(const RefCase *r, double h, double *value, double *first, double *second)
{
    jot_Ctx *c = open_ctx();
    jot_Var in[5], g[5], gg[5], y, loss = objective(c, r, JOT_F64, h, in, &y);
    *value = jot_item(loss);
    jot_grad(loss, jot_vars(r->inputs, in), g);
    jot_Var slope = along(c, g, r->inputs);
    *first = jot_item(slope);
    jot_grad(slope, jot_vars(r->inputs, in), gg);
    *second = jot_item(along(c, gg, r->inputs));
    if (h == 0)
        check_tangents(c, r, in, loss, slope, *first, *second);
    CHECK(!jot_error(c), "%s: %s", r->name, jot_message(c));
    jot_close(c);
}

/* ---- many at once ---- */

enum { EXAMPLES = 3, RESULTS = 12 };

/* The value, its gradients, and where it is differentiable those of their sum; how many. */
static int
results(const RefCase *r, jot_Ctx *c, const jot_Var *in, jot_Var *out)
{
    jot_Var g[5], gg[5];
    int n = 1;
    out[0] = build(r->name, in);
    jot_Var dy = ref_array(c, JOT_F64, jot_shape(out[0]), 9, 1);
    if (!has_gradient(r))
        return n;
    jot_grad(jot_sum(jot_mul(out[0], dy), JOT_ALL_DIMS), jot_vars(r->inputs, in), g);
    jot_grad(along(c, g, r->inputs), jot_vars(r->inputs, in), gg);
    for (int k = 0; k < r->inputs; k++)
        if (r->grad[k]) {
            out[n++] = g[k];
            out[n++] = gg[k];
        }
    return n;
}

static bool
same_numbers(jot_Var a, jot_Var b, double *worst)
{
    static double p[MAX], q[MAX];
    long n = (long)jot_nelem(a);
    *worst = INFINITY;
    if (n != (long)jot_nelem(b) || jot_rank(a) != jot_rank(b) || !ref_read(a, p, MAX) ||
        !ref_read(b, q, MAX))
        return false;
    *worst = 0;
    for (long k = 0; k < n; k++)
        if (p[k] != q[k] && !(p[k] != p[k] && q[k] != q[k])) {
            double d = fabs(p[k] - q[k]) / (1 + fabs(p[k]) + fabs(q[k]));
            *worst = d > *worst || d != d ? d : *worst;
        }
    return *worst <= 1e-9;
}

/* jot_vmap against one example after the other. mixed: every second input is the same for all, the
 * others' axis is the last, and so is the results'. */
static void
check_examples(const RefCase *r, bool mixed)
{
    jot_Ctx *c = open_ctx();
    jot_Var in[5], of[EXAMPLES][5], xs[5], one[EXAMPLES][RESULTS], y[RESULTS], ys[RESULTS];
    int64_t ext[5], axes[5], last[RESULTS];
    for (int k = 0; k < r->inputs; k++) {
        jot_Ints shape = ints_of(&r->in[k], ext);
        bool shared = mixed && k % 2;
        in[k] = ref_array(c, JOT_F64, shape, k + 1, 1);
        for (int e = 0; e < EXAMPLES; e++)
            of[e][k] = shared ? in[k] : ref_array(c, JOT_F64, shape, k + 1 + 10 * e, 1);
        xs[k] = shared ? in[k] : jot_stack(JOT_VARS(of[0][k], of[1][k], of[2][k]), mixed ? -1 : 0);
        axes[k] = shared ? JOT_UNBATCHED : mixed ? -1 : 0;
    }
    int n = results(r, c, in, y);
    for (int k = 0; k < n; k++)
        last[k] = mixed ? -1 : 0;
    jot_Vmap how = {jot_ints(r->inputs, axes), jot_ints(n, last), false};
    CHECK(jot_vmap(jot_vars(n, y), jot_vars(r->inputs, in), jot_vars(r->inputs, xs), &how, ys),
          "%s: %s", r->name, jot_message(c));
    for (int e = 0; e < EXAMPLES; e++)
        results(r, c, of[e], one[e]);
    for (int k = 0; k < n && !jot_error(c); k++)
        for (int e = 0; e < EXAMPLES; e++) {
            double worst;
            jot_Var got = jot_take(ys[k], jot_scalar(c, JOT_I64, e), mixed ? -1 : 0);
            CHECK(same_numbers(got, one[e][k], &worst), "%s: result %d of example %d off by %g: %s",
                  r->name, k, e, worst, jot_message(c));
        }
    jot_close(c);
}

static void
check_slopes(const RefCase *r)
{
    const double h = 1e-5;
    double v0, v1, v2, a0, a1, a2, b0, b1, b2;
    check_examples(r, false);
    check_examples(r, true);
    if (!has_gradient(r))
        return;
    derivatives(r, 0, &v0, &v1, &v2);
    derivatives(r, h, &a0, &a1, &a2);
    derivatives(r, -h, &b0, &b1, &b2);
    double first = (a0 - b0) / (2 * h), second = (a1 - b1) / (2 * h);
    CHECK(fabs(first - v1) <= 1e-6 * (1 + fabs(v1) + fabs(v0)), "%s: slope %.12g, difference %.12g",
          r->name, v1, first);
    CHECK(fabs(second - v2) <= 2e-6 * (1 + fabs(v2) + fabs(v1)),
          "%s: curvature %.12g, difference %.12g", r->name, v2, second);
}

static void
check_references(void)
{
    int builds = 0;
    while (ref_all()[builds].name)
        builds++;
    CHECK(builds == CASES, "%d compositions for %d cases", builds, CASES);
    for (int k = 0; k < CASES; k++) {
        check_case(&ref_cases[k], JOT_F64, 1e-10);
        check_case(&ref_cases[k], JOT_F32, 2e-5);
    }
}

/* name: a case whose gradient is not that of its value, since it takes something for constant */
static inline void
check_differences_but(const char *name)
{
    for (int k = 0; k < CASES; k++)
        if (strcmp(ref_cases[k].name, name))
            check_slopes(&ref_cases[k]);
}

static inline void
check_differences(void)
{
    check_differences_but("");
}

/* ---- memory refused ---- */

static long ref_left; /* allocations that are granted */

static inline void *
ref_refuse(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (!new_nbytes)
        free(p);
    return new_nbytes && ref_left-- > 0 ? realloc(p, new_nbytes) : NULL;
}

/* r built with n allocations: poison that says why, or a value. Is it enough? */
static inline bool
ref_built(const RefCase *r, long n)
{
    const long plenty = 1000000;
    jot_Config config;
    jot_Var in[5];
    int64_t ext[5];
    memset(&config, 0, sizeof config);
    config.backend = "interp";
    config.hooks.realloc = ref_refuse;
    config.give_back = 1;
    ref_left = plenty;
    jot_Ctx *c = jot_open(&config);
    for (int k = 0; k < r->inputs; k++)
        in[k] = ref_array(c, JOT_F32, ints_of(&r->in[k], ext), k + 1, 1);
    ref_left = n;
    jot_Var y = build(r->name, in);
    bool ok = jot_ok(y);
    ref_left = plenty;
    CHECK(ok || jot_error(c) == JOT_EMEM, "%s, %ld: %s", r->name, n, jot_message(c));
    CHECK(!ok || jot_data(y), "%s, %ld: %s", r->name, n, jot_message(c));
    jot_clear(c);
    jot_pop(c);
    CHECK(jot_error(c) == JOT_EUSE, "%s, %ld: a scope was left open", r->name, n);
    jot_close(c);
    return ok;
}

/* Each case with the first, the second, ... allocation of its building refused. */
static inline void
check_memory(void)
{
    for (int k = 0; k < CASES; k++)
        for (long n = 0; !ref_built(&ref_cases[k], n); n++)
            continue;
}

/* ---- wrong arguments ---- */

static jot_Ctx *ec;

static inline jot_Var
zeros(int n, int64_t a, int64_t b, int64_t d, int64_t e)
{
    int64_t ext[4];
    ext[0] = a;
    ext[1] = b;
    ext[2] = d;
    ext[3] = e;
    return jot_zeros(ec, JOT_F32, jot_ints(n, ext));
}

/* v must be poison, the status as given, the message holding both words. */
static void
refused(jot_Var v, jot_Status status, const char *one, const char *two)
{
    CHECK(!jot_ok(v), "%s, %s: was accepted", one, two);
    CHECK(jot_error(ec) == status, "%s, %s: status %d: %s", one, two, (int)jot_error(ec),
          jot_message(ec));
    CHECK(strstr(jot_message(ec), one) && strstr(jot_message(ec), two), "%s, %s: %s", one, two,
          jot_message(ec));
    jot_clear(ec);
}

/* ---- backends ---- */

static bool
backend_opens(void)
{
    jot_Ctx *c = open_ctx();
    bool missing = jot_error(c) == JOT_EDEVICE;
    if (missing)
        SKIP("%s", jot_message(c));
    jot_close(c);
    return !missing;
}

#endif
