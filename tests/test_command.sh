#!/bin/sh
# tests/test_command.sh BUILD - jot, the command, as its user meets it: what each command answers, as
# text and as JSON, what it writes, and how each failure is told and with which exit code; a
# drawing's page in a browser, where there is one.
#
# Guards: command/main.c command/model.c command/values.c command/run.c command/info.c command/bench.c
# command/files.c command/onnx.c command/open.c command/draw.c command/dumps.c command/picture.c.
B=${1:-build}; passed=0; failed=0; skipped=0
jot=$(pwd)/$B/jot
if [ ! -x "$jot" ]; then
    echo "skipped: the command is not built: no cJSON here"; echo "0 passed, 0 failed, 1 skipped"; exit 0
fi
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
"$B/tests/command_models" "$d" || { echo "no models"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
export JOT_CACHE_DIR="$d/cache" JOT_LIBTCC="${JOT_LIBTCC:-$(pwd)/build/libtcc.so}"
mkdir "$d/cache"
out=$(pwd); cd "$d" || exit 1

# expect CODE WORDS ARGUMENTS...: it ends with CODE, and what it says has the words (a basic regular
# expression)
expect() {
    code=$1; words=$2; shift 2
    "$jot" "$@" >said 2>&1; got=$?
    if [ $got = "$code" ] && grep -q -e "$words" said; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)); echo "jot $*: exit $got ($code asked), no \"$words\" in:"; head -5 said
    fi
}
# it is JSON, of which this expression of Python's (j: the object) is true
json() {
    "$jot" $1 >said 2>err; got=$?
    if ! command -v python3 >/dev/null; then skipped=$((skipped + 1)); return; fi
    if [ $got -le 1 ] && python3 -c "import json,sys; j=json.load(open('said')); sys.exit(not ($2))"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)); echo "jot $1: exit $got, not $2:"; head -8 said err
    fi
}
is() {
    if [ "$1" = "$2" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$3: $1, not $2"; fi
}

# ---- models of ONNX, where they are read
if [ -f mlp.onnx ]; then
    expect 0 'f32 (5, 3)' info mlp.onnx --batch 5
    expect 0 'y  f32 (3, 4)' run shape.onnx --input x=flat.npy --input s=three.npy
    expect 4 'its elements are asked while the graph is built' run shape.onnx --input x=flat.npy --input s=flat.npy
    expect 0 'f32 (4, 3)' info mlp.onnx --shape x=4,3
    expect 2 '--shape x=4,3,1: 2 extents asked, 3 found' info mlp.onnx --shape x=4,3,1
    expect 2 '--shape: whole numbers from 0 on asked, as in 1,8; 4;3 found' info mlp.onnx --shape 'x=4;3'

    # ---- extents that are open within bounds
    expect 0 'y  f32 (5, 2)' run mlp.onnx --input rows.npy --output y.npy
    expect 0 '^one function: n 5 of 1 to 8' run mlp.onnx --input rows.npy --open n=1..8
    expect 0 'y is as asked' check mlp.onnx --input rows.npy --against y.npy --open n=1..9/2
    expect 0 'each size has a plan of its own: the interpreter' run mlp.onnx --input rows.npy --open n=1..8 --backend interp
    json 'run mlp.onnx --input rows.npy --open n=5..5 --json' 'j["open"] == {"n": 5} and isinstance(j["open_why"], str)'
    expect 2 'input x: n is 5: --open says 1 to 4 in steps of 1' run mlp.onnx --input rows.npy --open n=1..4
    expect 2 'input x: n is 5: --open says 2 to 8 in steps of 2' run mlp.onnx --input rows.npy --open n=2..8/2
    expect 2 'input x: n is 9: --open says 1 to 8' run mlp.onnx --batch 9 --open n=1..8
    expect 2 'no input has an open extent of that name; there are: n$' export mlp.onnx -o x.c --open batch=1..8
    expect 2 'n is 8 to 1: the most is less than the least' export mlp.onnx -o x.c --open n=8..1
    expect 2 'n has bounds already' export mlp.onnx -o x.c --open n=1..8 --open n=1..9
    for wrong in n n=8 n=1..x n=1..8/ n=1..8/0 n=0..8 n=-1..8 n=1..8x n=1.8 n=1..99999999999999999999; do
        expect 2 "--open $wrong: NAME=LEAST..MOST or" export mlp.onnx -o x.c --open "$wrong"
    done
    expect 4 'n is 1 to 4294967296 in steps of 1: 1 and more asked, 2^31 at most' export mlp.onnx -o x.c --batch 2 --open n=1..4294967296
    expect 2 '--open: of a C file alone' export mlp.onnx -o x.onnx --open n=1..8
    expect 2 '--open: a saved graph has its shapes' export lenet.jot -o x.c --open n=1..8
    expect 3 'no/x.c' export mlp.onnx -o no/x.c --open n=1..8
    expect 0 'inputs and outputs 140, at' export mlp.onnx -o steps.c --open n=1..8/2 --arena
    is "$(ls x.c x.onnx 2>/dev/null)" '' "files of exports that were refused"
    expect 0 'rows.c: [0-9]* bytes of C' export mlp.onnx --open n=1..8 -o rows.c --arena
    cat >try_rows.c <<'END'
#include <stdio.h>
#include <math.h>
#define rows_HEADER
#include "rows.c"
int main(void)
{
    static double arena[rows_ARENA / 8 + 1];
    static float in[15], want[10], out[10];
    FILE *x = fopen("rows.npy", "rb"), *y = fopen("y.npy", "rb");
    double worst = 0;
    if (!x || !y || fseek(x, 128, SEEK_SET) || fread(in, 4, 15, x) != 15
        || fseek(y, 128, SEEK_SET) || fread(want, 4, 10, y) != 10)
        return 2;
    for (int n = 1; n <= 5; n++) {
        for (int i = 0; i < 10; i++)
            out[i] = 9;
        if (rows(arena, n, in, out))
            return 3;
        for (int i = 0; i < 10; i++)
            worst = fmax(worst, fabs(out[i] - (i < 2 * n ? want[i] : 9)));
    }
    printf("%d %d %s\n", rows(arena, 0, in, out), rows(arena, 9, in, out),
           worst < 1e-6 ? "as run" : "else");
    return 0;
}
END
    if cc -std=c99 -Wall -Wextra -Werror -c rows.c -o rows.o 2>said \
        && cc -std=c99 try_rows.c rows.o -o try_rows -lm 2>>said; then
        is "$(./try_rows)" '1 1 as run' "the exported function of all sizes"
    else
        failed=$((failed + 1)); echo "the exported function of all sizes does not compile"; head -5 said
    fi
else
    skipped=$((skipped + 1))
fi

# ---- use
expect 0 'jot bench MODEL' help
expect 2 'jot info FILE'
expect 0 '^jot [0-9]*\.[0-9]*\.[0-9]*$' --version
expect 0 '--roofline=FILE.svg' help bench
expect 0 '--out=FILE, -o FILE' help export
expect 0 '--open=NAME=LEAST..MOST/STEP (as often' help export
for one in '' info run check bench export convert draw cache; do
    "$jot" help $one >said
    is "$(grep -c '^.\{100\}\| $' said)" 0 "lines of jot help $one that are too long, or end in a blank"
done
expect 0 '--tolerance=R' check --help
expect 2 'there is no command fly: see jot help' fly
expect 2 'there is no command fly' help fly
expect 2 'jot info: it wants a file' info
expect 2 'jot convert: it wants two files' convert a.npy
expect 2 'what is b? It takes 1 file' info a b
expect 2 'there is no option --fast; see jot help run' run lenet.jot --fast
expect 2 'there is no option --inpu' run lenet.jot --inpu=3
expect 2 '--batch wants a value' run lenet.jot --batch
expect 2 '--json takes no value' run lenet.jot --json=yes
expect 2 '--batch: whole numbers from 1 on asked, as in 1,8; 0 found' info lenet.jot --batch 0
expect 2 '--threads: whole numbers' bench lenet.jot --threads 1,x
expect 2 '--seconds: a number from 0 on asked, soon found' bench lenet.jot --seconds soon

# ---- info
expect 0 '416520 multiply-adds' info lenet.jot
expect 0 'layer.9.weight  *f32 (10)' info lenet.jot
expect 0 'image  *f32 (8, 1, 28, 28)' info lenet.jot --batch 8
expect 0 'a training step' info step.jot
expect 0 'and 9 more: --tensors' info step.jot
expect 0 'param.19' info step.jot --tensors
expect 0 'npy, 1 tensors of 40 bytes' info class.npy
json 'info lenet.jot --json' 'j["multiply_adds"] == 416520 and j["operators"]["reindex"] == 19 and j["memory"]["kernels"] > 3 and j["parameters"][0]["shape"] == [6, 1, 5, 5]'
json 'info two.safetensors --json' 'j["tensors"][0] == {"name": "image", "type": "F32", "shape": [1, 1, 28, 28], "bytes": 3136}'
expect 2 'it was saved for a batch of 4, and is a training step; save it for 1' info step.jot --batch 8
expect 3 'no.jot: No such file' info no.jot
expect 3 'code of its author' info code.jot
expect 0 'code_map 1' info code.jot --trust-code
head -c 3000 lenet.jot >cut.jot
expect 3 'cut.jot' info cut.jot
sed 's/"iota\|reindex/reindx/' lenet.jot >lied.jot
expect 3 'lied.jot' run lied.jot --input image.npy
echo hello >text.jot
expect 3 'text.jot' info text.jot

# ---- run and check
expect 0 'class  f32 (1, 10)' run lenet.jot --input image=image.npy --output class=got.npy
expect 0 'class is as asked: within 0 of' check lenet.jot --input image.npy --against class=got.npy
expect 0 'class is as asked' check lenet.jot --input image.npy --against class.npy
expect 0 'class is as asked' check lenet.jot --input two.safetensors:image --against class.npy
expect 1 'class differs: 10 of 10 elements by more than 0.0001' check lenet.jot --input image.npy --against wrong.npy
expect 0 'class is as asked' check lenet.jot --input image.npy --against wrong.npy --tolerance 1e9
json 'run lenet.jot --input image.npy --json' 'j["outputs"][0]["name"] == "class" and abs(j["outputs"][0]["mean"] - 0.1) < 1e-6'
json 'check lenet.jot --input image.npy --against wrong.npy --json' 'not j["same"] and j["outputs"][0]["beyond"] == 10'
expect 2 'input image, f32 (1, 1, 28, 28), is not given: --input image=FILE' run lenet.jot
expect 2 'there is no picture; the names are' run lenet.jot --input picture=image.npy
expect 2 'there is no clas; the names are' run lenet.jot --input image.npy --output clas=x.npy
expect 2 'format safetensors, npy, npz or gguf asked' run lenet.jot --input image.npy --output o.txt
expect 0 'is as asked: within 4.99' check sum.jot --input sum_in.npy --against near.npy
expect 1 'differs: 1 of 3' check sum.jot --input sum_in.npy --against far.npy
expect 2 'against what? --against NAME=FILE' check lenet.jot --input image.npy
expect 3 'class.npy is f32 (1, 10); f32 (1, 1, 28, 28) asked' run lenet.jot --input class.npy
expect 3 'none.npy: No such file' run lenet.jot --input none.npy
expect 3 'two.safetensors has no tensor picture' run lenet.jot --input two.safetensors:picture
expect 3 'run: no/x.npy: not written: No such file' run lenet.jot --input image.npy --output no/x.npy
expect 3 'tensors without a graph: jot_save writes models' run image.npy
expect 4 'no backend\|backend' run lenet.jot --input image.npy --backend none
expect 0 'loss  f32 ()' run step.jot --input in0=step_images.npy --input in1=step_labels.npy

# ---- images
if [ -f photo.png ]; then
    expect 0 'class  f32 (1, 10)' run lenet.jot --input photo.png --mean 0.5 --std 0.25 --output png.npy
    expect 0 'class is as asked' check lenet.jot --input photo.png --mean 0.5 --std 0.25 --against photo_class.npy
    expect 2 '--mean: up to four numbers asked' run lenet.jot --input photo.png --mean red
else
    echo "skipped: images: this build reads no PNG"; skipped=$((skipped + 1))
fi

# ---- ONNX
m=$out/../shared/models/onnx/mnist_8
[ -f "$m/model.onnx" ] || m=$out/shared/models/onnx/mnist_8
if [ -f "$m/model.onnx" ] && ! "$jot" info "$m/model.onnx" 2>&1 | grep -q 'without a graph\|install\|safetensors'; then
    expect 0 'Conv 2' info "$m/model.onnx"
    expect 0 'is as asked' check "$m/model.onnx" --input "$m/test_data_set_0/input_0.pb" \
        --against "$m/test_data_set_0/output_0.pb"
    expect 2 'is not given' run "$m/model.onnx"
    expect 0 '3, 1, 28, 28' info "$m/model.onnx" --batch 3
    expect 2 'of that name; there are: none' run "$m/model.onnx" --open n=1..8
    expect 0 '^ *3 ' bench "$m/model.onnx" --batch 3 --seconds 0.01
    expect 2 'Input3=1,1,28,28: it says the batch; no --batch' run "$m/model.onnx" --batch 2 --shape Input3=1,1,28,28
    expect 0 'kernels' draw "$m/model.onnx" -o onnx.svg
    # y = Relu(x), x f32 (n, seq), both open
    x='\022\022\012\020\010\001\022\014\012\003\022\001n\012\005\022\003seq'
    printf "\\010\\010\\072\\103\\012\\014\\012\\001x\\022\\001y\\042\\004Relu\\022\\001g\\132\\027\\012\\001x${x}\\142\\027\\012\\001y${x}\\102\\002\\020\\015" >open.onnx
    expect 0 '  x  *f32 (n, seq)' info open.onnx
    expect 0 '^1 nodes' info open.onnx
    expect 0 'are not told: input x: its extent 1, seq is open: --shape x=' info open.onnx
    expect 0 'x  *f32 (2, 3)' info open.onnx --shape x=2,3
    json 'info open.onnx --json' 'j["inputs"] == [{"name": "x", "dtype": "f32", "shape": ["n", "seq"]}] and j["operators"] == {"Relu": 1} and "memory" not in j'
    expect 0 'y  f32 (1, 10)' run open.onnx --input wrong.npy
    expect 0 'y is as asked' check open.onnx --input wrong.npy --against wrong.npy
    expect 2 '--shape z=2,3: there is no input of that name' run open.onnx --shape z=2,3
    expect 2 'extent 1, seq is open' bench open.onnx --batch 2
    is "$(grep -c examples/s said)" 0 "tables of nothing"
    expect 3 'none.npy: No such file' run open.onnx --input none.npy
else
    echo "skipped: ONNX: no model here, or a build without it"; skipped=$((skipped + 1))
fi

# ---- bench
expect 0 'examples/s' bench lenet.jot --batch 1,2 --threads 1 --seconds 0.05
is "$(grep -c '^ *[12]  *1 ' said)" 2 "settings timed"
expect 0 'ms a run, the mean of 20; ' bench lenet.jot --seconds 0.05 --threads 2
is "$(grep -c '^ *1  *2 ' said)" 1 "threads asked"
JOT_THREADS=3 expect 0 '^ *1  *3 ' bench lenet.jot --seconds 0.01
expect 0 '^ *1  *1 ' bench lenet.jot --seconds 0.01 --backend interp
expect 2 'it was saved for' bench step.jot --batch 8
is "$(grep -c examples/s said)" 0 "tables of nothing"
json 'bench lenet.jot --seconds 0.3 --json' 'j["settings"][0]["threads"] >= 1 and j["settings"][0]["kernel_seconds"] < 2 * j["settings"][0]["seconds"] and j["settings"][0]["kernel_runs"] >= 20'
json 'bench lenet.jot --batch 2 --seconds 0.05 --roofline roof.svg --json' 'j["settings"][0]["batch"] == 2 and 0 < j["settings"][0]["seconds_least"] <= j["settings"][0]["seconds"] and len(j["settings"][0]["worst"]) > 1'
is "$(grep -c '</svg>' roof.svg)" 1 "a roofline"

# ---- export, convert
expect 0 'arena [0-9]* bytes, tables of parameters 246824' export lenet.jot -o net.c --arena
json 'export lenet.jot --out net2.c --name other --json' 'j["parameters"] == 246824 and j["arena"] > 1000'
is "$(grep -c '^other(' net2.c)" 1 "the function's name"
cat >try.c <<'END'
#include <stdio.h>
#include "net.c"
int main(void)
{
    static double arena[net_ARENA / 8 + 1];
    static float in[784], out[10];
    FILE *f = fopen("image.npy", "rb");
    if (!f || fseek(f, 128, SEEK_SET) || fread(in, 4, 784, f) != 784)
        return 2;
    net(arena, in, out);
    printf("%.4f\n", out[5]);
    return 0;
}
END
if cc -std=c99 -w try.c -o try -lm 2>said; then
    is "$(./try)" 0.3495 "the exported network"
else
    failed=$((failed + 1)); echo "the exported network does not compile"; head -5 said
fi
expect 0 'sort.c' export sort.jot --trust-code -o sort.c
is "$(cc -std=c99 -Wall -Wextra -c sort.c -o sort.o 2>&1 | grep -c warning)" 0 "warnings of an exported sort"
expect 2 'where to? -o FILE.c' export lenet.jot
expect 2 'of a C file alone' export lenet.jot -o x.onnx --arena
expect 2 "ONNX's format alone" export lenet.jot -o x.c --external
if [ -f mlp.onnx ]; then
    expect 0 'lenet2.onnx' export lenet.jot -o lenet2.onnx --external
    is "$(ls lenet2.onnx-*.data | wc -l)" 1 "weights beside an exported model"
    expect 0 'is as asked' check lenet2.onnx --input image=image.npy --against class=class.npy
    expect 0 'Conv 2' info lenet2.onnx
    expect 3 'no/net.onnx' export lenet.jot -o no/net.onnx
fi
expect 3 'no/net.c' export lenet.jot -o no/net.c
expect 2 'an identifier of C' export lenet.jot -o x.c --name 9lives
expect 2 'is taken' export lenet.jot -o x.c --name float
expect 0 'l.npz: 10 tensors out of safetensors' convert lenet.jot l.npz
expect 0 'l.gguf: 10 tensors out of npz' convert l.npz l.gguf
expect 0 'gguf, 10 tensors of 246824 bytes' info l.gguf
expect 0 'h.safetensors: 10 tensors' convert l.gguf h.safetensors --dtype f16
expect 0 'safetensors, 10 tensors of 123412 bytes' info h.safetensors
expect 2 '--dtype: f16, bf16, f32 or f64 asked' convert l.npz x.npz --dtype i8
expect 2 'format safetensors, npy, npz or gguf asked' convert l.npz x.doc
expect 3 'text.jot' convert text.jot x.npz

# ---- draw
expect 0 '65 nodes, [0-9]* groups, [0-9]* kernels, laid out by' draw lenet.jot -o l.html
expect 0 'laid out by levels' draw lenet.jot -o l.svg --levels
expect 0 'kernels' draw lenet.jot -o g.svg --graph
json 'draw step.jot -o s.html --json' 'j["nodes"] > 150 and j["kernels"] > 10'
expect 2 'where to? -o FILE.html or -o FILE.svg' draw lenet.jot
expect 2 'l.png: a file ending in .html or .svg asked' draw lenet.jot -o l.png
is "$(ls | grep -c l.png)" 0 "files of an unknown ending"
expect 3 'no/l.html: it cannot be written' draw lenet.jot -o no/l.html
echo old >kept.svg
ln -s /dev/full kept.svg.part
expect 3 'kept.svg: not all of it could be written' draw lenet.jot -o kept.svg
is "$(cat kept.svg* 2>&1)" old 'the picture before one that failed'
expect 4 'interp has no kernels to draw' draw lenet.jot -o i.html --backend interp
if command -v xmllint >/dev/null; then
    for f in l.svg g.svg; do xmllint --noout $f; is $? 0 "$f is XML"; done
elif command -v python3 >/dev/null; then
    for f in l.svg g.svg; do
        python3 -c "import xml.dom.minidom as m; m.parse('$f')"; is $? 0 "$f is XML"
    done
fi
is "$(grep -c 'https*://' l.html)" "$(grep -c 'xmlns=.http://www.w3.org/2000/svg' l.html)" "addresses in the page"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ]; then
    # what a user does, done by a script: what it sees goes into the title
    cat >doing.js <<'END'
