/* ccode/device/emit_device.c - what the text of a device has and C has not: the kernel's signature,
 * loops shared out among items, sums of a work-group, atomic operators.
 *
 *     __kernel void
 *     NAME(__global const float *restrict x, jot_u32 x_from, __global float *restrict y,
 *         jot_u32 y_from, __global jot_u8 *scratch, jot_u32 scratch_from, float scalar0, int phase,
 *         jot_i64 lo, jot_i64 hi)
 *
 * A buffer is memory and an offset in units of 64 bytes (the plan keeps temporaries in one block),
 * or a pointer where the dialect has them. The host's side of it is Launch in backends/backend.h.
 *
 *   requires  counted code of ccode/device/walk_grid.c      keeps  everything      breaks  nothing
 *
 * Read before: ccode/emit/emit.c, ccode/device/walk_grid.c. After: ccode/emit/dialect.c. */
#include "ccode/device/device.h"

/* ---- signature ---- */

static void
print_memory(Printer *p, const char *type, bool written, bool alone, Name name)
{
    const DeviceDialect *d = p->d->device;
    const char *restrict_ = alone ? p->d->restrict_ : "";
    jot_print_f(p, "%s%s%s *%s%s%n", d->global, written ? "" : "const ", type, restrict_,
                *restrict_ ? " " : "", name);
    if (d->offsets)
        jot_print_f(p, ", jot_u32 %n_from", name);
    jot_text_f(p->out, ",\n    ");
}

/* Memory of the launch, or of the plan, that holds several buffers: bytes. */
static void
print_bytes(Printer *p, const char *name)
{
    jot_text_f(p->out, "%sjot_u8 *%s", p->d->device->global, name);
    if (p->d->device->offsets)
        jot_text_f(p->out, ", jot_u32 %s_from", name);
    jot_text_f(p->out, ",\n    ");
}

static void
print_parameters(Printer *p)
{
    bool shared = false;
    for (uint32_t b = 1; b < p->k->bufs.n; b++) {
        const KBuf *buf = &p->k->bufs.v[b];
        p->buf_name[b] = jot_print_take(p, buf->name);
        shared = shared || buf->role == BUF_SHARED;
        if (buf->role < BUF_SCRATCH)
            print_memory(p, jot_print_memory_type(buf->dtype), jot_buf_written(p->s, b),
                         !buf->may_alias, p->buf_name[b]);
    }
    if (shared)
        print_bytes(p, "shared");
    print_bytes(p, "scratch");
    for (uint32_t i = 0; i < p->k->scalars.n; i++)
        jot_text_f(p->out, "%s scalar%u, ", jot_print_type(p->k->scalars.v[i].dtype), i);
    jot_text_f(p->out, "int phase, jot_i64 lo, jot_i64 hi)\n");
}

/* Offsets become part of the pointers; scratch buffers are pointers of their own. */
static void
print_places(Printer *p, const Used *used)
{
    const DeviceDialect *d = p->d->device;
    size_t offset[2] = {0};
    for (uint32_t b = 1; b < p->k->bufs.n; b++) {
        const KBuf *buf = &p->k->bufs.v[b];
        const char *type = jot_print_memory_type(buf->dtype);
        bool shared = buf->role == BUF_SHARED, scratch = shared || buf->role == BUF_SCRATCH;
        const char *bytes = shared ? "shared" : "scratch";
        if (used->used[b % 256] && scratch) {
            jot_print_f(p, "    %s%s *%b = (%s%s *)(%s + ", d->global, type, b, d->global, type,
                        bytes);
            if (d->offsets)
                jot_text_f(p->out, "(jot_i64)64 * %s_from + ", bytes);
            jot_text_f(p->out, "%zu);\n", offset[shared]);
        } else if (used->used[b % 256] && d->offsets && buf->role < BUF_SCRATCH) {
            jot_print_f(p, "    %b += (jot_i64)%d * %b_from;\n", b,
                        (int)(64 / jot_dtype_nbytes((jot_DType)buf->dtype)), b);
        }
        offset[shared] += scratch ? jot_print_scratch_size(p, buf) : 0;
    }
}

