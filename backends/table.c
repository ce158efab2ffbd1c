/* backends/table.c - the backends that this build holds, the most wanted first. core.c opens the
 * one that is asked for, or else the first that opens.
 *
 * Read before: backends/backend.h. After: interp.c, backends/cpu/tcc.c, backends/cpu/cc.c. */
#include "backends/host/host.h"

const Backend *const jot_backends[] = {
#ifndef JOT_NO_HOST
    &jot_backend_cpu,
    &jot_backend_cc,
    &jot_backend_tcc,
#endif
    &jot_backend_interp, /* opens everywhere: those behind it run when they are asked for */
#if !defined JOT_NO_HOST && !defined JOT_NO_DEVICES
    &jot_backend_opencl,
    &jot_backend_cuda,
#endif
    NULL
};
