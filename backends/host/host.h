/* backends/host/host.h - what a hosted build brings to jot_open(NULL), and what the two backends
 * that run a C compiler share: processes, files, the cache of compiled kernels on disk.
 *
 * The files that know libc and POSIX are those that the Makefile lists as HOSTED. A build with
 * JOT_NO_HOST leaves them out; then the user gives the hooks and only the interpreter is in the
 * table.
 *
 * Read before: backends/backend.h. After: host.c, backends/cpu/cache.c,
 * backends/cpu/tcc.c, backends/cpu/cc.c. */
#ifndef JOT_HOST_H
#define JOT_HOST_H
#include "backends/backend.h"
#ifndef JOT_NO_HOST
#include <pthread.h>

/* Fill in all hooks: malloc (results of at least 64 bytes are 64-byte aligned), stderr, getenv, the
 * monotonic clock. */
JOT_FN void jot_host_hooks(jot_Hooks *hooks);

/* Vector registers, cores and caches of this machine, and rates that follow from them. */
JOT_FN void jot_machine_detect(Target *target);
/* What tells this processor from others, out of /proc/cpuinfo's text. */
JOT_FN void jot_machine_name(const char *cpuinfo, char *name, size_t nbytes);
/* Measure the rates (backends/host/probe.c): some 20 ms. False: no loops for this machine. */
JOT_FN bool jot_machine_measure(Target *target);

/* ---- shared by backends/cpu/tcc.c, backends/cpu/cc.c and backends/cpu/cache.c ---- */

/* An environment variable as the context's hook sees it; the process's own without a hook. */
JOT_FN const char *jot_host_env(const jot_Ctx *ctx, const char *name);
JOT_FN double jot_host_seconds(void); /* monotonic */
/* A thread of the library's own, with HOST_STACK bytes of stack whatever the system's default is:
 * twice what core.h promises to need, for the system's share. */
enum { HOST_STACK = 256 * 1024 };
/* backends/cpu/pool.c */
JOT_FN bool jot_host_thread(pthread_t *thread, void *(*run)(void *), void *arg);
JOT_FN void jot_host_log(jot_Ctx *ctx, const char *format, ...) JOT_PRINTF(2, 3);
/* To the log, unless it is the same as one of the last SAID. */
JOT_FN void jot_host_say(jot_Ctx *ctx, const char *note);

/* ---- the process (fork.c) ---- */

JOT_FN unsigned jot_host_forks(void); /* on the way to this process, since the first call */
/* Around libtcc, and what is opened and closed by the linker. A child of fork finds it free. */
JOT_FN void jot_host_lock(void);
JOT_FN void jot_host_unlock(void);

/* ---- files (host.c) ---- */

/* Bytes of the context's memory. */
typedef struct { char *p; size_t n; } Bytes;
JOT_FN void jot_bytes_free(jot_Ctx *ctx, Bytes *bytes);
/* A file to read, in the open directory `place`. -1: errno says why; EINVAL: it is a pipe, a
 * folder, a device, no file. */
JOT_FN int jot_host_open(int place, const char *path);
/* A whole file, at most `most` bytes of it, with a 0 behind; the second closes it. False: errno
 * says why. */
JOT_FN bool jot_host_read(jot_Ctx *ctx, const char *path, size_t most, Bytes *out);
JOT_FN bool jot_host_read_fd(jot_Ctx *ctx, int fd, size_t most, Bytes *out);
/* What this thread writes in between meets a limit on the size of files (ulimit -f) as an error,
 * EFBIG, and not as a signal that ends the program. The first says whether the thread had that
 * signal blocked, the second is told. */
JOT_FN bool jot_host_limit_begin(void);
JOT_FN void jot_host_limit_end(bool blocked);
JOT_FN bool jot_host_write_fd(int fd, const void *p, size_t nbytes); /* all of it; false: errno */
/* A new file that only this user can read. */
JOT_FN bool jot_host_write(const char *path, const void *p, size_t nbytes);

/* ---- shared libraries (library.c) ---- */

/* Does the file hold all that its head says? What is missing would be a bus error once it is
 * loaded. True for what is no object of this system's kind: dlopen will say so. */
JOT_FN bool jot_library_whole(const char *path);
/* A file of these bytes that is in memory alone, and a path that no other of them has as long as
 * it lives: its number on the way, a bit for each "./", so that the dynamic linker does not take it
 * for one with the same descriptor before it. -1: the system has no such files. */
JOT_FN int jot_library_memory(Bytes object, char *path, size_t nbytes);
/* The first of n that opens (NULL among the names: the program itself); NULL:
 * none, and dlerror says why the last did not. */
JOT_FN void *jot_library_open(const char *const *names, size_t n);
/* *fn: a function pointer, NULL where the library lacks the function. */
JOT_FN bool jot_library_find(void *library, const char *name, void *fn);
/* But not in a child of the process that opened it (ctx NULL: it is none). library may be NULL. */
JOT_FN void jot_library_close(const jot_Ctx *ctx, void *library);
/* The file that this library's own code was loaded from, and as which it is there: another build of
 * it is another. False: not known. */
JOT_FN bool jot_library_self(char *name, size_t nbytes);
/* n of them to a struct of nothing else. The first name that is not there, or NULL. */
JOT_FN const char *jot_library_functions(void *library, const char *const *names, size_t n,
                                         void *table);

/* ---- temporary files (work.c), child processes (process.c) ---- */

/* A private folder of temporary files, locked by fd. `from` counts the places tried (TMPDIR, /tmp,
 * /var/tmp, last_resort): a caller that runs out of space asks again with the same number. False:
 * none is left; errno is of the last. */
