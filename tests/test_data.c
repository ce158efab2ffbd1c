/* tests/test_data.c - files into buffers and back (data.h): each format by bytes that were made by
 * hand or by its own library, each part of a file that can be wrong, and what is said then; tables,
 * vocabularies, images that are fitted.
 *
 * Guards: data/file.c data/decode.c data/idx.c data/png.c data/jpeg.c data/image.c data/wav.c
 * data/csv.c data/vocab.c */
#include "tests/test.h"
#include "tests/data_files.h"
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef JOT_ZLIB
#include <zlib.h>
#endif

static jot_Ctx *ctx;
static FileBytes *file;

/* b holds these elements, in this shape. */
static void
holds(int line, jot_Buffer *b, jot_DType dtype, jot_Ints shape, const double *v)
{
    int64_t n = 1;
    CHECK(b && !b->status && b->dtype == dtype && b->rank == shape.n, "line %d: %s", line,
          b ? b->message : "NULL");
    for (int d = 0; b && !b->status && d < shape.n; d++) {
        CHECK(b->shape[d] == shape.v[d], "line %d: extent %d: %lld", line, d,
              (long long)b->shape[d]);
        n *= shape.v[d];
    }
    if (!b || b->status || b->nbytes != (size_t)n * jot_dtype_nbytes(dtype)) {
        CHECK(b && b->status == JOT_OK && 0, "line %d: size", line);
        jot_buffer_free(b);
        return;
    }
    jot_Var x = jot_cast(jot_buffer_var(ctx, b), JOT_F64);
    const double *got = jot_data(x);
    int bad = 0;
    for (int64_t k = 0; got && k < n; k++)
        if (!(got[k] == v[k] || (got[k] != got[k] && v[k] != v[k])) && !bad++)
            printf("line %d: element %lld: %.9g, not %.9g\n", line, (long long)k, got[k], v[k]);
    CHECK(got && !bad, "line %d: %d of %lld elements, %s", line, bad, (long long)n,
          jot_message(ctx));
    jot_free(x);
}
#define HOLDS(b, dtype, shape, ...) holds(__LINE__, b, dtype, shape, (const double[]){__VA_ARGS__})

static void
fails(int line, jot_Buffer *b, jot_Status status, const char *text)
{
    CHECK(b && b->status == status && strstr(b->message, text) && !b->data, "line %d: \"%s\" in "
          "\"%s\"", line, text, b ? b->message : "NULL");
    jot_Var x = jot_buffer_var(ctx, b);
    CHECK(!jot_ok(x) && jot_error(ctx) == status && strstr(jot_message(ctx), text), "line %d: %s",
          line, jot_message(ctx));
    jot_clear(ctx);
}
#define FAILS(b, status, text) fails(__LINE__, b, status, text)
#define BYTES(s) "bytes", s, sizeof(s) - 1

static void
test_idx(void)
{
    HOLDS(jot_decode(BYTES("\0\0\x08\2\0\0\0\2\0\0\0\3\1\2\3\4\5\377")), JOT_U8, JOT_SHAPE(2, 3),
          1, 2, 3, 4, 5, 255);
    HOLDS(jot_decode(BYTES("\0\0\x09\1\0\0\0\2\1\377")), JOT_I8, JOT_SHAPE(2), 1, -1);
    HOLDS(jot_decode(BYTES("\0\0\x0b\1\0\0\0\2\1\2\377\376")), JOT_I16, JOT_SHAPE(2), 258, -2);
    HOLDS(jot_decode(BYTES("\0\0\x0c\1\0\0\0\1\1\2\3\4")), JOT_I32, JOT_SHAPE(1), 16909060);
    HOLDS(jot_decode(BYTES("\0\0\x0d\0\xc0\x20\0\0")), JOT_F32, JOT_SHAPE(), -2.5);
    HOLDS(jot_decode(BYTES("\0\0\x0e\0\x40\x09\0\0\0\0\0\0")), JOT_F64, JOT_SHAPE(), 3.125);
    HOLDS(jot_decode(BYTES("\0\0\x08\2\0\0\0\0\377\377\377\377")), JOT_U8,
          JOT_SHAPE(0, 0xffffffffll), 0);
    HOLDS(jot_decode(BYTES("\0\0\x08\10\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1"
                           "\0\0\0\2ab")), JOT_U8, JOT_SHAPE(1, 1, 1, 1, 1, 1, 1, 2), 97, 98);
    FAILS(jot_decode(BYTES("\0\0\x07\1\0\0\0\1x")), JOT_EIO, "byte 2: an idx type 8, 9, 11");
    FAILS(jot_decode(BYTES("\0\0\x08\11")), JOT_EIO, "byte 3: a rank of at most 8 asked, 9 found");
    FAILS(jot_decode(BYTES("\0\0\x08\3\0\0\0\2")), JOT_EIO,
          "an idx header of 16 bytes asked, 8 found");
    FAILS(jot_decode(BYTES("\0\0\x08\1\0\0\0\2x")), JOT_EIO, "2 bytes of elements asked after byte "
          "8, 1 found");
    FAILS(jot_decode(BYTES("\0\0\x08\1\0\0\0\2xyz")), JOT_EIO, "3 found");
    FAILS(jot_decode(BYTES("\0\0\x08\2\377\377\377\377\377\377\377\377xyz")), JOT_EIO,
          "18446744065119617025 bytes of elements asked after byte 12, 3 found");
    FAILS(jot_decode(BYTES("\0\0\x08\3\377\377\377\377\377\377\377\377\377\377\377\377xyz")),
          JOT_EIO, "more elements than 3 bytes");
    FAILS(jot_decode(BYTES("")), JOT_EIO, "bytes: idx, PNG, JPEG or WAV asked, 0 bytes found");
    FAILS(jot_decode(BYTES("hello")), JOT_EIO, "begins with 68 65 6c 6c");
    FAILS(jot_read(files_path("none")), JOT_EIO, "none: No such file");
    FAILS(jot_read("/tmp"), JOT_EIO, "a file asked, a folder found");
    FAILS(jot_read(NULL), JOT_EIO, "a path asked");
    HOLDS(jot_read_bytes(files_put("text", "ab\0c", 4)), JOT_U8, JOT_SHAPE(4), 97, 98, 0, 99);
    HOLDS(jot_read_bytes(files_put("text", "", 0)), JOT_U8, JOT_SHAPE(0), 0);

    static const jot_DType all[] = {JOT_U8, JOT_I8, JOT_I16, JOT_I32, JOT_F32, JOT_F64};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        jot_Var x = jot_cast(jot_arange(ctx, JOT_F64, 0, 1.25, 96), all[k]);
        CHECK(jot_write_idx(jot_reshape(x, JOT_SHAPE(4, 24)), files_path("x.idx")), "%s",
              jot_message(ctx));
        jot_Var y = jot_buffer_var(ctx, jot_read(files_path("x.idx")));
        CHECK(jot_dtype(y) == all[k] && jot_item_int(jot_all(jot_eq(jot_reshape(y, JOT_SHAPE(96)),
              x), JOT_ALL_DIMS)) == 1, "%s: %s", jot_dtype_name(all[k]), jot_message(ctx));
    }
    RAISED(jot_write_idx(jot_zeros(ctx, JOT_I64, JOT_SHAPE(2)), files_path("y")), JOT_EDTYPE,
           "i64 found");
    RAISED(jot_write_idx(jot_zeros(ctx, JOT_U8, JOT_SHAPE(2)), files_path("no/y")), JOT_EIO,
           "no/y: No such");
}

