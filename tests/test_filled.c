/* test_filled.c - attention over caches that are filled in part: the lengths are data, so one plan
 * and one compiled function serve them all; what is behind them is not read: values against a loop,
 * of drawn shapes, on all backends; loops that end with a short length; gradients; wrong arguments.
 *
 * Guards: ccode/lower/filled.c, nn/attention.c. */
#include "nn.h"
#include "ops/graph.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { ROUNDS = 24, MOST = 1 << 18 };

static uint64_t state = 11;

static int64_t
draw(int64_t lo, int64_t hi)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((state >> 33) % (uint64_t)(hi - lo + 1));
}

typedef struct { int64_t b, g, each, t, s, d; bool causal, turned; int64_t length[4]; } Case;

static float q[MOST], k[MOST], v[MOST], got[MOST];

/* Softmax of row i of head h over the columns that it sees, times v, column e. */
static void
naive(const Case *c, int64_t b, int64_t h, int64_t i, double *out)
{
    int64_t head = b * c->g + h / c->each, n = c->length[b] - (c->causal ? c->t - 1 - i : 0);
    const float *row = q + ((b * c->g * c->each + h) * c->t + i) * c->d;
    double sum = 0;

    for (int64_t e = 0; e < c->d; e++)
        out[e] = 0;
    for (int64_t j = 0; j < n; j++) {
        double score = 0, w;
        for (int64_t e = 0; e < c->d; e++)
            score += (double)row[e] * (double)k[c->turned ? (head * c->d + e) * c->s + j
                                                         : (head * c->s + j) * c->d + e];
        w = exp(score / sqrt((double)c->d));
        sum += w;
        for (int64_t e = 0; e < c->d; e++)
            out[e] += w * (double)v[(head * c->s + j) * c->d + e];
    }
    for (int64_t e = 0; e < c->d; e++)
        out[e] /= sum;
}

static double
compare(const Case *c)
{
    double worst = 0, out[128];
    int64_t heads = c->g * c->each;

    for (int64_t b = 0; b < c->b; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < c->t; i++) {
                const float *y = got + ((b * heads + h) * c->t + i) * c->d;
                naive(c, b, h, i, out);
                for (int64_t e = 0; e < c->d; e++)
                    worst = fabs(out[e] - (double)y[e]) <= worst ? worst
                                                                  : fabs(out[e] - (double)y[e]);
            }
    return worst;
}

static jot_Func
attention_of(jot_Ctx *ctx, const Case *c)
{
    jot_push(ctx);
    jot_Var a = jot_array(ctx, JOT_F32, JOT_SHAPE(c->b, c->g * c->each, c->t, c->d), NULL);
    jot_Var x = jot_array(ctx, JOT_F32, c->turned ? JOT_SHAPE(c->b, c->g, c->d, c->s)
                                                  : JOT_SHAPE(c->b, c->g, c->s, c->d), NULL);
    jot_Var y = jot_array(ctx, JOT_F32, JOT_SHAPE(c->b, c->g, c->s, c->d), NULL);
    jot_Var n = jot_array(ctx, JOT_I64, JOT_SHAPE(c->b), NULL);
    jot_Attention how = {.lengths = n, .causal = c->causal};
    jot_Func f = jot_compile(ctx, JOT_VARS(a, x, y, n),
                             JOT_VARS(jot_attention(a, c->turned ? jot_swap(x, 2, 3) : x, y,
                                                    &how)));
    jot_pop(ctx);
    return f;
}

static bool
call(jot_Func f, const Case *c)
{
    size_t rows = (size_t)(c->b * c->g * c->each * c->t * c->d) * sizeof(float);
    size_t cache = (size_t)(c->b * c->g * c->s * c->d) * sizeof(float);

    return jot_call(f, JOT_INS(JOT_IN(q, rows), JOT_IN(k, cache), JOT_IN(v, cache),
                               JOT_IN(c->length, (size_t)c->b * sizeof *c->length)),
                    JOT_OUTS(JOT_OUT(got, rows)));
}

