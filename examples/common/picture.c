/* picture.c - a curve as SVG, which is text, and a sheet of digits as PNG.
 *
 * PNG without a library: the format wants a zlib stream, and zlib allows blocks that are stored as
 * they are. So a PNG is a header, the rows behind a few bytes of framing, and two checksums.
 *
 *     signature | IHDR size, depth | IDAT 78 01 [last? length ~length bytes]... adler32 | IEND
 *     every chunk: length, name, content, crc32 of name and content */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "picture.h"

typedef struct { FILE *f; uint32_t crc; } Png;

static void
png_bytes(Png *png, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t k = 0; k < n; k++) {
        png->crc ^= p[k];
        for (int bit = 0; bit < 8; bit++)
            png->crc = png->crc >> 1 ^ (png->crc & 1 ? 0xEDB88320u : 0);
    }
    fwrite(data, 1, n, png->f);
}

static void
png_u32(Png *png, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    png_bytes(png, b, 4);
}

static void
png_begin(Png *png, const char *name, uint32_t nbytes)
{
    png_u32(png, nbytes);
    png->crc = 0xFFFFFFFFu;
    png_bytes(png, name, 4);
}

static void
png_end(Png *png)
{
    png_u32(png, ~png->crc);
}

static void
png_header(Png *png, int width, int height)
{
    static const uint8_t kind[5] = {8, 0, 0, 0, 0}; /* 8 bits, grey */
    png_begin(png, "IHDR", 13);
    png_u32(png, (uint32_t)width);
    png_u32(png, (uint32_t)height);
    png_bytes(png, kind, 5);
    png_end(png);
}

/* One stored block per row: a filter byte (0: none), then the pixels. */
static void
png_rows(Png *png, const uint8_t *grey, int width, int height)
{
    static const uint8_t start[2] = {0x78, 0x01};
    uint32_t a = 1, b = 0, n = (uint32_t)width + 1;
    png_begin(png, "IDAT", 2 + (uint32_t)height * (5 + n) + 4);
    png_bytes(png, start, 2);
    for (int y = 0; y < height; y++) {
        uint8_t head[6] = {y == height - 1, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n,
                           (uint8_t)(~n >> 8), 0};
        png_bytes(png, head, 6);
        png_bytes(png, grey + (size_t)y * (size_t)width, (size_t)width);
        b = (b + a) % 65521; /* the filter byte */
        for (int x = 0; x < width; x++) {
            a = (a + grey[(size_t)y * (size_t)width + (size_t)x]) % 65521;
            b = (b + a) % 65521;
        }
    }
    png_u32(png, b << 16 | a);
    png_end(png);
}

static FILE *
picture_open(const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
    return f;
}

static int
picture_close(FILE *f, const char *path)
{
    int bad = ferror(f);
    if (fclose(f) || bad) {
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
        return 0;
    }
    return 1;
}

int
picture_png(const char *path, const uint8_t *grey, int width, int height)
{
    Png png = {picture_open(path), 0};
    if (!png.f)
        return 0;
    png_bytes(&png, "\211PNG\r\n\032\n", 8);
    png_header(&png, width, height);
    png_rows(&png, grey, width, height);
    png_begin(&png, "IEND", 0);
    png_end(&png);
    return picture_close(png.f, path);
}

/* ---- curve -------------------------------------------------------------------------------- */

enum { W = 760, H = 420, LEFT = 64, TOP = 48, RIGHT = 24, BOTTOM = 56 };

/* The axes' ends: steps 0..n, values lo..hi by their logarithms. */
typedef struct { FILE *f; int n; float lo, hi; } Plot;

static double
plot_x(const Plot *p, double k)
{
    return LEFT + (W - LEFT - RIGHT) * k / (p->n > 1 ? p->n - 1 : 1);
}

static double
plot_y(const Plot *p, double v)
{
    v = v > p->lo ? v : p->lo;
    return H - BOTTOM - (H - TOP - BOTTOM) * log(v / p->lo) / log(p->hi / p->lo);
}

/* Values to 1, 2, 5, 10, ... and some five marks along the steps. */
static void
plot_axes(const Plot *p, const char *title, const char *xlabel, const char *ylabel)
{
    const int mid = (H - BOTTOM + TOP) / 2;
    int step = 1;
    fprintf(p->f, "<text x=\"%d\" y=\"28\" font-size=\"17\">%s</text>\n", LEFT, title);
    for (double v = 1e-4, k = 0; v < p->hi * 1.001; v *= (int)k++ % 3 == 1 ? 2.5 : 2) {
        if (v < p->lo * 0.999)
            continue;
        fprintf(p->f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, plot_y(p, v), W - RIGHT);
        fprintf(p->f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8,
                plot_y(p, v) + 4, v);
    }
    for (int k = 0; p->n / step > 6; k++)
        step = k % 3 == 1 ? step / 2 * 5 : step * 2;
    for (int k = 0; k < p->n; k += step)
        fprintf(p->f, "<path d=\"M%.1f %dv5\" stroke=\"#333\"/><text x=\"%.1f\" y=\"%d\" "
                      "text-anchor=\"middle\">%d</text>\n",
                plot_x(p, k), H - BOTTOM, plot_x(p, k), H - BOTTOM + 20, k);
    fprintf(p->f, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#333\"/>\n", LEFT, TOP,
            H - BOTTOM, W - RIGHT);
    fprintf(p->f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            (LEFT + W - RIGHT) / 2, H - 12, xlabel);
    fprintf(p->f, "<text x=\"18\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 18 %d)\">"
                  "%s</text>\n", mid, mid, ylabel);
}

