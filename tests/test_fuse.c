/* tests/test_fuse.c - the fuser: kernels of known graphs, in any order of building; what becomes a
 * temporary; reasons; levels on large graphs; refused memory. Nothing is run. */
#include "fuse/fuse.h"
#include "tests/fuse_graphs.h"

/* ---- a context whose n-th allocation is refused ------------------------------------------- */

static uint64_t allocs, refuse_at;

static void *
test_realloc(void *ud, void *p, size_t old, size_t want)
{
    (void)ud;
    (void)old;
    if (!want) {
        free(p);
        return NULL;
    }
    return ++allocs == refuse_at ? NULL : realloc(p, want);
}

static void
open_ctx(void)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.hooks.realloc = test_realloc;
    config.backend = "interp";
    config.give_back = 1;
    ctx = jot_open(&config);
    if (!ctx || jot_error(ctx)) {
        printf("cannot open a context: %s\n", ctx ? jot_message(ctx) : "no memory");
        exit(1);
    }
    jot_target_default(&ctx->target); /* the same machine everywhere */
}

/* ---- fusing a selection in an order drawn at random --------------------------------------- */

typedef struct { NodeList list; uint8_t *asked; FuseAsk ask; Fusion fusion; } Run;

/* Any order in which inputs come first. */
static void
shuffle_list(NodeList *list)
{
    uint32_t *left = calloc(list->n + 1, sizeof *left), *ready = calloc(list->n + 1, sizeof *ready);
    NodeId *order = calloc(list->n + 1, sizeof *order);
    uint32_t n = 0, done = 0, i, k;

    for (i = 0; i < list->n; i++)
        jot_node(ctx, list->v[i])->at = i;
    for (i = 0; i < list->n; i++) {
        Node *node = jot_node(ctx, list->v[i]);

        left[i] = node->ninputs;
        if (!left[i])
            ready[n++] = i;
    }
    while (n) {
        uint32_t at = rng(n), who = ready[at];

        ready[at] = ready[--n];
        order[done++] = list->v[who];
        for (i = 0; i < list->n; i++) {
            Node *node = jot_node(ctx, list->v[i]);

            for (k = 0; k < node->ninputs; k++)
                if (node->input[k] == list->v[who] && !--left[i])
                    ready[n++] = i;
        }
    }
    CHECK(done == list->n, "every node has its place");
    memcpy(list->v, order, list->n * sizeof *order);
    free(left);
    free(ready);
    free(order);
}

static int
run_fuse(Run *run, int n, const V *out, FusePolicy policy, uint64_t shuffle)
{
    NodeId *root = calloc((size_t)n + 1, sizeof *root);
    uint32_t i;
    int k;

    memset(run, 0, sizeof *run);
    for (k = 0; k < n; k++)
        root[k] = jot_node_of(out[k], "test", "out");
    CHECK(jot_graph_order(ctx, root, (uint32_t)n, true, &run->list), "%s", jot_message(ctx));
    if (shuffle && run->list.n < 1000)
        shuffle_list(&run->list);
    run->asked = calloc(run->list.n + 1, 1);
    for (i = 0; i < run->list.n; i++)
        for (k = 0; k < n; k++)
            run->asked[i] |=
                root[k] == run->list.v[i] && jot_node(ctx, root[k])->kind != NODE_CONST;
    run->ask.node = run->list.v;
    run->ask.n = run->list.n;
    run->ask.asked = run->asked;
    run->ask.policy = policy;
    run->ask.shuffle = shuffle;
    free(root);
    return jot_fuse(ctx, &run->ask, &run->fusion) ? (int)run->fusion.ngroups : -1;
}

static void
run_free(Run *run)
{
    jot_fuse_free(ctx, &run->fusion);
    jot_list_free(ctx, &run->list);
    free(run->asked);
}

/* ---- what every result must satisfy ------------------------------------------------------- */

/* The group that computes what node i shows to a member of group g, or 0 if each does. */
static void
check_read(const Run *run, const char *name, uint32_t i, uint32_t g)
{
    const Fusion *f = &run->fusion;
    uint32_t p = f->real[i];

    switch (f->place[p]) {
    case PLACE_STORED:
        CHECK(f->group[p] <= g, "%s: group %u runs before group %u, which it reads", name, g,
              f->group[p]);
        break;
    case PLACE_INSIDE: case PLACE_STEP:
        CHECK(f->group[p] == g, "%s: %%%u is inside group %u, and group %u reads it", name,
              run->list.v[p], f->group[p], g);
        break;
    default:
        break;
    }
}

