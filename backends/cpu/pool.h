/* backends/cpu/pool.h - the thread pool of a context: pieces of one kernel's parallel loop, several
 * at a time.
 *
 * A kernel's iterations of its outermost parallel loop are independent of each other, so results do
 * not depend on how many threads there are or who runs what.
 *
 * Read before: backends/backend.h. After: backends/cpu/pool.c. */
#ifndef JOT_POOL_H
#define JOT_POOL_H
#include "backends/backend.h"
#ifndef JOT_NO_HOST

/* Give the backend workers: config.threads of them, the caller among them. Threads start at the
 * first use. Without memory or threads the backend stays as it is: one worker. */
JOT_FN void jot_pool_attach(Backend *backend, jot_Ctx *ctx);
JOT_FN void jot_pool_detach(Backend *backend, jot_Ctx *ctx);

#endif
#endif
