/* tests/test_backends.c - the host's hooks, tcc and cc as compilers of small texts, and the cache
 * of compiled kernels: damaged entries, races, full and foreign directories, missing compilers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/test.h"
#include "backends/host.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Line 3 of user.c is wrong. */
static const char bad_text[] = HEAD
    "#line 1 \"user.c\"\n"
    "void scale" SIGNATURE
    "{ int good = 0; missing_name = good; }\n";

static char scratch_dir[200]; /* of this test; removed at the end */

static void
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
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
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

static void
world_log(void *ud, const char *text, size_t nbytes)
{
    World *w = ud;
    size_t room = sizeof w->log - 1 - w->log_nbytes;

    nbytes = nbytes < room ? nbytes : room;
    memcpy(w->log + w->log_nbytes, text, nbytes);
    w->log_nbytes += nbytes;
    w->log[w->log_nbytes] = 0;
}

static void *
world_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    World *w = ud;

    if (new_nbytes && w->refuse && !--w->refuse)
        return NULL;
    return w->host.realloc(w->host.ud, p, old_nbytes, new_nbytes);
}

static const char *
world_getenv(void *ud, const char *name)
{
    (void)ud;
    return getenv(name);
}

static jot_Status
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

static void
world_close(World *w)
{
    if (w->backend.state)
        w->backend.close(&w->backend, w->ctx);
    CHECK(w->ctx->mem.live_nbytes == 0, "%lu bytes left", (unsigned long)w->ctx->mem.live_nbytes);
    free(w->ctx);
}

static bool
compile(World *w, const char *text, KernelSym *sym, int n, void **module)
{
    return w->backend.compile(&w->backend, w->ctx, "kernel k7 (mul, add)", text, strlen(text), sym,
                              n, module);
}

/* Does the function scale double four numbers? */
static bool
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

static bool
works(World *w, const char *text)
{
    KernelSym sym = { .name = "scale" };
    void *module = NULL;
    bool ok = compile(w, text, &sym, 1, &module) && doubles(sym.fn);

    if (module)
        w->backend.unload(&w->backend, w->ctx, module);
    return ok;
}

/* ---- host --------------------------------------------------------------------------------- */

static void
test_host(void)
{
    static const size_t sizes[] = { 1, 63, 64, 65, 1000, 4096, 1 << 20, 100, 64, 10, 200 };
    jot_Hooks h;
    unsigned char *p = NULL;
    size_t old = 0, i, k;

    jot_host_hooks(&h);
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t keep = old < sizes[i] ? old : sizes[i], bad = 0;

        p = h.realloc(h.ud, p, old, sizes[i]);
        CHECK(p != NULL, "%lu bytes", (unsigned long)sizes[i]);
        CHECK(sizes[i] < 64 || (uintptr_t)p % 64 == 0, "%lu bytes are not aligned",
              (unsigned long)sizes[i]);
        for (k = 0; k < keep; k++)
            bad += p[k] != (unsigned char)(k * 7);
        CHECK(!bad, "resizing to %lu lost %lu bytes", (unsigned long)sizes[i], (unsigned long)bad);
        for (k = 0; k < sizes[i]; k++)
            p[k] = (unsigned char)(k * 7);
        old = sizes[i];
    }
    CHECK(h.realloc(h.ud, p, old, 0) == NULL, "freeing gives NULL");
    CHECK(h.realloc(h.ud, NULL, 0, SIZE_MAX - 100) == NULL, "too much is refused");
    CHECK(h.now(h.ud) > 0 && h.now(h.ud) <= h.now(h.ud), "the clock");
    setenv("JOT_TEST_WORD", "yes", 1);
    CHECK(h.getenv(h.ud, "JOT_TEST_WORD") && !strcmp(h.getenv(h.ud, "JOT_TEST_WORD"), "yes"),
          "getenv");
}

