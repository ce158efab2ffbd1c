/* ccode/device/walk_grid.c - the walk on a device: launches, and loops whose steps are shared out
 * among items and work-groups.
 *
 *     %2: n:1g c:1g | h:1t w:1t       for (n_c = team; n_c < hi; n_c += teams) {       grid
 *     !0: n:1g c:1g                       acc = 0;
 *                                         for (h_w = lane; h_w < 3136; h_w += 256)     team
 *                                             acc = acc + x[n_c*3136 + h_w];
 *                                         t = of all items: acc                        C_TEAM
 *                                         if (lane == 0) y[n_c] = t;                   C_FIRST
 *                                     }
 *
 * A run of loops of one kind, one inside of the other, is counted by one variable, the last axis
 * fastest: what lies contiguous is read by neighbours, whatever axes it has. Each nest is a launch
 * of its own, numbered by `phase`: a nest sees everything that those before it wrote. Outside of a
 * team's loops the items of a work-group do the same, but for stores, which the first of them
 * makes.
 *
 *   requires  the tree of a verified schedule with `group` set
 *   keeps     what ccode/lower/walk.c keeps
 *
 * Read before: ccode/lower/walk.c. After: ccode/device/emit_device.c. */
#include "ccode/device/device.h"

/* ---- launches ---- */

static bool
has_kind(const Tree *t, uint32_t n, int kind, int depth)
{
    const TreeNode *node = &t->nodes.v[n];
    if (node->op == TREE_LOOP && node->loop.kind == kind && !node->quiet)
        return true;
    for (uint32_t kid = node->kids; kid && depth < 60; kid = t->nodes.v[kid].next)
        if (has_kind(t, kid, kind, depth + 1))
            return true;
    return false;
}

static bool
is_spread(const Tree *t, uint32_t n)
{
    const TreeNode *node = &t->nodes.v[n];
    return node->op == TREE_CLEAR || (node->op == TREE_LOOP && node->loop.kind == LOOP_GRID);
}

/* The node behind those that make one launch with `first`: a nest over a grid is one, others of a
 * phase stand together. */
static uint32_t
launch_end(const Tree *t, uint32_t first)
{
    uint32_t n = t->nodes.v[first].next;
    if (is_spread(t, first))
        return n;
    while (n && !is_spread(t, n))
        n = t->nodes.v[n].next;
    return n;
}

static void
walk_launch(Walk *w, uint32_t first, uint32_t end, bool only)
{
    Code *code = w->code;
    EmitLaunch *launch;
    if (code->launches >= EMIT_LAUNCHES) {
        jot_code_refuse(code, "the schedule has too many nests for a device");
        return;
    }
    launch = &code->launch[code->launches++];
    w->team = false;
    for (uint32_t n = first; n != end; n = w->t->nodes.v[n].next)
        w->team = w->team || has_kind(w->t, n, LOOP_TEAM, 0);
    launch->kind = w->team ? LAUNCH_TEAMS : is_spread(w->t, first) ? LAUNCH_ITEMS : LAUNCH_ONE;
    launch->steps = is_spread(w->t, first) ? 0 : 1;
    if (w->t->nodes.v[first].op == TREE_CLEAR)
        launch->steps = w->k->bufs.v[w->t->nodes.v[first].stage].layout->nelem;
    if (!only)
        jot_walk_in_phase(w, code->launches - 1);
    for (uint32_t n = first; n != end && code->ok; n = w->t->nodes.v[n].next)
        jot_walk_node(w, n);
    if (!only)
        jot_code_pop(&w->b);
    w->team = false;
}

static void
walk_launches_of(Walk *w, uint32_t n, bool only)
{
    uint32_t end;
    for (n = w->t->nodes.v[n].kids; n && w->code->ok; n = end) {
        end = launch_end(w->t, n);
        walk_launch(w, n, end, only && !end);
    }
}

/* The whole tree, nest after nest. */
JOT_FN void
jot_walk_launches(Walk *w)
{
    uint32_t n = w->t->nodes.v[1].kids;
    bool phases = n && w->t->nodes.v[n].op == TREE_PHASE;
    if (!phases)
        walk_launches_of(w, 1, n && !launch_end(w->t, n));
    for (; phases && n && w->code->ok; n = w->t->nodes.v[n].next)
        walk_launches_of(w, n, false);
}

/* ---- loops ---- */

typedef struct {
    uint32_t node[STAGE_LOOPS];
    int64_t below[STAGE_LOOPS]; /* steps of those inside */
    int n;
    int64_t steps;              /* in all */
} Run;

