/* tests/test_element.c - element-wise operators without evaluation: what the builders make of their
 * operands: dtypes, shapes, simplifications, errors; streams of random variables.
 *
 * Guards: ops/create.c, ops/element.c, ops/fold.c. */
#include "ops/graph.h"
#include "tests/scalar_values.h"
#include "tests/test.h"

static void *
plain_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud;
    (void)old_nbytes;
    if (new_nbytes)
        return realloc(p, new_nbytes);
    free(p);
    return NULL;
}

static jot_Ctx *
open_plain(int no_simplify)
{
    jot_Config config;

    memset(&config, 0, sizeof config);
    config.hooks.realloc = plain_realloc;
    config.backend = "interp";
    config.no_simplify = no_simplify;
    return jot_open(&config);
}

static NodeId
node_id(jot_Var v)
{
    return v.ctx->slots.v[v.slot].node;
}

static const Node *
node_at(jot_Var v)
{
    return jot_node(v.ctx, node_id(v));
}

static bool
failed_with(jot_Ctx *c, jot_Status status, const char *text)
{
    bool ok = jot_error(c) == status && !strcmp(jot_message(c), text);

    if (!ok)
        printf("    status %d: %s\n", (int)jot_error(c), jot_message(c));
    jot_clear(c);
    return ok;
}

static jot_Var
zeros(jot_Ctx *c, jot_DType dtype, jot_Ints shape)
{
    return jot_array(c, dtype, shape, NULL); /* an array is not folded */
}

/* dtype of an operator's result by the kind of operator: arithmetic, float function, comparison,
 * logic, bits */
static void
test_dtypes(void)
{
    jot_Ctx *c = open_plain(0);
    int t;

    for (t = 0; t < JOT_DTYPES; t++) {
        jot_DType d = (jot_DType)t, arith = d == JOT_BOOL ? JOT_I32 : d;
        bool is_float = jot_dtype_class(d) == CLASS_FLOAT;
        jot_DType real = is_float ? d : JOT_F32;
        jot_Var a, b;

        jot_push(c);
        a = zeros(c, d, JOT_SHAPE(2));
        b = zeros(c, d, JOT_SHAPE(2));
        CHECK(jot_dtype(jot_add(a, b)) == arith, "add of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_neg(a)) == arith, "neg of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_floor(a)) == arith, "floor of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_floordiv(a, b)) == arith, "floordiv of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_div(a, b)) == real, "div of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_exp(a)) == real, "exp of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_atan2(a, b)) == real, "atan2 of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_reciprocal(a)) == real, "reciprocal of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_scale(a, 2)) == arith, "scale of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_clamp(a, 0, 1)) == arith, "clamp of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_lt(a, b)) == JOT_BOOL && jot_dtype(jot_isnan(a)) == JOT_BOOL, "bool");
        CHECK(jot_dtype(jot_logical_and(a, b)) == JOT_BOOL, "and of %s", jot_dtype_name(d));
        CHECK(node_at(jot_logical_not(a))->input[0] ==
              node_id(d == JOT_BOOL ? a : jot_cast(a, JOT_BOOL)), "not of %s", jot_dtype_name(d));
        CHECK(jot_dtype(jot_where(a, a, b)) == d, "where of %s", jot_dtype_name(d));
        CHECK(jot_error(c) == JOT_OK, "%s", jot_message(c));
        CHECK(is_float || jot_dtype(jot_bit_xor(a, b)) == d, "bits of %s", jot_dtype_name(d));
        CHECK(is_float || jot_dtype(jot_shift_left(a, b)) == arith, "shift %s", jot_dtype_name(d));
        jot_pop(c);
    }
    CHECK(jot_error(c) == JOT_OK && c->live_nodes == 0, "%s", jot_message(c));
    jot_close(c);
}

static void
test_mixed(void)
{
    jot_Ctx *c = open_plain(0);
    jot_Var u = zeros(c, JOT_U8, JOT_SHAPE(2)), i = zeros(c, JOT_I8, JOT_SHAPE(2));
    jot_Var h = zeros(c, JOT_F16, JOT_SHAPE(2)), l = zeros(c, JOT_I64, JOT_SHAPE(2));
    const Node *n = node_at(jot_lt(u, i));

    CHECK(jot_dtype(jot_add(u, i)) == JOT_I16, "u8 + i8");
    CHECK(jot_dtype(jot_mul(l, h)) == JOT_F16, "i64 * f16");
    CHECK(jot_dtype(jot_div(l, u)) == JOT_F32, "i64 / u8");
    CHECK(jot_node(c, n->input[0])->dtype == JOT_I16 && jot_node(c, n->input[1])->dtype == JOT_I16,
          "comparisons promote first");
    CHECK(jot_dtype(jot_where(u, l, h)) == JOT_F16, "where");
    CHECK(jot_dtype(jot_shift_right(u, l)) == JOT_I64, "shift");
    jot_close(c);
}

