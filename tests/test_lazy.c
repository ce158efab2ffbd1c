/* tests/test_lazy.c - when work starts, what it keeps, and what is forgotten: fetches, the start by
 * itself, long programs within 64 MB, assignment, training loops that do not grow, closing.
 *
 * Guards: plan/eval.c, plan/fetch.c. */
#include "core.h"
#include "tests/test.h"

enum { MOST_NBYTES = 64 << 20 };

static size_t heap_live;

static void *
counting_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud;
    heap_live += new_nbytes - old_nbytes;
    if (new_nbytes)
        return realloc(p, new_nbytes);
    free(p);
    return NULL;
}

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.hooks.realloc = counting_realloc;
    heap_live = 0;
    return jot_open(&config);
}

/* Nothing is left, whatever was pending. */
static void
close_all(jot_Ctx *c)
{
    jot_close(c);
    CHECK(heap_live == 0, "%zu bytes left", heap_live);
}

static bool
have(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    bool ok = c && !jot_error(c);

    if (!ok)
        SKIP("backend %s: %s", backend, jot_message(c));
    jot_close(c);
    return ok;
}

static float
first(jot_Var v)
{
    const float *p = jot_data(v);

    return p ? p[0] : NAN;
}

/* ---- fetches ------------------------------------------------------------------------------ */

typedef struct { int n; float value[8]; jot_Var again; } Log;

static void
note(void *user, const jot_Tensor *value)
{
    Log *log = user;

    CHECK(value->dtype == JOT_F32 && value->shape.n == 1 && value->shape.v[0] == 3
          && value->nbytes == 12, "the tensor says what it is");
    log->value[log->n++ % 8] = ((const float *)value->data)[0];
}

static void
note_and_ask(void *user, const jot_Tensor *value)
{
    Log *log = user;

    note(user, value);
    CHECK(jot_fetch(log->again, note, log), "a callback may fetch");
}

static void
evil(void *user, const jot_Tensor *value)
{
    (void)value;
    jot_run(user, JOT_NONE_VARS);
}

static void
test_fetch(const char *backend)
{
    static const float ones[3] = {1, 2, 3};
    jot_Ctx *c = open_on(backend);
    Log log = {0};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), ones), y;

    jot_push(c);
    y = jot_scale(x, 2);
    CHECK(jot_fetch(y, note, &log) && jot_fetch(x, note, &log), "%s", jot_message(c));
    CHECK(jot_fetch(jot_scale(x, 3), note, &log) && jot_fetch(y, note, &log), "%s", jot_message(c));
    CHECK(!log.n, "at once");
    jot_pop(c); /* the fetches hold what they wait for */
    CHECK(jot_poll(c) && log.n == 4, "%d calls", log.n);
    CHECK(log.value[0] == 2 && log.value[1] == 1 && log.value[2] == 3 && log.value[3] == 2,
          "in the order of the fetches");
    CHECK(jot_poll(c) && log.n == 4, "called once");
    jot_fetch(jot_scale(x, 5), note, &log);
    CHECK(jot_item(jot_sum(x, JOT_ALL_DIMS)) == 6 && log.n == 5 && log.value[4] == 5,
          "any evaluation calls");
    log.again = x;
    jot_fetch(x, note_and_ask, &log);
    CHECK(jot_poll(c) && log.n == 6, "a fetch of a callback waits: %d", log.n);
    CHECK(jot_run(c, JOT_NONE_VARS) && log.n == 7, "for the next evaluation");
    CHECK(!jot_fetch(x, NULL, NULL) && jot_error(c) == JOT_EUSE, "no callback");
    jot_clear(c);
    CHECK(!jot_copy(x, NULL, (size_t)jot_nelem(x) * jot_dtype_nbytes(jot_dtype(x)))
              && jot_error(c) == JOT_EUSE, "no destination");
    jot_clear(c);
    jot_fetch(x, evil, c);
    jot_poll(c);
    CHECK(jot_error(c) == JOT_EUSE, "no evaluation inside of a callback");
    jot_clear(c);
    jot_fetch(jot_exp(x), note, &log);
    close_all(c);
    CHECK(log.n == 7, "a closed context calls nobody");
}

