/* onnx/op/resize.c - images of other extents, and images sampled at places.
 *
 * Resize works by axis: element i of the result is a weighted sum of `taps` rows of x, whose places
 * and weights are numbers that are known now. Repeated rows and linear weights that jot has itself
 * are built by it, the others gather rows.
 *
 *     y[i] = sum over t of w[i, t] x[at[i, t]]
 *
 * Read before: onnx/op/pool.c. After: onnx/op/norm.c. */
#include "onnx/op/ops.h"

enum { RESIZE_MOST = 1 << 20 }; /* places of an axis */
typedef enum { NEAREST, LINEAR, CUBIC } Mode;
typedef enum { HALF, HALF_TORCH, HALF_SYMMETRIC, CORNERS, ASYMMETRIC, CROP } Where;
typedef struct {
    Mode mode;
    Where where;
    const char *nearest;
    double a, extrapolation;
    bool antialias, exclude;
} How;
typedef struct { int64_t n, out; double scale, from, to; } Axis; /* from, to: of CROP */

/* Where element i of the result stands in x. */
static double
place(const How *h, const Axis *a, int64_t i)
{
    double n = (double)a->n, out = a->scale * n, middle = ((double)i + 0.5) / a->scale - 0.5;
    switch (h->where) {
    case HALF: return middle;
    case HALF_TORCH: return a->out > 1 ? middle : 0;
    case HALF_SYMMETRIC: return n / 2 * (1 - (double)a->out / out) + middle;
    case CORNERS: return out > 1 ? (double)i * (n - 1) / (out - 1) : 0;
    case ASYMMETRIC: return (double)i / a->scale;
    default:
        return a->out > 1 ? a->from * (n - 1) + (double)i * (a->to - a->from) * (n - 1) / (out - 1)
                          : 0.5 * (a->from + a->to) * (n - 1);
    }
}

