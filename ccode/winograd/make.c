/* ccode/winograd/make.c - a convolution by Winograd's tiles: the two kernels, U from the taps and
 * the results from U, and their schedules.
 *
 *     %sum = reduce add over c p q of x[n, c, h + p - 1, w + q - 1] * g[o, c, p, q]
 *     !0   y[n, o, h, w] = max(%sum + b[o], 0)
 *  ->
 *     %wv = reduce add over r of B[p, r] * x[n, c, 2*h + r - 1, 2*w + s - 1]
 *     %V  = reduce add over s of B[q, s] * %wv                     p q: 4, h w: tiles
 *     %M  = reduce add over c of %V * U[p, q, c, o]
 *     %wy = reduce add over p of A[e, p] * %M
 *     %Y  = reduce add over q of A[f, q] * %wy
 *     !0   y[n, o, 2*h + e, 2*w + f] = max(%Y + b[o], 0)
 *
 * The schedule takes a block of tiles through all of it, V and M in scratch that stays in the
 * cache; the product in the middle is a small matrix product for each of the 16 elements (36 of
 * tiles of 4). In phases V and M are of all tiles. Tiles at an odd end compute a row too many,
 * which is not stored.
 *
 *   requires  a Winograd that jot_winograd_find filled in
 *   keeps     the direct kernel, of which a copy is changed
 *
 * Read before: ccode/winograd/winograd.h, winograd.c. After: ccode/winograd/epilogue.c,
 * ccode/strategy/strategy.c. */
#include "ccode/winograd/winograd.h"
#include "ccode/contract/epilogue.h"
#include "ccode/ir/respace.h"
#include "ccode/schedule/builder.h"

/* ---- the taps ----------------------------------------------------------------------------- */

typedef struct { int64_t ext[2]; double v[36]; } WinoTable;
static const WinoTable wino_b[2] = {
    { { 4, 4 }, { 1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1 } },
    { { 6, 6 }, { 4, 0, -5, 0, 1, 0, 0, -4, -4, 1, 1, 0, 0, 4, -4, -1, 1, 0,
                  0, -2, -1, 2, 1, 0, 0, 2, -1, -2, 1, 0, 0, 4, 0, -5, 0, 1 } }
};
static const WinoTable wino_a[2] = {
    { { 2, 4 }, { 1, 1, 1, 0, 0, 1, -1, -1 } },
    { { 4, 6 }, { 1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1 } }
};
static const WinoTable wino_g[2] = {
    { { 4, 3 }, { 1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1 } },
    { { 6, 3 }, { 1. / 4, 0, 0, -1. / 6, -1. / 6, -1. / 6, -1. / 6, 1. / 6, -1. / 6,
                  1. / 24, 1. / 12, 1. / 6, 1. / 24, -1. / 12, 1. / 6, 0, 0, 1 } }
};

JOT_FN uint32_t
jot_winograd_transform(Kernel *k, char which, int64_t side, const int *first, const int *second,
                       const int *over, uint32_t v, const char *half, const char *name)
{
    const WinoTable *t = &(which == 'B' ? wino_b : which == 'A' ? wino_a : wino_g)[side / 4];
    for (int i = 0; i < 2; i++) {
        Ix at[2];
        uint32_t entry;
        at[0] = jot_ix_axis(k->ix, first[i]);
        at[1] = jot_ix_axis(k->ix, second[i]);
        entry = jot_v_table(k, JOT_F32, 2, t->ext, t->v, at);
        v = jot_v_reduce(k, EW_ADD, (uint64_t)1 << over[i],
                         jot_v_ew(k, EW_MUL, JOT_F32, entry, v, 0), 0, NULL, 1.0);
        jot_v_name(k, v, i ? name : half);
    }
    return v;
}

JOT_FN uint32_t
jot_winograd_load(Kernel *k, uint32_t buf, Ix *index, const int *dim, const int *tile, int64_t side,
                  int step, const int64_t *from, jot_Scalar outside)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    Ix cond[4];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        Ix at = jot_ix_add(k->ix, jot_ix_axis(k->ix, step + i), jot_ix_const(k->ix, from[i]));
        at = jot_ix_add(k->ix, jot_ix_scale(k->ix, jot_ix_axis(k->ix, tile[i]), side), at);
        index[dim[i]] = at;
        n += jot_ix_bounds(k->ix, at, k->bufs.v[buf].ext[dim[i]], &space, cond + n);
    }
    return jot_v_load(k, buf, index, n, cond, outside);
}

