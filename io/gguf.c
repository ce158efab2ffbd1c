/* io/gguf.c - GGUF: metadata of typed values, then tensors by name, dense or in blocks.
 *
 *     "GGUF" u32 version | u64 tensors | u64 values
 *         | values: text key, u32 type, value            text: u64 n, n bytes
 *                                                         list: u32 type, u64 n, n values
 *         | tensors: text name, u32 rank, u64 extents, u32 type, u64 offset
 *         | elements, from a multiple of general.alignment (32) on, each tensor at one too
 *
 * Extents stand with the fastest dimension first; shapes here are the other way round.
 *
 * Read before: io/blocks.c, io/write.c. After: io/pickle.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <float.h>
#include <math.h>

enum { GGUF_LISTS = 4, GGUF_NAME = 64, GGUF_RANK = 4 }; /* lists within lists; ggml's limits */

/* Types of values: how many bytes (0: as it says), and what they become. */
enum { GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_TEXT = 8, GGUF_LIST = 9,
       GGUF_I64 = 11 };
static const struct { int nbytes; jot_MetaKind kind; bool sign; } gguf_values[] = {
    {1, JOT_META_INT, false}, {1, JOT_META_INT, true}, {2, JOT_META_INT, false},
    {2, JOT_META_INT, true}, {4, JOT_META_INT, false}, {4, JOT_META_INT, true},
    {4, JOT_META_FLOAT, true}, {1, JOT_META_BOOL, false}, {0, JOT_META_TEXT, false},
    {0, JOT_META_OTHER, false}, {8, JOT_META_INT, false}, {8, JOT_META_INT, true},
    {8, JOT_META_FLOAT, true},
};
enum { GGUF_VALUES = sizeof gguf_values / sizeof *gguf_values };

/* Types of tensors: block and bytes; of those that io_packing unpacks the dtype is f32. */
static const struct { int type; const char *name; jot_DType dtype; int block, nbytes; }
gguf_types[] = {
    {0, "F32", JOT_F32, 1, 4}, {1, "F16", JOT_F16, 1, 2}, {2, "Q4_0", JOT_DTYPES, 32, 18},
    {3, "Q4_1", JOT_DTYPES, 32, 20}, {6, "Q5_0", JOT_DTYPES, 32, 22},
    {7, "Q5_1", JOT_DTYPES, 32, 24}, {8, "Q8_0", JOT_DTYPES, 32, 34},
    {9, "Q8_1", JOT_DTYPES, 32, 36}, {10, "Q2_K", JOT_DTYPES, 256, 84},
    {11, "Q3_K", JOT_DTYPES, 256, 110}, {12, "Q4_K", JOT_DTYPES, 256, 144},
    {13, "Q5_K", JOT_DTYPES, 256, 176}, {14, "Q6_K", JOT_DTYPES, 256, 210},
    {15, "Q8_K", JOT_DTYPES, 256, 292}, {16, "IQ2_XXS", JOT_DTYPES, 256, 66},
    {17, "IQ2_XS", JOT_DTYPES, 256, 74}, {18, "IQ3_XXS", JOT_DTYPES, 256, 98},
    {19, "IQ1_S", JOT_DTYPES, 256, 50}, {20, "IQ4_NL", JOT_DTYPES, 32, 18},
    {21, "IQ3_S", JOT_DTYPES, 256, 110}, {22, "IQ2_S", JOT_DTYPES, 256, 82},
    {23, "IQ4_XS", JOT_DTYPES, 256, 136}, {24, "I8", JOT_I8, 1, 1}, {25, "I16", JOT_I16, 1, 2},
    {26, "I32", JOT_I32, 1, 4}, {27, "I64", JOT_I64, 1, 8}, {28, "F64", JOT_F64, 1, 8},
    {29, "IQ1_M", JOT_DTYPES, 256, 56}, {30, "BF16", JOT_BF16, 1, 2},
    {34, "TQ1_0", JOT_DTYPES, 256, 54}, {35, "TQ2_0", JOT_DTYPES, 256, 66},
    {39, "MXFP4", JOT_DTYPES, 32, 17},
};
enum { GGUF_TYPES = sizeof gguf_types / sizeof *gguf_types };

/* ---- reading ---- */

typedef struct { IoFile *f; size_t at; const char *what; } GgufAt; /* what: key or tensor */

