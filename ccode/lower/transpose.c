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
 * Each copy asks for its column, and all of them share the records. Of fewer rows, at the end of an
 * axis, the other lanes are the last row's.
 *
 * Read before: ccode/lower/walk.h. After: ccode/schedule/transpose.c, which makes such
 * schedules. */
#include "ccode/lower/walk.h"
#include "ccode/schedule/transpose.h"

/* The load's address under the present positions, at another copy. */
static Ix
transpose_address(Walk *w, const Value *v, int64_t copy)
{
    IxPool *ix = w->k->ix;
    Ix old = w->at.pos[w->copies.axis], at;

    w->at.pos[w->copies.axis] = jot_ix_add(ix, w->copies.from, jot_ix_const(ix, copy));
    jot_walk_derive(w);
    at = jot_walk_place(w, v->buf, jot_kernel_index(w->k, v->at));
    w->at.pos[w->copies.axis] = old;
    jot_walk_derive(w);
    return at;
}

/* Where the rows begin; false: copies are no neighbours. */
static bool
transpose_rows(Walk *w, const Value *v, Ix *first)
{
    IxPool *ix = w->k->ix;
    int64_t apart;

    *first = transpose_address(w, v, 0);
    for (int64_t copy = 1; copy < w->copies.copies; copy++)
        if (!jot_ix_is_const(ix, jot_ix_sub(ix, transpose_address(w, v, copy), *first), &apart)
            || apart != copy)
            return false;
    return true;
}

/* Rows of whole vectors, however many lanes are left: behind the last row it stands again. */
static void
transpose_load(Walk *w, const Value *v, Ix first, uint32_t *row)
{
    int left = w->lanes;

    w->lanes = w->s->lanes;
    for (int i = 0; i < w->lanes; i++)
        row[i] = i < left ? jot_walk_vector(w, v->buf, jot_walk_at_lane(w, first, i), v->dtype)
                          : row[left - 1];
    w->lanes = left;
}

JOT_FN uint32_t
jot_walk_transposed(Walk *w, const Value *v)
{
    uint32_t row[TRANSPOSE_MOST / sizeof(float)], low;
    int n = w->s->lanes;
    Inst mix = jot_code_pure(C_MIX, v->dtype, n);
    const KBuf *buf = &w->k->bufs.v[v->buf];
    Ix first;

    if (!jot_transpose_lanes(v->dtype, n) || n < w->lanes || w->copies.copies != n
        || w->copies.axis == w->vector_axis || w->s->group || v->ncond
        || (v->dtype != buf->dtype && (int)jot_dtype_compute((jot_DType)buf->dtype) != v->dtype)
        || w->index.written[v->buf % 256] || !transpose_rows(w, v, &first))
        return 0;
    transpose_load(w, v, first, row);
    for (int half = 1; half < n; half *= 2)
        for (int i = 0; i < n; i++) {
            if (i & half)
                continue;
            low = row[i];
            mix.c.i = half;
            row[i] = jot_code_pair(&w->b, mix, low, row[i + half]);
            mix.c.i = -half;
            row[i + half] = jot_code_pair(&w->b, mix, low, row[i + half]);
        }
    return row[w->copies.copy];
}
