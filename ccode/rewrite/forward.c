/* ccode/rewrite/forward.c - what is stored and read back within one step of some axes.
 *
 *     steps n                                        for n
 *     !0 m[n, h, w] = %2                                 for h w    m[h, w] = ...
 *     %3 = m[n, (i + 1)/2 - p, (j + 1)/2 - q]            for i j    ... m[(i + 1)/2 - p, ...]
 *
 * Such a kernel has two spaces with the axes of steps in common (fuse/windows.c). Its stages form
 * classes (ccode/schedule/class.c), each with loops of its own inside of these; a load is a level
 * above what is stored where it reads, so its readers stand behind that. Nothing else is special:
 * what is read back is a buffer, out of which lines are made like out of any.
 *
 * What nobody else needs is in scratch memory, a step of it: dimensions that the axes of steps are
 * the index of are folded. And what is the same in all steps is computed in each: a stage without
 * the loops of steps would stand between those that store and those that load.
 *
 *   requires  a verified kernel, its axes merged     keeps  everything but layouts of its scratch
 * Read before: ccode/ir/ir.h. After: ccode/schedule/make.c, ccode/verify/back.c. */
#include "ccode/rewrite/rewrite.h"

/* Every access has the same axis of steps for an index there. */
static bool
steps_fold(const Kernel *k, uint32_t buf, int dim)
{
    int axis = -1, at;
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        if (s->buf != buf)
            continue;
        if (!jot_ix_is_axis(k->ix, k->ixs.v[s->at + (uint32_t)dim], &at) || !(k->steps >> at & 1) ||
            (axis >= 0 && axis != at))
            return false;
        axis = at;
    }
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (v->op == VAL_LOAD && v->buf == buf &&
            (!jot_ix_is_axis(k->ix, k->ixs.v[v->at + (uint32_t)dim], &at) || axis != at))
            return false;
    }
    return axis >= 0;
}

JOT_FN bool
jot_steps_fold(Kernel *k)
{
    for (uint32_t b = 1; k->steps && b < k->bufs.n; b++) {
        Layout l = *k->bufs.v[b].layout;
        for (int d = 0; d < l.rank && k->bufs.v[b].role == BUF_SCRATCH; d++)
            if (steps_fold(k, b, d)) {
                jot_layout_fold(&l, d);
                jot_kernel_layout(k, b, &l);
            }
    }
    return !k->mem->failed;
}

JOT_FN bool
jot_steps_in_all(Kernel *k)
{
    uint64_t *summed = k->steps ? jot_mem_new(k->mem, k->values.n, sizeof *summed) : NULL;
    for (uint32_t i = 1; summed && i < k->values.n; i++) {
        Value *v = &k->values.v[i];
        summed[i] = v->op == VAL_REDUCE ? v->axes : 0;
        for (int j = 0; j < v->narg; j++)
            summed[i] |= summed[k->args.v[v->arg + (uint32_t)j]];
        if (v->op != VAL_CONST && v->op != VAL_SCALAR)
            v->free |= k->steps & ~summed[i];
    }
    jot_mem_free(k->mem, summed, k->values.n * sizeof *summed);
    return summed || !k->steps;
}

JOT_FN int
jot_steps_level(const Kernel *k, const Value *load, const uint8_t *level)
{
    int most = 0;
    for (uint32_t i = 0; i < k->stores.n; i++)
        if (k->stores.v[i].buf == load->buf && level[k->stores.v[i].value] + 1 > most)
            most = level[k->stores.v[i].value] + 1;
    return most;
}