static void
test_broadcast(void)
{
    jot_Ctx *c = open_plain(0);
    jot_Var a = zeros(c, JOT_F32, JOT_SHAPE(2, 1, 3)), b = zeros(c, JOT_I8, JOT_SHAPE(4, 1));
    jot_Var y = jot_add(a, b), empty = zeros(c, JOT_F32, JOT_SHAPE(0)), none;
    const Node *n = node_at(y), *x;
    int axis = -1;
    int64_t zero = -1;

    CHECK(jot_rank(y) == 3 && jot_extent(y, 0) == 2 && jot_extent(y, 1) == 4 &&
          jot_extent(y, 2) == 3, "shape");
    x = jot_node(c, n->input[1]);
    CHECK(x->kind == NODE_REINDEX && jot_ix_is_axis(&c->ix, x->index[0], &axis) && axis == 1 &&
          jot_ix_is_const(&c->ix, x->index[1], &zero) && zero == 0, "map of b");
    CHECK(jot_node(c, x->input[0])->op == EW_CAST && jot_node(c, x->input[0])->rank == 2,
          "cast before broadcast");
    CHECK(node_at(jot_add(a, a))->input[0] == node_id(a), "equal shapes need no map");
    none = jot_mul(empty, zeros(c, JOT_F32, JOT_SHAPE(5, 1)));
    CHECK(jot_rank(none) == 2 && jot_extent(none, 1) == 0 && jot_nelem(none) == 0, "empty");
    CHECK(jot_extent(jot_mul(empty, jot_scalar(c, JOT_F32, 2)), 0) == 0, "empty with scalar");
    y = jot_where(zeros(c, JOT_I32, JOT_SHAPE(3)), zeros(c, JOT_F32, JOT_SHAPE(2, 1)),
                   jot_scalar(c, JOT_F64, 1));
    CHECK(jot_rank(y) == 2 && jot_extent(y, 1) == 3 && jot_dtype(y) == JOT_F64, "where");
    CHECK(jot_error(c) == JOT_OK, "%s", jot_message(c));
    jot_close(c);
}

static void
test_errors(void)
{
    jot_Ctx *c = open_plain(0);
    jot_Var a = zeros(c, JOT_F32, JOT_SHAPE(2, 3)), b = zeros(c, JOT_F32, JOT_SHAPE(4));
    jot_Var i = zeros(c, JOT_I8, JOT_SHAPE(2));

    CHECK(!jot_ok(jot_add(a, b)), "shapes");
    CHECK(failed_with(c, JOT_ESHAPE, "add: a is (2, 3), b is (4): dimension 1 is 3 and 4"), "add");
    CHECK(!jot_ok(jot_where(jot_isnan(a), b, a)), "shapes");
    CHECK(failed_with(c, JOT_ESHAPE, "where: condition is (2, 3), a is (4), b is (2, 3): "
                      "dimension 1 is 3 and 4"), "where");
    CHECK(!jot_ok(jot_pow(zeros(c, JOT_F32, JOT_SHAPE(0)), b)), "0 and 4");
    CHECK(failed_with(c, JOT_ESHAPE, "pow: a is (0), b is (4): dimension 0 is 0 and 4"), "pow");
    CHECK(!jot_ok(jot_bit_and(a, i)), "bits of floats");
    CHECK(failed_with(c, JOT_EDTYPE, "bit_and: integers or bool asked, f32 found"), "bits");
    CHECK(!jot_ok(jot_bit_not(a)), "bits of floats");
    CHECK(failed_with(c, JOT_EDTYPE, "bit_not: integers or bool asked, f32 found"), "bits");
    CHECK(!jot_ok(jot_scale(i, 0.5)), "scale");
    CHECK(failed_with(c, JOT_ERANGE, "scale: k is 0.5, which is no i8"), "scale");
    CHECK(!jot_ok(jot_offset(i, 128)), "offset");
    CHECK(failed_with(c, JOT_ERANGE, "offset: k is 128, which is no i8"), "offset");
    CHECK(!jot_ok(jot_clamp(a, 1, 0)), "clamp");
    CHECK(failed_with(c, JOT_ERANGE, "clamp: lo of at most hi asked, lo 1 and hi 0 found"),
          "clamp");
    CHECK(!jot_ok(jot_cast(a, JOT_DTYPES)), "cast");
    CHECK(failed_with(c, JOT_EDTYPE, "cast: 13 is no dtype"), "cast");
    CHECK(!jot_ok(jot_arange(c, JOT_I32, 0, 1, -4)), "arange");
    CHECK(failed_with(c, JOT_ERANGE, "arange: n: at least 0 asked, -4 found"), "arange");
    CHECK(!jot_ok(jot_arange(c, JOT_I32, 0, 0.5, 4)), "arange");
    CHECK(failed_with(c, JOT_ERANGE,
                      "arange: start 0, step 0.5 are not whole, and i32 is asked"), "arange");
    jot_close(c);
}

