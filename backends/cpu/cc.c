/* backends/cpu/cc.c - kernels through the system's C compiler: text -> shared object -> dlopen.
 *
 *     text -> in the cache? --yes--> object bytes -> a file in memory --> dlopen, dlsym
 *               |no                        ^                               ^
 *               '-> its file -> cc -> private kernel.so -------------------'
 *
 * The compiler is looked for once, when the context opens (backends/cpu/program.c). It is started
 * without a shell.
 *
 * A text is compiled in a private temporary directory that is removed as soon as the object is
 * loaded: a loaded file needs no name. The directory's name is new each time, which matters: the
 * dynamic linker gives back what it has already loaded under the same name. Bytes from the cache
 * are loaded from memory where the system can (8 us for 250), else from such a directory; a new
 * object from memory, too, where its directory may hold nothing that runs.
 *
 * Read before: backends/cpu/cc.h, backends/cpu/program.c, cache.c. After: plan/plan.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cpu/cc.h"
#include "ops/user/code.h"
#ifndef JOT_NO_HOST
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- texts that hang ---------------------------------------------------------------------- */

static int
hung_ways(CcHung *hung, uint64_t text)
{
    int i, ways = 0;

    pthread_mutex_lock(&hung->lock);
    for (i = 0; i < CC_HUNG; i++)
        if (hung->v[i].ways > ways && hung->v[i].text == text)
            ways = hung->v[i].ways;
    pthread_mutex_unlock(&hung->lock);
    return ways;
}

static void
hung_note(CcHung *hung, uint64_t text, int ways)
{
    pthread_mutex_lock(&hung->lock);
    hung->v[hung->n % CC_HUNG].text = text;
    hung->v[hung->n++ % CC_HUNG].ways = ways;
    pthread_mutex_unlock(&hung->lock);
}

/* ---- open and close ----------------------------------------------------------------------- */

static void
cc_close(Backend *backend, jot_Ctx *ctx)
{
    CcState *cc = backend->state;

    if (!cc)
        return;
    jot_mem_free(&ctx->mem, cc->cc, cc->cc_nbytes);
    jot_text_free(&cc->key);
    jot_text_free(&cc->self);
    jot_cache_close(&cc->cache);
    pthread_mutex_destroy(&cc->own.lock);
    jot_mem_free(&ctx->mem, cc, sizeof *cc);
    backend->state = NULL;
}

JOT_FN jot_Status
jot_cc_open(Backend *backend, jot_Ctx *ctx, bool ask, HostChild *child, char *why,
            size_t why_nbytes)
{
    static const char *const none[] = {NULL};
    void *program = jot_library_open(none, 1);
    const char *limit = jot_host_env(ctx, "JOT_CC_SECONDS");
    char *end = "";
    double seconds = limit && *limit ? strtod(limit, &end) : CC_SECONDS;
    CcState *cc;

    if (!program) { /* linked statically, with a C library that then loads nothing */
        snprintf(why, why_nbytes, "objects cannot be loaded: %s", dlerror());
        return JOT_EDEVICE;
    }
    jot_library_close(ctx, program);
    if (ctx->config.no_programs) {
        snprintf(why, why_nbytes, "no_programs forbids a compiler that is one");
        return JOT_EDEVICE;
    }
    if (!(seconds > 0) || *end) {
        snprintf(why, why_nbytes, "JOT_CC_SECONDS is \"%.40s\", where seconds above 0 are asked",
                 limit);
        return JOT_EUSE;
    }
    cc = jot_mem_new(&ctx->mem, 1, sizeof *cc);
    if (!cc) {
        snprintf(why, why_nbytes, "out of memory");
        return JOT_EMEM;
    }
    backend->state = cc;
    pthread_mutex_init(&cc->own.lock, NULL);
    cc->hung = &cc->own;
    cc->seconds = seconds;
    cc->key.mem = &ctx->mem;
    cc->child = child;
    cc->march = jot_target_march(ctx->config.target);
    jot_cache_open(&cc->cache, ctx, !child);
    if (!jot_cc_find(ctx, cc, ask, why, why_nbytes)) {
        cc_close(backend, ctx);
        return jot_cc_wanted(ctx) ? JOT_EUSE : JOT_EDEVICE;
    }
    if (cc->key.n && cc->key.n >= cc->key.cap) { /* memory was refused, and half a key is no key */
        snprintf(why, why_nbytes, "out of memory");
        cc_close(backend, ctx);
        return JOT_EMEM;
    }
    if (!child) /* beside the program nobody plans, and nobody can measure */
        jot_machine_look_up(&cc->cache, ctx, !ask);
    backend->dialect = ctx->config.lanes == 1 ? "c" : "gnu";
    return JOT_OK;
}

