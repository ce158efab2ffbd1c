/* tests/test_backends.c - the host's hooks, tcc and cc as compilers of small texts: errors, refused
 * memory, threads, missing and odd compilers.
 *
 * Guards: backends/cpu/cc.c, backends/cpu/program.c, backends/cpu/tcc.c, backends/host/host.c,
 * backends/host/process.c, backends/host/work.c, core.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/backend_world.h"
#include <pthread.h>
#include <signal.h>

/* Line 3 of user.c is wrong. */
static const char bad_text[] = HEAD
    "#line 1 \"user.c\"\n"
    "void scale" SIGNATURE
    "{ int good = 0; missing_name = good; }\n";

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

/* A path with blanks and quotes; a compiler that dies; one that does not answer; TMPDIR that is not
 * there. */
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
    snprintf(path, sizeof path, "%s/mute", scratch_dir);
    write_script(path, "trap '' TERM INT HUP\nsleep 1000 & sleep 1000");
    setenv("JOT_CC", path, 1);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) != JOT_OK
              && strstr(w.why, "mute --version did not end in 20 s"),
          "a compiler that hangs: %s", w.why);
    world_close(&w);
    CHECK(survivors() == 0, "%d processes of a compiler that hangs are left", survivors_now());
    unsetenv("JOT_CC");
}

/* A compiler that does not come to an end with a text is started once more, with -O1, and not again
 * in this context: not even when it would by now. */
static void
test_endless(void)
{
    static const char version[] = "[ \"$1\" = --version ] && exec cc --version\n"
                                  "for a; do [ \"$p\" = -o ] && out=$a; p=$a; done\n";
    char path[400], body[1500];
    World w;

    snprintf(path, sizeof path, "%s/endless", scratch_dir);
    setenv("JOT_CC", path, 1);
    snprintf(body, sizeof body, "%scc \"$@\" && cp \"$out\" '%s/kept'", version, scratch_dir);
    write_script(path, body);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK && works(&w, good_text), "%s%s", w.why,
          w.ctx->message);
    world_close(&w);
    setenv("JOT_CC_SECONDS", "2", 1);
    snprintf(body, sizeof body, "%scase \"$*\" in *-O2*) exec sleep 1000;; esac\n"
             "exec cp '%s/kept' \"$out\"", version, scratch_dir);
    write_script(path, body);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s", w.why);
    CHECK(works(&w, good_text) && strstr(w.log, "2 s: -O1 instead"), "%s%s", w.ctx->message, w.log);
    w.log_nbytes = 0;
    w.log[0] = 0;
    CHECK(works(&w, good_text) && !w.log_nbytes, "%s%s", w.ctx->message, w.log);
    world_close(&w);
    CHECK(survivors() == 0, "%d processes are left", survivors_now());
    setenv("JOT_CC_SECONDS", "0.1", 1);
    snprintf(body, sizeof body, "%sexec sleep 1000", version);
    write_script(path, body);
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s", w.why);
    CHECK(!works(&w, good_text) && w.ctx->status == JOT_EDEVICE
              && strstr(w.ctx->message, "nor with -O1"), "%s", w.ctx->message);
    snprintf(body, sizeof body, "%sexec cp '%s/kept' \"$out\"", version, scratch_dir);
    write_script(path, body);
    w.ctx->status = JOT_OK;
    w.ctx->message[0] = 0;
    CHECK(!works(&w, good_text) && strstr(w.ctx->message, "not tried again"), "%s",
          w.ctx->message);
    world_close(&w);
    unsetenv("JOT_CC_SECONDS");
    unsetenv("JOT_CC");
}

/* A limit that is no number above 0 is refused, not taken for none. */
static void
test_limit(void)
{
    static const char *const limits[] = {"x", "-1", "0", "nan", "10 s"};

    for (int i = 0; i < (int)(sizeof limits / sizeof *limits); i++) {
        World w;

        setenv("JOT_CC_SECONDS", limits[i], 1);
        CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_EUSE && strstr(w.why, limits[i])
                  && strstr(w.why, "JOT_CC_SECONDS"), "\"%s\": %s", limits[i], w.why);
        world_close(&w);
    }
    unsetenv("JOT_CC_SECONDS");
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

/* How often a compiler was started that way. */
static int
started(const char *way)
{
    char path[300];
    struct stat st = {0};

    snprintf(path, sizeof path, "%s/%s", scratch_dir, way);
    return stat(path, &st) ? 0 : (int)st.st_size;
}

/* Compiles our own texts without libraries. One that refuses, or whose objects then lack something,
 * is given libraries, and is not asked again: not in a later context, either. User code has them,
 * whatever the compiler. What no way compiles says what it says with them. */
