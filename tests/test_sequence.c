/* test_sequence.c - attention, positions, embeddings and recurrent layers of nn.h against PyTorch's
 * values and gradients and against finite differences to second order, on the default backend and
 * on the interpreter; what is hidden; wrong arguments.
 *
 * Guards: nn/attention.c, nn/recurrent.c. */
#include "nn.h"
#include "tests/ref/sequences.h"
#include "tests/ref/cases.h"

static jot_Var
attention(const jot_Var *in, jot_Var mask, bool causal, double scale)
{
    jot_Attention how = {.mask = mask, .causal = causal, .scale = scale};
    return jot_attention(in[0], in[1], in[2], &how);
}

/* A mask with something in each of its 3 rows of 5. */
static jot_Var
attention_seen(const jot_Var *in)
{
    uint8_t seen[15];
    for (int k = 0; k < 15; k++)
        seen[k] = (k / 5 * 3 + k % 5) % 4 != 0;
    jot_Var mask = jot_array(in[0].ctx, JOT_BOOL, JOT_SHAPE(3, 5), seen);
    return attention(in, mask, false, 0);
}

static jot_Var
rotary(jot_Var x, int64_t n, bool neighbours)
{
    jot_Var at = jot_cast(jot_arange(x.ctx, JOT_F32, 2, 1, n), JOT_I32);
    return jot_rotary(x, at, 100, neighbours);
}

static jot_Var
embedding(jot_Var table)
{
    static const int64_t index[] = {1, 0, 3, 3, 2, 1};
    return jot_embedding(table, jot_array(table.ctx, JOT_I64, JOT_SHAPE(2, 3), index), 3);
}

typedef enum { RNN, RELU, GRU, LSTM } Kind;

/* Of states fill(17), fill(18); lengths a, b if a > 0; last: the last state, of lstm the cell. */
static jot_Var
recurrent(Kind kind, const jot_Var *in, bool reverse, int a, int b, bool last)
{
    jot_Ctx *ctx = in[0].ctx;
    jot_DType t = jot_dtype(in[0]);
    jot_Var lengths = jot_array(ctx, JOT_I32, JOT_SHAPE(2), (int32_t[]){a, b});
    jot_Cell cell = {in[1], in[2], in[3], in[4], a > 0 ? lengths : jot_none(), reverse,
                     kind == RELU};
    jot_Var h = ref_array(ctx, t, JOT_SHAPE(2, 5), 17, 1);
    jot_Var c = ref_array(ctx, t, JOT_SHAPE(2, 5), 18, 1);
    jot_Var y = kind == GRU ? jot_gru(in[0], &h, &cell)
              : kind == LSTM ? jot_lstm(in[0], &h, &c, &cell) : jot_rnn(in[0], &h, &cell);
    return last ? kind == LSTM ? c : h : y;
}

#define COMPOSITIONS(X) \
    X(attention, jot_attention(in[0], in[1], in[2], NULL)) \
    X(attention_scale, attention(in, jot_none(), false, 0.3)) \
    X(attention_causal, attention(in, jot_none(), true, 0)) \
    X(attention_causal_more, attention(in, jot_none(), true, 0)) \
    X(attention_mask, attention_seen(in)) \
    X(attention_bias, attention(in, in[3], false, 0)) \
    X(attention_grouped, jot_attention(in[0], in[1], in[2], NULL)) \
    X(attention_shared, jot_attention(in[0], in[1], in[2], NULL)) \
    X(rotary, rotary(in[0], 4, false)) \
    X(rotary_neighbours, rotary(in[0], 3, true)) \
    X(embedding, embedding(in[0])) \
    X(rnn, recurrent(RNN, in, false, 0, 0, false)) \
    X(rnn_relu, recurrent(RELU, in, false, 0, 0, false)) \
    X(gru, recurrent(GRU, in, false, 0, 0, false)) \
    X(gru_reverse, recurrent(GRU, in, true, 0, 0, false)) \
    X(gru_lengths, recurrent(GRU, in, false, 2, 4, false)) \
    X(gru_last, recurrent(GRU, in, false, 2, 4, true)) \
    X(lstm, recurrent(LSTM, in, false, 0, 0, false)) \
    X(lstm_lengths, recurrent(LSTM, in, false, 3, 1, false)) \
    X(lstm_last, recurrent(LSTM, in, false, 3, 1, true))
REF_BUILDS(COMPOSITIONS)

static void
check_sinusoids(void)
{
    jot_Ctx *c = open_ctx();
    const float *y = jot_data(jot_sinusoids(c, JOT_F32, 7, 6, 10000));
    double worst = 0;
    for (int k = 0; y && k < 42; k++) {
        double a = k / 6 / pow(10000, (k % 6 / 2) * 2 / 6.0), is = k % 2 ? cos(a) : sin(a);
        worst = fmax(worst, fabs(y[k] - is));
    }
    CHECK(y && worst < 1e-5, "off by %g: %s", worst, jot_message(c));
    jot_close(c);
}

/* In reverse and with lengths the state stays as it began until the last element comes; dropped
 * weights leave a mean of about what there was. */
