/* base.c - arrays, arena, text, hashing: with base_mem.c, what jot uses for a libc.
 *
 *   Vec     doubling array in one block                    Text    a growing string, like printf
 *   Arena   head -> block -> block, bump pointer
 *
 * Nothing here knows about graphs or kernels. Read base_mem.c before; ops/index/index.c after. */
#include "base.h"

/* ---- growable arrays ----------------------------------------------------------------------- */

JOT_FN bool
jot_vec_grow(Mem *mem, void **v, uint32_t *cap, uint32_t n, uint32_t more, size_t size)
{
    uint64_t want = (uint64_t)n + more;
    uint64_t grown = JOT_WATCHED ? *cap + *cap / 32 : (uint64_t)*cap + *cap / 2 + 8;
    void *p;

    if (want <= *cap)
        return true;
    if (grown < want)
        grown = want;
    if (grown > UINT32_MAX || grown > SIZE_MAX / 2 / size) {
        mem->failed = true;
        mem->refused_nbytes = SIZE_MAX;
        return false;
    }
    p = jot_mem_realloc(mem, *v, (size_t)*cap * size, (size_t)grown * size);
    if (!p)
        return false;
    *v = p;
    *cap = (uint32_t)grown;
    return true;
}

/* ---- arena -------------------------------------------------------------------------------- */

struct ArenaBlock {
    ArenaBlock *next;
    size_t nbytes, used; /* of this block, this header included */
    uint64_t pad;        /* keeps what follows 16-byte aligned */
};

enum { ARENA_FIRST = 4096, ARENA_MOST = 1 << 20 };

static ArenaBlock *
arena_grow(Arena *arena, size_t nbytes)
{
    size_t size = arena->head ? arena->head->nbytes * 2 : ARENA_FIRST;
    ArenaBlock *block;

    if (size > ARENA_MOST)
        size = ARENA_MOST;
    if (size < nbytes + sizeof *block)
        size = nbytes + sizeof *block;
    block = jot_mem_realloc(arena->mem, NULL, 0, size);
    if (!block)
        return NULL;
    block->next = arena->head;
    block->nbytes = size;
    block->used = sizeof *block;
    arena->head = block;
    return block;
}

JOT_FN void *
jot_arena_new(Arena *arena, size_t count, size_t size)
{
    ArenaBlock *block = arena->head;
    size_t nbytes;
    char *p;

    if (size && count > SIZE_MAX / 4 / size) {
        arena->mem->failed = true;
        arena->mem->refused_nbytes = SIZE_MAX;
        return NULL;
    }
    nbytes = (count * size + 15) & ~(size_t)15;
    if (!nbytes)
        nbytes = 16;
    if (!block || block->nbytes - block->used < nbytes)
        block = arena_grow(arena, nbytes);
    if (!block)
        return NULL;
    p = (char *)block + block->used;
    block->used += nbytes;
    memset(p, 0, nbytes);
    return p;
}

JOT_FN char *
jot_arena_copy(Arena *arena, const char *text, size_t n)
{
    char *p = jot_arena_new(arena, n + 1, 1);

    if (p && n)
        memcpy(p, text, n);
    return p;
}

JOT_FN void
jot_arena_join(Arena *arena, Arena *from)
{
    ArenaBlock **last = &arena->head;

    while (*last)
        last = &(*last)->next;
    *last = from->head;
    from->head = NULL;
}

JOT_FN void
jot_arena_free(Arena *arena)
{
    while (arena->head) {
        ArenaBlock *block = arena->head;

        arena->head = block->next;
        jot_mem_free(arena->mem, block, block->nbytes);
    }
}

/* ---- text --------------------------------------------------------------------------------- */

JOT_FN void
jot_text_put(Text *text, const char *s, size_t n)
{
    if (text->n + n + 1 > text->cap) {
        size_t cap = JOT_WATCHED ? text->n + n + 1 + text->cap / 32 : text->cap * 2 + n + 64;
        char *p = text->mem ? jot_mem_realloc(text->mem, text->s, text->cap, cap) : NULL;

        if (p) {
            text->s = p;
            text->cap = cap;
        } else {
            n = text->cap > text->n + 1 ? text->cap - text->n - 1 : 0;
        }
    }
    if (n)
        memcpy(text->s + text->n, s, n);
    text->n += n;
    if (text->cap)
        text->s[text->n] = 0;
}

