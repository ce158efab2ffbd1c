/* ccode/lower/walk.c - the walk: a lowered tree becomes code records.
 *
 * Each loop binds its axis: position += step * variable (serial), + constant (unrolled copies), +
 * the lane axis (vector). An index expression is substituted under the positions and simplified by
 * their ranges; what stays of div, mod, loads and conditions becomes records, shared and hoisted by
 * code.c.
 *
 *   requires  a tree of a verified schedule
 *   keeps     the order of effects and of summation
 *   breaks    nothing: the code is new
 *
 * Here: loops and conditions on them. Leaves are in ccode/lower/leaf.c, values in
 * ccode/lower/value.c, what all of them use in ccode/lower/parts.c.
 *
 * Read before: ccode/lower/code.h, ccode/lower/lower.c. After: ccode/lower/leaf.c. */
#include "ccode/lower/walk.h"

/* ---- positions ---- */

JOT_FN void
jot_walk_kids(Walk *w, uint32_t n)
{
    if (w->team && !w->in_team) {
        jot_walk_team_kids(w, n);
        return;
    }
    bool asked = w->s->group != 0;
    for (uint32_t kid = w->t->nodes.v[n].kids; kid && w->code->ok; kid = w->t->nodes.v[kid].next) {
        const TreeNode *node = &w->t->nodes.v[kid];
        if (!asked && node->op == TREE_LOOP && node->loop.kind == LOOP_SERIAL && !node->quiet) {
            asked = true;
            jot_walk_ask_stores(w, kid);
        }
        jot_walk_node(w, kid);
    }
}

JOT_FN void
jot_walk_bind(Walk *w, uint32_t n, Ix add, int64_t left, int64_t copy)
{
    int axis = w->t->nodes.v[n].loop.axis;
    bool outer = w->at.left[axis] == jot_axis_ext(w->s, axis);
    if (!jot_vec_reserve(w->code->mem, w->around, 1))
        return;
    w->around.v[w->around.n++] = w->at; /* not on the stack: loops nest */
    w->at.pos[axis] = jot_ix_add(w->k->ix, w->at.pos[axis], add);
    w->at.left[axis] = left;
    w->at.block[axis] = w->t->nodes.v[n].loop.step;
    w->at.copy[axis] += copy;
    jot_walk_derive(w);
    outer = jot_walk_fills(w, n, outer);
    jot_walk_kids(w, n);
    if (outer)
        jot_code_pop(&w->b);
    w->at = w->around.v[--w->around.n];
}

/* ---- loops ---- */

/* steps counted by a variable */
JOT_FN void
jot_walk_counted(Walk *w, uint32_t n, int64_t steps, bool rest, bool wide)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    IxPool *ix = w->k->ix;
    int var = jot_walk_var(w, steps), axis = l->axis;
    uint32_t block = jot_walk_for(w, steps, wide, jot_axis_name(w->s, axis), var);
    Clamp old;
    Ix pos;
    if (!block)
        return;
    w->code->inst.v[block].exact = rest;
    w->edge[n].block = block;
    w->edge[n].steps = steps;
    w->edge[n].rest = rest;
    pos = jot_ix_scale(ix, jot_ix_axis(ix, var), l->step);
    w->edge[n].state = EDGE_COUNTED;
    if (l->kind == LOOP_LANES)
        w->lane = pos;
    old = w->clamp[axis];
    if (l->kind == LOOP_CLAMP && w->at.left[axis] % l->step) {
        w->clamp[axis].on = true;
        w->clamp[axis].ext = w->at.left[axis];
        w->clamp[axis].base = w->at.pos[axis];
        w->clamp[axis].pos = pos;
    }
    jot_walk_bind(w, n, pos, l->step, 0);
    w->clamp[axis] = old;
    jot_code_pop(&w->b);
    w->vars--;
}

static void
walk_rest(Walk *w, uint32_t n, int64_t full, int64_t rest, bool wide)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    Ix add = jot_ix_const(w->k->ix, full * l->step);
    w->edge[n].state = EDGE_KNOWN;
    w->edge[n].first = full == 0;
    w->edge[n].lastly = true;
    if (wide)
        jot_code_tail(&w->b, full);
    jot_walk_bind(w, n, add, rest, 0);
    if (wide)
        jot_code_pop(&w->b);
}

/* ---- parallel loops around nothing but each other count as one ---- */

/* The parallel loop may be split among callers when it is all there is, besides what a call sets up
 * for itself. */