JOT_FN void
jot_cc_measure(Backend *backend, jot_Ctx *ctx)
{
    CcState *cc = backend->state;

    jot_machine_look_up(&cc->cache, ctx, false);
}

static jot_Status
cc_open(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes)
{
    return jot_cc_open(backend, ctx, true, NULL, why, why_nbytes);
}

/* ---- compile ------------------------------------------------------------------------------ */

typedef enum { CC_DONE, CC_FAILED, CC_NO_ROOM, CC_ENDLESS, CC_AGAIN } CcResult;

/* End of the first `lines` lines of s. */
static size_t
cc_lines(const char *s, int lines)
{
    size_t n = 0;

    while (s[n] && lines)
        lines -= s[n++] == '\n';
    return n;
}

/* The message kept in the context is short: the log has what does not fit, and that alone. */
static void
cc_fail(jot_Ctx *ctx, jot_Status status, const char *what, const char *problem, const char **argv,
        Bytes messages)
{
    Text text = {0};
    const char *said = messages.p ? messages.p : "", *command;
    int all = (int)cc_lines(said, 30), shown = all > 600 ? 600 : all;

    text.mem = &ctx->mem;
    jot_cc_command_text(argv, &text);
    command = text.n < text.cap ? text.s : argv[0];
    if (all == shown && strlen(what) + strlen(problem) + (size_t)all + strlen(command) + 20 <
                            sizeof ctx->message) {
        jot_fail(ctx, status, "%s: %s\n%.*s\ncommand: %s", what, problem, shown, said, command);
    } else {
        jot_fail(ctx, status, "%s: %s\n%.*s\nmore: in the log", what, problem, shown, said);
        jot_host_log(ctx, "%s: %s, the rest:\n%.*s\ncommand: %s\n", what, problem, all - shown,
                     said + shown, command);
    }
    jot_text_free(&text);
}

/* Did the compiler stop for want of space? Then another directory may do. errno's value, or 0. A
 * limit on the size of files ends its programs by a signal, which its driver tells. */
static int
cc_is_full(Bytes messages, int status)
{
    static const int full[] = {ENOSPC, EDQUOT, EFBIG};
    size_t i;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        return EFBIG;
    for (i = 0; messages.p && i < sizeof full / sizeof *full; i++)
        if (strstr(messages.p, strerror(full[i])))
            return full[i];
    if (messages.p && strstr(messages.p, "File size limit exceeded"))
        return EFBIG;
    return messages.p && strstr(messages.p, "No space left on device") ? ENOSPC : 0;
}

/* The user's line first: messages may be long. */
static void
cc_refused(jot_Ctx *ctx, const char *what, Bytes text, const char **argv, Bytes messages)
{
    char problem[400];
    Text t = {NULL, problem, 0, sizeof problem};

    jot_text_f(&t, "the C compiler refused the text\n");
    jot_code_quote(text.p, text.n, messages.p ? messages.p : "", &t);
    problem[strlen(problem) - 1] = 0;
    cc_fail(ctx, JOT_ECOMPILE, what, problem, argv, messages);
}

/* How the compiler ended that did not compile. errno says which room there was not. */
static CcResult
cc_ended(jot_Ctx *ctx, const WorkDir *work, const char *what, Bytes text, const char **argv,
         ChildEnd end, int status)
{
    char problem[100] = "", path[600];
    int full = end == CHILD_NONE && jot_cc_no_room(errno) ? errno : 0;
    Bytes messages = {0};

    if (end == CHILD_NONE)
        snprintf(problem, sizeof problem, "the C compiler did not start: %s", strerror(errno));
    jot_work_path(work, WORK_MESSAGES, path, sizeof path);
    if (end != CHILD_NONE && jot_host_read(ctx, path, 65536, &messages))
        full = cc_is_full(messages, status);
    if (end == CHILD_LOUD)
        snprintf(problem, sizeof problem, "the C compiler does not stop printing");
    else if (WIFSIGNALED(status))
        snprintf(problem, sizeof problem, "the C compiler was ended by signal %d",
                 WTERMSIG(status));
    if (!full && *problem)
        cc_fail(ctx, JOT_EDEVICE, what, problem, argv, messages);
    else if (!full)
        cc_refused(ctx, what, text, argv, messages);
    jot_bytes_free(ctx, &messages);
    errno = full;
    return full ? CC_NO_ROOM : CC_FAILED;
}

