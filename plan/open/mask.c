/* plan/open/mask.c - the graph of the most extents serves all others: what lies beyond is masked.
 *
 *     asked      y[i] = sum over j < n of x[i, j]           x (n, n), n = 1 to 1000
 *     masked     y[i] = sum over j < 1000 of (j < @sizes(0) ? x[i, j] : 0)
 *
 * Each variable is as large as at the most extents, and right before those of a call, whatever lies
 * beyond. Element-wise operators and maps that are the same for all extents keep that, for a point
 * before the end reads points before the end; reductions over such an axis get the mask. Extents
 * that follow those of a call are a variable, `sizes`; so are constants that do, as the scale of a
 * mean. Where a map reads beyond an edge (a padded convolution), what it reads is masked by what it
 * has for outside; numbers of maps that follow are read of `sizes`, too (plan/open/map.c).
 *
 * Loops of the kernels end where the sizes say (ccode/lower/filled.c): KAxis.end.
 *
 *   requires  no user's code, no branch or loop    keeps  the generator, assignments
 * Read before: plan/open/masked.h, plan/open/follow.c. After: plan/open/padded.c. */
#include "plan/open/masked.h"
#include "ops/maps.h"

/* ---- the graph ------------------------------------------------------------------------------- */

static bool
mask_open(const MaskNode *n)
{
    int d;

    for (d = 0; d < n->rank && !n->size[d]; d++)
        ;
    return d < n->rank;
}

/* The dimensions that are open; is one? */
static bool
mask_asked(const MaskNode *n, bool *asked)
{
    int d;

    for (d = 0; d < n->rank; d++)
        asked[d] = n->size[d] != 0;
    return mask_open(n);
}

/* True where the point is before the end along the dimensions. */
static NodeId
mask_before(Mask *k, const MaskNode *n, const bool *asked)
{
    jot_Ctx *ctx = k->o->ctx;
    Space space = {n->rank, n->ext, NULL};
    jot_Scalar yes = {.u = 1}, no = {.u = 0};
    Ix cond[JOT_MAX_RANK];
    int d, nc = 0;

    for (d = 0; d < n->rank; d++)
        if (asked[d]) {
            Ix at = jot_ix_const(&ctx->ix, n->size[d] - 1);

            cond[nc++] = jot_ix_lt(&ctx->ix, jot_ix_axis(&ctx->ix, d),
                                   jot_ix_load(&ctx->ix, 0, 1, &at), &space);
        }
    return jot_reindex_node(ctx, jot_const_node(ctx, JOT_BOOL, 0, NULL, yes), n->rank, n->ext,
                            NULL, nc, cond, no, 1, &k->sizes);
}

/* A variable of the node's shape that has real number `real` in each element. */
static NodeId
mask_scalar(Mask *k, const Node *n, uint8_t real)
{
    jot_Ctx *ctx = k->o->ctx;
    Ix at = jot_ix_const(&ctx->ix, real - 1);
    jot_Scalar zero = {0};

    return jot_reindex_node(ctx, k->reals, n->rank, n->ext, &at, 0, NULL, zero, 0, NULL);
}

static NodeId
mask_guarded(Mask *k, const MaskNode *n, NodeId x, const bool *asked, jot_Scalar identity)
{
    jot_Ctx *ctx = k->o->ctx;
    jot_DType dtype = (jot_DType)jot_node(ctx, x)->dtype;
    NodeId select[3];

    select[0] = mask_before(k, n, asked);
    select[1] = x;
    select[2] = jot_const_node(ctx, dtype, n->rank, n->ext, identity);
    return select[0] && select[2] ? jot_ew_node(ctx, EW_SELECT, dtype, 3, select) : 0;
}

/* The open dimensions along which is reduced; are there any? */
static bool
mask_reduced(const Mask *k, const Node *reduce, const MaskNode *r, const MaskNode *n, bool *asked)
{
    bool any = false;
    int d, to, axis;

    for (d = 0; d < n->rank; d++) {
        asked[d] = n->size[d] != 0;
        for (to = 0; to < reduce->nindex; to++)
            if (jot_ix_is_axis(&k->o->ctx->ix, reduce->index[to], &axis) && axis == d
                && r->size[to] == n->size[d])
                asked[d] = false;
        any |= asked[d];
    }
    return any;
}

/* The terms of a reduction: those beyond the end are its identity. Of a product both factors are:
 * it stays one for those who look for products, and no NaN of a call before is one of them. */