bool
io_gguf_is(IoBytes b)
{
    return b.n >= 4 && !memcmp(b.p, "GGUF", 4);
}

/* n bytes of the file, passed over; NULL: told. */
static const uint8_t *
gguf_take(GgufAt *g, uint64_t n)
{
    size_t left = g->f->bytes.n - g->at;
    const uint8_t *p = g->f->bytes.p + g->at;

    if (n > left) {
        io_fail(g->f, JOT_EIO, "%.60s: byte %zu: %llu bytes asked, %zu found", g->what, g->at,
                (unsigned long long)n, left);
        return NULL;
    }
    g->at += (size_t)n;
    return p;
}

static bool
gguf_number(GgufAt *g, int nbytes, uint64_t *x)
{
    const uint8_t *p = gguf_take(g, (uint64_t)nbytes);

    *x = p ? io_little(p, nbytes) : 0;
    return p != NULL;
}

static bool
gguf_text(GgufAt *g, jot_Text *text)
{
    uint64_t n;
    const uint8_t *p = gguf_number(g, 8, &n) ? gguf_take(g, n) : NULL;

    *text = (jot_Text){(const char *)p, p ? (size_t)n : 0};
    return p != NULL;
}

/* A count of things of at least `least` bytes each. */
static bool
gguf_count(GgufAt *g, size_t least, uint64_t *n)
{
    size_t at = g->at;

    if (!gguf_number(g, 8, n))
        return false;
    if (*n <= (g->f->bytes.n - g->at) / least)
        return true;
    return io_fail(g->f, JOT_EIO, "%.60s: byte %zu: %llu of them asked, which %zu bytes cannot be",
                   g->what, at, (unsigned long long)*n, g->f->bytes.n - g->at);
}

/* Value k of a list to where the metadata has room for it. */
static bool
gguf_value(GgufAt *g, unsigned type, jot_Meta *m, uint64_t k)
{
    int n = gguf_values[type].nbytes;
    uint64_t x;
    float single;
    double wide;

    if (m->kind == JOT_META_TEXT)
        return gguf_text(g, (jot_Text *)(uintptr_t)&m->texts[k]);
    if (!gguf_number(g, n, &x))
        return false;
    if (m->kind == JOT_META_FLOAT && n == 4) {
        uint32_t bits = (uint32_t)x;
        memcpy(&single, &bits, 4);
        wide = (double)single;
    } else
        memcpy(&wide, &x, 8);
    if (m->kind == JOT_META_FLOAT)
        ((double *)(uintptr_t)m->floats)[k] = wide;
    else {
        if (gguf_values[type].sign && n < 8 && x >> (8 * n - 1))
            x |= UINT64_MAX << 8 * n;
        ((int64_t *)(uintptr_t)m->ints)[k] = m->kind == JOT_META_BOOL ? x != 0 : (int64_t)x;
    }
    return true;
}

static bool
gguf_type(GgufAt *g, uint64_t *type)
{
    size_t at = g->at;

    if (!gguf_number(g, 4, type))
        return false;
    return *type < GGUF_VALUES || io_fail(g->f, JOT_EIO, "%.60s: byte %zu: a type of value up to "
                                          "%d asked, %llu found", g->what, at, GGUF_VALUES - 1,
                                          (unsigned long long)*type);
}

/* A list of lists, passed over. */
static bool
gguf_pass(GgufAt *g, uint64_t type, int depth)
{
    uint64_t n = 1;
    jot_Text text;

    if (type != GGUF_LIST)
        return gguf_values[type].nbytes ? gguf_take(g, (uint64_t)gguf_values[type].nbytes) != NULL
                                        : gguf_text(g, &text);
    if (depth == GGUF_LISTS)
        return io_fail(g->f, JOT_EIO, "%.60s: byte %zu: lists %d deep asked, more found", g->what,
                       g->at, GGUF_LISTS);
    if (!gguf_type(g, &type) || !gguf_count(g, 1, &n))
        return false;
    while (n--)
        if (!gguf_pass(g, type, depth + 1))
            return false;
    return true;
}

