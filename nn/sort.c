/* nn/sort.c - order along a dimension: one user kernel, and what follows from where it puts things.
 *
 *     x --rows--> argsort: keys, whole numbers in the order of the values --radix sort--> positions
 *     sort, topk, median, quantile   x read at these positions: a reindex, with its gradient
 *
 * Sorting is no sum over an index space, so it is a kernel in C (jot_code), the same text for the
 * processor, for devices and for this file's own compiler, which has it for the interpreter. It is
 * stable: of equals the first stays first. Eight bits of a key are counted and dealt out at a time,
 * those that all elements have alike are passed over, and short rows go by insertion, as do the few
 * first of a long one, of which most elements are none.
 *
 * Read before: nn/parts.h. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

enum { SORT_FEW = 32 }; /* of more, all are sorted */

/* ---- the kernel ---- */

/* NaN is the largest and -0 equals 0. */
#define SORT_F32 union { float f; jot_u32 u; } w; w.f = v + 0.0f; \
    k = v != v ? 0xffffffffu : w.u >> 31 ? ~w.u : w.u | 0x80000000u;
#define SORT_F64 union { double f; jot_u64 u; } w; w.f = v + 0.0; \
    k = v != v ? ~(jot_u64)0 : w.u >> 63 ? ~w.u : w.u | (jot_u64)1 << 63;
#define SORT_I32 k = (jot_u32)v ^ 0x80000000u;
#define SORT_I64 k = (jot_u64)v ^ (jot_u64)1 << 63;
#define SORT_WHOLE k = v;

/* Rows lo .. hi of x (rows, n): the positions of their elements in order, in y (rows, n), or of the
 * first of them, in y (rows, less than n). */
#define SORT_CODE(GLOBAL, ELEM, KEY, KEY_OF) \
    for (jot_i64 row = lo; row < hi; row++) { \
        GLOBAL const ELEM *from = x + row * x_1; \
        GLOBAL KEY *a = key_a + row * y_1; \
        GLOBAL KEY *b = key_b + row * y_1; \
        GLOBAL jot_u32 *at_a = place_a + row * y_1; \
        GLOBAL jot_u32 *at_b = place_b + row * y_1; \
        jot_u32 count[256]; \
        for (jot_i64 i = 0; y_1 < x_1 && i < x_1; i++) { \
            const ELEM v = from[i]; \
            KEY k; \
            KEY_OF \
            k = down != 0 ? ~k : k; \
            if (i >= y_1 && k >= a[y_1 - 1]) \
                continue; \
            jot_i64 j = i < y_1 ? i : y_1 - 1; \
            for (; j > 0 && a[j - 1] > k; j--) { \
                a[j] = a[j - 1]; \
                at_a[j] = at_a[j - 1]; \
            } \
            a[j] = k; \
            at_a[j] = (jot_u32)i; \
        } \
        for (jot_i64 i = 0; y_1 == x_1 && i < x_1; i++) { \
            const ELEM v = from[i]; \
            KEY k; \
            KEY_OF \
            a[i] = down != 0 ? ~k : k; \
            at_a[i] = (jot_u32)i; \
        } \
        for (jot_i64 i = 1; x_1 <= 32 && i < y_1; i++) { \
            const KEY k = a[i]; \
            const jot_u32 place = at_a[i]; \
            jot_i64 j = i; \
            for (; j > 0 && a[j - 1] > k; j--) { \
                a[j] = a[j - 1]; \
                at_a[j] = at_a[j - 1]; \
            } \
            a[j] = k; \
            at_a[j] = place; \
        } \
        for (int bit = 0; y_1 == x_1 && x_1 > 32 && bit < (int)sizeof(KEY) * 8; bit += 8) { \
            jot_u32 sum = 0; \
            for (int d = 0; d < 256; d++) \
                count[d] = 0; \
            for (jot_i64 i = 0; i < x_1; i++) \
                count[a[i] >> bit & 255]++; \
            if (count[a[0] >> bit & 255] == (jot_u32)x_1) \
                continue; \
            for (int d = 0; d < 256; d++) { \
                const jot_u32 n = count[d]; \
                count[d] = sum; \
                sum += n; \
            } \
            for (jot_i64 i = 0; i < x_1; i++) { \
                const jot_u32 to = count[a[i] >> bit & 255]++; \
                b[to] = a[i]; \
                at_b[to] = at_a[i]; \
            } \
            GLOBAL KEY *const other = a; \
            GLOBAL jot_u32 *const at_other = at_a; \
            a = b; \
            b = other; \
            at_a = at_b; \
            at_b = at_other; \
        } \
        for (jot_i64 i = 0; i < y_1; i++) \
            y[row * y_1 + i] = (jot_i64)at_a[i]; \
    }