static double
cubic(double x, double a)
{
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
         : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double
nearest(const char *how, double x)
{
    return !strcmp(how, "floor") ? floor(x) : !strcmp(how, "ceil") ? ceil(x)
         : !strcmp(how, "round_prefer_ceil") ? floor(x + 0.5) : ceil(x - 0.5);
}

static int
taps_of(const How *h, const Axis *a)
{
    double by = h->antialias && a->scale < 1 ? a->scale : 1;
    int reach = h->mode == CUBIC ? 2 : 1;
    return h->mode == NEAREST ? 1 : 2 - 2 * ((int)floor(-reach / by) + 1);
}

/* Rows and weights of element i. */
static void
taps_at(const How *h, const Axis *a, int64_t i, int taps, int64_t *at, double *w)
{
    double x = place(h, a, i), by = h->antialias && a->scale < 1 ? a->scale : 1, sum = 0;
    double base = ceil(x) - 1, first = base - taps / 2 + 1;

    if (h->mode == NEAREST)
        first = nearest(h->nearest, x);
    for (int t = 0; t < taps; t++) {
        double row = first + t, far = (row - x) * by;
        w[t] = h->mode == NEAREST ? 1
             : h->mode == LINEAR ? fmax(0, 1 - fabs(far)) : cubic(far, h->a);
        if (h->exclude && (row < 0 || row >= (double)a->n))
            w[t] = 0;
        at[t] = row < 0 ? 0 : row >= (double)a->n ? a->n - 1 : (int64_t)row;
        sum += w[t];
    }
    for (int t = 0; t < taps && sum != 0; t++)
        w[t] /= sum;
}

/* Where every row is one of x's, k times or every k-th: no places are needed. */
static jot_Var
axis_affine(jot_Var x, int axis, const Axis *a, const int64_t *at)
{
    int64_t up = a->n ? a->out / a->n : 0, step = a->out > 1 ? at[1] - at[0] : 1;
    bool repeated = up && up * a->n == a->out, strided = step > 0;

    for (int64_t i = 0; i < a->out; i++) {
        repeated &= up && at[i] == i / up;
        strided &= at[i] == at[0] + i * step;
    }
    return repeated ? jot_repeat_interleave(x, axis, up)
         : strided ? jot_slice_dim(x, axis, at[0], at[0] + (a->out - 1) * step + 1, step)
                   : jot_none();
}

static jot_Var
axis_resize(OnnxCall *c, jot_Var x, int axis, const How *h, const Axis *a)
{
    int taps = taps_of(h, a);
    bool few = a->out <= RESIZE_MOST / taps;
    size_t n = few ? (size_t)a->out * (size_t)taps : 0;
    int64_t *at = onnx_take(&c->b->arena, n + 1, sizeof *at), shape[JOT_MAX_RANK];
    double *w = onnx_take(&c->b->arena, n + 1, sizeof *w);
    jot_Var y;

    if (!few || !at || !w)
        return jot_raise(c->ctx, few ? JOT_EMEM : JOT_ESHAPE, "dimension %d: %lld rows of %d "
                         "places each", axis, (long long)a->out, taps);
    for (int64_t i = 0; i < a->out; i++)
        taps_at(h, a, i, taps, at + i * taps, w + i * taps);
    if (h->mode == NEAREST && (y = axis_affine(x, axis, a, at)).ctx)
        return y;
    jot_Var rows = jot_array(c->ctx, JOT_I64, JOT_SHAPE(a->out, taps), at);
    if (taps == 1)
        return jot_take(x, jot_reshape(rows, JOT_SHAPE(-1)), axis);
    for (int d = 0; d <= jot_rank(x); d++)
        shape[d] = d == axis ? a->out : d == axis + 1 ? taps : 1;
    jot_Var by = jot_cast(jot_array(c->ctx, JOT_F64, jot_ints(jot_rank(x) + 1, shape), w),
                          jot_dtype(x));
    return jot_sum(jot_mul(jot_take(x, rows, axis), by), JOT_DIMS(axis + 1));
}

/* 0 where a crop's row is outside of x (CROP). */
static jot_Var
axis_inside(OnnxCall *c, int axis, int rank, const How *h, const Axis *a)
{
    uint8_t *in = onnx_take(&c->b->arena, (size_t)a->out + 1, 1);
    if (!in)
        return jot_raise(c->ctx, JOT_EMEM, "no memory");
    for (int64_t i = 0; i < a->out; i++) {
        double x = place(h, a, i);
        in[i] = x >= 0 && x <= (double)a->n - 1;
    }
    return onnx_along(jot_array(c->ctx, JOT_BOOL, JOT_SHAPE(a->out), in), axis, rank);
}

/* jot's own: linear in all dimensions of an image behind its channels. */
static jot_Var
resize_linear(jot_Var x, const How *h, const Axis *a)
{
    jot_Resize r = {.mode = JOT_LINEAR, .align_corners = h->where == CORNERS};
    bool fits = h->mode == LINEAR && !h->antialias && !h->exclude && jot_rank(x) >= 3
        && jot_rank(x) <= 5 && onnx_float(jot_dtype(x))
        && (h->where == HALF || h->where == HALF_TORCH || h->where == CORNERS);

    for (int d = 0; d < jot_rank(x) && fits; d++) {
        fits = d < 2 ? a[d].n == a[d].out && a[d].scale == 1
                     : a[d].out > 1 && a[d].out < INT32_MAX
                           && a[d].scale == (double)a[d].out / (double)a[d].n;
        if (d >= 2)
            r.size[d - 2] = (int)a[d].out;
    }
    return fits ? jot_resize(x, &r) : jot_none();
}

static jot_Var
resized(OnnxCall *c, jot_Var x, const How *h, const Axis *a)
{
    jot_Var y = resize_linear(x, h, a), in = jot_none();
    jot_DType dtype = jot_dtype(x);

    if (y.ctx)
        return y;
    y = onnx_float(dtype) || h->mode == NEAREST ? x : jot_cast(x, JOT_F32);
    for (int d = 0; d < jot_rank(x); d++) {
        if (a[d].n == a[d].out && a[d].scale == 1 && h->where != CROP)
            continue;
        if (!a[d].n)
            return jot_raise(c->ctx, JOT_ESHAPE, "dimension %d: an extent above 0 asked", d);
        y = axis_resize(c, y, d, h, &a[d]);
        if (h->where == CROP) {
            jot_Var inside = axis_inside(c, d, jot_rank(x), h, &a[d]);
            in = in.ctx ? jot_logical_and(in, inside) : inside;
        }
    }
    y = in.ctx ? jot_where(in, y, onnx_number(y, h->extrapolation)) : y;
    if (!onnx_float(dtype) && h->mode != NEAREST) {
        bool sign = dtype <= JOT_I64;
        y = jot_clamp(y, sign ? -INFINITY : 0, INFINITY);
    }
    return jot_cast(y, dtype);
}

static bool
resize_how(OnnxCall *c, How *h)
{
    static const struct { const char *name; Where where; } names[] = {
        {"half_pixel", HALF}, {"pytorch_half_pixel", HALF_TORCH},
        {"half_pixel_symmetric", HALF_SYMMETRIC}, {"align_corners", CORNERS},
        {"asymmetric", ASYMMETRIC}, {"tf_crop_and_resize", CROP}
    };
    const char *where = onnx_text(c, "coordinate_transformation_mode",
                                  onnx_version(c) < 11 ? "asymmetric" : "half_pixel");

    h->mode = onnx_is(c, "mode", "cubic") ? CUBIC
            : onnx_is(c, "mode", "linear") || onnx_is(c, "mode", "bilinear") ? LINEAR : NEAREST;
    h->nearest = onnx_text(c, "nearest_mode", onnx_version(c) < 11 ? "floor"
                                                                   : "round_prefer_floor");
    h->a = onnx_f(c, "cubic_coeff_a", -0.75);
    h->extrapolation = onnx_f(c, "extrapolation_value", 0);
    h->antialias = onnx_i(c, "antialias", 0);
    h->exclude = onnx_i(c, "exclude_outside", 0);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(names[k].name, where)) {
            h->where = names[k].where;
            return true;
        }
    return onnx_fail(c, JOT_EUSE, "coordinate_transformation_mode: %s is not supported", where);
}

