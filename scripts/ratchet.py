"""Counts that may fall and never rise, recorded in `ratchet.json` beside this file.

A habit that is to go, but is in too many places to end at once, is counted by crate or folder. A
check fails where the count is above the recorded one, and `--record` writes lower ones down.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("ratchet.json")


def hold(name: str, counts: Mapping[str, int]) -> bool:
    """Compares `counts` with what is recorded under `name`. Returns whether none is above it.

    Prints what has risen, and what could be recorded lower. With `--record` among the arguments of
    the script it is recorded.
    """
    everything: dict[str, dict[str, int]] = json.loads(FILE.read_text())
    recorded = everything.get(name, {})
    risen = {where: n for where, n in counts.items() if n > recorded.get(where, 0)}
    fallen = sum(most > counts.get(where, 0) for where, most in recorded.items())
    for where, n in sorted(risen.items()):
        print(f"{where}: {n} {name}, at most {recorded.get(where, 0)} allowed", file=sys.stderr)
    if fallen and "--record" in sys.argv:
        lower = {where: min(most, counts.get(where, 0)) for where, most in recorded.items()}
        everything[name] = {where: most for where, most in sorted(lower.items()) if most}
        FILE.write_text(json.dumps(everything, indent=2) + "\n")
    elif fallen:
        print(f"note: fewer {name} in {fallen} places; record that with {sys.argv[0]} --record")
    return not risen
