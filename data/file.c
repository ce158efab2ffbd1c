/* data/file.c - files as bytes, gunzipped, and buffers, which are what they become.
 *
 *     jot_read(path) = data_slurp -> jot_decode (data/decode.c)
 *
 * Nothing that a file says is believed before it is compared with how many bytes there are: a
 * gzipped file may become at most 1032 times as long (deflate can do no more), and its memory grows
 * with what has come, not with what is promised.
 *
 * Read before: data/parts.h. After: data/idx.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef JOT_ZLIB
#include <zlib.h>
#endif

/* ---- buffers ---- */

jot_Buffer *
jot_buffer_make(jot_DType dtype, int rank, const int64_t *shape)
{
    size_t nbytes = jot_dtype_nbytes(dtype);
    jot_Buffer *b = calloc(1, sizeof *b);

    if (!nbytes || rank < 0 || rank > JOT_DATA_RANK)
        return data_fail(b, JOT_ESHAPE, "buffer: a dtype and a rank of 0 to %d asked, dtype %d and "
                         "rank %d found", JOT_DATA_RANK, (int)dtype, rank);
    for (int d = 0; b && d < rank; d++) {
        if (shape[d] < 0 || (shape[d] && nbytes > (size_t)PTRDIFF_MAX / (size_t)shape[d]))
            return data_fail(b, JOT_ESHAPE, "buffer: extent %d: too many elements, %lld asked", d,
                             (long long)shape[d]);
        nbytes *= (size_t)(b->shape[d] = shape[d]);
    }
    if (!b)
        return NULL;
    b->dtype = dtype;
    b->rank = rank;
    b->nbytes = nbytes;
    if (!(b->data = malloc(nbytes ? nbytes : 1)))
        return data_fail(b, JOT_EMEM, "buffer: no memory for %zu bytes", nbytes);
    return b;
}

void
jot_buffer_free(jot_Buffer *buffer)
{
    if (buffer)
        free(buffer->data);
    free(buffer);
}

static jot_Buffer *
buffer_fail(jot_Buffer *b, jot_Status status, const char *format, va_list args)
{
    if (!b)
        return NULL;
    free(b->data);
    memset(b, 0, sizeof *b);
    b->status = status;
    vsnprintf(b->message, sizeof b->message, format, args);
    return b;
}

jot_Buffer *
data_fail(jot_Buffer *buffer, jot_Status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    buffer = buffer_fail(buffer, status, format, args);
    va_end(args);
    return buffer;
}

jot_Buffer *
data_failed(jot_Status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    jot_Buffer *b = buffer_fail(calloc(1, sizeof *b), status, format, args);
    va_end(args);
    return b;
}

static void
buffer_release(void *user, const void *data)
{
    (void)data;
    jot_buffer_free(user);
}

jot_Var
jot_buffer_var(jot_Ctx *ctx, jot_Buffer *buffer)
{
    static const jot_Buffer none = {.status = JOT_EMEM, .message = "no memory for a buffer"};
    const jot_Buffer *b = buffer ? buffer : &none;
    jot_Var v;

    if (b->status)
        v = jot_raise(ctx, b->status, "%s", b->message);
    else {
        v = jot_array_borrow(ctx, b->dtype, jot_ints(b->rank, b->shape), b->data, buffer_release,
                             buffer);
        if (jot_ok(v))
            return v;
    }
    jot_buffer_free(buffer);
    return v;
}

/* ---- bytes ---- */

const char *
jot_reads(const char *format)
{
    static const struct { const char *format, *what; } can[] = {
#ifdef JOT_PNG
        {"png", ""},
#else
        {"png", "this build reads no PNG: install libpng-dev and build it again "
                "(jot.c: with -DJOT_PNG -lpng)"},
#endif
#ifdef JOT_JPEG
        {"jpeg", ""},
#else
        {"jpeg", "this build reads no JPEG: install libjpeg-dev and build it again "
                 "(jot.c: with -DJOT_JPEG -ljpeg)"},
#endif
#ifdef JOT_ZLIB
        {"gzip", ""},
#else
        {"gzip", "this build reads no gzip: install zlib1g-dev and build it again "
                 "(jot.c: with -DJOT_ZLIB -lz), or gunzip it"},
#endif
    };
    for (size_t k = 0; k < sizeof can / sizeof *can; k++)
        if (!strcmp(can[k].format, format))
            return can[k].what;
    return "png, jpeg or gzip asked";
}

#ifdef JOT_ZLIB
/* Room for more, at most `most` in all; false: failed. */
static bool
gunzip_grow(jot_Buffer *b, size_t most)
{
    size_t room = b->nbytes > most / 2 ? most : 2 * b->nbytes;
    void *p = room > b->nbytes ? realloc(b->data, room + 1) : NULL;

    if (p)
        b->data = p, b->nbytes = room;
    return p != NULL;
}

