/* backends/cuda/nvrtc.c - CUDA C++ to machine code, in the process, by NVRTC. The library is opened
 * at run time and its functions are declared here. It needs no GPU and no driver: tests/test_cuda.c
 * compiles for architectures that are nowhere near.
 *
 * It is looked for as JOT_NVRTC says, else under the names that the CUDA toolkit gives it. The
 * wheel nvidia-cuda-nvrtc-cu12 holds it, too.
 *
 * Read before: backends/host/host.h. After: backends/cuda/cuda.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cuda/nvrtc.h"
#include "ops/user/code.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct NvrtcProgram NvrtcProgram;

typedef struct {
    int (*version)(int *major, int *minor);
    int (*create)(NvrtcProgram **, const char *text, const char *name, int, const char *const *,
                  const char *const *);
    int (*destroy)(NvrtcProgram **);
    int (*compile)(NvrtcProgram *, int, const char *const *);
    int (*log_size)(NvrtcProgram *, size_t *);
    int (*log)(NvrtcProgram *, char *);
    int (*cubin_size)(NvrtcProgram *, size_t *);
    int (*cubin)(NvrtcProgram *, char *);
    int (*ptx_size)(NvrtcProgram *, size_t *);
    int (*ptx)(NvrtcProgram *, char *);
    int (*count)(int *);
    int (*list)(int *);
} NvrtcFunctions;

/* In the order of the fields above. */
static const char *const nvrtc_names[] = {
    "nvrtcVersion", "nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram",
    "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
    "nvrtcGetPTXSize", "nvrtcGetPTX", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs"
};

enum { NVRTC_ARCHS = 64 };

struct Nvrtc {
    void *library;
    NvrtcFunctions fn;
    int major, minor, narchs, arch[NVRTC_ARCHS];
};

static bool
nvrtc_functions(Nvrtc *n, char *why, size_t why_nbytes)
{
    const char *lacks = jot_library_functions(n->library, nvrtc_names,
                                              sizeof nvrtc_names / sizeof *nvrtc_names, &n->fn);

    if (lacks)
        snprintf(why, why_nbytes, "NVRTC lacks %s (it is older than 11.2)", lacks);
    return !lacks;
}

static bool
nvrtc_library(Nvrtc *n, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    static const char *const names[] = {
        "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"
    };
    const char *given = jot_host_env(ctx, "JOT_NVRTC");

    n->library = given && *given ? jot_library_open(&given, 1)
                                 : jot_library_open(names, sizeof names / sizeof *names);
    if (!n->library)
        snprintf(why, why_nbytes, "no NVRTC (JOT_NVRTC may name it): %s", dlerror());
    return n->library != NULL;
}

JOT_FN void
jot_nvrtc_close(Nvrtc *n, jot_Ctx *ctx)
{
    if (!n)
        return;
    jot_library_close(ctx, n->library);
    jot_mem_free(&ctx->mem, n, sizeof *n);
}

JOT_FN Nvrtc *
jot_nvrtc_open(jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    Nvrtc *n = jot_mem_new(&ctx->mem, 1, sizeof *n);

    if (!n) {
        snprintf(why, why_nbytes, "out of memory");
        return NULL;
    }
    if (nvrtc_library(n, ctx, why, why_nbytes) && nvrtc_functions(n, why, why_nbytes)) {
        if (!n->fn.version(&n->major, &n->minor) && !n->fn.count(&n->narchs)
            && n->narchs <= NVRTC_ARCHS && !n->fn.list(n->arch))
            return n;
        snprintf(why, why_nbytes, "NVRTC does not say what it compiles for");
    }
    jot_nvrtc_close(n, ctx);
    return NULL;
}

JOT_FN int
jot_nvrtc_version(const Nvrtc *n)
{
    return n->major * 1000 + n->minor * 10;
}

