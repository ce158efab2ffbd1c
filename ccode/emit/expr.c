/* ccode/emit/expr.c - expressions of the emitted text: what stands in place of a record, by its
 * kind; of indices in ccode/emit/index.c, of single lanes in ccode/emit/lanes.c, of a device in
 * ccode/device/emit_device.c. Those of whole vectors, as gcc and clang know them:
 *
 *     t[l] <= 0.0f ? 0.0f : t[l]    ->    jot_sel_f32x16(t <= 0.0f, (jot_f32x16){0}, t)
 *     x[i + l] ? t[l] : u[l]      ->    jot_sel_f32x16(jot_mask_f32x16(jot_ld_u8x16(x + i)), t, u)
 *
 * What is no such expression is a loop over lanes, which is scalar code, in vectors that were
 * loaded as such. A contraction's epilogue has two dozen copies of it.
 *
 * Read before: ccode/emit/print.c. After: ccode/emit/emit.c. */
#include "ccode/emit/print.h"

static bool
is_negative(const Inst *in)
{
    if (in->op != C_CONST)
        return false;
    return in->dtype >= JOT_F16 ? in->c.f < 0 : in->dtype < JOT_U8 && in->c.i < 0;
}

/* ---- memory ---- */

static void
print_element(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    bool half = jot_print_is_half(dtype) && in->dtype != JOT_U16;
    if (half)
        jot_text_f(p->out, "jotm_%s_to_f32(", jot_dtype_name((jot_DType)dtype));
    jot_print_f(p, "%b[%3v%s]%s", in->aux, jot_print_arg(p, in, 0),
                in->lanes && mode == EACH_LANE && !p->loop ? " + l" : "", half ? ")" : "");
}

/* Part of a vector. Scratch memory has a vector to spare at its end, so that it is read whole;
 * where its rows are no whole vectors, which are stored as such (ccode/lower/memory.c), the other
 * lanes become 0: what is there by chance may be subnormal numbers, at a hundred cycles each. */
static void
print_load_whole(Printer *p, const Inst *in)
{
    const KBuf *buf = &p->k->bufs.v[in->aux];
    const Layout *l = buf->layout;
    bool scratch = buf->role == BUF_SCRATCH, part = in->lanes < p->lanes && !scratch;
    bool zero = in->lanes < p->lanes && scratch && (l->n < 1 || l->size[l->n - 1] % p->lanes);
    bool half = jot_print_is_half(buf->dtype) && in->dtype != JOT_U16;
    if (zero)
        jot_text_f(p->out, "jot_part_%sx%d(", jot_print_short(in->dtype), p->lanes);
    jot_text_f(p->out, "jot_ld%s_%s%s%sx%d(", part ? "n" : "", half ? jot_print_short(buf->dtype)
               : "", half ? "_" : "", jot_print_short(in->dtype), p->lanes);
    jot_print_f(p, part ? "%b + %2v, %d)" : "%b + %2v)", in->aux, jot_print_arg(p, in, 0),
                in->lanes);
    if (zero)
        jot_text_f(p->out, ", %d)", in->lanes);
}

static void
print_load(Printer *p, const Inst *in, LaneMode mode)
{
    jot_print_conditions(p, in, 1, EACH_LANE);
    if (in->narg > 1)
        jot_text_f(p->out, " ? ");
    if (mode == WHOLE && in->lanes)
        print_load_whole(p, in);
    else
        print_element(p, in, mode);
    if (in->narg > 1) {
        bool all = mode == WHOLE && in->lanes;
        jot_text_f(p->out, " : ");
        if (all)
            jot_text_f(p->out, "jot_bc_%sx%d(", jot_print_short(in->dtype), p->lanes);
        jot_print_outside(p, in);
        jot_text_f(p->out, all ? ")" : "");
    }
}

/* ---- conversions ---- */

