/* data/png.c - PNG: read by libpng, where it was there at build time; written by ourselves.
 *
 * A PNG is a header, a zlib stream of rows behind a filter byte each, and checksums. Without zlib
 * the stream is made of blocks that are stored as they are, which zlib allows.
 *
 *     signature | IHDR size, depth | IDAT zlib stream | IEND
 *     every chunk: length, name, content, crc32 of name and content
 *
 * Before a row is read, what the rows would take is compared with what the file could hold.
 *
 * Read before: data/file.c. After: data/jpeg.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#ifdef JOT_PNG
#include <png.h>
#include <setjmp.h>
#endif
#ifdef JOT_ZLIB
#include <zlib.h>
#endif

/* ---- reading ---- */

#ifdef JOT_PNG
typedef struct {
    png_structp png;
    png_infop info;
    DataBytes file;
    size_t at;
    jot_Buffer *b;
    png_bytep *rows;
    char why[200];
} PngRead;

static void
pngread_error(png_structp png, png_const_charp text)
{
    PngRead *r = png_get_error_ptr(png);

    snprintf(r->why, sizeof r->why, "%s", text);
    png_longjmp(png, 1);
}

static void
pngread_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void
pngread_bytes(png_structp png, png_bytep to, size_t n)
{
    PngRead *r = png_get_io_ptr(png);

    if (n > r->file.n - r->at)
        png_error(png, "the file ends in the middle");
    memcpy(to, r->file.p + r->at, n);
    r->at += n;
}

/* The buffer, (h, w, c), and its rows; false: told. */
static bool
pngread_room(PngRead *r)
{
    const int64_t w = png_get_image_width(r->png, r->info);
    const int64_t h = png_get_image_height(r->png, r->info);
    const bool wide = png_get_bit_depth(r->png, r->info) == 16;
    const size_t row = png_get_rowbytes(r->png, r->info);
    const size_t most = r->file.n > SIZE_MAX / DATA_MOST ? SIZE_MAX : DATA_MOST * r->file.n;

    /* of packed bits a byte becomes up to 8 pixels of 4 channels */
    if ((row + sizeof *r->rows) / 32 > most / (size_t)h) {
        r->b = data_failed(JOT_EIO, "%s: %lld x %lld pixels asked, more than %zu bytes of PNG hold",
                           r->file.name, (long long)h, (long long)w, r->file.n);
        return false;
    }
    r->b = jot_buffer_make(wide ? JOT_U16 : JOT_U8, 3,
                          (int64_t[]){h, w, png_get_channels(r->png, r->info)});
    r->rows = malloc((size_t)h * sizeof *r->rows);
    if (!r->b || r->b->status || !r->rows) {
        r->b = data_fail(r->b, JOT_EMEM, "%s: no memory for %lld x %lld pixels", r->file.name,
                         (long long)h, (long long)w);
        return false;
    }
    for (int64_t y = 0; y < h; y++)
        r->rows[y] = (png_bytep)r->b->data + (size_t)y * row;
    return true;
}

