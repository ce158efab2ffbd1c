/* tests/test_ir.c - the kernel IR: kernels built by hand, with plain and hand-written schedules,
 * emitted as C, compiled, run and compared with straightforward loops here.
 * Set IR_SHOW to a part of a case's name to see its text. */
#include "tests/ir_cases.h"

/* ---- schedules by hand: {V} lanes, {2V} twice as many, and so on ---- */

static void
fill_in(char *out, const char *text, int lanes)
{
    while (*text) {
        if (*text == '{') {
            int k = text[1] == 'V' ? 1 : text[1] - '0';
            out += sprintf(out, "%d", k * lanes);
            text = strchr(text, '}') + 1;
        } else
            *out++ = *text++;
    }
    *out = 0;
}

typedef struct { const char *dialect; int lanes, cc; } Target;
static const Target targets[] = {
    { "c", 1, GCC }, { "c", 1, TCC }, { "c", 1, CLANG }, { "c", 4, GCC }, { "c", 4, TCC },
    { "gnu", 8, GCC_NATIVE }, { "gnu", 16, GCC_NATIVE }, { "gnu", 8, CLANG_NATIVE }
};
static bool present[5];

static void
by_hand(IrCase *c, const char *text, const char *what)
{
    char full[4096];
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (present[targets[i].cc]) {
            int n = sprintf(full, "lanes %d\n", targets[i].lanes);
            fill_in(full + n, text, targets[i].lanes);
            ir_hand(c, full, targets[i].dialect, targets[i].cc, what);
        }
}

static void
test_loops(void)
{
    IrCase c;
    make_sigmoid(&c, 103);
    by_hand(&c, "!0: i:{V} i:1v", "sigmoid");
    by_hand(&c, "!0: i:{4V} i:{V}u i:1v", "sigmoid, unrolled");
    ir_end(&c);
    make_softmax(&c, 7, 101);
    by_hand(&c, "%mx: r:1p | j:{V} j:1v\n%e: r:1p j:{V} j:1v; res y[r, j]\n%s: r:1p | j:{V} j:1v\n"
            "!0: r:1p j:{V} j:1v", "softmax");
    by_hand(&c, "%mx: r:1p | j:{4V} j:{V}U j:1v\n%e: r:1p j:{4V} j:{V}U j:1v; res y[r, j]\n"
            "%s: r:1p | j:{4V} j:{V}U j:1v\n!0: r:1p j:{4V} j:{V}U j:1v", "softmax, four partial sums");
    ir_end(&c);
    make_columns(&c, 10, 101);
    by_hand(&c, "%s: j:{4V} | r j:{V}u j:1v\n%q: j:{4V} | r j:{V}u j:1v\n!0: j:{4V} r j:{V}u j:1v",
            "column panels");
    ir_end(&c);
}

static void
test_transpose(void)
{
    IrCase c;
    make_transpose(&c, 45, 37);
    ir_buf(&c, "T", JOT_F32, BUF_SCRATCH, 2, 16, 16, 0, 0);
    by_hand(&c, "%t: i:16 j:16 j i; res T[i%16, j%16]\n!0: i:16 j:16 i j", "transpose through scratch");
    by_hand(&c, "%t: i:16 j:16 i j:{V} j:1v; res T[i%16, j%16]\n!0: i:16 j:16 i j:{V} j:1v", "transpose, gathered");
    ir_end(&c);
    make_transpose(&c, 32, 64);
    by_hand(&c, "%t: i:16 j:16 j:{V} i:{V} | j:1u i:1v\n!0: i:16 j:16 j:{V} i:{V} i:1u j:1v",
            "transpose in registers");
    ir_end(&c);
}

#define CHANNELS_LAST "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1\nlayout wt 0:{2V} 2 3 1 0\n"

static void
test_conv(void)
{
    IrCase c;
    make_conv(&c, 2, 6, 35, 7, 1, false);
    by_hand(&c, CHANNELS_LAST
            "%acc: n h:4 i:4 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: n h:4 i:4 o:{2V} h w:4 w:1u o:{V}u o:1v", "convolution");
    by_hand(&c, CHANNELS_LAST "fuse m = n h w\n"
            "%acc: m:16 i:4 o:{2V} m:4 | p q i m:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: m:16 i:4 o:{2V} m:4 m:1u o:{V}u o:1v", "convolution, fused pixels");
    by_hand(&c, "fma\n" CHANNELS_LAST
            "%acc: n o:{2V} h w:4 | p q i w:1u o:{V}u o:1v\n!0: n o:{2V} h w:4 w:1u o:{V}u o:1v",
            "convolution, one block, fma");
    by_hand(&c, CHANNELS_LAST
            "%acc: n o:{2V} h w:4c | p q i w:1u o:{V}u o:1v\n!0: n o:{2V} h w:4c w:1u o:{V}u o:1v",
            "convolution, clamped tails");
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1 pad 1:{2V}\nlayout wt 0:{2V} 2 3 1 0\n"
            "%acc: n o:{2V}d h w:4 | p q i w:1u o:{V}u o:1v\n!0: n o:{2V}d h w:4 w:1u o:{V}u o:1v",
            "convolution, padded tails");
    ir_end(&c);
    make_conv(&c, 1, 5, 18, 9, 2, false);
    by_hand(&c, CHANNELS_LAST
            "%acc: n i:4 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: n i:4 o:{2V} h w:4 w:1u o:{V}u o:1v", "strided convolution");
    ir_end(&c);
    make_conv(&c, 2, 6, 35, 8, 1, true);
    by_hand(&c, CHANNELS_LAST
            "%acc: n h:4 i:3 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v; keep y[n, o, h, w]\n"
            "!0: n h:4 i:3 o:{2V} h w:4 w:1u o:{V}u o:1v\n"
            "%s1: n | h:4 i:3 o:{2V} h w:4 w:1u o:{V}u o:1v; acc b1[n, o]\n"
            "%s2: n | h:4 i:3 o:{2V} h w:4 w:1u o:{V}u o:1v; acc b2[n, o]\n"
            "!1: n o\n!2: n o", "convolution and statistics");
    ir_end(&c);
}