static void
test_table(void)
{
    int i, last = 1000;

    for (i = 0; jot_backends[i]; i++) {
        CHECK(jot_backends[i]->rank < last, "%s", jot_backends[i]->name);
        last = jot_backends[i]->rank;
    }
    CHECK(i >= 5 && !strcmp(jot_backends[i - 3]->name, "interp"), "%d backends", i);
}

/* ---- both compilers ----------------------------------------------------------------------- */

static bool
have(const Backend *kind)
{
    World w;
    bool ok = world_open(&w, kind, "", 0) == JOT_OK;

    if (!ok)
        SKIP("%s: %s", kind->name, w.why);
    world_close(&w);
    return ok;
}

static void
test_convert(KernelFn *fn, const char *name)
{
    double x[3] = { 0, 3, 4294967296.0 * 1024 }, y[3];
    void *buf[2];
    int i;

    buf[0] = x;
    buf[1] = y;
    fn(buf, NULL, NULL, NULL, 0, 0, 3);
    for (i = 0; i < 3; i++)
        CHECK(y[i] == 3 * x[i], "%s: %g -> %g", name, x[i], y[i]);
}

static void
test_compile(const Backend *kind)
{
    KernelSym sym[2] = { { .name = "scale" }, { .name = "convert" } };
    void *module = NULL;
    World w;

    CHECK(world_open(&w, kind, "", 0) == JOT_OK, "%s: %s", kind->name, w.why);
    CHECK(compile(&w, good_text, sym, 2, &module), "%s: %s", kind->name, w.ctx->message);
    if (module) {
        CHECK(doubles(sym[0].fn), "%s", kind->name);
        test_convert(sym[1].fn, kind->name);
        w.backend.unload(&w.backend, w.ctx, module);
    }
    CHECK(w.ctx->stats.kernels_compiled == 2, "%lu", (unsigned long)w.ctx->stats.kernels_compiled);
    CHECK(w.ctx->stats.cache_hits == 0 && w.ctx->stats.compile_seconds > 0, "%s stats", kind->name);
    CHECK(!w.ctx->status && !w.log_nbytes, "%s: %s%s", kind->name, w.ctx->message, w.log);
    world_close(&w);
}

static void
test_refused(const Backend *kind)
{
    KernelSym sym = { .name = "scale" }, none = { .name = "nowhere" };
    void *module = &sym;
    World w;

    CHECK(world_open(&w, kind, "", 0) == JOT_OK, "%s", w.why);
    CHECK(!compile(&w, bad_text, &sym, 1, &module) && !module, "%s took a bad text", kind->name);
    CHECK(w.ctx->status == JOT_ECOMPILE, "status %d", (int)w.ctx->status);
    CHECK(strstr(w.ctx->message, "kernel k7 (mul, add)"), "%s", w.ctx->message);
    CHECK(strstr(w.ctx->message, "user.c:3"), "%s", w.ctx->message);
    CHECK(strstr(w.ctx->message, "missing_name"), "%s", w.ctx->message);
    CHECK(strstr(w.ctx->message, "command: "), "%s", w.ctx->message);
    w.ctx->status = JOT_OK;
    w.ctx->message[0] = 0;
    CHECK(!compile(&w, HEAD "void scale" SIGNATURE "{ no_such_function(); }\n", &sym, 1, &module),
          "%s took a function that is not there", kind->name);
    CHECK(w.ctx->status == JOT_ECOMPILE && strstr(w.ctx->message, "no_such_function"), "%s",
          w.ctx->message);
    w.ctx->status = JOT_OK;
    w.ctx->message[0] = 0;
    CHECK(!compile(&w, good_text, &none, 1, &module) && !module, "%s found a function", kind->name);
    CHECK(w.ctx->status == JOT_ECOMPILE && strstr(w.ctx->message, "nowhere"), "%s", w.ctx->message);
    w.ctx->status = JOT_OK;
    w.ctx->message[0] = 0;
    CHECK(works(&w, good_text), "%s after errors: %s", kind->name, w.ctx->message);
    world_close(&w);
}

