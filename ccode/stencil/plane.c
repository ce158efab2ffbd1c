/* ccode/stencil/plane.c - stencils over planes: the image's fastest axis in lanes, its borders in a
 * tile of zeros (or of whatever stands outside).
 *
 *     y[c, h, w]  = sum over p q of x[c, h + p, w + q] * g[c, p, q]    a window: few terms
 *     d[c, p, q]  = sum over h w of x[c, h + p, w + q] * y[c, h, w]    few results, a plane each
 *
 *     %x: c:1p s:1 t:16 t:1v; res tile[s, t]                           read once, with its border
 *     %y: c:1p h:8 w:16 | p:1u q:1u h:1u w:1v                          rows share what they load
 *     !0: c:1p h:8 w:16 h:1u w:1v
 *     %d: c:1p | h:8 w:16 p:1u q:1u h:1u w:1v                          the few results in registers
 *     !1: c:1p p:1u q:1u
 *
 * Depthwise convolutions and their gradients are these, by input as y with the taps turned round.
 * A kernel may hold several: they share the loops around the tile, and the tile.
 *
 *   requires  a verified kernel, layouts set
 *   keeps     what is computed
 *   breaks    numbers of values: windowed loads come to be read through a tile
 *
 * Here: is it one, and the tiles. ccode/stencil/plane_text.c writes the schedule.
 *
 * Read before: ccode/stencil/stencil.h, ccode/contract/pack.c (tiles). After:
 * ccode/stencil/plane_text.c. */
#include "ccode/stencil/plane.h"

/* The axes of an index if there are several, as h + p has; 0: one or none. */
static uint64_t
plane_bent(const Kernel *k, const Value *load, int d)
{
    uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[load->at + (uint32_t)d]);
    return axes & (axes - 1) ? axes : 0;
}

/* ---- is it one ---------------------------------------------------------------------------- */

/* Sums of arithmetic on loads, none inside another; those loads that are read through windows. */
static bool
plane_values(Plane *p)
{
    const Kernel *k = p->k;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        bool bent = false;
        if (!p->used[i])
            continue;
        if (v->op == VAL_AT || v->op == VAL_CALL || v->op == VAL_INDEX || v->op == VAL_TABLE ||
            v->dtype != JOT_F32 || (v->op == VAL_LOAD && k->bufs.v[v->buf].dtype != JOT_F32))
            return false;
        if (v->op == VAL_REDUCE) {
            if (p->nsums == PLANE_SUMS)
                return false;
            p->sum[p->nsums++] = i;
        }
        for (int d = 0; v->op == VAL_LOAD && d < v->nidx; d++) {
            p->bent |= plane_bent(k, v, d);
            bent |= plane_bent(k, v, d) != 0;
        }
        if (bent && p->nloads == PLANE_TILES)
            return false;
        if (bent)
            p->load[p->nloads++] = i;
    }
    return p->nsums && p->nloads;
}

/* Does the value stand below another? */
static bool
plane_below(const Kernel *k, uint32_t value, uint32_t root)
{
    OperandWalk w;
    uint32_t n;
    for (jot_operands_open(&w, k, root); (n = jot_operands_next(&w)) != 0;)
        if (n == value)
            return true;
    return false;
}

/* Windows step by one along the axis, or by two; other loads by one or not at all, as do stores. */
static bool
plane_runs_along(const Plane *p, int axis)
{
    const Kernel *k = p->k;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int64_t stride;
        bool bent = jot_find_u32(p->load, (uint32_t)p->nloads, i);
        if (!p->used[i] || v->op != VAL_LOAD)
            continue;
        stride = jot_kernel_stride(p->k, v->buf, v->at, axis);
        if (stride != 1 && stride != (bent ? 2 : 0))
            return false;
        if (!bent && (jot_kernel_cond_axes(k, v) & p->bent))
            return false;
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        int64_t stride = jot_kernel_stride(p->k, s->buf, s->at, axis);
        if (s->acc || s->ncond || k->bufs.v[s->buf].dtype != JOT_F32 ||
            (s->free >> axis & 1 ? stride != 1 : stride != 0))
            return false;
    }
    return true;
}

