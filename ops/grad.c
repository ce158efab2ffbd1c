/* ops/grad.c - reverse-mode differentiation, graph to graph.
 *
 *     y = sum(reindex(x) * w)                       forward, inputs first
 *          |        |     |
 *     dm = reindex(1)                               backward, from y to what was asked for: each
 *     dr = dm * w        dw = dm * reindex(x)       operator turns the gradient of its output into
 *     dx = reindex_reduce(add, dr)                  contributions to those of its inputs
 *
 * Reindex and reindex_reduce(add) are each other's dual, by the same map. The rules of element-wise
 * operators are a column of ops/scalar.def, compiled here. A gradient is made of ordinary nodes, so it
 * can be differentiated again.
 *
 * Contributions to one variable are summed before they are passed on, but for one case: what flows
 * into a broadcast and would become a contraction (sum of a product of two reindexes: a matmul) goes
 * through the dual by itself. Summed first it would be a sum over a space of higher rank that no fast
 * schedule fits.
 *
 * Nodes made here have no references until the end, so nothing here may sweep.
 *
 * Read before: ops/scalar.def, ops/reduce.c. After: fuse/fuse.h. */
#include "ops/code.h"
#include "ops/maps.h"

enum { GRAD_NEED = 1, GRAD_TARGET = 2, GRAD_OUTPUTS = 256 };

/* next: 0 is the end. output: which output of user code it belongs to. */
typedef struct { NodeId node; uint32_t next; int output; } Contribution;

typedef struct {
    jot_Ctx *ctx;
    NodeList order;             /* all that y stands on, inputs first */
    uint8_t *need;              /* per position */
    uint32_t *first, *last;     /* per position: its contributions, in the order they came */
    Vec(Contribution) list;
    NodeList held;              /* references taken, one an entry */
    bool failed;
} Grad;

/* ---- contributions ------------------------------------------------------------------------ */

static bool
grad_fail(Grad *g)
{
    if (!g->failed && (g->ctx->mem.failed || !g->ctx->status))
        jot_fail_memory(g->ctx, "grad");
    g->failed = true;
    return false;
}

static void
grad_hold(Grad *g, NodeId id)
{
    if (!id || !jot_vec_reserve(&g->ctx->mem, g->held, 1)) {
        grad_fail(g);
        return;
    }
    jot_node_ref(g->ctx, id);
    g->held.v[g->held.n++] = id;
}

static bool
grad_wants(const Grad *g, NodeId id)
{
    return g->need[jot_node(g->ctx, id)->at] & GRAD_NEED;
}

static void
grad_give_output(Grad *g, NodeId to, NodeId d, int output)
{
    uint32_t at = jot_node(g->ctx, to)->at;

    if (!d || !jot_vec_reserve(&g->ctx->mem, g->list, 1)) {
        grad_fail(g);
        return;
    }
    if (jot_node_is(g->ctx, d, 0))
        return;
    g->list.v[g->list.n].node = d;
    g->list.v[g->list.n].output = output;
    g->list.v[g->list.n++].next = 0;
    if (g->last[at])
        g->list.v[g->last[at] - 1].next = g->list.n;
    else
        g->first[at] = g->list.n;
    g->last[at] = g->list.n;
}

static void
grad_give(Grad *g, NodeId to, NodeId d)
{
    grad_give_output(g, to, d, 0);
}

/* ---- building, one line per operator ------------------------------------------------------ */

static NodeId
grad_ew(jot_Ctx *ctx, EwOp op, NodeId a, NodeId b, NodeId c)
{
    NodeId x[3];

    x[0] = a;
    x[1] = b;
    x[2] = c;
    if (!a || (jot_ew_info[op].arity > 1 && !b) || (jot_ew_info[op].arity > 2 && !c))
        return 0;
    return jot_ew_node(ctx, op, (jot_DType)jot_node(ctx, a)->dtype, jot_ew_info[op].arity, x);
}

