/* ccode/contract/epilogue.c - sums of a contraction's results: found, and cut into blocks of rows.
 *
 *     %4 = reduce add over c p q of %1 * %2              the contraction: y[n, o, h, w]
 *     %5 = reduce add over n h w of %4                   one of its results for each o
 *     block: rows h of an image, 4 at a time             inner: hr w; outer: n hb
 *
 * What a sum reads must be made of results as they are stored, of loads and of sums that are
 * finished: then it can be made again a block later.
 *
 *   requires  a kernel of one contraction (jot_epilogue_find says so)
 *   keeps     what is computed
 *   breaks    numbers of stores; may add an axis
 *
 * Read before: ccode/contract/epilogue.h. After: ccode/contract/epilogue_make.c,
 * ccode/contract/sched.c, ccode/winograd/winograd.c. */
#include "ccode/contract/epilogue.h"
#include "ccode/contract/make.h"
#include "ccode/build/build.h"
#include "ccode/rewrite/rewrite.h"
#include "target/thresholds.h"

/* ---- finding ------------------------------------------------------------------------------ */

/* The store from which the value can be read back; -1: none. */
JOT_FN int
jot_epilogue_stored(const Kernel *k, const Epilogue *r, uint32_t value)
{
    for (uint32_t i = 0; i < r->nplain; i++)
        if (r->plain[i].value == value && k->values.v[value].free == r->space
            && !r->plain[i].acc && !r->plain[i].ncond && jot_store_spreads(k, &r->plain[i]))
            return (int)i;
    return -1;
}

/* What the sums read can be made of stored results, loads and finished sums. */
static bool
epilogue_readable(const Kernel *k, const Epilogue *r, uint32_t value)
{
    OperandWalk w;
    uint32_t n;

    for (jot_operands_open(&w, k, value); (n = jot_operands_next(&w)) != 0;) {
        int op = k->values.v[n].op;

        if (jot_epilogue_stored(k, r, n) >= 0)
            jot_operands_skip(&w);
        else if (op != VAL_EW && op != VAL_LOAD && op != VAL_CONST && op != VAL_SCALAR
                 && op != VAL_INDEX && op != VAL_CALL)
            return false;
    }
    return !w.deep;
}

JOT_FN void
jot_epilogue_detach(Kernel *k, const Epilogue *r, bool apart)
{
    memcpy(k->stores.v, r->plain, r->nplain * sizeof *r->plain);
    memcpy(k->stores.v + r->nplain, r->store, r->nstore * sizeof *r->store);
    k->stores.n = apart ? r->nplain : r->nplain + r->nstore;
}

/* False: a store is neither of results nor of what is kept. */
static bool
epilogue_stores(const Kernel *k, Epilogue *r)
{
    r->nplain = r->nstore = 0;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        bool result = s->free == r->space;

        if (s->acc || (!result && (s->free & ~r->kept))
            || (result ? r->nplain : r->nstore) == EPILOGUE_STORES)
            return false;
        if (result)
            r->plain[r->nplain++] = *s;
        else
            r->store[r->nstore++] = *s;
    }
    return r->nplain && r->nstore;
}

JOT_FN void
jot_epilogue_take(Kernel *k, Epilogue *r)
{
    if (epilogue_stores(k, r))
        jot_epilogue_detach(k, r, false);
}

/* The first sum is the contraction; all others keep the same of its axes. */
static bool
epilogue_sums(const Kernel *k, const bool *used, Epilogue *r, Contract *c)
{
    uint32_t n = 0;

    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];

        if (!used[i] || v->op != VAL_REDUCE) {
            if (used[i] && (v->op == VAL_AT || v->op == VAL_TABLE || v->op == VAL_SECOND))
                return false;
            continue;
        }
        if (!r->sum) {
            r->sum = i;
            r->space = v->free;
            continue;
        }
        if (n++ == 0)
            r->kept = v->free;
        if (v->narg != 1 || v->free != r->kept || (v->free | v->axes) != r->space
            || (v->free & v->axes) || n > EPILOGUE_SUMS)
            return false;
    }
    return n > 0 && r->kept && jot_contract_find(k, r->sum, c)
        && (!(r->kept & ~c->m) || !(r->kept & ~c->n));
}

JOT_FN bool
jot_epilogue_find(const Kernel *k, Epilogue *r, Contract *c)
{
    bool *used = jot_kernel_used_new(k), ok;

    memset(r, 0, sizeof *r);
    if (!used)
        return false;
    ok = epilogue_sums(k, used, r, c) && epilogue_stores(k, r);
    for (uint32_t i = r->sum + 1; ok && i < k->values.n; i++) {
        uint32_t x, m;

        if (used[i] && k->values.v[i].op == VAL_REDUCE)
            ok = epilogue_readable(
                k, r, jot_v_deviation(k, i, &x, &m) ? x : jot_v_arg(k, i, 0));
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    if (!ok)
        r->nplain = 0;
    return ok;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* Axes that are summed over, by how far they move the first result. */
static void
epilogue_order(const Kernel *k, Epilogue *r)
{
    const KStore *s = &k->stores.v[0];
    int64_t moved[KERNEL_AXES];

    jot_kernel_moved(k, s->buf, s->at, 0, moved);
    r->n = jot_axes_by(r->space & ~r->kept, moved, r->order);
}

/* Of an axis: all of it, a part that divides it, or, if there are enough rows without, 1. */
static int64_t
epilogue_part(int64_t ext, double block, double want)
{
    int64_t best = ext;

    for (int64_t d = ext; d >= 1; d--) {
        double rows = block * (double)d, least = block * (double)best;

        if (ext % d || (rows < EPILOGUE_LEAST && d < ext))
            continue;
        if ((rows > want ? rows / want : want / rows)
            < (least > want ? least / want : want / least))
            best = d;
    }
    return best;
}

JOT_FN bool
jot_epilogue_block(Kernel *k, const Target *target, Epilogue *r, bool divide, int *at, int64_t *by)
{
    double total = jot_kernel_points(k, r->space & ~r->kept), want = total / EPILOGUE_PIECES;
    double room = (double)target->cache_nbytes[LEVEL_L2] / CACHE_SUMS
                / (4 * jot_kernel_points(k, r->kept));

    epilogue_order(k, r);
    want = want > EPILOGUE_MOST ? EPILOGUE_MOST : want;
    want = want > room ? room : want;
    want = want < EPILOGUE_LEAST ? EPILOGUE_LEAST : want;
    r->inner = 0;
    r->block = 1;
    *at = -1;
    *by = 0;
    for (int i = r->n; i-- > 0 && *at < 0;) {
        int a = r->order[i];
        int64_t ext = k->axes.v[a].ext, part = epilogue_part(ext, r->block, want);

        if (part < ext && k->axes.n >= KERNEL_AXES - 4)
            part = ext;
        r->block *= (double)part;
        if (part == ext)
            r->inner |= (uint64_t)1 << a;
        else
            *at = a, *by = part;
    }
    if (*at >= 0 && *by > 1 && divide) {
        if (!jot_axis_divide(k, *at, *by, "r"))
            return false;
        r->space |= (uint64_t)1 << (k->axes.n - 1);
        r->inner |= (uint64_t)1 << (k->axes.n - 1);
        epilogue_order(k, r);
        memcpy(r->plain, k->stores.v, r->nplain * sizeof *r->plain);
        memcpy(r->store, k->stores.v + r->nplain, r->nstore * sizeof *r->store);
    }
    r->outer = r->space & ~r->kept & ~r->inner;
    return true;
}
