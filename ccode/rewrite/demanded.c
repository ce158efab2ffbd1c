/* ccode/rewrite/demanded.c - integers in as many bits as are read of them (demanded bits).
 *
 *     %2 = i64 cast %1      %4 = i64 cast %3            %8 = i32 mul %1 %3
 *     %5 = i64 mul %2 %4                          ->    %9 = i32 reduce add over k of %8
 *     %6 = i64 reduce add over k of %5                  !0 y[i] = %9
 *     !0 y[i] = i32 cast %6
 *
 * The low bits of a sum, difference, product, choice, of bits one by one and of what is shifted to
 * the left follow from the low bits of the operands, and so do those of reductions by such an
 * operator. Where only casts to fewer bits read it, at last, all of it is computed in these: a
 * vector has more of them, and vectors have no product of 64 bits. What asks for all bits - a
 * store, a comparison, an extreme, a quotient, a float, a truth value - gets them.
 *
 *   requires  a kernel without a schedule      keeps  what is stored, to the bit
 *   breaks    numbers of values
 *
 * Read before: ccode/ir/ir.h. After: ccode/rewrite/narrow.c. */
#include "ccode/rewrite/rewrite.h"
#include "ccode/ir/access.h"

/* Bits that are read of a value; those that its operators want at least; vector instructions that
 * fewer bits save; the value in these bits, 0: it keeps its own. */
typedef struct { uint8_t bits, least; int saves; uint32_t value; } Demanded;
typedef struct { Kernel *k; Space space; int least; bool products; Demanded *of; } Demand;

enum { SAVES_PRODUCT = 2, SAVES_MOST = 1 << 20 };

static bool
demanded_is_integer(const Value *v)
{
    return v->dtype != JOT_BOOL && v->dtype < JOT_F16;
}

static int
demanded_own(const Value *v)
{
    return 8 * (int)jot_dtype_nbytes((jot_DType)v->dtype);
}

static jot_DType
demanded_dtype(int bits)
{
    return bits == 8 ? JOT_I8 : bits == 16 ? JOT_I16 : bits == 32 ? JOT_I32 : JOT_I64;
}

/* Do the low bits of its result follow from those of operands [*first, narg)? */
static bool
demanded_follows(const Kernel *k, const Value *v, int *first)
{
    const Value *by;

    *first = v->op == VAL_EW && v->ew == EW_SELECT;
    switch (v->op) {
    case VAL_CONST: case VAL_INDEX: case VAL_AT: return true;
    case VAL_REDUCE: if (v->narg != 1 || v->scaled) return false;
        break;
    case VAL_EW: break;
    default: return false;
    }
    switch (v->ew) {
    case EW_ADD: case EW_SUB: case EW_MUL: case EW_NEG: case EW_SELECT:
    case EW_BITAND: case EW_BITOR: case EW_BITXOR: case EW_BITNOT:
        return true;
    case EW_CAST:
        return k->values.v[k->args.v[v->arg]].dtype < JOT_F16;
    case EW_SHL:
        by = &k->values.v[k->args.v[v->arg + 1]];
        return by->op == VAL_CONST && by->c.u < (uint64_t)demanded_own(v);
    default:
        return false;
    }
}

/* A sum of products that may be a contraction: its vectors have 32 bits, or words of bytes and
 * shorts that one instruction multiplies and adds up. Where it is none, it is asked again. */
static bool
demanded_contracts(const Kernel *k, const Value *v)
{
    const Value *product = &k->values.v[k->args.v[v->arg]];
    uint64_t a, b;

    if (v->op != VAL_REDUCE || v->ew != EW_ADD || product->op != VAL_EW || product->ew != EW_MUL)
        return false;
    a = k->values.v[k->args.v[product->arg]].free;
    b = k->values.v[k->args.v[product->arg + 1]].free;
    return jot_kernel_wide(k, a & ~b & v->free) && jot_kernel_wide(k, b & ~a & v->free)
        && jot_kernel_wide(k, a & b & v->axes);
}

