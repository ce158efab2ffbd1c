/* ccode/emit/vector.c - expressions of whole vectors, as gcc and clang know them.
 *
 *     t[l] <= 0.0f ? 0.0f : t[l]    ->    jot_sel_f32x16(t <= 0.0f, (jot_f32x16){0}, t)
 *     x[i + l] ? t[l] : u[l]      ->    jot_sel_f32x16(jot_mask_f32x16(jot_ld_u8x16(x + i)), t, u)
 *
 * What is no such expression is a loop over lanes, which is scalar code, in vectors
 * that were loaded as such. A contraction's epilogue has two dozen copies of it.
 *
 *   requires  counted code     keeps  the value in every lane     breaks  nothing
 *
 * Read before: ccode/emit/expr.c. After: ccode/emit/emit.c. */
#include "ccode/emit/print.h"

static const Inst *
vector_arg(const Printer *p, const Inst *in, int i)
{
    return &p->code->inst.v[p->code->args.v[in->arg + (uint32_t)i]];
}

/* A vector by name, an expression that is one, or a scalar for all lanes. */
static bool
vector_operand(Printer *p, const Inst *in, int i)
{
    const Inst *arg = vector_arg(p, in, i);
    return !arg->lanes || !arg->in_place ||
           jot_print_whole(p, p->code->args.v[in->arg + (uint32_t)i]);
}

/* Bytes of lanes, 0 or 1: a vector by name, or as it lies in memory. */
static bool
vector_of_bools(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    return in->lanes && in->dtype == JOT_BOOL && (!in->in_place || jot_print_whole(p, n));
}

/* A comparison of floats as wide as `dtype`, which gives a mask as wide. */
static bool
vector_compares(Printer *p, const Inst *in, int dtype)
{
    return in->in_place && in->lanes && in->op == C_EW && in->ew >= EW_EQ && in->ew <= EW_GE &&
           vector_arg(p, in, 0)->dtype == dtype && vector_operand(p, in, 0) &&
           vector_operand(p, in, 1) && (vector_arg(p, in, 0)->lanes || vector_arg(p, in, 1)->lanes);
}

/* Of 32 or 64 bits: what whole vectors are of. */
JOT_FN bool
jot_print_is_lane(int dtype)
{
    return dtype < JOT_DTYPES && jot_dtype_nbytes((jot_DType)dtype) >= sizeof(float);
}

/* A whole vector of bytes or shorts as floats, as they are loaded. */
JOT_FN bool
jot_print_is_unpacked(const Printer *p, const Inst *in)
{
    const Inst *load;
    if (!p->d->vectors || p->loop || in->op != C_EW || in->ew != EW_CAST || in->dtype != JOT_F32 ||
        in->round != JOT_F32 || in->lanes != p->lanes)
        return false;
    load = vector_arg(p, in, 0);
    return load->op == C_LOAD && load->in_place && load->narg == 1 && load->lanes == in->lanes &&
           load->dtype != JOT_BOOL && jot_dtype_nbytes((jot_DType)load->dtype) < sizeof(float) &&
           p->k->bufs.v[load->aux].dtype == load->dtype;
}

/* A whole vector of one type as another: integers as floats, or what is as wide or twice or half as
 * wide; or floats rounded to halves. */
JOT_FN bool
jot_print_is_converted(Printer *p, const Inst *in)
{
    int from, to = in->dtype;
    bool half = jot_print_is_half(in->round);
    if (!p->d->vectors || p->loop || in->op != C_EW || in->ew != EW_CAST ||
        (in->round != to && !half) || !in->lanes || !vector_arg(p, in, 0)->lanes ||
        !vector_operand(p, in, 0))
        return false;
    from = vector_arg(p, in, 0)->dtype;
    if (half)
        return from == JOT_F32;
    return (from == to && jot_print_is_lane(to)) || (from == JOT_I32 && to == JOT_F32) ||
           (from == JOT_F32 && to == JOT_F64) || (from == JOT_F64 && to == JOT_F32) ||
           (from == JOT_I32 && to == JOT_I64);
}

/* A choice by a mask: a comparison's, or made of bytes. */
JOT_FN bool
jot_print_is_choice(Printer *p, const Inst *in)
{
    const Inst *cond;
    if (!p->d->vectors || p->loop || !in->lanes || in->op != C_EW || in->ew != EW_SELECT ||
        !jot_print_is_lane(in->dtype))
        return false;
    cond = vector_arg(p, in, 0);
    return (vector_compares(p, cond, in->dtype) || vector_of_bools(p, p->code->args.v[in->arg])) &&
           vector_operand(p, in, 1) && vector_operand(p, in, 2);
}

/* An operand of a function of vectors: a scalar goes to all lanes. */
JOT_FN void
jot_print_all_lanes(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    bool zero = in->op == C_CONST && in->c.u == 0;
    if (in->lanes) {
        jot_print_expr(p, n, 13, WHOLE);
        return;
    }
    jot_print_f(p, zero ? "(jot_%sx%d){0}" : "jot_bc_%sx%d(%w)",
                jot_print_short(jot_print_is_half(in->dtype) ? JOT_F32 : in->dtype), p->lanes, n);
}

JOT_FN void
jot_print_choice(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    bool bytes = vector_of_bools(p, arg[0]);
    jot_text_f(p->out, "jot_sel_%sx%d(", jot_print_short(in->dtype), p->lanes);
    if (bytes)
        jot_text_f(p->out, "jot_mask_%sx%d(", jot_print_short(in->dtype), p->lanes);
    jot_print_f(p, bytes ? "%w), " : "%w, ", arg[0]);
    jot_print_all_lanes(p, arg[1]);
    jot_text_f(p->out, ", ");
    jot_print_all_lanes(p, arg[2]);
    jot_text_f(p->out, ")");
}

/* Vectors of gcc and clang know + - * / and negation of floats, choices by a comparison, and loads;
 * functions, and arithmetic of integers, which wraps around, are the prelude's on vectors
 * (ccode/emit/prelude_vector.c); where fewer lanes are in use the others hold anything. */
JOT_FN bool
jot_print_whole(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    int dtype;
    if (!p->d->vectors || !in->lanes)
        return false;
    if (p->loop)
        return jot_print_lanes_whole(p, n);
    if (in->op == C_LOAD) /* its conditions are of no lane */
        return (jot_print_is_lane(in->dtype) || (in->narg == 1 && in->dtype == JOT_BOOL)) &&
               (p->k->bufs.v[in->aux].dtype == in->dtype ||
                jot_print_is_half(p->k->bufs.v[in->aux].dtype));
    if (jot_print_is_choice(p, in) || jot_print_is_unpacked(p, in) || jot_print_is_converted(p, in))
        return true;
    if (in->op != C_EW || !jot_print_is_lane(in->dtype) || in->ew == EW_CAST || in->ew == EW_SELECT)
        return false;
    if (jot_print_is_call(jot_print_ew_text(p, in, &dtype)) && dtype != in->dtype)
        return false;
    for (int i = 0; i < in->narg; i++)
        if (!vector_operand(p, in, i))
            return false;
    return true;
}
