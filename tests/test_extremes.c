/* tests/test_extremes.c - shapes at their ends, on every backend: extents of 0 everywhere, rank 16.
 * Each case is written with the shape it must have; where it has elements, they must be the
 * interpreter's. Constants that are equal but for their sign, 0 and -0, one after the other.
 *
 * Guards: ccode/ir/cost.c, ccode/ir/value.c, ccode/rewrite/merge.c, ccode/schedule/price.c,
 * ccode/schedule/share.c, ccode/schedule/touch.c, ops/index/index.c, ops/reduce_dims.c,
 * plan/known/key.c. */
#include <math.h>
#include "core.h"
#include "tests/test.h"

enum { MOST = 128, HIGH = 16 };
typedef struct { int line; jot_Var v; } Case;
typedef struct { int n; Case item[MOST]; } Cases;

static void
note(Cases *cases, int line, jot_Var v, jot_Ints shape)
{
    int k;

    CHECK(jot_ok(v), "line %d: %s", line, jot_message(v.ctx));
    if (!jot_ok(v)) {
        jot_clear(v.ctx);
        return;
    }
    CHECK(jot_rank(v) == shape.n, "line %d: rank %d", line, jot_rank(v));
    for (k = 0; k < shape.n && k < jot_rank(v); k++)
        CHECK(jot_extent(v, k) == shape.v[k], "line %d: extent %d of dimension %d", line,
              (int)jot_extent(v, k), k);
    cases->item[cases->n].line = line;
    cases->item[cases->n++].v = v;
}
#define IS(v, ...) note(cases, __LINE__, v, JOT_SHAPE(__VA_ARGS__))
#define IS_SCALAR(v) note(cases, __LINE__, v, jot_ints(0, NULL))

static void
zero_operators(jot_Ctx *c, Cases *cases)
{
    jot_Var z = jot_array(c, JOT_F32, JOT_SHAPE(0, 3), NULL);
    jot_Var y = jot_ones(c, JOT_F32, JOT_SHAPE(1, 3));
    jot_Var v = jot_array(c, JOT_F64, JOT_SHAPE(0), NULL);

    IS(jot_neg(z), 0, 3);
    IS(jot_add(z, y), 0, 3);
    IS(jot_where(jot_gt(z, y), z, y), 0, 3);
    IS(jot_cast(z, JOT_I8), 0, 3);
    IS(jot_clamp(z, 0, 1), 0, 3);
    IS(jot_iota(c, JOT_F32, JOT_SHAPE(0, 2), 0), 0, 2);
    IS(jot_arange(c, JOT_F32, 0, 1, 0), 0);
    IS(jot_uniform(c, JOT_F32, JOT_SHAPE(3, 0)), 3, 0);
    IS(jot_normal(c, JOT_BF16, JOT_SHAPE(0)), 0);
    IS(jot_sum(z, JOT_DIMS(0)), 3);
    IS(jot_sum(z, JOT_DIMS(1)), 0);
    IS_SCALAR(jot_prod(z, JOT_ALL_DIMS));
    IS(jot_mean(z, JOT_DIMS(0)), 3);
    IS(jot_max(z, JOT_DIMS(1)), 0);
    IS(jot_argmin(z, JOT_DIMS(1)), 0);
    IS(jot_any(z, JOT_DIMS(0)), 3);
    IS_SCALAR(jot_all(z, JOT_ALL_DIMS));
    IS(jot_reduce(JOT_BITAND, jot_cast(z, JOT_I16), JOT_KEEP(0)), 1, 3);
    IS(jot_reindex(z, JOT_SHAPE(2), JOT_INDEX("i0", "0")), 2);
    IS(jot_reindex_reduce(JOT_MAX, z, JOT_SHAPE(2), JOT_INDEX("i1")), 2);
    IS(jot_reindex_reduce(JOT_MEAN, z, JOT_SHAPE(2), JOT_INDEX("i1")), 2);
    IS(jot_broadcast_to(v, JOT_SHAPE(4, 0)), 4, 0);
    IS(jot_broadcast_to(y, JOT_SHAPE(0, 3)), 0, 3);
    IS(jot_broadcast(v, JOT_SHAPE(0, 2), JOT_INTS(1)), 0, 2);
}

