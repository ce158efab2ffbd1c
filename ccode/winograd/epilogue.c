/* ccode/winograd/epilogue.c - sums that ride on the stores of a convolution by Winograd's tiles.
 *
 *     blocks of any tiles                 bands: rows of tiles of one image
 *     fuse wt = n h w                     fuse wb = n h    fuse wt = hr w
 *     %wv: wt:112p wt ...                 %wv: wb:1p wt ...
 *     !0:  wt:112p wt ...                 !0:  wb:1p wt ...
 *                                         %7:  wb:1p o:32 | hs ws ...; res part7[n, h, o]
 *
 * Sums run over rows and pixels, not over tiles: so a short tile at an odd end counts what is in
 * it. A step is a band of the image where that has about as many tiles as a block would; the sums
 * read it back from a cache. Else they have a phase of their own.
 *
 *   requires  a convolution found, sums found (ccode/contract/epilogue.h)
 *   keeps     k, which is read only
 *
 * Read before: ccode/winograd/make.c, ccode/contract/epilogue.c. After:
 * ccode/strategy/strategy.c. */
#include "ccode/winograd/winograd.h"
#include "ccode/contract/epilogue.h"
#include "ccode/contract/make.h"
#include "ccode/rewrite/rewrite.h"

JOT_FN void
jot_winograd_band(const Kernel *k, const Target *target, Winograd *w, const Epilogue *r)
{
    uint64_t plane = (uint64_t)1 << w->space[0] | (uint64_t)1 << w->space[1];
    bool even = w->tiles[0] * w->side == k->axes.v[w->space[0]].ext;
    int64_t best = 0, off = 0;

    if (w->phased || (plane & r->kept) || !(w->others & ~r->kept) || (w->others & r->kept))
        return;
    for (int64_t rows = 1; rows <= w->tiles[0]; rows++) {
        int64_t tiles = rows * w->tiles[1];
        int64_t apart = tiles > w->block ? tiles - w->block : w->block - tiles;
        double times = (double)tiles / (double)w->block;

        if (w->tiles[0] % rows || (!even && rows < w->tiles[0]) || times > WINOGRAD_BAND
            || times < 1 / WINOGRAD_BAND)
            continue;
        if (!best || apart < off) {
            best = rows;
            off = apart;
        }
    }
    if (best) {
        w->band = best;
        w->block = best * w->tiles[1];
        jot_winograd_rows(w, target);
    }
}

/* A new axis for positions along `axis`, of which `by` make a step of axis `steps` (-1: all do). */
static bool
rides_axis(Kernel *to, const char *name, int64_t by, int steps, Respace *at, int axis, int *rest)
{
    Ix place;

    *rest = jot_kernel_axis(to, name, by);
    if (*rest < 0)
        return false;
    place = jot_ix_axis(to->ix, *rest);
    if (steps >= 0)
        place = jot_ix_add(to->ix, jot_ix_scale(to->ix, jot_ix_axis(to->ix, steps), by), place);
    jot_respace_place(at, axis, place);
    return true;
}

/* The axes of the sums, in place of those of k; of a band, blocks are steps of the tiles' own
 * axes. */
static bool
rides_axes(const Kernel *k, Kernel *to, const Winograd *w, Epilogue *r, int at, int64_t by,
           Respace *place)
{
    uint64_t inner = 0, outer = 0;
    int order[KERNEL_AXES], n = 0;

    for (int i = 0; i < r->n; i++) {
        int a = r->order[i], rest = -1, steps = -1;
        bool row = a == w->space[0], plane = row || a == w->space[1];
        int64_t ext = k->axes.v[a].ext, part = ext;
        char name[24];
        Text text = {NULL, name, 0, sizeof name};

        jot_text_f(&text, "%.*ss", 20, k->axes.v[a].name);
        if (w->band && !plane) {
            outer |= (uint64_t)1 << a;
            order[n++] = a;
            continue;
        }
        if (w->band && row && w->band < w->tiles[0]) {
            part = w->band * w->side;
            steps = a;
        } else if (!w->band && a == at && by > 1) {
            part = by;
            steps = jot_kernel_axis(to, name, ext / by);
            if (steps < 0)
                return false;
        }
        if (!rides_axis(to, name, part, steps, place, a, &rest) || n + 2 > KERNEL_AXES)
            return false;
        if (steps >= 0) {
            outer |= (uint64_t)1 << steps;
            order[n++] = steps;
        }
        order[n++] = rest;
        if (w->band || (r->inner >> a & 1) || steps >= 0)
            inner |= (uint64_t)1 << rest;
        else
            outer |= (uint64_t)1 << rest;
    }
    memcpy(r->order, order, sizeof order);
    r->n = n;
    r->inner = inner;
    r->outer = outer;
    return true;
}

JOT_FN bool
jot_winograd_epilogue(Kernel *k, const Target *target, const Winograd *w, Epilogue *r, Kernel *to)
{
    Respace place;
    int64_t by;
    int at;

    if (!jot_epilogue_block(k, target, r, false, &at, &by)
        || (w->band && w->band < w->tiles[0] && !jot_axis_divide(to, w->space[0], w->band, "r")))
        return false;
    jot_respace_open(&place, k);
    if (!rides_axes(k, to, w, r, at, by, &place))
        return false;
    jot_respace_axes(&place, to);
    r->block = 1;
    for (uint32_t a = 0; a < to->axes.n; a++)
        r->block *= r->inner >> a & 1 ? (double)to->axes.v[a].ext : 1;
    return jot_epilogue_make(k, to, r, &place);
}

JOT_FN bool
jot_winograd_epilogue_stages(Sched *s, const Winograd *w, const Epilogue *r)
{
    SLoop band = s->stages.v[0].loop[0]; /* by itself: stages move when one is added */
    EpilogueNest nest;

    nest.nest = &band;
    nest.n = w->band ? 1 : 0;
    nest.all = w->band > 0;
    nest.vec = w->out;
    nest.lanes = w->lanes;
    return jot_epilogue_stages(s, r, &nest);
}
