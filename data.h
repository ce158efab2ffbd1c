/* data.h - from files to batches: readers and writers, sources of samples, batches read ahead on a
 * thread, changes of images that are drawn anew for each batch, progress and curves. Composed on
 * core.h; hosted builds have it (it uses C's library, files and threads).
 *
 *     jot_Buffer *part[] = {jot_read("train-images-idx3-ubyte.gz"),
 *                           jot_read("train-labels-idx1-ubyte.gz")};
 *     jot_Source *s = jot_source_buffers(c, 2, part);
 *     jot_Loader *l = jot_loader_open(c, s, &(jot_Loading){.batch = 64, .shuffle = true});
 *     for (int epoch = 0; epoch < 3; epoch++)
 *         while ((b = jot_loader_next(l)))          until the end of the epoch, or a failure
 *             step(jot_batch_var(b, 0), jot_batch_var(b, 1));
 *     if (jot_error(c)) puts(jot_message(c));
 *
 * What is given a context fails as core.h's functions do: the first failure stays in the context.
 * Buffers belong to no context and to no thread, and keep their failure themselves, until
 * jot_buffer_var or a source hands it on. Files are not trusted: what they ask for is compared with
 * what they hold before memory is taken, and a message names the file, the place in it, what was
 * asked and what was found.
 *
 * Read before: core.h, nn.h. After: data/parts.h. */
#ifndef JOT_DATA_H
#define JOT_DATA_H
#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- buffers and files -------------------------------------------------------------------- */

#define JOT_DATA_RANK 8

/* An array in malloc's memory, or why there is none. */
typedef struct {
    jot_Status status;             /* not JOT_OK: nothing else counts but */
    char message[400];             /* its text */
    jot_DType dtype;
    int rank;
    int64_t shape[JOT_DATA_RANK];
    void *data;                    /* row-major elements */
    size_t nbytes;
    double rate;                   /* of sound: frames per second; else 0 */
} jot_Buffer;

/* Elements not set. NULL only where not even the record could be allocated, which all functions
 * that take a buffer take for JOT_EMEM. */
JOT_API jot_Buffer *jot_buffer_make(jot_DType dtype, int rank, const int64_t *shape);
JOT_API void jot_buffer_free(jot_Buffer *buffer); /* NULL is allowed */
/* The buffer's elements become a variable's, where they lie (jot_array_borrow), or its failure
 * ctx's. The buffer is gone in either case. */
JOT_API jot_Var jot_buffer_var(jot_Ctx *ctx, jot_Buffer *buffer);

/* A file by its first bytes, whatever its name:
 *     idx         its dtype and shape (MNIST's format)
 *     PNG, JPEG   u8 (channels, height, width), PNG of 16 bits u16: grey, grey and alpha, RGB,
 *                 RGBA; palettes and few bits are unfolded, CMYK is refused
 *     WAV         f32 (channels, frames) in -1..1 and the rate; PCM of 8, 16, 24, 32 bits, floats
 * each also gzipped. PNG, JPEG and gzip are libpng's, libjpeg's and zlib's where they were there
 * when the library was built; if not, the message says what to install. name: for messages. */
JOT_API jot_Buffer *jot_read(const char *path);
JOT_API jot_Buffer *jot_decode(const char *name, const void *bytes, size_t nbytes);
/* Any file as u8 (n), gunzipped if need be. */
JOT_API jot_Buffer *jot_read_bytes(const char *path);
/* "" when this build reads PNG ("png"), JPEG ("jpeg"), gzip ("gzip"); else what to install. */
JOT_API const char *jot_reads(const char *format);

/* An image (c, h, w) of u8 or u16 (which becomes u8) with 1 to 4 channels (0: its own; grey from
 * RGB by 0.299, 0.587, 0.114; alpha is dropped, or opaque) and of height x width (0: its own): the
 * shorter side is resized, each pixel the mean of those that fall on it, linear between, and the
 * middle cut out. Takes and returns a buffer. */
JOT_API jot_Buffer *jot_image_fit(jot_Buffer *image, int channels, int64_t height, int64_t width);

/* Writers evaluate v. False after a failure (JOT_EIO: a file that is not whole is removed, but
 * no device or link). */
JOT_API bool jot_write_idx(jot_Var v, const char *path); /* u8, i8, i16, i32, f32, f64 */
JOT_API bool jot_write_png(jot_Var image, const char *path); /* u8 (c, h, w), c 1 to 4 */
/* Floats (channels, frames) as PCM of 16, 24, 32 bits, cut off beyond -1..1; bits -32: as f32. */
JOT_API bool jot_write_wav(jot_Var sound, const char *path, int rate, int bits);

/* ---- tables as text ----------------------------------------------------------------------- */

