/* ccode/emit/expr.c - expressions of the emitted text: what stands in place of a record, by its
 * kind; of vectors and indices in ccode/emit/lanes.c and ccode/emit/index.c, of a device in
 * ccode/device/emit_device.c.
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
        if (jot_print_is_half(to))
            jot_text_f(p->out, "jotm_%s_to_f32_x%d(jotm_f32_to_%s_x%d(", jot_print_short(to),
                       p->lanes, jot_print_short(to), p->lanes);
        else if (from != to)
            jot_text_f(p->out, "jot_cv_%s_%sx%d(", jot_print_short(to), jot_print_short(from),
                       p->lanes);
        jot_print_expr(p, a, from == to ? 0 : 13, WHOLE);
        jot_text_f(p->out, jot_print_is_half(to) ? "))" : from != to ? ")" : "");
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
