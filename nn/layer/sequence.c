/* nn/layer/sequence.c - layers over sequences: recurrent ones, attention of several heads, blocks
 * of transformers.
 *
 *     x (b, t, w) --in_proj--> q (b, h, t, d), k, v (b, g, s, d) --attention, out_proj--> (b, t, w)
 *
 * Read before: nn/layer/layers.c. After: nn/layer/trainer.c. */
#include "nn/layer/net.h"

/* ---- recurrent layers ---- */

typedef struct {
    jot_Net net;
    Net *n;
    const char *name;
    const jot_Rnn *how;
    int64_t b, width;
    int gates, ways;  /* directions */
} SeqRnn;

/* weight_ih_l0 and its like, of layer k forwards or backwards */
static jot_Var
seq_part(const SeqRnn *r, const char *what, int k, bool reverse, jot_Ints shape)
{
    double bound = 1 / nn_root(r->width > 0 ? (double)r->width : 1);
    char part[64];
    nn_put(nn_put_int(nn_put(part, what), k), reverse ? "_reverse" : "");
    return net_part(r->net, r->name, part, shape,
                    net_init(r->how->weight, JOT_INIT_UNIFORM, -bound, bound));
}

static jot_Var
seq_weight(const SeqRnn *r, const char *what, int k, bool reverse, int64_t in, double places)
{
    jot_Var w = seq_part(r, what, k, reverse, JOT_SHAPE(r->gates * r->width, in));
    net_count(r->n, w, places * (double)(r->gates * r->width) * (double)in);
    return jot_transpose(net_as(r->n, w), JOT_INTS(1, 0));
}

/* The state of layer k in one direction before the first step. */
static jot_Var
seq_state(const SeqRnn *r, const jot_Var *all, int k)
{
    return all ? net_as(r->n, jot_squeeze(jot_narrow(*all, 0, k, 1), 0))
               : jot_zeros(r->n->ctx, r->n->compute, JOT_SHAPE(r->b, r->width));
}

static jot_Var
seq_direction(const SeqRnn *r, jot_Var x, int k, bool reverse, jot_Var *h, jot_Var *c)
{
    double places = (double)jot_extent(x, 0) * (double)r->b;
    jot_Ints bias = JOT_SHAPE(r->gates * r->width);
    jot_Cell cell = {.lengths = r->how->lengths, .reverse = reverse, .relu = r->how->relu};
    cell.in = seq_weight(r, "weight_ih_l", k, reverse, jot_extent(x, 2), places);
    cell.state = seq_weight(r, "weight_hh_l", k, reverse, r->width, places);
    if (!r->how->no_bias) {
        cell.bias_in = net_as(r->n, seq_part(r, "bias_ih_l", k, reverse, bias));
        cell.bias_state = net_as(r->n, seq_part(r, "bias_hh_l", k, reverse, bias));
    }
    *h = seq_state(r, r->how->h, r->ways * k + reverse);
    if (r->how->kind == JOT_RNN)
        return jot_rnn(x, h, &cell);
    if (r->how->kind == JOT_GRU)
        return jot_gru(x, h, &cell);
    *c = seq_state(r, r->how->c, r->ways * k + reverse);
    return jot_lstm(x, h, c, &cell);
}

static bool
seq_all_states(const SeqRnn *r, const jot_Var *all, int count, const char *arg)
{
    jot_Ctx *ctx = r->n->ctx;
    if (!all)
        return true;
    if (!nn_rank_is(ctx, *all, 3, "rnn", arg, "(layers x directions, b, width)"))
        return false;
    bool fits = jot_extent(*all, 0) == count && jot_extent(*all, 1) == r->b
             && jot_extent(*all, 2) == r->width;
    if (!fits)
        jot_raise(ctx, JOT_ESHAPE, "rnn: %s: (%d, %lld, %lld) asked, (%lld, %lld, %lld) found", arg,
                  count, (long long)r->b, (long long)r->width, (long long)jot_extent(*all, 0),
                  (long long)jot_extent(*all, 1), (long long)jot_extent(*all, 2));
    return fits;
}

/* All layers; hs and cs: room for a state of each, in the order of how->h. */
static jot_Var
seq_layers(const SeqRnn *r, jot_Var x, int layers, jot_Var *hs, jot_Var *cs)
{
    for (int k = 0; k < layers && jot_ok(x); k++) {
        jot_Var y[2];
        for (int way = 0; way < r->ways; way++)
            y[way] = seq_direction(r, x, k, way, &hs[r->ways * k + way], &cs[r->ways * k + way]);
        x = r->ways > 1 ? jot_concat(jot_vars(2, y), 2) : y[0];
        if (k + 1 < layers)
            x = jot_nn_dropout(r->net, x, r->how->dropout);
    }
    return x;
}

