/* bench/drawn/draw_nets.c - drawing small networks: recurrent cells over steps, convolutional ones,
 * perceptrons, transformer blocks; inference, or the gradients of a loss. */
#include <stdio.h>
#include "bench/drawn/draw.h"

/* A weight of so many inputs, such that values neither grow nor shrink much. */
static int
weight(Draw *d, const Shape *s, int64_t fan_in)
{
    int scale = 0;

    while (fan_in > 1)
        scale--, fan_in /= 4;
    return draw_input(d, s, scale);
}

static int
weight2(Draw *d, int64_t in, int64_t out)
{
    return weight(d, &(Shape){2, {in, out}}, in);
}

static int
bias(Draw *d, int64_t n)
{
    return draw_input(d, &(Shape){1, {n}}, -2);
}

/* An input whose gradient nobody wants. */
static int
data(Draw *d, Shape s)
{
    int v = draw_input(d, &s, 0);

    d->nparam = 0;
    return v;
}

static void
end_with_loss(Draw *d, int y, int64_t n, int64_t classes)
{
    if (!d->grad) {
        draw_end(d, y, NULL);
        return;
    }
    int labels = draw_step(d, "i64 %lld %lld,0", (long long)n, (long long)classes);
    draw_end(d, draw_step(d, "cross_entropy v%d v%d", y, labels), NULL);
}

void
draw_recurrent(Draw *d)
{
    bool gru = draw_chance(d, 60);
    int steps = (int)draw_between(d, 1, 16), v[6], x[16];
    int64_t n = draw_extent(d, 1, 64), i = draw_extent(d, 8, 256), h = draw_extent(d, 8, 256);
    int64_t g = gru ? 3 : 1;

    while (2.0 * (double)(n * h * g * (i + h)) * steps > d->most)
        n = (n + 1) / 2, i = (i + 1) / 2, h = (h + 1) / 2, steps = (steps + 1) / 2;
    for (int t = 0; t < steps; t++)
        x[t] = data(d, (Shape){2, {n, i}});
    v[1] = data(d, (Shape){2, {n, h}});
    v[2] = weight(d, &(Shape){2, {g * h, i}}, i);
    v[3] = weight(d, &(Shape){2, {g * h, h}}, h);
    v[4] = bias(d, g * h);
    v[5] = bias(d, g * h);
    for (int t = 0; t < steps; t++)
        v[1] = draw_step(d, "%s_cell v%d v%d v%d v%d v%d v%d", gru ? "gru" : "rnn", x[t], v[1],
                         v[2], v[3], v[4], v[5]);
    draw_end(d, v[1], &(Shape){2, {n, h}});
}

void
draw_convnet(Draw *d)
{
    int64_t n = draw_extent(d, 1, 8), c = draw_chance(d, 50) ? 3 : 1, side = draw_extent(d, 12, 48);
    int64_t o = draw_extent(d, 4, 32), classes = draw_extent(d, 2, 100);
    int layers = (int)draw_between(d, 1, 3);

    while ((double)(n * side * side) * (double)(o * o) * 36 > d->most && n * side * o > 30)
        n = (n + 1) / 2, o = (o + 1) / 2, side = side > 12 ? side * 3 / 4 : side;
    int y = data(d, (Shape){4, {n, c, side, side}});
    for (int k = 0; k < layers; k++, o *= 2) {
        int64_t win = draw_chance(d, 70) ? 3 : 5, step = draw_chance(d, 75) ? 1 : 2;
        int w = weight(d, &(Shape){4, {o, c, win, win}}, c * win * win);

        y = draw_step(d, "conv2d v%d v%d %d,%d,%d,%d,1,1,1", y, w, (int)step, (int)step,
                      (int)win / 2, (int)win / 2);
        side = (side - 1) / step + 1;
        if (draw_chance(d, 50)) {
            int a = bias(d, o);
            y = draw_step(d, "batch_norm v%d v%d v%d", y, a, bias(d, o));
        }
        y = draw_step(d, "relu v%d", y);
        if (side > 3 && draw_chance(d, 60)) {
            y = draw_step(d, "%s_pool2d v%d 2,2,2,2,0,0", draw_chance(d, 70) ? "max" : "avg", y);
            side /= 2;
        }
        c = o;
    }
    if (draw_chance(d, 50)) {
        y = draw_step(d, "mean v%d 2,3", y);
        side = 1;
    } else
        y = draw_step(d, "reshape v%d %lld,%lld", y, (long long)n, (long long)(c * side * side));
    int w = weight2(d, c * side * side, classes);
    end_with_loss(d, draw_step(d, "linear v%d v%d v%d", y, w, bias(d, classes)), n, classes);
}

void
draw_mlp(Draw *d)
{
    int64_t n = draw_extent(d, 1, 256), i = draw_extent(d, 4, 1024);
    int64_t classes = draw_extent(d, 2, 100);
    int layers = (int)draw_between(d, 1, 2), y = data(d, (Shape){2, {n, i}});

    for (int k = 0; k < layers; k++) {
        int64_t o = draw_extent(d, 4, 1024);
        while (2.0 * (double)(n * i * o) > d->most && o > 1)
            o /= 2;
        int w = weight2(d, i, o);
        y = draw_step(d, "linear v%d v%d v%d", y, w, bias(d, o));
        y = draw_activation(d, y);
        i = o;
    }
    int w = weight2(d, i, classes);
    end_with_loss(d, draw_step(d, "linear v%d v%d v%d", y, w, bias(d, classes)), n, classes);
}

/* (b, l, e) as heads: (b, h, l, e / h) */
static int
heads(Draw *d, int x, const int64_t *s, int64_t h)
{
    x = draw_step(d, "reshape v%d %lld,%lld,%lld,%lld", x, (long long)s[0], (long long)s[1],
                  (long long)h, (long long)(s[2] / h));
    return draw_step(d, "transpose v%d 0,2,1,3", x);
}

void
draw_block(Draw *d)
{
    int64_t h = 1 << draw_between(d, 0, 2), e = h * 8 * draw_between(d, 1, 8);
    int64_t s[] = {draw_extent(d, 1, 8), 1, e}, *l = &s[1];
    int q[3];

    *l = draw_extent(d, 4, 128);
    while (24.0 * (double)(s[0] * *l) * (double)(e * e) > d->most && s[0] * *l > 4)
        s[0] = (s[0] + 1) / 2, *l = (*l + 1) / 2;
    Shape sx = {3, {s[0], *l, e}};
    int x = data(d, sx), y;
    for (int k = 0; k < 3; k++)
        q[k] = heads(d, draw_step(d, "matmul v%d v%d", x, weight2(d, e, e)), s, h);
    y = draw_step(d, "attention v%d v%d v%d", q[0], q[1], q[2]);
    y = draw_step(d, "reshape v%d %lld,%lld,%lld", draw_step(d, "transpose v%d 0,2,1,3", y),
                  (long long)s[0], (long long)*l, (long long)e);
    y = draw_step(d, "matmul v%d v%d", y, weight2(d, e, e));
    y = draw_step(d, "add v%d v%d", x, y);
    int a = bias(d, e);
    x = draw_step(d, "layer_norm v%d v%d v%d", y, a, bias(d, e));
    int w = weight2(d, e, 4 * e);
    y = draw_step(d, "gelu v%d", draw_step(d, "linear v%d v%d v%d", x, w, bias(d, 4 * e)));
    w = weight2(d, 4 * e, e);
    y = draw_step(d, "add v%d v%d", x, draw_step(d, "linear v%d v%d v%d", y, w, bias(d, e)));
    draw_end(d, y, &sx);
}
