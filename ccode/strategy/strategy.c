/* ccode/strategy/strategy.c - the strategies: a table, asked from the top.
 *
 *     kernel -> facts -> each row that they allow: its rewrites, then does it make one -> Sched
 *
 * The first row that makes a schedule has the kernel, unless it is one that is weighed (`sure`), as
 * the best tier's are on a host: then rows below are asked, too, down to one that is not, or until
 * none can be cheaper, and the price of the finished schedules decides
 * (ccode/strategy/estimate.c). To add one, write a maker and its row: docs/extend.md.
 * JOT_DUMP=r prints, for each kernel, every row's price or why it refused, and which was taken.
 *
 *   requires  a verified kernel in its layouts       breaks  it is rewritten for its schedule
 * Read before: ccode/strategy/passes.c. After: the maker of a row: ccode/contract/sched.c for
 * products and convolutions, ccode/schedule/choose.c for loops; plan/text.c. */
#include "ccode/strategy/strategy.h"
#include "ccode/build/build.h"
#include "ccode/contract/chain.h"
#include "ccode/schedule/transpose.h"
#include "ccode/stencil/stencil.h"
#include "target/choice.h"
#include "target/thresholds.h"

/* ---- lanes -------------------------------------------------------------------------------- */

JOT_FN int
jot_schedule_lanes(const Wanted *want, int dtype)
{
    int lanes = want->config->lanes;

    if (!lanes && want->dialect->vectors)
        lanes = want->target->vector_nbytes / (int)jot_dtype_nbytes((jot_DType)dtype);
    return lanes > 1 ? lanes : 1;
}

static int
ask_lanes(const Ask *a, int dtype)
{
    return a->want->quick ? 1 : jot_schedule_lanes(a->want, dtype);
}

/* ... of the widest sums. */
static int
ask_sum_lanes(const Ask *a)
{
    int dtype = JOT_F32;

    for (uint32_t i = 1; i < a->k->values.n; i++)
        if (a->k->values.v[i].op == VAL_REDUCE && a->k->values.v[i].dtype == JOT_F64)
            dtype = JOT_F64;
    return ask_lanes(a, dtype);
}

/* ---- makers that need more than a schedule to fill ------------------------------------------ */

static bool
strategy_own(Ask *a)
{
    Winograd w = *a->want->own->w;

    w.lanes = ask_lanes(a, JOT_F32); /* U stays in panels of the best tier's */
    return a->want->own->make(a->s, a->k, &w, a->why);
}

/* What sums of products it is, to all rows that ask. */
static const Products *
ask_products(Ask *a)
{
    if (!a->products)
        a->products = a->want->products;
    if (!a->products || !jot_products_hold(a->products, a->k)) {
        (void)jot_products_find(a->k, &a->own);
        a->products = &a->own;
    }
    return a->products;
}

/* The one product; NULL, and a reason: there is no such. */
static const Contract *
ask_product(Ask *a)
{
    const Products *p = ask_products(a);

    if (p->form == PRODUCTS_ONE)
        return &p->of;
    jot_sched_no(a->s, p->of.reduce ? "not one sum alone, of two factors that each lack an axis of "
                                      "the other"
                                    : "it sums nothing up");
    return NULL;
}

static bool
make_contract(Ask *a, const Contract *c, Epilogue *sums)
{
    return jot_contract_sched(a->s, a->k, c, &a->target,
                              ask_lanes(a, a->k->values.v[c->reduce].dtype), sums);
}

/* The block may divide an axis, which the contraction is found with anew. */
static bool
make_epilogue(Ask *a)
{
    const Products *p = ask_products(a);
    Epilogue sums = p->sums;
    Contract c = p->of;
    int64_t by;
    int at;

    if (p->form != PRODUCTS_EPILOGUE)
        return jot_sched_no(a->s, "no sums of a product's results over all its rows");
    jot_epilogue_take(a->k, &sums);
    if (!jot_epilogue_block(a->k, &a->target, &sums, true, &at, &by))
        return false;
    jot_epilogue_detach(a->k, &sums, true);
    if ((jot_products_hold(p, a->k) || jot_contract_find(a->k, c.reduce, &c))
        && make_contract(a, &c, &sums))
        return true;
    jot_epilogue_detach(a->k, &sums, false);
    return false;
}

static bool
make_weight(Ask *a)
{
    const Contract *c = ask_product(a);

    return c && jot_winograd_weight(a->s, a->k, c, &a->target, ask_lanes(a, JOT_F32));
}

static bool
make_blocks(Ask *a)
{
    const Contract *c = ask_product(a);

    return c && make_contract(a, c, NULL);
}

