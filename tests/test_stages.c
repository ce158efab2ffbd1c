/* test_stages.c - chains of functions in stages, some vectors at a time: chains of every float and
 * width of vectors, of sizes around blocks' ends, with several stores, operands that are spread,
 * padded, gathered, turned around and chosen, from and to memory that is taken over: the bits of
 * the same operators, each in a kernel of its own; which chains go in stages. What a loop reads of
 * the call's own memory at one place stands before it.
 *
 * Guards: ccode/emit/jam.c, ccode/emit/loop.c, ccode/lower/guard.c. */
#include "nn.h"
#include "tests/hooks.h"
#include "tests/test.h"

enum { OUTPUTS = 3, ROWS = 3 };

typedef struct {
    jot_Ctx *c;
    jot_Var x, y, row, at; /* at: places in a row */
    int64_t n;
} On;

static jot_Var
chain(jot_Var x)
{
    return jot_gelu(jot_tanh(jot_sigmoid(x)));
}

static int
plain(const On *o, jot_Var *out)
{
    out[0] = chain(o->x);
    return 1;
}

/* As an LSTM's step: four functions beside each other, one of their results. */
static int
gates(const On *o, jot_Var *out)
{
    jot_Var i = jot_sigmoid(o->x), f = jot_sigmoid(o->y), g = jot_tanh(jot_add(o->x, o->y));

    out[0] = jot_add(jot_mul(f, o->y), jot_mul(i, g));
    out[1] = jot_mul(jot_sigmoid(jot_mul(o->x, o->y)), jot_tanh(out[0]));
    return 2;
}

/* Each function's result is stored, the first long before the last. */
static int
stored(const On *o, jot_Var *out)
{
    out[0] = jot_sigmoid(o->x);
    out[1] = jot_tanh(out[0]);
    out[2] = jot_mul(jot_erf(out[1]), o->x);
    return 3;
}

static int
spread(const On *o, jot_Var *out)
{
    out[0] = jot_mul(chain(jot_add(o->x, o->row)), jot_sigmoid(o->row));
    return 1;
}

static int
padded(const On *o, jot_Var *out)
{
    jot_Var p = jot_pad(o->x, JOT_SHAPE(1, 2), JOT_SHAPE(0, 3), 0.5);

    out[0] = jot_add(chain(p), jot_erf(p));
    return 1;
}

static int
chosen(const On *o, jot_Var *out)
{
    jot_Var s = jot_sigmoid(o->x), big = jot_gt(s, jot_abs(o->y));

    out[0] = jot_where(big, jot_tanh(jot_erf(s)), jot_gelu(jot_tanh(o->y)));
    out[1] = big;
    return 2;
}

static int
gathered(const On *o, jot_Var *out)
{
    jot_Var v = jot_reindex_ex(o->x, JOT_SHAPE(ROWS, o->n), JOT_INDEX("i0", "@e0(i1)"),
                               jot_strs(0, NULL), 0, JOT_VARS(o->at));

    out[0] = jot_mul(jot_tanh(jot_erf(jot_sigmoid(v))), v);
    return 1;
}

static int
turned(const On *o, jot_Var *out)
{
    jot_Var v = jot_flip(o->x, JOT_SHAPE(1));

    out[0] = jot_mul(chain(v), jot_add(v, o->x));
    return 1;
}

static int
widened(const On *o, jot_Var *out)
{
    jot_Var v = jot_cast(jot_sigmoid(o->x), JOT_F64);

    out[0] = jot_cast(jot_erf(jot_tanh(v)), jot_dtype(o->x));
    return 1;
}

/* A variable's new value takes over the memory of the old one, twice. */
static int
assigned(const On *o, jot_Var *out)
{
    jot_Var s = jot_param_of(jot_add(o->x, o->y));

    for (int i = 0; i < 2; i++) {
        (void)jot_run(o->c, JOT_VARS(s));
        jot_assign(s, jot_mul(jot_tanh(jot_sigmoid(jot_mul(s, o->y))), s));
    }
    out[0] = s;
    return 1;
}

/* staged: it goes in stages; halves: what functions have in between is not rounded to these. */
typedef struct {
    const char *name;
    int (*build)(const On *o, jot_Var *out);
    bool staged, halves;
} Program;

