/* tests/test_run.c - evaluation: small graphs on every backend against expected values and against
 * the interpreter, under every policy, with random layouts and schedules; plans, assignments,
 * failures. (Fetches and long programs: tests/test_lazy.c.)
 *
 * Guards: backends/host/library.c, backends/interp.c, backends/table.c, ccode/build/invert.c,
 * ccode/build/value.c, ccode/emit/emit.c, ccode/emit/expr.c, ccode/emit/index.c, ccode/ir/ir.c,
 * ccode/ir/operands.c, ccode/lower/index.c, ccode/lower/leaf.c, ccode/lower/lower.c,
 * ccode/lower/value.c, core.c, plan/compile.c, plan/data.c, plan/tier/tier.c. */
#include "tests/hooks.h"
#include "tests/run_programs.h"

enum { PROGRAMS = sizeof programs / sizeof programs[0] };

/* ---- all against the interpreter ---------------------------------------------------------- */

typedef struct { double *v[MOST]; int64_t n[MOST]; int count; } Values;

static double
element(const void *p, jot_DType t, int64_t i)
{
    switch (t) {
    case JOT_BOOL: case JOT_U8: return ((const uint8_t *)p)[i];
    case JOT_I8: return ((const int8_t *)p)[i];
    case JOT_I16: return ((const int16_t *)p)[i];
    case JOT_I32: return ((const int32_t *)p)[i];
    case JOT_I64: return (double)((const int64_t *)p)[i];
    case JOT_F32: return ((const float *)p)[i];
    case JOT_F64: return ((const double *)p)[i];
    default: return 0;
    }
}

static bool
values(jot_Ctx *c, Program *build, Values *r)
{
    jot_Var out[MOST], wide;
    int k;

    memset(r, 0, sizeof *r);
    build(c, out, &r->count);
    jot_run(c, jot_vars(r->count, out));
    for (k = 0; k < r->count && !jot_error(c); k++) {
        int64_t i;
        jot_DType t = jot_dtype(out[k]);
        const void *p;

        wide = t == JOT_F16 || t == JOT_BF16 ? jot_cast(out[k], JOT_F32) : out[k];
        p = jot_data(wide);
        r->n[k] = jot_nelem(wide);
        r->v[k] = malloc(sizeof(double) * (size_t)(r->n[k] + 1));
        for (i = 0; p && i < r->n[k]; i++)
            r->v[k][i] = element(p, jot_dtype(wide), i);
    }
    return !jot_error(c);
}

static void
values_free(Values *r)
{
    int k;

    for (k = 0; k < MOST; k++)
        free(r->v[k]);
}

static void
compare(const char *what, const Values *a, const Values *b)
{
    int k;

    for (k = 0; k < a->count; k++) {
        int64_t i, bad = -1;

        for (i = 0; i < a->n[k] && bad < 0; i++) {
            double x = a->v[k][i], y = b->v[k][i];

            if (!(x == y || (x != x && y != y) || fabs(x - y) <= 3e-5 * (1 + fabs(x))))
                bad = i;
        }
        CHECK(a->n[k] == b->n[k] && bad < 0, "%s: output %d element %lld: %g, not %g", what, k,
              (long long)bad, bad < 0 ? 0 : b->v[k][bad], bad < 0 ? 0 : a->v[k][bad]);
    }
}

static bool
have(const char *backend)
{
    jot_Config config;
    jot_Ctx *c;
    bool ok;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    c = jot_open(&config);
    ok = c && !jot_error(c);
    if (!ok)
        SKIP("backend %s: %s", backend, jot_message(c));
    jot_close(c);
    return ok;
}

