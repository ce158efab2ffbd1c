/* tests/test_train.c - what stands around a step: each optimiser of nn.h against its formula, step
 * by step, in one launch and from one plan; clipping, averages, learning rates, checked gradients.
 *
 * Guards: nn/optim.c, nn/train.c. */
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <math.h>
#include <string.h>

enum { N = 4, STEPS = 8 };

static const char *const backends[] = {NULL, "interp"};

static jot_Ctx *
open_on(const char *backend)
{
    jot_Config config = {.backend = backend, .cache_dir = ""};
    return jot_open(&config);
}

/* ---- optimisers ---- */

typedef enum { NESTEROV, ADAMW, LAMB, RMSPROP, RMSPROP_MOMENTUM, ADAGRAD, LION, KINDS } Kind;
static const char *const names[KINDS] = {
    "nesterov", "adamw", "lamb", "rmsprop", "rmsprop with momentum", "adagrad", "lion"
};

static jot_Optim
make(Kind kind, jot_Vars p)
{
    switch (kind) {
    case NESTEROV: return jot_nesterov(p, 0.05, 0.9, 0.1);
    case ADAMW: return jot_adamw(p, 0.1, 0.9, 0.99, 1e-8, 0.2);
    case LAMB: return jot_lamb(p, 0.1, 0.9, 0.99, 1e-8, 0.2);
    case RMSPROP: return jot_rmsprop(p, 0.05, 0.9, 1e-8, 0, 0.1);
    case RMSPROP_MOMENTUM: return jot_rmsprop(p, 0.02, 0.9, 1e-8, 0.8, 0);
    case ADAGRAD: return jot_adagrad(p, 0.3, 1e-10, 0.1);
    default: return jot_lion(p, 0.05, 0.9, 0.99, 0.3);
    }
}

/* One step of the formula: p, with its state in s and u. */
static void
formula(Kind kind, int t, double *p, double *s, double *u, const double *gradient)
{
    double step[N], long_p = 0, long_s = 0;

    for (int i = 0; i < N; i++) {
        double g = gradient[i], m, v;
        switch (kind) {
        case NESTEROV:
            g += 0.1 * p[i];
            s[i] = 0.9 * s[i] + g;
            p[i] -= 0.05 * (g + 0.9 * s[i]);
            break;
        case ADAMW:
        case LAMB:
            s[i] = 0.9 * s[i] + 0.1 * g;
            u[i] = 0.99 * u[i] + 0.01 * g * g;
            m = s[i] / (1 - pow(0.9, t));
            v = u[i] / (1 - pow(0.99, t));
            step[i] = m / (sqrt(v) + 1e-8) + (kind == LAMB ? 0.2 * p[i] : 0);
            if (kind == ADAMW)
                p[i] = p[i] * (1 - 0.1 * 0.2) - 0.1 * step[i];
            long_p += p[i] * p[i];
            long_s += step[i] * step[i];
            break;
        case RMSPROP:
            g += 0.1 * p[i];
            s[i] = 0.9 * s[i] + 0.1 * g * g;
            p[i] -= 0.05 * g / (sqrt(s[i]) + 1e-8);
            break;
        case RMSPROP_MOMENTUM:
            s[i] = 0.9 * s[i] + 0.1 * g * g;
            u[i] = 0.8 * u[i] + g / (sqrt(s[i]) + 1e-8);
            p[i] -= 0.02 * u[i];
            break;
        case ADAGRAD:
            g += 0.1 * p[i];
            s[i] += g * g;
            p[i] -= 0.3 * g / (sqrt(s[i]) + 1e-10);
            break;
        default:
            m = 0.9 * s[i] + 0.1 * g;
            s[i] = 0.99 * s[i] + 0.01 * g;
            p[i] = p[i] * (1 - 0.05 * 0.3) - 0.05 * ((m > 0) - (m < 0));
        }
    }
    for (int i = 0; i < N && kind == LAMB; i++)
        p[i] -= 0.1 * sqrt(long_p / long_s) * step[i];
}

