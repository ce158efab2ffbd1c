/* onnx/op/signal.c - windows, Fourier's transform, filters of the mel scale.
 *
 * The transform is a product with cosines and sines: of some thousand points at most.
 *
 * Read before: onnx/op/quant.c. After: onnx/control.c. */
#include "onnx/op/ops.h"

enum { SIGNAL_MOST = 1 << 14 };
static const double PI = 3.14159265358979323846;

/* n numbers as a constant of the dtype that an attribute names. */
static bool
numbers(OnnxCall *c, jot_Ints shape, const double *v)
{
    jot_DType dtype = onnx_dtype(onnx_int(c, "output_datatype", 1));
    jot_Var y = jot_array(c->b->m->fold, JOT_F64, shape, v);
    if (dtype == JOT_DTYPES)
        return onnx_fail(c, JOT_EDTYPE, "output_datatype: not supported");
    c->value[0] = onnx_value_of(c->b, jot_cast(y, dtype), 0);
    return c->value[0] != NULL;
}

bool
onnx_op_window(OnnxCall *c)
{
    int64_t n;
    double *v;

    if (!onnx_scalar(c, 0, &n))
        return false;
    if (n < 0 || n > ONNX_LARGE || !(v = onnx_take(&c->b->arena, (size_t)n + 1, sizeof *v)))
        return onnx_fail(c, JOT_ERANGE, "size: 0..%d asked, %lld found", ONNX_LARGE, (long long)n);
    double by = 2 * PI / (double)(onnx_i(c, "periodic", 1) || n == 1 ? n : n - 1);
    for (int64_t i = 0; i < n; i++) {
        double a = (double)i * by;
        v[i] = c->op->kind == ONNX_HANN ? 0.5 - 0.5 * cos(a)
             : c->op->kind == ONNX_HAMMING ? 25.0 / 46 - 21.0 / 46 * cos(a)
                                           : 0.42 - 0.5 * cos(a) + 0.08 * cos(2 * a);
    }
    return numbers(c, JOT_SHAPE(n), v);
}

typedef struct { int64_t n, in, out; bool inverse, onesided; } Fourier;

/* (in, out): cosines or sines of one turn in n, with the weights of a real result. */
static jot_Var
fourier_matrix(OnnxCall *c, const Fourier *f, bool sine, jot_DType dtype)
{
    double *v = onnx_take(&c->b->arena, (size_t)(f->in * f->out) + 1, sizeof *v);

    if (!v)
        return jot_raise(c->ctx, JOT_EMEM, "no memory");
    for (int64_t i = 0; i < f->in; i++)
        for (int64_t k = 0; k < f->out; k++) {
            double a = 2 * PI * (double)(i * k % f->n) / (double)f->n;
            double w = f->inverse ? 1 / (double)f->n : 1;
            if (f->inverse && f->onesided && i && 2 * i != f->n)
                w *= 2;
            v[i * f->out + k] = w * (sine ? sin(a) : cos(a));
        }
    return onnx_hold(c, jot_cast(jot_array(c->ctx, JOT_F64, JOT_SHAPE(f->in, f->out), v), dtype),
                     0);
}

/* x (..., in, 1 or 2), numbers or pairs, along the dimension before the last. */
static jot_Var
fourier(OnnxCall *c, jot_Var x, const Fourier *f)
{
    jot_DType dtype = jot_dtype(x);
    bool pairs = jot_extent(x, -1) == 2;
    jot_Var re = jot_select(x, -1, 0), im = pairs ? jot_select(x, -1, 1) : jot_none();
    jot_Var cs = fourier_matrix(c, f, false, dtype), sn = fourier_matrix(c, f, true, dtype);

    if (!jot_ok(cs) || !jot_ok(sn))
        return cs;
    if (f->inverse) {
        jot_Var y = jot_matmul(re, cs);
        y = pairs ? jot_sub(y, jot_matmul(im, sn)) : y;
        if (f->onesided)
            return jot_unsqueeze(y, -1);
        jot_Var z = jot_matmul(re, sn);
        return jot_stack(JOT_VARS(y, pairs ? jot_add(z, jot_matmul(im, cs)) : z), -1);
    }
    jot_Var y = jot_matmul(re, cs), z = jot_neg(jot_matmul(re, sn));
    if (pairs) {
        y = jot_add(y, jot_matmul(im, sn));
        z = jot_add(z, jot_matmul(im, cs));
    }
    return jot_stack(JOT_VARS(y, z), -1);
}

static bool
fourier_fits(OnnxCall *c, jot_Var x, int64_t n)
{
    if (n < 1 || n > SIGNAL_MOST)
        return onnx_fail(c, JOT_ERANGE, "a length of 1..%d asked, %lld found", SIGNAL_MOST,
                         (long long)n);
    return (jot_extent(x, -1) == 1 || jot_extent(x, -1) == 2)
        || onnx_fail(c, JOT_ESHAPE, "(..., 1) or (..., 2) asked");
}