/* The n-th allocation refused, for every n until nothing asks any more. */
static void
test_memory(const Backend *kind, const char *cache_dir)
{
    int n, failures = 0;

    for (n = 1; n < 200; n++) {
        World w;
        bool ok = world_open(&w, kind, cache_dir, n) == JOT_OK && works(&w, good_text), left;

        left = w.refuse > 0; /* nothing was refused */
        failures += !ok;
        CHECK(ok || *w.why || w.ctx->status, "%s, allocation %d: no reason given", kind->name, n);
        world_close(&w);
        if (left)
            break;
    }
    CHECK(n > 2 && n < 200 && failures, "%s: %d allocations, %d failures", kind->name, n, failures);
}

static void *
thread_main(void *arg)
{
    const Backend *kind = arg;
    intptr_t bad = 0;
    World w;
    int i;

    if (world_open(&w, kind, "", 0) != JOT_OK)
        bad = 1000;
    for (i = 0; i < (kind == &jot_backend_tcc ? 100 : 3) && !bad; i++) {
        char text[2000];

        snprintf(text, sizeof text, "/* %d %p */\n%s", i, (void *)&w, good_text);
        bad += !works(&w, text);
        if (i % 4 == 0) {
            bad += works(&w, bad_text);
            w.ctx->status = JOT_OK;
        }
    }
    if (w.backend.state)
        w.backend.close(&w.backend, w.ctx);
    bad += w.ctx->mem.live_nbytes != 0;
    free(w.ctx);
    return (void *)bad;
}

static void
test_threads(const Backend *kind)
{
    pthread_t t[3];
    int i;

    for (i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, thread_main, (void *)(uintptr_t)kind);
    for (i = 0; i < 3; i++) {
        void *bad;

        pthread_join(t[i], &bad);
        CHECK(!bad, "%s, thread %d: %ld failures", kind->name, i, (long)(intptr_t)bad);
    }
}

/* ---- finding them ------------------------------------------------------------------------- */

static void
test_missing(void)
{
    char *path = strdup(getenv("PATH"));
    World w;

    setenv("PATH", "", 1);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_EDEVICE, "a compiler without PATH");
    CHECK(strstr(w.why, "PATH") && !w.ctx->status, "%s", w.why);
    world_close(&w);
    setenv("PATH", path, 1);
    free(path);
    setenv("JOT_CC", "no-such-compiler", 1);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_EUSE, "no-such-compiler opened");
    CHECK(strstr(w.why, "no-such-compiler"), "%s", w.why);
    world_close(&w);
    setenv("JOT_CC", "/bin/false", 1);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_EUSE, "/bin/false opened");
    CHECK(strstr(w.why, "/bin/false"), "%s", w.why);
    world_close(&w);
    unsetenv("JOT_CC");
    path = getenv("JOT_LIBTCC") ? strdup(getenv("JOT_LIBTCC")) : NULL;
    setenv("JOT_LIBTCC", "/no/such/libtcc.so", 1);
    CHECK(world_open(&w, &jot_backend_tcc, "", 0) == JOT_EDEVICE, "no libtcc opened");
    CHECK(strstr(w.why, "/no/such/libtcc.so"), "%s", w.why);
    world_close(&w);
    setenv("JOT_LIBTCC", path ? path : "", 1);
    free(path);
}

static void
write_script(const char *path, const char *body)
{
    FILE *f = fopen(path, "w");

    fprintf(f, "#!/bin/sh\n%s\n", body);
    fclose(f);
    chmod(path, 0755);
}