static NodeId
grad_const(jot_Ctx *ctx, NodeId like, double v)
{
    const Node *n = jot_node(ctx, like);

    return like ? jot_const_f64(ctx, (jot_DType)n->dtype, n->rank, n->ext, v) : 0;
}

/* All contributions to a node, summed in the order they came; 0: there are none. */
static NodeId
grad_total(Grad *g, uint32_t from)
{
    NodeId sum = 0;

    for (; from && !g->failed; from = g->list.v[from - 1].next) {
        NodeId d = g->list.v[from - 1].node;

        sum = sum ? grad_ew(g->ctx, EW_ADD, sum, d, 0) : d;
        if (!sum)
            grad_fail(g);
    }
    return sum;
}

/* ---- element-wise ------------------------------------------------------------------------- */

/* The words of the gradient column, for nodes. */
#define d1_(op, a) grad_ew(ctx, op, a, 0, 0)
#define d2_(op, a, b) grad_ew(ctx, op, a, b, 0)
#define jot_neg(a) d1_(EW_NEG, a)
#define jot_sign(a) d1_(EW_SIGN, a)
#define jot_trunc(a) d1_(EW_TRUNC, a)
#define jot_rsqrt(a) d1_(EW_RSQRT, a)
#define jot_exp(a) d1_(EW_EXP, a)
#define jot_log(a) d1_(EW_LOG, a)
#define jot_sin(a) d1_(EW_SIN, a)
#define jot_cos(a) d1_(EW_COS, a)
#define jot_sinh(a) d1_(EW_SINH, a)
#define jot_cosh(a) d1_(EW_COSH, a)
#define jot_sigmoid(a) d1_(EW_SIGMOID, a)
#define jot_add(a, b) d2_(EW_ADD, a, b)
#define jot_sub(a, b) d2_(EW_SUB, a, b)
#define jot_mul(a, b) d2_(EW_MUL, a, b)
#define jot_div(a, b) d2_(EW_DIV, a, b)
#define jot_pow(a, b) d2_(EW_POW, a, b)
#define jot_floordiv(a, b) d2_(EW_FLOORDIV, a, b)
#define jot_copysign(a, b) d2_(EW_COPYSIGN, a, b)
#define jot_eq(a, b) d2_(EW_EQ, a, b)
#define jot_gt(a, b) d2_(EW_GT, a, b)
#define jot_lt(a, b) d2_(EW_LT, a, b)
#define jot_select(a, b, c) grad_ew(ctx, EW_SELECT, a, b, c)
#define jot_cast(a, dtype) jot_maps_cast(ctx, a, dtype)
#define jot_dtype(a) ((jot_DType)jot_node(ctx, a)->dtype)
#define k_(like, value) grad_const(ctx, like, value)
#define tie_(greater, equal, like) \
    jot_select(greater, k_(like, 1), jot_select(equal, k_(like, 0.5), k_(like, 0)))
#define NONE (void)0
#define G(k, expression) \
    do { \
        if (grad_wants(g, n->input[k])) \
            grad_give(g, n->input[k], (expression)); \
    } while (0)

static void
grad_of_ew(Grad *g, NodeId y, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    const Node *n = jot_node(ctx, y);
    NodeId a = n->input[0], b = n->ninputs > 1 ? n->input[1] : 0;

    (void)b;
    switch ((EwOp)n->op) {
#define EW(ID, name, arity, result, flags, f_c, i_c, b_c, ...) \
    case EW_##ID: \
        __VA_ARGS__; \
        break;
#include "ops/scalar.def"
#undef EW
    case EW_NONE: case EW_OPS:
        break;
    }
}

/* ---- reindex and reduce ------------------------------------------------------------------- */

/* The map of `n` walked by z: a value of n's indexed side, spread over the space of input `like`. */
static NodeId
grad_spread(Grad *g, const Node *n, NodeId z)
{
    const Node *y = jot_node(g->ctx, n->input[0]);
    jot_Scalar zero = {0};

    return jot_reindex_node(g->ctx, z, y->rank, y->ext, n->index, n->ncond, n->cond, zero,
                            n->ninputs - 1, n->input + 1);
}