static uint32_t
position(const Run *run, NodeId id)
{
    uint32_t i;

    for (i = 0; i < run->list.n && run->list.v[i] != id; i++)
        ;
    return run->fusion.real[i];
}

/* A contraction computes nothing again but casts, and cheaply what is larger than all it reads. */
static void
check_cloned(const Run *run, const char *name, uint32_t i)
{
    Node *node = jot_node(ctx, run->list.v[i]);
    bool cast = node->op == EW_CAST, cheap = !(jot_ew_info[node->op].flags & EW_DEAR);
    uint32_t k;

    CHECK(node->kind != NODE_RANDOM && node->kind != NODE_MAP, "%s: %%%u", name, run->list.v[i]);
    for (k = 0; k < node->ninputs && node->kind == NODE_EW; k++) {
        uint32_t p = position(run, node->input[k]);
        Node *in = jot_node(ctx, run->list.v[p]);

        if (in->kind == NODE_REINDEX && run->fusion.place[p] == PLACE_CLONED) {
            p = position(run, in->input[0]);
            in = jot_node(ctx, run->list.v[p]);
        }
        CHECK(cast || (cheap && (run->fusion.place[p] == PLACE_CLONED || node->nelem > in->nelem)),
              "%s: %%%u is computed in a contraction", name, run->list.v[i]);
    }
}

/* Walk down from the members, or from the sums of a contraction, through what is cloned. */
static void
check_group(const Run *run, const char *name, uint32_t g, bool contraction)
{
    const Fusion *f = &run->fusion;
    uint32_t *stack = malloc((f->n + 1) * sizeof *stack), n = 0, k, j;
    uint8_t *mark = calloc(f->n + 1, 1);

    for (k = 0; k < f->groups[g].n; k++) {
        j = f->member[f->groups[g].first + k];
        if (contraction && jot_node(ctx, run->list.v[j])->kind != NODE_REDUCE)
            continue;
        mark[j] = 1;
        stack[n++] = j;
    }
    while (n) {
        uint32_t i = stack[--n];
        Node *node = jot_node(ctx, run->list.v[i]);

        for (k = 0; k < node->ninputs; k++) {
            j = position(run, node->input[k]);
            check_read(run, name, j, g);
            if (f->place[j] == PLACE_CLONED && !mark[j]) {
                if (contraction)
                    check_cloned(run, name, j);
                mark[j] = 1;
                stack[n++] = j;
            }
        }
    }
    free(mark);
    free(stack);
}

/* The dimensions of a member's space lie on axes of the nest, each on its own, which is as long or
 * as a window of it; a scatter that reads back what the nest computes has others, that it is solved
 * for. */
static void
check_nest(const char *name, const FuseGroup *group, const Node *space,
           const uint8_t *axis)
{
    uint32_t used = 0;
    int d;

    for (d = 0; d < space->rank; d++) {
        if (space->ext[d] == 1)
            continue;
        if (axis[d] == FUSE_SOLVED) {
            CHECK(group->steps, "%s: dimension %d of a member lies on no axis", name, d);
            continue;
        }
        CHECK(axis[d] < group->rank && group->ext[axis[d]] > 0 &&
                  space->ext[d] % group->ext[axis[d]] == 0 &&
                  !(used >> axis[d] & 1),
              "%s: dimension %d of a member lies on an axis of its own", name, d);
        used |= axis[d] < 32 ? (uint32_t)1 << axis[d] : 0;
    }
}

static void
check_space(const Run *run, const char *name, uint32_t g)
{
    const FuseGroup *group = &run->fusion.groups[g];
    uint32_t k;

    CHECK(group->n > 0, "%s: group %u has members", name, g);
    for (k = 0; k < group->n; k++) {
        uint32_t i = run->fusion.member[group->first + k];
        Node *node = jot_node(ctx, run->list.v[i]);

        CHECK(node->kind != NODE_CODE, "%s: user code is no member of its group", name);
        if (node->kind == NODE_PICK)
            continue;
        if (node->kind == NODE_REDUCE)
            node = jot_node(ctx, node->input[0]);
        if (run->fusion.axis[i])
            check_nest(name, group, node, run->fusion.axis[i]);
        else
            CHECK(node->rank == group->rank &&
                      !memcmp(node->ext, group->ext, group->rank * sizeof *group->ext),
                  "%s: a group has one space", name);
    }
}

