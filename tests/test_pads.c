/* tests/test_pads.c - small pads against plain loops: rows whose columns lie interleaved, guarded
 * at one end. gcc 12's loop vectoriser read such columns from beside the array; vectors are the
 * emitter's now (ccode/emit/loop.c).
 *
 * Guards: ccode/emit/loop.c. */
#include "core.h"
#include "tests/test.h"
#include <stdlib.h>

static float x[1 << 14];

/* Elements of the padded tensor that are wrong; -1: no result. */
static int
wrong(jot_Ctx *c, const int *shape, int axis, int before, int after)
{
    int64_t b[4] = {0}, a[4] = {0};
    int d[4], n = 1, bad = 0;
    const float *y;

    for (int i = 0; i < 4; i++)
        d[i] = shape[i] + (i == axis ? before + after : 0), n *= d[i];
    b[axis] = before, a[axis] = after;
    y = jot_data(jot_pad(jot_array(c, JOT_F32, JOT_SHAPE(shape[0], shape[1], shape[2], shape[3]), x),
                         jot_ints(4, b), jot_ints(4, a), 0));
    for (int i = 0; y && i < n; i++) {
        int at[4], rest = i;
        float expect = 0;
        for (int k = 3; k >= 0; k--)
            at[k] = rest % d[k], rest /= d[k];
        at[axis] -= before;
        if (at[axis] >= 0 && at[axis] < shape[axis])
            expect = x[((at[0] * shape[1] + at[1]) * shape[2] + at[2]) * shape[3] + at[3]];
        bad += y[i] != expect;
    }
    return y ? bad : -1;
}

static void
check(jot_Ctx *c, const char *target, const int *s, int axis, int before, int after)
{
    int bad;

    jot_push(c);
    bad = wrong(c, s, axis, before, after);
    CHECK(!bad, "%s: (%d, %d, %d, %d) by %d and %d along %d: %d wrong %s", target, s[0], s[1], s[2],
          s[3], before, after, axis, bad, jot_message(c));
    jot_pop(c);
}

int
main(void)
{
    static const int shapes[][4] = {{7, 5, 7, 3}, {5, 7, 5, 3}, {3, 3, 6, 3},
                                    {4, 4, 4, 2}, {2, 8, 8, 3}, {6, 5, 7, 1}};
    static const char *const targets[] = {"native", "avx2", "sse"};

    for (int i = 0; i < 1 << 14; i++)
        x[i] = (float)(i + 1);
    for (int t = 0; t < 3; t++) {
        jot_Config config = {.backend = "cc", .target = targets[t], .cache_dir = ""};
        jot_Ctx *c = jot_open(&config);

        if (jot_error(c))
            SKIP("cc: %s", jot_message(c));
        for (int i = 0; i < 6 && !jot_error(c); i++)
            for (int k = 0; k < 9; k++)
                check(c, targets[t], shapes[i], 2, k / 3, k % 3);
        srand(7);
        for (int i = 0; i < test_many(12, 40) && !jot_error(c); i++) {
            int s[4] = {1 + rand() % 9, 1 + rand() % 9, 1 + rand() % 9, 1 + rand() % 5};
            check(c, targets[t], s, rand() % 4, rand() % 3, rand() % 3);
        }
        jot_close(c);
    }
    return DONE();
}
