/* tests/test_children.c - what compilers leave behind: their processes and their folders of
 * temporary files, whether they end, hang, print without end or leave children, or the program is
 * killed while they work; folders that are full; what is said of a compiler that does not run.
 *
 * Guards: backends/cpu/cc.c, backends/host/process.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/backend_world.h"
#include <errno.h>
#include <signal.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif
#include <sys/wait.h>

static void
use_script(const char *name, const char *body)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", scratch_dir, name);
    write_script(path, body);
    setenv("JOT_CC", path, 1);
}

/* ---- compilers that do not run -------------------------------------------------------------- */

/* Each cause is told by itself, and nobody is left. */
static void
test_causes(void)
{
    static const char *const causes[][3] = {
        {"fails", "exit 3", "fails --version ended with status 3"},
        {"killed", "kill -11 $$", "killed --version was ended by signal 11"},
        {"loud", "trap '' PIPE TERM\nyes & yes\ntrue", "loud --version does not stop printing"},
        {"nowhere", NULL, "nowhere --version does not start: No such file"},
    };
    size_t i;

    for (i = 0; i < sizeof causes / sizeof *causes; i++) {
        World w;

        use_script(causes[i][0], causes[i][1] ? causes[i][1] : "");
        if (!causes[i][1]) {
            FILE *f = fopen(getenv("JOT_CC"), "w");

            fprintf(f, "#!/no/such/shell\n");
            fclose(f);
        }
        CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_EUSE && strstr(w.why, causes[i][2]),
              "%s: %s", causes[i][0], w.why);
        world_close(&w);
        CHECK(survivors() == 0, "%s: %d processes are left", causes[i][0], survivors_now());
        CHECK(temporaries() == 0, "%s: a folder is left", causes[i][0]);
    }
    unsetenv("JOT_CC");
}

/* A compiler that works, but starts what does not end with it. */
static void
test_left_behind(void)
{
    World w;

    use_script("parent", "(trap '' TERM HUP; sleep 1000) & exec cc \"$@\"");
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK && works(&w, good_text), "%s%s", w.why,
          w.ctx->message);
    world_close(&w);
    CHECK(survivors() == 0, "%d processes are left", survivors_now());
    unsetenv("JOT_CC");
}

/* It prints without end where it should compile. */
static void
test_loud(void)
{
    World w;

    use_script("loud", "[ \"$1\" = --version ] && exec cc --version\nyes >&2 & yes");
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s", w.why);
    CHECK(!works(&w, good_text) && w.ctx->status == JOT_EDEVICE
              && strstr(w.ctx->message, "does not stop printing"), "%s", w.ctx->message);
    world_close(&w);
    CHECK(survivors() == 0, "%d processes are left", survivors_now());
    CHECK(temporaries() == 0, "a folder is left");
    unsetenv("JOT_CC");
}

/* ---- programs that are killed --------------------------------------------------------------- */

static bool
there(const char *name)
{
    char path[300];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", scratch_dir, name);
    return !stat(path, &st);
}

/* While its compiler works, which has children and temporary files and minds no signal. */
static void
killed_by(int number, bool asked)
{
    struct timespec nap = {0, 10000000};
    char body[600], path[600];
    int status = -1, i;
    pid_t child;
    World w;

    snprintf(body, sizeof body, "%strap '' TERM INT HUP IO\n>\"$TMPDIR/ccXyz.s\"\n"
             "sleep 1000 & >'%s/started'\nsleep 1000",
             asked ? "" : "[ \"$1\" = --version ] && exec cc --version\n", scratch_dir);
    use_script("hangs", body);
    fflush(stdout);
    child = fork();
    if (!child) {
        setpgid(0, 0);
        _exit(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK && works(&w, good_text));
    }
    for (i = 0; i < 1000 && !there("started"); i++)
        nanosleep(&nap, NULL);
    CHECK(there("started"), "the compiler was not started");
    kill(child, number);
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number, "status %x", (unsigned)status);
    CHECK(survivors() == 0, "signal %d: %d processes are left", number, survivors_now());
    CHECK(temporaries() == 1, "%d folders", temporaries());
    snprintf(path, sizeof path, "%s/started", scratch_dir);
    unlink(path);
    unsetenv("JOT_CC");
    CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK && works(&w, good_text), "%s%s", w.why,
          w.ctx->message);
    world_close(&w);
    CHECK(temporaries() == 0, "signal %d: its folder is left after the next run", number);
}

