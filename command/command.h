/* command/command.h - jot, the command: what its parts share.
 *
 *     main.c      the table of commands, options, messages, exit codes
 *     model.c     models by their files, one row for each kind; batches; onnx.c: ONNX's; open.c:
 *                 functions of any size within bounds
 *     values.c    inputs out of files (tensors, images, sound), outputs into files, comparison
 *     info.c      info, cache          run.c     run, check          bench.c   bench
 *     files.c     export, convert      draw.c    draw                picture.c its pictures
 *
 * On the public headers alone. A command returns its exit code; what it finds out it says on
 * standard output, as text or (--json) as one object of JSON, and what went wrong on standard
 * error, with what to do.
 *
 * Read before: core.h, io.h, data.h. After: main.c. */
#ifndef JOT_COMMAND_H
#define JOT_COMMAND_H
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "data.h"
#include "io.h"

/* ---- exit codes ---- */
enum {
    DONE_WELL = 0,
    DIFFERS = 1,      /* check: an output is not what was expected */
    WRONG_USE = 2,    /* of the command line */
    WRONG_FILE = 3,   /* a file that is not there, damaged, or of a kind that this build lacks */
    FAILED = 4        /* while it ran */
};

/* ---- the command line (main.c) ---- */
enum { OPTIONS = 64, FILES = 4 };
typedef struct {
    const char *command;
    const char *file[FILES]; /* arguments that are no options */
    int files;
    struct { const char *name, *value; } option[OPTIONS];
    int options;
    bool json;
} Args;
/* The value of an option, the last one given; `otherwise` where it was not. */
const char *args_text(const Args *a, const char *name, const char *otherwise);
bool args_has(const Args *a, const char *name);
/* The k-th value of an option that may be given several times; NULL: there are no more. */
const char *args_each(const Args *a, const char *name, int k);
/* "1,8" as whole numbers of at least lo. How many, 0 after a message. */
int args_numbers(const Args *a, const char *name, const char *otherwise, int64_t lo, int64_t *to,
                 int most);
/* The same of a text that stands in the option. */
int numbers_in(const Args *a, const char *name, const char *text, int64_t lo, int64_t *to,
               int most);
/* A number; false after a message. */
bool args_number(const Args *a, const char *name, double otherwise, double *to);
/* "jot COMMAND: ...", to standard error; returns code. */
int complain(const Args *a, int code, const char *format, ...);
int complain_of(const Args *a, const jot_Ctx *c); /* the context's failure, with its code */
int complain_writing(const Args *a, const jot_Ctx *c); /* a path's ending, a name: WRONG_USE */
bool ends_with(const char *s, const char *end);

