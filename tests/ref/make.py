#!/usr/bin/env python3
"""Writes tests/ref/nn.h, ops.h and a table per file of SHELVES: values from NumPy and PyTorch for
the tests.

Run by hand, never by the tests:  pip install numpy torch;  python3 tests/ref/make.py

Inputs are not stored: fill(seed, n)[k] = ((389 k + 71 seed) mod 1009) / 256 - 2 + 1/512, exact in
f32, never 0, without equal values among 1009 neighbours (so no ties). tests/ref/fill.h has it in C.
Everything is computed in f64; gradients are those of sum(y * fill(9)).

A shelf is a file of this folder, windows.py say, with a list CASES of (name, shapes of the inputs,
function of them) and a line ABOUT; its table is windows.h, and a test reads it with cases.h.
"""
import importlib
import os
import textwrap
import numpy as np
import torch
import torch.nn.functional as F

SHELVES = ['arrays', 'layers', 'sequences', 'windows']
HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_default_dtype(torch.float64)


def fill(seed, n):
    k = np.arange(n, dtype=np.int64)
    return ((389 * k + 71 * seed) % 1009) / 256 - 2 + 1 / 512


def text(v):
    v = float(v)
    if np.isnan(v):
        return 'NAN'
    if np.isinf(v):
        return 'INFINITY' if v > 0 else '-INFINITY'
    return '%.13g' % v if v != int(v) or abs(v) > 1e15 else '%d' % int(v)


def wrap(items, indent='    '):
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 1 > 100:
            lines.append(line.rstrip())
            line = indent
        line += item + ', '
    lines.append(line.rstrip().rstrip(','))
    return '\n'.join(lines)


def array(name, values, kind='double'):
    values = np.asarray(values).reshape(-1)
    show = text if kind == 'double' else str
    return 'static const %s %s[] = {\n%s\n};\n' % (
        kind, name, wrap([show(v) for v in values] or ['0']))


# ---- compositions ---------------------------------------------------------------------------

def labels(n, c):
    return torch.arange(n) * 3 % c


def bn_train(x, g, b):
    return F.batch_norm(x, None, None, g, b, True, 0.1, 1e-5)


def running(which):
    def f(x, g, b, rm, rv):
        rm, rv = rm.detach().clone(), (rv * rv + 0.5).detach().clone()
        F.batch_norm(x.detach(), rm, rv, g, b, True, 0.1, 1e-5)
        return (rm, rv)[which]
    return f


