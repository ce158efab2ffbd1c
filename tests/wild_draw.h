/* tests/wild_draw.h - drawing a program: any call on any variables so far, with little restraint.
 *
 * Calls are made at once in a context that only builds (it never evaluates): what is refused there
 * is not part of the program, what is made says its shape. Everything a draw wants and does not find
 * (an operand of a shape, positions, weights) becomes a leaf. No two arguments of one call draw: a
 * seed is the same program wherever it is compiled. */
#ifndef JOT_TEST_WILD_DRAW_H
#define JOT_TEST_WILD_DRAW_H
#include "tests/wild_program.h"

typedef struct {
    Program *p;
    jot_Ctx *c;        /* builds alone */
    jot_Var var[VARS];
    uint64_t random;
    int64_t most;      /* elements of a variable */
    int refused;
} Draw;

/* ---- random numbers ---- */

static int64_t
below(Draw *d, int64_t n)
{
    d->random += 0x9e3779b97f4a7c15u;
    return n > 0 ? (int64_t)(mixed(d->random) >> 11) % n : 0;
}

static int64_t
between(Draw *d, int64_t lo, int64_t hi)
{
    return lo + below(d, hi - lo + 1);
}

static bool
chance(Draw *d, int percent)
{
    return below(d, 100) < percent;
}

static double
draw_number(Draw *d)
{
    static const double some[] = {0, 1, -1, .5, 2, -.25, 3, .1, -1.5};
    return chance(d, 50) ? some[below(d, 9)] : (double)between(d, -2000, 2000) / 1000;
}

static int64_t
draw_extent(Draw *d)
{
    static const int64_t large[] = {8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 48};
    int64_t r = below(d, 100);
    return r < 1 ? 0 : r < 20 ? 1 : r < 82 ? between(d, 2, 7) : large[below(d, 12)];
}

static List
draw_shape(Draw *d)
{
    List l = {0, {0}};
    int64_t n = 1;

    l.n = (int)(chance(d, 90) ? between(d, 0, 4) : between(d, 5, 8));
    for (int k = 0; k < l.n; k++) {
        l.v[k] = l.n > 4 ? between(d, 1, 3) : draw_extent(d);
        if (n * l.v[k] > d->most / 2)
            l.v[k] = 1;
        n *= l.v[k] ? l.v[k] : 1;
    }
    return l;
}

/* ---- calls ---- */

static List
shape_at(const Draw *d, int v)
{
    return d->p->shape[v];
}

static int64_t
nelem_of(const List *l)
{
    int64_t n = 1;
    for (int k = 0; k < l->n; k++)
        n *= l->v[k];
    return n;
}

static bool
floats(const Draw *d, int v)
{
    return d->p->dtype[v] >= JOT_F16;
}

static Call
call_of(int kind)
{
    Call k;
    memset(&k, 0, sizeof k);
    k.kind = kind;
    k.nout = 1;
    return k;
}

static void
operand(Call *k, int v)
{
    k->in[k->nin++] = v;
}

static void
list_add(Call *k, List l)
{
    k->list[k->nlist++] = l;
}

static void
number(Call *k, int64_t v)
{
    k->num[k->nnum++] = v;
}

/* Make the call; the number of its first result, -1: refused. */
static int
add(Draw *d, Call k)
{
    Program *p = d->p;
    jot_Var v[OPERANDS];

    if (p->ncall == CALLS || p->nvar + k.nout > VARS)
        return -1;
    for (int j = 0; j < k.nin; j++) {
        if (k.in[j] < 0)
            return -1;
        v[j] = d->var[k.in[j]];
    }
    k.first = p->nvar;
    /* a program is not evaluated here */
    if (k.kind != C_RUN && !build_call(d->c, &k, v, d->var + p->nvar, NULL, NULL)) {
        d->refused++;
        jot_clear(d->c);
        return -1;
    }
    for (int j = 0; j < k.nout; j++) {
        jot_Ints s = jot_shape(d->var[p->nvar + j]);
        if (jot_nelem(d->var[p->nvar + j]) > d->most || s.n > JOT_MAX_RANK)
            return -1;
    }
    for (int j = 0; j < k.nout; j++, p->nvar++) {
        jot_Ints s = jot_shape(d->var[p->nvar]);
        p->shape[p->nvar].n = s.n;
        for (int e = 0; e < s.n; e++)
            p->shape[p->nvar].v[e] = s.v[e];
        p->dtype[p->nvar] = jot_dtype(d->var[p->nvar]);
    }
    p->call[p->ncall++] = k;
    return k.nout ? k.first : 0;
}

