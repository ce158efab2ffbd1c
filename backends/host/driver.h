/* backends/host/driver.h - a device's backend, but for the calls of its driver: OpenCL's and CUDA's
 * are a table of these (backends/opencl/opencl.c, backends/cuda/cuda.c) under one mechanism
 * (backends/host/driver.c).
 *
 *     plan  ->  Device, compile, unload     who is told of a failure, the cache, what is kept idle
 *                  `->  DriverCalls         one call of the driver or a few, and its status
 *
 * Read before: backends/host/host.h. After: backends/host/driver.c. */
#ifndef JOT_DRIVER_H
#define JOT_DRIVER_H
#include "backends/host/host.h"
#ifndef JOT_NO_HOST

/* Memory of the host that a device copies to by itself, and a copy to it. */
typedef struct Pinned {
    struct Pinned *next;   /* of those that are idle: the one used last first */
    void *host;
    size_t room;
    void *buffer, *done;   /* the driver's: what it is there; the event of the copy's end */
} Pinned;

/* A backend's state begins with this. */
typedef struct Driver Driver;

/* What a driver does. A status is 0 where it was done. */
typedef struct {
    size_t nbytes;         /* of the state */
    /* Open it, with the limits of the target. False: *why says why, `stop` follows. */
    bool (*start)(Driver *d, jot_Ctx *ctx, char *why, size_t why_nbytes);
    void (*stop)(Driver *d, jot_Ctx *ctx); /* of whatever start did; jot_driver_unpin among it */
    /* Around all calls below but `make`: the driver's context is this thread's. NULL: it has none
     * such. False: it is lost. */
    bool (*enter)(Driver *d);
    void (*leave)(Driver *d);
    const char *(*text)(Driver *d, int status);
    bool (*no_memory)(int status);
    int (*alloc)(Driver *d, size_t nbytes, void **mem);
    int (*release)(Driver *d, void *mem);
    int (*upload)(Driver *d, void *to, void *from, size_t nbytes);
    int (*download)(Driver *d, void *to, void *from, size_t nbytes);
    int (*copy)(Driver *d, void *to, size_t to_at, void *from, size_t from_at, size_t nbytes);
    int (*finish)(Driver *d);
    /* Code of a text: an object, which may be kept, or code and the object. False: told. */
    bool (*make)(Driver *d, jot_Ctx *ctx, const char *what, Bytes text, void **code, Bytes *object);
    int (*load)(Driver *d, Bytes object, void **code);
    int (*kernel)(Driver *d, void *code, KernelSym *sym); /* named sym->name */
    void (*unload)(Driver *d, void *code, void *const *kernel, int n); /* kernels NULL: not found */
    int (*pin)(Driver *d, Pinned *p);    /* p->room of memory */
    void (*unpin)(Driver *d, Pinned *p); /* as far as it is there */
    /* A copy to p, behind the work queued so far, beside what follows. */
    int (*fetch)(Driver *d, Pinned *p, void *mem, size_t nbytes);
    int (*fetched)(Driver *d, Pinned *p);      /* the host waits for its end */
    int (*fetch_before)(Driver *d, Pinned *p); /* work queued from now on does */
    Device own;            /* launches and replays; the rest is of all drivers */
} DriverCalls;

struct Driver {
    const DriverCalls *calls;
    Device device;
    Cache cache;
    char key[700], name[128]; /* what code depends on besides its text; the device's name */
    size_t most_nbytes;    /* of one piece of memory; 0: any */
    Pinned *idle;
};

JOT_FN jot_Status jot_driver_open(Backend *backend, jot_Ctx *ctx, const DriverCalls *calls,
                                  char *why, size_t why_nbytes);
/* False: the context is lost, which is told, unless `what` is NULL. */
JOT_FN bool jot_driver_enter(Driver *d, jot_Ctx *ctx, const char *what);
JOT_FN void jot_driver_leave(Driver *d);
/* ... and tells the failure; true: the status is 0. */
JOT_FN bool jot_driver_done(Driver *d, jot_Ctx *ctx, const char *what, int status);
JOT_FN bool jot_driver_failed(Driver *d, jot_Ctx *ctx, const char *what, int status); /* false */
JOT_FN void jot_driver_unpin(Driver *d, jot_Ctx *ctx); /* what is idle */

/* Backend's functions of these names. */
JOT_FN void jot_driver_close(Backend *backend, jot_Ctx *ctx);
JOT_FN bool jot_driver_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text,
                               size_t nbytes, KernelSym *sym, int n, void **module);
JOT_FN void jot_driver_unload(Backend *backend, jot_Ctx *ctx, void *module);

#endif
#endif
