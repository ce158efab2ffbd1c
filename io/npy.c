/* io/npy.c - NumPy's files: npy, an array behind a line of Python; npz, a zip of them.
 *
 *     \x93NUMPY 1 0 | u16 n | n bytes: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *                   | elements, from a multiple of 64 on           (2 0 and 3 0: u32 n)
 *
 * A written npz is stored, each of its arrays beginning at a multiple of 64 of the file, so that
 * they can be used where they lie; its sizes are of 64 bits. It takes zlib, for checksums.
 *
 * Read before: io/zip.c. After: io/gguf.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#ifdef JOT_ZLIB
#include <zlib.h>
#endif

enum { NPY_HEADER = 1 << 13 }; /* the longest line that is read, as NumPy's own limit */

static const struct { const char *name; jot_DType dtype; } npy_types[] = {
    {"b1", JOT_BOOL}, {"i1", JOT_I8}, {"i2", JOT_I16}, {"i4", JOT_I32}, {"i8", JOT_I64},
    {"u1", JOT_U8}, {"u2", JOT_U16}, {"u4", JOT_U32}, {"u8", JOT_U64}, {"f2", JOT_F16},
    {"f4", JOT_F32}, {"f8", JOT_F64},
};
enum { NPY_TYPES = sizeof npy_types / sizeof *npy_types };

/* ---- the line ---- */

typedef struct {
    IoFile *f;
    const char *p, *end;
    uint64_t offset;      /* of the line in the file, for messages */
    const char *begin;
    bool fortran;
    unsigned seen;        /* bits of the keys that were there */
    jot_Stored t;
    IoLayout l;
} NpyLine;

static bool
npy_bad(NpyLine *s, const char *asked)
{
    return io_fail(s->f, JOT_EIO, "%s%.100s%sbyte %llu: header: %s asked, \"%.*s\" found",
                   *s->t.name ? "tensor " : "", s->t.name, *s->t.name ? ": " : "",
                   (unsigned long long)s->offset + (unsigned long long)(s->p - s->begin), asked,
                   (int)(s->end - s->p < 20 ? s->end - s->p : 20), s->p);
}

/* Spaces, then c if it is there. */
static bool
npy_next(NpyLine *s, char c)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n'))
        s->p++;
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* 'text' or "text"; false: none. */
static bool
npy_quoted(NpyLine *s, const char **text, size_t *n)
{
    char quote = npy_next(s, '\'') ? '\'' : npy_next(s, '"') ? '"' : 0;
    const char *end = quote ? memchr(s->p, quote, (size_t)(s->end - s->p)) : NULL;

    if (!end)
        return false;
    *text = s->p;
    *n = (size_t)(end - s->p);
    s->p = end + 1;
    return true;
}

static bool
npy_word(NpyLine *s, const char *word)
{
    size_t n = strlen(word);

    npy_next(s, 0);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n))
        return false;
    s->p += n;
    return true;
}

static bool
npy_descr(NpyLine *s)
{
    const char *text;
    size_t n;

    if (!npy_quoted(s, &text, &n))
        return npy_bad(s, "a plain dtype ('<f4')");
    if (!(s->t.type = io_text(s->f, text, n)))
        return false;
    for (int k = 0; k < NPY_TYPES; k++)
        if (n == 3 && !strcmp(s->t.type + 1, npy_types[k].name) && strchr("<>|=", *text))
            s->t.dtype = npy_types[k].dtype;
    s->l.swapped = *text == '>';
    return true;
}

static bool
npy_shape(NpyLine *s)
{
    if (!npy_next(s, '('))
        return npy_bad(s, "a shape");
    for (bool more = true; !npy_next(s, ')');) {
        int64_t extent = 0;
        const char *first = s->p;
        for (; s->p < s->end && *s->p >= '0' && *s->p <= '9' && extent < INT64_MAX / 100; s->p++)
            extent = 10 * extent + (*s->p - '0');
        if (!more || s->p == first || s->t.rank == JOT_MAX_RANK)
            return npy_bad(s, s->t.rank == JOT_MAX_RANK ? "a rank of at most 16" : "an extent");
        s->t.shape[s->t.rank++] = extent;
        more = npy_next(s, ',');
    }
    return true;
}

