/* ccode/emit/prelude_spell.c - an expression of the prelude in vectors.
 *
 *     x < 0.0f ? -x : x         ->    jot_sellt_f32x16(x, jot_bc_f32x16(0.0f), (-x), x)
 *     (jot_u8)((jot_u32)a + b)  ->    ((jot_u8x16)a + b)                  the lower bits suffice
 *     (double)x * 0.5           ->    (jot_cv_f64_f32x16(x) * 0.5)
 *
 * A scalar goes to all lanes: by the compiler beside an operator, by jot_bc_ elsewhere.
 *
 *   requires  a tree with its types (ccode/emit/prelude_read.c)
 *   keeps     the bits, lane for lane: C's promotions and conversions are spelled out
 *
 * Read before: ccode/emit/prelude_read.c. After: ccode/emit/prelude_vector.c. */
#include "ccode/emit/prelude_vector.h"

JOT_FN VType
jot_vform_int(int bits, bool is_unsigned)
{
    return (VType)((bits == 8 ? VT_I8 : bits == 16 ? VT_I16 : bits == 32 ? VT_I32 : VT_I64) +
                   is_unsigned);
}

static bool
vform_unsigned(VType t)
{
    return !vtype_is_float(t) && t % 2 == 1;
}

JOT_FN void
jot_vform_put_type(VForm *f, VType t)
{
    jot_text_f(f->out, "jot_%sx%d", jot_vtype(t)->lane, f->lanes);
}

JOT_FN void
jot_vform_source(VForm *f, const VNode *v)
{
    jot_text_put(f->out, v->s, v->n);
}

/* ---- conversions: opened, the value is spelled, closed ---- */

/* By way of 32 bits, which the machines convert. */
static VType
vform_between(VType from, VType to)
{
    bool down = vtype_is_float(from) && !vtype_is_float(to) && jot_vtype(to)->bits < 32;
    bool up = vtype_is_float(to) && !vtype_is_float(from) && jot_vtype(from)->bits < 32;
    return down || up ? VT_I32 : to;
}

static bool
vform_same_bits(VType a, VType b)
{
    return !vtype_is_float(a) && !vtype_is_float(b) && jot_vtype(a)->bits == jot_vtype(b)->bits;
}

/* The value is spelled between the two. */
JOT_FN void
jot_vform_open(VForm *f, VType from, VType to)
{
    VType mid = vform_between(from, to);
    if (from == to)
        return;
    if (vform_same_bits(from, to)) {
        jot_text_f(f->out, "(");
        jot_vform_put_type(f, to);
        jot_text_f(f->out, ")(");
        return;
    }
    if (mid != to && mid != from)
        jot_text_f(f->out, "jot_cv_%s_%sx%d(", jot_vtype(to)->lane, jot_vtype(mid)->lane, f->lanes);
    jot_text_f(f->out, "jot_cv_%s_%sx%d(", jot_vtype(mid != from ? mid : to)->lane,
               jot_vtype(from)->lane, f->lanes);
}

JOT_FN void
jot_vform_shut(VForm *f, VType from, VType to)
{
    VType mid = vform_between(from, to);
    if (from != to)
        jot_text_f(f->out, mid != to && mid != from ? "))" : ")");
}

/* ---- values ---- */

/* A scalar as it stands, of that type. */
static void
vform_scalar(VForm *f, int n, VType t)
{
    const VNode *v = &f->node[n];
    if (v->type != t || v->truth || (v->kind != V_NUMBER && v->kind != V_NAME)) {
        jot_text_f(f->out, "(%s)(", jot_vtype(t)->c);
        jot_vform_source(f, v);
        jot_text_f(f->out, ")");
    } else {
        jot_vform_source(f, v);
    }
}

/* Beside a vector of that type: gcc and clang bring a scalar to all lanes. */
static void
vform_operand(VForm *f, int n, VType t)
{
    if (f->node[n].vec)
        jot_vform_value(f, n, t);
    else
        vform_scalar(f, n, t);
}

/* A callee writes all lanes: within a condition only to what is the condition's own. */
static void
vform_pointer(VForm *f, const VNode *v)
{
    const VNode *name = v->kind == V_ADDRESS ? &f->node[v->arg[0]] : v;
    const VVar *var = jot_vform_var(f, name->s, name->n);
    f->failed |= !var || var->depth < f->depth;
    jot_vform_source(f, v);
}

