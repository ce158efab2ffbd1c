/* bench/drawn/drawn.h - workloads that nobody chose: drawn from a seed, said in a line of text,
 * which bench/peers/drawn.py reads too.
 *
 *     drawn_7_product f32 64,100 0; f32 100,33 -3; matmul v0 v1; relu v2; out v3
 *
 * A line is a name and steps. A step is an operator, the values it takes (v0 is the first that was
 * made) and lists of whole numbers. A dtype makes an input of that shape: floats are uniform in
 * [-2, 2) times a power of two, integers lie in 0..n-1 plus an offset (the list behind the shape).
 * `grad` makes as many values as it has operands behind the first; `out` makes none.
 *
 * draw.c and draw_nets.c write lines, text.c reads them, build.c makes graphs of them.
 *
 * Read after: bench/work.h. */
#ifndef JOT_BENCH_DRAWN_H
#define JOT_BENCH_DRAWN_H
#include "bench/work.h"

enum { DRAWN_TEXT = 16384, DRAWN_STEPS = 400, DRAWN_OPERANDS = WORK_OUTPUTS, DRAWN_LISTS = 4 };

typedef struct {
    int op;                              /* of drawn_ops */
    int nin, in[DRAWN_OPERANDS];
    int nlist;
    jot_Ints list[DRAWN_LISTS];
    int64_t number[DRAWN_LISTS][8];
} DrawnStep;

typedef struct { int n; DrawnStep step[DRAWN_STEPS]; } DrawnProgram;

typedef struct {
    const char *name;
    jot_Var (*build)(const DrawnStep *s, const jot_Var *v); /* NULL: grad, out and inputs */
} DrawnOp;
extern const DrawnOp drawn_ops[];       /* ended by a NULL name; the dtypes come first */
enum { DRAWN_GRAD = JOT_DTYPES, DRAWN_OUT, DRAWN_OPS };

/* Line number k of the seed, of at most so many operations. */
void drawn_line(uint64_t seed, int k, double most, char *line);
/* What a line's steps say; false with a note on stderr where it makes no sense. */
bool drawn_parse(const char *steps, DrawnProgram *p);
/* Makes the graph; the number of outputs, 0 after a failure. */
int drawn_make(Bench *b, const DrawnProgram *p, jot_Var *out);

/* The workloads of the file that BENCH_DRAWN names: number k, NULL behind the last; by name. */
const Work *drawn_work(int k);
const Work *drawn_find(const char *name);
#endif