JOT_FN bool
jot_plane_keeps(const Plane *p, uint32_t sum)
{
    return p->k->values.v[sum].free >> p->lane & 1;
}

JOT_FN uint64_t
jot_plane_few(const Plane *p, uint32_t sum)
{
    const Value *v = &p->k->values.v[sum];
    return jot_plane_keeps(p, sum) ? v->axes : v->free & p->bent;
}

/* Of stride 2 an extreme takes fewer operations in two steps: over rows into a line, then along it
 * (ccode/rewrite/line_buffer.c). */
static bool
plane_extreme(const Plane *p)
{
    bool one = true;
    for (int j = 0; j < p->nloads; j++) {
        const Value *v = &p->k->values.v[p->load[j]];
        one &= jot_kernel_stride(p->k, v->buf, v->at, p->lane) == 1;
    }
    return one;
}

static bool
plane_sum(Plane *p, uint32_t sum)
{
    const Value *v = &p->k->values.v[sum];
    bool keeps = jot_plane_keeps(p, sum);
    uint64_t few = jot_plane_few(p, sum);
    if (v->ew != EW_ADD && !(keeps && (v->ew == EW_MAX || v->ew == EW_MIN) && plane_extreme(p)))
        return false;
    if ((!keeps && !(v->axes >> p->lane & 1)) || (few & ~p->bent) || (few >> p->lane & 1) ||
        jot_kernel_extent(p->k, few) > PLANE_MOST)
        return false;
    p->window |= few;
    p->outside |= (v->free | v->axes) & ~p->bent;
    for (int i = 0; i < p->nsums; i++)
        if (p->sum[i] != sum && plane_below(p->k, p->sum[i], sum) &&
            (keeps || few || !jot_plane_keeps(p, p->sum[i])))
            return false;
    return true;
}

JOT_FN int
jot_plane_owner(const Plane *p, uint32_t store)
{
    const Kernel *k = p->k;
    int owner = -1, sums = 0;
    for (int j = 0; j < p->nsums; j++) {
        bool top = plane_below(k, p->sum[j], k->stores.v[store].value);
        for (int i = 0; i < p->nsums && top; i++)
            top = i == j || !plane_below(k, p->sum[j], p->sum[i]) ||
                  !plane_below(k, p->sum[i], k->stores.v[store].value);
        if (top) {
            owner = j;
            sums++;
        }
    }
    return sums == 1 ? owner : -1;
}

/* Each store is of one sum and keeps what it keeps. */
static bool
plane_stores(const Plane *p)
{
    const Kernel *k = p->k;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        int owner = jot_plane_owner(p, i);
        if (owner < 0 || k->stores.v[i].free != k->values.v[p->sum[owner]].free)
            return false;
    }
    return k->stores.n > 0;
}

/* The axis in lanes, the windows; of the other axes that windows move over the closest is the row.
 * Every sum runs over, or keeps, all of them and what is outside. */
static bool
plane_axes(Plane *p)
{
    const Kernel *k = p->k;
    const Value *load = &k->values.v[p->load[0]];
    int64_t least = INT64_MAX;
    p->lane = p->row = -1;
    for (int a = 0; a < (int)k->axes.n && p->lane < 0; a++)
        if ((p->bent >> a & 1) && p->ext[a] >= 4 && plane_runs_along(p, a)) {
            p->lane = a;
            for (int i = 0; i < p->nsums && p->lane >= 0; i++)
                if (!plane_sum(p, p->sum[i]))
                    p->lane = -1;
            if (p->lane < 0)
                p->window = p->outside = 0;
        }
    if (p->lane < 0 || !plane_stores(p))
        return false;
    for (int a = 0; a < (int)k->axes.n; a++) {
        int64_t stride = jot_kernel_stride(p->k, load->buf, load->at, a);
        if (!(p->bent >> a & 1) || a == p->lane || (p->window >> a & 1))
            continue;
        stride = stride < 0 ? -stride : stride;
        if (stride > 0 && stride < least) {
            least = stride;
            p->row = a;
        }
    }
    for (int i = 0; i < p->nsums; i++) {
        const Value *v = &k->values.v[p->sum[i]];
        uint64_t all = v->free | v->axes;
        if (((p->bent | p->outside) & ~all & ~p->window) ||
            (all & p->window & ~jot_plane_few(p, p->sum[i])) ||
            (jot_plane_keeps(p, p->sum[i]) && (p->outside & ~v->free)))
            return false;
    }
    return true;
}

