/* tests/test_scatter.c - sums at places that are data begin with what is added to them: drawn ones
 * of every dtype and operator, places that repeat and lie outside, what else reads them, against the
 * interpreter to the bit, under each policy, in drawn schedules, by each number of threads; which are
 * one kernel and which are not; in place; gradients.
 *
 *     test_scatter [BACKEND]      that one, in fewer of these ways
 *
 * Guards: ccode/build/reduce.c, ccode/emit/alias.c, ccode/rewrite/partial.c,
 * ccode/rewrite/scatter.c, fuse/join.c, fuse/nest.c, fuse/reward.c, plan/donate.c. */
#include "core.h"
#include "nn.h"
#include "tests/test.h"

static uint64_t state = 11;

static int64_t
draw(int64_t lo, int64_t hi)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((state >> 33) % (uint64_t)(hi - lo + 1));
}

/* ---- what is drawn ------------------------------------------------------------------------- */

enum { MOST = 24 * 40 * 6 };

typedef enum {
    USE_PLAIN,     /* x + sums */
    USE_TURNED,    /* sums + x */
    USE_WORK,      /* what is computed of x, spread out */
    USE_NUMBER,    /* a number + sums */
    USE_ASKED,     /* the sums are asked for, too */
    USE_TWICE,     /* something else reads them */
    USE_ON,        /* the result is read where it is computed */
    USE_LATER,     /* ... and by another nest */
    USE_SIBLING,   /* other sums of the same terms are what is added */
    USE_CHAIN,     /* ... of others */
    USE_BEFORE,    /* sums of the same terms at other places, some behind those that begin */
    USE_OTHER,     /* another operator */
    USES
} Use;

typedef struct {
    Use use;
    jot_ReduceOp op;
    jot_DType dtype;
    int rank;                         /* 1 to 3 */
    int64_t rows, ext[2], terms, outer;
    double x[MOST], y[MOST], z[MOST];
    int64_t at[64];
} Case;

static void
draw_case(Case *p)
{
    static const jot_ReduceOp ops[] = {JOT_ADD, JOT_ADD, JOT_MAX, JOT_MIN, JOT_MUL};
    static const jot_DType dtypes[] = {JOT_F32, JOT_F32, JOT_F64, JOT_I32, JOT_I64,
                                       JOT_U8, JOT_I16, JOT_F16, JOT_BF16};
    bool outside = draw(0, 2) == 0;
    int64_t few;

    p->use = (Use)draw(0, USES - 1);
    p->op = ops[draw(0, 4)];
    p->dtype = dtypes[draw(0, 8)];
    p->rank = (int)draw(1, 3);
    p->rows = draw(0, 15) ? draw(1, 24) : 0;
    p->ext[0] = p->rank > 1 ? draw(1, 40) : 1;
    p->ext[1] = p->rank > 2 ? draw(1, 6) : 1;
    p->terms = draw(0, 9) ? draw(1, 24) : 0;
    few = p->rows && draw(0, 1) ? draw(1, p->rows) : p->rows;
    for (int i = 0; i < 64; i++)
        p->at[i] = outside ? draw(-3, p->rows + 2) : few ? draw(0, few - 1) : 0;
    for (int i = 0; i < MOST; i++) { /* whole, and few bits: exact in each dtype */
        p->x[i] = p->op == JOT_MUL ? (double)draw(1, 2) : (double)draw(0, 3);
        p->y[i] = p->op == JOT_MUL ? 1 + (double)(draw(0, 5) == 0) : (double)draw(0, 1);
        p->z[i] = (double)draw(1, 2);
    }
    if (p->dtype >= JOT_F16 && p->op != JOT_MUL && draw(0, 3) == 0)
        p->y[draw(0, 30)] = p->x[draw(0, 30)] = NAN;
}

static jot_Var
leaf(jot_Ctx *c, const Case *p, int64_t first, const double *v)
{
    int64_t ext[3] = {first, p->ext[0], p->ext[1]};
    jot_Var x = jot_cast(jot_array(c, JOT_F64, jot_ints(p->rank, ext), v), p->dtype);

    jot_data(x);
    return x;
}

