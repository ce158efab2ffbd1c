/* plan/open/sample.c - the graph and the function of a builder for given extents.
 *
 *   requires  nothing that waits      keeps  the generator, assignments (as jot_compile)
 * Read before: plan/open/open.h. After: plan/open/follow.c. */
#include "plan/open/open.h"

JOT_FN void
jot_open_extents(const Open *o, const int64_t *extent, Text *out)
{
    int d;

    for (d = 0; d < o->space.n; d++)
        jot_text_f(out, "%s%s = %lld", d ? ", " : "", o->name[d], (long long)extent[d]);
}

JOT_FN void
jot_open_between(const Open *o, const int64_t *least, const int64_t *most, Text *t)
{
    int d;

    for (d = 0; d < o->space.n; d++)
        jot_text_f(t, "%s%s = %lld to %lld", d ? ", " : "", o->name[d], (long long)least[d],
                   (long long)most[d]);
}

/* ---- a function for some extents ------------------------------------------------------------ */

JOT_FN bool
jot_open_graph(Open *o, const int64_t *extent, const char *op)
{
    jot_Ctx *ctx = o->ctx;
    char at[160];
    Text t = {NULL, at, 0, sizeof at};
    int k;

    for (k = 0; k < o->nin; k++)
        o->in[k] = JOT_POISON(ctx);
    for (k = 0; k < o->nout; k++)
        o->out[k] = JOT_POISON(ctx);
    jot_open_extents(o, extent, &t);
    if (!o->build(ctx, extent, o->in, o->out, o->user) && !ctx->status)
        jot_fail(ctx, JOT_EUSE, "%s: the builder gave up at %s", op, at);
    return !ctx->status;
}

JOT_FN Func *
jot_open_build(Open *o, const int64_t *extent, const FuncFor *of)
{
    jot_Ctx *ctx = o->ctx;
    jot_RandomState random = jot_random_state(ctx);
    jot_Vars in = {o->nin, o->in}, out = {o->nout, o->out};
    Func *f = NULL;
    int k;

    jot_push(ctx);
    if (jot_open_graph(o, extent, of->op))
        f = jot_func_make(ctx, in, out, of);
    for (k = 0; f && k < o->nout; k++)
        o->dtype[k] = f->output[k].shape.dtype;
    jot_pop(ctx);
    jot_set_random_state(ctx, random);
    return f;
}
