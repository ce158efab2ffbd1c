/* tests/hooks.h - what tests hand to jot_open: a heap that refuses an allocation and knows what
 * lives, a log that is kept. */
#ifndef JOT_TEST_HOOKS_H
#define JOT_TEST_HOOKS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* countdown: the allocation that is refused, from now on; 0: none. least: bytes of those that
 * count. onwards: all after it, too. calls: of the hook, frees too; refused: of these. */
typedef struct { long countdown; size_t least, live; long calls, refused; bool onwards; } Heap;

/* Its ud is a Heap. What grows moves, and blocks are no larger than was asked for, so that a
 * sanitizer sees who goes on with the old one or beyond the end. */
static inline void *
heap_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    Heap *h = ud;
    void *q = NULL;

    h->calls++;
    if (new_nbytes && new_nbytes >= h->least && h->countdown > 0 && --h->countdown == 0)
        return h->countdown = h->onwards, h->refused++, NULL;
    if (new_nbytes && !(q = aligned_alloc(64, (new_nbytes + 63) / 64 * 64)))
        return NULL;
    if (p && q)
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    free(p);
    h->live += new_nbytes - (p ? old_nbytes : 0);
    return q;
}

/* Allocations that are granted before all are refused; below 0: all are granted. */
static int64_t grants = -1, refusals;

static inline void *
counted_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (new_nbytes && grants == 0)
        return refusals++, NULL;
    grants -= new_nbytes && grants > 0;
    if (new_nbytes)
        return realloc(p, new_nbytes);
    free(p);
    return NULL;
}

enum { LOG = 1 << 18 };
static char logged[LOG];

/* Appends to the LOG bytes at ud, to `logged` where there is none; what does not fit is lost. */
static inline void
keep_log(void *ud, const char *text, size_t nbytes)
{
    char *log = ud ? ud : logged;
    size_t n = strlen(log);

    if (nbytes > LOG - 1 - n)
        nbytes = LOG - 1 - n;
    memcpy(log + n, text, nbytes);
    log[n + nbytes] = 0;
}

static inline void
forget_log(void)
{
    logged[0] = 0;
}

/* How often the word stands in `logged`. */
static inline int
count_logged(const char *word)
{
    const char *at = logged;
    int n = 0;

    for (; (at = strstr(at, word)) != NULL; at++)
        n++;
    return n;
}

#endif
