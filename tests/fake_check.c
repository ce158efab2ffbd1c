/* tests/fake_check.c - what compute-sanitizer looks for, on the stand-in for a CUDA device: with
 * FAKE_CHECK set, of every access to memory that a kernel's text or an instruction of it makes.
 *
 *     race      two items at one byte, one of them writing, and no barrier of their group between;
 *               of two groups: in one launch. Both atomic: none.
 *     outside   no allocation has the byte, no array of the group, or it is not aligned
 *     unset     it was never written: since the group began, since it was allocated
 *     early     a copy past the registers was not waited for, or the matrix unit reads what was not
 *               fenced before the last barrier
 *     order     FAKE_CHECK=2: launched once more with items and groups in another order, a kernel
 *               without atomics leaves other bytes
 *
 * Items run one after the other, so what is a race does not depend on what happens: each byte has
 * two stamps, of who wrote it last and who read it last, and when. Time is counted in eras: one
 * begins with each launch, group and barrier, so
 *
 *     stamp      era (32) | item (10) | atomic, of many items, groups (3) | place in the text (19)
 *     race       the same era, another item; or an era of this launch before this group's first
 *
 * Memory of the device lies in one place of addresses, its stamps in another 16 times as large;
 * what is not touched costs nothing, and what was freed is not given again soon. What a report says
 * of lines is addr2line's.
 *
 * The rules are those of the CUDA guide and PTX: shuffles and products of a warp order no memory;
 * a copy (cp.async) may arrive at any time from where it is said until it is waited for, and others
 * see it behind the next barrier; wgmma reads what was fenced by its writer (fence.proxy.async)
 * before that.
 *
 * Read before: tests/fake_cuda.h, fake_items.c, fake_ptx.c. */
#define _GNU_SOURCE
#include "tests/fake_cuda.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NONE, UNSET, SET };                      /* a byte: not allocated, not written, written */
enum { FLAG_ATOMIC = 1, FLAG_ITEMS = 2, FLAG_GROUPS = 4 };
enum { REPORTS = 8, PAGE = 4096 };
typedef struct { uint64_t write, read; } Stamps;
typedef struct { uint64_t at, nbytes; } Block;

static const uint64_t arena_nbytes = (uint64_t)1 << 38;
static unsigned char *arena, *state;            /* memory, and of each byte what it is */
static Stamps *stamps;
static Block *block;                            /* by address */
static int nblocks, blocks_room;
static uint64_t next_at;

static unsigned char shared_state[SHARED_NBYTES];
static uint64_t placed;                         /* the end of the group's arrays */
static unsigned short coming[SHARED_NBYTES];    /* the item, and 1,
    whose copy is on its way there */
static Stamps shared_stamps[SHARED_NBYTES];
static uint64_t wrote_at[SHARED_NBYTES], fenced_at[ITEMS], visible_at[ITEMS], tick;

static Function *kernel;
static const char *stack_base;
static uint32_t now, launch_era, group_era;
static unsigned group_now;
static bool atomics;
static struct { const void *from; uint32_t other; const char *kind; } found[REPORTS];
static int nfound;

static int
level(void)
{
    static int known = -1;

    if (known < 0)
        known = getenv("FAKE_CHECK") ? atoi(getenv("FAKE_CHECK")) : 0;
    return known;
}

bool fake_checks(void) { return level() > 0; }

/* ---- memory of the device ----------------------------------------------------------------- */

static void *
reserve(uint64_t nbytes)
{
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    if (p == MAP_FAILED)
        fake_stop("no addresses for what is checked", "mmap");
    return p;
}

/* The library is opened again and again. */
static void __attribute__((destructor))
give_back(void)
{
    if (!arena)
        return;
    munmap(arena, arena_nbytes);
    munmap(state, arena_nbytes);
    munmap(stamps, arena_nbytes * sizeof *stamps);
    free(block);
}

