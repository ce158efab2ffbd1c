/* backends/host/machine.c - what the host finds out about its machine: vectors, cores, caches;
 * rates.
 *
 *     detect      what the processor and the system say; rates follow from a clock of 2.5 GHz and
 *                 two vector units, near enough to rank schedules by
 *     look up     the rates measured on this machine, from a file beside the compiled kernels
 *     measure     once, when there is no such file: backends/host/probe.c; where code of a first
 *                 tier runs meanwhile, not before the first results are out (plan/tier/rates.c)
 *
 *     ~/.cache/jot/machine-5d0c1b8e2f3a4967     named by a hash of its first line
 *         jot machine 2: Intel(R) Xeon(R) Processor, 2 cores, 64 bytes x 32 fma, caches 49152 ...
 *         flops 186000 bandwidth 290000 81000 12000 11000 all 23000 call 100 handoff 31000 check ..
 *
 * in Mflop/s, MB/s and ns: whole numbers, which read the same everywhere; a hash of all before it.
 * Prices, and so schedules and compiled kernels, follow from this file: it is written once and then
 * stays; remove it to measure again. Without a cache directory nothing is measured: two runs would
 * not agree.
 *
 * Read before: target/target.h. After: backends/host/probe.c, core.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef JOT_NO_HOST
#include "backends/host/host.h"
#include "target/thresholds.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__) && defined(__GNUC__) && !defined(__TINYC__) && defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* ---- detection ---------------------------------------------------------------------------- */

/* Vectors that compute as the scalars do: of 32-bit ARM's NEON they do not, it has no subnormal
 * numbers, and of other processors we know none. Those are scalar machines. */
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
#elif !defined(__x86_64__) && !defined(__i386__)
    t->vector_nbytes = 0;
#ifdef __FP_FAST_FMAF
    t->fma = true;
#endif
#endif
}

/* As a clock of FIGURE_HZ_LEAST and two units have it; no level is faster than the one before. */
static void
machine_guess(Target *t)
{
    int wide = t->vector_nbytes ? t->vector_nbytes : 8;

    t->flops = 2 * 2 * FIGURE_HZ_LEAST * (t->vector_nbytes ? wide / 4 : 1);
    t->bandwidth[LEVEL_L1] = 2 * FIGURE_HZ_LEAST * wide;
    t->bandwidth[LEVEL_L2] = FIGURE_HZ_LEAST * wide / 2;
    for (int i = 1; i < LEVELS; i++)
        if (t->bandwidth[i] > t->bandwidth[i - 1])
            t->bandwidth[i] = t->bandwidth[i - 1];
}

/* The state of tiles is large: Linux lets only those processes use them that have asked. */
static uint32_t
machine_matrix(void)
{
    uint32_t rows = 0;
#if defined(__linux__) && defined(__GNUC__) && !defined(__TINYC__) && defined(__x86_64__)
    enum { REQUEST_STATE = 0x1023, TILE_STATE = 18 };
    unsigned a, b, c, d = 0;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        d = 0;
    if (d >> 22 & 1)
        rows |= 1u << DOT_BF16;
    if (d >> 25 & 1)
        rows |= 1u << DOT_U8I8 | 1u << DOT_I8 | 1u << DOT_U8;
    if (!rows || !(d >> 24 & 1) || syscall(SYS_arch_prctl, REQUEST_STATE, TILE_STATE))
        rows = 0;
#endif
    return rows;
}

/* Its dot products, where all of its vectors have them and they are faster than plain ones: Intel's
 * vdpbf16ps keeps a port for two cycles, in which the two for floats do as many products twice. */
static uint32_t
machine_dots(const Target *t)
{
    uint32_t dots = 0;
#if defined(__GNUC__) && !defined(__TINYC__) && defined(__x86_64__)
    unsigned a, b, c, d;

    if (t->vector_nbytes == 64 && !__builtin_cpu_is("intel")
        && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1))
        dots |= 1u << DOT_BF16;
    if (t->vector_nbytes == 64 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 11 & 1))
        dots |= 1u << DOT_U8I8;
    if (t->vector_nbytes == 32 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1))
        dots |= 1u << DOT_U8I8;
    if (t->vector_nbytes)
        dots |= 1u << DOT_I16;
    if (t->vector_nbytes >= 32)
        dots |= 1u << DOT_U7I8;
#elif defined(__linux__) && defined(__aarch64__)
    enum { HWCAP_FIRST = 16, HWCAP_DOT = 1 << 20, HWCAP_SECOND = 26, HWCAP_BF16 = 1 << 14 };

    if (t->vector_nbytes && getauxval(HWCAP_FIRST) & HWCAP_DOT)
        dots |= 1u << DOT_I8 | 1u << DOT_U8;
    if (t->vector_nbytes && getauxval(HWCAP_SECOND) & HWCAP_BF16)
        dots |= 1u << DOT_BF16;
