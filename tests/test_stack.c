/* tests/test_stack.c - 128 KB of stack are enough for every call, as core.h promises: programs run
 * on a thread whose stack was painted, and what is not paint any more was used. Deep things of each
 * kind (chains of operators, such as take a C compiler little, of reductions, of maps; nested index
 * expressions; many dimensions; long sums), the graphs of fuse_graphs.h, networks with gradients,
 * steps, functions, exports, all dumps, on each backend of this process. Sanitizers have frames of
 * their own: there it is only run.
 *
 * Guards: ops/index/parse.c, ops/order.c. */
#include <pthread.h>
#include <sys/mman.h>
#include "base.h"
#include "expr.h"
#include "tests/fuse_graphs.h"
#include "tests/hooks.h"

enum {
    PROMISED = 128 * 1024,
    STACK = JOT_WATCHED ? 64 << 20 : 4 << 20,
    PAINT = 0xa5,
    PAGE = 65536
};

static unsigned char *stack; /* below it a page that nobody may touch */

typedef struct {
    const char *backend, *dump, *schedule;
    void (*run)(void);
    char failed[512];
} Job;

static void *
job_main(void *p)
{
    Job *job = p;
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.backend = job->backend;
    config.dump = job->dump;
    config.schedule = job->schedule;
    config.cache_dir = "";
    config.threads = 2;
    config.hooks.log = keep_log;
    config.hooks.ud = NULL;
    ctx = jot_open(&config);
    if (!jot_error(ctx))
        job->run();
    snprintf(job->failed, sizeof job->failed, "%s", jot_error(ctx) ? jot_message(ctx) : "");
    jot_close(ctx);
    return NULL;
}

/* How much of the stack the job used; under sanitizers no more than that it ran. */
static size_t
job_used(Job *job)
{
    pthread_attr_t attr;
    pthread_t thread;
    size_t paint = 0;

    memset(stack, PAINT, JOT_WATCHED ? 0 : STACK);
    pthread_attr_init(&attr);
    if (pthread_attr_setstack(&attr, stack, STACK)
        || pthread_create(&thread, &attr, job_main, job))
        return 0;
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    while (!JOT_WATCHED && paint < STACK && stack[paint] == PAINT)
        paint++;
    return STACK - paint;
}

static size_t most; /* used so far, and by what */
static const char *worst = "nothing";

static void
on_stack(Job job, const char *what)
{
    size_t used;

    memset(logged, 0, 1);
    used = job_used(&job);
    worst = used > most ? what : worst;
    most = used > most ? used : most;
    CHECK(used, "%s: no thread", what);
    CHECK(!job.failed[0], "%s on %s: %s", what, job.backend ? job.backend : "cpu", job.failed);
    CHECK(JOT_WATCHED || used <= PROMISED, "%s on %s: %zu bytes of stack", what,
          job.backend ? job.backend : "cpu", used);
}

/* ---- deep things ---------------------------------------------------------------------------- */

static void
run_graded(V x, V y)
{
    V g;

    if (jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g))
        jot_run(ctx, JOT_VARS(y, g));
}

static V
ramp(jot_Ints shape)
{
    int64_t n = 1;

    for (int k = 0; k < shape.n; k++)
        n *= shape.v[k];
    V x = jot_reshape(jot_scale(jot_iota(ctx, JOT_F32, SH(n), 0), 1.0 / (double)n), shape);
    jot_data(x);
    return x;
}

static void
unary(void)
{
    V x = ramp(SH(30, 40)), y = x;

    for (int k = 0; k < 1000; k++)
        y = k % 3 ? jot_sqrt(y) : k % 2 ? jot_neg(y) : jot_reciprocal(y);
    run_graded(x, y);
}

static void
one_kind(void)
{
    V x = ramp(SH(37)), y = x;

    for (int k = 0; k < 1000; k++)
        y = jot_sqrt(y);
    jot_data(y);
}

static void
halves(void)
{
    V x = ramp(SH(30, 40)), y = jot_cast(x, JOT_F16);

    for (int k = 0; k < 300; k++)
        y = jot_mul(jot_sqrt(y), jot_where(jot_gt(y, jot_neg(y)), y, jot_reciprocal(y)));
    run_graded(x, jot_cast(y, JOT_F32));
}

