/* tests/test_flow_uses.c - branches and loops: draws in them; functions that branch, loop and
 * update, without allocating, and their files of C; recursion by a stack; a loop that both bodies of
 * a branch have; gradients by maps that a body reads; what a body and the program around it both
 * have; what is refused; refused memory.
 *
 * Guards: ops/flow/make.c, ops/flow/call.c, plan/flow/make.c, plan/flow/export.c. */
#include <dlfcn.h>
#include <unistd.h>
#include "core.h"
#include "tests/flow.h"
#include "tests/hooks.h"
#include "tests/numbers.h"
#include "tests/test.h"

/* ---- draws ----------------------------------------------------------------------------------- */

static bool
noisy(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[1] = jot_uniform(in.v[0].ctx, JOT_F64, JOT_SHAPE(3));
    out[0] = jot_add(in.v[0], out[1]);
    return true;
}

static bool
few(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_lt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 20));
    return true;
}

static bool
noisy_while(void *user, jot_Vars in, V *out)
{
    V made[2];
    bool ok = noisy(user, in, made);

    out[0] = made[0];
    return ok;
}

/* Each trip has draws of its own; a seed and a call of a function as ever. */
static void
test_draws(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V h = numbers(c, JOT_SHAPE(3), 1), outside = jot_uniform(c, JOT_F64, JOT_SHAPE(3)), o[2], y, z;
    jot_For how = {4, 1, false, 0};
    double a[12], b[12], sum[3];
    jot_Func f;

    jot_seed(c, 7);
    CHECK(jot_for(JOT_VARS(h), JOT_NONE_VARS, noisy, NULL, &how, o), "%s", jot_message(c));
    CHECK(apart(o[0], jot_add(h, jot_sum(o[1], JOT_DIMS(0)))) < 1e-12, "the sum of the draws");
    jot_copy(o[1], a, sizeof a);
    for (int t = 1; t < 4; t++)
        CHECK(memcmp(a, a + 3 * t, 3 * sizeof *a), "trip %d draws what the first did", t);
    jot_seed(c, 7);
    jot_for(JOT_VARS(h), JOT_NONE_VARS, noisy, NULL, &how, o);
    CHECK(jot_copy(o[1], b, sizeof b) && !memcmp(a, b, sizeof a), "a seed");
    f = jot_compile(c, JOT_VARS(h), JOT_VARS(o[1]));
    for (int k = 0; k < 2; k++) {
        memcpy(a, b, sizeof a);
        CHECK(jot_call(f, JOT_INS(JOT_IN(sum, sizeof sum)), JOT_OUTS(JOT_OUT(b, sizeof b)))
              && memcmp(a, b, sizeof a), "call %d: %s", k, jot_message(c));
    }
    CHECK(jot_while(JOT_VARS(h), few, noisy_while, NULL, 50, &y)
          && jot_item(all(y)) >= 20 && jot_item(all(y)) < 23, "%s", jot_message(c));
    CHECK(jot_cond(jot_scalar(c, JOT_F64, 1), JOT_VARS(h), noisy_while, decay, &outside, 1, &z)
          && jot_item(all(jot_sub(z, h))) != 0, "a branch: %s", jot_message(c));
    CHECK(!jot_while(JOT_VARS(h), few, noisy_while, NULL, 0, &y) && jot_error(c) == JOT_EUSE
          && strstr(jot_message(c), "draws random numbers"), "%s", jot_message(c));
    jot_close(c);
}

/* ---- functions ------------------------------------------------------------------------------- */

enum { STEPS = 7 };
typedef struct { V h, s, t, loss, q, w; } Step;

static bool
long_way(void *user, jot_Vars in, V *out)
{
    return jot_while(in, below, grow, user, 9, out);
}

/* A training step: a recurrent net, then a branch with a loop in it. */
static bool
step_build(jot_Ctx *c, V w, Step *step)
{
    jot_For how = {0, 1, false, 3};
    V o[2], g, h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(STEPS, 2), 2);
    V t = jot_array(c, JOT_I32, JOT_SHAPE(), NULL), q, loss;
    bool ok = jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &how, o)
           && jot_cond(t, JOT_VARS(jot_square(o[0])), long_way, wave, &w, 1, &q);

    loss = jot_add(all(jot_mul(o[1], s)), all(jot_scale(q, 0.1)));
    *step = (Step){h, s, t, loss, q, w};
    return ok && jot_grad(loss, JOT_VARS(w), &g) && jot_assign(w, jot_sub(w, jot_scale(g, 0.01)));
}