/* A path with blanks and quotes; a compiler that dies; TMPDIR that is not there. */
static void
test_odd_compilers(void)
{
    char path[400];
    World w;

    snprintf(path, sizeof path, "%s/my 'own' cc; $x", scratch_dir);
    write_script(path, "exec cc \"$@\"");
    setenv("JOT_CC", path, 1);
    setenv("TMPDIR", "/no/such/place", 1);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s", w.why);
    CHECK(works(&w, good_text), "%s", w.ctx->message);
    world_close(&w);
    unsetenv("TMPDIR");
    snprintf(path, sizeof path, "%s/dying", scratch_dir);
    write_script(path,
                 "[ \"$1\" = --version ] && exec cc --version\necho half >kernel.so\nkill -9 $$");
    setenv("JOT_CC", path, 1);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s", w.why);
    CHECK(!works(&w, good_text), "a killed compiler compiled");
    CHECK(w.ctx->status == JOT_EDEVICE && strstr(w.ctx->message, "signal 9"), "%s", w.ctx->message);
    world_close(&w);
    unlink("kernel.so");
    unsetenv("JOT_CC");
}

/* A script is asked for its version each time; another program's answer is kept. */
static void
test_version(void)
{
    static const char count[] = "echo x >>%s/asked; exec cc \"$@\"";
    char dir[300], path[400], text[1000];
    struct stat st = {0};
    World w;
    int k;

    snprintf(dir, sizeof dir, "%s/version", scratch_dir);
    snprintf(path, sizeof path, "%s/script", scratch_dir);
    snprintf(text, sizeof text, count, scratch_dir);
    write_script(path, text);
    setenv("JOT_CC", path, 1);
    for (k = 0; k < 2; k++) {
        CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
        world_close(&w);
    }
    unsetenv("JOT_CC");
    snprintf(path, sizeof path, "%s/asked", scratch_dir);
    CHECK(!stat(path, &st) && st.st_size == 4, "a script was asked %d times", (int)st.st_size / 2);
    for (k = 0; k < 2; k++) {
        CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
        CHECK(works(&w, good_text), "%s", w.ctx->message);
        CHECK(w.ctx->stats.cache_hits == (uint64_t)k, "the same compiler, another key");
        CHECK(w.ctx->stats.kernels_compiled == (uint64_t)!k, "compiled or found, not both");
        CHECK((w.ctx->stats.compile_seconds > 0) == !k, "what is found takes no compiler's time");
        world_close(&w);
    }
}

/* ---- tidying ------------------------------------------------------------------------------ */

static void
aged_file(const char *dir, const char *name, long nbytes, int hours)
{
    struct timespec t[2];
    char path[600];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && !ftruncate(fd, nbytes), "%s", path);
    clock_gettime(CLOCK_REALTIME, &t[0]);
    t[0].tv_sec -= 3600L * hours;
    t[1] = t[0];
    futimens(fd, t);
    close(fd);
}

static int
there(const char *dir, const char *name)
{
    char path[600];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return !stat(path, &st);
}

/* What killed processes left, and too many entries; nothing of others', nothing new. */
static void
test_tidy(void)
{
    static const char *const work[] = {"jot-kernel-old", "jot-kernel-new", "jot-kernel-full"};
    char dir[300], path[600];
    struct timespec old[2] = {{0, 0}, {0, 0}};
    World w;
    int k;

    snprintf(dir, sizeof dir, "%s/tidy", scratch_dir);
    mkdir(dir, 0700);
    for (k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%s", scratch_dir, work[k]);
        mkdir(path, 0700);
        aged_file(path, "kernel.c", 10, 2);
        if (k == 2)
            aged_file(path, "mine", 10, 2);
        if (k != 1)
            utimensat(AT_FDCWD, path, old, 0);
    }
    aged_file(dir, "tmp-1-2-0", 100, 2);
    aged_file(dir, "tmp-1-2-1", 100, 0);
    aged_file(dir, "a.jot", 200L << 20, 24 * 300);
    aged_file(dir, "b.jot", 200L << 20, 24 * 20);
    aged_file(dir, "c.jot", 200L << 20, 1);
    aged_file(dir, "another's", 1000, 24 * 300);
    setenv("TMPDIR", scratch_dir, 1);
    for (k = 0; k < 2; k++) {
        CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
        CHECK(there(dir, "another's") && there(dir, "c.jot") && there(dir, "b.jot"), "too much");
        CHECK(!there(dir, "a.jot"), "the oldest entry is left");
        CHECK(there(dir, "tmp-1-2-1") && there(dir, "tmp-1-2-0") == k, "unfinished entries");
        CHECK(there(scratch_dir, work[1]) && there(scratch_dir, work[2]), "too much");
        CHECK(!there(scratch_dir, work[0]), "a killed process's directory is left");
        world_close(&w);
        aged_file(dir, "tmp-1-2-0", 100, 2); /* within the hour nobody looks again */
    }
    unsetenv("TMPDIR");
}