/* Without libraries a failure is no answer: with them it may do, or says why not. */
static CcResult
cc_run(jot_Ctx *ctx, const CcState *cc, const WorkDir *work, const char *what, Bytes text,
       int kind, const char **argv)
{
    char *args[CC_ARGUMENTS]; /* posix_spawn does not write to them, but does not say so */
    ChildEnd end;
    int status;

    memcpy(args, argv, sizeof args);
    end = jot_host_spawn(args, work, cc->seconds, cc->child, &status);
    if (end == CHILD_LATE)
        return CC_ENDLESS;
    if (end == CHILD_ENDED && !status)
        return CC_DONE;
    return !(kind & CC_LIBRARIES) ? CC_AGAIN : cc_ended(ctx, work, what, text, argv, end, status);
}

static void
cc_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    (void)backend;
    jot_library_close(ctx, module);
}

/* Load an object and find the functions. What is opened once more under its name is what is loaded,
 * until it is closed as often. */
static bool
cc_load(jot_Ctx *ctx, const CcState *cc, const char *path, const char *what, const char *from,
        KernelSym *sym, int n, void **module)
{
    void *handle = jot_library_open(&path, 1);
    int i;

    if (!handle)
        return jot_fail(ctx, JOT_ECOMPILE, "%s: the compiled kernel does not load: %s\n%s", what,
                        dlerror(), from);
    for (i = 0; i < n; i++) {
        if (jot_library_find(handle, sym[i].name, &sym[i].fn))
            continue;
        jot_library_close(ctx, handle);
        return jot_fail(ctx, JOT_ECOMPILE, "%s: no function %s in the compiled kernel\n%s", what,
                        sym[i].name, from);
    }
    for (i = 1; i < cc->jobs; i++)
        (void)jot_library_open(&path, 1);
    *module = handle;
    return true;
}

static Bytes
cc_bytes(const char *s, size_t n)
{
    Bytes bytes;

    bytes.p = (char *)(uintptr_t)s;
    bytes.n = n;
    return bytes;
}

static Bytes
cc_key(const CcState *cc)
{
    return cc_bytes(cc->key.s, cc->key.n);
}

/* ---- kernels by themselves ---------------------------------------------------------------- */

/* A text of many kernels is one entry of the cache, and each kernel an entry that names it: a
 * program that changes one kernel finds the others.
 *
 *     "kernel" key | text of the kernel | name of the unit
 *              key | text of the unit | object */
static bool
cc_kernel_key(jot_Ctx *ctx, const CcState *cc, Text *key)
{
    memset(key, 0, sizeof *key);
    key->mem = &ctx->mem;
    jot_text_f(key, "kernel\n%s", cc->key.s);
    if (key->n == cc->key.n + 7)
        return true;
    jot_text_free(key);
    return false;
}

static void
cc_keep_kernels(jot_Ctx *ctx, CcState *cc, Bytes text, const KernelSym *sym, int n)
{
    char unit[CACHE_NAME];
    Text key;
    int i;

    if (!cc_kernel_key(ctx, cc, &key))
        return;
    jot_cache_name(cc_key(cc), text, unit);
    for (i = 0; i < n; i++)
        if (sym[i].text)
            jot_cache_keep(&cc->cache, ctx, cc_bytes(key.s, key.n),
                           cc_bytes(sym[i].text, strlen(sym[i].text)),
                           cc_bytes(unit, strlen(unit)));
    jot_text_free(&key);
}

static bool
cc_load_memory(jot_Ctx *ctx, const CcState *cc, Bytes object, KernelSym *sym, int n, void **module)
{
    char path[600];
    int fd = jot_library_memory(object, path, sizeof path);
    bool ok = fd >= 0 && cc_load(ctx, cc, path, "memory", path, sym, n, module);

    if (fd >= 0)
        close(fd);
    return ok;
}

/* Where no file for temporaries may be run (a file system mounted noexec), one in memory may. */
static bool
cc_load_again(jot_Ctx *ctx, const CcState *cc, const char *path, KernelSym *sym, int n,
              void **module)
{
    Bytes object;
    bool ok;

    if (!jot_host_read(ctx, path, SIZE_MAX, &object))
        return false;
    ok = cc_load_memory(ctx, cc, object, sym, n, module);
    jot_bytes_free(ctx, &object);
    return ok;
}

/* What the compiler wrote, loaded. One that was stopped may leave the beginning of an object and
 * say that all went well. */