bool
onnx_op_dft(OnnxCall *c)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x);
    int64_t axis = onnx_version(c) < 20 ? onnx_i(c, "axis", 1) : -2, order[JOT_MAX_RANK];
    Fourier f = {.inverse = onnx_i(c, "inverse", 0), .onesided = onnx_i(c, "onesided", 0)};

    if ((onnx_given(c, 2) && !onnx_scalar(c, 2, &axis)) || !onnx_axis(c, &axis, rank))
        return false;
    if (rank < 2 || axis == rank - 1)
        return onnx_fail(c, JOT_ERANGE, "axis: one before the last asked");
    f.n = f.inverse && f.onesided ? 2 * (jot_extent(x, (int)axis) - 1) : jot_extent(x, (int)axis);
    if ((onnx_given(c, 1) && !onnx_scalar(c, 1, &f.n)) || !fourier_fits(c, x, f.n))
        return false;
    for (int d = 0; d < rank; d++)
        order[d] = d;
    order[axis] = rank - 2;
    order[rank - 2] = axis;
    x = jot_transpose(x, jot_ints(rank, order));
    f.in = f.inverse && f.onesided ? f.n / 2 + 1 : f.n;
    f.out = f.onesided && !f.inverse ? f.n / 2 + 1 : f.n;
    if (jot_extent(x, -2) > f.in)
        x = jot_narrow(x, -2, 0, f.in);
    f.in = jot_extent(x, -2); /* what is not there counts as 0 */
    return onnx_put(c, 0, jot_transpose(fourier(c, x, &f), jot_ints(rank, order)));
}

bool
onnx_op_stft(OnnxCall *c)
{
    jot_Var x = c->x[0], y;
    int64_t step, n = 0;
    Fourier f = {.onesided = onnx_i(c, "onesided", 1)};

    if (jot_rank(x) == 2)
        x = jot_unsqueeze(x, -1);
    if (!onnx_scalar(c, 1, &step) || (onnx_given(c, 3) && !onnx_scalar(c, 3, &n)))
        return false;
    n = n ? n : onnx_given(c, 2) ? jot_extent(c->x[2], 0) : 0;
    if (jot_rank(x) != 3 || step < 1 || n > jot_extent(x, 1))
        return onnx_fail(c, JOT_ESHAPE, "a signal (b, t, 1 or 2) and frames within it asked");
    if (!fourier_fits(c, x, n))
        return false;
    char at[48];
    snprintf(at, sizeof at, "i1*%lld+i2", (long long)step);
    int64_t frames = 1 + (jot_extent(x, 1) - n) / step;
    y = jot_reindex(x, JOT_SHAPE(jot_extent(x, 0), frames, n, jot_extent(x, 2)),
                    JOT_INDEX("i0", at, "i3"));
    if (onnx_given(c, 2))
        y = jot_mul(y, onnx_along(c->x[2], 2, 4));
    f.n = f.in = n;
    f.out = f.onesided ? n / 2 + 1 : n;
    return onnx_put(c, 0, fourier(c, y, &f));
}

/* (bins of the spectrum, filters): triangles between neighbouring marks of the mel scale. */
bool
onnx_op_mel(OnnxCall *c)
{
    int64_t filters, length, rate, mark[3];
    const double *low = onnx_read_f64(c, 3), *high = low ? onnx_read_f64(c, 4) : NULL;
    double *v;

    if (!low || !high || !onnx_scalar(c, 0, &filters) || !onnx_scalar(c, 1, &length)
        || !onnx_scalar(c, 2, &rate))
        return false;
    if (filters < 1 || length < 1 || rate < 1 || filters > 1 << 14 || length > 1 << 20)
        return onnx_fail(c, JOT_ERANGE, "filters, a length and a rate above 0 asked");
    int64_t bins = length / 2 + 1;
    double from = 2595 * log10(1 + *low / 700), to = 2595 * log10(1 + *high / 700);
    if (!(v = onnx_take(&c->b->arena, (size_t)(bins * filters), sizeof *v)))
        return onnx_fail(c, JOT_EMEM, "no memory");
    for (int64_t i = 0; i < filters; i++) {
        for (int k = 0; k < 3; k++) {
            double mel = from + (double)(i + k) * (to - from) / (double)(filters + 2);
            double hz = 700 * (pow(10, mel / 2595) - 1);
            mark[k] = (int64_t)floor((double)(length + 1) * hz / (double)rate);
            if (mark[k] < 0 || mark[k] > bins)
                return onnx_fail(c, JOT_ERANGE, "edges within the spectrum asked");
        }
        if (mark[1] == mark[0] && mark[1] < bins)
            v[mark[1] * filters + i] = 1;
        for (int64_t j = mark[0]; mark[1] > mark[0] && j <= mark[1] && j < bins; j++)
            v[j * filters + i] = (double)(j - mark[0]) / (double)(mark[1] - mark[0]);
        for (int64_t j = mark[1]; j < mark[2]; j++)
            v[j * filters + i] = (double)(mark[2] - j) / (double)(mark[2] - mark[1]);
    }
    return numbers(c, JOT_SHAPE(bins, filters), v);
}
