#!/usr/bin/env python3
# tools/mutate.py - which faults of the library would no test notice?
#
#     tools/mutate.py [--mutants N] [--seed S] [--only WORD] [--minutes M]
#
#     copy        the tree in a scratch folder, built once with the library as a shared object
#     mutant      one comparison, constant, operator or index of a drawn line is another; one file compiled
#     guards      the programs whose charter names the file ("Guards: ..."), the fastest first
#     fast        programs that take few seconds, whatever they guard
#     campaigns   those that draw much come last, if asked for (--campaigns)
#
# A mutant is noticed by the first program that fails, dies, or does not end, and does pass on the copy as it
# was. One whose machine code is that of the file as it was is none. The last lines name the mutants that
# nobody noticed; the checkout is never touched.
import argparse, os, random, re, shutil, signal, subprocess, sys, tempfile, time

FLAGS = "-O1 -DJOT_CHECKED -fPIC"
FAST = "test_graph test_meta test_grad test_nn test_ref test_fuse_why test_phase test_moments test_arg_reduce test_success " \
       "test_epilogue test_layout test_choose test_donate test_function test_run".split()
CAMPAIGNS = "test_forced test_fuzz test_drawn test_wild test_flags test_guard test_determined test_machines test_models " \
            "test_memory test_sizes test_far test_conv test_prelude_vector test_ir_random test_cuda".split()
DEVICES = "test_tiles test_wide test_squares test_swap test_fetch test_opencl test_limits test_refused".split()
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
        self.root, self.dir = root, tempfile.mkdtemp(prefix="jot-mutate-")
        names = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
        for name in names:
            os.makedirs(os.path.dirname(os.path.join(self.dir, name)), exist_ok=True)
            shutil.copy(os.path.join(root, name), os.path.join(self.dir, name))
        out = ("tests/", "examples/", "bench/", "tools/", "docs/")
        self.files = [n for n in names if n.endswith(".c") and not n.startswith(out)]
        self.guards = self.charters()
        self.seconds, self.bad = {}, set()
        self.env = dict(os.environ, JOT_CACHE_DIR=self.dir + "/cache", TMPDIR=self.dir + "/tmp")
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            self.env.pop(name, None)
        os.mkdir(self.dir + "/cache")
        os.mkdir(self.dir + "/tmp")
        self.make("m/libjot.a")
        for which in ("old", "new"):
            os.mkdir(self.dir + "/m/" + which)
            self.link(which)
        # programs are linked against this archive: a script that names the shared library instead
        with open(self.dir + "/m/libjot.a", "w") as f:
            f.write("INPUT(%s/m/old/libjot.so)\n" % self.dir)

    def make(self, *targets):
        subprocess.run(["make", "-s", "CFLAGS=" + FLAGS, "B=m", *targets], cwd=self.dir, env=self.env, check=True)

    def link(self, which):
        objects = ["m/" + f[:-2] + ".o" for f in self.files]
        subprocess.run(["cc", "-shared", "-Wl,-soname,libjot.so", "-o", "m/%s/libjot.so" % which,
                        *[o for o in objects if os.path.exists(self.dir + "/" + o)], "-ldl", "-lpthread", "-lm"],
                       cwd=self.dir, check=True)

    def charters(self):
        """For each file's name the programs that guard it."""
        guards = {}
        for name in sorted(os.listdir(self.dir + "/tests")):
            if not (name.startswith("test_") and name.endswith(".c")):
                continue
            with open(self.dir + "/tests/" + name) as f:
                m = re.search(r"\* Guards:(.*?)\*/", f.read(8000), re.S)
            for word in re.findall(r"[\w/]+\.c", m.group(1) if m else ""):
                guards.setdefault(word, []).append(name[:-2])
        return guards

    def run(self, program, which, limit):
        """Does it pass, with the library as it was or as it is? Only programs of devices look for some."""
        if not os.path.exists(self.dir + "/m/tests/" + program):
            os.utime(self.dir + "/m/libjot.a")  # it is newer than all objects
            self.make("m/tests/" + program)
        env = dict(self.env, LD_LIBRARY_PATH=self.dir + "/m/" + which)
        if program not in DEVICES:
            env["OCL_ICD_VENDORS"] = "/no/devices"
        start = time.time()
        p = subprocess.Popen(["m/tests/" + program], cwd=self.dir, env=env, start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            ok = p.wait(limit) == 0
        except subprocess.TimeoutExpired:
            ok = False
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        if ok:
            self.seconds[program] = time.time() - start
        return ok

    def notices(self, program):
        """Does it fail with the changed library, and only with that?"""
        known = self.seconds.get(program)
        if known is None and program in self.bad or self.run(program, "new", 10 * known + 10 if known else PATIENCE):
            return False
        if known is None and not self.run(program, "old", PATIENCE):
            self.bad.add(program)
            print("%s fails on the tree as it is: left out" % program, flush=True)
            return False
        return True

    def programs(self, name, campaigns):
        """Who is asked about a file: its guards, the fastest first, then the fast ones, then campaigns."""
        guards = self.guards.get(name, [])
        asked = [g for g in guards if g not in CAMPAIGNS]
        fast = [g for g in FAST if g not in guards]
        time_of = lambda g: self.seconds.get(g, 1)
        return sorted(asked, key=time_of) + sorted(fast, key=time_of) + (CAMPAIGNS if campaigns else [])

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
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--mutants", type=int, default=100)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--only", default="", help="files whose path has this word")
    ask.add_argument("--minutes", type=float, default=0, help="stop after so many")
    ask.add_argument("--campaigns", action="store_true", help="ask the programs that draw much, too")
    how = ask.parse_args()
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
                for program in copy.programs(name, how.campaigns):
                    if copy.notices(program):
                        end = "noticed"
                        what += "  [%s]" % program
                        break
            counts[end] += 1
            if end == "left":
                left.append(what)
            print("%-8s %s" % (end, what), flush=True)
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
