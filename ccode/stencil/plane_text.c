/* ccode/stencil/plane_text.c - the schedule of stencils over planes, as text.
 *
 *     tiles, then windows, then sums over them that keep nothing, then those with few results:
 *
 *     %x: c:1p s:1 t:16 t:1v; res tile[s, t]
 *     %y: c:1p h:8 w:16 | p:1u q:1u h:1u w:1v        !0: c:1p h:8 w:16 h:1u w:1v
 *     %d: c:1p | h:8 w:16 p:1u q:1u h:1u w:1v        !1: c:1p p:1u q:1u
 *     %d: c:1p q | h:8 w:16 p:1u h:1u w:1v           more taps than registers: columns in turn
 *     phase                                          where a sum goes over several planes
 *     +%e: p q | c:1d                                !2: p q
 *
 *   requires  a Plane with axes and tiles (ccode/stencil/plane.c)
 *   breaks    nothing; memory for partial sums is new
 *
 * Read before: ccode/stencil/plane.h, ccode/stencil/plane.c, ccode/schedule/text.c. After:
 * ccode/lower/lower.c. */
#include "ccode/stencil/plane.h"

static void
plane_loops(const Plane *p, Text *text, uint64_t axes, const char *kind)
{
    for (uint32_t a = 0; a < p->k->axes.n && a < 64; a++)
        if (axes >> a & 1)
            jot_text_f(text, " %s%s", p->k->axes.v[a].name, kind);
}

/* Points of a window: those that are loops around those that are copies. */
static void
plane_taps(const Plane *p, Text *text, uint64_t axes)
{
    plane_loops(p, text, axes & p->turns, "");
    plane_loops(p, text, axes & ~p->turns, ":1u");
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
    uint64_t others = p->bent & ~p->window & ~((uint64_t)1 << p->lane);
    if (p->row >= 0)
        others &= ~((uint64_t)1 << p->row);
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
    plane_taps(p, text, k->values.v[p->sum[sum]].axes);
    plane_copies(p, text);
    jot_text_f(text, "\n");
    for (uint32_t i = 0; i < k->stores.n; i++) {
        if (jot_plane_owner(p, i) != sum)
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
    int rank = 0;
    jot_text_f(text, "; res part%u[", sum);
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (place >> a & 1) {
            if (rank == JOT_MAX_RANK)
                return false;
            jot_text_f(text, "%s%s", rank ? ", " : "", k->axes.v[a].name);
            ext[rank++] = k->axes.v[a].ext;
        }
    jot_text_f(text, "]");
    return jot_value_buf(k, "part", sum, BUF_SHARED, rank, ext) != 0;
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
    uint64_t few = v.free & p->window;
    bool parts = plane_parts(p, sum), ok = true;
    jot_text_f(text, "%%%u:", p->sum[sum]);
    plane_outside(p, text);
    plane_loops(p, text, few & p->turns, "");
    jot_text_f(text, parts ? " ||" : " |");
    plane_block(p, text, few && !p->turns ? plane_rows(p, 4) : plane_window_rows(p));
    plane_loops(p, text, few & ~p->turns, ":1u");
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
        if (jot_plane_owner(p, i) != sum)
            continue;
        jot_text_f(text, "!%u:", i);
        plane_loops(p, text, v->free & p->outside, ":1p");
        plane_loops(p, text, v->free & p->window & (parts ? ~(uint64_t)0 : p->turns), "");
        plane_loops(p, text, v->free & p->window & (parts ? 0 : ~p->turns), ":1u");
        jot_text_f(text, "\n");
    }
}

/* Tiles, windows, the sums that may be of these, those with few results; then planes together. */
JOT_FN bool
jot_plane_text(const Plane *p, Text *text)
{
    bool ok = true;
    int phase = 0;
    jot_text_f(text, "lanes %d\nfma\n", p->lanes);
    for (int i = 0; i < p->nloads; i++)
        if (p->tile[i].load)
            plane_tile_text(p, &p->tile[i], text);
    for (int i = 0; i < p->nsums; i++)
        if (jot_plane_keeps(p, p->sum[i]))
            plane_window_text(p, i, text);
    for (int few = 0; few < 2; few++)
        for (int i = 0; i < p->nsums && ok; i++)
            if (!jot_plane_keeps(p, p->sum[i]) && (jot_plane_few(p, p->sum[i]) != 0) == few) {
                ok = plane_sum_text(p, i, text);
                if (!plane_parts(p, i))
                    plane_finish_text(p, i, text);
            }
    for (int i = 0; i < p->nsums && ok; i++)
        if (!jot_plane_keeps(p, p->sum[i]) && plane_parts(p, i)) {
            jot_text_f(text, phase++ ? "" : "phase\n");
            plane_finish_text(p, i, text);
        }
    return ok;
}
