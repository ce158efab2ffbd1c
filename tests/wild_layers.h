/* tests/wild_layers.h - drawing on: maps of drawn text, reductions, layers, gradients of any order,
 * assignments, steps of optimisers, evaluations in between; and the program of a seed. */
#ifndef JOT_TEST_WILD_LAYERS_H
#define JOT_TEST_WILD_LAYERS_H
#include "tests/wild_draw.h"

enum { TEXT = 96, ATOM = 32 };

/* ---- maps ---- */

/* One term over n axes. */
static void
draw_atom(Draw *d, char *s, int n)
{
    int a = (int)below(d, n), b = (int)below(d, n);

    switch (n ? below(d, 12) : 0) {
    case 0: snprintf(s, ATOM, "%d", (int)between(d, 0, 3)); break;
    case 1: snprintf(s, ATOM, "i%d/%d", a, (int)between(d, 2, 3)); break;
    case 2: snprintf(s, ATOM, "i%d%%%d", a, (int)between(d, 2, 4)); break;
    case 3: snprintf(s, ATOM, "i%d*%d", a, (int)between(d, 2, 3)); break;
    case 4: snprintf(s, ATOM, "(i%d*2+i%d)/3", a, b); break;
    case 5: snprintf(s, ATOM, "i%d-i%d", a, b); break;
    case 6: snprintf(s, ATOM, "i%d+i%d", a, b); break;
    case 7: snprintf(s, ATOM, "ys%d-1-i%d", a, a); break;
    default: snprintf(s, ATOM, "i%d", a);
    }
}

/* Where dimension dim of the side that is indexed is met, from n axes; extra: ranks of
 * positions. */
static void
draw_index(Draw *d, char *s, int dim, int n, int extra, const int *ranks)
{
    char a[ATOM], b[ATOM];
    int e = (int)below(d, extra);

    draw_atom(d, a, n);
    draw_atom(d, b, n);
    if (extra && chance(d, 40) && ranks[e] == 1)
        snprintf(s, TEXT, "@e%d(%s)", e, a);
    else if (extra && chance(d, 40))
        snprintf(s, TEXT, "@e%d(%s,%s)", e, a, b);
    else if (chance(d, 12))
        snprintf(s, TEXT, "(%s+%s)%%xs%d", a, b, dim);
    else if (chance(d, 12))
        snprintf(s, TEXT, "xs%d-1-(%s)", dim, a);
    else if (chance(d, 20))
        snprintf(s, TEXT, "%s%+d", a, (int)between(d, -2, 2));
    else if (chance(d, 12))
        snprintf(s, TEXT, "(%s)*(%s)", a, b);
    else
        snprintf(s, TEXT, "%s", chance(d, 70) && dim < n ? (snprintf(b, ATOM, "i%d", dim), b) : a);
}

static void
draw_condition(Draw *d, char *s, int n)
{
    static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
    char a[ATOM], b[ATOM];

    draw_atom(d, a, n);
    draw_atom(d, b, n);
    if (chance(d, 30))
        snprintf(s, TEXT, "(%s)%%2==%d", a, (int)below(d, 2));
    else if (chance(d, 20))
        snprintf(s, TEXT, "!(%s==%d)", a, (int)below(d, 3));
    else if (chance(d, 25)) {
        int most = (int)between(d, 0, 2);
        snprintf(s, TEXT, "%s>=%d||%s<%d", a, (int)between(d, 1, 3), b, most);
    } else
        snprintf(s, TEXT, "%s%s%s", a, compare[below(d, 6)], b);
}

/* Texts and positions for maps of `dims` dimensions from n axes. */
static void
draw_texts(Draw *d, Call *k, int dims, int n)
{
    int extra = (int)(chance(d, 70) ? 0 : between(d, 1, 2)), ranks[2];

    for (int e = 0; e < extra; e++) {
        List s = {(int)between(d, 1, 2), {between(d, 1, 6), between(d, 1, 4)}};
        ranks[e] = s.n;
        operand(k, add_leaf(d, chance(d, 50) ? JOT_I32 : JOT_I64, s, OF_PLACES));
    }
    for (int e = 0; e < dims && k->ntext[0] < TEXTS - 2; e++)
        draw_index(d, k->text[k->ntext[0]++], e, n, extra, ranks);
    while (k->ntext[1] < 2 && chance(d, 25))
        draw_condition(d, k->text[k->ntext[0] + k->ntext[1]++], n);
}

