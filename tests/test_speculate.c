/* tests/test_speculate.c - steps that decide on the host, run and replayed (speculate.h): against
 * the same step run each time, bit for bit, on each backend.
 *
 * Guards: speculate/call.c, speculate/host.c, speculate/tree.c, plan/function/capture.c,
 * ops/assign.c. */
#include "speculate.h"
#include "tests/hooks.h"
#include "tests/test.h"

static jot_Ctx *
open_on(const char *backend, Heap *heap)
{
    jot_Config config = {.backend = backend, .cache_dir = "", .seed = 3,
                         .give_back = heap != NULL, .hooks.log = keep_log};

    if (heap) {
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = heap;
    }
    return jot_open(&config);
}

/* ---- one program, two ways ------------------------------------------------------------------ */

enum { PARAMS = 4, ROWS = 6, OUT = 8 };

/* What the steps here are about: a net, and what decides. Only what the rule allows is written. */
typedef struct {
    jot_Var p[PARAMS];
    jot_Optim optim;
    int32_t n, most, mode;
    double rate;
    const float *x;
    float bound;
    float out[OUT];
    int64_t counted;
} Job;

static const float start[12] = {.1f, -.2f, .3f, .4f, -.5f, .6f, .7f, -.8f, .9f, 1, .25f, -.5f};

static void
job_open(jot_Ctx *c, Job *j)
{
    memset(j, 0, sizeof *j);
    j->p[0] = jot_param(c, JOT_F32, JOT_SHAPE(3, 4), start);
    j->p[1] = jot_param(c, JOT_F32, JOT_SHAPE(4, 1), start);
    j->p[2] = jot_param(c, JOT_F32, JOT_SHAPE(4), NULL);
    j->p[3] = jot_param(c, JOT_F32, JOT_SHAPE(), NULL);
    j->optim = jot_adam(jot_vars(2, j->p), .01, .9, .999, 1e-8);
    j->bound = .4f;
    j->rate = .125;
}

/* What the calls see: number k of a sequence. */
static void
job_set(Job *j, float *x, int k)
{
    for (int i = 0; i < ROWS * 3; i++)
        x[i] = (float)((i * 7 + k * 5) % 11) / 11 - .5f;
    j->x = x;
}

static jot_Var
job_loss(Job *j, jot_Var x, bool drop)
{
    jot_Var h = jot_tanh(jot_add(jot_matmul(x, j->p[0]), j->p[2]));

    h = drop ? jot_dropout(h, .25) : h;
    return jot_mse(jot_matmul(h, j->p[1]), jot_sum(x, JOT_KEEP(1)));
}

static jot_Var
job_rows(jot_Host *h, Job *j, int64_t n)
{
    const float *p = jot_host_pointer(h, &j->x, (size_t)n * 3 * sizeof *p);

    return jot_host_array(h, JOT_F32, JOT_SHAPE(n, 3), p);
}

static bool
job_step(Job *j, jot_Var loss)
{
    jot_Var g[2];

    return jot_grad(loss, jot_vars(2, j->p), g) && jot_step(j->optim, jot_vars(2, g));
}

/* ---- extents: the last batch of an epoch is smaller ------------------------------------------ */

static bool
extents(jot_Host *h, void *user)
{
    Job *j = user;
    int64_t n = jot_host_int(h, JOT_I32, &j->n);
    jot_Var loss = job_loss(j, job_rows(h, j, n), true);

    return job_step(j, loss) && jot_host_put(h, loss, &j->out[0], sizeof j->out[0]);
}

/* The same without a jot_host_, as a program would be: in place of a call. */
static void
extents_plain(jot_Ctx *c, Job *j)
{
    jot_push(c);
    jot_Var loss = job_loss(j, jot_array(c, JOT_F32, JOT_SHAPE(j->n, 3), j->x), true);
    job_step(j, loss);
    j->out[0] = (float)jot_item(loss);
    jot_pop(c);
}

static void
extents_set(Job *j, int k)
{
    j->n = k % 4 == 3 ? 2 : ROWS;
}

/* ---- a number: a rate that changes ----------------------------------------------------------- */

