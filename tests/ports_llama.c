/* tests/ports_llama.c - the language model of tinystories for a board: a step as exported C, and its
 * words.
 *
 *     ports_llama DIR      DIR/llama.c  DIR/words.h
 *
 * Read after: tests/test_ports.sh, examples/llama/llama.h. */
#include <stdio.h>
#include "examples/llama/llama.h"

enum { ROOM = 64 };

static bool
put_words(const LlamaWords *w, const char *path)
{
    FILE *out = fopen(path, "w");

    if (!out)
        return false;
    fprintf(out, "static const unsigned char piece[%d][16] = {\n", (int)w->n);
    for (int32_t k = 0; k < w->n; k++) {
        char text[LLAMA_PIECE];
        int n = llama_piece(w, 0, k, text);
        fprintf(out, "{%d", n < 15 ? n : 15);
        for (int i = 0; i < n && i < 15; i++)
            fprintf(out, ", %d", (unsigned char)text[i]);
        fprintf(out, "},\n");
    }
    fprintf(out, "};\nenum { ROOM = %d, WORDS = %d };\n", ROOM, (int)w->n);
    return fclose(out) == 0;
}

int
main(int argc, char **argv)
{
    static const char folder[] = "../shared/models/tinystories/";
    char numbers[200], words[200], path[400], why[400] = "";
    jot_Ctx *c = jot_open(&(jot_Config){.backend = "interp"});
    Llama m;
    LlamaWords w;

    snprintf(numbers, sizeof numbers, "%sstories260K.bin", folder);
    snprintf(words, sizeof words, "%stok512.bin", folder);
    bool ok = argc == 2 && llama_open(&m, &w, c, numbers, words, why, sizeof why)
              && llama_room(&m, 1, ROOM, JOT_F32);
    LlamaAt at = {jot_array(c, JOT_I32, JOT_SHAPE(1, 1), NULL),
                  jot_array(c, JOT_I64, JOT_SHAPE(1), NULL),
                  jot_array(c, JOT_I64, JOT_SHAPE(1), NULL)};
    if (ok) {
        snprintf(path, sizeof path, "%s/llama.c", argv[1]);
        ok = jot_export(c, "llama", JOT_VARS(at.tokens, at.start, at.place),
                        JOT_VARS(llama_graph(&m, &at, true)), path);
        snprintf(path, sizeof path, "%s/words.h", argv[1]);
        ok = ok && put_words(&w, path);
    }
    if (!ok)
        fprintf(stderr, "%s%s\n", why, jot_message(c));
    jot_close(c);
    return !ok;
}