JOT_FN int
jot_nvrtc_arch(const Nvrtc *n, int most)
{
    int best = 0, i;

    for (i = 0; i < n->narchs; i++)
        if (n->arch[i] <= most && n->arch[i] > best)
            best = n->arch[i];
    return best;
}

/* The compiler's messages end the message of the error. */
static bool
nvrtc_refused(Nvrtc *n, jot_Ctx *ctx, const char *what, const char *text, NvrtcProgram *program,
              const char *arch, int status)
{
    size_t nbytes = 0;
    char *log = NULL, quote[400] = "";
    Text quoted = {NULL, quote, 0, sizeof quote};

    if (program && !n->fn.log_size(program, &nbytes) && nbytes && nbytes < 1 << 24)
        log = jot_mem_new(&ctx->mem, nbytes + 1, 1);
    if (log && n->fn.log(program, log))
        log[0] = 0;
    if (log)
        jot_code_quote(text, jot_str_len(text), log, &quoted);
    jot_fail(ctx, JOT_ECOMPILE,
             "%s: NVRTC %d.%d refused the text (status %d)\n%s%.*s\noptions: %s", what, n->major,
             n->minor, status, quote, 600, log ? log : "", arch);
    jot_mem_free(&ctx->mem, log, log ? nbytes + 1 : 0);
    return false;
}

static bool
nvrtc_take(Nvrtc *n, jot_Ctx *ctx, NvrtcProgram *program, bool ptx, Bytes *object)
{
    int status = ptx ? n->fn.ptx_size(program, &object->n) : n->fn.cubin_size(program, &object->n);

    if (status || !object->n)
        return false;
    object->p = jot_mem_new(&ctx->mem, object->n + 1, 1);
    if (!object->p)
        return jot_fail_memory(ctx, "compile");
    status = ptx ? n->fn.ptx(program, object->p) : n->fn.cubin(program, object->p);
    if (!status)
        return true;
    jot_mem_free(&ctx->mem, object->p, object->n + 1);
    return false;
}

/* No contraction to fma, division and square root rounded, denormals kept: the last three are the
 * compiler's default, and said nevertheless. The architecture comes first. */
static const char *const nvrtc_options[] = {
    NULL, "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"
};
enum { NVRTC_OPTIONS = sizeof nvrtc_options / sizeof *nvrtc_options };

JOT_FN void
jot_nvrtc_describe(const Nvrtc *n, char *text, size_t nbytes)
{
    size_t at = (size_t)snprintf(text, nbytes, "nvrtc %d", jot_nvrtc_version(n));
    int i;

    for (i = 1; i < NVRTC_OPTIONS && at < nbytes; i++)
        at += (size_t)snprintf(text + at, nbytes - at, " %s", nvrtc_options[i]);
}

JOT_FN bool
jot_nvrtc_compile(Nvrtc *n, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
                  int arch, bool ptx, Bytes *object)
{
    char target[40];
    const char *options[NVRTC_OPTIONS];
    Arena arena = {0};
    NvrtcProgram *program = NULL;
    char *source;
    int status;
    bool ok;

    object->p = NULL;
    object->n = 0;
    arena.mem = &ctx->mem;
    source = jot_arena_copy(&arena, text, nbytes); /* NVRTC wants a final 0 */
    if (!source)
        return jot_fail_memory(ctx, what);
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d%s", ptx ? "compute" : "sm", arch,
             arch == 90 && !ptx ? "a" : ""); /* with what later ones do not have */
    memcpy(options, nvrtc_options, sizeof options);
    options[0] = target;
    status = n->fn.create(&program, source, "jot.cu", 0, NULL, NULL);
    if (!status)
        status = n->fn.compile(program, NVRTC_OPTIONS, options);
    ok = !status && nvrtc_take(n, ctx, program, ptx, object);
    if (!ok && !ctx->status)
        nvrtc_refused(n, ctx, what, source, program, target, status);
    if (program)
        n->fn.destroy(&program);
    jot_arena_free(&arena);
    return ok;
}

#endif
