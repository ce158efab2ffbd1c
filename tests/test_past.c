/* tests/test_past.c - gradients by expressions that simplification went past (ops/grad/past.c):
 * drawn programs of maps, sums and element-wise operators; the gradient by each variable in them,
 * one at a time and all at once, is that of the same program built as it was called, or refused,
 * and so is the tangent.
 * Numbers are small and whole, so values agree to the bit.
 *
 *     test_past N FIRST    N programs, from seed FIRST on
 *
 * Guards: ops/grad/past.c, ops/grad/past_rules.c, ops/grad/grad.c, ops/reindex.c. */
#include "ops/graph.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { VARS = 14, MOST = 400 };

/* as: the first variable that is the same node where equal expressions are one. */
typedef struct { jot_Var v[VARS]; int n, as[VARS]; } Drawn;

static uint32_t state;

static int
draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)(state >> 8) * (uint64_t)n >> 24);
}

static jot_Var
whole(jot_Ctx *c, jot_Ints shape, bool param)
{
    double v[MOST];
    int64_t n = 1;

    for (int k = 0; k < shape.n; k++)
        n *= shape.v[k];
    for (int64_t k = 0; k < n; k++)
        v[k] = draw(7) - 3;
    return param ? jot_param(c, JOT_F64, shape, v) : jot_array(c, JOT_F64, shape, v);
}

static jot_Var
like(jot_Ctx *c, jot_Var x)
{
    return whole(c, jot_shape(x), false);
}

/* ---- one call ----------------------------------------------------------------------------- */

static jot_Var
mapped(jot_Var x)
{
    jot_Ints s = jot_shape(x);
    int64_t a[4] = {0}, b[4] = {0}, step[4];
    int r = s.n, kind = draw(7), at = draw(r);

    for (int k = 0; k < r; k++)
        a[k] = b[k] = 0, step[k] = 1;
    switch (kind) {
    case 0: return jot_reshape(x, JOT_SHAPE(-1, s.v[r - 1]));
    case 1: return jot_reshape(x, JOT_SHAPE(s.v[0], -1));
    case 2: return jot_swap(x, at, draw(r));
    case 3: return jot_flip(x, JOT_INTS(at));
    case 4:
        for (int k = 0; k < r; k++)
            b[k] = s.v[k];
        a[at] = b[at] > 1;
        step[at] = 1 + draw(2);
        return jot_slice(x, jot_ints(r, a), jot_ints(r, b), jot_ints(r, step));
    case 5:
        a[at] = 1;
        b[at] = draw(2);
        return jot_nelem(x) > 60 ? x : jot_pad(x, jot_ints(r, a), jot_ints(r, b), draw(2));
    default:
        return r > 2 || jot_nelem(x) > 60 ? jot_reshape(x, JOT_SHAPE(-1, 1))
                                          : jot_broadcast_to(x, r > 1 ? JOT_SHAPE(2, s.v[0], s.v[1])
                                                                    : JOT_SHAPE(2, s.v[0]));
    }
}

static jot_Var
called(jot_Ctx *c, Drawn *d)
{
    jot_Var x = d->v[draw(d->n)], y = d->v[draw(d->n)];
    int kind = draw(13);

    if (kind < 8)
        return mapped(x);
    if (kind == 8)
        return jot_neg(x);
    if (kind == 9)
        return jot_sum(x, JOT_DIMS(draw(jot_rank(x))));
    if (kind < 12)
        return jot_mul(x, like(c, x));
    return jot_rank(x) == jot_rank(y) && !memcmp(jot_shape(x).v, jot_shape(y).v,
                                                 (size_t)jot_rank(x) * sizeof(int64_t))
        ? jot_add(x, jot_mul(y, like(c, y))) : jot_reshape(x, JOT_SHAPE(-1, 1));
}

/* The same calls for the same seed, whatever the context makes of them; equal expressions are one
 * as they were in `one`. */
