"""PyTorch programs in files: read without unpickling, traced, compiled, loaded by stock torch."""

from __future__ import annotations

import copy
import io
import json
import pickle
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

from torch_files import Tiny, gpt_file, logits_file, program_file, resnet_file, tiny_file
from torch_runs import peak_bytes
from torch_zoo import ZOO

import checkmate
from checkmate.io.formats.content import Content
from checkmate.io.torch.files.archive import open_archive
from checkmate.io.torch.files.program_graph import read_program
from checkmate.io.torch.operation_costs import measure_operations

EXPORTED = [
    *("gpt", "gpt-dropout", "checkpoint", "resnet", "shared-norm", "unet", "mobilenet", "vit", "moe", "lstm-cells"),
    *("buffers", "autocast"),
]
"""Those whose export computes the same bits as eager mode: the export of an autograd.Function does not contain its backward pass, and
nn.LSTM has kernels of its own in eager mode."""


def rewritten(data: bytes, change: Any) -> bytes:
    """The same archive with its program changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(made, "w") as out:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("models/model.json"):
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            out.writestr(name, content)
    return made.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTED)
def test_a_compiled_program_in_stock_torch(name: str, tmp_path: Path) -> None:
    """Loss, gradients by name and buffers are bit-equal to eager autograd, in the predicted peak."""
    entry = ZOO[name]
    torch.manual_seed(0)
    model = entry.make()
    inputs = entry.inputs()[:1] if name == "buffers" else entry.inputs()
    source = tmp_path / f"{name}.pt2"
    torch.export.save(torch.export.export(model, inputs), source)
    loaded = checkmate.load(source)
    assert loaded.torch is not None
    costs = measure_operations(loaded.torch.traced).costs
    result = loaded.price(costs).solve("80%", time_limit=20, gap=0.3)
    assert result.recomputed > 0
    result.save(tmp_path / "compiled.pt2")
    module = torch.export.load(tmp_path / "compiled.pt2").module()
    torch.manual_seed(1)
    loss, gradients = module(*inputs)
    eager = copy.deepcopy(model)
    torch.manual_seed(1)
    expected = eager(*inputs)
    expected.backward()
    assert torch.equal(loss, expected.detach())
    assert dict.fromkeys(gradients, True) == {key: torch.equal(gradients[key], each.grad) for key, each in eager.named_parameters()}
    found = dict(module.named_buffers())
    assert all(torch.equal(each, found[key]) for key, each in eager.named_buffers())
    del loss, gradients, expected
    fresh = torch.export.load(tmp_path / "compiled.pt2").module()
    assert peak_bytes(lambda: fresh(*inputs)) + loaded.graph.fixed_bytes == result.peak_bytes


def test_what_is_read() -> None:
    """Inputs, a loss among the outputs, free sizes, a buffer that is written to."""
    loaded = checkmate.load(tiny_file(), batch_size=10)
    program = loaded.torch
    assert program is not None
    assert loaded.format == "torch"
    assert loaded.memory_model is checkmate.MemoryModel.TORCH
    assert loaded.has_backward_pass
    assert [spec.kind for spec in program.outputs] == ["buffer", "loss", "output", *["gradient"] * 4]
    assert program.program.symbols
    assert loaded.graph.fixed["inputs"] == 10 * 4 * 4 + 10 * 8 + 16
    assert loaded.graph.fixed["constants"] == 16
    assert checkmate.load(tiny_file()).graph.fixed["inputs"] == 6 * 4 * 4 + 6 * 8 + 16


@pytest.mark.slow
def test_inputs_keep_their_structure(tmp_path: Path) -> None:
    """Keywords and nested inputs are passed as they were, and labels come last."""
    result = checkmate.solve(checkmate.load(tiny_file()), "100%")
    result.save(tmp_path / "tiny.pt2")
    x, labels = torch.randn(6, 4), torch.zeros(6, dtype=torch.long)
    loss, logits, gradients = torch.export.load(tmp_path / "tiny.pt2").module()(x, labels, shift=torch.ones(4))
    assert loss.shape == ()
    assert logits.shape == (6, 3)
    assert sorted(gradients) == ["one.bias", "one.weight", "two.bias", "two.weight"]
    added = checkmate.differentiate(logits_file(), loss="mse", freeze=["words*", "places*"])
    checkmate.solve(added, "100%").save(tmp_path / "mse.pt2")
    tokens = torch.zeros(4, 32, dtype=torch.long)
    loss, logits, gradients = torch.export.load(tmp_path / "mse.pt2").module()(tokens, torch.zeros(4, 32, 64))
    assert torch.equal(loss, logits.square().mean())
    assert not any(name.startswith(("words", "places")) for name in gradients)


def test_the_schedule_of_a_program_is_valid_by_its_schema(tmp_path: Path) -> None:
    checkmate.solve(checkmate.load(tiny_file()), "100%").save(tmp_path / "tiny.schedule.json")
    document = json.loads((tmp_path / "tiny.schedule.json").read_text())
    assert document["runtime"] == document["bound_runtime"] == "torch"
    schema = json.loads(files("checkmate.io.schemas").joinpath("schedule.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


def test_a_program_without_a_loss_is_read_as_it_is() -> None:
    loaded = checkmate.load(logits_file())
    assert not loaded.has_backward_pass
    with pytest.raises(checkmate.InputError, match="is not one floating-point number"):
        checkmate.differentiate(logits_file(), loss_output="linear_4")
    with pytest.raises(checkmate.InputError, match="no output 'nothing'"):
        checkmate.differentiate(logits_file(), loss_output="nothing")
    with pytest.raises(checkmate.InputError, match=r"no parameter matches 'wrods.weight'; did you mean 'words\.weight'"):
        checkmate.differentiate(gpt_file(), train=["wrods.weight"])
    with pytest.raises(checkmate.InputError, match="optimizer is for ONNX models"):
        checkmate.differentiate(logits_file(), loss="mse", optimizer="sgd")


def test_sizes_that_are_not_free() -> None:
    with pytest.raises(checkmate.InputError, match="no free size for --batch-size"):
        checkmate.load(resnet_file(), batch_size=3)
    with pytest.raises(checkmate.InputError, match="no free size 'batch'"):
        checkmate.load(tiny_file(), dims={"batch": 3})


class Harmful:
    """Leaves a trace if it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.path),)


