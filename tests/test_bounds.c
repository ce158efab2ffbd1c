/* tests/test_bounds.c - accesses stay inside of their buffers: kernels that the verifier refuses
 * and takes, by hand; products and convolutions of variables that are padded where no window moves
 * (a batch, a channel), and their gradients, against the interpreter under each policy.
 *
 * Guards: ccode/verify/bounds.c, ccode/verify/verify.c. */
#include "core.h"
#include "tests/ir_cases.h"

/* ---- the verifier ------------------------------------------------------------------------- */

enum { NONE = 1000 };
typedef struct {
    const char *what;
    int64_t size;       /* of x, read at step * i / by + from, for i < 24 */
    int64_t step, by, from;
    int64_t low, high;  /* where that - low >= 0, high - that >= 0; NONE: not asked */
    bool ok;
} Bound;

static const Bound bounds[] = {
    { "all of it", 24, 1, 1, 0, NONE, NONE, true },
    { "one too few", 23, 1, 1, 0, NONE, NONE, false },
    { "one before", 30, 1, 1, -1, NONE, NONE, false },
    { "before, asked", 30, 1, 1, -1, 0, NONE, true },
    { "far before, asked for one less", 30, 1, 1, -17, -1, NONE, false },
    { "before, asked for more", 30, 1, 1, -17, 3, NONE, true },
    { "behind, asked", 20, 1, 1, 5, NONE, 19, true },
    { "behind, asked for one more", 20, 1, 1, 5, NONE, 20, false },
    { "behind, the other end asked", 20, 1, 1, 5, 0, NONE, false },
    { "both ends", 7, 1, 1, -9, 0, 6, true },
    { "backwards", 24, -1, 1, 23, NONE, NONE, true },
    { "backwards, one too far", 24, -1, 1, 22, NONE, NONE, false },
    { "backwards, asked", 24, -1, 1, 22, 0, NONE, true },
    { "each third", 71, 3, 1, 1, NONE, NONE, true },
    { "each third, asked for less", 69, 3, 1, 1, NONE, 70, false },
    { "divided", 8, 1, 3, 0, NONE, NONE, true },
    { "divided, one too few", 7, 1, 3, 0, NONE, NONE, false },
    { "divided, asked", 7, 1, 3, 0, NONE, 6, true }
};

static Ix
bound_at(const Bound *b)
{
    return IADD(IDIV(IMUL(AX(0), b->step), b->by), IC(b->from));
}

/* y[j, i] = x[at(i)] where it says so; store: x[j] goes to y[at(i), j]. */
static void
check_bound(const Bound *b, bool store)
{
    int64_t ext[] = { 24, 3 };
    IrCase one, *c = &one;
    Ix cond[2], at;
    jot_Scalar zero;
    Text why = {0};
    bool ok;
    int n = 0;
    zero.u = 0;
    why.mem = &ir_mem;
    ir_start(c);
    ir_axes(c, "ij", ext);
    at = bound_at(b);
    if (b->low != NONE)
        cond[n++] = jot_ix_ge0(&ir_ix, ISUB(at, IC(b->low)), NULL);
    if (b->high != NONE)
        cond[n++] = jot_ix_ge0(&ir_ix, ISUB(IC(b->high), at), NULL);
    if (store) {
        Ix to[] = { at, AX(1) };
        uint32_t x = IN("x", 1, 3, 0, 0, 0), y = OUT("y", 2, b->size, 3, 0, 0);
        jot_kernel_store(&c->k, y, to, ir_load(c, x, AX(1), 0, 0, 0), EW_NONE, n, cond);
    } else {
        uint32_t x = IN("x", 1, b->size, 0, 0, 0), y = OUT("y", 2, 3, 24, 0, 0);
        ir_store(c, y, AX(1), AX(0), 0, 0, jot_v_load(&c->k, x, &at, n, cond, zero));
    }
    ok = jot_ir_verify(&c->k, &why);
    CHECK(ok == b->ok, "%s, %s: %s", store ? "store" : "load", b->what, why.s ? why.s : "taken");
    CHECK(ok || strstr(why.s, store ? "a store writes outside" : "a load reads outside"), "%s: %s",
          b->what, why.s);
    jot_text_free(&why);
    ir_end(c);
}

