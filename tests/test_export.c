/* tests/test_export.c - functions as C files: compiled without a warning by gcc, clang and tcc,
 * freestanding and without any library, they compute what the function in the program does; every
 * dtype as a table, updates, user code; the file as a header; what is refused; the n-th allocation
 * refused.
 *
 * Guards: backends/files/export.c, plan/function/export.c. */
#include "core.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/jot-export-XXXXXX";
static int files;

typedef struct { const char *name, *command; bool there; } Compiler;
static Compiler compilers[] = {
    {"gcc", "gcc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -Wmissing-prototypes -ffreestanding "
            "-nostdlib -fPIC -shared", false},
    {"clang", "clang -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror -ffreestanding -nostdlib -fPIC "
              "-shared", false},
    {"tcc", "tcc -std=c99 -Wall -nostdlib -shared", false},
};
enum { COMPILERS = sizeof compilers / sizeof compilers[0] };

/* The file is exported, compiled, and its function f; *arena is memory for it. */
static void *
load(jot_Ctx *c, const Compiler *with, jot_Vars in, jot_Vars out, void **arena)
{
    char path[100], object[100], command[500];
    void *lib;

    snprintf(path, sizeof path, "%s/f%d.c", dir, files);
    snprintf(object, sizeof object, "%s/f%d.so", dir, files++);
    CHECK(jot_export(c, "f", in, out, path), "%s: %s", with->name, jot_message(c));
    snprintf(command, sizeof command, "%s %s -o %s", with->command, path, object);
    if (system(command) || !(lib = dlopen(object, RTLD_NOW | RTLD_LOCAL))) {
        CHECK(0, "%s refuses %s: %s", with->name, path, dlerror());
        return NULL;
    }
    /* what the program itself would lend: a file that needs no library asks for these at most */
    snprintf(command, sizeof command,
             "! nm -D --undefined-only %s | grep -vwE 'w|memcpy|memmove|memset'", object);
    CHECK(!system(command), "%s: %s asks for these", with->name, path);
    *arena = aligned_alloc(64, (*(const unsigned long *)dlsym(lib, "f_arena") + 64) / 64 * 64);
    return dlsym(lib, "f");
}

typedef void F11(void *, const void *, void *);
typedef void F22(void *, const void *, const void *, void *, void *);
typedef void F03(void *, void *, void *, void *);

static float
noise(int i)
{
    return (float)((i * 7919 + 13) % 1001) / 1001 - .5f;
}

static jot_Var
filled(jot_Ctx *c, jot_Ints shape, bool param)
{
    static float data[4096];
    int64_t n = 1;
    int k;

    for (k = 0; k < shape.n; k++)
        n *= shape.v[k];
    for (k = 0; k < n; k++)
        data[k] = noise(k + 31 * (int)n);
    return param ? jot_param(c, JOT_F32, shape, data) : jot_array(c, JOT_F32, shape, data);
}

static bool
near(const float *a, const float *b, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i]))))
            return false;
    return true;
}

/* A convolution, a pool, a softmax. */
static void
inference(jot_Ctx *c, const Compiler *with)
{
    static const jot_Pool half = {{2, 2}, {2, 2}, {0, 0}};
    float room[2 * 8 * 8 + 2], *in = room + 1, a[10], b[10]; /* arrays of a caller lie anywhere */
    void *arena;
    jot_Var x, y;
    jot_Func f;
    F11 *g;
    int k;

    jot_push(c);
    x = filled(c, JOT_SHAPE(2, 1, 8, 8), false);
    y = jot_conv2d(x, filled(c, JOT_SHAPE(4, 1, 3, 3), true), NULL);
    y = jot_max_pool2d(jot_relu(jot_add(y, filled(c, JOT_SHAPE(4, 1, 1), true))), &half);
    y = jot_linear(jot_reshape(y, JOT_SHAPE(2, 36)), filled(c, JOT_SHAPE(36, 5), true),
                   filled(c, JOT_SHAPE(5), true));
    y = jot_softmax(y, 1);
    f = jot_compile(c, JOT_VARS(x), JOT_VARS(y));
    *(void **)&g = load(c, with, JOT_VARS(x), JOT_VARS(y), &arena);
    for (k = 0; g && k < 3; k++) {
        int i;

        for (i = 0; i < 128; i++)
            in[i] = noise(i * (k + 1));
        CHECK(jot_call(f, JOT_INS(JOT_IN(in, 128 * sizeof *in)), JOT_OUTS(JOT_OUT(a, sizeof a))),
              "%s", jot_message(c));
        memset(arena, k, 64);
        g(arena, in, b);
        CHECK(near(a, b, 10), "%s: %g %g, not %g %g", with->name, b[0], b[1], a[0], a[1]);
    }
    free(g ? arena : NULL);
    jot_func_free(f);
    jot_pop(c);
}

