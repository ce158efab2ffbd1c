/* expr/range.c - the range of each name of a statement, and what the ranges must not do.
 *
 *     y[h] += x[2*h + p] * w[p]        x (9), w (3)
 *         p < 3      alone as an index of w
 *         h < 4      the most with which 2*h + p, at most 2*(h-1) + 2, stays below 9
 *
 * In this order: ranges that are given; names alone as an index of an operand, which must agree;
 * names that are the only unknown of an index, as far as all such indices stay inside. An index
 * that may leave its variable (`else`, or a name of it stands in a condition on indices around it)
 * counts only where nothing else gives a range, and then only as a name alone.
 *
 * An index is bounded as a linear form of the names, exactly, plus an interval for quotients, rests
 * and loads. The bounds of a larger range hold those of a smaller one, so the largest range is
 * found by doubling and bisection, whatever the form of the index.
 *
 * Read before: expr/statement.c. After: expr/emit.c. */
#include "expr/parts.h"

#define RANGE_MOST ((int64_t)1 << 40)   /* no range is larger */
#define RANGE_LOADED ((int64_t)1 << 40) /* what a load counts as, as in index strings */

/* c + the sum of k[name] * name + something of lo..hi */
typedef struct { int64_t c, k[JOT_MAX_RANK], lo, hi; bool far; } RangeLine;

/* ---- bounds ------------------------------------------------------------------------------- */

static int64_t
range_mul(bool *far, int64_t a, int64_t b)
{
    int64_t p = a < 0 ? -a : a, q = b < 0 ? -b : b;

    if (p && q > EXPR_FAR / p)
        return *far = true, 0;
    return a * b;
}

/* Bounds of it. False: it may be too far from 0. */
static bool
range_bounds(const Expr *e, const RangeLine *l, int64_t *lo, int64_t *hi)
{
    bool far = l->far;
    int k;

    *lo = l->c + l->lo;
    *hi = l->c + l->hi;
    for (k = 0; k < e->nnames; k++) {
        int64_t last = e->name[k].ext > 1 ? e->name[k].ext - 1 : 0;
        int64_t v = range_mul(&far, l->k[k], last);

        *(v < 0 ? lo : hi) += v;
    }
    return !far && *lo >= -EXPR_FAR && *hi <= EXPR_FAR;
}

static int64_t
range_floor(int64_t a, int64_t d)
{
    return a / d - (a % d < 0);
}

static void range_line(const Expr *e, int id, RangeLine *l);

/* l = l + k * the form of id */
static void
range_add(const Expr *e, RangeLine *l, int id, int64_t k)
{
    RangeLine r;
    int64_t p, q;
    int i;

    range_line(e, id, &r);
    l->far |= r.far;
    l->c += range_mul(&l->far, r.c, k);
    p = range_mul(&l->far, r.lo, k);
    q = range_mul(&l->far, r.hi, k);
    l->lo += p < q ? p : q;
    l->hi += p < q ? q : p;
    for (i = 0; i < e->nnames; i++)
        l->k[i] += range_mul(&l->far, r.k[i], k);
}

/* A quotient or rest by d: an interval. */
static void
range_divided(const Expr *e, RangeLine *l, int id, int64_t d, bool rest)
{
    RangeLine r;
    int64_t lo, hi;

    range_line(e, id, &r);
    l->far |= !range_bounds(e, &r, &lo, &hi);
    l->lo = range_floor(lo, d);
    l->hi = range_floor(hi, d);
    if (rest && l->lo == l->hi) {
        l->lo = lo - l->lo * d;
        l->hi = hi - l->hi * d;
    } else if (rest)
        l->lo = 0, l->hi = d - 1;
}

static int64_t
range_num(const Expr *e, int id)
{
    return (int64_t)e->node[id].num;
}

