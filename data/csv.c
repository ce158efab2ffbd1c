/* data/csv.c - tables as text (RFC 4180): cells, then columns of numbers or of classes.
 *
 *     name,weight,"kind, as found"      the text is copied once, its cells are unquoted in place
 *     7,"1,5",a                         and end in a 0: a cell is where it begins
 *
 * A row keeps the line it began on, so that a number that is none is found again. A cell takes at
 * least a byte of the text and 8 bytes here.
 *
 * Read before: data/file.c. After: data/vocab.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>

typedef struct {
    jot_Csv csv;         /* the first: a jot_Csv is where this is */
    const char *name;    /* of the file, behind the text */
    char *text;
    uint32_t *cell;      /* where each begins; those of the header first */
    uint32_t *line;      /* of each row */
    const char **names;
    char *missing;       /* words, each ended by a 0, then another 0 */
    size_t cells, room, lines, line_room;
} Csv;

static Csv *
csv_own(const jot_Csv *csv)
{
    return csv ? csv->own : NULL;
}

static bool
csv_fail(Csv *c, jot_Status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    c->csv.status = status;
    vsnprintf(c->csv.message, sizeof c->csv.message, format, args);
    va_end(args);
    return false;
}

static bool
csv_push(Csv *c, uint32_t **list, size_t *n, size_t *room, size_t value)
{
    if (*n == *room) {
        size_t more = *room ? 2 * *room : 256;
        void *p = realloc(*list, more * sizeof **list);
        if (!p)
            return csv_fail(c, JOT_EMEM, "%s: no memory for %zu cells", c->name, more);
        *list = p;
        *room = more;
    }
    (*list)[(*n)++] = (uint32_t)value;
    return true;
}

static int
csv_zero(Csv *c, size_t line)
{
    csv_fail(c, JOT_EIO, "%s: line %zu: text asked, a byte of 0 found", c->name, line);
    return -1;
}

/* One cell from *at on, unquoted to its beginning; *at: behind what ends it, which is returned (a
 * separator, '\n', or 0 at the end of the text). -1: failed. */
static int
csv_cell(Csv *c, size_t *at, size_t n, char separator, size_t *line)
{
    char *p = c->text, *to = p + *at;
    size_t k = *at, began = *line;

    if (!csv_push(c, &c->cell, &c->cells, &c->room, *at))
        return -1;
    if (k < n && p[k] == '"') {
        for (k++;; k++) {
            if (k == n)
                return csv_fail(c, JOT_EIO, "%s: line %zu: column %zu: a quote begins and does not "
                                "end", c->name, began, c->cells) - 1;
            if (p[k] == '"' && ++k < n && p[k] != '"')
                break;
            if (k == n)
                break;
            if (!p[k])
                return csv_zero(c, *line);
            *line += p[k] == '\n';
            *to++ = p[k];
        }
        if (k < n && p[k] != separator && p[k] != '\n' && p[k] != '\r')
            return csv_fail(c, JOT_EIO, "%s: line %zu: a separator or the end of the line asked "
                            "behind a quote, '%.1s' found", c->name, *line, p + k) - 1;
    }
    while (k < n && p[k] != separator && p[k] != '\n' && !(p[k] == '\r' && p[k + 1] == '\n')) {
        if (!p[k])
            return csv_zero(c, *line);
        *to++ = p[k++];
    }
    k += k < n && p[k] == '\r' && k + 1 < n && p[k + 1] == '\n';
    int end = k < n ? p[k] : 0;
    *to = 0;
    *at = k < n ? k + 1 : n;
    *line += end == '\n';
    return end == '\n' || !end ? end : separator;
}

static bool
csv_lines(Csv *c, size_t n, char separator)
{
    size_t line = 1, first = 0;

    for (size_t at = 0; at < n;) {
        size_t began = line, before = c->cells;
        if (c->text[at] == '\n' || (c->text[at] == '\r' && c->text[at + 1] == '\n')) {
            at += c->text[at] == '\n' ? 1 : 2;
            line++;
            continue;
        }
        int end;
        do
            end = csv_cell(c, &at, n, separator, &line);
        while (end == separator && at < n);
        if (end == separator && (!csv_push(c, &c->cell, &c->cells, &c->room, n)))
            return false; /* the text ends behind a separator: one more empty cell */
        if (end < 0)
            return false;
        size_t found = c->cells - before;
        first = first ? first : found;
        if (found != first)
            return csv_fail(c, JOT_EIO, "%s: line %zu: %zu columns asked, as the first line has, "
                            "%zu found", c->name, began, first, found);
        if (!csv_push(c, &c->line, &c->lines, &c->line_room, began))
            return false;
    }
    c->csv.columns = (int)first;
    return first <= 1 << 20 || csv_fail(c, JOT_EIO, "%s: at most 2^20 columns asked, %zu found",
                                        c->name, first);
}

