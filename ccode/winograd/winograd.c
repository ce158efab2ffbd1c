/* ccode/winograd/winograd.c - finds convolutions that Winograd's tiles make cheaper, and their
 * blocks.
 *
 *     %sum = reduce add over c p q of x[n, c, h + p - 1, w + q - 1] * g[o, c, p, q]
 *     !0   y[n, o, h, w] = max(%sum + b[o], 0)                      3 x 3 taps, steps of 1, in f32
 *
 * Channels last in the image and in what is stored, and many enough that products outweigh the
 * additions before and after. Blocks are tiles whose V and M stay in a cache; where there are few
 * tiles and many channels each block would read all of a U that no cache holds: then the three
 * steps are phases, V and M are of all tiles, and panels of U are shared among threads, each read
 * once.
 *
 *   requires  a verified kernel, layouts set      keeps  k, which is read only
 *
 * Read before: ccode/winograd/winograd.h. After: ccode/winograd/make.c. */
#include "ccode/winograd/winograd.h"
#include "ccode/contract/epilogue.h"
#include "ccode/schedule/builder.h"
#include "target/thresholds.h"

/* ---- finding ------------------------------------------------------------------------------ */

/* Each condition keeps an index inside of its dimension of the load: that of a row or a column,
 * dim[0] or dim[1], which are asked anew for each tile, or one that is inside anyway. */
JOT_FN bool
jot_winograd_bounds(const Kernel *k, const Value *load, const int *dim, uint32_t at, int n)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    uint32_t dims = 0;
    for (int d = 0; d < load->nidx; d++)
        dims |= (uint32_t)(d == dim[0] || d == dim[1] ||
                           jot_ix_inside(k->ix, k->ixs.v[load->at + (uint32_t)d],
                                         k->bufs.v[load->buf].ext[d], &space)) << d;
    return jot_kernel_bounds(k, load, dims, at, n);
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

JOT_FN bool
jot_winograd_window(const Kernel *k, Ix ix, uint64_t taps, int *space, int *window, int64_t *from,
                    bool *flip)
{
    IxTerm tmp;
    uint32_t n;
    const IxTerm *t = jot_ix_linear(k->ix, ix, from, &n, &tmp);
    int axis[2], of;
    if (n != 2 || !jot_ix_is_axis(k->ix, t[0].atom, &axis[0]) ||
        !jot_ix_is_axis(k->ix, t[1].atom, &axis[1]))
        return false;
    of = taps >> axis[1] & 1;
    *space = axis[!of];
    *window = axis[of];
    *flip = t[of].k == -1;
    *from -= *flip ? 2 : 0;
    return t[!of].k == 1 && (t[of].k == 1 || *flip) && (taps >> *window & 1) &&
           !(taps >> *space & 1) && k->axes.v[*window].ext == 3;
}

/* Rows or columns of the image, and their tiles. */
static bool
wino_rows(const Kernel *k, Winograd *w, int i)
{
    const Value *image = &k->values.v[w->image];
    Ix ix = k->ixs.v[image->at + (uint32_t)w->image_dim[i]];
    if (!jot_winograd_window(k, ix, (uint64_t)1 << w->window[i], &w->space[i], &w->window[i],
                             &w->from[i], &w->flip[i]))
        return false;
    w->tiles[i] = (k->axes.v[w->space[i]].ext + w->side - 1) / w->side;
    return wino_dim_of(k, image, w->space[i]) == w->image_dim[i];
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
        } else if (windows == 2) {
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
        (i->ncond && i->c.u != 0))
        return false;
    if (!wino_taps_dims(k, w) || !wino_rows(k, w, 0) || !wino_rows(k, w, 1) ||
        !jot_winograd_bounds(k, i, w->image_dim, i->at + i->nidx, i->ncond) ||
        !jot_winograd_bounds(k, i, w->image_dim, sum->at, sum->ncond))
        return false;
    w->channels = k->axes.v[w->channel].ext;
    w->outs = k->axes.v[w->out].ext;
    memcpy(w->taps_ext, k->bufs.v[t->buf].ext, sizeof w->taps_ext);
    w->others = i->free & ~(sum->axes | (uint64_t)1 << w->space[0] | (uint64_t)1 << w->space[1]);
    return w->space[0] != w->space[1];
}

JOT_FN bool
jot_winograd_stores(const Kernel *k, const Winograd *w, const KStore *store)
{
    return jot_kernel_fastest(k, store->buf, store->at, w->out);
}

/* The sum is the only reduction, its operands are used by it alone, nothing else needs an axis that
 * it reduces or an operation that is not carried over. */
static bool
wino_alone(const Kernel *k, const Winograd *w, const bool *used)
{
    const Value *sum = &k->values.v[w->sum];
    uint32_t product = jot_v_arg(k, w->sum, 0);
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
            if (jot_v_arg(k, i, j) == product || jot_v_arg(k, i, j) == w->taps)
                return false;
    }
    return true;
}

