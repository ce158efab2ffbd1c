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

/* Whether an operand that may be left out is there. */
static inline bool
nn_given(jot_Var v)
{
    return v.ctx != NULL;
}

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

/* v is a live variable of like's shape. There is no broadcasting: (n, 1) against (n) is a mistake,
 * not a wish. */
static inline bool
nn_same(jot_Ctx *ctx, jot_Var v, jot_Var like, const char *op, const char *arg, const char *whose)
{
    if (!jot_check(ctx, v, op, arg))
        return false;
    if (jot_rank(v) != jot_rank(like)) {
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: rank %d asked (%s's), %d found", op, arg,
                  jot_rank(like), whose, jot_rank(v));
        return false;
    }
    for (int d = 0; d < jot_rank(like); d++)
        if (jot_extent(v, d) != jot_extent(like, d)) {
            jot_raise(ctx, JOT_ESHAPE, "%s: %s: extent %lld asked (%s's dimension %d), %lld found",
                      op, arg, (long long)jot_extent(like, d), whose, d,
                      (long long)jot_extent(v, d));
            return false;
        }
    return true;
}

/* v (n), n the extent that counts rows of `whose`. */
static inline bool
nn_rows(jot_Ctx *ctx, jot_Var v, int64_t n, const char *op, const char *arg, const char *whose)
{
    if (!jot_check(ctx, v, op, arg))
        return false;
    bool fits = jot_rank(v) == 1 && jot_extent(v, 0) == n;
    if (!fits)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: (%lld) asked (n of %s), rank %d and %lld elements "
                  "found", op, arg, (long long)n, whose, jot_rank(v), (long long)jot_nelem(v));
    return fits;
}

static inline bool
nn_integer(jot_Var v, const char *op, const char *arg)
{
    bool is_integer = jot_dtype(v) <= JOT_U64 && jot_dtype(v) != JOT_BOOL;
    if (!is_integer)
        jot_raise(v.ctx, JOT_EDTYPE, "%s: %s: an integer dtype asked, %s found", op, arg,
                  jot_dtype_name(jot_dtype(v)));
    return is_integer;
}

/* A setting with a least value, which itself is allowed; NaN is not. */
static inline bool
nn_least(jot_Ctx *ctx, double v, double least, const char *op, const char *arg)
{
    if (!(v >= least))
        jot_raise(ctx, JOT_ERANGE, "%s: %s: at least %g asked, %g found", op, arg, least, v);
    return v >= least;
}

static inline bool
nn_above(jot_Ctx *ctx, double v, double bound, const char *op, const char *arg)
{
    if (!(v > bound))
        jot_raise(ctx, JOT_ERANGE, "%s: %s: above %g asked, %g found", op, arg, bound, v);
    return v > bound;
}

/* v as each element of like, by NumPy's rules (a weight). */
static inline bool
nn_fits(jot_Ctx *ctx, jot_Var v, jot_Var like, const char *op, const char *arg)
{
    if (!jot_check(ctx, v, op, arg))
        return false;
    int extra = jot_rank(like) - jot_rank(v);
    bool fits = extra >= 0;
    for (int d = 0; fits && d < jot_rank(v); d++)
        fits = jot_extent(v, d) == 1 || jot_extent(v, d) == jot_extent(like, d + extra);
    if (!fits)
        jot_raise(ctx, JOT_ESHAPE, "%s: %s: a shape asked that broadcasts to x's, rank %d and %lld "
                  "elements found", op, arg, jot_rank(v), (long long)jot_nelem(v));
    return fits;
}

/* A list of n that the caller gave as a pointer. */
static inline bool
nn_list(jot_Ctx *ctx, int n, bool given, const char *op, const char *arg)
{
    if (n < 0 || (n && !given))
        jot_raise(ctx, JOT_EUSE, "%s: %s: a list asked, %d elements of none found", op, arg, n);
    return n >= 0 && (!n || given);
}

/* A diagonal's distance from the main one. */
static inline bool
nn_offset(jot_Ctx *ctx, int64_t k, const char *op)
{
    const int64_t most = (int64_t)1 << 40;
    if (k < -most || k > most)
        jot_raise(ctx, JOT_ERANGE, "%s: k: within 2^40 of 0 asked, %lld found", op, (long long)k);
    return k >= -most && k <= most;
}