/* Where nbytes fit from `at` on, and which block they become. */
static uint64_t
find_room(uint64_t at, uint64_t nbytes, int *k)
{
    for (*k = 0; *k < nblocks; ++*k) {
        const Block *b = &block[*k];

        if (b->at >= at + nbytes)
            break;
        if (b->at + b->nbytes > at)
            at = b->at + b->nbytes;
    }
    return at;
}

/* Its end lies at the end of a page as nearly as 256 bytes allow, and a page of no one's
 * follows. */
void *
fake_check_alloc(size_t nbytes)
{
    uint64_t room = (nbytes + 255) / 256 * 256, pages = (room + PAGE - 1) / PAGE * PAGE + PAGE, at;
    int k;

    if (!arena) {
        arena = reserve(arena_nbytes);
        state = reserve(arena_nbytes);
        stamps = reserve(arena_nbytes * sizeof *stamps);
    }
    if (room > arena_nbytes / 4)
        return NULL;
    if (next_at + pages > arena_nbytes)
        next_at = 0;
    at = find_room(next_at, pages, &k);
    if (at + pages > arena_nbytes)
        return NULL;
    if (nblocks == blocks_room) {
        blocks_room = 2 * blocks_room + 16;
        block = realloc(block, (size_t)blocks_room * sizeof *block);
    }
    memmove(&block[k + 1], &block[k], (size_t)(nblocks - k) * sizeof *block);
    nblocks++;
    block[k].at = at;
    block[k].nbytes = pages;
    next_at = at + pages;
#ifdef MADV_POPULATE_WRITE /* a page at a time is half of what the system does here */
    madvise(stamps + at, pages * sizeof *stamps, MADV_POPULATE_WRITE);
#endif
    at += pages - PAGE - room;
    memset(state + at, UNSET, nbytes);
    return arena + at;
}

void
fake_check_free(void *p)
{
    uint64_t at = (uint64_t)((unsigned char *)p - arena);
    int k = 0;

    if (!p)
        return;
    while (k < nblocks && block[k].at + block[k].nbytes <= at)
        k++;
    if (k == nblocks || at < block[k].at || state[at] == NONE || (at && state[at - 1] != NONE))
        fake_stop("it frees what it does not have", "cuMemFree");
    madvise(arena + block[k].at, block[k].nbytes, MADV_DONTNEED);
    madvise(state + block[k].at, block[k].nbytes, MADV_DONTNEED);
    madvise(stamps + block[k].at, block[k].nbytes * sizeof *stamps, MADV_DONTNEED);
    memmove(&block[k], &block[k + 1], (size_t)(nblocks - k - 1) * sizeof *block);
    nblocks--;
}

static bool
of_device(const void *p)
{
    return arena && (const unsigned char *)p >= arena
        && (const unsigned char *)p < arena + arena_nbytes;
}

void
fake_check_copy(void *to, const void *from, size_t nbytes)
{
    uint64_t t = (uint64_t)((unsigned char *)to - arena);
    uint64_t f = (uint64_t)((const unsigned char *)from - arena);

    if (!level() || !nbytes)
        return;
    if ((of_device(to) && memchr(state + t, NONE, nbytes))
        || (of_device(from) && memchr(state + f, NONE, nbytes)))
        fake_stop("outside", "a copy reaches out of an allocation");
    if (of_device(to) && of_device(from))
        memcpy(state + t, state + f, nbytes);
    else if (of_device(to))
        memset(state + t, SET, nbytes);
}

/* ---- reports ------------------------------------------------------------------------------ */

static void
print_line(long line)
{
    const char *p = kernel->module->text;

    for (long n = 1; p && n < line; n++)
        p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    if (p)
        fprintf(stderr, "        line %ld: %.*s\n", line, (int)strcspn(p, "\n"), p);
}

/* The lines of an address, the innermost first. */
static void
print_lines(uint64_t offset)
{
    char path[] = "/tmp/fake_check.XXXXXX", command[200], line[400];
    int fd = mkstemp(path);
    ssize_t n = write(fd, kernel->module->image, kernel->module->nbytes);
    FILE *f;

    (void)n;
    snprintf(command, sizeof command, "addr2line -i -e %s 0x%llx 2>/dev/null", path,
             (unsigned long long)offset);
    f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "text:");

        if (at)
            print_line(atol(at + 5));
    }
    if (f)
        pclose(f);
    close(fd);
    unlink(path);
}

