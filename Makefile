# jot - the targets:
#   all            build/libjot.a, build/jot     demo        train a network on drawn digits
#   test           one build, this processor    test-wide   the other builds, devices and processors
#   test-long      their programs, with long campaigns
#   check-asan     tests under ASan and UBSan    check-tcc   the library and its tests built by tcc
#   mutate         faults that no test notices: MUTANTS=n from SEED=n
#   check-c++      a C++ program on core.h       freestanding, layers, dist: what they say
#   fuzz           random graphs, FUZZ=n of them bench       ratios against peers
#   bench-drawn    drawn workloads against PyTorch: DRAWS=n of SEED=s
#   bench-keep     of the last run, as NAME              bench-machines  the worst rows over all machines kept
#   bench-speculation what a step costs, built and replayed: SECONDS each
#   data-libs      what programs that read data or models link with
#   install        PREFIX=/usr/local             wc          lines by room, the longest function
#   kernels        of machines that are not here kernels-check   against those stored
#   examples       build/examples/               docs        dumps and counts into docs/
CC      = $(shell command -v gcc >/dev/null && echo gcc || echo cc)
CFLAGS  = -O2 -g
WARN    = -std=c99 -Wall -Wextra -Wpedantic
B       = build
PREFIX  = /usr/local
MNIST   =
FUZZ    = 300
RUN     = tools/run-tests.sh

# as many at a time as there are processors, where -j says nothing else
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

# the rooms, in the order of the one-file build (tools/layers.sh: who may include whom); what needs a C
# library is HOSTED
ROOMS   = target ops ops/index ops/grad ops/rewrite ops/user ops/transform ops/flow nn nn/image nn/loss nn/layer expr speculate fuse prelude ccode/ir ccode/build ccode/rewrite \
          ccode/schedule ccode/contract ccode/winograd ccode/stencil ccode/verify ccode/lower ccode/emit ccode/device ccode/strategy \
          plan plan/known plan/layout plan/tier plan/device plan/function plan/open plan/flow plan/trace
