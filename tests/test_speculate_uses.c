/* tests/test_speculate_uses.c - what speculation stands on, and what breaks it: jot_begin and its
 * ends, captures; steps that fail, at each allocation too, and leave everything as it was; steps
 * that do not keep the rule, which stay imperative and say why; nested calls, freed handles,
 * bounds; drawn programs, replayed against run. test_speculate_uses N FIRST BACKEND draws.
 *
 * Guards: speculate/call.c, speculate/host.c, speculate/tree.c, plan/function/capture.c,
 * ops/assign.c, ops/slots.c. */
#include "speculate.h"
#include "tests/hooks.h"
#include "tests/test.h"

static jot_Ctx *
open_on(const char *backend, Heap *heap)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .seed = 3,
                         .give_back = heap != NULL, .hooks.log = keep_log};

    if (heap)
        config.hooks.realloc = heap_realloc;
    if (heap)
        config.hooks.ud = heap;
    if (heap)
        config.hooks.log = NULL;
    return jot_open(&config);
}

static void
fails(jot_Ctx *c, bool ok, jot_Status status, const char *text)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), text), "%s asked, %d found: %s",
          text, jot_error(c), jot_message(c));
    jot_clear(c);
}

static float
value(jot_Var v)
{
    return (float)jot_item(v);
}

/* ---- begin, commit, rollback ----------------------------------------------------------------- */

static void
transactions(const char *backend)
{
    static const float one = 1, two = 2;
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var a = jot_param(c, JOT_F32, JOT_SHAPE(), &one), b = jot_param(c, JOT_F32, JOT_SHAPE(),
                                                                       &two), x, late;
    jot_RandomState was;
    jot_Func f;

    x = jot_array(c, JOT_F32, JOT_SHAPE(), &two);
    jot_assign(b, jot_add(b, x));
    f = jot_compile(c, JOT_VARS(x), JOT_NONE_VARS);
    jot_assign(a, jot_offset(a, 1)); /* pending: of before */
    was = jot_random_state(c);
    CHECK(jot_begin(c), "%s", jot_message(c));
    fails(c, jot_begin(c), JOT_EUSE, "another jot_begin");
    for (int k = 0; k < 3; k++) {
        jot_assign(a, jot_add(a, jot_uniform(c, JOT_F32, JOT_SHAPE())));
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        CHECK(jot_call(f, JOT_INS(JOT_IN(&one, sizeof one)), JOT_NONE_OUTS), "%s", jot_message(c));
    }
    late = jot_param(c, JOT_F32, JOT_SHAPE(), &one);
    jot_assign(late, a);
    jot_assign(b, a); /* and this never runs */
    CHECK(value(a) != 2, "%g", value(a));
    jot_assign(a, b);
    jot_rollback(c);
    CHECK(value(a) == 2 && value(b) == 2 && value(late) == 1, "rolled back: %g %g %g", value(a),
          value(b), value(late));
    CHECK(jot_random_state(c).k == was.k, "the generator");
    jot_rollback(c), jot_commit(c); /* nothing */
    CHECK(jot_begin(c), "%s", jot_message(c));
    CHECK(jot_call(f, JOT_INS(JOT_IN(&one, sizeof one)), JOT_NONE_OUTS), "%s", jot_message(c));
    jot_assign(a, jot_reshape(jot_zeros(c, JOT_F32, JOT_SHAPE(3)), JOT_SHAPE())); /* fails */
    CHECK(jot_error(c) == JOT_ESHAPE, "%s", jot_message(c));
    jot_rollback(c);
    jot_clear(c);
    CHECK(value(b) == 2, "after a failure: %g", value(b));
    jot_begin(c);
    jot_assign(late, b);
    jot_free(late);
    jot_assign(b, jot_offset(b, 5));
    jot_run(c, JOT_NONE_VARS);
    jot_commit(c);
    CHECK(value(b) == 7 && !jot_error(c), "committed: %g, %s", value(b), jot_message(c));
    jot_begin(c);
    jot_assign(b, jot_offset(b, 5));
    jot_close(c); /* in the middle */
}

/* ---- captures -------------------------------------------------------------------------------- */

