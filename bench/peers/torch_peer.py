"""PyTorch on the CPU over the workloads of bench/: names and sizes are the same in both.

    torch_peer.py [--mode eager|compile] [--threads T] [pattern...]      one JSON line each
    torch_peer.py ... --serve          answers 'name seconds' lines with one JSON line each (bench.c)
    torch_peer.py ... --cold name      start of the process to the first result and to full speed
"""
import argparse, math, os, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
from common import cold, emit, serve, wanted

ap = argparse.ArgumentParser()
ap.add_argument("--mode", default="eager", choices=["eager", "compile"])
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--serve", action="store_true")
ap.add_argument("--cold", default="")
ap.add_argument("patterns", nargs="*")
args = ap.parse_args()
torch.set_num_threads(args.threads)
if os.environ.get("BENCH_DEVICE"):  # cuda: everything is made there, f32 products stay f32
    torch.backends.cudnn.allow_tf32 = False
    torch.set_default_device(os.environ["BENCH_DEVICE"])
torch.manual_seed(0)
R = torch.randn
W = {}


def workload(name):
    def add(build):
        W[name] = build
    return add


def forward(name, build):
    """build() -> (function, inputs); timed without gradients."""
    def b():
        f, xs = build()
        g = torch.compile(f) if args.mode == "compile" else f
        def run():
            with torch.no_grad():
                return g(*xs)
        return run
    W[name] = b


def backward(name, build):
    """build() -> (function, inputs, which inputs need gradients); the sum of f times fixed random weights is
    computed and differentiated (a plain sum would hand compilers a constant gradient to fold)."""
    def b():
        f, xs, need = build()
        with torch.no_grad():
            r = torch.randn_like(f(*xs))
        xs = [x.requires_grad_(i in need) if torch.is_floating_point(x) else x for i, x in enumerate(xs)]
        def whole(r, *xs):
            return (f(*xs) * r).sum()
        g = torch.compile(whole) if args.mode == "compile" else whole
        wrt = [xs[i] for i in need]
        def run():
            y = g(r, *xs)
            return y, torch.autograd.grad(y, wrt)
        return run
    W[name] = b


def model(make, batch, shape, train, opt=None, loss=F.cross_entropy, classes=1000):
    def b():
        torch.manual_seed(0)
        net = make()
        x = R(batch, *shape)
        if not train:
            net.eval()
            g = torch.compile(net) if args.mode == "compile" else net
            def run():
                with torch.no_grad():
                    return g(x)
            return run
        net.train()
        t = torch.randint(0, classes, (batch,))
        o = (opt or (lambda p: torch.optim.SGD(p, lr=1e-5, momentum=0.9)))(net.parameters())
        def step(x, t):
            return loss(net(x), t)
        g = torch.compile(step) if args.mode == "compile" else step
        def run():
            o.zero_grad(set_to_none=True)
            l = g(x, t)
            l.backward()
            o.step()
            return l
        return run
    return b


# --- matrix products -------------------------------------------------------------------------
for n in (64, 256, 512, 1024, 2048):
    forward(f"gemm_{n}", lambda n=n: (torch.mm, (R(n, n), R(n, n))))
for n in (256, 2048):
    forward(f"gemm_bf16_{n}", lambda n=n: (torch.mm, (R(n, n).bfloat16(), R(n, n).bfloat16())))
    forward(f"gemm_f16_{n}", lambda n=n: (torch.mm, (R(n, n).half(), R(n, n).half())))
for n in (256, 1024):
    forward(f"gemm_i8_{n}", lambda n=n: (torch._int_mm, (R(n, n).to(torch.int8), R(n, n).to(torch.int8))))
for nm, (m, k, n) in {"gemm_bf16_1000": (1000, 1000, 1000), "mm_bf16_197x768x3072": (197, 768, 3072)}.items():
    forward(nm, lambda m=m, k=k, n=n: (torch.mm, (R(m, k).bfloat16(), R(k, n).bfloat16())))
for nm, (m, k, n) in {"gemv_1024x4096": (1, 1024, 4096), "mlp_32x784x512": (32, 784, 512), "tall_100352x64x64": (100352, 64, 64)}.items():
    forward(f"mm_{nm}", lambda m=m, k=k, n=n: (torch.mm, (R(m, k), R(k, n))))
