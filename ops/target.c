/* ops/target.c - the figures that hold where nothing is known.
 *
 * Read before: ops/target.h. After: backends/machine.c, which looks at the machine. */
#include "ops/target.h"

JOT_FN void
jot_target_default(Target *target)
{
    static const Target plain = {
        16, 16, false, 1,
        { 32 << 10, 256 << 10, 4 << 20, 0 },
        2.4e10,
        { 100e9, 50e9, 25e9, 10e9 },
        10e9, 100e-9, 20e-6, false, ""
    };

    *target = plain;
}
