/* tests/fake_ptx.c - the instructions that kernels write as text, on the processor: who holds which
 * elements of a product is as PTX's manual says, so that a wrong register, address or stride gives
 * a wrong result here, too.
 *
 * What is asynchronous has not happened until it was waited for: copies to a group's memory arrive
 * by cp.async.wait_group (with an odd FAKE_ORDER at once), products of four warps read memory and
 * change their sums by wgmma.wait_group. These must also find that each item said
 * fence.proxy.async between its writes and the barrier.
 *
 * Read before: tests/fake_cuda.h. */
#include "tests/fake_cuda.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one instruction ---------------------------------------------------------------------- */

enum { WORDS = 200, COPIES = 256, PRODUCTS = 16, PRODUCT_SUMS = 128 };
typedef enum { F16, BF16, TF32 } Kind; /* of a factor */
typedef struct {
    char op[80];
    FakeOperand *reg[WORDS];    /* operands, those in braces one by one; NULL: a number */
    int64_t number[WORDS];      /* ... it, or what is added to an address */
    int n;
} Instruction;

/* A product of four warps that was begun: where its sums are, descriptors of its operands. */
typedef struct {
    Kind kind;
    float *sum[PRODUCT_SUMS];
    uint64_t a, b;
    int n, terms;
    bool turned[2];
    const void *by;
    int group;
} Product;

static struct {
    const Instruction *now;     /* what the item is at, for the others */
    const char *text;           /* ... and all of its statement */
    const void *from;           /* ... who called it */
    bool fenced, visible;       /* fence.proxy.async was said: since the last barrier, before it */
    struct { uint32_t to; const void *from, *by; int n, room, group; } copy[COPIES];
    int ncopies, groups;
    Product product[PRODUCTS];
    int nproducts, batches;     /* on their way; committed so far */
    bool begun;                 /* wgmma.fence was said, and no commit since */
} state[ITEMS];

static const char *
read_instruction(const char *p, FakeOperand *operand, int noperands, Instruction *in)
{
    size_t n;

    p += strspn(p, " \t\n{}");
    n = strcspn(p, " \t\n;");
    snprintf(in->op, sizeof in->op, "%.*s", (int)n, p);
    in->n = 0;
    for (p += n; *p && *p != ';';) {
        char *end;

        if (*p == '%') {
            long k = strtol(p + 1, &end, 10);

            if (k >= noperands || in->n == WORDS)
                fake_stop("no such operand", p);
            in->reg[in->n] = &operand[k];
            in->number[in->n++] = *end == '+' ? strtol(end + 1, &end, 10) : 0;
            p = end;
        } else if (isdigit((unsigned char)*p)) {
            in->reg[in->n] = NULL;
            in->number[in->n++] = strtol(p, &end, 10);
            p = end;
        } else
            p++;
    }
    return *p ? p + 1 : p;
}

static uint64_t
get(const Instruction *in, int k)
{
    uint64_t value = 0;

    if (!in->reg[k])
        return (uint64_t)in->number[k];
    memcpy(&value, in->reg[k]->p, (size_t)in->reg[k]->nbytes);
    return value + (uint64_t)in->number[k];
}

static float
get_float(const Instruction *in, int k)
{
    float f;

    memcpy(&f, in->reg[k]->p, sizeof f);
    return f;
}

static void
put(const Instruction *in, int k, const void *value)
{
    if (!in->reg[k] || in->reg[k]->nbytes != 4
        || (in->reg[k]->how[0] != '=' && in->reg[k]->how[0] != '+'))
        fake_stop("a result has no register of 4 bytes", in->op);
    memcpy(in->reg[k]->p, value, 4);
}

static Kind
kind_of(const char *op)
{
    return strstr(op, "tf32") ? TF32 : strstr(op, "bf16") ? BF16 : F16;
}

/* Bits of f16, bf16, or of tf32 in a word, of which the unit reads 19. */
static double
element(uint32_t bits, Kind kind)
{
    union { uint32_t u; float f; } word = {bits << 16};

    if (kind == TF32) { /* it would cut them off */
        word.u = bits;
        if (bits & 0x1fff && (bits & 0x7fffffff) <= 0x7f800000)
            fake_stop("a factor that was not rounded", "tf32");
    } else if (kind == F16) {
        int exponent = (int)(bits >> 10 & 31), rest = (int)(bits & 1023);
        double value = exponent == 31 ? rest ? NAN : INFINITY
                     : exponent ? ldexp(1024 + rest, exponent - 25) : ldexp(rest, -24);

        return bits >> 15 & 1 ? -value : value;
    }
    return (double)word.f;
}

static void *
shared_at(uint64_t address, int nbytes, const char *op)
{
    if (address + (uint64_t)nbytes > SHARED_NBYTES || address % (uint64_t)nbytes)
        fake_stop("an address outside of a group's memory, or not aligned", op);
    return fake_shared + address;
}