static void
zero_forms(jot_Ctx *c, Cases *cases)
{
    jot_Var z = jot_array(c, JOT_F32, JOT_SHAPE(0, 3), NULL);
    jot_Var x = jot_iota(c, JOT_F32, JOT_SHAPE(2, 3), 1);
    jot_Var at = jot_array(c, JOT_I32, JOT_SHAPE(0), NULL);
    jot_Var two = jot_ones(c, JOT_I32, JOT_SHAPE(2));

    IS(jot_reshape(z, JOT_SHAPE(3, 0, 5)), 3, 0, 5);
    IS(jot_reshape(z, JOT_SHAPE(-1, 3)), 0, 3);
    IS(jot_transpose(z, JOT_INTS(1, 0)), 3, 0);
    IS(jot_slice(x, JOT_INTS(1, 1), JOT_INTS(1, 2), JOT_INTS()), 0, 1);
    IS(jot_slice(z, JOT_INTS(0, 0), JOT_INTS(5, 1), JOT_INTS(-1, 1)), 0, 1);
    IS(jot_pad(z, JOT_INTS(1, 0), JOT_INTS(1, 0), 7), 2, 3);
    IS(jot_pad(x, JOT_INTS(-1, 0), JOT_INTS(-1, 0), 7), 0, 3);
    IS(jot_flip(z, JOT_INTS(0)), 0, 3);
    IS(jot_tile(z, JOT_INTS(2, 2)), 0, 6);
    IS(jot_tile(x, JOT_INTS(0, 1)), 0, 3);
    IS(jot_unsqueeze(z, 1), 0, 1, 3);
    IS(jot_concat(JOT_VARS(z, x), 0), 2, 3);
    IS(jot_concat(JOT_VARS(z, z), 1), 0, 6);
    IS(jot_stack(JOT_VARS(z, z), 1), 0, 2, 3);
    IS(jot_take(x, at, 1), 2, 0);
    IS(jot_take(z, two, 0), 2, 3);
    IS(jot_one_hot(at, 3, JOT_F32), 0, 3);
    IS(jot_one_hot(two, 0, JOT_F32), 2, 0);
}

