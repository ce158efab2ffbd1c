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
#include "tests/flow.h"
#include "tests/hooks.h"
#include "tests/numbers.h"
#include "tests/test.h"

/* ---- the same program, as a graph of branches and loops and unrolled ------------------------- */

static bool unrolled; /* conditions are asked here, and trips built one after the other */

static bool
one_cond(V test, jot_Vars x, jot_BodyFn *then, jot_BodyFn *otherwise, void *user, int n, V *out)
{
    if (!unrolled)
        return jot_cond(test, x, then, otherwise, user, n, out);
    return (jot_item(test) != 0 ? then : otherwise)(user, x, out);
}

static bool
one_while(jot_Vars init, jot_BodyFn *test, jot_BodyFn *body, void *user, int64_t most, V *out)
{
    V now[8], go;
    int64_t t;

    if (!unrolled)
        return jot_while(init, test, body, user, most, out);
    memcpy(now, init.v, (size_t)init.n * sizeof *now);
    for (t = 0; !most || t < most; t++) {
        if (!test(user, jot_vars(init.n, now), &go) || jot_item(go) == 0)
            break;
        if (!body(user, jot_vars(init.n, now), out))
            return false;
        memcpy(now, out, (size_t)init.n * sizeof *now);
    }
    memcpy(out, now, (size_t)init.n * sizeof *now);
    return true;
}

static bool
one_for(jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, const jot_For *how, V *out)
{
    int64_t n = xs.n ? jot_extent(xs.v[0], 0) : how->trips, t, s;
    V in[8], made[8], stack[4][32];
    int k;

    if (!unrolled)
        return jot_for(init, xs, body, user, how, out);
    memcpy(in, init.v, (size_t)init.n * sizeof *in);
    for (t = 0; t < n; t++) {
        s = how->reverse ? n - 1 - t : t;
        for (k = 0; k < xs.n; k++)
            in[init.n + k] = jot_squeeze(jot_slice_dim(xs.v[k], 0, s, s + 1, 1), 0);
        if (!body(user, jot_vars(init.n + xs.n, in), made))
            return false;
        memcpy(in, made, (size_t)init.n * sizeof *in);
        for (k = 0; k < how->stacked; k++)
            stack[k][s] = made[init.n + k];
    }
    memcpy(out, in, (size_t)init.n * sizeof *in);
    for (k = 0; k < how->stacked; k++)
        out[init.n + k] = jot_stack(jot_vars((int)n, stack[k]), 0);
    return true;
}

/* ---- drawn programs -------------------------------------------------------------------------- */

/* A body draws what it is made of: the same each time it is called. w (3, 3), b (3) are outside. */
typedef struct { V w, b; unsigned seed; int depth, results; } Drawn;

static unsigned
draw(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static bool drawn_body(void *user, jot_Vars in, V *out);

static V
drawn_element(Drawn *d, unsigned *seed, jot_Vars in)
{
    V a = in.v[draw(seed, (unsigned)in.n)], b = in.v[draw(seed, (unsigned)in.n)];

    switch (draw(seed, 8)) {
    case 0: return jot_tanh(jot_add(jot_matmul(d->w, a), b));
    case 1: return jot_sin(jot_mul(a, b));
    case 2: return jot_add(jot_scale(a, 0.5), jot_mul(d->b, jot_cos(b)));
    case 3: return jot_where(jot_lt(a, b), jot_scale(a, 0.7), jot_sin(b));
    case 4: return jot_tanh(jot_sub(a, jot_mean(b, JOT_KEEP(0))));
    case 5: return jot_flip(jot_scale(a, 0.9), JOT_INTS(0));
    case 6: return a;
    default: return jot_tanh(jot_matmul(jot_transpose(d->w, JOT_INTS(1, 0)), jot_mul(a, d->b)));
    }
}

static bool
drawn_test(void *user, jot_Vars in, V *out)
{
    Drawn *d = user;
    unsigned seed = d->seed * 7 + 3;

    out[0] = jot_logical_and(jot_lt(all(in.v[in.n - 1]), jot_scalar(in.v[0].ctx, JOT_F64,
                                                                    3.0 * (1 + draw(&seed, 5)))),
                             jot_lt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 2)));
    return true;
}

/* All but the last are drawn, and that counts. */
static bool
drawn_count(void *user, jot_Vars in, V *out)
{
    Drawn one = *(Drawn *)user;

    one.depth--;
    one.results = in.n - 1;
    out[in.n - 1] = jot_offset(in.v[in.n - 1], 1);
    return drawn_body(&one, in, out);
}

