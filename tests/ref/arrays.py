"""The cases of tests/ref/arrays.h: parts of arrays, places that are data, functions (make.py)."""
import torch

ABOUT = 'arrays, indices, functions of numbers: results and gradients by PyTorch.'


def places(n, *shape):  # of n
    count = torch.Size(shape).numel()
    return (torch.arange(count) * 5 % n).reshape(shape)


def put(x, y, accumulate):  # at tuples of places (3) of x (4, 3, 2)
    a, b = places(4, 3), places(3, 3)
    return torch.index_put(x, (a, b), y, accumulate)


INSIDE = lambda x: x / 2.1
ARRAYS = [
    ('narrow', [(3, 5)], lambda x: x.narrow(1, 1, 3)),
    ('select', [(3, 5, 2)], lambda x: x.select(1, -2)),
    ('split', [(3, 7)], lambda x: x.split([2, 4, 1], 1)[1]),
    ('chunk', [(7, 2)], lambda x: x.chunk(3, 0)[2]),
    ('roll', [(3, 5)], lambda x: x.roll(7, 1)),
    ('roll_back', [(3, 5)], lambda x: x.roll(-2, 0)),
    ('flatten', [(2, 3, 4, 2)], lambda x: x.flatten(1, 2)),
    ('repeat_interleave', [(2, 3)], lambda x: x.repeat_interleave(3, 1)),
    ('masked_fill', [(3, 4)], lambda x: x.masked_fill(torch.arange(4) % 2 > 0, 2.5)),
    ('tril', [(2, 4, 5)], lambda x: x.tril(1)),
    ('triu', [(5, 4)], lambda x: x.triu(-2)),
    ('diagonal', [(2, 4, 5)], lambda x: x.diagonal(1, -2, -1)),
    ('diagonal_below', [(4, 3)], lambda x: x.diagonal(-2)),
    ('diag_embed', [(2, 3)], lambda x: torch.diag_embed(x, 1)),
    ('diag_embed_below', [(3,)], lambda x: torch.diag(x, -2)),
    ('trace', [(4, 3)], torch.trace),
    ('meshgrid', [(3,), (4,)], lambda a, b: torch.meshgrid(a, b, indexing='ij')[0] * b),
]
INDEX = [
    ('take_along', [(4, 3)], lambda x: x.gather(0, places(4, 6, 3))),
    ('take_along_part', [(4, 5)], lambda x: x.gather(1, places(5, 2, 3))),
    ('gather_nd', [(4, 3, 2)], lambda x: x[places(4, 3), places(3, 3)]),
    ('scatter', [(4, 6), (4, 2)], lambda x, y: x.scatter(1, places(6, 4, 2), y)),
    ('scatter_add', [(4, 3), (6, 3)], lambda x, y: x.scatter_add(0, places(4, 6, 3), y)),
    ('scatter_max', [(4, 3), (6, 3)],
     lambda x, y: x.scatter_reduce(0, places(4, 6, 3), y, 'amax')),
    ('scatter_min', [(4, 3), (3, 2)],
     lambda x, y: x.scatter_reduce(0, places(4, 3, 2), y, 'amin')),
    ('scatter_mul', [(4, 3), (6, 3)],
     lambda x, y: x.scatter_reduce(0, places(4, 6, 3), y, 'prod')),
    ('scatter_nd', [(4, 3, 2), (3, 2)], lambda x, y: put(x, y, False)),
    ('scatter_nd_add', [(4, 3, 2), (3, 2)], lambda x, y: put(x, y, True)),
    ('bincount', [(8,)],
     lambda w: torch.zeros(6).scatter_add(0, places(6, 8), w)),
    ('histogram', [(40,)], lambda x: torch.histc(x.detach(), 7, -1.5, 1.25)),
    ('searchsorted', [(3, 5)],
     lambda x: torch.searchsorted(torch.arange(-1.5, 1.6, 0.25), x.detach()).double()),
]
def einsum(spec):
    return lambda *xs: torch.einsum(spec, *xs)


PRODUCTS = [
    ('einsum_bmm', [(2, 3, 4), (2, 4, 5)], einsum('bij,bjk->bik')),
    ('einsum_turned', [(3, 4), (5, 4)], einsum('ij,kj->ki')),
    ('einsum_chain', [(2, 3), (3, 4), (4, 2)], einsum('ij,jk,kl->il')),
    ('einsum_all', [(2, 3), (3, 2), (3,)], einsum('ij,ji,j->')),
    ('einsum_trace', [(2, 3, 3)], einsum('bii->b')),
    ('einsum_implied', [(3, 4), (2, 3)], einsum('ba,cb')),
    ('einsum_one', [(2, 1, 3), (2, 4, 3)], einsum('bij, bij -> bi')),
    ('outer', [(3,), (4,)], torch.outer),
    ('cross', [(2, 3), (2, 3)], lambda a, b: torch.linalg.cross(a, b, dim=1)),
    ('kron', [(2, 3), (3, 2)], torch.kron),
    ('cdist', [(2, 3, 4), (2, 5, 4)],
     lambda a, b: torch.cdist(a, b, compute_mode='donot_use_mm_for_euclid_dist')),
    ('cdist_1', [(3, 4), (5, 4)], lambda a, b: torch.cdist(a, b, 1)),
]
def definite(a):
    return a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype)


def regular(a):
    return a + 3 * torch.eye(a.shape[-1], dtype=a.dtype)


SYSTEMS = [
    ('cholesky', [(2, 4, 4)], lambda a: torch.linalg.cholesky(definite(a))),
    ('solve_triangular', [(2, 4, 4), (2, 4, 3)],
     lambda a, b: torch.linalg.solve_triangular(regular(a), b, upper=True)),
    ('solve_triangular_right', [(3, 3), (2, 3)],
     lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False,
                                                unitriangular=True)),
    ('cholesky_solve', [(4, 4), (4, 2)],
     lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(definite(a)))),
    ('inverse', [(2, 4, 4)], lambda a: torch.linalg.inv(regular(a))),
    ('solve', [(2, 4, 4), (2, 4, 2)], lambda a, b: torch.linalg.solve(regular(a), b)),
    ('det', [(2, 3, 3)], lambda a: torch.linalg.det(regular(a))),
    ('slogdet', [(2, 3, 3)], lambda a: torch.linalg.slogdet(-regular(a))[1]),
    ('matrix_power', [(3, 3)], lambda a: torch.linalg.matrix_power(regular(a), -3)),
]
FUNCTIONS = [
    ('erfinv', [(5, 7)], lambda x: torch.erfinv(INSIDE(x))),
    ('lgamma', [(5, 7)], lambda x: torch.lgamma(5 * x * x + 0.01)),
    ('lgamma_below', [(5, 7)], lambda x: torch.lgamma(x)),
    ('digamma', [(5, 7)], lambda x: torch.digamma(5 * x * x + 0.1)),
    ('digamma_below', [(5, 7)], lambda x: torch.digamma(x + 0.25) / 100),
    ('sinc', [(5, 7)], torch.sinc),
    ('logit', [(5, 7)], lambda x: torch.logit(torch.sigmoid(x), 0.2)),
]
CASES = ARRAYS + INDEX + PRODUCTS + SYSTEMS + FUNCTIONS
