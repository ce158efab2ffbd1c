"""Drawn workloads (bench/drawn/drawn.h says how a line reads) in PyTorch, and the check of jot's values:

an output of jot's is compared with the same line computed in f64, element by element, beside PyTorch's own:
it may be eight times as far off as that, or some places of its dtype of the largest element. A gradient
through an edge (relu, a maximum) turns where rounding does; there the norm of the difference is compared.
Whole numbers must be equal.
"""
import math, os
import numpy as np
import torch, torch.nn.functional as F

DTYPES = {n: getattr(torch, t) for n, t in dict(bool="bool", i8="int8", i16="int16", i32="int32", i64="int64", u8="uint8",
          u16="uint16", u32="uint32", u64="uint64", f16="float16", bf16="bfloat16", f32="float32", f64="float64").items()}
PLACES = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
EDGES = {"relu", "maximum", "minimum", "max", "min", "abs", "max_pool2d"}


def mixed(x):
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9e3779b97f4a7c15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
        return x ^ x >> np.uint64(31)


def leaf(key, dtype, shape, a=0, b=0):
    h = (mixed(np.uint64(key << 32) | np.arange(math.prod(shape), dtype=np.uint64)) >> np.uint64(40)).astype(np.int64)
    x = h % a + b if not dtype.is_floating_point else np.ldexp((h - (1 << 23)).astype(np.float64), a - 22)
    return torch.from_numpy(x).to(dtype).reshape(shape).to(os.environ.get("BENCH_DEVICE") or "cpu")


def reduce(f):
    return lambda v, dims: f(v[0], dims)


def group_norm(v, g):
    return F.group_norm(v[0], g[0], v[1], v[2])


def batch_norm(v):
    return F.batch_norm(v[0], None, None, v[1], v[2], True) if len(v) == 3 else F.batch_norm(v[0], v[3], v[4], v[1], v[2])


def pool(f):
    return lambda v, n: f(v[0], n[:2], n[2:4], n[4:])


def pad(v, before, after):
    return F.pad(v[0], [n for p in list(zip(before, after))[::-1] for n in p])


OPS = {
    "relu": lambda v: F.relu(v[0]), "gelu": lambda v: F.gelu(v[0]), "gelu_tanh": lambda v: F.gelu(v[0], approximate="tanh"),
    "softplus": lambda v: F.softplus(v[0]),
    "cross_entropy": lambda v: F.cross_entropy(*v), "select": lambda v: torch.where(*v), "linear": lambda v: v[0] @ v[1] + v[2],
    "sum": reduce(torch.sum), "mean": reduce(torch.mean), "max": reduce(torch.amax), "min": reduce(torch.amin),
    "softmax": lambda v, d: torch.softmax(v[0], d[0]), "log_softmax": lambda v, d: torch.log_softmax(v[0], d[0]),
    "argmax": lambda v, d: v[0].argmax(d[0]), "max_pool2d": pool(F.max_pool2d), "avg_pool2d": pool(F.avg_pool2d),
    "transpose": lambda v, d: v[0].permute(d), "reshape": lambda v, s: v[0].reshape(s),
    "flip": lambda v, d: v[0].flip(d), "scale": lambda v, n: v[0] * (n[0] / 8),
    "offset": lambda v, n: v[0] + n[0] / 8,
    "concat": lambda v, d: torch.cat(v, d[0]), "gather": lambda v, d: torch.index_select(v[0], d[0], v[1]), "pad": pad,
    "slice": lambda v, a, b, s: v[0][tuple(slice(*t) for t in zip(a, b, s))], "swap": lambda v, d: v[0].transpose(*d),
    "layer_norm": lambda v: F.layer_norm(v[0], v[0].shape[-1:], v[1], v[2]), "instance_norm": lambda v: F.instance_norm(v[0]),
    "group_norm": group_norm, "batch_norm": batch_norm,
    "conv2d": lambda v, n: F.conv2d(v[0], v[1], None, n[:2], n[2:4], n[4:6], n[6]),
    "attention": lambda v: F.scaled_dot_product_attention(*v), "rnn_cell": lambda v: torch.rnn_tanh_cell(*v),
    "gru_cell": lambda v: torch.gru_cell(*v), "cast": lambda v, n: v[0].to(list(DTYPES.values())[n[0]]),
}
for name in "neg abs exp tanh sigmoid sqrt rsqrt log sin erf square add sub mul div maximum minimum lt matmul".split():
    OPS[name] = lambda v, f=getattr(torch, name): f(*v)