/* What of the window is unrolled: all of it, or what moves along with the row, for rows share what
 * these load: 8 rows of 7 taps read 14. The rest are loops. */
static bool
plane_turns(Plane *p)
{
    const Kernel *k = p->k;
    const Value *load = &k->values.v[p->load[0]];
    uint64_t rows = 0;
    p->turns = 0;
    if (jot_kernel_extent(p->k, p->window) <= WINDOW_POINTS)
        return true;
    for (int d = 0; d < load->nidx && p->row >= 0; d++)
        if (plane_bent(k, load, d) >> p->row & 1)
            rows |= plane_bent(k, load, d) & p->window;
    p->turns = p->window & ~rows;
    return rows && jot_kernel_extent(p->k, rows) <= WINDOW_POINTS;
}

/* ---- tiles -------------------------------------------------------------------------------- */

/* A border of this layout, or none, is enough as it lies. */
static bool
plane_lies(const Plane *p, const Value *load)
{
    const Layout *l = p->k->bufs.v[load->buf].layout;
    for (int d = 0; load->ncond && d < load->nidx; d++)
        if (plane_bent(p->k, load, d) &&
            (l->halo_value.u != load->c.u ||
             !jot_layout_reaches(l, p->k->ix, d, p->k->ixs.v[load->at + (uint32_t)d], &p->space)))
            return false;
    return true;
}

static bool
plane_tile_fits(const Plane *p, const Value *load)
{
    const Kernel *k = p->k;
    int64_t nelem = 1;
    uint32_t bent = 0;
    for (int d = 0; d < load->nidx; d++)
        bent |= (uint32_t)(plane_bent(k, load, d) != 0) << d;
    if (!jot_kernel_bounds(k, load, bent, load->at + load->nidx, load->ncond))
        return false; /* a border answers no more */
    for (int d = 0; d < load->nidx; d++) {
        int64_t lo, hi;
        if (!plane_bent(k, load, d))
            continue;
        if (!jot_ix_range(k->ix, k->ixs.v[load->at + (uint32_t)d], &p->space, &lo, &hi) ||
            lo < -1024 || hi > k->bufs.v[load->buf].ext[d] + 1024)
            return false;
        nelem *= (hi > k->bufs.v[load->buf].ext[d] ? hi : k->bufs.v[load->buf].ext[d]) -
                 (lo < 0 ? lo : 0) + 1;
    }
    return nelem * 4 <= PLANE_NBYTES;
}

/* The load is read through a tile from here on: a load with axes of its own where windows move. It
 * keeps its bounds, of those axes now, so that it is the same value wherever it is computed. */
