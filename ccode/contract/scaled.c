/* ccode/contract/scaled.c - products of bytes whose sums are scaled, block by block, and summed up
 * again: weights of few bits, with a scale for each 32, times rows that are rounded to bytes, too.
 *
 *     %5 = i32 reduce add over e of w[j, 32*b + e] * x[i, 32*b + e]       in words of four: dot
 *     %9 = f32 reduce add over b of f32 %5 * s[j, b] * t[i, b]
 *
 *     %5: j:64p i:6 b | e:1u i:1u j:16u j:1v        24 vectors of integers, 6 words for all of them
 *     %9: j:64p i:6 | b i:1u j:16u j:1v             a block's scales, a vector for 16 columns
 *     !0: j:64p i:6 i:1u j:16u j:1v
 *
 * Columns go in lanes, so nothing is folded, and what is done once a block is done for a vector of
 * them. For that weights lie in panels of words, scales in panels: copies, that of state is kept.
 * Bytes that lie together are read as the word that they are: the buffer becomes one of words. What
 * is made of bytes by bits (halves of them, another sign) is made of words.
 *
 * Where no instruction takes four bytes of either sign, words are split in pairs of shorts, those
 * of rows once for several blocks of columns:
 *
 *     %3: j:128p i b e:1l; res p3[i, b, e]          and %4, for every second byte
 *     %5: j:128p j:16 i:2 b | e:1u i:1u j:8u j:1v
 *
 *   requires  a verified kernel; *s fresh       keeps  the kernel's values, up to the order of sums
 *   breaks    dtypes and layouts of buffers that are read in words, the extent of an axis
 *
 * Read before: ccode/contract/contract.h, ccode/contract/words.c. After: ccode/lower/lower.c. */
#include "ccode/contract/make.h"
#include "ccode/ir/respace.h"

enum { SCALED_PARTS = 4, SCALED_TERMS = 4, SCALED_UP = 256 /* times as much: scaled_product */ };

/* The instruction that the processor has for it; -1: none. */
static int
scaled_row(const Target *target)
{
    static const int rows[] = { DOT_U8I8, DOT_I8, DOT_I16 }; /* the last may have U7I8, too */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (target->dots >> rows[i] & 1)
            return rows[i];
    return -1;
}

/* ---- what it is ---- */

/* What a byte becomes an integer of: the value below casts to i32. */
static uint32_t
scaled_byte(const Kernel *k, uint32_t value)
{
    const Value *v = &k->values.v[value];

    while (v->op == VAL_EW && v->ew == EW_CAST && v->dtype == JOT_I32) {
        value = k->args.v[v->arg];
        v = &k->values.v[value];
    }
    return v->dtype == JOT_U8 || v->dtype == JOT_I8 ? value : 0;
}

/* The products that the body adds, each of bytes of both signs; how many, 0: it is another. */
static int
scaled_terms(const Kernel *k, uint32_t body, uint32_t *of, int n)
{
    const Value *v = &k->values.v[body];
    const uint32_t *arg = &k->args.v[v->arg];
    uint32_t a, b;

    if (v->op != VAL_EW || v->dtype != JOT_I32 || (v->ew != EW_ADD && v->ew != EW_MUL))
        return 0;
    if (v->ew == EW_ADD) {
        n = scaled_terms(k, arg[0], of, n);
        return n ? scaled_terms(k, arg[1], of, n) : 0;
    }
    a = scaled_byte(k, arg[0]);
    b = scaled_byte(k, arg[1]);
    if (!a || !b || k->values.v[a].dtype == k->values.v[b].dtype || n == SCALED_TERMS)
        return 0;
    of[n] = body;
    return n + 1;
}

/* The factors of a term, first the one of unsigned bytes. */
static void
scaled_factors(const Kernel *k, uint32_t term, uint32_t of[2])
{
    const uint32_t *arg = &k->args.v[k->values.v[term].arg];

    of[0] = scaled_byte(k, arg[0]);
    of[1] = scaled_byte(k, arg[1]);
    if (k->values.v[of[0]].dtype == JOT_I8) {
        uint32_t other = of[0];
        of[0] = of[1];
        of[1] = other;
    }
}

