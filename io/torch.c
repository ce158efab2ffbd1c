/* io/torch.c - what torch.save writes: a zip with a pickle that names tensors, and a file for each
 * storage, which several of them may share.
 *
 *     NAME/data.pkl       {"conv.weight": tensor(storage "0", offset, shape, stride), ...}
 *     NAME/data/0 ...     elements, stored, from multiples of 64 on
 *     NAME/byteorder      "little" or "big"
 *
 * Dicts within dicts and lists become names with points between; numbers and texts are metadata.
 * Values that are reached by several ways count each time, so that as many are gone to as the
 * pickle has bytes, and no more.
 *
 * Read before: io/zip.c, io/pickle.c. After: io/checkpoint.c. */
#ifndef JOT_NO_HOST
#include "io/pickle.h"

enum { TORCH_DEPTH = 32, TORCH_NAME = 1024 };

typedef struct {
    IoFile *f;
    const IoEntry **entry;     /* by name */
    size_t entries, left;      /* left: of values to go to */
    const char *folder;        /* "NAME/" */
    size_t folder_size;
    bool big;
    char name[TORCH_NAME];     /* of the value that is looked at */
} Torch;

static const struct { const char *storage, *name; jot_DType dtype; } torch_types[] = {
    {"torch.BoolStorage", "torch.bool", JOT_BOOL}, {"torch.CharStorage", "torch.int8", JOT_I8},
    {"torch.ShortStorage", "torch.int16", JOT_I16}, {"torch.IntStorage", "torch.int32", JOT_I32},
    {"torch.LongStorage", "torch.int64", JOT_I64}, {"torch.ByteStorage", "torch.uint8", JOT_U8},
    {"", "torch.uint16", JOT_U16}, {"", "torch.uint32", JOT_U32}, {"", "torch.uint64", JOT_U64},
    {"torch.HalfStorage", "torch.float16", JOT_F16},
    {"torch.BFloat16Storage", "torch.bfloat16", JOT_BF16},
    {"torch.FloatStorage", "torch.float32", JOT_F32},
    {"torch.DoubleStorage", "torch.float64", JOT_F64},
};
enum { TORCH_TYPES = sizeof torch_types / sizeof *torch_types };

bool
io_torch_is(IoBytes b)
{
    return io_zip_has(b, "/data.pkl");
}

/* ---- entries ---- */

static int
by_entry(const void *a, const void *b)
{
    return strcmp((*(const IoEntry *const *)a)->name, (*(const IoEntry *const *)b)->name);
}

/* "NAME/" and what follows it; NULL: none. */
static const IoEntry *
torch_entry(const Torch *t, const char *what, const char *key, size_t n)
{
    char name[512];
    size_t first = strlen(what);
    IoEntry like = {.name = name};
    const IoEntry *is = &like, **at;

    if (t->folder_size + first + n >= sizeof name)
        return NULL;
    memcpy(name, t->folder, t->folder_size);
    memcpy(name + t->folder_size, what, first);
    memcpy(name + t->folder_size + first, key, n);
    name[t->folder_size + first + n] = 0;
    at = bsearch(&is, t->entry, t->entries, sizeof *t->entry, by_entry);
    return at ? *at : NULL;
}

/* ---- tensors ---- */

static bool
torch_ints(Torch *t, PickleValue list, int64_t to[JOT_MAX_RANK], int *n)
{
    *n = 0;
    for (PickleCell *c = list.is.items->first; c; c = c->next) {
        if (*n == JOT_MAX_RANK || c->value.kind != PICKLE_INT || c->value.is.i < 0)
            return io_fail(t->f, JOT_ESHAPE, "tensor %.100s: a shape and strides of at most %d "
                           "numbers asked, %s found", t->name, JOT_MAX_RANK,
                           *n == JOT_MAX_RANK ? "more" : "something else");
        to[(*n)++] = c->value.is.i;
    }
    return true;
}

