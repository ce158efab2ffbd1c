/* tests/rates.h - the same machine everywhere, for tests that assert what is chosen by price. */
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
    t->flops = 1e11;
    t->bandwidth[LEVEL_MEMORY] = t->bandwidth_all = 2e10;
    t->call = 1e-7;
}

#endif