/* The loops that are counted together: each the only thing in the one before. */
static bool
find_run(Walk *w, uint32_t n, Run *run)
{
    const TreeNode *nodes = w->t->nodes.v;
    int kind = nodes[n].loop.kind;
    run->n = 0;
    run->steps = 1;
    while (run->n < STAGE_LOOPS) {
        run->node[run->n++] = n;
        n = nodes[n].kids;
        if (!n || nodes[n].next || nodes[n].op != TREE_LOOP || nodes[n].quiet ||
            nodes[n].loop.kind != kind)
            break;
    }
    for (int i = run->n; i-- > 0;) {
        const SLoop *l = &nodes[run->node[i]].loop;
        run->below[i] = run->steps;
        if (!jot_mul_ok(run->steps, w->at.left[l->axis] / l->step, &run->steps))
            return false;
    }
    return true;
}

static const char *
run_name(Walk *w, const Run *run)
{
    char name[40];
    Text text = {0};
    text.s = name;
    text.cap = sizeof name;
    for (int i = 0; i < run->n && text.n < 24; i++)
        jot_text_f(&text, "%s%s", i ? "_" : "",
                   jot_axis_name(w->s, w->t->nodes.v[run->node[i]].loop.axis));
    return jot_arena_copy((Arena *)&w->k->arena, name, text.n);
}

/* Each axis takes its part of the one variable. */
static void
bind_run(Walk *w, const Run *run, int var)
{
    IxPool *ix = w->k->ix;
    for (int i = 0; i < run->n; i++) {
        const SLoop *l = &w->t->nodes.v[run->node[i]].loop;
        Ix at = jot_ix_axis(ix, var);
        if (run->below[i] != 1)
            at = jot_ix_div(ix, at, jot_ix_const(ix, run->below[i]), &w->index.space);
        if (i > 0)
            at = jot_ix_mod(ix, at, jot_ix_const(ix, w->at.left[l->axis] / l->step),
                            &w->index.space);
        w->at.pos[l->axis] =
            jot_ix_add(ix, w->at.pos[l->axis], jot_ix_scale(ix, at, l->step));
        w->at.left[l->axis] = w->at.block[l->axis] = l->step;
    }
    jot_walk_derive(w);
}

/* As many steps as items: each has one, and what it keeps in registers is its own. */
static void
walk_items(Walk *w, const Run *run)
{
    Binding old = w->at;
    int vars = w->vars, var = jot_walk_var(w, run->steps);
    bool in_team = w->in_team;
    if (var < 0)
        return;
    w->index.var[var] = jot_code_add(&w->b, jot_code_pure(C_ITEM, JOT_I64, 0), NULL, 0, NULL);
    w->in_team = true;
    bind_run(w, run, var);
    jot_walk_kids(w, run->node[run->n - 1]);
    w->at = old;
    w->in_team = in_team;
    w->vars = vars;
}

/* Steps of a grid's loop that are not whole: shared out behind those that are.
 *     n:4g | n:1v     for (n = item; n < hi; n += items)  4 at a time
 *                     for (n = item; n < 3; n += items)   one of those that are left */
static void
walk_shared_rest(Walk *w, uint32_t n)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    int64_t left = w->at.left[l->axis], rest = left % l->step;
    Binding old = w->at;
    uint32_t block;
    int var;
    if (!rest || w->t->nodes.v[n].loop.kind != LOOP_GRID || w->team)
        return;
    var = jot_walk_var(w, rest);
    block = jot_walk_for(w, rest, true, jot_axis_name(w->s, l->axis), var);
    if (!block)
        return;
    w->code->inst.v[block].aux = SHARE_REST;
    w->at.pos[l->axis] =
        jot_ix_add(w->k->ix, w->at.pos[l->axis],
                   jot_ix_add(w->k->ix, jot_ix_axis(w->k->ix, var),
                              jot_ix_const(w->k->ix, left - rest)));
    w->at.left[l->axis] = w->at.block[l->axis] = 1;
    jot_walk_derive(w);
    jot_walk_kids(w, n);
    w->at = old;
    jot_code_pop(&w->b);
    w->vars--;
}

/* Is what the first item alone did the last thing here that not every item does? */
static bool
first_alone(const Walk *w)
{
    const Code *code = w->code;
    for (int depth = w->b.depth; depth >= 0; depth--) {
        bool alone = false, all = false;
        for (uint32_t n = code->inst.v[w->b.stack[depth]].kids; n; n = code->inst.v[n].next) {
            const Inst *in = &code->inst.v[n];
            uint32_t cond = in->op == C_IF && in->narg ? code->args.v[in->arg + in->narg - 1u] : 0;
            if (cond && code->inst.v[cond].op == C_FIRST)
                alone = true, all = false;
            else if (in->op == C_BARRIER || in->op == C_TEAM)
                alone = false, all = true;
        }
        if (alone || all)
            return alone;
    }
    return false;
}

