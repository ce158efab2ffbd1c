"""JAX (XLA) on the CPU over the workloads of bench/, each under jax.jit; names and sizes are the same. Needs jax and
numpy. XLA takes a thread for each processor that it may run on.

    jax_peer.py [--threads T] [pattern...]       one JSON line each
    jax_peer.py ... --serve                      answers 'name seconds' lines (bench.c, MODES=jax)

Workloads named _bwd return the weighted sum and its gradients (value_and_grad), as torch_peer.py does.
"""

import argparse
import functools
import math
import os
import time

ap = argparse.ArgumentParser()
ap.add_argument("--mode", default="jax")
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--serve", action="store_true")
ap.add_argument("patterns", nargs="*")
args = ap.parse_args()
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])  # before XLA counts them

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from common import answer

rng = np.random.default_rng(0)


def R(*shape):
    return jnp.asarray(rng.standard_normal(shape, dtype=np.float32))


def U(*shape):
    return jnp.asarray(rng.random(shape, dtype=np.float32))


def I(n, *shape):
    return jnp.asarray(rng.integers(0, n, shape, dtype=np.int32))


relu, sig, tanh, wait, W = jax.nn.relu, jax.nn.sigmoid, jnp.tanh, jax.block_until_ready, {}


def forward(name, build):
    def b():
        f, xs = build()
        g = jax.jit(f)
        return lambda: wait(g(*xs))

    W[name] = b


def backward(name, build):
    def b():
        f, xs, need = build()
        r = R(*f(*xs).shape)
        g = jax.jit(jax.value_and_grad(lambda r, *xs: (f(*xs) * r).sum(), argnums=tuple(i + 1 for i in need)))
        return lambda: wait(g(r, *xs))

    W[name] = b


# --- matrix products and convolutions ---------------------------------------------------------
for n in (64, 256, 512, 1024, 2048):
    forward(f"gemm_{n}", lambda n=n: (jnp.matmul, (R(n, n), R(n, n))))
for nm, (m, k, n) in {
    "gemv_1024x4096": (1, 1024, 4096),
    "mlp_32x784x512": (32, 784, 512),
    "tall_100352x64x64": (100352, 64, 64),
}.items():
    forward(f"mm_{nm}", lambda m=m, k=k, n=n: (jnp.matmul, (R(m, k), R(k, n))))
forward("bmm_96x128x64x128", lambda: (jnp.matmul, (R(96, 128, 64), R(96, 64, 128))))
forward("linear_bias_relu_256", lambda: (lambda x, w, b: relu(x @ w.T + b), (R(256, 1024), R(1024, 1024), R(1024))))


def conv(x, w, st=1, p=0, g=1):
    return lax.conv_general_dilated(
        x, w, (st, st), ((p, p), (p, p)), dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=g
    )