static void
test_gzip(void)
{
    static const uint8_t idx[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};
    static const uint8_t gz[] = { /* the same, gzipped */
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 10, 0, 245, 255, 0, 0, 8, 1, 0, 0, 0, 2, 7, 9,
        0, 0, 0, 0, 10, 0, 0, 0};
    uint8_t own[sizeof gz * 2];
    uint32_t crc = ~(uint32_t)0;
    if (*jot_reads("gzip")) {
        FAILS(jot_read(files_put("x.gz", gz, sizeof gz)), JOT_EIO, "zlib1g-dev");
        SKIP("%s", jot_reads("gzip"));
        return;
    }
    memcpy(own, gz, sizeof gz);
    for (size_t k = 0; k < sizeof idx; k++) {
        crc ^= idx[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    for (int k = 0; k < 4; k++)
        own[25 + k] = (uint8_t)(~crc >> 8 * k);
    HOLDS(jot_decode("x", own, sizeof gz), JOT_U8, JOT_SHAPE(2), 7, 9);
    HOLDS(jot_read(files_put("x.gz", own, sizeof gz)), JOT_U8, JOT_SHAPE(2), 7, 9);
    FAILS(jot_decode("x", own, sizeof gz - 5), JOT_EIO, "gzip ends in the middle");
    own[25] ^= 1;
    FAILS(jot_decode("x", own, sizeof gz), JOT_EIO, "x: byte");
    own[25] ^= 1;
    memcpy(own + sizeof gz, "what follows", 12); /* is none of it, as for gzip */
    HOLDS(jot_decode("x", own, sizeof gz + 12), JOT_U8, JOT_SHAPE(2), 7, 9);
    memcpy(own + sizeof gz, own, sizeof gz); /* members one after the other are one file */
    memcpy(file->p, own, file->n = sizeof own);
    jot_Buffer *b = jot_read_bytes(files_put("xx.gz", file->p, file->n));
    CHECK(b && b->nbytes == 20 && !memcmp((char *)b->data + 10, idx, 10), "%s",
          b ? b->message : "");
    jot_buffer_free(b);
    own[3] = 0xe0;
    FAILS(jot_decode("x", own, sizeof gz), JOT_EIO, "x: byte");
}

/* Files that become much longer: memory grows with them. */
static void
test_gzip_long(void)
{
#ifdef JOT_ZLIB
    static uint8_t part[100000];
    for (int times = 1; times < 40; times += 13) {
        gzFile gz = gzopen(files_path("long.gz"), "wb");
        for (int k = 0; k < times; k++) {
            memset(part, k, sizeof part);
            gzwrite(gz, part, sizeof part);
        }
        gzclose(gz);
        jot_Buffer *b = jot_read_bytes(files_path("long.gz"));
        CHECK(b && !b->status && b->nbytes == (size_t)times * sizeof part &&
              b->shape[0] == (int64_t)b->nbytes, "%d: %s", times, b ? b->message : "");
        int bad = 0;
        for (size_t k = 0; b && k < b->nbytes; k++)
            bad += ((uint8_t *)b->data)[k] != k / sizeof part;
        CHECK(!bad, "%d: %d bytes", times, bad);
        jot_buffer_free(b);
    }
#endif
}

static void
test_png_kinds(void)
{
    static const uint8_t grey2[] = {0x1b}, palette[] = {255, 0, 0, 0, 255, 0, 0, 0, 255},
                         trns[] = {10, 20}, wide[] = {1, 2, 255, 255}, grey1[] = {0xa0};
    bytes_png(file, &(PngKind){4, 1, 2, 0, grey2, 1, NULL, 0, NULL, 0});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U8, JOT_SHAPE(1, 1, 4), 0, 85, 170, 255);
    bytes_png(file, &(PngKind){3, 1, 1, 0, grey1, 1, NULL, 0, NULL, 0});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U8, JOT_SHAPE(1, 1, 3), 255, 0, 255);
    bytes_png(file, &(PngKind){3, 1, 8, 3, "\2\1\0", 3, palette, 9, NULL, 0});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U8, JOT_SHAPE(3, 1, 3), 0, 0, 255, 0, 255, 0, 255,
          0, 0);
    bytes_png(file, &(PngKind){3, 1, 8, 3, "\2\1\0", 3, palette, 9, trns, 2});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U8, JOT_SHAPE(4, 1, 3), 0, 0, 255, 0, 255, 0, 255,
          0, 0, 255, 20, 10);
    bytes_png(file, &(PngKind){2, 1, 16, 0, wide, 4, NULL, 0, NULL, 0});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U16, JOT_SHAPE(1, 1, 2), 258, 65535);
    bytes_png(file, &(PngKind){1, 2, 8, 4, "\1\2\3\4", 2, NULL, 0, NULL, 0});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U8, JOT_SHAPE(2, 2, 1), 1, 3, 2, 4);
    bytes_png(file, &(PngKind){1, 2, 8, 6, "\1\2\3\4\5\6\7\10", 4, NULL, 0, NULL, 0});
    HOLDS(jot_decode("p", file->p, file->n), JOT_U8, JOT_SHAPE(4, 2, 1), 1, 5, 2, 6, 3, 7, 4, 8);
}

