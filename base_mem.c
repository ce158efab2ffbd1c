/* base_mem.c - memory through the user's hook, and what was freed kept for the next who asks.
 *
 *     small   up to SMALL bytes: a list per multiple of 16; given back when the context closes
 *     large   a list per size (whole cache lines), and all of them from the oldest to the newest:
 *
 *                 oldest <-> ... <-> newest          given back after KEEP_TICKS evaluations,
 *                                                    or to make room
 *
 * A training step asks for the same sizes as the one before it, so from the third on it asks the
 * hook for nothing. What is kept never makes more than was in use at one time, but for SLACK:
 * before the hook is asked for more, the oldest go. A kept block holds its own links.
 *
 * Contexts keep (jot_mem_keep), but for config.give_back; a Mem by itself does not, nor does a
 * build that checks addresses (JOT_WATCHED).
 *
 * Read base.h before; base.c after. */
#include "base.h"

enum { SMALL = 512, SMALL_STEP = 16, SMALL_MOST = 8 << 20, LINE = 64, PAGE = 4096 };
enum { SLACK = 16 << 20, KEEP_TICKS = 64 };

struct MemBlock {
    MemBlock *next;               /* in the list of its size: all that a small one has room for */
    MemBlock **link;
    MemBlock *older, *newer;      /* large: in the order of freeing */
    size_t nbytes;
    uint64_t tick;
};

/* The bytes that a request takes from the hook: so that a freed block fits the next of its kind. Of
 * the sizes between, an eighth of a power of two apart, the next graph asks for the same as the one
 * before, which are in a cache. */
static size_t
mem_room(size_t nbytes)
{
    size_t step = nbytes <= SMALL ? SMALL_STEP : nbytes <= 16 * PAGE ? LINE : PAGE;

    while (step < PAGE && 16 * step < nbytes)
        step *= 2;

    if (nbytes > SIZE_MAX - PAGE)
        return nbytes;
    return (nbytes + step - 1) / step * step;
}

static MemBlock **
mem_bucket(Mem *mem, size_t room)
{
    return &mem->large[(room / LINE ^ room / PAGE) % MEM_LARGE];
}

/* ---- the hook ------------------------------------------------------------------------------ */

static void *
mem_hook(Mem *mem, void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q;

    mem->calls++;
    q = mem->hooks.realloc(mem->hooks.ud, p, old_nbytes, new_nbytes);
    if (new_nbytes && !q)
        return NULL;
    mem->held_nbytes += new_nbytes - old_nbytes;
    if (mem->held_nbytes > mem->peak_nbytes)
        mem->peak_nbytes = mem->held_nbytes;
    return q;
}

static void
mem_unlink(Mem *mem, MemBlock *k)
{
    if (k->next)
        k->next->link = k->link;
    *k->link = k->next;
    *(k->older ? &k->older->newer : &mem->oldest) = k->newer;
    *(k->newer ? &k->newer->older : &mem->newest) = k->older;
}

static void
mem_give_back(Mem *mem, MemBlock *k)
{
    mem_unlink(mem, k);
    mem_hook(mem, k, k->nbytes, 0);
}

/* ---- taking and keeping -------------------------------------------------------------------- */

static void *
mem_take_small(Mem *mem, size_t room)
{
    MemBlock **list = &mem->small[room / SMALL_STEP];
    MemBlock *k = *list;

    if (!k)
        return mem_hook(mem, NULL, 0, room);
    *list = k->next;
    mem->small_nbytes -= room;
    return k;
}

static void *
mem_take_large(Mem *mem, size_t room)
{
    size_t most = mem->most_nbytes > mem->live_nbytes + room ? mem->most_nbytes
                                                             : mem->live_nbytes + room;
    MemBlock *k = *mem_bucket(mem, room);
    void *p;

    while (k && k->nbytes != room)
        k = k->next;
    if (k) {
        mem_unlink(mem, k);
        return k;
    }
    while (mem->oldest && mem->held_nbytes + room > most + SLACK)
        mem_give_back(mem, mem->oldest);
    p = mem_hook(mem, NULL, 0, room);
    while (!p && mem->oldest) /* refused: another request may find what lay idle */
        mem_give_back(mem, mem->oldest);
    return p;
}

