/* tests/fuzz_programs.h - random programs, the same for the same seed: meta-operators, forms,
 * reductions, products, gradients, of f64 and i64.
 *
 * Inputs are multiples of 1/4 of few bits. A value is `exact` while its bits fit a double;
 * operators with jumps (comparison, max and its gradient) are drawn for exact values only, so that
 * a difference in rounding cannot turn into a different branch. */
#ifndef JOT_FUZZ_PROGRAMS_H
#define JOT_FUZZ_PROGRAMS_H
#include <string.h>
#include "core.h"

enum { VARS = 40, FUZZ_MOST = 600 };

/* cap, mag: those of wide programs alone */
typedef struct { jot_Var v; int bits; bool real; int cap, mag; } Val;

typedef struct Prog Prog;
struct Prog {
    jot_Ctx *c;
    uint64_t s;
    Val val[VARS];
    int n;
    jot_Var in[6], index;
    void (*put)(Prog *p, jot_Var v, int bits, int mag); /* keeps results of wide programs; NULL */
    int cap, mag; /* of what the step picked: the least, the most */
    int room;     /* log2 of the largest value that is kept */
    bool all64;   /* every float is f64 */
    bool random;  /* so are numbers that each call draws anew */
    bool user;    /* a user's expression is in it */
    double floor; /* relative error that goes without saying */
    bool exact[2 * VARS]; /* which results are, of wide programs */
};

static int
draw(Prog *p, int n)
{
    p->s = p->s * 6364136223846793005u + 1442695040888963407u;
    return (int)((p->s >> 33) % (uint64_t)n);
}

static Val *
pick(Prog *p)
{
    Val *v = &p->val[draw(p, p->n)];

    p->cap = v->cap < p->cap ? v->cap : p->cap;
    p->mag = v->mag > p->mag ? v->mag : p->mag;
    return v;
}

static void
push(Prog *p, jot_Var v, int bits, bool real)
{
    int64_t n = jot_nelem(v);

    if (p->put)
        p->put(p, v, bits, bits >= 99 ? p->mag + bits - 99 : bits);
    else if (p->n < VARS && jot_ok(v) && n <= FUZZ_MOST && jot_rank(v) <= 5) {
        p->val[p->n].v = v;
        p->val[p->n].bits = bits;
        p->val[p->n++].real = real;
    }
}

static int
log2_up(int64_t n)
{
    int k = 0;

    for (; n > 1; n = (n + 1) / 2)
        k++;
    return k;
}

/* What a cast leaves of an integer. */
static jot_Var
low(jot_Var v, jot_DType dtype)
{
    return jot_cast(jot_cast(v, dtype), JOT_I64);
}

static void
do_unary(Prog *p)
{
    Val a = *pick(p);

    switch (draw(p, 8)) {
    case 0: push(p, jot_neg(a.v), a.bits, a.real); break;
    case 1: if (a.bits < 45) push(p, jot_abs(a.v), a.bits, a.real); break;
    case 2: push(p, jot_square(a.v), a.bits * 2, a.real); break;
    case 3: push(p, a.real ? jot_tanh(a.v) : low(a.v, JOT_I32), a.real ? 99 : 32, a.real); break;
    case 4: push(p, a.real ? jot_sin(a.v) : low(a.v, JOT_I16), a.real ? 99 : 16, a.real); break;
    case 5: push(p, a.real ? jot_sigmoid(a.v) : low(a.v, JOT_U16), a.real ? 99 : 16, a.real); break;
    case 6: push(p, a.real ? jot_exp(jot_tanh(a.v)) : low(a.v, JOT_I8), a.real ? 99 : 8, a.real);
        break;
    default: if (a.real && a.bits < 45) push(p, jot_relu(a.v), a.bits, true); break;
    }
}