/* Names from the header or by number: the text of these stands behind the pointers. */
static bool
csv_names(Csv *c, bool no_header)
{
    const size_t n = (size_t)c->csv.columns;
    c->names = malloc(n * (sizeof *c->names + 8) + 1);

    if (!c->names)
        return csv_fail(c, JOT_EMEM, "%s: no memory for %zu names", c->name, n);
    char *own = (char *)(c->names + n);
    for (size_t k = 0; k < n; k++) {
        c->names[k] = no_header ? own + 8 * k : c->text + c->cell[k];
        snprintf(own + 8 * k, 8, "%u", (unsigned)(k & 0xfffff));
    }
    c->csv.names = c->names;
    c->csv.rows = (int64_t)c->lines - (no_header || !c->lines ? 0 : 1);
    if (!no_header && c->lines) {
        memmove(c->cell, c->cell + n, (c->cells - n) * sizeof *c->cell);
        memmove(c->line, c->line + 1, (c->lines - 1) * sizeof *c->line);
    }
    return true;
}

jot_Csv *
jot_csv_parse(const char *name, const void *text, size_t nbytes, const jot_CsvForm *form)
{
    static const jot_CsvForm plain = {0, false, NULL};
    const jot_CsvForm f = form ? *form : plain;
    const size_t named = strlen(name = name ? name : "text") + 1;
    Csv *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->csv.own = c;
    c->name = "text";
    if (f.separator && ((unsigned char)f.separator >= 128 || strchr("\"\r\n", f.separator)))
        csv_fail(c, JOT_ERANGE, "%s: a separator of ASCII, no quote or end of line, asked, byte %d "
                 "found", name, (unsigned char)f.separator);
    else if (nbytes > UINT32_MAX / 2)
        csv_fail(c, JOT_EIO, "%s: at most 2^31 bytes of text asked, %zu found", name, nbytes);
    else if (!(c->text = malloc(nbytes + 2 + named)) ||
             !(c->missing = calloc(1, f.missing ? strlen(f.missing) + 3 : 3)))
        csv_fail(c, JOT_EMEM, "%s: no memory for %zu bytes", name, nbytes);
    else {
        const bool marked = nbytes >= 3 && !memcmp(text, "\357\273\277", 3); /* UTF-8's mark */
        if (nbytes)
            memcpy(c->text, (const char *)text + 3 * marked, nbytes -= 3 * (size_t)marked);
        c->text[nbytes] = c->text[nbytes + 1] = 0;
        c->name = memcpy(c->text + nbytes + 2, name, named);
        if (f.missing)
            strcpy(c->missing, f.missing);
        for (char *m = c->missing; *m; m++)
            *m = *m == ',' ? '\1' : *m;
        if (csv_lines(c, nbytes, f.separator ? f.separator : ','))
            csv_names(c, f.no_header);
    }
    return &c->csv;
}

jot_Csv *
jot_csv_read(const char *path, const jot_CsvForm *form)
{
    jot_Buffer *b = data_slurp(path);
    Csv *c;

    if (b && !b->status) {
        jot_Csv *csv = jot_csv_parse(path, b->data, b->nbytes, form);
        jot_buffer_free(b);
        return csv;
    }
    if ((c = calloc(1, sizeof *c))) {
        c->csv.own = c;
        csv_fail(c, b ? b->status : JOT_EMEM, "%s", b ? b->message : "no memory for a file");
    }
    jot_buffer_free(b);
    return c ? &c->csv : NULL;
}

void
jot_csv_free(jot_Csv *csv)
{
    Csv *c = csv_own(csv);

    if (!c)
        return;
    free(c->text);
    free(c->cell);
    free(c->line);
    free((void *)c->names);
    free(c->missing);
    free(c);
}

const char *
jot_csv_cell(const jot_Csv *csv, int64_t row, int column)
{
    const Csv *c = csv_own(csv);
    bool there = c && !csv->status && row >= 0 && row < csv->rows && column >= 0 &&
                 column < csv->columns;

    return there ? c->text + c->cell[row * csv->columns + column] : NULL;
}

/* ---- columns ---- */

