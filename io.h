/* io.h - files of named tensors, and checkpoints: safetensors, npy and npz, GGUF, PyTorch's .pt.
 * Composed on core.h, nn.h and layer.h; hosted builds have it (it uses C's library and files).
 *
 *     jot_File *f = jot_file_open("model.safetensors");          by its first bytes, mapped
 *     for (int64_t k = 0; k < f->count; k++)
 *         puts(f->tensor[k].name);
 *     jot_Var w = jot_file_var(c, f, jot_file_find(f, "conv.weight"));    where it lies
 *     jot_file_restore(m, (jot_Trainer){0}, f, "");              or: all that a net has
 *     jot_file_close(f);
 *     if (jot_error(c)) puts(jot_message(c));
 *
 * A file belongs to no context and keeps its failure itself, in `status` and `message`, as data.h's
 * buffers do; what is asked of a file that failed hands the failure on to the context. A file, and
 * the variables that were made of it, belong to one thread at a time.
 *
 * Files are not trusted: what they ask for is compared with what they hold before memory is taken,
 * and a message names the file, the tensor or key, the place, what was asked and what was found. No
 * code of a file is run. To open one takes at most JOT_IO_MOST bytes for each of its own (and
 * JOT_IO_ROOM besides); to take a tensor at most 8 bytes for each that it has in the file, of one
 * that is deflated 1032.
 *
 * A file that is open must not be written to (a new one may take its name, as all writers here do
 * it): its bytes are those of the disk, and are read when they are used.
 *
 * Read before: core.h, nn.h, layer.h. After: io/parts.h. */
#ifndef JOT_IO_H
#define JOT_IO_H
#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files of tensors ------------------------------------------------------------------------ */

enum { JOT_IO_MOST = 128, JOT_IO_ROOM = 1 << 16 };

/* One tensor as the file has it. */
typedef struct {
    const char *name;
    const char *type;       /* in the file's words: "F16", "<f4", "Q8_0", "HalfStorage" */
    jot_DType dtype;        /* of its elements; of blocks (below) JOT_F32; JOT_DTYPES: none that jot
                               has: its bytes can be had, not its elements */
    int rank;
    int64_t shape[JOT_MAX_RANK];
    uint64_t offset;        /* of its first byte, in the file */
    size_t nbytes;          /* that it has there */
    const void *data;       /* row-major elements, or blocks, where they lie; NULL: they do not lie
                               like that (deflated, strided, of the other byte order) */
    int block, block_nbytes; /* so many elements of the last dimension are so many bytes together:
                               1 and the dtype's, of Q8_0 32 and 34, Q4_0 32 and 18, Q4_K 256 and
                               144, Q6_K 256 and 210 */
} jot_Stored;

/* What a file says beside its tensors: a value under a name, or a list of values of one kind. */
typedef struct { const char *p; size_t n; } jot_Text; /* bytes, maybe without a 0 at their end */
typedef enum {
    JOT_META_BOOL, JOT_META_INT, JOT_META_FLOAT, JOT_META_TEXT,
    JOT_META_OTHER          /* a list of lists, say: it is there, no more is known */
} jot_MetaKind;
typedef struct {
    const char *key;
    jot_MetaKind kind;
    bool list;
    int64_t count;          /* of values; of one that is no list 1 */
    const int64_t *ints;    /* of BOOL (0 and 1) and INT; u64 from 2^63 on are negative */
    const double *floats;   /* of FLOAT */
    const jot_Text *texts;  /* of TEXT */
} jot_Meta;

typedef struct {
    jot_Status status;      /* not JOT_OK: nothing else counts but */
    char message[400];      /* its text */
    const char *name;       /* path */
    const char *format;     /* "safetensors", "npy", "npz", "gguf", "pt" */
    size_t nbytes;
    int64_t count;
    const jot_Stored *tensor; /* in the file's order; no two have the same name */
    int metas;
    const jot_Meta *meta;
} jot_File;

/* A file by its first bytes, whatever its name:
 *     safetensors   metadata: its "__metadata__", texts
 *     npy           one tensor, "" by name; npz: "NAME" of NAME.npy; both as NumPy writes them
 *     GGUF          versions 2 and 3; F32, F16, BF16, F64, I8 to I64, Q8_0, Q4_0, Q4_K, Q6_K;
 *                   shapes with the slowest dimension first, as NumPy has them (GGUF's turned
 *                   round); metadata of all kinds
 *     pt            what torch.save writes (zip, since PyTorch 1.6): dicts, lists and tuples of
 *                   tensors; names of dicts within dicts are joined by ".", places in lists are
 *                   numbers; numbers, texts and so on are metadata. Any other object is refused
 * NULL only where not even the record could be allocated, which all functions that take a file take
 * for JOT_EMEM. */