static void
test_png(void)
{
    if (*jot_reads("png")) {
        bytes_png(file, &(PngKind){1, 1, 8, 0, "x", 1, NULL, 0, NULL, 0});
        FAILS(jot_decode("p", file->p, file->n), JOT_EIO, "libpng-dev");
        SKIP("%s", jot_reads("png"));
        return;
    }
    test_png_kinds();
    bytes_png(file, &(PngKind){1, 2, 8, 0, "xy", 1, NULL, 0, NULL, 0});
    FAILS(jot_decode("p", file->p, 20), JOT_EIO, "p: byte 16: PNG: the file ends in the middle");
    FAILS(jot_decode("p", file->p, file->n - 14), JOT_EIO, "PNG: ");
    file->p[18] = 0x0f, file->p[22] = 0x0f; /* and the checksum no longer fits */
    FAILS(jot_decode("p", file->p, file->n), JOT_EIO, "PNG: ");
    bytes_png(file, &(PngKind){60000, 1, 8, 0, "xy", 1, NULL, 0, NULL, 0});
    FAILS(jot_decode("p", file->p, file->n), JOT_EIO, "p: ");
    bytes_png(file, &(PngKind){1 << 20, 2, 8, 6, "xy", 1, NULL, 0, NULL, 0});
    file->n = file->n;
    FAILS(jot_decode("p", file->p, file->n), JOT_EIO, "p: ");
    bytes_png(file, &(PngKind){1 << 20, 1 << 15, 8, 6, NULL, 0, NULL, 0, NULL, 0});
    FAILS(jot_decode("p", file->p, file->n), JOT_EIO, "pixels asked, more than");
    for (int c = 1; c <= 4; c++) {
        jot_Var x = jot_reshape(jot_arange(ctx, JOT_U8, 0, 1, c * 5 * 7), JOT_SHAPE(c, 5, 7));
        CHECK(jot_write_png(x, files_path("x.png")), "%s", jot_message(ctx));
        jot_Var y = jot_buffer_var(ctx, jot_read(files_path("x.png")));
        CHECK(jot_rank(y) == 3 && jot_item_int(jot_all(jot_eq(x, y), JOT_ALL_DIMS)) == 1, "%d: %s",
              c, jot_message(ctx));
    }
    jot_Var big = jot_uniform(ctx, JOT_F32, JOT_SHAPE(1, 300, 301));
    big = jot_cast(jot_scale(big, 256), JOT_U8);
    CHECK(jot_write_png(big, files_path("big.png")), "%s", jot_message(ctx));
    jot_Var back = jot_buffer_var(ctx, jot_read(files_path("big.png")));
    CHECK(jot_item_int(jot_all(jot_eq(back, big), JOT_ALL_DIMS)) == 1, "%s", jot_message(ctx));
    RAISED(jot_write_png(jot_zeros(ctx, JOT_U8, JOT_SHAPE(5, 2, 2)), files_path("y")), JOT_ESHAPE,
           "(1 to 4, h, w)");
    RAISED(jot_write_png(jot_zeros(ctx, JOT_F32, JOT_SHAPE(1, 2, 2)), files_path("y")), JOT_EDTYPE,
           "f32 found");
}

#ifdef JOT_JPEG
static void
test_jpeg(void)
{
    static uint8_t pixels[40 * 48 * 4];
    for (int c = 1; c <= 3; c += 2)
        for (int passes = 0; passes < 2; passes++) {
            for (int y = 0, k = 0; y < 40; y++)
                for (int x = 0; x < 48; x++)
                    for (int i = 0; i < c; i++)
                        pixels[k++] = (uint8_t)(20 + 4 * x + y * (i == 1 ? -1 : 1) * (c > 1) / 2);
            bytes_jpeg(file, pixels, 48, 40, c, 100, passes);
            jot_Buffer *b = jot_read(files_put("x.jpg", file->p, file->n));
            int worst = 0;
            CHECK(b && !b->status && b->rank == 3 && b->shape[0] == c && b->shape[1] == 40 &&
                  b->shape[2] == 48, "%s", b ? b->message : "NULL");
            for (int k = 0; b && !b->status && k < 40 * 48 * c; k++) {
                int d = abs(((uint8_t *)b->data)[k % c * 1920 + k / c] - pixels[k]);
                worst = d > worst ? d : worst;
            }
            CHECK(worst <= 6, "%d channels, %d: %d", c, passes, worst);
            jot_buffer_free(b);
            FAILS(jot_decode("j", file->p, file->n / 2), JOT_EIO, "j: JPEG: Premature end");
            FAILS(jot_decode("j", file->p, 12), JOT_EIO, "j: JPEG: ");
        }
    bytes_jpeg(file, pixels, 48, 40, 4, 90, 0);
    FAILS(jot_decode("j", file->p, file->n), JOT_EIO, "CMYK found");
    bytes_jpeg(file, pixels, 16, 16, 1, 50, 0);
    for (size_t k = 0; k + 10 < file->n; k++)
        if (file->p[k] == 0xff && file->p[k + 1] == 0xc0) /* 60,000 x 60,000, it says */
            file->p[k + 5] = file->p[k + 7] = 0xea;
    FAILS(jot_decode("j", file->p, file->n), JOT_EIO, "pixels asked, more than");
}
#else
static void
test_jpeg(void)
{
    FAILS(jot_decode(BYTES("\377\330\377\340 and so on")), JOT_EIO, "libjpeg-dev");
    SKIP("%s", jot_reads("jpeg"));
}
#endif

