/* plan/fetch.c - values that callbacks wait for.
 *
 *     jot_fetch        the node, the callback              nothing happens
 *     an evaluation    computes what is fetched; on a device a copy of each begins, on a queue of
 *                      its own: when the kernels up to here are done, beside those of the next
 *     callbacks        in the order of the fetches, on the caller's thread, when the copy is there
 *
 *     jot_run          | kernels 1 |            | kernels 2 |            | kernels 3
 *     copies           |            | copy of 1 |            | copy of 2 |
 *     callbacks                                 1 comes here              2
 *
 * So jot_run waits for copies of earlier evaluations, whose kernels are done or about to be, not
 * for its own. What waits for values itself (jot_data, jot_item, jot_copy, jot_poll) waits for all.
 * A fetch holds its node, so what is copied is neither written nor given to another meanwhile. What
 * an evaluation has computed comes, though the next one fail and jot_clear forget it: without a
 * device it would have come at once.
 *
 * Read before: core.h ("evaluation"), backends/backend.h (Device). After: plan/eval.c. */
#include "plan/plan.h"
#include "backends/backend.h"

bool
jot_fetch(jot_Var v, jot_FetchFn *callback, void *user)
{
    NodeId id = jot_node_of(v, "fetch", "v");
    Fetch f = {id, callback, user, NULL};

    if (!id)
        return false;
    if (!jot_flow_outside(v.ctx, "fetch"))
        return false;
    if (!callback)
        return jot_fail(v.ctx, JOT_EUSE, "fetch: callback is NULL");
    if (!jot_vec_add(v.ctx, v.ctx->fetches, f, "fetch"))
        return false;
    jot_node_ref(v.ctx, id);
    return true;
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Of what only the device has. One that is refused is made later, by a download. */
static void
fetch_begin(jot_Ctx *ctx)
{
    const Device *device = ctx->backend ? ctx->backend->device : NULL;
    uint32_t i;

    for (i = 0; device && device->fetch && i < ctx->fetches.n; i++) {
        Fetch *f = &ctx->fetches.v[i];
        const Buffer *buf = jot_node(ctx, f->node)->data;

        if (!f->copy && buf && !buf->p && buf->device && buf->nbytes)
            f->copy = device->fetch(ctx->backend, ctx, buf->device, buf->nbytes);
    }
}

static void
fetch_end(jot_Ctx *ctx, Fetch *f)
{
    if (f->copy)
        ctx->backend->device->fetch_end(ctx->backend, ctx, f->copy);
    f->copy = NULL;
    jot_node_unref(ctx, f->node);
}

JOT_FN void
jot_fetch_leave(jot_Ctx *ctx, const Buffer *buf)
{
    uint32_t i;

    for (i = 0; i < ctx->fetches.n; i++) {
        const Fetch *f = &ctx->fetches.v[i];

        if (f->copy && jot_node(ctx, f->node)->data == buf)
            ctx->backend->device->fetch_before(ctx->backend, f->copy);
    }
}

JOT_FN void
jot_fetch_forget(jot_Ctx *ctx, uint32_t from)
{
    while (!ctx->running && ctx->fetches.n > from)
        fetch_end(ctx, &ctx->fetches.v[--ctx->fetches.n]);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static void
fetch_call(jot_Ctx *ctx, const Fetch *f)
{
    const Node *node = jot_node(ctx, f->node);
    jot_Tensor value;

    value.data = f->copy ? ctx->backend->device->fetched(ctx->backend, ctx, f->copy)
                         : jot_data_host(ctx, node->data, "fetch");
    if (!value.data)
        return;
    value.dtype = (jot_DType)node->dtype;
    value.shape = jot_ints(node->rank, node->ext);
    value.nbytes = node->data->nbytes;
    f->call(f->user, &value);
}

/* Of the first n. A callback may fetch again, which waits for the next evaluation, but not
 * evaluate. */
static void
fetch_calls(jot_Ctx *ctx, uint32_t n, bool wait)
{
    uint32_t i;

    ctx->running = true;
    for (i = 0; i < n && (wait || i < ctx->fetched || !ctx->fetches.v[i].copy); i++) {
        Fetch f = ctx->fetches.v[i];

        if (jot_node(ctx, f.node)->data)
            fetch_call(ctx, &f);
        fetch_end(ctx, &f);
    }
    memmove(ctx->fetches.v, ctx->fetches.v + i, (ctx->fetches.n - i) * sizeof *ctx->fetches.v);
    ctx->fetches.n -= i;
    ctx->fetched = n - i;
    ctx->running = false;
}

JOT_FN void
jot_fetch_callbacks(jot_Ctx *ctx, bool wait)
{
    fetch_begin(ctx);
    fetch_calls(ctx, ctx->fetches.n, wait);
}

JOT_FN void
jot_fetch_due(jot_Ctx *ctx)
{
    if (ctx->fetched && !ctx->running && jot_home(ctx))
        fetch_calls(ctx, ctx->fetched, true);
}
