/* plan/layout/pack.c - the plan's own kernels: a variable copied into another layout, and the
 * halo of a temporary.
 *
 *     pack      for n c h w   copy[n][h + 1][w + 1][c] = x[n][c][h][w]
 *     border    for n s w c   copy[n][s < 1 ? s : 56 + s][w][c] = 0        rows above and below
 *               for n h s c   copy[n][h][s < 1 ? s : 56 + s][c] = 0        columns left and right
 *
 * To a border the layout is a plain array of the extents with halo: the same memory,
 * positions counted from its corner. So both are kernels like any other, scheduled, shared and
 * shared out among threads as those are; and neither has a condition inside.
 *
 * Read before: plan/layout/layout.h. After: plan/kernel.c. */
#include "plan/layout/layout.h"

/* The layout as an array without halo; of extents `ext`, which include halo. */
static bool
pack_view(const Layout *l, Layout *view, int64_t *ext)
{
    int d;

    for (d = 0; d < l->rank; d++)
        ext[d] = l->halo_lo[d] + l->ext[d] + l->halo_hi[d];
    return jot_layout_make(view, l->rank, ext, l->n, l->n ? l->part : NULL, NULL, NULL);
}

static Ix
pack_axis(Kernel *k, const char *letter, int dim, int64_t ext)
{
    int axis = ext == 1 ? -1 : jot_kernel_axis_f(k, ext, "%s%d", letter, dim);

    if (ext == 1)
        return jot_ix_const(k->ix, 0);
    return axis < 0 ? 0 : jot_ix_axis(k->ix, axis);
}

static bool
pack_build(Kernel *k, jot_DType dtype, const Layout *from, const Layout *to)
{
    Ix at[JOT_MAX_RANK];
    uint32_t x, y, v;
    jot_Scalar none;
    int d;

    none.u = 0;
    for (d = 0; d < to->rank; d++)
        at[d] = pack_axis(k, "i", d, to->ext[d]);
    x = jot_kernel_buf(k, "x0", dtype, BUF_INPUT, to->rank, to->ext);
    y = jot_kernel_buf(k, "y1", dtype, BUF_OUTPUT, to->rank, to->ext);
    if (from)
        jot_kernel_layout(k, x, from);
    jot_kernel_layout(k, y, to);
    k->bufs.v[y].bordered = true;
    v = jot_v_load(k, x, at, 0, NULL, none);
    return jot_kernel_store(k, y, at, v, EW_NONE, 0, NULL) >= 0;
}

/* Positions 0 .. lo and lo + inner .. lo + inner + hi by one axis s. */
static Ix
pack_side(Kernel *k, Ix s, int64_t lo, int64_t inner)
{
    int64_t ext[KERNEL_AXES];
    Space space = jot_kernel_space(k, ext);
    Ix behind = jot_ix_ge0(k->ix, jot_ix_sub(k->ix, s, jot_ix_const(k->ix, lo)), &space);

    return jot_ix_add(k->ix, s, jot_ix_scale(k->ix, behind, inner));
}

static bool
border_build(Kernel *k, jot_DType dtype, const Layout *l)
{
    Layout view;
    int64_t ext[JOT_MAX_RANK];
    Ix all[JOT_MAX_RANK], at[JOT_MAX_RANK];
    uint32_t y, value;
    int d, e;

    if (!pack_view(l, &view, ext))
        return false;
    y = jot_kernel_buf(k, "y0", dtype, BUF_OUTPUT, l->rank, ext);
    jot_kernel_layout(k, y, &view);
    for (d = 0; d < l->rank; d++)
        all[d] = pack_axis(k, "i", d, ext[d]);
    value = jot_v_cast(k, dtype, jot_v_const(k, jot_dtype_compute(dtype), l->halo_value));
    for (d = 0; d < l->rank; d++) {
        if (!l->halo_lo[d] && !l->halo_hi[d])
            continue;
        for (e = 0; e < l->rank; e++)
            at[e] = all[e];
        at[d] = pack_axis(k, "s", d, l->halo_lo[d] + l->halo_hi[d]);
        at[d] = pack_side(k, at[d], l->halo_lo[d], l->ext[d]);
        if (jot_kernel_store(k, y, at, value, EW_NONE, 0, NULL) < 0)
            return false;
    }
    return true;
}

