"""One step on one batch: does the network train at all? Exit status 0 if it does, 1 with a sentence if not."""

import torch
from torch.nn.functional import cross_entropy

from digits import ResNet, batches, load


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, _ = load()
    images, labels = next(batches(train, batch=64, seed=0, epoch=0))
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    before = cross_entropy(model(images), labels)
    before.backward()
    optimizer.step()
    after = cross_entropy(model(images), labels)
    if not after < before:
        raise SystemExit(f"a step must lower the loss of its own batch, but it went from {before:.3f} to {after:.3f}")
    print(f"loss {before:.3f} -> {after:.3f}")


if __name__ == "__main__":
    main()