/* An unsigned byte that is below 128. */
static bool
scaled_small(const Kernel *k, uint32_t byte)
{
    const Value *v = &k->values.v[byte];
    uint32_t by = v->op == VAL_EW && v->narg > 1 ? k->args.v[v->arg + 1] : 0;

    return by && k->values.v[by].op == VAL_CONST
        && ((v->ew == EW_BITAND && k->values.v[by].c.u < 128)
            || (v->ew == EW_SHR && v->dtype == JOT_U8 && k->values.v[by].c.u > 0));
}

/* The instruction for a sum of products of bytes, whose unsigned ones are all below 128 if *small;
 * -1: there is none, or pairs of shorts would leave 32 bits. */
static int
scaled_sum_row(const Kernel *k, const Scaled *s, const Target *target, int i, bool *small)
{
    uint32_t term[SCALED_TERMS], of[2];
    int row = scaled_row(target);
    int n = scaled_terms(k, k->args.v[k->values.v[s->dot[i]].arg], term, 0);

    *small = true;
    for (int t = 0; t < n; t++) {
        scaled_factors(k, term[t], of);
        *small = *small && scaled_small(k, of[0]);
    }
    if (row == DOT_I16 && *small && (target->dots >> DOT_U7I8 & 1))
        return DOT_U7I8;
    return row == DOT_I16 && n * k->axes.v[s->inner].ext > SCALED_UP ? -1 : row;
}

/* The sum of products of bytes below a sum: the one reduction there; 0: it is another. */
static uint32_t
scaled_below(const Kernel *k, uint32_t sum)
{
    const Value *v = &k->values.v[sum];
    uint32_t found = 0, n;
    OperandWalk w;

    if (v->ew != EW_ADD || v->dtype != JOT_F32 || v->narg != 1 || v->ncond)
        return 0;
    for (jot_operands_open(&w, k, k->args.v[v->arg]); (n = jot_operands_next(&w)) != 0;) {
        int op = k->values.v[n].op;
        if (op == VAL_AT || op == VAL_SECOND || op == VAL_CALL || (op == VAL_REDUCE && found))
            return 0;
        if (op != VAL_REDUCE)
            continue;
        found = n;
        jot_operands_skip(&w);
    }
    return w.deep ? 0 : found;
}

/* One sum of sums more, whose axes are those of the others. */
static bool
scaled_take(const Kernel *k, Scaled *s, uint32_t sum)
{
    uint32_t dot = scaled_below(k, sum), term[SCALED_TERMS];
    const Value *v = &k->values.v[dot], *outer = &k->values.v[sum];
    uint64_t inner = v->axes;

    if (!dot || s->n == SCALED_SUMS || v->ew != EW_ADD || v->dtype != JOT_I32 || v->narg != 1 ||
        v->ncond || !inner || (inner & (inner - 1)) || (outer->axes & ~v->free) ||
        !scaled_terms(k, k->args.v[v->arg], term, 0))
        return false;
    for (int a = 0; a < (int)k->axes.n; a++)
        s->inner = inner >> a & 1 ? a : s->inner;
    if (s->n && (s->blocks != outer->axes || s->kept != outer->free ||
                 k->values.v[s->dot[0]].axes != inner))
        return false;
    s->blocks = outer->axes;
    s->kept = outer->free;
    s->dot[s->n] = dot;
    s->sum[s->n++] = sum;
    return k->axes.v[s->inner].ext % SCALED_PARTS == 0;
}

/* The axes of columns and rows: those of the larger factor, and of the other one. */
static bool
scaled_axes(const Kernel *k, Scaled *s)
{
    uint32_t term[SCALED_TERMS], of[2];
    uint64_t w, x;

    scaled_terms(k, k->args.v[k->values.v[s->dot[0]].arg], term, 0);
    scaled_factors(k, term[0], of);
    w = k->values.v[of[0]].free;
    x = k->values.v[of[1]].free;
    if (jot_kernel_points(k, w) < jot_kernel_points(k, x)) {
        uint64_t other = w;
        w = x;
        x = other;
    }
    s->v = jot_contract_longest(k, w & ~x & s->kept);
    s->r = jot_contract_longest(k, x & ~w & s->kept);
    return s->v >= 0;
}

JOT_FN bool
jot_scaled_find(const Kernel *k, Scaled *s)
{
    bool *used = jot_kernel_used_new(k), ok = used != NULL;
    int sums = 0;

    memset(s, 0, sizeof *s);
    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        if (!used[i] || v->op != VAL_REDUCE)
            continue;
        sums++;
        if (v->dtype == JOT_F32)
            ok = scaled_take(k, s, i);
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    ok = ok && s->n && sums == 2 * s->n && scaled_axes(k, s);
    for (uint32_t i = 0; ok && i < k->stores.n; i++)
        ok = !k->stores.v[i].acc && !k->stores.v[i].ncond && k->stores.v[i].free == s->kept;
    return ok;
}

