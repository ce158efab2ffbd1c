/* tests/flow_drawn.h - drawn programs of branches and loops, nested, as graphs of such and unrolled by
 * the host, for tests/test_flow.c and tests/test_save_flow.c. */
#ifndef JOT_TEST_FLOW_DRAWN_H
#define JOT_TEST_FLOW_DRAWN_H
#include "tests/flow.h"

/* ---- the same program, as a graph of branches and loops and unrolled ------------------------- */

static bool unrolled; /* conditions are asked here, and trips built one after the other */

static inline bool
one_cond(V test, jot_Vars x, jot_BodyFn *then, jot_BodyFn *otherwise, void *user, int n, V *out)
{
    if (!unrolled)
        return jot_cond(test, x, then, otherwise, user, n, out);
    return (jot_item(test) != 0 ? then : otherwise)(user, x, out);
}

static inline bool
one_while(jot_Vars init, jot_BodyFn *test, jot_BodyFn *body, void *user, int64_t most, V *out)
{
    V now[8], go;
    int64_t t;

    if (!unrolled)
        return jot_while(init, test, body, user, most, out);
    memcpy(now, init.v, (size_t)init.n * sizeof *now);
    for (t = 0; !most || t < most; t++) {
        if (!test(user, jot_vars(init.n, now), &go) || jot_item(go) == 0)
            break;
        if (!body(user, jot_vars(init.n, now), out))
            return false;
        memcpy(now, out, (size_t)init.n * sizeof *now);
    }
    memcpy(out, now, (size_t)init.n * sizeof *now);
    return true;
}

static inline bool
one_for(jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, const jot_For *how, V *out)
{
    int64_t n = xs.n ? jot_extent(xs.v[0], 0) : how->trips, t, s;
    V in[8], made[8], stack[4][32];
    int k;

    if (!unrolled)
        return jot_for(init, xs, body, user, how, out);
    memcpy(in, init.v, (size_t)init.n * sizeof *in);
    for (t = 0; t < n; t++) {
        s = how->reverse ? n - 1 - t : t;
        for (k = 0; k < xs.n; k++)
            in[init.n + k] = jot_squeeze(jot_slice_dim(xs.v[k], 0, s, s + 1, 1), 0);
        if (!body(user, jot_vars(init.n + xs.n, in), made))
            return false;
        memcpy(in, made, (size_t)init.n * sizeof *in);
        for (k = 0; k < how->stacked; k++)
            stack[k][s] = made[init.n + k];
    }
    memcpy(out, in, (size_t)init.n * sizeof *in);
    for (k = 0; k < how->stacked; k++)
        out[init.n + k] = jot_stack(jot_vars((int)n, stack[k]), 0);
    return true;
}

/* ---- drawn programs -------------------------------------------------------------------------- */

/* A body draws what it is made of: the same each time it is called. w (3, 3), b (3) are outside. */
typedef struct { V w, b; unsigned seed; int depth, results; } Drawn;

static inline unsigned
draw(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static inline bool drawn_body(void *user, jot_Vars in, V *out);

static inline V
drawn_element(Drawn *d, unsigned *seed, jot_Vars in)
{
    V a = in.v[draw(seed, (unsigned)in.n)], b = in.v[draw(seed, (unsigned)in.n)];

    switch (draw(seed, 8)) {
    case 0: return jot_tanh(jot_add(jot_matmul(d->w, a), b));
    case 1: return jot_sin(jot_mul(a, b));
    case 2: return jot_add(jot_scale(a, 0.5), jot_mul(d->b, jot_cos(b)));
    case 3: return jot_where(jot_lt(a, b), jot_scale(a, 0.7), jot_sin(b));
    case 4: return jot_tanh(jot_sub(a, jot_mean(b, JOT_KEEP(0))));
    case 5: return jot_flip(jot_scale(a, 0.9), JOT_INTS(0));
    case 6: return a;
    default: return jot_tanh(jot_matmul(jot_transpose(d->w, JOT_INTS(1, 0)), jot_mul(a, d->b)));
    }
}

static inline bool
drawn_test(void *user, jot_Vars in, V *out)
{
    Drawn *d = user;
    unsigned seed = d->seed * 7 + 3;

    out[0] = jot_logical_and(jot_lt(all(in.v[in.n - 1]), jot_scalar(in.v[0].ctx, JOT_F64,
                                                                    3.0 * (1 + draw(&seed, 5)))),
                             jot_lt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 2)));
    return true;
}

