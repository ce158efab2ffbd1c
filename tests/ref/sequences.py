"""The cases of tests/ref/sequences.h: attention, positions, recurrent layers (make.py)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ABOUT = 'attention, positions, recurrent layers: results and gradients by PyTorch.'


def fill(seed, *shape):
    k = np.arange(int(np.prod(shape)), dtype=np.int64)
    return torch.tensor((((389 * k + 71 * seed) % 1009) / 256 - 2 + 1 / 512).reshape(shape))


def seen(t, s):  # a mask with something in each row
    return (torch.arange(t)[:, None] * 3 + torch.arange(s)) % 4 != 0


def grouped(q, k, v):
    n = q.shape[1] // k.shape[1]
    return F.scaled_dot_product_attention(q, k.repeat_interleave(n, 1), v.repeat_interleave(n, 1))


def recurrent(kind, **how):
    """y of a layer whose weights are transposed; the state before is fill(17), fill(18)."""
    def f(x, w_in, w_state, b_in, b_state, lengths=None, reverse=False, last=False):
        h = w_state.shape[0]
        m = kind(x.shape[2], h, **how)
        s = fill(17, 1, x.shape[1], h)
        s = (s, fill(18, 1, x.shape[1], h)) if kind is nn.LSTM else s
        w = dict(weight_ih_l0=w_in.T, weight_hh_l0=w_state.T, bias_ih_l0=b_in, bias_hh_l0=b_state)
        x = x.flip(0) if reverse else x
        if lengths:
            x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
        y, s = torch.func.functional_call(m, w, (x, s))
        if lengths:
            y, _ = nn.utils.rnn.pad_packed_sequence(y, total_length=4)
        y = y.flip(0) if reverse else y
        return s[1][0] if last and kind is nn.LSTM else s[0] if last else y
    return f


def cell(gates, t=4, b=2, i=3, h=5):
    return [(t, b, i), (i, gates * h), (h, gates * h), (gates * h,), (gates * h,)]


def rotary(x, neighbours, first=2):
    t, d = x.shape[-2:]
    a = (torch.arange(t) + first)[:, None] / 100.0 ** (torch.arange(d // 2) * 2 / d)
    c, s = a.cos(), a.sin()
    p, q = (x[..., 0::2], x[..., 1::2]) if neighbours else x.chunk(2, -1)
    y = p * c - q * s, q * c + p * s
    return torch.stack(y, -1).reshape(x.shape) if neighbours else torch.cat(y, -1)


def embedding(table):
    i = torch.tensor([[1, 0, 3], [3, 2, 1]])
    return F.embedding(i, table) * (i != 3)[..., None]


QKV = [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)]
CASES = [
    ('attention', QKV, F.scaled_dot_product_attention),
    ('attention_scale', QKV, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3)),
    ('attention_causal', [(1, 2, 4, 3)] * 3,
     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    ('attention_causal_more', [(1, 1, 2, 4), (1, 1, 5, 4), (1, 1, 5, 3)],
     lambda q, k, v: F.scaled_dot_product_attention(
         q, k, v, attn_mask=torch.arange(5) <= torch.arange(2)[:, None] + 3)),
    ('attention_mask', QKV,
     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=seen(3, 5))),
    ('attention_bias', QKV + [(2, 1, 3, 5)],
     lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m)),
    ('attention_grouped', [(2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)], grouped),
    ('attention_shared', [(1, 3, 2, 4), (1, 1, 5, 4), (1, 1, 5, 3)], grouped),
    ('rotary', [(2, 3, 4, 6)], lambda x: rotary(x, False)),
    ('rotary_neighbours', [(3, 4)], lambda x: rotary(x, True)),
    ('embedding', [(4, 3)], embedding),
    ('rnn', cell(1), recurrent(nn.RNN)),
    ('rnn_relu', cell(1), recurrent(nn.RNN, nonlinearity='relu')),
    ('gru', cell(3), recurrent(nn.GRU)),
    ('gru_reverse', cell(3), lambda *a: recurrent(nn.GRU)(*a, reverse=True)),
    ('gru_lengths', cell(3), lambda *a: recurrent(nn.GRU)(*a, lengths=[2, 4])),
    ('gru_last', cell(3), lambda *a: recurrent(nn.GRU)(*a, lengths=[2, 4], last=True)),
    ('lstm', cell(4), recurrent(nn.LSTM)),
    ('lstm_lengths', cell(4), lambda *a: recurrent(nn.LSTM)(*a, lengths=[3, 1])),
    ('lstm_last', cell(4), lambda *a: recurrent(nn.LSTM)(*a, lengths=[3, 1], last=True)),
]