/* ---- cache -------------------------------------------------------------------------------- */

/* Compile with this cache; returns hits, or -1 when it did not work. */
static int
cached_with(World *w, const char *dir, const char *text)
{
    int hits = -1;

    if (world_open(w, &jot_backend_cc, dir, 0) == JOT_OK && works(w, text))
        hits = (int)w->ctx->stats.cache_hits;
    if (hits < 0)
        printf("%s%s\n%s", w->why, w->ctx->message, w->log);
    CHECK(!w->ctx->status, "%s", w->ctx->message);
    world_close(w);
    return hits;
}

/* The entry that remembers the compiler's version is no kernel. */
static int
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
static int
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

static void
test_cache(const char *dir)
{
    char path[600];
    struct stat st;
    World w;

    CHECK(cached_with(&w, dir, good_text) == 0, "the first use hit");
    CHECK(!stat(dir, &st) && (st.st_mode & 0777) == 0700, "mode %o", (unsigned)st.st_mode);
    CHECK(only_file(dir, path) == 1, "%s", path);
    CHECK(!stat(path, &st) && (st.st_mode & 077) == 0, "mode %o", (unsigned)st.st_mode);
    CHECK(cached_with(&w, dir, good_text) == 1, "the second use did not hit");
    CHECK(!w.log_nbytes, "%s", w.log);
    setenv("JOT_CC", "clang", 1);
    if (world_open(&w, &jot_backend_cc, "", 0) == JOT_OK) {
        World v;

        CHECK(cached_with(&v, dir, good_text) == 0, "another compiler's object was used");
        CHECK(only_file(dir, path) == 2, "%s", path);
    }
    world_close(&w);
    unsetenv("JOT_CC");
}

static void
damage(const char *path, off_t at, bool cut)
{
    int fd = open(path, O_RDWR);
    unsigned char c = 0;

    if (cut) {
        CHECK(!ftruncate(fd, at), "%s", path);
    } else {
        CHECK(pread(fd, &c, 1, at) == 1, "%s", path);
        c ^= 0x10;
        CHECK(pwrite(fd, &c, 1, at) == 1, "%s", path);
    }
    close(fd);
}

static void
test_damage(void)
{
    static const double at[] = { 0, 0.0005, 0.002, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99999 };
    char dir[300], path[600];
    struct stat st;
    World w;
    size_t i;
    int cut;

    snprintf(dir, sizeof dir, "%s/deep/er/cache", scratch_dir);
    CHECK(cached_with(&w, dir, good_text) == 0, "a hit in a new cache");
    CHECK(only_file(dir, path) == 1 && !stat(path, &st), "%s", path);
    for (cut = 0; cut < 2; cut++)
        for (i = 0; i < sizeof at / sizeof *at; i++) {
            damage(path, (off_t)(at[i] * (double)st.st_size), cut);
            CHECK(cached_with(&w, dir, good_text) == 0, "damage at %g (cut %d) went unseen", at[i],
                  cut);
            CHECK(strstr(w.log, "damaged"), "%s", w.log);
        }
    CHECK(cached_with(&w, dir, good_text) == 1, "not rebuilt");
    CHECK(only_file(dir, path) == 1, "files were left over");
}

static Bytes
bytes_of(const char *text)
{
    Bytes b;

    b.p = (char *)(uintptr_t)text;
    b.n = strlen(text);
    return b;
}