HOSTED  = $(wildcard backends/host/*.c backends/cpu/*.c backends/opencl/*.c backends/cuda/*.c backends/files/*.c data/*.c io/*.c save/*.c)
CORE    = base.c base_mem.c $(wildcard $(ROOMS:%=%/*.c)) backends/table.c backends/interp.c config.c print.c fail.c core.c
# what -DJOT_NO_DEVICES, _TUNE, _EXPORT leave out (absent.c stands in its place); the one-file build asks the compiler
NO_DEVICES = $(wildcard ccode/device/*.c plan/device/*.c backends/opencl/*.c backends/cuda/*.c) backends/host/driver.c
NO_TUNE = plan/tier/trial.c plan/tier/tune.c backends/files/tune.c
NO_EXPORT = plan/function/export.c plan/function/tables.c plan/open/written.c plan/flow/export.c backends/files/export.c
NO_DATA = $(wildcard data/*.c)
NO_IO   = $(wildcard io/*.c save/*.c)
ALLSRC  = $(CORE) $(HOSTED)
# ONNX, where protobuf-c is: not in the one-file build, since a part of it is made
PROTOC  = $(eval PROTOC := $(and $(call has,protobuf-c/protobuf-c.h,-lprotobuf-c),$(shell command -v protoc-c)))$(PROTOC)
ONNX    = $(if $(findstring -DJOT_NO_ONNX,$(CFLAGS))$(findstring -DJOT_NO_IO,$(CFLAGS)),,$(PROTOC))
ONNXSRC = $(if $(ONNX),$(filter-out onnx/absent.c,$(wildcard onnx/*.c onnx/op/*.c onnx/export/*.c)),onnx/absent.c)
ONNXLIB = $(if $(ONNX),-lprotobuf-c)
ONNXPB  = $(if $(ONNX),$(B)/onnx/onnx.pb-c.o)
LEFT    = $(foreach x,NO_DEVICES NO_TUNE NO_EXPORT NO_DATA NO_IO,$(if $(findstring JOT_$(x),$(CFLAGS)),$($(x))))
SRC     = $(filter-out $(filter-out %/absent.c,$(LEFT)),$(ALLSRC))
NNHDR   = nn.h layer.h expr.h speculate.h data.h io.h $(wildcard nn/*.h nn/*/*.h expr/*.h speculate/*.h data/*.h io/*.h)
HDR     = core.h base.h backends/backend.h \
          $(filter-out $(NNHDR),$(wildcard $(ROOMS:%=%/*.h) $(ROOMS:%=%/*.def) ccode/*.h backends/*/*.h save/*.h save/*.def))
OBJ     = $(SRC:%.c=$(B)/%.o) $(ONNXSRC:%.c=$(B)/%.o) $(ONNXPB)
LIBS    = -ldl -lpthread -lm
has     = $(shell t=$$(mktemp -d); echo 'int main(void){return 0;}' >$$t/t.c; \
            $(CC) -include stdio.h -include $(1) $$t/t.c -o $$t/t $(2) 2>/dev/null && echo $(3) $(2); rm -rf $$t)
# what data/ and io/ read by libraries of others, where they are: looked for once
DATALIBS = $(eval DATALIBS := $(call has,cjson/cJSON.h,-lcjson,-DJOT_CJSON) $(call has,png.h,-lpng,-DJOT_PNG) $(call has,jpeglib.h,-ljpeg,-DJOT_JPEG) $(call has,zlib.h,-lz,-DJOT_ZLIB))$(DATALIBS)
TESTS   = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/test_*.c))
MODELS  = $(wildcard examples/models/*.c)
COMMON  = $(wildcard examples/common/*.c)
EXAMPLES = $(patsubst examples/%.c,$(B)/examples/%,$(wildcard examples/0*.c examples/1*.c))

all: $(B)/libjot.a $(B)/jot

# POSIX and dlopen in the hosted files
$(HOSTED:%.c=$(B)/%.o): WARN += -D_GNU_SOURCE
$(patsubst %.c,$(B)/%.o,$(NO_DATA) $(NO_IO)): WARN += $(filter -D%,$(DATALIBS))

$(patsubst %.c,$(B)/%.o,$(wildcard nn/*.c nn/*/*.c expr/*.c speculate/*.c data/*.c io/*.c save/*.c)): $(NNHDR)

$(B)/%.o: %.c $(HDR)
	@mkdir -p $(@D)
	$(CC) $(WARN) $(CFLAGS) $(MORE) -I. -c $< -o $@
# what most of the interpreter's time goes to, in builds that say how (BUSY)
$(patsubst %,$(B)/%.o,base base_mem ops/dtype ops/scalar backends/interp): MORE = $(BUSY)

# The quick tier: of libtcc, which Debian's libtcc-dev has as an archive only, a shared library of this machine,
# whoever compiles jot and for whom; backends/cpu/tcc.c looks for it by this path
LIBTCC  = $(if $(wildcard $(patsubst %,%/libtcc.a,/usr/lib/* /usr/lib /usr/local/lib)),build/libtcc.so)
build/libtcc.so: tools/libtcc.sh
	@mkdir -p $(@D)
	@CC=cc sh tools/libtcc.sh $@ 2>/dev/null || echo "libtcc is not used: kernels wait for the C compiler"
$(B)/backends/cpu/tcc.o: | $(LIBTCC)
$(B)/backends/cpu/tcc.o: WARN += -DJOT_LIBTCC_PATH='"$(abspath build/libtcc.so)"'

# messages of ONNX's format, by the schema onnx/onnx.proto
$(B)/onnx/onnx.pb-c.c: onnx/onnx.proto
	@mkdir -p $(@D)
	protoc-c --c_out=$(@D) --proto_path=onnx $<
$(B)/onnx/onnx.pb-c.o: $(B)/onnx/onnx.pb-c.c
	$(CC) -std=c99 $(CFLAGS) -I$(B)/onnx -c $< -o $@
$(ONNXSRC:%.c=$(B)/%.o): onnx.h nn.h expr.h io.h io/parts.h onnx/parts.h onnx/op/ops.h onnx/export/export.h $(HDR) $(if $(ONNX),$(B)/onnx/onnx.pb-c.c)
$(ONNXSRC:%.c=$(B)/%.o): WARN += -D_GNU_SOURCE -I$(B)

$(B)/libjot.a: $(OBJ)
	rm -f $@ && ar rcs $@ $(OBJ)

# a program of sources that are linked with the library; BRIEF: flags of those that run for a moment
PROGRAM = $(CC) $(WARN) $(CFLAGS) $(BRIEF) -D_GNU_SOURCE -I. $(filter %.c,$^) -o $@ $(B)/libjot.a
$(B)/tests/%: tests/%.c $(wildcard tests/*.h tests/ref/*.h) $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(if $(filter %test_data.c %test_loader.c %test_data_fuzz.c %test_curves.c %test_data_memory.c %test_io.c %test_io_fuzz.c %test_io_memory.c %test_io_wrong.c %test_checkpoint.c %test_save_fuzz.c %test_save_flow.c,$<),$(DATALIBS)) $(if $(filter %test_onnx.c %test_onnx_open.c %test_onnx_fuzz.c,$<),$(ONNXLIB)) $(LIBS)

$(B)/examples/%: examples/%.c $(COMMON) $(wildcard examples/common/*.h) $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(DATALIBS) $(if $(shell grep -l '"onnx.h"' $<),$(ONNXLIB)) $(LIBS)

# the command: of cJSON it has its answers, and saved graphs
COMMAND = $(B)/jot
COMMANDS = $(if $(wildcard onnx.h),-DJOT_COMMAND_ONNX)
$(COMMAND): $(wildcard command/*.[ch]) core.h data.h io.h layer.h nn.h $(B)/libjot.a
	@mkdir -p $(@D)
	@if [ -z "$(findstring -lcjson,$(DATALIBS))" ]; then echo "jot, the command, is not built: no cJSON here (apt install libcjson-dev)"; \
	elif [ -n "$(or $(findstring JOT_NO_DATA,$(CFLAGS)),$(findstring JOT_NO_IO,$(CFLAGS)),$(findstring JOT_NO_HOST,$(CFLAGS)))" ]; then \
	    echo "jot, the command, is not built: it has files (JOT_NO_DATA, JOT_NO_IO, JOT_NO_HOST)"; else \
	    $(CC) $(WARN) $(CFLAGS) -D_GNU_SOURCE $(COMMANDS) -I. $(filter %.c,$^) -o $@ $(B)/libjot.a $(filter -l%,$(DATALIBS)) $(ONNXLIB) $(LIBS); fi
command: $(COMMAND)

# the language model has a folder of its own
LLAMA   = $(wildcard examples/llama/*.c)
LLM     = examples/llama/model.c examples/llama/llama.h
$(B)/examples/14_llama: examples/14_llama.c $(LLAMA) $(wildcard examples/llama/*.h) $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(DATALIBS) $(LIBS)

$(B)/tests/test_llama: tests/test_llama.c $(LLAMA) $(wildcard examples/llama/*.h) $(B)/libjot.a $(wildcard tests/*.h)
	@mkdir -p $(@D)
	$(PROGRAM) $(DATALIBS) $(LIBS)

# the networks' values against PyTorch's; saved, and loaded again
$(B)/tests/command_models: tests/command_models.c $(MODELS) examples/models/model.h tests/ref/onnx_models.h $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(filter -l%,$(DATALIBS)) $(ONNXLIB) $(LIBS)
$(B)/tests/test_save: tests/test_save.c $(MODELS) examples/models/model.h $(B)/libjot.a $(wildcard tests/*.h)
	@mkdir -p $(@D)
	$(PROGRAM) $(filter -D%,$(DATALIBS)) $(filter -l%,$(DATALIBS)) $(LIBS)
$(B)/tests/test_onnx_export: tests/test_onnx_export.c $(MODELS) examples/models/model.h $(B)/libjot.a $(wildcard tests/*.h)
	@mkdir -p $(@D)
	$(PROGRAM) $(DATALIBS) $(ONNXLIB) $(LIBS)
$(B)/tests/test_models: tests/test_models.c $(MODELS) examples/models/model.h $(B)/libjot.a \
                        $(wildcard tests/*.h tests/ref/*.h)
	@mkdir -p $(@D)
	$(PROGRAM) $(LIBS)

# models in ONNX's format with their inputs and outputs: tests/test_onnx_nodes.sh, tests/test_onnx_models.sh
ONNXRUN = $(if $(ONNX),$(B)/tests/onnx/run)
$(B)/tests/onnx/run: tests/onnx/run.c $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(ONNXLIB) $(LIBS)

# lines of the bench's drawer
$(B)/tests/test_draws: tests/test_draws.c $(wildcard bench/drawn/*.[ch] tests/*.h) bench/work.h $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(LIBS)

# kernels of machines that are not here: a line for each (OUT=file; ALL=1: of every program on every machine;
# MACHINE=label PROGRAM=word: of one; TEXT=1: with texts), held against the digest of them (QUICK=1: a few)
DIGEST  = tests/ref/kernels.txt
KERNELS = $(B)/tests/kernels/kernels
$(KERNELS): $(wildcard tests/kernels/*.[ch] tests/*.h) $(wildcard bench/work*.[ch]) $(MODELS) examples/models/model.h $(LLM) $(B)/libjot.a
	@mkdir -p $(@D)
	$(PROGRAM) $(LIBS)
kernels: $(KERNELS)
	@$(KERNELS) print $(if $(ALL),all,$(if $(MACHINE)$(PROGRAM),"$(MACHINE)" "$(PROGRAM)")) $(if $(TEXT),text) $(if $(OUT),>$(OUT))
kernels-check: $(KERNELS)
	@$(KERNELS) check $(DIGEST) $(if $(QUICK),quick)
kernels-store: $(KERNELS)
	@$(KERNELS) store $(DIGEST)

examples: $(EXAMPLES)

# what is printed is the demo's, or an error
demo:
	@$(MAKE) -s $(B)/examples/07_digits
	@mkdir -p out
	@$(B)/examples/07_digits $(if $(MNIST),--mnist $(MNIST))

# the blocks of docs/ that are made of what the programs print; tests/test_docs.sh compares them
docs: $(B)/libjot.a $(B)/examples/02_conv
	docs/walk.sh $(B)
	docs/counts.sh

deps:
	@tools/deps.sh

# What is asked with each change: one build of the library, on this processor; then every other build, device and
# processor
CHECKED = CFLAGS="-O1 -g1 -DJOT_CHECKED" B=$(B)/checked BRIEF="-O0 $(GOLD)"
test: deps
	@$(MAKE) -s $(CHECKED) run-tests
test-wide: deps
	@$(MAKE) -s $(CHECKED) run-wide

# devices are test-wide's, where PoCL does not optimise, which halves its time; it does for AS_SHIPPED and in make test-long
run-tests run-wide: export TEST_SHORT = 1
run-tests: export OCL_ICD_VENDORS = /no/devices
run-wide: export POCL_EXTRA_BUILD_FLAGS = -cl-opt-disable
tests   = $(addprefix $(B)/tests/test_,$(1))
# programs of this processor that have a device's part, and its arguments
AS_SHIPPED = "POCL_EXTRA_BUILD_FLAGS= $(B)/tests/test_fuzz 3 1 opencl"
PARTS   = run/opencl types/opencl extremes/opencl flow/opencl far/2/1/opencl demanded/53/opencl function running arg_reduce custom moments
ONPOCL  = $(foreach x,$(PARTS),"tools/plain.sh $(B)/tests/test_$(subst /, ,$x)") $(AS_SHIPPED)
# what these ask for are values: kernels without optimisation, which was most of their time
PLAIN   = $(call tests,arg_reduce batch bounds chain choose concat contract contract_image conv demanded epilogue filled \
          forced fork gates half integers ir layout lazy line_buffer llama models moments open open_train pads pixels run \
          save_flow stages stencil strides target transpose types unpack view wild windows winograd)
# of make test-wide: programs for devices; texts and schedules of other machines, many sizes, a machine that is short of
# something, the language model, what takes the interpreter long
DEVICES = $(call tests,cuda fake_check fetch grid opencl refused squares swap tiles wide)
OTHERS  = $(call tests,flags forced ir_text machines prelude_text prelude_vector target winograd chain stencil \
          integers shapes sizes fork stack llama gates open_train)
# the stand-in for CUDA runs them, with each access looked at; on PoCL, but for a few tiles and the part of
# test_swap that it has there, too, in make test-long
STOODIN = $(call tests,tiles swap squares wide grid)
FEWER   = "$(B)/tests/test_tiles opencl few" "$(B)/tests/test_swap opencl few"
# alone, at the end: children, since compilers are given little time to begin and folders are counted; tiers, since
# two compilers race; machine, since it measures; of threads a part, where a pool that waits is asked for its time
RACES   = $(call tests,children tiers)
MEASURE = $(call tests,machine)
ALONE   = $(RACES) $(MEASURE)
IDLE    = $(call tests,threads)
HERE    = $(filter-out $(DEVICES) $(OTHERS) $(ALONE) $(IDLE),$(TESTS))
# what only a script runs, too
NAMED   = $(filter $(TESTS),$(patsubst %,$(B)/tests/%,$(shell grep -oh 'test_[a-z0-9_]*' tests/*.sh)))
plain   = $(patsubst %,"tools/plain.sh %",$(filter $(PLAIN),$(1))) $(filter-out $(PLAIN),$(1))
FAKE    = "tests/test_fake.sh $(B)
MODE    = "tests/test_modes.sh $(B)
DEVICE1 = "tests/test_device.sh $(B) opencl

# side by side in this order, the longest first
run-tests: $(HERE) $(IDLE) $(MEASURE) $(EXAMPLES) $(COMMAND) $(B)/tests/command_models
	@$(RUN) "tests/test_examples.sh $(B)/examples" "tests/test_docs.sh $(B)" "$(MAKE) -s kernels-check QUICK=1" \
	    $(call plain,$(HERE)) "$(IDLE) bits" \
	    $(MODE) three" $(MODE) schedule" $(MODE) layout" $(MODE) paper" $(MODE) lanes" \
	    "tests/test_command.sh $(B)" tests/test_extend.sh tools/layers.sh "tools/circles.sh $(B)" --alone $(MEASURE) "$(IDLE) idle"

run-wide: $(DEVICES) $(OTHERS) $(RACES) $(NAMED) $(call tests,$(foreach x,fuzz $(PARTS),$(firstword $(subst /, ,$x)))) $(EXAMPLES) dist asan-build tcc-build
	@$(RUN) $(FAKE) tiles" $(FAKE) refused" $(FAKE) drawn" "tools/plain.sh tests/test_sanitize.sh $(B)" "tests/test_ports.sh $(B)" \
	    $(DEVICE1) tests/test_ref" $(DEVICE1) 'examples/07_digits --quick'" $(DEVICE1) tests/test_grad tests/test_element" \
	    $(DEVICE1) examples/01_first examples/02_conv examples/04_instance_norm" "tests/test_fake_opencl.sh $(B)" $(FEWER) $(ONPOCL) \
	    $(filter-out $(STOODIN),$(DEVICES)) "$(MAKE) -s freestanding" "tests/test_dist.sh $(B)/dist examples/01_first.c" \
	    $(call plain,$(OTHERS)) $(WATCHED) $(BYTCC) "$(MAKE) -s check-c++" "tests/test_valgrind.sh $(B)" --alone $(RACES)

test-long: all
	@$(MAKE) -s CFLAGS="-O2 -g -DJOT_CHECKED" B=$(B)/checked run-long

# what make test draws little of, drawn often; then all of it
run-long: $(TESTS) $(EXAMPLES) $(ONNXRUN) dist
	@$(MAKE) -s asan-build BYCC= LESS=
	@$(RUN) "$(B)/tests/test_prelude --all" "tests/test_fake.sh $(B) all" "tests/test_fake_opencl.sh $(B)" "tests/test_sanitize.sh $(B)" "$(MAKE) -s freestanding" "tests/test_dist.sh $(B)/dist examples/01_first.c" $(DEVICE1)" \
	    "tests/test_ports.sh $(B) all" "$(B)/tests/test_cuda --all" "$(B)/tests/test_fuzz 10000" \
	    "$(B)/tests/test_wild 20000 100000" "$(B)/tests/test_flags 2000 1000" "$(B)/tests/test_drawn 3000" \
	    "$(B)/tests/test_forced 300 1000" "$(B)/tests/test_conv 600" "$(B)/tests/test_guard 400" \
	    "PEERS=$(PEERS) tests/test_wild_torch.sh $(B) 3000" "tests/test_onnx_nodes.sh $(B)" "PEERS=$(PEERS) tests/test_onnx_models.sh $(B)" "PEERS=$(PEERS) tests/test_onnx_export.sh $(B) 1000" "$(B)/tests/test_onnx_export 3000" \
	    "$(B)/tests/test_index 1000000" "$(B)/tests/test_far 3000" "$(B)/tests/test_expr_drawn 10000" "$(B)/tests/test_data_fuzz 300000" \
	    "$(B)/tests/test_io_fuzz 3000000" "$(B)/tests/test_onnx_fuzz 100000" "$(B)/tests/test_expr_drawn 300 1 cpu" \
	    "$(B)/tests/test_ir_random 2000" "$(B)/tests/test_ir_text 600" "$(B)/tests/test_machines 200 1" \
	    "$(B)/tests/test_open 1" "$(B)/tests/test_open opencl all" "$(B)/tests/test_open_draws 20 1 opencl" "$(B)/tests/test_open_draws 300 1000" "$(B)/tests/test_determined 300" "$(B)/tests/test_windows 600" "$(B)/tests/test_donate 2000" \
	    "$(B)/tests/test_speculate opencl" "$(B)/tests/test_speculate_uses 3000 1000" "$(B)/tests/test_models --all" "$(B)/tests/test_sizes --all" "$(B)/tests/test_shapes --all" "$(B)/tests/test_integers --all" "$(B)/tests/test_demanded 5" "$(B)/tests/test_prelude_vector --all" \
	    $(filter-out $(ALONE) $(IDLE),$(TESTS)) $(patsubst %,"tools/watched.sh $(B)/asan/tests/%",$(ASAN) $(BYCC) $(call names,$(CUT))) --alone $(ALONE) $(IDLE) "$(B)/tests/test_children 8"

# on a GPU of NVIDIA: the suite of a device; without one it is skipped, with the reason
test-cuda:
	@$(MAKE) -s CFLAGS="-O1 -g -DJOT_CHECKED" B=$(B)/checked $(B)/checked/examples/01_first
	@why=$$(JOT_BACKEND=cuda $(B)/checked/examples/01_first 2>&1 | grep '^failed: '); \
	if [ -n "$$why" ]; then echo "skipped: $${why#failed: }"; echo "0 passed, 0 failed, 1 skipped"; \
	else $(MAKE) -s CFLAGS="-O1 -g -DJOT_CHECKED" B=$(B)/checked run-cuda; fi
run-cuda: $(TESTS) $(EXAMPLES)
	@$(RUN) "$(B)/tests/test_cuda --all" "$(B)/tests/test_run cuda" "$(B)/tests/test_types cuda" "$(B)/tests/test_open cuda all" "$(B)/tests/test_open_draws 20 1 cuda" \
	    "$(B)/tests/test_extremes cuda" "$(B)/tests/test_tiles cuda" "$(B)/tests/test_wide cuda" "$(B)/tests/test_squares cuda" "$(B)/tests/test_grid cuda" \
	    "$(B)/tests/test_fetch cuda" "$(B)/tests/test_speculate cuda" "$(B)/tests/test_opencl cuda" "$(B)/tests/test_swap cuda" "$(B)/tests/test_fork cuda" \
	    "$(B)/tests/test_fuzz 300 1 cuda" "$(B)/tests/test_drawn 60 1 cuda" \
	    "tests/test_device.sh $(B) cuda" "tests/test_cuda_sanitize.sh $(B)"

fuzz: $(B)/tests/test_fuzz
	$(B)/tests/test_fuzz $(FUZZ) $(or $(SEED),1)

# a scratch copy with one comparison, constant, operator or index changed at a time: who notices?
mutate:
	@python3 tools/mutate.py --mutants $(or $(MUTANTS),100) --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(MINUTES),--minutes $(MINUTES))

# Sanitizers: the programs that touch every file, the campaigns shortened. NVRTC itself leaks; programs of devices
# would skip, without one. Left to make test-long are the programs whose time is their compilers' or the
# interpreter's on large operands (BYCC), and more than a few draws or refusals (LESS: PROGRAM/ARGUMENT).
NOTASAN = test_prelude test_prelude_text test_models test_cuda test_guard test_flags \
          test_tiles test_wide test_squares test_grid test_swap test_fetch test_opencl test_limits test_refused test_fake_check
BYCC    = test_arg_reduce test_blocks test_bounds test_chain test_children test_choose test_demanded \
          test_contract test_contract_image test_conv test_deep test_determined test_disk \
          test_drawn test_export test_far test_forced test_fork test_gates test_half test_hostile \
          test_integers test_ir test_ir_random test_ir_text test_layout test_lazy test_linalg \
          test_line_buffer test_moments test_open test_open_train test_pads test_pixels test_prelude_bits test_prelude_vector test_queue \
          test_sequence test_shapes test_sizes test_stack test_stages test_stencil test_strides test_target \
          test_threads test_tiers test_transpose test_types test_winograd
LESS    = test_draws/50 test_function/29 test_llama/tcc test_machines/1 test_onnx/50 test_tune/97
CUT     = test_memory/13 test_fuzz/40 test_wild/40 $(LESS)
names   = $(patsubst %/,%,$(dir $(1)))
ASAN    = $(filter-out $(NOTASAN) $(BYCC) $(call names,$(CUT)),$(notdir $(TESTS)))
WATCHED = $(foreach x,$(ASAN) $(CUT),"tools/watched.sh $(B)/asan/tests/$(subst /, ,$x)")
# gcc's -O1 takes twice the time of -Og for code that is watched; a program's own code takes little of what it runs
ASANCC  = -Og -g1 -DJOT_CHECKED -fsanitize=address,undefined -fno-sanitize-recover=undefined
GOLD    = $(eval GOLD := $(shell command -v ld.gold >/dev/null && echo -fuse-ld=gold))$(GOLD)
asan-build:
	@$(MAKE) -s CFLAGS="$(ASANCC)" BUSY=-O1 BRIEF="-O0 $(GOLD)" B=$(B)/asan $(patsubst %,$(B)/asan/tests/%,$(ASAN) $(call names,$(CUT)))
check-asan:
	@$(MAKE) -s asan-build BYCC= LESS=
	@$(MAKE) -s asan-run BYCC= LESS=
asan-run:
	@$(RUN) $(WATCHED)

# The library and a part of its tests built by tcc itself
TCCTESTS = test_index test_graph test_meta test_run
TCC     := $(shell command -v tcc)
BYTCC   = $(if $(TCC),$(TCCTESTS:%="tools/watched.sh $(B)/tcc/tests/%"),"echo skipped: no tcc here; echo 0 passed, 0 failed, 1 skipped")
tcc-build:
	@$(if $(TCC),$(MAKE) -s CC=tcc CFLAGS="-g" B=$(B)/tcc $(TCCTESTS:%=$(B)/tcc/tests/%))
check-tcc: tcc-build
	@$(RUN) $(BYTCC)

check-c++: $(B)/libjot.a
	@DATALIBS="$(DATALIBS)" sh tests/test_cxx.sh $(B)

freestanding: dist
	@tools/freestanding.sh $(CC) $(B)/dist $(if $(TEST_SHORT),$(shell command -v clang))

layers:
	@tools/layers.sh

# what programs that read data or models link with
data-libs:
	@echo $(filter -l%,$(DATALIBS)) $(ONNXLIB)

dist: $(B)/dist/jot.c $(B)/dist/jot.h
$(B)/dist/jot.h: core.h nn.h layer.h expr.h speculate.h data.h io.h
	@mkdir -p $(@D)
	{ echo '/*'; sed 's/^/ * /; s/ $$//' LICENSE; echo ' */'; \
	  sed 's/core\.h/jot.h/g; s/; nn\.h, .*more//; s/^ \* Read after:.*/ *\//; $$d' core.h; \
	  sed -s '/^#.*JOT_[A-Z]*_H/d; /^#include "core/d; /^#include "nn/d; /^#include "layer/d; s/^ \* Read before: core.*/ *\//; $$d' nn.h layer.h expr.h speculate.h data.h io.h | \
	  sed 's/^\/\* [a-z]*\.h - /\/* /; s/core\.h/what stands above/'; echo '#endif'; } > $@
