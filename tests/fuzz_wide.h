/* tests/fuzz_wide.h - random programs of every dtype and nearly every operator of core.h, longer
 * vectors, maps of drawn text, layers of networks, random numbers and a user's expressions.
 *
 * Beside what tests/fuzz_programs.h says of `exact`: a value is exact while its bits fit `cap`, the
 * significant bits of the narrowest dtype on its way, and is at most 2^mag. What rounds is judged
 * by the same program of doubles (all64): what that differs by is how far rounding goes.
 *
 * Read before: tests/fuzz_programs.h. */
#ifndef JOT_FUZZ_WIDE_H
#define JOT_FUZZ_WIDE_H
#include <stdio.h>
#include "tests/fuzz_programs.h"

enum { WIDE_MOST = 5000, ROUNDS = 99 };

static bool
whole(jot_Var v)
{
    return jot_dtype(v) < JOT_F16;
}

static void
put(Prog *p, jot_Var v, int bits, int mag)
{
    Val *x = &p->val[p->n];

    if (p->n == VARS || !jot_ok(v) || jot_nelem(v) > WIDE_MOST || jot_rank(v) > JOT_MAX_RANK - 4 ||
        (!whole(v) && mag > p->room))
        return;
    x->v = v;
    x->real = !whole(v);
    x->bits = !x->real ? 1 : bits > p->cap ? ROUNDS : bits;
    x->mag = !x->real ? 0 : mag < 0 ? 0 : mag;
    x->cap = !x->real ? ROUNDS : p->cap;
    p->n++;
}

static bool
exact(Val a)
{
    return !a.real || a.bits < ROUNDS;
}

static jot_DType
float_of(Prog *p, jot_DType dtype)
{
    return p->all64 ? JOT_F64 : dtype;
}

static int
cap_of(jot_DType dtype)
{
    return dtype == JOT_F64 ? 45 : dtype == JOT_F32 ? 20 : dtype == JOT_F16 ? 9 : 6;
}

static jot_Var
beyond_one(jot_Var x)
{
    return jot_offset(jot_square(x), 1);
}

/* Of a float; mags of what is bounded by 1, grows as x does, or is below x^2 + 1. */
static void
wide_smooth(Prog *p, Val a)
{
    static jot_Var (*const f[])(jot_Var) = {
        jot_tanh, jot_sin, jot_cos, jot_sigmoid, jot_erf, jot_erfc, jot_atan, jot_softplus,
        jot_asinh, jot_gelu, jot_gelu_tanh};
    jot_Var x = a.v, t = jot_tanh(x), h = jot_scale(t, 0.5);
    int two = 2 * a.mag + 1, k = draw(p, 31);

    if (k < 11)
        put(p, f[k](x), ROUNDS, k < 5 ? 0 : k < 7 ? 1 : a.mag + 1);
    switch (k) {
    case 0: case 1: case 2: case 3: case 4: case 5: case 6: case 7: case 8: case 9: case 10: break;
    case 11: put(p, jot_exp(t), ROUNDS, 2); break;
    case 12: put(p, jot_exp2(t), ROUNDS, 1); break;
    case 13: put(p, jot_expm1(t), ROUNDS, 1); break;
    case 14: put(p, jot_sinh(t), ROUNDS, 1); break;
    case 15: put(p, jot_cosh(t), ROUNDS, 1); break;
    case 16: put(p, jot_tan(t), ROUNDS, 1); break;
    case 17: put(p, jot_asin(h), ROUNDS, 1); break;
    case 18: put(p, jot_acos(h), ROUNDS, 2); break;
    case 19: put(p, jot_atanh(h), ROUNDS, 1); break;
    case 20: put(p, jot_acosh(jot_offset(jot_square(t), 2)), ROUNDS, 1); break;
    case 21: if (two <= p->room) put(p, jot_sqrt(beyond_one(x)), ROUNDS, a.mag + 1); break;
    case 22: if (two <= p->room) put(p, jot_rsqrt(beyond_one(x)), ROUNDS, 0); break;
    case 23: if (two <= p->room) put(p, jot_log(beyond_one(x)), ROUNDS, 6); break;
    case 24: if (two <= p->room) put(p, jot_log2(beyond_one(x)), ROUNDS, 6); break;
    case 25: if (two <= p->room) put(p, jot_log10(beyond_one(x)), ROUNDS, 4); break;
    case 26: if (two <= p->room) put(p, jot_log1p(jot_square(x)), ROUNDS, 6); break;
    case 27: if (two <= p->room) put(p, jot_reciprocal(beyond_one(x)), ROUNDS, 0); break;
    case 28: if (two <= p->room) put(p, jot_cbrt(beyond_one(x)), ROUNDS, a.mag + 1); break;
    case 29: put(p, jot_square(x), 2 * a.bits, 2 * a.mag); break;
    default: put(p, jot_neg(x), a.bits, a.mag);
    }
}