#endif
    (void)t;
    return dots;
}

/* A file's first line into text, without its end; false: there is no such file. */
static bool
machine_line(const char *path, char *text, int nbytes)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(text, nbytes, f);

    if (ok)
        text[strcspn(text, "\n")] = 0;
    if (f)
        fclose(f);
    return ok;
}

/* The caches that Linux lists for the first processor: what the C library does not know of ARM's,
 * nor any but glibc of anybody's. */
static void
machine_listed(int64_t nbytes[LEVELS])
{
    static const char folder[] = "/sys/devices/system/cpu/cpu0/cache/index";
    char path[100], type[20], level[20], size[20], *unit;
    int i;

    for (i = 0; i < 8; i++) {
        long long n;
        int at;

        snprintf(path, sizeof path, "%s%d/type", folder, i);
        if (!machine_line(path, type, sizeof type) || !strcmp(type, "Instruction"))
            continue;
        snprintf(path, sizeof path, "%s%d/level", folder, i);
        at = machine_line(path, level, sizeof level) ? atoi(level) : 0;
        snprintf(path, sizeof path, "%s%d/size", folder, i);
        if (at < 1 || at > 3 || !machine_line(path, size, sizeof size))
            continue;
        n = strtoll(size, &unit, 10);
        nbytes[at - 1] = n << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
    }
}

static void
machine_caches(Target *t)
{
    int64_t nbytes[LEVELS] = {0};
#ifdef _SC_LEVEL1_DCACHE_SIZE
    static const int name[] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                _SC_LEVEL3_CACHE_SIZE };

    for (int i = 0; i < 3; i++)
        nbytes[i] = sysconf(name[i]);
#endif
    if (nbytes[LEVEL_L1] <= 0)
        machine_listed(nbytes);
    for (int i = 0; i < 3; i++)
        if (nbytes[i] > 0)
            t->cache_nbytes[i] = nbytes[i];
    if (nbytes[LEVEL_L2] > 0 && nbytes[LEVEL_L3] <= 0) /* the second is the last */
        t->cache_nbytes[LEVEL_L3] = nbytes[LEVEL_L2];
}

/* Those that this process may run on. */
static int
machine_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
    cpu_set_t set;

    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
        cores = CPU_COUNT(&set);
#endif
    return cores > 0 ? (int)cores : 1;
}

/* What stands behind a word at the beginning of a line, and its length. */
static const char *
machine_word(const char *text, const char *word, size_t *n)
{
    while (text) {
        const char *at = text + strlen(word);

        if (!strncmp(text, word, strlen(word)) && (at += strspn(at, " \t"), *at == ':')) {
            at += 1 + strspn(at + 1, " \t");
            *n = strcspn(at, "\n");
            return at;
        }
        if ((text = strchr(text, '\n')) != NULL)
            text++;
    }
    return NULL;
}

/* Maker and part by numbers on ARM, a name on x86, the design or what it knows on RISC-V, the
 * machine's numbers on s390: whatever tells processors apart. */
JOT_FN void
jot_machine_name(const char *cpuinfo, char *name, size_t nbytes)
{
    static const char *const words[][2] = {
        { "CPU implementer", "CPU part" }, { "model name", "" }, { "uarch", "" }, { "isa", "" },
        { "processor 0", "" }
    };
    const char *first = NULL, *second;
    size_t n = 0, more = 0;

    for (size_t i = 0; !first && i < sizeof words / sizeof *words; i++) {
        first = machine_word(cpuinfo, words[i][0], &n);
        second = first && words[i][1][0] ? machine_word(cpuinfo, words[i][1], &more) : NULL;
        if (first)
            snprintf(name, nbytes, "%.*s%s%.*s", (int)n, first, second ? " " : "",
                     second ? (int)more : 0, second ? second : "");
    }
    if (!first)
        name[0] = 0;
}

static void
machine_cpu(Target *t)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char text[8192];
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

    text[n] = 0;
    jot_machine_name(text, t->cpu, sizeof t->cpu);
    if (f)
        fclose(f);
}

JOT_FN void
jot_machine_detect(Target *target)
{
    target->cores = machine_cores();
    machine_vectors(target);
    machine_guess(target);
    target->matrix = machine_matrix();
    target->dots = machine_dots(target);
    machine_caches(target);
    machine_cpu(target);
    target->bandwidth_all = target->bandwidth[LEVEL_MEMORY] * (target->cores > 1 ? 2 : 1);
}

/* ---- the file ----------------------------------------------------------------------------- */

enum { MACHINE_RATES = LEVELS + 4, MACHINE_MOST = 4096 };

