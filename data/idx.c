/* data/idx.c - idx, MNIST's format: 0, 0, a type, a rank, the extents, the elements, all numbers
 * with their highest byte first.
 *
 *     00 00 08 03 | 00 00 ea 60 | 00 00 00 1c | 00 00 00 1c | 60,000 x 28 x 28 bytes
 *
 * Read before: data/file.c. After: data/png.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"

static const struct { uint8_t code; jot_DType dtype; } idx_types[] = {
    {8, JOT_U8}, {9, JOT_I8}, {11, JOT_I16}, {12, JOT_I32}, {13, JOT_F32}, {14, JOT_F64}};
enum { IDX_TYPES = sizeof idx_types / sizeof *idx_types };

/* From the highest byte first to the machine's order, or back. */
static void
idx_turn(uint8_t *to, const uint8_t *from, size_t nbytes, size_t size)
{
    const union { uint16_t u; uint8_t b[2]; } one = {1};

    if (size == 1 || !one.b[0])
        memmove(to, from, nbytes);
    else
        for (size_t k = 0; k < nbytes; k += size)
            for (size_t i = 0; i < size; i++)
                to[k + i] = from[k + size - 1 - i];
}

jot_Buffer *
data_idx(DataBytes file)
{
    const int rank = file.p[3];
    const size_t head = 4 + 4 * (size_t)rank;
    int64_t shape[JOT_DATA_RANK];
    int type = 0;

    while (type < IDX_TYPES && idx_types[type].code != file.p[2])
        type++;
    if (type == IDX_TYPES)
        return data_failed(JOT_EIO, "%s: byte 2: an idx type 8, 9, 11, 12, 13 or 14 asked, %d "
                           "found", file.name, file.p[2]);
    if (rank > JOT_DATA_RANK)
        return data_failed(JOT_EIO, "%s: byte 3: a rank of at most %d asked, %d found", file.name,
                           JOT_DATA_RANK, rank);
    if (file.n < head)
        return data_failed(JOT_EIO, "%s: an idx header of %zu bytes asked, %zu found", file.name,
                           head, file.n);
    size_t left = file.n - head, want = jot_dtype_nbytes(idx_types[type].dtype);
    bool empty = false, fits = true;
    for (int d = 0; d < rank; d++) {
        shape[d] = data_big(file.p + 4 + 4 * d);
        empty = empty || !shape[d];
        fits = fits && (empty || want <= SIZE_MAX / (size_t)shape[d]);
        want *= fits ? (size_t)shape[d] : 1;
    }
    want = empty ? 0 : want;
    if (!empty && !fits)
        return data_failed(JOT_EIO, "%s: extents of more elements than %zu bytes after byte %zu "
                           "hold", file.name, left, head);
    if (left != want)
        return data_failed(JOT_EIO, "%s: %zu bytes of elements asked after byte %zu, %zu found",
                           file.name, want, head, left);
    jot_Buffer *b = jot_buffer_make(idx_types[type].dtype, rank, shape);
    if (b && !b->status)
        idx_turn(b->data, file.p + head, b->nbytes, jot_dtype_nbytes(b->dtype));
    return b;
}

bool
jot_write_idx(jot_Var v, const char *path)
{
    uint8_t head[4] = {0, 0, 0, (uint8_t)jot_rank(v)}, block[4096];
    const uint8_t *data = jot_data(v);
    int type = 0;

    while (type < IDX_TYPES && idx_types[type].dtype != jot_dtype(v))
        type++;
    if (!data)
        return false;
    if (type == IDX_TYPES)
        return jot_ok(jot_raise(v.ctx, JOT_EDTYPE, "write_idx: u8, i8, i16, i32, f32 or f64 asked, "
                                "%s found", jot_dtype_name(jot_dtype(v))));
    for (int d = 0; d < jot_rank(v); d++)
        if (jot_extent(v, d) > UINT32_MAX || jot_rank(v) > JOT_DATA_RANK)
            return jot_ok(jot_raise(v.ctx, JOT_ESHAPE, "write_idx: at most %d extents below 2^32 "
                                    "asked, rank %d and %lld found", JOT_DATA_RANK, jot_rank(v),
                                    (long long)jot_extent(v, d)));
    FILE *f = data_create(v.ctx, path);
    if (!f)
        return false;
    head[2] = idx_types[type].code;
    fwrite(head, 1, 4, f);
    for (int d = 0; d < jot_rank(v); d++) {
        uint32_t n = (uint32_t)jot_extent(v, d);
        fwrite((uint8_t[]){(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n},
               1, 4, f);
    }
    size_t size = jot_dtype_nbytes(jot_dtype(v)), left = (size_t)jot_nelem(v) * size;
    for (size_t n; left; left -= n, data += n) {
        n = left < sizeof block ? left : sizeof block;
        idx_turn(block, data, n, size);
        fwrite(block, 1, n, f);
    }
    return data_finish(v.ctx, f, path);
}
#endif