static size_t
group_nbytes(const KBuf *buf)
{
    return ((size_t)buf->layout->nelem * jot_dtype_nbytes((jot_DType)buf->dtype) + 15) / 16 * 16;
}

/* All of it is given at the launch, where it is more than arrays of the text have. */
static void
print_given(Printer *p, const Used *used)
{
    const DeviceDialect *d = p->d->device;
    size_t at = 0;
    jot_text_f(p->out, "    %s given[]; /* %zu bytes */\n", d->given, p->given_nbytes);
    for (uint32_t b = 1; b < p->k->bufs.n; b++) {
        const KBuf *buf = &p->k->bufs.v[b];
        const char *type = jot_print_memory_type(buf->dtype);
        if (buf->role != BUF_GROUP || !used->used[b % 256])
            continue;
        jot_print_f(p, "    %s%s *%b = (%s%s *)(given + %l);\n", d->shared_ptr, type, b,
                    d->shared_ptr, type, (int64_t)at);
        at += group_nbytes(buf);
    }
}

/* What the items of a work-group share, in pieces of 16 bytes. */
static void
print_group_memory(Printer *p, const Used *used, size_t more)
{
    size_t nbytes = 0;
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        if (p->k->bufs.v[b].role == BUF_GROUP && used->used[b % 256])
            nbytes += group_nbytes(&p->k->bufs.v[b]);
    if (p->d->device->given && nbytes + more > p->d->device->own_nbytes) {
        p->given_nbytes = nbytes;
        print_given(p, used);
        return;
    }
    for (uint32_t b = 1; b < p->k->bufs.n; b++) {
        const KBuf *buf = &p->k->bufs.v[b];
        if (buf->role != BUF_GROUP || !used->used[b % 256])
            continue;
        jot_print_f(p, "    %s%s%s %b[%l];\n", p->d->device->shared, p->d->device->align16,
                    jot_print_memory_type(buf->dtype), b, buf->layout->nelem);
    }
}

enum { REGISTERS = 1 << 16 };   /* of a multiprocessor */

/* A kernel by blocks has as many registers as two groups of 256 items leave each other, unless its
 * schedule says more: one alone is on a multiprocessor then, with nobody to work while it waits. */
static void
print_bounds(Printer *p, const Used *used)
{
    bool blocks = false;
    for (uint32_t b = 1; b < p->k->bufs.n; b++)
        blocks = blocks || (p->k->bufs.v[b].role == BUF_GROUP && used->used[b % 256]);
    jot_text_f(p->out, " %s(%d", p->d->device->bounds, p->s->group);
    if (blocks && p->s->group <= 256)
        jot_text_f(p->out, ", %d",
                   REGISTERS / (p->s->registers ? p->s->registers : 128) / p->s->group);
    jot_text_f(p->out, ")");
}

JOT_FN void
jot_print_kernel(Printer *p, const Used *used, const char *name)
{
    const DeviceDialect *d = p->d->device;
    bool shares[SHARE_REST + 1] = {false}, team = false, first = false;
    for (uint32_t n = 1; n < p->code->inst.n; n++) {
        const Inst *in = &p->code->inst.v[n];
        if (!in->live && !in->uses)
            continue;
        if (in->op == C_FOR && in->wide)
            shares[in->aux] = true;
        team = team || in->op == C_TEAM;
        first = first || in->op == C_FIRST || in->op == C_ITEM;
    }
    jot_text_f(p->out, "%svoid", d->kernel);
    if (d->bounds && p->s->group > 0)
        print_bounds(p, used);
    jot_text_f(p->out, "\n%s(", name);
    print_parameters(p);
    jot_text_f(p->out, "{\n");
    if (team)
        jot_text_f(p->out, "    %sjot_u64 part[%d];\n", d->shared, p->s->group);
    print_group_memory(p, used, team ? 8 * (size_t)p->s->group : 0);
    if (shares[SHARE_ITEMS] || shares[SHARE_REST])
        jot_text_f(p->out, "    const %s item = %s, items = %s;\n", jot_print_index_type(p), d->item, d->items);
    if (shares[SHARE_TEAMS])
        jot_text_f(p->out, "    const %s team = %s, teams = %s;\n", jot_print_index_type(p), d->team, d->teams);
    if (shares[SHARE_TEAM] || team || first)
        jot_text_f(p->out, "    const int lane = %s;\n", d->lane);
    print_places(p, used);
}

