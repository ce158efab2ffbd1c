/* tests/test_limits.c - OpenCL devices that are not here, played by tests/fake_opencl.c: small
 * work-groups, of the device or of single kernels, little memory for them, small pieces of memory,
 * no f64, no atomics of 8 bytes, of another version or byte order, several devices. What fits has
 * the interpreter's results, else an error names what is missing; nothing is refused at a launch.
 * Run by tests/test_fake_opencl.sh; skipped where the loader is the real one.
 *
 * Guards: backends/opencl/find.c, backends/opencl/opencl.c. */
#include <dlfcn.h>
#include "backends/backend.h"
#include "ccode/device/grid.h"
#include "tests/hooks.h"
#include "tests/test.h"

static void (*play)(const char *text);
static long (*live)(void);

static jot_Ctx *
open_played(const char *text, const char *dump)
{
    jot_Config config = {.backend = "opencl", .give_back = 1, .dump = dump,
                         .hooks = {.log = keep_log}};

    play(text);
    return jot_open(&config);
}

static void
close_played(jot_Ctx *c, const char *what)
{
    jot_close(c);
    CHECK(!live(), "%s: %ld objects are left", what, live());
}

/* ---- programs ----------------------------------------------------------------------------- */

static jot_Var
ramp(jot_Ctx *c, jot_DType dtype, jot_Ints shape)
{
    jot_Var x = jot_iota(c, JOT_I32, jot_ints(1, (int64_t[]){1}), 0);
    int64_t n = 1;

    for (int i = 0; i < shape.n; i++)
        n *= shape.v[i];
    x = jot_iota(c, JOT_I32, JOT_SHAPE(n), 0);
    x = jot_mod(jot_mul(x, jot_full_int(c, JOT_I32, JOT_SHAPE(), 37)),
                jot_full_int(c, JOT_I32, JOT_SHAPE(), 101));
    x = jot_reshape(jot_scale(jot_cast(x, dtype), 0.0078125), shape);
    jot_data(x); /* a leaf */
    return x;
}

typedef jot_Var Program(jot_Ctx *c, jot_DType dtype);

static jot_Var
long_sum(jot_Ctx *c, jot_DType dtype)
{
    return jot_sum(ramp(c, dtype, JOT_SHAPE(100003)), JOT_ALL_DIMS);
}

static jot_Var
columns(jot_Ctx *c, jot_DType dtype)
{
    return jot_sum(ramp(c, dtype, JOT_SHAPE(3000, 20)), JOT_DIMS(0));
}

static jot_Var
rows(jot_Ctx *c, jot_DType dtype)
{
    return jot_softmax(ramp(c, dtype, JOT_SHAPE(30, 700)), 1);
}

static jot_Var
wide(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = ramp(c, dtype, JOT_SHAPE(4 * GRID_BUSY + 3));

    return jot_add(jot_mul(x, x), x);
}

static jot_Var
product(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = ramp(c, dtype, JOT_SHAPE(150, 90));

    return jot_matmul(x, jot_transpose(x, JOT_INTS(1, 0)));
}

/* The operands' neighbours lie along the sum on both sides. */
static jot_Var
product_rows(jot_Ctx *c, jot_DType dtype)
{
    return jot_matmul(jot_transpose(ramp(c, dtype, JOT_SHAPE(300, 130)), JOT_INTS(1, 0)),
                      ramp(c, dtype, JOT_SHAPE(300, 130)));
}

static jot_Var
convolution(jot_Ctx *c, jot_DType dtype)
{
    return jot_conv2d(ramp(c, dtype, JOT_SHAPE(2, 5, 12, 12)), ramp(c, dtype, JOT_SHAPE(7, 5, 3,
            3)),
                      NULL);
}

static jot_Var
gradient(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = ramp(c, dtype, JOT_SHAPE(40, 60)), g;

    jot_grad(jot_sum(jot_square(jot_softmax(jot_matmul(x, jot_transpose(x, JOT_INTS(1, 0))), 1)),
                     JOT_ALL_DIMS), JOT_VARS(x), &g);
    return g;
}

/* The last ones in f64, too: their tiles are the largest. */
static const struct { const char *name; Program *build; bool doubles; } programs[] = {
    {"wide", wide, false}, {"rows", rows, false}, {"long sum", long_sum, false},
    {"columns", columns, false}, {"convolution", convolution, false}, {"gradient", gradient, false},
    {"product", product, true}, {"product of rows", product_rows, true},
};
enum { PROGRAMS = sizeof programs / sizeof *programs, MOST = 4 * GRID_BUSY + 3 };

static double want[PROGRAMS][2][MOST];
static int64_t nwant[PROGRAMS][2];