static NodeId
mask_terms(Mask *k, const Node *reduce, const MaskNode *r, const MaskNode *n, NodeId x)
{
    jot_Ctx *ctx = k->o->ctx;
    jot_Scalar identity = jot_reduce_identity(reduce->op, (jot_DType)reduce->dtype);
    const Node *term = jot_node(ctx, x);
    bool asked[JOT_MAX_RANK];
    NodeId factor[2];

    if (!mask_reduced(k, reduce, r, n, asked))
        return x;
    if (jot_reduce_info[reduce->op].combine != EW_ADD || term->kind != NODE_EW || term->data
        || term->op != EW_MUL)
        return mask_guarded(k, n, x, asked, identity);
    factor[0] = mask_guarded(k, n, term->input[0], asked, identity);
    factor[1] = mask_guarded(k, n, term->input[1], asked, identity);
    return factor[0] && factor[1] ? jot_ew_of(ctx, EW_MUL, factor[0], factor[1], 0) : 0;
}

/* Is only the outermost dimension open, so that elements before its end are the first? */
static bool
mask_outer(const MaskNode *n)
{
    int d;

    for (d = 0; d < n->rank && n->ext[d] == 1 && !n->size[d]; d++)
        ;
    for (d++; d < n->rank && !n->size[d]; d++)
        ;
    return d >= n->rank;
}

static NodeId
mask_scaled(Mask *k, const MaskNode *n, NodeId id)
{
    NodeId factor[2];

    factor[0] = id;
    factor[1] = mask_scalar(k, jot_node(k->o->ctx, id), n->real);
    return factor[1] ? jot_ew_node(k->o->ctx, EW_MUL, JOT_F32, 2, factor) : 0;
}

static NodeId
mask_mean(Mask *k, const Node *reduce, const MaskNode *own, const MaskNode *n, NodeId x)
{
    NodeSpec spec = jot_node_spec(reduce);
    NodeId term = mask_terms(k, reduce, own, n, x), sum;

    spec.input = &term;
    spec.op = JOT_ADD;
    spec.value.f = 1;
    sum = term ? jot_node_make(k->o->ctx, &spec) : 0;
    return sum ? mask_scaled(k, own, sum) : 0;
}

/* A variance along an extent that is open: the mean of squares of what is left without the mean. */
static NodeId
mask_variance(Mask *k, const Node *reduce, const MaskNode *own, const MaskNode *n, NodeId x)
{
    jot_Ctx *ctx = k->o->ctx;
    NodeId mean = mask_mean(k, reduce, own, n, x);
    NodeId at = mean ? jot_reindex_simple(ctx, mean, n->rank, n->ext, reduce->index) : 0;
    NodeId off = at ? jot_ew_of(ctx, EW_SUB, x, at, 0) : 0;
    NodeId square = off ? jot_ew_of(ctx, EW_MUL, off, off, 0) : 0;

    return square ? mask_mean(k, reduce, own, n, square) : 0;
}

/* The node of inputs that are there already, and of maps for all extents. */
static NodeId
mask_again(Mask *k, NodeId id, const MaskNode *all, const MaskNode *own, bool scaled)
{
    jot_Ctx *ctx = k->o->ctx;
    const Node *n = jot_node(ctx, id);
    const MaskNode *from = n->ninputs ? &all[jot_node(ctx, n->input[0])->at] : NULL;
    NodeSpec spec = jot_node_spec(n);
    NodeId input[UINT8_MAX + 1], made;
    MaskMap map;
    int i;

    for (i = 0; i < n->ninputs; i++) /* before the terms, whose making may walk */
        input[i] = all[jot_node(ctx, n->input[i])->at].now;
    if (n->kind == NODE_REDUCE)
        input[0] = mask_terms(k, n, own, from, input[0]);
    if (!own->mapped && !scaled
        && (!n->ninputs || !memcmp(input, n->input, (size_t)n->ninputs * sizeof *input)))
        return id;
    if (!input[0])
        return 0;
    spec.input = input;
    if (own->mapped) {
        input[spec.ninputs++] = k->sizes;
        if (spec.ninputs > UINT8_MAX || !jot_mask_mapped(k, own, from, &spec, &map))
            return 0;
    }
    if (scaled) {
        spec.op = JOT_ADD;
        spec.value.f = 1;
    }
    made = jot_node_make(ctx, &spec);
    return made && scaled ? mask_scaled(k, own, made) : made;
}