/* ---- statements ---- */

static void
print_shared_loop(Printer *p, const Inst *in, Name name)
{
    static const char *const from[] = {"lo", "item", "team", "lane", "item"};
    static const char *const by[] = {"1", "items", "teams", "", "items"};
    jot_print_f(p, in->aux == SHARE_TEAM || in->aux == SHARE_REST
                ? "for (%s %n = %s; %n < %l; " : "for (%s %n = %s; %n < hi; ",
                jot_print_index_type(p), name, from[in->aux], name, in->c.i);
    if (in->aux == SHARE_TEAM)
        jot_print_f(p, "%n += %d) {\n", name, p->s->group);
    else
        jot_print_f(p, "%n += %s) {\n", name, by[in->aux]);
}

static void
print_atomic(Printer *p, const Inst *in)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    int dtype = p->k->bufs.v[in->aux].dtype;
    jot_print_f(p, "jot_atomic_%s_%s(%b + %2w, %w);\n", jot_ew_info[in->ew].name,
                jot_dtype_name((jot_DType)dtype), in->aux, arg[0], arg[1]);
}

/* jot_ldw_f32x4(to, from), jot_stw_f32x4(to, from): all lanes at once, an array of them here. */
static void
print_wide(Printer *p, const Inst *in, Name lanes)
{
    const uint32_t *arg = &p->code->args.v[in->arg];
    bool load = in->op == C_LOAD;
    int dtype = p->k->bufs.v[in->aux].dtype;
    if ((dtype == JOT_F16 || dtype == JOT_BF16) && in->dtype == JOT_U16)
        dtype = JOT_U16;
    jot_text_f(p->out, "jot_%s%s_%sx%d(", load ? "ld" : "st",
               p->k->bufs.v[in->aux].role == BUF_GROUP ? "g" : "w",
               jot_dtype_name((jot_DType)dtype), p->lanes);
    if (load)
        jot_print_f(p, "%n, %b + %2v);\n", lanes, in->aux, arg[0]);
    else
        jot_print_f(p, "%b + %2v, %n);\n", in->aux, arg[0], lanes);
}

static void
print_team(Printer *p, const Inst *in, LaneMode mode)
{
    jot_print_f(p, "jot_team_%s_%s(%m, part, lane, %d)", jot_ew_info[in->ew].name,
                jot_dtype_name((jot_DType)in->dtype), mode, p->code->args.v[in->arg], p->s->group);
}

JOT_FN void
jot_print_device(Printer *p, const Inst *in, Name name, LaneMode mode)
{
    switch (in->op) {
    case C_FOR: print_shared_loop(p, in, name); break;
    case C_ATOMIC: print_atomic(p, in); break;
    case C_MATRIX: jot_print_matrix(p, in); break;
    case C_COPY: jot_print_copy(p, in); break;
    case C_BARRIER: jot_print_barrier(p, in); break;
    case C_TEAM: print_team(p, in, mode); break;
    default: print_wide(p, in, name); break;
    }
}

/* ---- functions ---- */

static bool
device_dtype(const char *name, size_t n, int *dtype)
{
    for (*dtype = 0; *dtype < JOT_DTYPES; ++*dtype) {
        const char *word = jot_dtype_name((jot_DType)*dtype);
        if (jot_str_len(word) == n && memcmp(word, name, n) == 0)
            return true;
    }
    return false;
}

/* <op>_<dtype> at the end of a name. */
static bool
device_op(const char *name, size_t n, EwOp *op, int *dtype)
{
    size_t last = n;
    while (last > 0 && name[last - 1] != '_')
        last--;
    if (last < 2)
        return false;
    *op = EW_NONE;
    for (int i = 1; i < EW_OPS; i++)
        if (jot_str_len(jot_ew_info[i].name) == last - 1 &&
            memcmp(jot_ew_info[i].name, name, last - 1) == 0)
            *op = (EwOp)i;
    return *op != EW_NONE && device_dtype(name + last, n - last, dtype);
}

