"""A small residual network for handwritten digits, and the images it is trained on."""

from digits.data import Digits, batches, load
from digits.model import ResNet

__all__ = ["Digits", "ResNet", "batches", "load"]
