/* ccode/ir/ir.c - a kernel as records: opened, copied, its axes, buffers, layouts and scalars, and
 * what is asked of them. Values and stores are in ccode/ir/value.c, the printer is in
 * print.c, schedules are in ccode/schedule/sched.c, layouts in layout.c, what must hold in
 * ccode/verify/verify.c.
 *
 * A refused allocation or a number out of range gives 0 (an axis, a scalar: -1), which spreads.
 *
 * Read before: ccode/ir/ir.h. After: ccode/ir/value.c. */
#include "ccode/ir/ir.h"

JOT_FN bool
jot_kernel_open(Kernel *k, Mem *mem, IxPool *ix)
{
    memset(k, 0, sizeof *k);
    k->mem = mem;
    k->ix = ix;
    k->arena.mem = mem;
    jot_vec_push(mem, k->bufs);
    jot_vec_push(mem, k->values);
    return k->bufs.n == 1 && k->values.n == 1;
}

#define KERNEL_LISTS(each) \
    each(axes) each(bufs) each(scalars) each(tables) each(values) each(stores) each(ixs) \
    each(args) each(slots)

JOT_FN void
jot_kernel_close(Kernel *k)
{
#define FREE_LIST(list) jot_vec_free(k->mem, k->list);
    KERNEL_LISTS(FREE_LIST)
#undef FREE_LIST
    jot_arena_free(&k->arena);
}

JOT_FN bool
jot_kernel_copy(Kernel *k, const Kernel *from)
{
    *k = *from;
    k->arena.head = NULL;
#define COPY_LIST(list) /* refused, it is empty */ \
    k->list.v = NULL, k->list.n = k->list.cap = 0; \
    if (jot_vec_reserve(k->mem, k->list, from->list.n) && from->list.n) \
        memcpy(k->list.v, from->list.v, (k->list.n = from->list.n) * sizeof *k->list.v);
    KERNEL_LISTS(COPY_LIST)
#undef COPY_LIST
    return !k->mem->failed;
}

JOT_FN void
jot_kernel_restore(Kernel *k, Kernel *was)
{
    if (!k->mem->failed) {
#define RESTORE_LIST(list) /* lists only grow: there is room */ \
        if ((k->list.n = was->list.n) > 0) \
            memcpy(k->list.v, was->list.v, k->list.n * sizeof *k->list.v);
        KERNEL_LISTS(RESTORE_LIST)
#undef RESTORE_LIST
    }
    jot_kernel_close(was);
}

JOT_FN void
jot_kernel_take(Kernel *k, Kernel *copy)
{
    jot_arena_join(&copy->arena, &k->arena);
    jot_kernel_close(k);
    *k = *copy;
}
#undef KERNEL_LISTS

JOT_FN const char *
jot_kernel_string(Kernel *k, const char *text)
{
    return text ? jot_arena_copy(&k->arena, text, jot_str_len(text)) : NULL;
}

JOT_FN int
jot_kernel_axis(Kernel *k, const char *name, int64_t ext)
{
    KAxis axis = {.name = jot_kernel_string(k, name), .ext = ext};
    if (!axis.name || ext < 0 || k->axes.n >= KERNEL_AXES || !jot_vec_reserve(k->mem, k->axes, 1))
        return -1;
    *(KAxis *)jot_vec_push(k->mem, k->axes) = axis;
    return (int)k->axes.n - 1;
}

JOT_FN int
jot_kernel_axis_f(Kernel *k, int64_t ext, const char *format, ...)
{
    char name[32];
    Text text = {NULL, name, 0, sizeof name};
    va_list args;
    va_start(args, format);
    jot_text_v(&text, format, args);
    va_end(args);
    return jot_kernel_axis(k, name, ext);
}

JOT_FN uint32_t
jot_kernel_buf(Kernel *k, const char *name, jot_DType dtype, BufRole role, int rank,
               const int64_t *ext)
{
    KBuf buf = {0};
    int64_t *copy = jot_arena_array(&k->arena, int64_t, (size_t)rank + 1);
    Layout *layout = jot_arena_array(&k->arena, Layout, 1);
    buf.name = jot_kernel_string(k, name);
    if (rank < 0 || rank > JOT_MAX_RANK || !copy || !layout || !buf.name || !k->bufs.n)
        return 0;
    if (rank > 0)
        memcpy(copy, ext, (size_t)rank * sizeof *ext);
    if (!jot_layout_rowmajor(layout, rank, copy) || !jot_vec_reserve(k->mem, k->bufs, 1))
        return 0;
    buf.dtype = (uint8_t)dtype;
    buf.role = (uint8_t)role;
    buf.rank = (uint8_t)rank;
    buf.ext = copy;
    buf.layout = layout;
    *(KBuf *)jot_vec_push(k->mem, k->bufs) = buf;
    return k->bufs.n - 1;
}

