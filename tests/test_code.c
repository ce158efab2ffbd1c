/* tests/test_code.c - user code: the checks of its builders, the text around the user's, gradients,
 * host functions, and evaluation on every backend that opens.
 *
 * Guards: backends/table.c, ccode/emit/user.c, ops/user/quote.c, core.c, ops/grad/grad.c,
 * ops/user/code.c, ops/user/grad.c, ops/user/names.c, ops/user/release.c, plan/user.c. */
#include "backends/backend.h"
#include "ops/user/code.h"
#include "tests/hooks.h"
#include "tests/test.h"

#define PRELUDE \
    "typedef long long jot_i64;\n" \
    "typedef union { jot_i64 i; unsigned long long u; double f; } jot_Scalar;\n"

/* y[r, k] = decay y[r, k - 1] + x[r, k], rows in parallel; its gradient runs the other way */
static const char running_text[] =
    "long r, k;\n"
    "for (r = lo; r < hi; r++) {\n"
    "    float sum = 0;\n"
    "    for (k = 0; k < y_1; k++)\n"
    "        y[r * y_s0 + k * y_s1] = sum = mix(sum, x[r * x_s0 + k], (float)decay);\n"
    "}";
static const char running_helpers[] =
    "static float mix(float sum, float x, float decay)\n"
    "{\n"
    "    return sum * decay + x;\n"
    "}";
static const char running_grad[] =
    "long r, k;\n"
    "for (r = 0; r < dx_0; r++) {\n"
    "    float sum = 0;\n"
    "    for (k = dx_1; k-- > 0; )\n"
    "        dx[r * dx_s0 + k] = sum = mix(sum, dy[r * dy_s0 + k], (float)decay);\n"
    "}";

typedef struct {
    jot_Code code;
    jot_Var in[2];
    const char *in_names[2];
    jot_CodeOut out[2];
    jot_CodeScalar scalar[2];
    const char *grad[2];
} Call;

/* The running sum as a description that tests spoil one by one. */
static void
running(Call *c, jot_Var x, double decay)
{
    memset(c, 0, sizeof *c);
    c->in[0] = c->in[1] = x;
    c->in_names[0] = "x";
    c->in_names[1] = "unused";
    c->out[0].name = "y";
    c->out[0].like = "x";
    c->out[1].name = "z";
    c->out[1].dtype = JOT_I64;
    c->scalar[0].name = "decay";
    c->scalar[0].value = decay;
    c->scalar[1].name = "other";
    c->grad[0] = running_grad;
    c->code.name = "running_sum";
    c->code.inputs = c->code.outputs = c->code.scalars = 1;
    c->code.in = c->in;
    c->code.in_names = c->in_names;
    c->code.out = c->out;
    c->code.scalar = c->scalar;
    c->code.helpers = running_helpers;
    c->code.source = running_text;
    c->code.grad_source = c->grad;
    c->code.parallel = "y_0";
}

static jot_Ctx *
open_backend(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = "";
    return jot_open(&config);
}

static jot_Var
numbers(jot_Ctx *c, int64_t n, int64_t m)
{
    float v[64];
    int i;

    for (i = 0; i < n * m; i++)
        v[i] = (float)(i * 7 % 5) - 1.5f;
    return jot_array(c, JOT_F32, JOT_SHAPE(n, m), v);
}

static void
no_host(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars)
{
    (void)user, (void)nbuf, (void)buf, (void)scalars;
}

/* ---- refusals ----------------------------------------------------------------------------- */

/* The call fails with this status and a message that has both words; nothing is left behind. */
static void
refused(jot_Ctx *c, const Call *call, jot_Status status, const char *word, const char *word2)
{
    uint32_t nodes = jot_stats(c).live_nodes, slots = jot_stats(c).live_slots;
    jot_Var y[2];
    bool ok;

    memset(y, 0, sizeof y);
    ok = jot_code(c, &call->code, y);

    CHECK(!ok && jot_error(c) == status, "status %d, asked %d: %s", jot_error(c), status,
          jot_message(c));
    CHECK(strstr(jot_message(c), word) && strstr(jot_message(c), word2), "%s (%s, %s)",
          jot_message(c), word, word2);
    CHECK(!jot_ok(y[0]), "a handle was given");
    CHECK(jot_stats(c).live_nodes == nodes && jot_stats(c).live_slots == slots, "nodes are left");
    jot_clear(c);
}