$(B)/dist/jot.c: $(ALLSRC) $(HDR) $(NNHDR) tools/amalgamate.awk
	@mkdir -p $(@D)
	{ echo '/*'; sed 's/^/ * /; s/ $$//' LICENSE; echo ' */'; \
	  awk -v without="$(foreach x,NO_DEVICES NO_TUNE NO_EXPORT NO_DATA NO_IO,JOT_$(x) $($(x)))" -f tools/amalgamate.awk $(ALLSRC); } > $@

# the one-file build, with every compiler at hand, and a program on it
dist-check: dist
	@tests/test_dist.sh $(B)/dist examples/01_first.c

# bench: jot on the workloads of bench/, by turns with whoever is here: OpenBLAS and oneDNN where
# their headers are, PyTorch from PEERS=<virtual environment>. W='gemm_* conv_*' chooses;
# BUDGET=seconds each, over ROUNDS turns; THREADS=1,2; MODES=eager,compile,ort,openvino,jax,ggml; PATIENCE=seconds for one
# answer; COLD=1: from an empty cache; TUNE=8: jot once more, with so many schedules timed (JOT_TUNE);
# BEFORE=another build's build/bench/bench: its jot by turns with this one;
# DEVICE=cuda, opencl: on that backend, against PyTorch on the GPU and the device's own copies
OPENBLAS = $(call has,cblas-openblas.h,-lopenblas,-DHAVE_OPENBLAS)
ONEDNN   = $(call has,dnnl.h,-ldnnl,-DHAVE_ONEDNN)
CJSON    = $(call has,cjson/cJSON.h,-lcjson)
THREADS  = 1,2
MODES    = eager
BUDGET   = 1
ROUNDS   = 3
PATIENCE = 60
DEVICESET = poly8_4194304 sigmoid_chain_4194304 iou_100x1000* iou_1000x10000* softmax_4096x1024 layernorm_4096x1024* sum_a* \
            transpose_add_4096 gemm_1024 gemm_2048 gemm_bf16* lenet_train_b64 lenet_infer_b64 resnet50_infer_b8 resnet50_train_b4
