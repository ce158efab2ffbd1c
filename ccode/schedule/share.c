/* ccode/schedule/share.c - which values are computed once and kept, rather than in every pass.
 *
 *     m = max over j of x        pass 1
 *     e = exp(x - m)             read in pass 2 by the sum, in pass 3 by the store
 *     s = sum over j of e        pass 2              %e: r j; res tmp[j]     %s: r | j
 *     y = e / s                  pass 3              !0: r j
 *
 * Reductions of level L run in pass L, stores of level L in the next one, where L counts the
 * reductions below. A value that several passes need is computed in each, unless its operators cost
 * more than a store and a load: then it is a stage of its own in the first of these passes, and
 * what lies below it is not needed later. Left alone are those that two nests need, for these share
 * no loops, and a place for all of a value is memory, not cache.
 *
 * Values that depend on fewer axes than what reads them stand outside of the inner loops anyway,
 * unless they move along the innermost one: the factor of each channel where channels are innermost
 * is computed for all channels once, before the nest, whichever nests read it: a place for all of
 * it is small beside what they walk. Or unless they move along the outermost loop and another:
 *
 *     y = sum over j of exp(x[i, j]) * w[i, j, k]        i j k: exp one by one
 *     %e: i j; res tmp[j]    %s: i j k                   in vectors
 *
 * Such a value comes to be where the store that reads it last will write, %e: r j; res y[r, j], if
 * that is plain: lines of y are brought while e is computed, not when the store waits for them.
 *
 *   requires  levels of a verified kernel     keeps  everything
 * Read before: ccode/schedule/sched.h. After: ccode/schedule/make.c. */
#include "ccode/ir/cost.h"
#include "ccode/schedule/sched.h"
#include "target/thresholds.h"

typedef struct {
    uint64_t passes;     /* those that need it; bit 63: elsewhere; bit 62: in another nest */
    uint64_t axes;       /* ... axes of what reads it */
    bool top;            /* something reads it in fewer passes */
    bool line;           /* a line: kept for whoever reads it */
    bool few;            /* ... at more axes than its own */
} ShareValue;

typedef struct {
    const Kernel *k;
    ShareValue *of;      /* by value */
    uint32_t *cost;
    uint64_t inner;      /* axes of innermost loops */
    uint64_t outer;      /* axes of outermost loops */
} Share;

static const uint64_t share_at = (uint64_t)1 << 63; /* not to be kept */
static const uint64_t share_apart = (uint64_t)1 << 62; /* ... unless it has few axes */

static uint64_t
share_pass(int level)
{
    return (uint64_t)1 << (level < 61 ? level : 61);
}

static void
share_read(Share *s, uint32_t value, uint64_t passes, uint64_t axes)
{
    if (s->of[value].passes && s->of[value].passes != passes)
        s->of[value].top = true;
    s->of[value].passes |= passes;
    s->of[value].axes |= axes;
}

static bool
share_several(uint64_t passes)
{
    return (passes & (passes - 1)) != 0 && !(passes & (share_at | share_apart));
}

/* Would a loop of its own, which keeps a row of it, be one of vectors? */
static bool
share_row(const Share *s, uint64_t free)
{
    uint64_t inside = free & ~s->outer;

    for (int a = 0; a < (int)s->k->axes.n; a++)
        if ((free & s->outer) && (inside >> a & 1) && s->k->axes.v[a].ext >= SHARE_ROW)
            return jot_kernel_points(s->k, inside) <= SHARE_ROWS;
    return false;
}

static bool
share_worth(const Share *s, uint32_t i)
{
    const Value *v = &s->k->values.v[i];

    if (s->of[i].few && v->free != s->of[i].axes
        && v->op == VAL_EW && s->cost[i] >= AGAIN_DEAR && !(s->of[i].passes & share_at)
        && jot_kernel_points(s->k, s->of[i].axes & ~v->free) >= SHARE_AGAIN
        && ((v->free & s->inner) || share_row(s, v->free)))
        return true;
    return (v->op == VAL_EW || v->op == VAL_CALL) && share_several(s->of[i].passes)
        && s->cost[i] >= SHARE_LEAST && v->free && v->free == s->of[i].axes;
}

/* Readers come after what they read: from the last value down. A value that one reader needs in as
 * many passes as all of them together is not kept for itself: that reader is. */
