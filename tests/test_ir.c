/* tests/test_ir.c - the kernel IR: kernels built by hand, with plain and hand-written schedules,
 * emitted as C, compiled, run and compared with straightforward loops here.
 * Set IR_SHOW to a part of a case's name to see its text. */
#include "tests/ir_run.h"

/* y = exp(x) / (exp(x) + 1) */
static void
make_sigmoid(IrCase *c, int64_t n)
{
    uint32_t x, y, e;
    ir_start(c);
    jot_kernel_axis(&c->k, "i", n);
    x = IN("x", 1, n, 0, 0, 0);
    y = OUT("y", 1, n, 0, 0, 0);
    e = ir_ew(c, EW_EXP, ir_load(c, x, AX(0), 0, 0, 0), 0);
    ir_store(c, y, AX(0), 0, 0, 0, ir_ew(c, EW_DIV, e, ir_ew(c, EW_ADD, e, jot_v_constf(&c->k, JOT_F32, 1))));
    for (int64_t i = 0; i < n; i++)
        c->data[y][i] = exp(c->data[x][i]) / (exp(c->data[x][i]) + 1);
}

static void
make_softmax(IrCase *c, int64_t n, int64_t m)
{
    uint32_t x, y, v, e, mx, s;
    ir_start(c);
    jot_kernel_axis(&c->k, "r", n);
    jot_kernel_axis(&c->k, "j", m);
    x = IN("x", 2, n, m, 0, 0);
    y = OUT("y", 2, n, m, 0, 0);
    v = ir_load(c, x, AX(0), AX(1), 0, 0);
    mx = ir_sum(c, EW_MAX, BIT(1), v, "mx");
    e = ir_ew(c, EW_EXP, ir_ew(c, EW_SUB, v, mx), 0);
    jot_v_name(&c->k, e, "e");
    s = ir_sum(c, EW_ADD, BIT(1), e, "s");
    ir_store(c, y, AX(0), AX(1), 0, 0, ir_ew(c, EW_DIV, e, s));
    for (int64_t r = 0; r < n; r++) {
        double most = -1e30, sum = 0;
        for (int64_t j = 0; j < m; j++)
            most = fmax(most, c->data[x][r * m + j]);
        for (int64_t j = 0; j < m; j++)
            sum += exp(c->data[x][r * m + j] - most);
        for (int64_t j = 0; j < m; j++)
            c->data[y][r * m + j] = exp(c->data[x][r * m + j] - most) / sum;
    }
}

static void
test_plain(int cc)
{
    IrCase c;
    make_sigmoid(&c, 13);
    ir_default(&c, cc, "sigmoid");
    ir_end(&c);
    make_softmax(&c, 5, 7);
    ir_default(&c, cc, "softmax");
    ir_end(&c);
}

int
main(void)
{
    ir_open();
    test_plain(GCC);
    ir_close();
    return DONE();
}