/* x is of matrices, with a diagonal k. */
static inline bool
nn_matrix(jot_Var x, int64_t k, const char *op)
{
    if (!jot_check(x.ctx, x, op, "x"))
        return false;
    if (jot_rank(x) < 2)
        jot_raise(x.ctx, JOT_ESHAPE, "%s: x: rank of at least 2 (..., m, n) asked, %d found", op,
                  jot_rank(x));
    return jot_rank(x) >= 2 && nn_offset(x.ctx, k, op);
}

/* ---- index expressions ---- */

/* Both end the text and return where it ends. */
static inline char *
nn_put(char *to, const char *s)
{
    while (*s)
        *to++ = *s++;
    *to = 0;
    return to;
}

static inline char *
nn_put_int(char *to, int64_t v)
{
    char digits[24], *d = digits + sizeof digits - 1;
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *d = 0;
    do {
        *--d = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    return nn_put(v < 0 ? nn_put(to, "-") : to, d);
}

static inline void
nn_axes(const char *at[JOT_MAX_RANK], int rank)
{
    for (int d = 0; d < rank; d++)
        at[d] = nn_axis[d];
}

/* An element of an index: "@e0(i0,i1)" over rank dimensions of the space, then `last` if any. */
static inline const char *
nn_load(char text[96], int rank, const char *last)
{
    char *t = nn_put(text, "@e0(");
    for (int d = 0; d < rank; d++)
        t = nn_put(d ? nn_put(t, ",") : t, nn_axis[d]);
    if (last)
        t = nn_put(rank ? nn_put(t, ",") : t, last);
    nn_put(t, ")");
    return text;
}

/* ---- numbers ---- */

/* NaN, whoever compiles this */
static inline double
nn_nan(void)
{
    union { uint64_t u; double f; } nan = { (uint64_t)0xfff8 << 48 };
    return nan.f;
}

static inline double
nn_infinity(void)
{
    union { uint64_t u; double f; } infinity = { (uint64_t)0x7ff0 << 48 };
    return infinity.f;
}

/* The square root by Newton's steps, from the nearest power of 2: there is no C library here. */
static inline double
nn_root(double x)
{
    double r = 1;
    if (!(x > 0))
        return 0;
    for (; r * r > x; r /= 2)
        continue;
    for (; r * r < x; r *= 2)
        continue;
    for (int i = 0; i < 6; i++)
        r = (r + x / r) / 2;
    return r;
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

/* Products to be summed up: of integers as wide as their sum is, so that none wraps around. */
static inline jot_Var
nn_terms(jot_Var a, jot_Var b)
{
    jot_DType dtype = jot_promote(jot_dtype(a), jot_dtype(b));
    if (dtype < JOT_F16) {
        dtype = dtype >= JOT_U8 ? JOT_U64 : JOT_I64;
        a = jot_cast(a, dtype);
        b = jot_cast(b, dtype);
    }
    return jot_mul(a, b);
}

static inline jot_Var
nn_number(jot_Var like, double value)
{
    return jot_full(like.ctx, jot_dtype(like), JOT_SHAPE(), value);
}

static inline jot_Var
nn_zero(jot_Var like)
{
    return nn_number(like, 0);
}

/* x as (outer, n, inner), with n along dim. */
static inline jot_Var
nn_three(jot_Var x, int dim)
{
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < dim; d++)
        outer *= jot_extent(x, d);
    for (int d = dim + 1; d < jot_rank(x); d++)
        inner *= jot_extent(x, d);
    return jot_reshape(x, JOT_SHAPE(outer, jot_extent(x, dim), inner));
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

/* Room for n handles where there is no allocator: the bytes of a parameter, which the caller frees.
 * Nobody else has it, so that they may be written; NULL where memory is refused. */
static inline jot_Var
nn_room(jot_Ctx *ctx, int64_t n)
{
    return jot_param(ctx, JOT_U8, JOT_SHAPE(n * (int64_t)sizeof(jot_Var)), NULL);
}

static inline jot_Var *
nn_handles(jot_Var room)
{
    return (jot_Var *)(uintptr_t)jot_data(room);
}

static inline jot_Var
nn_poison(jot_Ctx *ctx)
{
    jot_Var poison = {ctx, 0, 0};
    return poison;
}

#endif