/* Extents of `sizes`, all by one factor where a policy says so. */
static void
resize_policy(OnnxCall *c, Axis *a, const int64_t *at, int n)
{
    bool larger = onnx_is(c, "keep_aspect_ratio_policy", "not_smaller");
    double by = 0;

    if (!larger && !onnx_is(c, "keep_aspect_ratio_policy", "not_larger"))
        return;
    for (int k = 0; k < n; k++) {
        double s = a[at[k]].scale;
        by = !k || (larger ? s > by : s < by) ? s : by;
    }
    for (int k = 0; k < n; k++) {
        a[at[k]].scale = by;
        a[at[k]].out = (int64_t)floor(by * (double)a[at[k]].n + 0.5);
    }
}

static bool
resize_by(OnnxCall *c, const double *scales, const jot_Ints *sizes, int n, jot_Ints axes)
{
    jot_Var x = c->x[0];
    int rank = jot_rank(x);
    int64_t at[JOT_MAX_RANK];
    Axis a[JOT_MAX_RANK];
    How h = {0};

    for (int d = 0; d < rank; d++) {
        a[d] = (Axis){jot_extent(x, d), jot_extent(x, d), 1, 0, 1};
        at[d] = d;
    }
    if (n != (axes.n ? axes.n : rank))
        return onnx_fail(c, JOT_ESHAPE, "scales or sizes: %d asked, %d found",
                         axes.n ? axes.n : rank, n);
    if (!resize_how(c, &h) || !onnx_axes(c, axes, rank, at))
        return false;
    for (int k = 0; k < n; k++) {
        Axis *to = &a[at[k]];
        to->out = sizes ? sizes->v[k] : (int64_t)floor((double)to->n * scales[k]);
        to->scale = sizes ? (double)to->out / (double)to->n : scales[k];
        if (to->out < 0 || to->out > INT32_MAX || !(to->scale > 0))
            return onnx_fail(c, JOT_ERANGE, "dimension %d: extent %lld to %lld", (int)at[k],
                             (long long)to->n, (long long)to->out);
    }
    if (sizes)
        resize_policy(c, a, at, n);
    if (h.where == CROP) {
        const double *roi = onnx_given(c, 1) ? onnx_read_f64(c, 1) : NULL;
        if (!roi || jot_nelem(c->in[1]->at[1]) != 2 * n)
            return onnx_fail(c, JOT_ESHAPE, "roi: %d numbers asked", 2 * n);
        for (int k = 0; k < n; k++) {
            a[at[k]].from = roi[k];
            a[at[k]].to = roi[n + k];
        }
    }
    return onnx_put(c, 0, resized(c, x, &h, a));
}

