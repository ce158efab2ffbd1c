/* tests/test_fake_check.c - that the stand-in for a CUDA device finds what compute-sanitizer finds:
 * kernels with one fault each, and beside them the same ones without it, which it must let pass.
 *
 *     a case = text of one kernel + which device + what is to be found, and on which line
 *
 * Each runs in a process of its own, which ends where something is found; its words are read here.
 * Only with tests/fake_cuda.c as libcuda.so.1 (tests/test_fake.sh).
 *
 * Read before: tests/fake_check.c.
 *
 * Guards: tests/fake_check.c. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/test.h"

typedef struct {
    const char *name;
    int arch, groups, items;
    const char *body, *kind;    /* of the kernel; what is found, NULL: nothing */
    const char *line;           /* text of the line that is named */
} Case;

#define COPY16(to, from) \
    "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" : : " \
    "\"r\"((unsigned)__cvta_generic_to_shared(" to ")), \"l\"(" from ") : \"memory\");\n"
#define COPIES_WAIT "asm volatile(\"cp.async.wait_all;\" : : : \"memory\");\n"
#define FENCE "asm volatile(\"fence.proxy.async.shared::cta;\" : : : \"memory\");\n"
#define SYNC "__syncthreads();\n"
#define SHARED_T "__shared__ __align__(16) float t[256];\n"
#define GIVEN_T "extern __shared__ __align__(16) float t[];\n"

/* Eight rows of 16 bytes of t. */
#define MATRIX(when) \
    "unsigned r = 0, at = __cvta_generic_to_shared(t + i % 8 * 4);\n" when \
    "asm volatile(\"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\" " \
    ": \"=r\"(r) : \"r\"(at));\ny[i] = r;\n"

/* 64 x 8 results of 16 terms: all of both operands are ones. */
#define UNIT(before) UNIT_BEGINS(before) UNIT_ENDS
#define UNIT_ENDS "asm volatile(\"wgmma.wait_group.sync.aligned 0;\" " \
    ": \"+f\"(d0), \"+f\"(d1), \"+f\"(d2), \"+f\"(d3) : : \"memory\");\n"