forward("bmm_96x128x64x128", lambda: (torch.bmm, (R(96, 128, 64), R(96, 64, 128))))
forward("linear_bias_relu_256", lambda: (lambda x, w, b: F.relu(F.linear(x, w, b)), (R(256, 1024), R(1024, 1024), R(1024))))

# --- convolutions, batch 8 --------------------------------------------------------------------
CONV = {  # name: (in channels, out channels, size, kernel, stride, padding, groups)
    "stem7x7s2": (3, 64, 224, 7, 2, 3, 1), "c64_3x3_56": (64, 64, 56, 3, 1, 1, 1), "c128_3x3_28": (128, 128, 28, 3, 1, 1, 1),
    "c256_3x3_14": (256, 256, 14, 3, 1, 1, 1), "c512_3x3_7": (512, 512, 7, 3, 1, 1, 1), "c64_256_1x1_56": (64, 256, 56, 1, 1, 0, 1),
    "c256_128_3x3s2_56": (256, 128, 56, 3, 2, 1, 1), "c1024_256_1x1_14": (1024, 256, 14, 1, 1, 0, 1),
    "dw96_3x3_56": (96, 96, 56, 3, 1, 1, 96), "g32_128_3x3_56": (128, 128, 56, 3, 1, 1, 32),
}
for nm, (ci, co, s, k, st, p, g) in CONV.items():
    mk = lambda ci=ci, co=co, s=s, k=k, st=st, p=p, g=g: (lambda x, w: F.conv2d(x, w, None, st, p, 1, g), (R(8, ci, s, s), R(co, ci // g, k, k)))
    forward(f"conv_{nm}", mk)
    backward(f"convbwd_{nm}", lambda mk=mk: (*mk(), (0, 1)))
forward("conv_bn_relu_64_56", lambda: (lambda x, w, m, v, a, b: F.relu(F.batch_norm(F.conv2d(x, w, None, 1, 1), m, v, a, b)),
        (R(8, 64, 56, 56), R(64, 64, 3, 3), R(64), R(64).abs() + 1, R(64), R(64))))

# --- element-wise, reductions, normalisation --------------------------------------------------
for n in (65536, 4194304):
    forward(f"sigmoid_chain_{n}", lambda n=n: (lambda x: x.exp() / (x.exp() + 1), (R(n),)))
    forward(f"gelu_tanh_{n}", lambda n=n: (lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))), (R(n),)))
    forward(f"poly8_{n}", lambda n=n: (lambda x: ((((((((x * .1 + .2) * x + .3) * x + .4) * x + .5) * x + .6) * x + .7) * x + .8) * x + .9), (R(n),)))
forward("bn_relu_32x64x56x56", lambda: (lambda x, m, v, a, b: F.relu(F.batch_norm(x, m, v, a, b)), (R(32, 64, 56, 56), R(64), R(64).abs() + 1, R(64), R(64))))
forward("softmax_4096x1024", lambda: (lambda x: torch.softmax(x, 1), (R(4096, 1024),)))
forward("layernorm_4096x1024", lambda: (lambda x, a, b: F.layer_norm(x, (1024,), a, b), (R(4096, 1024), R(1024), R(1024))))
backward("layernorm_4096x1024_bwd", lambda: (lambda x, a, b: F.layer_norm(x, (1024,), a, b) * x, (R(4096, 1024), R(1024), R(1024)), (0, 1, 2)))
forward("instancenorm_8x64x56x56", lambda: (lambda x: F.instance_norm(x), (R(8, 64, 56, 56),)))
def normal0(x):
    m = x.mean(0, keepdim=True); return (x - m) / torch.sqrt((x * x).mean(0, keepdim=True) - m * m + 1e-5)
