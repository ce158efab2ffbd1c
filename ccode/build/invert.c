/* ccode/build/invert.c - a reduction's map is solved for its input: a scatter becomes a gather.
 *
 *     out[map(i)] op= y[i]    ->    out[o] = op over what is left of i of y[solution of map(i) = o]
 *
 * Solving is elimination, one output dimension after the other. In o = L(i) one axis is chosen that
 * occurs in one place only, the one that leaves the shortest loop over the others:
 *     o =  i + rest              i = o - rest
 *     o = si + b + rest          residue classes: b = (o - rest)%s + s b', i = (o - rest)/s - b'
 *     o = si + rest              i = (o - rest) / s where (o - rest) % s is 0
 *     o = (i + u) / c + rest     i = c (o - rest) + r - u, r a new axis of c steps
 *     o = i % c + rest           i = o - rest + c q, q a new axis
 * Where o = 8 g + i counts through axes that occur nowhere else (the channels of a grouped
 * convolution), nothing is solved: these axes stand in the output in place of o.
 * The residue classes of a strided convolution's gradient make every iteration useful: for 28
 * pixels at stride 2 and a window of 3 that is 28 x 2 instead of 28 x 3 with a third of them idle.
 * Of a product of two maps, y = a[..i..] * b[..k..] at o = i + k, only the factor whose axis is
 * solved varies with o. Where that leaves the other one no axis of the output, what would be a
 * contraction by the other way is a vector by a matrix (the gradient by input of one image with
 * fewer results than the window has points). For a contraction a loop may be longer.
 * Unsolved input axes are the symbols BUILD_SYMBOL + k in expressions until they become kernel
 * axes.
 *
 * requires  a map without loads     gives  an axis per output dimension, a solution per input axis
 *
 * Read before: ccode/build/reduce.c. */
#include "ccode/build/build.h"
#include "target/thresholds.h"

typedef struct {
    Build *b;
    const Node *node;
    int rank;                 /* symbols: the input's axes, then what / and % brought in */
    Ix map[JOT_MAX_RANK];     /* per output dimension, over kernel axes and symbols */
    Ix out[JOT_MAX_RANK];     /* the output's axes */
    Ix sol[BUILD_SYMBOL];     /* per symbol; 0: not solved */
    Guards g;
    uint64_t reads[2];        /* by the factors of a product of two maps: axes; 0: it is none */
    bool never;
} Invert;

typedef enum { WAY_NONE, WAY_AXIS, WAY_STRIDE, WAY_DIV, WAY_MOD } InvertWayKind;
typedef struct {
    InvertWayKind kind;
    int axis;      /* input axis to solve for */
    int64_t k;     /* its coefficient (AXIS, STRIDE) or its atom's (DIV, MOD) */
    Ix atom;       /* DIV, MOD */
    int64_t gain;  /* how many times shorter the loops get */
} InvertWay;

static int64_t
invert_extent(const Invert *v, int axis)
{
    return v->b->ext[BUILD_SYMBOL + axis];
}

/* The only unsolved symbol that stands alone in the linear form `ix`, with coefficient +-1. */
static bool
invert_unit(const Invert *v, Ix ix, int axis, int64_t *k)
{
    bool inside;

    *k = jot_ix_coef(&v->b->ctx->ix, ix, BUILD_SYMBOL + axis, &inside);
    return !inside && (*k == 1 || *k == -1);
}

static bool
invert_has(const Invert *v, Ix ix, int axis)
{
    return jot_ix_axes(&v->b->ctx->ix, ix) >> (BUILD_SYMBOL + axis) & 1;
}

/* By how much residue classes shorten the partner's loop: a window of 4 at stride 2 by 2. */
static int64_t
invert_classes(const Invert *v, Ix L, int axis, int64_t k)
{
    int64_t stride = k < 0 ? -k : k, longest = 1, unit;
    int other;

    for (other = 0; other < v->rank; other++)
        if (other != axis && !v->sol[other] && invert_has(v, L, other)
            && invert_unit(v, L, other, &unit) && invert_extent(v, other) > longest)
            longest = invert_extent(v, other);
    return longest / ((longest + stride - 1) / stride);
}