static void
test_gradients(void)
{
    IrCase c;
    make_by_weight(&c, 2, 9, 34, 6);
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout dy 0 2 3 1\nlayout dw 2 3 1 0\n"
            "%g: n h:4 o:{2V} p q i:4 | h w i:1u o:{V}u o:1v; keep dw[o, i, p, q]\n"
            "!0: n h:4 o:{2V} p q i:4 i:1u o:{V}u o:1v", "gradient by weight");
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout dy 0 2 3 1\nlayout dw 2 3 1 0\nfuse m = p q i\n"
            "%g: n h:4 o:{2V} m:7 | h w m:1u o:{V}u o:1v; keep dw[o, i, p, q]\n"
            "!0: n h:4 o:{2V} m:7 m:1u o:{V}u o:1v", "gradient by weight, fused rows");
    ir_end(&c);
    make_by_input(&c, 1, 34, 5, 8);
    by_hand(&c, "layout dy 0 2 3 1 halo 2:1,1 3:1,1\nlayout dx 0 2 3 1\nlayout wt 1:{2V} 2 3 0 1\n"
            "split h = hh hr:2\nsplit w = ww wr:2\n"
            "%g: n hh hr:1u wr:1u i:{2V} ww:4 | p:1u q:1u o ww:1u i:{V}u i:1v\n"
            "!0: n hh hr:1u wr:1u i:{2V} ww:4 ww:1u i:{V}u i:1v", "gradient by input, residue classes");
    ir_end(&c);
}

static void
test_tiles(void)
{
    IrCase c;
    make_prologue(&c, 2, 18, 20, 7, 4);
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1\nlayout wt 0:{2V} 2 3 1 0\n"
            "%xp: n h:4 hp@h:6 hp wp c:{V} c:1v; res XP[hp - h/4*4, wp, c]\n"
            "%acc: n h:4 o:{2V} h w:4 | p q i w:1u o:{V}u o:1v\n!0: n h:4 o:{2V} h w:4 w:1u o:{V}u o:1v",
            "convolution with a prologue tile");
    ir_end(&c);
    make_winograd(&c, 1, 17, 18, 6, 4);
    by_hand(&c, "layout x 0 2 3 1 halo 2:1,1 3:1,1\nlayout y 0 2 3 1\nlayout U 0 1 3:{2V} 2 3\n"
            "fuse t = n i j\n"
            "%v1: t:4 t c:{V} | a:1u s:1u r:1u c:1v\n"
            "%v: t:4 t c:{V} | a:1u b:1u s:1u c:1v; res SV[a, b, t%4, c]\n"
            "%m: t:4 a b o:{2V} t:3 | c t:1u o:{V}u o:1v; res SM[a, b, t%4, o]\n"
            "%y1: t:4 t o:{V} | e:1u b:1u a:1u o:1v\n%yy: t:4 t o:{V} | e:1u f:1u b:1u o:1v\n"
            "!0: t:4 t o:{V} e:1u f:1u o:1v", "Winograd");
    ir_end(&c);
    make_attention(&c, 2, 13, 18, 4);
    by_hand(&c, "layout Kt 0 1:{2V} 2 1\nlayout Vt 0 2:{2V} 1 2\n"
            "%S: z q:4 t:{2V} | k q:1u t:{V}u t:1v\n"
            "%sm: z q:4 t:{2V} q:1u t:{V}u t:1v; res SS[q%4, t]\n"
            "%mx: z q:4 q | t:{4V} t:{V}U t:1v\n"
            "%e: z q:4 q t:{4V} t:{V}U t:1v; res SE[q%4, t]\n"
            "%s: z q:4 q | t:{4V} t:{V}U t:1v\n%sl: z q:4 q; res SL[q%4]\n"
            "%o: z q:4 d:{2V} | t q:1u d:{V}u d:1v\n!0: z q:4 d:{2V} q:1u d:{V}u d:1v", "attention");
    ir_end(&c);
    make_pairs(&c, 11, 37, 4);
    by_hand(&c, "%part: i:4 | i j:{V} j:1v; acc pc[i/4, j]\n%rowsum: i:4 i | j:{V} j:1v\n!0: i:4 i\n"
            "%all: | i j:{V} j:1v\n!1:\n%colsum: j:{V} | b j:1v\n!2: j:{V} j:1v", "pairs");
    ir_end(&c);
}

static void
test_plain(int cc)
{
    IrCase c;
    make_sigmoid(&c, 13);
    ir_default(&c, cc, "sigmoid");
    ir_end(&c);
    make_softmax(&c, 5, 7);
    ir_default(&c, cc, "softmax");
    ir_end(&c);
}

int
main(void)
{
    ir_open();
    for (int i = 0; i < 5; i++) {
        char cmd[64];
        snprintf(cmd, sizeof cmd, "command -v %.*s >/dev/null 2>&1", (int)strcspn(ir_cc[i], " "), ir_cc[i]);
        present[i] = system(cmd) == 0;
        if (!present[i] && i < 3)
            SKIP("no %.*s here", (int)strcspn(ir_cc[i], " "), ir_cc[i]);
    }
    test_plain(GCC);
    test_loops();
    test_transpose();
    test_conv();
    test_gradients();
    test_tiles();
    ir_close();
    return DONE();
}