static jot_Var
join(jot_ReduceOp op, jot_Var a, jot_Var b)
{
    return op == JOT_ADD ? jot_add(a, b) : op == JOT_MUL ? jot_mul(a, b)
         : op == JOT_MAX ? jot_maximum(a, b) : jot_minimum(a, b);
}

static jot_Var
sums_at(jot_Ctx *c, const Case *p, jot_Var y, const int64_t *places)
{
    static const char *const index[3] = {"@e0(i0)", "i1", "i2"};
    int64_t ext[3] = {p->rows, p->ext[0], p->ext[1]};
    jot_Strs map = {p->rank, index};
    jot_Var at = jot_array(c, JOT_I64, JOT_SHAPE(p->terms), places);

    return jot_reindex_reduce_ex(p->op, y, jot_ints(p->rank, ext), map, JOT_NONE_STRS,
                                 JOT_VARS(at));
}

static jot_Var
sums(jot_Ctx *c, const Case *p, jot_Var y)
{
    return sums_at(c, p, y, p->at);
}

/* Up to three results. */
static int
build(jot_Ctx *c, const Case *p, jot_Var *out)
{
    jot_Var x = leaf(c, p, p->rows, p->x), y = leaf(c, p, p->terms, p->y);
    jot_Var r = sums(c, p, y), three = jot_cast(jot_full_int(c, JOT_I32, JOT_SHAPE(), 3), p->dtype);

    switch (p->use) {
    case USE_PLAIN: out[0] = join(p->op, x, r); return 1;
    case USE_TURNED: out[0] = join(p->op, r, x); return 1;
    case USE_WORK:
        x = jot_add(jot_narrow(x, 0, 0, p->rows > 0), jot_mul(leaf(c, p, p->rows, p->z), x));
        out[0] = join(p->op, x, r);
        return 1;
    case USE_NUMBER:
        out[0] = join(p->op, jot_cast(jot_full_int(c, JOT_I32, jot_shape(x), 2), p->dtype), r);
        return 1;
    case USE_ASKED: out[0] = join(p->op, x, r), out[1] = r; return 2;
    case USE_TWICE: out[0] = join(p->op, join(p->op, x, jot_mul(r, three)), r); return 1;
    case USE_ON: out[0] = jot_mul(out[1] = join(p->op, x, r), three); return (int)(p->rows % 2) + 1;
    case USE_LATER:
        out[0] = join(p->op, x, r);
        out[1] = jot_max(out[0], JOT_DIMS(0));
        out[2] = jot_mul(out[0], leaf(c, p, p->rows, p->z));
        return p->rows ? 3 : 1;
    case USE_SIBLING:
        out[0] = join(p->op, sums(c, p, jot_mul(y, leaf(c, p, p->terms, p->z))), r);
        return 1;
    case USE_CHAIN:
        out[0] = join(p->op, join(p->op, x, sums(c, p, leaf(c, p, p->terms, p->z))), r);
        return 1;
    case USE_BEFORE:
        out[0] = join(p->op, x, r);
        out[1] = sums_at(c, p, y, p->at + 7);
        out[2] = jot_mul(sums_at(c, p, y, p->at + 9), three);
        return 3;
    default: out[0] = jot_sub(x, r); return 1;
    }
}

static bool
same(const Case *p, const void *a, const void *b, int64_t n)
{
    for (int64_t i = 0; a && b && i < n; i++) {
        double x = p->dtype == JOT_F32 ? ((const float *)a)[i] : ((const double *)a)[i];
        double y = p->dtype == JOT_F32 ? ((const float *)b)[i] : ((const double *)b)[i];

        if (x != y && !(isnan(x) && isnan(y)))
            return false;
    }
    return a && b;
}

static void
compare(Case *p, jot_Ctx *c, jot_Ctx *oracle, const char *how, int round)
{
    jot_Var got[3], want[3];
    int n;

    jot_push(c);
    jot_push(oracle);
    n = build(c, p, got);
    build(oracle, p, want);
    jot_run(c, jot_vars(n, got));
    for (int k = 0; k < n; k++) {
        jot_DType dtype = p->dtype;
        int64_t nelem = jot_nelem(got[k]);
        bool ok;

        p->dtype = p->dtype == JOT_F32 ? JOT_F32 : JOT_F64;
        ok = same(p, jot_data(jot_cast(got[k], p->dtype)), jot_data(jot_cast(want[k], p->dtype)),
                  nelem);
        p->dtype = dtype;
        CHECK(ok, "%s, round %d: use %d, op %d, %s, result %d: %s %s", how, round, (int)p->use,
              (int)p->op, jot_dtype_name(dtype), k, jot_message(c), jot_message(oracle));
        jot_clear(c);
    }
    jot_pop(c);
    jot_pop(oracle);
}

