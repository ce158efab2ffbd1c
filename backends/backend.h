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
 * the numbers of a text that lacks them (EmitInfo.ints); scalars: run-time literals and seeds, in
 * the form of Node.value; scratch: `scratch_nbytes` of the kernel's info, 64-byte aligned; phase:
 * 0; [lo, hi): range of the outermost parallel loop. */
typedef void KernelFn(void *const *buf, const int64_t *ints, const jot_Scalar *scalars,
                      void *scratch, int64_t phase, int64_t lo, int64_t hi);

typedef struct {
    const char *name;      /* the function to look up */
    KernelFn *fn;          /* out; of a device: jot_device_fn, which says that `kernel` is there */
    const char *text;      /* its definition as it stands in the text, for `recall`; NULL: not kept
                              by itself */
    void *kernel;          /* out: a device's kernel, for Launch; else NULL */
    int items;             /* out: most items of a work-group of it; 0: as many as were planned */
} KernelSym;

JOT_FN KernelFn jot_device_fn; /* backends/plan_device.c: nobody calls it */

/* One launch of a kernel on a device. Its arguments, in this order (ccode/emit_device.c): of each
 * buffer memory and offset (on OpenCL in units of 64 bytes), the same of its scratch, its scalars,
 * phase, lo, hi. */
typedef struct {
    void *kernel;
    const char *name;          /* for messages */
    int nbufs;
    void *const *mem;          /* nbufs of them, then the scratch's */
    const size_t *offset;
    int nscalars;
    const jot_Scalar *scalar;  /* in the form of Node.value */
    const uint8_t *dtype;      /* of each scalar */
    int32_t phase;
    int64_t lo, hi;
    int64_t groups, items;     /* work-groups at least, and items of one */
} Launch;

typedef struct Backend Backend;
/* The backend's own: a copy on its way to the host; launches that are handed over together. */
typedef struct DeviceCopy DeviceCopy;
typedef struct DeviceReplay DeviceReplay;

/* Memory and kernels elsewhere than in this process. Work is done in the order in which it was
 * handed over; only download and finish wait for it. A failure is told by jot_fail, leaves nothing
 * behind, and the context can be used again. */
typedef struct {
    /* NULL: there is not as much, or jot_fail told what else it is */
    void *(*alloc)(Backend *backend, jot_Ctx *ctx, size_t nbytes);
    size_t (*most)(const Backend *backend); /* bytes of one alloc, 0: any; NULL: not known */
    void (*release)(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes);
    /* `from` may change as soon as upload returns */
    bool (*upload)(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes);
    bool (*download)(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes);
    bool (*launch)(Backend *backend, jot_Ctx *ctx, const Launch *launch);
    bool (*finish)(Backend *backend, jot_Ctx *ctx);
    /* within the device, in order; NULL: it cannot. What a kernel's traffic is measured against */
    bool (*copy)(Backend *backend, jot_Ctx *ctx, void *to, void *from, size_t nbytes);
    /* A copy to the host beside what is handed over after it: it begins when all that was handed
     * over before is done. NULL: refused, and nothing is told; NULL function: download has to
     * do. */
    DeviceCopy *(*fetch)(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes);
    /* Wait for it: the elements, until fetch_end, which is its last use and waits, too. NULL: a
     * failure, which jot_fail told. */
    const void *(*fetched)(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy);
    void (*fetch_end)(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy);
    /* What is handed over from now on begins when the copy is done. */
    void (*fetch_before)(Backend *backend, DeviceCopy *copy);
    /* Launches between these two are handed over as one, in their order, by replay_end: what is
     * kept in *replay makes the next time cheaper that the same kernels are launched so, with any
     * arguments. Nothing but launches comes between. NULL functions: launches go one by one. begin:
     * false if that is what happens now. */
    bool (*replay_begin)(Backend *backend, jot_Ctx *ctx, DeviceReplay **replay);
    bool (*replay_end)(Backend *backend, jot_Ctx *ctx, bool ok); /* ok false: drop them */
    void (*replay_free)(Backend *backend, jot_Ctx *ctx, DeviceReplay *replay);
} Device;

/* A share of a parallel loop, on worker number `worker`. */
typedef void ParallelFn(void *arg, int64_t lo, int64_t hi, int worker);

/* A text that is compiled while the program goes on; the backend's record begins with this. */
typedef struct {
    jot_Status status;     /* after JOB_FAILED: why */
    const char *message;
} CompileJob;
typedef enum { JOB_RUNS, JOB_DONE, JOB_FAILED } JobState;

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
    /* Find sym->name, whose text is sym->text, among what was compiled before and kept. *module
     * NULL: anywhere; *module and *unit, the text it was made of, are new then (unit in ctx's
     * memory, a 0 behind). Else in that module, which `unit` came with. NULL function: nothing is
     * kept. */
    bool (*recall)(Backend *backend, jot_Ctx *ctx, KernelSym *sym, void **module, Text *unit);
    /* Two tiers (backends/cpu.c). quick: compiles at once to slower code; NULL: there is one tier.
     * start: `compile`, but beside the program; the text and the symbols are copied; NULL: not now,
     * `compile` will do. look: how it goes; wait: for its end; *left: seconds that it will still
     * take, by estimate. end: the job's last use; if it is done, sym[0..n) get their functions and
     * *module is the caller's (sym NULL: nobody wants them any more). */
    Backend *quick;
    CompileJob *(*start)(Backend *backend, jot_Ctx *ctx, const char *what, const char *text,
                         size_t nbytes, const KernelSym *sym, int n);
    JobState (*look)(Backend *backend, jot_Ctx *ctx, CompileJob *job, bool wait, double *left);
    void (*end)(Backend *backend, jot_Ctx *ctx, CompileJob *job, KernelSym *sym, void **module);
    /* While ctx->target.late: measure the machine's rates and keep them; late no more. NULL: it is
     * never late. */
    void (*measure)(Backend *backend, jot_Ctx *ctx);
    /* Have [0, count) run in pieces, several at a time, and wait. NULL: nothing runs at a time. */
    void (*parallel)(Backend *backend, int64_t count, ParallelFn *body, void *arg);
    int workers;           /* worker numbers are below this; 0 counts as 1 */
    struct Pool *pool;     /* backends/pool.c */
    void *state;           /* the backend's own */
    const Device *device;  /* NULL: kernels are functions of this process, on host memory */
};

/* The table of what was built in, in order of rank; core.c opens one. */
extern const Backend *const jot_backends[];

#endif
