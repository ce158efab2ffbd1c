/* tests/test_disk.c - kernels that other programs left on disk, whole or damaged, and programs that
 * begin together, may keep nothing, or find what another compiler made; what the environment says
 * and nobody knows. The network and its losses are those of tests/learning.h.
 *
 * Guards: backends/cpu/cpu.c, backends/cpu/program.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/learning.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A second program with a kernel more compiles that one. */
static void
test_kernels_on_disk(const char *cache)
{
    jot_Ctx *c = open_with("cpu", cache, 1);
    jot_Stats first, s;

    net_run(c, expect, 2, 0);
    first = jot_stats(c);
    CHECK(first.kernels_compiled > 3 && !first.cache_hits, "%d compiled",
          (int)first.kernels_compiled);
    jot_close(c);
    c = open_with("cpu", cache, 1);
    net_run(c, expect, 2, 0);
    s = jot_stats(c);
    CHECK(!s.kernels_compiled && s.cache_hits == first.kernels_compiled, "%d compiled, %d found",
          (int)s.kernels_compiled, (int)s.cache_hits);
    jot_close(c);
    c = open_with("cpu", cache, 0);
    net_run(c, expect_extra, 2, 1);
    s = jot_stats(c);
    CHECK(s.cache_hits + 2 >= first.kernels_compiled && s.kernels_compiled > 0
              && s.kernels_compiled + 2 < first.kernels_compiled,
          "%d of %d compiled, %d found", (int)s.kernels_compiled, (int)first.kernels_compiled,
          (int)s.cache_hits);
    jot_close(c);
}

/* Damage one byte of a file, or cut it. */
static void
damage(const char *path, long at, bool cut)
{
    FILE *f = fopen(path, "r+");
    int ch;

    if (cut && ftruncate(fileno(f), at))
        perror(path);
    if (!cut) {
        fseek(f, at, SEEK_SET);
        ch = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(ch ^ 0x40, f);
    }
    fclose(f);
}

static void
test_damage(const char *cache)
{
    DIR *d = opendir(cache);
    struct dirent *e;
    struct stat st;
    char path[800];
    jot_Ctx *c;
    int n = 0;

    while (d && (e = readdir(d)) != NULL) {
        const char *dot = strrchr(e->d_name, '.');

        snprintf(path, sizeof path, "%s/%s", cache, e->d_name);
        if (!dot || strcmp(dot, ".jot") || stat(path, &st))
            continue;
        damage(path, (long)(st.st_size * (n % 7 + 1) / 8), n % 3 == 0);
        n++;
    }
    if (d)
        closedir(d);
    CHECK(n > 4, "%d entries", n);
    c = open_with("cpu", cache, 0);
    net_run(c, expect, 3, 0);
    CHECK(strstr(logged, "damaged") && !jot_stats(c).cache_hits, "%d found in damaged files: %s",
          (int)jot_stats(c).cache_hits, logged);
    jot_close(c);
}

/* ---- other processes ---------------------------------------------------------------------- */

typedef struct { const char *cache; pid_t pid; } Learner;

/* A process that learns as long as kernels are compiled; its exit code: failures. */
static void
learner_start(Learner *l)
{
    jot_Ctx *c;

    fflush(stdout);
    l->pid = fork();
    if (l->pid)
        return;
    test_failed = 0;
    c = open_with("cpu", l->cache, 0);
    net_run(c, expect, STEPS, 0);
    jot_close(c);
    CHECK(!logged[0], "%s", logged);
    fflush(stdout);
    _exit(test_failed ? 1 : 0);
}

/* Programs that begin at the same moment with an empty cache: each computes what it should, and the
 * next one finds whole entries. (Not all: what another had compiled counts as found, so that one
 * may end before its last compiler.) */
static void
test_race(void)
{
    char cache[300];
    Learner l[3];
    jot_Stats s;
    jot_Ctx *c;
    int k;

    snprintf(cache, sizeof cache, "%s/race", scratch_dir);
    for (k = 0; k < 3; k++) {
        l[k].cache = cache;
        learner_start(&l[k]);
    }
    for (k = 0; k < 3; k++) {
        int status = -1;

        waitpid(l[k].pid, &status, 0);
        CHECK(status == 0, "process %d: status %x", k, (unsigned)status);
    }
    CHECK(!count_files(cache, "tmp-", NULL), "unfinished entries in %s", cache);
    c = open_with("cpu", cache, 0);
    net_run(c, expect, 5, 0);
    s = jot_stats(c);
    CHECK(s.cache_hits > 3 && !logged[0], "%d compiled, %d found: %s", (int)s.kernels_compiled,
          (int)s.cache_hits, logged);
    jot_close(c);
}

/* A relative folder stays where it was when the context opened, whoever opens it later. */
static void
test_relative(void)
{
    char path[300];
    int here = open(".", O_RDONLY | O_DIRECTORY);
    struct stat st;
    jot_Ctx *c;

    if (here < 0 || chdir(scratch_dir)) {
        SKIP("a relative folder: %s", scratch_dir);
        return;
    }
    c = open_with("cpu", "relative/cache", 0);
    CHECK(!mkdir("elsewhere", 0700) && !chdir("elsewhere"), "%s/elsewhere", scratch_dir);
    net_run(c, expect, STEPS, 0);
    CHECK(stat("relative", &st), "a second folder was made");
    jot_close(c);
    CHECK(!logged[0], "%s", logged);
    snprintf(path, sizeof path, "%s/relative/cache", scratch_dir);
    c = open_with("cpu", path, 0);
    net_run(c, expect, 3, 0);
    CHECK(jot_stats(c).cache_hits > 3 && !jot_stats(c).kernels_compiled, "%d found",
          (int)jot_stats(c).cache_hits);
    jot_close(c);
    CHECK(!fchdir(here), "back");
    close(here);
}

