/* onnx/op/rnn.c - recurrent layers: RNN, GRU, LSTM, of one direction or both.
 *
 *     x (t, b, i), w (directions, gates h, i), r (directions, gates h, h)
 *         -> y (t, directions, b, h)
 *
 * What ONNX orders otherwise than jot (gates, transposed weights) is put in order once. Layers with
 * the usual activations are jot's own; others are unrolled here.
 *
 * Read before: onnx/op/norm.c. After: onnx/op/attention.c. */
#include "onnx/op/ops.h"

typedef struct {
    OnnxCall *c;
    int kind, gates, direction;
    int64_t t, b, h;
    jot_Var w, r, bias_w, bias_r, peep; /* (gates h, i), (gates h, h), (gates h), (3 h) or none */
    jot_Var lengths;
    const char *act[3];
    double alpha[3], beta[3], clip;
    bool reverse, coupled, before;      /* LSTM: f = 1 - i; GRU: reset before the product */
} Cell;

static jot_Var
activated(const Cell *l, int which, jot_Var x)
{
    const char *s = l->act[which];
    double a = l->alpha[which], b = l->beta[which];

    if (l->clip > 0)
        x = jot_clamp(x, -l->clip, l->clip);
    if (!strcmp(s, "Sigmoid"))
        return jot_sigmoid(x);
    if (!strcmp(s, "Tanh"))
        return jot_tanh(x);
    if (!strcmp(s, "Relu"))
        return jot_relu(x);
    if (!strcmp(s, "Affine"))
        return jot_offset(jot_scale(x, a), b);
    if (!strcmp(s, "LeakyRelu"))
        return jot_leaky_relu(x, a);
    if (!strcmp(s, "ThresholdedRelu"))
        return jot_threshold(x, a, 0);
    if (!strcmp(s, "ScaledTanh"))
        return jot_scale(jot_tanh(jot_scale(x, b)), a);
    if (!strcmp(s, "HardSigmoid"))
        return jot_clamp(jot_offset(jot_scale(x, a), b), 0, 1);
    if (!strcmp(s, "Elu"))
        return jot_elu(x, a);
    if (!strcmp(s, "Softsign"))
        return jot_softsign(x);
    if (!strcmp(s, "Softplus"))
        return jot_softplus(x);
    return jot_raise(x.ctx, JOT_EUSE, "activations: %s is not supported", s);
}

static jot_Var
gate(const Cell *l, jot_Var x, int k)
{
    return jot_narrow(x, -1, k * l->h, l->h);
}

static jot_Var
product(jot_Var x, jot_Var w, jot_Var bias)
{
    jot_Var y = jot_matmul(x, jot_swap(w, 0, 1));
    return bias.ctx ? jot_add(y, bias) : y;
}

static jot_Var
peeped(const Cell *l, jot_Var x, int k, jot_Var c)
{
    return l->peep.ctx ? jot_add(x, jot_mul(gate(l, l->peep, k), c)) : x;
}

/* Gates i o f c; peepholes i o f. */
static void
lstm_step(const Cell *l, jot_Var x, jot_Var *h, jot_Var *c)
{
    jot_Var a = jot_add(x, product(*h, l->r, l->bias_r)), keep;
    jot_Var in = activated(l, 0, peeped(l, gate(l, a, 0), 0, *c));
    keep = l->coupled ? jot_offset(jot_neg(in), 1)
                      : activated(l, 0, peeped(l, gate(l, a, 2), 2, *c));
    *c = jot_add(jot_mul(keep, *c), jot_mul(in, activated(l, 1, gate(l, a, 3))));
    jot_Var out = activated(l, 0, peeped(l, gate(l, a, 1), 1, *c));
    *h = jot_mul(out, activated(l, 2, *c));
}

/* Gates z r h. */
static void
gru_step(const Cell *l, jot_Var x, jot_Var *h)
{
    jot_Var rz = jot_narrow(l->r, 0, 0, 2 * l->h), rn = jot_narrow(l->r, 0, 2 * l->h, l->h);
    jot_Var bz = l->bias_r.ctx ? jot_narrow(l->bias_r, 0, 0, 2 * l->h) : jot_none();
    jot_Var bn = l->bias_r.ctx ? jot_narrow(l->bias_r, 0, 2 * l->h, l->h) : jot_none();
    jot_Var a = product(*h, rz, bz);
    jot_Var z = activated(l, 0, jot_add(gate(l, x, 0), gate(l, a, 0)));
    jot_Var reset = activated(l, 0, jot_add(gate(l, x, 1), gate(l, a, 1)));
    jot_Var n = l->before ? product(jot_mul(reset, *h), rn, bn)
                          : jot_mul(reset, product(*h, rn, bn));
    n = activated(l, 1, jot_add(gate(l, x, 2), n));
    *h = jot_add(n, jot_mul(z, jot_sub(*h, n)));
}