static bool
npy_value(NpyLine *s, const char *key, size_t n)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned k = 0;

    while (k < 3 && (n != strlen(keys[k]) || memcmp(key, keys[k], n)))
        k++;
    if (k == 3 || (s->seen >> k & 1) || !npy_next(s, ':'))
        return npy_bad(s, "descr, fortran_order and shape, once each,");
    s->seen |= 1u << k;
    if (k == 0)
        return npy_descr(s);
    if (k == 2)
        return npy_shape(s);
    s->fortran = npy_word(s, "True");
    return s->fortran || npy_word(s, "False") || npy_bad(s, "True or False");
}

static bool
npy_line(NpyLine *s)
{
    const char *key;
    size_t n;

    if (!npy_next(s, '{'))
        return npy_bad(s, "{");
    while (npy_quoted(s, &key, &n)) {
        if (!npy_value(s, key, n))
            return false;
        npy_next(s, ',');
    }
    if (!npy_next(s, '}') || s->seen != 7)
        return npy_bad(s, "descr, fortran_order and shape");
    npy_next(s, 0);
    return s->p == s->end || npy_bad(s, "the line's end");
}

/* ---- reading ---- */

/* The header's size in all, of what begins as it says; 0: it is none, or too long. */
static size_t
npy_header(IoBytes b)
{
    size_t wide = b.n >= 12 && b.p[6] > 1 ? 4 : 2;

    if (!io_npy_is(b) || b.n < 12 || b.p[6] < 1 || b.p[6] > 3)
        return 0;
    uint64_t n = io_little(b.p + 8, (int)wide);
    return n > NPY_HEADER ? 0 : 8 + wide + (size_t)n;
}

/* An array of this name: its header is the first of b, and its elements are `nbytes` of the file
 * from `offset` on, or, deflated, what l says. */
static bool
npy_array(IoFile *f, const char *name, IoBytes b, uint64_t offset, size_t nbytes,
          const IoLayout *layout)
{
    size_t header = npy_header(b), begin = b.n >= 12 && b.p[6] > 1 ? 12 : 10;
    NpyLine s = {.f = f, .t = {.name = name, .dtype = JOT_DTYPES}, .l = *layout};

    if (!header || header > b.n)
        return io_fail(f, JOT_EIO, "%s%.100s%sbyte %llu: a header of npy 1 to 3 of at most %d "
                       "bytes asked, something else found", *name ? "tensor " : "", name,
                       *name ? ": " : "", (unsigned long long)offset, NPY_HEADER);
    s.p = s.begin = (const char *)b.p + begin;
    s.end = (const char *)b.p + header;
    s.offset = offset + begin;
    if (!npy_line(&s))
        return false;
    size_t skip = s.l.deflated ? 0 : header;
    s.l.skip = header;
    s.t.offset = offset + skip;
    s.t.nbytes = nbytes - skip;
    int64_t stride = 1;
    for (int d = 0; s.fortran && d < s.t.rank; d++) {
        s.l.stride[d] = stride;
        stride = s.t.shape[d] && stride > INT64_MAX / s.t.shape[d] ? INT64_MAX
                 : stride * s.t.shape[d];
    }
    s.l.strided = s.fortran && s.t.rank > 1;
    return io_add(f, &s.t, &s.l);
}

bool
io_npy_is(IoBytes b)
{
    return b.n >= 8 && !memcmp(b.p, "\x93NUMPY", 6);
}

bool
io_npy_read(IoFile *f)
{
    static const IoLayout plain;

    return npy_array(f, "", f->bytes, 0, f->bytes.n, &plain);
}

bool
io_npz_is(IoBytes b)
{
    return io_zip_is(b);
}