static void
wait_warp(void)
{
    fake_wait(WAITS_WARP, state[fake_item()].text, 0);
}

static const Instruction *
of_lane(int lane)
{
    return state[fake_item() / 32 * 32 + lane].now;
}

/* ---- products of a warp ------------------------------------------------------------------- */

/* mma.sync: lane 4g + i has of a rows g and g + 8, of b column g, of d rows g, g + 8 and columns 2i
 * and 2i + 1; of k pairs 2i, 2i + 1 and those 8 behind, of tf32 i and i + 4. */
static double
piece(bool of_a, int outer, int k, Kind kind, int terms)
{
    bool wide = kind == TF32, one = terms == 8 && !wide; /* of b one register, of a two */
    int lane = outer % 8 * 4 + (wide ? k % 4 : k % 8 / 2), high = k / (wide ? 4 : 8);
    int reg = of_a ? 4 + outer / 8 + 2 * high : (one ? 6 : 8) + high;
    uint32_t bits = (uint32_t)get(of_lane(lane), reg);

    return element(wide ? bits : bits >> k % 2 * 16 & 0xffff, kind);
}

static void
run_mma(const Instruction *in)
{
    int lane = fake_item() % 32, terms = strstr(in->op, "k16") ? 16 : 8;
    int first = in->n - 4;
    Kind kind = kind_of(in->op);
    float d[4];

    for (int e = 0; e < 4; e++) {
        int m = lane / 4 + e / 2 * 8, n = lane % 4 * 2 + e % 2;
        double sum = (double)get_float(in, first + e);

        for (int k = 0; k < terms; k++)
            sum += piece(true, m, k, kind, terms) * piece(false, n, k, kind, terms);
        d[e] = (float)sum;
    }
    wait_warp(); /* all have read */
    for (int e = 0; e < 4; e++)
        put(in, e, &d[e]);
}

/* Row r of matrix j is at the address of lane 8j + r: 16 bytes. Eight rows come at once if no two
 * of them lie on the same banks. */
static void
run_ldmatrix(const Instruction *in)
{
    int lane = fake_item() % 32, matrices = in->n - 1;
    bool turned = strstr(in->op, ".trans") != NULL;
    uint32_t word[4];

    if (lane < 8 * matrices) /* its row is read for all */
        fake_access(shared_at(get(in, matrices), 16, in->op), 16, READ, state[fake_item()].from);
    for (int j = 0; j < matrices; j++) {
        uint32_t banks = 0;

        word[j] = 0;
        for (int r = 0; r < 8; r++)
            banks |= 1u << (get(of_lane(8 * j + r), matrices) / 16 % 8);
        if (banks != 255)
            fake_stop("rows of a matrix lie on the same banks", in->op);
        for (int half = 0; half < 2; half++) {
            int row = turned ? lane % 4 * 2 + half : lane / 4,
                column = turned ? lane / 4 : lane % 4 * 2 + half;
            const char *at = shared_at(get(of_lane(8 * j + row), matrices), 16, in->op);
            uint16_t bits;

            fake_access(at + 2 * column, 2, READ, state[fake_item()].from);
            memcpy(&bits, at + 2 * column, 2);
            word[j] |= (uint32_t)bits << 16 * half;
        }
    }
    wait_warp();
    for (int j = 0; j < matrices; j++)
        put(in, j, &word[j]);
}

/* ---- products of four warps --------------------------------------------------------------- */

/* Where element (outer, k) of a matrix is by its descriptor: in pieces of 8 rows of 16 bytes, where
 * rows are outer, k is in a row; turned: the other way round. With the swizzle of 128 bytes: in
 * pieces of 8 rows of 128, of whose addresses bits 4 to 6 are changed by bits 7 to 9. */
static uint64_t
described_at(uint64_t descriptor, int outer, int k, bool turned, int nbytes)
{
    uint64_t start = (descriptor & 0x3fff) * 16, leading = (descriptor >> 16 & 0x3fff) * 16;
    uint64_t stride = (descriptor >> 32 & 0x3fff) * 16, at;
    int row = 16 / nbytes;

    if ((descriptor >> 49 && descriptor >> 49 != 1 << 13) || (turned && nbytes == 4))
        fake_stop("a descriptor with another swizzle, or a turned matrix of words", "wgmma");
    if (descriptor >> 49) {
        at = turned ? (uint64_t)(outer / (8 * row)) * leading + (uint64_t)(k / 8) * stride
                          + (uint64_t)(k % 8 * 128 + outer % (8 * row) * nbytes)
                    : (uint64_t)(outer / 8) * stride + (uint64_t)(outer % 8 * 128 + k * nbytes);
        return (start + at) ^ ((start + at) >> 7 & 7) << 4;
    }
    at = turned ? (uint64_t)(outer / row) * stride + (uint64_t)(k / 8) * leading
                      + (uint64_t)(k % 8 * 16 + outer % row * nbytes)
                : (uint64_t)(outer / 8) * stride + (uint64_t)(k / row) * leading
                      + (uint64_t)(outer % 8 * 16 + k % row * nbytes);
    return start + at;
}

