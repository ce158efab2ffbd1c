/* tests/test_graph.c - the graph without evaluation: handles and generations, scopes, sharing,
 * freeing, assignment, order, text, and every allocation refused in turn. The context's memory goes
 * through a hook that checks the sizes it is told and can refuse the n-th request.
 *
 * Guards: base_mem.c, ops/assign.c, ops/graph.c, ops/order.c, ops/shape.c, ops/slots.c,
 * ops/text.c. */
#include "ops/graph.h"
#include "tests/test.h"

typedef struct { long asked, refuse_at, live; bool wrong; char log[4096]; size_t nlog; } World;

/* Each block is preceded by its size, so that a wrong old_nbytes shows. */
static void *
world_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    World *w = ud;
    size_t *head = p ? (size_t *)p - 2 : NULL;

    if (head && *head != old_nbytes)
        w->wrong = true;
    if (!new_nbytes) {
        if (head) {
            w->live--;
            memset(p, 0xdd, *head);
        }
        free(head);
        return NULL;
    }
    if (++w->asked == w->refuse_at)
        return NULL;
    if (!head)
        w->live++;
    head = realloc(head, new_nbytes + 2 * sizeof *head);
    if (!head)
        abort();
    *head = new_nbytes;
    return head + 2;
}

static void
world_log(void *ud, const char *text, size_t nbytes)
{
    World *w = ud;

    if (w->nlog + nbytes >= sizeof w->log)
        return;
    memcpy(w->log + w->nlog, text, nbytes);
    w->nlog += nbytes;
    w->log[w->nlog] = 0;
}

static jot_Ctx *
open_in(World *w, int no_simplify)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.hooks.realloc = world_realloc;
    config.hooks.log = world_log;
    config.hooks.ud = w;
    config.backend = "interp";
    config.no_simplify = no_simplify;
    config.give_back = 1;
    return jot_open(&config);
}

static void
close_in(World *w, jot_Ctx *c, const char *what)
{
    jot_close(c);
    CHECK(w->live == 0, "%s: %ld blocks left", what, w->live);
    CHECK(!w->wrong, "%s: a wrong old size", what);
}

/* Is there an error of this kind whose text holds all three? It is cleared. */
static bool
failed_with(jot_Ctx *c, jot_Status status, const char *a, const char *b, const char *d)
{
    bool ok = jot_error(c) == status && strstr(jot_message(c), a) && strstr(jot_message(c), b) &&
              strstr(jot_message(c), d);

    if (!ok)
        printf("    status %d: %s\n", (int)jot_error(c), jot_message(c));
    jot_clear(c);
    return ok;
}

static NodeId
node_id(jot_Var v)
{
    return v.ctx->slots.v[v.slot].node;
}

static jot_Var
vector(jot_Ctx *c, float first)
{
    float v[3];

    v[0] = first;
    v[1] = first + 1;
    v[2] = first + 2;
    return jot_array(c, JOT_F32, JOT_SHAPE(3), v);
}

/* ---- handles ------------------------------------------------------------------------------ */

static void
test_questions(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = jot_array(c, JOT_I16, JOT_SHAPE(2, 0, 5), NULL), s = jot_scalar(c, JOT_F64, 2.5);

    CHECK(jot_rank(a) == 3 && jot_rank(s) == 0, "rank %d %d", jot_rank(a), jot_rank(s));
    CHECK(jot_extent(a, -1) == 5 && jot_extent(a, 1) == 0, "extents");
    CHECK(jot_shape(a).n == 3 && jot_shape(a).v[0] == 2, "shape");
    CHECK(jot_nelem(a) == 0 && jot_nelem(s) == 1, "nelem");
    CHECK(jot_dtype(a) == JOT_I16 && jot_dtype(s) == JOT_F64, "dtype");
    CHECK(jot_ok(a) && jot_error(c) == JOT_OK, "%s", jot_message(c));
    CHECK(jot_extent(a, 3) == -1, "range");
    CHECK(failed_with(c, JOT_ERANGE, "extent", "dimension 3", "there are 3"), "range");
    CHECK(jot_extent(a, -4) == -1, "range");
    CHECK(failed_with(c, JOT_ERANGE, "extent", "dimension -4", "there are 3"), "range");
    close_in(&w, c, "questions");
}