static int
csv_find(const jot_Csv *csv, const char *name)
{
    int k = 0;

    while (k < csv->columns && strcmp(csv->names[k], name))
        k++;
    return k;
}

static jot_Buffer *
csv_bad(const jot_Csv *csv)
{
    return csv ? data_failed(csv->status, "%s", csv->message)
               : data_failed(JOT_EMEM, "no memory for a table");
}

static jot_Buffer *
csv_no_column(const jot_Csv *csv, const char *name)
{
    return data_failed(JOT_EUSE, "%s: column \"%s\" asked, not among the %d found",
                       csv_own(csv)->name, name, csv->columns);
}

static bool
csv_missing(const Csv *c, const char *cell)
{
    const size_t n = strlen(cell);

    for (const char *m = c->missing; *m; m += *m == '\1') {
        const char *end = strchr(m, '\1');
        size_t word = end ? (size_t)(end - m) : strlen(m);
        if (word == n && !memcmp(m, cell, n))
            return true;
        m += word;
    }
    return !n;
}

/* False: no number of the dtype. */
static bool
csv_number(const char *cell, jot_DType dtype, void *to)
{
    char *end;
    size_t size = jot_dtype_nbytes(dtype);

    errno = 0;
    if (dtype >= JOT_F32) {
        double v = strtod(cell, &end);
        if (size == 4)
            *(float *)to = (float)v;
        else
            *(double *)to = v;
    } else {
        const int bits = 8 * (int)size, is_signed = dtype <= JOT_I64;
        const bool top = dtype == JOT_U64 && !strchr(cell, '-');
        long long v = top ? (long long)strtoull(cell, &end, 10) : strtoll(cell, &end, 10);
        const int64_t lo = !is_signed ? 0 : INT64_MIN >> (64 - bits);
        const int64_t hi = bits < 64 ? ((int64_t)1 << (bits - is_signed)) - 1 : INT64_MAX;
        if (errno || ((v < lo || v > hi) && !top))
            return false;
        memcpy(to, &(union { int64_t i; uint8_t b[8]; }){v}.b[
                   (union { uint16_t u; uint8_t b[2]; }){1}.b[0] ? 0 : 8 - size], size);
    }
    while (*end == ' ' || *end == '\t')
        end++;
    return end != cell && !*end;
}

static jot_Buffer *
csv_fill(const jot_Csv *csv, jot_Buffer *b, const int *column)
{
    const Csv *c = csv_own(csv);
    const size_t size = jot_dtype_nbytes(b->dtype);
    char *to = b->data;

    for (int64_t row = 0; row < b->shape[0]; row++)
        for (int64_t k = 0; k < b->shape[1]; k++, to += size) {
            const int at = column ? column[k] : (int)k;
            const char *cell = jot_csv_cell(csv, row, at);
            if (csv_missing(c, cell) && b->dtype >= JOT_F32) {
                if (size == 4)
                    *(float *)(void *)to = NAN;
                else
                    *(double *)(void *)to = NAN;
            } else if (!csv_number(cell, b->dtype, to))
                return data_fail(b, JOT_EIO, "%s: line %u: column %d (%.40s): a number of %s "
                                             "asked, "
                                 "\"%.40s\" found", c->name, c->line[row], at + 1, csv->names[at],
                                 jot_dtype_name(b->dtype), cell);
        }
    return b;
}

jot_Buffer *
jot_csv_numbers(const jot_Csv *csv, jot_Strs columns, jot_DType dtype)
{
    if (!csv || csv->status)
        return csv_bad(csv);
    if ((unsigned)dtype >= JOT_DTYPES || dtype == JOT_BOOL || dtype == JOT_F16 || dtype == JOT_BF16)
        return data_failed(JOT_EDTYPE, "csv: an integer dtype, f32 or f64 asked, %s found",
                           (unsigned)dtype < JOT_DTYPES ? jot_dtype_name(dtype) : "none");
    const int n = columns.n > 0 ? columns.n : csv->columns;
    int *column = columns.n > 0 ? malloc((size_t)n * sizeof *column) : NULL;
    if (columns.n > 0 && !column)
        return NULL;
    for (int k = 0; k < columns.n; k++)
        if ((column[k] = csv_find(csv, columns.v[k])) == csv->columns) {
            free(column);
            return csv_no_column(csv, columns.v[k]);
        }
    jot_Buffer *b = jot_buffer_make(dtype, 2, (int64_t[]){csv->rows, n});
    locale_t before = data_locale_begin();
    if (b && !b->status)
        b = csv_fill(csv, b, column);
    data_locale_end(before);
    free(column);
    return b;
}

