/* ccode/winograd.c - finds convolutions that Winograd's tiles make cheaper, and writes the two
 * kernels and their schedules.
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
 * The schedule takes a block of tiles through all of it, V and M in scratch that stays in the cache;
 * the product in the middle is a small matrix product for each of the 16 elements (36 of tiles of 4). Where there are
 * few tiles and many channels each block would read all of a U that no cache holds: then the three
 * steps are phases, V and M are of all tiles, and panels of U are shared among threads, each read
 * once. Tiles at an odd end compute a row too many, which is not stored.
 *
 *   requires  a verified kernel, layouts set      keeps  k, which is read only
 *
 * Read before: ccode/winograd.h. After: backends/plan_text.c. */
#include "ccode/rides.h"
#include "ccode/sched.h"
#include "ccode/winograd.h"

#define WINOGRAD_STEPS 16      /* of a phase: enough for any number of threads */
#define WINOGRAD_CHANNELS 24   /* fewer channels than this: the additions outweigh the products */

/* ---- finding ------------------------------------------------------------------------------ */

static uint32_t
wino_arg(const Kernel *k, uint32_t value, int number)
{
    return k->args.v[k->values.v[value].arg + (uint32_t)number];
}

/* Each condition only says that an index stays inside of its dimension of the load. */
static bool
wino_bounds_only(const Kernel *k, const Value *load, uint32_t at, int n)
{
    const KBuf *b = &k->bufs.v[load->buf];
    for (int i = 0; i < n; i++) {
        Ix cond = k->ixs.v[at + (uint32_t)i];
        bool known = false;
        for (int d = 0; !known && d < load->nidx; d++) {
            Ix ix = k->ixs.v[load->at + (uint32_t)d];
            known = cond == jot_ix_ge0(k->ix, ix, NULL) ||
                    cond == jot_ix_lt(k->ix, ix, jot_ix_const(k->ix, b->ext[d]), NULL);
        }
        if (!known)
            return false;
    }
    return true;
}

JOT_FN bool
jot_winograd_bounds(const Kernel *k, const Value *load)
{
    return wino_bounds_only(k, load, load->at + load->nidx, load->ncond);
}

/* The dimension of the load in whose index the axis occurs; -1: in none or in several. */
static int
wino_dim_of(const Kernel *k, const Value *load, int axis)
{
    int found = -1;
    for (int d = 0; d < load->nidx; d++)
        if (jot_ix_axes(k->ix, k->ixs.v[load->at + (uint32_t)d]) >> axis & 1) {
            if (found >= 0)
                return -1;
            found = d;
        }
    return found;
}

/* The image's index is position + tap + constant, or position - tap + constant. */
static bool
wino_window(const Kernel *k, Winograd *w, int i)
{
    const Value *image = &k->values.v[w->image];
    int64_t c, step;
    IxTerm tmp;
    uint32_t n;
    Ix ix = k->ixs.v[image->at + (uint32_t)w->image_dim[i]];
    const IxTerm *t = jot_ix_linear(k->ix, ix, &c, &n, &tmp);
    int first, second;
    if (n != 2 || !jot_ix_is_axis(k->ix, t[0].atom, &first) ||
        !jot_ix_is_axis(k->ix, t[1].atom, &second))
        return false;
    w->space[i] = first == w->window[i] ? second : first;
    step = first == w->window[i] ? t[0].k : t[1].k;
    if ((first == w->window[i] ? t[1].k : t[0].k) != 1 || (step != 1 && step != -1) ||
        first == second || wino_dim_of(k, image, w->space[i]) != w->image_dim[i])
        return false;
    w->flip[i] = step < 0;
    w->from[i] = w->flip[i] ? c - 2 : c;
    w->tiles[i] = (k->axes.v[w->space[i]].ext + w->side - 1) / w->side;
    return true;
}

/* What each dimension of the taps is: reduced and alone in an index of the image: the channel. */
static bool
wino_taps_dims(const Kernel *k, Winograd *w)
{
    const Value *taps = &k->values.v[w->taps], *image = &k->values.v[w->image];
    uint64_t reduced = k->values.v[w->sum].axes;
    int windows = 0, axis, own;
    w->channel = w->out = -1;
    for (int d = 0; d < 4; d++) {
        int dim;
        if (!jot_ix_is_axis(k->ix, k->ixs.v[taps->at + (uint32_t)d], &axis))
            return false;
        dim = wino_dim_of(k, image, axis);
        if (!(reduced >> axis & 1)) {
            if (w->out >= 0 || (image->free >> axis & 1))
                return false;
            w->out = axis;
            w->taps_dim[3] = d;
        } else if (dim < 0) {
            return false;
        } else if (jot_ix_is_axis(k->ix, k->ixs.v[image->at + (uint32_t)dim], &own)) {
            if (w->channel >= 0)
                return false;
            w->channel = axis;
            w->taps_dim[2] = d;
        } else if (windows == 2 || k->axes.v[axis].ext != 3) {
            return false;
        } else {
            w->window[windows] = axis;
            w->image_dim[windows] = dim;
            w->taps_dim[windows++] = d;
        }
    }
    return windows == 2 && w->channel >= 0 && w->out >= 0 && w->image_dim[0] != w->image_dim[1] &&
           reduced == ((uint64_t)1 << w->window[0] | (uint64_t)1 << w->window[1] |
                       (uint64_t)1 << w->channel);
}

