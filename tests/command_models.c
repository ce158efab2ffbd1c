/* tests/command_models.c - the files that tests/test_command.sh gives the command: networks as
 * jot_save writes them, an input, and what PyTorch would call the expected output.
 *
 *     command_models FOLDER
 *
 * Read before: tests/test_command.sh. */
#include <stdio.h>
#include <string.h>
#include "data.h"
#include "examples/models/model.h"
#include "io.h"
#include "onnx.h"
#include "tests/ref/onnx_models.h"

static jot_Ctx *c;
static const char *folder;

static const char *
in_folder(const char *name)
{
    static char path[4][600];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void
write_one(const char *file, const char *name, jot_Var v)
{
    jot_Named named;

    snprintf(named.name, sizeof named.name, "%s", name);
    named.var = v;
    jot_file_write(c, in_folder(file), &named, 1, NULL);
}

/* lenet for a batch of 1; its step for one of 4. */
static void
networks(void)
{
    static float pixels[28 * 28];
    static int32_t label[4] = {1, 2, 3, 4};
    static jot_Var g[MODEL_PARAMS];
    static Model m;
    jot_Var x, y, loss;

    for (int i = 0; i < 28 * 28; i++)
        pixels[i] = (float)model_fill(7, (uint32_t)i);
    x = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 28, 28), pixels);
    jot_name(x, "image");
    model_begin(&m, c, false);
    y = jot_softmax(lenet(&m, x), 1);
    for (int k = 0; k < m.n; k++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%d.weight", k);
        jot_name(m.p[k], name);
    }
    jot_name(y, "class");
    jot_save(c, JOT_VARS(x), JOT_VARS(y), in_folder("lenet.jot"));
    write_one("image.npy", "", x);
    write_one("class.npy", "", y);
    write_one("wrong.npy", "", jot_offset(y, 0.5));
    write_one("two.safetensors", "image", x);
    jot_Var images = jot_array(c, JOT_F32, JOT_SHAPE(4, 1, 28, 28), NULL);
    jot_Var labels = jot_array(c, JOT_I32, JOT_SHAPE(4), label);
    model_begin(&m, c, true);
    loss = jot_cross_entropy(lenet(&m, images), labels);
    jot_grad(loss, jot_vars(m.n, m.p), g);
    jot_step(jot_sgd(jot_vars(m.n, m.p), 0.01, 0.9, 0), jot_vars(m.n, g));
    jot_name(loss, "loss");
    jot_save(c, JOT_VARS(images, labels), JOT_VARS(loss), in_folder("step.jot"));
    jot_raise(c, JOT_EUSE, "the step is not run");
    jot_clear(c);
    write_one("step_images.npy", "", images);
    write_one("step_labels.npy", "", labels);
}

/* A photo, and what the network makes of it where it is (value / 255 - 0.5) / 0.25. */
static void
photo(void)
{
    static uint8_t pixel[28 * 28];
    static Model m;
    jot_Var p, x;

    if (*jot_reads("png"))
        return;
    for (int i = 0; i < 28 * 28; i++)
        pixel[i] = (uint8_t)(i * 7);
    p = jot_array(c, JOT_U8, JOT_SHAPE(1, 28, 28), pixel);
    jot_write_png(p, in_folder("photo.png"));
    x = jot_scale(jot_offset(jot_scale(jot_cast(p, JOT_F32), 1.0 / 255), -0.5), 4);
    model_begin(&m, c, false);
    write_one("photo_class.npy", "", jot_softmax(lenet(&m, jot_unsqueeze(x, 0)), 1));
}

/* Outputs 2, 0, 1, and what is near them and not so near. */
static void
sums(void)
{
    static const float in[] = {1, 0, 0.5f}, near[] = {2, 1e-6f, 1}, far[] = {2, 4e-6f, 1};
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), in);

    jot_save(c, JOT_VARS(x), JOT_VARS(jot_add(x, x)), in_folder("sum.jot"));
    write_one("sum_in.npy", "", x);
    write_one("near.npy", "", jot_array(c, JOT_F32, JOT_SHAPE(3), near));
    write_one("far.npy", "", jot_array(c, JOT_F32, JOT_SHAPE(3), far));
}

/* A map in the user's own C. */
static void
code(void)
{
    jot_Var x = jot_array(c, JOT_F32, JOT_SHAPE(3), NULL);

    jot_save(c, JOT_VARS(x), JOT_VARS(jot_code_map("a + 1", JOT_VARS(x), JOT_F32, NULL)),
             in_folder("code.jot"));
    jot_save(c, JOT_VARS(x), JOT_VARS(jot_argsort(x, 0, false)), in_folder("sort.jot"));
}

/* Models of ONNX, where the command reads such: one whose batch is open, one whose result has the
 * shape that an input says. */
static void
onnx(void)
{
    static const char *const names[][2] = {{"mlp", "mlp.onnx"}, {"shape_input", "shape.onnx"}};

    for (int i = 0; i < 2 && !*jot_onnx_missing(); i++) {
        FILE *f = fopen(in_folder(names[i][1]), "wb");

        for (size_t k = 0; f && k < sizeof ref_onnx / sizeof *ref_onnx; k++)
            if (!strcmp(ref_onnx[k].name, names[i][0]))
                fwrite(ref_onnx[k].model, 1, ref_onnx[k].nbytes, f);
        if (f)
            fclose(f);
    }
    write_one("rows.npy", "", jot_iota(c, JOT_F32, JOT_SHAPE(5, 3), 1));
    write_one("flat.npy", "", jot_iota(c, JOT_F32, JOT_SHAPE(2, 6), 1));
    write_one("three.npy", "", jot_array(c, JOT_I64, JOT_SHAPE(2), (int64_t[]){3, -1}));
}

int
main(int argc, char **argv)
{
    jot_Config config = {.backend = "interp"};

    folder = argc > 1 ? argv[1] : ".";
    c = jot_open(&config);
    networks();
    photo();
    sums();
    code();
    onnx();
    if (jot_error(c))
        fprintf(stderr, "%s\n", jot_message(c));
    return jot_error(c) != JOT_OK;
}
