"""The cases of tests/ref/layers.h: activations, losses and norms (make.py)."""
import torch
import torch.nn.functional as F

ABOUT = 'activations, losses, norms: results and gradients by PyTorch.'


def labels(*shape):
    n = torch.Size(shape).numel()
    return (torch.arange(n) * 3 % 5).reshape(shape)


def halves(x, gate, dim=-1):
    a, b = x.chunk(2, dim)
    return a * gate(b)


def sides(n):  # 1, -1, 1, ...
    return 1 - 2.0 * (torch.arange(n) % 2)


def spectral(w, u, steps):
    m, u = w.reshape(w.shape[0], -1), u.detach()
    with torch.no_grad():
        v = F.normalize(m.T @ u, dim=0, eps=1e-12)
        for k in range(steps):
            u = F.normalize(m @ v, dim=0, eps=1e-12)
            if k + 1 < steps:
                v = F.normalize(m.T @ u, dim=0, eps=1e-12)
    return w / torch.dot(u, m @ v), u


def ctc(x, reduction):
    return F.ctc_loss(F.log_softmax(x, 2), torch.tensor([[1, 1, 2], [3, 4, 0], [2, 2, 2]]),
                      torch.tensor([6, 4, 5]), torch.tensor([3, 2, 1]), 0, reduction)


