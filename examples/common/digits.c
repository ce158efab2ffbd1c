/* digits.c - digits drawn with a pen; or read.
 *
 * A digit is a few strokes, each a run of points joined by a smooth curve (Catmull-Rom), in a box
 * of 1 x 1. A picture takes the strokes through a random affine map (size, slant, turn, place),
 * moves every point a little, and inks each pixel by its distance from the nearest piece of curve.
 * Then comes noise. All of it follows from a seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "data.h"
#include "digits.h"

/* x, y of points, y downwards; -1 ends a stroke, -2 the digit. */
static const float shapes[10][48] = {
    {.5f, .08f, .22f, .25f, .16f, .55f, .28f, .85f, .52f, .93f, .78f, .8f, .84f, .48f, .74f, .2f,
     .5f, .08f, -2},
    {.34f, .28f, .46f, .18f, .54f, .08f, -1, .54f, .08f, .53f, .5f, .52f, .93f, -2},
    {.2f, .28f, .34f, .1f, .62f, .08f, .78f, .26f, .68f, .48f, .42f, .7f, .2f, .91f, -1,
     .2f, .91f, .5f, .9f, .84f, .9f, -2},
    {.22f, .16f, .48f, .07f, .74f, .2f, .68f, .4f, .44f, .47f, -1,
     .44f, .47f, .74f, .56f, .78f, .78f, .54f, .94f, .2f, .84f, -2},
    {.6f, .08f, .42f, .34f, .18f, .64f, -1, .18f, .64f, .5f, .63f, .86f, .62f, -1,
     .68f, .36f, .66f, .66f, .65f, .95f, -2},
    {.78f, .1f, .52f, .1f, .28f, .11f, -1, .28f, .11f, .26f, .28f, .24f, .46f, -1,
     .24f, .46f, .52f, .38f, .8f, .54f, .76f, .82f, .48f, .94f, .18f, .84f, -2},
    {.66f, .07f, .4f, .24f, .22f, .54f, .26f, .84f, .52f, .94f, .76f, .8f, .72f, .58f, .48f, .5f,
     .26f, .66f, -2},
    {.16f, .12f, .5f, .11f, .84f, .1f, -1, .84f, .1f, .66f, .38f, .5f, .66f, .42f, .94f, -2},
    {.68f, .2f, .46f, .07f, .26f, .22f, .44f, .44f, .7f, .62f, .74f, .84f, .48f, .94f, .24f, .8f,
     .36f, .58f, .66f, .36f, .68f, .2f, -2},
    {.74f, .3f, .58f, .1f, .32f, .12f, .22f, .34f, .4f, .5f, .64f, .44f, .74f, .3f, -1,
     .74f, .3f, .72f, .6f, .62f, .94f, -2}
};

typedef struct { float x, y; } Point;
enum { MAX_POINTS = 24, PIECES = 6 };