typedef struct {
    char separator;      /* 0: ',' */
    bool no_header;      /* columns are then named "0", "1", ... */
    const char *missing; /* words beside the empty one that stand for nothing: "NA,?" */
} jot_CsvForm;
/* Cells as text: RFC 4180, with "quotes" (doubled within), separators and ends of line inside of
 * them, LF or CRLF; lines without anything are left out. Each has as many cells as the first. */
typedef struct {
    jot_Status status;   /* as a buffer's */
    char message[400];
    int64_t rows;
    int columns;
    const char *const *names; /* of columns */
    void *own;
} jot_Csv;
JOT_API jot_Csv *jot_csv_read(const char *path, const jot_CsvForm *form); /* form NULL: all 0 */
JOT_API jot_Csv *jot_csv_parse(const char *name, const void *text, size_t nbytes,
                               const jot_CsvForm *form);
JOT_API const char *jot_csv_cell(const jot_Csv *csv, int64_t row, int column); /* NULL: none */
/* (rows, columns.n) numbers; columns.n 0: all. What is missing is NaN, and of an integer dtype a
 * failure, as is what is no number of the dtype: it names line and column. A table that failed
 * hands its failure on. */
JOT_API jot_Buffer *jot_csv_numbers(const jot_Csv *csv, jot_Strs columns, jot_DType dtype);
typedef struct jot_Vocab jot_Vocab;
/* i64 (rows): the words of a column as numbers, and which is which (sorted by their bytes). */
JOT_API jot_Buffer *jot_csv_classes(const jot_Csv *csv, const char *column, jot_Vocab **words);
JOT_API void jot_csv_free(jot_Csv *csv);
/* A row of names (names.n 0: none), then v (rows, columns), each number so that it reads back
 * exactly. */
JOT_API bool jot_write_csv(jot_Var v, jot_Strs names, const char *path);

/* ---- text --------------------------------------------------------------------------------- */

/* CHARACTERS are UTF-8's (a byte that is none stands for itself), numbered by their bytes' order;
 * WORDS are runs of letters and digits (bytes from 128 on count as letters), single other
 * characters, and no spaces, the most frequent first (equals by their bytes). most > 0: the others
 * beyond so many become 0, "<unknown>". NULL: no memory. */
typedef enum { JOT_CHARACTERS, JOT_WORDS } jot_TokenKind;
JOT_API jot_Vocab *jot_vocab_make(jot_TokenKind kind, const void *text, size_t nbytes,
                                  int64_t most);
JOT_API void jot_vocab_free(jot_Vocab *vocab);
JOT_API int64_t jot_vocab_size(const jot_Vocab *vocab);               /* 0 for NULL */
JOT_API const char *jot_vocab_token(const jot_Vocab *vocab, int64_t k); /* NULL: no such */
/* -1: none; of a vocabulary with "<unknown>" 0. */
JOT_API int64_t jot_vocab_find(const jot_Vocab *vocab, const char *token);
/* i32 (n): the text's tokens. One that is none of the vocabulary is 0, "<unknown>", or a failure
 * that names the place. */
JOT_API jot_Buffer *jot_vocab_encode(const jot_Vocab *vocab, const void *text, size_t nbytes);
/* The same of a buffer's bytes, which stays. One that failed makes a vocabulary of nothing, and its
 * failure is what encoding it gives. */
JOT_API jot_Vocab *jot_vocab_make_buffer(jot_TokenKind kind, const jot_Buffer *text, int64_t most);
JOT_API jot_Buffer *jot_vocab_encode_buffer(const jot_Vocab *vocab, const jot_Buffer *text);

/* ---- sources of samples ------------------------------------------------------------------- */

enum { JOT_FIELDS = 8, JOT_FAULT_NBYTES = 400 };
typedef struct { jot_Status status; char message[JOT_FAULT_NBYTES]; } jot_Fault;
/* One of what a sample has: an image, a label. varies: dimension 0 differs from sample to sample,
 * at most shape[0]. */
typedef struct { jot_DType dtype; int rank; int64_t shape[JOT_DATA_RANK]; bool varies; } jot_Field;
/* Sample k (0 <= k < count), field f to out[f]; of a field that varies length[f] of dimension 0. It
 * is called on the loader's threads, on several at once where it has several, and must not use the
 * context. False: fault says why; of a stream with status JOT_OK (which it begins with): there
 * is no sample k, and the epoch ends. */
typedef bool jot_GetFn(void *user, int64_t k, void *const *out, int64_t *length, jot_Fault *fault);
/* Yours, or one of those below. */
typedef struct {
    int64_t count;               /* of samples; -1: a stream, of which k only grows in an epoch */
    int fields;
    jot_Field field[JOT_FIELDS];
    jot_GetFn *get;
    void *user;
    void (*close)(void *user);   /* by jot_source_free; NULL: nothing to do */
} jot_Source;
/* What a get function says before it returns false; format is printf's. */
JOT_API void jot_fault(jot_Fault *fault, jot_Status status, const char *format, ...);

