/* tests/fake_items.c - the items of a kernel, on the processor: group after group, those of one as
 * fibers that change where they wait for each other.
 *
 *     item   0 .. barrier     1 .. barrier     2 .. barrier     all are there     2 ..     0 ..
 *
 * Who waits for others must meet all of them, at the same place of the text: a barrier that some
 * items pass by, or an instruction of a warp that not all of it reach, ends the program.
 *
 * Read before: tests/fake_cuda.h. After: tests/fake_ptx.c, tests/fake_check.c. */
#define _GNU_SOURCE
#include "tests/fake_cuda.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

unsigned char fake_shared[SHARED_NBYTES] __attribute__((aligned(1024)));
typedef void *Place[5];                      /* what __builtin_setjmp keeps */
static ucontext_t item[ITEMS];               /* where each begins, the first time */
static Place scheduler, place[ITEMS];        /* ... and goes on, without a call of the system */
static char *stack;
static unsigned long taken[ITEMS];
static struct { ItemState state; const char *why; int line; } waits[ITEMS];
static bool done[ITEMS], begun[ITEMS];       /* begun: there is a fiber, in whichever group */
static unsigned present, running, nitems, turn[ITEMS]; /* turn: who comes when */
static unsigned given, took[ITEMS]; /* bytes at the launch; ... of those that an item named */
static Function *called;
static void **arguments;
static uint32_t drawn, once_more; /* the other order, to compare */

int fake_item(void) { return (int)present; }

void
fake_stop(const char *what, const char *text)
{
    fprintf(stderr, "fake_cuda: %s%s%s: %s\n", called ? called->name : "", called ? ": " : "", what,
            text);
    abort();
}

uint32_t
fake_order(void)
{
    const char *order = getenv("FAKE_ORDER");

    return order && *order ? (uint32_t)strtoul(order, NULL, 10) : 0;
}

uint32_t
fake_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* The library is opened again and again. */
static void __attribute__((destructor))
give_back(void)
{
    if (stack)
        munmap(stack, (size_t)ITEMS * STACK);
}

/* Forward by 0, backward by 1, else drawn. */
static void
draw_turns(unsigned *to, unsigned n)
{
    uint32_t order = once_more ? ++once_more : fake_order();

    for (unsigned i = 0; i < n; i++)
        to[i] = order == 1 ? n - 1 - i : i;
    for (unsigned i = n; order > 1 && i > 1; i--) {
        unsigned j = fake_random(&drawn) % i, other = to[j];

        to[j] = to[i - 1];
        to[i - 1] = other;
    }
}

static void __attribute__((noinline, noreturn)) /* not where __builtin_setjmp is */
jump(Place to)
{
    __builtin_longjmp(to, 1);
}

/* From an item back to who let it go on; it goes on from here. */
static void
change_over(void)
{
    if (!__builtin_setjmp(place[present]))
        jump(scheduler);
}

/* ---- what a text calls -------------------------------------------------------------------- */

void
fake_wait(ItemState with, const char *why, int line)
{
    waits[present].state = with;
    waits[present].why = why;
    waits[present].line = line;
    change_over();
}

static void
item_waits(int line)
{
    fake_ptx_barrier();
    fake_wait(WAITS_GROUP, "__syncthreads", line);
}

/* An array of the group's memory: each item names them in the same order. Between two lies room
 * that is no one's. Those of whole KiB begin at one, which units that change addresses ask for. */
static void *
item_takes(unsigned long nbytes)
{
    unsigned long to = nbytes % 1024 ? 16 : 1024, at = (taken[present] + to - 1) / to * to;

    taken[present] = (at + nbytes + 15) / 16 * 16 + 64;
    if (taken[present] - took[present] > STATIC_SHARED + ROOM_SHARED)
        fake_stop("arrays of a group are too large", "__shared__");
    if (taken[present] > fake_group_nbytes() + ROOM_SHARED)
        fake_stop("a group has not as much memory", "__shared__");
    fake_check_place(at, nbytes);
    return fake_shared + at;
}

/* What the launch gives. */
static void *
item_given(void)
{
    took[present] = given;
    return item_takes(given);
}

static unsigned long
item_offset(const void *p)
{
    return (unsigned long)((const unsigned char *)p - fake_shared);
}

static void
set(Module *m, const char *name, const void *function)
{
    void *at = dlsym(m->library, name);

    if (at)
        memcpy(at, function, sizeof(void *));
}

void
fake_bind(Module *m)
{
    void (*waits_)(int) = item_waits;
    void *(*takes)(unsigned long) = item_takes;
    void *(*gives)(void) = item_given;
    unsigned long (*offset)(const void *) = item_offset;
    void (*ptx)(const char *, FakeOperand *, int, int) = fake_ptx;
    void (*access)(const void *, int, int, const void *) = fake_access;

    set(m, "fake_sync", &waits_);
    set(m, "fake_take", &takes);
    set(m, "fake_given", &gives);
    set(m, "fake_offset", &offset);
    set(m, "fake_ptx", &ptx);
    set(m, "fake_access", &access);
}

