/* data/curves.c - what was measured step by step, as a picture and as a table.
 *
 *     SVG   axes with marks at 1, 2, 5 times a power of ten; each series as a line, or with
 *           `smooth` as a pale one and, over it, the mean around each point
 *     CSV   series,x,y
 *
 * Lines of more points than there are pixels keep the least and the greatest of each pixel.
 *
 * Read before: data.h ("progress and curves"). */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <math.h>

enum { CURVES_MOST = 16, CURVES_LEFT = 68, CURVES_TOP = 64, CURVES_RIGHT = 24, CURVES_BOTTOM = 56 };

typedef struct { char *name; double *x, *y; int64_t n, room; } CurveSeries;
struct jot_Curves {
    jot_Ctx *ctx;
    int n;
    CurveSeries series[CURVES_MOST];
};

/* told apart by those who see few colours, too (Okabe and Ito 2008) */
static const char *const curves_colour[8] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#b8a800"};

/* Beyond are no numbers of a picture, and what an axis spans has an inverse. */
#define CURVES_LIMIT 1e300

/* ---- points ---- */

jot_Curves *
jot_curves_open(jot_Ctx *ctx)
{
    jot_Curves *c = calloc(1, sizeof *c);

    if (c)
        c->ctx = ctx;
    else
        jot_raise(ctx, JOT_EMEM, "curves: no memory");
    return c;
}

void
jot_curves_close(jot_Curves *c)
{
    for (int k = 0; c && k < c->n; k++) {
        free(c->series[k].name);
        free(c->series[k].x);
        free(c->series[k].y);
    }
    free(c);
}

static bool
curves_grow(CurveSeries *s)
{
    const int64_t room = s->room ? 2 * s->room : 256;
    double *x = realloc(s->x, (size_t)room * sizeof *x);

    s->x = x ? x : s->x;
    double *y = x ? realloc(s->y, (size_t)room * sizeof *y) : NULL;
    s->y = y ? y : s->y;
    s->room = y ? room : s->room;
    return y != NULL;
}

bool
jot_curves_add(jot_Curves *c, const char *name, double x, double y)
{
    int k = 0;

    if (!c)
        return false;
    if (!name)
        return jot_ok(jot_raise(c->ctx, JOT_EUSE, "curves: series: a name asked, NULL found"));
    while (k < c->n && strcmp(c->series[k].name, name))
        k++;
    if (k == CURVES_MOST)
        return jot_ok(jot_raise(c->ctx, JOT_ERANGE, "curves: at most %d series asked",
                                CURVES_MOST));
    CurveSeries *s = &c->series[k];
    if (k == c->n && (s->name = strdup(name)))
        c->n++;
    if (!s->name || (s->n == s->room && !curves_grow(s)))
        return jot_ok(jot_raise(c->ctx, JOT_EMEM, "curves: no memory for a point of %s", name));
    s->x[s->n] = x;
    s->y[s->n++] = y;
    return true;
}

bool
jot_curves_csv(const jot_Curves *c, const char *path)
{
    FILE *f = c ? data_create(c->ctx, path) : NULL;
    locale_t before = data_locale_begin();

    if (f)
        fputs("series,x,y\n", f);
    for (int k = 0; f && k < c->n; k++)
        for (int64_t i = 0; i < c->series[k].n; i++) {
            data_csv_name(f, c->series[k].name);
            fprintf(f, ",%.17g,%.17g\n", c->series[k].x[i], c->series[k].y[i]);
        }
    data_locale_end(before);
    return f && data_finish(c->ctx, f, path);
}

/* ---- picture ---- */

/* lo..hi of the values (log: of their logarithms) on from..to of the picture. */
typedef struct { double lo, hi, from, to; bool log; } CurveAxis;
typedef struct { FILE *f; CurveAxis x, y; int smooth; } CurvePlot;

static bool
curves_shown(const CurvePlot *p, double x, double y)
{
    return fabs(x) < CURVES_LIMIT && fabs(y) < CURVES_LIMIT && (!p->y.log || y > 0);
}