static void
test_drawn(const char *backend, int rounds)
{
    jot_Config config = {.backend = backend, .deterministic = 1};
    jot_Ctx *ctx = jot_open(&config);

    if (jot_error(ctx)) {
        SKIP("%s: %s", backend, jot_message(ctx));
        jot_close(ctx);
        return;
    }
    for (int round = 0; round < rounds; round++) {
        Case c = {draw(1, 3), draw(1, 3), draw(1, 3), draw(0, 2) ? 1 : draw(2, 20), draw(33, 300),
                  8 * draw(1, 8), draw(0, 1), draw(0, 1), {0}};
        jot_Func f = attention_of(ctx, &c);
        for (int i = 0; i < MOST; i++)
            q[i] = (float)draw(-99, 99) / 50, k[i] = (float)draw(-99, 99) / 50,
            v[i] = (float)draw(-99, 99) / 50;
        for (int again = 0; again < 3; again++) {
            for (int b = 0; b < c.b; b++)
                c.length[b] = again == 0 ? c.s : draw(c.t, c.s);
            bool ok = call(f, &c);
            double worst = ok ? compare(&c) : 1;
            CHECK(worst < 1e-4, "%s, round %d: b %d g %d x %d t %d s %d d %d causal %d turned %d "
                  "length %d: off by %g; %s", backend, round, (int)c.b, (int)c.g, (int)c.each,
                  (int)c.t, (int)c.s, (int)c.d, c.causal, c.turned, (int)c.length[0], worst,
                  jot_message(ctx));
        }
        jot_func_free(f);
    }
    jot_close(ctx);
}

/* Sums over 1,024 columns of which 32 count end there, in one kernel, or two (where vectors are
 * short the scores are stored, all of them). */
static void
test_ends(void)
{
    jot_Config config = {.threads = 1, .cache_dir = "", .dump = "c", .hooks.log = keep_log};
    jot_Ctx *ctx = jot_open(&config);
    Case c = {1, 4, 2, 1, 1024, 64, false, true, {32}};
    jot_Func f;

    forget_log();
    f = attention_of(ctx, &c);
    CHECK(call(f, &c)
              && jot_stats(ctx).last_kernels <= 1u + (ctx->target.vector_nbytes < 64), "%d kernels; %s",
          (int)jot_stats(ctx).last_kernels, jot_message(ctx));
    CHECK(count_logged(" < to") >= 2 || !strcmp(jot_backend(ctx), "interp"), "loops end: %.3000s",
          logged);
    jot_func_free(f);
    jot_close(ctx);
}

static jot_Var
seen(void *user, jot_Vars in)
{
    (void)user;
    jot_Var n = jot_array(in.v[0].ctx, JOT_I64, JOT_SHAPE(2), (int64_t[]){3, 5});
    jot_Attention how = {.lengths = n, .causal = true};
    return jot_attention(in.v[0], in.v[1], in.v[2], &how);
}

static void
test_left(void)
{
    jot_Ctx *c = jot_open(NULL);
    double x[96];

    for (int i = 0; i < 96; i++)
        x[i] = sin(i * 1.7);
    jot_Vars in = JOT_VARS(jot_param(c, JOT_F64, JOT_SHAPE(2, 4, 2, 2), x),
                           jot_param(c, JOT_F64, JOT_SHAPE(2, 2, 6, 2), x + 32),
                           jot_param(c, JOT_F64, JOT_SHAPE(2, 2, 6, 2), x + 48));
    CHECK(jot_grad_check(seen, NULL, in, 1e-4, 1e-6), "%s", jot_message(c));
    jot_Attention how = {.lengths = jot_array(c, JOT_I64, JOT_SHAPE(3), NULL)};
    jot_attention(in.v[0], in.v[1], in.v[2], &how);
    CHECK(jot_error(c) == JOT_ESHAPE && strstr(jot_message(c), "lengths: (2) asked"), "%s",
          jot_message(c));
    jot_clear(c);
    how.lengths = jot_array(c, JOT_F32, JOT_SHAPE(2), NULL);
    jot_attention(in.v[0], in.v[1], in.v[2], &how);
    CHECK(jot_error(c) == JOT_EDTYPE, "%s", jot_message(c));
    jot_clear(c);
    how = (jot_Attention){.lengths = jot_array(c, JOT_I64, JOT_SHAPE(2), NULL), .dropout = 0.1};
    jot_attention(in.v[0], in.v[1], in.v[2], &how);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), "dropout"), "%s", jot_message(c));
    jot_close(c);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc", "opencl", "cuda"};

    for (int i = 0; i < 5; i++)
        if (argc < 2 || !strcmp(argv[1], backends[i]))
            test_drawn(backends[i], ROUNDS / (i == 0 ? 4 : i < 3 ? test_many(3, 2) : 8));
    if (argc < 2) {
        test_ends();
        test_left();
    }
    return DONE();
}
