/* target/thresholds.h - the list of thresholds.def as constants: whole numbers as an enum, others
 * as doubles.
 *
 * Read before: target/thresholds.def. After: the files that choose by them. */
#ifndef JOT_THRESHOLDS_H
#define JOT_THRESHOLDS_H

enum {
#define THRESHOLD(name, value, unit, what) name = value,
#define RATE(name, value, unit, what)
#include "target/thresholds.def"
#undef RATE
#undef THRESHOLD
    THRESHOLDS_END
};

#define THRESHOLD(name, value, unit, what)
#define RATE(name, value, unit, what) static const double name = value;
#include "target/thresholds.def"
#include "target/thresholds.h"
#undef RATE
#undef THRESHOLD

#endif
