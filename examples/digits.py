"""Trains a small convolutional network on 1,797 scans of handwritten digits and draws what it learnt.

python examples/digits.py                       writes digits.pt, loss.png, predictions.png
python examples/digits.py --framework torch     the same file on PyTorch, where that is installed
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from tqdm import tqdm


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", default="rushlight", choices=["rushlight", "torch"])
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the files written")
    parser.add_argument("--log-losses", type=Path, help="write each step's loss, exactly, to this file")
    return parser.parse_args()


arguments = parse_arguments()
try:
    torch = importlib.import_module(arguments.framework)
except ModuleNotFoundError as error:
    sys.exit(f"digits.py: {arguments.framework} cannot be imported here ({error})")
nn, F = torch.nn, torch.nn.functional
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1, bias=False),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(48 * 4 * 4, 96), nn.ReLU(), nn.Dropout(0.25), nn.Linear(96, 10)
        )

    def forward(self, images):  # (N, 1, 8, 8) -> (N, 10)
        return self.classifier(self.features(images))


def split_digits(seed: int):
    """The scans as two datasets, 80 % to learn from and 20 % held out."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).to(torch.float32).unsqueeze(1) / 16
    labels = torch.from_numpy(digits.target).to(torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    held_out = len(images) // 5
    test, train = order[:held_out], order[held_out:]
    return TensorDataset(images[train], labels[train]), (images[test], labels[test])


def train(model, dataset) -> list[float]:
    """Runs the epochs with a progress bar; returns the loss of every step."""
    loader = DataLoader(dataset, batch_size=arguments.batch_size, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    steps = min(arguments.steps or sys.maxsize, arguments.epochs * len(loader))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(steps, 1))
    losses: list[float] = []
    model.train()
    with tqdm(total=steps, unit="step", desc="training") as bar:
        while len(losses) < steps:
            for images, labels in loader:
                outputs = model(images)
                loss = F.cross_entropy(outputs, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
                accuracy = (outputs.argmax(1) == labels).float().mean().item()
                bar.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracy:.0%}", refresh=False)
                bar.update()
                if len(losses) == steps:
                    break
    return losses


def draw_losses(losses: list[float], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    smooth, weight = [], losses[0]
    for loss in losses:
        weight += 0.1 * (loss - weight)
        smooth.append(weight)
    axes.plot(losses, color="tab:blue", alpha=0.3, label="each step")
    axes.plot(smooth, color="tab:blue", label="smoothed")
    axes.set(xlabel="step", ylabel="cross entropy", yscale="log", title="Training loss")
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def draw_predictions(images, labels, predictions, path: Path) -> None:
    """A grid of held-out scans: the mistakes first, in red with the true label."""
    wrong = (predictions != labels).nonzero().flatten().tolist()
    right = (predictions == labels).nonzero().flatten().tolist()
    shown = (wrong + right)[:48]
    figure, grid = plt.subplots(6, 8, figsize=(9, 8))
    for axes in grid.flat:
        axes.axis("off")
    for axes, i in zip(grid.flat, shown, strict=False):
        axes.imshow(images[i, 0].numpy(), cmap="gray_r")
        predicted, true = int(predictions[i]), int(labels[i])
        mistake = predicted != true
        axes.set_title(f"{predicted}, is {true}" if mistake else f"{predicted}", color="red" if mistake else "black")
        if mistake:
            axes.add_patch(plt.Rectangle((0, 0), 1, 1, fill=False, color="red", lw=3, transform=axes.transAxes))
    figure.suptitle(f"Held-out scans with predicted digits; {len(wrong)} mistakes among {len(labels)} in red")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    torch.manual_seed(arguments.seed)
    dataset, (images, labels) = split_digits(arguments.seed)
    model = Net()
    start = time.perf_counter()
    losses = train(model, dataset)
    seconds = time.perf_counter() - start

    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), arguments.out / "digits.pt")
    model = Net()  # the test below is of what was saved
    model.load_state_dict(torch.load(arguments.out / "digits.pt"))
    model.eval()
    with torch.no_grad():
        predictions = model(images).argmax(1)
    accuracy = (predictions == labels).float().mean().item()

    draw_losses(losses, arguments.out / "loss.png")
    draw_predictions(images, labels, predictions, arguments.out / "predictions.png")
    if arguments.log_losses:
        arguments.log_losses.write_text("".join(f"{loss!r}\n" for loss in losses))
    print(f"{arguments.framework}: {len(losses)} steps in {seconds:.1f} s, last loss {losses[-1]:.4f}")
    print(f"wrote digits.pt, loss.png and predictions.png to {arguments.out.resolve()}")
    print(f"test accuracy: {accuracy:.2%} of {len(labels)} held-out scans")


if __name__ == "__main__":
    main()
