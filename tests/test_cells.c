/* tests/test_cells.c - equal cells of one level are one: networks over trees, with shared subtrees,
 * side by side. Values, gradients and gradients of these against the interpreter on the graph as it
 * was built; nodes of cells that are asked for or differentiated by; what the dump and the counts
 * say; unseen trees of known groups, whose biases' gradients are of one kind; refused memory.
 *
 * Guards: ops/buffer.c, ops/rewrite/cells.c, ops/rewrite/cells_rows.c, ops/rewrite/stack.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>

enum { D = 8, E = 24, WORDS = 12, MOST = 40, OUTS = 8 };

static float numbers[8192];

typedef struct { jot_Var h, c; } State;
typedef struct { jot_Var w, b, u, a, table; State at[MOST]; int n; } Net;

static jot_Var
part(jot_Var g, int k)
{
    return jot_slice(g, JOT_SHAPE(0, k * D), JOT_SHAPE(JOT_END, (k + 1) * D), JOT_SHAPE(1, 1));
}

static void
net_open(Net *t, jot_Ctx *c)
{
    memset(t, 0, sizeof *t);
    t->w = jot_param(c, JOT_F32, JOT_SHAPE(5 * D, 2 * D), numbers);
    t->b = jot_param(c, JOT_F32, JOT_SHAPE(5 * D), numbers + 50);
    t->u = jot_param(c, JOT_F32, JOT_SHAPE(3 * D, E), numbers + 900);
    t->a = jot_param(c, JOT_F32, JOT_SHAPE(3 * D), numbers + 70);
    t->table = jot_param(c, JOT_F32, JOT_SHAPE(WORDS, E), numbers + 2000);
}

static void
net_state(Net *t, jot_Var c, jot_Var o)
{
    t->at[t->n].c = c;
    t->at[t->n++].h = jot_mul(jot_sigmoid(o), jot_tanh(c));
}

static void
leaf(Net *t, int64_t word)
{
    jot_Var x = jot_take(t->table, jot_array(t->w.ctx, JOT_I64, JOT_SHAPE(1), &word), 0);
    jot_Var g = jot_linear(x, jot_transpose(t->u, JOT_INTS(1, 0)), t->a);

    net_state(t, jot_mul(jot_sigmoid(part(g, 0)), jot_tanh(part(g, 2))), part(g, 1));
}

static void
node(Net *t, int l, int r)
{
    jot_Var x = jot_concat(JOT_VARS(t->at[l].h, t->at[r].h), 1);
    jot_Var g = jot_linear(x, jot_transpose(t->w, JOT_INTS(1, 0)), t->b);
    jot_Var c = jot_mul(jot_sigmoid(part(g, 0)), jot_tanh(part(g, 4)));

    c = jot_add(c, jot_mul(jot_sigmoid(part(g, 1)), t->at[l].c));
    c = jot_add(c, jot_mul(jot_sigmoid(part(g, 2)), t->at[r].c));
    net_state(t, c, part(g, 3));
}

/* A tree with that many leaves, split anywhere; its root. */
static int
split(Net *t, int leaves, unsigned *seed)
{
    int l, r;

    if (leaves == 1) {
        leaf(t, t->n % WORDS);
        return t->n - 1;
    }
    *seed = *seed * 1103515245u + 12345u;
    l = 1 + (int)((*seed >> 16) % (unsigned)(leaves - 1));
    r = leaves - l;
    l = split(t, l, seed);
    r = split(t, r, seed);
    node(t, l, r);
    return t->n - 1;
}

/* ---- programs: their results into out[0..return) -------------------------------------------- */

typedef int Program(jot_Ctx *c, jot_Var *out, int arg);

static int
finish(Net *t, jot_Var *out)
{
    jot_Var wrt[5], all = jot_mul(t->at[t->n - 1].h, t->at[t->n - 1].c);

    wrt[0] = t->w, wrt[1] = t->b, wrt[2] = t->u, wrt[3] = t->a, wrt[4] = t->table;
    out[0] = all;
    jot_grad(jot_sum(all, JOT_ALL_DIMS), jot_vars(5, wrt), out + 1);
    return 6;
}

