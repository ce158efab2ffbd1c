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
 *   keeps     the direct kernel, which is read only
 *
 * Read before: ccode/winograd/winograd.h, winograd.c. After: ccode/winograd/epilogue.c,
 * plan/text.c. */
#include "ccode/winograd/winograd.h"
#include "ccode/contract/epilogue.h"
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

/* 2 x 2 results, entry [first, second] of B', A' or G. */
JOT_FN uint32_t
jot_winograd_table(Kernel *k, char which, int first, int second)
{
    const WinoTable *t = which == 'B' ? wino_b : which == 'A' ? wino_a : wino_g;
    Ix at[2];
    at[0] = jot_ix_axis(k->ix, first);
    at[1] = jot_ix_axis(k->ix, second);
    return jot_v_table(k, JOT_F32, 2, t->ext, t->v, at);
}

/* %name = sum over `axis` of table[row, axis] * v */
static uint32_t
wino_transform(Kernel *k, const Winograd *w, const WinoTable *tables, int row, int axis, uint32_t v,
               const char *name)
{
    const int64_t *ext = tables[w->side / 4].ext;
    const double *table = tables[w->side / 4].v;
    Ix at[2];
    uint32_t t;
    at[0] = jot_ix_axis(k->ix, row);
    at[1] = jot_ix_axis(k->ix, axis);
    t = jot_v_table(k, JOT_F32, 2, ext, table, at);
    v = jot_v_reduce(k, EW_ADD, (uint64_t)1 << axis, jot_v_ew(k, EW_MUL, JOT_F32, t, v, 0), 0, NULL,
                     1.0);
    jot_v_name(k, v, name);
    return v;
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
    return jot_layout_make(layout, 4, ext, 5, part, NULL, NULL, NULL);
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
    v = wino_transform(out, w, wino_g, axis[2], axis[4], v, "Gg");
    v = wino_transform(out, w, wino_g, axis[3], axis[5], v, "GgG");
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

typedef struct {
    const Kernel *k;
    const Winograd *w;
    Kernel *out;
    Ix place[KERNEL_AXES];      /* what each old axis is now */
    int64_t ext[KERNEL_AXES];   /* of the new axes */
    Space space;
    uint32_t *value;            /* new number of each old value */
} Carry;

static void
carry_axes(Carry *c)
{
    static const char *const name[4] = { "wr", "ws", "we", "wf" };
    Kernel *out = c->out;
    for (uint32_t a = 0; a < c->k->axes.n; a++) {
        c->ext[a] = c->k->axes.v[a].ext;
        c->place[a] = jot_ix_axis(out->ix, (int)a);
    }
    for (int i = 0; i < 2; i++) {
        c->ext[c->w->space[i]] = c->w->tiles[i];
        c->ext[c->w->window[i]] = c->w->side + 2;
        c->ext[c->k->axes.n + (uint32_t)i] = c->w->side + 2;
        c->ext[c->k->axes.n + 2 + (uint32_t)i] = c->w->side;
    }
    for (uint32_t a = 0; a < c->k->axes.n + 4; a++)
        jot_kernel_axis(out, a < c->k->axes.n ? c->k->axes.v[a].name : name[a - c->k->axes.n],
                        c->ext[a]);
    for (int i = 0; i < 2; i++)
        c->place[c->w->space[i]] = jot_ix_add(
            out->ix, jot_ix_scale(out->ix, jot_ix_axis(out->ix, c->w->space[i]), c->w->side),
            jot_ix_axis(out->ix, (int)c->k->axes.n + 2 + i));
    c->space.n = (int)c->k->axes.n + 4;
    c->space.ext = c->ext;
    c->space.lo = NULL;
}

static void
carry_bufs(Carry *c)
{
    const Kernel *k = c->k;
    uint32_t taps = k->values.v[c->w->taps].buf;
    for (uint32_t b = 1; b < k->bufs.n; b++) {
        const KBuf *buf = &k->bufs.v[b];
        int64_t ext[4];
        wino_ext(c->w, ext);
        jot_kernel_buf(c->out, b == taps ? "U" : buf->name, (jot_DType)buf->dtype,
                       (BufRole)buf->role, b == taps ? 4 : buf->rank, b == taps ? ext : buf->ext);
        if (b == taps)
            wino_laid_out(c->out, b, c->w);
        else
            jot_kernel_layout(c->out, b, buf->layout);
        if (b < c->out->bufs.n) {
            c->out->bufs.v[b].may_alias = buf->may_alias;
            c->out->bufs.v[b].bordered = buf->bordered && b != taps;
        }
    }
    for (uint32_t i = 0; i < k->scalars.n; i++)
        jot_kernel_scalar(c->out, k->scalars.v[i].name, (jot_DType)k->scalars.v[i].dtype);
    for (uint32_t i = 0; i < k->slots.n; i++)
        jot_kernel_slot(c->out, (int)i, k->slots.v[i]);
}

static Ix
carry_ix(Carry *c, Ix ix)
{
    return jot_ix_subst(c->out->ix, ix, (int)c->k->axes.n, c->place, NULL, &c->space);
}

/* Conditions at..at + n, and those that keep a row or column beyond an odd end out; the count. */
static int
carry_conds(Carry *c, uint32_t at, int n, uint64_t axes, Ix *cond)
{
    int count = 0;
    int64_t one;
    for (int i = 0; i < n; i++)
        cond[count++] = carry_ix(c, c->k->ixs.v[at + (uint32_t)i]);
    for (int i = 0; i < 2; i++) {
        int axis = c->w->space[i];
        if (!(axes >> axis & 1))
            continue;
        cond[count] = jot_ix_lt(c->out->ix, c->place[axis],
                                jot_ix_const(c->out->ix, c->k->axes.v[axis].ext), &c->space);
        count += !jot_ix_is_const(c->out->ix, cond[count], &one);
    }
    return count;
}

static uint32_t
carry_load(Carry *c, const Value *v)
{
    Ix index[JOT_MAX_RANK], cond[66];
    for (int d = 0; d < v->nidx; d++)
        index[d] = carry_ix(c, c->k->ixs.v[v->at + (uint32_t)d]);
    if (v->ncond > 62)
        return 0;
    return jot_v_load(c->out, v->buf, index,
                      carry_conds(c, v->at + v->nidx, v->ncond, v->free, cond), cond, v->c);
}

/* The image under a tile, transformed; times U; transformed back. */
static uint32_t
carry_sum(Carry *c)
{
    const Winograd *w = c->w;
    const Value *image = &c->k->values.v[w->image];
    const KBuf *b = &c->k->bufs.v[image->buf];
    Kernel *out = c->out;
    Ix index[JOT_MAX_RANK], cond[4];
    int r = (int)c->k->axes.n, e = r + 2, n = 0;
    uint32_t v, u;
    int64_t one;
    for (int d = 0; d < image->nidx; d++)
        index[d] = c->k->ixs.v[image->at + (uint32_t)d];
    for (int i = 0; i < 2; i++) {
        int d = w->image_dim[i];
        Ix tile = jot_ix_scale(out->ix, jot_ix_axis(out->ix, w->space[i]), w->side);
        index[d] = jot_ix_add(out->ix, tile, jot_ix_add(out->ix, jot_ix_axis(out->ix, r + i),
                                                        jot_ix_const(out->ix, w->from[i])));
        cond[n] = jot_ix_ge0(out->ix, index[d], &c->space);
        n += !jot_ix_is_const(out->ix, cond[n], &one);
        cond[n] = jot_ix_lt(out->ix, index[d], jot_ix_const(out->ix, b->ext[d]), &c->space);
        n += !jot_ix_is_const(out->ix, cond[n], &one);
    }
    v = jot_v_load(out, image->buf, index, n, cond, image->c);
    v = wino_transform(out, w, wino_b, w->window[0], r, v, "wv");
    v = wino_transform(out, w, wino_b, w->window[1], r + 1, v, "V");
    index[0] = jot_ix_axis(out->ix, w->window[0]);
    index[1] = jot_ix_axis(out->ix, w->window[1]);
    index[2] = jot_ix_axis(out->ix, w->channel);
    index[3] = jot_ix_axis(out->ix, w->out);
    u = jot_v_load(out, c->k->values.v[w->taps].buf, index, 0, NULL, image->c);
    v = jot_v_reduce(out, EW_ADD, (uint64_t)1 << w->channel,
                     jot_v_ew(out, EW_MUL, JOT_F32, v, u, 0), 0, NULL, 1.0);
    jot_v_name(out, v, "M");
    v = wino_transform(out, w, wino_a, e, w->window[0], v, "wy");
    return wino_transform(out, w, wino_a, e + 1, w->window[1], v, "Y");
}

static uint32_t
carry_value(Carry *c, uint32_t number)
{
    const Value *v = &c->k->values.v[number];
    uint32_t arg[16];
    if (v->narg > 16)
        return 0;
    for (int i = 0; i < v->narg; i++)
        arg[i] = c->value[jot_v_arg(c->k, number, i)];
    switch (v->op) {
    case VAL_LOAD: return carry_load(c, v);
    case VAL_CONST: return jot_v_const(c->out, (jot_DType)v->dtype, v->c);
    case VAL_SCALAR: return jot_v_scalar(c->out, (int)v->buf);
    case VAL_INDEX:
        return jot_v_index(c->out, (jot_DType)v->dtype, carry_ix(c, c->k->ixs.v[v->at]));
    case VAL_CALL: return jot_v_call(c->out, (jot_DType)v->dtype, v->text, v->narg, arg);
    case VAL_EW: return jot_v_ew(c->out, (EwOp)v->ew, (jot_DType)v->round, arg[0],
                                 v->narg > 1 ? arg[1] : 0, v->narg > 2 ? arg[2] : 0);
    default: return 0;
    }
}

static bool
carry_stores(Carry *c)
{
    for (uint32_t i = 0; i < c->k->stores.n; i++) {
        const KStore *s = &c->k->stores.v[i];
        Ix index[JOT_MAX_RANK], cond[66];
        for (int d = 0; d < s->nidx; d++)
            index[d] = carry_ix(c, c->k->ixs.v[s->at + (uint32_t)d]);
        if (s->ncond > 62 ||
            jot_kernel_store(c->out, s->buf, index, c->value[s->value], EW_NONE,
                             carry_conds(c, s->at + s->nidx, s->ncond, s->free, cond), cond) < 0)
            return false;
    }
    return true;
}

JOT_FN bool
jot_winograd_kernel(const Kernel *k, const Winograd *w, Kernel *out)
{
    Carry c = {0};
    bool *used = jot_mem_new(k->mem, k->values.n, sizeof *used), ok = false;
    int64_t ext[4];
    c.k = k, c.w = w, c.out = out;
    c.value = jot_mem_new(k->mem, k->values.n, sizeof *c.value);
    if (!jot_kernel_open(out, k->mem, k->ix) || !used || !c.value)
        goto done;
    jot_kernel_used(k, used);
    out->name = k->name ? jot_arena_copy(&out->arena, k->name, jot_str_len(k->name)) : NULL;
    carry_axes(&c);
    carry_bufs(&c);
    for (uint32_t i = 1; i < k->values.n; i++)
        if (i == w->sum)
            c.value[i] = carry_sum(&c);
        else if (used[i] && !(k->values.v[i].free & k->values.v[w->sum].axes))
            c.value[i] = carry_value(&c, i);
    wino_ext(w, ext);
    ext[3] = ext[2];
    ext[2] = w->phased ? w->count : w->block;
    jot_kernel_buf(out, "SV", JOT_F32, w->phased ? BUF_SHARED : BUF_SCRATCH, 4, ext);
    ext[3] = w->outs;
    jot_kernel_buf(out, "SM", JOT_F32, w->phased ? BUF_SHARED : BUF_SCRATCH, 4, ext);
    ok = carry_stores(&c) && !k->mem->failed;
done:
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    jot_mem_free(k->mem, c.value, k->values.n * sizeof *c.value);
    return ok;
}

/* Roles: c channels, o results, p q of the window, t tiles; B loops around a block, T the tile in V
 * and M, V lanes, W two vectors, R rows of the register block, A how far ahead. */
static const char wino_before[] =
    "%wv: $B $t $c:$V | $p:1u ws:1u wr:1u $c:1v\n"
    "%V: $B $t $c:$V | $p:1u $q:1u ws:1u $c:1v; res SV[$p, $q, $T, $c]\n";
static const char wino_product[] =
    "%M: $B $p $q $o:$W $t:$R | $c $t:1u $o:$Vu $o:1v; res SM[$p, $q, $T, $o]\n";
static const char wino_product_phase[] =
    "phase\n"
    "%M: $p:1p $q:1p $o:$Wp $t:$R | $c $t:1u $o:$Vu $o:1v; res SM[$p, $q, $T, $o]; ahead $A\n"
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
wino_roles(Writer *write, const Winograd *w, LoopList *around)
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
    jot_write_loops(write, 'B', around);
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
    uint32_t nplain = w->rides ? w->rides->nplain : conv->stores.n;
    LoopList around = {0};
    Writer write;
    jot_write_open(&write, s, conv, w->lanes);
    write.why = why;
    s->fma = w->lanes > 1;
    wino_fuse(&text, conv, w);
    jot_write_lines(&write, fuse);
    wino_roles(&write, w, &around);
    jot_write_lines(&write, wino_before);
    jot_write_lines(&write, w->phased ? wino_product_phase : wino_product);
    jot_write_lines(&write, wino_after);
    for (uint32_t i = 0; i < nplain; i++) {
        jot_write_number(&write, 's', i);
        jot_write_lines(&write, "!$s: $B $t $o:$V we:1u wf:1u $o:1v\n");
    }
    return jot_write_done(&write) && (!w->rides || jot_winograd_rides_stages(s, w, w->rides));
}
