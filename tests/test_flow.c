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

/* ---- many examples ----------------------------------------------------------------------------- */

/* h (2), s (4, 2), w (2, 2) -> a number, what it came from, gradients by h, s, w */
enum { EXAMPLES = 3, KINDS = 5, OUTS = 5 };

static bool
cell(void *user, jot_Vars in, V *out)
{
    out[0] = jot_tanh(jot_add(jot_matmul(*(V *)user, in.v[0]), in.v[1]));
    out[1] = jot_mul(out[0], in.v[0]);
    return true;
}

static bool
below(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_lt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 40));
    return true;
}

static bool
grow(void *user, jot_Vars in, V *out)
{
    out[0] = jot_add(jot_square(in.v[0]), jot_offset(jot_sin(jot_matmul(*(V *)user, in.v[0])), 1));
    return true;
}

static bool
wave(void *user, jot_Vars in, V *out)
{
    out[0] = jot_sin(jot_matmul(*(V *)user, in.v[0]));
    return true;
}

static bool
program(int kind, V h, V s, V w, V *out)
{
    jot_Ctx *c = h.ctx;
    jot_For how = {0, 1, kind == 1, kind == 1 ? 2 : 0};
    V o[2], rest = all(jot_sin(s)), zero = jot_scalar(c, JOT_F64, 0);
    bool ok;

    if (kind < 2)
        ok = jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &how, o);
    else if (kind == 2)
        ok = jot_while(JOT_VARS(jot_square(h)), below, grow, &w, 9, o);
    else
        ok = jot_cond(jot_gt(all(kind == 3 ? h : w), zero), JOT_VARS(h), wave, grow, &w, 1, o);
    out[0] = jot_add(all(jot_square(o[0])), rest);
    out[1] = kind < 2 ? o[1] : o[0];
    return ok && jot_grad(out[0], JOT_VARS(h, s, w), out + 2);
}

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

/* ---- what it costs ----------------------------------------------------------------------------- */

/* A loop of 1000 trips has the kernels of one of 2, and a graph that is built anew finds its plan. */
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

static bool
decay(void *user, jot_Vars in, V *out)
{
    out[0] = jot_sin(jot_mul(in.v[0], *(V *)user));
    return true;
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

/* ---- draws --------------------------------------------------------------------------------------- */

static bool
noisy(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[1] = jot_uniform(in.v[0].ctx, JOT_F64, JOT_SHAPE(3));
    out[0] = jot_add(in.v[0], out[1]);
    return true;
}

static bool
few(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_lt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 20));
    return true;
}

static bool
noisy_while(void *user, jot_Vars in, V *out)
{
    V made[2];
    bool ok = noisy(user, in, made);

    out[0] = made[0];
    return ok;
}

/* Each trip has draws of its own; a seed and a call of a function as ever. */
static void
test_draws(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V h = numbers(c, JOT_SHAPE(3), 1), outside = jot_uniform(c, JOT_F64, JOT_SHAPE(3)), o[2], y, z;
    jot_For how = {4, 1, false, 0};
    double a[12], b[12], sum[3];
    jot_Func f;

    jot_seed(c, 7);
    CHECK(jot_for(JOT_VARS(h), JOT_NONE_VARS, noisy, NULL, &how, o), "%s", jot_message(c));
    CHECK(apart(o[0], jot_add(h, jot_sum(o[1], JOT_DIMS(0)))) < 1e-12, "the sum of the draws");
    jot_copy(o[1], a, sizeof a);
    for (int t = 1; t < 4; t++)
        CHECK(memcmp(a, a + 3 * t, 3 * sizeof *a), "trip %d draws what the first did", t);
    jot_seed(c, 7);
    jot_for(JOT_VARS(h), JOT_NONE_VARS, noisy, NULL, &how, o);
    CHECK(jot_copy(o[1], b, sizeof b) && !memcmp(a, b, sizeof a), "a seed");
    f = jot_compile(c, JOT_VARS(h), JOT_VARS(o[1]));
    for (int k = 0; k < 2; k++) {
        memcpy(a, b, sizeof a);
        CHECK(jot_call(f, JOT_INS(JOT_IN(sum, sizeof sum)), JOT_OUTS(JOT_OUT(b, sizeof b)))
              && memcmp(a, b, sizeof a), "call %d: %s", k, jot_message(c));
    }
    CHECK(jot_while(JOT_VARS(h), few, noisy_while, NULL, 50, &y)
          && jot_item(all(y)) >= 20 && jot_item(all(y)) < 23, "%s", jot_message(c));
    CHECK(jot_cond(jot_scalar(c, JOT_F64, 1), JOT_VARS(h), noisy_while, decay, &outside, 1, &z)
          && jot_item(all(jot_sub(z, h))) != 0, "a branch: %s", jot_message(c));
    CHECK(!jot_while(JOT_VARS(h), few, noisy_while, NULL, 0, &y) && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "draws random numbers"), "%s", jot_message(c));
    jot_close(c);
}