/* All nodes of a level beside each other. */
static int
full(jot_Ctx *c, jot_Var *out, int leaves)
{
    Net t;
    int from = 0, n = leaves, k;

    net_open(&t, c);
    for (k = 0; k < leaves; k++)
        leaf(&t, (k * 5) % WORDS);
    for (; n > 1; from += n, n /= 2)
        for (k = 0; k < n; k += 2)
            node(&t, from + k, from + k + 1);
    return finish(&t, out);
}

/* 5 to 20 leaves, another tree for each number. */
static int
trees(jot_Ctx *c, jot_Var *out, int number)
{
    unsigned seed = (unsigned)number * 2654435761u;
    Net t;

    net_open(&t, c);
    split(&t, 5 + number % 16, &seed);
    return finish(&t, out);
}

/* Each node above the one before: its leaves alone are side by side. */
static int
chain(jot_Ctx *c, jot_Var *out, int leaves)
{
    Net t;
    int k;

    net_open(&t, c);
    for (k = 0; k < leaves; k++)
        leaf(&t, k % WORDS);
    for (k = 1; k < leaves; k++)
        node(&t, k == 1 ? 0 : t.n - 1, k);
    return finish(&t, out);
}

/* Any two states below, some of them read more than once or not at all. */
static int
drawn(jot_Ctx *c, jot_Var *out, int seed)
{
    unsigned s = (unsigned)seed * 2654435761u + 1;
    Net t;
    int k, leaves, l;

    net_open(&t, c);
    leaves = 3 + (int)((s = s * 1664525u + 1013904223u) >> 24) % 9;
    for (k = 0; k < leaves; k++)
        leaf(&t, (s = s * 1664525u + 1013904223u) % WORDS);
    for (k = 0; k < leaves + 3; k++) {
        s = s * 1664525u + 1013904223u;
        l = (int)(s >> 16) % t.n;
        s = s * 1664525u + 1013904223u;
        node(&t, l, (int)(s >> 16) % t.n);
    }
    return finish(&t, out);
}

/* Members of chunks are asked for, and differentiated by; the gradient of a gradient. */
static int
inner(jot_Ctx *c, jot_Var *out, int leaves)
{
    jot_Var g[3], loss, wrt[3];
    Net t;
    int from = 0, n = leaves, k;

    net_open(&t, c);
    for (k = 0; k < leaves; k++)
        leaf(&t, k % WORDS);
    for (; n > 1; from += n, n /= 2)
        for (k = 0; k < n; k += 2)
            node(&t, from + k, from + k + 1);
    loss = jot_sum(jot_mul(t.at[t.n - 1].h, t.at[2].c), JOT_ALL_DIMS);
    wrt[0] = t.at[1].h, wrt[1] = t.at[leaves].c, wrt[2] = t.w;
    jot_grad(loss, jot_vars(3, wrt), g);
    out[0] = t.at[0].h;
    out[1] = t.at[leaves + 1].c;
    out[2] = g[0];
    out[3] = g[1];
    out[4] = g[2];
    jot_grad(jot_sum(jot_mul(g[2], g[2]), JOT_ALL_DIMS), JOT_VARS(t.w, t.u), out + 5);
    return 7;
}

/* Small networks side by side, each result wanted; a row that all of them scale by. */
static int
concurrent(jot_Ctx *c, jot_Var *out, int n)
{
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(48, 40), numbers), sum = {0}, x, y, g;
    jot_Var v = jot_param(c, JOT_F32, JOT_SHAPE(1, 40), numbers + 33);
    int k;

    for (k = 0; k < n; k++) {
        x = jot_array(c, JOT_F32, JOT_SHAPE(1, 48), numbers + 31 * k);
        y = jot_mul(jot_matmul(x, w), jot_add(v, jot_full(c, JOT_F32, JOT_SHAPE(1, 40), 1)));
        y = jot_softmax(y, 1);
        sum = k ? jot_add(sum, y) : y;
        out[k % 6] = y;
    }
    jot_grad(jot_sum(jot_mul(sum, sum), JOT_ALL_DIMS), JOT_VARS(w), &g);
    out[6] = g;
    return 7;
}

/* Cells that were joined for a gradient before, and pieces of their rows beside other cells: such
 * small ones that what has the rows is more of them than a stack takes. */
