/* bench/work_ops.c - operators of nn.h one by one: scans, order, places that are data, images,
 * norms, sequences, an optimiser's step, systems of equations. */
#include "nn.h"
#include "bench/work.h"

/* y, or where a[7] says so its sum and gradients. In all of them a[0] is the variant. */
static int
done(Bench *b, jot_Var y, int n, const jot_Var *wrt, jot_Var *out)
{
    out[0] = y;
    return b->work->a[7] ? work_backward(b, 20, y, n, wrt, out) : 1;
}

static int
op_cumsum(Bench *b, jot_Var *out)
{
    jot_Var x = b->work->a[1] ? work_normal(b, 0, JOT_SHAPE(65536, 60))
                              : work_normal(b, 0, JOT_SHAPE(4096, 1024));
    jot_Var y = b->work->a[2] ? jot_cummax(x, 1) : jot_cumsum(x, (int)b->work->a[0]);

    return done(b, y, 1, &x, out);
}

static int
op_sort(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(4096, 1000));

    if (!b->work->a[0]) {
        out[0] = jot_sort(x, 1, false);
        return 1;
    }
    jot_topk(x, 1, 10, true, &out[0], &out[1]);
    return 2;
}

static int
op_scatter_add(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(4096, 256));
    jot_Var y = work_normal(b, 1, JOT_SHAPE(8192, 256)), at = work_labels(b, 2, 8192, 4096);

    at = jot_broadcast(at, JOT_SHAPE(8192, 256), JOT_INTS(1));
    out[0] = jot_scatter_reduce(JOT_ADD, x, at, y, 0);
    return 1;
}

static int
op_image(Bench *b, jot_Var *out)
{
    static const jot_GridSample linear = {JOT_LINEAR, false, false};
    jot_Resize resize = {JOT_LINEAR, {112, 112}, {0}, b->work->a[0] == 1};
    jot_Var x = work_normal(b, 0, JOT_SHAPE(8, 64, 56, 56)), y;

    if (b->work->a[0] < 2)
        y = jot_resize(x, &resize);
    else if (b->work->a[0] == 2)
        y = jot_grid_sample(x, jot_offset(jot_scale(work_uniform(b, 1, JOT_SHAPE(8, 56, 56, 2)), 2),
                                          -1), &linear);
    else if (b->work->a[0] == 3)
        y = jot_pad_edges(x, JOT_INTS(1, 1), JOT_INTS(1, 1), JOT_PAD_REFLECT);
    else
        y = jot_adaptive_avg_pool(work_normal(b, 2, JOT_SHAPE(8, 64, 112, 112)), JOT_SHAPE(50, 50));
    return done(b, y, 1, &x, out);
}

static int
op_conv(Bench *b, jot_Var *out)
{
    static const jot_ConvNd up = {.stride = {2, 2}, .pad = {1, 1}}, same = {.pad = {1, 1, 1}};
    jot_Var in[2], none = {0};
    bool three = b->work->a[0] == 3;

    in[0] = three ? work_normal(b, 0, JOT_SHAPE(2, 16, 16, 28, 28))
                  : work_normal(b, 0, JOT_SHAPE(8, 64, 56, 56));
    in[1] = three ? work_normal(b, 1, JOT_SHAPE(32, 16, 3, 3, 3))
                  : work_normal(b, 1, JOT_SHAPE(64, 32, 4, 4));
    return done(b, three ? jot_conv(in[0], in[1], none, &same)
                         : jot_conv_transpose(in[0], in[1], none, &up), 2, in, out);
}

static int
op_group_norm(Bench *b, jot_Var *out)
{
    jot_Var in[3];

    in[0] = work_normal(b, 0, JOT_SHAPE(8, 64, 56, 56));
    in[1] = work_normal(b, 1, JOT_SHAPE(64));
    in[2] = work_normal(b, 2, JOT_SHAPE(64));
    return done(b, jot_group_norm(in[0], 8, in[1], in[2], 1e-5), 3, in, out);
}