static void
vform_call_text(VForm *f, const VNode *v)
{
    const char *p = v->fn->params;
    VVar param;
    jot_text_f(f->out, "%s_x%d(", v->fn->name, f->lanes);
    for (int a = v->arg[0]; (p = jot_vform_param(p, &param)) != NULL; a = f->node[a].next) {
        if (a < 0) {
            f->failed = true;
            return;
        }
        jot_text_f(f->out, a == v->arg[0] ? "" : ", ");
        if (param.kind == VAR_POINTER)
            vform_pointer(f, &f->node[a]);
        else
            jot_vform_value(f, a, param.type);
    }
    jot_text_f(f->out, ")");
}

/* Is it a small integer, which C would promote: compared by itself it gives the same. */
static VType
vform_small(const VForm *f, int n, VType beside)
{
    const VNode *v = &f->node[n];
    uint32_t x = 0;
    if (!v->truth && v->vec && !vtype_is_float((VType)v->type) && jot_vtype(v->type)->bits < 32)
        return (VType)v->type;
    if (v->kind == V_UNARY && v->op == '-' && !v->vec && !vform_unsigned(beside))
        v = &f->node[v->arg[0]];
    if (v->kind != V_NUMBER || beside == VT_NONE)
        return VT_NONE;
    for (size_t i = 0; i < v->n && v->s[i] >= '0' && v->s[i] <= '9'; i++)
        x = x * 10 + (uint32_t)(v->s[i] - '0');
    return x < 1u << (jot_vtype(beside)->bits - 1) && v->n < 6 ? beside : VT_NONE;
}

/* The type in which two are compared. */
static VType
vform_compared(const VForm *f, const VNode *v)
{
    VType a = vform_small(f, v->arg[0], VT_NONE), b = vform_small(f, v->arg[1], a);
    a = a == VT_NONE ? vform_small(f, v->arg[0], b) : a;
    return a != VT_NONE && a == b ? a
        : jot_vform_common(f->node[v->arg[0]].type, f->node[v->arg[1]].type);
}

static bool
vform_is_comparison(const VForm *f, const VNode *v)
{
    return v->kind == V_BINARY && vform_is_compare(v->op) && v->vec &&
           !(f->node[v->arg[0]].truth && f->node[v->arg[1]].truth);
}