static void
walk_shared(Walk *w, uint32_t n)
{
    bool grid = w->t->nodes.v[n].loop.kind == LOOP_GRID, in_team = w->in_team;
    bool wait = w->ahead.wait; /* what is made in a block is not known behind it */
    Binding old = w->at;
    EmitLaunch *launch = &w->code->launch[w->code->launches - 1];
    const SLoop *first = &w->t->nodes.v[n].loop;
    uint32_t block;
    Run run;
    int vars = w->vars, var, blocks = 0;
    if (!find_run(w, n, &run)) {
        jot_code_refuse(w->code, "a grid has too many steps");
        return;
    }
    if (grid) {
        launch->steps = run.steps;
        if (w->at.left[first->axis] == jot_axis_ext(w->s, first->axis))
            jot_walk_end(w, n, run.below[0], &launch->end);
    }
    if (!run.steps)
        return;
    if (!grid && run.steps == w->s->group) {
        walk_items(w, &run);
        return;
    }
    if (!grid && first_alone(w)) /* PoCL 3.1 loses a store of one before a loop of all of them */
        jot_walk_barrier(w);
    var = jot_walk_var(w, run.steps);
    block = jot_walk_for(w, run.steps, true, run_name(w, &run), var);
    if (!block)
        return;
    w->code->inst.v[block].aux = !grid ? SHARE_TEAM : w->team ? SHARE_TEAMS : SHARE_ITEMS;
    w->in_team = in_team || !grid;
    w->ahead.wait = wait && grid;
    bind_run(w, &run, var);
    /* not around barriers: PoCL 3.1 loses its way */
    for (int i = launch->end.size != 0; grid && !w->team && i < run.n; i++)
        blocks += jot_walk_fills(w, run.node[i], true);
    jot_walk_kids(w, run.node[run.n - 1]);
    w->at = old;
    w->in_team = in_team;
    w->ahead.wait = wait;
    for (; blocks >= 0; blocks--)
        jot_code_pop(&w->b);
    w->vars = vars;
    if (run.n == 1)
        walk_shared_rest(w, n);
}

/* ---- the memory of work-groups ---- */

static bool
fills_group(const Walk *w, uint32_t n, int depth)
{
    const TreeNode *node = &w->t->nodes.v[n];
    const Place *p = node->op == TREE_VALUE ? &w->s->stages.v[node->stage].res : NULL;
    if (p)
        return p->kind == PLACE_MEM && w->k->bufs.v[p->buf].role == BUF_GROUP;
    for (uint32_t kid = node->kids; kid && depth < 60; kid = w->t->nodes.v[kid].next)
        if (fills_group(w, kid, depth + 1))
            return true;
    return false;
}

/* It does nothing but fill: loops around such values. */
static bool
only_fills(const Walk *w, uint32_t n)
{
    uint32_t kid = w->t->nodes.v[n].kids;
    if (!kid)
        return w->t->nodes.v[n].op == TREE_VALUE && fills_group(w, n, 0);
    for (; kid; kid = w->t->nodes.v[kid].next)
        if (!only_fills(w, kid))
            return false;
    return true;
}

/* What is filled here and read behind a barrier is filled again at the grid's next step, behind
 * another one. */
JOT_FN void
jot_walk_team_kids(Walk *w, uint32_t n)
{
    bool grid = w->t->nodes.v[n].op == TREE_LOOP && w->t->nodes.v[n].loop.kind == LOOP_GRID;
    bool filled = false, read = false;
    for (uint32_t kid = w->t->nodes.v[n].kids; kid && w->code->ok; kid = w->t->nodes.v[kid].next) {
        if (filled && !only_fills(w, kid)) {
            jot_walk_barrier(w);
            filled = false;
        }
        jot_walk_node(w, kid);
        filled = filled || fills_group(w, kid, 0);
        read = read || only_fills(w, kid);
    }
    if ((filled && !only_fills(w, n)) || (grid && read))
        jot_walk_barrier(w);
}

static void
ahead_kids(Walk *w, uint32_t n, Ix at, bool fill)
{
    Binding old = w->at;
    int axis = w->t->nodes.v[n].loop.axis;
    w->at.pos[axis] = jot_ix_add(w->k->ix, old.pos[axis], at);
    w->at.left[axis] = w->at.block[axis] = 1;
    jot_walk_derive(w);
    for (uint32_t kid = w->t->nodes.v[n].kids; kid && w->code->ok; kid = w->t->nodes.v[kid].next)
        if (only_fills(w, kid) == fill)
            jot_walk_node(w, kid);
    w->at = old;
}

/* So many steps after the present one; behind the last one it is that one: it is read, and nobody
 * uses it. */
