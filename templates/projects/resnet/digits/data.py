"""The images: scikit-learn's 1,797 digits of 8 x 8 pixels, which come with the package."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.nn.functional import pad

SIZE = 8  # pixels of an image's edge
_SPLIT_SEED = 0  # the same split for every run: seeds vary the training, not the question


@dataclass(frozen=True, slots=True)
class Digits:
    """Images (n, 1, 8, 8), float32, standardised, and labels (n,), int64 from 0 to 9."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


def load(labels: int | None = None) -> tuple[Digits, Digits]:
    """The images to train on (1,197, or the first so many `labels`) and to validate on (600)."""
    source = load_digits()
    images = torch.from_numpy(source.images).float().unsqueeze(1)
    targets = torch.from_numpy(source.target).long()
    train, validation = train_test_split(
        np.arange(len(targets)), test_size=600, stratify=source.target, random_state=_SPLIT_SEED
    )
    train = train[:labels]
    images = (images - images[train].mean()) / images[train].std()
    return Digits(images[train], targets[train]), Digits(images[validation], targets[validation])


def batches(digits: Digits, batch: int, seed: int, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch in shuffled, shifted batches of equal size; the same seed and epoch always give the same batches."""
    state = np.random.SeedSequence((seed, epoch)).generate_state(1)
    generator = torch.Generator().manual_seed(int(state[0]))
    order = torch.randperm(len(digits), generator=generator)
    for start in range(0, len(digits) - batch + 1, batch):
        chosen = order[start : start + batch]
        yield _shifted(digits.images[chosen], generator), digits.labels[chosen]


def _shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image moved by up to one pixel in each direction."""
    background = float(images.min())
    windows = pad(images, (1, 1, 1, 1), value=background).unfold(2, SIZE, 1).unfold(3, SIZE, 1)
    down, right = torch.randint(0, 3, (2, len(images)), generator=generator)
    return windows[torch.arange(len(images)), :, down, right]
