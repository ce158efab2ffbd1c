/* tests/test_parts.c - parts that are computed again, and gradients of one's own, where they stand:
 * in branches and loops, in many examples, within each other. Parts of weights alone, of values and
 * maps from outside, of maps of maps, of the same twice, against the graph without them, to second
 * order; callbacks that read from outside; what a part within has between its x and its y is no x.
 * And branches of many examples by a test of each, on what all share.
 *
 * Guards: ops/transform/checkpoint.c, ops/transform/part.c, ops/flow/body.c, ops/flow/grad.c,
 * ops/flow/batch.c, ops/transform/vmap.c, ops/grad/past.c. */
#include "core.h"
#include "nn.h"
#include "tests/numbers.h"
#include "tests/test.h"

static V
all(V x)
{
    return jot_sum(x, JOT_ALL_DIMS);
}

/* ---- parts -------------------------------------------------------------------------------- */

enum { WEIGHT, ALONE, NAMED, MAPPED, OF_MAP, TWICE, WITHIN, BESIDE, SEVERAL, PUT, PARTS };

typedef struct { int kind; bool again; V w, square, turned; } Part;

/* y[n - 1], of a part from x to y, or as it is */
static V
part(const Part *p, jot_Vars y, jot_Vars x)
{
    V out[2];

    if (!p->again)
        return y.v[y.n - 1];
    jot_checkpoint(y, x, out);
    return out[y.n - 1];
}

/* a (3) -> (3) */
static bool
body(void *user, jot_Vars in, V *out)
{
    const Part *p = user;
    V a = in.v[0], w = p->w, e, y;

    switch (p->kind) {
    case WEIGHT: y = part(p, JOT_VARS(jot_mul(a, jot_sin(w))), JOT_VARS(a, w)); break;
    case ALONE: y = jot_mul(part(p, JOT_VARS(jot_sin(w)), JOT_VARS(a, w)), a); break;
    case NAMED: y = part(p, JOT_VARS(jot_mul(a, p->square)), JOT_VARS(a, w)); break;
    case MAPPED: y = part(p, JOT_VARS(jot_mul(jot_sin(a), p->turned)), JOT_VARS(a)); break;
    case OF_MAP:
        e = jot_flip(a, JOT_INTS(0));
        y = part(p, JOT_VARS(jot_mul(jot_sin(jot_roll(e, 0, 1)), w)), JOT_VARS(e));
        break;
    case TWICE: y = part(p, JOT_VARS(jot_sin(a)), JOT_VARS(a, jot_reshape(a, JOT_SHAPE(3)))); break;
    case WITHIN:
        y = part(p, JOT_VARS(jot_add(jot_sin(w), jot_sin(a))), JOT_VARS(w));
        y = part(p, JOT_VARS(y), JOT_VARS(a));
        break;
    case BESIDE:
        y = part(p, JOT_VARS(jot_mul(jot_sin(w), a)), JOT_VARS(w, a));
        y = part(p, JOT_VARS(jot_sin(y)), JOT_VARS(a));
        break;
    case SEVERAL: y = part(p, JOT_VARS(a, jot_add(a, a)), JOT_VARS(w)); break;
    default:
        e = jot_mul(w, jot_narrow(w, 0, 0, 1));
        y = part(p, JOT_VARS(jot_update_slice(e, JOT_INTS(1), jot_narrow(a, 0, 0, 2))),
                 JOT_VARS(e));
        break;
    }
    out[0] = jot_scale(y, 1.25);
    return true;
}

static bool
other(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_neg(in.v[0]);
    return true;
}

/* ---- where they stand --------------------------------------------------------------------- */

enum { PLAIN, BRANCH, LOOP, KEPT, PLACES };

