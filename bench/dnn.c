/* bench/dnn.c - oneDNN, where it was found at build time: convolutions, forward and backward.
 *
 * Every tensor is in the layout that oneDNN likes best, as it would be in the middle of a network
 * that it planned alone; reordering from and to row-major is not in its times. */
#include <string.h>
#include "bench/system.h"

#ifdef HAVE_ONEDNN
#include <dnnl.h>

enum { STEPS = 3 }; /* forward, by input, by weight */

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t step[STEPS];
static dnnl_memory_t memory[STEPS][3]; /* source, weights, destination, or their gradients */
static int steps;
static char message[64];

static bool
ok(dnnl_status_t status)
{
    if (status != dnnl_success)
        snprintf(message, sizeof message, "oneDNN status %d", (int)status);
    return status == dnnl_success;
}

static dnnl_memory_t
tensor(dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(pd, what, 0);
    dnnl_memory_t m = NULL;
    void *p;

    if (d && ok(dnnl_memory_create(&m, d, engine, DNNL_MEMORY_ALLOCATE)) &&
        ok(dnnl_memory_get_data_handle(m, &p)))
        for (size_t i = 0; i < dnnl_memory_desc_get_size(d) / sizeof(float); i++)
            ((float *)p)[i] = (float)model_fill(1, (uint32_t)i);
    return m;
}

/* Step number steps, from a description of its kind; hint is the forward one's. */
static bool
add(const void *desc, dnnl_primitive_desc_t hint, const dnnl_query_t kinds[3],
    dnnl_primitive_desc_t *pd)
{
    if (!ok(dnnl_primitive_desc_create(pd, desc, NULL, engine, hint)) ||
        !ok(dnnl_primitive_create(&step[steps], *pd)))
        return false;
    for (int k = 0; k < 3; k++)
        memory[steps][k] = tensor(*pd, kinds[k]);
    steps++;
    return true;
}

static bool
convolution(const int64_t *a, bool backward)
{
    /* a: channels in, out, image side, kernel, stride, padding, groups */
    static const dnnl_query_t kinds[STEPS][3] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
    };
    int64_t out = (a[2] + 2 * a[5] - a[3]) / a[4] + 1, g = a[6];
    dnnl_dims_t xs = {8, a[0], a[2], a[2]}, ys = {8, a[1], out, out};
    dnnl_dims_t ws = {a[1], a[0], a[3], a[3]}, gs = {g, a[1] / g, a[0] / g, a[3], a[3]};
    dnnl_dims_t strides = {a[4], a[4]}, pad = {a[5], a[5]};
    dnnl_memory_desc_t x, w, y;
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t pd[STEPS];
    dnnl_prop_kind_t prop = backward ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_alg_kind_t algorithm = dnnl_convolution_auto;

    dnnl_memory_desc_init_by_tag(&x, 4, xs, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&w, g > 1 ? 5 : 4, g > 1 ? gs : ws, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&y, 4, ys, dnnl_f32, dnnl_format_tag_any);
    if (!ok(dnnl_convolution_forward_desc_init(&d, prop, algorithm, &x, &w, NULL, &y, strides, pad,
                                               pad)) ||
        !add(&d, NULL, kinds[0], &pd[0]))
        return false;
    return !backward ||
           (ok(dnnl_convolution_backward_data_desc_init(&d, algorithm, &x, &w, &y, strides, pad,
                                                        pad)) &&
            add(&d, pd[0], kinds[1], &pd[1]) &&
            ok(dnnl_convolution_backward_weights_desc_init(&d, algorithm, &x, &w, NULL, &y, strides,
                                                           pad, pad)) &&
            add(&d, pd[0], kinds[2], &pd[2]));
}

static void
close_work(void)
{
    for (int s = 0; s < steps; s++) {
        dnnl_primitive_destroy(step[s]);
        for (int k = 0; k < 3; k++)
            dnnl_memory_destroy(memory[s][k]);
    }
    steps = 0;
}

/* The number of threads is OMP_NUM_THREADS, which the runner sets. */
static int
open_work(const Work *w, int threads)
{
    bool forward = !strncmp(w->name, "conv_", 5) && strcmp(w->name, "conv_bn_relu_64_56");
    bool backward = !strncmp(w->name, "convbwd_", 8);

    (void)threads;
    if (!forward && !backward)
        return 0;
    if (!engine && (!ok(dnnl_engine_create(&engine, dnnl_cpu, 0)) ||
                    !ok(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags))))
        return -1;
    if (convolution(w->a, backward))
        return 1;
    close_work();
    return -1;
}

static bool
run(void)
{
    static const int names[STEPS][3] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };

    for (int s = 0; s < steps; s++) {
        dnnl_exec_arg_t arg[3];

        for (int k = 0; k < 3; k++) {
            arg[k].arg = names[s][k];
            arg[k].memory = memory[s][k];
        }
        if (!ok(dnnl_primitive_execute(step[s], stream, 3, arg)))
            return false;
    }
    return ok(dnnl_stream_wait(stream));
}

static const char *
why(void)
{
    return message;
}

const System system_onednn = {"onednn", NULL, open_work, run, close_work, NULL, why};
#else
const System system_onednn = {
    "onednn", "no dnnl.h of oneDNN 2 here (apt install libdnnl-dev)", NULL, NULL, NULL, NULL, NULL
};
#endif