static bool
gguf_meta(GgufAt *g)
{
    jot_Meta m = {.count = 1};
    jot_Text key;
    uint64_t type, n = 1;

    g->what = "a key";
    if (!gguf_text(g, &key) || !(m.key = g->what = io_text(g->f, key.p, key.n))
        || !gguf_type(g, &type))
        return false;
    m.list = type == GGUF_LIST;
    if (m.list && (!gguf_type(g, &type)
                   || !gguf_count(g, gguf_values[type].nbytes ? (size_t)gguf_values[type].nbytes
                                     : type == GGUF_TEXT ? 8 : 12, &n)))
        return false;
    m.kind = gguf_values[type].kind;
    m.count = (int64_t)n;
    bool text = m.kind == JOT_META_TEXT, other = m.kind == JOT_META_OTHER;
    void *room = io_keep(g->f, other ? 0 : (size_t)n * (text ? sizeof(jot_Text) : 8));
    if (!room)
        return false;
    m.texts = text ? room : NULL;
    m.floats = m.kind == JOT_META_FLOAT ? room : NULL;
    m.ints = m.kind == JOT_META_INT || m.kind == JOT_META_BOOL ? room : NULL;
    for (uint64_t k = 0; k < n; k++)
        if (!(other ? gguf_pass(g, type, 1) : gguf_value(g, (unsigned)type, &m, k)))
            return false;
    return io_add_meta(g->f, &m);
}

/* Offsets from where elements begin, which is not known yet. */
static bool
gguf_tensor(GgufAt *g, jot_Stored *t)
{
    jot_Text name;
    uint64_t rank, type;
    int row = 0;

    *t = (jot_Stored){.type = "?", .dtype = JOT_DTYPES};
    g->what = "a tensor's name";
    if (!gguf_text(g, &name) || !(t->name = g->what = io_text(g->f, name.p, name.n))
        || !gguf_number(g, 4, &rank))
        return false;
    if (rank > JOT_MAX_RANK)
        return io_fail(g->f, JOT_ESHAPE, "tensor %.60s: a rank of at most %d asked, %llu found",
                       t->name, JOT_MAX_RANK, (unsigned long long)rank);
    t->rank = (int)rank;
    for (int d = t->rank; d--;) {
        uint64_t extent;
        if (!gguf_number(g, 8, &extent))
            return false;
        t->shape[d] = extent > INT64_MAX ? -1 : (int64_t)extent;
    }
    size_t at = g->at;
    if (!gguf_number(g, 4, &type) || !gguf_number(g, 8, &t->offset))
        return false;
    while (row < GGUF_TYPES && gguf_types[row].type != (int)type)
        row++;
    if (row == GGUF_TYPES || type > 255)
        return io_fail(g->f, JOT_EIO, "tensor %.60s: byte %zu: a type of tensor that is known "
                       "asked, %llu found", t->name, at, (unsigned long long)type);
    t->type = gguf_types[row].name;
    t->dtype = io_packing(t->type) ? JOT_F32 : gguf_types[row].dtype;
    t->block = gguf_types[row].block > 1 ? gguf_types[row].block : 0;
    t->block_nbytes = t->block ? gguf_types[row].nbytes : 0;
    return true;
}

static bool
gguf_place(IoFile *f, jot_Stored *t, uint64_t begin, uint64_t alignment)
{
    jot_Stored sized = *t;
    size_t nbytes = 0;

    if (!t->block)
        sized.block = 1, sized.block_nbytes = (int)jot_dtype_nbytes(t->dtype);
    if (t->offset % alignment)
        return io_fail(f, JOT_EIO, "tensor %.60s: offset %llu is no multiple of %llu", t->name,
                       (unsigned long long)t->offset, (unsigned long long)alignment);
    for (int d = 0; d < t->rank; d++) /* io_add says so */
        if (t->shape[d] < 0)
            return io_add(f, t, NULL);
    if (!io_shape_nbytes(&sized, &nbytes) || t->offset > UINT64_MAX - begin)
        nbytes = SIZE_MAX;
    t->offset += begin;
    t->nbytes = nbytes;
    return io_add(f, t, NULL);
}

