/* tests/survivors.h - processes that this program's compilers left behind: found by a variable that
 * they inherit, whoever became their parent. */
#ifndef JOT_TEST_SURVIVORS_H
#define JOT_TEST_SURVIVORS_H
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SURVIVORS_MARK "JOT_TEST_SURVIVORS"

/* From now on children have it, and this program itself has not: it was not started with it. */
static inline void
survivors_begin(void)
{
    char mark[40];

    snprintf(mark, sizeof mark, "%ld.", (long)getpid());
    setenv(SURVIVORS_MARK, mark, 1);
}

static inline bool
survivors_is(const char *pid, const char *mark)
{
    static char text[1 << 17];
    char path[300];
    size_t n, i, len = strlen(mark);
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    f = fopen(path, "r");
    n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    for (i = 0; i + len <= n; i++)
        if (!memcmp(text + i, mark, len))
            return true;
    return false;
}

static inline int
survivors_now(void)
{
    DIR *dir = opendir("/proc");
    struct dirent *e;
    char mark[80];
    int n = 0;

    snprintf(mark, sizeof mark, SURVIVORS_MARK "=%s", getenv(SURVIVORS_MARK));
    while (dir && (e = readdir(dir)) != NULL)
        if (*e->d_name > '0' && *e->d_name <= '9')
            n += survivors_is(e->d_name, mark);
    if (dir)
        closedir(dir);
    return n;
}

/* How many there are: who was killed may take a moment to be gone. */
static inline int
survivors(void)
{
    struct timespec nap = {0, 10000000};
    int n, i;

    for (i = 0; (n = survivors_now()) != 0 && i < 2000; i++)
        nanosleep(&nap, NULL);
    return n;
}

#endif
