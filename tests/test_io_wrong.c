/* test_io_wrong.c - files of tensors that are not what they say (io.h): in headers, tables and
 * pickles each part that can be wrong, and what is said: file, tensor, place, asked and found;
 * nothing is left of a file that was refused.
 *
 * Guards: io/file.c io/safetensors.c io/npy.c io/zip.c io/gguf.c io/pickle.c io/torch.c */
#include "tests/io_files.h"

static jot_Ctx *c;

/* A header of safetensors and so many bytes behind it. */
static void
wrong_header(const char *header, size_t data, const char *text)
{
    static uint8_t p[4096];
    size_t n = strlen(header);

    memset(p, 0, sizeof p);
    p[0] = (uint8_t)n, p[1] = (uint8_t)(n >> 8);
    memcpy(p + 8, header, n);
    jot_File *f = jot_file_memory("F", p, 8 + n + data);
    CHECK(f->status && !strncmp(f->message, "F: ", 3) && strstr(f->message, text),
          "\"%s\" in \"%s\"", text, f->message);
    CHECK(!f->count && !f->tensor && !f->metas && jot_file_find(f, "a") == -1 && !jot_meta(f, "k"),
          "something is left");
    RAISED(c, jot_ok(jot_file_var(c, f, 0)), f->status, text);
    jot_file_close(f);
}

#define TENSOR(name, type, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "]," \
    "\"data_offsets\":[" begin "," end "]}"

static void
test_wrong_safetensors(void)
{
    wrong_header("{", 0, "no JSON");
    wrong_header("{} x", 0, "byte 11: header: no JSON");
    wrong_header("{\"a\":1}", 0, "tensor a: dtype, shape and data_offsets");
    wrong_header("{\"a\":[[[[1]]]]}", 0, "brackets 3 deep asked");
    wrong_header("{\"__metadata__\":{\"k\":1}}", 0, "__metadata__: k: a text asked");
    wrong_header("{\"__metadata__\":[]}", 0, "__metadata__: texts by name");
    wrong_header("{" TENSOR("a", "F32", "2", "0", "8") "}", 7,
                 "tensor a, F32 (2) at byte 62: beyond the end");
    wrong_header("{" TENSOR("a", "F32", "2", "0", "8") "}", 9, "8 bytes asked, 9 found");
    wrong_header("{" TENSOR("a", "F32", "3", "0", "8") "}", 8,
                 "its shape: 12 bytes asked, 8 found");
    wrong_header("{" TENSOR("a", "F32", "-2", "0", "8") "}", 8, "a whole number below 2^53");
    wrong_header("{" TENSOR("a", "F32", "1.5", "0", "8") "}", 8, "a whole number below 2^53");
    wrong_header("{" TENSOR("a", "F32", "2", "8", "0") "}", 8, "data_offsets [begin, end]");
    wrong_header("{" TENSOR("a", "F32", "4503599627370496,4503599627370496", "0", "8") "}", 8,
                 "more than there can be");
    wrong_header("{" TENSOR("a", "U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0", "1") "}", 1,
                 "a rank of at most 16");
    wrong_header("{" TENSOR("a", "U8", "4", "0", "4") "," TENSOR("b", "U8", "4", "2", "6") "}", 8,
                 "tensors a and b overlap: bytes 113 to 117, and 115 to 119");
    wrong_header("{" TENSOR("a", "U8", "2", "0", "2") "," TENSOR("a", "U8", "2", "2", "4") "}", 4,
                 "tensor a is there twice");
    wrong_header("{" TENSOR("a", "U8", "2", "0", "2") "," TENSOR("b", "U8", "2", "3", "5") "}", 5,
                 "4 bytes asked, 5 found");
}

/* The packages' file with `n` bytes at the first place where `at` is (or at byte k) replaced. */
static void
wrong_at(const char *name, const char *at, size_t size, int64_t k, const char *with, size_t n,
         const char *text)
{
    uint8_t p[8192];
    const RefFile *r = ref_files;

    while (strcmp(r->name, name))
        r++;
    memcpy(p, r->p, r->n);
    for (size_t j = 0; k < 0 && j + size <= r->n; j++)
        if (!memcmp(p + j, at, size))
            k = (int64_t)j;
    CHECK(k >= 0, "%s is not there", at);
    memcpy(p + k, with, n);
    jot_File *f = jot_file_memory("F", p, r->n);
    CHECK(f->status == JOT_EIO || f->status == JOT_ESHAPE, "%s: %s: read", name, text);
    CHECK(f->status && strstr(f->message, text), "%s: \"%s\" in \"%s\"", name, text, f->message);
    jot_file_close(f);
}
#define WRONG(name, at, with, text) \
    wrong_at(name, at, sizeof at - 1, -1, with, sizeof with - 1, text)