/* What compilers have functions of a library for: roots that may set errno, rounding, powers. */
static void
mathematics(jot_Ctx *c, const Compiler *with)
{
    float in[8] = {4, 2.25f, .5f, 1e-3f, 10, 0, 1e-40f, 3.5f}, out[8];
    double in64[8] = {4, 2.25, .5, 1e-3, 10, 0, 1e-310, 3.5}, out64[8];
    jot_Var x, y, x64, y64;
    void *arena;
    F22 *call;

    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(8), in);
    x64 = jot_array(c, JOT_F64, JOT_SHAPE(8), in64);
    y = jot_add(jot_sqrt(x), jot_mul(jot_floor(x), jot_hypot(jot_round(x), jot_ceil(x))));
    y = jot_add(y, jot_add(jot_pow(x, jot_trunc(x)), jot_asin(jot_sigmoid(x))));
    y64 = jot_add(jot_sqrt(x64), jot_mul(jot_floor(x64), jot_hypot(jot_round(x64), jot_ceil(x64))));
    *(void **)&call = load(c, with, JOT_VARS(x, x64), JOT_VARS(y, y64), &arena);
    if (call) {
        call(arena, in, in64, out, out64);
        const float *a = jot_data(y);
        const double *b = jot_data(y64);
        CHECK(a && near(out, a, 8), "%s: %g, not %g", with->name, out[3], a ? a[3] : 0);
        for (int k = 0; b && k < 8; k++)
            CHECK(fabs(out64[k] - b[k]) <= 1e-14 * fabs(b[k]), "%s: %g, not %g", with->name,
                  out64[k], b[k]);
        free(arena);
    }
    jot_pop(c);
}

/* Training steps: the tables of the file go along with the parameters of the program. */
static void
updates(jot_Ctx *c, const Compiler *with)
{
    float in[6] = {1, 2, 3, 4, 5, 6}, t[2] = {1, -1}, la, lb, wa[3], wb[3];
    void *arena;
    jot_Var w = filled(c, JOT_SHAPE(3, 1), true), seen, x, y, loss, g;
    jot_Func f;
    F22 *call;
    int k, turn;

    seen = jot_param(c, JOT_F32, JOT_SHAPE(2, 3), NULL);
    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), NULL);
    y = jot_array(c, JOT_F32, JOT_SHAPE(2, 1), NULL);
    *(void **)&call = NULL;
    memset(&f, 0, sizeof f);
    for (turn = 0; turn < 2; turn++) { /* a function takes its assignments along: built twice */
        loss = jot_mse(jot_matmul(x, w), y);
        loss = jot_add(loss, jot_sum(seen, JOT_ALL_DIMS));
        jot_grad(loss, JOT_VARS(w), &g);
        jot_assign(w, jot_sub(w, jot_scale(g, .01)));
        jot_assign(seen, x);
        if (turn)
            f = jot_compile(c, JOT_VARS(x, y), JOT_VARS(loss, w));
        else
            *(void **)&call = load(c, with, JOT_VARS(x, y), JOT_VARS(loss, w), &arena);
    }
    for (k = 0; call && k < 4; k++) {
        CHECK(jot_call(f, JOT_INS(JOT_IN(in, sizeof in), JOT_IN(t, sizeof t)),
                       JOT_OUTS(JOT_OUT(&la, sizeof la), JOT_OUT(wa, sizeof wa))),
              "%s", jot_message(c));
        call(arena, in, t, &lb, wb);
        CHECK(near(&la, &lb, 1) && near(wa, wb, 3), "%s, step %d: %g, not %g; %g, not %g",
              with->name, k, lb, la, wb[0], wa[0]);
        in[k] = -in[k];
    }
    free(call ? arena : NULL);
    jot_pop(c);
    jot_free(w);
    jot_free(seen);
}