static uint64_t
offset_of(const void *from)
{
    return (uint64_t)((const char *)from - kernel->module->base);
}

/* Where the item is, and who called it there. */
static void
print_here(const void *from)
{
    void **frame = __builtin_frame_address(0);
    bool past = false;

    print_lines(offset_of(from) - 1);
    for (int depth = 0; depth < 12 && (char *)frame > stack_base
         && (char *)frame < stack_base + (size_t)ITEMS * STACK - 64; depth++) {
        const char *back = frame[1];

        if (past && back > kernel->module->base && back < kernel->module->end)
            print_lines(offset_of(back) - 1);
        past = past || back == from;
        if ((void **)frame[0] <= frame)
            break;
        frame = frame[0];
    }
}

/* True the first time. */
static bool
report(const char *kind, const void *p, int nbytes, const char *what, const void *from,
    uint64_t other)
{
    uint32_t where = (uint32_t)(other & 0x7ffff);
    bool shared = (const unsigned char *)p >= fake_shared
                  && (const unsigned char *)p < fake_shared + SHARED_NBYTES;

    for (int i = 0; i < nfound; i++)
        if (found[i].from == from && found[i].other == where && found[i].kind == kind)
            return false;
    if (nfound == REPORTS)
        return false;
    found[nfound].from = from;
    found[nfound].other = where;
    found[nfound++].kind = kind;
    fprintf(stderr, "fake_cuda: %s: %s: item %d of group %u %s %d bytes", kernel->name, kind,
        fake_item(),
            group_now, what, nbytes);
    if (shared)
        fprintf(stderr, " at %ld of its group's memory",
            (long)((const unsigned char *)p - fake_shared));
    else if (of_device(p)) {
        const unsigned char *first = p;

        while (first > arena && first[state - arena - 1] != NONE)
            first--;
        fprintf(stderr, " at %ld of an allocation", (long)((const unsigned char *)p - first));
    } else
        fprintf(stderr, " at %p", p);
    if (other)
        fprintf(stderr, ", item %u%s%s there before", (unsigned)(other >> 22 & 1023),
                other >> 19 & FLAG_ITEMS ? " among others" : "",
                other >> 32 < group_era ? ", of another group," : "");
    fprintf(stderr, "\n");
    print_here(from);
    if (other) {
        fprintf(stderr, "      before:\n");
        print_lines(where - 1);
    }
    return true;
}

/* ---- races -------------------------------------------------------------------------------- */

/* Who left the stamp, and the item of `me`, did not meet. Of a group's memory only what is of this
 * group counts: since is its first era. */
static bool
apart(uint64_t stamp, uint64_t me, uint32_t since)
{
    uint32_t era = (uint32_t)(stamp >> 32);

    if (era < since)
        return false;
    if (stamp >> 19 & FLAG_GROUPS)
        return true;
    if (era == now)
        return ((stamp ^ me) >> 22 & 1023) || (stamp >> 19 & FLAG_ITEMS);
    return era < group_era;
}

/* The stamp of `me`, which keeps that others left one in the same era or launch. */
static uint64_t
join(uint64_t stamp, uint64_t me, uint32_t since)
{
    uint32_t era = (uint32_t)(stamp >> 32);

    if (era < since)
        return me;
    if (era == now && (((stamp ^ me) >> 22 & 1023) || (stamp >> 19 & FLAG_ITEMS)))
        me |= FLAG_ITEMS << 19;
    if (era < group_era || (stamp >> 19 & FLAG_GROUPS))
        me |= FLAG_GROUPS << 19;
    return me;
}

static uint64_t
stamp_read(Stamps *s, uint64_t me, uint32_t since)
{
    uint64_t with = apart(s->write, me, since) ? s->write : 0;

    s->read = join(s->read, me, since);
    return with;
}

