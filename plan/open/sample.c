/* plan/open/sample.c - the function for given extents, as a plan of texts; whether two such are the
 * same function but for numbers.
 *
 *     builder(extent) -> graph -> plan, printed and not compiled (plan/function/make.c)
 *
 *   requires  nothing that waits      keeps  the generator, assignments (as jot_compile)
 * Read before: plan/open/open.h. After: plan/open/merge.c. */
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

JOT_FN void
jot_open_drop(OpenSet *set)
{
    int i;

    for (i = 0; i < OPEN_SAMPLES; i++) {
        jot_func_end(set->f[i]);
        set->f[i] = NULL;
    }
}

/* One that is only printed. */
JOT_FN Func *
jot_open_text_of(Open *o, const int64_t *extent, const OpenSteps *open, bool runs)
{
    FuncFor of = {0};

    of.op = o->op;
    of.dialect = o->dialect ? o->dialect : o->ctx->backend->dialect;
    of.open = open;
    of.graph = runs && !o->dialect && o->ctx->backend->device;
    return jot_open_build(o, extent, &of);
}

JOT_FN bool
jot_open_sample(Open *o, const OpenSteps *open, OpenSet *set)
{
    int base = o->space.grid - 1, k, i;

    for (k = 0; k < o->space.samples; k++) {
        OpenSteps one = *open;

        i = (base + k) % o->space.samples;
        one.learn = open->learn == OPEN_KNOWN ? OPEN_KNOWN : !k ? OPEN_FOR_MOST
                  : i == o->space.few ? OPEN_FOR_FEW : o->space.level[i] ? OPEN_KNOWN : OPEN_OTHER;
        if (!(set->f[i] = jot_open_text_of(o, o->space.at[i], &one, false)))
            return false;
        set->f[i]->plan->open = NULL;
    }
    return true;
}

/* ---- the same function ---------------------------------------------------------------------- */

static bool
same_shape(const FuncShape *a, const FuncShape *b)
{
    return a->dtype == b->dtype && a->rank == b->rank;
}

static bool
same_from(const FuncFrom *a, const FuncFrom *b)
{
    return a->computed == b->computed && a->at == b->at;
}

static bool
same_leaf(const FuncLeaf *a, const FuncLeaf *b)
{
    if (a->kind != b->kind || a->input != b->input || a->slot != b->slot || a->gen != b->gen
        || a->dtype != b->dtype || a->begun != b->begun)
        return false;
    return a->kind != LEAF_CONST
        || (a->buf->nbytes == b->buf->nbytes && !memcmp(a->buf->p, b->buf->p, a->buf->nbytes));
}

/* Called with the same variables and literals, as often. */
JOT_FN bool
jot_open_same_step(const Func *f, const Func *g, uint32_t i)
{
    const Plan *a = f->plan, *b = g->plan;
    const PlanStep *x = &a->steps.v[i], *y = &b->steps.v[i];
    uint32_t k;

    if (x->narg != y->narg || x->nscalar != y->nscalar || x->begins != y->begins || x->as != y->as
        || x->best.phases != y->best.phases)
        return false;
    for (k = 0; k < x->nscalar; k++) {
        const PlanScalar *p = &a->scalars.v[x->scalar + k], *q = &b->scalars.v[y->scalar + k];

        if (p->pos != q->pos || p->field != q->field || p->dtype != q->dtype)
            return false;
    }
    return true;
}

static bool
same_plan(const Plan *a, const Plan *b)
{
    uint32_t i;

    if (a->vars.n != b->vars.n || a->args.n != b->args.n || a->scalars.n != b->scalars.n)
        return false;
    for (i = 0; i < a->args.n; i++)
        if (a->args.v[i] != b->args.v[i])
            return false;
    for (i = 0; i < a->vars.n; i++) {
        const PlanVar *x = &a->vars.v[i], *y = &b->vars.v[i];

        if (x->apart != y->apart || x->nkey != y->nkey
            || (x->nkey && memcmp(x->key, y->key, x->nkey)))
            return false;
        if (x->kind != y->kind || x->pos != y->pos || x->root != y->root || x->first != y->first
            || x->last != y->last || x->over != y->over || x->writers != y->writers)
            return false;
    }
    return true;
}

static bool
same_results(const Func *a, const Func *b)
{
    uint32_t i;

    if (a->roots.n != b->roots.n || a->updates.n != b->updates.n)
        return false;
    for (i = 0; i < a->ninputs; i++)
        if (!same_shape(&a->input[i].shape, &b->input[i].shape))
            return false;
    for (i = 0; i < a->noutputs; i++)
        if (!same_shape(&a->output[i].shape, &b->output[i].shape)
            || !same_from(&a->output[i].from, &b->output[i].from))
            return false;
    for (i = 0; i < a->updates.n; i++) {
        const FuncUpdate *x = &a->updates.v[i], *y = &b->updates.v[i];

        if (x->slot != y->slot || x->gen != y->gen || x->shape.nbytes != y->shape.nbytes
            || !same_shape(&x->shape, &y->shape) || !same_from(&x->from, &y->from))
            return false;
    }
    return true;
}

static bool
same_leaves(const Func *a, const Func *b)
{
    uint32_t i;

    if (a->leaves.n != b->leaves.n || a->randoms.n != b->randoms.n || a->draws != b->draws)
        return false;
    for (i = 0; i < a->leaves.n; i++)
        if (!same_leaf(&a->leaves.v[i], &b->leaves.v[i]))
            return false;
    for (i = 0; i < a->randoms.n; i++)
        if (a->randoms.v[i].k != b->randoms.v[i].k || a->randoms.v[i].op != b->randoms.v[i].op)
            return false;
    for (i = 0; i < a->plan->vars.n; i++)
        if (a->leaf[i] != b->leaf[i])
            return false;
    for (i = 0; i < a->plan->scalars.n; i++)
        if (a->random[i] != b->random[i])
            return false;
    return true;
}

static bool
same_not(Open *o, const char *what)
{
    Text t = {NULL, o->why, 0, sizeof o->why};

    if (what)
        jot_text_f(&t, "some have %s", what);
    return !what;
}

JOT_FN bool
jot_open_like(Open *o, const Func *a, const Func *b)
{
    o->whole |= a->plan->codes.n || b->plan->codes.n;
    return same_not(o, a->plan->codes.n || b->plan->codes.n ? "user code, branches or loops"
                       : a->plan->steps.n != b->plan->steps.n ? "more kernels"
                       : !same_results(a, b) ? "other results or updates" : NULL);
}

JOT_FN bool
jot_open_same(Open *o, const Func *a, const Func *b)
{
    bool plan = same_plan(a->plan, b->plan), leaves = !plan || same_leaves(a, b);

    o->whole |= !leaves;
    return same_not(o, !plan ? "other temporaries"
                       : !leaves ? "other parameters, or arrays of their own" : NULL);
}