/* ---- functions ------------------------------------------------------------------------------------ */

enum { STEPS = 7 };
typedef struct { V h, s, t, loss, q, w; } Step;

static bool
long_way(void *user, jot_Vars in, V *out)
{
    return jot_while(in, below, grow, user, 9, out);
}

/* A training step: a recurrent net, then a branch with a loop in it. */
static bool
step_build(jot_Ctx *c, V w, Step *step)
{
    jot_For how = {0, 1, false, 3};
    V o[2], g, h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(STEPS, 2), 2);
    V t = jot_array(c, JOT_I32, JOT_SHAPE(), NULL), q, loss;
    bool ok = jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &how, o)
           && jot_cond(t, JOT_VARS(jot_square(o[0])), long_way, wave, &w, 1, &q);

    loss = jot_add(all(jot_mul(o[1], s)), all(jot_scale(q, 0.1)));
    *step = (Step){h, s, t, loss, q, w};
    return ok && jot_grad(loss, JOT_VARS(w), &g) && jot_assign(w, jot_sub(w, jot_scale(g, 0.01)));
}

static void
step_numbers(int k, double *h, double *s, int32_t *t)
{
    for (int i = 0; i < 2; i++)
        h[i] = sin(k + i);
    for (int i = 0; i < 2 * STEPS; i++)
        s[i] = cos(k * 2 + i);
    *t = k % 2;
}

/* Loss, then q, of `calls` calls. */
static void
step_calls(jot_Ctx *c, Heap *heap, int calls, double (*got)[3])
{
    V w = jot_param(c, JOT_F64, JOT_SHAPE(2, 2), (double[]){0.3, -0.2, 0.5, 0.1});
    double h[2], s[2 * STEPS];
    int32_t t;
    Step step;
    jot_Func f;

    CHECK(step_build(c, w, &step), "%s", jot_message(c));
    f = jot_compile(c, JOT_VARS(step.h, step.s, step.t), JOT_VARS(step.loss, step.q));
    for (int k = 0; k < calls; k++) {
        long before = heap ? heap->calls : 0;

        step_numbers(k, h, s, &t);
        CHECK(jot_call(f, JOT_INS(JOT_IN(h, sizeof h), JOT_IN(s, sizeof s), JOT_IN(&t, sizeof t)),
                       JOT_OUTS(JOT_OUT(got[k], 8), JOT_OUT(got[k] + 1, 16))), "call %d: %s", k,
              jot_message(c));
        CHECK(!heap || k < 2 || heap->calls == before, "call %d asks for memory", k);
    }
    jot_func_free(f);
}

static void
step_same(const char *who, int calls, double (*a)[3], double (*b)[3])
{
    for (int k = 0; k < calls; k++)
        for (int i = 0; i < 3; i++)
            CHECK(fabs(a[k][i] - b[k][i]) < 1e-10 * (1 + fabs(b[k][i])), "%s, call %d: %g, not %g",
                  who, k, a[k][i], b[k][i]);
}