static void
wide_unary(Prog *p)
{
    Val a = *pick(p);
    jot_Var x = a.v;

    if (a.real && (!exact(a) || draw(p, 2))) {
        wide_smooth(p, a);
        return;
    }
    if (!a.real) {
        switch (draw(p, 8)) {
        case 0: put(p, jot_neg(x), 1, 0); break;
        case 1: put(p, jot_abs(x), 1, 0); break;
        case 2: put(p, jot_sign(x), 1, 0); break;
        case 3: put(p, jot_bit_not(x), 1, 0); break;
        case 4: put(p, jot_logical_not(x), 1, 0); break;
        case 5: put(p, jot_square(x), 1, 0); break;
        case 6: put(p, jot_cast(x, (jot_DType)draw(p, JOT_F16)), 1, 0); break;
        default: /* a float from here on: few bits of it */
            p->cap = cap_of(JOT_F32);
            put(p, jot_cast(jot_bit_and(x, jot_full_int(p->c, JOT_I8, JOT_SHAPE(), 7)),
                            float_of(p, JOT_F32)), 3, 3);
        }
        return;
    }
    switch (draw(p, 12)) {
    case 0: put(p, jot_abs(x), a.bits, a.mag); break;
    case 1: put(p, jot_floor(x), a.bits + 1, a.mag + 1); break;
    case 2: put(p, jot_ceil(x), a.bits + 1, a.mag + 1); break;
    case 3: put(p, jot_round(x), a.bits + 1, a.mag + 1); break;
    case 4: put(p, jot_trunc(x), a.bits, a.mag); break;
    case 5: put(p, jot_sign(x), 1, 0); break;
    case 6: put(p, jot_relu(x), a.bits, a.mag); break;
    case 7: put(p, jot_clamp(x, -1.25, 2), a.bits + 3, 1); break;
    case 8: put(p, draw(p, 2) ? jot_isfinite(x) : jot_isnan(x), 1, 0); break;
    case 9: put(p, jot_logical_not(x), 1, 0); break;
    case 10: /* what fits every integer: from 0 to 127 */
        put(p, jot_cast(jot_clamp(x, 0, 127), (jot_DType)draw(p, JOT_F16)), 1, 0);
        break;
    default: {
        static const jot_DType to[] = {JOT_F16, JOT_BF16, JOT_F32, JOT_F64};
        jot_DType dtype = to[draw(p, 4)];

        if (a.bits <= cap_of(dtype) && (dtype >= JOT_F32 || p->room <= 9)) {
            p->cap = cap_of(dtype);
            put(p, jot_cast(x, float_of(p, dtype)), a.bits, a.mag);
        }
    }
    }
}

