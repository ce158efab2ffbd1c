/* backends/interp.c - the naive interpreter: the oracle every other backend is compared with, and
 * the backend that is always there.
 *
 * It runs the graph as built, node by node, and shares neither the simplifier nor the kernel IR
 * with what it judges: index expressions by jot_ix_eval, elements by jot_scalar_apply. To be the
 * better one of the two it accumulates float sums and products in double and rounds once at the
 * end; integers wrap; f16 and bf16 are rounded where a value is stored or cast, not at every
 * operator.
 *
 *     stored  leaves, what is asked for, reductions, code       one array, filled in one sweep
 *     pulled  everything else, while cheap                      computed when an element is wanted
 *
 *     y = sum(mul(reindex x, broadcast w))       only y has memory: the rank 7 in between is pulled
 *
 * A node is pulled while that costs at most PULL_COST applications an element (which also bounds
 * the recursion), and if its elements are read once, or are more than those of its largest stored
 * operand.
 *
 * Read before: ops/graph.h, plan/plan.h. After: ccode/build/build.c, plan/plan.c. */
#include "backends/backend.h"
#include "ops/user/code.h"
#include "plan/plan.h"
#include "target/thresholds.h"

typedef struct { int64_t c; uint32_t term, nterm; bool linear; } InterpIndex;
typedef struct { int64_t k; int axis; } InterpTerm;

typedef struct InterpNode {
    const Node *node;
    struct InterpNode *input[3]; /* of a node that is pulled */
    unsigned char *p;     /* its elements, row-major; NULL: pulled (or not computed yet) */
    uint32_t cost;        /* of pulling one element */
    uint32_t uses;        /* operands that name it */
    uint32_t last;        /* position of the last stored node that reads it */
    uint32_t free_head, free_next; /* list of what is free after this position */
    uint32_t map;         /* first of its compiled index expressions */
    int64_t most;         /* elements of the largest stored operand below */
    Buffer *buf;          /* who owns p, when this run made it */
    Buffer **out;         /* CODE: its outputs */
    uint8_t from, to;     /* dtypes that an element-wise operator computes in, and gives */
    bool stored, root, whole; /* whole: user code reads the array */
} InterpNode;

typedef struct {
    jot_Ctx *ctx;
    const NodeList *list;
    InterpNode *at;
    Vec(InterpIndex) index;
    Vec(InterpTerm) terms;
} Interp;

typedef struct { Interp *in; const Node *node; } InterpLoad;

static jot_Scalar interp_pull(Interp *in, const InterpNode *self, const int64_t *at, int64_t lin);

static InterpNode *
interp_of(Interp *in, NodeId id)
{
    return &in->at[jot_node(in->ctx, id)->at];
}

/* ---- index expressions -------------------------------------------------------------------- */

/* @slot(index...): the element of an integer variable, each index clamped into it. */
static int64_t
interp_load(void *ud, int slot, int n, const int64_t *index)
{
    InterpLoad *l = ud;
    NodeId id = l->node->input[slot + 1];
    const Node *v = jot_node(l->in->ctx, id);
    int64_t at[JOT_MAX_RANK], lin = 0;
    jot_Scalar e;
    int d;

    if (!v->nelem)
        return 0;
    for (d = 0; d < n; d++) {
        at[d] = index[d] < 0 ? 0 : index[d] >= v->ext[d] ? v->ext[d] - 1 : index[d];
        lin = lin * v->ext[d] + at[d];
    }
    e = interp_pull(l->in, interp_of(l->in, id), at, lin);
    return v->dtype == JOT_U64 && e.u > INT64_MAX ? INT64_MAX : e.i;
}

/* Most index expressions are c + k*i + ...: kept as a list: an element costs no tree walk. */
static void
interp_compile_index(Interp *in, Ix ix)
{
    InterpIndex *out = jot_vec_push(&in->ctx->mem, in->index);
    IxTerm tmp;
    const IxTerm *term = jot_ix_linear(&in->ctx->ix, ix, &out->c, &out->nterm, &tmp);
    uint32_t i;

    out->term = in->terms.n;
    out->linear = true;
    for (i = 0; i < out->nterm; i++) {
        int axis = 0;

        out->linear = out->linear && jot_ix_is_axis(&in->ctx->ix, term[i].atom, &axis);
        if (out->linear) {
            InterpTerm *t = jot_vec_push(&in->ctx->mem, in->terms);

            t->k = term[i].k;
            t->axis = axis;
        }
    }
}