/* What cannot be computed fails every evaluation until it is dropped. */
static void
test_fetch_fails(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    Log log = {0};
    jot_Var x = jot_param(c, JOT_F32, JOT_SHAPE(3), NULL);

    jot_assign(x, jot_offset(x, 1));
    jot_fetch(jot_code_map("a + no_such_function(a)", JOT_VARS(x), JOT_F32, NULL), note, &log);
    jot_fetch(x, note, &log);
    CHECK(!jot_poll(c) && jot_error(c) && !log.n, "poll: %s", jot_message(c));
    CHECK(!jot_poll(c), "it waits");
    jot_clear(c);
    CHECK(jot_poll(c) && !log.n && !jot_error(c), "dropped: %s", jot_message(c));
    CHECK(first(x) == 0, "the assignment was withdrawn");
    CHECK(first(jot_offset(x, 2)) == 2, "the context goes on: %s", jot_message(c));
    close_all(c);
}

/* ---- the start by itself, long programs ------------------------------------------------------ */

/* A fetch shows when an evaluation happens. */
static void
test_start(const char *backend)
{
    static const float zeros[3] = {0};
    jot_Ctx *c = open_on(backend);
    Log log = {0};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), zeros);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), zeros);
    int k;

    jot_assign(p, jot_offset(p, 7)); /* two operators: the sum and the assignment */
    jot_fetch(x, note, &log);
    for (k = 0; k < JOT_START_NODES - 2; k++)
        x = jot_offset(x, 1 + k % 2);
    CHECK(!log.n, "%d operators wait", k + 2);
    x = jot_offset(x, 5);
    CHECK(log.n == 1, "one more begins");
    CHECK(first(p) == 7 && first(x) == 49149 + 5, "%g %g", (double)first(p), (double)first(x));
    close_all(c);
}

/* 90,000 dependent scalar operators, nothing asked before the end; handles freed or all alive. */
static void
test_long(const char *backend, bool alive)
{
    const int LONG = strcmp(backend, "interp") ? test_many(20000, 90000) : test_many(30000, 90000);
    jot_Ctx *c = open_on(backend);
    jot_Var x = jot_scalar(c, JOT_F32, 1), *y = malloc((size_t)(LONG + 1) * sizeof *y);
    int k;

    y[0] = jot_array(c, JOT_F32, JOT_SHAPE(), NULL);
    for (k = 1; k <= LONG; k++) {
        y[k] = jot_add(y[k - 1], x);
        if (!alive)
            jot_free(y[k - 1]);
    }
    CHECK(jot_item(y[LONG]) == LONG, "%s: %g %s", backend, jot_item(y[LONG]), jot_message(c));
    for (k = 1; alive && k <= LONG; k += 9999)
        CHECK(jot_item(y[k]) == k, "%s: %g of %d", backend, jot_item(y[k]), k);
    CHECK(jot_stats(c).peak_nbytes < MOST_NBYTES, "%s: %zu bytes", backend,
          jot_stats(c).peak_nbytes);
    close_all(c);
    free(y);
}

/* ---- assignment --------------------------------------------------------------------------- */

static void
test_assign(const char *backend)
{
    static const float start[3] = {1, 2, 3};
    jot_Ctx *c = open_on(backend);
    jot_Var p = jot_param(c, JOT_F32, JOT_SHAPE(3), start), q = jot_param_of(jot_scale(p, 4));
    jot_Var same = jot_stop_fuse(p), unread = jot_scale(p, 10), g, wrt[1];

    wrt[0] = p;
    jot_assign(p, jot_offset(p, 1));
    jot_assign(p, jot_offset(p, 1));
    CHECK(first(unread) == 10 && first(same) == 1, "old handles keep the old value");
    CHECK(first(p) == 3 && first(q) == 4, "%g %g", (double)first(p), (double)first(q));
    CHECK(jot_grad(jot_sum(unread, JOT_ALL_DIMS), jot_vars(1, wrt), &g) && first(g) == 0,
          "what was assigned is another leaf");
    CHECK(jot_grad(jot_sum(jot_scale(p, 10), JOT_ALL_DIMS), jot_vars(1, wrt), &g) && first(g) == 10,
          "leaf");
    CHECK(jot_assign(p, p) && first(p) == 3, "to itself");
    jot_assign(p, q);
    jot_assign(q, jot_neg(p));
    CHECK(first(q) == -4 && first(p) == 4, "in the order of the calls");
    jot_assign(p, jot_offset(p, 1));
    jot_free(p); /* nobody can read it any more */
    CHECK(jot_run(c, JOT_NONE_VARS) && !jot_ok(p), "%s", jot_message(c));
    CHECK(jot_set(q, start, sizeof start) && first(q) == 1 && jot_set(q, NULL, sizeof start)
          && first(q) == 0, "set");
    jot_assign(q, jot_offset(q, 1));
    jot_free(q);
    jot_push(c);
    q = jot_scale(unread, 2);
    jot_assign(q, unread); /* any handle takes assignments; scopes stay open */
    close_all(c);
}

