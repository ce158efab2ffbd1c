/* fuse/pieces.c - policy reward: long sums of computed terms are cut into pieces of one length.
 *
 *     g1 + g2 + ... + g34     ->     s = g1 + .. + g8    s = s + g9 + .. + g15    s = s + ...
 *     p1 + p2 + p3            ->     s = p1    s = s + p2    s = s + p3       contractions
 *
 * The gradient of a weight that is used many times is such a sum, and how many times may depend on
 * the data: as one kernel it would be another text for each number of terms, reading as many
 * variables. Pieces have few texts, and cost one more store and load each. The terms that are
 * contractions are added one by one, each sum riding on the stores of the next term: that costs
 * nothing, and only one partial sum is in memory.
 *
 * requires  bits of settling   gives  FN_KEEP, FN_BARRIER, cut
 * Read before: fuse/vertex.c. After: fuse/move.c. */
#include "fuse/work.h"
#include "target/thresholds.h"

typedef struct {
    Fuser *f;
    uint32_t *readers; /* by position */
    uint32_t *reader;  /* ... one of them */
    uint32_t *terms;   /* computed terms of the sum so far */
} Pieces;

static bool
pieces_is_sum(const Pieces *p, uint32_t i)
{
    const Fuser *f = p->f;

    return f->node[i]->kind == NODE_EW && f->node[i]->op == EW_ADD && !(f->bits[i] & FN_LEAF);
}

/* Part of a longer sum of the same shape, and needed for nothing else. */
static bool
pieces_goes_on(const Pieces *p, uint32_t i)
{
    const Fuser *f = p->f;

    return p->readers[i] == 1 && !(f->bits[i] & FN_KEEP) && pieces_is_sum(p, p->reader[i]);
}

/* A contraction for this sum alone. */
static bool
pieces_is_product(const Pieces *p, uint32_t i)
{
    return (p->f->bits[i] & FN_CONTRACT) && !(p->f->bits[i] & FN_KEEP) && p->readers[i] == 1;
}

/* Terms that operand i brings into a sum: a constant is none. */
static uint32_t
pieces_terms(const Pieces *p, uint32_t i)
{
    const Fuser *f = p->f;

    if (pieces_is_sum(p, i) && pieces_goes_on(p, i))
        return p->terms[i];
    return !(f->bits[i] & (FN_LEAF | FN_FREE)) && f->node[i]->kind != NODE_REINDEX;
}

static void
pieces_sum(Pieces *p, uint32_t i)
{
    Fuser *f = p->f;
    const uint32_t *in = f->in + f->in0[i];
    uint32_t to = p->reader[i], other;

    p->terms[i] = pieces_terms(p, in[0]) + pieces_terms(p, in[1]);
    if (!pieces_goes_on(p, i))
        return;
    other = f->in[f->in0[to]] == i ? f->in[f->in0[to] + 1] : f->in[f->in0[to]];
    if (p->terms[i] < PIECES_TERMS
        && !(pieces_is_product(p, other)
             && (pieces_is_product(p, in[0]) || pieces_is_product(p, in[1]))))
        return;
    p->terms[i] = 1;
    f->bits[i] |= FN_KEEP | FN_BARRIER;
    f->cut[i] = 1;
}

JOT_FN bool
jot_fuse_pieces(Fuser *f)
{
    Pieces p;
    uint32_t i, k;

    if (f->ask->policy != FUSE_REWARD)
        return true;
    p.f = f;
    p.readers = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    p.reader = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    p.terms = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    if (!p.readers || !p.reader || !p.terms)
        return false;
    for (i = 0; i < f->n; i++)
        for (k = f->in0[i]; k < f->in0[i + 1] && f->real[i] == i; k++, f->visits++) {
            p.readers[f->in[k]]++;
            p.reader[f->in[k]] = i;
        }
    for (i = 0; i < f->n; i++)
        if (f->real[i] == i && pieces_is_sum(&p, i))
            pieces_sum(&p, i);
    return true;
}