static void
one(int p, const char *backend, const char *policy, const char *layout, const char *schedule,
    int lanes,
    const Values *want)
{
    jot_Config config;
    jot_Ctx *c;
    Values got;
    char what[160];

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.policy = policy;
    config.layout = layout;
    config.schedule = schedule;
    config.lanes = lanes;
    c = jot_open(&config);
    snprintf(what, sizeof what, "%s on %s, %s, layout %s, schedule %s, %d lanes", programs[p].name,
             backend,
             policy, layout, schedule, lanes);
    if (values(c, programs[p].build, &got))
        compare(what, want, &got);
    else
        CHECK(false, "%s: %s", what, jot_message(c));
    values_free(&got);
    jot_close(c);
}

static void
test_programs(const char *backend, int seeds)
{
    int p, s;

    for (p = 0; p < PROGRAMS; p++) {
        jot_Config config;
        jot_Ctx *c;
        Values want;
        char layout[32], schedule[32];

        memset(&config, 0, sizeof config);
        config.backend = "interp";
        c = jot_open(&config);
        if (!values(c, programs[p].build, &want))
            CHECK(false, "%s on interp: %s", programs[p].name, jot_message(c));
        else if (strcmp(backend, "interp")) {
            bool dear = !strcmp(backend, "opencl"); /* a second for three kernels */

            if (!dear || p % test_many(2, 1) == 0)
                one(p, backend, "paper", "rowmajor", "default", 1, &want);
            if ((p + 1) % test_many(dear ? 4 : 2, 1) == 0)
                one(p, backend, "none", "rowmajor", "default", 1, &want);
            for (s = 1; s <= seeds; s++) {
                snprintf(layout, sizeof layout, "random:%d", s);
                snprintf(schedule, sizeof schedule, "random:%d", s * 7);
                if ((p + s) % test_many(2, 1) == 0)
                    one(p, backend, "paper", layout, "default", 1, &want);
                if ((p + s + 1) % test_many(2, 1) == 0)
                    one(p, backend, "paper", "rowmajor", schedule, 1, &want);
                one(p, backend, s & 1 ? "none" : "paper", layout, schedule, s & 1 ? 4 : 1, &want);
            }
        }
        values_free(&want);
        jot_close(c);
    }
}

/* ---- expected values ---------------------------------------------------------------------- */

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    return jot_open(&config);
}