/* ---- layouts ---- */

static int
scaled_lanes(const Target *target)
{
    return target->vector_nbytes / (int)sizeof(float);
}

/* The dimension of the access that is the axis; -1: none. */
static int
scaled_dim(const Kernel *k, const Value *load, int axis)
{
    int of;

    for (int d = 0; d < load->nidx; d++)
        if (jot_ix_is_axis(k->ix, k->ixs.v[load->at + (uint32_t)d], &of) && of == axis)
            return d;
    return -1;
}

/* The dimension along which neighbours of the sum of bytes are neighbours, and blocks begin at
 * words; -1: none. */
static int
scaled_word_dim(const Kernel *k, const Value *load, int axis)
{
    int64_t at[KERNEL_AXES] = {0};
    int dim = -1;

    for (int d = 0; d < load->nidx; d++) {
        Ix ix = k->ixs.v[load->at + (uint32_t)d];
        bool inside = false, words = true;
        if (!(jot_ix_axes(k->ix, ix) >> axis & 1))
            continue;
        for (int a = 0; a < (int)k->axes.n; a++) {
            int64_t coef = jot_ix_coef(k->ix, ix, a, &inside);
            words &= a == axis ? coef == 1 : coef % SCALED_PARTS == 0;
        }
        if (dim >= 0 || inside || !words || k->bufs.v[load->buf].ext[d] % SCALED_PARTS ||
            jot_ix_eval(k->ix, ix, at, NULL, NULL) % SCALED_PARTS)
            return -1;
        dim = d;
    }
    return dim;
}

JOT_FN bool
jot_scaled_wish(const Kernel *k, const Scaled *s, const Target *target, uint32_t buf,
                Layout *layout)
{
    const KBuf *b = &k->bufs.v[buf];
    uint32_t at = 0;
    LayoutPart part[LAYOUT_PARTS];
    int n = 0, columns, words;
    bool small;

    for (int i = 0; i < s->n; i++)
        if (scaled_sum_row(k, s, target, i, &small) < 0)
            return false;
    if (b->role != BUF_INPUT)
        return false;
    for (int i = 0; i < s->n && !at; i++)
        at = jot_operands_load(k, s->sum[i], buf);
    if (!at || !(k->values.v[at].free >> s->v & 1))
        return false;
    columns = scaled_dim(k, &k->values.v[at], s->v);
    words = k->values.v[at].free >> s->inner & 1
                ? scaled_word_dim(k, &k->values.v[at], s->inner) : -1;
    if (columns < 0 || b->rank + 2 > LAYOUT_PARTS)
        return false;
    for (int d = 0; d < b->rank; d++)
        part[n++] = (LayoutPart){(uint8_t)d, d == columns ? scaled_lanes(target)
                                             : d == words ? SCALED_PARTS : 1};
    part[n++] = (LayoutPart){(uint8_t)columns, 1};
    if (words >= 0)
        part[n++] = (LayoutPart){(uint8_t)words, 1};
    return jot_layout_make(layout, b->rank, b->ext, n, part, NULL, NULL);
}

/* ---- words ---- */

/* A load in words: at the same place, whose axis counts these. */
static uint32_t
scaled_load(Kernel *k, const Scaled *s, const Value *load)
{
    int dim = scaled_word_dim(k, load, s->inner);
    Ix ix[JOT_MAX_RANK], part = jot_ix_const(k->ix, SCALED_PARTS);
    Layout words;
    Respace r;

    if (load->ncond || dim < 0)
        return 0;
    if (k->bufs.v[load->buf].dtype != JOT_U32
        && !(jot_words_layout(k, load->buf, dim, SCALED_PARTS, &words)
             && jot_words_buffer(k, load->buf, &words)))
        return 0;
    jot_respace_open(&r, k);
    r.ext[s->inner] /= SCALED_PARTS;
    jot_respace_place(&r, s->inner, jot_ix_scale(k->ix, r.place[s->inner], SCALED_PARTS));
    for (int d = 0; d < load->nidx; d++) {
        ix[d] = k->ixs.v[load->at + (uint32_t)d];
        if (d == dim)
            ix[d] = jot_ix_div(k->ix, jot_respaced(&r, ix[d]), part, &r.space);
    }
    return jot_v_load(k, load->buf, ix, 0, NULL, load->c);
}