/* The function of an evaluation does it again; what cannot be one says why, and runs. */
static void
captures(const char *backend)
{
    static const float one = 1, ten = 10;
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var w = jot_param(c, JOT_F32, JOT_SHAPE(), &one), z = jot_param(c, JOT_F32, JOT_SHAPE(),
                                                                       &one), x, y, old, outside;
    jot_Capture how;
    jot_Func f;
    uint64_t hash;
    float out = 0;

    for (int k = 0; k < 2; k++) {
        jot_capture_begin(c, &how);
        x = jot_array(c, JOT_F32, JOT_SHAPE(), &ten);
        y = jot_mul(x, w);
        jot_assign(w, jot_offset(w, 1));
        jot_assign(z, jot_array(c, JOT_F32, JOT_SHAPE(), &one)); /* of every call */
        CHECK(jot_capture(c, JOT_VARS(x), JOT_VARS(y), &how, &f), "%s", jot_message(c));
        CHECK(jot_func_ok(f) && !how.why[0] && value(y) == 10 + 10.f * (float)k, "%s: %g", how.why,
              value(y));
        CHECK(!k || how.hash == hash, "the same evaluation");
        hash = how.hash;
    }
    jot_set(z, &ten, sizeof ten);
    CHECK(jot_call(f, JOT_INS(JOT_IN(&one, sizeof one)), JOT_OUTS(JOT_OUT(&out, sizeof out)))
          && out == 3 && value(w) == 4 && value(z) == 1, "%g %g %g: %s", out, value(w), value(z),
          jot_message(c));
    jot_capture_begin(c, &how);
    x = jot_array(c, JOT_F32, JOT_SHAPE(), &one);
    CHECK(jot_capture(c, JOT_VARS(x), JOT_VARS(jot_mul(x, w)), &how, NULL) && how.hash != hash,
          "another evaluation");
    old = jot_stop_grad(w);
    y = jot_mul(w, x);
    jot_assign(w, jot_offset(w, 1));
    CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
    CHECK(jot_capture(c, JOT_VARS(x), JOT_VARS(jot_add(y, w)), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "something ran"), "%s", how.why);
    CHECK(jot_capture(c, JOT_VARS(x), JOT_VARS(jot_add(old, w)), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "between two"), "%s", how.why);
    outside = jot_uniform(c, JOT_F32, JOT_SHAPE());
    y = jot_mul(w, w);
    jot_push(c);
    jot_capture_begin(c, &how);
    CHECK(jot_capture(c, JOT_NONE_VARS, JOT_VARS(jot_add(y, w)), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "an expression from before"), "%s", how.why);
    CHECK(jot_capture(c, JOT_NONE_VARS, JOT_VARS(jot_add(outside, w)), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "from before"), "%s", how.why);
    x = jot_param_of(w);
    CHECK(jot_capture(c, JOT_NONE_VARS, JOT_VARS(jot_add(x, w)), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "begins in it"), "%s", how.why);
    jot_seed(c, 9);
    CHECK(jot_capture(c, JOT_NONE_VARS, JOT_VARS(jot_neg(w)), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "generator"), "%s", how.why);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_pop(c);
    jot_close(c);
}

/* What a variable was at jot_begin is read by its slot; where another variable has that by now, it
 * is not. */
