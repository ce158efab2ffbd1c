/* tests/test_demanded.c - integers of which a cast reads the low bits alone are computed in these:
 * sums, products, choices, shifts, bits, running sums and convolutions of every dtype, the extremes
 * among the numbers, cast to each narrower dtype, at once and in steps, on each backend and width
 * of vectors, to the interpreter's bits, which computes wide ones and casts them. What asks for all
 * bits (extremes, quotients, comparisons, floats, truth, a store) still has them. Which kernels
 * have no 64 bits, and what vectors their texts name, of machines that are not here, too.
 *
 * Use: test_demanded N BACKEND: of all combinations one in N where a compiler is slow; that
 * backend's alone.
 *
 * Guards: ccode/rewrite/demanded.c, ccode/contract/contract.c. */
#include "core.h"
#include "nn.h"
#include "backends/host/host.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/machines.h"

enum { ROWS = 13, TERMS = 24, COLUMNS = 43, MOST = ROWS * COLUMNS * TERMS, OUTPUTS = 3 };

/* ---- numbers -------------------------------------------------------------------------------- */

/* Any bits; one in four the least, the most, -1 or 0. */
static jot_Var
numbers(jot_Ctx *c, jot_DType dtype, jot_Ints shape, uint64_t seed)
{
    static unsigned char bytes[MOST * 8];
    size_t nbytes = jot_dtype_nbytes(dtype);
    int64_t n = 1;

    for (int i = 0; i < shape.n; i++)
        n *= shape.v[i];
    for (int64_t i = 0; i < n; i++) {
        const uint64_t high = (uint64_t)1 << (8 * nbytes - 1);
        const uint64_t extreme[4] = {high, high - 1, UINT64_MAX, 0};
        uint64_t v;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        v = (seed >> 33) % 4 ? seed ^ seed >> 29 : extreme[seed >> 60 & 3];
        memcpy(bytes + (size_t)i * nbytes, &v, nbytes); /* low bytes first */
    }
    return jot_array(c, dtype, shape, bytes);
}

/* ---- programs: what is wide of x and y (rows, terms), turned (terms, columns), i (terms) ----- */

typedef struct { jot_Ctx *c; jot_Var x, y, turned, i; } On;

static jot_Var
wide(jot_Var v)
{
    return jot_cast(v, jot_dtype(v) >= JOT_U8 ? JOT_U64 : JOT_I64);
}

static jot_Var
literal(const On *o, jot_Var like, int64_t n)
{
    return jot_full_int(o->c, jot_dtype(like), JOT_SHAPE(), n);
}

static jot_Var
matmul(const On *o)
{
    return jot_matmul(o->x, o->turned);
}

static jot_Var
rows(const On *o)
{
    return jot_sum(jot_mul(wide(o->x), wide(o->y)), JOT_DIMS(1));
}

static jot_Var
own_products(const On *o)
{
    return jot_sum(jot_mul(o->x, o->y), JOT_DIMS(0));
}

static jot_Var
arithmetic(const On *o)
{
    jot_Var x = wide(o->x), y = wide(o->y);

    return jot_sub(jot_neg(jot_mul(x, jot_add(y, literal(o, y, 1000003)))), jot_mul(y, y));
}

static jot_Var
chosen(const On *o)
{
    jot_Var x = wide(o->x), y = wide(o->y);

    return jot_where(jot_lt(x, y), jot_mul(x, y), jot_add(x, literal(o, x, -5)));
}

static jot_Var
bits(const On *o)
{
    jot_Var x = wide(o->x), y = wide(o->y);

    return jot_bit_xor(jot_bit_or(jot_bit_and(x, literal(o, x, 0x1234567)), jot_bit_not(y)),
                       jot_mul(x, y));
}

static jot_Var
shifted(const On *o)
{
    jot_Var x = wide(o->x), y = wide(o->y), sum = x;
    static const int by[] = {3, 7, 9, 15, 17, 31, 33, 63};

    for (int i = 0; i < 8; i++)
        sum = jot_add(sum, jot_shift_left(i % 2 ? x : y, literal(o, x, by[i])));
    return jot_add(sum, jot_shift_left(x, y)); /* by whatever y has: all bits of that */
}

