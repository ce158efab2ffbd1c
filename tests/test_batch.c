/* tests/test_batch.c - products of all slices of one variable with one other are one product:
 * values and gradients, handles that are asked for later, what has to stay apart, refused memory;
 * and what is put together of many parts is copied part by part; what else stands in sums whose
 * terms are stacked.
 *
 * Guards: ccode/lower/cut.c, ccode/lower/value.c, fuse/pieces.c, ops/rewrite/joined.c,
 * ops/rewrite/stack_sum.c, ops/rewrite/term.c, plan/memory.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>

enum { T = 6, B = 5, H = 8, PARTS = 5 };

static float numbers[4096];

static jot_Var
slice_of(jot_Var xs, int t, int rows, int cols)
{
    return jot_reshape(jot_slice(xs, JOT_SHAPE(t, 0, 0), JOT_SHAPE(t + 1, rows, cols),
                                 JOT_SHAPE(1, 1, 1)), JOT_SHAPE(rows, cols));
}

/* A network of T steps: h = tanh(x_t w + h u); the last h, gradients by x, w, u. */
static int
recurrent(jot_Ctx *c, jot_Var *out)
{
    jot_Var in[3], h = jot_array(c, JOT_F32, JOT_SHAPE(B, H), numbers + 7);
    int t;

    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(T, B, H), numbers);
    in[1] = jot_array(c, JOT_F32, JOT_SHAPE(H, H), numbers + 300);
    in[2] = jot_array(c, JOT_F32, JOT_SHAPE(H, H), numbers + 400);
    for (t = 0; t < T; t++)
        h = jot_tanh(jot_add(jot_matmul(slice_of(in[0], t, B, H), in[1]), jot_matmul(h, in[2])));
    out[0] = h;
    jot_grad(jot_sum(jot_mul(h, h), JOT_ALL_DIMS), jot_vars(3, in), out + 1);
    return 4;
}

/* The other operand sliced, a product by the transposed; all of them asked for. */
static int
turned(jot_Ctx *c, jot_Var *out)
{
    jot_Var ws = jot_array(c, JOT_F32, JOT_SHAPE(T, H, B), numbers);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(B, H), numbers + 500);
    int t;

    for (t = 0; t < T; t++)
        out[t] = jot_matmul(x, slice_of(ws, t, H, B));
    return T;
}

/* Parts of other lengths along either dimension. */
static int
parts(jot_Ctx *c, jot_Var *out)
{
    jot_Var a[PARTS], b[PARTS];
    int k;

    for (k = 0; k < PARTS; k++) {
        a[k] = jot_array(c, JOT_F32, JOT_SHAPE(k + 1, 37), numbers + 50 * k);
        b[k] = jot_array(c, JOT_F32, JOT_SHAPE(13, 11 * k + 1), numbers + 60 * k);
    }
    out[0] = jot_concat(jot_vars(PARTS, a), 0);
    out[1] = jot_concat(jot_vars(PARTS, b), 1);
    out[2] = jot_sum(jot_mul(jot_concat(jot_vars(PARTS, b), 1), out[1]), JOT_DIMS(0));
    return 3;
}

/* A weight used by each of many rows, a few rows and a word of a table: gradients by weight and
 * table, and the gradient of that. */
enum { USES = 11, WIDE = 24, WORDS = 6 };

