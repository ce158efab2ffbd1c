/* tests/test_cuda.c - the text of kernels for CUDA, compiled for every architecture from 7.0 on
 * that the NVRTC at hand knows. No GPU is needed, and nothing runs: the device here takes memory
 * from the host and launches nothing. Where there is a GPU, `make test-cuda` runs the other
 * programs on it.
 *
 *     test_cuda         the oldest from 7.0 on, 8.0 and 9.0; every operator for the last
 *     test_cuda --all   every one
 *     test_cuda --text FILE ..   these texts alone
 *
 * Guards: backends/cuda/nvrtc.c, ccode/device/contract_grid.c, ccode/device/contract_grid_make.c,
 * ccode/device/emit_device.c, ccode/device/emit_matrix.c,
 * ccode/device/index_width.c, ccode/device/walk_matrix.c. */
#include <stdlib.h>
#include <string.h>
#include "backends/cuda/nvrtc.h"
#include "plan/device/device.h"
#include "plan/plan.h"
#include "tests/idle_device.h"
#include "tests/run_programs.h"
#include "tests/tiles_cases.h"

static Nvrtc *nvrtc;
static int vectors; /* PTX instructions that move 16 bytes, as long as it is not negative */
static int arch[32], narchs;
static bool hopper; /* what 9.0 alone has is asked for: others sum term by term */
static uint64_t compiled;
static int texts;               /* so far */
static int loops[2];            /* of the last text, by indices of 32 bits and of 64 */
static bool turns;              /* each for one architecture, in turns; else for all */
static unsigned registers, frame; /* most of an item so far: registers, bytes on a stack */

/* The most of an attribute in the code, where each kernel has {4, its number, 8, 0, symbol,
 * value}. */
static unsigned
attribute(Bytes object, int number)
{
    char head[4] = {4, (char)number, 8, 0};
    const char *at = object.p, *end = at + object.n;
    unsigned most = 0, value;

    for (; (at = memmem(at, (size_t)(end - at), head, 4)) != NULL && end - at >= 12; at += 4) {
        memcpy(&value, at + 8, 4);
        most = value > most ? value : most;
    }
    return most;
}

/* The text for each architecture, or the one whose turn it is; machine code must come out, and hold each kernel's name. */
static bool
compile_all(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
            KernelSym *sym, int n, void **module)
{
    int i, k;

    (void)backend;
    *module = sym;
    if (vectors >= 0) {
        Bytes ptx;

        if (!jot_nvrtc_compile(nvrtc, ctx, what, text, nbytes, arch[narchs - 1], true, &ptx))
            return false;
        for (const char *p = ptx.p; (p = strstr(p, ".v4.")) != NULL; p++)
            vectors++;
        jot_mem_free(&ctx->mem, ptx.p, ptx.n + 1);
    }
    texts++;
    loops[0] = strstr(text, "for (jot_i32 ") != NULL;
    loops[1] = strstr(text, "for (jot_i64 ") != NULL;
    for (i = 0; i < narchs; i++) {
        Bytes object;

        if (turns && i != texts % narchs)
            continue;
        if (!jot_nvrtc_compile(nvrtc, ctx, what, text, nbytes, arch[i], false, &object))
            return false;
        compiled++;
        registers = attribute(object, 0x2f) > registers ? attribute(object, 0x2f) : registers;
        frame = attribute(object, 0x11) > frame ? attribute(object, 0x11) : frame;
        for (k = 0; k < n; k++)
            CHECK(memmem(object.p, object.n, sym[k].name, strlen(sym[k].name)),
                  "sm_%d: no %s in the code", arch[i], sym[k].name);
        jot_mem_free(&ctx->mem, object.p, object.n + 1);
    }
    for (k = 0; k < n; k++) {
        sym[k].fn = jot_plan_no_fn;
        sym[k].kernel = sym;
    }
    return true;
}

static void
forget(Backend *backend, jot_Ctx *ctx, void *module)
{
    (void)backend, (void)ctx, (void)module;
}