static bool
cc_load_new(jot_Ctx *ctx, const CcState *cc, const char *path, const char *what, const char **argv,
            KernelSym *sym, int n, void **module)
{
    Text command = {0};
    jot_Status before = ctx->status;
    const char *from;
    bool ok;

    command.mem = &ctx->mem;
    jot_cc_command_text(argv, &command);
    from = command.n < command.cap ? command.s : cc->cc;
    if (!jot_library_whole(path))
        ok = jot_fail(ctx, JOT_EDEVICE, "%s: the C compiler left a part of an object and said that "
                      "all went well\ncommand: %s", what, from);
    else if (!(ok = cc_load(ctx, cc, path, what, from, sym, n, module))
             && (ok = cc_load_again(ctx, cc, path, sym, n, module)) && !before) {
        ctx->status = JOT_OK;
        ctx->message[0] = 0;
    }
    jot_text_free(&command);
    return ok;
}

/* Compile in one work directory; what is compiled with -O1 is not kept for others. No room: errno
 * says which. */
static CcResult
cc_compile_in(jot_Ctx *ctx, CcState *cc, const WorkDir *work, const char *what, Bytes text,
              int kind, KernelSym *sym, int n, void **module)
{
    const char *argv[CC_ARGUMENTS] = {0};
    char from[600], to[600];
    Bytes object;
    CcResult result;

    jot_work_path(work, WORK_SOURCE, from, sizeof from);
    jot_work_path(work, WORK_OBJECT, to, sizeof to);
    if (!jot_host_write(from, text.p, text.n))
        return CC_NO_ROOM;
    jot_cc_command(cc, kind, argv, from, to);
    result = cc_run(ctx, cc, work, what, text, kind, argv);
    if (result != CC_DONE)
        return result;
    if (!cc_load_new(ctx, cc, to, what, argv, sym, n, module))
        return kind & CC_LIBRARIES ? CC_FAILED : CC_AGAIN;
    if (!(kind & CC_LOW) && cc->cache.fd >= 0 && jot_host_read(ctx, to, SIZE_MAX, &object)) {
        jot_cache_keep(&cc->cache, ctx, cc_key(cc), text, object);
        cc_keep_kernels(ctx, cc, text, sym, n);
        jot_bytes_free(ctx, &object);
    }
    return result;
}

static CcResult
cc_compile_way(jot_Ctx *ctx, CcState *cc, const char *what, Bytes text, int kind, KernelSym *sym,
               int n, void **module)
{
    WorkDir work = {0};
    CcResult result = CC_NO_ROOM;
    int why = 0;

    while (result == CC_NO_ROOM && jot_cc_work(ctx, cc, &work)) {
        result = cc_compile_in(ctx, cc, &work, what, text, kind, sym, n, module);
        why = errno;
        jot_work_close(&work);
    }
    if (result == CC_NO_ROOM)
        jot_fail(ctx, JOT_EIO, "%s: no room for temporary files of the C compiler in TMPDIR, /tmp, "
                 "/var/tmp or the cache directory: %s%s", what, strerror(why ? why : errno),
                 why == EFBIG ? " (there is a limit on the size of files, ulimit -f)" : "");
    return result;
}

/* Without libraries, where the text allows it; what then fails may do with them. */
static CcResult
cc_compile_linked(jot_Ctx *ctx, CcState *cc, const char *what, Bytes text, int low, KernelSym *sym,
                  int n, void **module)
{
    int kind = jot_cc_kind(text) | (cc->libraries ? CC_LIBRARIES : 0) | low;
    Attempt before = jot_attempt(ctx);
    CcResult result = cc_compile_way(ctx, cc, what, text, kind, sym, n, module);

    if (result != CC_AGAIN)
        return result;
    jot_give_up(ctx, before);
    result = cc_compile_way(ctx, cc, what, text, kind | CC_LIBRARIES, sym, n, module);
    if (result == CC_DONE)
        jot_cc_libraries(ctx, cc);
    return result;
}

/* A compiler that does not come to an end with a text, as some do not with loops that they unroll
 * and join again, may with -O1: of several jobs' text the one that it is about. What it did not
 * manage is not tried again in this context. */
static bool
cc_compile_new(jot_Ctx *ctx, CcState *cc, const char *what, Bytes text, KernelSym *sym, int n,
               void **module)
{
    uint64_t hash = jot_hash(0, text.p, text.n);
    int ways = hung_ways(cc->hung, hash), most = cc->jobs > 1 ? 1 : 2;
    CcResult result = CC_ENDLESS;

    for (; ways < most && result == CC_ENDLESS; ways++) {
        result = cc_compile_linked(ctx, cc, what, text, ways ? CC_LOW : 0, sym, n, module);
        if (result != CC_ENDLESS)
            break;
        hung_note(cc->hung, hash, ways + 1);
        if (ways + 1 < most)
            jot_host_log(ctx, "jot: %s: the C compiler did not come to an end in %g s: "
                         "-O1 instead\n", what, cc->seconds);
    }
    if (result == CC_ENDLESS)
        jot_fail(ctx, JOT_EDEVICE, "%s: the C compiler did not come to an end in %g s (the limit "
                 "is JOT_CC_SECONDS), nor with -O1; it is not tried again", what, cc->seconds);
    return result == CC_DONE;
}

