/* ccode/stencil_plane.c - stencils over planes: the image's fastest axis in lanes, its borders in a
 * tile of zeros (or of whatever stands outside).
 *
 *     y[c, h, w]  = sum over p q of x[c, h + p, w + q] * g[c, p, q]        a window: few terms
 *     d[c, p, q]  = sum over h w of x[c, h + p, w + q] * y[c, h, w]        few results, a plane each
 *
 *     %x: c:1p s:1 t:16 t:1v; res tile[s, t]                               read once, with its border
 *     %y: c:1p h:8 w:16 | p:1u q:1u h:1u w:1v                              rows share what they load
 *     !0: c:1p h:8 w:16 h:1u w:1v
 *     %d: c:1p | h:8 w:16 p:1u q:1u h:1u w:1v                              the few results in registers
 *     !1: c:1p p:1u q:1u
 *
 * Depthwise convolutions and their gradients are these, by input as y with the taps turned round.
 * A kernel may hold several: they share the loops around the tile, and the tile.
 *
 *   requires  a verified kernel, layouts set
 *   keeps     what is computed
 *   breaks    numbers of values: windowed loads come to be read through a tile
 *
 * Read before: ccode/stencil.h, ccode/contract_pack.c (tiles). After: backends/plan_text.c. */
#include "ccode/stencil.h"

enum {
    PLANE_SUMS = 4,
    PLANE_TILES = 4,
    PLANE_POINTS = 27,      /* of a window: all are unrolled */
    PLANE_NBYTES = 1 << 18  /* of a tile: it is read again for each row of the window */
};

typedef struct {
    uint32_t load;          /* what the tile holds: a load of its own */
    int n, axis[JOT_MAX_RANK]; /* of the tile, outermost first */
    uint32_t buf;
} PlaneTile;

typedef struct {
    Kernel *k;
    const Target *target;
    int lanes;
    bool *used;
    uint32_t sum[PLANE_SUMS], load[PLANE_TILES];
    int nsums, nloads;
    int lane, row;          /* axes; row -1: none */
    uint64_t bent;          /* axes that stand in a sum of axes: windows and what they move over */
    uint64_t window;        /* of them, those with few points */
    uint64_t outside;       /* the rest: loops around a tile */
    PlaneTile tile[PLANE_TILES];
    Space space;
    int64_t ext[KERNEL_AXES];
} Plane;

static uint64_t
plane_bit(int axis)
{
    return (uint64_t)1 << axis;
}

/* The axes of an index if there are several, as h + p has; 0: one or none. */
static uint64_t
plane_bent(const Kernel *k, const Value *load, int d)
{
    uint64_t axes = jot_ix_axes(k->ix, k->ixs.v[load->at + (uint32_t)d]);
    return axes & (axes - 1) ? axes : 0;
}

static int64_t
plane_stride(const Plane *p, uint32_t buf, uint32_t at, int axis)
{
    const Kernel *k = p->k;
    bool inside;
    Ix address = jot_layout_addr(k->bufs.v[buf].layout, k->ix, &k->ixs.v[at], &p->space);
    int64_t stride = jot_ix_coef(k->ix, address, axis, &inside);
    return !address || inside ? -1 : stride;
}

static int64_t
plane_points(const Plane *p, uint64_t axes)
{
    int64_t points = 1;
    for (uint32_t a = 0; a < p->k->axes.n; a++)
        if ((axes >> a & 1) && points < INT32_MAX)
            points *= p->ext[a];
    return points;
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
plane_below(const Kernel *k, uint32_t value, uint32_t root, int depth)
{
    const Value *v = &k->values.v[root];
    bool found = value == root;
    for (int i = 0; i < v->narg && !found && depth < VALUE_DEPTH; i++)
        found = plane_below(k, value, k->args.v[v->arg + (uint32_t)i], depth + 1);
    return found;
}

/* Windows step by one along the axis, other loads by one or not at all, as do stores. */
static bool
plane_runs_along(const Plane *p, int axis)
{
    const Kernel *k = p->k;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        int64_t stride;
        bool bent = false;
        if (!p->used[i] || v->op != VAL_LOAD)
            continue;
        stride = plane_stride(p, v->buf, v->at, axis);
        for (int j = 0; j < p->nloads; j++)
            bent |= p->load[j] == i;
        if (stride != 1 && (bent || stride != 0))
            return false;
        for (int c = 0; c < v->ncond && !bent; c++)
            if (jot_ix_axes(k->ix, k->ixs.v[v->at + v->nidx + (uint32_t)c]) & p->bent)
                return false;
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        int64_t stride = plane_stride(p, s->buf, s->at, axis);
        if (s->acc || s->ncond || k->bufs.v[s->buf].dtype != JOT_F32 ||
            (s->free >> axis & 1 ? stride != 1 : stride != 0))
            return false;
    }
    return true;
}

