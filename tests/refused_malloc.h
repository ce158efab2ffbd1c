/* tests/refused_malloc.h - malloc and its like, in place of the C library's (glibc's alone, and not
 * under a sanitizer, which has its own): while `counting` holds, allocation number `countdown` is
 * refused, and `live` counts blocks. */
#ifndef JOT_TEST_REFUSED_MALLOC_H
#define JOT_TEST_REFUSED_MALLOC_H
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_memalign(size_t align, size_t n);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

static bool counting;
static long countdown, live; /* refused at 0; blocks */

static bool
refused(void)
{
    if (counting && --countdown == 0) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *
malloc(size_t n)
{
    void *p = refused() ? NULL : __libc_malloc(n);
    live += counting && p;
    return p;
}

void *
calloc(size_t n, size_t size)
{
    void *p = refused() ? NULL : __libc_calloc(n, size);
    live += counting && p;
    return p;
}

void *
realloc(void *old, size_t n)
{
    void *p = refused() ? NULL : __libc_realloc(old, n);
    live += counting && p && !old;
    return p;
}

int
posix_memalign(void **to, size_t align, size_t n)
{
    void *p = refused() ? NULL : __libc_memalign(align, n);
    live += counting && p;
    if (p)
        *to = p;
    return p ? 0 : ENOMEM;
}

void *
aligned_alloc(size_t align, size_t n)
{
    void *p = NULL;
    return posix_memalign(&p, align, n) ? NULL : p;
}

void
free(void *p)
{
    live -= counting && p;
    __libc_free(p);
}

#endif
