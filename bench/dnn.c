/* bench/dnn.c - oneDNN, where it was found at build time: convolutions, forward and backward.
 *
 * Two systems. onednn has every tensor in the layout that it likes best, as in the middle of a
 * network that it planned alone. onednn-rowmajor does the work that jot is asked for here: images
 * come and results go in the user's order, so each is reordered within the time; weights are
 * reordered once, as jot packs them once.
 *
 *     x (nchw) -reorder-> x' -convolution-> y' -reorder-> y (nchw) */
#include <string.h>
#include "bench/system.h"

#ifdef HAVE_ONEDNN
#include <dnnl.h>

enum { STEPS = 3, REORDERS = 2 * STEPS }; /* forward, by input, by weight */

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t step[STEPS];
static dnnl_memory_t memory[STEPS][3]; /* source, weights, destination, or their gradients */
static int steps;
static struct { dnnl_primitive_t run; dnnl_memory_t from, to; } reorder[REORDERS];
static int before, reorders;   /* those of images come first */
static bool rowmajor;
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

/* The same tensor in the user's order, and what brings it from there, or there. */
static bool
add_reorder(dnnl_memory_t own, const dnnl_memory_desc_t *user, bool in)
{
    dnnl_memory_t plain = NULL;
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_memory_desc_t *d;
    bool fine;

    if (!own || !ok(dnnl_memory_get_memory_desc(own, &d)))
        return false;
    if (dnnl_memory_desc_equal(d, user))
        return true;
    if (!ok(dnnl_memory_create(&plain, user, engine, DNNL_MEMORY_ALLOCATE)))
        return false;
    reorder[reorders].from = in ? plain : own;
    reorder[reorders].to = in ? own : plain;
    fine = ok(dnnl_reorder_primitive_desc_create(&pd, in ? user : d, engine, in ? d : user, engine,
                                                 NULL)) &&
           ok(dnnl_primitive_create(&reorder[reorders].run, pd));
    dnnl_primitive_desc_destroy(pd);
    reorders++;
    return fine;
}

/* x and y of forward, or their gradients and that of the weights; a tensor read twice in one layout
 * is reordered once. */
static bool
add_reorders(bool backward, const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *w,
             const dnnl_memory_desc_t *y)
{
    bool fine = add_reorder(memory[0][0], x, true) &&
                (!backward || add_reorder(memory[2][2], y, true));

    before = reorders;
    return fine && (backward ? add_reorder(memory[1][0], x, false) &&
                               add_reorder(memory[2][1], w, false)
                             : add_reorder(memory[0][2], y, false));
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
    if (backward &&
        (!ok(dnnl_convolution_backward_data_desc_init(&d, algorithm, &x, &w, &y, strides, pad,
                                                      pad)) ||
         !add(&d, pd[0], kinds[1], &pd[1]) ||
         !ok(dnnl_convolution_backward_weights_desc_init(&d, algorithm, &x, &w, NULL, &y, strides,
                                                         pad, pad)) ||
         !add(&d, pd[0], kinds[2], &pd[2])))
        return false;
    dnnl_memory_desc_init_by_tag(&x, 4, xs, dnnl_f32, dnnl_nchw);
    dnnl_memory_desc_init_by_tag(&w, g > 1 ? 5 : 4, g > 1 ? gs : ws, dnnl_f32,
                                 g > 1 ? dnnl_goihw : dnnl_oihw);
    dnnl_memory_desc_init_by_tag(&y, 4, ys, dnnl_f32, dnnl_nchw);
    return !rowmajor || add_reorders(backward, &x, &w, &y);
}

static void
close_work(void)
{
    for (int s = 0; s < steps; s++) {
        dnnl_primitive_destroy(step[s]);
        for (int k = 0; k < 3; k++)
            dnnl_memory_destroy(memory[s][k]);
    }
    for (int r = 0; r < reorders; r++) {
        dnnl_primitive_destroy(reorder[r].run);
        dnnl_memory_destroy(r < before ? reorder[r].from : reorder[r].to);
    }
    memset(reorder, 0, sizeof reorder);
    steps = reorders = before = 0;
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

static int
open_rowmajor(const Work *w, int threads)
{
    rowmajor = true;
    return open_work(w, threads);
}

static bool
run_reorders(int from, int to)
{
    for (int r = from; r < to; r++) {
        dnnl_exec_arg_t arg[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};

        arg[0].memory = reorder[r].from;
        arg[1].memory = reorder[r].to;
        if (!ok(dnnl_primitive_execute(reorder[r].run, stream, 2, arg)))
            return false;
    }
    return true;
}

static bool
run(void)
{
    static const int names[STEPS][3] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };

    if (!run_reorders(0, before))
        return false;
    for (int s = 0; s < steps; s++) {
        dnnl_exec_arg_t arg[3];

        for (int k = 0; k < 3; k++) {
            arg[k].arg = names[s][k];
            arg[k].memory = memory[s][k];
        }
        if (!ok(dnnl_primitive_execute(step[s], stream, 3, arg)))
            return false;
    }
    return run_reorders(before, reorders) && ok(dnnl_stream_wait(stream));
}

static const char *
why(void)
{
    return message;
}

const System system_onednn = {"onednn", NULL, open_work, run, close_work, NULL, why};
const System system_onednn_rowmajor = {
    "onednn-rowmajor", NULL, open_rowmajor, run, close_work, NULL, why
};
#else
#define NO_ONEDNN "no dnnl.h of oneDNN 2 here (apt install libdnnl-dev)"
const System system_onednn = {"onednn", NO_ONEDNN, NULL, NULL, NULL, NULL, NULL};
const System system_onednn_rowmajor = {"onednn-rowmajor", NO_ONEDNN, NULL, NULL, NULL, NULL, NULL};
#endif