/* `room` bytes at least, of anything. */
static void *
mem_take(Mem *mem, size_t nbytes)
{
    size_t room = mem_room(nbytes);
    void *p = !mem->keeps ? mem_hook(mem, NULL, 0, room)
            : room <= SMALL ? mem_take_small(mem, room) : mem_take_large(mem, room);

    if (!p) {
        mem->failed = true;
        mem->refused_nbytes = nbytes;
        return NULL;
    }
    mem->live_nbytes += room;
    if (mem->live_nbytes > mem->most_nbytes)
        mem->most_nbytes = mem->live_nbytes;
    return p;
}

static void
mem_keep_large(Mem *mem, MemBlock *k, size_t room)
{
    MemBlock **list = mem_bucket(mem, room);

    k->nbytes = room;
    k->tick = mem->tick;
    k->next = *list;
    k->link = list;
    if (k->next)
        k->next->link = &k->next;
    *list = k;
    k->newer = NULL;
    k->older = mem->newest;
    *(mem->newest ? &mem->newest->newer : &mem->oldest) = k;
    mem->newest = k;
}

static void
mem_put(Mem *mem, void *p, size_t nbytes)
{
    size_t room = mem_room(nbytes);
    MemBlock *k = p;

    mem->live_nbytes -= room;
    if (!mem->keeps || (room <= SMALL && mem->small_nbytes > SMALL_MOST)) {
        mem_hook(mem, p, room, 0);
    } else if (room > SMALL) {
        mem_keep_large(mem, k, room);
    } else {
        k->next = mem->small[room / SMALL_STEP];
        mem->small[room / SMALL_STEP] = k;
        mem->small_nbytes += room;
    }
}

/* ---- what base.h promises ------------------------------------------------------------------ */

JOT_FN void *
jot_mem_realloc(Mem *mem, void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q = NULL;

    if (p && new_nbytes && !JOT_WATCHED && mem_room(old_nbytes) == mem_room(new_nbytes))
        return p;
    if (new_nbytes && !(q = mem_take(mem, new_nbytes)))
        return NULL;
    if (p && q)
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    if (p)
        mem_put(mem, p, old_nbytes);
    return q;
}

JOT_FN void *
jot_mem_new(Mem *mem, size_t count, size_t size)
{
    size_t nbytes = 1; /* of nothing, too, there is a pointer */
    void *p;

    if (size && count > SIZE_MAX / 2 / size) {
        mem->failed = true;
        mem->refused_nbytes = SIZE_MAX;
        return NULL;
    }
    if (count && size)
        nbytes = count * size;
    p = mem_take(mem, nbytes);
    if (p)
        memset(p, 0, nbytes);
    return p;
}

JOT_FN void
jot_mem_free(Mem *mem, void *p, size_t nbytes)
{
    if (p)
        mem_put(mem, p, nbytes ? nbytes : 1);
}

JOT_FN void
jot_mem_keep(Mem *mem, bool keeps)
{
    mem->keeps = keeps && !JOT_WATCHED;
}

JOT_FN void
jot_mem_tick(Mem *mem)
{
    mem->tick++;
    while (mem->oldest && mem->oldest->tick + KEEP_TICKS < mem->tick)
        mem_give_back(mem, mem->oldest);
}

JOT_FN void
jot_mem_close(Mem *mem)
{
    size_t k;

    while (mem->oldest)
        mem_give_back(mem, mem->oldest);
    for (k = 0; k <= SMALL / SMALL_STEP; k++)
        while (mem->small[k]) {
            MemBlock *p = mem->small[k];

            mem->small[k] = p->next;
            mem_hook(mem, p, k * SMALL_STEP, 0);
        }
    mem->small_nbytes = 0;
}