static double
described(uint64_t descriptor, int outer, int k, bool turned, Kind kind)
{
    int nbytes = kind == TF32 ? 4 : 2;
    uint32_t bits = 0;

    memcpy(&bits, shared_at(described_at(descriptor, outer, k, turned, nbytes), nbytes, "wgmma"),
           (size_t)nbytes);
    return element(bits, kind);
}

/* All rows of 16 bytes that a matrix of outer x terms has, shared out among the items that read
 * it. */
static void
check_described(uint64_t descriptor, int outer, int terms, bool turned, const Product *p)
{
    int row = p->kind == TF32 ? 4 : 8, rows = outer * terms / row;

    for (int r = fake_item() % 128; r < rows; r += 128)
        fake_check_unit_read(
            turned ? described_at(descriptor, r / terms * row, r % terms, true, 16 / row)
                   : described_at(descriptor, r % outer, r / outer * row, false, 16 / row),
            16, p->by);
}

/* It may read from now on. */
static void
check_product(const Product *p)
{
    check_described(p->a, 64, p->terms, p->turned[0], p);
    check_described(p->b, p->n, p->terms, p->turned[1], p);
}

static void
begin_product(const Instruction *in)
{
    int item = fake_item(), last;
    Product *p = &state[item].product[state[item].nproducts++];

    if (state[item].nproducts > PRODUCTS)
        fake_stop("too many products on their way", in->op);
    p->kind = kind_of(in->op);
    p->n = atoi(strstr(in->op, "m64n") + 4);
    p->terms = atoi(strstr(strstr(in->op, "m64n") + 4, "k") + 1);
    last = p->n / 2;
    if (last > PRODUCT_SUMS || in->n != last + (p->terms == 16 ? 7 : 5) || get(in, last + 2) != 1
        || get(in, last + 3) != 1 || get(in, last + 4) != 1)
        fake_stop("operands of wgmma", in->op);
    if (!state[item].visible)
        fake_stop("memory was not fenced before the barrier", in->op);
    if (!state[item].begun)
        fake_stop("not between a fence and a commit", in->op);
    p->a = get(in, last);
    p->b = get(in, last + 1);
    p->by = state[item].from;
    p->group = state[item].batches;
    for (int i = 0; i < 2; i++)
        p->turned[i] = p->terms == 16 && get(in, last + 5 + i);
    for (int r = 0; r < last; r++) {
        if (!in->reg[r] || in->reg[r]->nbytes != 4 || in->reg[r]->how[0] != '+')
            fake_stop("a sum has no register", in->op);
        p->sum[r] = in->reg[r]->p;
    }
    check_product(p);
}

static void
make_product(const Product *p)
{
    int item = fake_item(), lane = item % 32, warp = item / 32 % 4;

    check_product(p);
    for (int r = 0; r < p->n / 2; r++) {
        int m = 16 * warp + lane / 4 + r / 2 % 2 * 8, column = r / 4 * 8 + lane % 4 * 2 + r % 2;
        double sum = (double)*p->sum[r];

        for (int k = 0; k < p->terms; k++)
            sum += described(p->a, m, k, p->turned[0], p->kind) *
                   described(p->b, column, k, p->turned[1], p->kind);
        *p->sum[r] = (float)sum;
    }
}

/* All but the last `left` that were committed are done. */
static void
wait_products(int left)
{
    int item = fake_item(), kept = 0;

    for (int k = 0; k < state[item].nproducts; k++) {
        if (state[item].product[k].group >= state[item].batches - left)
            state[item].product[kept++] = state[item].product[k];
        else
            make_product(&state[item].product[k]);
    }
    state[item].nproducts = kept;
}

/* ---- copies ------------------------------------------------------------------------------- */

static void
do_copy(int item, int k)
{
    unsigned char *to = fake_shared + state[item].copy[k].to;
    int n = state[item].copy[k].n;

    memcpy(to, state[item].copy[k].from, (size_t)n);
    memset(to + n, 0, (size_t)(state[item].copy[k].room - n));
}