forward("normalise_axis0_4096", lambda: (normal0, (R(4096, 4096),)))
backward("xent_4096x1000_bwd", lambda: (lambda x, t: F.cross_entropy(x, t), (R(4096, 1000), torch.randint(0, 1000, (4096,))), (0,)))
forward("sum_axis0_4096", lambda: (lambda x: x.sum(0), (R(4096, 4096),)))
forward("sum_axis1_4096", lambda: (lambda x: x.sum(1), (R(4096, 4096),)))
forward("sum_all_4096", lambda: (lambda x: x.sum(), (R(4096, 4096),)))
forward("argmax_axis1_4096", lambda: (lambda x: x.argmax(1), (R(4096, 4096),)))
forward("transpose_add_4096", lambda: (lambda x, y: x.t() + y, (R(4096, 4096), R(4096, 4096))))
forward("maxpool3x3s2_8x64x112", lambda: (lambda x: F.max_pool2d(x, 3, 2, 1), (R(8, 64, 112, 112),)))
backward("maxpool3x3s2_8x64x112_bwd", lambda: (lambda x: F.max_pool2d(x, 3, 2, 1), (R(8, 64, 112, 112),), (0,)))
forward("gather_embed_8192x256", lambda: (lambda w, i: w[i], (R(30522, 256), torch.randint(0, 30522, (8192,)))))
backward("gather_embed_8192x256_bwd", lambda: (lambda w, i: F.embedding(i, w) * 2, (R(30522, 256), torch.randint(0, 30522, (8192,))), (0,)))

# --- what the seeds measure -------------------------------------------------------------------
def ratio_iou(x1, y1, w1, h1, x2, y2, w2, h2):
    xi = torch.max(x1, x2); yi = torch.max(y1, y2)
    wi = torch.clamp(torch.min(x1 + w1, x2 + w2) - xi, min=0); hi = torch.clamp(torch.min(y1 + h1, y2 + h2) - yi, min=0)
    a = wi * hi
    return a / (w1 * h1 + w2 * h2 - a)
def boxes(n, m):
    U = torch.rand
    return [*(U(n, 1) for _ in range(4)), *(U(1, m) for _ in range(4))]
for n, m in ((100, 1000), (1000, 10000)):
    forward(f"iou_{n}x{m}", lambda n=n, m=m: (ratio_iou, boxes(n, m)))
    backward(f"iou_{n}x{m}_bwd", lambda n=n, m=m: (ratio_iou, boxes(n, m), tuple(range(8))))
def uniformity(x, t=2.0):
    s = (x * x).sum(1); d = (s[:, None] + s[None, :] - 2 * x @ x.t()).clamp(min=0)
    n = x.shape[0]
    mask = torch.ones(n, n).triu(1)
    return (torch.exp(-t * d) * mask).sum().div(n * (n - 1) / 2).log()
backward("uniformity_1024x128_bwd", lambda: (uniformity, (F.normalize(R(1024, 128)),), (0,)))
def caps_conv(x, w, stride=2):
    # x: N,C,H,W,4,4  w: K,C,R,S,4,4 ; out[n,k,p,q,i,j] = sum c,r,s,l x[n,c,p*s+r,q*s+t,i,l] w[k,c,r,t,l,j]
    n, c, h, ww, _, _ = x.shape; k, _, r, s, _, _ = w.shape
    p, q = (h - r) // stride + 1, (ww - s) // stride + 1
    u = x.unfold(2, r, stride).unfold(3, s, stride)           # N C P Q 4 4 R S
    return torch.einsum("ncpqilrs,kcrslj->nkpqij", u, w)
CAPS = {"caps32_14": ((8, 32, 14, 14, 4, 4), (32, 32, 3, 3, 4, 4))}
for nm, (xs, ws) in CAPS.items():
    forward(nm, lambda xs=xs, ws=ws: (caps_conv, (R(*xs), R(*ws))))
    backward(nm + "_bwd", lambda xs=xs, ws=ws: (caps_conv, (R(*xs), R(*ws)), (0, 1)))

# --- recurrent cells over 32 steps, batch 64, 256 wide: forward and backward -------------------
H, B, T = 256, 64, 32
def lstm_cell(x, h, c, w, u, b):
    g = x @ w + h @ u + b
    i, f, o, z = g.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
    return torch.sigmoid(o) * torch.tanh(c), c
def milstm_cell(x, h, c, w, u, b, al, b1, b2):
    a, z = x @ w, h @ u
    g = al * a * z + b1 * a + b2 * z + b
    i, f, o, z = g.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
    return torch.sigmoid(o) * torch.tanh(c), c
