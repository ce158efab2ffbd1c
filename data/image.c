/* data/image.c - decoded images into the shape that is asked for: planes, channels, size.
 *
 *     (h, w, c) -> (c, h, w) -> c' channels -> the shorter side resized -> the middle cut out
 *
 * Resizing weighs the pixels under a tent as wide as a pixel of the result, at least two of the
 * image's (bilinear with antialiasing, as PIL's), along rows and then along columns.
 *
 * Read before: data/png.c. After: data/folder.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"

/* A new buffer in the place of `old`, whose elements fill() reads. */
static jot_Buffer *
image_next(jot_Buffer *old, jot_DType dtype, int64_t c, int64_t h, int64_t w)
{
    jot_Buffer *b = jot_buffer_make(dtype, 3, (int64_t[]){c, h, w});

    if (!b || b->status)
        jot_buffer_free(old);
    return b;
}

jot_Buffer *
data_planes(jot_Buffer *image)
{
    if (!image || image->status)
        return image;
    const int64_t h = image->shape[0], w = image->shape[1], c = image->shape[2];
    const size_t size = jot_dtype_nbytes(image->dtype);
    if (c == 1) {
        image->shape[0] = 1, image->shape[1] = h, image->shape[2] = w;
        return image;
    }
    jot_Buffer *b = image_next(image, image->dtype, c, h, w);
    if (!b || b->status)
        return b;
    const size_t n = (size_t)(h * w), step = (size_t)c;
    for (size_t k = 0; k < step; k++)
        if (size == 1)
            for (size_t at = 0; at < n; at++)
                ((uint8_t *)b->data)[k * n + at] = ((const uint8_t *)image->data)[at * step + k];
        else
            for (size_t at = 0; at < n; at++)
                ((uint16_t *)b->data)[k * n + at] = ((const uint16_t *)image->data)[at * step + k];
    jot_buffer_free(image);
    return b;
}

static jot_Buffer *
image_bytes(jot_Buffer *image) /* of 16 bits the upper 8 */
{
    if (image->dtype == JOT_U8)
        return image;
    jot_Buffer *b = image_next(image, JOT_U8, image->shape[0], image->shape[1], image->shape[2]);
    if (!b || b->status)
        return b;
    for (size_t k = 0; k < b->nbytes; k++)
        ((uint8_t *)b->data)[k] = (uint8_t)(((const uint16_t *)image->data)[k] >> 8);
    jot_buffer_free(image);
    return b;
}

/* 1: grey, 2: and alpha, 3: RGB, 4: and alpha */
static jot_Buffer *
image_channels(jot_Buffer *image, int to)
{
    const int from = (int)image->shape[0];
    if (!to || from == to)
        return image;
    jot_Buffer *b = image_next(image, JOT_U8, to, image->shape[1], image->shape[2]);
    if (!b || b->status)
        return b;
    const size_t n = (size_t)(image->shape[1] * image->shape[2]);
    const uint8_t *p = image->data;
    uint8_t *q = b->data;
    for (size_t k = 0; k < n; k++) {
        const bool colour = from >= 3, alpha = from == 2 || from == 4;
        uint8_t rgb[3] = {p[k], p[colour ? n + k : k], p[colour ? 2 * n + k : k]};
        if (to < 3 && colour)
            rgb[0] = (uint8_t)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
        for (int c = 0; c < to; c++)
            q[(size_t)c * n + k] = c < (to < 3 ? 1 : 3) ? rgb[c] :
                                   alpha ? p[(size_t)(from - 1) * n + k] : 255;
    }
    jot_buffer_free(image);
    return b;
}

/* What element k of m becomes of: `most` of n from first[k] on, each with its weight. */
typedef struct { int64_t m, most, *first; float *weight; } ImageTents;