#define SORT_TEXT(...) SORT_TEXT_(__VA_ARGS__)
#define SORT_TEXT_(...) #__VA_ARGS__

/* The kernels of the dtypes that are sorted; the others are converted to one of them. */
#define SORT_DTYPES(X) \
    X(F32, float, jot_u32, SORT_F32) X(F64, double, jot_u64, SORT_F64) \
    X(I32, jot_i32, jot_u32, SORT_I32) X(I64, jot_i64, jot_u64, SORT_I64) \
    X(U32, jot_u32, jot_u32, SORT_WHOLE) X(U64, jot_u64, jot_u64, SORT_WHOLE)

/* The kernel's words, inside of functions: in one file with the library they are others' too. */
#define SORT_WORDS \
    typedef int32_t jot_i32; typedef int64_t jot_i64; typedef uint32_t jot_u32; \
    typedef uint64_t jot_u64; \
    (void)sizeof(jot_i32), (void)sizeof(jot_u64);

#define SORT_HOST(DTYPE, ELEM, KEY, KEY_OF) \
static void \
sort_host_##DTYPE(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars) \
{ \
    SORT_WORDS \
    const ELEM *x = buf[0]; \
    jot_i64 *y = buf[1]; \
    KEY *key_a = buf[2], *key_b = buf[3]; \
    jot_u32 *place_a = buf[4], *place_b = buf[5]; \
    const double down = scalars[0].f; \
    const jot_i64 lo = 0, hi = (jot_i64)scalars[1].f, x_1 = (jot_i64)scalars[2].f; \
    const jot_i64 y_1 = (jot_i64)scalars[3].f; \
    (void)user, (void)nbuf; \
    SORT_CODE(, ELEM, KEY, KEY_OF) \
}
SORT_DTYPES(SORT_HOST)

typedef struct { jot_DType dtype; const char *text, *opencl; jot_HostFn *host; } SortKernel;

#define SORT_KERNEL(DTYPE, ELEM, KEY, KEY_OF) \
    {JOT_##DTYPE, SORT_TEXT(SORT_CODE(, ELEM, KEY, KEY_OF)), \
     SORT_TEXT(SORT_CODE(__global, ELEM, KEY, KEY_OF)), sort_host_##DTYPE},
static const SortKernel sort_kernels[] = { SORT_DTYPES(SORT_KERNEL) };

static jot_DType
sort_dtype(jot_DType dtype)
{
    switch (dtype) {
    case JOT_F16: case JOT_BF16: return JOT_F32;
    case JOT_BOOL: case JOT_I8: case JOT_I16: case JOT_U8: case JOT_U16: return JOT_I32;
    default: return dtype;
    }
}

/* x (rows, n) -> i64 (rows, first) */
static jot_Var
sort_rows(jot_Var x, int64_t first, bool descending)
{
    static const char *const in_names[] = {"x"};
    const SortKernel *k = sort_kernels;
    jot_Var out[5];
    jot_Ints shape = JOT_SHAPE(jot_extent(x, 0), first);
    jot_CodeScalar scalars[4] = {{"down", descending}, {"rows", (double)jot_extent(x, 0)},
                                 {"extent", (double)jot_extent(x, 1)}, {"first", (double)first}};
    jot_CodeOut outs[5] = {{"y", JOT_I64, {0, NULL}, NULL},
                           {"key_a", JOT_U32, {0, NULL}, NULL}, {"key_b", JOT_U32, {0, NULL}, NULL},
                           {"place_a", JOT_U32, {0, NULL}, NULL},
                           {"place_b", JOT_U32, {0, NULL}, NULL}};
    jot_Code code = {.name = "argsort", .inputs = 1, .in_names = in_names, .outputs = 5,
                     .out = outs, .scalars = 4, .scalar = scalars, .parallel = "x_0"};
    x = jot_cast(x, sort_dtype(jot_dtype(x)));
    if (!jot_ok(x)) /* memory was refused */
        return nn_poison(x.ctx);
    while (k->dtype != jot_dtype(x))
        k++;
    for (int i = 0; i < 5; i++)
        outs[i].shape = shape;
    if (jot_dtype_nbytes(k->dtype) == 8)
        outs[1].dtype = outs[2].dtype = JOT_U64;
    code.in = &x;
    code.source = k->text;
    code.host = k->host;
    code.opencl.source = k->opencl;
    code.cuda.source = k->text;
    return jot_code(x.ctx, &code, out) ? out[0] : nn_poison(x.ctx);
}

/* ---- in a dimension ---- */

static bool
sort_check(jot_Var x, int *dim, const char *op)
{
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, dim, op))
        return false;
    if (jot_extent(x, *dim) <= UINT32_MAX)
        return true;
    jot_raise(x.ctx, JOT_ESHAPE, "%s: x: less than 2^32 elements asked (dimension %d), %lld found",
              op, *dim, (long long)jot_extent(x, *dim));
    return false;
}