bool
onnx_op_resize(OnnxCall *c)
{
    jot_Ints sizes = jot_ints(0, NULL), axes = onnx_ints(c, "axes");
    int by = onnx_version(c) < 11 ? 1 : 2;

    if (onnx_given(c, 3)) {
        if (!onnx_read(c, 3, &sizes))
            return false;
        if (sizes.n)
            return resize_by(c, NULL, &sizes, sizes.n, axes);
    }
    const double *scales = onnx_read_f64(c, by);
    return scales && resize_by(c, scales, NULL, (int)jot_nelem(c->in[by]->at[1]), axes);
}

bool
onnx_op_upsample(OnnxCall *c)
{
    const OnnxAttr *a = onnx_attr(c->s, c->node, "scales");
    double by[JOT_MAX_RANK];

    if (onnx_version(c) >= 9)
        return onnx_op_resize(c);
    if (!a || a->n_floats > JOT_MAX_RANK)
        return onnx_fail(c, JOT_ESHAPE, "scales asked");
    for (size_t k = 0; k < a->n_floats; k++)
        by[k] = (double)a->floats[k];
    return resize_by(c, by, NULL, (int)a->n_floats, jot_ints(0, NULL));
}

/* ---- samples ---- */

bool
onnx_op_affine_grid(OnnxCall *c)
{
    jot_Ints size;
    return onnx_read(c, 1, &size)
        && (size.n >= 4 || onnx_fail(c, JOT_ESHAPE, "size: (n, c, ...) asked"))
        && onnx_put(c, 0, jot_affine_grid(c->x[0], jot_ints(size.n - 2, size.v + 2),
                                          onnx_i(c, "align_corners", 0)));
}

/* A place beyond the ends comes back from them as from a mirror: between low and high. */
static jot_Var
reflected(jot_Var at, double low, double high)
{
    double n = high - low;
    if (n <= 0)
        return jot_scale(at, 0);
    jot_Var by = jot_mod(jot_offset(at, -low), onnx_number(at, 2 * n));
    return jot_offset(jot_minimum(by, jot_offset(jot_neg(by), 2 * n)), low);
}

/* The weight of the row that lies `far` before a place. */
static jot_Var
tap_weight(jot_Var far, bool is_cubic, bool one)
{
    jot_Var x = jot_abs(far);
    if (one)
        return onnx_number(far, 1);
    if (!is_cubic)
        return jot_offset(jot_neg(x), 1);
    jot_Var near = jot_offset(jot_mul(jot_mul(jot_offset(jot_scale(x, 1.25), -2.25), x), x), 1);
    jot_Var away = jot_offset(jot_mul(jot_offset(jot_mul(jot_offset(jot_scale(x, -0.75), 3.75), x),
                                                 -6), x), 3);
    return jot_where(jot_le(x, onnx_number(x, 1)), near, away);
}

