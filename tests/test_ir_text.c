/* tests/test_ir_text.c - the emitted text is strict C99: the kernels of random programs, of a
 * network with gradients and of every operator and cast on every dtype are collected from the dump,
 * put behind their prelude into one file and compiled by gcc, clang and tcc with every warning an
 * error. With one lane and with four, spelled in scalars: gcc optimises these, and warns of what it
 * finds then, if a number of programs is given; it takes five times as long.
 *
 * Use: test_ir_text [number of random programs]
 *
 * Guards: ccode/emit/emit.c, ccode/emit/statement.c. */
#define main fuzz_main
#include "tests/test_fuzz.c"
#undef main
#include "ccode/emit.h"

enum { KERNELS = 6000 };

typedef struct {
    char *dump;
    size_t n, cap;
} Dumped;

static void *
text_realloc(void *ud, void *p, size_t old, size_t size)
{
    (void)ud, (void)old;
    if (size)
        return realloc(p, size);
    free(p);
    return NULL;
}

static void
collect(void *ud, const char *text, size_t n)
{
    Dumped *d = ud;

    if (d->n + n + 1 > d->cap) {
        d->cap = (d->n + n + 1) * 2;
        d->dump = realloc(d->dump, d->cap);
    }
    memcpy(d->dump + d->n, text, n);
    d->n += n;
    d->dump[d->n] = 0;
}

/* ---- what is compiled --------------------------------------------------------------------- */

static void
every_dtype(jot_Ctx *c, jot_DType t)
{
    static const double some[6] = {0, 1, -1, 2.5, 100, -70000};
    jot_Var x = jot_cast(jot_array(c, JOT_F64, JOT_SHAPE(2, 3), some), t), out[JOT_DTYPES + 8];
    jot_Var (*const unary[])(jot_Var) = {
#define ROW(n) jot_##n,
        JOT_UNARY(ROW)
    };
    jot_Var (*const binary[])(jot_Var, jot_Var) = { JOT_BINARY(ROW) };
#undef ROW
    int n = 0;
    size_t i;

    for (i = 0; i < JOT_DTYPES; i++)
        out[n++] = jot_cast(x, (jot_DType)i);
    jot_run(c, jot_vars(n, out));
    for (i = 0; i < sizeof unary / sizeof *unary; i++) {
        x = jot_cast(jot_array(c, JOT_F64, JOT_SHAPE(2, 3), some), t);
        jot_run(c, jot_vars(1, (out[0] = unary[i](x), out)));
        jot_clear(c); /* not every operator takes every dtype */
    }
    for (i = 0; i < sizeof binary / sizeof *binary; i++) {
        x = jot_cast(jot_array(c, JOT_F64, JOT_SHAPE(2, 3), some), t);
        jot_run(c, jot_vars(1, (out[0] = binary[i](x, jot_neg(x)), out)));
        jot_clear(c);
        jot_run(c, jot_vars(1, (out[0] = binary[i](x, x), out)));
        jot_clear(c);
    }
    out[0] = jot_sum(x, JOT_ALL_DIMS);
    out[1] = jot_max(x, JOT_DIMS(0));
    out[2] = jot_min(x, JOT_DIMS(1));
    out[3] = jot_prod(x, JOT_DIMS(1));
    for (n = 0; n < 4; n++) {
        jot_run(c, jot_vars(1, out + n));
        jot_clear(c);
    }
}

static void
network(jot_Ctx *c)
{
    static const jot_Conv strided = {.stride = {2, 2}, .pad = {1, 1}};
    static const jot_Pool half = {{2, 2}, {2, 2}, {0, 0}}, same = {{3, 3}, {1, 1}, {1, 1}};
    static const uint8_t classes[2] = {1, 3};
    jot_Var x = jot_uniform(c, JOT_F32, JOT_SHAPE(2, 3, 9, 9)), w[4], g[4], y;

    w[0] = jot_uniform(c, JOT_F32, JOT_SHAPE(4, 3, 3, 3));
    w[1] = jot_uniform(c, JOT_F32, JOT_SHAPE(4));
    w[2] = jot_uniform(c, JOT_F32, JOT_SHAPE(4));
    w[3] = jot_uniform(c, JOT_F32, JOT_SHAPE(16, 5));
    y = jot_batch_norm_train(jot_conv2d(x, w[0], &strided), w[1], w[2], 1e-5, 0.1, NULL, NULL);
    y = jot_max_pool2d(jot_relu(jot_avg_pool2d(y, &same)), &half);
    y = jot_matmul(jot_reshape(y, JOT_SHAPE(2, 16)), w[3]);
    y = jot_cross_entropy(jot_log_softmax(y, 1), jot_array(c, JOT_U8, JOT_SHAPE(2), classes));
    CHECK(jot_grad(y, jot_vars(4, w), g) && jot_run(c, jot_vars(4, g)), "network: %s",
          jot_message(c));
}