/* What the node becomes; 0: failed, or it cannot be (k->good). */
static NodeId
mask_node(Mask *k, NodeId id, const MaskNode *all, const MaskNode *own)
{
    jot_Ctx *ctx = k->o->ctx;
    const Node *n = jot_node(ctx, id);
    const MaskNode *from = n->ninputs ? &all[jot_node(ctx, n->input[0])->at] : NULL;
    bool scaled = own->real && n->kind == NODE_REDUCE;

    if (n->data || n->kind == NODE_LEAF)
        return id;
    if (n->kind == NODE_ALIAS && n->flags & NODE_STATE)
        return from->now; /* one that has a handle would be computed */
    if (n->kind == NODE_STACK) {
        jot_mask_not(k, "pieces are put together");
        return 0;
    }
    if (own->real && (n->dtype != JOT_F32 || (n->kind != NODE_CONST && !scaled))) {
        jot_mask_not(k, "a constant that is no f32 follows the extents");
        return 0;
    }
    if (n->kind == NODE_CONST)
        return own->real ? mask_scalar(k, n, own->real) : id;
    if (n->kind == NODE_RANDOM && mask_open(own) && !mask_outer(own)) {
        jot_mask_not(k, "it draws numbers");
        return 0;
    }
    if (scaled && n->op == REDUCE_VAR)
        return mask_variance(k, n, own, from, from->now);
    return mask_again(k, id, all, own, scaled);
}

/* ... and where it is read beyond its end, that is there: inputs have zeros. */
static NodeId
mask_filled(Mask *k, NodeId id, const MaskNode *n, NodeId now)
{
    bool asked[JOT_MAX_RANK];
    int d;

    if (!n->read || !now)
        return now;
    for (d = 0; d < k->o->nin; d++)
        if (!n->outside.u && jot_node_of(k->o->in[d], "compile_open", "in") == id) {
            k->clear[d] = true;
            return now;
        }
    mask_asked(n, asked);
    return mask_guarded(k, n, now, asked, n->outside);
}

/* The number of the size that is longer by so much; 0: it does not end. */
static uint8_t
mask_longer(Mask *k, uint8_t size, int64_t by)
{
    OpenFit fit;

    if (!size || by >= MASK_FAR)
        return 0;
    fit = k->m->size[size - 1];
    fit.term[0] += by;
    return jot_mask_size(k->m, &fit);
}

static bool
mask_ends(Mask *k, const NodeList *list, const MaskNode *all)
{
    jot_Ctx *ctx = k->o->ctx;
    uint32_t i;
    int d;

    k->ends.sizes = k->sizes;
    if (!k->used)
        return true;
    k->ends.n = ctx->nodes_made;
    k->ends.node = jot_arena_array(&k->arena, OpenEnd, (size_t)k->ends.n + 1);
    for (i = 0; k->ends.node && i < list->n; i++) {
        OpenEnd *e = &k->ends.node[all[i].now];

        e->born = jot_node(ctx, all[i].now)->born;
        for (d = 0; d < all[i].rank; d++)
            e->size[d] = mask_longer(k, all[i].size[d], all[i].until[d]);
    }
    return k->ends.node || jot_fail_memory(ctx, "compile_open");
}

static bool
mask_reads(Mask *k)
{
    NodeList list = {0, 0, NULL};
    bool ok = jot_mask_order(k->o, &list);

    k->used = ok && jot_node(k->o->ctx, k->sizes)->mark == k->o->ctx->walk;
    jot_list_free(k->o->ctx, &list);
    return ok;
}

/* Where no reduction reads the sizes, an output does. */
static bool
mask_outputs(Mask *k)
{
    Open *o = k->o;
    bool asked[JOT_MAX_RANK], ok = mask_reads(k);
    jot_Scalar zero = {0};
    int i;

    for (i = 0; ok && i < o->nout && !k->used; i++) {
        MaskNode *n = &k->sample[k->base][k->out[i]];

        if (!mask_asked(n, asked))
            continue;
        n->now = mask_guarded(k, n, n->now, asked, zero);
        o->out[i] = n->now ? jot_var_of(o->ctx, n->now) : JOT_POISON(o->ctx);
        ok = o->out[i].slot && mask_reads(k);
    }
    return ok;
}

/* What is assigned, masked, is assigned in its place. */
static bool
mask_updates(Mask *k, const NodeList *list)
{
    jot_Ctx *ctx = k->o->ctx;
    const MaskNode *all = k->sample[k->base];
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < ctx->undo.n; i++) {
        NodeId id = jot_undo_now(ctx, i), now = id ? all[jot_node(ctx, id)->at].now : 0;
        jot_Var state = {ctx, ctx->undo.v[i].slot, ctx->undo.v[i].gen};

        ok = !id || now == jot_node(ctx, id)->input[0] || jot_assign(state, jot_var_of(ctx, now));
        jot_graph_number(ctx, list); /* it has walked */
    }
    return ok;
}