/* The map of a REDUCE walked again with another operator or operand. */
static NodeId
grad_again(Grad *g, const Node *n, int op, NodeId y)
{
    return jot_reduce_node(g->ctx, op, y, n->rank, n->ext, n->index, n->ncond, n->cond, 1,
                           n->ninputs - 1, n->input + 1);
}

/* Those that reach the extreme share evenly. */
static NodeId
grad_of_extreme(Grad *g, NodeId out, const Node *n, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    NodeId y = n->input[0], hit, count;

    hit = jot_eq(y, grad_spread(g, n, out));
    count = grad_again(g, n, JOT_ADD, jot_cast(hit, (jot_DType)n->dtype));
    return jot_select(hit, grad_spread(g, n, jot_div(d, count)), k_(y, 0));
}

/* Leave-one-out, y * of all others, written so that it can be differentiated once more:
 *   y != 0          (product of all) / y
 *   y the one zero  p, the product of what is not zero
 *   one of two      (s - y) * p: s is the sum of the zeros, so s - y is the other one. Its value is
 *                   0, but its derivative by the other is not
 *   one of more     0, to second order as well */
static NodeId
grad_of_prod(Grad *g, NodeId out, const Node *n, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    NodeId y = n->input[0], zero = jot_eq(y, k_(y, 0)), safe = jot_select(zero, k_(y, 1), y);
    NodeId zeros = grad_again(g, n, JOT_ADD, jot_cast(zero, (jot_DType)n->dtype));
    NodeId p = grad_again(g, n, JOT_MUL, safe), one, two, other;

    one = jot_mul(d, jot_select(jot_eq(zeros, k_(zeros, 1)), p, k_(p, 0)));
    two = jot_mul(d, jot_select(jot_eq(zeros, k_(zeros, 2)), p, k_(p, 0)));
    other = grad_spread(g, n, grad_again(g, n, JOT_ADD, jot_select(zero, y, k_(y, 0))));
    two = jot_mul(jot_sub(other, y), grad_spread(g, n, two));
    return jot_select(zero, jot_add(grad_spread(g, n, one), two),
                      jot_div(grad_spread(g, n, jot_mul(d, out)), safe));
}

static void
grad_of_reduce(Grad *g, NodeId id, NodeId d)
{
    jot_Ctx *ctx = g->ctx;
    const Node *n = jot_node(ctx, id);
    NodeId r;

    switch (n->op) {
    case JOT_MEAN: r = grad_spread(g, n, jot_mul(d, k_(d, n->value.f))); break;
    case JOT_ADD: r = grad_spread(g, n, d); break;
    case JOT_MAX: case JOT_MIN: r = grad_of_extreme(g, id, n, d); break;
    case JOT_MUL: r = grad_of_prod(g, id, n, d); break;
    default: return;
    }
    grad_give(g, n->input[0], r);
}

static NodeId
grad_dual(Grad *g, const Node *n, NodeId d)
{
    const Node *x = jot_node(g->ctx, n->input[0]);

    return jot_reduce_node(g->ctx, JOT_ADD, d, x->rank, x->ext, n->index, n->ncond, n->cond, 1,
                           n->ninputs - 1, n->input + 1);
}

static uint64_t
grad_axes(jot_Ctx *ctx, const Node *n)
{
    uint64_t axes = 0;
    int k;

    for (k = 0; k < n->nindex; k++)
        axes |= jot_ix_axes(&ctx->ix, n->index[k]);
    return axes;
}

/* Is this the sum of a product of two reindexes, each of which lacks an axis? */
static bool
grad_is_contraction(jot_Ctx *ctx, NodeId id)
{
    const Node *n = id ? jot_node(ctx, id) : NULL, *m, *a, *b;
    uint64_t full = 0;
    int k;

    if (!n || n->kind != NODE_REDUCE || n->op != JOT_ADD)
        return false;
    m = jot_node(ctx, n->input[0]);
    if (m->kind != NODE_EW || m->op != EW_MUL)
        return false;
    a = jot_node(ctx, m->input[0]);
    b = jot_node(ctx, m->input[1]);
    if (a->kind != NODE_REINDEX || b->kind != NODE_REINDEX)
        return false;
    for (k = 0; k < m->rank; k++)
        full |= (uint64_t)(m->ext[k] > 1) << k;
    return (full & ~grad_axes(ctx, a)) && (full & ~grad_axes(ctx, b));
}

