/* bench/work_products.c - matrix products: gemm_n, mm_*, bmm_*, linear_bias_relu_256. */
#include "bench/work.h"

static int
gemm(Bench *b, jot_Var *out)
{
    const int64_t *n = b->work->a; /* m, k, n */

    out[0] = jot_matmul(work_normal(b, 0, JOT_SHAPE(n[0], n[1])),
                        work_normal(b, 1, JOT_SHAPE(n[1], n[2])));
    return 1;
}

static int
gemm_half(Bench *b, jot_DType dtype, jot_Var *out)
{
    const int64_t *n = b->work->a;

    out[0] = jot_matmul(work_half(b, 0, dtype, JOT_SHAPE(n[0], n[1])),
                        work_half(b, 1, dtype, JOT_SHAPE(n[1], n[2])));
    return 1;
}

static int
gemm_bf16(Bench *b, jot_Var *out)
{
    return gemm_half(b, JOT_BF16, out);
}

static int
gemm_i8(Bench *b, jot_Var *out)
{
    int n = gemm_half(b, JOT_I8, out);

    out[0] = jot_cast(out[0], JOT_I32);
    return n;
}

static int
gemm_f16(Bench *b, jot_Var *out)
{
    return gemm_half(b, JOT_F16, out);
}

static int
bmm(Bench *b, jot_Var *out)
{
    out[0] = jot_matmul(work_normal(b, 0, JOT_SHAPE(96, 128, 64)),
                        work_normal(b, 1, JOT_SHAPE(96, 64, 128)));
    return 1;
}

static int
linear_bias_relu(Bench *b, jot_Var *out)
{
    jot_Var x = work_normal(b, 0, JOT_SHAPE(256, 1024));
    jot_Var w = work_normal(b, 1, JOT_SHAPE(1024, 1024)), c = work_normal(b, 2, JOT_SHAPE(1024));

    out[0] = jot_relu(jot_linear(x, jot_transpose(w, JOT_INTS(1, 0)), c));
    return 1;
}

/* x' dy: the gradient by the weight of a dense layer */
static int
by_weight(Bench *b, jot_Var *out)
{
    const int64_t *n = b->work->a;

    out[0] = jot_matmul(jot_transpose(work_normal(b, 0, JOT_SHAPE(n[1], n[0])), JOT_INTS(1, 0)),
                        work_normal(b, 1, JOT_SHAPE(n[1], n[2])));
    return 1;
}

#define GEMM(m, k, n) {m, k, n}, 2.0 * m * k * n, 0, 0, NULL
const Work work_products[] = {
    {"gemm_64", gemm, GEMM(64, 64, 64)},
    {"gemm_64_compiled", gemm, GEMM(64, 64, 64)},
    {"gemm_256", gemm, GEMM(256, 256, 256)},
    {"gemm_512", gemm, GEMM(512, 512, 512)},
    {"gemm_1024", gemm, GEMM(1024, 1024, 1024)},
    {"gemm_2048", gemm, GEMM(2048, 2048, 2048)},
    {"gemm_bf16_256", gemm_bf16, GEMM(256, 256, 256)},
    {"gemm_bf16_2048", gemm_bf16, GEMM(2048, 2048, 2048)},
    {"gemm_bf16_1000", gemm_bf16, GEMM(1000, 1000, 1000)},
    {"mm_bf16_197x768x3072", gemm_bf16, GEMM(197, 768, 3072)},
    {"gemm_i8_256", gemm_i8, GEMM(256, 256, 256)},
    {"gemm_i8_1024", gemm_i8, GEMM(1024, 1024, 1024)},
    {"gemm_f16_256", gemm_f16, GEMM(256, 256, 256)},
    {"gemm_f16_2048", gemm_f16, GEMM(2048, 2048, 2048)},
    {"mm_gemv_1024x4096", gemm, {1, 1024, 4096}, 0, 4.0 * 1024 * 4097, 4.0 * 4096, NULL},
    {"mm_mlp_32x784x512", gemm, GEMM(32, 784, 512)},
    {"mm_tall_100352x64x64", gemm, GEMM(100352, 64, 64)},
    {"mm_by_weight_1024x1024x256", by_weight, GEMM(1024, 1024, 256)},
    {"bmm_96x128x64x128", bmm, {0}, 2.0 * 96 * 128 * 64 * 128, 0, 0, NULL},
    {"linear_bias_relu_256", linear_bias_relu, {0}, 2.0 * 256 * 1024 * 1024, 0, 0, NULL},
    {0}
};
