/* idx.c - MNIST's files: a header of big-endian numbers (0, 0, type 8 = bytes, rank, extents), then
 * the elements. Compressed files are read through zlib where it was there at build time, otherwise
 * through the gzip program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "digits.h"
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

typedef struct {
    FILE *file; /* plain, or a pipe */
    int pipe;
#ifdef HAVE_ZLIB
    gzFile gz;
#endif
} Source;

static int
source_open_gz(Source *s, const char *path)
{
#ifdef HAVE_ZLIB
    return (s->gz = gzopen(path, "rb")) != NULL;
#else
    char command[1200], *to = command;
    /* 'path' for the shell, with every ' written as '\'' */
    to += sprintf(to, "gzip -dc '");
    for (const char *p = path; *p && to < command + sizeof command - 16; p++)
        to += *p == '\'' ? sprintf(to, "'\\''") : sprintf(to, "%c", *p);
    sprintf(to, "'");
    s->pipe = 1;
    return (s->file = popen(command, "r")) != NULL;
#endif
}

static size_t
source_read(Source *s, void *to, size_t n)
{
#ifdef HAVE_ZLIB
    if (s->gz) {
        size_t done = 0;
        while (done < n) {
            unsigned part = n - done > 1 << 20 ? 1 << 20 : (unsigned)(n - done);
            int got = gzread(s->gz, (char *)to + done, part);
            if (got <= 0)
                break;
            done += (size_t)got;
        }
        return done;
    }
#endif
    return fread(to, 1, n, s->file);
}

/* False when the file proves damaged at its end (a checksum, a failing program). */
static int
source_close(Source *s)
{
#ifdef HAVE_ZLIB
    if (s->gz)
        return gzclose(s->gz) == Z_OK;
#endif
    return s->pipe ? pclose(s->file) == 0 : fclose(s->file) == 0;
}

/* Opens folder/name.gz, or folder/name. `path` gets what was opened. */
static int
source_open(Source *s, const char *folder, const char *name, char *path, size_t size)
{
    FILE *probe;
    memset(s, 0, sizeof *s);
    snprintf(path, size, "%s/%s.gz", folder, name);
    if ((probe = fopen(path, "rb"))) {
        fclose(probe);
        if (source_open_gz(s, path))
            return 1;
    }
    snprintf(path, size, "%s/%s", folder, name);
    if ((s->file = fopen(path, "rb")))
        return 1;
    fprintf(stderr, "cannot open %s.gz or %s: %s\n", path, path, strerror(errno));
    return 0;
}

static long
big_endian(const unsigned char *p)
{
    return (long)p[0] << 24 | (long)p[1] << 16 | (long)p[2] << 8 | (long)p[3];
}

/* The elements of an idx file of bytes, `each` per item; their number in *n. NULL: said why. */
static unsigned char *
idx_body(Source *s, const char *path, int rank, long each, long *n)
{
    unsigned char head[16], extra, *data = NULL;
    size_t size = 4 + 4 * (size_t)rank, got = source_read(s, head, size);
    if (got < size) {
        fprintf(stderr, "%s: too short or not gzip: %zu bytes of a header of %zu\n", path, got,
                size);
        return NULL;
    }
    if (head[0] || head[1] || head[2] != 8 || head[3] != rank) {
        fprintf(stderr, "%s: not an idx file of bytes of rank %d: begins %02x %02x %02x %02x\n",
                path, rank, head[0], head[1], head[2], head[3]);
        return NULL;
    }
    *n = big_endian(head + 4);
    if (rank == 3 && big_endian(head + 8) * big_endian(head + 12) != each) {
        fprintf(stderr, "%s: images of %ld x %ld, expected %d x %d\n", path, big_endian(head + 8),
                big_endian(head + 12), DIGIT_SIDE, DIGIT_SIDE);
        return NULL;
    }
    if (*n < 1 || *n > 10000000 || !(data = malloc((size_t)(*n * each)))) {
        fprintf(stderr, "%s: no memory for %ld items\n", path, *n);
        return NULL;
    }
    got = source_read(s, data, (size_t)(*n * each));
    if (got != (size_t)(*n * each) || source_read(s, &extra, 1) != 0) {
        fprintf(stderr, "%s: %ld items of %ld bytes promised, %s found\n", path, *n, each,
                got < (size_t)(*n * each) ? "fewer" : "more");
        free(data);
        return NULL;
    }
    return data;
}

static unsigned char *
idx_read(const char *folder, const char *name, int rank, long each, long *n)
{
    char path[1024];
    Source s;
    unsigned char *data;
    if (!source_open(&s, folder, name, path, sizeof path))
        return NULL;
    data = idx_body(&s, path, rank, each, n);
    if (!source_close(&s) && data) {
        fprintf(stderr, "%s: damaged: its checksum does not hold\n", path);
        free(data);
        return NULL;
    }
    return data;
}

int
digits_read(Digits *digits, const char *folder, const char *images, const char *labels)
{
    long n = 0, nlabels = 0;
    unsigned char *pixels = idx_read(folder, images, 3, DIGIT_PIXELS, &n);
    unsigned char *names = pixels ? idx_read(folder, labels, 1, 1, &nlabels) : NULL;

    digits->n = (int)n;
    digits->labels = names;
    digits->pixels = names ? malloc((size_t)n * DIGIT_PIXELS * sizeof *digits->pixels) : NULL;
    int bad = digits->pixels && n != nlabels;
    if (bad)
        fprintf(stderr, "%s: %ld images but %ld labels\n", folder, n, nlabels);
    for (long k = 0; digits->pixels && k < n && !bad; k++)
        if (names[k] > 9) {
            fprintf(stderr, "%s/%s: label %ld is %d\n", folder, labels, k, names[k]);
            bad = 1;
        }
    for (long k = 0; digits->pixels && !bad && k < n * DIGIT_PIXELS; k++)
        digits->pixels[k] = (float)pixels[k] / 255;
    free(pixels);
    if (!digits->pixels || bad) {
        digits_free(digits);
        return 0;
    }
    return 1;
}