static void
sums(void)
{
    V x = ramp(SH(30, 40)), y = x;

    for (int k = 0; k < 400; k++)
        y = jot_add(jot_mul(y, jot_scale(ramp(SH(40)), k + 1)), jot_neg(x));
    run_graded(x, y);
}

static void
norms(void)
{
    V x = ramp(SH(6, 50)), y = x;

    for (int k = 0; k < 60; k++)
        y = k % 2 ? jot_sub(y, keepmean(y, D(1))) : jot_softmax(y, 1);
    run_graded(x, y);
}

static void
means(void)
{
    V x = ramp(SH(6, 50)), y = x;

    for (int k = 0; k < 120; k++)
        y = jot_sub(y, keepmean(y, D(1)));
    run_graded(x, y);
}

static void
pads(void)
{
    V x = ramp(SH(6, 50)), y = x;

    for (int k = 0; k < 60; k++) {
        y = jot_pad(y, I(0, 1), I(1, 0), k + 1);
        y = k % 3 ? y : jot_sin(y);
    }
    jot_data(y);
}

/* Index expressions as deep as they may be, on each other. */
static void
maps(void)
{
    char text[400] = "i0";
    const char *index[1];
    V x = ramp(SH(2000)), y = x;

    for (int k = 0; k < 20; k++) {
        memmove(text + 1, text, strlen(text) + 1);
        text[0] = '(';
        strcat(text, k % 2 ? "*7+3)%1999" : "+i0/3)*5/4");
    }
    index[0] = text;
    for (int k = 0; k < 12; k++) {
        y = jot_reindex(y, SH(2000), jot_strs(1, index));
        y = k % 2 ? y : jot_exp(jot_neg(y));
    }
    jot_data(y);
    jot_data(jot_reindex_reduce(JOT_ADD, x, SH(2000), jot_strs(1, index)));
}

static void
conditions(void)
{
    static const char *const one[] = {"i0"};
    char text[400] = "i0%2==0";
    const char *cond[1];

    for (int k = 3; k < 14; k++)
        sprintf(text + strlen(text), " && i0%%%d!=%d", k, k - 1);
    cond[0] = text;
    jot_data(jot_sin(jot_reindex_ex(jot_cos(ramp(SH(500))), SH(600), jot_strs(1, one),
                                    jot_strs(1, cond), 7, JOT_NONE_VARS)));
}

/* As many dimensions as there may be, turned round and half of them padded. */
static void
dimensions(void)
{
    int64_t ext[16], before[16], none[16] = {0}, order[16];
    V x, y;

    for (int k = 0; k < 16; k++) {
        ext[k] = 2 - (k % 2);
        before[k] = k % 2 == 0;
        order[k] = 15 - k;
    }
    x = ramp(jot_ints(16, ext));
    y = jot_transpose(jot_exp(x), jot_ints(16, order));
    run_graded(x, jot_sin(jot_pad(y, jot_ints(16, before), jot_ints(16, none), 1)));
}

static void
parts(void)
{
    V x = ramp(SH(100, 40)), part[200];

    for (int k = 0; k < 200; k++)
        part[k] = jot_slice(x, I(k % 100, 0), I(k % 100 + 1, JOT_END), I(1, 1 + k % 3));
    run_graded(x, jot_sin(jot_concat(jot_vars(200, part), 1)));
}

static void
code(void)
{
    V x = ramp(SH(30, 40)), y = x;

    for (int k = 0; k < 60; k++)
        y = jot_code_map("a * 0.5f + b", JOT_VARS(y, x), JOT_F32, NULL);
    jot_data(y);
}

