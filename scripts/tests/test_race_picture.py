"""The animated picture of the README is drawn from what recordings have."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import race_picture

FIXTURES = Path(__file__).parents[2] / "console/tests/fixtures"
SVG = "{http://www.w3.org/2000/svg}"


def test_a_run_is_read_second_by_second_until_the_last_receiver_has_the_file():
    run = race_picture.read(FIXTURES / "building-cascade.ncrec")
    assert run.receivers == [5, 9, 14, 20]
    # As long as the console shows for this recording.
    assert round(run.finish, 1) == 34.7
    assert run.received[0] == dict.fromkeys(run.receivers, 0)
    assert run.received[-1] == dict.fromkeys(run.receivers, run.size)
    sums = [sum(received.values()) for received in run.received]
    assert sums == sorted(sums)
    assert len(run.frames) == len(run.received) - 1
    assert all(frames >= 0 for second in run.frames for frames in second)


def test_bars_and_clocks_end_at_the_finish_of_each_side():
    runs = [
        race_picture.read(FIXTURES / f"{name}.ncrec") for name in ("building", "building-cascade")
    ]
    root = ET.fromstring(race_picture.picture(runs, ["Uncoded", "Coded"]))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    for run in runs:
        assert f"{run.finish:.1f} s ✓" in texts
    for animation in root.iter(f"{SVG}animate"):
        times = [float(time) for time in animation.get("keyTimes").split(";")]
        values = [float(value) for value in animation.get("values").split(";")]
        assert len(times) == len(values)
        assert times == sorted(times)
        assert (times[0], times[-1]) == (0.0, 1.0)
    assert not list(root.iter(f"{SVG}script"))