/* Whether its elements are rows of rows without gaps; extents of 1 have any stride. */
static bool
torch_dense(const jot_Stored *s, const IoLayout *l)
{
    int64_t want = 1;

    for (int d = s->rank; d--;) {
        if (s->shape[d] != 1 && l->stride[d] != want)
            return s->shape[d] == 0;
        if (s->shape[d] && want > INT64_MAX / s->shape[d])
            return true; /* io_add says that it is too large */
        want *= s->shape[d];
    }
    return true;
}

/* ("storage", class, key, device, elements): the entry, and the dtype. */
static const IoEntry *
torch_storage(Torch *t, const PickleTensor *tensor, jot_Stored *s)
{
    PickleValue part[3] = {{PICKLE_NONE, 0, {0}}, {PICKLE_NONE, 0, {0}}, {PICKLE_NONE, 0, {0}}};
    PickleCell *c = tensor->storage.is.items->first;
    PickleValue type = tensor->dtype;

    for (int k = 0; k < 3 && c; k++, c = c->next)
        part[k] = c->value;
    if (type.kind != PICKLE_NAME)
        type = part[1];
    if (!io_pickle_is(part[0], "storage") || type.kind != PICKLE_NAME
        || part[2].kind != PICKLE_TEXT) {
        io_fail(t->f, JOT_EIO, "tensor %.100s: its storage is none", t->name);
        return NULL;
    }
    for (int k = 0; k < TORCH_TYPES; k++)
        if (io_pickle_is(type, torch_types[k].storage) || io_pickle_is(type, torch_types[k].name))
            s->dtype = torch_types[k].dtype;
    if (!(s->type = io_text(t->f, type.is.text, type.n)))
        return NULL;
    const IoEntry *e = torch_entry(t, "data/", part[2].is.text, part[2].n);
    if (!e || e->deflated)
        io_fail(t->f, JOT_EIO, "tensor %.100s: storage data/%.*s: %s", t->name,
                (int)(part[2].n < 40 ? part[2].n : 40), part[2].is.text,
                e ? "stored asked, deflated found" : "not there");
    return e && !e->deflated ? e : NULL;
}

static bool
torch_tensor(Torch *t, const PickleTensor *tensor)
{
    jot_Stored s = {.name = io_text(t->f, t->name, strlen(t->name)), .dtype = JOT_DTYPES};
    IoLayout l = {.swapped = t->big};
    int strides;
    const IoEntry *e = s.name ? torch_storage(t, tensor, &s) : NULL;

    if (!e || !torch_ints(t, tensor->shape, s.shape, &s.rank)
        || !torch_ints(t, tensor->stride, l.stride, &strides))
        return false;
    size_t each = jot_dtype_nbytes(s.dtype), offset = (size_t)tensor->offset.is.i, want = 0;
    if (strides != s.rank || tensor->offset.is.i < 0 || offset > e->nbytes / (each ? each : 1))
        return io_fail(t->f, JOT_EIO, "tensor %.100s: %d extents, %d strides, element %lld of a "
                       "storage of %zu bytes", t->name, s.rank, strides,
                       (long long)tensor->offset.is.i, e->nbytes);
    s.offset = e->offset + offset * each;
    s.nbytes = e->nbytes - offset * each;
    l.strided = each && !torch_dense(&s, &l);
    jot_Stored sized = s;
    sized.block = 1, sized.block_nbytes = (int)each;
    if (!l.strided && each && io_shape_nbytes(&sized, &want) && want < s.nbytes)
        s.nbytes = want;
    return io_add(t->f, &s, &l);
}

/* ---- values ---- */

