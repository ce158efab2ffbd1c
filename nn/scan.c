/* nn/scan.c - running reductions along a dimension.
 *
 *     y[i] = sum over k of (k <= i ? x[k] : 0)      of up to 4,096 elements: a kernel goes on from
 *                                                   element to element (ccode/ir/running.c)
 *     n of x in blocks     sums of blocks --scan, exclusive--> what stands before each block
 *                          y = what stands before the block, and what runs within it
 *
 * Sums and products of halves and floats are made in f64, so what is rounded is the result. Longer
 * dimensions go in blocks of 256: every step is as parallel as its blocks are many, and the data
 * are read twice. The gradient of a sum is the sum from the other end. That of the others, and the
 * logarithm of a sum, whose terms are no running ones, are of blocks of 16, each of whose results
 * is a reduction of its own terms. So is all that the interpreter runs, which looks for no form and
 * would walk each pair of elements, and a device, which has items for many small blocks and few for
 * whole rows.
 *
 * Read before: nn/parts.h. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

enum { SCAN_WHOLE = 4096, SCAN_BLOCK = 256, SCAN_APART = 32, SCAN_BLOCK_APART = 16 };

/* log: of the exponentials of what is added, as their logarithm. apart: blocks of few elements,
 * whose results are reduced each by itself. */
typedef struct { jot_ReduceOp op; bool log, exclusive, reverse, apart; double identity; } Scan;

static jot_Var
scan_combine(const Scan *s, jot_Var a, jot_Var b)
{
    switch (s->op) {
    case JOT_ADD: return s->log ? jot_logaddexp(a, b) : jot_add(a, b);
    case JOT_MUL: return jot_mul(a, b);
    case JOT_MAX: return jot_maximum(a, b);
    default: return jot_minimum(a, b);
    }
}

/* log sum exp(t) is that of t - m, and m, for any m: the largest, or 0 where there is none. Nothing
 * has -inf for it without asking for the logarithm of 0, whose derivative is not finite. */
static jot_Var
scan_reduce(const Scan *s, jot_Var t, int dim)
{
    if (!s->log)
        return jot_reduce(s->op, t, JOT_DIMS(dim));
    jot_Var m = jot_stop_grad(jot_reduce(JOT_MAX, t, JOT_KEEP(dim)));
    m = jot_where(jot_isinf(m), nn_zero(m), m);
    jot_Var sum = jot_reduce(JOT_ADD, jot_exp(jot_sub(t, m)), JOT_DIMS(dim));
    jot_Var none = jot_eq(sum, nn_zero(sum)), least = nn_number(sum, s->identity);
    sum = jot_where(none, nn_number(sum, 1), sum);
    return jot_where(none, least, jot_add(jot_log(sum), jot_squeeze(m, dim)));
}

/* Sums and products of floats are made in f64. */
static jot_Var
scan_wide(const Scan *s, jot_Var x)
{
    bool wide = !s->apart && (s->op == JOT_ADD || s->op == JOT_MUL) && jot_dtype(x) == JOT_F32;
    return wide ? jot_cast(x, JOT_F64) : x;
}

/* x (outer, blocks, n, inner): for each of the n the terms up to it, of a dimension of their own;
 * the others are numbers that add nothing. The least integer is no constant of a kernel, but of a
 * map it is. */
static jot_Var
scan_terms(const Scan *s, jot_Var x)
{
    static const char *const upto[2][2] = {{"i3<=i2", "i3<i2"}, {"i3>=i2", "i3>i2"}};
    int64_t n = jot_extent(x, 2);
    jot_Ints shape = JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1), n, n, jot_extent(x, 3));
    jot_Strs index = JOT_INDEX("i0", "i1", "i3", "i4");
    if (jot_dtype(x) < JOT_F16 && s->op != JOT_ADD)
        return scan_reduce(s, jot_reindex_ex(x, shape, index,
                                             jot_strs(1, &upto[s->reverse][s->exclusive]),
                                             s->identity, JOT_NONE_VARS), 3);
    jot_Var to = jot_iota(x.ctx, JOT_I32, JOT_SHAPE(n, n, 1), 0);
    jot_Var from = jot_iota(x.ctx, JOT_I32, JOT_SHAPE(n, n, 1), 1);
    jot_Var near = s->reverse ? to : from, far = s->reverse ? from : to;
    x = scan_wide(s, x);
    jot_Var terms = jot_reindex(x, shape, index), none = nn_number(x, s->identity);
    if (s->apart) /* said the other way round, which nothing takes for what runs */
        return scan_reduce(s, jot_where(s->exclusive ? jot_ge(near, far) : jot_gt(near, far), none,
                                        terms), 3);
    return scan_reduce(s, jot_where(s->exclusive ? jot_lt(near, far) : jot_le(near, far), terms,
                                    none), 3);
}

static bool
scan_on(jot_Ctx *ctx, const char *backend)
{
    const char *name = jot_backend(ctx);

    for (; *name && *name == *backend; backend++)
        name++;
    return *name == *backend;
}

/* x (outer, n, inner). What stands before blocks is stored, but of blocks' blocks: each of a
 * block's terms would make it again. */
