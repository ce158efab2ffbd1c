/* 19_read.c - text in a picture is found, turned upright and read by models in ONNX's format.
 *
 *     19_read [PICTURE] FOLDER            a folder with one *_det_*, one *_cls_* and one *_rec_*
 *     19_read [PICTURE] DET CLS REC       .onnx files
 *
 * The models are PaddleOCR's, as the Python package rapidocr brings them: one says for each pixel
 * whether it is text, one whether a line stands upside down, one reads it. What is before, between
 * and behind is here: pictures are cut, scaled and turned by expressions of jot; the detector's
 * pixels become boxes and the reader's classes letters in C.
 *
 * Boxes are upright rectangles: lines that lean are not straightened. Without PICTURE (PNG or JPEG)
 * the program draws one, two lines of which the second is upside down; without models that is all
 * it does.
 *
 * Read find, turn and read_line, then boxes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "data.h"
#include "onnx.h"

enum {
    HEIGHT = 48, TURN_WIDTH = 192,           /* of lines, as the models were trained */
    READ_WIDTH = 320, STEP = 32, WIDEST = 3200, /* ... at least, in steps, at most */
    SHORTER = 736, LONGER = 2016,            /* of the detector's picture: at least, at most */
    ZOOM = 7, MARGIN = 60                    /* of the picture that is drawn: pixels */
};

/* ---- a picture of one's own --------------------------------------------------------------- */

static const char *const drawn[2] = {"HELLO FROM C", "JOT READS 1984"};
static const char *const own = "out/line.png";

/* Letters of 5 x 7 dots, rows of 5 bits from the top. */
static const struct { char letter; uint8_t row[7]; } font[] = {
    {'A', {016, 021, 021, 037, 021, 021, 021}}, {'C', {016, 021, 020, 020, 020, 021, 016}},
    {'D', {036, 021, 021, 021, 021, 021, 036}}, {'E', {037, 020, 020, 036, 020, 020, 037}},
    {'F', {037, 020, 020, 036, 020, 020, 020}}, {'H', {021, 021, 021, 037, 021, 021, 021}},
    {'J', {007, 002, 002, 002, 002, 022, 014}}, {'L', {020, 020, 020, 020, 020, 020, 037}},
    {'M', {021, 033, 025, 025, 021, 021, 021}}, {'O', {016, 021, 021, 021, 021, 021, 016}},
    {'R', {036, 021, 021, 036, 024, 022, 021}}, {'S', {016, 021, 020, 016, 001, 021, 016}},
    {'T', {037, 004, 004, 004, 004, 004, 004}}, {'1', {004, 014, 004, 004, 004, 004, 016}},
    {'4', {002, 006, 012, 022, 037, 002, 002}}, {'8', {016, 021, 021, 016, 021, 021, 016}},
    {'9', {016, 021, 021, 017, 001, 001, 016}}};

/* A line of dots, 1 for ink, as pixels (1, 1, h, w): between the middles of dots ink fades, and
 * where it has faded by half is the edge, which so has round corners. */
static jot_Var
draw_line(jot_Ctx *c, const char *text, int letters)
{
    float dot[9][6 * 16 + 2] = {{0}};
    int wide = 6 * letters + 1;

    for (int k = 0; text[k]; k++)
        for (size_t f = 0; f < sizeof font / sizeof *font; f++)
            for (int p = 0; p < 35 && font[f].letter == text[k]; p++)
                dot[1 + p / 5][1 + 6 * k + p % 5] = (float)(font[f].row[p / 5] >> (4 - p % 5) & 1);
    jot_Var ink = jot_array(c, JOT_F32, JOT_SHAPE(1, 1, 9, 6 * 16 + 2), dot);
    ink = jot_resize(jot_slice_dim(ink, 3, 0, wide, 1),
                     &(jot_Resize){.mode = JOT_LINEAR, .size = {9 * ZOOM, wide * ZOOM}});
    return jot_clamp(jot_offset(jot_scale(jot_offset(ink, -0.4), 4), 0.5), 0, 1);
}

