/* tests/test_flow.c - branches and loops: drawn programs of them, nested, against the same programs
 * unrolled by the host, values, gradients to second order, tangents, with every policy; many
 * examples; how many kernels there are; checkpoints and what they hold; on devices.
 *
 *     test_flow BACKEND            what a device does
 *     test_flow N FIRST BACKEND    N drawn programs, from seed FIRST on
 *
 * Guards: ops/flow/body.c, ops/flow/grad.c, ops/flow/batch.c, plan/flow/form.c, plan/flow/run.c,
 * plan/flow/interp.c, plan/device/flow.c. */
#include "core.h"
#include "tests/flow_drawn.h"
#include "tests/hooks.h"
#include "tests/numbers.h"
#include "tests/test.h"

/* ---- drawn programs -------------------------------------------------------------------------- */

/* What is compared: values, gradients, a second order, a tangent. */
enum { RESULTS = DRAWN_OUT, NUMBERS = 32 };
typedef struct { int n[RESULTS]; double v[RESULTS][NUMBERS]; } Results;

/* The elements, as many as there are room for. */
static void
drawn_keep(V v, int n, double *to)
{
    const double *p = jot_data(v);

    for (int k = 0; k < n; k++)
        to[k] = p ? p[k] : NAN;
}

static bool
drawn_results(jot_Ctx *c, unsigned seed, Results *r)
{
    const V in[DRAWN_IN] = {numbers(c, JOT_SHAPE(3), 1 + (int)(seed % 7)),
                            numbers(c, JOT_SHAPE(5, 3), 2), numbers(c, JOT_SHAPE(3, 3), 3),
                            numbers(c, JOT_SHAPE(3), 4)};
    V v[RESULTS];
    int k;
    bool ok = drawn_graph(seed, in, v) && jot_run(c, jot_vars(RESULTS, v));

    for (k = 0; k < RESULTS && ok; k++) {
        r->n[k] = (int)jot_nelem(v[k]);
        drawn_keep(v[k], r->n[k], r->v[k]);
    }
    return ok;
}

static void
drawn_same(const char *who, unsigned seed, const Results *a, const Results *b)
{
    for (int k = 0; k < RESULTS; k++) {
        double worst = 0;

        for (int i = 0; i < a->n[k] && a->n[k] == b->n[k]; i++) {
            double d = fabs(a->v[k][i] - b->v[k][i]) / (1 + fabs(b->v[k][i]));

            worst = d > worst || d != d ? d : worst;
        }
        CHECK(a->n[k] == b->n[k] && worst < 1e-7, "%s, seed %u, result %d: %d elements, not %d; %g",
              who, seed, k, a->n[k], b->n[k], worst);
    }
}

static void
test_drawn(const char *backend, const char *policy, int n, unsigned first)
{
    jot_Config config = {.backend = backend, .policy = policy, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config), *host = open_ctx("interp");
    char who[60];

    snprintf(who, sizeof who, "%s, %s", backend ? backend : "default", policy ? policy : "reward");
    if (jot_error(c))
        SKIP("%s: %s", who, jot_message(c));
    for (unsigned seed = first; seed < first + (unsigned)n && !jot_error(c); seed++) {
        Results a = {{0}, {{0}}}, b = {{0}, {{0}}};

        jot_push(c);
        jot_push(host);
        unrolled = true;
        CHECK(drawn_results(host, seed * 977, &b), "seed %u: %s", seed, jot_message(host));
        unrolled = false;
        CHECK(drawn_results(c, seed * 977, &a), "%s, seed %u: %s", who, seed, jot_message(c));
        drawn_same(who, seed, &a, &b);
        jot_pop(host);
        jot_pop(c);
    }
    jot_close(host);
    jot_close(c);
}

/* ---- many examples --------------------------------------------------------------------------- */

/* Example k of xs, or the first. */
static V
example(V xs, bool each, int k)
{
    V x = jot_squeeze(jot_slice_dim(xs, 0, each ? k : 0, (each ? k : 0) + 1, 1), 0);

    return jot_stop_fuse(x);
}

/* Which of h, s, w are of each example: bits of `each`. */
static void
test_examples(jot_Ctx *c, int kind, int each)
{
    int64_t axis[3];
    V all_of[3] = {numbers(c, JOT_SHAPE(EXAMPLES, 2), 1), numbers(c, JOT_SHAPE(EXAMPLES, 4, 2), 2),
                   numbers(c, JOT_SHAPE(EXAMPLES, 2, 2), 3)};
    V one[3], of[3], out[OUTS], got[OUTS], want[OUTS][EXAMPLES];
    jot_Vmap how = {{3, axis}, {0, NULL}, false};
    int k, e;

    for (k = 0; k < 3; k++) {
        one[k] = example(all_of[k], false, 0);
        axis[k] = each >> k & 1 ? 0 : JOT_UNBATCHED;
        of[k] = each >> k & 1 ? all_of[k] : one[k];
    }
    CHECK(program(kind, one[0], one[1], one[2], out)
          && jot_vmap(jot_vars(OUTS, out), jot_vars(3, one), jot_vars(3, of), &how, got),
          "kind %d, each %d: %s", kind, each, jot_message(c));
    for (e = 0; e < EXAMPLES; e++) {
        V o[OUTS];

        program(kind, example(all_of[0], each & 1, e), example(all_of[1], each & 2, e),
                example(all_of[2], each & 4, e), o);
        for (k = 0; k < OUTS; k++)
            want[k][e] = o[k];
    }
    for (k = 0; k < OUTS; k++)
        CHECK(apart(got[k], jot_stack(jot_vars(EXAMPLES, want[k]), 0)) < 1e-10,
              "kind %d, each %d, output %d", kind, each, k);
}