POS = lambda v: v * v + 0.5
C = lambda v: v.reshape(1, -1, 1, 1)
CASES = [
    ('matmul_2d', [(3, 4), (4, 5)], torch.matmul),
    ('matmul_batch', [(2, 3, 4), (2, 4, 5)], torch.matmul),
    ('matmul_broadcast', [(2, 1, 3, 4), (3, 4, 2)], torch.matmul),
    ('matmul_dot', [(4,), (4,)], torch.matmul),
    ('matmul_vector_right', [(3, 4), (4,)], torch.matmul),
    ('matmul_vector_left', [(4,), (4, 5)], torch.matmul),
    ('matmul_vector_batch', [(4,), (2, 4, 3)], torch.matmul),
    ('linear', [(2, 3, 4), (4, 5), (5,)], lambda x, w, b: x @ w + b),
    ('conv_plain', [(2, 3, 6, 5), (4, 3, 3, 2)], F.conv2d),
    ('conv_all', [(1, 2, 7, 8), (3, 2, 3, 2)],
     lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2))),
    ('conv_groups', [(2, 4, 5, 5), (6, 2, 3, 3)], lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 2)),
    ('conv_depthwise', [(2, 3, 5, 6), (6, 1, 3, 3)],
     lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 3)),
    ('max_pool', [(2, 3, 6, 4)], lambda x: F.max_pool2d(x, 2)),
    ('max_pool_pad', [(2, 2, 7, 6)], lambda x: F.max_pool2d(x, 3, 2, 1)),
    ('avg_pool', [(2, 3, 6, 4)], lambda x: F.avg_pool2d(x, 2)),
    ('avg_pool_pad', [(2, 2, 7, 6)], lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 1))),
    ('relu', [(5, 7)], F.relu),
    ('gelu', [(5, 7)], F.gelu),
    ('gelu_tanh', [(5, 7)], lambda x: F.gelu(x, approximate='tanh')),
    ('softmax', [(3, 5)], lambda x: F.softmax(x, -1)),
    ('softmax_first', [(4, 3)], lambda x: F.softmax(x, 0)),
    ('softmax_middle', [(2, 4, 3)], lambda x: F.softmax(x, 1)),
    ('log_softmax', [(3, 5)], lambda x: F.log_softmax(x, -1)),
    ('cross_entropy', [(6, 5)], lambda x: F.cross_entropy(x, labels(6, 5))),
    ('mse', [(3, 4), (3, 4)], F.mse_loss),
    ('batch_norm', [(3, 2, 4, 3), (2,), (2,)], bn_train),
    ('batch_norm_flat', [(6, 4), (4,), (4,)], bn_train),
    ('batch_norm_mean', [(3, 2, 4, 3), (2,), (2,), (2,), (2,)], running(0)),
    ('batch_norm_var', [(3, 2, 4, 3), (2,), (2,), (2,), (2,)], running(1)),
    ('batch_norm_eval', [(3, 2, 4, 3), (2,), (2,), (2,), (2,)],
     lambda x, g, b, m, v: (x - C(m)) / torch.sqrt(C(POS(v)) + 1e-5) * C(g) + C(b)),
    ('layer_norm', [(3, 4, 6), (6,), (6,)], lambda x, g, b: F.layer_norm(x, (6,), g, b, 1e-5)),
    ('instance_norm', [(2, 3, 4, 5)], lambda x: F.instance_norm(x, eps=1e-5)),
    ('mlp', [(5, 3), (3, 6), (6,), (6, 2), (2,)],
     lambda x, w1, b1, w2, b2: torch.tanh(x @ w1 + b1) @ w2 + b2),
]


def shape(s):
    return '{%d, {%s}}' % (len(s), ', '.join(map(str, s)) or '0')


def compositions(out, cases=CASES):
    rows = []
    for name, shapes, f in cases:
        xs = [torch.tensor(fill(k + 1, int(np.prod(s))).reshape(s), requires_grad=True)
              for k, s in enumerate(shapes)]
        y = f(*xs)
        dy = torch.tensor(fill(9, y.numel()).reshape(tuple(y.shape)))
        out.append(array('ref_%s_y' % name, y.detach().numpy()))
        grads = []
        if y.requires_grad:
            gs = torch.autograd.grad((y * dy).sum(), xs, allow_unused=True)
            for k, g in enumerate(gs):
                if g is not None:
                    out.append(array('ref_%s_%d' % (name, k), g.numpy()))
                    grads.append('ref_%s_%d' % (name, k))
                else:
                    grads.append('NULL')
        row = '    {"%s", %d, {%s}, %s, ref_%s_y, {%s}}' % (
            name, len(shapes), ', '.join(map(shape, shapes)), shape(tuple(y.shape)), name,
            ', '.join(grads) or 'NULL')
        while len(row) > 100 and '\n' not in row:
            at = row.rfind(', ', 0, 98)
            row = row[:at + 1] + '\n     ' + row[at + 2:]
        rows.append(row)
    out.append('''/* name, inputs, their shapes, the result's, the result, gradients (NULL: none) */
typedef struct { int rank; long ext[5]; } RefShape;
typedef struct {
    const char *name;
    int inputs;
    RefShape in[5], y;
    const double *value, *grad[5];
} RefCase;
static const RefCase ref_cases[] = {
%s
};
''' % ',\n'.join(rows))


# ---- optimisers: p after each of 8 steps on sum((p a - b)^2) / 2 ------------------------------