static void
interp_compile(Interp *in, uint32_t pos)
{
    const Node *node = jot_node(in->ctx, in->list->v[pos]);
    int d;

    in->at[pos].map = in->index.n;
    for (d = 0; d < node->nindex; d++)
        interp_compile_index(in, node->index[d]);
}

/* Where `at` lands: fills to[]; the row-major position in ext, -1: outside, or a condition is 0. */
static int64_t
interp_map(Interp *in, const InterpNode *self, const int64_t *ext, const int64_t *at, int64_t *to)
{
    const Node *node = self->node;
    InterpLoad load;
    int64_t lin = 0;
    uint32_t t;
    int d;

    load.in = in;
    load.node = node;
    for (d = 0; d < node->ncond; d++)
        if (!jot_ix_eval(&in->ctx->ix, node->cond[d], at, interp_load, &load))
            return -1;
    for (d = 0; d < node->nindex; d++) {
        const InterpIndex *ix = &in->index.v[self->map + (uint32_t)d];
        uint64_t v = (uint64_t)ix->c; /* it wraps where an index after it is outside */

        if (ix->linear)
            for (t = ix->term; t < ix->term + ix->nterm; t++)
                v += (uint64_t)in->terms.v[t].k * (uint64_t)at[in->terms.v[t].axis];
        else
            v = (uint64_t)jot_ix_eval(&in->ctx->ix, node->index[d], at, interp_load, &load);
        if (v >= (uint64_t)ext[d])
            return -1;
        to[d] = (int64_t)v;
        lin = lin * ext[d] + to[d];
    }
    return lin;
}

/* ---- one element -------------------------------------------------------------------------- */

static jot_Scalar
interp_random(const Node *node, int64_t lin)
{
    jot_Scalar v[2];

    v[0].u = node->value.u;
    v[1].u = node->stream + (uint64_t)lin;
    return jot_scalar_apply(node->op, JOT_U64, jot_dtype_compute(node->dtype), v);
}

static jot_Scalar
interp_pull(Interp *in, const InterpNode *self, const int64_t *at, int64_t lin)
{
    const Node *node = self->node;
    int64_t to[JOT_MAX_RANK];
    jot_Scalar v[3];
    int k;

    if (self->p)
        return jot_scalar_read(self->p + (size_t)lin * jot_dtype_nbytes(node->dtype), node->dtype);
    switch (node->kind) {
    case NODE_IOTA:
        return jot_scalar_from_i64(at[node->op], node->dtype);
    case NODE_RANDOM:
        return interp_random(node, lin);
    case NODE_ALIAS:
        return interp_pull(in, self->input[0], at, lin);
    case NODE_EW:
        for (k = 0; k < node->ninputs; k++)
            v[k] = interp_pull(in, self->input[k], at, lin);
        return jot_scalar_apply(node->op, self->from, self->to, v);
    case NODE_REINDEX:
        lin = interp_map(in, self, self->input[0]->node->ext, at, to);
        return lin < 0 ? node->value : interp_pull(in, self->input[0], to, lin);
    default:
        return node->value; /* CONST; the rest is stored */
    }
}

/* ---- one node ----------------------------------------------------------------------------- */

/* The next point of a row-major walk. */
static void
interp_step(int64_t *at, int rank, const int64_t *ext)
{
    int d;

    for (d = rank - 1; d >= 0; d--) {
        if (++at[d] < ext[d])
            return;
        at[d] = 0;
    }
}

/* Rounded where the element cannot hold the value. */
static void
interp_write(const Node *node, unsigned char *p, int64_t lin, jot_Scalar v)
{
    if (jot_dtype_compute((jot_DType)node->dtype) != node->dtype || node->dtype == JOT_F32)
        v = jot_scalar_from_f64(v.f, (jot_DType)node->dtype);
    jot_scalar_write(p + (size_t)lin * jot_dtype_nbytes((jot_DType)node->dtype),
                     (jot_DType)node->dtype, v);
}

