/* tests/test_curves.c - what people look at (data.h): the line about progress on a terminal and in
 * a file, curves as CSV and as SVG, whose marks and lines lie where the numbers say.
 *
 * Guards: data/progress.c data/curves.c */
#include "tests/test.h"
#include "tests/data_files.h"
#include <math.h>

static jot_Ctx *ctx;
static char said[1 << 16];
static size_t length;

static void
keep(void *user, const char *text, size_t n)
{
    (void)user;
    if (length + n < sizeof said) {
        memcpy(said + length, text, n);
        said[length += n] = 0;
    }
}

static int
count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static void
test_progress(void)
{
    jot_Progress p = {.epochs = 3, .steps = 100, .write = keep, .terminal = -1};
    *said = 0, length = 0;
    for (int epoch = 0; epoch < 3; epoch++)
        for (int step = 0; step < 100; step++)
            jot_progress(&p, epoch, step, "loss", 1.0 / (1 + step));
    jot_progress_end(&p);
    CHECK(count(said, "\n") == 3 && !count(said, "\r"), "a line for each epoch: %s", said);
    CHECK(count(said, "epoch 2 of 3  step 100 of 100  loss 0.01  ") == 1, "%s", said);
    CHECK(count(said, " steps/s  0:00 left\n") == 3, "%s", said);
    jot_Progress forever = {.epochs = INT64_MAX, .steps = INT64_MAX, .write = keep, .terminal = 1};
    *said = 0, length = 0;
    for (int k = 0; k < 2; k++)
        forever.shown = 0, jot_progress(&forever, INT64_MAX - 2, INT64_MAX - 2, "a name that is "
                                        "longer than there is room", -1.234e-300);
    CHECK(strlen(forever.line) == sizeof forever.line - 1 && forever.done == 2, "cut: %s", said);
    jot_Progress none = {.epochs = 1, .steps = -1, .write = keep};
    *said = 0, length = 0;
    for (int step = 0; step < 10; step++)
        jot_progress(&none, 0, step, NULL, 0);
    CHECK(!*said, "nobody looks, and the epoch has no end yet: %s", said);
    jot_progress_end(&none);
    CHECK(!strncmp(said, "epoch 1 of 1  step 10  ", 23) && count(said, "\n") == 1, "%s", said);
    jot_Progress screen = {.epochs = 2, .steps = 5, .write = keep, .terminal = 1};
    *said = 0, length = 0;
    for (int step = 0; step < 5; step++)
        jot_progress(&screen, 0, step, step ? "x" : "a longer name", 1);
    CHECK(count(said, "\r") == 2 && !count(said, "\n"), "the first step and the epoch's last: %s",
          said);
    const char *second = strrchr(said, '\r');
    CHECK(strlen(second) >= (size_t)(second - said), "the longer line is blanked: %s", said);
    jot_progress(&screen, 1, 4, "x", 1);
    CHECK(said[length - 1] == '\n', "the end: %s", said);
    jot_progress_end(&screen);
    CHECK(count(said, "\n") == 1, "and no other: %s", said);
    jot_progress(&screen, 0, 0, "x", 1);
    jot_progress_end(&screen);
    jot_progress_end(&screen);
    CHECK(count(said, "\n") == 2, "once: %s", said);
}

static const char *
text_of(const char *path)
{
    static jot_Buffer *b;
    jot_buffer_free(b);
    b = path ? jot_read_bytes(path) : NULL;
    return b && !b->status ? b->data : "";
}

/* The numbers of the k-th path of that colour. */
static int
points_of(const char *svg, const char *colour, int k, double *xy, int most)
{
    const char *p = svg;
    int n = 0, skip = 0;
    for (; k >= 0 && p; k--)
        if ((p = strstr(p, "<path fill=\"none\" stroke-linejoin")))
            for (p += 10; strncmp(strstr(p, "stroke=\"") + 8, colour, 7); p += 10)
                if (!(p = strstr(p, "<path fill=\"none\" stroke-linejoin")))
                    return 0;
    p = p ? strstr(p, " d=\"") : NULL;
    for (p = p ? p + 4 : "\""; *p && *p != '"' && n < most; p += skip, skip = 0) {
        p += *p == 'M' || *p == 'L' || *p == ' ';
        if (sscanf(p, "%lf%n", &xy[n], &skip) != 1)
            break;
        n++;
    }
    return n / 2;
}

static void
test_csv(jot_Curves *c)
{
    CHECK(jot_curves_csv(c, files_path("x.csv")), "%s", jot_message(ctx));
    jot_Csv *csv = jot_csv_read(files_path("x.csv"), NULL);
    CHECK(csv && csv->rows == 110 && csv->columns == 3, "%s", csv ? csv->message : "");
    CHECK(!strcmp(jot_csv_cell(csv, 100, 0), "a<b & \"c\",") &&
          !strcmp(jot_csv_cell(csv, 101, 1), "10"), "%s", jot_csv_cell(csv, 100, 0));
    jot_Buffer *b = jot_csv_numbers(csv, JOT_INDEX("y"), JOT_F64);
    CHECK(b && !b->status && ((double *)b->data)[7] == exp(-0.1 * 7), "exactly: %s", b->message);
    jot_buffer_free(b);
    jot_csv_free(csv);
}

/* Numbers that no picture has room for, or none to part. */
static void
test_svg_extremes(void)
{
    static const double y[][2] = {{0, 5e-324}, {-1e308, 1e308}, {1e17, 1e17 + 16}, {3, 3}};
    for (int k = 0; k < 4; k++) {
        jot_Curves *c = jot_curves_open(ctx);
        jot_curves_add(c, "y", 0, y[k][0]);
        jot_curves_add(c, "y", y[k][1], y[k][1]);
        CHECK(jot_curves_svg(c, files_path("x.svg"), NULL), "%s", jot_message(ctx));
        const char *svg = text_of(files_path("x.svg"));
        CHECK(!strstr(svg, "nan") && !strstr(svg, "inf") && count(svg, "<text") < 40, "%d: %s", k,
              svg);
        jot_curves_close(c);
    }
}

