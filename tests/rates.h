/* tests/rates.h - the same machine everywhere but for its vectors, for tests that assert what is
 * chosen by price: after jot_open, before anything is planned. */
#ifndef JOT_TEST_RATES_H
#define JOT_TEST_RATES_H
#include "ops/graph.h"

static inline void
same_rates(jot_Ctx *c)
{
    Target *t = &c->target;

    t->cores = 2;
    t->cache_nbytes[LEVEL_L1] = 32 << 10;
    t->cache_nbytes[LEVEL_L2] = 1 << 20;
    t->cache_nbytes[LEVEL_L3] = 16 << 20;
    t->flops = 1e11;
    t->bandwidth[LEVEL_L1] = 16e10;
    t->bandwidth[LEVEL_L2] = 8e10;
    t->bandwidth[LEVEL_L3] = 4e10;
    t->bandwidth[LEVEL_MEMORY] = t->bandwidth_all = 2e10;
    t->call = 1e-7;
    t->handoff = 2e-5;
    t->late = false; /* they are not measured later, either */
}

#endif
