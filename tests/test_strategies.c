/* test_strategies.c - which strategy has a kernel, and why those above it in the table refused, as
 * JOT_DUMP=r says, on machines that are not here.
 *
 * Guards: ccode/strategy/estimate.c, ccode/strategy/passes.c, ccode/strategy/strategy.c, plan/built.c.
 * Read before: docs/kernels.md, tests/scribe.h. */
#include "tests/hooks.h"
#include "tests/scribe.h"
#include "tests/test.h"

static jot_Var
x(jot_Ctx *c, jot_Ints shape)
{
    static const float zeros[64 * 64 * 3 * 3]; /* of the largest, the taps of a convolution */

    return jot_array(c, JOT_F32, shape, zeros);
}

static jot_Var
conv(jot_Ctx *c, int64_t in, int64_t out, int groups)
{
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, groups};

    return jot_conv2d(x(c, JOT_SHAPE(2, in, 16, 16)), x(c, JOT_SHAPE(out, in / groups, 3, 3)),
                      &how);
}

static jot_Var
halved(jot_Ctx *c)
{
    jot_Conv how = {{2, 2}, {1, 1}, {1, 1}, 1};

    return jot_conv2d(x(c, JOT_SHAPE(2, 64, 16, 16)), x(c, JOT_SHAPE(64, 64, 3, 3)), &how);
}

static jot_Var
row(jot_Ctx *c)
{
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};

    return jot_conv2d(x(c, JOT_SHAPE(2, 64, 2, 16)), x(c, JOT_SHAPE(64, 64, 3, 3)), &how);
}

/* By input, of one image with fewer results than taps. */
static jot_Var
few(jot_Ctx *c)
{
    jot_Var image = x(c, JOT_SHAPE(1, 16, 4, 4)), taps = x(c, JOT_SHAPE(64, 16, 3, 3)), y, g;

    y = jot_mul(jot_conv2d(image, taps, NULL), x(c, JOT_SHAPE(1, 64, 2, 2)));
    jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(image), &g);
    return g;
}

static jot_Var
square(jot_Ctx *c, int64_t n)
{
    return jot_matmul(x(c, JOT_SHAPE(n, n)), x(c, JOT_SHAPE(n, n)));
}

static jot_Var product(jot_Ctx *c) { return square(c, 64); }
static jot_Var small(jot_Ctx *c) { return square(c, 4); }
static jot_Var first(jot_Ctx *c) { return conv(c, 3, 64, 1); }
static jot_Var tiles(jot_Ctx *c) { return conv(c, 64, 64, 1); }
static jot_Var window(jot_Ctx *c) { return conv(c, 64, 64, 64); }
static jot_Var flip(jot_Ctx *c) { return jot_swap(x(c, JOT_SHAPE(64, 64)), 0, 1); }
static jot_Var rows(jot_Ctx *c) { return jot_softmax(x(c, JOT_SHAPE(64, 100)), 1); }

/* What a processor's matrix unit multiplies. */
static jot_Var
units(jot_Ctx *c, jot_DType dtype)
{
    static const unsigned char zeros[2 * 256 * 256];
    jot_Var y = jot_array(c, dtype, JOT_SHAPE(256, 256), zeros);

    return jot_matmul(y, jot_array(c, dtype, JOT_SHAPE(256, 256), zeros));
}

static jot_Var halves(jot_Ctx *c) { return units(c, JOT_BF16); }
static jot_Var bytes(jot_Ctx *c) { return jot_cast(units(c, JOT_I8), JOT_I32); }

/* A head over few channels: as one kernel it has products of some hundred points. */
static jot_Var
head(jot_Ctx *c)
{
    jot_Var mean = jot_mean(jot_relu(x(c, JOT_SHAPE(4, 64, 5, 5))), JOT_DIMS(2, 3));

    return jot_add(jot_matmul(mean, x(c, JOT_SHAPE(64, 10))), x(c, JOT_SHAPE(10)));
}

typedef struct {
    const char *what, *dialect;
    jot_Var (*program)(jot_Ctx *c);
    const char *taken, *refused;
    uint32_t tiles; /* rows that the matrix unit has */
} Case;

static const Case cases[] = {
    {"a product", "gnu", product, "contraction in blocks", "Winograd by weight: no sum over", 0},
    {"a small product", "gnu", small, "stencil, channels in lanes",
     "contraction in blocks: too few", 0},
    {"a product, scalar", "c", product, "contraction in blocks",
     "contraction on a device: it is not", 0},
    {"halves by a matrix unit", "gnu", halves, "contraction in blocks", "loops by price: ",
     1 << DOT_BF16},
    {"bytes by a matrix unit", "gnu", bytes, "contraction in blocks", "loops by price: ",
     1 << DOT_I8},
    {"a convolution", "gnu", tiles, "Winograd", "Winograd: no product", 0},
    {"of few channels", "gnu", first, "contraction in blocks", "Winograd: too few channels", 0},
    {"of a step of 2", "gnu", halved, "contraction in blocks", "Winograd: no convolution of", 0},
    {"of one row", "gnu", row, "contraction in blocks", "Winograd: too few rows", 0},
    {"by input, of few results", "gnu", few, "contraction in blocks", "loops by price: ", 0},
    {"no convolution", "gnu", product, "contraction in blocks", "Winograd: no convolution of", 0},
    {"two products", "gnu", rows, "loops by price", "Winograd: no product", 0},
    {"depthwise", "gnu", window, "stencil over planes", "stencil, channels in lanes: no", 0},
    {"a transposition", "gnu", flip, "register transpose",
     "contraction in blocks: it sums nothing", 0},
    {"the same, scalar", "c", flip, "loops by price", "register transpose: no vectors", 0},
    {"a softmax", "gnu", rows, "loops by price", "producer / consumer tiles: not several", 0},
    {"a head", "gnu", head, "loops by price", "producer / consumer tiles: 1", 0},
    {"on a device", "opencl", rows, "grid of a device", "epilogue reductions: it is for a device",
     0},
};

static void
check(const Case *t)
{
    static Notes notes;
    jot_Config config = {.backend = "interp", .cache_dir = "", .dump = "rs",
                         .hooks = {.log = keep_log}};
    jot_Ctx *c = jot_open(&config);
    char line[100];
    jot_Var y;

    scribe = &notes;
    forget_notes(&notes);
    forget_log();
    jot_target_default(&c->target);
    c->target.vector_nbytes = t->dialect[0] == 'g' ? 32 : 0;
    c->target.matrix = t->tiles;
    scribe_attach(c, t->dialect, t->dialect[0] == 'o');
    y = t->program(c);
    CHECK(jot_run(c, JOT_VARS(y)), "%s: %s", t->what, jot_message(c));
    snprintf(line, sizeof line, "  taken: %s\n", t->taken);
    CHECK(strstr(logged, line), "%s: not by %s:\n%s", t->what, t->taken, logged);
    snprintf(line, sizeof line, "  %s", t->refused);
    CHECK(strstr(logged, line), "%s: nothing says%s:\n%s", t->what, line, logged);
    CHECK(!t->tiles || strstr(logged, ":1m "), "%s: not by its calls:\n%s", t->what, logged);
    jot_close(c);
}

int
main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
    return DONE();
}