/* 32 steps of 64 rows, 256 wide; a[0]: gates */
static int
op_recurrent(Bench *b, jot_Var *out)
{
    int64_t k = b->work->a[0] * 256;
    jot_Var x = work_normal(b, 0, JOT_SHAPE(32, 64, 256)), h, c, wrt[4], y;
    jot_Cell cell = {.in = work_scaled(b, 1, JOT_SHAPE(256, k), 0.05),
                     .state = work_scaled(b, 2, JOT_SHAPE(256, k), 0.05),
                     .bias_in = work_normal(b, 3, JOT_SHAPE(k)),
                     .bias_state = work_normal(b, 4, JOT_SHAPE(k))};

    h = work_normal(b, 5, JOT_SHAPE(64, 256));
    c = work_normal(b, 6, JOT_SHAPE(64, 256));
    wrt[0] = cell.in;
    wrt[1] = cell.state;
    wrt[2] = cell.bias_in;
    wrt[3] = cell.bias_state;
    y = k == 1024 ? jot_lstm(x, &h, &c, &cell) : jot_gru(x, &h, &cell);
    return done(b, y, 4, wrt, out);
}

static int
op_attention(Bench *b, jot_Var *out)
{
    jot_Var in[3], mask = work_normal(b, 3, JOT_SHAPE(8, 1, 256, 256));
    jot_Attention how = {.mask = mask};

    for (int i = 0; i < 3; i++)
        in[i] = work_normal(b, i, JOT_SHAPE(8, 8, 256, 64));
    return done(b, jot_attention(in[0], in[1], in[2], &how), 3, in, out);
}

/* 50 moments, 16 rows, 20 classes, 10 labels */
static int
op_ctc(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(50, 16, 20)), labels = work_labels(b, 1, 160, 19);
    jot_Var times = jot_full(b->c, JOT_I64, JOT_SHAPE(16), 50);
    jot_Var lengths = jot_full(b->c, JOT_I64, JOT_SHAPE(16), 10);

    labels = jot_reshape(jot_offset(labels, 1), JOT_SHAPE(16, 10));
    out[0] = jot_ctc_loss(jot_log_softmax(x, 2), labels, times, lengths, 0, JOT_REDUCTION_SUM);
    jot_grad(out[0], JOT_VARS(x), out + 1);
    return 2;
}

/* The parameters of a ResNet-50, and others of their shapes as gradients. */
static int
op_adamw(Bench *b, jot_Var *out)
{
    Model *m = &b->model[0], *g = &b->model[1];

    if (!jot_optim_ok(b->optim[0])) {
        for (int i = 0; i < 2; i++) {
            model_begin(&b->model[i], b->c, true);
            resnet50(&b->model[i], work_normal(b, 0, JOT_SHAPE(1, 3, 224, 224)));
        }
        b->optim[0] = jot_adamw(jot_vars(m->n, m->p), 1e-5, 0.9, 0.999, 1e-8, 0.01);
    }
    jot_step(b->optim[0], jot_vars(m->n, g->p));
    out[0] = m->p[0];
    return 1;
}

static jot_Var
definite(Bench *b, jot_Ints shape)
{
    int64_t n = shape.v[shape.n - 1];
    jot_Var x = work_scaled(b, 0, shape, 0.1 / (double)n);

    if (!b->made[1]) {
        b->in[1] = jot_param_of(jot_add(x, jot_eye(b->c, JOT_F32, n, n)));
        b->made[1] = true;
    }
    return b->in[1];
}

/* a: count, rows, right sides; 0: the factor; -1: the inverse */
static int
op_system(Bench *b, jot_Var *out)
{
    const int64_t *a = b->work->a;
    jot_Var in[2];

    in[0] = definite(b, JOT_SHAPE(a[0], a[1], a[1]));
    if (a[2] <= 0)
        return done(b, a[2] ? jot_inverse(in[0]) : jot_cholesky(in[0]), 1, in, out);
    in[1] = work_normal(b, 2, JOT_SHAPE(a[0], a[1], a[2]));
    return done(b, jot_solve_triangular(in[0], in[1], 0), 2, in, out);
}