/* A contraction with what rides on it, and no sums besides: nothing else is in its inner loop. */
static bool
only_product(const Run *run, uint32_t g)
{
    const Fusion *f = &run->fusion;
    uint32_t k, sums = 0;

    for (k = 0; k < f->groups[g].n; k++)
        sums += jot_node(ctx, run->list.v[f->member[f->groups[g].first + k]])->kind == NODE_REDUCE;
    return f->groups[g].contraction && sums == 1;
}

static void
check_result(const Run *run, const char *name)
{
    const Fusion *f = &run->fusion;
    uint32_t g, i;

    for (g = 1; g <= f->ngroups; g++) {
        check_space(run, name, g);
        if (f->n < 1000)
            check_group(run, name, g, false);
        if (f->n < 1000 && only_product(run, g))
            check_group(run, name, g, true);
    }
    for (i = 0; i < f->n; i++) {
        bool has = f->place[i] == PLACE_STORED || f->place[i] == PLACE_INSIDE
                || f->place[i] == PLACE_STEP;

        CHECK(has == (f->group[i] != 0), "%s: stored and inside have a group", name);
        CHECK(!run->asked[i] || f->place[i] == PLACE_STORED || f->place[i] == PLACE_LEAF,
              "%s: what was asked is in memory", name);
    }
    CHECK(f->visits <= 100 * f->edges + 100, "%s: %llu visits of %llu edges", name,
          (unsigned long long)f->visits, (unsigned long long)f->edges);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static void
dump(const Run *run)
{
    Text text = {NULL, NULL, 0, 0};

    text.mem = &ctx->mem;
    jot_fuse_dump(ctx, &run->ask, &run->fusion, &text);
    printf("%s", text.s);
    jot_text_free(&text);
}

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

/* ---- reasons ------------------------------------------------------------------------------ */

static uint32_t
at_of(const Run *run, V v)
{
    return position(run, jot_node_of(v, "test", "v"));
}

/* The one edge from v; its reason is also in the dump. */
static void
check_why(const Run *run, V v, FuseWhy why, const char *what)
{
    const FuseEdge *found = NULL;
    Text text = {NULL, NULL, 0, 0};
    char line[200];
    uint32_t k;

    for (k = 0; k < run->fusion.nedge; k++)
        if (run->fusion.edge[k].from == at_of(run, v))
            found = &run->fusion.edge[k];
    CHECK(found != NULL, "%s: an edge is left", what);
    if (!found)
        return;
    CHECK(found->why == why, "%s: \"%s\", not \"%s\"", what, jot_fuse_why(found->why),
          jot_fuse_why(why));
    CHECK(found->nbytes == jot_nelem(v) * (int64_t)jot_dtype_nbytes(jot_dtype(v)), "%s: %lld bytes",
          what, (long long)found->nbytes);
    text.mem = &ctx->mem;
    jot_fuse_dump(ctx, &run->ask, &run->fusion, &text);
    snprintf(line, sizeof line, "left %%%u -> group %u at %%%u, %lld bytes: %s\n",
             run->list.v[found->from], found->group, run->list.v[found->to],
             (long long)found->nbytes, jot_fuse_why(why));
    CHECK(strstr(text.s, line) != NULL, "%s: the dump says %s", what, line);
    jot_text_free(&text);
}

static void
check_place(const Run *run, V v, FusePlace place, const char *what)
{
    CHECK(run->fusion.place[at_of(run, v)] == place, "%s: place %d, not %d", what,
          run->fusion.place[at_of(run, v)], place);
}

static void
test_rules(void)
{
    V x = IN(8, 8), e = jot_exp(x), y, s, t, u;
    Run run;

    /* rule 1, with a window that motion leaves alone */
    y = jot_exp(jot_reindex(e, SH(8, 8), JOT_INDEX("i0+1", "i1")));
    s = jot_mul(e, y);
    CHECK(run_fuse(&run, 1, &s, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "rule 1");
    check_why(&run, e, WHY_RULE1, "rule 1");
    check_place(&run, e, PLACE_STORED, "rule 1");
    check_place(&run, y, PLACE_INSIDE, "rule 1");
    run_free(&run);

    s = jot_sum(e, D(1));
    t = jot_sqrt(s);
    CHECK(run_fuse(&run, 1, &t, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, s, WHY_RULE2, "rule 2");
    check_place(&run, e, PLACE_INSIDE, "rule 2");
    run_free(&run);

    /* rule 3: e to u directly, and around by a sum */
    u = jot_mul(e, jot_broadcast(s, SH(8, 8), D(1)));
    CHECK(run_fuse(&run, 1, &u, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, e, WHY_RULE3, "rule 3");
    check_why(&run, s, WHY_RULE2, "rule 2 through a broadcast");
    run_free(&run);

    t = jot_stop_fuse(e);
    u = jot_sqrt(t);
    CHECK(run_fuse(&run, 1, &u, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, e, WHY_STOP_FUSE, "stop_fuse");
    CHECK(run.fusion.place[at_of(&run, t)] == PLACE_STORED, "an alias is placed as its node");
    check_result(&run, "stop_fuse");
    run_free(&run);

    CHECK(run_fuse(&run, 1, &u, FUSE_NONE, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    run_free(&run);
    u = jot_sum(jot_sqrt(e), D(0));
    CHECK(run_fuse(&run, 1, &u, FUSE_NONE, 0) == 3, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, e, WHY_POLICY, "policy none");
    run_free(&run);
}

/* Two contractions of one product: it is computed in each. An index variable is in memory. */
static void
test_reasons(void)
{
    V a = IN(16, 8), b = IN(8, 16), x, y, p, out[3], idx;
    Run run;

    x = jot_reindex(a, SH(16, 16, 8), JOT_INDEX("i0", "i2"));
    y = jot_reindex(b, SH(16, 16, 8), JOT_INDEX("i2", "i1"));
    p = jot_mul(x, y);
    out[0] = jot_sum(p, D(0));
    out[1] = jot_sum(p, D(1));
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "contractions");
    check_place(&run, p, PLACE_CLONED, "contractions");
    run_free(&run);
    out[2] = p; /* asked for, it cannot be */
    CHECK(run_fuse(&run, 3, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "contractions, product asked");
    check_why(&run, p, WHY_CONTRACTIONS, "contractions");
    run_free(&run);

    idx = jot_add(labels(16), labels(16));
    out[0] = jot_reindex_ex(a, SH(16), JOT_INDEX("i0", "@e0(i0)"), JOT_NONE_STRS, 0, JOT_VARS(idx));
    CHECK(run_fuse(&run, 1, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, idx, WHY_INDEX, "index variable");
    run_free(&run);
}

/* Caps: a chain is cut into groups of FUSE_NODES, a sum of many variables by FUSE_BUFFERS. */
static void
test_caps(void)
{
    V x = IN(4), y = x;
    Run run;
    int k;

    for (k = 0; k < 10 * FUSE_NODES; k++)
        y = jot_mul(jot_add(y, x), y);
    CHECK(run_fuse(&run, 1, &y, FUSE_PAPER, 0) == 20, "%d groups", (int)run.fusion.ngroups);
    CHECK(run.fusion.edge[0].why == WHY_NODES, "%s", jot_fuse_why(run.fusion.edge[0].why));
    check_result(&run, "chain");
    run_free(&run);
    for (y = x, k = 0; k < 3 * FUSE_BUFFERS; k++)
        y = jot_add(y, IN(4));
    CHECK(run_fuse(&run, 1, &y, FUSE_PAPER, 0) == 4, "%d groups", (int)run.fusion.ngroups);
    CHECK(run.fusion.edge[0].why == WHY_BUFFERS, "%s", jot_fuse_why(run.fusion.edge[0].why));
    run_free(&run);
}

/* ---- who is cloned, who is stored --------------------------------------------------------- */

static void
test_places(void)
{
    V x = IN(8, 8), u = jot_uniform(ctx, JOT_F32, SH(64, 64)), e, r, out[3];
    Run run;

    /* a mask drawn once, read by two groups */
    e = jot_gt(u, jot_scalar(ctx, JOT_F32, 0.5));
    r = jot_cast(e, JOT_F32);
    out[0] = jot_sum(r, D(0));
    out[1] = jot_exp(jot_reindex(r, SH(62, 62), JOT_INDEX("i0+1", "i1+1")));
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, u, PLACE_INSIDE, "random");
    check_place(&run, r, PLACE_STORED, "random");
    run_free(&run);

    /* iota and constants are part of whoever reads them, unless asked for */
    out[1] = jot_iota(ctx, JOT_F32, SH(8, 8), 0);
    out[0] = jot_add(jot_sum(jot_mul(x, out[1]), D(1)),
                     jot_max(jot_add(jot_transpose(x, D(1, 0)), out[1]), D(0)));
    CHECK(run_fuse(&run, 1, out, FUSE_PAPER, 0) == 3, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, out[1], PLACE_CLONED, "iota");
    run_free(&run);
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, out[1], PLACE_STORED, "iota asked");
    check_result(&run, "iota asked");
    run_free(&run);

    /* work moves behind a broadcast, also when the broadcast itself is asked for */
    e = jot_exp(IN(8));
    out[0] = jot_broadcast(e, SH(16, 8), D(0));
    CHECK(run_fuse(&run, 1, out, FUSE_PAPER, 0) == 1, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, e, PLACE_CLONED, "moved");
    check_place(&run, out[0], PLACE_STORED, "moved");
    run_free(&run);
    out[1] = e; /* asked for, it stays */
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, e, PLACE_STORED, "asked");
    run_free(&run);
}

/* A gather at random from something large is stored when two groups read it, a slice never. */
static void
test_dear(void)
{
    V x = IN(1 << 18), i = labels(1 << 18), r, out[2];
    Run run;
    int k;

    for (k = 0; k < 2; k++) {
        r = k ? jot_reindex_ex(x, SH(1 << 18), JOT_INDEX("@e0(i0)"), JOT_NONE_STRS, 0, JOT_VARS(i))
              : jot_slice(x, SH(5), SH(JOT_END), SH(1));
        out[0] = jot_sum(jot_exp(r), D(0));
        out[1] = jot_mul(r, jot_broadcast_to(out[0], jot_shape(r)));
        out[1] = jot_sqrt(jot_reindex(out[1], jot_shape(r), JOT_INDEX("i0+3")));
        CHECK(run_fuse(&run, 1, out + 1, FUSE_PAPER, 0) == 3, "%d groups", (int)run.fusion.ngroups);
        check_place(&run, r, k ? PLACE_STORED : PLACE_CLONED, k ? "gather" : "slice");
        check_result(&run, "gather");
        run_free(&run);
    }
}

/* A sum whose map can be solved has a nest of its own; maps with index variables share one. */
static void
test_scatters(void)
{
    V x = IN(8, 4), i = jot_array(ctx, JOT_I32, SH(8), NULL), e = jot_exp(x), out[3];
    jot_Vars at = JOT_VARS(i);
    Run run;
    int k;

    out[0] = jot_reindex_reduce(JOT_ADD, x, SH(11), JOT_INDEX("i0 + i1"));
    out[1] = jot_reindex_reduce(JOT_MAX, x, SH(18), JOT_INDEX("i0*2 + i1"));
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "siblings");
    run_free(&run);

    out[0] = jot_reindex_reduce(JOT_ADD, e, SH(11), JOT_INDEX("i0 + i1"));
    CHECK(run_fuse(&run, 1, out, FUSE_PAPER, 0) == 1, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, e, PLACE_INSIDE, "what only a scatter needs");
    run_free(&run);
    out[1] = jot_sum(e, D(1));
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, e, PLACE_STORED, "what a scatter and a sum need");
    check_why(&run, e, WHY_SCATTER, "scatter");
    check_result(&run, "scatter and sum");
    run_free(&run);

    /* larger than all it is computed from: not stored */
    out[2] = jot_mul(jot_broadcast(x, SH(8, 4, 3), D(2)),
                     jot_broadcast(IN(3), SH(8, 4, 3), D(0, 1)));
    out[0] = jot_reindex_reduce(JOT_ADD, out[2], SH(14), JOT_INDEX("i0 + i1 + i2"));
    out[1] = jot_reindex_reduce(JOT_ADD, out[2], SH(11, 3), JOT_INDEX("i0 + i1", "i2"));
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, out[2], PLACE_CLONED, "what two scatters need");
    check_result(&run, "two scatters");
    run_free(&run);

    for (k = 0; k < 2; k++)
        out[k] = jot_reindex_reduce_ex(k ? JOT_MAX : JOT_ADD, x, SH(9, 4),
                                       JOT_INDEX("@e0(i0)", "i1"), JOT_NONE_STRS, at);
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 1, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "scatters by index");
    run_free(&run);
}

/* Reindexes that cannot be composed: the chain is cut now and then. */
static void
test_chain(void)
{
    V x = IN(64), y = x;
    Run run;
    int k;

    for (k = 0; k < 4 * FUSE_CHAIN; k++)
        y = jot_pad(y, D(1), D(1), k + 1);
    CHECK(run_fuse(&run, 1, &y, FUSE_PAPER, 0) == 4, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "chain of pads");
    run_free(&run);
}

/* ---- optimisers --------------------------------------------------------------------------- */

/* The updates of all parameters ride on the kernels that compute their gradients: at most one more
 * launch, for scalars. */
static void
test_step(bool adam)
{
    jot_Ints sh[10] = {SH(6, 1, 5, 5), SH(6), SH(16, 6, 5, 5), SH(16), SH(400, 120), SH(120),
                       SH(120, 84), SH(84), SH(84, 10), SH(10)};
    V p[10], g[11];
    jot_Optim *o;
    int k, grads, all;

    open_ctx();
    for (k = 0; k < 10; k++)
        p[k] = jot_param(ctx, JOT_F32, sh[k], NULL);
    o = adam ? jot_adam(jot_vars(10, p), 1e-3, 0.9, 0.999, 1e-8)
             : jot_sgd(jot_vars(10, p), 0.1, 0.9, 1e-4);
    CHECK(o != NULL, "%s", jot_message(ctx));
    g[10] = xent(lenet(IN(64, 1, 28, 28), p), labels(64));
    jot_grad(g[10], p, 10, g);
    grads = jot_fuse_count(ctx, jot_vars(11, g), FUSE_REWARD, NULL);
    CHECK(jot_step(o, g), "%s", jot_message(ctx));
    all = jot_fuse_count(ctx, jot_vars(1, g + 10), FUSE_REWARD, NULL);
    CHECK(grads > 10 && all <= grads + 1, "%d kernels for a step, %d for its gradients", all,
          grads);
    jot_optim_free(o);
    jot_close(ctx);
}

/* ---- user code ---------------------------------------------------------------------------- */

static void
test_code(void)
{
    V x = IN(8, 8), e = jot_exp(x), t = jot_transpose(x, D(1, 0)), out[2], y, in2[2];
    const char *names[2] = {"a", "b"};
    jot_CodeOut outs[2] = {{"p", JOT_F32, {0, NULL}, 0}, {"q", JOT_F32, {0, NULL}, 1}};
    jot_Code code;
    Run run;

    in2[0] = e;
    in2[1] = t;
    memset(&code, 0, sizeof code);
    code.name = "swap";
    code.inputs = code.outputs = 2;
    code.in = in2;
    code.in_names = names;
    code.out = outs;
    code.source = "for (int64_t i = 0; i < p_n; i++) p[i] = b[i], q[i] = a[i];";
    if (!jot_code(ctx, &code, out)) {
        SKIP("user code: %s", jot_message(ctx));
        jot_clear(ctx);
        return;
    }
    y = jot_add(jot_sqrt(out[0]), out[1]);
    CHECK(run_fuse(&run, 1, &y, FUSE_PAPER, 0) == 4, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "code");
    check_why(&run, e, WHY_CODE, "into code");
    check_why(&run, t, WHY_CODE, "into code");
    check_why(&run, out[0], WHY_CODE, "out of code");
    check_place(&run, t, PLACE_STORED, "what code reads");
    run_free(&run);
}

/* ---- large graphs ------------------------------------------------------------------------- */

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
    FuseAsk ask = {NULL, 0, NULL, policy, false, 0};
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

/* ---- refused memory ----------------------------------------------------------------------- */

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
    before = ctx->mem.live_nbytes;
    for (n = 1, k = -1; k < 0; n++) {
        refuse_at = allocs + n;
        k = jot_fuse_count(ctx, jot_vars(count, out), policy, &f);
        refuse_at = 0;
        CHECK(k == want || (k < 0 && jot_error(ctx) == JOT_EMEM), "%d: %s", k, jot_message(ctx));
        jot_clear(ctx);
        CHECK(ctx->mem.live_nbytes == before, "bytes as before");
    }
    CHECK((int)f.ngroups == want && f.max_rank == 2 && !f.place, "statistics without arrays");
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
        test_rules();
        test_reasons();
        test_caps();
        test_places();
        test_dear();
        test_scatters();
        test_chain();
        test_code();
        test_memory(FUSE_PAPER);
        test_memory(FUSE_REWARD);
        jot_pop(ctx);
    }
    for (k = 0; k < BIG_KINDS && (show || !only); k++) {
        test_big((BigKind)k, 10000, FUSE_PAPER, show);
        test_big((BigKind)k, 90000, FUSE_PAPER, show);
        test_big((BigKind)k, 10000, FUSE_REWARD, show);
        test_big((BigKind)k, 90000, FUSE_REWARD, show);
    }
    jot_close(ctx);
    if (!only) {
        test_step(false);
        test_step(true);
    }
    return DONE();
}
