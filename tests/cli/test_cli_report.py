"""`checkmate report` and `solve --report`: the files, and the page itself in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import Page, find_browser, opened
from cli_runs import chain_document, files_in, run
from looked_at_schedules import changed, solved_chain, without_graph

from checkmate.io.report.page import embedded_json

HOSTILE = [
    "</script><img src=x onerror=\"document.title='broken'\">",
    "<!--<script>",
    "a'\"&amp;`${1}`",
    "two\nlines\u2028and\u202eturned",
    "@DATA@ @SCRIPT@",
]


def hostile_schedule(folder: Path) -> Path:
    """The chain with operations that are named to break out of the page."""
    document = chain_document(8)
    names = {f"op{index}": name for index, name in enumerate(HOSTILE)}
    for operation in document["operations"]:
        operation["name"] = names.get(operation["name"], operation["name"])
        operation["kind"] = "<b>kind</b>"
        operation["inputs"] = [names.get(name, name) for name in operation["inputs"]]
    document["name"] = "<script>document.title='broken'</script>"
    document["fixed"] = {"<i>parameters": 2}
    (folder / "hostile.json").write_text(json.dumps(document))
    ran = run(folder, "solve", "hostile.json", "--budget", "6", "--strategy", "optimal")
    assert ran.code == 0, ran.err
    return folder / "hostile.schedule.json"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert run(folder, "report", hostile_schedule(folder)).code == 0
    return folder / "hostile.report.html"


@pytest.fixture(scope="module", params=[(1200, False), (390, True)], ids=["light and wide", "dark and narrow"])
def page(request: pytest.FixtureRequest, page_file: Path) -> Iterator[Page]:
    width, dark = request.param
    with opened(page_file, width, 800, dark) as loaded:
        yield loaded


def test_it_loads_without_a_complaint_and_asks_nobody_for_anything(page: Page) -> None:
    assert page.complaints == []
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file://")


def test_nothing_in_a_name_is_markup(page: Page) -> None:
    assert page.run("document.title").startswith("<script>document.title='broken'</script>: checkmate report")
    assert page.text("h1") == "<script>document.title='broken'</script>"
    assert page.run("document.querySelectorAll('img, main b:not([class]) b, i:not(.swatch)').length") == 0
    assert HOSTILE[0] in page.text("#largest")
    assert HOSTILE[4] in page.text("#largest")
    assert "two\ufffdlines\ufffdand\ufffdturned" in page.text("#largest")


def test_the_figures_are_those_of_the_schedule(page: Page, page_file: Path) -> None:
    schedule = json.loads((page_file.parent / "hostile.schedule.json").read_text())
    tiles = page.text("#tiles")
    assert f"{schedule['peak_bytes']} B" in tiles
    assert f"{schedule['recomputed']} times" in tiles
    assert f"{100 * schedule['overhead']:.2f} %" in tiles
    again = page.run("[...document.querySelectorAll('#recomputed tbody tr')].map((row) => Number(row.cells[2].textContent))")
    assert sum(again) == schedule["recomputed"]
    assert schedule["graph"]["digest"] in page.text("#facts")


def test_hovering_shows_what_is_alive(page: Page, page_file: Path) -> None:
    schedule = json.loads((page_file.parent / "hostile.schedule.json").read_text())
    steps = [step for step in schedule["steps"] if step[0] == "compute"]
    seen = []
    for number in (0, len(steps) - 1):
        page.hover("#memory-picture", 0.5, 0.5)
        box = page.run("document.querySelector('#memory-picture').getBoundingClientRect().width")
        plot = box - 76
        page.hover("#memory-picture", (66 + plot * (number + 0.5) / len(steps)) / box, 0.5)
        text = page.text("#moment-after")
        assert f"{number + 1} of {len(steps)}" in text
        assert "<i>parameters, fixed" in text
        assert "1 B" in page.text("#moment-after ol")
        seen.append(text)
    assert seen[0] != seen[1]
    assert "Without recomputation" in page.text("#moment-before")
    assert page.complaints == []


def test_arrow_keys_move_from_computation_to_computation(page: Page) -> None:
    page.run("document.querySelector('#memory-chart').focus()")
    page.press("Home")
    assert "at the peak" in page.text("#moment-after")
    before = re.search(r"(\d+) of \d+", page.text("#moment-after"))
    page.press("ArrowRight")
    after = re.search(r"(\d+) of \d+", page.text("#moment-after"))
    assert before is not None
    assert after is not None
    assert int(after.group(1)) == int(before.group(1)) + 1


def test_the_axis_can_be_changed(page: Page) -> None:
    picture = "document.querySelector('#memory-picture').toDataURL()"
    by_cost = page.run(picture)
    page.run("document.querySelector('#by-step').click()")
    assert page.run("document.querySelector('#by-step').getAttribute('aria-pressed')") == "true"
    page.run("document.querySelector('#by-time').click()")
    assert page.run(picture) == by_cost


def test_the_matrices_say_what_is_under_the_pointer(page: Page) -> None:
    page.hover("#matrix-r", 0.5 / 17, 0.5 / 17)
    assert page.text("#matrix-readout") == f"stage 1 computes {HOSTILE[0]} for the first time"
    page.hover("#matrix-s", 0.5 / 17, 1.5 / 17)
    assert f"{HOSTILE[0]}, 1 B, is kept from stage 2" in page.text("#matrix-readout")
    for name in ("matrix-r", "matrix-s", "memory-picture", "progress-picture"):
        canvas = f"document.querySelector('#{name}')"
        assert page.run(f"{canvas}.getContext('2d').getImageData(0, 0, {canvas}.width, {canvas}.height).data.some(Boolean)"), name


def test_tables_sort_by_any_column(page: Page) -> None:
    names = "[...document.querySelectorAll('#largest tbody tr')].map((row) => row.cells[0].textContent)"
    page.run("document.querySelector('#largest th button').click()")
    shown = page.run(names)
    assert shown == sorted(shown)
    page.run("document.querySelector('#largest th button').click()")
    assert page.run(names) != shown
    assert page.run("document.querySelector('#largest th').getAttribute('aria-sort')") == "descending"


def test_nothing_is_wider_than_the_screen(page: Page) -> None:
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_dark_is_dark(page_file: Path) -> None:
    colours = []
    for dark in (False, True):
        with opened(page_file, 390, 600, dark) as loaded:
            colours.append(loaded.run("getComputedStyle(document.body).backgroundColor"))
            bright = [sum(map(int, re.findall(r"\d+", colour))) > 380 for colour in colours]
    assert bright == [True, False]


@pytest.mark.slow
def test_ten_thousand_operations_stay_small_and_quick_to_hover(tmp_path: Path) -> None:
    document = chain_document(5000)
    for number, operation in enumerate(document["operations"]):
        operation |= {"bytes": 1_000_000 + number * 7919 % 1_000_003, "cost": 1 + number % 13}
    (tmp_path / "long.json").write_text(json.dumps(document))
    assert run(tmp_path, "solve", "long.json", "--budget", "50%", "--strategy", "chen-sqrt", "--report", "long.html").code == 0
    assert (tmp_path / "long.html").stat().st_size < 5_000_000
    with opened(tmp_path / "long.html") as loaded:
        loaded.hover("#memory-picture", 0.6, 0.5)
        assert "more values" in loaded.text("#moment-after")
        loaded.hover("#matrix-r", 0.1, 0.9)
        assert "op" in loaded.text("#matrix-readout")
        loaded.run("document.querySelector('#recomputed .more').click()")
        assert loaded.run("document.querySelectorAll('#recomputed tbody tr').length") == 515
        assert loaded.complaints == []


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_is_one_file_that_forbids_itself_everything_else(page_file: Path) -> None:
    tags = Tags(page_file.read_text("utf-8")).found
    assert [attributes for _, attributes in tags if "src" in attributes] == []
    assert [attributes["href"] for _, attributes in tags if "href" in attributes] == ["data:,"]
    policy = next(attributes["content"] for _, attributes in tags if attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy


def test_embedded_data_cannot_end_its_script() -> None:
    data = {"name": "</script><!-- \ud800"}
    assert "<" not in embedded_json(data)
    assert json.loads(embedded_json(data)) == data


def test_where_the_page_goes(tmp_path: Path) -> None:
    solved_chain(tmp_path, "model.schedule.json")
    (tmp_path / "pages").mkdir()
    assert "wrote model.report.html" in run(tmp_path, "report", "model.schedule.json").out
    assert run(tmp_path, "report", "model.schedule.json", "-o", "pages").code == 0
    assert run(tmp_path, "report", "model.schedule.json", "-o", "made/x.html", "-q").out == ""
    ran = run(tmp_path, "report", "model.schedule.json", "-o", "y.html", "--json").json
    assert (ran["format"], ran["status"], ran["outputs"]) == ("checkmate-report", "ok", ["y.html"])
    assert ran["bytes"] == (tmp_path / "y.html").stat().st_size
    piped = run(tmp_path, "report", "-", "-o", "-", stdin=(tmp_path / "model.schedule.json").read_bytes())
    assert piped.out.startswith("<!doctype html>")
    pages = [tmp_path / name for name in ("model.report.html", "pages/model.report.html", "made/x.html", "y.html")]
    assert {path.read_text("utf-8") for path in pages} == {piped.out}


def test_solve_writes_the_page_with_the_rest(tmp_path: Path) -> None:
    solved_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "4", "--strategy", "optimal", "--report", "page.html", "--json")
    assert ran.json["outputs"] == ["chain.schedule.json", "page.html"]
    assert run(tmp_path, "report", "chain.schedule.json", "-o", "again.html").code == 0
    assert (tmp_path / "again.html").read_text("utf-8") == (tmp_path / "page.html").read_text("utf-8")
    ran = run(tmp_path, "solve", "chain.json", "--budget", "4", "--strategy", "optimal", "--report", "pages/", "--json")
    assert ran.json["outputs"] == ["chain.schedule.json", "pages/chain.report.html"]
    (tmp_path / "chain.html").write_bytes((tmp_path / "chain.json").read_bytes())
    for source, page, words in (("chain.html", "chain.html", "overwrite the input"), ("chain.json", "x.pdf", "HTML page")):
        refused = run(tmp_path, "solve", source, "--budget", "4", "--report", page)
        assert refused.code == 2
        assert words in refused.err


def test_a_schedule_without_its_graph_needs_it_named(tmp_path: Path) -> None:
    path = solved_chain(tmp_path)
    without_graph(path)
    missing = run(tmp_path, "report", "a.json")
    assert missing.code == 2
    assert missing.err == "error: a.json: this file does not contain its graph; name the graph that was solved with --graph\n"
    assert run(tmp_path, "report", "a.json", "--graph", "chain.json").code == 0
    (tmp_path / "other.json").write_text(json.dumps(chain_document(3)))
    other = run(tmp_path, "report", "a.json", "--graph", "other.json")
    assert other.code == 2
    assert "belongs to another graph" in other.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chain.json"], "expected 'checkmate-schedule'"),
        (["nowhere.json"], "nowhere.json"),
        (["a.json", "-o", "a.json"], "a report is an HTML page"),
        (["page.html", "-o", "page.html"], "overwrite the input"),
        (["model.onnx"], "this is not a schedule file"),
        (["a.json", "-o", "-", "--json"], "both write to stdout"),
        (["-", "--graph", "-"], "cannot both be -"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "page.html").write_bytes(solved_chain(tmp_path).read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08:\x00")
    before = files_in(tmp_path)
    ran = run(tmp_path, "report", *arguments)
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("lie", [{"peak_bytes": 3}, {"cost": 20}, {"budget_bytes": 3}, {"recomputed": 1}])
def test_a_schedule_that_does_not_hold_is_no_report(tmp_path: Path, lie: dict[str, int]) -> None:
    path = solved_chain(tmp_path)
    changed(path, lambda document: document.update(lie))
    ran = run(tmp_path, "report", "a.json")
    assert ran.code == 6
    assert "fails verification" in ran.err
    assert ran.err.count("\n") == 1


def test_a_browser_that_is_missing_is_no_pass_in_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        find_browser()