JOT_FN void
jot_kernel_layout(Kernel *k, uint32_t buf, const Layout *layout)
{
    Layout *copy = jot_arena_array(&k->arena, Layout, 1);
    if (!copy || buf == 0 || buf >= k->bufs.n)
        return;
    *copy = *layout;
    k->bufs.v[buf].layout = copy;
}

JOT_FN int
jot_kernel_scalar(Kernel *k, const char *name, jot_DType dtype)
{
    KScalar scalar = {jot_kernel_string(k, name), (uint8_t)dtype};
    if (!scalar.name || !jot_vec_reserve(k->mem, k->scalars, 1))
        return -1;
    *(KScalar *)jot_vec_push(k->mem, k->scalars) = scalar;
    return (int)k->scalars.n - 1;
}

JOT_FN void
jot_kernel_slot(Kernel *k, int slot, uint32_t buf)
{
    while ((int)k->slots.n <= slot && jot_vec_reserve(k->mem, k->slots, 1))
        *(uint32_t *)jot_vec_push(k->mem, k->slots) = 0;
    if ((int)k->slots.n > slot)
        k->slots.v[slot] = buf;
}

JOT_FN uint32_t
jot_v_arg(const Kernel *k, uint32_t value, int i)
{
    return k->args.v[k->values.v[value].arg + (uint32_t)i];
}

JOT_FN uint64_t
jot_value_axes(const Value *v)
{
    return v->op == VAL_REDUCE ? v->free | v->axes : v->free;
}

JOT_FN double
jot_kernel_points(const Kernel *k, uint64_t axes)
{
    double points = 1;
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (axes >> a & 1)
            points *= (double)k->axes.v[a].ext;
    return points;
}

JOT_FN int64_t
jot_kernel_extent(const Kernel *k, uint64_t axes)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < k->axes.n; a++)
        if ((axes >> a & 1) && !jot_mul_ok(n, k->axes.v[a].ext, &n))
            return INT64_MAX;
    return n;
}

JOT_FN Ix
jot_axis_end(const Kernel *k, int axis)
{
    return k->axes.v[axis].ext == k->axes.v[axis].ended ? k->axes.v[axis].end : 0;
}

JOT_FN Space
jot_kernel_space(const Kernel *k, int64_t *ext)
{
    Space space = {0};
    for (uint32_t a = 0; a < KERNEL_AXES; a++)
        ext[a] = a < k->axes.n ? k->axes.v[a].ext : 1;
    space.n = (int)k->axes.n;
    space.ext = ext;
    return space;
}

JOT_FN const Ix *
jot_kernel_index(const Kernel *k, uint32_t at)
{
    return k->ixs.v ? k->ixs.v + at : NULL;
}

JOT_FN Ix
jot_kernel_addr(const Kernel *k, uint32_t buf, uint32_t at)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    return jot_layout_addr(k->bufs.v[buf].layout, k->ix, jot_kernel_index(k, at), &space);
}

JOT_FN bool *
jot_kernel_used_new(const Kernel *k)
{
    bool *used = jot_mem_new(k->mem, k->values.n, sizeof *used);
    if (used)
        jot_kernel_used(k, used);
    return used;
}

JOT_FN void
jot_kernel_levels(const Kernel *k, uint8_t *level)
{
    for (uint32_t i = 1; i < k->values.n; i++) {
        int most = 0;
        for (int j = 0; j < k->values.v[i].narg; j++) {
            int of = level[jot_v_arg(k, i, j)];
            most = of > most ? of : most;
        }
        level[i] = (uint8_t)(most + (k->values.v[i].op == VAL_REDUCE));
    }
}

JOT_FN void
jot_kernel_used(const Kernel *k, bool *used)
{
    for (uint32_t i = 0; i < k->stores.n; i++)
        used[k->stores.v[i].value] = true;
    for (uint32_t i = k->values.n; i-- > 1;)
        for (int j = 0; used[i] && j < k->values.v[i].narg; j++)
            used[k->args.v[k->values.v[i].arg + (uint32_t)j]] = true;
}
