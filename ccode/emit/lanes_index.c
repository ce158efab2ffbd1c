/* ccode/emit/lanes_index.c - indices in loops over vectors (ccode/emit/loop.c) that do not move by
 * as much from lane to lane: quotients, and elements of maps. They are vectors of 32 bits, what
 * lies where they say is gathered, and what stands under a condition on them is set under a mask.
 *
 *     k = j*56/25                  const jot_i32x16 k = (jot_i32x16)(jot_ramp_u32x16(j*56, 56)
 *                                                                    / (jot_u32)25);
 *     y[j] = x[at + k]        ->   jot_st_f32x16(y + j, jot_gather_f32x16(x + at, k, ..))
 *     if (k - i < 3)               const jot_i32x16 where = ..;
 *         s[j] = s[j] + x[k]       jot_st_f32x16(s + j, jot_sel_f32x16(where, .., ..))
 *
 * Sums and products wrap around, as arrays that are read so end before 2^30: where an element is
 * read, its place is right. What is divided, compared or used as a number is the index itself
 * (`known`), and an element of a map is compared with what the rest of a sum leaves for it, so that
 * nothing is added to one that is far away. Maps of 64 bits are brought to the ends of 32 first:
 * such an element is no place, but where conditions let it be one it is not so far.
 *
 *   requires  marks of ccode/emit/loop.c: all of a loop's indices go so, or none
 *   keeps     the value in every lane; nothing is read where a mask is 0     breaks  nothing
 *
 * Read before: ccode/emit/loop.c, ccode/emit/lanes_memory.c. After: ccode/emit/dialect_vector.c. */
#include "ccode/emit/print.h"

#define INDEX_PART ((int64_t)1 << 30) /* most of what is left of a sum without its map, and of an
                                         array */

/* ---- how large ---- */

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* |factor| * size + more, or INT64_MAX. */
static int64_t
size_plus(int64_t factor, int64_t size, int64_t more)
{
    int64_t r;
    if (factor < -INDEX_PART || !jot_mul_ok(factor < 0 ? -factor : factor, size, &r)
        || !jot_add_ok(r, more, &r))
        return INT64_MAX;
    return r;
}

static int64_t
map_size(int dtype)
{
    int bits = 8 * (int)jot_dtype_nbytes((jot_DType)dtype);
    return bits >= 64 || dtype == JOT_U32 ? INT64_MAX : (int64_t)1 << (bits - (dtype < JOT_U8));
}

JOT_FN int64_t
jot_print_index_size(const Code *code, const Inst *in, const int64_t *size)
{
    const uint32_t *arg = code->args.v + in->arg;
    int64_t most;
    switch (in->op) {
    case C_ITEM: case C_PHASE: return INDEX_ITEMS;
    case C_GE0: case C_EQ0: case C_INOT: case C_IAND: case C_IOR: return 1;
    case C_FOR: return in->narg >= 2 ? larger(size[arg[0]], size[arg[1]]) : in->c.i;
    case C_LIN:
        most = size_plus(in->c.i, 1, 0);
        for (int i = 0; i < in->narg; i++)
            most = size_plus(code->coefs.v[in->coef + (uint32_t)i], size[arg[i]], most);
        return most;
    case C_IMUL: return in->exact ? size_plus(size[arg[0]], size[arg[1]], 0) : INT64_MAX;
    case C_IDIV: case C_IMOD: return in->exact ? larger(size[arg[0]], size[arg[1]]) : INT64_MAX;
    case C_IMIN: case C_IMAX: return larger(size[arg[0]], size[arg[1]]);
    case C_CLAMP: return in->c.i;
    case C_INT: return map_size(code->k->bufs.v[in->aux].dtype);
    default: return INT64_MAX;
    }
}

/* ---- what goes so ---- */

/* A vector where it is a term or a factor: a condition, too, which is 0 or 1. */
static bool
is_vector(const Printer *p, uint32_t n)
{
    return p->moves[n] == MOVES_INDEX
        || (p->moves[n] == MOVES_LINEAR && jot_print_is_condition(&p->code->inst.v[n]));
}

