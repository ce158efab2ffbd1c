/* plan/open/follow.c - what of a graph follows its extents: the graphs of all samples are to be the
 * same but for extents, constants and numbers of maps, which are fitted (plan/open/fit.c).
 *
 *     builder(1000), builder(999), ...   extents 1000, 999, ...    a size, n
 *                                        1/1000, 1/999, ...        a constant, 1/n
 *                                        reads x[i + 1]            1 beyond the end of x
 *
 *   requires  a builder that makes the same graph each time      keeps  the generator, assignments
 * Read before: plan/open/masked.h, plan/open/fit.c, plan/open/map.c. After: plan/open/mask.c. */
#include "plan/open/masked.h"
#include "ops/user/code.h"

JOT_FN void
jot_mask_not(Mask *k, const char *why)
{
    Text t = {NULL, k->o->why, 0, sizeof k->o->why};

    jot_text_f(&t, "%s", why);
    k->good[k->base] = false;
    k->o->whole = true;
}

/* ---- the graphs of the samples -------------------------------------------------------------- */

/* A leaf is the number of the input, an array of the builder's what is in it, others what they
 * are. */
static uint64_t
follow_leaf(const Open *o, NodeId id, uint64_t born)
{
    const Node *n = jot_node(o->ctx, id);
    int i;

    for (i = 0; i < o->nin; i++)
        if (jot_node_of(o->in[i], "compile_open", "in") == id)
            return (uint64_t)i + 1;
    if (n->born > born && n->data && n->data->p)
        return jot_hash(2, n->data->p, n->data->nbytes);
    return n->born << 32;
}

/* How far a REINDEX reads beyond what it reads. */
static void
follow_reach(jot_Ctx *ctx, const Node *n, MaskNode *to)
{
    const Node *x = jot_node(ctx, n->input[0]);
    Space space = {n->rank, n->ext, NULL};
    int64_t lo, hi;
    int d;

    to->from = x->at + 1;
    for (d = 0; d < x->rank; d++) {
        to->reach[d] = MASK_FAR;
        if (jot_ix_range(&ctx->ix, n->index[d], &space, &lo, &hi) && hi - x->ext[d] < MASK_FAR - 1)
            to->reach[d] = hi < x->ext[d] ? 0 : hi - x->ext[d] + 1;
    }
}

static void
follow_shape(const Node *n, MaskNode *to)
{
    to->rank = n->rank;
    memcpy(to->ext, n->ext, (size_t)n->rank * sizeof *n->ext);
}

/* Numbers of its maps; where there are too many the maps are to be the same. */
static uint64_t
follow_map(Mask *k, const Node *n, uint64_t hash, MaskNode *to)
{
    MapNumbers m;
    uint32_t i;

    hash = jot_mask_map(k->o->ctx, n, hash, &m);
    if (m.n > MASK_NUMBERS || n->kind == NODE_STACK) {
        for (i = 0; i < n->nindex; i++)
            hash = jot_hash_u64(hash, n->index[i]);
        for (i = 0; i < n->ncond; i++)
            hash = jot_hash_u64(hash, n->cond[i]);
        return hash;
    }
    to->number = jot_arena_array(&k->arena, int64_t, m.n + 1);
    to->follows = jot_arena_array(&k->arena, uint8_t, m.n + 1);
    if (to->number && to->follows) {
        to->nnumbers = m.n;
        memcpy(to->number, m.v, m.n * sizeof *m.v);
    }
    return hash;
}

static void
follow_note(Mask *k, NodeId id, uint64_t born, MaskNode *to)
{
    const Open *o = k->o;
    jot_Ctx *ctx = o->ctx;
    const Node *n = jot_node(ctx, id);
    uint64_t hash = jot_hash_u64(n->kind, n->op | n->dtype << 8 | n->flags << 16 | n->rank << 24);
    int i;

    for (i = 0; i < n->ninputs && !n->data; i++)
        hash = jot_hash_u64(hash, jot_node(ctx, n->input[i])->at);
    if (!n->data && n->nindex + n->ncond)
        hash = follow_map(k, n, hash, to);
    to->hash = jot_hash_u64(hash, n->data || n->kind == NODE_LEAF ? follow_leaf(o, id, born)
                                                                  : n->stream);
    if (n->code && !n->data) { /* of a MAP: its text, and what it is given */
        hash = jot_hash_u64(hash, n->code->hash);
        hash = jot_hash(hash, n->code->scalar, (size_t)n->code->scalars * sizeof(jot_Scalar));
    }
    to->hash = jot_hash_u64(to->hash, hash);
    to->leaf = n->data || n->kind == NODE_LEAF;
    to->value = n->value;
    follow_shape(n, to);
    if (n->kind == NODE_REINDEX && !n->data)
        follow_reach(ctx, n, to);
}