/* Another branch than drawn_body. */
static bool
drawn_other(void *user, jot_Vars in, V *out)
{
    Drawn one = *(Drawn *)user;

    one.seed = one.seed * 31 + 11;
    return drawn_body(&one, in, out);
}

static bool
drawn_within(Drawn *d, unsigned *seed, jot_Vars in, V *out)
{
    Drawn one = {d->w, d->b, *seed, d->depth - 1, 2};
    V got[8], from[3] = {in.v[0], in.v[in.n - 1], jot_scale(d->b, 0)};
    jot_For how = {draw(seed, 4), 1, draw(seed, 2), draw(seed, 3)};

    switch (draw(seed, 3)) {
    case 0:
        return one_cond(jot_gt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 0.2)),
                        jot_vars(2, from), drawn_body, drawn_other, &one, 2, got)
            && (*out = jot_add(got[0], got[1]), true);
    case 1:
        one.depth++;
        return one_while(jot_vars(3, from), drawn_test, drawn_count, &one, 4, got)
            && (*out = jot_sub(got[0], got[1]), true);
    default:
        how.trips += 2;
        one.results = 3;
        return one_for(jot_vars(2, from), JOT_NONE_VARS, drawn_body, &one, &how, got)
            && (*out = jot_add(got[0], jot_sum(got[2], JOT_DIMS(0))), true);
    }
}

static bool
drawn_body(void *user, jot_Vars in, V *out)
{
    Drawn *d = user;
    unsigned seed = d->seed;
    int k;

    for (k = 0; k < d->results; k++)
        if (!d->depth || draw(&seed, 3))
            out[k] = drawn_element(d, &seed, in);
        else if (!drawn_within(d, &seed, in, &out[k]))
            return false;
    return true;
}

/* What is compared: values, gradients, a second order, a tangent. */
enum { RESULTS = 9, NUMBERS = 32 };
typedef struct { int n[RESULTS]; double v[RESULTS][NUMBERS]; } Results;

/* The outputs of the program of a seed. */
static bool
drawn_outputs(unsigned seed, Drawn *d, V x, V s, V *out)
{
    jot_Ctx *c = x.ctx;
    jot_For how = {0, 1, draw(&seed, 2), draw(&seed, 4)};
    V from[2] = {x, jot_zeros(c, JOT_F64, JOT_SHAPE(3))};

    d->seed = seed;
    d->depth = 2;
    switch (draw(&seed, 3)) {
    case 0:
        d->results = 3;
        return one_for(jot_vars(2, from), JOT_VARS(s), drawn_body, d, &how, out);
    case 1:
        out[2] = jot_mul(x, x);
        return one_while(jot_vars(2, from), drawn_test, drawn_count, d, 6, out);
    default:
        d->results = 2;
        out[2] = jot_sum(s, JOT_DIMS(0));
        from[1] = out[2];
        return one_cond(jot_lt(all(x), jot_scalar(c, JOT_F64, 0.1)), jot_vars(2, from), drawn_body,
                        drawn_other, d, 2, out);
    }
}

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
    V x = numbers(c, JOT_SHAPE(3), 1 + (int)(seed % 7)), s = numbers(c, JOT_SHAPE(5, 3), 2), y;
    V w = jot_stop_fuse(jot_scale(numbers(c, JOT_SHAPE(3, 3), 3), 0.5)), v[RESULTS];
    V b = numbers(c, JOT_SHAPE(3), 4);
    Drawn d = {w, b, 0, 0, 0};
    int k;
    bool ok = drawn_outputs(seed, &d, x, s, v);

    y = jot_add(all(jot_sin(v[0])), jot_add(all(v[1]), jot_scale(all(v[2]), 0.3)));
    ok = ok && jot_grad(y, JOT_VARS(x, w, b, s), v + 3) && jot_grad(all(jot_square(v[3])),
                                                                   JOT_VARS(w), &v[7])
      && jot_jvp(JOT_VARS(y), JOT_VARS(x, w), JOT_VARS(b, jot_square(w)), &v[8])
      && jot_run(c, jot_vars(RESULTS, v));
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
    test_drawn("interp", NULL, 60, first);
    test_drawn("tcc", NULL, 12, first);
    test_drawn("tcc", "none", 4, first);
    test_drawn("tcc", "paper", 4, first + 4);
    test_vmap();
    test_kernels();
    test_checkpoints();
    test_device("opencl");
    return DONE();
}