/* x (t, b, i) -> (t, b, h); h and c go on. */
static jot_Var
unrolled(const Cell *l, jot_Var x, jot_Var *h, jot_Var *c)
{
    jot_Var *y = onnx_take(&l->c->b->arena, (size_t)l->t, sizeof *y);

    if (!y)
        return jot_raise(x.ctx, JOT_EMEM, "no memory");
    x = product(x, l->w, l->bias_w);
    for (int64_t k = 0; k < l->t; k++) {
        int64_t t = l->reverse ? l->t - 1 - k : k;
        jot_Var now = jot_select(x, 0, t), h0 = *h, c0 = *c;
        if (l->kind == ONNX_LSTM)
            lstm_step(l, now, h, c);
        else if (l->kind == ONNX_GRU)
            gru_step(l, now, h);
        else
            *h = activated(l, 0, jot_add(now, product(*h, l->r, l->bias_r)));
        y[t] = *h;
        if (l->lengths.ctx) {
            jot_Var on = jot_gt(l->lengths, onnx_number(l->lengths, (double)t));
            y[t] = jot_where(on, *h, onnx_number(*h, 0));
            *h = jot_where(on, *h, h0);
            *c = l->kind == ONNX_LSTM ? jot_where(on, *c, c0) : *c;
        }
    }
    return jot_stack(jot_vars((int)l->t, y), 0);
}

/* (gates h, ...) with gates in jot's order. */
static jot_Var
ordered(const Cell *l, jot_Var w)
{
    static const int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2}, rnn[] = {0};
    const int *order = l->kind == ONNX_LSTM ? lstm : l->kind == ONNX_GRU ? gru : rnn;
    jot_Var part[4];
    for (int k = 0; k < l->gates; k++)
        part[k] = jot_narrow(w, 0, order[k] * l->h, l->h);
    return l->gates == 1 ? w : jot_concat(jot_vars(l->gates, part), 0);
}

static bool
usual(const Cell *l)
{
    bool lstm = l->kind == ONNX_LSTM, gru = l->kind == ONNX_GRU;
    bool acts = gru || lstm ? !strcmp(l->act[0], "Sigmoid") && !strcmp(l->act[1], "Tanh")
                                  && (gru || !strcmp(l->act[2], "Tanh"))
                            : !strcmp(l->act[0], "Tanh");
    return acts && !(l->clip > 0) && !l->coupled && !l->peep.ctx && !(gru && l->before);
}

static jot_Var
direction(const Cell *l, jot_Var x, jot_Var *h, jot_Var *c)
{
    if (!usual(l))
        return unrolled(l, x, h, c);
    jot_Cell cell = {
        .in = onnx_hold(l->c, jot_swap(ordered(l, l->w), 0, 1), 2),
        .state = onnx_hold(l->c, jot_swap(ordered(l, l->r), 0, 1), 4),
        .bias_in = l->bias_w.ctx ? onnx_hold(l->c, ordered(l, l->bias_w), 8) : jot_none(),
        .bias_state = l->bias_r.ctx ? onnx_hold(l->c, ordered(l, l->bias_r), 8) : jot_none(),
        .lengths = l->lengths.ctx ? jot_reshape(l->lengths, JOT_SHAPE(-1)) : jot_none(),
        .reverse = l->reverse};
    return l->kind == ONNX_LSTM ? jot_lstm(x, h, c, &cell)
         : l->kind == ONNX_GRU ? jot_gru(x, h, &cell) : jot_rnn(x, h, &cell);
}