/* Tables and outputs of each dtype, with the values that have no number in C. */
static void
tables(jot_Ctx *c, const Compiler *with)
{
    static const int64_t i64[3] = {INT64_MIN, INT64_MAX, -1};
    static const uint64_t u64[2] = {UINT64_MAX, 0};
    static const double f64[3] = {1.0 / 3, -0.0, 1e300};
    float f32[4] = {INFINITY, NAN, -0.0f, 1e-40f};
    jot_DType t;

    for (t = (jot_DType)0; t < JOT_DTYPES; t = (jot_DType)(t + 1)) {
        unsigned char same[4][64], computed[4][64], got[3][64];
        const void *data = t == JOT_I64 ? (const void *)i64 : t == JOT_U64 ? (const void *)u64
                         : t == JOT_F64 ? (const void *)f64 : (const void *)f32;
        int64_t n = t == JOT_U64 ? 2 : 3;
        size_t nbytes = (size_t)n * jot_dtype_nbytes(t);
        jot_Var x, twice;
        void *arena;
        F03 *f;

        if (t == JOT_BOOL)
            data = "\1\0\1";
        jot_push(c);
        x = jot_array(c, t, JOT_SHAPE(n), data);
        twice = jot_flip(x, JOT_INTS(0));
        CHECK(jot_copy(x, same, nbytes) && jot_copy(twice, computed, nbytes), "%s",
              jot_message(c));
        twice = jot_flip(jot_stop_fuse(x), JOT_INTS(0)); /* without elements yet */
        *(void **)&f = load(c, with, JOT_NONE_VARS, JOT_VARS(x, twice, x), &arena);
        if (f)
            f(arena, got[0], got[1], got[2]);
        CHECK(!f || (!memcmp(got[0], same, nbytes) && !memcmp(got[2], same, nbytes)),
              "%s: a table of %s", with->name, jot_dtype_name(t));
        CHECK(!f || !memcmp(got[1], computed, nbytes), "%s: %s", with->name, jot_dtype_name(t));
        free(f ? arena : NULL);
        jot_pop(c);
    }
}

static void
user_code(jot_Ctx *c, const Compiler *with)
{
    const char *name = "x";
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar scalar = {"by", 2.5};
    jot_Code code;
    float in[3] = {1, 2, 3}, got[3];
    jot_Var x, y = {0};
    void *arena;
    F11 *f;

    memset(&code, 0, sizeof code);
    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    code.name = "times";
    code.inputs = code.outputs = code.scalars = 1;
    code.in = &x;
    code.in_names = &name;
    code.out = &out;
    code.scalar = &scalar;
    code.source = "for (jot_i64 i = 0; i < y_n; i++) y[i] = x[i] * (float)by;";
    jot_code(c, &code, &y);
    *(void **)&f = load(c, with, JOT_VARS(x), JOT_VARS(y), &arena);
    if (f)
        f(arena, in, got);
    CHECK(!f || (got[0] == 2.5f && got[2] == 7.5f), "%s: %g", with->name, got[2]);
    free(f ? arena : NULL);
    jot_pop(c);
}

/* The file as its own header: declarations alone, for C and C++. */
static void
header(jot_Ctx *c)
{
    static const char *const compiler[][2] = {{"gcc", "gcc -std=c99 -x c"}, {"g++", "g++ -x c++"}};
    char path[100], command[400];
    jot_Var x;
    FILE *file;

    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);
    snprintf(path, sizeof path, "%s/h.c", dir);
    CHECK(jot_export(c, "h", JOT_VARS(x), JOT_VARS(jot_exp(x)), path), "%s", jot_message(c));
    jot_pop(c);
    snprintf(path, sizeof path, "%s/use.c", dir);
    file = fopen(path, "w");
    fprintf(file, "#define h_HEADER\n#include \"h.c\"\nextern double room[h_ARENA / 8 + 1];\n");
    fclose(file);
    for (int k = 0; k < 2; k++) {
        snprintf(command, sizeof command, "command -v %s >/dev/null", compiler[k][0]);
        if (system(command)) {
            SKIP("no %s here", compiler[k][0]);
            continue;
        }
        snprintf(command, sizeof command,
                 "%s -Wall -Wextra -Wpedantic -Werror -c %s -o %s/use.o && "
                 "! nm %s/use.o | grep -q .", compiler[k][1], path, dir, dir);
        CHECK(!system(command), "%s", command);
    }
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void
nowhere(void *user, const char *text, size_t nbytes)
{
    *(size_t *)user += text ? nbytes : 0;
}

