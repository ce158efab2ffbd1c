/* tests/test_fuzz.c - random programs: each seed builds the same random graph (meta-operators,
 * forms, reductions, products, gradients) in several contexts that differ in backend, fusion
 * policy, layout of temporaries and schedule, and compares every result with the oracle: the
 * interpreter running the graph as called, without simplification.
 *
 * Exactness. Inputs are multiples of 1/4 of few bits. A value is `exact` while its bits fit a
 * double; operators with jumps (comparison, max and its gradient) are drawn for exact values only,
 * so that a difference in rounding cannot turn into a different branch.
 *
 * Use: test_fuzz [number of seeds] [first seed] [backend] [fresh]: that backend with each seed; contexts
 * of its own for each, so that each program is its context's first */
#include "core.h"
#include "tests/test.h"

enum { VARS = 40, MOST = 600 };

/* smooth: no jumps on the way here */
typedef struct { jot_Var v; int bits; bool real, smooth; } Val;

typedef struct {
    jot_Ctx *c;
    uint64_t s;
    Val val[VARS];
    int n;
    jot_Var in[3], index;
} Prog;

static int
draw(Prog *p, int n)
{
    p->s = p->s * 6364136223846793005u + 1442695040888963407u;
    return (int)((p->s >> 33) % (uint64_t)n);
}

static Val *
pick(Prog *p)
{
    return &p->val[draw(p, p->n)];
}

static void
push(Prog *p, jot_Var v, int bits, bool real)
{
    int64_t n = jot_nelem(v);

    if (p->n < VARS && jot_ok(v) && n <= MOST && jot_rank(v) <= 5) {
        p->val[p->n].v = v;
        p->val[p->n].bits = bits;
        p->val[p->n++].real = real;
    }
}

static int
log2_up(int64_t n)
{
    int k = 0;

    for (; n > 1; n = (n + 1) / 2)
        k++;
    return k;
}

static void
do_unary(Prog *p)
{
    Val a = *pick(p);

    switch (draw(p, 8)) {
    case 0: push(p, jot_neg(a.v), a.bits, a.real); break;
    case 1: if (a.bits < 45) push(p, jot_abs(a.v), a.bits, a.real); break;
    case 2: push(p, jot_square(a.v), a.bits * 2, a.real); break;
    case 3: if (a.real) push(p, jot_tanh(a.v), 99, true); break;
    case 4: if (a.real) push(p, jot_sin(a.v), 99, true); break;
    case 5: if (a.real) push(p, jot_sigmoid(a.v), 99, true); break;
    case 6: if (a.real) push(p, jot_exp(jot_tanh(a.v)), 99, true); break;
    default: if (a.real && a.bits < 45) push(p, jot_relu(a.v), a.bits, true); break;
    }
}

/* An operand that broadcasts against a: reduced with kept dimensions, or of the same shape. */
static Val
partner(Prog *p, Val a)
{
    Val b = a;
    int i, k, rank = jot_rank(a.v);

    for (i = 0; i < 6; i++) {
        Val c = *pick(p);
        bool same = jot_rank(c.v) == rank && c.real == a.real;

        for (k = 0; same && k < rank; k++)
            same = jot_extent(c.v, k) == jot_extent(a.v, k) || jot_extent(c.v, k) == 1
                || jot_extent(a.v, k) == 1;
        if (same)
            return c;
    }
    if (rank && draw(p, 2)) {
        int64_t d = draw(p, rank);

        b.v = jot_reduce(JOT_ADD, a.v, jot_ints(1, &d), true);
        b.bits = a.bits + log2_up(jot_extent(a.v, (int)d));
    }
    return b;
}

static void
do_binary(Prog *p)
{
    Val a = *pick(p), b = partner(p, a);
    int most = a.bits > b.bits ? a.bits : b.bits;

    switch (draw(p, 7)) {
    case 0: push(p, jot_add(a.v, b.v), most + 1, a.real); break;
    case 1: push(p, jot_sub(a.v, b.v), most + 1, a.real); break;
    case 2: push(p, jot_mul(a.v, b.v), a.bits + b.bits, a.real); break;
    case 3: if (most < 45) push(p, jot_maximum(a.v, b.v), most, a.real); break;
    case 4: if (most < 45) push(p, jot_minimum(a.v, b.v), most, a.real); break;
    case 5:
        if (most < 45)
            push(p, jot_select(jot_lt(a.v, b.v), b.v, jot_neg(a.v)), most, a.real);
        break;
    default: if (a.real) push(p, jot_div(a.v, jot_offset(jot_square(b.v), 1)), 99, true); break;
    }
}

