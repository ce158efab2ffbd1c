/* nn/recurrent.c - recurrent layers over a sequence.
 *
 *     x (t, b, i) --one product for all steps--> gates of x (t, b, k h)
 *     h (b, h)    --per step: a product, gates, element-wise--> h of the next step, y[t] = h
 *
 * The graph is unrolled: a step is a few nodes, whose kernel every step shares. Where `lengths`
 * says that a sequence has ended its state stays and its results are 0; from the end (reverse) it
 * stays as it began until the sequence's last element comes.
 *
 * Read before: nn/parts.h. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

enum { RNN_GATES = 1, GRU_GATES = 3, LSTM_GATES = 4 };

typedef struct {
    const char *op;
    int gates;
    int64_t t, b, h;
    const jot_Cell *w;
} Rnn;

static bool
rnn_shape(jot_Ctx *ctx, jot_Var v, int64_t m, int64_t n, const char *op, const char *arg)
{
    int rank = m < 0 ? 1 : 2;
    if (!jot_check(ctx, v, op, arg))
        return false;
    if (jot_rank(v) == rank && jot_extent(v, -1) == n && (m < 0 || jot_extent(v, 0) == m))
        return true;
    if (m < 0)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: (%lld) asked, rank %d and %lld elements found", op, arg,
                  (long long)n, jot_rank(v), (long long)jot_nelem(v));
    else if (jot_rank(v) == 2)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: (%lld, %lld) asked, (%lld, %lld) found", op, arg,
                  (long long)m, (long long)n, (long long)jot_extent(v, 0),
                  (long long)jot_extent(v, 1));
    else
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: (%lld, %lld) asked, rank %d and %lld elements found",
                  op, arg, (long long)m, (long long)n, jot_rank(v), (long long)jot_nelem(v));
    return false;
}

static bool
rnn_check(Rnn *r, jot_Ctx *ctx, jot_Var x, jot_Var h)
{
    const jot_Cell *w = r->w;
    if (!nn_rank_is(ctx, x, 3, r->op, "x", "(t, b, i)")
        || !nn_rank_is(ctx, h, 2, r->op, "h", "(b, h)"))
        return false;
    r->t = jot_extent(x, 0);
    r->b = jot_extent(x, 1);
    r->h = jot_extent(h, 1);
    int64_t k = r->gates * r->h;
    return rnn_shape(ctx, h, r->b, r->h, r->op, "h")
        && rnn_shape(ctx, w->in, jot_extent(x, 2), k, r->op, "in")
        && rnn_shape(ctx, w->state, r->h, k, r->op, "state")
        && (!nn_given(w->bias_in) || rnn_shape(ctx, w->bias_in, -1, k, r->op, "bias_in"))
        && (!nn_given(w->bias_state) || rnn_shape(ctx, w->bias_state, -1, k, r->op, "bias_state"))
        && (!nn_given(w->lengths) || (rnn_shape(ctx, w->lengths, -1, r->b, r->op, "lengths")
                                      && nn_integer(w->lengths, r->op, "lengths")));
}

static jot_Var
rnn_product(jot_Var x, jot_Var w, jot_Var bias)
{
    return nn_given(bias) ? jot_linear(x, w, bias) : jot_matmul(x, w);
}

/* Gate number k of gates (b, gates * h). */
static jot_Var
rnn_gate(const Rnn *r, jot_Var gates, int k)
{
    return jot_narrow(gates, 1, k * r->h, r->h);
}

static jot_Var
rnn_cell(const Rnn *r, jot_Var x, jot_Var h)
{
    jot_Var a = jot_add(x, jot_matmul(h, r->w->state)); /* x has both biases */
    return r->w->relu ? jot_relu(a) : jot_tanh(a);
}

static jot_Var
gru_cell(const Rnn *r, jot_Var x, jot_Var h)
{
    jot_Var a = rnn_product(h, r->w->state, r->w->bias_state);
    jot_Var reset = jot_sigmoid(jot_add(rnn_gate(r, x, 0), rnn_gate(r, a, 0)));
    jot_Var keep = jot_sigmoid(jot_add(rnn_gate(r, x, 1), rnn_gate(r, a, 1)));
    jot_Var now = jot_tanh(jot_add(rnn_gate(r, x, 2), jot_mul(reset, rnn_gate(r, a, 2))));
    return jot_add(now, jot_mul(keep, jot_sub(h, now)));
}

