/* io/write.c - a file of tensors, written whole or not at all.
 *
 *     evaluate -> format's fits -> PATH.tmp-PID-N: format's write -> fsync -> rename
 *
 * Whoever is killed on the way leaves the old file as it was, and perhaps a temporary one beside
 * it; a failure (a full disk, say) leaves neither. A link stays one: the file that it leads to is
 * replaced.
 *
 * Read before: io/file.c. After: io/safetensors.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

size_t
io_var_nbytes(jot_Var v)
{
    return (size_t)jot_nelem(v) * jot_dtype_nbytes(jot_dtype(v));
}

/* ---- what is to be written ---- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether no two of these names are the same; what they are of. */
static bool
write_distinct_of(IoOut *o, const char *what, const char **name, int n)
{
    int k = 1;

    qsort(name, (size_t)n, sizeof *name, by_text);
    while (k < n && by_text(&name[k - 1], &name[k]))
        k++;
    if (k < n)
        jot_raise(o->ctx, JOT_EUSE, "%s: %s %s is there twice", o->path, what, name[k]);
    return k >= n;
}

static bool
write_distinct(IoOut *o)
{
    int n = o->n, metas = o->how->metas;
    const char **name = malloc(((size_t)n + (size_t)metas + 1) * sizeof *name);

    if (!name) {
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for %d tensors", o->path, n);
        return false;
    }
    for (int k = 0; k < n; k++)
        name[k] = o->tensor[k].name;
    for (int k = 0; k < metas; k++)
        name[n + k] = o->how->meta[k].key;
    bool fine = write_distinct_of(o, "tensor", name, n)
             && write_distinct_of(o, "metadata", name + n, metas);
    free(name);
    return fine;
}

/* The tensors' elements, all evaluated at once. */
static bool
write_evaluate(IoOut *o)
{
    size_t n = (size_t)o->n + 1;
    jot_Var *v = malloc(n * sizeof *v);
    bool fine = v && (o->data = calloc(n, sizeof *o->data));

    if (!fine)
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for %d tensors", o->path, o->n);
    for (int k = 0; fine && k < o->n; k++) {
        v[k] = o->tensor[k].var;
        fine = jot_check(o->ctx, v[k], "file_write", o->tensor[k].name);
    }
    fine = fine && jot_run(o->ctx, jot_vars(o->n, v));
    for (int k = 0; fine && k < o->n; k++)
        fine = (o->data[k] = jot_data(v[k])) != NULL || !jot_nelem(v[k]);
    free(v);
    return fine;
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

static bool
write_file(IoOut *o, bool (*fill)(IoOut *o))
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

bool
io_write(jot_Ctx *ctx, const char *path, bool (*fill)(IoOut *o), void *user)
{
    IoOut *o = calloc(1, sizeof *o);
    bool fine;

    if (!o) {
        jot_raise(ctx, JOT_EMEM, "%s: no memory to write it", path);
        return false;
    }
    o->ctx = ctx, o->path = path, o->user = user;
    fine = write_file(o, fill);
    free(o);
    return fine;
}

bool
jot_file_write(jot_Ctx *ctx, const char *path, const jot_Named *tensors, int n,
               const jot_Writing *how)
{
    static const jot_Writing none;
    const jot_Writing *w = how ? how : &none;
    const IoFormat *format = path ? io_format(w->format, w->format ? NULL : path) : NULL;

    bool asked = path && n >= 0 && (!n || tensors) && w->metas >= 0 && (!w->metas || w->meta);

    if (!ctx || !asked || !format || !format->write) {
        jot_raise(ctx, JOT_EUSE, "file_write: %s: %s", path ? path : "(no name)",
                  asked ? "format safetensors, npy, npz or gguf asked"
                  : "a path, tensors and as many metadata as said asked");
        return false;
    }
    IoOut *o = calloc(1, sizeof *o);
    if (!o) {
        jot_raise(ctx, JOT_EMEM, "%s: no memory to write it", path);
        return false;
    }
    o->ctx = ctx, o->path = path, o->tensor = tensors, o->n = n, o->how = w;
    bool fine = write_distinct(o) && write_evaluate(o) && format->fits(o)
             && write_file(o, format->write);
    free(o->data);
    free(o);
    return fine;
}
#endif