static uint32_t
draw_u32(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

static float
between(uint32_t *state, float lo, float hi)
{
    return lo + (hi - lo) * (float)(draw_u32(state) >> 8) / 16777216.0f;
}

static float
distance(Point p, Point a, Point b)
{
    float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    float t = length2 > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2 : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypotf(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/* Ink of a straight piece: full within the pen's radius, fading over one pixel. */
static void
ink_piece(float *pixels, Point a, Point b, float radius)
{
    float reach = radius + 1;
    int x0 = (int)floorf(fminf(a.x, b.x) - reach), x1 = (int)ceilf(fmaxf(a.x, b.x) + reach);
    int y0 = (int)floorf(fminf(a.y, b.y) - reach), y1 = (int)ceilf(fmaxf(a.y, b.y) + reach);
    for (int y = y0 < 0 ? 0 : y0; y <= y1 && y < DIGIT_SIDE; y++)
        for (int x = x0 < 0 ? 0 : x0; x <= x1 && x < DIGIT_SIDE; x++) {
            Point p = {(float)x, (float)y};
            float v = radius + 0.5f - distance(p, a, b), *to = &pixels[y * DIGIT_SIDE + x];
            v = v > 1 ? 1 : v;
            if (v > *to)
                *to = v;
        }
}

static Point
curve(const Point *p, int n, int k, float t) /* between p[k] and p[k + 1] */
{
    Point a = p[k > 0 ? k - 1 : 0], b = p[k], c = p[k + 1], d = p[k + 2 < n ? k + 2 : n - 1], r;
    float u = t * t, v = u * t;
    float wa = -v + 2 * u - t, wb = 3 * v - 5 * u + 2, wc = -3 * v + 4 * u + t, wd = v - u;
    r.x = (a.x * wa + b.x * wb + c.x * wc + d.x * wd) / 2;
    r.y = (a.y * wa + b.y * wb + c.y * wc + d.y * wd) / 2;
    return r;
}

static void
ink_stroke(float *pixels, const Point *p, int n, float radius)
{
    for (int k = 0; k + 1 < n; k++)
        for (int piece = 0; piece < PIECES; piece++)
            ink_piece(pixels, curve(p, n, k, (float)piece / PIECES),
                      curve(p, n, k, (float)(piece + 1) / PIECES), radius);
}

/* Box coordinates to pixels: [xx xy; yx yy] about the middle, then (x, y). */
typedef struct { float xx, xy, yx, yy, x, y, wobble; } Hand;

static Hand
draw_hand(uint32_t *state)
{
    float turn = between(state, -0.28f, 0.28f), slant = between(state, -0.35f, 0.35f);
    float wide = between(state, 13, 20), high = between(state, 17, 23);
    Hand h;
    h.xx = wide * cosf(turn);
    h.xy = high * (sinf(turn) - slant * cosf(turn));
    h.yx = -wide * sinf(turn);
    h.yy = high * (cosf(turn) + slant * sinf(turn));
    h.x = 13.5f + between(state, -2.5f, 2.5f);
    h.y = 13.5f + between(state, -2.5f, 2.5f);
    h.wobble = between(state, 0.01f, 0.045f);
    return h;
}

static void
draw_digit(float *pixels, int digit, uint32_t *state)
{
    Hand h = draw_hand(state);
    float radius = between(state, 0.7f, 1.7f), noise = between(state, 0, 0.22f);
    const float *s = shapes[digit];
    Point p[MAX_POINTS];
    int n = 0;

    memset(pixels, 0, DIGIT_PIXELS * sizeof *pixels);
    for (; *s != -2 || n; s++) {
        if (*s < 0) {
            ink_stroke(pixels, p, n, radius);
            n = 0;
            if (*s == -2)
                break;
            continue;
        }
        float x = *s++ - 0.5f + between(state, -h.wobble, h.wobble);
        float y = *s - 0.5f + between(state, -h.wobble, h.wobble);
        p[n].x = h.x + h.xx * x + h.xy * y;
        p[n++].y = h.y + h.yx * x + h.yy * y;
    }
    for (int k = 0; k < DIGIT_PIXELS; k++) {
        float v = pixels[k] + between(state, -noise, noise) + between(state, -noise, noise);
        pixels[k] = v < 0 ? 0 : v > 1 ? 1 : v;
    }
}

int
digits_draw(Digits *digits, int n, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 88172645u;

    digits->n = n;
    digits->pixels = malloc((size_t)n * DIGIT_PIXELS * sizeof *digits->pixels);
    digits->labels = malloc((size_t)n);
    if (!digits->pixels || !digits->labels) {
        digits_free(digits);
        return 0;
    }
    for (int k = 0; k < n; k++) {
        digits->labels[k] = (uint8_t)(draw_u32(&state) >> 8) % 10;
        draw_digit(digits->pixels + (size_t)k * DIGIT_PIXELS, digits->labels[k], &state);
    }
    return 1;
}

/* folder/name.gz, or folder/name: u8 of that shape, n whatever the file says */
static jot_Buffer *
digits_part(const char *folder, const char *name, int rank)
{
    char path[1100];

    snprintf(path, sizeof path, "%s/%s.gz", folder, name);
    if (access(path, R_OK))
        path[strlen(path) - 3] = 0;
    jot_Buffer *b = jot_read(path);
    bool fits = b && !b->status && b->dtype == JOT_U8 && b->rank == rank && b->shape[0] > 0 &&
                (rank == 1 || (b->shape[1] == DIGIT_SIDE && b->shape[2] == DIGIT_SIDE));
    if (fits)
        return b;
    fprintf(stderr, "%s\n", b && b->status ? b->message : "not a file of MNIST's");
    jot_buffer_free(b);
    return NULL;
}

int
digits_read(Digits *digits, const char *folder, const char *images, const char *labels)
{
    jot_Buffer *x = digits_part(folder, images, 3), *y = x ? digits_part(folder, labels, 1) : NULL;
    const int64_t n = y && x->shape[0] == y->shape[0] ? x->shape[0] : 0;

    digits->n = (int)n;
    digits->pixels = n ? malloc(x->nbytes * sizeof *digits->pixels) : NULL;
    digits->labels = n ? malloc(y->nbytes) : NULL;
    const int ok = digits->pixels && digits->labels;
    for (size_t k = 0; ok && k < x->nbytes; k++)
        digits->pixels[k] = (float)((uint8_t *)x->data)[k] / 255;
    for (size_t k = 0; ok && k < y->nbytes; k++)
        digits->labels[k] = ((uint8_t *)y->data)[k] % 10;
    if (!ok && y)
        fprintf(stderr, "%s: as many labels as images asked, and memory for them\n", folder);
    jot_buffer_free(x);
    jot_buffer_free(y);
    if (!ok)
        digits_free(digits);
    return ok;
}

void
digits_free(Digits *digits)
{
    free(digits->pixels);
    free(digits->labels);
    digits->pixels = NULL;
    digits->labels = NULL;
    digits->n = 0;
}
