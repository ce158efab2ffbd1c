/* tests/test_fuse_why.c - the fuser: why an edge stays between kernels, who is cloned and who is
 * stored, updates of optimisers, user code. Nothing is run. Counts: tests/test_fuse.c.
 *
 * Guards: fuse/blocks.c, fuse/clone.c, fuse/dump.c, fuse/epilogue.c, fuse/fuse.c, fuse/join.c,
 * fuse/label.c, fuse/legal.c, fuse/move.c, fuse/nest.c, fuse/pieces.c, fuse/place.c, fuse/reads.c,
 * fuse/reward.c, fuse/shift.c, fuse/split.c, fuse/vertex.c, nn/optim.c. */
#include "tests/fuse_run.h"
#include "nn.h"

/* ---- reasons --------------------------------------------------------------------------------- */

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
    u = jot_mul(e, jot_broadcast(s, SH(8, 8), I(1)));
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

/* Sums of products over windows, which run along an image or against it, and their mean. */
static void
test_windows(void)
{
    static const char *const to[2][2] = {{"i2+i4", "i3+i5"}, {"i2-i4+2", "i3-i5+2"}};
    int k;

    for (k = 0; k < 2; k++) {
        jot_Ints space = SH(2, 8, 24, 24, 3, 3);
        V x = jot_reindex(IN(2, 8, 26, 26), space, JOT_INDEX("i0", "i1", to[k][0], to[k][1]));
        V w = jot_reindex(IN(8, 3, 3), space, JOT_INDEX("i1", "i4", "i5"));
        V y = jot_sum(jot_mul(x, w), D(4, 5)), z = jot_sub(y, jot_mean(y, JOT_KEEP(2, 3)));
        Run run;

        CHECK(run_fuse(&run, 1, &z, FUSE_REWARD, 0) == 2, "%s: %d groups", to[k][0],
              (int)run.fusion.ngroups);
        check_why(&run, y, WHY_WINDOWS, to[k][0]);
        run_free(&run);
    }
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

/* ---- who is cloned, who is stored ------------------------------------------------------------ */

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
                     jot_max(jot_add(jot_transpose(x, I(1, 0)), out[1]), D(0)));
    CHECK(run_fuse(&run, 1, out, FUSE_PAPER, 0) == 3, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, out[1], PLACE_CLONED, "iota");
    run_free(&run);
    CHECK(run_fuse(&run, 2, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, out[1], PLACE_STORED, "iota asked");
    check_result(&run, "iota asked");
    run_free(&run);

    /* work moves behind a broadcast, also when the broadcast itself is asked for */
    e = jot_exp(IN(8));
    out[0] = jot_broadcast(e, SH(16, 8), I(0));
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

/* What contractions want in memory after all, a slice, is so in the next run alone: in this one a
 * reindex is no vertex, and scatters that leave their groups place everything anew. */
static void
test_later(void)
{
    V w = IN(20, 20), s, q, g;
    Run run;
    int k;

    s = jot_slice(jot_scale(w, .05), I(0, 0), I(2, 2), I(1, 1));
    q = jot_matmul(s, s);
    CHECK(jot_grad(jot_sum(jot_tanh(jot_stack(JOT_VARS(q, q), 2)), JOT_ALL_DIMS), JOT_VARS(w), &g),
          "%s",
          jot_message(ctx));
    for (k = 0; k < 20; k++) {
        CHECK(run_fuse(&run, 1, &g, k % 2 ? FUSE_PAPER : FUSE_REWARD, (uint64_t)k / 2) ==
                  (k % 2 ? 8 : 7),
              "%d groups", (int)run.fusion.ngroups);
        check_result(&run, "slices of what is scaled");
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
    out[2] = jot_mul(jot_broadcast(x, SH(8, 4, 3), I(2)),
                     jot_broadcast(IN(3), SH(8, 4, 3), I(0, 1)));
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

/* What is added to sums at places that are data begins them, if nothing else reads them and nothing
 * else is stored of it. Sums of halves are floats, which are read by their rounding; the largest of
 * halves are halves. */
static void
test_begins(void)
{
    V x = IN(9, 4), y = IN(8, 4), at = jot_array(ctx, JOT_I32, SH(8), NULL), r, out[2];
    const jot_Strs map = JOT_INDEX("@e0(i0)", "i1");
    Run run;

    r = jot_reindex_reduce_ex(JOT_ADD, y, SH(9, 4), map, JOT_NONE_STRS, JOT_VARS(at));
    out[0] = jot_add(jot_exp(x), r);
    CHECK(run_fuse(&run, 1, out, FUSE_REWARD, 0) == 1, "%d groups", (int)run.fusion.ngroups);
    check_place(&run, r, PLACE_INSIDE, "sums that begin with something");
    check_result(&run, "begun");
    run_free(&run);
    CHECK(run_fuse(&run, 1, out, FUSE_PAPER, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, r, WHY_RULE2, "begun, by the rules");
    run_free(&run);

    out[1] = r;
    CHECK(run_fuse(&run, 2, out, FUSE_REWARD, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, r, WHY_BEGINS, "sums that are asked for");
    check_result(&run, "sums that are asked for");
    run_free(&run);
    out[1] = jot_sqrt(out[0]);
    CHECK(run_fuse(&run, 2, out, FUSE_REWARD, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, r, WHY_BEGINS, "read where it is stored");
    run_free(&run);
    out[0] = jot_sub(x, r);
    CHECK(run_fuse(&run, 1, out, FUSE_REWARD, 0) == 2, "%d groups", (int)run.fusion.ngroups);
    check_why(&run, r, WHY_BEGINS, "a difference");
    run_free(&run);
    for (int k = 0; k < 2; k++) {
        r = jot_reindex_reduce_ex(k ? JOT_MAX : JOT_ADD, jot_cast(y, JOT_F16), SH(9, 4), map,
                                  JOT_NONE_STRS, JOT_VARS(at));
        out[0] = (k ? jot_maximum : jot_add)(jot_cast(x, JOT_F16), r);
        CHECK(run_fuse(&run, 1, out, FUSE_REWARD, 0) == 2 - k, "%d groups",
              (int)run.fusion.ngroups);
        check_result(&run, "halves");
        run_free(&run);
    }
}

/* Reindexes that cannot be composed: the chain is cut now and then. */
static void
test_chain(void)
{
    V x = IN(64), y = x;
    Run run;
    int k;

    for (k = 0; k < 4 * FUSE_CHAIN; k++)
        y = jot_pad(y, I(1), I(1), k + 1);
    CHECK(run_fuse(&run, 1, &y, FUSE_PAPER, 0) == 4, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "chain of pads");
    run_free(&run);
}

/* The gradients of a concatenation's parts: as many to a kernel as it has room for. */
static void
test_parts(void)
{
    enum { PARTS = 3000 };
    static V p[PARTS], g[PARTS];
    V x;
    Run run;
    int k;

    open_ctx();
    for (k = 0; k < PARTS; k++)
        p[k] = jot_param(ctx, JOT_F32, SH(2, 3), NULL);
    jot_grad(jot_sum(jot_square(jot_concat(jot_vars(PARTS, p), 0)), JOT_ALL_DIMS),
             jot_vars(PARTS, p), g);
    k = count_kernels(PARTS, g);
    CHECK(k > 0 && k <= 2 * (PARTS / (FUSE_BUFFERS - 2) + 1), "%d kernels", k);
    x = jot_exp(IN(400, 3)); /* equal ones go together */
    for (k = 0; k < 40; k++)
        g[k] = k < 20 ? jot_slice(x, I(k, 0), I(k + 7, 3), I(1, 1))
                      : jot_slice(x, I(2 * k, 0), I(2 * k + 8, 3), I(2, 1));
    CHECK(run_fuse(&run, 40, g, FUSE_REWARD, 0) < 10, "%d groups", (int)run.fusion.ngroups);
    check_result(&run, "slices");
    run_free(&run);
    jot_close(ctx);
}

/* ---- optimisers ------------------------------------------------------------------------------ */

enum { SGD, ADAM, ADAMW, LION, OPTIMS };

/* LeNet's parameters, and what moves them. */
static jot_Optim
optimiser(int kind, V p[10])
{
    jot_Ints sh[10] = {SH(6, 1, 5, 5), SH(6), SH(16, 6, 5, 5), SH(16), SH(400, 120), SH(120),
                       SH(120, 84), SH(84), SH(84, 10), SH(10)};
    jot_Optim o;

    open_ctx();
    for (int k = 0; k < 10; k++)
        p[k] = jot_param(ctx, JOT_F32, sh[k], NULL);
    o = kind == SGD    ? jot_sgd(jot_vars(10, p), 0.1, 0.9, 1e-4)
        : kind == ADAM ? jot_adam(jot_vars(10, p), 1e-3, 0.9, 0.999, 1e-8)
        : kind == LION ? jot_lion(jot_vars(10, p), 1e-3, 0.9, 0.99, 0.1)
                       : jot_adamw(jot_vars(10, p), 1e-3, 0.9, 0.999, 1e-8, 0.1);
    CHECK(jot_optim_ok(o), "%s", jot_message(ctx));
    return o;
}

/* The updates of all parameters ride on the kernels that compute their gradients: at most one more
 * launch, for scalars. */
static void
test_step(int kind)
{
    V p[10], g[11];
    jot_Optim o = optimiser(kind, p);
    int grads, all;

    g[10] = xent(lenet(IN(64, 1, 28, 28), p), labels(64));
    jot_grad(g[10], jot_vars(10, p), g);
    grads = count_kernels(11, g);
    CHECK(jot_step(o, jot_vars(10, g)), "%s", jot_message(ctx));
    all = count_kernels(1, g + 10);
    CHECK(grads > 10 && all <= grads + 1, "%d kernels for a step, %d for its gradients", all,
          grads);
    jot_optim_free(o);
    jot_close(ctx);
}

/* Of gradients that are there a launch moves all that a parameter has: Lion's momentum and its
 * parameter have nothing in common but what they read. */
static void
test_readers(int kind)
{
    V p[10], g[10];
    jot_Optim o = optimiser(kind, p);
    int all;

    for (int k = 0; k < 10; k++)
        g[k] = jot_param(ctx, JOT_F32, jot_shape(p[k]), NULL);
    CHECK(jot_step(o, jot_vars(10, g)), "%s", jot_message(ctx));
    all = count_kernels(10, p);
    CHECK(all <= 10, "optimiser %d: %d kernels for 10 parameters", kind, all);
    jot_optim_free(o);
    jot_close(ctx);
}

/* ---- user code ------------------------------------------------------------------------------- */

static void
test_code(void)
{
    V x = IN(8, 8), e = jot_exp(x), t = jot_transpose(x, I(1, 0)), out[2], y, in2[2];
    const char *names[2] = {"a", "b"};
    jot_CodeOut outs[2] = {{.name = "p", .like = "a"}, {.name = "q", .like = "b"}};
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

int
main(void)
{
    open_ctx();
    jot_push(ctx);
    test_rules();
    test_windows();
    test_reasons();
    test_caps();
    test_places();
    test_dear();
    test_later();
    test_scatters();
    test_begins();
    test_chain();
    test_code();
    jot_pop(ctx);
    jot_close(ctx);
    test_parts();
    for (int kind = 0; kind < OPTIMS; kind++) {
        test_step(kind);
        test_readers(kind);
    }
    return DONE();
}
