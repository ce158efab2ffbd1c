/* report.h - what the demo says and leaves behind: the demo itself is about the network. */
#ifndef REPORT_H
#define REPORT_H
#include "digits.h"
#include "data.h"

enum { REPORT_MISREAD = 100 };

typedef struct {
    const char *mnist, *out; /* folders; mnist NULL: drawn digits */
    int epochs, quick;       /* quick: a few steps on few digits, to see that everything works */
    double started, first, last; /* seconds: before anything, first result, latest result */
    jot_Progress progress;
    jot_Curves *curves;
    int steps, shown;
    int read, right;             /* held-out digits, and those read rightly */
    int misread[REPORT_MISREAD], is[REPORT_MISREAD], as[REPORT_MISREAD];
} Report;

/* The command line, and whether the out folder can be written. 0: said why. */
int report_open(Report *report, int argc, char **argv);
/* The digits asked for. 0: said why. */
int report_digits(Report *report, Digits *train, Digits *test);
void report_start(Report *report, const Digits *train); /* the clock starts */
void report_step(Report *report, jot_Ctx *c, int step, int steps, int epochs, float loss);
void report_digit(Report *report, int which, int is, int as);
/* Prints the result, writes the pictures. 0 after a failure of the context or of a file. */
int report_close(Report *report, jot_Ctx *c, const Digits *test);

#endif
