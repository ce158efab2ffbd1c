/* ccode/lower/lower.c - kernel + schedule -> tree of loops.
 *
 * Each stage shares with the path of the one before it the longest common prefix of loops, at most
 * as deep as the places where its producers are kept. A reduction gets its other parts around the
 * loop that follows its place:
 *
 *     %s: r | j                                               loop r
 *     !0: r j                                                    declare s, init s
 *                                                                loop j   step s
 *                                                                finish s
 *                                                                loop j   store
 *
 *   requires  a verified kernel and schedule
 *   keeps     the order of the stages; the order of summation, but for a sum kept around outer
 *             loops, of whose blocks each begins from nothing
 *   breaks    nothing: the tree is new
 *
 * Read before: ccode/ir/ir.h. After: ccode/lower/walk.c. */
#include "ccode/schedule/sched.h"

typedef struct {
    Tree *t;
    const Sched *s;
    Text *why;
    uint32_t root;              /* the tree's, or the present phase's */
    uint32_t path[STAGE_LOOPS]; /* loops around the last leaf, outermost first */
    uint8_t shares[SCHED_STAGES]; /* by stage: how many of them stand around this one, too */
    bool ok;
} Lower;

static uint32_t
add_node(Lower *w, TreeOp op, uint32_t stage)
{
    TreeNode node = {0};
    node.op = (uint8_t)op;
    node.stage = stage;
    if (!jot_vec_reserve(w->t->mem, w->t->nodes, 1))
        return 0;
    *(TreeNode *)jot_vec_push(w->t->mem, w->t->nodes) = node;
    return w->t->nodes.n - 1;
}

static uint32_t
lower_add_loop(Lower *w, const SLoop *loop, bool quiet)
{
    uint32_t n = add_node(w, TREE_LOOP, 0);
    w->t->nodes.v[n].loop = *loop;
    w->t->nodes.v[n].quiet = quiet;
    return n;
}

/* Mark 0: behind the others. */
static void
insert_before(Lower *w, uint32_t parent, uint32_t mark, uint32_t kid)
{
    TreeNode *nodes = w->t->nodes.v;
    uint32_t *link = &nodes[parent].kids;
    if (!kid || !parent)
        return;
    while (*link && *link != mark)
        link = &nodes[*link].next;
    nodes[kid].next = *link;
    *link = kid;
}

static void
append(Lower *w, uint32_t parent, uint32_t kid)
{
    insert_before(w, parent, 0, kid);
}

static uint32_t
add_if(Lower *w, TreeOp op, const uint32_t *loops, int n, uint32_t kid)
{
    uint32_t node = add_node(w, op, 0);
    w->t->nodes.v[node].ifs = w->t->refs.n;
    for (int i = 0; i < n; i++)
        *(uint32_t *)jot_vec_push(w->t->mem, w->t->refs) = loops[i];
    w->t->nodes.v[node].nifs = (uint32_t)n;
    append(w, node, kid);
    return node;
}

/* The chain of inner loops that one part of a reduction runs in: those over free axes, and for
 * parts that see each copy (private) the unrolled and vector loops over reduce axes. Of what is
 * none, a line that is filled, all. */
static uint32_t
part(Lower *w, uint32_t stage, TreeOp op, bool private)
{
    const Stage *st = &w->s->stages.v[stage];
    uint64_t kept = jot_stage_free(w->s, st), copies = 0;
    bool run = jot_stage_is_run(w->s, st);
    uint32_t top = 0, tail = 0, leaf = add_node(w, op, stage);
    bool fill = !jot_stage_is_reduce(w->s, st) && !run;
    if (run)
        kept &= ~w->s->k->values.v[st->what].axes;
    for (int i = st->nat; i < st->n; i++)
        if (st->loop[i].kind == LOOP_PRIVATE || st->loop[i].kind == LOOP_VECTOR)
            copies |= (uint64_t)1 << st->loop[i].axis;
    for (int i = st->nat; i < st->n; i++) {
        const SLoop *l = &st->loop[i];
        bool is_free = fill || kept >> l->axis & 1, copy = copies >> l->axis & 1;
        bool array = l->kind == LOOP_LANES && st->acc.kind != PLACE_MEM;
        uint32_t node;
        if ((!is_free && !(private && copy)) || (array && op == TREE_DECL))
            continue;
        node = lower_add_loop(w, l, !is_free && l->kind != LOOP_PRIVATE && l->kind != LOOP_VECTOR);
        append(w, tail, node);
        top = top ? top : node;
        tail = node;
    }
    append(w, tail, leaf);
    return top ? top : leaf;
}

