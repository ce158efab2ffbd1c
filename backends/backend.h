/* backends/backend.h - what a backend is: a table of functions that allocate, compile and launch.
 *
 * The plan (plan/plan.c) turns a graph into kernels and calls these. The interpreter has no
 * `compile`: it runs graph nodes (backends/interp.c). An absent optional function says so here.
 *
 * Read before: ops/graph.h, ccode/ir/ir.h. After: plan/plan.c, interp.c,
 * backends/cpu/tcc.c, backends/cpu/cc.c. */
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
    KernelFn *fn;          /* out; on a device: jot_plan_no_fn, and `kernel` is set */
    const char *text;      /* its definition within the text, the key of `recall`; NULL: it is not
                              cached on its own */
    size_t group_nbytes;   /* on a device: memory that launches give to a group, at most */
    void *kernel;          /* out: a device's kernel, for Launch; else NULL */
    int items;             /* out: most items of a work-group for it; 0: as many as planned */
} KernelSym;


/* One launch of a kernel on a device. Its arguments, in this order (ccode/device/emit_device.c): of
 * each buffer memory and offset (on OpenCL in units of 64 bytes), the same of its scratch, its
 * scalars, phase, lo, hi. */
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
    size_t group_nbytes;       /* memory that a group is given, beside its text's arrays */
} Launch;

typedef struct Backend Backend;
/* The backend's own: a copy on its way to the host; launches that are handed over together. */
typedef struct DeviceCopy DeviceCopy;
typedef struct DeviceReplay DeviceReplay;

/* A device: memory and kernels outside of this process. Work is queued and done in order; only
 * download and finish wait for it. Functions report failures by jot_fail (unless they say
 * otherwise) and leave the context usable. */
typedef struct {
    /* NULL: too little memory, which is not reported, or another failure, which is */
    void *(*alloc)(Backend *backend, jot_Ctx *ctx, size_t nbytes);
    size_t (*most)(const Backend *backend); /* bytes of one alloc, 0: any; NULL: not known */
    void (*release)(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes);
    /* `from` may change as soon as upload returns */
    bool (*upload)(Backend *backend, jot_Ctx *ctx, void *mem, const void *from, size_t nbytes);
    bool (*download)(Backend *backend, jot_Ctx *ctx, void *to, void *mem, size_t nbytes);
    bool (*launch)(Backend *backend, jot_Ctx *ctx, const Launch *launch);
    bool (*finish)(Backend *backend, jot_Ctx *ctx);
    /* within the device, in order; NULL: it cannot. Loops copy slices, benchmarks compare kernels
     * with it */
    bool (*copy)(Backend *backend, jot_Ctx *ctx, void *to, size_t to_at, void *from,
                 size_t from_at, size_t nbytes);
    /* Begin a copy to the host that waits for the work queued before it and runs beside the work
     * queued after it. NULL: refused, which is not reported; use download. The function may be
     * NULL: always use download. */
    DeviceCopy *(*fetch)(Backend *backend, jot_Ctx *ctx, void *mem, size_t nbytes);
    /* Wait for the copy and return its elements, valid until fetch_end, which waits, too, and frees
     * the copy. NULL after a failure. */
    const void *(*fetched)(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy);
    void (*fetch_end)(Backend *backend, jot_Ctx *ctx, DeviceCopy *copy);
    /* Work queued from now on waits for the copy. */
    void (*fetch_before)(Backend *backend, DeviceCopy *copy);
    /* Collect the launches between these two calls and submit them as one, in order (CUDA graphs).
     * *replay is kept by the caller and makes it cheaper to submit the same kernels again, with any
     * arguments. Nothing but launches may come between. The functions may be NULL; if begin returns
     * false, launches are submitted one by one. */
    bool (*replay_begin)(Backend *backend, jot_Ctx *ctx, DeviceReplay **replay);
    bool (*replay_end)(Backend *backend, jot_Ctx *ctx, bool ok); /* ok false: drop them */
    void (*replay_free)(Backend *backend, jot_Ctx *ctx, DeviceReplay *replay);
} Device;