static void
test_handles(void)
{
    World w = {0}, w2 = {0};
    jot_Ctx *c = open_in(&w, 0), *other = open_in(&w2, 0);
    jot_Var a = vector(c, 0), b = vector(c, 1), f = vector(other, 2), none = {0}, p;

    jot_free(a);
    CHECK(!jot_ok(a) && jot_ok(b), "freed");
    p = jot_neg(a);
    CHECK(!jot_ok(p) && failed_with(c, JOT_EHANDLE, "neg", "a is", "stale"), "stale");
    a = vector(c, 5); /* the slot again, with another generation */
    jot_free(a);
    jot_free(a);
    CHECK(failed_with(c, JOT_EHANDLE, "free", "v is", "stale"), "freed twice");
    CHECK(jot_rank(p) == -1 && failed_with(c, JOT_EHANDLE, "rank", "poison", ""), "poison");
    CHECK(jot_nelem(p) == -1 && jot_shape(p).n == -1, "poison shape");
    CHECK(!jot_ok(jot_add(p, b)), "poison in, poison out");
    CHECK(failed_with(c, JOT_EHANDLE, "nelem", "poison", ""), "the first failure is kept");
    jot_free(p);
    CHECK(jot_error(c) == JOT_OK, "freeing poison is nothing");
    CHECK(!jot_ok(jot_add(b, f)), "foreign");
    CHECK(failed_with(c, JOT_EHANDLE, "add", "b belongs to another context", ""), "foreign");
    CHECK(!jot_ok(jot_add(b, none)), "empty");
    CHECK(failed_with(c, JOT_EHANDLE, "add", "b is an empty", ""), "empty");
    CHECK(!jot_ok(jot_add(none, b)), "empty");
    CHECK(failed_with(c, JOT_EHANDLE, "add", "a is an empty", ""), "empty");
    CHECK(!jot_ok(jot_neg(none)) && jot_rank(none) == -1, "no context at all");
    close_in(&w2, other, "other");
    close_in(&w, c, "handles");
}

/* ---- scopes ------------------------------------------------------------------------------- */

static void
test_scopes(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    uint32_t slots = c->live_slots;
    jot_Var out = vector(c, 0), p, inner, once, twice, gone;

    jot_push(c);
    p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_push(c);
    gone = vector(c, 1);
    jot_free(gone);
    inner = vector(c, 2); /* takes the slot of `gone`: two entries in one scope */
    once = jot_keep(vector(c, 3));
    twice = jot_keep(jot_keep(vector(c, 4)));
    jot_pop(c);
    CHECK(!jot_ok(inner) && jot_ok(once) && jot_ok(twice) && jot_ok(p), "inner scope");
    jot_pop(c);
    CHECK(!jot_ok(once) && jot_ok(twice) && jot_ok(p) && jot_ok(out), "outer scope");
    CHECK(c->live_slots == slots + 3, "%u slots", c->live_slots);
    jot_push(c);
    inner = vector(c, 5);
    once = jot_leave(c, vector(c, 6));
    CHECK(!jot_ok(inner) && jot_ok(once), "leave");
    jot_free(once);
    jot_push(c);
    jot_push(c);
    inner = jot_leave(c, vector(c, 7));
    once = jot_leave(c, out); /* of no scope: stays where it is */
    CHECK(!jot_ok(inner) && jot_ok(out) && jot_ok(once), "leave with what is not of the scope");
    jot_keep(out);
    CHECK(jot_ok(out) && jot_error(c) == JOT_OK, "%s", jot_message(c));
    jot_pop(c);
    CHECK(failed_with(c, JOT_EUSE, "pop", "no scope", ""), "pop");
    jot_keep(inner);
    CHECK(failed_with(c, JOT_EHANDLE, "keep", "stale", ""), "keep");
    jot_free(p);
    jot_free(twice);
    jot_free(out);
    CHECK(c->live_slots == slots && c->live_nodes == 0, "%u slots, %u nodes", c->live_slots,
          c->live_nodes);
    close_in(&w, c, "scopes");
}

