#!/bin/sh
# tests/test_docs.sh BUILD - the pages say what is: dumps and counts are those of this tree, files,
# functions and variables of the environment exist, code compiles. BUILD: where examples are built.
b=$1; passed=0; failed=0
pages="README.md docs/*.md"
headers=$(ls *.h; find ops nn expr speculate data io onnx save command fuse target prelude ccode plan backends -name '*.h'; find backends -name '*.c')
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
ok() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }

docs/walk.sh "$b" --check && ok || bad "docs/walk.md"
docs/counts.sh --check && ok || bad "docs/fusion.md"

# links, and names of files between backticks
for page in $pages; do
    here=$(dirname "$page")
    for to in $(grep -o ']([^)#]*)' "$page" | tr -d '])('); do
        case $to in *://*) continue ;; esac
        [ -e "$here/$to" ] && ok || bad "$page links to $to, which is not there"
    done
    for to in $(grep -o ']([^):]*#[^)]*)' "$page" | tr -d '])('); do # a heading of that page
        in=$here/${to%%#*}
        [ "${to%%#*}" ] || in=$page
        sed -n 's/^##* //p' "$in" | tr A-Z a-z | sed 's/[^a-z0-9 _-]//g; s/ /-/g' |
            grep -qx -e "${to#*#}" && ok || bad "$page links to $to, which is no heading there"
    done
    for to in $(grep -o '`\(ops\|nn\|expr\|speculate\|data\|io\|save\|command\|fuse\|target\|prelude\|ccode\|plan\|backends\|examples\|tests\|tools\|docs\|bench\)/[A-Za-z0-9_./*]*`' "$page" |
                tr -d '`'); do
        ls -d $to >/dev/null 2>&1 && ok || bad "$page speaks of $to, which is not there"
    done
    for to in $(grep -o '`[a-z_0-9]*\.[ch]`' "$page" | tr -d '`'); do # without a folder: at the root
        [ -e "$to" ] && ok || bad "$page speaks of $to, which is in no folder that it names"
    done
    # jot_name between backticks: of the public header, or between our files
    for name in $(grep -o '`[^`]*`' "$page" | grep -o 'jot_[a-zA-Z0-9_]*[a-zA-Z0-9]' | sort -u); do
        op=$(echo "$name" | sed 's/^jot_//')
        grep -qw -e "$name" -e "X($op)" core.h nn.h $headers && ok ||
            bad "$page speaks of $name, which is not there"
    done
    for name in $(grep -o '`test_[a-z_]*\(\.sh\)*' "$page" | tr -d '`' | sort -u); do
        ls tests/"${name%.sh}".* >/dev/null 2>&1 && ok || bad "$page speaks of $name, which is not there"
    done
done
for t in tests/test_*; do # and every test has its line
    name=$(basename "$t" .c)
    grep -q "^| .$name. |" docs/testing.md && ok || bad "docs/testing.md has no line for $name"
done

# what the charter of a source (its first comment) names: a path, or a file beside it; DIR/: an output
awk 'FNR == 1 { charter = 1 }
     charter { gsub(/[^a-zA-Z0-9_.\/]/, " "); n = split($0, word, " ")
               for (i = 1; i <= n; i++) if (word[i] ~ /^[a-z0-9_\/]+\.(c|h|def|sh|md)\.?$/) print FILENAME, word[i] }
     /\*\// || / \/ *$/ { charter = 0 }' *.[ch] $(find prelude target ops nn expr speculate data io onnx save command fuse ccode plan backends tests -name '*.[ch]') |
while read -r file to; do
    to=${to%.}
    [ -e "$to" ] || [ -e "${file%/*}/$to" ] || echo "$file speaks of $to, which is not there"
done >"$dir/charters"
[ -s "$dir/charters" ] && { cat "$dir/charters"; bad "charters of sources"; } || ok

# docs/spec.md: each rule names tests, `tests/FILE.c:FUNCTION`, and they exist
grep -o '`tests/[a-z_]*\.c:[a-z_]*`' docs/spec.md | tr -d '`' | sort -u | while IFS=: read -r file name; do
    grep -q "^$name(" "$file" || echo "$file has no function $name"
done >"$dir/spec"
awk '/^\*\*[A-Z][0-9]*\.\*\*/ { if (rule) print rule " names no test"; rule = $1; n++ } /^`tests\/.*:/ { rule = "" }
     END { if (rule) print rule " names no test"; if (!n) print "no rules" }' docs/spec.md >>"$dir/spec"
[ -s "$dir/spec" ] && { cat "$dir/spec"; bad "docs/spec.md"; } || ok

# each program's charter names the files that it guards; each file of the library is somebody's, but what stands for a
# part that is left out (tests/test_dist.sh)
for t in tests/test_*.c; do
    awk '/^ \* Guards:/ { on = 1 } on { print } on && /\*\// { exit }' "$t" | grep -o '[a-z_0-9/]*\.c' >"$dir/guards"
    [ -s "$dir/guards" ] && ok || bad "$t names no file that it guards"
    cat "$dir/guards" >>"$dir/guarded"
    while read -r file; do
        [ -e "$file" ] && ok || bad "$t guards $file, which is not there"
    done <"$dir/guards"
done
for file in $(find ./*.c prelude target ops nn expr speculate data io onnx save fuse ccode plan backends -name '*.c' ! -name absent.c | sed 's,^\./,,'); do
    grep -qx "$file" "$dir/guarded" && ok || bad "no test's charter guards $file"
done

# the environment: what the code reads is what the table has
grep -ho '"JOT_[A-Z_]*"' config.c $(find plan backends -name '*.c') | tr -d '"' | sort -u >"$dir/read"
sed -n 's/^| `\(JOT_[A-Z_]*\)`.*/\1/p' docs/backends.md | sort -u >"$dir/told"
diff "$dir/read" "$dir/told" && ok || bad "docs/backends.md: the table of the environment"

# the README's page, with what it takes for granted
{
    printf '#include <stdio.h>\n#include "expr.h"\nint main(void) { enum { n = 4, N = 1, O = 2, C = 2, H = 5, W = 5 };\n'
    printf 'static float pixels[n * 784]; static int64_t digits[n];\n'
    sed -n '/^```c/,/^```/p' README.md | sed '/^```/d; /^#include/d' |
        sed 's|^jot_Var  y = jot_matmul|jot_Var labels = jot_array(c, JOT_I64, JOT_SHAPE(n), digits);\n&|
             s|^jot_Var xx|{ x = jot_ones(c, JOT_F32, JOT_SHAPE(N, C, H, W)), w = jot_ones(c, JOT_F32, JOT_SHAPE(O, C, 3, 3));\n&|'
    printf 'printf("%%g\\n", jot_item(jot_sum(y, JOT_ALL_DIMS))); }\nreturn jot_error(c); }\n'
} >"$dir/page.c"
${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Werror -I. "$dir/page.c" -o "$dir/page" "$b/libjot.a" -ldl -lpthread -lm &&
    [ "$(JOT_BACKEND=interp "$dir/page" | tr '\n' ' ')" = "2.30259 676 " ] && ok || bad "README.md: the code of its page"

# docs/expr.md: its expressions run, and have the shapes that the page says
{
    printf '#include <stdio.h>\n#include "expr.h"\n#define CHECK(y, ...) check(c, y, __LINE__, JOT_SHAPE(__VA_ARGS__))\n'
    printf 'static int n, bad;\nstatic void check(jot_Ctx *c, jot_Var y, int line, jot_Ints s) { int k, ok = jot_rank(y) == s.n && jot_data(y);\n'
    printf 'for (k = 0; ok && k < s.n; k++) ok = jot_extent(y, k) == s.v[k];\nn++, bad += !ok;\n'
    printf 'if (!ok) printf("line %%d: %%s\\n", line, jot_message(c)), jot_clear(c); }\n'
    printf 'int main(void) { jot_Ctx *c = jot_open(NULL); jot_Var y, A = jot_uniform(c, JOT_F32, JOT_SHAPE(4, 5)),\n'
    printf 'B = jot_uniform(c, JOT_F32, JOT_SHAPE(5, 6)), S = jot_uniform(c, JOT_F32, JOT_SHAPE(4, 4)), b = jot_uniform(c, JOT_F32, JOT_SHAPE(5)),\n'
    printf 'x = jot_uniform(c, JOT_F32, JOT_SHAPE(2, 3, 8, 8)), k = jot_uniform(c, JOT_F32, JOT_SHAPE(4, 3, 3, 3)),\n'
    printf 'e = jot_array(c, JOT_I32, JOT_SHAPE(7), (int[]){3, 0, 1, 2, 3, 3, 0});\n'
    sed -n '/^```c/,/^```/p' docs/expr.md | sed '/^```/d; s|; *\/\* (\([0-9, ]*\)) \*/$|; CHECK(y, \1);|; s|CHECK(y, )|check(c, y, __LINE__, JOT_SHAPE())|
        s|, 2, out);|&\nCHECK(out[0], 4); CHECK(out[1], 4);|'
    printf 'jot_close(c); printf("%%d of %%d\\n", n - bad, n); return bad; }\n'
} >"$dir/expr.c"
shapes=$(sed -n '/^```c/,/^```/p' docs/expr.md | grep -c '/\* ([0-9, ]*) \*/$')
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/expr.c" -o "$dir/expr" "$b/libjot.a" -ldl -lpthread -lm &&
    JOT_BACKEND=interp "$dir/expr" >"$dir/expr.out" && [ "$(cat "$dir/expr.out")" = "$((shapes + 2)) of $((shapes + 2))" ] && ok ||
    { cat "$dir/expr.out"; bad "docs/expr.md: its expressions"; }

# docs/data.md: its program, on files that it makes first
libs=$(make -s data-libs)
{
    printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "data.h"\n'
    printf '#define CHECK(x, dtype, ...) check(x, dtype, JOT_SHAPE(__VA_ARGS__))\nstatic double seen; static int bad, shapes;\n'
    printf 'static void check(jot_Var x, const char *dtype, jot_Ints s) { int ok = jot_rank(x) == s.n && !strcmp(dtype, jot_dtype_name(jot_dtype(x)));\n'
    printf 'for (int k = 0; ok && k < s.n; k++) ok = jot_extent(x, k) == s.v[k];\nbad += !ok, shapes++; }\n'
    printf 'static void ignore(void *user, const char *text, size_t n) { (void)user, (void)text, (void)n; }\n'
    printf 'static void put(const char *path, const char *text) { FILE *f = fopen(path, "w"); fputs(text, f); fclose(f); }\n'
    sed -n '/^```c/,/^```/p' docs/data.md | awk '/^```c/ { n++; next } /^```/ { next } n == 4'
    printf 'int main(void) { jot_Ctx *c = jot_open(NULL);\n'
    printf 'put("iris.csv", "length,width,kind\\n5.1,3.5,setosa\\n7.0,NA,versicolor\\n4.9,3,setosa\\n");\n'
    printf 'put("corpus.txt", "to be or not to be, that is the question: whether");\n'
    printf 'jot_write_idx(jot_zeros(c, JOT_U8, JOT_SHAPE(60, 28, 28)), "images.idx.gz");\n'
    printf 'jot_write_png(jot_full(c, JOT_U8, JOT_SHAPE(3, 20, 30), 7), "photo.jpg");\n'
    printf 'jot_write_wav(jot_zeros(c, JOT_F32, JOT_SHAPE(2, 100)), "sound.wav", 8000, 16);\n'
    printf 'if (*jot_reads("png")) { printf("skipped: %%s\\n", jot_reads("png")); return 0; }\n'
    sed -n '/^```c/,/^```/p' docs/data.md | awk '/^```c/ { n++; next } /^```/ { next } n != 4' |
        sed -E 's#^jot_Var ([a-z0-9]+) = .*; */\* ([a-z]+[0-9]+) \(([0-9, ]+)\).*$#& CHECK(\1, "\2", \3);#'
    printf 'jot_run(c, JOT_VARS(images, photo, small, wave, size, kind, z, pair0, pair1, mixed));\n'
    printf 'printf("%%s%%d of %%d, %%d %%g %%d %%d %%d\\n", jot_message(c), shapes - bad, shapes, (int)seen, rate, (int)setosa, (int)(waits <= 7), (int)windows->count);\n'
    printf 'jot_source_free(windows); jot_close(c); return 0; }\n'
} >"$dir/data.c"
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/data.c" -o "$dir/data" "$b/libjot.a" $libs -ldl -lpthread -lm &&
    (cd "$dir" && JOT_BACKEND=interp ./data) >"$dir/data.out"
case $(tail -n 1 "$dir/data.out") in
"skipped: "*) cat "$dir/data.out" ;;
"6 of 6, 64 8000 0 1 3") ok ;;
*) cat "$dir/data.out"; bad "docs/data.md: its program" ;;
esac