static bool
is_wide_map(const Printer *p, const Inst *in)
{
    return in->op == C_INT && jot_dtype_nbytes((jot_DType)p->k->bufs.v[in->aux].dtype) > 4;
}

/* Do the lanes hold the index itself, and not only its lower bits? */
static bool
is_known(const Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    bool known = p->size[n] <= INT32_MAX;
    if (p->moves[n] != MOVES_INDEX)
        return known;
    if (in->op == C_INT)
        return !is_wide_map(p, in);
    for (int i = 0; known && i < in->narg && (in->op == C_LIN || in->op == C_IMUL); i++)
        known = is_known(p, p->code->args.v[in->arg + (uint32_t)i]);
    return known;
}

/* An index of which an operand moves, not linear in the lane. */
JOT_FN uint8_t
jot_print_index_moves(const Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    const uint32_t *arg = &p->code->args.v[in->arg];
    int dtype = in->op == C_INT ? p->k->bufs.v[in->aux].dtype : JOT_I32;
    bool ok = p->indexed;
    for (int i = 0; ok && i < in->narg; i++)
        ok = p->moves[arg[i]] < MOVES_ANY;
    if (ok && in->op == C_INT)
        ok = dtype == JOT_I32 || dtype == JOT_I64
             || (jot_dtype_nbytes((jot_DType)dtype) < 4 && dtype != JOT_BOOL
                 && p->moves[arg[0]] == MOVES_LINEAR && p->stride[arg[0]] == 1);
    else if (ok && (in->op == C_IDIV || in->op == C_IMOD))
        ok = in->exact && p->moves[arg[1]] == MOVES_NOT && is_known(p, arg[0])
             && p->size[arg[1]] <= INT32_MAX;
    else if (ok && in->op == C_CLAMP)
        ok = is_known(p, arg[0]) || p->code->inst.v[arg[0]].op == C_INT;
    else if (ok && in->op == C_IMUL)
        ok = in->exact;
    else if (ok)
        ok = in->op == C_LIN;
    return ok ? MOVES_INDEX : MOVES_ANY;
}

/* The one element of a map in a sum, added or taken off as it is: its term, or -1. */
static int
lone_map(const Printer *p, const Inst *in)
{
    int lone = -1;
    for (int i = 0; i < in->narg; i++) {
        uint32_t arg = p->code->args.v[in->arg + (uint32_t)i];
        int64_t k = p->code->coefs.v[in->coef + (uint32_t)i];
        if (!is_vector(p, arg))
            continue;
        if (lone >= 0 || p->code->inst.v[arg].op != C_INT || (k != 1 && k != -1))
            return -1;
        lone = i;
    }
    return lone;
}

/* Of all that is no index of its own; `but` one term, if it is not below 0. */
static int64_t
rest_size(const Printer *p, const Inst *in, int but)
{
    int64_t most = size_plus(in->c.i, 1, 0);
    for (int i = 0; i < in->narg; i++) {
        uint32_t arg = p->code->args.v[in->arg + (uint32_t)i];
        if (i != but && (but >= 0 || !is_vector(p, arg)))
            most = size_plus(p->code->coefs.v[in->coef + (uint32_t)i], p->size[arg], most);
    }
    return most;
}

/* Is the map's element at most INDEX_PART from 0 where the comparison says so? *up: not above. */
static bool
limits(const Printer *p, uint32_t cond, uint32_t map, bool *up)
{
    const Inst *in = &p->code->inst.v[cond], *sum;
    uint32_t arg;
    int lone;
    *up = false;
    if (in->op != C_GE0)
        return false;
    arg = p->code->args.v[in->arg];
    sum = &p->code->inst.v[arg];
    if (arg == map)
        return true;
    lone = sum->op == C_LIN ? lone_map(p, sum) : -1;
    *up = lone >= 0 && p->code->coefs.v[sum->coef + (uint32_t)lone] < 0;
    return lone >= 0 && p->code->args.v[sum->arg + (uint32_t)lone] == map
           && rest_size(p, sum, lone) <= INDEX_PART;
}

