/* tests/test_deep.c - values that are used twice by what is used twice, sixty deep, in every place
 * of a kernel: before windows, in sums, beside, before and behind contractions, as index, as
 * condition, and in gradients. A walk over values without marks would take 2^60 steps: that a case
 * ends at all is the test, and its values against the interpreter's.
 *
 * Guards: ccode/ir/value.c, ccode/ir/sign.c, ccode/schedule/share.c,
 * ccode/schedule/touch.c. */
#include "core.h"
#include "tests/test.h"

enum { DEEP = 60, MOST = 4 };

static jot_Ctx *
open_on(const char *backend, const char *schedule)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.schedule = schedule;
    config.cache_dir = "";
    config.threads = 2;
    return jot_open(&config);
}

/* Of -1, 0 and 1: what stays among them however often it is multiplied. */
static jot_Var
drawn(jot_Ctx *c, jot_DType dtype, jot_Ints shape, int salt)
{
    static float v[1 << 15];
    int64_t n = 1;

    for (int i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((i * 7919 + salt) % 29 % 3) - 1;
    return jot_cast(jot_array(c, JOT_F32, shape, v), dtype);
}

/* ---- chains --------------------------------------------------------------------------------- */

typedef jot_Var Link(jot_Var x, jot_Var y);

static jot_Var
squared(jot_Var x, jot_Var y)
{
    (void)y;
    return jot_mul(x, x);
}

static jot_Var
turned(jot_Var x, jot_Var y)
{
    (void)y;
    return jot_mul(x, jot_neg(x));
}

static jot_Var
larger(jot_Var x, jot_Var y)
{
    (void)y;
    return jot_maximum(x, jot_neg(x));
}

static jot_Var
chosen(jot_Var x, jot_Var y)
{
    return jot_where(jot_gt(x, y), x, jot_neg(x));
}

/* Of integers and bools, too: x - (x + 1) y is of -1, 0 and 1 where y is 0. */
static jot_Var
mixed(jot_Var x, jot_Var y)
{
    return jot_sub(x, jot_mul(jot_mul(x, x), jot_sub(x, y)));
}

static jot_Var
chain(jot_Var x, Link *link)
{
    jot_Var y = jot_scale(x, 0);

    for (int i = 0; i < DEEP; i++)
        x = link(x, y);
    return x;
}

/* ---- places --------------------------------------------------------------------------------- */

typedef int Place(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out);

static int
graded(jot_Var x, jot_Var y, jot_Var *out)
{
    out[0] = y;
    jot_grad(jot_sum(jot_cast(y, JOT_F32), JOT_ALL_DIMS), JOT_VARS(x), &out[1]);
    return 2;
}

static int
plain(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(5, 40), 1);

    return graded(x, chain(x, link), out);
}

static int
summed(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(5, 40), 1);

    return graded(x, chain(jot_sign(jot_sum(chain(x, link), JOT_DIMS(1))), link), out);
}

static int
spread(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(5, 40), 1);

    out[0] = jot_variance(chain(x, link), JOT_DIMS(1));
    out[1] = jot_softmax(chain(x, link), 1);
    out[2] = jot_argmax(chain(x, link), JOT_DIMS(1));
    return 3;
}

static jot_Pool
pool_of(int size, int stride, int pad)
{
    jot_Pool pool;

    memset(&pool, 0, sizeof pool);
    pool.size[0] = pool.size[1] = size;
    pool.stride[0] = pool.stride[1] = stride;
    pool.pad[0] = pool.pad[1] = pad;
    return pool;
}

static int
pooled(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(1, 2, 20, 64), 1);
    jot_Pool pool = pool_of(3, 2, 1);

    return graded(x, jot_max_pool2d(chain(x, link), &pool), out);
}

static int
averaged(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(1, 2, 20, 64), 1), y;
    jot_Pool pool = pool_of(3, 3, 1);

    y = jot_avg_pool2d(chain(x, link), &pool);
    return graded(x, jot_mul(y, chain(drawn(c, dtype, jot_shape(y), 2), link)), out);
}

static int
product(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(40, 48), 1), w = drawn(c, dtype, JOT_SHAPE(48, 36), 2);

    return graded(x, chain(jot_sign(jot_matmul(chain(x, link), chain(w, link))), link), out);
}

static int
concurrent(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(40, 48), 1), w = drawn(c, dtype, JOT_SHAPE(48, 36), 2);

    return graded(x, jot_add(jot_matmul(x, w), chain(drawn(c, dtype, JOT_SHAPE(40, 36), 3), link)),
                  out);
}

static int
attended(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var q = drawn(c, dtype, JOT_SHAPE(2, 40, 16), 1),
            k = drawn(c, dtype, JOT_SHAPE(2, 16, 40), 2);
    jot_Var v = drawn(c, dtype, JOT_SHAPE(2, 40, 16), 3);
    jot_Var p = jot_softmax(chain(jot_sign(jot_matmul(chain(q, link), k)), link), 2);

    out[0] = jot_matmul(p, v);
    return 1;
}

static int
convolved(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(1, 8, 14, 14), 1),
            w = drawn(c, dtype, JOT_SHAPE(8, 8, 3, 3), 2);
    jot_Conv conv;

    memset(&conv, 0, sizeof conv);
    conv.pad[0] = conv.pad[1] = 1;
    return graded(x, chain(jot_sign(jot_conv2d(chain(x, link), chain(w, link), &conv)), link), out);
}