/* Why tiles would not be cheaper; NULL: they are. */
static const char *
wino_loses(const Kernel *k, const Winograd *w)
{
    return w->channels < WINOGRAD_CHANNELS || w->outs < WINOGRAD_CHANNELS ? "too few channels"
         : w->tiles[0] < 2 || w->tiles[1] < 2 ? "too few rows or columns"
         : k->axes.n + 4 > KERNEL_AXES ? "too many axes" : NULL;
}

/* NULL: it is such a convolution, in whatever layout. */
static const char *
wino_refuses(const Kernel *k, const Contract *c, const bool *used, Winograd *w)
{
    const Value *sum = &k->values.v[c->reduce];
    if (sum->dtype != JOT_F32 || sum->scaled)
        return "its sum is not one of floats";
    if (!wino_match(k, w, c->a, c->b) && !wino_match(k, w, c->b, c->a))
        return "no convolution of 3 x 3 taps and steps of 1";
    if (!wino_alone(k, w, used))
        return "the kernel reads what tiles do not have";
    return wino_loses(k, w);
}

/* Bytes of one number for each element of a tile. */
static int64_t
wino_each(const Winograd *w)
{
    return 4 * (w->side + 2) * (w->side + 2);
}

/* Bytes from beyond the second cache, of blocks that each read U, or of phases that read U once,
 * and write and read V and M of all tiles. */
static bool
wino_in_phases(const Winograd *w, const Target *t, int64_t blocks)
{
    int64_t l2 = t->cache_nbytes[LEVEL_L2], each = wino_each(w) * (w->channels + w->outs);
    int64_t u = wino_each(w) * w->channels * w->outs, all = 2 * each * w->count;
    int64_t apart = u > l2 / CACHE_PART ? blocks * u : 0;
    if (each * w->block > l2)
        apart += all;
    return apart > u + all;
}

/* Two vectors for each row, some registers left for operands. */
static int64_t
wino_rows_most(int lanes, const Target *t)
{
    return lanes == 1                       ? WINOGRAD_ROWS
         : t->vectors >= REGISTERS_MANY ? BLOCK_ROWS_MANY : BLOCK_ROWS_FEW;
}

/* Parts of a block as equal as can be. */
JOT_FN void
jot_winograd_rows(Winograd *w, const Target *t)
{
    int64_t rows = wino_rows_most(w->lanes, t);
    int64_t side = w->phased ? w->count : w->block, parts = (side + rows - 1) / rows;
    w->rows = (side + parts - 1) / parts;
}

/* Tiles of a block: V and M of it in half of the second cache, but enough of them to be worth
 * reading U for, and blocks that fill all cores, unless these are more than half of the tiles: one
 * tile is no block (its place in V has no axis). In phases a block is what a step of the first and
 * the last takes. */
static void
wino_blocks(const Kernel *k, int lanes, const Target *t, Winograd *w)
{
    int64_t each = wino_each(w) * (w->channels + w->outs);
    int64_t count = w->tiles[0] * w->tiles[1] * jot_kernel_extent(k, w->others);
    int64_t most = t->cache_nbytes[LEVEL_L2] / CACHE_PART / each, blocks;
    int64_t rows = wino_rows_most(lanes, t);
    most = most < WINOGRAD_LEAST * rows ? WINOGRAD_LEAST * rows
         : most > WINOGRAD_MOST * rows ? WINOGRAD_MOST * rows : most;
    blocks = (count + most - 1) / most;
    blocks = (blocks + t->cores - 1) / t->cores * t->cores;
    w->lanes = lanes;
    w->panel = 2 * lanes;
    w->block = count > 2 * blocks ? (count + blocks - 1) / blocks : 2;
    w->count = count;
    w->phased = wino_in_phases(w, t, blocks);
    jot_winograd_rows(w, t);
    w->terms = jot_sum_terms(t, lanes, k, w->channel, w->channels);
    if (w->phased)
        w->block = count > 2 * SHARED_STEPS ? (count + SHARED_STEPS - 1) / SHARED_STEPS : 2;
    if (w->phased && lanes > 1
        && w->channels * w->panel * 4 > t->cache_nbytes[LEVEL_L1] / CACHE_PART)
        w->ahead = (int)(PLAN_LATENCY / (w->rows > CYCLES_SUM ? w->rows : CYCLES_SUM)) / w->terms;
}

JOT_FN bool
jot_winograd_form(const Kernel *k, const Contract *c, bool fast, Winograd *w)
{
    bool *used = jot_kernel_used_new(k);
    memset(w, 0, sizeof *w);
    w->side = fast ? 4 : 2;
    w->sum = c->reduce;
    w->no = used ? wino_refuses(k, c, used, w) : "out of memory";
    if (used)
        jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    w->no = k->mem->failed ? "out of memory" : w->no;
    return !w->no;
}

JOT_FN bool
jot_winograd_find(const Kernel *k, const Contract *c, int lanes, const Target *target, bool fast,
                  Winograd *w)
{
    const Value *image;
    if (!jot_winograd_form(k, c, fast, w))
        return false;
    image = &k->values.v[w->image];
    if (!jot_kernel_fastest(k, image->buf, image->at, w->channel)) {
        w->no = "channels of the image are not last";
        return false;
    }
    wino_blocks(k, lanes, target, w);
    return true;
}
