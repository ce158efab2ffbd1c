/* tests/test_contract.c - contractions: recognised whatever they are called, and scheduled; each
 * schedule runs against straightforward loops. */
#include "tests/ir_cases.h"
#include "ccode/contract.h"

static void
finds(IrCase *c, uint64_t batch, uint64_t m, uint64_t n, uint64_t k, const char *what)
{
    Contract found;
    bool is = jot_contract_only(&c->k, &found);
    CHECK(is, "%s: is not seen to be a contraction", what);
    CHECK(!is || (found.batch == batch && found.m == m && found.n == n && found.k == k),
          "%s: batch %llx m %llx n %llx k %llx", what, (unsigned long long)found.batch,
          (unsigned long long)found.m, (unsigned long long)found.n, (unsigned long long)found.k);
}

static void
wishes(IrCase *c, uint32_t buf, const char *want, const char *what)
{
    Target target;
    Contract found;
    Layout layout;
    Text text = {0};
    jot_target_default(&target);
    target.vector_nbytes = 64;
    target.vectors = 32;
    text.mem = &ir_mem;
    if (jot_contract_only(&c->k, &found) && jot_contract_wish(&c->k, &found, &target, buf, &layout))
        jot_layout_print(&layout, &text);
    CHECK(text.s && !strcmp(text.s, want), "%s: buffer %u wishes for \"%s\"", what, buf,
          text.s ? text.s : "nothing");
    jot_text_free(&text);
}

static void
finds_none(IrCase *c, const char *what)
{
    Contract found;
    CHECK(!jot_contract_only(&c->k, &found), "%s: is taken for a contraction", what);
    ir_default(c, GCC, what);
    ir_end(c);
}

static void
test_find(void)
{
    IrCase c;
    make_conv(&c, 2, 6, 35, 7, 1, false);
    finds(&c, 0, BIT(0) | BIT(2) | BIT(3), BIT(1), BIT(4) | BIT(5) | BIT(6), "convolution");
    wishes(&c, 1, "0 2 3 1 halo 2:1,1 3:1,1", "convolution");
    wishes(&c, 2, "0:32 1 2 3 0", "convolution");
    wishes(&c, 3, "0 2 3 1", "convolution");
    ir_end(&c);
    make_by_weight(&c, 2, 9, 34, 6);
    finds(&c, 0, BIT(4) | BIT(5) | BIT(6), BIT(1), BIT(0) | BIT(2) | BIT(3), "by weight");
    ir_end(&c);
    make_by_input(&c, 1, 34, 5, 8);
    finds(&c, 0, BIT(0) | BIT(2) | BIT(3), BIT(4), BIT(1) | BIT(5) | BIT(6), "by input");
    ir_end(&c);
    make_softmax(&c, 5, 7);
    finds_none(&c, "softmax");
    make_columns(&c, 5, 7);
    finds_none(&c, "sums of columns");
    make_sigmoid(&c, 9);
    finds_none(&c, "sigmoid");
    make_transpose(&c, 5, 7);
    finds_none(&c, "transposition");
    make_attention(&c, 2, 13, 18, 4);
    finds_none(&c, "two products");
}

int
main(void)
{
    ir_open();
    test_find();
    ir_close();
    return DONE();
}
