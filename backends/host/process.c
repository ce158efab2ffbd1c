/* backends/host/process.c - child processes without a shell: compilers, and what these start.
 *
 *     program            process group of the child
 *     pipe: its end to   driver, compiler proper, linker: all hold
 *     write to ----------- the end to read from, which the group owns
 *
 * A child leads a process group of its own, and the whole group ends with it: when it ends by
 * itself, when it takes too long or prints too much, when another thread says so. The pipe is a
 * leash. Nobody writes to it; when the last process goes that could, and however it goes, the
 * kernel tells the owner of the other end, and the signal that it is asked to tell it with is
 * SIGKILL. (Linux alone has that; elsewhere a program that is killed leaves its compilers behind.)
 *
 * Its temporary files are in the folder that it is given, which goes with all that is left there.
 *
 * Read before: backends/host/host.h, work.c. After: backends/cpu/cc.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- a child that another thread may end -------------------------------------------------- */

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

JOT_FN void
jot_host_child_stop(HostChild *child)
{
    pthread_mutex_lock(&child->lock);
    child->stop = true;
    if (child->pid > 0)
        kill(-child->pid, SIGKILL);
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

static void
child_ended(HostChild *child)
{
    if (!child)
        return;
    pthread_mutex_lock(&child->lock);
    child->pid = 0;
    pthread_mutex_unlock(&child->lock);
}

/* ---- starting ----------------------------------------------------------------------------- */

typedef struct {
    int leash[2];   /* see above; -1: there is none */
    int messages;   /* the file that it prints to, whose position it shares with us */
    char **env;
    char tmpdir[600];
} Spawn;

/* Room for what a compiler says of a full disk is taken before it fills it. */
enum { MESSAGES_ROOM = 4096, MESSAGES_MOST = 8 << 20 };

static void
spawn_leash(Spawn *s)
{
    s->leash[0] = s->leash[1] = -1;
#ifdef F_SETSIG
    if (pipe2(s->leash, O_CLOEXEC | O_NONBLOCK)) {
        s->leash[0] = s->leash[1] = -1;
        return;
    }
    fcntl(s->leash[0], F_SETSIG, SIGKILL);
    fcntl(s->leash[0], F_SETFL, O_NONBLOCK | O_ASYNC);
#endif
}

static void
spawn_leash_to(const Spawn *s, pid_t group)
{
#ifdef F_SETSIG
    if (s->leash[0] >= 0)
        fcntl(s->leash[0], F_SETOWN, -group);
#else
    (void)s, (void)group;
#endif
}

/* errno's value. */
static int
spawn_messages(Spawn *s, const WorkDir *work)
{
    char path[600];
    bool blocked;
    int why;

    jot_work_path(work, WORK_MESSAGES, path, sizeof path);
    s->messages = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->messages < 0)
        return errno;
    blocked = jot_host_limit_begin();
#if defined(_POSIX_ADVISORY_INFO) && _POSIX_ADVISORY_INFO > 0
    why = posix_fallocate(s->messages, 0, MESSAGES_ROOM);
#else
    why = 0;
#endif
    jot_host_limit_end(blocked);
    return why == ENOSPC || why == EDQUOT ? why : 0; /* a limit on files leaves some room */
}

/* The environment with another TMPDIR. */
static bool
spawn_environment(Spawn *s, const WorkDir *work)
{
    size_t n = 0, i, k = 0;

    while (environ && environ[n])
        n++;
    s->env = calloc(n + 2, sizeof *s->env);
    if (!s->env)
        return false;
    for (i = 0; i < n; i++)
        if (strncmp(environ[i], "TMPDIR=", 7))
            s->env[k++] = environ[i];
    snprintf(s->tmpdir, sizeof s->tmpdir, "TMPDIR=%s", work->dir);
    s->env[k] = s->tmpdir;
    return true;
}

/* errno's value. */
static int
spawn_open(Spawn *s, const WorkDir *work)
{
    int why;

    s->env = NULL;
    spawn_leash(s);
    why = spawn_messages(s, work);
    return why ? why : spawn_environment(s, work) ? 0 : ENOMEM;
}

/* The end to read from first: nobody is told any more that we let go of the other. */
static void
spawn_close(Spawn *s)
{
    int i;

    for (i = 0; i < 2; i++)
        if (s->leash[i] >= 0)
            close(s->leash[i]);
    if (s->messages >= 0)
        close(s->messages);
    free(s->env);
}

/* The child starts with no signal blocked and hears of its own children, whatever the host does: a
 * compiler driver waits for the compiler proper. */
static bool
spawn_signals(posix_spawnattr_t *attr)
{
    sigset_t set;

    sigemptyset(&set);
    if (posix_spawnattr_setsigmask(attr, &set))
        return false;
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE);
    return !posix_spawnattr_setsigdefault(attr, &set) && !posix_spawnattr_setpgroup(attr, 0)
        && !posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
                                               | POSIX_SPAWN_SETPGROUP);
}

