/* ccode/emit/alias.c - outputs that may lie where an input lay: updates in place.
 *
 *     w1[i] = w[i] - rate * g[i]           w1 in the memory of w
 *
 * Right when every element of the input is read for the last time before the output's element of
 * the same address is written. A plain store, or that of a part (ccode/rewrite/partial.c), writes
 * each element once. So it is enough that each
 * load of the input has, at the same address, under the same loops and behind it in the text, a
 * store of the output: no other store of the function touches that element, and no later load reads
 * it. What stands before all phases is read again in each of them. Where the output is added to as
 * the input was (ccode/rewrite/partial.c), nothing may read the input.
 *
 * Who builds the kernel asks (KBuf.over), here it is answered; the two pointers are then not said
 * to be apart, which keeps the compiler to the order of the text. The loops' steps still are
 * (ccode/lower/independent.c).
 *
 *   requires  what is spelled in place was chosen (ccode/emit/name.c)      keeps  everything
 *
 * Read before: ccode/lower/code.h. After: ccode/emit/emit.c. */
#include "ccode/emit/print.h"

/* Where the text of record n stands; 0: in several places. */
static uint32_t
over_spelled(const Code *code, const uint32_t *place, uint32_t n)
{
    while (code->inst.v[n].in_place) {
        if (code->inst.v[n].uses != 1)
            return 0;
        n = code->inst.v[n].user;
    }
    return place[n];
}

/* Is the store under the loops of the load, and no others? */
static bool
over_together(const Code *code, const Inst *load, const Inst *store)
{
    uint32_t block = store->block;

    if (code->phases > 1 && code->inst.v[load->block].op == C_FUNC)
        return false;
    while (block != load->block) {
        if (!block || code->inst.v[block].op != C_IF)
            return false;
        block = code->inst.v[block].block;
    }
    return true;
}

static bool
over_stored(const Code *code, const uint32_t *place, uint32_t load, uint32_t out)
{
    const Inst *l = &code->inst.v[load];
    uint32_t at = over_spelled(code, place, load);

    for (uint32_t i = 0; at && l->narg == 1 && i < code->order.n; i++) {
        const Inst *s = &code->inst.v[code->order.v[i]];
        if (s->op == C_STORE && s->live && s->aux == out &&
            code->args.v[s->arg] == code->args.v[l->arg] && s->lanes == l->lanes &&
            place[code->order.v[i]] >= at && over_together(code, l, s))
            return true;
    }
    return false;
}

/* One plain store writes the output, and nothing is kept there meanwhile. */
static bool
over_once(const Code *code, uint32_t out)
{
    int stores = 0;

    for (uint32_t i = 0; i < code->k->stores.n; i++)
        if (code->k->stores.v[i].buf == out) {
            if (!code->k->bufs.v[out].begins
                && !jot_store_is_plain(code->k, &code->k->stores.v[i]))
                return false;
            stores++;
        }
    for (uint32_t i = 0; i < code->s->stages.n; i++) {
        const Stage *stage = &code->s->stages.v[i];
        if ((stage->acc.kind != PLACE_NONE && stage->acc.buf == out) ||
            (stage->res.kind != PLACE_NONE && stage->res.buf == out))
            return false;
    }
    return stores == 1;
}

static bool
over_allowed(const Code *code, const uint32_t *place, uint32_t out, uint32_t in)
{
    bool adds = false;
    for (uint32_t i = 0; i < code->k->stores.n; i++)
        adds |= code->k->stores.v[i].onto && code->k->stores.v[i].buf == out;
    if (!over_once(code, out))
        return false;
    for (uint32_t i = 0; i < code->order.n; i++) {
        uint32_t n = code->order.v[i];
        const Inst *r = &code->inst.v[n];
        bool reads = r->op == C_LOAD || r->op == C_INT;
        if (reads && r->uses
            && (r->aux == out ? !adds : r->aux == in && (adds || r->op == C_INT)))
            return false;
        if (reads && r->uses && r->aux == in && !over_stored(code, place, n, out))
            return false;
    }
    return true;
}

JOT_FN void
jot_code_donates(const Code *code, BufSet *over)
{
    uint32_t *place = NULL;

    memset(over, 0, sizeof *over);
    for (uint32_t b = 1; b < code->k->bufs.n; b++) {
        uint32_t in = code->k->bufs.v[b].over;
        if (!in)
            continue;
        if (!place && !(place = jot_mem_new(code->mem, code->inst.n, sizeof *place)))
            return;
        for (uint32_t i = 0; i < code->order.n; i++)
            place[code->order.v[i]] = i + 1;
        if (over_allowed(code, place, b, in))
            over->bit[b / 64 % 4] |= (uint64_t)1 << b % 64;
    }
    jot_mem_free(code->mem, place, code->inst.n * sizeof *place);
}

JOT_FN bool
jot_buf_in(const BufSet *set, uint32_t buf)
{
    return set->bit[buf / 64 % 4] >> buf % 64 & 1;
}