/* All members of it, one after the other, as gzip does. */
jot_Buffer *
data_gunzip(DataBytes file)
{
    const size_t most = file.n > SIZE_MAX / 4096 ? SIZE_MAX / 2 : 1032 * file.n + 4096;
    jot_Buffer *b = jot_buffer_make(JOT_U8, 1, (int64_t[]){(int64_t)(4 * file.n + 4096)});
    z_stream z = {0};
    size_t n = 0, at = 0;
    int rc = Z_OK;

    if (!b || b->status)
        return b;
    if (inflateInit2(&z, 31) != Z_OK)
        return data_fail(b, JOT_EMEM, "%s: no memory to gunzip it", file.name);
    b->nbytes--; /* one byte for the 0 */
    while (rc == Z_OK) {
        size_t in = file.n - at, out = b->nbytes - n;
        z.next_in = (Bytef *)(uintptr_t)(file.p + at);
        z.avail_in = in > 1 << 30 ? 1 << 30 : (uInt)in;
        z.next_out = (Bytef *)b->data + n;
        z.avail_out = out > 1 << 30 ? 1 << 30 : (uInt)out;
        in = z.avail_in, out = z.avail_out;
        rc = inflate(&z, Z_NO_FLUSH);
        at += in - z.avail_in;
        n += out - z.avail_out;
        if (rc == Z_STREAM_END && at < file.n && file.p[at] == 0x1f)
            rc = inflateReset(&z);
        else if ((rc == Z_OK || rc == Z_BUF_ERROR) && n == b->nbytes)
            rc = gunzip_grow(b, most) ? Z_OK : Z_MEM_ERROR;
        else if (rc == Z_OK && at == file.n && z.avail_out)
            rc = Z_BUF_ERROR;
    }
    if (rc != Z_STREAM_END)
        data_fail(b, rc == Z_MEM_ERROR ? JOT_EMEM : JOT_EIO, "%s: byte %zu: %s", file.name, at,
                  rc == Z_BUF_ERROR ? "gzip ends in the middle" : rc == Z_MEM_ERROR ?
                  "no memory to gunzip it" : z.msg ? z.msg : "no gzip");
    inflateEnd(&z);
    if (!b->status)
        ((char *)b->data)[n] = 0, b->shape[0] = (int64_t)n, b->nbytes = n;
    return b;
}
#else
jot_Buffer *
data_gunzip(DataBytes file)
{
    return data_failed(JOT_EIO, "%s: %s", file.name, jot_reads("gzip"));
}
#endif

bool
data_is_gzip(DataBytes file)
{
    return file.n >= 2 && file.p[0] == 0x1f && file.p[1] == 0x8b;
}

/* What is there now, of the size that the system says. */
static jot_Buffer *
slurp_fd(int fd, const char *path)
{
    struct stat s;

    if (fstat(fd, &s))
        return data_failed(JOT_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return data_failed(JOT_EIO, "%s: a file asked, %s found", path,
                           S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    jot_Buffer *b = jot_buffer_make(JOT_U8, 1, (int64_t[]){(int64_t)s.st_size + 1});
    if (!b || b->status)
        return data_fail(b, JOT_EMEM, "%s: no memory for %lld bytes", path, (long long)s.st_size);
    size_t n = 0, size = (size_t)s.st_size;
    while (n < size) {
        ssize_t got = read(fd, (char *)b->data + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return data_fail(b, JOT_EIO, "%s: %s at byte %zu of %zu", path,
                             got ? strerror(errno) : "it ends", n, size);
        n += (size_t)got;
    }
    ((char *)b->data)[n] = 0;
    b->shape[0] = (int64_t)n;
    b->nbytes = n;
    return b;
}

jot_Buffer *
data_slurp(const char *path)
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

    if (fd < 0)
        return data_failed(JOT_EIO, "%s: %s", path ? path : "(no name)",
                           path ? strerror(errno) : "a path asked");
    jot_Buffer *b = slurp_fd(fd, path);
    close(fd);
    if (!b || b->status)
        return b;
    DataBytes file = {path, b->data, b->nbytes};
    if (!data_is_gzip(file))
        return b;
    jot_Buffer *whole = data_gunzip(file);
    jot_buffer_free(b);
    return whole;
}

jot_Buffer *
jot_read_bytes(const char *path)
{
    return data_slurp(path);
}

/* ---- files to write, the locale, the clock ---- */

FILE *
data_create(jot_Ctx *ctx, const char *path)
{
    FILE *f = path ? fopen(path, "wb") : NULL;

    if (!f)
        jot_raise(ctx, path ? JOT_EIO : JOT_EUSE, "%s: %s", path ? path : "(no name)",
                  path ? strerror(errno) : "a path asked");
    return f;
}

bool
data_finish(jot_Ctx *ctx, FILE *f, const char *path)
{
    bool bad = ferror(f);

    if (!fclose(f) && !bad)
        return true;
    struct stat s;
    jot_raise(ctx, JOT_EIO, "%s: not written: %s", path, strerror(errno));
    if (!lstat(path, &s) && S_ISREG(s.st_mode)) /* a device or a link is not ours */
        remove(path);
    return false;
}

locale_t
data_locale_begin(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    return plain ? uselocale(plain) : (locale_t)0;
}

void
data_locale_end(locale_t before)
{
    if (before)
        freelocale(uselocale(before));
}

double
data_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t
data_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
#endif
