/* bench/drawn/draw.c - drawing a workload: one of some families, its dtype, sizes and parameters.
 *
 * Sizes are drawn first and halved, the largest at a time, until the work is no more than what was
 * drawn for it, so that rows of a microsecond and of ten milliseconds are as likely. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "bench/drawn/draw.h"

static uint64_t
next(Draw *d)
{
    uint64_t x = d->random += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) >> 11;
}

int64_t
draw_between(Draw *d, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(next(d) % (uint64_t)(hi - lo + 1));
}

bool
draw_chance(Draw *d, int percent)
{
    return draw_between(d, 0, 99) < percent;
}

static double
draw_log(Draw *d, double lo, double hi)
{
    return lo * pow(hi / lo, (double)next(d) / 9007199254740992.0);
}

int64_t
draw_extent(Draw *d, int64_t lo, int64_t hi)
{
    int64_t n = (int64_t)draw_log(d, (double)lo, (double)hi + 1), r = draw_between(d, 0, 2), p = 1;

    if (r == 1) {
        while (p * 2 <= n)
            p *= 2;
        n = p;
    } else if (r == 2 && n > 8)
        n = n / 8 * 8;
    return n < lo ? lo : n > hi ? hi : n;
}

int64_t
draw_nelem(const Shape *s)
{
    int64_t n = 1;

    for (int k = 0; k < s->n; k++)
        n *= s->v[k];
    return n;
}

int
draw_step(Draw *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    d->at += sprintf(d->text + d->at, d->text[d->at - 1] == ' ' ? "" : "; ");
    d->at += vsprintf(d->text + d->at, format, args);
    va_end(args);
    return d->made++;
}

static void
put_list(Draw *d, const int64_t *v, int n)
{
    for (int k = 0; k < n; k++)
        d->at += sprintf(d->text + d->at, "%c%lld", k ? ',' : ' ', (long long)v[k]);
}

static int
input(Draw *d, const char *dtype, const Shape *s, int64_t a, int64_t b)
{
    int v = draw_step(d, "%s", dtype);

    put_list(d, s->v, s->n);
    d->at += sprintf(d->text + d->at, " %lld,%lld", (long long)a, (long long)b);
    return v;
}

static bool
is_whole(const Draw *d)
{
    return d->dtype[0] == 'i' || d->dtype[0] == 'u';
}

static int
dtype_number(const char *name)
{
    int k = 0;

    while (strcmp(drawn_ops[k].name, name))
        k++;
    return k;
}

int
draw_input(Draw *d, const Shape *s, int scale)
{
    int v = is_whole(d) ? input(d, d->dtype, s, 100, d->dtype[0] == 'u' ? 0 : -50)
                        : input(d, d->dtype, s, scale, 0);

    if (d->nparam < 6)
        d->param[d->nparam++] = v;
    return v;
}

void
draw_end(Draw *d, int y, const Shape *s)
{
    int sum = y;

    if (d->grad && s && s->n) {
        static const int64_t dims[] = {0, 1, 2, 3, 4, 5};

        sum = draw_step(d, "mul v%d v%d", y, input(d, d->dtype, s, 0, 0));
        sum = draw_step(d, "sum v%d", sum);
        put_list(d, dims, s->n);
    }
    if (d->grad) {
        int n = d->nparam, first = draw_step(d, "grad v%d", sum);

        for (int k = 0; k < n; k++)
            d->at += sprintf(d->text + d->at, " v%d", d->param[k]);
        d->made += n - 1;
        d->at += sprintf(d->text + d->at, "; out v%d", sum);
        for (int k = 0; k < n; k++)
            d->at += sprintf(d->text + d->at, " v%d", first + k);
    } else
        d->at += sprintf(d->text + d->at, "; out v%d", y);
}

int
draw_activation(Draw *d, int y)
{
    static const char *const all[] = {"relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "softplus"};
    return draw_chance(d, 30) ? y : draw_step(d, "%s v%d", all[draw_between(d, 0, 5)], y);
}

/* One operation on y, or else a form would be an output by itself, which PyTorch may give as a
 * view. */
static int
touched(Draw *d, int y)
{
    return is_whole(d) ? draw_step(d, "add v%d v%d", y, y) : draw_step(d, "scale v%d 3", y);
}

/* ---- families ----------------------------------------------------------------------------- */

