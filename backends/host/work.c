/* backends/host/work.c - private folders of temporary files.
 *
 *     $TMPDIR/jot-kernel-Xy12ab/     the text  kernel.so  messages  and the compiler's own
 *
 * Who works in one holds a lock on it, which ends with the process, however that ends: a folder
 * that nobody holds was left behind, and who comes next removes it.
 *
 * Read before: backends/host/host.h. After: backends/host/process.c, backends/cpu/cc.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORK_PREFIX "jot-kernel-"
enum { WORK_PLACES = 4, WORK_TRIES = 10 };

static const char *
work_place(jot_Ctx *ctx, int k, const char *last_resort)
{
    return k == 0 ? jot_host_env(ctx, "TMPDIR") : k == 1 ? "/tmp" : k == 2 ? "/var/tmp"
         : last_resort;
}

JOT_FN void
jot_work_path(const WorkDir *work, const char *file, char *path, size_t nbytes)
{
    snprintf(path, nbytes, "%s/%s", work->dir, file);
}

/* ---- one's own ---------------------------------------------------------------------------- */

/* A new folder, locked. Who sweeps may come between the two, and then it is gone. False: errno. */
static bool
work_make(WorkDir *work, const char *place)
{
    struct stat st;
    int i, n;

    for (i = 0; i < WORK_TRIES; i++) {
        n = snprintf(work->dir, sizeof work->dir, "%s/" WORK_PREFIX "XXXXXX", place);
        errno = ENAMETOOLONG;
        if (n < 0 || n >= (int)sizeof work->dir || !mkdtemp(work->dir))
            return false;
        work->fd = open(work->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (work->fd < 0)
            continue;
        if ((!flock(work->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
            && !fstat(work->fd, &st) && st.st_nlink)
            return true;
        close(work->fd);
    }
    return false;
}

JOT_FN bool
jot_work_open(jot_Ctx *ctx, WorkDir *work, const char *last_resort)
{
    while (work->from < WORK_PLACES) {
        const char *place = work_place(ctx, work->from++, last_resort);

        if (place && *place && work_make(work, place))
            return true;
    }
    work->dir[0] = 0;
    return false;
}

/* Files that one may hold, besides those a script makes: gcc's begin with cc. */
static bool
work_is_file(const char *name)
{
    static const char *const starts[] = {"kernel", WORK_MESSAGES, "cc", "tmp."};
    size_t i;

    for (i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    return false;
}

static void
work_empty(int fd, bool all)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *e;

    if (!dir && copy >= 0)
        close(copy);
    while (dir && (e = readdir(dir)) != NULL)
        if (all || work_is_file(e->d_name))
            unlinkat(fd, e->d_name, 0); /* which leaves folders */
    if (dir)
        closedir(dir);
}

JOT_FN void
jot_work_close(WorkDir *work)
{
    int why = errno;

    if (!work->dir[0])
        return;
    work_empty(work->fd, true);
    rmdir(work->dir);
    close(work->fd);
    work->dir[0] = 0;
    errno = why;
}

/* ---- those of others ---------------------------------------------------------------------- */

/* No link is followed, and no file goes but those that such a folder may hold. */
static void
work_sweep_one(int place, const char *name)
{
    int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB)) {
        work_empty(fd, false);
        unlinkat(place, name, AT_REMOVEDIR);
    }
    close(fd);
}

JOT_FN void
jot_work_sweep(jot_Ctx *ctx, const char *last_resort)
{
    int k;

    for (k = 0; k < WORK_PLACES; k++) {
        const char *place = work_place(ctx, k, last_resort);
        DIR *dir = place && *place ? opendir(place) : NULL;
        struct dirent *e;

        while (dir && (e = readdir(dir)) != NULL)
            if (!strncmp(e->d_name, WORK_PREFIX, sizeof WORK_PREFIX - 1))
                work_sweep_one(dirfd(dir), e->d_name);
        if (dir)
            closedir(dir);
    }
}
#undef WORK_PREFIX

#endif