CONV = {
    "stem7x7s2": (3, 64, 224, 7, 2, 3, 1),
    "c64_3x3_56": (64, 64, 56, 3, 1, 1, 1),
    "c128_3x3_28": (128, 128, 28, 3, 1, 1, 1),
    "c256_3x3_14": (256, 256, 14, 3, 1, 1, 1),
    "c512_3x3_7": (512, 512, 7, 3, 1, 1, 1),
    "c64_256_1x1_56": (64, 256, 56, 1, 1, 0, 1),
    "c256_128_3x3s2_56": (256, 128, 56, 3, 2, 1, 1),
    "c1024_256_1x1_14": (1024, 256, 14, 1, 1, 0, 1),
    "dw96_3x3_56": (96, 96, 56, 3, 1, 1, 96),
    "g32_128_3x3_56": (128, 128, 56, 3, 1, 1, 32),
}
for nm, (ci, co, s, k, st, p, g) in CONV.items():

    def mk(ci=ci, co=co, s=s, k=k, st=st, p=p, g=g):
        return (lambda x, w: conv(x, w, st, p, g), (R(8, ci, s, s), R(co, ci // g, k, k)))

    forward(f"conv_{nm}", mk)
    backward(f"convbwd_{nm}", lambda mk=mk: (*mk(), (0, 1)))


def C4(v):
    return v[:, None, None]


def bn(x, m, v, a, b):
    return (x - C4(m)) * C4(a * lax.rsqrt(v + 1e-5)) + C4(b)


forward(
    "conv_bn_relu_64_56",
    lambda: (
        lambda x, w, *r: relu(bn(conv(x, w, 1, 1), *r)),
        (R(8, 64, 56, 56), R(64, 64, 3, 3), R(64), abs(R(64)) + 1, R(64), R(64)),
    ),
)
# --- element-wise, reductions, normalisation --------------------------------------------------
for n in (65536, 4194304):
    forward(f"sigmoid_chain_{n}", lambda n=n: (lambda x: jnp.exp(x) / (jnp.exp(x) + 1), (R(n),)))
    forward(
        f"gelu_tanh_{n}",
        lambda n=n: (lambda x: 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))), (R(n),)),
    )
    forward(
        f"poly8_{n}",
        lambda n=n: (
            lambda x: (
                (((((((x * 0.1 + 0.2) * x + 0.3) * x + 0.4) * x + 0.5) * x + 0.6) * x + 0.7) * x + 0.8) * x + 0.9
            ),
            (R(n),),
        ),
    )
forward(
    "bn_relu_32x64x56x56", lambda: (lambda *r: relu(bn(*r)), (R(32, 64, 56, 56), R(64), abs(R(64)) + 1, R(64), R(64)))
)
forward("softmax_4096x1024", lambda: (lambda x: jax.nn.softmax(x, 1), (R(4096, 1024),)))


def norm(x, axis):
    d = x - x.mean(axis, keepdims=True)
    return d * lax.rsqrt((d * d).mean(axis, keepdims=True) + 1e-5)


forward("layernorm_4096x1024", lambda: (lambda x, a, b: norm(x, 1) * a + b, (R(4096, 1024), R(1024), R(1024))))
backward(
    "layernorm_4096x1024_bwd",
    lambda: (lambda x, a, b: (norm(x, 1) * a + b) * x, (R(4096, 1024), R(1024), R(1024)), (0, 1, 2)),
)
forward("instancenorm_8x64x56x56", lambda: (lambda x: norm(x, (2, 3)), (R(8, 64, 56, 56),)))


def normal0(x):
    m = x.mean(0, keepdims=True)
    return (x - m) / jnp.sqrt((x * x).mean(0, keepdims=True) - m * m + 1e-5)


def xent(x, t):
    return -jnp.take_along_axis(jax.nn.log_softmax(x, 1), t[:, None], 1).mean()


def pool(x, k, st, p=0):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, k, k), (1, 1, st, st), ((0, 0), (0, 0), (p, p), (p, p)))


backward("xent_4096x1000_bwd", lambda: (xent, (R(4096, 1000), I(1000, 4096)), (0,)))
ROWS = {
    "normalise_axis0": normal0,
    "sum_axis0": lambda x: x.sum(0),
    "sum_axis1": lambda x: x.sum(1),
    "sum_all": jnp.sum,
    "argmax_axis1": lambda x: x.argmax(1),
}
for nm, f in ROWS.items():
    forward(f"{nm}_4096", lambda f=f: (f, (R(4096, 4096),)))
forward("transpose_add_4096", lambda: (lambda x, y: x.T + y, (R(4096, 4096), R(4096, 4096))))


def mk():
    return (lambda x: pool(x, 3, 2, 1), (R(8, 64, 112, 112),))


forward("maxpool3x3s2_8x64x112", mk)
backward("maxpool3x3s2_8x64x112_bwd", lambda mk=mk: (*mk(), (0,)))
forward("gather_embed_8192x256", lambda: (lambda w, i: w[i], (R(30522, 256), I(30522, 8192))))
backward("gather_embed_8192x256_bwd", lambda: (lambda w, i: w[i] * 2, (R(30522, 256), I(30522, 8192)), (0,)))


