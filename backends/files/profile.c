/* backends/files/profile.c - a profile as text for people, as a trace for a browser, as a picture.
 *
 *     table      kernels, the dearest first: launches, time, share, GB/s, GFLOP/s, floor / time
 *     trace      Chrome's trace format: chrome://tracing, https://ui.perfetto.dev
 *     roofline   operations per byte against operations per second: how far below the roof made of
 *                memory's bandwidth and the peak each kernel runs; circles as large as its time
 *
 * Read before: core.h ("profile"), plan/tier/profile.c. */
#ifndef JOT_NO_HOST
#include "backends/host/host.h"
#include "plan/tier/profile.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is written ---------------------------------------------------------------------- */

typedef struct {
    FILE *f;
    const struct Profile *p;
    const Target *target;
    int cores;
    bool device;
    const jot_ProfileKernel **by_time; /* the dearest first */
    int n;
    double seconds;                    /* of all launches */
} Report;

static int
report_order(const void *a, const void *b)
{
    const jot_ProfileKernel *const *x = a, *const *y = b;

    return ((*x)->seconds < (*y)->seconds) - ((*x)->seconds > (*y)->seconds);
}

static double
report_each(const jot_ProfileKernel *k)
{
    return k->seconds / (double)k->launches;
}

static double
report_bytes(const jot_ProfileKernel *k)
{
    return k->read + k->written;
}

/* ---- the table ---------------------------------------------------------------------------- */

static void
report_table(const Report *r)
{
    fprintf(r->f, "%10s %10s %10s %6s %8s %9s %6s  %s\n", "launches", "ms", "us each", "%", "GB/s",
            "GFLOP/s", "floor", "operators (function)");
    for (int i = 0; i < r->n; i++) {
        const jot_ProfileKernel *k = r->by_time[i];
        double each = report_each(k);

        fprintf(r->f, "%10llu %10.3f %10.2f %6.1f %8.1f %9.1f ", (unsigned long long)k->launches,
                k->seconds * 1e3, each * 1e6, 100 * k->seconds / r->seconds,
                report_bytes(k) / each * 1e-9, k->flops / each * 1e-9);
        if (k->floor > 0)
            fprintf(r->f, "%6.2f", k->floor / each);
        else
            fprintf(r->f, "%6s", "-");
        fprintf(r->f, "  %s (%s)\n", k->what, k->name);
    }
    fprintf(r->f, "%d kernels, %.3f ms", r->n, r->seconds * 1e3);
    if (r->device)
        fprintf(r->f, "; a device: each launch was waited for, and no floor is known\n");
    else
        fprintf(r->f, "; floor: the least time of its bytes and operations on %d cores, to the "
                "time taken\n", r->cores);
    if (r->p->lost)
        fprintf(r->f, "%llu launches are not in the trace\n", (unsigned long long)r->p->lost);
}

/* ---- the trace ---------------------------------------------------------------------------- */

static void
report_json(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            fprintf(f, "\\u%04x", *s);
        else
            fputc(*s, f);
    fputc('"', f);
}

static void
report_trace(const Report *r)
{
    const struct Profile *p = r->p;

    fprintf(r->f, "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"lost\": %llu},\n"
            "\"traceEvents\": [", (unsigned long long)p->lost);
    for (uint32_t i = 0; i < p->events.n; i++) {
        const jot_ProfileEvent *e = &p->events.v[i];
        const jot_ProfileKernel *k = e->kernel < 0 ? NULL : &p->kernels.v[e->kernel].sums;

        fprintf(r->f, "%s\n{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %lld.%03d, "
                "\"dur\": %lld.%03d, \"cat\": \"%s\", \"name\": ", i ? "," : "",
                (long long)(e->start / 1000),
                (int)(e->start % 1000), (long long)(e->nanoseconds / 1000),
                (int)(e->nanoseconds % 1000),
                k ? "kernel" : "plan");
        report_json(r->f, k ? k->what : "plan");
        if (k) {
            fprintf(r->f, ", \"args\": {\"function\": ");
            report_json(r->f, k->name);
            fprintf(r->f, ", \"bytes\": %.0f, \"flops\": %.0f, \"floor_us\": %lld.%03d}",
                    report_bytes(k), k->flops, (long long)(k->floor * 1e6),
                    (int)((long long)(k->floor * 1e9) % 1000));
        }
        fputc('}', r->f);
    }
    fprintf(r->f, "\n]}\n");
}

/* ---- the picture -------------------------------------------------------------------------- */

enum { ROOF_W = 760, ROOF_H = 480 };
enum { ROOF_LEFT = 70, ROOF_RIGHT = 20, ROOF_TOP = 20, ROOF_BOTTOM = 60 };
enum { ROOF_GAP = 6, ROOF_CHAR = 7 }; /* of a label: to its point; a letter */