jot_Var
jot_nn_rnn(jot_Net net, const char *name, jot_Var x, int64_t width, const jot_Rnn *how)
{
    enum { MOST = 64 };
    static const jot_Rnn plain;
    static const int gates[] = {1, 3, 4};
    SeqRnn r = {net, net_of(net, "rnn"), name, how ? how : &plain, 0, width, 0, 0};
    jot_Var hs[2 * MOST], cs[2 * MOST];
    if (!r.n || !nn_rank_is(r.n->ctx, x, 3, "rnn", "x", "(t, b, i)")
        || !nn_least(r.n->ctx, (double)width, 0, "rnn", "width"))
        return nn_poison(net.state.ctx);
    how = r.how;
    int layers = how->layers ? how->layers : 1;
    r.b = jot_extent(x, 1);
    r.ways = how->both ? 2 : 1;
    if ((unsigned)how->kind > JOT_LSTM || layers < 1 || layers > MOST)
        return jot_raise(r.n->ctx, JOT_ERANGE, "rnn: a kind and 1..%d layers asked, %d and %d "
                         "found", (int)MOST, (int)how->kind, layers);
    r.gates = gates[how->kind];
    int count = layers * r.ways, had = r.n->n;
    if (!seq_all_states(&r, how->h, count, "h") || !seq_all_states(&r, how->c, count, "c"))
        return nn_poison(r.n->ctx);
    jot_push(r.n->ctx);
    x = seq_layers(&r, net_as(r.n, x), layers, hs, cs);
    if (jot_ok(x) && how->h)
        *how->h = jot_keep(jot_stack(jot_vars(count, hs), 0));
    if (jot_ok(x) && how->c && how->kind == JOT_LSTM)
        *how->c = jot_keep(jot_stack(jot_vars(count, cs), 0));
    return net_leave(r.n, had, x);
}

/* ---- attention ---- */

typedef struct { int64_t w, d, heads, kv; } SeqHeads;

static bool
seq_heads(SeqHeads *s, jot_Ctx *ctx, jot_Var x, jot_Var memory, const jot_MultiHead *how)
{
    static const char op[] = "attention";
    if (!nn_rank_is(ctx, x, 3, op, "x", "(b, t, w)")
        || (nn_given(memory) && !nn_rank_is(ctx, memory, 3, op, "memory", "(b, s, w)")))
        return false;
    s->w = jot_extent(x, 2);
    s->heads = how->heads;
    s->kv = how->kv_heads ? how->kv_heads : how->heads;
    if (s->heads < 1 || s->kv < 1 || s->heads % s->kv || s->w % s->heads
        || (nn_given(memory) && jot_extent(memory, 2) != s->w)) {
        jot_raise(ctx, JOT_ESHAPE, "attention: heads that divide the width %lld, kv_heads that "
                  "divide heads and a memory of that width asked, %d, %d and %lld found",
                  (long long)s->w, how->heads, how->kv_heads,
                  (long long)(nn_given(memory) ? jot_extent(memory, 2) : s->w));
        return false;
    }
    s->d = s->w / s->heads;
    return true;
}

/* Rows from..from + n of in_proj, of x: (b, t, n). */
static jot_Var
seq_project(Net *n, jot_Var x, jot_Var w, jot_Var b, int64_t from, int64_t rows)
{
    bool all = jot_extent(w, 0) == rows;
    w = jot_transpose(all ? w : jot_narrow(w, 0, from, rows), JOT_INTS(1, 0));
    x = net_as(n, x);
    if (!nn_given(b))
        return jot_matmul(x, w);
    return jot_linear(x, w, all ? b : jot_narrow(b, 0, from, rows));
}

/* Columns from.. of x (b, t, ...) as (b, heads, t, d), turned by positions unless base is 0. */
static jot_Var
seq_split(jot_Var x, int64_t from, int64_t heads, int64_t d, double base)
{
    int64_t b = jot_extent(x, 0), t = jot_extent(x, 1);
    x = jot_reshape(jot_narrow(x, 2, from, heads * d), JOT_SHAPE(b, t, heads, d));
    x = jot_swap(x, 1, 2);
    return base != 0 ? jot_rotary(x, jot_iota(x.ctx, JOT_I64, JOT_SHAPE(t), 0), base, false) : x;
}

