/* backends/host/fork.c - what fork() leaves of contexts: a child has their memory, but none of
 * their threads, and nobody knows what drivers make of it. All that jot has for a process as a
 * whole is here, too.
 *
 *     parent   context, threads, compilers, devices        goes on
 *     child    what is evaluated can be read, jot_close frees memory; nothing waits for a thread,
 *              ends a compiler, unloads what a linker may just have loaded, or calls a driver
 *              contexts that it opens itself work
 *
 * A context remembers how often the process had forked on the way to where it was opened: each
 * child is one further (jot_home in core.c).
 *
 * libtcc is one for all contexts, and so is the linker that opens compiled kernels. Their lock is
 * taken before a fork and free behind it on both sides, so that a child finds them between two
 * texts.
 *
 * Read before: backends/host/host.h. After: backends/cpu/tcc.c, backends/cpu/jobs.c,
 * backends/cpu/pool.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <pthread.h>

/* ---- the process -------------------------------------------------------------------------- */

/* The only mutable global of jot, but for OpenCL's lock. */
static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    bool held;      /* by who forks */
    unsigned forks; /* in this process and those that it comes from, since jot was first used */
} fork_process = { .once = PTHREAD_ONCE_INIT };

/* Who forks in a signal's handler may have it already: then it is an error, and no wait. */
static void
fork_lock_new(void)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&fork_process.lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

static void
fork_before(void)
{
    fork_process.held = !pthread_mutex_lock(&fork_process.lock);
}

static void
fork_parent(void)
{
    if (fork_process.held) {
        fork_process.held = false;
        pthread_mutex_unlock(&fork_process.lock);
    }
}

/* The lock is of another thread's number here. */
static void
fork_child(void)
{
    fork_process.held = false;
    fork_process.forks++;
    fork_lock_new();
}

static void
fork_once(void)
{
    fork_lock_new();
    pthread_atfork(fork_before, fork_parent, fork_child);
}

JOT_FN unsigned
jot_host_forks(void)
{
    pthread_once(&fork_process.once, fork_once);
    return fork_process.forks;
}

JOT_FN void
jot_host_lock(void)
{
    pthread_once(&fork_process.once, fork_once);
    pthread_mutex_lock(&fork_process.lock);
}

JOT_FN void
jot_host_unlock(void)
{
    pthread_mutex_unlock(&fork_process.lock);
}

#endif