typedef struct { double x0, x1, y0, y1; } Roof; /* powers of ten */

static double
roof_x(const Roof *roof, double intensity)
{
    double at = (log10(intensity) - roof->x0) / (roof->x1 - roof->x0);

    return ROOF_LEFT + at * (ROOF_W - ROOF_LEFT - ROOF_RIGHT);
}

static double
roof_y(const Roof *roof, double rate)
{
    double at = (log10(rate) - roof->y0) / (roof->y1 - roof->y0);

    return ROOF_H - ROOF_BOTTOM - at * (ROOF_H - ROOF_TOP - ROOF_BOTTOM);
}

/* A kernel's place; false: without bytes or operations it has none. */
static bool
roof_point(const jot_ProfileKernel *k, double *intensity, double *rate)
{
    if (report_bytes(k) <= 0 || k->flops <= 0 || k->seconds <= 0)
        return false;
    *intensity = k->flops / report_bytes(k);
    *rate = k->flops / report_each(k);
    return true;
}

static void
roof_fit(const Report *r, double peak, Roof *roof)
{
    double x, y;

    roof->x0 = -2, roof->x1 = 2;
    roof->y1 = ceil(log10(peak));
    roof->y0 = roof->y1 - 3;
    for (int i = 0; i < r->n; i++)
        if (roof_point(r->by_time[i], &x, &y)) {
            roof->x0 = fmin(roof->x0, floor(log10(x)));
            roof->x1 = fmax(roof->x1, ceil(log10(x)));
            roof->y0 = fmin(roof->y0, floor(log10(y)));
        }
}

static void
roof_axes(FILE *f, const Roof *roof)
{
    for (int d = (int)roof->x0; d <= (int)roof->x1; d++)
        fprintf(f, "<path d=\"M%.1f %dV%d\" class=\"g\"/><text x=\"%.1f\" y=\"%d\">%g</text>\n",
                roof_x(roof, pow(10, d)), ROOF_TOP, ROOF_H - ROOF_BOTTOM,
                roof_x(roof, pow(10, d)) - 8,
                ROOF_H - ROOF_BOTTOM + 18, pow(10, d));
    for (int d = (int)roof->y0; d <= (int)roof->y1; d++)
        fprintf(f, "<path d=\"M%d %.1fH%d\" class=\"g\"/><text x=\"12\" y=\"%.1f\">%g</text>\n",
                ROOF_LEFT,
                roof_y(roof, pow(10, d)), ROOF_W - ROOF_RIGHT, roof_y(roof, pow(10, d)) + 4,
                pow(10, d - 9));
    fprintf(f, "<text x=\"%d\" y=\"%d\">operations per byte</text>\n", ROOF_W / 2 - 60,
            ROOF_H - 16);
    fprintf(f, "<text x=\"12\" y=\"14\">GFLOP/s</text>\n");
}

/* Rate = bandwidth x intensity, up to the peak. */
static void
roof_line(FILE *f, const Roof *roof, double bandwidth, double peak, const char *name)
{
    double x0 = pow(10, roof->x0), bend = peak / bandwidth, from = bandwidth * x0;

    if (from < pow(10, roof->y0)) {
        from = pow(10, roof->y0);
        x0 = from / bandwidth;
    }
    fprintf(f, "<path d=\"M%.1f %.1fL%.1f %.1fH%d\" class=\"r\"/>\n", roof_x(roof, x0),
            roof_y(roof, from), roof_x(roof, bend), roof_y(roof, peak), ROOF_W - ROOF_RIGHT);
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"n\">%s %.0f GB/s</text>\n",
            roof_x(roof, x0) + 6,
            roof_y(roof, from) - 6, name, bandwidth * 1e-9);
}

/* At most so many characters of it. */
static void
report_svg_text(FILE *f, const char *s, size_t most)
{
    size_t n = strlen(s), dots = n > most ? 3 : 0;

    for (n = dots ? most - dots : n; n > 0; n--, s++)
        if (*s == '<' || *s == '&' || *s == '>')
            fprintf(f, "&#%d;", *s);
        else
            fputc((unsigned char)*s < 32 ? ' ' : *s, f);
    fprintf(f, "%.*s", (int)dots, "...");
}

/* Beside the point, towards the side that has more room, and no longer than that. */
static void
roof_label(FILE *f, double x, double y, const char *text)
{
    bool left = x > ROOF_W / 2;
    double room = left ? x - ROOF_GAP : ROOF_W - x - ROOF_GAP;

    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"n\"%s>", left ? x - ROOF_GAP : x + ROOF_GAP,
            y - ROOF_GAP, left ? " text-anchor=\"end\"" : "");
    report_svg_text(f, text, (size_t)(room / ROOF_CHAR));
    fprintf(f, "</text>\n");
}

