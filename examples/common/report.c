/* report.c - progress, numbers and pictures of the demo. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "picture.h"
#include "report.h"

enum { DRAWN_TRAIN = 10000, DRAWN_TEST = 2000, QUICK_TRAIN = 40, QUICK_TEST = 40 };

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
report_path(const Report *report, const char *name, char path[1024])
{
    snprintf(path, 1024, "%s/%s", report->out, name);
}

/* Found out before the work, not after it. */
static int
report_can_write(const Report *report)
{
    char path[1024];
    report_path(report, "loss.svg", path);
    mkdir(report->out, 0777);
    FILE *f = fopen(path, "ab");
    if (!f) {
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
        fprintf(stderr, "(make the folder writable, or choose another with --out FOLDER)\n");
        return 0;
    }
    fclose(f);
    return 1;
}

static int
report_usage(const char *program)
{
    fprintf(stderr, "usage: %s [--mnist FOLDER] [--epochs N] [--out FOLDER] [--quick]\n"
                    "  --mnist FOLDER  the four idx files of MNIST, gzip or not; else drawn ones\n"
                    "  --epochs N      times through the training digits; 2\n"
                    "  --out FOLDER    where loss.svg and misread.png go; out\n"
                    "  --quick         a few steps of small batches, %d digits: does it work?\n",
            program, QUICK_TRAIN);
    return 0;
}

int
report_open(Report *report, int argc, char **argv)
{
    memset(report, 0, sizeof *report);
    report->out = "out";
    for (int k = 1; k < argc; k++) {
        const char *value = k + 1 < argc ? argv[k + 1] : "";
        if (!strcmp(argv[k], "--quick")) {
            report->quick = 1;
            continue;
        }
        if (!strcmp(argv[k], "--mnist") && *value)
            report->mnist = value;
        else if (!strcmp(argv[k], "--out") && *value)
            report->out = value;
        else if (!strcmp(argv[k], "--epochs") && atoi(value) > 0)
            report->epochs = atoi(value);
        else
            return report_usage(argv[0]);
        k++;
    }
    if (!report->epochs)
        report->epochs = report->quick ? 1 : 2;
    return report_can_write(report);
}

static int
report_load(const Report *report, Digits *train, Digits *test)
{
    const char *from = report->mnist;
    int quick = report->quick;
    if (from)
        return digits_read(train, from, "train-images-idx3-ubyte", "train-labels-idx1-ubyte") &&
               digits_read(test, from, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    if (digits_draw(train, quick ? QUICK_TRAIN : DRAWN_TRAIN, 1) &&
        digits_draw(test, quick ? QUICK_TEST : DRAWN_TEST, 2))
        return 1;
    fprintf(stderr, "no memory for the digits\n");
    return 0;
}

int
report_digits(Report *report, Digits *train, Digits *test)
{
    memset(train, 0, sizeof *train);
    memset(test, 0, sizeof *test);
    if (!report_load(report, train, test)) {
        digits_free(train);
        digits_free(test);
        return 0;
    }
    if (report->quick) { /* the first ones of what was read */
        train->n = train->n < QUICK_TRAIN ? train->n : QUICK_TRAIN;
        test->n = test->n < QUICK_TEST ? test->n : QUICK_TEST;
    }
    return 1;
}

void
report_start(Report *report, const Digits *train)
{
    printf("training on %d digits%s%s, %d epoch%s\n", train->n,
           report->mnist ? " of " : " drawn here", report->mnist ? report->mnist : "",
           report->epochs, report->epochs > 1 ? "s" : "");
    fflush(stdout);
    report->started = seconds();
}

void
report_step(Report *report, jot_Ctx *c, int step, int steps, int epochs, float loss)
{
    if (step == 0) {
        report->curves = jot_curves_open(c);
        report->progress = (jot_Progress){.epochs = epochs, .steps = steps / epochs};
        report->first = seconds();
    }
    report->steps++;
    report->last = seconds();
    jot_curves_add(report->curves, "loss", step, (double)loss);
    jot_progress(&report->progress, step * epochs / steps, step % (steps / epochs), "loss",
                 (double)loss);
}

void
report_digit(Report *report, int which, int is, int as)
{
    report->read++;
    report->right += is == as;
    if (is != as && report->shown < REPORT_MISREAD) {
        report->misread[report->shown] = which;
        report->is[report->shown] = is;
        report->as[report->shown++] = as;
    }
}

static int
report_sheet(const Report *report, jot_Ctx *c, const Digits *test, const char *path)
{
    const float *pictures[REPORT_MISREAD];
    uint8_t small[2 * REPORT_MISREAD];
    for (int k = 0; k < report->shown; k++) {
        pictures[k] = test->pixels + (size_t)report->misread[k] * DIGIT_PIXELS;
        small[2 * k] = (uint8_t)report->is[k];
        small[2 * k + 1] = (uint8_t)report->as[k];
    }
    return picture_sheet(c, path, pictures, small, report->shown, DIGIT_SIDE, 10);
}

static void
report_numbers(const Report *report, jot_Ctx *c)
{
    jot_Stats s = jot_stats(c);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("accuracy                 %.2f %% of %d held-out digits (%d misread)\n",
           100.0 * report->right / (report->read ? report->read : 1), report->read,
           report->read - report->right);
    printf("backend                  %s: %s\n", jot_backend(c), jot_compilers(c));
    printf("kernels                  %llu compiled, %llu cached, in %.0f ms; %llu launched\n",
           (unsigned long long)s.kernels_compiled, (unsigned long long)s.cache_hits,
           1e3 * s.compile_seconds, (unsigned long long)s.kernels_run);
    printf("time to the first result %.2f s\n", report->first - report->started);
    if (report->steps > 1)
        printf("time per step            %.2f ms\n",
               1e3 * (report->last - report->first) / (report->steps - 1));
    printf("peak memory              %.1f MB in jot, %.0f MB in the process, digits included\n",
           (double)s.peak_nbytes / 1e6, (double)usage.ru_maxrss / 1e3);
}

int
report_close(Report *report, jot_Ctx *c, const Digits *test)
{
    char curve[1024], sheet[1024];
    int ok = 0;
    report_path(report, "loss.svg", curve);
    report_path(report, "misread.png", sheet);
    jot_progress_end(&report->progress);
    if (!jot_error(c)) {
        const jot_Plot plot = {.title = "loss while training", .xlabel = "step", .log_y = true,
                               .ylabel = "cross-entropy (logarithmic)", .smooth = report->steps};
        report_numbers(report, c);
        ok = jot_curves_svg(report->curves, curve, &plot) && report_sheet(report, c, test, sheet);
        if (ok)
            printf("loss curve %s, misread digits %s (what it is -> what was read)\n", curve,
                   sheet);
    }
    if (jot_error(c))
        fprintf(stderr, "\nfailed: %s\n", jot_message(c));
    jot_curves_close(report->curves);
    return ok;
}