static void
do_reduce(Prog *p)
{
    Val a = *pick(p);
    int64_t dims[8], n = 1;
    int rank = jot_rank(a.v), k, m = 0, op = draw(p, 5), bits = a.bits;

    for (k = 0; k < rank; k++)
        if (draw(p, 2)) {
            dims[m++] = draw(p, 3) ? k : k - rank;
            n *= jot_extent(a.v, k);
        }
    if ((op == 1 || op == 2) && (a.bits >= 45 || n == 0))
        return;
    if (op == 3 && (n > 6 || !a.real))
        return;
    if (op == 4 && !a.real)
        return;
    bits = op == 0 ? bits + log2_up(n) : op == 3 ? 99 : op == 4 ? 99 : bits;
    push(p, jot_reduce(op == 0 ? JOT_ADD : op == 1 ? JOT_MAX : op == 2 ? JOT_MIN
                       : op == 3 ? JOT_MUL : JOT_MEAN,
                       a.v, jot_ints(m, dims), draw(p, 2) != 0), bits, a.real);
}

static void
do_form(Prog *p)
{
    Val a = *pick(p);
    int rank = jot_rank(a.v), k;
    int64_t x[8], y[8], z[8];
    jot_Var two[2];

    switch (draw(p, 9)) {
    case 0: /* transpose */
        for (k = 0; k < rank; k++)
            x[k] = k;
        for (k = rank - 1; k > 0; k--) {
            int j = draw(p, k + 1);
            int64_t t = x[k];

            x[k] = x[j];
            x[j] = t;
        }
        push(p, jot_transpose(a.v, jot_ints(rank, x)), a.bits, a.real);
        break;
    case 1: /* slice */
        for (k = 0; k < rank; k++) {
            int64_t e = jot_extent(a.v, k);

            z[k] = draw(p, 4) ? 1 + draw(p, 2) : -1 - draw(p, 2);
            x[k] = z[k] > 0 ? draw(p, 2) : e - 1 - draw(p, 2);
            y[k] = JOT_END;
        }
        push(p, jot_slice(a.v, jot_ints(rank, x), jot_ints(rank, y), jot_ints(rank, z)), a.bits,
             a.real);
        break;
    case 2: /* pad and crop */
        for (k = 0; k < rank; k++) {
            x[k] = draw(p, 4) - 1;
            y[k] = draw(p, 4) - 1;
            if (jot_extent(a.v, k) + x[k] + y[k] < 0)
                x[k] = y[k] = 0;
        }
        push(p, jot_pad(a.v, jot_ints(rank, x), jot_ints(rank, y), draw(p, 3) - 1), a.bits + 1,
             a.real);
        break;
    case 3:
        x[0] = rank ? draw(p, rank) : 0;
        push(p, jot_flip(a.v, jot_ints(rank ? 1 : 0, x)), a.bits, a.real);
        break;
    case 4:
        for (k = 0; k < rank; k++)
            x[k] = 1 + draw(p, 2);
        push(p, jot_tile(a.v, jot_ints(rank, x)), a.bits, a.real);
        break;
    case 5: /* reshape to one or two dimensions */
        x[0] = -1;
        x[1] = rank && jot_extent(a.v, rank - 1) ? jot_extent(a.v, rank - 1) : 1;
        if (jot_nelem(a.v))
            push(p, jot_reshape(a.v, jot_ints(1 + draw(p, 2), x)), a.bits, a.real);
        break;
    case 6:
        if (rank) {
            two[0] = a.v;
            two[1] = draw(p, 2) ? a.v : jot_scale(a.v, 2);
            push(p, jot_concat(jot_vars(2, two), draw(p, rank)), a.bits + 1, a.real);
        }
        break;
    case 7:
        if (rank)
            push(p, jot_gather(a.v, p->index, draw(p, rank)), a.bits, a.real);
        break;
    default: /* broadcast along a new dimension */
        if (rank < 4) {
            int at = draw(p, rank + 1), j = 0;

            for (k = 0; k <= rank; k++)
                x[k] = k == at ? 1 + draw(p, 4) : jot_extent(a.v, j++);
            y[0] = at;
            push(p, jot_broadcast(a.v, jot_ints(rank + 1, x), jot_ints(1, y)), a.bits, a.real);
        }
    }
}

