/* layers.h - activations, losses, norms: results and gradients by PyTorch. Written by
 * tests/ref/make.py. */

#ifndef REF_LAYERS_H
#define REF_LAYERS_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>

static const double ref_leaky_relu_y[] = {
    -0.344140625, -0.040234375, 1.318359375, -0.220703125, 0.416015625, 1.935546875, -0.097265625,
    1.033203125, -0.277734375, 0.130859375, 1.650390625, -0.154296875, 0.748046875, -0.334765625,
    -0.030859375, 1.365234375, -0.211328125, 0.462890625, -0.391796875, -0.087890625, 1.080078125,
    -0.268359375, 0.177734375, 1.697265625, -0.144921875, 0.794921875, -0.325390625, -0.021484375,
    1.412109375, -0.201953125, 0.509765625, -0.382421875, -0.078515625, 1.126953125, -0.258984375
};

static const double ref_leaky_relu_0[] = {
    0.099609375, -0.384765625, -0.404296875, 0.223046875, -1.306640625, 0.212890625, 0.346484375,
    -0.689453125, 0.166015625, -1.591796875, -0.072265625, 0.289453125, -0.974609375, 0.108984375,
    -0.375390625, -0.357421875, 0.232421875, -1.259765625, 0.051953125, 0.355859375, -0.642578125,
    0.175390625, -1.544921875, -0.025390625, 0.298828125, -0.927734375, 0.118359375, -0.366015625,
    -0.310546875, 0.241796875, -1.212890625, 0.061328125, 0.365234375, -0.595703125, 0.184765625
};

/* name, inputs, their shapes, the result's, the result, gradients (NULL: none) */
typedef struct { int rank; long ext[5]; } RefShape;
typedef struct {
    const char *name;
    int inputs;
    RefShape in[5], y;
    const double *value, *grad[5];
} RefCase;
static const RefCase ref_cases[] = {
    {"leaky_relu", 1, {{2, {5, 7}}}, {2, {5, 7}}, ref_leaky_relu_y, {ref_leaky_relu_0}}
};

#endif