static void
test_refused_names(jot_Ctx *c, jot_Var x)
{
    static const char *const bad[] = {"",   "2x",    "a b", "int", "scratch",
                                      "lo", "jot_x", "__x", "x;",  "for"};
    Call call;
    size_t k;

    for (k = 0; k < sizeof bad / sizeof *bad; k++) {
        running(&call, x, 1);
        call.in_names[0] = bad[k];
        refused(c, &call, JOT_EUSE, "running_sum", "input 0");
        running(&call, x, 1);
        call.out[0].name = bad[k];
        refused(c, &call, JOT_EUSE, "running_sum", "output 0");
        running(&call, x, 1);
        call.scalar[0].name = bad[k];
        refused(c, &call, JOT_EUSE, "running_sum", "scalar 0");
    }
    running(&call, x, 1);
    call.out[0].name = NULL;
    refused(c, &call, JOT_EUSE, "output 0", "NULL");
    running(&call, x, 1);
    call.out[0].name = "x";
    refused(c, &call, JOT_EUSE, "distinct", "x");
    running(&call, x, 1);
    call.scalar[0].name = "x_s1";
    refused(c, &call, JOT_EUSE, "distinct", "x_s1");
    call.scalar[0].name = "dx_n"; /* clashes in the gradient's kernel */
    refused(c, &call, JOT_EUSE, "distinct", "dx");
    call.scalar[0].name = "x_start"; /* not derived from x */
    call.code.source = "y[0] = x[0] * x_start;";
    call.grad[0] = NULL;
    call.code.parallel = NULL;
    CHECK(jot_code(c, &call.code, &x), "%s", jot_message(c));
    call.scalar[0].name = "dx_n"; /* without gradients this is a name like any other */
    CHECK(jot_code(c, &call.code, &x), "%s", jot_message(c));
}

static void
test_refused(void)
{
    jot_Ctx *c = open_backend("interp"), *other = open_backend("interp");
    jot_Var x = numbers(c, 2, 3), i = jot_zeros(c, JOT_I32, JOT_SHAPE(2));
    Call call;

    test_refused_names(c, x);
    running(&call, x, 1);
    call.code.outputs = 0;
    refused(c, &call, JOT_ERANGE, "running_sum", "0 outputs");
    running(&call, x, 1);
    call.code.inputs = -1;
    refused(c, &call, JOT_ERANGE, "running_sum", "-1 inputs");
    running(&call, x, 1);
    call.code.source = NULL;
    refused(c, &call, JOT_EUSE, "source", "NULL");
    call.code.host = no_host;
    refused(c, &call, JOT_EUSE, "running_sum", "parallel is of a source");
    running(&call, x, 1);
    call.code.in_names = NULL;
    refused(c, &call, JOT_EUSE, "in_names", "NULL");
    running(&call, x, 1);
    call.out[0].like = "w";
    refused(c, &call, JOT_EUSE, "output y", "is like w, and no input has that name");
    call.out[0].like = NULL;
    refused(c, &call, JOT_EUSE, "output y", "has no shape and is like no input");
    running(&call, x, 1);
    call.code.outputs = 2;
    call.out[1].shape = JOT_SHAPE(3, -4);
    refused(c, &call, JOT_ESHAPE, "output z", "-4");
    call.out[1].shape = JOT_SHAPE((int64_t)1 << 40, (int64_t)1 << 40);
    refused(c, &call, JOT_ESHAPE, "output z", "large");
    call.out[1].shape = JOT_SHAPE(2);
    call.out[1].dtype = JOT_DTYPES;
    refused(c, &call, JOT_EDTYPE, "output z", "dtype");
    running(&call, x, 1);
    call.code.parallel = "y_2";
    refused(c, &call, JOT_ERANGE, "y_2", "rank 2");
    call.code.parallel = "y_s0";
    refused(c, &call, JOT_EUSE, "y_s0", "y_0");
    call.code.parallel = "rows";
    refused(c, &call, JOT_EUSE, "rows", "running_sum");
    running(&call, i, 1);
    refused(c, &call, JOT_EDTYPE, "input x", "i32");
    running(&call, jot_zeros(other, JOT_F32, JOT_SHAPE(2)), 1);
    refused(c, &call, JOT_EHANDLE, "running_sum", "x");
    jot_close(other);
    jot_close(c);
}