/* Handles that end out of order leave entries behind: they must not add up. */
static void
test_scope_growth(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var held[8];
    size_t nbytes = 0;
    int i;

    jot_push(c);
    for (i = 0; i < 8; i++)
        held[i] = vector(c, (float)i);
    jot_push(c);
    for (i = 0; i < 20000; i++) {
        jot_free(held[i % 8]);
        held[i % 8] = vector(c, (float)i);
        if (i == 1000)
            nbytes = c->mem.live_nbytes;
    }
    CHECK(c->mem.live_nbytes == nbytes, "%zu bytes, then %zu", nbytes, c->mem.live_nbytes);
    jot_pop(c);
    CHECK(c->live_slots == 0, "%u slots", c->live_slots);
    jot_pop(c);
    close_in(&w, c, "scope growth");
}

/* ---- nodes -------------------------------------------------------------------------------- */

static void
test_sharing(int no_simplify)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, no_simplify);
    jot_Var a = vector(c, 0), b = vector(c, 0);
    bool shared = !no_simplify;

    CHECK(node_id(a) != node_id(b), "arrays are never shared");
    CHECK((node_id(jot_mul(a, b)) == node_id(jot_mul(a, b))) == shared, "mul");
    CHECK((node_id(jot_mul(a, b)) == node_id(jot_mul(b, a))) == shared, "mul swapped");
    CHECK(node_id(jot_sub(a, b)) != node_id(jot_sub(b, a)), "sub swapped");
    CHECK(node_id(jot_exp(a)) != node_id(jot_exp2(a)), "operators differ");
    CHECK((node_id(jot_full(c, JOT_F32, JOT_SHAPE(2), 1)) ==
           node_id(jot_ones(c, JOT_F32, JOT_SHAPE(2)))) == shared, "constants");
    CHECK(node_id(jot_full(c, JOT_F32, JOT_SHAPE(2), 1)) !=
          node_id(jot_full(c, JOT_F32, JOT_SHAPE(1, 2), 1)), "shapes differ");
    CHECK(node_id(jot_full(c, JOT_F32, JOT_SHAPE(2), 1)) !=
          node_id(jot_full(c, JOT_F64, JOT_SHAPE(2), 1)), "dtypes differ");
    CHECK(node_id(jot_scalar(c, JOT_F32, 0.0)) != node_id(jot_scalar(c, JOT_F32, -0.0)), "zeros");
    CHECK(node_id(jot_iota(c, JOT_I32, JOT_SHAPE(2, 2), 0)) !=
          node_id(jot_iota(c, JOT_I32, JOT_SHAPE(2, 2), 1)), "iota");
    CHECK(node_id(jot_uniform(c, JOT_F32, JOT_SHAPE(2))) !=
          node_id(jot_uniform(c, JOT_F32, JOT_SHAPE(2))), "random");
    CHECK(jot_error(c) == JOT_OK, "%s", jot_message(c));
    close_in(&w, c, "sharing");
}

