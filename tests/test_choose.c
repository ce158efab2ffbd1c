/* tests/test_choose.c - schedules by price: which list of loops is the cheapest on which machine,
 * and that each computes what it should: extents 0 and 1, odd ones, rests of lanes, gcc's vectors.
 * Set IR_SHOW to a part of a case's name to see its text. */
#include "ccode/build.h"
#include "tests/ir_cases.h"

/* A machine with vectors of so many bytes and plain caches. */
static Target
machine(int vector_nbytes)
{
    Target t;
    jot_target_default(&t);
    t.vector_nbytes = vector_nbytes;
    t.cache_nbytes[LEVEL_L1] = 32 << 10;
    t.cache_nbytes[LEVEL_L2] = 1 << 20;
    return t;
}

/* Is each of the words in the schedule ("!word": not)? run: compile, run, compare. The kernel gains
 * scratch buffers: once per case. */
static void
expect(IrCase *c, const char *what, int vector_nbytes, int cc, bool run, const char *const *word,
       int n)
{
    Target t = machine(vector_nbytes);
    Text text = {0};
    int order[KERNEL_AXES], m = jot_build_order_outer(&c->k, order);
    Sched s;
    text.mem = &ir_mem;
    CHECK(jot_sched_choose(&s, &c->k, &t, m, order), "%s: no schedule", what);
    CHECK(jot_sched_verify(&s, NULL), "%s: not legal", what);
    jot_sched_print(&s, &text);
    for (int i = 0; i < n; i++) {
        bool not = word[i][0] == '!';
        CHECK((strstr(text.s, word[i] + not) != NULL) != not, "%s: '%s' in\n%s", what, word[i],
              text.s);
    }
    if (run)
        ir_check(c, &s, "c", cc, what);
    jot_text_free(&text);
    jot_sched_close(&s);
    ir_end(c);
}

#define EXPECT(c, what, vector, cc, run, ...) do { \
        static const char *const words[] = { __VA_ARGS__ }; \
        expect(c, what, vector, cc, run, words, (int)(sizeof words / sizeof *words)); \
    } while (0)

/* ---- which ----------------------------------------------------------------------------------- */

static void
test_which(void)
{
    IrCase c;
    make_sigmoid(&c, 12);
    ir_default(&c, GCC, "the plain schedule, to compare");
    ir_end(&c);
    make_sigmoid(&c, 999);
    EXPECT(&c, "elements", 64, GCC_NATIVE, true, "0: i:1p\n", "!:1l");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows", 64, GCC_NATIVE, true, "%2: r:1p | j:32 j:1l", "%5: r:1p | j:32 j:1l");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows, narrow vectors", 16, GCC, true, "%2: r:1p | j:8 j:1l");
    make_softmax(&c, 40, 1000);
    EXPECT(&c, "rows without vectors", 0, GCC, true, "%2: r:1p | j\n", "!l");
    make_softmax(&c, 900, 7);
    EXPECT(&c, "short rows", 64, GCC_NATIVE, true, "!j:32");
    make_columns(&c, 700, 300);
    EXPECT(&c, "columns", 64, GCC_NATIVE, true, "| r j:1l", "!acc");
    make_columns(&c, 1024, 4096);
    EXPECT(&c, "panels of columns", 64, GCC_NATIVE, false, "%2: j:64p | r j:1l", "0: j:64p r j:1l");
    make_transpose(&c, 1000, 1100);
    EXPECT(&c, "transposition", 64, GCC_NATIVE, true, "p j:16 i j");
    make_transpose(&c, 10, 11);
    EXPECT(&c, "small transposition", 64, GCC_NATIVE, true, "!:16");
}

/* ---- right ----------------------------------------------------------------------------------- */

static void
test_right(int cc)
{
    static const int64_t size[] = { 0, 1, 2, 15, 31, 32, 33, 64, 97 };
    static const int vector[] = { 0, 16, 64 };
    IrCase c;
    for (size_t v = 0; v < 3; v++) {
        for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
            int64_t n = size[i], m = size[(i + v + 3) % (sizeof size / sizeof *size)];
            make_sigmoid(&c, n);
            expect(&c, "elements", vector[v], cc, true, NULL, 0);
            if (n && m) {
                make_transpose(&c, n, m);
                expect(&c, "transposition", vector[v], cc, true, NULL, 0);
                make_softmax(&c, m, n);
                expect(&c, "rows", vector[v], cc, true, NULL, 0);
                make_columns(&c, n, m);
                expect(&c, "columns", vector[v], cc, true, NULL, 0);
            }
        }
        for (int64_t stride = 1; stride < 4; stride++) {
            make_conv(&c, 2, 3, 5, 37, stride, stride == 1);
            expect(&c, "convolution", vector[v], cc, true, NULL, 0);
        }
        make_by_input(&c, 1, 9, 5, 8);
        expect(&c, "gradient by input", vector[v], cc, true, NULL, 0);
        make_by_weight(&c, 2, 3, 4, 19);
        expect(&c, "gradient by weight", vector[v], cc, true, NULL, 0);
        make_attention(&c, 2, 33, 36, 4);
        expect(&c, "attention", vector[v], cc, true, NULL, 0);
    }
}

int
main(void)
{
    ir_open();
    if (system("command -v gcc >/dev/null 2>&1") == 0) {
        test_which();
        test_right(GCC_NATIVE);
    } else
        SKIP("no gcc here");
    if (system("command -v tcc >/dev/null 2>&1") == 0)
        test_right(TCC);
    else
        SKIP("no tcc here");
    ir_close();
    return DONE();
}
