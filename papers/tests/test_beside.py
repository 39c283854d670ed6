"""The pictures of the papers' values beside ours say what the verdicts say."""

from pathlib import Path

import pytest

from ncmesh_papers.reproduce import beside, claims, results

PAGES = Path(__file__).parents[1] / "pages"
PAPERS = sorted({name.partition(".")[0] for name in (p.name for p in PAGES.glob("*.results.json"))})
# Recorded numbers are rounded, by no more than this share of half a range.
ROUNDED = 0.1


def record(*made: claims.Claim) -> list[dict[str, str]]:
    return [claim.record() for claim in made]


def test_only_claims_with_numbers_have_rows():
    gain = claims.within("faster", claims.GAIN, (1.2, 1.7), 1.0, relative=0.2, detail="p = 0.3")
    (row,) = beside.rows(record(gain, claims.holds("first", "by 3", True)))
    assert (row.claim["claim"], list(row.paper), row.ours) == ("faster", [20, 70], 0)
    assert [row.place(value) for value in row.agrees] == [-1, 1]


def test_exact_claims_are_drawn_too():
    made = [claims.within("n", claims.NUMBER, 2.0, ours, relative=1e-9) for ours in (2.0, 3.0)]
    assert [row.place(row.ours) for row in beside.rows(record(*made))] == [0, 500]


@pytest.mark.parametrize("paper", PAPERS)
def test_ours_lies_in_the_grey_range_if_the_claim_agrees(paper):
    for name, found in results.read(PAGES, paper).items():
        with_numbers = [c for c in found.claims if c["tolerance"] != "the order itself"]
        rows = beside.rows(found.claims)
        assert [row.claim for row in rows] == with_numbers, name
        for row in rows:
            distance = abs(row.place(row.ours))
            inside = distance <= 1 + ROUNDED
            outside = distance >= 1 - ROUNDED
            assert inside if row.claim["verdict"] == "agrees" else outside, row.claim
        assert (PAGES / beside.name(name)).exists() == bool(rows)


def test_what_lies_far_outside_is_an_arrow_at_the_edge():
    made = [claims.within("n", claims.NUMBER, 2.0, ours, relative=0.1) for ours in (2.0, 9.0, 0.0)]
    (axes,) = beside.draw(beside.rows(record(*made))).axes
    marks = [(line.get_marker(), line.get_xdata()[0]) for line in axes.lines[1::2]]
    assert marks == [("o", 0), (">", beside.EDGE), ("<", -beside.EDGE)]