static jot_Var
build(jot_Ctx *c, uint32_t seed, Drawn *d, const Drawn *one)
{
    jot_Var y;
    int k;

    state = seed * 2654435761u + 1;
    d->v[0] = whole(c, JOT_SHAPE(2, 3, 4), true);
    for (d->n = 1; d->n < VARS; d->n++) {
        d->v[d->n] = called(c, d);
        if (jot_rank(d->v[d->n]) < 1)
            d->v[d->n] = jot_reshape(d->v[d->n], JOT_SHAPE(1));
        for (k = 0; jot_node_of(d->v[k], "", "") != jot_node_of(d->v[d->n], "", ""); k++)
            ;
        d->as[d->n] = k;
        if (one)
            d->v[d->n] = d->v[one->as[d->n]];
    }
    y = jot_scalar(c, JOT_F64, 0);
    for (k = VARS - 3; k < VARS; k++)
        y = jot_add(y, jot_sum(jot_mul(d->v[k], like(c, d->v[k])), JOT_ALL_DIMS));
    return y;
}

/* ---- comparing ---------------------------------------------------------------------------- */

static bool
same(jot_Var a, jot_Var b)
{
    const double *p = jot_data(a), *q = jot_data(b);
    bool ok = p && q && jot_nelem(a) == jot_nelem(b);

    for (int64_t k = 0; ok && k < jot_nelem(a); k++)
        ok = p[k] == q[k];
    return ok;
}

/* The tangent of z along whole numbers is what the gradients g[0] .. by v[0] .. say. */
static void
check_tangent(uint32_t seed, jot_Var z, int n, const jot_Var *v, const jot_Var *g)
{
    jot_Var dv[VARS], dz, sum = jot_scalar(z.ctx, JOT_F64, 0);

    for (int k = 0; k < n; k++) {
        dv[k] = like(z.ctx, v[k]);
        sum = jot_add(sum, jot_sum(jot_mul(dv[k], g[k]), JOT_ALL_DIMS));
    }
    CHECK(jot_jvp(JOT_VARS(z), jot_vars(n, v), jot_vars(n, dv), &dz) && same(dz, sum),
          "seed %u, tangent of %d: %g, %g: %s", seed, n, jot_item(dz), jot_item(sum),
          jot_message(z.ctx));
}

static int refused, answered;

static void
check_program(uint32_t seed, bool run_first)
{
    jot_Config plain = {.backend = "interp", .no_simplify = 1}, simple = {.backend = "interp"};
    jot_Ctx *c = jot_open(&plain), *s = jot_open(&simple);
    Drawn a, b;
    jot_Var z = build(s, seed, &b, NULL), y = build(c, seed, &a, &b), want[VARS], got[VARS];

    CHECK(!jot_error(c) && !jot_error(s), "seed %u: %s%s", seed, jot_message(c), jot_message(s));
    if (run_first)
        jot_run(s, JOT_VARS(z));
    CHECK(jot_grad(y, jot_vars(VARS, a.v), want), "seed %u: %s", seed, jot_message(c));
    for (int k = 0; k < VARS; k++) {
        if (!jot_grad(z, JOT_VARS(b.v[k]), &got[k])) {
            CHECK(jot_error(s) == JOT_EGRAD && (strstr(jot_message(s), "simplified past")
                  || strstr(jot_message(s), "is a constant")), "seed %u: %s", seed, jot_message(s));
            refused++;
            jot_clear(s);
            b.v[k] = b.v[0];
            want[k] = want[0];
            continue;
        }
        answered++;
        CHECK(same(want[k], got[k]), "seed %u: by variable %d", seed, k);
        check_tangent(seed, z, 1, &b.v[k], &got[k]);
    }
    CHECK(jot_grad(z, jot_vars(VARS, b.v), got), "seed %u: %s", seed, jot_message(s));
    for (int k = 0; k < VARS; k++)
        CHECK(same(want[k], got[k]), "seed %u: by variable %d among all", seed, k);
    check_tangent(seed, z, VARS, b.v, got);
    jot_close(c);
    jot_close(s);
}

/* ---- by hand ------------------------------------------------------------------------------ */