def sublstm_cell(x, h, c, w, u, b):
    g = torch.sigmoid(x @ w + h @ u + b)
    i, f, o, z = g.chunk(4, 1)
    c = f * c + z - i
    return torch.sigmoid(c) - o, c
def lltm_cell(x, h, c, w, u, b):
    g = x @ w + h @ u + b
    i, o, z, _ = g.chunk(4, 1)
    c = c + F.elu(z) * torch.sigmoid(i)
    return torch.tanh(c) * torch.sigmoid(o), c
def scrn_cell(x, h, s, w, u, b):
    s = 0.95 * s + 0.05 * (x @ w[:, :H])
    h = torch.sigmoid(x @ w[:, H:2 * H] + h @ u[:, :H] + s @ u[:, H:2 * H] + b[:H])
    return h, s
def unroll(cell):
    def f(xs, h, c, *p):
        for t in range(T):
            h, c = cell(xs[t], h, c, *p)
        return h
    return f
for nm, cell, extra in (("lstm", lstm_cell, 0), ("milstm", milstm_cell, 3), ("sublstm", sublstm_cell, 0), ("lltm", lltm_cell, 0), ("scrn", scrn_cell, 0)):
    backward(f"rnn_{nm}_bwd", lambda cell=cell, extra=extra: (unroll(cell), (R(T, B, H), R(B, H), R(B, H), R(H, 4 * H) * .05, R(H, 4 * H) * .05, R(4 * H), *[R(4 * H) for _ in range(extra)]), tuple(range(3, 6 + extra))))