static jot_Ctx *
open_idle(const char *policy, const char *precision)
{
    jot_Config config = {.backend = "interp", .policy = policy, .precision = precision};
    jot_Ctx *c = jot_open(&config);

    c->backend->dialect = "cuda";
    c->backend->compile = compile_all;
    c->backend->unload = forget;
    c->backend->device = &idle;
    jot_data_attach(c);
    c->target.copies = arch[narchs - 1] >= 80; /* the text is the newest one's, for all */
    c->target.warps = arch[narchs - 1] >= 90 && hopper;
    if (c->target.copies)
        c->target.group_nbytes = (c->target.warps ? 227 : 163) << 10;
    return c;
}

/* ---- programs ----------------------------------------------------------------------------- */

static void
test_programs(const char *policy)
{
    size_t p;

    for (p = 0; p < sizeof programs / sizeof *programs; p++) {
        jot_Ctx *c = open_idle(policy, NULL);
        jot_Var out[MOST];
        int n = 0;

        programs[p].build(c, out, &n);
        CHECK(jot_run(c, jot_vars(n, out)), "%s, %s: %s", programs[p].name, policy,
              jot_message(c));
        jot_close(c);
    }
}

/* Products and their gradients by tiles. */
static void
test_tiles(int first)
{
    for (size_t i = (size_t)first; i < TILE_CASES + LARGE_CASES + BAND_CASES;
         i += (size_t)test_many(5, 1)) {
        const TileCase *t = i < TILE_CASES ? &tile_cases[i]
                          : i < TILE_CASES + LARGE_CASES ? &large_cases[i - TILE_CASES]
                          : &band_cases[i - TILE_CASES - LARGE_CASES];
        jot_Ctx *c = open_idle("paper", tile_precision(t));
        jot_Var out[3];

        c->target.busy = i < TILE_CASES ? c->target.busy : i < TILE_CASES + LARGE_CASES ? 1 : 4;
        CHECK(tile_build(c, t, out) == 3 && jot_run(c, jot_vars(3, out)), "%s: %s", t->name,
              jot_message(c));
        jot_close(c);
    }
}

/* The same by the instructions of 9.0 that no other has. */
static void
test_hopper(void)
{
    int all[32], n = narchs;

    memcpy(all, arch, sizeof all);
    arch[0] = 90, narchs = 1;
    hopper = true;
    if (jot_nvrtc_arch(nvrtc, 90) == 90)
        test_tiles(test_many(1, 0));
    hopper = false;
    memcpy(arch, all, sizeof all);
    narchs = n;
}

/* Wide accesses are instructions of 16 bytes: two loads and a store. */
static void
test_vectors(void)
{
    enum { N = 1 << 18 };
    jot_Ctx *c = open_idle("reward", NULL);
    float *v = calloc(N, sizeof *v);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N), v), y;

    v[0] = 1;
    y = jot_array(c, JOT_F32, JOT_SHAPE(N), v);
    vectors = 0;
    CHECK(jot_run(c, JOT_VARS(jot_mul(x, jot_tanh(y)))) && vectors == 3, "%d vectors: %s", vectors,
          jot_message(c));
    vectors = -1;
    jot_close(c);
    free(v);
}

/* Two groups of 256 items by blocks have room on a multiprocessor, and next to nothing is spilled
 * for it: the sums alone are 64 registers. */
static void
test_registers(void)
{
    enum { N = 1024 };
    float *zeros = calloc(N * N, sizeof *zeros);

    for (int dtype = 0; dtype < 2; dtype++) {
        jot_Ctx *c = open_idle("reward", NULL);
        jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(N, N), zeros);

        x = dtype ? jot_cast(x, JOT_BF16) : x;
        CHECK(jot_data(x) != NULL, "%s", jot_message(c));
        registers = frame = 0;
        CHECK(jot_run(c, JOT_VARS(jot_matmul(x, x))) && registers > 64 && registers <= 128
                  && frame <= 64,
              "%u registers, %u bytes on the stack: %s", registers, frame, jot_message(c));
        jot_close(c);
    }
    free(zeros);
}