static bool
numbers(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Var rate = jot_cast(jot_host_number(h, JOT_F64, &j->rate), JOT_F32);
    jot_Var loss = job_loss(j, job_rows(h, j, ROWS), false), g[2];

    jot_grad(loss, jot_vars(2, j->p), g);
    for (int k = 0; k < 2; k++)
        jot_assign(j->p[k], jot_sub(j->p[k], jot_mul(rate, g[k])));
    return jot_host_put(h, loss, &j->out[0], sizeof j->out[0]);
}

static void
numbers_plain(jot_Ctx *c, Job *j)
{
    jot_push(c);
    jot_Var loss = job_loss(j, jot_array(c, JOT_F32, JOT_SHAPE(ROWS, 3), j->x), false), g[2];
    jot_grad(loss, jot_vars(2, j->p), g);
    for (int k = 0; k < 2; k++)
        jot_assign(j->p[k], jot_sub(j->p[k], jot_scale(g[k], (float)j->rate)));
    j->out[0] = (float)jot_item(loss);
    jot_pop(c);
}

static void
numbers_set(Job *j, int k)
{
    j->rate = k < 4 ? .125 : .125 / (k - 2);
}

/* ---- a branch by a loss, after an update ----------------------------------------------------- */

static bool
branches(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Var x = job_rows(h, j, ROWS), loss = job_loss(j, x, true), again;
    jot_Var bound = jot_host_number(h, JOT_F32, &j->bound);

    job_step(j, loss);
    if (jot_host_test(h, jot_gt(loss, bound))) {
        again = job_loss(j, x, true);
        job_step(j, again);
        jot_host_put(h, again, &j->out[1], sizeof j->out[1]);
    } else {
        jot_assign(j->p[3], jot_add(j->p[3], jot_mul(loss, jot_uniform(x.ctx, JOT_F32,
                                                                       JOT_SHAPE()))));
    }
    return jot_host_put(h, loss, &j->out[0], sizeof j->out[0]);
}

static void
branches_set(Job *j, int k)
{
    j->bound = k % 3 == 2 ? 10.f : 1e-3f;
}

/* ---- a loop that a value ends, with a bound of the host's ------------------------------------ */

static bool
loops(jot_Host *h, void *user)
{
    Job *j = user;
    int64_t most = jot_host_int(h, JOT_I32, &j->most), k;
    jot_Var x = job_rows(h, j, ROWS), y = jot_max(jot_abs(x), JOT_ALL_DIMS);

    for (k = 0; k < most; k++) {
        jot_assign(j->p[3], jot_add(j->p[3], y));
        if (!jot_host_test(h, jot_lt(y, jot_scalar(x.ctx, JOT_F32, 2))))
            break;
        y = jot_scale(y, 1.75);
    }
    jot_host_put(h, y, &j->out[0], sizeof j->out[0]);
    return jot_host_put(h, j->p[3], &j->out[1], sizeof j->out[1]);
}

static void
loops_set(Job *j, int k)
{
    j->most = k % 5 == 4 ? 2 : 6;
}

/* ---- a list that grows, and shrinks ---------------------------------------------------------- */

typedef struct { Job job; int32_t n; const float *item[4]; } ListJob;

static bool
lists(jot_Host *h, void *user)
{
    ListJob *l = user;
    int64_t n = jot_host_int(h, JOT_I32, &l->n);
    jot_Var x[4], y;

    for (int64_t k = 0; k < n; k++) {
        const float *p = jot_host_pointer(h, &l->item[k], 3 * sizeof *p);

        x[k] = jot_host_array(h, JOT_F32, JOT_SHAPE(1, 3), p);
    }
    y = jot_matmul(n > 1 ? jot_concat(jot_vars((int)n, x), 0) : x[0], l->job.p[0]);
    jot_assign(l->job.p[2], jot_mean(y, JOT_DIMS(0)));
    return jot_host_put(h, l->job.p[2], l->job.out, 4 * sizeof(float));
}

static void
lists_set(Job *j, int k)
{
    ListJob *l = (ListJob *)j;

    l->n = 1 + k / 2 % 4;
    for (int i = 0; i < 4; i++)
        l->item[i] = j->x + 3 * ((i + k) % ROWS);
    if (k % 8 == 7) /* two that are one: another way */
        l->item[2] = l->item[1];
}