/* How `axis` could be solved from L: as an axis of its own, or as the only thing of a / or %. */
static InvertWay
invert_way(const Invert *v, Ix L, int axis)
{
    IxPool *p = &v->b->ctx->ix;
    InvertWay way = {WAY_NONE, 0, 0, 0, 0};
    int64_t c, unit;
    bool inside;
    uint32_t n, i;
    IxTerm tmp;
    const IxTerm *t;

    way.axis = axis;
    way.k = jot_ix_coef(p, L, BUILD_SYMBOL + axis, &inside);
    if (way.k && !inside) {
        way.kind = way.k == 1 || way.k == -1 ? WAY_AXIS : WAY_STRIDE;
        way.gain = invert_extent(v, axis) * invert_classes(v, L, axis, way.k);
        return way;
    }
    if (way.k)
        return way.kind = WAY_NONE, way;
    t = jot_ix_linear(p, L, &c, &n, &tmp);
    for (i = 0; i < n; i++)
        if (invert_has(v, t[i].atom, axis)) {
            if (way.atom)
                return way;
            way.atom = t[i].atom;
            way.k = t[i].k;
        }
    if (!way.atom || (way.k != 1 && way.k != -1))
        return way;
    {
        const IxRec *r = &p->recs.v[way.atom];

        if ((r->op != IX_DIV && r->op != IX_MOD) || !jot_ix_is_const(p, r->b, &c) || c < 2)
            return way;
        if (r->op == IX_DIV && invert_unit(v, r->a, axis, &unit)) {
            way.kind = WAY_DIV;
            way.gain = invert_extent(v, axis) / c;
        } else if (r->op == IX_MOD && jot_ix_is_axis(p, r->a, &axis)) {
            way.kind = WAY_MOD;
            way.gain = invert_extent(v, way.axis) < c ? invert_extent(v, way.axis) : c;
        }
    }
    return way;
}

/* Axes that both factors read stand for a batch. A window's two are not decided yet. */
static bool
invert_alone(const Invert *v, int d, int axis, int side)
{
    uint64_t own = v->reads[side] & ~v->reads[!side], other = v->reads[!side] & ~v->reads[side];

    for (int e = 0; e < v->node->rank; e++) {
        uint64_t axes = e == d ? (uint64_t)1 << axis
                               : jot_ix_axes(&v->b->ctx->ix, v->node->index[e]);

        if ((axes & own) && !(axes & other))
            return false;
    }
    return true;
}

/* Dimension d: solved for an axis that leaves each factor one of its own, or is there no such? */
static bool
invert_contracts(const Invert *v, int d, int axis)
{
    return v->reads[0] && !invert_alone(v, d, axis, 0) && !invert_alone(v, d, axis, 1);
}

static InvertWay
invert_choose(const Invert *v, int d)
{
    InvertWay best = {WAY_NONE, 0, 0, 0, 0};
    Ix L = v->map[d];
    int axis;

    for (axis = 0; axis < v->rank; axis++) {
        InvertWay way;

        if (v->sol[axis] || !invert_has(v, L, axis))
            continue;
        way = invert_way(v, L, axis);
        if (invert_contracts(v, d, axis))
            way.gain *= INVERT_CONTRACTS;
        if (way.kind && (!best.kind || way.gain > best.gain
                         || (way.gain == best.gain && way.kind < best.kind)))
            best = way;
    }
    return best;
}