static jot_Var
scan_run(const Scan *s, jot_Var x, bool within)
{
    int64_t outer = jot_extent(x, 0), n = jot_extent(x, 1), inner = jot_extent(x, 2);
    bool few = s->apart || scan_on(x.ctx, "interp");
    int64_t block = few ? SCAN_BLOCK_APART : SCAN_BLOCK;
    int64_t blocks = (n + block - 1) / block, all = blocks * block;
    jot_DType dtype = jot_dtype(x);
    if (n <= (few ? SCAN_APART : SCAN_WHOLE))
        return jot_reshape(jot_cast(scan_terms(s, jot_reshape(x, JOT_SHAPE(outer, 1, n, inner))),
                                    dtype), JOT_SHAPE(outer, n, inner));
    Scan before = *s;
    before.exclusive = true;
    if (all > n)
        x = jot_pad(x, JOT_INTS(0, 0, 0), JOT_INTS(0, all - n, 0), s->identity);
    x = jot_reshape(x, JOT_SHAPE(outer, blocks, block, inner));
    jot_Var sums = scan_reduce(s, scan_wide(s, x), 2);
    sums = scan_run(&before, s->apart ? sums : jot_stop_fuse(sums), true);
    sums = within && s->apart ? sums : jot_stop_fuse(sums);
    jot_Var y = jot_cast(scan_combine(s, jot_unsqueeze(sums, 2), scan_terms(s, x)), dtype);
    return jot_narrow(jot_reshape(y, JOT_SHAPE(outer, all, inner)), 1, 0, n);
}

static Scan
scan_of(jot_ReduceOp op, unsigned how, jot_DType dtype)
{
    static const double identity[] = {0, 1};
    Scan s = {op, false, how & JOT_SCAN_EXCLUSIVE, how & JOT_SCAN_REVERSE, false, 0};
    s.identity = op == JOT_MAX ? -nn_infinity() : op == JOT_MIN ? nn_infinity() : identity[op];
    if (dtype == JOT_BOOL && op == JOT_MAX) /* where -inf is true */
        s.identity = 0;
    return s;
}

static bool
scan_grad(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    unsigned how = *(const unsigned *)user;
    Scan s = scan_of((jot_ReduceOp)(how / 4), how % 4, jot_dtype(x.v[0]));
    jot_Var apart;
    (void)y;
    s.apart = true;
    apart = scan_run(&s, x.v[0], false);
    return jot_vjp(JOT_VARS(apart), dy, x, dx);
}

static jot_Var
scan_along(const Scan *given, jot_Var x, int dim, const char *op)
{
    static const unsigned hows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const unsigned *how = &hows[4 * given->op + 2u * given->reverse + given->exclusive];
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
    Scan s = *given;
    jot_DType dtype = jot_dtype(x);
    bool sums = s.op == JOT_ADD || s.op == JOT_MUL, floats = dtype >= JOT_F16 || s.log;
    s.apart = s.apart || scan_on(x.ctx, "opencl") || scan_on(x.ctx, "cuda");
    jot_push(x.ctx);
    jot_Var y = floats ? nn_wide(x) : !sums ? x
              : jot_cast(x, dtype >= JOT_U8 && dtype <= JOT_U64 ? JOT_U64 : JOT_I64);
    if (jot_nelem(x) || (sums && !s.log)) { /* a maximum of nothing is refused */
        jot_Var three = nn_three(y, dim);
        y = scan_run(&s, three, false);
        if (floats && !s.log && !s.apart && s.op != JOT_ADD && !scan_on(x.ctx, "interp")
            && !jot_custom_grad(JOT_VARS(y), JOT_VARS(three), scan_grad, (void *)(uintptr_t)how,
                                &y))
            y = nn_poison(x.ctx);
        y = jot_reshape(y, jot_shape(x));
    }
    return jot_leave(x.ctx, dtype < JOT_F16 ? y : jot_cast(y, dtype));
}

jot_Var
jot_scan(jot_ReduceOp op, jot_Var x, int dim, unsigned how)
{
    const unsigned all = JOT_SCAN_EXCLUSIVE | JOT_SCAN_REVERSE;
    if (op != JOT_ADD && op != JOT_MUL && op != JOT_MAX && op != JOT_MIN)
        return jot_raise(x.ctx, JOT_EUSE, "scan: op: JOT_ADD, JOT_MUL, JOT_MAX or JOT_MIN asked, "
                         "%d found", (int)op);
    if (how & ~all)
        return jot_raise(x.ctx, JOT_EUSE, "scan: how: flags of 0..%u asked, %u found", all, how);
    Scan s = scan_of(op, how, jot_ok(x) ? jot_dtype(x) : JOT_F32);
    return scan_along(&s, x, dim, "scan");
}

static jot_Var
scan_up_to(jot_ReduceOp op, jot_Var x, int dim, const char *name)
{
    Scan s = scan_of(op, 0, jot_ok(x) ? jot_dtype(x) : JOT_F32);
    return scan_along(&s, x, dim, name);
}

jot_Var
jot_cumsum(jot_Var x, int dim)
{
    return scan_up_to(JOT_ADD, x, dim, "cumsum");
}

jot_Var
jot_cumprod(jot_Var x, int dim)
{
    return scan_up_to(JOT_MUL, x, dim, "cumprod");
}

jot_Var
jot_cummax(jot_Var x, int dim)
{
    return scan_up_to(JOT_MAX, x, dim, "cummax");
}

jot_Var
jot_cummin(jot_Var x, int dim)
{
    return scan_up_to(JOT_MIN, x, dim, "cummin");
}

jot_Var
jot_logcumsumexp(jot_Var x, int dim)
{
    const Scan s = {JOT_ADD, true, false, false, true, -nn_infinity()};
    return scan_along(&s, x, dim, "logcumsumexp");
}