static void
expect(jot_Ctx *c, const char *what, jot_Var v, int n, const double *want)
{
    const float *p = jot_data(v);
    int i, bad = -1;

    for (i = 0; p && i < n && bad < 0; i++)
        if (!(fabs(p[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
            bad = i;
    CHECK(p && jot_nelem(v) == n && bad < 0, "%s on %s: element %d is %g (%s)", what,
          jot_backend(c), bad,
          p && bad >= 0 ? p[bad] : 0.0, jot_message(c));
}

static void
test_expected(const char *backend)
{
    static const float x[] = {1, 2, 3, 4, 5, 6}, nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const double row[] = {6, 15}, col[] = {5, 7, 9}, mm[] = {14, 32, 32, 77};
    static const double corner[] = {1, 2, 4, 5};
    static const double box[] = {12, 16, 24, 28};
    jot_Ctx *c = open_on(backend);
    jot_Var a = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), x),
        k = jot_array(c, JOT_F32, JOT_SHAPE(3, 3), nine);

    expect(c, "sum of rows", jot_sum(a, JOT_DIMS(1)), 2, row);
    expect(c, "sum of columns", jot_sum(a, JOT_DIMS(0)), 3, col);
    expect(c, "matmul", jot_matmul(a, jot_transpose(a, JOT_INTS(1, 0))), 4, mm);
    expect(c, "scatter", jot_reindex_reduce(JOT_ADD, a, JOT_SHAPE(6), JOT_INDEX("2*i0+i1")), 6,
           (const double[]){1, 2, 3 + 4, 5, 6, 0});
    expect(c, "scatter", jot_reindex_reduce(JOT_MAX, a, JOT_SHAPE(4), JOT_INDEX("i0+i1")), 4,
           (const double[]){1, 4, 5, 6});
    expect(c, "slice", jot_slice(k, JOT_INTS(0, 0), JOT_INTS(2, 2), JOT_INTS(1, 1)), 4, corner);
    expect(c, "2 x 2 sums", jot_sum(jot_reindex(k, JOT_SHAPE(2, 2, 2, 2),
                                                JOT_INDEX("i0+i2", "i1+i3")),
                                    JOT_DIMS(2, 3)), 4, box);
    jot_close(c);
}

/* ---- plans -------------------------------------------------------------------------------- */

static jot_Var
step(jot_Ctx *c, jot_Var x, jot_Var w, double lr)
{
    jot_Var loss = jot_sum(jot_square(jot_sub(jot_mul(x, w),
                                              jot_full(c, JOT_F32, JOT_SHAPE(8), 3))),
                           JOT_ALL_DIMS), g[1];

    jot_grad(loss, JOT_VARS(w), g);
    jot_assign(w, jot_sub(w, jot_scale(g[0], lr)));
    return loss;
}

static void
test_plans(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    jot_Var x = ramp(c, JOT_SHAPE(8), 0.01, 0.5), w = jot_param(c, JOT_F32, JOT_SHAPE(8), NULL);
    jot_Stats before = jot_stats(c), after;
    double first = 0, last = 0;
    uint32_t nodes = 0;
    int i;

    for (i = 0; i < 50; i++) {
        jot_push(c);
        last = jot_item(step(c, x, w, 0.1 + 0.001 * i));
        jot_pop(c);
        if (i == 0) {
            first = last;
            before = jot_stats(c);
        }
        if (i == 2)
            nodes = jot_stats(c).live_nodes;
    }
    after = jot_stats(c);
    CHECK(!jot_error(c), "%s", jot_message(c));
    CHECK(last < 0.05 * first, "loss %g -> %g", first, last);
    CHECK(after.live_nodes == nodes, "%u nodes after step 3, %u at the end", nodes,
          after.live_nodes);
    if (strcmp(backend, "interp")) {
        CHECK(after.kernels_compiled == before.kernels_compiled, "%s: %llu kernels, then %llu",
              backend,
              (unsigned long long)before.kernels_compiled,
                  (unsigned long long)after.kernels_compiled);
        CHECK(after.plans == before.plans && after.plan_hits == before.plan_hits + 49,
              "%llu plans, %llu hits", (unsigned long long)after.plans,
              (unsigned long long)after.plan_hits);
    }
    /* another plan with a kernel that is known compiles nothing */
    jot_item(jot_sum(jot_exp(x), JOT_ALL_DIMS));
    before = jot_stats(c);
    {
        jot_Var a = jot_sum(jot_exp(ramp(c, JOT_SHAPE(8), 0.02, 0)), JOT_ALL_DIMS);
        jot_Var b = jot_sum(jot_exp(jot_scale(x, 0)), JOT_ALL_DIMS);

        jot_item(a);
        after = jot_stats(c);
        CHECK(after.kernels_compiled == before.kernels_compiled,
              "the same kernel was compiled again");
        (void)b;
    }
    jot_close(c);
}

/* ---- assignment --------------------------------------------------------------------------- */

static void
test_assign(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    static const float one_[] = {1, 2}, two_[] = {3, 4};
    jot_Var a = jot_param(c, JOT_F32, JOT_SHAPE(2), one_),
        b = jot_param(c, JOT_F32, JOT_SHAPE(2), two_);
    jot_Var old = jot_scale(a, 10), ta, s = jot_param(c, JOT_F32, JOT_SHAPE(), NULL);
    int i;

    jot_assign(a, jot_offset(a, 100));
    expect(c, "assigned", a, 2, (const double[]){101, 102});
    expect(c, "made from the old value", old, 2, (const double[]){10, 20});
    for (i = 0; i < 5; i++)
        jot_assign(a, jot_offset(a, 1));
    expect(c, "five times", a, 2, (const double[]){106, 107});
    ta = jot_offset(a, 0);
    jot_assign(a, b);
    jot_assign(b, ta);
    jot_run(c, JOT_NONE_VARS);
    expect(c, "swapped a", a, 2, (const double[]){3, 4});
    expect(c, "swapped b", b, 2, (const double[]){106, 107});
    jot_set(a, one_, sizeof one_);
    expect(c, "set", a, 2, (const double[]){1, 2});
    jot_push(c);
    for (i = 0; i < 1000; i++)
        jot_assign(s, jot_offset(s, 1));
    jot_pop(c);
    CHECK(jot_item(s) == 1000, "a thousand assignments: %g", jot_item(s));
    CHECK(jot_stats(c).live_nodes < 40, "%u nodes are left", jot_stats(c).live_nodes);
    CHECK(!jot_assign(a, s) && jot_error(c) == JOT_ESHAPE, "a wrong shape is refused");
    jot_close(c);
}

/* ---- refusals ----------------------------------------------------------------------------- */

typedef struct { long left; long calls; size_t live; } Stingy;

static void *
stingy(void *ud, void *p, size_t old, size_t nbytes)
{
    Stingy *s = ud;

    if (!nbytes) {
        s->live -= old;
        free(p);
        return NULL;
    }
    s->calls++;
    if (s->left >= 0 && s->left-- == 0)
        return NULL;
    p = realloc(p, nbytes);
    s->live += p ? nbytes - old : 0;
    return p;
}

/* The n-th allocation of an evaluation is refused: an error, no state changed, nothing leaked; and
 * once memory is there again the same evaluation works. */
static void
test_refused(const char *backend)
{
    Stingy s;
    jot_Config config;
    long n, refused = 0;

    for (n = 0; n < 5000; n++) {
        jot_Ctx *c;
        jot_Var x, w, loss;
        double value;
        bool failed;

        memset(&config, 0, sizeof config);
        memset(&s, 0, sizeof s);
        s.left = -1;
        config.backend = backend;
        config.cache_dir = "";
        config.give_back = 1;
        config.hooks.realloc = stingy;
        config.hooks.ud = &s;
        c = jot_open(&config);
        x = ramp(c, JOT_SHAPE(8), 0.01, 0.5);
        w = jot_param(c, JOT_F32, JOT_SHAPE(8), NULL);
        loss = step(c, x, w, 0.1);
        s.left = n;
        value = jot_item(loss);
        failed = jot_error(c) == JOT_EMEM;
        s.left = -1;
        if (failed) {
            refused++;
            CHECK(value != value, "%s: a value after allocation %ld was refused", backend, n);
            jot_clear(c);
            value = jot_item(loss);
        }
        CHECK(!jot_error(c) && fabs(value - 72) < 1e-3, "%s, allocation %ld: %g %s", backend, n,
              value,
              jot_message(c));
        jot_close(c);
        CHECK(s.live == 0, "%s, allocation %ld: %zu bytes leaked", backend, n, s.live);
        if (!failed)
            break;
    }
    CHECK(refused > 5 && n < 5000, "%s: %ld refusals", backend, refused);
}

/* User code that no compiler takes: everything stays as it was. */
static void
test_compile_fails(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL), bad;

    bad = jot_code_map("a + nonsense", JOT_VARS(w), JOT_F32, NULL);
    jot_assign(w, jot_offset(w, 1));
    CHECK(!jot_run(c, JOT_VARS(bad)) && jot_error(c), "%s takes nonsense", backend);
    jot_clear(c);
    jot_free(bad);
    expect(c, "an assignment of the failed run is withdrawn", w, 3, (const double[]){0, 0, 0});
    jot_close(c);
}

/* The first failure stays until it is cleared, whatever is compiled and evaluated meanwhile. */
static void
test_failure_stays(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    const float ones[7] = {1, 1, 1, 1, 1, 1, 1};
    jot_Var a = jot_param(c, JOT_F32, JOT_SHAPE(7), ones);

    jot_add(a, jot_param(c, JOT_F32, JOT_SHAPE(5), ones));
    CHECK(jot_error(c) == JOT_ESHAPE, "%s: %s", backend, jot_message(c));
    CHECK(jot_item(jot_sum(jot_exp(jot_offset(a, -1)), JOT_ALL_DIMS)) == 7
              && jot_error(c) == JOT_ESHAPE && strstr(jot_message(c), "add"),
          "%s: after an evaluation: %d %s", backend, (int)jot_error(c), jot_message(c));
    CHECK(!jot_data(jot_code_map("a + nonsense", JOT_VARS(a), JOT_F32, NULL))
              && jot_error(c) == JOT_ESHAPE && strstr(jot_message(c), "add"),
          "%s: after one that fails: %d %s", backend, (int)jot_error(c), jot_message(c));
    jot_clear(c);
    CHECK(!jot_error(c) && jot_item(jot_sum(a, JOT_ALL_DIMS)) == 7, "%s: %s", backend,
          jot_message(c));
    jot_close(c);
}

/* ---- user code in a plan ------------------------------------------------------------------ */

/* A kernel with an output that nobody picks, between fused neighbours; its scalar does not
 * recompile. */
static jot_Var
prefix_sums(jot_Ctx *c, jot_Var x, double decay)
{
    jot_Code code;
    jot_CodeOut out[2];
    jot_CodeScalar scalar[1];
    jot_Var y[2];
    static const char *const names[] = {"x"};

    memset(&code, 0, sizeof code);
    memset(out, 0, sizeof out);
    out[0].name = "sums";
    out[0].like = "x";
    out[1].name = "count";
    out[1].dtype = JOT_I32;
    out[1].shape = JOT_SHAPE(1);
    scalar[0].name = "decay";
    scalar[0].value = decay;
    code.name = "prefix_sums";
    code.inputs = 1;
    code.in = &x;
    code.in_names = names;
    code.outputs = 2;
    code.out = out;
    code.scalars = 1;
    code.scalar = scalar;
    code.source = "float s = 0;\n"
                  "for (jot_i64 i = 0; i < x_n; i++)\n"
                  "    sums[i] = s = s * (float)decay + x[i];\n"
                  "count[0] = (int)x_n;\n";
    y[0] = jot_full(c, JOT_F32, JOT_SHAPE(4), 0);
    return jot_code(c, &code, y) ? y[0] : jot_full(c, JOT_F32, JOT_SHAPE(4), 0);
}

static void
test_code(const char *backend)
{
    jot_Config config;
    jot_Ctx *c;
    static const float v[] = {1, 2, 3, 4};
    jot_Var x, y, z;
    uint64_t compiled;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.layout = "random:3";
    c = jot_open(&config);
    x = jot_array(c, JOT_F32, JOT_SHAPE(4), v);
    y = prefix_sums(c, jot_scale(x, 2), 1);
    z = jot_offset(jot_code_map("a * b + 1", JOT_VARS(y, x), JOT_F32, NULL), 1);
    if (!strcmp(backend, "interp") || !strcmp(backend, "opencl")
        || !strcmp(backend, "cuda")) {
        CHECK(!jot_data(z) && jot_error(c) == JOT_EDEVICE, "%s runs C: %s", backend,
              jot_message(c));
        jot_close(c);
        return;
    }
    expect(c, "sums", z, 4, (const double[]){4, 14, 38, 82});
    compiled = jot_stats(c).kernels_compiled;
    y = prefix_sums(c, jot_scale(x, 2), 0);
    z = jot_offset(jot_code_map("a * b + 1", JOT_VARS(y, x), JOT_F32, NULL), 1);
    expect(c, "with another scalar", z, 4, (const double[]){4, 10, 20, 34});
    CHECK(jot_stats(c).kernels_compiled == compiled && jot_stats(c).plan_hits > 0,
          "a scalar compiles nothing");
    jot_close(c);
}

/* ---- dumps -------------------------------------------------------------------------------- */

static int
times(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* A log hook alone; each letter brings its own part, the kernel under the name that is launched. */
static void
test_dumps(const char *backend)
{
    static const char *const head[] = {
        "ggraph:", "fgroup 1 over", "kkernel add sum", "sschedule\n", "lloops\n", "c\njot_k_",
        "pplan:", "ttime"
    };
    size_t k;

    for (k = 0; k < sizeof head / sizeof *head; k++) {
        char *log = calloc(1, LOG), letter[2] = {head[k][0], 0}, *at, name[23] = "";
        jot_Config config;
        jot_Ctx *c;
        size_t j;

        memset(&config, 0, sizeof config);
        config.backend = backend;
        config.cache_dir = "";
        config.layout = "rowmajor"; /* no kernels but those of groups */
        config.dump = letter[0] == 'c' ? "cp" : letter;
        config.hooks.log = keep_log;
        config.hooks.ud = log;
        c = jot_open(&config);
        jot_Var x = ramp(c, JOT_SHAPE(3, 4), 1, 0);
        (void)jot_data(jot_sum(jot_add(x, x), JOT_DIMS(1)));
        for (j = 0; j < sizeof head / sizeof *head; j++)
            CHECK(times(log, head[j] + 1) == (j == k || (letter[0] == 'c' && head[j][0] == 'p')),
                  "%s: letter %s: \"%s\" in\n%s", backend, letter, head[j] + 1, log);
        if (letter[0] == 'c' && (at = strstr(log, "step 0 "))) {
            sscanf(at + 7, "%22s", name);
            CHECK(times(log, name) == 3, "%s: the text of %s in\n%s", backend, name, log);
        }
        jot_close(c);
        free(log);
    }
}

/* ---- statistics --------------------------------------------------------------------------- */

static int64_t
an_hour_later(void *ud)
{
    return *(int64_t *)ud += (int64_t)3600 * 1000000000;
}

/* Kernels are either compiled or found, and one clock says how long that took: the backend's. */
static void
test_stats(const char *backend)
{
    int64_t clock = 0;
    jot_Config config;
    jot_Stats s;
    jot_Ctx *c;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = ""; /* nothing is found, so something is compiled */
    config.hooks.now = an_hour_later;
    config.hooks.ud = &clock;
    c = jot_open(&config);
    jot_Var x = ramp(c, JOT_SHAPE(3, 4), 1, 0);
    (void)jot_data(jot_sum(jot_exp(jot_sum(x, JOT_DIMS(1))), JOT_DIMS(0)));
    s = jot_stats(c);
    CHECK(s.kernels_compiled == s.last_kernels && s.cache_hits == 0, "%s: %d compiled, %d found",
          backend, (int)s.kernels_compiled, (int)s.cache_hits);
    CHECK(s.compile_seconds > 0 && s.compile_seconds < 1000, "%s: %g s", backend,
          s.compile_seconds);
    jot_close(c);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc", "opencl", "cuda"};
    int i, only = argc > 1;

    for (i = 0; i < 5; i++) {
        const char *b = backends[i];

        if ((only && strcmp(argv[1], b)) || !have(b))
            continue;
        test_expected(b);
        test_programs(b, argc > 2 ? atoi(argv[2]) : !strcmp(b, "tcc") ? 4 : 0);
        test_plans(b);
        test_assign(b);
        if (!strcmp(b, "interp") || !strcmp(b, "tcc")) /* others take long for each new text */
            test_refused(b);
        test_compile_fails(b);
        test_failure_stays(b);
        test_code(b);
        if (strcmp(b, "interp")) {
            test_dumps(b);
            test_stats(b);
        }
    }
    if ((!only || !strcmp(argv[1], "cpu")) && have("cpu"))
        test_failure_stays("cpu");
    return DONE();
}