/* Texts as deep and as long as they may be. */
static void
expressions(void)
{
    static char deep[4096], index[4096];
    V x = ramp(SH(30, 40)), y;
    int k;

    strcpy(deep, "y[i,j] = x[i,j]");
    for (k = 0; k < 60; k++)
        strcat(deep, "+x[i,j]");
    strcpy(index, "y[i,j] = ");
    for (k = 0; k < 10; k++)
        strcat(index, "sin(");
    strcat(index, "x[((((((((i/2)*3+j)/2)*2+j)/3)*2+i)%7)/2)*2+i, (((j/2+1)/2*3)%5+j)/2 else 1]");
    for (k = 0; k < 10; k++)
        strcat(index, ")");
    y = jot_mul(jot_expr(ctx, deep, JOT_NAMED(x)),
                jot_expr(ctx, strcat(index, "for i < 30, j < 40"), JOT_NAMED(x)));
    run_graded(x, jot_einsum(ctx, "ij,ik,il->jkl", JOT_VARS(y, y, y)));
}

/* ---- networks ------------------------------------------------------------------------------- */

static V
cell(V x, V h, V w, V u)
{
    int64_t n = jot_extent(x, 0), m = jot_extent(h, 1);
    V gates = jot_add(jot_matmul(x, w), jot_matmul(h, u));
    V z = jot_sigmoid(jot_slice(gates, I(0, 0), I(n, m), I(1, 1)));
    V r = jot_tanh(jot_slice(gates, I(0, m), I(n, 2 * m), I(1, 1)));

    return jot_add(jot_mul(z, h), jot_mul(jot_offset(jot_neg(z), 1), r));
}

static void
recurrent(void)
{
    V w = jot_param_of(ramp(SH(8, 12))), u = jot_param_of(ramp(SH(6, 12))), g[2];
    V h = ramp(SH(4, 6));

    for (int k = 0; k < 12; k++)
        h = cell(jot_scale(ramp(SH(4, 8)), k + 1), h, w, u);
    jot_grad(jot_sum(h, JOT_ALL_DIMS), jot_vars(2, (V[]){w, u}), g);
    jot_run(ctx, jot_vars(2, g));
}

static V
network(V x, V *p)
{
    jot_Conv conv = {{1, 1}, {1, 1}, {1, 1}, 1};
    jot_Pool pool = {{2, 2}, {2, 2}, {0, 0}};
    int64_t n = jot_extent(x, 0);
    V y = jot_conv2d(x, p[0], &conv);

    y = jot_batch_norm_train(y, p[1], p[2], 1e-5, .1, NULL, NULL);
    y = jot_add(jot_conv2d(jot_relu(y), p[3], &conv), y);
    y = jot_reshape(jot_max_pool2d(jot_relu(y), &pool), SH(n, 8, 16));
    y = jot_add(jot_matmul(jot_softmax(jot_matmul(y, jot_swap(y, 1, 2)), 2), y), y);
    y = jot_layer_norm(jot_gelu(y), jot_reshape(p[4], SH(16)), jot_reshape(p[5], SH(16)), 1e-5);
    return jot_linear(jot_reshape(y, SH(n, 128)), p[6], p[7]);
}

static int
network_params(V *p)
{
    const jot_Ints shape[] = {SH(8, 3, 3, 3), SH(8), SH(8), SH(8, 8, 3, 3), SH(16), SH(16),
                              SH(128, 10), SH(10)};

    for (int k = 0; k < 8; k++)
        p[k] = jot_param_of(jot_scale(jot_uniform(ctx, JOT_F32, shape[k]), .3));
    jot_run(ctx, JOT_NONE_VARS);
    return 8;
}

static void
trained(void)
{
    V p[8], g[8], x = ramp(SH(4, 3, 8, 8)), loss, second;
    int n = network_params(p);
    jot_Optim adam = jot_adam(jot_vars(n, p), 1e-3, .9, .999, 1e-8);

    for (int k = 0; k < 2; k++) {
        loss = jot_cross_entropy(network(x, p), jot_array(ctx, JOT_I32, SH(4), NULL));
        if (!jot_grad(loss, jot_vars(n, p), g))
            return;
        jot_step(adam, jot_vars(n, g));
        jot_item(loss);
    }
    loss = jot_sum(jot_square(network(x, p)), JOT_ALL_DIMS);
    jot_grad(loss, jot_vars(n, p), g);
    jot_grad(jot_sum(jot_square(g[0]), JOT_ALL_DIMS), JOT_VARS(p[3]), &second);
    jot_print_graph(ctx, JOT_VARS(second));
    jot_run(ctx, JOT_VARS(second));
}