BENCHOUT = out/bench/$(if $(DEVICE),$(DEVICE)_)$(if $(COLD),cold,bench)
COLDSET  = sigmoid_chain_65536 softmax_4096x1024 lenet_train_b64 mlp_train_b64 squeezenet1_1_infer_b1

$(B)/bench/bench: $(wildcard bench/*.[ch] bench/drawn/*.[ch]) $(MODELS) examples/models/model.h $(LLM) $(B)/libjot.a
	@mkdir -p $(@D)
	$(CC) $(WARN) -D_GNU_SOURCE -O2 -march=native -I. $(filter %.c,$^) -o $@ $(B)/libjot.a \
	    $(OPENBLAS) $(ONEDNN) $(LIBS)

# from nothing: without the peers' libraries, which take longer to load than jot takes to begin
$(B)/bench/cold: $(wildcard bench/*.[ch] bench/drawn/*.[ch]) $(MODELS) examples/models/model.h $(LLM) $(B)/libjot.a
	@mkdir -p $(@D)
	$(CC) $(WARN) -D_GNU_SOURCE -O2 -march=native -I. $(filter %.c,$^) -o $@ $(B)/libjot.a $(LIBS)

BENCHBIN = $(B)/bench/$(if $(COLD),cold,bench)
bench: $(BENCHBIN)
	@mkdir -p out/bench
	@set -f; $(if $(DEVICE),JOT_BACKEND=$(DEVICE)) $(if $(filter cuda,$(DEVICE)),BENCH_DEVICE=cuda) \
	    $(BENCHBIN) --budget $(BUDGET) --rounds $(ROUNDS) --threads $(THREADS) \
	    --patience $(PATIENCE) --out $(BENCHOUT).jsonl $(if $(COLD),--cold 1) $(if $(TUNE),--tune $(TUNE)) $(if $(BEFORE),--before $(BEFORE)) \
	    $(if $(PEERS),--peers $(PEERS) --modes $(MODES)) $(or $(W),$(if $(COLD),$(COLDSET)),$(if $(DEVICE),$(DEVICESET))); \
	rc=$$?; [ $$rc != 77 ] || exit 0; [ $$rc = 0 ] || exit $$rc; $(MAKE) -s bench-report

# workloads that nobody chose: DRAWS lines of SEED, jot (built anew, and compiled) by turns with PyTorch from PEERS=,
# values compared; the distribution of ratios, and the worst rows with their profiles, in out/bench/drawn.md.
# W='drawn_1_7_*': some of them again; the options of bench besides
DRAWS   = 40
DRAWN   = out/bench/drawn
bench-drawn: $(B)/bench/bench
	@[ -x "$(PEERS)/bin/python" ] || { echo "skipped: bench-drawn: PEERS names no virtual environment with torch"; exit 0; }; \
	rm -rf $(DRAWN) && mkdir -p $(DRAWN)/cache && set -f && $< --draw $(or $(SEED),1) $(DRAWS) >$(DRAWN).txt && \
	JOT_CACHE_DIR=$(DRAWN)/cache BENCH_VALUES=$(DRAWN) $< --drawn $(DRAWN).txt --budget $(BUDGET) --rounds $(ROUNDS) --threads $(THREADS) --patience $(PATIENCE) \
	    --out $(DRAWN).jsonl --peers $(PEERS) --modes $(MODES) $(if $(BEFORE),--before $(BEFORE)) $(W) && \
	python3 bench/report/drawn.py $(DRAWN).jsonl $(DRAWN).txt $< >$(DRAWN).md; cat $(DRAWN).md

# what the last run found, kept for this machine as NAME, and the worst rows over all machines (docs/performance.md)
bench-keep:
	@[ -n "$(NAME)" ] || { echo "bench-keep: NAME=what docs/machines/NAME.jsonl is to be called, FROM=lines of other runs"; exit 1; }; \
	python3 bench/report/machines.py --keep docs/machines/$(NAME).jsonl $(or $(FROM),$(BENCHOUT).jsonl) && $(MAKE) -s bench-machines
bench-machines:
	@python3 bench/report/machines.py docs/machines/*.jsonl
# what speculation buys (docs/speculation.md): SECONDS of each program in each of three modes
bench-speculation: $(B)/bench/speculation
	@$< $(SECONDS)
$(B)/bench/speculation: bench/speculation/ablation.c $(B)/libjot.a
	@mkdir -p $(@D)
	$(CC) $(WARN) -D_GNU_SOURCE -O2 -I. $< -o $@ $(B)/libjot.a $(LIBS)

# the table and out/bench/ratios.svg of the last run
bench-report:
	@if [ -z "$(CJSON)" ]; then \
	    echo "bench: lines only, in $(BENCHOUT).jsonl: no cJSON here (apt install libcjson-dev)"; \
	else \
	    mkdir -p $(B)/bench && $(CC) $(WARN) -O1 bench/report/report.c -o $(B)/bench/report $(CJSON) -lm && \
	    $(B)/bench/report out/bench/ratios.svg $(if $(COLD),--cold) $(BENCHOUT).jsonl >$(BENCHOUT).md && \
	    cat $(BENCHOUT).md; \
	fi

.PHONY: command data-libs mutate test-cuda run-cuda all examples demo docs deps test run-tests test-wide run-wide test-long run-long freestanding layers dist dist-check \
        check-asan asan-build asan-run check-tcc tcc-build check-c++ fuzz bench bench-drawn bench-keep bench-machines bench-speculation bench-report install wc clean

clean:
	rm -rf $(B) out
wc:
	@tools/wc.sh
# the installed library looks for the installed libtcc
install: $(B)/libjot.a $(B)/dist/jot.h $(COMMAND)
	@mkdir -p $(B)/installed
	cp $(B)/libjot.a $(B)/installed/libjot.a
	$(CC) $(WARN) $(CFLAGS) -D_GNU_SOURCE -DJOT_LIBTCC_PATH='"$(abspath $(PREFIX))/lib/jot/libtcc.so"' -I. \
	    -c backends/cpu/tcc.c -o $(B)/installed/tcc.o
	ar r $(B)/installed/libjot.a $(B)/installed/tcc.o
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/jot
	install -m 644 $(B)/dist/jot.h $(DESTDIR)$(PREFIX)/include/jot.h
	sed 's/"nn\.h"/"jot.h"/; s/core\.h, nn\.h/jot.h/' onnx.h >$(B)/installed/jot_onnx.h
	install -m 644 $(B)/installed/jot_onnx.h $(DESTDIR)$(PREFIX)/include/jot_onnx.h
	install -m 644 $(B)/installed/libjot.a $(DESTDIR)$(PREFIX)/lib/libjot.a
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	printf '%s\n' 'prefix=$(abspath $(PREFIX))' 'Name: jot' 'Description: a deep-learning compiler' \
	    "Version: $$(awk '/^#define JOT_VERSION_[MP].*[0-9]$$/ { v = v (v == "" ? "" : ".") $$3 } END { print v }' core.h)" \
	    'Cflags: -I$${prefix}/include' \
	    'Libs: -L$${prefix}/lib -ljot $(filter -l%,$(DATALIBS)) $(ONNXLIB) $(LIBS)' >$(B)/installed/jot.pc
	install -m 644 $(B)/installed/jot.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/jot.pc
	[ ! -e $(COMMAND) ] || { install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1; \
	    $(CC) $(CFLAGS) -D_GNU_SOURCE $(COMMANDS) -I. command/*.c -o $(B)/installed/jot $(B)/installed/libjot.a $(filter -l%,$(DATALIBS)) $(ONNXLIB) $(LIBS); \
	    install -m 755 $(B)/installed/jot $(DESTDIR)$(PREFIX)/bin/jot; install -m 644 command/jot.1 $(DESTDIR)$(PREFIX)/share/man/man1/jot.1; }
	[ ! -e build/libtcc.so ] || install -m 755 build/libtcc.so $(DESTDIR)$(PREFIX)/lib/jot/libtcc.so
