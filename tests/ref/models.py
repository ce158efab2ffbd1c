#!/usr/bin/env python3
"""Writes tests/ref/models.h: results, losses and norms of gradients of the networks of
examples/models/, by PyTorch in f64 over the weights that examples/models/model.h describes.

Run by hand, never by the tests:  pip install numpy torch torchvision;  python3 tests/ref/models.py

A network's input is u(2000, i) of its shape, its labels are 3 i mod classes. Norms are those of the
gradients of all parameters, one by one, for the first ones, and of all together.
"""
import math
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.models as tv

HERE = os.path.dirname(os.path.abspath(__file__))


def fill(k, n):
    with np.errstate(over='ignore'):
        h = np.arange(n, dtype=np.uint32) + np.uint32(k * 0x9e3779b9 % 2**32)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x7feb352d)
        h = (h ^ h >> np.uint32(15)) * np.uint32(0x846ca68b)
        h ^= h >> np.uint32(16)
    return (h >> np.uint32(8)).astype(np.float64) / 8388608 - 1


def tensor(k, shape, scale, shift=0.0):
    v = (fill(k, math.prod(shape)) * scale + shift).astype(np.float32).astype(np.float64)
    return torch.tensor(v).reshape(shape)


def used(net, x):
    """Modules with parameters, in the order in which the network uses them."""
    order, hooks = [], []
    for m in net.modules():
        if list(m.parameters(recurse=False)):
            hooks.append(m.register_forward_pre_hook(lambda m, _: order.append(m)))
    with torch.no_grad():
        net.eval()(x)
    for h in hooks:
        h.remove()
    return list(dict.fromkeys(order))


def set_weights(net, x):
    params, k, runs = [], 0, 0
    for m in used(net, x):
        for name, p in m.named_parameters(recurse=False):
            norm = isinstance(m, (nn.BatchNorm2d, nn.LayerNorm))
            if p.dim() > 1:
                v = tensor(k, p.shape, math.sqrt(6 * p.shape[0] / p.numel()))
            else:
                v = tensor(k, p.shape, 0.1, 1.0 if norm and name == 'weight' else 0.0)
            p.data = v
            params.append(p)
            k += 1
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.data = tensor(1000 + runs, m.running_mean.shape, 0.1)
            m.running_var.data = tensor(1001 + runs, m.running_var.shape, 0.1, 1.0)
            runs += 2
    return params


class Lenet(nn.Sequential):
    def __init__(s):
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120),
            nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