/* The rates as whole numbers, in the order of the file. */
static void
machine_rates(Target *t, const char **word, double **rate, double *unit)
{
    static const char *const words[MACHINE_RATES] = {
        "flops", "bandwidth", "", "", "", "all", "call", "handoff"
    };
    int n = 0;

    rate[n++] = &t->flops;
    for (int i = 0; i < LEVELS; i++)
        rate[n++] = &t->bandwidth[i];
    rate[n++] = &t->bandwidth_all;
    rate[n++] = &t->call;
    rate[n++] = &t->handoff;
    for (int i = 0; i < MACHINE_RATES; i++) {
        word[i] = words[i];
        unit[i] = i < MACHINE_RATES - 2 ? 1e6 : 1e-9;
    }
}

static void
machine_head(const Target *t, char *line, size_t nbytes)
{
    snprintf(line, nbytes, "jot machine 2: %s, %d cores, %d bytes x %d%s, caches %lld %lld %lld\n",
             t->cpu, t->cores, t->vector_nbytes, t->vectors, t->fma ? " fma" : "",
             (long long)t->cache_nbytes[0], (long long)t->cache_nbytes[1],
             (long long)t->cache_nbytes[2]);
}

/* The end of the file: a hash of what stands before it, so that no digit changes unseen. */
static size_t
machine_check(const char *text, size_t n, char *to, size_t nbytes)
{
    return (size_t)snprintf(to, nbytes, " check %016llx\n",
                            (unsigned long long)jot_hash(1, text, n));
}

static int
machine_text(Target *t, char *text, size_t nbytes)
{
    const char *word[MACHINE_RATES];
    double *rate[MACHINE_RATES], unit[MACHINE_RATES];
    size_t n;

    machine_rates(t, word, rate, unit);
    machine_head(t, text, nbytes);
    n = strlen(text);
    for (int i = 0; i < MACHINE_RATES && n < nbytes; i++)
        n += (size_t)snprintf(text + n, nbytes - n, "%s%s%s%.0f", i ? " " : "", word[i],
                              word[i][0] ? " " : "", *rate[i] / unit[i]);
    if (n < nbytes)
        n += machine_check(text, n, text + n, nbytes - n);
    return n < nbytes ? (int)n : 0;
}

/* The rates out of a file's text into *t; false, and *t as it was: another machine's, or damaged.
 */
static bool
machine_parse(Target *t, const char *text)
{
    const char *word[MACHINE_RATES];
    double *rate[MACHINE_RATES], unit[MACHINE_RATES];
    Target found = *t;
    const char *start = text;
    char head[256], check[64], *end;

    machine_head(t, head, sizeof head);
    if (strncmp(text, head, strlen(head)))
        return false;
    text += strlen(head);
    machine_rates(&found, word, rate, unit);
    for (int i = 0; i < MACHINE_RATES; i++) {
        long long number;

        text += strspn(text, " ");
        if (strncmp(text, word[i], strlen(word[i])))
            return false;
        text += strlen(word[i]);
        number = strtoll(text, &end, 10);
        if (end == text || number < 1 || number > 1000000000000)
            return false;
        *rate[i] = (double)number * unit[i];
        text = end;
    }
    machine_check(start, (size_t)(text - start), check, sizeof check);
    if (strcmp(text, check))
        return false;
    *t = found;
    return true;
}

JOT_FN void
jot_machine_look_up(Cache *cache, jot_Ctx *ctx, bool later)
{
    char text[MACHINE_MOST], head[256], name[40];
    Target measured = ctx->target;
    Bytes file;
    bool found = false;

    ctx->target.late = false;
    if (cache->fd < 0 || ctx->target.drawn || jot_target_march(ctx->config.target))
        /* measured are the machine's own */
        return;
    machine_head(&ctx->target, head, sizeof head);
    snprintf(name, sizeof name, "machine-%016llx",
             (unsigned long long)jot_hash(1, head, strlen(head)));
    if (jot_cache_read(cache, ctx, name, &file)) {
        found = file.n < MACHINE_MOST && machine_parse(&measured, file.p);
        if (!found && !later)
            jot_host_log(ctx, "jot: %s/%s is damaged: measuring again\n", cache->dir, name);
        jot_bytes_free(ctx, &file);
    }
    if (!found && later) {
        ctx->target.late = true;
        return;
    }
    if (!found && jot_machine_measure(&measured)) {
        file.p = text;
        file.n = (size_t)machine_text(&measured, text, sizeof text);
        found = file.n && machine_parse(&measured, text); /* as the next process will read it */
        if (found)
            jot_cache_write(cache, ctx, name, file);
    }
    if (found)
        ctx->target = measured;
    ctx->target.measured = found;
}
#endif