# --- what the seeds measure -------------------------------------------------------------------
def ratio_iou(x1, y1, w1, h1, x2, y2, w2, h2):
    wi = jnp.minimum(x1 + w1, x2 + w2) - jnp.maximum(x1, x2)
    hi = jnp.minimum(y1 + h1, y2 + h2) - jnp.maximum(y1, y2)
    a = jnp.maximum(wi, 0) * jnp.maximum(hi, 0)
    return a / (w1 * h1 + w2 * h2 - a)


for n, m in ((100, 1000), (1000, 10000)):

    def mk(n=n, m=m):
        return (ratio_iou, [*(U(n, 1) for _ in range(4)), *(U(1, m) for _ in range(4))])

    forward(f"iou_{n}x{m}", mk)
    backward(f"iou_{n}x{m}_bwd", lambda mk=mk: (*mk(), range(8)))


def uniformity(x, t=2.0):
    s = (x * x).sum(1)
    d = jnp.maximum(s[:, None] + s[None, :] - 2 * x @ x.T, 0)
    n = x.shape[0]
    return jnp.log((jnp.exp(-t * d) * jnp.triu(jnp.ones((n, n)), 1)).sum() / (n * (n - 1) / 2))


backward(
    "uniformity_1024x128_bwd",
    lambda: (uniformity, ((lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True))(R(1024, 128)),), (0,)),
)


def caps_conv(x, w, st=2):
    r, s = w.shape[2:4]
    p, q = (x.shape[2] - r) // st + 1, (x.shape[3] - s) // st + 1
    u = [[x[:, :, a : a + st * p - 1 : st, b : b + st * q - 1 : st] for b in range(s)] for a in range(r)]
    return jnp.einsum("rsncpqil,kcrslj->nkpqij", jnp.array(u), w)


def mk():
    return (caps_conv, (R(8, 32, 14, 14, 4, 4), R(32, 32, 3, 3, 4, 4)))


forward("caps32_14", mk)
backward("caps32_14_bwd", lambda mk=mk: (*mk(), (0, 1)))
H, B, T, four = 256, 64, 32, lambda g: jnp.split(g, 4, 1)


def gates(g, c):
    i, f, o, z = four(g)
    c = sig(f) * c + sig(i) * tanh(z)
    return sig(o) * tanh(c), c


def lstm(x, h, c, w, u, b):
    return gates(x @ w + h @ u + b, c)


def milstm(x, h, c, w, u, b, al, b1, b2):
    a, z = x @ w, h @ u
    return gates(al * a * z + b1 * a + b2 * z + b, c)


def sublstm(x, h, c, w, u, b):
    i, f, o, z = four(sig(x @ w + h @ u + b))
    c = f * c + z - i
    return sig(c) - o, c


def lltm(x, h, c, w, u, b):
    i, o, z, _ = four(x @ w + h @ u + b)
    c = c + jax.nn.elu(z) * sig(i)
    return tanh(c) * sig(o), c


def scrn(x, h, s, w, u, b):
    s = 0.95 * s + 0.05 * (x @ w[:, :H])
    return sig(x @ w[:, H : 2 * H] + h @ u[:, :H] + s @ u[:, H : 2 * H] + b[:H]), s


def scanned(cell):
    return lambda xs, h, c, *p: lax.scan(lambda s, x: (cell(x, *s, *p), None), (h, c), xs)[0][0]


for cell, extra in ((lstm, 0), (milstm, 3), (sublstm, 0), (lltm, 0), (scrn, 0)):
    backward(
        f"rnn_{cell.__name__}_bwd",
        lambda cell=cell, extra=extra: (
            scanned(cell),
            (
                R(T, B, H),
                R(B, H),
                R(B, H),
                R(H, 4 * H) * 0.05,
                R(H, 4 * H) * 0.05,
                *[R(4 * H) for _ in range(1 + extra)],
            ),
            range(3, 6 + extra),
        ),
    )