static void
wino_ext(const Winograd *w, int64_t *ext)
{
    ext[0] = ext[1] = w->side + 2;
    ext[2] = w->channels;
    ext[3] = w->outs;
}

/* Results in panels of two vectors, so that the inner loop reads them in order. */
JOT_FN bool
jot_winograd_layout(const Winograd *w, Layout *layout)
{
    int64_t ext[4], panel = w->panel;
    LayoutPart part[5] = { { 0, 1 }, { 1, 1 }, { 3, 1 }, { 2, 1 }, { 3, 1 } };
    wino_ext(w, ext);
    part[2].step = panel;
    if (panel >= ext[3])
        return jot_layout_rowmajor(layout, 4, ext);
    return jot_layout_make(layout, 4, ext, 5, part, NULL, NULL);
}

static void
wino_laid_out(Kernel *k, uint32_t buf, const Winograd *w)
{
    Layout layout;
    if (jot_winograd_layout(w, &layout))
        jot_kernel_layout(k, buf, &layout);
}

JOT_FN bool
jot_winograd_taps(const Winograd *w, const Layout *layout, Kernel *out)
{
    static const char *const name[6] = { "o", "c", "p", "q", "r", "s" };
    int64_t ext[4];
    uint32_t from, to, v;
    jot_Scalar zero = {0};
    Ix at[4];
    int axis[6];
    wino_ext(w, ext);
    for (int i = 0; i < 6; i++)
        axis[i] = jot_kernel_axis(out, name[i],
                                  i == 0   ? ext[3]
                                  : i == 1 ? ext[2]
                                  : i < 4  ? ext[0]
                                           : 3);
    from = jot_kernel_buf(out, "g", JOT_F32, BUF_INPUT, 4, w->taps_ext);
    if (layout)
        jot_kernel_layout(out, from, layout);
    to = jot_kernel_buf(out, "U", JOT_F32, BUF_OUTPUT, 4, ext);
    wino_laid_out(out, to, w);
    for (int i = 0; i < 2; i++) { /* tap 0 is the one that stands first in the image */
        Ix tap = jot_ix_axis(out->ix, axis[4 + i]);
        at[w->taps_dim[i]] = w->flip[i] ? jot_ix_sub(out->ix, jot_ix_const(out->ix, 2), tap) : tap;
    }
    at[w->taps_dim[2]] = jot_ix_axis(out->ix, axis[1]);
    at[w->taps_dim[3]] = jot_ix_axis(out->ix, axis[0]);
    v = jot_v_load(out, from, at, 0, NULL, zero);
    v = jot_winograd_transform(out, 'G', w->side, axis + 2, axis + 4, axis + 4, v, "Gg", "GgG");
    for (int i = 0; i < 4; i++)
        at[i] = jot_ix_axis(out->ix, axis[i < 2 ? 2 + i : 3 - i]);
    return jot_kernel_store(out, to, at, v, EW_NONE, 0, NULL) >= 0;
}

/* Lanes of results: their taps lie far apart, but nine in a row of each. */
JOT_FN bool
jot_winograd_taps_sched(Sched *s, Kernel *taps, const Winograd *w, Text *why)
{
    Writer write;
    jot_write_open(&write, s, taps, w->lanes);
    write.why = why;
    jot_write_axis(&write, 'v', w->lanes > 1 ? 0 : -1); /* o */
    jot_write_number(&write, 'V', w->lanes);
    jot_write_lines(&write, "%Gg: o:$Vp c | p:1u s:1u r:1u $v:1v\n"
                            "%GgG: o:$Vp c | p:1u q:1u s:1u $v:1v\n"
                            "!0: o:$Vp c p:1u q:1u $v:1v\n");
    return jot_write_done(&write);
}

/* ---- the convolution ---------------------------------------------------------------------- */

