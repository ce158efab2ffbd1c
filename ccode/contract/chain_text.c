/* ccode/contract/chain_text.c - the schedule of a chain: panels packed before, then each product,
 * sum and kept value in a block of rows, and stores as soon as what they read is there.
 *
 *     packed operand of a product    %3: z:1p t:32 k t:8 t:1v; res p3[..]       before the blocks
 *     product                        %S: z:1p q:64 t:32 q:14 | k q:1u t:8u t:1v; res c4[q%64, t]
 *     along rows                     %m: z:1p q:64 q | t:32 t:1l
 *     store                          !0: as the stage that its value was complete with
 *
 *   requires  a Chain with kinds, last axes and sizes (chain.c)
 *   breaks    nothing; scratch buffers are new
 *
 * Read before: ccode/contract/chain.h, chain.c, ccode/schedule/builder.h. After:
 * ccode/lower/lower.c. */
#include "ccode/contract/chain.h"
#include "ccode/schedule/transpose.h"

/* A line of the schedule: number `what`, its loops, where it goes. */
static void
chain_line(Writer *w, const char *head, uint32_t what, const char *loops, const char *place)
{
    char line[160];
    Text t = {NULL, line, 0, sizeof line};
    jot_write_number(w, 's', what);
    jot_text_f(&t, "%s%s%s", head, loops, place);
    jot_write_lines(w, line);
}

/* Loops around everything, and the blocks of rows. */
static void
chain_outer(const Chain *c, LoopList *outer)
{
    uint64_t row = jot_chain_bit(c->row);
    jot_loops_axes(outer, c->shared & ~row, LOOP_PARALLEL);
    if (c->row >= 0 && c->height < jot_chain_ext(c, c->row))
        jot_loops_add(outer, c->row, c->height,
                      c->phased || c->shared == row ? LOOP_PARALLEL : LOOP_SERIAL);
}

/* What all stages have in common: O around everything, q the row of a block, H and D where it
 * stands in scratch, and of how many; V lanes, L lanes along rows. */
static void
chain_roles(const Chain *c, Writer *w, LoopList *outer)
{
    IxPool *ix = c->k->ix;
    Ix row = c->row < 0 ? 0 : jot_ix_axis(ix, c->row);
    chain_outer(c, outer);
    if (c->row >= 0 && c->height < jot_chain_ext(c, c->row))
        row = jot_ix_mod(ix, row, jot_ix_const(ix, c->height), NULL);
    jot_write_loops(w, 'O', outer);
    jot_write_axis(w, 'q', c->row);
    jot_write_index(w, 'H', row);
    jot_write_number(w, 'D', c->height);
    jot_write_number(w, 'V', c->lanes);
    jot_write_number(w, 'L', CHAIN_PANEL);
}

/* x the axes of the value, y the last of them, with room behind a row so that rows
 * lie on different lines of a cache. */
static const char chain_in_scratch[] = "; res scratch c%[$H#$D, $x, $y#$E]\n";

static const char *
chain_place(Chain *c, Writer *w, uint32_t value)
{
    int last = c->last[value];
    uint64_t own = c->k->values.v[value].free & ~c->shared, y = own & jot_chain_bit(last);
    bool first = c->row < 0 && own == y;
    jot_write_set(w, 'x', own & ~y);
    jot_write_set(w, 'y', y);
    jot_write_number(w, 'E', y ? jot_chain_ext(c, last) + (first ? 0 : c->lanes) : 1);
    c->placed[value] = true;
    return chain_in_scratch;
}

/* Of the axes of b the one that it is read along, across the vectors; -1: none. */
static int
chain_transposed(const Chain *c, const ChainProduct *p, uint64_t own)
{
    for (int a = 0; a < (int)c->k->axes.n; a++)
        if ((own >> a & 1) && c->k->axes.v[a].ext % c->lanes == 0
            && jot_transpose_load(c->k, p->m.c.b, p->m.v, a, c->lanes))
            return a;
    return -1;
}

