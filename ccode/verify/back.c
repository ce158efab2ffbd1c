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
#include "ccode/verify/verify.h"

/* What the stage computes itself loads from buffers that the kernel stores into. */
typedef struct {
    const Sched *s;
    uint32_t stage;
    bool ok;
    uint64_t seen[KERNEL_VALUES / 64];
} Back;

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

static void
back_value(Back *b, uint32_t value, bool self, int depth)
{
    const Value *v = &b->s->k->values.v[value];
    if ((b->seen[value / 64] >> value % 64 & 1) || (!self && jot_stage_of(b->s, value) >= 0))
        return;
    b->seen[value / 64] |= (uint64_t)1 << value % 64;
    if (v->op == VAL_LOAD && b->s->k->bufs.v[v->buf].role != BUF_INPUT)
        b->ok &= stored_before(b->s, b->stage, v->buf) && same_phase(b->s, b->stage, v->buf);
    for (int i = 0; i < v->narg && depth < VALUE_DEPTH; i++)
        back_value(b, b->s->k->args.v[v->arg + (uint32_t)i], false, depth + 1);
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
    for (uint32_t i = 0; reads_back(s->k) && i < s->stages.n; i++) {
        Back b;
        memset(&b, 0, sizeof b);
        b.s = s;
        b.stage = i;
        b.ok = true;
        if (!s->stages.v[i].combine)
            back_value(&b, jot_stage_value(s, &s->stages.v[i]), true, 0);
        if (!b.ok)
            return jot_refuse(why, "a stage reads back what is not stored yet", i);
    }
    return true;
}
