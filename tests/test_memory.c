/* tests/test_memory.c - refused allocations and compilations: small training steps are run with the
 * n-th of them refused, for every n until none is. Whatever n: no crash, an error that says so,
 * parameters as the last whole step left them, a context that goes on, and nothing left when it is
 * closed. Optimisers: a step that was not built whole changes nothing, whatever runs next.
 *
 * Guards: base_mem.c, nn/optim.c, plan/plan.c. */
#include "backends/backend.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <unistd.h>

/* n steps of a two-layer network; how many were done. */
static int
steps(jot_Ctx *c, jot_Var w1, jot_Var w2, jot_Var x, jot_Var y, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        jot_Var p[2], g[2], loss;
        bool ok;

        jot_push(c);
        p[0] = w1;
        p[1] = w2;
        loss = jot_mse(jot_matmul(jot_sigmoid(jot_matmul(x, w1)), w2), y);
        ok = jot_grad(loss, jot_vars(2, p), g);
        ok = ok && jot_assign(w1, jot_sub(w1, jot_scale(g[0], 0.1)))
          && jot_assign(w2, jot_sub(w2, jot_scale(g[1], 0.1)));
        ok = ok && jot_run(c, jot_vars(1, &loss));
        jot_pop(c);
        if (!ok)
            break;
    }
    return i;
}

static const float data[12] = {1, -1, .5f, 2, 0, 1, -.5f, .25f, 1, 1, -2, .125f};

static bool
near(const float *a, const float *b, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (fabsf(a[i] - b[i]) > 1e-5f)
            return false;
    return true;
}

/* The parameters after 0 .. MOST steps, by the interpreter. */
enum { MOST = 3 };
static float w1_after[MOST + 1][12], w2_after[MOST + 1][4];

static void
expect(void)
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(4, 3), data);
    jot_Var y = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), data);
    jot_Var w1 = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), data);
    jot_Var w2 = jot_param(c, JOT_F32, JOT_SHAPE(4, 1), data);

    for (int k = 0; k <= MOST; k++) {
        CHECK(jot_copy(w1, w1_after[k], sizeof w1_after[k])
              && jot_copy(w2, w2_after[k], sizeof w2_after[k]), "%s", jot_message(c));
        CHECK(steps(c, w1, w2, x, y, 1) == 1, "%s", jot_message(c));
    }
    jot_close(c);
}

/* After so many steps, to the bit where there were none. */
static bool
as_after(int k, const float *w1, const float *w2)
{
    if (!k)
        return !memcmp(w1, data, 12 * sizeof *w1) && !memcmp(w2, data, 4 * sizeof *w2);
    return near(w1, w1_after[k], 12) && near(w2, w2_after[k], 4);
}

/* Allocations of `want` steps; where the better code is asked for at the second one, there are
 * more. */
static void
campaign(const char *backend, const char *cache_dir, int stride, int want)
{
    float w1_is[12], w2_is[4], after[12];
    long n = 1, total = 0;
    bool done = false;

    for (; !done && n < 200000; n += stride) {
        Heap heap = {0};
        jot_Config config = {.backend = backend, .cache_dir = cache_dir, .give_back = 1};
        jot_Ctx *c;
        jot_Var w1, w2, x, y;
        bool ok;
        int k;

        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        heap.countdown = n;
        c = jot_open(&config);
        if (!c) {
            CHECK(heap.live == 0, "n %ld: %zu bytes left by a refused open", n, heap.live);
            continue;
        }
        if (jot_error(c) == JOT_EDEVICE) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        if (jot_error(c)) {
            CHECK(jot_error(c) == JOT_EMEM, "n %ld: %s", n, jot_message(c));
            jot_close(c);
            CHECK(heap.live == 0, "n %ld: %zu bytes left by a refused open", n, heap.live);
            continue;
        }
        x = jot_array(c, JOT_F32, JOT_SHAPE(4, 3), data);
        y = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), data);
        w1 = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), data);
        w2 = jot_param(c, JOT_F32, JOT_SHAPE(4, 1), data);
        k = steps(c, w1, w2, x, y, want);
        ok = k == want;
        done = heap.countdown > 0;
        CHECK(ok || (jot_error(c) == JOT_EMEM && jot_message(c)[0]), "n %ld: %d %s", n,
              jot_error(c),
              jot_message(c));
        CHECK(!done || ok, "n %ld: %s", n, jot_message(c));
        heap.countdown = 0;
        jot_clear(c);
        /* A refusal loses nothing: the same context goes on, and no parameter was changed. */
        if (!ok && jot_ok(w1) && jot_ok(w2) && jot_ok(x) && jot_ok(y)) {
            CHECK(jot_copy(w1, w1_is, sizeof w1_is) && jot_copy(w2, w2_is, sizeof w2_is),
                  "n %ld: read: %s", n, jot_message(c));
            CHECK(as_after(k, w1_is, w2_is), "n %ld: not the parameters after %d steps", n, k);
            CHECK(steps(c, w1, w2, x, y, 1) == 1, "n %ld: afterwards: %s", n, jot_message(c));
            CHECK(jot_copy(w1, after, sizeof after) && !near(w1_is, after, 12),
                  "n %ld: a step changes the parameters", n);
        }
        total = heap.calls;
        jot_close(c);
        CHECK(heap.live == 0, "%s, n %ld: %zu bytes left", backend, n, heap.live);
    }
    CHECK(done, "%s: refused up to %ld of %ld allocations", backend, n, total);
}

