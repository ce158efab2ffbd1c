/* data/parts.h - what the files of this room share: bytes that came from a file and what is said
 * about them, and files that are written.
 *
 *     file.c   bytes of a file, gunzipped; buffers; which format it is
 *     idx.c, png.c, jpeg.c, wav.c, image.c     a format each -> jot_Buffer, and back
 *     csv.c, vocab.c                           text
 *     source.c, folder.c -> loader.c           samples -> batches, on a thread
 *     augment.c                                expressions over a batch
 *     progress.c, curves.c                     what people look at
 *
 * Built on the public headers alone, as nn/ is, and on C's library and POSIX.
 *
 * Read before: data.h. After: data/file.c. */
#ifndef JOT_DATA_PARTS_H
#define JOT_DATA_PARTS_H
#include "data.h"
#ifndef JOT_NO_HOST
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef JOT_FN
#define JOT_FN /* as in base.h: `static` in the one-file build */
#endif

/* Bytes and the name that messages give them. */
typedef struct { const char *name; const uint8_t *p; size_t n; } DataBytes;

/* The most that a byte of a compressed file stands for: deflate's 1032, and JPEG's, whose smallest
 * blocks of 64 samples take 1 bit. */
enum { DATA_MOST = 2048 };

/* A buffer that failed; the same in the place of one, whose elements are freed (NULL: NULL). */
JOT_FN jot_Buffer *data_failed(jot_Status status, const char *format, ...);
JOT_FN jot_Buffer *data_fail(jot_Buffer *buffer, jot_Status status, const char *format, ...);
/* A file, whole, gunzipped, as u8 (n), with a 0 behind that does not count. */
JOT_FN jot_Buffer *data_slurp(const char *path);
JOT_FN bool data_is_gzip(DataBytes file);
JOT_FN jot_Buffer *data_gunzip(DataBytes file);

/* Formats, from bytes. */
JOT_FN jot_Buffer *data_idx(DataBytes file);
JOT_FN jot_Buffer *data_png(DataBytes file);
JOT_FN jot_Buffer *data_jpeg(DataBytes file);
JOT_FN jot_Buffer *data_wav(DataBytes file);
/* (h, w, c) -> (c, h, w), in place of the elements. */
JOT_FN jot_Buffer *data_planes(jot_Buffer *image);

/* A file to write: NULL, and told. Closed, whether it is whole; else told, and
 * removed if it is a file. */
JOT_FN FILE *data_create(jot_Ctx *ctx, const char *path);
JOT_FN void data_csv_name(FILE *f, const char *s); /* quoted if need be */
JOT_FN bool data_finish(jot_Ctx *ctx, FILE *f, const char *path);

/* Numbers as C writes them, whatever the locale; the second gets what the first gave. */
JOT_FN locale_t data_locale_begin(void);
JOT_FN void data_locale_end(locale_t before);
JOT_FN double data_seconds(void); /* monotonic */
JOT_FN uint64_t data_mix(uint64_t x); /* splitmix64's: every bit of x in every bit of the result */
/* The bytes of `value` in the dtype; false: none of its numbers (of halves only 0 is known). */
JOT_FN bool data_number(uint8_t to[8], jot_DType dtype, double value);
JOT_FN jot_Vocab *data_vocab(char **sorted, int64_t n); /* takes the words, and the list, over */

static inline uint32_t
data_big(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t
data_little(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

#endif
#endif
