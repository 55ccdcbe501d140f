"""PyTorch: how long planning takes, and every model of the test zoo as a file.

python benchmarks/torch_planning.py              from call to first step, for a GPT of 6, 24 and 48 layers
python benchmarks/torch_planning.py --files      `checkmate solve` and `verify` for the .pt2 file of every model of the test zoo
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from torch_zoo import GPT, ZOO, loss_inside, loss_outside, tokens

import checkmate.torch
from checkmate.torch.graphs import CompiledGraph


def speed(layers: list[int], time_limit: float) -> None:
    """From call to first step: all of it, and the part that is ours (reading, measuring, solving, writing the graphs)."""
    original, spent = CompiledGraph.partition, [0.0]

    def timed(*arguments: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return original(*arguments, **options)
        finally:
            spent[0] = time.perf_counter() - begun

    CompiledGraph.partition = timed  # type: ignore[method-assign]
    print("| layers | call to first step | of it ours | gap | overhead | second start, ours |")
    print("|---|---|---|---|---|---|")
    for depth in layers:
        inputs, seconds, planning = tokens(4, 512, 128), [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                torch._dynamo.reset()
                module = GPT(depth, 128, 4, 512, 128)
                compiled = checkmate.torch.compile(module, budget="60%", cache=folder, time_limit=time_limit)
                begun = time.perf_counter()
                loss_inside(compiled, inputs)
                seconds.append(time.perf_counter() - begun)
                planning.append(spent[0])
            (plan,) = checkmate.torch.plans(module)
        print(
            f"| {depth} | {seconds[0]:.1f} s | {planning[0]:.1f} s | {plan.gap:.2%} | {plan.overhead:.2%} | {planning[1]:.1f} s |",
            flush=True,
        )


def files() -> None:
    """Export every model of the test zoo, then `checkmate solve` and `checkmate verify`: what verify says of bits and memory."""
    print("| model | recomputed | outputs and gradients | memory | exit |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in ZOO.items():
            module, inputs = entry.make(), entry.inputs()
            wanted = len(inspect.signature(module.forward).parameters)
            try:
                torch.export.save(torch.export.export(module, inputs[:wanted]), Path(folder) / f"{name}.pt2")
            except Exception as error:  # torch fails in many ways
                print(f"| {name} | torch.export: {str(error).splitlines()[0]} | | | |", flush=True)
                continue
            loss = ("--loss", "cross-entropy") if entry.step is loss_outside else ()
            options = ("--budget", "85%", "--profile", "--time-limit", "3s")
            solved = command(folder, "solve", f"{name}.pt2", *loss, *options)
            checked = command(folder, "verify", f"{name}.pt2", f"{name}.remat.pt2", "--repeat", "2")
            told = {check["name"]: check["summary"] for check in checked.get("checks", ())}
            print(f"| {name} | {solved.get('recomputed')} | {told.get('outputs')} | {told.get('memory')} | {checked['exit']} |", flush=True)


def command(folder: str, *words: str) -> dict[str, Any]:
    ran = subprocess.run([sys.executable, "-m", "checkmate", *words, "--json"], cwd=folder, capture_output=True, text=True, check=False)
    return {**(json.loads(ran.stdout) if ran.stdout else {}), "exit": ran.returncode}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[6, 24, 48])
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each schedule")
    parser.add_argument("--files", action="store_true")
    arguments = parser.parse_args()
    if arguments.files:
        files()
    else:
        speed(arguments.layers, arguments.time_limit)


if __name__ == "__main__":
    main()
