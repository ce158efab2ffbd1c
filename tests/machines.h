/* tests/machines.h - machines that are not here, by their figures: what a board, a server or a
 * device would plan and print can be looked at without it. Nothing is measured, compiled or run.
 *
 * Read before: target/target.h, tests/scribe.h. After: tests/test_machines.c, tests/kernels/. */
#ifndef JOT_TEST_MACHINES_H
#define JOT_TEST_MACHINES_H
#include "ops/graph.h"
#include "tests/scribe.h"

/* what a matrix unit of a processor contracts */
enum { TILES = 1 << DOT_BF16 | 1 << DOT_U8I8 | 1 << DOT_I8 | 1 << DOT_U8 };

typedef struct {
    const char *label, *dialect;
    int vector_nbytes, vectors;
    bool fma, copies, warps;
    uint32_t dots, tiles;
    int cores;
    int kib[LEVELS - 1]; /* of caches */
    double flops, bandwidth[LEVELS], call, handoff; /* one core: 1e9 a second; seconds */
    int group, group_kib;
    const char *quick; /* dialect of a first tier; NULL: there is one tier */
    uint64_t drawn;    /* not 0: an invented machine of those vectors, prices distorted */
    jot_Config config; /* what else is asked for */
} Posed;

static const Posed named[] = {
    {"board", "gnu", 16, 32, .fma = true, .cores = 1, .kib = {16, 128, 128}, .flops = 5,
     .bandwidth = {10, 5, 2, 2}, .call = 1e-6, .handoff = 1e-4},
    {"board without vectors", "c", 0, 16, .cores = 4, .kib = {32, 256, 256}, .flops = 2,
     .bandwidth = {8, 4, 2, 1}, .call = 1e-6, .handoff = 2e-4},
    {"laptop", "gnu", 32, 16, .fma = true, .dots = 1 << DOT_I16 | 1 << DOT_U7I8, .cores = 8,
     .kib = {32, 512, 16384}, .flops = 100, .bandwidth = {200, 90, 40, 20}, .call = 1e-7, .handoff = 2e-5},
    {"server", "gnu", 64, 32, .fma = true, .dots = 1 << DOT_BF16 | 1 << DOT_U8I8 | 1 << DOT_I16,
     .cores = 64, .kib = {48, 2048, 262144}, .flops = 200, .bandwidth = {400, 150, 30, 12},
     .call = 1e-7, .handoff = 1e-5},
    {"server with tiles", "gnu", 64, 32, .fma = true, .tiles = TILES,
     .dots = 1 << DOT_U8I8 | 1 << DOT_I16, .cores = 2, .kib = {48, 2048, 262144}, .flops = 200,
     .bandwidth = {400, 150, 30, 12}, .call = 1e-7, .handoff = 1e-5},
    {"many small cores", "gnu", 16, 32, .fma = true,
     .dots = 1 << DOT_BF16 | 1 << DOT_I8 | 1 << DOT_U8, .cores = 128, .kib = {64, 1024, 32768}, .flops = 40,
     .bandwidth = {90, 50, 20, 10}, .call = 1e-7, .handoff = 5e-5},
    {"starved of memory", "gnu", 64, 32, .fma = true, .cores = 32, .kib = {32, 256, 1024},
     .flops = 400, .bandwidth = {800, 60, 6, 1}, .call = 1e-8, .handoff = 1e-6},
    {"slow arithmetic", "gnu", 16, 16, .cores = 16, .kib = {32, 1024, 65536}, .flops = 1,
     .bandwidth = {100, 90, 80, 70}, .call = 1e-5, .handoff = 1e-3},
    {"small device", "opencl", .cores = 4, .kib = {32, 512, 4096}, .flops = 10,
     .bandwidth = {20, 10, 8, 8}, .call = 1e-5, .handoff = 1e-5, .group = 64, .group_kib = 16},
    {"device", "opencl", .cores = 16, .kib = {32, 512, 4096}, .flops = 10,
     .bandwidth = {20, 10, 8, 8}, .call = 1e-5, .handoff = 1e-5, .group = 256, .group_kib = 32},
    {"CUDA 7.0", "cuda", .cores = 8, .kib = {32, 512, 4096}, .flops = 10,
     .bandwidth = {20, 10, 8, 8}, .call = 1e-5, .handoff = 1e-5, .group = 1024, .group_kib = 96},
    {"CUDA 9.0", "cuda", .copies = true, .warps = true, .cores = 16, .kib = {32, 512, 4096},
     .flops = 10, .bandwidth = {20, 10, 8, 8}, .call = 1e-5, .handoff = 1e-5, .group = 1024,
     .group_kib = 227},
};
enum { NAMED = sizeof named / sizeof named[0] };

static jot_Ctx *
open_machine(const Posed *m)
{
    jot_Config config = m->config;
    jot_Ctx *c;
    Target *t;

    config.backend = "interp";
    config.cache_dir = "";
    c = jot_open(&config);

    CHECK(c && !jot_error(c), "%s: %s", m->label, jot_message(c));
    if (!c || jot_error(c))
        return c;
    t = &c->target;
    jot_target_default(t);
    t->vector_nbytes = m->vector_nbytes;
    t->vectors = m->vectors;
    t->fma = m->fma;
    t->matrix = m->tiles;
    t->dots = m->dots;
    t->copies = m->copies;
    t->warps = m->warps;
    t->cores = m->cores;
    t->flops = m->flops * 1e9;
    for (int i = 0; i < LEVELS; i++)
        t->bandwidth[i] = m->bandwidth[i] * 1e9;
    t->bandwidth_all = t->bandwidth[LEVEL_MEMORY] * (1 + m->cores / 4.0);
    for (int i = 0; i < LEVELS - 1; i++)
        t->cache_nbytes[i] = (int64_t)m->kib[i] << 10;
    t->call = m->call;
    t->handoff = m->handoff;
    if (m->group) {
        t->group = m->group;
        t->group_nbytes = (int64_t)m->group_kib << 10;
        t->blocks = false; /* as backends/host/driver.c has it */
    }
    if (m->drawn)
        jot_target_draw(t, m->drawn);
    scribe_attach(c, m->dialect, m->group != 0);
    return c;
}

#endif