JOT_FN void
jot_text_free(Text *text)
{
    if (text->mem)
        jot_mem_free(text->mem, text->s, text->cap);
    text->s = NULL;
    text->n = text->cap = 0;
}

static int
text_unsigned(char *buf, uint64_t x, unsigned base)
{
    char tmp[24];
    int n = 0, i;

    do {
        tmp[n++] = "0123456789abcdef"[x % base];
        x /= base;
    } while (x);
    for (i = 0; i < n; i++)
        buf[i] = tmp[n - 1 - i];
    return n;
}

static uint64_t
text_bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* A hex float of a finite x >= 0: 0x1.8p+1 */
static int
text_hex(char *buf, double x)
{
    uint64_t u = text_bits(x), frac = u & (((uint64_t)1 << 52) - 1);
    int e = (int)(u >> 52 & 0x7ff), n = 0, digits = 13;

    buf[n++] = '0';
    buf[n++] = 'x';
    buf[n++] = e ? '1' : '0';
    while (digits && !(frac & 15)) {
        frac >>= 4;
        digits--;
    }
    if (digits) {
        int i;

        buf[n++] = '.';
        for (i = digits - 1; i >= 0; i--)
            buf[n++] = "0123456789abcdef"[frac >> (4 * i) & 15];
    }
    e = e ? e - 1023 : x == 0 ? 0 : -1022;
    buf[n++] = 'p';
    buf[n++] = e < 0 ? '-' : '+';
    return n + text_unsigned(buf + n, (uint64_t)(e < 0 ? -e : e), 10);
}

/* Does the decimal m / 10^k read back as x? Both are exact in a double (m < 2^53, k <= 22), so
 * their quotient is the correctly rounded value of the literal; for a float the double must not lie
 * on the middle between two floats, where rounding twice could differ from rounding once. */
static bool
text_decimal_is(double m, double power, double x, bool is_f32)
{
    double q = m / power;

    if (!is_f32)
        return q == x;
    return (double)(float)q == x && (text_bits(q) & 0x1fffffff) != 0x10000000;
}

/* Decimal with k digits after the point: m / 10^k. */
static int
text_decimal(char *buf, uint64_t m, int k)
{
    char tmp[40];
    int n = text_unsigned(tmp, m, 10), i, at = 0;

    for (i = n; i <= k; i++)
        buf[at++] = '0', at += i == n && k ? (buf[at] = '.', 1) : 0;
    if (n <= k) {
        for (i = 0; i < n; i++)
            buf[at++] = tmp[i];
        return at;
    }
    for (i = 0; i < n; i++) {
        if (k && i == n - k)
            buf[at++] = '.';
        buf[at++] = tmp[i];
    }
    return at;
}

JOT_FN int
jot_text_float(char *buf, double x, bool is_f32)
{
    double power = 1;
    int n = 0, k;

    if (x < 0 || (x == 0 && text_bits(x))) {
        buf[n++] = '-';
        x = -x;
    }
    for (k = 0; k <= 15 && x < 9e15; k++, power *= 10) {
        double m = x * power;

        if (m >= (is_f32 ? 1e9 : 9e15))
            break;
        m = (double)(uint64_t)(m + 0.5);
        if (!text_decimal_is(m, power, x, is_f32))
            continue;
        n += text_decimal(buf + n, (uint64_t)m, k);
        if (!k) {
            buf[n++] = '.';
            buf[n++] = '0';
        }
        goto suffix;
    }
    n += text_hex(buf + n, x);
suffix:
    if (is_f32)
        buf[n++] = 'f';
    buf[n] = 0;
    return n;
}

static int
text_number(char *buf, double x)
{
    int n;

    if (x != x)
        return memcpy(buf, "nan", 3), 3;
    if (x - x != 0)
        return memcpy(buf, x < 0 ? "-inf" : "+inf", 4), 4;
    n = jot_text_float(buf, x, false);
    if (n > 2 && buf[n - 1] == '0' && buf[n - 2] == '.')
        n -= 2;
    return n;
}

