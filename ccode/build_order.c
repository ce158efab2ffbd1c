/* ccode/build_order.c - the order of loops by continuity of memory [J, Listings 5 and 6].
 *
 *     for i  for j  y[j] += x[i*J + j]        j moves every access by one element: innermost
 *     for j  for i  y[j] += x[i*J + j]        here each x lies a row apart
 *
 * Each axis gets a price: over all loads and stores, the bytes that one step of the axis moves the
 * access by, at most a page. Dear axes go outside, cheap ones inside, the one with the most unit-stride
 * accesses innermost. When the best reduce axis has as many of them as the best axis of all, every
 * reduce axis goes inside the others: the sum then stays in a register.
 *
 * Read before: ccode/build.c. After: ccode/sched.c. */
#include "ccode/build.h"

enum { ORDER_PAGE = 4096 };

typedef struct { int64_t price; int units; bool reduce; } OrderAxis;

/* Add an access, whose indices begin at k->ixs.v[index], to the price of every axis. Positions inside
 * of / and % count as they stand there. */
static void
order_access(const Kernel *k, const KBuf *buf, uint32_t index, OrderAxis *axes)
{
    int64_t size = (int64_t)jot_dtype_nbytes((jot_DType)buf->dtype), stride = size;
    uint32_t a;
    int d;

    for (d = buf->rank - 1; d >= 0; d--) {
        for (a = 0; a < k->axes.n; a++) {
            bool inside;
            Ix at = k->ixs.v[index + (uint32_t)d];
            int64_t coef = jot_ix_coef(k->ix, at, (int)a, &inside), bytes;

            if (!coef && !inside)
                continue;
            coef = coef < 0 ? -coef : coef ? coef : 1;
            bytes = coef > ORDER_PAGE || stride > ORDER_PAGE ? ORDER_PAGE : coef * stride;
            axes[a].price += bytes < ORDER_PAGE ? bytes : ORDER_PAGE;
            axes[a].units += bytes == size;
        }
        stride = buf->ext[d] && stride < ORDER_PAGE ? stride * buf->ext[d] : stride;
    }
}

static void
order_count(const Kernel *k, OrderAxis *axes)
{
    uint32_t i, a;

    for (i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];

        if (v->op == VAL_LOAD)
            order_access(k, &k->bufs.v[v->buf], v->at, axes);
        for (a = 0; v->op == VAL_REDUCE && a < k->axes.n; a++)
            axes[a].reduce |= v->axes >> a & 1;
    }
    for (i = 0; i < k->stores.n; i++)
        order_access(k, &k->bufs.v[k->stores.v[i].buf], k->stores.v[i].at, axes);
}

/* May all reduce axes go inside? When one of them is as continuous as the best of the others. */
static bool
order_registers(const Kernel *k, const OrderAxis *axes)
{
    int best[2] = {0, 0};
    uint32_t a;

    for (a = 0; a < k->axes.n; a++)
        if (axes[a].units > best[axes[a].reduce])
            best[axes[a].reduce] = axes[a].units;
    return best[1] >= best[0];
}

/* The axis with the most unit-stride accesses to the end; the last of equals. */
static void
order_innermost(const OrderAxis *axes, int *order, int n)
{
    int best = n - 1, i;

    for (i = n - 1; i >= 0; i--)
        if (axes[order[i]].units > axes[order[best]].units)
            best = i;
    for (i = best; i + 1 < n; i++) {
        int axis = order[i];

        order[i] = order[i + 1];
        order[i + 1] = axis;
    }
}

JOT_FN int
jot_build_order(const Kernel *k, int *order)
{
    OrderAxis axes[KERNEL_AXES];
    bool registers;
    int n = (int)k->axes.n, i, j;

    memset(axes, 0, sizeof axes);
    order_count(k, axes);
    registers = order_registers(k, axes);
    for (i = 0; i < n; i++) {
        for (j = i; j > 0; j--) {
            const OrderAxis *a = &axes[order[j - 1]], *b = &axes[i];

            if (registers && a->reduce != b->reduce ? !a->reduce : a->price >= b->price)
                break;
            order[j] = order[j - 1];
        }
        order[j] = i;
    }
    if (!registers)
        order_innermost(axes, order, n);
    return n;
}