bool
io_gguf_read(IoFile *f)
{
    GgufAt g = {f, 4, "header"};
    uint64_t version, tensors, values;

    if (!gguf_number(&g, 4, &version))
        return false;
    if (version != 2 && version != 3)
        return io_fail(f, JOT_EIO, "byte 4: version 2 or 3, little-endian, asked, %llu found",
                       (unsigned long long)version);
    if (!gguf_count(&g, 24, &tensors) || !gguf_count(&g, 13, &values))
        return false;
    while (values--)
        if (!gguf_meta(&g))
            return false;
    jot_Stored *t = malloc(((size_t)tensors + 1) * sizeof *t);
    if (!t)
        return io_fail(f, JOT_EMEM, "no memory for %llu tensors", (unsigned long long)tensors);
    bool fine = true;
    for (uint64_t k = 0; fine && k < tensors; k++)
        fine = gguf_tensor(&g, &t[k]);
    f->is.meta = f->meta;
    uint64_t alignment = (uint64_t)jot_meta_int(&f->is, "general.alignment", 32);
    if (fine && (!alignment || alignment > 1 << 20 || (alignment & (alignment - 1))))
        fine = io_fail(f, JOT_EIO, "general.alignment: a power of two asked, %lld found",
                       (long long)alignment);
    for (uint64_t k = 0; fine && k < tensors; k++)
        fine = gguf_place(f, &t[k], (g.at + alignment - 1) / alignment * alignment, alignment);
    free(t);
    return fine;
}

/* ---- writing ---- */

/* As who reads the file has it. */
static uint64_t
gguf_alignment(const IoOut *o)
{
    const jot_File written = {.metas = o->how->metas, .meta = o->how->meta};

    return (uint64_t)jot_meta_int(&written, "general.alignment", 32);
}

/* One value or a list, of a kind that there is; numbers that an f32 has. */
static bool
gguf_keeps(const jot_Meta *m)
{
    for (int64_t k = 0; m->kind == JOT_META_FLOAT && k < m->count; k++)
        if (isfinite(m->floats[k]) && fabs(m->floats[k]) > (double)FLT_MAX)
            return false;
    return m->kind != JOT_META_OTHER && (m->list || m->count == 1);
}

/* Whether tensor k becomes blocks. */
static bool
gguf_packs(const IoOut *o, int k)
{
    jot_Var v = o->tensor[k].var;
    jot_DType d = jot_dtype(v);

    return o->how->q8_0 && (d == JOT_F32 || d == JOT_F16 || d == JOT_BF16) && jot_rank(v) > 1
        && jot_extent(v, -1) % 32 == 0;
}

/* The row of its type; -1: none. */
static int
gguf_row(const IoOut *o, int k)
{
    const char *name = gguf_packs(o, k) ? "Q8_0" : NULL;

    for (int row = 0; row < GGUF_TYPES; row++)
        if (name ? !strcmp(gguf_types[row].name, name)
                 : gguf_types[row].dtype == jot_dtype(o->tensor[k].var))
            return row;
    return -1;
}

bool
io_gguf_fits(IoOut *o)
{
    uint64_t a = gguf_alignment(o);
    const char *why = !io_is_little() ? "numbers of this byte order"
                      : !a || a > 1 << 20 || (a & (a - 1)) ? "general.alignment: no power of two"
                      : NULL;

    for (int k = 0; !why && k < o->how->metas; k++)
        if (!gguf_keeps(&o->how->meta[k]))
            why = o->how->meta[k].key;
    if (why)
        jot_raise(o->ctx, JOT_EUSE, "%s: GGUF cannot keep this: %s", o->path, why);
    for (int k = 0; !why && k < o->n; k++) {
        jot_Var v = o->tensor[k].var;
        if (gguf_row(o, k) >= 0 && jot_rank(v) <= GGUF_RANK
            && strlen(o->tensor[k].name) < GGUF_NAME)
            continue;
        why = o->tensor[k].name;
        jot_raise(o->ctx, JOT_EUSE, "%s: tensor %s, %s of rank %d: GGUF asks for a float or signed "
                  "integer, a rank of at most %d and a name of at most %d bytes", o->path, why,
                  jot_dtype_name(jot_dtype(v)), jot_rank(v), GGUF_RANK, GGUF_NAME - 1);
    }
    return !why;
}

static bool
gguf_put(IoOut *o, uint64_t x, int n)
{
    uint8_t p[8];

    io_store(p, x, n);
    return io_put(o, p, (size_t)n);
}

static bool
gguf_put_text(IoOut *o, const char *p, size_t n)
{
    return gguf_put(o, n, 8) && io_put(o, p, n);
}

