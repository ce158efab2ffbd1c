/* 08_machine.c - what jot takes this machine for.
 *
 * Groups and schedules are chosen by price, and prices come from these figures: how wide vectors
 * are, what fits a cache, how fast each level is read, what a launch and a sleeping thread cost.
 * They are measured when a context first opens on a machine, in some 20 ms, and kept beside the
 * compiled kernels: the same file, the same schedules.
 *
 * The last line is what they are for: how many multiply-adds a core does while one float comes from
 * memory. A kernel that does less for each float waits for memory. */
#include <stdio.h>
#include "core.h"

static const char *
size(int64_t nbytes, char *text, size_t n)
{
    if (nbytes >= 1 << 20)
        snprintf(text, n, "%lld MB", (long long)(nbytes >> 20));
    else
        snprintf(text, n, "%lld KB", (long long)(nbytes >> 10));
    return text;
}

int
main(void)
{
    static const char *const level[4] = {"L1", "L2", "L3", "memory"};
    jot_Ctx *c = jot_open(NULL);
    jot_Machine m;
    char text[32];

    if (jot_error(c)) {
        fprintf(stderr, "%s\n", jot_message(c));
        jot_close(c);
        return 1;
    }
    m = jot_machine(c);
    printf("%s, %d cores, backend %s (%s); rates are %s\n", m.cpu[0] ? m.cpu : "a processor",
           m.cores, jot_backend(c), jot_compilers(c), m.measured ? "measured" : "estimates");
    if (m.vector_nbytes)
        printf("vectors  %d registers of %d bytes%s\n", m.vectors, m.vector_nbytes,
               m.fma ? ", fused multiply-add" : "");
    printf("peak     %.1f GFLOP/s a core\n", m.flops * 1e-9);
    for (int i = 0; i < 4; i++)
        printf("%-8s %8s %8.1f GB/s a core\n", level[i],
               i < 3 ? size(m.cache_nbytes[i], text, sizeof text) : "", m.bandwidth[i] * 1e-9);
    printf("all      %8s %8.1f GB/s from memory\n", "", m.bandwidth_all * 1e-9);
    printf("launch   %.2f us, a sleeping thread at work after %.1f us\n", m.call * 1e6,
           m.handoff * 1e6);
    printf("balance  %.0f multiply-adds for each float from memory\n",
           m.flops / 2 / (m.bandwidth[3] / 4));
    jot_close(c);
    return 0;
}