# --- networks ---------------------------------------------------------------------------------
class Lenet(nn.Sequential):
    def __init__(s):
        super().__init__(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
class Mlp(nn.Sequential):
    def __init__(s):
        super().__init__(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
adam = lambda p: torch.optim.Adam(p, lr=1e-3, foreach=True)
for b in (1, 64):
    W[f"lenet_train_b{b}"] = model(Lenet, b, (1, 28, 28), True, classes=10)
    W[f"lenet_infer_b{b}"] = model(Lenet, b, (1, 28, 28), False)
W["mlp_train_b64"] = model(Mlp, 64, (1, 28, 28), True, opt=adam, classes=10)
def tv(name):
    def make():
        import torchvision.models as m
        return getattr(m, name)(weights=None)
    return make
for nm in ("squeezenet1_1", "resnet18", "resnet50", "alexnet", "vgg11", "resnext50_32x4d", "mobilenet_v2", "inception_v3"):
    side = 299 if nm == "inception_v3" else 224
    for b in (1, 8):
        W[f"{nm}_infer_b{b}"] = model(tv(nm), b, (3, side, side), False)
for nm, b in (("resnet18", 8), ("resnet50", 4), ("squeezenet1_1", 8), ("vgg11", 4)):
    W[f"{nm}_train_b{b}"] = model(tv(nm), b, (3, 224, 224), True)

class Unet(nn.Module):
    def __init__(s):
        super().__init__()
        c = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU())
        s.a = nn.Sequential(c(3, 16), c(16, 16)); s.b = nn.Sequential(c(16, 32), c(32, 32)); s.c = nn.Sequential(c(32, 64), c(64, 64))
        s.d = c(96, 32); s.e = c(48, 16); s.f = nn.Conv2d(16, 3, 1)
    def forward(s, x):
        up = lambda skip, x: torch.cat((skip, F.interpolate(x, scale_factor=2)), 1)
        a = s.a(x); b = s.b(F.max_pool2d(a, 2)); x = s.c(F.max_pool2d(b, 2))
        return s.f(s.e(up(a, s.d(up(b, x)))))
for nm, train in (("infer", False), ("train", True)):
    W[f"unet_small_{nm}"] = model(Unet, 2, (3, 92, 92), train, loss=lambda y, t: y.square().mean())

class Block(nn.Module):
    def __init__(s, d=256, h=4):
        super().__init__(); s.h = h
        s.qkv = nn.Linear(d, 3 * d); s.o = nn.Linear(d, d); s.a = nn.Linear(d, 4 * d); s.b = nn.Linear(4 * d, d); s.n1 = nn.LayerNorm(d); s.n2 = nn.LayerNorm(d)
    def forward(s, x):
        B, L, D = x.shape
        q, k, v = s.qkv(x).view(B, L, 3, s.h, D // s.h).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D // s.h), -1) @ v
        x = s.n1(x + s.o(a.transpose(1, 2).reshape(B, L, D)))
        return s.n2(x + s.b(F.gelu(s.a(x))))
def encoder(d, h, n, train, b, l):
    def build():
        torch.manual_seed(0)
        net = nn.Sequential(*[Block(d, h) for _ in range(n)]); x = R(b, l, d)
        if not train:
            net.eval(); g = torch.compile(net) if args.mode == "compile" else net
            def run():
                with torch.no_grad(): return g(x)
            return run
        o = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=True)
        g = torch.compile(lambda x: net(x).square().mean()) if args.mode == "compile" else (lambda x: net(x).square().mean())
        def run():
            o.zero_grad(set_to_none=True); l = g(x); l.backward(); o.step(); return l
        return run
    return build
W["bert_base_infer_b1_l128"] = encoder(768, 12, 12, False, 1, 128)
W["encoder4_256_train_b16_l64"] = encoder(256, 4, 4, True, 16, 64)

# --- adversarial training, 64x64 images, batch 16 ----------------------------------------------
class Gen(nn.Sequential):
    def __init__(s, z=100, f=64):
        L = []
        for i, o, st, p in ((z, f * 8, 1, 0), (f * 8, f * 4, 2, 1), (f * 4, f * 2, 2, 1), (f * 2, f, 2, 1)):
            L += [nn.ConvTranspose2d(i, o, 4, st, p, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
        super().__init__(*L, nn.ConvTranspose2d(f, 3, 4, 2, 1, bias=False), nn.Tanh())
class Dis(nn.Sequential):
    def __init__(s, f=64, norm=True):
        L = [nn.Conv2d(3, f, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for i, o in ((f, f * 2), (f * 2, f * 4), (f * 4, f * 8)):
            L += [nn.Conv2d(i, o, 4, 2, 1, bias=False)] + ([nn.BatchNorm2d(o)] if norm else []) + [nn.LeakyReLU(0.2)]
        super().__init__(*L, nn.Conv2d(f * 8, 1, 4, 1, 0, bias=False), nn.Flatten())
def gan(kind, b=16):
    def build():
        torch.manual_seed(0)
        g, d = Gen(), Dis(norm=kind != "wgan_gp")
        go = torch.optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999), foreach=True); do = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999), foreach=True)
        x = R(b, 3, 64, 64)
        def dloss(x, z, e):
            f = g(z).detach(); r, k = d(x), d(f)
            if kind == "dcgan": return F.binary_cross_entropy_with_logits(r, torch.ones_like(r)) + F.binary_cross_entropy_with_logits(k, torch.zeros_like(k))
            if kind == "lsgan": return ((r - 1) ** 2).mean() + (k ** 2).mean()
            xi = (e * x + (1 - e) * f).requires_grad_()
            gr, = torch.autograd.grad(d(xi).sum(), xi, create_graph=True)
            return k.mean() - r.mean() + 10 * ((gr.flatten(1).norm(dim=1) - 1) ** 2).mean()
        def gloss(z):
            k = d(g(z))
            if kind == "dcgan": return F.binary_cross_entropy_with_logits(k, torch.ones_like(k))
            if kind == "lsgan": return ((k - 1) ** 2).mean()
            return -k.mean()
        # a second derivative inside the compiled region is not supported by AOTAutograd: compile the rest
        cd = torch.compile(dloss) if args.mode == "compile" and kind != "wgan_gp" else dloss
        cg = torch.compile(gloss) if args.mode == "compile" else gloss
        def run():
            z = R(b, 100, 1, 1); e = torch.rand(b, 1, 1, 1)
            do.zero_grad(); cd(x, z, e).backward(); do.step()
            go.zero_grad(); cg(z).backward(); go.step()
        return run
    return build
for k in ("dcgan", "lsgan", "wgan_gp"):
    W[f"gan_{k}_train_b16"] = gan(k)

# --- operators of nn.h one by one ---------------------------------------------------------------
forward("op_cumsum_rows", lambda: (lambda x: x.cumsum(1), (R(4096, 1024),)))
forward("op_cumsum_columns", lambda: (lambda x: x.cumsum(0), (R(4096, 1024),)))
backward("op_cumsum_rows_bwd", lambda: (lambda x: x.cumsum(1), (R(4096, 1024),), (0,)))
forward("op_cumsum_short", lambda: (lambda x: x.cumsum(1), (R(65536, 60),)))
forward("op_cummax_rows", lambda: (lambda x: x.cummax(1)[0], (R(4096, 1024),)))
forward("op_sort_4096x1000", lambda: (lambda x: x.sort(1)[0], (R(4096, 1000),)))
forward("op_topk_4096x1000", lambda: (lambda x: x.topk(10, 1), (R(4096, 1000),)))
forward("op_scatter_add", lambda: (lambda x, y, i: x.scatter_add(0, i[:, None].expand(8192, 256), y),
        (R(4096, 256), R(8192, 256), torch.randint(0, 4096, (8192,)))))
for nm, corners in (("op_resize", False), ("op_resize_corners", True)):
    forward(nm, lambda corners=corners: (lambda x: F.interpolate(x, size=(112, 112), mode="bilinear", align_corners=corners), (R(8, 64, 56, 56),)))
forward("op_grid_sample", lambda: (lambda x, g: F.grid_sample(x, g, align_corners=False), (R(8, 64, 56, 56), torch.rand(8, 56, 56, 2) * 2 - 1)))
forward("op_pad_reflect", lambda: (lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), (R(8, 64, 56, 56),)))
forward("op_adaptive_pool", lambda: (lambda x: F.adaptive_avg_pool2d(x, 50), (R(8, 64, 112, 112),)))
for nm, mk in {"op_conv_transpose": lambda: (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1), (R(8, 64, 56, 56), R(64, 32, 4, 4))),
               "op_conv3d": lambda: (lambda x, w: F.conv3d(x, w, None, 1, 1), (R(2, 16, 16, 28, 28), R(32, 16, 3, 3, 3))),
               "op_group_norm": lambda: (lambda x, a, b: F.group_norm(x, 8, a, b), (R(8, 64, 56, 56), R(64), R(64))),
               "op_attention_mask": lambda: (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), (R(8, 8, 256, 64), R(8, 8, 256, 64), R(8, 8, 256, 64), R(8, 1, 256, 256))),
               "op_cholesky_1024": lambda: (torch.linalg.cholesky, (definite(1, 1024),)),
               "op_cholesky_64x64": lambda: (torch.linalg.cholesky, (definite(64, 64),)),
               "op_triangular_1024": lambda: (lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), (definite(1, 1024), R(1, 1024, 1024))),
               "op_triangular_one": lambda: (lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), (definite(1, 1024), R(1, 1024, 1))),
               "op_inverse_64x64": lambda: (torch.linalg.inv, (definite(64, 64),))}.items():
    forward(nm, mk)
    need = {"op_group_norm": (0, 1, 2), "op_attention_mask": (0, 1, 2)}.get(nm, (0,) if "chol" in nm else (0, 1))
    backward(nm + "_bwd", lambda mk=mk, need=need: (*mk(), need))