/* What broadcasts against a, of its kind; itself, or a sum of it with kept dimensions. */
static Val
wide_partner(Prog *p, Val a)
{
    int i, k, ra = jot_rank(a.v);

    for (i = 0; i < 8; i++) {
        Val b = p->val[draw(p, p->n)];
        int rb = jot_rank(b.v);
        bool fits = b.real == a.real;

        for (k = 1; fits && k <= ra && k <= rb; k++)
            fits = jot_extent(a.v, -k) == jot_extent(b.v, -k) || jot_extent(a.v, -k) == 1 ||
                   jot_extent(b.v, -k) == 1;
        if (fits) {
            p->cap = b.cap < p->cap ? b.cap : p->cap;
            return b;
        }
    }
    if (ra && draw(p, 2)) {
        int64_t d = draw(p, ra);

        if (a.real && a.bits < ROUNDS)
            a.bits += log2_up(jot_extent(a.v, (int)d));
        a.mag += log2_up(jot_extent(a.v, (int)d));
        a.v = jot_reduce(JOT_ADD, a.v, jot_dims(1, &d, true));
        if (a.real && (a.bits > p->cap || a.bits >= ROUNDS))
            a.bits = ROUNDS;
    }
    return a;
}

static void
wide_whole_binary(Prog *p, jot_Var x, jot_Var y)
{
    static jot_Var (*const f[])(jot_Var, jot_Var) = {
        jot_add, jot_sub, jot_mul, jot_floordiv, jot_mod, jot_maximum, jot_fmin, jot_eq, jot_ne,
        jot_lt, jot_ge, jot_logical_and, jot_logical_or, jot_logical_xor, jot_bit_and, jot_bit_or,
        jot_bit_xor, jot_shift_left, jot_shift_right};
    int k = draw(p, 20);

    put(p, k < 19 ? f[k](x, y) : jot_where(x, y, jot_bit_not(y)), 1, 0);
}

static void
wide_binary(Prog *p)
{
    static const char *const slopes[] = {"1 + b", "a"};
    Val a = *pick(p), b = wide_partner(p, a);
    jot_Var x = a.v, y = b.v, two = jot_scalar(p->c, float_of(p, JOT_F16), 2);
    int mag = a.mag > b.mag ? a.mag : b.mag, bits = a.bits > b.bits ? a.bits : b.bits;
    bool sharp = exact(a) && exact(b);

    if (!a.real) {
        wide_whole_binary(p, x, y);
        return;
    }
    switch (draw(p, sharp ? 22 : 11)) {
    case 0: put(p, jot_add(x, y), bits + 1, mag + 1); break;
    case 1: put(p, jot_sub(x, y), bits + 1, mag + 1); break;
    case 2: case 3: put(p, jot_mul(x, y), a.bits + b.bits, a.mag + b.mag); break;
    case 4: if (2 * b.mag < p->room) put(p, jot_div(x, beyond_one(y)), ROUNDS, a.mag); break;
    case 5: if (2 * mag < p->room) put(p, jot_hypot(x, beyond_one(y)), ROUNDS, 2 * mag + 2); break;
    case 6: if (2 * b.mag < p->room) put(p, jot_atan2(x, beyond_one(y)), ROUNDS, 2); break;
    case 7: put(p, jot_logaddexp(x, y), ROUNDS, mag + 1); break;
    case 8: put(p, jot_pow(jot_offset(jot_square(jot_tanh(x)), 1), jot_tanh(y)), ROUNDS, 1); break;
    case 9: put(p, jot_where(jot_lt(p->in[0], jot_full(p->c, jot_dtype(p->in[0]), JOT_SHAPE(), 1)),
                              jot_scalar(p->c, jot_dtype(x), 2), jot_scalar(p->c, jot_dtype(x), 3)),
                   3, 2); break;
    case 10: /* as the user writes it, where there is a compiler */
        p->user = true;
        put(p, !strcmp(jot_backend(p->c), "interp")
                   ? jot_add(x, jot_mul(x, y))
                   : jot_code_map("a + a * b", JOT_VARS(x, y),
                                  jot_promote(jot_dtype(x), jot_dtype(y)), slopes),
            ROUNDS, a.mag + b.mag + 1);
        break;
    case 11: put(p, jot_maximum(x, y), bits, mag); break;
    case 12: put(p, jot_minimum(x, y), bits, mag); break;
    case 13: put(p, jot_fmax(x, y), bits, mag); break;
    case 14: put(p, jot_fmin(x, y), bits, mag); break;
    case 15: put(p, jot_where(jot_lt(x, y), y, jot_neg(x)), bits, mag); break;
    case 16: put(p, jot_where(jot_ne(x, y), x, jot_add(y, two)), bits + 3, mag + 2); break;
    case 17: put(p, jot_mod(x, two), a.bits + 1, 1); break;
    case 18: put(p, jot_fmod(x, two), a.bits, 1); break;
    case 19: put(p, jot_floordiv(x, two), a.bits + 1, a.mag + 1); break;
    case 20: put(p, jot_heaviside(x, y), b.bits > 1 ? b.bits : 1, b.mag); break;
    default: put(p, draw(p, 2) ? jot_le(x, y) : jot_gt(x, y), 1, 0);
    }
}

