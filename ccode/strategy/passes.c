/* ccode/strategy/passes.c - the rewrites of a kernel before it has a schedule, as one list.
 *
 *     built      as the group says it
 *     laid out   buffers have their layouts
 *     products   for strategies of sums of products
 *     loops      for all others: merges of axes, stores of their own, lines
 *
 * Strategies of products come before the last stage, for they find their axes as they were.
 *
 *   requires  a verified kernel       keeps  what is computed
 * Read before: ccode/strategy/strategy.h, ccode/rewrite/rewrite.h. After:
 * ccode/strategy/strategy.c. */
#include "ccode/strategy/strategy.h"
#include "ccode/contract/contract.h"
#include "ccode/rewrite/line_buffer.h"
#include "ccode/rewrite/rewrite.h"

static bool
pass_moments(Kernel *k, const Target *target, unsigned facts)
{
    (void)facts;
    return jot_kernel_moments(k, target);
}

static bool
pass_demanded(Kernel *k, const Target *target, unsigned facts)
{
    (void)facts;
    return jot_kernel_demanded(k, target, true);
}

static bool
pass_demanded_again(Kernel *k, const Target *target, unsigned facts)
{
    (void)facts;
    return jot_kernel_demanded(k, target, false);
}

static bool
pass_lines(Kernel *k, const Target *target, unsigned facts)
{
    (void)target;
    return jot_line_buffers(k, facts & FACT_PLAIN ? LINE_LEAST : 2);
}

typedef struct {
    const char *name;
    PassStage stage;
    unsigned needs;
    bool (*run)(Kernel *k);
    bool (*asks)(Kernel *k, const Target *target, unsigned facts); /* in its place */
} Pass;

static const Pass passes[] = {
    { "argument reductions", PASS_BUILT, 0, jot_kernel_arg_reduce, NULL },
    { "one-hot reductions", PASS_BUILT, 0, jot_kernel_one_hot, NULL },
    { "demanded bits", PASS_BUILT, 0, NULL, pass_demanded },
    { "index narrowing", PASS_BUILT, 0, jot_kernel_narrow, NULL },
    { "moments by blocks", PASS_LAID_OUT, 0, NULL, pass_moments },
    { "residue classes", PASS_PRODUCTS, 0, jot_kernel_residues, NULL },
    { "demanded bits, of sums of products that are no contractions", PASS_LOOPS,
      FACT_HOST | FACT_BEST | FACT_VECTORS, NULL, pass_demanded_again },
    { "words of bytes", PASS_LOOPS, FACT_HOST | FACT_BEST | FACT_VECTORS, jot_words_copied, NULL },
    { "merged axes", PASS_LOOPS, FACT_HOST, jot_merge_axes, NULL },
    { "cleared scatters", PASS_LOOPS, FACT_HOST, jot_kernel_scatters, NULL },
    { "line buffers", PASS_LOOPS, FACT_HOST | FACT_BEST, NULL, pass_lines },
};

JOT_FN bool
jot_passes(Kernel *k, PassStage stage, const Target *target, unsigned facts)
{
    const int n = (int)(sizeof passes / sizeof passes[0]);
    bool ok = true;

    for (int i = 0; ok && i < n; i++)
        if (passes[i].stage == stage && !(passes[i].needs & ~facts))
            ok = passes[i].run ? passes[i].run(k) : passes[i].asks(k, target, facts);
    return ok;
}