/* Rows and columns are tiles from here on, taps the elements of one, and axes are new. */
static bool
wino_axes(Kernel *k, const Winograd *w, int *own)
{
    static const char *const name[4] = { "wr", "ws", "we", "wf" };
    int64_t ext[2];
    Respace r;
    for (int i = 0; i < 4; i++)
        own[i] = jot_kernel_axis(k, name[i], i < 2 ? w->side + 2 : w->side);
    for (int i = 0; i < 2; i++) {
        KAxis *rows = &k->axes.v[w->space[i]];
        Ix end = jot_axis_end(k, w->space[i]);
        ext[i] = rows->ext;
        rows->ext = rows->ended = w->tiles[i];
        if (end)
            end = jot_ix_div(k->ix, jot_ix_add(k->ix, end, jot_ix_const(k->ix, w->side - 1)),
                             jot_ix_const(k->ix, w->side), NULL);
        rows->end = end;
        k->axes.v[w->window[i]].ext = w->side + 2;
    }
    jot_respace_open(&r, k);
    for (int i = 0; i < 2; i++) { /* a row or column beyond an odd end is left out */
        int a = w->space[i];
        Ix at = jot_ix_add(k->ix, jot_ix_scale(k->ix, r.place[a], w->side), r.place[own[2 + i]]);
        jot_respace_place(&r, a, at);
        jot_respace_guard(&r, (uint64_t)1 << a, at, ext[i]);
    }
    return own[3] >= 0 && jot_respace_kernel(&r, k);
}

/* U in the place of the taps. */
static bool
wino_taps(Kernel *k, const Winograd *w, uint32_t taps)
{
    int64_t ext[4];
    const KBuf was = k->bufs.v[taps];
    wino_ext(w, ext);
    if (!jot_kernel_buf(k, "U", JOT_F32, (BufRole)was.role, 4, ext))
        return false;
    k->bufs.v[taps] = k->bufs.v[--k->bufs.n];
    k->bufs.v[taps].may_alias = was.may_alias;
    wino_laid_out(k, taps, w);
    return true;
}

/* The image under a tile, transformed; times U; transformed back. r: the new axes. */
static uint32_t
wino_sum(Kernel *k, const Winograd *w, const int *r)
{
    const Value image = k->values.v[w->image];
    const int *p = w->window;
    Ix index[JOT_MAX_RANK];
    uint32_t v, u;
    for (int d = 0; d < image.nidx; d++)
        index[d] = k->ixs.v[image.at + (uint32_t)d];
    v = jot_winograd_load(k, image.buf, index, w->image_dim, w->space, w->side, r[0], w->from,
                          image.c);
    v = jot_winograd_transform(k, 'B', w->side, p, r, r, v, "wv", "V");
    index[0] = jot_ix_axis(k->ix, p[0]);
    index[1] = jot_ix_axis(k->ix, p[1]);
    index[2] = jot_ix_axis(k->ix, w->channel);
    index[3] = jot_ix_axis(k->ix, w->out);
    u = jot_v_load(k, k->values.v[w->taps].buf, index, 0, NULL, image.c);
    v = jot_v_reduce(k, EW_ADD, (uint64_t)1 << w->channel,
                     jot_v_ew(k, EW_MUL, JOT_F32, v, u, 0), 0, NULL, 1.0);
    jot_v_name(k, v, "M");
    return jot_winograd_transform(k, 'A', w->side, r + 2, p, p, v, "wy", "Y");
}

JOT_FN bool
jot_winograd_kernel(const Kernel *k, const Winograd *w, Kernel *out)
{
    BufRole role = w->phased ? BUF_SHARED : BUF_SCRATCH;
    int64_t ext[4];
    int own[4];
    uint32_t sum;
    if (!jot_kernel_copy(out, k) || !wino_axes(out, w, own)
        || !wino_taps(out, w, k->values.v[w->taps].buf))
        return false;
    sum = wino_sum(out, w, own);
    if (!sum || !jot_v_replace(out, w->sum, sum, sum) || !jot_kernel_compact(out))
        return false;
    wino_ext(w, ext);
    ext[3] = ext[2];
    ext[2] = w->phased ? w->count : w->block;
    jot_kernel_buf(out, "SV", JOT_F32, role, 4, ext);
    ext[3] = w->outs;
    jot_kernel_buf(out, "SM", JOT_F32, role, 4, ext);
    return !k->mem->failed;
}

/* Roles: c channels, o results, p q of the window, t tiles; B loops around a block, T the tile in V
 * and M, V lanes, W two vectors, R rows of the register block, C the loop over channels, A how far
 * ahead. */