static void
make_wanted(void)
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);

    for (int i = 0; i < PROGRAMS; i++)
        for (int k = 0; k <= programs[i].doubles; k++) {
            jot_Var y = jot_cast(programs[i].build(c, k ? JOT_F64 : JOT_F32), JOT_F64);

            nwant[i][k] = jot_nelem(y);
            CHECK(nwant[i][k] <= MOST && jot_copy(y, want[i][k], (size_t)nwant[i][k] * 8),
                  "%s: %s", programs[i].name, jot_message(c));
        }
    jot_close(c);
}

static void
check_program(jot_Ctx *c, int i, int k, const char *what)
{
    jot_Var y = programs[i].build(c, k ? JOT_F64 : JOT_F32);
    double eps = k ? 1e-12 : 2e-5, x;
    int64_t bad = 0, n;

    CHECK(jot_data(y) && jot_nelem(y) == nwant[i][k], "%s, %s of %s: %s", what, programs[i].name,
          k ? "f64" : "f32", jot_message(c));
    for (n = 0; jot_ok(y) && !jot_error(c) && n < nwant[i][k]; n++) {
        x = k ? ((const double *)jot_data(y))[n] : ((const float *)jot_data(y))[n];
        bad += !(fabs(x - want[i][k][n]) <= eps * (1 + fabs(want[i][k][n])));
    }
    CHECK(!bad, "%s, %s of %s: %lld elements differ", what, programs[i].name, k ? "f64" : "f32",
          (long long)bad);
    jot_clear(c);
}

/* ---- what fits ---------------------------------------------------------------------------- */

/* group: of the target at the end. */
static void
test_fits(const char *text, int group)
{
    static int turn; /* in make test every other program, by turns */
    jot_Ctx *c = open_played(text, "");

    CHECK(!jot_error(c), "%s: %s", text, jot_message(c));
    for (int i = turn++ % test_many(2, 1); !jot_error(c) && i < PROGRAMS; i += test_many(2, 1))
        for (int k = test_many(programs[i].doubles, 0); k <= programs[i].doubles; k++)
            check_program(c, i, k, text);
    CHECK(c->target.group == group, "%s: groups of %d", text, c->target.group);
    close_played(c, text);
}

/* Same text, same results: what a group is asked for to have is in the schedule. */
static void
test_schedule(void)
{
    jot_Ctx *c = open_played("items=64 local=4096", "s");

    forget_log();
    check_program(c, 1, 0, "schedule");
    CHECK(strstr(logged, "group 64\n") && !strstr(logged, "group 128") && !strstr(logged,
            "group 256"),
          "%s", logged);
    close_played(c, "schedule");
    c = open_played("", "s");
    forget_log();
    check_program(c, 1, 0, "schedule");
    CHECK(strstr(logged, "group 256\n") != NULL, "%s", logged);
    close_played(c, "schedule");
}

/* A kernel's build allows fewer: its plan is made anew, once, and none after it; what needs no
 * groups is launched with smaller ones. */
static void
test_kernel(void)
{
    jot_Ctx *c = open_played("kernel=96", "s");

    check_program(c, 0, 0, "of a kernel");
    CHECK(c->target.group == 256, "items that share nothing: groups of %d", c->target.group);
    forget_log();
    check_program(c, 1, 0, "of a kernel");
    CHECK(c->target.group == 64 && strstr(logged, "group 256\n") && strstr(logged, "group 64\n"),
          "groups of %d: %s", c->target.group, logged);
    forget_log();
    check_program(c, 2, 0, "of a kernel");
    CHECK(!strstr(logged, "group 256\n"), "%s", logged);
    close_played(c, "of a kernel");
}

/* A function that is compiled ahead. */
static void
test_function(void)
{
    jot_Ctx *c = open_played("kernel=32", "");
    static float in[30 * 700], out[30 * 700];
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(30, 700), in), y = jot_softmax(x, 1);
    jot_Func f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    float sum = 0;

    CHECK(jot_func_ok(f)
          && jot_call(f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out))),
          "%s", jot_message(c));
    for (int i = 0; i < 700; i++)
        sum += out[i];
    CHECK(fabsf(sum - 1) < 1e-4f && c->target.group == 32, "sum %g, groups of %d", (double)sum,
          c->target.group);
    close_played(c, "function");
}

/* ---- what does not ------------------------------------------------------------------------ */

static void
test_unfit(const char *text, const char *word)
{
    jot_Ctx *c = open_played(text, "");

    CHECK(jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), word), "%s: %s", text,
          jot_message(c));
    close_played(c, text);
}

static double
item_of(jot_Ctx *c, jot_DType dtype)
{
    return jot_item(jot_sum(ramp(c, dtype, JOT_SHAPE(64)), JOT_ALL_DIMS));
}