/* Many nodes in the table, freed in another order than made. */
static void
test_table(void)
{
    enum { N = 3000 };
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    static jot_Var v[N];
    int i, lost = 0;

    for (i = 0; i < N; i++)
        v[i] = jot_scalar(c, JOT_F64, i);
    for (i = 0; i < N; i++)
        lost += node_id(jot_scalar(c, JOT_F64, i)) != node_id(v[i]);
    CHECK(!lost && c->live_nodes == N, "%d not found, %u nodes", lost, c->live_nodes);
    jot_close(c);
    CHECK(w.live == 0, "%ld blocks", w.live);
    c = open_in(&w, 0);
    for (i = 0; i < N; i++)
        v[i] = jot_scalar(c, JOT_F64, i);
    for (i = 0; i < N; i++)
        jot_free(v[i * 7 % N]);
    CHECK(c->live_nodes == 0 && c->live_slots == 0, "%u nodes", c->live_nodes);
    CHECK(node_id(jot_scalar(c, JOT_F64, 5)) != 0 && c->live_nodes == 1, "and again");
    close_in(&w, c, "table");
}

/* A chain as long as no stack is, walked and freed; `running` keeps builders from starting work. */
static void
test_chain(void)
{
    enum { N = 100000 };
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = vector(c, 1), x = jot_exp(a), next;
    NodeList order;
    NodeId root;
    uint32_t k, wrong = 0;
    int i;

    c->running = true;
    for (i = 1; i < N; i++) {
        next = i % 2 ? jot_add(x, a) : jot_mul(x, a);
        jot_free(x);
        x = next;
    }
    CHECK(c->live_nodes == N + 1 && c->unrun_nodes == N, "%u nodes, %u waiting", c->live_nodes,
          c->unrun_nodes);
    root = node_id(x);
    CHECK(jot_graph_order(c, &root, 1, false, &order) && order.n == N + 1, "%u in order", order.n);
    for (k = 0; k < order.n; k++) {
        const Node *n = jot_node(c, order.v[k]);

        wrong += n->at != k || n->mark != c->walk;
        wrong += n->ninputs > 0 && jot_node(c, n->input[0])->at >= k;
    }
    CHECK(!wrong, "%u out of order", wrong);
    jot_list_free(c, &order);
    jot_free(x);
    CHECK(c->live_nodes == 1 && c->unrun_nodes == 0, "%u nodes left", c->live_nodes);
    c->running = false;
    close_in(&w, c, "chain");
}

static void
test_order(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = vector(c, 1), e = jot_exp(a), y = jot_mul(e, e), z = jot_add(y, e);
    NodeId roots[3];
    NodeList order;
    Buffer *buf;

    roots[0] = node_id(z);
    roots[1] = node_id(y);
    roots[2] = node_id(z);
    CHECK(jot_graph_order(c, roots, 3, true, &order) && order.n == 4, "%u in order", order.n);
    CHECK(order.n == 4 && order.v[0] == node_id(a) && order.v[1] == node_id(e) &&
          order.v[2] == node_id(y) && order.v[3] == node_id(z), "inputs first");
    jot_list_free(c, &order);
    buf = jot_buffer_new(c, 12);
    CHECK(buf != NULL && c->unrun_nodes == 3, "buffer, %u waiting", c->unrun_nodes);
    if (buf)
        jot_node_set_data(c, node_id(e), buf);
    CHECK(c->unrun_nodes == 2, "%u waiting", c->unrun_nodes);
    CHECK(jot_graph_order(c, roots, 1, true, &order) && order.n == 3, "%u with data", order.n);
    jot_list_free(c, &order);
    CHECK(jot_graph_order(c, roots, 1, false, &order) && order.n == 4, "%u in all", order.n);
    jot_list_free(c, &order);
    close_in(&w, c, "order");
}

/* What folding leaves behind is freed at the end of the builder. */
static void
test_sweep(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = vector(c, 0), one = jot_scalar(c, JOT_F32, 1), y;
    uint32_t nodes = c->live_nodes;

    y = jot_mul(a, one); /* a: the constant of shape (3) is left over */
    CHECK(node_id(y) == node_id(a) && c->live_nodes == nodes, "%u nodes", c->live_nodes);
    y = jot_clamp(a, 0, 1);
    CHECK(c->live_nodes == nodes + 4 && c->loose.n == 0, "%u nodes", c->live_nodes - nodes);
    jot_free(y);
    CHECK(c->live_nodes == nodes, "%u nodes", c->live_nodes);
    close_in(&w, c, "sweep");
}