/* Sums of outer loops wait in memory: a block of them begins from nothing, and what waits joins it
 * behind its loops, which need not wait for memory then (an accumulator of two goes on from what
 * waits: which of equal extremes came first matters). */
static void
add_reduction(Lower *w, uint32_t stage, uint32_t around, uint32_t mark)
{
    const Stage *st = &w->s->stages.v[stage];
    bool keep = st->acc.kind == PLACE_KEEP, joins = keep && !jot_stage_second(w->s, st);
    uint64_t reduced = jot_stage_axes(w->s, st) & ~jot_stage_free(w->s, st);
    uint32_t outer[STAGE_LOOPS], init, last;
    int n = 0;
    for (int i = 0; i < st->nat; i++)
        if ((reduced >> st->loop[i].axis & 1) && !jot_loop_parts(w->s, st, i))
            outer[n++] = w->path[i];
    if (st->acc.kind != PLACE_MEM)
        insert_before(w, around, mark, part(w, stage, TREE_DECL, true));
    init = part(w, stage, TREE_INIT, st->acc.kind != PLACE_MEM);
    insert_before(w, around, mark,
                  n && !joins ? add_if(w, TREE_IF_FIRST, outer, n, init) : init);
    if (n && keep) {
        insert_before(w, around, joins ? 0 : mark,
                      add_if(w, TREE_IF_LATER, outer, n, part(w, stage, TREE_RELOAD, true)));
        append(w, around, add_if(w, TREE_IF_BEFORE, outer, n, part(w, stage, TREE_SAVE, false)));
    }
    last = part(w, stage, TREE_FINISH, false);
    append(w, around, n ? add_if(w, TREE_IF_LAST, outer, n, last) : last);
}

/* Sums in memory have registers for their last loops: declared before these, added behind them. */
static void
add_own_lanes(Lower *w, uint32_t stage)
{
    int at = jot_stage_own_lanes(w->s, &w->s->stages.v[stage]);
    if (!at)
        return;
    insert_before(w, w->path[at - 1], w->path[at], add_node(w, TREE_DECL, stage));
    append(w, w->path[at - 1], add_node(w, TREE_SAVE, stage));
}

/* A line in memory: set to what is outside before its elements are computed where they are
 * inside. */
static void
add_fill(Lower *w, uint32_t stage, uint32_t mark)
{
    const Stage *st = &w->s->stages.v[stage];
    insert_before(w, st->nat ? w->path[st->nat - 1] : w->root, mark,
                  part(w, stage, TREE_INIT, false));
}

/* Loops of the shared part of the path that a consumer of unfinished reductions must see end: the
 * reduce loops of its producers; for a store that must run once, every loop foreign to it. */
static int
foreign_loops(Lower *w, const Stage *st, int share, uint32_t *out)
{
    uint64_t own = jot_stage_axes(w->s, st), reduced = jot_producer_reduced(w->s, st);
    int n = 0;
    for (int i = 0; i < share; i++) {
        const SLoop *l = &w->t->nodes.v[w->path[i]].loop;
        if (own >> l->axis & 1)
            continue;
        if (st->store || (reduced >> l->axis & 1))
            out[n++] = w->path[i];
    }
    return n;
}

/* What a running reduction has accumulated, around the loops that it runs along. */
static void
add_running(Lower *w, uint32_t stage, uint32_t around, uint32_t mark)
{
    insert_before(w, around, mark, part(w, stage, TREE_DECL, true));
    insert_before(w, around, mark, part(w, stage, TREE_INIT, true));
}

static void
lower_add_stage(Lower *w, uint32_t stage)
{
    const Stage *st = &w->s->stages.v[stage];
    bool reduce = jot_stage_is_reduce(w->s, st), run = jot_stage_is_run(w->s, st);
    uint32_t foreign[STAGE_LOOPS], leaf, top, parent;
    int share = w->shares[stage], n;
    leaf = add_node(w, st->store ? TREE_STORE : reduce ? TREE_STEP
                       : run ? TREE_RUN : TREE_VALUE, stage);
    n = foreign_loops(w, st, share, foreign);
    parent = share ? w->path[share - 1] : w->root;
    for (int i = share; i < st->n; i++) {
        w->path[i] = lower_add_loop(w, &st->loop[i], false);
        if (i > share)
            append(w, w->path[i - 1], w->path[i]);
    }
    if (st->n > share)
        append(w, w->path[st->n - 1], leaf);
    top = st->n > share ? w->path[share] : leaf;
    if (n > 0)
        top = add_if(w, TREE_IF_LAST, foreign, n, top);
    append(w, parent, top);
    if (jot_stage_fills(w->s, st))
        add_fill(w, stage, st->nat == share ? top : w->path[st->nat]);
    if (reduce || run) {
        uint32_t mark = st->nat < st->n ? w->path[st->nat] : leaf;
        if (st->nat == share)
            mark = top;
        (run ? add_running : add_reduction)(w, stage, st->nat ? w->path[st->nat - 1] : w->root,
                                            mark);
        add_own_lanes(w, stage);
    }
}