static int
next_step(Walk *w, int var, int64_t ahead, int64_t steps)
{
    IxPool *ix = w->k->ix;
    uint32_t code = jot_walk_ix(&w->index, jot_ix_add(ix, jot_ix_axis(ix, var),
                                                      jot_ix_const(ix, ahead)));
    Inst in = jot_code_pure(C_CLAMP, JOT_I64, 0);
    int next = jot_walk_var(w, steps);
    in.c.i = steps;
    if (next >= 0)
        w->index.var[next] = jot_code_add(&w->b, in, &code, 1, NULL);
    return next;
}

/* What a step reads is brought; what was handed over since the last such is a group, for who waits
 * for all but some. */
static void
ahead_fill(Walk *w, uint32_t n, Ix at)
{
    ahead_kids(w, n, at, true);
    if (w->copied && w->s->buffers > 2)
        jot_walk_barrier_of(w, BARRIER_GROUP | BARRIER_ONLY, 0);
}

/* What was made of the next step is written, from number `from` on, and the loop ends. */
static void
ahead_write(Walk *w, uint32_t from)
{
    int lanes = w->lanes, vector_axis = w->vector_axis;
    w->in_team = true; /* each item writes what it read */
    for (uint32_t i = from; i < w->later.n; i++) {
        w->lanes = w->later.v[i].lanes;
        w->vector_axis = w->later.v[i].vector_axis;
        jot_walk_write(w, w->later.v[i].buf, w->later.v[i].index, w->later.v[i].value, EW_NONE);
    }
    w->lanes = lanes;
    w->vector_axis = vector_axis;
    w->in_team = false;
    w->later.n = from;
}

/*     fill buffer 0 with step 0     of B buffers, the first B - 1
 *     for k
 *         barrier                   buffer k%B is full, and nobody reads that of k - 1 any more
 *         t = what step k + B - 1 reads
 *         work on buffer k%B
 *         buffer (k + B - 1)%B = t
 *
 * Copies past the registers are handed over in groups, one a step: all but the last B - 2 of them
 * have come at the barrier. Four warps' products are on their way, too: with more than two buffers
 * those of step k - 1 until those of step k are handed over, so buffer k - 1 is read for a step
 * more, and what is filled meanwhile is that of k - 2:
 *
 *     for k
 *         barrier
 *         begin to work on buffer k%B
 *         buffer (k + B - 2)%B = what step k + B - 2 reads
 *         wait until the work on buffer (k - 1)%B is done */
static void
walk_ahead(Walk *w, uint32_t n)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    IxPool *ix = w->k->ix;
    int64_t steps = w->at.left[l->axis];
    int var, next;
    bool warps = w->s->warps == 4, late = warps && w->s->buffers > 2;
    int64_t ahead = w->s->buffers > 2 ? w->s->buffers - 1 - late : 1;
    uint32_t block, from = w->later.n, products = w->issued.n;
    if (steps < ahead) {
        jot_code_refuse(w->code, "a loop ahead has fewer steps than buffers");
        return;
    }
    for (int64_t i = 0; i < ahead; i++)
        ahead_fill(w, n, jot_ix_const(ix, i));
    var = jot_walk_var(w, steps);
    block = jot_walk_for(w, steps, false, jot_axis_name(w->s, l->axis), var);
    if (!block)
        return;
    w->ahead.left = ahead - 1;
    jot_walk_barrier(w);
    w->ahead.left = 0;
    next = next_step(w, var, ahead, steps);
    if (next < 0)
        return;
    w->issues = warps;
    if (late)
        ahead_kids(w, n, jot_ix_axis(ix, var), false);
    w->ahead.on = w->ahead.wait = true;
    w->ahead.axis = l->axis;
    w->ahead.next = jot_ix_add(ix, w->at.pos[l->axis],
                               jot_ix_add(ix, jot_ix_axis(ix, var), jot_ix_const(ix, ahead)));
    ahead_fill(w, n, jot_ix_axis(ix, next));
    w->ahead.on = w->ahead.wait = false;
    if (!late)
        ahead_kids(w, n, jot_ix_axis(ix, var), false);
    w->issues = false;
    ahead_write(w, from);
    if (w->issued.n > products)
        jot_walk_barrier_of(w, BARRIER_PRODUCTS | BARRIER_ONLY, late);
    jot_code_pop(&w->b);
    w->vars -= 2;
    for (uint32_t i = products; i < w->issued.n; i++)
        jot_walk_products(w, w->issued.v[i]);
    w->issued.n = products;
    if (w->copied)
        jot_walk_barrier_of(w, BARRIER_COPIES | BARRIER_ONLY, 0);
}

JOT_FN void
jot_walk_shared(Walk *w, uint32_t n)
{
    (w->t->nodes.v[n].loop.kind == LOOP_AHEAD ? walk_ahead : walk_shared)(w, n);
}
