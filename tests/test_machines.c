/* tests/test_machines.c - programs are planned for machines that are not here: a board of one core,
 * servers of 128, vectors of 16 to 64 bytes or none, caches of any size, memory that is fast or
 * slow beside arithmetic, devices with groups of 32 items to 1024. Prices are honest, so these are
 * the schedules that such machines get. Kernels are planned and printed, nothing is compiled or
 * run: what is asked for is that the verifier of kernels and schedules, which looks at each plan,
 * refuses none.
 *
 *     graphs          those whose kernels tests/test_fuse.c counts, backward and training too
 *     contractions    products and convolutions of drawn extents and their gradients
 *     blocks          of residual networks, in training
 *     drawn           programs of tests/fuzz_programs.h
 *
 *     test_machines             the named machines and some that are drawn
 *     test_machines N FIRST     N drawn machines from number FIRST
 *
 * Read before: tests/test_forced.c, where prices are misjudged and kernels run. */
#include "ops/graph.h"
#include "tests/fuse_graphs.h"
#include "tests/fuzz_programs.h"
#include "tests/scribe.h"

/* ---- machines ----------------------------------------------------------------------------- */

typedef struct {
    const char *label, *dialect;
    int vector_nbytes, vectors;
    bool fma, tiles, copies, warps;
    int cores;
    int kib[LEVELS - 1]; /* of caches */
    double flops, bandwidth[LEVELS], call, handoff; /* one core: 1e9 a second; seconds */
    int group, group_kib;
} Posed;

