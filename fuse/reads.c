/* fuse/reads.c - what each group reads and stores, and along which axes of its space.
 *
 *     group over (r, j)   stores y[r, j]      reads x[r, j], s[r, -], t[r, mixed]
 *                         reduces to m[r]
 *
 * The walk of a placing (fuse/place.c) once more, from what a group stores down to what it loads,
 * with maps composed on the way. Of a map only one thing matters: which dimensions of the variable
 * run along an axis of the group's space from end to end. What does not is `mixed`.
 *
 * requires  a placing   gives  uses of each group, weight and arithmetic of its nest
 * Read before: fuse/nest.h. After: fuse/nest.c. */
#include "fuse/nest.h"
#include "target/thresholds.h"

typedef struct { uint32_t pos, next; NestMap map; bool computed; } ReadsStep;

typedef struct {
    Nests *j;
    NestGroup *g;
    Vec(ReadsStep) step;  /* visited with a map; those computed are walked on */
    uint32_t *first;      /* by position: its steps in this group, if seen[] is the stamp */
} Reads;

static NestMap
reads_all(uint8_t axis) /* NEST_MIXED, NEST_INDEX */
{
    NestMap m;

    memset(m.axis, axis, sizeof m.axis);
    return m;
}

static NestMap
reads_identity(const Node *n)
{
    NestMap m;
    int d;

    memset(m.axis, NEST_NONE, sizeof m.axis);
    for (d = 0; d < n->rank; d++)
        m.axis[d] = n->ext[d] == 1 ? NEST_NONE : (uint8_t)d;
    return m;
}

/* Is the index an axis of r, divided so that it runs over all `ext` elements? */
static bool
reads_part(const Fuser *f, const Node *r, Ix index, int64_t ext, const NestMap *outer)
{
    IxPool *ix = &f->ctx->ix;
    int d;

    for (d = 0; d < r->rank; d++)
        if (outer->axis[d] < JOT_MAX_RANK && ext > 1 && r->ext[d] > ext && r->ext[d] % ext == 0
            && index == jot_ix_div(ix, jot_ix_axis(ix, d), jot_ix_const(ix, r->ext[d] / ext), NULL))
            return true;
    return false;
}

/* Is the index two axes of r, the digits of a number that runs over all `ext` elements? The high
 * one, in whose steps the dimension lies in blocks. */
static uint8_t
reads_blocks(const Fuser *f, const Node *r, Ix index, int64_t ext, const NestMap *outer)
{
    const IxTerm *t;
    IxTerm tmp;
    int64_t c;
    uint32_t n, k;
    int axis[2];

    t = jot_ix_linear(&f->ctx->ix, index, &c, &n, &tmp);
    if (c || n != 2 || !jot_ix_is_axis(&f->ctx->ix, t[0].atom, &axis[0])
        || !jot_ix_is_axis(&f->ctx->ix, t[1].atom, &axis[1]))
        return NEST_MIXED;
    for (k = 0; k < 2; k++)
        if (t[!k].k == 1 && t[k].k == r->ext[axis[!k]] && t[k].k * r->ext[axis[k]] == ext
            && outer->axis[axis[k]] < JOT_MAX_RANK)
            return (uint8_t)(NEST_BLOCKS | outer->axis[axis[k]]);
    return NEST_MIXED;
}

/* Where the input of r is read if r's own elements lie at `outer`. */
static NestMap
reads_through(const Fuser *f, const Node *r, const Node *x, const NestMap *outer)
{
    NestMap m;
    int d, axis;

    memset(m.axis, NEST_NONE, sizeof m.axis);
    for (d = 0; d < r->nindex; d++) {
        if (x->ext[d] == 1)
            continue;
        m.axis[d] = jot_ix_is_axis(&f->ctx->ix, r->index[d], &axis) && axis < r->rank
                 && r->ext[axis] == x->ext[d] ? outer->axis[axis]
                  : reads_part(f, r, r->index[d], x->ext[d], outer) ? NEST_PART
                  : reads_blocks(f, r, r->index[d], x->ext[d], outer);
    }
    return m;
}

static bool
reads_own(const Reads *r, uint32_t pos)
{
    Fuser *f = r->j->f;

    return f->vert[pos] != FUSE_NO_VERT && jot_fuse_find(f, f->vert[pos]) == r->g->root;
}

