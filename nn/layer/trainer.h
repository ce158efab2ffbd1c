/* nn/layer/trainer.h - a trainer's record, for its steps and for its state.
 *
 * Read before: nn/layer/net.h. After: nn/layer/trainer.c. */
#ifndef JOT_LAYER_TRAINER_H
#define JOT_LAYER_TRAINER_H
#include "nn/layer/net.h"

/* Scalars of its own, beside the optimiser's; those that it does not need are empty handles. */
enum { TRAIN_UPDATES, TRAIN_SKIPPED, TRAIN_SCALE, TRAIN_GOOD, TRAIN_COUNT, TRAIN_SCALARS };

typedef struct {
    jot_Ctx *ctx;
    jot_Var bytes;
    jot_Net net;
    jot_Optim optim;
    jot_Training how;
    bool guarded, scaled;  /* updates may be left out; losses are multiplied */
    int n;                 /* parameters */
    jot_Var scalar[TRAIN_SCALARS];
    /* lists of n, in `list`; averages and sums are empty handles where there are none */
    jot_Var *param, *average, *sum, *grad;
    jot_Var *target, *value; /* 2 n and TRAIN_SCALARS each: what a step assigns itself */
    jot_Var list[];
} Trainer;

static const char *const train_names[TRAIN_SCALARS] = {
    "train.updates", "train.skipped", "train.scale", "train.good", "train.count"
};

static inline Trainer *
train_of(jot_Trainer trainer, const char *op)
{
    jot_Ctx *ctx = trainer.state.ctx;
    return ctx && jot_check(ctx, trainer.state, op, "trainer") ? trainer.record : NULL;
}

#endif
