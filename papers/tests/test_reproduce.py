import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ncmesh
from ncmesh.campaign import Run, Scenario, Store
from ncmesh.failure import FailureError, Kind
from ncmesh_papers import reproduce
from ncmesh_papers.__main__ import main
from ncmesh_papers.reproduce import claims, results
from ncmesh_papers.reproduce.command import FULL, QUICK
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun, to_toml
from ncmesh_papers.reproduce.mc2.mesh import slot_s
from ncmesh_papers.reproduce.pacifier.setting import drawn
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import bars, panels

# At quick scale verdicts must be those recorded in `quick`: engines and models have not changed.
QUICKLY = ["reproduce", "--quick", "--json", "--check", str(Path(__file__).parent / "quick")]


def test_a_number_agrees_within_its_tolerance():
    def verdict(value, expected=1.5, **tolerance):
        return claims.within("x", claims.GAIN, expected, value, **tolerance).verdict

    assert [verdict(v, relative=0.2) for v in (1.19, 1.21, 1.79, 1.81)] == [
        "differs",
        "agrees",
        "agrees",
        "differs",
    ]
    assert verdict(2.0, (1.8, 2.5)) == "agrees"
    assert verdict(2.6, (1.8, 2.5), absolute=0.05) == "differs"
    assert verdict(float("inf"), relative=0.2) == "differs"
    assert verdict(float("nan"), relative=0.2) == "differs"


def test_a_claim_has_both_values_and_the_tolerance():
    spread = claims.over_topologies([1.0, 3.0, 1.1])
    claim = claims.within("faster", claims.GAIN, 1.5, 1.7, spread=spread, relative=0.2)
    assert (claim.paper, claim.ours, claim.tolerance) == ("+50 %", "+70 %", "+20 % to +80 %")
    assert claim.spread == "+0 % / +10 % / +200 % (min/median/max)"
    assert claims.holds("first", "second", False).verdict == "differs"


def test_percentiles_lie_between_ranks():
    assert claims.percentile([3, 1, 2], 50) == 2
    assert claims.percentile([1, 2], 90) == pytest.approx(1.9)
    assert claims.percentile([5], 10) == 5
    assert claims.percentile(range(11), 100) == 10


def test_a_bootstrap_draws_whole_topologies():
    same = claims.bootstrap([[1.0, 9.0]] * 5, lambda values: claims.percentile(values, 50))
    assert (same.low, same.middle, same.high) == (5, 5, 5)
    mean = claims.bootstrap([[0.0], [1.0]] * 50, lambda values: sum(values) / len(values))
    # The mean of 100 draws has a standard deviation of 0.05.
    assert 0.36 < mean.low < 0.44 < mean.middle < 0.56 < mean.high < 0.64


def experiment(scenario: Scenario) -> Experiment:
    """Return a small experiment with two variants on a line."""
    variants = {"tree": {"protocol.pacifier.variant": "tree"}, "whole": {}}

    def runs(scale: Scale) -> dict[Case, Run]:
        return {
            Case(name, k): Run(scenario.varied(settings), "pacifier", k, scale.limit_s, settings)
            for name, settings in variants.items()
            for k in scale.indices
        }

    def findings(rows: Rows, _: Scale) -> Findings:
        figure, (axes,) = panels(1)
        averages = {name: rows.average(name) for name in variants}
        bars(
            axes,
            rows.topologies,
            averages,
            "bit/s",
            {"whole": (rows.worst("whole"), rows.best("whole"))},
        )
        table = [
            {"topology": k, "packets": n} for k, n in enumerate(rows.of("tree", "transmissions"), 1)
        ]
        found = [
            claims.within("forwarders", claims.NUMBER, 1, rows.of("tree", "forwarders")[0]),
            claims.holds("trees are slow", "they are not", False),
        ]
        return Findings(found, table, figure)

    return Experiment("line-one", "A line", "All is said.", findings, runs)


def square(of: int) -> int:
    return of * of


