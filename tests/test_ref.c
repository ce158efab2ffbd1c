/* test_ref.c - every element-wise operator and reduction against values of NumPy and PyTorch:
 * floats with their derivatives, every integer dtype with wrapping, division by zero and extreme
 * shifts, on the default backend and on the interpreter. The tables are tests/ref/ops.h.
 *
 * Guards: backends/interp.c, ccode/build/order.c, ccode/emit/prelude_read.c,
 * ccode/emit/prelude_spell.c. */
#include <float.h>
#include "core.h"
#include "tests/ref/fill.h"
#include "tests/ref/ops.h"
#include "tests/test.h"

enum { MAX = 256 };

static jot_Ctx *c;

static jot_Var
floats(jot_DType dtype, const double *x, int n)
{
    static float narrow[MAX];
    for (int k = 0; k < n; k++)
        narrow[k] = (float)x[k];
    return jot_array(c, dtype, JOT_SHAPE(n), dtype == JOT_F64 ? (const void *)x : (void *)narrow);
}

/* Largest difference in units of eps (|reference| + least), infinite without a value. */
static double
off(jot_Var v, const double *ref, int n, double eps, double least)
{
    static double got[MAX];
    double worst = 0;
    if (jot_nelem(v) != n || !ref_read(v, got, MAX))
        return INFINITY;
    for (int k = 0; k < n; k++) {
        double size = fabs(ref[k]) + least, d = fabs(got[k] - ref[k]);
        if (got[k] == ref[k] || (got[k] != got[k] && ref[k] != ref[k]))
            continue;
        if (eps > DBL_EPSILON && fabs(ref[k]) > FLT_MAX && isinf(got[k]))
            continue;
        d /= size * eps;
        worst = d > worst || d != d ? d : worst;
    }
    return worst;
}

/* In eps. References have 13 digits; derivatives are products of several functions, and those of
 * saturating ones (tanh: 1 - y^2) are exact to eps, not to eps of themselves. */
#define BOUND 16

static double
eps_of(jot_DType dtype)
{
    return dtype == JOT_F64 ? 2e-13 : FLT_EPSILON;
}

/* All graphs of a backend are built first, run together and then looked at, since a device's compiler
 * takes long to begin: the checks are gone through twice, and find in `kept` what they made. */
static jot_Var kept[4000];
static int nkept, looked;
static bool looking;

/* The first time the variable, made here, is kept; the second time it is what was kept. */
#define KEPT(made) (looking ? kept[looked++] : keep(made))

static jot_Var
keep(jot_Var v)
{
    if (nkept < (int)(sizeof kept / sizeof *kept))
        kept[nkept++] = v;
    return v;
}

static void
check_unary(const char *name, jot_Var (*f)(jot_Var), jot_DType dtype, const double *x, int n,
            const double *value, const double *slope)
{
    jot_Var a, y, g = {0};
    if (!looking) {
        a = floats(dtype, x, n);
        y = keep(f(a));
        jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(a), &g);
        keep(g);
        return;
    }
    y = kept[looked++];
    g = kept[looked++];
    double d = off(y, value, n, eps_of(dtype), 1e-3);
    CHECK(d < BOUND, "%s %s on %s: off by %g eps: %s", name, jot_dtype_name(dtype), jot_backend(c),
          d, jot_message(c));
    d = off(g, slope, n, eps_of(dtype), 0.05);
    CHECK(d < BOUND, "%s %s on %s: derivative off by %g eps: %s", name, jot_dtype_name(dtype),
          jot_backend(c), d, jot_message(c));
}

static void
check_binary(const char *name, jot_Var (*f)(jot_Var, jot_Var), jot_DType dtype, const double *xa,
             const double *xb, int n, const double *value, const double *da, const double *db)
{
    jot_Var in[2], g[2], y;
    if (!looking) {
        in[0] = floats(dtype, xa, n);
        in[1] = floats(dtype, xb, n);
        y = keep(f(in[0], in[1]));
        if (jot_dtype(y) == JOT_BOOL)
            return;
        jot_grad(jot_sum(y, JOT_ALL_DIMS), jot_vars(2, in), g);
        keep(g[0]);
        keep(g[1]);
        return;
    }
    y = kept[looked++];
    double d = off(y, value, n, eps_of(dtype), 1e-3);
    CHECK(d < BOUND, "%s %s on %s: off by %g eps: %s", name, jot_dtype_name(dtype), jot_backend(c),
          d, jot_message(c));
    if (jot_dtype(y) == JOT_BOOL)
        return;
    g[0] = kept[looked++];
    g[1] = kept[looked++];
    d = off(g[0], da, n, eps_of(dtype), 0.05);
    double e = off(g[1], db, n, eps_of(dtype), 0.05);
    CHECK(d < BOUND && e < BOUND, "%s %s on %s: derivatives off by %g and %g eps: %s", name,
          jot_dtype_name(dtype), jot_backend(c), d, e, jot_message(c));
}

static int64_t
integer_at(const void *p, jot_DType dtype, int k)
{
    switch (dtype) {
    case JOT_I8: return ((const int8_t *)p)[k];
    case JOT_I16: return ((const int16_t *)p)[k];
    case JOT_I32: return ((const int32_t *)p)[k];
    case JOT_U16: return ((const uint16_t *)p)[k];
    case JOT_U32: return ((const uint32_t *)p)[k];
    case JOT_I64: case JOT_U64: return ((const int64_t *)p)[k];
    default: return ((const uint8_t *)p)[k];
    }
}

