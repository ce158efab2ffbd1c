/* ccode/rewrite/merge.c - axes that every access walks as one become one.
 *
 *     axes i:37 j:53 k:35   y[i, j, k] = x[i, j, k] * w[i, j, k]      i:68635   y[i] = x[i] * w[i]
 *     axes i:37 j:53 k:35   y[i, j, k] = x[i, j, k] + b[j]            k stays: b stands still in it
 *     axes i:37 j:53 k:35   y[i, j, k] = x[i, j, k] - x[i, 2, 1]      i:37 j:1855   .. - x[i, 71]
 *
 *     axes i:2 j:56 k:16    x[8*i + j/7, j%7, k]              x[56*i + j, k], then i:2 j:896
 *
 * A pair of axes merges where each buffer has both in neighbouring dimensions of its memory, the
 * inner one whole, the outer one perhaps beside what stands still, or stands still in both, or has
 * neither; where both are reduced together or not at all; and where nothing else asks for their
 * positions. Before that, two dimensions become one where their indices divide, as those of a
 * reshape do, and one index for both does not. The buffers lose a dimension each: what lies in
 * memory is the same, so addresses are as regular as before, and the loop is long enough for
 * vectors and threads.
 *
 *   requires  a verified kernel, layouts set
 *   keeps     what is computed, and the order in which it is summed
 *   breaks    ranks of buffers, numbers of axes
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/line_buffer.c. */
#include "ccode/ir/access.h"
#include "ccode/rewrite/rewrite.h"

typedef struct {
    Kernel *k;
    int a, b;               /* the pair, outer and inner */
    uint64_t both;
    int8_t *outer, *inner;  /* by buffer: dimensions of a and b; -1: has neither */
} Merge;

/* Nothing lies between two steps of dimension `outer` but all of `inner`. */
static bool
merge_adjacent(const Layout *l, int outer, int inner)
{
    int at[2] = {-1, -1};
    for (int i = 0; i < l->n; i++)
        for (int d = 0; d < 2; d++)
            if (l->part[i].dim == (d ? inner : outer)) {
                if (at[d] >= 0)
                    return false;
                at[d] = i;
            }
    for (int d = outer;; d = inner) {
        if (l->halo_lo[d] || l->halo_hi[d])
            return false;
        if (d == inner)
            break;
    }
    return at[0] < at[1] && l->stride[at[0]] == l->stride[at[1]] * l->ext[inner];
}

/* ix is axis a and what moves with neither of the pair: that part, or 0. */
static Ix
merge_rest(const Merge *m, Ix ix)
{
    IxPool *p = m->k->ix;
    bool inside = false;
    Ix rest = 0;
    if (jot_ix_coef(p, ix, m->a, &inside) == 1 && !inside)
        rest = jot_ix_sub(p, ix, jot_ix_axis(p, m->a));
    return rest && !(jot_ix_axes(p, rest) & m->both) ? rest : 0;
}

/* An access that moves with the pair says which dimensions the buffer has it in. */
static bool
merge_access(Merge *m, uint32_t buf, uint32_t at, int nidx)
{
    const Kernel *k = m->k;
    const KBuf *b = &k->bufs.v[buf];
    int outer = -1, inner = -1;
    for (int d = 0; d < nidx; d++) {
        Ix ix = k->ixs.v[at + (uint32_t)d];
        if (!(jot_ix_axes(k->ix, ix) & m->both))
            continue;
        if (ix == jot_ix_axis(k->ix, m->b) && inner < 0)
            inner = d;
        else if (outer < 0 && merge_rest(m, ix))
            outer = d;
        else
            return false;
    }
    if (outer < 0 && inner < 0)
        return true;
    if (outer < 0 || inner < 0)
        return false;
    if (b->ext[inner] != k->axes.v[m->b].ext || !merge_adjacent(b->layout, outer, inner))
        return false;
    if (m->outer[buf] >= 0)
        return m->outer[buf] == outer && m->inner[buf] == inner;
    m->outer[buf] = (int8_t)outer;
    m->inner[buf] = (int8_t)inner;
    return true;
}

