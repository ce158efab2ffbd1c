/* backends/host.c - libc and POSIX behind a few functions: the hooks of jot_open(NULL), whole
 * files, child processes without a shell, private temporary directories.
 *
 * Read before: backends/host.h. After: backends/cache.c, cc.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host.h"
#ifndef JOT_NO_HOST
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

    if (hash != ctx->said && ctx->mem.hooks.log)
        ctx->mem.hooks.log(ctx->mem.hooks.ud, note, strlen(note));
    ctx->said = hash;
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
host_read_fd(jot_Ctx *ctx, int fd, size_t most, Bytes *out)
{
    size_t cap = 16384, n = 0;
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

JOT_FN bool
jot_host_read(jot_Ctx *ctx, const char *path, size_t most, Bytes *out)
{
    return jot_host_read_at(ctx, AT_FDCWD, path, most, out);
}

JOT_FN bool
jot_host_read_at(jot_Ctx *ctx, int place, const char *path, size_t most, Bytes *out)
{
    int fd = openat(place, path, O_RDONLY | O_CLOEXEC), why;
    bool ok;

    out->p = NULL;
    out->n = 0;
    if (fd < 0)
        return false;
    ok = host_read_fd(ctx, fd, most, out);
    why = errno;
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

/* ---- processes ---------------------------------------------------------------------------- */

extern char **environ;

/* The child starts with no signal blocked and hears of its own children, whatever the host does: a
 * compiler driver waits for the compiler proper. */
static bool
host_spawn_signals(posix_spawnattr_t *attr, bool group)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t set;

    if (group) /* number 0: its own */
        flags |= POSIX_SPAWN_SETPGROUP;

    sigemptyset(&set);
    if (posix_spawnattr_setsigmask(attr, &set))
        return false;
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE);
    return !posix_spawnattr_setsigdefault(attr, &set)
        && !posix_spawnattr_setflags(attr, flags);
}

struct HostChild {
    pthread_mutex_t lock;
    pid_t pid;  /* running, and not waited for yet; 0: none */
    bool stop;
};

JOT_FN HostChild *
jot_host_child_new(void)
{
    HostChild *child = calloc(1, sizeof *child);

    if (child)
        pthread_mutex_init(&child->lock, NULL);
    return child;
}

/* It leads a process group of its own: a compiler's driver has children. */
JOT_FN void
jot_host_child_stop(HostChild *child)
{
    pthread_mutex_lock(&child->lock);
    child->stop = true;
    if (child->pid > 0)
        kill(-child->pid, SIGTERM);
    pthread_mutex_unlock(&child->lock);
}

JOT_FN void
jot_host_child_free(HostChild *child)
{
    if (!child)
        return;
    pthread_mutex_destroy(&child->lock);
    free(child);
}

/* Start it, unless it is not wanted any more. Returns errno's value. */
static int
host_child_start(HostChild *child, char *const *argv, posix_spawn_file_actions_t *files,
                 posix_spawnattr_t *attr, pid_t *pid)
{
    int why;

    if (!child)
        return posix_spawn(pid, argv[0], files, attr, argv, environ);
    pthread_mutex_lock(&child->lock);
    why = child->stop ? ECANCELED : posix_spawn(pid, argv[0], files, attr, argv, environ);
    child->pid = why ? 0 : *pid;
    pthread_mutex_unlock(&child->lock);
    return why;
}

/* Until it ends, and ends it when the time is over. Its number stays taken: nobody else gets a
 * signal that is meant for it. Naps are a 128th of what it took so far. */
static void
host_wait(pid_t pid, bool group, double limit)
{
    double start = jot_host_seconds(), took = 0;
    siginfo_t info;

    for (;;) {
        struct timespec nap = {0, 20000000};
        int rc;

        info.si_pid = 0;
        rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | (took < limit ? WNOHANG : 0));
        if (rc ? errno != EINTR : info.si_pid != 0)
            return;
        took = jot_host_seconds() - start;
        if (took >= limit)
            kill(group ? -pid : pid, SIGKILL);
        else if (took < 2.5)
            nap.tv_nsec = 100000 + (long)(took / 128 * 1e9);
        if (took < limit)
            nanosleep(&nap, NULL);
    }
}

static void
host_child_ended(HostChild *child)
{
    pthread_mutex_lock(&child->lock);
    child->pid = 0;
    pthread_mutex_unlock(&child->lock);
}

/* Messages go to a file, not through a pipe: a pipe's writing end could be inherited by a child
 * that another thread starts at the same moment, and then reading would wait for that child too. */
