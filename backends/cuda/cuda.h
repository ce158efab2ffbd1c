/* backends/cuda/cuda.h - what the files of the CUDA backend share: the driver's functions, as far
 * as they are used, and the backend's state.
 *
 * Read before: backends/host/driver.h. After: backends/cuda/cuda.c, backends/cuda/graph.c. */
#ifndef JOT_CUDA_H
#define JOT_CUDA_H
#include "backends/cuda/nvrtc.h"
#include "backends/host/driver.h"
#ifndef JOT_NO_HOST

typedef struct CudaObject *CudaHandle; /* context, module, function, stream, event */
typedef uint64_t CudaPointer;

enum {
    CUDA_NO_MEMORY = 2, CUDA_NO_CONTEXT = 201,
    CUDA_MAJOR = 75, CUDA_MINOR = 76, CUDA_GROUP_NBYTES = 97, CUDA_GIVEN_NBYTES = 8,
    CUDA_NO_TIMING = 2, CUDA_NON_BLOCKING = 1
};

typedef struct {
    int (*init)(unsigned);
    int (*driver_version)(int *);
    int (*count)(int *);
    int (*device)(int *, int);
    int (*name)(char *, int, int);
    int (*attribute)(int *, int, int);
    int (*retain)(CudaHandle *, int);
    int (*release)(int);
    int (*push)(CudaHandle);
    int (*pop)(CudaHandle *);
    int (*stream)(CudaHandle *, unsigned);
    int (*stream_destroy)(CudaHandle);
    int (*stream_wait)(CudaHandle);
    int (*event)(CudaHandle *, unsigned);
    int (*event_destroy)(CudaHandle);
    int (*event_record)(CudaHandle, CudaHandle);
    int (*event_wait)(CudaHandle);
    int (*wait_event)(CudaHandle, CudaHandle, unsigned);
    int (*alloc)(CudaPointer *, size_t);
    int (*free)(CudaPointer);
    int (*alloc_host)(void **, size_t, unsigned);
    int (*free_host)(void *);
    int (*to_device)(CudaPointer, const void *, size_t, CudaHandle);
    int (*to_host)(void *, CudaPointer, size_t, CudaHandle);
    int (*within)(CudaPointer, CudaPointer, size_t, CudaHandle);
    int (*load)(CudaHandle *, const void *);
    int (*unload)(CudaHandle);
    int (*function)(CudaHandle *, CudaHandle, const char *);
    int (*set)(CudaHandle, int, int); /* of a function */
    int (*launch)(CudaHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  CudaHandle, void **, void **);
    int (*error)(int, const char **);
} CudaFunctions;

/* A kernel in a graph; the driver copies the arguments. */
typedef struct {
    CudaHandle function;
    unsigned groups, groups_y, groups_z, items, items_y, items_z, shared;
    void **argument, **extra;
} CudaGraphKernel;

/* Of drivers of 11.4 and later; all of them or none. */
typedef struct {
    int (*make)(CudaHandle *, unsigned);
    int (*add)(CudaHandle *, CudaHandle, const CudaHandle *, size_t, const CudaGraphKernel *);
    int (*instantiate)(CudaHandle *, CudaHandle, unsigned long long);
    int (*set)(CudaHandle, CudaHandle, const CudaGraphKernel *);
    int (*launch)(CudaHandle, CudaHandle);
    int (*destroy_exec)(CudaHandle);
    int (*destroy)(CudaHandle);
} CudaGraphFunctions;

enum { CUDA_PIECE = 4 << 20, CUDA_ARGUMENTS = 512 };

typedef struct {
    Driver driver;
    void *library;
    CudaFunctions cu;
    CudaGraphFunctions graph; /* make NULL: the driver has none */
    Nvrtc *nvrtc;
    int device, arch;       /* 90 for 9.0 */
    int target;             /* what NVRTC compiles for */
    int group_nbytes;       /* memory that a group may have, if it is given at the launch */
    bool retained;
    CudaHandle context, stream, fetches; /* the second stream: copies to the host */
    void *piece[2];         /* pinned */
    CudaHandle moved[2];    /* events: the piece has been copied */
    CudaHandle made;        /* event: what is fetched has been computed */
    DeviceReplay *replay;   /* launches are noted there for the time being */
} Cuda;

/* backends/cuda/graph.c: the Device's functions of the same names; and a launch of `replay`, its n
 * arguments of 8 bytes each. */
JOT_FN bool jot_cuda_replay_begin(Backend *backend, jot_Ctx *ctx, DeviceReplay **replay);
JOT_FN bool jot_cuda_replay_end(Backend *backend, jot_Ctx *ctx, bool ok);
JOT_FN void jot_cuda_replay_free(Backend *backend, jot_Ctx *ctx, DeviceReplay *replay);
JOT_FN bool jot_cuda_note(Cuda *c, jot_Ctx *ctx, const Launch *l, const uint64_t *value, int n);
JOT_FN int jot_cuda_launch(Cuda *c, CudaHandle function, unsigned groups, unsigned items,
                           unsigned given, uint64_t *value, int n);

#endif
#endif