def computed_experiment() -> Experiment:
    """Return an experiment that computes squares."""

    def findings(rows: Rows, _: Scale) -> Findings:
        figure, (axes,) = panels(1)
        axes.plot(list(rows.computed), list(rows.computed.values()))
        found = [claims.within("nine", claims.NUMBER, 9, rows.computed["three"])]
        return Findings(found, [{"name": n, "square": v} for n, v in rows.computed.items()], figure)

    return Experiment(
        "square-one",
        "Squares",
        "All is said.",
        findings,
        pieces=lambda _: {"two": Piece(square, {"of": 2}), "three": Piece(square, {"of": 3})},
        size=lambda scale: {"scale": f"{scale.name}: two squares"},
    )


@pytest.fixture
def out(line, monkeypatch):
    """Adds a small experiment to the registry. The value is the folder that it writes to."""
    monkeypatch.setitem(reproduce.EXPERIMENTS, "line-one", experiment(Scenario.read(line)))
    return line.parent / "out"


def test_an_experiment_leaves_page_plot_and_tables_and_keeps_its_runs(out, capsys):
    command = ["reproduce", "line", "--quick", "--jobs", "1", "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "agrees  forwarders: paper 1, ours 1" in said
    assert "differs trees are slow" in said
    assert (out / "line-one.png").read_bytes().startswith(b"\x89PNG")
    assert pa_rows(out) == QUICK.topologies
    page = (out / "line.md").read_text()
    assert "![A line](line-one.png)" in page
    assert "| forwarders | 1 | 1 |  | 1 to 1 | agrees |" in page
    # The claims come before the first picture.
    assert page.index("| forwarders |") < page.index("![")
    assert "2 claims: 1 agree, 1 differ" in page
    assert "verdicts are no statement about the paper" in " ".join(page.split())
    assert "no statement about the paper" in said
    made = results.read(out, "line")["line-one"].made
    assert made.startswith(f"made with ncmesh {ncmesh.__version__} at ")
    assert made in " ".join(page.split())
    before = Store(out / "runs").table()
    assert before.num_rows == 2 * QUICK.topologies
    assert main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [c["verdict"] for c in answer["experiments"][0]["claims"]] == ["agrees", "differs"]
    assert Store(out / "runs").table() == before


def pa_rows(folder):
    table = pyarrow.csv.read_csv(folder / "line-one.csv")
    assert table == pq.read_table(folder / "line-one.parquet").cast(table.schema)
    return table.num_rows


def test_an_experiment_may_be_computed(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(reproduce.EXPERIMENTS, "square-one", computed_experiment())
    command = ["reproduce", "square", "--quick", "--jobs", "1", "--json", "--out", str(tmp_path)]
    assert main(command) == 0
    (found,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (found["runs"], found["claims"][0]["verdict"]) == (2, "agrees")
    table = pyarrow.csv.read_csv(tmp_path / "square-one.csv").to_pylist()
    assert [(row["name"], row["square"]) for row in table] == [("two", 4), ("three", 9)]
    page = (tmp_path / "square.md").read_text()
    assert "Scale quick: two squares." in " ".join(page.split())
    assert "topologies" not in page


def test_a_failed_piece_is_reported(tmp_path, monkeypatch, capsys):
    wrong = replace(computed_experiment(), pieces=lambda _: {"none": Piece(square, {"of": None})})
    monkeypatch.setitem(reproduce.EXPERIMENTS, "square-one", wrong)
    assert main(["reproduce", "square", "--jobs", "1", "--out", str(tmp_path)]) == Kind.OTHER
    assert "a run failed: TypeError" in capsys.readouterr().err


def test_list_names_every_figure(capsys):
    assert main(["reproduce", "list"]) == 0
    figures = ["fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8-9", "fig8-9-equal"]
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    cross = [f"core-fig{number}" for number in (3, 4, 5, 7, 9, 10)]
    mmu = ("fig4", "bounds", "table2", "fig6-slotted", "fig6", "fig6-cpu", "fig7")
    of_mmu = [f"mmu-{figure}" for figure in mmu]
    of_tcp = [
        f"tcp-{name}" for name in ("fig6", "coding-ratio", "fig8", "table2", "sweep", "model")
    ]
    of_mc2 = [
        f"mc2-{figure}" for figure in ("fig2", "fig4", "fig6", "fig7", "fig8", "optimum", "table1")
    ]
    assert names == [f"pacifier-{figure}" for figure in figures] + cross + of_mmu + of_tcp + of_mc2
    main(["reproduce", "list", "--json"])
    assert [e["name"] for e in json.loads(capsys.readouterr().out)] == names


@pytest.mark.usefixtures("out")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["pacifyer"], Kind.USAGE, "no experiment is called pacifyer"),
        (["line", "--lab", "none/ncmesh"], Kind.USAGE, "there is no program none/ncmesh"),
        (["line", "--out", "/dev/null/x"], Kind.FILE, "cannot write results in /dev/null/x"),
    ],
)
def test_misuse_is_reported(capsys, arguments, code, message):
    assert main(["reproduce", *arguments]) == code
    assert message in capsys.readouterr().err