/* f32 goes on where there is no f64, and never asks for it by itself. */
static void
test_doubles(void)
{
    jot_Ctx *c = open_played("no_doubles=1", "");

    for (int i = 0; i < PROGRAMS; i += test_many(3, 1))
        check_program(c, i, 0, "without f64");
    item_of(c, JOT_F64);
    CHECK(jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), "f64, which "), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(item_of(c, JOT_F32) > 20 && !jot_error(c), "afterwards: %s", jot_message(c));
    close_played(c, "without f64");
}

static void
test_atomics(void)
{
    static const char *const text[] = {"no_atomics64=1", ""};

    for (int k = 0; k < 2; k++)
        for (int wide_ = 0; wide_ < 2; wide_++) {
            jot_Ctx *c = open_played(text[k], "");
            jot_Var x = ramp(c, wide_ ? JOT_F64 : JOT_F32, JOT_SHAPE(500)), y;
            bool ok;

            y = jot_mod(jot_iota(c, JOT_I32, JOT_SHAPE(500), 0), jot_full_int(c, JOT_I32,
                    JOT_SHAPE(), 7));
            jot_data(y);
            y = jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(7), JOT_INDEX("@e0(i0)"), (jot_Strs){0},
                                      JOT_VARS(y));
            ok = jot_data(y) != NULL;
            CHECK(ok == (k || !wide_), "%s, %d: %s", text[k], wide_, jot_message(c));
            CHECK(ok || (jot_error(c) == JOT_EDEVICE && strstr(jot_message(c),
                                                               "atomics of 64 bits")),
                  "%s", jot_message(c));
            jot_clear(c);
            CHECK(item_of(c, JOT_F32) > 20, "afterwards: %s", jot_message(c));
            close_played(c, text[k]);
        }
}

/* Temporaries together are more than a piece of memory may be: each goes to one of its own. A
 * single array that is too large is told with what there is. */
static void
test_pieces(void)
{
    jot_Ctx *c = open_played("alloc=65536", "");
    jot_Var x = ramp(c, JOT_F32, JOT_SHAPE(12000)), y = x;

    for (int i = 0; i < 4; i++)
        y = jot_add(jot_stop_fuse(jot_scale(y, 0.5)), jot_stop_fuse(jot_square(y)));
    CHECK(jot_data(y) && jot_stats(c).last_block_nbytes > 65536, "%zu bytes: %s",
          (size_t)jot_stats(c).last_block_nbytes, jot_message(c));
    y = jot_exp(jot_uniform(c, JOT_F32, JOT_SHAPE(20000)));
    CHECK(!jot_data(y) && jot_error(c) == JOT_EMEM && strstr(jot_message(c), "65536 at a time"),
          "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(item_of(c, JOT_F32) > 20, "afterwards: %s", jot_message(c));
    close_played(c, "pieces");
}

/* ---- several devices ---------------------------------------------------------------------- */

static void
test_devices(void)
{
    static const struct { const char *want, *got; } of[] = {
        {NULL, "Fake GPU"}, {"0.1", "Fake GPU"}, {"gpu", "Fake GPU"}, {"Fake", "Fake GPU"}, {"0.0",
                NULL},
        {"cpu", NULL},
    };

    play("");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        jot_Config config = {.backend = "opencl", .device = of[i].want};
        jot_Ctx *c = jot_open(&config);
        bool fake = !jot_error(c) && !jot_data(jot_exp(jot_uniform(c, JOT_F32,
                                                                   JOT_SHAPE((int64_t)1 << 30,
                                                                                       1 << 26))));

        CHECK(fake && jot_error(c) == JOT_EMEM, "%s: %s", of[i].want, jot_message(c));
        jot_clear(c);
        CHECK(item_of(c, JOT_F32) > 20, "%s: %s", of[i].want, jot_message(c));
        close_played(c, "devices");
    }
}

int
main(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    jot_Ctx *c;

    if (library) {
        *(void **)&play = dlsym(library, "fake_opencl_play");
        *(void **)&live = dlsym(library, "fake_opencl_live");
    }
    if (!play || !live) {
        SKIP("the OpenCL loader is the real one");
        return DONE();
    }
    c = open_played("", "");
    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return DONE();
    }
    jot_close(c);
    make_wanted();
    test_fits("items=64 local=16384 bits=32", 64);
    test_fits("along=12 items=1024", 8);
    test_fits("local=1024 items=1", 1);
    test_fits("kernel=128 share=3", 128);
    test_schedule();
    test_kernel();
    test_function();
    test_unfit("version_1_1=1", "OpenCL 1.1");
    test_unfit("embedded=1", "embedded profile");
    test_unfit("big_endian=1", "big-endian");
    test_unfit("gone=1", "not available");
    test_unfit("no_compiler=1", "no compiler");
    test_unfit("no_devices=1", "knows no device");
    test_doubles();
    test_atomics();
    test_pieces();
    test_devices();
    return DONE();
}