/* A term that the sum leaves out need not be inside; an empty axis walks nothing. */
static void
test_left_out(void)
{
    for (int k = 0; k < 4; k++) {
        int64_t ext[] = { k == 3 ? 0 : 24, 3 };
        IrCase one, *c = &one;
        uint32_t x, y;
        Ix cond;
        ir_start(c);
        ir_axes(c, "ij", ext);
        x = IN("x", 1, 20, 0, 0, 0);
        y = OUT("y", 1, 3, 0, 0, 0);
        cond = jot_ix_ge0(&ir_ix, ISUB(IC(k == 2 ? 20 : 19), AX(0)), NULL);
        ir_store(c, y, AX(1), 0, 0, 0,
                 jot_v_reduce(&c->k, EW_ADD, BIT(0), ir_load(c, x, AX(0), 0, 0, 0), k == 1 || k == 2,
                              &cond, 1.0));
        CHECK(jot_ir_verify(&c->k, NULL) == (k == 1 || k == 3), "sum %d", k);
        ir_end(c);
    }
}

/* ---- programs ----------------------------------------------------------------------------- */

enum { MOST = 3 };
typedef struct { const char *policy, *target, *layout; } Way;
typedef int Program(jot_Ctx *c, jot_Var *out);

static jot_Var
drawn(jot_Ctx *c, jot_Ints shape, uint32_t seed)
{
    int64_t n = 1;
    float *v;
    jot_Var x;
    for (int d = 0; d < shape.n; d++)
        n *= shape.v[d];
    v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; v && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 28) - 8;
    }
    x = jot_param(c, JOT_F32, shape, v);
    free(v);
    return x;
}

/* A product of rows and batch that are padded with itself. */
static int
rows_padded(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = drawn(c, JOT_SHAPE(2, 1, 4096), 1);
    jot_Var p = jot_pad(x, JOT_INTS(30, 0, 0), JOT_INTS(0, 1, 0), 0);
    out[0] = jot_matmul(p, jot_swap(p, 1, 2));
    jot_grad(jot_sum(jot_mul(out[0], jot_iota(c, JOT_F32, jot_shape(out[0]), 0)), JOT_ALL_DIMS),
             JOT_VARS(x),
             out + 1);
    return 2;
}

static int
rows_far(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = drawn(c, JOT_SHAPE(2, 1, 1 << 18), 1);
    jot_Var p = jot_pad(x, JOT_INTS(1, 0, 0), JOT_INTS(0, 1, 0), 0);
    out[0] = jot_matmul(p, jot_swap(p, 1, 2));
    return 1;
}

/* y = conv(p, w), and the sum of y times numbers by what p is made of, and by w. */
static int
convolved(jot_Ctx *c, jot_Var x, jot_Var p, jot_Var *out)
{
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};
    jot_Var in[2];
    in[0] = x;
    in[1] = drawn(c, JOT_SHAPE(32, jot_extent(p, 1), 3, 3), 2);
    out[0] = jot_conv2d(p, in[1], &how);
    jot_grad(jot_sum(jot_mul(out[0], drawn(c, jot_shape(out[0]), 3)), JOT_ALL_DIMS),
             jot_vars(2, in), out + 1);
    return 3;
}

/* An image whose channels lie last, as tiles of Winograd want them. */
static jot_Var
image(jot_Ctx *c, jot_Var x)
{
    jot_Conv how = {{1, 1}, {1, 1}, {1, 1}, 1};
    return jot_relu(jot_conv2d(x, drawn(c, JOT_SHAPE(32, 32, 3, 3), 4), &how));
}

static int
batch_behind(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = drawn(c, JOT_SHAPE(2, 32, 14, 14), 5);
    jot_Var p = jot_pad(image(c, x), JOT_INTS(0, 0, 0, 0), JOT_INTS(6, 0, 0, 0), 0);
    return convolved(c, x, p, out);
}

static int
batch_before(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = drawn(c, JOT_SHAPE(2, 32, 14, 14), 5);
    return convolved(c, x, jot_pad(image(c, x), JOT_INTS(6, 0, 0, 0), JOT_INTS(0, 0, 0, 0), 0),
                     out);
}

