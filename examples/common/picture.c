/* picture.c - PNG without a library: the format wants a zlib stream, and zlib allows blocks that
 * are stored as they are. So a PNG is a header, the rows behind a few bytes of framing, and two
 * checksums.
 *
 *     signature | IHDR size, depth | IDAT 78 01 [last? length ~length bytes]... adler32 | IEND
 *     every chunk: length, name, content, crc32 of name and content */
#include <errno.h>
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

int
picture_curve(const char *path, const char *title, const char *xlabel, const float *y, int n)
{
    enum { W = 720, H = 400, LEFT = 60, TOP = 40, RIGHT = 20, BOTTOM = 50 };
    FILE *f = picture_open(path);
    float top = 0;
    if (!f)
        return 0;
    for (int k = 0; k < n; k++)
        top = y[k] > top ? y[k] : top;
    top = top > 0 ? top : 1;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n", W, H);
    fprintf(f, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", W, H);
    fprintf(f, "<text x=\"%d\" y=\"24\" font-size=\"16\">%s</text>\n", LEFT, title);
    for (int k = 0; k <= 4; k++) {
        int at = TOP + (H - TOP - BOTTOM) * (4 - k) / 4;
        int across = LEFT + (W - LEFT - RIGHT) * k / 4;
        fprintf(f, "<path d=\"M%d %dH%d\" stroke=\"#ddd\"/>", LEFT, at, W - RIGHT);
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.2f</text>\n", LEFT - 6, at + 4,
                top * (float)k / 4);
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", across,
                H - BOTTOM + 18, (int)((long)n * k / 4));
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (LEFT + W - RIGHT) / 2,
            H - 12, xlabel);
    fprintf(f, "<polyline fill=\"none\" stroke=\"#1f5fbf\" stroke-width=\"1.5\" points=\"");
    for (int k = 0; k < n; k++)
        fprintf(f, "%.1f,%.1f ", LEFT + (double)(W - LEFT - RIGHT) * k / (n > 1 ? n - 1 : 1),
                H - BOTTOM - (double)(H - TOP - BOTTOM) * y[k] / top);
    fprintf(f, "\"/>\n</svg>\n");
    return picture_close(f, path);
}

/* Digits 0..9 of 3 x 5 dots, rows of 3 bits from the top. */
static void
picture_small(uint8_t *grey, int width, int x, int y, int digit, uint8_t ink)
{
    static const uint16_t font[10] = {075557, 026227, 071747, 071717, 055711,
                                      074717, 074757, 071111, 075757, 075717};
    for (int r = 0; r < 10; r++)
        for (int c = 0; c < 6; c++)
            if (font[digit % 10] >> (14 - r / 2 * 3 - c / 2) & 1)
                grey[(y + r) * width + x + c] = ink;
}

int
picture_sheet(const char *path, const float *const *pictures, const uint8_t *small, int n, int side,
              int across)
{
    enum { ZOOM = 2, LABEL = 16, GAP = 6 };
    int rows = n > 0 ? (n + across - 1) / across : 1;
    int wide = side * ZOOM + GAP, high = side * ZOOM + LABEL + GAP;
    int width = across * wide + GAP, height = rows * high + GAP;
    uint8_t *grey = malloc((size_t)width * (size_t)height);
    if (!grey) {
        fprintf(stderr, "%s: no memory\n", path);
        return 0;
    }
    memset(grey, 255, (size_t)width * (size_t)height);
    for (int k = 0; k < n; k++) {
        int x = k % across * wide + GAP, y = k / across * high + GAP;
        for (int r = 0; r < side * ZOOM; r++)
            for (int c = 0; c < side * ZOOM; c++) {
                float ink = pictures[k][r / ZOOM * side + c / ZOOM];
                grey[(y + r) * width + x + c] = (uint8_t)(235 - 235 * ink);
            }
        picture_small(grey, width, x + 2, y + side * ZOOM + 3, small[2 * k], 150);
        picture_small(grey, width, x + 14, y + side * ZOOM + 3, small[2 * k + 1], 0);
    }
    int ok = picture_png(path, grey, width, height);
    free(grey);
    return ok;
}
