/* tests/test_wide.c - large element-wise kernels and reindexes of a device take 16 bytes at a time
 * where their elements lie side by side, leave the rest for single items, and come to the
 * interpreter's results; which accesses are wide is asserted from the text. Every dtype, odd sizes,
 * what is shifted, turned, spread or padded.
 *
 *     test_wide [cuda] */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { N = 4 * 32768 };
static const char *backend = "opencl";
static jot_Var
some(jot_Ctx *c, jot_DType dtype, jot_Ints shape)
{
    jot_Var i = jot_iota(c, JOT_I32, shape, shape.n - 1);

    for (int d = 0; d + 1 < shape.n; d++)
        i = jot_add(
            i, jot_mul(jot_iota(c, JOT_I32, shape, d), jot_full_int(c, JOT_I32, JOT_SHAPE(), 7)));
    i = jot_cast(jot_sub(jot_mod(i, jot_full_int(c, JOT_I32, JOT_SHAPE(), 101)),
                         jot_full_int(c, JOT_I32, JOT_SHAPE(), 30)), dtype);
    jot_data(i); /* a leaf: what is tested reads memory */
    return i;
}

/* loads, stores: wide ones in the text of the last kernel; lanes: elements of each, 0: none is
 * wide. */
typedef struct {
    const char *name;
    jot_Var (*build)(jot_Ctx *c, jot_DType dtype);
    jot_DType dtype;
    int loads, stores, lanes;
} Case;

static jot_Var
chain(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(N * 4 + 3)), y = jot_add(x, x);

    jot_data(y);
    return jot_add(jot_mul(x, y), x);
}

static jot_Var
spread(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 1024)), row = some(c, dtype, JOT_SHAPE(1024));

    return jot_sub(jot_mul(x, row), some(c, dtype, JOT_SHAPE(500, 1))); /* x, a row, a column */
}

static jot_Var
odd_rows(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 1023)), row = some(c, dtype, JOT_SHAPE(1023));

    return jot_mul(x, row);
}

/* The same place in the row, and one farther: the second is not at a multiple of 16 bytes. */
static jot_Var
shifted(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 1028));

    return jot_add(jot_slice(x, JOT_DIMS(0, 0), JOT_DIMS(500, 1024), JOT_DIMS(1, 1)),
                   jot_slice(x, JOT_DIMS(0, 1), JOT_DIMS(500, 1025), JOT_DIMS(1, 1)));
}

static jot_Var
padded(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 1020));

    return jot_reindex(x, JOT_SHAPE(500, 1024), JOT_INDEX("i0", "i1-2"));
}

static jot_Var
turned(jot_Ctx *c, jot_DType dtype)
{
    return jot_scale(jot_transpose(some(c, dtype, JOT_SHAPE(512, 1024)), JOT_DIMS(1, 0)), 2);
}

static jot_Var
small(jot_Ctx *c, jot_DType dtype)
{
    return jot_scale(some(c, dtype, JOT_SHAPE(1024)), 2);
}

static const Case cases[] = {
    {"chain", chain, JOT_F32, 2, 1, 4}, {"chain", chain, JOT_F64, 2, 1, 2},
    {"chain", chain, JOT_F16, 2, 1, 8}, {"chain", chain, JOT_BF16, 2, 1, 8},
    {"chain", chain, JOT_I8, 2, 1, 16}, {"chain", chain, JOT_U16, 2, 1, 8},
    {"chain", chain, JOT_I64, 2, 1, 2}, {"chain", chain, JOT_U32, 2, 1, 4},
    {"spread", spread, JOT_F32, 2, 1, 4}, {"odd rows", odd_rows, JOT_F32, 0, 0, 0},
    {"shifted", shifted, JOT_F32, 1, 1, 4}, {"padded", padded, JOT_F32, 0, 1, 4},
    {"turned", turned, JOT_F32, 0, 0, 0}, {"small", small, JOT_F32, 0, 0, 0},
};

static void
test_case(const Case *t)
{
    jot_Config want = {.backend = "interp"};
    jot_Config have = {.backend = backend, .dump = "c", .hooks = {.log = keep_log}};
    jot_Ctx *c[2];
    jot_Var y[2];
    const char *dtype = jot_dtype_name(t->dtype);
    char word[40];
    int64_t i, bad = 0;

    c[0] = jot_open(&want);
    c[1] = jot_open(&have);
    for (int k = 0; k < 2; k++) {
        y[k] = t->build(c[k], t->dtype);
        forget_log();
        CHECK(jot_data(y[k]), "%s of %s: %s", t->name, dtype, jot_message(c[k]));
    }
    snprintf(word, sizeof word, "jot_ldw_%sx%d(", dtype, t->lanes);
    CHECK(t->lanes ? count_logged(word) == t->loads : !strstr(logged, "jot_ldw"),
          "%s of %s: %d loads are %s\n%s", t->name, dtype, count_logged(word), word, logged);
    snprintf(word, sizeof word, "jot_stw_%sx%d(", dtype, t->lanes);
    CHECK(t->lanes ? count_logged(word) == t->stores : !strstr(logged, "jot_stw"),
          "%s of %s: %d stores are %s", t->name, dtype, count_logged(word), word);
    y[0] = jot_cast(y[0], JOT_F64);
    y[1] = jot_cast(y[1], JOT_F64);
    for (i = 0; i < jot_nelem(y[0]); i++)
        bad += !(fabs(((const double *)jot_data(y[0]))[i] - ((const double *)jot_data(y[1]))[i])
                 <= 1e-6 * fabs(((const double *)jot_data(y[0]))[i]));
    CHECK(!bad, "%s of %s: %lld elements", t->name, dtype, (long long)bad);
    jot_close(c[0]);
    jot_close(c[1]);
}

int
main(int argc, char **argv)
{
    jot_Config config = {0};
    jot_Ctx *c;

    backend = argc > 1 ? argv[1] : backend;
    config.backend = backend;
    c = jot_open(&config);
    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    for (size_t i = 0; !jot_error(c) && i < sizeof cases / sizeof *cases; i++)
        test_case(&cases[i]);
    jot_close(c);
    return DONE();
}