static void
nothing(void *ud, const char *text, size_t nbytes)
{
    (void)ud, (void)text, (void)nbytes;
}

static void
compiled(void)
{
    static float in[4 * 3 * 8 * 8], out[40];
    V p[8], g[8], x = jot_array(ctx, JOT_F32, SH(4, 3, 8, 8), NULL), y;
    int n = network_params(p);
    jot_Optim sgd = jot_sgd(jot_vars(n, p), 1e-3, .9, 0);
    jot_Func f;

    y = network(x, p);
    if (!jot_export_text(ctx, "net", JOT_VARS(x), JOT_VARS(y), nothing, NULL))
        return;
    jot_grad(jot_sum(jot_square(y), JOT_ALL_DIMS), jot_vars(n, p), g);
    jot_step(sgd, jot_vars(n, g));
    f = jot_compile(ctx, JOT_VARS(x), JOT_VARS(y));
    for (int k = 0; k < 2 && jot_func_ok(f); k++)
        jot_call(f, JOT_INS(JOT_IN(in, sizeof in)), JOT_OUTS(JOT_OUT(out, sizeof out)));
}

static const Row rows[] = {ROWS};
static int graph;

static void
graphs(void)
{
    V out[40];
    int n = rows[graph].build(out, rows[graph].arg);

    jot_run(ctx, jot_vars(n, out));
}

/* ---- all of them ---------------------------------------------------------------------------- */

static const struct { const char *name; void (*run)(void); } deep[] = {
    {"unary", unary}, {"expressions", expressions}, {"one kind", one_kind}, {"halves", halves},
    {"sums", sums},
    {"norms", norms}, {"means", means}, {"pads", pads}, {"maps", maps},
    {"conditions", conditions}, {"dimensions", dimensions}, {"parts", parts}, {"code", code},
    {"recurrent", recurrent}, {"trained", trained}, {"compiled", compiled},
};
enum { DEEP = sizeof deep / sizeof *deep };

static void
all_on(const char *backend)
{
    static const char *const schedules[] = {NULL, "random:3", "random:8"};
    Job job;

    memset(&job, 0, sizeof job);
    job.backend = backend;
    for (int k = 0; k < DEEP; k++)
        for (int s = 0; s < (backend && backend[0] == 't' ? 3 : 1); s++) {
            job.run = deep[k].run;
            job.schedule = schedules[s];
            job.dump = s || k % 4 ? NULL : "gfypkslct";
            if ((backend && backend[0] == 'i' && deep[k].run == code)
                || ((!backend || backend[0] == 'c') && (k + !backend) % test_many(2, 1)))
                continue;
            on_stack(job, deep[k].name);
        }
}

/* With an argument: prints how much was used. */
int
main(int argc, char **argv)
{
    static const char *const backends[] = {NULL, "cc", "tcc", "interp"};
    Job job;

    (void)argv;
    stack = mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && !mprotect(stack, PAGE, PROT_NONE), "no memory for a stack");
    if (test_failed)
        return DONE();
    stack += PAGE;
    memset(&job, 0, sizeof job);
    job.run = graphs;
    for (int k = 0; k < 4; k++) {
        jot_Config config;
        jot_Ctx *c;
        bool there;

        memset(&config, 0, sizeof config);
        config.backend = backends[k];
        c = jot_open(&config);
        there = !jot_error(c);
        if (!there)
            SKIP("%s: %s", backends[k] ? backends[k] : "cpu", jot_message(c));
        jot_close(c);
        most = 0;
        if (there)
            all_on(backends[k]);
        job.backend = backends[k];
        for (graph = 0; there && k == 2 && graph < (int)(sizeof rows / sizeof *rows); graph++)
            on_stack(job, rows[graph].name);
        if (argc > 1)
            printf("%s: %zu bytes at most, for %s\n", backends[k] ? backends[k] : "cpu", most,
                   worst);
    }
    return DONE();
}