P = torch.sigmoid
T = lambda t: torch.sigmoid(t).detach()
ACT = [(5, 8)]
PAIR = [(4, 5), (4, 5)]
ACTIVATIONS = [
    ('leaky_relu', ACT, lambda x: F.leaky_relu(x, 0.2)),
    ('prelu', [(3, 4, 2), (4,)], F.prelu),
    ('prelu_one', [(3, 4), (1,)], F.prelu),
    ('elu', ACT, lambda x: F.elu(x, 0.7)),
    ('celu', ACT, lambda x: F.celu(x, 0.5)),
    ('selu', ACT, F.selu),
    ('threshold', ACT, lambda x: F.threshold(x, 0.5, -3)),
    ('relu6', ACT, lambda x: F.relu6(5 * x)),
    ('hard_tanh', ACT, F.hardtanh),
    ('hard_sigmoid', ACT, lambda x: F.relu6(3 * x + 3) / 6),  # F.hardsigmoid's 1/6 is f32
    ('hard_swish', ACT, lambda x: F.hardswish(3 * x)),
    ('hard_shrink', ACT, lambda x: F.hardshrink(x, 0.5)),
    ('soft_shrink', ACT, lambda x: F.softshrink(x, 0.5)),
    ('silu', ACT, F.silu),
    ('mish', ACT, F.mish),
    ('softsign', ACT, F.softsign),
    ('tanh_shrink', ACT, F.tanhshrink),
    ('log_sigmoid', ACT, F.logsigmoid),
    ('glu', ACT, F.glu),
    ('glu_first', [(4, 3)], lambda x: F.glu(x, 0)),
    ('reglu', ACT, lambda x: halves(x, F.relu)),
    ('geglu', ACT, lambda x: halves(x, F.gelu)),
    ('swiglu', ACT, lambda x: halves(x, F.silu)),
    ('softmin', ACT, lambda x: F.softmin(x, -1)),
]
WEIGHT = torch.tensor([0.5, 1, 2, 0.25, 1.5])
LOSSES = [
    ('mse_none', PAIR, lambda x, t: F.mse_loss(x, t, reduction='none')),
    ('mse_sum', PAIR, lambda x, t: F.mse_loss(x, t, reduction='sum')),
    ('l1', PAIR, F.l1_loss),
    ('huber', PAIR, lambda x, t: F.huber_loss(x, t, delta=0.7)),
    ('smooth_l1', PAIR, lambda x, t: F.smooth_l1_loss(x, t, beta=0.7)),
    ('bce', PAIR, lambda x, t: F.binary_cross_entropy(P(x), T(t))),
    ('bce_weight', PAIR + [(5,)],
     lambda x, t, w: F.binary_cross_entropy(P(x), T(t), w.detach().abs(), reduction='sum')),
    ('bce_logits', PAIR, lambda x, t: F.binary_cross_entropy_with_logits(x, t)),
    ('bce_logits_weights', PAIR + [(4, 1), (5,)],
     lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w.detach(), pos_weight=p.detach(),
                                                           reduction='none')),
    ('kl_div', PAIR, lambda x, t: F.kl_div(F.log_softmax(x, 1), T(t), reduction='batchmean')),
    ('kl_div_log', PAIR, lambda x, t: F.kl_div(x, t, reduction='none', log_target=True)),
    ('poisson', PAIR, lambda x, t: F.poisson_nll_loss(x, 5 * T(t), full=True)),
    ('poisson_plain', PAIR,
     lambda x, t: F.poisson_nll_loss(P(x), T(t), log_input=False, eps=1e-8, reduction='sum')),
    ('gaussian', PAIR + [(4, 5)], lambda x, t, v: F.gaussian_nll_loss(x, t, P(v), full=True)),
    ('gaussian_rows', PAIR + [(4, 1)],
     lambda x, t, v: F.gaussian_nll_loss(x, t, P(v), reduction='none')),
    ('ce', [(6, 5)], lambda x: F.cross_entropy(x, labels(6))),
    ('ce_image', [(2, 5, 3, 2)], lambda x: F.cross_entropy(x, labels(2, 3, 2), reduction='none')),
    ('ce_weight', [(6, 5)], lambda x: F.cross_entropy(x, labels(6), WEIGHT)),
    ('ce_ignore', [(6, 5)], lambda x: F.cross_entropy(x, labels(6), WEIGHT, ignore_index=1)),
    ('ce_smooth', [(2, 5, 3)], lambda x: F.cross_entropy(x, labels(2, 3), label_smoothing=0.2)),
    ('ce_all', [(2, 5, 4)],
     lambda x: F.cross_entropy(x, labels(2, 4), WEIGHT, ignore_index=3, label_smoothing=0.2)),
    ('ce_all_sum', [(2, 5, 4)],
     lambda x: F.cross_entropy(x, labels(2, 4), WEIGHT, ignore_index=3, label_smoothing=0.2,
                               reduction='sum')),
    ('ce_soft', [(6, 5), (6, 5)], lambda x, t: F.cross_entropy(x, F.softmax(t, 1))),
    ('ce_soft_all', [(2, 5, 3), (2, 5, 3)],
     lambda x, t: F.cross_entropy(x, F.softmax(t, 1), WEIGHT, label_smoothing=0.2)),
    ('nll', [(2, 5, 3)], lambda x: F.nll_loss(x, labels(2, 3), WEIGHT, ignore_index=2)),
    ('ctc', [(6, 3, 5)], lambda x: ctc(x, 'mean')),
    ('ctc_none', [(6, 3, 5)], lambda x: ctc(x, 'none')),
    ('margin_ranking', [(7,), (7,)], lambda a, b: F.margin_ranking_loss(a, b, sides(7), 0.3)),
    ('hinge', [(7,)], lambda x: F.hinge_embedding_loss(x, sides(7), 1.2)),
    ('soft_margin', [(7,)], lambda x: F.soft_margin_loss(x, sides(7))),
    ('cosine_embedding', [(6, 4), (6, 4)],
     lambda a, b: F.cosine_embedding_loss(a, b, sides(6), 0.1)),
    ('triplet', [(6, 4), (6, 4), (6, 4)], lambda a, p, n: F.triplet_margin_loss(a, p, n, 1.5)),
    ('triplet_3', [(6, 4), (6, 4), (6, 4)],
     lambda a, p, n: F.triplet_margin_loss(a, p, n, 1.5, p=3, reduction='none')),
    ('multi_margin', [(6, 5)], lambda x: F.multi_margin_loss(x, labels(6), margin=0.9)),
]
NORMS = [
    ('group_norm', [(2, 6, 3, 2), (6,), (6,)], lambda x, g, b: F.group_norm(x, 3, g, b)),
    ('group_norm_flat', [(3, 8), (8,), (8,)], lambda x, g, b: F.group_norm(x, 2, g, b)),
    ('instance_norm_affine', [(2, 3, 4, 2), (3,), (3,)],
     lambda x, g, b: F.instance_norm(x, None, None, g, b)),
    ('instance_norm_line', [(2, 3, 5)], F.instance_norm),
    ('rms_norm', [(3, 2, 5), (5,)], lambda x, g: F.rms_norm(x, (5,), g, 1e-5)),
    ('local_response', [(2, 5, 3)], lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 1.5)),
    ('local_response_even', [(2, 5, 2, 2)], lambda x: F.local_response_norm(x, 4, 0.5, 0.6, 1)),
    ('weight_norm', [(3, 4, 2), (3,)],
     lambda v, g: torch._weight_norm(v, g.reshape(3, 1, 1), 0)),
    ('spectral_norm', [(3, 4, 2), (3,)], lambda w, u: spectral(w, u, 2)[0]),
    ('spectral_norm_u', [(3, 4), (3,)], lambda w, u: spectral(w, u, 1)[1]),
    ('norm_2', [(3, 4, 5)], lambda x: torch.linalg.vector_norm(x, 2, (0, 2))),
    ('norm_1', [(3, 4)], lambda x: torch.linalg.vector_norm(x, 1, 1, keepdim=True)),
    ('norm_3', [(3, 4)], lambda x: torch.linalg.vector_norm(x, 3, 1)),
    ('norm_inf', [(3, 4)], lambda x: torch.linalg.vector_norm(x, float('inf'), 1)),
    ('norm_least', [(3, 4)], lambda x: torch.linalg.vector_norm(x, -float('inf'), 0)),
    ('norm_0', [(3, 4)], lambda x: torch.linalg.vector_norm(F.relu(x), 0, 1).detach()),
    ('normalize', [(3, 4)], lambda x: F.normalize(x, 2, 1)),
    ('normalize_1', [(3, 4)], lambda x: F.normalize(x, 1, 0)),
    ('pairwise_distance', [(3, 4), (3, 4)], F.pairwise_distance),
    ('cosine_similarity', [(3, 4, 2), (3, 4, 2)], lambda a, b: F.cosine_similarity(a, b, 1)),
    ('logsumexp', [(3, 4, 5)], lambda x: torch.logsumexp(x, (0, 2))),
    ('logsumexp_keep', [(3, 4)], lambda x: torch.logsumexp(20 * x, 1, True)),
    ('var', [(3, 4, 5)], lambda x: torch.var(x, (0, 2), correction=1)),
    ('var_keep', [(3, 5)], lambda x: torch.var(x, 1, correction=2, keepdim=True)),
    ('std', [(3, 5)], lambda x: torch.std(x, 1)),
]
CASES = ACTIVATIONS + LOSSES + NORMS
