/* backends/cpu/tcc.c - kernels through libtcc, in this process: a fifth of a millisecond each, and
 * code of an untuned kind. libtcc is opened at run time; its few functions are declared here, so
 * that neither building nor running jot needs it.
 *
 * libtcc keeps global state while it compiles (0.9.27 all of it, newer ones less), so one lock of
 * the whole process stands around every call (backends/host/fork.c).
 *
 * The code lives in the TCCState that made it, and the state lives until the module is unloaded.
 * The other way, code copied to memory of our own and the state dropped, would save its symbol
 * tables but needs memory that is writable and executable, and newer versions no longer offer it.
 *
 * The text needs nothing of the system: no header, no library. What tcc calls from generated code
 * (memcpy and friends, conversions of unsigned 64-bit integers) is handed in here.
 *
 * Debian's libtcc-dev has a static archive only; the build makes a shared library from it by
 * tools/libtcc.sh and says where it is (JOT_LIBTCC_PATH).
 *
 * Read before: backends/backend.h, backends/host/host.h. After: plan/plan.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host/host.h"
#include "ops/user/code.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct TCCState TCCState;
enum { TCC_TO_MEMORY = 1 };

typedef struct {
    void *library;
    TCCState *(*create)(void);
    void (*destroy)(TCCState *s);
    void (*on_error)(TCCState *s, void *ud, void (*call)(void *ud, const char *message));
    int (*options)(TCCState *s, const char *text); /* void in older versions */
    int (*output)(TCCState *s, int type);
    int (*compile)(TCCState *s, const char *text);
    int (*add_symbol)(TCCState *s, const char *name, const void *p);
    int (*relocate2)(TCCState *s, void *to); /* one of the two is NULL, see tcc_functions */
    int (*relocate1)(TCCState *s);
    void *(*get_symbol)(TCCState *s, const char *name);
} TccState;

/* ---- what generated code may call --------------------------------------------------------- */

/* The names are those of the compiler's support library, libtcc1 or libgcc; tcc inlines none of
 * them. */
static double tcc_u64_f64(unsigned long long x) { return (double)x; }
static float tcc_u64_f32(unsigned long long x) { return (float)x; }
static long long tcc_f64_i64(double x) { return (long long)x; }
static long long tcc_f32_i64(float x) { return (long long)x; }
static unsigned long long tcc_f64_u64(double x) { return (unsigned long long)x; }
static unsigned long long tcc_f32_u64(float x) { return (unsigned long long)x; }

typedef void TccFn(void);
static const struct { const char *name; TccFn *fn; } tcc_support[] = {
    { "memcpy", (TccFn *)memcpy },             { "memmove", (TccFn *)memmove },
    { "memset", (TccFn *)memset },             { "memcmp", (TccFn *)memcmp },
    { "__floatundidf", (TccFn *)tcc_u64_f64 }, { "__floatundisf", (TccFn *)tcc_u64_f32 },
    { "__fixdfdi", (TccFn *)tcc_f64_i64 },     { "__fixsfdi", (TccFn *)tcc_f32_i64 },
    { "__fixunsdfdi", (TccFn *)tcc_f64_u64 },  { "__fixunssfdi", (TccFn *)tcc_f32_u64 }
};

/* ---- finding the library ------------------------------------------------------------------ */

/* tcc_relocate(s, TCC_RELOCATE_AUTO) up to 0.9.27 and for some years of development after it,
 * tcc_relocate(s) before 0.9.26 and now. Each kind of the second has a function that the first
 * never had: tcc_relocate_ex then, _tcc_setjmp now. */
static bool
tcc_functions(TccState *t)
{
    void *l = t->library, *probe;

    if (jot_library_find(l, "_tcc_setjmp", &probe)
        || jot_library_find(l, "tcc_relocate_ex", &probe))
        jot_library_find(l, "tcc_relocate", &t->relocate1);
    else
        jot_library_find(l, "tcc_relocate", &t->relocate2);
    return (t->relocate1 || t->relocate2) && jot_library_find(l, "tcc_new", &t->create)
        && jot_library_find(l, "tcc_delete", &t->destroy)
        && jot_library_find(l, "tcc_set_options", &t->options)
        && jot_library_find(l, "tcc_set_error_func", &t->on_error)
        && jot_library_find(l, "tcc_set_output_type", &t->output)
        && jot_library_find(l, "tcc_compile_string", &t->compile)
        && jot_library_find(l, "tcc_add_symbol", &t->add_symbol)
        && jot_library_find(l, "tcc_get_symbol", &t->get_symbol);
}

/* name NULL: the program itself may be linked with libtcc. Of a path it is seen that it is a file:
 * the linker would wait for who writes to a pipe. */
static bool
tcc_try(const jot_Ctx *ctx, TccState *t, const char *name, char *why, size_t why_nbytes)
{
    int fd = name && strchr(name, '/') ? jot_host_open(AT_FDCWD, name) : -1;

    t->library = NULL;
    if (name && strchr(name, '/') && fd < 0) {
        snprintf(why, why_nbytes, "libtcc: %.120s: %s", name,
                 errno == EINVAL ? "it is no file" : strerror(errno));
        return false;
    }
    if (fd >= 0)
        close(fd);
    t->library = jot_library_open(&name, 1);
    if (!t->library) {
        snprintf(why, why_nbytes, "libtcc: %s", dlerror());
        return false;
    }
    if (tcc_functions(t))
        return true;
    snprintf(why, why_nbytes, "libtcc: %s lacks functions of libtcc", name ? name : "the program");
    jot_library_close(ctx, t->library);
    t->library = NULL;
    return false;
}