def definite(count, n):
    return R(count, n, n) * (0.1 / n) + torch.eye(n)
def recurrent(make):
    net = make(H, H)
    def f(x, h, c, *p):
        return net(x, (h, c) if make is nn.LSTM else h)[0]
    return net, f, (R(T, B, H), R(1, B, H), R(1, B, H))
for nm, make in (("op_lstm", nn.LSTM), ("op_gru", nn.GRU)):
    forward(nm, lambda make=make: recurrent(make)[1:])
    def step(make=make):
        net, f, xs = recurrent(make)
        r, p = R(T, B, H), list(net.parameters())
        def run():
            y = (f(*xs) * r).sum()
            return y, torch.autograd.grad(y, p)
        return run
    W[nm + "_bwd"] = step
backward("op_ctc_bwd", lambda: (lambda x, t: F.ctc_loss(x.log_softmax(2), t, torch.full((16,), 50), torch.full((16,), 10), reduction="sum"),
         (R(50, 16, 20), torch.randint(1, 20, (16, 10))), (0,)))
def adamw():  # of the parameters of a ResNet-50
    shapes, i = [(64, 3, 7, 7), (64,), (64,)], 64
    for o, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for k in range(blocks):
            ws = [(o, i, 1, 1), (o, o, 3, 3), (4 * o, o, 1, 1)] + ([(4 * o, i, 1, 1)] if k == 0 else [])
            shapes += [s for w in ws for s in (w, w[:1], w[:1])]
            i = 4 * o
    ps = [R(*s).requires_grad_() for s in shapes + [(1000, 2048), (1000,)]]
    for p in ps:
        p.grad = torch.randn_like(p)
    return torch.optim.AdamW(ps, lr=1e-5, weight_decay=0.01, foreach=True).step
