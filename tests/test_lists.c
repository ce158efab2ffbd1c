/* tests/test_lists.c - every public function that takes a list takes none of it for nothing: a
 * count without elements is an error that names the function, and no more happens.
 *
 * Guards: core.c, ops/element.c, ops/forms.c. */
#include "expr.h"
#include "nn.h"
#include "tests/test.h"

static const jot_Ints no_ints = {2, NULL};
static const jot_Dims no_dims = {2, NULL, true};
static const jot_Strs no_strs = {2, NULL};
static const jot_Vars no_vars = {2, NULL};

/* It failed, and the context says which function was misused; where no context can be known it is
 * enough that nothing happened. */
static void
refused(jot_Ctx *c, bool ok, const char *name)
{
    CHECK(!ok, "%s takes a list without elements", name);
    CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), name), "%s: %d, %s", name,
          (int)jot_error(c), jot_message(c));
    jot_clear(c);
}

#define VAR(name, ...) refused(c, jot_ok(__VA_ARGS__), name)

static void
ignore(void *user, const char *text, size_t nbytes)
{
    (void)user, (void)text, (void)nbytes;
}

static void
shapes(jot_Ctx *c, jot_Var x)
{
    VAR("array", jot_array(c, JOT_F32, no_ints, NULL));
    VAR("param", jot_param(c, JOT_F32, no_ints, NULL));
    VAR("full", jot_full(c, JOT_F32, no_ints, 1));
    VAR("full", jot_full_int(c, JOT_I32, no_ints, 1));
    VAR("zeros", jot_zeros(c, JOT_F32, no_ints));
    VAR("ones", jot_ones(c, JOT_F32, no_ints));
    VAR("iota", jot_iota(c, JOT_F32, no_ints, 0));
    VAR("uniform", jot_uniform(c, JOT_F32, no_ints));
    VAR("normal", jot_normal(c, JOT_F32, no_ints));
    VAR("", jot_kaiming(c, JOT_F32, no_ints, 3));
    VAR("", jot_xavier(c, JOT_F32, no_ints, 3, 3));
    VAR("broadcast_to", jot_broadcast_to(x, no_ints));
    VAR("broadcast", jot_broadcast(x, no_ints, JOT_INTS(0)));
    VAR("broadcast", jot_broadcast(x, JOT_SHAPE(2, 3, 4, 5), no_ints));
    VAR("reshape", jot_reshape(x, no_ints));
    VAR("transpose", jot_transpose(x, no_ints));
    VAR("slice", jot_slice(x, no_ints, JOT_SHAPE(1, 1), JOT_SHAPE(1, 1)));
    VAR("slice", jot_slice(x, JOT_SHAPE(0, 0), no_ints, JOT_SHAPE(1, 1)));
    VAR("slice", jot_slice(x, JOT_SHAPE(0, 0), JOT_SHAPE(1, 1), no_ints));
    VAR("pad", jot_pad(x, no_ints, JOT_SHAPE(1, 1), 0));
    VAR("pad", jot_pad(x, JOT_SHAPE(1, 1), no_ints, 0));
    VAR("flip", jot_flip(x, no_ints));
    VAR("tile", jot_tile(x, no_ints));
}

static void
reductions(jot_Ctx *c, jot_Var x)
{
    VAR("", jot_reduce(JOT_ADD, x, no_dims));
    VAR("sum", jot_sum(x, no_dims));
    VAR("prod", jot_prod(x, no_dims));
    VAR("max", jot_max(x, no_dims));
    VAR("min", jot_min(x, no_dims));
    VAR("mean", jot_mean(x, no_dims));
    VAR("variance", jot_variance(x, no_dims));
    VAR("any", jot_any(x, no_dims));
    VAR("all", jot_all(x, no_dims));
    VAR("reindex", jot_reindex(x, no_ints, JOT_INDEX("i0", "i1")));
    VAR("reindex", jot_reindex(x, JOT_SHAPE(2, 3), no_strs));
    VAR("reindex",
        jot_reindex_ex(x, JOT_SHAPE(2, 3), JOT_INDEX("i0", "i1"), no_strs, 0, JOT_NONE_VARS));
    VAR("reindex", jot_reindex_ex(x, JOT_SHAPE(2, 3), JOT_INDEX("i0", "i1"), JOT_NONE_STRS, 0,
                                  no_vars));
    VAR("reindex_reduce", jot_reindex_reduce(JOT_ADD, x, no_ints, JOT_INDEX("i0", "i1")));
    VAR("reindex_reduce", jot_reindex_reduce(JOT_ADD, x, JOT_SHAPE(2, 3), no_strs));
    VAR("reindex_reduce", jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(2, 3), JOT_INDEX("i0", "i1"),
                                                no_strs, JOT_NONE_VARS));
    VAR("reindex_reduce", jot_reindex_reduce_ex(JOT_ADD, x, JOT_SHAPE(2, 3), JOT_INDEX("i0", "i1"),
                                                JOT_NONE_STRS, no_vars));
}

/* Those of nn.h: what they hand on may be named instead. */
static void
compositions(jot_Ctx *c, jot_Var x)
{
    jot_Var out[2];

    VAR("", jot_vector_norm(x, no_dims, 2));
    VAR("", jot_logsumexp(x, no_dims));
    VAR("variance", jot_variance_of(x, no_dims, 1));
    VAR("variance", jot_std(x, no_dims, 1));
    VAR("uniform", jot_randint(c, JOT_I32, no_ints, 0, 3));
    VAR("uniform", jot_exponential(c, JOT_F32, no_ints, 1));
    VAR("uniform", jot_truncated_normal(c, JOT_F32, no_ints, 0, 1, -1, 1));
    refused(c, jot_split(x, 0, no_ints, out), "split");
    refused(c, jot_split(x, 0, JOT_INTS(1, 1), NULL), "split");
    refused(c, jot_chunk(x, 0, 2, NULL), "chunk");
    CHECK(!jot_meshgrid(no_vars, out), "without context");
    CHECK(!jot_error(c), "%s", jot_message(c));
}

