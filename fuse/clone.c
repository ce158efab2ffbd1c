/* fuse/clone.c - which element-wise nodes are computed again by whoever reads them.
 *
 * One is cloned, rather than stored for another group, if it has more elements than the largest
 * variable it is computed from, or as many and all operands are read by reindexes. So no product of
 * a convolution and no window of a pooling is ever in memory. So are halves as floats. Policy
 * reward also clones what is cheap, is read as it lies by groups without a contraction, and is
 * computed from little more than itself: of a batch norm the backward pass needs the input and not
 * five variables on the way.
 *
 * What an equality compares, as the gradient of a maximum does with its terms, is computed once, if
 * anything dear is in it: kernels, and compilers, differ in its last place.
 *
 * requires  groups, FN_STORED of a first placing      gives  FN_CLONE, FN_WORK
 * Read before: fuse/place.c. After: fuse/split.c. */
#include "fuse/work.h"
#include "target/thresholds.h"

/* What stands below a node, seen by its readers: elements of the largest variable, of all, bytes of
 * all, number of nodes computed, whether all operands come through reindexes, what has to be
 * computed; slow: much of it dear; uneven: a map has to be computed, too; once: it is compared;
 * bits: floats are made of integers. */
typedef struct {
    int64_t leaf;
    double total, nbytes;
    uint32_t cone;
    bool far, work, dear, slow, uneven, once, bits;
} CloneOperands;

/* Is i computed by whoever reads it? */
static bool
clone_is_computed(const Fuser *f, uint32_t i)
{
    uint32_t b = f->bits[i];

    return (f->node[i]->kind == NODE_REINDEX || jot_fuse_is_elementwise(f->node[i])) &&
           !(b & (FN_LEAF | FN_KEEP | FN_FREE)) && (!(b & FN_STORED) || (b & FN_CLONE));
}

static CloneOperands
clone_below(const Fuser *f, const CloneOperands *below, uint32_t i)
{
    CloneOperands memory = {0, 0, 0, 0, false, false, false, false, false, false, false},
               none = {0, 0, 0, 0, true, false, false, false, false, false, false};

    memory.leaf = f->node[i]->nelem;
    memory.total = (double)memory.leaf;
    memory.nbytes = (double)jot_node_nbytes(f->node[i]);
    return clone_is_computed(f, i) ? below[i] : f->bits[i] & FN_FREE ? none : memory;
}

/* A sum over operands counts shared nodes each time: what it finds too large is counted again. */
static uint32_t
clone_cone(Fuser *f, uint32_t i)
{
    uint32_t stack[2 * FUSE_CONE], n = 1, cone = 0, stamp = ++f->stamps, k;

    stack[0] = i;
    while (n && cone <= FUSE_CONE) {
        i = stack[--n];
        cone += jot_fuse_weight(f->node[i]);
        for (k = f->in0[i]; k < f->in0[i + 1]; k++, f->visits++) {
            uint32_t p = f->in[k];

            if (!clone_is_computed(f, p) || f->seen[p] == stamp)
                continue;
            f->seen[p] = stamp;
            if (n == 2 * FUSE_CONE)
                return n;
            stack[n++] = p;
        }
    }
    return n ? 2 * FUSE_CONE : cone;
}

static bool
clone_is_dear(const Node *n)
{
    return n->kind == NODE_MAP || (n->kind == NODE_EW && (jot_ew_info[n->op].flags & EW_DEAR));
}

/* Bytes that the map i touches at most: one element for each point of the axes in its indices. */
static double
clone_touched(const Fuser *f, uint32_t i)
{
    const Node *n = f->node[i];
    double points = (double)jot_dtype_nbytes((jot_DType)n->dtype);
    uint64_t seen = 0;
    int64_t c;
    int d, axis;

    for (d = 0; d < n->nindex; d++) {
        if (jot_ix_is_const(&f->ctx->ix, n->index[d], &c))
            continue;
        if (!jot_ix_is_axis(&f->ctx->ix, n->index[d], &axis))
            return (double)jot_node_nbytes(f->node[i]);
        if (!(seen >> axis & 1))
            points *= (double)n->ext[axis];
        seen |= (uint64_t)1 << axis;
    }
    return points;
}

/* What a map of maps reads. */
static uint32_t
clone_mapped(const Fuser *f, uint32_t i)
{
    while (f->node[i]->kind == NODE_REINDEX && !(f->bits[i] & FN_LEAF))
        i = f->in[f->in0[i]];
    return i;
}

/* What is compared for equality with what is computed, too. */
static void
clone_once(const Fuser *f, CloneOperands *below)
{
    uint32_t i;

    for (i = 0; i < f->n; i++)
        if (f->node[i]->kind == NODE_EW && f->node[i]->op == EW_EQ) {
            uint32_t a = clone_mapped(f, f->in[f->in0[i]]);
            uint32_t b = clone_mapped(f, f->in[f->in0[i] + 1]);

            if (f->node[a]->dtype >= JOT_F16 && !((f->bits[a] | f->bits[b]) & FN_FREE))
                below[a].once = below[b].once = true;
        }
}