static bool
pack_fail(Make *m)
{
    return m->ctx->mem.failed ? jot_fail_memory(m->ctx, "plan")
                              : jot_fail(m->ctx, JOT_EUSE, "plan: a copy could not be made");
}

/* Where the kernel's axes end in plans of which some do; of a border those alone along which there
 * is none. A number more in var[*n]. */
static bool
pack_ends(Make *m, Kernel *k, uint32_t pos, const Layout *border, uint32_t *var, int *n)
{
    const OpenEnds *ends = m->plan->ends;
    NodeId id = m->s->list.v[pos];
    BuildArgs args = {0};
    int i;
    bool ok = true;

    for (i = 0; ends && ok && i < *n; i++)
        ok = jot_vec_add(m->ctx, args.bufs, id, "plan");
    ok = ok && jot_open_ends(m->ctx, &m->s->list, ends, border, k, &args)
      && (args.bufs.n <= (uint32_t)*n
          || jot_plan_var(m, jot_node(m->ctx, ends->sizes)->at, &var[(*n)++]));
    jot_build_free(m->ctx, &args);
    return ok;
}

/* The variable that a copy is written to. */
static bool
pack_var(Make *m, PlanCopied *copy, const Node *node)
{
    Text key = {&m->ctx->mem, NULL, 0, 0};
    const Winograd *w = copy->winograd;
    PlanVar *v = jot_plan_var_new(m, copy->kept ? VAR_COPY : VAR_TEMP, copy->pos,
                                  copy->layout->nelem, (jot_DType)node->dtype);

    if (!v)
        return false;
    copy->var = m->plan->vars.n;
    if (!copy->kept)
        return true;
    if (w)
        jot_text_f(&key, "tiles %d %d %d %d flip %d %d ", w->taps_dim[0], w->taps_dim[1],
                   w->taps_dim[2], w->taps_dim[3], w->flip[0], w->flip[1]);
    jot_layout_print(copy->layout, &key);
    v->key = jot_mem_new(&m->ctx->mem, key.n, 1);
    if (v->key && key.n) /* row-major: no text */
        memcpy(v->key, key.s, key.n);
    if (v->key)
        v->nkey = key.n;
    jot_text_free(&key);
    return v->key || jot_fail_memory(m->ctx, "plan");
}

/* The step that writes the halo of a variable, if it has one. */
static bool
pack_border(Make *m, uint32_t var, const Layout *l, uint32_t copy)
{
    jot_DType dtype = (jot_DType)jot_node(m->ctx, m->s->list.v[m->plan->vars.v[var].pos])->dtype;
    const PlanKnown *known;
    uint32_t vars[2] = {var, 0};
    Kernel k;
    bool ok, keep, halo = false;
    int d, n = 1;

    for (d = 0; d < l->rank; d++)
        halo |= l->halo_lo[d] || l->halo_hi[d];
    if (!halo)
        return true;
    keep = jot_plan_known_fits(m) && jot_plan_group_key_own(m, KEY_BORDER, dtype, 0, l);
    known = keep ? jot_plan_known(m) : NULL;
    if (known)
        return jot_plan_own_known(m, known, copy, &var, 1);
    if (m->ctx->mem.failed)
        return pack_fail(m);
    ok = jot_kernel_open(&k, &m->ctx->mem, &m->ctx->ix) && border_build(&k, dtype, l)
      && pack_ends(m, &k, m->plan->vars.v[var].pos, l, vars, &n);
    ok = ok ? jot_plan_own_step(m, &k, "border", NULL, copy, vars, (uint32_t)n, keep)
            : pack_fail(m);
    jot_kernel_close(&k);
    return ok;
}