/* b in panels: [v / block][k ..][v % block] */
static void
chain_pack(const Chain *c, Writer *w, const ChainProduct *p)
{
    const Value *b = &c->k->values.v[p->m.c.b];
    IxPool *ix = c->k->ix;
    uint64_t batch = b->free & c->shared, own = b->free & ~c->shared & ~jot_chain_bit(p->m.v);
    bool panels = jot_chain_ext(c, p->m.v) > p->m.block;
    int along = chain_transposed(c, p, own);
    LoopList around = {0};
    Ix v = jot_ix_axis(ix, p->m.v), block = jot_ix_const(ix, p->m.block);
    jot_loops_axes(&around, c->phased ? batch : c->shared & ~jot_chain_bit(c->row), LOOP_PARALLEL);
    if (panels)
        jot_loops_add(&around, p->m.v, p->m.block, c->phased ? LOOP_PARALLEL : LOOP_SERIAL);
    jot_write_loops(w, 'B', &around);
    jot_write_set(w, 'g', batch);
    jot_write_set(w, 'f', own);
    jot_write_set(w, 'k', own & ~jot_chain_bit(along));
    jot_write_axis(w, 'a', along);
    jot_write_axis(w, 'v', p->m.v);
    jot_write_index(w, 'N', panels ? jot_ix_div(ix, v, block, NULL) : 0);
    jot_write_number(w, 'F', (jot_chain_ext(c, p->m.v) + p->m.block - 1) / p->m.block);
    jot_write_index(w, 'P', panels ? jot_ix_mod(ix, v, block, NULL) : v);
    jot_write_number(w, 'E', panels ? p->m.block
                             : (jot_chain_ext(c, p->m.v) + c->lanes - 1) / c->lanes * c->lanes);
    chain_line(w, "%$s: ", p->m.c.b, "$B $k $a:$V $v:$V? $a:1u $v:1v",
               c->phased ? "; res shared p%[$g, $N#$F, $f, $P#$E]\n"
                         : "; res scratch p%[$N#$F, $f, $P#$E]\n");
}

/* The roles of a block of sums in registers; U its vectors, T the last loop of what is summed. */
static void
chain_block(const Chain *c, Writer *w, const ChainProduct *p, LoopList *vectors, LoopList *terms)
{
    int last = -1;
    uint64_t all = p->m.c.batch | p->m.c.m | p->m.c.n;
    jot_contract_vectors(vectors, p->m.v, p->m.block, c->lanes);
    jot_write_loops(w, 'U', vectors);
    jot_write_set(w, 'i', all & ~c->shared & ~jot_chain_bit(p->m.v) & ~jot_chain_bit(p->m.r));
    for (int a = 0; a < (int)c->k->axes.n; a++)
        last = p->m.c.k >> a & 1 ? a : last;
    if (last >= 0)
        jot_loops_terms(terms, last, jot_sum_terms(c->target, c->lanes, c->k, last,
                                                   jot_chain_ext(c, last)));
    jot_write_set(w, 'k', p->m.c.k & ~jot_chain_bit(last));
    jot_write_loops(w, 'T', terms);
    jot_write_axis(w, 'v', p->m.v);
    jot_write_axis(w, 'r', p->m.r);
    jot_write_number(w, 'B', p->m.block);
    jot_write_number(w, 'R', p->m.rows);
}

static void
chain_product(Chain *c, Writer *w, const ChainProduct *p)
{
    LoopList block = {0}, terms = {0};
    if (p->packed && p->inside)
        chain_pack(c, w, p);
    chain_block(c, w, p, &block, &terms);
    chain_line(w, "%$s: ", p->m.c.reduce,
               "$O $i $v:$B $r:$R | $k $T $r:1?u $U",
               p->epilogue ? "\n" : chain_place(c, w, p->m.c.reduce));
}

/* A row's sum, a value, a store: one row after the other. l the axis along the rows, A its loops,
 * in lanes where rows fill a vector, or a narrower one; f the other axes that are kept, k those
 * summed over. */
static const char *
chain_along_rows(const Chain *c, Writer *w, LoopList *along, uint64_t kept, uint64_t summed,
                 int last)
{
    int64_t ext = last < 0 ? 0 : jot_chain_ext(c, last);
    bool part = ext >= LOOP_STEPS && (ext & (ext - 1)) == 0; /* a narrower vector, whole */
    bool lanes = c->lanes > 1 && (ext >= c->lanes || part);
    bool beside = (kept & jot_chain_bit(last)) && summed;
    if (lanes)
        jot_loops_add(along, last, ext < c->wide ? c->lanes : c->wide, LOOP_SERIAL);
    jot_loops_add(along, last, 1, lanes ? LOOP_LANES : LOOP_SERIAL);
    jot_write_axis(w, 'l', last);
    jot_write_loops(w, 'A', along);
    jot_write_set(w, 'f', kept & ~c->shared & ~jot_chain_bit(last));
    jot_write_set(w, 'k', summed & ~jot_chain_bit(last));
    if (beside) /* sums side by side */
        return c->wide > 1 ? "$O $q $f $l:$L? | $k $l:1l" : "$O $q $f $l | $k";
    return summed ? "$O $q $f | $k $A" : "$O $q $f $A";
}