static void
step_numbers(int k, double *h, double *s, int32_t *t)
{
    for (int i = 0; i < 2; i++)
        h[i] = sin(k + i);
    for (int i = 0; i < 2 * STEPS; i++)
        s[i] = cos(k * 2 + i);
    *t = k % 2;
}

/* Loss, then q, of `calls` calls. */
static void
step_calls(jot_Ctx *c, Heap *heap, int calls, double (*got)[3])
{
    V w = jot_param(c, JOT_F64, JOT_SHAPE(2, 2), (double[]){0.3, -0.2, 0.5, 0.1});
    double h[2], s[2 * STEPS];
    int32_t t;
    Step step;
    jot_Func f;

    CHECK(step_build(c, w, &step), "%s", jot_message(c));
    f = jot_compile(c, JOT_VARS(step.h, step.s, step.t), JOT_VARS(step.loss, step.q));
    for (int k = 0; k < calls; k++) {
        long before = heap ? heap->calls : 0;

        step_numbers(k, h, s, &t);
        CHECK(jot_call(f, JOT_INS(JOT_IN(h, sizeof h), JOT_IN(s, sizeof s), JOT_IN(&t, sizeof t)),
                       JOT_OUTS(JOT_OUT(got[k], 8), JOT_OUT(got[k] + 1, 16))), "call %d: %s", k,
              jot_message(c));
        CHECK(!heap || k < 2 || heap->calls == before, "call %d asks for memory", k);
    }
    jot_func_free(f);
}

static void
step_same(const char *who, int calls, double (*a)[3], double (*b)[3])
{
    for (int k = 0; k < calls; k++)
        for (int i = 0; i < 3; i++)
            CHECK(fabs(a[k][i] - b[k][i]) < 1e-10 * (1 + fabs(b[k][i])), "%s, call %d: %g, not %g",
                  who, k, a[k][i], b[k][i]);
}

/* The file of the same step, compiled by a C compiler. */
static void
step_export(double (*want)[3])
{
    static char dir[] = "/tmp/jot-flow-XXXXXX";
    jot_Ctx *c = open_ctx("interp");
    V w = jot_param(c, JOT_F64, JOT_SHAPE(2, 2), (double[]){0.3, -0.2, 0.5, 0.1});
    char path[100], command[400];
    double got[4][3], h[2], s[2 * STEPS];
    void (*f)(void *, const void *, const void *, const void *, void *, void *) = NULL;
    int32_t t;
    Step step;
    void *lib = NULL, *arena;

    if (!mkdtemp(dir) || system("command -v gcc >/dev/null")) {
        SKIP("no gcc");
        jot_close(c);
        return;
    }
    snprintf(path, sizeof path, "%s/step.c", dir);
    CHECK(step_build(c, w, &step)
          && jot_export(c, "step", JOT_VARS(step.h, step.s, step.t), JOT_VARS(step.loss, step.q),
                        path), "%s", jot_message(c));
    snprintf(command, sizeof command, "gcc -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror "
             "-ffreestanding -nostdlib -fPIC -shared %s -o %s.so", path, path);
    CHECK(!system(command) && (strcat(path, ".so"), lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)),
          "it does not compile: %s", command);
    if (lib) {
        *(void **)&f = dlsym(lib, "step");
        arena = aligned_alloc(64, *(const unsigned long *)dlsym(lib, "step_arena") / 64 * 64 + 64);
        for (int k = 0; k < 4; k++) {
            step_numbers(k, h, s, &t);
            f(arena, h, s, &t, got[k], got[k] + 1);
        }
        step_same("the file", 4, got, want);
        free(arena);
        dlclose(lib);
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(!system(command), "%s", command);
    jot_close(c);
}

static void
test_function(void)
{
    double want[4][3], got[4][3];
    Heap heap = {0};
    jot_Config config = {.backend = "tcc", .cache_dir = "", .no_threads = 1,
                         .hooks.realloc = heap_realloc, .hooks.ud = &heap};
    jot_Ctx *c = open_ctx("interp");

    step_calls(c, NULL, 4, want);
    jot_close(c);
    c = jot_open(&config);
    if (jot_error(c))
        SKIP("%s", jot_message(c));
    else {
        step_calls(c, &heap, 4, got);
        step_same("tcc", 4, got, want);
    }
    jot_close(c);
    step_export(want);
}