/* *c becomes the new cell. x has both biases. */
static jot_Var
lstm_cell(const Rnn *r, jot_Var x, jot_Var h, jot_Var *c)
{
    jot_Var a = jot_add(x, jot_matmul(h, r->w->state));
    jot_Var in = jot_sigmoid(rnn_gate(r, a, 0)), keep = jot_sigmoid(rnn_gate(r, a, 1));
    jot_Var now = jot_tanh(rnn_gate(r, a, 2)), out = jot_sigmoid(rnn_gate(r, a, 3));
    *c = jot_add(jot_mul(keep, *c), jot_mul(in, now));
    return jot_mul(out, jot_tanh(*c));
}

/* All steps. ys: room for t handles. */
static jot_Var
rnn_steps(const Rnn *r, jot_Var x, jot_Var *h, jot_Var *c, jot_Var *ys)
{
    jot_Ctx *ctx = x.ctx;
    jot_Var bias = r->w->bias_in, later = r->w->bias_state;
    if (r->gates != GRU_GATES && nn_given(later)) /* a GRU's reset gate has it behind the product */
        bias = nn_given(bias) ? jot_add(bias, later) : later;
    x = rnn_product(x, r->w->in, bias);
    for (int64_t k = 0; k < r->t; k++) {
        int64_t t = r->w->reverse ? r->t - 1 - k : k;
        jot_Var now = jot_squeeze(jot_narrow(x, 0, t, 1), 0), cell = c ? *c : now;
        jot_Var next = r->gates == RNN_GATES ? rnn_cell(r, now, *h)
                     : r->gates == GRU_GATES ? gru_cell(r, now, *h)
                                             : lstm_cell(r, now, *h, &cell);
        if (nn_given(r->w->lengths)) {
            jot_Var at = jot_full_int(ctx, JOT_I64, JOT_SHAPE(), t);
            jot_Var on = jot_unsqueeze(jot_lt(at, jot_cast(r->w->lengths, JOT_I64)), 1);
            ys[t] = jot_where(on, next, nn_zero(next));
            next = jot_where(on, next, *h);
            cell = c ? jot_where(on, cell, *c) : cell;
        } else {
            ys[t] = next;
        }
        *h = next;
        if (c)
            *c = cell;
    }
    return jot_stack(jot_vars((int)r->t, ys), 0);
}

static jot_Var
rnn_run(Rnn *r, jot_Var x, jot_Var *h, jot_Var *c)
{
    jot_Ctx *ctx = jot_ctx_of(h ? JOT_VARS(x, *h) : JOT_VARS(x));
    if (!h || !r->w)
        return jot_raise(ctx, JOT_EUSE, "%s: %s asked, none found", r->op,
                         h ? "a cell's weights" : "a state");
    if (!rnn_check(r, ctx, x, *h) || (c && !rnn_shape(ctx, *c, r->b, r->h, r->op, "c")))
        return nn_poison(ctx);
    if (r->t < 1 || r->t > 1 << 20)
        return jot_raise(ctx, JOT_ESHAPE, "%s: x: 1..%d steps asked, %lld found", r->op, 1 << 20,
                         (long long)r->t);
    jot_push(ctx);
    jot_Var hs = *h, cs = c ? *c : *h, room = nn_room(ctx, r->t), *ys = nn_handles(room);
    jot_Var y = ys ? rnn_steps(r, x, &hs, c ? &cs : NULL, ys) : nn_poison(ctx);
    jot_free(room);
    if (jot_ok(y)) {
        *h = jot_keep(hs);
        if (c)
            *c = jot_keep(cs);
    }
    return jot_leave(ctx, y);
}

jot_Var
jot_rnn(jot_Var x, jot_Var *h, const jot_Cell *cell)
{
    Rnn r = {"rnn", RNN_GATES, 0, 0, 0, cell};
    return rnn_run(&r, x, h, NULL);
}

jot_Var
jot_gru(jot_Var x, jot_Var *h, const jot_Cell *cell)
{
    Rnn r = {"gru", GRU_GATES, 0, 0, 0, cell};
    return rnn_run(&r, x, h, NULL);
}

jot_Var
jot_lstm(jot_Var x, jot_Var *h, jot_Var *c, const jot_Cell *cell)
{
    Rnn r = {"lstm", LSTM_GATES, 0, 0, 0, cell};
    if (!c)
        return jot_raise(x.ctx, JOT_EUSE, "lstm: a cell's state asked, none found");
    return rnn_run(&r, x, h, c);
}