/* Runs [lo, hi) of a parallel loop on worker number `worker`. */
typedef void ParallelFn(void *arg, int64_t lo, int64_t hi, int worker);

/* A compilation in the background; the backend's own record begins with this. */
typedef struct {
    jot_Status status;     /* after JOB_FAILED: why */
    const char *message;
} CompileJob;
typedef enum { JOB_RUNS, JOB_DONE, JOB_FAILED } JobState;

struct Backend {
    const char *name;      /* what JOT_BACKEND selects */
    const char *compilers; /* jot_compilers; NULL: no kernels */
    const char *dialect;   /* name of the Dialect its kernels are printed in; NULL: no kernels */
    int rank;              /* preference when nothing is selected: the highest that opens wins */
    /* JOT_EDEVICE when something is missing: the reason goes to `why`, not to ctx's status */
    jot_Status (*open)(Backend *backend, jot_Ctx *ctx, char *why, size_t why_nbytes);
    void (*close)(Backend *backend, jot_Ctx *ctx);
    /* Compile a self-contained text and find n functions in it. On failure: jot_fail with
     * JOT_ECOMPILE showing `what` (kernel names and operators), the compiler's own message and the
     * command. *module keeps the code alive until unload. NULL function: no kernels. */
    bool (*compile)(Backend *backend, jot_Ctx *ctx, const char *what, const char *text,
                    size_t nbytes, KernelSym *sym, int n, void **module);
    void (*unload)(Backend *backend, jot_Ctx *ctx, void *module);
    /* Find the function sym->name with the text sym->text in the cache of compiled code. *module
     * NULL: search everything, and set *module and *unit, the text that it was compiled from (in
     * ctx's memory, 0-terminated). Otherwise search that module, whose text is *unit. The function
     * is NULL where there is no cache. */
    bool (*recall)(Backend *backend, jot_Ctx *ctx, KernelSym *sym, void **module, Text *unit);
    /* What was kept last under these two, whole and of this very build of the library: behind *at
     * in *out, in ctx's memory; empty: nothing is there. False: nothing can be kept. The second:
     * false: not yet. The functions are NULL where there is no cache. */
    bool (*kept)(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, Text *out,
                 size_t *at);
    bool (*keep)(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, const Text *what);
    /* Two tiers (backends/cpu/cpu.c). quick: the backend that compiles fast to slower code; NULL:
     * there is one tier. start: as `compile`, but in the background; text and symbols are copied;
     * returns NULL when it cannot now (then use `compile`). look: the state of a job, after waiting
     * for its end as long as that is expected in less than `most` seconds (0: no wait); *left:
     * estimated seconds until then. end: frees the job; if it is done, fills in
     * sym[0..n) and passes *module to the caller (sym NULL: the result is dropped). */
    Backend *quick;
    CompileJob *(*start)(Backend *backend, jot_Ctx *ctx, const char *what, const char *text,
                         size_t nbytes, const KernelSym *sym, int n);
    JobState (*look)(Backend *backend, jot_Ctx *ctx, CompileJob *job, double most, double *left);
    void (*end)(Backend *backend, jot_Ctx *ctx, CompileJob *job, KernelSym *sym, void **module);
    /* If ctx->target.late: measure the machine's rates, keep them and clear `late`. NULL: it
     * is never set. */
    void (*measure)(Backend *backend, jot_Ctx *ctx);
    /* Run body over [0, count) in pieces on several threads and wait. NULL: one thread. */
    void (*parallel)(Backend *backend, int64_t count, ParallelFn *body, void *arg);
    int workers;           /* worker numbers are below this; 0 counts as 1 */
    struct Pool *pool;     /* backends/cpu/pool.c */
    void *state;           /* the backend's own */
    const Device *device;  /* NULL: kernels are functions of this process, on host memory */
};

/* The table of what was built in, in order of rank; core.c opens one. */
extern const Backend *const jot_backends[];

#endif
