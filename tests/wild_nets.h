/* tests/wild_nets.h - drawing a network: 5 to 15 layers of every kind in random order, parameters
 * that are shared, a loss, gradients by input and parameters, and mostly gradients of these.
 *
 * Layers take what they find: an image (n, c, h, w), rows (n, t, e) or vectors (n, e), and make a
 * form that they want by reshaping. All of it has a counterpart in PyTorch (tests/ref/wild.py). */
#ifndef JOT_TEST_WILD_NETS_H
#define JOT_TEST_WILD_NETS_H
#include "tests/wild_layers.h"

/* A parameter of this shape: a new one, or now and then one that a layer has already. */
static int
weight(Draw *d, int dtype, List shape, int style)
{
    Program *p = d->p;

    for (int k = 0; k < p->ncall && chance(d, 40); k++)
        if (p->call[k].kind == C_PARAM && p->call[k].num[0] == style && p->dtype[p->call[k].first]
            == dtype && p->call[k].list[0].n == shape.n &&
            !memcmp(p->call[k].list[0].v, shape.v, (size_t)shape.n * sizeof *shape.v))
            return p->call[k].first;
    Call k = call_of(C_PARAM);
    k.dtype = dtype;
    list_add(&k, shape);
    number(&k, style);
    number(&k, below(d, 1000));
    return add(d, k);
}

static int
scaled_weight(Draw *d, int dtype, List shape, int64_t fan_in)
{
    return unary_by(d, C_SCALE, weight(d, dtype, shape, OF_ANY),
                    rint(1.5 / sqrt((double)(fan_in ? fan_in : 1)) * 64) / 64, 0);
}

static int
weight_per(Draw *d, int x, int dim, int style)
{
    List s = {1, {d->p->shape[x].v[dim]}};
    return weight(d, d->p->dtype[x], s, style);
}

static int
reshaped(Draw *d, int x, int rank, int64_t a, int64_t b, int64_t c, int64_t e)
{
    Call k = call_of(C_RESHAPE);
    List l = {rank, {a, b, c, e}};
    operand(&k, x);
    list_add(&k, l);
    return add(d, k);
}

static int
reduced(Draw *d, int op, int x, int dim)
{
    Call k = call_of(C_REDUCE);
    List l = {1, {dim}};
    operand(&k, x);
    number(&k, op);
    list_add(&k, l);
    number(&k, 0);
    return add(d, k);
}

/* ---- layers: each returns its result, -1 where it does not apply ---- */

static int
net_activation(Draw *d, int x)
{
    static const int kinds[] = {C_RELU, C_RELU, C_GELU, C_GELU_TANH, C_U_tanh, C_U_sigmoid,
                                C_U_softplus, C_U_sin, C_SQUARE, C_U_erf, C_U_atan, C_U_abs};
    return unary(d, kinds[below(d, 12)], x);
}

static int
net_linear(Draw *d, int x)
{
    List s = shape_at(d, x), w = {2, {s.v[s.n - 1], between(d, 1, 14)}}, b = {1, {w.v[1]}};
    Call k = call_of(C_LINEAR);

    operand(&k, x);
    operand(&k, scaled_weight(d, d->p->dtype[x], w, w.v[0]));
    operand(&k, weight(d, d->p->dtype[x], b, OF_ANY));
    return add(d, k);
}

static int
net_bias(Draw *d, int x)
{
    List s = shape_at(d, x);
    int b;

    if (s.n != 4)
        return -1;
    b = reshaped(d, weight_per(d, x, 1, OF_ANY), 4, 1, s.v[1], 1, 1);
    return binary(d, C_B_add, x, b);
}