static void
range_line(const Expr *e, int id, RangeLine *l)
{
    static const RangeLine none;
    const ExprNode *n = &e->node[id];
    int64_t lo, hi;

    *l = none;
    if (n->kind == EXPR_NUM)
        l->c = range_num(e, id);
    else if (n->kind == EXPR_NAME)
        l->k[n->op] = 1;
    else if (n->kind == EXPR_LOAD)
        l->lo = -RANGE_LOADED, l->hi = RANGE_LOADED;
    else if (n->truth) {
        range_add(e, l, n->a, 1);
        l->far |= !range_bounds(e, l, &lo, &hi);
        if (n->kind == EXPR_INFIX)
            range_add(e, l, n->b, -1);
        lo = l->far || !range_bounds(e, l, &lo, &hi);
        *l = none;
        l->far = lo != 0;
        l->hi = 1;
    } else if (n->op == INFIX_ADD || n->op == INFIX_SUB) {
        range_add(e, l, n->a, 1);
        range_add(e, l, n->b, n->op == INFIX_ADD ? 1 : -1);
    } else if (n->op == INFIX_MUL) {
        bool left = e->node[n->a].kind == EXPR_NUM;

        range_add(e, l, left ? n->b : n->a, range_num(e, left ? n->a : n->b));
    } else
        range_divided(e, l, n->a, range_num(e, n->b), n->op == INFIX_MOD);
    l->far |= !range_bounds(e, l, &lo, &hi);
}

/* ---- indices ------------------------------------------------------------------------------ */

/* Names of the comparisons of indices in a condition on more than indices. */
static unsigned
range_guarded(const Expr *e, int id)
{
    const ExprNode *n = &e->node[id];

    if (n->index)
        return n->truth ? n->names : 0;
    if (n->kind == EXPR_INFIX)
        return range_guarded(e, n->a) | range_guarded(e, n->b);
    return n->kind == EXPR_CALL ? range_guarded(e, n->a) | (n->b ? range_guarded(e, n->b) : 0) : 0;
}

static bool range_collect(Expr *e, int id, unsigned guarded);

/* The indices of a read or load as sites, then what is inside of them. */
static bool
range_indices(Expr *e, const ExprNode *n, unsigned guarded)
{
    int dim = 0, x;

    for (x = n->b; x; x = e->node[x].next, dim++) {
        ExprSite *s = &e->site[e->nsites];

        if (e->nsites == EXPR_SITES)
            return EXPR_BAD(e, JOT_ERANGE, n->at, "a statement has at most %d indices", EXPR_SITES);
        e->nsites++;
        s->node = (int16_t)x;
        s->var = n->a;
        s->dim = (uint8_t)dim;
        s->loose = n->c || (e->node[x].names & guarded);
        if (!range_collect(e, x, guarded))
            return false;
    }
    return true;
}

static bool
range_collect(Expr *e, int id, unsigned guarded)
{
    const ExprNode *n = &e->node[id];

    switch (n->kind) {
    case EXPR_NUM: return true;
    case EXPR_NAME: return e->name[n->op].used = true;
    case EXPR_READ: case EXPR_LOAD: return range_indices(e, n, guarded);
    case EXPR_NOT: case EXPR_CAST: return range_collect(e, n->a, guarded);
    case EXPR_INFIX:
        return range_collect(e, n->a, guarded) && range_collect(e, n->b, guarded);
    case EXPR_CALL:
        return range_collect(e, n->a, guarded) && (!n->b || range_collect(e, n->b, guarded));
    default:
        if (!range_collect(e, n->a, guarded))
            return false;
        guarded |= e->node[n->a].index ? e->node[n->a].names : range_guarded(e, n->a);
        return range_collect(e, n->b, guarded) && range_collect(e, n->c, guarded);
    }
}