JOT_FN bool
jot_mask_order(const Open *o, NodeList *list)
{
    jot_Ctx *ctx = o->ctx;
    NodeList root = {0, 0, NULL};
    bool ok = jot_vec_reserve(&ctx->mem, root, (uint32_t)o->nout + ctx->undo.n + 1);
    uint32_t i;

    for (i = 0; ok && i < (uint32_t)o->nout; i++)
        root.v[root.n++] = jot_node_of(o->out[i], "compile_open", "out");
    for (i = 0; ok && i < ctx->undo.n; i++)
        if ((root.v[root.n] = jot_undo_now(ctx, i)) != 0)
            root.n++;
    ok = ok ? jot_graph_order(ctx, root.v, root.n, true, list)
            : jot_fail_memory(ctx, "compile_open");
    jot_list_free(ctx, &root);
    return ok;
}

/* What the builder returns and assigns, by numbers of the list. */
static uint64_t
follow_roots(const Open *o)
{
    jot_Ctx *ctx = o->ctx;
    uint64_t hash = ctx->undo.n;
    uint32_t i;

    for (i = 0; i < (uint32_t)o->nout; i++)
        hash = jot_hash_u64(hash, jot_node(ctx, jot_node_of(o->out[i], "compile_open", "out"))->at);
    for (i = 0; i < ctx->undo.n; i++)
        if (jot_undo_now(ctx, i))
            hash = jot_hash_u64(jot_hash_u64(hash, ctx->undo.v[i].slot),
                                jot_node(ctx, jot_undo_now(ctx, i))->at);
    return hash;
}

/* What it does may follow the extents: its text, its trips, its bodies. */
static bool
follow_code(const Node *n)
{
    return !n->data && (n->kind == NODE_CODE || n->kind == NODE_PICK || n->kind == NODE_CUSTOM);
}

static bool
follow_sample(Mask *k, int i)
{
    Open *o = k->o;
    jot_RandomState random = jot_random_state(o->ctx);
    NodeList list = {0, 0, NULL};
    uint64_t born = o->ctx->born;
    uint32_t j;
    bool ok;

    jot_push(o->ctx);
    ok = jot_open_graph(o, o->space.at[i], o->op) && jot_mask_order(o, &list);
    k->sample[i] = ok ? jot_arena_array(&k->arena, MaskNode, list.n + (size_t)o->nin + 1) : NULL;
    k->n[i] = list.n;
    k->roots[i] = ok ? follow_roots(o) : 0;
    for (j = 0; k->sample[i] && j < list.n; j++)
        follow_note(k, list.v[j], born, &k->sample[i][j]);
    for (j = 0; k->sample[i] && j < (uint32_t)o->nin; j++)
        follow_shape(jot_node(o->ctx, jot_node_of(o->in[j], "compile_open", "in")),
                     &k->sample[i][list.n + j]);
    for (j = 0; j < list.n && k->sample[i]; j++)
        k->codes |= follow_code(jot_node(o->ctx, list.v[j]));
    jot_list_free(o->ctx, &list);
    jot_undo_apply(o->ctx);
    jot_pending_trim(o->ctx);
    jot_pop(o->ctx);
    jot_set_random_state(o->ctx, random);
    return k->sample[i] || jot_fail_memory(o->ctx, "compile_open");
}

/* The same but for extents and values? What the builder has of its own for each size is none of
 * these at others, either. */
static bool
follow_alike(Mask *k, int i)
{
    const MaskNode *a = k->sample[k->base], *b = k->sample[i];
    uint32_t n = k->n[k->base], j;

    for (j = 0; k->n[i] == n && j < n && a[j].hash == b[j].hash && a[j].nnumbers == b[j].nnumbers;
         j++)
        ;
    if (k->n[i] == n && j < n && a[j].leaf && b[j].leaf)
        jot_mask_not(k, "some have other parameters, or arrays of their own");
    return k->n[i] == n && j == n && k->roots[i] == k->roots[k->base];
}

/* ---- what follows the extents ---------------------------------------------------------------- */

JOT_FN uint8_t
jot_mask_size(OpenMasked *m, const OpenFit *fit)
{
    int i;

    for (i = 0; i < m->nsizes && memcmp(&m->size[i], fit, sizeof *fit); i++)
        ;
    if (i == MASKED_SIZES)
        return 0;
    m->size[i] = *fit;
    m->nsizes += i == m->nsizes;
    return (uint8_t)(i + 1);
}

