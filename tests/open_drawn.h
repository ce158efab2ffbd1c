/* tests/open_drawn.h - drawn programs with open extents: steps, and how a program is drawn, by
 * building it for three sizes at once; a step that one of them refuses is drawn again. */
#ifndef JOT_TEST_OPEN_DRAWN_H
#define JOT_TEST_OPEN_DRAWN_H
#include "nn.h"
#include "tests/test.h"

enum { LEAVES = 6, STEPS = 14, VALUES = LEAVES + STEPS, OUTS = 3, RANK = 4, BYTES = 1 << 20 };
typedef enum {
    UNARY, UNARY_2, BINARY, BINARY_2, BINARY_3, MATMUL, MATMUL_2, CONV, CONV_2, POOL, SOFTMAX, NORM,
    REDUCE, REDUCE_2, ARGMAX, CUMSUM, CONCAT, SLICE, PAD, FLIP, SWAP, MERGE, SPLIT, TAKE, ONE_HOT,
    CAST, DROPOUT, UNIFORM, IOTA, SCALED, TILE, UNSQUEEZE, STACK, GRAD, SORT, WINDOW, KINDS
} Kind;
static const char *const kinds[KINDS] = {
    "unary", "unary", "binary", "binary", "binary", "matmul", "matmul", "conv", "conv", "pool",
    "softmax", "norm", "reduce", "reduce", "argmax", "cumsum", "concat", "slice", "pad", "flip",
    "swap", "merge", "split", "take", "one_hot", "cast", "dropout", "uniform", "iota", "scaled",
    "tile", "unsqueeze", "stack", "grad", "sort", "window"};
typedef struct { Kind kind; int a, b, p[6]; } Step;
/* dim: an extent, or -1 - k: the open one k. */
typedef struct { jot_DType dtype; int rank, dim[RANK]; } Leaf;
typedef struct {
    uint64_t rng;
    int nextents, ninputs, nleaves, nsteps, nouts, out[OUTS], update;
    jot_Extent extent[3];
    Leaf leaf[LEAVES];         /* inputs, then parameters */
    Step step[STEPS];
    bool exact[VALUES], live[VALUES], half;
    jot_Var param[2][LEAVES];  /* of the contexts */
    const void *data[LEAVES];  /* of inputs; NULL: places for them */
    int on;
    int64_t seed;
} Program;

static void
quiet(void *ud, const char *text, size_t nbytes)
{
    (void)ud, (void)text, (void)nbytes;
}

