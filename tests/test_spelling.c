/* tests/test_spelling.c - a contraction is known by its index maps, however it is spelled: with
 * products, sums, slices, transpositions, scales around it, forward, backward, backward of that.
 * Judged by the kernels that are built: what does the work of a contraction is one, of two loads.
 * Nothing is run.
 *
 * Guards: ccode/contract/chain.c, ccode/contract/contract.c, ccode/contract/products.c. */
#include "ccode/build/build.h"
#include "ccode/contract/chain.h"
#include "ccode/contract/products.h"
#include "fuse/fuse.h"
#include "tests/rates.h"
#include "tests/test.h"

static jot_Ctx *ctx;

static jot_Var
input(jot_Ints shape)
{
    return jot_param(ctx, JOT_F32, shape, NULL);
}

/* ---- contractions ------------------------------------------------------------------------- */

typedef jot_Var Spell(jot_Var *x, jot_Var *w);

static jot_Var
s_matmul(jot_Var *x, jot_Var *w)
{
    *x = input(JOT_SHAPE(24, 40));
    *w = input(JOT_SHAPE(40, 32));
    return jot_matmul(*x, *w);
}

static jot_Var
s_linear(jot_Var *x, jot_Var *w)
{
    *x = input(JOT_SHAPE(24, 40));
    *w = input(JOT_SHAPE(32, 40));
    return jot_matmul(*x, jot_transpose(*w, JOT_INTS(1, 0)));
}

/* Products of elements of one large space, summed by hand. */
static jot_Var
s_listing(jot_Var *x, jot_Var *w)
{
    jot_Ints space = JOT_SHAPE(24, 32, 40);

    *x = input(JOT_SHAPE(40, 24));
    *w = input(JOT_SHAPE(32, 40));
    return jot_sum(jot_mul(jot_reindex(*x, space, JOT_INDEX("i2", "i0")),
                           jot_broadcast(*w, space, JOT_INTS(0))), JOT_DIMS(2));
}

static jot_Var
s_batched(jot_Var *x, jot_Var *w)
{
    *x = input(JOT_SHAPE(6, 20, 24));
    *w = input(JOT_SHAPE(6, 24, 28));
    return jot_matmul(*x, *w);
}

static jot_Var
conv(jot_Var *x, jot_Var *w, int stride, int pad, int dilation, int groups)
{
    jot_Conv how = {{0, 0}, {0, 0}, {0, 0}, 0};

    how.stride[0] = how.stride[1] = stride;
    how.pad[0] = how.pad[1] = pad;
    how.dilation[0] = how.dilation[1] = dilation;
    how.groups = groups;
    *x = input(JOT_SHAPE(3, 12, 10, 10));
    *w = input(JOT_SHAPE(16, 12 / groups, 3, 3));
    return jot_conv2d(*x, *w, &how);
}

static jot_Var s_conv(jot_Var *x, jot_Var *w) { return conv(x, w, 1, 1, 1, 1); }
static jot_Var s_strided(jot_Var *x, jot_Var *w) { return conv(x, w, 2, 1, 1, 1); }
static jot_Var s_dilated(jot_Var *x, jot_Var *w) { return conv(x, w, 1, 2, 2, 1); }
static jot_Var s_grouped(jot_Var *x, jot_Var *w) { return conv(x, w, 1, 1, 1, 2); }

/* The gradient of a convolution by its input, as a layer. */
static jot_Var
s_transposed(jot_Var *x, jot_Var *w)
{
    jot_Conv how = {{2, 2}, {1, 1}, {1, 1}, 1};
    jot_Var at = jot_zeros(ctx, JOT_F32, JOT_SHAPE(3, 16, 20, 20)), y;

    *x = input(JOT_SHAPE(3, 12, 10, 10));
    *w = input(JOT_SHAPE(12, 16, 4, 4));
    at = jot_param_of(at);
    jot_vjp(JOT_VARS(jot_conv2d(at, *w, &how)), JOT_VARS(*x), JOT_VARS(at), &y);
    return y;
}

static const struct { const char *name; Spell *spell; } spelled[] = {
    {"matmul", s_matmul}, {"linear", s_linear}, {"listing", s_listing}, {"batched", s_batched},
    {"conv", s_conv}, {"strided", s_strided}, {"dilated", s_dilated}, {"grouped", s_grouped},
    {"transposed", s_transposed},
};

/* ---- what stands around ------------------------------------------------------------------- */

typedef jot_Var Around(jot_Var y);

static jot_Ints
half(jot_Var y, int64_t *v)
{
    int d;

    for (d = 0; d < jot_rank(y); d++)
        v[d] = d == 1 ? jot_extent(y, d) / 2 : jot_extent(y, d);
    return jot_ints(jot_rank(y), v);
}