static int
add_leaf(Draw *d, int dtype, List shape, int style)
{
    Call k = call_of(dtype >= JOT_F16 && chance(d, 35) ? C_PARAM : C_LEAF);

    k.dtype = dtype;
    list_add(&k, shape);
    number(&k, style);
    number(&k, below(d, 1000));
    return add(d, k);
}

static int
draw_float(Draw *d)
{
    int64_t r = below(d, 100);
    return r < 74 ? JOT_F32 : r < 90 ? JOT_F64 : r < 95 ? JOT_F16 : JOT_BF16;
}

static int
draw_dtype(Draw *d)
{
    return chance(d, 75) ? draw_float(d) : (int)below(d, JOT_F16);
}

static int
draw_style(Draw *d, int dtype)
{
    int64_t r = below(d, 100);
    if (dtype < JOT_F16)
        return r < 70 ? OF_WHOLE : OF_PLACES;
    return r < 25 ? OF_WHOLE : r < 45 ? OF_QUARTERS : r < 75 ? OF_ANY : r < 98 ? OF_POSITIVE
                                                                                : OF_EXTREMES;
}

static int
new_leaf(Draw *d)
{
    int dtype = draw_dtype(d), style = draw_style(d, dtype);
    return add_leaf(d, dtype, draw_shape(d), style);
}

static int
any_leaf(Draw *d)
{
    List shape = draw_shape(d);
    return add_leaf(d, draw_float(d), shape, OF_ANY);
}

static int
leaf_like(Draw *d, int dtype, List shape)
{
    return add_leaf(d, dtype, shape, draw_style(d, dtype));
}

/* Any variable, late ones rather; `want` says which will do. */
typedef bool Want(const Draw *d, int v);

static bool wants_any(const Draw *d, int v) { return d && v >= 0; }
static bool wants_int(const Draw *d, int v) { return d->p->dtype[v] < JOT_F16 && d->p->dtype[v]; }
static bool wants_rank(const Draw *d, int v) { return d->p->shape[v].n > 0; }

static int
pick(Draw *d, Want *want)
{
    for (int tries = 0; tries < 12 && d->p->nvar; tries++) {
        int64_t a = below(d, d->p->nvar), b = below(d, d->p->nvar);
        int v = (int)(a > b || chance(d, 30) ? a : b);
        if (want(d, v))
            return v;
    }
    return -1;
}

static int
pick_float(Draw *d)
{
    int v = pick(d, floats);
    return v >= 0 ? v : any_leaf(d);
}

static int
unary(Draw *d, int kind, int v)
{
    Call k = call_of(kind);
    operand(&k, v);
    return add(d, k);
}

static int
unary_by(Draw *d, int kind, int v, double f0, double f1)
{
    Call k = call_of(kind);
    operand(&k, v);
    k.f[0] = f0;
    k.f[1] = f1;
    return add(d, k);
}

static int
binary(Draw *d, int kind, int a, int b)
{
    Call k = call_of(kind);
    operand(&k, a);
    operand(&k, b);
    return add(d, k);
}

/* ---- element-wise ---- */

/* A variable that broadcasts with v: another of its shape, or one with some extents 1 or left
 * out. */