static void
test_libraries(const char *without, const char *name, bool needs)
{
    static const char user[] = "#line 1 \"user\"\n";
    char dir[300], path[400], text[3000];
    World w;
    int k;

    snprintf(dir, sizeof dir, "%s/libraries-%s", scratch_dir, name);
    snprintf(path, sizeof path, "%s/%s", scratch_dir, name);
    snprintf(text, sizeof text, "[ \"$1\" = --version ] && exec cc --version\ncd '%s'\n"
             "case \"$*\" in *-nostdlib*) printf x >>%s-without; %s;; esac\n"
             "printf x >>%s-with; exec cc \"$@\"", scratch_dir, name, without, name);
    write_script(path, text);
    setenv("JOT_CC", path, 1);
    for (k = 0; k < 2; k++) {
        CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
        for (int i = 0; i < 2; i++) {
            snprintf(text, sizeof text, "/* %d %d */\n%s", k, i, good_text);
            CHECK(works(&w, text) && !w.ctx->status && !w.log_nbytes, "%s: %s%s", name,
                  w.ctx->message, w.log);
        }
        world_close(&w);
    }
    snprintf(text, sizeof text, "%s-without", name);
    CHECK(started(text) == (needs ? 1 : 4), "%s: %d times without", name, started(text));
    snprintf(text, sizeof text, "%s-with", name);
    CHECK(started(text) == (needs ? 4 : 0), "%s: %d times with", name, started(text));
    CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
    snprintf(text, sizeof text, "%s%s", good_text, user);
    CHECK(works(&w, text), "%s: %s", name, w.ctx->message);
    snprintf(text, sizeof text, "%s-with", name);
    CHECK(started(text) == (needs ? 5 : 1), "%s: user code, %d times with", name, started(text));
    CHECK(!works(&w, HEAD "void scale" SIGNATURE "{ missing_name = 0; }\n")
              && strstr(w.ctx->message, "missing_name") && strstr(w.ctx->message, " -lm")
              && !strstr(w.ctx->message, "-nostdlib"), "%s: %s", name, w.ctx->message);
    world_close(&w);
    unsetenv("JOT_CC");
}

/* After each test of a compiler. */
#define ALONE() CHECK(survivors() == 0, "line %d: %d processes are left", __LINE__, survivors_now())

static void
test_cc(void)
{
    char dir[300], tmp[300];

    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    mkdir(tmp, 0700);
    snprintf(dir, sizeof dir, "%s/cache", scratch_dir);
    setenv("TMPDIR", tmp, 1);
    test_compile(&jot_backend_cc);
    ALONE();
    test_refused(&jot_backend_cc);
    ALONE();
    test_memory(&jot_backend_cc, dir);
    ALONE();
    test_threads(&jot_backend_cc);
    ALONE();
    CHECK(temporaries() == 0, "%d temporary directories are left", temporaries());
    unsetenv("TMPDIR");
    test_odd_compilers();
    test_endless();
    ALONE();
    test_limit();
    ALONE();
    test_version();
    ALONE();
    test_libraries("exec cc \"$@\"", "takes", false);
    test_libraries("echo no such option; exit 1", "refuses", true);
    test_libraries("exec cc \"$@\" -Dmemset=no_such_function", "lacks", true);
    ALONE();
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

/* Where nothing compiles, who was asked and why not, then what that means. */
static void
test_none(void)
{
    char *path = strdup(getenv("PATH"));
    World w = {0};
    jot_Config config = {0};
    jot_Ctx *c;

    jot_host_hooks(&config.hooks);
    config.hooks.log = world_log;
    config.hooks.ud = &w;
    config.dump = "g";
    setenv("PATH", "", 1);
    setenv("JOT_LIBTCC", "/no/such/libtcc.so", 1);
    c = jot_open(&config);
    CHECK(!strcmp(jot_backend(c), "interp"), "%s: %s", jot_backend(c), w.log);
    for (int i = 0; jot_backends[i]; i++) {
        char line[80];

        snprintf(line, sizeof line, "jot: backend %s skipped: ", jot_backends[i]->name);
        CHECK((strstr(w.log, line) != NULL) == (jot_backends[i]->rank > jot_backend_interp.rank),
              "%s%s", line, w.log);
    }
    CHECK(strstr(w.log, "no compiler, so graphs are interpreted"), "%s", w.log);
    jot_close(c);
    setenv("PATH", path, 1);
    free(path);
}

int
main(void)
{
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/jot-test-XXXXXX");
    if (!mkdtemp(scratch_dir))
        return 1;
    unsetenv("JOT_CC");
    unsetenv("JOT_CACHE_DIR");
    survivors_begin();
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
    test_none();
    remove_tree(scratch_dir);
    return DONE();
}