/* ---- recursion, by a stack that is carried --------------------------------------------------- */

/* Ackermann's function: stack (64), how many are on it, n */
static bool
ack_goes(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_gt(in.v[1], jot_scalar(in.v[0].ctx, JOT_I64, 0));
    return true;
}

static V
ack_put(V stack, V at, V value)
{
    return jot_where(jot_eq(jot_iota(stack.ctx, JOT_I64, JOT_SHAPE(64), 0), at), value, stack);
}

static bool
ack_zero(void *user, jot_Vars in, V *out) /* A(0, n) = n + 1 */
{
    (void)user;
    out[0] = in.v[0], out[1] = jot_offset(in.v[1], -1), out[2] = jot_offset(in.v[2], 1);
    return true;
}

static bool
ack_first(void *user, jot_Vars in, V *out) /* A(m, 0) = A(m - 1, 1) */
{
    (void)user;
    out[0] = ack_put(in.v[0], jot_offset(in.v[1], -1), jot_offset(in.v[3], -1));
    out[1] = in.v[1], out[2] = jot_scalar(in.v[0].ctx, JOT_I64, 1);
    return true;
}

static bool
ack_both(void *user, jot_Vars in, V *out) /* A(m, n) = A(m - 1, A(m, n - 1)) */
{
    (void)user;
    out[0] = ack_put(ack_put(in.v[0], jot_offset(in.v[1], -1), jot_offset(in.v[3], -1)), in.v[1],
                     in.v[3]);
    out[1] = jot_offset(in.v[1], 1), out[2] = jot_offset(in.v[2], -1);
    return true;
}

static bool
ack_more(void *user, jot_Vars in, V *out)
{
    return jot_cond(jot_eq(in.v[2], jot_scalar(in.v[0].ctx, JOT_I64, 0)), in, ack_first, ack_both,
                    user, 3, out);
}

static bool
ack_trip(void *user, jot_Vars in, V *out)
{
    V m = jot_take(in.v[0], jot_offset(in.v[1], -1), 0);

    V from[4] = {in.v[0], in.v[1], in.v[2], m};

    return jot_cond(jot_eq(m, jot_scalar(m.ctx, JOT_I64, 0)), jot_vars(4, from), ack_zero, ack_more,
                    user, 3, out);
}

static void
test_recursion(const char *backend)
{
    jot_Ctx *c = open_ctx(backend);
    V n = jot_array(c, JOT_I64, JOT_SHAPE(), NULL), out[3];
    V stack = jot_full_int(c, JOT_I64, JOT_SHAPE(64), 2);
    jot_Func f;

    if (jot_error(c))
        SKIP("%s", jot_message(c));
    else {
        CHECK(jot_while(JOT_VARS(stack, jot_scalar(c, JOT_I64, 1), n), ack_goes, ack_trip, NULL, 0,
                        out), "%s", jot_message(c));
        f = jot_compile(c, JOT_VARS(n), JOT_VARS(out[2]));
        for (int64_t k = 0; k < 4; k++) {
            int64_t got = 0;

            CHECK(jot_call(f, JOT_INS(JOT_IN(&k, sizeof k)), JOT_OUTS(JOT_OUT(&got, sizeof got)))
                  && got == 2 * k + 3, "%s: A(2, %d) is %d: %s", backend, (int)k, (int)got,
                  jot_message(c));
        }
    }
    jot_close(c);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void
refused(jot_Ctx *c, bool ok, jot_Status status, const char *word)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), word),
          "%d, \"%s\", not %d, \"%s\"", (int)jot_error(c), jot_message(c), (int)status, word);
    jot_clear(c);
}

static V kept;

static bool
says_no(void *user, jot_Vars in, V *out)
{
    (void)user, (void)in, (void)out;
    return false;
}

static bool
other_shape(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_sum(in.v[0], JOT_KEEP(0));
    return true;
}

static bool
other_dtype(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_cast(in.v[0], JOT_F32);
    return true;
}

static bool
evaluates(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_scale(in.v[0], jot_item(all(in.v[0])));
    return true;
}

static bool
assigns(void *user, jot_Vars in, V *out)
{
    jot_assign(*(V *)user, in.v[0]);
    out[0] = in.v[0];
    return true;
}

static bool
makes_parameter(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_param_of(in.v[0]);
    return true;
}

