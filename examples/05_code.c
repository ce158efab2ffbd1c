/* 05_code.c - operators in your own C.
 *
 * jot_code_map takes one expression of elements: it fuses with its neighbours, here with the
 * product before it and the sum after it, into one kernel. jot_code takes a function body over
 * whole arrays, for what the meta-operators do not say well: here a running sum along rows, with
 * its gradient (the running sum from the other end), a scalar that changes without compiling again,
 * and rows in parallel, in both directions. Errors in the text come back with its own line numbers.
 * The gradient of a gradient has no text: jot_custom_grad says what it is made of.
 *
 * Your text needs a compiler: the interpreter says so, and the program ends there. (A jot_Code may
 * bring a function of the program itself, `host`, for that case, or instead of a text.) */
#include <stdio.h>
#include "core.h"

/* y = x / (1 + |x|) of the operand a; the gradient may use a and the result y: (1 - |y|)^2 */
static jot_Var
softsign(jot_Var x)
{
    static const char *const gradient[] = {"(a < 0 ? 1 + y : 1 - y) * (a < 0 ? 1 + y : 1 - y)"};
    return jot_code_map("a / (1 + (a < 0 ? -a : a))", JOT_VARS(x), jot_dtype(x), gradient);
}

/* y[r, k] = x[r, 0] decay^k + ... + x[r, k]. In the text an array `x` of rank 2 brings its extents
 * x_0, x_1, its strides x_s0, x_s1 and its size x_n; lo and hi are a share of the rows. In a
 * gradient dy is the gradient of y, and dx what is to be written. */
static jot_Var
running_sum(jot_Ctx *c, jot_Var x, double decay)
{
    static const char forward[] =
        "for (long r = lo; r < hi; r++) {\n"
        "    float sum = 0;\n"
        "    for (long k = 0; k < y_1; k++)\n"
        "        y[r * y_s0 + k] = sum = sum * (float)decay + x[r * x_s0 + k];\n"
        "}\n";
    static const char *const backward[] = {
        "for (long r = lo; r < hi; r++) {\n"
        "    float sum = 0;\n"
        "    for (long k = dx_1; k-- > 0; )\n"
        "        dx[r * dx_s0 + k] = sum = sum * (float)decay + dy[r * dy_s0 + k];\n"
        "}\n"
    };
    static const char *const names[] = {"x"}, *const along[] = {"dx_0"};
    jot_CodeOut out = {.name = "y", .like = "x"};
    jot_CodeScalar scalar = {"decay", 0};
    jot_Code code = {0};
    jot_Var y = {c, 0, 0};

    scalar.value = decay;
    code.name = "running_sum";
    code.inputs = 1;
    code.in = &x;
    code.in_names = names;
    code.outputs = 1;
    code.out = &out;
    code.scalars = 1;
    code.scalar = &scalar;
    code.source = forward;
    code.grad_source = backward;
    code.parallel = "y_0";
    code.grad_parallel = along;
    jot_code(c, &code, &y);
    return y;
}

/* The same, differentiable as often as one likes: its gradient is made of itself. */
static jot_Var any_order(jot_Var x, const double *decay);

static bool
from_the_end(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx)
{
    (void)x, (void)y;
    dx[0] = jot_flip(any_order(jot_flip(dy.v[0], JOT_INTS(1)), user), JOT_INTS(1));
    return true;
}

static jot_Var
any_order(jot_Var x, const double *decay)
{
    jot_Var y = running_sum(x.ctx, x, *decay);
    jot_custom_grad(JOT_VARS(y), JOT_VARS(x), from_the_end, (void *)(uintptr_t)decay, &y);
    return y;
}

static void
print(const char *what, jot_Var v)
{
    const float *p = jot_data(v);
    printf("%-28s", what);
    for (int k = 0; p && k < jot_nelem(v); k++)
        printf(" %8.4f", p[k]);
    printf("\n");
}

/* Is the answer there? If not, say why: without a compiler that is no failure of the example. */
static int
ended(jot_Ctx *c)
{
    if (jot_error(c))
        printf("%s: %s\n", jot_error(c) == JOT_EDEVICE ? "skipped" : "failed", jot_message(c));
    return jot_error(c) != JOT_OK;
}

static void
show(jot_Ctx *c, jot_Var x)
{
    jot_Var g, y, s = jot_sum(softsign(jot_scale(x, 2)), JOT_ALL_DIMS);
    double value = jot_item(s);
    if (ended(c))
        return;
    printf("sum of softsign(2 x)         %8.4f, kernels: %u\n", value, jot_stats(c).last_kernels);
    jot_grad(s, JOT_VARS(x), &g);
    print("its gradient by x", g);

    print("running sum", running_sum(c, x, 1));
    uint64_t before = jot_stats(c).kernels_compiled + jot_stats(c).cache_hits;
    y = running_sum(c, x, 0.5);
    print("running sum, decay 0.5", y);
    printf("kernels made for the new decay: %llu\n",
           (unsigned long long)(jot_stats(c).kernels_compiled + jot_stats(c).cache_hits - before));
    jot_grad(jot_sum(y, JOT_ALL_DIMS), JOT_VARS(x), &g);
    print("gradient of its sum by x", g);

    static const double half = 0.5;
    y = any_order(x, &half);
    jot_grad(jot_sum(jot_mul(y, jot_square(y)), JOT_ALL_DIMS), JOT_VARS(x), &g);
    jot_grad(jot_sum(g, JOT_ALL_DIMS), JOT_VARS(x), &g);
    print("second order of its cube", g);
    ended(c);
}

int
main(void)
{
    static const float xs[6] = {1, 2, 3, -1, 0.5f, -2};
    jot_Ctx *c = jot_open(NULL);
    show(c, jot_array(c, JOT_F32, JOT_SHAPE(2, 3), xs));
    int failed = jot_error(c) != JOT_OK && jot_error(c) != JOT_EDEVICE;
    jot_close(c);
    return failed;
}
