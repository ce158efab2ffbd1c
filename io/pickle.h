/* io/pickle.h - what a pickle of torch.save's stands for, as values: no objects, and no code.
 *
 * Read before: io/parts.h. After: io/pickle.c. */
#ifndef JOT_IO_PICKLE_H
#define JOT_IO_PICKLE_H
#include "io/parts.h"
#ifndef JOT_NO_HOST

typedef enum {
    PICKLE_NONE, PICKLE_BOOL, PICKLE_INT, PICKLE_FLOAT, PICKLE_TEXT, PICKLE_NAME, /* of a class */
    PICKLE_LIST, PICKLE_DICT,     /* keys and values by turns */
    PICKLE_TENSOR, PICKLE_MARK
} PickleKind;

typedef struct PickleItems PickleItems;
typedef struct PickleTensor PickleTensor;
typedef struct {
    PickleKind kind;
    uint32_t n;                   /* bytes of a text or name */
    union {
        int64_t i;
        double f;
        const char *text;         /* in the file */
        PickleItems *items;       /* of lists (and tuples) and dicts */
        PickleTensor *tensor;
    } is;
} PickleValue;

/* The first item, and so on: one that is in itself is possible. */
typedef struct PickleCell { PickleValue value; struct PickleCell *next; } PickleCell;
struct PickleItems { PickleCell *first, *last; uint32_t n; };

struct PickleTensor {
    PickleValue storage;          /* what its persistent id says: a list */
    PickleValue offset, shape, stride, dtype; /* dtype NONE: the storage's */
};

/* The value of the pickle in bytes of the file f; what it points to is kept. */
JOT_FN bool io_pickle(IoFile *f, IoBytes bytes, PickleValue *value);
JOT_FN bool io_pickle_is(PickleValue v, const char *text); /* a text or name */

#endif
#endif
