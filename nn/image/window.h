/* nn/image/window.h - windows over images, which convolutions, pools and patches share: their
 * extents and checks, and index expressions being written.
 *
 * An image is (n, c, ...) with 1 to 3 dimensions behind its channels; d counts these from 0. A
 * window's position i and place k in it are one of the image's: i * stride + k * dilation - pad.
 *
 * Read before: nn/parts.h. After: nn/conv.c. */
#ifndef JOT_NN_WINDOW_H
#define JOT_NN_WINDOW_H
#include "nn/parts.h"

enum { NN_IMAGE_DIMS = 3 };

/* Index expressions, one per dimension of what is read or added to. */
typedef struct { const char *v[JOT_MAX_RANK]; int n, used; char s[4096]; } NnMap;

/* The next one: each # of the form is the next number. What has no room is no expression. */
static inline void
nn_index(NnMap *m, const char *form, jot_Ints numbers)
{
    int at = m->used, next = 0, room = (int)sizeof m->s - 24;
    for (; *form && at < room; form++)
        if (*form == '#')
            at = (int)(nn_put_int(m->s + at, numbers.v[next++]) - m->s);
        else
            m->s[at++] = *form;
    m->s[at++] = 0;
    m->v[m->n++] = *form ? "" : m->s + m->used;
    m->used = at;
}

static inline void
nn_map_begin(NnMap *m)
{
    m->n = m->used = 0;
}

/* Axis `at` as it is. */
static inline void
nn_axis_at(NnMap *m, int at)
{
    m->v[m->n++] = nn_axis[at];
}

static inline jot_Strs
nn_map(const NnMap *m)
{
    return jot_strs(m->n, m->v);
}

static inline int64_t
nn_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t c = a % b;
        a = b;
        b = c;
    }
    return a;
}

/* *v = a * b + c, none of which is negative: extents, of which two and their sum are numbers. */
static inline bool
nn_extent(jot_Var x, int64_t *v, int64_t a, int64_t b, int64_t c, const char *op)
{
    const int64_t most = (int64_t)1 << 61;
    bool fits = c <= most && (!b || a <= (most - c) / b);
    if (fits)
        *v = a * b + c;
    else
        jot_raise(x.ctx, JOT_ESHAPE, "%s: extents of at most 2^61 asked, %lld * %lld + %lld found",
                  op, (long long)a, (long long)b, (long long)c);
    return fits;
}

/* An image; *dims is how many dimensions it has behind its channels. */
static inline bool
nn_image(jot_Ctx *ctx, jot_Var x, const char *op, int *dims)
{
    if (!jot_check(ctx, x, op, "x"))
        return false;
    *dims = jot_rank(x) - 2;
    if (*dims < 1 || *dims > NN_IMAGE_DIMS)
        jot_raise(ctx, JOT_ESHAPE, "%s: x: rank 3 to 5 (n, c, ...) asked, %d found", op,
                  jot_rank(x));
    return *dims >= 1 && *dims <= NN_IMAGE_DIMS;
}

/* One number of at least `least` per dimension of the image. */
static inline bool
nn_extents_ok(jot_Var x, jot_Ints list, int dims, int64_t least, const char *op, const char *arg)
{
    if (list.n != dims)
        return jot_raise(x.ctx, JOT_ESHAPE, "%s: %s: %d numbers asked (x has rank %d), %d found",
                         op, arg, dims, dims + 2, list.n), false;
    if (!nn_list(x.ctx, list.n, list.v != NULL, op, arg))
        return false;
    for (int d = 0; d < dims; d++)
        if (!nn_least(x.ctx, (double)list.v[d], least, op, arg))
            return false;
    return true;
}

/* (first, second, behind[0], ..) into ext; behind NULL: x's own. Its rank. */
static inline int
nn_shape(int64_t *ext, jot_Var x, int64_t first, int64_t second, int dims, const int64_t *behind)
{
    ext[0] = first;
    ext[1] = second;
    for (int d = 0; d < dims; d++)
        ext[2 + d] = behind ? behind[d] : jot_extent(x, 2 + d);
    return 2 + dims;
}

/* One image dimension: its extent, the window's, and how the window moves. `after` is the padding
 * at its end; out, the number of windows, is what nn_window finds. */
typedef struct { int64_t in, size, stride, pad, after, dilation, out; } NnWindow;

/* A window that can be one; *reach is from its first place to behind its last. */
static inline bool
nn_reach(jot_Var x, const NnWindow *w, int64_t *reach, const char *op)
{
    return nn_least(x.ctx, (double)w->size, 1, op, "window") &&
           nn_least(x.ctx, (double)w->stride, 1, op, "stride") &&
           nn_least(x.ctx, (double)w->pad, 0, op, "pad") &&
           nn_least(x.ctx, (double)w->dilation, 1, op, "dilation") &&
           nn_extent(x, reach, w->size - 1, w->dilation, 1, op);
}

/* up: a last window counts that begins in the image or before it, and reaches beyond the end. */
static inline bool
nn_window(jot_Var x, NnWindow *w, bool up, const char *op)
{
    int64_t reach, room;
    if (!nn_reach(x, w, &reach, op) || !nn_extent(x, &room, w->in, 1, w->pad + w->after, op))
        return false;
    room -= reach;
    if (room < 0) {
        jot_raise(x.ctx, JOT_ESHAPE,
                  "%s: window: at most %lld asked (image %lld, padded by %lld), %lld found", op,
                  (long long)(w->in + w->pad + w->after), (long long)w->in, (long long)w->pad,
                  (long long)reach);
        return false;
    }
    w->out = room / w->stride + 1;
    if (up && room % w->stride && w->out * w->stride < w->in + w->pad)
        w->out++;
    return true;
}

/* Where the window at axis `at` has its place of axis `in`. */
static inline void
nn_window_index(NnMap *m, const NnWindow *w, int at, int in)
{
    nn_index(m, "i#*#+i#*#-#", JOT_SHAPE(at, w->stride, in, w->dilation, w->pad));
}

#endif