static void
test_refused_maps(void)
{
    static const struct { const char *text, *word; } bad[] = {
        {"", "empty"}, {"  \n", "empty"}, {"a + (b", "open"}, {"a) + (b", "closes"}, {"a; b", ";"},
        {"a /* b", "comment"}, {"a[0)", "closes"}, {"{ a }", "{"}, {"\n#define a b\n a", "#"},
        {"'a", "quoted"}
    };
    jot_Ctx *c = open_backend("interp");
    jot_Var x = numbers(c, 2, 3), y = numbers(c, 2, 2);
    const char *grad[2] = {"b", "a)"};
    size_t k;

    for (k = 0; k < sizeof bad / sizeof *bad; k++) {
        CHECK(!jot_ok(jot_code_map(bad[k].text, JOT_VARS(x, x), JOT_F32, NULL)), "%s", bad[k].text);
        CHECK(jot_error(c) == JOT_EUSE && strstr(jot_message(c), bad[k].word), "%s",
              jot_message(c));
        jot_clear(c);
    }
    CHECK(!jot_ok(jot_code_map("a * b", JOT_VARS(x, x), JOT_F32, grad)), "a bad gradient");
    CHECK(strstr(jot_message(c), "operand b"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_code_map("a * b", JOT_VARS(x, y), JOT_F32, NULL)), "shapes");
    CHECK(jot_error(c) == JOT_ESHAPE, "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_ok(jot_code_map("a", JOT_VARS(x), JOT_DTYPES, NULL)), "dtype");
    CHECK(jot_error(c) == JOT_EDTYPE, "%s", jot_message(c));
    jot_clear(c);
    CHECK(jot_ok(jot_code_map("a // b;", JOT_VARS(x), JOT_F32, NULL)), "%s", jot_message(c));
    CHECK(jot_ok(jot_code_map("a /* ( */ + ';'", JOT_VARS(x), JOT_F32, NULL)), "%s",
          jot_message(c));
    jot_close(c);
}

/* ---- nodes and text ----------------------------------------------------------------------- */

static void
test_nodes(void)
{
    jot_Ctx *c = open_backend("interp");
    uint32_t nodes = jot_stats(c).live_nodes;
    jot_Var x, y[2], z[2], m;
    const Node *pick, *code;
    Call call;

    jot_push(c);
    x = numbers(c, 2, 3);
    running(&call, x, 1);
    call.code.outputs = 2;
    call.out[1].shape = JOT_SHAPE(4, 0, 2);
    CHECK(jot_code(c, &call.code, y), "%s", jot_message(c));
    CHECK(jot_rank(y[1]) == 3 && jot_extent(y[1], 2) == 2 && jot_dtype(y[1]) == JOT_I64,
          "output z");
    CHECK(jot_rank(y[0]) == 2 && jot_extent(y[0], 1) == 3 && jot_dtype(y[0]) == JOT_F32,
          "output y");
    pick = jot_node(c, jot_node_of(y[0], "", ""));
    CHECK(pick->kind == NODE_PICK && pick->op == 0, "kind %d", pick->kind);
    code = jot_node(c, pick->input[0]);
    CHECK(code->kind == NODE_CODE && code->ninputs == 1 && code->code->refs == 1, "kind %d",
          code->kind);
    call.scalar[0].value = 2;
    CHECK(jot_code(c, &call.code, z), "%s", jot_message(c));
    CHECK(jot_node_of(z[0], "", "") != jot_node_of(y[0], "", ""), "two calls are one node");
    CHECK(jot_code_same(jot_node(c, jot_node(c, jot_node_of(z[0], "", ""))->input[0])->code,
                        code->code),
          "a scalar's value makes another kernel");
    call.code.source = "y[0] = 0; z[0] = 0;";
    CHECK(jot_code(c, &call.code, z), "%s", jot_message(c));
    CHECK(!jot_code_same(jot_node(c, jot_node(c, jot_node_of(z[0], "", ""))->input[0])->code,
                         code->code),
          "another text is the same kernel");
    m = jot_code_map("a + b", JOT_VARS(x, jot_zeros(c, JOT_I8, JOT_SHAPE(3))), JOT_F64, NULL);
    CHECK(jot_rank(m) == 2 && jot_extent(m, 0) == 2 && jot_dtype(m) == JOT_F64, "%s",
          jot_message(c));
    jot_pop(c);
    CHECK(jot_stats(c).live_nodes == nodes, "%u nodes are left", jot_stats(c).live_nodes - nodes);
    jot_close(c);
}

/* Compile a text around the node with this backend and return the function; NULL: refused. */
static KernelFn *
compiled(jot_Ctx *c, const char *text, void **module)
{
    KernelSym sym = {.name = "k0"};
    bool ok = c->backend->compile(c->backend, c, "test", text, strlen(text), &sym, 1, module);

    return ok ? sym.fn : NULL;
}

static NodeId
code_node(jot_Ctx *c, jot_Var pick)
{
    return jot_node(c, jot_node_of(pick, "", ""))->input[0];
}

static void
test_kernel_text(jot_Ctx *c)
{
    float out[6] = {0};
    void *buf[2], *module;
    jot_Var x = numbers(c, 2, 3), y;
    Text text = {&c->mem, NULL, 0, 0};
    jot_Scalar decay;
    int64_t count = 0;
    KernelFn *fn;
    Call call;

    running(&call, x, 0.5);
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    jot_text_f(&text, PRELUDE);
    CHECK(jot_code_text(c, code_node(c, y), "k0", &text, &count) && count == 2, "%s",
          jot_message(c));
    CHECK(!strstr(text.s, "x_n") && strstr(text.s, "y_1 = 3"), "%s", text.s);
    fn = compiled(c, text.s, &module);
    CHECK(fn != NULL, "%s\n%s", jot_message(c), text.s);
    buf[0] = (void *)(uintptr_t)jot_data(x);
    buf[1] = out;
    decay.f = 0.5;
    if (fn && buf[0]) { /* -1.5 .5 2.5 / -.5 1.5 -1.5 */
        fn(buf, NULL, &decay, NULL, 0, 1, 2);
        CHECK(out[0] == 0 && out[3] == -0.5f && out[4] == 1.25f && out[5] == -0.875f, "%g %g %g",
              out[3], out[4], out[5]);
        fn(buf, NULL, &decay, NULL, 0, 0, 1);
        CHECK(out[0] == -1.5f && out[1] == -0.25f && out[2] == 2.375f, "%g %g %g", out[0], out[1],
              out[2]);
        c->backend->unload(c->backend, c, module);
    }
    jot_text_free(&text);
}

/* The compiler's message names the operator as the file and the user's own line. */
static void
test_user_lines(jot_Ctx *c)
{
    static const struct { const char *helpers, *source, *where; } bad[] = {
        {NULL, "y[0] = 1;\n\ny[1] = no_such_name;\n", "running_sum:3"},
        {"static int f(void)\n{ return no_such_name; }", "y[0] = f();", "running_sum helpers:2"}
    };
    jot_Var x = numbers(c, 2, 3), y;
    size_t k;

    for (k = 0; k < 2; k++) {
        Text text = {&c->mem, NULL, 0, 0};
        int64_t count;
        void *module;
        Call call;

        running(&call, x, 1);
        call.code.helpers = bad[k].helpers;
        call.code.source = bad[k].source;
        call.code.parallel = NULL;
        CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
        jot_text_f(&text, PRELUDE);
        CHECK(jot_code_text(c, code_node(c, y), "k0", &text, &count) && count == 1, "%s",
              jot_message(c));
        CHECK(!compiled(c, text.s, &module), "%s compiled", bad[k].source);
        CHECK(jot_error(c) == JOT_ECOMPILE && strstr(jot_message(c), bad[k].where)
              && strstr(jot_message(c), "no_such_name"), "%s", jot_message(c));
        jot_clear(c);
        jot_text_free(&text);
    }
}

static void
test_map_text(jot_Ctx *c)
{
    double in[2] = {3, 4}, out = 0;
    void *buf[2], *module;
    jot_Var x = jot_cast(numbers(c, 2, 3), JOT_F64);
    jot_Var y = jot_code_map("a < b\n ? a // smaller\n : 10 * b", JOT_VARS(x, x), JOT_F64, NULL);
    NodeId id = jot_node_of(y, "", "");
    Text text = {&c->mem, NULL, 0, 0}, call = {&c->mem, NULL, 0, 0};
    KernelFn *fn;

    CHECK(id && jot_code_map_name(c, id, &call), "%s", jot_message(c));
    jot_text_f(&text, PRELUDE);
    CHECK(jot_code_map_text(c, id, "static ", &text) && jot_code_map_text(c, id, "static ", &text),
          "%s", jot_message(c));
    jot_text_f(
        &text,
        "void k0(void *const *buf, const jot_i64 *ints, const jot_Scalar *scalars, void *s, "
        "jot_i64 phase, jot_i64 lo, jot_i64 hi)\n{ const double *x = buf[0]; double *y = buf[1];\n"
        "  *y = %s(x[0], x[1]) + %s(x[1], x[0]); }\n", call.s, call.s);
    fn = compiled(c, text.s, &module);
    CHECK(fn != NULL, "%s\n%s", jot_message(c), text.s);
    buf[0] = in;
    buf[1] = &out;
    if (fn) {
        fn(buf, NULL, NULL, NULL, 0, 0, 1);
        CHECK(out == 3 + 30, "%g", out);
        c->backend->unload(c->backend, c, module);
    }
    jot_text_free(&call);
    jot_text_free(&text);
}

/* ---- evaluation --------------------------------------------------------------------------- */

static bool
near(const float *got, const float *want, int n)
{
    int k;

    for (k = 0; got && k < n; k++)
        if (fabsf(got[k] - want[k]) > 1e-5f * (1 + fabsf(want[k])))
            return false;
    return got != NULL;
}

/* softsign of 2 x as a map between two others, and its gradient */
static void
test_map(jot_Ctx *c)
{
    static const char *const grad[1] = {"(a < 0 ? 1 + y : 1 - y) * (a < 0 ? 1 + y : 1 - y)"};
    float want[6], dwant[6];
    jot_Var x = numbers(c, 2, 3), s, y, g;
    const float *v;
    int k;

    s = jot_code_map("a / (1 + (a < 0 ? -a : a))", JOT_VARS(jot_add(x, x)), JOT_F32, grad);
    y = jot_sum(jot_mul(s, s), JOT_ALL_DIMS);
    CHECK(jot_run(c, JOT_VARS(y)), "%s", jot_message(c));
    CHECK(getenv("JOT_LAYOUT") || jot_stats(c).last_kernels == 1, /* drawn layouts add copies */
          "an expression between others: %u kernels", jot_stats(c).last_kernels);
    v = jot_data(x);
    for (k = 0; v && k < 6; k++) {
        want[k] = 2 * v[k] / (1 + fabsf(2 * v[k]));
        dwant[k] = 4 * want[k] / (1 + fabsf(2 * v[k])) / (1 + fabsf(2 * v[k]));
    }
    CHECK(near(jot_data(s), want, 6), "%s", jot_message(c));
    CHECK(jot_grad(y, JOT_VARS(x), &g), "%s", jot_message(c));
    CHECK(near(jot_data(g), dwant, 6), "%s", jot_message(c));
    CHECK(!jot_grad(jot_sum(g, JOT_ALL_DIMS), JOT_VARS(x), &g) && jot_error(c) == JOT_EGRAD, "%s",
          jot_message(c));
    CHECK(strstr(jot_message(c), "gradient of a"), "%s", jot_message(c));
    jot_clear(c);
}

/* As many operands as there are letters for. */
static void
test_map_many(jot_Ctx *c)
{
    char text[16 * 12] = "0";
    jot_Var x[16];

    for (int n = 1; n <= 16; n++) {
        const double *p;

        x[n - 1] = jot_full(c, JOT_F64, JOT_SHAPE(2), n * n);
        sprintf(text + strlen(text), " + %d * %c", n, 'a' + n - 1);
        p = jot_data(jot_code_map(text, jot_vars(n, x), JOT_F64, NULL));
        CHECK(p && p[1] == n * n * (n + 1) * (n + 1) / 4, "%d operands: %s", n, jot_message(c));
    }
}

/* A map of mixed dtypes and broadcasting, with a truth value as result. */
static void
test_map_dtypes(jot_Ctx *c)
{
    static const int8_t small[3] = {1, 0, -2};
    jot_Var x = numbers(c, 2, 3), i = jot_array(c, JOT_I8, JOT_SHAPE(3), small);
    jot_Var b = jot_code_map("a > b", JOT_VARS(x, i), JOT_BOOL, NULL);
    jot_Var n = jot_code_map("a * 3 + 1", JOT_VARS(i), JOT_I64, NULL);
    static const unsigned char want[6] = {0, 1, 1, 0, 1, 1};
    static const int64_t nwant[3] = {4, 1, -5};
    const void *p = jot_data(b);

    CHECK(p && !memcmp(p, want, 6), "%s", jot_message(c));
    p = jot_data(n);
    CHECK(p && !memcmp(p, nwant, sizeof nwant), "%s", jot_message(c));
}

static void
test_code(jot_Ctx *c)
{
    static const float want[6] = {-1.5f, -0.25f, 2.375f, -0.5f, 1.25f, -0.875f};
    static const float want1[6] = {-1.5f, -1, 1.5f, -0.5f, 1, -0.5f};
    static const float dwant[6] = {1.75f, 1.5f, 1, 1.75f, 1.5f, 1};
    jot_Var x = numbers(c, 2, 3), y, y1, g;
    uint64_t compiled_before;
    Call call;

    running(&call, x, 0.5);
    call.code.name = "running_sum */"; /* the text has it in a comment */
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    CHECK(near(jot_data(y), want, 6), "%s", jot_message(c));
    compiled_before = jot_stats(c).kernels_compiled;
    call.scalar[0].value = 1;
    CHECK(jot_code(c, &call.code, &y1) && near(jot_data(y1), want1, 6), "%s", jot_message(c));
    CHECK(jot_stats(c).kernels_compiled == compiled_before, "another value of a scalar compiled");
    CHECK(jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g), "%s", jot_message(c));
    CHECK(near(jot_data(g), dwant, 6), "%s", jot_message(c));
    call.grad[0] = NULL;
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    CHECK(!jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g) && jot_error(c) == JOT_EGRAD,
          "no gradient text");
    CHECK(strstr(jot_message(c), "running_sum") && strstr(jot_message(c), "input x"), "%s",
          jot_message(c));
    jot_clear(c);
}

