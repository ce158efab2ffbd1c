/* io/parts.h - what the files of this room share: the record behind a jot_File, bytes with their
 * ends, and files that are written.
 *
 *     file.c          a file mapped, its format, its tensors by name
 *     take.c          a tensor as a variable, or copied; blocks.c unpacks
 *     map.c, out.c    bytes of a file; a file whole or not at all: onnx/ has them, too
 *     write.c         tensors evaluated and written
 *     safetensors.c, npy.c, gguf.c, torch.c     a format each: a row of io_formats
 *     zip.c           entries of npz and .pt;   pickle.c   values of .pt
 *     checkpoint.c    a folder of safetensors
 *
 * A reader gets bytes and appends tensors and metadata; what it appends is looked at in one place
 * (io_add): names, ranks, sizes against the bytes that are there.
 *
 * Built on the public headers alone, as nn/ and data/ are, and on C's library and POSIX.
 *
 * Read before: io.h. After: io/file.c. */
#ifndef JOT_IO_PARTS_H
#define JOT_IO_PARTS_H
#include "io.h"
#ifndef JOT_NO_HOST
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef JOT_FN
#define JOT_FN /* as in base.h: `static` in the one-file build */
#endif

typedef struct { const uint8_t *p; size_t n; } IoBytes;

/* How a tensor's elements lie, beside what jot_Stored says. */
typedef struct {
    int64_t stride[JOT_MAX_RANK]; /* of elements, if strided */
    bool strided, swapped;        /* swapped: of the other byte order */
    bool deflated;                /* what is in the file becomes `skip` bytes and the elements */
    size_t skip;
    size_t inflated;              /* bytes in all */
    uint32_t crc;                 /* of them */
} IoLayout;

typedef struct IoFormat IoFormat;
typedef struct {
    jot_File is;
    const IoFormat *format;
    IoBytes bytes;
    void *map;                /* what munmap gets; NULL: the bytes are the caller's */
    bool copies;              /* variables do not lie in it */
    int64_t users;            /* the caller's handle, and variables that lie in it */
    jot_Stored *tensor;
    IoLayout *layout;
    const jot_Stored **order; /* by name */
    size_t room;
    jot_Meta *meta;
    size_t meta_room;
    struct IoKept *kept;      /* memory of names and values, freed with the file */
    size_t used;              /* of the newest one */
    size_t taken;             /* bytes of memory, for JOT_IO_MOST */
    char name[];
} IoFile;

/* The record's end after a failure; returns false. The first failure stays. */
JOT_FN bool io_fail(IoFile *f, jot_Status status, const char *format, ...);
/* Memory that lives as long as the file; NULL: failed, and told. */
JOT_FN void *io_keep(IoFile *f, size_t nbytes);
JOT_FN char *io_text(IoFile *f, const void *text, size_t n); /* kept, with a 0 behind */
/* A longer list: room for one more behind n. False: told. */
JOT_FN bool io_grow(IoFile *f, void *list, size_t *room, size_t n, size_t each);

/* A tensor whose offset, nbytes, type, dtype (block and block_nbytes 0: of plain elements), rank
 * and shape are set. Its bytes must be there and as many as shape and dtype say, or, of one that is
 * strided, reach; of one that is deflated what they become. False: told. */
JOT_FN bool io_add(IoFile *f, const jot_Stored *tensor, const IoLayout *layout);
JOT_FN bool io_add_meta(IoFile *f, const jot_Meta *meta); /* what it points to is kept */
JOT_FN bool io_shape_nbytes(const jot_Stored *t, size_t *nbytes); /* false: too many */
/* "(2, 3)" */
enum { IO_SHAPE = 24 * JOT_MAX_RANK };
JOT_FN const char *io_shape(char to[IO_SHAPE], int rank, const int64_t *shape);
JOT_FN IoFile *io_of(const jot_File *file);
JOT_FN IoFile *io_make(const char *name); /* one user; NULL: no memory */
JOT_FN void io_forget(IoFile *f); /* all that it has */
JOT_FN bool io_finish(IoFile *f); /* nothing follows: the order by name */
JOT_FN void io_let_go(IoFile *f); /* one user less */
JOT_FN const IoFormat *io_format(const char *name, const char *path); /* NULL: none */

/* ---- blocks ---- */

/* The formats of blocks that are read, by their names in GGUF. */
typedef struct {
    const char *name;
    int block, nbytes;
    void (*unpack)(float *to, const uint8_t *from); /* one block */
} IoPacking;
JOT_FN const IoPacking *io_packing(const char *name); /* NULL: none */
JOT_FN float io_half(const uint8_t *p);               /* of f16 */
JOT_FN bool io_q8_0(uint8_t to[34], const float from[32]); /* false: not finite, too large */