JOT_FN bool
jot_host_spawn(char *const *argv, const char *messages, double limit, HostChild *other,
               int *status)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    pid_t child;
    int why;

    *status = 0;
    if (posix_spawn_file_actions_init(&files))
        return false;
    if (posix_spawnattr_init(&attr)) {
        posix_spawn_file_actions_destroy(&files);
        return false;
    }
    why = host_spawn_signals(&attr, other != NULL) ? 0 : ENOMEM;
    if (!why)
        why = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!why)
        why = posix_spawn_file_actions_addopen(&files, 1, messages, O_WRONLY | O_CREAT | O_TRUNC,
                                               0600);
    if (!why)
        why = posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (!why)
        why = host_child_start(other, argv, &files, &attr, &child);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    errno = why;
    if (why)
        return false;
    host_wait(child, other != NULL, limit);
    if (other)
        host_child_ended(other);
    while (waitpid(child, status, 0) < 0) {
        if (errno != EINTR) {
            *status = 0;
            break;
        }
    }
    return true;
}

static bool
host_is_program(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

JOT_FN char *
jot_host_which(jot_Ctx *ctx, const char *name, size_t *nbytes)
{
    const char *path = strchr(name, '/') ? "" : jot_host_env(ctx, "PATH"), *end;
    Text text = {0};

    text.mem = &ctx->mem;
    for (; path; path = *end ? end + 1 : NULL) {
        end = path + strcspn(path, ":");
        text.n = 0;
        if (strchr(name, '/'))
            jot_text_f(&text, "%s", name);
        else if (end != path) /* an empty entry would mean the current directory: not for us */
            jot_text_f(&text, "%.*s/%s", (int)(end - path), path, name);
        if (text.n && text.n < text.cap && host_is_program(text.s)) {
            *nbytes = text.cap;
            return text.s;
        }
    }
    jot_text_free(&text);
    return NULL;
}

/* ---- temporary directories ---------------------------------------------------------------- */

JOT_FN void
jot_work_path(const WorkDir *work, const char *file, char *path, size_t nbytes)
{
    snprintf(path, nbytes, "%s/%s", work->dir, file);
}

#define WORK_PREFIX "jot-kernel-"
static const char *const work_files[] = { WORK_SOURCE, WORK_OBJECT, WORK_MESSAGES };
enum { WORK_PLACES = 3, WORK_FILES = sizeof work_files / sizeof *work_files };

static const char *
work_place(jot_Ctx *ctx, int k)
{
    return k == 0 ? jot_host_env(ctx, "TMPDIR") : k == 1 ? "/tmp" : "/var/tmp";
}

JOT_FN bool
jot_work_open(jot_Ctx *ctx, WorkDir *work, const char *last_resort)
{
    while (work->from <= WORK_PLACES) {
        const char *place = work->from < WORK_PLACES ? work_place(ctx, work->from) : last_resort;
        int n;

        work->from++;
        if (!place || !*place)
            continue;
        n = snprintf(work->dir, sizeof work->dir, "%s/" WORK_PREFIX "XXXXXX", place);
        if (n > 0 && n < (int)sizeof work->dir && mkdtemp(work->dir))
            return true;
    }
    work->dir[0] = 0;
    return false;
}

JOT_FN void
jot_work_close(WorkDir *work)
{
    char path[600];
    int i;

    if (!work->dir[0])
        return;
    for (i = 0; i < WORK_FILES; i++) {
        jot_work_path(work, work_files[i], path, sizeof path);
        unlink(path);
    }
    rmdir(work->dir);
    work->dir[0] = 0;
}

/* No link is followed, and no file goes but those that such a directory may hold. */
static void
work_sweep_one(int place, const char *name, int64_t before)
{
    int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), i;
    struct stat st;

    if (fd < 0)
        return;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && st.st_mtime < before) {
        for (i = 0; i < WORK_FILES; i++)
            unlinkat(fd, work_files[i], 0);
        unlinkat(place, name, AT_REMOVEDIR);
    }
    close(fd);
}

JOT_FN void
jot_work_sweep(jot_Ctx *ctx, int64_t before)
{
    int k;

    for (k = 0; k < WORK_PLACES; k++) {
        const char *place = work_place(ctx, k);
        DIR *dir = place && *place ? opendir(place) : NULL;
        struct dirent *e;

        while (dir && (e = readdir(dir)) != NULL)
            if (!strncmp(e->d_name, WORK_PREFIX, sizeof WORK_PREFIX - 1))
                work_sweep_one(dirfd(dir), e->d_name, before);
        if (dir)
            closedir(dir);
    }
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