static void
test_svg(void)
{
    static double xy[4000];
    jot_Curves *c = jot_curves_open(ctx);
    for (int k = 0; k < 100; k++)
        CHECK(jot_curves_add(c, "train", k, exp(-0.1 * k)), "%s", jot_message(ctx));
    for (int k = 0; k < 10; k++)
        jot_curves_add(c, "a<b & \"c\",", 10 * k, k == 3 ? NAN : k == 4 ? -1 : 0.5);
    test_csv(c);
    CHECK(jot_curves_svg(c, files_path("x.svg"), &(jot_Plot){"A & B", "step", "loss", true, 0, 0,
                                                              0}), "%s", jot_message(ctx));
    const char *svg = text_of(files_path("x.svg"));
    CHECK(strstr(svg, "a&lt;b &amp; \"c\",") && strstr(svg, ">A &amp; B<") &&
          strstr(svg, ">step<") && strstr(svg, ">loss<"), "texts");
    CHECK(strstr(svg, ">0.001<") && strstr(svg, ">1<") && strstr(svg, ">80<"), "marks");
    CHECK(points_of(svg, "#0072b2", 0, xy, 4000) == 100, "a line of 100 points");
    double slope = (xy[199] - xy[1]) / (xy[198] - xy[0]), worst = 0;
    for (int k = 0; k < 100; k++) /* an exponential is a straight line */
        worst = fmax(worst, fabs(xy[2 * k + 1] - xy[1] - slope * (xy[2 * k] - xy[0])));
    CHECK(slope > 0 && worst < 0.2, "slope %g, %g beside it", slope, worst);
    CHECK(points_of(svg, "#d55e00", 0, xy, 4000) == 8, "NaN, and what has no logarithm, left out");
    CHECK(xy[1] == xy[3], "a constant is level");
    jot_curves_svg(c, files_path("x.svg"), &(jot_Plot){.smooth = 5, .width = 500, .height = 300});
    svg = text_of(files_path("x.svg"));
    CHECK(strstr(svg, "width=\"500\" height=\"300\"") && points_of(svg, "#0072b2", 0, xy, 4000) &&
          count(svg, "stroke-opacity") == 2, "pale ones behind");
    jot_curves_close(c);
    c = jot_curves_open(ctx);
    for (int k = 0; k < 200; k++) /* up and down: the mean is between, and level */
        jot_curves_add(c, "saw", k, k % 2);
    jot_curves_svg(c, files_path("x.svg"), &(jot_Plot){.smooth = 8, .xlabel = "across"});
    svg = text_of(files_path("x.svg"));
    points_of(svg, "#0072b2", 0, xy, 4000);
    double down = fmax(xy[1], xy[3]), up = fmin(xy[1], xy[3]);
    int m = points_of(svg, "#0072b2", 1, xy, 4000);
    for (int k = 20; k < m - 20; k++)
        CHECK(fabs(xy[2 * k + 1] - (down + up) / 2) < 0.1 * (down - up), "point %d: %g", k,
              xy[2 * k + 1]);
    CHECK(m > 150 && strstr(svg, "<text x=\"402\" y=\"406\" text-anchor=\"middle\">across"),
          "label");
    jot_curves_close(c);
    c = jot_curves_open(ctx);
    CHECK(jot_curves_svg(c, files_path("x.svg"), NULL), "nothing: %s", jot_message(ctx));
    jot_curves_add(c, "one", 3, 3);
    CHECK(jot_curves_svg(c, files_path("x.svg"), NULL) &&
          !strstr(text_of(files_path("x.svg")), "nan"), "one point");
    for (int k = 0; k < 100000; k++) /* more points than pixels; the extremes stay */
        jot_curves_add(c, "many", k, k == 50000 ? 5 : k == 60000 ? -5 : sin(k));
    CHECK(jot_curves_svg(c, files_path("x.svg"), NULL), "%s", jot_message(ctx));
    int n = points_of(svg = text_of(files_path("x.svg")), "#d55e00", 0, xy, 4000);
    double lo = 1e9, hi = -1e9;
    for (int k = 0; k < n; k++)
        lo = fmin(lo, xy[2 * k + 1]), hi = fmax(hi, xy[2 * k + 1]);
    CHECK(n > 600 && n < 4 * 760 && strlen(svg) < 100000 && lo < 90 && hi > 330, "%d points, %g to "
          "%g", n, lo, hi);
    char name[16];
    for (int k = 2; k < 16; k++) {
        sprintf(name, "s%d", k);
        CHECK(jot_curves_add(c, name, 0, k), "%s", jot_message(ctx));
    }
    CHECK(!jot_curves_add(c, "more", 0, 0) && jot_error(ctx) == JOT_ERANGE, "16 series");
    jot_clear(ctx);
    CHECK(!jot_curves_svg(c, files_path("no/x.svg"), NULL) && jot_error(ctx) == JOT_EIO, "%s",
          jot_message(ctx));
    jot_clear(ctx);
    jot_curves_close(c);
    jot_curves_close(NULL);
    text_of(NULL);
}

int
main(void)
{
    ctx = jot_open(&(jot_Config){.backend = "interp"});
    test_progress();
    test_svg();
    test_svg_extremes();
    jot_close(ctx);
    files_close();
    return DONE();
}