static jot_Var
reduced(const On *o)
{
    jot_Var x = wide(o->x);

    return jot_add(jot_prod(x, JOT_KEEP(1)),
                   jot_add(jot_reduce(JOT_BITAND, wide(o->y), JOT_KEEP(1)),
                           jot_reduce(JOT_BITXOR, x, JOT_KEEP(1))));
}

static jot_Var
running(const On *o)
{
    return jot_cumsum(wide(o->x), 1);
}

static jot_Var
centred(const On *o)
{
    return jot_sub(wide(o->x), jot_sum(jot_mul(o->x, literal(o, o->x, 3)), JOT_KEEP(1)));
}

static jot_Var
counted(const On *o)
{
    jot_Var at = jot_iota(o->c, JOT_I64, JOT_SHAPE(ROWS, TERMS), 1);

    return jot_sum(jot_mul(at, jot_cast(o->x, JOT_I64)), JOT_DIMS(1));
}

static jot_Var
convolved(const On *o)
{
    jot_Var image = jot_reshape(o->x, JOT_SHAPE(1, 1, ROWS, TERMS));
    jot_Var w = jot_reshape(jot_slice(o->y, JOT_SHAPE(0, 0), JOT_SHAPE(9, 4), JOT_SHAPE(1, 1)),
                            JOT_SHAPE(4, 1, 3, 3));

    return jot_conv2d(image, w, NULL);
}

static jot_Var
added_at(const On *o)
{
    return jot_reindex_reduce_ex(JOT_ADD, jot_mul(wide(o->x), wide(o->y)), JOT_SHAPE(ROWS),
                                 JOT_INDEX("@e0(i1)"), jot_strs(0, NULL), JOT_VARS(o->i));
}

/* All bits are read of products and sums. */
static jot_Var
stopped(const On *o)
{
    jot_Var x = wide(o->x), p = jot_mul(x, wide(o->y)), sum = jot_sum(p, JOT_KEEP(1)), q;

    q = jot_add(jot_maximum(p, sum), jot_floordiv(p, literal(o, p, 7)));
    q = jot_sub(q, jot_mod(sum, literal(o, p, 1000)));
    q = jot_add(q, jot_shift_right(p, literal(o, p, 5)));
    q = jot_add(q, jot_where(jot_gt(p, sum), jot_abs(p), jot_minimum(p, x)));
    q = jot_add(q, jot_cast(jot_cast(p, JOT_BOOL), jot_dtype(p)));
    return jot_add(q, jot_cast(jot_cast(jot_cast(p, JOT_F64), JOT_I64), jot_dtype(p)));
}

static jot_Var
of_floats(const On *o)
{
    jot_Var f = jot_cast(jot_bit_and(wide(o->x), literal(o, wide(o->x), 0xfffffffff)), JOT_F64);

    return jot_mul(jot_cast(f, JOT_I64), jot_full_int(o->c, JOT_I64, JOT_SHAPE(), 3));
}

typedef struct { const char *name; jot_Var (*build)(const On *o); bool narrow; } Program;
static const Program programs[] = {
    {"matmul", matmul, true}, {"rows", rows, true}, {"own products", own_products, true},
    {"arithmetic", arithmetic, true}, {"chosen", chosen, false}, {"bits", bits, true},
    {"shifted", shifted, false}, {"reduced", reduced, true}, {"running", running, true},
    {"centred", centred, true}, {"counted", counted, false}, {"convolved", convolved, true},
    {"added at", added_at, false}, {"stopped", stopped, false}, {"of floats", of_floats, false},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* What is wide is read by one cast; by two, of which one is a step of 32 bits; or is asked for. */
static int
build(jot_Ctx *c, const Program *program, jot_DType of, jot_DType to, int way, jot_Var *out)
{
    static const int64_t places[TERMS] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3};
    On o = {.c = c};
    jot_Var v;

    o.x = numbers(c, of, JOT_SHAPE(ROWS, TERMS), 7);
    o.y = numbers(c, of, JOT_SHAPE(ROWS, TERMS), 8);
    o.turned = jot_swap(numbers(c, of, JOT_SHAPE(COLUMNS, TERMS), 9), 0, 1);
    o.i = jot_array(c, JOT_I64, JOT_SHAPE(TERMS), places);
    v = program->build(&o);
    out[0] = jot_cast(v, to);
    if (way == 1) {
        out[1] = jot_cast(jot_mul(jot_cast(v, JOT_I32), jot_full_int(c, JOT_I32, JOT_SHAPE(), 5)),
                          JOT_I8);
        return 2;
    }
    out[1] = v;
    return way == 2 ? 2 : 1;
}

