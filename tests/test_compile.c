/* tests/test_compile.c - a compiler that fails: training steps with user code are run with the n-th
 * text refused, for every n until none is; with two tiers, the other one's code runs. Whatever n:
 * an error with the kernels' names and the compiler's own words, parameters as they were, the next
 * step as if nothing had been.
 *
 * Guards: backends/cpu/jobs.c, backends/cpu/tcc.c. */
#include "backends/backend.h"
#include "tests/test.h"

static bool (*real_compile)(Backend *, jot_Ctx *, const char *, const char *, size_t, KernelSym *,
                            int, void **);
static int calls, refuse_at;

static bool
failing_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
                KernelSym *sym, int n, void **module)
{
    static const char wrong[] = "\nint refused = no_such_name;\n";
    char *longer;
    bool ok;

    if (++calls != refuse_at)
        return real_compile(backend, ctx, what, text, nbytes, sym, n, module);
    longer = malloc(nbytes + sizeof wrong);
    memcpy(longer, text, nbytes);
    memcpy(longer + nbytes, wrong, sizeof wrong);
    ok = real_compile(backend, ctx, what, longer, nbytes + sizeof wrong - 1, sym, n, module);
    free(longer);
    return ok;
}

static jot_Var
doubled(jot_Var x, double times)
{
    const char *name = "x";
    const char *grad = "for (jot_i64 i = 0; i < dx_n; i++) dx[i] = dy[i] * (float)times;";
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar scalar = {"times", 2};
    jot_Code code;
    jot_Var y = {0};

    memset(&code, 0, sizeof code);
    scalar.value = times;
    code.name = "doubled";
    code.inputs = code.outputs = code.scalars = 1;
    code.in = &x;
    code.in_names = &name;
    code.out = &out;
    code.scalar = &scalar;
    code.source = "for (jot_i64 i = 0; i < y_n; i++) y[i] = x[i] * (float)times;";
    code.grad_source = &grad;
    jot_code(x.ctx, &code, &y);
    return y;
}

static void
quiet(void *ud, const char *text, size_t nbytes)
{
    (void)ud, (void)text, (void)nbytes;
}

static const float start[6] = {1, -1, .5f, 2, 0, 1};

/* One step on a batch of n rows: a plan of its own for each n. */
static bool
step(jot_Ctx *c, jot_Var w, int n)
{
    jot_Var x, loss, g;
    bool ok;

    jot_push(c);
    x = jot_offset(jot_iota(c, JOT_F32, JOT_SHAPE(n, 3), 1), 0.5);
    loss = jot_mean(jot_square(doubled(jot_matmul(x, w), 2)), JOT_ALL_DIMS);
    ok = jot_grad(loss, JOT_VARS(w), &g) && jot_assign(w, jot_sub(w, jot_scale(g, 0.01)))
      && jot_run(c, JOT_VARS(loss));
    jot_pop(c);
    return ok;
}

/* Two steps with text number n refused; true if there were not so many. */
static bool
refused(const char *backend, int n, float after[6])
{
    jot_Config config = {0};
    jot_Ctx *c;
    jot_Var w;
    float is[6], before[6];
    int k;
    bool done;

    config.backend = backend;
    config.cache_dir = "";
    config.hooks.log = quiet; /* long messages are there in full */
    c = jot_open(&config);
    real_compile = c->backend->compile;
    c->backend->compile = failing_compile;
    calls = 0;
    refuse_at = n;
    w = jot_param(c, JOT_F32, JOT_SHAPE(3, 2), start);
    for (k = 0; k < 2; k++) {
        CHECK(jot_copy(w, before, sizeof before), "%s", jot_message(c));
        if (step(c, w, 4 + k))
            continue;
        CHECK(jot_error(c) == JOT_ECOMPILE, "%s, text %d: %s", backend, n, jot_message(c));
        CHECK(strstr(jot_message(c), "no_such_name") && strstr(jot_message(c), "command: ")
                  && (strstr(jot_message(c), "jot_k_") || strstr(jot_message(c), "doubled")),
              "%s, text %d: %s", backend, n, jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(w, is, sizeof is) && !memcmp(is, before, sizeof is),
              "%s, text %d: the parameter changed: %s", backend, n, jot_message(c));
        CHECK(step(c, w, 4 + k), "%s, text %d, again: %s", backend, n, jot_message(c));
    }
    CHECK(jot_copy(w, is, sizeof is), "%s", jot_message(c));
    done = calls < n;
    if (n == 1)
        memcpy(after, is, sizeof is);
    CHECK(!memcmp(is, after, sizeof is) && memcmp(is, start, sizeof is),
          "%s, text %d: the steps lead elsewhere", backend, n);
    jot_close(c);
    return done;
}

