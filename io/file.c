/* io/file.c - a file of tensors (io/format.c opens it): its tensors in a list and by name.
 *
 *     io_make -> io_add, io_add_meta ... -> io_finish -> io_let_go
 *
 * Nothing that a reader appends is believed: io_add compares every size and place with the bytes
 * that there are. Records and texts lie in blocks that go with the file. A file is alive as long as
 * its handle or a variable that lies in it is.
 *
 * Read before: io/map.c. After: io/take.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#include <stdarg.h>
#include <sys/mman.h>

typedef struct IoKept { struct IoKept *next; size_t room; char bytes[]; } IoKept;

IoFile *
io_of(const jot_File *file)
{
    return (IoFile *)(uintptr_t)file;
}

/* ---- what lives with the file ---- */

bool
io_fail(IoFile *f, jot_Status status, const char *format, ...)
{
    if (f->is.status)
        return false;
    va_list args;
    va_start(args, format);
    int n = snprintf(f->is.message, sizeof f->is.message, "%.200s: ", f->name);
    vsnprintf(f->is.message + n, sizeof f->is.message - (size_t)n, format, args);
    va_end(args);
    f->is.status = status;
    return false;
}

/* So many bytes more, if that is not too much for a file of this size: half of JOT_IO_MOST, as a
 * list that grows is there twice for a moment. */
static bool
io_afford(IoFile *f, size_t nbytes)
{
    size_t most = f->bytes.n > SIZE_MAX / JOT_IO_MOST ? SIZE_MAX
                  : f->bytes.n * (JOT_IO_MOST / 2) + JOT_IO_ROOM / 2;

    if (nbytes > most - f->taken)
        return io_fail(f, JOT_EIO, "what it says takes more memory than %d times its %zu bytes",
                       JOT_IO_MOST / 2, f->bytes.n);
    f->taken += nbytes;
    return true;
}

void *
io_keep(IoFile *f, size_t nbytes)
{
    size_t n = (nbytes + 7) / 8 * 8, least = f->bytes.n > 1 << 16 ? 1 << 14 : 1 << 10;

    if (nbytes > PTRDIFF_MAX / 2) {
        io_fail(f, JOT_EMEM, "no memory for %zu bytes", nbytes);
        return NULL;
    }
    if (!f->kept || n > f->kept->room - f->used) {
        size_t room = n > least ? n : least;
        if (!io_afford(f, room))
            return NULL;
        IoKept *more = malloc(sizeof *more + room);
        if (!more) {
            io_fail(f, JOT_EMEM, "no memory for %zu bytes", nbytes);
            return NULL;
        }
        more->next = f->kept;
        more->room = room;
        f->kept = more;
        f->used = 0;
    }
    f->used += n;
    return f->kept->bytes + f->used - n;
}

char *
io_text(IoFile *f, const void *text, size_t n)
{
    char *to = io_keep(f, n + 1);

    if (to && n)
        memcpy(to, text, n);
    if (to)
        to[n] = 0;
    return to;
}

bool
io_grow(IoFile *f, void *list, size_t *room, size_t n, size_t each)
{
    if (n < *room)
        return true;
    void *old;
    memcpy(&old, list, sizeof old);
    size_t more = *room ? *room + *room / 2 : 8;
    if (!io_afford(f, (more - *room) * each))
        return false;
    void *p = realloc(old, more * each);
    if (!p)
        return io_fail(f, JOT_EMEM, "no memory for %zu records", more);
    memcpy(list, &p, sizeof p);
    *room = more;
    return true;
}

/* ---- what a reader appends ---- */

const char *
io_shape(char to[IO_SHAPE], int rank, const int64_t *shape)
{
    int n = sprintf(to, "(");

    for (int d = 0; d < rank; d++)
        n += sprintf(to + n, d ? ", %lld" : "%lld", (long long)shape[d]);
    strcpy(to + n, ")");
    return to;
}

bool
io_shape_nbytes(const jot_Stored *t, size_t *nbytes)
{
    size_t n = (size_t)t->block_nbytes;

    for (int d = 0; d < t->rank; d++) {
        size_t extent = (size_t)t->shape[d];
        if (d == t->rank - 1)
            extent /= (size_t)t->block;
        if (extent && n > (size_t)PTRDIFF_MAX / extent)
            return false;
        n *= extent;
    }
    *nbytes = n;
    return true;
}