static jot_Var a_plain(jot_Var y) { return y; }
static jot_Var a_scaled(jot_Var y) { return jot_scale(y, 0.3); }
static jot_Var a_squared(jot_Var y) { return jot_mul(y, y); }
static jot_Var a_relu(jot_Var y) { return jot_relu(y); }
static jot_Var a_rows(jot_Var y) { return jot_sum(jot_mul(y, y), JOT_DIMS(0)); }

static jot_Var
a_weighted(jot_Var y)
{
    return jot_mul(y, jot_uniform(ctx, JOT_F32, jot_shape(y)));
}

static jot_Var
a_bias(jot_Var y)
{
    return jot_sigmoid(jot_add(y, input(JOT_SHAPE(jot_extent(y, -1)))));
}

static jot_Var
a_sliced(jot_Var y)
{
    int64_t zero[JOT_MAX_RANK] = {0}, end[JOT_MAX_RANK], one[JOT_MAX_RANK];
    int d;

    for (d = 0; d < jot_rank(y); d++)
        one[d] = 1;
    return jot_slice(y, jot_ints(jot_rank(y), zero), half(y, end), jot_ints(jot_rank(y), one));
}

/* Both halves, each through a function of its own: the gates of a recurrent cell. */
static jot_Var
a_gates(jot_Var y)
{
    int64_t from[JOT_MAX_RANK] = {0}, end[JOT_MAX_RANK], one[JOT_MAX_RANK];
    int d, rank = jot_rank(y);
    jot_Var first;

    for (d = 0; d < rank; d++)
        one[d] = 1;
    first = jot_slice(y, jot_ints(rank, from), half(y, end), jot_ints(rank, one));
    from[1] = end[1];
    end[1] *= 2;
    return jot_mul(jot_sigmoid(first), jot_tanh(jot_slice(y, jot_ints(rank, from),
                                                          jot_ints(rank, end),
                                                          jot_ints(rank, one))));
}

static jot_Var
a_transposed(jot_Var y)
{
    int64_t dim[JOT_MAX_RANK];
    int d;

    for (d = 0; d < jot_rank(y); d++)
        dim[d] = jot_rank(y) - 1 - d;
    return jot_transpose(y, jot_ints(jot_rank(y), dim));
}

static jot_Var
a_concat(jot_Var y)
{
    return jot_concat(JOT_VARS(y, jot_exp(y)), 1);
}

static const struct { const char *name; Around *around; } arounds[] = {
    {"as it is", a_plain}, {"scaled", a_scaled}, {"squared", a_squared}, {"relu", a_relu},
    {"rows of squares", a_rows}, {"weighted", a_weighted}, {"bias and sigmoid", a_bias},
    {"sliced", a_sliced}, {"gates", a_gates}, {"transposed", a_transposed}, {"concat", a_concat},
};

/* ---- the judge ---------------------------------------------------------------------------- */

static double
elements(const KBuf *b)
{
    double n = 1;
    int d;

    for (d = 0; d < b->rank; d++)
        n *= (double)b->ext[d];
    return n;
}

static bool
is_load(const Kernel *k, uint32_t value)
{
    const Value *v = &k->values.v[value];

    while (v->op == VAL_EW && v->ew == EW_CAST)
        v = &k->values.v[k->args.v[v->arg]];
    return v->op == VAL_LOAD;
}

/* Several by blocks of rows: each is a contraction there. */
static bool
judge_chain(Kernel *k, int *contractions)
{
    Contract c;
    Sched s;
    uint32_t i;

    for (i = 1; i < k->values.n; i++)
        *contractions += jot_contract_axes(k, i, &c);
    if (!jot_chain_sched(&s, k, &ctx->target, 1))
        return false;
    jot_sched_close(&s);
    return true;
}

/* A contraction of two loads, or no more work than a few passes over what it reads and writes. */
static bool
judge_kernel(Kernel *k, int *contractions)
{
    double work = 1, most = 0;
    Products p;
    uint32_t i;

    for (i = 0; i < k->axes.n; i++)
        work *= (double)k->axes.v[i].ext;
    for (i = 1; i < k->bufs.n; i++)
        most = elements(&k->bufs.v[i]) > most ? elements(&k->bufs.v[i]) : most;
    if (work <= 4 * most)
        return true;
    if (!jot_products_find(k, &p))
        return judge_chain(k, contractions);
    ++*contractions;
    return is_load(k, p.of.a) && is_load(k, p.of.b);
}

static int
judge(const char *what, const char *around, int order, const Fusion *fusion, const NodeList *list)
{
    BuildGraph graph;
    uint32_t g;
    int contractions = 0;

    graph.list = list;
    graph.fusion = fusion;
    for (g = 1; g <= fusion->ngroups; g++) {
        BuildArgs args;
        Kernel k;
        Text text = {NULL, NULL, 0, 0};
        bool ok;

        memset(&args, 0, sizeof args);
        text.mem = &ctx->mem;
        ok = jot_build_kernel(ctx, &graph, g, &k, &args);
        ok = ok && judge_kernel(&k, &contractions);
        if (!ok)
            jot_ir_print(&k, &text);
        CHECK(ok, "%s, %s, order %d: %s\n%s", what, around, order, jot_message(ctx),
              text.s ? text.s : "");
        jot_text_free(&text);
        jot_kernel_close(&k);
        jot_build_free(ctx, &args);
    }
    return contractions;
}