/* Maps as text: windows, strides, wraps, conditions; and the scatters they are the duals of. */
static void
do_map(Prog *p)
{
    Val a = *pick(p);
    int64_t e0, e1;
    jot_Var extra = p->index;

    if (jot_rank(a.v) != 2)
        return;
    e0 = jot_extent(a.v, 0);
    e1 = jot_extent(a.v, 1);
    switch (draw(p, 9)) {
    case 0:
        push(p, jot_reindex(a.v, JOT_SHAPE(e0, 3, 2), JOT_INDEX("i0", "2*i1 + i2 - 1")), a.bits,
             a.real);
        break;
    case 1:
        push(p, jot_reindex_ex(a.v, JOT_SHAPE(4, 5), JOT_INDEX("(i0 + i1) % xs0", "(i0*5 + i1)/3"),
                               JOT_INDEX("i0 != i1 || i0 == 2"), 1.5, JOT_NONE_VARS),
             a.bits + 2, a.real);
        break;
    case 2:
        push(p, jot_reindex_ex(a.v, JOT_SHAPE(4, e1), JOT_INDEX("@e0(i0)", "xs1 - 1 - i1"),
                               JOT_NONE_STRS, 0, jot_vars(1, &extra)), a.bits, a.real);
        break;
    case 3:
        push(p,
             jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(3, e1 + 1), JOT_INDEX("i0 % 3", "i1 + 1")),
             a.bits + log2_up(e0), a.real);
        break;
    case 4:
        push(p, jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(e0 + 2), JOT_INDEX("i0 + i1/2 - 1")),
             a.bits + log2_up(e1), a.real);
        break;
    case 5:
        push(p, jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(2 * e0 + e1), JOT_INDEX("2*i0 + i1")),
             a.bits + log2_up(e1), a.real);
        break;
    case 6:
        push(p,
             jot_reindex_reduce_ex(JOT_ADD, a.v, JOT_SHAPE(4, e1), JOT_INDEX("@e0(i0 % 3)", "i1"),
                                   JOT_INDEX("i0 + i1 > 0"), jot_vars(1, &extra)),
             a.bits + log2_up(e0), a.real);
        break;
    case 7:
        push(p,
             jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(e0, 2, 3),
                                JOT_INDEX("i0", "i1 % 2", "i1 / 2")),
             a.bits + log2_up(e1), a.real);
        break;
    default: /* a window sum: convolution with all ones */
        push(p,
             jot_sum(
                 jot_reindex(a.v, JOT_SHAPE(e0, e1, 3, 2), JOT_INDEX("i0 + i2 - 1", "i1 + i3 - 1")),
                 JOT_DIMS(2, 3)),
             a.bits + 3, a.real);
    }
}

static void
do_product(Prog *p)
{
    Val a = *pick(p), b = *pick(p);
    jot_Var t;

    if (jot_rank(a.v) != 2 || !a.real || !b.real)
        return;
    t = jot_rank(b.v) == 2 && jot_extent(b.v, 0) == jot_extent(a.v, 1) ? b.v
      : jot_transpose(a.v, JOT_DIMS(1, 0));
    push(p, jot_matmul(a.v, t), a.bits + (t.slot == b.v.slot ? b.bits : a.bits)
         + log2_up(jot_extent(a.v, 1)), true);
}

static int
program(Prog *p, jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    static const int64_t ext[] = {1, 2, 3, 4, 5, 7, 0};
    double data[MOST];
    int64_t shape[3][3], idx[5];
    jot_Var loss, wrt[3];
    int i, k, n = 0, steps;

    memset(p, 0, sizeof *p);
    p->c = c;
    p->s = seed * 7919 + 1;
    for (k = 0; k < 20; k++)
        (void)draw(p, 2);
    for (i = 0; i < 3; i++) {
        int rank = i == 2 ? draw(p, 4) : 2;
        int64_t m = 1;

        for (k = 0; k < rank; k++)
            m *= shape[i][k] = ext[draw(p, draw(p, 8) ? 6 : 7)];
        for (k = 0; k < m; k++)
            data[k] = (draw(p, 17) - 8) / 4.0;
        p->in[i] = jot_array(c, JOT_F64, jot_ints(rank, shape[i]), data);
        push(p, p->in[i], 5, true);
    }
    for (k = 0; k < 5; k++)
        idx[k] = draw(p, 5) - 1;
    p->index = jot_array(c, JOT_I64, JOT_SHAPE(5), idx);
    push(p, p->index, 4, false);
    push(p, jot_iota(c, JOT_F64, JOT_SHAPE(3, 4), draw(p, 2)), 3, true);
    steps = 3 + draw(p, 12);
    for (i = 0; i < steps; i++)
        switch (draw(p, 7)) {
        case 0: do_unary(p); break;
        case 1: do_binary(p); break;
        case 2: do_reduce(p); break;
        case 3: do_form(p); break;
        case 4: do_map(p); break;
        case 5: do_product(p); break;
        default: do_binary(p);
        }
    if (draw(p, 4) == 0)
        p->val[p->n - 1].v = jot_stop_fuse(p->val[p->n - 1].v);
    for (i = 4; i < p->n; i++)
        if (i == p->n - 1 || !draw(p, 3))
            out[n++] = p->val[i].v;
    /* the gradient of a sum of results, and now and then of that one's square */
    loss = jot_scalar(c, JOT_F64, 0);
    for (i = p->n - 1; i > 4 && i > p->n - 4; i--)
        if (p->val[i].real)
            loss = jot_add(loss, jot_sum(jot_mul(p->val[i].v, p->val[i].v), JOT_ALL_DIMS));
    for (i = 0; i < 3; i++)
        wrt[i] = p->in[i];
    if (jot_grad(loss, wrt, 3, out + n)) {
        n += 3;
        if (!draw(p, 4)) {
            jot_Var l2 = jot_scalar(c, JOT_F64, 0);

            for (i = 0; i < 3; i++)
                l2 = jot_add(l2, jot_sum(jot_square(out[n - 3 + i]), JOT_ALL_DIMS));
            if (jot_grad(l2, wrt, 3, out + n))
                n += 3;
        }
    }
    return n;
}