/* NULL after a failure. A source outlives its loaders. */
/* Sample k is row k of each buffer, of different ones, which the source owns from the call on. */
JOT_API jot_Source *jot_source_buffers(jot_Ctx *ctx, int n, jot_Buffer *const *buffers);
JOT_API jot_Source *jot_source_vars(jot_Ctx *ctx, jot_Vars vars); /* their values of now */
/* Two fields of (length) from tokens (n): those from k * step on, and the same one further: what a
 * language model reads and is to say. */
JOT_API jot_Source *jot_source_windows(jot_Ctx *ctx, jot_Buffer *tokens, int64_t length,
                                       int64_t step);
/* The PNG and JPEG files of each folder in a folder, which is a class: u8 (channels, height, width)
 * by jot_image_fit, and i64 (), the class's number. Folders and files are sorted by their bytes;
 * *classes, unless NULL, gets the folders' names. Files are read when they are asked for. */
JOT_API jot_Source *jot_source_folder(jot_Ctx *ctx, const char *path, int channels, int64_t height,
                                      int64_t width, jot_Vocab **classes);
JOT_API void jot_source_free(jot_Source *source); /* of those four; NULL is allowed */

/* ---- batches ------------------------------------------------------------------------------ */

typedef enum { JOT_LAST_SMALLER, JOT_LAST_DROPPED } jot_LastBatch;
typedef struct {
    int64_t batch;           /* samples; 0: 1 */
    jot_LastBatch last;      /* what becomes of the samples that do not fill a batch */
    bool shuffle;            /* each epoch in another order, a function of seed and epoch alone */
    uint64_t seed;
    /* Of the samples, in an order that split_seed says (0: their own), those from `from` to `to`
     * times count (both 0: all): 0 to 0.9 is for training, 0.9 to 1 for validation. */
    double from, to;
    uint64_t split_seed;
    int rank, world;         /* of `world` programs this one gets every world-th sample, as many as
                                the others: what is left over is dropped. world 0: one */
    double pad;              /* behind the shorter samples of fields that vary: a number of their
                                dtype, of f16 and bf16 0 */
    int epoch;               /* the first one, to go on where another program ended */
    int ahead;               /* batches that are ready before they are asked for; 0: 2. -1: none, no
                                thread, as in builds with JOT_NO_THREADS */
    int threads;             /* that read, a batch each; 0: 1. At most 64; of a stream 1 */
} jot_Loading;

/* Valid until the next call of jot_loader_next. */
typedef struct {
    int64_t samples;
    int64_t epoch, step;     /* which of the epoch's */
    int fields;
    jot_Tensor field[JOT_FIELDS];  /* (samples, ...), of one that varies (samples, longest, ...) */
    const int64_t *length[JOT_FIELDS]; /* (samples), of one that varies; else NULL */
    jot_Ctx *ctx;
} jot_Batch;

typedef struct jot_Loader jot_Loader;
/* A source of 0 samples, or fewer than one batch of those that are kept, is JOT_ERANGE. After fork
 * the loader is the parent's: a child may close its own copy, and jot_loader_next is JOT_EUSE. */
JOT_API jot_Loader *jot_loader_open(jot_Ctx *ctx, const jot_Source *source,
                                    const jot_Loading *how);
/* The next batch; NULL at the end of an epoch, once, or after a failure, which is then ctx's and
 * stays the loader's. */
JOT_API const jot_Batch *jot_loader_next(jot_Loader *loader);
JOT_API int64_t jot_loader_steps(const jot_Loader *loader); /* batches an epoch; -1: not known */
JOT_API jot_Var jot_batch_var(const jot_Batch *batch, int field);    /* a copy */
JOT_API jot_In jot_batch_in(const jot_Batch *batch, int field); /* for jot_call: where it lies */
JOT_API jot_Var jot_batch_lengths(const jot_Batch *batch, int field); /* i64 (samples) */
/* Of all calls of jot_loader_next that gave a batch; waits: where the batch was not ready. What is
 * returned is the loader's. */
typedef struct { int64_t batches, waits; double wait_seconds, seconds; } jot_Waits;
JOT_API const jot_Waits *jot_loader_waits(const jot_Loader *loader);
JOT_API void jot_loader_close(jot_Loader *loader); /* at any time; NULL is allowed */

/* ---- images, drawn anew ------------------------------------------------------------------- */

/* x (n, c, h, w). Each pair is a function of what was drawn, for images and masks alike or draws of
 * your own, and the same with draws by jot_uniform, one for each image. Gradients flow as through
 * the operators that they are made of. */