static bool
npz_entry(IoFile *f, IoEntry *e)
{
    IoLayout l = {.deflated = e->deflated, .inflated = e->inflated, .crc = e->crc};
    IoBytes b = {f->bytes.p + e->offset, e->nbytes};
    uint8_t *first = NULL;
    size_t n = strlen(e->name);

    if (n < 4 || strcmp(e->name + n - 4, ".npy"))
        return true; /* NumPy has no array of it either */
    char *name = io_text(f, e->name, n - 4);
    if (!name)
        return false;
    if (e->deflated) {
        if (!(first = malloc(NPY_HEADER + 12)))
            return io_fail(f, JOT_EMEM, "no memory for a header");
        b = (IoBytes){first, io_inflate_begin(f, e, first, e->inflated < NPY_HEADER + 12
                                                           ? e->inflated : NPY_HEADER + 12)};
    }
    bool fine = !f->is.status && npy_array(f, name, b, e->offset, e->nbytes, &l);
    free(first);
    return fine;
}

bool
io_npz_read(IoFile *f)
{
    IoEntry *entry;
    size_t n;

    if (!io_zip(f, &entry, &n))
        return false;
    for (size_t k = 0; k < n; k++)
        if (!npz_entry(f, &entry[k]))
            return false;
    return true;
}

/* ---- writing ---- */

/* The header of v, a multiple of 64 bytes; returns how many. */
static size_t
npy_make(char to[1024], jot_Var v)
{
    int type = 0, n;
    size_t each = jot_dtype_nbytes(jot_dtype(v));

    while (npy_types[type].dtype != jot_dtype(v))
        type++;
    memcpy(to, "\x93NUMPY\1\0", 8);
    n = 10 + sprintf(to + 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                     each == 1 ? '|' : io_is_little() ? '<' : '>', npy_types[type].name);
    for (int d = 0; d < jot_rank(v); d++)
        n += sprintf(to + n, d ? " %lld," : "%lld,", (long long)jot_extent(v, d));
    n += sprintf(to + n - (jot_rank(v) > 1), "), }") - (jot_rank(v) > 1);
    while ((n + 1) % 64)
        to[n++] = ' ';
    to[n++] = '\n';
    io_store((uint8_t *)to + 8, (uint64_t)n - 10, 2);
    return (size_t)n;
}

static bool
npy_keeps(IoOut *o)
{
    if (o->how->metas)
        jot_raise(o->ctx, JOT_EUSE, "%s: NumPy's files keep no metadata", o->path);
    for (int k = 0; k < o->n && !o->how->metas; k++)
        if (jot_dtype(o->tensor[k].var) == JOT_BF16) {
            jot_raise(o->ctx, JOT_EDTYPE, "%s: tensor %s is bf16, which NumPy has not: jot_cast it "
                      "to f32", o->path, o->tensor[k].name);
            return false;
        }
    return !o->how->metas;
}

bool
io_npy_fits(IoOut *o)
{
    if (o->n != 1)
        jot_raise(o->ctx, JOT_EUSE, "%s: npy is of one tensor, %d found: npz has room for more",
                  o->path, o->n);
    return o->n == 1 && npy_keeps(o);
}

bool
io_npy_write(IoOut *o)
{
    char header[1024];

    return io_put(o, header, npy_make(header, o->tensor->var))
        && io_put(o, *o->data, io_var_nbytes(o->tensor->var));
}

#ifdef JOT_ZLIB
typedef struct { uint64_t offset, nbytes; uint32_t crc; } NpzEntry;

static uint32_t
npz_crc(const char *header, size_t n, const uint8_t *p, size_t nbytes)
{
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)header, (uInt)n);

    for (size_t at = 0; at < nbytes; at += 1 << 30)
        crc = crc32(crc, p + at, nbytes - at > 1 << 30 ? 1 << 30 : (uInt)(nbytes - at));
    return (uint32_t)crc;
}

/* What an entry's two records have in common, from the version that reads it on; `extra` bytes
 * behind the name. Sizes stand in the extra field. */
