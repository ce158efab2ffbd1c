/* ops/packed_only.c - elements that are in memory in another layout only.
 *
 *     w (64, 3, 3, 3) row-major      dropped: 7 KB less
 *     its copy, in panels            kept with the buffer, where kernels read it
 *     away                           where each position of each dimension lies in the copy
 *
 * Weights that every kernel reads in panels need not be there row by row, too. Who asks for them
 * gets them back, element by element, and they stay then: programs that go to and fro pay once.
 * What was handed out as a pointer never goes.
 *
 * Read before: ops/graph.h (Buffer). After: plan/packed_only.c. */
#include "ops/graph.h"

struct PackedOnly {
    Buffer *copy;
    int rank;
    size_t nbytes, element;
    int64_t ext[JOT_MAX_RANK];
    int64_t at[];           /* of dimension 0, then 1, ...: elements from the copy's beginning */
};

JOT_FN int64_t *
jot_buffer_packed_only(jot_Ctx *ctx, Buffer *buf, Buffer *copy, int rank, const int64_t *ext,
                size_t element)
{
    size_t n = 0, nbytes;
    struct PackedOnly *packed_only;
    int d;

    if (buf->packed_only || buf->lent || buf->refs != 1)
        return NULL;
    for (d = 0; d < rank; d++)
        n += (size_t)ext[d];
    nbytes = sizeof *packed_only + n * sizeof *packed_only->at;
    packed_only = jot_mem_new(&ctx->mem, nbytes, 1);
    if (!packed_only)
        return NULL;
    packed_only->copy = copy;
    packed_only->rank = rank;
    packed_only->nbytes = nbytes;
    packed_only->element = element;
    for (d = 0; d < rank; d++)
        packed_only->ext[d] = ext[d];
    buf->packed_only = packed_only;
    jot_buffer_no_host(ctx, buf);
    return packed_only->at;
}

static void
packed_only_gather(const struct PackedOnly *a, unsigned char *to)
{
    const unsigned char *from = a->copy->p;
    int64_t index[JOT_MAX_RANK] = {0}, first[JOT_MAX_RANK], n = 1, i, k, sum;
    int d, last = a->rank - 1;

    for (d = 0, k = 0; d < a->rank; k += a->ext[d++]) {
        first[d] = k;
        n *= a->ext[d];
    }
    for (i = 0; i < n; i += last < 0 ? 1 : a->ext[last]) {
        for (d = 0, sum = 0; d < last; d++)
            sum += a->at[first[d] + index[d]];
        for (k = 0; k < (last < 0 ? 1 : a->ext[last]); k++, to += a->element)
            memcpy(to, from + (size_t)(sum + (last < 0 ? 0 : a->at[first[last] + k])) * a->element,
                   a->element);
        for (d = last - 1; d >= 0 && ++index[d] == a->ext[d]; d--)
            index[d] = 0;
    }
}

JOT_FN void
jot_buffer_forget_packed(jot_Ctx *ctx, Buffer *buf)
{
    if (buf->packed_only)
        jot_mem_free(&ctx->mem, buf->packed_only, buf->packed_only->nbytes);
    buf->packed_only = NULL;
}

JOT_FN bool
jot_buffer_back(jot_Ctx *ctx, Buffer *buf)
{
    if (!buf->packed_only)
        return true;
    if (!jot_buffer_host(ctx, buf))
        return false;
    packed_only_gather(buf->packed_only, buf->p);
    jot_buffer_forget_packed(ctx, buf);
    buf->lent = true; /* it was wanted once */
    return true;
}
