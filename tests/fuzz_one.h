/* tests/fuzz_one.h - what fuzzers of parsers share, behind their fuzz_one(bytes, n): libFuzzer's
 * entry, or numbers from `state` for drawn bytes. */
#ifndef JOT_TEST_FUZZ_ONE_H
#define JOT_TEST_FUZZ_ONE_H
#include <stdint.h>
#include <stdlib.h>

#ifdef JOT_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_one(p, n);
    if (test_failed)
        abort();
    return 0;
}
#else
static uint64_t state;

static uint64_t
draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (state >> 11) % below : 0;
}
#endif

#endif
