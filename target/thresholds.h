/* target/thresholds.h - the list of thresholds.def as constants: whole numbers as an enum, others
 * as doubles.
 *
 * Read before: target/thresholds.def. After: the files that choose by them. */
#ifndef JOT_THRESHOLDS_H
#define JOT_THRESHOLDS_H

/* Builds without tuning or devices leave some aside. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define THRESHOLDS_UNUSED __attribute__((unused))
#else
#define THRESHOLDS_UNUSED
#endif

enum {
#define THRESHOLD(name, value, unit, halved, doubled, what) name = value,
#define RATE(name, value, unit, halved, doubled, what)
#include "target/thresholds.def"
#undef RATE
#undef THRESHOLD
    THRESHOLDS_END
};

#define THRESHOLD(name, value, unit, halved, doubled, what)
#define RATE(name, value, unit, halved, doubled, what) \
    static const double name THRESHOLDS_UNUSED = value;
#include "target/thresholds.def"
#undef RATE
#undef THRESHOLD

#endif
