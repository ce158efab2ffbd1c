/* backends/cpu/program.c - the C compiler as a program: its command, what an object of it depends
 * on, and which of those on PATH it is.
 *
 *     config.cc, JOT_CC, else cc, gcc, clang -> found -> asked --version -> key of the cache
 *
 * The version shows that it runs at all; the cache remembers the answer.
 *
 * Read before: backends/cpu/cc.h, cache.c. After: backends/cpu/cc.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cpu/cc.h"
#include "ccode/emit.h"
#ifndef JOT_NO_HOST
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- flags -------------------------------------------------------------------------------- */

/* Text without vectors is strict C99. Vectors are the emitter's (ccode/emit/loop.c), none are the
 * compiler's: gcc 12 made wrong ones of right text five times, of guarded, interleaved loads last.
 * Without them -O3 has nothing over -O2. The user's lines (ccode/emit/user.c) may need any library;
 * ours call memcpy and memset, which the program has, and what the compiler calls by itself. */
JOT_FN int
jot_cc_kind(Bytes text)
{
    return (strstr(text.p, "vector_size(") ? CC_VECTORS : 0)
         | (strstr(text.p, "#line ") ? CC_LIBRARIES : 0);
}

/* No -fwrapv: generated integers wrap through unsigned types, and indices do not wrap. No -w:
 * warnings are read by nobody, unless there is an error too. */
static const char *const cc_flags[] = {
    "-fPIC", "-shared",
    "-fno-tree-ter",        /* gcc 12.2 reads what a condition guards from the next row, where the
                               row's address was put off until after the step */
    "-ffp-contract=off",    /* a*b+c is rounded twice, as written: the interpreter's result, on
                               machines with fma too. Where fma is wanted the text says so */
    "-fno-math-errno",      /* a square root is one instruction: nobody reads errno */
    "-fno-trapping-math",   /* nor the exception flags: both sides of a select may be computed */
    "-fno-tree-vectorize",  /* of loops .. */
    "-fno-tree-slp-vectorize", /* .. and of neighbours: gcc 12 loses the rounding of
                               (double)(float)x to it when two of them are converted */
    "-fopenmp-simd",        /* but for loops of the user's that ask for them (core.h, jot_code) */
    "-Djot_simd=_Pragma(\"omp simd\")",
    "--param", "max-jump-thread-duplication-stmts=0", /* a clamp stays a minimum: else gcc computes
                               what follows for the clamped and for the others, and chooses */
    "-fno-strict-aliasing", /* buffers share memory under several types, in user code too */
#if defined __x86_64__ || defined __i386__
    "-march=native",        /* this machine's vectors; with contraction off, no other results */
    "-mprefer-vector-width=512", /* vectors of 64 bytes are not split, nor copied in halves */
#elif defined __aarch64__ || defined __arm__ || defined __powerpc64__
    "-mcpu=native",
#elif defined __s390__
    "-fexcess-precision=fast", /* floats are computed as floats, in strict C too */
#endif
#ifdef __linux__
    "-Wl,-Bsymbolic",       /* a program's function with a kernel's name stays out of the kernel */
#endif
    "-Werror=implicit-function-declaration", /* named at its line, not when the object is loaded */
    NULL
};

/* gcc 12 has sums and what they were before a step in one register, copies them, and then has one
 * of eight in memory: gradients of 4 x 4 taps 78 -> 40 ms. */
static const char cc_apart[] = "-fno-tree-coalesce-vars";

/* Start files, libraries and a plugin that would look into both take a third of what a small kernel
 * takes in all. */
static const char *const cc_links[2][3] = {
    { "-nostdlib", "-fno-use-linker-plugin", "-lgcc" }, { "-lm" }
};

JOT_FN void
jot_cc_command(const CcState *cc, int kind, const char **argv, const char *from, const char *to)
{
    int n = 0, i;

    JOT_ASSERT(sizeof cc_flags / sizeof *cc_flags + 10 <= CC_ARGUMENTS,
               "there is room for all flags");
    argv[n++] = cc->cc;
    argv[n++] = kind & CC_VECTORS ? "-std=gnu99" : "-std=c99";
    argv[n++] = kind & CC_LOW ? "-O1" : "-O2";
    for (i = 0; cc_flags[i]; i++)
        argv[n++] = cc->march && !strncmp(cc_flags[i], "-march=", 7) ? cc->march : cc_flags[i];
    if (cc->gcc)
        argv[n++] = cc_apart;
    argv[n++] = "-o";
    argv[n++] = to;
    argv[n++] = from;
    for (i = 0; i < 3; i++)
        argv[n++] = cc_links[kind & CC_LIBRARIES ? 1 : 0][i];
    argv[n] = NULL;
}

JOT_FN void
jot_cc_command_text(const char **argv, Text *text)
{
    int i;

    for (i = 0; argv[i]; i++) {
        bool quote = strpbrk(argv[i], " '\"$&|;<>()*?\\\t") != NULL;

        jot_text_f(text, "%s%s%s%s", i ? " " : "", quote ? "'" : "", argv[i], quote ? "'" : "");
    }
}