static bool
result_in(const Stage *st, uint32_t buf)
{
    return (st->acc.kind && st->acc.buf == buf) || (st->res.kind && st->res.buf == buf);
}

/* What a call has of its own is set up by each call of the phase that writes it, other buffers
 * once, before all. */
static void
add_clears(Lower *w, uint8_t phase)
{
    const Kernel *k = w->s->k;
    for (uint32_t b = 1; b < k->bufs.n; b++) {
        bool here = phase == 0;
        if (!jot_buf_cleared(w->s, b))
            continue;
        if (k->bufs.v[b].role == BUF_SCRATCH) {
            here = false;
            for (uint32_t i = 0; i < w->s->stages.n; i++)
                here |= w->s->stages.v[i].phase == phase && result_in(&w->s->stages.v[i], b);
        }
        if (here)
            append(w, w->root, add_node(w, TREE_CLEAR, b));
    }
}

/* A phase begins with no loop open. */
static void
add_phase(Lower *w, uint8_t phase)
{
    w->root = add_node(w, TREE_PHASE, phase);
    append(w, 1, w->root);
    add_clears(w, phase);
}

JOT_FN bool
jot_lower(Tree *t, const Sched *s, Text *why)
{
    Lower w = {0};
    memset(t, 0, sizeof *t);
    t->mem = s->k->mem;
    w.t = t;
    w.s = s;
    w.why = why;
    jot_sched_shares(s, w.shares);
    jot_vec_push(t->mem, t->nodes);
    w.root = add_node(&w, TREE_ROOT, 0);
    if (s->stages.n && s->stages.v[s->stages.n - 1].phase)
        add_phase(&w, 0);
    else
        add_clears(&w, 0);
    for (uint32_t i = 0; i < s->stages.n && !t->mem->failed; i++) {
        if (i && s->stages.v[i].phase != s->stages.v[i - 1].phase)
            add_phase(&w, s->stages.v[i].phase);
        lower_add_stage(&w, i);
    }
    return !t->mem->failed;
}

JOT_FN void
jot_lower_close(Tree *t)
{
    jot_vec_free(t->mem, t->nodes);
    jot_vec_free(t->mem, t->refs);
}

/* ---- printer ---- */

static const char *const tree_name[] = {
    "poison",  "root", "loop",   "phase", "if first", "if later", "if last", "if before", "clear",
    "declare", "init", "reload", "step",  "finish",   "save",     "value",   "store",
    "run"};

static void
print_node(const Tree *t, const Sched *s, uint32_t n, int depth, Text *text)
{
    const TreeNode *node = &t->nodes.v[n];
    for (int i = 0; i < depth; i++)
        jot_text_f(text, "    ");
    if (node->op == TREE_LOOP) {
        jot_text_f(text, "%s", node->quiet ? "quiet" : "loop");
        jot_loop_print(s, &node->loop, text);
    } else
        jot_text_f(text, "%s", tree_name[node->op]);
    for (uint32_t i = 0; i < node->nifs; i++)
        jot_loop_print(s, &t->nodes.v[t->refs.v[node->ifs + i]].loop, text);
    if (node->op == TREE_PHASE)
        jot_text_f(text, " %u", node->stage);
    if (node->op == TREE_CLEAR)
        jot_text_f(text, " %s", s->k->bufs.v[node->stage].name);
    else if (node->op > TREE_CLEAR)
        jot_text_f(text, " %s%c%u", s->stages.v[node->stage].combine ? "+" : "",
                   s->stages.v[node->stage].store ? '!' : '%', s->stages.v[node->stage].what);
    jot_text_f(text, "\n");
    for (uint32_t kid = node->kids; kid && depth < 60; kid = t->nodes.v[kid].next)
        print_node(t, s, kid, depth + 1, text);
}

JOT_FN void
jot_lower_print(const Tree *t, const Sched *s, Text *text)
{
    for (uint32_t kid = t->nodes.v[1].kids; kid; kid = t->nodes.v[kid].next)
        print_node(t, s, kid, 0, text);
}