static jot_Buffer *
image(int c, int h, int w, const uint8_t *v)
{
    jot_Buffer *b = jot_buffer_make(JOT_U8, 3, (int64_t[]){c, h, w});
    if (b && !b->status)
        memcpy(b->data, v, b->nbytes);
    return b;
}

static void
test_fit(void)
{
    static const uint8_t rgb[] = {10, 20, 30, 40, 50, 60}, ga[] = {1, 2, 100, 200};
    static const uint8_t pure[] = {255, 0, 0, 0, 255, 0, 0, 0, 255}, planes[] = {
        10, 20, 30, 40, 50, 60, 70, 80, 110, 120, 130, 140, 150, 160, 170, 180};
    static uint8_t ramp[64 * 64];
    HOLDS(jot_image_fit(image(3, 1, 2, rgb), 1, 0, 0), JOT_U8, JOT_SHAPE(1, 1, 2), 26, 36);
    HOLDS(jot_image_fit(image(3, 1, 3, pure), 1, 0, 0), JOT_U8, JOT_SHAPE(1, 1, 3), 76, 150, 29);
    HOLDS(jot_image_fit(image(2, 2, 4, planes), 0, 2, 2), JOT_U8, JOT_SHAPE(2, 2, 2), 20, 30, 60,
          70, 120, 130, 160, 170);
    HOLDS(jot_image_fit(image(2, 2, 4, planes), 0, 1, 2), JOT_U8, JOT_SHAPE(2, 1, 2), 37, 53, 137,
          153);
    HOLDS(jot_image_fit(image(3, 1, 2, rgb), 4, 0, 0), JOT_U8, JOT_SHAPE(4, 1, 2), 10, 20, 30, 40,
          50, 60, 255, 255);
    HOLDS(jot_image_fit(image(2, 1, 2, ga), 3, 0, 0), JOT_U8, JOT_SHAPE(3, 1, 2), 1, 2, 1, 2, 1, 2);
    HOLDS(jot_image_fit(image(2, 1, 2, ga), 4, 0, 0), JOT_U8, JOT_SHAPE(4, 1, 2), 1, 2, 1, 2, 1, 2,
          100, 200);
    /* the middle: 1 x 6 to 1 x 2 */
    HOLDS(jot_image_fit(image(1, 1, 6, rgb), 0, 1, 2), JOT_U8, JOT_SHAPE(1, 1, 2), 30, 40);
    /* half: tents of four pixels, weights 1 3 3 1, cut off at the border */
    HOLDS(jot_image_fit(image(1, 2, 6, (uint8_t[]){0, 0, 80, 80, 0, 0, 0, 0, 80, 80, 0, 0}), 0, 1,
                        3), JOT_U8, JOT_SHAPE(1, 1, 3), 11, 60, 11);
    for (int k = 0; k < 64 * 64; k++)
        ramp[k] = (uint8_t)(2 * (k % 64) + k / 64); /* a plane stays one */
    jot_Buffer *b = jot_image_fit(image(1, 64, 64, ramp), 0, 16, 16);
    int worst = 0;
    for (int y = 1; b && !b->status && y < 15; y++)
        for (int x = 1; x < 15; x++) {
            double d = ((uint8_t *)b->data)[16 * y + x] - (2 * (4 * x + 1.5) + 4 * y + 1.5);
            worst = fabs(d) > worst ? (int)ceil(fabs(d)) : worst;
        }
    CHECK(b && !b->status && worst <= 1, "%d", worst);
    b = jot_image_fit(b, 0, 64, 48); /* upwards: linear between */
    CHECK(b && !b->status && b->shape[1] == 64 && b->shape[2] == 48, "%s", b ? b->message : "");
    jot_buffer_free(b);
    jot_Buffer *wide = jot_buffer_make(JOT_U16, 3, (int64_t[]){3, 1, 2});
    memcpy(wide->data, (uint16_t[]){0x1234, 0xffff, 0x100, 0x2ff, 0, 0xff}, 12);
    HOLDS(jot_image_fit(wide, 0, 0, 0), JOT_U8, JOT_SHAPE(3, 1, 2), 0x12, 0xff, 1, 2, 0, 0);
    FAILS(jot_image_fit(jot_buffer_make(JOT_F32, 3, (int64_t[]){1, 2, 2}), 0, 0, 0), JOT_ESHAPE,
          "u8 or u16 (1 to 4, h, w) asked, f32");
    FAILS(jot_image_fit(image(1, 1, 2, rgb), 5, 0, 0), JOT_ERANGE, "0 to 4 channels");
    FAILS(jot_image_fit(image(1, 0, 2, rgb), 1, 4, 4), JOT_ESHAPE, "without pixels");
    CHECK(!jot_image_fit(NULL, 1, 1, 1), "NULL");
    FAILS(jot_buffer_make(JOT_F32, 2, (int64_t[]){1ll << 40, 1ll << 40}), JOT_ESHAPE, "too many");
    FAILS(jot_buffer_make(JOT_F32, 9, NULL), JOT_ESHAPE, "rank of 0 to 8");
    FAILS(jot_buffer_make(JOT_F32, 1, (int64_t[]){-1}), JOT_ESHAPE, "-1 asked");
}