typedef struct { char dir[512]; int from, fd; } WorkDir;
JOT_FN bool jot_work_open(jot_Ctx *ctx, WorkDir *work, const char *last_resort);
JOT_FN void jot_work_path(const WorkDir *work, const char *file, char *path, size_t nbytes);
JOT_FN void jot_work_close(WorkDir *work); /* removes it and the files in it; errno stays */
/* Remove this user's folders that processes left which were killed. */
JOT_FN void jot_work_sweep(jot_Ctx *ctx, const char *last_resort);
/* The names of the files that a WorkDir may hold. */
#define WORK_SOURCE "kernel.c"
#define WORK_OBJECT "kernel.so"
#define WORK_MESSAGES "messages"

/* A child process that another thread may end. */
typedef struct HostChild HostChild;
JOT_FN HostChild *jot_host_child_new(void); /* in malloc's memory; NULL: none left */
JOT_FN void jot_host_child_stop(HostChild *child); /* the one that runs, and any that follows */
JOT_FN void jot_host_child_free(HostChild *child);
/* Run argv[0] (a path: nothing is searched and no shell is involved) with no input, its temporary
 * files in the folder `work`, its output and messages in WORK_MESSAGES there. What it has started
 * ends with it, and all of them with this program. *status is what waitpid says; 0 when the program
 * ignores SIGCHLD, so that nobody learns it. child, unless NULL: by which another thread may end
 * it. */
typedef enum {
    CHILD_ENDED,
    CHILD_LATE,     /* killed: it took `limit` seconds */
    CHILD_LOUD,     /* killed: it printed more than 8 MiB */
    CHILD_NONE      /* not started: errno says why; ENOSPC, EDQUOT: no room for messages */
} ChildEnd;
JOT_FN ChildEnd jot_host_spawn(char *const *argv, const WorkDir *work, double limit,
                               HostChild *child, int *status);
/* A program on PATH (or a path with a '/') that may be executed; NULL: none. In ctx's memory. */
JOT_FN char *jot_host_which(jot_Ctx *ctx, const char *name, size_t *nbytes);

/* ---- the cache (backends/cpu/cache.c) ---- */

/* fd: the open directory, -1 for no cache. */
typedef struct { int fd; char dir[512]; } Cache;
/* Find or make the directory, and tidy it once an hour. Without one (config "", another user's, not
 * writable) the cache is empty and stays so; the log says why. */
JOT_FN void jot_cache_open(Cache *cache, jot_Ctx *ctx, bool tell);
JOT_FN void jot_cache_close(Cache *cache);
/* The name of an entry, its file's. */
enum { CACHE_NAME = 40 };
JOT_FN void jot_cache_name(Bytes key, Bytes text, char name[CACHE_NAME]);
/* The entry of a name, if it is one of this key: its text, a copy with a 0 behind, and the object,
 * which lies in *entry. The caller frees both. */
JOT_FN bool jot_cache_unit(Cache *cache, jot_Ctx *ctx, Bytes key, const char *name, Bytes *entry,
                           Bytes *text, Bytes *object);
/* The object made from `text` by what `key` describes (compiler, flags, machine), or false. It
 * lies, with a 0 behind, in *entry, which the caller frees. */
JOT_FN bool jot_cache_find(Cache *cache, jot_Ctx *ctx, Bytes key, Bytes text, Bytes *entry,
                           Bytes *object);
/* Keep an object. Failing (a full disk) is no error: the log says why, once. */
JOT_FN void jot_cache_keep(Cache *cache, jot_Ctx *ctx, Bytes key, Bytes text, Bytes object);

/* A file of this name in the directory: this user's, nobody else's to write, of no more bytes than
 * an entry may have; else it is told and removed. A new one replaces the old one at once. */
JOT_FN bool jot_cache_read(Cache *cache, jot_Ctx *ctx, const char *name, Bytes *text);
JOT_FN void jot_cache_write(Cache *cache, jot_Ctx *ctx, const char *name, Bytes text);

/* The target's rates as measured on this machine: from the cache, or measured and kept there, now
 * or, if it may be `later`, by another call: until then the target is late. Without a cache they
 * stay as they are. */
JOT_FN void jot_machine_look_up(Cache *cache, jot_Ctx *ctx, bool later);

/* The cc backend. Without `ask` a compiler whose version is not in the cache is asked only when
 * there is something to compile, and the machine is measured by jot_cc_measure, so that opening
 * takes no time. JOT_EUSE: config.cc or JOT_CC names a compiler that is none. */
JOT_FN jot_Status jot_cc_open(Backend *backend, jot_Ctx *ctx, bool ask, HostChild *child, char *why,
                              size_t why_nbytes);
JOT_FN void jot_cc_measure(Backend *backend, jot_Ctx *ctx);

/* ---- compiling beside the program (backends/cpu/jobs.c) ---- */

typedef struct Jobs Jobs;
JOT_FN Jobs *jot_jobs_open(jot_Ctx *ctx); /* NULL: no memory; threads start with the first job */
JOT_FN void jot_jobs_close(Jobs *jobs, jot_Ctx *ctx); /* ends what still runs */
JOT_FN CompileJob *jot_jobs_start(Jobs *jobs, jot_Ctx *ctx, const char *what, const char *text,
                                  size_t nbytes, const KernelSym *sym, int n);
JOT_FN JobState jot_jobs_look(Jobs *jobs, jot_Ctx *ctx, CompileJob *job, double most, double *left);
JOT_FN void jot_jobs_end(Jobs *jobs, jot_Ctx *ctx, CompileJob *job, KernelSym *sym, void **module);

extern const Backend jot_backend_cpu, jot_backend_tcc, jot_backend_cc, jot_backend_opencl,
    jot_backend_cuda;

#endif
extern const Backend jot_backend_interp;
#endif