/* axis = value, everywhere. */
static void
invert_settle(Invert *v, int axis, Ix value)
{
    IxPool *p = &v->b->ctx->ix;
    Ix map[BUILD_SYMBOLS];
    int i;

    for (i = 0; i < BUILD_SYMBOLS; i++)
        map[i] = jot_ix_axis(p, i);
    map[BUILD_SYMBOL + axis] = value;
    v->sol[axis] = value;
    for (i = 0; i < v->rank; i++)
        if (v->sol[i] && invert_has(v, v->sol[i], axis))
            v->sol[i] = jot_ix_subst(p, v->sol[i], BUILD_SYMBOLS, map, NULL, &v->b->space);
    for (i = 0; i < v->node->rank; i++)
        v->map[i] = jot_ix_subst(p, v->map[i], BUILD_SYMBOLS, map, NULL, &v->b->space);
    for (i = 0; i < v->g.n; i++)
        v->g.v[i] = jot_ix_subst(p, v->g.v[i], BUILD_SYMBOLS, map, NULL, &v->b->space);
}

/* A new axis of a / or %: a symbol too, since another dimension may solve it. 0: too many. */
static Ix
invert_symbol(Invert *v, int64_t ext)
{
    if (ext == 1)
        return jot_ix_const(&v->b->ctx->ix, 0);
    if (v->rank == BUILD_SYMBOLS - BUILD_SYMBOL)
        return 0;
    v->b->ext[BUILD_SYMBOL + v->rank] = ext;
    return jot_ix_axis(&v->b->ctx->ix, BUILD_SYMBOL + v->rank++);
}

/* A partner for residue classes: another axis with coefficient +-1; the longest. */
static int
invert_partner(const Invert *v, Ix rest, int64_t *k)
{
    int best = -1, axis;
    int64_t unit;

    for (axis = 0; axis < v->rank; axis++)
        if (!v->sol[axis] && invert_has(v, rest, axis) && invert_unit(v, rest, axis, &unit)
            && (best < 0 || invert_extent(v, axis) > invert_extent(v, best))) {
            best = axis;
            *k = unit;
        }
    return best;
}

/* s * axis = t. With a partner, t = t1 - e * partner: partner = (e t1) % s + s * q. */
static bool
invert_stride(Invert *v, int axis, int64_t s, Ix t)
{
    IxPool *p = &v->b->ctx->ix;
    Ix steps = jot_ix_const(p, s), q, t1, et1, part;
    int64_t unit = 0, e;
    int partner = invert_partner(v, t, &unit);

    if (partner < 0) {
        v->never |= !jot_build_guard(v->b, &v->g,
                                     jot_ix_eq0(p, jot_ix_mod(p, t, steps, &v->b->space),
                                                &v->b->space));
        invert_settle(v, axis, jot_ix_div(p, t, steps, &v->b->space));
        return true;
    }
    e = -unit;
    q = invert_symbol(v, (invert_extent(v, partner) + s - 1) / s);
    if (!q)
        return false;
    t1 = jot_ix_sub(p, t, jot_ix_scale(p, jot_ix_axis(p, BUILD_SYMBOL + partner), unit));
    et1 = jot_ix_scale(p, t1, e);
    part = jot_ix_add(p, jot_ix_mod(p, et1, steps, &v->b->space), jot_ix_scale(p, q, s));
    q = jot_ix_sub(p, jot_ix_div(p, et1, steps, &v->b->space), q);
    invert_settle(v, axis, jot_ix_scale(p, q, e));
    invert_settle(v, partner, part);
    return true;
}

