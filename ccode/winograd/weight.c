/* ccode/winograd/weight.c - the gradient by weight of a convolution of 3 x 3 taps and step 1, by
 * Winograd's tiles of 2 x 2: what F(2x2, 3x3) is the other way round.
 *
 *     direct      dg[p, q] = sum over n h w of x[n, h + p, w + q, c] * dy[n, h, w, o]
 *     Winograd    V = B' x B      of the 4 x 4 elements under a tile
 *                 W = A dy A'     of its 2 x 2 gradients
 *                 P = sum over n and tiles of V * W, element by element      16 products, not 36
 *                 dg = G' P G     once
 *
 * It is y = A' [(G g G') (B' x B)] A derived by g. The kernel is changed in place: the sum gives
 * way to these, rows and columns to tiles.
 *
 *     %wv: wt:784p wt:112 wt c:16 | wp:1u ws:1u wr:1u c:1v
 *     %V: wt:784p wt:112 wt c:16 | wp:1u wq:1u ws:1u c:1v; res SV[wp, wq, c/16, wt%112, c%16]
 *     %ww, %W: the same of dy, with o; res SW[wp, wq, o/32, wt%112, o%32]
 *     %P: wt:784p || wt:112 wp wq o:32 c:8 | wt c:1u o:16u o:1v;
 *         keep part[wt/784, o/16, c, wp, wq, o%16]
 *     phase
 *     +%P: o:16p c | wt:784d wp:1u wq:1u o:1v
 *     %wg: o:16p c | p:1u wq:1u wp:1u o:1v
 *     %dg: o:16p c | p:1u q:1u wq:1u o:1v
 *
 * A block of tiles goes through all of it in the second cache. P is of pieces of the tiles, as many
 * as extents say, added up in order. Where P is larger than V and W of all tiles these are made
 * first, and then each element of P by one sum: three phases.
 *
 *   requires  a kernel with jot_contract_only, layouts set
 *   keeps     what is computed, with other rounding (docs/kernels.md); all if there is no schedule
 *   breaks    numbers of values, extents of the axes of rows and columns
 *
 * Read before: ccode/winograd/winograd.h, ccode/contract/contract.h. After:
 * ccode/strategy/strategy.c. */
#include "ccode/winograd/winograd.h"
#include "ccode/contract/contract.h"
#include "ccode/schedule/builder.h"
#include "target/thresholds.h"

typedef struct {
    uint32_t image, grads;      /* loads */
    int space[2], window[2];    /* axes of rows and columns, of taps */
    int dim[2], grads_dim[2];   /* dimensions of image and gradients that rows and columns index */
    int channel, out;
    uint64_t batch;             /* reduced axes besides rows and columns */
    int64_t from[2];            /* image index of the first tap of position 0 */
    int64_t ext[2];             /* rows, columns */
    int64_t count;              /* tiles */
    int64_t block, piece;       /* of the block that stays in the cache, of a partial sum */
    bool phased;
} Weight;

/* ---- finding ------------------------------------------------------------------------------ */

static bool
weight_image(const Kernel *k, const Contract *c, Weight *w)
{
    const Value *v = &k->values.v[w->image];
    int windows = 0, axis;
    bool flip;
    w->channel = -1;
    for (int d = 0; d < v->nidx; d++) {
        Ix ix = k->ixs.v[v->at + (uint32_t)d];
        if (!jot_ix_is_axis(k->ix, ix, &axis)) {
            if (windows == 2 ||
                !jot_winograd_window(k, ix, ~c->k, &w->space[windows], &w->window[windows],
                                     &w->from[windows], &flip) || flip)
                return false;
            w->dim[windows++] = d;
        } else if (c->k >> axis & 1)
            w->batch |= (uint64_t)1 << axis;
        else if (w->channel >= 0)
            return false;
        else
            w->channel = axis;
    }
    return windows == 2 && w->channel >= 0 && w->space[0] != w->space[1] &&
           w->window[0] != w->window[1] && v->c.u == 0 &&
           jot_winograd_bounds(k, v, w->dim, v->at + v->nidx, v->ncond);
}

