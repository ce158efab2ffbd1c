/* ccode/device/absent.c - a build without devices (JOT_NO_DEVICES): what this room, plan/device/
 * and the backends of devices are called for elsewhere. No dialect is a device's there, no schedule
 * has its loops, so nothing comes here but those who ask whether there is something to do.
 *
 * Read before: ccode/emit/print.h, ccode/lower/walk.h. After: nothing. */
#include "ccode/contract/contract.h"
#include "ccode/emit/print.h"
#include "ccode/lower/walk.h"

#ifdef JOT_NO_DEVICES
/* ---- schedules ----------------------------------------------------------------------------- */

JOT_FN bool
jot_sched_grid(Sched *s, Kernel *k, const Target *target)
{
    (void)k, (void)target;
    return jot_sched_no(s, "this build has no devices");
}

JOT_FN bool
jot_contract_grid(Sched *s, Kernel *k, const Contract *c, const Target *target, MatrixUse matrix)
{
    (void)c, (void)matrix;
    return jot_sched_grid(s, k, target);
}

/* ---- loops --------------------------------------------------------------------------------- */

/* A schedule that was written by hand for a device. */
static void
absent(Walk *w)
{
    jot_code_refuse(w->code, "its schedule is a device's, of which this build has none");
}

JOT_FN void
jot_walk_launches(Walk *w)
{
    absent(w);
}

JOT_FN void
jot_walk_shared(Walk *w, uint32_t n)
{
    (void)n;
    absent(w);
}

JOT_FN bool
jot_walk_matrix(Walk *w, uint32_t n)
{
    (void)n;
    absent(w);
    return true;
}

JOT_FN void
jot_walk_team_kids(Walk *w, uint32_t n)
{
    (void)n;
    absent(w);
}

JOT_FN void
jot_walk_barrier(Walk *w)
{
    (void)w;
}

JOT_FN uint32_t
jot_walk_team(Walk *w, const Stage *st, uint32_t value, EwOp op)
{
    (void)w, (void)st, (void)op;
    return value;
}

/* ---- text ---------------------------------------------------------------------------------- */

JOT_FN void
jot_print_kernel(Printer *p, const Used *used, const char *name)
{
    (void)p, (void)used, (void)name;
}

JOT_FN void
jot_print_unroll(Printer *p, const Inst *in)
{
    (void)p, (void)in;
}

JOT_FN uint32_t
jot_print_pair(Printer *p, uint32_t store)
{
    (void)p, (void)store;
    return 0;
}

JOT_FN bool
jot_index_narrow(const Code *code)
{
    (void)code;
    return false;
}

JOT_FN void
jot_print_device(Printer *p, const Inst *in, Name name, LaneMode mode)
{
    (void)p, (void)in, (void)name, (void)mode;
}

JOT_FN bool
jot_device_helper(const DeviceDialect *d, const char *name, size_t n, Text *out)
{
    (void)d, (void)name, (void)n, (void)out;
    return false;
}
#endif
