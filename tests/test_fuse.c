/* tests/test_fuse.c - the fuser: kernels of known graphs, in any order of building; levels and work
 * on large graphs; refused memory. Nothing is run. Reasons and places: tests/test_fuse_why.c.
 *
 *     test_fuse [word]     prints the groups of the rows with that word in their name
 *     test_fuse big        prints the fuser's work on large graphs
 *
 * Guards: fuse/epilogue.c, fuse/fuse.c, fuse/label.c, fuse/nest.c, fuse/reward.c,
 * fuse/shift.c, fuse/vertex.c. */
#include "tests/fuse_run.h"

/* ---- kernels --------------------------------------------------------------------------------- */

/* One graph, built once per order; seed 0: as written. */
static int
count_row(const Row *row, FusePolicy policy, uint64_t seed, bool show)
{
    V out[64];
    Run run;
    int n, kernels, expected = policy == FUSE_REWARD ? row->reward : row->kernels;

    rng_state = seed;
    jot_push(ctx);
    n = row->build(out, row->arg);
    CHECK(!jot_error(ctx), "%s: %s", row->name, jot_message(ctx));
    kernels = jot_error(ctx) ? -1 : run_fuse(&run, n, out, policy, seed);
    if (kernels >= 0) {
        check_result(&run, row->name);
        if (expected)
            CHECK(kernels == expected, "%s, seed %llu: %d kernels, not %d", row->name,
                  (unsigned long long)seed, kernels, expected);
        if (policy == FUSE_REWARD && expected)
            CHECK(run.fusion.temp_nbytes <= row->nbytes, "%s, seed %llu: temporaries of %lld bytes",
                  row->name, (unsigned long long)seed, (long long)run.fusion.temp_nbytes);
        if (row->largest) {
            CHECK(run.fusion.max_rank <= 4, "%s: a temporary of rank %d", row->name,
                  run.fusion.max_rank);
            CHECK(run.fusion.max_nelem <= row->largest, "%s: a temporary of %lld elements",
                  row->name, (long long)run.fusion.max_nelem);
        }
        if (show) {
            printf(
                "== %s, %s: %d kernels, rank %d, %lld elements, %lld bytes, %.1f visits an edge\n",
                row->name, policy == FUSE_REWARD ? "reward" : "paper", kernels, run.fusion.max_rank,
                (long long)run.fusion.max_nelem, (long long)run.fusion.temp_nbytes,
                (double)run.fusion.visits / (double)run.fusion.edges);
            dump(&run);
        }
        run_free(&run);
    }
    jot_clear(ctx);
    jot_pop(ctx);
    return kernels;
}

static void
test_rows(const char *only)
{
    const Row rows[] = {ROWS};
    size_t k;
    uint64_t seed;

    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        FusePolicy policy;
        int first;

        for (policy = FUSE_PAPER; policy <= FUSE_REWARD; policy += FUSE_REWARD - FUSE_PAPER) {
            if (only && !strstr(rows[k].name, only))
                continue;
            first = count_row(&rows[k], policy, 0, only != NULL);
            for (seed = 1; seed <= 20 && !only; seed++)
                CHECK(count_row(&rows[k], policy, seed, false) == first,
                      "%s: counts depend on the order", rows[k].name);
        }
    }
}

/* ---- large graphs ---------------------------------------------------------------------------- */

static const int64_t square[2] = {4, 4};

static NodeId
held(NodeId id)
{
    if (id)
        jot_node_ref(ctx, id);
    return id;
}

static NodeId
big_add(NodeId a, NodeId b)
{
    NodeId in2[2];

    in2[0] = a;
    in2[1] = b;
    return held(jot_ew_node(ctx, EW_ADD, JOT_F32, 2, in2));
}

/* A sum along an axis, spread over it again. */
static NodeId
big_sum(NodeId a, int axis)
{
    Ix i = jot_ix_axis(&ctx->ix, axis);
    jot_Scalar zero = {0};
    NodeId r = jot_reduce_node(ctx, JOT_ADD, a, 1, square, &i, 0, NULL, 1, 0, NULL), b;

    b = jot_reindex_node(ctx, r, 2, square, &i, 0, NULL, zero, 0, NULL);
    return held(b);
}

static NodeId
big_shift(NodeId a)
{
    Ix i[2];
    jot_Scalar zero = {0};

    i[0] = jot_ix_add(&ctx->ix, jot_ix_axis(&ctx->ix, 0), jot_ix_const(&ctx->ix, 1));
    i[1] = jot_ix_axis(&ctx->ix, 1);
    return held(jot_reindex_node(ctx, a, 2, square, i, 0, NULL, zero, 0, NULL));
}

typedef enum { BIG_CHAIN, BIG_NEAR, BIG_FAR, BIG_FAN, BIG_LADDER, BIG_KINDS } BigKind;
static const char *const big_name[] = {"chain", "random, near", "random, far", "fan-out", "ladder"};