/* The picture is written; false: c says why. */
static bool
draw(jot_Ctx *c)
{
    int letters = (int)strlen(drawn[1]);
    jot_Ints around = JOT_SHAPE(0, 0, MARGIN, MARGIN);
    jot_Var line[2] = {draw_line(c, drawn[0], letters), draw_line(c, drawn[1], letters)};

    line[1] = jot_flip(line[1], JOT_INTS(2, 3));
    for (int k = 0; k < 2; k++)
        line[k] = jot_pad(line[k], around, around, 0);
    jot_Var paper = jot_offset(jot_scale(jot_concat(jot_vars(2, line), 2), -225), 240);
    mkdir("out", 0755);
    return jot_write_png(jot_cast(jot_squeeze(paper, 0), JOT_U8), own);
}

/* ---- running a model ------------------------------------------------------------------------ */

typedef struct { jot_Onnx *find, *turn, *read; } Models;

/* Numbers 0 to 255 as the models take them: -1 to 1. */
static jot_Var
as_input(jot_Var x)
{
    return jot_offset(jot_scale(x, 2.0 / 255), -1);
}

/* One image in, one array of floats of this rank out; false: c says why. */
static bool
run_model(jot_Ctx *c, jot_Onnx *m, const char *what, jot_Var x, int rank, jot_Tensor *out)
{
    jot_Tensor in = {JOT_F32, jot_shape(x), (void *)(uintptr_t)jot_data(x),
                     (size_t)jot_nelem(x) * sizeof(float)};

    if (jot_error(c) || !jot_onnx_run(m, &in, 1, out, 1))
        return false;
    if (out->dtype != JOT_F32 || out->shape.n != rank || out->shape.v[0] != 1)
        jot_raise(c, JOT_EUSE, "%s is another model: of an image it makes %s of %d dimensions, f32 "
                  "of %d asked", what, jot_dtype_name(out->dtype), out->shape.n, rank);
    return !jot_error(c);
}

static jot_Var
resized(jot_Var x, int64_t height, int64_t width)
{
    return jot_resize(x, &(jot_Resize){.mode = JOT_LINEAR, .size = {(int)height, (int)width}});
}

/* ---- where text is -------------------------------------------------------------------------- */

typedef struct { int top, left, bottom, right, row; } Box; /* bottom and right are outside */
typedef struct { Box *v; int n; } Boxes;

static int
multiple_of_32(double pixels)
{
    int n = (int)(pixels / 32 + 0.5) * 32;
    return n < 32 ? 32 : n;
}

/* From a place of text all that touch it, which are no text afterwards. stack: room for all. */
static Box
component(bool *text, int *stack, int height, int width, int from)
{
    Box b = {height, width, 0, 0, 0};
    int n = 0;

    stack[n++] = from;
    text[from] = false;
    while (n) {
        int at = stack[--n], y = at / width, x = at % width;
        b.top = y < b.top ? y : b.top, b.bottom = y >= b.bottom ? y + 1 : b.bottom;
        b.left = x < b.left ? x : b.left, b.right = x >= b.right ? x + 1 : b.right;
        for (int v = y ? y - 1 : 0; v <= y + 1 && v < height; v++)
            for (int u = x ? x - 1 : 0; u <= x + 1 && u < width; u++)
                if (text[v * width + u]) {
                    text[v * width + u] = false;
                    stack[n++] = v * width + u;
                }
    }
    return b;
}

/* The detector marks the middle of a line: the box grows by 1.6 times area / circumference. What is
 * small, or no text in the mean, is none. In pixels of a picture of h x w. */