static int
shared(jot_Ctx *c, jot_Var *out)
{
    jot_Var in[2], h = jot_array(c, JOT_F32, JOT_SHAPE(1, WIDE), numbers + 9), all, g[2];
    jot_Var rows = jot_array(c, JOT_F32, JOT_SHAPE(3, WIDE), numbers + 90);
    int t;

    in[0] = jot_array(c, JOT_F32, JOT_SHAPE(WIDE, WIDE), numbers);
    in[1] = jot_array(c, JOT_F32, JOT_SHAPE(WORDS, WIDE), numbers + 700);
    all = jot_full(c, JOT_F32, JOT_SHAPE(1, WIDE), 0);
    for (t = 0; t < USES; t++) {
        int64_t word = t % WORDS;
        jot_Var x = jot_take(in[1], jot_array(c, JOT_I64, JOT_SHAPE(1), &word), 0);

        h = jot_tanh(jot_scale(jot_matmul(h, in[0]), 0.1));
        all = jot_add(all, jot_scale(jot_mul(h, jot_matmul(x, in[0])), 0.02));
        if (t < 4) {
            rows = jot_sin(jot_scale(jot_matmul(rows, in[0]), 0.1));
            all = jot_add(all, jot_reshape(jot_sum(rows, JOT_DIMS(0)), JOT_SHAPE(1, WIDE)));
        }
    }
    out[0] = all;
    jot_grad(jot_sum(jot_mul(all, all), JOT_ALL_DIMS), jot_vars(2, in), g);
    out[1] = g[0];
    out[2] = g[1];
    jot_grad(jot_sum(jot_mul(g[0], g[0]), JOT_ALL_DIMS), jot_vars(1, in), out + 3);
    return 4;
}

typedef int Program(jot_Ctx *c, jot_Var *out);

static void
check(Program *program, const char *name, const char *backend, const char *policy,
      const char *schedule)
{
    jot_Config plain = {.backend = "interp", .no_simplify = 1};
    jot_Config config = {.backend = backend, .policy = policy, .schedule = schedule, .threads = 2};
    jot_Ctx *a = jot_open(&plain), *b = jot_open(&config);
    jot_Var want[8], got[8];
    int n, k;
    int64_t i;

    if (jot_error(b)) {
        SKIP("%s: %s", backend, jot_message(b));
    } else {
        n = program(a, want);
        program(b, got);
        CHECK(jot_run(a, jot_vars(n, want)) && jot_run(b, jot_vars(n, got)), "%s, %s: %s", name,
              backend, jot_message(b));
        for (k = 0; k < n && !jot_error(b); k++) {
            const float *p = jot_data(want[k]), *q = jot_data(got[k]);
            double worst = 0;

            for (i = 0; i < jot_nelem(want[k]); i++)
                worst = fmax(worst, fabs(p[i] - q[i]) / (1 + fabs(p[i])));
            CHECK(worst < 1e-5, "%s on %s, %s, %s: result %d is off by %g", name, backend, policy,
                  schedule, k, worst);
        }
    }
    jot_close(a);
    jot_close(b);
}

static void
all_of(const char *backend)
{
    static Program *const program[] = {recurrent, turned, parts, shared};
    static const char *const name[] = {"recurrent", "turned", "parts", "shared"};
    char schedule[32];
    int k, s;

    for (k = 0; k < 4; k++) {
        check(program[k], name[k], backend, "reward", "default");
        check(program[k], name[k], backend, "paper", "default");
        check(program[k], name[k], backend, "none", "default");
        for (s = 1 + k % test_many(2, 1); s < 6 && !strcmp(backend, "tcc"); s += test_many(2, 1)) {
            snprintf(schedule, sizeof schedule, "random:%d", s);
            check(program[k], name[k], backend, "reward", schedule);
        }
    }
}

/* n of the T products, reduced by what is their own: kernels of the evaluation. */
static int
launches(int n, bool ask_first, int rows)
{
    jot_Config config = {.backend = "tcc", .policy = "paper"};
    jot_Ctx *c = jot_open(&config);
    float *big = calloc((size_t)T * (size_t)rows * H, sizeof *big);
    jot_Var xs, w, y[T], out[T];
    int t, kernels = -1;

    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
    } else {
        xs = jot_array(c, JOT_F32, JOT_SHAPE(T, rows, H), big);
        w = jot_array(c, JOT_F32, JOT_SHAPE(H, H), numbers + 300);
        for (t = 0; t < n; t++) {
            y[t] = jot_matmul(slice_of(xs, t, rows, H), w);
            out[t] = jot_max(y[t], JOT_ALL_DIMS);
        }
        if (ask_first)
            jot_data(y[2]);
        CHECK(jot_run(c, jot_vars(n, out)), "%s", jot_message(c));
        kernels = (int)jot_stats(c).last_kernels;
    }
    jot_close(c);
    free(big);
    return kernels;
}

