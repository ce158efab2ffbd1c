/* save/field.c - fields of JSON as the graph has them, and what is said of one that is not so.
 *
 * Read before: save/save.h. After: save/read.c. */
#include "save/save.h"
#if !defined JOT_NO_HOST && defined JOT_CJSON
#include <string.h>

/* ---- messages and fields ------------------------------------------------------------------ */

JOT_FN bool
jot_load_bad(Loading *l, const char *format, ...)
{
    char text[600];
    Text t = {NULL, text, 0, sizeof text};
    va_list args;
    int k;

    if (l->ctx->mem.failed)
        return jot_fail_memory(l->ctx, "load");
    for (k = 0; k < l->depth; k++)
        jot_text_f(&t, "node %u: ", l->within[k]);
    if (l->list.at < l->list.n)
        jot_text_f(&t, "node %u: ", l->list.at);
    va_start(args, format);
    jot_text_v(&t, format, args);
    va_end(args);
    return jot_fail(l->ctx, JOT_EIO, "load: %s: %s", l->file, text);
}

JOT_FN bool
jot_load_fields(Loading *l, const cJSON *item, const char *what, const char *const *names, int n,
                cJSON **field)
{
    cJSON *f;
    int k;

    memset(field, 0, (size_t)n * sizeof *field);
    if (!cJSON_IsObject(item))
        return jot_load_bad(l, "%s is no object of JSON", what);
    for (f = item->child; f; f = f->next) {
        for (k = 0; k < n && !jot_str_eq(names[k], f->string); k++)
            ;
        if (k == n)
            return jot_load_bad(l, "%s has the field \"%.*s\", which this version does not know",
                                what, 60, f->string);
        if (field[k])
            return jot_load_bad(l, "%s has the field \"%s\" twice", what, f->string);
        field[k] = f;
    }
    return true;
}

JOT_FN uint32_t
jot_load_count(const cJSON *array)
{
    uint32_t n = 0;
    const cJSON *item;

    for (item = array ? array->child : NULL; item; item = item->next)
        n++;
    return n;
}

JOT_FN bool
jot_load_whole(Loading *l, const cJSON *item, const char *what, int64_t lo, int64_t hi,
               int64_t *value)
{
    double d = item && cJSON_IsNumber(item) ? item->valuedouble : 0.5;

    if (!(d >= -9007199254740992.0 && d <= 9007199254740992.0) || d != (double)(int64_t)d)
        return jot_load_bad(l, "%s is no whole number", what);
    if ((int64_t)d < lo || (int64_t)d > hi)
        return jot_load_bad(l, "%s is %lld; %lld to %lld asked", what, (long long)d, (long long)lo,
                            (long long)hi);
    *value = (int64_t)d;
    return true;
}

JOT_FN bool
jot_load_array(Loading *l, const cJSON *item, const char *what)
{
    return (item && cJSON_IsArray(item))
        || jot_load_bad(l, "%s is %s", what, item ? "no array" : "not there");
}

JOT_FN bool
jot_load_string(Loading *l, const cJSON *item, const char *what, const char **text)
{
    if (!item || !cJSON_IsString(item))
        return jot_load_bad(l, "%s is %s", what, item ? "no text" : "not there");
    *text = item->valuestring;
    return true;
}

JOT_FN bool
jot_load_shape(Loading *l, const cJSON *item, int *rank, int64_t *ext)
{
    const cJSON *one;

    *rank = 0;
    if (!jot_load_array(l, item, "shape"))
        return false;
    for (one = item->child; one; one = one->next) {
        if (*rank == JOT_MAX_RANK)
            return jot_load_bad(l, "shape has more than %d extents", JOT_MAX_RANK);
        if (!jot_load_whole(l, one, "an extent", 0, (int64_t)1 << 53, &ext[*rank]))
            return false;
        ++*rank;
    }
    return true;
}

JOT_FN bool
jot_load_dtype(Loading *l, const cJSON *item, jot_DType *dtype)
{
    const char *text = "";
    int k;

    if (!jot_load_string(l, item, "dtype", &text))
        return false;
    for (k = 0; k < JOT_DTYPES && !jot_str_eq(jot_dtype_name((jot_DType)k), text); k++)
        ;
    *dtype = (jot_DType)k;
    return k < JOT_DTYPES || jot_load_bad(l, "there is no dtype \"%.*s\"", 20, text);
}

JOT_FN bool
jot_load_bits(Loading *l, const cJSON *item, jot_Scalar *value)
{
    const char *text = "";
    int k;

    if (!jot_load_string(l, item, "bits", &text))
        return false;
    for (k = 0, value->u = 0; k < 16; k++) {
        const char *digits = "0123456789abcdef", *at = text[k] ? strchr(digits, text[k]) : NULL;

        if (!at)
            break;
        value->u = value->u << 4 | (uint64_t)(at - digits);
    }
    return (k == 16 && !text[16]) || jot_load_bad(l, "bits is \"%.*s\", no 16 digits", 20, text);
}
#else
typedef int jot_save_field_nothing;
#endif
