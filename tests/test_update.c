/* test_update.c - a part of a variable becomes another one: against a loop, drawn shapes and
 * places, also outside; gradients to second order; a cache that grows: one plan, one kernel, in
 * place, as a compiled function too; wrong arguments.
 *
 * Guards: nn/update.c, ccode/rewrite/partial.c. */
#include <time.h>
#include "core.h"
#include "nn.h"
#include "tests/test.h"

enum { MOST = 4096 };

static uint64_t state = 7;

static int64_t
draw(int64_t lo, int64_t hi)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((state >> 33) % (uint64_t)(hi - lo + 1));
}

static void
naive(int rank, const int64_t *ext, const int64_t *part, const int64_t *start, const float *value,
      float *x)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= part[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i, step = 1;
        bool inside = true;
        for (int d = rank; d-- > 0;) {
            int64_t p = start[d] + rest % part[d];
            rest /= part[d];
            inside = inside && p >= 0 && p < ext[d];
            at += p * step;
            step *= ext[d];
        }
        if (inside)
            x[at] = value[i];
    }
}

static void
test_drawn(jot_Ctx *c, const char *backend, int rounds)
{
    static float x[MOST], value[MOST];
    for (int round = 0; round < rounds; round++) {
        int rank = (int)draw(0, 4);
        int64_t ext[4], part[4], start[4], n = 1, m = 1, bad = 0;
        bool outside = draw(0, 1);
        for (int d = 0; d < rank; d++) {
            ext[d] = draw(0, 7) ? draw(1, 7) : 0;
            part[d] = draw(0, ext[d]);
            start[d] = outside ? draw(-3, ext[d] + 1) : draw(0, ext[d] - part[d]);
            n *= ext[d];
            m *= part[d];
        }
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)i;
        for (int64_t i = 0; i < m; i++)
            value[i] = -1 - (float)i;
        jot_push(c);
        jot_Var a = jot_array(c, JOT_F32, jot_ints(rank, ext), x);
        jot_Var v = jot_array(c, JOT_F32, jot_ints(rank, part), value);
        jot_Var y = outside
                        ? jot_update_slice_at(a, jot_array(c, JOT_I64, JOT_SHAPE(rank), start), v)
                        : jot_update_slice(a, jot_ints(rank, start), v);
        const float *got = jot_data(y);
        naive(rank, ext, part, start, value, x);
        for (int64_t i = 0; got && i < n; i++)
            bad += got[i] != x[i];
        CHECK(got && !bad, "%s, round %d: %lld of %lld; %s", backend, round, (long long)bad,
              (long long)n, jot_message(c));
        jot_pop(c);
    }
}

static jot_Var
inner(void *user, jot_Vars in)
{
    (void)user;
    jot_Var y = jot_update_slice(jot_mul(in.v[0], in.v[0]), JOT_INTS(1, -2), jot_sin(in.v[1]));
    return jot_mul(y, y);
}

static jot_Var
inner_gradient(void *user, jot_Vars in)
{
    jot_Var g[2];
    jot_grad(jot_sum(inner(user, in), JOT_ALL_DIMS), in, g);
    return jot_concat(JOT_VARS(jot_reshape(g[0], JOT_SHAPE(-1)), jot_reshape(g[1], JOT_SHAPE(-1))),
                      0);
}

static void
test_gradients(jot_Ctx *c)
{
    double v[16];
    for (int i = 0; i < 16; i++)
        v[i] = 0.3 + 0.1 * i;
    jot_Vars in = JOT_VARS(jot_param(c, JOT_F64, JOT_SHAPE(3, 4), v),
                           jot_param(c, JOT_F64, JOT_SHAPE(2, 2), v));
    CHECK(jot_grad_check(inner, NULL, in, 1e-4, 1e-6), "%s", jot_message(c));
    CHECK(jot_grad_check(inner_gradient, NULL, in, 1e-4, 1e-6), "%s", jot_message(c));
}

