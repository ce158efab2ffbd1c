/* ops/target.c - the figures that hold where nothing is known, and of fewer vectors than a machine has.
 *
 * Read before: ops/target.h. After: backends/machine.c, which looks at the machine. */
#include "ops/target.h"

JOT_FN void
jot_target_default(Target *target)
{
    static const Target plain = {
        16, 16, false, false, 1,
        { 32 << 10, 256 << 10, 4 << 20, 0 },
        2.4e10,
        { 100e9, 50e9, 25e9, 10e9 },
        10e9, 100e-9, 20e-6, false, ""
    };

    *target = plain;
}

#if defined(__x86_64__) || defined(__i386__)
enum { TARGET_X86 = 1 };
#else
enum { TARGET_X86 = 0 };
#endif

/* Of x86: elsewhere only the machine's own vectors are known. */
typedef struct { const char *name, *march; int nbytes, vectors; bool fma; } TargetVectors;
static const TargetVectors target_vectors[] = {
    { "avx512", "-march=skylake-avx512", 64, 32, true },
    { "avx2", "-march=haswell", 32, 16, true },
    { "sse", "-march=x86-64", 16, 16, false },
};

static const TargetVectors *
target_find(const char *name)
{
    for (size_t i = 0; TARGET_X86 && i < sizeof target_vectors / sizeof target_vectors[0]; i++)
        if (jot_str_eq(target_vectors[i].name, name))
            return &target_vectors[i];
    return NULL;
}

JOT_FN bool
jot_target_narrow(Target *target, const char *name)
{
    const TargetVectors *v = target_find(name);
    double share;

    if (!v)
        return jot_str_eq(name, "native");
    if (v->nbytes > target->vector_nbytes || (v->fma && !target->fma))
        return false;
    share = (double)v->nbytes / target->vector_nbytes * (v->fma == target->fma ? 1 : 0.5);
    target->flops *= share;
    target->bandwidth[LEVEL_L1] *= (double)v->nbytes / target->vector_nbytes;
    target->vector_nbytes = v->nbytes;
    target->vectors = v->vectors;
    target->fma = v->fma;
    target->tiles = false;
    return true;
}

JOT_FN const char *
jot_target_march(const char *name)
{
    const TargetVectors *v = name ? target_find(name) : NULL; /* none was asked for */

    return v ? v->march : NULL;
}
