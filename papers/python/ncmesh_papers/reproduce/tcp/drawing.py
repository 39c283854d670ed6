"""The panels of figures 6 and 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from ncmesh_papers.reproduce.plots import panels
from ncmesh_papers.reproduce.tcp.metrics import Effect

LABELS = {
    "gain": "throughput gain",
    "loss_reduction": "loss reduction",
    "rtt_increase": "RTT increase",
}


def against_hold_time(
    hold_times_ms: Sequence[float],
    series: Mapping[str, Sequence[Effect]],
    dashed: Mapping[str, Sequence[Effect]],
) -> Figure:
    """Draw gain, loss reduction and RTT increase in per cent; `dashed` in the same colours."""
    figure, axes = panels(3)
    for panel, (name, label) in zip(axes, LABELS.items(), strict=True):
        for place, (network, effects) in enumerate(series.items()):
            colour = f"C{place}"
            panel.plot(
                hold_times_ms, _percent(effects, name), marker="o", color=colour, label=network
            )
            if network in dashed:
                panel.plot(hold_times_ms, _percent(dashed[network], name), "--", color=colour)
        panel.set_xlabel("hold time, ms" + (" (dashed: held, not coded)" if dashed else ""))
        panel.set_ylabel(f"{label}, %")
    axes[0].legend(fontsize="small")
    return figure


def _percent(effects: Sequence[Effect], name: str) -> list[float]:
    return [100 * getattr(effect, name) for effect in effects]