static int
csv_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words of a column, each once, sorted; NULL: no memory. */
static char **
csv_words(const jot_Csv *csv, int column, int64_t *n)
{
    char **word = malloc(((size_t)csv->rows + 1) * sizeof *word);
    int64_t kept = 0;

    if (!word)
        return NULL;
    for (int64_t row = 0; row < csv->rows; row++)
        word[row] = (char *)(uintptr_t)jot_csv_cell(csv, row, column);
    qsort(word, (size_t)csv->rows, sizeof *word, csv_compare);
    for (int64_t row = 0; row < csv->rows; row++)
        if (!kept || strcmp(word[kept - 1], word[row]))
            word[kept++] = word[row];
    for (int64_t k = 0; k < kept; k++)
        if (!(word[k] = strdup(word[k]))) {
            while (k--)
                free(word[k]);
            free(word);
            return NULL;
        }
    *n = kept;
    return word;
}

jot_Buffer *
jot_csv_classes(const jot_Csv *csv, const char *column, jot_Vocab **words)
{
    if (words)
        *words = NULL;
    if (!csv || csv->status)
        return csv_bad(csv);
    const int at = column ? csv_find(csv, column) : csv->columns;
    if (at == csv->columns)
        return csv_no_column(csv, column ? column : "(NULL)");
    int64_t n;
    char **word = csv_words(csv, at, &n);
    jot_Vocab *vocab = word ? data_vocab(word, n) : NULL;
    jot_Buffer *b = jot_buffer_make(JOT_I64, 1, &csv->rows);
    if (!vocab)
        data_fail(b, JOT_EMEM, "%s: no memory for the classes of %s", csv_own(csv)->name, column);
    for (int64_t row = 0; b && !b->status && row < csv->rows; row++)
        ((int64_t *)b->data)[row] = jot_vocab_find(vocab, jot_csv_cell(csv, row, at));
    if (words && b && !b->status)
        *words = vocab;
    else
        jot_vocab_free(vocab);
    return b;
}

/* ---- writing ---- */

void
data_csv_name(FILE *f, const char *s)
{
    if (!s[strcspn(s, ",\"\r\n")]) {
        fputs(s, f);
        return;
    }
    putc('"', f);
    for (; *s; s++)
        fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
    putc('"', f);
}

static void
csv_put(FILE *f, const void *data, int64_t k, jot_DType dtype)
{
    if (dtype == JOT_F64)
        fprintf(f, "%.17g", ((const double *)data)[k]);
    else if (dtype == JOT_F32)
        fprintf(f, "%.9g", (double)((const float *)data)[k]);
    else if (dtype == JOT_U64)
        fprintf(f, "%llu", (unsigned long long)((const uint64_t *)data)[k]);
    else
        fprintf(f, "%lld", (long long)((const int64_t *)data)[k]);
}

bool
jot_write_csv(jot_Var v, jot_Strs names, const char *path)
{
    jot_Ctx *ctx = v.ctx;

    if (!jot_check(ctx, v, "write_csv", "v"))
        return false;
    if (jot_rank(v) != 2 || (names.n && names.n != jot_extent(v, 1)))
        return jot_ok(jot_raise(ctx, JOT_ESHAPE, "write_csv: (rows, columns) asked, %d names for "
                                "these, rank %d and %lld elements found", names.n, jot_rank(v),
                                (long long)jot_nelem(v)));
    const jot_DType own = jot_dtype(v);
    const jot_DType dtype = own == JOT_F64 || own == JOT_U64 ? own : own >= JOT_F16 ? JOT_F32
                                                                                    : JOT_I64;
    jot_push(ctx);
    const void *data = jot_data(jot_cast(v, dtype));
    FILE *f = data ? data_create(ctx, path) : NULL;
    const int64_t rows = jot_extent(v, 0), columns = jot_extent(v, 1);
    locale_t before = data_locale_begin();
    for (int k = 0; f && k < names.n; k++) {
        data_csv_name(f, names.v[k]);
        putc(k + 1 < names.n ? ',' : '\n', f);
    }
    for (int64_t k = 0; f && k < rows * columns; k++) {
        csv_put(f, data, k, dtype);
        putc((k + 1) % columns ? ',' : '\n', f);
    }
    data_locale_end(before);
    bool ok = f && data_finish(ctx, f, path);
    jot_pop(ctx);
    return ok;
}
#endif
