"""
Rounds of CORE with recoding (sections 5.4 and 5.5).

In each round both sources and then the relay send once. The relay has ranks `i1` and `i2`; D1 has
rank `i'` from the relay and `i_O` from overhearing S2. The increments of round k depend on the
state after k - 1 rounds, so the distributions are computed round by round.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from ncmesh_papers.core_nc.arguments import Numbers

# Rounds are counted until destinations lack packets with this probability.
UNDONE = 1e-9


def with_recoding(
    loss: Numbers, unheard: Numbers, generation: NDArray[np.int64], *, stops: bool, whole: bool
) -> Numbers:
    """Return transmissions per packet: eq. 28, or eq. 33 where the relay stops the sources."""
    found = np.full(loss.shape, np.inf)
    for at in np.ndindex(loss.shape):
        if loss[at] < 1:
            m = int(generation[at])
            found[at] = _transmissions(float(loss[at]), float(unheard[at]), m, stops, whole) / (
                2 * m
            )
    return found


def _transmissions(loss: float, unheard: float, m: int, stops: bool, whole: bool) -> float:
    """Return the transmissions of all nodes until D1 has full rank in the mean."""
    combined = _combined(loss, m)
    # (29): the probability that a source still sends.
    sends = below(1 - loss, m, len(combined)) if stops else np.ones(len(combined))
    overheard = (1 - unheard) * below(1 - unheard, m, len(combined))  # (25), (18)
    rank = np.cumsum(combined + overheard * sends)  # (26), (30)
    # (27), (31): the first round after which R >= M1 + M2, or the interpolated point in it.
    last = int(np.searchsorted(rank, 2 * m - 1e-9))
    before = rank[last - 1] if last else 0.0
    part = 1.0 if whole else (2 * m - before) / (rank[last] - before)
    sent = 2 * sends + 1  # (32)
    return float(sent[:last].sum() + part * sent[last])


@functools.lru_cache(maxsize=4096)
def _combined(loss: float, m: int) -> Numbers:
    """
    Return the probability that i' rises in each round (eq. 24), until 2 m are expected.

    As printed, eq. 22 counts all packets that D1 receives in i', including those that do not raise
    it by eq. 24. Here i' follows eq. 24.
    """
    # (20), (21): distribution of i1 and of i2; values above m count as m.
    rank = np.zeros(m + 1)
    # Distribution of i'; by eq. 24 it may end at 2 m + 1.
    heard = np.zeros(2 * m + 2)
    rank[0] = heard[0] = 1.0
    rises: list[float] = []
    total = 0.0
    while total < 2 * m:
        at_least = np.cumsum(np.convolve(rank, rank)[::-1])[::-1]  # i1 + i2, 0 to 2 m
        # (17) if the relay got a packet in this round, (16) if it got none.
        rise = (1 - loss) * np.append((1 - loss**2) * at_least, 0.0)
        rise[:-2] += (1 - loss) * loss**2 * at_least[1:]
        rises.append(float(heard @ rise))
        total += rises[-1]
        rank = _after_another(rank, np.append(np.full(m, 1 - loss), 0.0))
        heard = _after_another(heard, rise)
    return np.array(rises)


def _after_another(counts: Numbers, rise: Numbers) -> Numbers:
    """Return the distribution of a count after one more packet, which adds one with `rise`."""
    after = counts * (1 - rise)
    after[1:] += (counts * rise)[:-1]
    return after


def below(p: float, m: int, rounds: int) -> Numbers:
    """
    Return the probability that fewer than `m` of k - 1 packets arrived, for k from 1 to `rounds`.

    Each packet arrives with probability `p` (eqs. 18 and 29).
    """
    undone = np.ones(rounds)
    if p > 0 and rounds > m:
        # The m-th arrival is the n-th packet with C(n-1, m-1) p^m (1-p)^(n-m), by logarithms.
        n = np.arange(m, rounds - 1)
        with np.errstate(divide="ignore"):
            steps = np.log(n / (n - m + 1)) + np.log(1 - p)
        arrives = np.exp(m * np.log(p) + np.concatenate([[0.0], np.cumsum(steps)]))
        undone[m:] = np.clip(1 - np.cumsum(arrives), 0.0, 1.0)
    return undone


def printed_rounds(loss: float, unheard: float, m: int) -> float:
    """Return the rounds without feedback by which the mean ranks add up to 2 m (eq. 27)."""
    return _transmissions(loss, unheard, m, stops=False, whole=False) / 3


def least_rounds(loss: float, m: int) -> float:
    """
    Return the mean rounds without feedback until both destinations have their flow, at the least.

    Each destination counts as knowing the other flow from the start, so this is a lower bound. Then
    its rank in its own flow rises with each packet of the relay that arrives while the relay's rank
    in the flow is higher. The two flows are independent.
    """
    relay, destination = np.arange(m + 1)[:, np.newaxis], np.arange(m + 1)[np.newaxis, :]
    ranks = np.zeros((m + 1, m + 1))
    ranks[0, 0] = 1.0
    rounds, undone = 0.0, 1.0
    while undone > UNDONE:
        rounds += undone
        # A source's packet reaches the relay, then the relay's the destination.
        rises = np.where(relay < m, (1 - loss) * ranks, 0.0)
        ranks = ranks - rises
        ranks[1:] += rises[:-1]
        rises = np.where(destination < relay, (1 - loss) * ranks, 0.0)
        ranks = ranks - rises
        ranks[:, 1:] += rises[:, :-1]
        undone = 1 - float(ranks[m, m]) ** 2
    return rounds