/* ---- optimisers ------------------------------------------------------------------------------ */

typedef struct { jot_Var w[2]; jot_Optim optim; } Learner;

static jot_Optim
optimiser(int kind, jot_Vars p)
{
    return kind == 2 ? jot_adam(p, 0.1, 0.9, 0.99, 1e-8)
                     : jot_sgd(p, 0.1, kind ? 0.9 : 0, kind ? 0.01 : 0);
}

static void
learner_open(jot_Ctx *c, Learner *l, int kind)
{
    l->w[0] = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), data);
    l->w[1] = jot_param(c, JOT_F32, JOT_SHAPE(4, 1), data);
    l->optim = optimiser(kind, jot_vars(2, l->w));
}

static bool
learner_build(jot_Ctx *c, Learner *l)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(4, 3), data);
    jot_Var y = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), data), g[2], loss;

    loss = jot_mse(jot_matmul(jot_sigmoid(jot_matmul(x, l->w[0])), l->w[1]), y);
    return jot_grad(loss, jot_vars(2, l->w), g) && jot_step(l->optim, jot_vars(2, g));
}

/* Everything that lives in the context from step to step, moments too: each variable outside of
 * scopes but an optimiser's record (bytes), which holds handles. */
enum { STATES = 16, STATE_NBYTES = 64 };
typedef struct { jot_Var v[STATES]; uint32_t n; } States;
typedef char Values[STATES][STATE_NBYTES];

static void
states_list(jot_Ctx *c, States *s)
{
    uint32_t i;

    for (i = 1, s->n = 0; i < c->slots.n && s->n < STATES; i++) {
        jot_Var v = {c, i, c->slots.v[i].gen};

        if (c->slots.v[i].node && !c->slots.v[i].depth && jot_dtype(v) != JOT_U8)
            s->v[s->n++] = v;
    }
}

static void
states_read(const States *s, Values to)
{
    uint32_t i;

    memset(to, 0, sizeof(Values));
    for (i = 0; i < s->n; i++) {
        size_t nbytes = (size_t)jot_nelem(s->v[i]) * jot_dtype_nbytes(jot_dtype(s->v[i]));

        CHECK(nbytes <= STATE_NBYTES && jot_copy(s->v[i], to[i], nbytes), "%s",
              jot_message(s->v[i].ctx));
    }
}

/* Without a refusal: what lives after 1, 2, 3 steps. */
static void
learner_expect(int kind, Values after[3])
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    Learner l;
    States s;
    int k;

    learner_open(c, &l, kind);
    for (k = 0; k < 3; k++) {
        jot_push(c);
        CHECK(learner_build(c, &l) && jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        jot_pop(c);
        states_list(c, &s);
        states_read(&s, after[k]);
    }
    CHECK(s.n == (uint32_t)(kind == 2 ? 9 : kind == 1 ? 5 : 3), "%u variables", s.n);
    CHECK(memcmp(after[0], after[1], sizeof *after) && memcmp(after[1], after[2], sizeof *after),
          "steps change nothing");
    jot_close(c);
}

/* The second step's n-th allocation is refused, then something else is evaluated: each variable is
 * as before the step, or, if it was built whole, as after it; and what follows is as if nothing had
 * been. */