static void
interp_fill(Interp *in, const InterpNode *self, unsigned char *p)
{
    const Node *node = self->node;
    int64_t at[JOT_MAX_RANK] = {0}, lin;

    for (lin = 0; lin < node->nelem; lin++) {
        interp_write(node, p, lin, interp_pull(in, self, at, lin));
        interp_step(at, node->rank, node->ext);
    }
}

static jot_Scalar
interp_combine(int op, bool wide, jot_DType dtype, jot_Scalar a, jot_Scalar b)
{
    jot_Scalar v[2];

    v[0] = a;
    v[1] = b;
    if (!wide)
        return jot_scalar_apply(jot_reduce_info[op].combine, dtype, dtype, v);
    if (op == JOT_MUL)
        v[0].f *= b.f;
    else
        v[0].f += b.f;
    return v[0];
}

/* acc[index(i)] op= y[i]: over the whole of y's space, in row-major order; mean: of squared
 * distances from it. */
static void
interp_accumulate(Interp *in, const InterpNode *self, bool wide, const jot_Scalar *mean,
                  jot_Scalar *acc)
{
    const Node *node = self->node, *y = self->input[0]->node;
    jot_DType dtype = jot_dtype_compute(node->dtype);
    int64_t at[JOT_MAX_RANK] = {0}, to[JOT_MAX_RANK], lin, out;

    for (lin = 0; lin < y->nelem; lin++) {
        out = interp_map(in, self, node->ext, at, to);
        if (out >= 0) {
            jot_Scalar v = interp_pull(in, self->input[0], at, lin);

            if (y->dtype != node->dtype)
                v = jot_scalar_apply(EW_CAST, jot_dtype_compute(y->dtype), dtype, &v);
            if (mean)
                v.f = (v.f - mean[out].f) * (v.f - mean[out].f);
            acc[out] = interp_combine(node->op, wide, dtype, acc[out], v);
        }
        interp_step(at, y->rank, y->ext);
    }
}

static bool
interp_reduce(Interp *in, const InterpNode *self, unsigned char *p)
{
    const Node *node = self->node;
    bool is_float = jot_dtype_class(node->dtype) == CLASS_FLOAT;
    bool moment = node->op == REDUCE_VAR;
    bool wide = is_float && (node->op == JOT_ADD || node->op == JOT_MUL || node->op == JOT_MEAN
                             || moment);
    jot_Scalar identity = jot_reduce_identity(node->op, node->dtype), *acc, *mean = NULL;
    int64_t i;

    if (moment && !(mean = jot_mem_new(&in->ctx->mem, (size_t)node->nelem, sizeof *mean)))
        return false;
    acc = jot_mem_new(&in->ctx->mem, (size_t)node->nelem, sizeof *acc);
    if (acc && moment) {
        interp_accumulate(in, self, wide, NULL, mean);
        for (i = 0; i < node->nelem; i++)
            mean[i].f *= node->value.f;
    }
    for (i = 0; acc && i < node->nelem; i++)
        acc[i] = identity;
    if (acc)
        interp_accumulate(in, self, wide, mean, acc);
    for (i = 0; acc && i < node->nelem; i++) {
        if ((node->op == JOT_MEAN || moment) && is_float)
            acc[i].f *= node->value.f;
        interp_write(node, p, i, acc[i]);
    }
    jot_mem_free(&in->ctx->mem, mean, (size_t)node->nelem * sizeof *mean);
    jot_mem_free(&in->ctx->mem, acc, (size_t)node->nelem * sizeof *acc);
    return acc != NULL;
}

/* A branch or loop, whose bodies are run here, too: walks of their own. */
static bool
interp_flow(Interp *in, const CodeSpec *spec, void *const *buf, Buffer **out)
{
    bool ok = jot_flow_interp(in->ctx, spec, buf, out);

    jot_graph_number(in->ctx, in->list);
    return ok;
}