@pytest.mark.parametrize("place", ["data/sample_inputs/model.pt", "data/weights/weight_0", "data/constants/opaque_obj_0"])
def test_nothing_is_unpickled(place: str, tmp_path: Path) -> None:
    """A pickle in any place of the archive is not loaded, whatever the configuration says."""
    trap = tmp_path / "harm"
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(tiny_file())) as archive, zipfile.ZipFile(made, "w") as out:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith(place):
                data = pickle.dumps(Harmful(str(trap)))
            if name.endswith("model_weights_config.json") and "weights" in place:
                document = json.loads(data)
                next(iter(document["config"].values()))["use_pickle"] = True
                data = json.dumps(document).encode()
            if name.endswith("model_constants_config.json") and "constants" in place:
                document = json.loads(data)
                next(iter(document["config"].values()))["path_name"] = "opaque_obj_0"
                data = json.dumps(document).encode()
            out.writestr(name, data)
    loaded = checkmate.load(made.getvalue())
    result = checkmate.solve(loaded, "100%")
    if "sample_inputs" in place:
        result.save(tmp_path / "compiled.pt2")
    else:
        with pytest.raises(checkmate.InputError, match="stored as a pickled object, which is never loaded"):
            result.save(tmp_path / "compiled.pt2")
    assert not trap.exists()