static bool
weight_grads(const Kernel *k, const Contract *c, Weight *w)
{
    const Value *v = &k->values.v[w->grads];
    uint64_t batch = 0;
    int axis;
    w->out = w->grads_dim[0] = w->grads_dim[1] = -1;
    for (int d = 0; d < v->nidx; d++) {
        if (!jot_ix_is_axis(k->ix, k->ixs.v[v->at + (uint32_t)d], &axis) ||
            k->bufs.v[v->buf].ext[d] != k->axes.v[axis].ext)
            return false;
        if (axis == w->space[0] || axis == w->space[1])
            w->grads_dim[axis == w->space[1]] = d;
        else if (c->k >> axis & 1)
            batch |= (uint64_t)1 << axis;
        else if (w->out >= 0)
            return false;
        else
            w->out = axis;
    }
    return w->out >= 0 && w->grads_dim[0] >= 0 && w->grads_dim[1] >= 0 && batch == w->batch &&
           v->ncond == 0;
}

static bool
weight_match(const Kernel *k, const Contract *c, Weight *w, uint32_t image, uint32_t grads)
{
    const Value *i = &k->values.v[image], *g = &k->values.v[grads], *sum = &k->values.v[c->reduce];
    memset(w, 0, sizeof *w);
    w->image = image;
    w->grads = grads;
    if (i->op != VAL_LOAD || g->op != VAL_LOAD || i->buf == g->buf ||
        k->bufs.v[i->buf].dtype != JOT_F32 || k->bufs.v[g->buf].dtype != JOT_F32 ||
        sum->dtype != JOT_F32 || sum->ncond || sum->scaled)
        return false;
    if (!weight_image(k, c, w) || !weight_grads(k, c, w) || jot_bits_count(w->batch) > 5 ||
        (c->m | c->n | c->batch) != ((uint64_t)1 << w->channel | (uint64_t)1 << w->out |
                                     (uint64_t)1 << w->window[0] | (uint64_t)1 << w->window[1]))
        return false;
    w->count = jot_kernel_extent(k, w->batch);
    for (int d = 0; d < 2; d++) {
        w->ext[d] = k->axes.v[w->space[d]].ext;
        w->count *= (w->ext[d] + 1) / 2;
    }
    return k->axes.v[w->channel].ext >= WEIGHT_CHANNELS &&
           k->axes.v[w->out].ext >= WEIGHT_CHANNELS && w->ext[0] > 2 && w->ext[1] > 2 &&
           k->axes.n + 6 <= KERNEL_AXES && jot_kernel_fastest(k, i->buf, i->at, w->channel) &&
           jot_kernel_fastest(k, g->buf, g->at, w->out);
}

/* A block's V and W in half of the second cache; pieces by extents alone, of whole blocks. */
static void
weight_blocks(const Kernel *k, const Target *t, Weight *w)
{
    int64_t c = k->axes.v[w->channel].ext, o = k->axes.v[w->out].ext;
    int64_t each = 64 * (c + o), most = t->cache_nbytes[LEVEL_L2] / CACHE_PART / each, blocks;
    most = most < WEIGHT_LEAST ? WEIGHT_LEAST : most > WEIGHT_MOST ? WEIGHT_MOST : most;
    w->phased = 2 * w->count * (c + o) < WEIGHT_PIECES * c * o;
    w->piece = (w->count + WEIGHT_PIECES - 1) / WEIGHT_PIECES;
    blocks = (w->piece + most - 1) / most;
    w->block = (w->piece + blocks - 1) / blocks;
    w->piece = blocks * w->block;
    if (w->phased)
        w->block = (w->count + 2 * WEIGHT_PIECES - 1) / (2 * WEIGHT_PIECES);
}

/* ---- the kernel --------------------------------------------------------------------------- */