/* Solve output dimension d by the way chosen. */
static bool
invert_solve(Invert *v, int d, const InvertWay *way)
{
    IxPool *p = &v->b->ctx->ix;
    Ix self = way->atom ? way->atom : jot_ix_axis(p, BUILD_SYMBOL + way->axis), x, t, rest;
    int64_t c = 0, unit, k = way->k;

    rest = jot_ix_sub(p, v->map[d], jot_ix_scale(p, self, k));
    t = jot_ix_scale(p, jot_ix_sub(p, v->out[d], rest), k < 0 ? -1 : 1); /* |k| self = t */
    if (way->atom)
        (void)jot_ix_is_const(p, p->recs.v[way->atom].b, &c);
    switch (way->kind) {
    case WAY_AXIS:
        invert_settle(v, way->axis, t);
        return true;
    case WAY_STRIDE:
        return invert_stride(v, way->axis, k < 0 ? -k : k, t);
    case WAY_DIV: /* u = c t + r */
        x = invert_symbol(v, c);
        rest = p->recs.v[way->atom].a; /* by itself: what follows may move the records */
        if (!x || !invert_unit(v, rest, way->axis, &unit))
            return false;
        rest = jot_ix_sub(p, rest,
                          jot_ix_scale(p, jot_ix_axis(p, BUILD_SYMBOL + way->axis), unit));
        x = jot_ix_sub(p, jot_ix_add(p, jot_ix_scale(p, t, c), x), rest);
        invert_settle(v, way->axis, jot_ix_scale(p, x, unit));
        return true;
    default: /* MOD: i = t + c q */
        jot_build_bounds(v->b, t, c, &v->g, &v->never);
        x = invert_symbol(v, (invert_extent(v, way->axis) + c - 1) / c);
        if (x)
            invert_settle(v, way->axis, jot_ix_add(p, t, jot_ix_scale(p, x, c)));
        return x != 0;
    }
}

/* The symbols that are left become reduce axes. */
static bool
invert_leftover(Invert *v)
{
    int axis;

    for (axis = 0; axis < v->rank; axis++) {
        Ix own;

        if (v->sol[axis])
            continue;
        if (!jot_build_axis(v->b, "i", axis, invert_extent(v, axis), &own))
            return false;
        invert_settle(v, axis, own);
    }
    return true;
}

/* Iterations of the inverted nest against those of the scatter: an expression that could not be
 * solved is no reason to visit the whole input for each output. */
static bool
invert_pays(const Invert *v)
{
    const Node *y = jot_node(v->b->ctx, v->node->input[0]);
    double work = 1, scatter = (double)y->nelem;
    uint32_t i;

    for (i = 0; i < v->b->k->axes.n; i++)
        work *= (double)v->b->k->axes.v[i].ext;
    return work <= INVERT_WORK * (scatter + (double)v->node->nelem);
}

/* Axes of the input that an output dimension counts through, the finest first, with their factors:
 * o = 8 (g - from) + i with i below 8. Of the last one, [from, from + steps) is all that counts. */
typedef struct {
    int n, axis[JOT_MAX_RANK];
    int64_t factor[JOT_MAX_RANK], from, steps;
} InvertCount;

/* ... of dimension d, if they occur in no other. */
static bool
invert_counts(const Invert *v, int d, InvertCount *g)
{
    const IxPool *p = &v->b->ctx->ix;
    const IxTerm *t;
    IxTerm tmp;
    int64_t c, next = 1;
    uint32_t n, i;
    int e, *axis;

    t = jot_ix_linear(p, v->node->index[d], &c, &n, &tmp);
    if (n < 2 || n > JOT_MAX_RANK)
        return false;
    for (g->n = 0; g->n < (int)n; g->n++) {
        axis = &g->axis[g->n];
        g->factor[g->n] = next;
        for (i = 0; i < n && t[i].k != next; i++)
            ;
        if (i == n || !jot_ix_is_axis(p, t[i].atom, axis)
            || !jot_mul_ok(next, invert_extent(v, *axis), &next))
            return false;
        for (e = 0; e < v->node->rank; e++)
            if (e != d && jot_ix_axes(p, v->node->index[e]) >> *axis & 1)
                return false;
    }
    next = g->factor[n - 1];
    g->from = -c / next;
    g->steps = v->node->ext[d] / next;
    return c <= 0 && c % next == 0 && v->node->ext[d] % next == 0
        && g->from + g->steps <= invert_extent(v, g->axis[n - 1]);
}

