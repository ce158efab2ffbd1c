/* io/safetensors.c - safetensors: a header in JSON, by cJSON, and the tensors behind it.
 *
 *     u64 n | n bytes: {"__metadata__": {"key": "text"},
 *                       "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *           | elements, little-endian, one tensor after the other, without a hole
 *
 * Written ones begin their elements at a multiple of 64, the widest dtypes first, so that all of
 * them are aligned where they lie.
 *
 * Read before: io/file.c, io/write.c. After: io/npy.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"
#ifdef JOT_CJSON
#include <cjson/cJSON.h>
#endif

bool
io_safetensors_is(IoBytes b)
{
    return b.n > 8 && b.p[8] == '{' && io_little(b.p, 8) < (uint64_t)1 << 32;
}

#ifndef JOT_CJSON
bool
io_safetensors_read(IoFile *f)
{
    return io_fail(f, JOT_EIO, "%s", jot_file_can("safetensors"));
}

bool
io_safetensors_fits(IoOut *o)
{
    jot_raise(o->ctx, JOT_EIO, "%s: %s", o->path, jot_file_can("safetensors"));
    return false;
}

bool
io_safetensors_write(IoOut *o)
{
    return io_safetensors_fits(o);
}
#else

enum { ST_DEPTH = 3, ST_HEADER = 100000000 };
#define ST_NUMBER ((double)((int64_t)1 << 53))

static const struct { const char *name; jot_DType dtype; } st_types[] = {
    {"BOOL", JOT_BOOL}, {"I8", JOT_I8}, {"I16", JOT_I16}, {"I32", JOT_I32}, {"I64", JOT_I64},
    {"U8", JOT_U8}, {"U16", JOT_U16}, {"U32", JOT_U32}, {"U64", JOT_U64}, {"F16", JOT_F16},
    {"BF16", JOT_BF16}, {"F32", JOT_F32}, {"F64", JOT_F64},
};
enum { ST_TYPES = sizeof st_types / sizeof *st_types };

/* ---- reading ---- */

/* Brackets open at once, outside of texts; the header's are three deep. */
static bool
st_shallow(IoFile *f, IoBytes b)
{
    int depth = 0;
    bool text = false;

    for (size_t k = 0; k < b.n; k++) {
        uint8_t c = b.p[k];
        if (text) {
            k += c == '\\';
            text = c != '"';
        } else {
            text = c == '"';
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        }
        if (depth > ST_DEPTH)
            return io_fail(f, JOT_EIO, "byte %zu: header: brackets %d deep asked, more found",
                           k + 8, ST_DEPTH);
    }
    return true;
}

static bool
st_whole(const cJSON *number, uint64_t *value)
{
    if (!cJSON_IsNumber(number) || !(number->valuedouble >= 0 && number->valuedouble <= ST_NUMBER)
        || number->valuedouble != (double)(uint64_t)number->valuedouble)
        return false;
    *value = (uint64_t)number->valuedouble;
    return true;
}

static bool
st_offsets(const cJSON *at, uint64_t offset[2])
{
    return cJSON_IsArray(at) && cJSON_GetArraySize(at) == 2 && st_whole(at->child, &offset[0])
        && st_whole(at->child->next, &offset[1]) && offset[0] <= offset[1];
}

static bool
st_shape(IoFile *f, const cJSON *shape, jot_Stored *t)
{
    if (!cJSON_IsArray(shape))
        return io_fail(f, JOT_EIO, "tensor %.100s: no shape", t->name);
    for (const cJSON *extent = shape->child; extent; extent = extent->next) {
        uint64_t n;
        if (t->rank == JOT_MAX_RANK || !st_whole(extent, &n))
            return io_fail(f, JOT_ESHAPE, "tensor %.100s: shape: %s at dimension %d", t->name,
                           t->rank == JOT_MAX_RANK ? "a rank of at most 16 asked, more found"
                           : "a whole number below 2^53 asked, something else found", t->rank);
        t->shape[t->rank++] = (int64_t)n;
    }
    return true;
}