static void
gone(const char *backend)
{
    static const float four[] = {1, 2, 3, 4};
    jot_Ctx *c = open_on(backend, NULL);
    jot_Var x = jot_param(c, JOT_F32, JOT_SHAPE(4), four), old, y, other;
    jot_Capture how;
    jot_Func f;

    CHECK(jot_run(c, JOT_VARS(x)) && jot_begin(c), "%s", jot_message(c));
    old = jot_dup(x);
    CHECK(jot_assign(x, jot_offset(x, 10)) && jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
    jot_capture_begin(c, &how);
    y = jot_scale(old, 2);
    jot_free(x);
    other = jot_param(c, JOT_F32, JOT_SHAPE(1), four);
    CHECK(other.slot == x.slot, "the next variable has another slot: this tests nothing");
    CHECK(jot_capture(c, JOT_NONE_VARS, JOT_VARS(y), &how, &f) && !jot_func_ok(f)
          && strstr(how.why, "between two"), "%s, %s", how.why, jot_message(c));
    jot_rollback(c);
    jot_close(c);
}

/* ---- a step and what it must leave as it was ------------------------------------------------- */

typedef struct {
    jot_Var w, m;
    jot_Optim optim;
    const float *x;
    int32_t n, fail, nested;
    float bound, loss, twice;
    int64_t calls;
    jot_Spec self, other;
} Work;

static const float rows[12] = {.5f, -1, 2, .25f, -.5f, 1, .75f, -.25f, .125f, 1, -2, .5f};
static int untold; /* of the host, and no jot_host_ reads it */

static void
work_open(jot_Ctx *c, Work *w)
{
    memset(w, 0, sizeof *w);
    w->w = jot_param(c, JOT_F32, JOT_SHAPE(3), rows);
    w->m = jot_param(c, JOT_F32, JOT_SHAPE(), NULL);
    w->optim = jot_adam(JOT_VARS(w->w), .01, .9, .999, 1e-8);
    w->x = rows;
    w->n = 4;
    w->bound = .1f;
}

static void
counted(void *user)
{
    ((Work *)user)->calls++;
}

static bool
work(jot_Host *h, void *user)
{
    Work *w = user;
    int64_t n = jot_host_int(h, JOT_I32, &w->n);
    const float *p = jot_host_pointer(h, &w->x, (size_t)n * 3 * sizeof *p);
    jot_Var x = jot_host_array(h, JOT_F32, JOT_SHAPE(n, 3), p), g;
    jot_Var loss = jot_mean(jot_square(jot_dropout(jot_mul(x, w->w), .2)), JOT_ALL_DIMS);

    jot_grad(loss, JOT_VARS(w->w), &g);
    jot_step(w->optim, JOT_VARS(g));
    if (jot_host_test(h, jot_gt(loss, jot_host_number(h, JOT_F32, &w->bound))))
        jot_assign(w->m, jot_add(w->m, loss));
    else
        jot_host_put(h, jot_scale(loss, 2), &w->twice, sizeof w->twice);
    if (jot_host_int(h, JOT_I32, &w->fail) == 1)
        return false;
    if (w->fail == 2)
        jot_matmul(x, x);
    if (w->fail == 3)
        return jot_host_put(h, loss, &w->loss, 5);
    jot_host_after(h, counted);
    return jot_host_put(h, loss, &w->loss, sizeof w->loss);
}

typedef struct { float w[3], m, loss, twice; jot_RandomState at; int64_t calls; } Seen;

static Seen
see(jot_Ctx *c, const Work *w)
{
    Seen s;

    memset(&s, 0, sizeof s);
    jot_copy(w->w, s.w, sizeof s.w);
    jot_copy(w->m, &s.m, sizeof s.m);
    s.loss = w->loss;
    s.twice = w->twice;
    s.at = jot_random_state(c);
    s.calls = w->calls;
    return s;
}

static bool
as_was(const Seen *a, const Seen *b)
{
    return !memcmp(a, b, sizeof *a);
}

/* Steps that fail after their first updates ran: run and replayed, nothing has changed. */
static void
failures(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    Work w;
    Seen was, is;
    jot_Spec s;

    work_open(c, &w);
    s = jot_speculate(c, work, sizeof w, NULL);
    for (int k = 0; k < 12; k++) {
        w.fail = k % 4;
        was = see(c, &w);
        CHECK(jot_spec_call(s, &w) == !w.fail, "%s", jot_message(c));
        CHECK(jot_error(c) == (w.fail < 2 ? JOT_OK : JOT_ESHAPE), "%s", jot_message(c));
        jot_clear(c);
        is = see(c, &w);
        CHECK(as_was(&was, &is) == (w.fail != 0), "call %d, fail %d: %g %g, %g %g", k, w.fail,
              was.w[0], was.loss, is.w[0], is.loss);
    }
    CHECK(w.calls == 3 && jot_spec_stats(s).calls == 3, "%d", (int)w.calls);
    CHECK(!jot_spec_call(s, NULL), "a call of nothing");
    fails(c, false, JOT_EUSE, "user is NULL");
    jot_raise(c, JOT_EUSE, "of the program");
    CHECK(!jot_spec_call(s, &w), "after a failure");
    jot_clear(c);
    jot_begin(c);
    fails(c, jot_spec_call(s, &w), JOT_EUSE, "another jot_begin");
    jot_rollback(c);
    jot_close(c);
}

/* The n-th allocation of some calls is refused, for every n: each call did all or nothing. */
static void
memory(const char *backend, int every)
{
    enum { CALLS = 8 };
    Seen want[CALLS + 1], is;
    int refused = 0, n;

    for (n = 0; n == 0 || refused; n += n ? every : 1) {
        Heap heap = {0};
        jot_Ctx *c = open_on(backend, &heap);
        jot_Spec s;
        Work w;

        work_open(c, &w);
        jot_run(c, JOT_VARS(w.w, w.m));
        s = jot_speculate(c, work, sizeof w, NULL);
        heap.refused = 0;
        heap.countdown = n;
        for (int k = 0; k < CALLS; k++) {
            w.n = k == 6 ? 2 : 4;
            w.bound = k == 5 ? 100 : .1f;
            if (!jot_spec_call(s, &w)) {
                CHECK(jot_error(c) == JOT_EMEM, "%s, allocation %d: %s", backend, n,
                      jot_message(c));
                jot_clear(c);
                is = see(c, &w);
                CHECK(as_was(&is, &want[k]), "%s, allocation %d refused: %g %g, %g %g", backend, n,
                      is.w[0], is.loss, want[k].w[0], want[k].loss);
                CHECK(jot_spec_call(s, &w), "%s", jot_message(c));
            }
            is = see(c, &w);
            if (!n) {
                want[0] = k ? want[0] : is;
                want[k + 1] = is;
            }
            CHECK(!n || as_was(&is, &want[k + 1]), "%s, allocation %d, call %d: %g, %g", backend, n,
                  k, is.loss, want[k + 1].loss);
        }
        if (!n) { /* what is there before the first call */
            Work fresh;
            jot_Ctx *d = open_on(backend, NULL);

            work_open(d, &fresh);
            want[0] = see(d, &fresh);
            jot_close(d);
        }
        refused = n ? (int)heap.refused : 1;
        jot_close(c);
        CHECK(!heap.live, "%zu bytes are left", heap.live);
    }
    CHECK(n > 100, "%d allocations", n);
}

/* ---- steps that do not keep the rule --------------------------------------------------------- */

static void
no_fetch(void *user, const jot_Tensor *value)
{
    (void)user, (void)value;
}

static jot_Var held[2]; /* by `fail` */

/* Each breaks it in one way, chosen by `nested`, and must be right all the same. */
static bool
breaking(jot_Host *h, void *user)
{
    Work *w = user;
    jot_Ctx *c = jot_host_ctx(h);
    jot_Var y = jot_add(w->m, jot_scalar(c, JOT_F32, 1)), kept;
    float two = (float)untold;

    switch (w->nested) {
    case 0: y = jot_scale(y, untold); break;                              /* a literal */
    case 1: y = jot_add(y, jot_array(c, JOT_F32, JOT_SHAPE(), &two)); break;
    case 2: y = untold % 2 ? jot_neg(y) : jot_add(y, y); break;           /* another graph */
    case 3:                                                               /* another question */
        if (untold % 2)
            jot_host_int(h, JOT_I32, &w->n);
        else
            jot_host_int(h, JOT_I32, &w->fail);
        break;
    case 4: y = jot_scale(y, jot_item(jot_add(w->m, w->m)) + 1); break;   /* asked otherwise */
    case 5: w->twice = 7 + (float)untold; break;
    case 6: kept = jot_keep(jot_add(y, y)), (void)kept; break;
    case 7:
        jot_seed(c, 5);
        y = jot_add(y, jot_uniform(c, JOT_F32, JOT_SHAPE()));
        break;
    case 8: y = jot_add(y, jot_param_of(y)); break;
    case 9: jot_fetch(y, no_fetch, NULL); break;
    case 10:
        kept = jot_array(c, JOT_F32, JOT_SHAPE(), rows);
        jot_assign(kept, jot_add(kept, y));
        y = jot_mul(y, kept);
        break;
    case 11: /* one from before for a new one */
        if (jot_ok(held[w->fail]))
            jot_free(held[w->fail]);
        held[w->fail] = jot_keep(jot_exp(y));
        break;
    default: break;
    }
    jot_assign(w->m, jot_clamp(y, -9, 9));
    return jot_host_put(h, w->m, &w->loss, sizeof w->loss);
}

static void
rule(const char *backend)
{
    static const char *const why[] = {
        "another graph or literal", "another graph or literal", "another graph or literal",
        "another question", "something ran", "wrote to *user", "outlive", "from before", "outlive",
        "a fetch", "ends with it", "1 from before were freed"
    };

    memset(held, 0, sizeof held);
    for (int k = 0; k < 12; k++) {
        jot_Ctx *c[2] = {open_on(backend, NULL), open_on(backend, NULL)};
        jot_Spec s, plain;
        Work w[2];

        for (int i = 0; i < 2; i++) {
            work_open(c[i], &w[i]);
            w[i].nested = k;
            w[i].fail = i;
        }
        s = jot_speculate(c[0], breaking, sizeof *w, NULL);
        for (untold = 0; untold < 8; untold++) {
            CHECK(jot_spec_call(s, &w[0]), "%s", jot_message(c[0]));
            plain = jot_speculate(c[1], breaking, sizeof *w, NULL);
            CHECK(jot_spec_call(plain, &w[1]), "%s", jot_message(c[1]));
            jot_spec_free(plain);
            CHECK(w[0].loss == w[1].loss && value(w[0].m) == value(w[1].m), "way %d, call %d: %g "
                  "%g", k, untold, w[0].loss, w[1].loss);
        }
        CHECK(jot_spec_stats(s).replays == 0 && strstr(jot_spec_why(s), why[k]),
              "way %d: %d replays, why: %s", k, (int)jot_spec_stats(s).replays, jot_spec_why(s));
        for (int i = 0; i < 2; i++)
            jot_close(c[i]);
    }
}

/* What a handle from before names is read by it: an array, or what was evaluated (nested), may be
 * set or assigned between the calls. */
static jot_Var outside;

static bool
reading(jot_Host *h, void *user)
{
    Work *w = user;

    return jot_host_put(h, jot_add(w->m, outside), &w->loss, sizeof w->loss);
}

static void
arrays(const char *backend)
{
    static const float five = 5;

    for (int k = 0; k < 4; k++) {
        jot_Ctx *c = open_on(backend, NULL);
        jot_Spec s, s2;
        Work w;

        work_open(c, &w);
        outside = k & 1 ? jot_offset(w.m, 1) : jot_array(c, JOT_F32, JOT_SHAPE(), rows);
        CHECK(jot_run(c, JOT_VARS(outside)), "%s", jot_message(c));
        s = jot_speculate(c, reading, sizeof w, NULL);
        for (int call = 0; call < 6; call++) {
            if (call == 4 && k & 2)
                jot_set(outside, &five, sizeof five);
            else if (call == 4)
                jot_assign(outside, jot_offset(outside, 7));
            CHECK(jot_spec_call(s, &w) && w.loss == value(outside), "way %d, call %d: %g, %g: %s",
                  k, call, w.loss, value(outside), jot_spec_why(s));
        }
        jot_free(outside);
        outside = jot_offset(w.m, 3);
        CHECK(jot_run(c, JOT_VARS(outside)), "%s", jot_message(c));
        outside = k & 1 ? jot_reshape(outside, JOT_SHAPE()) : jot_dup(outside); /* two of them */
        s2 = jot_speculate(c, reading, sizeof w, NULL);
        for (int call = 0; call < 3; call++)
            CHECK(jot_spec_call(s2, &w), "%s", jot_message(c));
        CHECK(strstr(jot_spec_why(s2), "several handles"), "%s", jot_spec_why(s2));
        CHECK(jot_spec_stats(s).replays == 4, "way %d: %d replays: %s", k,
              (int)jot_spec_stats(s).replays, jot_spec_why(s));
        jot_close(c);
    }
}

/* ---- nested, freed, foreign ------------------------------------------------------------------ */

static bool
inner(jot_Host *h, void *user)
{
    Work *w = user;

    return jot_host_put(h, w->m, &w->loss, sizeof w->loss);
}

/* Its own step is neither called nor freed by what it has called after it. */
static void
again(void *user)
{
    Work *w = user;

    w->calls += jot_spec_call(w->self, user);
    fails(w->m.ctx, false, JOT_EUSE, "spec_call: called from within its own call");
    jot_spec_free(w->self);
    fails(w->m.ctx, false, JOT_EUSE, "spec_free: called from within its own call");
    w->calls += 10;
}

static bool
with_after(jot_Host *h, void *user)
{
    return jot_host_after(h, again) && jot_host_after(h, counted) && inner(h, user);
}

static void
afters(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    Work w;

    work_open(c, &w);
    w.self = jot_speculate(c, with_after, sizeof w, NULL);
    for (int k = 1; k < 6; k++)
        CHECK(jot_spec_call(w.self, &w) && w.calls == 11 * k, "call %d: %d: %s", k, (int)w.calls,
              jot_message(c));
    CHECK(jot_spec_stats(w.self).replays == 3, "%d replays", (int)jot_spec_stats(w.self).replays);
    jot_spec_free(w.self);
    CHECK(!jot_spec_ok(w.self) && !jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static bool
outer(jot_Host *h, void *user)
{
    Work *w = user;
    Work *to = jot_host_pointer(h, &w->x, 0) ? NULL : w;

    if (jot_host_int(h, JOT_I32, &w->nested) == 1)
        return jot_spec_call(w->self, user);
    if (w->nested == 2)
        return jot_spec_call(w->other, user);
    if (w->nested == 3)
        jot_spec_free(w->self);
    if (w->nested == 4)
        jot_host_int(h, JOT_I32, &untold);
    if (w->nested == 5)
        jot_host_int(h, JOT_F32, &w->bound);
    if (w->nested == 6)
        jot_host_int(h, JOT_I64, (char *)(w + 1) - 4);
    if (w->nested == 7)
        jot_host_test(h, w->w);
    if (w->nested == 8)
        jot_host_choose(h, NULL);
    if (w->nested == 9)
        jot_host_after(h, NULL);
    if (w->nested == 10 || w->nested == 12)
        jot_commit(jot_host_ctx(h));
    if (w->nested == 11)
        jot_rollback(jot_host_ctx(h));
    if (w->nested == 12)
        jot_begin(jot_host_ctx(h));
    return to == NULL;
}

static void
handles(const char *backend)
{
    static const char *const text[] = {
        "from within its own call", "another jot_begin", "from within its own call",
        "an address elsewhere", "bool to u64", "an address elsewhere", "3 elements", "fn is NULL",
        "fn is NULL", "all or nothing", "all or nothing", "all or nothing"
    };
    jot_Ctx *c = open_on(backend, NULL), *d = open_on(backend, NULL);
    jot_Spec empty = {{0}, NULL}, s;
    jot_SpecHow how = {-1, 0, false};
    Work w, v;

    work_open(c, &w);
    work_open(d, &v);
    s = w.self = jot_speculate(c, outer, sizeof w, NULL);
    w.other = jot_speculate(c, inner, sizeof w, NULL);
    for (w.nested = 1; w.nested < 13; w.nested++) {
        fails(c, jot_spec_call(s, &w), w.nested == 5 ? JOT_EDTYPE : w.nested == 7 ? JOT_ESHAPE
                                                                                  : JOT_EUSE,
              text[w.nested - 1]);
        CHECK(strstr(jot_spec_why(s), text[w.nested - 1]), "why: %s", jot_spec_why(s));
    }
    w.nested = 0;
    fails(c, jot_spec_ok(jot_speculate(c, outer, SIZE_MAX - 8, NULL)), JOT_EMEM, "no memory for");
    CHECK(!jot_spec_call(w.other, NULL) && strstr(jot_spec_why(w.other), "user is NULL"), "%s",
          jot_spec_why(w.other));
    jot_clear(c);
    CHECK(jot_spec_call(w.other, &w) && jot_spec_call(w.other, &w) && jot_spec_call(w.other, &w)
          && jot_spec_stats(w.other).replays == 1, "%s", jot_message(c));
    v.other = jot_speculate(d, inner, sizeof v, NULL); /* side by side with another's */
    CHECK(jot_spec_call(v.other, &v) && jot_spec_call(w.other, &w), "%s", jot_message(d));
    w.m = v.m; /* another context's */
    CHECK(jot_spec_call(w.other, &w), "a replay does not see the handle: %s", jot_message(c));
    jot_spec_free(w.other);
    CHECK(!jot_spec_ok(w.other) && !jot_spec_call(w.other, &w), "freed");
    fails(c, false, JOT_EHANDLE, "spec_call: s is a stale handle");
    jot_spec_free(empty);
    CHECK(!jot_spec_call(empty, &w) && !jot_spec_ok(empty) && !jot_spec_stats(empty).calls
          && !*jot_spec_why(empty) && !jot_spec_print(empty), "an empty handle");
    empty = jot_speculate(c, NULL, 0, NULL);
    fails(c, jot_spec_ok(empty), JOT_EUSE, "speculate: fn is NULL");
    empty = jot_speculate(c, inner, 0, &how);
    fails(c, jot_spec_ok(empty), JOT_EUSE, "speculate: at least 0");
    jot_spec_free(empty);
    CHECK(jot_host_int(NULL, JOT_I32, &untold) == 0 && !jot_host_ctx(NULL), "no run");
    jot_close(c);
    jot_close(d);
}

/* A variable that a function reads ends; the step has another. */
static void
freed(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    Work w;
    jot_Spec s;

    work_open(c, &w);
    s = jot_speculate(c, inner, sizeof w, NULL);
    for (int k = 0; k < 4; k++)
        CHECK(jot_spec_call(s, &w), "%s", jot_message(c));
    CHECK(jot_spec_stats(s).replays == 2, "%d", (int)jot_spec_stats(s).replays);
    jot_free(w.m);
    w.m = jot_param(c, JOT_F32, JOT_SHAPE(), rows);
    CHECK(jot_spec_call(s, &w) && w.loss == .5f && strstr(jot_spec_why(s), "was freed"), "%g: %s, "
          "%s", w.loss, jot_message(c), jot_spec_why(s));
    for (int k = 0; k < 4; k++)
        CHECK(jot_spec_call(s, &w) && w.loss == .5f, "%s", jot_message(c));
    CHECK(jot_spec_stats(s).replays > 3, "%d", (int)jot_spec_stats(s).replays);
    jot_close(c);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static bool
sized(jot_Host *h, void *user)
{
    Work *w = user;
    int64_t n = jot_host_int(h, JOT_I32, &w->n);
    jot_Var y = jot_sum(jot_mul(jot_iota(jot_host_ctx(h), JOT_F32, JOT_SHAPE(n), 0), w->m),
                        JOT_ALL_DIMS);

    return jot_host_put(h, y, &w->loss, sizeof w->loss);
}

/* What was not used for longest goes: functions first, then the questions. */
static void
bounds(const char *backend)
{
    jot_SpecHow how = {4, 40, false};
    jot_Ctx *c = open_on(backend, NULL);
    Work w;
    jot_Spec s;
    jot_SpecStats is;

    work_open(c, &w);
    w.m = jot_param(c, JOT_F32, JOT_SHAPE(), rows);
    s = jot_speculate(c, sized, sizeof w, &how);
    for (int k = 0; k < 4 * 60; k++) {
        w.n = k % 4 == 0 ? 3 : 4 + k / 12;
        CHECK(jot_spec_call(s, &w) && w.loss == .5f * (float)(w.n * (w.n - 1) / 2), "%g: %s",
              w.loss, jot_message(c));
        is = jot_spec_stats(s);
        CHECK(is.live <= 4 && is.answers <= 40, "%u functions, %u answers", is.live, is.answers);
    }
    CHECK(is.functions > 15 && is.dropped >= is.functions - 4 && is.replays > 100, "%d made, %d "
          "dropped, %d replays", (int)is.functions, (int)is.dropped, (int)is.replays);
    w.n = 3;
    CHECK(jot_spec_call(s, &w) && !*jot_spec_why(s), "what is used stays: %s", jot_spec_why(s));
    forget_log();
    CHECK(jot_spec_print(s) && count_logged("end, a function") == 4 && count_logged("put of block")
          && count_logged("speculation: "), "%s", logged);
    jot_spec_free(s);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

static bool
looking(jot_Host *h, void *user)
{
    Work *w = user;
    double sum = jot_host_item(h, w->m);

    jot_assign(w->m, jot_offset(w->m, 1)); /* and so another answer the next time */
    return jot_host_put(h, jot_scalar(jot_host_ctx(h), JOT_F32, sum), &w->loss, sizeof w->loss);
}

/* A function whose answer is always another is called in vain some times, and then no more. */
/* A value that is always new: the tree stops growing, and what it knows goes on being known. */
static bool
clocked(jot_Host *h, void *user)
{
    Work *w = user;
    double by = jot_host_float(h, JOT_F32, &w->bound);

    return jot_host_put(h, jot_offset(w->m, by), &w->loss, sizeof w->loss);
}

static void
always_new(const char *backend)
{
    enum { CALLS = 600 };
    jot_Ctx *c = open_on(backend, NULL);
    uint32_t answers = 0;
    jot_Spec s;
    Work w;

    work_open(c, &w);
    s = jot_speculate(c, clocked, sizeof w, NULL);
    for (int k = 0; k < CALLS; k++) {
        w.bound = (float)k;
        CHECK(jot_spec_call(s, &w) && w.loss == w.bound, "call %d: %g: %s", k, w.loss,
              jot_message(c));
        answers = k == CALLS / 2 ? jot_spec_stats(s).answers : answers;
    }
    CHECK(answers > 256 && jot_spec_stats(s).answers == answers, "%u answers, %u", answers,
          jot_spec_stats(s).answers);
    CHECK(strstr(jot_spec_why(s), "new too often"), "%s", jot_spec_why(s));
    for (int k = 0; k < 3; k++) {
        w.bound = 7;
        CHECK(jot_spec_call(s, &w) && w.loss == 7, "%s", jot_message(c));
    }
    CHECK(jot_spec_stats(s).replays > 0 && !*jot_spec_why(s), "%d replays, %s",
          (int)jot_spec_stats(s).replays, jot_spec_why(s));
    jot_close(c);
}

static void
in_vain(const char *backend)
{
    jot_Ctx *c = open_on(backend, NULL);
    Work w;
    jot_Spec s;
    uint64_t wrong = 0;

    work_open(c, &w);
    s = jot_speculate(c, looking, sizeof w, NULL);
    for (int k = 0; k < 60; k++) {
        CHECK(jot_spec_call(s, &w) && w.loss == (float)k, "%g: %s", w.loss, jot_message(c));
        wrong = k == 40 ? jot_spec_stats(s).wrong : wrong;
    }
    CHECK(wrong > 4 && jot_spec_stats(s).wrong == wrong && strstr(jot_spec_why(s), "too often"),
          "%d in vain, then %d: %s", (int)wrong, (int)jot_spec_stats(s).wrong, jot_spec_why(s));
    jot_close(c);
}

/* ---- drawn programs -------------------------------------------------------------------------- */

enum { CODE = 12, STACK = 6, STATES = 3, DRAWN_CALLS = 14 };
typedef struct { uint8_t op, a, b; } Ins;
typedef struct {
    jot_Var state[STATES];
    const float *x;
    int32_t times, mode;
    double number;
    float bound, out[4][2];
    Ins code[CODE]; /* which stays as it is: the program */
} Drawn;

static uint64_t drawn_seed;

static uint32_t
drawn(uint32_t most)
{
    drawn_seed = drawn_seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(drawn_seed >> 33) % most;
}

static int64_t
drawn_mode(void *user)
{
    return ((const Drawn *)user)->mode % 2;
}

/* One instruction on the stack v, of pairs; how many of the next are passed over. */
static int
drawn_one(jot_Host *h, Drawn *d, Ins i, jot_Var v[STACK])
{
    jot_Var a = v[i.a % STACK], b = v[i.b % STACK], *to = &v[(i.a + i.b) % STACK], g;
    jot_Ctx *c = jot_host_ctx(h);
    int64_t n;

    switch (i.op) {
    case 0: *to = jot_tanh(jot_add(a, b)); return 0;
    case 1: *to = jot_mul(a, jot_cast(jot_host_number(h, JOT_F64, &d->number), JOT_F32)); return 0;
    case 2: jot_assign(d->state[i.a % STATES], b); return 0;
    case 3: *to = d->state[i.b % STATES]; return 0;
    case 4: *to = jot_add(a, jot_uniform(c, JOT_F32, JOT_SHAPE(2))); return 0;
    case 5: return jot_host_test(h, jot_gt(jot_sum(a, JOT_ALL_DIMS), jot_sum(b, JOT_ALL_DIMS))) ? 2
                                                                                                : 0;
    case 6:
        for (n = jot_host_int(h, JOT_I32, &d->times); n > 0; n--)
            *to = a = jot_sub(a, jot_scale(b, .25));
        return 0;
    case 7: *to = jot_scale(a, (double)jot_host_item_int(h, jot_argmax(b, JOT_ALL_DIMS)) + .5);
        return 0;
    case 8: return (int)jot_host_choose(h, drawn_mode);
    case 9:
        jot_grad(jot_sum(jot_square(jot_mul(a, d->state[i.b % STATES])), JOT_ALL_DIMS),
                 JOT_VARS(d->state[i.b % STATES]), &g);
        jot_assign(d->state[i.b % STATES], jot_tanh(jot_sub(d->state[i.b % STATES],
                                                            jot_scale(g, .1))));
        return 0;
    case 10: jot_host_put(h, a, d->out[i.b % 4], sizeof d->out[0]); return 0;
    default:
        *to = jot_host_array(h, JOT_F32, JOT_SHAPE(2), jot_host_pointer(h, &d->x, 8));
        return 0;
    }
}

static bool
drawn_step(jot_Host *h, void *user)
{
    Drawn *d = user;
    jot_Var v[STACK];

    for (int k = 0; k < STACK; k++)
        v[k] = k % 2 ? d->state[k % STATES]
                     : jot_host_array(h, JOT_F32, JOT_SHAPE(2), jot_host_pointer(h, &d->x, 8));
    for (int k = 0; k < CODE && !jot_error(jot_host_ctx(h)); k++)
        k += drawn_one(h, d, d->code[k], v);
    return jot_host_put(h, v[0], d->out[0], sizeof d->out[0]);
}

/* A program, replayed and run; how often it was replayed. */
static int
drawn_program(const char *backend, uint64_t seed)
{
    static const float x[8] = {.5f, -.25f, 1, .75f, -1, .125f, .3f, -.6f};
    jot_Ctx *c[2] = {open_on(backend, NULL), open_on(backend, NULL)};
    Drawn d[2];
    jot_Spec s, plain;
    int replays;

    drawn_seed = seed * 977 + 1;
    memset(d, 0, sizeof d);
    for (int k = 0; k < CODE; k++)
        d[0].code[k] = (Ins){(uint8_t)drawn(12), (uint8_t)drawn(64), (uint8_t)drawn(64)};
    d[1] = d[0];
    for (int k = 0; k < 2 * STATES; k++)
        d[k / STATES].state[k % STATES] = jot_param(c[k / STATES], JOT_F32, JOT_SHAPE(2),
                                                    x + k % STATES);
    s = jot_speculate(c[0], drawn_step, sizeof *d, NULL);
    for (int k = 0; k < DRAWN_CALLS; k++) {
        d[0].x = x + drawn(4);
        d[0].times = (int32_t)(drawn(6) == 0);
        d[0].mode = (int32_t)(drawn(4) == 0);
        d[0].number = k < 5 ? .5 : .25 * drawn(4);
        d[1].x = d[0].x, d[1].times = d[0].times, d[1].mode = d[0].mode, d[1].number = d[0].number;
        plain = jot_speculate(c[1], drawn_step, sizeof *d, NULL);
        CHECK(jot_spec_call(s, &d[0]) && jot_spec_call(plain, &d[1]), "%s, program %d, call %d: "
              "%s%s", backend, (int)seed, k, jot_message(c[0]), jot_message(c[1]));
        jot_spec_free(plain);
        CHECK(!memcmp(d[0].out, d[1].out, sizeof d[0].out), "%s, program %d, call %d (%s): %g %g",
              backend, (int)seed, k, jot_spec_why(s), d[0].out[0][0], d[1].out[0][0]);
        for (int i = 0; i < STATES; i++) {
            float a[2] = {0}, b[2] = {1};

            CHECK(jot_copy(d[0].state[i], a, sizeof a) && jot_copy(d[1].state[i], b, sizeof b)
                  && !memcmp(a, b, sizeof a), "%s, program %d, call %d (%s): state %d: %g %g",
                  backend, (int)seed, k, jot_spec_why(s), i, a[0], b[0]);
        }
        CHECK(jot_random_state(c[0]).k == jot_random_state(c[1]).k, "%s, program %d, call %d: "
              "draws", backend, (int)seed, k);
    }
    replays = (int)jot_spec_stats(s).replays;
    if (getenv("SPEC_WHY"))
        printf("%d: %d of %d, %s\n", (int)seed, replays, DRAWN_CALLS, jot_spec_why(s));
    for (int i = 0; i < 2; i++)
        jot_close(c[i]);
    return replays;
}

static void
programs(const char *backend, int n, int first)
{
    int replays = 0;

    for (int k = 0; k < n; k++)
        replays += drawn_program(backend, (uint64_t)(first + k));
    CHECK(replays > n, "%s: %d replays of %d programs", backend, replays, n);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc"};

    if (argc > 1) {
        programs(argc > 3 ? argv[3] : "interp", atoi(argv[1]), argc > 2 ? atoi(argv[2]) : 1);
        return DONE();
    }
    for (int b = 0; b < 2; b++) {
        jot_Ctx *c = open_on(backends[b], NULL);
        bool there = !jot_error(c);

        if (!there)
            SKIP("%s: %s", backends[b], jot_message(c));
        jot_close(c);
        if (!there)
            continue;
        transactions(backends[b]);
        captures(backends[b]);
        gone(backends[b]);
        failures(backends[b]);
        rule(backends[b]);
        arrays(backends[b]);
        afters(backends[b]);
        handles(backends[b]);
        freed(backends[b]);
        bounds(backends[b]);
        in_vain(backends[b]);
        always_new(backends[b]);
        programs(backends[b], b ? 6 : test_many(20, 30), 1);
        memory(backends[b], b ? test_many(61, 37) : test_many(13, 7));
    }
    return DONE();
}