static unsigned
gguf_meta_type(const jot_Meta *m)
{
    bool u32 = true, i32 = true;

    if (m->kind != JOT_META_INT)
        return m->kind == JOT_META_BOOL ? GGUF_BOOL : m->kind == JOT_META_FLOAT ? GGUF_F32
               : GGUF_TEXT;
    for (int64_t k = 0; k < m->count; k++) {
        u32 = u32 && m->ints[k] >= 0 && m->ints[k] <= UINT32_MAX;
        i32 = i32 && m->ints[k] >= INT32_MIN && m->ints[k] <= INT32_MAX;
    }
    return u32 ? GGUF_U32 : i32 ? GGUF_I32 : GGUF_I64;
}

static bool
gguf_put_meta(IoOut *o, const jot_Meta *m)
{
    unsigned type = gguf_meta_type(m);
    bool fine = gguf_put_text(o, m->key, strlen(m->key))
             && (!m->list || gguf_put(o, GGUF_LIST, 4)) && gguf_put(o, type, 4)
             && (!m->list || gguf_put(o, (uint64_t)m->count, 8));

    for (int64_t k = 0; fine && k < m->count; k++) {
        float single = m->floats ? (float)m->floats[k] : 0;
        uint32_t bits;
        memcpy(&bits, &single, 4);
        fine = type == GGUF_TEXT ? gguf_put_text(o, m->texts[k].p, m->texts[k].n)
               : gguf_put(o, type == GGUF_F32 ? bits : (uint64_t)m->ints[k],
                          gguf_values[type].nbytes);
    }
    return fine;
}

static size_t
gguf_nbytes(const IoOut *o, int k)
{
    size_t n = io_var_nbytes(o->tensor[k].var);

    return gguf_packs(o, k) ? (size_t)jot_nelem(o->tensor[k].var) / 32 * 34 : n;
}

static bool
gguf_put_tensor(IoOut *o, int k, uint64_t *offset)
{
    jot_Var v = o->tensor[k].var;
    uint64_t a = gguf_alignment(o);
    bool fine = gguf_put_text(o, o->tensor[k].name, strlen(o->tensor[k].name))
             && gguf_put(o, (uint64_t)jot_rank(v), 4);

    for (int d = jot_rank(v); fine && d--;)
        fine = gguf_put(o, (uint64_t)jot_extent(v, d), 8);
    fine = fine && gguf_put(o, (uint64_t)gguf_types[gguf_row(o, k)].type, 4)
        && gguf_put(o, *offset, 8);
    *offset += (gguf_nbytes(o, k) + a - 1) / a * a;
    return fine;
}

static bool
gguf_put_blocks(IoOut *o, int k)
{
    const uint8_t *p = o->data[k];
    jot_DType dtype = jot_dtype(o->tensor[k].var);
    int64_t blocks = jot_nelem(o->tensor[k].var) / 32;
    float x[32];
    uint8_t block[34];

    for (int64_t b = 0; b < blocks; b++) {
        for (int j = 0; j < 32; j++, p += jot_dtype_nbytes(dtype)) {
            uint32_t bits = dtype == JOT_BF16 ? (uint32_t)io_little(p, 2) << 16
                            : dtype == JOT_F32 ? (uint32_t)io_little(p, 4) : 0;
            memcpy(&x[j], &bits, 4);
            if (dtype == JOT_F16)
                x[j] = io_half(p);
        }
        if (!io_q8_0(block, x)) {
            jot_raise(o->ctx, JOT_ERANGE, "%s: tensor %s: element %lld and those behind it: not "
                      "finite, or too large for Q8_0", o->path, o->tensor[k].name,
                      (long long)b * 32);
            return false;
        }
        if (!io_put(o, block, sizeof block))
            return false;
    }
    return true;
}

bool
io_gguf_write(IoOut *o)
{
    uint64_t a = gguf_alignment(o), offset = 0;
    bool fine = io_put(o, "GGUF\3\0\0", 8) && gguf_put(o, (uint64_t)o->n, 8)
             && gguf_put(o, (uint64_t)o->how->metas, 8);

    for (int k = 0; fine && k < o->how->metas; k++)
        fine = gguf_put_meta(o, &o->how->meta[k]);
    for (int k = 0; fine && k < o->n; k++)
        fine = gguf_put_tensor(o, k, &offset);
    for (int k = 0; fine && k < o->n; k++) {
        fine = io_pad(o, 0, (o->at + a - 1) / a * a)
            && (gguf_packs(o, k) ? gguf_put_blocks(o, k)
                                 : io_put(o, o->data[k], io_var_nbytes(o->tensor[k].var)));
    }
    return fine && io_pad(o, 0, (o->at + a - 1) / a * a);
}
#endif
