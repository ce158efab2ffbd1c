/* tests/data_files.h - files for the tests of data/: a folder of their own, PNGs of any kind made
 * by hand, JPEGs by libjpeg; what a call is expected to say. */
#ifndef DATA_FILES_H
#define DATA_FILES_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "data.h"
#include "tests/test.h"
#ifdef JOT_JPEG
#include <jpeglib.h>
#endif

/* The failure that a call left in the context, which goes on. */
static inline void
raised_in(jot_Ctx *c, int line, bool ok, jot_Status status, const char *text)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), text), "line %d: \"%s\" in "
          "\"%s\"", line, text, jot_message(c));
    jot_clear(c);
}
#define RAISED(ok, status, text) raised_in(ctx, __LINE__, ok, status, text)

static char files_dir[64];

static inline const char *
files_path(const char *name)
{
    static char path[4][160];
    static int turn;
    if (!*files_dir) {
        strcpy(files_dir, "/tmp/jot_data_XXXXXX");
        if (!mkdtemp(files_dir))
            exit(2);
    }
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", files_dir, name);
    return path[turn];
}

static inline void
files_close(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", files_dir);
    if (*files_dir && system(command))
        printf("%s stays\n", files_dir);
}

static inline const char *
files_put(const char *name, const void *bytes, size_t n)
{
    const char *path = files_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        exit(2);
    return path;
}

typedef struct { uint8_t p[1 << 16]; size_t n; } FileBytes;

static inline void
bytes_add(FileBytes *b, const void *p, size_t n)
{
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void
bytes_u32(FileBytes *b, uint32_t v)
{
    bytes_add(b, (uint8_t[]){(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v},
              4);
}

static inline void
bytes_chunk(FileBytes *b, const char *name, const void *p, size_t n)
{
    uint32_t crc = ~(uint32_t)0;
    bytes_u32(b, (uint32_t)n);
    size_t from = b->n;
    bytes_add(b, name, 4);
    bytes_add(b, p, n);
    for (size_t k = from; k < b->n; k++) {
        crc ^= b->p[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    bytes_u32(b, ~crc);
}

/* A PNG of rows of packed samples as they stand in the file; plte, trns: n 0 for none. */
typedef struct {
    uint32_t w, h;
    uint8_t depth, kind;
    const void *rows; size_t row;
    const void *plte; size_t nplte;
    const void *trns; size_t ntrns;
} PngKind;

static inline void
bytes_png(FileBytes *b, const PngKind *k)
{
    FileBytes *z = calloc(1, sizeof *z), *head = calloc(1, sizeof *head);
    uint32_t s1 = 1, s2 = 0;
    size_t n = k->h * (k->row + 1);
    b->n = 0;
    bytes_add(b, "\211PNG\r\n\032\n", 8);
    bytes_u32(head, k->w);
    bytes_u32(head, k->h);
    bytes_add(head, (uint8_t[]){k->depth, k->kind, 0, 0, 0}, 5);
    bytes_chunk(b, "IHDR", head->p, head->n);
    if (k->nplte)
        bytes_chunk(b, "PLTE", k->plte, k->nplte);
    if (k->ntrns)
        bytes_chunk(b, "tRNS", k->trns, k->ntrns);
    bytes_add(z, "\x78\x01\x01", 3);
    bytes_add(z, (uint8_t[]){(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n, (uint8_t)(~n >> 8)}, 4);
    size_t from = z->n;
    for (uint32_t y = 0; y < k->h; y++) {
        bytes_add(z, "", 1);
        bytes_add(z, (const uint8_t *)k->rows + y * k->row, k->row);
    }
    for (size_t i = from; i < z->n; i++) {
        s1 = (s1 + z->p[i]) % 65521;
        s2 = (s2 + s1) % 65521;
    }
    bytes_u32(z, s2 << 16 | s1);
    bytes_chunk(b, "IDAT", z->p, z->n);
    bytes_chunk(b, "IEND", NULL, 0);
    free(z);
    free(head);
}

#ifdef JOT_JPEG
/* (h, w, c) of c 1 (grey), 3 (RGB), 4 (CMYK) */
static inline void
bytes_jpeg(FileBytes *b, const uint8_t *pixels, int w, int h, int c, int quality, int passes)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr error;
    unsigned char *out = NULL;
    unsigned long n = 0;
    j.err = jpeg_std_error(&error);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &out, &n);
    j.image_width = (JDIMENSION)w;
    j.image_height = (JDIMENSION)h;
    j.input_components = c;
    j.in_color_space = c == 1 ? JCS_GRAYSCALE : c == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&j);
    jpeg_set_quality(&j, quality, TRUE);
    if (passes)
        jpeg_simple_progression(&j);
    jpeg_start_compress(&j, TRUE);
    for (int y = 0; y < h; y++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)(y * w * c));
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    b->n = 0;
    bytes_add(b, out, n < sizeof b->p ? n : 0);
    jpeg_destroy_compress(&j);
    free(out);
}
#endif

#endif
