/* backends/cuda/nvrtc.h - NVIDIA's runtime compiler, found when it is asked for: CUDA C -> PTX or
 * code of one kind of GPU. Read before: backends/host/host.h. After: backends/cuda/nvrtc.c. */
#ifndef JOT_NVRTC_H
#define JOT_NVRTC_H
#include "backends/host/host.h"

#ifndef JOT_NO_HOST
typedef struct Nvrtc Nvrtc;
JOT_FN Nvrtc *jot_nvrtc_open(jot_Ctx *ctx, char *why, size_t why_nbytes); /* NULL: why says it */
JOT_FN void jot_nvrtc_close(Nvrtc *nvrtc, jot_Ctx *ctx);
JOT_FN int jot_nvrtc_version(const Nvrtc *nvrtc); /* 12090 for 12.9 */
/* The version and the options that all texts get:
 * what code depends on besides text and architecture. */
JOT_FN void jot_nvrtc_describe(const Nvrtc *nvrtc, char *text, size_t nbytes);
/* The newest architecture that it compiles for, of those up to `most` (90 for 9.0); 0: none. */
JOT_FN int jot_nvrtc_arch(const Nvrtc *nvrtc, int most);
/* Machine code of a text for an architecture, or PTX, of object->n + 1 bytes of ctx's memory.
 * False: the context has the compiler's message. */
JOT_FN bool jot_nvrtc_compile(Nvrtc *nvrtc, jot_Ctx *ctx, const char *what, const char *text,
                              size_t nbytes, int arch, bool ptx, Bytes *object);
#endif
#endif