static void
zero_layers(jot_Ctx *c, Cases *cases)
{
    jot_Var z = jot_array(c, JOT_F32, JOT_SHAPE(0, 3), NULL);
    jot_Var w = jot_ones(c, JOT_F32, JOT_SHAPE(3, 2)), g[2], of[2];
    jot_Var at = jot_array(c, JOT_I32, JOT_SHAPE(0), NULL);
    jot_Var one = jot_ones(c, JOT_F32, JOT_SHAPE(3));
    jot_Var image = jot_array(c, JOT_F32, JOT_SHAPE(0, 2, 4, 4), NULL);
    jot_Var kernel = jot_ones(c, JOT_F32, JOT_SHAPE(3, 2, 3, 3));
    jot_Var mean = jot_zeros(c, JOT_F32, JOT_SHAPE(2));
    jot_Var var = jot_ones(c, JOT_F32, JOT_SHAPE(2));
    jot_Pool pool = {{2, 2}, {0, 0}, {0, 0}};

    IS(jot_matmul(z, w), 0, 2);
    IS(jot_matmul(jot_transpose(z, JOT_INTS(1, 0)), z), 3, 3);
    IS(jot_softmax(z, 0), 0, 3);
    IS(jot_log_softmax(z, 1), 0, 3);
    IS_SCALAR(jot_cross_entropy(z, at));
    IS(jot_linear(z, w, mean), 0, 2);
    IS(jot_layer_norm(z, one, one, 1e-5), 0, 3);
    IS(jot_conv2d(image, kernel, NULL), 0, 3, 2, 2);
    IS(jot_conv2d(jot_array(c, JOT_F32, JOT_SHAPE(1, 0, 4, 4), NULL),
                  jot_array(c, JOT_F32, JOT_SHAPE(3, 0, 3, 3), NULL), NULL), 1, 3, 2, 2);
    IS(jot_max_pool2d(image, &pool), 0, 2, 2, 2);
    IS(jot_avg_pool2d(image, &pool), 0, 2, 2, 2);
    IS(jot_instance_norm(image, 1e-5), 0, 2, 4, 4);
    IS(jot_batch_norm_eval(image, var, mean, mean, var, 1e-5), 0, 2, 4, 4);
    IS(jot_batch_norm_train(image, var, mean, 1e-5, 0.1, &mean, &var), 0, 2, 4, 4);
    of[0] = z = jot_param(c, JOT_F32, JOT_SHAPE(0, 3), NULL);
    of[1] = w = jot_param(c, JOT_F32, JOT_SHAPE(3, 2), NULL);
    jot_grad(jot_sum(jot_square(jot_matmul(z, w)), JOT_ALL_DIMS), jot_vars(2, of), g);
    IS(g[0], 0, 3);
    IS(g[1], 3, 2);
    jot_grad(jot_add(jot_prod(jot_softmax(z, 1), JOT_ALL_DIMS),
                     jot_sum(jot_max(z, JOT_DIMS(1)), JOT_ALL_DIMS)), jot_vars(2, of), g);
    IS(g[0], 0, 3);
    IS(g[1], 3, 2);
    of[0] = image;
    of[1] = kernel = jot_param(c, JOT_F32, JOT_SHAPE(3, 2, 3, 3), NULL);
    jot_grad(jot_sum(jot_max_pool2d(jot_conv2d(image, kernel, NULL), &pool), JOT_ALL_DIMS),
             jot_vars(2, of), g);
    IS(g[0], 0, 2, 4, 4);
    IS(g[1], 3, 2, 3, 3);
}

/* Extents 2, 1, 3, 1, 2, 1, 3, 1, ... */
static void
high_rank(jot_Ctx *c, Cases *cases)
{
    int64_t ext[HIGH], back[HIGH], order[HIGH];
    jot_Var x, t, flat, g, wrt[1];
    int k;

    for (k = 0; k < HIGH; k++) {
        ext[k] = k % 4 == 0 ? 2 : k % 4 == 2 ? 3 : 1;
        order[k] = HIGH - 1 - k;
    }
    for (k = 0; k < HIGH; k++)
        back[k] = ext[HIGH - 1 - k];
    x = jot_normal(c, JOT_F32, jot_ints(HIGH, ext));
    t = jot_transpose(x, jot_ints(HIGH, order));
    note(cases, __LINE__, t, jot_ints(HIGH, back));
    note(cases, __LINE__, jot_add(x, jot_transpose(t, jot_ints(HIGH, order))), jot_ints(HIGH, ext));
    note(cases, __LINE__, jot_flip(x, JOT_INTS(0, -2)), jot_ints(HIGH, ext));
    note(cases, __LINE__, jot_softmax(x, 2), jot_ints(HIGH, ext));
    note(cases, __LINE__, jot_cast(x, JOT_F16), jot_ints(HIGH, ext));
    ext[0]++;
    memset(back, 0, sizeof back);
    memset(order, 0, sizeof order);
    order[0] = 1;
    note(cases, __LINE__, jot_pad(x, jot_ints(HIGH, order), jot_ints(HIGH, back), 5),
         jot_ints(HIGH, ext));
    ext[0]--;
    IS(jot_sum(x, JOT_DIMS(0, 2, 4, 6, 8, 10, 12, 13, 15)), 1, 1, 1, 1, 1, 1, 3);
    IS_SCALAR(jot_max(t, JOT_ALL_DIMS));
    IS(jot_argmax(x, JOT_DIMS(0)), 1, 3, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 1, 3, 1);
    IS(jot_reshape(x, JOT_SHAPE(6, -1)), 6, 216);
    wrt[0] = x;
    flat = jot_mul(jot_reshape(x, JOT_SHAPE(-1)), jot_exp(jot_reshape(t, JOT_SHAPE(-1))));
    CHECK(jot_grad(jot_sum(flat, JOT_DIMS(0)), jot_vars(1, wrt), &g), "%s", jot_message(c));
    note(cases, __LINE__, g, jot_ints(HIGH, ext));
    CHECK(!jot_ok(jot_unsqueeze(x, 0)) && jot_error(c) == JOT_ESHAPE, "rank 17: %s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_take(x, jot_ones(c, JOT_I32, JOT_SHAPE(1, 1)), 0))
          && jot_error(c) == JOT_ESHAPE, "take of rank 17: %s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_one_hot(jot_cast(x, JOT_I32), 2, JOT_F32)) && jot_error(c) == JOT_ESHAPE,
          "one_hot of rank 17: %s", jot_message(c));
    jot_clear(c);
}

