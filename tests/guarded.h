/* tests/guarded.h - memory against protected pages, and what is read or written beside it.
 *
 *     ENDS     ....|######X        the last byte lies before a protected page
 *     BEGINS   X######|....        the first byte lies after one
 *     AMONG    .nnn######nnn.      bytes of NaN (of -1, of true) before, behind, and in it at first
 *
 * A fault within caught() ends the call and is told by `fault`: of the blocks that live the
 * nearest, and how far from it. What runs in caught() is left where it stands: its context is lost.
 *
 * On systems that are no POSIX there is nothing to protect. */
#ifndef JOT_TEST_GUARDED_H
#define JOT_TEST_GUARDED_H
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef enum { ENDS, BEGINS, AMONG, SIDES } Side;
static const char *const side_name[SIDES] = {"before a page", "behind a page", "among NaN"};

typedef struct Block Block;
struct Block { unsigned char *base, *p; size_t nbytes, whole; Side side; void *owner; Block *next; };

enum { BLOCK_LISTS = 1024, FILL = 0xff };
static Block *blocks[BLOCK_LISTS]; /* those that live, by address */
static char fault[200];            /* of the last caught(), "" for none */
static sigjmp_buf fault_back;
static volatile sig_atomic_t fault_caught;

static Block **
block_list(const void *p)
{
    return &blocks[(uintptr_t)p / 64 % BLOCK_LISTS];
}

static size_t
page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* NULL: refused. Of pages of its own, with a protected one (or one full of NaN) on both sides. */
static void *
guarded_new(size_t nbytes, Side side, void *owner)
{
    size_t page = page_bytes(), inner = (nbytes + page - 1) / page * page;
    Block *b = malloc(sizeof *b);
    int around = side == AMONG ? PROT_READ | PROT_WRITE : PROT_NONE;
    unsigned char *base = !b ? MAP_FAILED : mmap(NULL, inner + 2 * page, around,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED || mprotect(base + page, inner, PROT_READ | PROT_WRITE)) {
        free(b);
        return NULL;
    }
    b->base = base;
    b->whole = inner + 2 * page;
    b->p = b->base + page + (side == ENDS ? inner - nbytes : 0);
    b->nbytes = nbytes;
    b->side = side;
    b->owner = owner;
    memset(base + (side == AMONG ? 0 : page), FILL, inner + (side == AMONG ? 2 * page : 0));
    b->next = *block_list(b->p);
    *block_list(b->p) = b;
    return b->p;
}

/* Bytes that are other than they were. */
static size_t
bytes_changed(const unsigned char *from, const unsigned char *to)
{
    size_t n = 0;

    if (from == to || (*from == FILL && !memcmp(from, from + 1, (size_t)(to - from) - 1)))
        return 0;
    for (; from < to; from++)
        n += *from != FILL;
    return n;
}

/* How many bytes beside the block are other than they were. */
static size_t
guarded_changed(const Block *b)
{
    size_t page = b->side == AMONG ? 0 : page_bytes();

    return bytes_changed(b->base + page, b->p)
         + bytes_changed(b->p + b->nbytes, b->base + b->whole - page);
}

static void
block_end(Block **at)
{
    Block *b = *at;

    *at = b->next;
    munmap(b->base, b->whole);
    free(b);
}

/* False: no block of guarded_new. *changed grows by the bytes that were written beside it. */
static bool
guarded_free(void *p, size_t *changed)
{
    Block **at = block_list(p);

    while (*at && (*at)->p != p)
        at = &(*at)->next;
    if (!*at)
        return false;
    *changed += guarded_changed(*at);
    block_end(at);
    return true;
}

/* All that a lost context had. */
static void
guarded_forget(const void *owner)
{
    for (int i = 0; i < BLOCK_LISTS; i++)
        for (Block **at = &blocks[i]; *at;)
            if ((*at)->owner == owner)
                block_end(at);
            else
                at = &(*at)->next;
}

/* ---- the hook of a context ------------------------------------------------------------------ */

typedef struct { Side side; size_t changed; } GuardedHeap;

/* Elements lie in whole lines of the cache: those lines are guarded, what is of other sizes is none
 * of the kernels'. */
static void *
guarded_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    GuardedHeap *heap = ud;
    void *q = NULL;

    if (new_nbytes)
        q = new_nbytes % 64 ? malloc(new_nbytes) : guarded_new(new_nbytes, heap->side, heap);
    if (new_nbytes && !q)
        return NULL;
    if (p && q)
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    if (p && !guarded_free(p, &heap->changed))
        free(p);
    return q;
}

/* ---- faults --------------------------------------------------------------------------------- */

static void
tell_fault(const unsigned char *at)
{
    const Block *best = NULL;
    size_t off = SIZE_MAX, d;

    for (int i = 0; i < BLOCK_LISTS; i++)
        for (const Block *b = blocks[i]; b; b = b->next) {
            d = at < b->p ? (size_t)(b->p - at) : at >= b->p + b->nbytes
              ? (size_t)(at - b->p) - b->nbytes : 0;
            if (d < off)
                best = b, off = d;
        }
    if (best && off < 1 << 20)
        snprintf(fault, sizeof fault, "touched %zu bytes %s an array of %zu bytes", off,
                 at < best->p ? "before" : "beyond the end of", best->nbytes);
    else
        snprintf(fault, sizeof fault, "touched %p, near no array", (const void *)at);
}

static void
on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!fault_caught) {
        signal(number, SIG_DFL);
        return;
    }
    fault_caught = 0;
    tell_fault(info->si_addr);
    siglongjmp(fault_back, 1);
}

static void
catch_faults(void)
{
    struct sigaction act = {0};

    act.sa_sigaction = on_fault;
    act.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
}

/* What run(ud) gives; false and the reason in `fault` where it touched what it must not. */
static bool
caught(bool (*run)(void *ud), void *ud)
{
    bool ok = false;

    fault[0] = 0;
    if (!sigsetjmp(fault_back, 1)) {
        fault_caught = 1;
        ok = run(ud);
    }
    fault_caught = 0;
    return ok;
}

#endif
