/* tests/test.h - the few macros that every test program uses. A failing CHECK prints where and what
 * and the program goes on; DONE() prints the closing line and gives the exit code. */
#ifndef JOT_TEST_H
#define JOT_TEST_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_passed, test_failed, test_skipped;

#define CHECK(cond, ...) \
    ((cond) ? (void)test_passed++ \
            : (void)(test_failed++, printf("%s:%d: not %s: ", __FILE__, __LINE__, #cond), \
                     printf(__VA_ARGS__), printf("\n")))
#define SKIP(...) (test_skipped++, printf("skipped: "), printf(__VA_ARGS__), printf("\n"))
#define DONE() test_done()

/* How many are drawn, refused or tried: `few` in make test (TEST_SHORT), which has shown to find the same, `all` elsewhere. */
static inline int
test_many(int few, int all)
{
    return getenv("TEST_SHORT") ? few : all;
}

static inline int
test_done(void)
{
    printf("%d passed, %d failed, %d skipped\n", test_passed, test_failed, test_skipped);
    return test_failed != 0;
}

#endif
