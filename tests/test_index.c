/* tests/test_index.c - linear forms against naive evaluation: random expressions are built twice,
 * as a tree that nobody simplifies and through the builders, and compared at every point of their
 * space; then ranges, substitution, and the identities that schedules rely on.
 *
 * Guards: base.c, ops/index/simplify.c. */
#include "ops/index/index.h"
#include "tests/test.h"

static void *
hook(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud;
    (void)old_nbytes;
    if (!new_nbytes) {
        free(p);
        return NULL;
    }
    return realloc(p, new_nbytes);
}

static uint64_t seed = 1;

static int
draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

enum { AXES = 4, TREE = 64 };
typedef struct { char op; int a, b; int64_t k; } Tree;

static Tree tree[TREE];
static int trees;

static int64_t
tree_eval(int t, const int64_t *at)
{
    const Tree *q = &tree[t];
    int64_t a, b;

    if (q->op == 'c')
        return q->k;
    if (q->op == 'i')
        return at[q->k];
    a = tree_eval(q->a, at);
    if (q->op == '*')
        return a * q->k;
    if (q->op == '/')
        return q->k ? jot_floor_div(a, q->k) : 0;
    if (q->op == '%')
        return q->k ? jot_floor_mod(a, q->k) : 0;
    b = tree_eval(q->b, at);
    switch (q->op) {
    case '+': return a + b;
    case '-': return a - b;
    case 'x': return a * b;
    case '<': return a < b;
    case '=': return a == b;
    case '&': return a && b;
    case '|': return a || b;
    default:  return !a;
    }
}

static int
tree_new(char op, int a, int b, int64_t k)
{
    tree[trees].op = op;
    tree[trees].a = a;
    tree[trees].b = b;
    tree[trees].k = k;
    return trees++;
}

static int
tree_random(int depth)
{
    static const char ops[] = "++--**//%%++x<=&|!";
    static const int64_t ks[] = {2, 3, 4, 6, 8, 12, 5, 1, -1, -2, -3, 7, 16, 0};
    char op;
    int a, b;

    if (depth == 0 || trees > TREE - 8)
        return draw(3) ? tree_new('i', 0, 0, draw(AXES)) : tree_new('c', 0, 0, draw(9) - 3);
    op = ops[draw((int)sizeof ops - 1)];
    a = tree_random(depth - 1);
    b = strchr("*/%!", op) ? 0 : tree_random(depth - 1);
    return tree_new(op, a, b, ks[draw(14)]);
}

static Ix
tree_ix(IxPool *p, int t, const Space *s)
{
    const Tree *q = &tree[t];
    Ix a, b;

    if (q->op == 'c')
        return jot_ix_const(p, q->k);
    if (q->op == 'i')
        return jot_ix_axis(p, (int)q->k);
    a = tree_ix(p, q->a, s);
    if (q->op == '*')
        return jot_ix_scale(p, a, q->k);
    if (q->op == '/')
        return jot_ix_div(p, a, jot_ix_const(p, q->k), s);
    if (q->op == '%')
        return jot_ix_mod(p, a, jot_ix_const(p, q->k), s);
    if (q->op == '!')
        return jot_ix_not(p, a);
    b = tree_ix(p, q->b, s);
    switch (q->op) {
    case '+': return jot_ix_add(p, a, b);
    case '-': return jot_ix_sub(p, a, b);
    case 'x': return jot_ix_mul(p, a, b, NULL);
    case '<': return jot_ix_lt(p, a, b, s);
    case '=': return jot_ix_eq0(p, jot_ix_sub(p, a, b), s);
    case '&': return jot_ix_and(p, a, b);
    default:  return jot_ix_or(p, a, b);
    }
}

static void
compare(IxPool *p, int t, Ix ix, const Space *s)
{
    int64_t at[AXES], lo, hi, n = 1, i, bad = 0, out = 0;
    bool known = jot_ix_range(p, ix, s, &lo, &hi);
    int k;

    for (k = 0; k < AXES; k++)
        n *= s->ext[k];
    for (i = 0; i < n; i++) {
        int64_t r = i, v, w;

        for (k = 0; k < AXES; k++) {
            at[k] = r % s->ext[k] + (s->lo ? s->lo[k] : 0);
            r /= s->ext[k];
        }
        v = tree_eval(t, at);
        w = jot_ix_eval(p, ix, at, NULL, NULL);
        bad += v != w;
        out += known && (w < lo || w > hi);
    }
    CHECK(!bad && !out, "seed %llu: %lld points differ, %lld out of range",
          (unsigned long long)seed, (long long)bad, (long long)out);
}

