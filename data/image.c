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
    const uint8_t *from = image->data;
    for (int64_t at = 0; at < h * w; at++)
        for (int64_t k = 0; k < c; k++, from += size)
            memcpy((char *)b->data + (size_t)(k * h * w + at) * size, from, size);
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

/* Lines of n elements `step` apart to m, from `first` on of those that all of n would become. */
typedef struct { double scale; int64_t n, first; } ImageScale;

static void
image_line(float *to, size_t to_step, int64_t m, const float *from, size_t step, ImageScale s)
{
    const double reach = s.scale > 1 ? s.scale : 1;
    for (int64_t k = 0; k < m; k++) {
        double middle = ((double)(s.first + k) + 0.5) * s.scale, sum = 0, all = 0;
        int64_t lo = (int64_t)(middle - reach + 0.5), hi = (int64_t)(middle + reach + 0.5);
        for (int64_t i = lo > 0 ? lo : 0; i < hi && i < s.n; i++) {
            double d = ((double)i + 0.5 - middle) / reach, weight = 1 - (d < 0 ? -d : d);
            if (weight <= 0)
                continue;
            sum += weight * (double)from[(size_t)i * step];
            all += weight;
        }
        to[(size_t)k * to_step] = (float)(sum / all);
    }
}

/* One plane (h, w) to (H, W); tmp: h * w + h * W floats. */
static void
image_plane(uint8_t *to, int64_t H, int64_t W, const uint8_t *from, int64_t h, int64_t w,
            float *tmp)
{
    const double by_h = (double)h / (double)H, by_w = (double)w / (double)W;
    const double scale = by_h < by_w ? by_h : by_w;
    ImageScale sy = {scale, h, (int64_t)(((double)h / scale - (double)H) / 2 + 0.5)};
    ImageScale sx = {scale, w, (int64_t)(((double)w / scale - (double)W) / 2 + 0.5)};
    float *narrow = tmp + h * w, column[1];

    for (int64_t k = 0; k < h * w; k++)
        tmp[k] = from[k];
    for (int64_t y = 0; y < h; y++)
        image_line(narrow + y * W, 1, W, tmp + y * w, 1, sx);
    for (int64_t x = 0; x < W; x++)
        for (int64_t y = 0; y < H; y++) {
            ImageScale one = sy;
            one.first += y;
            image_line(column, 1, 1, narrow + x, (size_t)W, one);
            to[y * W + x] = (uint8_t)(column[0] + 0.5f);
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
    float *tmp = malloc((size_t)(h * w + h * width) * sizeof *tmp);
    for (int64_t k = 0; tmp && k < c; k++)
        image_plane((uint8_t *)b->data + k * height * width, height, width,
                    (const uint8_t *)image->data + k * h * w, h, w, tmp);
    if (!tmp)
        data_fail(b, JOT_EMEM, "image_fit: no memory for %lld x %lld pixels", (long long)h,
                  (long long)w);
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
                                            "65536 "
                         "asked, %d and %lld x %lld found", channels, (long long)height,
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
