"""Train the residual network and leave TensorBoard logs and checkpoints: python train.py --seed 1

Tags: train/loss, train/seconds_per_step, validation/accuracy (percent), validation/loss.
"""

import argparse
import gc
import math
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.tensorboard import SummaryWriter

from digits import Digits, ResNet, batches, load

INTERVAL = 18  # steps between two lines of the log


def options() -> argparse.Namespace:
    environment = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32, help="images in a step")
    parser.add_argument("--labels", type=int, help="train on the first so many images only")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="the highest, after the warm-up")
    parser.add_argument("--zero-init", action="store_true", help="residual branches start at zero")
    parser.add_argument("--logdir", type=Path, default=environment("BENCHBOT_LOGDIR", "logs"))
    parser.add_argument("--checkpoints", type=Path, default=environment("BENCHBOT_CHECKPOINTS", "checkpoints"))
    parser.add_argument("--resume", type=Path, default=environment("BENCHBOT_RESUME_DIR"), help="folder of a last.pt")
    return parser.parse_args()


@dataclass(slots=True)
class Training:
    """Everything that changes while training; what goes on after an interruption is in `state`."""

    model: ResNet
    optimizer: torch.optim.SGD
    schedule: OneCycleLR
    epoch: int = 0
    step: int = 0
    best: float = -math.inf  # validation accuracy in percent
    warm: bool = False  # not in a checkpoint: each process has to warm up again

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "epoch": self.epoch,
            "step": self.step,
            "best": self.best,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.epoch, self.step, self.best = state["epoch"], state["step"], state["best"]


def begin(chosen: argparse.Namespace, steps: int) -> Training:
    """An untrained model, with a learning rate that rises and falls once in so many steps."""
    model = ResNet(zero_init=chosen.zero_init)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9, nesterov=True, weight_decay=5e-4, fused=True)
    return Training(model, optimizer, OneCycleLR(optimizer, chosen.learning_rate, total_steps=steps))


def train_step(training: Training, images: Tensor, labels: Tensor) -> float:
    training.optimizer.zero_grad()
    loss = cross_entropy(training.model(images), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(training.model.parameters(), 1.0)
    training.optimizer.step()
    training.schedule.step()
    training.step += 1
    return loss.item()


def train_epoch(training: Training, digits: Digits, chosen: argparse.Namespace, log: SummaryWriter) -> None:
    """One pass over the images. Of each interval the mean loss is logged, and the seconds of its quickest step: what the
    code costs, whoever else is busy on the machine. (A mean doubles when a neighbour starts.)"""
    training.model.train()
    interval = min(INTERVAL, len(digits) // chosen.batch)
    losses: list[float] = []
    seconds: list[float] = []
    since = time.perf_counter()
    for images, labels in batches(digits, chosen.batch, chosen.seed, training.epoch):
        losses.append(train_step(training, images, labels))
        seconds.append(time.perf_counter() - since)
        if len(losses) == interval:
            # the first steps allocate memory and choose kernels: apart, so that they are in nobody's median
            phase = "train" if training.warm else "warmup"
            log.add_scalar(f"{phase}/seconds_per_step", min(seconds), training.step)
            log.add_scalar("train/loss", statistics.fmean(losses), training.step)
            training.warm = True
            losses.clear()
            seconds.clear()
        since = time.perf_counter()
    training.epoch += 1


@torch.no_grad()
def validate(model: ResNet, digits: Digits) -> tuple[float, float]:
    """Accuracy in percent, and mean loss."""
    model.eval()
    scores = model(digits.images)
    correct = (scores.argmax(1) == digits.labels).float().mean()
    return 100 * correct.item(), cross_entropy(scores, digits.labels).item()


def save(state: dict[str, Any], path: Path) -> None:
    """Whoever reads `path`, at whatever moment, finds a whole checkpoint."""
    unfinished = path.with_suffix(".tmp")
    torch.save(state, unfinished)
    unfinished.replace(path)


def main() -> None:
    chosen = options()
    torch.set_num_threads(1)  # as many as in every other run, whatever the machine
    torch.manual_seed(chosen.seed)
    train, validation = load(chosen.labels)
    steps = chosen.epochs * (len(train) // chosen.batch)
    if steps < 1:
        raise SystemExit(f"nothing to do: {chosen.epochs} epochs of {len(train)} images in batches of {chosen.batch}")
    training = begin(chosen, steps)
    if chosen.resume and (checkpoint := chosen.resume / "last.pt").exists():
        training.restore(torch.load(checkpoint, weights_only=True))
        print(f"resumed after epoch {training.epoch}", flush=True)
    chosen.checkpoints.mkdir(parents=True, exist_ok=True)
    gc.disable()  # a collection would fall into some interval and not into others; there is little to collect

    with SummaryWriter(chosen.logdir, purge_step=training.step + 1) as log:
        while training.epoch < chosen.epochs:
            train_epoch(training, train, chosen, log)
            accuracy, loss = validate(training.model, validation)
            if not math.isfinite(loss):
                raise SystemExit(f"diverged: the validation loss of epoch {training.epoch} is {loss}")
            log.add_scalar("validation/accuracy", accuracy, training.step)
            log.add_scalar("validation/loss", loss, training.step)
            if accuracy > training.best:
                training.best = accuracy
                save(training.model.state_dict(), chosen.checkpoints / "best.pt")
            save(training.state(), chosen.checkpoints / "last.pt")
            print(f"epoch {training.epoch:2}  accuracy {accuracy:5.2f} %  loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
