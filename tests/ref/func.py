"""Values of torch.func for tests/test_vmap.c: tests/ref/func.h.

Run by hand, never by the tests:  pip install numpy torch;  python3 tests/ref/func.py
"""
import os
import numpy as np
import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from make import array, fill

torch.set_default_dtype(torch.float64)


def t(seed, *shape):
    return torch.tensor(fill(seed, int(np.prod(shape)))).reshape(shape)


def net(w, b, x):
    return torch.tanh(x @ w + b)


def loss(w, b, x, y):
    return ((torch.softmax(net(w, b, x), 0) - y) ** 2).sum()


w, b, xs, ys = t(1, 4, 3), t(2, 3), t(3, 5, 4), t(4, 5, 3)
x, v = xs[0], t(5, 4)
ws = t(6, 2, 4, 3)
sample = vmap(grad(loss, (0, 1)), (None, None, 0, 0))(w, b, xs, ys)
order = lambda x: torch.sort(torch.cumsum(x, 0) * x)[0]
VALUES = [
    ('sample_w', sample[0]), ('sample_b', sample[1]),
    ('hessian', hessian(lambda x: loss(w, b, x, ys[0]))(x)),
    ('jacobian', jacrev(lambda x: net(w, b, x))(x)),
    ('forward', jacfwd(lambda x: net(w, b, x))(x)),
    ('tangent', jvp(lambda x: order(x), (x,), (v,))[1]),
    ('hessians', vmap(hessian(lambda x: loss(w, b, x, ys[0])))(xs)),
    ('ensemble', vmap(vmap(net, (None, None, 0)), (0, None, None), 1)(ws, b, xs)),
]

if __name__ == '__main__':
    out = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'func.h'), 'w')
    out.write('/* func.h - made by func.py: values of torch.func (PyTorch %s). */\n' %
              torch.__version__.split('+')[0])
    out.write('#ifndef REF_FUNC_H\n#define REF_FUNC_H\n\n')
    for name, value in VALUES:
        out.write(array('func_' + name, value.detach().numpy().reshape(-1)))
    out.write('\n#endif\n')