static bool
one_kid(const Walk *w, uint32_t n)
{
    int kids = 0;
    for (uint32_t kid = w->t->nodes.v[n].kids; kid; kid = w->t->nodes.v[kid].next)
        kids += w->t->nodes.v[kid].op != TREE_CLEAR ||
                w->k->bufs.v[w->t->nodes.v[kid].stage].role != BUF_SCRATCH;
    return kids == 1;
}

static bool
is_parallel(const Walk *w, uint32_t n)
{
    const TreeNode *node = &w->t->nodes.v[n];
    return node->op == TREE_LOOP && node->loop.kind == LOOP_PARALLEL && !node->quiet;
}

/* Loops from n inwards that count as one: their numbers in loops, all steps in *steps. Those with a
 * rest do not: it is another text. */
static int
collapse(const Walk *w, uint32_t n, uint32_t *loops, int64_t *steps)
{
    int count = 0;
    *steps = 1;
    for (; count < STAGE_LOOPS && n && is_parallel(w, n); n = w->t->nodes.v[n].kids) {
        const SLoop *l = &w->t->nodes.v[n].loop;
        int64_t left = w->at.left[l->axis];
        for (int i = 0; i < count; i++)
            if (w->t->nodes.v[loops[i]].loop.axis == l->axis)
                left = w->t->nodes.v[loops[i]].loop.step;
        if (left % l->step || !jot_mul_ok(*steps, left / l->step, steps))
            break;
        loops[count++] = n;
        if (!one_kid(w, n))
            break;
    }
    return count;
}

/* One loop over all of them; the position of each is a digit of its variable. */
static JOT_DISTINCT void
walk_collapsed(Walk *w, const uint32_t *loops, int count, int64_t steps)
{
    IxPool *ix = w->k->ix;
    Binding old = w->at;
    const SLoop *first;
    int var = jot_walk_var(w, steps), blocks = 0;
    uint32_t block = jot_walk_for(w, steps, true,
                                  jot_axis_name(w->s, w->t->nodes.v[loops[0]].loop.axis), var);
    Ix rest = jot_ix_axis(ix, var);
    if (!block)
        return;
    w->code->steps[w->phase] = steps;
    first = &w->t->nodes.v[loops[0]].loop;
    if (old.left[first->axis] == jot_axis_ext(w->s, first->axis))
        jot_walk_end(w, loops[0], steps / (old.left[first->axis] / first->step),
                     &w->code->end[w->phase]);
    w->may_split = false;
    for (int i = count - 1; i >= 0; i--) {
        const SLoop *l = &w->t->nodes.v[loops[i]].loop;
        int64_t own = old.left[l->axis] / l->step;
        Ix n, at = rest;
        for (int j = 0; j < i; j++)
            if (w->t->nodes.v[loops[j]].loop.axis == l->axis)
                own = w->t->nodes.v[loops[j]].loop.step / l->step;
        n = jot_ix_const(ix, own);
        if (i > 0) {
            at = jot_ix_mod(ix, rest, n, &w->index.space);
            rest = jot_ix_div(ix, rest, n, &w->index.space);
        }
        w->at.pos[l->axis] =
            jot_ix_add(ix, w->at.pos[l->axis], jot_ix_scale(ix, at, l->step));
        if (l->step < w->at.left[l->axis])
            w->at.left[l->axis] = w->at.block[l->axis] = l->step;
        w->edge[loops[i]].state = EDGE_FUSED;
    }
    jot_walk_derive(w);
    for (int i = 0; i < count; i++)
        blocks += jot_walk_fills(w, loops[i], true);
    jot_walk_kids(w, loops[count - 1]);
    for (; blocks >= 0; blocks--)
        jot_code_pop(&w->b);
    w->at = old;
    w->vars--;
}