/* The index of two neighbouring dimensions together, the inner one of `ext`. */
static Ix
merge_flat(Kernel *k, Ix outer, Ix inner, int64_t ext)
{
    return jot_ix_add(k->ix, jot_ix_scale(k->ix, outer, ext), inner);
}

/* The index of both dimensions together; 0 where an access has something else there than the pair,
 * or what moves with neither of it and lies inside. */
static Ix
merge_joined(const Merge *m, uint32_t buf, uint32_t at)
{
    Kernel *k = m->k;
    int64_t ext = k->axes.v[m->b].ext, all[KERNEL_AXES];
    Ix outer = k->ixs.v[at + (uint32_t)m->outer[buf]],
       inner = k->ixs.v[at + (uint32_t)m->inner[buf]];
    Space space = jot_kernel_space(k, all);
    if (jot_ix_axes(k->ix, outer) & m->both) {
        outer = merge_rest(m, outer);
        inner = jot_ix_axis(k->ix, m->a);
    } else if (!jot_ix_inside(k->ix, inner, ext, &space))
        return 0;
    return merge_flat(k, outer, inner, ext);
}

static bool
merge_joins(const Merge *m, uint32_t buf, uint32_t at)
{
    return m->outer[buf] < 0 || merge_joined(m, buf, at);
}

static bool
merge_apart(const Merge *m, uint32_t at, int n)
{
    return !(jot_kernel_axes_of(m->k, at, n) & m->both);
}

static bool
merge_value(Merge *m, const Value *v)
{
    uint64_t both = v->axes & m->both;
    if (v->op == VAL_LOAD)
        return merge_access(m, v->buf, v->at, v->nidx) && merge_apart(m, v->at + v->nidx, v->ncond);
    return (!both || (v->op == VAL_REDUCE && both == m->both)) &&
        merge_apart(m, v->at, v->nidx + v->ncond);
}

static bool
merge_legal(Merge *m)
{
    const Kernel *k = m->k;
    int64_t ext;
    if (!jot_mul_ok(k->axes.v[m->a].ext, k->axes.v[m->b].ext, &ext))
        return false;
    for (uint32_t i = 0; i < k->bufs.n; i++)
        m->outer[i] = m->inner[i] = -1;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        if (!merge_access(m, s->buf, s->at, s->nidx) || !merge_apart(m, s->at + s->nidx, s->ncond))
            return false;
    }
    for (uint32_t i = 1; i < k->values.n; i++)
        if (!merge_value(m, &k->values.v[i]))
            return false;
    for (uint32_t i = 0; i < k->slots.n; i++) /* indices load these at positions of theirs */
        if (m->outer[k->slots.v[i]] >= 0)
            return false;
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (!merge_joins(m, k->stores.v[i].buf, k->stores.v[i].at))
            return false;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_LOAD && !merge_joins(m, k->values.v[i].buf, k->values.v[i].at))
            return false;
    return true;
}

/* The buffer without its dimension `inner`. */
static bool
merge_buffer(Kernel *k, uint32_t buf, int outer, int inner)
{
    KBuf *b = &k->bufs.v[buf];
    int64_t *ext = jot_arena_array(&k->arena, int64_t, JOT_MAX_RANK + 1);
    int64_t lo[JOT_MAX_RANK] = {0}, hi[JOT_MAX_RANK] = {0};
    const Layout was = *b->layout;
    LayoutPart part[LAYOUT_PARTS];
    Layout layout;
    int rank = 0, n = 0;
    if (!ext)
        return false;
    for (int d = 0; d < b->rank; d++) {
        if (d == inner)
            continue;
        ext[rank] = d == outer ? b->ext[outer] * b->ext[inner] : b->ext[d];
        lo[rank] = was.halo_lo[d];
        hi[rank++] = was.halo_hi[d];
    }
    for (int i = 0; i < was.n; i++)
        if (was.part[i].dim != inner) {
            part[n] = was.part[i];
            part[n++].dim -= was.part[i].dim > inner;
        }
    if (!jot_layout_make(&layout, rank, ext, n, part, lo, hi))
        return false;
    layout.halo_value = was.halo_value;
    b->ext = ext;
    b->rank = (uint8_t)rank;
    jot_kernel_layout(k, buf, &layout);
    return !k->mem->failed;
}

