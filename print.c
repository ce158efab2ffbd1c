/* print.c - a tensor as text, as NumPy prints it.
 *
 *     f32 (2, 3)
 *     [[ 1.   2.5  3. ]
 *      [-1.   0.   0.1]]
 *
 * Three walks over the elements that are shown: the form that fits all of them, the width of the
 * widest, the text. Floats are decimal, or with powers of ten where one is 1e8 or more, or less
 * than 1e-4 or a thousandth of another. A number has the digits behind its point, at most
 * SHOW_PLACES, after which it reads back as itself in its dtype, or has no more within those.
 *
 * Read before: core.h ("seeing"), base.h (Text). After: ops/text.c. */
#include "ops/graph.h"

enum { SHOW_PLACES = 8, SHOW_EDGE = 3, SHOW_WHOLE = 1000, SHOW_COLUMNS = 75 };

typedef struct Show Show;
typedef void ShowVisit(Show *p, int64_t at);
struct Show {
    const char *data;
    jot_DType dtype;
    jot_Ints shape;
    ShowVisit *visit;
    bool cut;             /* the middle of long dimensions is not shown */
    bool power;           /* with powers of ten */
    double most, least;   /* magnitudes of finite numbers but 0 */
    int places, width;    /* digits behind the point; of a number */
    size_t line;          /* where the line begins in text */
    Text text;
};

static jot_Scalar
show_scalar(const Show *p, int64_t at)
{
    return jot_scalar_read(p->data + (size_t)at * jot_dtype_nbytes(p->dtype), p->dtype);
}

static bool
show_finite(double x)
{
    return x - x == 0;
}

/* ---- one number --------------------------------------------------------------------------- */

static double
show_times_ten(double x, int n)
{
    for (; n >= 16; n -= 16)
        x *= 1e16;
    for (; n <= -16; n += 16)
        x /= 1e16;
    for (; n > 0; n--)
        x *= 10;
    for (; n < 0; n++)
        x /= 10;
    return x;
}

/* x > 0 as a mantissa from 1 to 10 and a power of ten; 0 has the power 0. */
static double
show_split(double x, int *power)
{
    double m = x;

    *power = 0;
    if (x == 0)
        return 0;
    for (; m >= 1e16; *power += 16)
        m /= 1e16;
    for (; m < 1e-15; *power -= 16)
        m *= 1e16;
    for (; m >= 10; *power += 1)
        m /= 10;
    for (; m < 1; *power -= 1)
        m *= 10;
    return m;
}

static uint64_t
show_rounded(double x, int places)
{
    return (uint64_t)(show_times_ten(x, places) + 0.5);
}

/* The digits that x, not negative, needs behind its point. */
static int
show_places(const Show *p, double x)
{
    int power = 0, k;
    double m = p->power ? show_split(x, &power) : x;
    uint64_t all = show_rounded(m, SHOW_PLACES), r, scale = 100000000;

    for (k = 0; k < SHOW_PLACES; k++, scale /= 10) {
        r = show_rounded(m, k);
        if (r * scale == all
            || jot_scalar_from_f64(show_times_ten((double)r, power - k), p->dtype).f == x)
            return k;
    }
    return SHOW_PLACES;
}

/* v without its trailing zeros behind the point, but for their room. */
static void
show_decimal(const Show *p, Text *t, double x)
{
    uint64_t v = show_rounded(x, p->places), scale = show_rounded(1, p->places);
    int zeros = 0;

    jot_text_f(t, "%llu.", (unsigned long long)(v / scale));
    for (v %= scale; zeros < p->places && v % 10 == 0; zeros++, v /= 10)
        ;
    if (zeros < p->places)
        jot_text_f(t, "%0*llu", p->places - zeros, (unsigned long long)v);
    jot_text_f(t, "%*s", zeros, "");
}

static void
show_power(const Show *p, Text *t, double x)
{
    int power;
    double m = show_split(x, &power);
    uint64_t v = show_rounded(m, p->places), scale = show_rounded(1, p->places);

    if (v >= 10 * scale) { /* 9.99 became 10 */
        v /= 10;
        power++;
    }
    jot_text_f(t, "%llu.", (unsigned long long)(v / scale));
    if (p->places)
        jot_text_f(t, "%0*llu", p->places, (unsigned long long)(v % scale));
    jot_text_f(t, "e%c%02d", power < 0 ? '-' : '+', power < 0 ? -power : power);
}

static void
show_element(const Show *p, Text *t, int64_t at)
{
    jot_Scalar v = show_scalar(p, at);
    uint64_t sign;

    if (p->dtype == JOT_BOOL) {
        jot_text_f(t, "%s", v.u ? "true" : "false");
    } else if (jot_dtype_class(p->dtype) != CLASS_FLOAT) {
        if (jot_dtype_signed(p->dtype))
            jot_text_f(t, "%lld", (long long)v.i);
        else
            jot_text_f(t, "%llu", (unsigned long long)v.u);
    } else if (v.f != v.f) {
        jot_text_f(t, "nan");
    } else {
        memcpy(&sign, &v.f, sizeof sign);
        jot_text_f(t, sign >> 63 ? "-" : "");
        v.f = v.f < 0 ? -v.f : v.f == 0 ? 0 : v.f;
        if (!show_finite(v.f))
            jot_text_f(t, "inf");
        else
            (p->power ? show_power : show_decimal)(p, t, v.f);
    }
}