/* ---- models (model.c) ---- */
enum { PLACES = 64 };
typedef struct ModelKind ModelKind;
/* An input or output as the file has it: of extents that it leaves open (-1) the names, "" none. */
typedef struct {
    const char *name;
    jot_DType dtype;
    int rank;                        /* -1: the file does not say */
    const int64_t *shape;
    const char *const *symbols;
} Place;
typedef struct {
    const ModelKind *kind;
    jot_Ctx *c;
    void *own;                       /* the kind's */
    jot_Vars inputs, outputs, params; /* for the batch that was asked */
    jot_Strs input_names, output_names, param_names;
    jot_Var room[4 * PLACES];        /* where batched handles are */
    bool step;                       /* it has updates */
    bool look;                       /* extents may stay open; if they do there are neither inputs
                                        nor outputs, and `open` says which */
    char open[300];
    const Place *place;              /* inputs, then outputs, of kinds that leave extents open */
    int nin, nout;
    jot_Extent bound[JOT_OPEN_EXTENTS]; /* --open's, by the places' names; of the inputs above, */
    int64_t extent[JOT_OPEN_EXTENTS];   /* what these extents are */
    int nbounds;
    jot_BuildFn *build;              /* of it for other extents, with the Model as `user` */
} Model;
struct ModelKind {
    const char *name;                /* for messages */
    bool (*is)(const char *path);    /* by the file's first bytes */
    /* Inputs are arrays for `batch` examples (0: as the file has it). False: a message is out, and
     * the exit code in *code. */
    bool (*open)(Model *m, const Args *a, const char *path, int64_t batch, int *code);
    void (*close)(Model *m);
    /* Its text in malloc's memory, of which jot info counts operators; NULL: no memory. */
    char *(*graph)(const Model *m, const char *path);
};
/* jot export FILE.onnx (onnx.c) */
int model_to_onnx(const Args *a, jot_Ctx *c, const Model *m, const char *out);
#ifdef JOT_COMMAND_ONNX
extern const ModelKind model_onnx;                      /* onnx.c */
jot_Var value_of_onnx(jot_Ctx *c, const char *path);      /* of a file input_0.pb */
#endif
/* The kind of a file; NULL: it is no model. */
const ModelKind *model_kind(const char *path);
/* DONE_WELL, or an exit code after a message. The context is the caller's. */
int model_open(Model *m, const Args *a, jot_Ctx *c, const char *path, int64_t batch);
int model_look(Model *m, const Args *a, jot_Ctx *c, const char *path, int64_t batch);
/* The model for `batch` examples by jot_vmap; its first extents are a batch now. */
bool model_batch(Model *m, const Args *a, int64_t batch, int *code);
void model_close(Model *m);
int model_find(jot_Strs names, const char *name, size_t n); /* -1: none */
/* The function: with bounds, of all extents within them. */
jot_Func model_compile(Model *m);
/* A context with this many threads (0: as the environment says); NULL after a message. */
jot_Ctx *open_context(const Args *a, int threads);

/* ---- bounds of open extents (open.c) ---- */
int open_read(Model *m, const Args *a);              /* m->bound: an exit code, after a message */
int open_bound(const Model *m, int k, int d);        /* of extent d of input k; -1: it has none */
int open_extents(Model *m, const Args *a);           /* m->extent, of its inputs; an exit code */
jot_Builder open_builder(Model *m);                  /* as long as m lives */

/* ---- values (values.c) ---- */
/* Elements of each input and output of a model. */
typedef struct { jot_In in[PLACES]; jot_Out out[PLACES]; int nin, nout; void *memory; } Values;
bool model_call(const Model *m, jot_Func f, const Values *v); /* of model_compile; open.c */
/* From --input NAME=FILE; drawn: numbers of a formula where no file is named. */
int values_open(Values *v, const Args *a, Model *m, bool drawn);
void values_close(Values *v);
/* --output NAME=FILE, each. */
int values_write(const Values *v, const Args *a, Model *m);
/* What the outputs are like: shape, least, greatest, mean; text, or into json. */
void values_tell(const Values *v, const Model *m, cJSON *json);
size_t var_nbytes(jot_Var v);
const char *shape_text(char to[300], jot_Var v);
/* A file of one tensor, or tensor NAME of one (FILE:NAME), an image, sound, as a variable of this
 * dtype and shape; poison after a message. */
jot_Var value_read(const Args *a, jot_Ctx *c, const char *path, jot_Var like);
/* The tensor that --input has for this name, for its shape; false: none, a decoded file (image,
 * sound), or, *code set, a message. */
bool value_given(const Args *a, jot_Ctx *c, const char *name, bool only, jot_Var *v, int *code);

/* ---- answers ---- */
double seconds_now(void);
void json_say(cJSON *object);       /* prints and frees it */
cJSON *json_var(const char *name, jot_Var v);

int command_info(const Args *a);
int command_run(const Args *a);
int command_check(const Args *a);
int command_bench(const Args *a);
int command_export(const Args *a);
int command_convert(const Args *a);
int command_draw(const Args *a);
int command_cache(const Args *a);

#endif
