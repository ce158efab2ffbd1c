/* tests/test_success.c - a call that succeeds records no failure, and one that fails does: programs
 * are run with the n-th allocation refused, for every n, and after each call its answer and the
 * context's status must say the same. Rewrites that are given up for want of memory are no failure;
 * a scope that could not be opened is one for all that would have been made in it.
 *
 * Guards: ccode/build/invert.c, ccode/build/reduce.c, ccode/ir/view.c, ccode/rewrite/scatter.c,
 * ops/rewrite/batch.c, ops/rewrite/stack_sum.c, ops/rewrite/term.c, plan/eval.c,
 * plan/function/function.c, plan/function/make.c, plan/function/run.c, plan/layout/price.c,
 * plan/plan.c, plan/tier/rates.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"

static jot_Ctx *c;
static Heap heap;
static const char *program, *backend;
static long refused;
static bool going;

/* The answer of a call; the program goes on while all is well. */
static bool
said(bool ok, const char *call)
{
    CHECK(!c || ok == !jot_error(c), "%s on %s, allocation %ld refused: %s %s, but the status is "
          "%d: %s", program, backend, refused, call, ok ? "succeeded" : "failed", jot_error(c),
          jot_message(c));
    going = going && ok && !jot_error(c);
    return going;
}

static jot_Var
seen(jot_Var v, const char *call)
{
    said(jot_ok(v), call);
    return v;
}

/* A call, if all before went well. */
#define V(call) (going ? seen(call, #call) : (jot_Var){0})
#define DO(call) (void)(going && said(call, #call))

static jot_Var
input(jot_Ints shape)
{
    static const float zeros[512];

    return V(jot_array(c, JOT_F32, shape, zeros));
}

static void
graded(jot_Var y, jot_Var x)
{
    jot_Var g;

    DO(jot_grad(V(jot_sum(y, JOT_ALL_DIMS)), JOT_VARS(x), &g));
    DO(jot_run(c, JOT_VARS(y, g)));
}

/* ---- programs ------------------------------------------------------------------------------- */

/* Reductions that become reindexes, or reductions into a part. */
static void
maps(void)
{
    jot_Var x = input(JOT_SHAPE(6, 8)), y, z;

    y = V(jot_slice(x, JOT_INTS(1, 2), JOT_INTS(3, 4), JOT_INTS(1, 1)));
    y = V(jot_flip(y, JOT_INTS(1)));
    z = V(jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(50), JOT_INDEX("i0*8+i1")));
    DO(jot_run(c, JOT_VARS(z)));
    z = V(jot_reindex_reduce(JOT_ADD, y, JOT_SHAPE(40, 9), JOT_INDEX("i0+7", "i1/2")));
    DO(jot_run(c, JOT_VARS(z)));
    y = V(jot_concat(JOT_VARS(y, V(jot_neg(y)), V(jot_exp(y))), 1));
    graded(V(jot_pad(V(jot_tanh(y)), JOT_INTS(1, 0), JOT_INTS(0, 2), 0)), x);
}

static void
folds(void)
{
    jot_Var x = input(JOT_SHAPE(4, 5)), y;

    y = V(jot_mul(V(jot_offset(V(jot_scale(x, 2)), 0)), V(jot_ones(c, JOT_F32, JOT_SHAPE(5)))));
    y = V(jot_pow(y, V(jot_full(c, JOT_F32, JOT_SHAPE(), 2))));
    y = V(jot_cast(V(jot_cast(y, JOT_F64)), JOT_F32));
    y = V(jot_where(V(jot_gt(y, x)), y, V(jot_zeros(c, JOT_F32, JOT_SHAPE()))));
    graded(V(jot_take(y, V(jot_arange(c, JOT_I32, 0, 1, 3)), 0)), x);
}

static void
network(void)
{
    jot_Pool pool = {{2, 2}, {2, 2}, {0, 0}};
    jot_Var x = input(JOT_SHAPE(2, 2, 6, 6)), w = input(JOT_SHAPE(2, 2, 3, 3)), y;

    y = V(jot_max_pool2d(V(jot_conv2d(x, w, NULL)), &pool));
    y = V(jot_softmax(V(jot_reshape(V(jot_gelu(y)), JOT_SHAPE(2, 8))), 1));
    y = V(jot_matmul(y, V(jot_swap(y, 0, 1))));
    graded(V(jot_instance_norm(V(jot_reshape(y, JOT_SHAPE(1, 1, 2, 2))), 1e-5)), w);
}

/* Equal cells, products of slices, sums of products: rewritten before gradients and plans. */
static void
cells(void)
{
    jot_Var x = input(JOT_SHAPE(5, 3, 4)), w = input(JOT_SHAPE(4, 4)), h = input(JOT_SHAPE(3, 4));

    for (int k = 0; k < 5; k++) {
        jot_Var at = V(jot_slice(x, JOT_INTS(k, 0, 0), JOT_INTS(k + 1, 3, 4), JOT_INTS(1, 1, 1)));

        at = V(jot_matmul(V(jot_reshape(at, JOT_SHAPE(3, 4))), w));
        h = V(jot_tanh(V(jot_add(at, V(jot_matmul(h, w))))));
    }
    graded(h, w);
}