static bool
wino_match(const Kernel *k, Winograd *w, uint32_t image, uint32_t taps)
{
    const Value *i = &k->values.v[image], *t = &k->values.v[taps], *sum = &k->values.v[w->sum];
    w->image = image;
    w->taps = taps;
    if (i->op != VAL_LOAD || t->op != VAL_LOAD || t->ncond || t->nidx != 4 || i->buf == t->buf ||
        k->bufs.v[i->buf].dtype != JOT_F32 || k->bufs.v[t->buf].dtype != JOT_F32 ||
        (i->ncond && i->c.u != 0) || !wino_bounds_only(k, i, i->at + i->nidx, i->ncond) ||
        !wino_bounds_only(k, i, sum->at, sum->ncond))
        return false;
    if (!wino_taps_dims(k, w) || !wino_window(k, w, 0) || !wino_window(k, w, 1))
        return false;
    w->channels = k->axes.v[w->channel].ext;
    w->outs = k->axes.v[w->out].ext;
    memcpy(w->taps_ext, k->bufs.v[t->buf].ext, sizeof w->taps_ext);
    w->others = i->free & ~(sum->axes | (uint64_t)1 << w->space[0] | (uint64_t)1 << w->space[1]);
    return w->space[0] != w->space[1];
}

static bool
wino_is_fastest(const Kernel *k, uint32_t buf, Ix index, int dim, int axis)
{
    const Layout *l = k->bufs.v[buf].layout;
    int last = l->n - 1;
    bool inside;
    while (last > 0 && l->size[last] == 1) /* a batch of one may stand anywhere */
        last--;
    return last >= 0 && l->part[last].dim == dim && l->part[last].step == 1 &&
           jot_ix_coef(k->ix, index, axis, &inside) == 1 && !inside;
}

JOT_FN bool
jot_winograd_stores(const Kernel *k, const Winograd *w, const KStore *store)
{
    bool fast = false;
    for (int d = 0; !fast && d < store->nidx; d++)
        fast = wino_is_fastest(k, store->buf, k->ixs.v[store->at + (uint32_t)d], d, w->out);
    return fast;
}

/* The sum is the only reduction, its operands are used by it alone, nothing else needs an axis that
 * it reduces or an operation that is not carried over. */
static bool
wino_alone(const Kernel *k, const Winograd *w, const bool *used)
{
    const Value *sum = &k->values.v[w->sum];
    uint32_t product = wino_arg(k, w->sum, 0);
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].acc != EW_NONE)
            return false;
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (!used[i] || i == w->sum || i == product || i == w->image || i == w->taps)
            continue;
        if (v->op == VAL_REDUCE || v->op == VAL_AT || v->op == VAL_TABLE || (v->free & sum->axes) ||
            (v->op == VAL_LOAD && v->buf == k->values.v[w->taps].buf))
            return false;
        for (int j = 0; j < v->narg; j++)
            if (wino_arg(k, i, j) == product || wino_arg(k, i, j) == w->taps)
                return false;
    }
    return true;
}

static bool
wino_gains(const Kernel *k, const Winograd *w)
{
    const Value *image = &k->values.v[w->image];
    int dim = wino_dim_of(k, image, w->channel);
    return w->channels >= WINOGRAD_CHANNELS && w->outs >= WINOGRAD_CHANNELS && w->tiles[0] > 1 && w->tiles[1] > 1 &&
           k->axes.n + 4 <= KERNEL_AXES &&
           wino_is_fastest(k, image->buf, k->ixs.v[image->at + (uint32_t)dim], dim, w->channel);
}

/* Bytes of one number for each element of a tile. */
static int64_t
wino_each(const Winograd *w)
{
    return 4 * (w->side + 2) * (w->side + 2);
}

/* Bytes from beyond the second cache, of blocks that each read U, or of phases that read U once, and
 * write and read V and M of all tiles. */