/* ---- two tiers ------------------------------------------------------------------------------ */

static CompileJob *(*real_start)(Backend *, jot_Ctx *, const char *, const char *, size_t,
                                 const KernelSym *, int);
static bool (*real_quick)(Backend *, jot_Ctx *, const char *, const char *, size_t, KernelSym *,
                          int, void **);

/* The job's text is refused by its compiler, beside the program. */
static CompileJob *
failing_start(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
              const KernelSym *sym, int n)
{
    static const char wrong[] = "\nint refused = no_such_name;\n";
    char *longer;
    CompileJob *job;

    if (++calls != refuse_at)
        return real_start(backend, ctx, what, text, nbytes, sym, n);
    longer = malloc(nbytes + sizeof wrong);
    memcpy(longer, text, nbytes);
    memcpy(longer + nbytes, wrong, sizeof wrong);
    job = real_start(backend, ctx, what, longer, nbytes + sizeof wrong - 1, sym, n);
    free(longer);
    return job;
}

static bool
failing_quick(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
              KernelSym *sym, int n, void **module)
{
    if (++calls != refuse_at)
        return real_quick(backend, ctx, what, text, nbytes, sym, n, module);
    jot_fail(ctx, JOT_ECOMPILE, "%s: refused", what);
    return false;
}

/* Text number n refused to either compiler: the other one's code runs. True: there were not so
 * many. */
static bool
refused_tiers(int n, const float after[6])
{
    jot_Config config = {0};
    jot_Ctx *c;
    jot_Var w;
    float is[6];
    int k, i;
    bool done;

    config.backend = "cpu";
    config.cache_dir = "";
    config.hooks.log = quiet;
    c = jot_open(&config);
    real_start = c->backend->start;
    real_quick = c->backend->quick->compile;
    c->backend->start = failing_start;
    c->backend->quick->compile = failing_quick;
    calls = 0;
    refuse_at = n;
    w = jot_param(c, JOT_F32, JOT_SHAPE(3, 2), start);
    for (k = 0; k < 6; k++) { /* the later ones run on what was compiled beside the first */
        CHECK(step(c, w, 4 + k % 2), "cpu, text %d, step %d: %s", n, k, jot_message(c));
        if (k == 1) {
            CHECK(jot_copy(w, is, sizeof is), "%s", jot_message(c));
            for (i = 0; i < 6; i++)
                CHECK(is[i] - after[i] < 1e-5 && after[i] - is[i] < 1e-5,
                      "cpu, text %d: %g, not %g", n, is[i], after[i]);
        }
    }
    done = calls < n;
    jot_close(c);
    return done;
}

int
main(void)
{
    static const char *const backends[] = {"tcc", "cc"};
    float after[6];
    int k, n, both = 0;

    for (k = 0; k < 2; k++) {
        jot_Config config = {0};
        jot_Ctx *c;
        bool there;

        config.backend = backends[k];
        c = jot_open(&config);
        there = c && !jot_error(c);
        if (!there)
            SKIP("%s: %s", backends[k], jot_message(c));
        jot_close(c);
        for (n = 1; there && !refused(backends[k], n, after); n++)
            ;
        CHECK(!there || n > 4, "%s compiled %d texts", backends[k], n - 1);
        both += there;
    }
    for (n = 1; both == 2 && !refused_tiers(n, after); n++)
        ;
    CHECK(both < 2 || n > 3, "cpu compiled %d texts", n - 1);
    return DONE();
}
