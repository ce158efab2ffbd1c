/* ccode/stencil/plane_text.c - the schedule of stencils over planes.
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
 * Read before: ccode/stencil/plane.h, ccode/stencil/plane.c, ccode/schedule/builder.h. After:
 * ccode/lower/lower.c. */
#include "ccode/stencil/plane.h"
#include "target/thresholds.h"

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

static int64_t
plane_window_rows(const Plane *p)
{
    return plane_rows(p, p->target->vectors >= REGISTERS_MANY ? STENCIL_ROWS : STENCIL_ROWS / 2);
}

/* Does the sum go over several planes? */
static bool
plane_parts(const Plane *p, int sum)
{
    return (p->k->values.v[p->sum[sum]].axes & p->outside) != 0;
}

/* Axes: O and o outside, v in lanes, r rows, i others that windows move over, t w of the window:
 * loops, and copies inside. */
static void
plane_roles(const Plane *p, Writer *w, LoopList *outside)
{
    uint64_t lane = (uint64_t)1 << p->lane, row = p->row < 0 ? 0 : (uint64_t)1 << p->row;
    outside->n = 0;
    jot_loops_axes(outside, p->outside, LOOP_PARALLEL);
    jot_write_loops(w, 'O', outside);
    jot_write_axis(w, 'v', p->lane);
    jot_write_axis(w, 'r', p->row);
    jot_write_set(w, 'i', p->bent & ~p->window & ~lane & ~row);
    jot_write_set(w, 't', p->window & p->turns);
    jot_write_set(w, 'w', p->window & ~p->turns);
    jot_write_number(w, 'V', p->lanes);
}

/* The roles of one sum: d o of the axes outside those that it sums over, that it keeps; f few of
 * its results. */
static void
plane_sum_roles(const Plane *p, Writer *w, int sum, int64_t rows)
{
    const Value *v = &p->k->values.v[p->sum[sum]];
    jot_write_number(w, 's', p->sum[sum]);
    jot_write_set(w, 'd', v->axes & p->outside);
    jot_write_set(w, 'o', v->free & p->outside);
    jot_write_set(w, 'f', v->free & p->window);
    jot_write_number(w, 'R', rows);
}

static void
plane_finals(const Plane *p, Writer *w, int sum, const char *line)
{
    for (uint32_t i = 0; i < p->k->stores.n; i++)
        if (jot_plane_owner(p, i) == sum) {
            jot_write_number(w, 's', i);
            jot_write_lines(w, line);
        }
}

static void
plane_tile_stage(const PlaneTile *t, Writer *w)
{
    LoopList around = {0};
    for (int i = 0; i + 1 < t->n; i++)
        jot_loops_add(&around, t->axis[i], 1, LOOP_SERIAL);
    jot_write_number(w, 's', t->load);
    jot_write_number(w, 'b', t->buf);
    jot_write_loops(w, 'T', &around);
    jot_write_axis(w, 'l', t->axis[t->n - 1]);
    jot_write_lines(w, "%$s: $O $T $l:$V $l:1v; res $b[$T, $l]\n");
}

/* A window's sum, and what is stored of it. */
static void
plane_window(const Plane *p, Writer *w, int sum)
{
    plane_sum_roles(p, w, sum, plane_window_rows(p));
    jot_write_lines(w, "%$s: $O $i $r:$R $v:$V | $t $w:1u $r:1u $v:1v\n");
    plane_finals(p, w, sum, "!$s: $O $i $r:$R $v:$V $r:1u $v:1v\n");
}

/* A sum over planes: of each plane apart, where there are several; then they wait for each other in
 * a buffer over the axes outside and the few. */
static void
plane_sum_stage(const Plane *p, Writer *w, int sum)
{
    uint64_t few = p->k->values.v[p->sum[sum]].free & p->window;
    LoopList place = {0};
    jot_loops_axes(&place, p->outside | few, LOOP_SERIAL);
    plane_sum_roles(p, w, sum, few && !p->turns ? plane_rows(p, 4) : plane_window_rows(p));
    jot_write_loops(w, 'P', &place);
    if (plane_parts(p, sum))
        jot_write_lines(w, "%$s: $O $t || $i $r:$R $v:$V $w:1u $r:1u $v:1v; "
                           "res shared part%[$P]\n");
    else
        jot_write_lines(w, "%$s: $O $t | $i $r:$R $v:$V $w:1u $r:1u $v:1v\n");
}

static void
plane_finish(const Plane *p, Writer *w, int sum)
{
    bool parts = plane_parts(p, sum);
    plane_sum_roles(p, w, sum, 0);
    if (parts)
        jot_write_lines(w, "+%$s: $o:1p $f | $d:1d\n");
    plane_finals(p, w, sum, parts ? "!$s: $o:1p $f\n" : "!$s: $o:1p $t $w:1u\n");
}

/* Tiles, windows, the sums that may be of these, those with few results; then planes together. */
JOT_FN bool
jot_plane_write(const Plane *p, Sched *s)
{
    int phase = 0;
    Writer w;
    LoopList outside;
    jot_write_open(&w, s, p->k, p->lanes);
    s->fma = true;
    plane_roles(p, &w, &outside);
    for (int i = 0; i < p->nloads; i++)
        if (p->tile[i].load)
            plane_tile_stage(&p->tile[i], &w);
    for (int i = 0; i < p->nsums; i++)
        if (jot_plane_keeps(p, p->sum[i]))
            plane_window(p, &w, i);
    for (int few = 0; few < 2; few++)
        for (int i = 0; i < p->nsums; i++)
            if (!jot_plane_keeps(p, p->sum[i]) && (jot_plane_few(p, p->sum[i]) != 0) == few) {
                plane_sum_stage(p, &w, i);
                if (!plane_parts(p, i))
                    plane_finish(p, &w, i);
            }
    for (int i = 0; i < p->nsums; i++)
        if (!jot_plane_keeps(p, p->sum[i]) && plane_parts(p, i)) {
            jot_write_lines(&w, phase++ ? "" : "phase\n");
            plane_finish(p, &w, i);
        }
    return jot_write_done(&w);
}