/* The mean of y around each step: `reach` steps to both sides, as far as there are any; near the
 * beginning, where y falls fast, as few after as before. */
static void
plot_line(const Plot *p, const float *y, int reach, const char *style)
{
    fprintf(p->f, "<polyline fill=\"none\" %s points=\"", style);
    for (int k = 0; k < p->n; k++) {
        int r = k < reach ? k : reach, to = k + r < p->n ? k + r : p->n - 1;
        double sum = 0;
        for (int i = k - r; i <= to; i++)
            sum += y[i];
        fprintf(p->f, "%.1f,%.1f ", plot_x(p, k), plot_y(p, sum / (to - k + r + 1)));
    }
    fprintf(p->f, "\"/>\n");
}

/* Single steps in pale, their running mean in dark; keys for both. */
int
picture_curve(const char *path, const char *title, const char *xlabel, const char *ylabel,
              const float *y, int n)
{
    const char *const pale = "stroke=\"#b9cfee\"";
    const char *const dark = "stroke=\"#1f5fbf\" stroke-width=\"2\"";
    const int reach = n / 30;
    Plot p = {picture_open(path), n, 0, 0};
    if (!p.f)
        return 0;
    for (int k = 0; k < n; k++) {
        p.lo = !k || y[k] < p.lo ? y[k] : p.lo;
        p.hi = y[k] > p.hi ? y[k] : p.hi;
    }
    p.lo = p.lo > 1e-3f ? p.lo / 1.1f : 1e-3f;
    p.hi = p.hi > 2 * p.lo ? p.hi * 1.1f : 2 * p.lo;
    fprintf(p.f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n", W, H);
    fprintf(p.f, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", W, H);
    plot_axes(&p, title, xlabel, ylabel);
    plot_line(&p, y, 0, pale);
    plot_line(&p, y, reach, dark);
    fprintf(p.f, "<path d=\"M%d %dh24\" %s/><text x=\"%d\" y=\"%d\">one step</text>\n", W - 300,
            TOP - 20, pale, W - 270, TOP - 16);
    fprintf(p.f, "<path d=\"M%d %dh24\" %s/><text x=\"%d\" y=\"%d\">mean of %d steps</text>\n",
            W - 190, TOP - 20, dark, W - 160, TOP - 16, 2 * reach + 1);
    fprintf(p.f, "</svg>\n");
    return picture_close(p.f, path);
}

/* ---- sheet -------------------------------------------------------------------------------- */

enum { ZOOM = 3, DOT = 2, LABEL = 7 * DOT + 10, GAP = 12, ARROW = 10 };

/* Digits and an arrow of 5 x 7 dots, rows of 5 bits from the top. */
static void
sheet_glyph(uint8_t *grey, int width, int x, int y, int which)
{
    static const uint8_t font[11][7] = {
        {016, 021, 023, 025, 031, 021, 016}, {004, 014, 004, 004, 004, 004, 016},
        {016, 021, 001, 002, 004, 010, 037}, {016, 021, 001, 006, 001, 021, 016},
        {002, 006, 012, 022, 037, 002, 002}, {037, 020, 036, 001, 001, 021, 016},
        {016, 020, 020, 036, 021, 021, 016}, {037, 001, 002, 002, 004, 004, 004},
        {016, 021, 021, 016, 021, 021, 016}, {016, 021, 021, 017, 001, 001, 016},
        {000, 004, 002, 037, 002, 004, 000}};
    for (int r = 0; r < 7 * DOT; r++)
        for (int c = 0; c < 5 * DOT; c++)
            if (font[which][r / DOT] >> (4 - c / DOT) & 1)
                grey[(y + r) * width + x + c] = which == ARROW ? 140 : 0;
}

/* Ink on paper, a thin frame around it. */
static void
sheet_digit(uint8_t *grey, int width, int x, int y, const float *pixels, int side)
{
    for (int r = -1; r <= side * ZOOM; r++)
        for (int c = -1; c <= side * ZOOM; c++) {
            int frame = r < 0 || c < 0 || r == side * ZOOM || c == side * ZOOM;
            float ink = frame ? 0.2f : pixels[r / ZOOM * side + c / ZOOM];
            grey[(y + r) * width + x + c] = (uint8_t)(255 - 255 * ink);
        }
}

int
picture_sheet(const char *path, const float *const *pictures, const uint8_t *small, int n, int side,
              int across)
{
    const int rows = n > 0 ? (n + across - 1) / across : 1;
    const int wide = side * ZOOM + GAP, high = side * ZOOM + LABEL + GAP;
    const int width = across * wide + GAP, height = rows * high + GAP;
    const int step = 6 * DOT + 4, label = (side * ZOOM - 2 * step - 5 * DOT) / 2;
    uint8_t *grey = malloc((size_t)width * (size_t)height);
    if (!grey) {
        fprintf(stderr, "%s: no memory\n", path);
        return 0;
    }
    memset(grey, 255, (size_t)width * (size_t)height);
    for (int k = 0; k < n; k++) {
        int x = k % across * wide + GAP, y = k / across * high + GAP, below = y + side * ZOOM + 5;
        sheet_digit(grey, width, x, y, pictures[k], side);
        sheet_glyph(grey, width, x + label, below, small[2 * k] % 10);
        sheet_glyph(grey, width, x + label + step, below, ARROW);
        sheet_glyph(grey, width, x + label + 2 * step, below, small[2 * k + 1] % 10);
    }
    int ok = picture_png(path, grey, width, height);
    free(grey);
    return ok;
}