static void
walk_serial(Walk *w, uint32_t n)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    int64_t left = w->at.left[l->axis], full = left / l->step, rest = left % l->step;
    bool wide = l->kind == LOOP_PARALLEL && w->may_split;
    uint32_t loops[STAGE_LOOPS];
    int64_t steps;
    int count = wide ? collapse(w, n, loops, &steps) : 0;
    if (count > 1 && steps > 0) {
        walk_collapsed(w, loops, count, steps);
        return;
    }
    if ((l->kind == LOOP_SERIAL || wide) && jot_walk_cut(w, n, wide))
        return;
    if ((l->kind == LOOP_CLAMP || l->kind == LOOP_PAD) && left > 0 && rest) {
        jot_walk_counted(w, n, full + (rest > 0), false, wide);
        return;
    }
    w->may_split = w->may_split && !wide; /* a parallel loop inside is a plain one */
    if (wide) {
        w->code->steps[w->phase] = full + (rest > 0);
        if (left == jot_axis_ext(w->s, l->axis))
            jot_walk_end(w, n, 1, &w->code->end[w->phase]);
    }
    if (full == 1 && !wide) {
        w->edge[n].state = EDGE_KNOWN;
        w->edge[n].first = true;
        w->edge[n].lastly = rest == 0;
        jot_walk_bind(w, n, jot_ix_const(w->k->ix, 0), l->step, 0);
    } else if (full > 0)
        jot_walk_counted(w, n, full, rest > 0, wide);
    if (rest > 0)
        walk_rest(w, n, full, rest, wide);
}

/* A copy beyond the end of a clamped block: it reads the last element and does not store. */
static JOT_DISTINCT void
clamped_copy(Walk *w, uint32_t n, int64_t offset)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    const Clamp *c = &w->clamp[l->axis];
    IxPool *ix = w->k->ix;
    Ix place = jot_ix_add(ix, c->pos, jot_ix_const(ix, offset));
    uint32_t code = jot_walk_ix(&w->index, place);
    Inst in = jot_code_pure(C_CLAMP, JOT_I64, 0);
    Ix old = w->at.pos[l->axis];
    int var = jot_walk_var(w, c->ext);
    if (var < 0 || w->nguards >= WALK_GUARDS)
        return;
    in.c.i = c->ext;
    w->index.var[var] = jot_code_add(&w->b, in, &code, 1, NULL);
    w->guards[w->nguards++] = jot_walk_ix(
        &w->index, jot_ix_lt(ix, place, jot_ix_const(ix, c->ext), &w->index.space));
    w->at.pos[l->axis] = c->base;
    jot_walk_bind(w, n, jot_ix_axis(ix, var), l->step, offset);
    w->at.pos[l->axis] = old;
    w->nguards--;
    w->vars--;
}

static void
walk_unrolled(Walk *w, uint32_t n)
{
    const SLoop *l = &w->t->nodes.v[n].loop;
    const Clamp *c = &w->clamp[l->axis];
    Copies old = w->copies;
    int64_t left = w->at.left[l->axis];
    int64_t sure = c->on ? c->ext % left : left;
    w->copies.axis = l->axis;
    w->copies.from = w->at.pos[l->axis];
    w->copies.copies = l->step == 1 && !c->on ? left : 0;
    for (int64_t i = 0; i < left && w->code->ok; i += l->step)
        if (c->on && l->kind == LOOP_UNROLL && i >= sure)
            clamped_copy(w, n, i);
        else {
            w->copies.copy = i;
            jot_walk_bind(w, n, jot_ix_const(w->k->ix, i), left - i < l->step ? left - i : l->step,
                          i);
        }
    w->copies = old;
}

/* A device's lanes over two axes, the second fastest: nt:1v nr:1v. */
static JOT_DISTINCT bool
vector_pair(Walk *w, uint32_t n)
{
    IxPool *ix = w->k->ix;
    uint32_t inner = w->t->nodes.v[n].kids;
    const SLoop *l[2];
    Binding old = w->at;
    Ix lane = jot_ix_axis(ix, WALK_LANE), steps;
    if (!w->s->group || !inner || w->t->nodes.v[inner].next ||
        w->t->nodes.v[inner].op != TREE_LOOP || w->t->nodes.v[inner].loop.kind != LOOP_VECTOR)
        return false;
    l[0] = &w->t->nodes.v[n].loop;
    l[1] = &w->t->nodes.v[inner].loop;
    if (w->at.left[l[0]->axis] * w->at.left[l[1]->axis] != w->s->lanes)
        return false;
    w->lanes = w->s->lanes;
    w->index.ext[WALK_LANE] = w->lanes;
    steps = jot_ix_const(ix, w->at.left[l[1]->axis]);
    w->at.pos[l[0]->axis] =
        jot_ix_add(ix, w->at.pos[l[0]->axis], jot_ix_div(ix, lane, steps, &w->index.space));
    w->at.pos[l[1]->axis] =
        jot_ix_add(ix, w->at.pos[l[1]->axis], jot_ix_mod(ix, lane, steps, &w->index.space));
    for (int i = 0; i < 2; i++)
        w->at.left[l[i]->axis] = w->at.block[l[i]->axis] = 1;
    jot_walk_derive(w);
    jot_walk_kids(w, inner);
    w->at = old;
    w->lanes = 0;
    return true;
}