/* ---- a group ------------------------------------------------------------------------------ */

static void
item_body(void)
{
    called->go(arguments);
    fake_ptx_end((int)present);
    running--;
    done[present] = true;
}

/* Nobody waits for another: one after the other. */
static void
group_body(void)
{
    for (unsigned k = 0; k < nitems; k++) {
        present = turn[k];
        called->module->thread->x = present;
        called->go(arguments);
    }
    running = present = 0;
}

/* An item of one group after the other. */
static void
fiber(void)
{
    for (;; change_over())
        if (*called->module->waits)
            item_body();
        else
            group_body();
}

static void
begin_item(unsigned i)
{
    done[i] = false;
    taken[i] = took[i] = 0;
    waits[i].state = RUNS;
}

/* Until it waits or ends. */
static void
go_on(unsigned i)
{
    present = i;
    called->module->thread->x = i;
    if (__builtin_setjmp(scheduler))
        return;
    if (begun[i])
        jump(place[i]);
    begun[i] = true;
    getcontext(&item[i]);
    item[i].uc_stack.ss_sp = stack + (size_t)i * STACK;
    item[i].uc_stack.ss_size = STACK;
    item[i].uc_link = NULL;
    makecontext(&item[i], fiber, 0);
    setcontext(&item[i]);
}

static void
check_met(unsigned first, unsigned n, ItemState with)
{
    char text[200];

    for (unsigned i = first; i < first + n; i++) {
        if (i >= nitems || done[i])
            snprintf(text, sizeof text, "item %u %s, item %u waits (%s, line %d)", i,
                     i < nitems ? "has ended" : "is none", first, waits[first].why,
                         waits[first].line);
        else if (waits[i].why != waits[first].why || waits[i].line != waits[first].line)
            snprintf(text, sizeof text, "item %u at %s (line %d), item %u at %s (line %d)", first,
                     waits[first].why, waits[first].line, i, waits[i].why, waits[i].line);
        else
            continue;
        fake_stop(with == WAITS_GROUP ? "divergent barrier" : "divergent warp", text);
    }
}

/* Those that wait for the others of n items, if these are all there. */
static bool
let_go(unsigned n, ItemState with)
{
    bool any = false;

    for (unsigned first = 0; first < nitems; first += n) {
        unsigned i, end = first + n < nitems ? first + n : nitems, here = 0, one = first;

        for (i = first; i < end && (done[i] || waits[i].state == with); i++)
            if (!done[i])
                one = i, here++;
        if (i < end || !here)
            continue;
        if (here < n && done[first])
            waits[first] = waits[one];
        check_met(first, n, with);
        for (i = first; i < end; i++)
            waits[i].state = RUNS;
        any = true;
    }
    if (any && with == WAITS_GROUP)
        fake_check_barrier();
    return any;
}

static void
run_fibers(void)
{
    fake_ptx_begin(nitems);
    for (unsigned i = 0; i < nitems; i++)
        begin_item(i);
    for (running = nitems; running > 0;) {
        for (unsigned k = 0; k < nitems; k++)
            while (!done[turn[k]] && waits[turn[k]].state == RUNS)
                go_on(turn[k]);
        if (running > 0 && !let_go(32, WAITS_WARP) && !let_go(128, WAITS_WARPS)
            && !let_go(nitems, WAITS_GROUP))
            fake_stop("divergent barrier", "items wait for others that do not come");
    }
}

static void
run_group(unsigned group)
{
    Module *m = called->module;

    m->block->x = group;
    draw_turns(turn, nitems);
    fake_check_group(group);
    if (*m->waits) {
        memset(fake_shared, 0xa5, STATIC_SHARED + ROOM_SHARED + given);
        run_fibers();
        return;
    }
    begin_item(0);
    go_on(0);
}

void
fake_run(Function *f, unsigned groups, unsigned items, unsigned nbytes, void **args)
{
    Module *m = f->module;
    unsigned *order = malloc((size_t)groups * sizeof *order);

    if (!stack)
        stack = mmap(NULL, (size_t)ITEMS * STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    called = f;
    arguments = args;
    nitems = items;
    given = nbytes;
    if (items > f->most)
        fake_stop("a group of more items than the text allows", "__launch_bounds__");
    drawn = fake_order();
    m->block_dim->x = items;
    m->grid_dim->x = groups;
    for (int times = 0; fake_check_again(times); times++) {
        once_more = times ? 2 : 0;
        draw_turns(order, groups);
        fake_check_launch(f, stack);
        for (unsigned k = 0; k < groups; k++)
            run_group(order[k]);
    }
    once_more = 0;
    fake_check_launched();
    called = NULL;
    free(order);
}