/* ---- recursion over a tree ------------------------------------------------------------------- */

typedef struct Tree Tree;
struct Tree { const Tree *left, *right; float value[4]; };
typedef struct { Job job; const Tree *root; } TreeJob;

static jot_Var
tree_of(jot_Host *h, Job *j, const Tree *const *at)
{
    const Tree *t = jot_host_pointer(h, at, sizeof *t);
    jot_Var both;

    if (!t)
        return jot_zeros(jot_host_ctx(h), JOT_F32, JOT_SHAPE(1, 4));
    both = jot_add(tree_of(h, j, &t->left), tree_of(h, j, &t->right));
    both = jot_add(both, jot_host_array(h, JOT_F32, JOT_SHAPE(1, 4), t->value));
    return jot_tanh(jot_mul(both, jot_transpose(j->p[1], JOT_INTS(1, 0))));
}

static bool
trees(jot_Host *h, void *user)
{
    TreeJob *t = user;
    jot_Var loss = jot_sum(tree_of(h, &t->job, &t->root), JOT_ALL_DIMS), g;

    jot_grad(loss, JOT_VARS(t->job.p[1]), &g);
    jot_assign(t->job.p[1], jot_sub(t->job.p[1], jot_scale(g, .1)));
    return jot_host_put(h, loss, &t->job.out[0], sizeof t->job.out[0]);
}

/* Three shapes by turns, of other nodes each time. */
static void
trees_set(Job *j, int k)
{
    static Tree node[7];
    TreeJob *t = (TreeJob *)j;
    Tree *n = node;
    int a = k % 7;

    for (int i = 0; i < 7; i++) {
        n[i].left = n[i].right = NULL;
        for (int d = 0; d < 4; d++)
            n[i].value[d] = j->x[(i + d) % 18];
    }
    t->root = &n[a];
    n[a].left = k % 3 ? &n[(a + 1) % 7] : NULL;
    n[a].right = &n[(a + 2) % 7];
    n[(a + 2) % 7].left = k % 3 == 2 ? &n[(a + 3) % 7] : NULL;
}

/* ---- state that is carried, now and then set back -------------------------------------------- */

static int64_t
every_third(void *user)
{
    return ((const Job *)user)->counted % 3 == 0;
}

static void
count(void *user)
{
    ((Job *)user)->counted++;
}

static bool
states(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Var x = job_rows(h, j, 1), hidden = j->p[2];

    if (jot_host_choose(h, every_third))
        hidden = jot_zeros(jot_host_ctx(h), JOT_F32, JOT_SHAPE(4));
    hidden = jot_tanh(jot_add(hidden, jot_reshape(jot_matmul(x, j->p[0]), JOT_SHAPE(4))));
    jot_assign(j->p[2], hidden);
    return jot_host_put(h, hidden, j->out, 4 * sizeof(float)) && jot_host_after(h, count);
}

static void
nothing_set(Job *j, int k)
{
    (void)j, (void)k;
}

/* ---- a value that chooses, of a few; handles in a struct ------------------------------------- */

static bool
choices(jot_Host *h, void *user)
{
    Job *j = user;
    jot_Var x = job_rows(h, j, ROWS), w = jot_host_var(h, &j->p[2]), y;
    int64_t best = jot_host_item_int(h, jot_argmax(jot_sum(x, JOT_DIMS(1)), JOT_ALL_DIMS));
    double ends = jot_host_item(h, jot_round(jot_sum(jot_slice_dim(x, 0, best, best + 1, 1),
                                                     JOT_ALL_DIMS)));

    y = jot_scale(jot_sum(jot_square(w), JOT_ALL_DIMS), ends + (double)best);
    jot_assign(w, jot_offset(w, .5 + (double)best));
    return jot_host_put(h, y, &j->out[best], sizeof *j->out);
}

static void
choices_set(Job *j, int k)
{
    if (k % 4 == 3) {
        jot_Var v = j->p[2];

        j->p[2] = j->p[3];
        j->p[3] = v;
    }
}

/* ---- the comparison ------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    jot_SpecFn *step;
    void (*set)(Job *j, int k);
    size_t nbytes;
    int calls, replays;
    void (*plain)(jot_Ctx *c, Job *j); /* NULL: the step, run each time */
} Program;
typedef union { Job job; ListJob list; TreeJob tree; } AnyJob;