/* An operand that broadcasts against a: reduced with kept dimensions, or of the same shape. */
static Val
partner(Prog *p, Val a)
{
    Val b = a;
    int i, k, rank = jot_rank(a.v);

    for (i = 0; i < 6; i++) {
        Val c = *pick(p);
        bool same = jot_rank(c.v) == rank && c.real == a.real;

        for (k = 0; same && k < rank; k++)
            same = jot_extent(c.v, k) == jot_extent(a.v, k) || jot_extent(c.v, k) == 1
                || jot_extent(a.v, k) == 1;
        if (same)
            return c;
    }
    if (rank && draw(p, 2)) {
        int64_t d = draw(p, rank);

        b.v = jot_reduce(JOT_ADD, a.v, jot_dims(1, &d, true));
        b.bits = a.bits + log2_up(jot_extent(a.v, (int)d));
    }
    return b;
}

static void
do_binary(Prog *p)
{
    Val a = *pick(p), b = partner(p, a);
    int most = a.bits > b.bits ? a.bits : b.bits;

    switch (draw(p, 7)) {
    case 0: push(p, jot_add(a.v, b.v), most + 1, a.real); break;
    case 1: push(p, jot_sub(a.v, b.v), most + 1, a.real); break;
    case 2: push(p, jot_mul(a.v, b.v), a.bits + b.bits, a.real); break;
    case 3: if (most < 45) push(p, jot_maximum(a.v, b.v), most, a.real); break;
    case 4: if (most < 45) push(p, jot_minimum(a.v, b.v), most, a.real); break;
    case 5:
        if (most < 45)
            push(p, jot_where(jot_lt(a.v, b.v), b.v, jot_neg(a.v)), most, a.real);
        break;
    default: if (a.real) push(p, jot_div(a.v, jot_offset(jot_square(b.v), 1)), 99, true); break;
    }
}

static void
do_reduce(Prog *p)
{
    Val a = *pick(p);
    int64_t dims[8], n = 1;
    int rank = jot_rank(a.v), k, m = 0, op = draw(p, 5), bits = a.bits;

    for (k = 0; k < rank; k++)
        if (draw(p, 2)) {
            dims[m++] = draw(p, 3) ? k : k - rank;
            n *= jot_extent(a.v, k);
        }
    if ((op == 1 || op == 2) && (a.bits >= 45 || n == 0))
        return;
    if (op == 3 && (n > 6 || !a.real))
        return;
    if (op == 4 && !a.real)
        return;
    bits = op == 0 ? bits + log2_up(n) : op == 3 ? 99 : op == 4 ? 99 : bits;
    push(p, jot_reduce(op == 0 ? JOT_ADD : op == 1 ? JOT_MAX : op == 2 ? JOT_MIN
                       : op == 3 ? JOT_MUL : JOT_MEAN,
                       a.v, jot_dims(m, dims, draw(p, 2) != 0)), bits, a.real);
}