/* A WAV of these: kind, channels, bits, and the bytes of its sound. */
static void
wav(int kind, int channels, int bits, const void *sound, size_t n, bool extended)
{
    uint8_t fmt[40] = {0};
    const int real = extended ? 0xfffe : kind, size = extended ? 40 : 16;
    file->n = 0;
    bytes_add(file, "RIFF\0\0\0\0WAVEjunk\3\0\0\0abc\0fmt ", 28);
    bytes_add(file, (uint8_t[]){(uint8_t)size, 0, 0, 0}, 4);
    fmt[0] = (uint8_t)real, fmt[1] = (uint8_t)(real >> 8), fmt[2] = (uint8_t)channels;
    fmt[4] = 0x40, fmt[5] = 0x1f, fmt[14] = (uint8_t)bits, fmt[24] = (uint8_t)kind;
    bytes_add(file, fmt, (size_t)size);
    bytes_add(file, "data", 4);
    bytes_add(file, (uint8_t[]){(uint8_t)n, 0, 0, 0}, 4);
    bytes_add(file, sound, n);
}

static void
test_wav_messages(void)
{
    wav(2, 1, 16, "\0\0", 2, false);
    FAILS(jot_decode("w", file->p, file->n), JOT_EIO, "kind 2 of 16 bits found");
    wav(1, 0, 16, "\0\0", 2, false);
    FAILS(jot_decode("w", file->p, file->n), JOT_EIO, "byte 34: 1 to 1024 channels asked, 0 found");
    wav(1, 1, 16, "\0\0", 2, true);
    file->p[57] = 1; /* the second byte of the kind */
    FAILS(jot_decode("w", file->p, file->n), JOT_EIO, "kind 257 of 16 bits found");
    wav(1, 1, 16, "\0\0\0", 3, false);
    FAILS(jot_decode("w", file->p, file->n), JOT_EIO, "whole frames of 2 bytes asked, 3 bytes");
    FAILS(jot_decode("w", file->p, file->n - 1), JOT_EIO, "3 bytes of sound asked, 2 found");
    FAILS(jot_decode("w", file->p, 40), JOT_EIO, "a fmt chunk of at least 16 bytes asked");
    FAILS(jot_decode("w", file->p, 20), JOT_EIO, "a data chunk asked, none found in 20 bytes");
    FAILS(jot_decode(BYTES("RIFF\0\0\0\0WAVEdata\2\0\0\0ab")), JOT_EIO, "a fmt chunk before");
}

static void
test_wav(void)
{
    wav(1, 1, 8, "\0\200\377", 3, false);
    HOLDS(jot_decode("w", file->p, file->n), JOT_F32, JOT_SHAPE(1, 3), -1, 0, 127 / 128.0);
    wav(1, 2, 16, "\0\200\0\100\377\377\1\0", 8, false);
    jot_Buffer *b = jot_decode("w", file->p, file->n);
    CHECK(b && b->rate == 8000, "rate %g", b ? b->rate : 0);
    HOLDS(b, JOT_F32, JOT_SHAPE(2, 2), -1, -1 / 32768.0, 0.5, 1 / 32768.0);
    wav(1, 1, 24, "\0\0\200\1\0\0\0\0\100", 9, true);
    HOLDS(jot_decode("w", file->p, file->n), JOT_F32, JOT_SHAPE(1, 3), -1, 1 / 8388608.0, 0.5);
    wav(1, 1, 32, "\0\0\0\200\0\0\0\20", 8, false);
    HOLDS(jot_decode("w", file->p, file->n), JOT_F32, JOT_SHAPE(1, 2), -1, 0.125);
    wav(3, 1, 32, "\0\0\300\277\0\0\0\100", 8, true);
    HOLDS(jot_decode("w", file->p, file->n), JOT_F32, JOT_SHAPE(1, 2), -1.5, 2);
    wav(3, 1, 64, "\0\0\0\0\0\0\300\277", 8, false);
    HOLDS(jot_decode("w", file->p, file->n), JOT_F32, JOT_SHAPE(1, 1), -0.125);
    test_wav_messages();
    const double eps[] = {1.0 / 32768, 1.0 / 8388608, 1e-7, 0};
    static const int bits[] = {16, 24, 32, -32};
    jot_Var x = jot_reshape(jot_offset(jot_scale(jot_arange(ctx, JOT_F32, 0, 1, 40), 0.05), -1),
                            JOT_SHAPE(2, 20));
    for (int k = 0; k < 4; k++) {
        CHECK(jot_write_wav(x, files_path("x.wav"), 44100, bits[k]), "%s", jot_message(ctx));
        jot_Buffer *read = jot_read(files_path("x.wav"));
        CHECK(read && read->rate == 44100, "%s", read ? read->message : "");
        jot_Var y = jot_buffer_var(ctx, read);
        double worst = jot_item(jot_max(jot_abs(jot_sub(x, y)), JOT_ALL_DIMS));
        CHECK(worst <= eps[k], "%d bits: %g", bits[k], worst);
    }
    jot_Var loud = jot_array(ctx, JOT_F32, JOT_SHAPE(1, 3), (float[]){2, -2, NAN});
    CHECK(jot_write_wav(loud, files_path("x.wav"), 8000, 16), "%s", jot_message(ctx));
    HOLDS(jot_read(files_path("x.wav")), JOT_F32, JOT_SHAPE(1, 3), 32767 / 32768.0, -1, 0);
    RAISED(jot_write_wav(x, files_path("x.wav"), 8000, 8), JOT_ERANGE,
           "16, 24, 32 or -32 asked, 8");
    RAISED(jot_write_wav(jot_zeros(ctx, JOT_F32, JOT_SHAPE(3)), files_path("x.wav"), 8000, 16),
           JOT_ESHAPE, "rank 1");
}

/* ---- tables ---- */

#define CSV(text, ...) jot_csv_parse("t.csv", text, strlen(text), &(jot_CsvForm){__VA_ARGS__})