static V
placed(int place, V a, Part *p)
{
    const jot_For how = {2, 0, false, place == KEPT ? 2 : 0};
    V out = jot_none();

    if (place == PLAIN)
        body(p, JOT_VARS(a), &out);
    else if (place == BRANCH)
        jot_cond(jot_lt(all(a), jot_scalar(a.ctx, JOT_F64, 1e3)), JOT_VARS(a), body, other, p, 1,
                 &out);
    else
        jot_for(JOT_VARS(a), JOT_NONE_VARS, body, p, &how, &out);
    return out;
}

/* of x (3), or (4, 3), (3, 4) by its axis: a value, gradients by x and w, and theirs */
static V
made(int place, int axis, V x, Part *p, V *g)
{
    V a = axis < 0 ? x : jot_array(x.ctx, JOT_F64, JOT_SHAPE(3), NULL), y = placed(place, a, p);
    const jot_Vmap how = {JOT_INTS(axis), JOT_INTS(0), false};

    if (axis >= 0)
        jot_vmap(JOT_VARS(y), JOT_VARS(a), JOT_VARS(x), &how, &y);
    y = all(jot_sin(jot_mul(y, jot_offset(jot_iota(x.ctx, JOT_F64, jot_shape(y), 0), 0.5))));
    jot_grad(y, JOT_VARS(x, p->w), g);
    jot_grad(jot_add(all(jot_sin(g[0])), all(jot_square(g[1]))), JOT_VARS(x, p->w), g + 2);
    return y;
}

static void
test_part(const char *backend, int kind, int place, int axis)
{
    jot_Ctx *c = open_ctx(backend);
    V x = numbers(c, axis < 0 ? JOT_SHAPE(3) : axis ? JOT_SHAPE(3, 4) : JOT_SHAPE(4, 3), 1), g[8];
    V w = numbers(c, JOT_SHAPE(3), 2), y[2];
    Part p = {kind, false, w, jot_mul(w, w), jot_flip(w, JOT_INTS(0))};
    int k;

    y[0] = made(place, axis, x, &p, g);
    p.again = true;
    y[1] = made(place, axis, x, &p, g + 4);
    CHECK(apart(y[0], y[1]) < 1e-13, "part %d at %d, %d: %s", kind, place, axis, jot_message(c));
    for (k = 0; k < 4; k++)
        CHECK(apart(g[k], g[4 + k]) < 1e-12, "part %d at %d, axis %d: gradient %d: %s", kind, place,
              axis, k, jot_message(c));
    jot_close(c);
}

/* ---- gradients of one's own --------------------------------------------------------------- */

/* of sin(a) w, where w is from outside, or an array that is made here */
static bool
own(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, V *dx)
{
    const double three[3] = {1, 2, 3};
    V k = user ? *(V *)user : jot_array(x.v[0].ctx, JOT_F64, JOT_SHAPE(3), three);

    (void)y;
    dx[0] = jot_mul(jot_mul(dy.v[0], k), jot_cos(x.v[0]));
    return true;
}

static bool
inner(void *user, jot_Vars in, V *out)
{
    V y = jot_stop_grad(jot_sin(in.v[0]));

    return jot_custom_grad(JOT_VARS(y), in, own, user, out);
}

/* x is from outside, and its value is a map of it */
static bool
outer(void *user, jot_Vars in, V *out)
{
    const V *x = user;
    V y = jot_flip(*x, JOT_INTS(0));

    out[0] = jot_scale(in.v[0], 0.5);
    return jot_custom_grad(JOT_VARS(y), JOT_VARS(*x), own, NULL, out + 1);
}