static bool
grown(Box *b, const float *p, int height, int width, int64_t h, int64_t w)
{
    double tall = b->bottom - b->top, wide = b->right - b->left, sum = 0;
    double by = 1.6 * tall * wide / (2 * (tall + wide));
    double up = (double)h / height, across = (double)w / width;

    for (int y = b->top; y < b->bottom; y++)
        for (int x = b->left; x < b->right; x++)
            sum += (double)p[y * width + x];
    if (tall < 3 || wide < 3 || sum < 0.5 * tall * wide)
        return false;
    double top = (b->top - by) * up, bottom = (b->bottom + by) * up;
    double left = (b->left - by) * across, right = (b->right + by) * across;
    b->top = top < 0 ? 0 : (int)(top + 0.5), b->left = left < 0 ? 0 : (int)(left + 0.5);
    b->bottom = bottom > (double)h ? (int)h : (int)(bottom + 0.5);
    b->right = right > (double)w ? (int)w : (int)(right + 0.5);
    return b->bottom - b->top > 3 && b->right - b->left > 3;
}

static int
by_top(const void *a, const void *b)
{
    const Box *x = a, *y = b;
    return (x->top > y->top) - (x->top < y->top);
}

static int
by_row(const void *a, const void *b)
{
    const Box *x = a, *y = b;
    return x->row != y->row ? x->row - y->row : (x->left > y->left) - (x->left < y->left);
}

/* Boxes of the detector's probabilities (height, width), rows from the top, each from the left: in
 * a row is what begins above the middle of its highest. */
static bool
boxes(const float *p, int height, int width, int64_t h, int64_t w, Boxes *out)
{
    int n = height * width, room = 0;
    bool *text = malloc((size_t)n * sizeof *text);
    int *stack = malloc((size_t)n * sizeof *stack);
    bool ok = text && stack;

    for (int k = 0; ok && k < n; k++)
        text[k] = p[k] > 0.3f;
    for (int k = 0; ok && k < n; k++) {
        Box *more, b;
        if (!text[k] || (b = component(text, stack, height, width, k),
                         !grown(&b, p, height, width, h, w)))
            continue;
        if (out->n == room) {
            room = room ? 2 * room : 16;
            if (!(more = realloc(out->v, (size_t)room * sizeof *more))) {
                ok = false;
                break;
            }
            out->v = more;
        }
        out->v[out->n++] = b;
    }
    free(text);
    free(stack);
    if (out->n)
        qsort(out->v, (size_t)out->n, sizeof *out->v, by_top);
    for (int k = 1, first = 0; k < out->n; k++) {
        if (2 * out->v[k].top > out->v[first].top + out->v[first].bottom)
            first = k;
        out->v[k].row = first;
    }
    if (out->n)
        qsort(out->v, (size_t)out->n, sizeof *out->v, by_row);
    return ok;
}

/* Text in an image (1, 3, h, w), blue first: 736 pixels on the shorter side, if the longer one then
 * has no more than 2016, multiples of 32. */
static bool
find(jot_Ctx *c, const Models *m, jot_Var image, Boxes *out)
{
    int64_t h = jot_extent(image, 2), w = jot_extent(image, 3);
    double shorter = (double)(h < w ? h : w), longer = (double)(h < w ? w : h), by = 1;
    jot_Tensor y;

    if (shorter < SHORTER)
        by = SHORTER / shorter;
    if (by * longer > LONGER)
        by = LONGER / longer;
    int height = multiple_of_32((double)h * by), width = multiple_of_32((double)w * by);
    jot_Var x = as_input(resized(image, height, width));
    if (!run_model(c, m->find, "the detector", x, 4, &y))
        return false;
    if (y.shape.v[1] != 1 || y.shape.v[2] != height || y.shape.v[3] != width)
        jot_raise(c, JOT_EUSE, "the detector is another model: one number for each of %d x %d "
                  "pixels asked, (%d, %d, %d) found", height, width, (int)y.shape.v[1],
                  (int)y.shape.v[2], (int)y.shape.v[3]);
    else if (!boxes(y.data, height, width, h, w, out))
        jot_raise(c, JOT_EMEM, "no memory for boxes");
    return !jot_error(c);
}

/* ---- what it says --------------------------------------------------------------------------- */

