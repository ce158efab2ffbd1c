#!/usr/bin/env python3
# tools/mutate.py - which faults of the library would no test notice?
#
#     tools/mutate.py [--mutants N] [--seed S] [--only WORD] [--minutes M]
#
#     copy        the tree in build/mutate, built with the library as a shared object; kept, so that the next
#                 call builds what changed
#     mutant      one comparison, constant, operator or index of a drawn line is another; one file compiled
#     kernels     plans and texts against those stored (make kernels-check QUICK=1), unless a host runs the file
#     guards      the programs whose charter names the file ("Guards: ..."), the fastest first; those that
#                 draw much (CUT), cut short, last
#     fast        programs that take a second or two, whatever they guard
#     campaigns   the others that draw much come last, if asked for (--campaigns)
#
# A mutant is noticed by the first program that fails, dies, or does not end, and does pass on the copy as it
# was. One whose machine code is that of the file as it was is none. The last lines name the mutants that
# nobody noticed; the checkout is never touched.
import argparse, fcntl, filecmp, json, os, random, re, select, shutil, signal, subprocess, sys, time

FLAGS = "-O1 -DJOT_CHECKED -fPIC"
KERNELS = "kernels/kernels check tests/ref/kernels.txt first"
FAST = "test_graph test_meta test_grad test_nn test_ref test_fuse_why test_phase test_success test_donate test_run " \
       "test_spec".split()
# campaigns, and with which arguments they take seconds
CUT = {"test_forced": "2 1", "test_fuzz": "20", "test_drawn": "10", "test_wild": "40", "test_flags": "1", "test_guard": "2",
       "test_determined": "2", "test_machines": "2", "test_memory": "29", "test_far": "4", "test_conv": "4",
       "test_ir_random": "10", "test_ir_text": "2", "test_models": "", "test_sizes": "", "test_prelude_vector": ""}
DEVICES = "test_tiles test_wide test_squares test_swap test_fetch test_opencl test_limits test_refused".split()
FAKE = "test_fake.sh"  # these run on the stand-in for CUDA, too
FAKED = "test_fetch test_opencl".split()
LINES = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []  # the first check that fails is seen at once
FAILED = re.compile(rb"^[\w/]+\.[ch]:\d+: not ", re.M)
PATIENCE = 200  # seconds for a program whose time is not known

CHANGES = [  # what stands there, what may stand there instead
    ("comparison", r" (<=|>=|==|!=|<|>) ", {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"],
                                            ">=": [">", "<="], "==": ["!="], "!=": ["=="]}),
    ("operator", r" (\+|-|\*|/|%|&&|\|\||\+=|-=) ", {"+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"],
                                                     "&&": ["||"], "||": ["&&"], "+=": ["-="], "-=": ["+="]}),
    ("constant", r"(?<![\w.\"'\\])(\d+)(?![\w.\"'])", None),
    ("truth", r"\b(true|false)\b", {"true": ["false"], "false": ["true"]}),
    ("negation", r"(?<=[( &|])(!)(?=[\w(])", {"!": [""]}),
    ("index", r"\[(\w+)\]", "index"),
]


def code_of(line, inside):
    """The line with comments and texts blanked out, and whether a comment goes on."""
    out, i, quote = [], 0, None
    while i < len(line):
        two = line[i:i + 2]
        if inside:
            if two == "*/":
                inside, i = False, i + 1
                out.append(" ")
            out.append(" ")
        elif quote:
            if line[i] == "\\":
                out.append("\0")
                i += 1
            elif line[i] == quote:
                quote = None
            out.append("\0")
        elif two == "/*":
            inside, i = True, i + 1
            out.append("  ")
        elif line[i] in "\"'":
            quote = line[i]
            out.append("\0")
        else:
            out.append(line[i])
        i += 1
    return "".join(out), inside


def places(path):
    """All (line, column, length, kind, instead) of a file: only lines within functions, no assertions."""
    found, inside, depth, going = [], False, 0, False
    with open(path) as f:
        lines = f.read().split("\n")
    for n, line in enumerate(lines):
        code, inside = code_of(line, inside)
        directive = going or code.lstrip().startswith("#")
        going = directive and line.endswith("\\")
        within = depth > 0 and line.startswith(" ")
        if not directive:
            depth = max(0, depth + code.count("{") - code.count("}"))
        if directive or not within or re.search(r"ASSERT|assert|\bstatic const\b", code):
            continue
        for kind, pattern, instead in CHANGES:
            for m in re.finditer(pattern, code):
                was = m.group(1)
                if instead is None:
                    to = [str(int(was) + 1)] + ([str(int(was) - 1)] if int(was) else [])
                elif instead == "index":
                    to = [was + " + 1"] + ([was + " - 1"] if not was.isdigit() else [])
                else:
                    to = instead[was]
                found += [(n, m.start(1), len(was), kind, t) for t in to]
    return lines, found


