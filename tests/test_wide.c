/* tests/test_wide.c - large element-wise kernels and reindexes of a device take 16 bytes at a time
 * where their elements lie side by side, leave the rest for single items, and come to the
 * interpreter's results; which accesses are wide is asserted from the text. Every dtype, odd sizes,
 * what is shifted, turned, spread or padded.
 *
 *     test_wide [cuda]
 *
 * Guards: ccode/device/emit_device.c, ccode/device/grid.c. */
#include "tests/on_device.h"

enum { N = 4 * 32768 };

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

    return jot_add(jot_slice(x, JOT_INTS(0, 0), JOT_INTS(500, 1024), JOT_INTS(1, 1)),
                   jot_slice(x, JOT_INTS(0, 1), JOT_INTS(500, 1025), JOT_INTS(1, 1)));
}

static jot_Var
padded(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 1020));

    return jot_reindex(x, JOT_SHAPE(500, 1024), JOT_INDEX("i0", "i1-2"));
}

/* More than the items of a launch can be: each takes several, in strides of all of them. */
static jot_Var
long_chain(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(33 * N + 3));

    return jot_add(jot_mul(x, x), x);
}

/* Every other element. */
static jot_Var
long_apart(jot_Ctx *c, jot_DType dtype)
{
    return jot_scale(jot_slice(some(c, dtype, JOT_SHAPE(1001, 2100)), JOT_INTS(0, 0),
                               JOT_INTS(1001, 2100), JOT_INTS(1, 2)), 2);
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
    {"small", small, JOT_F32, 0, 0, 0},
    {"long chain", long_chain, JOT_F32, 1, 1, 4}, {"long and apart", long_apart, JOT_F32, 0, 0, 0},
};

/* ---- launches ----------------------------------------------------------------------------- */

static const Device *driver;
static Launch last;

static bool
noted_launch(Backend *b, jot_Ctx *c, const Launch *l)
{
    last = *l;
    return driver->launch(b, c, l);
}

/* No more groups than 4096, and for what is longer all of these; strides in the text. */
static void
check_launch(const Case *t)
{
    int64_t items = last.groups * last.items;

    CHECK(last.groups <= 4096 && (items >= last.hi || last.groups == 4096),
          "%s: %lld steps in %lld groups of %lld", t->name, (long long)last.hi,
              (long long)last.groups,
          (long long)last.items);
    CHECK(!strncmp(t->name, "long", 4) == (items < last.hi), "%s: %lld steps of %lld items",
          t->name,
          (long long)last.hi, (long long)items);
    CHECK(strstr(logged, " = item; ") && strstr(logged, " += items) {"), "%s: in strides\n%s",
          t->name,
          logged);
}

/* In the schedule: a grid's step of so many, and a vector of them. */
static void
check_schedule(const Case *t)
{
    char word[24];

    snprintf(word, sizeof word, ":%dg ", t->lanes);
    CHECK(t->lanes ? strstr(logged, word) && strstr(logged, ":1v\n") : !strstr(logged, ":1v\n"),
          "%s: '%s' in\n%s", t->name, word, logged);
}

static void
test_case(const Case *t)
{
    jot_Ctx *c[2];
    jot_Var y[2];
    Device noted;
    const char *dtype = jot_dtype_name(t->dtype);
    char word[40];
    int64_t i, bad = 0;

    open_both(c, "sc");
    noted = *(driver = c[1]->backend->device);
    noted.launch = noted_launch;
    noted.replay_begin = NULL;
    c[1]->backend->device = &noted;
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
    check_launch(t);
    check_schedule(t);
    y[0] = jot_cast(y[0], JOT_F64);
    y[1] = jot_cast(y[1], JOT_F64);
    for (i = 0; i < jot_nelem(y[0]); i++)
        bad += !(fabs(((const double *)jot_data(y[0]))[i] - ((const double *)jot_data(y[1]))[i])
                 <= 1e-6 * fabs(((const double *)jot_data(y[0]))[i]));
    CHECK(!bad, "%s of %s: %lld elements", t->name, dtype, (long long)bad);
    close_both(c);
}

int
main(int argc, char **argv)
{
    if (!device_is_here(argc, argv))
        return DONE();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (i < 3 || i > 7 || i == 4 || test_many(0, 1)) /* a dtype of each size */
            test_case(&cases[i]);
    return DONE();
}