static uint64_t
stamp_write(Stamps *s, uint64_t me, uint32_t since)
{
    uint64_t with = apart(s->write, me, since) ? s->write : apart(s->read, me, since) ? s->read : 0;

    s->write = me;
    return with;
}

static uint64_t
stamp_atomic(Stamps *s, uint64_t me, uint32_t since)
{
    bool both = s->write >> 19 & FLAG_ATOMIC;
    uint64_t with = !both && apart(s->write, me, since) ? s->write : apart(s->read, me,
        since) ? s->read : 0;

    me |= FLAG_ATOMIC << 19;
    if (both || s->write >> 32 != now) /* else what it wrote plainly in this era stays known */
        s->write = both ? join(s->write, me, since) : me;
    return with;
}

static void
stamp_all(Stamps *s, const void *p, int n, int how, const void *from, uint32_t since)
{
    static const char *const words[] = {"reads", "writes", "changes"};
    Stamps was = {0, 0};
    uint64_t me = (uint64_t)now << 32 | (uint64_t)fake_item() << 22 | (offset_of(from) & 0x7ffff);

    for (int k = 0; k < n; k++) {
        uint64_t other;

        if (k && s[k].write == was.write && s[k].read == was.read) {
            s[k] = s[k - 1]; /* most often all bytes have one history */
            continue;
        }
        was = s[k];
        other = how == READ ? stamp_read(&s[k], me, since)
              : how == WRITE ? stamp_write(&s[k], me, since) : stamp_atomic(&s[k], me, since);

        if (other) {
            report("race", p, n, words[how], from, other);
            break;
        }
    }
}

/* ---- accesses ----------------------------------------------------------------------------- */

/* Of a word that changes at once some bytes may be another's: elements of less than 4 bytes. */
static void
check_bytes(unsigned char *of, const void *p, int n, int how, const void *from)
{
    int set = 0;

    if (of[0] == SET && !memcmp(of, of + 1, (size_t)n - 1)) /* most often all bytes are */
        return;
    if (memchr(of, NONE, (size_t)n)) {
        report("outside", p, n, how == READ ? "reads" : "writes", from, 0);
        return;
    }
    for (int k = 0; k < n; k++)
        set += of[k] == SET;
    if (how != WRITE && set < (how == ATOMIC ? 1 : n))
        report("unset", p, n, "reads", from, 0);
    if (how == WRITE)
        memset(of, SET, (size_t)n);
}

static void
check_shared(const void *p, int n, int how, const void *from)
{
    size_t at = (size_t)((const unsigned char *)p - fake_shared);

    if (at + (size_t)n > SHARED_NBYTES)
        return (void)report("outside", p, n, "accesses", from, 0);
    check_bytes(shared_state + at, p, n, how, from);
    stamp_all(shared_stamps + at, p, n, how, from, group_era);
    for (int k = 0; k < n; k++) {
        if (coming[at + (size_t)k]) {
            report("early", p, n, "uses, before a copy was waited for,", from, 0);
            break;
        }
        if (how != READ)
            wrote_at[at + (size_t)k] = ++tick;
    }
}

/* nbytes < 0: of any alignment. */
void
fake_access(const void *p, int nbytes, int how, const void *from)
{
    int n = nbytes < 0 ? -nbytes : nbytes;
    const char *c = p;

    if (!level())
        return;
    if (how == ATOMIC)
        atomics = true;
    if (nbytes > 1 && (uintptr_t)p % (uintptr_t)nbytes)
        report("outside", p, n, "accesses, not aligned,", from, 0);
    if (of_device(p)) {
        size_t at = (size_t)((const unsigned char *)p - arena);

        check_bytes(state + at, p, n, how, from);
        stamp_all(stamps + at, p, n, how, from, launch_era);
    } else if ((const unsigned char *)p >= fake_shared
               && (const unsigned char *)p < fake_shared + SHARED_NBYTES)
        check_shared(p, n, how, from);
    else if ((c < stack_base || c >= stack_base + (size_t)ITEMS * STACK)
             && (how != READ || c < kernel->module->base || c >= kernel->module->end)) {
        report("outside", p, n, how == READ ? "reads" : "writes", from, 0);
        fake_stop("it cannot go on", "outside");
    }
}