/* User code through its host function, over whole arrays. */
static bool
interp_code(Interp *in, uint32_t pos)
{
    NodeId id = in->list->v[pos];
    const Node *node = jot_node(in->ctx, id);
    const CodeSpec *spec = node->code;
    InterpNode *self = &in->at[pos];
    void *buf[512];
    int n = 0, k;

    if (spec->inputs + spec->outputs > 512)
        return jot_fail(in->ctx, JOT_ERANGE, "%s: more than 512 arrays", spec->name);
    self->out = jot_mem_new(&in->ctx->mem, (size_t)spec->outputs, sizeof *self->out);
    for (k = 0; self->out && k < spec->inputs; k++)
        buf[n++] = interp_of(in, node->input[k])->p;
    if (self->out && spec->flow)
        return interp_flow(in, spec, buf, self->out);
    for (k = 0; self->out && k < spec->outputs; k++) {
        const CodeArg *arg = &spec->arg[spec->inputs + k];

        self->out[k] = jot_buffer_new(in->ctx, (size_t)(spec->examples * arg->nelem)
                                                   * jot_dtype_nbytes((jot_DType)arg->dtype));
        if (!self->out[k])
            return false;
        buf[n++] = self->out[k]->p;
    }
    return self->out && jot_code_host(in->ctx, id, buf);
}

/* Pieces one after the other. */
static void
interp_stack(Interp *in, const Node *node, unsigned char *p)
{
    int k, pieces = jot_stack_pieces(node);
    size_t size = jot_dtype_nbytes((jot_DType)node->dtype);
    size_t n = (size_t)(node->nelem / pieces) * size;

    for (k = 0; n && k < pieces; k++) {
        Piece piece = jot_stack_piece(in->ctx, node, k);

        if (piece.x)
            memcpy(p + (size_t)k * n, (unsigned char *)interp_of(in, piece.x)->p
                                          + (size_t)piece.at * size, n);
        else
            memset(p + (size_t)k * n, 0, n);
    }
}

static bool
interp_store(Interp *in, uint32_t pos)
{
    NodeId id = in->list->v[pos];
    const Node *node = jot_node(in->ctx, id);
    InterpNode *self = &in->at[pos];
    Buffer *buf;

    if (node->kind == NODE_CODE)
        return interp_code(in, pos);
    if (node->kind == NODE_MAP)
        return jot_code_host(in->ctx, id, NULL);
    if (node->kind == NODE_PICK) {
        buf = interp_of(in, node->input[0])->out[node->op];
        buf->refs++;
    } else {
        buf = jot_buffer_new(in->ctx, (size_t)jot_node_nbytes(node));
    }
    if (!buf)
        return false;
    if (node->kind == NODE_REDUCE && !interp_reduce(in, self, buf->p)) {
        jot_buffer_unref(in->ctx, buf);
        return false;
    }
    if (node->kind == NODE_STACK)
        interp_stack(in, node, buf->p);
    else if (node->kind != NODE_REDUCE && node->kind != NODE_PICK)
        interp_fill(in, self, buf->p);
    self->buf = buf;
    self->p = buf->p;
    return true;
}

/* ---- what is stored ----------------------------------------------------------------------- */

static void
interp_place(Interp *in, uint32_t pos)
{
    const Node *node = jot_node(in->ctx, in->list->v[pos]);
    InterpNode *self = &in->at[pos];
    int k;

    self->cost = 1;
    if (node->data) {
        self->p = node->data->p;
        self->most = node->nelem;
        return;
    }
    for (k = 0; k < node->ninputs; k++) {
        InterpNode *from = interp_of(in, node->input[k]);

        self->cost += from->stored ? 1 : from->cost;
        if (self->most < from->most)
            self->most = from->most;
    }
    self->stored = self->root || self->whole || node->kind == NODE_REDUCE || node->kind == NODE_CODE
                || node->kind == NODE_MAP || node->kind == NODE_PICK || node->kind == NODE_STACK
                || self->cost > PULL_COST
                || (node->kind == NODE_EW && self->uses > 1 && node->nelem <= self->most);
    if (self->stored)
        self->most = node->nelem;
}

/* Backwards: the last stored node that reads each, through what is pulled; then, per position, what
 * to free after it. */