static bool
leaks(void *user, jot_Vars in, V *out)
{
    (void)user;
    kept = jot_keep(jot_keep(jot_sin(in.v[0])));
    out[0] = in.v[0];
    return true;
}

static bool
recurs(void *user, jot_Vars in, V *out)
{
    return jot_while(in, below, recurs, user, 0, out);
}

static bool
whole(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = in.v[0];
    return true;
}

static bool
forgets(void *user, jot_Vars in, V *out)
{
    (void)user, (void)in, (void)out;
    return true;
}

static void
test_refused(void)
{
    jot_Ctx *c = open_ctx("interp");
    V x = numbers(c, JOT_SHAPE(3), 1), w = numbers(c, JOT_SHAPE(3, 3), 2), p, y, g, o[2];
    V one = jot_scalar(c, JOT_F64, 1);
    jot_For how = {2, 0, false, 0};

    p = jot_param(c, JOT_F64, JOT_SHAPE(3), NULL);
    refused(c, jot_while(JOT_VARS(x), below, says_no, NULL, 0, &y), JOT_EUSE,
            "while: the callback says that it failed");
    CHECK(!jot_ok(y), "poison");
    refused(c, jot_while(JOT_VARS(x), below, other_shape, NULL, 0, &y), JOT_ESHAPE,
            "while: out[0] is f64 (3) where it comes in, and f64 (1) where the body returns it");
    refused(c, jot_while(JOT_VARS(x), below, other_dtype, NULL, 0, &y), JOT_EDTYPE, "f32");
    refused(c, jot_while(JOT_VARS(x), whole, grow, &w, 0, &y), JOT_ESHAPE,
            "while: the test is f64 (3); one element is asked");
    refused(c, jot_while(JOT_VARS(x), below, evaluates, NULL, 0, &y), JOT_EUSE,
            "body of a branch or loop");
    refused(c, jot_while(JOT_VARS(x), below, assigns, &p, 0, &y), JOT_EUSE, "jot_while is built");
    refused(c, jot_while(JOT_VARS(x), below, makes_parameter, NULL, 0, &y), JOT_EUSE, "param_of");
    refused(c, jot_while(JOT_VARS(x), below, forgets, NULL, 0, &y), JOT_EHANDLE, "out[0]");
    refused(c, jot_while(JOT_VARS(x), below, recurs, NULL, 0, &y), JOT_ERANGE, "16 deep");
    refused(c, jot_while(JOT_VARS(x), below, NULL, NULL, 0, &y), JOT_EUSE, "a body is NULL");
    refused(c, jot_while(JOT_VARS(x), below, grow, &w, -1, &y), JOT_ERANGE, "-1 trips");
    CHECK(!jot_while(JOT_NONE_VARS, below, grow, &w, 0, &y) && !jot_error(c), "of no context");
    refused(c, jot_while(JOT_VARS(x), below, grow, &w, 0, NULL), JOT_EUSE, "nowhere");
    CHECK(jot_while(JOT_VARS(x), below, grow, &w, 0, &y), "%s", jot_message(c));
    refused(c, jot_grad(all(y), JOT_VARS(x), &g), JOT_EGRAD, "a while without a bound");
    CHECK(jot_while(JOT_VARS(x), below, leaks, NULL, 1, &y), "%s", jot_message(c));
    refused(c, jot_run(c, JOT_VARS(kept)), JOT_EUSE, "stands on what goes into the body");

    refused(c, jot_cond(x, JOT_VARS(x), whole, whole, NULL, 1, &y), JOT_ESHAPE, "cond: the test");
    refused(c, jot_cond(one, JOT_VARS(x), whole, other_shape, NULL, 1, &y), JOT_ESHAPE,
            "cond: out[0] is f64 (3) of then, and f64 (1) of otherwise");
    refused(c, jot_cond(one, JOT_VARS(x), whole, whole, NULL, 0, &y), JOT_ERANGE,
            "0 variables in out");

    refused(c, jot_for(JOT_VARS(x), JOT_NONE_VARS, grow, &w, NULL, &y), JOT_EUSE, "how->trips");
    CHECK(!jot_ok(y), "poison");
    refused(c, jot_for(JOT_VARS(x), JOT_VARS(w, numbers(c, JOT_SHAPE(2, 3), 1)), cell, &w, &how, o),
            JOT_ESHAPE, "for: xs[1] has 2 slices, those before it have 3");
    refused(c, jot_for(JOT_VARS(x), JOT_VARS(one), cell, &w, &how, o), JOT_ESHAPE,
            "for: xs[0] is a scalar");
    refused(c, jot_for(JOT_VARS(x), JOT_VARS(w), cell, &w, &how, o), JOT_ERANGE, "trips is 2");
    how.trips = -3;
    refused(c, jot_for(JOT_VARS(x), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE, "-3");
    how = (jot_For){2, -1, false, 0};
    refused(c, jot_for(JOT_VARS(x, w), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE,
            "-1 variables in stacks");
    how.stacked = INT32_MAX;
    refused(c, jot_for(JOT_VARS(x, w), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE,
            "2147483647 variables in stacks");
    how = (jot_For){2, 0, false, -1};
    refused(c, jot_for(JOT_VARS(x), JOT_NONE_VARS, grow, &w, &how, o), JOT_ERANGE, "every is -1");
    how = (jot_For){0, 1, false, 0};
    CHECK(jot_for(JOT_VARS(x), JOT_VARS(jot_zeros(c, JOT_F64, JOT_SHAPE(0, 3))), cell, &w, &how, o)
          && apart(o[0], x) == 0 && jot_extent(o[1], 0) == 0, "no trip: %s", jot_message(c));
    jot_close(c);
}

static bool
adds(void *user, jot_Vars in, V *out)
{
    out[0] = jot_sin(jot_add(in.v[0], *(V *)user));
    return true;
}

/* A loop that both bodies of a branch have, of which each returns another stack. */
typedef struct { bool odd; V kept[3]; } Both;

static bool
both_trip(void *user, jot_Vars in, V *out)
{
    out[0] = jot_scale(in.v[0], 0.5);
    out[1] = jot_offset(in.v[0], 1);
    out[2] = ((Both *)user)->odd ? jot_sin(in.v[0]) : jot_cos(in.v[0]);
    return true;
}

static bool
both_then(void *user, jot_Vars in, V *out)
{
    Both *b = user;
    jot_For how = {.trips = 4, .stacked = 2};

    if (!jot_for(JOT_VARS(in.v[0]), JOT_NONE_VARS, both_trip, b, &how, b->kept))
        return false;
    jot_keep(b->kept[2]);
    out[0] = b->kept[1];
    return true;
}

static bool
both_otherwise(void *user, jot_Vars in, V *out)
{
    (void)in;
    out[0] = ((Both *)user)->kept[2];
    return true;
}

static void
test_both(void)
{
    jot_Ctx *c = open_ctx(NULL);
    V x = numbers(c, JOT_SHAPE(3), 1), no = jot_scalar(c, JOT_BOOL, 0), y;

    for (int odd = 0; odd < 2; odd++) {
        Both b = {.odd = odd};

        CHECK(jot_cond(no, JOT_VARS(x), both_then, both_otherwise, &b, 1, &y)
              && apart(jot_squeeze(jot_slice_dim(y, 0, 0, 1, 1), 0), odd ? jot_sin(x) : jot_cos(x))
                     < 1e-12, "%d: %s", odd, jot_message(c));
    }
    jot_close(c);
}

/* Gradients by maps that a body reads: one that has a handle goes in as it is; one that is larger
 * than what it is made of is made again inside, and refused. */
static void
test_views(void)
{
    jot_Ctx *c = open_ctx("interp");
    V h = numbers(c, JOT_SHAPE(3), 1), w = numbers(c, JOT_SHAPE(3, 3), 2), big, o, g, want;
    V view = jot_transpose(w, JOT_INTS(1, 0)), m = numbers(c, JOT_SHAPE(3, 3), 3);
    jot_For how = {3, 0, false, 0};

    CHECK(jot_for(JOT_VARS(h), JOT_NONE_VARS, wave, &view, &how, &o)
          && jot_grad(all(o), JOT_VARS(view), &g) && jot_grad(all(o), JOT_VARS(w), &want)
          && apart(g, jot_transpose(want, JOT_INTS(1, 0))) < 1e-12
          && jot_item(all(jot_square(g))) > 0, "%s", jot_message(c));
    big = jot_broadcast_to(h, JOT_SHAPE(3, 3));
    CHECK(jot_for(JOT_VARS(m), JOT_NONE_VARS, adds, &big, &how, &o)
          && jot_grad(all(o), JOT_VARS(h), &g), "%s", jot_message(c));
    refused(c, jot_grad(all(o), JOT_VARS(big), &want), JOT_EGRAD, "jot_stop_fuse keeps it");
    big = jot_stop_fuse(big);
    CHECK(jot_for(JOT_VARS(m), JOT_NONE_VARS, adds, &big, &how, &o)
          && jot_grad(all(o), JOT_VARS(big), &want) && apart(g, jot_sum(want, JOT_DIMS(0))) < 1e-12,
          "%s", jot_message(c));
    jot_close(c);
}

static bool
waved(void *user, jot_Vars in, V *out)
{
    V at = jot_sin(jot_square(jot_offset(jot_iota(in.v[0].ctx, JOT_F64, JOT_SHAPE(3), 0), 0.5)));

    (void)user;
    out[0] = jot_add(jot_mul(in.v[0], at), jot_exp(at));
    return true;
}

/* What a body has of positions alone is the same node outside, which has elements when the loop
 * runs, or had them when it was built, or has them when it is differentiated. */
static void
test_outside(const char *backend, int when)
{
    jot_Ctx *c = open_ctx(backend);
    V h = numbers(c, JOT_SHAPE(3), 1), o, g, in[1] = {h}, step, want, slope;
    V at = jot_sin(jot_square(jot_offset(jot_iota(c, JOT_F64, JOT_SHAPE(3), 0), 0.5)));
    jot_For how = {3, 0, false, 0};
    bool ok;

    CHECK(when != 0 || jot_run(c, JOT_VARS(at)), "%s", jot_message(c));
    ok = jot_for(JOT_VARS(h), JOT_NONE_VARS, waved, NULL, &how, &o);
    CHECK(when != 1 || jot_run(c, JOT_VARS(at)), "%s", jot_message(c));
    ok = ok && jot_grad(all(jot_square(o)), JOT_VARS(h), &g);
    CHECK(when != 2 || jot_run(c, JOT_VARS(at)), "%s", jot_message(c));
    for (int k = 0; k < 3; k++, in[0] = step)
        ok = ok && waved(NULL, jot_vars(1, in), &step);
    want = in[0];
    ok = ok && jot_grad(all(jot_square(want)), JOT_VARS(h), &slope);
    CHECK(ok && apart(o, want) < 1e-12 && apart(g, slope) < 1e-12, "%s, %d: %s", backend, when,
          jot_message(c));
    jot_close(c);
}

/* Every allocation refused in turn: a failure, or the result; nothing is left behind. */
static void
test_allocations(const char *backend, int step)
{
    bool reached = true;
    long nth;

    for (nth = 1; reached && nth < 20000; nth += step) {
        Heap heap = {0};
        jot_Config config = {.backend = backend, .give_back = 1, .cache_dir = "",
                             .hooks.realloc = heap_realloc, .hooks.ud = &heap};
        jot_Ctx *c = jot_open(&config);
        V h = numbers(c, JOT_SHAPE(2), 1), s = numbers(c, JOT_SHAPE(4, 2), 2), out[OUTS];
        V w = numbers(c, JOT_SHAPE(2, 2), 3), t;
        bool ok;

        if (jot_error(c)) {
            SKIP("%s", jot_message(c));
            jot_close(c);
            return;
        }
        heap.countdown = nth;
        ok = program(1, h, s, w, out) && jot_jvp(JOT_VARS(out[0]), JOT_VARS(h), JOT_VARS(h), &t)
          && jot_run(c, JOT_VARS(out[0], out[2], t));
        reached = heap.refused > 0;
        heap.countdown = 0;
        CHECK(ok ? !jot_error(c) : jot_error(c) == JOT_EMEM, "allocation %ld: %s", nth,
              jot_message(c));
        jot_close(c);
        CHECK(!heap.live, "allocation %ld: %zu bytes are left", nth, heap.live);
    }
    CHECK(!reached && nth > 100, "%ld allocations", nth);
}

int
main(void)
{
    test_draws("interp");
    test_draws("tcc");
    test_function();
    test_recursion("interp");
    test_recursion("tcc");
    test_refused();
    test_both();
    test_views();
    for (int when = 0; when < 3; when++) {
        test_outside("interp", when);
        test_outside("tcc", when);
    }
    test_allocations("interp", test_many(2, 1));
    test_allocations("tcc", test_many(13, 7));
    return DONE();
}