# docs/saved.md: a network saved by the one block and run by the other
{
    printf '#include <stdio.h>\n#include "io.h"\nstatic float weights[7840], image[784], classes[10];\n'
    printf 'int main(void) { jot_Ctx *c = jot_open(NULL);\n'
    printf 'if (*jot_file_can("safetensors")) { printf("skipped: %%s\\n", jot_file_can("safetensors")); return 0; }\n'
    sed -n '/^```c/,/^```/p' docs/saved.md | sed '/^```/d'
    printf 'printf("%%s%%s %%s %%g\\n", jot_message(c), g.input_names.v[0], g.param_names.v[0], classes[3]);\n'
    printf 'jot_close(c); return 0; }\n'
} >"$dir/saved.c"
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/saved.c" -o "$dir/saved" "$b/libjot.a" $libs -ldl -lpthread -lm &&
    (cd "$dir" && JOT_BACKEND=interp ./saved) >"$dir/saved.out"
case $(tail -n 1 "$dir/saved.out") in
"skipped: "*) cat "$dir/saved.out" ;;
"image out.weight 0.1") ok ;;
*) cat "$dir/saved.out"; bad "docs/saved.md: its program" ;;
esac

# docs/llm.md: its program; the cache's row is written and read
{
    printf '#include <stdio.h>\n#include "nn.h"\nint main(void) { jot_Ctx *c = jot_open(NULL);\n'
    sed -n '/^```c/,/^```/p' docs/llm.md | sed '/^```/d'
    printf 'static float one[512], two[256], out[512]; for (int i = 0; i < 512; i++) one[i] = two[i %% 256] = 1;\n'
    printf 'int64_t n = 8, to[4] = {0, 0, 0, 7}, down[4] = {0, 0, 7, 0};\n'
    printf 'jot_call(step, JOT_INS(JOT_IN(one, 2048), JOT_IN(two, 1024), JOT_IN(two, 1024), JOT_IN(to, 32), JOT_IN(down, 32), JOT_IN(&n, 8)), JOT_OUTS(JOT_OUT(out, 2048)));\n'
    printf 'printf("%%s%%.3f %%g\\n", jot_message(c), (double)out[5], jot_item(jot_sum(z, JOT_ALL_DIMS))); jot_close(c); return 0; }\n'
} >"$dir/llm.c"
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/llm.c" -o "$dir/llm" "$b/libjot.a" -ldl -lpthread -lm &&
    [ "$(JOT_BACKEND=interp "$dir/llm")" = "0.998 0" ] && ok || bad "docs/llm.md: its program"