static void
check_counts(void)
{
    int kernels = launches(T, false, B);

    if (kernels < 0)
        return;
    CHECK(kernels == 1 + T, "%d kernels: one product and a maximum of each", kernels);
    kernels = launches(T - 1, false, B);
    CHECK(kernels == 2 * (T - 1), "%d kernels where a slice is missing", kernels);
    kernels = launches(T, true, B);
    CHECK(kernels == 2 * T - 1, "%d kernels where one is evaluated already", kernels);
}

/* A product asked for alone, after the evaluation that made all of them one. */
static void
check_later(const char *backend)
{
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);
    jot_Var xs, w, y[T], all;
    int t, i, k;

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    xs = jot_array(c, JOT_F32, JOT_SHAPE(T, B, H), numbers);
    w = jot_array(c, JOT_F32, JOT_SHAPE(H, H), numbers + 300);
    all = jot_full(c, JOT_F32, JOT_SHAPE(B, H), 0);
    for (t = 0; t < T; t++)
        all = jot_add(all, jot_tanh(y[t] = jot_matmul(slice_of(xs, t, B, H), w)));
    CHECK(jot_data(all) != NULL, "%s", jot_message(c));
    for (t = 0; t < T; t++) {
        const float *p = jot_data(y[t]);

        for (i = 0; p && i < B * H; i++) {
            double sum = 0;

            for (k = 0; k < H; k++)
                sum += (double)numbers[(t * B + i / H) * H + k] * numbers[300 + k * H + i % H];
            CHECK(fabs(p[i] - sum) < 1e-5, "%s: product %d, element %d: %g for %g", backend, t, i,
                  p[i], sum);
        }
        CHECK(p != NULL, "%s", jot_message(c));
    }
    jot_close(c);
}

/* ---- the n-th allocation is refused ---- */

static void
check_refused(Program *program)
{
    int64_t n, step = test_many(5, program == shared ? 7 : 1);
    bool done = false;

    for (n = 1; !done && n < 20000; n += n > test_many(100, 400) ? step : 1) {
        Heap heap = {.countdown = n, .onwards = true};
        jot_Config config = {.backend = "interp",
                             .hooks = {.realloc = heap_realloc, .ud = &heap}, .give_back = 1};
        jot_Ctx *c = jot_open(&config);
        jot_Var out[4];

        if (c) {
            program(c, out);
            done = jot_run(c, jot_vars(4, out));
            CHECK(done || jot_error(c) == JOT_EMEM, "%d: %s", (int)n, jot_message(c));
            jot_close(c);
        }
        CHECK(heap.live == 0, "%d: %zu bytes are left", (int)n, heap.live);
    }
    CHECK(done, "it ends");
}

/* The gradient of a slice of a weight is summed into as much as the slice has, and put in place. */
static void
check_part(void)
{
    jot_Config config = {.backend = "interp", .hooks = {.log = keep_log}, .dump = "g"};
    jot_Ctx *c = jot_open(&config);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(6, 5), numbers);
    jot_Var w = jot_array(c, JOT_F32, JOT_SHAPE(5, 12), numbers + 100), y, g;
    const float *got;

    y = jot_matmul(x, jot_slice(w, JOT_SHAPE(0, 4), JOT_SHAPE(5, 7), JOT_SHAPE(1, 1)));
    jot_grad(jot_sum(y, JOT_DIMS(0, 1)), JOT_VARS(w), &g);
    got = jot_data(g);
    CHECK(got && strstr(logged, "(5, 3) reduce sum") && !strstr(logged, "(5, 12) reduce sum"),
          "%s%s", jot_message(c), logged);
    for (int i = 0; got && i < 5 * 12; i++) {
        double want = 0;

        for (int row = 0; row < 6 && i % 12 >= 4 && i % 12 < 7; row++)
            want += numbers[row * 5 + i / 12];
        CHECK(got[i] > want - 1e-5 && got[i] < want + 1e-5, "%d: %g for %g", i, got[i], want);
    }
    jot_close(c);
}

enum { SUMS = 40 };

/* The gradient of a weight that n blocks of rows are multiplied by, one after the other: no cells
 * side by side. */