static void
refused(jot_Ctx *c)
{
    static const char *const taken[] = { "int", "class", "xor", "main", "memcpy", "jot_i64",
                                         "jotm_expf", "JOT_INLINE" };
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL), y = jot_offset(x, 1);
    size_t n = 0;
    char pipe[100], head[6];
    struct stat there;
    int fd;

    CHECK(!jot_export_text(c, "2f", JOT_VARS(x), JOT_VARS(y), nowhere, &n)
              && strstr(jot_message(c), "an identifier of C") && !n, "%s", jot_message(c));
    jot_clear(c);
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) {
        CHECK(!jot_export_text(c, taken[k], JOT_VARS(x), JOT_VARS(y), nowhere, &n)
                  && strstr(jot_message(c), "is taken") && !n, "%s", jot_message(c));
        jot_clear(c);
    }
    CHECK(!jot_export_text(c, "f", JOT_VARS(x), JOT_VARS(y), NULL, NULL)
              && strstr(jot_message(c), "export: write is NULL"), "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_export_text(c, "f", JOT_VARS(x), JOT_VARS(jot_dropout(y, .5)), nowhere, &n)
              && strstr(jot_message(c), "random") && !n, "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_export(c, "f", JOT_VARS(x), JOT_VARS(y), "/nowhere/f.c") && jot_error(c) == JOT_EIO,
          "%s", jot_message(c));
    jot_clear(c);
    CHECK(!jot_export(c, "f", JOT_VARS(y), JOT_VARS(y), "f.c"), "an expression as input");
    jot_clear(c);
    snprintf(pipe, sizeof pipe, "%s/pipe", dir);
    /* what is no file is not replaced */
    if (!mkfifo(pipe, 0600) && (fd = open(pipe, O_RDWR)) >= 0) {
        CHECK(jot_export(c, "f", JOT_VARS(x), JOT_VARS(y), pipe) && !lstat(pipe, &there)
                  && S_ISFIFO(there.st_mode) && read(fd, head, 6) == 6
                  && !memcmp(head, "/* f -", 6),
              "%s", jot_message(c));
        close(fd);
    }
    CHECK(jot_export_text(c, "f", JOT_VARS(x), JOT_VARS(y), nowhere, &n) && n > 500, "%zu %s", n,
          jot_message(c));
}

static void
take_arena(void *user, const char *text, size_t nbytes)
{
    const char *at = nbytes ? strstr(text, "enum { f_ARENA = ") : NULL;

    if (at)
        *(long *)user = atol(at + 17);
}

/* No room for the workers of a program that shares kernels. */
static void
arena_size(void)
{
    jot_Config config = {.cache_dir = "", .threads = 4};
    jot_Ctx *c = jot_open(&config);
    long nbytes = -1;
    jot_Var x, p;

    x = filled(c, JOT_SHAPE(4, 4), false);
    p = filled(c, JOT_SHAPE(4, 4), true);
    CHECK(jot_export_text(c, "f", JOT_VARS(x), JOT_VARS(jot_matmul(jot_relu(jot_matmul(x, p)), p)),
                          take_arena, &nbytes), "%s", jot_message(c));
    CHECK(nbytes >= 0 && nbytes <= 64, "an arena of %ld bytes", nbytes);
    jot_close(c);
}

static void
no_memory(void)
{
    bool done = false;
    long n;

    for (n = 1; !done; n++) {
        Heap heap = {0};
        jot_Config config = {.backend = "interp", .cache_dir = "", .give_back = 1};
        jot_Ctx *c;
        jot_Var x, y;
        size_t size = 0;
        bool ok;

        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        c = jot_open(&config);
        x = filled(c, JOT_SHAPE(4, 3), false);
        y = jot_softmax(jot_matmul(x, filled(c, JOT_SHAPE(3, 5), true)), 1);
        heap.countdown = n;
        ok = jot_export_text(c, "f", JOT_VARS(x), JOT_VARS(y), nowhere, &size);
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok == !jot_error(c) && (ok || (!done && jot_error(c) == JOT_EMEM)), "n %ld: %s", n,
              jot_message(c));
        jot_clear(c);
        CHECK(jot_data(y), "n %ld: %s", n, jot_message(c));
        jot_close(c);
        CHECK(heap.live == 0, "n %ld: %zu bytes left", n, heap.live);
    }
    CHECK(n > 50, "%ld allocations", n);
}

int
main(void)
{
    char command[200];
    int k;

    if (!mkdtemp(dir))
        return 1;
    for (k = 0; k < COMPILERS; k++) {
        jot_Ctx *c = jot_open(NULL);

        snprintf(command, sizeof command, "command -v %s >/dev/null", compilers[k].name);
        if (system(command)) {
            SKIP("no %s here", compilers[k].name);
            jot_close(c);
            continue;
        }
        inference(c, &compilers[k]);
        mathematics(c, &compilers[k]);
        updates(c, &compilers[k]);
        tables(c, &compilers[k]);
        if (strcmp(jot_backend(c), "interp"))
            user_code(c, &compilers[k]);
        header(c);
        refused(c);
        CHECK(!jot_error(c), "%s", jot_message(c));
        jot_close(c);
    }
    arena_size();
    no_memory();
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(!system(command), "%s is left", dir);
    return DONE();
}
