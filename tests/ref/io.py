"""Files of tensors as the packages themselves write them: safetensors, numpy, gguf and torch.

    python3 tests/ref/io.py > tests/ref/io.h          makes the bytes that tests/test_io.c reads
    python3 tests/ref/io.py check FOLDER              reads what test_io wrote there (test_io FOLDER)
"""
import io
import sys
import tempfile

import gguf
import gguf.quants
import numpy as np
import torch
import safetensors.torch

Q = gguf.GGMLQuantizationType


def values(*shape, dtype='f4'):  # the k-th: (7 k mod 23 - 11) / 4
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 % 23 - 11) / 4).reshape(shape).astype(dtype)


def of_safetensors():
    t = {'w': torch.tensor(values(2, 3)), 'b': torch.tensor([True, False, True]),
         'h': torch.tensor(values(4, dtype='f2')), 'bf': torch.tensor(values(2, 1)).bfloat16(),
         'i': torch.tensor(5), 'e': torch.zeros(0, 3),
         'f8': torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn)}
    return safetensors.torch.save(t, {'k': 'v é\n"'})


def of_npy(x):
    f = io.BytesIO()
    np.save(f, x)
    return f.getvalue()


def of_npz(save, **arrays):
    f = io.BytesIO()
    save(f, **arrays)
    return f.getvalue()


def blocks(kind, rows, size, halves):  # drawn bytes, their f16 factors small and finite
    raw = np.random.default_rng(3).integers(0, 256, (rows, size), dtype='u1')
    for at, bits in halves:
        raw[:, at:at + 2] = np.array([bits & 255, bits >> 8], 'u1')
    return raw, gguf.quants.dequantize(raw, kind)


Q4K = blocks(Q.Q4_K, 1, 144, [(0, 0x2c01), (2, 0x2802)])
Q6K = blocks(Q.Q6_K, 1, 210, [(208, 0xa403)])


def of_gguf():
    path = tempfile.mktemp()
    w = gguf.GGUFWriter(path, 'llama')
    w.add_uint32('llama.block_count', 5)
    w.add_float32('eps', 0.0009765625)
    w.add_bool('yes', True)
    w.add_string('name', 'h\u00e9')
    w.add_array('tokens', ['a', 'bb', ''])
    w.add_array('scores', [0.5, -1.0])
    w.add_array('kinds', [1, -2, 3])
    w.add_int64('big', -2 ** 40)
    w.add_uint8('small', 200)
    w.add_array('nest', [[1, 2], [3]])
    x = values(2, 32)
    w.add_tensor('f32', x)
    w.add_tensor('f16', x.astype('f2'))
    w.add_tensor('i32', np.arange(3, dtype='i4'))
    for kind in (Q.BF16, Q.Q8_0, Q.Q4_0):
        w.add_tensor(kind.name, gguf.quants.quantize(x, kind), raw_dtype=kind)
    w.add_tensor('Q4_K', Q4K[0], raw_dtype=Q.Q4_K)
    w.add_tensor('Q6_K', Q6K[0], raw_dtype=Q.Q6_K)
    w.add_tensor('Q5_K', np.zeros((1, 176), 'u1'), raw_dtype=Q.Q5_K)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return open(path, 'rb').read()


def of_torch(x, **how):
    f = io.BytesIO()
    torch.save(x, f, **how)
    return f.getvalue()


def state():
    x = torch.tensor(values(3, 4))
    return {'x': x, 'turned': x.t(), 'slice': x[:, 1:3], 'h': x[0].half(), 'bf': x[0].bfloat16(),
            'i': torch.tensor(7), 'b': torch.tensor([True, False]),
            'u16': torch.tensor([1, 65535], dtype=torch.uint16),
            'p': torch.nn.Parameter(x[1]), 'none': torch.zeros(0, 3),
            'n': {'k': [1, 2.5, 't', None, True, -3, 2 ** 40], 2: (4,)}}


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


def optim():
    m = net()
    o = torch.optim.SGD(m.parameters(), lr=0.5, momentum=0.25)
    return {'model': m.state_dict(), 'optim': o.state_dict(), 'epoch': 3}


class Stranger:
    pass


def files():
    yield 'safetensors', of_safetensors()
    yield 'npy', of_npy(values(2, 3))
    yield 'npy_turned', of_npy(np.asfortranarray(values(2, 3, dtype='>i2')))
    yield 'npy_scalar', of_npy(np.float64(3.5))
    yield 'npy_text', of_npy(np.array(['a', 'bc']))
    yield 'npz', of_npz(np.savez, w=values(2, 3), b=np.array([True, False]))
    yield 'npz_deflated', of_npz(np.savez_compressed, w=values(4, 50), e=np.zeros((0, 2)))
    yield 'gguf', of_gguf()
    yield 'pt', of_torch(state())
    yield 'pt_4', of_torch({'x': torch.tensor(values(2))}, pickle_protocol=4)
    yield 'pt_one', of_torch(torch.tensor(values(2)))
    yield 'pt_optim', of_torch(optim())
    yield 'pt_object', of_torch(Stranger())
    yield 'pt_repeats', of_torch({'x': torch.ones(1).expand(1000)})


def emit(kind, name, items):
    print(f'static const {kind} ref_{name}[] = {{')
    line = '   '
    for item in items:
        if len(line) + len(item) > 97:
            print(line)
            line = '   '
        line += f' {item},'
    print(f'{line}\n}};')


def make():
    print('/* io.h - files of tensors as safetensors, numpy, gguf and torch write them. Written by\n'
          ' * tests/ref/io.py. */\n#ifndef REF_IO_H\n#define REF_IO_H\n#include <stdint.h>\n')
    for name, data in files():
        emit('uint8_t', 'io_' + name, [str(b) for b in data])
    for name, x in ('q4_k', Q4K[1]), ('q6_k', Q6K[1]):
        emit('float', 'io_' + name, [f'{float(v)!r}f' for v in x.reshape(-1)])
    print('#endif')


def check(folder):
    """What test_io wrote: the values above, in each format."""
    x = values(4, 32)
    n = 0

    def same(a, b):
        nonlocal n
        a = np.asarray(a)
        assert a.shape == b.shape and a.dtype == b.dtype and (a == b).all(), (a, b)
        n += 1
    st = safetensors.torch.load_file(folder + '/x.safetensors')
    npz = np.load(folder + '/x.npz')
    for f in st, npz:
        same(f['f32'], x)
        same(f['f16'], x.astype('f2'))
        same(f['i64'], np.arange(6).reshape(1, 2, 3))
        same(f['scalar'], np.array(2.5, 'f8'))
        same(f['bool'], np.array([True, False, True]))
    same(np.load(folder + '/x.npy'), x)
    g = gguf.GGUFReader(folder + '/x.gguf')
    t = {t.name: t for t in g.tensors}
    assert t['f32'].tensor_type == Q.Q8_0
    same(gguf.quants.dequantize(t['f32'].data, Q.Q8_0),
         gguf.quants.dequantize(gguf.quants.quantize(x, Q.Q8_0), Q.Q8_0))
    same(t['i64'].data, np.arange(6).reshape(1, 2, 3))
    assert g.fields['llama.block_count'].contents() == 5
    assert g.fields['tokens'].contents() == ['a', 'bb', '']
    print(f'{n + 3} passed, 0 failed, 0 skipped')


if __name__ == '__main__':
    check(sys.argv[2]) if sys.argv[1:2] == ['check'] else make()