static const Program programs[] = {
    {"plain", plain, true, true}, {"gates", gates, true, true}, {"stored", stored, true, true},
    {"spread", spread, true, false}, {"padded", padded, true, false},
    {"chosen", chosen, true, false}, {"gathered", gathered, true, true},
    {"turned", turned, true, false}, {"widened", widened, true, true},
    {"assigned", assigned, true, false},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* Values between -4 and 4, the same each time. */
static jot_Var
values(jot_Ctx *c, jot_DType dtype, int64_t rows, int64_t n, int seed)
{
    float *v = malloc((size_t)(rows * n) * sizeof *v);
    uint64_t state = (uint64_t)seed;
    jot_Var x;

    for (int64_t i = 0; v && i < rows * n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)((double)(state >> 40) / (double)(1 << 21) - 4);
    }
    x = jot_cast(jot_array(c, JOT_F32, rows > 1 ? JOT_SHAPE(rows, n) : JOT_SHAPE(n), v), dtype);
    free(v);
    return jot_run(c, JOT_VARS(x)) ? x : (jot_Var){0};
}

/* Of halves kernels compute in floats, and round what they store: `wide` is that, said. */
static int
build(jot_Ctx *c, const Program *p, jot_DType dtype, bool wide, int64_t n, jot_Var *out)
{
    On o = {.c = c, .n = n};
    int64_t *at = malloc((size_t)n * sizeof *at);
    int results;

    for (int64_t i = 0; at && i < n; i++)
        at[i] = (i * 7 + 3) % n;
    o.x = values(c, dtype, ROWS, n, 3);
    o.y = values(c, dtype, ROWS, n, 4);
    o.row = values(c, dtype, 1, n, 5);
    o.at = jot_array(c, JOT_I64, JOT_SHAPE(n), at);
    free(at);
    if (wide) {
        o.x = jot_cast(o.x, JOT_F32);
        o.y = jot_cast(o.y, JOT_F32);
        o.row = jot_cast(o.row, JOT_F32);
    }
    results = p->build(&o, out);
    for (int i = 0; i < results && wide; i++)
        out[i] = jot_dtype(out[i]) == JOT_BOOL ? out[i] : jot_cast(out[i], dtype);
    return results;
}

static void
compare(jot_Ctx **c, const char *what, const Program *p, jot_DType dtype, int64_t n)
{
    jot_Var v[2][OUTPUTS];
    int results = 0;

    for (int k = 0; k < 2; k++) {
        jot_push(c[k]);
        results = build(c[k], p, dtype, !k && jot_dtype_nbytes(dtype) == 2, n, v[k]);
        CHECK(jot_run(c[k], jot_vars(results, v[k])), "%s: %s: %s", what, p->name,
              jot_message(c[k]));
    }
    for (int r = 0; r < results; r++) {
        const unsigned char *want = jot_data(v[0][r]), *got = jot_data(v[1][r]);
        size_t each = jot_dtype_nbytes(jot_dtype(v[1][r])), i = 0;
        size_t nbytes = (size_t)jot_nelem(v[1][r]) * each;

        while (want && got && i < nbytes && want[i] == got[i])
            i++;
        CHECK(want && got && i == nbytes, "%s: %s of %s, rows of %lld: result %d differs at %d",
              what, p->name, jot_dtype_name(dtype), (long long)n, r, (int)(i / each));
    }
    for (int k = 0; k < 2; k++) {
        jot_clear(c[k]);
        jot_pop(c[k]);
    }
}

/* Sizes around a vector, around eight of them, around sixteen. */
static void
test_values(const char *target, const char *schedule)
{
    static const int64_t sizes[] = {31, 64, 65, 129, 200, 257, 1030};
    static const jot_DType dtypes[] = {JOT_F32, JOT_F64, JOT_F16, JOT_BF16};
    jot_Config alone = {.backend = "cc", .target = target, .policy = "none", .cache_dir = ""};
    jot_Config config = {.backend = "cc", .target = target, .schedule = schedule, .cache_dir = ""};
    jot_Ctx *c[2] = {jot_open(&alone), jot_open(&config)};
    char what[64];
    int turn = 0, few = test_many(3, 1);

    snprintf(what, sizeof what, "%s, %s", target, schedule ? schedule : "by price");
    if (jot_error(c[1]))
        SKIP("%s: %s", what, jot_message(c[1]));
    for (int p = 0; p < PROGRAMS && !jot_error(c[1]); p++)
        for (size_t d = 0; d < (programs[p].halves ? sizeof dtypes / sizeof *dtypes : 2); d++)
            if (turn++ % few == 0)
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                    compare(c, what, &programs[p], dtypes[d], sizes[s]);
    jot_close(c[0]);
    jot_close(c[1]);
}

