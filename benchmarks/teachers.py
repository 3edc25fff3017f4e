"""Speed of neural teachers: ``python benchmarks/teachers.py`` (``--quick`` for a minute's look).

Trains the seeds' network on shards of images, in the same run and in turns:

ours     ``NeuralClassifier.fit_shards``, as an ensemble calls it;
(a)      one teacher after another, the usual PyTorch loop, PyTorch's default number of threads;
(b)      the same loop in one process per core, one thread each (processes are started beforehand).

Same network, first weights, batches, augmentation, epochs and optimiser; no time is left out but that of
starting processes and importing. The loops train a share of the teachers (``--loop-teachers``; each costs
the same) unless ``--full`` is given. Beside the times stand two floors: arithmetic (floating-point
operations / measured rate of matrix products) and memory traffic (bytes / measured rate of copying).

``--data-dir`` adds what the two convolutional networks learn from 240 images of MNIST, and their time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from collegium.data.datasets import load_dataset
from collegium.models.neural.augmentation import Augmentation
from collegium.models.neural.blueprint import draw_up
from collegium.models.neural.networks import seed_cnn
from collegium.models.neural.neural_classifier import NeuralClassifier
from collegium.models.neural.recipes import Recipe
from collegium.models.neural.stacks import StepInput

Shard = tuple[np.ndarray, np.ndarray]
N_CLASSES = 10


def make_shards(count: int, records: int, seed: int = 0) -> list[Shard]:
    """Handwritten digits of scikit-learn, enlarged to 28 × 28 and drawn with replacement."""
    digits = load_dataset("digits")
    small = torch.tensor(np.asarray(digits.X).reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
    images = F.interpolate(small, size=(28, 28), mode="bilinear").numpy()
    labels = np.asarray(digits.y).astype(np.int64)
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        rows = generator.integers(0, len(images), records)
        made.append((images[rows], labels[rows]))
    return made


def train_one(shard: Shard, seed: int, epochs: int, device: str = "cpu") -> nn.Module:
    """Train a teacher in the plain way."""
    torch.manual_seed(seed)
    network = seed_cnn(N_CLASSES).to(device).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, eps=1e-7)
    augment, generator = Augmentation(), torch.Generator().manual_seed(seed)
    X, y = (torch.from_numpy(array).to(device) for array in shard)
    for _ in range(epochs):
        order = torch.randperm(len(X), generator=generator).to(device)
        for rows in order.split(Recipe().batch_sizes(len(X))):
            optimiser.zero_grad()
            F.cross_entropy(network(augment(X[rows], generator)), y[rows]).backward()
            optimiser.step()
    return network.eval()


def train_in_process(job: tuple[Shard, int, int]) -> int:
    """Train a teacher of (b), and throw it away: handing it over would cost time that (a) does not need."""
    train_one(*job)
    return os.getpid()


def start_process() -> None:
    torch.set_num_threads(1)
    train_one((np.zeros((16, 1, 28, 28), np.float32), np.zeros(16, np.int64)), 0, 1)


def ours(epochs: int, **options: Any) -> NeuralClassifier:
    options = {"device": "cpu", **options}
    return NeuralClassifier("seed-cnn", epochs=epochs, input_shape=(1, 28, 28), **options)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work: Callable[[], Any], repeats: int = 7) -> float:
    return min(seconds(work) for _ in range(repeats))


def floors(teachers: int, records: int, epochs: int) -> None:
    """Print what arithmetic alone, and memory alone, would take."""
    positions, kernels, hidden, flat = 26 * 26, 32, 100, 13 * 13 * 32
    # Forwards and the gradient of the weights; the first layer's input needs no gradient.
    operations = 2 * (2 * positions * 9 * kernels)
    operations += 3 * (2 * flat * hidden + 2 * hidden * N_CLASSES)
    passes = teachers * records * epochs
    parameters = sum(parameter.numel() for parameter in seed_cnn(N_CLASSES).parameters())
    steps = teachers * epochs * len(Recipe().batch_sizes(records))
    # Weights are read forwards and backwards and their gradient is written; Adam reads weight,
    # gradient and two moments, and writes all but the gradient.
    moved = 4 * parameters * (3 + 7)
    # On one thread, times cores: what no way of sharing the work out can exceed. Both cores together may
    # well move less than twice as much.
    threads, cores = torch.get_num_threads(), os.cpu_count() or 1
    torch.set_num_threads(1)
    square = torch.rand(2048, 2048)
    rate = cores * 2 * 2048**3 / best(lambda: square @ square)
    large, small = torch.rand(2**26), torch.rand(2**20)
    into_large, into_small = torch.empty_like(large), torch.empty_like(small)
    memory = cores * 2 * 4 * large.numel() / best(lambda: into_large.copy_(large))
    cache = cores * 2 * 4 * small.numel() / best(lambda: into_small.copy_(small), 200)
    torch.set_num_threads(threads)
    print(
        f"floors, {cores} cores (rates: one core's, times {cores}):\n"
        f"  arithmetic   {operations * passes / 1e12:7.2f} TFLOP at {rate / 1e9:6.0f} GFLOP/s "
        f"{operations * passes / rate:8.1f} s\n"
        f"  weights      {moved * steps / 1e12:7.2f} TB    at {memory / 1e9:6.0f} GB/s (memory)"
        f" {moved * steps / memory:8.1f} s\n"
        f"                            or {cache / 1e9:6.0f} GB/s (cache) "
        f" {moved * steps / cache:8.1f} s, if a teacher stays in the cache"
    )


def compare(options: argparse.Namespace) -> None:
    """Print our time and that of both loops, round by round."""
    shards = make_shards(options.teachers, options.records)
    processes = os.cpu_count() or 1
    share = options.teachers if options.full else min(options.loop_teachers, options.teachers)
    share = max(processes, share // options.rounds // processes * processes)
    parts = np.array_split(np.arange(options.teachers), options.rounds)
    print(
        f"\n{options.teachers} teachers × {options.records} images × {options.epochs} epochs on "
        f"{processes} cores; seconds for all teachers (loops: measured on {share} a round)\n"
        f"{'round':>6} {'ours':>8} {'(a)':>8} {'(b)':>8} {'(a)/ours':>9} {'(b)/ours':>9}"
    )
    context = multiprocessing.get_context("spawn")
    rows = []
    with context.Pool(processes, initializer=start_process) as pool:
        pool.map(abs, range(processes))
        train_one(shards[0], 0, 1)
        ours(1).fit_shards(shards[:2], [0, 1], N_CLASSES)
        for number, part in enumerate(parts):
            own = [shards[teacher] for teacher in part]
            jobs = [(shard, seed, options.epochs) for seed, shard in enumerate(shards[:share])]
            times = one_round(own, part.tolist(), jobs, options.epochs, pool)
            rows.append([options.teachers * each for each in times])
            print_row(str(number + 1), rows[-1])
    print_row("median", [statistics.median(column) for column in zip(*rows, strict=True)])


def one_round(
    shards: list[Shard],
    seeds: list[int],
    jobs: list[tuple[Shard, int, int]],
    epochs: int,
    pool: Any,
) -> tuple[float, float, float]:
    """Measure seconds per teacher: ours, (a), (b)."""
    return (
        seconds(lambda: ours(epochs).fit_shards(shards, seeds, N_CLASSES)) / len(shards),
        seconds(lambda: [train_one(*job) for job in jobs]) / len(jobs),
        seconds(lambda: pool.map(train_in_process, jobs, chunksize=1)) / len(jobs),
    )


def print_row(name: str, times: Sequence[float]) -> None:
    mine, loop, processes = times
    print(
        f"{name:>6} {mine:8.1f} {loop:8.1f} {processes:8.1f} {loop / mine:9.2f} "
        f"{processes / mine:9.2f}",
        flush=True,
    )


def same_results(options: argparse.Namespace) -> None:
    """Print what teachers of ours and of the plain loop get right: the time buys the same."""
    X, y = make_shards(1, 1000, seed=99)[0]
    shards = make_shards(6, options.records)
    model = ours(options.epochs)
    trained = model.fit_shards(shards, range(6), N_CLASSES)
    batched = np.mean([(votes == y).mean() for votes in model.predict_shards(trained, X)])
    images = torch.from_numpy(X)
    plain = np.mean(
        [
            (train_one(shard, seed, options.epochs)(images).argmax(1).numpy() == y).mean()
            for seed, shard in enumerate(shards)
        ]
    )
    print(f"\nmean accuracy of 6 teachers: ours {batched:.3f}, plain loop {plain:.3f}")


def asking(options: argparse.Namespace) -> None:
    """Print what it takes to ask teachers about public records."""
    count = min(options.teachers, 40)
    model = ours(1)
    shards = make_shards(count, 32)
    trained = model.fit_shards(shards, range(count), N_CLASSES)
    X, _ = make_shards(1, 2000)[0]
    modules = [network.module() for network in trained]

    def one_by_one() -> None:
        with torch.no_grad():
            for module in modules:
                for part in torch.from_numpy(X).split(256):
                    module(part).argmax(1)

    mine = best(lambda: model.predict_shards(trained, X), 3)
    loop = best(one_by_one, 3)
    print(
        f"\nasking {count} teachers about 2,000 images: ours {mine:.1f} s, one by one {loop:.1f} s "
        f"(ratio {loop / mine:.2f})"
    )


def growth(options: argparse.Namespace) -> None:
    """Print how time grows with teachers and with shards, two epochs each."""
    epochs = 2
    counts = (5, 10, 25) if options.quick else (25, 50, 100, 250, 1000)
    sizes = (60, 240) if options.quick else (60, 120, 240, 480, 960)
    print(f"\ngrowth, {epochs} epochs: seconds, and milliseconds per teacher and step")
    for count, records in [(count, 240) for count in counts] + [(24, size) for size in sizes]:
        shards = make_shards(count, records)
        took = seconds(
            lambda shards=shards: ours(epochs).fit_shards(shards, range(len(shards)), N_CLASSES)
        )
        steps = count * epochs * len(Recipe().batch_sizes(records))
        print(
            f"  {count:5} teachers × {records:4} images {took:8.2f} s {1000 * took / steps:8.2f} ms",
            flush=True,
        )


def compiled() -> None:
    """Print what ``torch.compile`` costs and gains for one teacher's gradients, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    X, y = (torch.from_numpy(array[:24]) for array in make_shards(1, 24)[0])
    network = seed_cnn(N_CLASSES).train()
    blueprint = draw_up(seed_cnn, N_CLASSES, (1, 28, 28))
    stack = blueprint.stack(1, torch.device("cpu"))
    stack.put(0, *blueprint.initial(0))
    targets = F.one_hot(y, N_CLASSES).float()[None]

    def step(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
        network.zero_grad()
        F.cross_entropy(call(X), y).backward()

    faster = torch.compile(network)
    try:
        cost = seconds(lambda: step(faster))
    except Exception as error:  # no compiler here
        print(f"\ntorch.compile does not work here: {type(error).__name__}")
        return
    ways: dict[str, Callable[[], None]] = {
        "plain": lambda: step(network),
        "compiled": lambda: step(faster),
        "by hand": lambda: stack.backpropagate(X[None], targets, StepInput([24])),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(40):
        for name, way in ways.items():
            times[name].append(best(way, 5))
    torch.set_num_threads(threads)
    print(f"\ntorch.compile: {cost:.1f} s once; gradients of one step on one thread:", end=" ")
    print(", ".join(f"{name} {1000 * min(each):.2f} ms" for name, each in times.items()))


def gpu(options: argparse.Namespace) -> None:
    """Print our time and that of loop (a) on a GPU."""
    if not torch.cuda.is_available():
        print("\nno GPU here: its comparison is left out")
        return
    shards = make_shards(options.teachers, options.records)
    seeds = list(range(options.teachers))
    share = options.teachers if options.full else min(options.teachers, 5)
    train_one(shards[0], 0, 1, "cuda")
    for precision in ("float32", "bfloat16"):
        model = ours(options.epochs, device="cuda", precision=precision)
        ours(1, device="cuda", precision=precision).fit_shards(shards[:8], seeds[:8], N_CLASSES)
        mine = seconds(lambda model=model: model.fit_shards(shards, seeds, N_CLASSES))

        def loop() -> None:
            for seed in range(share):
                train_one(shards[seed], seed, options.epochs, "cuda")
            torch.cuda.synchronize()

        plain = seconds(loop) * options.teachers / share
        print(
            f"\n{torch.cuda.get_device_name()}, {precision}: ours {mine:.1f} s, (a) {plain:.1f} s "
            f"(on {share} teachers, scaled): {plain / mine:.1f}×"
        )


def accuracy(options: argparse.Namespace) -> None:
    """Print accuracy and time of the named networks on shards of MNIST."""
    mnist = load_dataset("mnist", options.data_dir)
    images = (mnist.X.reshape(len(mnist.X), -1) / 255).astype(np.float32)
    labels = np.asarray(mnist.y).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    count = 4 if options.quick else 20
    shards = [(images[rows], labels[rows]) for rows in order[: 240 * count].reshape(count, 240)]
    test = order[-5000:]
    print(f"\n{count} teachers on 240 images of MNIST each, 5,000 others to test on")
    print(
        f"  {'network':<10} {'epochs':>6} {'accuracy':>9} {'sd':>6} {'ensemble':>9} {'s/teacher':>10}"
    )
    for network, epochs in (
        ("seed-cnn", 20), ("seed-cnn", 40), ("small-cnn", 10), ("small-cnn", 20), ("small-cnn", 40)
    ):  # fmt: skip
        model = NeuralClassifier(network, epochs=epochs, device="cpu")
        start = time.perf_counter()
        trained = model.fit_shards(shards, range(count), N_CLASSES)
        took = (time.perf_counter() - start) / count
        votes = np.array(model.predict_shards(trained, images[test]))
        right = (votes == labels[test]).mean(axis=1)
        together = (np.eye(N_CLASSES)[votes].sum(axis=0).argmax(axis=1) == labels[test]).mean()
        print(
            f"  {network:<10} {epochs:6} {right.mean():9.4f} {right.std():6.4f} {together:9.4f} "
            f"{took:10.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few teachers, two epochs")
    parser.add_argument("--full", action="store_true", help="loops train every teacher, too")
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--records", type=int, default=240)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop-teachers", type=int, default=30)
    parser.add_argument("--compile", action="store_true", help="measure torch.compile as well")
    parser.add_argument("--data-dir", help="folder of data sets, for accuracy on MNIST")
    parser.add_argument("--only", choices=["compare", "growth", "accuracy", "gpu", "compile"])
    options = parser.parse_args()
    if options.quick:
        options.teachers, options.epochs, options.rounds = 12, 2, 2
        options.loop_teachers = 4
    print(f"torch {torch.__version__}, {os.cpu_count()} cores")
    if options.only in (None, "compare"):
        floors(options.teachers, options.records, options.epochs)
        compare(options)
        same_results(options)
        asking(options)
    if options.only in (None, "growth"):
        growth(options)
    if options.compile or options.only == "compile":
        compiled()
    if options.only in (None, "gpu"):
        gpu(options)
    if options.data_dir and options.only in (None, "accuracy"):
        accuracy(options)


if __name__ == "__main__":
    main()
