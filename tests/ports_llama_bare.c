/* tests/ports_llama_bare.c - the language model of tinystories on a Cortex-M: the likeliest token, one
 * after the other, as text on the host's console.
 *
 * Read before: tests/ports_board.h, tests/ports_llama.c. */
#include "tests/ports_board.h"
#define llama_HEADER
#include "llama.c"
#include "words.h"

static void
all(void)
{
    static double arena[llama_ARENA / 8];
    static float logits[WORDS];
    uint32_t took = 0;
    int token = 1;

    for (long long at = 0; at < ROOM; at++) {
        char text[17];
        int best = 0, n;
        uint32_t start = ticks();
        llama(arena, &token, &at, &at, logits);
        took = (start - timer[2]) & 0xffffff;
        for (int i = 1; i < WORDS; i++)
            best = logits[i] > logits[best] ? i : best;
        token = best;
        n = piece[best][0];
        memcpy(text, piece[best] + 1, (size_t)n);
        text[n] = 0;
        host(SAY, at == 0 && text[0] == ' ' ? text + 1 : text); /* no space before all */
    }
    say("\nllama: ", took * TICK, " instructions a token, ");
    say("arena ", llama_ARENA, " bytes, ");
    say("stack ", stack_depth(), " bytes\n");
    passed = 1;
}