/* Halves the largest of n extents until the product is at most `most`. */
static void
fit(int64_t **v, int n, double work, double most)
{
    while (work > most) {
        int large = 0;

        for (int k = 1; k < n; k++)
            if (*v[k] > *v[large])
                large = k;
        if (*v[large] <= 1)
            return;
        work *= (double)((*v[large] + 1) / 2) / (double)*v[large];
        *v[large] = (*v[large] + 1) / 2;
    }
}

static Shape
draw_shape(Draw *d, int least, int most_rank)
{
    Shape s = {0, {0}};
    int64_t *p[6];
    double n = 1, all = draw_log(d, 1e3, fmin(d->most / 100, 4e6));

    s.n = (int)draw_between(d, least, most_rank);
    for (int k = 0; k < s.n; k++) {
        s.v[k] = draw_extent(d, 1, (int64_t)pow(all, s.n > 1 ? 2.0 / s.n : 1));
        p[k] = &s.v[k];
        n *= (double)s.v[k];
    }
    fit(p, s.n, n, 2 * all);
    return s;
}

static void
product(Draw *d)
{
    int64_t m = draw_extent(d, 2, 4096), k = draw_extent(d, 2, 4096), n = draw_extent(d, 2, 4096);
    int64_t batch = draw_chance(d, 50) ? 1 : draw_extent(d, 2, 64), *p[] = {&m, &k, &n, &batch};
    bool turned_a = draw_chance(d, 30), turned_b = draw_chance(d, 30), shared = draw_chance(d, 25);
    int a, b, y;

    if (draw_chance(d, 10)) /* a vector */
        *p[2 * draw_between(d, 0, 1)] = 1;
    fit(p, 4, 2.0 * (double)(m * k) * (double)(n * batch), draw_log(d, 1e4, d->most));
    Shape sa = {3, {batch, turned_a ? k : m, turned_a ? m : k}};
    Shape sb = {3, {shared ? 1 : batch, turned_b ? n : k, turned_b ? k : n}};
    Shape sy = {3, {batch, m, n}}, bias = {1, {n}};
    if (batch == 1) {
        sa = (Shape){2, {sa.v[1], sa.v[2]}};
        sb = (Shape){2, {sb.v[1], sb.v[2]}};
        sy = (Shape){2, {m, n}};
    }
    a = draw_input(d, &sa, 0);
    b = draw_input(d, &sb, 0);
    if (turned_a)
        a = draw_step(d, "swap v%d -1,-2", a);
    if (turned_b)
        b = draw_step(d, "swap v%d -1,-2", b);
    y = draw_step(d, "matmul v%d v%d", a, b);
    if (is_whole(d)) /* jot's sums of whole numbers are wider than PyTorch's products */
        y = draw_step(d, "cast v%d %d", y, dtype_number(d->dtype));
    if (!is_whole(d) && draw_chance(d, 50)) {
        if (draw_chance(d, 70))
            y = draw_step(d, "add v%d v%d", y, draw_input(d, &bias, 0));
        y = draw_activation(d, y);
        if (draw_chance(d, 30))
            y = draw_step(d, "add v%d v%d", y, draw_input(d, &sy, 0));
    }
    draw_end(d, y, &sy);
}

static void
convolution(Draw *d)
{
    int64_t groups = draw_chance(d, 60) ? 1 : draw_extent(d, 2, 64);
    bool deep = groups > 1 && draw_chance(d, 50);
    int64_t ci = deep ? 1 : draw_extent(d, 1, 256), co = deep ? draw_between(d, 1, 2)
                                                             : draw_extent(d, 1, 256);
    int64_t n = draw_extent(d, 1, 16), size[2], win[2], st[2], pad[2], dil[2], out[2], *p[6];
    bool square = draw_chance(d, 75);

    for (int k = 0; k < 2; k++) {
        static const int64_t wins[] = {1, 2, 3, 3, 3, 4, 5, 7};
        size[k] = draw_extent(d, 4, 112);
        win[k] = wins[draw_between(d, 0, 7)];
        st[k] = draw_chance(d, 65) ? 1 : draw_between(d, 2, 3);
        dil[k] = draw_chance(d, 80) ? 1 : draw_between(d, 2, 3);
        pad[k] = draw_between(d, 0, (win[k] - 1) * dil[k] / 2);
        if (square && k)
            size[1] = size[0], win[1] = win[0], st[1] = st[0], dil[1] = dil[0], pad[1] = pad[0];
    }
    int64_t *all[] = {&n, &ci, &co, &size[0], &size[1], &groups};
    memcpy(p, all, sizeof p);
    fit(p, 6, 2.0 * (double)(n * groups * ci * co * size[0]) * (double)(size[1] * win[0] * win[1])
        / (double)(st[0] * st[1]), draw_log(d, 1e5, d->most));
    for (int k = 0; k < 2; k++) {
        int64_t reach = (win[k] - 1) * dil[k] + 1;
        size[k] = size[k] + 2 * pad[k] < reach ? reach : size[k];
        out[k] = (size[k] + 2 * pad[k] - reach) / st[k] + 1;
    }
    Shape sx = {4, {n, groups * ci, size[0], size[1]}}, bias = {3, {groups * co, 1, 1}};
    Shape sw = {4, {groups * co, ci, win[0], win[1]}}, sy = {4, {n, groups * co, out[0], out[1]}};
    int x = draw_input(d, &sx, 0), w = draw_input(d, &sw, -2);
    int y = draw_step(d, "conv2d v%d v%d %d,%d,%d,%d,%d,%d,%d", x, w, (int)st[0], (int)st[1],
                      (int)pad[0], (int)pad[1], (int)dil[0], (int)dil[1], (int)groups);
    if (draw_chance(d, 50)) {
        y = draw_step(d, "add v%d v%d", y, draw_input(d, &bias, 0));
        y = draw_activation(d, y);
    }
    draw_end(d, y, &sy);
}