static bool
torch_meta(Torch *t, PickleValue v)
{
    static const jot_MetaKind kinds[] = {JOT_META_OTHER, JOT_META_BOOL, JOT_META_INT,
                                         JOT_META_FLOAT, JOT_META_TEXT, JOT_META_TEXT};
    jot_Meta m = {.key = io_text(t->f, t->name, strlen(t->name)), .kind = kinds[v.kind],
                  .count = 1};
    jot_Text *room = m.key ? io_keep(t->f, sizeof *room) : NULL;

    if (!room)
        return false;
    if (m.kind == JOT_META_TEXT)
        *room = (jot_Text){v.is.text, v.n}, m.texts = room;
    else if (m.kind == JOT_META_FLOAT)
        memcpy(room, &v.is.f, sizeof v.is.f), m.floats = (const double *)(const void *)room;
    else if (m.kind != JOT_META_OTHER)
        memcpy(room, &v.is.i, sizeof v.is.i), m.ints = (const int64_t *)(const void *)room;
    return io_add_meta(t->f, &m);
}

/* The name grows by a key, of a dict, or a place in a list. */
static bool
torch_key(Torch *t, size_t n, PickleValue key)
{
    char number[24];
    const char *text = number;
    size_t more;

    if (key.kind == PICKLE_INT)
        more = (size_t)snprintf(number, sizeof number, "%lld", (long long)key.is.i);
    else if (key.kind == PICKLE_TEXT)
        text = key.is.text, more = key.n;
    else
        return io_fail(t->f, JOT_EIO, "%.100s: a key that is a text or a number asked", t->name);
    if (n + more + 2 > TORCH_NAME)
        return io_fail(t->f, JOT_EIO, "%.100s...: a name of at most %d bytes asked", t->name,
                       TORCH_NAME - 1);
    if (n)
        t->name[n++] = '.';
    memcpy(t->name + n, text, more);
    t->name[n + more] = 0;
    return true;
}

static bool
torch_value(Torch *t, PickleValue v, int depth)
{
    size_t n = strlen(t->name);
    int64_t place = 0;

    if (!t->left-- || depth > TORCH_DEPTH)
        return io_fail(t->f, JOT_EIO, "%.100s: dicts and lists %s asked, more found", t->name,
                       depth > TORCH_DEPTH ? "32 deep" : "of as many values as the pickle has "
                       "bytes");
    if (v.kind == PICKLE_TENSOR)
        return torch_tensor(t, v.is.tensor);
    if (v.kind != PICKLE_LIST && v.kind != PICKLE_DICT)
        return torch_meta(t, v);
    for (PickleCell *c = v.is.items->first; c; c = c->next, place++) {
        PickleValue key = {PICKLE_INT, 0, {0}};
        key.is.i = place;
        if (v.kind == PICKLE_DICT) {
            key = c->value;
            c = c->next; /* io_pickle made them in pairs */
        }
        if (!torch_key(t, n, key) || !torch_value(t, c->value, depth + 1))
            return false;
        t->name[n] = 0;
    }
    return true;
}

bool
io_torch_read(IoFile *f)
{
    static const char end[] = "/data.pkl";
    Torch t = {.f = f};
    IoEntry *all;
    const IoEntry *pickle = NULL, *order;
    PickleValue value;

    if (!io_zip(f, &all, &t.entries)
        || !(t.entry = io_keep(f, t.entries * sizeof *t.entry)))
        return false;
    for (size_t k = 0; k < t.entries; k++) {
        size_t n = strlen(all[k].name);
        t.entry[k] = &all[k];
        if (!pickle && n >= sizeof end - 1 && !strcmp(all[k].name + n - (sizeof end - 1), end))
            pickle = &all[k];
    }
    if (!pickle || pickle->deflated)
        return io_fail(f, JOT_EIO, "entry data.pkl: stored asked, %s found",
                       pickle ? "deflated" : "none");
    qsort(t.entry, t.entries, sizeof *t.entry, by_entry);
    t.folder = pickle->name;
    t.folder_size = strlen(pickle->name) - (sizeof end - 2);
    order = torch_entry(&t, "byteorder", "", 0);
    t.big = order && order->nbytes == 3 && !memcmp(f->bytes.p + order->offset, "big", 3);
    t.left = pickle->nbytes;
    return io_pickle(f, (IoBytes){f->bytes.p + pickle->offset, pickle->nbytes}, &value)
        && torch_value(&t, value, 0);
}
#endif