# docs/io.md: its program, on files that it makes first
{
    printf '#include <stdio.h>\n#include <string.h>\n#include "io.h"\n'
    printf '#define CHECK(x, dtype, ...) check(x, dtype, JOT_SHAPE(__VA_ARGS__))\nstatic int bad, shapes;\n'
    printf 'static void check(jot_Var x, const char *dtype, jot_Ints s) { int ok = jot_rank(x) == s.n && !strcmp(dtype, jot_dtype_name(jot_dtype(x)));\n'
    printf 'for (int k = 0; ok && k < s.n; k++) ok = jot_extent(x, k) == s.v[k];\nbad += !ok, shapes++; }\n'
    printf 'int main(void) { jot_Ctx *c = jot_open(NULL);\n'
    printf 'jot_Named tensors[] = {{"conv.weight", jot_ones(c, JOT_F32, JOT_SHAPE(16, 1, 3, 3))}, {"conv.bias", jot_ones(c, JOT_F32, JOT_SHAPE(16))}};\n'
    printf 'jot_Named table = {"token_embd.weight", jot_ones(c, JOT_F32, JOT_SHAPE(4, 64))}; int64_t five = 5;\n'
    printf 'jot_Text mit = {"MIT", 3}, ab[] = {{"a", 1}, {"b", 1}};\n'
    printf 'jot_Meta license = {.key = "license", .kind = JOT_META_TEXT, .count = 1, .texts = &mit};\n'
    printf 'jot_Meta metas[] = {{.key = "llama.block_count", .kind = JOT_META_INT, .count = 1, .ints = &five},\n'
    printf '{.key = "tokenizer.ggml.tokens", .kind = JOT_META_TEXT, .list = true, .count = 2, .texts = ab}};\n'
    printf 'if (*jot_file_can("safetensors")) { printf("skipped: %%s\\n", jot_file_can("safetensors")); return 0; }\n'
    printf 'if (*jot_file_can("deflate")) { printf("skipped: %%s\\n", jot_file_can("deflate")); return 0; }\n'
    printf 'jot_file_write(c, "model.safetensors", tensors, 2, &(jot_Writing){.meta = &license, .metas = 1});\n'
    printf 'jot_file_write(c, "model.gguf", &table, 1, &(jot_Writing){.meta = metas, .metas = 2, .q8_0 = true});\n'
    sed -n '/^```c/,/^```/p' docs/io.md | sed '/^```/d' |
        sed -E 's#^jot_Var ([a-z0-9]+) = .*; */\* ([a-z]+[0-9]+) \(([0-9, ]+)\).*$#& CHECK(\1, "\2", \3);#'
    printf 'jot_run(c, JOT_VARS(w, y, embed, packed));\n'
    printf 'printf("%%s%%d of %%d, %%d %%d %%d %%g %%d %%d\\n", jot_message(c), shapes - bad, shapes, (int)licence.n, fits, (int)layers, eps, written, (int)done);\n'
    printf 'jot_close(c); return 0; }\n'
} >"$dir/io.c"
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/io.c" -o "$dir/io" "$b/libjot.a" $libs -ldl -lpthread -lm &&
    (cd "$dir" && JOT_BACKEND=interp ./io) >"$dir/io.out"