static int
pieces(jot_Ctx *c, jot_Var *out, int n)
{
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(64, 64), numbers), s = {0}, h[64], x, y, wrt[2];
    jot_Var v = jot_param(c, JOT_F32, JOT_SHAPE(24, 16), numbers + 77);
    int k;

    for (k = 0; k < n; k++) {
        x = jot_array(c, JOT_F32, JOT_SHAPE(1, 64), numbers + 31 * k);
        h[k] = jot_tanh(jot_matmul(x, w));
        y = jot_sum(jot_mul(h[k], h[k ? k - 1 : 0]), JOT_ALL_DIMS);
        s = k ? jot_add(s, y) : y;
    }
    jot_grad(s, JOT_VARS(w), out);
    for (k = 0; k < n; k++) {
        int at = k % 4 * 16;

        x = jot_array(c, JOT_F32, JOT_SHAPE(1, 24), numbers + 17 * k);
        y = jot_slice(h[k], JOT_SHAPE(0, at), JOT_SHAPE(JOT_END, at + 16), JOT_SHAPE(1, 1));
        y = jot_sum(jot_mul(jot_tanh(jot_matmul(x, v)), y), JOT_ALL_DIMS);
        s = k ? jot_add(s, y) : y;
    }
    wrt[0] = w, wrt[1] = v;
    jot_grad(s, jot_vars(2, wrt), out + 1);
    return 3;
}

/* The gradient of a weight that is used again and again, which is one product then, beside a sum of
 * scalars seen as vectors. */
static int
scalars(jot_Ctx *c, jot_Var *out, int n)
{
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(64, 64), numbers), s = {0}, r = {0}, x;
    int k;

    for (k = 0; k < n; k++) {
        x = jot_array(c, JOT_F32, JOT_SHAPE(1, 64), numbers + 31 * k);
        s = jot_tanh(jot_add(jot_matmul(k ? s : x, w), x));
    }
    jot_grad(jot_sum(s, JOT_ALL_DIMS), JOT_VARS(w), out);
    jot_push(c); /* the terms have no names */
    for (k = 0; k < 3; k++) {
        x = jot_exp(jot_array(c, JOT_F32, JOT_SHAPE(5), numbers + 5 * k));
        x = jot_broadcast_to(jot_sum(x, JOT_ALL_DIMS), JOT_SHAPE(1));
        r = k ? jot_add(r, x) : x;
    }
    out[1] = jot_leave(c, r);
    return 2;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void
check(Program *program, const char *name, int arg, const char *backend, const char *policy)
{
    jot_Config plain = {.backend = "interp", .no_simplify = 1};
    jot_Config config = {.backend = backend, .policy = policy, .threads = 2};
    jot_Ctx *a = jot_open(&plain), *b = jot_open(&config);
    jot_Var want[OUTS], got[OUTS];
    int n, k;
    int64_t i;

    if (jot_error(b)) {
        SKIP("%s: %s", backend, jot_message(b));
    } else {
        n = program(a, want, arg);
        program(b, got, arg);
        CHECK(jot_run(a, jot_vars(n, want)) && jot_run(b, jot_vars(n, got)), "%s %d, %s: %s%s",
              name, arg, backend, jot_message(a), jot_message(b));
        for (k = 0; k < n && !jot_error(b); k++) {
            const float *p = jot_data(want[k]), *q = jot_data(got[k]);
            double worst = 0;

            for (i = 0; p && q && i < jot_nelem(want[k]); i++)
                worst = fmax(worst, fabs(p[i] - q[i]) / (1 + fabs(p[i])));
            CHECK(p && q && worst < 2e-5, "%s %d on %s, %s: result %d is off by %g", name, arg,
                  backend, policy, k, worst);
        }
    }
    jot_close(a);
    jot_close(b);
}