/* A line (1, 3, h, w) scaled to HEIGHT, at most `width` wide; 0, grey, is behind it. */
static jot_Var
fitted(jot_Var line, int64_t width)
{
    int64_t h = jot_extent(line, 2), w = (HEIGHT * jot_extent(line, 3) + h - 1) / h;
    w = w < width ? w : width;
    return jot_pad(as_input(resized(line, HEIGHT, w)), JOT_INTS(0, 0, 0, 0),
                   JOT_INTS(0, 0, 0, width - w), 0);
}

/* The line, by 180 degrees where it is upside down. */
static jot_Var
turn(jot_Ctx *c, const Models *m, jot_Var line)
{
    jot_Tensor y;

    if (!run_model(c, m->turn, "the model of directions", fitted(line, TURN_WIDTH), 2, &y))
        return line;
    if (y.shape.v[1] != 2)
        return jot_raise(c, JOT_EUSE, "the model of directions is another: 2 directions asked, %d "
                         "found", (int)y.shape.v[1]);
    return ((const float *)y.data)[1] > 0.9f ? jot_flip(line, JOT_INTS(2, 3)) : line;
}

typedef struct { const char **at; int n; } Letters; /* at[k]: up to the end of its line */

/* The reader's letters stand in the model, a line each. */
static bool
letters(jot_Ctx *c, const Models *m, Letters *out)
{
    const char *all = jot_onnx_metadata(m->read, "character"), *s;
    int n = 1;

    if (!all)
        return jot_raise(c, JOT_EUSE, "the reader is another model: letters asked in its metadata "
                         "(character), none found"), false;
    for (s = all; (s = strchr(s, '\n')); s++)
        n++;
    if (!(out->at = malloc((size_t)n * sizeof *out->at)))
        return jot_raise(c, JOT_EMEM, "no memory for %d letters", n), false;
    for (s = all; out->n < n; s += strcspn(s, "\n") + 1)
        out->at[out->n++] = s;
    return true;
}

/* Prints what a line (1, 3, h, w) says, and the mean probability of its letters. Class 0 is none,
 * and a class that follows itself the same letter; behind the letters is the space. */
static bool
read_line(jot_Ctx *c, const Models *m, const Letters *l, jot_Var line)
{
    int64_t width = HEIGHT * jot_extent(line, 3) / jot_extent(line, 2);
    int classes = l->n + 2, last = 0, n = 0, best;
    double sum = 0;
    jot_Tensor y;

    width = (width < READ_WIDTH ? READ_WIDTH : width < WIDEST ? width : WIDEST) + STEP - 1;
    width -= width % STEP;
    if (!run_model(c, m->read, "the reader", fitted(line, width), 3, &y))
        return false;
    if (y.shape.v[2] != classes)
        return jot_raise(c, JOT_EUSE, "the reader is another model: %d letters, %d classes asked, "
                         "%d found", l->n, classes, (int)y.shape.v[2]), false;
    char *text = malloc((size_t)y.shape.v[1] * 8 + 1), *to = text;
    if (!text)
        return jot_raise(c, JOT_EMEM, "no memory for a line"), false;
    for (int64_t t = 0; t < y.shape.v[1]; t++, last = best) {
        const float *p = (const float *)y.data + t * classes;
        best = 0;
        for (int k = 1; k < classes; k++)
            best = p[k] > p[best] ? k : best;
        if (!best || best == last)
            continue;
        const char *letter = best <= l->n ? l->at[best - 1] : " ";
        size_t nbytes = strcspn(letter, "\n");
        nbytes = nbytes < 8 ? nbytes : 8;
        to = (char *)memcpy(to, letter, nbytes) + nbytes;
        sum += (double)p[best];
        n++;
    }
    *to = 0;
    if (n)
        printf("%.3f  %s\n", sum / n, text);
    free(text);
    return true;
}