/* Output dimension d by these axes: they stay as they are. */
static bool
invert_count(Invert *v, int d, const InvertCount *g)
{
    IxPool *p = &v->b->ctx->ix;
    int i;

    for (i = g->n - 1; i >= 0; i--) {
        bool last = i == g->n - 1;
        int64_t ext = last ? g->steps : invert_extent(v, g->axis[i]);
        Ix at;

        if (!jot_build_axis(v->b, "i", g->axis[i], ext, &at))
            return false;
        v->out[d] = jot_ix_add(p, v->out[d], jot_ix_scale(p, at, g->factor[i]));
        v->sol[g->axis[i]] = jot_ix_add(p, at, jot_ix_const(p, last ? g->from : 0));
    }
    v->map[d] = v->out[d];
    return true;
}

/* What casts were made of. */
static const Node *
invert_past_casts(const Invert *v, NodeId id)
{
    const Node *n = jot_node(v->b->ctx, id);

    while (n->kind == NODE_EW && n->op == EW_CAST)
        n = jot_node(v->b->ctx, n->input[0]);
    return n;
}

static void
invert_factors(Invert *v)
{
    const Node *y = invert_past_casts(v, v->node->input[0]);

    if (y->kind != NODE_EW || y->op != EW_MUL)
        return;
    for (int side = 0; side < 2; side++) {
        const Node *f = invert_past_casts(v, y->input[side]);

        v->reads[side] = 0;
        for (int i = 0; f->kind == NODE_REINDEX && i < f->nindex; i++)
            v->reads[side] |= jot_ix_axes(&v->b->ctx->ix, f->index[i]);
    }
    if (!v->reads[1])
        v->reads[0] = 0;
}

static bool
invert_begin(Invert *v)
{
    const Node *y = jot_node(v->b->ctx, v->node->input[0]);
    IxPool *p = &v->b->ctx->ix;
    Ix symbol[JOT_MAX_RANK];
    InvertCount digits;
    int k, d;

    v->rank = y->rank;
    for (k = 0; k < v->rank; k++) {
        symbol[k] = jot_ix_axis(p, BUILD_SYMBOL + k);
        v->b->ext[BUILD_SYMBOL + k] = y->ext[k];
    }
    for (d = 0; d < v->node->rank; d++) {
        if (jot_ix_slots(p, v->node->index[d]))
            return false;
        v->out[d] = jot_ix_const(p, 0);
        v->map[d] = jot_ix_subst(p, v->node->index[d], v->rank, symbol, NULL, &v->b->space);
        if (v->node->ext[d] == 1)
            continue;
        if (invert_counts(v, d, &digits)) {
            if (!invert_count(v, d, &digits))
                return false;
            continue;
        }
        if (!jot_build_axis(v->b, "o", d, v->node->ext[d], &v->out[d]))
            return false;
    }
    return true;
}

static bool
invert_map(Invert *v)
{
    IxPool *p = &v->b->ctx->ix;
    int d, axis;

    if (!invert_begin(v))
        return false;
    for (d = 0; d < v->node->rank; d++) {
        InvertWay way = invert_choose(v, d);

        if (way.kind ? !invert_solve(v, d, &way) : false)
            return false;
        if (!way.kind)
            v->never |= !jot_build_guard(v->b, &v->g,
                                         jot_ix_eq0(p, jot_ix_sub(p, v->map[d], v->out[d]),
                                                    &v->b->space));
    }
    if (!invert_leftover(v) || !invert_pays(v))
        return false;
    for (axis = 0; axis < v->rank; axis++)
        jot_build_bounds(v->b, v->sol[axis], invert_extent(v, axis), &v->g, &v->never);
    return true;
}

JOT_FN bool
jot_build_invert(Build *b, const Node *node, BuildSolved *solved)
{
    uint32_t naxes = b->k->axes.n;
    Invert v;
    bool done;

    memset(&v, 0, sizeof v);
    v.b = b;
    v.node = node;
    invert_factors(&v);
    done = invert_map(&v);
    memcpy(solved->out, v.out, sizeof v.out);
    memcpy(solved->sol, v.sol, sizeof v.sol);
    solved->g = v.g;
    solved->never = v.never;
    if (!done)
        b->k->axes.n = naxes;
    return done;
}
