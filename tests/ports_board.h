/* tests/ports_board.h - what a program needs on a Cortex-M without an operating system or a C library.
 *
 *     reset   data from flash to memory, zeros, the unit for floats -> all -> the host's exit code
 *
 * Who includes it has a function all, which counts in passed and failed. The stack is filled with a
 * word first, so that its depth shows. The console is the host's (semihosting). Instructions are
 * counted by the timer where qemu makes each of them a nanosecond (-icount shift=0) and a tick 40 of
 * them.
 *
 * Read before: tests/test_ports.sh, tests/ports_bare.ld. After: tests/ports_bare.c. */
#ifndef PORTS_BOARD_H
#define PORTS_BOARD_H
#include <stddef.h>
#include <stdint.h>

enum { TICK = 40, UNUSED = 0x5a5a5a5a, SAY = 4, LEAVE = 0x20, LEFT = 0x20026 };
extern uint32_t stack_end[], stack_top[], data_from[], data_start[], data_end[];
extern uint32_t bss_start[], bss_end[];
void reset(void);
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
static uint32_t passed, failed;
static void all(void);

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

#endif