/* A row each step; what was written stays. */
static void
test_cache(jot_Ctx *c)
{
    enum { ROWS = 50, WIDE = 33 };
    jot_Stats before = jot_stats(c), after;
    jot_Var cache = jot_param(c, JOT_F32, JOT_SHAPE(ROWS, WIDE), NULL);
    int bad = 0;
    for (int step = 0; step < ROWS; step++) {
        if (step == 2)
            before = jot_stats(c);
        jot_push(c);
        jot_Var row = jot_full(c, JOT_F32, JOT_SHAPE(1, WIDE), 0.5);
        row = jot_add(row, jot_iota(c, JOT_F32, JOT_SHAPE(1, WIDE), 1));
        CHECK(jot_assign_slice(cache, JOT_INTS(step, 0), row), "%s", jot_message(c));
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        jot_pop(c);
    }
    after = jot_stats(c);
    CHECK(after.plans == before.plans, "%d plans more", (int)(after.plans - before.plans));
    CHECK(after.in_place - before.in_place == ROWS - 2, "%d in place",
          (int)(after.in_place - before.in_place));
    CHECK(after.kernels_run - before.kernels_run == ROWS - 2, "%d kernels",
          (int)(after.kernels_run - before.kernels_run));
    CHECK(after.live_nbytes == before.live_nbytes, "%zu bytes, then %zu", before.live_nbytes,
          after.live_nbytes);
    const float *got = jot_data(cache);
    for (int i = 0; got && i < ROWS * WIDE; i++)
        bad += got[i] != 0.5f + (float)(i % WIDE);
    CHECK(got && !bad, "%d of the cache; %s", bad, jot_message(c));
}

static void
test_compiled(jot_Ctx *c)
{
    jot_Var cache = jot_param(c, JOT_F32, JOT_SHAPE(8, 3), NULL);
    jot_Var row = jot_array(c, JOT_F32, JOT_SHAPE(1, 3), NULL),
            at = jot_array(c, JOT_I64, JOT_SHAPE(2), NULL);
    CHECK(jot_assign(cache, jot_update_slice_at(cache, at, row)), "%s", jot_message(c));
    jot_Var sum = jot_sum(cache, JOT_DIMS(0));
    jot_Func f = jot_compile(c, JOT_VARS(row, at), JOT_VARS(sum));
    float total[3], want[3] = {0, 0, 0};
    for (int step = 0; step < 10; step++) { /* of the last two nothing is inside */
        float in[3] = {(float)step, 1, (float)-step};
        int64_t place[2] = {step, 0};
        CHECK(jot_call(f, JOT_INS(JOT_IN(in, sizeof in), JOT_IN(place, sizeof place)),
                       JOT_OUTS(JOT_OUT(total, sizeof total))), "%s", jot_message(c));
        for (int i = 0; i < 3; i++)
            want[i] += step < 8 ? in[i] : 0;
        CHECK(!memcmp(total, want, sizeof want), "step %d: %g %g %g", step, total[0], total[1],
              total[2]);
    }
}

static void
refused(jot_Var v, jot_Status status, const char *a, const char *b)
{
    jot_Ctx *c = v.ctx;
    CHECK(!jot_ok(v) && jot_error(c) == status && strstr(jot_message(c), a) &&
              strstr(jot_message(c), b),
          "\"%s .. %s\" asked: %s", a, b, jot_message(c));
    jot_clear(c);
}

