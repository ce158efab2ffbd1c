/* ccode/ir/value.c - what a kernel computes: values and stores, as records.
 *
 * Values are shared: a builder that is given the same record twice answers with the same number. An
 * operand 0, a refused allocation or a number out of range gives 0, which spreads.
 *
 * Read before: ccode/ir/ir.h, ccode/ir/ir.c. After: ccode/verify/verify.c, ccode/lower/lower.c. */
#include "ccode/ir/ir.h"

static uint32_t
add_ixs(Kernel *k, int n, const Ix *ix, int ncond, const Ix *cond)
{
    uint32_t at = k->ixs.n;
    if (!jot_vec_reserve(k->mem, k->ixs, (uint32_t)(n + ncond)))
        return 0;
    for (int i = 0; i < n; i++)
        *(Ix *)jot_vec_push(k->mem, k->ixs) = ix[i];
    for (int i = 0; i < ncond; i++)
        *(Ix *)jot_vec_push(k->mem, k->ixs) = cond[i];
    return at;
}

JOT_FN bool
jot_kernel_ask(Kernel *k, uint32_t *at, int nidx, uint8_t *ncond, int n, const Ix *cond)
{
    uint32_t now = k->ixs.n, old = (uint32_t)nidx + *ncond;
    if (n == 0)
        return true;
    if (*ncond + n > 64 || !jot_vec_reserve(k->mem, k->ixs, old + (uint32_t)n))
        return false;
    memcpy(&k->ixs.v[now], &k->ixs.v[*at], old * sizeof *cond);
    memcpy(&k->ixs.v[now + old], cond, (size_t)n * sizeof *cond);
    k->ixs.n += old + (uint32_t)n;
    *at = now;
    *ncond = (uint8_t)(*ncond + n);
    return true;
}

static uint32_t
add_args(Kernel *k, int n, const uint32_t *arg)
{
    uint32_t at = k->args.n;
    if (!jot_vec_reserve(k->mem, k->args, (uint32_t)n))
        return 0;
    for (int i = 0; i < n; i++)
        *(uint32_t *)jot_vec_push(k->mem, k->args) = arg[i];
    return at;
}

static bool
same_value(const Kernel *k, const Value *a, const Value *b)
{
    if (a->op != b->op || a->dtype != b->dtype || a->ew != b->ew || a->nidx != b->nidx ||
        a->ncond != b->ncond || a->round != b->round || a->scaled != b->scaled ||
        a->narg != b->narg || a->buf != b->buf || a->axes != b->axes || a->call != b->call ||
        a->c.u != b->c.u || a->tie != b->tie || a->ordered != b->ordered)
        return false;
    for (int i = 0; i < a->nidx + a->ncond; i++)
        if (k->ixs.v[a->at + (uint32_t)i] != k->ixs.v[b->at + (uint32_t)i])
            return false;
    for (int i = 0; i < a->narg; i++)
        if (k->args.v[a->arg + (uint32_t)i] != k->args.v[b->arg + (uint32_t)i])
            return false;
    return true;
}

static uint64_t
free_axes(const Kernel *k, const Value *v)
{
    uint64_t in = 0, own = 0;
    for (int i = 0; i < v->narg; i++)
        in |= k->values.v[k->args.v[v->arg + (uint32_t)i]].free;
    for (int i = 0; i < v->nidx + v->ncond; i++)
        if (v->op != VAL_AT || (in >> v->ax[i] & 1))
            own |= jot_ix_axes(k->ix, k->ixs.v[v->at + (uint32_t)i]);
    if (v->op == VAL_AT)
        return (in & ~v->axes) | own;
    if (v->op == VAL_RUN)
        return in | v->axes;
    return (in | own) & ~v->axes;
}

/* The record's number; the record's expressions and operands are the last ones in the arrays and
 * are given back when an equal record exists. */
static uint32_t
add_value(Kernel *k, Value v)
{
    for (int i = 0; i < v.narg; i++)
        if (k->args.v[v.arg + (uint32_t)i] == 0 || k->args.v[v.arg + (uint32_t)i] >= k->values.n)
            return 0;
    for (int i = 0; i < v.nidx + v.ncond; i++)
        if (k->ixs.v[v.at + (uint32_t)i] == 0)
            return 0;
    for (uint32_t i = 1; i < k->values.n; i++)
        if (same_value(k, &k->values.v[i], &v)) {
            k->ixs.n -= (uint32_t)(v.nidx + v.ncond);
            k->args.n -= v.narg;
            return i;
        }
    if (k->values.n >= KERNEL_VALUES || !jot_vec_reserve(k->mem, k->values, 1))
        return 0;
    v.free = free_axes(k, &v);
    *(Value *)jot_vec_push(k->mem, k->values) = v;
    return k->values.n - 1;
}