class Mlp(nn.Sequential):
    def __init__(s):
        super().__init__(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h, s.qkv, s.o = h, nn.Linear(d, 3 * d), nn.Linear(d, d)
        s.a, s.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        s.n1, s.n2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(s, x):
        n, l, d = x.shape
        q, k, v = s.qkv(x).view(n, l, 3, s.h, d // s.h).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(d // s.h), -1) @ v
        x = s.n1(x + s.o(a.transpose(1, 2).reshape(n, l, d)))
        return s.n2(x + s.b(F.gelu(s.a(x))))


class Generator(nn.Sequential):
    def __init__(s, f=64):
        layers = []
        for i, o, st, p in ((100, 8, 1, 0), (8 * f, 4, 2, 1), (4 * f, 2, 2, 1), (2 * f, 1, 2, 1)):
            o *= f
            layers += [nn.ConvTranspose2d(i, o, 4, st, p, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
        super().__init__(*layers, nn.ConvTranspose2d(f, 3, 4, 2, 1, bias=False), nn.Tanh())


class Discriminator(nn.Sequential):
    def __init__(s, f=64):
        layers = [nn.Conv2d(3, f, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for i, o in ((f, f * 2), (f * 2, f * 4), (f * 4, f * 8)):
            layers += [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2)]
        super().__init__(*layers, nn.Conv2d(f * 8, 1, 4, 1, 0, bias=False), nn.Flatten())


class Unet(nn.Module):
    def __init__(s):
        super().__init__()
        c = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU())
        s.a, s.b = nn.Sequential(c(3, 16), c(16, 16)), nn.Sequential(c(16, 32), c(32, 32))
        s.c, s.d, s.e = nn.Sequential(c(32, 64), c(64, 64)), c(96, 32), c(48, 16)
        s.f = nn.Conv2d(16, 3, 1)

    def forward(s, x):
        up = lambda skip, x: torch.cat((skip, F.interpolate(x, scale_factor=2)), 1)
        a = s.a(x)
        b = s.b(F.max_pool2d(a, 2))
        return s.f(s.e(up(a, s.d(up(b, s.c(F.max_pool2d(b, 2)))))))


HEAD = '''/* models.h - networks by PyTorch: written by tests/ref/models.py. */

#ifndef REF_MODELS_H
#define REF_MODELS_H
#include <stdbool.h>

/* size: norm of the result; y: up to 16 of its elements, every max(1, elements / 15)th; norm: of
 * all gradients together, then of those of the first parameters */
static const struct {
    const char *name;
    bool train;
    double loss, size;
    int ny, nnorm;
    double y[16], norm[16];
} ref_models[] = {
'''


def image(n, side):
    return (n, 3, side, side)


# name: network, shape of x, training mode (None: the result alone); the loss is cross-entropy over
# several columns, else the mean of squares
CASES = {
    'lenet': (Lenet, (4, 1, 28, 28), True),
    'mlp': (Mlp, (4, 784), True),
    'resnet18_train': (lambda: tv.resnet18(weights=None), image(3, 64), True),
    'squeezenet': (lambda: tv.squeezenet1_1(weights=None), image(1, 64), False),
    'mobilenet': (lambda: tv.mobilenet_v2(weights=None), image(1, 64), False),
    'encoder': (lambda: nn.Sequential(Block(64, 4), Block(64, 4)), (2, 8, 64), True),
    'generator': (Generator, (2, 100, 1, 1), True),
    'discriminator': (Discriminator, image(2, 64), True),
    'unet': (Unet, image(2, 20), True),
    # forward only, in the long tests: test_models --all. (The gradient of resnet18 in evaluation
    # mode jumps near this input: rounding in f32 decides on which side of a ReLU a value lies.)
    'resnet18': (lambda: tv.resnet18(weights=None), image(2, 64), None),
    'resnet50': (lambda: tv.resnet50(weights=None), image(1, 64), None),
    'resnext50': (lambda: tv.resnext50_32x4d(weights=None), image(1, 64), None),
    'alexnet': (lambda: tv.alexnet(weights=None), image(1, 224), None),
    'vgg11': (lambda: tv.vgg11(weights=None), image(1, 224), None),
    'inception': (lambda: tv.inception_v3(weights=None, init_weights=False), image(1, 299), None),
}


def numbers(values):
    text, line = [], '       '
    for v in values:
        word = ' %.9g,' % v
        if len(line) + len(word) > 98:
            text.append(line)
            line = '       '
        line += word
    return '\n'.join(text + [line.rstrip(',')])


def case(name, make, shape, train):
    net = make().double()
    x = tensor(2000, shape, 1.0)
    params = set_weights(net, x)
    net.train(bool(train))
    y = net(x)
    if y.dim() == 2 and y.shape[1] > 1:
        loss = F.cross_entropy(y, torch.arange(shape[0]) * 3 % y.shape[1])
    else:
        loss = y.square().mean()
    norms = []
    if train is not None:
        norms = [g.norm().item() for g in torch.autograd.grad(loss, params)]
        norms = [math.sqrt(sum(n * n for n in norms))] + norms[:15]
    out = y.detach().reshape(-1)
    some = out[:: max(1, len(out) // 15)][:16]
    print(name, 'loss', loss.item(), 'norm', norms[:2], 'logits', some[:4].tolist())
    return '    {"%s", %s, %.9g, %.9g, %d, %d, {\n%s}, {\n%s}},\n' % (
        name, 'true' if train else 'false', loss.item(), out.norm().item(), len(some), len(norms),
        numbers(some), numbers(norms or [0]))


if __name__ == '__main__':
    torch.manual_seed(0)
    body = ''.join(case(name, *c) for name, c in CASES.items())
    with open(os.path.join(HERE, 'models.h'), 'w') as f:
        f.write(HEAD + body + '};\n\n#endif\n')