/* Are the maps of 64 bits in a place so near that their lanes hold them? */
static bool
maps_near(const Printer *p, const Inst *load, uint32_t place)
{
    const Inst *in = &p->code->inst.v[place];
    bool side[2] = {false, false}, up;
    if (p->moves[place] != MOVES_INDEX || in->op == C_CLAMP)
        return true;
    if (is_wide_map(p, in)) {
        for (int i = 1; i < load->narg; i++)
            if (limits(p, p->code->args.v[load->arg + (uint32_t)i], place, &up))
                side[up] = true;
        return side[0] && side[1];
    }
    for (int i = 0; i < in->narg && in->op != C_INT; i++)
        if (!maps_near(p, load, p->code->args.v[in->arg + (uint32_t)i]))
            return false;
    return true;
}

/* Do 32 bits hold what the indices of a place add up to: by themselves, as an element of a map, or
 * as what is left of a place in the array without the rest? */
static bool
fits(const Printer *p, const Inst *at, int64_t nelem)
{
    int64_t most = 0;
    for (int i = 0; i < at->narg; i++) {
        uint32_t arg = p->code->args.v[at->arg + (uint32_t)i];
        if (is_vector(p, arg))
            most = size_plus(p->code->coefs.v[at->coef + (uint32_t)i],
                             is_known(p, arg) ? p->size[arg] : INT64_MAX, most);
        else if (p->moves[arg] == MOVES_LINEAR) /* its ramp alone: where it begins is no vector's */
            most = size_plus(p->stride[arg], size_plus(p->code->coefs.v[at->coef + (uint32_t)i],
                                                       p->lanes, 0), most);
    }
    return most <= INT32_MAX || lone_map(p, at) >= 0
        || (nelem <= INDEX_PART && rest_size(p, at, -1) <= INDEX_PART);
}

/* Can the element be gathered? */
JOT_FN bool
jot_print_gathers(const Printer *p, const Inst *in)
{
    const KBuf *b = &p->k->bufs.v[in->aux];
    const Inst *at = &p->code->inst.v[jot_print_arg(p, in, 0)];
    return p->indexed && jot_print_is_lane(b->dtype) && (in->op == C_INT || b->dtype == in->dtype)
        && (at->op == C_LIN && at->in_place ? fits(p, at, b->layout->nelem)
                                            : b->layout->nelem <= INDEX_PART);
}

static bool
compares(const Printer *p, const Inst *in)
{
    uint32_t arg = p->code->args.v[in->arg];
    const Inst *sum = &p->code->inst.v[arg];
    int lone = sum->op == C_LIN ? lone_map(p, sum) : -1;
    return p->moves[arg] != MOVES_INDEX || is_known(p, arg) || sum->op == C_INT
           || (sum->in_place && lone >= 0 && rest_size(p, sum, lone) <= INDEX_PART);
}

static bool
use_valid(const Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    uint32_t arg = in->narg ? p->code->args.v[in->arg] : 0;
    bool index = in->narg && p->moves[arg] == MOVES_INDEX;
    switch (in->op) {
    case C_GE0: case C_EQ0: return compares(p, in);
    case C_INDEX:
        return !index || jot_print_is_condition(&p->code->inst.v[arg]) || is_known(p, arg);
    case C_INT:
        if (index || (p->moves[arg] == MOVES_LINEAR && p->stride[arg] != 1))
            return jot_print_gathers(p, in) && maps_near(p, in, arg);
        return true;
    case C_LOAD: return !index || maps_near(p, in, arg);
    case C_LIN: case C_IMUL: return p->moves[n] != MOVES_INDEX || in->in_place || is_known(p, n);
    case C_CELL: return p->moves[p->code->args.v[in->arg + 1]] < MOVES_INDEX;
    case C_STORE: return !index;
    default: return true;
    }
}