static void
csv_fails(int line, jot_Csv *csv, const char *text)
{
    CHECK(csv && csv->status && strstr(csv->message, text), "line %d: \"%s\" in \"%s\"", line, text,
          csv ? csv->message : "NULL");
    FAILS(jot_csv_numbers(csv, JOT_NONE_STRS, JOT_F32), JOT_EIO, text);
    FAILS(jot_csv_classes(csv, "a", NULL), JOT_EIO, text);
    CHECK(!jot_csv_cell(csv, 0, 0), "a cell");
    jot_csv_free(csv);
}
#define CSV_FAILS(csv, text) csv_fails(__LINE__, csv, text)

static void
test_csv_cells(void)
{
    jot_Csv *csv = CSV("\357\273\277a,\"b \"\"c\"\"\",\r\n1,\"x,\ny\",\n\n2,, z \r\n3,\"\",", 0);
    static const char *const cells[3][3] = {{"1", "x,\ny", ""}, {"2", "", " z "}, {"3", "", ""}};
    CHECK(csv && !csv->status && csv->rows == 3 && csv->columns == 3, "%s: %lld x %d",
          csv->message, (long long)csv->rows, csv->columns);
    CHECK(!strcmp(csv->names[1], "b \"c\"") && !*csv->names[2], "%s", csv->names[1]);
    for (int r = 0; r < 3; r++)
        for (int k = 0; k < 3; k++)
            CHECK(!strcmp(jot_csv_cell(csv, r, k), cells[r][k]), "(%d, %d): \"%s\"", r, k,
                  jot_csv_cell(csv, r, k));
    CHECK(!jot_csv_cell(csv, 3, 0) && !jot_csv_cell(csv, 0, 3) && !jot_csv_cell(csv, -1, 0), "out");
    FAILS(jot_csv_numbers(csv, JOT_INDEX("a", "d"), JOT_F32), JOT_EUSE,
          "t.csv: column \"d\" asked, not among the 3 found");
    FAILS(jot_csv_numbers(csv, JOT_INDEX("b \"c\""), JOT_F64), JOT_EIO,
          "t.csv: line 2: column 2 (b \"c\"): a number of f64 asked, \"x,\ny\" found");
    jot_csv_free(csv);
    csv = CSV("", 0);
    CHECK(csv && !csv->status && csv->rows == 0 && csv->columns == 0, "empty");
    HOLDS(jot_csv_numbers(csv, JOT_NONE_STRS, JOT_F32), JOT_F32, JOT_SHAPE(0, 0), 0);
    jot_csv_free(csv);
    CSV_FAILS(CSV("a,b\n1,2\n3\n", 0), "t.csv: line 3: 2 columns asked, as the first line has, 1");
    CSV_FAILS(CSV("a\n\"x\ny", 0), "t.csv: line 2: column 2: a quote begins and does not end");
    CSV_FAILS(CSV("a\n\"x\ny\"z\n", 0), "line 3: a separator or the end of the line asked");
    CSV_FAILS(jot_csv_parse("t.csv", "a\nb\0c", 5, NULL), "line 2: text asked, a byte of 0");
    CSV_FAILS(jot_csv_parse("t.csv", "a\n\"\0c\"", 6, NULL), "line 2: text asked, a byte of 0");
    csv = CSV("\357\273x,y\n", 0); /* no mark */
    CHECK(csv && csv->columns == 2 && !strcmp(csv->names[0], "\357\273x"), "%s", csv->message);
    jot_csv_free(csv);
    CSV_FAILS(jot_csv_parse("t.csv", "a\n\"b\0c\"", 7, NULL), "line 2: text asked, a byte of 0");
    CSV_FAILS(jot_csv_read(files_path("none.csv"), NULL), "none.csv: No such file");
    for (const char *c = "\"\n\r\200"; *c; c++) {
        jot_Csv *csv = CSV("a\n1", .separator = *c);
        FAILS(jot_csv_numbers(csv, JOT_NONE_STRS, JOT_F32), JOT_ERANGE, "t.csv: a separator of");
        jot_csv_free(csv);
    }
}

static void
test_csv_numbers(void)
{
    jot_Csv *csv = CSV("1;2.5;b\n-3; 4e2 ;a\nNA;;b\n", ';', true, "NA,?");
    CHECK(csv->rows == 3 && !strcmp(csv->names[2], "2"), "%s", csv->message);
    HOLDS(jot_csv_numbers(csv, JOT_INDEX("1", "0"), JOT_F64), JOT_F64, JOT_SHAPE(3, 2), 2.5, 1, 400,
          -3, NAN, NAN);
    HOLDS(jot_csv_numbers(csv, JOT_INDEX("0"), JOT_F32), JOT_F32, JOT_SHAPE(3, 1), 1, -3, NAN);
    FAILS(jot_csv_numbers(csv, JOT_INDEX("0"), JOT_I32), JOT_EIO, "line 3: column 1 (0): a number "
          "of i32 asked, \"NA\" found");
    FAILS(jot_csv_numbers(csv, JOT_INDEX("0"), JOT_U8), JOT_EIO, "line 2: column 1 (0): a number "
          "of u8 asked, \"-3\" found");
    FAILS(jot_csv_numbers(csv, JOT_INDEX("0"), JOT_BOOL), JOT_EDTYPE, "bool found");
    jot_Vocab *words;
    HOLDS(jot_csv_classes(csv, "2", &words), JOT_I64, JOT_SHAPE(3), 1, 0, 1);
    CHECK(jot_vocab_size(words) == 2 && !strcmp(jot_vocab_token(words, 1), "b"), "words");
    jot_vocab_free(words);
    HOLDS(jot_csv_classes(csv, "2", NULL), JOT_I64, JOT_SHAPE(3), 1, 0, 1);
    jot_csv_free(csv);
    csv = CSV("i8,u8,i64,u64\n127,255,-9223372036854775808,18446744073709551615\n128,256,"
              "9223372036854775808,18446744073709551616\n-129,-1,x,-1\n", 0);
    static const jot_DType dtype[] = {JOT_I8, JOT_U8, JOT_I64, JOT_U64};
    for (int k = 0; k < 4; k++) /* the first line fits, the others do not */
        FAILS(jot_csv_numbers(csv, jot_strs(1, csv->names + k), dtype[k]), JOT_EIO,
              "line 3: column");
    jot_csv_free(csv);
    csv = CSV("u\n -5\n", 0);
    FAILS(jot_csv_numbers(csv, JOT_NONE_STRS, JOT_U64), JOT_EIO, "\" -5\" found");
    jot_csv_free(csv);
    csv = CSV("u\n18446744073709551615\n0\n", 0);
    jot_Var u = jot_buffer_var(ctx, jot_csv_numbers(csv, JOT_NONE_STRS, JOT_U64));
    CHECK(jot_ok(u) && *jot_data_u64(u) == UINT64_MAX, "%s", jot_message(ctx));
    jot_csv_free(csv);
    CHECK(jot_write_csv(u, JOT_NONE_STRS, files_path("u.csv")), "%s", jot_message(ctx));
    jot_Buffer *b = jot_read_bytes(files_path("u.csv"));
    CHECK(b && !b->status && !strcmp(b->data, "18446744073709551615\n0\n"), "%s", b->message);
    jot_buffer_free(b);
}