/* Does the group compute i for its node `reader`? As place_input decides. */
static bool
reads_computes(const Reads *r, const Node *reader, uint32_t i)
{
    const Fuser *f = r->j->f;
    uint32_t b = f->bits[i], kind = f->node[i]->kind;

    if (b & FN_LEAF)
        return false;
    return (kind == NODE_REINDEX && !(b & FN_KEEP)) || (b & FN_MOVED)
        || (reads_own(r, i) && kind != NODE_REDUCE && reader->kind != NODE_REINDEX)
        || (b & FN_CLONE);
}

/* The group needs i at `map`. */
static void
reads_visit(Reads *r, const Node *reader, uint32_t i, NestMap map)
{
    Nests *j = r->j;
    uint32_t k, ways = 0;
    ReadsStep *s;

    j->f->visits++;
    if (j->f->bits[i] & FN_FREE)
        return;
    if (j->seen[i] != j->stamp) {
        j->seen[i] = j->stamp;
        r->first[i] = NEST_OUT;
    }
    for (k = r->first[i]; k != NEST_OUT; k = r->step.v[k].next, ways++)
        if (!memcmp(&r->step.v[k].map, &map, sizeof map))
            return;
    if (ways > READS_WAYS)
        return;
    if (ways == READS_WAYS)
        map = reads_all(NEST_MIXED);
    k = r->step.n;
    s = jot_vec_push(&j->f->ctx->mem, r->step);
    if (r->step.n == k)
        return;
    s->pos = i;
    s->map = map;
    s->next = r->first[i];
    s->computed = reads_computes(r, reader, i);
    r->first[i] = k;
}

/* What node i, computed at `map`, needs. */
static void
reads_inputs(Reads *r, uint32_t i, NestMap map)
{
    const Fuser *f = r->j->f;
    const Node *n = f->node[i];
    uint32_t k, first = f->in0[i];

    for (k = first; k < f->in0[i + 1]; k++) {
        const Node *x = f->node[f->in[k]];
        bool index = n->kind == NODE_REINDEX || n->kind == NODE_REDUCE;

        reads_visit(r, n, f->in[k],
                    index && k > first          ? reads_all(NEST_INDEX)
                    : n->kind == NODE_REINDEX ? reads_through(f, n, x, &map)
                    : n->kind == NODE_REDUCE    ? reads_identity(x)
                                                : map);
    }
}

static double
reads_flops(const Fuser *f, uint32_t i)
{
    const Node *n = f->node[i];
    double each = n->kind == NODE_MAP || n->kind == NODE_RANDOM
                      || (n->kind == NODE_EW && (jot_ew_info[n->op].flags & EW_DEAR))
                ? AGAIN_DEAR : 1;

    if (n->kind == NODE_REINDEX)
        return 0;
    return each * (double)(n->kind == NODE_REDUCE ? f->node[f->in[f->in0[i]]]->nelem : n->nelem);
}

static void
reads_use(Nests *j, uint32_t pos, const NestMap *map)
{
    NestUse *u = jot_vec_push(&j->f->ctx->mem, j->uses);

    u->pos = pos;
    u->map = *map;
}

/* A stored member: where its elements lie in the space. False: not along its axes. */
static bool
reads_own_map(Reads *r, uint32_t pos)
{
    const Fuser *f = r->j->f;
    const Node *n = f->node[pos];
    NestMap m = reads_identity(n);
    bool plain = true;
    int64_t at;
    int d, axis, dim[JOT_MAX_RANK];

    if (jot_fuse_is_merged(f, pos, dim)) {
        const Node *x = f->node[f->in[f->in0[pos]]];

        for (d = 0; d < n->rank; d++)
            m.axis[d] = n->ext[d] == 1 ? NEST_NONE : NEST_MIXED;
        for (d = 0; d < x->rank; d++)
            if (x->ext[d] > 1 && x->ext[d] == n->ext[dim[d]])
                m.axis[dim[d]] = (uint8_t)d;
    }
    for (d = 0; n->kind == NODE_REDUCE && d < n->rank; d++) {
        const Node *y = f->node[f->in[f->in0[pos]]];

        if (n->ext[d] == 1 && jot_ix_is_const(&f->ctx->ix, n->index[d], &at) && !at)
            continue;
        plain &= jot_ix_is_axis(&f->ctx->ix, n->index[d], &axis) && y->ext[axis] == n->ext[d];
        m.axis[d] = !plain ? NEST_MIXED : n->ext[d] == 1 ? NEST_NONE : (uint8_t)axis;
    }
    reads_use(r->j, pos, &m);
    return plain;
}

