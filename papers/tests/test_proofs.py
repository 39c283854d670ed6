"""Verdict `paper`: computations that show that a claim contradicts the paper's own equations."""

from fractions import Fraction

import pytest

from ncmesh_papers import core_nc
from ncmesh_papers.core_nc.recoding import least_rounds, printed_rounds
from ncmesh_papers.reproduce import claims
from ncmesh_papers.reproduce.command import FULL
from ncmesh_papers.reproduce.core import proofs as of_core
from ncmesh_papers.reproduce.experiment import Rows
from ncmesh_papers.reproduce.mc2 import proofs as of_mc2
from ncmesh_papers.reproduce.mc2.examples import DIAMOND
from ncmesh_papers.reproduce.page import counts
from ncmesh_papers.reproduce.results import Record
from ncmesh_papers.reproduce.tcp import model


def verdict(*, holds, shown):
    claim = claims.holds("faster", "it is", holds)
    return claims.refuted(claim, claims.Proof("computed", shown)).verdict


def test_only_what_does_not_hold_and_is_shown_to_be_wrong_is_the_papers():
    assert verdict(holds=False, shown=True) == "paper"
    assert verdict(holds=False, shown=False) == "differs"
    assert verdict(holds=True, shown=True) == "agrees"


def test_a_record_has_the_proof_of_the_verdict_paper_only():
    proof = claims.Proof("computed", shown=True)
    wrong = claims.refuted(claims.holds("faster", "it is not", False), proof)
    right = claims.refuted(claims.holds("faster", "it is", True), proof)
    assert wrong.record()["proof"] == "computed"
    assert "proof" not in right.record()


def test_pages_count_each_verdict():
    found = [
        claims.holds("first", "so", True),
        claims.holds("second", "not so", False),
        claims.refuted(claims.holds("third", "no", False), claims.Proof("shown", shown=True)),
    ]
    record = Record("1", "a", None, "run", "full", {}, 0, 0.0, [of.record() for of in found])
    said = "3 claims: 1 agree, 1 differ, 1 contradict the paper's own equations"
    assert counts({"toy": record}) == said


def test_no_number_of_packets_gives_the_printed_probabilities_of_eq_35():
    seven = Fraction(7, 10)
    assert of_core.of_eq_35(60, seven, 0.53, 0.005).shown
    assert of_core.of_eq_35(60, seven, 0.93, 0.005).shown
    assert float(of_core.received(60, seven, 85)) == pytest.approx(
        core_nc.decode_probability(60, 0.7, 1.0)
    )
    # A number that 85 packets give is not refuted.
    assert not of_core.of_eq_35(60, seven, 0.506, 0.005).shown


def test_the_equations_put_variants_of_core_above_forwarding_and_level_with_cope():
    plain, forwarding = "core_no_feedback", "forwarding_unconstrained"
    assert of_core.of_order(plain, forwarding, [(0.3, 0.95)]).shown
    assert not of_core.of_order(plain, forwarding, [(0.3, 0.3)]).shown
    # Without loss both need 1.5 transmissions; forwarding has no such tie with random codes.
    assert of_core.of_order("core", "cope", [(0.0, 0.0)]).shown
    assert not of_core.of_order("core", "cope", [(0.3, 0.3)]).shown
    assert not of_core.of_order("core", "cope", []).shown
    assert of_core.dependent(2) == pytest.approx(1.6067, abs=1e-4)


def test_destinations_need_more_rounds_than_the_means_say():
    assert of_core.of_means(0.7, 0.5, 64, 0.1).shown
    assert not of_core.of_means(0.1, 0.1, 64, 0.1).shown
    assert least_rounds(0.0, 8) == pytest.approx(8)
    trials = core_nc.simulate("core_no_feedback", 0.5, 0.0, generation=16, trials=400, until="both")
    rounds = trials.mean() * 2 * 16 / 3
    assert least_rounds(0.5, 16) == pytest.approx(rounds, rel=0.03)
    assert printed_rounds(0.5, 0.0, 16) < 0.9 * rounds


def test_the_formulas_of_the_diamond_exceed_its_printed_gain():
    assert of_mc2.of_gain(DIAMOND, 0.1, 1.44).shown
    assert not of_mc2.of_gain(DIAMOND, 0.9, 1.44).shown


def test_the_printed_conflicts_contradict_the_printed_rate():
    assert of_mc2.of_printed_conflicts(claims.holds("same", "yes", True)).shown
    # A claim that does not agree with the other conflicts either has another reason.
    assert not of_mc2.of_printed_conflicts(claims.holds("same", "no", False)).shown


def test_the_factor_of_tcp_does_not_survive_corrections_of_the_model():
    rows = Rows({}, {"factors": model.factors(), "curves": model.curves()})
    found = {claim.text: claim.verdict for claim in model.EXPERIMENT.findings(rows, FULL).claims}
    assert found["sqrt(2) where packets, not slots, are counted"] == "paper"
    assert found["sqrt(2) with channel losses of 1 % a hop"] == "paper"
    assert found["gain of UDP"] == "agrees"