static bool
make_tiles(Ask *a)
{
    MatrixUse matrix = !a->want->dialect->device->matrix                 ? MATRIX_NONE
                     : jot_str_eq(a->want->config->precision, "tf32") ? MATRIX_TF32 : MATRIX_HALVES;
    const Contract *c = ask_product(a);
    Kernel was;

    return c
        && jot_sched_settle(a->s, a->k, &was, jot_kernel_copy(&was, a->k)
                                                  && jot_contract_grid(a->s, a->k, c, &a->target,
                                                                       matrix));
}

static bool
make_chain(Ask *a)
{
    return ask_products(a)->form == PRODUCTS_EPILOGUE
               ? jot_sched_no(a->s, "its sums are an epilogue's")
               : jot_chain_sched(a->s, a->k, &a->target, ask_sum_lanes(a));
}

/* Lanes of the widest that is computed. */
static bool
make_running(Ask *a)
{
    int dtype = JOT_F32;

    for (uint32_t i = 1; i < a->k->values.n; i++) {
        const Value *v = &a->k->values.v[i];

        if (v->op != VAL_INDEX && jot_dtype_nbytes((jot_DType)v->dtype) == 8)
            dtype = JOT_F64;
    }
    return jot_running_sched(a->s, a->k, a->facts & FACT_HOST ? ask_lanes(a, dtype) : 1,
                             a->facts & FACT_DEVICE);
}

static bool
make_random(Ask *a)
{
    return jot_sched_random(a->s, a->k, a->lanes ? a->lanes : 1, a->want->seed);
}

static bool
make_grid(Ask *a)
{
    return jot_sched_grid(a->s, a->k, &a->target);
}

static bool
make_priced(Ask *a)
{
    int order[KERNEL_AXES], n = jot_build_order_outer(a->k, order);

    return jot_sched_choose(a->s, a->k, &a->target, n, order)
        && jot_sched_collect(a->s, &a->target);
}

static bool
make_ruled(Ask *a)
{
    int order[KERNEL_AXES];
    int n = a->lanes ? jot_build_order(a->k, order) : jot_build_order_outer(a->k, order);

    return jot_sched_default(a->s, a->k, a->facts & FACT_HOST && a->lanes ? a->lanes : 1, n,
                             order);
}

/* ---- the table ------------------------------------------------------------------------------ */

enum {
    BEST = FACT_PLAIN | FACT_BEST,
    PRODUCT = FACT_PLAIN | FACT_LARGE,
    CPU_PRODUCT = PRODUCT | FACT_HOST,
    VECTORS_BEST = BEST | FACT_VECTORS
};
typedef struct {
    const char *name;
    unsigned needs;         /* Facts */
    PassStage after;        /* rewrites that it wants, behind those of the layouts */
    unsigned drawn;         /* the number of the choice to ask it at all, which only a drawn machine
                               may be against (target/choice.h); 0: it is asked */
    int sure;               /* percent: a row below has the kernel where its price is less than this
                               share of that; 0: none is asked */
    bool (*makes)(Ask *a);
    bool (*floats)(Sched *s, Kernel *k, const Target *target, int lanes); /* in its place: all that
                               it asks for is the machine, and how many lanes floats have */
} Strategy;

static const Strategy strategies[] = {
    { "Winograd", FACT_OWN, PASS_LAID_OUT, 0, 0, strategy_own, NULL },
    { "running reductions", FACT_PLAIN, PASS_LAID_OUT, 0, 0, make_running, NULL },
    { "epilogue reductions", CPU_PRODUCT | BEST, PASS_PRODUCTS, CHOICE_PRODUCT, STRATEGY_SURE,
      make_epilogue, NULL },
    { "Winograd by weight", CPU_PRODUCT | BEST | FACT_INEXACT, PASS_PRODUCTS, CHOICE_PRODUCT, 100,
      make_weight, NULL },
    { "scaled sums of bytes", CPU_PRODUCT | VECTORS_BEST | FACT_FREE, PASS_LAID_OUT,
      CHOICE_PRODUCT, 0, NULL, jot_scaled_sched },
    { "contraction on a device", PRODUCT | BEST | FACT_DEVICE, PASS_PRODUCTS, CHOICE_PRODUCT, 0,
      make_tiles, NULL },
    { "contraction in blocks", CPU_PRODUCT, PASS_PRODUCTS, CHOICE_PRODUCT, STRATEGY_SURE,
      make_blocks, NULL },
    { "producer / consumer tiles", CPU_PRODUCT | BEST, PASS_PRODUCTS, CHOICE_PRODUCT, STRATEGY_SURE,
      make_chain, NULL },
    { "stencil, channels in lanes", VECTORS_BEST, PASS_LAID_OUT, 0, STRATEGY_SURE, NULL,
      jot_stencil_sched },
    { "stencil over planes", VECTORS_BEST, PASS_LAID_OUT, 0, STRATEGY_SURE, NULL, jot_plane_sched },
    { "rows by a vector", VECTORS_BEST | FACT_FREE, PASS_LAID_OUT, 0, STRATEGY_SURE, NULL,
      jot_rows_sched },
    { "register transpose", VECTORS_BEST | FACT_FREE, PASS_LOOPS, 0, STRATEGY_SURE,
      NULL, jot_transpose_sched },
    { "random", FACT_DRAWN, PASS_LOOPS, 0, 0, make_random, NULL },
    { "grid of a device", FACT_PLAIN | FACT_DEVICE, PASS_LOOPS, 0, 0, make_grid, NULL },
    { "loops by price", BEST | FACT_HOST | FACT_FREE, PASS_LOOPS, 0, 0, make_priced, NULL },
    { "loops by rule", FACT_PLAIN, PASS_LOOPS, 0, 0, make_ruled, NULL },
};