/* ---- values --------------------------------------------------------------------------------- */

static const jot_DType of[] = {JOT_I64, JOT_I32, JOT_I16, JOT_I8,
                               JOT_U64, JOT_U32, JOT_U16, JOT_U8};
static const jot_DType to[] = {JOT_I32, JOT_I16, JOT_I8, JOT_U32, JOT_U16, JOT_U8};
enum { OF = sizeof of / sizeof *of, TO = sizeof to / sizeof *to };

static void
compare(jot_Ctx **c, const char *what, int program, int i, int j, int way)
{
    jot_Var v[2][OUTPUTS];
    int n = 0;

    for (int k = 0; k < 2; k++) {
        jot_push(c[k]);
        n = build(c[k], &programs[program], of[i], to[j], way, v[k]);
        CHECK(jot_run(c[k], jot_vars(n, v[k])), "%s: %s: %s", what, programs[program].name,
              jot_message(c[k]));
    }
    for (int k = 0; k < n; k++) {
        const void *want = jot_data(v[0][k]), *got = jot_data(v[1][k]);
        size_t nbytes = (size_t)jot_nelem(v[0][k]) * jot_dtype_nbytes(jot_dtype(v[0][k]));

        CHECK(want && got && !memcmp(want, got, nbytes), "%s: %s of %s to %s, way %d, result %d",
              what, programs[program].name, jot_dtype_name(of[i]), jot_dtype_name(to[j]), way, k);
    }
    for (int k = 0; k < 2; k++) {
        jot_clear(c[k]);
        jot_pop(c[k]);
    }
}

/* Of all combinations one in `every`, by turns. */
static void
test_values(const char *backend, const char *target, const char *schedule, int every)
{
    jot_Config config = {
        .backend = backend, .target = target, .schedule = schedule, .cache_dir = ""};
    jot_Ctx *c[2] = {jot_open(&(jot_Config){.backend = "interp", .no_simplify = 1}),
                     jot_open(&config)};
    char what[64];
    int turn = 0;

    snprintf(what, sizeof what, "%s, %s, %s", backend, target, schedule);
    if (jot_error(c[1]))
        SKIP("%s: %s", what, jot_message(c[1]));
    for (int program = 0; program < PROGRAMS && !jot_error(c[1]); program++)
        for (int i = 0; i < OF; i++)
            for (int j = 0; j < TO; j++)
                for (int way = 0; way < 3; way++)
                    if (turn++ % every == 0)
                        compare(c, what, program, i, j, way);
    jot_close(c[0]);
    jot_close(c[1]);
}

/* ---- which bits ----------------------------------------------------------------------------- */

static const char *
kernels_of(const char *backend, const char *target, const char *dump, const Program *program,
           jot_DType from, jot_DType result, int way)
{
    jot_Config config = {.backend = backend, .target = target, .dump = dump, .cache_dir = ""};
    jot_Var v[OUTPUTS];
    jot_Ctx *c;
    int n;

    config.hooks.log = keep_log;
    c = jot_open(&config);
    forget_log();
    n = jot_error(c) ? 0 : build(c, program, from, result, way, v);
    if (!n || !jot_run(c, jot_vars(n, v))) {
        SKIP("%s, %s: %s", backend, target, jot_message(c));
        jot_close(c);
        return NULL;
    }
    jot_close(c);
    return logged;
}

/* Is anything but a number of the run of 64 bits? */
static bool
is_wide(const char *text)
{
    for (const char *at = text; (at = strstr(at, "64 ")) != NULL; at += 3)
        if (at - text > 3 && at[-2] == ' ' && at[-3] == '=' && strncmp(at, "64 scalar", 9))
            return true;
    return false;
}