def optimisers(out):
    a, b = torch.tensor(fill(2, 4)), torch.tensor(fill(3, 4))
    kinds = [('sgd', lambda p: torch.optim.SGD(p, 0.1)),
             ('momentum', lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)),
             ('decay', lambda p: torch.optim.SGD(p, 0.05, momentum=0.8, weight_decay=0.1)),
             ('adam', lambda p: torch.optim.Adam(p, 0.1, betas=(0.9, 0.999), eps=1e-8))]
    for name, make in kinds:
        p = torch.tensor(fill(1, 4), requires_grad=True)
        optim, path = make([p]), []
        for step in range(8):
            optim.zero_grad()
            (((p * a - b) ** 2).sum() / 2).backward()
            optim.step()
            path.append(p.detach().numpy().copy())
        out.append(array('ref_%s' % name, path))


# ---- a network of two layers: losses of 12 steps of gradient descent ---------------------------

def training(out):
    P = [torch.tensor(fill(k + 1, int(np.prod(s))).reshape(s) / 2, requires_grad=True)
         for k, s in enumerate([(1, 6), (6,), (6, 1), (1,)])]
    x = torch.tensor(fill(7, 16).reshape(16, 1) / 2)
    losses = []
    for step in range(12):
        h = torch.sigmoid(x @ P[0] + P[1])
        loss = ((h @ P[2] + P[3] - x * x) ** 2).mean()
        losses.append(loss.item())
        gs = torch.autograd.grad(loss, P)
        with torch.no_grad():
            for p, g in zip(P, gs):
                p -= 0.1 * g
    out.append(array('ref_training', losses))


# ---- element-wise operators and reductions -----------------------------------------------------

WIDE = [-30.5, -4.25, -1.5, -0.75, -0.0625, 0.0078125, 0.375, 0.5, 1.25, 2.5, 7.75, 40.5]
POSITIVE = [0.0009765625, 0.125, 0.5, 0.90625, 1.0625, 1.5, 2.75, 19.25, 1000.5, 123456.0]
UNIT = [-0.96875, -0.625, -0.25, -0.015625, 0.03125, 0.375, 0.5, 0.84375, 0.984375]
ABOVE = [1.015625, 1.25, 2.5, 9.75, 1000.5]
SMALL = [-4.25, -1.5, -0.75, -0.0625, 0.0078125, 0.375, 0.5, 1.25, 2.5, 5.5]
UNARY = [
    ('neg', 'WIDE', torch.neg), ('abs', 'WIDE', torch.abs), ('sign', 'WIDE', torch.sign),
    ('floor', 'WIDE', torch.floor), ('ceil', 'WIDE', torch.ceil), ('round', 'WIDE', torch.round),
    ('trunc', 'WIDE', torch.trunc), ('sqrt', 'POSITIVE', torch.sqrt),
    ('rsqrt', 'POSITIVE', torch.rsqrt),
    ('cbrt', 'WIDE', lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3)),
    ('exp', 'WIDE', torch.exp), ('exp2', 'WIDE', torch.exp2), ('expm1', 'WIDE', torch.expm1),
    ('log', 'POSITIVE', torch.log), ('log2', 'POSITIVE', torch.log2),
    ('log10', 'POSITIVE', torch.log10), ('log1p', 'POSITIVE', torch.log1p),
    ('sin', 'WIDE', torch.sin), ('cos', 'WIDE', torch.cos), ('tan', 'SMALL', torch.tan),
    ('asin', 'UNIT', torch.asin), ('acos', 'UNIT', torch.acos), ('atan', 'WIDE', torch.atan),
    ('sinh', 'SMALL', torch.sinh), ('cosh', 'SMALL', torch.cosh), ('tanh', 'WIDE', torch.tanh),
    ('asinh', 'WIDE', torch.asinh), ('acosh', 'ABOVE', torch.acosh),
    ('atanh', 'UNIT', torch.atanh), ('sigmoid', 'WIDE', torch.sigmoid),
    ('softplus', 'SMALL', lambda x: torch.log1p(torch.exp(x))), ('erf', 'SMALL', torch.erf),
    ('erfc', 'SMALL', torch.erfc), ('square', 'WIDE', torch.square),
    ('reciprocal', 'WIDE', torch.reciprocal),
]
PAIRS = [(a, b) for a in (-7.5, -2.25, -0.5, 0.75, 1.5, 6.25) for b in (-3.5, -0.75, 0.5, 2.25)]
PAIRS_POSITIVE = [(abs(a), b) for a, b in PAIRS]
BINARY = [
    ('add', 'PAIRS', torch.add), ('sub', 'PAIRS', torch.sub), ('mul', 'PAIRS', torch.mul),
    ('div', 'PAIRS', torch.div), ('floordiv', 'PAIRS', torch.floor_divide),
    ('mod', 'PAIRS', torch.remainder), ('fmod', 'PAIRS', torch.fmod),
    ('pow', 'PAIRS_POSITIVE', torch.pow), ('maximum', 'PAIRS', torch.maximum),
    ('minimum', 'PAIRS', torch.minimum), ('copysign', 'PAIRS', torch.copysign),
    ('hypot', 'PAIRS', torch.hypot), ('atan2', 'PAIRS', torch.atan2),
    ('eq', 'PAIRS', torch.eq), ('ne', 'PAIRS', torch.ne), ('lt', 'PAIRS', torch.lt),
    ('le', 'PAIRS', torch.le), ('gt', 'PAIRS', torch.gt), ('ge', 'PAIRS', torch.ge),
]