static void
check_optimiser(const char *backend, Kind kind)
{
    static const double a[N] = {0.5, -1.25, 2, 0.75}, b[N] = {1, 2, -0.5, 0.25};
    double p[N] = {0.3, -0.7, 1.1, 0.9}, s[N] = {0}, u[N] = {0}, g[N];
    jot_Ctx *c = open_on(backend);
    jot_Var v = jot_param(c, JOT_F64, JOT_SHAPE(N), p), grad;
    jot_Optim o = make(kind, JOT_VARS(v));
    uint64_t plans = 0;

    for (int t = 1; t <= STEPS; t++) {
        double worst = 0;
        const double *now;
        jot_push(c);
        grad = jot_mul(jot_sub(jot_mul(v, jot_array(c, JOT_F64, JOT_SHAPE(N), a)),
                               jot_array(c, JOT_F64, JOT_SHAPE(N), b)),
                       jot_array(c, JOT_F64, JOT_SHAPE(N), a));
        CHECK(jot_step(o, JOT_VARS(grad)), "%s: %s", names[kind], jot_message(c));
        for (int i = 0; i < N; i++)
            g[i] = (p[i] * a[i] - b[i]) * a[i];
        formula(kind, t, p, s, u, g);
        now = jot_data(v);
        for (int i = 0; now && i < N; i++)
            worst = fmax(worst, fabs(now[i] - p[i]));
        CHECK(now && worst < 1e-12, "%s on %s: step %d off by %g: %s", names[kind], jot_backend(c),
              t, worst, jot_message(c));
        jot_pop(c);
        if (t == 3)
            plans = jot_stats(c).plans;
    }
    CHECK(jot_stats(c).plans == plans, "%s: %d plans, then %d", names[kind], (int)plans,
          (int)jot_stats(c).plans);
    jot_optim_free(o);
    jot_close(c);
}

/* Many parameters, one launch. */
static void
check_launch(void)
{
    enum { PARAMS = 20 };
    jot_Ctx *c = open_on(NULL);
    jot_Var p[PARAMS], g[PARAMS];
    uint64_t before;
    jot_Optim o;

    for (int k = 0; k < PARAMS; k++)
        p[k] = jot_param_of(jot_uniform(c, JOT_F32, JOT_SHAPE(8, 1 + k % 3)));
    jot_run(c, jot_vars(PARAMS, p));
    o = jot_adamw(jot_vars(PARAMS, p), 0.1, 0.9, 0.999, 1e-8, 0.01);
    for (int step = 0; step < 2; step++) {
        jot_push(c);
        for (int k = 0; k < PARAMS; k++)
            g[k] = jot_ones(c, JOT_F32, jot_shape(p[k]));
        jot_run(c, jot_vars(PARAMS, g));
        CHECK(jot_step(o, jot_vars(PARAMS, g)), "%s", jot_message(c));
        before = jot_stats(c).kernels_run;
        jot_run(c, jot_vars(PARAMS, p));
        CHECK(jot_stats(c).kernels_run - before <= 3, "%d launches: %s",
              (int)(jot_stats(c).kernels_run - before), jot_message(c));
        jot_pop(c);
    }
    jot_close(c);
}

/* ---- around it ---- */

static void
check_clipping(const char *backend)
{
    static const float x[] = {3, 4}, y[] = {12};
    jot_Ctx *c = open_on(backend);
    jot_Var g[2], norm, other;

    g[0] = jot_array(c, JOT_F32, JOT_SHAPE(2), x);
    g[1] = jot_array(c, JOT_F32, JOT_SHAPE(1), y);
    norm = jot_clip_grad_norm(jot_vars(2, g), 6.5, g);
    CHECK(jot_item(norm) == 13, "norm %g: %s", jot_item(norm), jot_message(c));
    CHECK(fabs(jot_item(g[1]) - 6) < 1e-5 && fabs(((const float *)jot_data(g[0]))[0] - 1.5) < 1e-5,
          "clipped: %g", jot_item(g[1]));
    other = jot_clip_grad_norm(jot_vars(2, g), 100, g);
    CHECK(fabs(jot_item(other) - 6.5) < 1e-5 && fabs(jot_item(g[1]) - 6) < 1e-5, "short enough: %g",
          jot_item(g[1]));
    CHECK(jot_clip_grad_value(jot_vars(2, g), 2, g) && jot_item(g[1]) == 2
          && fabs(((const float *)jot_data(g[0]))[0] - 1.5) < 1e-5, "%s", jot_message(c));
    CHECK(!jot_ok(jot_clip_grad_norm(jot_vars(2, g), -1, g))
          && strstr(jot_message(c), "most: at least 0"), "%s",
          jot_message(c));
    jot_close(c);
}

/* With the n-th allocation refused, for every n: all gradients are clipped, or the caller's array
 * is as it was, and nothing is left behind. */