static void
wide_reduce(Prog *p)
{
    Val a = *pick(p);
    jot_Var x = a.v;
    int64_t dims[JOT_MAX_RANK], n = 1;
    int rank = jot_rank(x), k, m = 0, grow;
    bool keep = draw(p, 2) != 0;
    jot_Dims list;

    for (k = 0; k < rank; k++)
        if (draw(p, 2)) {
            dims[m++] = draw(p, 3) ? k : k - rank;
            n *= jot_extent(x, k);
        }
    list = jot_dims(m, dims, keep);
    grow = log2_up(n);
    if (!a.real) {
        static const jot_ReduceOp all[] = {JOT_ADD, JOT_MUL, JOT_AND, JOT_OR, JOT_XOR, JOT_BITAND,
                                           JOT_BITOR, JOT_BITXOR, JOT_MAX, JOT_MIN};

        put(p, jot_reduce(all[draw(p, n ? 10 : 8)], x, list), 1, 0);
        return;
    }
    switch (draw(p, exact(a) && n ? 11 : 7)) {
    case 0: case 1: put(p, jot_reduce(JOT_ADD, x, list), a.bits + grow, a.mag + grow); break;
    case 2: put(p, jot_reduce(JOT_MEAN, x, list), ROUNDS, a.mag); break;
    case 3: if (n <= 4) put(p, jot_reduce(JOT_MUL, x, list), ROUNDS, a.mag * 4); break;
    case 4:
        if (n > 1 && 2 * a.mag < p->room)
            put(p, jot_variance(x, list), ROUNDS, 2 * a.mag + 1);
        break;
    case 5: if (rank) put(p, jot_softmax(x, draw(p, rank)), ROUNDS, 0); break;
    case 6: if (rank) put(p, jot_log_softmax(x, draw(p, rank)), ROUNDS, a.mag + 4); break;
    case 7: put(p, jot_reduce(JOT_MAX, x, list), a.bits, a.mag); break;
    case 8: put(p, jot_reduce(JOT_MIN, x, list), a.bits, a.mag); break;
    case 9: if (rank && jot_nelem(x)) put(p, jot_argmax(x, JOT_DIMS(draw(p, rank))), 1, 0); break;
    default: put(p, draw(p, 2) ? jot_any(x, list) : jot_all(x, list), 1, 0);
    }
}

