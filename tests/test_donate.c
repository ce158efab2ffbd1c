/* tests/test_donate.c - new values of variables in the memory of the old ones: when that is done,
 * that it never shows in a value, and what is said to who comes too late for an old one.
 *
 * Guards: ccode/emit/prelude_vector.c, plan/donate.c, plan/function/run.c, plan/order.c. */
#include "base.h"
#include "tests/test.h"

enum { KEEPS = !JOT_WATCHED };

static jot_Ctx *
open_on(const char *backend, const char *policy)
{
    jot_Config config = {.backend = backend, .policy = policy, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);

    if (c && jot_error(c) == JOT_EDEVICE) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return NULL;
    }
    return c;
}

static jot_Var
counted(jot_Ctx *c, int64_t n, double start)
{
    jot_Var v;

    jot_push(c);
    v = jot_param_of(jot_offset(jot_arange(c, JOT_F32, 0, 1, n), start));
    jot_run(c, JOT_VARS(v));
    jot_pop(c);
    return v;
}

static float
at(jot_Var v, int64_t i)
{
    const float *p = jot_data(v);

    return p ? p[i] : -1e30f;
}

static uint64_t
in_place(jot_Ctx *c)
{
    return jot_stats(c).in_place;
}

/* ---- when ---------------------------------------------------------------------------------- */

/* Momentum, two parameters and what is read of them elsewhere: four in place a step, and nothing
 * asked of the allocator. */
static void
steps(const char *backend, const char *policy)
{
    jot_Ctx *c = open_on(backend, policy);
    jot_Var w[2], m[2], x;
    uint64_t before, calls;
    size_t live;
    int i, k;

    if (!c)
        return;
    for (k = 0; k < 2; k++) {
        w[k] = counted(c, 3000, k);
        m[k] = counted(c, 3000, 0);
    }
    x = counted(c, 3000, 1);
    for (i = 0; i < 8; i++) {
        jot_Var y;

        before = in_place(c);
        calls = jot_stats(c).memory_calls;
        live = jot_stats(c).live_nbytes;
        jot_push(c);
        y = jot_sum(jot_mul(jot_mul(x, w[0]), w[1]), JOT_ALL_DIMS);
        for (k = 0; k < 2; k++) {
            jot_Var step = jot_add(jot_scale(m[k], 0.5), jot_scale(jot_mul(x, w[1 - k]), 1e-4));

            jot_assign(m[k], step);
            jot_assign(w[k], jot_sub(w[k], step));
        }
        CHECK(jot_run(c, JOT_VARS(y)), "%s: %s", backend, jot_message(c));
        jot_pop(c);
        /* each momentum reads the other's parameter: what closes a cycle goes beside the old
         * value */
        CHECK(in_place(c) - before >= (policy[0] == 'n' ? 2 : 3), "%s %s: step %d, %d in place",
              backend, policy, i, (int)(in_place(c) - before));
        CHECK(i < 5 || !KEEPS || jot_stats(c).memory_calls == calls, "%s %s: step %d, %d calls",
              backend, policy, i, (int)(jot_stats(c).memory_calls - calls));
        CHECK(i < 5 || jot_stats(c).live_nbytes == live, "%s %s: step %d, %zu bytes more", backend,
              policy, i, jot_stats(c).live_nbytes - live);
    }
    jot_close(c);
}

/* Handles of an outer scope, and kept ones, go on meaning the old value; those of the scope at hand
 * lose it, and say so. */
static void
handles(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var w, same, outer, kept, lost;
    uint64_t before;

    if (!c)
        return;
    w = counted(c, 100, 0);
    before = in_place(c);
    outer = jot_scale(w, 10);
    jot_push(c);
    jot_assign(w, jot_offset(w, 1));
    jot_run(c, JOT_NONE_VARS);
    jot_pop(c);
    CHECK(in_place(c) == before && at(outer, 5) == 50 && at(w, 5) == 6, "%s: outside: %g %g %s",
          backend, at(outer, 5), at(w, 5), jot_message(c));
    jot_push(c);
    kept = jot_keep(jot_scale(w, 10));
    jot_assign(w, jot_offset(w, 1));
    jot_run(c, JOT_NONE_VARS);
    jot_pop(c);
    CHECK(in_place(c) == before && at(kept, 5) == 60 && at(w, 5) == 7, "%s: kept: %g %g %s",
          backend, at(kept, 5), at(w, 5), jot_message(c));
    jot_push(c);
    same = jot_param_of(w);
    jot_run(c, JOT_VARS(same));
    jot_assign(w, jot_offset(w, 1));
    jot_run(c, JOT_NONE_VARS);
    jot_pop(c);
    CHECK(in_place(c) == before && at(same, 5) == 7 && at(w, 5) == 8, "%s: shared: %g %g %s",
          backend, at(same, 5), at(w, 5), jot_message(c));
    jot_push(c);
    jot_free(same);
    lost = jot_scale(w, 10);
    jot_assign(w, jot_offset(w, 1));
    CHECK(jot_run(c, JOT_VARS(lost)) && at(lost, 5) == 80, "%s: in the same run", backend);
    jot_pop(c);
    jot_push(c);
    lost = jot_scale(w, 10);
    same = jot_sum(lost, JOT_ALL_DIMS);
    jot_name(w, "the weights");
    jot_assign(w, jot_offset(w, 1));
    CHECK(jot_run(c, JOT_VARS(same)) && in_place(c) == before + 2, "%s: %d in place, %s", backend,
          (int)(in_place(c) - before), jot_message(c));
    CHECK(!jot_data(lost) && jot_error(c) == JOT_EUSE && strstr(jot_message(c), "jot_keep")
          && strstr(jot_message(c), "the weights"), "%s: %s", backend, jot_message(c));
    jot_clear(c);
    CHECK(at(w, 5) == 10, "%s: afterwards %g", backend, at(w, 5));
    jot_pop(c);
    jot_push(c);
    before = in_place(c);
    same = jot_scale(w, 10);
    kept = jot_scale(w, 100);
    jot_assign(w, jot_offset(w, 1));
    CHECK(jot_run(c, JOT_VARS(same)) && in_place(c) == before && at(same, 5) == 100
          && at(kept, 5) == 1000 && at(w, 5) == 11, "%s: a result beside: %g %g, %s", backend,
          at(same, 5), at(kept, 5), jot_message(c));
    jot_pop(c);
    jot_close(c);
}