/* Of x (outer, n, inner): the first positions in order, and x at such positions. */
static jot_Var
sort_first(jot_Var x, int64_t first, bool descending)
{
    int64_t outer = jot_extent(x, 0), n = jot_extent(x, 1), inner = jot_extent(x, 2);
    int64_t most = first > 0 && first <= SORT_FEW && first <= n / 2 ? first : n;
    jot_Var rows = jot_reshape(jot_swap(x, 1, 2), JOT_SHAPE(outer * inner, n));
    rows = jot_narrow(sort_rows(rows, most, descending), 1, 0, first);
    return jot_swap(jot_reshape(rows, JOT_SHAPE(outer, inner, first)), 1, 2);
}

static jot_Var
sort_order(jot_Var x, bool descending)
{
    return sort_first(x, jot_extent(x, 1), descending);
}

static jot_Var
sort_take(jot_Var x, jot_Var order)
{
    return jot_reindex_ex(x, jot_shape(order), JOT_INDEX("i0", "@e0(i0,i1,i2)", "i2"),
                          JOT_NONE_STRS, 0, JOT_VARS(order));
}

/* y (outer, k, inner) in the dimensions of x, dim k long; keep false: dim is 1 and goes. */
static jot_Var
sort_leave(jot_Var x, jot_Var y, int dim, bool keep)
{
    int64_t shape[JOT_MAX_RANK];
    int n = 0;
    for (int d = 0; d < jot_rank(x); d++)
        if (d != dim || keep)
            shape[n++] = d == dim ? jot_extent(y, 1) : jot_extent(x, d);
    return jot_leave(x.ctx, jot_reshape(y, jot_ints(n, shape)));
}