static jot_Var
sums_of(jot_Ctx *c, int n, int rows)
{
    jot_Var w = jot_array(c, JOT_F32, JOT_SHAPE(SUMS, SUMS), numbers), x, g;
    jot_Var loss = jot_full(c, JOT_F32, JOT_SHAPE(rows, SUMS), 0);
    int t;

    for (t = 0; t < n; t++) {
        x = jot_array(c, JOT_F32, JOT_SHAPE(rows, SUMS), numbers + 11 * t);
        loss = jot_tanh(jot_matmul(jot_add(x, loss), w));
    }
    jot_grad(jot_sum(loss, JOT_ALL_DIMS), JOT_VARS(w), &g);
    return g;
}

/* Its kernels; the graph is logged. */
static int
sums(int n, int rows)
{
    jot_Config config = {.backend = "tcc", .hooks = {.log = keep_log}, .dump = "g"};
    jot_Config plain = {.backend = "interp", .no_simplify = 1};
    jot_Ctx *c = jot_open(&config), *of = jot_open(&plain);
    int k, kernels = -1;

    forget_log();
    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
    } else {
        const float *got = jot_data(sums_of(c, n, rows)), *want = jot_data(sums_of(of, n, rows));
        double worst = 0;

        CHECK(got && want, "%s%s", jot_message(c), jot_message(of));
        kernels = (int)jot_stats(c).last_kernels;
        for (k = 0; got && want && k < SUMS * SUMS; k++)
            worst = fmax(worst, fabs(got[k] - want[k]) / (1 + fabs(want[k])));
        CHECK(worst < 1e-5, "%d terms of %d rows: %g off", n, rows, worst);
    }
    jot_close(c);
    jot_close(of);
    return kernels;
}

/* One product of stacks, whatever n. */
static void
check_sums(void)
{
    int few = sums(7, 1), many;
    bool stacked = strstr(logged, "stack") != NULL;

    if (few < 0)
        return;
    CHECK(!stacked, "seven outer products are added up: %s", logged);
    many = sums(20, 1);
    CHECK(strstr(logged, "(24, 1, 40) stack"), "20 rows and 4 of zeros: %s", logged);
    CHECK(many <= 2 * 20 + 3, "%d kernels: each product, its gradient, two stacks, one product",
          many);
}

/* The gradient of all slices is put together of theirs with 0 elsewhere, which is added once: -0
 * becomes 0, nothing else changes. */
static void
check_zeros(const char *backend)
{
    jot_Config config = {.backend = backend, .hooks = {.log = keep_log}, .dump = "c"};
    jot_Ctx *c = jot_open(&config);
    float v[T * 2 * WIDE];
    jot_Var x, all, g;
    int t, k;

    forget_log();
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
    } else {
        x = jot_array(c, JOT_F32, JOT_SHAPE(T, 2, WIDE), numbers);
        all = jot_full(c, JOT_F32, JOT_SHAPE(2, WIDE), 0);
        for (k = 0; k < T * 2 * WIDE; k++)
            v[k] = k % 3 ? numbers[k] : k % 2 ? 0.0f : -0.0f;
        for (t = 0; t < T; t++)
            all = jot_add(all, jot_mul(slice_of(x, t, 2, WIDE),
                                       jot_array(c, JOT_F32, JOT_SHAPE(2, WIDE),
                                                 v + t * 2 * WIDE)));
        jot_grad(jot_sum(all, JOT_ALL_DIMS), JOT_VARS(x), &g);
        const float *got = jot_data(g);
        CHECK(got, "%s", jot_message(c));
        for (k = 0; got && k < T * 2 * WIDE; k++)
            CHECK(got[k] == v[k] && !signbit(got[k]) == !(v[k] < 0), "%d: %g for %g", k, got[k],
                  v[k]);
        CHECK(strstr(logged, "+ 0.0f") && !strstr(logged, "0.0f + 0.0f"), "%s", logged);
    }
    jot_close(c);
}

/* Sums of about as many terms are one kernel: a stack has room for more, less than eight rows of
 * zeros or an eighth of its terms. */