static NodeId
big_node(BigKind kind, const NodeId *v, uint32_t n)
{
    NodeId a = v[n - 1 - rng(n < 40 ? n : 40)], b = v[rng(n)];

    switch (kind) {
    case BIG_CHAIN: return big_add(v[n - 1], v[0]);
    case BIG_FAN: return n % 3 ? big_add(v[1 + n % 3], v[n - 1 - n % 3]) : big_sum(v[n - 1], 0);
    case BIG_LADDER: return n % 2 ? big_add(v[n - 1], v[n - 2]) : big_sum(v[n - 2], n / 2 % 2);
    case BIG_NEAR: b = v[n - 1 - rng(n < 40 ? n : 40)]; break;
    default: a = rng(2) ? a : v[rng(n)];
    }
    switch (rng(10)) {
    case 0: return big_sum(a, 0);
    case 1: return big_sum(a, 1);
    case 2: return big_shift(a);
    default: return big_add(a, b);
    }
}

static void
test_big(BigKind kind, uint32_t size, FusePolicy policy, bool show)
{
    NodeId *v = calloc(size, sizeof *v);
    uint8_t *asked;
    NodeList list = {0, 0, NULL};
    FuseAsk ask = {.policy = policy};
    Fusion f;
    uint32_t n, k;

    rng_state = size + kind;
    for (n = 0; n < 4; n++)
        v[n] = held(jot_node_of(IN(4, 4), "test", "x"));
    for (; n < size; n++)
        if (!(v[n] = big_node(kind, v, n)))
            break;
    CHECK(n == size, "%s: %s", big_name[kind], jot_message(ctx));
    CHECK(jot_graph_order(ctx, v, n, true, &list), "%s", jot_message(ctx));
    asked = calloc(list.n + 1, 1);
    for (k = 0; k < list.n; k++) /* what nothing reads */
        asked[k] = jot_node(ctx, list.v[k])->refs == 1;
    ask.node = list.v;
    ask.n = list.n;
    ask.asked = asked;
    if (jot_fuse(ctx, &ask, &f)) {
        CHECK(f.visits <= 100 * f.edges, "%s of %u: %.1f visits an edge", big_name[kind], size,
              (double)f.visits / (double)f.edges);
        CHECK(f.ngroups > size / (8 * FUSE_NODES), "%u groups", f.ngroups);
        for (k = 0; k < f.nedge; k++)
            if (f.group[f.edge[k].from] >= f.edge[k].group)
                CHECK(false, "%s: group %u before %u", big_name[kind], f.edge[k].group,
                      f.group[f.edge[k].from]);
        if (show)
            printf("%-14s %s %6u: %.1f visits an edge, %u groups of %u nodes\n", big_name[kind],
                   policy == FUSE_REWARD ? "reward" : "paper ", size,
                   (double)f.visits / (double)f.edges, f.ngroups, list.n);
        jot_fuse_free(ctx, &f);
    } else
        CHECK(false, "%s", jot_message(ctx));
    jot_list_free(ctx, &list);
    for (k = 0; k < n; k++)
        jot_node_unref(ctx, v[k]);
    free(asked);
    free(v);
}

/* ---- refused memory -------------------------------------------------------------------------- */

static void
test_memory(FusePolicy policy)
{
    const Row row = {"two layers", g_twolayer, 1, 17, 6, 0, 0};
    uint64_t n = 1, before;
    size_t live;
    V out[16];
    Run run;
    Fusion f;
    int k = 0, count = row.build(out, row.arg);
    int want = policy == FUSE_REWARD ? row.reward : row.kernels;

    CHECK(run_fuse(&run, count, out, policy, 0) == want, "as many as before");
    before = allocs;
    jot_fuse_free(ctx, &run.fusion);
    CHECK(jot_fuse(ctx, &run.ask, &f), "%s", jot_message(ctx));
    jot_fuse_free(ctx, &f);
    CHECK(allocs - before > 5, "the fuser allocates");
    live = ctx->mem.live_nbytes;
    for (; !k; n++) {
        refuse_at = allocs + n;
        k = jot_fuse(ctx, &run.ask, &f);
        refuse_at = 0;
        CHECK(k == (jot_error(ctx) == JOT_OK), "%s", jot_message(ctx));
        CHECK(k || jot_error(ctx) == JOT_EMEM, "%s", jot_message(ctx));
        CHECK(k ? (int)f.ngroups == want : f.ngroups == 0, "%u groups", f.ngroups);
        jot_clear(ctx);
        jot_fuse_free(ctx, &f);
        CHECK(ctx->mem.live_nbytes == live, "%zu bytes, %zu before", ctx->mem.live_nbytes, live);
    }
    CHECK(n > 5, "refused %d times", (int)n);
    run_free(&run);
}

int
main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    bool show = only && !strcmp(only, "big");
    int k;

    open_ctx();
    test_rows(only);
    if (!only) {
        rng_state = 0;
        jot_push(ctx);
        test_memory(FUSE_PAPER);
        test_memory(FUSE_REWARD);
        jot_pop(ctx);
    }
    for (k = 0; k < BIG_KINDS && (show || !only); k++) {
        test_big((BigKind)k, 10000, FUSE_PAPER, show);
        test_big((BigKind)k, test_many(20000, 90000), FUSE_PAPER, show);
        test_big((BigKind)k, 10000, FUSE_REWARD, show);
        test_big((BigKind)k, test_many(20000, 90000), FUSE_REWARD, show);
    }
    jot_close(ctx);
    return DONE();
}