static void
reduction(Draw *d)
{
    static const char *const ops[] = {"sum", "mean", "max", "min"};
    Shape s = draw_shape(d, 1, 5), kept = {0, {0}}, dims = {0, {0}};
    int x = draw_input(d, &s, 0), y = x;

    if (!d->grad && draw_chance(d, 12)) {
        int dim = (int)draw_between(d, 0, s.n - 1);
        draw_end(d, draw_step(d, "argmax v%d %d", x, dim), &s);
        return;
    }
    if (!is_whole(d) && draw_chance(d, 40))
        y = draw_step(d, "%s v%d", draw_chance(d, 50) ? "square" : "exp", y);
    for (int k = 0, must = (int)draw_between(d, 0, s.n - 1); k < s.n; k++)
        if (k == must || draw_chance(d, 40))
            dims.v[dims.n++] = k;
        else
            kept.v[kept.n++] = s.v[k];
    y = draw_step(d, "%s v%d", ops[is_whole(d) ? 2 * draw_between(d, 0, 1) : draw_between(d, 0, 3)],
                  y);
    put_list(d, dims.v, dims.n);
    draw_end(d, y, &kept);
}

static void
norm(Draw *d)
{
    static const char *const one[] = {"softmax", "log_softmax"};
    int kind = (int)draw_between(d, 0, 5), y;
    Shape s = kind < 2 ? draw_shape(d, 4, 4) : draw_shape(d, 2, 4), c = {1, {0}};

    while (kind == 5 && s.n != 4)
        s = draw_shape(d, 4, 4);
    if (kind == 1) /* groups of so many channels */
        s.v[1] = (s.v[1] + 3) / 4 * 4;
    c.v[0] = kind == 2 ? s.v[s.n - 1] : s.v[1];
    int x = draw_input(d, &s, 0);
    if (kind < 3) {
        int a = draw_input(d, &c, 0), b = draw_input(d, &c, 0);
        y = kind == 0 ? draw_step(d, "batch_norm v%d v%d v%d", x, a, b)
            : kind == 1 ? draw_step(d, "group_norm v%d v%d v%d %d", x, a, b,
                                    draw_chance(d, 50) ? 2 : 4)
                        : draw_step(d, "layer_norm v%d v%d v%d", x, a, b);
    } else
        y = kind == 5 ? draw_step(d, "instance_norm v%d", x)
                      : draw_step(d, "%s v%d %d", one[kind - 3], x,
                                  (int)draw_between(d, 0, s.n - 1));
    draw_end(d, draw_activation(d, y), &s);
}

static void
attention(Draw *d)
{
    int64_t b = draw_extent(d, 1, 8), h = draw_extent(d, 1, 16), q = draw_extent(d, 1, 512);
    int64_t k = draw_chance(d, 60) ? q : draw_extent(d, 1, 512), e = draw_extent(d, 8, 128);
    int64_t *p[] = {&b, &h, &q, &k};

    fit(p, 4, 4.0 * (double)(b * h * q) * (double)(k * e), draw_log(d, 1e5, d->most));
    Shape sq = {4, {b, h, q, e}}, sk = {4, {b, h, k, e}};
    int vq = draw_input(d, &sq, 0), vk = draw_input(d, &sk, 0), vv = draw_input(d, &sk, 0);
    draw_end(d, draw_step(d, "attention v%d v%d v%d", vq, vk, vv), &sq);
}

