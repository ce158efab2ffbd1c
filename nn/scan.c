/* nn/scan.c - running reductions along a dimension.
 *
 *     n of x in blocks of 16     sums of blocks --scan, exclusive--> what stands before each block
 *                                within a block: each of its 16 sums, of the terms up to its own
 *                                y = what stands before the block, and that
 *
 * Sixteen terms for each element, in vectors, are hidden behind the memory's time; the sums of
 * blocks are a sixteenth as many, and scanned in the same way. So the data are read twice and
 * written once, every step is as parallel as its blocks are many, whichever dimension it is, and a
 * sum's rounding error grows with the logarithm of its terms. The gradient is made of the same: it
 * is the scan from the other end.
 *
 * Read before: nn/parts.h. After: nn.h. */
#include "nn.h"
#include "nn/parts.h"

enum { SCAN_BLOCK = 16, SCAN_SHORT = 32 };

/* log: of the exponentials of what is added, as their logarithm. */
typedef struct { jot_ReduceOp op; bool log, exclusive, reverse; double identity; } Scan;

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

/* x (outer, blocks, n, inner): for each of the n the terms up to it, of a dimension of their own.
 * Where vectors lie along `inner`, the others are not there, and no loop turns for them. Else they
 * are numbers that add nothing, chosen element by element: a block's sums lie in one vector, to
 * which each element is added where it counts. */
static jot_Var
scan_terms(const Scan *s, jot_Var x)
{
    static const char *const upto[2][2] = {{"i3<=i2", "i3<i2"}, {"i3>=i2", "i3>i2"}};
    int64_t n = jot_extent(x, 2), inner = jot_extent(x, 3);
    jot_Ints shape = JOT_SHAPE(jot_extent(x, 0), jot_extent(x, 1), n, n, inner);
    jot_Strs index = JOT_INDEX("i0", "i1", "i3", "i4");
    jot_Strs counts = jot_strs(1, &upto[s->reverse][s->exclusive]);
    if (inner > 1)
        return scan_reduce(s, jot_reindex_ex(x, shape, index, counts, s->identity, JOT_NONE_VARS),
                           3);
    jot_Var to = jot_iota(x.ctx, JOT_I32, JOT_SHAPE(n, n, 1), 0);
    jot_Var from = jot_iota(x.ctx, JOT_I32, JOT_SHAPE(n, n, 1), 1);
    jot_Var near = s->reverse ? to : from, far = s->reverse ? from : to;
    jot_Var count = s->exclusive ? jot_lt(near, far) : jot_le(near, far);
    jot_Var none = nn_number(x, s->identity);
    return scan_reduce(s, jot_where(count, jot_reindex(x, shape, index), none), 3);
}

/* x (outer, n, inner). What stands before blocks is stored, but of blocks' blocks: each of a
 * block's terms would make it again. */
static jot_Var
scan_run(const Scan *s, jot_Var x, bool within)
{
    int64_t outer = jot_extent(x, 0), n = jot_extent(x, 1), inner = jot_extent(x, 2);
    int64_t blocks = (n + SCAN_BLOCK - 1) / SCAN_BLOCK, all = blocks * SCAN_BLOCK;
    if (n <= SCAN_SHORT)
        return jot_reshape(scan_terms(s, jot_reshape(x, JOT_SHAPE(outer, 1, n, inner))),
                           JOT_SHAPE(outer, n, inner));
    Scan before = *s;
    before.exclusive = true;
    if (all > n)
        x = jot_pad(x, JOT_INTS(0, 0, 0), JOT_INTS(0, all - n, 0), s->identity);
    x = jot_reshape(x, JOT_SHAPE(outer, blocks, SCAN_BLOCK, inner));
    jot_Var sums = scan_run(&before, scan_reduce(s, x, 2), true);
    sums = within ? sums : jot_stop_fuse(sums);
    jot_Var y = scan_combine(s, jot_unsqueeze(sums, 2), scan_terms(s, x));
    return jot_narrow(jot_reshape(y, JOT_SHAPE(outer, all, inner)), 1, 0, n);
}

/* Halves are added up in f32. */
static jot_Var
scan_along(const Scan *given, jot_Var x, int dim, const char *op)
{
    Scan s = *given;
    if (!jot_check(x.ctx, x, op, "x") || !nn_dim(x, &dim, op))
        return nn_poison(x.ctx);
    jot_DType dtype = jot_dtype(x);
    if (dtype == JOT_BOOL && s.op == JOT_MAX) /* where -inf is true */
        s.identity = 0;
    jot_push(x.ctx);
    jot_Var y = dtype < JOT_F16 && !s.log ? x : nn_wide(x);
    bool sums = s.op == JOT_ADD || s.op == JOT_MUL;
    if (jot_nelem(x) || (sums && !s.log)) /* a maximum of nothing is refused */
        y = jot_reshape(scan_run(&s, nn_three(y, dim), false), jot_shape(x));
    return jot_leave(x.ctx, dtype < JOT_F16 ? y : jot_cast(y, dtype));
}

jot_Var
jot_scan(jot_ReduceOp op, jot_Var x, int dim, unsigned how)
{
    const unsigned all = JOT_SCAN_EXCLUSIVE | JOT_SCAN_REVERSE;
    Scan s = {op, false, how & JOT_SCAN_EXCLUSIVE, how & JOT_SCAN_REVERSE, 0};
    if (op != JOT_ADD && op != JOT_MUL && op != JOT_MAX && op != JOT_MIN)
        return jot_raise(x.ctx, JOT_EUSE, "scan: op: JOT_ADD, JOT_MUL, JOT_MAX or JOT_MIN asked, "
                         "%d found", (int)op);
    if (how & ~all)
        return jot_raise(x.ctx, JOT_EUSE, "scan: how: flags of 0..%u asked, %u found", all, how);
    if (op != JOT_ADD)
        s.identity = op == JOT_MUL ? 1 : op == JOT_MAX ? -nn_infinity() : nn_infinity();
    return scan_along(&s, x, dim, "scan");
}

jot_Var
jot_cumsum(jot_Var x, int dim)
{
    static const Scan s = {JOT_ADD, false, false, false, 0};
    return scan_along(&s, x, dim, "cumsum");
}

jot_Var
jot_cumprod(jot_Var x, int dim)
{
    static const Scan s = {JOT_MUL, false, false, false, 1};
    return scan_along(&s, x, dim, "cumprod");
}

jot_Var
jot_cummax(jot_Var x, int dim)
{
    const Scan s = {JOT_MAX, false, false, false, -nn_infinity()};
    return scan_along(&s, x, dim, "cummax");
}

jot_Var
jot_cummin(jot_Var x, int dim)
{
    const Scan s = {JOT_MIN, false, false, false, nn_infinity()};
    return scan_along(&s, x, dim, "cummin");
}

jot_Var
jot_logcumsumexp(jot_Var x, int dim)
{
    const Scan s = {JOT_ADD, true, false, false, -nn_infinity()};
    return scan_along(&s, x, dim, "logcumsumexp");
}