JOT_API jot_File *jot_file_open(const char *path);
/* The same of bytes in memory, which outlive the file and the variables made of it. name: for
 * messages. */
JOT_API jot_File *jot_file_memory(const char *name, const void *bytes, size_t nbytes);
/* Variables stay; what they are made of goes when they have gone. NULL is allowed. */
JOT_API void jot_file_close(jot_File *file);
/* "" when this build reads the format and writes it (pt is read alone), or reads what is deflated
 * ("deflate"); else what it does not, and what to install. */
JOT_API const char *jot_file_can(const char *format);

JOT_API int64_t jot_file_find(const jot_File *file, const char *name); /* -1: none */

/* Tensor k as an array of its dtype and shape: where it lies (jot_array_borrow) if it can be, else
 * copied; of blocks, their elements as f32. k out of range: poison (JOT_ERANGE); what is asked is
 * often jot_file_find's answer, so -1 says "not there". */
JOT_API jot_Var jot_file_var(jot_Ctx *ctx, jot_File *file, int64_t k);
/* Its blocks as they are: u8 (shape[0], ..., blocks of the last dimension, block_nbytes); of a
 * tensor of plain elements, too, whose blocks are its elements. */
JOT_API jot_Var jot_file_blocks(jot_Ctx *ctx, jot_File *file, int64_t k);
/* Its elements, row-major, to memory of the caller, of the very size (of blocks as f32). ctx is
 * told of failures; NULL: nobody is. */
JOT_API bool jot_file_copy(jot_Ctx *ctx, jot_File *file, int64_t k, void *to, size_t nbytes);
/* All of them, as jot_net_restore and jot_file_write take them. Copies the first `most` to out and
 * returns how many there are (0 after a failure: a name longer than jot_Named holds). */
JOT_API int jot_file_named(jot_Ctx *ctx, jot_File *file, jot_Named *out, int most);

/* jot_net_restore from a file: all that net and trainer have, by names that begin with prefix in
 * the file (""; "model.": names that begin otherwise do not matter). Floats of another width than
 * the net's are converted; PyTorch's "num_batches_tracked" is passed over. All or nothing. */
JOT_API bool jot_file_restore(jot_Net net, jot_Trainer trainer, jot_File *file, const char *prefix);

/* ---- metadata -------------------------------------------------------------------------------- */

JOT_API const jot_Meta *jot_meta(const jot_File *file, const char *key); /* NULL: none */
/* One value, or `otherwise` where there is none of this kind (an INT is a float, too). */
JOT_API int64_t jot_meta_int(const jot_File *file, const char *key, int64_t otherwise);
JOT_API double jot_meta_float(const jot_File *file, const char *key, double otherwise);
JOT_API jot_Text jot_meta_text(const jot_File *file, const char *key); /* p NULL: none */

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct {
    const char *format;     /* "safetensors", "npy" (of one tensor), "npz", "gguf"; NULL: by the
                               path's end */
    const jot_Meta *meta;   /* safetensors: one TEXT each; GGUF: all kinds, floats as f32, ints as
                               the first of u32, i32, i64 that holds them; npy, npz: none */
    int metas;
    bool q8_0;              /* GGUF: floats of rank 2 and more whose rows are whole blocks of 32 as
                               Q8_0. f16 is jot_cast's: each tensor is written in its dtype */
} jot_Writing;
/* Evaluates the tensors and writes them to a file beside `path`, which is synced and then takes its
 * name: whatever happens on the way, `path` is the old file or the new one, whole. how NULL: all 0.
 * Refused before anything is written: dtypes that the format lacks, names that are there twice. */
JOT_API bool jot_file_write(jot_Ctx *ctx, const char *path, const jot_Named *tensors, int n,
                            const jot_Writing *how);

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* All of jot_net_state as folder/step-000000001200.safetensors, by jot_file_write, with a checksum
 * in its metadata. The folder is made if it is not there; of other steps the newest keep - 1 stay
 * (keep 0: 3), also one that was not whole. A folder is one program's at a time. */
JOT_API bool jot_checkpoint_save(jot_Net net, jot_Trainer trainer, const char *folder, int64_t step,
                                 int keep);
/* Sets net and trainer back to the newest one that is whole and returns its step, and training goes
 * on as if it had not stopped (bit for bit: see jot_net_state; a step that is compiled and draws,
 * for dropout, is compiled before this: see jot_net_restore). -1: there is none (no failure: a
 * folder that is not there, or empty), or a failure. Those that are damaged are named through the
 * log hook and passed over; where all are, it is JOT_EIO. One that is whole and does not fit is a
 * failure, and nothing changes. */
JOT_API int64_t jot_checkpoint_load(jot_Net net, jot_Trainer trainer, const char *folder);

#ifdef __cplusplus
}
#endif
#endif