static int
partner(Draw *d, int v)
{
    List s = shape_at(d, v), t = s;
    int drop;

    for (int tries = 0; tries < 6; tries++) {
        int w = pick(d, wants_any);
        bool fits = w >= 0;
        for (int k = 1; fits && k <= s.n && k <= d->p->shape[w].n; k++) {
            int64_t a = s.v[s.n - k], b = d->p->shape[w].v[d->p->shape[w].n - k];
            fits = a == b || a == 1 || b == 1;
        }
        if (fits && chance(d, 80))
            return w;
    }
    for (int k = 0; k < t.n; k++)
        if (chance(d, 25))
            t.v[k] = 1;
    drop = (int)(chance(d, 30) ? below(d, t.n + 1) : 0);
    memmove(t.v, t.v + drop, (size_t)(t.n - drop) * sizeof *t.v);
    t.n -= drop;
    return leaf_like(d, chance(d, 85) ? d->p->dtype[v] : draw_dtype(d), t);
}

/* Where a function wants another range, the operand mostly is brought into it. */
static int
in_range(Draw *d, int kind, int v)
{
    switch (kind) {
    case C_U_sqrt: case C_U_rsqrt: case C_U_log: case C_U_log2: case C_U_log10: case C_U_cbrt:
        return unary_by(d, C_OFFSET, unary(d, C_SQUARE, v), .25, 0);
    case C_U_acosh:
        return unary_by(d, C_OFFSET, unary(d, C_SQUARE, v), 1.5, 0);
    case C_U_asin: case C_U_acos: case C_U_atanh:
        return unary_by(d, C_SCALE, unary(d, C_U_sin, v), .9, 0);
    case C_U_log1p:
        return unary(d, C_SQUARE, v);
    case C_U_exp: case C_U_exp2: case C_U_expm1: case C_U_sinh: case C_U_cosh: case C_U_tan:
        return unary(d, C_U_tanh, v);
    default:
        return v;
    }
}

static int
draw_unary(Draw *d)
{
    static const int kinds[] = {
#define U_(name) C_U_##name,
        JOT_UNARY(U_)
#undef U_
        C_SQUARE, C_RELU, C_GELU, C_GELU_TANH, C_STOP_GRAD, C_STOP_FUSE, C_U_tanh, C_U_sigmoid,
        C_U_neg, C_RELU, C_U_abs, C_U_exp};
    int kind = kinds[below(d, (int64_t)(sizeof kinds / sizeof *kinds))], v = pick(d, wants_any);

    return unary(d, kind, chance(d, 85) ? in_range(d, kind, v) : v);
}

static int
draw_binary(Draw *d)
{
    static const int kinds[] = {
#define B_(name) C_B_##name,
        JOT_BINARY(B_)
#undef B_
        C_B_add, C_B_sub, C_B_mul, C_B_add, C_B_sub, C_B_mul, C_B_add, C_B_mul, C_B_maximum,
        C_B_add, C_B_mul, C_B_sub, C_B_minimum, C_B_div};
    int kind = kinds[below(d, (int64_t)(sizeof kinds / sizeof *kinds))], a = pick(d, wants_any), b;

    if (a < 0)
        return -1;
    b = partner(d, a);
    if (b >= 0 && chance(d, 80) && (kind == C_B_div || kind == C_B_floordiv))
        b = unary_by(d, C_OFFSET, unary(d, C_SQUARE, b), .5, 0);
    if (chance(d, 80) && kind == C_B_pow)
        a = unary_by(d, C_OFFSET, unary(d, C_U_abs, a), .5, 0);
    return chance(d, 50) ? binary(d, kind, a, b) : binary(d, kind, b, a);
}