case $(tail -n 1 "$dir/io.out") in
"skipped: "*) cat "$dir/io.out" ;;
"4 of 4, 3 1 5 1e-05 1 -1") [ "$(cd "$dir/steps" && ls | tr '\n' ' ')" = "step-000000000003.safetensors step-000000000005.safetensors " ] && ok ||
    bad "docs/io.md: its checkpoints" ;;
*) cat "$dir/io.out"; bad "docs/io.md: its program" ;;
esac


# docs/speculation.md: its step is replayed as often as it should be
{
    printf '#include <stdio.h>\n#include "speculate.h"\n'
    sed -n '/^```c/,/^```/p' docs/speculation.md | sed '/^```/d'
    printf 'int main(void) { static float x[128]; for (int k = 0; k < 128; k++) x[k] = (float)(k * 7 %% 11) / 11;\n'
    printf 'jot_Ctx *c = jot_open(NULL); double loss = train(c, x, 40); printf("%%s%%d\\n", jot_message(c), loss > 0 && loss < 0.5); return 0; }\n'
} >"$dir/speculation.c"
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/speculation.c" -o "$dir/speculation" "$b/libjot.a" -ldl -lpthread -lm &&
    [ "$(JOT_BACKEND=interp "$dir/speculation" | tr '\n' ' ')" = "36 of 40 steps by functions 1 " ] && ok || bad "docs/speculation.md: its program"

# docs/guide.md: its program, of which pieces that begin with a static function stand outside of main, prints what the page says
{
    printf '#include <stdio.h>\n#include "layer.h"\n#include "expr.h"\n'
    for part in outside inside; do
        [ $part = outside ] || printf 'int main(void)\n{\nsetvbuf(stdout, NULL, _IONBF, 0);\n'
        awk -v part=$part '/^```/ { on = first = $0 == "```c"; next }
             on { if (first) outside = /^static (void|jot_Var)$/; first = 0; if (outside == (part == "outside")) print }' docs/guide.md
    done
    printf 'return 0;\n}\n'
} >"$dir/guide.c"
awk '/^```/ { on = $0 == "```text"; next } on' docs/guide.md >"$dir/guide.text"
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. "$dir/guide.c" -o "$dir/guide" "$b/libjot.a" -ldl -lpthread -lm &&
    (cd "$dir" && ./guide >guide.out 2>&1 && diff guide.text guide.out && ${CC:-cc} -std=c99 -Wall -c bars.c) && ok || bad "docs/guide.md: its program"

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
