/* ccode/verify/verify.c - what must hold of kernels. The builders give poison for a bad record;
 * here is what only the whole shows: operand order, depth, dtypes, axes in range.
 *
 *   requires  nothing      keeps  everything      breaks  nothing
 *
 * Read before: ccode/verify/verify.h. After: ccode/verify/sched.c. */
#include "ccode/verify/verify.h"

JOT_FN bool
jot_refuse(Text *why, const char *what, uint32_t number)
{
    if (why)
        jot_text_f(why, "%s (number %u)", what, number);
    return false;
}

JOT_FN uint64_t
jot_first_bits(uint32_t n)
{
    return n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

JOT_FN bool
jot_verify_index(const Kernel *k, Ix ix, uint64_t axes)
{
    uint64_t slots;
    if (ix == 0 || ix >= k->ix->recs.n || (jot_ix_axes(k->ix, ix) & ~axes))
        return false;
    slots = jot_ix_slots(k->ix, ix);
    for (uint32_t s = 0; s < 64; s++)
        if ((slots >> s & 1) && (s >= k->slots.n || k->slots.v[s] == 0))
            return false;
    return true;
}

static bool
ixs_ok(const Kernel *k, uint32_t at, int n)
{
    for (int i = 0; i < n; i++)
        if (at + (uint32_t)i >= k->ixs.n ||
            !jot_verify_index(k, k->ixs.v[at + (uint32_t)i], jot_first_bits(k->axes.n)))
            return false;
    return true;
}

static int
arg_dtype(const Kernel *k, const Value *v, int i)
{
    return k->values.v[k->args.v[v->arg + (uint32_t)i]].dtype;
}

static bool
ew_ok(const Kernel *k, const Value *v)
{
    int first = arg_dtype(k, v, v->ew == EW_SELECT ? 1 : 0);
    if (v->ew == EW_CAST)
        return true;
    if (v->ew == EW_UNIFORM || v->ew == EW_NORMAL)
        return arg_dtype(k, v, 0) == JOT_U64 && arg_dtype(k, v, 1) == JOT_U64 &&
            v->dtype >= JOT_F32;
    for (int i = v->ew == EW_SELECT ? 2 : 1; i < v->narg; i++)
        if (arg_dtype(k, v, i) != first)
            return false;
    if (v->ew == EW_SELECT && arg_dtype(k, v, 0) != JOT_BOOL)
        return false;
    if (jot_ew_info[v->ew].result == EW_BOOL ? v->dtype != JOT_BOOL : v->dtype != first)
        return false;
    return jot_ew_info[v->ew].c[jot_dtype_class((jot_DType)first)][0] != 0;
}

static bool
value_ok(const Kernel *k, uint32_t n, const uint16_t *depth, Text *why)
{
    const Value *v = &k->values.v[n];
    if (v->op == VAL_POISON || v->op > VAL_RUN)
        return jot_refuse(why, "a value is poison", n);
    if (depth[n] > VALUE_DEPTH)
        return jot_refuse(why, "a value is nested too deeply", n);
    for (int i = 0; i < v->narg; i++)
        if (k->args.v[v->arg + (uint32_t)i] == 0 || k->args.v[v->arg + (uint32_t)i] >= n)
            return jot_refuse(why, "an operand does not come before its user", n);
    if (!ixs_ok(k, v->at, v->nidx + v->ncond))
        return jot_refuse(why, "an index expression is poison or uses an axis that does not exist",
                          n);
    if (v->op == VAL_EW && !ew_ok(k, v))
        return jot_refuse(why, "an operator's operands have the wrong dtypes", n);
    if (v->op == VAL_DOT && (arg_dtype(k, v, 0) != JOT_U32 || arg_dtype(k, v, 1) != JOT_U32))
        return jot_refuse(why, "a product of words of which one is none", n);
    if (v->op == VAL_SECOND && k->values.v[k->args.v[v->arg]].narg != 2)
        return jot_refuse(why, "a second accumulator of a reduction that has one", n);
    if (v->op == VAL_REDUCE && v->narg == 2 &&
        (v->ncond || v->scaled || (v->ew != EW_MAX && v->ew != EW_MIN) ||
         (v->tie != EW_MAX && v->tie != EW_MIN)))
        return jot_refuse(why, "a reduction of two that is no extreme, or has conditions", n);
    if (v->op == VAL_RUN && (!v->axes || (v->axes & (v->axes - 1))))
        return jot_refuse(why, "a running reduction that is not along one axis", n);
    if ((v->op == VAL_REDUCE || v->op == VAL_RUN) && k->axes.n < 64 && v->axes >> k->axes.n)
        return jot_refuse(why, "a reduction is over an axis that does not exist", n);
    return true;
}

/* Who accumulates sets all of the buffer to the identity first, what was written around it too. */
static bool
keeps_border(const KBuf *b, jot_Scalar identity)
{
    const Layout *l = b->layout;
    bool halo = false;
    for (int d = 0; d < l->rank; d++)
        halo |= l->halo_lo[d] || l->halo_hi[d];
    return !halo || !b->bordered || l->halo_value.u == identity.u;
}

static bool
store_ok(const Kernel *k, uint32_t n, Text *why)
{
    const KStore *s = &k->stores.v[n];
    const KBuf *b = &k->bufs.v[s->buf];
    jot_DType dtype = jot_dtype_compute((jot_DType)b->dtype);
    jot_Scalar identity;
    if (b->role == BUF_INPUT)
        return jot_refuse(why, "a store writes an input", n);
    if (k->values.v[s->value].dtype != dtype)
        return jot_refuse(why, "a store's value is not of its buffer's dtype", n);
    if (s->acc && !jot_reduce_op_identity((EwOp)s->acc, dtype, &identity))
        return jot_refuse(why, "a store accumulates with an operator that has no identity", n);
    if (s->acc && !keeps_border(b, identity))
        return jot_refuse(why, "a store accumulates where a border has another value", n);
    return ixs_ok(k, s->at, s->nidx + s->ncond) || jot_refuse(why, "a store's index is poison", n);
}

JOT_FN bool
jot_ir_verify(const Kernel *k, Text *why)
{
    uint16_t *depth = jot_mem_new(k->mem, k->values.n, sizeof *depth);
    bool ok = depth != NULL;
    for (uint32_t n = 1; ok && n < k->values.n; n++) {
        const Value *v = &k->values.v[n];
        for (int i = 0; i < v->narg; i++) {
            uint32_t a = k->args.v[v->arg + (uint32_t)i];
            if (a < n && depth[a] >= depth[n])
                depth[n] = (uint16_t)(depth[a] + 1);
        }
        ok = value_ok(k, n, depth, why);
    }
    for (uint32_t n = 0; ok && n < k->stores.n; n++)
        ok = store_ok(k, n, why);
    jot_mem_free(k->mem, depth, k->values.n * sizeof *depth);
    return ok && !k->mem->failed && jot_verify_bounds(k, why);
}