jot_Var
jot_nn_attention(jot_Net net, const char *name, jot_Var x, jot_Var memory,
                 const jot_MultiHead *how)
{
    static const jot_MultiHead plain;
    static const jot_Init zeros = {JOT_INIT_CONSTANT, 0, 0};
    Net *n = net_of(net, "attention");
    SeqHeads s;
    how = how ? how : &plain;
    if (!n || !seq_heads(&s, n->ctx, x, memory, how))
        return nn_poison(net.state.ctx);
    int had = n->n;
    jot_push(n->ctx);
    bool cross = nn_given(memory);
    int64_t kv = s.kv * s.d, rows = s.w + 2 * kv;
    jot_Var w = net_part(net, name, "in_proj_weight", JOT_SHAPE(rows, s.w),
                         net_init(how->weight, JOT_INIT_XAVIER_UNIFORM, 0, 0)), b = {NULL, 0, 0};
    double q_madds = (double)jot_nelem(x), kv_madds = (double)jot_nelem(cross ? memory : x);
    net_count(n, w, q_madds * (double)s.w + kv_madds * 2 * (double)kv);
    w = net_as(n, w);
    if (!how->no_bias)
        b = net_as(n, net_part(net, name, "in_proj_bias", JOT_SHAPE(rows), zeros));
    jot_Var q = seq_project(n, x, w, b, 0, cross ? s.w : rows), other = q;
    if (cross)
        other = seq_project(n, memory, w, b, s.w, 2 * kv);
    int64_t at = cross ? 0 : s.w;
    jot_Attention plan = {.mask = how->mask, .causal = how->causal,
                          .dropout = n->train ? how->dropout : 0};
    jot_Var y = jot_attention(seq_split(q, 0, s.heads, s.d, how->rotary),
                              seq_split(other, at, s.kv, s.d, cross ? 0 : how->rotary),
                              seq_split(other, at + kv, s.kv, s.d, 0), &plan);
    y = jot_reshape(jot_swap(y, 1, 2), jot_shape(x));
    char out[2 * JOT_NAME_SIZE];
    if (!name || net_length(name) >= JOT_NAME_SIZE)
        return net_leave(n, had, nn_poison(n->ctx)); /* said of in_proj */
    nn_put(nn_put(out, name), *name ? ".out_proj" : "out_proj");
    jot_Layer last = {.no_bias = how->no_bias, .weight = how->weight, .bias = zeros};
    return net_leave(n, had, jot_nn_linear(net, out, y, s.w, &last));
}

/* ---- blocks ---- */

typedef struct { jot_Net net; const jot_Block *how; int norms; } SeqBlock;
typedef jot_Var SeqPart(SeqBlock *s, jot_Var x);

static jot_Var
seq_self(SeqBlock *s, jot_Var x)
{
    return jot_nn_attention(s->net, "self_attn", x, jot_none(), &s->how->self);
}

static jot_Var
seq_cross(SeqBlock *s, jot_Var x)
{
    jot_MultiHead how = s->how->self;
    how.causal = false;
    how.rotary = 0;
    how.mask = s->how->memory_mask;
    return jot_nn_attention(s->net, "multihead_attn", x, s->how->memory, &how);
}

static jot_Var
seq_feed(SeqBlock *s, jot_Var x)
{
    int64_t w = jot_extent(x, 2), hidden = s->how->hidden ? s->how->hidden : 4 * w;
    jot_Var y = jot_nn_linear(s->net, "linear1", x, hidden, NULL);
    y = s->how->act ? s->how->act(y) : jot_relu(y);
    return jot_nn_linear(s->net, "linear2", jot_nn_dropout(s->net, y, s->how->dropout), w, NULL);
}

/* x and what a part makes of it, with the norm before the part or behind the sum */
static jot_Var
seq_beside(SeqBlock *s, jot_Var x, SeqPart *part)
{
    char norm[16];
    nn_put_int(nn_put(norm, "norm"), ++s->norms);
    bool first = s->how->norm_first;
    jot_Var y = part(s, first ? jot_nn_layer_norm(s->net, norm, x, NULL) : x);
    x = jot_add(x, jot_nn_dropout(s->net, y, s->how->dropout));
    return first ? x : jot_nn_layer_norm(s->net, norm, x, NULL);
}

jot_Var
jot_nn_block(jot_Net net, const char *name, jot_Var x, const jot_Block *how)
{
    SeqBlock s = {net, how, 0};
    jot_Ctx *ctx = net.state.ctx;
    if (!how)
        return jot_raise(ctx, JOT_EUSE, "block: how: a number of heads asked, none found");
    if (!nn_rank_is(ctx, x, 3, "block", "x", "(b, t, w)") || !jot_net_enter(net, name, -1))
        return nn_poison(ctx);
    Net *n = net_of(net, "block");
    int had = n->n;
    jot_push(ctx);
    x = seq_beside(&s, x, seq_self);
    if (nn_given(how->memory))
        x = seq_beside(&s, x, seq_cross);
    x = seq_beside(&s, x, seq_feed);
    jot_net_exit(net);
    return net_leave(n, had, x);
}