/* A window's sum keeps the lanes' axis and sums over few bent ones; others sum over it, keep few, and
 * those that keep none may be of windows' sums. What they have few of is the window. */
static bool
plane_keeps(const Plane *p, uint32_t sum)
{
    return p->k->values.v[sum].free >> p->lane & 1;
}

static uint64_t
plane_few(const Plane *p, uint32_t sum)
{
    const Value *v = &p->k->values.v[sum];
    return plane_keeps(p, sum) ? v->axes : v->free & p->bent;
}

static bool
plane_sum(Plane *p, uint32_t sum)
{
    const Value *v = &p->k->values.v[sum];
    bool keeps = plane_keeps(p, sum);
    uint64_t few = plane_few(p, sum);
    if (v->ew != EW_ADD && !(keeps && (v->ew == EW_MAX || v->ew == EW_MIN)))
        return false;
    if ((!keeps && !(v->axes >> p->lane & 1)) || (few & ~p->bent) || (few >> p->lane & 1) ||
        plane_points(p, few) > PLANE_POINTS)
        return false;
    p->window |= few;
    p->outside |= (v->free | v->axes) & ~p->bent;
    for (int i = 0; i < p->nsums; i++)
        if (p->sum[i] != sum && plane_below(p->k, p->sum[i], sum, 0) &&
            (keeps || few || !plane_keeps(p, p->sum[i])))
            return false;
    return true;
}

/* The sum that the store is of: the one below it that is below no other; -1: there are several. */
static int
plane_owner(const Plane *p, uint32_t store)
{
    const Kernel *k = p->k;
    int owner = -1, sums = 0;
    for (int j = 0; j < p->nsums; j++) {
        bool top = plane_below(k, p->sum[j], k->stores.v[store].value, 0);
        for (int i = 0; i < p->nsums && top; i++)
            top = i == j || !plane_below(k, p->sum[j], p->sum[i], 0) ||
                  !plane_below(k, p->sum[i], k->stores.v[store].value, 0);
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
        int owner = plane_owner(p, i);
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
        int64_t stride = plane_stride(p, load->buf, load->at, a);
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
            (all & p->window & ~plane_few(p, p->sum[i])) ||
            (plane_keeps(p, p->sum[i]) && (p->outside & ~v->free)))
            return false;
    }
    return true;
}

/* ---- tiles -------------------------------------------------------------------------------- */

/* A condition is a bound of the load's own index, so a border answers it. */
static bool
plane_bound(const Plane *p, const Value *load, Ix cond)
{
    const Kernel *k = p->k;
    int64_t known;
    bool found = jot_ix_is_const(k->ix, cond, &known) && known;
    for (int d = 0; d < load->nidx && !found; d++) {
        Ix ix = k->ixs.v[load->at + (uint32_t)d];
        Ix end = jot_ix_const(k->ix, k->bufs.v[load->buf].ext[d]);
        found = plane_bent(k, load, d) && (cond == jot_ix_ge0(k->ix, ix, NULL) ||
                                           cond == jot_ix_lt(k->ix, ix, end, NULL) ||
                                           cond == jot_ix_ge0(k->ix, ix, &p->space) ||
                                           cond == jot_ix_lt(k->ix, ix, end, &p->space));
    }
    return found;
}

/* A border of this layout, or none, is enough as it lies. */
static bool
plane_lies(const Plane *p, const Value *load)
{
    const Layout *l = p->k->bufs.v[load->buf].layout;
    for (int d = 0; load->ncond && d < load->nidx; d++) {
        int64_t lo, hi;
        if (plane_bent(p->k, load, d) &&
            (!jot_ix_range(p->k->ix, p->k->ixs.v[load->at + (uint32_t)d], &p->space, &lo, &hi) ||
             lo < -l->halo_lo[d] || hi >= l->ext[d] + l->halo_hi[d] ||
             l->halo_value.u != load->c.u))
            return false;
    }
    return true;
}

