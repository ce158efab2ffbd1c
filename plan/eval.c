/* plan/eval.c - the public functions that ask for values: run, data, item, copy, set, poll.
 *
 * Each asks jot_plan_run for its node and reads what the node then has. Every evaluation computes
 * what fetches wait for, too (plan/fetch.c).
 *
 * Read before: core.h ("evaluation"), plan/plan.h. After: plan/fetch.c, plan.c. */
#include "plan/plan.h"

/* wait: the caller waits for values anyway, and so for what is fetched. */
static bool
eval_nodes(jot_Ctx *ctx, const NodeId *id, uint32_t n, bool wait)
{
    if (!jot_plan_run(ctx, id, n))
        return false;
    if (ctx->fetches.n)
        jot_fetch_callbacks(ctx, wait);
    return true;
}

bool
jot_run(jot_Ctx *ctx, jot_Vars vars)
{
    NodeId *id;
    bool ok;

    if (!ctx || vars.n < 0)
        return false;
    id = jot_mem_new(&ctx->mem, (size_t)vars.n, sizeof *id);
    if (!id)
        return jot_fail_memory(ctx, "run");
    ok = jot_nodes_of(ctx, vars, "run", "vars", id) && eval_nodes(ctx, id, (uint32_t)vars.n, false);
    jot_mem_free(&ctx->mem, id, (size_t)vars.n * sizeof *id);
    return ok;
}

bool
jot_poll(jot_Ctx *ctx)
{
    return ctx && (!ctx->fetches.n || eval_nodes(ctx, NULL, 0, true));
}

/* ---- values ------------------------------------------------------------------------------- */

/* The node of v with its data there, in host memory; NULL after a failure. */
static const Node *
eval_node(jot_Var v, const char *op)
{
    NodeId id = jot_node_of(v, op, "v");

    if (!id)
        return NULL;
    if (jot_node(v.ctx, id)->data)
        jot_fetch_due(v.ctx);
    else if (!eval_nodes(v.ctx, &id, 1, true))
        return NULL;
    if (!jot_node(v.ctx, id)->data || !jot_data_host(v.ctx, jot_node(v.ctx, id)->data, op))
        return NULL;
    return jot_node(v.ctx, id);
}

const void *
jot_data(jot_Var v)
{
    const Node *node = eval_node(v, "data");

    if (node)
        node->data->lent = true;
    return node ? node->data->p : NULL;
}

#define EVAL_DATA(name, T, DTYPE)                                                            \
    const T *jot_data_##name(jot_Var v)                                                      \
    {                                                                                        \
        NodeId id = jot_node_of(v, "data_" #name, "v");                                      \
        if (id && jot_node(v.ctx, id)->dtype == DTYPE)                                       \
            return jot_data(v);                                                              \
        if (id)                                                                              \
            jot_fail(v.ctx, JOT_EDTYPE, "data_" #name ": v is %s",                           \
                     jot_dtype_name((jot_DType)jot_node(v.ctx, id)->dtype));                 \
        return NULL;                                                                         \
    }
EVAL_DATA(bool, uint8_t, JOT_BOOL)
EVAL_DATA(i8, int8_t, JOT_I8)
EVAL_DATA(i16, int16_t, JOT_I16)
EVAL_DATA(i32, int32_t, JOT_I32)
EVAL_DATA(i64, int64_t, JOT_I64)
EVAL_DATA(u8, uint8_t, JOT_U8)
EVAL_DATA(u16, uint16_t, JOT_U16)
EVAL_DATA(u32, uint32_t, JOT_U32)
EVAL_DATA(u64, uint64_t, JOT_U64)
EVAL_DATA(f16, uint16_t, JOT_F16)
EVAL_DATA(bf16, uint16_t, JOT_BF16)
EVAL_DATA(f32, float, JOT_F32)
EVAL_DATA(f64, double, JOT_F64)
#undef EVAL_DATA

static const Node *
eval_one(jot_Var v, const char *op)
{
    NodeId id = jot_node_of(v, op, "v");

    if (id && jot_node(v.ctx, id)->nelem != 1) {
        jot_fail(v.ctx, JOT_ESHAPE, "%s: v has %lld elements, one is asked for", op,
                 (long long)jot_node(v.ctx, id)->nelem);
        return NULL;
    }
    return id ? eval_node(v, op) : NULL;
}

double
jot_item(jot_Var v)
{
    const Node *node = eval_one(v, "item");
    union { uint64_t u; double f; } nan;

    nan.u = (uint64_t)0x7ff8 << 48;
    if (!node)
        return nan.f;
    return jot_scalar_f64(jot_scalar_read(node->data->p, (jot_DType)node->dtype),
                          (jot_DType)node->dtype);
}

int64_t
jot_item_int(jot_Var v)
{
    const Node *node = eval_one(v, "item_int");
    jot_Scalar s;

    if (!node)
        return 0;
    s = jot_scalar_read(node->data->p, (jot_DType)node->dtype);
    if (jot_dtype_class((jot_DType)node->dtype) == CLASS_FLOAT)
        s = jot_scalar_apply(EW_CAST, jot_dtype_compute((jot_DType)node->dtype), JOT_I64, &s);
    return s.i;
}

bool
jot_copy(jot_Var v, void *to, size_t nbytes)
{
    const Node *node = eval_node(v, "copy");

    if (!node)
        return false;
    if (nbytes != node->data->nbytes)
        return jot_fail(v.ctx, JOT_ESHAPE, "copy: v has %zu bytes, the destination %zu",
                        node->data->nbytes, nbytes);
    if (nbytes && !to)
        return jot_fail(v.ctx, JOT_EUSE, "copy: the destination is NULL");
    if (nbytes)
        memcpy(to, node->data->p, nbytes);
    return true;
}

bool
jot_set(jot_Var v, const void *data, size_t nbytes)
{
    NodeId id = jot_node_of(v, "set", "v");
    const Node *node = id ? jot_node(v.ctx, id) : NULL;
    jot_Var fresh;
    bool ok;

    if (!node)
        return false;
    if (nbytes != (size_t)jot_node_nbytes(node))
        return jot_fail(v.ctx, JOT_ESHAPE, "set: v has %zu bytes, the source %zu",
                        (size_t)jot_node_nbytes(node), nbytes);
    fresh = jot_array(v.ctx, (jot_DType)node->dtype, jot_ints(node->rank, node->ext), data);
    ok = fresh.slot && jot_assign(v, fresh);
    if (fresh.slot)
        jot_free(fresh);
    return ok;
}