/* The file of the same step, compiled by a C compiler. */
static void
step_export(double (*want)[3])
{
    static char dir[] = "/tmp/jot-flow-XXXXXX";
    jot_Ctx *c = open_ctx("interp");
    V w = jot_param(c, JOT_F64, JOT_SHAPE(2, 2), (double[]){0.3, -0.2, 0.5, 0.1});
    char path[100], command[400];
    double got[4][3], h[2], s[2 * STEPS];
    void (*f)(void *, const void *, const void *, const void *, void *, void *) = NULL;
    int32_t t;
    Step step;
    void *lib = NULL, *arena;

    if (!mkdtemp(dir) || system("command -v gcc >/dev/null")) {
        SKIP("no gcc");
        jot_close(c);
        return;
    }
    snprintf(path, sizeof path, "%s/step.c", dir);
    CHECK(step_build(c, w, &step)
          && jot_export(c, "step", JOT_VARS(step.h, step.s, step.t), JOT_VARS(step.loss, step.q),
                        path), "%s", jot_message(c));
    snprintf(command, sizeof command, "gcc -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror "
             "-ffreestanding -nostdlib -fPIC -shared %s -o %s.so", path, path);
    CHECK(!system(command) && (strcat(path, ".so"), lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)),
          "it does not compile: %s", command);
    if (lib) {
        *(void **)&f = dlsym(lib, "step");
        arena = aligned_alloc(64, *(const unsigned long *)dlsym(lib, "step_arena") / 64 * 64 + 64);
        for (int k = 0; k < 4; k++) {
            step_numbers(k, h, s, &t);
            f(arena, h, s, &t, got[k], got[k] + 1);
        }
        step_same("the file", 4, got, want);
        free(arena);
        dlclose(lib);
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(!system(command), "%s", command);
    jot_close(c);
}

static void
test_function(void)
{
    double want[4][3], got[4][3];
    Heap heap = {0};
    jot_Config config = {.backend = "tcc", .cache_dir = "", .no_threads = 1,
                         .hooks.realloc = heap_realloc, .hooks.ud = &heap};
    jot_Ctx *c = open_ctx("interp");

    step_calls(c, NULL, 4, want);
    jot_close(c);
    c = jot_open(&config);
    if (jot_error(c))
        SKIP("%s", jot_message(c));
    else {
        step_calls(c, &heap, 4, got);
        step_same("tcc", 4, got, want);
    }
    jot_close(c);
    step_export(want);
}

/* ---- recursion, by a stack that is carried --------------------------------------------------------- */

/* Ackermann's function: stack (64), how many are on it, n */
static bool
ack_goes(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_gt(in.v[1], jot_scalar(in.v[0].ctx, JOT_I64, 0));
    return true;
}

static V
ack_put(V stack, V at, V value)
{
    return jot_where(jot_eq(jot_iota(stack.ctx, JOT_I64, JOT_SHAPE(64), 0), at), value, stack);
}

static bool
ack_zero(void *user, jot_Vars in, V *out) /* A(0, n) = n + 1 */
{
    (void)user;
    out[0] = in.v[0], out[1] = jot_offset(in.v[1], -1), out[2] = jot_offset(in.v[2], 1);
    return true;
}

static bool
ack_first(void *user, jot_Vars in, V *out) /* A(m, 0) = A(m - 1, 1) */
{
    (void)user;
    out[0] = ack_put(in.v[0], jot_offset(in.v[1], -1), jot_offset(in.v[3], -1));
    out[1] = in.v[1], out[2] = jot_scalar(in.v[0].ctx, JOT_I64, 1);
    return true;
}

static bool
ack_both(void *user, jot_Vars in, V *out) /* A(m, n) = A(m - 1, A(m, n - 1)) */
{
    (void)user;
    out[0] = ack_put(ack_put(in.v[0], jot_offset(in.v[1], -1), jot_offset(in.v[3], -1)), in.v[1],
                     in.v[3]);
    out[1] = jot_offset(in.v[1], 1), out[2] = jot_offset(in.v[2], -1);
    return true;
}