def gradient(y, x):
    if not y.requires_grad:
        return np.zeros(x.shape)
    g, = torch.autograd.grad(y.sum(), x, retain_graph=True, allow_unused=True)
    return np.zeros(x.shape) if g is None else g.numpy()


def elementwise(out):
    for name in ('WIDE', 'POSITIVE', 'UNIT', 'ABOVE', 'SMALL'):
        out.append(array('ref_in_%s' % name, globals()[name]))
    for name in ('PAIRS', 'PAIRS_POSITIVE'):
        for k in range(2):
            out.append(array('ref_in_%s_%s' % (name, 'ab'[k]), [p[k] for p in globals()[name]]))
    for name, inputs, f in UNARY:
        x = torch.tensor(globals()[inputs], requires_grad=True)
        y = f(x)
        out.append(array('ref_u_%s' % name, y.detach().numpy()))
        out.append(array('ref_u_%s_d' % name, gradient(y, x)))
    for name, inputs, f in BINARY:
        a = torch.tensor([p[0] for p in globals()[inputs]], requires_grad=True)
        b = torch.tensor([p[1] for p in globals()[inputs]], requires_grad=True)
        try:
            y = f(a, b)
            ga, gb = gradient(y, a), gradient(y, b)
        except RuntimeError:  # no derivative there
            y, ga, gb = f(a.detach(), b.detach()), np.zeros(len(a)), np.zeros(len(b))
        if name == 'floordiv':
            y, ga, gb = torch.floor(a / b), np.zeros(len(a)), np.zeros(len(b))
        out.append(array('ref_b_%s' % name, y.detach().numpy().astype(np.float64)))
        out.append(array('ref_b_%s_da' % name, ga))
        out.append(array('ref_b_%s_db' % name, gb))
    out.append('#define REF_UNARY(X) \\\n%s\n' % ' \\\n'.join(
        '    X(%s, %s)' % (n, i) for n, i, f in UNARY))
    out.append('#define REF_BINARY(X) \\\n%s\n' % ' \\\n'.join(
        '    X(%s, %s)' % (n, i) for n, i, f in BINARY))


INTS = [('i8', np.int8), ('i16', np.int16), ('i32', np.int32), ('i64', np.int64),
        ('u8', np.uint8), ('u16', np.uint16), ('u32', np.uint32), ('u64', np.uint64)]


def wrapped(v, t):
    bits = 8 * np.dtype(t).itemsize
    v &= (1 << bits) - 1
    return v - (1 << bits) if np.issubdtype(t, np.signedinteger) and v >> (bits - 1) else v


def shift(v, n, bits):
    return (v << n if n > 0 else v >> -n) if abs(n) < bits else (-1 if v < 0 and n < 0 else 0)