static int
draw_reindex(Draw *d)
{
    static const double outside[] = {0, 0, 0, 1, -2, .5, INFINITY, -INFINITY};
    int v = pick(d, wants_any);
    Call k = call_of(C_REINDEX);
    List to = chance(d, 50) && v >= 0 ? shape_at(d, v) : draw_shape(d);

    if (v < 0)
        return -1;
    operand(&k, v);
    list_add(&k, to);
    k.f[0] = outside[below(d, chance(d, 90) ? 6 : 8)];
    draw_texts(d, &k, shape_at(d, v).n, to.n);
    return add(d, k);
}

static int
draw_op(Draw *d, int v)
{
    static const int of_floats[] = {JOT_ADD, JOT_ADD, JOT_ADD, JOT_MUL, JOT_MAX, JOT_MIN, JOT_MEAN,
                                    JOT_AND, JOT_OR, JOT_XOR};
    if (floats(d, v))
        return of_floats[below(d, chance(d, 85) ? 7 : 10)];
    return (int)below(d, JOT_REDUCE_OPS);
}

static int
draw_scatter(Draw *d)
{
    int v = pick(d, wants_any);
    Call k = call_of(C_SCATTER);
    List to = {0, {0}};

    if (v < 0)
        return -1;
    if (chance(d, 40))
        to = shape_at(d, v);
    else
        for (to.n = (int)below(d, 4); k.nnum < to.n; )
            to.v[k.nnum++] = between(d, 1, 6);
    k.nnum = 0;
    operand(&k, v);
    number(&k, draw_op(d, v));
    list_add(&k, to);
    draw_texts(d, &k, to.n, shape_at(d, v).n);
    return add(d, k);
}

/* ---- reductions ---- */

static int
draw_reduce(Draw *d)
{
    static const int kinds[] = {C_REDUCE, C_REDUCE, C_REDUCE, C_REDUCE, C_REDUCE, C_REDUCE,
                                C_VARIANCE, C_VARIANCE, C_ANY, C_ALL, C_ARGMAX, C_ARGMIN};
    int v = pick(d, wants_rank);
    Call k = call_of(kinds[below(d, 12)]);

    if (v < 0)
        return -1;
    operand(&k, v);
    if (k.kind == C_REDUCE)
        number(&k, draw_op(d, v));
    if (k.kind == C_ARGMAX || k.kind == C_ARGMIN)
        number(&k, below(d, shape_at(d, v).n));
    else if (chance(d, 12))
        k.nlist = 1, k.list[0].n = -1;
    else
        list_add(&k, draw_dims(d, shape_at(d, v).n));
    number(&k, below(d, 2));
    return add(d, k);
}

/* ---- layers ---- */

static int
draw_matmul(Draw *d)
{
    int a = pick_float(d), b;
    List s, t;

    if (a < 0)
        return -1;
    s = t = shape_at(d, a);
    if (!s.n || s.n > 5)
        return -1;
    if (chance(d, 15))
        return binary(d, C_MATMUL, a, unary(d, C_STOP_GRAD, a));
    if (chance(d, 30) && s.n > 1) { /* with itself, or as it is, turned */
        Call k = call_of(C_SWAP);
        operand(&k, a);
        number(&k, s.n - 1);
        number(&k, s.n - 2);
        b = add(d, k);
        return chance(d, 50) ? binary(d, C_MATMUL, a, b) : binary(d, C_MATMUL, b, a);
    }
    if (s.n == 1 || chance(d, 15)) {
        t.n = 1 + (int)below(d, 2);
        t.v[0] = s.v[s.n - 1];
        t.v[1] = between(d, 1, 18);
    } else {
        t.v[s.n - 2] = s.v[s.n - 1];
        t.v[s.n - 1] = chance(d, 60) ? between(d, 1, 7) : draw_extent(d);
        for (int e = 0; e < s.n - 2; e++)
            t.v[e] = chance(d, 30) ? 1 : t.v[e];
    }
    b = leaf_like(d, d->p->dtype[a], t);
    return binary(d, C_MATMUL, a, chance(d, 20) ? unary(d, C_U_tanh, b) : b);
}