/* What a condition guards is read where it lies, whatever a compiler makes of rows beside each
 * other: gcc 12 read the second sum of each row from the row below. */
static void
test_guarded(jot_Ctx *c)
{
    double v[32], sum, want;
    const double *got;
    jot_Var x, y;
    int i, r, k;
    Call call;

    for (i = 0; i < 32; i++)
        v[i] = i;
    x = jot_array(c, JOT_F64, JOT_SHAPE(8, 4), v);
    running(&call, x, 0);
    call.code.scalars = 0;
    call.code.grad_source = NULL;
    call.code.parallel = "y_0";
    call.code.helpers = NULL;
    call.out[0].like = NULL;
    call.out[0].dtype = JOT_F64;
    call.out[0].shape = JOT_SHAPE(2, 2);
    call.code.source =
        "for (jot_i64 r = lo; r < hi; r++) {\n"
        "    const jot_i64 at = r * 4;\n"
        "    double sum = 0, more = 0;\n"
        "    for (jot_i64 k = 0; k < 6; k++)\n"
        "        sum = sum + (k >= 1 && k < 4 ? x[at + k + 11] : 0.0);\n"
        "    y[r * 2] = sum;\n"
        "    for (jot_i64 k = 0; k < 6; k++) {\n"
        "        const double t = (k >= 1 && k < 4 ? x[at + k + 11] : 0.0) + sum;\n"
        "        more = more + (t + t);\n"
        "    }\n"
        "    y[r * 2 + 1] = more;\n"
        "}";
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    got = jot_data(y);
    CHECK(got, "%s", jot_message(c));
    for (r = 0; r < 2 && got; r++) {
        for (sum = 0, k = 1; k < 4; k++)
            sum += v[r * 4 + k + 11];
        want = 2 * sum + 12 * sum;
        CHECK(got[r * 2] == sum && got[r * 2 + 1] == want, "row %d: %g and %g, not %g and %g", r,
              got[r * 2], got[r * 2 + 1], sum, want);
    }
    jot_clear(c);
}