static const jot_Config ways[] = {
    {.backend = "cpu"},
    {.backend = "cpu", .policy = "paper", .threads = 2},
    {.backend = "cpu", .policy = "none"},
    {.backend = "tcc", .threads = 2},
    {.backend = "tcc", .lanes = 4, .layout = "random:5"},
    {.backend = "tcc", .schedule = "random:3", .layout = "random:4", .threads = 2},
    {.backend = "tcc", .target = "sse", .deterministic = 1},
};

static void
test_drawn(const jot_Config *config, const char *how, int rounds)
{
    static Case p;
    jot_Config interp = {.backend = "interp"};
    jot_Ctx *c = jot_open(config), *oracle = jot_open(&interp);

    if (jot_error(c))
        SKIP("%s: %s", config->backend, jot_message(c));
    for (int round = 0; round < rounds && !jot_error(c); round++) {
        draw_case(&p);
        compare(&p, c, oracle, how, round);
    }
    jot_close(c);
    jot_close(oracle);
}

/* ---- which are one kernel ------------------------------------------------------------------ */

static void
count(const char *backend, Use use, jot_DType dtype, int reward, int paper)
{
    static Case p;

    for (int k = 0; k < 2; k++) {
        jot_Config config = {.backend = backend, .policy = k ? "paper" : "reward"};
        jot_Ctx *c = jot_open(&config);
        jot_Var out[3];
        uint64_t before, n;

        p = (Case){.use = use, .op = JOT_ADD, .dtype = dtype, .rank = 2, .rows = 9, .ext = {33, 1},
                   .terms = 20};
        if (jot_error(c)) {
            SKIP("%s: %s", backend, jot_message(c));
            jot_close(c);
            return;
        }
        n = (uint64_t)build(c, &p, out);
        before = jot_stats(c).kernels_run;
        CHECK(jot_run(c, jot_vars((int)n, out)), "%s", jot_message(c));
        n = jot_stats(c).kernels_run - before;
        CHECK(n == (uint64_t)(k ? paper : reward), "%s, use %d, %s: %d kernels, not %d",
              k ? "paper" : "reward", (int)use, jot_dtype_name(dtype), (int)n, k ? paper : reward);
        jot_close(c);
    }
}

static void
test_kernels(void)
{
    count("cpu", USE_PLAIN, JOT_F32, 1, 2);
    count("cpu", USE_PLAIN, JOT_I32, 1, 2);
    count("cpu", USE_PLAIN, JOT_F64, 1, 2);
    count("cpu", USE_PLAIN, JOT_F16, 2, 2); /* whose sums are floats */
    count("cpu", USE_TURNED, JOT_F32, 1, 2);
    count("cpu", USE_WORK, JOT_F32, 1, 2);
    count("cpu", USE_NUMBER, JOT_F32, 1, 2);
    count("cpu", USE_ASKED, JOT_F32, 2, 2);
    count("cpu", USE_TWICE, JOT_F32, 2, 2);
    count("cpu", USE_OTHER, JOT_F32, 2, 2);
}

/* ---- in place ------------------------------------------------------------------------------ */

/* Three rows of 64 MB (of 1 MB by the interpreter, which copies) are added to where they lie, by one
 * kernel a step. Where the old value is wanted as well, both are right. */