/* May it be computed again? */
static bool
clone_may(const CloneOperands *below)
{
    return below->cone <= FUSE_CONE && !(below->once && below->dear);
}

/* Numbers of few bits, and what they are to be multiplied by: read as they are by products, too,
 * for what they come to is several times as large. */
static bool
clone_unpacks(const CloneOperands *below, const Node *n)
{
    return n->kind == NODE_EW && below->bits && !below->dear && below->far
        && below->nbytes * CLONE_PACKED <= (double)jot_node_nbytes(n);
}

/* Halves as floats: that is how they are read in any case. Integers as wider ones: as fast. */
static bool
clone_widens(const Fuser *f, uint32_t i)
{
    const Node *n = f->node[i];
    int from = n->kind == NODE_EW && n->op == EW_CAST ? f->node[f->in[f->in0[i]]]->dtype : -1;

    return n->dtype < JOT_F16 ? jot_fuse_widens(f, i)
                              : n->dtype == JOT_F32 && (from == JOT_F16 || from == JOT_BF16);
}

static void
clone_judge(Fuser *f, CloneOperands *below, uint32_t i)
{
    const Node *n = f->node[i];
    CloneOperands sum = {0, 0, 0, 0, true, false, false, false, false, below[i].once, false};
    uint32_t k;

    sum.cone = jot_fuse_weight(n);
    sum.work = jot_fuse_is_elementwise(n) && !(n->kind == NODE_EW && n->op == EW_CAST);
    sum.dear = clone_is_dear(n);
    sum.bits = n->kind == NODE_EW && n->op == EW_CAST && n->dtype >= JOT_F16
            && f->node[f->in[f->in0[i]]]->dtype < JOT_F16;
    for (k = f->in0[i]; k < f->in0[i + 1]; k++) {
        CloneOperands in = clone_below(f, below, f->in[k]);

        f->visits++;
        if (in.leaf > sum.leaf)
            sum.leaf = in.leaf;
        sum.total += in.total;
        sum.nbytes += in.nbytes;
        sum.cone += in.cone;
        sum.far = sum.far && in.far;
        sum.work |= in.work;
        sum.dear |= in.dear;
        sum.uneven |= in.uneven;
        sum.bits |= in.bits;
        sum.slow |= in.slow && f->node[f->in[k]]->nelem > n->nelem / CLONE_CHEAP;
    }
    sum.slow |= clone_is_dear(n);
    if (n->kind == NODE_REINDEX) {
        sum.far = true;
        sum.uneven = sum.uneven || jot_fuse_uneven(f, i, true);
        if (sum.nbytes > clone_touched(f, i))
            sum.nbytes = clone_touched(f, i);
    }
    if (sum.cone > FUSE_CONE)
        sum.cone = n->nelem > sum.leaf || sum.far ? clone_cone(f, i) : 2 * FUSE_CONE;
    below[i] = sum;
    if (f->bits[i] & (FN_KEEP | FN_MOVED))
        return;
    if (jot_fuse_is_elementwise(n) && clone_may(&sum) &&
        (n->nelem > sum.leaf || (n->nelem == sum.leaf && (sum.far || clone_widens(f, i)))))
        f->bits[i] |= FN_CLONE;
    if (sum.work && ((double)n->nelem <= sum.total || sum.dear || sum.uneven)
        && !clone_unpacks(&sum, n))
        f->bits[i] |= FN_WORK;
}

/* Policy reward: what is read at a few of its elements, through a gather, say, is computed for
 * those where they are needed. */
static bool
clone_few(const Fuser *f, const CloneOperands *below, int64_t points, uint32_t i)
{
    return f->ask->policy == FUSE_REWARD && jot_fuse_is_elementwise(f->node[i])
        && !(f->bits[i] & (FN_KEEP | FN_MOVED | FN_LEAF)) && (f->bits[i] & FN_STORED)
        && clone_may(&below[i])
        && points < f->node[i]->nelem / (below[i].slow ? CLONE_DEAR : CLONE_CHEAP);
}

/* Who reads input p of c, and at how many elements; INT64_MAX: something walks all of it. */
static int64_t
clone_points(const Fuser *f, uint32_t c, uint32_t p, int64_t points, bool few)
{
    const Node *n = f->node[c];
    bool map = n->kind == NODE_REINDEX && !(f->bits[c] & FN_BCAST);

    if (few)
        return points;
    if (f->vert[c] != FUSE_NO_VERT && f->vert[p] != FUSE_NO_VERT
        && f->par[f->vert[c]] == f->par[f->vert[p]])
        return 0;
    return map ? n->nelem : INT64_MAX;
}