static bool
wino_in_phases(const Winograd *w, const Target *t, int64_t blocks)
{
    int64_t l2 = t->cache_nbytes[LEVEL_L2], each = wino_each(w) * (w->channels + w->outs);
    int64_t u = wino_each(w) * w->channels * w->outs, all = 2 * each * w->count;
    int64_t apart = u > l2 / 2 ? blocks * u : 0;
    if (each * w->block > l2)
        apart += all;
    return apart > u + all;
}

/* Two vectors for each row, some registers left for operands; parts of a block as equal as can be. */
JOT_FN void
jot_winograd_rows(Winograd *w, const Target *t)
{
    int64_t rows = w->lanes == 1 ? 2 : t->vectors >= 32 ? 14 : 6;
    int64_t side = w->phased ? w->count : w->block, parts = (side + rows - 1) / rows;
    w->rows = (side + parts - 1) / parts;
}

/* Tiles of a block: V and M of it in half of the second cache, but enough of them to be worth
 * reading U for, and blocks that fill all cores. In phases a block is what a step of
 * the first and the last takes. */
static void
wino_blocks(const Kernel *k, int lanes, const Target *t, Winograd *w)
{
    int64_t each = wino_each(w) * (w->channels + w->outs);
    int64_t count = w->tiles[0] * w->tiles[1], most = t->cache_nbytes[LEVEL_L2] / 2 / each, blocks;
    int64_t rows = lanes == 1 ? 2 : t->vectors >= 32 ? 14 : 6;
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (w->others >> a & 1)
            count *= k->axes.v[a].ext;
    most = most < 5 * rows ? 5 * rows : most > 8 * rows ? 8 * rows : most;
    blocks = (count + most - 1) / most;
    blocks = (blocks + t->cores - 1) / t->cores * t->cores;
    w->lanes = lanes;
    w->panel = 2 * lanes;
    w->block = (count + blocks - 1) / blocks;
    w->count = count;
    w->phased = wino_in_phases(w, t, blocks);
    jot_winograd_rows(w, t);
    if (w->phased)
        w->block = count > 2 * WINOGRAD_STEPS ? (count + WINOGRAD_STEPS - 1) / WINOGRAD_STEPS : 2;
    if (w->phased && lanes > 1 && w->channels * w->panel * 4 > t->cache_nbytes[LEVEL_L1] / 2)
        w->ahead = (int)(256 / (w->rows > 4 ? w->rows : 4));
}

