/* io/out.c - a file that is written whole or not at all, whatever is in it.
 *
 *     PATH.tmp-PID-N: what fill puts -> fsync -> rename
 *
 * Whoever is killed on the way leaves the old file as it was, and perhaps a temporary one beside
 * it; a failure (a full disk, say) leaves neither. A link stays one: the file that it leads to is
 * replaced.
 *
 * It needs no format: onnx/export/ writes by it, too.
 *
 * Read before: io/parts.h. After: io/write.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

size_t
io_var_nbytes(jot_Var v)
{
    return (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
}

/* ---- bytes ---- */

static bool
out_bytes(IoOut *o, const uint8_t *p, size_t n)
{
    while (n && !o->bad) {
        ssize_t put = write(o->fd, p, n > 1 << 30 ? 1 << 30 : n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            o->bad = true;
            jot_raise(o->ctx, JOT_EIO, "%s: not written: byte %llu: %s", o->path,
                      (unsigned long long)o->at, put ? strerror(errno) : "nothing goes in");
            break;
        }
        p += put;
        n -= (size_t)put;
        o->at += (uint64_t)put;
    }
    return !o->bad;
}

static bool
out_flush(IoOut *o)
{
    size_t n = o->fill;

    o->fill = 0;
    o->at -= n;
    return out_bytes(o, o->buffer, n);
}

bool
io_put(IoOut *o, const void *bytes, size_t n)
{
    if (n > sizeof o->buffer - o->fill && !out_flush(o))
        return false;
    if (n >= sizeof o->buffer)
        return out_bytes(o, bytes, n);
    if (n)
        memcpy(o->buffer + o->fill, bytes, n);
    o->fill += n;
    o->at += n;
    return !o->bad;
}

bool
io_pad(IoOut *o, int with, uint64_t to)
{
    uint8_t byte = (uint8_t)with;

    while (o->at < to && io_put(o, &byte, 1))
        ;
    return !o->bad;
}

/* ---- texts ---- */

bool
io_is_text(const char *text, size_t n)
{
    static const uint32_t least[] = {1, 0x80, 0x800, 0x10000};
    const uint8_t *p = (const uint8_t *)text;

    for (size_t k = 0, more; k < n; k += 1 + more) {
        more = p[k] < 0x80 ? 0 : p[k] < 0xe0 ? 1 : p[k] < 0xf0 ? 2 : 3;
        uint32_t c = more ? p[k] & 0x3fu >> more : p[k];
        if ((p[k] & 0xc0) == 0x80 || p[k] >= 0xf8 || more >= n - k)
            return false;
        for (size_t j = 1; j <= more; j++) {
            if ((p[k + j] & 0xc0) != 0x80)
                return false;
            c = c << 6 | (p[k + j] & 0x3f);
        }
        if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return false;
    }
    return true;
}

/* ---- the file ---- */

/* The folder of this file, whose name is cut off. Not every file system can: what was written is
 * there and whole all the same. */
void
io_sync_folder(char *path)
{
    char *end = strrchr(path, '/');

    if (end)
        end[1] = 0;
    int fd = open(end ? path : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* A new file beside `path`, which is what o->path leads to; false: told. */
static bool
out_create(IoOut *o, const char *path, mode_t mode)
{
    size_t n = strlen(path) + 48;

    if (!(o->temporary = malloc(n))) {
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for its name", o->path);
        return false;
    }
    for (int k = 0; k < 1000; k++) {
        snprintf(o->temporary, n, "%s.tmp-%ld-%d", path, (long)getpid(), k);
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (o->fd >= 0 || errno != EEXIST)
            break;
    }
    if (o->fd < 0)
        jot_raise(o->ctx, JOT_EIO, "%s: not written: %s", o->path, strerror(errno));
    return o->fd >= 0;
}

static bool
out_failed(IoOut *o, const char *what)
{
    if (!o->bad)
        jot_raise(o->ctx, JOT_EIO, "%s: not written: %s: %s", o->path, what, strerror(errno));
    o->bad = true;
    return false;
}

/* What is written becomes the file. */
static bool
out_finish(IoOut *o, const char *path)
{
    bool fine = out_flush(o) && (!fsync(o->fd) || errno == EINVAL || out_failed(o, "fsync"));

    if (close(o->fd) && fine)
        fine = out_failed(o, "close");
    if (fine && rename(o->temporary, path))
        fine = out_failed(o, "rename");
    if (fine)
        io_sync_folder(o->temporary);
    return fine;
}

bool
io_write(IoOut *o, bool (*fill)(IoOut *o))
{
    struct stat s;
    char *target = realpath(o->path, NULL);
    const char *path = target ? target : o->path;
    bool lost = !target && errno == ENOMEM;
    bool there = !stat(path, &s), fine = !lost && (!there || S_ISREG(s.st_mode));

    if (lost)
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for its name", o->path);
    else if (!fine)
        jot_raise(o->ctx, JOT_EIO, "%s: a file asked, %s found", o->path,
                  S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    fine = fine && out_create(o, path, there ? s.st_mode & 0777 : 0666);
    if (fine) {
        bool written = fill(o);
        fine = written && out_finish(o, path);
        if (!written)
            close(o->fd);
        if (!fine)
            unlink(o->temporary);
    }
    free(o->temporary);
    free(target);
    return fine;
}
#endif