jot_Var
jot_argsort(jot_Var x, int dim, bool descending)
{
    if (!sort_check(x, &dim, "argsort"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    return sort_leave(x, sort_order(nn_three(x, dim), descending), dim, true);
}

jot_Var
jot_sort(jot_Var x, int dim, bool descending)
{
    if (!sort_check(x, &dim, "sort"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var t = nn_three(x, dim);
    return sort_leave(x, sort_take(t, sort_order(t, descending)), dim, true);
}

/* Where each element stands in the order: the order of the order. */
jot_Var
jot_ranks(jot_Var x, int dim)
{
    if (!sort_check(x, &dim, "ranks"))
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    jot_Var order = sort_order(nn_three(x, dim), false);
    return sort_leave(x, sort_order(order, false), dim, true);
}

bool
jot_topk(jot_Var x, int dim, int64_t k, bool largest, jot_Var *values, jot_Var *positions)
{
    if (!values || !positions)
        return jot_raise(x.ctx, JOT_EUSE, "topk: values and positions: places for two results "
                         "asked, none found"), false;
    *values = *positions = nn_poison(x.ctx);
    if (!sort_check(x, &dim, "topk"))
        return false;
    if (k < 0 || k > jot_extent(x, dim)) {
        jot_raise(x.ctx, JOT_ERANGE, "topk: k: 0..%lld asked (dimension %d), %lld found",
                  (long long)jot_extent(x, dim), dim, (long long)k);
        return false;
    }
    jot_push(x.ctx);
    jot_Var t = nn_three(x, dim), order = sort_first(t, k, largest);
    *positions = jot_keep(order);
    *values = sort_leave(x, sort_take(t, order), dim, true);
    jot_push(x.ctx);
    jot_Var p = *positions;
    *positions = sort_leave(x, p, dim, true);
    jot_free(p);
    if (jot_ok(*values) && jot_ok(*positions))
        return true;
    jot_free(jot_ok(*values) ? *values : *positions);
    *values = *positions = nn_poison(x.ctx);
    return false;
}

/* The element at part q of the order along dim, which may lie between two, or (down) the one below;
 * NaN where there is one. In the caller's scope, and in the shape of nn_three. */
static jot_Var
sort_between(jot_Var x, int dim, double q, bool down)
{
    int64_t n = jot_extent(x, dim), low = down ? (n - 1) / 2 : (int64_t)(q * (double)(n - 1));
    double part = down ? 0 : q * (double)(n - 1) - (double)low;
    jot_Var t = nn_three(x, dim), order = sort_order(t, false), y;
    jot_Var last = sort_take(t, jot_narrow(order, 1, n - 1, 1));
    y = sort_take(t, jot_narrow(order, 1, low, 1));
    if (part > 0) {
        jot_Var next = sort_take(t, jot_narrow(order, 1, low + 1, 1));
        y = jot_add(y, jot_scale(jot_sub(next, y), part));
    }
    return jot_where(jot_isnan(last), jot_cast(last, jot_dtype(y)), y);
}

/* What is left of the dimensions of x when dims are reduced, and which they are: all, first of the
 * others and then of these, in order. How many are reduced; -1 after a failure. */
static int
sort_dims(jot_Var x, jot_Dims dims, const char *op, int64_t *order, jot_Ints *left, int64_t *ext)
{
    int rank = jot_rank(x), n = 0, first;
    bool gone[JOT_MAX_RANK] = {false};
    if (dims.n > 0 && !dims.v)
        return jot_raise(x.ctx, JOT_EUSE, "%s: dims: a list asked, none found", op), -1;
    for (int k = 0; k < dims.n; k++) {
        int d = dims.v[k] < -rank || dims.v[k] >= rank ? rank : (int)dims.v[k];
        if (!nn_dim(x, &d, op))
            return -1;
        if (gone[d])
            return jot_raise(x.ctx, JOT_ERANGE, "%s: dims: %d is given twice", op, d), -1;
        gone[d] = true;
    }
    for (int d = 0; d < rank; d++)
        n += gone[d] = gone[d] || dims.n < 0;
    first = rank - n;
    *left = jot_ints(0, ext);
    for (int d = 0, kept = 0; d < rank; d++) {
        order[gone[d] ? first++ : kept++] = d;
        if (!gone[d] || dims.keep)
            ext[left->n++] = gone[d] ? 1 : jot_extent(x, d);
    }
    return n;
}

/* Several dimensions become the last one before they are sorted, one stays where it is. */
static jot_Var
sort_over(jot_Var x, jot_Dims dims, double q, bool down, const char *op)
{
    int64_t order[JOT_MAX_RANK], ext[JOT_MAX_RANK], merged[JOT_MAX_RANK + 1];
    jot_Ints left;
    if (!jot_check(x.ctx, x, op, "x"))
        return nn_poison(x.ctx);
    int n = sort_dims(x, dims, op, order, &left, ext), at = jot_rank(x) - n, dim = at;
    if (n < 0)
        return nn_poison(x.ctx);
    jot_push(x.ctx);
    merged[at] = 1;
    for (int k = 0; k < at + n; k++)
        if (k < at)
            merged[k] = jot_extent(x, (int)order[k]);
        else
            merged[at] *= jot_extent(x, (int)order[k]);
    jot_Var y = x;
    if (n == 1)
        dim = (int)order[at];
    else
        y = jot_reshape(jot_transpose(x, jot_ints(at + n, order)), jot_ints(at + 1, merged));
    if (!sort_check(y, &dim, op))
        return jot_leave(x.ctx, nn_poison(x.ctx));
    if (!jot_extent(y, dim))
        return jot_leave(x.ctx, jot_raise(x.ctx, JOT_ESHAPE, "%s: x: at least 1 element asked in "
                                          "what is reduced, 0 found", op));
    return jot_leave(x.ctx, jot_reshape(sort_between(y, dim, q, down), left));
}

jot_Var
jot_median(jot_Var x, jot_Dims dims)
{
    return sort_over(x, dims, 0, true, "median");
}

jot_Var
jot_quantile(jot_Var x, jot_Dims dims, double q)
{
    if (!jot_check(x.ctx, x, "quantile", "x"))
        return nn_poison(x.ctx);
    if (!(q >= 0 && q <= 1))
        return jot_raise(x.ctx, JOT_ERANGE, "quantile: q: 0..1 asked, %g found", q);
    jot_push(x.ctx);
    return jot_leave(x.ctx, sort_over(jot_cast(x, nn_float_of(jot_dtype(x))), dims, q, false,
                                      "quantile"));
}

jot_Var
jot_permutation(jot_Ctx *ctx, int64_t n)
{
    jot_Var u = jot_uniform(ctx, JOT_F64, JOT_SHAPE(n)), p = jot_argsort(u, 0, false);
    jot_free(u);
    return p;
}