W["op_adamw_resnet50"] = adamw

# --- small and dynamic: overhead is the work ---------------------------------------------------
def chain(n):
    def f(x):
        for _ in range(n):
            x = x * 1.0001 + 0.001
        return x
    return f
forward("chain2000_scalar", lambda: (chain(1000), (R(1),)))
def ppo():
    net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    old = R(64); act = torch.randint(0, 2, (64,)); adv = R(64); x = R(64, 4); o = torch.optim.Adam(net.parameters(), lr=3e-4, foreach=True)
    def loss(x):
        lp = F.log_softmax(net(x), 1).gather(1, act[:, None])[:, 0]; r = (lp - old).exp()
        return -torch.min(r * adv, r.clamp(.8, 1.2) * adv).mean() - .01 * (-(lp.exp() * lp)).mean()
    g = torch.compile(loss) if args.mode == "compile" else loss
    def run():
        o.zero_grad(set_to_none=True); l = g(x); l.backward(); o.step(); return l
    return run
W["ppo_step_b64"] = ppo
class TreeLstm(nn.Module):
    def __init__(s, d=168):
        super().__init__(); s.d = d; s.w = nn.Linear(2 * d, 5 * d); s.x = nn.Linear(300, 3 * d); s.o = nn.Linear(d, 2)
    def node(s, t):
        if isinstance(t, int):
            i, o, z = s.x(s.emb[t])[None].chunk(3, 1); c = torch.sigmoid(i) * torch.tanh(z); return torch.sigmoid(o) * torch.tanh(c), c
        (hl, cl), (hr, cr) = s.node(t[0]), s.node(t[1])
        i, fl, fr, o, z = s.w(torch.cat((hl, hr), 1)).chunk(5, 1)
        c = torch.sigmoid(i) * torch.tanh(z) + torch.sigmoid(fl) * cl + torch.sigmoid(fr) * cr
        return torch.sigmoid(o) * torch.tanh(c), c
def treelstm():
    import random
    rnd = random.Random(0); net = TreeLstm(); net.emb = R(1000, 300); o = torch.optim.SGD(net.parameters(), lr=0.01)
    def tree(n):
        if n == 1: return rnd.randrange(1000)
        k = rnd.randint(1, n - 1); return (tree(k), tree(n - k))
    ts = [tree(rnd.randint(5, 35)) for _ in range(32)]; at = [0]
    def run():
        t = ts[at[0] % 32]; at[0] += 1
        o.zero_grad(); l = F.cross_entropy(net.o(net.node(t)[0]), torch.tensor([1])); l.backward(); o.step()
    return run
W["treelstm_train_tree"] = treelstm
def dyn_trees(count, known):
    """A thousand trees in one run; or one a run, always another, or one of so many (bench/work_dyn.c)."""
    def build():
        import random
        rnd = random.Random(0); net = TreeLstm(); net.emb = R(1000, 300); o = torch.optim.SGD(net.parameters(), lr=0.01)
        def tree(n):
            if n == 1: return rnd.randrange(1000)
            k = rnd.randint(1, n - 1); return (tree(k), tree(n - k))
        ts = [tree(rnd.randint(5, 35)) for _ in range(known)]; at = [0]
        def run():
            for _ in range(count):
                t = ts[at[0] % known] if known else tree(rnd.randint(5, 35)); at[0] += 1
                o.zero_grad(); F.cross_entropy(net.o(net.node(t)[0]), torch.tensor([1])).backward(); o.step()
        return run
    return build
W["dyn_trees_cold"], W["dyn_trees_warm"], W["dyn_trees_seen"] = dyn_trees(1000, 0), dyn_trees(1, 0), dyn_trees(1, 100)