static void
check_room(void)
{
    static const struct { int terms, rows, room; } of[] = {
        {9, 1, 16}, {3, 2, 4}, {5, 2, 8}, {2, 12, 2}, {3, 12, 3}, {6, 12, 6}, {15, 12, 16},
        {17, 12, 18} };
    char stack[32];
    size_t i;

    for (i = 0; i < sizeof of / sizeof *of; i++) {
        if (sums(of[i].terms, of[i].rows) < 0)
            return;
        snprintf(stack, sizeof stack, "(%d, %d, %d) stack", of[i].room, of[i].rows, SUMS);
        CHECK(strstr(logged, stack), "%d terms of %d rows: no %s: %s", of[i].terms, of[i].rows,
              stack, logged);
    }
}

/* n products of x and g, added up from one end or the other, and what is put together of all g,
 * which has no stack of its own then. */
static void
joined_of(jot_Ctx *c, int n, bool reverse, jot_Var *out)
{
    jot_Var g[PARTS], x, all = {0};
    int k, t;

    jot_push(c);
    for (k = 0; k < n; k++) {
        t = reverse ? n - 1 - k : k;
        x = jot_array(c, JOT_F32, JOT_SHAPE(3, SUMS), numbers + 11 * t);
        g[t] = jot_tanh(jot_array(c, JOT_F32, JOT_SHAPE(3, SUMS), numbers + 7 * t));
        x = jot_matmul(jot_transpose(x, JOT_INTS(1, 0)), g[t]);
        all = k ? jot_add(all, x) : x;
    }
    out[0] = jot_keep(all);
    out[1] = jot_keep(jot_square(jot_stack(jot_vars(n, g), 0)));
    jot_pop(c);
}

static void
check_joined(const char *backend, int n, bool reverse)
{
    jot_Config config = {.backend = backend, .hooks = {.log = keep_log}, .dump = "g"};
    jot_Config plain = {.backend = "interp", .no_simplify = 1};
    jot_Ctx *c = jot_open(&config), *of = jot_open(&plain);
    jot_Var got[2], want[2];
    int i, k, stacks = 0;

    forget_log();
    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
    } else {
        joined_of(c, n, reverse, got);
        joined_of(of, n, reverse, want);
        CHECK(jot_run(c, jot_vars(2, got)) && !jot_error(c), "%s", jot_message(c));
        for (const char *s = logged; (s = strstr(s, " stack ")); s++)
            stacks++;
        CHECK(stacks == 1, "%d, %d: a stack of x alone: %s", n, reverse, logged);
        for (i = 0; i < 2; i++) {
            const float *a = jot_data(got[i]), *b = jot_data(want[i]);
            int64_t nelem = jot_nelem(want[i]);
            double worst = a && b ? 0 : 1;

            for (k = 0; a && b && k < nelem; k++)
                worst = fmax(worst, fabs(a[k] - b[k]) / (1 + fabs(b[k])));
            CHECK(worst < 1e-5, "%s: %d, %d, result %d: %g off", backend, n, reverse, i, worst);
        }
    }
    jot_close(c);
    jot_close(of);
}

enum { COLS = 16, LONG = 130 };

/* n outer products and a sum of their second rows; something else in each sum: a term twice, and
 * one of many rows. apart: of products, too, which then are stacked row by row. */
static void
rows_of(jot_Ctx *c, int n, bool apart, jot_Var *out)
{
    jot_Var z = jot_array(c, JOT_F32, JOT_SHAPE(LONG, COLS), numbers + 5);
    jot_Var x, g, all = {0}, sum = {0};
    jot_Var twice = jot_array(c, JOT_F32, JOT_SHAPE(COLS, COLS), numbers + 3);
    int t;

    jot_push(c);
    for (t = 0; t < n; t++) {
        x = jot_array(c, JOT_F32, JOT_SHAPE(1, COLS), numbers + 11 * t);
        g = jot_tanh(jot_array(c, JOT_F32, JOT_SHAPE(1, COLS), numbers + 7 * t));
        sum = t ? jot_add(sum, g) : g;
        x = jot_matmul(jot_transpose(x, JOT_INTS(1, 0)), g);
        all = t ? jot_add(all, x) : x;
    }
    if (apart)
        all = jot_add(all, jot_matmul(jot_transpose(z, JOT_INTS(1, 0)), jot_tanh(z)));
    twice = jot_tanh(twice);
    out[0] = jot_keep(jot_add(jot_add(all, twice), twice));
    out[1] = jot_keep(jot_add(jot_sum(sum, JOT_DIMS(0)), jot_sum(z, JOT_DIMS(0))));
    jot_pop(c);
}