/* begin: where elements begin */
static bool
st_tensor(IoFile *f, const cJSON *item, uint64_t begin, uint64_t *total)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    jot_Stored t = {.name = io_text(f, item->string, strlen(item->string)), .dtype = JOT_DTYPES};
    uint64_t offset[2];

    if (!t.name)
        return false;
    if (!cJSON_IsObject(item) || !cJSON_IsString(type) || !st_offsets(at, offset))
        return io_fail(f, JOT_EIO, "tensor %.100s: dtype, shape and data_offsets [begin, end] "
                       "asked, something else found", t.name);
    if (!(t.type = io_text(f, type->valuestring, strlen(type->valuestring)))
        || !st_shape(f, cJSON_GetObjectItemCaseSensitive(item, "shape"), &t))
        return false;
    for (int k = 0; k < ST_TYPES; k++)
        if (!strcmp(t.type, st_types[k].name))
            t.dtype = st_types[k].dtype;
    t.offset = begin + offset[0];
    t.nbytes = (size_t)(offset[1] - offset[0]);
    *total += t.nbytes;
    return io_add(f, &t, NULL);
}

static bool
st_metadata(IoFile *f, const cJSON *map)
{
    if (!cJSON_IsObject(map))
        return io_fail(f, JOT_EIO, "__metadata__: texts by name asked, something else found");
    for (const cJSON *item = map->child; item; item = item->next) {
        jot_Text *text = io_keep(f, sizeof *text);
        char *key = text ? io_text(f, item->string, strlen(item->string)) : NULL;
        if (!key)
            return false;
        if (!cJSON_IsString(item))
            return io_fail(f, JOT_EIO, "__metadata__: %.100s: a text asked, something else found",
                           key);
        text->n = strlen(item->valuestring);
        if (!(text->p = io_text(f, item->valuestring, text->n)))
            return false;
        jot_Meta m = {.key = key, .kind = JOT_META_TEXT, .count = 1, .texts = text};
        if (!io_add_meta(f, &m))
            return false;
    }
    return true;
}

static bool
st_header(IoFile *f, const cJSON *header, uint64_t begin)
{
    uint64_t total = 0;

    for (const cJSON *item = header->child; item; item = item->next)
        if (!strcmp(item->string, "__metadata__") ? !st_metadata(f, item)
                                                  : !st_tensor(f, item, begin, &total))
            return false;
    if (total != f->bytes.n - begin)
        return io_fail(f, JOT_EIO, "byte %llu: tensors of %llu bytes asked, %llu found",
                       (unsigned long long)begin, (unsigned long long)total,
                       (unsigned long long)(f->bytes.n - begin));
    return true;
}

bool
io_safetensors_read(IoFile *f)
{
    IoBytes b = f->bytes;
    uint64_t n = io_little(b.p, 8);
    const char *end = NULL, *text = (const char *)b.p + 8;

    if (n > b.n - 8 || n > ST_HEADER)
        return io_fail(f, JOT_EIO, "byte 0: a header of at most %llu bytes asked, %llu found",
                       (unsigned long long)(b.n - 8 < ST_HEADER ? b.n - 8 : ST_HEADER),
                       (unsigned long long)n);
    if (!st_shallow(f, (IoBytes){b.p + 8, (size_t)n}))
        return false;
    cJSON *header = cJSON_ParseWithLengthOpts(text, (size_t)n, &end, 0);
    while (header && end < text + n && *end == ' ')
        end++;
    bool fine = header && cJSON_IsObject(header) && end == text + n;
    if (!fine)
        io_fail(f, JOT_EIO, "byte %llu: header: no JSON, or no memory for it",
                (unsigned long long)(end ? end - text + 8 : 8));
    fine = fine && st_header(f, header, 8 + n);
    cJSON_Delete(header);
    return fine;
}

/* ---- writing ---- */