static bool
plane_tile_fits(const Plane *p, const Value *load)
{
    const Kernel *k = p->k;
    int64_t nelem = 1;
    for (int i = 0; i < load->ncond; i++)
        if (!plane_bound(p, load, k->ixs.v[load->at + load->nidx + (uint32_t)i]))
            return false;
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
    Ix index[JOT_MAX_RANK], to[JOT_MAX_RANK], cond[2 * JOT_MAX_RANK];
    char called[16]; /* the schedule's text finds it by that */
    Text buf = {0};
    uint32_t read;
    Layout layout;
    int nconds = 0;
    for (int d = 0; d < v.nidx; d++)
        index[d] = k->ixs.v[v.at + (uint32_t)d];
    for (int i = 0; i < 2 * v.nidx; i++) { /* the dimension of the lanes comes last */
        const int d = i % v.nidx;
        char name[16];
        Text text = {0};
        int64_t first, last;
        if (!plane_bent(k, &v, d) ||
            (plane_bent(k, &v, d) >> p->lane & 1) != (uint64_t)(i >= v.nidx))
            continue;
        jot_ix_range(k->ix, index[d], &p->space, &first, &last);
        ext[t->n] = k->bufs.v[v.buf].ext[d];
        lo[t->n] = first < 0 ? -first : 0;
        hi[t->n] = last >= ext[t->n] ? last - ext[t->n] + 1 : 0;
        text.s = name;
        text.cap = sizeof name;
        jot_text_f(&text, "t%d%d", number, d);
        t->axis[t->n] = own[t->n] = jot_kernel_axis(k, name, ext[t->n]);
        if (own[t->n] < 0)
            return false;
        to[t->n] = index[d];
        index[d] = jot_ix_axis(k->ix, own[t->n]);
        cond[nconds++] = jot_ix_ge0(k->ix, index[d], NULL);
        cond[nconds++] = jot_ix_lt(k->ix, index[d], jot_ix_const(k->ix, ext[t->n]), NULL);
        t->n++;
    }
    t->load = jot_v_load(k, v.buf, index, nconds, cond, v.c);
    read = t->load ? jot_v_at(k, t->load, t->n, own, to) : 0;
    buf.s = called;
    buf.cap = sizeof called;
    jot_text_f(&buf, number ? "tile%d" : "tile", number);
    t->buf = jot_kernel_buf(k, called, JOT_F32, BUF_SCRATCH, t->n, ext);
    if (!read || !t->buf || !jot_layout_make(&layout, t->n, ext, 0, NULL, lo, hi, NULL))
        return false;
    layout.halo_value = v.c;
    jot_kernel_layout(k, t->buf, &layout);
    return jot_v_replace(k, old, read, old) != 0;
}

/* The term is 0 where the condition does not hold: a factor is. */
static bool
plane_zero_without(const Kernel *k, uint32_t value, Ix cond)
{
    const Value *v = &k->values.v[value];
    bool found = false;
    if (v->op == VAL_EW && v->ew == EW_MUL)
        return plane_zero_without(k, k->args.v[v->arg], cond) ||
               plane_zero_without(k, k->args.v[v->arg + 1], cond);
    for (int i = 0; v->op == VAL_LOAD && v->c.u == 0 && i < v->ncond; i++)
        found |= k->ixs.v[v->at + v->nidx + (uint32_t)i] == cond;
    return found;
}

