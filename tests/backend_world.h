/* tests/backend_world.h - compilers of small texts without a graph around them: a context made by
 * hand, a text that scales an array, a directory that goes in the end, and who is left behind. */
#ifndef JOT_TEST_BACKEND_WORLD_H
#define JOT_TEST_BACKEND_WORLD_H
#include "tests/test.h"
#include "backends/host/host.h"
#include "tests/survivors.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD \
    "typedef long long jot_i64;\n" \
    "typedef union { jot_i64 i; unsigned long long u; double f; } jot_Scalar;\n"
#define SIGNATURE \
    "(void *const *buf, const jot_i64 *ints, const jot_Scalar *scalars, void *scratch,\n" \
    " jot_i64 phase, jot_i64 lo, jot_i64 hi)\n"

/* scale: y = x * scalar on [lo, hi); convert: through unsigned 64-bit integers and back */
static const char good_text[] = HEAD
    "void *memset(void *to, int byte, unsigned long n);\n"
    "void scale" SIGNATURE
    "{ const float *x = buf[0]; float *y = buf[1]; jot_i64 i;\n"
    "  for (i = lo; i < hi; i++) y[i] = x[i] * (float)scalars[0].f; }\n"
    "void convert" SIGNATURE
    "{ const double *x = buf[0]; double *y = buf[1]; jot_i64 i;\n"
    "  memset(y, 0, (unsigned long)hi * sizeof *y);\n"
    "  for (i = lo; i < hi; i++) { unsigned long long u = (unsigned long long)x[i];\n"
    "    y[i] = (double)u + (double)(float)u + (double)(jot_i64)(float)u; } }\n";

static char scratch_dir[200]; /* of this test; removed at the end */

static inline void
remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[1000];
    struct stat st;

    if (!d)
        return;
    while ((e = readdir(d)) != NULL) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path)
            continue;
        if (!lstat(path, &st) && S_ISDIR(st.st_mode))
            remove_tree(path);
        else
            unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

/* ---- contexts made by hand ---------------------------------------------------------------- */

typedef struct {
    jot_Ctx *ctx;
    Backend backend;
    char why[300];
    char log[4000];
    size_t log_nbytes;
    jot_Hooks host;
    int refuse; /* the allocation to refuse, 0: none */
} World;

static inline void
world_log(void *ud, const char *text, size_t nbytes)
{
    World *w = ud;
    size_t room = sizeof w->log - 1 - w->log_nbytes;

    nbytes = nbytes < room ? nbytes : room;
    memcpy(w->log + w->log_nbytes, text, nbytes);
    w->log_nbytes += nbytes;
    w->log[w->log_nbytes] = 0;
}

static inline void *
world_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    World *w = ud;

    if (new_nbytes && w->refuse && !--w->refuse)
        return NULL;
    return w->host.realloc(w->host.ud, p, old_nbytes, new_nbytes);
}

static inline const char *
world_getenv(void *ud, const char *name)
{
    (void)ud;
    return getenv(name);
}

static inline jot_Status
world_open(World *w, const Backend *kind, const char *cache_dir, int refuse)
{
    memset(w, 0, sizeof *w);
    w->ctx = calloc(1, sizeof *w->ctx);
    jot_host_hooks(&w->host);
    w->ctx->mem.hooks.realloc = world_realloc;
    w->ctx->mem.hooks.log = world_log;
    w->ctx->mem.hooks.getenv = world_getenv;
    w->ctx->mem.hooks.ud = w;
    w->ctx->config.cache_dir = cache_dir;
    w->ctx->config.lanes = 1;
    w->refuse = refuse;
    w->backend = *kind;
    return w->backend.open(&w->backend, w->ctx, w->why, sizeof w->why);
}

static inline void
world_close(World *w)
{
    if (w->backend.state)
        w->backend.close(&w->backend, w->ctx);
    CHECK(w->ctx->mem.live_nbytes == 0, "%lu bytes left", (unsigned long)w->ctx->mem.live_nbytes);
    free(w->ctx);
}

static inline bool
compile(World *w, const char *text, KernelSym *sym, int n, void **module)
{
    return w->backend.compile(&w->backend, w->ctx, "kernel k7 (mul, add)", text, strlen(text), sym,
                              n, module);
}

/* Does the function scale double four numbers? */
static inline bool
doubles(KernelFn *fn)
{
    float x[4] = { 1, -2, 0.5f, 1e10f }, y[4] = { 0, 0, 0, 9 };
    void *buf[2];
    jot_Scalar two;

    buf[0] = x;
    buf[1] = y;
    two.f = 2;
    fn(buf, NULL, &two, NULL, 0, 0, 3);
    return y[0] == 2 && y[1] == -4 && y[2] == 1 && y[3] == 9;
}

static inline bool
works(World *w, const char *text)
{
    KernelSym sym = { .name = "scale" };
    void *module = NULL;
    bool ok = compile(w, text, &sym, 1, &module) && doubles(sym.fn);

    if (module)
        w->backend.unload(&w->backend, w->ctx, module);
    return ok;
}

static inline bool
have(const Backend *kind)
{
    World w;
    bool ok = world_open(&w, kind, "", 0) == JOT_OK;

    if (!ok)
        SKIP("%s: %s", kind->name, w.why);
    world_close(&w);
    return ok;
}

/* The entry that remembers the compiler's version is no kernel. */
static inline int
is_version(const char *path)
{
    char start[200] = "";
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(start, 1, sizeof start, f) : 0, i;

    if (f)
        fclose(f);
    for (i = 0; i + 9 <= n; i++)
        if (!memcmp(start + i, "--version", 9))
            return 1;
    return 0;
}

/* The only file in dir but for what belongs to the directory; the number of such files. */
static inline int
only_file(const char *dir, char path[600])
{
    char last[600];
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)) != NULL) {
        snprintf(last, sizeof last, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || !strcmp(e->d_name, "tidied") || is_version(last))
            continue;
        strcpy(path, last);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static inline void
write_script(const char *path, const char *body)
{
    FILE *f = fopen(path, "w");

    fprintf(f, "#!/bin/sh\n%s\n", body);
    fclose(f);
    chmod(path, 0755);
}

/* Nothing stays behind in the temporary directory. */
static inline int
temporaries(void)
{
    char path[600];

    return only_file(getenv("TMPDIR"), path);
}

#endif