static void
test_hand(void)
{
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    jot_Var w = whole(c, JOT_SHAPE(2, 6), true), x = jot_reshape(w, JOT_SHAPE(3, 4)), g[3], n, p;
    jot_Var y = jot_transpose(x, JOT_INTS(1, 0)), d = whole(c, JOT_SHAPE(4, 3), false);

    CHECK(jot_vjp(JOT_VARS(y), JOT_VARS(d), JOT_VARS(x, w, y), g), "%s", jot_message(c));
    CHECK(same(g[0], jot_transpose(d, JOT_INTS(1, 0))), "through one map");
    CHECK(same(g[1], jot_reshape(jot_transpose(d, JOT_INTS(1, 0)), JOT_SHAPE(2, 6))), "and on");
    CHECK(same(g[2], d), "by itself");

    n = jot_neg(w); /* of w itself nobody knows that it is minus n */
    p = jot_add(jot_square(n), jot_neg(n));
    CHECK(!jot_grad(jot_sum(p, JOT_ALL_DIMS), JOT_VARS(n), g) && jot_error(c) == JOT_EGRAD &&
          strstr(jot_message(c), "jot_stop_fuse"), "minus of minus: %s", jot_message(c));
    jot_clear(c);
    CHECK(jot_grad(jot_sum(jot_square(n), JOT_ALL_DIMS), JOT_VARS(n), g), "%s", jot_message(c));
    CHECK(same(g[0], jot_scale(n, 2)), "all through it");
    n = jot_cast(jot_cast(w, JOT_F32), JOT_F64); /* which f32 may be short for: it is read */
    p = jot_cast(jot_cast(jot_cast(w, JOT_F32), JOT_F64), JOT_F32);
    CHECK(!jot_grad(jot_sum(jot_add(p, jot_cast(w, JOT_F32)), JOT_ALL_DIMS), JOT_VARS(n), g),
          "casts");
    jot_clear(c);
    jot_close(c);
}

/* What keeps a map keeps no node: a weight that somebody transposed is updated in place. */
static void
test_in_place(void)
{
    uint32_t nodes[2];

    for (int k = 0; k < 2; k++) {
        jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
        jot_Var w = whole(c, JOT_SHAPE(4, 4), true), x = whole(c, JOT_SHAPE(4, 4), false), y;

        if (k) {
            jot_push(c);
            y = jot_keep(jot_swap(jot_reshape(w, JOT_SHAPE(2, 8)), 0, 1));
            jot_pop(c);
            CHECK(jot_stats(c).live_nodes == 3, "%u nodes: w, x, y", jot_stats(c).live_nodes);
            jot_free(y);
        }
        jot_assign(w, jot_add(w, x));
        jot_run(c, JOT_NONE_VARS);
        nodes[k] = jot_stats(c).live_nodes;
        jot_close(c);
    }
    CHECK(nodes[0] == nodes[1], "%u nodes, then %u", nodes[0], nodes[1]);
}

/* Memory refused to a past is no failure: then the gradient by it is refused, or right. */
static void
test_refused(void)
{
    bool reached = true;

    for (long nth = 1; reached && nth < 400; nth++) {
        Heap heap = {0};
        jot_Config config = {.backend = "interp", .give_back = 1, .hooks.realloc = heap_realloc,
                             .hooks.ud = &heap};
        jot_Ctx *c = jot_open(&config);
        jot_Var w = whole(c, JOT_SHAPE(2, 6), true), x = jot_reshape(w, JOT_SHAPE(3, 4)), y, g;

        CHECK(!jot_error(c), "%s", jot_message(c));
        heap.countdown = nth;
        y = jot_sum(jot_square(jot_swap(x, 0, 1)), JOT_ALL_DIMS);
        reached = heap.refused > 0;
        heap.countdown = 0;
        if (jot_grad(y, JOT_VARS(x), &g))
            CHECK(same(g, jot_scale(x, 2)), "allocation %ld refused", nth);
        else
            CHECK(jot_error(c) == JOT_EMEM || jot_error(c) == JOT_EGRAD, "%s", jot_message(c));
        jot_close(c);
        CHECK(!heap.live, "%zu bytes are left", heap.live);
    }
    CHECK(!reached, "more allocations");
}

int
main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 400;
    uint32_t first = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;

    test_hand();
    test_in_place();
    test_refused();
    for (int k = 0; k < n; k++)
        check_program(first + (uint32_t)k, k % 8 == 7);
    CHECK(answered > 6 * refused, "%d answered, %d refused", answered, refused);
    printf("%d gradients, %d refused\n", answered, refused);
    return DONE();
}