/* Under a condition that differs from lane to lane nothing is stored. */
static bool
only_sets(const Printer *p, uint32_t block)
{
    for (uint32_t n = p->code->inst.v[block].kids; n; n = p->code->inst.v[n].next) {
        const Inst *in = &p->code->inst.v[n];
        if ((in->op != C_SET && in->op != C_DECL && in->op != C_IF && !in->pure && in->op != C_LOAD
             && in->op != C_CELL)
            || (in->kids && !only_sets(p, n)))
            return false;
    }
    return true;
}

/* May the block's indices be vectors, as they are marked? */
JOT_FN bool
jot_print_indices_valid(const Printer *p, uint32_t block)
{
    for (uint32_t n = block; (n = jot_code_next(p->code, block, n)) != 0;) {
        const Inst *in = &p->code->inst.v[n];
        if (!in->live && !in->uses)
            continue;
        if ((jot_print_is_index(in) && p->moves[n] == MOVES_ANY) || !use_valid(p, n)
            || (in->op == C_IF && p->moves[n] != MOVES_NOT && !only_sets(p, n)))
            return false;
    }
    return true;
}

/* ---- spelled ---- */

/* What is no index of its own, in the first lane: a sum of index values. */
static void
print_affine(Printer *p, const Inst *in, int but)
{
    bool any = false;
    for (int i = 0; i < in->narg; i++) {
        uint32_t arg = p->code->args.v[in->arg + (uint32_t)i];
        int64_t k = p->code->coefs.v[in->coef + (uint32_t)i];
        if (i == but || is_vector(p, arg))
            continue;
        jot_text_f(p->out, k < 0 ? any ? " - " : "-" : any ? " + " : "");
        k = k < 0 ? -k : k;
        jot_print_f(p, k == 1 ? "%2w" : "%1w*%i", arg, k);
        any = true;
    }
    if (in->c.i || !any)
        jot_print_f(p, any ? in->c.i < 0 ? " - %i" : " + %i" : "%i",
                    any && in->c.i < 0 ? -in->c.i : in->c.i);
}

static int64_t
affine_step(const Printer *p, const Inst *in)
{
    int64_t step = 0;
    for (int i = 0; i < in->narg; i++) {
        uint32_t arg = p->code->args.v[in->arg + (uint32_t)i];
        if (p->moves[arg] == MOVES_LINEAR && !is_vector(p, arg))
            step += p->code->coefs.v[in->coef + (uint32_t)i] * p->stride[arg];
    }
    return step;
}

static void
print_ramp(Printer *p, uint32_t n, int64_t step)
{
    jot_text_f(p->out, "jot_ramp_u32x%d(", p->lanes);
    if (n)
        jot_print_expr(p, n, 13, WHOLE);
    jot_text_f(p->out, n ? ", %lld)" : "0, %lld)", (long long)step);
}

static void print_index_vector(Printer *p, uint32_t n);

/* The terms of a sum that are indices of their own; false: there is none. */
static bool
print_indices(Printer *p, const Inst *in, int but)
{
    bool any = false;
    for (int i = 0; i < in->narg; i++) {
        uint32_t arg = p->code->args.v[in->arg + (uint32_t)i];
        int64_t k = p->code->coefs.v[in->coef + (uint32_t)i];
        if (i == but || !is_vector(p, arg))
            continue;
        jot_text_f(p->out, any ? " + " : "");
        print_index_vector(p, arg);
        if (k != 1)
            jot_print_f(p, "*(jot_u32)%s%i%s", k < 0 ? "(" : "", k, k < 0 ? ")" : "");
        any = true;
    }
    return any;
}