/* Indices are of 32 bits where these hold each of them, sums in the making and strides included. */
static void
test_index_width(void)
{
    static const int64_t extents[] = {1 << 20, (int64_t)1 << 30, ((int64_t)1 << 30) + 256,
                                      (int64_t)1 << 33};

    for (int i = 0; i < 4; i++) {
        jot_Ctx *c = open_idle("reward", NULL);
        jot_Var x = jot_iota(c, JOT_I64, JOT_SHAPE(extents[i]), 0);

        CHECK(jot_run(c, JOT_VARS(jot_sum(jot_mul(x, x), JOT_ALL_DIMS))) && loops[0] == (i < 2)
                  && loops[1] == (i >= 2),
              "%lld steps: indices of 32 bits %d, of 64 bits %d: %s", (long long)extents[i],
              loops[0], loops[1], jot_message(c));
        jot_close(c);
    }
}

/* A file's text, for every architecture here. */
static void
test_text(jot_Ctx *c, const char *path)
{
    Bytes text = {NULL, 0}, object;
    bool ok = jot_host_read(c, path, 1 << 28, &text);
    int i;

    for (i = 0; i < narchs && ok; i++) {
        ok = jot_nvrtc_compile(nvrtc, c, path, text.p, text.n, arch[i], false, &object);
        if (ok)
            jot_bytes_free(c, &object);
    }
    jot_bytes_free(c, &text);
    CHECK(ok, "%s: %s", path, jot_message(c));
    jot_clear(c);
}

/* Every operator on every dtype that has it. */
static void
test_operators(void)
{
    static jot_Var (*const unary[])(jot_Var) = {
#define U(name) jot_##name,
        JOT_UNARY(U)
#undef U
    };
    static jot_Var (*const binary[])(jot_Var, jot_Var) = {
#define B(name) jot_##name,
        JOT_BINARY(B)
#undef B
    };
    enum { UNARY = sizeof unary / sizeof *unary, BINARY = sizeof binary / sizeof *binary };
    static const char zeros[15 * 8];
    int t;

    for (t = 0; t < JOT_DTYPES; t++) { /* a kernel for each operator, in one text */
        jot_Ctx *c = open_idle("none", NULL);
        jot_Var x = jot_array(c, (jot_DType)t, JOT_SHAPE(3, 5), zeros), y[UNARY + BINARY];
        jot_Var z = jot_array(c, (jot_DType)t, JOT_SHAPE(5), zeros);
        int n = 0, i;

        for (i = 0; i < UNARY + BINARY; i++) {
            y[n] = i < UNARY ? unary[i](x) : binary[i - UNARY](x, z);
            if (jot_error(c) == JOT_EDTYPE)
                jot_clear(c);
            else
                n++;
        }
        CHECK(jot_run(c, jot_vars(n, y)), "operators of %s: %s", jot_dtype_name((jot_DType)t),
              jot_message(c));
        jot_close(c);
    }
}

int
main(int argc, char **argv)
{
    jot_Config config = {.backend = "interp"};
    jot_Ctx *c = jot_open(&config);
    char why[256];
    int most, all = argc > 1 && !strcmp(argv[1], "--all");

    nvrtc = jot_nvrtc_open(c, why, sizeof why);
    if (!nvrtc) {
        SKIP("CUDA text: %s", why);
        jot_close(c);
        return DONE();
    }
    for (most = 70; most <= jot_nvrtc_arch(nvrtc, 1 << 20); most++)
        if (jot_nvrtc_arch(nvrtc, most) == most
            && (all || !narchs || most == 80 || most == 90))
            arch[narchs++] = most;
    if (argc > 1 && !strcmp(argv[1], "--text")) {
        for (int i = 2; i < argc; i++)
            test_text(c, argv[i]);
        jot_nvrtc_close(nvrtc, c);
        jot_close(c);
        return DONE();
    }
    vectors = -1;
    test_vectors();
    test_registers();
    test_index_width();
    turns = !all;
    test_programs("paper");
    test_tiles(0);
    test_hopper();
    if (all)
        test_programs("reward");
    else
        arch[0] = arch[narchs - 1], narchs = 1;
    test_operators();
    printf("%llu objects by NVRTC %d, up to sm_%d\n", (unsigned long long)compiled,
           jot_nvrtc_version(nvrtc), arch[narchs - 1]);
    jot_nvrtc_close(nvrtc, c);
    jot_close(c);
    return DONE();
}