static const char *
wide_index(Prog *p, int rank, char *to)
{
    int a = rank ? draw(p, rank) : 0, b = rank ? draw(p, rank) : 0;

    if (!rank)
        return "0";
    switch (draw(p, 14)) {
    case 0: case 1: case 2: sprintf(to, "i%d", a); break;
    case 3: sprintf(to, "xs0 - 1 - i%d", a); break;
    case 4: sprintf(to, "i%d/%d", a, 2 + draw(p, 2)); break;
    case 5: sprintf(to, "i%d %% %d", a, 2 + draw(p, 3)); break;
    case 6: sprintf(to, "%d*i%d + i%d - 1", 1 + draw(p, 3), a, b); break;
    case 7: sprintf(to, "(i%d + i%d) %% %d", a, b, 2 + draw(p, 4)); break;
    case 8: sprintf(to, "@e0(i%d %% 5)", a); break;
    case 9: sprintf(to, "i%d*i%d %% 3", a, b); break;
    case 10: sprintf(to, "i%d + 2*i%d - 2", a, b); break;
    case 11: sprintf(to, "(3*i%d + i%d)/2", a, b); break;
    case 12: sprintf(to, "2 - i%d", a); break;
    default: sprintf(to, "%d", draw(p, 3));
    }
    return to;
}

static int
wide_conditions(Prog *p, int rank, char to[2][40], const char **list)
{
    int n = rank ? draw(p, 3) : 0, k;

    for (k = 0; k < n; k++) {
        int a = draw(p, rank), b = draw(p, rank);

        switch (draw(p, 5)) {
        case 0: sprintf(to[k], "i%d <= i%d", a, b); break;
        case 1: sprintf(to[k], "i%d %% 2 == 0", a); break;
        case 2: sprintf(to[k], "@e0(i%d %% 5) > 0", a); break;
        case 3: sprintf(to[k], "i%d + i%d != 3 && i%d < 4", a, b, b); break;
        default: sprintf(to[k], "!(i%d == 1) || i%d > 1", a, b);
        }
        list[k] = to[k];
    }
    return n;
}

/* Maps of drawn text, and what is scattered by them with any operator. */
static void
wide_map(Prog *p)
{
    static const int64_t ext[] = {1, 2, 3, 5, 6, 9, 17};
    Val a = *pick(p);
    int rx = jot_rank(a.v), ry = draw(p, 4), k, n, grow = log2_up(jot_nelem(a.v));
    bool scatter = draw(p, 2);
    char text[JOT_MAX_RANK][40], cond[2][40];
    const char *index[JOT_MAX_RANK], *when[2];
    int64_t shape[4];
    jot_ReduceOp op = JOT_ADD;

    if (rx > 4)
        return;
    for (k = 0; k < ry; k++)
        shape[k] = ext[draw(p, 7)];
    for (k = 0; k < (scatter ? ry : rx); k++)
        index[k] = wide_index(p, scatter ? rx : ry, text[k]);
    n = wide_conditions(p, scatter ? rx : ry, cond, when);
    if (!scatter) {
        put(p, jot_reindex_ex(a.v, jot_ints(ry, shape), jot_strs(rx, index), jot_strs(n, when),
                              draw(p, 3) - 1, jot_vars(1, &p->index)), a.bits + 2, a.mag + 1);
        return;
    }
    if (!a.real)
        op = (jot_ReduceOp)draw(p, JOT_MEAN);
    else if (draw(p, 2))
        op = exact(a) && draw(p, 3) ? JOT_MAX + draw(p, 2) : JOT_MEAN;
    if (a.real && (op == JOT_MAX || op == JOT_MIN)) { /* infinities where nothing falls */
        jot_Var m = jot_reindex_reduce_ex(op, a.v, jot_ints(ry, shape), jot_strs(ry, index),
                                          jot_strs(n, when), jot_vars(1, &p->index));

        put(p, jot_clamp(m, -8, 8), a.bits + 4, 3);
        return;
    }
    if (op == JOT_MEAN) { /* NaN where nothing does */
        jot_Var m = jot_reindex_reduce_ex(op, a.v, jot_ints(ry, shape), jot_strs(ry, index),
                                          jot_strs(n, when), jot_vars(1, &p->index));

        put(p, jot_where(jot_isnan(m), jot_zeros(p->c, jot_dtype(m), JOT_SHAPE()), m),
            ROUNDS, a.mag);
        return;
    }
    put(p, jot_reindex_reduce_ex(op, a.v, jot_ints(ry, shape), jot_strs(ry, index),
                                 jot_strs(n, when), jot_vars(1, &p->index)),
        a.bits + grow, a.mag + grow);
}