/* ---- folders that are full ------------------------------------------------------------------ */

static int step = 24; /* KB between two of their sizes */

#ifdef __linux__
/* TMPDIR with room for a part of what a compiler writes: it goes elsewhere. Where nothing has room,
 * that is what is said. In a name space of its own; the number of failures, 255: no such disks. */
static int
full_folders(const char *compiler)
{
    static char text[100000];
    size_t n = (size_t)snprintf(text, sizeof text, "%sconst char more[] = \"", good_text);
    char size[40];
    World w;
    int k;

    memset(text + n, 'x', 60000);
    strcpy(text + n + 60000, "\";\n");
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return 255;
    test_failed = 0;
    setenv("JOT_CC", compiler, 1);
    setenv("TMPDIR", "/mnt", 1);
    for (k = 0; k < 320; k += step) {
        snprintf(size, sizeof size, "size=%dk", k ? k : 4);
        if (mount("none", "/mnt", "tmpfs", 0, size))
            return 255;
        CHECK(world_open(&w, &jot_backend_cc, "", 0) == JOT_OK, "%s: %s", size, w.why);
        CHECK(w.backend.state && works(&w, text), "%s: %s", size, w.ctx->message);
        world_close(&w);
        umount("/mnt");
    }
    for (k = 0; k < 320; k += step) {
        snprintf(size, sizeof size, "size=%dk", k ? k : 4);
        if (mount("none", "/tmp", "tmpfs", 0, size) || mount("none", "/var/tmp", "tmpfs", 0, size))
            return 255;
        setenv("TMPDIR", "/tmp", 1);
        if (world_open(&w, &jot_backend_cc, "", 0) != JOT_OK)
            CHECK(strstr(w.why, "no folder") && strstr(w.why, strerror(ENOSPC)), "%s: %s", size,
                  w.why);
        else if (!works(&w, text))
            CHECK(w.ctx->status == JOT_EIO && strstr(w.ctx->message, "no room"), "%s: %s", size,
                  w.ctx->message);
        world_close(&w);
        umount("/tmp"), umount("/var/tmp");
    }
    fflush(stdout);
    return test_failed;
}
#endif

static void
test_full(void)
{
#ifdef __linux__
    static const char *const compilers[] = {"gcc", "clang"};
    int status, k;

    for (k = 0; k < 2; k++) {
        setenv("JOT_CC", compilers[k], 1);
        if (!have(&jot_backend_cc))
            continue;
        fflush(stdout);
        if (!fork())
            _exit(full_folders(compilers[k]));
        wait(&status);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 255)
            SKIP("full folders: no file systems may be mounted");
        else
            CHECK(status == 0, "full folders: status %x", (unsigned)status);
    }
    unsetenv("JOT_CC");
#else
    SKIP("full folders: not tried on this system");
#endif
}

int
main(int argc, char **argv)
{
    char tmp[300];

    step = argc > 1 ? atoi(argv[1]) : step;
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/jot-test-XXXXXX");
    if (!mkdtemp(scratch_dir))
        return 1;
    unsetenv("JOT_CC");
    unsetenv("JOT_CACHE_DIR");
    snprintf(tmp, sizeof tmp, "%s/tmp", scratch_dir);
    mkdir(tmp, 0700);
    setenv("TMPDIR", tmp, 1);
    survivors_begin();
    if (have(&jot_backend_cc)) {
        test_causes();
        test_left_behind();
        test_loud();
#ifdef __linux__
        killed_by(SIGTERM, false);
        killed_by(SIGKILL, false);
        killed_by(SIGTERM, true);
#else
        SKIP("programs that are killed leave their compilers on this system");
#endif
        test_full();
    }
    unsetenv("TMPDIR");
    remove_tree(scratch_dir);
    return DONE();
}