static int64_t
range_extent(const Expr *e, const ExprSite *s)
{
    return jot_extent(e->var[s->var].v, s->dim);
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* Names that stand alone as an index of tight sites, or of loose ones. */
static bool
range_alone(Expr *e, bool loose)
{
    int by[JOT_MAX_RANK], k;
    uint32_t found = 0;

    for (k = 0; k < e->nsites; k++) {
        const ExprSite *s = &e->site[k], *first;
        const ExprNode *n = &e->node[s->node];
        ExprName *name;

        if (n->kind != EXPR_NAME || s->loose != loose)
            continue;
        name = &e->name[n->op];
        if (name->ext < 0) {
            name->ext = range_extent(e, s);
            by[n->op] = k;
            found |= 1u << n->op;
        } else if (found >> n->op & 1 && name->ext != range_extent(e, s)) {
            first = &e->site[by[n->op]];
            return EXPR_BAD(e, JOT_ESHAPE, n->at, "%.*s < %lld by dimension %d of %.*s and < %lld "
                            "by dimension %d of %.*s", name->word.n, name->word.s,
                            (long long)name->ext, first->dim, e->var[first->var].word.n,
                            e->var[first->var].word.s, (long long)range_extent(e, s), s->dim,
                            e->var[s->var].word.n, e->var[s->var].word.s);
        }
    }
    return true;
}

/* Does the site stay inside with this range of a name? */
static bool
range_holds(const Expr *e, const ExprSite *s, ExprName *name, int64_t ext)
{
    RangeLine l;
    int64_t lo, hi;

    name->ext = ext;
    range_line(e, s->node, &l);
    return range_bounds(e, &l, &lo, &hi) && lo >= 0 && hi < range_extent(e, s);
}

/* The largest range of `name` with which the site stays inside; RANGE_MOST: any. */
static int64_t
range_solve(const Expr *e, const ExprSite *s, ExprName *name)
{
    int64_t low = 0, high = 1; /* it holds with low */

    for (; high < RANGE_MOST && range_holds(e, s, name, high); high *= 2)
        low = high;
    while (high < RANGE_MOST && high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        *(range_holds(e, s, name, middle) ? &low : &high) = middle;
    }
    name->ext = -1;
    return high < RANGE_MOST ? low : RANGE_MOST;
}

static unsigned
range_unknown(const Expr *e)
{
    unsigned names = 0;
    int k;

    for (k = 0; k < e->nnames; k++)
        names |= e->name[k].ext < 0 ? 1u << k : 0;
    return names;
}

/* One round: each name that is the only unknown of some index. False: there was none. */
static bool
range_round(Expr *e)
{
    int64_t found[JOT_MAX_RANK];
    unsigned unknown = range_unknown(e), any = 0;
    int k, name;

    for (k = 0; k < e->nsites && unknown; k++) {
        const ExprSite *s = &e->site[k];
        unsigned of = e->node[s->node].names & unknown;
        int64_t n;

        if (s->loose || e->node[s->node].loads || !of || of & (of - 1))
            continue;
        for (name = 0; !(of >> name & 1); name++)
            ;
        n = range_solve(e, s, &e->name[name]);
        if (n == RANGE_MOST)
            continue;
        n += !n && range_extent(e, s); /* its first value is outside, as the check will say */
        found[name] = any & of && found[name] < n ? found[name] : n;
        any |= of;
    }
    for (name = 0; name < e->nnames; name++)
        if (any >> name & 1)
            e->name[name].ext = found[name];
    return any != 0;
}

/* ---- checks ------------------------------------------------------------------------------- */

static bool
range_check_names(Expr *e)
{
    unsigned left = 0;
    int k;

    for (k = 0; k < e->nplaces; k++)
        left |= e->node[e->place[k]].names;
    for (k = 0; k < e->nnames; k++) {
        const ExprName *n = &e->name[k];

        if (n->ext < 0)
            return EXPR_BAD(e, JOT_ESHAPE, n->at, "%.*s has no range: no operand has it alone as "
                            "an index that stays inside; give it one, as in for %.*s < 8",
                            n->word.n, n->word.s, n->word.n, n->word.s);
        if (!(left >> k & 1) && !e->reduces)
            return EXPR_BAD(e, JOT_EINDEX, n->at, "%.*s is not on the left, and = reduces nothing; "
                            "+=, max= and others do", n->word.n, n->word.s);
        if (!(left >> k & 1) && !n->used)
            return EXPR_BAD(e, JOT_EINDEX, n->at, "%.*s is used nowhere", n->word.n, n->word.s);
        if (!(left >> k & 1) && !n->ext && (e->op == JOT_MAX || e->op == JOT_MIN))
            return EXPR_BAD(e, JOT_ESHAPE, n->at, "the range of %.*s is empty, and nothing has no "
                            "%s", n->word.n, n->word.s, e->op == JOT_MAX ? "max" : "min");
    }
    return true;
}

/* Is nothing read, for some range is empty? */
static bool
range_never(const Expr *e)
{
    int k = 0;

    while (k < e->nnames && e->name[k].ext)
        k++;
    return k < e->nnames;
}

static bool
range_check_site(Expr *e, const ExprSite *s)
{
    const ExprNode *n = &e->node[s->node];
    ExprWord w = e->var[s->var].word;
    int64_t lo, hi, extent = range_extent(e, s);
    RangeLine l;

    range_line(e, s->node, &l);
    if (!range_bounds(e, &l, &lo, &hi))
        return EXPR_BAD(e, JOT_EINDEX, n->at, "%s", "the index may be further than 2^50 from 0");
    if (s->loose || n->loads || range_never(e) || (lo >= 0 && hi < extent))
        return true;
    return EXPR_BAD(e, JOT_ESHAPE, n->at, "index %d of %.*s is %lld to %lld, its extent %lld; give "
                    "a smaller range, or a value outside as in %.*s[... else 0]", s->dim, w.n, w.s,
                    (long long)lo, (long long)hi, (long long)extent, w.n, w.s);
}

/* Conditions, which are no sites, stay near 0, too. */
static bool
range_check_truths(Expr *e)
{
    RangeLine l;
    int k;

    for (k = 1; k < e->nnodes; k++) {
        if (!e->node[k].index || (e->node[k].kind != EXPR_INFIX && e->node[k].kind != EXPR_NOT))
            continue;
        range_line(e, k, &l);
        if (l.far)
            return EXPR_BAD(e, JOT_EINDEX, e->node[k].at, "%s",
                            "the index may be further than 2^50 from 0");
    }
    return true;
}

/* Extents of the left side. */
static bool
range_places(Expr *e)
{
    int64_t lo, hi;
    RangeLine l;
    int k;

    if (e->scatters && !e->reduces)
        return EXPR_BAD(e, JOT_EINDEX, e->target_at, "%s", "= takes names of their own on the "
                        "left; +=, max= and others take any index");
    for (k = 0; k < e->nplaces; k++) {
        const ExprNode *n = &e->node[e->place[k]];

        if (n->kind == EXPR_NAME)
            e->extent[k] = e->name[n->op].ext;
        if (e->extent[k] >= 0)
            continue;
        range_line(e, e->place[k], &l);
        if (n->loads || !range_bounds(e, &l, &lo, &hi) || lo < 0)
            return EXPR_BAD(e, JOT_ESHAPE, n->at, "%s", "this place may be outside: give its "
                            "extent behind it, as in [@e[i] < 8]");
        e->extent[k] = range_never(e) ? 0 : hi + 1;
    }
    return true;
}

/* Is a space of n extents small enough for any dtype? As the core counts: without those of 0. */
static bool
range_fits(int n, const int64_t *ext)
{
    int64_t room = (int64_t)1 << 58;
    int k;

    for (k = 0; k < n; k++)
        room /= ext[k] ? ext[k] : 1;
    return room > 0;
}

JOT_FN bool
jot_expr_ranges(Expr *e)
{
    int64_t ext[JOT_MAX_RANK];
    int k;

    for (k = 0; k < e->nplaces; k++)
        if (!range_collect(e, e->place[k], 0))
            return false;
    for (k = 0; k < e->nnames; k++)
        e->name[k].used = false;
    if (!range_collect(e, e->root, 0) || !range_alone(e, false))
        return false;
    while (range_round(e))
        ;
    if (!range_alone(e, true))
        return false;
    while (range_round(e))
        ;
    if (!range_check_names(e) || !range_check_truths(e))
        return false;
    for (k = 0; k < e->nsites; k++)
        if (!range_check_site(e, &e->site[k]))
            return false;
    if (!range_places(e))
        return false;
    for (k = 0; k < e->nnames; k++)
        ext[k] = e->name[k].ext;
    return (range_fits(e->nnames, ext) && range_fits(e->nplaces, e->extent)) ||
           EXPR_BAD(e, JOT_ESHAPE, e->target_at, "%s", "too many elements: more than 2^58");
}