class Copy:
    def __init__(self, root):
        self.root, self.dir = root, os.path.join(root, "build/mutate")
        os.makedirs(self.dir + "/tmp", exist_ok=True)
        self.lock = open(self.dir + "/lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)  # one at a time
        names = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
        for name in names:
            here, there = os.path.join(root, name), os.path.join(self.dir, name)
            if not os.path.exists(there) or not filecmp.cmp(here, there, shallow=False):
                os.makedirs(os.path.dirname(there), exist_ok=True)
                shutil.copy(here, there)
                if name.endswith((".h", ".def")) and not name.startswith("tests/"):
                    shutil.rmtree(self.dir + "/m/tests", ignore_errors=True)
        for name in self.listed() - set(names):
            os.remove(os.path.join(self.dir, name))
        out = ("tests/", "examples/", "bench/", "tools/", "docs/")
        self.files = [n for n in names if n.endswith(".c") and not n.startswith(out)]
        self.guards = self.charters()
        self.seconds, self.bad = self.times(), set()
        self.built, self.sure = set(), set()  # programs: made in this call, and seen to pass on the tree as it is
        self.env = dict(os.environ, TMPDIR=self.dir + "/tmp")
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            self.env.pop(name, None)
        self.make("m/libjot.a")
        for which in ("old", "new"):
            os.makedirs(self.dir + "/m/" + which, exist_ok=True)
            self.link(which)
        # programs are linked against this archive: a script that names the shared library instead
        with open(self.dir + "/m/libjot.a", "w") as f:
            f.write("INPUT(%s/m/old/libjot.so)\n" % self.dir)

    def listed(self):
        """What lies in the copy as a source."""
        out = set()
        for at, dirs, files in os.walk(self.dir):
            if at == self.dir:
                dirs[:] = [d for d in dirs if d not in ("m", "tmp", "build") and not d.startswith("cache")]
                files = [f for f in files if f not in ("lock", "times.json")]
            out |= {os.path.relpath(os.path.join(at, f), self.dir) for f in files}
        return out

    def times(self):
        """The seconds that programs took when they passed last."""
        try:
            with open(self.dir + "/times.json") as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def make(self, *targets):
        subprocess.run(["make", "-s", "CFLAGS=" + FLAGS, "B=m", *targets], cwd=self.dir, env=self.env, check=True)

    def link(self, which):
        # with what is made, and libraries of others: a program links with those that it has itself
        objects = ["m/" + f[:-2] + ".o" for f in self.files] + ["m/onnx/onnx.pb-c.o"]
        libs = subprocess.run(["make", "-s", "data-libs"], cwd=self.dir, env=self.env, capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["cc", "-shared", "-Wl,-soname,libjot.so", "-o", "m/%s/libjot.so" % which,
                        *[o for o in objects if os.path.exists(self.dir + "/" + o)], *libs, "-ldl", "-lpthread", "-lm"],
                       cwd=self.dir, check=True)

    def charters(self):
        """For each file's name the programs that guard it."""
        guards = {}
        for name in sorted(os.listdir(self.root + "/tests")):
            if not (name.startswith("test_") and name.endswith(".c")):
                continue
            with open(self.root + "/tests/" + name) as f:
                m = re.search(r"\* Guards:(.*?)\*/", f.read(8000), re.S)
            for word in re.findall(r"[\w/]+\.c", m.group(1) if m else ""):
                guards.setdefault(word, []).append(name[:-2])
        return guards

    def run(self, program, which, limit, cache="cache"):
        """Does it pass, with the library as it was or as it is? Only programs of devices look for some."""
        name, *words = program.split()
        made = words[-1] if name == FAKE else name
        if made not in self.built:
            self.make("-o", "m/libjot.a", "m/tests/" + made)
            self.built.add(made)
        env = dict(self.env, LD_LIBRARY_PATH=self.dir + "/m/" + which, JOT_CACHE_DIR=self.dir + "/" + cache)
        os.makedirs(env["JOT_CACHE_DIR"], exist_ok=True)
        if made not in DEVICES:
            env["OCL_ICD_VENDORS"] = "/no/devices"
        start = time.time()
        p = subprocess.Popen(LINES + ["tests/" + name if name == FAKE else "m/tests/" + name] + words, cwd=self.dir, env=env, start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            ok = not self.says_so(p.stdout.fileno(), start + limit) and p.wait(start + limit - time.time()) == 0
        except subprocess.TimeoutExpired:
            ok = False
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
            p.stdout.close()
        if ok:
            self.seconds[program] = round(time.time() - start, 2)
        return ok

    def says_so(self, pipe, end):
        """Does a program print that a check failed, or is it late? Returns when it does, is, or ends."""
        text = b""
        while time.time() < end:
            if select.select([pipe], [], [], 1)[0]:
                more = os.read(pipe, 65536)
                text = text[text.rfind(b"\n") + 1:] + more
                if not more or FAILED.search(text):
                    self.late = False
                    return bool(more)
        self.late = True
        return True

    def notices(self, program, cache):
        """Does it fail with the changed library, and only with that?"""
        if program in self.bad:
            return False
        known = self.seconds.get(program)
        if self.run(program, "new", 4 * known + 10 if known else PATIENCE, cache):
            return False
        late = self.late  # other work on the machine may be why
        if (late or program not in self.sure) and not self.run(program, "old", PATIENCE):
            self.bad.add(program)
            print("%s fails on the tree as it is: left out" % program, flush=True)
            return False
        self.sure.add(program)
        return True

    def programs(self, name, campaigns):
        """Who is asked about a file: its guards and kernels as they were, then fast ones, the fastest first."""
        guards = [g for g in self.guards.get(name, []) if g != "test_cuda"]  # which wants NVRTC
        full = lambda g: (g + " " + CUT.get(g, "")).strip()
        time_of = lambda g: self.seconds.get(full(g), 1)
        kernels = [] if name.startswith("backends/") else [KERNELS]
        asked = sorted([g for g in guards if g not in CUT] + kernels, key=time_of)
        fast = sorted((g for g in FAST if g not in guards), key=time_of)
        drawn = sorted((g for g in guards if g in CUT), key=time_of)
        if campaigns:
            drawn += [g for g in CUT if g not in guards]
        cuda = ["%s m %s" % (FAKE, g) for g in guards if g in FAKED and "opencl" not in name]
        return [full(g) for g in asked + cuda + fast + drawn]

    def compile(self, name):
        path = self.dir + "/m/" + name[:-2] + ".o"
        os.remove(path)
        done = subprocess.run(["make", "-s", "CFLAGS=" + FLAGS, "B=m", "m/" + name[:-2] + ".o"], cwd=self.dir, env=self.env,
                              capture_output=True)
        if done.returncode:
            return None
        with open(path, "rb") as f:
            return f.read()

    def close(self):
        with open(self.dir + "/times.json", "w") as f:
            json.dump(self.seconds, f)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--mutants", type=int, default=100)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--only", default="", help="files whose path has this word")
    ask.add_argument("--minutes", type=float, default=0, help="stop after so many")
    ask.add_argument("--campaigns", action="store_true", help="ask the programs that draw much, too")
    how = ask.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    draw, start, copy = random.Random(how.seed), time.time(), Copy(root)
    counts, left = {"noticed": 0, "equal": 0, "refused": 0, "left": 0}, []
    try:
        tree = {f: places(copy.dir + "/" + f) for f in copy.files if how.only in f}
        all_places = [(f, p) for f in sorted(tree) for p in tree[f][1]]
        for _ in range(how.mutants):
            if how.minutes and time.time() - start > 60 * how.minutes:
                print("stopped after %g minutes" % how.minutes)
                break
            since = time.time()
            name, (n, column, length, kind, to) = draw.choice(all_places)
            lines, path = tree[name][0], copy.dir + "/" + name
            line = lines[n][:column] + to + lines[n][column + length:]
            what = "%s:%d: %s %s -> %s: %s" % (name, n + 1, kind, lines[n][column:column + length], to or "nothing",
                                               line.strip())
            with open(copy.dir + "/m/" + name[:-2] + ".o", "rb") as f:
                before = f.read()
            with open(path, "w") as f:
                f.write("\n".join(lines[:n] + [line] + lines[n + 1:]))
            after = copy.compile(name)
            if after is None or after == before:
                end = "refused" if after is None else "equal"
            else:
                copy.link("new")
                end = "left"
                # a host's fault may spoil what is cached
                cache = "cache-new" if name.startswith("backends/") else "cache"
                for program in copy.programs(name, how.campaigns):
                    if copy.notices(program, cache):
                        end = "noticed"
                        what += "  [%s]" % program
                        break
                shutil.rmtree(copy.dir + "/cache-new", ignore_errors=True)
            counts[end] += 1
            if end == "left":
                left.append(what)
            print("%-8s %3d s  %s" % (end, time.time() - since, what), flush=True)
            with open(path, "w") as f:
                f.write("\n".join(lines))
            with open(copy.dir + "/m/" + name[:-2] + ".o", "wb") as f:
                f.write(before)
    finally:
        copy.close()
    print("\n".join(["", "noticed by no test:"] + left if left else [""]))
    print("%d mutants: %d noticed, %d left, %d with equal code, %d that do not compile, seed %d, %d s" % (
        sum(counts.values()), counts["noticed"], counts["left"], counts["equal"], counts["refused"], how.seed,
        time.time() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