/* ---- zip ---- */

typedef struct {
    const char *name;      /* kept */
    uint64_t offset;       /* of its bytes, in the file */
    size_t nbytes, inflated;
    bool deflated;
    uint32_t crc;
} IoEntry;
JOT_FN bool io_zip_is(IoBytes b);
JOT_FN bool io_zip_has(IoBytes b, const char *end);    /* an entry whose name ends like this */
JOT_FN bool io_zip(IoFile *f, IoEntry **entries, size_t *n); /* kept */
/* All of a deflated tensor, with what stands before its elements. False: told. */
JOT_FN bool io_inflate(jot_Ctx *ctx, const IoFile *f, const jot_Stored *t, const IoLayout *l,
                       void *to);
/* The first `room` bytes of a deflated entry, or as many as come. */
JOT_FN size_t io_inflate_begin(IoFile *f, const IoEntry *e, void *to, size_t room);

/* A file's bytes, mapped until munmap (n 0: it is empty, and nothing is). Not JOT_OK: why. */
enum { IO_WHY = 160 };
JOT_FN jot_Status io_map(const char *path, IoBytes *to, char why[IO_WHY]);

/* ---- writing ---- */

typedef struct {
    jot_Ctx *ctx;
    const char *path;
    void *user;            /* of who writes */
    const jot_Named *tensor;
    const void **data;     /* of each, evaluated */
    int n;
    const jot_Writing *how;
    int fd;
    bool bad;
    uint64_t at;           /* bytes so far */
    char *temporary;
    size_t fill;
    uint8_t buffer[1 << 14];
} IoOut;
/* A file of what fill puts, whole or not at all: written beside o->path, synced, renamed. */
JOT_FN bool io_write(IoOut *o, bool (*fill)(IoOut *o));
JOT_FN bool io_put(IoOut *o, const void *bytes, size_t n); /* false: told */
JOT_FN bool io_pad(IoOut *o, int with, uint64_t to);       /* bytes `with` up to the offset */
JOT_FN bool io_is_text(const char *text, size_t n);        /* UTF-8 without a 0 */
JOT_FN size_t io_var_nbytes(jot_Var v);
JOT_FN void io_sync_folder(char *path); /* of this file, whose name is cut off */

/* ---- formats ---- */

struct IoFormat {
    const char *name, *end;                 /* end: of paths */
    bool shares;                            /* tensors may have bytes in common */
    bool (*is)(IoBytes bytes);              /* by its first bytes */
    bool (*read)(IoFile *f);                /* false: told */
    bool (*fits)(IoOut *o);                 /* before a file is made; false: told. NULL: never */
    bool (*write)(IoOut *o);
};
JOT_FN bool io_safetensors_is(IoBytes b);
JOT_FN bool io_safetensors_read(IoFile *f);
JOT_FN bool io_safetensors_fits(IoOut *o);
JOT_FN bool io_safetensors_write(IoOut *o);
JOT_FN bool io_npy_is(IoBytes b);
JOT_FN bool io_npy_read(IoFile *f);
JOT_FN bool io_npy_fits(IoOut *o);
JOT_FN bool io_npy_write(IoOut *o);
JOT_FN bool io_npz_is(IoBytes b);
JOT_FN bool io_npz_read(IoFile *f);
JOT_FN bool io_npz_fits(IoOut *o);
JOT_FN bool io_npz_write(IoOut *o);
JOT_FN bool io_gguf_is(IoBytes b);
JOT_FN bool io_gguf_read(IoFile *f);
JOT_FN bool io_gguf_fits(IoOut *o);
JOT_FN bool io_gguf_write(IoOut *o);
JOT_FN bool io_torch_is(IoBytes b);
JOT_FN bool io_torch_read(IoFile *f);

static inline uint64_t
io_little(const uint8_t *p, int n)
{
    uint64_t x = 0;

    while (n--)
        x = x << 8 | p[n];
    return x;
}

/* Whether this machine's numbers begin with their lowest byte, as those of most files do. */
static inline bool
io_is_little(void)
{
    const uint16_t one = 1;

    return *(const uint8_t *)&one == 1;
}

static inline void
io_store(uint8_t *p, uint64_t x, int n)
{
    for (; n--; x >>= 8)
        *p++ = (uint8_t)x;
}

#endif
#endif