static int
net_conv(Draw *d, int x)
{
    List s = shape_at(d, x), w = {4, {0}};
    Call k = call_of(C_CONV);
    int64_t groups = chance(d, 25) ? s.v[1] : 1, size = between(d, 1, 3);

    if (s.n != 4)
        return -1;
    w.v[0] = groups * between(d, 1, groups > 1 ? 2 : 8);
    w.v[1] = s.v[1] / groups;
    w.v[2] = size;
    w.v[3] = chance(d, 80) ? size : between(d, 1, 3);
    operand(&k, x);
    operand(&k, scaled_weight(d, d->p->dtype[x], w, w.v[1] * w.v[2] * w.v[3]));
    number(&k, chance(d, 70) ? 1 : 2);
    number(&k, chance(d, 80) ? k.num[0] : 1);
    number(&k, between(d, 0, size / 2));
    number(&k, chance(d, 80) ? k.num[2] : 1);
    number(&k, chance(d, 80) ? 1 : 2);
    number(&k, chance(d, 80) ? k.num[4] : 1);
    number(&k, groups);
    return add(d, k);
}

static int
net_pool(Draw *d, int x)
{
    Call k = call_of(chance(d, 60) ? C_MAX_POOL : C_AVG_POOL);
    int64_t size = between(d, 1, 3);

    if (d->p->shape[x].n != 4)
        return -1;
    operand(&k, x);
    for (int j = 0; j < 2; j++)
        number(&k, size);
    for (int j = 0; j < 2; j++)
        number(&k, between(d, 1, 2));
    for (int j = 0; j < 2; j++)
        number(&k, chance(d, 60) ? 0 : size / 2);
    return add(d, k);
}

static int
net_norm(Draw *d, int x)
{
    List s = shape_at(d, x);
    Call k = call_of(chance(d, 50) || s.n == 1 ? C_LAYER_NORM : C_BATCH_NORM);
    int dim = k.kind == C_LAYER_NORM ? s.n - 1 : 1;

    k.f[0] = 1e-2;
    k.f[1] = .1;
    if (s.n == 4 && chance(d, 25))
        return unary_by(d, C_INSTANCE_NORM, x, k.f[0], 0);
    operand(&k, x);
    operand(&k, weight_per(d, x, dim, OF_POSITIVE));
    operand(&k, weight_per(d, x, dim, OF_ANY));
    if (k.kind == C_BATCH_NORM) {
        operand(&k, weight_per(d, x, 1, OF_QUARTERS));
        operand(&k, weight_per(d, x, 1, OF_POSITIVE));
        k.nout = 3;
    }
    return add(d, k);
}

static int
net_softmax(Draw *d, int x)
{
    Call k = call_of(chance(d, 75) ? C_SOFTMAX : C_LOG_SOFTMAX);
    operand(&k, x);
    number(&k, between(d, shape_at(d, x).n > 1, shape_at(d, x).n - 1));
    return add(d, k);
}

/* Over the last but one dimension, of queries, keys and values that are x or linear in it. */
static int
net_attention(Draw *d, int x)
{
    List s = shape_at(d, x);
    int q, k, v, y;
    Call turn = call_of(C_SWAP), soft = call_of(C_SOFTMAX);

    if (s.n < 3)
        return -1;
    q = chance(d, 60) ? net_linear(d, x) : x;
    k = chance(d, 60) && q == x ? x : q;
    v = chance(d, 50) ? net_linear(d, x) : x;
    operand(&turn, k);
    number(&turn, -1);
    number(&turn, -2);
    y = unary_by(d, C_SCALE, binary(d, C_MATMUL, q, add(d, turn)), .25, 0);
    operand(&soft, y);
    number(&soft, -1);
    return binary(d, C_MATMUL, add(d, soft), v);
}

/* One or two steps of a gated cell on vectors. */
static int
net_cell(Draw *d, int x)
{
    List s = shape_at(d, x);
    int64_t e = s.v[s.n - 1];
    List w = {2, {e, e}};
    int h = x, gate, fresh, kept, u, v;

    if (s.n != 2 || e > 16)
        return -1;
    u = scaled_weight(d, d->p->dtype[x], w, e);
    v = scaled_weight(d, d->p->dtype[x], w, e);
    for (int64_t steps = between(d, 1, 3); steps > 0; steps--) {
        kept = binary(d, C_MATMUL, h, v);
        gate = unary(d, C_U_sigmoid, binary(d, C_B_add, binary(d, C_MATMUL, x, u), kept));
        fresh = unary(d, C_U_tanh, binary(d, C_MATMUL, h, u));
        h = binary(d, C_B_add, h, binary(d, C_B_mul, gate, binary(d, C_B_sub, fresh, h)));
    }
    return h;
}

