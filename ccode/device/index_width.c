/* ccode/device/index_width.c - are 32 bits enough for a kernel's indices? A device multiplies and
 * adds twice as many bits in two to four instructions, and divides them in dozens.
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

/* As it is reckoned: what is clamped, too, and an element of a map is any. */
static int64_t
index_size(const Code *code, const Inst *in, const int64_t *size)
{
    int64_t most = in->op == C_INT ? INT64_MAX : jot_print_index_size(code, in, size);
    return in->op == C_CLAMP && size[code->args.v[in->arg]] > most ? size[code->args.v[in->arg]]
                                                                    : most;
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
