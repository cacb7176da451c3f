"""``gridwise fleet`` and the section of ``gridwise report``: exit codes, documents, and pages of fleets."""

import json
import os
import re
from dataclasses import replace

import pytest

from helpers.chromium import browser, find_chromium
from helpers.commands import gridwise
from helpers.fleets import fleet, fleet_page, results
from helpers.hostile_results import HOSTILE

DRAWN = "document.readyState == 'complete' && document.documentElement.dataset.drawn == 'yes'"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of six devices."""
    monkeypatch.chdir(tmp_path)
    for k in range(6):
        (tmp_path / f"n{k}.json").write_text(json.dumps(results(seed=k)))
    return tmp_path


def _run(*words):
    done = gridwise("fleet", *words)
    assert "internal error" not in done.output
    return done


def _files(folder):
    return sorted(path.name for path in folder.glob("*.json"))


def test_the_worst_decides_the_exit_code(folder):
    def code(**more):
        for name, made in more.items():
            (folder / f"{name}.json").write_text(made if isinstance(made, str) else json.dumps(made))
        return _run(*_files(folder)).exit_code

    assert code() == 0
    assert code(slow=results(1.3)) == 1
    assert code(failed=results(error="device lost")) == 6
    assert code(cut="{") == 6
    assert code(wrong=results(wrong=True)) == 4


def test_bad_input(folder):
    (folder / "bad.json").write_text("{")
    (folder / "bad.fleet.json").write_text('{"schema": "gridwise.fleet", "schema_version": 9}')
    for words in (
        ["bad.json"], ["absent.json"], ["n0.json", "--baseline", "bad.json"], ["n0.json", "bad.fleet.json"],
        ["n0.json", "--gate", "2"], ["n0.json", "--json", "n0.json"], ["n0.json", "--json", "absent/x.json"], [],
    ):  # fmt: skip
        done = _run(*words)
        assert done.exit_code == 2, (words, done.output)
        assert done.stderr.strip()
    assert "version" in _run("n0.json", "bad.fleet.json").stderr


def test_the_document_names_its_files_and_is_a_baseline(folder):
    assert _run(*_files(folder), "--json", "good.fleet.json").exit_code == 0
    written = json.loads((folder / "good.fleet.json").read_text())
    assert [member["file"] for member in written["members"]] == [f"n{k}.json" for k in range(6)]
    (folder / "today.json").write_text(json.dumps(results(1.2, seed=9)))
    assert _run("today.json").exit_code == 0
    done = _run("today.json", "--baseline", "good.fleet.json", "--json", "today.fleet.json")
    assert done.exit_code == 1
    assert "against the baseline" in done.output
    assert re.fullmatch("[0-9a-f]{64}", json.loads((folder / "today.fleet.json").read_text())["baseline"])
    assert _run("today.json", "--baseline", "good.fleet.json", "--gate", "30%").exit_code == 0
    # A results file of one good device is a baseline, too.
    assert _run("today.json", "--baseline", "n0.json").exit_code == 1


def test_the_table_names_the_accused(folder):
    (folder / "n7.json").write_text(json.dumps(results(1.3)))
    (folder / "n8.json").write_text(json.dumps(results(wrong=True)))
    done = _run(*_files(folder))
    lines = done.output.splitlines()
    assert lines[0] == "8 devices · 1 group · 6 as peers · 1 slow · 1 wrong"
    named = [line.split()[0] for line in lines if line.startswith("n")]
    assert named == ["n8", "n7"]
    assert "1.3" in next(line for line in lines if line.startswith("n7"))


# ---- the report


def _report(folder, *words):
    done = gridwise("report", *words, "-o", "out.html")
    assert done.exit_code == 0, done.output
    return (folder / "out.html").read_text()


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_report_of_a_fleet_has_the_files_of_its_accused(folder):
    for name in ("n7", "n8"):
        (folder / f"{name}.json").write_text(json.dumps(results(1.3)))
    _run(*_files(folder), "--json", "all.fleet.json")
    page = _report(folder, "all.fleet.json")
    assert '<section id="fleet"' in page
    assert 'id="comparison"' not in page  # members are not compared with each other
    assert "2 accused" in page
    assert page.count('<article class="card">') == 2
    assert "Save all.fleet.json" in page
    # A file that was changed is not shown as the one that was judged, and one that is gone is named. Results files
    # beside the document are compared with each other, as ever.
    (folder / "n7.json").write_text(json.dumps(results(1.3)) + " ")
    (folder / "n8.json").unlink()
    page = _report(folder, "all.fleet.json", "n0.json", "n1.json")
    assert "The file of n7: it is not the one that the fleet was judged by" in page
    assert "The file of n8: n8.json: cannot be read" in page
    assert 'id="comparison"' in page


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_document_cannot_make_a_report_read_what_is_outside_of_its_folder(folder):
    (folder / "inner").mkdir()
    _run(*_files(folder), "--json", "all.fleet.json")
    data = json.loads((folder / "all.fleet.json").read_text())
    data["members"][0] |= {"status": "failed", "file": "link.json"}
    (folder / "inner/all.fleet.json").write_text(json.dumps(data))
    os.symlink(folder / "n0.json", folder / "inner/link.json")
    page = _report(folder, "inner/all.fleet.json")
    assert "not below the folder" in page
    assert '<article class="card">' not in page


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_fleet_without_devices_and_one_of_many_groups_have_pages(tmp_path):
    assert "nobody accused" in fleet_page(tmp_path, replace(fleet(1), cases=(), members=(), planned=()))
    members = tuple(
        member for k in range(6) for member in fleet(2, k, group=f"{k:016}", prefix=f"g{k}-").members
    )  # fmt: skip
    assert "The charts of 2 of 6 groups" in fleet_page(tmp_path, replace(fleet(1), members=members, planned=()))
    large = fleet_page(tmp_path, fleet(230, cases=3, sick={7: ("all", 0.2)}))
    assert "30 of 230 devices in a heat map" in large


def _wild():
    made = fleet(12, 1, sick={0: ("all", 0.3)})
    members = tuple(
        replace(member, id=f"{HOSTILE[k]} {k}", host=HOSTILE[k], adapter=HOSTILE[k], error=HOSTILE[k], attempts=2)
        for k, member in enumerate(made.members)
    )  # fmt: skip
    cases = tuple(replace(case, name=f"{HOSTILE[k % len(HOSTILE)]} {k}") for k, case in enumerate(made.cases))
    return replace(made, members=members, cases=cases, planned=())


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_labels_of_a_fleet_are_text(tmp_path):
    """Outside of scripts, whose data are JSON in which markup is escaped, no label makes an element."""
    page = fleet_page(tmp_path, _wild())
    markup = re.sub(r"(?s)<script.*?</script>", "", page)
    assert "window.pwned" in markup  # the labels are there
    assert not re.search(r"<(img|svg|iframe)", markup)
    assert markup.count("</style>") == 1
    (shared,) = re.findall(r'(?s)<script type="application/json" id="shared">(.*?)</script>', page)
    assert "<" not in shared


@pytest.mark.browser
@pytest.mark.needs("chromium", "module:altair", "module:vl_convert")
def test_the_charts_of_a_fleet_are_drawn_and_no_label_runs(tmp_path):
    path = find_chromium()
    with browser(path) as new:
        for made in (fleet(64, sick={9: ("all", 0.2)}), _wild()):
            fleet_page(tmp_path, made)
            page = new()
            page.look()
            page.open(tmp_path / "fleet.html", DRAWN)
            drawn = page.evaluate(
                "[...document.querySelectorAll('[data-chart]')].map(e => e.querySelectorAll('svg .mark-rect path, svg "
                ".mark-symbol path').length)"
            )
            assert len(drawn) == 2
            assert min(drawn) > 10
            assert page.evaluate("document.querySelectorAll('.failed').length") == 0
            assert page.evaluate("window.pwned ?? null") is None
            assert page.complaints == []


def test_a_baseline_of_other_devices_says_that_it_is_none(folder):
    (folder / "other.json").write_text(json.dumps(results(device={"driver": "9.9"})))
    done = _run("n0.json", "n1.json", "--baseline", "other.json")
    assert done.exit_code == 0
    assert "the baseline has no device such as" in done.stderr
    assert "driver 9.9" not in done.stderr
    assert "the baseline has no device" not in _run("n0.json", "--baseline", "n1.json").stderr