static void
test_random(IxPool *p, int rounds)
{
    static const int64_t exts[] = {1, 2, 3, 4, 5, 6, 8};
    int64_t ext[AXES], lo[AXES];
    Ix map[AXES];
    Space s;
    int i, k;

    for (i = 0; i < rounds; i++) {
        int t, sub[AXES];
        Ix ix, iy;

        trees = 0;
        for (k = 0; k < AXES; k++) {
            ext[k] = exts[draw(7)];
            lo[k] = draw(5) - 2;
        }
        s.n = AXES;
        s.ext = ext;
        s.lo = draw(2) ? lo : NULL;
        t = tree_random(1 + draw(4));
        ix = tree_ix(p, t, &s);
        CHECK(ix, "poison from a small expression");
        compare(p, t, ix, &s);
        /* the same without ranges, then with the axes replaced by expressions */
        ix = tree_ix(p, t, NULL);
        compare(p, t, ix, &s);
        for (k = 0; k < AXES; k++) {
            sub[k] = trees < TREE - 16 ? tree_random(1) : tree_new('i', 0, 0, k);
            map[k] = tree_ix(p, sub[k], &s);
        }
        iy = jot_ix_subst(p, ix, AXES, map, NULL, &s);
        {
            int64_t at[AXES], in[AXES];

            for (k = 0; k < AXES; k++)
                at[k] = (s.lo ? lo[k] : 0) + draw((int)ext[k]);
            for (k = 0; k < AXES; k++)
                in[k] = tree_eval(sub[k], at);
            CHECK(tree_eval(t, in) == jot_ix_eval(p, iy, at, NULL, NULL), "substitution");
        }
    }
}

static void
is(IxPool *p, Ix ix, const char *want)
{
    Text t = {NULL, NULL, 0, 0};
    char buf[200];

    t.s = buf;
    t.cap = sizeof buf;
    buf[0] = 0;
    jot_ix_print(p, ix, &t);
    CHECK(!strcmp(buf, want), "%s instead of %s", buf, want);
}

static void
test_identities(IxPool *p)
{
    int64_t ext[] = {7, 4, 3, 16};
    Space s = {4, ext, NULL};
    Ix i = jot_ix_axis(p, 0), j = jot_ix_axis(p, 1), k = jot_ix_axis(p, 2), l = jot_ix_axis(p, 3);
    Ix c4 = jot_ix_const(p, 4), c12 = jot_ix_const(p, 12), c3 = jot_ix_const(p, 3);
    Ix x = jot_ix_add(p, jot_ix_scale(p, i, 4), j);
    Ix flat = jot_ix_add(p, jot_ix_scale(p, jot_ix_add(p, jot_ix_scale(p, i, 4), j), 3), k);
    Ix d, d4, m;

    is(p, jot_ix_div(p, x, c4, &s), "i0");
    is(p, jot_ix_mod(p, x, c4, &s), "i1");
    is(p, jot_ix_div(p, flat, c12, &s), "i0");
    is(p, jot_ix_mod(p, jot_ix_div(p, flat, c3, &s), c4, &s), "i1");
    is(p, jot_ix_mod(p, flat, c3, &s), "i2");
    d = jot_ix_div(p, l, c3, &s);
    m = jot_ix_mod(p, l, c3, &s);
    CHECK(jot_ix_add(p, jot_ix_scale(p, d, 3), m) == l, "x/3*3 + x%%3 is x");
    d4 = jot_ix_div(p, d, c4, NULL);
    CHECK(jot_ix_add(p, jot_ix_add(p, jot_ix_scale(p, d4, 12),
                                   jot_ix_scale(p, jot_ix_mod(p, d, c4, NULL), 3)), m) == l,
          "x/12*12 + x/3%%4*3 + x%%3 is x: three dimensions flattened");
    CHECK(jot_ix_div(p, d, c4, &s) == jot_ix_div(p, l, c12, &s), "x/3/4 is x/12");
    CHECK(jot_ix_mod(p, jot_ix_mod(p, l, c12, NULL), c4, &s) == jot_ix_mod(p, l, c4, &s),
          "x%%12%%4 is x%%4");
    CHECK(jot_ix_add(p, i, j) == jot_ix_add(p, j, i), "one form for a sum");
    CHECK(!jot_ix_add(p, 0, i) && !jot_ix_axis(p, 64), "poison");
    CHECK(!jot_ix_scale(p, jot_ix_scale(p, i, INT64_MAX / 2), 4), "overflow is poison");
    CHECK(jot_ix_inside(p, x, 28, &s) && !jot_ix_inside(p, x, 27, &s), "inside");
}

int
main(int argc, char **argv)
{
    Mem mem;
    IxPool pool;
    size_t bytes;

    memset(&mem, 0, sizeof mem);
    mem.hooks.realloc = hook;
    CHECK(jot_ix_open(&pool, &mem), "open");
    test_identities(&pool);
    test_random(&pool, argc > 1 ? atoi(argv[1]) : 20000);
    jot_ix_close(&pool);
    bytes = mem.live_nbytes;
    CHECK(bytes == 0, "%zu bytes left", bytes);
    return DONE();
}
