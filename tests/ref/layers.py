"""The cases of tests/ref/layers.h: activations, losses and norms (make.py)."""
import torch
import torch.nn.functional as F

ABOUT = 'activations, losses, norms: results and gradients by PyTorch.'
CASES = [
    ('leaky_relu', [(5, 7)], lambda x: F.leaky_relu(x, 0.2)),
]