/* A value of these operands, expressions and conditions. */
static uint32_t
value_of(Kernel *k, Value v, int narg, const uint32_t *arg, int nidx, const Ix *ix, int ncond,
         const Ix *cond)
{
    v.narg = (uint8_t)narg;
    v.nidx = (uint8_t)nidx;
    v.ncond = (uint8_t)ncond;
    v.arg = narg ? add_args(k, narg, arg) : 0;
    v.at = nidx + ncond ? add_ixs(k, nidx, ix, ncond, cond) : 0;
    return k->mem->failed ? 0 : add_value(k, v);
}

static Value
value_begin(ValOp op, int dtype)
{
    Value v = {0};
    v.op = (uint8_t)op;
    v.dtype = v.round = (uint8_t)jot_dtype_compute((jot_DType)dtype);
    return v;
}

/* Number of a value that there is. */
static bool
is_value(const Kernel *k, uint32_t n)
{
    return n > 0 && n < k->values.n;
}

static uint32_t
load_as(Kernel *k, int dtype, uint32_t buf, const Ix *idx, int ncond, const Ix *cond,
        jot_Scalar outside)
{
    Value v = value_begin(VAL_LOAD, dtype);
    if (buf == 0 || buf >= k->bufs.n || ncond < 0 || ncond > 64)
        return 0;
    v.buf = buf;
    v.c = outside;
    return value_of(k, v, 0, NULL, k->bufs.v[buf].rank, idx, ncond, cond);
}

JOT_FN uint32_t
jot_v_load(Kernel *k, uint32_t buf, const Ix *idx, int ncond, const Ix *cond, jot_Scalar outside)
{
    return load_as(k, buf < k->bufs.n ? k->bufs.v[buf].dtype : 0, buf, idx, ncond, cond, outside);
}

JOT_FN uint32_t
jot_v_bits(Kernel *k, uint32_t buf, const Ix *idx, int ncond, const Ix *cond)
{
    jot_Scalar none;
    none.u = 0;
    return load_as(k, JOT_U16, buf, idx, ncond, cond, none);
}

JOT_FN uint32_t
jot_v_const(Kernel *k, jot_DType dtype, jot_Scalar value)
{
    Value v = value_begin(VAL_CONST, dtype);
    v.c = value;
    return add_value(k, v);
}

static bool
is_float(int dtype)
{
    return dtype >= JOT_F16;
}

JOT_FN uint32_t
jot_v_constf(Kernel *k, jot_DType dtype, double value)
{
    jot_Scalar c;
    if (is_float(dtype))
        c.f = value;
    else if (dtype == JOT_BOOL)
        c.u = value != 0;
    else if (dtype == JOT_U64)
        c.u = (uint64_t)value;
    else
        c.i = (int64_t)value;
    return jot_v_const(k, dtype, c);
}

JOT_FN uint32_t
jot_v_scalar(Kernel *k, int number)
{
    Value v;
    if (number < 0 || (uint32_t)number >= k->scalars.n)
        return 0;
    v = value_begin(VAL_SCALAR, k->scalars.v[number].dtype);
    v.buf = (uint32_t)number;
    return add_value(k, v);
}

JOT_FN uint32_t
jot_v_index(Kernel *k, jot_DType dtype, Ix ix)
{
    return value_of(k, value_begin(VAL_INDEX, dtype), 0, NULL, 1, &ix, 0, NULL);
}