# --- language models: a token at place 100, or 128 tokens of a prompt; caches of keys and values ---
class Llama(nn.Module):
    def __init__(s, dim, hidden, layers, heads, room, dtype):
        super().__init__()
        s.heads, s.d, s.dtype = heads, dim // heads, dtype
        s.table = torch.zeros(32000, dim, dtype=dtype)
        w = lambda o, i: torch.zeros(o, i, dtype=dtype)
        s.layers = [(w(3 * dim, dim), w(dim, dim), w(2 * hidden, dim), w(dim, hidden),
                     torch.zeros(2, 1, heads, room, dim // heads, dtype=dtype)) for _ in range(layers)]
        s.norm = torch.ones(dim, dtype=dtype)
        a = torch.arange(room)[:, None] / 10000 ** (torch.arange(s.d // 2) * 2 / s.d)
        s.turns = torch.polar(torch.ones_like(a), a)

    def turn(s, x, at, t):
        y = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * s.turns[at:at + t]
        return torch.view_as_real(y).flatten(-2).to(s.dtype)

    def forward(s, tokens, at):
        x, t, dim = F.embedding(tokens, s.table), tokens.shape[1], s.table.shape[1]
        for wqkv, wo, w13, w2, cache in s.layers:
            q, k, v = F.linear(F.rms_norm(x, (dim,), s.norm, 1e-5), wqkv).view(1, t, 3, s.heads, s.d).permute(2, 0, 3, 1, 4)
            cache[0, :, :, at:at + t], cache[1, :, :, at:at + t] = s.turn(k, at, t), v
            y = F.scaled_dot_product_attention(s.turn(q, at, t), cache[0, :, :, :at + t], cache[1, :, :, :at + t], is_causal=t > 1)
            x = x + F.linear(y.transpose(1, 2).reshape(1, t, dim), wo)
            a, b = F.linear(F.rms_norm(x, (dim,), s.norm, 1e-5), w13).chunk(2, -1)
            x = x + F.linear(F.silu(a) * b, w2)
        return F.linear(F.rms_norm(x[:, -1], (dim,), s.norm, 1e-5), s.table)


for nm, size, dtype in (("15m", (288, 768, 6, 6, 256), torch.float32), ("110m", (768, 2048, 12, 12, 1024), torch.float32),
                        ("110m_bf16", (768, 2048, 12, 12, 1024), torch.bfloat16)):
    for kind, t, at in (("token", 1, 100), ("prompt128", 128, 0)):
        forward(f"llm_{nm}_{kind}_compiled", lambda size=size, dtype=dtype, t=t, at=at:
                (Llama(*size, dtype), (torch.zeros(1, t, dtype=torch.long), at)))
for kind, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("q8_0", torch.bfloat16), ("q4_0", torch.bfloat16)):
    for rows in (1, 32):
        forward(f"llm_{kind}_{rows}_compiled", lambda rows=rows, dtype=dtype:
                (F.linear, (R(rows, 4096).to(dtype), torch.zeros(4096, 4096, dtype=dtype))))

if os.environ.get("BENCH_DRAWN"):
    import drawn
    W.update(drawn.workloads(os.environ["BENCH_DRAWN"], args.threads, args.mode == "compile"))

def prepared(name):
    """The workload's function, called once, and the seconds that took."""
    if args.mode == "compile":
        torch._dynamo.reset()
    t = time.perf_counter(); fn = W[name]()
    if os.environ.get("BENCH_DEVICE"):
        there = fn
        fn = lambda: (there(), torch.cuda.synchronize())
    fn()
    return fn, time.perf_counter() - t

peer = f"torch-{args.mode}"
if args.cold:
    cold(args.cold, peer, args.threads, W[args.cold])
elif args.serve:
    serve(W, prepared, peer, args.threads)
else:
    for name in W:
        if wanted(name, args.patterns):
            try:
                fn, first = prepared(name)
            except Exception as e:
                print(f'{{"w": "{name}", "peer": "{peer}", "threads": {args.threads}, "error": "{type(e).__name__}"}}', flush=True)
                continue
            emit(name, peer, args.threads, fn, first=first)