/* Are there conditions on terms other than those that factors have anyway? */
static bool
plane_conditions(const Plane *p)
{
    const Kernel *k = p->k;
    for (int i = 0; i < p->nsums; i++) {
        const Value *v = &k->values.v[p->sum[i]];
        for (int c = 0; c < v->ncond; c++)
            if (v->ew != EW_ADD || !plane_zero_without(k, k->args.v[v->arg],
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
    bool need[PLANE_TILES];
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
    memset(p->used, 0, KERNEL_VALUES * sizeof *p->used);
    jot_kernel_used(k, p->used);
    p->nsums = 0;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (p->used[i] && k->values.v[i].op == VAL_REDUCE)
            p->sum[p->nsums++] = i;
    return true;
}

/* ---- schedule ----------------------------------------------------------------------------- */

static void
plane_loops(const Plane *p, Text *text, uint64_t axes, const char *kind)
{
    for (uint32_t a = 0; a < p->k->axes.n && a < 64; a++)
        if (axes >> a & 1)
            jot_text_f(text, " %s%s", p->k->axes.v[a].name, kind);
}

/* Rows of a block: even ones. */
static int64_t
plane_rows(const Plane *p, int64_t most)
{
    int64_t ext = p->row < 0 ? 1 : p->ext[p->row], blocks;
    for (int64_t r = most; r > most / 2; r--)
        if (ext % r == 0)
            return r;
    blocks = (ext + most - 1) / most;
    return (ext + blocks - 1) / blocks;
}

static void
plane_outside(const Plane *p, Text *text)
{
    plane_loops(p, text, p->outside, ":1p");
}

static void
plane_block(const Plane *p, Text *text, int64_t rows)
{
    uint64_t others = p->bent & ~p->window & ~plane_bit(p->lane);
    if (p->row >= 0)
        others &= ~plane_bit(p->row);
    plane_loops(p, text, others, "");
    if (p->row >= 0)
        jot_text_f(text, " %s:%lld", p->k->axes.v[p->row].name, (long long)rows);
    jot_text_f(text, " %s:%d", p->k->axes.v[p->lane].name, p->lanes);
}

static void
plane_copies(const Plane *p, Text *text)
{
    if (p->row >= 0)
        jot_text_f(text, " %s:1u", p->k->axes.v[p->row].name);
    jot_text_f(text, " %s:1v", p->k->axes.v[p->lane].name);
}

static void
plane_tile_text(const Plane *p, const PlaneTile *t, Text *text)
{
    const Kernel *k = p->k;
    jot_text_f(text, "%%%u:", t->load);
    plane_outside(p, text);
    for (int i = 0; i + 1 < t->n; i++)
        jot_text_f(text, " %s", k->axes.v[t->axis[i]].name);
    jot_text_f(text, " %s:%d %s:1v; res %s[", k->axes.v[t->axis[t->n - 1]].name, p->lanes,
               k->axes.v[t->axis[t->n - 1]].name, k->bufs.v[t->buf].name);
    for (int i = 0; i < t->n; i++)
        jot_text_f(text, "%s%s", i ? ", " : "", k->axes.v[t->axis[i]].name);
    jot_text_f(text, "]\n");
}

static int64_t
plane_window_rows(const Plane *p)
{
    return plane_rows(p, p->target->vectors >= 32 ? 8 : 4);
}

/* A window's sum, and what is stored of it. */
static void
plane_window_text(const Plane *p, int sum, Text *text)
{
    const Kernel *k = p->k;
    int64_t rows = plane_window_rows(p);
    jot_text_f(text, "%%%u:", p->sum[sum]);
    plane_outside(p, text);
    plane_block(p, text, rows);
    jot_text_f(text, " |");
    plane_loops(p, text, k->values.v[p->sum[sum]].axes, ":1u");
    plane_copies(p, text);
    jot_text_f(text, "\n");
    for (uint32_t i = 0; i < k->stores.n; i++) {
        if (plane_owner(p, i) != sum)
            continue;
        jot_text_f(text, "!%u:", i);
        plane_outside(p, text);
        plane_block(p, text, rows);
        plane_copies(p, text);
        jot_text_f(text, "\n");
    }
}

/* Where a plane's sums wait for those of others: a buffer over the axes outside and the few. */
static bool
plane_part_text(const Plane *p, uint32_t sum, Text *text)
{
    Kernel *k = p->k;
    uint64_t place = p->outside | (k->values.v[sum].free & p->window);
    int64_t ext[JOT_MAX_RANK];
    char name[16];
    Text t = {0};
    int rank = 0;
    t.s = name;
    t.cap = sizeof name;
    jot_text_f(&t, "part%u", sum);
    jot_text_f(text, "; res %s[", name);
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (place >> a & 1) {
            if (rank == JOT_MAX_RANK)
                return false;
            jot_text_f(text, "%s%s", rank ? ", " : "", k->axes.v[a].name);
            ext[rank++] = k->axes.v[a].ext;
        }
    jot_text_f(text, "]");
    return jot_kernel_buf(k, name, JOT_F32, BUF_SHARED, rank, ext) != 0;
}

/* Does the sum go over several planes? */
static bool
plane_parts(const Plane *p, int sum)
{
    return (p->k->values.v[p->sum[sum]].axes & p->outside) != 0;
}

/* A sum over planes: of each plane apart, where there are several. */
static bool
plane_sum_text(const Plane *p, int sum, Text *text)
{
    const Value v = p->k->values.v[p->sum[sum]];
    bool parts = plane_parts(p, sum), ok = true;
    jot_text_f(text, "%%%u:", p->sum[sum]);
    plane_outside(p, text);
    jot_text_f(text, parts ? " ||" : " |");
    plane_block(p, text, v.free & p->window ? plane_rows(p, 4) : plane_window_rows(p));
    plane_loops(p, text, v.free & p->window, ":1u");
    plane_copies(p, text);
    if (parts)
        ok = plane_part_text(p, p->sum[sum], text);
    jot_text_f(text, "\n");
    return ok;
}

static void
plane_finish_text(const Plane *p, int sum, Text *text)
{
    const Kernel *k = p->k;
    const Value *v = &k->values.v[p->sum[sum]];
    bool parts = plane_parts(p, sum);
    if (parts) {
        jot_text_f(text, "+%%%u:", p->sum[sum]);
        plane_loops(p, text, v->free & p->outside, ":1p");
        plane_loops(p, text, v->free & p->window, "");
        jot_text_f(text, " |");
        plane_loops(p, text, v->axes & p->outside, ":1d");
        jot_text_f(text, "\n");
    }
    for (uint32_t i = 0; i < k->stores.n; i++) {
        if (plane_owner(p, i) != sum)
            continue;
        jot_text_f(text, "!%u:", i);
        plane_loops(p, text, v->free & p->outside, ":1p");
        plane_loops(p, text, v->free & p->window, parts ? "" : ":1u");
        jot_text_f(text, "\n");
    }
}

/* Tiles, windows, the sums that may be of these, those with few results; then planes together. */
static bool
plane_text(const Plane *p, Text *text)
{
    bool ok = true;
    int phase = 0;
    jot_text_f(text, "lanes %d\nfma\n", p->lanes);
    for (int i = 0; i < p->nloads; i++)
        if (p->tile[i].load)
            plane_tile_text(p, &p->tile[i], text);
    for (int i = 0; i < p->nsums; i++)
        if (plane_keeps(p, p->sum[i]))
            plane_window_text(p, i, text);
    for (int few = 0; few < 2; few++)
        for (int i = 0; i < p->nsums && ok; i++)
            if (!plane_keeps(p, p->sum[i]) && (plane_few(p, p->sum[i]) != 0) == few) {
                ok = plane_sum_text(p, i, text);
                if (!plane_parts(p, i))
                    plane_finish_text(p, i, text);
            }
    for (int i = 0; i < p->nsums && ok; i++)
        if (!plane_keeps(p, p->sum[i]) && plane_parts(p, i)) {
            jot_text_f(text, phase++ ? "" : "phase\n");
            plane_finish_text(p, i, text);
        }
    return ok;
}

JOT_FN bool
jot_plane_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Plane *p;
    Text text = {NULL, NULL, 0, 0};
    bool ok;
    if (lanes < 2 || k->stores.n == 0 || k->values.n + 64 > KERNEL_VALUES)
        return false;
    p = jot_mem_new(k->mem, 1, sizeof *p);
    if (p)
        p->used = jot_mem_new(k->mem, KERNEL_VALUES, sizeof *p->used);
    if (!p || !p->used) {
        jot_mem_free(k->mem, p, sizeof *p);
        return false;
    }
    p->k = k;
    p->target = target;
    p->lanes = lanes;
    for (uint32_t a = 0; a < k->axes.n; a++)
        p->ext[a] = k->axes.v[a].ext;
    p->space.n = (int)k->axes.n;
    p->space.ext = p->ext;
    jot_kernel_used(k, p->used);
    text.mem = k->mem;
    ok = plane_values(p) && plane_axes(p) && !plane_conditions(p) && plane_tiles(p) &&
         plane_text(p, &text) && !k->mem->failed;
    if (ok && (!jot_sched_read(s, k, text.s, text.n, NULL) || !jot_sched_verify(s, NULL))) {
        jot_sched_close(s);
        ok = false;
    }
    jot_text_free(&text);
    jot_mem_free(k->mem, p->used, KERNEL_VALUES * sizeof *p->used);
    jot_mem_free(k->mem, p, sizeof *p);
    return ok;
}