typedef struct { const char *label; jot_Config config; int every; } Way;

static double
magnitude(jot_Var v)
{
    double m = 0;
    int64_t i, n = jot_nelem(v);

    if (jot_dtype(v) == JOT_F64) {
        const double *d = jot_data(v);

        for (i = 0; d && i < n; i++)
            if (fabs(d[i]) > m && isfinite(d[i]))
                m = fabs(d[i]);
    }
    return m;
}

static bool
same(jot_Var a, jot_Var b, double tol, char *why)
{
    int64_t i, n = jot_nelem(a);
    const void *p = jot_data(a), *q = jot_data(b);

    if (!p || !q)
        return sprintf(why, "no data"), false;
    if (n != jot_nelem(b) || jot_dtype(a) != jot_dtype(b))
        return sprintf(why, "other shape or dtype"), false;
    for (i = 0; i < n; i++) {
        if (jot_dtype(a) == JOT_F64) {
            double x = ((const double *)p)[i], y = ((const double *)q)[i];

            if (!(fabs(x - y) <= tol) && !(x != x && y != y) && x != y)
                return sprintf(why, "element %lld is %.17g and should be %.17g", (long long)i, y,
                               x),
                       false;
        } else if (memcmp((const char *)p + i * (int64_t)jot_dtype_nbytes(jot_dtype(a)),
                          (const char *)q + i * (int64_t)jot_dtype_nbytes(jot_dtype(a)),
                          jot_dtype_nbytes(jot_dtype(a)))) {
            return sprintf(why, "element %lld differs", (long long)i), false;
        }
    }
    return true;
}

static void
one(uint64_t seed, Way *ways, jot_Ctx **ctx, int nways)
{
    jot_Var want[VARS + 8], got[VARS + 8];
    Prog *p = malloc(sizeof *p);
    char why[200];
    int n, m, i, w;

    jot_push(ctx[0]);
    n = program(p, ctx[0], seed, want);
    if (!jot_run(ctx[0], jot_vars(n, want)))
        CHECK(0, "seed %llu: oracle: %s", (unsigned long long)seed, jot_message(ctx[0]));
    for (w = 1; w < nways && !jot_error(ctx[0]); w++) {
        if (!ctx[w] || seed % (uint64_t)ways[w].every)
            continue;
        jot_push(ctx[w]);
        m = program(p, ctx[w], seed, got);
        CHECK(m == n, "seed %llu: %s: %d results, %d expected: %s", (unsigned long long)seed,
              ways[w].label, m, n, jot_message(ctx[w]));
        if (m == n && jot_run(ctx[w], jot_vars(n, got))) {
            for (i = 0; i < n; i++) {
                double tol = 1e-9 * (1 + magnitude(want[i]));

                if (!same(want[i], got[i], tol, why))
                    break;
            }
            CHECK(i == n, "seed %llu: %s: result %d of %d: %s", (unsigned long long)seed,
                  ways[w].label, i, n, why);
        } else {
            CHECK(0, "seed %llu: %s: %s", (unsigned long long)seed, ways[w].label,
                  jot_message(ctx[w]));
        }
        jot_clear(ctx[w]);
        jot_pop(ctx[w]);
    }
    jot_clear(ctx[0]);
    jot_pop(ctx[0]);
    free(p);
}

