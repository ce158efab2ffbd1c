/* plan/open/open.c - functions with open extents: made of a builder, called with extents.
 *
 *     extents of a call   in bounds? -> seen often, its kernels there?   -> its own function
 *                                       in a range that has one plan?    -> that one (padded.c)
 *                                       else                             -> its own, made now
 *
 * Read before: plan/open/open.h, plan/open/range.c. After: plan/open/padded.c,
 * plan/function/function.c. */
#include "plan/open/masked.h"

/* ---- making --------------------------------------------------------------------------------- */

static bool
open_extent(Open *o, Arena *arena, const jot_Extent *e, int d)
{
    int64_t step = e->step ? e->step : 1;
    OpenSpace *s = &o->space;

    if (!e->name || !e->name[0])
        return jot_fail(o->ctx, JOT_EUSE, "%s: extents[%d] has no name", o->op, d);
    if (e->least < 1 || e->most < e->least || step < 0 || e->most > ((int64_t)1 << 31))
        return jot_fail(o->ctx, JOT_ERANGE, "%s: %s is %lld to %lld in steps of %lld: "
                        "1 and more asked, 2^31 at most", o->op, e->name, (long long)e->least,
                        (long long)e->most, (long long)step);
    s->least[d] = e->least;
    s->step[d] = step;
    s->most[d] = e->least + (e->most - e->least) / step * step;
    o->name[d] = jot_arena_copy(arena, e->name, jot_str_len(e->name));
    return o->name[d] || jot_fail_memory(o->ctx, "compile_open");
}

JOT_FN bool
jot_open_begin(Open *o, Arena *arena, const jot_Builder *b)
{
    int d;

    if (!b || !b->build || (b->nextents && !b->extents) || b->ninputs < 0 || b->noutputs < 0)
        return jot_fail(o->ctx, JOT_EUSE, "%s: %s", o->op, !b ? "builder is NULL"
                        : !b->build ? "build is NULL"
                        : b->ninputs < 0 || b->noutputs < 0
                              ? "the number of inputs or outputs is negative" : "extents is NULL");
    if (b->nextents < 1 || b->nextents > OPEN_MOST)
        return jot_fail(o->ctx, JOT_ERANGE, "%s: %d extents: 1 to %d asked", o->op, b->nextents,
                        OPEN_MOST);
    o->space.n = b->nextents;
    o->build = b->build;
    o->user = b->user;
    o->nin = b->ninputs;
    o->nout = b->noutputs;
    o->in = jot_arena_array(arena, jot_Var, (size_t)b->ninputs + 1);
    o->out = jot_arena_array(arena, jot_Var, (size_t)b->noutputs + 1);
    o->dtype = jot_arena_array(arena, jot_DType, (size_t)b->noutputs + 1);
    if (!o->in || !o->out || !o->dtype)
        return jot_fail_memory(o->ctx, "compile_open");
    for (d = 0; d < b->nextents; d++)
        if (!open_extent(o, arena, &b->extents[d], d))
            return false;
    jot_open_space(&o->space);
    return true;
}

/* The builder is tried at the most extents in any case. */
static bool
open_plan(Open *o)
{
    static const FuncFor look = {.op = "compile_open"};
    Func *f;

    if (!jot_open_try(o, o))
        return false;
    if (o->masked || !o->whole)
        return true;
    if (!(f = jot_open_build(o, o->space.at[o->space.grid - 1], &look)))
        return false;
    jot_func_end(f);
    return true;
}

jot_Func
jot_compile_open(jot_Ctx *ctx, const jot_Builder *builder)
{
    jot_Func none = jot_func_handle(ctx, NULL);
    Func *f = ctx && !ctx->status ? jot_func_new(ctx, "compile_open") : NULL;
    Open *o;

    if (!f)
        return none;
    f->open = o = jot_mem_new(&ctx->mem, 1, sizeof *o);
    f->end = jot_open_end;
    if (o) {
        o->ctx = ctx;
        o->op = "compile_open";
    }
    if (o ? jot_plan_run(ctx, NULL, 0) && jot_open_begin(o, &f->arena, builder) && open_plan(o)
          : jot_fail_memory(ctx, "compile_open"))
        return jot_func_handle(ctx, f);
    jot_func_end(f);
    return none;
}

/* ---- sizes that come again ------------------------------------------------------------------ */

/* The size, with a place in the list; the one that was not used for longest makes room. */
static OpenSize *
open_size(Open *o, const int64_t *extent)
{
    OpenSize *oldest = NULL, *s;
    uint32_t i;

    for (i = 0; i < o->sizes.n; i++) {
        s = &o->sizes.v[i];
        if (!memcmp(s->extent, extent, (size_t)o->space.n * sizeof *extent))
            return s;
        if (!oldest || s->used < oldest->used)
            oldest = s;
    }
    if (o->sizes.n < OPEN_KEPT) {
        if (!jot_vec_reserve(&o->ctx->mem, o->sizes, 1)) {
            jot_fail_memory(o->ctx, "call_open");
            return NULL;
        }
        oldest = &o->sizes.v[o->sizes.n++];
    } else {
        jot_func_end(oldest->f);
    }
    memset(oldest, 0, sizeof *oldest);
    memcpy(oldest->extent, extent, (size_t)o->space.n * sizeof *extent);
    return oldest;
}

