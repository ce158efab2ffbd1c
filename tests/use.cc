// tests/use.cc - the headers as C++: a program that uses shape, index and variable lists, and data.
#include "data.h"
#include "expr.h"
#include "io.h"
#include <cstdio>

// What a list that dangles would point to is written over.
static int
clobber(int n)
{
    volatile int64_t v[64];
    for (int k = 0; k < 64; k++)
        v[k] = n + k;
    return (int)v[n];
}

int
main()
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    jot_Ctx *c = jot_open(nullptr);
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), data);
    jot_Var t = jot_reindex(x, JOT_SHAPE(3, 2), JOT_INDEX("i1", "i0"));
    jot_Var both[] = {jot_sum(jot_mul(t, t), JOT_DIMS(0)), jot_sum(x, JOT_ALL_DIMS)};
    jot_Var scalar = jot_reshape(both[1], JOT_SHAPE());
    jot_Var squares = jot_expr(c, "s += x[i,j] * x[i,j]", JOT_NAMED(x));
    auto shape = JOT_SHAPE(3, 2);          // owns its elements
    auto last = JOT_KEEP(-1);
    auto vars = JOT_VARS(x, t);
    auto names = JOT_INDEX("i1", "i0");
    clobber(40);
    jot_Var again = jot_reindex(x, shape, names), kept = jot_sum(again, last);
    jot_Var in = jot_array(c, JOT_F32, JOT_SHAPE(2), data);
    float out[2] = {0, 0};
    jot_Func f = jot_compile(c, JOT_VARS(in), JOT_VARS(jot_scale(in, 3)));
    bool ok = jot_run(c, JOT_VARS(both[0], both[1]));
    ok = ok && jot_extent(kept, 1) == 1 && jot_rank(kept) == 2 && jot_run(c, vars);
    ok = ok && jot_item(jot_slice_dim(kept, 0, 1, 2, 1)) == 7;
    ok = ok && jot_call(f, JOT_INS(JOT_IN(data, 8)), JOT_OUTS(JOT_OUT(out, sizeof out)));
    ok = ok && out[1] == 6 && jot_stats(c).plans > 0 && jot_machine(c).cores > 0;
    const float *v = static_cast<const float *>(jot_data(both[0]));

    ok = ok && v && v[0] == 14 && v[1] == 77 && jot_item(scalar) == 21 && jot_item(squares) == 91;
    static const unsigned char idx[] = {0, 0, 8, 1, 0, 0, 0, 2, 40, 2};
    static const char npy[] = "\x93NUMPY\1\0\72\0{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}   "
                              "*0";
    jot_File *file = jot_file_memory("npy", npy, sizeof npy - 1);
    ok = ok && jot_item(jot_sum(jot_file_var(c, file, 0), JOT_ALL_DIMS)) == 42 + 48;
    jot_file_close(file);
    ok = ok && jot_item(jot_sum(jot_buffer_var(c, jot_decode("idx", idx, sizeof idx)), JOT_ALL_DIMS)) == 42;
    std::printf("%s\n%d passed, %d failed, 0 skipped\n", ok ? "c++: fine" : jot_message(c), ok, !ok);
    jot_close(c);
    return !ok;
}