/* Forms that the narrow programs lack. */
static void
wide_form(Prog *p)
{
    Val a = *pick(p), b;
    int rank = jot_rank(a.v), k;
    int64_t x[JOT_MAX_RANK];
    jot_Var two[2];

    switch (draw(p, 10)) {
    case 0: put(p, jot_unsqueeze(a.v, draw(p, rank + 1)), a.bits, a.mag); break;
    case 1: /* a rank as high as may be, mostly of ones */
        for (k = 0; k < 12; k++)
            x[k] = 1;
        for (k = 0; k < rank && rank <= 6; k++)
            x[2 * k + draw(p, 2)] = jot_extent(a.v, k);
        if (rank <= 6)
            put(p, jot_reshape(a.v, jot_ints(12, x)), a.bits, a.mag);
        break;
    case 2:
        x[0] = -1;
        if (jot_nelem(a.v))
            put(p, jot_reshape(a.v, jot_ints(1, x)), a.bits, a.mag);
        break;
    case 3:
        b = wide_partner(p, a);
        if (rank == jot_rank(b.v)) {
            for (k = 0; k < rank; k++)
                x[k] = jot_extent(a.v, k) == 1 ? jot_extent(b.v, k) : jot_extent(a.v, k);
            two[0] = jot_broadcast_to(a.v, jot_ints(rank, x));
            two[1] = jot_broadcast_to(b.v, jot_ints(rank, x));
            put(p, draw(p, 2) && rank ? jot_concat(jot_vars(2, two), draw(p, rank))
                                      : jot_stack(jot_vars(2, two), draw(p, rank + 1)),
                a.bits > b.bits ? a.bits : b.bits, a.mag > b.mag ? a.mag : b.mag);
        }
        break;
    case 4: put(p, jot_stop_fuse(a.v), a.bits, a.mag); break;
    case 5: put(p, jot_stop_grad(a.v), a.bits, a.mag); break;
    case 6:
        if (rank > 1) {
            int to = draw(p, rank);

            put(p, jot_swap(a.v, draw(p, rank), to), a.bits, a.mag);
        }
        break;
    case 7:
        p->cap = cap_of(JOT_F32);
        k = 1 + draw(p, 6);
        put(p, jot_one_hot(p->index, k, draw(p, 2) ? float_of(p, JOT_F32) : JOT_I16), 1, 0);
        break;
    case 8:
        p->cap = cap_of(JOT_F32);
        p->random = true;
        put(p, jot_cast((draw(p, 2) ? jot_uniform : jot_normal)(p->c, JOT_F32, jot_shape(p->in[0])),
                        float_of(p, JOT_F32)), ROUNDS, 3);
        break;
    default:
        if (rank && a.real && jot_nelem(a.v) && !whole(a.v))
            put(p, jot_scale(a.v, draw(p, 2) ? -0.5 : 2), a.bits, a.mag + 1);
    }
}

/* Products, and layers. */
static void
wide_product(Prog *p)
{
    Val a = *pick(p), b = *pick(p);
    int ra = jot_rank(a.v), rb = jot_rank(b.v), k, grow;
    bool fits = a.real && b.real && ra && rb;

    if (!a.real)
        return;
    if (fits)
        fits = jot_extent(a.v, -1) == (rb == 1 ? jot_extent(b.v, 0) : jot_extent(b.v, -2));
    for (k = 3; fits && k <= ra && k <= rb; k++)
        fits = jot_extent(a.v, -k) == jot_extent(b.v, -k) || jot_extent(a.v, -k) == 1 ||
               jot_extent(b.v, -k) == 1;
    if (!fits) {
        if (ra < 2)
            return;
        b = a;
        b.v = jot_swap(b.v, -1, -2);
    }
    grow = log2_up(jot_extent(a.v, -1));
    put(p, jot_matmul(a.v, b.v), a.bits > 9 || b.bits > 9 ? ROUNDS : a.bits + b.bits + grow,
        a.mag + b.mag + grow);
}