JOT_FN uint32_t
jot_v_ew(Kernel *k, EwOp op, jot_DType dtype, uint32_t a, uint32_t b, uint32_t c)
{
    Value v = value_begin(VAL_EW, dtype);
    uint32_t arg[3];
    arg[0] = a, arg[1] = b, arg[2] = c;
    if (op <= EW_NONE || op >= EW_OPS)
        return 0;
    v.ew = (uint8_t)op;
    v.round = op == EW_CAST ? (uint8_t)dtype : v.dtype;
    return value_of(k, v, jot_ew_info[op].arity, arg, 0, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_v_cast(Kernel *k, jot_DType dtype, uint32_t a)
{
    if (!is_value(k, a) || k->values.v[a].dtype == dtype)
        return a < k->values.n ? a : 0;
    return jot_v_ew(k, EW_CAST, dtype, a, 0, 0);
}

JOT_FN uint32_t
jot_v_reduce(Kernel *k, EwOp op, uint64_t axes, uint32_t body, int ncond, const Ix *cond,
             double scale)
{
    Value v;
    jot_Scalar identity;
    if (!is_value(k, body) || ncond < 0 || ncond > 64 ||
        !jot_reduce_op_identity(op, k->values.v[body].dtype, &identity))
        return 0;
    v = value_begin(VAL_REDUCE, k->values.v[body].dtype);
    v.ew = (uint8_t)op;
    v.axes = axes;
    v.scaled = scale != 1.0;
    v.c.f = scale;
    return value_of(k, v, 1, &body, 0, NULL, ncond, cond);
}

JOT_FN uint32_t
jot_v_twice(Kernel *k, uint32_t reduce, int axis)
{
    const Value v = k->values.v[reduce];
    uint64_t outer = (uint64_t)1 << axis;
    Ix cond[64];
    uint32_t part = jot_v_arg(k, reduce, 0);
    if (v.axes == outer)
        return reduce;
    if (v.ncond)
        memcpy(cond, k->ixs.v + v.at, v.ncond * sizeof *cond);
    part = jot_v_reduce(k, (EwOp)v.ew, v.axes & ~outer, part, v.ncond, cond, 1.0);
    return jot_v_reduce(k, (EwOp)v.ew, outer, part, 0, NULL, v.scaled ? v.c.f : 1.0);
}

JOT_FN uint32_t
jot_v_extreme(Kernel *k, EwOp op, uint64_t axes, uint32_t body, uint32_t second, EwOp tie,
              bool ordered, int64_t begin)
{
    Value v;
    uint32_t arg[2];
    arg[0] = body, arg[1] = second;
    if (!is_value(k, body) || !is_value(k, second) || k->values.v[body].dtype == JOT_BOOL ||
        is_float(k->values.v[second].dtype))
        return 0;
    v = value_begin(VAL_REDUCE, k->values.v[body].dtype);
    v.ew = (uint8_t)op;
    v.axes = axes;
    v.tie = (uint8_t)tie;
    v.ordered = ordered;
    v.c.i = begin;
    return value_of(k, v, 2, arg, 0, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_v_second(Kernel *k, uint32_t reduce)
{
    if (!is_value(k, reduce) || k->values.v[reduce].op != VAL_REDUCE ||
        k->values.v[reduce].narg != 2)
        return 0;
    return value_of(k, value_begin(VAL_SECOND, k->values.v[jot_v_arg(k, reduce, 1)].dtype), 1,
                    &reduce, 0, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_v_run(Kernel *k, EwOp op, int axis, uint32_t body, bool before)
{
    Value v;
    jot_Scalar identity;
    if (!is_value(k, body) || axis < 0 || axis >= (int)k->axes.n ||
        !jot_reduce_op_identity(op, k->values.v[body].dtype, &identity))
        return 0;
    v = value_begin(VAL_RUN, k->values.v[body].dtype);
    v.ew = (uint8_t)op;
    v.axes = (uint64_t)1 << axis;
    v.ordered = before;
    return value_of(k, v, 1, &body, 0, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_v_at(Kernel *k, uint32_t body, int n, const int *axis, const Ix *ix)
{
    Value v;
    if (!is_value(k, body) || n < 0 || n > JOT_MAX_RANK)
        return 0;
    v = value_begin(VAL_AT, k->values.v[body].dtype);
    for (int i = 0; i < n; i++) {
        v.ax[i] = (uint8_t)axis[i];
        v.axes |= (uint64_t)1 << axis[i];
        v.c.u = v.c.u * 32 + (uint64_t)axis[i]; /* tells apart which axis is replaced by which */
    }
    return value_of(k, v, 1, &body, n, ix, 0, NULL);
}

/* Operands of `to` are other values than users of `from`: no cycle comes of it. */
JOT_FN uint32_t
jot_v_replace(Kernel *k, uint32_t from, uint32_t to, uint32_t what)
{
    uint32_t n = k->values.n, *map = jot_mem_new(k->mem, n, sizeof *map);
    bool ok = map && from && to;
    for (uint32_t i = 1; ok && i < n; i++) {
        Value v = k->values.v[i];
        uint32_t arg[VALUE_ARGS];
        bool other = false;
        map[i] = i == from ? to : i;
        for (int j = 0; j < v.narg && v.narg <= VALUE_ARGS; j++) {
            arg[j] = map[k->args.v[v.arg + (uint32_t)j]];
            other |= arg[j] != k->args.v[v.arg + (uint32_t)j];
        }
        if (!other || i == to || i == from)
            continue;
        v.arg = add_args(k, v.narg, arg);
        if (v.nidx + v.ncond) {
            Ix ix[64 + JOT_MAX_RANK];
            memcpy(ix, &k->ixs.v[v.at], (size_t)(v.nidx + v.ncond) * sizeof *ix);
            v.at = add_ixs(k, v.nidx, ix, v.ncond, ix + v.nidx);
        }
        ok = !k->mem->failed && (map[i] = add_value(k, v)) != 0;
    }
    for (uint32_t i = 0; ok && i < k->stores.n; i++)
        k->stores.v[i].value = map[k->stores.v[i].value];
    what = ok ? map[what] : 0;
    jot_mem_free(k->mem, map, n * sizeof *map);
    return what;
}

static int
add_table(Kernel *k, int rank, const int64_t *ext, const double *values)
{
    KTable t = {0};
    size_t n = 1;
    int64_t *copy = jot_arena_array(&k->arena, int64_t, (size_t)rank + 1);
    double *elems;
    for (int i = 0; i < rank; i++)
        n *= (size_t)ext[i];
    elems = jot_arena_array(&k->arena, double, n + 1);
    if (!copy || !elems || !jot_vec_reserve(k->mem, k->tables, 1))
        return -1;
    memcpy(copy, ext, (size_t)rank * sizeof *ext);
    memcpy(elems, values, n * sizeof *values);
    t.rank = (uint8_t)rank;
    t.ext = copy;
    t.v = elems;
    *(KTable *)jot_vec_push(k->mem, k->tables) = t;
    return (int)k->tables.n - 1;
}

JOT_FN uint32_t
jot_v_table(Kernel *k, jot_DType dtype, int rank, const int64_t *ext, const double *values,
            const Ix *idx)
{
    Value v = value_begin(VAL_TABLE, dtype);
    int number = rank < 0 || rank > 8 ? -1 : add_table(k, rank, ext, values);
    if (number < 0)
        return 0;
    v.buf = (uint32_t)number;
    return value_of(k, v, 0, NULL, rank, idx, 0, NULL);
}

JOT_FN uint32_t
jot_v_call(Kernel *k, jot_DType dtype, const char *name, int n, const uint32_t *arg)
{
    Value v = value_begin(VAL_CALL, dtype);
    v.call = jot_kernel_string(k, name);
    return !v.call || n < 0 || n > 32 ? 0 : value_of(k, v, n, arg, 0, NULL, 0, NULL);
}

JOT_FN uint32_t
jot_v_dot(Kernel *k, int row, uint32_t a, uint32_t b)
{
    Value v = value_begin(VAL_DOT, jot_target_dots[row].sum);
    uint32_t arg[2];
    arg[0] = a, arg[1] = b;
    v.ew = (uint8_t)row;
    return value_of(k, v, 2, arg, 0, NULL, 0, NULL);
}

JOT_FN void
jot_v_name(Kernel *k, uint32_t value, const char *name)
{
    if (value > 0 && value < k->values.n)
        k->values.v[value].name = jot_kernel_string(k, name);
}

/* What adds to memory does so at each point of these, also where the value is the same. */
static uint64_t
added_axes(const Kernel *k)
{
    uint64_t all = 0;
    for (uint32_t a = 0; a < k->axes.n; a++)
        all |= (uint64_t)(k->axes.v[a].kind != AXIS_CLEAR) << a;
    return all;
}

JOT_FN int
jot_kernel_store(Kernel *k, uint32_t buf, const Ix *idx, uint32_t value, EwOp acc, int ncond,
                 const Ix *cond)
{
    KStore s = {0};
    if (buf == 0 || buf >= k->bufs.n || value == 0 || value >= k->values.n || ncond < 0 ||
        ncond > 64)
        return -1;
    s.buf = buf;
    s.value = value;
    s.acc = (uint8_t)acc;
    s.nidx = k->bufs.v[buf].rank;
    s.ncond = (uint8_t)ncond;
    s.at = add_ixs(k, s.nidx, idx, ncond, cond);
    s.free = k->values.v[value].free;
    if (acc != EW_NONE)
        s.free |= added_axes(k);
    if (k->mem->failed || !jot_vec_reserve(k->mem, k->stores, 1))
        return -1;
    for (int i = 0; i < s.nidx + s.ncond; i++) {
        if (k->ixs.v[s.at + (uint32_t)i] == 0)
            return -1;
        s.free |= jot_ix_axes(k->ix, k->ixs.v[s.at + (uint32_t)i]);
    }
    *(KStore *)jot_vec_push(k->mem, k->stores) = s;
    return (int)k->stores.n - 1;
}

JOT_FN void
jot_kernel_refresh(Kernel *k)
{
    const uint64_t all = added_axes(k);
    for (uint32_t i = 1; i < k->values.n; i++)
        k->values.v[i].free = free_axes(k, &k->values.v[i]);
    for (uint32_t i = 0; i < k->stores.n; i++) {
        KStore *s = &k->stores.v[i];
        s->free = s->acc ? all : k->values.v[s->value].free;
        for (int j = 0; j < s->nidx + s->ncond; j++)
            s->free |= jot_ix_axes(k->ix, k->ixs.v[s->at + (uint32_t)j]);
    }
}

JOT_FN bool
jot_kernel_compact(Kernel *k)
{
    uint32_t n = k->values.n, *map = jot_mem_new(k->mem, n, sizeof *map), kept = 1;
    bool *used = jot_kernel_used_new(k), ok = map && used;
    for (uint32_t i = 1; ok && i < n; i++) {
        Value *v = &k->values.v[i];
        if (!used[i])
            continue;
        for (int j = 0; j < v->narg; j++)
            k->args.v[v->arg + (uint32_t)j] = map[k->args.v[v->arg + (uint32_t)j]];
        k->values.v[map[i] = kept++] = *v;
    }
    for (uint32_t i = 0; ok && i < k->stores.n; i++)
        k->stores.v[i].value = map[k->stores.v[i].value];
    if (ok)
        k->values.n = kept;
    jot_mem_free(k->mem, map, n * sizeof *map);
    jot_mem_free(k->mem, used, n * sizeof *used);
    return ok;
}

/* ---- identities ---- */

static int64_t
int_min(int dtype)
{
    switch (dtype) {
    case JOT_I8: return -128;
    case JOT_I16: return -32768;
    case JOT_I32: return INT32_MIN;
    case JOT_I64: return INT64_MIN;
    default: return 0;
    }
}

static uint64_t
int_max(int dtype)
{
    switch (dtype) {
    case JOT_BOOL: return 1;
    case JOT_I8: return 127;
    case JOT_I16: return 32767;
    case JOT_I32: return INT32_MAX;
    case JOT_I64: return INT64_MAX;
    case JOT_U8: return 255;
    case JOT_U16: return 65535;
    case JOT_U32: return UINT32_MAX;
    default: return UINT64_MAX;
    }
}

static double
infinity(bool negative)
{
    union { uint64_t u; double f; } bits;
    bits.u = negative ? 0xfff0000000000000u : 0x7ff0000000000000u;
    return bits.f;
}

JOT_FN bool
jot_reduce_op_identity(EwOp op, jot_DType dtype, jot_Scalar *identity)
{
    bool f = is_float(dtype), b = dtype == JOT_BOOL;
    identity->u = 0;
    switch (op) {
    case EW_ADD: return !b;
    case EW_MUL:
        if (f)
            identity->f = 1;
        else
            identity->u = 1;
        return !b;
    case EW_MAX:
        if (f)
            identity->f = infinity(true);
        else
            identity->i = int_min(dtype);
        return !b;
    case EW_MIN:
        if (f)
            identity->f = infinity(false);
        else
            identity->u = int_max(dtype);
        return !b;
    case EW_AND: identity->u = 1; return b;
    case EW_OR: case EW_XOR: return b;
    case EW_BITAND: identity->u = b ? 1 : dtype >= JOT_U8 ? int_max(dtype) : UINT64_MAX; return !f;
    case EW_BITOR: case EW_BITXOR: return !f;
    default: return false;
    }
}