/* Every byte of an entry flipped, and the entry cut before every byte: never found, always told. */
static void
test_every_byte(void)
{
    const Bytes key = bytes_of("the compiler"), text = bytes_of("a kernel"),
                object = bytes_of("its code");
    char dir[300], path[600];
    struct stat st = {0};
    Bytes found = {NULL, 0};
    Cache cache;
    World w;
    off_t at;
    int cut;

    snprintf(dir, sizeof dir, "%s/bytes", scratch_dir);
    CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
    jot_cache_open(&cache, w.ctx, true);
    jot_cache_keep(&cache, w.ctx, key, text, object);
    CHECK(only_file(dir, path) == 1 && !stat(path, &st) && st.st_size > 50, "%s", path);
    for (at = 0; at < st.st_size; at++)
        for (cut = 0; cut < 2; cut++) {
            damage(path, at, cut);
            w.log_nbytes = 0;
            memset(w.log, 0, sizeof w.log);
            CHECK(!jot_cache_find(&cache, w.ctx, key, text, &found), "byte %d, cut %d: found",
                  (int)at, cut);
            CHECK(strstr(w.log, "damaged"), "byte %d, cut %d: %s", (int)at, cut, w.log);
            jot_cache_keep(&cache, w.ctx, key, text, object);
        }
    CHECK(jot_cache_find(&cache, w.ctx, key, text, &found) && found.n == object.n
          && !memcmp(found.p, object.p, found.n), "not as it was kept");
    jot_bytes_free(w.ctx, &found);
    jot_cache_close(&cache);
    world_close(&w);
}

/* A directory that may only be read, by a user who is not root: 1 if it is as it should be. */
static int
readonly_as(uid_t uid)
{
    char dir[] = "/tmp/jot-readonly-XXXXXX";
    World w;
    bool ok;

    if (geteuid() == 0 && (setgid(uid) || setuid(uid)))
        return -1;
    if (!mkdtemp(dir) || chmod(dir, 0500))
        return -1;
    setenv("TMPDIR", "/tmp", 1);
    setenv("HOME", "/nowhere", 1);
    ok = cached_with(&w, dir, good_text) == 0 && strstr(w.log, "not kept")
      && !strstr(strstr(w.log, "not kept") + 1, "not kept"); /* told once */
    rmdir(dir);
    return ok;
}

/* Root writes everywhere, so root becomes somebody else for this. */
static void
test_readonly(void)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (!child)
        _exit(readonly_as(12345));
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 255)
        SKIP("a read-only directory: no other user");
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "read-only directory: status %d",
              status);
}

static void
test_race(void)
{
    char dir[300], path[600];
    pid_t child[4];
    World w;
    int i;

    snprintf(dir, sizeof dir, "%s/race", scratch_dir);
    fflush(stdout);
    for (i = 0; i < 4; i++) {
        child[i] = fork();
        if (!child[i])
            _exit(cached_with(&w, dir, good_text) < 0 || cached_with(&w, dir, good_text) != 1);
    }
    for (i = 0; i < 4; i++) {
        int status = -1;

        waitpid(child[i], &status, 0);
        CHECK(status == 0, "process %d: status %d", i, status);
    }
    CHECK(only_file(dir, path) == 1, "files were left over");
    CHECK(cached_with(&w, dir, good_text) == 1, "no entry was left");
}

/* Directories that cannot or must not be used: the kernel is compiled all the same. */
static void
test_unusable(void)
{
    char dir[300], path[600];
    World w;

    snprintf(dir, sizeof dir, "%s/open", scratch_dir);
    mkdir(dir, 0700);
    chmod(dir, 0777);
    CHECK(cached_with(&w, dir, good_text) == 0 && strstr(w.log, "may write there"), "%s", w.log);
    CHECK(only_file(dir, path) == 0, "written all the same: %s", path);
    CHECK(cached_with(&w, "/dev/null/jot", good_text) == 0 && w.log_nbytes, "%s", w.log);
    CHECK(cached_with(&w, "", good_text) == 0 && !w.log_nbytes, "%s", w.log);
    if (geteuid() == 0) {
        snprintf(dir, sizeof dir, "%s/foreign", scratch_dir);
        mkdir(dir, 0700);
        if (!chown(dir, 12345, 12345)) {
            CHECK(cached_with(&w, dir, good_text) == 0 && strstr(w.log, "another user"), "%s",
                  w.log);
            CHECK(only_file(dir, path) == 0, "written all the same: %s", path);
        }
        return;
    }
    SKIP("a directory of another user: needs root");
}