static void
wide_layer(Prog *p)
{
    jot_Var x = p->in[3], w = p->in[4], n = jot_cast(p->in[5], jot_dtype(x)), y;
    jot_Conv conv = {{1 + draw(p, 2), 1 + draw(p, 2)}, {draw(p, 2), draw(p, 2)}, {1, 1}, 1};
    jot_Pool pool = {{2, 2}, {1 + draw(p, 2), 2}, {draw(p, 2), 0}};
    Val *last = &p->val[p->n - 1];

    p->cap = cap_of(JOT_BF16);
    if (jot_rank(last->v) == 4 && last->real && last->mag < 6)
        x = last->v, n = jot_cast(n, jot_dtype(x));
    switch (draw(p, 8)) {
    case 0: case 1: case 2:
        if (jot_extent(x, 1) == jot_extent(w, 1) && jot_extent(x, 2) >= 3 && jot_extent(x, 3) >= 3)
            put(p, jot_conv2d(x, w, &conv), ROUNDS, 6);
        break;
    case 3:
        if (jot_extent(x, 2) >= 2 && jot_extent(x, 3) >= 2 && x.slot == p->in[3].slot)
            put(p, jot_max_pool2d(x, &pool), 5, 2);
        break;
    case 4:
        if (jot_extent(x, 2) >= 2 && jot_extent(x, 3) >= 2)
            put(p, jot_avg_pool2d(x, &pool), ROUNDS, 6);
        break;
    case 5: put(p, jot_instance_norm(x, 0.5), ROUNDS, 3); break;
    case 6:
        y = jot_sum(n, JOT_DIMS(1));
        if (jot_extent(x, 1) == jot_extent(p->in[3], 1))
            put(p, jot_batch_norm_train(x, y, y, 0.5, 0.1, NULL, NULL), ROUNDS, 6);
        break;
    default:
        if (jot_nelem(x))
            put(p, jot_cross_entropy(jot_reshape(x, JOT_SHAPE(jot_extent(x, 0), -1)),
                                     jot_iota(p->c, JOT_I32, JOT_SHAPE(jot_extent(x, 0)), 0)),
                ROUNDS, 5);
    }
}

static void
wide_inputs(Prog *p)
{
    static const int64_t ext[] = {1, 2, 3, 4, 5, 8, 16, 17, 33, 0};
    static const jot_DType floats[] = {JOT_F32, JOT_F32, JOT_F64, JOT_F16, JOT_BF16};
    jot_DType main = floats[draw(p, 5)];
    static double data[WIDE_MOST * 8];
    int64_t at[5];
    int i, k;

    p->room = main == JOT_F16 || main == JOT_BF16 ? 9 : 24;
    p->floor = main == JOT_F64 ? 1e-9 : main == JOT_F32 ? 1e-3
             : main == JOT_F16 ? 1.0 / 64 : 1.0 / 8;
    for (i = 0; i < 8; i++) {
        int rank = i == 2 ? draw(p, 4) : i >= 5 ? 2 : i >= 3 ? 4 : 1 + draw(p, 3);
        int64_t shape[4], m = 1;
        jot_DType dtype = i < 5 ? main : (jot_DType)draw(p, JOT_F16);
        jot_Var v;

        for (k = 0; k < rank; k++)
            shape[k] = ext[draw(p, draw(p, 8) ? rank > 2 ? 6 : 9 : 10)];
        if (i == 1 && rank > 1)
            shape[rank - 2] = jot_extent(p->in[0], -1);
        if (i == 3)
            for (k = 0; k < 4; k++)
                shape[k] = k < 2 ? 1 + draw(p, 4) : 3 + draw(p, 8);
        if (i == 4)
            shape[0] = shape[1] = jot_extent(p->in[3], 1), shape[2] = shape[3] = 1 + draw(p, 3);
        if (i == 5)
            shape[0] = jot_extent(p->in[3], 1);
        for (k = 0; k < rank; k++)
            m *= shape[k];
        for (k = 0; k < m; k++)
            data[k] = i < 5 ? (draw(p, 17) - 8) / 4.0 : draw(p, 13) - (dtype < JOT_U8 ? 6 : 0);
        v = jot_array(p->c, JOT_F64, jot_ints(rank, shape), data);
        (void)jot_run(p->c, jot_vars(1, &v));
        /* elements in the dtype itself: an input is no expression */
        v = jot_cast(v, i < 5 ? float_of(p, dtype) : dtype);
        v = jot_array(p->c, jot_dtype(v), jot_ints(rank, shape), jot_data(v));
        if (i < 6)
            p->in[i] = v;
        p->cap = i < 5 ? cap_of(main) : ROUNDS;
        put(p, v, 5, 2);
    }
    for (k = 0; k < 5; k++)
        at[k] = draw(p, 5) - 1;
    p->index = jot_array(p->c, JOT_I64, JOT_SHAPE(5), at);
    put(p, p->index, 1, 0);
}

