/* bench/system.h - who can do workloads in this program: jot, OpenBLAS, oneDNN. */
#ifndef JOT_SYSTEM_H
#define JOT_SYSTEM_H
#include <stdio.h>
#include "bench/work.h"

typedef struct {
    const char *name;
    const char *missing; /* why it is not in this build; NULL: it is */
    /* Prepares w on so many threads: 1, 0 when there is no routine for it, -1 for a failure. */
    int (*open)(const Work *w, int threads);
    bool (*run)(void);                /* once, results computed */
    void (*close)(void);
    void (*more)(FILE *to);           /* further members of the JSON line; NULL: none */
    const char *(*message)(void);     /* why open or run failed; NULL: nothing to say */
} System;

extern const System system_jot, system_jot_tuned, system_openblas, system_onednn,
    system_onednn_rowmajor;

double bench_seconds(void); /* of the monotonic clock */
/* Of the tables and of drawn lines. */
const Work *serve_find(const char *name);
/* Answers 'name seconds' lines of standard input with one JSON line each, until its end. */
int serve(const System *s, int threads);
/* One line: seconds from BENCH_START (an environment variable) to the first result of the workload,
 * and to the end of the first run that takes at most 1.1 times the median of the later half. */
int serve_cold(const System *s, const char *name, int threads, const char *note);

/* Prints what each kernel of jot's takes in w (jot_profile); an exit code. */
int bench_profile(const Work *w, int threads);

#endif