static int
depthwise(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(1, 8, 14, 14), 1),
            w = drawn(c, dtype, JOT_SHAPE(8, 1, 3, 3), 2);
    jot_Conv conv;

    memset(&conv, 0, sizeof conv);
    conv.pad[0] = conv.pad[1] = 1;
    conv.groups = 8;
    return graded(x, chain(jot_sign(jot_conv2d(chain(x, link), chain(w, link), &conv)), link), out);
}

static int
normalised(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(2, 8, 14, 14), 1),
            w = drawn(c, dtype, JOT_SHAPE(8, 8, 3, 3), 2);
    jot_Var one = drawn(c, dtype, JOT_SHAPE(8), 3), y;
    jot_Conv conv;

    memset(&conv, 0, sizeof conv);
    conv.pad[0] = conv.pad[1] = 1;
    y = chain(jot_sign(jot_conv2d(x, w, &conv)), link);
    out[0] = jot_batch_norm_train(y, one, one, 1e-3, 0.1, NULL, NULL);
    return 1;
}

static int
gathered(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(30, 16), 1);
    jot_Var at = chain(drawn(c, JOT_I32, JOT_SHAPE(20), 2), link);

    return graded(x, jot_take(chain(x, link), jot_offset(at, 5), 0), out);
}

static int
asked(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(1, 2, 20, 64), 1);
    jot_Var ask = chain(drawn(c, dtype, JOT_SHAPE(1, 2, 20, 64), 2), link);
    jot_Pool pool = pool_of(3, 2, 1);

    ask = jot_where(jot_gt(ask, jot_scale(ask, 0)), x, jot_neg(x));
    return graded(x, jot_max_pool2d(ask, &pool), out);
}

static int
joined(jot_Ctx *c, Link *link, jot_DType dtype, jot_Var *out)
{
    jot_Var x = drawn(c, dtype, JOT_SHAPE(5, 40), 1), y = chain(x, link);

    return graded(x, jot_concat(JOT_VARS(y, jot_flip(y, JOT_INTS(1)), chain(y, link)), 0), out);
}

/* ---- checks --------------------------------------------------------------------------------- */

static const struct { const char *name; Link *link; } links[] = {
    {"squared", squared}, {"turned", turned}, {"larger", larger}, {"chosen", chosen},
    {"mixed", mixed},
};
static const struct { const char *name; Place *place; } places[] = {
    {"plain", plain}, {"summed", summed}, {"spread", spread}, {"pooled", pooled},
    {"averaged", averaged}, {"product", product}, {"beside", concurrent}, {"attended", attended},
    {"convolved", convolved}, {"depthwise", depthwise}, {"normalised", normalised},
    {"gathered", gathered}, {"asked", asked}, {"joined", joined},
};

/* Gradients double with every link: what has left the floats says nothing. */
static bool
alike(double x, double y)
{
    return fabs(x - y) <= 1e-2 * (1 + fabs(y)) || !(fabs(y) < 1e30);
}

static void
compare(jot_Var got, jot_Var want, const char *what)
{
    static double x[1 << 15], y[1 << 15];
    int64_t n = jot_nelem(got), bad = 0;
    bool ok = jot_copy(jot_cast(got, JOT_F64), x, (size_t)n * sizeof *x)
        && jot_copy(jot_cast(want, JOT_F64), y, (size_t)n * sizeof *y);
    for (int64_t i = 0; ok && i < n; i++)
        bad += !alike(x[i], y[i]);
    CHECK(ok && n == jot_nelem(want) && bad == 0, "%s: %d of %d differ", what, (int)bad, (int)n);
}

static void
check(size_t place, size_t link, jot_DType dtype, const char *schedule)
{
    jot_Ctx *c = open_on("tcc", schedule), *ref = open_on("interp", NULL);
    jot_Var got[MOST], want[MOST];
    char what[80];
    int n = places[place].place(c, links[link].link, dtype, got);

    places[place].place(ref, links[link].link, dtype, want);
    sprintf(what, "%s, %s, %s, %s", places[place].name, links[link].name, jot_dtype_name(dtype),
            schedule ? schedule : "");
    CHECK(jot_run(c, jot_vars(n, got)), "%s: %s", what, jot_message(c));
    CHECK(jot_run(ref, jot_vars(n, want)), "%s: %s", what, jot_message(ref));
    for (int i = 0; i < n; i++)
        compare(got[i], want[i], what);
    jot_close(c);
    jot_close(ref);
}

int
main(void)
{
    jot_Ctx *c = open_on("tcc", NULL);
    bool there = !jot_error(c);
    char schedule[32];

    if (!there)
        SKIP("%s", jot_message(c));
    jot_close(c);
    for (size_t p = 0; there && p < sizeof places / sizeof *places; p++)
        for (size_t l = 0; l < sizeof links / sizeof *links; l++) {
            check(p, l, JOT_F32, NULL);
            check(p, l, JOT_BF16, NULL);
            sprintf(schedule, "random:%d", (int)(p * 5 + l));
            check(p, l, JOT_F32, schedule);
        }
    return DONE();
}