/* Nothing can be kept: a note, of whichever compiler ended first, and as many kernels change as
 * elsewhere. */
static void
test_unkept(void)
{
    char cache[300];
    int status = -1;
    pid_t child;

    snprintf(cache, sizeof cache, "/tmp/jot-unkept-XXXXXX");
    if (!mkdtemp(cache) || chmod(cache, 0500) || (geteuid() == 0 && chown(cache, 12345, 12345))) {
        SKIP("a folder that may only be read");
        return;
    }
    fflush(stdout);
    child = fork();
    if (!child) {
        jot_Ctx *c;

        if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
            _exit(50);
        test_failed = 0;
        setenv("TMPDIR", "/tmp", 1);
        c = open_with("cpu", cache, 0);
        net_run(c, expect, STEPS, 0);
        CHECK((!jot_stats(c).kernels_quick || jot_stats(c).swaps > 3) && !jot_error(c), "%s",
              jot_message(c));
        jot_close(c);
        CHECK(count_logged("not kept in") == 1 && count_logged("\n") == 1, "log: %s", logged);
        fflush(stdout);
        _exit(test_failed ? 1 : 0);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 50)
        SKIP("a folder that may only be read: no other user");
    else
        CHECK(status == 0, "status %x", (unsigned)status);
    chmod(cache, 0700);
    rmdir(cache);
}

static void
test_wrong_compiler(void)
{
    jot_Ctx *c;

    setenv("JOT_CC", "/no/such/compiler", 1);
    c = open_with(NULL, "", 0);
    CHECK(jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), "/no/such/compiler"), "%s",
          jot_message(c));
    jot_close(c);
    setenv("JOT_CC", "gcc -O1", 1);
    c = open_with(NULL, "", 0);
    CHECK(jot_error(c) == JOT_EDEVICE && strstr(jot_message(c), "\"gcc -O1\"")
          && strstr(jot_message(c), "without options"), "%s", jot_message(c));
    jot_close(c);
    unsetenv("JOT_CC");
}

static void *
small_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (new_nbytes && new_nbytes <= (size_t)1 << 28)
        return realloc(p, new_nbytes);
    if (!new_nbytes)
        free(p);
    return NULL;
}

/* What the environment says and nobody knows is told, not passed over. */
static void
test_environment(void)
{
    static const char *const wrong[][2] = {
        {"JOT_THREADS", "many"}, {"JOT_THREADS", "-1"}, {"JOT_LANES", "3"}, {"JOT_LANES", "4x"},
        {"JOT_DUMP", "gX"}, {"JOT_SCHEDULE", "random:"}, {"JOT_SCHEDULE", "random:x"},
        {"JOT_LAYOUT", "random:7up"}, {"JOT_DETERMINISTIC", "yes"}, {"JOT_POLICY", "best"},
        {"JOT_DEVICE_MEMORY", "10Q"}, {"JOT_DEVICE_MEMORY", "4GB"}, {"JOT_DEVICE_MEMORY", "M"},
    };
    jot_Config config = {0};
    jot_Ctx *c;
    size_t i;

    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        setenv(wrong[i][0], "", 1);
    c = open_with("interp", "", 0);
    CHECK(!jot_error(c), "all set to nothing: %s", jot_message(c));
    jot_close(c);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        unsetenv(wrong[i][0]);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        c = open_with("interp", "", 0);
        if (strcmp(wrong[i][0], "JOT_THREADS")) /* given in the call, which wins */
            CHECK(jot_error(c) == JOT_EUSE, "%s=%s: %s", wrong[i][0], wrong[i][1], jot_message(c));
        jot_close(c);
        c = jot_open(NULL);
        CHECK(jot_error(c) == JOT_EUSE && strpbrk(jot_message(c), wrong[i][1]), "%s=%s: %s",
              wrong[i][0], wrong[i][1], jot_message(c));
        jot_close(c);
        unsetenv(wrong[i][0]);
    }
    config.backend = "interp";
    config.hooks.realloc = small_realloc;
    c = jot_open(&config);
    jot_data(jot_zeros(c, JOT_F32, JOT_SHAPE(1LL << 20, 1LL << 24)));
    CHECK(jot_error(c) == JOT_EMEM && strstr(jot_message(c), "70368744177664 bytes asked for"),
          "%s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    char cache[300];
    bool tcc = has("tcc"), cc = has("cc");

    if (!learning_open())
        return 1;
    snprintf(cache, sizeof cache, "%s/cache", scratch_dir);
    test_environment();
    if (!cc)
        SKIP("no C compiler");
    if (cc && !tcc)
        SKIP("tiers: no libtcc");
    if (cc) {
        test_kernels_on_disk(cache);
        test_damage(cache);
        test_wrong_compiler();
    }
    if (cc && tcc) {
        test_race();
        test_relative();
        test_unkept();
    }
    learning_close();
    return DONE();
}