/* Activations of direction d, as given or as usual. */
static bool
cell_activations(OnnxCall *c, Cell *l, int d)
{
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"}, *const rnn[] = {"Tanh"};
    static const char *const known[] = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                                        "HardSigmoid", "Elu"};
    static const double alphas[] = {1, 0.01, 1, 1, 0.2, 1}, betas[] = {0, 0, 0, 1, 0.5, 0};
    const OnnxAttr *a = onnx_attr(c->s, c->node, "activations");
    const OnnxAttr *al = onnx_attr(c->s, c->node, "activation_alpha");
    const OnnxAttr *be = onnx_attr(c->s, c->node, "activation_beta");
    int n = l->kind == ONNX_LSTM ? 3 : l->kind == ONNX_GRU ? 2 : 1;

    for (int k = 0; k < n; k++) {
        size_t at = (size_t)(d * n + k);
        l->act[k] = l->kind == ONNX_RNN ? rnn[0] : lstm[k];
        if (a && a->n_strings > at) {
            char *s = onnx_take(&c->b->arena, a->strings[at].len + 1, 1);
            if (!s)
                return onnx_fail(c, JOT_EMEM, "no memory");
            if (a->strings[at].len)
                memcpy(s, a->strings[at].data, a->strings[at].len);
            l->act[k] = s;
        }
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (!strcmp(l->act[k], known[i])) {
                l->alpha[k] = alphas[i];
                l->beta[k] = betas[i];
            }
        if (al && al->n_floats > at)
            l->alpha[k] = (double)al->floats[at];
        if (be && be->n_floats > at)
            l->beta[k] = (double)be->floats[at];
    }
    return true;
}

/* Part `d` of operand k (directions, ...), or none. */
static jot_Var
part(OnnxCall *c, int k, int d)
{
    return onnx_given(c, k) ? jot_select(c->x[k], 0, d) : jot_none();
}

static bool
cell_fill(OnnxCall *c, Cell *l, int d, int64_t h)
{
    jot_Var bias = part(c, 3, d);
    int64_t n = l->gates * h;

    l->h = h;
    l->w = part(c, 1, d);
    l->r = part(c, 2, d);
    if (bias.ctx && jot_nelem(bias) != 2 * n)
        return onnx_fail(c, JOT_ESHAPE, "B: (directions, %lld) asked", (long long)(2 * n));
    l->bias_w = bias.ctx ? jot_narrow(bias, 0, 0, n) : bias;
    l->bias_r = bias.ctx ? jot_narrow(bias, 0, n, n) : bias;
    l->peep = l->kind == ONNX_LSTM ? part(c, 7, d) : jot_none();
    l->lengths = onnx_given(c, 4) ? jot_reshape(jot_cast(c->x[4], JOT_I64), JOT_SHAPE(-1, 1))
                                  : jot_none();
    return cell_activations(c, l, d);
}

bool
onnx_op_recurrent(OnnxCall *c)
{
    bool both = onnx_is(c, "direction", "bidirectional"), batch = onnx_i(c, "layout", 0);
    bool lstm = c->op->kind == ONNX_LSTM;
    int n = both ? 2 : 1;
    jot_Var x = c->x[0], y[2], last[2], cell[2];
    Cell l = {.c = c, .kind = c->op->kind, .gates = lstm ? 4 : c->op->kind == ONNX_GRU ? 3 : 1,
              .clip = onnx_f(c, "clip", 0), .coupled = onnx_i(c, "input_forget", 0),
              .before = !onnx_i(c, "linear_before_reset", 0)};

    if (jot_rank(x) != 3 || jot_rank(c->x[1]) != 3 || jot_rank(c->x[2]) != 3
        || jot_extent(c->x[1], 0) != n)
        return onnx_fail(c, JOT_ESHAPE, "X (t, b, i), W and R of %d directions asked", n);
    x = batch ? jot_swap(x, 0, 1) : x;
    l.t = jot_extent(x, 0);
    l.b = jot_extent(x, 1);
    if (l.t < 1 || l.t > ONNX_STEPS)
        return onnx_fail(c, JOT_ESHAPE, "X: 1..%d steps asked, %lld found", ONNX_STEPS,
                         (long long)l.t);
    for (int d = 0; d < n; d++) {
        int64_t h = jot_extent(c->x[2], 2);
        if (!cell_fill(c, &l, d, h))
            return false;
        for (int k = 0; k < 2; k++) {
            jot_Var s = onnx_given(c, 5 + k) && (!k || lstm) ? c->x[5 + k] : jot_none();
            s = s.ctx ? jot_select(s, batch ? 1 : 0, d)
                      : jot_zeros(c->ctx, jot_dtype(x), JOT_SHAPE(l.b, h));
            *(k ? &cell[d] : &last[d]) = s;
        }
        l.reverse = d || onnx_is(c, "direction", "reverse");
        y[d] = direction(&l, x, &last[d], &cell[d]);
    }
    int at = batch ? 1 : 0; /* (b, directions, h), or (directions, b, h) */
    c->out[1] = jot_stack(jot_vars(n, last), at);
    if (lstm)
        c->out[2] = jot_stack(jot_vars(n, cell), at);
    jot_Var all = jot_stack(jot_vars(n, y), 1);
    return onnx_put(c, 0, batch ? jot_transpose(all, JOT_INTS(2, 0, 1, 3)) : all);
}