#define UNIT_BEGINS(before) \
    "__shared__ __align__(16) unsigned short ta[1024];\n" \
    "__shared__ __align__(16) unsigned short tb[128];\n" \
    "for (int e = i; e < 1024; e += 128)\nta[e] = 0x3c00;\ntb[i] = 0x3c00;\n" before \
    "unsigned long long a = __cvta_generic_to_shared(ta) >> 4 | 64ull << 16 | 8ull << 32;\n" \
    "unsigned long long b = __cvta_generic_to_shared(tb) >> 4 | 8ull << 16 | 8ull << 32;\n" \
    "float d0 = 0, d1 = 0, d2 = 0, d3 = 0;\n" \
    "asm volatile(\"wgmma.fence.sync.aligned;\\n" \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " \
    "{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\\nwgmma.commit_group.sync.aligned;\" " \
    ": \"+f\"(d0), \"+f\"(d1), \"+f\"(d2), \"+f\"(d3) : " \
    "\"l\"(a), \"l\"(b) : \"memory\");\n"

static const Case cases[] = {
    {"written and read across a barrier", 70, 2, 64, SHARED_T "t[i] = x[i];\n"
     SYNC "y[64 * g + i] = t[63 - i];\n",
     NULL, NULL},
    {"read without a barrier", 70, 2, 64, SHARED_T "t[i] = x[i];\ny[64 * g + i] = t[63 - i];\n",
     "race",
     "y[64 * g + i] = t[63 - i];"},
    {"the line that wrote", 70, 1, 64, SHARED_T "t[i] = x[i];\ny[i] = t[63 - i];\n", "race",
     "t[i] = x[i];"},
    {"written again without a barrier", 70, 1, 64,
     SHARED_T "for (int k = 0; k < 2; k++) {\nt[i] = x[i + k];\n" SYNC "y[i] = t[63 - i];\n}\n",
      "race",
     "t[i] = x[i + k];"},
    {"written again behind one", 70, 1, 64,
     SHARED_T "for (int k = 0; k < 2; k++) {\nt[i] = x[i + k];\n" SYNC "y[i] = t[63 - i];\n"
      SYNC "}\n", NULL, NULL},
    {"one place written by all", 70, 1, 64, SHARED_T "t[0] = x[i];\n" SYNC "y[i] = t[0];\n",
     "race", "t[0] = x[i];"},
    {"a warp is no barrier", 70, 1, 32, SHARED_T "t[i] = x[i];\ny[i] = t[31 - i];\n", "race",
     "t[31 - i]"},
    {"halves of a word", 70, 1, 64, "((unsigned short *)y)[i] = i;\n"
     "((unsigned short *)y)[i] += 1;\n", NULL, NULL},
    {"halves of a word and the word", 70, 1, 64, "((unsigned short *)y)[i] = i;\nif (i == 5)\n"
     "y[9] = 1;\n",
     "race", "y"},
    {"written by two groups", 70, 2, 32, "y[i] = g;\n", "race", "y[i] = g;"},
    {"written by one group, read by another", 70, 2, 32, "if (g == 0)\ny[i] = 1;\nelse\n"
     "y[i + 32] = y[i];\n", "race",
     "y[i + 32] = y[i];"},
    {"read by a group, written by another", 70, 3, 32, "if (g < 2)\n"
     "y[32 * g + i + 32] = y[i];\nelse\ny[i] = 1;\n",
     "race", "y[i] = 1;"},
    {"read by all groups", 70, 4, 32, "y[32 * g + i] = x[i];\n", NULL, NULL},
    {"a barrier is none for other groups", 70, 2, 32, "if (g == 0)\ny[i] = 1;\n"
     SYNC "if (g)\ny[i] = 2;\n", "race",
     "y[i] = 2;"},
    {"memory of the device across a barrier", 70, 1, 64, "y[i] = x[i];\n"
     SYNC "y[i + 64] = y[63 - i];\n", NULL, NULL},
    {"... and without one", 70, 1, 64, "y[i] = x[i];\ny[i + 64] = y[63 - i];\n", "race",
     "y[i + 64] = y[63 - i];"},
    {"atomic", 70, 4, 64, "unsigned *w = (unsigned *)x, was;\ndo\nwas = *(volatile unsigned *)w;\n"
     "while (atomicCAS(w, was, was + 1) != was);\n", NULL, NULL},
    {"atomic, and read by the way", 70, 1, 64, "atomicCAS((unsigned *)y, 0u, 1u);\n"
     "y[i + 1] = y[0];\n", "race",
     "y[i + 1] = y[0];"},
    {"atomic by one group, written by another", 70, 3, 1,
     "if (g < 2)\natomicCAS((unsigned *)y, 0u, 1u);\nelse\ny[0] = 1;\n", "race", "y[0] = 1;"},
    {"up to the end", 70, 1, 256, "y[i] = x[i];\n", NULL, NULL},
    {"read past the end", 70, 1, 256, "y[i] = x[i + 1];\n", "outside", "y[i] = x[i + 1];"},
    {"read before the beginning", 70, 1, 256, "y[i] = x[i - 1];\n", "outside", "y[i] = x[i - 1];"},
    {"written past the end", 70, 1, 256, "y[i + 1] = x[i];\n", "outside", "y[i + 1] = x[i];"},
    {"past the end of a group's array", 70, 1, 256, SHARED_T "t[i + 1] = x[i];\n"
     SYNC "y[i] = t[i];\n", "outside",
     "t[i + 1] = x[i];"},
    {"from one array of a group into the next", 70, 1, 32,
     "__shared__ float s[32];\n" SHARED_T "t[i] = x[i];\ns[i + 8] = x[i];\n"
      SYNC "y[i] = t[i];\n", "outside",
     "s[i + 8] = x[i];"},
    {"not aligned", 70, 1, 32, "y[i] = *(const double *)(x + 2 * i + 1);\n", "outside",
     "(x + 2 * i + 1)"},
    {"never written", 70, 1, 32, SHARED_T "if (i)\nt[i] = x[i];\n" SYNC "y[i] = t[31 - i];\n",
     "unset", "y[i] = t[31 - i];"},
    {"written by the last group", 70, 2, 32, SHARED_T "if (!g)\nt[i] = x[i];\n"
     SYNC "y[32 * g + i] = t[i];\n", "unset",
     "y[32 * g + i] = t[i];"},
    {"never written, of the device", 70, 1, 32, "y[i + 32] = y[i];\n", "unset",
     "y[i + 32] = y[i];"},
    {"half of the items at a barrier", 70, 1, 64, "if (i < 32)\n" SYNC "y[i] = 0;\n",
     "divergent barrier", "has ended"},
    {"all at two barriers", 70, 1, 64, "if (i < 32)\n" SYNC "else\n" SYNC "y[i] = 0;\n",
     "divergent barrier", "line"},
    {"once more than others", 70, 1, 64, "for (int k = 0; k < 1 + i / 63; k++)\n"
     SYNC "y[i] = 0;\n",
     "divergent barrier", "has ended"},
    {"a condition of the group", 70, 2, 64, "if (g)\n" SYNC "y[64 * g + i] = 0;\n", NULL, NULL},
    {"half of a warp at its matrix", 75, 1, 32,
     SHARED_T "t[i] = 0;\nt[i + 32] = 0;\n" SYNC MATRIX("if (i < 16)\n"), "divergent warp",
     "has ended"},
    {"a matrix across a barrier", 75, 1, 32, SHARED_T "t[i] = 0;\nt[i + 32] = 0;\n" SYNC MATRIX(""),
     NULL, NULL},
    {"a matrix without a barrier", 75, 1, 32, SHARED_T "t[i] = 0;\nt[i + 32] = 0;\n" MATRIX(""),
     "race", "asm volatile(\"ldmatrix"},
    {"a copy", 80, 1, 32, SHARED_T COPY16("t + 4 * i",
     "x + 4 * i") COPIES_WAIT SYNC "y[i] = t[127 - i];\n", NULL, NULL},
    {"a copy, one's own, not waited for", 80, 1, 32,
     SHARED_T COPY16("t + 4 * i", "x + 4 * i") "y[i] = t[4 * i];\n" COPIES_WAIT, "early",
      "y[i] = t[4 * i];"},
    {"a copy behind a barrier, not waited for", 80, 1, 32,
     SHARED_T COPY16("t + 4 * i", "x + 4 * i") SYNC "y[i] = t[127 - i];\n" COPIES_WAIT, "early",
      "y[i] = t[127 - i];"},
    {"a copy without a barrier", 80, 1, 32,
     SHARED_T COPY16("t + 4 * i", "x + 4 * i") COPIES_WAIT "y[i] = t[127 - i];\n", "race",
      "y[i] = t[127 - i];"},
    {"a copy over what others still read", 80, 1, 32,
     SHARED_T "t[i] = x[i];\nt[i + 32] = x[i];\nt[i + 64] = x[i];\nt[i + 96] = x[i];\n"
      SYNC "y[i] = t[127 - i];\n"
     COPY16("t + 4 * i", "x + 4 * i") COPIES_WAIT, "race", "cp.async"},
    {"a copy from past the end", 80, 1, 32, SHARED_T COPY16("t + 4 * i",
     "x + 4 * i + 132") COPIES_WAIT, "outside",
     "cp.async"},
    {"the unit of four warps", 90, 1, 128, UNIT(FENCE SYNC) "y[i] = d0 + d1 + d2 + d3;\n", NULL,
     NULL},
    {"... not fenced", 90, 1, 128, UNIT(SYNC) "y[i] = d0 + d1 + d2 + d3;\n", "fenced", ""},
    {"... written behind the fence", 90, 1, 128, UNIT(FENCE "tb[i] = 0x3c00;\n"
     SYNC) "y[i] = d0 + d1 + d2 + d3;\n",
     "early", "asm volatile(\"wgmma"},
    {"... not at a barrier", 90, 1, 128, UNIT(FENCE SYNC FENCE "tb[i] = 0x3c00;\n"
     FENCE) "y[i] = d0 + d1 + d2 + d3;\n",
     "race", "asm volatile(\"wgmma"},
    {"... overwritten while others may read", 90, 1, 128, UNIT(FENCE SYNC) "tb[i] = 0;\n"
     "y[i] = d0 + d1 + d2 + d3;\n",
     "race", "tb[i] = 0;"},
    {"... overwritten behind a barrier, not waited for", 90, 1, 128,
     UNIT_BEGINS(FENCE SYNC) SYNC "tb[i] = 0;\n" UNIT_ENDS "y[i] = d0 + d1 + d2 + d3;\n", "race",
     "asm volatile(\"wgmma"},
    {"... never waited for", 90, 1, 128, UNIT_BEGINS(FENCE SYNC) "y[i] = d0 + d1 + d2 + d3;\n",
     "an item ends before its products", ""},
    {"more items than it allows", 70, 1, 288, "y[i % 256] = 0;\n", "a group of more items",
     "__launch_bounds__"},
    {"what is not looked at, in another order", 70, 2, 64, "hidden(y, 64 * g + i);\n", "order", ""},
};

/* Memory that the launch gives: bytes. */
static const struct { Case c; int given; } given_cases[] = {
    {{"given at the launch", 70, 2, 64,
      GIVEN_T "t[i] = x[i];\n" SYNC "y[64 * g + i] = t[63 - i];\n",
     NULL, NULL}, 256},
    {{"... beside arrays of its own", 70, 1, 64, GIVEN_T "__shared__ float s[64];\nt[i] = x[i];\n"
     "s[i] = x[i];\n" SYNC "y[i] = t[63 - i] + s[i];\n", NULL, NULL}, 256},
    {{"... more than without asking", 90, 1, 64, GIVEN_T "t[i + 51200] = x[i];\n"
     SYNC "y[i] = t[51263 - i];\n", NULL, NULL}, 205056},
    {{"... past its end", 70, 1, 64, GIVEN_T "t[i] = x[i];\n" SYNC "y[i] = t[63 - i];\n", "outside",
     "t[i] = x[i];"}, 252},
    {{"... nothing", 70, 1, 64, GIVEN_T "t[i] = x[i];\n" SYNC "y[i] = t[i];\n", "outside",
     "t[i] = x[i];"}, 0},
};

/* ---- a device ----------------------------------------------------------------------------- */

typedef int Call();
static void *driver;

static Call *
call(const char *name)
{
    Call *f;

    *(void **)&f = dlsym(driver, name);
    return f;
}

enum { N = 256, OWN = 48 << 10 };
static float result[N];
static int given;               /* bytes of a group that the launch gives */
static bool not_asked;          /* ... and nobody asked for as many */

/* x of 256 elements, y of as many that are not set; false if it does not compile. */
static int
launch(const Case *c, const char *text)
{
    void *program = NULL, *module = NULL, *kernel = NULL, *stream = NULL;
    const char *options[] = {c->arch == 90 ? "--gpu-architecture=sm_90a"
     : "--gpu-architecture=sm_80"};
    uint64_t x = 0, y = 0;
    void *args[] = {&y, &x};
    float from[N];
    size_t nbytes = 0;
    char *image, log[4000] = "";

    for (int i = 0; i < N; i++)
        from[i] = (float)i;
    call("nvrtcCreateProgram")(&program, text, "text", 0, NULL, NULL);
    if (call("nvrtcCompileProgram")(program, 1, options)) {
        call("nvrtcGetProgramLog")(program, log);
        return fprintf(stderr, "%s\n", log), 1;
    }
    call("nvrtcGetCUBINSize")(program, &nbytes);
    image = malloc(nbytes);
    call("nvrtcGetCUBIN")(program, image);
    call("cuStreamCreate")(&stream, 0);
    if (call("cuModuleLoadData")(&module, image) || call("cuModuleGetFunction")(&kernel, module,
     "planted"))
        return fprintf(stderr, "it is not loaded\n"), 1;
    call("cuMemAlloc_v2")(&x, sizeof from);
    call("cuMemAlloc_v2")(&y, sizeof from);
    call("cuMemcpyHtoDAsync_v2")(x, from, sizeof from, stream);
    if (given > OWN && !not_asked && call("cuFuncSetAttribute")(kernel, 8, given))
        return fprintf(stderr, "it is not set\n"), 1;
    if (call("cuLaunchKernel")(kernel, c->groups, 1, 1, c->items, 1, 1, given, stream, args, NULL))
        return fprintf(stderr, "it is not launched\n"), 1;
    call("cuMemcpyDtoHAsync_v2")(result, y, sizeof result, stream);
    call("cuStreamSynchronize")(stream);
    free(image);
    return 0;
}

static void
write_text(const Case *c, char text[6000])
{
    snprintf(text, 6000,
             "__device__ __attribute__((no_sanitize(\"thread\"))) void hidden(float *y, int i)\n"
             "{\ny[0] = i;\n}\n"
             "extern \"C\" __global__ void __launch_bounds__(256)\n"
             "planted(float *y, const float *x)\n{\n"
             "const int i = threadIdx.x, g = blockIdx.x;\n%s}\n", c->body);
}

/* What it says, and how it ends. */
static int
run_case(const Case *c, const char *check, const char *order, char *said, size_t room)
{
    char text[6000], arch[8];
    int to_me[2], status = -1;
    size_t n = 0;
    ssize_t got;
    pid_t child;

    if (pipe(to_me))
        return -1;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        snprintf(arch, sizeof arch, "%d", c->arch);
        setenv("FAKE_CHECK", check, 1);
        setenv("FAKE_ORDER", order, 1);
        setenv("FAKE_CUDA_ARCH", arch, 1);
        dup2(to_me[1], 2);
        close(to_me[0]);
        write_text(c, text);
        status = launch(c, text);
        fprintf(stderr, "result %g\n", (double)result[0]);
        _exit(status);
    }
    close(to_me[1]);
    while ((got = read(to_me[0], said + n, room - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = 0;
    close(to_me[0]);
    waitpid(child, &status, 0);
    return status;
}

static void
check_case(const Case *c)
{
    char said[20000], kind[60];
    int status = run_case(c, "2", "0", said, sizeof said);

    if (!c->kind) {
        CHECK(status == 0 && !strstr(said, "fake_cuda"), "%s: %s", c->name, said);
        return;
    }
    snprintf(kind, sizeof kind, "planted: %s", c->kind);
    CHECK(status != 0 && (strstr(said, kind) || !strcmp(c->kind, "fenced")) && strstr(said,
     c->kind), "%s: %s",
          c->name, said);
    CHECK(strstr(said, c->line), "%s: its line, %s: %s", c->name, c->line, said);
}

/* A race that the order of items decides, unchecked: forward the last one wins, backward the
 * first. */
static void
test_order(void)
{
    static const Case race = {"race", 70, 1, 64, SHARED_T "t[0] = x[i];\n" SYNC "y[i] = t[0];\n",
     NULL, NULL};
    char said[2000];

    CHECK(run_case(&race, "0", "0", said, sizeof said) == 0 && strstr(said, "result 63\n"),
     "forward: %s", said);
    CHECK(run_case(&race, "0", "1", said, sizeof said) == 0 && strstr(said, "result 0\n"),
     "backward: %s", said);
    CHECK(run_case(&race, "0", "7", said, sizeof said) == 0 && !strstr(said, "result 63\n")
              && !strstr(said, "result 0\n"), "drawn: %s", said);
}

/* A launch may give 48 KiB; more where it was asked for, and no more than the device has. */
static void
test_given(void)
{
    static const Case much = {"given", 70, 1, 64,
                              GIVEN_T "t[i] = x[i];\n" SYNC "y[i] = t[63 - i];\n",
                              NULL, NULL};
    char said[2000];

    given = OWN;
    CHECK(run_case(&much, "2", "0", said, sizeof said) == 0, "48 KiB: %s", said);
    given = OWN + 16;
    CHECK(run_case(&much, "2", "0", said, sizeof said) == 0, "asked for: %s", said);
    not_asked = true;
    CHECK(run_case(&much, "2", "0", said, sizeof said) && strstr(said, "it is not launched"),
          "not asked for: %s", said);
    not_asked = false;
    given = (96 << 10) + 16;
    CHECK(run_case(&much, "2", "0", said, sizeof said) && strstr(said, "it is not set"),
          "more than it has: %s", said);
}

int
main(void)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || !dlsym(driver, "fake_refuse")) {
        SKIP("the driver here is none of tests/fake_cuda.c");
        return DONE();
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
    for (size_t i = 0; i < sizeof given_cases / sizeof given_cases[0]; i++) {
        given = given_cases[i].given;
        check_case(&given_cases[i].c);
    }
    given = 0;
    test_order();
    test_given();
    return DONE();
}