/* ---- simplification ----------------------------------------------------------------------- */

static void
test_folding(void)
{
    jot_Ctx *c = open_plain(0);
    jot_Var two = jot_full(c, JOT_F32, JOT_SHAPE(2, 3), 2), h = jot_scalar(c, JOT_F16, 1);
    jot_Var y = jot_add(jot_mul(two, jot_scalar(c, JOT_I32, 3)), jot_scalar(c, JOT_F32, 0.5));

    CHECK(node_at(y)->kind == NODE_CONST && node_at(y)->value.f == 6.5, "%g", node_at(y)->value.f);
    CHECK(jot_extent(y, 1) == 3 && jot_dtype(y) == JOT_F32, "its shape");
    y = jot_add(h, jot_scalar(c, JOT_F16, 1 / 2048.0));
    CHECK(node_at(y)->value.f == 1, "rounded to f16: %.17g", node_at(y)->value.f);
    y = jot_lt(two, jot_scalar(c, JOT_F32, NAN));
    CHECK(node_at(y)->kind == NODE_CONST && node_at(y)->value.u == 0 && jot_dtype(y) == JOT_BOOL,
          "comparison");
    y = jot_add(jot_scalar(c, JOT_U8, 200), jot_scalar(c, JOT_U8, 100));
    CHECK(node_at(y)->value.u == 44, "wraps: %llu", (unsigned long long)node_at(y)->value.u);
    y = jot_cast(jot_scalar(c, JOT_F64, 1e300), JOT_I8);
    CHECK(node_at(y)->value.i == 127, "saturates: %lld", (long long)node_at(y)->value.i);
    y = jot_clamp(jot_scalar(c, JOT_I32, -5), -2.5, INFINITY);
    CHECK(node_at(y)->value.i == -2, "clamp: %lld", (long long)node_at(y)->value.i);
    CHECK(jot_node_is(c, node_id(jot_zeros(c, JOT_U8, JOT_SHAPE(3))), 0), "zero is zero");
    CHECK(!jot_node_is(c, node_id(zeros(c, JOT_U8, JOT_SHAPE(3))), 0), "an array is not");
    jot_close(c);
}

#define SAME(a, b) CHECK(node_id(a) == node_id(b), "not the same node")
#define OTHER(a, b) CHECK(node_id(a) != node_id(b), "the same node")

static void
test_rules(void)
{
    jot_Ctx *c = open_plain(0);
    jot_Var x = zeros(c, JOT_F32, JOT_SHAPE(3)), i = zeros(c, JOT_I16, JOT_SHAPE(3));
    jot_Var p = zeros(c, JOT_BOOL, JOT_SHAPE(3)), y = zeros(c, JOT_F32, JOT_SHAPE(3));
    jot_Var zero = jot_scalar(c, JOT_F32, 0), one = jot_scalar(c, JOT_F32, 1);
    jot_Var izero = jot_scalar(c, JOT_I16, 0), yes = jot_scalar(c, JOT_BOOL, 1);

    SAME(jot_add(x, zero), x);
    SAME(jot_add(zero, x), x);
    SAME(jot_sub(x, zero), x);
    OTHER(jot_sub(zero, x), x);
    SAME(jot_mul(one, x), x);
    SAME(jot_div(x, one), x);
    OTHER(jot_div(one, x), x);
    CHECK(node_at(jot_mul(x, zero))->kind == NODE_EW, "NaN * 0 is NaN");
    CHECK(jot_node_is(c, node_id(jot_mul(i, izero)), 0), "integers * 0");
    SAME(jot_neg(jot_neg(x)), x);
    SAME(jot_logical_not(jot_logical_not(p)), p);
    SAME(jot_bit_not(jot_bit_not(i)), i);
    SAME(jot_maximum(i, i), i);
    OTHER(jot_maximum(x, x), x); /* its gradient where x is NaN is that of two that are equal */
    SAME(jot_where(p, x, x), x);
    SAME(jot_where(yes, x, y), x);
    SAME(jot_where(jot_logical_not(yes), x, y), y);
    SAME(jot_logical_and(p, yes), p);
    CHECK(jot_node_is(c, node_id(jot_logical_or(yes, p)), 1), "true or p");
    SAME(jot_pow(x, one), x);
    SAME(jot_pow(x, jot_scalar(c, JOT_F32, 2)), jot_mul(x, x));
    CHECK(jot_node_is(c, node_id(jot_pow(x, zero)), 1), "x ^ 0");
    SAME(jot_square(x), jot_mul(x, x));
    SAME(jot_arange(c, JOT_I64, 0, 1, 3), jot_iota(c, JOT_I64, JOT_SHAPE(3), 0));
    SAME(jot_stop_grad(jot_stop_grad(x)), jot_stop_grad(x));
    OTHER(jot_stop_grad(x), x);
    CHECK(jot_error(c) == JOT_OK, "%s", jot_message(c));
    jot_close(c);
}