static void
test_in_place(jot_Ctx *c)
{
    enum { WIDE = 256, STEPS = 12 };
    const bool interp = !strcmp(jot_backend(c), "interp");
    const int ROWS = interp ? 1 << 10 : 1 << 16;
    jot_Var table = jot_param(c, JOT_F32, JOT_SHAPE(ROWS, WIDE), NULL), old = jot_none();
    jot_Stats before = jot_stats(c), after;
    int bad = 0;

    for (int step = 0; step < STEPS; step++) {
        int64_t at[4] = {step, 40, 40, ROWS};

        jot_push(c);
        jot_Var places = jot_broadcast(jot_array(c, JOT_I64, JOT_SHAPE(4), at),
                                       JOT_SHAPE(4, WIDE), JOT_INTS(1));
        jot_Var rows = jot_full(c, JOT_F32, JOT_SHAPE(4, WIDE), step + 1);
        if (step == STEPS - 2)
            old = jot_keep(jot_stop_grad(table));
        if (step == 2)
            before = jot_stats(c);
        jot_assign(table, jot_scatter_reduce(JOT_ADD, table, places, rows, 0));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
        if (step == STEPS - 3) {
            after = jot_stats(c);
            CHECK(interp || after.kernels_run - before.kernels_run == STEPS - 4, "%d kernels",
                  (int)(after.kernels_run - before.kernels_run));
            CHECK(interp || after.in_place - before.in_place == STEPS - 4, "%d in place",
                  (int)(after.in_place - before.in_place));
        }
    }
    for (int step = 0; step < 3; step++) {
        jot_push(c);
        jot_assign(table, jot_offset(table, 0.5));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
    }
    const float *x = jot_data(table), *y = jot_data(old);
    for (int i = 0; x && y && i < ROWS * WIDE; i++) {
        int row = i / WIDE;
        float want = row < STEPS ? (float)(row + 1) : row == 40 ? STEPS * (STEPS + 1) : 0;
        float was = row < STEPS - 2 ? want : row == 40 ? (STEPS - 2) * (STEPS - 1) : 0;

        bad += x[i] != want + 1.5f || y[i] != was;
    }
    CHECK(x && y && !bad, "%d wrong; %s", bad, jot_message(c));
}

/* What is added, or where, is the variable itself: it must be read before it changes. */
static void
test_itself(jot_Ctx *c)
{
    int64_t v[6] = {1, 2, 3, 4, 5, 0}, x[6], want[6];
    jot_Var table = jot_param(c, JOT_I64, JOT_SHAPE(6), v);
    jot_Var step = jot_array(c, JOT_I64, JOT_SHAPE(6), (int64_t[]){1, 2, 3, 4, 5, 0});

    memcpy(x, v, sizeof x);
    for (int k = 0; k < 3; k++) {
        jot_push(c);
        jot_assign(table, jot_scatter_reduce(JOT_ADD, table, step, table, 0));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
        memcpy(want, x, sizeof want);
        for (int i = 0; i < 6; i++)
            want[(i + 1) % 6] += x[i];
        memcpy(x, want, sizeof x);
    }
    CHECK(jot_data(table) && !memcmp(jot_data(table), x, sizeof x), "terms; %s", jot_message(c));
    for (int i = 0; i < 6; i++)
        x[i] = v[i] = 5 - i;
    table = jot_param(c, JOT_I64, JOT_SHAPE(6), v);
    for (int k = 0; k < 2; k++) {
        jot_push(c);
        jot_assign(table, jot_scatter_reduce(JOT_ADD, table, table, step, 0));
        jot_run(c, JOT_NONE_VARS);
        jot_pop(c);
        memcpy(want, x, sizeof want);
        for (int i = 0; i < 6; i++)
            if (x[i] >= 0 && x[i] < 6)
                want[x[i]] += (i + 1) % 6;
        memcpy(x, want, sizeof x);
    }
    CHECK(jot_data(table) && !memcmp(jot_data(table), x, sizeof x), "places; %s", jot_message(c));
}