static int
channels_behind(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = drawn(c, JOT_SHAPE(2, 32, 14, 14), 5);
    jot_Var p = jot_pad(image(c, x), JOT_INTS(0, 0, 0, 0), JOT_INTS(0, 16, 0, 0), 0);
    return convolved(c, x, p, out);
}

/* Where no convolution stands before, and the weights are padded as well. */
static int
both_padded(jot_Ctx *c, jot_Var *out)
{
    jot_Var x = drawn(c, JOT_SHAPE(1, 8, 10, 12), 5);
    jot_Var w = drawn(c, JOT_SHAPE(3, 9, 3, 3), 6), in[2];
    jot_Conv how = {{2, 1}, {0, 1}, {1, 2}, 1};
    in[0] = x;
    in[1] = w;
    out[0] = jot_conv2d(jot_pad(x, JOT_INTS(40, 2, 0, 1), JOT_INTS(0, 0, 3, 0), 0),
                        jot_pad(w, JOT_INTS(5, 1, 0, 0), JOT_INTS(9, 0, 0, 0), 0), &how);
    jot_grad(jot_sum(jot_mul(out[0], drawn(c, jot_shape(out[0]), 3)), JOT_ALL_DIMS),
             jot_vars(2, in), out + 1);
    return 3;
}

/* Results as the interpreter has them; NULL after a failure. */
static int
evaluated(Program *program, const char *backend, const Way *way, double *v[MOST], int64_t n[MOST])
{
    jot_Config config;
    jot_Ctx *c;
    jot_Var out[MOST];
    int count;
    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.policy = way->policy;
    config.target = way->target;
    config.layout = way->layout;
    config.cache_dir = "";
    c = jot_open(&config);
    if (way->target && jot_error(c)) {
        jot_close(c);
        return 0;
    }
    count = program(c, out);
    jot_run(c, jot_vars(count, out));
    for (int i = 0; i < count; i++) {
        const float *is = jot_data(out[i]);
        n[i] = jot_nelem(out[i]);
        v[i] = calloc((size_t)n[i] + 1, sizeof *v[i]);
        for (int64_t k = 0; is && k < n[i]; k++)
            v[i][k] = is[k];
    }
    CHECK(!jot_error(c), "%s: %s", backend, jot_message(c));
    jot_close(c);
    return count;
}

/* Numbers are whole and small: sums are exact, but for tiles of Winograd. */
static void
check_program(Program *program, const char *what)
{
    static const Way way[] = { { "reward", NULL, NULL }, { "paper", NULL, NULL },
                               { "reward", "avx2", NULL }, { "reward", NULL, "random:3" } };
    double *want[MOST], *is[MOST];
    static int turn; /* in make test each program in every other way */
    int64_t n[MOST];
    int count = evaluated(program, "interp", &way[0], want, n);
    turn++;
    for (int w = turn % test_many(2, 1); w < (int)(sizeof way / sizeof *way);
         w += test_many(2, 1)) {
        int got = evaluated(program, "cc", &way[w], is, n);
        for (int i = 0; i < got; i++) {
            int64_t k = 0;
            while (k < n[i] && fabs(is[i][k] - want[i][k]) <= 1e-5 * (fabs(want[i][k]) + 1e4))
                k++;
            CHECK(k == n[i], "%s, way %d: result %d is %g, not %g, at %lld", what, w, i, is[i][k],
                  want[i][k], (long long)k);
            free(is[i]);
        }
    }
    for (int i = 0; i < count; i++)
        free(want[i]);
}

int
main(void)
{
    ir_open();
    for (int i = 0; i < (int)(sizeof bounds / sizeof *bounds); i++) {
        check_bound(&bounds[i], false);
        check_bound(&bounds[i], true);
    }
    test_left_out();
    ir_close();
    check_program(rows_padded, "rows padded");
    check_program(rows_far, "rows padded, a megabyte of them");
    check_program(batch_behind, "batch padded behind");
    check_program(batch_before, "batch padded before");
    check_program(channels_behind, "channels padded");
    check_program(both_padded, "image and weights padded");
    return DONE();
}
