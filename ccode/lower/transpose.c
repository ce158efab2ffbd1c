/* ccode/lower/transpose.c - a block that is read along its rows and needed along its columns is
 * turned in registers.
 *
 *     b:1u a:1v        x[a, b] for 16 a in lanes, in 16 copies of b:  lanes are a row apart,
 *                      copies are neighbours
 *
 *     0 1 2 3     0 a 2 c     0 a k u        16 loads of rows, then for each bit of the lane's
 *     a b c d     1 b 3 d     1 b l v        number pairs of vectors trade the half of their
 *     k l m n     k u m w     2 c m w        lanes: 64 mixes instead of 256 loads
 *     u v w x     l v n x     3 d n x
 *
 * Each copy asks for its column, and all of them share the records.
 *
 * Read before: ccode/lower/walk.h. After: ccode/schedule/transpose.c, which makes such
 * schedules. */
#include "ccode/lower/walk.h"

enum { TURN_MOST = 16 }; /* lanes */

/* The load's address under the present positions, at another copy. */
static Ix
turn_address(Walk *w, const Value *v, int64_t copy)
{
    IxPool *ix = w->k->ix;
    Ix index[JOT_MAX_RANK], old = w->at.pos[w->copies.axis];

    w->at.pos[w->copies.axis] = jot_ix_add(ix, w->copies.from, jot_ix_const(ix, copy));
    jot_walk_derive(w);
    for (int d = 0; d < v->nidx; d++)
        index[d] = jot_walk_subst(w, w->k->ixs.v[v->at + (uint32_t)d]);
    w->at.pos[w->copies.axis] = old;
    jot_walk_derive(w);
    return jot_layout_addr(w->k->bufs.v[v->buf].layout, ix, index, &w->index.space);
}

/* Where the rows begin; false: copies are no neighbours. */
static bool
turn_rows(Walk *w, const Value *v, Ix *first)
{
    IxPool *ix = w->k->ix;
    int64_t apart;

    *first = turn_address(w, v, 0);
    for (int64_t copy = 1; copy < w->copies.copies; copy++)
        if (!jot_ix_is_const(ix, jot_ix_sub(ix, turn_address(w, v, copy), *first), &apart)
            || apart != copy)
            return false;
    return true;
}

JOT_FN uint32_t
jot_walk_turned(Walk *w, const Value *v)
{
    uint32_t row[TURN_MOST], pair[2];
    Inst mix = jot_walk_pure(C_MIX, v->dtype, w->lanes);
    const KBuf *buf = &w->k->bufs.v[v->buf];
    int n = w->lanes;
    Ix first;

    if (n < 4 || n > TURN_MOST || (n & (n - 1)) || n != w->s->lanes || w->copies.copies != n
        || w->copies.axis == w->vector_axis || w->s->group || v->ncond || v->dtype != buf->dtype
        || v->dtype != JOT_F32 || w->index.written[v->buf % 256] || !turn_rows(w, v, &first))
        return 0;
    for (int i = 0; i < n; i++)
        row[i] = jot_walk_vector(w, v->buf, jot_walk_at_lane(w, first, i), v->dtype);
    for (int half = 1; half < n; half *= 2)
        for (int i = 0; i < n; i++) {
            if (i & half)
                continue;
            pair[0] = row[i];
            pair[1] = row[i + half];
            mix.c.i = half;
            row[i] = jot_code_add(&w->b, mix, pair, 2, NULL);
            mix.c.i = -half;
            row[i + half] = jot_code_add(&w->b, mix, pair, 2, NULL);
        }
    return row[w->copies.copy];
}