/* "a op b" in the dtype that is computed in */
static void
print_op(EwOp op, int dtype, Text *out)
{
    int compute = jot_dtype_compute((jot_DType)dtype);
    const char *c = jot_ew_info[op].c[jot_dtype_class((jot_DType)compute)];
    for (; *c; c++)
        if (*c != '%')
            jot_text_put(out, c, 1);
        else if (*++c == 'f')
            jot_text_f(out, "%s", compute == JOT_F64 ? "" : "f");
        else if (*c == 't')
            jot_text_f(out, "%s", jot_print_short(compute));
        else
            jot_text_f(out, "%s", *c == '0' ? "a" : "b");
}

/* A tree of fixed shape: the same bits at every run. */
static void
team_text(const DeviceDialect *d, const char *name, size_t n, EwOp op, int dtype, Text *out)
{
    const char *type = jot_print_type(dtype);
    jot_text_f(out, "%s%s\n%.*s(%s x, %sjot_u64 *shared, int lane, int n)\n{\n", d->function, type,
               (int)n, name, type, d->shared_ptr);
    jot_text_f(out, "    %s%s *part = (%s%s *)shared;\n    part[lane] = x;\n", d->shared_ptr, type,
               d->shared_ptr, type);
    jot_text_f(out, "    for (int half_ = n / 2; half_ > 0; half_ /= 2) {\n        %s;\n"
               "        if (lane < half_) {\n            const %s a = part[lane], "
               "b = part[lane + half_];\n            part[lane] = ", d->barrier, type);
    print_op(op, dtype, out);
    jot_text_f(out, ";\n        }\n    }\n    %s;\n    x = part[0];\n    %s;\n    return x;\n}\n",
               d->barrier, d->barrier);
}

/* Elements of less than 4 bytes are swapped with the word around them. */
static void
atomic_small(const DeviceDialect *d, EwOp op, int dtype, Text *out)
{
    const char *type = jot_print_type(dtype), *memory = jot_print_memory_type(dtype);
    bool half = dtype == JOT_F16 || dtype == JOT_BF16;
    int bits = 8 * (int)jot_dtype_nbytes((jot_DType)dtype);
    jot_text_f(out, "    %sjot_u32 *word = (%sjot_u32 *)((%sjot_u8 *)p - "
               "((jot_u64)p & 3));\n    const int shift = 8 * (int)((jot_u64)p & 3);\n"
               "    jot_u32 was, now;\n    do {\n        was = *(volatile %sjot_u32 *)word;\n"
               "        {\n            const %s a = ", d->global, d->global, d->global, d->global,
               type);
    if (half)
        jot_text_f(out, "jotm_%s_to_f32((jot_u16)(was >> shift))",
                   jot_dtype_name((jot_DType)dtype));
    else
        jot_text_f(out, "(%s)(was >> shift)", memory);
    jot_text_f(out, ";\n            const %s x = ", type);
    print_op(op, dtype, out);
    jot_text_f(out, ";\n            now = (was & ~((jot_u32)0x%xu << shift)) | (jot_u32)",
               bits == 8 ? 0xff : 0xffff);
    if (half)
        jot_text_f(out, "jotm_f32_to_%s(x)", jot_dtype_name((jot_DType)dtype));
    else
        jot_text_f(out, "(jot_u%d)x", bits);
    jot_text_f(out, " << shift;\n        }\n    } while (%s(word, was, now) != was);\n}\n",
               d->swap32);
}

static void
atomic_word(const DeviceDialect *d, EwOp op, int dtype, Text *out)
{
    const char *type = jot_print_type(dtype);
    int bits = 8 * (int)jot_dtype_nbytes((jot_DType)dtype);
    jot_text_f(out,
               "    %sjot_u%d *word = (%sjot_u%d *)p;\n    union { %s v; jot_u%d u; } was, now;\n"
               "    do {\n        was.u = *(volatile %sjot_u%d *)word;\n        {\n"
               "            const %s a = was.v;\n            now.v = ",
               d->global, bits, d->global, bits, type, bits, d->global, bits, type);
    print_op(op, dtype, out);
    jot_text_f(out, ";\n        }\n    } while (%s(word, was.u, now.u) != was.u);\n}\n",
               bits == 32 ? d->swap32 : d->swap64);
}