/* Two outputs, one of them not asked for; no input; operands that are expressions; extents of 0. */
static void
test_outputs(jot_Ctx *c)
{
    static const float want[6] = {-3, 1, 5, -1, 3, -3};
    jot_Var x = numbers(c, 2, 3), y[2];
    const int64_t *n;
    Call call;

    running(&call, jot_add(x, x), 0);
    call.code.outputs = 2;
    call.out[1].shape = JOT_SHAPE();
    call.code.parallel = NULL;
    call.code.source = "for (jot_i64 k = 0; k < x_n; k++) y[k] = x[k];\n*z = x_n * 100 + z_n;";
    CHECK(jot_code(c, &call.code, y), "%s", jot_message(c));
    CHECK(near(jot_data(y[0]), want, 6), "%s", jot_message(c));
    CHECK(jot_code(c, &call.code, y), "%s", jot_message(c));
    CHECK(jot_item_int(y[1]) == 601, "%s", jot_message(c));
    call.code.inputs = 0;
    call.code.outputs = 1;
    call.out[0] = call.out[1];
    call.out[0].shape = JOT_SHAPE(3);
    call.code.source = "for (jot_i64 k = lo; k < hi; k++) z[k] = k * 5;";
    call.code.parallel = "z_0";
    CHECK(jot_code(c, &call.code, y), "%s", jot_message(c));
    n = jot_data(y[0]);
    CHECK(n && n[0] == 0 && n[1] == 5 && n[2] == 10, "%s", jot_message(c));
    call.out[0].shape = JOT_SHAPE(0);
    CHECK(jot_code(c, &call.code, y) && jot_run(c, jot_vars(1, y)), "%s", jot_message(c));
}