static bool
add_fail(IoFile *f, const jot_Stored *t, const char *what, uint64_t asked, uint64_t found)
{
    char shape[IO_SHAPE];

    return io_fail(f, JOT_EIO, "tensor %.60s, %.20s %.80s at byte %llu: %s: %llu bytes asked, %llu "
                   "found", t->name, t->type, io_shape(shape, t->rank, t->shape),
                   (unsigned long long)t->offset, what, (unsigned long long)asked,
                   (unsigned long long)found);
}

/* The bytes up to the end of the last element that is reached; false: beyond all sizes. */
static bool
add_reach(const jot_Stored *t, const IoLayout *l, size_t *reach)
{
    size_t last = 0, most = (size_t)PTRDIFF_MAX / 16;

    for (int d = 0; d < t->rank; d++) {
        size_t steps = t->shape[d] ? (size_t)t->shape[d] - 1 : 0, stride = (size_t)l->stride[d];
        if (l->stride[d] < 0 || (steps && stride > (most - last) / steps))
            return false;
        last += steps * stride;
    }
    *reach = (last + 1) * (size_t)t->block_nbytes;
    return true;
}

static bool
add_sizes(IoFile *f, const jot_Stored *t, const IoLayout *l)
{
    size_t want = 0, reach = 0;
    int64_t row = t->rank ? t->shape[t->rank - 1] : 1;

    if (!t->block_nbytes)
        return true;
    if (row % t->block)
        return add_fail(f, t, "rows of whole blocks", (uint64_t)t->block, (uint64_t)row);
    if (!io_shape_nbytes(t, &want))
        return add_fail(f, t, "more than there can be", UINT64_MAX, t->nbytes);
    if (l->deflated)
        return l->inflated == want + l->skip || add_fail(f, t, "inflated", want + l->skip,
                                                         l->inflated);
    if (!l->strided)
        return want == t->nbytes || add_fail(f, t, "its shape", want, t->nbytes);
    if (want > t->nbytes)
        return add_fail(f, t, "a view that repeats elements", want, t->nbytes);
    if (want && (!add_reach(t, l, &reach) || reach > t->nbytes))
        return add_fail(f, t, "its strides reach", reach, t->nbytes);
    return true;
}

static bool
add_checked(IoFile *f, const jot_Stored *t, const IoLayout *l)
{
    size_t n = f->bytes.n;

    for (int d = 0; d < t->rank; d++)
        if (t->shape[d] < 0)
            return io_fail(f, JOT_ESHAPE, "tensor %.60s: extent %d is %lld", t->name, d,
                           (long long)t->shape[d]);
    if (t->offset > n || t->nbytes > n - t->offset)
        return add_fail(f, t, "beyond the end of the file", t->nbytes,
                        t->offset > n ? 0 : n - t->offset);
    return add_sizes(f, t, l);
}

bool
io_add(IoFile *f, const jot_Stored *tensor, const IoLayout *layout)
{
    static const IoLayout plain;
    jot_Stored t = *tensor;
    IoLayout l = layout ? *layout : plain;
    size_t n = (size_t)f->is.count, layout_room = f->room;

    if (!t.block) {
        t.block = 1;
        t.block_nbytes = (int)jot_dtype_nbytes(t.dtype);
        l.swapped = l.swapped == io_is_little() && t.block_nbytes > 1;
    }
    if (!add_checked(f, &t, &l) || !io_grow(f, &f->layout, &layout_room, n, sizeof l)
        || !io_grow(f, &f->tensor, &f->room, n, sizeof t))
        return false;
    t.data = l.strided || l.swapped || l.deflated ? NULL : f->bytes.p + t.offset;
    f->tensor[n] = t;
    f->layout[n] = l;
    f->is.count++;
    return true;
}

bool
io_add_meta(IoFile *f, const jot_Meta *meta)
{
    if (f->is.metas == INT32_MAX
        || !io_grow(f, &f->meta, &f->meta_room, (size_t)f->is.metas, sizeof *meta))
        return f->is.metas != INT32_MAX && false;
    f->meta[f->is.metas++] = *meta;
    return true;
}

/* ---- when all is there ---- */