/* ---- asking --------------------------------------------------------------------------------- */

static bool
ask_large(const Ask *a)
{
    double points = jot_kernel_points(a->k, UINT64_MAX);

    return a->want->quick ? a->want->first && points >= STRATEGY_QUICK
                          : points >= jot_target_least(a->want->target, STRATEGY_LEAST);
}

static unsigned
ask_facts(const Ask *a)
{
    const Wanted *w = a->want;

    if (w->own)
        return FACT_OWN;
    return (w->plain ? FACT_PLAIN : FACT_DRAWN) | (w->dialect->device ? FACT_DEVICE : FACT_HOST)
         | (w->quick ? 0u : FACT_BEST) | (w->dialect->vectors ? FACT_VECTORS : 0u)
         | (a->lanes ? 0u : FACT_FREE) | (ask_large(a) ? FACT_LARGE : 0u)
         | (jot_str_eq(w->config->precision, "exact") ? 0u : FACT_INEXACT);
}

static void
ask_open(Ask *a, Sched *s, Kernel *k, const Wanted *want, Text *why)
{
    memset(a, 0, sizeof *a);
    memset(s, 0, sizeof *s);
    a->want = want;
    a->s = s;
    a->k = k;
    a->why = why;
    a->lanes = want->quick ? 1 : want->config->lanes;
    a->target = *want->target;
    if (want->quick) {
        a->target.vector_nbytes = 0;
        a->target.fma = false;
    }
    if (want->quick || !want->dialect->vectors)
        a->target.matrix = 0;
    a->facts = ask_facts(a);
}

/* What is missing that the row needs. */
static const char *
ask_lacks(const Ask *a, unsigned lacks)
{
    static const char *const text[] = {
        "no product", "schedules are drawn", "schedules are not drawn", "it is for a device",
        "it is not for a device", "the quick tier", "no vectors", "lanes are given",
        "too few points", "sums are to be exact"
    };
    int i = 0;

    while (!(lacks >> i & 1))
        i++;
    return i == 0 && a->want->no_own ? a->want->no_own : text[i];
}

static bool
ask_dice(const Ask *a, const Strategy *row)
{
    const Target *t = a->want->target;

    return !row->drawn || jot_target_price(t, row->drawn, 1) <= 1;
}

/* NULL: it has made a schedule. done: stages of rewrites that were. */
static const char *
asked_row(Ask *a, const Strategy *row, unsigned *done)
{
    if (row->needs & ~a->facts)
        return ask_lacks(a, row->needs & ~a->facts);
    if (!ask_dice(a, row))
        return "a choice against it";
    if (row->after > PASS_LAID_OUT && !(*done >> row->after & 1)
        && !jot_passes(a->k, row->after, a->want->target, a->facts))
        return "out of memory";
    *done |= 1u << row->after;
    memset(a->s, 0, sizeof *a->s);
    if (row->makes ? row->makes(a)
                   : row->floats(a->s, a->k, &a->target, ask_lanes(a, JOT_F32)))
        return NULL;
    jot_sched_close(a->s);
    return a->s->no ? a->s->no : "what it makes is not legal";
}

enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

/* A copy of the kernel as it was, but for what rows above this one have rewritten, to ask the row
 * with; what is made already stays. */
typedef struct { Ask ask; Kernel k; Sched s; unsigned done; bool open; } Beside;