/* A number of all bytes, in each byte of a word. */
static uint32_t
scaled_number(Kernel *k, uint32_t value)
{
    uint32_t byte = jot_v_cast(k, JOT_U32, jot_v_cast(k, JOT_U8, value));

    return jot_v_ew(k, EW_MUL, JOT_U32, byte, jot_v_constf(k, JOT_U32, 0x01010101), 0);
}

/* Four neighbours of the value as a word; 0: it is not made of bytes by bits. */
static uint32_t
scaled_word(Kernel *k, const Scaled *s, uint32_t value)
{
    const Value v = k->values.v[value]; /* a copy: values are added */
    uint32_t a = v.narg ? k->args.v[v.arg] : 0, b = v.narg > 1 ? k->args.v[v.arg + 1] : 0;
    jot_Scalar byte;

    if (v.dtype != JOT_U8 && v.dtype != JOT_I8)
        return 0;
    if (v.op == VAL_CONST || v.op == VAL_SCALAR)
        return scaled_number(k, value);
    if (v.op == VAL_LOAD)
        return scaled_load(k, s, &v);
    if (v.op != VAL_EW)
        return 0;
    if (v.ew == EW_CAST)
        return scaled_word(k, s, a);
    if (v.ew == EW_BITAND || v.ew == EW_BITOR || v.ew == EW_BITXOR) {
        a = scaled_word(k, s, a);
        b = scaled_word(k, s, b);
        return jot_v_ew(k, (EwOp)v.ew, JOT_U32, a, b, 0);
    }
    if (v.ew != EW_SHR || v.dtype != JOT_U8 || k->values.v[b].free)
        return 0;
    byte.u = 255;
    a = scaled_word(k, s, a);
    a = jot_v_ew(k, EW_SHR, JOT_U32, a, jot_v_cast(k, JOT_U32, b), 0);
    b = scaled_number(k, jot_v_ew(k, EW_SHR, JOT_U8, jot_v_const(k, JOT_U8, byte), b, 0));
    return jot_v_ew(k, EW_BITAND, JOT_U32, a, b, 0);
}

/* Bits of each byte of a word, of what is shifted to the right, or (by < 0) to the left. */
static uint32_t
scaled_bits(Kernel *k, uint32_t word, int by, uint32_t bits)
{
    if (by)
        word = jot_v_ew(k, by > 0 ? EW_SHR : EW_SHL, JOT_U32, word,
                        jot_v_constf(k, JOT_U32, by > 0 ? by : -by), 0);
    return jot_v_ew(k, EW_BITAND, JOT_U32, word, jot_v_constf(k, JOT_U32, bits), 0);
}

/* Signed bytes as a pair of shorts, in their upper halves: those of rows are the same for all
 * columns. */
static uint32_t
scaled_pair(Kernel *k, Scaled *s, uint32_t word, int by)
{
    uint32_t pair = scaled_bits(k, word, by, 0xff00ff00u);

    if (k->values.v[pair].free >> s->v & 1)
        return pair;
    for (int i = 0; i < s->npairs; i++)
        if (s->pair[i] == pair)
            return pair;
    if (s->npairs < SCALED_PAIRS)
        s->pair[s->npairs] = pair;
    s->npairs++;
    return pair;
}

/* Products of four unsigned bytes and four signed ones, added. Where both have to be signed: of
 * seven bits, twice, and of the last. Where both have to be pairs of shorts: of every second byte,
 * the signed ones in the upper halves of theirs, so that all is SCALED_UP times as much. */
static uint32_t
scaled_product(Kernel *k, Scaled *s, int row, uint32_t a, uint32_t b, bool small)
{
    uint32_t first, second;

    if (row == DOT_U8I8 || row == DOT_U7I8 || (row == DOT_I8 && small))
        return jot_v_dot(k, row, a, b);
    if (row == DOT_I8) {
        first = jot_v_dot(k, row, scaled_bits(k, a, 1, 0x7f7f7f7fu), b);
        first = first ? jot_v_ew(k, EW_ADD, JOT_I32, first, first, 0) : 0;
        second = jot_v_dot(k, row, scaled_bits(k, a, 0, 0x01010101u), b);
    } else {
        first = jot_v_dot(k, row, scaled_bits(k, a, 0, 0x00ff00ffu), scaled_pair(k, s, b, -8));
        second = jot_v_dot(k, row, scaled_bits(k, a, 8, 0x00ff00ffu), scaled_pair(k, s, b, 0));
    }
    return first && second ? jot_v_ew(k, EW_ADD, JOT_I32, first, second, 0) : 0;
}

