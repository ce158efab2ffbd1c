/* backends/host/host.c - libc and POSIX behind a few functions: the hooks of jot_open(NULL), whole
 * files.
 *
 * Read before: backends/host/host.h. After: work.c, process.c, backends/cpu/cache.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- hooks -------------------------------------------------------------------------------- */

enum { HOST_ALIGN = 64 }; /* a cache line, and the widest vector there is */
enum { HOST_HUGE = 2 << 20, HOST_LARGE = 2 * HOST_HUGE };

/* Large blocks on huge pages, where the system gives them: a first touch and a table entry for 2 MB
 * instead of 4 KB. */
static void *
host_large(size_t nbytes)
{
    void *p;

    if (posix_memalign(&p, HOST_HUGE, nbytes))
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(p, nbytes / HOST_HUGE * HOST_HUGE, MADV_HUGEPAGE); /* a wish: refused is as good */
#endif
    return p;
}

static void *
host_malloc(size_t nbytes)
{
    void *p;

    if (nbytes < HOST_ALIGN)
        return malloc(nbytes);
    if (nbytes > PTRDIFF_MAX) /* distances inside the block would overflow */
        return NULL;
    if (nbytes >= HOST_LARGE)
        return host_large(nbytes);
    return posix_memalign(&p, HOST_ALIGN, nbytes) ? NULL : p;
}

/* realloc() would lose the alignment, and asking it first would lose the old block should the
 * second allocation be refused: so a resized block always moves, unless it stays small. */
static void *
host_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q;

    (void)ud;
    if (!new_nbytes) {
        free(p);
        return NULL;
    }
    if (!p)
        return host_malloc(new_nbytes);
    if (old_nbytes < HOST_ALIGN && new_nbytes < HOST_ALIGN)
        return realloc(p, new_nbytes);
    q = host_malloc(new_nbytes);
    if (!q)
        return NULL;
    memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    free(p);
    return q;
}

static void
host_log(void *ud, const char *text, size_t nbytes)
{
    bool blocked = jot_host_limit_begin();

    (void)ud;
    fwrite(text, 1, nbytes, stderr);
    jot_host_limit_end(blocked);
}

static const char *
host_getenv(void *ud, const char *name)
{
    (void)ud;
    return getenv(name);
}