/* All but the last are drawn, and that counts. */
static inline bool
drawn_count(void *user, jot_Vars in, V *out)
{
    Drawn one = *(Drawn *)user;

    one.depth--;
    one.results = in.n - 1;
    out[in.n - 1] = jot_offset(in.v[in.n - 1], 1);
    return drawn_body(&one, in, out);
}

/* Another branch than drawn_body. */
static inline bool
drawn_other(void *user, jot_Vars in, V *out)
{
    Drawn one = *(Drawn *)user;

    one.seed = one.seed * 31 + 11;
    return drawn_body(&one, in, out);
}

static inline bool
drawn_within(Drawn *d, unsigned *seed, jot_Vars in, V *out)
{
    Drawn one = {d->w, d->b, *seed, d->depth - 1, 2};
    V got[8], from[3] = {in.v[0], in.v[in.n - 1], jot_scale(d->b, 0)};
    jot_For how = {draw(seed, 4), 1, draw(seed, 2), draw(seed, 3)};

    switch (draw(seed, 3)) {
    case 0:
        return one_cond(jot_gt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 0.2)),
                        jot_vars(2, from), drawn_body, drawn_other, &one, 2, got)
            && (*out = jot_add(got[0], got[1]), true);
    case 1:
        one.depth++;
        return one_while(jot_vars(3, from), drawn_test, drawn_count, &one, 4, got)
            && (*out = jot_sub(got[0], got[1]), true);
    default:
        how.trips += 2;
        one.results = 3;
        return one_for(jot_vars(2, from), JOT_NONE_VARS, drawn_body, &one, &how, got)
            && (*out = jot_add(got[0], jot_sum(got[2], JOT_DIMS(0))), true);
    }
}

static inline bool
drawn_body(void *user, jot_Vars in, V *out)
{
    Drawn *d = user;
    unsigned seed = d->seed;
    int k;

    for (k = 0; k < d->results; k++)
        if (!d->depth || draw(&seed, 3))
            out[k] = drawn_element(d, &seed, in);
        else if (!drawn_within(d, &seed, in, &out[k]))
            return false;
    return true;
}

/* The outputs of the program of a seed. */
static inline bool
drawn_outputs(unsigned seed, Drawn *d, V x, V s, V *out)
{
    jot_Ctx *c = x.ctx;
    jot_For how = {0, 1, draw(&seed, 2), draw(&seed, 4)};
    V from[2] = {x, jot_zeros(c, JOT_F64, JOT_SHAPE(3))};

    d->seed = seed;
    d->depth = 2;
    switch (draw(&seed, 3)) {
    case 0:
        d->results = 3;
        return one_for(jot_vars(2, from), JOT_VARS(s), drawn_body, d, &how, out);
    case 1:
        out[2] = jot_mul(x, x);
        return one_while(jot_vars(2, from), drawn_test, drawn_count, d, 6, out);
    default:
        d->results = 2;
        out[2] = jot_sum(s, JOT_DIMS(0));
        from[1] = out[2];
        return one_cond(jot_lt(all(x), jot_scalar(c, JOT_F64, 0.1)), jot_vars(2, from), drawn_body,
                        drawn_other, d, 2, out);
    }
}

/* Values, gradients, a second order, a tangent and its gradient of the program of a seed, on x (3),
 * s (5, 3), w (3, 3) and b (3). */
enum { DRAWN_IN = 4, DRAWN_OUT = 10 };

static inline bool
drawn_graph(unsigned seed, const V in[DRAWN_IN], V out[DRAWN_OUT])
{
    V x = in[0], s = in[1], w = jot_stop_fuse(jot_scale(in[2], 0.5)), b = in[3], y;
    Drawn d = {w, b, 0, 0, 0};
    bool ok = drawn_outputs(seed, &d, x, s, out);

    y = jot_add(all(jot_sin(out[0])), jot_add(all(out[1]), jot_scale(all(out[2]), 0.3)));
    return ok && jot_grad(y, JOT_VARS(x, w, b, s), out + 3)
        && jot_grad(all(jot_square(out[3])), JOT_VARS(w), &out[7])
        && jot_jvp(JOT_VARS(y), JOT_VARS(x, w), JOT_VARS(b, jot_square(w)), &out[8])
        && jot_grad(all(out[8]), JOT_VARS(x), &out[9]);
}

#endif
