"""The cases of tests/ref/windows.h: convolutions, pools, images resized and sampled (make.py)."""
import torch
import torch.nn.functional as F

ABOUT = 'windows over images, and images resized and sampled: results and gradients by PyTorch.'

up = F.interpolate
X1, X2, X3 = (2, 3, 7), (2, 2, 5, 7), (1, 2, 4, 5, 3)


def same(x, w, stride):
    n = [(-(-e // stride) - 1) * stride + k - e for e, k in zip(x.shape[2:], w.shape[2:])]
    n = [max(k, 0) for k in n]
    return F.conv2d(F.pad(x, (n[1] // 2, n[1] - n[1] // 2, n[0] // 2, n[0] - n[0] // 2)), w, None,
                    stride)


def at(x, *a, **k):
    return F.max_pool2d(x.detach(), *a, return_indices=True, **k)[1].to(x.dtype)


def unpool(x):
    y, i = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, i, 2, output_size=x.shape[2:])


def dilated_mean(x):
    w = torch.full((2, 1, 2, 3), 1 / 6, dtype=x.dtype)
    return F.conv2d(x, w, None, 1, 1, (2, 1), groups=2)


BOXES = [[0, 0.7, 0.3, 5.1, 3.9], [1, -2.9, 1.2, 3.3, 9.4], [1, 2, 1, 2.25, 1.5]]


def roi(x, out, scale, samples, aligned):
    """Mask R-CNN's definition, as torchvision computes it."""
    rows = []
    for image, *box in BOXES:
        l, t, r, b = [v * scale - 0.5 * aligned for v in box]
        w, h = (r - l, b - t) if aligned else (max(r - l, 1), max(b - t, 1))

        def weights(start, size, n, extent):
            m = torch.zeros(n, extent, dtype=x.dtype)
            for i in range(n):
                for s in range(samples):
                    p = start + (i + (s + 0.5) / samples) * size / n
                    if not -1 <= p <= extent:
                        continue
                    p = min(max(p, 0), extent - 1)
                    low = int(p)
                    m[i, low] += (1 - p + low) / samples
                    if low + 1 < extent:
                        m[i, low + 1] += (p - low) / samples
            return m
        rows.append(torch.einsum('ih,jw,chw->cij', weights(t, h, out[0], x.shape[2]),
                                 weights(l, w, out[1], x.shape[3]), x[image]))
    return torch.stack(rows)


def sampled(mode, pad, corners):
    return lambda x, g: F.grid_sample(x, g, mode, pad, corners)


CASES = [
    ('conv_1', [X1, (4, 3, 3), (4,)], lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2)),
    ('conv_2_bias', [X2, (4, 1, 3, 2), (4,)], lambda x, w, b: F.conv2d(x, w, b, 1, (1, 0), 1, 2)),
    ('conv_3', [X3, (3, 2, 2, 3, 2)], lambda x, w: F.conv3d(x, w, None, (1, 2, 1), (1, 1, 0))),
    ('conv_3_groups', [X3, (4, 1, 2, 2, 3)], lambda x, w: F.conv3d(x, w, None, 1, 1, 1, 2)),
    ('conv_same', [X2, (3, 2, 4, 3)], lambda x, w: F.conv2d(x, w, None, 1, 'same')),
    ('conv_same_stride', [X2, (3, 2, 4, 3)], lambda x, w: same(x, w, 2)),
    ('transpose_1', [X1, (3, 4, 3), (4,)], lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1)),
    ('transpose_2', [X2, (2, 3, 3, 2)], F.conv_transpose2d),
    ('transpose_2_all', [(2, 4, 3, 5), (4, 2, 3, 2), (4,)],
     lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), (1, 2), (1, 2), 2, (2, 1))),
    ('transpose_3', [(1, 2, 2, 3, 2), (2, 3, 2, 3, 2)],
     lambda x, w: F.conv_transpose3d(x, w, None, (2, 1, 2), (0, 1, 0))),
    ('max_1', [X1], lambda x: F.max_pool1d(x, 3, 2, 1, 2)),
    ('max_2', [X2], lambda x: F.max_pool2d(x, (2, 3), 2, (1, 0), 1, True)),
    ('max_3', [X3], lambda x: F.max_pool3d(x, 2, 1, 1)),
    ('max_at', [X2], lambda x: at(x, (2, 3), 2, (1, 0), 1, ceil_mode=True)),
    ('max_at_dilated', [X2], lambda x: at(x, 2, 1, 0, 2)),
    ('unpool', [X2], unpool),
    ('avg_1', [X1], lambda x: F.avg_pool1d(x, 3, 2, 1)),
    ('avg_2_exclude', [X2], lambda x: F.avg_pool2d(x, 3, 2, 1, False, False)),
    ('avg_2_ceil', [X2], lambda x: F.avg_pool2d(x, (2, 3), 2, (1, 1), True, True)),
    ('avg_2_both', [X2], lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 0), True, False)),
    ('avg_2_dilated', [X2], dilated_mean),
    ('avg_3', [X3], lambda x: F.avg_pool3d(x, 2, 1, 1, False, False)),
    ('lp_2', [X2], lambda x: F.lp_pool2d(x, 2, 3, 2)),
    ('lp_3', [X1], lambda x: F.lp_pool1d(x.abs(), 3, 2)),
    ('adaptive_avg_1', [X1], lambda x: F.adaptive_avg_pool1d(x, 3)),
    ('adaptive_avg_2', [(2, 2, 6, 7)], lambda x: F.adaptive_avg_pool2d(x, (3, 5))),
    ('adaptive_avg_3', [X3], lambda x: F.adaptive_avg_pool3d(x, (3, None, 2))),
    ('adaptive_avg_more', [X1], lambda x: F.adaptive_avg_pool1d(x, 9)),
    ('adaptive_max_2', [X2], lambda x: F.adaptive_max_pool2d(x, (2, 3))),
    ('global_avg', [X2], lambda x: F.adaptive_avg_pool2d(x, 1)),
    ('global_max', [X3], lambda x: F.adaptive_max_pool3d(x, 1)),
    ('pad_reflect', [X2], lambda x: F.pad(x, (2, 3, 1, 0), 'reflect')),
    ('pad_replicate', [X2], lambda x: F.pad(x, (9, 1, 2, 3), 'replicate')),
    ('pad_circular', [X2], lambda x: F.pad(x, (3, 7, 1, 2), 'circular')),
    ('pad_reflect_1', [X1], lambda x: F.pad(x, (6, 6), 'reflect')),
    ('pad_replicate_3', [X3], lambda x: F.pad(x, (1, 1, 0, 2, 1, 0), 'replicate')),
    ('nearest_2', [X2], lambda x: up(x, (10, 3))),
    ('nearest_1_scale', [X1], lambda x: up(x, scale_factor=1.7)),
    ('nearest_exact', [X2], lambda x: up(x, (3, 16), mode='nearest-exact')),
    ('linear_1', [X1], lambda x: up(x, 16, mode='linear')),
    ('linear_1_scale', [X1], lambda x: up(x, scale_factor=1.3, mode='linear')),
    ('bilinear', [X2], lambda x: up(x, (10, 21), mode='bilinear')),
    ('bilinear_less', [X2], lambda x: up(x, (3, 4), mode='bilinear')),
    ('bilinear_corners', [X2], lambda x: up(x, (8, 1), mode='bilinear', align_corners=True)),
    ('trilinear', [X3], lambda x: up(x, (3, 7, 6), mode='trilinear')),
    ('bicubic', [X2], lambda x: up(x, (9, 4), mode='bicubic')),
    ('bicubic_corners', [X2], lambda x: up(x, (9, 10), mode='bicubic', align_corners=True)),
    ('area', [X2], lambda x: up(x, (3, 4), mode='area')),
    ('pixel_shuffle', [(2, 8, 2, 3)], lambda x: F.pixel_shuffle(x, 2)),
    ('pixel_unshuffle', [(2, 2, 4, 6)], lambda x: F.pixel_unshuffle(x, 2)),
    ('channel_shuffle', [(2, 6, 2, 3)], lambda x: F.channel_shuffle(x, 3)),
    ('unfold', [X2], lambda x: F.unfold(x, (2, 3), (1, 2), (1, 0), (2, 1))),
    ('fold', [(2, 12, 6)], lambda x: F.fold(x, (5, 6), (2, 3), (1, 2), (1, 0), (2, 1))),
    ('grid_zeros', [X2, (2, 3, 4, 2)], sampled('bilinear', 'zeros', False)),
    ('grid_border', [X2, (2, 3, 4, 2)], sampled('bilinear', 'border', True)),
    ('grid_nearest', [X2, (2, 3, 4, 2)], lambda x, g: F.grid_sample(x, g.detach(), 'nearest',
                                                                   'zeros', False)),
    ('grid_3', [(1, 2, 4, 5, 3), (1, 2, 3, 2, 3)], sampled('bilinear', 'zeros', True)),
    ('affine_2', [(2, 2, 3)], lambda t: F.affine_grid(t, (2, 1, 3, 4), False)),
    ('affine_3', [(1, 3, 4)], lambda t: F.affine_grid(t, (1, 1, 2, 3, 2), True)),
    ('roi', [X2], lambda x: roi(x, (2, 3), 1, 2, False)),
    ('roi_aligned', [X2], lambda x: roi(x, (3, 2), 0.5, 3, True)),
]