/* The middle m of those that all of n would become, `scale` elements wide each; false: no memory */
static bool
image_tents(ImageTents *t, int64_t m, int64_t n, double scale)
{
    const double reach = scale > 1 ? scale : 1;
    const int64_t skipped = (int64_t)(((double)n / scale - (double)m) / 2 + 0.5);

    t->m = m;
    t->most = (int64_t)(2 * reach) + 2 < n ? (int64_t)(2 * reach) + 2 : n;
    t->first = malloc((size_t)m * sizeof *t->first);
    t->weight = calloc((size_t)(m * t->most), sizeof *t->weight);
    for (int64_t k = 0; t->first && t->weight && k < m; k++) {
        const double middle = ((double)(skipped + k) + 0.5) * scale;
        int64_t lo = (int64_t)(middle - reach + 0.5);
        double all = 0;
        lo = lo < 0 ? 0 : lo > n - t->most ? n - t->most : lo;
        t->first[k] = lo;
        for (int turn = 0; turn < 2; turn++) /* their sum, then their shares of it */
            for (int64_t i = 0; i < t->most; i++) {
                double d = ((double)(lo + i) + 0.5 - middle) / reach, w = 1 - (d < 0 ? -d : d);
                if (turn && w > 0)
                    t->weight[k * t->most + i] = (float)(w / all);
                all += !turn && w > 0 ? w : 0;
            }
    }
    return t->first && t->weight;
}

static void
image_tents_free(ImageTents *t)
{
    free(t->first);
    free(t->weight);
}

/* One plane of rows of w; tmp: (rows + 1) * W floats. */
static void
image_plane(uint8_t *to, const uint8_t *from, int64_t h, int64_t w, const ImageTents *down,
            const ImageTents *across, float *tmp)
{
    const int64_t W = across->m;
    float *sum = tmp + h * W;

    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < W; x++) {
            const uint8_t *p = from + y * w + across->first[x];
            const float *weight = across->weight + x * across->most;
            float v = 0;
            for (int64_t i = 0; i < across->most; i++)
                v += weight[i] * (float)p[i];
            tmp[y * W + x] = v;
        }
    for (int64_t y = 0; y < down->m; y++, to += W) {
        memset(sum, 0, (size_t)W * sizeof *sum);
        for (int64_t i = 0; i < down->most; i++) {
            const float weight = down->weight[y * down->most + i];
            const float *row = tmp + (down->first[y] + i) * W;
            for (int64_t x = 0; x < W; x++)
                sum[x] += weight * row[x];
        }
        for (int64_t x = 0; x < W; x++)
            to[x] = (uint8_t)(sum[x] + 0.5f);
    }
}

static jot_Buffer *
image_resize(jot_Buffer *image, int64_t height, int64_t width)
{
    const int64_t c = image->shape[0], h = image->shape[1], w = image->shape[2];
    if (height == h && width == w)
        return image;
    jot_Buffer *b = image_next(image, JOT_U8, c, height, width);
    if (!b || b->status)
        return b;
    const double by_h = (double)h / (double)height, by_w = (double)w / (double)width;
    ImageTents down = {0, 0, NULL, NULL}, across = down;
    float *tmp = malloc((size_t)((h + 1) * width) * sizeof *tmp);
    if (!image_tents(&down, height, h, by_h < by_w ? by_h : by_w) ||
        !image_tents(&across, width, w, by_h < by_w ? by_h : by_w) || !tmp)
        data_fail(b, JOT_EMEM, "image_fit: no memory for %lld x %lld pixels", (long long)h,
                  (long long)w);
    for (int64_t k = 0; !b->status && k < c; k++)
        image_plane((uint8_t *)b->data + k * height * width,
                    (const uint8_t *)image->data + k * h * w, h, w, &down, &across, tmp);
    image_tents_free(&down);
    image_tents_free(&across);
    free(tmp);
    jot_buffer_free(image);
    return b;
}

jot_Buffer *
jot_image_fit(jot_Buffer *image, int channels, int64_t height, int64_t width)
{
    if (!image || image->status)
        return image;
    if (image->rank != 3 || (image->dtype != JOT_U8 && image->dtype != JOT_U16) ||
        image->shape[0] < 1 || image->shape[0] > 4)
        return data_fail(image, JOT_ESHAPE, "image_fit: u8 or u16 (1 to 4, h, w) asked, %s of rank "
                         "%d found", jot_dtype_name(image->dtype), image->rank);
    if (channels < 0 || channels > 4 || height < 0 || width < 0 || height > 1 << 16 ||
        width > 1 << 16)
        return data_fail(image, JOT_ERANGE, "image_fit: 0 to 4 channels and extents of at most "
                         "65536 asked, %d and %lld x %lld found", channels, (long long)height,
                         (long long)width);
    if (!image->shape[1] || !image->shape[2])
        return data_fail(image, JOT_ESHAPE, "image_fit: an image without pixels");
    image = image_bytes(image);
    if (image && !image->status)
        image = image_channels(image, channels);
    if (image && !image->status)
        image = image_resize(image, height ? height : image->shape[1],
                             width ? width : image->shape[2]);
    return image;
}
#endif