static void
check_clipping_refused(bool norm)
{
    enum { GRADS = 40 };
    long n = 0, failures = 0;
    bool done = false;

    while (!done) {
        Heap heap = {0};
        jot_Config config = {.backend = "interp", .cache_dir = "", .give_back = 1};
        jot_Var g[GRADS], was[GRADS];
        uint32_t slots;
        jot_Ctx *c;
        bool ok;

        config.hooks.realloc = heap_realloc;
        config.hooks.ud = &heap;
        c = jot_open(&config);
        for (int k = 0; k < GRADS; k++)
            was[k] = g[k] = jot_param_of(jot_full(c, JOT_F32, JOT_SHAPE(2), k));
        jot_run(c, JOT_NONE_VARS);
        slots = jot_stats(c).live_slots;
        heap.countdown = ++n;
        ok = norm ? jot_ok(jot_clip_grad_norm(jot_vars(GRADS, g), 1, g))
                  : jot_clip_grad_value(jot_vars(GRADS, g), 1, g);
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok == !jot_error(c) && (ok || jot_error(c) == JOT_EMEM), "%ld: %s", n,
              jot_message(c));
        CHECK(ok ? jot_ok(g[GRADS - 1]) && g[0].slot != was[0].slot : !memcmp(g, was, sizeof g),
              "%ld: the caller's array", n);
        CHECK(jot_stats(c).live_slots == slots + (ok ? GRADS + norm : 0), "%ld: %u handles, were %u",
              n, jot_stats(c).live_slots, slots);
        failures += !ok;
        jot_close(c);
        CHECK(heap.live == 0, "%ld: %zu bytes left", n, heap.live);
    }
    CHECK(failures > 3, "%ld failures", failures);
}

static void
check_averages(const char *backend)
{
    enum { MANY = 100 };
    jot_Ctx *c = open_on(backend);
    jot_Var a[MANY], p[MANY];
    uint32_t nodes;

    for (int k = 0; k < MANY; k++) {
        a[k] = jot_param_of(jot_full(c, JOT_F64, JOT_SHAPE(), k));
        p[k] = jot_param_of(jot_full(c, JOT_F32, JOT_SHAPE(), k + 8));
    }
    CHECK(jot_ema(jot_vars(MANY, a), jot_vars(MANY, p), 0.75), "%s", jot_message(c));
    for (int k = 0; k < MANY; k += 33)
        CHECK(jot_item(a[k]) == k + 2, "%d: %g", k, jot_item(a[k]));
    nodes = jot_stats(c).live_nodes;
    for (int k = 0; k < 3; k++)
        jot_ema(jot_vars(MANY, a), jot_vars(MANY, p), 0.75), jot_run(c, JOT_NONE_VARS);
    CHECK(jot_stats(c).live_nodes <= nodes, "%u live nodes, then %u", nodes,
          jot_stats(c).live_nodes);
    p[0] = jot_ones(c, JOT_F32, JOT_SHAPE(2));
    CHECK(!jot_ema(jot_vars(MANY, a), jot_vars(MANY, p), 0.5)
          && strstr(jot_message(c), "ema: average 0: its parameter's shape asked"), "%s",
          jot_message(c));
    jot_clear(c);
    CHECK(!jot_ema(jot_vars(3, a), jot_vars(MANY, p), 0.5)
          && strstr(jot_message(c), "averages: 100 asked"), "%s", jot_message(c));
    jot_close(c);
}

static void
check_rates(void)
{
    jot_Plateau plateau = {.lr = 1, .factor = 0.5, .least = 0.3, .threshold = 0.01, .patience = 1};
    static const double losses[] = {1, 0.5, 0.499, 0.498, 0.497, 0.496, 0.49, 0.1};
    static const double want[] = {1, 1, 1, 0.5, 0.5, 0.3, 0.3, 0.3};

    for (int t = 0; t <= 10; t++) {
        double at = jot_lr_cosine(3, 1, t, 10), is = 1 + (1 + cos(acos(-1) * t / 10)) ;
        CHECK(fabs(at - is) < 1e-14, "cosine %d: %.17g, %.17g", t, at, is);
    }
    for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
        double lr = jot_lr_plateau(&plateau, losses[k]);
        CHECK(lr == want[k], "plateau %d: %g", (int)k, lr);
    }
    CHECK(jot_lr_step(8, 7, 3, 0.5) == 2 && jot_lr_step(8, 2, 3, 0.5) == 8, "steps");
    CHECK(jot_lr_linear(0, 4, 3, 4) == 3 && jot_lr_linear(0, 4, 9, 4) == 4, "straight");
    CHECK(fabs(jot_lr_one_cycle(1, 0, 100, 0.3, 0.04, 4e-6) - 0.04) < 1e-15
          && fabs(jot_lr_one_cycle(1, 29, 100, 0.3, 0.04, 4e-6) - 1) < 1e-15
          && fabs(jot_lr_one_cycle(1, 99, 100, 0.3, 0.04, 4e-6) - 4e-6) < 1e-15
          && fabs(jot_lr_one_cycle(1, 64, 100, 0.3, 0.04, 4e-6) - 0.500002) < 1e-12, "one cycle");
}

/* ---- checked gradients ---- */

static jot_Var
right(void *user, jot_Vars in)
{
    (void)user;
    return jot_tanh(jot_matmul(in.v[0], in.v[1]));
}

/* Its gradient is told twice as large as it is. */
static jot_Var
wrong(void *user, jot_Vars in)
{
    jot_Var twice = jot_scale(in.v[0], 2);
    (void)user;
    return jot_sub(twice, jot_stop_grad(in.v[0]));
}