/* All of a sum, but a term. */
static void
index_print_sum(Printer *p, const Inst *in, int but)
{
    int64_t step = affine_step(p, in);
    bool still = in->c.i != 0, any;
    jot_text_f(p->out, "(");
    any = print_indices(p, in, but);
    for (int i = 0; i < in->narg; i++)
        still |= i != but && !is_vector(p, p->code->args.v[in->arg + (uint32_t)i]);
    if (still || !any) {
        jot_text_f(p->out, any ? " + " : "");
        jot_text_f(p->out, step ? "jot_ramp_u32x%d("
                   : any ? "(jot_u32)(" : "jot_bc_u32x%d((jot_u32)(", p->lanes);
        print_affine(p, in, but);
        if (step)
            jot_text_f(p->out, ", %lld)", (long long)step);
        else
            jot_text_f(p->out, any ? ")" : "))");
    }
    jot_text_f(p->out, ")");
}

/* An element of a map in each lane, as an i32. */
static void
print_map(Printer *p, const Inst *in)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    uint32_t place = jot_print_arg(p, in, 0);
    bool gathers = p->moves[place] == MOVES_INDEX || p->stride[place] != 1;
    const char *type = jot_print_short(dtype);
    if (dtype != JOT_I32)
        jot_text_f(p->out, dtype == JOT_I64 ? "jot_near_%sx%d(" : "jot_cv_i32_%sx%d(", type,
                   p->lanes);
    if (gathers)
        jot_print_gather(p, in);
    else {
        jot_text_f(p->out, "jot_ld%s_%sx%d(", p->under ? "m" : p->part ? "n" : "", type, p->lanes);
        jot_print_f(p, "%b + %2w", in->aux, place);
        if (p->under) {
            jot_text_f(p->out, ", ");
            jot_print_load_mask(p, in, 8 * (int)jot_dtype_nbytes((jot_DType)dtype));
        }
        jot_text_f(p->out, p->under || !p->part ? ")" : ", part)");
    }
    jot_text_f(p->out, dtype != JOT_I32 ? ")" : "");
}

static void
print_index_op(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    jot_text_f(p->out, "(");
    if (in->op == C_CLAMP) {
        jot_print_f(p, "(jot_u32x%d)jot_max_i32x%d(jot_bc_i32x%d(0), jot_min_i32x%d((jot_i32x%d)",
                    p->lanes, p->lanes, p->lanes, p->lanes, p->lanes);
        print_index_vector(p, arg[0]);
        jot_print_f(p, ", jot_bc_i32x%d((jot_i32)%i)))", p->lanes, in->c.i - 1);
    } else {
        print_index_vector(p, arg[0]);
        jot_text_f(p->out, in->op == C_IDIV ? " / " : in->op == C_IMOD ? " %% " : "*");
        if (p->moves[arg[1]] == MOVES_NOT)
            jot_print_f(p, "(jot_u32)%1w", arg[1]);
        else
            print_index_vector(p, arg[1]);
    }
    jot_text_f(p->out, ")");
}

/* The index in each lane, as a u32; operators bind it as they bind a name. */
static void
print_index_vector(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    if (p->moves[n] != MOVES_NOT && jot_print_is_condition(in)) {
        jot_text_f(p->out, "((jot_u32x%d)", p->lanes);
        jot_print_index_mask(p, n, 32);
        jot_text_f(p->out, " & 1)");
    } else if (p->moves[n] == MOVES_LINEAR)
        print_ramp(p, n, p->stride[n]);
    else if (p->moves[n] == MOVES_NOT)
        jot_print_f(p, "jot_bc_u32x%d((jot_u32)%1w)", p->lanes, n);
    else if (!in->in_place)
        jot_print_f(p, "(jot_u32x%d)%n", p->lanes, p->name[n]);
    else if (in->op == C_LIN)
        index_print_sum(p, in, -1);
    else if (in->op == C_INT) {
        jot_text_f(p->out, "(jot_u32x%d)", p->lanes);
        print_map(p, in);
    } else
        print_index_op(p, in);
}