static bool
open_own(Open *o, OpenSize *s)
{
    static const FuncFor of = {.op = "call_open"};

    if (!s->f && jot_plan_run(o->ctx, NULL, 0)) /* what waits is not the function's */
        s->f = jot_open_build(o, s->extent, &of);
    return s->f != NULL;
}

/* The function that a call with these extents runs, *masked if it is that one's; NULL: failed.
 * look: it is not run. */
static Func *
open_func(Open *o, const int64_t *extent, bool look, Open **masked)
{
    OpenSize *s = open_size(o, extent);
    Open *range;

    if (!s)
        return NULL;
    s->used = o->clock += !look;
    s->calls += !look;
    if (!jot_open_range(o, extent, &range))
        return NULL;
    if (!range)
        return open_own(o, s) ? s->f : NULL;
    if (s->calls >= OPEN_OFTEN && s->calls * OPEN_SHARE >= o->clock && !s->f
        && !o->ctx->config.deterministic) {
        if (!open_own(o, s))
            return NULL;
        jot_tier_begin(o->ctx, s->f->plan);
    }
    if (s->f && jot_tier_there(o->ctx, s->f->plan))
        return s->f;
    *masked = range;
    return range->masked->f;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static Func *
open_called(jot_Func h, jot_Ints extents, const char *op, bool look, Open **masked)
{
    Func *f = jot_func_of(h, op);
    Open *o = f ? f->open : NULL;
    jot_Ctx *ctx = f ? f->ctx : NULL;
    int d;

    *masked = NULL;
    if (!f || ctx->status)
        return NULL;
    if (!o) {
        jot_fail(ctx, JOT_EUSE, "%s: no extent of the function is open: jot_call calls it", op);
        return NULL;
    }
    if (ctx->running) {
        jot_fail(ctx, JOT_EUSE, "%s: called from within an evaluation or a fetch's callback", op);
        return NULL;
    }
    if (extents.n != o->space.n || !extents.v) {
        jot_fail(ctx, JOT_ERANGE, "%s: extents: %d asked, %d found", op, o->space.n, extents.n);
        return NULL;
    }
    for (d = 0; d < o->space.n; d++) {
        int64_t least = o->space.least[d], most = o->space.most[d], step = o->space.step[d];

        if (extents.v[d] >= least && extents.v[d] <= most && (extents.v[d] - least) % step == 0)
            continue;
        jot_fail(ctx, JOT_ERANGE, "%s: %s is %lld: %lld to %lld in steps of %lld asked", op,
                 o->name[d], (long long)extents.v[d], (long long)least, (long long)most,
                 (long long)step);
        return NULL;
    }
    return open_func(o, extents.v, look, masked);
}

bool
jot_call_open(jot_Func h, jot_Ints extents, jot_Ins in, jot_Outs out)
{
    Open *masked;
    Func *f = open_called(h, extents, "call_open", false, &masked);

    return f && (masked ? jot_masked_call(masked, extents.v, in, out) : jot_func_call(f, in, out));
}

bool
jot_call_vars_open(jot_Func h, jot_Ints extents, jot_Vars in, jot_Var *out)
{
    Func *made = jot_func_of(h, "call_vars_open"), *f;
    Open *masked = NULL;
    int k;

    for (k = 0; made && made->open && out && k < made->open->nout; k++)
        out[k] = JOT_POISON(made->ctx);
    f = made ? open_called(h, extents, "call_vars_open", false, &masked) : NULL;
    return f && (masked ? jot_masked_call_vars(masked, extents.v, in, out)
                        : jot_func_call_vars(f, in, out));
}

jot_Ints
jot_open_shape(jot_Func h, jot_Ints extents, int output)
{
    Open *masked;
    Func *f = open_called(h, extents, "open_shape", true, &masked);

    if (f && (output < 0 || (uint32_t)output >= f->noutputs)) {
        jot_fail(f->ctx, JOT_ERANGE, "open_shape: output %d: 0 to %d asked", output,
                 (int)f->noutputs - 1);
        f = NULL;
    }
    if (f && masked)
        return jot_masked_shape(masked, extents.v, output);
    return f ? jot_ints(f->output[output].shape.rank, f->output[output].shape.ext)
             : jot_ints(-1, NULL);
}

jot_DType
jot_open_dtype(jot_Func h, int output)
{
    Func *f = jot_func_of(h, "open_dtype");
    Open *o = f ? f->open : NULL;

    if (!f || f->ctx->status)
        return JOT_DTYPES;
    if (o && output >= 0 && output < o->nout)
        return o->dtype[output];
    jot_fail(f->ctx, o ? JOT_ERANGE : JOT_EUSE, o ? "open_dtype: output %d: 0 to %d asked"
             : "open_dtype: no extent of the function is open", output, o ? o->nout - 1 : 0);
    return JOT_DTYPES;
}

const char *
jot_open_why(jot_Func h)
{
    Func *f = jot_func_of(h, "open_why");

    return f && f->open ? f->open->told : "";
}
