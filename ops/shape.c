/* ops/shape.c - shapes: checked, and as text.
 *
 * Read before: ops/graph.h. After: ops/graph.c. */
#include "ops/graph.h"

JOT_FN void
jot_shape_text(Text *text, int rank, const int64_t *ext)
{
    int k;

    jot_text_put(text, "(", 1);
    for (k = 0; k < rank; k++)
        jot_text_f(text, k ? ", %lld" : "%lld", (long long)ext[k]);
    jot_text_put(text, ")", 1);
}

JOT_FN const char *
jot_shape_str(char buf[SHAPE_TEXT], int rank, const int64_t *ext)
{
    Text text = {NULL, buf, 0, SHAPE_TEXT};

    jot_shape_text(&text, rank, ext);
    return buf;
}

JOT_FN bool
jot_shape_ok(jot_Ctx *ctx, const char *op, jot_DType dtype, int rank, const int64_t *ext,
             int64_t *nelem)
{
    /* extents of 0 are left out of the limit's product, so that strides never overflow either */
    int64_t most = ((int64_t)1 << 62) / (int64_t)jot_dtype_nbytes(dtype), all = 1;
    bool none = false;
    char buf[SHAPE_TEXT];
    int k;

    if (rank < 0 || rank > JOT_MAX_RANK)
        return jot_fail(ctx, JOT_ESHAPE, "%s: rank %d is not in 0..%d", op, rank, JOT_MAX_RANK);
    if (rank && !ext)
        return jot_fail(ctx, JOT_EUSE, "%s: the shape is NULL", op);
    for (k = 0; k < rank; k++) {
        if (ext[k] < 0)
            return jot_fail(ctx, JOT_ESHAPE, "%s: extent %lld of dimension %d is negative", op,
                            (long long)ext[k], k);
        none |= ext[k] == 0;
        if ((all | ext[k]) >> 31 == 0 && ext[k]) /* no call, where both are small */
            all *= ext[k];
        else if (ext[k] && !jot_mul_ok(all, ext[k], &all))
            all = INT64_MAX;
        if (all > most)
            return jot_fail(ctx, JOT_ESHAPE, "%s: %s %s is too large (more than 2^62 bytes)", op,
                            jot_dtype_name(dtype), jot_shape_str(buf, rank, ext));
    }
    *nelem = none ? 0 : all;
    return true;
}