static const char wino_before[] =
    "%wv: $B $t $c:$V | $p:1u ws:1u wr:1u $c:1v\n"
    "%V: $B $t $c:$V | $p:1u $q:1u ws:1u $c:1v; res SV[$p, $q, $T, $c]\n";
static const char wino_product[] =
    "%M: $B $p $q $o:$W $t:$R | $C $t:1u $o:$Vu $o:1v; res SM[$p, $q, $T, $o]\n";
static const char wino_product_phase[] =
    "phase\n"
    "%M: $p:1p $q:1p $o:$Wp $t:$R | $C $t:1u $o:$Vu $o:1v; res SM[$p, $q, $T, $o]; ahead $A\n"
    "phase\n";
static const char wino_after[] =
    "%wy: $B $t $o:$V | we:1u $q:1u $p:1u $o:1v\n"
    "%Y: $B $t $o:$V | we:1u wf:1u $q:1u $o:1v\n";

/* Tiles as one axis: all, or those of a band, and the bands as another. */
static void
wino_fuse(Text *out, const Kernel *conv, const Winograd *w)
{
    bool whole = w->band == w->tiles[0];
    jot_text_f(out, w->band ? "fuse wb =" : "fuse wt =");
    for (uint32_t a = 0; a < conv->axes.n; a++)
        if (w->others >> a & 1)
            jot_text_f(out, " %s", conv->axes.v[a].name);
    if (w->band && !whole)
        jot_text_f(out, " %s", conv->axes.v[w->space[0]].name);
    if (w->band)
        jot_text_f(out, "\nfuse wt =");
    if (w->band && !whole)
        jot_text_f(out, " %sr", conv->axes.v[w->space[0]].name);
    else
        jot_text_f(out, " %s", conv->axes.v[w->space[0]].name);
    jot_text_f(out, " %s\n", conv->axes.v[w->space[1]].name);
}

static void
wino_roles(Writer *write, const Winograd *w, LoopList *around, LoopList *channels)
{
    IxPool *ix = write->s->k->ix;
    int last = KERNEL_AXES + (int)write->s->axes.n - 1; /* wt */
    Ix tile = jot_ix_axis(ix, last);
    if (w->band)
        jot_loops_add(around, last - 1, 1, LOOP_PARALLEL);
    else
        jot_loops_add(around, last, w->block, LOOP_PARALLEL);
    if (!w->phased && !w->band)
        tile = jot_ix_mod(ix, tile, jot_ix_const(ix, w->block), NULL);
    jot_loops_terms(channels, w->channel, w->terms);
    jot_write_loops(write, 'B', around);
    jot_write_loops(write, 'C', channels);
    jot_write_index(write, 'T', tile);
    jot_write_axis(write, 't', last);
    jot_write_axis(write, 'c', w->channel);
    jot_write_axis(write, 'o', w->out);
    jot_write_axis(write, 'p', w->window[0]);
    jot_write_axis(write, 'q', w->window[1]);
    jot_write_number(write, 'V', w->lanes);
    jot_write_number(write, 'W', 2 * w->lanes);
    jot_write_number(write, 'R', w->rows);
    jot_write_number(write, 'A', w->ahead);
}

JOT_FN bool
jot_winograd_sched(Sched *s, Kernel *conv, const Winograd *w, Text *why)
{
    char fuse[KERNEL_AXES * 24];
    Text text = {NULL, fuse, 0, sizeof fuse};
    uint32_t nplain = w->epilogue ? w->epilogue->nplain : conv->stores.n;
    LoopList around = {0}, channels = {0};
    Writer write;
    jot_write_open(&write, s, conv, w->lanes);
    write.why = why;
    s->fma = w->lanes > 1;
    wino_fuse(&text, conv, w);
    jot_write_lines(&write, fuse);
    wino_roles(&write, w, &around, &channels);
    jot_write_lines(&write, wino_before);
    jot_write_lines(&write, w->phased ? wino_product_phase : wino_product);
    jot_write_lines(&write, wino_after);
    for (uint32_t i = 0; i < nplain; i++) {
        jot_write_number(&write, 's', i);
        jot_write_lines(&write, "!$s: $B $t $o:$V we:1u wf:1u $o:1v\n");
    }
    return jot_write_done(&write) && (!w->epilogue
                                      || jot_winograd_epilogue_stages(s, w, w->epilogue));
}