/* What stands at a number of its own there is inherited. */
static int
spawn_files(const Spawn *s, posix_spawn_file_actions_t *files)
{
    int why = 0;

    if (s->leash[0] >= 0)
        why = posix_spawn_file_actions_adddup2(files, s->leash[0], s->leash[0]);
    if (!why)
        why = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!why)
        why = posix_spawn_file_actions_adddup2(files, s->messages, 1);
    return why ? why : posix_spawn_file_actions_adddup2(files, s->messages, 2);
}

/* Unless it is not wanted any more. errno's value. */
static int
spawn_wanted(const Spawn *s, HostChild *child, char *const *argv,
             const posix_spawn_file_actions_t *files, const posix_spawnattr_t *attr, pid_t *pid)
{
    int why;

    if (!child)
        return posix_spawn(pid, argv[0], files, attr, argv, s->env);
    pthread_mutex_lock(&child->lock);
    why = child->stop ? ECANCELED : posix_spawn(pid, argv[0], files, attr, argv, s->env);
    child->pid = why ? 0 : *pid;
    pthread_mutex_unlock(&child->lock);
    return why;
}

/* errno's value. */
static int
spawn_start(const Spawn *s, char *const *argv, HostChild *child, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int why = ENOMEM;

    if (posix_spawn_file_actions_init(&files))
        return ENOMEM;
    if (!posix_spawnattr_init(&attr)) {
        why = spawn_signals(&attr) ? spawn_files(s, &files) : ENOMEM;
        if (!why)
            why = spawn_wanted(s, child, argv, &files, &attr, pid);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return why;
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Naps are a 128th of what it took so far. */
static void
wait_nap(double took)
{
    struct timespec nap = {0, 20000000};

    if (took < 2.5)
        nap.tv_nsec = 100000 + (long)(took / 128 * 1e9);
    nanosleep(&nap, NULL);
}

/* Until it ends, or has to. Its number stays taken: nobody else gets a signal that is meant for it
 * and its group. */
static ChildEnd
wait_end(pid_t pid, int messages, double limit)
{
    double start = jot_host_seconds();
    ChildEnd end = CHILD_ENDED;
    siginfo_t info;

    for (;;) {
        double took = jot_host_seconds() - start;
        int rc;

        if (took >= limit)
            end = CHILD_LATE;
        else if (lseek(messages, 0, SEEK_CUR) > MESSAGES_MOST)
            end = CHILD_LOUD;
        if (end != CHILD_ENDED)
            kill(-pid, SIGKILL);
        info.si_pid = 0;
        rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | (end ? 0 : WNOHANG));
        if (rc && errno != EINTR)
            return end; /* the program ignores its children: the number may be another's by now */
        if (!rc && info.si_pid)
            break;
        if (!end)
            wait_nap(took);
    }
    kill(-pid, SIGKILL); /* whom it left behind */
    return end;
}

JOT_FN ChildEnd
jot_host_spawn(char *const *argv, const WorkDir *work, double limit, HostChild *child, int *status)
{
    ChildEnd end = CHILD_NONE;
    pid_t pid;
    Spawn s;
    int why;

    *status = 0;
    why = spawn_open(&s, work);
    if (!why)
        why = spawn_start(&s, argv, child, &pid);
    if (!why) {
        off_t said;

        spawn_leash_to(&s, pid);
        end = wait_end(pid, s.messages, limit);
        child_ended(child);
        while (waitpid(pid, status, 0) < 0) {
            if (errno != EINTR) {
                *status = 0;
                break;
            }
        }
        said = lseek(s.messages, 0, SEEK_CUR);
        if (said < 0 || ftruncate(s.messages, said))
            why = errno;
    }
    spawn_close(&s);
    errno = why;
    return end;
}

/* ---- programs ----------------------------------------------------------------------------- */

static bool
which_is_program(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

JOT_FN char *
jot_host_which(jot_Ctx *ctx, const char *name, size_t *nbytes)
{
    const char *path = strchr(name, '/') ? "" : jot_host_env(ctx, "PATH"), *end;
    Text text = {0};

    if (!path && ctx->config.no_environment)
        path = "/usr/bin:/bin";
    text.mem = &ctx->mem;
    for (; path; path = *end ? end + 1 : NULL) {
        end = path + strcspn(path, ":");
        text.n = 0;
        if (strchr(name, '/'))
            jot_text_f(&text, "%s", name);
        else if (end != path) /* an empty entry would mean the current directory: not for us */
            jot_text_f(&text, "%.*s/%s", (int)(end - path), path, name);
        if (text.n && text.n < text.cap && which_is_program(text.s)) {
            *nbytes = text.cap;
            return text.s;
        }
    }
    jot_text_free(&text);
    return NULL;
}

#endif