/* x (n, c, image...) at grid (n, places, d), by `taps` rows in each dimension. */
static jot_Var
sample_grid(OnnxCall *c, jot_Var x, jot_Var grid, int taps)
{
    bool corners = onnx_i(c, "align_corners", 0), zeros = !onnx_is(c, "padding_mode", "border");
    bool mirror = onnx_is(c, "padding_mode", "reflection");
    int d = jot_rank(x) - 2, all = 1;
    int64_t n = jot_extent(x, 0), ch = jot_extent(x, 1), places = jot_extent(grid, 1);
    jot_Var at[3], flat = jot_reshape(x, JOT_SHAPE(n, ch, -1)), sum = jot_none();

    for (int k = 0; k < d; k++, all *= taps) {
        double e = (double)jot_extent(x, k + 2), low = corners ? 0 : -0.5;
        jot_Var g = jot_select(grid, 2, d - 1 - k);
        at[k] = corners ? jot_scale(jot_offset(g, 1), (e - 1) / 2)
                        : jot_offset(jot_scale(jot_offset(g, 1), e / 2), -0.5);
        if (taps == 4) /* rows are brought inside, the place is not */
            continue;
        if (mirror)
            at[k] = jot_clamp(reflected(at[k], low, e - 1 - low), 0, e - 1);
        else if (!zeros)
            at[k] = jot_clamp(at[k], 0, e - 1);
    }
    for (int t = 0; t < all; t++) {
        jot_Var where = jot_none(), weight = jot_none(), in = jot_none();
        for (int k = 0, rest = t; k < d; k++, rest /= taps) {
            double e = (double)jot_extent(x, k + 2), low = corners ? 0 : -0.5;
            jot_Var row = taps == 1 ? jot_round(at[k])
                                    : jot_offset(jot_floor(at[k]), rest % taps - taps / 2 + 1);
            jot_Var w = tap_weight(jot_sub(at[k], row), taps == 4, taps == 1);
            if (mirror)
                row = jot_clamp(jot_round(reflected(row, low, e - 1 - low)), 0, e - 1);
            else if (!zeros)
                row = jot_clamp(row, 0, e - 1);
            jot_Var inside = jot_logical_and(jot_ge(row, onnx_number(row, 0)),
                                             jot_le(row, onnx_number(row, e - 1)));
            where = k ? jot_add(jot_scale(where, e), row) : row;
            weight = k ? jot_mul(weight, w) : w;
            in = k ? jot_logical_and(in, inside) : inside;
        }
        jot_Var i = jot_where(in, jot_cast(where, JOT_I64),
                              jot_full_int(c->ctx, JOT_I64, JOT_SHAPE(), -1));
        i = jot_broadcast_to(jot_unsqueeze(i, 1), JOT_SHAPE(n, ch, places));
        weight = jot_rank(weight) ? jot_unsqueeze(weight, 1) : weight;
        jot_Var term = jot_mul(jot_take_along(flat, i, 2), weight);
        sum = t ? jot_add(sum, term) : term;
    }
    return sum;
}

bool
onnx_op_grid_sample(OnnxCall *c)
{
    jot_Var x = c->x[0], grid = c->x[1];
    bool is_cubic = onnx_is(c, "mode", "bicubic") || onnx_is(c, "mode", "cubic");
    bool is_nearest = onnx_is(c, "mode", "nearest");
    int64_t shape[JOT_MAX_RANK], places = 1;
    int d = jot_rank(x) - 2;

    if (d < 1 || d > 3 || jot_rank(grid) != jot_rank(x) || jot_extent(grid, -1) != d)
        return onnx_fail(c, JOT_ESHAPE, "x (n, c, ...) and a grid (n, ..., dimensions) asked");
    if (!is_cubic && d > 1 && !onnx_is(c, "padding_mode", "reflection")) {
        jot_GridSample s = {is_nearest ? JOT_NEAREST : JOT_LINEAR,
                            onnx_is(c, "padding_mode", "border"), onnx_i(c, "align_corners", 0)};
        return onnx_put(c, 0, jot_grid_sample(x, grid, &s));
    }
    for (int k = 0; k < d + 2; k++) {
        shape[k] = k < 2 ? jot_extent(x, k) : jot_extent(grid, k - 1);
        places *= k < 2 ? 1 : shape[k];
    }
    grid = jot_reshape(grid, JOT_SHAPE(jot_extent(x, 0), places, d));
    jot_Var y = sample_grid(c, x, grid, is_nearest ? 1 : is_cubic ? 4 : 2);
    return onnx_put(c, 0, onnx_like(jot_reshape(y, jot_ints(d + 2, shape)), x));
}
