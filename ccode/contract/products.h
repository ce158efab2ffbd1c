/* ccode/contract/products.h - what a kernel is to all that deal with sums of products: found once,
 * when its group is built (plan/built.c), and read by layouts, Winograd's tiles and the strategies
 * of either tier.
 *
 * Read before: ccode/contract/contract.h, ccode/contract/epilogue.h. After:
 * ccode/contract/products.c, plan/built.c. */
#ifndef JOT_PRODUCTS_H
#define JOT_PRODUCTS_H
#include "ccode/contract/epilogue.h"

typedef enum {
    PRODUCTS_NONE,
    PRODUCTS_ONE,       /* a contraction, all else is element-wise work before or after it */
    PRODUCTS_EPILOGUE,  /* ... or sums of its results, over all its rows */
    PRODUCTS_SCALED     /* sums of scaled sums of bytes' products */
} ProductsForm;

/* Values and axes are the kernel's behind residue classes (ccode/rewrite/residue.c). */
typedef struct Products {
    ProductsForm form;
    Contract of;
    Epilogue sums;                 /* EPILOGUE */
    Scaled scaled;                 /* SCALED */
    uint32_t values, axes;      /* what the kernel had of these */
} Products;

/* False: memory was refused (k->mem->failed), or it is none. */
JOT_FN bool jot_products_find(const Kernel *k, Products *p);
/* The kernel has as many values and axes as when it was found: rewrites that change what is summed
 * add some. */
JOT_FN bool jot_products_hold(const Products *p, const Kernel *k);

#endif
