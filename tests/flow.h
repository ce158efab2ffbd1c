/* tests/flow.h - small programs with branches and loops, for tests/test_flow.c and
 * tests/test_flow_uses.c. */
#ifndef JOT_TEST_FLOW_H
#define JOT_TEST_FLOW_H
#include "core.h"
#include "tests/numbers.h"

static inline V
all(V x)
{
    return jot_sum(x, JOT_ALL_DIMS);
}

/* h (2), s (4, 2), w (2, 2) -> a number, what it came from, gradients by h, s, w */
enum { EXAMPLES = 3, KINDS = 5, OUTS = 5 };

static inline bool
cell(void *user, jot_Vars in, V *out)
{
    out[0] = jot_tanh(jot_add(jot_matmul(*(V *)user, in.v[0]), in.v[1]));
    out[1] = jot_mul(out[0], in.v[0]);
    return true;
}

static inline bool
below(void *user, jot_Vars in, V *out)
{
    (void)user;
    out[0] = jot_lt(all(in.v[0]), jot_scalar(in.v[0].ctx, JOT_F64, 40));
    return true;
}

static inline bool
grow(void *user, jot_Vars in, V *out)
{
    out[0] = jot_add(jot_square(in.v[0]), jot_offset(jot_sin(jot_matmul(*(V *)user, in.v[0])), 1));
    return true;
}

static inline bool
wave(void *user, jot_Vars in, V *out)
{
    out[0] = jot_sin(jot_matmul(*(V *)user, in.v[0]));
    return true;
}

static inline bool
program(int kind, V h, V s, V w, V *out)
{
    jot_Ctx *c = h.ctx;
    jot_For how = {0, 1, kind == 1, kind == 1 ? 2 : 0};
    V o[2], rest = all(jot_sin(s)), zero = jot_scalar(c, JOT_F64, 0);
    bool ok;

    if (kind < 2)
        ok = jot_for(JOT_VARS(h), JOT_VARS(s), cell, &w, &how, o);
    else if (kind == 2)
        ok = jot_while(JOT_VARS(jot_square(h)), below, grow, &w, 9, o);
    else
        ok = jot_cond(jot_gt(all(kind == 3 ? h : w), zero), JOT_VARS(h), wave, grow, &w, 1, o);
    out[0] = jot_add(all(jot_square(o[0])), rest);
    out[1] = kind < 2 ? o[1] : o[0];
    return ok && jot_grad(out[0], JOT_VARS(h, s, w), out + 2);
}

static inline bool
decay(void *user, jot_Vars in, V *out)
{
    out[0] = jot_sin(jot_mul(in.v[0], *(V *)user));
    return true;
}

#endif
