/* test_layers.c - activations, losses and norms of nn.h against PyTorch's values and gradients and
 * against finite differences to second order, on the default backend and on the interpreter.
 *
 * Guards: nn/activation.c, nn/array.c. */
#include "core.h"
#include "nn.h"
#include "tests/ref/layers.h"
#include "tests/ref/cases.h"

#define ACTIVATIONS(X) X(leaky_relu, jot_leaky_relu(in[0], 0.2))
REF_BUILDS(ACTIVATIONS)

static void
check_errors(void)
{
    ec = open_ctx();
    jot_Var m = zeros(2, 3, 5, 0, 0);
    refused(jot_glu(m, 1), JOT_ESHAPE, "glu: x: an even extent asked", "5 found");
    jot_close(ec);
}

int
main(void)
{
    if (backend_opens())
        check_references();
    backend = "interp";
    check_references();
    check_differences();
    check_errors();
    return DONE();
}