@pytest.mark.parametrize(
    "target",
    [
        *("torch.os.system", "torch.ops.aten.from_file.default", "torch.ops.load_library", "os.system", "_operator.attrgetter", "eval"),
        *(
            "torch.ops.aten.__init__.default",
            "torch.ops.mylib.op.default",
            "torch.ops.aten.add.__class__",
            "torch.ops.aten.nothing.default",
        ),
    ],
)
def test_only_operators_on_tensors_are_looked_up(target: str) -> None:
    def change(document: Any) -> None:
        document["graph_module"]["graph"]["nodes"][0]["target"] = target

    with pytest.raises(checkmate.InputError, match=r"not supported|no operator|not an operator|fails"):
        checkmate.load(rewritten(tiny_file(), change))


def test_expressions_are_not_evaluated(tmp_path: Path) -> None:
    """torch would pass this text to sympy, which evaluates it."""
    trap = tmp_path / "harm"

    def change(document: Any) -> None:
        graph = document["graph_module"]["graph"]
        for size in graph["tensor_values"]["x"]["sizes"]:
            if "as_expr" in size:
                size["as_expr"]["expr_str"] = f"__import__('pathlib').Path({str(trap)!r}).touch()"
        document["guards_code"] = [f"__import__('pathlib').Path({str(trap)!r}).touch()"]

    checkmate.solve(checkmate.load(rewritten(tiny_file(), change)), "100%").save(tmp_path / "compiled.pt2")
    assert not trap.exists()


def test_a_tensor_must_lie_within_its_bytes(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(tiny_file())) as archive, zipfile.ZipFile(made, "w") as out:
        for name in archive.namelist():
            out.writestr(name, archive.read(name)[:-4] if name.endswith("weights/weight_0") else archive.read(name))
    with pytest.raises(checkmate.InputError, match="bytes, but the tensor ends at byte"):
        checkmate.solve(checkmate.load(made.getvalue()), "100%").save(tmp_path / "compiled.pt2")
    assert not (tmp_path / "compiled.pt2").exists()


def test_splitting_into_billions_is_refused() -> None:
    def change(document: Any) -> None:
        graph = document["graph_module"]["graph"]
        node = next(each for each in graph["nodes"] if "split" in each["target"])
        node["inputs"][1]["arg"] = {"as_int": 1}
        for name in ("p_one_weight", "p_one_bias"):
            graph["tensor_values"][name]["sizes"][0] = {"as_int": 3 * 10**8}

    with pytest.raises(checkmate.InputError, match="splits a tensor into more than"):
        checkmate.load(rewritten(tiny_file(), change))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04" + bytes(100), "a damaged zip file"),
        (tiny_file()[:2000], "a damaged zip file"),
    ],
)
def test_damaged_archives(data: bytes, words: str) -> None:
    with pytest.raises(checkmate.InputError, match=words):
        checkmate.load(data)


def test_other_zip_files(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as out:
        out.writestr("x.npy", b"")
    with pytest.raises(checkmate.InputError, match="a zip file, but not a PyTorch program"):
        checkmate.load(made.getvalue())


@pytest.mark.slow
def test_estimated_workspace_is_on_the_safe_side() -> None:
    """What is assumed of a file whose operators were not run is no less than what they need."""
    for name in ("resnet", "unet", "mobilenet", "vit", "gpt-dropout", "autocast"):
        entry = ZOO[name]
        archive = open_archive(Content.from_bytes(program_file(entry.make(), entry.inputs()), name))
        traced = read_program(archive, {}, None).traced
        measured = measure_operations(traced).costs.workspace
        for operation in traced.graph.operations:
            if not operation.view:
                assert operation.workspace >= measured[operation.name], (name, operation)


def test_the_same_file_gives_the_same_graph() -> None:
    from checkmate.core.model.digest import graph_digest

    data = program_file(Tiny(), (torch.randn(6, 4), torch.zeros(6, dtype=torch.long)), kwargs={"shift": torch.ones(4)})
    assert graph_digest(checkmate.load(data).graph) == graph_digest(checkmate.load(data).graph)
