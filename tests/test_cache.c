/* tests/test_cache.c - the cache of compiled kernels: damaged entries, races, full, read-only and
 * foreign directories, full disks, limits on the size of files, compilers that leave a part of an
 * object, and what is tidied away.
 *
 * Guards: backends/cpu/cache.c, backends/host/fork.c, backends/host/work.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/backend_world.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif
#include <sys/wait.h>
#include <time.h>

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
    Bytes entry, found = {NULL, 0};
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
            CHECK(!jot_cache_find(&cache, w.ctx, key, text, &entry, &found), "byte %d, cut %d: found",
                  (int)at, cut);
            CHECK(strstr(w.log, "damaged"), "byte %d, cut %d: %s", (int)at, cut, w.log);
            jot_cache_keep(&cache, w.ctx, key, text, object);
        }
    CHECK(jot_cache_find(&cache, w.ctx, key, text, &entry, &found) && found.n == object.n
          && !memcmp(found.p, object.p, found.n), "not as it was kept");
    jot_bytes_free(w.ctx, &entry);
    jot_cache_close(&cache);
    world_close(&w);
}

static int
count_text(const char *s, const char *what)
{
    int n = 0;

    while ((s = strstr(s, what)) != NULL)
        s++, n++;
    return n;
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
    ok = cached_with(&w, dir, good_text) == 0 && count_text(w.log, "not kept") == 1
      && strstr(w.log, strerror(EACCES));
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

/* Nobody says where: that is told, unless it was said that there shall be none. */
static void
test_nowhere(void)
{
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "");
    World w;

    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "not/whole", 1);
    CHECK(cached_with(&w, NULL, good_text) == 0 && strstr(w.log, "nor HOME"), "%s", w.log);
    unsetenv("HOME");
    CHECK(cached_with(&w, NULL, good_text) == 0 && count_text(w.log, "nor HOME") == 1, "%s", w.log);
    CHECK(cached_with(&w, "", good_text) == 0 && !w.log_nbytes, "%s", w.log);
    setenv("HOME", home, 1);
    free(home);
}

/* A limit on the size of files, whose signal would end this program: the text and the object fit,
 * an entry of both does not. */
static void
test_limit(void)
{
    static char text[40000];
    struct rlimit old, few;
    char dir[300], path[600];
    World w;
    size_t n;

    snprintf(dir, sizeof dir, "%s/limit", scratch_dir);
    n = (size_t)snprintf(text, sizeof text, "%s/*", good_text);
    memset(text + n, '.', sizeof text - n - 3);
    memcpy(text + sizeof text - 3, "*/", 3);
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
    CHECK(strstr(w.ctx->message, "no room") && strstr(w.ctx->message, strerror(EFBIG))
              && strstr(w.ctx->message, "ulimit -f"), "%s", w.ctx->message);
    world_close(&w);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(cached_with(&w, dir, text) == 0 && cached_with(&w, dir, text) == 1,
          "not kept afterwards");
}

/* What the log says may meet the limit, too. */
static void
test_limit_of_log(void)
{
    char path[300];
    int status = -1;
    pid_t child;

    snprintf(path, sizeof path, "%s/log", scratch_dir);
    fflush(stdout);
    child = fork();
    if (!child) {
        struct rlimit few = {4, 4};
        jot_Hooks h;

        jot_host_hooks(&h);
        if (!freopen(path, "w", stderr) || setrlimit(RLIMIT_FSIZE, &few))
            _exit(1);
        h.log(h.ud, "0123456789", 10);
        h.log(h.ud, "0123456789", 10);
        _exit(0);
    }
    waitpid(child, &status, 0);
    CHECK(status == 0, "status %x", (unsigned)status);
}

#ifdef __linux__
/* A file system of so many bytes over the place. */
static bool
small_disk(const char *place, const char *size)
{
    return !mount("none", place, "tmpfs", 0, size);
}

/* In a name space of its own, where every place for temporary files is a small disk: with room for
 * text and object and none for an entry, then one where nothing may run, then one without room for
 * the text. A bit for each that is not as
 * it should be; 255: no such disks here. */
static int
full_disks(const char *text)
{
    char dir[] = "/tmp/cache";
    World w;
    int bad = 0;

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return 255;
    unsetenv("TMPDIR");
    if (!small_disk("/tmp", "size=96k") || !small_disk("/var/tmp", "size=4k"))
        return 255;
    bad |= cached_with(&w, dir, text) != 0 || count_text(w.log, "not kept") != 1
        || !strstr(w.log, strerror(ENOSPC));
    if (bad)
        printf("%s\n", w.log);
    if (mount("none", "/tmp", "tmpfs", MS_NOEXEC, "size=1m"))
        return 255;
    if (cached_with(&w, dir, text) != 0 || cached_with(&w, dir, text) != 1 || w.log_nbytes) {
        printf("where nothing may run: %s\n", w.log); /* there is memory */
        bad |= 4;
    }
    if (!small_disk("/tmp", "size=8k"))
        return 255;
    if (world_open(&w, &jot_backend_cc, dir, 0) != JOT_OK || works(&w, text)
        || w.ctx->status != JOT_EIO || !strstr(w.ctx->message, "no room")
        || !strstr(w.ctx->message, strerror(ENOSPC))) {
        printf("%s\n", w.ctx->message);
        bad |= 2;
    }
    world_close(&w);
    fflush(stdout);
    return bad;
}
#endif