/* ---- shapes ------------------------------------------------------------------------------- */

static void
test_limits(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    int64_t many[JOT_MAX_RANK + 1] = {0};
    int k;

    for (k = 0; k <= JOT_MAX_RANK; k++)
        many[k] = 1;
    CHECK(jot_ok(jot_zeros(c, JOT_I8, jot_ints(JOT_MAX_RANK, many))), "rank 16");
    CHECK(!jot_ok(jot_zeros(c, JOT_I8, jot_ints(JOT_MAX_RANK + 1, many))), "rank 17");
    CHECK(failed_with(c, JOT_ESHAPE, "zeros", "rank 17", ""), "rank 17");
    CHECK(!jot_ok(jot_zeros(c, JOT_I8, jot_ints(2, NULL))), "no shape");
    CHECK(failed_with(c, JOT_EUSE, "zeros", "shape is NULL", ""), "no shape");
    CHECK(!jot_ok(jot_sum(jot_zeros(c, JOT_F32, JOT_SHAPE(2)), jot_dims(1, NULL, false))),
          "no dims");
    CHECK(failed_with(c, JOT_EUSE, "sum", "dimensions is NULL", ""), "no dims");
    CHECK(!strcmp(jot_backend(NULL), "none") && !strcmp(jot_compilers(NULL), "none")
              && jot_threads(NULL) == 1 && !jot_stats(NULL).plans && !jot_machine(NULL).cores && *jot_message(NULL), "no context");
    CHECK(!jot_ok(jot_array(c, JOT_F32, JOT_SHAPE(2, -1), NULL)), "negative");
    CHECK(failed_with(c, JOT_ESHAPE, "array", "-1", "dimension 1"), "negative");
    CHECK(!jot_ok(jot_ones(c, JOT_F64, JOT_SHAPE((int64_t)1 << 40, (int64_t)1 << 40))), "large");
    CHECK(failed_with(c, JOT_ESHAPE, "ones", "f64 (1099511627776, 1099511627776)", "too large"),
          "large");
    CHECK(!jot_ok(jot_ones(c, JOT_I8, JOT_SHAPE(0, INT64_MAX))), "large beside 0");
    CHECK(failed_with(c, JOT_ESHAPE, "ones", "too large", ""), "large beside 0");
    CHECK(jot_ok(jot_ones(c, JOT_I8, JOT_SHAPE((int64_t)1 << 62))), "2^62: %s", jot_message(c));
    CHECK(!jot_ok(jot_ones(c, JOT_I16, JOT_SHAPE((int64_t)1 << 62))), "2^63 bytes");
    jot_clear(c);
    CHECK(!jot_ok(jot_zeros(c, (jot_DType)77, JOT_SHAPE(1))), "dtype");
    CHECK(failed_with(c, JOT_EDTYPE, "zeros", "77", ""), "dtype");
    CHECK(jot_ok(jot_add(jot_array(c, JOT_F32, JOT_SHAPE(2, 0), NULL),
                         jot_array(c, JOT_F32, JOT_SHAPE(0), NULL))), "no elements");
    CHECK(!jot_ok(jot_iota(c, JOT_I32, JOT_SHAPE(2), 1)), "iota");
    CHECK(failed_with(c, JOT_ERANGE, "iota", "dimension 1", "there are 1"), "iota");
    CHECK(!jot_ok(jot_uniform(c, JOT_I32, JOT_SHAPE(2))), "uniform");
    CHECK(failed_with(c, JOT_EDTYPE, "uniform", "i32", ""), "uniform");
    close_in(&w, c, "limits");
}

/* ---- assignment --------------------------------------------------------------------------- */