static void
test_bits(const char *backend)
{
    for (int i = 0; i < PROGRAMS; i++)
        for (int j = 0; j < OF; j++)
            for (int way = 0; way < 3; way += 2) {
                const char *text = kernels_of(backend, "native", "k", &programs[i], of[j], JOT_I32,
                                              way);
                bool wide = text && is_wide(text);

                if (!text)
                    return;
                if (way == 2)
                    CHECK(wide, "%s of %s, asked for:\n%s", programs[i].name,
                          jot_dtype_name(of[j]), text);
                else if (programs[i].narrow && jot_dtype_nbytes(of[j]) < 8)
                    CHECK(!wide, "%s of %s:\n%s", programs[i].name, jot_dtype_name(of[j]), text);
            }
}

/* Loads and products of so many lanes, and none of 64 bits. */
static void
test_text(void)
{
    static const struct { jot_DType from, to; int program; const char *target, *has; } cases[] = {
        {JOT_I32, JOT_I32, 1, "avx2", "jotm_mul_i32_x8"},
        {JOT_I32, JOT_I32, 1, "sse", "jotm_mul_i32_x4"},
        {JOT_I16, JOT_I16, 1, "avx2", "jotm_mul_i16_x16"},
        {JOT_I16, JOT_U16, 3, "sse", "jotm_mul_i16_x8"},
        {JOT_I8, JOT_I8, 3, "avx2", "jotm_mul_i16_x16"},
        {JOT_I64, JOT_I32, 0, "avx2", "jotm_mul_i32_x8"},
        {JOT_I16, JOT_I16, 0, "avx2", "jot_dot_i16_i32x8"},
        {JOT_U32, JOT_U32, 0, "avx2", "jotm_mul_i32_x8"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Program *p = &programs[cases[i].program];
        const char *text = kernels_of("cc", cases[i].target, "c", p, cases[i].from, cases[i].to, 0);

        if (!text)
            return;
        CHECK(strstr(text, cases[i].has), "%s, case %d: no %s\n%s", p->name, (int)i, cases[i].has,
              text);
        CHECK(!strstr(text, "mul_i64") && !strstr(text, "add_i64"), "%s, case %d: 64 bits\n%s",
              p->name, (int)i, text);
    }
}

/* What machines that are not here would run: vectors of NEON and AVX-512, devices, no vectors. */
static void
test_posed(const Posed *machine, jot_DType dtype)
{
    static Notes notes;
    jot_Var v[OUTPUTS];

    for (int i = 0; i < PROGRAMS; i++) {
        jot_Ctx *c;

        scribe = &notes;
        forget_notes(&notes);
        c = open_machine(machine);
        if (!programs[i].narrow || programs[i].build == reduced || jot_error(c)) {
            jot_close(c);
            continue;
        }
        CHECK(build(c, &programs[i], dtype, dtype, 0, v) && jot_run(c, jot_vars(1, v)), "%s: %s",
              machine->label, jot_message(c));
        CHECK(!strstr(notes.text, "jotm_mul_i64") && !strstr(notes.text, "jotm_add_i64")
                  && (strstr(notes.text, "jotm_mul_i") || strstr(notes.text, "jot_dot_")
                      || programs[i].build == running),
              "%s, %s of %s:\n%s", machine->label, programs[i].name, jot_dtype_name(dtype),
              notes.text);
        jot_close(c);
    }
}

int
main(int argc, char **argv)
{
    static const struct { const char *backend, *target, *schedule; int times; } ways[] = {
        {"interp", "native", "default", 0}, {"tcc", "native", "default", 0},
        {"cc", "native", "default", 1},     {"cc", "avx2", "default", 2},
        {"cc", "sse", "default", 2},        {"cc", "native", "random:5", 2},
        {"cc", "random:7", "default", 2},   {"opencl", "native", "default", 4},
        {"cuda", "native", "default", 4},
    };
    int one_in = argc > 1 ? atoi(argv[1]) : test_many(53, 11);
    const char *only = argc > 2 ? argv[2] : NULL;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) /* odd, so that each of a kind comes */
        if (!only || !strcmp(ways[i].backend, only))
            test_values(ways[i].backend, ways[i].target, ways[i].schedule,
                        ways[i].times ? one_in * ways[i].times | 1
                        : only ? one_in : test_many(5, 1));
    if (!only) {
        test_bits("tcc");
        test_text();
        for (int i = 0; i < NAMED; i++)
            for (jot_DType dtype = JOT_I8; dtype <= JOT_I32; dtype++)
                test_posed(&named[i], dtype);
    }
    return DONE();
}