/* One index for two of n expressions at `at`. */
static void
merge_index(Merge *m, uint32_t buf, uint32_t at, int n)
{
    Ix *ix = &m->k->ixs.v[at];
    ix[m->outer[buf]] = merge_joined(m, buf, at);
    for (int i = m->inner[buf]; i + 1 < n; i++)
        ix[i] = ix[i + 1];
}

static bool
merge_pair(Merge *m)
{
    Kernel *k = m->k;
    int64_t ext = k->axes.v[m->a].ext * k->axes.v[m->b].ext;
    for (uint32_t i = 1; i < k->bufs.n; i++)
        if (m->outer[i] >= 0 && !merge_buffer(k, i, m->outer[i], m->inner[i]))
            return false;
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        if (v->op == VAL_LOAD && m->inner[v->buf] >= 0)
            merge_index(m, v->buf, v->at, v->nidx-- + v->ncond);
        v->axes &= ~((uint64_t)1 << m->b);
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        KStore *s = &k->stores.v[i];
        if (m->inner[s->buf] >= 0)
            merge_index(m, s->buf, s->at, s->nidx-- + s->ncond);
    }
    if (!jot_axis_end(k, m->b) && jot_axis_end(k, m->a)) { /* rows that end are so many points */
        k->axes.v[m->a].end = jot_ix_scale(k->ix, k->axes.v[m->a].end, k->axes.v[m->b].ext);
        k->axes.v[m->a].ended = ext;
    } else
        k->axes.v[m->a].end = 0;
    k->axes.v[m->a].ext = ext;
    k->axes.v[m->b].ext = 1;
    jot_kernel_refresh(k);
    return true;
}

static uint64_t
merge_renumbered(const int *number, uint64_t axes)
{
    uint64_t out = 0;
    for (int a = 0; a < KERNEL_AXES; a++)
        if ((axes >> a & 1) && number[a] >= 0)
            out |= (uint64_t)1 << number[a];
    return out;
}

/* The axes in `gone`, which nothing uses, leave; the others move up. */
static void
merge_drop(Kernel *k, uint64_t gone)
{
    int number[KERNEL_AXES];
    int64_t ext[KERNEL_AXES];
    Ix map[KERNEL_AXES];
    Space space = {0, ext, NULL};
    int n = (int)k->axes.n;
    for (int a = 0; a < KERNEL_AXES; a++)
        number[a] = -1;
    for (int a = 0; a < n; a++) {
        if (gone >> a & 1)
            continue;
        ext[space.n] = k->axes.v[a].ext;
        k->axes.v[space.n] = k->axes.v[a];
        number[a] = space.n++;
    }
    k->axes.n = (uint32_t)space.n;
    for (int a = 0; a < n; a++)
        map[a] = number[a] < 0 ? jot_ix_const(k->ix, 0) : jot_ix_axis(k->ix, number[a]);
    for (uint32_t i = 0; i < k->ixs.n; i++)
        if (jot_ix_axes(k->ix, k->ixs.v[i]))
            k->ixs.v[i] = jot_ix_subst(k->ix, k->ixs.v[i], n, map, NULL, &space);
    for (uint32_t i = 1; i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        v->axes = merge_renumbered(number, v->axes);
        for (int j = 0; v->op == VAL_AT && j < v->nidx; j++)
            v->ax[j] = (uint8_t)number[v->ax[j]];
    }
    jot_kernel_refresh(k);
}

static bool
merge_possible(const Kernel *k)
{
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (k->axes.v[a].ext < 1)
            return false;
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc)
            return false;
    return k->stores.n > 0;
}

/* ---- dimensions that a reshape left divided ---- */

/* 0: an access is not even; 1: all are, as they were; 2: some that was not now is. */
static int
merge_evens(Kernel *k, const uint32_t *at, const KBuf *b, int outer, int inner)
{
    Ix o = k->ixs.v[*at + (uint32_t)outer], i = k->ixs.v[*at + (uint32_t)inner];
    if (!jot_ix_straight(k->ix, merge_flat(k, o, i, b->ext[inner])))
        return 0;
    return jot_ix_straight(k->ix, o) && jot_ix_straight(k->ix, i) ? 1 : 2;
}