/* cp.async.cg.shared.global [to], [from], 16, n: n bytes, and zeros */
static void
add_copy(const Instruction *in)
{
    int item = fake_item(), k = state[item].ncopies++;
    uint64_t to = get(in, 0), from = get(in, 1);

    if (k == COPIES || get(in, 2) != 16 || from % 16)
        fake_stop("too many copies, of other than 16 bytes, or not aligned", in->op);
    shared_at(to, 16, in->op);
    fake_check_coming(to, 16, state[item].from);
    if (in->n < 4 || get(in, 3))
        fake_access((const void *)(uintptr_t)from, in->n > 3 ? -(int)get(in, 3) : 16, READ,
                    state[item].from);
    state[item].copy[k].to = (uint32_t)to;
    state[item].copy[k].from = (const void *)(uintptr_t)from;
    state[item].copy[k].by = state[item].from;
    state[item].copy[k].room = 16;
    state[item].copy[k].n = in->n > 3 ? (int)get(in, 3) : 16;
    state[item].copy[k].group = state[item].groups;
    if (fake_order() % 2)
        do_copy(item, k);
}

static void
wait_copies(int item, int left)
{
    int kept = 0;

    for (int k = 0; k < state[item].ncopies; k++) {
        if (state[item].copy[k].group >= state[item].groups - left) {
            state[item].copy[kept++] = state[item].copy[k];
            continue;
        }
        do_copy(item, k);
        fake_check_came(state[item].copy[k].to, state[item].copy[k].room, state[item].copy[k].by);
    }
    state[item].ncopies = kept;
}

void
fake_ptx_begin(unsigned nitems)
{
    for (unsigned i = 0; i < nitems; i++) { /* copies, products: what is counted */
        state[i].ncopies = state[i].groups = state[i].nproducts = state[i].batches = 0;
        state[i].fenced = state[i].visible = state[i].begun = false;
    }
}

void
fake_ptx_barrier(void)
{
    int item = fake_item();

    state[item].visible = state[item].fenced;
    state[item].fenced = false;
}

void
fake_ptx_end(int item)
{
    if (state[item].ncopies)
        fake_stop("an item ends before its copies", "cp.async");
    if (state[item].nproducts)
        fake_stop("an item ends before its products", "wgmma");
}

/* ---- all of them -------------------------------------------------------------------------- */

/* The least architecture that has it. */
static int
least_arch(const char *op)
{
    return !strncmp(op, "wgmma.", 6) ? 90 : !strncmp(op, "fence.proxy.async", 17) ? 90
         : !strncmp(op, "cp.async", 8) || !strncmp(op, "cvt.rna.tf32", 12) ? 80
         : strstr(op, "m16n8k16") || strstr(op, "tf32") || strstr(op, "bf16") ? 80 : 75;
}

static void
run_instruction(const Instruction *in, int arch)
{
    int item = fake_item();

    if (arch < least_arch(in->op))
        fake_stop("the architecture has no", in->op);
    state[item].now = in;
    if (!strncmp(in->op, "mma.sync.aligned.m16n8k", 23)
        || !strncmp(in->op, "ldmatrix.sync.aligned.m8n8.x", 28)) {
        wait_warp(); /* all are here */
        (in->op[0] == 'm' ? run_mma : run_ldmatrix)(in);
    } else if (!strcmp(in->op, "cvt.rna.tf32.f32")) {
        uint32_t bits = (uint32_t)get(in, 1);
        if ((bits & 0x7fffffff) <= 0x7f800000)
            bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
        put(in, 0, &bits);
    } else if (!strcmp(in->op, "cp.async.cg.shared.global"))
        add_copy(in);
    else if (!strcmp(in->op, "cp.async.commit_group"))
        state[item].groups++;
    else if (!strcmp(in->op, "cp.async.wait_group"))
        wait_copies(item, (int)get(in, 0));
    else if (!strcmp(in->op, "cp.async.wait_all"))
        state[item].groups++, wait_copies(item, 0);
    else if (!strcmp(in->op, "fence.proxy.async.shared::cta"))
        state[item].fenced = true, fake_check_fence();
    else if (!strcmp(in->op, "wgmma.fence.sync.aligned")) {
        fake_wait(WAITS_WARPS, state[item].text, 0);
        state[item].begun = true;
    } else if (!strncmp(in->op, "wgmma.mma_async.sync.aligned.m64n", 33))
        begin_product(in);
    else if (!strcmp(in->op, "wgmma.commit_group.sync.aligned")) {
        state[item].begun = false;
        state[item].batches++;
    } else if (!strcmp(in->op, "wgmma.wait_group.sync.aligned")) {
        fake_wait(WAITS_WARPS, state[item].text, 0);
        wait_products((int)get(in, 0));
    } else
        fake_stop("an instruction that is not known here", in->op);
}

void
fake_ptx(const char *text, FakeOperand *operand, int n, int arch)
{
    state[fake_item()].text = text;
    state[fake_item()].from = __builtin_return_address(0);
    for (const char *p = text; *p;) {
        Instruction in;

        p = read_instruction(p, operand, n, &in);
        if (in.op[0])
            run_instruction(&in, arch);
    }
}