/* The program of a seed, every float an f64 if all64: results and how many; gradients come last. */
static int
fuzz_wide(Prog *p, jot_Ctx *c, uint64_t seed, bool all64, jot_Var *out)
{
    jot_Var loss;
    int i, k, n = 0, steps, inputs;

    memset(p, 0, sizeof *p);
    p->c = c;
    p->s = seed * 7919 + 3;
    p->put = put;
    p->all64 = all64;
    jot_seed(c, seed);
    for (k = 0; k < 20; k++)
        (void)draw(p, 2);
    wide_inputs(p);
    inputs = p->n;
    steps = 4 + draw(p, 20);
    for (i = 0; i < steps; i++) {
        p->cap = ROUNDS - 1;
        p->mag = 0;
        switch (draw(p, 11)) {
        case 0: case 1: wide_unary(p); break;
        case 2: case 3: wide_binary(p); break;
        case 4: wide_reduce(p); break;
        case 5: wide_form(p); break;
        case 6: wide_map(p); break;
        case 7: wide_product(p); break;
        case 8: wide_layer(p); break;
        case 9: do_form(p); break;
        default: do_map(p);
        }
    }
    for (i = inputs; i < p->n; i++)
        if (i == p->n - 1 || !draw(p, 3)) {
            p->exact[n] = exact(p->val[i]);
            out[n++] = p->val[i].v;
        }
    loss = jot_scalar(c, float_of(p, JOT_F32), 0);
    for (i = p->n - 1; i >= inputs && i > p->n - 5; i--)
        if (p->val[i].real && p->val[i].mag < 20) {
            jot_Var v = jot_cast(p->val[i].v, float_of(p, JOT_F32));

            v = draw(p, 2) ? jot_mul(v, v) : jot_scale(v, 1.5);
            loss = jot_add(loss, jot_sum(v, JOT_ALL_DIMS));
        }
    if (jot_grad(loss, jot_vars(5, p->in), out + n)) {
        n += 5;
        if (!draw(p, 4) && !p->user) { /* whose slopes have none */
            jot_Var l2 = jot_scalar(c, float_of(p, JOT_F32), 0);

            for (i = 0; i < 5; i++) {
                jot_Var t = jot_tanh(jot_cast(out[n - 5 + i], float_of(p, JOT_F32)));

                l2 = jot_add(l2, jot_sum(jot_square(t), JOT_ALL_DIMS));
            }
            if (jot_grad(l2, jot_vars(5, p->in), out + n))
                n += 5;
        }
    }
    return n;
}

#endif