static void
check_checking(const char *backend)
{
    jot_Ctx *c = open_on(backend);
    jot_Var a = jot_param_of(jot_uniform(c, JOT_F64, JOT_SHAPE(2, 3)));
    jot_Var b = jot_param_of(jot_uniform(c, JOT_F64, JOT_SHAPE(3, 2))), small;
    double before = jot_item(jot_sum(a, JOT_ALL_DIMS));

    CHECK(jot_grad_check(right, NULL, JOT_VARS(a, b), 1e-5, 1e-7), "%s", jot_message(c));
    CHECK(jot_item(jot_sum(a, JOT_ALL_DIMS)) == before, "inputs are as they were");
    CHECK(!jot_grad_check(wrong, NULL, JOT_VARS(a), 1e-5, 1e-7) && jot_error(c) == JOT_ERANGE
          && strstr(jot_message(c), "grad_check: input 0, element 0: the gradient is"), "%s",
          jot_message(c));
    jot_clear(c);
    small = jot_ones(c, JOT_F32, JOT_SHAPE(2));
    CHECK(!jot_grad_check(wrong, NULL, JOT_VARS(small), 1e-5, 1e-7)
          && strstr(jot_message(c), "in 0: f64 asked, f32 found"), "%s", jot_message(c));
    jot_close(c);
}

static void
check_refused(void)
{
    jot_Ctx *c = open_on("interp");
    jot_Var p = jot_param_of(jot_ones(c, JOT_F32, JOT_SHAPE(2)));

#define REFUSED(call, text) \
    CHECK(!jot_optim_ok(call) && strstr(jot_message(c), text), "\"%s\" asked, \"%s\" said", text, \
          jot_message(c)); \
    jot_clear(c);
    REFUSED(jot_adamw(JOT_VARS(p), -1, 0.9, 0.99, 0, 0), "adamw: lr: a finite number of at least 0")
    REFUSED(jot_lion(JOT_VARS(p), 1, 0.9, 1, 0), "lion: beta2: 0 <= beta2 < 1 asked, 1 found")
    REFUSED(jot_rmsprop(JOT_VARS(p), 1, 2, 0, 0, 0), "rmsprop: alpha: 0 <= alpha < 1")
    REFUSED(jot_lamb(JOT_VARS(p, p), 1, 0.9, 0.9, 0, 0), "lamb: parameters 0 and 1 are the same")
#undef REFUSED
    jot_close(c);
}

/* What AdamW keeps, by parameter and name; with less room fewer are written, all are counted. */
static void
check_state(const char *backend)
{
    static const struct { int param; const char *name; } want[] = {
        {0, "mean"}, {0, "square"}, {1, "mean"}, {1, "square"}, {-1, "beta1_power"},
        {-1, "beta2_power"}, {-1, "lr"}};
    jot_Ctx *c = jot_open(&(jot_Config){.backend = backend});
    jot_Var p[2] = {jot_param_of(jot_ones(c, JOT_F32, JOT_SHAPE(2))),
                    jot_param_of(jot_ones(c, JOT_F32, JOT_SHAPE(3)))};
    jot_Optim optim = jot_adamw(jot_vars(2, p), 0.25, 0.5, 0.75, 1e-8, 0);
    jot_OptimState is[8] = {{0}};

    jot_step(optim, JOT_VARS(jot_ones(c, JOT_F32, JOT_SHAPE(2)), jot_ones(c, JOT_F32,
                                                                          JOT_SHAPE(3))));
    CHECK(jot_optim_state(optim, is, 1) == 7 && !is[1].name, "%s", jot_message(c));
    CHECK(jot_optim_state(optim, is, 8) == 7 && !is[7].name, "%s", jot_message(c));
    for (int k = 0; k < 7; k++)
        CHECK(is[k].param == want[k].param && is[k].name && !strcmp(is[k].name, want[k].name),
              "%d: %d, %s", k, is[k].param, is[k].name ? is[k].name : "-");
    CHECK(jot_data_f32(is[2].var) && jot_data_f32(is[2].var)[2] == 0.5f
              && jot_data_f32(is[3].var)[2] == 0.25f && jot_item(is[6].var) == 0.25,
          "%s", jot_message(c));
    jot_optim_free(optim);
    jot_close(c);
}

int
main(void)
{
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        for (int kind = 0; kind < KINDS; kind++)
            check_optimiser(backends[b], kind);
        check_clipping(backends[b]);
        check_averages(backends[b]);
        check_checking(backends[b]);
        check_state(backends[b]);
    }
    check_clipping_refused(true);
    check_clipping_refused(false);
    check_launch();
    check_rates();
    check_refused();
    return DONE();
}
