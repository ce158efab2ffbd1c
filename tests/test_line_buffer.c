/* tests/test_line_buffer.c - windows along rows that are read through lines, rows divided into
 * residue classes (ccode/rewrite/line_buffer.c): pools of every stride, window and border, their
 * gradients, images resized, maps that divide and wrap, groups of channels stored as one dimension,
 * against the interpreter; that lines are made where they should be and not elsewhere, and leave
 * room for a schedule.
 *
 * Guards: ccode/rewrite/line_buffer.c, ccode/rewrite/line_buffer_make.c, ccode/rewrite/residue.c.
 * */
#include "ccode/rewrite/line_buffer.h"
#include "nn.h"
#include "tests/hooks.h"
#include "tests/ir_run.h"
#include "tests/rates.h"

enum { MOST = 11 };

static jot_Ctx *
open_on(const char *backend, const char *policy, const char *schedule, char *log)
{
    jot_Config config;
    jot_Ctx *c;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.policy = policy;
    config.schedule = schedule;
    if (log) {
        log[0] = 0;
        config.dump = "ks";
        config.hooks.log = keep_log;
        config.hooks.ud = log;
    }
    c = jot_open(&config);
    same_rates(c);
    return c;
}

/* Values with ties, and both signs. */
static jot_Var
drawn(jot_Ctx *c, jot_DType dtype, jot_Ints shape, int salt)
{
    static float v[1 << 16];
    int64_t n = 1;

    for (int i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((i * 7919 + salt) % 23) - 11;
    return jot_cast(jot_array(c, JOT_F32, shape, v), dtype);
}

typedef struct { int kind, height, width, window, stride, pad; jot_DType dtype; } Case;

static jot_Var
forward(jot_Var x, const Case *k)
{
    jot_Pool pool;

    memset(&pool, 0, sizeof pool);
    pool.size[0] = pool.size[1] = k->window;
    pool.stride[0] = pool.stride[1] = k->stride;
    pool.pad[0] = pool.pad[1] = k->pad;
    return k->kind ? jot_avg_pool2d(x, &pool) : jot_max_pool2d(x, &pool);
}

/* The pool, a sum with weights of it, and the gradient by what was pooled. */
static int
pooled(jot_Ctx *c, const Case *k, jot_Var *out)
{
    jot_Var x = drawn(c, k->dtype, JOT_SHAPE(2, 3, k->height, k->width), 1), w, shifted;

    out[0] = forward(x, k);
    if (k->dtype != JOT_F32 && k->dtype != JOT_F64)
        return 1;
    shifted = jot_relu(jot_offset(x, 0.5));
    out[1] = forward(shifted, k);
    w = drawn(c, k->dtype, JOT_SHAPE(2, 3, jot_extent(out[0], 2), jot_extent(out[0], 3)), 5);
    out[2] = jot_sum(jot_mul(out[0], w), JOT_ALL_DIMS);
    jot_grad(out[2], JOT_VARS(x), &out[3]);
    return 4;
}

/* Rows that are divided, and wrap: repeated, interleaved, turned, and gathered back. */
static int
mapped(jot_Ctx *c, const Case *k, jot_Var *out)
{
    int n = k->width, s = k->stride;
    jot_DType dtype = k->dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    jot_Var x = drawn(c, dtype, JOT_SHAPE(3, n), 3), y = drawn(c, dtype, JOT_SHAPE(3, s), 4);
    char divided[32], rest[32];

    snprintf(divided, sizeof divided, "i1/%d", s);
    snprintf(rest, sizeof rest, "i1%%%d", s);
    out[0] = jot_reindex(x, JOT_SHAPE(3, n * s - k->pad), JOT_INDEX("i0", divided));
    out[1] = jot_mul(out[0], jot_reindex(y, JOT_SHAPE(3, n * s - k->pad), JOT_INDEX("i0", rest)));
    out[2] = jot_sum(jot_mul(out[1], out[0]), JOT_DIMS(0));
    jot_grad(jot_sum(out[2], JOT_ALL_DIMS), JOT_VARS(x), &out[3]);
    return 4;
}

/* What is walked alike, in part or whole: shapes with extents of 1, and 0 where the window is 4. */
static int
merged(jot_Ctx *c, const Case *k, jot_Var *out)
{
    int a = k->height, b = k->pad + 1, d = k->window == 4 ? 0 : k->window, w = k->width;
    jot_Var x = drawn(c, JOT_F32, JOT_SHAPE(a, b, d, w), 1),
            y = drawn(c, JOT_F32, JOT_SHAPE(a, b, d, w), 2);
    jot_Var row = drawn(c, JOT_F32, JOT_SHAPE(w), 3),
            channel = drawn(c, JOT_F32, JOT_SHAPE(b, 1, 1), 4);

    out[0] = jot_mul(jot_add(x, y), x);
    out[1] = jot_relu(jot_add(x, channel));
    out[2] = jot_add(jot_mul(x, row), y);
    out[3] = jot_transpose(jot_add(x, y), JOT_INTS(0, 2, 3, 1));
    out[4] = jot_sum(jot_mul(x, y), JOT_DIMS(0, 1));
    out[5] = jot_sum(x, JOT_DIMS(2, 3));
    out[6] =
        jot_add(jot_reshape(x, JOT_SHAPE(a * b, d * w)), jot_reshape(y, JOT_SHAPE(a * b, d * w)));
    out[7] = jot_sum(
        jot_mul(jot_transpose(x, JOT_INTS(1, 0, 2, 3)), jot_transpose(y, JOT_INTS(1, 0, 2, 3))),
        JOT_ALL_DIMS);
    if (d == 0)
        return 8;
    out[8] = jot_sub(x, jot_reindex(x, JOT_SHAPE(a, b, d, w), JOT_INDEX("i0", "i1", "0", "1")));
    out[9] = jot_add(y, jot_reindex(y, JOT_SHAPE(a, b, d, w), JOT_INDEX("2", "0", "i2", "i3")));
    out[10] = jot_variance(x, JOT_DIMS(2, 3));
    return 11;
}

typedef int Build(jot_Ctx *c, const Case *k, jot_Var *out);

static void
compare(Build *build, const Case *k, const char *backend, const char *policy, const char *schedule)
{
    jot_Ctx *a = open_on("interp", NULL, NULL, NULL), *b = open_on(backend, policy, schedule, NULL);
    jot_Var want[MOST], got[MOST];
    int n = build(a, k, want);

    build(b, k, got);
    jot_run(a, jot_vars(n, want));
    jot_run(b, jot_vars(n, got));
    for (int i = 0; i < n; i++) {
        jot_Var x = jot_cast(want[i], JOT_F64), y = jot_cast(got[i], JOT_F64);
        const double *p = jot_data(x), *q = jot_data(y);
        double most = 0;

        CHECK(jot_ok(x) && jot_ok(y) && p && q, "%s", jot_message(jot_ok(x) ? b : a));
        for (int64_t e = 0; p && q && e < jot_nelem(x); e++) {
            double d = p[e] - q[e];
            most = d > most ? d : -d > most ? -d : most;
        }
        CHECK(most <= 1e-3,
              "%s %s %s: result %d of kind %d, %dx%d, window %d, stride %d, pad %d: off by %g",
              backend, policy, schedule ? schedule : "", i, k->kind, k->height, k->width, k->window,
              k->stride, k->pad, most);
    }
    jot_close(a);
    jot_close(b);
}

static void
test_values(const char *backend, int every)
{
    static const int widths[] = {16, 33, 47, 70};
    int turn = 0;

    for (int kind = 0; kind < 2; kind++)
        for (int stride = 1; stride <= 5; stride++)
            for (int window = 1; window <= 4; window++)
                for (int pad = 0; 2 * pad <= window && pad < 3; pad++, turn++) {
                    char schedule[24];
                    Case k = {0, 5, 0, 0, 0, 0, JOT_F32};
                    if (turn % every)
                        continue;
                    k.kind = kind;
                    k.width = widths[turn % 4] * (turn % 3 ? 1 : stride);
                    k.window = window;
                    k.stride = stride;
                    k.pad = pad;
                    k.dtype = turn % 7 == 3 ? JOT_F64 : turn % 7 == 5 && !kind ? JOT_I32 : JOT_F32;
                    compare(pooled, &k, backend, turn % 2 ? "reward" : "paper", NULL);
                    snprintf(schedule, sizeof schedule, "random:%d", turn + 1);
                    compare(pooled, &k, backend, "reward", schedule);
                    if (stride < 3)
                        compare(merged, &k, backend, stride == 1 ? "reward" : "none",
                                turn % 3 == 0 ? schedule : NULL);
                    if (kind == 0 && stride > 1)
                        compare(mapped, &k, backend, turn % 2 ? "paper" : "reward",
                                turn % 5 == 0 ? schedule : NULL);
                }
}

/* A line where windows of rows overlap or have borders; none without windows. A maximum over both
 * axes of a window comes in two steps, a sum does not, nor one that would compare more often. Terms
 * of a window that reads neighbours of a line stand in the row's loop. */
static void
test_found(const char *backend)
{
    static char log[LOG];
    static const struct { Case k; bool backward, line, steps; const char *loops[2];
    } cases[] = {
        /* by a tile of the plane */
        {{0, 20, 64, 3, 1, 1, JOT_F32}, false, true, false, {NULL, NULL}},
        {{1, 20, 64, 3, 1, 1, JOT_F32}, false, true, false, {NULL, NULL}},
        {{0, 20, 64, 3, 2, 1, JOT_F32}, false, true, true, {"| i5 i3:1l\n", NULL}},
        /* one window reads an element */
        {{0, 20, 64, 3, 3, 0, JOT_F32}, false, false, false, {NULL, NULL}},
        /* what counts ties reads the line in the same loop; the gradient's classes are in one */
        {{0, 20, 64, 3, 2, 1, JOT_F32}, true, true, false,
         {"%6: i0:1p i2 i3:1l | i4:1u i5:1u\n", "o3:1l o3r:1u | i6:1u i7:1u\n"}},
        {{0, 20, 64, 2, 2, 0, JOT_F32}, false, false, false, {NULL, NULL}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        jot_Ctx *c = open_on(backend, "reward", NULL, log);
        jot_Var x = drawn(c, JOT_F32, JOT_SHAPE(2, 3, 20, 64), 1), y = forward(x, &cases[i].k);

        if (cases[i].backward)
            jot_grad(jot_sum(jot_mul(y, y), JOT_ALL_DIMS), JOT_VARS(x), &y);
        jot_run(c, jot_vars(1, &y));
        CHECK((strstr(log, " = f32 at %") != NULL) == cases[i].line, "case %d:\n%s", (int)i, log);
        CHECK((strstr(log, " = f32 reduce maximum over i4 of %") != NULL) == cases[i].steps,
              "case %d, steps:\n%s", (int)i, log);
        for (int j = 0; j < 2; j++)
            CHECK(!cases[i].loops[j] || strstr(log, cases[i].loops[j]) != NULL,
                  "case %d, loops:\n%s", (int)i, log);
        jot_close(c);
    }
}

/* An image of twice or three times the side: its rows are divided for a product, which it is not;
 * their classes stand in one loop, so that whole vectors are stored. */
static void
test_resized(const char *backend)
{
    static char log[LOG];

    for (int by = 2; by <= 3; by++) {
        jot_Resize resize = {JOT_LINEAR, {20 * by, 64 * by}, {0}, false};
        jot_Ctx *c = open_on(backend, "reward", NULL, log);
        jot_Ctx *other = open_on("interp", "reward", NULL, NULL);
        jot_Var y = jot_resize(drawn(c, JOT_F32, JOT_SHAPE(2, 3, 20, 64), 1), &resize);
        jot_Var z = jot_resize(drawn(other, JOT_F32, JOT_SHAPE(2, 3, 20, 64), 1), &resize);
        const float *got = jot_data(y), *want = jot_data(z);

        CHECK(strstr(log, " i3:1l i3r:1u | i") != NULL, "by %d:\n%s", by, log);
        CHECK(got && want, "by %d: %s, %s", by, jot_message(c), jot_message(other));
        for (int64_t i = 0; got && want && i < jot_nelem(y); i++)
            CHECK(fabsf(got[i] - want[i]) <= 1e-5f, "by %d: %g, %g asked", by, got[i], want[i]);
        jot_close(c);
        jot_close(other);
    }
}

/* Groups of channels that are one dimension where they are stored are walked as groups there, as
 * long as nobody goes on with what is stored. */
static void
test_groups(const char *backend)
{
    static char log[LOG];

    for (int both = 0; both < 2; both++) {
        jot_Ctx *c[2] = {open_on(backend, "reward", NULL, log),
                         open_on("interp", "reward", NULL, NULL)};
        jot_Var y[2][3];

        for (int k = 0; k < 2; k++) {
            jot_Var x = drawn(c[k], JOT_F32, JOT_SHAPE(2, 8, 6, 6), 1);
            jot_Var w = drawn(c[k], JOT_F32, JOT_SHAPE(8), 2);
            y[k][0] = jot_group_norm(x, 2, w, w, 1e-5);
            y[k][1] = jot_relu(y[k][0]);
            y[k][2] = jot_reshape(jot_sin(x), JOT_SHAPE(1, 16, 36));
        }
        CHECK(jot_run(c[0], jot_vars(1 + both, y[0])), "%s", jot_message(c[0]));
        CHECK((strstr(log, "[i0, 4*i1 + i2, i3] = %") != NULL) == (both == 0), "both %d: %s", both,
              log);
        for (int k = 0; k < 3; k++) {
            const float *got = jot_data(y[0][k]), *want = jot_data(y[1][k]);
            CHECK(got && want, "%s, %s", jot_message(c[0]), jot_message(c[1]));
            for (int64_t i = 0; got && want && i < jot_nelem(y[0][k]); i++)
                CHECK(fabsf(got[i] - want[i]) <= 1e-4f, "%g, %g asked", got[i], want[i]);
        }
        jot_close(c[0]);
        jot_close(c[1]);
    }
}

/* One loop over all of an array; what stands still along some of it keeps that apart, but at
 * constants. */
static void
test_merged(const char *backend)
{
    static char log[LOG];
    static const char *const want[] = {
        "axes i0:210\n", "axes i0:2 i1:3 i2:35\n", "axes i0:42 i3:5\n", "axes i0:2 i1:35 i3:3\n",
        "axes i0:6 i2:35\n", "axes i0:6 i2:35\n", "axes i0:210\n", "axes i0:2 i1:105\n"
    };

    for (int i = 0; i < 8; i++) {
        jot_Ctx *c = open_on(backend, "reward", NULL, log);
        jot_Var x = drawn(c, JOT_F32, JOT_SHAPE(2, 3, 7, 5), 1), y;

        jot_run(c, jot_vars(1, &x));
        log[0] = 0;
        y = i == 0   ? jot_mul(x, x)
            : i == 1 ? jot_add(x, drawn(c, JOT_F32, JOT_SHAPE(3, 1, 1), 2))
            : i == 2 ? jot_mul(x, drawn(c, JOT_F32, JOT_SHAPE(5), 2))
            : i == 3 ? jot_transpose(x, JOT_INTS(0, 2, 3, 1))
            : i == 4 ? jot_sum(x, JOT_DIMS(2, 3))
                     : jot_sub(x, jot_reindex(x, JOT_SHAPE(2, 3, 7, 5),
                                              i == 5   ? JOT_INDEX("i0", "i1", "6", "3")
                                              : i == 6 ? JOT_INDEX("1", "2", "3", "4")
                                                       : JOT_INDEX("i0", "2", "3", "4")));
        jot_run(c, jot_vars(1, &y));
        CHECK(strstr(log, want[i]) != NULL, "case %d: no %s in\n%s", i, want[i], log);
        jot_close(c);
    }
}

/* Windows of eight rows in a kernel of many axes: a line has axes of its own, and a schedule's list
 * loops over all there are.
 *
 *     y[a, b, c, d, i] = z[a, b, c, d] + max over p of x0[2i + p - 1] + ... + of x7[2i + p - 1]
 *
 * x is 0 outside. */
static void
test_room(void)
{
    enum { WINDOWS = 8, SIDE = 2, N = 16, TAPS = 5, AXES = 6 };
    static const int64_t ext[AXES] = {SIDE, SIDE, SIDE, SIDE, N, TAPS};
    IrCase room, *c = &room;
    uint32_t x[WINDOWS], z, y, v;
    int order[AXES];
    Target target;
    Sched s;

    ir_open();
    ir_start(c);
    ir_axes(c, "abcdip", ext);
    z = IN("z", 4, SIDE, SIDE, SIDE, SIDE);
    v = ir_load(c, z, AX(0), AX(1), AX(2), AX(3));
    for (int j = 0; j < WINDOWS; j++) {
        x[j] = IN("x", 1, 2 * N, 0, 0, 0);
        v = ir_ew(c, EW_ADD, v,
                  ir_sum(c, EW_MAX, BIT(5),
                         ir_guarded(c, x[j], ISUB(IADD(IMUL(AX(4), 2), AX(5)), IC(1)), 0, 0, 0),
                         "m"));
    }
    y = OUT("y", 3, SIDE * SIDE, SIDE * SIDE, N, 0);
    ir_store(c, y, IADD(IMUL(AX(0), SIDE), AX(1)), IADD(IMUL(AX(2), SIDE), AX(3)), AX(4), 0, v);
    for (int64_t e = 0; e < SIDE * SIDE * SIDE * SIDE; e++)
        for (int64_t i = 0; i < N; i++) {
            double sum = c->data[z][e];

            for (int j = 0; j < WINDOWS; j++) {
                double most = -INFINITY;

                for (int64_t at = 2 * i - 1; at < 2 * i - 1 + TAPS; at++)
                    most = fmax(most, at < 0 || at >= 2 * N ? 0 : c->data[x[j]][at]);
                sum += most;
            }
            c->data[y][e * N + i] = sum;
        }
    CHECK(jot_line_buffers(&c->k, LINE_LEAST), "memory");
    CHECK(c->k.axes.n > AXES && c->k.axes.n < STAGE_LOOPS, "%d axes", (int)c->k.axes.n);
    jot_target_default(&target);
    for (int a = 0; a < AXES; a++)
        order[a] = a;
    if (jot_sched_choose(&s, &c->k, &target, AXES, order))
        ir_check(c, &s, "c", 0, "many lines");
    else
        CHECK(false, "no schedule");
    jot_sched_close(&s);
    ir_end(c);
    ir_close();
}

/* A variable that is read as positions, too, keeps its dimensions when axes merge. */
static void
test_positions(const char *backend)
{
    static const char *const maps[] = {"@e0(0,0)", "@e0(1,2)", "@e0(i0,i1)", "@e0(1,i1)"};
    static const float xs[] = {.5f, 1, 2, 3, 4};
    static const int32_t es[] = {3, 0, 1, 2, 0, 1, 2, 0, 1};

    for (int m = 0; m < 4; m++) {
        jot_Ctx *c = open_on(backend, NULL, NULL, NULL);
        jot_Var e = jot_array(c, JOT_I32, JOT_SHAPE(3, 3), es);
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(5), xs);
        jot_Var y = jot_add(jot_reindex_ex(x, JOT_SHAPE(3, 3), JOT_INDEX(maps[m]), JOT_NONE_STRS, 0,
                                           JOT_VARS(e)), e);
        const float *v = jot_data(y);

        for (int k = 0; k < 9; k++) {
            int from = m == 0 ? 0 : m == 1 ? 5 : m == 2 ? k : 3 + k % 3;
            CHECK(v && v[k] == xs[es[from]] + (float)es[k], "%s %s: element %d: %g, %g asked: %s",
                  backend, maps[m], k, v ? v[k] : NAN, xs[es[from]] + (float)es[k], jot_message(c));
        }
        jot_close(c);
    }
}

int
main(void)
{
    static const char *const backends[] = {"cc", "tcc"};

    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        jot_Ctx *c = open_on(backends[i], NULL, NULL, NULL);
        bool here = c && !jot_error(c);

        jot_close(c);
        if (!here) {
            SKIP("%s does not open here", backends[i]);
            continue;
        }
        test_positions(backends[i]);
        test_values(backends[i], i == 0 ? 4 : 1);
        if (i == 0) {
            test_found(backends[i]);
            test_resized(backends[i]);
            test_groups(backends[i]);
            test_merged(backends[i]);
            test_room();
        }
    }
    return DONE();
}