static void
print_cast(Printer *p, const Inst *in, int from, LaneMode mode)
{
    uint32_t a = jot_print_arg(p, in, 0);
    int to = in->round;
    if (mode == WHOLE && in->lanes && jot_print_is_unpacked(p, in)) {
        const Inst *load = &p->code->inst.v[a];
        const char *lane = jot_print_short(load->dtype);
        jot_text_f(p->out, "jot_cv_f32_%sx%d(jot_ld_%sx%d(", lane, p->lanes, lane, p->lanes);
        jot_print_f(p, "%b + %2v))", load->aux, jot_print_arg(p, load, 0));
        return;
    }
    if (mode == WHOLE && jot_print_is_converted(p, in)) {
        if (to == JOT_BF16)
            jot_text_f(p->out, "jot_bf16_f32x%d(", p->lanes);
        else if (jot_print_is_half(to))
            jot_text_f(p->out, "jotm_%s_to_f32_x%d(jotm_f32_to_%s_x%d(", jot_print_short(to),
                       p->lanes, jot_print_short(to), p->lanes);
        else if (from != to)
            jot_text_f(p->out, "jot_cv_%s_%sx%d(", jot_print_short(to), jot_print_short(from),
                       p->lanes);
        jot_print_expr(p, a, from == to ? 0 : 13, WHOLE);
        jot_text_f(p->out, to == JOT_F16 ? "))" : from != to ? ")" : "");
        return;
    }
    if (to == JOT_BOOL && jot_print_is_condition(&p->code->inst.v[a]))
        jot_print_expr(p, a, 13, mode);
    else if (to == JOT_BOOL)
        jot_print_f(p, "%3m != %s", mode, a,
                    from < JOT_F16 ? "0" : from == JOT_F64 ? "0.0" : "0.0f");
    else if (jot_print_is_half(to)) {
        const char *half = jot_dtype_name((jot_DType)to);
        jot_print_f(p, from == JOT_F32 ? "jotm_%s_to_f32(jotm_f32_to_%s(%m))"
                    : "jotm_%s_to_f32(jotm_f32_to_%s((float)%1m))", half, half, mode, a);
    } else if (from >= JOT_F16 && to < JOT_F16)
        jot_print_f(p, "jotm_%s_to_%s(%m)", from == JOT_F64 ? "f64" : "f32", jot_print_short(to),
                    mode, a);
    else /* in one step tcc keeps the bits above */
        jot_print_f(p, from == JOT_I8 && to == JOT_U16 ? "(%s)(jot_i32)%1m" : "(%s)%1m",
                    jot_print_type(to), mode, a);
}

static int
cast_level(int from, int to)
{
    if (to == JOT_BOOL)
        return 6;
    return jot_print_is_half(to) || (from >= JOT_F16 && to < JOT_F16) ? 0 : 1;
}

/* ---- the whole ---- */

/* May an element that is loaded as an index be further out than an index counts? */
static bool
is_far(const Printer *p, const Inst *in)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    return !in->exact && (dtype == JOT_I64 || dtype == JOT_U64);
}

JOT_FN int
jot_print_body_level(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype;
    if (p->loop && in->lanes && mode == WHOLE)
        return jot_print_lanes_level(p, in);
    switch (in->op) {
    case C_LIN: case C_IDIV: case C_IMOD: case C_IMUL: case C_GE0: case C_EQ0: case C_INOT:
    case C_IAND: case C_IOR: case C_IMIN: case C_IMAX: return jot_print_index_level(p, in, mode);
    case C_FIRST: return 6;
    case C_CONST: return is_negative(in) ? 1 : 0;
    case C_INDEX:
        if (in->dtype == JOT_BOOL
            && jot_print_is_condition(&p->code->inst.v[jot_print_arg(p, in, 0)]))
            return jot_print_level(p, jot_print_arg(p, in, 0), mode);
        return cast_level(JOT_I64, in->dtype);
    case C_INT: return is_far(p, in) ? 0 : 1;
    case C_LOAD: return in->narg > 1 ? 13 : 0;
    case C_EW:
        if (in->ew == EW_CAST)
            return cast_level(p->code->inst.v[jot_print_arg(p, in, 0)].dtype, in->round);
        if (mode == WHOLE && jot_print_is_choice(p, in))
            return 0;
        return jot_print_template_level(jot_print_ew_text(p, in, &dtype));
    default: return 0;
    }
}