JOT_FN bool
jot_plan_pack(Make *m, PlanCopied *copy)
{
    const Node *node = jot_node(m->ctx, m->s->list.v[copy->pos]);
    SchedOwn tiles = {jot_winograd_taps_sched, copy->winograd};
    const PlanKnown *known;
    uint32_t var[3];
    Kernel k;
    bool ok, keep;
    int n = 2;

    if (copy->var) {
        jot_plan_var_touch(m, copy->var - 1);
        return true;
    }
    if (copy->written)
        return pack_var(m, copy, node);
    if (!jot_plan_var(m, copy->pos, &var[0]) || !pack_var(m, copy, node))
        return false;
    var[1] = copy->var - 1;
    if (!copy->winograd && !pack_border(m, var[1], copy->layout, copy->kept ? copy->var : 0))
        return false;
    keep = jot_plan_known_fits(m)
        && jot_plan_group_key_pack(m, (jot_DType)node->dtype, m->layout[copy->pos], copy->layout,
                                   copy->winograd);
    known = keep ? jot_plan_known(m) : NULL;
    if (known)
        return jot_plan_own_known(m, known, copy->kept ? copy->var : 0, var, 2);
    if (m->ctx->mem.failed)
        return pack_fail(m);
    ok = jot_kernel_open(&k, &m->ctx->mem, &m->ctx->ix)
      && (copy->winograd ? jot_winograd_taps(copy->winograd, m->layout[copy->pos], &k)
                      : pack_build(&k, (jot_DType)node->dtype, m->layout[copy->pos], copy->layout))
      && pack_ends(m, &k, copy->pos, NULL, var, &n);
    ok = ok ? jot_plan_own_step(m, &k, copy->winograd ? "tiles of taps" : "pack",
                                copy->winograd ? &tiles : NULL, copy->kept ? copy->var : 0, var,
                                (uint32_t)n,
                                keep)
            : pack_fail(m);
    jot_kernel_close(&k);
    jot_plan_var_touch(m, var[1]);
    return ok;
}

JOT_FN bool
jot_plan_unpack(Make *m, const PlanCopied *copy)
{
    const Node *node = jot_node(m->ctx, m->s->list.v[copy->pos]);
    const PlanKnown *known;
    uint32_t var[3];
    Layout rows;
    Kernel k;
    bool ok, keep;
    int n = 2;

    var[0] = copy->var - 1;
    if (!jot_plan_var(m, copy->pos, &var[1]) || !jot_layout_rowmajor(&rows, node->rank, node->ext))
        return pack_fail(m);
    keep = jot_plan_known_fits(m)
        && jot_plan_group_key_pack(m, (jot_DType)node->dtype, copy->layout, &rows, NULL);
    known = keep ? jot_plan_known(m) : NULL;
    if (known)
        return jot_plan_own_known(m, known, 0, var, 2);
    if (m->ctx->mem.failed)
        return pack_fail(m);
    ok = jot_kernel_open(&k, &m->ctx->mem, &m->ctx->ix)
      && pack_build(&k, (jot_DType)node->dtype, copy->layout, &rows)
      && pack_ends(m, &k, copy->pos, NULL, var, &n);
    ok = ok ? jot_plan_own_step(m, &k, "unpack", NULL, 0, var, (uint32_t)n, keep) : pack_fail(m);
    jot_kernel_close(&k);
    return ok;
}

JOT_FN bool
jot_plan_border(Make *m, uint32_t pos)
{
    uint32_t all = jot_plan_concat(m, pos), var;

    if (all != pos && (m->var[all] || !m->layout[all]))
        return true; /* before its first part */
    return jot_plan_var(m, all, &var) && pack_border(m, var, m->layout[all], 0);
}
