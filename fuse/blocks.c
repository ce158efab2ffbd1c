/* fuse/blocks.c - contractions that share a nest with others: blocks of rows.
 *
 *     a: S = sum over k of Q[z, q, k] K[z, t, k]     kept z q t     shared z q: a row of S a step
 *     b: P = softmax over t of S                     rows z q
 *     c: O = sum over t of P[z, q, t] V[z, t, d]     kept z q d
 *
 * What goes between lies along shared axes, a row of it per step. Each contraction keeps the shared
 * axes, and goes through all of one operand, K or V, for each row: so rows go in blocks, in the
 * course of which that operand is read once. Such a nest pays if a block and these operands stay in
 * a cache; where the operands do not, they come from farther away once for each block, which the
 * price counts (fuse/reward.c). A long chain, as deep as the data has it, is several nests of few
 * products each, which repeat: one of all would be another text for each depth.
 *
 * requires  a pair whose axes are laid on each other    keeps  everything but p->shared
 * Read before: fuse/nest.c. After: fuse/reward.c, ccode/contract/chain.c. */
#include "fuse/nest.h"
#include "target/thresholds.h"

/* Of a nest, at most: attention with the gradient by its queries has these. */
enum { BLOCKS_PRODUCTS = 4 };

JOT_FN uint32_t
jot_nest_axes(const NestPair *p, const NestGroup *g, uint64_t dims)
{
    uint32_t on = 0;
    int d;

    for (d = 0; d < g->space->rank; d++)
        if ((dims >> d & 1) && g->axis[d] < NEST_AXES)
            on |= (uint32_t)1 << (g->nest == p->a ? p->map[g->axis[d]] : g->axis[d]);
    return on;
}

JOT_FN uint32_t
jot_nest_along(const Nests *j, const NestPair *p, const NestGroup *g, const NestUse *u, bool *mixed)
{
    const Node *n = j->f->node[u->pos];
    uint32_t on = 0;
    int d;

    *mixed = false;
    for (d = 0; d < n->rank; d++) {
        uint8_t at = n->ext[d] == 1 ? NEST_NONE : jot_nest_axis(p, g, u, d);

        if (at < NEST_AXES)
            on |= (uint32_t)1 << at;
        else
            *mixed |= n->ext[d] > 1;
    }
    return on;
}

/* Windows: an index at which one that is kept and one that is summed over meet, or a border. */
static bool
blocks_windows(const Fuser *f, uint32_t mul, uint64_t rows, uint64_t summed)
{
    uint32_t k;
    int d;

    for (k = 0; k < 2; k++) {
        const Node *n = f->node[f->in[f->in0[mul] + k]];

        if (n->ncond || n->ninputs != 1)
            return true;
        for (d = 0; d < n->nindex; d++) {
            uint64_t axes = jot_ix_axes(&f->ctx->ix, n->index[d]);

            if ((axes & rows) && (axes & summed))
                return true;
        }
    }
    return false;
}

/* A contraction's rows and columns under the shared axes: both are long; *row: shared axes that one
 * operand alone has. */
static bool
blocks_product(const Nests *j, const NestPair *p, const NestGroup *g, uint32_t pos, uint32_t kept,
               uint32_t *row)
{
    const Fuser *f = j->f;
    uint32_t mul = f->in[f->in0[pos]], m, n;
    uint64_t axes[2], a, b, stays = 0;
    int d;

    jot_fuse_factors(f, pos, axes);
    a = axes[0];
    b = axes[1];
    for (d = 0; d < g->space->rank; d++)
        if (jot_nest_axes(p, g, (uint64_t)1 << d) & kept)
            stays |= (uint64_t)1 << d;
    m = jot_nest_axes(p, g, a & ~b) & kept;
    n = jot_nest_axes(p, g, b & ~a) & kept;
    *row &= m | n;
    if (f->ctx->target.matrix && f->node[mul]->dtype == JOT_BF16) /* a matrix unit is faster */
        return false;
    if (blocks_windows(f, mul, (a ^ b) & stays, a & b & ~stays) || (p->shared & ~kept) || !m || !n)
        return false;
    if (p->shared & m) /* rows on one side, all of the other for each */
        return !(p->shared & n);
    return !(p->shared & n) || (m & ~p->shared);
}

/* The axis that neighbours of the variable in memory lie on; none: 0. */
static uint32_t
blocks_last(const Nests *j, const NestPair *p, const NestGroup *g, const NestUse *u)
{
    const Node *n = j->f->node[u->pos];
    int d;

    for (d = n->rank; d-- > 0;)
        if (n->ext[d] > 1) {
            uint8_t at = jot_nest_axis(p, g, u, d);

            return at < NEST_AXES ? (uint32_t)1 << at : 0;
        }
    return 0;
}