static int
by_name(const void *a, const void *b)
{
    return strcmp((*(const jot_Stored *const *)a)->name, (*(const jot_Stored *const *)b)->name);
}

static int
by_offset(const void *a, const void *b)
{
    const jot_Stored *x = *(const jot_Stored *const *)a, *y = *(const jot_Stored *const *)b;

    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

bool
io_finish(IoFile *f)
{
    size_t n = (size_t)f->is.count;

    if (n && !(f->order = malloc(n * sizeof *f->order)))
        return io_fail(f, JOT_EMEM, "no memory for %zu tensors", n);
    for (size_t k = 0; k < n; k++)
        f->order[k] = &f->tensor[k];
    if (n)
        qsort(f->order, n, sizeof *f->order, by_offset);
    for (size_t k = 1; k < n && !f->format->shares; k++) {
        const jot_Stored *a = f->order[k - 1], *b = f->order[k];
        if (b->nbytes && a->offset + a->nbytes > b->offset)
            return io_fail(f, JOT_EIO, "tensors %.60s and %.60s overlap: bytes %llu to %llu, and "
                           "%llu to %llu", a->name, b->name, (unsigned long long)a->offset,
                           (unsigned long long)(a->offset + a->nbytes),
                           (unsigned long long)b->offset,
                           (unsigned long long)(b->offset + b->nbytes));
    }
    if (n)
        qsort(f->order, n, sizeof *f->order, by_name);
    for (size_t k = 1; k < n; k++)
        if (!by_name(&f->order[k - 1], &f->order[k]))
            return io_fail(f, JOT_EIO, "tensor %.100s is there twice: at byte %llu and at byte "
                           "%llu", f->order[k]->name,
                           (unsigned long long)f->order[k - 1]->offset,
                           (unsigned long long)f->order[k]->offset);
    return true;
}

int64_t
jot_file_find(const jot_File *file, const char *name)
{
    const IoFile *f = io_of(file);
    int64_t least = 0, most = f && !f->is.status ? f->is.count : 0;

    while (least < most) {
        int64_t middle = least + (most - least) / 2;
        int way = strcmp(name, f->order[middle]->name);
        if (!way)
            return f->order[middle] - f->tensor;
        if (way < 0)
            most = middle;
        else
            least = middle + 1;
    }
    return -1;
}

/* ---- opening and closing ---- */

void
io_forget(IoFile *f)
{
    for (IoKept *k = f->kept, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(f->tensor);
    free(f->layout);
    free(f->meta);
    free(f->order);
    f->kept = NULL;
    f->tensor = NULL, f->layout = NULL, f->meta = NULL, f->order = NULL;
    if (f->map)
        munmap(f->map, f->bytes.n);
    f->map = NULL;
}

void
io_let_go(IoFile *f)
{
    if (--f->users)
        return;
    io_forget(f);
    free(f);
}

void
jot_file_close(jot_File *file)
{
    if (file)
        io_let_go(io_of(file));
}

IoFile *
io_make(const char *name)
{
    size_t n = strlen(name);
    IoFile *f = calloc(1, sizeof *f + n + 1);

    if (!f)
        return NULL;
    memcpy(f->name, name, n + 1);
    f->is.name = f->name;
    f->is.format = "";
    f->users = 1;
    return f;
}

/* ---- metadata ---- */

const jot_Meta *
jot_meta(const jot_File *file, const char *key)
{
    for (int k = 0; file && !file->status && k < file->metas; k++)
        if (!strcmp(file->meta[k].key, key))
            return &file->meta[k];
    return NULL;
}

int64_t
jot_meta_int(const jot_File *file, const char *key, int64_t otherwise)
{
    const jot_Meta *m = jot_meta(file, key);

    return m && !m->list && m->ints ? m->ints[0] : otherwise;
}

double
jot_meta_float(const jot_File *file, const char *key, double otherwise)
{
    const jot_Meta *m = jot_meta(file, key);

    return m && !m->list && m->floats ? m->floats[0]
           : m && !m->list && m->kind == JOT_META_INT ? (double)m->ints[0] : otherwise;
}

jot_Text
jot_meta_text(const jot_File *file, const char *key)
{
    const jot_Meta *m = jot_meta(file, key);

    return m && !m->list && m->texts ? m->texts[0] : (jot_Text){NULL, 0};
}
#endif