/* A builder that evaluates because there is so much to do takes no handle's value. */
static void
unasked(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var w, old, x;
    uint64_t runs;
    int i;

    if (!c)
        return;
    w = counted(c, 100, 0);
    jot_push(c);
    old = jot_scale(w, 10);
    jot_assign(w, jot_offset(w, 1));
    x = jot_array(c, JOT_F32, JOT_SHAPE(1), NULL);
    runs = jot_stats(c).kernels_run;
    for (i = 0; i < JOT_START_NODES; i++)
        x = jot_offset(x, 1 + i % 2);
    CHECK(jot_stats(c).kernels_run > runs && in_place(c) == 0, "%s: %d in place", backend,
          (int)in_place(c));
    CHECK(at(old, 5) == 50 && at(w, 5) == 6, "%s: %g %g %s", backend, at(old, 5), at(w, 5),
          jot_message(c));
    jot_pop(c);
    jot_close(c);
}

/* A function that is called does the same, unless it returns the old value or another handle has
 * it. */
static void
calls(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var w, x, y, reader;
    jot_Func f;
    float in[64] = {0}, out[64];
    jot_In from = JOT_IN(in, sizeof in);
    jot_Out into = JOT_OUT(out, sizeof out);
    jot_Ins ins = jot_ins(1, &from);
    jot_Outs outs = jot_outs(1, &into);
    uint64_t before;
    int i;

    if (!c)
        return;
    w = counted(c, 64, 0);
    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(64), in);
    jot_assign(w, jot_add(w, x));
    y = jot_scale(w, 2);
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    jot_pop(c);
    CHECK(jot_func_ok(f), "%s: %s", backend, jot_message(c));
    for (i = 0; i < 64; i++)
        in[i] = 1;
    before = in_place(c);
    for (i = 0; i < 3; i++)
        CHECK(jot_call(f, ins, outs) && out[5] == 2 * (6 + (float)i),
              "%s: call %d: %g %s", backend, i, out[5], jot_message(c));
    CHECK(in_place(c) == before + 3, "%s: %d in place", backend, (int)(in_place(c) - before));
    reader = jot_scale(w, 10);
    CHECK(jot_call(f, ins, outs) && at(reader, 5) == 80
          && at(w, 5) == 9 && in_place(c) == before + 3, "%s: read: %g %g", backend, at(reader, 5),
          at(w, 5));
    CHECK(!jot_call(f, JOT_NONE_INS, outs) && (jot_clear(c), at(w, 5) == 9), "%s: refused",
          backend);
    jot_close(c);
}

/* ---- whatever is assigned ------------------------------------------------------------------ */

enum { STATES = 4, SIDE = 6, ROUNDS = 3 };

static uint32_t
draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* An expression of the states: elements as they lie, from elsewhere, sums, products of matrices. */
static jot_Var
drawn(jot_Var *s, uint32_t *seed, int depth)
{
    jot_Var a = depth > 2 || !draw(seed, 4) ? s[draw(seed, STATES)] : drawn(s, seed, depth + 1);

    switch (draw(seed, 10)) {
    case 0: return jot_transpose(a, JOT_INTS(1, 0));
    case 1: return jot_reindex(a, JOT_SHAPE(SIDE, SIDE), JOT_INDEX("5-i0", "i1"));
    case 2: return jot_reindex(a, JOT_SHAPE(SIDE, SIDE), JOT_INDEX("0", "i1"));
    case 3: return jot_sub(a, jot_scale(jot_reduce(JOT_ADD, a, JOT_KEEP(1)), 0.125));
    case 4: return jot_scale(jot_matmul(a, s[draw(seed, STATES)]), 0.125);
    case 5: return jot_mul(jot_tanh(a), s[draw(seed, STATES)]);
    case 6: return jot_add(jot_scale(a, 0.5), jot_scale(s[draw(seed, STATES)], 0.25));
    default: return jot_add(jot_scale(a, 0.75), s[draw(seed, STATES)]);
    }
}

