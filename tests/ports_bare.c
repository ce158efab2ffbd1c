/* tests/ports_bare.c - exported networks on a Cortex-M without an operating system or a C library.
 *
 *     reset   data from flash to memory, zeros, the unit for floats -> main -> the host's exit code
 *
 * Weights stay in flash; of memory there are the arenas, the tables that a training step changes,
 * and the stack, which is filled with a word first so that its depth shows. The console is the
 * host's (semihosting). Instructions are counted by the timer where qemu makes each of them a
 * nanosecond (-icount shift=0) and a tick 40 of them.
 *
 * Read before: tests/test_ports.sh, tests/ports_bare.ld. */
#include <stddef.h>
#include <stdint.h>
#define lenet_HEADER
#include "lenet.c"
#define mixed_HEADER
#include "mixed.c"
#define learn_HEADER
#include "learn.c"
#include "cases.h"

enum { TICK = 40, UNUSED = 0x5a5a5a5a, SAY = 4, LEAVE = 0x20, LEFT = 0x20026 };
extern uint32_t stack_end[], stack_top[], data_from[], data_start[], data_end[];
extern uint32_t bss_start[], bss_end[];
void reset(void);
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);

/* ---- what a C library would bring ---------------------------------------------------------- */

void *
memcpy(void *to, const void *from, size_t n)
{
    volatile char *t = to; /* volatile: no compiler makes a call of memcpy of it */
    const char *f = from;

    while (n--)
        *t++ = *f++;
    return to;
}

void *
memset(void *to, int byte, size_t n)
{
    volatile char *t = to;

    while (n--)
        *t++ = (char)byte;
    return to;
}

static void
host(int what, const void *arg)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = arg;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void
say(const char *what, uint32_t number, const char *unit)
{
    char text[12];
    int i = 11;

    text[i] = 0;
    do
        text[--i] = (char)('0' + number % 10);
    while (number /= 10);
    host(SAY, what);
    host(SAY, text + i);
    host(SAY, unit);
}

/* ---- measuring ----------------------------------------------------------------------------- */

static volatile uint32_t *const timer = (volatile uint32_t *)0xE000E010;

static uint32_t
ticks(void)
{
    timer[1] = 0xffffff;
    timer[0] = 5; /* the processor's clock, no interrupt */
    return timer[2];
}

static uint32_t
stack_depth(void)
{
    uint32_t *at = stack_end;

    while (at < stack_top && *at == UNUSED)
        at++;
    return (uint32_t)((char *)stack_top - (char *)at);
}

/* ---- cases --------------------------------------------------------------------------------- */

static uint32_t passed, failed;

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

static void
leave(uint32_t code)
{
    uint32_t block[2] = {LEFT, code};

    host(LEAVE, block);
    for (;;)
        ;
}

static void
fault(void)
{
    host(SAY, "a fault of the processor\n");
    leave(1);
}

void
reset(void)
{
    uint32_t *to, *from = data_from;

    for (to = data_start; to < data_end;)
        *to++ = *from++;
    for (to = bss_start; to < bss_end;)
        *to++ = 0;
    for (to = stack_end; to < (uint32_t *)__builtin_frame_address(0) - 32;)
        *to++ = UNUSED;
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xfu << 20;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
#endif
    all();
    leave(failed != 0);
}

typedef union { void *stack; void (*code)(void); } Vector;
extern const Vector vectors[7];
__attribute__((section(".vectors"), used)) const Vector vectors[7] = {
    {stack_top}, {.code = reset},
    {.code = fault}, {.code = fault}, {.code = fault}, {.code = fault}, {.code = fault}
};