/* Fuse what these need and judge the kernels: the number of contractions. */
static int
contractions_of(const char *what, const char *around, int order, jot_Vars vars, FusePolicy policy)
{
    NodeList list = {0, 0, NULL};
    NodeId root[16];
    FuseAsk ask;
    Fusion fusion;
    int n = -1, i;

    memset(&ask, 0, sizeof ask);
    for (i = 0; i < vars.n; i++)
        root[i] = jot_node_at(ctx, vars, i, "test", "vars");
    if (jot_error(ctx) || !jot_graph_order(ctx, root, (uint32_t)vars.n, true, &list))
        return -1;
    ask.asked = calloc(list.n + 1, 1);
    for (i = 0; i < vars.n; i++)
        ((uint8_t *)ask.asked)[jot_node(ctx, root[i])->at] = 1;
    ask.node = list.v;
    ask.n = list.n;
    ask.policy = policy;
    if (jot_fuse(ctx, &ask, &fusion)) {
        n = judge(what, around, order, &fusion, &list);
        jot_fuse_free(ctx, &fusion);
    }
    free((void *)ask.asked);
    jot_list_free(ctx, &list);
    return n;
}

static jot_Var
loss_of(jot_Var y)
{
    return jot_sum(jot_mul(y, jot_sin(y)), JOT_ALL_DIMS);
}

static int cores = 2;

/* order 0: the value; 1: its gradients; 2: gradients of what is made of those. */
static void
test(int spell, int around, FusePolicy policy)
{
    const char *what = spelled[spell].name, *how = arounds[around].name;
    jot_Var x, w, y, wrt[2], g[2], h[2], l;
    int n;

    ctx = jot_open(NULL);
    same_rates(ctx);
    ctx->target.cores = cores;
    y = arounds[around].around(spelled[spell].spell(&x, &w));
    n = contractions_of(what, how, 0, jot_vars(1, &y), policy);
    CHECK(n == 1, "%s, %s: %d contractions, not 1: %s", what, how, n, jot_message(ctx));
    wrt[0] = x;
    wrt[1] = w;
    jot_grad(loss_of(y), jot_vars(2, wrt), g);
    n = contractions_of(what, how, 1, jot_vars(2, g), policy);
    CHECK(n == 3, "%s, %s: %d contractions backward, not 3: %s", what, how, n, jot_message(ctx));
    l = jot_add(loss_of(g[0]), loss_of(g[1]));
    jot_grad(l, jot_vars(2, wrt), h);
    n = contractions_of(what, how, 2, jot_vars(2, h), policy);
    CHECK(n >= 7 && n <= 9, "%s, %s: %d contractions in second order, not 7 to 9: %s", what, how, n,
          jot_message(ctx));
    jot_close(ctx);
}

/* Concatenations of contractions that contractions read, one after the other. */
static void
test_chain(FusePolicy policy)
{
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};
    jot_Var w[12], g[12], y;
    int n, k;

    ctx = jot_open(NULL);
    same_rates(ctx);
    y = input(JOT_SHAPE(2, 16, 9, 9));
    for (k = 0; k < 12; k += 2) {
        w[k] = input(JOT_SHAPE(8, 16, 1, 1));
        w[k + 1] = input(JOT_SHAPE(8, 16, 3, 3));
        y = jot_concat(JOT_VARS(jot_relu(jot_conv2d(y, w[k], NULL)),
                                jot_relu(jot_conv2d(y, w[k + 1], &how))), 1);
    }
    n = contractions_of("concatenations", "chain", 0, jot_vars(1, &y), policy);
    CHECK(n == 12, "concatenations: %d contractions, not 12: %s", n, jot_message(ctx));
    jot_grad(loss_of(y), jot_vars(12, w), g);
    n = contractions_of("concatenations", "chain", 1, jot_vars(12, g), policy);
    CHECK(n == 34, "concatenations: %d contractions backward, not 12 + 12 + 10: %s", n,
          jot_message(ctx));
    jot_close(ctx);
}

int
main(void)
{
    int spell, around;

    test_chain(FUSE_PAPER);
    test_chain(FUSE_REWARD);

    for (spell = 0; spell < (int)(sizeof spelled / sizeof *spelled); spell++)
        for (around = 0; around < (int)(sizeof arounds / sizeof *arounds); around++) {
            test(spell, around, FUSE_PAPER);
            test(spell, around, FUSE_REWARD);
        }
    cores = 64; /* more than there are columns for */
    for (around = 0; around < (int)(sizeof arounds / sizeof *arounds); around++)
        test(0, around, FUSE_REWARD);
    return DONE();
}
