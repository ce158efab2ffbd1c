/* target/target.c - the figures that hold where nothing is known, and of fewer vectors than a
 * machine has.
 *
 * Read before: target/target.h. After: backends/host/machine.c, which looks at the machine. */
#include "target/target.h"

/* bf16: x86's vdpbf16ps, ARM's bfdot. u8i8: x86's vpdpbusd. i8, u8: ARM's sdot, udot. i16: x86's
 * pmaddwd and vpdpwssd, also of bytes, which are widened where they are packed. u7i8: x86's
 * vpmaddubsw, whose sums are shorts: of bytes below 128, which no dtype says of any load. */
#define TARGET_HAS(dtype) (1u << (dtype))
#define TARGET_SHORT (TARGET_HAS(JOT_I8) | TARGET_HAS(JOT_U8) | TARGET_HAS(JOT_I16))
const TargetDot jot_target_dots[DOTS] = {
    { "bf16", TARGET_HAS(JOT_BF16), TARGET_HAS(JOT_BF16), JOT_F32, 2 },
    { "u8i8", TARGET_HAS(JOT_U8), TARGET_HAS(JOT_I8), JOT_I32, 4 },
    { "i8", TARGET_HAS(JOT_I8), TARGET_HAS(JOT_I8), JOT_I32, 4 },
    { "u8", TARGET_HAS(JOT_U8), TARGET_HAS(JOT_U8), JOT_I32, 4 },
    { "i16", TARGET_SHORT, TARGET_SHORT, JOT_I32, 2 },
    { "u7i8", 0, 0, JOT_I32, 4 },
};

JOT_FN void
jot_target_default(Target *target)
{
    static const Target plain = {
        16, 16, 0, 0, false, 1,
        { 32 << 10, 256 << 10, 4 << 20, 0 },
        2.4e10,
        { 100e9, 50e9, 25e9, 10e9 },
        10e9, 100e-9, 20e-6, false, false, 256, 48 << 10, 128, false, false, true, "", 0, NULL
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
    target->matrix = 0;
    target->dots &= 1u << DOT_I16 | (v->fma ? 1u << DOT_U7I8 : 0); /* all of these have them */
    return true;
}

/* 2 to the power of something between -bits and bits. */
static double
target_factor(uint64_t hash, int bits)
{
    static const double root[4] = { 1, 1.189207, 1.414214, 1.681793 };
    double f = root[hash % 4];
    int power = (int)(hash / 4 % (uint64_t)(2 * bits)) - bits;

    for (; power > 0; power--)
        f *= 2;
    for (; power < 0; power++)
        f /= 2;
    return f;
}

JOT_FN void
jot_target_draw(Target *t, uint64_t seed)
{
    static const int64_t least[LEVELS - 1] = { 1 << 10, 4 << 10, 64 << 10 };
    uint64_t h = jot_hash_u64(seed, 1);
    int i, widest = t->vector_nbytes;
    uint32_t dots = t->dots, matrix = t->matrix;
    bool fma = t->fma, blocks = t->blocks;

    jot_target_default(t);
    t->fma = fma;
    t->blocks = blocks;
    t->matrix = jot_hash_u64(seed, 15) & 1 ? matrix : 0;
    t->dots = jot_hash_u64(seed, 19) & 1 ? dots : 0;
    t->drawn = jot_hash_u64(seed, 0) | 1;
    for (t->vector_nbytes = 16; t->vector_nbytes < widest && h & 1; h /= 2)
        t->vector_nbytes *= 2;
    if (t->vector_nbytes > widest)
        t->vector_nbytes = widest;
    t->vectors = 8 << jot_hash_u64(seed, 2) % 3;
    t->cores = 1 + (int)(jot_hash_u64(seed, 3) % 16);
    for (i = 0; i < LEVELS - 1; i++)
        t->cache_nbytes[i] = least[i] << jot_hash_u64(seed, 4 + (uint64_t)i) % 8;
    for (i = 0; i < LEVELS; i++)
        t->bandwidth[i] *= target_factor(jot_hash_u64(seed, 8 + (uint64_t)i), 4);
    t->bandwidth_all = t->bandwidth[LEVEL_MEMORY] * (1 + t->cores / 4.0);
    t->flops *= target_factor(jot_hash_u64(seed, 12), 4);
    t->call *= target_factor(jot_hash_u64(seed, 13), 8);
    t->handoff *= target_factor(jot_hash_u64(seed, 14), 8);
    t->group >>= jot_hash_u64(seed, 16) % 6;
    t->group_nbytes >>= jot_hash_u64(seed, 17) % 4;
    t->busy >>= jot_hash_u64(seed, 18) % 8;
}

JOT_FN double
jot_target_price(const Target *t, uint64_t what, double price)
{
    return t->drawn ? price * target_factor(jot_hash_u64(t->drawn, what), 4) : price;
}

JOT_FN double
jot_target_least(const Target *t, double work)
{
    return t->drawn ? work / (double)(1 + jot_hash_u64(t->drawn, 1000) % 256) : work;
}

JOT_FN const char *
jot_target_march(const char *name)
{
    const TargetVectors *v = name ? target_find(name) : NULL; /* none was asked for */

    return v ? v->march : NULL;
}