static void
walk_vector(Walk *w, uint32_t n)
{
    int axis = w->t->nodes.v[n].loop.axis, old = w->lanes, old_axis = w->vector_axis;
    int64_t left = w->at.left[axis];
    if (left > w->s->lanes) {
        jot_code_refuse(w->code, "a vector loop is wider than the lanes");
        return;
    }
    if (left <= 0)
        return;
    /* what is left of a grid goes one by one */
    if (w->s->lanes == 1 || (w->s->group && left == 1)) {
        jot_walk_bind(w, n, jot_ix_const(w->k->ix, 0), 1, 0);
        return;
    }
    if (w->lanes) {
        jot_code_refuse(w->code, "a vector loop stands inside another");
        return;
    }
    if (vector_pair(w, n))
        return;
    w->lanes = (int)left;
    w->vector_axis = axis;
    w->index.ext[WALK_LANE] = left;
    jot_walk_bind(w, n, jot_ix_axis(w->k->ix, WALK_LANE), 1, 0);
    w->lanes = old;
    w->vector_axis = old_axis;
}

static void
walk_lanes(Walk *w, uint32_t n)
{
    int64_t left = w->at.left[w->t->nodes.v[n].loop.axis];
    Ix old = w->lane, zero = jot_ix_const(w->k->ix, 0);
    jot_walk_ask(w, n, left);
    w->lane = zero;
    w->edge[n].state = EDGE_KNOWN;
    w->edge[n].first = w->edge[n].lastly = true;
    if (left > 1)
        jot_walk_counted(w, n, left, false, false);
    else if (left == 1)
        jot_walk_bind(w, n, zero, 1, 0);
    w->lane = old;
}

static void
walk_loop(Walk *w, uint32_t n)
{
    const TreeNode *node = &w->t->nodes.v[n];
    if (node->quiet) {
        jot_walk_bind(w, n, jot_ix_const(w->k->ix, 0), node->loop.step, 0);
        return;
    }
    switch (node->loop.kind) {
    case LOOP_UNROLL: case LOOP_PRIVATE: walk_unrolled(w, n); break;
    case LOOP_VECTOR: walk_vector(w, n); break;
    case LOOP_LANES: walk_lanes(w, n); break;
    case LOOP_GRID: case LOOP_TEAM: case LOOP_AHEAD: jot_walk_shared(w, n); break;
    case LOOP_MATRIX:
        if (!jot_walk_matrix(w, n))
            walk_unrolled(w, n);
        break;
    default: walk_serial(w, n); break;
    }
}

/* ---- conditions on loops ---- */

/* Whether a loop stands at its first (last) step: 0 no, 1 yes, 2: `*cond` says. */
static int
at_edge(Walk *w, uint32_t n, bool first, uint32_t *cond)
{
    const Edge *e = &w->edge[n];
    int64_t one = 1;
    uint32_t diff;
    if (e->state == EDGE_FUSED) {
        jot_code_refuse(w->code, "the first or last step of parallel loops is asked for");
        return 0;
    }
    if (e->state == EDGE_KNOWN)
        return first ? e->first : e->lastly;
    if (!first && e->rest)
        return 0;
    if (e->steps == 1)
        return 1;
    diff = jot_code_lin(&w->b, first ? 0 : 1 - e->steps, &e->block, &one, 1);
    *cond = jot_code_add(&w->b, jot_code_pure(C_EQ0, JOT_I64, 0), &diff, 1, NULL);
    return 2;
}

static JOT_DISTINCT void
walk_if(Walk *w, uint32_t n)
{
    const TreeNode *node = &w->t->nodes.v[n];
    bool first = node->op == TREE_IF_FIRST || node->op == TREE_IF_LATER;
    bool negated = node->op == TREE_IF_LATER || node->op == TREE_IF_BEFORE;
    uint32_t cond[STAGE_LOOPS];
    int nconds = 0;
    bool known = true;
    for (uint32_t i = 0; i < node->nifs; i++) {
        int edge = at_edge(w, w->t->refs.v[node->ifs + i], first, &cond[nconds]);
        known = known && edge != 0;
        nconds += edge == 2;
    }
    if (!known || nconds == 0) {
        if (known != negated)
            jot_walk_kids(w, n);
        return;
    }
    if (negated) {
        for (; nconds > 1; nconds--)
            cond[nconds - 2] = jot_code_add(&w->b, jot_code_pure(C_IAND, JOT_I64, 0),
                                            &cond[nconds - 2], 2, NULL);
        cond[0] = jot_code_add(&w->b, jot_code_pure(C_INOT, JOT_I64, 0), cond, 1, NULL);
    }
    jot_code_under(&w->b, cond, nconds);
    jot_walk_kids(w, n);
    jot_code_pop(&w->b);
}