/* False: r->why says why, unless the buffer does. */
static bool
pngread_image(PngRead *r)
{
    const union { uint16_t u; uint8_t b[2]; } one = {1};

    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_user_limits(r->png, 1 << 20, 1 << 20);
    png_set_chunk_cache_max(r->png, 64);
    png_set_chunk_malloc_max(r->png, 1 << 20);
    png_set_read_fn(r->png, r, pngread_bytes);
    png_read_info(r->png, r->info);
    png_set_expand(r->png);
    if (png_get_bit_depth(r->png, r->info) == 16 && one.b[0])
        png_set_swap(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (!pngread_room(r))
        return false;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return true;
}

jot_Buffer *
data_png(DataBytes file)
{
    PngRead r = {.file = file};

    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, pngread_error, pngread_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (!r.info)
        r.b = data_failed(JOT_EMEM, "%s: no memory, or another libpng than this build's",
                          file.name);
    else if (!pngread_image(&r) && !(r.b && r.b->status)) {
        jot_buffer_free(r.b);
        r.b = data_failed(JOT_EIO, "%s: byte %zu: PNG: %s", file.name, r.at, r.why);
    }
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    return data_planes(r.b);
}
#else
jot_Buffer *
data_png(DataBytes file)
{
    return data_failed(JOT_EIO, "%s: %s", file.name, jot_reads("png"));
}
#endif

/* ---- writing ---- */

static uint32_t
pngwrite_crc(uint32_t crc, const uint8_t *p, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        crc ^= p[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return crc;
}

static void
pngwrite_u32(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)(v >> 24), to[1] = (uint8_t)(v >> 16);
    to[2] = (uint8_t)(v >> 8), to[3] = (uint8_t)v;
}

static void
pngwrite_chunk(FILE *f, const char *name, const uint8_t *p, size_t n)
{
    uint8_t head[8], tail[4];

    pngwrite_u32(head, (uint32_t)n);
    memcpy(head + 4, name, 4);
    pngwrite_u32(tail, ~pngwrite_crc(pngwrite_crc(~(uint32_t)0, head + 4, 4), p, n));
    fwrite(head, 1, 8, f);
    fwrite(p, 1, n, f);
    fwrite(tail, 1, 4, f);
}

/* A zlib stream of n bytes at `from`, whose length is in *n then; room: pngwrite_bound(n). */
static size_t
pngwrite_bound(size_t n)
{
    return n + n / 1000 + 5 * (n / 65535 + 1) + 64;
}

static void
pngwrite_pack(uint8_t *to, const uint8_t *from, size_t *n)
{
#ifdef JOT_ZLIB
    uLongf packed = (uLongf)pngwrite_bound(*n);
    if (compress2(to, &packed, from, (uLong)*n, 6) == Z_OK) {
        *n = packed;
        return;
    }
#endif
    uint8_t *t = to;
    uint32_t a = 1, b = 0;
    *t++ = 0x78, *t++ = 0x01;
    for (size_t at = 0, part; at < *n; at += part) {
        part = *n - at < 65535 ? *n - at : 65535;
        *t++ = at + part == *n;
        *t++ = (uint8_t)part, *t++ = (uint8_t)(part >> 8);
        *t++ = (uint8_t)~part, *t++ = (uint8_t)(~part >> 8);
        memcpy(t, from + at, part);
        t += part;
    }
    for (size_t k = 0; k < *n; k++) {
        a = (a + from[k]) % 65521;
        b = (b + a) % 65521;
    }
    pngwrite_u32(t, b << 16 | a);
    *n = (size_t)(t + 4 - to);
}

/* (c, h, w) as rows of pixels behind a filter byte each (0: none) */
static void
pngwrite_rows(uint8_t *to, const uint8_t *from, size_t c, size_t h, size_t w)
{
    for (size_t y = 0; y < h; y++) {
        *to++ = 0;
        for (size_t x = 0; x < w; x++)
            for (size_t k = 0; k < c; k++)
                *to++ = from[(k * h + y) * w + x];
    }
}

bool
jot_write_png(jot_Var image, const char *path)
{
    static const uint8_t kind[5] = {0, 0, 4, 2, 6}; /* grey, grey and alpha, RGB, RGBA */
    const uint8_t *data = jot_data(image);
    const int64_t c = jot_rank(image) == 3 ? jot_extent(image, 0) : 0;

    if (!data)
        return false;
    if (jot_dtype(image) != JOT_U8)
        return jot_ok(jot_raise(image.ctx, JOT_EDTYPE, "write_png: u8 asked, %s found",
                                jot_dtype_name(jot_dtype(image))));
    if (c < 1 || c > 4 || jot_extent(image, 1) < 1 || jot_extent(image, 2) < 1 ||
        jot_nelem(image) > (1 << 30))
        return jot_ok(jot_raise(image.ctx, JOT_ESHAPE, "write_png: (1 to 4, h, w) of at most 2^30 "
                                "elements asked, rank %d and %lld elements found", jot_rank(image),
                                (long long)jot_nelem(image)));
    size_t h = (size_t)jot_extent(image, 1), w = (size_t)jot_extent(image, 2);
    size_t n = h * (1 + w * (size_t)c), all = n + pngwrite_bound(n);
    uint8_t *rows = malloc(all), head[13] = {0};
    FILE *f = rows ? data_create(image.ctx, path) : NULL;
    if (!rows)
        jot_raise(image.ctx, JOT_EMEM, "write_png: no memory for %zu bytes", all);
    if (f) {
        pngwrite_rows(rows, data, (size_t)c, h, w);
        uint8_t *packed = rows + n;
        pngwrite_pack(packed, rows, &n);
        pngwrite_u32(head, (uint32_t)w);
        pngwrite_u32(head + 4, (uint32_t)h);
        head[8] = 8, head[9] = kind[c];
        fwrite("\211PNG\r\n\032\n", 1, 8, f);
        pngwrite_chunk(f, "IHDR", head, 13);
        pngwrite_chunk(f, "IDAT", packed, n);
        pngwrite_chunk(f, "IEND", head, 0);
    }
    free(rows);
    return f && data_finish(image.ctx, f, path);
}
#endif
