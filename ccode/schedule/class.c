/* ccode/schedule/class.c - classes of stages: those that walk the same axes, or a part of them.
 *
 *     h = sum over k of x[k] * w[j, k]        j k
 *     y = sum over j of relu(h) * v[i, j]     i j      two classes
 *     g[i, j] = y[i] * h[j]                   i j      with the one before
 *     b[j] = h[j] - 1                         j        with who computes h
 *
 * One order of loops suits the stages of a class, since they walk one space; another class may want
 * another. A narrow stage goes with the class of the nearest sum below it, if its axes are among
 * that one's, else with the first that has them: so a class stands before what can only be with
 * later ones.
 *
 *   requires  a verified kernel     keeps  everything
 * Read before: ccode/schedule/class.h. After: ccode/schedule/choose.c, ccode/schedule/make.c. */
#include "ccode/schedule/class.h"

/* Axes of one step tell nothing, positions of lines belong to who reads these. */
static uint64_t
class_steps(const Kernel *k)
{
    uint64_t axes = 0;

    for (uint32_t a = 0; a < k->axes.n; a++)
        axes |= (uint64_t)(k->axes.v[a].ext != 1 && k->axes.v[a].kind != AXIS_LINE) << a;
    return axes;
}

/* The widest sets so far; false: more than there is room for. */
static bool
class_widen(SchedClasses *c, uint64_t axes)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        if (!(axes & ~c->axes[i]))
            return true;
    for (int i = 0; i < c->n; i++)
        if (c->axes[i] & ~axes)
            c->axes[n++] = c->axes[i];
    c->n = n;
    if (n == SCHED_CLASSES)
        return false;
    c->axes[c->n++] = axes;
    return true;
}

static bool
class_sets(const Kernel *k, const bool *used, uint64_t steps, SchedClasses *c)
{
    bool fits = k->stores.n <= CLASS_STORES;

    for (uint32_t i = 1; i < k->values.n && fits; i++)
        if (used[i] && k->values.v[i].op == VAL_REDUCE)
            fits = class_widen(c, (k->values.v[i].free | k->values.v[i].axes) & steps);
    for (uint32_t i = 0; i < k->stores.n && fits; i++)
        fits = !k->stores.v[i].acc && class_widen(c, k->stores.v[i].free & steps);
    return fits;
}

static uint8_t
class_find(const SchedClasses *c, uint64_t axes, int hint)
{
    int i = 0;

    if (hint >= 0 && !(axes & ~c->axes[hint]))
        return (uint8_t)hint;
    while (i + 1 < c->n && (axes & ~c->axes[i]))
        i++;
    return (uint8_t)i;
}

/* sum[value]: 1 + the class of the latest sum at or below it; 0: none. */
static void
class_values(const Kernel *k, uint64_t steps, SchedClasses *c, uint8_t *sum)
{
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        uint64_t axes = jot_value_axes(v);
        int hint = -1;

        for (int j = 0; j < v->narg; j++) {
            int below = sum[k->args.v[v->arg + (uint32_t)j]] - 1;

            hint = below > hint ? below : hint;
        }
        c->value[i] = class_find(c, axes & steps, hint);
        sum[i] = (uint8_t)(v->op == VAL_REDUCE || hint >= 0 ? c->value[i] + 1 : 0);
    }
    for (uint32_t i = 0; i < k->stores.n; i++)
        c->store[i] = class_find(c, k->stores.v[i].free & steps, sum[k->stores.v[i].value] - 1);
}

/* Operands come before their users: the last value first. */
static void
class_reads(const Kernel *k, const bool *used, SchedClasses *c)
{
    for (uint32_t i = 0; i < k->stores.n; i++)
        c->reads[k->stores.v[i].value] |= (uint16_t)(1 << (c->n > 1 ? c->store[i] : 0));
    for (uint32_t i = k->values.n; i-- > 1;) {
        const Value *v = &k->values.v[i];
        uint16_t reads = c->reads[i];

        if (!used[i])
            continue;
        if (v->op == VAL_REDUCE) {
            reads = (uint16_t)(1 << c->value[i]);
            c->reads[i] |= reads;
        }
        for (int j = 0; j < v->narg; j++)
            c->reads[k->args.v[v->arg + (uint32_t)j]] |= reads;
    }
}

static void
class_shared(const Kernel *k, const bool *used, uint64_t steps, SchedClasses *c)
{
    c->shared = steps;
    for (int i = 0; i < c->n; i++)
        c->shared &= c->axes[i];
    for (uint32_t i = 1; i < k->values.n; i++) {
        const Value *v = &k->values.v[i];

        if (used[i] && v->op == VAL_REDUCE && ((v->free | v->axes) & steps) == c->axes[c->value[i]])
            c->shared &= ~v->axes;
    }
}

JOT_FN bool
jot_sched_classes(const Kernel *k, SchedClasses *c)
{
    size_t n = k->values.n;
    bool *used = jot_kernel_used_new(k);
    uint8_t *sum = jot_mem_new(k->mem, n, sizeof *sum);
    bool ok = used && sum && n <= KERNEL_VALUES;

    memset(c, 0, sizeof *c);
    if (ok) {
        uint64_t steps = class_steps(k);

        if (!class_sets(k, used, steps, c) || c->n < 2) {
            c->n = 1;
            c->axes[0] = ~(uint64_t)0;
        }
        if (c->n > 1) {
            class_values(k, steps, c, sum);
            class_shared(k, used, steps, c);
        }
        class_reads(k, used, c);
    }
    jot_mem_free(k->mem, used, n * sizeof *used);
    jot_mem_free(k->mem, sum, n * sizeof *sum);
    return ok;
}

JOT_FN int
jot_sched_class_of(const SchedClasses *c, bool store, uint32_t what)
{
    return c->n < 2 ? 0 : store ? c->store[what] : c->value[what];
}