static bool
nothing(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    (void)user, (void)x, (void)y, (void)dy, (void)dx;
    return false;
}

static void
variables(jot_Ctx *c, jot_Var x)
{
    const jot_Vmap axes = {no_ints, {0, NULL}, false}, same = {{1, (const int64_t[]){JOT_UNBATCHED}},
                                                               {0, NULL}, false};
    jot_Var out[2], y = jot_sum(x, JOT_ALL_DIMS);
    jot_Reach reach[2];
    jot_Func f;

    refused(c, jot_run(c, no_vars), "run");
    refused(c, jot_assign_all(no_vars, JOT_VARS(y, y)), "assign_all");
    refused(c, jot_assign_all(JOT_VARS(y, y), no_vars), "assign_all");
    refused(c, jot_vjp(no_vars, JOT_VARS(y, y), JOT_VARS(x), out), "vjp");
    refused(c, jot_vjp(JOT_VARS(y, y), no_vars, JOT_VARS(x), out), "vjp");
    refused(c, jot_vjp(JOT_VARS(y), JOT_VARS(y), no_vars, out), "vjp");
    refused(c, jot_reaches(y, no_vars, reach), "reaches");
    refused(c, jot_jvp(no_vars, JOT_VARS(x), JOT_VARS(x), out), "jvp");
    refused(c, jot_jvp(JOT_VARS(y), no_vars, JOT_VARS(x, x), out), "jvp");
    refused(c, jot_jvp(JOT_VARS(y), JOT_VARS(x, x), no_vars, out), "jvp");
    refused(c, jot_vmap(no_vars, JOT_VARS(x), JOT_VARS(x), &same, out), "vmap");
    refused(c, jot_vmap(JOT_VARS(y), no_vars, JOT_VARS(x, x), NULL, out), "vmap");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x, y), no_vars, NULL, out), "vmap");
    refused(c, jot_vmap(JOT_VARS(y), JOT_VARS(x, y), JOT_VARS(x, y), &axes, out), "vmap");
    refused(c, jot_custom_grad(no_vars, JOT_VARS(x), nothing, NULL, out), "custom_grad");
    refused(c, jot_custom_grad(JOT_VARS(y), no_vars, nothing, NULL, out), "custom_grad");
    refused(c, jot_checkpoint(no_vars, JOT_VARS(x), out), "checkpoint");
    refused(c, jot_checkpoint(JOT_VARS(y), no_vars, out), "checkpoint");
    refused(c, jot_grad(y, jot_vars(2, NULL), out), "grad");
    refused(c, jot_func_ok(jot_compile(c, no_vars, JOT_VARS(y))), "compile");
    refused(c, jot_func_ok(jot_compile(c, JOT_VARS(x), no_vars)), "compile");
    refused(c, jot_export_text(c, "f", no_vars, JOT_VARS(y), ignore, NULL), "export");
    refused(c, jot_export_text(c, "f", JOT_VARS(x), no_vars, ignore, NULL), "export");
    refused(c, jot_print_graph(c, no_vars), "print_graph");
    refused(c, jot_ok(jot_expr(c, "y = 1", "a b", no_vars)), "expr");
    refused(c, jot_exprs(c, "y = 1", "", JOT_NONE_VARS, 1, NULL), "expr");
    refused(c, jot_ok(jot_einsum(c, "i,i", no_vars)), "einsum");
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    if (jot_func_ok(f))
        refused(c, jot_call_vars(f, (jot_Vars){1, NULL}, out), "call");
    jot_func_free(f);
    refused(c, jot_grad(y, JOT_VARS(x), NULL), "grad");
    /* these find their context in the list */
    CHECK(!jot_ok(jot_concat(no_vars, 0)) && !jot_ok(jot_stack(no_vars, 0)), "joined");
    CHECK(!jot_ok(jot_code_map("a + b", no_vars, JOT_F32, NULL)), "code_map");
    CHECK(!jot_optim_ok(jot_sgd(no_vars, 0.1, 0, 0))
              && !jot_optim_ok(jot_adam(no_vars, 0.1, 0.9, 0.99, 1e-8)), "optimisers");
    CHECK(!jot_error(c), "%s", jot_message(c));
}

/* User code names its lists in a record. */
static void
code(jot_Ctx *c, jot_Var x)
{
    const char *name = "x";
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_Code good = {.name = "twice", .inputs = 1, .in = &x, .in_names = &name, .outputs = 1,
                     .out = &out, .source = "y[0] = 2 * x[0];"}, bad;
    jot_Var y;

    bad = good;
    bad.in = NULL;
    refused(c, jot_code(c, &bad, &y), "twice");
    bad = good;
    bad.in_names = NULL;
    refused(c, jot_code(c, &bad, &y), "twice");
    bad = good;
    bad.out = NULL;
    refused(c, jot_code(c, &bad, &y), "twice");
    bad = good;
    bad.scalars = 1;
    refused(c, jot_code(c, &bad, &y), "twice");
}

int
main(void)
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), ones);

    shapes(c, x);
    reductions(c, x);
    compositions(c, x);
    variables(c, x);
    code(c, x);
    CHECK(jot_item(jot_sum(x, JOT_ALL_DIMS)) == 6, "the context works: %s", jot_message(c));
    jot_close(c);
    return DONE();
}