const b = () => now.getAttribute('viewBox'), was = b(), said = [];
one('view').dispatchEvent(new WheelEvent('wheel', {deltaY: -1, clientX: 50, clientY: 60, cancelable: true}));
said.push(b() != was ? 'zoomed' : 'not zoomed');
one('q').value = 'max'; search(true);
said.push(document.querySelectorAll('#kernels .hit').length + ' hits');
[...document.querySelectorAll('#kernels .b')].find(g => g.textContent.includes('mul sum'))
    .dispatchEvent(new MouseEvent('mouseover'));
said.push(one('detail').textContent.includes('const jot_i64 *ints') ? 'C' : 'no C');
one('g').click();
said.push(svgs.k.style.display == 'none' && svgs.g.style.display == '' ? 'graph' : 'no graph');
document.title = 'said: ' + said.join(', ');
END
    sed '/<\/body>/d' l.html >doing.html
    { echo '<script>'; cat doing.js; echo '</script></body></html>'; } >>doing.html
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$d/browser" --dump-dom "file://$d/doing.html" 2>/dev/null >dom
    is "$(sed -n 's/.*<title>\(said: [^<]*\).*/\1/p' dom)" "said: zoomed, 3 hits, C, graph" "the page in a browser"
else
    echo "skipped: the page: no Chromium here (apt install chromium)"; skipped=$((skipped + 1))
fi

# ---- cache
expect 0 "$d/cache: [0-9]* entries, [0-9]* bytes" cache
json 'cache --json' "j['folder'] == '$d/cache' and j['entries'] >= 0"
expect 0 'entries removed' cache --clear
expect 0 'cache: 0 entries, 0 bytes' cache
expect 0 'nowhere: 0 entries' cache --dir "$d/nowhere"
JOT_CACHE_DIR= expect 2 'nothing is kept' cache
cd "$out" || exit 1
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
