/* test_trace.c - jot_trace_nan names the operator that makes the first NaN or infinity, and what it
 * reads, or that it takes one from outside or of a constant; leaves what is infinite on purpose;
 * runs nothing that is pending.
 *
 * Guards: plan/trace/trace.c. */
#include "layer.h"
#include "tests/test.h"

static char said[8192];

static void
hear(void *ud, const char *text, size_t nbytes)
{
    (void)ud;
    snprintf(said, sizeof said, "%.*s", (int)nbytes, text);
}

static void *
grant(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (!new_nbytes)
        free(p);
    return new_nbytes ? realloc(p, new_nbytes) : NULL;
}

static jot_Ctx *
open_ctx(const char *backend)
{
    jot_Config config = {.hooks = {.realloc = grant, .log = hear}, .backend = backend,
                         .cache_dir = ""};
    said[0] = 0;
    return jot_open(&config);
}

/* y is traced: its text must begin with `comes` and hold the other two; NULL: nothing is found */
static void
traced(jot_Var y, const char *comes, const char *what, const char *reads)
{
    jot_Var found;
    said[0] = 0;
    found = jot_trace_nan(y.ctx, JOT_VARS(y));
    CHECK(jot_ok(found) == (comes != NULL) && !jot_error(y.ctx), "%s%s", jot_message(y.ctx), said);
    CHECK(!comes || (!strncmp(said, comes, strlen(comes)) && strstr(said, what)
                     && strstr(said, reads)), "%s, %s, %s asked, said:\n%s", comes, what, reads,
          said);
    CHECK(comes || !said[0], "%s", said);
}

static jot_Var
ramp(jot_Ctx *c, jot_DType dtype, jot_Ints shape, double from, double step)
{
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    jot_Var v = jot_reshape(jot_arange(c, JOT_F64, from, step, n), shape);
    return jot_param_of(jot_cast(v, dtype));
}

static void
check_operators(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    jot_Var x = ramp(c, JOT_F32, JOT_SHAPE(2, 3), -2, 1);
    jot_name(x, "slopes");
    traced(jot_exp(jot_scale(jot_log(jot_offset(x, 1)), 2)), "NaN", "log",
           "6 elements: 0 NaN, 0 infinite; the others from -1 to 4, mean 1.5");
    CHECK(strstr(said, "6 elements: 1 NaN, 1 infinite; the others from 0 to 1.38629")
          && strstr(said, "the first not a number at (0, 0)"), "%s", said);
    traced(jot_div(jot_offset(x, 3), jot_square(x)), "an infinity", "div", "from 0 to 9");
    traced(jot_tanh(x), NULL, NULL, NULL);
    jot_Var half = jot_cast(jot_scale(x, 300), JOT_F16);
    traced(jot_mul(half, half), "an infinity", "mul", "from -600 to 900");

    /* a space of products is not stored: the sum is told, with the factors */
    jot_Var a = ramp(c, JOT_F32, JOT_SHAPE(64, 64), 1e19, 1e16);
    traced(jot_matmul(a, a), "an infinity", "reduce", "(64, 64)");
    CHECK(!strstr(said, "(64, 64, 64)\n        "), "%s", said);

    float bad[2] = {1, 0};
    bad[1] = (float)NAN;
    traced(jot_sqrt(jot_array(c, JOT_F32, JOT_SHAPE(2), bad)), "NaN", "leaf", "1 NaN");
    jot_close(c);
}

/* NaN that is in nothing that is read: of places outside, and of constants. */
static void
check_taken(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    jot_Var x = ramp(c, JOT_F32, JOT_SHAPE(3, 4), 0, 0.5), nan, at, loss, dx;
    int32_t label[3] = {0, 9, 2};

    at = jot_array(c, JOT_I32, JOT_SHAPE(3), label);
    loss = jot_square(jot_cross_entropy(x, at));
    traced(loss, "NaN", "overflow NaN", "0 to 9");
    CHECK(strstr(said, "reindex") && strstr(said, "3 elements: 1 NaN")
          && strstr(said, "the first not a number at (1)"), "%s", said);
    CHECK(jot_grad(loss, JOT_VARS(x), &dx), "%s", jot_message(c));
    traced(dx, "NaN", "overflow NaN", "0 to 9");
    nan = jot_full(c, JOT_F32, JOT_SHAPE(), NAN);
    traced(jot_exp(jot_where(jot_gt(x, jot_scale(x, 0)), nan, x)), "NaN", "select", "constant NaN");
    traced(jot_exp(jot_where(jot_lt(x, jot_scale(x, 0)), nan, x)), NULL, NULL, NULL);
    traced(jot_exp(jot_scale(x, NAN)), "NaN", "mul", "constant NaN");
    traced(nan, "NaN", "const", "nan");
    label[1] = 3;
    at = jot_array(c, JOT_I32, JOT_SHAPE(3), label);
    traced(jot_cross_entropy(x, at), NULL, NULL, NULL);
    jot_close(c);
}

static void
check_on_purpose(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    jot_Attention causal = {.causal = true};
    jot_Var q = ramp(c, JOT_F32, JOT_SHAPE(1, 1, 4, 2), -1, 0.25), never;
    jot_PoolNd pool = {.size = {3, 3}, .pad = {1, 1}};
    traced(jot_attention(q, q, q, &causal), NULL, NULL, NULL);
    traced(jot_max_pool(ramp(c, JOT_F32, JOT_SHAPE(1, 2, 5, 5), -3, 1), &pool), NULL, NULL, NULL);
    never = jot_full(c, JOT_BOOL, JOT_SHAPE(), 0);
    causal.mask = never;
    traced(jot_attention(q, q, q, &causal), "NaN", "sub", "infinite");
    jot_close(c);
}

/* A step of training: assignments stay pending, and run afterwards as if nothing had happened. */
static void
check_step(const char *backend)
{
    static const jot_Training how = {.kind = JOT_SGD, .lr = 0.5};
    double got[2];
    for (int trace = 0; trace < 2; trace++) {
        jot_Ctx *c = open_ctx(backend);
        jot_Net m = jot_net(c, JOT_F32);
        jot_Var p = jot_net_param(m, "p", JOT_SHAPE(), &(jot_Init){JOT_INIT_CONSTANT, 3, 0});
        jot_Trainer t = jot_trainer(m, &how);
        jot_Var loss = jot_square(p);
        CHECK(jot_train_step(t, loss), "%s", jot_message(c));
        if (trace)
            traced(loss, NULL, NULL, NULL);
        CHECK(jot_trainer_counts(t).updates == 1, "one update");
        got[trace] = jot_item(p);
        CHECK(jot_train_step(t, jot_log(jot_sub(p, p))), "%s", jot_message(c));
        if (trace) { /* gradients that are pending are looked at, too */
            jot_Var found = jot_trace_nan(c, JOT_NONE_VARS);
            CHECK(jot_ok(found) && strstr(said, "infinity"), "%s%s", jot_message(c), said);
        }
        CHECK(jot_ok(p) && !isfinite(jot_item(p)), "%g", jot_item(p));
        jot_close(c);
    }
    CHECK(got[0] == got[1] && got[0] == 0, "%g, traced %g", got[0], got[1]);
}

int
main(void)
{
    for (int b = 0; b < 2; b++) {
        const char *backend = b ? "interp" : NULL;
        check_operators(backend);
        check_taken(backend);
        check_on_purpose(backend);
        check_step(backend);
    }
    jot_Var none = jot_trace_nan(NULL, JOT_NONE_VARS);
    CHECK(!none.ctx, "no context");
    return DONE();
}