/* Readers first: what is computed at a few elements reads as few of its operands. */
static void
clone_where_few(Fuser *f, const CloneOperands *below, int64_t *points)
{
    uint32_t c, k;

    for (c = 0; c + 1 < f->verts.n; c++)
        f->par[c] = jot_fuse_find(f, c);
    for (c = f->n; c-- > 0;) {
        bool few = f->real[c] == c && clone_few(f, below, points[c], c);

        if (few)
            f->bits[c] |= FN_CLONE;
        for (k = f->in0[c]; k < f->in0[c + 1]; k++) {
            uint32_t i = f->in[k];
            int64_t more = clone_points(f, c, i, points[c], few);

            f->visits++;
            points[i] = more > INT64_MAX - points[i] ? INT64_MAX : points[i] + more;
        }
    }
}

/* Per node: how many others of other groups read it; UINT32_MAX where that is not as it lies, or in
 * a contraction. */
static void
clone_readers(Fuser *f, uint32_t *readers)
{
    uint32_t c, k;

    for (c = 0; c < f->n; c++)
        for (k = f->in0[c]; f->real[c] == c && k < f->in0[c + 1]; k++) {
            uint32_t i = f->in[k], vert = f->vert[c];
            bool plain = vert != FUSE_NO_VERT && f->node[c]->kind != NODE_REINDEX;

            f->visits++;
            if (plain && f->vert[i] != FUSE_NO_VERT
                && jot_fuse_find(f, vert) == jot_fuse_find(f, f->vert[i]))
                continue;
            if (!plain || f->ncontract[jot_fuse_find(f, vert)]
                || f->node[c]->nelem < f->node[i]->nelem)
                readers[i] = UINT32_MAX;
            readers[i] += readers[i] != UINT32_MAX;
        }
}

/* Policy reward: is reading what it is computed from, once for each reader, less than writing it
 * and reading it? */
static bool
clone_cheap(const Fuser *f, const CloneOperands *below, const uint32_t *readers, uint32_t i)
{
    double k = readers[i];

    return jot_fuse_is_elementwise(f->node[i]) && (f->bits[i] & FN_STORED)
        && !(f->bits[i] & (FN_KEEP | FN_MOVED)) && readers[i] && readers[i] != UINT32_MAX
        && clone_may(&below[i]) && !below[i].slow
        && k * below[i].nbytes <= (1 + k) * (double)jot_node_nbytes(f->node[i]);
}

/* Parts put together, each element of one: a sum of maps with -0.0 outside. */
static bool
clone_is_join(const Fuser *f, const CloneOperands *below, uint32_t i)
{
    const Node *n = f->node[i];
    uint32_t k;

    if (n->kind != NODE_EW || n->op != EW_ADD || below[i].total != (double)n->nelem)
        return false;
    for (k = f->in0[i]; k < f->in0[i + 1]; k++) {
        const Node *x = f->node[f->in[k]];
        bool sum = x->kind == NODE_EW && x->op == EW_ADD && (f->bits[f->in[k]] & FN_CLONE);

        if (!sum && (x->kind != NODE_REINDEX
                     || x->value.u != jot_scalar_from_f64(-0.0, (jot_DType)x->dtype).u))
            return false;
    }
    return true;
}

/* Policy reward: what is put together is not so again for each window of a pool. Its parts are
 * computed in place (plan/layout/concat.c). */
static void
clone_store_joins(Fuser *f, const CloneOperands *below, const int64_t *points)
{
    uint32_t i;

    for (i = 0; i < f->n && f->ask->policy == FUSE_REWARD; i++)
        if ((f->bits[i] & FN_CLONE) && points[i] != INT64_MAX && points[i] > f->node[i]->nelem
            && clone_is_join(f, below, i))
            f->bits[i] &= (uint16_t)~FN_CLONE;
}

JOT_FN bool
jot_fuse_clones(Fuser *f)
{
    CloneOperands *below = jot_arena_array(&f->arena, CloneOperands, (size_t)f->n + 1);
    int64_t *points = jot_arena_array(&f->arena, int64_t, (size_t)f->n + 1);
    uint32_t *readers = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1), i;

    if (!below || !points || !readers)
        return false;
    clone_once(f, below);
    if (f->ask->policy == FUSE_REWARD)
        clone_readers(f, readers);
    for (i = 0; i < f->n; i++)
        if (!(f->bits[i] & FN_LEAF) && f->real[i] == i) {
            clone_judge(f, below, i);
            if (clone_cheap(f, below, readers, i))
                f->bits[i] |= FN_CLONE;
        }
    clone_where_few(f, below, points);
    clone_store_joins(f, below, points);
    return true;
}