/* A temporary that ends in the addition, and one that is read again behind it. */
static void
test_temporaries(jot_Ctx *c)
{
    enum { ROWS = 300, WIDE = 50, TERMS = 400 };
    static float x[ROWS * WIDE], want[ROWS * WIDE];
    static int64_t at[TERMS];

    for (int again = 0; again < 2; again++) {
        int bad = 0;

        for (int i = 0; i < ROWS * WIDE; i++)
            want[i] = 3 * (x[i] = (float)(i % 5));
        for (int i = 0; i < TERMS; i++) {
            at[i] = i * 7 % 290;
            for (int j = 0; j < WIDE; j++)
                want[at[i] * WIDE + j] += 2;
        }
        for (int i = 0; again && i < ROWS * WIDE; i++)
            want[i] += 3 * x[i];
        jot_push(c);
        jot_Var a = jot_stop_fuse(jot_mul(jot_array(c, JOT_F32, JOT_SHAPE(ROWS, WIDE), x),
                                          jot_full(c, JOT_F32, JOT_SHAPE(), 3)));
        jot_Var places = jot_broadcast(jot_array(c, JOT_I64, JOT_SHAPE(TERMS), at),
                                       JOT_SHAPE(TERMS, WIDE), JOT_INTS(1));
        jot_Var z = jot_scatter_reduce(JOT_ADD, a, places,
                                       jot_full(c, JOT_F32, JOT_SHAPE(TERMS, WIDE), 2), 0);
        z = jot_stop_fuse(z);
        z = again ? jot_add(z, a) : jot_neg(jot_neg(z));
        const float *got = jot_data(z);
        for (int i = 0; got && i < ROWS * WIDE; i++)
            bad += got[i] != want[i];
        CHECK(got && !bad, "%d wrong, again %d; %s", bad, again, jot_message(c));
        jot_pop(c);
    }
}

/* ---- gradients ----------------------------------------------------------------------------- */

static jot_Var
inner(void *user, jot_Vars in)
{
    const jot_ReduceOp op = *(const jot_ReduceOp *)user;
    jot_Var at = jot_array(in.v[0].ctx, JOT_I64, JOT_SHAPE(5), (int64_t[]){0, 2, 2, -1, 3});
    jot_Var y = jot_scatter_reduce(op, jot_mul(in.v[0], in.v[0]),
                                   jot_broadcast(at, JOT_SHAPE(5, 4), JOT_INTS(1)),
                                   jot_sin(in.v[1]), 0);

    return jot_mul(y, y);
}

static jot_Var
inner_gradient(void *user, jot_Vars in)
{
    jot_Var g[2];

    jot_grad(jot_sum(inner(user, in), JOT_ALL_DIMS), in, g);
    return jot_concat(JOT_VARS(jot_reshape(g[0], JOT_SHAPE(-1)), jot_reshape(g[1], JOT_SHAPE(-1))),
                      0);
}

static void
test_gradients(jot_Ctx *c)
{
    jot_ReduceOp ops[2] = {JOT_ADD, JOT_MAX};
    double v[20];

    for (int i = 0; i < 20; i++)
        v[i] = 0.3 + 0.07 * (i * 11 % 20);
    for (int k = 0; k < 2; k++) {
        jot_Vars in = JOT_VARS(jot_param(c, JOT_F64, JOT_SHAPE(4, 4), v),
                               jot_param(c, JOT_F64, JOT_SHAPE(5, 4), v));

        CHECK(jot_grad_check(inner, &ops[k], in, 1e-4, 1e-6), "%s", jot_message(c));
        CHECK(jot_grad_check(inner_gradient, &ops[k], in, 1e-4, 1e-6), "%s", jot_message(c));
    }
}

int
main(int argc, char **argv)
{
    jot_Config config = {.backend = argc > 1 ? argv[1] : "cpu"};
    static const int threads[] = {1, 2};

    if (argc > 1) {
        test_drawn(&config, argv[1], 30);
        count(argv[1], USE_PLAIN, JOT_F32, 2, 3);
        return DONE();
    }
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        char how[24];

        snprintf(how, sizeof how, "way %d", (int)k);
        test_drawn(&ways[k], how, strcmp(ways[k].backend, "cpu") ? test_many(50, 150) : test_many(20, 60));
    }
    test_kernels();
    for (int k = 0; k < 3; k++) {
        jot_Config one = {.backend = k ? "cpu" : "interp", .threads = k ? threads[k - 1] : 1};
        jot_Ctx *c = jot_open(&one);

        if (jot_error(c)) {
            SKIP("%s: %s", one.backend, jot_message(c));
        } else {
            test_in_place(c);
            test_itself(c);
            test_temporaries(c);
            test_gradients(c);
        }
        jot_close(c);
    }
    return DONE();
}