/* Do two axes of a map's space stand in the index, and not as the digits of a number? */
static bool
reads_overlap(const IxPool *ix, const Node *map, Ix index)
{
    const IxTerm *t;
    IxTerm tmp;
    uint64_t axes = jot_ix_axes(ix, index);
    int64_t c;
    uint32_t n;
    int high, low;

    if (!(axes & (axes - 1)))
        return false;
    t = jot_ix_linear(ix, index, &c, &n, &tmp);
    if (n != 2 || !jot_ix_is_axis(ix, t[0].atom, &high) || !jot_ix_is_axis(ix, t[1].atom, &low)
        || t[0].k < 1 || t[1].k < 1)
        return true;
    return t[0].k < t[1].k * map->ext[low] && t[1].k < t[0].k * map->ext[high];
}

/* A sum of products of which one is read at a sum of axes: it has a schedule of its own
 * (ccode/stencil), which a nest with sums of its results does not. */
static bool
reads_windows(const Fuser *f, uint32_t pos)
{
    const Node *n = f->node[pos];
    uint32_t product = n->ninputs ? f->in[f->in0[pos]] : pos, k;
    int d;

    if (n->kind != NODE_REDUCE || n->op != JOT_ADD || f->bits[pos] & FN_CONTRACT
        || f->node[product]->kind != NODE_EW || f->node[product]->op != EW_MUL)
        return false;
    for (k = f->in0[product]; k < f->in0[product + 1]; k++) {
        const Node *map = f->node[f->in[k]];

        for (d = 0; map->kind == NODE_REINDEX && d < map->nindex; d++) {
            if (reads_overlap(&f->ctx->ix, map, map->index[d]))
                return true;
        }
    }
    return false;
}

/* Stored members of the group; its nest knows whether a contraction is among them. */
static void
reads_members(Reads *r, Nest *nest)
{
    Fuser *f = r->j->f;
    uint32_t v;

    r->g->own = r->j->uses.n;
    for (v = f->head[r->g->root]; v != FUSE_NO_VERT; v = f->next[v]) {
        uint32_t pos = f->verts.v[v].pos;

        if (f->verts.v[v].flags & (FV_VIRTUAL | FV_CODE) || !(f->bits[pos] & FN_STORED))
            continue;
        nest->rigid |= !reads_own_map(r, pos);
        nest->nbytes += (double)jot_node_nbytes(f->node[pos]);
        nest->sums += f->node[pos]->kind == NODE_REDUCE;
        nest->windows |= reads_windows(f, pos);
        nest->rigid |= f->node[pos]->nelem == 0;
    }
    r->g->nown = r->j->uses.n - r->g->own;
}

/* Walk from the stored members; each position computed counts once. */
static void
reads_walk(Reads *r, Nest *nest)
{
    Fuser *f = r->j->f;
    uint32_t k;
    int dim[JOT_MAX_RANK];

    r->step.n = 0;
    r->j->stamp++;
    for (k = 0; k < r->g->nown; k++) {
        uint32_t pos = r->j->uses.v[r->g->own + k].pos;

        nest->weight += jot_fuse_weight(f->node[pos]) + 1u;
        nest->flops += reads_flops(f, pos);
        r->j->seen[pos] = r->j->stamp;
        r->first[pos] = NEST_OUT;
        if (jot_fuse_is_merged(f, pos, dim))
            reads_visit(r, f->node[pos], f->in[f->in0[pos]],
                        reads_identity(f->node[f->in[f->in0[pos]]]));
        else
            reads_inputs(r, pos, reads_identity(f->node[pos]));
    }
    for (k = 0; k < r->step.n; k++) {
        ReadsStep s = r->step.v[k];

        if (!s.computed)
            continue;
        if (s.next == NEST_OUT) {
            nest->weight += jot_fuse_weight(f->node[s.pos]);
            nest->flops += reads_flops(f, s.pos);
        }
        reads_inputs(r, s.pos, s.map);
    }
}