static void
share_values(Share *s, const uint8_t *level, const uint8_t *nest, uint8_t *kept)
{
    const Kernel *k = s->k;

    for (uint32_t i = 0; i < k->stores.n; i++) {
        uint32_t value = k->stores.v[i].value;

        share_read(s, value, share_pass(level[value] + 1), k->stores.v[i].free);
        s->of[value].top = true;
    }
    for (uint32_t i = k->values.n; i-- > 1;) {
        const Value *v = &k->values.v[i];
        uint64_t passes = s->of[i].passes, axes = s->of[i].axes;

        if (!passes)
            continue;
        if ((s->of[i].line && v->op != VAL_REDUCE
             && !(passes & (share_at | share_apart)))
            || (s->of[i].top && share_worth(s, i))) {
            for (kept[i] = 1; !(passes >> kept[i] & 1);)
                kept[i]++;
            passes = (uint64_t)1 << kept[i];
            axes = v->free;
        }
        if (v->op == VAL_REDUCE) {
            passes = share_pass(level[i]);
            axes = v->free | v->axes;
        } else if (v->op == VAL_RUN)
            passes = share_pass(level[i] + 1);
        if (jot_reads_line(k, v))
            s->of[k->args.v[v->arg]].line = true;
        else if (v->op == VAL_AT)
            passes |= share_at;
        for (int j = 0; j < v->narg; j++) {
            uint32_t in = k->args.v[v->arg + (uint32_t)j];

            share_read(s, in, nest[in] == nest[i] ? passes : passes | share_apart, axes);
            if (v->op == VAL_REDUCE)
                s->of[in].top = true;
            if (v->free & ~k->values.v[in].free)
                s->of[in].few = s->of[in].top = true;
        }
    }
}

JOT_FN bool
jot_sched_kept(const Kernel *k, const uint8_t *level, const uint8_t *nest, uint64_t inner,
               uint64_t outer, uint8_t *kept)
{
    size_t n = k->values.n;
    Share s;
    bool ok;

    s.k = k;
    s.of = jot_mem_new(k->mem, n, sizeof *s.of);
    s.cost = jot_mem_new(k->mem, n, sizeof *s.cost);
    s.inner = inner;
    s.outer = outer;
    ok = s.of && s.cost;
    if (ok) {
        jot_cost_again(s.k, s.cost);
        share_values(&s, level, nest, kept);
    }
    jot_mem_free(k->mem, s.of, n * sizeof *s.of);
    jot_mem_free(k->mem, s.cost, n * sizeof *s.cost);
    return ok;
}

static bool
share_any_at(const Kernel *k)
{
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_AT)
            return true;
    return false;
}

/* Does stage `at` read stage `kept`, and none after it? */
static bool
share_reads_last(const Sched *s, uint32_t kept, uint32_t at)
{
    uint32_t in[256];
    bool found = false;

    for (uint32_t i = at; i < s->stages.n; i++)
        for (int j = 0, n = jot_producers(s, i, in, 256); j < n; j++) {
            if (in[j] == kept && i > at)
                return false;
            found |= in[j] == kept;
        }
    return found;
}

/* Another stage has a place in the buffer. */
static bool
share_taken(const Sched *s, uint32_t buf)
{
    for (uint32_t i = 0; i < s->stages.n; i++)
        if (s->stages.v[i].res.buf == buf || s->stages.v[i].acc.buf == buf)
            return true;
    return false;
}

/* A result that may lie over an input stays apart: that saves more. */
JOT_FN bool
jot_sched_kept_place(Sched *s, uint32_t kept, Place *p)
{
    const Kernel *k = s->k;
    const Stage *from = &s->stages.v[kept];
    const Value *v = &k->values.v[from->what];

    if (from->store || v->op == VAL_REDUCE || v->op == VAL_RUN ||
        (v->dtype != JOT_F32 && v->dtype != JOT_F64) ||
        share_any_at(k))
        return false;
    for (uint32_t i = kept + 1; i < s->stages.n && i < SCHED_STAGES; i++) {
        const KStore *st = &k->stores.v[s->stages.v[i].what];

        if (s->stages.v[i].store && jot_store_is_plain(k, st) && !k->bufs.v[st->buf].over &&
            k->bufs.v[st->buf].dtype == v->dtype && k->values.v[st->value].free == v->free &&
            !share_taken(s, st->buf) && share_reads_last(s, kept, i) &&
            jot_store_place(s, s->stages.v[i].what, p))
            return true;
    }
    return false;
}