/* ---- what is shown ------------------------------------------------------------------------ */

static void
show_range(Show *p, int64_t at)
{
    double x = show_scalar(p, at).f;

    x = x < 0 ? -x : x;
    if (!show_finite(x) || x == 0)
        return;
    p->most = x > p->most ? x : p->most;
    p->least = x < p->least || p->least == 0 ? x : p->least;
}

static void
show_need(Show *p, int64_t at)
{
    double x = show_scalar(p, at).f;
    int k = show_finite(x) ? show_places(p, x < 0 ? -x : x) : 0;

    p->places = k > p->places ? k : p->places;
}

static void
show_wide(Show *p, int64_t at)
{
    char buf[48];
    Text t = {NULL, buf, 0, sizeof buf};

    show_element(p, &t, at);
    p->width = (int)t.n > p->width ? (int)t.n : p->width;
}

static void
show_put(Show *p, int64_t at)
{
    char buf[48];
    Text t = {NULL, buf, 0, sizeof buf};

    show_element(p, &t, at);
    jot_text_f(&p->text, "%*s", p->width, buf);
}

/* Between two parts of dimension dim: a space or a new line, blank lines between matrices. */
static void
show_between(Show *p, int dim)
{
    int rank = p->shape.n, k;

    if (dim == rank - 1 && (int)(p->text.n - p->line) + 1 + p->width <= SHOW_COLUMNS) {
        jot_text_f(&p->text, " ");
        return;
    }
    for (k = dim; k < rank - (dim < rank - 1); k++)
        jot_text_f(&p->text, "\n");
    p->line = p->text.n;
    jot_text_f(&p->text, "%*s", dim + 1, "");
}

static void
show_walk(Show *p, int dim, int64_t at)
{
    bool puts = p->visit == show_put;
    int64_t n, k;

    if (dim == p->shape.n) {
        p->visit(p, at);
        return;
    }
    n = p->shape.v[dim];
    jot_text_f(&p->text, puts ? "[" : "");
    for (k = 0; k < n; k++) {
        if (k && puts)
            show_between(p, dim);
        if (p->cut && n > 2 * SHOW_EDGE && k == SHOW_EDGE) {
            k = n - SHOW_EDGE;
            jot_text_f(&p->text, puts ? "..." : "");
            if (puts)
                show_between(p, dim);
        }
        show_walk(p, dim + 1, at * n + k);
    }
    jot_text_f(&p->text, puts ? "]" : "");
}

static void
show_all(Show *p, ShowVisit *visit)
{
    p->visit = visit;
    show_walk(p, 0, 0);
}

/* The text of v in p->text. */
static bool
show_begin(Show *p, jot_Var v, const char *op)
{
    NodeId id = jot_node_of(v, op, "v");
    char shape[SHAPE_TEXT];

    if (!id || !(p->data = jot_data(v)))
        return false;
    p->dtype = jot_dtype(v);
    p->shape = jot_shape(v);
    p->cut = jot_nelem(v) > SHOW_WHOLE;
    p->text.mem = &v.ctx->mem;
    if (jot_dtype_class(p->dtype) == CLASS_FLOAT && jot_nelem(v)) {
        show_all(p, show_range);
        p->power = p->most >= 1e8
                || (p->most > 0 && (p->least < 1e-4 || p->most / p->least > 1000));
        show_all(p, show_need);
    }
    if (jot_nelem(v))
        show_all(p, show_wide);
    jot_text_f(&p->text, "%s %s\n", jot_dtype_name(p->dtype),
               jot_shape_str(shape, p->shape.n, p->shape.v));
    p->line = p->text.n;
    if (jot_nelem(v))
        show_all(p, show_put);
    else
        jot_text_f(&p->text, "[]");
    jot_text_f(&p->text, "\n");
    return !v.ctx->mem.failed || jot_fail_memory(v.ctx, op);
}

bool
jot_print(jot_Var v)
{
    Show p = {0};
    bool ok = show_begin(&p, v, "print");

    if (ok && v.ctx->mem.hooks.log)
        v.ctx->mem.hooks.log(v.ctx->mem.hooks.ud, p.text.s, p.text.n);
    if (p.text.mem)
        jot_text_free(&p.text);
    return ok;
}

size_t
jot_format(jot_Var v, char *to, size_t nbytes)
{
    Show p = {0};
    size_t n = show_begin(&p, v, "format") ? p.text.n : 0, kept = n < nbytes ? n : nbytes - 1;

    if (nbytes && n)
        memcpy(to, p.text.s, kept);
    if (nbytes)
        to[n ? kept : 0] = 0;
    if (p.text.mem)
        jot_text_free(&p.text);
    return n;
}
