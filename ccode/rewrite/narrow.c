/* ccode/rewrite/narrow.c - integers of 64 bits in 32 where their ranges allow it: places that are
 * compared, and sums.
 *
 *     %3 = i64 index i      %4 = i64 index j            %6 = i32 index i      %7 = i32 index j
 *     %5 = bool lt %3 %4                          ->    %5 = bool lt %6 %7
 *
 *     %5 = i32 mul %2 %4    %6 = i64 cast %5            %5 = i32 mul %2 %4
 *     %7 = i64 reduce add over k:512 of %6        ->    %7 = i32 reduce add over k of %5
 *
 * A vector has twice as many of them, as many as of floats that are chosen by it: triangles. A sum
 * of products of bytes becomes one that instructions contract (ccode/contract/words.c).
 *
 *   requires  a kernel without a schedule      keeps  what is stored, to the bit
 *   breaks    numbers of values
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/arg_reduce.c. */
#include "ccode/rewrite/rewrite.h"

/* What is known of a value of integers: its range, and its number in 32 bits, 0: not so. */
typedef struct { int64_t lo, hi; bool known; uint32_t in32; } Narrow;
typedef struct { Kernel *k; Space space; Narrow *of; } Narrows;

static bool
narrow_is_wide(const Value *v)
{
    return v->dtype == JOT_I64 || v->dtype == JOT_U64;
}

/* The range of all numbers that the dtype has; u64 has more than are counted here. */
static Narrow
narrow_dtype(int dtype)
{
    int bits = 8 * (int)jot_dtype_nbytes((jot_DType)dtype);
    bool is_signed = dtype >= JOT_I8 && dtype <= JOT_I64;
    Narrow r = {0, 1, true, 0};

    if (dtype == JOT_BOOL)
        return r;
    r.known = dtype <= JOT_U32;
    r.hi = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
    r.lo = is_signed ? -r.hi - 1 : 0;
    return r;
}

static void
narrow_join(Narrow *r, Narrow a, Narrow b)
{
    r->lo = a.lo < b.lo ? a.lo : b.lo;
    r->hi = a.hi > b.hi ? a.hi : b.hi;
}

static Narrow
narrow_mul(Narrow a, Narrow b)
{
    const int64_t x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi};
    Narrow r = {INT64_MAX, INT64_MIN, true, 0};

    for (int i = 0; i < 4; i++) {
        Narrow one = {0, 0, true, 0};

        r.known &= jot_mul_ok(x[i & 1], y[i >> 1], &one.lo);
        one.hi = one.lo;
        narrow_join(&r, r, one);
    }
    return r;
}

static Narrow
narrow_ew(const Value *v, Narrow a, Narrow b, Narrow c)
{
    Narrow r = {0, 0, true, 0}, minus = {-1, -1, true, 0};

    switch (v->ew) {
    case EW_ADD:
        r.known = jot_add_ok(a.lo, b.lo, &r.lo) && jot_add_ok(a.hi, b.hi, &r.hi);
        return r;
    case EW_SUB:
        b = narrow_mul(b, minus);
        r.known = b.known && jot_add_ok(a.lo, b.lo, &r.lo) && jot_add_ok(a.hi, b.hi, &r.hi);
        return r;
    case EW_MUL:
        return narrow_mul(a, b);
    case EW_NEG:
        return narrow_mul(a, minus);
    case EW_MAX: case EW_MIN:
        narrow_join(&r, a, b);
        return r;
    case EW_SELECT:
        narrow_join(&r, b, c);
        return r;
    case EW_CAST:
        return a;
    default:
        r.known = false;
        return r;
    }
}

/* Each partial sum of so many terms is in it, too. */
static Narrow
narrow_sum(const Kernel *k, const Value *v, Narrow a)
{
    Narrow times = {0, jot_kernel_extent(k, v->axes), true, 0}, r;

    r = narrow_mul(a, times);
    r.known &= v->ew == EW_ADD && v->narg == 1 && !v->scaled && times.hi < INT64_MAX;
    return r;
}

/* False in `known`: any, or no integer. */
static Narrow
narrow_range(const Narrows *all, uint32_t n)
{
    const Kernel *k = all->k;
    const Value *v = &k->values.v[n];
    Narrow of[3] = {{0, 0, true, 0}, {0, 0, true, 0}, {0, 0, true, 0}}, r = {0, 0, false, 0};
    Narrow whole = narrow_dtype(v->dtype);

    if (v->dtype >= JOT_F16)
        return r;
    for (int i = 0; i < v->narg && i < 3; i++)
        of[i] = all->of[k->args.v[v->arg + (uint32_t)i]];
    if (v->op == VAL_CONST)
        r.lo = r.hi = v->c.i, r.known = v->dtype != JOT_U64 || v->c.i >= 0;
    else if (v->op == VAL_INDEX)
        r.known = jot_ix_range(k->ix, k->ixs.v[v->at], &all->space, &r.lo, &r.hi);
    else if (v->op == VAL_EW && of[0].known && of[1].known && of[2].known)
        r = narrow_ew(v, of[0], of[1], of[2]);
    else if (v->op == VAL_REDUCE && of[0].known)
        r = narrow_sum(k, v, of[0]);
    r.in32 = 0;
    return r.known && r.lo >= whole.lo && r.hi <= whole.hi ? r : whole; /* else it wraps around */
}

