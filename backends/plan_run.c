/* backends/plan_run.c - a plan is run: pointers for its variables, then one launch per step.
 *
 * The selection supplies what may differ between two runs of a plan: the data of leaves, the values
 * of literals, seeds. Results go to new buffers, temporaries into the context's block, which is
 * kept from run to run: the first touch of fresh pages costs more than most kernels.
 *
 * Read before: backends/plan_parts.h. After: backends/plan.c. */
#include "backends/plan_parts.h"
#include "ops/code.h"

enum { BLOCK_ALIGN = 64 };

static bool
run_block(jot_Ctx *ctx, size_t nbytes)
{
    struct PlanCache *c = ctx->plans;

    if (nbytes + BLOCK_ALIGN <= c->block_nbytes)
        return true;
    jot_mem_free(&ctx->mem, c->block, c->block_nbytes);
    c->block = NULL;
    c->block_nbytes = 0;
    c->block = jot_mem_realloc(&ctx->mem, NULL, 0, nbytes + BLOCK_ALIGN);
    if (c->block)
        c->block_nbytes = nbytes + BLOCK_ALIGN;
    return c->block != NULL;
}

static bool
run_outputs(jot_Ctx *ctx, const Selection *s, Buffer **out)
{
    uint32_t i;

    for (i = 0; i < s->roots.n; i++) {
        const Node *node = jot_node(ctx, s->roots.v[i]);

        out[i] = jot_buffer_new(ctx,
                                (size_t)node->nelem * jot_dtype_nbytes((jot_DType)node->dtype));
        if (!out[i])
            return false;
    }
    return true;
}

static void
run_pointers(jot_Ctx *ctx, const Plan *plan, const Selection *s, Buffer **out, unsigned char *block,
             void **ptr)
{
    uint32_t i;

    for (i = 0; i < plan->vars.n; i++) {
        const PlanVar *v = &plan->vars.v[i];

        ptr[i] = v->kind == VAR_LEAF ? jot_node(ctx, s->list.v[v->pos])->data->p
               : v->kind == VAR_ASKED ? out[v->root]->p : block + v->offset;
    }
}

static jot_Scalar
run_scalar(jot_Ctx *ctx, const Selection *s, const PlanScalar *from)
{
    const Node *node = jot_node(ctx, s->list.v[from->pos]);
    jot_Scalar v = node->value;

    if (from->field == BUILD_STREAM)
        v.u = node->stream;
    return v;
}

static void
run_timed(jot_Ctx *ctx, const PlanKernel *kernel, int64_t start)
{
    Text t = {NULL, NULL, 0, 0};

    t.mem = &ctx->mem;
    jot_text_f(&t, "time %lld ns  %s (%s)\n",
               (long long)(ctx->mem.hooks.now(ctx->mem.hooks.ud) - start), kernel->name,
               kernel->what);
    jot_plan_log(ctx, &t);
}

typedef struct {
    KernelFn *fn;
    void *const *arg;
    const jot_Scalar *scalar;
    unsigned char *scratch;
    size_t scratch_nbytes;
} RunShare;

static void
run_share(void *p, int64_t lo, int64_t hi, int worker)
{
    const RunShare *share = p;

    share->fn(share->arg, NULL, share->scalar,
              share->scratch + (size_t)worker * share->scratch_nbytes, 0, lo, hi);
}

static void
run_step(jot_Ctx *ctx, const Plan *plan, const PlanStep *step, const Selection *s, void **ptr,
         void **arg, jot_Scalar *scalar, void *scratch, bool timed)
{
    Backend *backend = ctx->backend;
    const jot_Scalar *given = scalar;
    int64_t start = timed ? ctx->mem.hooks.now(ctx->mem.hooks.ud) : 0;
    uint32_t i;

    for (i = 0; i < step->narg; i++)
        arg[i] = ptr[plan->args.v[step->arg + i]];
    for (i = 0; i < step->nscalar; i++)
        scalar[i] = run_scalar(ctx, s, &plan->scalars.v[step->scalar + i]);
    if (step->code)
        given = jot_node(ctx, s->list.v[step->code - 1])->code->scalar;
    if (backend->parallel && step->count > 1 && step->work >= RUN_SHARED) {
        RunShare share;

        share.fn = step->kernel->fn;
        share.arg = arg;
        share.scalar = given;
        share.scratch = scratch;
        share.scratch_nbytes = plan->scratch_nbytes;
        backend->parallel(backend, step->count, run_share, &share);
    } else {
        step->kernel->fn(arg, NULL, given, scratch, 0, 0, step->count);
    }
    ctx->stats.kernels_run++;
    if (timed)
        run_timed(ctx, step->kernel, start);
}

JOT_FN bool
jot_plan_replay(jot_Ctx *ctx, const Plan *plan, const Selection *s, Buffer **out)
{
    uint32_t nptr = plan->vars.n + plan->most_args, n = nptr + plan->most_scalars + 1, i;
    void **ptr = jot_mem_new(&ctx->mem, n, sizeof(jot_Scalar));
    bool timed = jot_plan_dumps(ctx, 't') && ctx->mem.hooks.now;
    unsigned char *block;

    if (!ptr || !run_block(ctx, plan->block_nbytes) || !run_outputs(ctx, s, out)) {
        jot_mem_free(&ctx->mem, ptr, n * sizeof(jot_Scalar));
        return jot_fail_memory(ctx, "run");
    }
    block = ctx->plans->block;
    block += (BLOCK_ALIGN - (uintptr_t)block % BLOCK_ALIGN) % BLOCK_ALIGN;
    run_pointers(ctx, plan, s, out, block, ptr);
    for (i = 0; i < plan->steps.n; i++)
        run_step(ctx, plan, &plan->steps.v[i], s, ptr, ptr + plan->vars.n,
                 (jot_Scalar *)(void *)(ptr + nptr), block + plan->scratch, timed);
    jot_mem_free(&ctx->mem, ptr, n * sizeof(jot_Scalar));
    return true;
}
