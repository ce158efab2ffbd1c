/* ccode/verify/back.c - what a kernel stores and reads back (ccode/contract/epilogue.c) is
 * there by then: each stage is asked for the loads that it computes itself.
 *
 *     !0 y[i] = ...       before a stage that loads y: in an earlier phase, or in the same call,
 *                         which has the same steps of the parallel loops
 *     memory of a call    stored in the same phase
 *
 *   requires  a verified kernel, stages in order      keeps  everything      breaks  nothing
 *
 * Read before: ccode/verify/sched.c. */
#include "ccode/ir/operands.h"
#include "ccode/verify/verify.h"

static int
parallel_loops(const Stage *st)
{
    int n = 0;
    while (n < st->n && st->loop[n].kind == LOOP_PARALLEL)
        n++;
    return n;
}

/* Every store into the buffer is behind: in an earlier phase, or before in the same call. */
static bool
stored_before(const Sched *s, uint32_t stage, uint32_t buf)
{
    const Stage *st = &s->stages.v[stage];
    int shared = parallel_loops(st);
    for (uint32_t i = 0; i < s->stages.n; i++) {
        const Stage *p = &s->stages.v[i];
        if (!p->store || s->k->stores.v[p->what].buf != buf)
            continue;
        if (i >= stage || (p->phase == st->phase && parallel_loops(p) != shared))
            return false;
        for (int j = 0; p->phase == st->phase && j < shared; j++)
            if (!jot_loop_eq(&p->loop[j], &st->loop[j]))
                return false;
    }
    return true;
}

/* Stores of a call's own memory stand in the same phase. */
static bool
same_phase(const Sched *s, uint32_t stage, uint32_t buf)
{
    for (uint32_t i = 0; s->k->bufs.v[buf].role == BUF_SCRATCH && i < stage; i++) {
        const Stage *p = &s->stages.v[i];
        if (p->store && s->k->stores.v[p->what].buf == buf
            && p->phase != s->stages.v[stage].phase)
            return false;
    }
    return true;
}

/* What the stage computes itself loads from buffers that the kernel stores into. */
static bool
back_ok(const Sched *s, uint32_t stage)
{
    const Kernel *k = s->k;
    uint32_t root = jot_stage_value(s, &s->stages.v[stage]), n;
    OperandWalk w;
    for (jot_operands_open(&w, k, root); (n = jot_operands_next(&w)) != 0;) {
        const Value *v = &k->values.v[n];
        if (n != root && jot_stage_of(s, n) >= 0)
            jot_operands_skip(&w);
        else if (v->op == VAL_LOAD && k->bufs.v[v->buf].role != BUF_INPUT &&
                 (!stored_before(s, stage, v->buf) || !same_phase(s, stage, v->buf)))
            return false;
    }
    return true;
}

static bool
reads_back(const Kernel *k)
{
    for (uint32_t i = 1; i < k->values.n; i++)
        if (k->values.v[i].op == VAL_LOAD && k->bufs.v[k->values.v[i].buf].role != BUF_INPUT)
            return true;
    return false;
}

JOT_FN bool
jot_verify_back(const Sched *s, Text *why)
{
    for (uint32_t i = 0; reads_back(s->k) && i < s->stages.n; i++)
        if (!s->stages.v[i].combine && !back_ok(s, i))
            return jot_refuse(why, "a stage reads back what is not stored yet", i);
    return true;
}
