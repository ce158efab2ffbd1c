/* io/format.c - a file of tensors is opened: mapped, its format found, read by that.
 *
 *     jot_file_open: mmap -> io_formats[..].is -> .read -> io_add, io_add_meta ... -> io_finish
 *
 * Read before: io/file.c, io/safetensors.c. After: io/write.c, io/take.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"

static const IoFormat io_formats[] = {
    {"safetensors", ".safetensors", false, io_safetensors_is, io_safetensors_read,
     io_safetensors_fits, io_safetensors_write},
    {"npy", ".npy", false, io_npy_is, io_npy_read, io_npy_fits, io_npy_write},
    {"gguf", ".gguf", false, io_gguf_is, io_gguf_read, io_gguf_fits, io_gguf_write},
    {"pt", ".pt", true, io_torch_is, io_torch_read, NULL, NULL},
    {"npz", ".npz", false, io_npz_is, io_npz_read, io_npz_fits, io_npz_write},
};
enum { IO_FORMATS = sizeof io_formats / sizeof *io_formats };

const char *
jot_file_can(const char *format)
{
#ifndef JOT_CJSON
    if (!strcmp(format, "safetensors"))
        return "this build reads no safetensors: install libcjson-dev and build it again "
               "(jot.c: with -DJOT_CJSON -lcjson)";
#endif
#ifndef JOT_ZLIB
    if (!strcmp(format, "npz"))
        return "this build writes no npz, and reads what is stored: install zlib1g-dev and build "
               "it again";
    if (!strcmp(format, "deflate"))
        return "this build reads nothing that is deflated: install zlib1g-dev and build it again "
               "(jot.c: with -DJOT_ZLIB -lz)";
#endif
    return !strcmp(format, "deflate") || io_format(format, NULL) ? ""
           : "safetensors, npy, npz, gguf, pt or deflate asked";
}

const IoFormat *
io_format(const char *name, const char *path)
{
    for (int k = 0; k < IO_FORMATS; k++) {
        size_t n = path ? strlen(path) : 0, end = strlen(io_formats[k].end);
        if (name ? !strcmp(io_formats[k].name, name)
                 : n >= end && !strcmp(path + n - end, io_formats[k].end))
            return &io_formats[k];
    }
    return NULL;
}

static jot_File *
file_read(IoFile *f)
{
    const uint8_t *p = f->bytes.p;
    char first[40] = "nothing";

    for (int k = 0; k < IO_FORMATS && !f->format; k++)
        if (io_formats[k].is(f->bytes))
            f->format = &io_formats[k];
    for (size_t k = 0; k < f->bytes.n && k < 8; k++)
        sprintf(first + 3 * k, "%02x ", p[k]);
    if (!f->format)
        io_fail(f, JOT_EIO, "safetensors, npy, npz, GGUF or PyTorch's zip asked, %zu bytes that "
                "begin with %s found", f->bytes.n, first);
    else if (f->format->read(f))
        io_finish(f);
    f->is.format = f->format ? f->format->name : "";
    f->is.nbytes = f->bytes.n;
    f->is.tensor = f->tensor;
    f->is.meta = f->meta;
    if (f->is.status) {
        io_forget(f);
        f->is.tensor = NULL, f->is.meta = NULL;
        f->is.count = f->is.metas = 0;
    }
    return &f->is;
}

jot_File *
jot_file_memory(const char *name, const void *bytes, size_t nbytes)
{
    IoFile *f = io_make(name ? name : "bytes");

    if (!f)
        return NULL;
    f->bytes = (IoBytes){bytes, bytes ? nbytes : 0};
    return file_read(f);
}

jot_File *
jot_file_open(const char *path)
{
    IoFile *f = io_make(path ? path : "(no name)");
    jot_Status status;
    char why[IO_WHY];

    if (!f)
        return NULL;
    if ((status = io_map(path, &f->bytes, why)))
        io_fail(f, status, "%s", why);
    else {
        f->map = (void *)(uintptr_t)f->bytes.p;
        file_read(f);
    }
    return &f->is;
}
#endif