typedef struct { int width, precision, longs; bool left, zero; } TextSpec;

static const char *
text_spec(const char *f, TextSpec *spec, va_list *args)
{
    spec->width = spec->longs = 0;
    spec->precision = -1;
    spec->left = spec->zero = false;
    for (; *f == '-' || *f == '0'; f++)
        *(*f == '-' ? &spec->left : &spec->zero) = true;
    if (*f == '*') {
        spec->width = va_arg(*args, int);
        f++;
    }
    for (; *f >= '0' && *f <= '9'; f++)
        spec->width = spec->width * 10 + (*f - '0');
    if (f[0] == '.' && f[1] == '*') {
        spec->precision = va_arg(*args, int);
        f += 2;
    }
    for (; *f == 'l' || *f == 'z'; f++)
        spec->longs += *f == 'z' ? 3 : 1;
    return f;
}

static void
text_pad(Text *text, const char *s, size_t n, const TextSpec *spec)
{
    size_t width = (size_t)spec->width, i;

    for (i = n; i < width && !spec->left; i++)
        jot_text_put(text, spec->zero ? "0" : " ", 1);
    jot_text_put(text, s, n);
    for (i = n; i < width && spec->left; i++)
        jot_text_put(text, " ", 1);
}

static int
text_integer(char *buf, char conv, const TextSpec *spec, va_list *args)
{
    int64_t s;
    uint64_t u;
    int n = 0;

    if (conv == 'd' || conv == 'i') {
        s = spec->longs >= 3 ? (int64_t)va_arg(*args, size_t)
          : spec->longs == 2 ? (int64_t)va_arg(*args, long long)
          : spec->longs == 1 ? (int64_t)va_arg(*args, long) : va_arg(*args, int);
        if (s < 0)
            buf[n++] = '-';
        return n + text_unsigned(buf + n, s < 0 ? 0 - (uint64_t)s : (uint64_t)s, 10);
    }
    u = spec->longs >= 3 ? va_arg(*args, size_t)
      : spec->longs == 2 ? va_arg(*args, unsigned long long)
      : spec->longs == 1 ? va_arg(*args, unsigned long) : va_arg(*args, unsigned);
    return text_unsigned(buf, u, conv == 'x' ? 16 : 10);
}

static void
text_one(Text *text, char conv, const TextSpec *spec, va_list *args)
{
    char buf[48];
    const char *s = buf;
    size_t n = 1;

    switch (conv) {
    case 'd': case 'i': case 'u': case 'x':
        n = (size_t)text_integer(buf, conv, spec, args);
        break;
    case 'c':
        buf[0] = (char)va_arg(*args, int);
        break;
    case 's':
        s = va_arg(*args, const char *);
        s = s ? s : "(null)";
        for (n = 0; (spec->precision < 0 || n < (size_t)spec->precision) && s[n]; n++)
            ;
        break;
    case 'g':
        n = (size_t)text_number(buf, va_arg(*args, double));
        break;
    default:
        buf[0] = conv; /* %% */
    }
    text_pad(text, s, n, spec);
}

JOT_FN void
jot_text_v(Text *text, const char *format, va_list args)
{
    va_list copy;

    va_copy(copy, args);
    while (*format) {
        const char *p = format;
        TextSpec spec;

        while (*p && *p != '%')
            p++;
        if (p != format)
            jot_text_put(text, format, (size_t)(p - format));
        if (!*p)
            break;
        p = text_spec(p + 1, &spec, &copy);
        if (!*p)
            break;
        text_one(text, *p, &spec, &copy);
        format = p + 1;
    }
    va_end(copy);
}

JOT_FN void
jot_text_f(Text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    jot_text_v(text, format, args);
    va_end(args);
}

/* ---- strings, hashing, bits --------------------------------------------------------------- */