static bool
npz_record(IoOut *o, const NpzEntry *e, size_t name, size_t extra)
{
    uint8_t p[26] = {45, 0, 0, 8}; /* zip 4.5; names are UTF-8; stored */

    p[8] = 0x21; /* 1 January 1980 */
    io_store(p + 10, e->crc, 4);
    memset(p + 14, 255, 8);
    io_store(p + 22, name, 2);
    io_store(p + 24, extra, 2);
    return io_put(o, p, sizeof p);
}

static bool
npz_name(IoOut *o, int k)
{
    return io_put(o, o->tensor[k].name, strlen(o->tensor[k].name)) && io_put(o, ".npy", 4);
}

static bool
npz_entry_write(IoOut *o, int k, NpzEntry *e)
{
    jot_Var v = o->tensor[k].var;
    char header[1024];
    uint8_t extra[24 + 64] = {1, 0, 16};
    size_t n = npy_make(header, v), name = strlen(o->tensor[k].name) + 4;
    uint64_t begin = (o->at + 30 + name + 24 + 63) / 64 * 64, size;

    *e = (NpzEntry){o->at, n + io_var_nbytes(v), npz_crc(header, n, o->data[k], io_var_nbytes(v))};
    size = begin - e->offset - 30 - name;
    io_store(extra + 4, e->nbytes, 8);
    io_store(extra + 12, e->nbytes, 8);
    io_store(extra + 20, 0xd935, 2); /* padding, as archives of Android have it */
    io_store(extra + 22, size - 24, 2);
    return io_put(o, "PK\3\4", 4) && npz_record(o, e, name, (size_t)size) && npz_name(o, k)
        && io_put(o, extra, (size_t)size) && io_put(o, header, n)
        && io_put(o, o->data[k], io_var_nbytes(v));
}

static bool
npz_directory_write(IoOut *o, const NpzEntry *entry)
{
    uint64_t begin = o->at, end;
    uint8_t last[56 + 20 + 22] = "PK\6\6";

    for (int k = 0; k < o->n; k++) {
        uint8_t fields[14] = {0}, extra[28] = {1, 0, 24};
        memset(fields + 10, 255, 4);
        io_store(extra + 4, entry[k].nbytes, 8);
        io_store(extra + 12, entry[k].nbytes, 8);
        io_store(extra + 20, entry[k].offset, 8);
        if (!io_put(o, "PK\1\2\55\0", 6)
            || !npz_record(o, &entry[k], strlen(o->tensor[k].name) + 4, sizeof extra)
            || !io_put(o, fields, sizeof fields) || !npz_name(o, k)
            || !io_put(o, extra, sizeof extra))
            return false;
    }
    end = o->at;
    io_store(last + 4, 44, 8);
    last[12] = last[14] = 45;
    io_store(last + 24, (uint64_t)o->n, 8);
    io_store(last + 32, (uint64_t)o->n, 8);
    io_store(last + 40, end - begin, 8);
    io_store(last + 48, begin, 8);
    memcpy(last + 56, "PK\6\7", 4);
    io_store(last + 64, end, 8);
    last[72] = 1;
    memcpy(last + 76, "PK\5\6", 4);
    memset(last + 84, 255, 12);
    return io_put(o, last, sizeof last);
}

bool
io_npz_fits(IoOut *o)
{
    return npy_keeps(o);
}

bool
io_npz_write(IoOut *o)
{
    NpzEntry *entry = malloc(((size_t)o->n + 1) * sizeof *entry);
    bool fine = entry != NULL;

    if (!fine)
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for %d tensors", o->path, o->n);
    for (int k = 0; fine && k < o->n; k++)
        fine = npz_entry_write(o, k, &entry[k]);
    fine = fine && npz_directory_write(o, entry);
    free(entry);
    return fine;
}
#else
bool
io_npz_fits(IoOut *o)
{
    jot_raise(o->ctx, JOT_EIO, "%s: %s", o->path, jot_file_can("npz"));
    return false;
}

bool
io_npz_write(IoOut *o)
{
    return io_npz_fits(o);
}
#endif
#endif