static bool
learner_refused(int kind, long n, Values after[3])
{
    Heap heap = {0};
    jot_Config config = {.backend = "interp", .give_back = 1};
    Values is;
    Learner l;
    States s;
    jot_Ctx *c;
    bool built, done;
    int k;

    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    c = jot_open(&config);
    learner_open(c, &l, kind);
    jot_push(c);
    CHECK(learner_build(c, &l) && jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
    jot_pop(c);
    states_list(c, &s);
    heap.countdown = n;
    jot_push(c);
    built = learner_build(c, &l);
    jot_pop(c);
    done = heap.countdown > 0;
    heap.countdown = 0;
    CHECK(built == !jot_error(c) && (built || (!done && jot_error(c) == JOT_EMEM)), "n %ld: %s", n,
          jot_message(c));
    jot_push(c);
    CHECK(jot_item(jot_sum(jot_iota(c, JOT_F32, JOT_SHAPE(4), 0), JOT_ALL_DIMS)) == 6, "n %ld: %s",
          n, jot_message(c));
    jot_pop(c);
    states_read(&s, is);
    CHECK(!memcmp(is, after[built], sizeof is), "kind %d, n %ld: half a step was made (%s)", kind,
          n, built ? "built" : "refused");
    jot_clear(c);
    for (k = 1 + built; k < 3; k++) {
        jot_push(c);
        CHECK(learner_build(c, &l) && jot_run(c, JOT_NONE_VARS), "n %ld: %s", n, jot_message(c));
        jot_pop(c);
        states_read(&s, is);
        CHECK(!memcmp(is, after[k], sizeof is), "kind %d, n %ld: not step %d", kind, n, k);
    }
    jot_close(c);
    CHECK(heap.live == 0, "n %ld: %zu bytes left", n, heap.live);
    return done;
}

static void
learners(void)
{
    Values after[3];
    int kind;
    long n;

    for (kind = 0; kind < 3; kind++) {
        learner_expect(kind, after);
        for (n = 1; !learner_refused(kind, n, after); n++)
            ;
        CHECK(n > 20, "kind %d: %ld allocations", kind, n);
    }
}

/* ---- compilers ---------------------------------------------------------------------------- */

/* The n-th text that a backend or its first tier is given becomes one that no compiler takes. */
static struct {
    bool (*compile[2])(Backend *, jot_Ctx *, const char *, const char *, size_t, KernelSym *, int,
                       void **);
    Backend *backend[2];
    int seen, refused;
} compiler;

static bool
refusing(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
         KernelSym *sym, int n, void **module)
{
    static const char wrong[] = "int refused = no_such_name;";
    bool refuse = ++compiler.seen == compiler.refused;

    return compiler.compile[backend == compiler.backend[1]](
        backend, ctx, what, refuse ? wrong : text, refuse ? sizeof wrong - 1 : nbytes, sym, n,
        module);
}

static CompileJob *
no_job(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
       const KernelSym *sym, int n)
{
    (void)backend, (void)ctx, (void)what, (void)text, (void)nbytes, (void)sym, (void)n;
    return NULL;
}

static void
refuse_compiles(Backend *b, int n)
{
    compiler.seen = 0;
    compiler.refused = n;
    compiler.backend[0] = b;
    compiler.backend[1] = b->quick;
    compiler.compile[0] = b->compile;
    b->compile = refusing;
    if (b->quick) {
        compiler.compile[1] = b->quick->compile;
        b->quick->compile = refusing;
    }
    if (b->start)
        b->start = no_job; /* each text in its turn, in this thread */
}

/* A step that fails for its compiler leaves no trace; where there is other code to run, none
 * fails. */
static void
compiles(const char *backend, int deterministic)
{
    float w1_is[12], w2_is[4];
    bool done = false;
    int n, failed = 0;

    for (n = 1; !done && n < 100; n++) {
        jot_Config config = {.backend = backend, .cache_dir = "", .deterministic = deterministic};
        jot_Ctx *c = jot_open(&config);
        jot_Var w1, w2, x, y;
        int k;

        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        if (!c->backend->quick)
            deterministic = 1; /* no libtcc: nothing else can run */
        refuse_compiles(c->backend, n);
        x = jot_array(c, JOT_F32, JOT_SHAPE(4, 3), data);
        y = jot_array(c, JOT_F32, JOT_SHAPE(4, 1), data);
        w1 = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), data);
        w2 = jot_param(c, JOT_F32, JOT_SHAPE(4, 1), data);
        k = steps(c, w1, w2, x, y, MOST);
        done = compiler.seen < n;
        failed += k < MOST;
        CHECK(k == MOST || (!done && jot_error(c) == JOT_ECOMPILE), "%s, text %d: %s", backend, n,
              jot_message(c));
        jot_clear(c);
        CHECK(jot_copy(w1, w1_is, sizeof w1_is) && jot_copy(w2, w2_is, sizeof w2_is)
                  && as_after(k, w1_is, w2_is),
              "%s, text %d: not the parameters after %d steps", backend, n, k);
        compiler.refused = 0;
        CHECK(steps(c, w1, w2, x, y, 1) == 1, "%s, text %d, afterwards: %s", backend, n,
              jot_message(c));
        jot_close(c);
    }
    CHECK(done && n > 2, "%s: %d texts", backend, n - 1);
    CHECK(failed == (deterministic ? n - 2 : 0), "%s: %d of %d refusals failed a step", backend,
          failed, n - 2);
}

int
main(int argc, char **argv)
{
    int stride = argc > 1 ? atoi(argv[1]) : 1;
    char cache[] = "/tmp/jot-test-XXXXXX", remove[100];

    learners();
    expect();
    campaign("interp", "", stride, 1);
    campaign("tcc", "", stride, 1);
    campaign("cc", "", stride * 61, 1); /* each runs the compiler */
    campaign("cpu", "", stride * 29, MOST); /* each starts it */
    compiles("tcc", 1);
    compiles("cc", 1);
    compiles("cpu", 1);
    compiles("cpu", 0);
    if (mkdtemp(cache)) {
        campaign("cc", cache, stride * 3, 1); /* the first does */
        campaign("cpu", cache, stride * 29, MOST);
        snprintf(remove, sizeof remove, "rm -r %s", cache);
        CHECK(!system(remove), "%s is left", cache);
    }
    return DONE();
}
