/* tests/test_flow.c - branches and loops: drawn programs of them, nested, against the same programs
 * unrolled by the host, values, gradients to second order, tangents, many examples, with every
 * backend and policy; checkpoints and what they hold; draws; functions that branch, loop and update,
 * without allocating, and their files of C; how many kernels there are; recursion by a stack; what is
 * refused; refused memory.
 *
 *     test_flow N FIRST BACKEND    N drawn programs, from seed FIRST on
 *
 * Guards: ops/flow/body.c, ops/flow/make.c, ops/flow/call.c, ops/flow/grad.c, ops/flow/batch.c,
 * plan/flow/form.c, plan/flow/make.c, plan/flow/run.c, plan/flow/interp.c, plan/flow/export.c,
 * plan/device/flow.c. */
#include <dlfcn.h>
#include <unistd.h>
#include "core.h"
#include "tests/hooks.h"
#include "tests/numbers.h"
#include "tests/test.h"

static V
all(V x)
{
    return jot_sum(x, JOT_ALL_DIMS);
}

/* ---- the same program, as a graph of branches and loops and unrolled --------------------------- */

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

/* ---- drawn programs ---------------------------------------------------------------------------- */

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
        return one_cond(jot_lt(all(x), jot_scalar(c, JOT_F64, 0.1)), JOT_VARS(x, jot_sum(s, JOT_DIMS(0))), drawn_body,
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
    V w = jot_scale(numbers(c, JOT_SHAPE(3, 3), 3), 0.5), b = numbers(c, JOT_SHAPE(3), 4), v[RESULTS];
    Drawn d = {w = jot_stop_fuse(w), b, 0, 0, 0};
    int k;
    bool ok = drawn_outputs(seed, &d, x, s, v);

    y = jot_add(all(jot_sin(v[0])), jot_add(all(v[1]), jot_scale(all(v[2]), 0.3)));
    ok = ok && jot_grad(y, JOT_VARS(x, w, b, s), v + 3) && jot_grad(all(jot_square(v[3])),
                                                                   JOT_VARS(w), &v[7])
      && jot_jvp(JOT_VARS(y), JOT_VARS(x, w), JOT_VARS(b, jot_square(w)), &v[8]) && jot_run(c, jot_vars(RESULTS, v));
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
        CHECK(a->n[k] == b->n[k] && worst < 1e-9, "%s, seed %u, result %d: %d elements, not %d; %g",
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

int
main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 12;
    unsigned first = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

    if (argc > 1) {
        test_drawn(argc > 3 ? argv[3] : "interp", NULL, n, first);
        return DONE();
    }
    test_drawn("interp", NULL, n, first);
    return DONE();
}