class Line:
    def __init__(self, steps):
        self.steps = []
        for step in steps.strip().split("; "):
            op, *words = step.split(" ")
            self.steps.append((op, [int(w[1:]) for w in words if w[0] == "v"],
                               [[int(n) for n in w.split(",")] for w in words if w[0] != "v"]))
        self.grad = any(op == "grad" for op, _, _ in self.steps)

    def inputs(self, wide=False):
        leaves = [(DTYPES[op], lists) for op, _, lists in self.steps if op in DTYPES]
        made = [leaf(k, dtype, lists[0], *lists[1]) for k, (dtype, lists) in enumerate(leaves)]
        return [x.double() if wide and x.is_floating_point() else x for x in made]

    def run(self, inputs):
        v, at = [], 0
        for op, ins, lists in self.steps:
            if op in DTYPES:
                v.append(inputs[at])
                at += 1
            elif op == "grad":
                v += torch.autograd.grad(v[ins[0]], [v[k] for k in ins[1:]])
            elif op == "out":
                return [v[k].contiguous() for k in ins]
            else:
                v.append(OPS[op]([v[k] for k in ins], *lists))

    def function(self, inputs, compiled=False):
        asked = {k for op, ins, _ in self.steps if op == "grad" for k in ins[1:]}
        value = at = 0
        for op, ins, _ in self.steps:
            if op in DTYPES:
                inputs[at].requires_grad_(value in asked)
                at += 1
            value += len(ins) - 1 if op == "grad" else op != "out"
        f = torch.compile(self.run) if compiled and not self.grad else self.run
        def run():
            if self.grad:
                return f(inputs)
            with torch.no_grad():
                return f(inputs)
        return run


def off(line, k, got, own, exact):
    """What is wrong with jot's output number k; '' where nothing is."""
    if not own.is_floating_point():
        bad = int((got != own).sum())
        return f"output {k}: {bad} of {own.numel()} differ" if bad else ""
    if not own.numel():
        return ""
    got, own, exact, place = got.double(), own.detach().double(), exact.detach(), PLACES[own.dtype]
    if not torch.isfinite(got).all() and torch.isfinite(own).all():
        return f"output {k}: not finite"
    edges = line.grad and any(op in EDGES for op, _, _ in line.steps)
    size = torch.linalg.vector_norm if edges else lambda x: x.abs().max()
    scale = float(size(exact)) or 1.0
    mine, theirs = float(size(got - exact)) / scale, float(size(own - exact)) / scale
    bound = 8 * theirs + (2e-2 if edges else (16 if place > 1e-5 else 256) * place)
    return "" if mine <= bound else f"output {k}: {mine:.2g} off, {bound:.2g} allowed"


def check(line, path, own):
    exact, at, wrong = line.function(line.inputs(True))(), 0, []
    data = open(path, "rb").read()
    os.unlink(path)
    for k, (y, e) in enumerate(zip(own, exact)):
        n = y.numel() * y.element_size()
        if at + n > len(data):
            return f"output {k}: too short"
        got = torch.from_numpy(np.frombuffer(bytearray(data[at:at + n]), np.uint8)).view(y.dtype).reshape(y.shape)
        at += n
        wrong.append(off(line, k, got, y.cpu(), e.cpu())) # on the host, wherever they were made
    return "; ".join(w for w in wrong if w) or ("" if at == len(data) else "too long")


def workloads(path, threads, compiled):
    """The lines of a file by name. A function's `more` says what the check of jot's values found."""
    def builder(name, steps):
        def build():
            line = Line(steps)
            run = line.function(line.inputs(), compiled)
            values = os.path.join(os.environ.get("BENCH_VALUES", "/none"), f"{name}.{threads}")
            if os.path.exists(values):
                run.more = {"values": check(line, values, run())}
            return run
        return build
    all = {}
    for text in open(path):
        name, steps = text.split(" ", 1)
        for n in (name, name + "_compiled"):
            all[n] = builder(n, steps)
    return all