static int
draw(Program *p, int n)
{
    p->rng = p->rng * 6364136223846793005u + 1442695040888963407u;
    return (int)((p->rng >> 33) % (uint64_t)n);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static jot_Var
unary(const Step *s, jot_Var a)
{
    switch (s->p[0] % 9) {
    case 0: return jot_tanh(a);
    case 1: return jot_relu(a);
    case 2: return jot_neg(a);
    case 3: return jot_abs(a);
    case 4: return jot_sigmoid(a);
    case 5: return jot_exp(jot_neg(jot_abs(a)));
    case 6: return jot_clamp(a, -1, 1);
    case 7: return jot_gelu(a);
    default: return jot_stop_fuse(a);
    }
}

static jot_Var
binary(const Step *s, jot_Var a, jot_Var b)
{
    switch (s->p[0] % 7) {
    case 0: return jot_sub(a, b);
    case 1: return jot_mul(a, b);
    case 2: return jot_maximum(a, b);
    case 3: return jot_div(a, jot_offset(jot_abs(b), 1));
    case 4: return jot_where(jot_lt(a, b), a, jot_scale(b, 2));
    default: return jot_add(a, b);
    }
}

static jot_Var
matmul(const Step *s, jot_Var a, jot_Var b)
{
    if (jot_rank(a) < 1 || jot_rank(b) < 1)
        return jot_raise(a.ctx, JOT_ESHAPE, "none");
    a = s->p[0] % 2 && jot_rank(a) > 1 ? jot_swap(a, -1, -2) : a;
    return jot_matmul(a, s->p[1] % 2 && jot_rank(b) > 1 ? jot_swap(b, -1, -2) : b);
}

static jot_Var
convolved(const Step *s, jot_Var a, jot_Var b)
{
    jot_Conv how = {.pad = {s->p[0] % 3, s->p[1] % 3}, .stride = {s->p[2] % 4 % 3, s->p[3] % 4 % 3},
                    .dilation = {s->p[4] % 4 == 3 ? 2 : 1, s->p[5] % 4 == 3 ? 2 : 1}};

    return jot_conv2d(a, b, &how);
}

static jot_Var
pooled(const Step *s, jot_Var a)
{
    jot_Pool how = {.size = {1 + s->p[0] % 3, 1 + s->p[1] % 3},
                    .stride = {s->p[2] % 3, s->p[3] % 3}};

    how.pad[0] = s->p[4] % 2 ? how.size[0] / 2 : 0;
    how.pad[1] = s->p[4] % 3 ? how.size[1] / 2 : 0;
    return s->p[5] % 2 ? jot_max_pool2d(a, &how) : jot_avg_pool2d(a, &how);
}

static jot_Var
reduced(const Step *s, jot_Var a, int dim)
{
    int64_t dims[2] = {dim, (dim + 1) % (jot_rank(a) > 0 ? jot_rank(a) : 1)};
    jot_Dims over = jot_dims(s->p[1] % 4 == 3 && dims[1] != dim ? 2 : 1, dims, s->p[2] % 2);

    switch (s->p[3] % 6) {
    case 0: return jot_sum(a, over);
    case 1: return jot_max(a, over);
    case 2: return jot_min(a, over);
    case 3: return jot_variance(a, over);
    case 4: return jot_scale(jot_sum(a, over), .125);
    default: return jot_mean(a, over);
    }
}

static jot_Var
normed(const Step *s, jot_Var a, int dim)
{
    int64_t n = jot_extent(a, -1), d = dim;
    jot_Var m = jot_mean(a, jot_dims(1, &d, true));
    jot_DType dtype = jot_dtype(a);

    if (s->p[1] % 2)
        return jot_layer_norm(a, jot_full(a.ctx, dtype, JOT_SHAPE(n), .5),
                              jot_zeros(a.ctx, dtype, JOT_SHAPE(n)), .01);
    m = jot_sub(a, m);
    return jot_div(m, jot_sqrt(jot_offset(jot_mean(jot_mul(m, m), jot_dims(1, &d, true)), .01)));
}

static jot_Var
padded(const Step *s, jot_Var a, int dim)
{
    int64_t before[16] = {0}, after[16] = {0};

    before[dim] = s->p[1] % 4;
    after[dim] = s->p[2] % 5 - 1;
    return jot_pad(a, jot_ints(jot_rank(a), before), jot_ints(jot_rank(a), after), .5);
}

static jot_Var
reshaped(const Step *s, jot_Var a, int dim)
{
    int64_t shape[17], by = 2 + s->p[1] % 4;
    int rank = jot_rank(a), d, n = 0;
    bool merge = s->kind == MERGE;

    for (d = 0; d < rank; d++) {
        int64_t n0 = jot_extent(a, d);

        if (merge && d == dim && d + 1 < rank) {
            shape[n++] = n0 * jot_extent(a, ++d);
        } else if (!merge && d == dim) {
            shape[n++] = s->p[2] % 2 ? by : n0 / by;
            shape[n++] = s->p[2] % 2 ? n0 / by : by;
        } else {
            shape[n++] = n0;
        }
    }
    return jot_reshape(a, jot_ints(n, shape));
}

static jot_Var
scaled(const Program *p, const Step *s, jot_Var a, const int64_t *e)
{
    double n = (double)e[s->p[0] % p->nextents];

    switch (s->p[1] % 8) {
    case 0: return jot_scale(a, 1 / n);
    case 1: return jot_scale(a, n / 64);
    case 2: return jot_offset(a, n);
    case 3: return jot_scale(a, 1 / sqrt(n));
    case 4: return jot_scale(a, 2 / n);
    case 5: return jot_offset(a, (double)(e[s->p[0] % p->nextents] % 2));
    case 6: return jot_offset(a, n * n);
    default: return jot_clamp(a, -1, n / 16);
    }
}

static jot_Var
gradient(jot_Var a, jot_Var b)
{
    jot_Var g = jot_none();

    jot_grad(jot_sum(jot_square(jot_tanh(a)), JOT_ALL_DIMS), JOT_VARS(b), &g);
    return g;
}

static jot_Var
generated(const Step *s, jot_Var a)
{
    jot_Ints shape = jot_shape(a);

    if (s->kind == UNIFORM)
        return jot_uniform(a.ctx, JOT_F32, shape);
    return jot_iota(a.ctx, s->p[1] % 2 ? JOT_I32 : JOT_F32, shape, s->p[0] % jot_rank(a));
}

static jot_Var
windowed(const Step *s, jot_Var a, int dim)
{
    static const char *const index[4][RANK] = {
        {"i0/2", "i1", "i2", "i3"}, {"xs0-1-i0", "i1", "i2", "i3"},
        {"i0", "ys1-1-i1", "i2", "i3"}, {"(i0*3+1)%xs0", "i1", "i2", "i3"}};

    (void)dim;
    return jot_reindex(a, jot_shape(a), (jot_Strs){jot_rank(a), index[s->p[1] % 4]});
}

static jot_Var
apply(const Program *p, const Step *s, const jot_Var *v, const int64_t *e)
{
    static const jot_DType types[] = {JOT_F32, JOT_F64, JOT_F16, JOT_I32, JOT_F32};
    static const int64_t bounds[][3] = {{1, JOT_END, 1}, {0, -1, 1}, {0, JOT_END, 2}, {0, 3, 1},
                                        {JOT_END, JOT_END, -1}, {2, -1, 1}, {1, JOT_END, 3},
                                        {-3, JOT_END, 1}};
    const int64_t *bound = bounds[s->p[1] % 8];
    jot_Var a = v[s->a], b = v[s->b];
    int rank = jot_rank(a), dim = rank > 0 ? s->p[0] % rank : 0;
    int64_t one[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, d = dim;

    if (rank < 1)
        return jot_raise(a.ctx, JOT_ESHAPE, "none");
    switch (s->kind) {
    case UNARY: case UNARY_2: return unary(s, a);
    case BINARY: case BINARY_2: case BINARY_3: return binary(s, a, b);
    case MATMUL: case MATMUL_2: return matmul(s, a, b);
    case CONV: case CONV_2: return convolved(s, a, b);
    case POOL: return pooled(s, a);
    case SOFTMAX: return jot_softmax(a, dim);
    case NORM: return normed(s, a, dim);
    case REDUCE: case REDUCE_2: return reduced(s, a, dim);
    case ARGMAX: return jot_argmax(a, jot_dims(1, &d, s->p[1] % 2));
    case CUMSUM: return jot_cumsum(a, dim);
    case CONCAT: return jot_concat(s->p[1] % 3 ? JOT_VARS(a, b) : JOT_VARS(a, b, a), dim);
    case SLICE: return jot_slice_dim(a, dim, bound[0], bound[1], bound[2]);
    case PAD: return padded(s, a, dim);
    case FLIP: return jot_flip(a, jot_ints(1, &d));
    case SWAP: return jot_swap(a, dim, s->p[1] % rank);
    case MERGE: case SPLIT: return reshaped(s, a, dim);
    case TAKE: return jot_take(a, b, dim);
    case ONE_HOT: return jot_one_hot(a, s->p[1] % 2 ? 5 : e[s->p[0] % p->nextents], JOT_F32);
    case CAST: return jot_cast(a, types[s->p[0] % 5]);
    case DROPOUT: return jot_dropout(a, .5);
    case UNIFORM: case IOTA: return generated(s, a);
    case SCALED: return scaled(p, s, a, e);
    case TILE:
        one[dim] = 2;
        return jot_tile(a, jot_ints(rank, one));
    case UNSQUEEZE: return jot_unsqueeze(a, dim);
    case STACK: return jot_stack(JOT_VARS(a, b), dim);
    case GRAD: return gradient(a, b);
    case SORT: return jot_sort(a, dim, s->p[1] % 2);
    default: return windowed(s, a, dim);
    }
}

/* What equal numbers in give equal numbers out of, so that no rounding decides a comparison. */
static bool
step_exact(const Step *s)
{
    switch (s->kind) {
    case UNARY: case UNARY_2: return s->p[0] % 9 == 1 || s->p[0] % 9 == 2 || s->p[0] % 9 == 3;
    case BINARY: case BINARY_2: case BINARY_3: return s->p[0] % 7 == 0 || s->p[0] % 7 == 2;
    case CONCAT: case SLICE: case PAD: case FLIP: case SWAP: case MERGE: case SPLIT: case ARGMAX:
    case ONE_HOT: case IOTA: case UNSQUEEZE: case STACK: case TILE: case SORT: case TAKE:
    case WINDOW: return true;
    default: return false;
    }
}

static bool
step_decides(const Step *s)
{
    return s->kind == ARGMAX || s->kind == ONE_HOT || (s->kind == CAST && s->p[0] % 5 == 3)
        || ((s->kind == BINARY || s->kind == BINARY_2 || s->kind == BINARY_3) && s->p[0] % 7 == 4);
}

static bool
step_two(const Step *s)
{
    switch (s->kind) {
    case BINARY: case BINARY_2: case BINARY_3: case MATMUL: case MATMUL_2: case CONV: case CONV_2:
    case CONCAT: case TAKE: case STACK: case GRAD: return true;
    default: return false;
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

static jot_Ints
leaf_shape(const Leaf *l, const int64_t *e, int64_t *shape)
{
    int d;

    for (d = 0; d < l->rank; d++)
        shape[d] = l->dim[d] < 0 ? e[-1 - l->dim[d]] : l->dim[d];
    return jot_ints(l->rank, shape);
}

static size_t
element(jot_DType t)
{
    return t == JOT_F64 || t == JOT_I64 || t == JOT_U64 ? 8
         : t == JOT_F16 || t == JOT_BF16 || t == JOT_I16 || t == JOT_U16 ? 2
         : t == JOT_BOOL || t == JOT_I8 || t == JOT_U8 ? 1 : 4;
}

static size_t
leaf_fill(const Leaf *l, const int64_t *e, int salt, void *to)
{
    static const uint16_t half[] = {0, 0x3800, 0xb800, 0x3c00, 0xbc00, 0x3400, 0xb400};
    size_t n = 1, i;
    int d;

    for (d = 0; d < l->rank; d++)
        n *= (size_t)(l->dim[d] < 0 ? e[-1 - l->dim[d]] : l->dim[d]);
    for (i = 0; i < n; i++) {
        size_t k = (i * 29 + (size_t)salt * 13 + i / 7) % 17;

        if (l->dtype == JOT_I32)
            ((int32_t *)to)[i] = (int32_t)(k % 7);
        else if (l->dtype == JOT_F64)
            ((double *)to)[i] = (double)k / 8 - 1;
        else if (l->dtype == JOT_F16)
            ((uint16_t *)to)[i] = half[k % 7];
        else
            ((float *)to)[i] = (float)k / 8 - 1;
    }
    return n * element(l->dtype);
}

static unsigned char filled[BYTES];

static void
params(jot_Ctx *c, Program *p, int on)
{
    const int64_t none[3] = {1, 1, 1};
    int64_t shape[RANK];
    int i;

    for (i = p->ninputs; i < p->nleaves; i++) {
        leaf_fill(&p->leaf[i], none, i + 40, filled);
        p->param[on][i] = jot_param(c, p->leaf[i].dtype, leaf_shape(&p->leaf[i], none, shape),
                                    filled);
    }
}

/* The leaves, then each step. */
static void
graph(jot_Ctx *c, const Program *p, int on, const int64_t *e, jot_Var *v)
{
    int64_t shape[RANK];
    int i;

    for (i = 0; i < p->nleaves; i++)
        v[i] = i >= p->ninputs ? p->param[on][i]
             : jot_array(c, p->leaf[i].dtype, leaf_shape(&p->leaf[i], e, shape), p->data[i]);
    for (i = 0; i < p->nsteps; i++)
        if (p->live[p->nleaves + i])
            v[p->nleaves + i] = apply(p, &p->step[i], v, e);
}

static bool
build(jot_Ctx *c, const int64_t *e, jot_Var *in, jot_Var *out, void *user)
{
    Program *p = user;
    jot_Var v[VALUES], w;
    int i;

    graph(c, p, p->on, e, v);
    for (i = 0; i < p->ninputs; i++)
        in[i] = v[i];
    for (i = 0; i < p->nouts; i++)
        out[i] = v[p->out[i]];
    if (p->update >= 0) {
        w = v[p->nleaves - 1];
        jot_assign(w, jot_add(jot_scale(w, .5), jot_cast(jot_tanh(jot_sum(jot_cast(v[p->update],
                               JOT_F32), JOT_ALL_DIMS)), jot_dtype(w))));
    }
    return !jot_error(c);
}

static void
draw_leaf(Program *p, Leaf *l, bool input)
{
    static const int ext[] = {1, 2, 3, 4, 5, 8, 16, 17, 24, 33};
    int d, at, n;

    l->dtype = draw(p, 6) ? JOT_F32 : (jot_DType[]){JOT_F64, JOT_F16, JOT_I32}[draw(p, 3)];
    l->rank = input ? 1 + draw(p, 4) : draw(p, 3) ? 2 : draw(p, 2) ? 4 : 1;
    at = draw(p, l->rank);
    for (d = 0; d < l->rank; d++) {
        l->dim[d] = l->rank == 4 ? ext[draw(p, d ? 3 : 5)] : ext[draw(p, 10)];
        if (input && (d == at || !draw(p, 3)))
            l->dim[d] = -1 - draw(p, p->nextents);
        else if (draw(p, 3) && l->rank < 4 && d + 1 == l->rank)
            l->dim[d] = ext[5 + draw(p, 2)];
        else if (l->rank == 4 && d == 1 && draw(p, 4))
            l->dim[d] = 2;
    }
    for (d = 0, n = 1; d < l->rank; d++) {
        n *= (int)(l->dim[d] < 0 ? p->extent[-1 - l->dim[d]].most : l->dim[d]);
        if (n > 20000 && l->dim[d] < 0)
            n /= (int)p->extent[-1 - l->dim[d]].most, l->dim[d] = 2, n *= 2;
    }
    p->half |= l->dtype == JOT_F16;
}

static void
draw_extents(Program *p)
{
    static const int least[] = {1, 1, 1, 2, 3, 4, 8, 15, 17}, step[] = {1, 1, 1, 1, 2, 3, 4, 8};
    static const char *const names[] = {"a", "b", "c"};
    int k, most;

    p->nextents = draw(p, 5) < 3 ? 1 : 2 + !draw(p, 3);
    for (k = 0; k < p->nextents; k++) {
        p->extent[k].name = names[k];
        p->extent[k].least = least[draw(p, 9)];
        p->extent[k].step = step[draw(p, 8)];
        if (p->extent[k].step > 2 && draw(p, 2))
            p->extent[k].least = p->extent[k].step;
        most = p->nextents == 1 ? 70 : p->nextents == 2 ? 24 : 12;
        p->extent[k].most = p->extent[k].least + draw(p, most);
    }
}

static void
draw_step(Program *p, Step *s, int nvalues)
{
    int k;

    s->kind = (Kind)draw(p, KINDS);
    s->a = draw(p, 2) ? nvalues - 1 : draw(p, nvalues);
    s->b = draw(p, nvalues);
    for (k = 0; k < 6; k++)
        s->p[k] = draw(p, 1 << 20);
}

/* Can it be, at these sizes, and is it small enough? */
static bool
step_fits(jot_Ctx *c, const Program *p, const Step *s, int64_t e[3][3], jot_Var v[3][VALUES])
{
    int i, at = p->nleaves + p->nsteps;
    bool ok = (s->kind != IOTA && s->kind != UNIFORM) || s->a < p->nleaves;

    ok = ok && (!step_decides(s) || (p->exact[s->a] && (!step_two(s) || p->exact[s->b])));
    for (i = 0; ok && i < 3; i++) {
        v[i][at] = apply(p, s, v[i], e[i]);
        ok = jot_ok(v[i][at]) && jot_nelem(v[i][at]) > 0 && jot_nelem(v[i][at]) <= 30000
          && jot_rank(v[i][at]) <= 5;
    }
    jot_clear(c);
    if (ok && s->kind == SPLIT) /* only of what is closed: not every size is divisible */
        ok = jot_nelem(v[0][at]) == jot_nelem(v[1][at]);
    return ok;
}

static void
draw_outs(Program *p)
{
    int i, k, at = p->nleaves + p->nsteps;

    p->nouts = 1 + draw(p, OUTS);
    for (i = 0; i < p->nouts; i++) {
        p->out[i] = i ? draw(p, at) : at - 1;
        for (k = 0; k < i; k++)
            if (p->out[k] == p->out[i])
                p->out[i] = at - 1;
        p->live[p->out[i]] = true;
    }
    p->update = p->nleaves > p->ninputs && p->leaf[p->nleaves - 1].dtype == JOT_F32 && !draw(p, 4)
              ? draw(p, at) : -1;
    if (p->update >= 0)
        p->live[p->update] = true;
    for (i = p->nsteps - 1; i >= 0; i--)
        if (p->live[p->nleaves + i]) {
            p->live[p->step[i].a] = true;
            p->live[p->step[i].b] |= step_two(&p->step[i]);
        }
}

static void
draw_program(Program *p, int64_t seed)
{
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp", .cache_dir = "", .hooks.log = quiet});
    static jot_Var v[3][VALUES];
    int64_t e[3][3];
    int i, k, tries, want;

    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->rng = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
    draw_extents(p);
    for (k = 0; k < p->nextents; k++) {
        const jot_Extent *x = &p->extent[k];

        e[0][k] = x->least;
        e[1][k] = x->least + (x->most - x->least) / x->step * x->step;
        e[2][k] = x->least + (x->most - x->least) / x->step / 2 * x->step;
    }
    p->ninputs = 1 + draw(p, 2);
    p->nleaves = p->ninputs + draw(p, LEAVES - p->ninputs + 1);
    for (i = 0; i < p->nleaves; i++) {
        draw_leaf(p, &p->leaf[i], i < p->ninputs);
        p->exact[i] = true;
    }
    params(c, p, 0);
    for (i = 0; i < 3; i++)
        graph(c, p, 0, e[i], v[i]);
    want = 2 + draw(p, STEPS - 1);
    for (tries = 0; tries < 600 && p->nsteps < want; tries++) {
        Step *s = &p->step[p->nsteps];
        int at = p->nleaves + p->nsteps;

        draw_step(p, s, at);
        if (!step_fits(c, p, s, e, v))
            continue;
        p->exact[at] = step_exact(s) && p->exact[s->a] && (!step_two(s) || p->exact[s->b]);
        p->half |= jot_dtype(v[0][at]) == JOT_F16;
        p->nsteps++;
    }
    draw_outs(p);
    jot_close(c);
}

static void
tell(const Program *p)
{
    int i, d;

    for (i = 0; i < p->nextents; i++)
        printf("  %s %d..%d/%d", p->extent[i].name, (int)p->extent[i].least, (int)p->extent[i].most,
               (int)p->extent[i].step);
    printf("\n");
    for (i = 0; i < p->nleaves; i++) {
        printf("  v%d %s dtype %d:", i, i < p->ninputs ? "input" : "param", p->leaf[i].dtype);
        for (d = 0; d < p->leaf[i].rank; d++)
            printf(" %d", p->leaf[i].dim[d]);
        printf("\n");
    }
    for (i = 0; i < p->nsteps; i++)
        if (p->live[p->nleaves + i])
            printf("  v%d = %s v%d v%d  %d %d %d %d %d %d\n", p->nleaves + i,
                   kinds[p->step[i].kind], p->step[i].a, p->step[i].b, p->step[i].p[0],
                   p->step[i].p[1], p->step[i].p[2],
                   p->step[i].p[3], p->step[i].p[4], p->step[i].p[5]);
    for (i = 0; i < p->nouts; i++)
        printf("  out v%d\n", p->out[i]);
    if (p->update >= 0)
        printf("  update by v%d\n", p->update);
}

#endif
