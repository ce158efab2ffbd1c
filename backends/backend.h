/* backends/backend.h - what a backend is: a table of functions that allocate, compile and launch.
 *
 * The plan (backends/plan.c) turns a graph into kernels and calls these. The interpreter has no
 * `compile`: it runs graph nodes (backends/interp.c). An absent optional function says so here.
 *
 * Read before: ops/graph.h, ccode/ir.h. After: backends/plan.c, interp.c, tcc.c, cc.c. */
#ifndef JOT_BACKEND_H
#define JOT_BACKEND_H
#include "ops/graph.h"

/* One signature for all CPU kernels. buf: one pointer per buffer of the kernel, in its order; ints:
 * symbolic extents (none yet); scalars: run-time literals and seeds, in the form of Node.value;
 * scratch: `scratch_nbytes` of the kernel's info, 64-byte aligned; phase: 0; [lo, hi): range of the
 * outermost parallel loop. */
typedef void KernelFn(void *const *buf, const int64_t *ints, const jot_Scalar *scalars,
                      void *scratch, int64_t phase, int64_t lo, int64_t hi);

typedef struct {
    const char *name;      /* the function to look up */
    KernelFn *fn;          /* out */
} KernelSym;

/* A share of a parallel loop, on worker number `worker`. */
typedef void ParallelFn(void *arg, int64_t lo, int64_t hi, int worker);

typedef struct Backend Backend;
struct Backend {
    const char *name;      /* what JOT_BACKEND selects */
    const char *dialect;   /* name of the Dialect its kernels are printed in; NULL: no kernels */
    int rank;              /* preference when nothing is selected: the highest that opens wins */
    /* JOT_EDEVICE with a message in ctx's log (not in its status) when something is missing */
    jot_Status (*open)(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes);
    void (*close)(Backend *backend, jot_Ctx *ctx);
    /* Compile a self-contained text and find n functions in it. On failure: jot_fail with
     * JOT_ECOMPILE showing `what` (kernel names and operators), the compiler's own message and the
     * command. *module keeps the code alive until unload. NULL function: no kernels. */
    bool (*compile)(Backend *backend, jot_Ctx *ctx, const char *what, const char *text,
                    size_t nbytes, KernelSym *sym, int n, void **module);
    void (*unload)(Backend *backend, jot_Ctx *ctx, void *module);
    /* Have [0, count) run in pieces, several at a time, and wait. NULL: nothing runs at a time. */
    void (*parallel)(Backend *backend, int64_t count, ParallelFn *body, void *arg);
    int workers;           /* worker numbers are below this; 0 counts as 1 */
    struct Pool *pool;     /* backends/pool.c */
    void *state;           /* the backend's own */
};

/* The table of what was built in, in order of rank; core.c opens one. */
extern const Backend *const jot_backends[];

#endif