static jot_Var
integers(jot_DType dtype, const int64_t *x, int n)
{
    static unsigned char bytes[MAX * 8];
    size_t size = jot_dtype_nbytes(dtype);
    for (int k = 0; k < n; k++)
        for (size_t b = 0; b < size; b++) /* little-endian, as every machine this runs on */
            bytes[(size_t)k * size + b] = (unsigned char)((uint64_t)x[k] >> 8 * b);
    return jot_array(c, dtype, JOT_SHAPE(n), bytes);
}

static void
check_integer(const char *name, jot_Var (*f)(jot_Var, jot_Var), jot_DType dtype, const int64_t *a,
              const int64_t *b, int n, const int64_t *value)
{
    jot_Var y = KEPT(f(integers(dtype, a, n), integers(dtype, b, n)));
    const void *p;
    if (!looking)
        return;
    p = jot_data(y);
    CHECK(p && (jot_dtype(y) == dtype || jot_dtype(y) == JOT_BOOL), "%s %s on %s: %s", name,
          jot_dtype_name(dtype), jot_backend(c), jot_message(c));
    for (int k = 0; p && k < n; k++) {
        int64_t got = integer_at(p, jot_dtype(y), k);
        CHECK(got == value[k], "%s %s on %s: %lld, %lld gives %lld, not %lld", name,
              jot_dtype_name(dtype), jot_backend(c), (long long)a[k], (long long)b[k],
              (long long)got, (long long)value[k]);
    }
}

static jot_Dims
dims_of(const char *tag)
{
    static int64_t dims[4];
    int n = 0;
    for (; *tag; tag++)
        dims[n++] = *tag - '0';
    return jot_dims(n, dims, false);
}

static void
check_reduce(const char *name, jot_ReduceOp op, const char *tag, const double *value)
{
    for (int wide = 0; wide < 2; wide++) {
        jot_DType dtype = wide ? JOT_F64 : JOT_F32;
        jot_Var y = KEPT(jot_reduce(op, ref_array(c, dtype, JOT_SHAPE(3, 4, 5), 1, 1),
                                    dims_of(tag)));
        if (!looking)
            continue;
        double d = off(y, value, (int)jot_nelem(y), eps_of(dtype), 0.05);
        CHECK(d < 1024, "%s over %s %s on %s: off by %g eps: %s", name, tag, jot_dtype_name(dtype),
              jot_backend(c), d, jot_message(c));
    }
}

static void
check_arg(int dim, const double *most, const double *least)
{
    jot_Var x = ref_array(c, JOT_F32, JOT_SHAPE(3, 4, 5), 1, 1);
    jot_Var a = KEPT(jot_argmax(x, JOT_DIMS(dim))), b = KEPT(jot_argmin(x, JOT_DIMS(dim)));
    if (!looking)
        return;
    CHECK(off(a, most, (int)jot_nelem(a), 1, 1) == 0, "argmax over %d on %s", dim, jot_backend(c));
    CHECK(off(b, least, (int)jot_nelem(b), 1, 1) == 0, "argmin over %d on %s", dim, jot_backend(c));
}

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define UNARY(name, in) \
    check_unary(#name, jot_##name, dtype, ref_in_##in, COUNT(ref_in_##in), ref_u_##name, \
                ref_u_##name##_d);
#define BINARY(name, in) \
    check_binary(#name, jot_##name, dtype, ref_in_##in##_a, ref_in_##in##_b, \
                 COUNT(ref_in_##in##_a), ref_b_##name, ref_b_##name##_da, ref_b_##name##_db);
#define INTEGER(DTYPE, dtype, op) \
    check_integer(#op, jot_##op, JOT_##DTYPE, ref_##dtype##_a, ref_##dtype##_b, \
                  COUNT(ref_##dtype##_a), ref_##dtype##_##op);
#define REDUCE(OP, op, tag) check_reduce(#op, JOT_##OP, #tag, ref_r_##op##_##tag);

static void
check_floats(jot_DType dtype)
{
    REF_UNARY(UNARY)
    REF_BINARY(BINARY)
}

static void
check_all(void)
{
    check_floats(JOT_F32);
    check_floats(JOT_F64);
    REF_INTEGER(INTEGER)
    REF_REDUCE(REDUCE)
    check_arg(0, ref_r_argmax_0, ref_r_argmin_0);
    check_arg(1, ref_r_argmax_1, ref_r_argmin_1);
    check_arg(2, ref_r_argmax_2, ref_r_argmin_2);
}

static void
check_backend(const char *backend)
{
    jot_Config config;
    memset(&config, 0, sizeof config);
    config.backend = backend;
    config.cache_dir = "";
    c = jot_open(&config);
    if (jot_error(c) == JOT_EDEVICE) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return;
    }
    nkept = looked = 0;
    looking = false;
    check_all();
    jot_run(c, jot_vars(nkept, kept));
    looking = true;
    check_all();
    CHECK(looked == nkept && nkept < (int)(sizeof kept / sizeof *kept), "%d of %d", looked, nkept);
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
}

int
main(void)
{
    check_backend(NULL);
    check_backend("interp");
    return DONE();
}