/* A shape that broadcasts to s. */
static Shape
narrower(Draw *d, Shape s)
{
    int drop = draw_chance(d, 30) ? (int)draw_between(d, 0, s.n - 1) : 0;

    for (int k = 0; k < s.n; k++)
        if (draw_chance(d, 35))
            s.v[k] = 1;
    memmove(s.v, s.v + drop, (size_t)(s.n - drop) * sizeof *s.v);
    s.n -= drop;
    return s;
}

/* One more operation on y, perhaps with one of the chain's inputs. */
static int
link(Draw *d, int y, int other, int first)
{
    static const char *const unary[] = {"neg", "abs", "tanh", "sigmoid", "sin", "erf", "relu",
                                        "gelu", "softplus", "square"};
    static const char *const binary[] = {"add", "sub", "mul", "maximum", "minimum"};
    static const char *const above[] = {"sqrt", "rsqrt", "log"}; /* of what lies above a half */
    const char *op = draw_chance(d, 50) ? "scale" : "offset";

    if (draw_chance(d, 8))
        return draw_step(d, "select v%d v%d v%d", draw_step(d, "lt v%d v%d", other, first), y,
                         other);
    if (is_whole(d) || draw_chance(d, 50))
        return draw_step(d, "%s v%d v%d", binary[draw_between(d, 0, 4)], y, other);
    if (draw_chance(d, 10))
        return draw_step(d, "div v%d v%d", y, draw_step(d, "offset v%d 24", other));
    if (draw_chance(d, 20))
        return draw_step(d, "%s v%d %d", op, y, (int)draw_between(d, 1, 12));
    if (!draw_chance(d, 20))
        return draw_step(d, "%s v%d", unary[draw_between(d, 0, 9)], y);
    y = draw_step(d, "offset v%d 4", draw_step(d, "abs v%d", y));
    return draw_step(d, "%s v%d", above[draw_between(d, 0, 2)], y);
}

static void
chain(Draw *d)
{
    Shape s = draw_shape(d, 1, 5);
    int y = draw_input(d, &s, 0), n = (int)draw_between(d, 1, 10), others[4], k = 0;

    for (; k < 4; k++) {
        Shape t = draw_chance(d, 50) ? s : narrower(d, s);
        if (k && draw_chance(d, 50))
            break;
        others[k] = draw_input(d, &t, 0);
    }
    y = draw_step(d, "mul v%d v%d", y, others[0]);
    for (int i = 0; i < n; i++)
        y = link(d, y, others[draw_between(d, 0, k - 1)], others[0]);
    for (int i = 1; i < k; i++) /* each is used */
        y = draw_step(d, "add v%d v%d", y, others[i]);
    draw_end(d, y, &s);
}

static void
permutation(Draw *d)
{
    Shape s = draw_shape(d, 2, 5), order = s, t = s;
    int y = draw_input(d, &s, 0);

    for (int k = 0; k < s.n; k++)
        order.v[k] = k;
    for (int k = s.n - 1; k > 0; k--) {
        int j = (int)draw_between(d, 0, k);
        int64_t o = order.v[k];
        order.v[k] = order.v[j];
        order.v[j] = o;
    }
    for (int k = 0; k < s.n; k++)
        t.v[k] = s.v[order.v[k]];
    y = draw_step(d, "transpose v%d", y);
    put_list(d, order.v, s.n);
    y = draw_chance(d, 60) ? draw_step(d, "add v%d v%d", y, draw_input(d, &t, 0))
                           : touched(d, y);
    draw_end(d, y, &t);
}

/* x of shape t, or every second of its middle, padded, turned round; t becomes its shape. */
static int
reshaped(Draw *d, int x, Shape *t, int dim)
{
    int64_t r = draw_between(d, 0, 9);
    Shape none = {t->n, {0}}, one = {t->n, {1, 1, 1, 1}}, to = *t;

    if (r < 3 && t->v[dim] > 2) {
        none.v[dim] = 1;
        one.v[dim] = 2;
        x = draw_step(d, "slice v%d", x);
        put_list(d, none.v, t->n), put_list(d, to.v, t->n), put_list(d, one.v, t->n);
        t->v[dim] /= 2;
    } else if (r == 3) {
        none.v[dim] = draw_between(d, 0, 3);
        x = draw_step(d, "pad v%d", x);
        put_list(d, none.v, t->n), put_list(d, none.v, t->n);
        t->v[dim] += 2 * none.v[dim];
    } else if (r == 4) {
        x = draw_step(d, "flip v%d %d", x, (int)draw_between(d, 0, t->n - 1));
    } else if (r < 7)
        x = touched(d, x);
    return x;
}