/* Contributions to a broadcast: contractions one by one, the rest summed. */
static void
grad_of_broadcast(Grad *g, NodeId id, uint32_t from)
{
    const Node *n = jot_node(g->ctx, id);
    NodeId rest = 0;

    for (; from && !g->failed; from = g->list.v[from - 1].next) {
        NodeId d = g->list.v[from - 1].node;
        const Node *m = jot_node(g->ctx, d);
        NodeId through = m->kind == NODE_EW && m->op == EW_MUL ? grad_dual(g, n, d) : 0;

        if (grad_is_contraction(g->ctx, through))
            grad_give(g, n->input[0], through);
        else if (!(rest = rest ? grad_ew(g->ctx, EW_ADD, rest, d, 0) : d))
            grad_fail(g);
    }
    if (rest)
        grad_give(g, n->input[0], grad_dual(g, n, rest));
}

/* ---- user code ---------------------------------------------------------------------------- */

static void
grad_of_code(Grad *g, NodeId id, const NodeId *dout)
{
    const Node *n = jot_node(g->ctx, id);
    NodeId din[GRAD_OUTPUTS] = {0};
    int k;

    for (k = 0; k < n->ninputs; k++)
        din[k] = grad_wants(g, n->input[k]) ? n->input[k] : 0;
    if (!jot_code_grad(g->ctx, id, dout, din)) {
        grad_fail(g);
        return;
    }
    for (k = 0; k < n->ninputs; k++)
        if (din[k] && grad_wants(g, n->input[k]))
            grad_give(g, n->input[k], din[k]);
}

