/* io/zip.c - entries of a zip file, which npz and .pt are: found from its end, where the directory
 * is; what is deflated is inflated by zlib.
 *
 *     entries: "PK 3 4" header, name, bytes ...
 *     directory: "PK 1 2" record, name ...     its end: ["PK 6 6" ... "PK 6 7"] "PK 5 6"
 *
 * Sizes of 64 bits stand in an extra field, where those of 32 are all ones. Encrypted entries and
 * other methods than 0 and 8 are refused. Checksums are looked at where bytes are inflated; what is
 * stored is used where it lies.
 *
 * Read before: io/file.c. After: io/npy.c, io/torch.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#ifdef JOT_ZLIB
#include <zlib.h>
#endif

enum { ZIP_END = 22, ZIP_ENTRY = 46, ZIP_LOCAL = 30, ZIP_MOST = 1032 };
typedef struct { uint64_t count, nbytes, offset; size_t end; } ZipDirectory;

/* ---- the directory ---- */

/* Where the last record is: the one whose comment ends with the file. False: nowhere. */
static bool
zip_find_end(IoBytes b, size_t *at)
{
    size_t least = b.n > ZIP_END + 65535 ? b.n - ZIP_END - 65535 : 0;

    if (b.n < ZIP_END)
        return false;
    for (*at = b.n - ZIP_END;; --*at) {
        const uint8_t *p = b.p + *at;
        if (!memcmp(p, "PK\5\6", 4) && io_little(p + 20, 2) == b.n - ZIP_END - *at)
            return true;
        if (*at == least)
            return false;
    }
}

bool
io_zip_is(IoBytes b)
{
    return b.n >= 4 && (!memcmp(b.p, "PK\3\4", 4) || !memcmp(b.p, "PK\5\6", 4));
}

static bool
zip_directory(IoBytes b, ZipDirectory *d)
{
    size_t at;

    if (!zip_find_end(b, &at))
        return false;
    d->end = at;
    d->count = io_little(b.p + at + 10, 2);
    d->nbytes = io_little(b.p + at + 12, 4);
    d->offset = io_little(b.p + at + 16, 4);
    if (at >= 20 && !memcmp(b.p + at - 20, "PK\6\7", 4)) {
        uint64_t wide = io_little(b.p + at - 12, 8);
        if (wide > at - 20 || at - 20 - wide < 56 || memcmp(b.p + wide, "PK\6\6", 4))
            return false;
        d->end = (size_t)wide;
        d->count = io_little(b.p + wide + 32, 8);
        d->nbytes = io_little(b.p + wide + 40, 8);
        d->offset = io_little(b.p + wide + 48, 8);
    }
    return d->offset <= d->end && d->nbytes <= d->end - d->offset
        && d->count <= d->nbytes / ZIP_ENTRY;
}

/* ---- entries ---- */