/* Windows of height x width, their first row and column at (n, 2), integers; 0 outside. */
JOT_API jot_Var jot_crop(jot_Var x, jot_Var at, int64_t height, int64_t width);
JOT_API jot_Var jot_random_crop(jot_Var x, int64_t pad, int64_t height, int64_t width);
/* Those of which which (n), bool, is true, mirrored along dim. */
JOT_API jot_Var jot_flip_some(jot_Var x, jot_Var which, int dim);
JOT_API jot_Var jot_random_flip(jot_Var x, int dim, double probability);
/* matrix (n, 2, 3): by jot_affine_grid and jot_grid_sample (linear, 0 outside), in coordinates of
 * the result from -1 to 1. Draws: turned by up to +-degrees, moved by up to +-shift of its extents,
 * scaled by least to most (0: 1), sheared along its rows by up to +-shear degrees. */
typedef struct { double degrees, shift, least, most, shear; } jot_Affine;
JOT_API jot_Var jot_affine_images(jot_Var x, jot_Var matrix);
JOT_API jot_Var jot_random_affine_matrix(jot_Ctx *ctx, int64_t n, const jot_Affine *how,
                                         double aspect); /* width / height */
JOT_API jot_Var jot_random_affine(jot_Var x, const jot_Affine *how);
/* factors (n, 3): brightness, contrast, saturation: times the first; from the mean of the image's
 * grey by the second; from each pixel's grey by the third (c 3). x and the result are of 0..1. */
JOT_API jot_Var jot_jitter(jot_Var x, jot_Var factors);
/* ... 1 +- up to so much */
JOT_API jot_Var jot_random_jitter(jot_Var x, double brightness, double contrast, double saturation);
/* Integers (u8: / 255) and floats as floats, (x - mean[c]) / deviation[c]. */
JOT_API jot_Var jot_normalize_channels(jot_Var x, int channels, const double *mean,
                                       const double *deviation);
/* A square of size x size, its first row and column at (n, 2), becomes 0. */
JOT_API jot_Var jot_cutout(jot_Var x, jot_Var at, int64_t size);
JOT_API jot_Var jot_random_cutout(jot_Var x, int64_t size); /* its middle is in the image */
/* weight x + (1 - weight) x[order], for any x (n, ...): images and, by the same draws, one-hot
 * labels. order (n): a permutation; weight (n). */
JOT_API jot_Var jot_mixup(jot_Var x, jot_Var order, jot_Var weight);
/* (n) of the Beta distribution (alpha, alpha), alpha 0.001 to 1 (Joehnk 1964) */
JOT_API jot_Var jot_mixup_weight(jot_Ctx *ctx, jot_DType dtype, int64_t n, double alpha);

/* ---- progress and curves ------------------------------------------------------------------ */

/* A line that is written over some ten times a second:
 *     epoch 2 of 5  step 120 of 938  loss 0.1234  812 steps/s  0:12 left
 * Where nobody looks on (no terminal) there is one line for each epoch, at its end. The first five
 * are the caller's, the others begin as 0. Rates leave out the first step, which compiles. */
typedef struct {
    int64_t epochs, steps;  /* steps: of an epoch; -1: not known */
    jot_WriteFn *write;     /* NULL: standard error */
    void *user;
    int terminal;           /* 0: look; 1: one; -1: none */
    double first, shown;    /* seconds: after the first step, when the line was written */
    int64_t done;           /* steps */
    int width;              /* of the line */
    bool open;              /* it has not ended */
    char line[160];
} jot_Progress;
/* After step `step` of an epoch, both from 0 on, with a number to show: "loss", value. */
JOT_API void jot_progress(jot_Progress *progress, int64_t epoch, int64_t step, const char *name,
                          double value);
JOT_API void jot_progress_end(jot_Progress *progress); /* the line ends */

typedef struct jot_Curves jot_Curves;
JOT_API jot_Curves *jot_curves_open(jot_Ctx *ctx); /* NULL: no memory */
/* One more point of a series (at most 16, which begin with their first point). */
JOT_API bool jot_curves_add(jot_Curves *curves, const char *series, double x, double y);
typedef struct {
    const char *title, *xlabel, *ylabel;
    bool log_y;   /* points that are not above 0 are left out */
    int smooth;   /* points to either side that a line is the mean of (at most a twentieth of the
                     series), the points being paler; 0 */
    int width, height; /* 0: 760 x 420 */
} jot_Plot;
JOT_API bool jot_curves_svg(const jot_Curves *curves, const char *path, const jot_Plot *plot);
JOT_API bool jot_curves_csv(const jot_Curves *curves, const char *path); /* series,x,y */
JOT_API void jot_curves_close(jot_Curves *curves);

#ifdef __cplusplus
}
#endif
#endif
