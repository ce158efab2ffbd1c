/* backends/machine.c - what the host finds out about its machine: vectors, cores, caches.
 *
 * Nothing is measured here: the figures that are rates follow from what is detected (a clock of
 * 2.5 GHz, two vector units), which is near enough to rank schedules by.
 *
 * Read before: ops/target.h. After: core.c. */
#ifndef JOT_NO_HOST
#include "backends/host.h"
#include <unistd.h>

#define MACHINE_HZ 2.5e9

static void
machine_vectors(Target *t)
{
#if defined(__GNUC__) && !defined(__TINYC__) && (defined(__x86_64__) || defined(__i386__))
    __builtin_cpu_init();
    t->fma = __builtin_cpu_supports("fma");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl")) {
        t->vector_nbytes = 64;
        t->vectors = 32;
    } else if (__builtin_cpu_supports("avx2"))
        t->vector_nbytes = 32;
#elif defined(__aarch64__)
    t->fma = true;
    t->vectors = 32;
#endif
    t->flops = 2 * 2 * MACHINE_HZ * t->vector_nbytes / 4;
    t->bandwidth[LEVEL_L1] = 2 * MACHINE_HZ * t->vector_nbytes;
    t->bandwidth[LEVEL_L2] = MACHINE_HZ * t->vector_nbytes / 2;
}

static void
machine_caches(Target *t)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    static const int name[] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                _SC_LEVEL3_CACHE_SIZE };

    for (int i = 0; i < 3; i++) {
        long nbytes = sysconf(name[i]);
        if (nbytes > 0)
            t->cache_nbytes[i] = nbytes;
    }
#endif
}

JOT_FN void
jot_machine_detect(Target *target)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    target->cores = cores > 0 ? (int)cores : 1;
    machine_vectors(target);
    machine_caches(target);
    target->bandwidth_all = target->bandwidth[LEVEL_MEMORY] * (target->cores > 1 ? 2 : 1);
}
#undef MACHINE_HZ
#endif