/* The load at 2 * tile + step + from, guarded where that may leave the buffer. */
static uint32_t
weight_load(Kernel *k, const Weight *w, uint32_t load, const int *dim, int step,
            const int64_t *from)
{
    const Value v = k->values.v[load];
    Ix index[JOT_MAX_RANK];
    jot_Scalar zero;
    zero.u = 0;
    for (int d = 0; d < v.nidx; d++)
        index[d] = k->ixs.v[v.at + (uint32_t)d];
    return jot_winograd_load(k, v.buf, index, dim, w->space, 2, step, from, zero);
}

static bool
weight_kernel(Kernel *k, const Contract *c, Weight *w)
{
    static const char *const name[6] = { "wp", "wq", "wr", "ws", "we", "wf" };
    static const int64_t zero[2] = { 0, 0 };
    uint64_t tiles = w->batch | (uint64_t)1 << w->space[0] | (uint64_t)1 << w->space[1];
    uint32_t x, y;
    int own[6];
    for (int i = 0; i < 6; i++)
        if ((own[i] = jot_kernel_axis(k, name[i], i < 4 ? 4 : 2)) < 0)
            return false;
    for (int i = 0; i < 2; i++)
        k->axes.v[w->space[i]].ext = (w->ext[i] + 1) / 2;
    x = weight_load(k, w, w->image, w->dim, own[2], w->from);
    x = jot_winograd_transform(k, 'B', 2, own, own + 2, own + 2, x, "wv", "V");
    y = weight_load(k, w, w->grads, w->grads_dim, own[4], zero);
    y = jot_winograd_transform(k, 'A', 2, own + 4, own, own + 4, y, "ww", "W");
    x = jot_v_reduce(k, EW_ADD, tiles, jot_v_ew(k, EW_MUL, JOT_F32, x, y, 0), 0, NULL, 1.0);
    jot_v_name(k, x, "P");
    x = jot_winograd_transform(k, 'G', 2, own, w->window, own, x, "wg", "dg");
    return x && jot_v_replace(k, c->reduce, x, x) && jot_kernel_compact(k) && !k->mem->failed;
}

/* ---- the schedule ------------------------------------------------------------------------- */

static bool
weight_bufs(Kernel *k, const Weight *w, int lanes)
{
    int64_t c = k->axes.v[w->channel].ext, o = k->axes.v[w->out].ext, ext[6] = { 4, 4, 0, 0, 0, 0 };
    BufRole role = w->phased ? BUF_SHARED : BUF_SCRATCH;
    ext[3] = w->phased ? w->count : w->block;
    ext[2] = (c + lanes - 1) / lanes;
    ext[4] = lanes;
    if (!jot_kernel_buf(k, "SV", JOT_F32, role, 5, ext))
        return false;
    ext[2] = (o + 2 * lanes - 1) / (2 * lanes);
    ext[4] = 2 * lanes;
    if (!jot_kernel_buf(k, "SW", JOT_F32, role, 5, ext))
        return false;
    ext[0] = w->phased ? 1 : (w->count + w->piece - 1) / w->piece;
    ext[1] = (o + lanes - 1) / lanes; /* what the last phase reads at a time lies together */
    ext[2] = c;
    ext[3] = ext[4] = 4;
    ext[5] = lanes;
    return jot_kernel_buf(k, "part", JOT_F32, BUF_SHARED, 6, ext) != 0;
}

/* Roles: c channels, o results, a b of the window; V lanes, W two vectors, B tiles of a block, N of
 * a piece, L loops around these, K the loop over a block's tiles, T the tile in V and W, R rows of
 * the register block. */
static const char weight_tiles[] =
    "%wv: $L wt $c:$V | wp:1u ws:1u wr:1u $c:1v\n"
    "%V: $L wt $c:$V | wp:1u wq:1u ws:1u $c:1v; res SV[wp, wq, $c/$V, $T, $c%$V]\n"
    "%ww: $L wt $o:$V | wp:1u wf:1u we:1u $o:1v\n"
    "%W: $L wt $o:$V | wp:1u wq:1u wf:1u $o:1v; res SW[wp, wq, $o/$W, $T, $o%$W]\n";