static bool
plane_tile(Plane *p, int number)
{
    Kernel *k = p->k;
    PlaneTile *t = &p->tile[number];
    const uint32_t old = p->load[number];
    const Value v = k->values.v[old];
    int64_t lo[JOT_MAX_RANK] = {0}, hi[JOT_MAX_RANK] = {0}, ext[JOT_MAX_RANK];
    int own[JOT_MAX_RANK];
    int dims[JOT_MAX_RANK];
    Ix cond[2 * JOT_MAX_RANK];
    char called[16]; /* the schedule's text finds it by that */
    Text buf = {0};
    uint32_t read;
    Layout layout;
    int nconds = 0;
    for (int i = 0; i < 2 * v.nidx; i++) { /* the dimension of the lanes comes last */
        const int d = i % v.nidx;
        int64_t first, last;
        if (!plane_bent(k, &v, d) ||
            (plane_bent(k, &v, d) >> p->lane & 1) != (uint64_t)(i >= v.nidx))
            continue;
        jot_ix_range(k->ix, k->ixs.v[v.at + (uint32_t)d], &p->space, &first, &last);
        ext[t->n] = k->bufs.v[v.buf].ext[d];
        lo[t->n] = first < 0 ? -first : 0;
        hi[t->n] = last >= ext[t->n] ? last - ext[t->n] + 1 : 0;
        t->axis[t->n] = own[t->n] = jot_kernel_axis_f(k, ext[t->n], "t%d%d", number, d);
        if (own[t->n] < 0)
            return false;
        nconds += jot_ix_bounds(k->ix, jot_ix_axis(k->ix, own[t->n]), ext[t->n], NULL,
                                cond + nconds);
        dims[t->n++] = d;
    }
    read = jot_v_distinct(k, old, t->n, dims, own, nconds, cond);
    t->load = read ? jot_v_arg(k, read, 0) : 0;
    buf.s = called;
    buf.cap = sizeof called;
    jot_text_f(&buf, number ? "tile%d" : "tile", number);
    t->buf = jot_kernel_buf(k, called, JOT_F32, BUF_SCRATCH, t->n, ext);
    if (!read || !t->buf || !jot_layout_make(&layout, t->n, ext, 0, NULL, lo, hi))
        return false;
    layout.halo_value = v.c;
    jot_kernel_layout(k, t->buf, &layout);
    return jot_v_replace(k, old, read, old) != 0;
}

/* Are there conditions on terms other than those that factors have anyway? */
static bool
plane_conditions(const Plane *p)
{
    const Kernel *k = p->k;
    for (int i = 0; i < p->nsums; i++) {
        const Value *v = &k->values.v[p->sum[i]];
        for (int c = 0; c < v->ncond; c++)
            if (v->ew != EW_ADD || !jot_zero_without(k, k->args.v[v->arg],
                                                     k->ixs.v[v->at + v->nidx + (uint32_t)c]))
                return true;
    }
    return false;
}

/* All windowed loads that need one get a tile; the sums are found anew. */
static bool
plane_tiles(Plane *p)
{
    Kernel *k = p->k;
    bool need[PLANE_TILES] = {false};
    for (int i = 0; i < p->nloads; i++) {
        const Value *load = &k->values.v[p->load[i]];
        need[i] = !plane_lies(p, load);
        if (need[i] && !plane_tile_fits(p, load))
            return false;
    }
    for (int i = 0; i < p->nsums; i++)
        k->values.v[p->sum[i]].ncond = 0;
    for (int i = 0; i < p->nloads; i++)
        if (need[i] && !plane_tile(p, i))
            return false;
    memset(p->used, 0, sizeof p->used);
    jot_kernel_used(k, p->used);
    p->nsums = 0;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->used[i] && k->values.v[i].op == VAL_REDUCE)
            p->sum[p->nsums++] = i;
    return true;
}

JOT_FN bool
jot_plane_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Plane *p;
    const char *no;
    Kernel was;
    bool ok;
    if (lanes < 2 || k->stores.n == 0 || k->values.n + 64 > KERNEL_VALUES)
        return jot_sched_no(s, "no lanes, or too many values");
    p = jot_mem_new(k->mem, 1, sizeof *p);
    if (!p)
        return false;
    p->k = k;
    p->target = target;
    p->lanes = lanes;
    p->space = jot_kernel_space(k, p->ext);
    memset(s, 0, sizeof *s);
    jot_kernel_used(k, p->used);
    no = !plane_values(p)    ? "no reductions of floats that are read through windows"
       : !plane_axes(p)      ? "windows or results do not lie along lanes"
       : !plane_turns(p)     ? "too many points in a window"
       : plane_conditions(p) ? "terms have conditions that their factors do not have" : NULL;
    ok = !no;
    if (ok) {
        ok = jot_sched_settle(s, k, &was, jot_kernel_copy(&was, k) && plane_tiles(p)
                                              && jot_plane_write(p, s));
    }
    s->no = ok ? NULL : no ? no : "a tile would be too large, or it is not legal";
    jot_mem_free(k->mem, p, sizeof *p);
    return ok;
}