static double
curves_at(const CurveAxis *a, double v)
{
    v = a->log ? log10(v) : v;
    return a->from + (a->to - a->from) * (v - a->lo) / (a->hi - a->lo);
}

static void
curves_extend(CurveAxis *a, double v)
{
    v = a->log ? log10(v) : v;
    a->lo = v < a->lo ? v : a->lo;
    a->hi = v > a->hi ? v : a->hi;
}

static void
curves_widen(CurveAxis *a, double by)
{
    if (!(a->lo <= a->hi))
        a->lo = 0, a->hi = 1;
    const double span = a->hi - a->lo;
    double more = span > 1 / CURVES_LIMIT ? span * by : a->log ? 0.3 : fabs(a->lo) * 0.5 + 0.5;
    a->lo -= more;
    a->hi += more;
}

static void
curves_text(FILE *f, const char *s)
{
    for (; s && *s; s++)
        switch (*s) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        default: if ((unsigned char)*s >= ' ') putc(*s, f);
        }
}

static void
curves_mark(const CurvePlot *p, bool is_y, double v)
{
    if (is_y) {
        double at = curves_at(&p->y, v);
        fprintf(p->f, "<path d=\"M%g %.1fH%g\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%.1f\" "
                "text-anchor=\"end\">%.10g</text>\n", p->x.from, at, p->x.to, p->x.from - 8,
                at + 4, v);
    } else {
        double at = curves_at(&p->x, v);
        fprintf(p->f, "<path d=\"M%.1f %gv5\" stroke=\"#333\"/><text x=\"%.1f\" y=\"%g\" "
                "text-anchor=\"middle\">%.10g</text>\n", at, p->y.from, at, p->y.from + 20, v);
    }
}

/* Some five to ten of them. */
static void
curves_marks(const CurvePlot *p, bool is_y)
{
    const CurveAxis *a = is_y ? &p->y : &p->x;
    const double span = a->hi - a->lo;

    if (a->log) {
        static const int all[] = {1, 2, 5};
        const int some = span < 3.5 ? 3 : 1, each = span > 10 ? (int)(span / 6) : 1;
        for (int e = (int)floor(a->lo); e <= (int)ceil(a->hi); e++)
            for (int k = 0; k < some && e % each == 0; k++) {
                double v = all[k] * pow(10, e);
                if (log10(v) >= a->lo && log10(v) <= a->hi)
                    curves_mark(p, is_y, v);
            }
        return;
    }
    double step = pow(10, floor(log10(span / 5)));
    step *= span / step > 25 ? 5 : span / step > 12 ? 2 : 1;
    for (int64_t k = (int64_t)ceil(a->lo / step); (double)k * step <= a->hi; k++)
        curves_mark(p, is_y, (double)k * step);
}

static double
curves_smooth(const CurvePlot *p, const CurveSeries *s, int64_t k, int reach)
{
    double sum = 0;
    int64_t n = 0;

    int64_t most = s->n / 20 < reach ? s->n / 20 : reach;
    most = k < most ? k : most; /* near the beginning as few after as before, near the end hardly */
    int64_t after = s->n - 1 - k < most ? s->n - 1 - k : most;
    int64_t before = after > most / 2 ? after : most / 2;
    for (int64_t i = k - before; i <= k + after; i++)
        if (curves_shown(p, s->x[i], s->y[i]))
            sum += s->y[i], n++;
    return n ? sum / (double)n : NAN;
}

/* A path; where a pixel has many points, from its first to its least, greatest and last. */
static void
curves_line(const CurvePlot *p, const CurveSeries *s, int reach, const char *style)
{
    const char *pen = "M";
    double lo = 0, hi = 0, last = 0;
    long column = -1;
    bool some = false;

    fprintf(p->f, "<path fill=\"none\" stroke-linejoin=\"round\" %s d=\"", style);
    for (int64_t k = 0; k < s->n; k++) {
        double y = reach ? curves_smooth(p, s, k, reach) : s->y[k];
        if (!curves_shown(p, s->x[k], y)) {
            pen = "M";
            continue;
        }
        double px = curves_at(&p->x, s->x[k]), py = curves_at(&p->y, y);
        bool more = k + 1 < s->n && curves_shown(p, s->x[k + 1], s->y[k + 1]) &&
                    (long)curves_at(&p->x, s->x[k + 1]) == (long)px;
        if ((long)px == column && more) {
            lo = py < lo ? py : lo, hi = py > hi ? py : hi, some = true, last = px;
            continue;
        }
        if (some)
            fprintf(p->f, "L%.1f %.1fL%.1f %.1f", last, lo, last, hi);
        fprintf(p->f, "%s%.1f %.1f", pen, px, py);
        pen = "L", lo = hi = py, column = (long)px, some = false;
    }
    fprintf(p->f, "\"/>\n");
}