static void
do_form(Prog *p)
{
    Val a = *pick(p);
    int rank = jot_rank(a.v), k;
    int64_t x[8], y[8], z[8];
    jot_Var two[2];

    if (rank > 8)
        return;
    switch (draw(p, 9)) {
    case 0: /* transpose */
        for (k = 0; k < rank; k++)
            x[k] = k;
        for (k = rank - 1; k > 0; k--) {
            int j = draw(p, k + 1);
            int64_t t = x[k];

            x[k] = x[j];
            x[j] = t;
        }
        push(p, jot_transpose(a.v, jot_ints(rank, x)), a.bits, a.real);
        break;
    case 1: /* slice */
        for (k = 0; k < rank; k++) {
            int64_t e = jot_extent(a.v, k);

            z[k] = draw(p, 4) ? 1 + draw(p, 2) : -1 - draw(p, 2);
            x[k] = z[k] > 0 ? draw(p, 2) : e - 1 - draw(p, 2);
            y[k] = JOT_END;
        }
        push(p, jot_slice(a.v, jot_ints(rank, x), jot_ints(rank, y), jot_ints(rank, z)), a.bits,
             a.real);
        break;
    case 2: /* pad and crop */
        for (k = 0; k < rank; k++) {
            x[k] = draw(p, 4) - 1;
            y[k] = draw(p, 4) - 1;
            if (jot_extent(a.v, k) + x[k] + y[k] < 0)
                x[k] = y[k] = 0;
        }
        push(p, jot_pad(a.v, jot_ints(rank, x), jot_ints(rank, y), draw(p, 3) - 1), a.bits + 1,
             a.real);
        break;
    case 3:
        x[0] = rank ? draw(p, rank) : 0;
        push(p, jot_flip(a.v, jot_ints(rank ? 1 : 0, x)), a.bits, a.real);
        break;
    case 4:
        for (k = 0; k < rank; k++)
            x[k] = 1 + draw(p, 2);
        push(p, jot_tile(a.v, jot_ints(rank, x)), a.bits, a.real);
        break;
    case 5: /* reshape to one or two dimensions */
        x[0] = -1;
        x[1] = rank && jot_extent(a.v, rank - 1) ? jot_extent(a.v, rank - 1) : 1;
        if (jot_nelem(a.v))
            push(p, jot_reshape(a.v, jot_ints(1 + draw(p, 2), x)), a.bits, a.real);
        break;
    case 6:
        if (rank) {
            two[0] = a.v;
            two[1] = draw(p, 2) ? a.v : jot_scale(a.v, 2);
            push(p, jot_concat(jot_vars(2, two), draw(p, rank)), a.bits + 1, a.real);
        }
        break;
    case 7:
        if (rank)
            push(p, jot_take(a.v, p->index, draw(p, rank)), a.bits, a.real);
        break;
    default: /* broadcast along a new dimension */
        if (rank < 4) {
            int at = draw(p, rank + 1), j = 0;

            for (k = 0; k <= rank; k++)
                x[k] = k == at ? 1 + draw(p, 4) : jot_extent(a.v, j++);
            y[0] = at;
            push(p, jot_broadcast(a.v, jot_ints(rank + 1, x), jot_ints(1, y)), a.bits, a.real);
        }
    }
}

/* Maps as text: windows, strides, wraps, conditions; and the scatters they are the duals of. */
static void
do_map(Prog *p)
{
    Val a = *pick(p);
    int64_t e0, e1;
    jot_Var extra = p->index;

    if (jot_rank(a.v) != 2)
        return;
    e0 = jot_extent(a.v, 0);
    e1 = jot_extent(a.v, 1);
    switch (draw(p, 9)) {
    case 0:
        push(p, jot_reindex(a.v, JOT_SHAPE(e0, 3, 2), JOT_INDEX("i0", "2*i1 + i2 - 1")), a.bits,
             a.real);
        break;
    case 1:
        push(p, jot_reindex_ex(a.v, JOT_SHAPE(4, 5), JOT_INDEX("(i0 + i1) % xs0", "(i0*5 + i1)/3"),
                               JOT_INDEX("i0 != i1 || i0 == 2"), 1.5, JOT_NONE_VARS),
             a.bits + 2, a.real);
        break;
    case 2:
        push(p, jot_reindex_ex(a.v, JOT_SHAPE(4, e1), JOT_INDEX("@e0(i0)", "xs1 - 1 - i1"),
                               JOT_NONE_STRS, 0, jot_vars(1, &extra)), a.bits, a.real);
        break;
    case 3:
        push(p,
             jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(3, e1 + 1), JOT_INDEX("i0 % 3", "i1 + 1")),
             a.bits + log2_up(e0), a.real);
        break;
    case 4:
        push(p, jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(e0 + 2), JOT_INDEX("i0 + i1/2 - 1")),
             a.bits + log2_up(e1), a.real);
        break;
    case 5:
        push(p, jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(2 * e0 + e1), JOT_INDEX("2*i0 + i1")),
             a.bits + log2_up(e1), a.real);
        break;
    case 6:
        push(p,
             jot_reindex_reduce_ex(JOT_ADD, a.v, JOT_SHAPE(4, e1), JOT_INDEX("@e0(i0 % 3)", "i1"),
                                   JOT_INDEX("i0 + i1 > 0"), jot_vars(1, &extra)),
             a.bits + log2_up(e0), a.real);
        break;
    case 7:
        push(p,
             jot_reindex_reduce(JOT_ADD, a.v, JOT_SHAPE(e0, 2, 3),
                                JOT_INDEX("i0", "i1 % 2", "i1 / 2")),
             a.bits + log2_up(e1), a.real);
        break;
    default: /* a window sum: convolution with all ones */
        push(p,
             jot_sum(
                 jot_reindex(a.v, JOT_SHAPE(e0, e1, 3, 2), JOT_INDEX("i0 + i2 - 1", "i1 + i3 - 1")),
                 JOT_DIMS(2, 3)),
             a.bits + 3, a.real);
    }
}