def test_a_receiver_out_of_reach_spoils_an_experiment(out, capsys):
    (out.parent / "loss.csv").write_text("from,to,loss\ns,r,0.2\nr,s,0.2\nd,r,0.4\n")
    assert main(["reproduce", "line", "--quick", "--out", str(out)]) == Kind.OTHER
    assert "d cannot be reached from s" in capsys.readouterr().err


def test_all_of_pacifier_is_reproduced_in_small(tmp_path, capsys):
    assert main([*QUICKLY, "pacifier", "--out", str(tmp_path)]) == 0
    found = {e["name"]: e for e in json.loads(capsys.readouterr().out)["experiments"]}
    assert found.keys() == {name for name in reproduce.EXPERIMENTS if name.startswith("pacifier-")}
    for name, experiment in found.items():
        assert len(experiment["claims"]) >= 4, name
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert pyarrow.csv.read_csv(tmp_path / f"{name}.csv").num_rows >= 2, name
    page = (tmp_path / "pacifier.md").read_text()
    assert all(f"## {name}\n" in page for name in found)
    # Every file arrived at every receiver, except where MORE's threshold cut one off.
    for row in Store(tmp_path / "runs").table().to_pylist():
        cut_off = json.loads(row["parameters"]).get("protocol.more.prune") == 0.1
        assert cut_off or all(receiver["verified"] for receiver in row["receivers"])


def test_what_core_computes_is_reproduced_in_small(tmp_path, capsys):
    rows = {"core-fig3": 54, "core-fig4": 30, "core-fig5": 306, "core-fig7": 246}
    assert main([*QUICKLY, *rows, "--jobs", "1", "--out", str(tmp_path)]) == 0
    found = {e["name"]: e for e in json.loads(capsys.readouterr().out)["experiments"]}
    assert found.keys() == rows.keys()
    for name in found:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert pyarrow.csv.read_csv(tmp_path / f"{name}.csv").num_rows == rows[name]
    # Formulas give the same values at any scale.
    loads = [
        c["value"] for c in found["core-fig5"]["claims"] if c["claim"].startswith("load at which")
    ]
    assert loads == pytest.approx([1 / 2, 2 / 3, 1 / 3, 4 / 9], abs=2e-3)
    tails = [c["value"] for c in found["core-fig7"]["claims"]]
    assert tails == pytest.approx([0.506, 0.920, 0.414, 0.553, 0.926, 0.373], abs=1e-3)
    page = (tmp_path / "core.md").read_text()
    assert "Scale quick: 20 trials a point, losses in steps of 0.35;" in " ".join(page.split())
    assert all(f"## {name}\n" in page for name in found)


def test_all_of_mmu_is_reproduced_in_small(tmp_path, capsys):
    assert main([*QUICKLY, "mmu", "--jobs", "1", "--out", str(tmp_path)]) == 0
    found = {e["name"]: e["claims"] for e in json.loads(capsys.readouterr().out)["experiments"]}
    assert found.keys() == {name for name in reproduce.EXPERIMENTS if name.startswith("mmu-")}
    # Proven bounds hold at any scale.
    proven = [c for claims in found.values() for c in claims if "exceed" in c["claim"]]
    assert [c["verdict"] for c in proven] == ["agrees"] * 4
    for name in found:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert pyarrow.csv.read_csv(tmp_path / f"{name}.csv").num_rows >= 2, name


