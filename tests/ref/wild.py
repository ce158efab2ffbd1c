#!/usr/bin/env python3
"""Drawn networks in PyTorch: reads what `test_wild torch N FIRST` prints, builds each network once
more, and compares results, gradients and gradients of gradients, every element.

    tests/ref/wild.py build/checked/tests/test_wild N FIRST      (tests/test_wild_torch.sh does it)

An element may differ by what rounding explains (tests/bounds.h) for jot, and as much for PyTorch,
which computes here in f64 and so has next to none of it in programs of f32.
"""
import json
import math
import subprocess
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as why:
    print('skipped: no torch: %s' % why)
    print('0 passed, 0 failed, 1 skipped')
    sys.exit(0)

SEVERAL = {'jot_grad', 'jot_batch_norm_train'}
# PyTorch's own form of gelu_tanh, 1 + tanh, loses its last places far below 0
UNARY = {'relu': torch.relu, 'gelu': F.gelu,
         'gelu_tanh': lambda x: x * torch.sigmoid(math.sqrt(8 / math.pi) * (x + .044715 * x ** 3)),
         'softplus': lambda x: torch.logaddexp(x, torch.zeros_like(x)),
         'square': lambda x: x * x}
for name in 'tanh sigmoid sin erf atan abs neg'.split():
    UNARY[name] = getattr(torch, name)


def dims(v, rank):
    return list(range(rank)) if v == [None] or v is None else [d % rank for d in v]


def reduce(op, x, axes, keep):
    axes = dims(axes, x.dim())
    if op == 0:
        return x.sum(axes, keepdim=keep) if axes else x
    if op == 2:
        return x.amax(axes, keepdim=keep)
    assert op == 10
    return x.mean(axes, keepdim=keep)


def sliced(x, start, stop, step):
    return x[tuple(slice(a, b, s) for a, b, s in zip(start, stop, step))]


def padded(x, before, after):
    flat = []
    for b, a in reversed(list(zip(before, after))):
        flat += [b, a]
    return F.pad(x, flat)


def window(kind, x, n):
    size, stride, pad = n[0:2], n[2:4], n[4:6]
    stride = [s or k for s, k in zip(stride, size)]
    return kind(x, size, stride, pad)


def norm(x, scale, shift, eps, axes, shape):
    mean = x.mean(axes, keepdim=True)
    var = ((x - mean) ** 2).mean(axes, keepdim=True)
    y = (x - mean) / torch.sqrt(var + eps)
    return y if scale is None else y * scale.view(shape) + shift.view(shape)


def channels(x):
    return [0] + list(range(2, x.dim())), [1, -1] + [1] * (x.dim() - 2)


def one(op, v, n, f, lists):
    x = v[0]
    if op in UNARY:
        return UNARY[op](x)
    if op == 'conv2d':
        n = [(1, 1, 0, 0, 1, 1, 1)[k] if not a and k not in (2, 3) else a for k, a in enumerate(n)]
        return F.conv2d(x, v[1], None, n[0:2], n[2:4], n[4:6], n[6])
    return {
        'scale': lambda: x * f[0],
        'offset': lambda: x + f[0],
        'clamp': lambda: x.clamp(f[0], f[1]),
        'add': lambda: x + v[1],
        'sub': lambda: x - v[1],
        'mul': lambda: x * v[1],
        'matmul': lambda: torch.matmul(x, v[1]),
        'linear': lambda: torch.matmul(x, v[1]) + v[2],
        'reshape': lambda: x.reshape(lists[0]),
        'transpose': lambda: x.permute(lists[0]),
        'swap': lambda: x.transpose(n[0], n[1]),
        'slice': lambda: sliced(x, *lists),
        'pad': lambda: padded(x, *lists),
        'flip': lambda: x.flip(lists[0]),
        'tile': lambda: x.repeat(lists[0]),
        'concat': lambda: torch.cat(v, n[0]),
        'reduce': lambda: reduce(n[0], x, lists[0], bool(n[1])),
        'softmax': lambda: F.softmax(x, n[0]),
        'log_softmax': lambda: F.log_softmax(x, n[0]),
        'max_pool2d': lambda: window(F.max_pool2d, x, n),
        'avg_pool2d': lambda: window(F.avg_pool2d, x, n),
        'layer_norm': lambda: norm(x, v[1], v[2], f[0], [-1], [-1]),
        'instance_norm': lambda: norm(x, None, None, f[0], [2, 3], None),
        'mse': lambda: F.mse_loss(x, v[1]),
        'cross_entropy': lambda: F.cross_entropy(x, v[1].long()),
    }[op]()