/* A variable of four dimensions that windows fit in. */
static int
pick_image(Draw *d)
{
    List s = {4, {between(d, 1, 3), between(d, 1, 6), between(d, 2, 9), between(d, 2, 9)}};

    for (int tries = 0; tries < 20; tries++) {
        int v = pick(d, floats);
        if (v >= 0 && d->p->shape[v].n == 4 && d->p->shape[v].v[1] < 12)
            return v;
    }
    return add_leaf(d, draw_float(d), s, OF_ANY);
}

static int
draw_conv(Draw *d)
{
    int x = pick_image(d), w;
    Call k = call_of(C_CONV);
    List s, t = {4, {0}};
    int64_t groups = 1;

    if (x < 0)
        return -1;
    s = shape_at(d, x);
    for (int64_t g = 2; g <= s.v[1]; g++)
        if (s.v[1] % g == 0 && chance(d, 25))
            groups = g;
    t.v[0] = groups * between(d, 1, groups > 1 ? 2 : 8);
    t.v[1] = s.v[1] / groups;
    t.v[2] = between(d, 1, 3);
    t.v[3] = chance(d, 60) ? t.v[2] : between(d, 1, 4);
    w = add_leaf(d, d->p->dtype[x], t, OF_ANY);
    operand(&k, x);
    operand(&k, w);
    for (int j = 0; j < 2; j++)
        number(&k, chance(d, 60) ? 1 : between(d, 0, 3));
    for (int j = 0; j < 2; j++)
        number(&k, chance(d, 40) ? 0 : between(d, 0, 2));
    for (int j = 0; j < 2; j++)
        number(&k, chance(d, 70) ? 1 : between(d, 0, 3));
    number(&k, groups);
    return add(d, k);
}

static int
draw_pool(Draw *d)
{
    Call k = call_of(chance(d, 50) ? C_MAX_POOL : C_AVG_POOL);
    int64_t size[2] = {between(d, 1, 3), between(d, 1, 3)};

    operand(&k, pick_image(d));
    for (int j = 0; j < 2; j++)
        number(&k, size[j]);
    for (int j = 0; j < 2; j++)
        number(&k, between(d, 0, 3));
    for (int j = 0; j < 2; j++)
        number(&k, between(d, 0, size[j] / 2));
    return add(d, k);
}

/* A weight per element of dimension dim of x. */
static int
per(Draw *d, int x, int dim, int style)
{
    List s = {1, {d->p->shape[x].v[dim]}};
    return add_leaf(d, d->p->dtype[x], s, style);
}

static int
draw_norm(Draw *d)
{
    int x = chance(d, 50) ? pick_image(d) : pick_float(d), dim;
    bool running = chance(d, 40);
    Call k = call_of(C_LAYER_NORM);
    List s;

    if (x < 0 || !(s = shape_at(d, x)).n)
        return -1;
    k.f[0] = chance(d, 80) ? 1e-5 : .1;
    k.f[1] = .1;
    if (s.n == 4 && chance(d, 25))
        return unary_by(d, C_INSTANCE_NORM, x, k.f[0], 0);
    if (s.n > 1 && chance(d, 50))
        k.kind = chance(d, 70) ? C_BATCH_NORM : C_BATCH_NORM_EVAL;
    dim = k.kind == C_LAYER_NORM ? s.n - 1 : 1;
    running = k.kind == C_BATCH_NORM_EVAL || k.kind == C_BATCH_NORM;
    operand(&k, x);
    operand(&k, per(d, x, dim, OF_ANY));
    operand(&k, per(d, x, dim, OF_ANY));
    if (running) {
        operand(&k, per(d, x, dim, OF_ANY));
        operand(&k, per(d, x, dim, OF_POSITIVE));
    }
    k.nout = k.kind == C_BATCH_NORM ? 3 : 1;
    return add(d, k);
}