/* What was opened for writing and is not whole is removed, but not the device that it is. */
static void
test_device(void)
{
    const char *link = files_path("device");
    struct stat s;
    if (symlink("/dev/full", link) || stat(link, &s) || !S_ISCHR(s.st_mode))
        return; /* a system without it */
    RAISED(jot_write_csv(jot_zeros(ctx, JOT_F32, JOT_SHAPE(1, 1)), JOT_NONE_STRS, link), JOT_EIO,
           "device: not written");
    CHECK(!lstat(link, &s), "the link is gone");
}

/* Cells of drawn bytes, written as RFC 4180 says, quoted when they must be or may be, come back. */
static void
test_csv_drawn(void)
{
    static char text[4096], cell[8][6][12];
    static const char bytes[] = "ab,;\"\n\r 1";
    uint32_t state = 1;
#define DRAW(n) (state = state * 1664525u + 1013904223u, (int)((uint64_t)state * (n) >> 32))
    for (int round = 0; round < 500; round++) {
        int rows = 1 + DRAW(7), columns = 1 + DRAW(6), differ = 0;
        char separator = DRAW(2) ? ',' : ';', *to = text;
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < columns; k++) {
                char *c = cell[r][k];
                int n = DRAW(8) + (columns == 1); /* a line without anything would be none */
                for (int i = 0; i < n; i++)
                    c[i] = bytes[DRAW(9)];
                c[n] = 0;
                bool quoted = DRAW(4) == 0 || strpbrk(c, "\"\n\r") || strchr(c, separator);
                if (quoted)
                    *to++ = '"';
                for (; *c; c++) {
                    if (*c == '"')
                        *to++ = '"';
                    *to++ = *c;
                }
                if (quoted)
                    *to++ = '"';
                if (k + 1 < columns)
                    *to++ = separator;
                else
                    to += sprintf(to, DRAW(2) ? "\n" : "\r\n");
            }
        jot_Csv *csv = jot_csv_parse("t", text, (size_t)(to - text),
                                     &(jot_CsvForm){separator, true, NULL});
        CHECK(csv && !csv->status && csv->rows == rows && csv->columns == columns, "round %d: %s",
              round, csv ? csv->message : "");
        for (int r = 0; csv && !csv->status && r < rows; r++)
            for (int k = 0; k < columns; k++)
                differ += strcmp(jot_csv_cell(csv, r, k), cell[r][k]) != 0;
        CHECK(!differ, "round %d: %d cells", round, differ);
        jot_csv_free(csv);
    }
}

static void
test_csv_back(void)
{
    static const double v[] = {0.1, -1e300, 3, NAN, 1.0 / 3, 5e-324};
    jot_Var x = jot_array(ctx, JOT_F64, JOT_SHAPE(3, 2), v);
    const char *comma = setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* where it is there */
    CHECK(jot_write_csv(x, JOT_INDEX("a,b", "say \"c\""), files_path("x.csv")), "%s",
          jot_message(ctx));
    jot_Csv *csv = jot_csv_read(files_path("x.csv"), &(jot_CsvForm){.missing = "nan,-nan"});
    CHECK(csv && !strcmp(csv->names[0], "a,b") && !strcmp(csv->names[1], "say \"c\""), "%s",
          csv ? csv->message : "");
    HOLDS(jot_csv_numbers(csv, JOT_NONE_STRS, JOT_F64), JOT_F64, JOT_SHAPE(3, 2), 0.1, -1e300, 3,
          NAN, 1.0 / 3, 5e-324);
    jot_csv_free(csv);
    if (comma)
        setlocale(LC_NUMERIC, "C");
    CHECK(jot_write_csv(jot_cast(jot_array(ctx, JOT_F64, JOT_SHAPE(1, 3), v), JOT_I8),
                        JOT_NONE_STRS, files_path("y.csv")), "%s", jot_message(ctx));
    csv = jot_csv_read(files_path("y.csv"), &(jot_CsvForm){.no_header = true});
    HOLDS(jot_csv_numbers(csv, JOT_NONE_STRS, JOT_I64), JOT_I64, JOT_SHAPE(1, 3), 0, -128, 3);
    jot_csv_free(csv);
    RAISED(jot_write_csv(x, JOT_INDEX("a"), files_path("x.csv")), JOT_ESHAPE, "1 names for these");
}