static bool
ack_more(void *user, jot_Vars in, V *out)
{
    return jot_cond(jot_eq(in.v[2], jot_scalar(in.v[0].ctx, JOT_I64, 0)), in, ack_first, ack_both,
                    user, 3, out);
}

static bool
ack_trip(void *user, jot_Vars in, V *out)
{
    V m = jot_take(in.v[0], jot_offset(in.v[1], -1), 0);

    return jot_cond(jot_eq(m, jot_scalar(m.ctx, JOT_I64, 0)), JOT_VARS(in.v[0], in.v[1], in.v[2], m),
                    ack_zero, ack_more, user, 3, out);
}

static void
test_recursion(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V n = jot_array(c, JOT_I64, JOT_SHAPE(), NULL), out[3];
    V stack = jot_full_int(c, JOT_I64, JOT_SHAPE(64), 2);
    jot_Func f;

    if (jot_error(c))
        SKIP("%s", jot_message(c));
    else {
        CHECK(jot_while(JOT_VARS(stack, jot_scalar(c, JOT_I64, 1), n), ack_goes, ack_trip, NULL, 0,
                        out), "%s", jot_message(c));
        f = jot_compile(c, JOT_VARS(n), JOT_VARS(out[2]));
        for (int64_t k = 0; k < 4; k++) {
            int64_t got = 0;

            CHECK(jot_call(f, JOT_INS(JOT_IN(&k, sizeof k)), JOT_OUTS(JOT_OUT(&got, sizeof got)))
                  && got == 2 * k + 3, "%s: A(2, %d) is %d: %s", backend, (int)k, (int)got,
                  jot_message(c));
        }
    }
    jot_close(c);
}

/* ---- devices --------------------------------------------------------------------------------------- */

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

/* ---- refused --------------------------------------------------------------------------------------- */

static void
refused(jot_Ctx *c, bool ok, jot_Status status, const char *word)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), word), "%d, \"%s\", not %d, \"%s\"",
          (int)jot_error(c), jot_message(c), (int)status, word);
    jot_clear(c);
}

static V kept;

static bool
says_no(void *user, jot_Vars in, V *out)
{
    (void)user, (void)in, (void)out;
    return false;
}

static bool
other_shape(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_sum(in.v[0], JOT_KEEP(0));
    return true;
}

static bool
other_dtype(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_cast(in.v[0], JOT_F32);
    return true;
}

static bool
evaluates(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_scale(in.v[0], jot_item(all(in.v[0])));
    return true;
}

static bool
assigns(void *user, jot_Vars in, V *out)
{
    jot_assign(*(V *)user, in.v[0]);
    out[0] = in.v[0];
    return true;
}

static bool
makes_parameter(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_param_of(in.v[0]);
    return true;
}

static bool
leaks(void *user, jot_Vars in, V *out)
{
    (void)user;
    kept = jot_keep(jot_keep(jot_sin(in.v[0])));
    out[0] = in.v[0];
    return true;
}

static bool
recurs(void *user, jot_Vars in, V *out)
{
    return jot_while(in, below, recurs, user, 0, out);
}

static bool
whole(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = in.v[0];
    return true;
}

static bool
forgets(void *user, jot_Vars in, V *out)
{
    (void)user, (void)in, (void)out;
    return true;
}