/* Errors in the user's text, as an evaluation shows them. */
static void
test_wrong_text(jot_Ctx *c)
{
    jot_Var x = numbers(c, 2, 3), y;
    Call call;

    running(&call, x, 1);
    call.code.source = "y[0] = 1;\ny[0] = no_such_name;";
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    CHECK(!jot_data(y) && jot_error(c) == JOT_ECOMPILE, "%s", jot_message(c));
    CHECK(strstr(jot_message(c), "running_sum:2")
              && strstr(jot_message(c), "\nrunning_sum, line 2: y[0] = no_such_name;\n"),
          "%s", jot_message(c));
    jot_clear(c);
    y = jot_add(jot_code_map("a\n+\nno_such_name", JOT_VARS(x), JOT_F32, NULL), x);
    CHECK(!jot_data(y) && jot_error(c) == JOT_ECOMPILE, "%s", jot_message(c));
    CHECK(strstr(jot_message(c), " (code_map add): ")
              && strstr(jot_message(c), "code_map [a + no_such_name]:3")
              && strstr(jot_message(c), "\ncode_map [a + no_such_name], line 3: no_such_name\n"),
          "%s", jot_message(c));
    jot_clear(c);
    y = jot_code_map("a <\n\tno_such_function(a) + 1 // \"??\\\"\n", JOT_VARS(x), JOT_F32, NULL);
    CHECK(!jot_data(y) && jot_error(c) == JOT_ECOMPILE
              && strstr(jot_message(c), "\ncode_map [a <  no_such_function(a) + 1 // __?__ ], line "
                                        "2: no_such_function(a) + 1 // "),
          "%s", jot_message(c));
    jot_clear(c);
    y = jot_add(jot_code_map("a + 1.5", JOT_VARS(x), JOT_F32, NULL),
                jot_code_map("a + a + a + a + a + a + a + a + a + a + a + a + bad + a",
                             JOT_VARS(x), JOT_F32, NULL));
    CHECK(!jot_data(y) && jot_error(c) == JOT_ECOMPILE
              && strstr(jot_message(c),
                        "\ncode_map [a + a + a + a + a + a + a + a + a + a + a + a + ...], line 1: "
                        "a + a + a + a + a + a + a + a + a + a + a + a + bad + a\n"),
          "%s", jot_message(c));
    jot_clear(c);
}