static void
test_vocab(void)
{
    static const char text[] = "to be, or not to be: \303\251t\303\251 \377!";
    jot_Vocab *v = jot_vocab_make(JOT_CHARACTERS, "hello", 5, 0);
    CHECK(jot_vocab_size(v) == 4 && !strcmp(jot_vocab_token(v, 0), "e") &&
          jot_vocab_find(v, "o") == 3 && jot_vocab_find(v, "x") == -1, "characters");
    HOLDS(jot_vocab_encode(v, "hole", 4), JOT_I32, JOT_SHAPE(4), 1, 3, 2, 0);
    FAILS(jot_vocab_encode(v, "hole!", 5), JOT_ERANGE, "text: byte 4: a token of the vocabulary "
          "asked, \"!\" found");
    CHECK(!jot_vocab_token(v, 4) && !jot_vocab_token(v, -1), "none");
    jot_vocab_free(v);
    v = jot_vocab_make(JOT_CHARACTERS, text, sizeof text - 1, 0);
    CHECK(jot_vocab_find(v, "\303\251") >= 0 && jot_vocab_find(v, "\377") >= 0, "UTF-8");
    jot_Buffer *b = jot_vocab_encode(v, "\303\251\377\303\251", 5);
    CHECK(b && !b->status && b->shape[0] == 3, "%s", b ? b->message : "");
    jot_buffer_free(b);
    jot_vocab_free(v);
    /* of 3 bytes, 4, and each 1 */
    static const char long_ones[] = "\342\202\254\360\237\230\200\342\202x\363";
    v = jot_vocab_make(JOT_CHARACTERS, long_ones, sizeof long_ones - 1, 0);
    HOLDS(jot_vocab_encode(v, long_ones, sizeof long_ones - 1), JOT_I32, JOT_SHAPE(6), 3, 4, 2, 1,
          0, 5);
    CHECK(!strcmp(jot_vocab_token(v, 4), "\360\237\230\200"), "four bytes");
    jot_vocab_free(v);
    v = jot_vocab_make(JOT_WORDS, text, sizeof text - 1, 0);
    CHECK(jot_vocab_find(v, "be") == 0 && jot_vocab_find(v, "to") == 1 &&
          jot_vocab_find(v, ",") >= 0 && jot_vocab_find(v, " ") == -1 &&
          jot_vocab_find(v, "\303\251t\303\251") > 0, "words");
    HOLDS(jot_vocab_encode(v, " to  be\nto", 10), JOT_I32, JOT_SHAPE(3), 1, 0, 1);
    jot_vocab_free(v);
    v = jot_vocab_make(JOT_WORDS, text, sizeof text - 1, 2);
    CHECK(jot_vocab_size(v) == 3 && !strcmp(jot_vocab_token(v, 0), "<unknown>"), "cut");
    HOLDS(jot_vocab_encode(v, "to be or be", 11), JOT_I32, JOT_SHAPE(4), 2, 1, 0, 1);
    jot_vocab_free(v);
    v = jot_vocab_make(JOT_WORDS, "", 0, 0);
    CHECK(v && jot_vocab_size(v) == 0, "nothing");
    HOLDS(jot_vocab_encode(v, "  ", 2), JOT_I32, JOT_SHAPE(0), 0);
    jot_vocab_free(v);
    v = jot_vocab_make(JOT_CHARACTERS, "a\0b", 3, 0);
    CHECK(jot_vocab_size(v) == 2, "a byte of 0 is no token: %lld", (long long)jot_vocab_size(v));
    FAILS(jot_vocab_encode(v, "a\0b", 3), JOT_ERANGE, "byte 1");
    jot_vocab_free(v);
    static char many[60000];
    size_t n = 0;
    for (int k = 0; k < 3000; k++) /* more than the table begins with */
        n += (size_t)sprintf(many + n, "w%d ", k * 7919 % 3000);
    v = jot_vocab_make(JOT_WORDS, many, n, 0);
    CHECK(jot_vocab_size(v) == 3000, "%lld words", (long long)jot_vocab_size(v));
    jot_vocab_free(v);
    CHECK(jot_vocab_size(NULL) == 0 && jot_vocab_find(NULL, "x") == -1, "NULL");
    FAILS(jot_vocab_encode(NULL, "x", 1), JOT_EMEM, "vocabulary");
}

/* A text in a buffer; the first failure is the one that is told at the end. */
static void
test_vocab_buffers(void)
{
    int64_t n = 5;
    jot_Buffer *text = jot_buffer_make(JOT_U8, 1, &n), *tokens;
    memcpy(text->data, "hello", 5);
    jot_Vocab *v = jot_vocab_make_buffer(JOT_CHARACTERS, text, 0);
    HOLDS(jot_vocab_encode_buffer(v, text), JOT_I32, JOT_SHAPE(5), 1, 0, 2, 2, 3);
    jot_vocab_free(v);
    jot_buffer_free(text);

    text = jot_read_bytes("/nowhere/corpus.txt");
    v = jot_vocab_make_buffer(JOT_CHARACTERS, text, 0);
    CHECK(v && jot_vocab_size(v) == 0, "nothing");
    tokens = jot_vocab_encode_buffer(v, text);
    CHECK(tokens && tokens->status == text->status && !strcmp(tokens->message, text->message),
          "handed on");
    CHECK(!jot_source_windows(ctx, tokens, 16, 16) && jot_error(ctx) == text->status
          && strstr(jot_message(ctx), "/nowhere/corpus.txt"), "%s", jot_message(ctx));
    jot_clear(ctx);
    jot_vocab_free(v);
    jot_buffer_free(text);
    v = jot_vocab_make_buffer(JOT_WORDS, NULL, 0);
    FAILS(jot_vocab_encode_buffer(v, NULL), JOT_EMEM, "no memory");
    jot_vocab_free(v);
}

int
main(void)
{
    ctx = jot_open(&(jot_Config){.backend = "interp"});
    file = calloc(1, sizeof *file);
    test_idx();
    test_gzip();
    test_gzip_long();
    test_png();
    test_jpeg();
    test_fit();
    test_wav();
    test_csv_cells();
    test_csv_numbers();
    test_device();
    test_csv_drawn();
    test_csv_back();
    test_vocab();
    test_vocab_buffers();
    CHECK(!jot_ok(jot_buffer_var(ctx, NULL)) && jot_error(ctx) == JOT_EMEM, "NULL");
    jot_clear(ctx);
    jot_close(ctx);
    free(file);
    files_close();
    return DONE();
}