static uint8_t
follow_size(Mask *k, const int64_t *v)
{
    const OpenSpace *s = &k->o->space;
    OpenFit fit;
    uint8_t size;
    int i;

    jot_open_fit(s, v, &fit);
    for (i = 0; i < s->samples; i++)
        k->good[i] = k->good[i] && jot_open_value(s, &fit, s->at[i]) == v[i];
    if (jot_open_constant(s, &fit))
        return 0;
    size = jot_mask_size(k->m, &fit);
    if (!size)
        jot_mask_not(k, "more extents follow than there is room for");
    return size;
}

static uint8_t
follow_real(Mask *k, uint32_t j)
{
    const OpenSpace *s = &k->o->space;
    OpenMasked *m = k->m;
    jot_Scalar v[OPEN_SAMPLES];
    OpenLiteral how;
    int i, same = 0;

    for (i = 0; i < s->samples; i++) {
        v[i] = k->sample[k->good[i] ? i : k->base][j].value;
        same += v[i].u == k->sample[k->base][j].value.u;
    }
    if (same == s->samples)
        return 0;
    if (m->nreals == MASKED_SIZES || !jot_open_literal(s, v, k->good, &how)) {
        jot_mask_not(k, "a constant follows none of the forms that are known");
        return 0;
    }
    for (i = 0; i < m->nreals && memcmp(&m->real[i], &how, sizeof how); i++)
        ;
    m->real[i] = how;
    m->nreals += i == m->nreals;
    return (uint8_t)(i + 1);
}

/* Does it read as far beyond the end along dimension d at all sizes? */
static bool
follow_reaches(Mask *k, uint32_t j, int d)
{
    const OpenSpace *s = &k->o->space;
    int64_t reach = k->sample[k->base][j].reach[d];
    bool good[OPEN_SAMPLES];
    int i;

    for (i = 0; i < s->samples; i++)
        good[i] = k->good[i] && k->sample[i][j].reach[d] == reach;
    if (reach == MASK_FAR || jot_open_level(s, good) == OPEN_LEVELS)
        return false;
    memcpy(k->good, good, sizeof good);
    return true;
}

/* A REINDEX that reads beyond an end finds there what it has for outside. */
static void
follow_read(Mask *k, uint32_t j)
{
    MaskNode *base = k->sample[k->base], *x = &base[base[j].from - 1];
    int d;

    for (d = 0; d < x->rank; d++) {
        if (!x->size[d])
            continue;
        if (!follow_reaches(k, j, d)) {
            base[j].inside[d] = base[j].mapped = true;
            continue;
        }
        if (!base[j].reach[d])
            continue;
        if (x->read && x->outside.u != base[j].value.u)
            jot_mask_not(k, "what is read beyond an end is not one value");
        x->read = true;
        x->outside = base[j].value;
        x->until[d] = base[j].reach[d] > x->until[d] ? base[j].reach[d] : x->until[d];
    }
}

/* Numbers of node j's maps. */
static void
follow_numbers(Mask *k, uint32_t j)
{
    MaskNode *base = &k->sample[k->base][j];
    int64_t v[OPEN_SAMPLES];
    uint32_t n;
    int i;

    for (n = 0; n < base->nnumbers && k->good[k->base]; n++) {
        for (i = 0; i < k->o->space.samples; i++)
            v[i] = k->good[i] ? k->sample[i][j].number[n] : base->number[n];
        base->follows[n] = follow_size(k, v);
        base->mapped |= base->follows[n] != 0;
    }
}

static void
follow_all(Mask *k)
{
    const OpenSpace *s = &k->o->space;
    MaskNode *base = k->sample[k->base];
    int64_t v[OPEN_SAMPLES];
    uint32_t j;
    int i, d;

    for (i = 0; i < s->samples; i++)
        k->good[i] = true;
    for (i = 0; i < s->samples; i++)
        k->good[i] = follow_alike(k, i) && k->good[i];
    for (j = 0; j < k->n[k->base] + (uint32_t)k->o->nin && k->good[k->base]; j++) {
        for (d = 0; d < base[j].rank; d++) {
            for (i = 0; i < s->samples; i++)
                v[i] = k->good[i] ? k->sample[i][j].ext[d] : base[j].ext[d];
            base[j].size[d] = follow_size(k, v);
        }
        base[j].real = follow_real(k, j);
        follow_numbers(k, j);
    }
    for (j = 0; j < k->n[k->base] && k->good[k->base]; j++)
        if (base[j].from)
            follow_read(k, j);
}

JOT_FN bool
jot_mask_learn(Mask *k)
{
    Open *o = k->o;
    int i;

    if (o->nin > MASKED_VARS || o->nout > MASKED_VARS) {
        jot_mask_not(k, "it has more than 64 inputs or outputs");
        return true;
    }
    for (i = 0; i < o->space.samples && !k->codes; i++)
        if (!follow_sample(k, i))
            return false;
    if (k->codes)
        jot_mask_not(k, "some have user code, branches or loops");
    else
        follow_all(k);
    return true;
}