static int
draw_other(Draw *d)
{
    int v = pick(d, wants_any), other;
    Call k = call_of(C_SELECT);
    double most;

    switch (below(d, 5)) {
    case 0:
        if (v < 0)
            return -1;
        other = partner(d, v);
        operand(&k, binary(d, C_B_lt + (int)below(d, 4), v, other));
        operand(&k, v);
        operand(&k, partner(d, v));
        return add(d, k);
    case 1:
        k = call_of(C_CAST);
        operand(&k, v);
        k.dtype = (int)(chance(d, 70) ? draw_float(d) : below(d, JOT_DTYPES));
        return add(d, k);
    case 2: return unary_by(d, C_SCALE, v, draw_number(d), 0);
    case 3: return unary_by(d, C_OFFSET, v, draw_number(d), 0);
    default:
        most = fabs(draw_number(d));
        return unary_by(d, C_CLAMP, v, -fabs(draw_number(d)), most);
    }
}

/* ---- forms ---- */

static List
draw_dims(Draw *d, int rank)
{
    List l = {0, {0}};
    for (int k = 0; k < rank; k++)
        if (chance(d, 45))
            l.v[l.n++] = chance(d, 80) ? k : k - rank;
    return l;
}

static void
shuffle(Draw *d, List *l)
{
    for (int k = l->n - 1; k > 0; k--) {
        int j = (int)below(d, k + 1);
        int64_t t = l->v[k];
        l->v[k] = l->v[j];
        l->v[j] = t;
    }
}

/* The same elements under other extents: adjacent ones joined, ones split, ones of 1 put in. */
static List
draw_reshape(Draw *d, List s)
{
    List t = {0, {0}};

    for (int k = 0; k < s.n; k++) {
        int64_t n = s.v[k];
        while (k + 1 < s.n && chance(d, 35))
            n *= s.v[++k];
        for (int64_t f = between(d, 2, 4); n > f && n % f == 0 && t.n < 6 && chance(d, 50); n /= f)
            t.v[t.n++] = f;
        t.v[t.n++] = n;
        if (t.n < 7 && chance(d, 10))
            t.v[t.n++] = 1;
    }
    if (t.n && nelem_of(&s) && chance(d, 15))
        t.v[below(d, t.n)] = -1;
    return t;
}

static int
draw_slice(Draw *d, int v)
{
    Call k = call_of(C_SLICE);
    List s = shape_at(d, v), from = s, to = s, step = s;

    operand(&k, v);
    for (int e = 0; e < s.n; e++) {
        int64_t a = below(d, s.v[e] + 1), b = between(d, a, s.v[e]);
        step.v[e] = chance(d, 60) ? 1 : between(d, 2, 3);
        from.v[e] = chance(d, 50) ? 0 : a;
        to.v[e] = chance(d, 50) ? JOT_END : b;
        if (chance(d, 15)) {
            step.v[e] = -step.v[e];
            from.v[e] = s.v[e] - 1;
            to.v[e] = JOT_END;
        }
    }
    list_add(&k, from);
    list_add(&k, to);
    list_add(&k, step);
    return add(d, k);
}

static int
draw_pad(Draw *d, int v)
{
    Call k = call_of(C_PAD);
    List before = shape_at(d, v), after = before;

    operand(&k, v);
    for (int e = 0; e < before.n; e++) {
        before.v[e] = chance(d, 50) ? 0 : chance(d, 80) ? between(d, 0, 3) : between(d, -1, 0);
        after.v[e] = chance(d, 50) ? 0 : chance(d, 80) ? between(d, 0, 3) : between(d, -1, 0);
    }
    list_add(&k, before);
    list_add(&k, after);
    k.f[0] = chance(d, 70) ? 0 : draw_number(d);
    return add(d, k);
}

static int
draw_join(Draw *d, int v)
{
    bool stack = chance(d, 40);
    Call k = call_of(stack ? C_STACK : C_CONCAT);
    List s = shape_at(d, v);
    int n = (int)between(d, 1, 4), dim = (int)below(d, s.n + stack);

    if (!stack && !s.n)
        return -1;
    for (int j = 0; j < n; j++) {
        List t = s;
        int w = chance(d, 40) ? v : pick(d, wants_any);
        bool fits = w >= 0 && d->p->dtype[w] == d->p->dtype[v] && d->p->shape[w].n == s.n;
        for (int e = 0; fits && e < s.n; e++)
            fits = d->p->shape[w].v[e] == s.v[e] || (!stack && e == dim);
        if (!fits && !stack)
            t.v[dim] = between(d, 0, 4);
        operand(&k, fits ? w : chance(d, 50) ? v : leaf_like(d, d->p->dtype[v], t));
    }
    number(&k, chance(d, 80) ? dim : dim - s.n - stack);
    return add(d, k);
}

