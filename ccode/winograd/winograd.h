/* ccode/winograd/winograd.h - a convolution of 3 x 3 taps and step 1 by tiles of 2 x 2 results:
 * F(2x2, 3x3).
 *
 *     direct      y[h, w] = sum over c p q of x[h + p, w + q, c] * g[p, q, c]    36 products a tile
 *     Winograd    U = G g G'        once for each g
 *                 V = B' x B        of the 4 x 4 elements under a tile: additions only
 *                 M = sum over c of U * V, element by element                    16 products a tile
 *                 y = A' M A        additions only
 *
 * Tiles of 4 x 4, F(4x4, 3x3), need 36 products for 144, but their tables hold 1/24 to 8, and
 * rounding errors grow by that: only where precision "fast" is asked for (docs/kernels.md has the
 * bound).
 *
 * Both are kernels: this one is made from the direct one by replacing one reduction by four (two
 * small ones of constant tables on either side of a sum over c), rows and columns by tiles of two.
 * What reads the sum - bias, relu, residual - is carried over at the new positions.
 *
 * After Winograd (1980) and Lavin and Gray, "Fast algorithms for convolutional neural networks"
 * (2015). The tables are B', G and A' of the latter.
 *
 * Read before: ccode/ir/ir.h. After: ccode/winograd/winograd.c, ccode/winograd/make.c. */
#ifndef JOT_WINOGRAD_H
#define JOT_WINOGRAD_H
#include "ccode/ir/access.h"
#include "ccode/ir/ir.h"
#include "target/target.h"

struct Contract;
struct Epilogue;
typedef struct {
    uint32_t sum, image, taps;  /* values: the reduction and the two loads that it multiplies */
    int space[2], window[2];    /* axes of rows and columns, of taps by row and column */
    int channel, out;           /* axes: the reduced channels, the results' */
    uint64_t others;            /* axes of image and results that remain: the batch */
    int64_t from[2];            /* image index of the first tap of position 0 */
    int image_dim[2];           /* dimensions of the image that rows and columns index */
    int taps_dim[4];            /* dimensions of the taps' buffer: taps by row, by column, channel,
                                   results */
    int64_t channels, outs;     /* extents of those axes */
    int64_t taps_ext[4];        /* of the taps' buffer */
    bool flip[2];               /* taps run backwards: tap 2 stands first (gradients by input) */
    int side;                   /* rows and columns of results in a tile: 2 or 4 */
    int64_t tiles[2];           /* rows and columns of tiles */
    int lanes, panel;           /* of the schedule; results that lie together in U */
    int64_t count;              /* tiles in all */
    int64_t rows, block;        /* tiles of a register block, of a block that stays in the cache */
    bool phased;                /* V and M of all tiles, each step a phase */
    int terms;                  /* channels that a step of the product adds up */
    int ahead;                  /* steps that U is asked for before */
    int64_t band;               /* a block is so many rows of tiles of one image; 0: any tiles */
    const struct Epilogue *epilogue;  /* sums that come along; NULL: none */
    const char *no;             /* why it is none */
} Winograd;

/* Is the contraction such a convolution, in f32, alone in its kernel, and large enough to gain, in
 * whatever layout? k is verified. fast: tiles of 4 x 4. */
JOT_FN bool jot_winograd_form(const Kernel *k, const struct Contract *c, bool fast, Winograd *w);
/* ... with channels last in the image: its layout says so. */
JOT_FN bool jot_winograd_find(const Kernel *k, const struct Contract *c, int lanes,
                              const Target *target, bool fast, Winograd *w);
/* Does this store write channels last? All must. */
JOT_FN bool jot_winograd_stores(const Kernel *k, const Winograd *w, const KStore *store);
/* The layout of U[4, 4, channel, out], which the first kernel writes and the second reads. */
JOT_FN bool jot_winograd_layout(const Winograd *w, Layout *layout);
/* U from the taps: buf[0] the taps (layout NULL: row-major), buf[1] U. *taps is open and empty. */
JOT_FN bool jot_winograd_taps(const Winograd *w, const Layout *layout, Kernel *taps);
JOT_FN bool jot_winograd_taps_sched(Sched *s, Kernel *taps, const Winograd *w, Text *why);
/* The convolution with U in place of the taps; all other buffers keep number and layout. */
JOT_FN bool jot_winograd_kernel(const Kernel *k, const Winograd *w, Kernel *conv);
JOT_FN bool jot_winograd_sched(Sched *s, Kernel *conv, const Winograd *w, Text *why);
/* Rows of the register block, for the tiles of a block. */
JOT_FN void jot_winograd_rows(Winograd *w, const Target *target);
/* ccode/winograd/epilogue.c: blocks that are bands of images, where sums ride and that suits the
 * tiles; the sums, into the kernel of tiles; their stages. */
JOT_FN void jot_winograd_band(const Kernel *k, const Target *target, Winograd *w,
                              const struct Epilogue *r);
JOT_FN bool jot_winograd_epilogue(Kernel *k, const Target *target, const Winograd *w,
                                  struct Epilogue *r,
                               Kernel *to);
JOT_FN bool jot_winograd_epilogue_stages(Sched *s, const Winograd *w, const struct Epilogue *r);

/* Conditions k->ixs.v[at .. at + n): each keeps the index of the load's dimension dim[0] or dim[1]
 * inside, or one that is inside anyway. */
JOT_FN bool jot_winograd_bounds(const Kernel *k, const Value *load, const int *dim, uint32_t at,
                                int n);
/* The index is position + tap + constant, or, *flip, position - tap + constant: one axis of `taps`,
 * of three steps, and another; *from: the index of the tap that stands first at position 0. */
JOT_FN bool jot_winograd_window(const Kernel *k, Ix ix, uint64_t taps, int *space, int *window,
                                int64_t *from, bool *flip);
/* Twice a sum, over axis over[i], which is one of both, of table 'B', 'A' or 'G' (B', A', G of
 * tiles of side x side) at axes first[i], second[i], times v; called `half`, then `name`. */
JOT_FN uint32_t jot_winograd_transform(Kernel *k, char which, int64_t side, const int *first,
                                       const int *second, const int *over, uint32_t v,
                                       const char *half, const char *name);
/* The load at side * tile + step + from in two dimensions, asked where that may leave the buffer;
 * tile: axes, step: an axis and the next one. */
JOT_FN uint32_t jot_winograd_load(Kernel *k, uint32_t buf, Ix *index, const int *dim,
                                  const int *tile, int64_t side, int step, const int64_t *from,
                                  jot_Scalar outside);

/* The gradient by weight of such a convolution, in place (ccode/winograd/weight.c): c is of
 * jot_contract_only. False: it is none, or too small to gain; k is as good as before. */
JOT_FN bool jot_winograd_weight(Sched *s, Kernel *k, const struct Contract *c, const Target *target,
                                int lanes);

#endif