static void
report_roofline(const Report *r)
{
    const Target *t = r->target;
    double peak = t->flops * r->cores, x, y;
    double memory = r->cores > 1 ? t->bandwidth_all : t->bandwidth[LEVEL_MEMORY];
    Roof roof;

    roof_fit(r, peak, &roof);
    fprintf(r->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<style>.g{stroke:#ddd}.r{stroke:#333;"
            "fill:none;stroke-width:1.5}.k{fill:#36c;fill-opacity:.5;stroke:#124}"
            ".n{fill:#333}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", ROOF_W, ROOF_H);
    roof_axes(r->f, &roof);
    roof_line(r->f, &roof, memory, peak, "memory");
    roof_line(r->f, &roof, t->bandwidth[LEVEL_L2] * r->cores, peak, "L2");
    fprintf(r->f, "<text x=\"%d\" y=\"%.1f\" class=\"n\" text-anchor=\"end\">peak %.0f GFLOP/s"
            "</text>\n", ROOF_W - ROOF_RIGHT, roof_y(&roof, peak) - 6, peak * 1e-9);
    for (int i = 0; i < r->n; i++) {
        const jot_ProfileKernel *k = r->by_time[i];

        if (!roof_point(k, &x, &y))
            continue;
        fprintf(r->f, "<circle class=\"k\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                roof_x(&roof, x),
                roof_y(&roof, y), 3 + 20 * sqrt(k->seconds / r->seconds));
        report_svg_text(r->f, k->what, strlen(k->what));
        fprintf(r->f, ": %.3f ms, %.1f GFLOP/s</title></circle>\n", k->seconds * 1e3, y * 1e-9);
        if (i < 8)
            roof_label(r->f, roof_x(&roof, x), roof_y(&roof, y), k->what);
    }
    fprintf(r->f, "</svg>\n");
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Numbers with a point, whatever the program's language writes. */
static void
report_write(Report *r, jot_ProfileForm form)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t own = plain ? uselocale(plain) : (locale_t)0;

    for (uint32_t i = 0; i < r->p->kernels.n; i++) {
        r->by_time[r->n++] = &r->p->kernels.v[i].sums;
        r->seconds += r->p->kernels.v[i].sums.seconds;
    }
    qsort(r->by_time, (size_t)r->n, sizeof *r->by_time, report_order);
    switch (form) {
    case JOT_PROFILE_TABLE: report_table(r); break;
    case JOT_PROFILE_TRACE: report_trace(r); break;
    case JOT_PROFILE_ROOFLINE: report_roofline(r); break;
    }
    if (plain) {
        uselocale(own);
        freelocale(plain);
    }
}

bool
jot_profile_write(jot_Ctx *ctx, jot_ProfileForm form, const char *path)
{
    Report r;
    size_t nbytes;
    bool ok, blocked;

    if (!ctx)
        return false;
    if (!ctx->profile)
        return jot_fail(ctx, JOT_EUSE, "profile_write: nothing was profiled (jot_profile)");
    if (!path || form > JOT_PROFILE_ROOFLINE)
        return jot_fail(ctx, JOT_EUSE, path ? "profile_write: form is %d; 0, 1 and 2 are known"
                                            : "profile_write: path is NULL", (int)form);
    if (form == JOT_PROFILE_ROOFLINE && ctx->backend->device)
        return jot_fail(ctx, JOT_EUSE, "profile_write: no roofline: the rates of backend %s are "
                        "not measured; a table and a trace can be had", ctx->backend->name);
    memset(&r, 0, sizeof r);
    r.device = ctx->backend->device != NULL;
    r.p = ctx->profile;
    r.target = &ctx->target;
    r.cores = ctx->backend->workers < 1 ? 1 : ctx->backend->workers;
    r.cores = r.cores < r.target->cores ? r.cores : r.target->cores;
    nbytes = (r.p->kernels.n + 1) * sizeof *r.by_time;
    r.by_time = jot_mem_realloc(&ctx->mem, NULL, 0, nbytes);
    if (!r.by_time)
        return jot_fail_memory(ctx, "profile_write");
    r.f = fopen(path, "w");
    blocked = jot_host_limit_begin();
    if (r.f)
        report_write(&r, form);
    ok = r.f && !ferror(r.f);
    if (r.f && fclose(r.f))
        ok = false;
    jot_host_limit_end(blocked);
    jot_mem_free(&ctx->mem, r.by_time, nbytes);
    return ok || jot_fail(ctx, JOT_EIO, "profile_write: %s: %s", path, strerror(errno));
}
#endif