static void
print_ew(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype;
    const char *text = jot_print_ew_text(p, in, &dtype);
    if (in->ew == EW_CAST)
        print_cast(p, in, p->code->inst.v[jot_print_arg(p, in, 0)].dtype, mode);
    else if (p->d->vectors && in->lanes && mode == WHOLE && jot_print_is_call(text))
        jot_print_lanes_call(p, in, text, dtype);
    else
        jot_print_template(p, text, &p->code->args.v[in->arg], dtype, mode);
}

static void
print_scalar(Printer *p, const Inst *in)
{
    bool is_signed = in->dtype < JOT_U8 && in->dtype != JOT_BOOL;
    char member = in->dtype >= JOT_F16 ? 'f' : is_signed ? 'i' : 'u';
    if (p->d->device) {
        jot_text_f(p->out, "scalar%u", in->aux);
        return;
    }
    jot_text_f(p->out, "(%s)scalars[%u].%c", jot_print_type(in->dtype), in->aux, member);
}

static void
print_loaded(Printer *p, const Inst *in, LaneMode mode)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    jot_text_f(p->out, !is_far(p, in) ? "(jot_i64)" : dtype == JOT_I64 ? "jot_far(" : "jot_far_u(");
    print_element(p, in, mode);
    jot_text_f(p->out, is_far(p, in) ? ")" : "");
}

JOT_FN void
jot_print_body(Printer *p, uint32_t n, LaneMode mode)
{
    const Inst *in = &p->code->inst.v[n];
    if (p->loop && in->lanes && mode == WHOLE) {
        jot_print_lanes(p, n);
        return;
    }
    switch (in->op) {
    case C_LIN: case C_IDIV: case C_IMOD: case C_IMUL: case C_GE0: case C_EQ0: case C_INOT:
    case C_IAND: case C_IOR: case C_IMIN: case C_IMAX: case C_CLAMP:
        /* what stays may be made of what moves: i/64 of 16 lanes (ccode/emit/loop.c) */
        jot_print_index(p, in, p->loop && p->moves[n] == MOVES_NOT ? WHOLE : mode);
        break;
    case C_PHASE: jot_text_f(p->out, "phase"); break;
    case C_LO: jot_text_f(p->out, "lo"); break;
    case C_HI: jot_text_f(p->out, "hi"); break;
    case C_INT: print_loaded(p, in, mode); break;
    case C_CONST: jot_print_const(p, in); break;
    case C_SCALAR: print_scalar(p, in); break;
    case C_INDEX: {
        Inst cast = *in;
        cast.round = in->dtype;
        print_cast(p, &cast, JOT_I64, mode);
        break;
    }
    case C_LOAD: print_load(p, in, mode); break;
    case C_FIRST: jot_text_f(p->out, "lane == 0"); break;
    case C_ITEM: jot_text_f(p->out, "lane"); break;
    case C_TEAM: jot_print_device(p, in, p->name[0], mode); break;
    case C_LANE:
        jot_print_f(p, "%0w[%l]", jot_print_arg(p, in, 0), in->c.i);
        break;
    case C_CELL:
        jot_print_f(p, "%0m[%v]", mode, jot_print_arg(p, in, 0), jot_print_arg(p, in, 1));
        break;
    case C_EW:
        if (mode == WHOLE && jot_print_is_choice(p, in))
            jot_print_choice(p, in);
        else
            print_ew(p, in, mode);
        break;
    case C_CALL:
        jot_text_f(p->out, "%s(", p->k->values.v[in->aux].call);
        jot_print_list(p, in, 0, ", ", 0, mode);
        jot_text_put(p->out, ")", 1);
        break;
    default: break;
    }
}

/* ---- whole vectors ---- */

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