static int
net_form(Draw *d, int x)
{
    List s = shape_at(d, x), from = s, to = s, step = s;
    int dim = (int)between(d, s.n > 1, s.n - 1);
    Call k = call_of(C_CONCAT);

    switch (below(d, 6)) {
    case 0:
        operand(&k, x);
        operand(&k, chance(d, 50) ? x : net_activation(d, x));
        number(&k, dim);
        return add(d, k);
    case 1:
        k.kind = C_TRANSPOSE;
        operand(&k, x);
        for (int e = 0; e < s.n; e++)
            s.v[e] = e < 1 ? 0 : s.n - e;
        list_add(&k, s);
        return add(d, k);
    case 2:
        k.kind = C_FLIP;
        operand(&k, x);
        s.n = 1;
        s.v[0] = dim;
        list_add(&k, s);
        return add(d, k);
    case 3:
        k.kind = C_PAD;
        operand(&k, x);
        for (int e = 0; e < s.n; e++)
            from.v[e] = e == dim ? between(d, 0, 2) : 0, to.v[e] = e == dim ? between(d, 0, 2) : 0;
        list_add(&k, from);
        list_add(&k, to);
        return add(d, k);
    case 4:
        k.kind = C_SLICE;
        operand(&k, x);
        for (int e = 0; e < s.n; e++) {
            step.v[e] = e == dim && s.v[e] > 4 ? between(d, 1, 2) : 1;
            from.v[e] = e == dim && s.v[e] > 2 ? between(d, 0, 1) : 0;
            to.v[e] = e == dim && s.v[e] > 3 && chance(d, 50) ? s.v[e] - 1 : JOT_END;
        }
        list_add(&k, from);
        list_add(&k, to);
        list_add(&k, step);
        return add(d, k);
    default: /* nearest neighbour, twice as large */
        k.kind = C_TILE;
        operand(&k, x);
        for (int e = 0; e < s.n; e++)
            s.v[e] = e == dim && s.v[e] < 6 ? 2 : 1;
        list_add(&k, s);
        return add(d, k);
    }
}

/* To another form: rows of an image, all of a sample, the mean of what is there. */
static int
net_flatten(Draw *d, int x)
{
    List s = shape_at(d, x);
    int64_t rest = 1;

    if (s.n < 3)
        return -1;
    if (s.n == 4 && chance(d, 40))
        return reshaped(d, x, 3, s.v[0], s.v[1], s.v[2] * s.v[3], 0);
    if (chance(d, 30))
        return reduced(d, chance(d, 60) ? JOT_MEAN : chance(d, 50) ? JOT_MAX : JOT_ADD, x, -1);
    for (int e = 1; e < s.n; e++)
        rest *= s.v[e];
    return reshaped(d, x, 2, s.v[0], rest, 0, 0);
}

static int
net_layer(Draw *d, int x, int earlier)
{
    switch (below(d, 16)) {
    case 0: case 1: return net_activation(d, x);
    case 2: return net_linear(d, x);
    case 3: case 4: case 5: return net_conv(d, x);
    case 6: case 7: return net_pool(d, x);
    case 8: case 9: return net_norm(d, x);
    case 10: return net_softmax(d, x);
    case 11: return chance(d, 50) ? net_attention(d, x) : net_cell(d, x);
    case 12: return net_form(d, x);
    case 13: return chance(d, 40) ? net_flatten(d, x) : unary_by(d, C_SCALE, x, 1.5, 0);
    case 14:
        if (memcmp(d->p->shape[x].v, d->p->shape[earlier].v, sizeof d->p->shape[x].v) ||
            d->p->shape[x].n != d->p->shape[earlier].n)
            return net_bias(d, x);
        return binary(d, chance(d, 80) ? C_B_add : C_B_mul, x, earlier);
    default: return net_bias(d, x);
    }
}

