/* plan/open/ends.c - where the axes of a kernel for the most extents end in a call.
 *
 *     y[i0, i1] = ...     of 1000 x 64, of which a call has n x 64     i0 ends at @sizes(0)
 *
 *   requires  a kernel of a masked graph (plan/open/mask.c)      keeps  what it computes
 * Read before: plan/open/ends.h. After: plan/built.c, ccode/lower/filled.c. */
#include "plan/open/ends.h"

/* The size at which what is stored along the axis ends, 0: none, or not the same. */
static uint8_t
ends_size(jot_Ctx *ctx, const OpenEnds *ends, const Layout *border, const Kernel *k,
         const BuildArgs *args, int axis)
{
    uint8_t size = 0;
    uint32_t i;
    int d, is;

    for (i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        NodeId id = s->buf <= args->bufs.n ? args->bufs.v[s->buf - 1] : 0;
        uint8_t own = 0;

        if (!(s->free >> axis & 1))
            continue;
        if (!id || id >= ends->n || ends->node[id].born != jot_node(ctx, id)->born || s->acc)
            return 0;
        for (d = 0; d < s->nidx; d++)
            if (jot_ix_is_axis(k->ix, k->ixs.v[s->at + (uint32_t)d], &is) && is == axis
                && (!border || (!border->halo_lo[d] && !border->halo_hi[d])))
                own = ends->node[id].size[d];
        if (!own || (size && own != size))
            return 0;
        size = own;
    }
    return size;
}

/* The number by which index expressions read the variable. False: memory, or no more room. */
static bool
ends_slot(jot_Ctx *ctx, const OpenEnds *ends, Kernel *k, BuildArgs *args, int *slot)
{
    const Node *n = jot_node(ctx, ends->sizes);
    uint32_t buf = jot_find_u32(args->bufs.v, args->bufs.n, ends->sizes);

    if (!buf) {
        if (!jot_vec_reserve(&ctx->mem, args->bufs, 1))
            return false;
        buf = jot_kernel_buf(k, "sizes", JOT_I64, BUF_INPUT, 1, n->ext);
        *(NodeId *)jot_vec_push(&ctx->mem, args->bufs) = ends->sizes;
    }
    for (*slot = 0; *slot < (int)k->slots.n && k->slots.v[*slot] != buf; ++*slot)
        ;
    jot_kernel_slot(k, *slot, buf);
    return buf && !k->mem->failed;
}

JOT_FN bool
jot_open_ends(jot_Ctx *ctx, const NodeList *list, const OpenEnds *ends, const Layout *border,
              Kernel *k, BuildArgs *args)
{
    uint32_t at = ends && ends->n ? jot_node(ctx, ends->sizes)->at : 0;
    int a, slot;

    if (!ends || !ends->n || at >= list->n || list->v[at] != ends->sizes)
        return true; /* nothing reads it */
    for (a = 0; a < (int)k->axes.n; a++) {
        uint8_t size = ends_size(ctx, ends, border, k, args, a);
        Ix number = size ? jot_ix_const(k->ix, size - 1) : 0;

        if (!size)
            continue;
        if (!ends_slot(ctx, ends, k, args, &slot))
            return false;
        k->axes.v[a].end = jot_ix_load(k->ix, slot, 1, &number);
        k->axes.v[a].ended = k->axes.v[a].ext;
    }
    return true;
}