static bool
program(const char *backend, const char *policy, uint32_t seed, float *out, uint64_t *count)
{
    jot_Ctx *c = open_on(backend, policy);
    jot_Var s[STATES];
    int i, k;
    bool ok = true;

    if (!c)
        return false;
    for (k = 0; k < STATES; k++) {
        float is[SIDE * SIDE];

        for (i = 0; i < SIDE * SIDE; i++)
            is[i] = (float)((i * 7 + k * 5) % 13) / 13 - 0.5f;
        s[k] = jot_param(c, JOT_F32, JOT_SHAPE(SIDE, SIDE), is);
    }
    for (i = 0; ok && i < ROUNDS; i++) {
        uint32_t same = seed; /* each round the same graph */

        jot_push(c);
        for (k = 0; k < STATES; k++) {
            jot_Var v = drawn(s, &same, 0);

            if (draw(&same, 4))
                ok = ok && jot_assign(s[draw(&same, 2) ? k : (int)draw(&same, STATES)], v);
        }
        ok = ok && jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
    }
    for (k = 0; ok && k < STATES; k++)
        ok = jot_copy(s[k], out + k * SIDE * SIDE, SIDE * SIDE * sizeof *out);
    CHECK(ok, "%s %s, seed %u: %s", backend, policy, seed, jot_message(c));
    *count += in_place(c);
    jot_close(c);
    return ok;
}

static void
programs(const char *backend, const char *policy, uint32_t n)
{
    static float want[STATES * SIDE * SIDE], got[STATES * SIDE * SIDE];
    uint64_t count = 0, none = 0;
    uint32_t seed;
    int i;

    for (seed = 1; seed <= n; seed++) {
        if (!program("interp", policy, seed * 77, want, &none)
            || !program(backend, policy, seed * 77, got, &count))
            return;
        for (i = 0; i < STATES * SIDE * SIDE; i++)
            if (!(fabsf(got[i] - want[i]) <= 1e-4f * (1 + fabsf(want[i]))))
                break;
        CHECK(i == STATES * SIDE * SIDE, "%s %s, seed %u: element %d of state %d is %g, not %g",
              backend, policy, seed, i % (SIDE * SIDE), i / (SIDE * SIDE), got[i], want[i]);
    }
    CHECK(none == 0 && count > n / 3, "%s %s: %d in place in %u programs", backend, policy,
          (int)count, n);
}

/* A scalar whose new value stands between what needs none of it and what does: the old one is read
 * by all phases of the kernel. Adam's powers of beta beside weights that threads share. */
static void
powers(const char *backend)
{
    enum { N = 65536, WEIGHTS = 2, STEPS = 3 };
    static float got[2][WEIGHTS][N];
    const char *const on[] = {"interp", backend};

    for (int b = 0; b < 2; b++) {
        jot_Ctx *c = open_on(on[b], "reward");
        jot_Var w[WEIGHTS], g[WEIGHTS];
        jot_Optim o;

        if (!c)
            return;
        for (int k = 0; k < WEIGHTS; k++)
            w[k] = counted(c, N, k + 1);
        o = jot_adam(jot_vars(WEIGHTS, w), 1e-3, 0.9, 0.999, 1e-8);
        for (int i = 0; i < STEPS; i++) {
            jot_push(c);
            for (int k = 0; k < WEIGHTS; k++)
                g[k] = jot_cos(jot_scale(w[k], k + 1)), jot_run(c, JOT_VARS(g[k]));
            jot_step(o, jot_vars(WEIGHTS, g));
            jot_pop(c);
        }
        for (int k = 0; k < WEIGHTS; k++)
            CHECK(jot_copy(w[k], got[b][k], sizeof got[b][k]), "%s: %s", on[b], jot_message(c));
        jot_close(c);
    }
    for (int k = 0; k < WEIGHTS; k++) {
        int bad = 0;

        for (int i = 0; i < N; i++)
            bad += !(fabs((double)got[0][k][i] - got[1][k][i])
                     <= 1e-5 + 1e-6 * fabs((double)got[0][k][i]));
        CHECK(!bad, "%s: %d of %d elements of weight %d", backend, bad, N, k);
    }
}

int
main(int argc, char **argv)
{
    static const char *const policies[] = {"none", "paper", "reward"};
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 60;
    int i;

    for (i = 0; i < 3; i++) {
        steps("tcc", policies[i]);
        programs("tcc", policies[i], n);
    }
    steps("cc", "reward");
    programs("cc", "reward", n / 8);
    handles("tcc");
    unasked("tcc");
    calls("tcc");
    powers("tcc");
    powers("cc");
    return DONE();
}