/* All lines of a picture; false: c says why. */
static bool
read_picture(jot_Ctx *c, const Models *m, const char *path)
{
    /* rows (channels, h, w), red first; the models were trained with blue first */
    jot_Var image = jot_buffer_var(c, jot_image_fit(jot_read(path), 3, 0, 0));
    image = jot_cast(jot_flip(jot_unsqueeze(image, 0), JOT_INTS(1)), JOT_F32);
    Letters l = {NULL, 0};
    Boxes found = {NULL, 0};
    bool ok = jot_run(c, JOT_VARS(image)) && letters(c, m, &l) && find(c, m, image, &found);

    for (int k = 0; ok && k < found.n; k++) {
        Box b = found.v[k];
        jot_push(c);
        jot_Var line = jot_slice_dim(jot_slice_dim(image, 2, b.top, b.bottom, 1), 3, b.left,
                                     b.right, 1);
        if (2 * (b.bottom - b.top) >= 3 * (b.right - b.left)) /* from the bottom to the top */
            line = jot_flip(jot_swap(line, 2, 3), JOT_INTS(2));
        line = turn(c, m, line);
        ok = !jot_error(c) && read_line(c, m, &l, line);
        jot_pop(c);
    }
    if (ok && !found.n)
        printf("%s: no text was found\n", path);
    free(found.v);
    free(l.at);
    return ok;
}

/* ---- the command line ----------------------------------------------------------------------- */

static bool
is_folder(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* The one model of a folder whose name has `word` in it. */
static bool
model_in(const char *folder, const char *word, char path[4096])
{
    DIR *d = opendir(folder);
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        size_t nbytes = strlen(e->d_name);
        if (nbytes > 5 && !strcmp(e->d_name + nbytes - 5, ".onnx") && strstr(e->d_name, word)
            && snprintf(path, 4096, "%s/%s", folder, e->d_name) < 4096)
            n++;
    }
    if (d)
        closedir(d);
    if (n != 1)
        fprintf(stderr, "%s: one model *%s*.onnx asked, %d found\n", folder, word, n);
    return n == 1;
}

int
main(int argc, char **argv)
{
    static char path[3][4096];
    static const char *const word[3] = {"_det_", "_cls_", "_rec_"};
    bool folder = argc > 1 && argc < 4 && is_folder(argv[argc - 1]);
    const char *picture = argc == 5 || (folder && argc == 3) ? argv[1] : own;
    const char *no = argc > 1 ? jot_onnx_missing() : "";

    if (argc > 1 && !folder && argc != 4 && argc != 5) {
        fprintf(stderr, "%s [PICTURE] FOLDER, or %s [PICTURE] DET CLS REC: a folder with models, "
                "or three .onnx files\n", argv[0], argv[0]);
        return 2;
    }
    if (picture == own && *jot_reads("png"))
        no = jot_reads("png");
    if (*no) {
        fprintf(stderr, "%s\n", no);
        return argc > 1;
    }
    for (int k = 0; k < 3; k++)
        if (folder && !model_in(argv[argc - 1], word[k], path[k]))
            return 1;
    jot_Ctx *c = jot_open(NULL);
    if (picture == own && draw(c))
        printf("%s: \"%s\", and \"%s\" upside down\n", own, drawn[0], drawn[1]);
    if (argc > 1) {
        Models m = {NULL, NULL, NULL};
        jot_Onnx **to[3] = {&m.find, &m.turn, &m.read};
        bool ok = !jot_error(c);
        for (int k = 0; ok && k < 3; k++)
            ok = (*to[k] = jot_onnx_load(c, folder ? path[k] : argv[argc - 3 + k])) != NULL;
        if (ok)
            read_picture(c, &m, picture);
        for (int k = 0; k < 3; k++)
            jot_onnx_free(*to[k]);
    } else
        printf("it is read by %s FOLDER, a folder with models: PaddleOCR's in ONNX's format, such "
               "as the Python package rapidocr has in rapidocr/models\n%s%s", argv[0],
               jot_onnx_missing(), *jot_onnx_missing() ? "\n" : "");
    bool failed = jot_error(c) != JOT_OK;
    if (failed)
        fprintf(stderr, "%s\n", jot_message(c));
    jot_close(c);
    return failed;
}