/* What compilers say, in the words of each; a #line of the user's own that names nothing. */
static void
test_quotes(void)
{
    static const char text[] = "#line 1 \"op\"\ny[0] = 1;\n  y[1] = z();\n#line 1 \"after op\"\n";
    static const char own[] = "#line 1 \"op\"\n#line 1 \"\"\ny[1] = z();\n#line 1 \"after op\"\n";
    static const char *const says[] = {
        "op:2:10: error: 'z' undeclared", "op:2: error: 'z' undeclared",
        "op(2): error: identifier \"z\" is undefined", "tcc: error: undefined symbol 'z'"
    };
    char buf[200];

    for (int i = 0; i < 4; i++) {
        Text out = {NULL, buf, 0, sizeof buf};

        buf[0] = 0;
        jot_code_quote(text, sizeof text - 1, says[i], &out);
        CHECK(!strcmp(buf, "op, line 2: y[1] = z();\n"), "%s: %s", says[i], buf);
        jot_code_quote(own, sizeof own - 1, says[i], &out);
    }
}

static void
host_running(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars)
{
    const float *x = buf[0];
    float *y = buf[1];
    int r, k;

    *(int *)user += nbuf;
    for (r = 0; r < 2; r++)
        for (k = 0; k < 3; k++)
            y[r * 3 + k] = (k ? y[r * 3 + k - 1] * (float)scalars[0].f : 0) + x[r * 3 + k];
}

/* ---- a function of the program as an operator ------------------------------------------------ */

static int host_calls;

static void
host_scaled(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars)
{
    const float *x = buf[0];
    float *y = buf[1];
    int64_t *count = buf[2];

    host_calls += nbuf == 3;
    for (int i = 0; i < 6; i++)
        y[i] = x[i] * *(const float *)user + (float)scalars[0].f;
    *count = 6;
}

static jot_Var
scaled(jot_Var x, float *by, double add, jot_Var *count)
{
    static const char *const name = "x";
    static const char *const grad = "for (jot_i64 i = 0; i < dx_n; i++) dx[i] = 5 * dy[i];";
    jot_CodeOut out[2] = {{.name = "y", .like = "x"},
                          {.name = "n", .dtype = JOT_I64, .shape = JOT_SHAPE()}};
    jot_CodeScalar scalar = {"add", add};
    jot_Code code = {.name = "scaled", .inputs = 1, .in = &x, .in_names = &name, .outputs = 2,
                     .out = out, .scalars = 1, .scalar = &scalar, .grad_source = &grad,
                     .host = host_scaled, .user = by};
    jot_Var y[2] = {{0}, {0}};

    jot_code(x.ctx, &code, y);
    if (count)
        *count = y[1];
    return y[0];
}

static void
host_write(void *user, const char *text, size_t nbytes)
{
    (void)user, (void)text, (void)nbytes;
}

/* Without a source it runs wherever the host computes, between fused neighbours, in compiled
 * functions, with the user's pointer and the scalars of each call. */
