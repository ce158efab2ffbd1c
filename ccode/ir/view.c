/* ccode/ir/view.c - where in a buffer a kernel reads is an argument, not text: a cell of a
 * recurrent network, unrolled, reads another step of the same variables each time, and is one text.
 *
 *     x[13, i0, i1]  ...  x[13, i0, i1 + 1]        x[0, i0, i1]  ...  x[0, i0, i1 + 1]
 *                                                  and x begins 13 * stride elements later
 *
 * Along a dimension where all loads of an input stand at one place, that place becomes 0. The rest
 * of the shape stays, and with it all strides. A buffer that is read as an index stays as it is.
 *
 *   requires  a kernel with layouts, without a schedule      keeps  what is loaded
 *   gives     KBuf.placed, KBuf.from
 *
 * Read before: ccode/ir/ir.h. After: ccode/emit/emit.c. */
#include "ccode/ir/ir.h"

/* Where all loads of the buffer stand along the dimension; -1: at no one place. */
static int64_t
view_place(const Kernel *k, uint32_t buf, int dim)
{
    int64_t place = -1, at;

    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];

        if (v->op != VAL_LOAD || v->buf != buf)
            continue;
        if (!jot_ix_is_const(k->ix, k->ixs.v[v->at + (uint32_t)dim], &at) || at < 0
            || at >= k->bufs.v[buf].ext[dim] || (place >= 0 && at != place))
            return -1;
        place = at;
    }
    return place;
}

static void
view_move(Kernel *k, uint32_t buf, int dim)
{
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_LOAD && k->values.v[i].buf == buf)
            k->ixs.v[k->values.v[i].at + (uint32_t)dim] = jot_ix_const(k->ix, 0);
}

JOT_FN void
jot_kernel_views(Kernel *k)
{
    for (uint32_t b = 1; b < k->bufs.n; b++) {
        KBuf *buf = &k->bufs.v[b];
        int64_t at[JOT_MAX_RANK] = {0}, none[JOT_MAX_RANK] = {0};
        bool read = buf->role == BUF_INPUT && !jot_find_u32(k->slots.v, k->slots.n, b);

        for (int d = 0; d < buf->rank && read; d++) {
            int64_t place = buf->ext[d] > 1 ? view_place(k, b, d) : -1;

            if (place < 0)
                continue;
            at[d] = place;
            view_move(k, b, d);
            buf->placed = true;
        }
        buf->from = jot_layout_addr_at(buf->layout, at) - jot_layout_addr_at(buf->layout, none);
    }
}