/* Everything that is stored keeps the shared axes. */
static bool
blocks_group(const Nests *j, NestPair *p, const NestGroup *g)
{
    uint32_t k;

    for (k = 0; k < g->nown; k++) {
        const NestUse *u = &j->uses.v[g->own + k];
        bool mixed;
        uint32_t kept = jot_nest_along(j, p, g, u, &mixed);

        j->f->visits++;
        if (mixed)
            return false;
        p->shared &= kept;
    }
    return p->shared != 0;
}

/* Rows of what is stored lie apart, their elements side by side. */
static bool
blocks_products(const Nests *j, NestPair *p, const NestGroup *g, int *products)
{
    uint32_t k;

    for (k = 0; k < g->nown; k++) {
        const NestUse *u = &j->uses.v[g->own + k];
        bool mixed;
        uint32_t kept = jot_nest_along(j, p, g, u, &mixed);

        if ((kept & ~p->shared) && (blocks_last(j, p, g, u) & p->shared))
            return false;
        if (!(j->f->bits[u->pos] & FN_CONTRACT))
            continue;
        if (++*products > BLOCKS_PRODUCTS || !blocks_product(j, p, g, u->pos, kept, &p->row))
            return false;
    }
    return true;
}

/* The longest axis of p->row. */
static uint32_t
blocks_longest(const NestPair *p)
{
    uint32_t best = 0;
    int k, at = 0;

    for (k = 0; k < p->naxes; k++)
        if ((p->row >> k & 1) && (!best || p->ext[k] > p->ext[at])) {
            best = (uint32_t)1 << k;
            at = k;
        }
    return best;
}

JOT_FN FuseWhy
jot_nest_blocks(Nests *j, NestPair *p)
{
    uint32_t side, g;
    int products = 0;

    if (!j->f->ctx->target.blocks)
        return j->nest[p->a].spread && j->nest[p->b].spread ? WHY_CONTRACTIONS : WHY_EPILOGUE;
    if (!j->nest[p->a].sums || j->nest[p->a].sums + j->nest[p->b].sums < 2)
        return WHY_EPILOGUE; /* an operand that is computed point by point is packed */
    for (side = 0; side < 2; side++)
        for (g = side ? p->b : p->a; g != NEST_OUT; g = j->group[g].next)
            if (!blocks_group(j, p, &j->group[g]))
                return WHY_EPILOGUE;
    p->row = p->shared;
    for (side = 0; side < 2; side++)
        for (g = side ? p->b : p->a; g != NEST_OUT; g = j->group[g].next)
            if (!blocks_products(j, p, &j->group[g], &products))
                return WHY_EPILOGUE;
    p->row = blocks_longest(p);
    p->blocks = p->edges && p->row;
    return p->blocks ? WHYS : WHY_EPILOGUE;
}

/* Bytes of what has these axes that a block of rows needs; *whole: as far as it has no row. */
static double
blocks_nbytes(const NestPair *p, uint32_t axes, double nbytes, double *whole)
{
    int k;

    for (k = 0; k < p->naxes; k++)
        if (axes >> k & 1)
            nbytes *= !(p->shared >> k & 1) || p->ext[k] < (p->row >> k & 1 ? BLOCKS_ROWS : 1)
                          ? (double)p->ext[k] : p->row >> k & 1 ? BLOCKS_ROWS : 1;
    if (!(axes & p->row))
        *whole += nbytes;
    return nbytes;
}

/* What a product reads: its two factors, however they are composed. */
static double
blocks_factors(const Nests *j, const NestPair *p, const NestGroup *g, uint32_t pos, double *whole)
{
    const Fuser *f = j->f;
    double size = (double)jot_dtype_nbytes((jot_DType)f->node[f->in[f->in0[pos]]]->dtype);
    uint64_t axes[2];

    jot_fuse_factors(f, pos, axes);
    return blocks_nbytes(p, jot_nest_axes(p, g, axes[0]), size, whole)
         + blocks_nbytes(p, jot_nest_axes(p, g, axes[1]), size, whole);
}

JOT_FN double
jot_nest_footprint(Nests *j, const NestPair *p, double *whole)
{
    uint32_t side, g, k;
    double nbytes = 0;

    *whole = 0;
    for (side = 0; side < 2; side++)
        for (g = side ? p->b : p->a; g != NEST_OUT; g = j->group[g].next)
            for (k = 0; k < j->group[g].nown; k++) {
                const NestGroup *group = &j->group[g];
                const NestUse *u = &j->uses.v[group->own + k];
                double size = (double)jot_dtype_nbytes((jot_DType)j->f->node[u->pos]->dtype);
                bool mixed;

                j->f->visits++;
                nbytes += blocks_nbytes(p, jot_nest_along(j, p, group, u, &mixed), size, whole);
                if (j->f->bits[u->pos] & FN_CONTRACT)
                    nbytes += blocks_factors(j, p, group, u->pos, whole);
            }
    return nbytes;
}