static const Posed named[] = {
    {"board", "gnu", 16, 32, .fma = true, .cores = 1, .kib = {16, 128, 128}, .flops = 5,
     .bandwidth = {10, 5, 2, 2}, .call = 1e-6, .handoff = 1e-4},
    {"board without vectors", "c", 0, 16, .cores = 4, .kib = {32, 256, 256}, .flops = 2,
     .bandwidth = {8, 4, 2, 1}, .call = 1e-6, .handoff = 2e-4},
    {"laptop", "gnu", 32, 16, .fma = true, .cores = 8, .kib = {32, 512, 16384}, .flops = 100,
     .bandwidth = {200, 90, 40, 20}, .call = 1e-7, .handoff = 2e-5},
    {"server", "gnu", 64, 32, .fma = true, .cores = 64, .kib = {48, 2048, 262144}, .flops = 200,
     .bandwidth = {400, 150, 30, 12}, .call = 1e-7, .handoff = 1e-5},
    {"server with tiles", "gnu", 64, 32, .fma = true, .tiles = true, .cores = 2,
     .kib = {48, 2048, 262144}, .flops = 200, .bandwidth = {400, 150, 30, 12}, .call = 1e-7,
     .handoff = 1e-5},
    {"many small cores", "gnu", 16, 32, .fma = true, .cores = 128, .kib = {64, 1024, 32768},
     .flops = 40, .bandwidth = {90, 50, 20, 10}, .call = 1e-7, .handoff = 5e-5},
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

/* 2 to the power of something between low and high, in quarters. */
static double
power(int low, int high)
{
    return pow(2, low + rng(4 * (uint32_t)(high - low) + 1) / 4.0);
}

static Posed
drawn_machine(uint64_t number)
{
    static const int cores[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
    static char label[40];
    Posed m = {.label = label, .dialect = "gnu"};

    rng_state = number;
    snprintf(label, sizeof label, "machine %llu", (unsigned long long)number);
    m.vector_nbytes = 16 << rng(3);
    if (rng(4) == 0) {
        m.vector_nbytes = 0;
        m.dialect = "c";
    }
    m.vectors = 16 << rng(2);
    m.fma = rng(3) > 0;
    m.cores = cores[rng(sizeof cores / sizeof cores[0])];
    m.kib[0] = (int)power(4, 7);
    m.kib[1] = m.kib[0] * (int)power(0, 6);
    m.kib[2] = m.kib[1] * (int)power(0, 8);
    m.flops = power(0, 9);
    m.bandwidth[0] = m.flops * power(-1, 3);
    for (int i = 1; i < LEVELS; i++)
        m.bandwidth[i] = m.bandwidth[i - 1] * power(-4, 0);
    m.call = 1e-7 * power(-4, 4);
    m.handoff = 1e-5 * power(-4, 6);
    m.tiles = m.vector_nbytes == 64 && rng(2);
    if (number % 4 == 0) {
        m.vector_nbytes = 0;
        m.dialect = rng(2) ? "cuda" : "opencl";
        m.copies = m.warps = m.dialect[0] == 'c' && rng(2);
        m.group = 32 << rng(6);
        m.group_kib = 16 << rng(4);
    }
    return m;
}

static jot_Ctx *
open_machine(const Posed *m)
{
    jot_Config config = {.backend = "interp", .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    Target *t;

    CHECK(c && !jot_error(c), "%s: %s", m->label, jot_message(c));
    if (!c || jot_error(c))
        return c;
    t = &c->target;
    jot_target_default(t);
    t->vector_nbytes = m->vector_nbytes;
    t->vectors = m->vectors;
    t->fma = m->fma;
    t->tiles = m->tiles;
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
    }
    scribe_attach(c, m->dialect, m->group != 0);
    return c;
}

/* ---- programs ----------------------------------------------------------------------------- */

/* A product or a convolution, whether networks have such or not; what follows it in the same
 * kernel; the gradients of both operands. */
static int
contraction(jot_Var *out, uint64_t number)
{
    static const int channels[] = {1, 2, 3, 8, 12, 16, 24, 64, 96, 128, 200, 256};
    enum { KINDS = sizeof channels / sizeof channels[0] };
    static const jot_DType dtypes[] = {JOT_F32, JOT_F32, JOT_F32, JOT_BF16, JOT_F16, JOT_F64};
    jot_DType dtype;
    jot_Var v[2], y;

    rng_state = number;
    dtype = dtypes[rng(sizeof dtypes / sizeof dtypes[0])];
    if (rng(4) == 0) {
        int m = (int)power(0, 10), n = (int)power(0, 10), k = (int)power(0, 10), b = rng(3);

        v[0] = jot_cast(b ? IN(b + 1, m, k) : IN(m, k), dtype);
        v[1] = jot_cast(b ? IN(b + 1, k, n) : IN(k, n), dtype);
        y = jot_matmul(v[0], v[1]);
    } else {
        int taps = rng(3) ? 3 : 1 + 2 * rng(4), stride = 1 + rng(5) / 4;
        int wide = taps + (int)power(0, 6), n = 1 + rng(6), i = channels[rng(KINDS)];
        int groups = rng(6) ? 1 : i, o = groups > 1 ? i : channels[rng(KINDS)];
        jot_Conv how = {.stride = {stride, stride}, .pad = {taps / 2, taps / 2},
                        .groups = groups};

        v[0] = jot_cast(IN(n, i, wide, wide + rng(5)), dtype);
        v[1] = jot_cast(IN(o, i / groups, taps, taps), dtype);
        y = jot_conv2d(v[0], v[1], &how);
    }
    if (rng(2))
        y = jot_relu(jot_add(y, in(jot_shape(y))));
    out[0] = y;
    vjp(total(jot_square(y)), NO_DY, 2, v, out + 1);
    return 3;
}

/* The norm of a batch, as in training: the running mean and variance too. */
static jot_Var
normed(jot_Var x, jot_Var *out, int *n)
{
    int64_t c = jot_extent(x, 1);
    jot_Var y;

    out[*n] = IN(c), out[*n + 1] = IN(c);
    y = jot_batch_norm_train(x, IN(c), IN(c), 1e-5, 0.1, &out[*n], &out[*n + 1]);
    *n += 2;
    return y;
}

/* A block of a residual network, whose sides both go through a convolution, and what reads it, with
 * their gradients. */
static int
residual(jot_Var *out, uint64_t number)
{
    static const int channels[] = {4, 16, 24, 64, 128, 256, 512};
    enum { KINDS = sizeof channels / sizeof channels[0] };
    jot_Conv narrow = {{1, 1}, {0, 0}, {1, 1}, 1}, stride = narrow;
    jot_Var v[5], y;
    int n = 0, i, mid, o, wide, many;

    rng_state = number;
    i = channels[rng(KINDS)], mid = channels[rng(KINDS)], o = channels[rng(KINDS)];
    wide = 4 << rng(4), many = 1 + rng(4);
    stride.stride[0] = stride.stride[1] = 1 + rng(2);
    v[0] = IN(many, mid, wide / stride.stride[0], wide / stride.stride[0]);
    v[1] = IN(o, mid, 1, 1);
    v[2] = IN(many, i, wide, wide);
    v[3] = IN(o, i, 1, 1);
    y = normed(jot_conv2d(v[2], v[3], &stride), out, &n);
    y = jot_relu(jot_add(normed(jot_conv2d(v[0], v[1], &narrow), out, &n), y));
    v[4] = IN(i, o, 1, 1);
    out[n++] = y = jot_conv2d(y, v[4], &narrow);
    vjp(total(jot_square(y)), NO_DY, 5, v, out + n);
    return n + 5;
}

static const Row rows[] = {ROWS};
enum { ROW_CASES = sizeof rows / sizeof rows[0], CONTRACTIONS = 60, BLOCKS = 12, PROGRAMS = 40 };

/* Program number `which` in a context of its own; `first`: of what is drawn. */
static void
plan(const Posed *m, int which, uint64_t first)
{
    static Notes notes;
    static Prog prog;
    jot_Var out[VARS + 16];
    const char *label;
    int n;

    scribe = &notes;
    forget_notes(&notes);
    ctx = open_machine(m);
    if (ctx && !jot_error(ctx)) {
        rng_state = 0;
        if (which < ROW_CASES)
            label = rows[which].name, n = rows[which].build(out, rows[which].arg);
        else if ((which -= ROW_CASES) < CONTRACTIONS)
            label = "contraction", n = contraction(out, first + (uint64_t)which);
        else if ((which -= CONTRACTIONS) < BLOCKS)
            label = "residual block", n = residual(out, first + (uint64_t)which);
        else
            label = "program", n = fuzz_program(&prog, ctx, first + (uint64_t)which, out);
        CHECK(n > 0 && jot_run(ctx, jot_vars(n, out)), "%s: %s %d: %s", m->label, label, which,
              jot_message(ctx));
        CHECK(notes.names > 0 && notes.n > 0, "%s: %s %d: no text", m->label, label, which);
    }
    jot_close(ctx);
}

int
main(int argc, char **argv)
{
    int drawn = argc > 1 ? atoi(argv[1]) : 12, all = ROW_CASES + CONTRACTIONS + BLOCKS + PROGRAMS;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    for (int k = argc > 1 ? NAMED : 0; k < NAMED + drawn; k++) {
        uint64_t number = first + (uint64_t)(k - NAMED);
        Posed m = k < NAMED ? named[k] : drawn_machine(number);

        for (int i = 0; i < all; i++)
            plan(&m, i, k < NAMED ? 1 : number * 1000);
    }
    return DONE();
}
