/* tests/test_hostile.c - a cache folder in which something else has the name of a file: a named
 * pipe, a socket, a folder, a link to itself or to a device, a device, another user's file, one
 * open to others, an endless one; for kernels, the machine's figures, the tuning cache and the mark
 * of tidying. Programs end, with the right values, and what can be replaced is.
 *
 * Guards: backends/cpu/cache.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/learning.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char cache[300];

/* A name stands for all files that begin or end with it. */
static const char *const files[] = {".jot", "machine-", "tuned.json", "tidied"};
static const char *const kinds[] = {
    "pipe", "socket", "folder", "full folder", "link to itself", "link to /dev/zero",
    "link to a pipe", "device", "another user's", "open to others", "endless", "empty"
};
enum { FILES = sizeof files / sizeof *files, KINDS = sizeof kinds / sizeof *kinds };

static bool
shell(const char *format, const char *a, const char *b)
{
    char command[900];

    snprintf(command, sizeof command, format, a, b);
    return !system(command);
}

static bool
make_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc = -1;

    if (fd >= 0 && strlen(path) < sizeof at.sun_path) {
        strcpy(at.sun_path, path);
        rc = bind(fd, (struct sockaddr *)&at, sizeof at);
    }
    close(fd);
    return !rc;
}

/* In place of the file, or the file changed. False: this system, or this user, cannot. */
static bool
make_kind(int kind, const char *path)
{
    char inner[700];
    int fd;

    if (kind < 8)
        unlink(path);
    snprintf(inner, sizeof inner, "%s/pipe", scratch_dir);
    switch (kind) {
    case 0: return !mkfifo(path, 0600);
    case 1: return make_socket(path);
    case 2: return !mkdir(path, 0700);
    case 3: snprintf(inner, sizeof inner, "%s/mine", path);
        return !mkdir(path, 0700) && !mkdir(inner, 0700);
    case 4: return !symlink(path, path);
    case 5: return !symlink("/dev/zero", path);
    case 6: mkfifo(inner, 0600);
        return !symlink(inner, path);
    case 7: return !mknod(path, S_IFCHR | 0600, makedev(1, 5));
    case 8: return geteuid() == 0 && !chown(path, 12345, 12345);
    case 9: return !chmod(path, 0666);
    default:
        fd = open(path, O_WRONLY | O_TRUNC);
        if (kind == 10 && ftruncate(fd, (off_t)1 << 43) && ftruncate(fd, (off_t)1 << 40))
            return close(fd), false;
        return !close(fd);
    }
}

/* All files of a name; how many, -1: it cannot be done. */
static int
make_all(int file, int kind)
{
    DIR *dir = opendir(cache);
    struct dirent *e;
    char path[600];
    int n = 0;

    while (dir && n >= 0 && (e = readdir(dir)) != NULL) {
        const char *dot = strrchr(e->d_name, '.');

        if (file ? strncmp(e->d_name, files[file], strlen(files[file]))
                 : !dot || strcmp(dot, ".jot"))
            continue;
        snprintf(path, sizeof path, "%s/%s", cache, e->d_name);
        n = make_kind(kind, path) ? n + 1 : -1;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* A program with this cache, which must end by itself: the log is as it should be and, again, all
 * comes from the cache. */
static int
program(int file, int kind, bool again)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (!child) {
        const char *told = kind == 11 ? "damaged" : "not taken";
        jot_Ctx *c;

        alarm(120);
        test_failed = 0;
        c = open_with("cc", cache, 0);
        net_run(c, expect, 2, 0);
        CHECK(!jot_error(c), "%s", jot_message(c));
        if (again)
            CHECK(!jot_stats(c).kernels_compiled && !logged[0], "%d compiled: %s",
                  (int)jot_stats(c).kernels_compiled, logged);
        else if (file < 3 && (file != 2 || kind != 11)) /* who reads that one is in a library */
            CHECK(strstr(logged, told), "%s is %s, log: %s", files[file], kinds[kind], logged);
        jot_close(c);
        fflush(stdout);
        _exit(test_failed ? 1 : 0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void
test_one(int file, int kind)
{
    int status;

    CHECK(shell("rm -rf '%s' '%s/pipe'", cache, scratch_dir)
          && shell("cp -a '%s.good' '%s'", cache, cache), "%s", cache);
    if (file == 2) /* only who times schedules writes one */
        shell("umask 077; echo '{\"jot\": \"tuned 1\", \"kernels\": {}}' >'%s/%s'", cache,
              files[file]);
    if (file == 3) /* it is looked at once an hour */
        shell("touch -d '2 hours ago' '%s/%s'", cache, files[file]);
    switch (make_all(file, kind)) {
    case -1: SKIP("a file cannot be made %s here", kinds[kind]);
        return;
    case 0: SKIP("no file %s", files[file]);
        return;
    }
    status = program(file, kind, false);
    CHECK(!status, "%s is %s: status %x", files[file], kinds[kind], (unsigned)status);
    if (file < 2 && kind != 3) {
        status = program(file, kind, true);
        CHECK(!status, "%s was %s, again: status %x", files[file], kinds[kind], (unsigned)status);
    }
}

/* A damaged entry is told once, whoever finds it: it goes. */
static void
test_once(void)
{
    int entries;
    jot_Ctx *c;

    CHECK(shell("rm -rf '%s' '%s/pipe'", cache, scratch_dir)
          && shell("cp -a '%s.good' '%s'", cache, cache), "%s", cache);
    entries = make_all(0, 11);
    c = open_with(NULL, cache, 0);
    net_run(c, expect, STEPS, 0);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
    CHECK(count_logged("damaged") <= entries && count_logged("damaged") > 0,
          "%d entries, told %d times: %s", entries, count_logged("damaged"), logged);
}

int
main(void)
{
    int file, kind;
    jot_Ctx *c;

    if (!learning_open())
        return 1;
    snprintf(cache, sizeof cache, "%s/cache", scratch_dir);
    if (!has("cc")) {
        SKIP("no C compiler");
    } else {
        c = open_with("cc", cache, 0);
        net_run(c, expect, 2, 0);
        jot_close(c);
        CHECK(shell("cp -a '%s' '%s.good'", cache, cache), "%s", cache);
        for (file = 0; file < FILES; file++)
            for (kind = 0; kind < KINDS; kind++)
                test_one(file, kind);
        test_once();
    }
    learning_close();
    return DONE();
}
