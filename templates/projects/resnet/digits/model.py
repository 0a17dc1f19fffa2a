"""The network: a stem, a residual block in each of two resolutions, a linear layer."""

from torch import Tensor, nn
from torch.nn.functional import relu


class Block(nn.Module):
    """Two convolutions with batch normalisation, added to what came in. (n, inward, h, w) to (n, outward, h/s, w/s)."""

    def __init__(self, inward: int, outward: int, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(inward, outward, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outward)
        self.second = nn.Conv2d(outward, outward, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outward)
        same_shape = inward == outward and stride == 1
        self.shortcut = nn.Identity() if same_shape else nn.Conv2d(inward, outward, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        branch = relu(self.first_norm(self.first(x)))
        return relu(self.second_norm(self.second(branch)) + self.shortcut(x))


class ResNet(nn.Module):
    """Scores (n, 10) for images (n, 1, 8, 8). With `zero_init` every residual branch starts as nothing at all."""

    def __init__(self, width: int = 8, *, zero_init: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            Block(width, width),
            Block(width, 2 * width, stride=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, 10),
        )
        if zero_init:
            for block in self.modules():
                if isinstance(block, Block):
                    nn.init.zeros_(block.second_norm.weight)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.layers(images)
        return scores