static bool
beside_open(Beside *b, const Ask *a, const Kernel *was, int row)
{
    b->open = true;
    b->ask = *a;
    b->ask.k = &b->k;
    b->ask.s = &b->s;
    b->ask.products = NULL;
    b->done = 0;
    memset(&b->s, 0, sizeof b->s);
    (void)jot_kernel_copy(&b->k, was);
    for (int i = 0; i < row && !b->k.mem->failed; i++)
        if (!(strategies[i].needs & ~a->facts) && ask_dice(a, &strategies[i])
            && strategies[i].after > PASS_LAID_OUT && !(b->done >> strategies[i].after & 1)) {
            (void)jot_passes(&b->k, strategies[i].after, a->want->target, a->facts);
            b->done |= 1u << strategies[i].after;
        }
    return !b->k.mem->failed;
}

/* taken: its schedule takes the place of what is made. */
static void
beside_close(Beside *b, Ask *a, bool taken)
{
    if (taken) {
        jot_sched_close(a->s);
        jot_kernel_take(a->k, &b->k);
        *a->s = b->s;
        a->s->k = a->k;
    } else if (b->open) {
        jot_sched_close(&b->s);
        jot_kernel_close(&b->k);
    }
    b->open = false;
}

/* Rows that make a schedule, with its price where there are several, down to the first that is not
 * weighed against others, or than which none can be cheaper; all of them where somebody listens.
 * The cheapest one's is there, its row in *best; -1: none is made. What the last that refused
 * says. */
static const char *
asked_all(Ask *a, const Kernel *was, Choice *choice, Beside *b, int *best)
{
    Text *t = a->want->refusals;
    const char *no, *last = "";
    unsigned done = 0;
    bool ends = false;

    *best = -1;
    for (int i = 0; i < STRATEGIES && (t || !ends) && !a->k->mem->failed; i++) {
        const Strategy *row = &strategies[i];
        Ask *ask = *best < 0 ? a : &b->ask;
        double price = 0;
        bool taken;

        if (*best >= 0 && !b->open && !beside_open(b, a, was, i))
            break;
        no = asked_row(ask, row, *best < 0 ? &done : &b->done);
        if (!no && (t || *best >= 0 || row->sure > 0))
            price = jot_sched_price(ask->s, a->want->target);
        if (t && no)
            jot_text_f(t, "  %s: %s\n", row->name, no);
        else if (t)
            jot_text_f(t, "  %s: %lld ns\n", row->name, (long long)(1e9 * price));
        last = no ? no : last;
        if (no)
            continue;
        taken = !ends && jot_choice_try(choice, CHOICE_STRATEGY + (uint64_t)i, price,
                                        *best < 0 ? 1 : strategies[*best].sure / 100.0);
        ends = ends || row->sure == 0 || a->want->quick
            || price * (row->sure / 100.0) <= jot_sched_least(ask->k, a->want->target);
        if (*best >= 0)
            beside_close(b, a, taken);
        *best = taken ? i : *best;
    }
    beside_close(b, a, false);
    return last;
}

/* Is some row asked whose price counts? */
static bool
ask_weighs(const Ask *a)
{
    for (int i = 0; i < STRATEGIES; i++)
        if (strategies[i].sure > 0 && !(strategies[i].needs & ~a->facts))
            return true;
    return false;
}

/* The row again, with its choices noted. */
static const char *
asked_noted(Ask *a, const Kernel *was, Beside *b, int row)
{
    const char *no = beside_open(b, a, was, row) ? asked_row(&b->ask, &strategies[row], &b->done)
                                                 : "out of memory";

    beside_close(b, a, !no);
    return no;
}

JOT_FN bool
jot_schedule(Sched *s, Kernel *k, const Wanted *want, Text *why)
{
    const Target *target = want->target;
    const char *no = "out of memory";
    bool weighs;
    Choice choice;
    Beside b;
    Kernel was;
    Ask a;
    int row = -1;

    ask_open(&a, s, k, want, why);
    b.open = false;
    weighs = ask_weighs(&a) || want->refusals;
    if (want->refusals)
        jot_text_f(want->refusals, "strategies of \"%s\"\n", k->name ? k->name : "");
    choice = jot_choice_begin(target);
    if (!weighs || jot_kernel_copy(&was, k)) {
        if (weighs)
            jot_choice_quiet(target, true);
        no = asked_all(&a, &was, &choice, &b, &row);
        if (weighs)
            jot_choice_quiet(target, false);
    }
    jot_choice_end(&choice);
    if (row >= 0)
        no = weighs && target->choices ? asked_noted(&a, &was, &b, row) : NULL;
    if (row >= 0 && want->refusals)
        jot_text_f(want->refusals, "  taken: %s\n", strategies[row].name);
    if (weighs)
        jot_kernel_close(&was);
    if (no && why && !why->n && !k->mem->failed)
        jot_text_f(why, "%s", no);
    return !no && !k->mem->failed;
}