static void
test_assign_checks(void)
{
    World w = {0}, w2 = {0};
    jot_Ctx *c = open_in(&w, 0), *other = open_in(&w2, 0);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL), bad = vector(c, 0);
    NodeId before = node_id(p);

    CHECK(!jot_assign(p, jot_zeros(c, JOT_F32, JOT_SHAPE(2))), "shape");
    CHECK(failed_with(c, JOT_ESHAPE, "assign", "target is f32 (3)", "value is f32 (2)"), "shape");
    CHECK(!jot_assign(p, jot_zeros(c, JOT_F64, JOT_SHAPE(3))), "dtype");
    CHECK(failed_with(c, JOT_EDTYPE, "assign", "target is f32", "value is f64 (3)"), "dtype");
    CHECK(!jot_assign(p, vector(other, 0)), "foreign");
    CHECK(failed_with(c, JOT_EHANDLE, "assign", "value belongs to another", ""), "foreign");
    jot_free(bad);
    CHECK(!jot_assign(p, bad) && failed_with(c, JOT_EHANDLE, "assign", "value", "stale"), "stale");
    CHECK(!jot_assign(bad, p) && failed_with(c, JOT_EHANDLE, "assign", "target", "stale"), "stale");
    CHECK(node_id(p) == before && c->pending.n == 0, "nothing happened");
    close_in(&w2, other, "other");
    close_in(&w, c, "assign checks");
}

/* Nothing is assigned where one assignment of several is not; the last of two values counts. */
static void
test_assign_all(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_Var q = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_Var a = vector(c, 1), bad = jot_zeros(c, JOT_F32, JOT_SHAPE(2)), none = {0};
    NodeId id[2] = {node_id(p), node_id(q)}, state;
    long n;

    CHECK(!jot_assign_all(JOT_VARS(p, q), JOT_VARS(a, bad))
              && failed_with(c, JOT_ESHAPE, "assign_all: ", "targets[1] is f32 (3)",
                             "values[1] is f32 (2)"), "shape");
    CHECK(!jot_assign_all(JOT_VARS(p, none), JOT_VARS(a, a))
              && failed_with(c, JOT_EHANDLE, "assign_all", "targets[1]", "empty"), "a target");
    CHECK(!jot_assign_all(JOT_VARS(p, q), JOT_VARS(a, none))
              && failed_with(c, JOT_EHANDLE, "assign_all", "values[1]", "empty"), "a value");
    CHECK(!jot_assign_all(JOT_VARS(p, q), JOT_VARS(a))
              && failed_with(c, JOT_EUSE, "assign_all", "1 and 2 found", ""), "counts");
    for (n = 1; n < 20; n++) {
        w.refuse_at = w.asked + n;
        if (jot_assign_all(JOT_VARS(p, q), JOT_VARS(a, a)))
            break;
        CHECK(node_id(p) == id[0] && node_id(q) == id[1] && c->pending.n == 0 && c->undo.n == 0,
              "allocation %ld: %u pending", n, c->pending.n);
        CHECK(failed_with(c, JOT_EMEM, "out of memory", "", ""), "allocation %ld", n);
    }
    w.refuse_at = 0;
    CHECK(n > 1 && n < 20 && c->pending.n == 2 && c->undo.n == 2, "%ld allocations", n);
    id[0] = node_id(p);
    id[1] = node_id(q);
    CHECK(jot_assign_all(JOT_VARS(p, q), JOT_VARS(q, p)), "%s", jot_message(c));
    CHECK(jot_node(c, node_id(p))->input[0] == id[1] && jot_node(c, node_id(q))->input[0] == id[0],
          "they change places");
    state = node_id(q);
    CHECK(jot_assign_all(JOT_VARS(p, p), JOT_VARS(q, a))
              && jot_node(c, node_id(p))->input[0] == node_id(a), "the last one counts");
    CHECK(node_id(q) == state && jot_assign_all(JOT_NONE_VARS, JOT_NONE_VARS) && c->undo.n == 2,
          "%u to undo", c->undo.n);
    jot_raise(c, JOT_EUSE, "a failure");
    jot_clear(c);
    CHECK(jot_node(c, node_id(p))->kind == NODE_LEAF && jot_node(c, node_id(q))->kind == NODE_LEAF
              && c->pending.n == 0, "withdrawn: %u pending", c->pending.n);
    close_in(&w, c, "assign all");
}

