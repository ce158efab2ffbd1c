/* tests/fuse_run.h - for tests of the fuser: a context whose n-th allocation can be refused, the
 * fusion of a graph in an order drawn at random, and what every result must satisfy. Nothing is
 * run. */
#ifndef JOT_TEST_FUSE_RUN_H
#define JOT_TEST_FUSE_RUN_H
#include "fuse/fuse.h"
#include "tests/fuse_graphs.h"

static uint64_t allocs, refuse_at;

static inline void *
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

static inline void
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

/* ---- fusing a selection in an order drawn at random ------------------------------------------ */

typedef struct { NodeList list; uint8_t *asked; FuseAsk ask; Fusion fusion; } Run;

/* Any order in which inputs come first. */
static inline void
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

static inline int
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

static inline void
run_free(Run *run)
{
    jot_fuse_free(ctx, &run->fusion);
    jot_list_free(ctx, &run->list);
    free(run->asked);
}

/* ---- what every result must satisfy ---------------------------------------------------------- */

/* The group that computes what node i shows to a member of group g, or 0 if each does. */
static inline void
check_read(const Run *run, const char *name, uint32_t i, uint32_t g)
{
    const Fusion *f = &run->fusion;
    uint32_t p = f->real[i];

    switch (f->place[p]) {
    case PLACE_STORED:
        CHECK(f->group[p] <= g, "%s: group %u runs before group %u, which it reads", name, g,
              f->group[p]);
        break;
    case PLACE_INSIDE:
        CHECK(f->group[p] == g, "%s: %%%u is inside group %u, and group %u reads it", name,
              run->list.v[p], f->group[p], g);
        break;
    default:
        break;
    }
}

static inline uint32_t
position(const Run *run, NodeId id)
{
    uint32_t i;

    for (i = 0; i < run->list.n && run->list.v[i] != id; i++)
        ;
    return run->fusion.real[i];
}

/* A contraction computes nothing again but casts, and cheaply what is larger than all it reads. */
static inline void
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
static inline void
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

/* The dimensions of a member's space lie on axes of the nest, each on its own, which is as
 * long. */
static inline void
check_nest(const char *name, const FuseGroup *group, const Node *space,
           const uint8_t *axis)
{
    uint32_t used = 0;
    int d;

    for (d = 0; d < space->rank; d++) {
        if (space->ext[d] == 1)
            continue;
        CHECK(axis[d] < group->rank && space->ext[d] == group->ext[axis[d]] &&
                  !(used >> axis[d] & 1),
              "%s: dimension %d of a member lies on an axis of its own", name, d);
        used |= axis[d] < 32 ? (uint32_t)1 << axis[d] : 0;
    }
}

static inline void
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
static inline bool
only_product(const Run *run, uint32_t g)
{
    const Fusion *f = &run->fusion;
    uint32_t k, sums = 0;

    for (k = 0; k < f->groups[g].n; k++)
        sums += jot_node(ctx, run->list.v[f->member[f->groups[g].first + k]])->kind == NODE_REDUCE;
    return f->groups[g].contraction && sums == 1;
}

static inline void
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
        bool has = f->place[i] == PLACE_STORED || f->place[i] == PLACE_INSIDE;

        CHECK(has == (f->group[i] != 0), "%s: stored and inside have a group", name);
        CHECK(!run->asked[i] || f->place[i] == PLACE_STORED || f->place[i] == PLACE_LEAF,
              "%s: what was asked is in memory", name);
    }
    CHECK(f->visits <= 100 * f->edges + 100, "%s: %llu visits of %llu edges", name,
          (unsigned long long)f->visits, (unsigned long long)f->edges);
}

static inline void
dump(const Run *run)
{
    Text text = {NULL, NULL, 0, 0};

    text.mem = &ctx->mem;
    jot_fuse_dump(ctx, &run->ask, &run->fusion, &text);
    printf("%s", text.s);
    jot_text_free(&text);
}

#endif