static void
interp_lifetimes(Interp *in)
{
    uint32_t pos = in->list->n;
    int k;

    while (pos--) {
        const Node *node = jot_node(in->ctx, in->list->v[pos]);
        uint32_t last = in->at[pos].stored ? pos : in->at[pos].last;

        for (k = 0; k < node->ninputs && !node->data; k++) {
            InterpNode *from = interp_of(in, node->input[k]);

            if (from->last < last)
                from->last = last;
        }
        if (in->at[pos].stored && !in->at[pos].root) {
            in->at[pos].free_next = in->at[in->at[pos].last].free_head;
            in->at[in->at[pos].last].free_head = pos + 1;
        }
    }
}

static void
interp_prepare(Interp *in, const NodeId *roots, uint32_t n)
{
    uint32_t pos, i;
    int k;

    for (i = 0; i < n; i++)
        interp_of(in, roots[i])->root = true;
    for (pos = 0; pos < in->list->n; pos++) {
        const Node *node = jot_node(in->ctx, in->list->v[pos]);
        InterpNode *self = &in->at[pos];

        self->node = node;
        for (k = 0; k < node->ninputs && !node->data; k++) {
            InterpNode *from = interp_of(in, node->input[k]);

            from->uses++;
            from->whole |= node->kind == NODE_CODE || node->kind == NODE_STACK;
            if (k < 3)
                self->input[k] = from;
        }
        if (!node->data && node->kind == NODE_EW) {
            self->from = (uint8_t)jot_dtype_compute(self->input[node->ninputs == 3]->node->dtype);
            self->to = node->op == EW_CAST ? node->dtype : (uint8_t)jot_dtype_compute(node->dtype);
        }
        if (!node->data && (node->kind == NODE_REINDEX || node->kind == NODE_REDUCE))
            interp_compile(in, pos);
    }
    for (pos = 0; pos < in->list->n; pos++)
        interp_place(in, pos);
    interp_lifetimes(in);
}

static void
interp_release(Interp *in, uint32_t pos)
{
    const Node *node = jot_node(in->ctx, in->list->v[pos]);
    int k, n = in->at[pos].out ? node->code->outputs : 0;

    for (k = 0; k < n; k++)
        jot_buffer_unref(in->ctx, in->at[pos].out[k]);
    if (in->at[pos].out)
        jot_mem_free(&in->ctx->mem, in->at[pos].out, (size_t)n * sizeof *in->at[pos].out);
    in->at[pos].out = NULL;
    jot_buffer_unref(in->ctx, in->at[pos].buf);
    in->at[pos].buf = NULL;
    in->at[pos].p = NULL;
}

static bool
interp_all(Interp *in)
{
    uint32_t pos, f;

    for (pos = 0; pos < in->list->n; pos++) {
        if (!in->at[pos].stored)
            continue;
        if (!interp_store(in, pos))
            return false;
        for (f = in->at[pos].free_head; f; f = in->at[f - 1].free_next)
            interp_release(in, f - 1);
    }
    return true;
}

JOT_FN bool
jot_interp_run(jot_Ctx *ctx, const NodeList *list, const NodeId *roots, uint32_t n, Buffer **out)
{
    Interp in = {0};
    uint32_t i;
    bool ok = false;

    in.ctx = ctx;
    in.list = list;
    ctx->mem.failed = false;
    if (!jot_flow_settle(ctx, list))
        return false;
    in.at = jot_mem_new(&ctx->mem, list->n, sizeof *in.at);
    if (in.at)
        interp_prepare(&in, roots, n);
    if (in.at && !ctx->mem.failed)
        ok = interp_all(&in);
    for (i = 0; ok && i < n; i++) {
        out[i] = interp_of(&in, roots[i])->buf;
        interp_of(&in, roots[i])->buf = NULL;
    }
    for (i = 0; in.at && i < list->n; i++)
        interp_release(&in, i);
    jot_vec_free(&ctx->mem, in.index);
    jot_vec_free(&ctx->mem, in.terms);
    jot_mem_free(&ctx->mem, in.at, list->n * sizeof *in.at);
    return ok || (ctx->status ? false : jot_fail_memory(ctx, "interp"));
}

extern const Backend jot_backend_interp;
const Backend jot_backend_interp = {
    .name = "interp"
};
