"""`reproduce --check`: recorded verdicts, and those that every test run checks."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ncmesh.failure import Kind
from ncmesh_papers import reproduce
from ncmesh_papers.__main__ import main
from ncmesh_papers.reproduce import CHEAP, EXPERIMENTS, claims, reasons, results
from ncmesh_papers.reproduce.experiment import Experiment, Findings
from ncmesh_papers.reproduce.page import Text, counts, page
from ncmesh_papers.reproduce.plots import panels

PAGES = Path(__file__).parents[1] / "pages"
PAPERS = ("core", "mc2", "mmu", "pacifier", "tcp")


def test_cheap_experiments_have_their_recorded_verdicts(tmp_path, capsys):
    assert main(["reproduce", "cheap", "--check", str(PAGES), "--out", str(tmp_path)]) == 0
    assert "every verdict is as recorded" in capsys.readouterr().out
    assert set(CHEAP) <= set(EXPERIMENTS)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """An experiment with two claims, and the folder in which its verdicts are recorded."""
    names = ["faster, toy", "faster, toy, lab"]

    def findings(_rows, _scale):
        figure, (axes,) = panels(1)
        axes.plot([1, 2])
        found = [claims.holds(name, "it is", name in truths) for name in names]
        return Findings(found, [{"value": 1}], figure)

    truths = set(names)
    toy = Experiment("toy-one", "A toy", "Nothing is read.", findings, size=lambda _: {})
    monkeypatch.setitem(reproduce.EXPERIMENTS, "toy-one", toy)
    out = tmp_path / "recorded"
    out.mkdir()
    assert main(["reproduce", "toy", "--out", str(out)]) == 0
    return names, truths, out


def check(out, recorded):
    out.mkdir(exist_ok=True)
    return main(["reproduce", "toy", "--check", str(recorded), "--out", str(out)])


def test_a_changed_verdict_is_listed_and_fails(toy, tmp_path, capsys):
    _, truths, recorded = toy
    assert check(tmp_path / "same", recorded) == 0
    truths.remove("faster, toy")
    assert check(tmp_path / "changed", recorded) == 1
    said = capsys.readouterr()
    assert "changed: toy-one: faster, toy: recorded agrees, now differs" in said.out
    assert f"verdicts that are not those recorded in {recorded}: 1" in said.err


def test_claims_that_only_one_side_has_are_changes_except_those_of_the_lab(toy, tmp_path, capsys):
    names, _, recorded = toy
    names.remove("faster, toy, lab")
    assert check(tmp_path / "no lab", recorded) == 0
    names.append("better, toy")
    assert check(tmp_path / "new", recorded) == 1
    assert "better, toy: recorded not recorded, now differs" in capsys.readouterr().out
    names.clear()
    assert check(tmp_path / "gone", recorded) == 1
    assert "faster, toy: recorded agrees, now not computed" in capsys.readouterr().out


def test_what_is_not_recorded_or_recorded_at_another_scale_is_told(toy, tmp_path, capsys):
    _, _, recorded = toy
    assert check(tmp_path / "none", tmp_path) == 1
    assert "toy-one: no results are recorded" in capsys.readouterr().out
    options = ["--quick", "--check", str(recorded), "--out", str(tmp_path)]
    assert main(["reproduce", "toy", *options]) == Kind.USAGE
    assert "recorded at scale full, run at quick" in capsys.readouterr().err
    (recorded / "toy.results.json").write_text("[]")
    assert check(tmp_path / "broken", recorded) == Kind.FILE


def test_results_of_other_experiments_stay(toy, monkeypatch):
    _, _, out = toy
    other = EXPERIMENTS["toy-one"]
    monkeypatch.setitem(
        reproduce.EXPERIMENTS, "toy-two", Experiment("toy-two", "Two", "No.", other.findings)
    )
    assert main(["reproduce", "toy-two", "--out", str(out)]) == 0
    assert list(results.read(out, "toy")) == ["toy-one", "toy-two"]
    assert "## toy-one\n" in (out / "toy.md").read_text()


@pytest.mark.parametrize("paper", PAPERS)
def test_pages_are_rendered_from_the_recorded_results(paper):
    """Each page is up to date, and each experiment names version and commit."""
    records = results.read(PAGES, paper)
    assert (PAGES / f"{paper}.md").read_text() == page(paper, records, EXPERIMENTS)
    assert list(records) == [n for n in EXPERIMENTS if n.startswith(f"{paper}-")]
    for name, record in records.items():
        assert record.commit or record.committed_as, name
        assert record.scale == "full", name
        assert (PAGES / f"{name}.png").exists()
        assert (PAGES / f"{name}.csv").exists()


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_that_differs_has_one_reason_and_every_reason_a_claim(paper):
    differing = reasons.differing(results.read(PAGES, paper))
    known = reasons.of(paper)
    assert known
    for claim in differing:
        assert sum(reason.explains(*claim) for reason in known) == 1, claim
    for reason in known:
        for pattern in reason.claims:
            single = replace(reason, claims=(pattern,))
            assert any(single.explains(*claim) for claim in differing), pattern


@pytest.mark.parametrize("paper", PAPERS)
def test_every_experiment_that_differs_says_why_in_few_sentences(paper):
    sections = Text.of(paper).sections
    for name, record in results.read(PAGES, paper).items():
        if "differs" not in record.verdicts.values():
            continue
        text = sections[name].replace("\n", " ").rstrip(".")
        sentences = re.split(r"\.\*{0,2} (?=[A-Z*\[])", text)
        assert len(sentences) <= 3, f"{name}: {sentences}"


@pytest.mark.parametrize("paper", PAPERS)
def test_the_list_of_pages_counts_the_claims_by_verdict(paper):
    said = f"| [{paper}]({paper}.md) | {counts(results.read(PAGES, paper))} |"
    assert said in (PAGES / "README.md").read_text()


def test_links_of_pages_lead_somewhere():
    for file in PAGES.glob("*.md"):
        for target in links(file.read_text()):
            assert (PAGES / target).exists(), f"{file.name}: {target}"


def links(text):
    """Relative link targets of a Markdown text."""
    parts = [part.partition(")")[0].partition("#")[0] for part in text.split("](")[1:]]
    return {part for part in parts if part and "://" not in part}


def test_json_lists_the_changes(toy, tmp_path, capsys):
    _, truths, recorded = toy
    truths.clear()
    capsys.readouterr()
    options = ["--json", "--check", str(recorded), "--out", str(tmp_path)]
    assert main(["reproduce", "toy", *options]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["scale"] == "full"
    assert len(answer["changes"]) == 2