/* ---- the whole ---- */

JOT_FN void
jot_walk_in_phase(Walk *w, int phase)
{
    int64_t one = 1;
    uint32_t cond = jot_code_add(&w->b, jot_code_pure(C_PHASE, JOT_I64, 0), NULL, 0, NULL);
    cond = jot_code_lin(&w->b, -(int64_t)phase, &cond, &one, 1);
    cond = jot_code_add(&w->b, jot_code_pure(C_EQ0, JOT_I64, 0), &cond, 1, NULL);
    jot_code_under(&w->b, &cond, 1);
}

static void
walk_phase(Walk *w, uint32_t n)
{
    w->phase = (int)w->t->nodes.v[n].stage;
    w->code->phases = w->phase + 1;
    w->may_split = one_kid(w, n);
    jot_walk_in_phase(w, w->phase);
    jot_walk_kids(w, n);
    jot_code_pop(&w->b);
}

JOT_FN void
jot_walk_node(Walk *w, uint32_t n)
{
    switch (w->t->nodes.v[n].op) {
    case TREE_PHASE: walk_phase(w, n); break;
    case TREE_LOOP: walk_loop(w, n); break;
    case TREE_IF_FIRST: case TREE_IF_LATER: case TREE_IF_LAST: case TREE_IF_BEFORE:
        walk_if(w, n);
        break;
    case TREE_CLEAR: jot_walk_clear(w, w->t->nodes.v[n].stage); break;
    default: jot_walk_leaf(w, n); break;
    }
}

static void
start(Walk *w)
{
    IxPool *ix = w->k->ix;
    w->index.b = &w->b;
    w->index.k = w->k;
    w->index.space.n = WALK_VARS;
    w->index.space.ext = w->index.ext;
    for (uint32_t a = 0; a < SCHED_AXES; a++) {
        w->at.pos[a] = jot_ix_const(ix, 0);
        w->at.left[a] = jot_axis_ext(w->s, (int)a);
        w->at.block[a] = w->at.left[a];
    }
    for (uint32_t b = 1; b < w->k->bufs.n; b++)
        w->index.written[b % 256] |= w->k->bufs.v[b].may_alias || jot_buf_written(w->s, b);
    for (int i = 0; i < WALK_VARS; i++)
        w->index.ext[i] = i < SCHED_AXES ? w->at.left[i] : 1;
    w->may_split = one_kid(w, 1);
}

JOT_FN bool
jot_walk(Code *code, const Kernel *k, const Sched *s, const Tree *t, Text *why)
{
    Mem *mem = k->mem;
    Walk *w = jot_mem_new(mem, 1, sizeof *w);
    bool ok = w != NULL;
    memset(code, 0, sizeof *code);
    code->mem = mem;
    if (!ok)
        return false;
    ok = jot_code_open(code, &w->b, k, s, why);
    w->code = code;
    w->k = k;
    w->s = s;
    w->t = t;
    w->edge = jot_mem_new(mem, t->nodes.n, sizeof *w->edge);
    w->memo = jot_mem_new(mem, k->values.n, sizeof *w->memo);
    w->stage_of = jot_mem_new(mem, k->values.n, sizeof *w->stage_of);
    if (ok && w->edge && w->memo && w->stage_of) {
        for (uint32_t i = 0; i < k->values.n; i++)
            w->stage_of[i] = jot_stage_of(s, i);
        start(w);
        jot_walk_filled(w);
        if (s->group)
            jot_walk_launches(w);
        else
            jot_walk_kids(w, 1);
    }
    jot_mem_free(mem, w->edge, t->nodes.n * sizeof *w->edge);
    jot_mem_free(mem, w->memo, k->values.n * sizeof *w->memo);
    jot_mem_free(mem, w->stage_of, k->values.n * sizeof *w->stage_of);
    jot_vec_free(mem, w->around);
    jot_vec_free(mem, w->kept);
    jot_vec_free(mem, w->later);
    jot_vec_free(mem, w->issued);
    jot_mem_free(mem, w, sizeof *w);
    return code->ok && !mem->failed;
}