static const char weight_pieces[] =
    "%P: wt:$Np || wt:$B wp wq $o:$W $c:$R | $K $c:1u $o:$Vu $o:1v; "
    "keep part[wt/$N, $o/$V, $c, wp, wq, $o%$V]; res part[wt/$N, $o/$V, $c, wp, wq, $o%$V]\n"
    "phase\n"
    "+%P: $o:$Vp $c | wt:$Nd wp:1u wq:1u $o:1v\n";
static const char weight_phases[] =
    "phase\n"
    "%P: wp:1p wq:1p $o:$Wp $c:$R | $K $c:1u $o:$Vu $o:1v; res part[0, $o/$V, $c, wp, wq, $o%$V]\n"
    "phase\n";
static const char weight_taps[] =
    "%wg: $o:$Vp $c | $a:1u wq:1u wp:1u $o:1v\n"
    "%dg: $o:$Vp $c | $a:1u $b:1u wq:1u $o:1v\n"
    "!*: $o:$Vp $c $a:1u $b:1u $o:1v\n";

static void
weight_roles(Writer *write, const Weight *w, const Target *target, int lanes, LoopList *around,
             LoopList *tiles)
{
    IxPool *ix = write->s->k->ix;
    int last = KERNEL_AXES + (int)write->s->axes.n - 1; /* wt */
    Ix tile = jot_ix_axis(ix, last);
    if (!w->phased) {
        jot_loops_add(around, last, w->piece, LOOP_PARALLEL);
        tile = jot_ix_mod(ix, tile, jot_ix_const(ix, w->block), NULL);
    }
    jot_loops_add(around, last, w->block, w->phased ? LOOP_PARALLEL : LOOP_SERIAL);
    jot_loops_terms(tiles, last, jot_sum_terms(target, lanes, write->s->k, last,
                                               w->phased ? w->count : w->block));
    jot_write_loops(write, 'L', around);
    jot_write_loops(write, 'K', tiles);
    jot_write_index(write, 'T', tile);
    jot_write_axis(write, 'c', w->channel);
    jot_write_axis(write, 'o', w->out);
    jot_write_axis(write, 'a', w->window[0]);
    jot_write_axis(write, 'b', w->window[1]);
    jot_write_number(write, 'V', lanes);
    jot_write_number(write, 'W', 2 * lanes);
    jot_write_number(write, 'B', w->block);
    jot_write_number(write, 'N', w->piece);
    jot_write_number(write, 'R', lanes >= 16 ? WEIGHT_ROWS : WEIGHT_ROWS / 2);
}

static bool
weight_sched(Sched *s, Kernel *k, const Weight *w, const Target *target, int lanes)
{
    LoopList around = {0}, tiles = {0};
    Writer write;
    jot_write_open(&write, s, k, lanes);
    s->fma = true;
    jot_write_set(&write, 'n', w->batch);
    jot_write_axis(&write, 'h', w->space[0]);
    jot_write_axis(&write, 'w', w->space[1]);
    jot_write_lines(&write, "fuse wt = $n $h $w\n");
    weight_roles(&write, w, target, lanes, &around, &tiles);
    jot_write_lines(&write, weight_tiles);
    jot_write_lines(&write, w->phased ? weight_phases : weight_pieces);
    jot_write_lines(&write, weight_taps);
    return jot_write_done(&write);
}

JOT_FN bool
jot_winograd_weight(Sched *s, Kernel *k, const Contract *c, const Target *target, int lanes)
{
    Weight w;
    Kernel was;
    memset(s, 0, sizeof *s);
    if (lanes < 4 || (!weight_match(k, c, &w, c->a, c->b) && !weight_match(k, c, &w, c->b, c->a)))
        return jot_sched_no(s, "no sum over positions of 3 x 3 taps and many channels, these last");
    weight_blocks(k, target, &w);
    return jot_sched_settle(s, k, &was, jot_kernel_copy(&was, k) && weight_kernel(k, c, &w) &&
                                            weight_bufs(k, &w, lanes) &&
                                            weight_sched(s, k, &w, target, lanes));
}