static void
test_refused(void)
{
    jot_Ctx *c = open_ctx("interp");
    V x = numbers(c, JOT_SHAPE(3), 1), w = numbers(c, JOT_SHAPE(3, 3), 2), p, y, g, o[2];
    V one = jot_scalar(c, JOT_F64, 1);
    jot_For how = {2, 0, false, 0};

    p = jot_param(c, JOT_F64, JOT_SHAPE(3), NULL);
    refused(c, jot_while(JOT_VARS(x), below, says_no, NULL, 0, &y), JOT_EUSE,
            "while: the callback says that it failed");
    CHECK(!jot_ok(y), "poison");
    refused(c, jot_while(JOT_VARS(x), below, other_shape, NULL, 0, &y), JOT_ESHAPE,
            "while: out[0] is f64 (3) where it comes in, and f64 (1) where the body returns it");
    refused(c, jot_while(JOT_VARS(x), below, other_dtype, NULL, 0, &y), JOT_EDTYPE, "f32");
    refused(c, jot_while(JOT_VARS(x), whole, grow, &w, 0, &y), JOT_ESHAPE,
            "while: the test is f64 (3); one element is asked");
    refused(c, jot_while(JOT_VARS(x), below, evaluates, NULL, 0, &y), JOT_EUSE,
            "body of a branch or loop");
    refused(c, jot_while(JOT_VARS(x), below, assigns, &p, 0, &y), JOT_EUSE, "jot_while is built");
    refused(c, jot_while(JOT_VARS(x), below, makes_parameter, NULL, 0, &y), JOT_EUSE, "param_of");
    refused(c, jot_while(JOT_VARS(x), below, forgets, NULL, 0, &y), JOT_EHANDLE, "out[0]");
    refused(c, jot_while(JOT_VARS(x), below, recurs, NULL, 0, &y), JOT_ERANGE, "16 deep");
    refused(c, jot_while(JOT_VARS(x), below, NULL, NULL, 0, &y), JOT_EUSE, "a body is NULL");
    refused(c, jot_while(JOT_VARS(x), below, grow, &w, -1, &y), JOT_ERANGE, "-1 trips");
    CHECK(!jot_while(JOT_NONE_VARS, below, grow, &w, 0, &y) && !jot_error(c), "of no context");
    refused(c, jot_while(JOT_VARS(x), below, grow, &w, 0, NULL), JOT_EUSE, "nowhere");
    CHECK(jot_while(JOT_VARS(x), below, grow, &w, 0, &y), "%s", jot_message(c));
    refused(c, jot_grad(all(y), JOT_VARS(x), &g), JOT_EGRAD, "a while without a bound");
    CHECK(jot_while(JOT_VARS(x), below, leaks, NULL, 1, &y), "%s", jot_message(c));
    refused(c, jot_run(c, JOT_VARS(kept)), JOT_EUSE, "stands on what goes into the body");

    refused(c, jot_cond(x, JOT_VARS(x), whole, whole, NULL, 1, &y), JOT_ESHAPE, "cond: the test");
    refused(c, jot_cond(one, JOT_VARS(x), whole, other_shape, NULL, 1, &y), JOT_ESHAPE,
            "cond: out[0] is f64 (3) of then, and f64 (1) of otherwise");
    refused(c, jot_cond(one, JOT_VARS(x), whole, whole, NULL, 0, &y), JOT_ERANGE, "0 variables in out");

    refused(c, jot_for(JOT_VARS(x), JOT_VARS(w, numbers(c, JOT_SHAPE(2, 3), 1)), cell, &w, &how, o),
            JOT_ESHAPE, "for: xs[1] has 2 slices, those before it have 3");
    refused(c, jot_for(JOT_VARS(x), JOT_VARS(one), cell, &w, &how, o), JOT_ESHAPE,
            "for: xs[0] is a scalar");
    refused(c, jot_for(JOT_VARS(x), JOT_VARS(w), cell, &w, &how, o), JOT_ERANGE, "trips is 2");
    how.trips = -3;
    refused(c, jot_for(JOT_VARS(x), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE, "-3");
    how = (jot_For){2, -1, false, 0};
    refused(c, jot_for(JOT_VARS(x, w), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE, "stacked is -1");
    how = (jot_For){2, 0, false, -1};
    refused(c, jot_for(JOT_VARS(x), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE, "every is -1");
    how = (jot_For){0, 1, false, 0};
    CHECK(jot_for(JOT_VARS(x), JOT_VARS(jot_zeros(c, JOT_F64, JOT_SHAPE(0, 3))), cell, &w, &how, o)
          && apart(o[0], x) == 0 && jot_extent(o[1], 0) == 0, "no trip: %s", jot_message(c));
    jot_close(c);
}

static bool
adds(void *user, jot_Vars in, V *out)
{
    out[0] = jot_sin(jot_add(in.v[0], *(V *)user));
    return true;
}

/* Gradients by maps that a body reads: one that has a handle goes in as it is; one that is larger
 * than what it is made of is made again inside, and refused. */
static void
test_views(void)
{
    jot_Ctx *c = open_ctx("interp");
    V h = numbers(c, JOT_SHAPE(3), 1), w = numbers(c, JOT_SHAPE(3, 3), 2), big, o, g, want;
    V view = jot_transpose(w, JOT_INTS(1, 0)), m = numbers(c, JOT_SHAPE(3, 3), 3);
    jot_For how = {3, 0, false, 0};

    CHECK(jot_for(JOT_VARS(h), JOT_NONE_VARS, wave, &view, &how, &o)
          && jot_grad(all(o), JOT_VARS(view), &g) && jot_grad(all(o), JOT_VARS(w), &want)
          && apart(g, jot_transpose(want, JOT_INTS(1, 0))) < 1e-12
          && jot_item(all(jot_square(g))) > 0, "%s", jot_message(c));
    big = jot_broadcast_to(h, JOT_SHAPE(3, 3));
    CHECK(jot_for(JOT_VARS(m), JOT_NONE_VARS, adds, &big, &how, &o)
          && jot_grad(all(o), JOT_VARS(h), &g), "%s", jot_message(c));
    refused(c, jot_grad(all(o), JOT_VARS(big), &want), JOT_EGRAD, "jot_stop_fuse keeps it");
    big = jot_stop_fuse(big);
    CHECK(jot_for(JOT_VARS(m), JOT_NONE_VARS, adds, &big, &how, &o)
          && jot_grad(all(o), JOT_VARS(big), &want) && apart(g, jot_sum(want, JOT_DIMS(0))) < 1e-12,
          "%s", jot_message(c));
    jot_close(c);
}

/* Every allocation refused in turn: a failure, or the result; nothing is left behind. */
static void
test_allocations(const char *backend, int step)
{
    bool reached = true;
    long nth;

    for (nth = 1; reached && nth < 20000; nth += step) {
        Heap heap = {0};
        jot_Config config = {.backend = backend, .give_back = 1, .cache_dir = "",
                             .hooks.realloc = heap_realloc, .hooks.ud = &heap};
        jot_Ctx *c = jot_open(&config);
        V h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(4, 2), 2), out[OUTS];
        V w = numbers(c, JOT_SHAPE(2, 2), 3), t;
        bool ok;

        if (jot_error(c)) {
            SKIP("%s", jot_message(c));
            jot_close(c);
            return;
        }
        heap.countdown = nth;
        ok = program(1, h, s, w, out) && jot_jvp(JOT_VARS(out[0]), JOT_VARS(h), JOT_VARS(h), &t)
          && jot_run(c, JOT_VARS(out[0], out[2], t));
        reached = heap.refused > 0;
        heap.countdown = 0;
        CHECK(ok ? !jot_error(c) : jot_error(c) == JOT_EMEM, "allocation %ld: %s", nth,
              jot_message(c));
        jot_close(c);
        CHECK(!heap.live, "allocation %ld: %zu bytes are left", nth, heap.live);
    }
    CHECK(!reached && nth > 100, "%ld allocations", nth);
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
    test_drawn("interp", NULL, 60, first);
    test_drawn("tcc", NULL, n, first);
    test_drawn("tcc", "none", 4, first);
    test_drawn("tcc", "paper", 4, first + 4);
    test_vmap();
    test_kernels();
    test_checkpoints();
    test_draws("interp");
    test_draws("tcc");
    test_function();
    test_recursion("interp");
    test_recursion("tcc");
    test_device("opencl");
    test_device("cuda");
    test_refused();
    test_views();
    test_allocations("interp", 1);
    test_allocations("tcc", 7);
    return DONE();
}