static const Program programs[] = {
    {"extents", extents, extents_set, sizeof(Job), 14, 10, extents_plain},
    {"numbers", numbers, numbers_set, sizeof(Job), 10, 6, numbers_plain},
    {"branches", branches, branches_set, sizeof(Job), 12, 6, NULL},
    {"loops", loops, loops_set, sizeof(Job), 26, 22, NULL},
    {"lists", lists, lists_set, sizeof(ListJob), 24, 14, NULL},
    {"trees", trees, trees_set, sizeof(TreeJob), 12, 6, NULL},
    {"states", states, nothing_set, sizeof(Job), 12, 8, NULL},
    {"choices", choices, choices_set, sizeof(Job), 40, 17, NULL},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static bool
same_state(jot_Ctx *a, const Job *x, jot_Ctx *b, const Job *y)
{
    jot_RandomState s = jot_random_state(a), t = jot_random_state(b);
    bool same = s.seed == t.seed && s.k == t.k && x->counted == y->counted
             && !memcmp(x->out, y->out, sizeof x->out);

    for (int k = 0; k < PARAMS; k++) {
        float v[12], w[12];
        size_t nbytes = (size_t)jot_nelem(x->p[k]) * sizeof *v;

        same = same && jot_copy(x->p[k], v, nbytes) && jot_copy(y->p[k], w, nbytes)
            && !memcmp(v, w, nbytes);
    }
    return same;
}

static void
compare(const char *backend, const Program *p)
{
    static float x[2][ROWS * 3];
    jot_Ctx *c[2] = {open_on(backend, NULL), open_on(backend, NULL)};
    AnyJob any[2];
    Job *j[2] = {&any[0].job, &any[1].job};
    jot_Spec s, plain;
    jot_SpecHow run = {.run = true};
    jot_SpecStats stats;

    memset(any, 0, sizeof any);
    for (int i = 0; i < 2; i++)
        job_open(c[i], j[i]);
    s = jot_speculate(c[0], p->step, p->nbytes, NULL);
    plain = jot_speculate(c[1], p->step, p->nbytes, &run);
    for (int k = 0; k < p->calls; k++) {
        for (int i = 0; i < 2; i++) {
            job_set(j[i], x[i], k);
            p->set(j[i], k);
        }
        CHECK(jot_spec_call(s, j[0]), "%s, %s, call %d: %s", backend, p->name, k,
              jot_message(c[0]));
        if (p->plain)
            p->plain(c[1], j[1]);
        CHECK(p->plain || jot_spec_call(plain, j[1]), "%s, %s, call %d: %s", backend, p->name, k,
              jot_message(c[1]));
        CHECK(same_state(c[0], j[0], c[1], j[1]), "%s, %s, call %d (%s): %g %g, %g %g", backend,
              p->name, k, jot_spec_why(s), j[0]->out[0], j[0]->out[1], j[1]->out[0], j[1]->out[1]);
        if (getenv("SPEC_WHY"))
            printf("%s %d: %s\n", p->name, k, jot_spec_why(s));
    }
    stats = jot_spec_stats(s);
    CHECK((int)stats.calls == p->calls && (int)stats.replays == p->replays
          && stats.replays + stats.runs == stats.calls, "%s, %s: %d replays asked, of %d calls %d "
          "and %d runs found", backend, p->name, p->replays, (int)stats.calls, (int)stats.replays,
          (int)stats.runs);
    jot_spec_free(s);
    for (int i = 0; i < 2; i++)
        jot_close(c[i]);
}

int
main(int argc, char **argv)
{
    static const char *const backends[] = {"interp", "tcc", "cc"};

    for (int b = 0; b < (argc > 1 ? 1 : 3); b++) {
        const char *backend = argc > 1 ? argv[1] : backends[b];
        jot_Ctx *c = open_on(backend, NULL);

        if (jot_error(c))
            SKIP("%s: %s", backend, jot_message(c));
        for (int k = 0; k < (b == 2 ? 3 : PROGRAMS) && !jot_error(c); k++) /* cc takes its time */
            compare(backend, &programs[k]);
        jot_close(c);
    }
    return DONE();
}