JOT_FN bool
jot_winograd_find(const Kernel *k, int lanes, const Target *target, bool fast, Winograd *w)
{
    bool *used = jot_mem_new(k->mem, k->values.n, sizeof *used), found = false;
    memset(w, 0, sizeof *w);
    w->side = fast ? 4 : 2;
    if (!used)
        return false;
    jot_kernel_used(k, used);
    for (uint32_t i = 1; !found && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        uint32_t body = v->narg ? wino_arg(k, i, 0) : 0;
        if (!used[i] || v->op != VAL_REDUCE)
            continue;
        w->sum = i;
        if (v->ew != EW_ADD || v->dtype != JOT_F32 || v->scaled ||
            k->values.v[body].op != VAL_EW || k->values.v[body].ew != EW_MUL)
            break;
        found = wino_match(k, w, wino_arg(k, body, 0), wino_arg(k, body, 1)) ||
                wino_match(k, w, wino_arg(k, body, 1), wino_arg(k, body, 0));
        if (!found)
            break;
    }
    found = found && wino_alone(k, w, used) && wino_gains(k, w);
    if (found)
        wino_blocks(k, lanes, target, w);
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return found && !k->mem->failed;
}

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
        axis[i] = jot_kernel_axis(out, name[i], i == 0 ? ext[3] : i == 1 ? ext[2] : i < 4 ? ext[0] : 3);
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
    Text text = {NULL, NULL, 0, 0};
    char buf[200];
    text.s = buf;
    text.cap = sizeof buf;
    if (w->lanes == 1)
        jot_text_f(&text, "%%Gg: o:1p c | p:1u s:1u r:1u\n%%GgG: o:1p c | p:1u q:1u s:1u\n"
                          "!0: o:1p c p:1u q:1u\n");
    else
        jot_text_f(&text, "lanes %d\n%%Gg: o:%dp c | p:1u s:1u r:1u o:1v\n"
                          "%%GgG: o:%dp c | p:1u q:1u s:1u o:1v\n!0: o:%dp c p:1u q:1u o:1v\n",
                   w->lanes, w->lanes, w->lanes, w->lanes);
    return jot_sched_read(s, taps, text.s, text.n, why);
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
        c->place[c->w->space[i]] =
            jot_ix_add(out->ix, jot_ix_scale(out->ix, jot_ix_axis(out->ix, c->w->space[i]), c->w->side),
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
    v = jot_v_reduce(out, EW_ADD, (uint64_t)1 << w->channel, jot_v_ew(out, EW_MUL, JOT_F32, v, u, 0),
                     0, NULL, 1.0);
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
        arg[i] = c->value[wino_arg(c->k, number, i)];
    switch (v->op) {
    case VAL_LOAD: return carry_load(c, v);
    case VAL_CONST: return jot_v_const(c->out, (jot_DType)v->dtype, v->c);
    case VAL_SCALAR: return jot_v_scalar(c->out, (int)v->buf);
    case VAL_INDEX: return jot_v_index(c->out, (jot_DType)v->dtype, carry_ix(c, c->k->ixs.v[v->at]));
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

/* Lines of the schedule; $V: lanes, $W: two vectors, $B: loops around a block, $T: the tile in V and M,
 * $R: rows of the register block, $A: how far ahead, $t $c $o $p $q: axes. */
static const char wino_before[] =
    "%wv: $B $t $c:$V | $p:1u ws:1u wr:1u $c:1v\n"
    "%V: $B $t $c:$V | $p:1u $q:1u ws:1u $c:1v; res SV[$p, $q, $T, $c]\n";
static const char wino_product[] =
    "%M: $B $p $q $o:$W $t:$R | $c $t:1u $o:$Vu $o:1v; res SM[$p, $q, $T, $o]\n";
static const char wino_product_phase[] =
    "phase\n"
    "%M: $p:1p $q:1p $o:$Wp $t:$R | $c $t:1u $o:$Vu $o:1v; res SM[$p, $q, $T, $o]$A\n"
    "phase\n";
static const char wino_after[] =
    "%wy: $B $t $o:$V | we:1u $q:1u $p:1u $o:1v\n"
    "%Y: $B $t $o:$V | we:1u wf:1u $q:1u $o:1v\n";

static void
wino_line(Text *out, const Kernel *k, const Winograd *w, const char *line)
{
    for (; *line; line++) {
        if (*line != '$') {
            jot_text_put(out, line, 1);
            continue;
        }
        switch (*++line) {
        case 'V': jot_text_f(out, "%d", w->lanes); break;
        case 'W': jot_text_f(out, "%d", 2 * w->lanes); break;
        case 'B':
            if (w->band)
                jot_text_f(out, "wb:1p");
            else
                jot_text_f(out, "wt:%lldp", (long long)w->block);
            break;
        case 'R': jot_text_f(out, "%lld", (long long)w->rows); break;
        case 'T':
            jot_text_f(out, w->phased || w->band ? "wt" : "wt%%%lld", (long long)w->block);
            break;
        case 'A':
            if (w->ahead)
                jot_text_f(out, "; ahead %d", w->ahead);
            break;
        case 't': jot_text_f(out, "wt"); break;
        case 'c': jot_text_f(out, "%s", k->axes.v[w->channel].name); break;
        case 'o': jot_text_f(out, "%s", k->axes.v[w->out].name); break;
        case 'p': jot_text_f(out, "%s", k->axes.v[w->window[0]].name); break;
        default: jot_text_f(out, "%s", k->axes.v[w->window[1]].name);
        }
    }
}

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

JOT_FN bool
jot_winograd_sched(Sched *s, Kernel *conv, const Winograd *w, Text *why)
{
    Text text = {NULL, NULL, 0, 0};
    uint32_t nplain = w->rides ? w->rides->nplain : conv->stores.n;
    bool ok;
    text.mem = conv->mem;
    jot_text_f(&text, "lanes %d\n%s", w->lanes, w->lanes > 1 ? "fma\n" : "");
    wino_fuse(&text, conv, w);
    wino_line(&text, conv, w, wino_before);
    wino_line(&text, conv, w, w->phased ? wino_product_phase : wino_product);
    wino_line(&text, conv, w, wino_after);
    for (uint32_t i = 0; i < nplain; i++) {
        jot_text_f(&text, "!%u: ", i);
        wino_line(&text, conv, w, "$B $t $o:$V we:1u wf:1u $o:1v\n");
    }
    ok = !conv->mem->failed && jot_sched_read(s, conv, text.s, text.n, why)
      && (!w->rides || jot_winograd_rides_stages(s, w, w->rides));
    jot_text_free(&text);
    return ok;
}
#undef WINOGRAD_CHANNELS
#undef WINOGRAD_STEPS