static int64_t
host_now(void *ud)
{
    struct timespec t;

    (void)ud;
    if (clock_gettime(CLOCK_MONOTONIC, &t))
        return 0;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

JOT_FN void
jot_host_hooks(jot_Hooks *hooks)
{
    hooks->realloc = host_realloc;
    hooks->log = host_log;
    hooks->getenv = host_getenv;
    hooks->now = host_now;
    hooks->ud = NULL;
}

/* ---- context ------------------------------------------------------------------------------ */

JOT_FN const char *
jot_host_env(const jot_Ctx *ctx, const char *name)
{
    const jot_Hooks *hooks = &ctx->mem.hooks;

    return hooks->getenv ? hooks->getenv(hooks->ud, name) : getenv(name);
}

JOT_FN double
jot_host_seconds(void)
{
    return (double)host_now(NULL) * 1e-9;
}

JOT_FN void
jot_host_log(jot_Ctx *ctx, const char *format, ...)
{
    const jot_Hooks *hooks = &ctx->mem.hooks;
    Text text = {0};
    va_list args;

    if (!hooks->log)
        return;
    text.mem = &ctx->mem;
    va_start(args, format);
    jot_text_v(&text, format, args);
    va_end(args);
    if (text.n)
        hooks->log(hooks->ud, text.s, text.n);
    jot_text_free(&text);
}

JOT_FN void
jot_host_say(jot_Ctx *ctx, const char *note)
{
    uint64_t hash = jot_hash(1, note, strlen(note));
    unsigned i;

    for (i = 0; i < SAID; i++)
        if (ctx->said[i] == hash)
            return;
    ctx->said[ctx->nsaid++ % SAID] = hash;
    if (ctx->mem.hooks.log)
        ctx->mem.hooks.log(ctx->mem.hooks.ud, note, strlen(note));
}

JOT_FN void
jot_bytes_free(jot_Ctx *ctx, Bytes *bytes)
{
    jot_mem_free(&ctx->mem, bytes->p, bytes->n + 1);
    bytes->p = NULL;
    bytes->n = 0;
}

/* ---- files -------------------------------------------------------------------------------- */

static bool
host_read_all(jot_Ctx *ctx, int fd, size_t most, Bytes *out)
{
    struct stat st;
    bool sized = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0; /* not all say theirs */
    size_t cap = sized && (uint64_t)st.st_size < most ? (size_t)st.st_size + 2 : 16384, n = 0;
    char *p = jot_mem_realloc(&ctx->mem, NULL, 0, cap), *q;

    for (errno = ENOMEM; p;) {
        ssize_t got;

        if (n + 1 == cap) {
            q = jot_mem_realloc(&ctx->mem, p, cap, 2 * cap);
            if (!q)
                break;
            p = q;
            cap *= 2;
        }
        got = n < most ? read(fd, p + n, most - n < cap - 1 - n ? most - n : cap - 1 - n) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        n += (size_t)got;
        if (got)
            continue;
        q = jot_mem_realloc(&ctx->mem, p, cap, n + 1); /* the size that jot_bytes_free gives back */
        if (!q)
            break;
        q[n] = 0;
        out->p = q;
        out->n = n;
        return true;
    }
    jot_mem_free(&ctx->mem, p, cap);
    return false;
}

/* Nothing but a file: who opens a pipe with a name waits for the other end, and a device has no
 * end. */
JOT_FN int
jot_host_open(int place, const char *path)
{
    int fd = openat(place, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

JOT_FN bool
jot_host_read(jot_Ctx *ctx, const char *path, size_t most, Bytes *out)
{
    int fd = jot_host_open(AT_FDCWD, path);

    out->p = NULL;
    out->n = 0;
    return fd >= 0 && jot_host_read_fd(ctx, fd, most, out);
}

JOT_FN bool
jot_host_read_fd(jot_Ctx *ctx, int fd, size_t most, Bytes *out)
{
    bool ok = host_read_all(ctx, fd, most, out);
    int why = errno;

    close(fd);
    errno = why;
    return ok;
}

JOT_FN bool
jot_host_limit_begin(void)
{
    sigset_t limit, before;

    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    return pthread_sigmask(SIG_BLOCK, &limit, &before) || sigismember(&before, SIGXFSZ);
}

/* The signal that a write sent to this thread is taken; where it was blocked before, it may be the
 * program's. errno stays. */
JOT_FN void
jot_host_limit_end(bool blocked)
{
    int why = errno, number;
    sigset_t limit, sent;

    if (blocked)
        return;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (!sigpending(&sent) && sigismember(&sent, SIGXFSZ))
        sigwait(&limit, &number);
    pthread_sigmask(SIG_UNBLOCK, &limit, NULL);
    errno = why;
}

static bool
host_write_all(int fd, const void *p, size_t nbytes)
{
    const char *s = p;

    while (nbytes) {
        ssize_t n = write(fd, s, nbytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : ENOSPC;
            return false;
        }
        s += n;
        nbytes -= (size_t)n;
    }
    return true;
}

JOT_FN bool
jot_host_write_fd(int fd, const void *p, size_t nbytes)
{
    bool blocked = jot_host_limit_begin(), ok = host_write_all(fd, p, nbytes);

    jot_host_limit_end(blocked);
    return ok;
}

JOT_FN bool
jot_host_write(const char *path, const void *p, size_t nbytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), why;
    bool ok;

    if (fd < 0)
        return false;
    ok = jot_host_write_fd(fd, p, nbytes);
    why = errno;
    if (close(fd) && ok) { /* some file systems only say here that they are full */
        why = errno;
        ok = false;
    }
    errno = why;
    return ok;
}

#endif

#ifdef JOT_CHECKED
/* A broken invariant of ours, in builds that check them: say which and stop. */
JOT_FN void
jot_base_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, what);
    abort();
}
#endif
