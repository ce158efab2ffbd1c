/* ccode/ir/print.c - kernels as text: what JOT_DUMP=k shows.
 *
 * Read before: ccode/ir/ir.h. */
#include "ccode/ir/ir.h"

static void
print_ixs(const Kernel *k, uint32_t at, int n, const char *open, const char *close, Text *t)
{
    jot_text_f(t, "%s", open);
    for (int i = 0; i < n; i++) {
        jot_text_f(t, "%s", i ? ", " : "");
        jot_ix_print_named(k, NULL, k->ixs.v[at + (uint32_t)i], t);
    }
    jot_text_f(t, "%s", close);
}

static void
print_conds(const Kernel *k, uint32_t at, int n, Text *t)
{
    if (n)
        print_ixs(k, at, n, " where ", "", t);
}

static void
ir_print_const(Text *t, int dtype, jot_Scalar c)
{
    if (dtype >= JOT_F16)
        jot_text_f(t, "%g", c.f);
    else if (dtype >= JOT_U8 || dtype == JOT_BOOL)
        jot_text_f(t, "%llu", (unsigned long long)c.u);
    else
        jot_text_f(t, "%lld", (long long)c.i);
}

static void
print_axes(const Kernel *k, uint64_t axes, Text *t)
{
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (axes >> a & 1)
            jot_text_f(t, " %s", k->axes.v[a].name);
}

static void
print_value(const Kernel *k, uint32_t number, Text *t)
{
    const Value *v = &k->values.v[number];
    jot_text_f(t, "%%%u%s%s = %s ", number, v->name ? " " : "", v->name ? v->name : "",
               jot_dtype_name((jot_DType)v->dtype));
    switch (v->op) {
    case VAL_LOAD:
        jot_text_f(t, "%s", k->bufs.v[v->buf].name);
        print_ixs(k, v->at, v->nidx, "[", "]", t);
        break;
    case VAL_CONST: ir_print_const(t, v->dtype, v->c); break;
    case VAL_SCALAR: jot_text_f(t, "scalar %s", k->scalars.v[v->buf].name); break;
    case VAL_INDEX: print_ixs(k, v->at, 1, "index ", "", t); break;
    case VAL_EW: jot_text_f(t, "%s", jot_ew_info[v->ew].name); break;
    case VAL_REDUCE:
        jot_text_f(t, "reduce %s over", jot_ew_info[v->ew].name);
        print_axes(k, v->axes, t);
        jot_text_f(t, v->narg == 2 ? " and, by the %s%s, of" : " of",
                   v->tie ? jot_ew_info[v->tie].name : "", v->ordered ? " (in order)" : "");
        break;
    case VAL_RUN:
        jot_text_f(t, "running %s along", jot_ew_info[v->ew].name);
        print_axes(k, v->axes, t);
        jot_text_f(t, v->ordered ? " before each, of" : " of");
        break;
    case VAL_SECOND: jot_text_f(t, "second of"); break;
    case VAL_AT: jot_text_f(t, "at"); break;
    case VAL_TABLE:
        jot_text_f(t, "table%u", v->buf);
        print_ixs(k, v->at, v->nidx, "[", "]", t);
        break;
    case VAL_CALL: jot_text_f(t, "call %s", v->call); break;
    case VAL_DOT: jot_text_f(t, "dot %s", jot_target_dots[v->ew].name); break;
    default: jot_text_f(t, "poison"); break;
    }
    for (int i = 0; i < v->narg; i++)
        jot_text_f(t, " %%%u", k->args.v[v->arg + (uint32_t)i]);
    if (v->op == VAL_EW && v->round != v->dtype)
        jot_text_f(t, " to %s", jot_dtype_name((jot_DType)v->round));
    for (int i = 0; v->op == VAL_AT && i < v->nidx; i++) {
        jot_text_f(t, " %s=", k->axes.v[v->ax[i]].name);
        jot_ix_print_named(k, NULL, k->ixs.v[v->at + (uint32_t)i], t);
    }
    print_conds(k, v->at + v->nidx, v->ncond, t);
    if (v->op == VAL_LOAD && v->ncond) {
        jot_text_f(t, " else ");
        ir_print_const(t, v->dtype, v->c);
    }
    if (v->scaled)
        jot_text_f(t, " times %g", v->c.f);
    jot_text_f(t, "\n");
}

static void
print_buf(const KBuf *b, Text *t)
{
    static const char *const role[] = {"in", "out", "scratch", "shared", "group"};
    jot_text_f(t, "%s %s %s[", role[b->role], jot_dtype_name((jot_DType)b->dtype), b->name);
    for (int i = 0; i < b->rank; i++)
        jot_text_f(t, "%s%lld", i ? ", " : "", (long long)b->ext[i]);
    jot_text_f(t, "]");
    if (!jot_layout_is_rowmajor(b->layout)) {
        jot_text_f(t, " layout ");
        jot_layout_print(b->layout, t);
    }
    jot_text_f(t, "\n");
}

JOT_FN void
jot_ir_print(const Kernel *k, Text *t)
{
    jot_text_f(t, "kernel%s%s\naxes", k->name ? " " : "", k->name ? k->name : "");
    for (uint32_t i = 0; i < k->axes.n; i++)
        jot_text_f(t, " %s:%lld", k->axes.v[i].name, (long long)k->axes.v[i].ext);
    jot_text_f(t, "\n");
    for (uint32_t i = 1; i < k->bufs.n; i++)
        print_buf(&k->bufs.v[i], t);
    for (uint32_t i = 0; i < k->scalars.n; i++)
        jot_text_f(t, "scalar %s %s\n", jot_dtype_name((jot_DType)k->scalars.v[i].dtype),
                   k->scalars.v[i].name);
    for (uint32_t i = 1; i < k->values.n; i++)
        print_value(k, i, t);
    for (uint32_t i = 0; i < k->stores.n; i++) {
        const KStore *s = &k->stores.v[i];
        jot_text_f(t, "!%u %s", i, k->bufs.v[s->buf].name);
        print_ixs(k, s->at, s->nidx, "[", "] ", t);
        jot_text_f(t, "%s= %%%u", s->acc ? jot_ew_info[s->acc].name : "", s->value);
        print_conds(k, s->at + s->nidx, s->ncond, t);
        jot_text_f(t, "\n");
    }
}
