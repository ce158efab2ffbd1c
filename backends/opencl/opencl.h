/* backends/opencl/opencl.h - what the files of the OpenCL backend share: the loader's functions, as
 * far as they are used (OpenCL 1.2), and the backend's state.
 *
 * Read before: backends/host/driver.h. After: backends/opencl/opencl.c, backends/opencl/find.c. */
#ifndef JOT_OPENCL_H
#define JOT_OPENCL_H
#include "backends/host/driver.h"
#ifndef JOT_NO_HOST

typedef struct OclObject *OclHandle; /* platform, device, context, queue, program, kernel, memory */

enum {
    OCL_MEM_FAILED = -4, OCL_NO_RESOURCES = -5, OCL_NO_HOST_MEMORY = -6, OCL_BUFFER_SIZE = -61,
    OCL_TYPE_CPU = 2, OCL_TYPE_GPU = 4,
    OCL_PLATFORM_VERSION = 0x0901, OCL_PLATFORM_NAME = 0x0902,
    OCL_DEVICE_TYPE = 0x1000, OCL_MAX_DIMENSIONS = 0x1003, OCL_MAX_GROUP = 0x1004,
    OCL_MAX_ITEMS = 0x1005, OCL_MAX_ALLOC = 0x1010, OCL_MAX_PARAMETERS = 0x1017,
    OCL_SINGLE_CONFIG = 0x101B, OCL_LOCAL_NBYTES = 0x1023, OCL_LITTLE_ENDIAN = 0x1026,
    OCL_AVAILABLE = 0x1027, OCL_COMPILER = 0x1028, OCL_DEVICE_NAME = 0x102B,
    OCL_DRIVER_VERSION = 0x102D, OCL_PROFILE = 0x102E, OCL_DEVICE_VERSION = 0x102F,
    OCL_EXTENSIONS = 0x1030, OCL_DOUBLE_CONFIG = 0x1032, OCL_KERNEL_GROUP = 0x11B0,
    OCL_ROUNDED_DIVIDE = 128, OCL_READ_WRITE = 1,
    OCL_BINARY_SIZES = 0x1165, OCL_BINARIES = 0x1166, OCL_BUILD_LOG = 0x1183
};

typedef struct {
    int32_t (*platforms)(uint32_t, OclHandle *, uint32_t *);
    int32_t (*platform_info)(OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*devices)(OclHandle, uint64_t, uint32_t, OclHandle *, uint32_t *);
    int32_t (*device_info)(OclHandle, uint32_t, size_t, void *, size_t *);
    OclHandle (*context)(const intptr_t *, uint32_t, const OclHandle *, void *, void *, int32_t *);
    int32_t (*release_context)(OclHandle);
    OclHandle (*queue)(OclHandle, OclHandle, uint64_t, int32_t *);
    int32_t (*release_queue)(OclHandle);
    OclHandle (*source)(OclHandle, uint32_t, const char **, const size_t *, int32_t *);
    OclHandle (*binary)(OclHandle, uint32_t, const OclHandle *, const size_t *,
                        const unsigned char **, int32_t *, int32_t *);
    int32_t (*build)(OclHandle, uint32_t, const OclHandle *, const char *, void *, void *);
    int32_t (*build_info)(OclHandle, OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*program_info)(OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*release_program)(OclHandle);
    OclHandle (*kernel)(OclHandle, const char *, int32_t *);
    int32_t (*release_kernel)(OclHandle);
    int32_t (*kernel_info)(OclHandle, OclHandle, uint32_t, size_t, void *, size_t *);
    int32_t (*argument)(OclHandle, uint32_t, size_t, const void *);
    OclHandle (*memory)(OclHandle, uint64_t, size_t, void *, int32_t *);
    int32_t (*release_memory)(OclHandle);
    int32_t (*read)(OclHandle, OclHandle, uint32_t, size_t, size_t, void *, uint32_t,
                    const OclHandle *, OclHandle *);
    int32_t (*write)(OclHandle, OclHandle, uint32_t, size_t, size_t, const void *, uint32_t,
                     const OclHandle *, OclHandle *);
    int32_t (*run)(OclHandle, OclHandle, uint32_t, const size_t *, const size_t *, const size_t *,
                   uint32_t, const OclHandle *, OclHandle *);
    int32_t (*finish)(OclHandle);
    int32_t (*copy)(OclHandle, OclHandle, OclHandle, size_t, size_t, size_t, uint32_t,
                    const OclHandle *, OclHandle *);
    int32_t (*flush)(OclHandle);
    int32_t (*marker)(OclHandle, uint32_t, const OclHandle *, OclHandle *);
    int32_t (*barrier)(OclHandle, uint32_t, const OclHandle *, OclHandle *);
    int32_t (*wait)(uint32_t, const OclHandle *);
    int32_t (*release_event)(OclHandle);
    void *(*map)(OclHandle, OclHandle, uint32_t, uint64_t, size_t, size_t, uint32_t,
                 const OclHandle *, OclHandle *, int32_t *);
    int32_t (*unmap)(OclHandle, OclHandle, void *, uint32_t, const OclHandle *, OclHandle *);
} OclFunctions;

typedef struct {
    Driver driver;
    void *library;
    OclFunctions cl;
    OclHandle device, context, queue, fetches; /* the second queue: copies to the host */
    char options[80];
    bool doubles, atomics64; /* arithmetic of f64, atomic operators on 8 bytes */
    size_t most_parameters; /* bytes of a kernel's arguments */
    size_t group;           /* most items of a work-group, of whatever kernel */
    uint64_t group_nbytes;  /* their memory */
} Ocl;

JOT_FN const char *jot_ocl_status(int32_t status); /* "CL_OUT_OF_RESOURCES" */

/* backends/opencl/find.c: the loader is opened, a device chosen and described; its platform is not
 * kept. False: *why says why; what was opened stays in *o. */
JOT_FN bool jot_ocl_find(Ocl *o, jot_Ctx *ctx, char *why, size_t why_nbytes);
JOT_FN void jot_ocl_lose(Ocl *o); /* the loader is closed */

#endif
#endif