static int
draw_loss(Draw *d)
{
    int x = pick_float(d);
    List s;
    Call k = call_of(C_CROSS_ENTROPY);

    if (x < 0)
        return -1;
    s = shape_at(d, x);
    if (s.n != 2)
        return binary(d, C_MSE, x, leaf_like(d, d->p->dtype[x], s));
    s.n = 1;
    operand(&k, x);
    operand(&k, unary_by(d, C_CLAMP, add_leaf(d, JOT_I32, s, OF_PLACES), 0,
                         (double)d->p->shape[x].v[1] - 1));
    return add(d, k);
}

static int
draw_layer(Draw *d)
{
    int x, dim;
    Call k;

    switch (below(d, 14)) {
    case 0: case 1: case 2: return draw_matmul(d);
    case 3: case 4: return draw_conv(d);
    case 5: case 6: return draw_pool(d);
    case 7: case 8: return draw_norm(d);
    case 9: return draw_loss(d);
    case 10: return unary_by(d, C_DROPOUT, pick_float(d), .3, 0);
    case 11:
        if ((x = pick_float(d)) < 0 || !shape_at(d, x).n)
            return -1;
        k = call_of(C_LINEAR);
        dim = (int)between(d, 1, 20);
        List w = {2, {shape_at(d, x).v[shape_at(d, x).n - 1], dim}}, b = {1, {dim}};
        operand(&k, x);
        operand(&k, add_leaf(d, d->p->dtype[x], w, OF_ANY));
        operand(&k, add_leaf(d, d->p->dtype[x], b, OF_ANY));
        return add(d, k);
    default:
        if ((x = pick(d, wants_rank)) < 0)
            return -1;
        k = call_of(chance(d, 60) ? C_SOFTMAX : C_LOG_SOFTMAX);
        operand(&k, x);
        number(&k, between(d, -1, shape_at(d, x).n - 1));
        return add(d, k);
    }
}

/* ---- gradients ---- */

/* A scalar that depends on v: its sum, or of its products with other numbers. */
static int
scalar_of_var(Draw *d, int v)
{
    Call k = call_of(C_REDUCE);

    if (v < 0)
        return -1;
    if (chance(d, 70))
        v = binary(d, C_B_mul, v, add_leaf(d, d->p->dtype[v], shape_at(d, v), OF_ANY));
    operand(&k, v);
    number(&k, JOT_ADD);
    k.nlist = 1;
    k.list[0].n = -1;
    number(&k, 0);
    return add(d, k);
}

/* Leaves alone: what is composed past an expression does not depend on it. */
static void
draw_wrt(Draw *d, Call *k, int before)
{
    int64_t n = between(d, 1, 4);

    k->nout = 0;
    for (int tries = 0; tries < 60 && k->nout < n; tries++) {
        const Call *of = &d->p->call[below(d, d->p->ncall)];
        bool leaf = of->kind == C_PARAM || (of->kind == C_LEAF && of->dtype >= JOT_F32);
        if (leaf && of->first < before && floats(d, of->first)) {
            operand(k, of->first);
            k->nout++;
        }
    }
}

/* Gradients of some late variable; sometimes at once those of them. */
static int
draw_grad(Draw *d)
{
    int y = pick_float(d), before = d->p->nvar, g;
    Call k = call_of(chance(d, 85) ? C_GRAD : C_VJP);

    if (y < 0)
        return -1;
    if (k.kind == C_GRAD) {
        operand(&k, scalar_of_var(d, y));
    } else {
        operand(&k, y);
        operand(&k, add_leaf(d, d->p->dtype[y], shape_at(d, y), OF_ANY));
    }
    draw_wrt(d, &k, before);
    if (!k.nout || (g = add(d, k)) < 0)
        return -1;
    if (chance(d, 45)) {
        Call second = call_of(C_GRAD);
        operand(&second, scalar_of_var(d, g + (int)below(d, k.nout)));
        draw_wrt(d, &second, before);
        return second.nout ? add(d, second) : -1;
    }
    return g;
}

/* ---- state ---- */