/* Does one index for both dimensions divide nothing, where two did? */
static bool
merge_straightens(Kernel *k, uint32_t buf, int outer, int inner)
{
    const KBuf *b = &k->bufs.v[buf];
    int most = 0, got = 1;
    if (!merge_adjacent(b->layout, outer, inner) || jot_find_u32(k->slots.v, k->slots.n, buf))
        return false;
    for (uint32_t i = 1; i < k->values.n && got; i++)
        if (k->values.v[i].op == VAL_LOAD && k->values.v[i].buf == buf) {
            got = merge_evens(k, &k->values.v[i].at, b, outer, inner);
            most = got > most ? got : most;
        }
    for (uint32_t i = 0; i < k->stores.n && got; i++)
        if (k->stores.v[i].buf == buf) {
            got = merge_evens(k, &k->stores.v[i].at, b, outer, inner);
            most = got > most ? got : most;
        }
    return got && most == 2;
}

static void
merge_flatten(Kernel *k, uint32_t at, int n, int outer, int inner, int64_t ext)
{
    Ix *ix = &k->ixs.v[at];
    Ix flat = merge_flat(k, ix[outer], ix[inner], ext);
    ix[outer] = flat;
    for (int i = inner; i + 1 < n; i++)
        ix[i] = ix[i + 1];
}

/* x[8*i + j/7, j%7] -> x[56*i + j] */
static bool
merge_straighten(Kernel *k, uint32_t buf)
{
    for (int outer = 0; outer + 1 < k->bufs.v[buf].rank; outer++) {
        int64_t ext = k->bufs.v[buf].ext[outer + 1];
        if (!merge_straightens(k, buf, outer, outer + 1))
            continue;
        if (!merge_buffer(k, buf, outer, outer + 1))
            return false;
        for (uint32_t i = 1; i < k->values.n; i++) {
            Value *v = &k->values.v[i];
            if (v->op == VAL_LOAD && v->buf == buf)
                merge_flatten(k, v->at, v->nidx-- + v->ncond, outer, outer + 1, ext);
        }
        for (uint32_t i = 0; i < k->stores.n; i++) {
            KStore *s = &k->stores.v[i];
            if (s->buf == buf)
                merge_flatten(k, s->at, s->nidx-- + s->ncond, outer, outer + 1, ext);
        }
        outer = -1; /* and with what is beside it */
        jot_kernel_refresh(k);
    }
    return !k->mem->failed;
}

JOT_FN bool
jot_merge_axes(Kernel *k)
{
    Merge m;
    uint32_t nbufs = k->bufs.n;
    uint64_t gone = 0;
    bool ok;
    if (!merge_possible(k))
        return true;
    m.k = k;
    m.outer = jot_mem_new(k->mem, nbufs, sizeof *m.outer);
    m.inner = jot_mem_new(k->mem, nbufs, sizeof *m.inner);
    ok = m.outer && m.inner;
    for (uint32_t b = 1; b < nbufs && ok; b++)
        ok = merge_straighten(k, b);
    for (m.a = 0; ok && m.a < (int)k->axes.n; m.a++)
        for (m.b = 0; ok && m.b < (int)k->axes.n; m.b++) {
            if (m.a == m.b || k->axes.v[m.a].ext == 1 || k->axes.v[m.b].ext == 1)
                continue;
            m.both = (uint64_t)1 << m.a | (uint64_t)1 << m.b;
            if (!merge_legal(&m))
                continue;
            ok = merge_pair(&m);
            gone |= (uint64_t)(k->axes.v[m.b].ext == 1) << m.b;
            m.b = -1; /* and with what comes after it */
        }
    if (ok && gone)
        merge_drop(k, gone);
    jot_mem_free(k->mem, m.outer, nbufs * sizeof *m.outer);
    jot_mem_free(k->mem, m.inner, nbufs * sizeof *m.inner);
    return ok && !k->mem->failed;
}
