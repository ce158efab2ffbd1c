/* tests/test_masks.c - conditions on indices, of which vectors make masks of 32 bits a lane
 * (ccode/emit/lanes.c): the gradient of a column that is taken at a place of 64 bits, also far
 * outside; borders; of data of 32 and of 64 bits. And what is asked before a loop: extremes with a
 * number of the row, NaN in some; rows taken at places of which some are outside. To the bit as the
 * interpreter.
 *
 * Guards: ccode/emit/part.c, ccode/emit/lanes.c, ccode/emit/lanes_memory.c,
 * ccode/lower/unswitch.c. */
#include <math.h>
#include "core.h"
#include "tests/test.h"

enum { ROWS = 9, COLUMNS = 133, MOST = ROWS * (COLUMNS + 7) };

static const int64_t places[] = {0, 31, 32, 132, 133, -1, INT64_MAX, -INT64_MAX, 77};
/* before BORDER: taken at places[kind] */
enum { BORDER = sizeof places / sizeof *places, EXTREMES, TAKEN, KINDS };

static jot_Var
extremes(jot_Var x)
{
    static const float rows[ROWS] = {0, -0.0f, NAN, 2.5f, -NAN, INFINITY, -INFINITY, -1, 3};
    jot_Var r = jot_cast(jot_array(x.ctx, JOT_F32, JOT_SHAPE(ROWS, 1), rows), jot_dtype(x));

    return jot_sub(jot_maximum(r, x), jot_minimum(jot_neg(r), x));
}

static jot_Var
taken(jot_Var x)
{
    static const int64_t at[] = {3, 0, 8, 9, -1, 5, INT64_MAX, 1};
    jot_Var i = jot_array(x.ctx, JOT_I64, JOT_SHAPE(8), at);

    return jot_abs(jot_take(x, i, 0));
}

static jot_Var
graph(jot_Ctx *c, int kind, jot_DType dtype)
{
    static float data[ROWS * COLUMNS];
    jot_Var x, y;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (float)(i * 7919 % 101) / 8 - 6;
    x = jot_cast(jot_array(c, JOT_F32, JOT_SHAPE(ROWS, COLUMNS), data), dtype);
    if (kind == BORDER)
        return jot_sqrt(jot_abs(jot_pad(x, jot_ints(2, (int64_t[]){0, 3}),
                                        jot_ints(2, (int64_t[]){0, 4}), 2)));
    if (kind >= EXTREMES)
        return kind == EXTREMES ? extremes(x) : taken(x);
    y = jot_take(x, jot_array(c, JOT_I64, JOT_SHAPE(1), &places[kind]), 1);
    y = jot_sum(jot_mul(y, y), JOT_ALL_DIMS);
    jot_grad(y, JOT_VARS(x), &y);
    return y;
}

/* The elements of one kind; false: there is no such backend. */
static bool
values(const char *backend, const char *schedule, int kind, jot_DType dtype, double *out)
{
    jot_Config config = {.backend = backend, .schedule = schedule, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    jot_Var y, wide;
    bool ok = jot_error(c) == JOT_OK;

    if (!ok) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return false;
    }
    y = graph(c, kind, dtype);
    CHECK(jot_run(c, jot_vars(1, &y)), "%s, kind %d: %s", backend, kind, jot_message(c));
    wide = jot_cast(y, JOT_F64);
    if (jot_data(wide))
        memcpy(out, jot_data(wide), sizeof *out * (size_t)jot_nelem(wide));
    jot_close(c);
    return true;
}

static void
check(const char *backend, const char *schedule, int kind, jot_DType dtype)
{
    static double want[MOST], got[MOST];

    memset(want, 0, sizeof want);
    memset(got, 0, sizeof got);
    if (!values("interp", NULL, kind, dtype, want) || !values(backend, schedule, kind, dtype, got))
        return;
    CHECK(memcmp(want, got, sizeof want) == 0, "%s, kind %d, %s: other values", backend, kind,
          schedule ? schedule : "default");
}

int
main(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int wide = 0; wide < 2; wide++) {
            jot_DType dtype = wide ? JOT_F64 : JOT_F32;

            check("cc", NULL, kind, dtype);
            if ((kind + wide) % test_many(2, 1) == 0)
                check("cc", "random:1", kind, dtype);
            if ((kind + wide + 1) % test_many(2, 1) == 0)
                check("cc", "random:2", kind, dtype);
            check("tcc", NULL, kind, dtype);
        }
    return DONE();
}
