#!/usr/bin/env python3
"""Writes tests/ref/nets.h: layers by PyTorch, with the gradients of their parameters by name, and
losses of networks that it trains some steps, in f64.

Run by hand, never by the tests:  pip install numpy torch;  python3 tests/ref/nets.py

Inputs are fill(1), of make.py. Parameter k of the sorted names is fill(20 + k) / 2 / sqrt(fan-in)
where its rank is above 1, else fill(20 + k) / 20, to which a norm's weight adds 1. Gradients are
those of sum(y * fill(9)).
"""
import math
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_default_dtype(torch.float64)


def fill(seed, *shape):
    k = np.arange(math.prod(shape), dtype=np.int64)
    return torch.tensor((((389 * k + 71 * seed) % 1009) / 256 - 2 + 1 / 512).reshape(shape))


def tokens(*shape):
    k = torch.arange(math.prod(shape))
    return ((7 * k + k // 5 * 3) % 11).reshape(shape)


def set_parameters(m):
    named = sorted(m.named_parameters())
    for k, (name, p) in enumerate(named):
        v = fill(20 + k, *p.shape)
        if p.dim() > 1:
            v = v / 2 / math.sqrt(p.numel() / p.shape[0])
        else:
            v = v / 20 + (name.endswith('weight'))
        p.data = v
    return named


# ---- layers ---------------------------------------------------------------------------------

class Heads(nn.Module):
    """Attention with fewer heads of k and v, turned by positions."""
    def __init__(s, w, heads, kv, base):
        super().__init__()
        s.heads, s.kv, s.base = heads, kv, base
        s.in_proj_weight = nn.Parameter(torch.zeros((heads + 2 * kv) * (w // heads), w))
        s.in_proj_bias = nn.Parameter(torch.zeros((heads + 2 * kv) * (w // heads)))
        s.out_proj = nn.Linear(w, w)

    def turn(s, x):
        t, d = x.shape[-2:]
        a = torch.arange(t)[:, None] / s.base ** (torch.arange(d // 2) * 2 / d)
        a, b, c, n = x[..., :d // 2], x[..., d // 2:], a.cos(), a.sin()
        return torch.cat([a * c - b * n, b * c + a * n], -1)

    def forward(s, x):
        b, t, w = x.shape
        d = w // s.heads
        q, k, v = (x @ s.in_proj_weight.T + s.in_proj_bias).split([w, s.kv * d, s.kv * d], 2)
        q, k, v = (y.reshape(b, t, -1, d).transpose(1, 2) for y in (q, k, v))
        k, v = (y.repeat_interleave(s.heads // s.kv, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(s.turn(q), s.turn(k), v, is_causal=True)
        return s.out_proj(y.transpose(1, 2).reshape(b, t, w))


def attention(x, m, memory=None, causal=False):
    other = x if memory is None else memory
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if causal else None
    return m(x, other, other, attn_mask=mask, need_weights=False)[0]


def lengths(m, x):
    x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2]), enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(m(x)[0], total_length=4)[0]


ENCODER = dict(d_model=8, nhead=2, dim_feedforward=12, dropout=0, batch_first=True)
IMAGE = (2, 4, 5, 5)
LAYERS = [
    ('linear', (2, 3, 4), nn.Linear(4, 5), None),
    ('linear_plain', (3, 4), nn.Linear(4, 5, bias=False), None),
    ('conv_1', (2, 3, 7), nn.Conv1d(3, 4, 3, 2, 1), None),
    ('conv_2', IMAGE, nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), groups=2), None),
    ('conv_3', (1, 2, 4, 4, 4), nn.Conv3d(2, 3, 2, bias=False), None),
    ('transposed_1', (2, 3, 4), nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), None),
    ('transposed_2', IMAGE, nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), None),
    ('transposed_3', (1, 2, 2, 2, 2), nn.ConvTranspose3d(2, 3, 2, 2), None),
    ('batch_norm', IMAGE, nn.BatchNorm2d(4), None),
    ('batch_norm_eval', IMAGE, nn.BatchNorm2d(4), lambda m, x: (m(x), m.eval()(x))[1]),
    ('instance_norm', IMAGE, nn.InstanceNorm2d(4, affine=True), None),
    ('group_norm', IMAGE, nn.GroupNorm(2, 4), None),
    ('layer_norm', (2, 3, 6), nn.LayerNorm(6), None),
    ('rms_norm', (2, 3, 6), nn.RMSNorm(6, eps=1e-5), None),
    ('embedding', None, nn.Embedding(11, 3), lambda m, x: m(tokens(2, 5))),
    ('rnn', (4, 2, 3), nn.RNN(3, 5, nonlinearity='relu'), lambda m, x: m(x)[0]),
    ('gru', (4, 2, 3), nn.GRU(3, 5, 2, bidirectional=True), lambda m, x: m(x)[0]),
    ('lstm', (4, 2, 3), nn.LSTM(3, 5, 2, bias=False), lambda m, x: m(x)[0]),
    ('lstm_lengths', (4, 2, 3), nn.LSTM(3, 5, 2, bidirectional=True), lengths),
    ('gru_states', (4, 2, 3), nn.GRU(3, 5, 2), lambda m, x: m(x, fill(8, 2, 2, 5))[1]),
    ('attention', (2, 4, 8), nn.MultiheadAttention(8, 2, batch_first=True),
     lambda m, x: attention(x, m)),
    ('attention_causal', (2, 4, 8), nn.MultiheadAttention(8, 2, batch_first=True),
     lambda m, x: attention(x, m, causal=True)),
    ('attention_cross', (2, 4, 8), nn.MultiheadAttention(8, 4, bias=False, batch_first=True),
     lambda m, x: attention(x, m, fill(8, 2, 3, 8))),
    ('attention_grouped', (2, 4, 8), Heads(8, 4, 2, 100), None),
    ('encoder', (2, 4, 8), nn.TransformerEncoderLayer(**ENCODER), None),
    ('encoder_first', (2, 4, 8),
     nn.TransformerEncoderLayer(norm_first=True, activation='gelu', **ENCODER), None),
    ('decoder', (2, 4, 8), nn.TransformerDecoderLayer(**ENCODER),
     lambda m, x: m(x, fill(8, 2, 3, 8),
                    tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))),
]


def layer(name, shape, m, f):
    named = set_parameters(m)
    x = fill(1, *shape or (1,)).requires_grad_()
    y = f(m, x) if f else m(x)
    (y * fill(9, *y.shape)).sum().backward()
    grads = torch.cat([p.grad.flatten() for _, p in named])
    dx = x.grad.flatten() if x.grad is not None else torch.zeros(0)
    buffers = sorted((n, b) for n, b in m.named_buffers() if b.is_floating_point())
    return (name, [n for n, _ in named], y.flatten(), dx, grads, [n for n, _ in buffers],
            torch.cat([b.flatten() for _, b in buffers] or [torch.zeros(0)]))


# ---- networks that are trained ----------------------------------------------------------------

class Cnn(nn.Module):
    def __init__(s):
        super().__init__()
        s.conv1, s.bn1 = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8)
        s.conv2, s.bn2 = nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16)
        s.fc = nn.Linear(16, 10)

    def forward(s):
        x = F.max_pool2d(s.bn1(s.conv1(fill(1, 8, 1, 12, 12))).relu(), 2)
        x = s.bn2(s.conv2(x)).relu().mean((2, 3))
        return F.cross_entropy(s.fc(x), torch.arange(8) * 3 % 10)


class Language(nn.Module):
    def __init__(s):
        super().__init__()
        s.embed, s.gru, s.head = nn.Embedding(11, 16), nn.GRU(16, 24, 2), nn.Linear(24, 11)

    def forward(s):
        x = tokens(11, 4)
        y = s.head(s.gru(s.embed(x[:-1]))[0])
        return F.cross_entropy(y.flatten(0, 1), x[1:].flatten())


class Vit(nn.Module):
    def __init__(s):
        super().__init__()
        s.patch, s.pos = nn.Conv2d(3, 32, 4, 4), nn.Parameter(torch.zeros(16, 32))
        s.block = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, 0, F.gelu, batch_first=True, norm_first=True)
            for _ in range(2))
        s.norm, s.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(s):
        x = s.patch(fill(1, 4, 3, 16, 16)).flatten(2).transpose(1, 2) + s.pos
        for b in s.block:
            x = b(x)
        return F.cross_entropy(s.head(s.norm(x).mean(1)), torch.arange(4) * 3 % 10)


class Unet(nn.Module):
    def __init__(s):
        super().__init__()
        pair = lambda i, o: nn.ModuleDict({'conv': nn.Conv2d(i, o, 3, padding=1),
                                           'norm': nn.GroupNorm(4, o)})
        s.down, s.deep, s.back = pair(1, 8), pair(8, 16), pair(16, 8)
        s.up, s.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(8, 1, 1)

    def forward(s):
        f = lambda m, x: F.silu(m['norm'](m['conv'](x)))
        x = fill(1, 2, 1, 16, 16)
        a = f(s.down, x)
        b = s.up(f(s.deep, F.max_pool2d(a, 2)))
        return F.mse_loss(s.out(f(s.back, torch.cat([a, b], 1))), x.flip(3))


def matrices(m):
    return [{'params': [p for p in m.parameters() if p.dim() > 1]},
            {'params': [p for p in m.parameters() if p.dim() < 2], 'weight_decay': 0}]


NETS = [
    ('cnn', Cnn(), lambda m: torch.optim.SGD(m.parameters(), 0.05, 0.9, weight_decay=1e-3), 0, 1),
    ('language', Language(), lambda m: torch.optim.Adam(m.parameters(), 0.01), 0.5, 1),
    ('vit', Vit(), lambda m: torch.optim.AdamW(matrices(m), 0.002, weight_decay=0.1), 0, 1),
    ('unet', Unet(), lambda m: torch.optim.RMSprop(m.parameters(), 0.002), 0, 2),
]
STEPS = 8


def train(name, m, optimiser, clip, accumulate):
    named = set_parameters(m)
    o, losses = optimiser(m), []
    for step in range(STEPS):
        loss = m()
        (loss / accumulate).backward()
        if (step + 1) % accumulate == 0:
            if clip:
                nn.utils.clip_grad_norm_(m.parameters(), clip)
            o.step()
            o.zero_grad()
        losses.append(loss.item())
    return name, [n for n, _ in named], losses


# ---- text -------------------------------------------------------------------------------------

def wrap(items):
    lines, line = [], '    '
    for item in items:
        if len(line) + len(item) + 1 > 100:
            lines.append(line.rstrip())
            line = '    '
        line += item + ', '
    return '\n'.join(lines + [line.rstrip().rstrip(',')])


def numbers(name, values):
    items = ['%.12g' % float(v) for v in torch.as_tensor(values).detach()] or ['0']
    return 'static const double %s[] = {\n%s\n};\n' % (name, wrap(items))


def strings(name, values):
    items = ['"%s"' % v for v in values] or ['NULL']
    return 'static const char *const %s[] = {\n%s\n};\n' % (name, wrap(items))


out = ['/* nets.h - layers and networks by PyTorch: values, gradients, losses. Written by '
       'tests/ref/nets.py. */\n#ifndef REF_NETS_H\n#define REF_NETS_H\n#include <stddef.h>\n']
rows = []
for case in LAYERS:
    name, names, y, dx, grads, buffers, values = layer(*case)
    tag = 'ref_' + name
    out += [strings(tag + '_names', names), numbers(tag + '_y', y), numbers(tag + '_dx', dx),
            numbers(tag + '_grads', grads), strings(tag + '_buffers', buffers),
            numbers(tag + '_running', values)]
    rows.append('{"%s", %d, %s_names, %d, %s_y, %d, %s_dx, %s_grads, %d, %s_buffers, %s_running}'
                % (name, len(names), tag, len(y), tag, len(dx), tag, tag, len(buffers), tag, tag))
out.append('''/* y, its gradient by x (ndx 0: there is none), those by the parameters one after the
 * other by their names, and the buffers of those names afterwards */
typedef struct {
    const char *name;
    int params; const char *const *names;
    int ny; const double *y;
    int ndx; const double *dx;
    const double *grads;
    int buffers; const char *const *buffer_names;
    const double *running;
} RefLayer;
static const RefLayer ref_layers[] = {
    %s
};
''' % ',\n    '.join(rows))
rows = []
for net in NETS:
    name, names, losses = train(*net)
    out += [strings('ref_%s_names' % name, names), numbers('ref_%s_losses' % name, losses)]
    rows.append('{"%s", %d, ref_%s_names, ref_%s_losses}' % (name, len(names), name, name))
out.append('enum { REF_STEPS = %d };\n' % STEPS)
out.append('''typedef struct {
    const char *name;
    int params; const char *const *names;
    const double *losses;
} RefNet;
static const RefNet ref_nets[] = {
    %s
};
#endif
''' % ',\n    '.join(rows))
with open(os.path.join(HERE, 'nets.h'), 'w') as f:
    f.write('\n'.join(out))