/* ---- what an object depends on ------------------------------------------------------------ */

static size_t
cc_line(Bytes s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != '\n')
        n++;
    return n;
}

JOT_FN bool
jot_cc_no_room(int why)
{
    return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

JOT_FN bool
jot_cc_work(jot_Ctx *ctx, CcState *cc, WorkDir *work)
{
    if (!cc->swept)
        jot_work_sweep(ctx, cc->cache.dir);
    cc->swept = true;
    return jot_work_open(ctx, work, cc->cache.dir);
}

/* Why there is no answer, one cause of several. */
static void
cc_no_answer(const CcState *cc, ChildEnd end, int status, char *why, size_t why_nbytes)
{
    int n = snprintf(why, why_nbytes, "the C compiler does not run: %.120s --version ", cc->cc);

    why += n;
    why_nbytes -= (size_t)n;
    if (end == CHILD_NONE)
        snprintf(why, why_nbytes, "does not start: %s", strerror(errno));
    else if (end == CHILD_LATE)
        snprintf(why, why_nbytes, "did not end in %d s", CC_ASK_SECONDS);
    else if (end == CHILD_LOUD)
        snprintf(why, why_nbytes, "does not stop printing");
    else if (WIFSIGNALED(status))
        snprintf(why, why_nbytes, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(why, why_nbytes, "ended with status %d", WEXITSTATUS(status));
}

/* What `cc --version` says. */
static bool
cc_ask_version(jot_Ctx *ctx, CcState *cc, Bytes *answer, char *why, size_t why_nbytes)
{
    char *argv[3];
    char messages[600], flag[] = "--version";
    WorkDir work = {0};
    bool ok = false, full = true;
    int status;

    argv[0] = cc->cc;
    argv[1] = flag;
    argv[2] = NULL;
    while (full && jot_cc_work(ctx, cc, &work)) {
        ChildEnd end = jot_host_spawn(argv, &work, CC_ASK_SECONDS, cc->child, &status);

        full = end == CHILD_NONE && jot_cc_no_room(errno);
        ok = end == CHILD_ENDED && !status;
        if (!ok && !full)
            cc_no_answer(cc, end, status, why, why_nbytes);
        jot_work_path(&work, WORK_MESSAGES, messages, sizeof messages);
        if (ok && !(ok = jot_host_read(ctx, messages, 4096, answer)))
            snprintf(why, why_nbytes, "what %.120s --version says is not read: %s", cc->cc,
                     strerror(errno));
        jot_work_close(&work);
    }
    if (full)
        snprintf(why, why_nbytes, "no folder for the C compiler's temporary files can be made in "
                 "TMPDIR, /tmp, /var/tmp or the cache directory: %s", strerror(errno));
    return ok;
}

/* A script may run another compiler tomorrow. */
static bool
cc_is_script(jot_Ctx *ctx, const CcState *cc)
{
    Bytes start = {0};
    bool script = !jot_host_read(ctx, cc->cc, 2, &start) || !strncmp(start.p, "#!", 2);

    jot_bytes_free(ctx, &start);
    return script;
}

/* The version goes into the key. A program that has not changed since it was asked is not asked
 * again: starting it takes longer than all the rest of opening a context. */
static bool
cc_version(jot_Ctx *ctx, CcState *cc, const struct stat *st, bool ask, char *why,
           size_t why_nbytes)
{
    static char question[] = "--version";
    Bytes key, program, entry, answer = {0};
    bool known, ok = true, script = cc_is_script(ctx, cc);
    Text text = {0};

    text.mem = &ctx->mem;
    jot_text_f(&text, "%s inode %lld size %lld mtime %lld ctime %lld", cc->cc,
               (long long)st->st_ino, (long long)st->st_size, (long long)st->st_mtime,
               (long long)st->st_ctime);
    key.p = question;
    key.n = sizeof question - 1;
    program.p = text.s;
    program.n = text.n;
    script |= text.n >= text.cap;
    known = !script && jot_cache_find(&cc->cache, ctx, key, program, &entry, &answer);
    if (!known)
        ok = (ask || script) && cc_ask_version(ctx, cc, &answer, why, why_nbytes);
    if (ok && !known && !script)
        jot_cache_keep(&cc->cache, ctx, key, program, answer);
    if (ok) { /* "cc (Debian 12.2.0-14) 12.2.0", "Debian clang version 14.0.6" */
        const char *word = memchr(answer.p, ' ', cc_line(answer));
        cc->gcc = word && word + 1 < answer.p + answer.n && word[1] == '(';
        jot_text_f(&cc->key, "version %.*s\n", (int)cc_line(answer), answer.p);
    }
    jot_bytes_free(ctx, known ? &entry : &answer);
    jot_text_free(&text);
    return ok;
}

/* -march=native means another machine in another's home directory: its processor is in the key. The
 * first processor's lines without those that change from boot to boot or second to second. */
static void
cc_machine(jot_Ctx *ctx, CcState *cc)
{
    static const char *const lines[] = {
        "vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ", "isa", "cpu\t"
    };
    const char *p, *end;
    Bytes info;
    size_t i;

    if (!jot_host_read(ctx, "/proc/cpuinfo", 8192, &info))
        return;
    for (p = info.p; *p && *p != '\n'; p = *end ? end + 1 : end) {
        end = p + strcspn(p, "\n");
        for (i = 0; i < sizeof lines / sizeof *lines; i++)
            if (!strncmp(p, lines[i], strlen(lines[i])))
                jot_text_f(&cc->key, "%.*s\n", (int)(end - p), p);
    }
    jot_bytes_free(ctx, &info);
}

/* Whether this compiler makes loadable objects without libraries is seen with the first text, and
 * remembered where it does not. */
static Bytes
cc_without_libraries(void)
{
    static char question[] = "without libraries";
    Bytes text;

    text.p = question;
    text.n = sizeof question - 1;
    return text;
}

static bool
cc_needs_libraries(jot_Ctx *ctx, CcState *cc)
{
    Bytes key, entry, answer;
    bool known;

    key.p = cc->key.s;
    key.n = cc->key.n;
    known = jot_cache_find(&cc->cache, ctx, key, cc_without_libraries(), &entry, &answer);
    jot_bytes_free(ctx, &entry);
    return known;
}

JOT_FN void
jot_cc_libraries(jot_Ctx *ctx, CcState *cc)
{
    static char no[] = "no";
    Bytes key, answer;

    key.p = cc->key.s;
    key.n = cc->key.n;
    answer.p = no;
    answer.n = sizeof no - 1;
    cc->libraries = true;
    jot_cache_keep(&cc->cache, ctx, key, cc_without_libraries(), answer);
}

JOT_FN bool
jot_cc_identify(jot_Ctx *ctx, CcState *cc, bool ask, char *why, size_t why_nbytes)
{
    const char *argv[CC_ARGUMENTS];
    struct stat st;
    int kind;

    cc->key.n = 0;
    memset(&st, 0, sizeof st);
    if (stat(cc->cc, &st)) {
        snprintf(why, why_nbytes, "the C compiler does not run: %.120s: %s", cc->cc,
                 strerror(errno));
        return false;
    }
    if (!cc_version(ctx, cc, &st, ask, why, why_nbytes)) {
        cc->key.n = 0;
        return false;
    }
    for (kind = 0; kind < CC_KINDS; kind++) { /* the text says which it is compiled with */
        jot_cc_command(cc, kind, argv, "in", "out");
        jot_cc_command_text(argv, &cc->key);
        jot_text_f(&cc->key, "\n");
    }
    jot_text_f(&cc->key, "behind %llu\n", (unsigned long long)jot_emit_prelude_hash());
    jot_text_f(&cc->key, "size %lld mtime %lld\n", (long long)st.st_size, (long long)st.st_mtime);
    cc_machine(ctx, cc);
    cc->libraries = cc_needs_libraries(ctx, cc);
    return true;
}

/* ---- which one ---------------------------------------------------------------------------- */

static const char cc_none[] = "no C compiler";

/* Try one name. Without `ask` it is enough that there is such a program. */
static bool
cc_try(jot_Ctx *ctx, CcState *cc, const char *name, bool ask, char *why, size_t why_nbytes)
{
    jot_mem_free(&ctx->mem, cc->cc, cc->cc_nbytes);
    cc->cc = jot_host_which(ctx, name, &cc->cc_nbytes);
    if (!cc->cc) {
        snprintf(why, why_nbytes, "%s: there is no program \"%.100s\"%s", cc_none, name,
                 strchr(name, ' ') ? "; config.cc and JOT_CC take a name or a path, without options"
                                   : "");
        return false;
    }
    if (jot_cc_identify(ctx, cc, ask, why, why_nbytes) || !ask)
        return true;
    jot_mem_free(&ctx->mem, cc->cc, cc->cc_nbytes);
    cc->cc = NULL;
    return false;
}

/* The compiler that was asked for by name; NULL: any. */
JOT_FN const char *
jot_cc_wanted(const jot_Ctx *ctx)
{
    const char *name = ctx->config.cc ? ctx->config.cc : jot_host_env(ctx, "JOT_CC");

    return name && *name ? name : NULL;
}

JOT_FN bool
jot_cc_find(jot_Ctx *ctx, CcState *cc, bool ask, char *why, size_t why_nbytes)
{
    static const char *const names[] = { "cc", "gcc", "clang" };
    const char *name = jot_cc_wanted(ctx);
    char first[CC_WHY] = "";
    size_t i;

    if (name)
        return cc_try(ctx, cc, name, true, why, why_nbytes);
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        if (cc_try(ctx, cc, names[i], ask, why, why_nbytes))
            return true;
        if (strncmp(why, cc_none, strlen(cc_none)) && !*first)
            snprintf(first, sizeof first, "%s", why);
    }
    snprintf(why, why_nbytes, "%s",
             *first ? first : "no C compiler: cc, gcc and clang are not on PATH");
    return false;
}

#endif