/* A term that comes twice is added twice; rows are taken from a stack only where that has their
 * shape; a term of more parts than a stack has room for is taken as a whole or not at all. */
static void
check_rows(int n, bool apart)
{
    jot_Config config = {.backend = "tcc"}, plain = {.backend = "interp", .no_simplify = 1};
    jot_Ctx *c = jot_open(&config), *of = jot_open(&plain);
    jot_Var got[2], want[2];
    int i, k;

    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
    } else {
        rows_of(c, n, apart, got);
        rows_of(of, n, apart, want);
        CHECK(jot_run(c, jot_vars(2, got)) && !jot_error(c), "%d terms: %s", n, jot_message(c));
        for (i = 0; i < 2; i++) {
            const float *a = jot_data(got[i]), *b = jot_data(want[i]);
            double worst = a && b ? 0 : 1;

            for (k = 0; a && b && k < (i ? COLS : COLS * COLS); k++)
                worst = fmax(worst, fabs(a[k] - b[k]) / (1 + fabs(b[k])));
            CHECK(worst < 1e-5, "%d terms, %s: %g off", n, i ? "rows" : "products", worst);
        }
    }
    jot_close(c);
    jot_close(of);
}

/* A sum of outer products that has as many dimensions as there are has none left to stack them. */
static void
check_rank(const char *backend)
{
    enum { HALF = JOT_MAX_RANK / 2 };
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);
    int64_t two[JOT_MAX_RANK], dim[JOT_MAX_RANK];
    jot_Var sum = {0};
    const float *got;
    int t, k;

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    for (k = 0; k < JOT_MAX_RANK; k++)
        two[k] = 2, dim[k] = k;
    jot_push(c);
    for (t = 0; t < 9; t++) {
        jot_Var x = jot_array(c, JOT_F32, jot_ints(HALF, two), numbers + 7 * t);
        jot_Var g = jot_array(c, JOT_F32, jot_ints(HALF, two), numbers + 5 * t);

        x = jot_broadcast(x, jot_ints(JOT_MAX_RANK, two), jot_ints(HALF, dim + HALF));
        g = jot_broadcast(g, jot_ints(JOT_MAX_RANK, two), jot_ints(HALF, dim));
        sum = t ? jot_add(sum, jot_mul(x, g)) : jot_mul(x, g);
    }
    sum = jot_keep(sum);
    jot_pop(c);
    got = jot_data(sum);
    CHECK(got != NULL, "%s: %s", backend, jot_message(c));
    for (k = 0; got && k < 1 << JOT_MAX_RANK; k++) {
        double want = 0;

        for (t = 0; t < 9; t++)
            want += (double)numbers[7 * t + (k >> HALF)] * numbers[5 * t + k % (1 << HALF)];
        if (got[k] < want - 1e-5 || got[k] > want + 1e-5)
            break;
    }
    CHECK(!got || k == 1 << JOT_MAX_RANK, "%s: element %d is wrong", backend, k);
    jot_close(c);
}

int
main(void)
{
    int i;

    for (i = 0; i < 4096; i++)
        numbers[i] = (float)((i * 7919) % 200 - 100) / 150;
    all_of("tcc");
    all_of("cc");
    check_counts();
    check_later("interp");
    check_later("cc");
    check_part();
    check_refused(recurrent);
    check_refused(shared);
    check_sums();
    check_rows(9, false);
    check_rows(9, true);
    check_rows(249, true);
    check_room();
    check_zeros("tcc");
    check_zeros("cc");
    for (int n = 2; n <= PARTS; n++)
        for (int reverse = 0; reverse < 2; reverse++) {
            check_joined("interp", n, reverse);
            check_joined("tcc", n, reverse);
        }
    check_rank("interp");
    check_rank("tcc");
    return DONE();
}