/* Load a copy of verified bytes. False: compile instead. */
static bool
cc_load_cached(jot_Ctx *ctx, CcState *cc, Bytes object, KernelSym *sym, int n, void **module)
{
    WorkDir work = {0};
    char path[600], old[sizeof ctx->message];
    jot_Status status = ctx->status;
    bool ok;

    memcpy(old, ctx->message, sizeof old);
    ok = cc_load_memory(ctx, cc, object, sym, n, module);
    while (!ok && jot_cc_work(ctx, cc, &work)) {
        jot_work_path(&work, WORK_OBJECT, path, sizeof path);
        ok = jot_host_write(path, object.p, object.n)
          && cc_load(ctx, cc, path, "cache", path, sym, n, module);
        jot_work_close(&work);
    }
    ctx->status = status; /* compiling anew answers, so this was no failure of the context's */
    memcpy(ctx->message, old, sizeof old);
    return ok;
}

static bool
cc_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
           KernelSym *sym, int n, void **module)
{
    CcState *cc = backend->state;
    Bytes source = cc_bytes(text, nbytes), entry, object;
    char why[CC_WHY];
    bool ok = false;

    *module = NULL;
    if (!cc->key.n && !jot_cc_find(ctx, cc, true, why, sizeof why))
        return jot_fail(ctx, JOT_EDEVICE, "%s: %s", what, why);
    if (jot_cache_find(&cc->cache, ctx, cc_key(cc), source, &entry, &object)) {
        ok = cc_load_cached(ctx, cc, object, sym, n, module);
        jot_bytes_free(ctx, &entry);
    }
    if (ok) {
        ctx->stats.cache_hits += (uint64_t)n;
    } else {
        double start = jot_host_seconds();

        ok = cc_compile_new(ctx, cc, what, source, sym, n, module);
        ctx->stats.compile_seconds += jot_host_seconds() - start;
        ctx->stats.kernels_compiled += (uint64_t)n;
    }
    return ok;
}

/* The unit that holds a kernel, loaded, with its text. */
static bool
cc_recall_unit(jot_Ctx *ctx, CcState *cc, KernelSym *sym, void **module, Text *unit)
{
    Bytes named, entry = {NULL, 0}, name, text = {NULL, 0}, object;
    Text key;
    bool ok = false;

    if (!cc_kernel_key(ctx, cc, &key))
        return false;
    if (jot_cache_find(&cc->cache, ctx, cc_bytes(key.s, key.n),
                       cc_bytes(sym->text, strlen(sym->text)), &named, &name)
        && jot_cache_unit(&cc->cache, ctx, cc_key(cc), name.p, &entry, &text, &object))
        ok = strstr(text.p, sym->text) && cc_load_cached(ctx, cc, object, sym, 1, module);
    if (ok) {
        unit->mem = &ctx->mem;
        unit->s = text.p;
        unit->n = text.n;
        unit->cap = text.n + 1;
    } else {
        jot_bytes_free(ctx, &text);
    }
    jot_bytes_free(ctx, &entry);
    jot_bytes_free(ctx, &named);
    jot_text_free(&key);
    return ok;
}

static bool
cc_recall(Backend *backend, jot_Ctx *ctx, KernelSym *sym, void **module, Text *unit)
{
    CcState *cc = backend->state;
    char why[CC_WHY];
    bool ok;

    if (cc->cache.fd < 0 || (!cc->key.n && !jot_cc_identify(ctx, cc, false, why, sizeof why)))
        return false;
    if (*module)
        ok = strstr(unit->s, sym->text) && jot_library_find(*module, sym->name, &sym->fn);
    else
        ok = cc_recall_unit(ctx, cc, sym, module, unit);
    ctx->stats.cache_hits += ok;
    return ok;
}

const Backend jot_backend_cc = {
    .name = "cc", .compilers = "cc", .dialect = "c", .rank = 30, .open = cc_open, .close = cc_close,
    .compile = cc_compile, .unload = cc_unload, .recall = cc_recall, .kept = jot_cc_kept,
    .keep = jot_cc_keep /* core.c attaches a pool */
};

#endif