static int
draw_gather(Draw *d, int v)
{
    Call k = call_of(C_GATHER);
    int at = pick(d, wants_int);

    operand(&k, v);
    if (at < 0 || d->p->shape[at].n > 2 || chance(d, 50)) {
        List s = {(int)below(d, 3), {between(d, 1, 6), between(d, 1, 5)}};
        at = add_leaf(d, chance(d, 50) ? JOT_I32 : JOT_I64, s, OF_PLACES);
    }
    operand(&k, at);
    number(&k, below(d, shape_at(d, v).n));
    return add(d, k);
}

static int
draw_broadcast(Draw *d, int v)
{
    Call k = call_of(chance(d, 50) ? C_BROADCAST_TO : C_BROADCAST);
    List s = shape_at(d, v), dims = {0, {0}}, t = {0, {0}};

    operand(&k, v);
    for (int e = 0; e < s.n || (t.n < 8 && chance(d, 30)); ) {
        bool fresh = e == s.n || (t.n < 8 && chance(d, 20));
        if (fresh && k.kind == C_BROADCAST)
            dims.v[dims.n++] = t.n;
        if (fresh && k.kind == C_BROADCAST_TO && e)
            break;
        t.v[t.n++] = fresh || s.v[e] == 1 ? between(d, 1, 5) : s.v[e];
        e += !fresh;
    }
    if (t.n < s.n)
        return -1;
    list_add(&k, t);
    if (k.kind == C_BROADCAST)
        list_add(&k, dims);
    return add(d, k);
}

static int
draw_form(Draw *d)
{
    static const int kinds[] = {C_SLICE, C_SLICE, C_SLICE, C_PAD, C_PAD, C_PAD, C_CONCAT, C_CONCAT,
                                C_STACK, C_GATHER, C_GATHER, C_BROADCAST, C_BROADCAST, C_RESHAPE,
                                C_RESHAPE, C_TRANSPOSE, C_TRANSPOSE, C_SWAP, C_FLIP, C_TILE,
                                C_EXPAND, C_SQUEEZE, C_ONE_HOT};
    int v = pick(d, wants_rank);
    Call k = call_of(kinds[below(d, (int64_t)(sizeof kinds / sizeof *kinds))]);
    List l;

    if (v < 0)
        return -1;
    l = shape_at(d, v);
    switch (k.kind) {
    case C_SLICE: return draw_slice(d, v);
    case C_PAD: return draw_pad(d, v);
    case C_CONCAT: case C_STACK: return draw_join(d, v);
    case C_GATHER: return draw_gather(d, v);
    case C_BROADCAST: return draw_broadcast(d, v);
    case C_RESHAPE: list_add(&k, draw_reshape(d, l)); break;
    case C_TRANSPOSE:
        for (int e = 0; e < l.n; e++)
            l.v[e] = e;
        shuffle(d, &l);
        list_add(&k, l);
        break;
    case C_SWAP: number(&k, below(d, l.n)), number(&k, -1 - below(d, l.n)); break;
    case C_FLIP: list_add(&k, draw_dims(d, l.n)); break;
    case C_TILE:
        for (int e = 0; e < l.n; e++)
            l.v[e] = chance(d, 60) ? 1 : between(d, 2, 3);
        list_add(&k, l);
        break;
    case C_ONE_HOT:
        v = pick(d, wants_int);
        number(&k, between(d, 1, 8));
        k.dtype = draw_dtype(d);
        break;
    default:
        number(&k, between(d, -l.n, l.n));
    }
    operand(&k, v);
    return add(d, k);
}

#endif