def integer_ops(t):
    bits = 8 * np.dtype(t).itemsize
    return [('add', lambda a, b: a + b), ('sub', lambda a, b: a - b), ('mul', lambda a, b: a * b),
            ('floordiv', lambda a, b: a // b if b else 0), ('mod', lambda a, b: a % b if b else 0),
            ('maximum', max), ('minimum', min),
            ('bit_and', lambda a, b: a & b), ('bit_or', lambda a, b: a | b),
            ('bit_xor', lambda a, b: a ^ b),
            ('shift_left', lambda a, b: shift(a, b, bits) if b >= 0 else 0),
            ('shift_right', lambda a, b: shift(a, -b, bits) if b >= 0 else (-1 if a < 0 else 0)),
            ('eq', lambda a, b: int(a == b)), ('lt', lambda a, b: int(a < b)),
            ('ge', lambda a, b: int(a >= b))]


def literal(v, t):
    if np.issubdtype(t, np.unsignedinteger):
        return '(int64_t)%dULL' % v if v >= 1 << 63 else '%dLL' % v
    return '(-%dLL - 1)' % (-v - 1) if v == -(1 << 63) else '%dLL' % v


def integers(out):
    rows = []
    for name, t in INTS:
        lo, hi = int(np.iinfo(t).min), int(np.iinfo(t).max)
        side = sorted({lo, hi, hi // 2 + 3, 0, 1, 2, 7, 100} | ({-1, -7} if lo else set()))
        other = [0, 1, 3, 7, hi] + ([-1, -3] if lo else [])
        pairs = [(a, b) for a in side for b in other]
        for k in range(2):
            out.append('static const int64_t ref_%s_%s[] = {\n%s\n};\n' % (
                name, 'ab'[k], wrap([literal(p[k], t) for p in pairs])))
        for op, f in integer_ops(t):
            out.append('static const int64_t ref_%s_%s[] = {\n%s\n};\n' % (
                name, op, wrap([literal(wrapped(f(a, b), t), t) for a, b in pairs])))
            rows.append('    X(%s, %s, %s)' % (name.upper(), name, op))
    out.append('/* dtype, its name, operator */\n#define REF_INTEGER(X) \\\n%s\n'
               % ' \\\n'.join(rows))


REDUCE = [('add', np.sum), ('mul', np.prod), ('max', np.max), ('min', np.min), ('mean', np.mean)]
DIMS = [('0', (0,)), ('1', (1,)), ('2', (2,)), ('02', (0, 2)), ('012', (0, 1, 2))]


def reductions(out):
    x = fill(1, 60).reshape(3, 4, 5)
    rows = []
    for op, f in REDUCE:
        for tag, dims in DIMS:
            out.append(array('ref_r_%s_%s' % (op, tag), f(x, axis=dims)))
            rows.append('    X(%s, %s, %s)' % (op.upper(), op, tag))
    for k in range(3):
        out.append(array('ref_r_argmax_%d' % k, np.argmax(x, axis=k)))
        out.append(array('ref_r_argmin_%d' % k, np.argmin(x, axis=k)))
    out.append('/* operator, its name, dims */\n#define REF_REDUCE(X) \\\n%s\n'
               % ' \\\n'.join(rows))


def write(name, note, parts):
    head = '/* %s - %s Written by tests/ref/make.py. */' % (name, note)
    out = [textwrap.fill(head, 100, subsequent_indent=' * ') + '\n']
    guard = 'REF_%s' % name.upper().replace('.', '_')
    out.append('#ifndef %s\n#define %s\n#include <math.h>\n#include <stddef.h>\n'
               '#include <stdint.h>\n' % (guard, guard))
    for part in parts:
        part(out)
    out.append('#endif\n')
    with open(os.path.join(HERE, name), 'w') as f:
        f.write('\n'.join(out))


write('nn.h', 'layers, losses, optimisers: results and gradients by PyTorch.',
      [compositions, optimisers, training])
write('ops.h', 'element-wise operators and reductions, by NumPy and PyTorch.',
      [elementwise, integers, reductions])
for shelf in SHELVES:
    m = importlib.import_module(shelf)
    write(shelf + '.h', m.ABOUT, [lambda out: compositions(out, m.CASES)])
