/* ops/buffer.c - elements: on the host, on a device, and copies in other layouts.
 *
 *     node -> Buffer -> p           on the host, made when it is asked for, or the caller's
 *                    -> device      on a device: one of the two, or both
 *                    -> copies      the same elements in other layouts, by key; gone with a change
 *
 * A buffer is shared by reference: slots that name the same node, nodes that are one array.
 *
 *     w (64, 3, 3, 3) row-major      dropped: 7 KB less
 *     its copy, in panels            kept with the buffer, where kernels read it
 *     away                           where each position of each dimension lies in the copy
 *
 * Weights that every kernel reads in panels need not be there row by row, too. Who asks for them
 * gets them back, element by element, and they stay then: programs that go to and fro pay once.
 * What was handed out as a pointer never goes.
 *
 * Read before: ops/graph.h. After: plan/layout/packed_only.c. */
#include "ops/graph.h"

struct PackedOnly {
    Buffer *copy;
    int rank;
    size_t nbytes, element;
    int64_t ext[JOT_MAX_RANK];
    int64_t at[];           /* of dimension 0, then 1, ...: elements from the copy's beginning */
};

JOT_FN int64_t
jot_node_nbytes(const Node *node)
{
    return node->nelem * (int64_t)jot_dtype_nbytes((jot_DType)node->dtype);
}

/* At least 64 bytes and whole cache lines, so that a kernel may load a vector at the end. */
static size_t
buffer_room(size_t nbytes)
{
    return nbytes ? (nbytes + 63) / 64 * 64 : 64;
}

JOT_FN bool
jot_buffer_host(jot_Ctx *ctx, Buffer *buf)
{
    if (!buf->p)
        buf->p = buf->nbytes > SIZE_MAX - 64
                   ? (ctx->mem.failed = true, NULL)
                   : jot_mem_realloc(&ctx->mem, NULL, 0, buffer_room(buf->nbytes));
    return buf->p != NULL;
}

JOT_FN void
jot_buffer_no_host(jot_Ctx *ctx, Buffer *buf)
{
    if (buf->p && !buf->borrowed)
        jot_mem_free(&ctx->mem, buf->p, buffer_room(buf->nbytes));
    else if (buf->release)
        buf->release(buf->release_user, buf->p);
    buf->p = NULL;
    buf->borrowed = false;
    buf->release = NULL;
}

JOT_FN bool
jot_buffer_own(const Buffer *buf)
{
    return buf->refs == 1 && !buf->borrowed;
}

JOT_FN Buffer *
jot_buffer_of(jot_Ctx *ctx, size_t nbytes, void *device)
{
    Buffer *buf = jot_mem_new(&ctx->mem, 1, sizeof *buf);

    if (!buf)
        return NULL;
    buf->nbytes = nbytes;
    buf->device = device;
    buf->refs = 1;
    return buf;
}

JOT_FN Buffer *
jot_buffer_new(jot_Ctx *ctx, size_t nbytes)
{
    Buffer *buf = jot_buffer_of(ctx, nbytes, NULL);

    if (buf && !jot_buffer_host(ctx, buf)) {
        jot_mem_free(&ctx->mem, buf, sizeof *buf);
        return NULL;
    }
    return buf;
}

static void
buffer_free(jot_Ctx *ctx, Buffer *buf)
{
    jot_mem_free(&ctx->mem, buf->key, buf->nkey);
    jot_buffer_no_host(ctx, buf);
    if (buf->device)
        ctx->release(ctx, buf->device, buf->nbytes);
    jot_mem_free(&ctx->mem, buf, sizeof *buf);
}

static void
forget_packed(jot_Ctx *ctx, Buffer *buf)
{
    if (buf->packed_only)
        jot_mem_free(&ctx->mem, buf->packed_only, buf->packed_only->nbytes);
    buf->packed_only = NULL;
}

JOT_FN void
jot_buffer_changed(jot_Ctx *ctx, Buffer *buf)
{
    forget_packed(ctx, buf);
    while (buf->copies) {
        Buffer *copy = buf->copies;

        buf->copies = copy->next_copy;
        buffer_free(ctx, copy);
    }
}

JOT_FN void
jot_buffer_unref(jot_Ctx *ctx, Buffer *buf)
{
    if (!buf || --buf->refs)
        return;
    jot_buffer_changed(ctx, buf);
    buffer_free(ctx, buf);
}

JOT_FN Buffer *
jot_buffer_copy(const Buffer *buf, const char *key, size_t nkey)
{
    Buffer *copy = buf->copies;

    while (copy && (copy->nkey != nkey || memcmp(copy->key, key, nkey)))
        copy = copy->next_copy;
    return copy;
}

JOT_FN Buffer *
jot_buffer_copy_new(jot_Ctx *ctx, size_t nbytes, bool padded, const char *key, size_t nkey)
{
    Buffer *copy = jot_buffer_new(ctx, nbytes);

    if (copy && !(copy->key = jot_mem_new(&ctx->mem, nkey, 1))) {
        jot_buffer_unref(ctx, copy);
        return NULL;
    }
    if (copy) {
        if (padded)
            memset(copy->p, 0, nbytes); /* what pads it is computed with, though never stored */
        memcpy(copy->key, key, nkey);
        copy->nkey = nkey;
    }
    return copy;
}

JOT_FN void
jot_buffer_copy_keep(Buffer *buf, Buffer *copy)
{
    copy->next_copy = buf->copies;
    buf->copies = copy;
}

/* ---- elements that only copies have -------------------------------------------------------- */

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

JOT_FN bool
jot_buffer_back(jot_Ctx *ctx, Buffer *buf)
{
    if (!buf->packed_only)
        return true;
    if (!jot_buffer_host(ctx, buf))
        return false;
    packed_only_gather(buf->packed_only, buf->p);
    forget_packed(ctx, buf);
    buf->lent = true; /* it was wanted once */
    return true;
}