/* The outputs masked, in o->out, and what is assigned. */
static bool
mask_graph(Mask *k)
{
    Open *o = k->o;
    jot_Ctx *ctx = o->ctx;
    MaskNode *all = k->sample[k->base];
    NodeList list = {0, 0, NULL};
    bool ok = jot_mask_order(o, &list);
    uint32_t i, walk = ctx->walk;

    if (ok && list.n != k->n[k->base])
        jot_mask_not(k, "the builder makes another graph for the same extents");
    ok = ok && k->good[k->base];
    for (i = 0; ok && i < list.n; i++) {
        if (ctx->walk != walk) /* what made the node before has walked */
            jot_graph_number(ctx, &list);
        walk = ctx->walk;
        all[i].now = mask_filled(k, list.v[i], &all[i], mask_node(k, list.v[i], all, &all[i]));
        ok = all[i].now && jot_var_of(ctx, all[i].now).slot;
    }
    jot_graph_number(ctx, &list);
    for (i = 0; ok && i < (uint32_t)o->nout; i++) {
        MaskNode *n;

        k->out[i] = jot_node(ctx, jot_node_of(o->out[i], "compile_open", "out"))->at;
        n = &all[k->out[i]];
        o->out[i] = jot_var_of(ctx, n->now);
        ok = o->out[i].slot != 0;
    }
    ok = ok && mask_updates(k, &list) && mask_outputs(k) && mask_ends(k, &list, all);
    jot_list_free(ctx, &list);
    return ok;
}

/* ---- the function ---------------------------------------------------------------------------- */

static bool
mask_vars(Mask *k)
{
    Open *o = k->o;
    OpenMasked *m = k->m;
    int i;

    m->nin = o->nin;
    m->nout = o->nout;
    m->in = jot_arena_array(&m->arena, MaskedVar, (size_t)o->nin + 1);
    m->out = jot_arena_array(&m->arena, MaskedVar, (size_t)o->nout + 1);
    if (!m->in || !m->out)
        return jot_fail_memory(o->ctx, "compile_open");
    for (i = 0; i < o->nin; i++)
        memcpy(m->in[i].size, k->sample[k->base][k->n[k->base] + (uint32_t)i].size,
               sizeof m->in[i].size);
    for (i = 0; i < o->nin; i++)
        m->in[i].clear = k->clear[i];
    for (i = 0; i < o->nout; i++)
        memcpy(m->out[i].size, k->sample[k->base][k->out[i]].size, sizeof m->out[i].size);
    return true;
}

static bool
mask_function(Mask *k, jot_Var *in, int nin)
{
    Open *o = k->o;
    FuncFor of = {.op = o->op, .dialect = o->dialect, .ends = &k->ends};
    jot_Vars ins = {nin, in}, outs = {o->nout, o->out};

    k->m->f = jot_func_make(o->ctx, ins, outs, &of);
    if (k->m->f && k->m->f->plan)
        k->m->f->plan->ends = NULL, k->m->f->plan->ended = k->used;
    return k->m->f != NULL;
}

static bool
mask_make(Mask *k)
{
    Open *o = k->o;
    jot_Ctx *ctx = o->ctx;
    OpenMasked *m = k->m;
    jot_Var in[MASKED_VARS + 2], sizes, reals;
    int i, n = o->nin;
    bool ok;

    if (!jot_open_graph(o, o->space.at[k->base], o->op))
        return false;
    sizes = jot_array(ctx, JOT_I64, JOT_SHAPE(MASKED_SIZES), NULL);
    reals = jot_array(ctx, JOT_F32, JOT_SHAPE(m->nreals + 1), NULL);
    k->sizes = jot_node_of(sizes, "compile_open", "sizes");
    k->reals = jot_node_of(reals, "compile_open", "reals");
    if (!k->sizes || !k->reals)
        return false;
    ok = mask_graph(k);
    if (!ok && !ctx->status && k->good[k->base])
        jot_mask_not(k, "its graph cannot be made");
    if (!k->good[k->base])
        return !ctx->status;
    for (i = 0; ok && i < n; i++)
        in[i] = o->in[i];
    in[n++] = sizes;
    if (m->nreals)
        in[n++] = reals;
    return ok && mask_vars(k) && mask_function(k, in, n);
}