/* The sum of products of bytes as one of words. */
static bool
scaled_dot(Kernel *k, Scaled *s, const Target *target, int i)
{
    const Value was = k->values.v[s->dot[i]];
    uint32_t term[SCALED_TERMS], body = 0, of[2], now;
    int n = scaled_terms(k, k->args.v[was.arg], term, 0), row;
    bool small;

    row = scaled_sum_row(k, s, target, i, &small);
    for (int t = 0; t < n; t++) {
        scaled_factors(k, term[t], of);
        of[0] = scaled_word(k, s, of[0]);
        of[1] = of[0] ? scaled_word(k, s, of[1]) : 0;
        now = of[1] ? scaled_product(k, s, row, of[0], of[1], small) : 0;
        body = !now ? 0 : t ? jot_v_ew(k, EW_ADD, JOT_I32, body, now, 0) : now;
        if (!body)
            return false;
    }
    body = now = jot_v_reduce(k, EW_ADD, was.axes, body, 0, NULL, 1.0);
    if (now && row == DOT_I16)
        body = jot_v_ew(k, EW_SHR, JOT_I32, now, jot_v_constf(k, JOT_I32, 8), 0);
    if (!body)
        return false;
    for (int j = 0; j < s->n; j++)
        s->sum[j] = jot_v_replace(k, s->dot[i], body, s->sum[j]);
    s->dot[i] = now;
    return true;
}

/* Nothing is left that reads the buffers in bytes, or what is summed otherwise. */
static bool
scaled_done(const Kernel *k, const Scaled *s, const Target *target)
{
    bool *used = jot_kernel_used_new(k), ok = used != NULL;

    for (uint32_t i = 1; ok && i < k->values.n; i++) {
        const Value *v = &k->values.v[i];
        bool tangled = false;
        int64_t step;
        if (!used[i] || v->op != VAL_LOAD)
            continue;
        ok = v->dtype == JOT_U32 || (k->bufs.v[v->buf].dtype != JOT_U32 &&
                                     !(v->free >> s->inner & 1));
        step = jot_kernel_step(k, v->buf, v->at, s->v, scaled_lanes(target), &tangled);
        ok = ok && !tangled && (step == 1 || !(v->free >> s->v & 1));
    }
    jot_mem_free(k->mem, used, k->values.n * sizeof *used);
    return ok;
}

/* ---- the schedule ---- */

/* Rows and vectors of a block: as many sums of integers as of floats, and the weights. */
static void
scaled_block(const Kernel *k, const Scaled *s, const Target *target, int64_t *rows,
             int64_t *vectors)
{
    int64_t high = s->r < 0 ? 1 : k->axes.v[s->r].ext, all = k->axes.v[s->v].ext;
    int64_t sums = (target->vectors - SCALED_OPERANDS) / 2 / s->n;

    *vectors = high < 2 ? 4 : 2;
    while (*vectors > 1 && (*vectors > sums || *vectors * scaled_lanes(target) > all))
        *vectors /= 2;
    *rows = jot_contract_even(high, 1, sums / *vectors > 1 ? sums / *vectors : 1);
}