static void
random_programs(jot_Ctx *c, int n)
{
    Prog *p = malloc(sizeof *p);
    jot_Var out[VARS + 8];
    int i, m;

    for (i = 1; i <= n; i++) {
        jot_push(c);
        m = fuzz_program(p, c, (uint64_t)i, out);
        CHECK(jot_run(c, jot_vars(m, out)), "program %d: %s", i, jot_message(c));
        jot_clear(c);
        jot_pop(c);
    }
    free(p);
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* Each kernel once: from its comment to the end of its function. */
static int
each_kernel(const Dumped *d, Text *out)
{
    static char seen[KERNELS][24];
    const char *at = d->dump;
    int n = 0, i;

    while (at && (at = strstr(at, "/* jot_k_")) != NULL && n < KERNELS) {
        const char *end = strstr(at, "\n}\n");

        for (i = 0; i < n && memcmp(seen[i], at + 3, 22); i++)
            ;
        if (i == n && end) {
            memcpy(seen[n++], at + 3, 22);
            jot_text_put(out, at, (size_t)(end + 3 - at));
        }
        at = end;
    }
    return n;
}

static void
compile(const char *dir, const Text *text, int kernels, int lanes, bool optimise)
{
    const char *const cc[] = {
        optimise ? "gcc -std=c99 -O1 -Wall -Wextra -Wpedantic"
                 : "gcc -std=c99 -Wall -Wextra -Wpedantic",
        "clang -std=c99 -Wall -Wextra -Wpedantic", "tcc -std=c99 -Wall"
    };
    size_t i;

    for (i = 0; i < sizeof cc / sizeof *cc; i++) {
        char cmd[400], path[100];
        int name = (int)strcspn(cc[i], " ");
        FILE *f;

        snprintf(cmd, sizeof cmd, "command -v %.*s >/dev/null 2>&1", name, cc[i]);
        if (system(cmd) != 0) {
            SKIP("no %.*s here", name, cc[i]);
            continue;
        }
        snprintf(path, sizeof path, "%s/k.c", dir);
        f = fopen(path, "w");
        fwrite(text->s, 1, text->n, f);
        fclose(f);
        snprintf(cmd, sizeof cmd, "cd %s && %s -Werror -c k.c -o k.o", dir, cc[i]);
        CHECK(system(cmd) == 0, "%d kernels, %d lanes: %s", kernels, lanes, cc[i]);
    }
}

static void
test_lanes(const char *dir, int lanes, int programs, bool optimise)
{
    Mem mem;
    Text kernels = {NULL, NULL, 0, 0}, all = {NULL, NULL, 0, 0};
    Dumped d = {NULL, 0, 0};
    jot_Config config = {.backend = "tcc", .dump = "c"};
    jot_Ctx *c;
    int i, n;

    memset(&mem, 0, sizeof mem);
    mem.hooks.realloc = text_realloc;
    kernels.mem = all.mem = &mem;
    config.lanes = lanes;
    config.hooks.log = collect;
    config.hooks.ud = &d;
    c = jot_open(&config);
    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return;
    }
    for (i = 0; i < JOT_DTYPES; i++)
        every_dtype(c, (jot_DType)i);
    network(c);
    random_programs(c, programs);
    n = each_kernel(&d, &kernels);
    CHECK(n > programs, "%d kernels", n);
    jot_emit_prelude(jot_dialect_find("c"), kernels.s, kernels.n, &all);
    jot_text_put(&all, kernels.s, kernels.n);
    compile(dir, &all, n, lanes, optimise);
    jot_close(c);
    jot_text_free(&kernels);
    jot_text_free(&all);
    free(d.dump);
}

int
main(int argc, char **argv)
{
    char dir[] = "/tmp/jot_textXXXXXX", cmd[64];
    int programs = argc > 1 ? atoi(argv[1]) : test_many(5, 10);

    if (!mkdtemp(dir))
        return 2;
    test_lanes(dir, 1, programs, true);
    test_lanes(dir, 4, programs, argc > 1);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    CHECK(system(cmd) == 0, "%s", cmd);
    return DONE();
}
