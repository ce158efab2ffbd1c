/* nn/parts.h - what compositions share: checks of arguments that say who asked, and the small
 * values that most of them begin with. Public functions alone, as in all of nn/.
 *
 * Read before: core.h. After: nn/nn.c. */
#ifndef JOT_NN_PARTS_H
#define JOT_NN_PARTS_H
#include "core.h"

static const char *const nn_axis[JOT_MAX_RANK] = {
    "i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7",
    "i8", "i9", "i10", "i11", "i12", "i13", "i14", "i15"
};

static inline bool
nn_rank_is(jot_Ctx *ctx, jot_Var v, int rank, const char *op, const char *arg, const char *shape)
{
    if (!jot_check(ctx, v, op, arg))
        return false;
    if (jot_rank(v) != rank)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: rank %d %s asked, %d found", op, arg, rank, shape,
                  jot_rank(v));
    return jot_rank(v) == rank;
}

/* *dim counted from the start. */
static inline bool
nn_dim(jot_Var x, int *dim, const char *op)
{
    int rank = jot_rank(x), d = *dim < 0 ? *dim + rank : *dim;
    if (d < 0 || d >= rank) {
        jot_raise(x.ctx, JOT_ERANGE, "%s: dim: %d..%d asked (x has rank %d), %d found", op, -rank,
                  rank - 1, rank, *dim);
        return false;
    }
    *dim = d;
    return true;
}

static inline jot_DType
nn_float_of(jot_DType dtype)
{
    return dtype < JOT_F16 ? JOT_F32 : dtype;
}

/* x as a float that is safe to accumulate in. */
static inline jot_Var
nn_wide(jot_Var x)
{
    return jot_cast(x, jot_dtype(x) == JOT_F64 ? JOT_F64 : JOT_F32);
}

static inline jot_Var
nn_zero(jot_Var like)
{
    return jot_full(like.ctx, jot_dtype(like), JOT_SHAPE(), 0);
}

static inline double
nn_infinity(void)
{
    union { uint64_t u; double f; } infinity = { (uint64_t)0x7ff0 << 48 };
    return infinity.f;
}

/* An element-wise composition begins: x as a float, in a scope that jot_leave ends. */
static inline bool
nn_begin(jot_Var *x, const char *op)
{
    if (!jot_check(x->ctx, *x, op, "x"))
        return false;
    jot_push(x->ctx);
    *x = jot_cast(*x, nn_float_of(jot_dtype(*x)));
    return true;
}

static inline jot_Var
nn_poison(jot_Ctx *ctx)
{
    jot_Var poison = {ctx, 0, 0};
    return poison;
}

#endif
