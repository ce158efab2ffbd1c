/* backends/host/pinned.c - pinned memory of the host that waits for the next copy. To pin takes a
 * driver as long as to copy some megabytes, so what a fetch is done with is kept: a few pieces, the
 * one used last first.
 *
 *     fetch       <-  take: large enough and not much too large, or none: the driver is asked
 *     fetch_end   ->  give: one too many: the one that has waited longest goes
 *
 * Read before: backends/host/host.h. After: backends/opencl/fetch.c, backends/cuda/fetch.c. */
#include "backends/host/host.h"
#ifndef JOT_NO_HOST

enum { PINNED_IDLE = 8 };

JOT_FN Pinned *
jot_pinned_take(PinnedIdle *idle, size_t nbytes)
{
    Pinned **link, *p;

    for (link = &idle->first; (p = *link) != NULL; link = &p->next)
        if (p->room >= nbytes && p->room / 4 <= nbytes + 4096) {
            *link = p->next;
            idle->n--;
            return p;
        }
    return NULL;
}

JOT_FN Pinned *
jot_pinned_oldest(PinnedIdle *idle)
{
    Pinned **link = &idle->first, *p = idle->first;

    if (!p)
        return NULL;
    for (; p->next; p = p->next)
        link = &p->next;
    *link = NULL;
    idle->n--;
    return p;
}

JOT_FN Pinned *
jot_pinned_give(PinnedIdle *idle, Pinned *p)
{
    p->next = idle->first;
    idle->first = p;
    return ++idle->n > PINNED_IDLE ? jot_pinned_oldest(idle) : NULL;
}

#endif