/* ldw_<dtype>x<lanes>, stw_..; ldg_, stg_: of a group's memory */
static bool
wide_name(const char *name, size_t n, int *dtype, int *lanes)
{
    size_t x = n, i;
    if (n < 8 || (memcmp(name, "ld", 2) != 0 && memcmp(name, "st", 2) != 0) ||
        (name[2] != 'w' && name[2] != 'g') || name[3] != '_')
        return false;
    while (x > 5 && name[x - 1] != 'x')
        x--;
    for (*lanes = 0, i = x; i < n; i++)
        *lanes = *lanes * 10 + (name[i] - '0');
    return *lanes > 1 && device_dtype(name + 4, x - 5, dtype);
}

/* One access of up to 16 bytes, as a vector of the language or a struct, and its elements one by
 * one. */
static void
wide_text(const DeviceDialect *d, const char *name, size_t n, int dtype, int lanes, Text *out)
{
    const char *type = jot_print_type(dtype), *memory = jot_print_memory_type(dtype);
    const char *space = name[6] == 'g' ? d->shared_ptr : d->global;
    bool half = dtype == JOT_F16 || dtype == JOT_BF16, load = name[4] == 'l';
    jot_text_f(out, "%svoid\n%.*s(", d->function, (int)n, name);
    if (load)
        jot_text_f(out, "%s *to, %sconst %s *from)\n{\n", type, space, memory);
    else
        jot_text_f(out, "%s%s *to, const %s *from)\n{\n", space, memory, type);
    if (d->align)
        jot_text_f(out, "    typedef struct %s(%d) { %s v[%d]; } wide;\n", d->align,
                   lanes * (int)jot_dtype_nbytes((jot_DType)dtype), memory, lanes);
    else
        jot_text_f(out, "    typedef %s%d wide;\n", d->vector[dtype], lanes);
    if (load)
        jot_text_f(out, "    const wide v = *(%sconst wide *)from;\n", space);
    else
        jot_text_f(out, "    wide v;\n");
    for (int i = 0; i < lanes; i++) {
        const char *to = half ? load ? "_to_f32(" : "jotm_f32_to_" : "";
        char element[16];
        Text t = {0};
        t.s = element;
        t.cap = sizeof element;
        jot_text_f(&t, d->align ? "v.v[%d]" : "v.s%x", i);
        if (load)
            jot_text_f(out, "    to[%d] = %s%s%s%s%s;\n", i, half ? "jotm_" : "",
                       half ? jot_dtype_name((jot_DType)dtype) : "", to, element, half ? ")" : "");
        else
            jot_text_f(out, "    %s = %s%s%sfrom[%d]%s;\n", element, to,
                       half ? jot_dtype_name((jot_DType)dtype) : "", half ? "(" : "", i,
                       half ? ")" : "");
    }
    if (!load)
        jot_text_f(out, "    *(%swide *)to = v;\n", space);
    jot_text_f(out, "}\n");
}

JOT_FN bool
jot_device_helper(const DeviceDialect *d, const char *name, size_t n, Text *out)
{
    EwOp op;
    int dtype, lanes;
    if (n > 4 && wide_name(name + 4, n - 4, &dtype, &lanes)) {
        wide_text(d, name, n, dtype, lanes, out);
        return true;
    }
    if (d->matrix && jot_matrix_helper(name, n, out))
        return true;
    if (n > 9 && memcmp(name, "jot_team_", 9) == 0 && device_op(name + 9, n - 9, &op, &dtype)) {
        team_text(d, name, n, op, dtype, out);
        return true;
    }
    if (n <= 11 || memcmp(name, "jot_atomic_", 11) != 0 ||
        !device_op(name + 11, n - 11, &op, &dtype))
        return false;
    jot_text_f(out, "%svoid\n%.*s(%s%s *p, %s b)\n{\n", d->function, (int)n, name, d->global,
               jot_print_memory_type(dtype), jot_print_type(dtype));
    if (jot_dtype_nbytes((jot_DType)dtype) < 4)
        atomic_small(d, op, dtype, out);
    else
        atomic_word(d, op, dtype, out);
    return true;
}