static void
check_more(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var w[5], ones = jot_ones(c, JOT_F32, JOT_SHAPE(2, 4, 64, 64));
    jot_Var h = jot_zeros(c, JOT_F32, JOT_SHAPE(2, 5)), y;
    jot_Var lengths = jot_array(c, JOT_I64, JOT_SHAPE(2), (int64_t[]){1, 3});
    jot_Attention half = {.dropout = 0.5};
    static double v[64];
    double mean;

    w[0] = ref_array(c, JOT_F32, JOT_SHAPE(3, 2, 3), 1, 1);
    w[1] = ref_array(c, JOT_F32, JOT_SHAPE(3, 5), 2, 1);
    w[2] = ref_array(c, JOT_F32, JOT_SHAPE(5, 5), 3, 1);
    w[3] = w[4] = jot_zeros(c, JOT_F32, JOT_SHAPE(5));
    y = jot_rnn(w[0], &h, &(jot_Cell){w[1], w[2], w[3], w[4], lengths, true, false});
    CHECK(ref_read(y, v, 64) && v[0] != 0 && v[10] == 0 && v[14] == 0 && v[15] != 0, "%s: %g %g",
          jot_message(c), v[0], v[10]);
    ref_read(h, v + 32, 16);
    CHECK(!memcmp(v, v + 32, 10 * sizeof *v), "the last state is that of step 0");
    h = jot_zeros(c, JOT_F32, JOT_SHAPE(2, 5));
    y = jot_rnn(w[0], &h, &(jot_Cell){w[1], w[2], {0}, {0}, lengths, true, false});
    CHECK(ref_read(y, v + 32, 32) && !memcmp(v, v + 32, 30 * sizeof *v), "no biases: %s",
          jot_message(c));
    mean = jot_item(jot_mean(jot_attention(ones, ones, ones, &half), JOT_ALL_DIMS));
    CHECK(fabs(mean - 1) < 0.05, "mean %g", mean);
    jot_close(c);
}

/* What a layer needs for itself is gone with its scope. */
static void
check_left(void)
{
    jot_Ctx *c = open_ctx();
    jot_Var x = jot_param_of(ref_array(c, JOT_F32, JOT_SHAPE(3, 2, 4), 1, 1));
    jot_Var w = jot_param_of(ref_array(c, JOT_F32, JOT_SHAPE(4, 12), 2, 1));
    jot_Var b = jot_param_of(ref_array(c, JOT_F32, JOT_SHAPE(12), 3, 1));
    uint32_t nodes = 0;
    for (int k = 0; k < 4; k++) {
        jot_push(c);
        jot_Var h = jot_zeros(c, JOT_F32, JOT_SHAPE(2, 4));
        jot_data(jot_gru(x, &h, &(jot_Cell){w, w, b, b, {0}, false, false}));
        jot_pop(c);
        nodes = k == 1 ? jot_stats(c).live_nodes : nodes;
    }
    CHECK(jot_stats(c).live_nodes == nodes && !jot_error(c), "%u live nodes, then %u: %s", nodes,
          jot_stats(c).live_nodes, jot_message(c));
    jot_close(c);
}

static void
check_refused(void)
{
    jot_Ctx *c = ec = open_ctx();
    jot_Var x = jot_ones(c, JOT_F32, JOT_SHAPE(2, 4, 3, 6)), k = jot_narrow(x, 1, 0, 3);
    jot_Var m = jot_ones(c, JOT_BOOL, JOT_SHAPE(3, 4)), h = jot_ones(c, JOT_F32, JOT_SHAPE(4, 5));
    jot_Var s = jot_ones(c, JOT_F32, JOT_SHAPE(3, 4, 2)), i = jot_iota(c, JOT_I32, JOT_SHAPE(3), 0);
    jot_Attention how = {.mask = m};
    jot_Cell cell = {jot_ones(c, JOT_F32, JOT_SHAPE(2, 15)), h, h, h, {0}, false, false};

    refused(jot_attention(x, k, k, NULL), JOT_ESHAPE, "attention",
            "k: a number of heads asked that divides");
    refused(jot_attention(h, x, x, NULL), JOT_ESHAPE, "attention",
            "q: rank 4 (b, h, t, d) asked, 2 found");
    refused(jot_attention(x, x, k, NULL), JOT_ESHAPE, "attention",
            "v: (2, 4, 3, e) asked (as k)");
    refused(jot_attention(x, x, x, &how), JOT_ESHAPE, "attention",
            "mask: a shape asked that broadcasts");
    refused(jot_rotary(x, jot_narrow(i, 0, 0, 2), 10, false), JOT_ESHAPE, "rotary",
            "x: (..., 2, d) asked");
    refused(jot_rotary(jot_narrow(x, 3, 0, 5), i, 10, true), JOT_ESHAPE, "rotary",
            "an even width asked, 5");
    refused(jot_sinusoids(c, JOT_F32, 3, 4, 0), JOT_ERANGE, "sinusoids",
            "base: above 0 asked, 0 found");
    refused(jot_embedding(h, s, -1), JOT_EDTYPE, "embedding",
            "index: an integer dtype asked, f32 found");
    refused(jot_gru(s, &h, &cell), JOT_ESHAPE, "gru",
            "state: (5, 15) asked, (4, 5) found");
    refused(jot_gru(s, &h, NULL), JOT_EUSE, "gru", "a cell's weights asked, none found");
    refused(jot_rnn(s, NULL, &cell), JOT_EUSE, "rnn", "a state asked, none found");
    CHECK(jot_ok(h) && jot_extent(h, 1) == 5, "the state stays what it was");
    refused(jot_gru(jot_narrow(s, 0, 0, 0), &h, &cell), JOT_ESHAPE, "gru",
            "state");
    jot_close(c);
}

int
main(void)
{
    static const char *const on[] = {NULL, "interp"};
    for (int b = 0; b < 2; b++) {
        backend = on[b];
        if (!backend_opens())
            continue;
        check_references();
        check_sinusoids();
        check_more();
    }
    backend = NULL;
    check_differences();
    check_left();
    check_refused();
    return DONE();
}