/* What is so of the value before anyone asks who reads it. */
static void
demanded_learn(const Demand *d, uint32_t n)
{
    const Kernel *k = d->k;
    const Value *v = &k->values.v[n];
    Demanded *it = &d->of[n];
    int64_t lo, hi;
    int first;

    it->least = (uint8_t)d->least;
    it->saves = v->op == VAL_SCALAR ? 0 : -1; /* cut off from all of its bits, outside of loops */
    if (!demanded_is_integer(v) || !demanded_follows(k, v, &first))
        return;
    if (v->op == VAL_INDEX) {
        if (!jot_ix_range(k->ix, k->ixs.v[v->at], &d->space, &lo, &hi) || lo < INT32_MIN
            || hi > INT32_MAX)
            return;
        it->least = 32;
    } else if (v->op == VAL_EW && (v->ew == EW_MUL || v->ew == EW_SHL) && it->least < 16)
        it->least = 16; /* vectors of bytes have neither */
    else if (d->products && v->narg && demanded_contracts(k, v)) {
        it->least = 32;
        d->of[k->args.v[v->arg]].saves = SAVES_MOST; /* operands are cut off as they are packed */
    }
    it->saves = v->op == VAL_EW && v->ew == EW_MUL && demanded_own(v) == 64 ? SAVES_PRODUCT
              : v->op != VAL_CONST;
    for (int i = first; i < v->narg; i++) {
        const Demanded *of = &d->of[k->args.v[v->arg + (uint32_t)i]];

        if (v->op == VAL_EW && v->ew == EW_CAST
            && demanded_own(&k->values.v[k->args.v[v->arg]]) < demanded_own(v))
            return;
        it->least = of->least > it->least ? of->least : it->least;
        it->saves += of->saves;
    }
    it->saves = it->saves < -1 ? -1 : it->saves > SAVES_MOST ? SAVES_MOST : it->saves;
}

/* In which bits the value is computed, and what it reads of its operands then. */
static void
demanded_ask(const Demand *d, uint32_t n)
{
    const Kernel *k = d->k;
    const Value *v = &k->values.v[n];
    Demanded *it = &d->of[n];
    int own = demanded_own(v), first = v->narg;

    if (it->bits < it->least)
        it->bits = it->least;
    if (!demanded_is_integer(v) || it->saves < (v->op != VAL_CONST) || it->bits >= own
        || !demanded_follows(k, v, &first))
        it->bits = (uint8_t)own;
    if (v->op == VAL_EW && v->ew == EW_CAST && demanded_is_integer(v))
        first = 0;
    else if (it->bits == own)
        first = v->narg;
    for (int i = 0; i < v->narg; i++) {
        uint32_t a = k->args.v[v->arg + (uint32_t)i];
        int bits = demanded_own(&k->values.v[a]);

        bits = i >= first && it->bits < bits ? it->bits : bits;
        d->of[a].bits = d->of[a].bits > bits ? d->of[a].bits : (uint8_t)bits;
    }
}

/* The low bits of constant c as a number of the signed dtype of so many. */
static jot_Scalar
demanded_const(jot_Scalar c, int bits)
{
    uint64_t sign = (uint64_t)1 << (bits - 1), low = c.u & (2 * sign - 1);

    c.u = (low ^ sign) - sign;
    return c;
}

static uint32_t
demanded_reduce(Kernel *k, const Value *v, uint32_t body)
{
    Ix cond[64];

    if (v->ncond)
        memcpy(cond, k->ixs.v + v->at, v->ncond * sizeof *cond);
    return jot_v_reduce(k, (EwOp)v->ew, v->axes, body, v->ncond, cond, 1);
}

static uint32_t
demanded_at(Kernel *k, const Value *v, uint32_t body)
{
    int axis[JOT_MAX_RANK];
    Ix ix[JOT_MAX_RANK];

    for (int i = 0; i < v->nidx; i++) {
        axis[i] = v->ax[i];
        ix[i] = k->ixs.v[v->at + (uint32_t)i];
    }
    return jot_v_at(k, body, v->nidx, axis, ix);
}