static void
check_host_code(const char *backend)
{
    static float five = 5, two = 2;
    jot_Ctx *c = open_backend(backend);
    float in[6] = {1, 2, 3, 4, 5, 6}, out[6];
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), in), y, count, g;
    jot_Func f;
    const float *v;

    if (jot_error(c)) {
        SKIP("%s: %s", backend, jot_message(c));
        jot_close(c);
        return;
    }
    if (!strcmp(backend, "opencl")) {
        CHECK(!jot_data(scaled(x, &five, 1, NULL)) && jot_error(c) == JOT_EDEVICE
              && strstr(jot_message(c), "code scaled: it has no source for opencl"), "%s",
              jot_message(c));
        jot_close(c);
        return;
    }
    host_calls = 0;
    y = jot_offset(scaled(jot_scale(x, 2), &five, 1, &count), 100);
    v = jot_data(y);
    CHECK(v && v[0] == 111 && v[5] == 161 && jot_item(count) == 6, "%s: %g %s", backend,
          v ? v[0] : 0, jot_message(c));
    v = jot_data(scaled(x, &two, 7, NULL)); /* another pointer and another number */
    CHECK(v && v[0] == 9 && v[5] == 19, "%s: %g", backend, v ? v[0] : 0);
    five = 6;
    v = jot_data(jot_offset(scaled(jot_scale(x, 3), &five, 1, NULL), 100));
    CHECK(v && v[0] == 119, "%s: %g", backend, v ? v[0] : 0);
    five = 5;
    CHECK(host_calls >= 3, "%s: %d calls", backend, host_calls);
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    for (int k = 0; k < 6; k++)
        in[k] += 1;
    CHECK(jot_call(f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out)))
          && out[0] == 121 && out[5] == 171, "%s: %g %s", backend, out[0], jot_message(c));
    if (strcmp(backend, "interp")) { /* a gradient has a text */
        CHECK(jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g) && (v = jot_data(g)) && v[3] == 10,
              "%s: %s", backend, jot_message(c));
        CHECK(!jot_export_text(c, "scaled", JOT_VARS(x), JOT_VARS(y), host_write, NULL)
              && jot_error(c) == JOT_EUSE && strstr(jot_message(c), "code scaled is a host function"),
              "%s: %s", backend, jot_message(c));
    }
    jot_close(c);
}

/* The interpreter refuses by name, or runs the host function. */
static void
test_interp(void)
{
    static const float want[6] = {-1.5f, -0.25f, 2.375f, -0.5f, 1.25f, -0.875f};
    jot_Ctx *c = open_backend("interp");
    jot_Var x = numbers(c, 2, 3), y;
    int seen = 0;
    Call call;

    running(&call, x, 0.5);
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    CHECK(!jot_data(y) && jot_error(c) == JOT_EDEVICE, "%s", jot_message(c));
    CHECK(strstr(jot_message(c), "running_sum") && strstr(jot_message(c), "tcc"), "%s",
          jot_message(c));
    jot_clear(c);
    y = jot_code_map("a + 1", JOT_VARS(x), JOT_F32, NULL);
    CHECK(!jot_data(y) && jot_error(c) == JOT_EDEVICE, "%s", jot_message(c));
    CHECK(strstr(jot_message(c), "a + 1"), "%s", jot_message(c));
    jot_clear(c);
    call.code.host = host_running;
    call.code.user = &seen;
    CHECK(jot_code(c, &call.code, &y), "%s", jot_message(c));
    CHECK(near(jot_data(y), want, 6) && seen == 2, "%s", jot_message(c));
    jot_close(c);
}

/* ---- refused allocations ------------------------------------------------------------------ */

/* Building and differentiating, with the n-th allocation refused. */
static void
test_memory(void)
{
    static const char *const grad[1] = {"2 * a"};
    int n, failures = 0;

    for (n = 1; n < 1000; n++) {
        Heap heap = {.countdown = n};
        jot_Config config;
        jot_Var x, y, g;
        jot_Ctx *c;
        Call call;
        bool left, ok = false;

        memset(&config, 0, sizeof config);
        config.backend = "interp";
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        c = jot_open(&config);
        if (c) {
            x = numbers(c, 2, 3);
            running(&call, x, 0.5);
            jot_code(c, &call.code, &y);
            y = jot_sum(jot_code_map("a * a", JOT_VARS(y), JOT_F32, grad), JOT_ALL_DIMS);
            ok = jot_grad(y, JOT_VARS(x), &g);
            CHECK(ok || jot_error(c), "allocation %d: no reason is given", n);
            ok = !jot_error(c);
        }
        left = heap.countdown > 0;
        failures += !ok;
        jot_close(c);
        CHECK(heap.live == 0, "allocation %d: %zu bytes are left", n, heap.live);
        if (left)
            break;
    }
    CHECK(n > 20 && n < 1000 && failures > 10, "%d allocations, %d failures", n, failures);
}

int
main(void)
{
    static const char *const backends[] = {"tcc", "cc"};
    static const char *const host_backends[] = {"cpu", "tcc", "cc", "interp", "opencl"};
    size_t k;

    test_refused();
    test_refused_maps();
    test_nodes();
    test_interp();
    for (k = 0; k < sizeof host_backends / sizeof *host_backends; k++)
        check_host_code(host_backends[k]);
    test_memory();
    for (k = 0; k < 2; k++) {
        jot_Ctx *c = open_backend(backends[k]);

        if (jot_error(c)) {
            SKIP("%s: %s", backends[k], jot_message(c));
            jot_close(c);
            continue;
        }
        test_kernel_text(c);
        test_user_lines(c);
        test_map_text(c);
        test_map(c);
        test_map_dtypes(c);
        test_map_many(c);
        test_code(c);
        test_guarded(c);
        test_outputs(c);
        test_wrong_text(c);
        test_quotes();
        jot_close(c);
    }
    return DONE();
}