#define WRONG_BYTE(name, k, with, text) wrong_at(name, "", 0, k, with, sizeof with - 1, text)

static void
test_wrong(void)
{
    WRONG("npy", "(2, 3)", "(2, 4)", "32 bytes asked, 24 found");
    WRONG("npy", "'shape'", "'shaqe'", "descr, fortran_order and shape");
    WRONG("npy", "'<f4'", "[<f4]", "a plain dtype");
    WRONG("npy", "False", "Fulse", "byte 44: header: True or False asked");
    WRONG("npy", "(2, 3)", "(2; 3)", "an extent");
    WRONG_BYTE("npy", 8, "\xff\xff", "a header of npy 1 to 3");
    WRONG_BYTE("npy", 6, "\x09", "a header of npy 1 to 3");
    WRONG("npz", "PK\5\6", "PK\5\5", "zip's directory");
    WRONG("npz", "PK\1\2", "PK\1\1", "no record of zip's directory");
    WRONG("npz", "PK\1\2\x2d\3\x2d\0\0", "PK\1\2\x2d\3\x2d\0\1", "encrypted, method 0 found");
    WRONG("npz", "PK\1\2\x2d\3\x2d\0\0\0\0", "PK\1\2\x2d\3\x2d\0\0\0\x0c", "method 12 found");
    WRONG("npz", "\x98\0\0\0\x98\0\0\0\5", "\x98\0\0\0\x99\0\0\0\5", "152 bytes cannot become 153");
    WRONG("npz", "\x98\0\0\0\x98\0\0\0\5", "\x98\0\1\0\x98\0\1\0\5", "before byte 392");
    WRONG_BYTE("gguf", 4, "\x09", "version 2 or 3, little-endian, asked, 9 found");
    WRONG_BYTE("gguf", 8, "\xff\xff\xff\xff", "4294967295 of them asked");
    WRONG_BYTE("gguf", 16, "\xff\xff\xff\xff\xff", "of them asked");
    WRONG_BYTE("gguf", 24, "\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615 bytes asked");
    WRONG("gguf", "eps\6\0\0\0", "eps\x2f\0\0\0", "eps: byte 113: a type of value up to 12 asked");
    WRONG("gguf", "Q8_0\2\0\0\0", "Q8_0\x63\0\0\0", "tensor Q8_0: a rank of at most 16 asked, 99");
    WRONG("gguf", "Q8_0\2\0\0\0\x20", "Q8_0\2\0\0\0\x21", "rows of whole blocks");
    WRONG("gguf", "i32\1\0\0\0\3\0\0\0\0\0\0\0\x1a", "i32\1\0\0\0\3\0\0\0\0\0\0\0\xf0",
          "tensor i32: byte");
    WRONG("gguf", "i32\1\0\0\0\3\0\0\0\0\0\0\0\x1a\0\0\0",
          "i32\1\0\0\0\3\0\0\0\0\0\0\0\x1a\0\0\0\1", "no multiple of 32");
    WRONG("gguf", "i32\1\0\0\0\3\0\0\0\0\0\0", "i32\1\0\0\0\3\0\0\0\0\0\1", "beyond the end");
    WRONG("pt", "_rebuild_tensor_v2", "_rebuild_tensor_vX", "an object of torch._utils");
    WRONG("pt", "ctorch", "itorch", "opcode 69, which no state dict needs");
    WRONG("pt", "storage", "sturage", "its storage is none");
    jot_File *f = jot_file_memory("short", "GG", 2);
    CHECK(f->status == JOT_EIO && strstr(f->message, "2 bytes that begin with 47 47"), "%s",
          f->message);
    jot_file_close(f);
    f = jot_file_open(io_path("nowhere"));
    CHECK(f->status == JOT_EIO && strstr(f->message, "No such file"), "%s", f->message);
    jot_file_close(f);
    f = jot_file_open("/tmp");
    CHECK(f->status == JOT_EIO && strstr(f->message, "a folder found"), "%s", f->message);
    jot_file_close(f);
    jot_file_close(NULL);
}