JOT_FN void
jot_sized(void *to, size_t to_nbytes, const void *from, size_t from_nbytes)
{
    size_t both = to_nbytes < from_nbytes ? to_nbytes : from_nbytes;

    memcpy(to, from, both);
    memset((char *)to + both, 0, to_nbytes - both);
}

JOT_FN size_t
jot_str_len(const char *s)
{
    size_t n = 0;

    while (s[n])
        n++;
    return n;
}

JOT_FN bool
jot_char_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

JOT_FN bool
jot_str_eq(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

JOT_FN uint64_t
jot_str_seed(const char *word)
{
    uint64_t seed = 0;

    while (*word && *word != ':')
        word++;
    for (; *word; word++)
        if (*word >= '0' && *word <= '9')
            seed = seed * 10 + (uint64_t)(*word - '0');
    return seed;
}

/* One round: multiply and fold the high half back, so that every input bit reaches every output bit
 * within two rounds. Equality is always checked by comparison: this only has to spread. */
JOT_FN uint64_t
jot_hash_u64(uint64_t seed, uint64_t value)
{
    uint64_t h = (seed ^ value) * 0x9e3779b97f4a7c15u;

    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 29;
}

JOT_FN uint64_t
jot_hash(uint64_t seed, const void *p, size_t nbytes)
{
    const unsigned char *s = p;
    uint64_t h = jot_hash_u64(seed, nbytes), tail = 0;

    for (; nbytes >= 8; nbytes -= 8, s += 8) {
        uint64_t w;

        memcpy(&w, s, 8);
        h = jot_hash_u64(h, w);
    }
    if (nbytes)
        memcpy(&tail, s, nbytes);
    return jot_hash_u64(h, tail);
}

JOT_FN int
jot_bits_count(uint64_t bits)
{
    int n = 0;

    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

JOT_FN int
jot_bits_first(uint64_t bits)
{
    int n = 0;

    if (!bits)
        return -1;
    for (; !(bits & 1); bits >>= 1)
        n++;
    return n;
}

JOT_FN uint32_t
jot_find_u32(const uint32_t *v, uint32_t n, uint32_t what)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == what)
            return i + 1;
    return 0;
}

/* ---- sorting ------------------------------------------------------------------------------ */

static bool
rank_less(const Rank *x, const Rank *y)
{
    if (x->key != y->key)
        return x->key < y->key;
    if (x->tie != y->tie)
        return x->tie < y->tie;
    return x->a != y->a ? x->a < y->a : x->b < y->b;
}

/* Merge sort: runs of width become runs of twice that. */
JOT_FN void
jot_rank_sort(Rank *v, Rank *tmp, uint32_t n)
{
    uint32_t width, lo;

    for (width = 1; width < n; width *= 2) {
        for (lo = 0; lo < n; lo += 2 * width) {
            uint32_t mid = lo + width < n ? lo + width : n, hi = mid + width < n ? mid + width : n;
            uint32_t a = lo, b = mid, k = lo;

            while (k < hi)
                tmp[k++] = b == hi || (a < mid && !rank_less(&v[b], &v[a])) ? v[a++] : v[b++];
        }
        memcpy(v, tmp, n * sizeof *v);
    }
}

/* ---- checked arithmetic ------------------------------------------------------------------- */

JOT_FN bool
jot_add_ok(int64_t a, int64_t b, int64_t *r)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *r = a + b;
    return true;
}

JOT_FN bool
jot_mul_ok(int64_t a, int64_t b, int64_t *r)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t limit = (a < 0) != (b < 0) ? (uint64_t)1 << 63 : (uint64_t)INT64_MAX;

    if ((x | y) >> 31 && x && y > limit / x) /* a division is dear, and extents are small */
        return false;
    *r = (int64_t)((uint64_t)a * (uint64_t)b);
    return true;
}

JOT_FN int64_t
jot_floor_div(int64_t a, int64_t b)
{
    int64_t q;

    if (b == -1)
        return a == INT64_MIN ? a : -a;
    q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

JOT_FN int64_t
jot_floor_mod(int64_t a, int64_t b)
{
    int64_t r;

    if (b == -1)
        return 0;
    r = a % b;
    return r && (r < 0) != (b < 0) ? r + b : r;
}