static void
test_assign(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL), old = jot_exp(p), v;
    NodeId first = node_id(p), second;
    const Node *n;

    jot_name(p, "weight");
    v = jot_add(p, vector(c, 1));
    CHECK(jot_assign(p, v) && c->pending.n == 1, "%s", jot_message(c));
    second = node_id(p);
    n = jot_node(c, second);
    CHECK(n->kind == NODE_ALIAS && n->flags & NODE_STATE && n->input[0] == node_id(v), "a state");
    CHECK(n->name && !strcmp(n->name, "weight"), "the name stays");
    CHECK(jot_node(c, node_id(old))->input[0] == first, "old handles keep the old value");
    CHECK(jot_assign(p, p) && node_id(p) == second && c->pending.n == 1, "to itself");
    v = jot_neg(p);
    CHECK(jot_assign(p, v) && c->pending.n == 2, "%u pending", c->pending.n);
    jot_free(v);
    CHECK(jot_assign(p, vector(c, 2)) && c->pending.n == 1, "unread values are dropped: %u pending",
          c->pending.n);
    jot_free(p);
    jot_pending_trim(c);
    CHECK(c->pending.n == 0, "%u pending", c->pending.n);
    close_in(&w, c, "assign");
}

static void
test_to_leaf(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = vector(c, 1), e, p;
    Buffer *buf = jot_buffer_new(c, 12);
    uint32_t nodes;

    e = jot_exp(a);
    p = jot_param_of(e);
    CHECK(buf && jot_ok(p) && c->pending.n == 1 && c->unrun_nodes == 2, "%u waiting",
          c->unrun_nodes);
    if (!buf)
        return;
    jot_node_set_data(c, node_id(e), buf);
    jot_node_to_leaf(c, node_id(p));
    CHECK(jot_node(c, node_id(p))->kind == NODE_LEAF && jot_node(c, node_id(p))->data == buf &&
          buf->refs == 2 && c->unrun_nodes == 0, "a leaf with the same data");
    nodes = c->live_nodes;
    jot_free(e);
    CHECK(c->live_nodes == nodes - 1 && buf->refs == 1, "the history goes");
    close_in(&w, c, "to leaf");
}

/* ---- text --------------------------------------------------------------------------------- */

static void
test_text(void)
{
    static const char want[] =
        "%1 = f32 (3) leaf\n"
        "%2 = f32 (2, 3) reindex %1 [i1]\n"
        "%3 = f32 (2, 3) const 0.5\n"
        "%4 = f32 (2, 3) mul %2 %3  ; half\n"
        "%5 = i64 (2, 3) cast %4\n"
        "%6 = i64 (2, 3) stop_grad %5\n"
        "%7 = i64 (2, 3) state %6\n";
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = vector(c, 0), b = jot_broadcast_to(a, JOT_SHAPE(2, 3));
    jot_Var y = jot_scale(b, 0.5), z = jot_stop_grad(jot_cast(y, JOT_I64)), p = jot_param_of(z);

    jot_name(y, "whole");
    jot_name(y, "half");
    CHECK(jot_print_graph(c, JOT_VARS(p, y)), "%s", jot_message(c));
    CHECK(!strcmp(w.log, want), "the text is\n%s", w.log);
    CHECK(!jot_print_graph(c, JOT_VARS(p, JOT_POISON(c))), "poison");
    jot_clear(c);
    close_in(&w, c, "text");
}