void
fake_check_coming(uint64_t at, int nbytes, const void *from)
{
    if (!level())
        return;
    fake_access(fake_shared + at, nbytes, WRITE, from);
    for (int k = 0; k < nbytes; k++)
        coming[at + (uint64_t)k] = (unsigned short)(fake_item() + 1);
}

void
fake_check_came(uint64_t at, int nbytes, const void *from)
{
    if (!level())
        return;
    memset(&coming[at], 0, (size_t)nbytes * sizeof coming[0]);
    fake_access(fake_shared + at, nbytes, WRITE, from);
}

void fake_check_fence(void) { fenced_at[fake_item()] = ++tick; }

void
fake_check_unit_read(uint64_t at, int nbytes, const void *from)
{
    if (!level())
        return;
    fake_access(fake_shared + at, nbytes, READ, from);
    for (int k = 0; k < nbytes; k++) {
        unsigned writer = shared_stamps[at + (uint64_t)k].write >> 22 & 1023;

        if (visible_at[writer] < wrote_at[at + (uint64_t)k]) {
            report("early", fake_shared + at, nbytes, "reads by its matrix unit, not fenced,",
                from, 0);
            return;
        }
    }
}

/* ---- time --------------------------------------------------------------------------------- */

void
fake_check_launch(Function *f, const char *stacks)
{
    kernel = f;
    stack_base = stacks;
    launch_era = ++now;
    atomics = false;
}

void
fake_check_launched(void)
{
    char n[60];

    if (!nfound)
        return;
    snprintf(n, sizeof n, "%d reports", nfound);
    fake_stop("FAKE_CHECK", n);
}

void
fake_check_group(unsigned group)
{
    group_now = group;
    group_era = ++now;
    if (!level() || !*kernel->module->waits)
        return;
    memset(shared_state, NONE, placed);
    memset(coming, 0, placed * sizeof coming[0]);
    placed = 0;
    memset(fenced_at, 0, sizeof fenced_at);
    memset(visible_at, 0, sizeof visible_at);
}

/* The first item that names it: nothing is known of it. */
void
fake_check_place(uint64_t at, uint64_t nbytes)
{
    if (at + nbytes <= placed)
        return;
    placed = at + nbytes;
    memset(shared_state + at, UNSET, nbytes);
}

void
fake_check_barrier(void)
{
    now++;
    memcpy(visible_at, fenced_at, sizeof visible_at);
}

/* ---- once more, in another order ---------------------------------------------------------- */

static unsigned char *
take_memory(uint64_t *nbytes)
{
    unsigned char *copy, *to;

    *nbytes = 0;
    for (int k = 0; k < nblocks; k++)
        *nbytes += block[k].nbytes;
    if (*nbytes > (uint64_t)64 << 20)
        return NULL;
    to = copy = malloc(*nbytes);
    for (int k = 0; k < nblocks; to += block[k++].nbytes)
        memcpy(to, arena + block[k].at, block[k].nbytes);
    return copy;
}

static void
set_memory(const unsigned char *from)
{
    for (int k = 0; k < nblocks; from += block[k++].nbytes)
        memcpy(arena + block[k].at, from, block[k].nbytes);
}

bool
fake_check_again(int times)
{
    static unsigned char *before, *after;
    uint64_t nbytes;
    bool again = false;

    if (times == 0) {
        before = level() > 1 ? take_memory(&nbytes) : NULL;
        return true;
    }
    if (times == 1 && before && !atomics && !nfound && (after = take_memory(&nbytes)) != NULL) {
        set_memory(before);
        again = true;
    } else if (times == 2) {
        unsigned char *other = take_memory(&nbytes);

        if (memcmp(after, other, nbytes) != 0)
            fake_stop("order", "the items' and groups' order makes a difference");
        free(other);
        free(after);
    }
    if (!again)
        free(before);
    return again;
}
