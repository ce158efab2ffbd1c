/* ccode/contract/products.c - the one look at a kernel for sums of products.
 *
 *   requires  a verified kernel, residue classes made      keeps  everything: nothing is changed
 * Read before: ccode/contract/products.h. After: ccode/contract/contract.c,
 * ccode/contract/epilogue.c. */
#include "ccode/contract/products.h"

JOT_FN bool
jot_products_find(const Kernel *k, Products *p)
{
    memset(p, 0, sizeof *p);
    p->values = k->values.n;
    p->axes = k->axes.n;
    if (jot_epilogue_find(k, &p->sums, &p->of))
        p->form = PRODUCTS_EPILOGUE;
    else if (jot_contract_only(k, &p->of))
        p->form = PRODUCTS_ONE;
    else if (jot_scaled_find(k, &p->scaled))
        p->form = PRODUCTS_SCALED;
    return p->form != PRODUCTS_NONE;
}

JOT_FN bool
jot_products_hold(const Products *p, const Kernel *k)
{
    return p->values == k->values.n && p->axes == k->axes.n;
}