/* Sizes and place of 64 bits, for those that are all ones. False: the field is not as it says. */
static bool
zip_wide(const uint8_t *p, size_t n, uint64_t *value[3])
{
    while (n >= 4) {
        size_t id = (size_t)io_little(p, 2), size = (size_t)io_little(p + 2, 2);
        if (size > n - 4)
            return false;
        for (size_t k = 0, at = 0; id == 1 && k < 3; k++)
            if (*value[k] == UINT32_MAX) {
                if (at + 8 > size)
                    return false;
                *value[k] = io_little(p + 4 + at, 8);
                at += 8;
            }
        p += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* Where the entry's bytes begin, of which there are nbytes before the directory. */
static bool
zip_begin(const IoFile *f, const ZipDirectory *d, uint64_t local, uint64_t nbytes, IoEntry *e)
{
    if (local > d->offset || d->offset - local < ZIP_LOCAL)
        return false;
    const uint8_t *p = f->bytes.p + local;
    if (memcmp(p, "PK\3\4", 4))
        return false;
    e->offset = local + ZIP_LOCAL + io_little(p + 26, 2) + io_little(p + 28, 2);
    return e->offset <= d->offset && nbytes <= d->offset - e->offset;
}

/* The entry whose record is at p, with n bytes up to the directory's end; returns the record's
 * size, 0: told. */
static size_t
zip_entry(IoFile *f, const ZipDirectory *d, const uint8_t *p, size_t n, IoEntry *e)
{
    unsigned long long at = (unsigned long long)(p - f->bytes.p);

    if (n < ZIP_ENTRY || memcmp(p, "PK\1\2", 4))
        return io_fail(f, JOT_EIO, "byte %llu: no record of zip's directory", at);
    size_t name = (size_t)io_little(p + 28, 2), extra = (size_t)io_little(p + 30, 2);
    size_t size = ZIP_ENTRY + name + extra + (size_t)io_little(p + 32, 2);
    uint64_t nbytes = io_little(p + 20, 4), inflated = io_little(p + 24, 4);
    uint64_t local = io_little(p + 42, 4), method = io_little(p + 10, 2);
    if (size > n || !zip_wide(p + ZIP_ENTRY + name, extra, (uint64_t *[]){&inflated, &nbytes,
                                                                          &local}))
        return io_fail(f, JOT_EIO, "byte %llu: a record of zip's directory that ends beyond it",
                       at);
    if (!(e->name = io_text(f, p + ZIP_ENTRY, name)))
        return 0;
    if ((io_little(p + 8, 2) & 1) || (method && method != 8))
        return io_fail(f, JOT_EIO, "entry %.100s: stored or deflated asked, %s %d found", e->name,
                       method && method != 8 ? "method" : "encrypted, method", (int)method);
    e->nbytes = (size_t)nbytes;
    e->inflated = (size_t)inflated;
    e->deflated = method == 8;
    e->crc = (uint32_t)io_little(p + 16, 4);
    if (!zip_begin(f, d, local, nbytes, e))
        return io_fail(f, JOT_EIO, "entry %.100s: byte %llu: %llu bytes asked, before byte %llu",
                       e->name, (unsigned long long)local, (unsigned long long)nbytes,
                       (unsigned long long)d->offset);
    if (inflated > SIZE_MAX / 2 || (e->deflated ? inflated / ZIP_MOST > nbytes
                                                : inflated != nbytes))
        return io_fail(f, JOT_EIO, "entry %.100s: byte %llu: %llu bytes cannot become %llu",
                       e->name, (unsigned long long)e->offset, (unsigned long long)nbytes,
                       (unsigned long long)inflated);
    return size;
}

bool
io_zip(IoFile *f, IoEntry **entries, size_t *n)
{
    ZipDirectory d;

    if (!zip_directory(f->bytes, &d))
        return io_fail(f, JOT_EIO, "zip's directory is not where its end says, or it has none");
    const uint8_t *p = f->bytes.p + d.offset;
    size_t left = (size_t)d.nbytes;
    *n = (size_t)d.count;
    if (!(*entries = io_keep(f, *n * sizeof **entries)))
        return false;
    for (size_t k = 0; k < *n; k++) {
        size_t size = zip_entry(f, &d, p, left, &(*entries)[k]);
        if (!size)
            return false;
        p += size;
        left -= size;
    }
    return true;
}

bool
io_zip_has(IoBytes b, const char *end)
{
    ZipDirectory d;
    size_t n = strlen(end), left;

    if (!io_zip_is(b) || !zip_directory(b, &d))
        return false;
    const uint8_t *p = b.p + d.offset;
    for (left = (size_t)d.nbytes; left >= ZIP_ENTRY && !memcmp(p, "PK\1\2", 4);) {
        size_t name = (size_t)io_little(p + 28, 2);
        size_t size = ZIP_ENTRY + name + (size_t)(io_little(p + 30, 2) + io_little(p + 32, 2));
        if (size > left)
            break;
        if (name >= n && !memcmp(p + ZIP_ENTRY + name - n, end, n))
            return true;
        p += size;
        left -= size;
    }
    return false;
}

/* ---- inflating ---- */

#ifdef JOT_ZLIB
/* Up to `room` bytes of it; returns how many, SIZE_MAX: no memory; *ended: it has no more, and all
 * of it was read. */
static size_t
zip_inflate(IoBytes from, uint8_t *to, size_t room, bool *ended)
{
    z_stream z = {0};
    size_t n = 0, at = 0;
    int rc = inflateInit2(&z, -15);

    *ended = false;
    if (rc != Z_OK)
        return SIZE_MAX;
    while (rc == Z_OK) {
        z.next_in = (Bytef *)(uintptr_t)(from.p + at);
        z.avail_in = from.n - at > 1 << 30 ? 1 << 30 : (uInt)(from.n - at);
        z.next_out = to + n;
        z.avail_out = room - n > 1 << 30 ? 1 << 30 : (uInt)(room - n);
        uInt in = z.avail_in, out = z.avail_out;
        rc = inflate(&z, Z_NO_FLUSH);
        at += in - z.avail_in;
        n += out - z.avail_out;
        if (in == z.avail_in && out == z.avail_out)
            break;
    }
    *ended = rc == Z_STREAM_END && at == from.n;
    inflateEnd(&z);
    return n;
}

bool
io_inflate(jot_Ctx *ctx, const IoFile *f, const jot_Stored *t, const IoLayout *l, void *to)
{
    bool ended;
    IoBytes from = {f->bytes.p + t->offset, t->nbytes};
    size_t n = zip_inflate(from, to, l->inflated, &ended);
    uLong crc = crc32(0, NULL, 0);

    if (n == SIZE_MAX) {
        jot_raise(ctx, JOT_EMEM, "%s: tensor %s: no memory to inflate it", f->name, t->name);
        return false;
    }
    for (size_t at = 0; at < n; at += 1 << 30)
        crc = crc32(crc, (Bytef *)to + at, n - at > 1 << 30 ? 1 << 30 : (uInt)(n - at));
    if (n == l->inflated && ended && crc == l->crc)
        return true;
    jot_raise(ctx, JOT_EIO, "%s: tensor %s: byte %llu: deflated: %zu bytes asked, %zu found%s",
              f->name, t->name, (unsigned long long)t->offset, l->inflated, n,
              n == l->inflated ? ended ? ", with another checksum" : ", and more" : "");
    return false;
}

size_t
io_inflate_begin(IoFile *f, const IoEntry *e, void *to, size_t room)
{
    bool ended;
    size_t n = zip_inflate((IoBytes){f->bytes.p + e->offset, e->nbytes}, to, room, &ended);

    if (n == SIZE_MAX)
        io_fail(f, JOT_EMEM, "entry %.100s: no memory to inflate it", e->name);
    return n == SIZE_MAX ? 0 : n;
}
#else
bool
io_inflate(jot_Ctx *ctx, const IoFile *f, const jot_Stored *t, const IoLayout *l, void *to)
{
    (void)l, (void)to;
    jot_raise(ctx, JOT_EIO, "%s: tensor %s: %s", f->name, t->name, jot_file_can("deflate"));
    return false;
}

size_t
io_inflate_begin(IoFile *f, const IoEntry *e, void *to, size_t room)
{
    (void)to, (void)room;
    io_fail(f, JOT_EIO, "entry %.100s: %s", e->name, jot_file_can("deflate"));
    return 0;
}
#endif
#endif