/* NULL where a backend is not there, or another one than `only` was asked for. */
static void
open_ways(Way *ways, jot_Ctx **ctx, int nways, const char *only)
{
    for (int i = 0; i < nways; i++) {
        ctx[i] = NULL;
        if (only && i && strcmp(ways[i].config.backend, only))
            continue;
        ways[i].every = only ? 1 : ways[i].every;
        ctx[i] = jot_open(&ways[i].config);
        if (jot_error(ctx[i])) {
            SKIP("%s: %s", ways[i].label, jot_message(ctx[i]));
            jot_close(ctx[i]);
            ctx[i] = NULL;
        }
    }
}

static void
close_ways(jot_Ctx **ctx, int nways)
{
    for (int i = 0; i < nways; i++)
        if (ctx[i])
            jot_close(ctx[i]);
}

int
main(int argc, char **argv)
{
    Way ways[] = {
        {"oracle", {.backend = "interp", .no_simplify = 1}, 1},
        {"interp", {.backend = "interp"}, 1},
        {"both compilers", {.backend = "cpu", .cache_dir = ""}, 1},
        {"both, reward, random layout", {.backend = "cpu", .cache_dir = "", .policy = "reward", .layout = "random:5"}, 2},
        {"tcc", {.backend = "tcc"}, 1},
        {"tcc, no fusion", {.backend = "tcc", .policy = "none"}, 3},
        {"tcc, paper", {.backend = "tcc", .policy = "paper"}, 1},
        {"tcc, reward, both random, 4 lanes",
         {.backend = "tcc", .policy = "reward", .layout = "random:4", .schedule = "random:4",
          .lanes = 4}, 2},
        {"tcc, reward, 4 lanes", {.backend = "tcc", .policy = "reward", .lanes = 4}, 3},
        {"tcc, as called", {.backend = "tcc", .no_simplify = 1}, 3},
        {"tcc, random layout", {.backend = "tcc", .layout = "random:1"}, 1},
        {"tcc, random schedule", {.backend = "tcc", .schedule = "random:1"}, 1},
        {"tcc, both random, 4 lanes", {.backend = "tcc", .layout = "random:2",
                                       .schedule = "random:2", .lanes = 4}, 1},
        {"tcc, 4 lanes", {.backend = "tcc", .lanes = 4}, 1},
        {"cc", {.backend = "cc", .cache_dir = ""}, 40},
        {"both, a drawn machine", {.backend = "cpu", .cache_dir = "", .target = "random:3"}, 20},
        {"cc, 8 lanes", {.backend = "cc", .lanes = 8, .cache_dir = ""}, 40},
        {"opencl", {.backend = "opencl", .cache_dir = ""}, 20},
        {"opencl, paper", {.backend = "opencl", .policy = "paper", .cache_dir = ""}, 20},
        {"opencl, random", {.backend = "opencl", .layout = "random:5", .schedule = "random:5",
                            .cache_dir = ""}, 50},
        {"cuda", {.backend = "cuda", .cache_dir = ""}, 20},
        {"cuda, paper", {.backend = "cuda", .policy = "paper", .cache_dir = ""}, 20},
        {"cuda, random", {.backend = "cuda", .layout = "random:6", .schedule = "random:6",
                          .cache_dir = ""}, 50},
        {"cc, reward, 8 lanes",
         {.backend = "cc", .policy = "reward", .lanes = 8, .cache_dir = ""}, 40},
        {"cc, random, 8 lanes", {.backend = "cc", .layout = "random:3", .schedule = "random:3",
                                 .lanes = 8, .cache_dir = ""}, 40},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    jot_Ctx *ctx[WAYS];
    int i, n = argc > 1 ? atoi(argv[1]) : 300;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *only = argc > 3 ? argv[3] : NULL; /* one backend, each time */
    bool fresh = argc > 4 && !strcmp(argv[4], "fresh"); /* contexts of its own for each seed */

    open_ways(ways, ctx, WAYS, only);
    if (argc == 1 && ctx[0])
        one(4160, ways, ctx, WAYS); /* a stack in the first plan of a device: failed once */
    for (i = 0; i < n && ctx[0]; i++) {
        if (fresh && i) {
            close_ways(ctx, WAYS);
            open_ways(ways, ctx, WAYS, only);
        }
        one(first + (uint64_t)i, ways, ctx, WAYS);
    }
    if (argc == 1 && ctx[0])
        one(910034, ways, ctx, WAYS); /* a row that gcc 12 read below: failed once */
    close_ways(ctx, WAYS);
    return DONE();
}
