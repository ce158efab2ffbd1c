/* tests/ports_bare.c - exported networks on a Cortex-M. Weights stay in flash; of memory there are the
 * arenas, the tables that a training step changes, and the stack.
 *
 * Read before: tests/ports_board.h. */
#include "tests/ports_board.h"
#define lenet_HEADER
#include "lenet.c"
#define mixed_HEADER
#include "mixed.c"
#define learn_HEADER
#include "learn.c"
#include "cases.h"

/* ---- cases --------------------------------------------------------------------------------- */

/* Within what two orders of a sum and a fused multiply-add may differ by. */
static void
check(const char *what, const float *got, const unsigned *want, int n)
{
    for (int i = 0; i < n; i++) {
        float w, d, size;

        memcpy(&w, &want[i], sizeof w);
        d = got[i] > w ? got[i] - w : w - got[i];
        size = w < 0 ? 1 - w : 1 + w;
        if (d <= 1e-5f * size) {
            passed++;
        } else {
            failed++;
            say(what, (uint32_t)i, " differs\n");
        }
    }
}

static int
most(const float *x, int n)
{
    int at = 0;

    for (int i = 1; i < n; i++)
        at = x[i] > x[at] ? i : at;
    return at;
}

static uint32_t
run_lenet(void)
{
    static double arena[lenet_ARENA / 8];
    uint32_t took = 0;

    for (unsigned k = 0; k < sizeof lenet_in / sizeof lenet_in[0]; k++) {
        float out[10], want[10];
        uint32_t start = ticks();

        lenet(arena, (const float *)(const void *)lenet_in[k], out);
        took = (start - timer[2]) & 0xffffff;
        check("lenet, score ", out, lenet_out[k], 10);
        memcpy(want, lenet_out[k], sizeof want);
        passed += most(out, 10) == most(want, 10);
        failed += most(out, 10) != most(want, 10);
    }
    return took * TICK;
}

static void
run_others(void)
{
    static union { double all[mixed_ARENA / 8], less[learn_ARENA / 8]; } room;
    void *arena = &room;

    for (unsigned k = 0; k < sizeof mixed_in / sizeof mixed_in[0]; k++) {
        float out[12];
        int place = -1;

        mixed(arena, (const float *)(const void *)mixed_in[k], out, &place);
        check("mixed, share ", out, mixed_out[k], 12);
        passed += place == most(out, 12);
        failed += place != most(out, 12);
    }
    for (unsigned k = 0; k < sizeof learn_in / sizeof learn_in[0]; k++) {
        float loss;

        learn(arena, (const float *)(const void *)learn_in[k], &loss);
        check("learn, loss ", &loss, learn_out[k], 1);
    }
}

static void
all(void)
{
    uint32_t took = run_lenet(), depth = stack_depth();

    say("lenet: ", took, " instructions, ");
    say("arena ", lenet_ARENA, " bytes, ");
    say("stack ", depth, " bytes\n");
    run_others();
    say("", passed, " passed, ");
    say("", failed, " failed\n");
}