/* Is a row's sum read where its register is gone? */
static bool
chain_outlives(const Chain *c, uint32_t sum, uint16_t run)
{
    const Value *v = &c->k->values.v[sum];
    if (v->free & ~c->shared)
        return true;
    for (uint32_t i = sum + 1; i < c->k->values.n; i++)
        if (c->used[i] && c->kind[i] != CHAIN_INLINE && jot_chain_depends(c, i, sum) &&
            (c->kind[i] == CHAIN_PRODUCT || c->run[i] != run))
            return true;
    for (uint32_t i = 0; i < c->k->stores.n; i++) {
        uint32_t value = c->k->stores.v[i].value, last = c->latest[value];
        if ((value == sum || jot_chain_depends(c, value, sum)) &&
            (c->kind[last] == CHAIN_PRODUCT || c->run[last] != run))
            return true;
    }
    return false;
}

static void
chain_stage(Chain *c, Writer *w, uint32_t i)
{
    const Value *v = &c->k->values.v[i];
    bool sum = c->kind[i] == CHAIN_SUM, one = sum && !v->axes;
    int last = sum ? c->last[jot_v_arg(c->k, i, 0)] : c->last[i];
    LoopList along = {0};
    const char *loops, *place = "\n";
    if (sum && last < 0)
        last = jot_contract_longest(c->k, v->axes);
    loops = chain_along_rows(c, w, &along, v->free, sum ? v->axes : 0, one ? -1 : last);
    if (c->kind[i] == CHAIN_KEPT || chain_outlives(c, i, c->run[i]))
        place = chain_place(c, w, i);
    chain_line(w, "%$s: ", i, one ? "$O $q $f |" : loops, place);
}

static void
chain_stores(const Chain *c, Writer *w, uint32_t after)
{
    const ChainProduct *p = c->kind[after] == CHAIN_PRODUCT ? &c->product[c->which[after]] : NULL;
    for (uint32_t i = 0; i < c->k->stores.n; i++) {
        uint32_t value = c->k->stores.v[i].value;
        LoopList along = {0}, block = {0}, terms = {0};
        const char *loops = "$O $i $v:$B $r:$R $r:1?u $U";
        if (c->latest[value] != after)
            continue;
        if (p && p->epilogue)
            chain_block(c, w, p, &block, &terms);
        else
            loops = chain_along_rows(c, w, &along, c->k->stores.v[i].free, 0, c->last[value]);
        chain_line(w, "!$s: ", i, loops, "\n");
    }
}

/* Runs of stages that go along rows, between contractions. */
static void
chain_runs(Chain *c)
{
    uint16_t run = 0;
    for (uint32_t i = 1; i < c->k->values.n; i++)
        if (c->kind[i] != CHAIN_INLINE) {
            run += c->kind[i] == CHAIN_PRODUCT;
            c->run[i] = run;
        }
}

JOT_FN bool
jot_chain_write(Chain *c, Sched *s)
{
    bool packed = false;
    LoopList outer = {0};
    Writer w;
    jot_write_open(&w, s, c->k, c->lanes);
    s->fma = c->lanes > 1;
    chain_roles(c, &w, &outer);
    for (int i = 0; i < c->nproduct; i++)
        if (c->product[i].packed && !c->product[i].inside) {
            chain_pack(c, &w, &c->product[i]);
            packed = true;
        }
    if (packed && c->phased)
        jot_write_lines(&w, "phase\n");
    chain_runs(c);
    for (uint32_t i = 1; i < c->k->values.n; i++)
        if (c->kind[i] != CHAIN_INLINE) {
            if (c->kind[i] == CHAIN_PRODUCT)
                chain_product(c, &w, &c->product[c->which[i]]);
            else
                chain_stage(c, &w, i);
            chain_stores(c, &w, i);
        }
    return jot_write_done(&w);
}