/* Its PICKs, which come later in the order, have left their gradients here. */
static void
grad_of_opaque(Grad *g, NodeId id, uint32_t from)
{
    NodeId dout[GRAD_OUTPUTS] = {0};

    for (; from; from = g->list.v[from - 1].next)
        dout[g->list.v[from - 1].output] = g->list.v[from - 1].node;
    grad_of_code(g, id, dout);
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* Does a gradient pass from this node to its inputs? */
static bool
grad_passes(const Node *n)
{
    switch (n->kind) {
    case NODE_ALIAS: return !(n->flags & (NODE_STOP_GRAD | NODE_STATE));
    case NODE_EW: case NODE_MAP: case NODE_REINDEX: case NODE_REDUCE: case NODE_CODE: case NODE_PICK:
        return true;
    default: return false;
    }
}

static void
grad_mark_needs(Grad *g)
{
    uint32_t at;
    int k;

    for (at = 0; at < g->order.n; at++) {
        const Node *n = jot_node(g->ctx, g->order.v[at]);

        if (n->kind != NODE_CODE && jot_dtype_class((jot_DType)n->dtype) != CLASS_FLOAT)
            continue;
        for (k = 0; k < n->ninputs && grad_passes(n); k++)
            if (grad_wants(g, n->input[k]))
                g->need[at] |= GRAD_NEED;
    }
}

/* How many will read this node's gradient: where there are several, a reduction in it is not folded
 * into the next. */
static void
grad_hold_shared(Grad *g, const Node *n, NodeId d, bool target)
{
    int uses = target, k;

    for (k = 0; k < n->ninputs; k++)
        uses += grad_wants(g, n->input[k]);
    for (; uses > 1; uses--) {
        grad_hold(g, d);
        grad_hold(g, d);
    }
}

/* Turn the contributions to one node into contributions to its inputs. */
static void
grad_of_node(Grad *g, uint32_t at)
{
    NodeId id = g->order.v[at], d;
    const Node *n = jot_node(g->ctx, id);
    uint32_t from = g->first[at];
    bool target = g->need[at] & GRAD_TARGET, passes = grad_passes(n);

    if (!from || (!passes && !target))
        return;
    if (n->kind == NODE_CODE) {
        grad_of_opaque(g, id, from);
        return;
    }
    if (n->kind == NODE_REINDEX && !target && g->list.v[from - 1].next
        && n->nelem > jot_node(g->ctx, n->input[0])->nelem) {
        grad_of_broadcast(g, id, from);
        return;
    }
    d = grad_total(g, from);
    if (!d)
        return;
    if (target) { /* the sum is the answer, and what is passed on */
        g->list.v[from - 1].node = d;
        g->list.v[from - 1].next = 0;
    }
    if (!passes)
        return;
    grad_hold_shared(g, n, d, target);
    switch (n->kind) {
    case NODE_EW: grad_of_ew(g, id, d); break;
    case NODE_REINDEX: grad_give(g, n->input[0], grad_dual(g, n, d)); break;
    case NODE_REDUCE: grad_of_reduce(g, id, d); break;
    case NODE_ALIAS: grad_give(g, n->input[0], d); break;
    case NODE_MAP: grad_of_code(g, id, &d); break;
    case NODE_PICK: grad_give_output(g, n->input[0], d, n->op); break;
    default: break;
    }
}

#undef d1_
#undef d2_
#undef jot_neg
#undef jot_sign
#undef jot_trunc
#undef jot_rsqrt
#undef jot_exp
#undef jot_log
#undef jot_sin
#undef jot_cos
#undef jot_sinh
#undef jot_cosh
#undef jot_sigmoid
#undef jot_add
#undef jot_sub
#undef jot_mul
#undef jot_div
#undef jot_pow
#undef jot_floordiv
#undef jot_copysign
#undef jot_eq
#undef jot_gt
#undef jot_lt
#undef jot_select
#undef jot_cast
#undef jot_dtype
#undef k_
#undef tie_
#undef NONE
#undef G

/* ---- one call ----------------------------------------------------------------------------- */

static bool
grad_open(Grad *g, jot_Ctx *ctx, const NodeId *y, int n)
{
    memset(g, 0, sizeof *g);
    g->ctx = ctx;
    if (!jot_graph_order(ctx, y, (uint32_t)n, false, &g->order))
        return grad_fail(g);
    g->need = jot_mem_new(&ctx->mem, g->order.n, sizeof *g->need);
    g->first = jot_mem_new(&ctx->mem, g->order.n, sizeof *g->first);
    g->last = jot_mem_new(&ctx->mem, g->order.n, sizeof *g->last);
    return (g->need && g->first && g->last) || grad_fail(g);
}

static void
grad_close(Grad *g)
{
    Mem *mem = &g->ctx->mem;

    jot_mem_free(mem, g->need, g->order.n * sizeof *g->need);
    jot_mem_free(mem, g->first, g->order.n * sizeof *g->first);
    jot_mem_free(mem, g->last, g->order.n * sizeof *g->last);
    jot_vec_free(mem, g->list);
    while (g->held.n)
        jot_node_unref(g->ctx, g->held.v[--g->held.n]);
    jot_list_free(g->ctx, &g->held);
    jot_list_free(g->ctx, &g->order);
}

/* The gradient of wrt, or zeros. */
static NodeId
grad_answer(Grad *g, NodeId wrt)
{
    const Node *n = jot_node(g->ctx, wrt);
    NodeId d = n->mark == g->ctx->walk ? grad_total(g, g->first[n->at]) : 0;

    return d || g->failed ? d : grad_const(g->ctx, wrt, 0);
}

/* Nodes of the gradients into out; they are held by g. */
static bool
grad_walk(Grad *g, int ny, const NodeId *y, const NodeId *dy, int n, NodeId *wrt)
{
    uint32_t at;
    int k;

    for (k = 0; k < n; k++)
        if (jot_node(g->ctx, wrt[k])->mark == g->ctx->walk)
            g->need[jot_node(g->ctx, wrt[k])->at] |= GRAD_NEED | GRAD_TARGET;
    grad_mark_needs(g);
    for (k = 0; k < ny; k++)
        if (grad_wants(g, y[k]))
            grad_give(g, y[k], dy[k]);
    for (at = g->order.n; at-- > 0 && !g->failed;)
        if (g->need[at] & GRAD_NEED)
            grad_of_node(g, at);
    for (k = 0; k < n && !g->failed; k++) {
        wrt[k] = grad_answer(g, wrt[k]);
        grad_hold(g, wrt[k]);
    }
    return !g->failed;
}

/* Handles of the results; all or none. */
static bool
grad_handles(jot_Ctx *ctx, int n, const NodeId *id, jot_Var *out)
{
    int k, j;

    for (k = 0; k < n; k++) {
        out[k] = jot_var_of(ctx, id[k]);
        if (out[k].slot)
            continue;
        for (j = 0; j < k; j++) {
            jot_free(out[j]);
            out[j] = JOT_POISON(ctx);
        }
        return false;
    }
    return true;
}

/* wrt holds nodes, and takes the gradients' nodes. */
static bool
grad_run(jot_Ctx *ctx, int ny, const NodeId *y, const NodeId *dy, int n, NodeId *wrt, jot_Var *out)
{
    Grad g;
    bool ok = grad_open(&g, ctx, y, ny) && grad_walk(&g, ny, y, dy, n, wrt);

    ok = ok && grad_handles(ctx, n, wrt, out);
    grad_close(&g);
    return ok;
}

/* ---- the user's calls --------------------------------------------------------------------- */

static bool
grad_is_float(jot_Ctx *ctx, NodeId id, const char *op, const char *what, int k)
{
    const Node *n = jot_node(ctx, id);

    if (jot_dtype_class((jot_DType)n->dtype) == CLASS_FLOAT)
        return true;
    return jot_fail(ctx, JOT_EGRAD, "%s: %s[%d]%s%s%s is %s; only floats have gradients", op, what, k,
                    n->name ? " '" : "", n->name ? n->name : "", n->name ? "'" : "",
                    jot_dtype_name((jot_DType)n->dtype));
}

/* A constant is folded into whatever is built from it, so nothing could be found to depend on it. */
static bool
grad_is_variable(jot_Ctx *ctx, NodeId id, const char *op, int k)
{
    return jot_node(ctx, id)->kind != NODE_CONST
        || jot_fail(ctx, JOT_EGRAD, "%s: wrt[%d] is a constant; what gradients are asked of is made "
                    "by jot_array or jot_param", op, k);
}

/* Check a list of floats and take its nodes. */
static bool
grad_nodes(jot_Ctx *ctx, const char *op, const char *what, jot_Vars vars, NodeId *out)
{
    int k;

    for (k = 0; k < vars.n; k++)
        if (!(out[k] = jot_node_in(ctx, vars.v[k], op, what))
            || !grad_is_float(ctx, out[k], op, what, k))
            return false;
    return true;
}

static bool
grad_dy_fits(jot_Ctx *ctx, int ny, const NodeId *y, const NodeId *dy)
{
    char a[400], b[400];
    Text ta = {NULL, a, 0, sizeof a}, tb = {NULL, b, 0, sizeof b};
    int k;

    for (k = 0; k < ny; k++) {
        const Node *p = jot_node(ctx, y[k]), *q = jot_node(ctx, dy[k]);

        if (p->dtype == q->dtype && p->rank == q->rank
            && (!p->rank || !memcmp(p->ext, q->ext, p->rank * sizeof *p->ext)))
            continue;
        jot_shape_text(&ta, p->rank, p->ext);
        jot_shape_text(&tb, q->rank, q->ext);
        return jot_fail(ctx, p->dtype == q->dtype ? JOT_ESHAPE : JOT_EDTYPE,
                        "vjp: y[%d] is %s %s, dy[%d] is %s %s", k, jot_dtype_name((jot_DType)p->dtype),
                        a, k, jot_dtype_name((jot_DType)q->dtype), b);
    }
    return true;
}

static bool
grad_counts(jot_Ctx *ctx, const char *op, const char *what, int n)
{
    if (n >= 0 && n <= JOT_MAX_WRT)
        return true;
    return jot_fail(ctx, JOT_ERANGE, "%s: %d variables in %s; 0 to %d are taken", op, n, what,
                    JOT_MAX_WRT);
}

/* Only after a failure: grads may be the array that wrt was read from. */
static bool
grad_poison(jot_Ctx *ctx, int n, jot_Var *grads)
{
    int k;

    for (k = 0; k < n && k < JOT_MAX_WRT; k++)
        grads[k] = JOT_POISON(ctx);
    return false;
}

/* dy.n < 0: y is one float scalar, and its own gradient 1. */
static bool
grad_call(jot_Ctx *ctx, const char *op, jot_Vars y, jot_Vars dy, jot_Vars wrt, jot_Var *grads)
{
    size_t count = (size_t)y.n * 2 + (size_t)wrt.n;
    NodeId *ids = jot_mem_new(&ctx->mem, count, sizeof *ids), *dys, *wrts;
    uint32_t mark = ctx->loose.n;
    bool ok;
    int k;

    if (!ids)
        return grad_poison(ctx, wrt.n, grads), jot_fail_memory(ctx, op);
    dys = ids + y.n;
    wrts = dys + y.n;
    ok = grad_nodes(ctx, op, "y", y, ids) && grad_nodes(ctx, op, "wrt", wrt, wrts);
    for (k = 0; k < wrt.n && ok; k++)
        ok = grad_is_variable(ctx, wrts[k], op, k);
    if (ok && dy.n < 0)
        ok = (dys[0] = grad_const(ctx, ids[0], 1)) != 0;
    else if (ok)
        ok = grad_nodes(ctx, op, "dy", dy, dys) && grad_dy_fits(ctx, y.n, ids, dys);
    ok = ok && grad_run(ctx, y.n, ids, dys, wrt.n, wrts, grads);
    if (!ok)
        grad_poison(ctx, wrt.n, grads);
    jot_mem_free(&ctx->mem, ids, count * sizeof *ids);
    jot_graph_sweep(ctx, mark);
    return ok;
}

bool
jot_grad(jot_Var y, const jot_Var *wrt, int n, jot_Var *grads)
{
    jot_Ctx *ctx = y.ctx;
    NodeId id = jot_node_of(y, "grad", "y");
    char buf[400];
    Text text = {NULL, buf, 0, sizeof buf};

    if (!id || !grad_counts(ctx, "grad", "wrt", n))
        return grad_poison(ctx, n, grads);
    if (jot_node(ctx, id)->nelem != 1) {
        grad_poison(ctx, n, grads);
        jot_shape_text(&text, jot_node(ctx, id)->rank, jot_node(ctx, id)->ext);
        return jot_fail(ctx, JOT_EGRAD, "grad: y has shape %s; it must have one element (sum it, or "
                        "see jot_vjp)", buf);
    }
    return grad_call(ctx, "grad", jot_vars(1, &y), jot_vars(-1, NULL), jot_vars(n, wrt), grads);
}

bool
jot_vjp(jot_Vars y, jot_Vars dy, jot_Vars wrt, jot_Var *grads)
{
    jot_Ctx *ctx = y.n > 0 ? y.v[0].ctx : wrt.n > 0 ? wrt.v[0].ctx : NULL;

    if (!ctx || !grad_counts(ctx, "vjp", "y", y.n) || !grad_counts(ctx, "vjp", "wrt", wrt.n))
        return grad_poison(ctx, wrt.n, grads);
    if (y.n != dy.n)
        return grad_poison(ctx, wrt.n, grads), jot_fail(ctx, JOT_ESHAPE, "vjp: %d variables in y, %d in dy", y.n, dy.n);
    return grad_call(ctx, "vjp", y, dy, wrt, grads);
}
