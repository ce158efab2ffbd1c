/* bench/work.h - a workload: a name of the shared list, and a function that builds its graph.
 *
 * The function is called once per timed run (building is part of the work); its inputs are made on
 * the first call and found again by their number. It returns how many outputs it filled in.
 *
 * Read after: bench/bench.c (who asks), serve.c (timing), jot.c. */
#ifndef JOT_WORK_H
#define JOT_WORK_H
#include "core.h"
#include "examples/models/model.h"

enum { WORK_INPUTS = 64, WORK_OUTPUTS = 32 };

typedef struct Work Work;
typedef struct Bench Bench;
struct Bench {
    jot_Ctx *c;
    const Work *work;
    jot_Var in[WORK_INPUTS];
    bool made[WORK_INPUTS];
    Model model[2];       /* a second one for adversaries */
    jot_Optim optim[2];
    int step;             /* runs so far */
    int forms;            /* graphs that runs take in turn: the first run is one of each; 0: one */
    jot_Func func;       /* of names in _compiled: built once; inputs of the host, or of the device */
    double flops;         /* set by build where the table has none: networks count their own */
    int threads;
    Bench *inner;         /* of a row that opens contexts of its own (work_dyn.c); how they end */
    void (*close)(Bench *b);
};

struct Work {
    const char *name;
    int (*build)(Bench *b, jot_Var *out);
    int64_t a[8];       /* sizes, whatever build makes of them */
    double flops;       /* multiply-adds x 2 of contractions, 0: not one */
    double read, write; /* bytes that must move, for the floor of the rest; 0: no floor */
    jot_Var (*net)(Model *m, jot_Var x);
};

/* Tables of workloads, each ended by a NULL name; the list of tables ends with NULL. */
extern const Work work_products[], work_convs[], work_maps[], work_seeds[], work_nets[],
                  work_gans[], work_ops[], work_llm[], work_dyn[];
extern const Work *const work_tables[];
const Work *work_find(const char *name);

/* Input number k: normal f32 numbers (seeded by k), made on the first call, a parameter later. */
jot_Var work_normal(Bench *b, int k, jot_Ints shape);
jot_Var work_half(Bench *b, int k, jot_DType dtype, jot_Ints shape);  /* rounded once */
jot_Var work_scaled(Bench *b, int k, jot_Ints shape, double scale);
jot_Var work_positive(Bench *b, int k, jot_Ints shape);               /* 1 + |normal| */
jot_Var work_uniform(Bench *b, int k, jot_Ints shape);                /* [0, 1) */
jot_Var work_labels(Bench *b, int k, int64_t n, int64_t classes);     /* i64 */
/* The sum of y times fixed random numbers of its shape (input number k), differentiated by wrt;
 * out gets the sum and the gradients; returns 1 + n. */
int work_backward(Bench *b, int k, jot_Var y, int n, const jot_Var *wrt, jot_Var *out);
/* A training step of b->model[k]: gradients of loss, and an optimiser's step (made by the first
 * call): Adam of adam > 0 with that rate and beta1, else SGD 0.01 with momentum. */
void work_step(Bench *b, int k, jot_Var loss, double adam, double beta1);

#endif