static bool
vform_alike(const VNode *a, const VNode *b)
{
    return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* A comparison of floats and what it chooses: one instruction's worth, or an extreme. False: it is
 * another condition. */
static bool
vform_choose_compared(VForm *f, const VNode *v, VType t)
{
    const VNode *c = &f->node[v->arg[0]], *yes = &f->node[v->arg[1]], *no = &f->node[v->arg[2]];
    bool swap, extreme;
    int x = c->arg[0], y = c->arg[1];
    VType as;
    if (!vform_is_comparison(f, c))
        return false;
    as = vform_compared(f, c);
    if (!vtype_is_float(as) || jot_vtype(as)->bits != jot_vtype(t)->bits)
        return false;
    swap = c->op == '>' || c->op == VOP('>', '=');
    extreme = as == t && (c->op == '<' || c->op == '>') && v->type == t &&
              f->node[x].type == t && f->node[y].type == t;
    if (extreme && vform_alike(yes, &f->node[x]) && vform_alike(no, &f->node[y])) {
        jot_text_f(f->out, "jot_%s_", swap ? "max" : "min");
    } else if (extreme && vform_alike(yes, &f->node[y]) && vform_alike(no, &f->node[x])) {
        jot_text_f(f->out, "jot_%s_", swap ? "min" : "max");
        swap = true;
    } else {
        extreme = false;
        if (as != t) {
            jot_text_f(f->out, "(");
            jot_vform_put_type(f, t);
            jot_text_f(f->out, ")");
        }
        jot_text_f(f->out, "jot_sel%s_", c->op == VOP('=', '=') ? "eq" : c->op == VOP('!', '=')
                   ? "ne" : c->op == '<' || c->op == '>' ? "lt" : "le");
    }
    if (swap && !(extreme && vform_alike(yes, &f->node[x])))
        x = c->arg[1], y = c->arg[0];
    jot_text_f(f->out, "%sx%d(", jot_vtype(as)->lane, f->lanes);
    jot_vform_value(f, x, as);
    jot_text_f(f->out, ", ");
    jot_vform_value(f, y, as);
    for (int i = 1; i < 3 && !extreme; i++) {
        jot_text_f(f->out, ", ");
        if (as != t) {
            jot_text_f(f->out, "(");
            jot_vform_put_type(f, as);
            jot_text_f(f->out, ")(");
        }
        jot_vform_value(f, v->arg[i], t);
        jot_text_f(f->out, as != t ? ")" : "");
    }
    jot_text_f(f->out, ")");
    return true;
}

static void
vform_choose(VForm *f, const VNode *v, VType t)
{
    const VNode *c = &f->node[v->arg[0]];
    f->choices += c->vec;
    if (!c->vec) {
        jot_text_f(f->out, "(");
        jot_vform_source(f, c);
        jot_text_f(f->out, " ? ");
        jot_vform_value(f, v->arg[1], t);
        jot_text_f(f->out, " : ");
        jot_vform_value(f, v->arg[2], t);
        jot_text_f(f->out, ")");
    } else if (!vform_choose_compared(f, v, t)) {
        jot_text_f(f->out, "jot_sel_%sx%d(", jot_vtype(t)->lane, f->lanes);
        jot_vform_mask(f, v->arg[0], jot_vtype(t)->bits);
        jot_text_f(f->out, ", ");
        jot_vform_value(f, v->arg[1], t);
        jot_text_f(f->out, ", ");
        jot_vform_value(f, v->arg[2], t);
        jot_text_f(f->out, ")");
    }
    f->choices -= c->vec;
}

/* The operator, the other operand and what closes both. */
static void
vform_second(VForm *f, const VNode *v, VType t)
{
    char text[3] = {(char)(v->op & 255), (char)(v->op >> 8), 0};
    jot_text_f(f->out, " %s ", text);
    vform_operand(f, v->arg[1], t);
    jot_text_f(f->out, ")");
}

/* A binary operator in type t: a division that a choice guards must not be run. */
static void
vform_arithmetic(VForm *f, const VNode *v, VType t)
{
    bool shift = v->op == VOP('<', '<') || v->op == VOP('>', '>');
    f->failed |= (v->op == '/' || v->op == '%') && !vtype_is_float(t) &&
                 (f->choices > 0 || f->depth > 0);
    jot_text_f(f->out, "(");
    if (shift)
        jot_vform_value(f, v->arg[0], t);
    else
        vform_operand(f, v->arg[0], t);
    vform_second(f, v, t);
}

/* In the type that it has in C. */
static void
vform_own(VForm *f, const VNode *v)
{
    switch ((VKind)v->kind) {
    case V_NAME: jot_vform_source(f, v); break;
    case V_AT:
        jot_text_f(f->out, "(");
        jot_vform_source(f, v);
        jot_text_f(f->out, ")");
        break;
    case V_CALL: vform_call_text(f, v); break;
    case V_UNARY:
        jot_text_f(f->out, "(%c", v->op);
        jot_vform_value(f, v->arg[0], (VType)v->type);
        jot_text_f(f->out, ")");
        break;
    case V_BINARY: vform_arithmetic(f, v, (VType)v->type); break;
    case V_CHOICE: vform_choose(f, v, (VType)v->type); break;
    case V_CAST: jot_vform_value(f, v->arg[0], (VType)v->type); break;
    case V_NUMBER: case V_ADDRESS: f->failed = true; break;
    }
}

/* The lower bits are those of the operands' lower bits. */
static bool
vform_narrow(VForm *f, const VNode *v, VType t)
{
    VType u = jot_vform_int(jot_vtype(t)->bits, true);
    bool low = v->op == '+' || v->op == '-' || v->op == '*' || v->op == '&' || v->op == '|' ||
               v->op == '^' || v->op == '~';
    if (v->kind == V_CHOICE) {
        vform_choose(f, v, t);
        return true;
    }
    if (v->kind == V_CAST && !vtype_is_float((VType)f->node[v->arg[0]].type)) {
        jot_vform_value(f, v->arg[0], t);
        return true;
    }
    if (!low || (v->kind != V_BINARY && v->kind != V_UNARY))
        return false;
    jot_text_f(f->out, "(");
    jot_vform_put_type(f, t);
    jot_text_f(f->out, ")");
    if (v->kind == V_BINARY) {
        vform_arithmetic(f, v, u);
        return true;
    }
    jot_text_f(f->out, "(%c", v->op);
    jot_vform_value(f, v->arg[0], u);
    jot_text_f(f->out, ")");
    return true;
}

/* A scalar in all lanes. What is wider than a register gcc 12 would build in memory, but for a
 * constant that it sees at once. */
static void
vform_all_lanes(VForm *f, int n, VType t)
{
    int bits = jot_vtype(t)->bits;
    bool wide = f->lanes * bits > (bits == 64 ? 256 : 512);
    jot_text_f(f->out, wide ? "(" : "jot_bc_%sx%d(", jot_vtype(t)->lane, f->lanes);
    vform_scalar(f, n, t);
    if (wide) {
        jot_text_f(f->out, vtype_is_float(t) ? " - (" : " + ("); /* -0 stays */
        jot_vform_put_type(f, t);
        jot_text_f(f->out, "){0}");
    }
    jot_text_f(f->out, ")");
}

/* Node n, converted to type t, as a vector. */
JOT_FN void
jot_vform_value(VForm *f, int n, VType t)
{
    const VNode *v = &f->node[n];
    VType own = (VType)v->type;
    bool ints = !vtype_is_float(own) && !vtype_is_float(t);
    if (f->failed)
        return;
    if (!v->vec) {
        vform_all_lanes(f, n, t);
    } else if (v->truth) {
        VType bit = jot_vform_int(jot_vtype(t)->bits, false);
        jot_vform_open(f, bit, t);
        jot_text_f(f->out, "(");
        jot_vform_mask(f, n, jot_vtype(t)->bits);
        jot_text_f(f->out, " & 1)");
        jot_vform_shut(f, bit, t);
    } else if (!ints || own == t || jot_vtype(t)->bits > jot_vtype(own)->bits ||
               !vform_narrow(f, v, t)) {
        jot_vform_open(f, own, t);
        vform_own(f, v);
        jot_vform_shut(f, own, t);
    }
}

/* ---- masks ---- */

/* The width that a truth value has by itself. */
JOT_FN int
jot_vform_mask_bits(VForm *f, const VNode *v)
{
    VVar param;
    if (!v->truth)
        return jot_vtype(jot_vform_common((VType)v->type, (VType)v->type))->bits;
    if (v->kind == V_NAME)
        return jot_vform_var(f, v->s, v->n)->bits;
    if (v->kind == V_CALL)
        return jot_vform_param(v->fn->params, &param) ? jot_vtype(param.type)->bits : 32;
    if (vform_is_comparison(f, v))
        return jot_vtype(vform_compared(f, v))->bits;
    for (int i = v->kind == V_CHOICE; i < 2; i++)
        if (v->arg[i] >= 0 && f->node[v->arg[i]].vec)
            return jot_vform_mask_bits(f, &f->node[v->arg[i]]);
    return 32;
}

static void
vform_comparison(VForm *f, const VNode *v)
{
    VType t = vform_compared(f, v);
    jot_text_f(f->out, "(jot_i%dx%d)(", jot_vtype(t)->bits, f->lanes);
    vform_operand(f, v->arg[0], t);
    vform_second(f, v, t);
}

/* A truth value of truth values. */
static void
vform_logic(VForm *f, const VNode *v, int bits)
{
    if (v->kind == V_UNARY) {
        jot_text_f(f->out, "(~");
        jot_vform_mask(f, v->arg[0], bits);
        jot_text_f(f->out, ")");
        return;
    }
    jot_text_f(f->out, v->op == VOP('=', '=') ? "(~(" : "(");
    f->choices += v->op >> 8 != 0;
    jot_vform_mask(f, v->arg[0], bits);
    jot_text_f(f->out, " %c ", vform_is_compare(v->op) ? '^' : v->op & 255);
    jot_vform_mask(f, v->arg[1], bits);
    f->choices -= v->op >> 8 != 0;
    jot_text_f(f->out, v->op == VOP('=', '=') ? "))" : ")");
}

static void
vform_choose_mask(VForm *f, const VNode *v, int bits)
{
    jot_text_f(f->out, "jot_sel_i%dx%d(", bits, f->lanes);
    for (int i = 0; i < 3; i++) {
        jot_vform_mask(f, v->arg[i], bits);
        jot_text_f(f->out, i < 2 ? ", " : ")");
    }
}

/* Node n as lanes of 0 or -1 of so many bits. */
JOT_FN void
jot_vform_mask(VForm *f, int n, int bits)
{
    const VNode *v = &f->node[n];
    int own = jot_vform_mask_bits(f, v);
    VType from = jot_vform_int(own, false), to = jot_vform_int(bits, false);
    if (f->failed)
        return;
    if (!v->vec) {
        jot_text_f(f->out, "jot_bc_i%dx%d(-(", bits, f->lanes);
        jot_vform_source(f, v);
        jot_text_f(f->out, " != 0))");
    } else if (v->truth && v->kind == V_CHOICE) {
        vform_choose_mask(f, v, bits);
    } else if (v->truth && v->kind != V_NAME && v->kind != V_CALL && !vform_is_comparison(f, v)) {
        vform_logic(f, v, bits);
    } else {
        jot_vform_open(f, from, to);
        if (vform_is_comparison(f, v)) {
            vform_comparison(f, v);
        } else if (v->truth) {
            vform_own(f, v);
        } else {
            VType t = jot_vform_common((VType)v->type, (VType)v->type);
            jot_text_f(f->out, "(jot_i%dx%d)(", own, f->lanes);
            jot_vform_value(f, n, t);
            jot_text_f(f->out, " != 0)");
        }
        jot_vform_shut(f, from, to);
    }
}