#define M 1048576.0
#define IMAGE (6.125 * M) /* bytes of 8 x 64 x 56 x 56 */
#define CUBE(n) ((double)(n) * (n) * (n))
const Work work_ops[] = {
    {"op_cumsum_rows", op_cumsum, {1}, 0, 16 * M, 16 * M, NULL},
    {"op_cumsum_columns", op_cumsum, {0}, 0, 16 * M, 16 * M, NULL},
    {"op_cumsum_rows_bwd", op_cumsum, {1, 0, 0, 0, 0, 0, 0, 1}, 0, 32 * M, 16 * M, NULL},
    {"op_cumsum_short", op_cumsum, {1, 1}, 0, 15 * M, 15 * M, NULL},
    {"op_cummax_rows", op_cumsum, {1, 0, 1}, 0, 16 * M, 16 * M, NULL},
    {"op_sort_4096x1000", op_sort, {0}, 0, 16 * M, 16 * M, NULL},
    {"op_topk_4096x1000", op_sort, {1}, 0, 16 * M, M / 2, NULL},
    {"op_scatter_add", op_scatter_add, {0}, 0, 12 * M, 4 * M, NULL},
    {"op_resize", op_image, {0}, 0, IMAGE, 4 * IMAGE, NULL},
    {"op_resize_corners", op_image, {1}, 0, IMAGE, 4 * IMAGE, NULL},
    {"op_grid_sample", op_image, {2}, 0, IMAGE, IMAGE, NULL},
    {"op_pad_reflect", op_image, {3}, 0, IMAGE, IMAGE, NULL},
    {"op_adaptive_pool", op_image, {4}, 0, 4 * IMAGE, IMAGE, NULL},
    {"op_conv_transpose", op_conv, {2}, 2.0 * 8 * 64 * 56 * 56 * 32 * 16, 0, 0, NULL},
    {"op_conv_transpose_bwd", op_conv, {2, 0, 0, 0, 0, 0, 0, 1},
     6.0 * 8 * 64 * 56 * 56 * 32 * 16, 0, 0, NULL},
    {"op_conv3d", op_conv, {3}, 2.0 * 2 * 16 * 28 * 28 * 16 * 32 * 27, 0, 0, NULL},
    {"op_conv3d_bwd", op_conv, {3, 0, 0, 0, 0, 0, 0, 1},
     6.0 * 2 * 16 * 28 * 28 * 16 * 32 * 27, 0, 0, NULL},
    {"op_group_norm", op_group_norm, {0}, 0, IMAGE, IMAGE, NULL},
    {"op_group_norm_bwd", op_group_norm, {0, 0, 0, 0, 0, 0, 0, 1}, 0, 2 * IMAGE, IMAGE, NULL},
    {"op_lstm", op_recurrent, {4}, 2.0 * 32 * 64 * 512 * 1024, 0, 0, NULL},
    {"op_lstm_bwd", op_recurrent, {4, 0, 0, 0, 0, 0, 0, 1}, 6.0 * 32 * 64 * 512 * 1024, 0, 0, NULL},
    {"op_gru", op_recurrent, {3}, 2.0 * 32 * 64 * 512 * 768, 0, 0, NULL},
    {"op_gru_bwd", op_recurrent, {3, 0, 0, 0, 0, 0, 0, 1}, 6.0 * 32 * 64 * 512 * 768, 0, 0, NULL},
    {"op_attention_mask", op_attention, {0}, 4.0 * 64 * 256 * 256 * 64, 0, 0, NULL},
    {"op_attention_mask_bwd", op_attention, {0, 0, 0, 0, 0, 0, 0, 1},
     14.0 * 64 * 256 * 256 * 64, 0, 0, NULL},
    {"op_ctc_bwd", op_ctc, {0}, 0, 0, 0, NULL},
    {"op_adamw_resnet50", op_adamw, {0}, 0, 4 * 97.5 * M, 3 * 97.5 * M, NULL},
    {"op_cholesky_1024", op_system, {1, 1024, 0}, CUBE(1024) / 3, 0, 0, NULL},
    {"op_cholesky_64x64", op_system, {64, 64, 0}, 0, M, M, NULL},
    {"op_cholesky_1024_bwd", op_system, {1, 1024, 0, 0, 0, 0, 0, 1}, CUBE(1024), 0, 0, NULL},
    {"op_triangular_1024", op_system, {1, 1024, 1024}, CUBE(1024), 0, 0, NULL},
    {"op_triangular_1024_bwd", op_system, {1, 1024, 1024, 0, 0, 0, 0, 1}, 3 * CUBE(1024), 0, 0,
     NULL},
    {"op_triangular_one", op_system, {1, 1024, 1}, 0, 2 * M, 0, NULL},
    {"op_inverse_64x64", op_system, {64, 64, -1}, 0, M, M, NULL},
    {0}
};