static void
test_vmap(void)
{
    jot_Ctx *c = open_ctx("interp");

    for (int kind = 0; kind < KINDS; kind++)
        for (int each = 1; each < 8; each++) {
            jot_push(c);
            test_examples(c, kind, each);
            jot_pop(c);
        }
    jot_close(c);
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* A loop of 1000 trips has the kernels of one of 2, and a graph built anew finds its plan. */
static void
test_kernels(void)
{
    uint64_t compiled[2] = {0, 0};

    for (int k = 0; k < 2; k++) {
        jot_Ctx *c = open_ctx("tcc");
        int64_t trips = k ? 1000 : 2;

        if (jot_error(c))
            SKIP("%s", jot_message(c));
        for (int run = 0; run < 3 && !jot_error(c); run++) {
            V h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(trips, 2), 2), o[2], g;
            V w = numbers(c, JOT_SHAPE(2, 2), 3);
            jot_For how = {0, 1, false, 0};

            jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &how, o);
            jot_grad(all(o[1]), JOT_VARS(w), &g);
            CHECK(jot_run(c, JOT_VARS(o[0], g)), "%s", jot_message(c));
            CHECK(jot_stats(c).plans == 1 && jot_stats(c).plan_hits == (uint64_t)run,
                  "%d plans, %d found", (int)jot_stats(c).plans, (int)jot_stats(c).plan_hits);
        }
        compiled[k] = jot_stats(c).kernels_compiled;
        jot_close(c);
    }
    CHECK(compiled[0] == compiled[1], "%d kernels for 2 trips, %d for 1000", (int)compiled[0],
          (int)compiled[1]);
}

/* What is kept for the gradient: the carries of all 100 trips, or of every tenth. */
static void
test_checkpoints(void)
{
    size_t peak[2];
    double value[2];

    for (int k = 0; k < 2; k++) {
        jot_Config config = {.backend = "interp", .give_back = 1};
        jot_Ctx *c = jot_open(&config);
        V h = numbers(c, JOT_SHAPE(MOST), 1), w = numbers(c, JOT_SHAPE(1), 2), o, g;
        jot_For how = {100, 0, false, k ? 10 : 0};

        jot_for(JOT_VARS(h), JOT_NONE_VARS, decay, &w, &how, &o);
        jot_grad(all(o), JOT_VARS(w), &g);
        value[k] = jot_item(g);
        peak[k] = jot_stats(c).peak_nbytes;
        jot_close(c);
    }
    CHECK(fabs(value[0] - value[1]) < 1e-9 * fabs(value[0]), "%g, %g", value[0], value[1]);
    CHECK(peak[0] > 100 * MOST * sizeof(double) && peak[1] < peak[0] / 3, "%zu, %zu bytes", peak[0],
          peak[1]);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Slices that no device's buffer may be cut at, tests and counts that the host reads. */
static void
test_device(const char *backend)
{
    jot_Ctx *c = open_ctx(backend), *host = open_ctx("interp");

    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    for (int kind = 0; kind < 4 && !jot_error(c); kind++) {
        V out[2][OUTS];

        for (int k = 0; k < 2; k++) {
            jot_Ctx *at = k ? c : host;
            V h = numbers(at, JOT_SHAPE(2), 1), s = numbers(at, JOT_SHAPE(4, 2), 2);

            program(kind, h, s, numbers(at, JOT_SHAPE(2, 2), 3), out[k]);
            CHECK(jot_run(at, jot_vars(OUTS, out[k])), "%s, kind %d: %s", backend, kind,
                  jot_message(at));
        }
        for (int k = 0; k < OUTS; k++)
            CHECK(apart(out[1][k], out[0][k]) < 1e-10, "%s, kind %d, output %d", backend, kind, k);
    }
    jot_close(host);
    jot_close(c);
}

int
main(int argc, char **argv)
{
    unsigned first = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

    if (argc == 2) {
        test_device(argv[1]);
        test_drawn(argv[1], NULL, 1, 2);
        return DONE();
    }
    if (argc > 2) {
        test_drawn(argc > 3 ? argv[3] : "interp", NULL, atoi(argv[1]), first);
        return DONE();
    }
    test_drawn("interp", NULL, test_many(36, 60), first);
    test_drawn("tcc", NULL, test_many(8, 12), first);
    test_drawn("tcc", "none", 4, first);
    test_drawn("tcc", "paper", 4, first + 4);
    test_vmap();
    test_kernels();
    test_checkpoints();
    test_device("opencl");
    return DONE();
}
