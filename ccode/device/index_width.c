/* ccode/device/index_width.c - are 32 bits enough for a kernel's indices? A device multiplies and adds
 * twice as many bits in two to four instructions, and divides them in dozens.
 *
 *     FOR i < 4096      at most 4095              LIN 1024*i + j    at most 1024 * 4095 + 1023
 *     IDIV i, 7         at most as i              IMUL i, j         at most the product
 *
 * A sum's bound is that of its terms' sizes, so that it holds for each part of it, in any order.
 *
 *   requires  code whose uses are counted; no record stands before its operands
 *
 * Read before: ccode/device/device.h. After: ccode/device/emit_device.c. */
#include "ccode/device/device.h"

#define INDEX_MOST ((int64_t)1 << 30) /* and what a stride of all items adds stays below 2^31 */
#define INDEX_ITEMS 1024              /* of a group; phases are fewer */

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* |factor| * size + more, or INT64_MAX. */
static int64_t
size_plus(int64_t factor, int64_t size, int64_t more)
{
    int64_t r;
    if (factor < -INDEX_MOST || !jot_mul_ok(factor < 0 ? -factor : factor, size, &r)
        || !jot_add_ok(r, more, &r))
        return INT64_MAX;
    return r;
}

/* Largest size of the record as an index; INT64_MAX: not known, or not one. */
static int64_t
index_size(const Code *code, const Inst *in, const int64_t *size)
{
    const uint32_t *arg = code->args.v + in->arg;
    int64_t most;
    switch (in->op) {
    case C_ITEM: case C_PHASE: return INDEX_ITEMS;
    case C_GE0: case C_EQ0: case C_INOT: case C_IAND: case C_IOR: return 1;
    case C_FOR: return in->narg >= 2 ? larger(size[arg[0]], size[arg[1]]) : in->c.i;
    case C_LIN:
        most = size_plus(in->c.i, 1, 0);
        for (int i = 0; i < in->narg; i++)
            most = size_plus(code->coefs.v[in->coef + (uint32_t)i], size[arg[i]], most);
        return most;
    case C_IMUL: return in->exact ? size_plus(size[arg[0]], size[arg[1]], 0) : INT64_MAX;
    case C_IDIV: case C_IMOD: return in->exact ? larger(size[arg[0]], size[arg[1]]) : INT64_MAX;
    case C_IMIN: case C_IMAX: return larger(size[arg[0]], size[arg[1]]);
    case C_CLAMP: return larger(in->c.i, size[arg[0]]);
    default: return INT64_MAX;
    }
}

JOT_FN bool
jot_index_narrow(const Code *code)
{
    int64_t *size = jot_mem_new(code->mem, code->inst.n, sizeof *size);
    bool ok = size != NULL;
    for (uint32_t n = 1; ok && n < code->inst.n; n++) {
        const Inst *in = &code->inst.v[n];
        size[n] = index_size(code, in, size);
        ok = (!in->live && !in->uses) || size[n] <= INDEX_MOST
            || !(jot_print_is_index(in) || in->op == C_FOR);
    }
    jot_mem_free(code->mem, size, code->inst.n * sizeof *size);
    return ok;
}