/* ---- loss and gradients ---- */

static int
net_loss(Draw *d, int y)
{
    List s = shape_at(d, y);
    int64_t n = nelem_of(&s);

    if (s.n == 2 && s.v[1] > 1 && chance(d, 40)) {
        Call k = call_of(C_CROSS_ENTROPY), l = call_of(C_LEAF);
        List rows = {1, {s.v[0]}};
        l.dtype = JOT_I32;
        list_add(&l, rows);
        number(&l, OF_PLACES);
        number(&l, below(d, 1000));
        operand(&k, y);
        operand(&k, unary_by(d, C_CLAMP, add(d, l), 0, (double)s.v[1] - 1));
        return add(d, k);
    }
    if (chance(d, 40) && n)
        return binary(d, C_MSE, y, add_leaf(d, d->p->dtype[y], s, OF_ANY));
    return scalar_of_var(d, y);
}

/* By the input and up to four parameters. */
static int
net_grad(Draw *d, int loss, int x, int *nout)
{
    Program *p = d->p;
    Call g = call_of(C_GRAD);

    operand(&g, loss);
    operand(&g, x);
    g.nout = 1;
    for (int k = 0; k < p->ncall && g.nout < 5; k++)
        if (p->call[k].kind == C_PARAM && chance(d, 60)) {
            operand(&g, p->call[k].first);
            g.nout++;
        }
    *nout = g.nout;
    return add(d, g);
}

static void
ask_for(Program *p, int v)
{
    if (v >= 0 && p->nout < OUTPUTS)
        p->out[p->nout++] = v;
}

static void
draw_network(Draw *d, Program *p, jot_Ctx *c, uint64_t seed)
{
    int x, y, earlier, loss, g, n;
    int64_t layers;

    draw_begin(d, p, c, seed, 2500);
    layers = between(d, 5, 15);
    List s = {4, {between(d, 1, 4), between(d, 1, 6), between(d, 2, 9), between(d, 2, 9)}};
    if (chance(d, 35))
        s.n = (int)between(d, 2, 3);
    Call k = call_of(C_LEAF);
    k.dtype = chance(d, 60) ? JOT_F32 : JOT_F64;
    list_add(&k, s);
    number(&k, OF_ANY);
    number(&k, below(d, 1000));
    x = y = earlier = add(d, k);
    while (layers > 0 && p->ncall < CALLS - 30 && d->refused < 100) {
        int z = net_layer(d, y, earlier);
        if (z < 0 || !jot_nelem(d->var[z])) {
            d->refused++;
            continue;
        }
        if (chance(d, 50))
            earlier = y;
        y = z;
        layers--;
    }
    ask_for(p, y);
    loss = net_loss(d, y);
    if (loss < 0)
        return;
    ask_for(p, loss);
    if ((g = net_grad(d, loss, x, &n)) < 0)
        return;
    for (int j = 0; j < n; j++)
        ask_for(p, g + j);
    if (chance(d, 75)) {
        int at = (int)below(d, n), sum = -1;
        sum = scalar_of_var(d, g + at);
        if (sum >= 0 && chance(d, 40))
            sum = binary(d, C_B_add, sum, scalar_of_var(d, g + (int)below(d, n)));
        if (sum >= 0 && (g = net_grad(d, sum, x, &n)) >= 0)
            for (int j = 0; j < n; j++)
                ask_for(p, g + j);
    }
    if (chance(d, 20) && p->nvar) { /* and a step */
        Call step = call_of(chance(d, 50) ? C_SGD : C_ADAM);
        Call grad = call_of(C_GRAD);
        int w = pick_param(d);
        operand(&grad, loss);
        operand(&grad, w);
        operand(&step, w);
        operand(&step, w >= 0 ? add(d, grad) : -1);
        step.f[0] = .05;
        step.f[1] = .01;
        step.nout = 0;
        if (add(d, step) >= 0)
            ask_for(p, w);
    }
}
#endif