static void
test_full(void)
{
#ifdef __linux__
    static char text[40000];
    size_t n = (size_t)snprintf(text, sizeof text, "%s/*", good_text);
    int status = -1;
    pid_t child;

    memset(text + n, '.', sizeof text - n - 3);
    memcpy(text + sizeof text - 3, "*/", 3);
    fflush(stdout);
    child = fork();
    if (!child)
        _exit(full_disks(text));
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 255)
        SKIP("full disks: no file systems may be mounted");
    else
        CHECK(status == 0, "full disks: status %x", (unsigned)status);
#else
    SKIP("full disks: not tried on this system");
#endif
}

/* A compiler that was stopped, says that all went well, and leaves so many bytes: told, nothing of
 * it is kept, and the next one's object is. */
static void
test_part(void)
{
    static const char script[] = "[ \"$1\" = --version ] && exec cc --version\n"
        "cc \"$@\" || exit\n"
        "while [ \"$1\" != -o ]; do shift; done\n"
        "n=$(wc -c <\"$2\")\n"
        "head -c $((n * JOT_TEST_PART / 1000 + JOT_TEST_BYTES)) \"$2\" >\"$2.part\"\n"
        "mv \"$2.part\" \"$2\"\n";
    static const int part[][2] = { {0, 0}, {0, 3}, {0, 20}, {0, 64}, {0, 500}, {100, 0}, {250, 0},
                                   {500, 0}, {750, 0}, {950, 0}, {1000, -1} };
    char dir[300], path[600], number[20];
    size_t i;
    World w;

    snprintf(dir, sizeof dir, "%s/part", scratch_dir);
    snprintf(path, sizeof path, "%s/stopped", scratch_dir);
    write_script(path, script);
    setenv("JOT_CC", path, 1);
    for (i = 0; i < sizeof part / sizeof *part; i++) {
        snprintf(number, sizeof number, "%d", part[i][0]);
        setenv("JOT_TEST_PART", number, 1);
        snprintf(number, sizeof number, "%d", part[i][1]);
        setenv("JOT_TEST_BYTES", number, 1);
        CHECK(world_open(&w, &jot_backend_cc, dir, 0) == JOT_OK, "%s", w.why);
        CHECK(!works(&w, good_text) && (w.ctx->status == JOT_EDEVICE
                                        || w.ctx->status == JOT_ECOMPILE),
              "%d thousandths and %d bytes: %s", part[i][0], part[i][1], w.ctx->message);
        CHECK(strstr(w.ctx->message, "kernel k7") && strstr(w.ctx->message, "stopped"), "%s",
              w.ctx->message);
        world_close(&w);
        CHECK(only_file(dir, path) == 0, "kept: %s", path);
    }
    setenv("JOT_TEST_PART", "1000", 1);
    setenv("JOT_TEST_BYTES", "0", 1);
    CHECK(cached_with(&w, dir, good_text) == 0 && only_file(dir, path) == 1, "%s", w.log);
    unsetenv("JOT_CC");
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

/* What killed processes left, and too many entries; nothing of others', nothing that somebody works
 * in. */
static void
test_tidy(void)
{
    static const char *const work[] = {"jot-kernel-left", "jot-kernel-held", "jot-kernel-full"};
    char dir[300], path[600];
    int k, held;
    World w;

    snprintf(dir, sizeof dir, "%s/tidy", scratch_dir);
    mkdir(dir, 0700);
    for (k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%s", scratch_dir, work[k]);
        mkdir(path, 0700);
        aged_file(path, "kernel.c", 10, 2);
        if (k == 2)
            aged_file(path, "mine", 10, 2);
    }
    snprintf(path, sizeof path, "%s/%s", scratch_dir, work[1]);
    held = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(held >= 0 && !flock(held, LOCK_EX), "%s", path);
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
    close(held);
    unsetenv("TMPDIR");
}

int
main(void)
{
    char dir[300], tmp[300];

    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/jot-test-XXXXXX");
    if (!mkdtemp(scratch_dir))
        return 1;
    unsetenv("JOT_CC");
    unsetenv("JOT_CACHE_DIR");
    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    mkdir(tmp, 0700);
    snprintf(dir, sizeof dir, "%s/cache", scratch_dir);
    if (have(&jot_backend_cc)) {
        setenv("TMPDIR", tmp, 1);
        test_cache(dir);
        test_damage();
        test_every_byte();
        test_race();
        test_unusable();
        test_nowhere();
        test_readonly();
        test_limit();
        test_limit_of_log();
        test_full();
        test_part();
        CHECK(temporaries() == 0, "%d temporary directories are left", temporaries());
        unsetenv("TMPDIR");
        test_tidy();
    }
    remove_tree(scratch_dir);
    return DONE();
}