/* The value in 32 bits; 0: it does not fit, or its operands are not there. */
static uint32_t
narrow_value(const Narrows *all, uint32_t n)
{
    Kernel *k = all->k;
    const Value v = k->values.v[n];
    uint32_t arg[3] = {0, 0, 0};
    Ix cond[64];

    if (!narrow_is_wide(&v) || !all->of[n].known || all->of[n].lo < INT32_MIN
        || all->of[n].hi > INT32_MAX)
        return 0;
    for (int i = 0; i < v.narg && i < 3; i++) {
        uint32_t from = k->args.v[v.arg + (uint32_t)i];

        arg[i] = narrow_is_wide(&k->values.v[from]) ? all->of[from].in32 : from;
        if (!arg[i])
            return 0;
    }
    switch (v.op) {
    case VAL_CONST: return jot_v_const(k, JOT_I32, v.c);
    case VAL_INDEX: return jot_v_index(k, JOT_I32, k->ixs.v[v.at]);
    case VAL_EW:
        return v.ew == EW_CAST ? jot_v_cast(k, JOT_I32, arg[0])
                               : jot_v_ew(k, (EwOp)v.ew, JOT_I32, arg[0], arg[1], arg[2]);
    case VAL_REDUCE:
        if (v.ncond)
            memcpy(cond, k->ixs.v + v.at, v.ncond * sizeof *cond);
        return jot_v_reduce(k, EW_ADD, v.axes, arg[0], v.ncond, cond, 1);
    default: return 0;
    }
}

/* What stands for a value of which an operand is narrow: a comparison of two, a sum, and what a sum
 * is converted to; 0: it stays. */
static uint32_t
narrow_instead(const Narrows *all, uint32_t n)
{
    Kernel *k = all->k;
    const Value v = k->values.v[n];
    uint32_t a = v.narg > 0 ? k->args.v[v.arg] : 0, b = v.narg > 1 ? k->args.v[v.arg + 1] : 0;

    if (v.op == VAL_REDUCE)
        return all->of[n].in32 ? jot_v_cast(k, (jot_DType)v.dtype, all->of[n].in32) : 0;
    if (v.op != VAL_EW || !narrow_is_wide(&k->values.v[a]) || !all->of[a].in32)
        return 0;
    if (v.ew == EW_CAST && k->values.v[a].op == VAL_REDUCE && v.round == v.dtype)
        return jot_v_cast(k, (jot_DType)v.dtype, all->of[a].in32);
    if (v.ew >= EW_EQ && v.ew <= EW_GE && all->of[b].in32)
        return jot_v_ew(k, (EwOp)v.ew, JOT_BOOL, all->of[a].in32, all->of[b].in32, 0);
    return 0;
}

/* From the last to the first, so that who reads a sum has been asked before it is replaced. */
static bool
narrow_all(Narrows *all, uint32_t last)
{
    Kernel *k = all->k;
    bool some = false;

    for (uint32_t n = 1; n < last && !k->mem->failed; n++) {
        all->of[n] = narrow_range(all, n);
        all->of[n].in32 = narrow_value(all, n);
    }
    for (uint32_t n = last; n-- > 1 && !k->mem->failed;) {
        uint32_t to = narrow_instead(all, n);

        if (to && !jot_v_replace(k, n, to, to))
            break;
        some |= to != 0;
    }
    some |= k->values.n > last;
    return !k->mem->failed && (!some || jot_kernel_compact(k));
}

JOT_FN bool
jot_kernel_narrow(Kernel *k)
{
    int64_t ext[KERNEL_AXES];
    uint32_t last = k->values.n;
    Narrows all = {k, jot_kernel_space(k, ext), NULL};
    bool wide = false, ok = true;

    for (uint32_t n = 1; n < last; n++)
        wide |= narrow_is_wide(&k->values.v[n]);
    all.of = wide ? jot_mem_new(k->mem, last, sizeof *all.of) : NULL;
    if (wide)
        ok = all.of && narrow_all(&all, last);
    jot_mem_free(k->mem, all.of, last * sizeof *all.of);
    return ok && !k->mem->failed;
}