forward(
    "chain2000_scalar", lambda: (lambda x: functools.reduce(lambda x, _: x * 1.0001 + 0.001, range(1000), x), (R(1),))
)


# --- networks: lists of parameters ------------------------------------------------------------
def he(o, i, *k):
    return R(o, i, *k) / math.sqrt(i * math.prod(k))


def fc(*sizes):
    return [q for i, o in zip(sizes, sizes[1:]) for q in (he(o, i), jnp.zeros(o))]


def dense(x, w, b):
    return x @ w.T + b


def layers(p, x, act=relu):
    for w, b in zip(p[:-2:2], p[1:-2:2]):
        x = act(dense(x, w, b))
    return dense(x, *p[-2:])


def lenet_p():
    return [he(6, 1, 5, 5), jnp.zeros(6), he(16, 6, 5, 5), jnp.zeros(16), *fc(400, 120, 84, 10)]


def lenet(p, x):
    x = pool(relu(conv(x, p[0], 1, 2) + C4(p[1])), 2, 2)
    x = pool(relu(conv(x, p[2]) + C4(p[3])), 2, 2)
    return layers(p[4:], x.reshape(len(x), -1))


def sgd(p, g, s):
    s = [0.9 * m + d for m, d in zip(s, g)]
    return [a - 0.01 * m for a, m in zip(p, s)], s


def adam(lr, b1=0.9, b2=0.999):
    def step(p, g, s):
        n = s[2] + 1
        ms = [b1 * m + (1 - b1) * d for m, d in zip(s[0], g)]
        vs = [b2 * v + (1 - b2) * d * d for v, d in zip(s[1], g)]
        return [a - lr * (m / (1 - b1**n)) / (jnp.sqrt(v / (1 - b2**n)) + 1e-8) for a, m, v in zip(p, ms, vs)], [
            ms,
            vs,
            n,
        ]

    return step


def train(make, loss, data, opt=sgd):
    """loss(p, stats, *data) -> (loss, new stats); parameters and the optimiser's state are donated, so updated in place"""

    def b():
        (p, stats), xs, zeros = make(), data(), lambda: [jnp.zeros_like(a) for a in p]
        st = [(p, zeros() if opt is sgd else [zeros(), zeros(), jnp.zeros(())], stats)]

        def step(st, *xs):
            (l, stats), g = jax.value_and_grad(loss, has_aux=True)(st[0], st[2], *xs)
            return (*opt(st[0], g, st[1]), stats), l

        def run(g=jax.jit(step, donate_argnums=0)):
            st[0], l = g(st[0], *xs)
            wait((st[0], l))

        return run

    return b


for b in (1, 64):
    W[f"lenet_train_b{b}"] = train(
        lambda: (lenet_p(), []), lambda p, s, x, t: (xent(lenet(p, x), t), s), lambda b=b: (R(b, 1, 28, 28), I(10, b))
    )
    forward(f"lenet_infer_b{b}", lambda b=b: (lenet, (lenet_p(), R(b, 1, 28, 28))))
W["mlp_train_b64"] = train(
    lambda: (fc(784, 512, 512, 10), []),
    lambda p, s, x, t: (xent(layers(p, x.reshape(64, -1)), t), s),
    lambda: (R(64, 1, 28, 28), I(10, 64)),
    adam(1e-3),
)


def ppo(p, s, x, act, adv, old):
    lp = jnp.take_along_axis(jax.nn.log_softmax(layers(p, x, tanh), 1), act[:, None], 1)[:, 0]
    r = jnp.exp(lp - old)
    return -jnp.minimum(r * adv, r.clip(0.8, 1.2) * adv).mean() - 0.01 * (-(jnp.exp(lp) * lp)).mean(), s