static int
pick_param(Draw *d)
{
    const Program *p = d->p;
    for (int tries = 0; tries < 8 && p->ncall; tries++) {
        const Call *k = &p->call[below(d, p->ncall)];
        if (k->kind == C_PARAM)
            return k->first;
    }
    return -1;
}

static int
draw_state(Draw *d)
{
    int target = pick_param(d), v = -1;
    Call k = call_of(C_ASSIGN);

    if (target < 0)
        return -1;
    k.nout = 0;
    switch (below(d, 4)) {
    case 0:
        k.kind = C_RUN;
        for (int j = 0; j < 2; j++)
            if ((v = pick(d, wants_any)) >= 0)
                operand(&k, v);
        return add(d, k);
    case 1: { /* one step down the gradient of something */
        Call grad = call_of(C_GRAD);
        k.kind = chance(d, 50) ? C_SGD : C_ADAM;
        operand(&grad, scalar_of_var(d, pick_float(d)));
        operand(&grad, target);
        operand(&k, target);
        operand(&k, add(d, grad));
        k.f[0] = .1;
        k.f[1] = k.kind == C_SGD ? .5 : 1e-3;
        return add(d, k);
    }
    default:
        for (int tries = 0; tries < 20 && v < 0; tries++) {
            v = pick(d, floats);
            if (v >= 0 && (d->p->dtype[v] != d->p->dtype[target] ||
                           memcmp(&d->p->shape[v], &d->p->shape[target], sizeof(List))))
                v = -1;
        }
        operand(&k, target);
        operand(&k, unary_by(d, C_SCALE, v >= 0 ? v : target, .5, 0)); /* no name of target's own */
        return add(d, k);
    }
}

/* ---- a program ---- */

static void
draw_call(Draw *d, bool states)
{
    int64_t r = below(d, 100);

    if (r < 10)
        new_leaf(d);
    else if (r < 22)
        draw_unary(d);
    else if (r < 36)
        draw_binary(d);
    else if (r < 40)
        draw_other(d);
    else if (r < 60)
        draw_form(d);
    else if (r < 67)
        draw_reindex(d);
    else if (r < 72)
        draw_scatter(d);
    else if (r < 81)
        draw_reduce(d);
    else if (r < 90)
        draw_layer(d);
    else if (r < 97)
        draw_grad(d);
    else if (r < 98) {
        Call k = call_of(chance(d, 50) ? C_UNIFORM : C_NORMAL);
        k.dtype = draw_float(d);
        list_add(&k, draw_shape(d));
        add(d, k);
    } else if (states)
        draw_state(d);
}

/* Outputs: the last variables, and some before. */
static void
draw_outputs(Draw *d)
{
    Program *p = d->p;
    int n = (int)between(d, 2, 8);

    p->nout = 0;
    for (int k = 0; k < n && p->nvar; k++) {
        int v = k == 0 ? p->nvar - 1 : pick(d, wants_any);
        if (v >= 0)
            p->out[p->nout++] = v;
    }
    for (int k = 0; k < p->ncall && p->nout < OUTPUTS; k++)
        if (p->call[k].kind == C_ASSIGN || p->call[k].kind == C_SGD || p->call[k].kind == C_ADAM)
            p->out[p->nout++] = p->call[k].in[0];
}

static void
draw_begin(Draw *d, Program *p, jot_Ctx *c, uint64_t seed, int64_t most)
{
    memset(d, 0, sizeof *d);
    memset(p, 0, sizeof *p);
    p->seed = seed;
    d->p = p;
    d->c = c;
    d->random = mixed(seed);
    d->most = most;
    jot_seed(c, seed);
}

/* Within a scope of c that the caller ends. */
static void
draw_program(Draw *d, Program *p, jot_Ctx *c, uint64_t seed)
{
    draw_begin(d, p, c, seed, 1500);
    int64_t calls = chance(d, 70) ? between(d, 5, 25) : between(d, 25, 70);
    bool states = chance(d, 20);

    new_leaf(d);
    any_leaf(d);
    while (p->ncall < calls && d->refused < 200) {
        int before = p->ncall;
        draw_call(d, states);
        d->refused += p->ncall == before;
    }
    draw_outputs(d);
}
#endif