static bool
mask_steps(OpenMasked *m)
{
    const Plan *plan = m->f->plan;
    uint32_t i;

    m->cost = jot_open_costs(&m->arena, plan);
    m->count = jot_arena_new(&m->arena, (size_t)plan->steps.n + 1, sizeof *m->count);
    for (i = 0; m->cost && m->count && i < plan->steps.n; i++) {
        memcpy(m->count[i][0], plan->steps.v[i].best.count, sizeof m->count[i][0]);
        memcpy(m->count[i][1], plan->steps.v[i].quick.count, sizeof m->count[i][1]);
    }
    m->steps = jot_arena_array(&m->arena, int64_t, (size_t)plan->launches.n + 1);
    for (i = 0; m->steps && i < plan->launches.n; i++)
        m->steps[i] = plan->launches.v[i].steps;
    return m->cost && m->count && m->steps;
}

static bool
mask_memory(Open *o, OpenMasked *m)
{
    int i;
    bool ok;

    for (i = 0; i < m->nin; i++) {
        m->in[i].shape = m->f->input[i].shape;
        if (!(m->in[i].buf = jot_buffer_new(m->ctx, m->in[i].shape.nbytes)))
            break;
        memset(m->in[i].buf->p, 0, m->in[i].shape.nbytes);
    }
    ok = i == m->nin;
    for (i = 0; i < m->nout; i++) {
        m->out[i].shape = m->f->output[i].shape;
        o->dtype[i] = m->out[i].shape.dtype;
    }
    ok = ok && mask_steps(m) && (m->sizes = jot_buffer_new(m->ctx, MASKED_SIZES * sizeof(int64_t)))
      && (m->reals = jot_buffer_new(m->ctx, ((size_t)m->nreals + 1) * sizeof(float)));
    return ok || jot_fail_memory(m->ctx, "compile_open");
}

static bool
mask_all(Mask *k)
{
    Open *o = k->o;
    jot_RandomState random = jot_random_state(o->ctx);
    bool ok;

    if (!jot_mask_learn(k))
        return false;
    if (jot_open_level(&o->space, k->good) == OPEN_LEVELS)
        return true;
    jot_push(o->ctx);
    ok = mask_make(k);
    if (!k->m->f) {
        jot_undo_apply(o->ctx);
        jot_pending_trim(o->ctx);
    }
    jot_pop(o->ctx);
    jot_set_random_state(o->ctx, random);
    return ok && (!k->m->f || mask_memory(o, k->m));
}

/* Does it serve more than the largest, or is there no other? */
static bool
mask_serves(Open *o, uint8_t level)
{
    const OpenSpace *s = &o->space;
    size_t nbytes = (size_t)s->n * sizeof *s->most;
    Text t = {NULL, o->why, 0, sizeof o->why};

    if (memcmp(s->low[level], s->most, nbytes) || !memcmp(s->least, s->most, nbytes))
        return true;
    jot_text_f(&t, "the plan of the largest serves no other");
    return false;
}

JOT_FN bool
jot_open_mask(Open *o, OpenMasked **masked)
{
    Text t = {NULL, o->why, 0, sizeof o->why};
    Mask *k = jot_mem_new(&o->ctx->mem, 1, sizeof *k);
    OpenMasked *m = jot_mem_new(&o->ctx->mem, 1, sizeof *m);
    uint8_t level = OPEN_LEVELS;
    bool ok = k && m;

    *masked = NULL;
    if (m)
        m->ctx = o->ctx;
    if (ok) {
        k->o = o;
        k->m = m;
        k->arena.mem = m->arena.mem = &o->ctx->mem;
        k->base = o->space.grid - 1;
        jot_text_f(&t, "some have other maps");
        ok = mask_all(k);
        level = jot_open_level(&o->space, k->good);
        jot_arena_free(&k->arena);
    } else {
        jot_fail_memory(o->ctx, "compile_open");
    }
    if (k)
        jot_mem_free(&o->ctx->mem, k, sizeof *k);
    if (ok && m->f && level < OPEN_LEVELS && mask_serves(o, level)) {
        memcpy(o->low, o->space.low[level], sizeof o->low);
        memset(o->now, 0, sizeof o->now); /* no extents: the first call writes all sizes */
        o->why[0] = 0;
        *masked = m;
    } else if (m) {
        jot_masked_end(m);
    }
    return ok && !o->ctx->status;
}