/* Rows as pairs of shorts stay in half of the second cache, for some blocks of columns. */
static void
scaled_pairs(Writer *w, Kernel *k, Scaled *s, const Target *target, int64_t rows, int64_t block)
{
    bool some = s->npairs > 0 && s->npairs <= SCALED_PAIRS && s->r >= 0
             && k->axes.v[s->r].ext > rows;
    int64_t high = s->r < 0 ? 1 : k->axes.v[s->r].ext, wide = block, tall = high;
    uint64_t around = s->kept & ~((uint64_t)1 << s->v);
    Ix at = s->r < 0 ? 0 : jot_ix_axis(k->ix, s->r), inside;

    s->npairs = some ? s->npairs : 0;
    if (some) {
        int64_t each = 4 * s->npairs * (int64_t)jot_kernel_points(k, s->blocks | 1ull << s->inner);
        int64_t share = k->axes.v[s->v].ext / (block * target->cores * 2);

        wide = block * (share < 1 ? 1 : share < SCALED_BLOCKS ? share : SCALED_BLOCKS);
        for (int i = 0; i < s->npairs; i++)
            around &= ~k->values.v[s->pair[i]].free;
        if (!jot_kernel_wide(k, around)) /* all loops around blocks of rows are theirs, too */
            tall = jot_contract_even(high, rows, target->cache_nbytes[LEVEL_L2] / 2 / each);
    }
    jot_write_number(w, 'W', wide);
    jot_write_number(w, 'Q', tall);
    inside = tall < high ? jot_ix_mod(k->ix, at, jot_ix_const(k->ix, tall), NULL) : at;
    jot_write_index(w, 'H', inside);
    for (int i = 0; i < s->npairs; i++) {
        jot_write_number(w, 'x', s->pair[i]);
        jot_write_set(w, 'f', k->values.v[s->pair[i]].free & (s->blocks | 1ull << s->inner));
        jot_write_set(w, 'g', k->values.v[s->pair[i]].free & s->blocks);
        jot_write_lines(w, "%$x: $v:$Wp $o:1 $r:$Q? $r $g $e:1l; res scratch p%[$H#$Q, $f]\n");
    }
}

static bool
scaled_write(Sched *s, Kernel *k, Scaled *of, const Target *target)
{
    int64_t rows, vectors;
    uint64_t v = (uint64_t)1 << of->v, r = of->r < 0 ? 0 : (uint64_t)1 << of->r;
    Writer w;

    scaled_block(k, of, target, &rows, &vectors);
    jot_write_open(&w, s, k, scaled_lanes(target));
    s->fma = true;
    jot_write_set(&w, 'o', of->kept & ~v & ~r);
    jot_write_set(&w, 'b', of->blocks);
    jot_write_axis(&w, 'e', of->inner);
    jot_write_axis(&w, 'r', of->r);
    jot_write_axis(&w, 'v', of->v);
    jot_write_number(&w, 'R', rows);
    jot_write_number(&w, 'P', vectors * scaled_lanes(target));
    jot_write_number(&w, 'L', scaled_lanes(target));
    scaled_pairs(&w, k, of, target, rows, vectors * scaled_lanes(target));
    for (int i = 0; i < of->n; i++) {
        jot_write_number(&w, 'd', of->dot[i]);
        jot_write_lines(&w, "%$d: $v:$Wp $o:1 $r:$Q? $v:$P? $r:$R $b:1 | "
                        "$e:1u $r:1u $v:$Lu $v:1v\n");
    }
    for (int i = 0; i < of->n; i++) {
        jot_write_number(&w, 's', of->sum[i]);
        jot_write_lines(&w, "%$s: $v:$Wp $o:1 $r:$Q? $v:$P? $r:$R | "
                        "$b:1 $r:1u $v:$Lu $v:1v\n");
    }
    jot_write_lines(&w, "!*: $v:$Wp $o:1 $r:$Q? $v:$P? $r:$R $r:1u $v:$Lu $v:1v\n");
    return jot_write_done(&w);
}

JOT_FN bool
jot_scaled_sched(Sched *s, Kernel *k, const Target *target, int lanes)
{
    Scaled of;
    Kernel was;
    bool ok, small;

    if (scaled_row(target) < 0 || lanes != scaled_lanes(target))
        return jot_sched_no(s, "no words of bytes");
    if (!jot_scaled_find(k, &of))
        return jot_sched_no(s, "no sums of scaled sums of bytes");
    for (int i = 0; i < of.n; i++)
        if (scaled_sum_row(k, &of, target, i, &small) < 0)
            return jot_sched_no(s, "more terms in a block than 32 bits hold as pairs of shorts");
    memset(s, 0, sizeof *s);
    ok = jot_kernel_copy(&was, k);
    for (int i = 0; ok && i < of.n; i++)
        ok = scaled_dot(k, &of, target, i);
    if (ok) {
        k->axes.v[of.inner].ext /= SCALED_PARTS;
        jot_kernel_refresh(k);
    }
    ok = ok && (scaled_done(k, &of, target) || jot_sched_no(s, "weights or scales in no panels"));
    return jot_sched_settle(s, k, &was, ok && scaled_write(s, k, &of, target)) && !k->mem->failed;
}