static void
joint(Draw *d)
{
    Shape s = draw_shape(d, 1, 4), sum = s;
    int dim = (int)draw_between(d, 0, s.n - 1), n = (int)draw_between(d, 2, 5), v[5], y;

    sum.v[dim] = 0;
    for (int k = 0; k < n; k++) {
        Shape t = s;
        t.v[dim] = draw_chance(d, 50) ? s.v[dim] : draw_extent(d, 1, s.v[dim]);
        v[k] = draw_input(d, &t, 0);
        v[k] = reshaped(d, v[k], &t, dim);
        sum.v[dim] += t.v[dim];
    }
    y = draw_step(d, "concat");
    for (int k = 0; k < n; k++)
        d->at += sprintf(d->text + d->at, " v%d", v[k]);
    d->at += sprintf(d->text + d->at, " %d", dim);
    draw_end(d, draw_chance(d, 50) ? y : touched(d, y), &sum);
}

static void
gathering(Draw *d)
{
    Shape s = draw_shape(d, 2, 3), at = {1, {draw_extent(d, 1, 4096)}}, t = s;
    int dim = draw_chance(d, 70) ? 0 : (int)draw_between(d, 0, s.n - 1), x, i;
    int64_t *p[] = {&at.v[0]};

    fit(p, 1, (double)draw_nelem(&s) / (double)s.v[dim] * (double)at.v[0], fmin(4e6, d->most));
    t.v[dim] = at.v[0];
    x = draw_input(d, &s, 0);
    i = input(d, draw_chance(d, 50) ? "i64" : "i32", &at, s.v[dim], 0);
    int y = draw_step(d, "gather v%d v%d %d", x, i, dim);
    draw_end(d, draw_chance(d, 50) ? y : touched(d, y), &t);
}

/* ---- a line ------------------------------------------------------------------------------- */

enum { HALF = 1, WHOLE = 2 };
static const struct {
    const char *name;
    void (*draw)(Draw *d);
    int weight, dtypes, grads;
} family[] = {
    {"product", product, 20, HALF | WHOLE, 25},
    {"conv", convolution, 20, HALF, 35},
    {"reduce", reduction, 10, HALF | WHOLE, 15},
    {"norm", norm, 12, HALF, 40},
    {"attention", attention, 6, HALF, 30},
    {"chain", chain, 10, HALF | WHOLE, 30},
    {"permute", permutation, 6, HALF | WHOLE, 0},
    {"concat", joint, 5, HALF | WHOLE, 20},
    {"gather", gathering, 5, HALF | WHOLE, 30},
    {"rnn", draw_recurrent, 6, 0, 50},
    {"convnet", draw_convnet, 6, 0, 50},
    {"mlp", draw_mlp, 5, 0, 60},
    {"block", draw_block, 4, 0, 50},
};
enum { FAMILIES = sizeof family / sizeof *family };

static const char *
draw_dtype(Draw *d, int dtypes)
{
    static const char *const whole[] = {"i32", "i64", "i8", "u8", "i16"};
    int64_t r = draw_between(d, 0, 99);

    return r < 10 ? "f64"
           : r < 20 && dtypes & HALF ? "bf16"
           : r < 24 && dtypes & HALF ? "f16"
           : r < 32 && dtypes & WHOLE ? whole[draw_between(d, 0, 4)] : "f32";
}

void
drawn_line(uint64_t seed, int k, double most, char *line)
{
    Draw d = {.random = seed << 32 | (uint64_t)k, .most = most, .text = line};
    int all = 0, f = 0;

    for (int i = 0; i < FAMILIES; i++)
        all += family[i].weight;
    for (int64_t r = draw_between(&d, 0, all - 1); r >= family[f].weight; f++)
        r -= family[f].weight;
    d.dtype = draw_dtype(&d, family[f].dtypes);
    d.grad = (d.dtype[0] == 'f' && d.dtype[1] != '1') && draw_chance(&d, family[f].grads);
    d.at = sprintf(line, "drawn_%llu_%d_%s%s ", (unsigned long long)seed, k, family[f].name,
                   d.grad ? "_grad" : "");
    family[f].draw(&d);
}