/* The record itself, though it has a name: an i32. */
JOT_FN void
jot_print_index_body(Printer *p, uint32_t n)
{
    const Inst *in = &p->code->inst.v[n];
    if (in->op == C_INT)
        print_map(p, in);
    else {
        jot_text_f(p->out, "(jot_i32x%d)", p->lanes);
        if (in->op == C_LIN)
            index_print_sum(p, in, -1);
        else
            print_index_op(p, in);
    }
}

/* As a number of the dtype. */
JOT_FN void
jot_print_index_number(Printer *p, uint32_t n, int dtype)
{
    const char *type = jot_print_lane_type(dtype == JOT_BOOL ? JOT_I32 : dtype);
    bool same = jot_dtype_nbytes((jot_DType)dtype) == 4 && dtype < JOT_F16;
    if (same || dtype == JOT_BOOL)
        jot_text_f(p->out, "((jot_%sx%d)", type, p->lanes);
    else
        jot_text_f(p->out, "jot_cv_%s_i32x%d((jot_i32x%d)", type, p->lanes, p->lanes);
    print_index_vector(p, n);
    jot_text_f(p->out, dtype == JOT_BOOL ? " != 0)" : ")");
}

/* GE0, EQ0: a mask of 32 bits. What is left of a sum stands on the other side of its map. */
JOT_FN void
jot_print_index_compare(Printer *p, const Inst *in)
{
    uint32_t arg = jot_print_arg(p, in, 0);
    const Inst *sum = &p->code->inst.v[arg];
    bool equal = in->op == C_EQ0, minus, still;
    int lone = sum->op == C_LIN && !is_known(p, arg) ? lone_map(p, sum) : -1;
    jot_text_f(p->out, "((jot_i32x%d)", p->lanes);
    if (lone < 0) {
        print_index_vector(p, arg);
        jot_text_f(p->out, equal ? " == 0)" : " >= 0)");
        return;
    }
    minus = p->code->coefs.v[sum->coef + (uint32_t)lone] < 0;
    still = affine_step(p, sum) == 0;
    print_index_vector(p, p->code->args.v[sum->arg + (uint32_t)lone]);
    jot_text_f(p->out, equal ? " == " : minus ? " <= " : " >= ");
    if (still)
        jot_text_f(p->out, minus ? "(jot_i32)(" : "(jot_i32)-(");
    else
        jot_text_f(p->out, minus ? "(jot_i32x%d)" : "(jot_i32x%d)-", p->lanes);
    if (still)
        print_affine(p, sum, lone);
    else
        index_print_sum(p, sum, lone);
    jot_text_f(p->out, still ? "))" : ")");
}

/* jot_gather_f32x16(x + at, indices, mask) */
JOT_FN void
jot_print_gather(Printer *p, const Inst *in)
{
    int dtype = p->k->bufs.v[in->aux].dtype;
    uint32_t place = jot_print_arg(p, in, 0);
    const Inst *at = &p->code->inst.v[place];
    bool parts = at->op == C_LIN && at->in_place && p->moves[place] == MOVES_INDEX, any = false;
    int64_t step = parts ? affine_step(p, at) : 0;
    jot_print_f(p, "jot_gather_%sx%d(%b", jot_print_short(dtype), p->lanes, in->aux);
    if (parts) {
        jot_text_f(p->out, " + (");
        print_affine(p, at, -1);
        jot_text_f(p->out, "), ");
        any = print_indices(p, at, -1);
        if (step) {
            jot_text_f(p->out, any ? " + " : "");
            print_ramp(p, 0, step);
        }
    } else if (p->moves[place] == MOVES_LINEAR) {
        jot_print_f(p, " + %2w, ", place);
        print_ramp(p, 0, p->stride[place]);
    } else {
        jot_text_f(p->out, ", ");
        print_index_vector(p, place);
    }
    jot_text_f(p->out, ", ");
    jot_print_load_mask(p, in, 32);
    jot_text_f(p->out, ")");
}