def test_draws_of_receivers_are_the_same_on_every_machine():
    assert drawn(1, 50, 4) == ["n33", "n19", "n40", "n35"]
    assert len(set(drawn(2, 50, 50))) == 50


def test_every_experiment_is_as_large_as_the_papers():
    for name, found in reproduce.EXPERIMENTS.items():
        cases = found.runs(FULL)
        if not cases:
            continue
        # The sweep has as many points as other figures have runs.
        few = {"mmu-fig6-cpu": {1}, "tcp-sweep": {1}, "mc2-optimum": set(range(1, 13))}
        numbers = few.get(name, set(range(1, 11)))
        assert {case.topology for case in cases} == numbers, name
        for run in cases.values():
            if name.startswith("mmu-"):
                assert all(stream["seconds"] >= 20 for stream in run.scenario.table["stream"])
                continue
            if name.startswith("tcp-"):
                seconds = 30 if name == "tcp-sweep" else 90
                assert all(flow["seconds"] == seconds for flow in run.scenario.table["flow"])
                continue
            if name in ("mc2-fig8", "mc2-table1"):
                assert run.scenario.table["flow"][0]["seconds"] >= 6
                continue
            if name.startswith("mc2-"):
                length = run.scenario.table["flow"][0]["seconds"]
                assert length / slot_s(run.scenario.table["medium"]["bit_rate"]) >= 10_000 - 1e-6
                continue
            testbed = "fig8-9" in name
            assert run.scenario.table["traffic"]["size"] == (2_300_000 if testbed else 12_000_000)
            assert len(run.scenario.table["traffic"]["to"]) == (4 if testbed else 9)


TABLE = {
    "name": 'quotes "and" \\ such',
    "nodes": ["a", "b"],
    "medium": {"bit_rate": "2M", "nested": {"x.y": 0.001, "on": True}},
    "link": [{"from": "a", "to": "b", "loss": 0.5}],
}


def test_tables_become_toml():
    assert tomllib.loads(to_toml(TABLE)) == TABLE


LAB = """#!{python}
import json, sys, tomllib
from pathlib import Path
import ncmesh
command, file, *rest = sys.argv[1:]
assert (command, rest) == ("lab", ["--scheme", "pacifier", "--json", "--timeout", "60.0"]), sys.argv
outcome = ncmesh.simulate(file, tomllib.loads(Path(file).read_text())["seed"])
for only_simulated in ("seed", "sealed", "trace_hash", "events"):
    del outcome[only_simulated]
print(json.dumps(outcome | {{"lag_mean_ms": 0.1, "frames": 3}}))
"""


def test_a_lab_run_gives_a_row_like_any_other(line, tmp_path):
    program = tmp_path / "lab"
    program.write_text(LAB.format(python=sys.executable))
    program.chmod(0o755)
    scenario = Scenario.read(line)
    run = LabRun(scenario, "pacifier", 3, 60.0, program=str(program))
    row = run.perform()
    assert row["receivers"] == ncmesh.simulate(scenario.table, 3)["receivers"]
    assert row["run"] == run.key != Run(scenario, "pacifier", 3, 60.0).key
    store = Store(tmp_path / "store")
    store.directory.mkdir()
    store.append([row])
    assert store.table()["trace_hash"].to_pylist() == [None]


STARVED = """#!{python}
import sys
sys.exit(print("error: the flow from a to b came to nothing", file=sys.stderr) or 7)
"""


def test_a_flow_that_starves_is_an_outcome_only_where_it_may_be(line, tmp_path):
    program = tmp_path / "lab"
    program.write_text(STARVED.format(python=sys.executable))
    program.chmod(0o755)
    run = LabRun(Scenario.read(line), "forward", 3, program=str(program))
    with pytest.raises(FailureError, match="came to nothing"):
        run.perform()
    row = replace(run, may_starve=True).perform()
    assert (row["flows"], row["run"]) == ([], run.key)