static void
curves_label(const CurvePlot *p, double x, double y, const char *more, const char *text)
{
    fprintf(p->f, "<text x=\"%g\" y=\"%g\" %s>", x, y, more);
    curves_text(p->f, text);
    fprintf(p->f, "</text>\n");
}

static void
curves_draw(const jot_Curves *c, CurvePlot *p, const jot_Plot *how)
{
    char style[120];
    const double mid = (p->y.from + p->y.to) / 2;
    double at = p->x.from;

    curves_label(p, p->x.from, 28, "font-size=\"17\"", how->title);
    curves_marks(p, true);
    curves_marks(p, false);
    fprintf(p->f, "<path d=\"M%g %gV%gH%g\" fill=\"none\" stroke=\"#333\"/>\n", p->x.from, p->y.to,
            p->y.from, p->x.to);
    curves_label(p, (p->x.from + p->x.to) / 2, p->y.from + 42, "text-anchor=\"middle\"",
                 how->xlabel);
    snprintf(style, sizeof style, "text-anchor=\"middle\" transform=\"rotate(-90 18 %g)\"", mid);
    curves_label(p, 18, mid, style, how->ylabel);
    for (int pale = p->smooth > 0; pale >= 0; pale--)
        for (int k = 0; k < c->n; k++) {
            snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"%s", curves_colour[k % 8],
                     pale ? "1\" stroke-opacity=\"0.3\"" : "2\"");
            if (k >= 8)
                strcat(style, " stroke-dasharray=\"6 3\"");
            curves_line(p, &c->series[k], pale ? 0 : p->smooth, style);
        }
    for (int k = 0; k < c->n; k++) { /* keys */
        fprintf(p->f, "<path d=\"M%g 46h22\" stroke=\"%s\" stroke-width=\"2\"%s/>", at,
                curves_colour[k % 8], k >= 8 ? " stroke-dasharray=\"6 3\"" : "");
        curves_label(p, at + 28, 50, "", c->series[k].name);
        at += 48 + 7.5 * (double)strlen(c->series[k].name);
    }
}

bool
jot_curves_svg(const jot_Curves *c, const char *path, const jot_Plot *plot)
{
    static const jot_Plot plain = {0};
    const jot_Plot how = plot ? *plot : plain;
    const int w = how.width > 200 ? how.width : 760, h = how.height > 200 ? how.height : 420;
    CurvePlot p = {c ? data_create(c->ctx, path) : NULL,
                   {INFINITY, -INFINITY, CURVES_LEFT, w - CURVES_RIGHT, false},
                   {INFINITY, -INFINITY, h - CURVES_BOTTOM, CURVES_TOP, how.log_y},
                   how.smooth > 0 ? how.smooth : 0};

    if (!p.f)
        return false;
    for (int k = 0; k < c->n; k++)
        for (int64_t i = 0; i < c->series[k].n; i++)
            if (curves_shown(&p, c->series[k].x[i], c->series[k].y[i])) {
                curves_extend(&p.x, c->series[k].x[i]);
                curves_extend(&p.y, c->series[k].y[i]);
            }
    curves_widen(&p.x, 0);
    curves_widen(&p.y, 0.04);
    locale_t before = data_locale_begin();
    fprintf(p.f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", w, h, w, h);
    curves_draw(c, &p, &how);
    fprintf(p.f, "</svg>\n");
    data_locale_end(before);
    return data_finish(c->ctx, p.f, path);
}
#endif