static void
build(jot_Ctx *c, Cases *cases)
{
    cases->n = 0;
    zero_operators(c, cases);
    zero_forms(c, cases);
    zero_layers(c, cases);
    high_rank(c, cases);
}

/* Kernels sum in another order than the interpreter. */
static bool
equal(jot_Var a, jot_Var b)
{
    int64_t n = jot_nelem(a), k;
    const float *p = jot_data(a), *q = jot_data(b);

    if (!p || !q)
        return false;
    if (jot_dtype(a) != JOT_F32)
        return !memcmp(p, q, (size_t)n * jot_dtype_nbytes(jot_dtype(a)));
    for (k = 0; k < n; k++)
        if (!(fabsf(p[k] - q[k]) <= 1e-5f * (1 + fabsf(p[k]))) && !(p[k] != p[k] && q[k] != q[k])
            && p[k] != q[k])
            return false;
    return true;
}

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    return jot_open(&config);
}

/* 1 / (x > 1 ? x : zero) of 0 */
static void
zeros(jot_Ctx *c, const char *backend)
{
    static const double none[3];
    int k;

    for (k = 0; k < 2; k++) {
        jot_Var x = jot_array(c, JOT_F64, JOT_SHAPE(3), none), one = jot_scalar(c, JOT_F64, 1), y;

        y = jot_where(jot_gt(x, one), x, jot_scalar(c, JOT_F64, k ? 0. : -0.));
        y = jot_sum(jot_div(one, y), JOT_ALL_DIMS);
        CHECK(jot_item(y) == (k ? INFINITY : -INFINITY), "%s: 1 / %s is %g", backend,
              k ? "0" : "-0", jot_item(y));
    }
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc", "opencl", "cuda"};
    static Cases is, want;
    jot_Ctx *oracle = open_on("interp"), *c;
    int b, k;

    build(oracle, &want);
    for (b = 0; b < 5; b++) {
        if (argc > 1 && strcmp(argv[1], backends[b]))
            continue;
        c = open_on(backends[b]);
        if (!c || jot_error(c)) {
            SKIP("backend %s: %s", backends[b], jot_message(c));
            jot_close(c);
            continue;
        }
        build(c, &is);
        for (k = 0; k < is.n && is.n == want.n; k++)
            CHECK(equal(is.item[k].v, want.item[k].v), "%s: line %d: %s", backends[b],
                  is.item[k].line, jot_message(c));
        zeros(c, backends[b]);
        CHECK(is.n == want.n && is.n > 60, "%d cases", is.n);
        jot_close(c);
    }
    jot_close(oracle);
    return DONE();
}