W["ppo_step_b64"] = train(lambda: (fc(4, 64, 64, 2), []), ppo, lambda: (R(64, 4), I(2, 64), R(64), R(64)), adam(3e-4))


def encoder(p, x, h):
    b, l, d = x.shape
    for i in range(0, len(p), 12):
        qw, qb, ow, ob, aw, ab, bw, bb, n1, m1, n2, m2 = p[i : i + 12]
        q, k, v = dense(x, qw, qb).reshape(b, l, 3, h, d // h).transpose(2, 0, 3, 1, 4)
        a = jax.nn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(d // h), -1) @ v
        x = norm(x + dense(a.swapaxes(1, 2).reshape(b, l, d), ow, ob), -1) * n1 + m1
        x = norm(x + dense(jax.nn.gelu(dense(x, aw, ab), approximate=False), bw, bb), -1) * n2 + m2
    return x


def encoder_p(d, n):
    return [
        q
        for _ in range(n)
        for q in (
            *fc(d, 3 * d),
            *fc(d, d),
            *fc(d, 4 * d),
            *fc(4 * d, d),
            *[f(d) for _ in "12" for f in (jnp.ones, jnp.zeros)],
        )
    ]


forward("bert_base_infer_b1_l128", lambda: (lambda p, x: encoder(p, x, 12), (encoder_p(768, 12), R(1, 128, 768))))
W["encoder4_256_train_b16_l64"] = train(
    lambda: (encoder_p(256, 4), []),
    lambda p, s, x: (jnp.square(encoder(p, x, 4)).mean(), s),
    lambda: (R(16, 64, 256),),
    adam(1e-3),
)
R18 = [(3, 64, 7, 2, 3)] + [
    c
    for i, o, st in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
    for c in [(i, o, 3, st, 1), (o, o, 3, 1, 1), *[(i, o, 1, st, 0)][: st - 1], (o, o, 3, 1, 1), (o, o, 3, 1, 1)]
]  # a stage's third unit is its shortcut


def resnet18_p():
    return [q for i, o, k, _, _ in R18 for q in (he(o, i, k, k), jnp.ones(o), jnp.zeros(o))] + fc(512, 1000), [
        f(c[1]) for c in R18 for f in (jnp.zeros, jnp.ones)
    ]


def resnet18(p, stats, x, training):
    units, new = iter(range(len(R18))), []

    def unit(x):
        n = next(units)
        x = conv(x, p[3 * n], *R18[n][3:])
        m, v = stats[2 * n : 2 * n + 2]
        k = x.size / x.shape[1]
        if training:
            a = x.mean((0, 2, 3))
            b = jnp.square(x - C4(a)).mean((0, 2, 3))
            new.extend((0.9 * m + 0.1 * a, 0.9 * v + 0.1 * b * (k / (k - 1))))
            m, v = a, b
        return bn(x, m, v, *p[3 * n + 1 : 3 * n + 3])

    x = pool(relu(unit(x)), 3, 2, 1)
    for s in range(8):
        y = unit(relu(unit(x)))
        x = relu(y + (unit(x) if s in (2, 4, 6) else x))
    return dense(x.mean((2, 3)), *p[-2:]), new


def resnet18_loss(p, s, x, t):
    y, s = resnet18(p, s, x, True)
    return xent(y, t), s


for b in (1, 8):
    forward(
        f"resnet18_infer_b{b}",
        lambda b=b: (lambda p, s, x: resnet18(p, s, x, False)[0], (*resnet18_p(), R(b, 3, 224, 224))),
    )
W["resnet18_train_b8"] = train(resnet18_p, resnet18_loss, lambda: (R(8, 3, 224, 224), I(1000, 8)))

W.update({f"{name}_compiled": build for name, build in W.items()})  # of functions: it has nothing else


def prepared(name):
    """The workload's function, called once, and the seconds that took: tracing and compilation."""
    t = time.perf_counter()
    fn = W[name]()
    fn()
    return fn, time.perf_counter() - t


answer(W, prepared, "jax", args)