JOT_FN double
jot_nest_nbytes(const Nests *j, const NestGroup *g, uint32_t pos)
{
    const Node *n = j->f->node[pos];
    double all = (double)jot_node_nbytes(n);
    double points = (double)g->space->nelem * (double)jot_dtype_nbytes((jot_DType)n->dtype);

    return all < points ? all : points;
}

static void
reads_collect(Reads *r, Nest *nest)
{
    Nests *j = r->j;
    uint32_t k, s;

    r->g->use = j->uses.n;
    for (k = 0; k < r->step.n; k++) {
        if (r->step.v[k].computed || r->step.v[k].next != NEST_OUT)
            continue;
        nest->nbytes += jot_nest_nbytes(j, r->g, r->step.v[k].pos);
        for (s = r->first[r->step.v[k].pos]; s != NEST_OUT; s = r->step.v[s].next)
            reads_use(j, r->step.v[k].pos, &r->step.v[s].map);
    }
    r->g->nuse = j->uses.n - r->g->use;
}

/* A group is a nest of its own: its axes are the dimensions of its space. */
static void
reads_alone(Reads *r, Nest *nest)
{
    Fuser *f = r->j->f;
    NestGroup *g = r->g;
    int d;

    g->space = &f->maps.v[f->verts.v[g->root].space];
    memset(g->axis, NEST_NONE, sizeof g->axis);
    nest->runs |= f->gflags[g->root] & (FV_RUNS | FV_RUNS_BACK | FV_WHOLE);
    nest->rigid |= (f->gflags[g->root] & (FV_CODE | FV_SCATTER)) != 0;
    for (d = 0; d < g->space->rank; d++) {
        if (g->space->ext[d] == 1)
            continue;
        if (nest->naxes == NEST_AXES) {
            nest->rigid = true;
            return;
        }
        nest->ext[nest->naxes] = g->space->ext[d];
        g->axis[d] = (uint8_t)nest->naxes++;
    }
    nest->shared = ((uint32_t)1 << nest->naxes) - 1;
}

static uint32_t
reads_mask(const NestGroup *g, uint64_t dims)
{
    uint32_t on = 0;
    int d;

    for (d = 0; d < g->space->rank; d++)
        if ((dims >> d & 1) && g->axis[d] < NEST_AXES)
            on |= (uint32_t)1 << g->axis[d];
    return on;
}

/* Axes of a contraction's output: all, those that one factor alone moves along, the outermost
 * one's. */
static void
reads_spread(Reads *r, Nest *nest)
{
    const Fuser *f = r->j->f;
    uint64_t dims = 0, factor[2];
    uint32_t k;
    int d;

    for (k = 0; k < r->g->nown; k++) {
        const NestUse *u = &r->j->uses.v[r->g->own + k];

        if (!(f->bits[u->pos] & FN_CONTRACT))
            continue;
        for (d = f->node[u->pos]->rank; d-- > 0;)
            if (u->map.axis[d] < JOT_MAX_RANK) {
                dims |= (uint64_t)1 << u->map.axis[d];
                nest->rows = reads_mask(r->g, (uint64_t)1 << u->map.axis[d]);
            }
        jot_fuse_factors(f, u->pos, factor);
        for (d = 0; d < 2; d++)
            nest->side[d] |= reads_mask(r->g, dims & factor[d] & ~factor[!d]);
    }
    nest->spread = reads_mask(r->g, dims);
    if (f->ncontract[r->g->root] && !nest->spread)
        nest->rigid = true;
}

JOT_FN bool
jot_nest_reads(Nests *j)
{
    Fuser *f = j->f;
    Reads r;
    uint32_t k;

    memset(&r, 0, sizeof r);
    r.j = j;
    r.first = jot_arena_array(&f->arena, uint32_t, (size_t)f->n + 1);
    if (!r.first)
        return false;
    for (k = 0; k < j->n; k++) {
        Nest *nest = &j->nest[k];

        r.g = &j->group[k];
        reads_alone(&r, nest);
        reads_members(&r, nest);
        reads_walk(&r, nest);
        reads_collect(&r, nest);
        reads_spread(&r, nest);
    }
    jot_vec_free(&f->ctx->mem, r.step);
    return !f->ctx->mem.failed;
}
