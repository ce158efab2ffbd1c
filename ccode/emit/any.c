/* ccode/emit/any.c - numbers as arguments: in a dialect that says so, the text of a kernel lacks
 * the extents, strides and constants that it is used with, so that one function serves all.
 *
 *     for (i = 0; i < 28; i++)            const jot_i64 n = ints[0], n_1 = ints[1];
 *         y[i*64] = x[i] * 0.25f;         for (i = 0; i < n; i++)
 *                                             y[i*n_1] = x[i] * n_2;
 *
 * What is argument and what text is decided by the literal alone: -1, 0 and 1 are text. Each place
 * has an argument of its own: that a batch of 16 is as many as there are channels is no other text.
 * Where two shapes have the same text, they compute the same with numbers of their own, whatever
 * the text was derived from.
 *
 *   requires  a printer whose names of arguments are taken
 *   keeps     the value of each expression      breaks  nothing
 *
 * Read before: ccode/emit/print.h. After: ccode/emit/emit.c. */
#include "ccode/emit/print.h"

/* Number of an argument for these bits: one of its own; when there are many, one that has them. -1:
 * it stays text. */
static int
any_find(Printer *p, int dtype, jot_Scalar value)
{
    int i;
    if (p->nints < EMIT_INTS) {
        p->ints[p->nints] = value;
        p->int_dtype[p->nints] = (uint8_t)dtype;
        return p->nints++;
    }
    for (i = 0; i < p->nints; i++)
        if (p->ints[i].u == value.u && p->int_dtype[i] == dtype)
            return i;
    return -1;
}

JOT_FN bool
jot_print_any(Printer *p, int dtype, jot_Scalar value)
{
    bool small = dtype >= JOT_F16 ? value.f == 0 || value.f == 1 || value.f == -1
                                  : value.i >= -1 && value.i <= 1;
    int i;
    if (!p->d->any || small || (dtype >= JOT_F16 && value.f - value.f != 0))
        return false;
    i = any_find(p, dtype, value);
    if (i < 0)
        return false;
    jot_print_name(p, p->int_name[i]);
    return true;
}

JOT_FN void
jot_print_any_open(Printer *p)
{
    for (int i = 0; p->d->any && i < EMIT_INTS; i++)
        p->int_name[i] = jot_print_take(p, "n");
}

JOT_FN void
jot_print_any_declare(Printer *p)
{
    for (int i = 0; i < p->nints; i++) {
        int dtype = p->int_dtype[i];
        if (dtype >= JOT_F16)
            jot_print_f(p, "    const %s %n = %s((const jot_Scalar *)(const void *)ints)[%d].f;\n",
                        jot_print_type(dtype), p->int_name[i], dtype == JOT_F64 ? "" : "(float)",
                        i);
        else
            jot_print_f(p, "    const jot_i64 %n = ints[%d];\n", p->int_name[i], i);
    }
}
