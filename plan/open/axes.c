/* plan/open/axes.c - one schedule for a kernel at all extents.
 *
 *     for most    i0 < 64    i1:32p i1:32 i0:11c | i2 i0:1u i1:16u i1:1v
 *     another     i0 < 62    the same, for it is asked for as if i0 were 64, and i0 is 62 again
 *                            when the schedule is lowered: the last block is clamped
 *
 * And where the axes of a kernel for the most extents end, which is masked (plan/open/mask.c).
 *
 *   requires  kernels that agree but for extents      keeps  what they compute
 * Read before: plan/open/axes.h, ccode/schedule/sched.h. After: plan/text.c. */
#include "plan/open/axes.h"
#include "ccode/schedule/sched.h"

JOT_FN TextForm
jot_open_form(const OpenSteps *open, uint32_t step)
{
    return open && step < open->n ? (TextForm)open->form[step] : TEXT_CLOSED;
}

/* Whose schedule it has; NULL: its own, as a device's have, whose open axes ask guards in any case
 * (ccode/device/contract_grid_make.c). */
static const OpenKernel *
axes_from(const OpenSteps *open, uint32_t step)
{
    TextForm form = jot_open_form(open, step);

    return form == TEXT_CLOSED || form == TEXT_LOOPS || open->device ? NULL
         : form == TEXT_FEW ? &open->few[step] : &open->most[step];
}

JOT_FN bool
jot_open_refused(const OpenSteps *open, uint32_t step)
{
    if (!axes_from(open, step))
        return false;
    open->form[step]++;
    return true;
}

static bool
axes_record(Arena *arena, const Kernel *k, OpenKernel *r)
{
    uint32_t i;
    int d;

    for (i = 1, d = 0; i < k->values.n; i++)
        d += k->values.v[i].op == VAL_REDUCE;
    r->blocks = d > 1;
    r->naxes = k->axes.n;
    r->nbufs = k->bufs.n;
    r->ext = jot_arena_array(arena, int64_t *, (size_t)k->bufs.n + 1);
    r->layout = jot_arena_array(arena, Layout, (size_t)k->bufs.n + 1);
    if (!r->ext || !r->layout)
        return false;
    for (i = 0; i < k->axes.n; i++)
        r->axis[i] = k->axes.v[i].ext;
    for (i = 1; i < k->bufs.n; i++) {
        const KBuf *buf = &k->bufs.v[i];

        if (!(r->ext[i] = jot_arena_array(arena, int64_t, (size_t)buf->rank + 1)))
            return false;
        for (d = 0; d < buf->rank; d++)
            r->ext[i][d] = buf->ext[d];
        r->layout[i] = *buf->layout;
    }
    return true;
}

JOT_FN bool
jot_open_axes(const OpenSteps *open, uint32_t step, Kernel *k)
{
    OpenKernel *most = open && step < open->n ? &open->most[step] : NULL;
    uint32_t a;

    if (!most)
        return true;
    if ((open->learn == OPEN_FOR_MOST && !axes_record(open->arena, k, most))
        || (open->learn == OPEN_FOR_FEW && !axes_record(open->arena, k, &open->few[step])))
        return false;
    for (a = 0; a < k->axes.n && a < most->naxes; a++) {
        if (open->learn == OPEN_OTHER && most->axis[a] != k->axes.v[a].ext)
            open->axes[step] |= (uint64_t)1 << a;
        k->axes.v[a].open = open->axes[step] >> a & 1
                         && (axes_from(open, step) || (open->device && open->form[step]));
        k->axes.v[a].most = k->axes.v[a].open && open->device ? most->axis[a] : 0;
    }
    return true;
}

/* Extents of a kernel's axes and buffers become others. False: an axis is cut, or there are new
 * ones, whose extents may follow from those of before. */
static bool
axes_exchange(Kernel *k, const OpenKernel *from, const OpenKernel *to)
{
    uint32_t i;

    for (i = 0; i < to->naxes && k->axes.v[i].ext == from->axis[i]; i++)
        k->axes.v[i].ext = to->axis[i];
    if (i < k->axes.n)
        return false;
    for (i = 1; i < to->nbufs; i++) {
        k->bufs.v[i].ext = to->ext[i];
        k->bufs.v[i].layout = &to->layout[i];
    }
    return true;
}

/* Do the places that the schedule made, for other extents, have room at these? */
static bool
axes_room(const Sched *s, uint32_t nbufs)
{
    int64_t ext[SCHED_AXES], lo, hi;
    Space space = {SCHED_AXES, ext, NULL};
    uint32_t i;
    int a, d;

    for (a = 0; a < SCHED_AXES; a++)
        ext[a] = jot_axis_is(s, a) ? jot_axis_ext(s, a) : 1;
    for (i = 0; i < s->stages.n; i++) {
        const Place *p = jot_stage_place(&s->stages.v[i]);
        const KBuf *buf = p ? &s->k->bufs.v[p->buf] : NULL;

        for (d = 0; p && p->buf >= nbufs && d < buf->rank; d++)
            if (!jot_ix_range(s->k->ix, s->ixs.v[p->at + (uint32_t)d], &space, &lo, &hi) || lo < 0
                || hi >= buf->ext[d])
                return false;
    }
    return true;
}

JOT_FN bool
jot_open_schedule(const OpenSteps *open, uint32_t step, Sched *s, Kernel *k, const Wanted *want,
                  Text *why)
{
    const OpenKernel *from = axes_from(open, step);
    OpenKernel own;

    if (!from || from->naxes != k->axes.n || from->nbufs != k->bufs.n)
        return jot_schedule(s, k, want, why);
    if (!axes_record(&k->arena, k, &own) || !axes_exchange(k, &own, from)
        || !jot_schedule(s, k, want, why))
        return false;
    if (!axes_exchange(k, from, &own)) {
        jot_text_f(why, "its schedule is made with other axes, for one size");
        return false;
    }
    jot_sched_open_blocks(s);
    if (!axes_room(s, own.nbufs)) {
        jot_text_f(why, "its scratch memory is for fewer rows");
        return false;
    }
    return true;
}

/* ---- axes that end -------------------------------------------------------------------------- */

/* The size at which what is stored along the axis ends, 0: none, or not the same. */
static uint8_t
axes_end(jot_Ctx *ctx, const OpenEnds *ends, const Layout *border, const Kernel *k,
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
axes_slot(jot_Ctx *ctx, const OpenEnds *ends, Kernel *k, BuildArgs *args, int *slot)
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
    uint32_t at = ends->n ? jot_node(ctx, ends->sizes)->at : 0;
    int a, slot;

    if (!ends->n || at >= list->n || list->v[at] != ends->sizes)
        return true; /* nothing reads it */
    for (a = 0; a < (int)k->axes.n; a++) {
        uint8_t size = axes_end(ctx, ends, border, k, args, a);
        Ix number = size ? jot_ix_const(k->ix, size - 1) : 0;

        if (!size)
            continue;
        if (!axes_slot(ctx, ends, k, args, &slot))
            return false;
        k->axes.v[a].end = jot_ix_load(k->ix, slot, 1, &number);
        k->axes.v[a].ended = k->axes.v[a].ext;
    }
    return true;
}