/* A file size limit stands in for a full disk: the text and the object fit, an entry of both does
 * not. */
static void
test_full(void)
{
    static char text[40000];
    struct rlimit old, few;
    char dir[300], path[600];
    World w;
    size_t n;

    snprintf(dir, sizeof dir, "%s/full", scratch_dir);
    n = (size_t)snprintf(text, sizeof text, "%s/*", good_text);
    memset(text + n, '.', sizeof text - n - 3);
    memcpy(text + sizeof text - 3, "*/", 3);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    few.rlim_cur = sizeof text + 500;
    setrlimit(RLIMIT_FSIZE, &few);
    CHECK(cached_with(&w, dir, text) == 0 && strstr(w.log, "not kept"), "%s", w.log);
    CHECK(only_file(dir, path) == 0, "half an entry is left: %s", path);
    few.rlim_cur = 1000; /* now not even the text fits, anywhere */
    setrlimit(RLIMIT_FSIZE, &few);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s", w.why);
    CHECK(!works(&w, text) && w.ctx->status == JOT_EIO, "%s", w.ctx->message);
    CHECK(strstr(w.ctx->message, "no room"), "%s", w.ctx->message);
    world_close(&w);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(cached_with(&w, dir, text) == 0 && cached_with(&w, dir, text) == 1,
          "not kept afterwards");
}

/* Nothing stays behind in the temporary directory. */
static int
temporaries(void)
{
    char path[600];

    return only_file(getenv("TMPDIR"), path);
}

static void
test_cc(void)
{
    char dir[300], tmp[300];

    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    mkdir(tmp, 0700);
    snprintf(dir, sizeof dir, "%s/cache", scratch_dir);
    setenv("TMPDIR", tmp, 1);
    test_compile(&jot_backend_cc);
    test_refused(&jot_backend_cc);
    test_cache(dir);
    test_memory(&jot_backend_cc, dir);
    test_threads(&jot_backend_cc);
    test_damage();
    test_every_byte();
    test_race();
    test_unusable();
    test_readonly();
    test_full();
    CHECK(temporaries() == 0, "%d temporary directories are left", temporaries());
    unsetenv("TMPDIR");
    test_odd_compilers();
    test_version();
    test_tidy();
}

/* Where only Debian's static archive is installed, make a shared libtcc of it. */
static void
find_libtcc(void)
{
    char command[500];
    World w;

    if (world_open(&w, &jot_backend_tcc, "", 0) != JOT_OK && !getenv("JOT_LIBTCC")) {
        snprintf(command, sizeof command, "sh tools/libtcc.sh %s/libtcc.so >/dev/null 2>&1",
                 scratch_dir);
        if (!system(command)) {
            snprintf(command, sizeof command, "%s/libtcc.so", scratch_dir);
            setenv("JOT_LIBTCC", command, 1);
        }
    }
    world_close(&w);
}

int
main(void)
{
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/jot-test-XXXXXX");
    if (!mkdtemp(scratch_dir))
        return 1;
    unsetenv("JOT_CC");
    unsetenv("JOT_CACHE_DIR");
    test_host();
    test_table();
    find_libtcc();
    if (have(&jot_backend_tcc)) {
        test_compile(&jot_backend_tcc);
        test_refused(&jot_backend_tcc);
        test_memory(&jot_backend_tcc, "");
        test_threads(&jot_backend_tcc);
    }
    if (have(&jot_backend_cc))
        test_cc();
    test_missing();
    remove_tree(scratch_dir);
    return DONE();
}