static void
do_product(Prog *p)
{
    Val a = *pick(p), b = *pick(p);
    jot_Var t;

    if (jot_rank(a.v) != 2 || !a.real || !b.real)
        return;
    t = jot_rank(b.v) == 2 && jot_extent(b.v, 0) == jot_extent(a.v, 1) ? b.v
      : jot_transpose(a.v, JOT_INTS(1, 0));
    push(p, jot_matmul(a.v, t), a.bits + (t.slot == b.v.slot ? b.bits : a.bits)
         + log2_up(jot_extent(a.v, 1)), true);
}

/* The program of a seed: up to VARS + 8 results, the last of them gradients. */
static inline int
fuzz_program(Prog *p, jot_Ctx *c, uint64_t seed, jot_Var *out)
{
    static const int64_t ext[] = {1, 2, 3, 4, 5, 7, 0};
    double data[FUZZ_MOST];
    int64_t shape[3][3], idx[5];
    jot_Var loss, wrt[3];
    int i, k, n = 0, steps;

    memset(p, 0, sizeof *p);
    p->c = c;
    p->s = seed * 7919 + 1;
    for (k = 0; k < 20; k++)
        (void)draw(p, 2);
    for (i = 0; i < 3; i++) {
        int rank = i == 2 ? draw(p, 4) : 2;
        int64_t m = 1;

        for (k = 0; k < rank; k++)
            m *= shape[i][k] = ext[draw(p, draw(p, 8) ? 6 : 7)];
        for (k = 0; k < m; k++)
            data[k] = (draw(p, 17) - 8) / 4.0;
        p->in[i] = jot_array(c, JOT_F64, jot_ints(rank, shape[i]), data);
        push(p, p->in[i], 5, true);
    }
    for (k = 0; k < 5; k++)
        idx[k] = draw(p, 5) - 1;
    p->index = jot_array(c, JOT_I64, JOT_SHAPE(5), idx);
    push(p, p->index, 4, false);
    push(p, jot_iota(c, JOT_F64, JOT_SHAPE(3, 4), draw(p, 2)), 3, true);
    steps = 3 + draw(p, 12);
    for (i = 0; i < steps; i++)
        switch (draw(p, 7)) {
        case 0: do_unary(p); break;
        case 1: do_binary(p); break;
        case 2: do_reduce(p); break;
        case 3: do_form(p); break;
        case 4: do_map(p); break;
        case 5: do_product(p); break;
        default: do_binary(p);
        }
    if (draw(p, 4) == 0)
        p->val[p->n - 1].v = jot_stop_fuse(p->val[p->n - 1].v);
    for (i = 4; i < p->n; i++)
        if (i == p->n - 1 || !draw(p, 3))
            out[n++] = p->val[i].v;
    /* the gradient of a sum of results, and now and then of that one's square */
    loss = jot_scalar(c, JOT_F64, 0);
    for (i = p->n - 1; i > 4 && i > p->n - 4; i--)
        if (p->val[i].real)
            loss = jot_add(loss, jot_sum(jot_mul(p->val[i].v, p->val[i].v), JOT_ALL_DIMS));
    for (i = 0; i < 3; i++)
        wrt[i] = p->in[i];
    if (jot_grad(loss, jot_vars(3, wrt), out + n)) {
        n += 3;
        if (!draw(p, 4)) {
            jot_Var l2 = jot_scalar(c, JOT_F64, 0);

            for (i = 0; i < 3; i++)
                l2 = jot_add(l2, jot_sum(jot_square(out[n - 3 + i]), JOT_ALL_DIMS));
            if (jot_grad(l2, jot_vars(3, wrt), out + n))
                n += 3;
        }
    }
    return n;
}

#endif