static bool
tcc_library(jot_Ctx *ctx, TccState *t, char *why, size_t why_nbytes)
{
    static const char *const names[] = {
        NULL,
#ifdef JOT_LIBTCC_PATH
        JOT_LIBTCC_PATH, /* where the build put the one that it made */
#endif
        "libtcc.so", "libtcc.so.0", "libtcc.so.1"
    };
    const char *name = jot_host_env(ctx, "JOT_LIBTCC");
    size_t i;

    if (name && *name)
        return tcc_try(ctx, t, name, why, why_nbytes);
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (tcc_try(ctx, t, names[i], why, why_nbytes))
            return true;
    snprintf(why, why_nbytes, "libtcc.so is not installed, as a shared library (JOT_LIBTCC may "
             "name one)");
    return false;
}

static jot_Status
tcc_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    TccState *t = jot_mem_new(&ctx->mem, 1, sizeof *t);

    if (!t) {
        snprintf(why, why_nbytes, "out of memory");
        return JOT_EMEM;
    }
    if (!tcc_library(ctx, t, why, why_nbytes)) {
        jot_mem_free(&ctx->mem, t, sizeof *t);
        return JOT_EDEVICE;
    }
    backend->state = t;
    ctx->target.vector_nbytes = 0;
    ctx->target.fma = false;
    ctx->target.flops /= 100; /* scalars, every one through memory */
    return JOT_OK;
}

static void
tcc_close(Backend *backend, jot_Ctx *ctx)
{
    TccState *t = backend->state;

    if (!t)
        return;
    jot_library_close(ctx, t->library);
    jot_mem_free(&ctx->mem, t, sizeof *t);
    backend->state = NULL;
}

/* ---- compile ------------------------------------------------------------------------------ */

typedef struct { char s[700]; size_t n; } TccMessages;

static void
tcc_message(void *ud, const char *message)
{
    TccMessages *m = ud;
    size_t n = strlen(message), room = sizeof m->s - 2 - m->n;

    if (strstr(message, "warning:"))
        return;
    n = n < room ? n : room;
    memcpy(m->s + m->n, message, n);
    m->n += n;
    if (n && n < room)
        m->s[m->n++] = '\n';
    m->s[m->n] = 0;
}

/* The steps from text to code; false at the first that libtcc refuses. */
static bool
tcc_build(TccState *t, TCCState *s, const char *text)
{
    size_t i;

    t->options(s, "-nostdlib -w");
    if (t->output(s, TCC_TO_MEMORY) < 0)
        return false;
    for (i = 0; i < sizeof tcc_support / sizeof *tcc_support; i++) {
        const void *p;

        memcpy(&p, &tcc_support[i].fn, sizeof p);
        t->add_symbol(s, tcc_support[i].name, p);
    }
    if (t->compile(s, text) < 0)
        return false;
    return (t->relocate1 ? t->relocate1(s) : t->relocate2(s, (void *)1)) >= 0;
}

static bool
tcc_symbols(TccState *t, TCCState *s, KernelSym *sym, int n, TccMessages *m)
{
    int i;

    for (i = 0; i < n; i++) {
        void *p = t->get_symbol(s, sym[i].name);

        if (!p) {
            m->n = (size_t)snprintf(m->s, sizeof m->s, "no function %s in the text\n", sym[i].name);
            return false;
        }
        memcpy(&sym[i].fn, &p, sizeof p);
    }
    return true;
}

static TCCState *
tcc_module(TccState *t, const char *text, KernelSym *sym, int n, TccMessages *m)
{
    TCCState *s = t->create();

    if (!s) {
        m->n = (size_t)snprintf(m->s, sizeof m->s, "libtcc gave no state\n");
        return NULL;
    }
    t->on_error(s, m, tcc_message);
    if (tcc_build(t, s, text) && tcc_symbols(t, s, sym, n, m)) {
        t->on_error(s, NULL, tcc_message); /* m ends here */
        return s;
    }
    t->destroy(s);
    return NULL;
}

static bool
tcc_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
            KernelSym *sym, int n, void **module)
{
    double start = jot_host_seconds();
    TccMessages messages = {{0}, 0};
    char quote[400] = "";
    Text quoted = {NULL, quote, 0, sizeof quote};
    Arena arena = {0};
    char *source;

    *module = NULL;
    arena.mem = &ctx->mem;
    source = jot_arena_copy(&arena, text, nbytes); /* libtcc wants a final 0 */
    if (!source)
        return jot_fail_memory(ctx, what);
    jot_host_lock();
    *module = tcc_module(backend->state, source, sym, n, &messages);
    jot_host_unlock();
    jot_arena_free(&arena);
    ctx->stats.compile_seconds += jot_host_seconds() - start;
    ctx->stats.kernels_compiled += (uint64_t)n;
    if (!*module)
        jot_code_quote(text, nbytes, messages.s, &quoted);
    if (!*module)
        return jot_fail(ctx, JOT_ECOMPILE,
                        "%s: tcc refused the text\n%s%scommand: libtcc -nostdlib -w", what,
                        quote, messages.s);
    return true;
}

static void
tcc_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    TccState *t = backend->state;

    (void)ctx;
    if (!module)
        return;
    jot_host_lock();
    t->destroy(module);
    jot_host_unlock();
}

const Backend jot_backend_tcc = {
    .name = "tcc", .compilers = "libtcc", .dialect = "c", .rank = 20,
    .open = tcc_open, .close = tcc_close,
    .compile = tcc_compile, .unload = tcc_unload /* core.c attaches a pool */
};

#endif