def batch_norm(v, f):
    x, scale, shift, mean, var = v
    axes, shape = channels(x)
    n = x.numel() // x.shape[1]
    new = x.var(axes, unbiased=False) * (n / (n - 1) if n > 1 else math.nan)
    return [norm(x, scale, shift, f[0], axes, shape), mean * (1 - f[1]) + f[1] * x.mean(axes),
            var * (1 - f[1]) + f[1] * new]


def leaf(call):
    t = torch.tensor(call['data'], dtype=torch.float64).reshape(call['lists'][0])
    return t.requires_grad_(call['dtype'][0] == 'f')


def run(program):
    var = {}
    for call in program['calls']:
        op = call['op']
        v = [var[k] for k in call['in']]
        if op in ('leaf', 'jot_param_of'):
            got = [leaf(call)]
        elif op == 'jot_grad':
            got = torch.autograd.grad(v[0], v[1:], create_graph=True, allow_unused=True) \
                if v[0].requires_grad else [None] * (len(v) - 1)
            got = [torch.zeros_like(w) if g is None else g for g, w in zip(got, v[1:])]
        elif op == 'jot_batch_norm_train':
            got = batch_norm(v, call['f'])
        else:
            got = [one(op[4:], v, call['num'], call['f'], call['lists'])]
        var.update(zip(call['out'], got))
    return [var[k].detach().reshape(-1).tolist() for k in program['asked']]


def close(a, b, bound, most):
    """bound: of jot; most: the largest of the output, whose last places PyTorch's own sums lose."""
    if bound < 0 or (a != a and b != b) or a == b:
        return True
    return abs(a - b) <= 4 * bound + 64 * 2.0 ** -53 * most


def compare(program):
    want = run(program)
    for at, (value, bound) in enumerate(zip(program['values'], program['bounds'])):
        most = max((abs(x) for x in want[at] if math.isfinite(x)), default=0)
        for k, (a, b, r) in enumerate(zip(value, want[at], bound)):
            if not close(a, b, r, most):
                return 'output %d, element %d: %.17g, PyTorch has %.17g, +- %g' % (at, k, a, b, r)
        if len(value) != len(want[at]):
            return 'output %d: %d elements, PyTorch has %d' % (at, len(value), len(want[at]))
    return ''


def main():
    out = subprocess.Popen([sys.argv[1], 'torch'] + sys.argv[2:4], stdout=subprocess.PIPE, text=True)
    passed = failed = elements = unknown = 0
    seed = int(sys.argv[3]) - 1
    for line in out.stdout:
        if not line.endswith('\n'):
            print('failed: seed %d: jot died' % (seed + 1))
            break
        program = json.loads(line)
        seed = program['seed']
        why = compare(program)
        elements += sum(len(b) for b in program['bounds'])
        unknown += sum(x < 0 for b in program['bounds'] for x in b)
        passed += not why
        failed += bool(why)
        if why:
            print('failed: seed %d: %s' % (program['seed'], why))
    failed += out.wait() != 0
    print('%d elements, of which %d are not known' % (elements, unknown))
    print('%d passed, %d failed' % (passed, failed))
    return failed != 0


if __name__ == '__main__':
    torch.set_num_threads(1)
    sys.exit(main())