/* The texts of the kernels of a program. */
static const char *
texts_of(const char *target, const Program *p, jot_DType dtype)
{
    jot_Config config = {.backend = "cc", .target = target, .dump = "c", .cache_dir = ""};
    jot_Var out[OUTPUTS];
    jot_Ctx *c;
    int n;

    config.hooks.log = keep_log;
    c = jot_open(&config);
    forget_log();
    n = jot_error(c) ? 0 : build(c, p, dtype, false, 1030, out);
    if (!n || !jot_run(c, jot_vars(n, out))) {
        SKIP("%s: %s", target, jot_message(c));
        jot_close(c);
        return NULL;
    }
    jot_close(c);
    return logged;
}

static int
one_function(const On *o, jot_Var *out)
{
    out[0] = jot_mul(jot_gelu(jot_mul(o->x, o->y)), o->row);
    return 1;
}

static int
beside(const On *o, jot_Var *out)
{
    out[0] = jot_add(jot_sigmoid(o->x), jot_mul(jot_tanh(o->y), jot_erf(o->row)));
    return 1;
}

static void
test_texts(const char *target)
{
    static const Program apart[] = {{"one", one_function, false, false},
                                    {"beside", beside, false, false}};

    for (int d = 0; d < 2; d++)
        for (int p = d; p < PROGRAMS + 2; p += test_many(2, 1)) {
            const Program *is = p < PROGRAMS ? &programs[p] : &apart[p - PROGRAMS];
            const char *text = texts_of(target, is, d ? JOT_F64 : JOT_F32);

            if (!text)
                return;
            CHECK(!strstr(text, "v < 8; v++") == !is->staged, "%s, %s:\n%s", target, is->name,
                  text);
            if (is->build == assigned)
                CHECK(strstr(text, "const float *x") || strstr(text, "const double *x"),
                      "%s: nothing is taken over:\n%s", target, text);
        }
}

/* Groups' variances are in memory: the root is taken for each channel, not for each vector. */
static int
normalised(const On *o, jot_Var *out)
{
    jot_Var x = jot_reshape(values(o->c, JOT_BF16, 96, 693, 6), JOT_SHAPE(24, 4, 1, 693));
    jot_Var w = values(o->c, JOT_BF16, 1, 4, 7);

    out[0] = jot_group_norm(x, 2, w, w, 1e-5);
    return 1;
}

static int
normalised_relu(const On *o, jot_Var *out)
{
    normalised(o, out);
    out[0] = jot_relu(out[0]);
    return 1;
}

/* A bf16 between two steps stays in its lanes, and what is one of such is stored as it is. */
static void
test_rounded_once(const char *target)
{
    static const Program norm = {"norm and relu", normalised_relu, false, false};
    const char *text = texts_of(target, &norm, JOT_BF16);

    CHECK(!text || (strstr(text, "= jot_bf16_f32x8(") && strstr(text, "jot_st_cut_f32x8(y")
                    && !strstr(text, "jotm_f32_to_bf16_x")), "%s:\n%s", target, text);
}

/* No loop that stores a row's vectors takes it. */
static void
test_still(const char *target)
{
    static const Program norm = {"group norm", normalised, false, false};
    const char *text = texts_of(target, &norm, JOT_BF16), *loop = NULL, *root = NULL;
    int stores = 0;

    for (const char *at = text; at && *at; at++) {
        loop = strncmp(at, "for (", 5) ? loop : at;
        root = strncmp(at, "jotm_rsqrtf", 11) ? root : at;
        if (!strncmp(at, "jot_st_bf16_f32x8(y", 19)) {
            stores += root != NULL;
            CHECK(!root || (loop && loop > root), "%s: a root for each vector:\n%s", target, text);
        }
    }
    CHECK(!text || stores, "%s: no norm:\n%s", target, text);
}

int
main(void)
{
    test_texts("avx2");
    test_still("avx2");
    test_rounded_once("avx2");
    test_values("native", NULL);
    test_values("sse", NULL);
    if (test_many(0, 1)) {
        test_values("avx2", NULL);
        test_values("native", "random:5");
    }
    return test_done();
}