bool
io_safetensors_fits(IoOut *o)
{
    if (!io_is_little()) {
        jot_raise(o->ctx, JOT_EUSE, "%s: safetensors keeps numbers of the other byte order",
                  o->path);
        return false;
    }
    for (int k = 0; k < o->how->metas; k++) {
        const jot_Meta *m = &o->how->meta[k];
        if (m->kind != JOT_META_TEXT || m->list || m->count != 1
            || !io_is_text(m->key, strlen(m->key)) || !io_is_text(m->texts->p, m->texts->n)) {
            jot_raise(o->ctx, JOT_EUSE, "%s: metadata %s: safetensors keeps texts alone, in UTF-8",
                      o->path, m->key);
            return false;
        }
    }
    for (int k = 0; k < o->n; k++)
        if (!strcmp(o->tensor[k].name, "__metadata__")
            || !io_is_text(o->tensor[k].name, strlen(o->tensor[k].name))) {
            jot_raise(o->ctx, JOT_EUSE, "%s: a tensor cannot be %s", o->path, o->tensor[k].name);
            return false;
        }
    return true;
}

static bool
st_add(cJSON *object, const char *name, cJSON *item)
{
    if (item && cJSON_AddItemToObject(object, name, item))
        return true;
    cJSON_Delete(item);
    return false;
}

static bool
st_append(cJSON *array, double number)
{
    cJSON *item = cJSON_CreateNumber(number);

    if (item && cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

static bool
st_describe(cJSON *header, const jot_Named *tensor, uint64_t *at)
{
    cJSON *item = cJSON_CreateObject(), *shape = cJSON_CreateArray(), *place = cJSON_CreateArray();
    jot_Var v = tensor->var;
    int type = 0;

    while (st_types[type].dtype != jot_dtype(v))
        type++;
    bool fine = item && shape && place;
    for (int d = 0; fine && d < jot_rank(v); d++)
        fine = st_append(shape, (double)jot_extent(v, d));
    fine = fine && st_append(place, (double)*at)
        && st_append(place, (double)(*at += io_var_nbytes(v)))
        && st_add(item, "dtype", cJSON_CreateString(st_types[type].name));
    if (fine) { /* which owns what it is given, or deletes it */
        fine = st_add(item, "shape", shape), shape = NULL;
        fine = st_add(item, "data_offsets", place) && fine, place = NULL;
        fine = st_add(header, tensor->name, item) && fine, item = NULL;
    }
    cJSON_Delete(shape);
    cJSON_Delete(place);
    cJSON_Delete(item);
    return fine;
}

static bool
st_describe_meta(cJSON *header, const jot_Writing *how)
{
    cJSON *map = cJSON_CreateObject();
    bool fine = map != NULL;

    for (int k = 0; fine && k < how->metas; k++) {
        const jot_Text *text = how->meta[k].texts;
        char *copy = malloc(text->n + 1);
        if (copy) {
            if (text->n)
                memcpy(copy, text->p, text->n);
            copy[text->n] = 0;
        }
        fine = copy && st_add(map, how->meta[k].key, cJSON_CreateString(copy));
        free(copy);
    }
    if (fine && how->metas)
        return st_add(header, "__metadata__", map);
    cJSON_Delete(map);
    return fine;
}

/* The tensors of elements of `each` bytes: described, or written. */
static bool
st_width(IoOut *o, size_t each, cJSON *header, uint64_t *at)
{
    for (int k = 0; k < o->n; k++) {
        jot_Var v = o->tensor[k].var;
        if (jot_dtype_nbytes(jot_dtype(v)) == each
            && !(header ? st_describe(header, &o->tensor[k], at)
                        : io_put(o, o->data[k], io_var_nbytes(v))))
            return false;
    }
    return true;
}

static bool
st_widths(IoOut *o, cJSON *header)
{
    uint64_t at = 0;

    return st_width(o, 8, header, &at) && st_width(o, 4, header, &at)
        && st_width(o, 2, header, &at) && st_width(o, 1, header, &at);
}

bool
io_safetensors_write(IoOut *o)
{
    cJSON *header = cJSON_CreateObject();
    bool fine = header && st_describe_meta(header, o->how) && st_widths(o, header);
    char *text = fine ? cJSON_PrintUnformatted(header) : NULL;
    uint8_t size[8];

    if (!text)
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for its header", o->path);
    else {
        uint64_t n = strlen(text), end = (8 + n + 63) / 64 * 64;
        io_store(size, end - 8, 8);
        fine = io_put(o, size, 8) && io_put(o, text, n) && io_pad(o, ' ', end);
    }
    cJSON_free(text);
    cJSON_Delete(header);
    return text && fine && st_widths(o, NULL);
}
#endif
#endif