static void
text_is(jot_Ctx *c, jot_Var v, const char *want)
{
    Text text = {0};

    text.mem = &c->mem;
    jot_node_text(c, node_id(v), &text);
    CHECK(text.s && strstr(text.s, want), "%s asked, the text is %s", want, text.s ? text.s : "");
    jot_text_free(&text);
}

static void
test_more_text(void)
{
    World w = {0};
    jot_Ctx *c = open_in(&w, 0);
    jot_Var a = vector(c, 0);

    text_is(c, jot_reindex(a, JOT_SHAPE(4), JOT_INDEX("i0 - 1")), "[i0 - 1] else 0");
    text_is(c, jot_sum(a, JOT_DIMS(0)), "= f32 () reduce sum %1 []");
    text_is(c, jot_iota(c, JOT_U8, JOT_SHAPE(2, 2), 1), "= u8 (2, 2) iota 1");
    text_is(c, jot_full_int(c, JOT_U64, JOT_SHAPE(), -1), "const 18446744073709551615");
    text_is(c, jot_full_int(c, JOT_I8, JOT_SHAPE(), 130), "const -126");
    text_is(c, jot_scalar(c, JOT_F32, -INFINITY), "const -inf");
    text_is(c, jot_stop_fuse(a), "stop_fuse %1");
    text_is(c, jot_param(c, JOT_BOOL, JOT_SHAPE(), NULL), "= bool () leaf state");
    CHECK(jot_error(c) == JOT_OK, "%s", jot_message(c));
    close_in(&w, c, "more text");
}

/* ---- refused allocations ------------------------------------------------------------------ */

/* A bit of everything; what it makes is checked only when nothing was refused. */
static jot_Var
script(jot_Ctx *c)
{
    jot_Var p, a, y, kept;

    p = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);
    jot_name(p, "p");
    jot_push(c);
    a = vector(c, 1);
    y = jot_add(jot_mul(p, jot_scalar(c, JOT_F64, 2)), jot_exp(a));
    y = jot_where(jot_gt(y, a), y, jot_clamp(a, 0, 1));
    jot_assign(p, jot_cast(y, JOT_F32));
    kept = jot_keep(jot_add(jot_param_of(y), jot_uniform(c, JOT_F16, JOT_SHAPE(2, 3))));
    jot_print_graph(c, JOT_VARS(kept));
    jot_free(a);
    jot_pop(c);
    return kept;
}

static void
test_refused(int no_simplify)
{
    long n;
    bool done = false;

    for (n = 1; !done && n < 5000; n++) {
        World w = {0};
        jot_Ctx *c;
        jot_Var v;
        long before;

        w.refuse_at = n;
        c = open_in(&w, no_simplify);
        if (!c)
            continue;
        v = script(c);
        done = w.asked < n;
        before = w.live;
        CHECK(jot_error(c) == (done ? JOT_OK : JOT_EMEM), "allocation %ld: %s", n, jot_message(c));
        CHECK(!done || jot_ok(v), "and a result");
        CHECK(c->table == NULL || c->loose.n == 0, "allocation %ld: nodes without owner", n);
        jot_clear(c);
        w.refuse_at = 0;
        if (c->table && c->backend) { /* and the context goes on */
            v = script(c);
            CHECK(jot_ok(v) && jot_error(c) == JOT_OK, "allocation %ld, then %s", n,
                  jot_message(c));
            CHECK(w.live >= before, "allocation %ld", n);
        }
        close_in(&w, c, "refused");
    }
    CHECK(done && n > 30, "%ld allocations", n);
}

int
main(void)
{
    test_questions();
    test_handles();
    test_scopes();
    test_scope_growth();
    test_sharing(0);
    test_sharing(1);
    test_table();
    test_chain();
    test_order();
    test_sweep();
    test_limits();
    test_assign_checks();
    test_assign_all();
    test_assign();
    test_to_leaf();
    test_text();
    test_more_text();
    test_refused(0);
    test_refused(1);
    return DONE();
}