/* A pickle by hand, behind its first opcode. */
static void
wrong_pickle(const void *pickle, size_t n, const char *text)
{
    static uint8_t p[1 << 15];
    jot_File *f = jot_file_memory("F", p, io_pt_of(p, pickle, n));

    CHECK(f->status && strstr(f->message, text), "\"%s\" in \"%s\"", text, f->message);
    jot_file_close(f);
}
#define PICKLE(pickle, text) wrong_pickle(pickle, sizeof pickle - 1, text)

static void
test_wrong_pickle(void)
{
    static char twice[400], named[3000];
    uint8_t memo = 0;
    size_t n = 6;

    PICKLE("cos\nsystem\nX\2\0\0\0ls\x85R.", "an object of os.system found");
    PICKLE("\x8c\2os\x8c\6system\x93)R.", "an object of os.system found");
    PICKLE("N)R.", "an object of something found");
    PICKLE("0.", "a value asked, none on the stack");
    PICKLE("\x86.", "values asked, none on the stack");
    PICKLE("(\x85.", "a mark among values");
    PICKLE("(.", "one value asked at its end");
    PICKLE("NN.", "one value asked at its end");
    PICKLE("N", "it ends in the middle");
    PICKLE("X\xff\0\0\0a.", "it ends in the middle");
    PICKLE("t.", "no mark on the stack");
    PICKLE("(Nd.", "a key without a value");
    PICKLE("NNe.", "no mark on the stack");
    PICKLE("N(Ne.", "items of a list or dict that is not there");
    PICKLE("](Na.", "items of a list or dict that is not there");
    PICKLE("h\0.", "a memo that is not there");
    PICKLE("Nq\1.", "the next one");
    PICKLE("\x8a\11\0\0\0\0\0\0\0\0\0.", "more than 64 bits");
    PICKLE("NN\x93.", "a name that is no text");
    PICKLE("]}b.", "an object with attributes");
    PICKLE("ccollections\nOrderedDict\n]\x85R.", "a dict of something");
    PICKLE("ctorch._utils\n_rebuild_tensor_v2\n)R.", "a tensor that is none");
    PICKLE("}(NK\1u.", "a key that is a text or a number");
    PICKLE("]q\0(h\0X\50\0\0\0" "0123456789012345678901234567890123456789" "e.", "32 deep");
    memcpy(twice, "((NNt\x94", 6);
    for (; memo < 25; memo++, n += 7) { /* each is twice the one before: 2^25 values */
        memcpy(twice + n, "(h\0h\0t\x94", 7);
        twice[n + 2] = twice[n + 4] = (char)memo;
    }
    memcpy(twice + n, "t.", 2);
    wrong_pickle(twice, n + 2, "of as many values as the pickle has bytes");
    memcpy(named, "}X\xd0\7\0\0", 6); /* a key of 2000 bytes */
    memset(named + 6, 'k', 2000);
    memcpy(named + 2006, "K\1s.", 4);
    wrong_pickle(named, 2010, "a name of at most 1023 bytes");
}

/* A name that jot_Named has no room for. */
static void
test_long_name(void)
{
    uint8_t p[600] = {0};
    jot_Named all[1];
    int n = sprintf((char *)p + 8, "{\"%0200d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":"
                    "[0,1]}}", 0);

    p[0] = (uint8_t)n, p[1] = (uint8_t)(n >> 8);
    jot_File *f = jot_file_memory("F", p, 8 + (size_t)n + 1);
    CHECK(!f->status && f->count == 1, "%s", f->message);
    RAISED(c, jot_file_named(c, f, all, 1) != 0, JOT_ERANGE,
           "a name of at most 143 bytes asked, 200");
    jot_Net m = jot_net(c, JOT_F32);
    RAISED(c, jot_file_restore(m, (jot_Trainer){0}, f, "0"), JOT_ERANGE, "a name of at most 143");
    jot_file_close(f);
}

int
main(void)
{
    jot_Config config = {.backend = "interp", .cache_dir = ""};

    c = jot_open(&config);
    if (*jot_file_can("safetensors"))
        SKIP("%s", jot_file_can("safetensors"));
    else {
        test_wrong_safetensors();
        test_long_name();
    }
    test_wrong();
    test_wrong_pickle();
    CHECK(!jot_error(c), "%s", jot_message(c));
    jot_close(c);
    return DONE();
}