static void
test_refused(jot_Ctx *c)
{
    jot_Var x = jot_ones(c, JOT_F32, JOT_SHAPE(3, 4)), v = jot_ones(c, JOT_F32, JOT_SHAPE(2, 2)),
            none = {c, 0, 0};
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    refused(jot_update_slice(x, JOT_INTS(2, 0), v), JOT_ERANGE,
            "update_slice: start: 0..1 asked (dimension 0)", "2 found");
    refused(jot_update_slice(x, JOT_INTS(0, -1), v), JOT_ERANGE, "0..2 asked (dimension 1)",
            "-1 found");
    refused(jot_update_slice(x, jot_ints(2, NULL), v), JOT_EUSE, "update_slice: start", "NULL");
    refused(jot_update_slice(x, JOT_INTS(0), v), JOT_ERANGE, "start: 2 numbers asked", "1 found");
    refused(jot_update_slice(v, JOT_INTS(0, 0), x), JOT_ESHAPE, "value: extent of at most 2 asked",
            "3 found");
    refused(jot_update_slice(x, JOT_INTS(0, 0), p), JOT_ESHAPE, "value: rank 2 asked", "1 found");
    refused(jot_update_slice(x, JOT_INTS(0, 0), none), JOT_EHANDLE, "update_slice", "value");
    refused(jot_update_slice_at(x, p, v), JOT_EDTYPE, "update_slice_at: start", "f32");
    refused(jot_update_slice_at(x, jot_ones(c, JOT_I32, JOT_SHAPE(3)), v), JOT_ESHAPE,
            "start: (2) asked", "(3) found");
    CHECK(!jot_assign_slice(p, JOT_INTS(2), jot_ones(c, JOT_F32, JOT_SHAPE(2))), "outside");
    jot_clear(c);
    CHECK(jot_assign_slice(p, JOT_INTS(1), jot_ones(c, JOT_I32, JOT_SHAPE(2))) &&
              jot_item(jot_sum(p, JOT_ALL_DIMS)) == 2,
          "%s", jot_message(c));
}

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A row of 64 MB takes no time; where the old value is wanted as well, both are right. */
static void
test_part(jot_Ctx *c)
{
    enum { ROWS = 1 << 16, WIDE = 256 };
    double least = 1, whole = 1;
    jot_Var cache = jot_param(c, JOT_F32, JOT_SHAPE(ROWS, WIDE), NULL), old = jot_none();
    for (int step = 0; step < 12; step++) {
        double began = seconds();
        jot_push(c);
        jot_Var row = jot_full(c, JOT_F32, JOT_SHAPE(1, WIDE), step + 1);
        if (step == 10)
            old = jot_keep(jot_stop_grad(cache));
        jot_assign_slice(cache, JOT_INTS(step * 7, 0), row);
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
        double took = seconds() - began;
        if (step == 0)
            jot_data(cache);
        least = step > 1 && step < 10 && took < least ? took : least;
    }
    for (int step = 0; step < 3; step++) {
        double began = seconds();
        jot_push(c);
        jot_assign(cache, jot_offset(cache, 0.5));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
        whole = seconds() - began < whole ? seconds() - began : whole;
    }
    const float *x = jot_data(cache), *y = jot_data(old);
    int bad = 0;
    for (int i = 0; x && y && i < ROWS * WIDE; i++) {
        int step = i / WIDE % 7 == 0 && i / WIDE / 7 < 12 ? i / WIDE / 7 : -1;
        bad += x[i] != (float)(step + 1) + 1.5f || y[i] != (step < 10 ? (float)(step + 1) : 0);
    }
    CHECK(x && y && !bad, "%d wrong; %s", bad, jot_message(c));
    CHECK(least < whole / 10 || !strcmp(jot_backend(c), "interp"), "a row %g us, all %g us",
          1e6 * least, 1e6 * whole);
}

int
main(void)
{
    static const char *const backends[] = {"interp", "cpu"};
    for (int i = 0; i < 2; i++) {
        jot_Config config = {.backend = backends[i]};
        jot_Ctx *c = jot_open(&config);
        if (jot_error(c)) {
            SKIP("%s: %s", backends[i], jot_message(c));
        } else {
            test_drawn(c, backends[i], i ? 60 : 300);
            test_gradients(c);
            test_compiled(c);
            test_refused(c);
            if (i)
                test_cache(c), test_part(c);
        }
        jot_close(c);
    }
    return DONE();
}