static void
test_own(const char *backend)
{
    const double three[3] = {1, 2, 3};
    jot_Ctx *c = open_ctx(backend);
    V x = numbers(c, JOT_SHAPE(3), 1), w = jot_param(c, JOT_F64, JOT_SHAPE(3), three), y[2], g[2];
    V zero = jot_scalar(c, JOT_F64, -1e3), h[2];
    const jot_For once = {1, 0, false, 0}, twice = {2, 1, true, 1};
    int k;

    for (k = 0; k < 4; k++) {
        V *user = k % 2 ? &w : NULL;

        if (k < 2)
            jot_cond(jot_gt(all(x), zero), JOT_VARS(x), inner, other, user, 1, y);
        else
            jot_for(JOT_VARS(x), JOT_NONE_VARS, inner, user, &once, y);
        jot_grad(all(y[0]), JOT_VARS(x), g);
        CHECK(apart(g[0], jot_mul(w, jot_cos(x))) < 1e-14, "%d: %s", k, jot_message(c));
        jot_grad(all(g[0]), JOT_VARS(x, w), h);
        CHECK(apart(h[0], jot_neg(jot_mul(w, jot_sin(x)))) < 1e-14, "%d: %s", k, jot_message(c));
        CHECK(!user || apart(h[1], jot_cos(x)) < 1e-14, "%d: %s", k, jot_message(c));
    }
    jot_for(JOT_VARS(x), JOT_NONE_VARS, outer, &x, &twice, y);
    jot_grad(all(y[1]), JOT_VARS(x), g);
    CHECK(apart(g[0], jot_scale(jot_mul(w, jot_cos(x)), 2)) < 1e-14, "%s", jot_message(c));
    jot_close(c);
}

/* ---- many --------------------------------------------------------------------------------- */

static bool
sines(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_sin(in.v[0]);
    return true;
}

/* Of as many elements as there are examples, too. */
static void
test_shared(const char *backend, jot_Ints shape)
{
    const double tests[3] = {1, -1, 2};
    jot_Ctx *c = open_ctx(backend);
    V t = jot_array(c, JOT_F64, JOT_SHAPE(), NULL), ts = jot_array(c, JOT_F64, JOT_SHAPE(3), tests);
    V w = numbers(c, shape, 1), y, g;

    jot_cond(jot_gt(t, jot_zeros(c, JOT_F64, JOT_SHAPE())), JOT_VARS(w), sines, other, NULL, 1, &y);
    jot_vmap(JOT_VARS(y), JOT_VARS(t), JOT_VARS(ts), NULL, &y);
    CHECK(apart(y, jot_stack(JOT_VARS(jot_sin(w), jot_neg(w), jot_sin(w)), 0)) < 1e-15, "%s",
          jot_message(c));
    jot_grad(all(y), JOT_VARS(w), &g);
    CHECK(apart(g, jot_offset(jot_scale(jot_cos(w), 2), -1)) < 1e-15, "%s", jot_message(c));
    jot_close(c);
}

static void
test_between(void)
{
    jot_Ctx *c = open_ctx("interp");
    V w = numbers(c, JOT_SHAPE(3), 1), a = jot_exp(w), y = jot_add(jot_sin(w), a);

    jot_name(a, "hidden");
    jot_checkpoint(JOT_VARS(y), JOT_VARS(w), &y);
    CHECK(!jot_checkpoint(JOT_VARS(y), JOT_VARS(a), &y) && jot_error(c) == JOT_EGRAD
              && strstr(jot_message(c), "hidden"), "%s", jot_message(c));
    CHECK(!jot_ok(y), "poison");
    jot_close(c);
}

int
main(void)
{
    static const char *const backends[] = {"interp", NULL};
    int b, kind, place, axis;

    for (b = 0; b < 2; b++) {
        for (kind = 0; kind < PARTS; kind++)
            for (place = 0; place < PLACES; place++)
                for (axis = -1; axis < 2; axis++)
                    if ((!b || place != KEPT)
                        && (kind + place + b + axis + 1) % test_many(3, 1) == 0)
                        test_part(backends[b], kind, place, axis);
        test_own(backends[b]);
        test_shared(backends[b], JOT_SHAPE(3));
        test_shared(backends[b], JOT_SHAPE(3, 2));
        test_shared(backends[b], JOT_SHAPE());
    }
    test_between();
    return DONE();
}