/* ---- training ----------------------------------------------------------------------------- */

typedef struct { jot_Var x, y, p[4]; jot_Optim optim; } Net;

static Net
net_open(jot_Ctx *c, bool adam)
{
    Net n;
    int k;

    n.x = jot_keep(jot_normal(c, JOT_F32, JOT_SHAPE(8, 1)));
    n.y = jot_mul(n.x, n.x);
    n.p[0] = jot_param_of(jot_kaiming(c, JOT_F32, JOT_SHAPE(1, 10), 1));
    n.p[1] = jot_param(c, JOT_F32, JOT_SHAPE(10), NULL);
    n.p[2] = jot_param_of(jot_xavier(c, JOT_F32, JOT_SHAPE(10, 1), 10, 1));
    n.p[3] = jot_param(c, JOT_F32, JOT_SHAPE(1), NULL);
    for (k = 0; k < 4; k++)
        jot_name(n.p[k], "weight");
    n.optim = adam ? jot_adam(jot_vars(4, n.p), 0.01, 0.9, 0.999, 1e-8)
                   : jot_sgd(jot_vars(4, n.p), 0.01, 0.9, 1e-4);
    return n;
}

static bool
net_step(jot_Ctx *c, Net *n, bool look)
{
    jot_Var g[4], hidden, loss;
    bool ok;

    jot_push(c);
    hidden = jot_dropout(jot_tanh(jot_linear(n->x, n->p[0], n->p[1])), 0.1);
    loss = jot_mse(jot_linear(hidden, n->p[2], n->p[3]), n->y);
    ok = jot_grad(loss, jot_vars(4, n->p), g) && jot_step(n->optim, jot_vars(4, g));
    if (look)
        ok = ok && jot_item(loss) == jot_item(loss);
    jot_pop(c);
    return ok;
}

/* From the third step on a step leaves exactly what it found. */
static void
test_training(const char *backend, bool adam)
{
    jot_Ctx *c = open_on(backend);
    Net n = net_open(c, adam);
    jot_Stats at = {0}, now;
    int k;

    for (k = 0; k < 20; k++) {
        CHECK(net_step(c, &n, true), "step %d: %s", k, jot_message(c));
        now = jot_stats(c);
        if (k == 2)
            at = now;
        if (k > 2)
            CHECK(now.live_nodes == at.live_nodes && now.live_slots == at.live_slots
                  && now.live_nbytes == at.live_nbytes && now.plans == at.plans,
                  "%s step %d: %u nodes, %u slots, %zu bytes; %u, %u, %zu after step 2", backend, k,
                  now.live_nodes, now.live_slots, now.live_nbytes, at.live_nodes, at.live_slots,
                  at.live_nbytes);
    }
    CHECK(!adam || now.live_nodes < 40, "%u nodes", now.live_nodes);
    close_all(c);
}

/* A loop that never looks: history is cut by the start by itself. */
static void
test_blind_training(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    Net n = net_open(c, false);
    const int steps = test_many(600, 1500);
    int k;

    for (k = 0; k < steps; k++)
        if (!net_step(c, &n, false))
            break;
    CHECK(k == steps, "step %d: %s", k, jot_message(c));
    CHECK(jot_stats(c).live_nodes < JOT_START_NODES, "%u nodes", jot_stats(c).live_nodes);
    CHECK(jot_stats(c).peak_nbytes < MOST_NBYTES, "%s: %zu bytes", backend,
          jot_stats(c).peak_nbytes);
    CHECK(jot_run(c, JOT_NONE_VARS) && jot_stats(c).live_nodes < 40, "%u nodes after a look: %s",
          jot_stats(c).live_nodes, jot_message(c));
    close_all(c);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc"};
    int k;

    for (k = 0; k < 3; k++) {
        const char *b = backends[k];

        if ((argc > 1 && strcmp(argv[1], b)) || !have(b))
            continue;
        test_fetch(b);
        test_fetch_fails(b);
        test_start(b);
        if (k < test_many(2, 3)) {
            test_long(b, false);
            test_long(b, true);
        }
        test_assign(b);
        test_training(b, false);
        test_training(b, true);
        if (k < test_many(2, 3))
            test_blind_training(b);
    }
    return DONE();
}