static void
trained(void)
{
    jot_Var p[2], x = input(JOT_SHAPE(4, 3)), y, g[2];
    jot_Optim o;

    p[0] = V(jot_param(c, JOT_F32, JOT_SHAPE(3, 4), NULL));
    p[1] = V(jot_param(c, JOT_F32, JOT_SHAPE(4), NULL));
    if (!going)
        return;
    o = jot_adam(jot_vars(2, p), .1, .9, .99, 1e-8);
    said(jot_optim_ok(o), "jot_adam");
    y = V(jot_mse(V(jot_linear(x, p[0], p[1])), V(jot_zeros(c, JOT_F32, JOT_SHAPE(4, 4)))));
    DO(jot_grad(y, jot_vars(2, p), g));
    DO(jot_step(o, jot_vars(2, g)));
    DO(jot_run(c, JOT_VARS(y)));
}

/* A scope that is refused: what would have been made in it is not. */
static void
scopes(void)
{
    jot_Var x = input(JOT_SHAPE(3)), p = V(jot_param(c, JOT_F32, JOT_SHAPE(3), NULL)), y;
    jot_Optim o;

    if (!going)
        return;
    o = jot_sgd(JOT_VARS(p), .1, 0, 0);
    said(jot_optim_ok(o), "jot_sgd");
    for (int k = 0; k < 20; k++)
        jot_push(c);
    if (going && jot_error(c)) { /* some push */
        CHECK(!jot_ok(jot_add(x, x)) && !jot_step(o, JOT_VARS(x)), "%ld: made in no scope",
              refused);
        jot_clear(c);
        CHECK(!jot_ok(jot_add(x, x)) && jot_error(c), "%ld: made in no scope", refused);
    }
    going = going && !jot_error(c);
    y = V(jot_add(x, x));
    DO(jot_step(o, JOT_VARS(x)));
    y = V(jot_mul(y, y));
    for (int k = 0; k < 20; k++)
        jot_pop(c);
    DO(jot_run(c, JOT_NONE_VARS));
    jot_clear(c);
    heap.countdown = 0;
    CHECK(jot_ok(jot_add(x, x)), "%ld: the scopes have ended", refused);
}

static void
functions(void)
{
    static float in[12], out[12];
    jot_Var x = input(JOT_SHAPE(4, 3)), p = V(jot_param(c, JOT_F32, JOT_SHAPE(3), NULL)), y, z;
    jot_Func f;

    y = V(jot_mul(V(jot_add(x, p)), x));
    DO(jot_assign(p, V(jot_offset(p, 1))));
    if (!going)
        return;
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    said(jot_func_ok(f), "jot_compile");
    for (int k = 0; k < 2; k++) {
        DO(jot_call(f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out))));
        DO(jot_call_vars(f, JOT_VARS(x), &z));
    }
}

static void
got(void *ud, const jot_Tensor *value)
{
    (void)ud, (void)value;
}

static void
evaluated(void)
{
    jot_Var x = input(JOT_SHAPE(4, 3)), y = V(jot_exp(x));

    DO(jot_fetch(y, got, NULL));
    DO(jot_poll(c));
    DO(jot_data(V(jot_sum(y, JOT_DIMS(0)))) != NULL);
    DO(jot_set(x, NULL, 12 * sizeof(float)));
    DO(jot_assign_all(JOT_VARS(x, y), JOT_VARS(V(jot_neg(y)), V(jot_neg(x)))));
    DO(jot_print_graph(c, JOT_VARS(x)));
    y = V(jot_sum(x, JOT_ALL_DIMS));
    DO(!isnan(jot_item(y)));
}

/* ---- every n -------------------------------------------------------------------------------- */

static const struct { const char *name; void (*run)(void); } programs[] = {
    {"maps", maps}, {"folds", folds}, {"network", network}, {"cells", cells},
    {"trained", trained}, {"scopes", scopes}, {"functions", functions}, {"evaluated", evaluated},
};

/* The n-th allocation refused, or all from there on. False: it never came to it. */
static bool
run_refused(int k, long n, bool onwards)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .give_back = 1};
    bool met;

    memset(&heap, 0, sizeof heap);
    heap.onwards = onwards;
    config.hooks.realloc = heap_realloc;
    config.hooks.ud = &heap;
    config.hooks.log = NULL;
    config.threads = 1;
    c = jot_open(&config);
    if (!c || jot_error(c)) {
        jot_close(c);
        return false;
    }
    program = programs[k].name;
    refused = n;
    heap.countdown = n;
    going = true;
    programs[k].run();
    met = heap.refused > 0;
    heap.countdown = 0;
    CHECK(met || going, "%s on %s: %s", program, backend, jot_message(c));
    jot_close(c);
    CHECK(!heap.live, "%s, allocation %ld refused: %zu bytes left", program, n, heap.live);
    return met;
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc"};

    for (int b = 0; b < 2; b++)
        for (int k = 0; k < (int)(sizeof programs / sizeof *programs); k++) {
            long n = 1;

            backend = backends[b];
            if (argc > 1 && strcmp(argv[1], programs[k].name))
                continue;
            while (run_refused(k, n, false) && run_refused(k, n, true))
                n += 1 + n / (b ? test_many(20, 40) : test_many(100, 200));
            if (argc > 1)
                printf("%s on %s: %ld allocations\n", programs[k].name, backend, n - 1);
        }
    return DONE();
}