/* Does from -> mid -> to give what from -> to gives, for all of the values? */
static bool
cast_is_through(jot_DType from, jot_DType mid, jot_DType to)
{
    int k, wrong = 0;

    for (k = 0; k < NINTS + NFLOATS; k++) {
        jot_Scalar v = k < NINTS ? jot_scalar_from_i64(ints[k], from)
                                 : jot_scalar_from_f64(floats[k - NINTS], from);
        jot_Scalar m = jot_scalar_apply(EW_CAST, from, mid, &v);
        jot_Scalar r = jot_scalar_apply(EW_CAST, mid, to, &m);
        jot_Scalar s = jot_scalar_apply(EW_CAST, from, to, &v);

        wrong += r.u != s.u && !(jot_dtype_class(to) == CLASS_FLOAT && r.f != r.f && s.f != s.f);
    }
    return !wrong;
}

/* All 13^3 chains: where the builder goes past the middle, no value may tell. */
static void
test_cast_chains(void)
{
    jot_Ctx *c = open_plain(0);
    int i, kept = 0, passed = 0;

    for (i = 0; i < JOT_DTYPES * JOT_DTYPES * JOT_DTYPES; i++) {
        jot_DType from = (jot_DType)(i % JOT_DTYPES);
        jot_DType mid = (jot_DType)(i / JOT_DTYPES % JOT_DTYPES);
        jot_DType to = (jot_DType)(i / JOT_DTYPES / JOT_DTYPES);
        jot_Var x, y;
        bool past;

        if (from == mid || mid == to)
            continue;
        jot_push(c);
        x = zeros(c, from, JOT_SHAPE(3));
        y = jot_cast(jot_cast(x, mid), to);
        past = node_id(y) == node_id(x) || node_at(y)->input[0] == node_id(x);
        jot_pop(c);
        passed += past;
        kept += !past;
        CHECK(!past || cast_is_through(from, mid, to), "%s -> %s -> %s", jot_dtype_name(from),
              jot_dtype_name(mid), jot_dtype_name(to));
    }
    CHECK(passed > 300 && kept > 300, "%d passed, %d kept", passed, kept);
    jot_close(c);
}

static void
test_no_simplify(void)
{
    jot_Ctx *c = open_plain(1);
    jot_Var x = zeros(c, JOT_F32, JOT_SHAPE(3)), one = jot_ones(c, JOT_F32, JOT_SHAPE(3));

    CHECK(node_at(jot_mul(x, one))->op == EW_MUL, "x * 1 stays");
    CHECK(node_at(jot_add(one, one))->kind == NODE_EW, "constants stay");
    CHECK(node_at(jot_neg(jot_neg(x)))->op == EW_NEG, "neg neg stays");
    CHECK(jot_error(c) == JOT_OK, "%s", jot_message(c));
    jot_close(c);
}

/* The stream of a random variable does not depend on what else the program makes. */
static void
test_streams(void)
{
    jot_Ctx *c = open_plain(0);
    jot_Var a = jot_uniform(c, JOT_F32, JOT_SHAPE(4)), b = jot_normal(c, JOT_F32, JOT_SHAPE(4)), h;
    const Node *n = node_at(a), *m = node_at(b);
    uint64_t key = n->value.u;

    CHECK(n->stream == 0 && m->stream == (uint64_t)1 << 40, "streams");
    CHECK(n->value.u != m->value.u, "keys of uniform and normal differ");
    h = jot_uniform(c, JOT_BF16, JOT_SHAPE(4));
    CHECK(jot_dtype(h) == JOT_BF16 && node_at(h)->op == EW_CAST, "16 bits are rounded down");
    jot_seed(c, 1);
    a = jot_uniform(c, JOT_F32, JOT_SHAPE(4));
    CHECK(node_at(a)->stream == 0 && node_at(a)->value.u != key, "another seed");
    jot_seed(c, 0);
    a = jot_uniform(c, JOT_F32, JOT_SHAPE(4));
    CHECK(node_at(a)->stream == 0 && node_at(a)->value.u == key, "the first seed again");
    jot_close(c);
}

int
main(void)
{
    put_values();
    test_dtypes();
    test_mixed();
    test_broadcast();
    test_errors();
    test_folding();
    test_rules();
    test_cast_chains();
    test_no_simplify();
    test_streams();
    return DONE();
}
