/* 05_code.c - operators in your own C.
 *
 * jot_code_map takes one expression of elements: it fuses with its neighbours, here with the
 * product before it and the sum after it. jot_code takes a function body over whole arrays, for
 * what the meta-operators do not say well: here a running sum along rows, with its gradient (the
 * running sum from the other end), a scalar that changes without compiling again, and rows in
 * parallel. */
#include <math.h>
#include <stdio.h>
#include "core.h"

/* y = x / (1 + |x|); dy/dx in terms of the operand a and the result y */
static jot_Var
softsign(jot_Var x)
{
    static const char *const gradient[] = {"(a < 0 ? 1 + y : 1 - y) * (a < 0 ? 1 + y : 1 - y)"};
    return jot_code_map("a / (1 + (a < 0 ? -a : a))", JOT_VARS(x), jot_dtype(x), gradient);
}

/* y[r, k] = x[r, 0] decay^k + ... + x[r, k] */
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
        "for (long r = 0; r < dx_0; r++) {\n"
        "    float sum = 0;\n"
        "    for (long k = dx_1; k-- > 0; )\n"
        "        dx[r * dx_s0 + k] = sum = sum * (float)decay + dy[r * dy_s0 + k];\n"
        "}\n"
    };
    static const char *const names[] = {"x"};
    jot_CodeOut out = {"y", JOT_F32, {0, NULL}, 0}; /* like input 0 */
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
    jot_code(c, &code, &y);
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

int
main(void)
{
    static const float xs[6] = {1, 2, 3, -1, 0.5f, -2};
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), xs), g;

    jot_Var s = jot_sum(softsign(jot_scale(x, 2)), JOT_ALL_DIMS);
    printf("sum of softsign(2 x) = %.6f, kernels %u\n", jot_item(s), jot_stats(c).last_kernels);
    jot_grad(s, &x, 1, &g);
    print("its gradient by x", g);

    print("running sum", running_sum(c, x, 1));
    if (jot_error(c) == JOT_EDEVICE) { /* no compiler, and no host function given */
        printf("skipped: %s\n", jot_message(c));
        jot_close(c);
        return 0;
    }
    unsigned long long before = jot_stats(c).kernels_compiled;
    jot_Var y = running_sum(c, x, 0.5);
    print("running sum, decay 0.5", y);
    printf("compiled again for the new decay: %llu\n", jot_stats(c).kernels_compiled - before);
    jot_grad(jot_sum(y, JOT_ALL_DIMS), &x, 1, &g);
    print("gradient of its sum by x", g);

    if (jot_error(c))
        printf("failed: %s\n", jot_message(c));
    int failed = jot_error(c) != JOT_OK;
    jot_close(c);
    return failed;
}