/* The value in the bits that are read of it. */
static uint32_t
demanded_value(const Demand *d, uint32_t n)
{
    Kernel *k = d->k;
    const Value v = k->values.v[n];
    jot_DType dtype = demanded_dtype(d->of[n].bits);
    uint32_t arg[3] = {0, 0, 0};
    int first = 0;

    (void)demanded_follows(k, &v, &first);
    for (int i = 0; i < v.narg && i < 3; i++) {
        uint32_t a = k->args.v[v.arg + (uint32_t)i], low = d->of[a].value;

        arg[i] = i < first ? a : jot_v_cast(k, dtype, low ? low : a);
    }
    switch (v.op) {
    case VAL_CONST: return jot_v_const(k, dtype, demanded_const(v.c, d->of[n].bits));
    case VAL_INDEX: return jot_v_index(k, dtype, k->ixs.v[v.at]);
    case VAL_AT: return demanded_at(k, &v, arg[0]);
    case VAL_REDUCE: return demanded_reduce(k, &v, arg[0]);
    default:
        return v.ew == EW_CAST ? arg[0]
                               : jot_v_ew(k, (EwOp)v.ew, dtype, arg[0], arg[1], arg[2]);
    }
}

/* Forms of what is read in part; then, from the last to the first, so that who reads a cast has
 * been asked before it is replaced, casts read them. */
static bool
demanded_all(const Demand *d, uint32_t last)
{
    Kernel *k = d->k;

    for (uint32_t n = 1; n < last && !k->mem->failed; n++)
        if (d->of[n].bits && d->of[n].bits < demanded_own(&k->values.v[n]))
            d->of[n].value = demanded_value(d, n);
    for (uint32_t n = last; n-- > 1 && !k->mem->failed;) {
        const Value *v = &k->values.v[n];
        uint32_t low = v->op == VAL_EW && v->ew == EW_CAST && !d->of[n].value
                     ? d->of[k->args.v[v->arg]].value : 0;
        uint32_t to = low ? jot_v_cast(k, (jot_DType)v->dtype, low) : 0;

        if (to && !jot_v_replace(k, n, to, to))
            break;
    }
    return !k->mem->failed && (k->values.n == last || jot_kernel_compact(k));
}

JOT_FN bool
jot_kernel_demanded(Kernel *k, const Target *target, bool products)
{
    int64_t ext[KERNEL_AXES];
    uint32_t last = k->values.n;
    bool vectors = target->vector_nbytes && target->blocks; /* of bytes and shorts: no device's */
    Demand d = {k, jot_kernel_space(k, ext), vectors ? 8 : 32, products, NULL};
    bool casts = false, ok = true;

    for (uint32_t n = 1; n < last && !casts; n++) {
        const Value *v = &k->values.v[n];

        casts = v->op == VAL_EW && v->ew == EW_CAST && demanded_is_integer(v)
             && demanded_is_integer(&k->values.v[k->args.v[v->arg]])
             && demanded_own(v) < demanded_own(&k->values.v[k->args.v[v->arg]]);
    }
    d.of = casts ? jot_mem_new(k->mem, last, sizeof *d.of) : NULL;
    if (d.of) {
        for (uint32_t n = 1; n < last; n++)
            demanded_learn(&d, n);
        for (uint32_t i = 0; i < k->stores.n; i++)
            d.of[k->stores.v[i].value].bits =
                (uint8_t)demanded_own(&k->values.v[k->stores.v[i].value]);
        for (uint32_t n = last; n-- > 1;)
            if (d.of[n].bits)
                demanded_ask(&d, n);
        ok = demanded_all(&d, last);
    }
    jot_mem_free(k->mem, d.of, last * sizeof *d.of);
    return ok && !k->mem->failed;
}