static void
all_of(const char *backend, const char *policy, int seeds)
{
    int k;

    check(full, "full", 8, backend, policy);
    check(full, "full", 2, backend, policy);
    check(chain, "chain", 7, backend, policy);
    check(inner, "inner", 8, backend, policy);
    check(inner, "inner", 4, backend, policy);
    check(concurrent, "beside", 6, backend, policy);
    check(concurrent, "beside", 13, backend, policy);
    check(pieces, "pieces", 64, backend, policy);
    check(scalars, "scalars", 12, backend, policy);
    for (k = 1; k <= seeds; k++)
        check(drawn, "drawn", k, backend, policy);
    for (k = 1; k <= seeds / 2; k++)
        check(trees, "trees", k, backend, policy);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Kernels of one evaluation; the graph is in `logged`. */
static int
kernels_of(Program *program, int arg)
{
    jot_Config config = {.backend = "tcc", .hooks = {.log = keep_log}, .dump = "g"};
    jot_Ctx *c = jot_open(&config);
    jot_Var out[OUTS];
    int n, kernels = -1;

    forget_log();
    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
    } else {
        n = program(c, out, arg);
        CHECK(jot_run(c, jot_vars(n, out)), "%s", jot_message(c));
        kernels = (int)jot_stats(c).last_kernels;
    }
    jot_close(c);
    return kernels;
}

static void
check_counts(void)
{
    int eight = kernels_of(full, 8), sixteen;

    if (eight < 0)
        return;
    CHECK(strstr(logged, "(8, 1, 24)") && strstr(logged, "(4, 1, 40)"), "leaves, nodes: %s",
          logged);
    CHECK(count_logged("f32 (1, 40) reduce sum") == 0, "no product of one row: %s", logged);
    sixteen = kernels_of(full, 16);
    CHECK(sixteen - eight <= 16, "%d and %d kernels: a level more, twice the nodes", eight,
          sixteen);
    kernels_of(chain, 7);
    CHECK(strstr(logged, "(6, 1, 24)"), "leaves are joined: %s", logged);
    CHECK(strstr(logged, "f32 (1, 40) reduce sum"), "nodes one above the other stay: %s", logged);
}

/* Trees of one set of groups: from some on, a new one has a plan and no new kernel. */
static void
check_unseen(Program *program, int trees, int one_in)
{
    jot_Config config = {.backend = "tcc"};
    jot_Ctx *c = jot_open(&config);
    jot_Stats s, e;
    jot_Var out[OUTS];
    int k, n;

    if (jot_error(c)) {
        SKIP("tcc: %s", jot_message(c));
        jot_close(c);
        return;
    }
    s = jot_stats(c);
    for (k = 1; k <= trees; k++) {
        jot_push(c);
        n = program(c, out, k);
        CHECK(jot_run(c, jot_vars(n, out)), "%s", jot_message(c));
        jot_pop(c);
        s = 2 * k == trees ? jot_stats(c) : s;
    }
    e = jot_stats(c);
    CHECK(e.groups_known - s.groups_known
              > (uint64_t)one_in * (e.groups_built - s.groups_built),
          "%llu groups known, %llu new", (unsigned long long)(e.groups_known - s.groups_known),
          (unsigned long long)(e.groups_built - s.groups_built));
    jot_close(c);
}

/* ---- the n-th allocation is refused ---------------------------------------------------------- */

static void
check_refused(Program *program, int arg, int64_t step)
{
    int64_t n;
    bool done = false;

    for (n = 1; !done && n < 100000; n += n < test_many(60, 300) ? 1 : step) {
        Heap heap = {.countdown = n, .onwards = true};
        jot_Config config = {.backend = "interp",
                             .hooks = {.realloc = heap_realloc, .ud = &heap}, .give_back = 1};
        jot_Ctx *c = jot_open(&config);
        jot_Var out[OUTS];

        if (c) {
            int k = program(c, out, arg);

            done = jot_run(c, jot_vars(k, out));
            CHECK(done || jot_error(c) == JOT_EMEM, "%d: %s", (int)n, jot_message(c));
            jot_close(c);
        }
        CHECK(heap.live == 0, "%d: %zu bytes are left", (int)n, heap.live);
    }
    CHECK(done, "it ends");
}

int
main(void)
{
    int i;

    for (i = 0; i < 8192; i++)
        numbers[i] = (float)((i * 7919) % 200 - 100) / 250;
    all_of("interp", "reward", test_many(14, 40));
    all_of("tcc", "reward", test_many(10, 25));
    all_of("tcc", "paper", 10);
    all_of("tcc", "none", 5);
    check_counts();
    check_unseen(drawn, 60, 4);
    check_unseen(trees, 80, 90); /* 20 new; 17 where scatters stand apart from additions */
    check_refused(full, 4, 13);
    check_refused(chain, 3, 13);
    check_refused(drawn, 5, 37);
    check_refused(trees, 9, 61);
    return DONE();
}
