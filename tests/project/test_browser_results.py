"""Files from people's browsers: each that is kept is whole, right and of a GPU."""

import json

import pytest

from helpers.collected import MOST_BYTES, problems
from helpers.page_files import page_file, raw_block, raw_result, two_blocks
from helpers.paths import RESULTS
from helpers.results import document, measurement


def test_kept_files_have_no_problem():
    for folder, suite in (("browser", "browser"), ("cards", "card")):
        for path in sorted((RESULTS / folder).glob("*.json")):
            assert problems(path, suite) == [], path.name


def test_a_card_is_native_of_its_suite_and_whole(tmp_path):
    path = tmp_path / "amd-radeon-2026-01-02.json"
    card = document([measurement("scan", 16)])
    card["context"]["suite"] = "card"
    path.write_text(json.dumps(card))
    assert problems(path, "card") == []
    path.write_text(json.dumps({**card, "complete": False}))
    assert problems(path, "card") == ["the run was stopped; let it finish"]
    assert any("suite 'card', not of 'browser'" in problem for problem in problems(path))


def _file(tmp_path, name="invented-9000-2026-01-02.json", results=None, **changed):
    path = tmp_path / name
    path.write_text(json.dumps(page_file([raw_result(two_blocks())] if results is None else results, **changed)))
    return path


def test_a_good_file_has_no_problem(tmp_path):
    assert problems(_file(tmp_path)) == []


_UNTIMED = {
    name: value for name, value in raw_block(1000, [400_000] * 5).items() if name not in ("before", "after", "ticks")
}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": "My GPU.json"}, "it is called My GPU.json"),
        ({"suite": None}, "not of 'browser'"),
        ({"complete": False}, "the run was stopped"),
        ({"class": "4/256/16384/true/tickets"}, "software on the CPU"),
        ({"calibration": None, "results": [raw_result([_UNTIMED])]}, "no timestamps"),
        ({"results": [raw_result(two_blocks(), checks=[{"output": "output", "wrong": "item 3"}] * 2)]}, "item 3; open"),
        ({"results": [raw_result([], error="DeviceLost", checks=[])]}, "no case was measured"),
        ({"results": [raw_result([], error="at /home/me/x", checks=[]), raw_result(two_blocks())]}, "'/home/'"),
        ({"bundle_sha256": "x"}, r"$.bundle_sha256"),
    ],
)  # fmt: skip
def test_each_problem_is_named(tmp_path, changed, problem):
    given = dict(changed)
    if "name" in given:
        (found,) = problems(_file(tmp_path, given["name"]))
    else:
        (found,) = problems(_file(tmp_path, **given))
    assert problem in found


def test_a_large_file_or_another_kind_is_refused(tmp_path):
    path = _file(tmp_path)
    path.write_text(path.read_text() + " " * MOST_BYTES)
    assert any("bytes" in problem for problem in problems(path))
    native = json.loads((RESULTS / "h200" / "bench.json").read_text())
    path.write_text(json.dumps({**native, "results": native["results"][:1]}))
    assert any("not the file that a page saves" in problem for problem in problems(path))
