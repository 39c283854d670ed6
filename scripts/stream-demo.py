#!/usr/bin/env python3
"""Sends one video through a mesh by several schemes, and shows what four receivers see of it.

`stream-demo.py NCMESH PICTURE SCHEME...` starts the mesh of scenarios/building.toml as daemons, for
each scheme again. ffmpeg encodes a test picture with a clock as H.264 with B-frames and sends it to
the source's daemon as RTP. The daemons of the receivers play it to ports of this program. It prints
a table in Markdown and writes a picture of what the receivers show at one moment, a row for each
scheme.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = "n01"
RECEIVERS = ["n05", "n09", "n14", "n20"]
SIZE = "320x180"
RATE = 15
SECONDS = 40
BITS = "250k"
# Ticks of RTP's clock for video in a second.
CLOCK = 90_000
# A player that waits this long shows a frame that comes later not at all: the deadline of packets,
# and the time that the receiver's daemon may wait for those before it.
BUFFER_S = 1.5
# A pause between two frames that is longer is a stall.
STALL_S = 0.5
# The moment of the picture.
SHOWN_S = 30.0
# A stream of one second, for which the lab sets the scheme of streams on all nodes.
FIRST_STREAM = """
[[stream]]
group = "first"
from = "n01"
packet = 100
layers = [{ name = "base", rate = "8k" }]
receivers = [{ node = "n05" }]
warm_up_s = 1
seconds = 1
"""
API = re.compile(r"ncmesh --api (\S+) peers +# (\w+),")


@dataclass
class Packet:
    """A packet of RTP, and when it was seen."""

    at: float
    timestamp: int
    payload: bytes


@dataclass
class Frame:
    """A frame as it was sent."""

    timestamp: int
    at: float
    payloads: list[bytes] = field(default_factory=list)

    @property
    def is_key(self) -> bool:
        """Whether it refers to no other frame."""
        return any(kind(payload) == 5 for payload in self.payloads)

    @property
    def is_base(self) -> bool:
        """Whether other frames refer to it."""
        return any(payload[0] & 0x60 for payload in self.payloads)


@dataclass
class Seen:
    """Frames that a receiver shows."""

    clean: int
    sent: int
    stalls: int
    delays: list[float]
    picture: Path


def kind(payload: bytes) -> int:
    """Returns the type of a payload's NAL unit, of the last one in an aggregation."""
    first = payload[0] & 31
    if first == 28:
        return payload[1] & 31
    return units([payload])[-1][0] & 31 if first == 24 else first


def units(payloads: list[bytes]) -> list[bytes]:
    """Returns the NAL units of a frame's payloads (RFC 6184), but for those that lack fragments."""
    whole: list[bytes] = []
    part: bytes | None = None
    for payload in payloads:
        first = payload[0] & 31
        if first == 24:
            rest = payload[1:]
            while len(rest) > 2:
                length = int.from_bytes(rest[:2], "big")
                whole.append(rest[2 : 2 + length])
                rest = rest[2 + length :]
        elif first == 28:
            if payload[1] & 0x80:
                part = bytes([payload[0] & 0xE0 | payload[1] & 31])
            if part is not None:
                part += payload[2:]
                if payload[1] & 0x40:
                    whole.append(part)
                    part = None
        else:
            whole.append(payload)
    return whole


def read(datagram: bytes) -> Packet:
    """Reads a packet that came now."""
    timestamp = int.from_bytes(datagram[4:8], "big")
    return Packet(time.monotonic(), timestamp, datagram[12:])


def listen(
    port: socket.socket,
    to: tuple[str, int] | None,
    packets: list[Packet],
    ended: threading.Event,
) -> None:
    """Notes the packets that come to a port, and passes them on, until it has ended."""
    while not ended.is_set():
        try:
            datagram = port.recv(65_535)
        except TimeoutError:
            continue
        packets.append(read(datagram))
        if to is not None:
            port.sendto(datagram, to)


@contextlib.contextmanager
def mesh(ncmesh: Path, scheme: str, scratch: Path) -> Iterator[dict[str, str]]:
    """Runs the daemons, whose sockets it returns by their names."""
    scenarios = Path(__file__).resolve().parent.parent / "scenarios"
    text = (scenarios / "building.toml").read_text()
    text = text.replace("data/building.csv", str(scenarios / "data" / "building.csv"))
    text = re.sub(r"\[traffic\].*?\n\n", "", text, flags=re.DOTALL) + FIRST_STREAM
    scenario = scratch / "building.toml"
    scenario.write_text(text)
    command = [str(ncmesh), "lab", str(scenario), "--hold", "--scheme", scheme, "--max-lag", "5"]
    lab = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    sockets: dict[str, str] = {}
    try:
        assert lab.stderr is not None
        for line in lab.stderr:
            said.append(line)
            if found := API.search(line):
                sockets[found[2]] = found[1]
            if len(sockets) == text.count("[[node]]"):
                break
        else:
            raise SystemExit(f"the mesh did not start: {''.join(said[-3:])}")
        yield sockets
    finally:
        lab.send_signal(signal.SIGINT)
        lab.communicate()


def run(ncmesh: Path, scheme: str, scratch: Path) -> tuple[list[Frame], dict[str, list[Packet]]]:
    """Sends the video by a scheme. Returns its frames, and the packets that each receiver got."""
    sent: list[Packet] = []
    got: dict[str, list[Packet]] = {name: [] for name in RECEIVERS}
    with mesh(ncmesh, scheme, scratch) as sockets, contextlib.ExitStack() as open_ports:
        ended = threading.Event()

        def port() -> socket.socket:
            bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            bound.bind(("127.0.0.1", 0))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            bound.settimeout(0.2)
            open_ports.callback(bound.close)
            return bound

        def begin(at: socket.socket, to: tuple[str, int] | None, packets: list[Packet]) -> None:
            thread = threading.Thread(target=listen, args=(at, to, packets, ended))
            thread.start()
            open_ports.callback(thread.join)

        def stream(node: str, *args: str) -> None:
            command = [str(ncmesh), "--api", sockets[node], "stream", *args, "--group", "demo"]
            subprocess.run([*command, "--no-wait"], check=True)

        entry = 47_004
        stream(SOURCE, "send", "--rtp", f"h264=udp:{entry}")
        for name, packets in got.items():
            out = port()
            stream(name, "receive", "--rtp", str(out.getsockname()[1]))
            begin(out, None, packets)
        between = port()
        begin(between, ("127.0.0.1", entry), sent)
        open_ports.callback(ended.set)
        time.sleep(3)
        video = f"testsrc2=size={SIZE}:rate={RATE}:duration={SECONDS}"
        encode = ["ffmpeg", "-v", "error", "-re", "-f", "lavfi", "-i", video, "-c:v", "libx264"]
        encode += ["-preset", "veryfast", "-threads", "1", "-bf", "2", "-b_strategy", "0"]
        encode += ["-g", str(2 * RATE), "-b:v", BITS, "-maxrate", BITS, "-bufsize", BITS]
        address = f"rtp://127.0.0.1:{between.getsockname()[1]}?pkt_size=1200"
        subprocess.run([*encode, "-f", "rtp", address], check=True, stdout=subprocess.DEVNULL)
        time.sleep(2 * BUFFER_S)

    frames: dict[int, Frame] = {}
    for packet in sent:
        frame = frames.setdefault(packet.timestamp, Frame(packet.timestamp, packet.at))
        frame.at = packet.at
        frame.payloads.append(packet.payload)
    return list(frames.values()), got


def judge(frames: list[Frame], packets: list[Packet], scratch: Path, name: str) -> Seen:
    """Finds out what a player shows: frames that came in time, with all that they refer to."""
    arrived: dict[int, dict[bytes, float]] = {}
    for packet in packets:
        arrived.setdefault(packet.timestamp, {}).setdefault(packet.payload, packet.at)
    shown: list[int] = []
    delays: list[float] = []
    is_referable = False
    gop: list[Frame] = []
    picture = scratch / f"{name}.png"
    for frame in frames:
        got = arrived.get(frame.timestamp, {})
        is_whole = all(payload in got for payload in frame.payloads)
        delay = max(got.values()) - frame.at if is_whole else float("inf")
        in_time = delay <= BUFFER_S
        if frame.is_base:
            is_referable = in_time and (frame.is_key or is_referable)
        if in_time and is_referable:
            shown.append(frame.timestamp)
        if is_whole:
            delays.append(delay)

        # The picture is what a decoder makes of the packets since the last key frame.
        if frame.timestamp - frames[0].timestamp <= SHOWN_S * CLOCK:
            if frame.is_key and in_time:
                gop = []
            own = [payload for payload in frame.payloads if payload in got]
            gop.append(Frame(frame.timestamp, frame.at, own))
    decode(gop, scratch, picture)

    edges = [frames[0].timestamp, *sorted(shown), max(frame.timestamp for frame in frames)]
    pauses = [(after - before) / CLOCK for before, after in itertools.pairwise(edges)]
    stalls = sum(pause > STALL_S for pause in pauses)
    return Seen(len(shown), len(frames), stalls, delays, picture)


def decode(gop: list[Frame], scratch: Path, picture: Path) -> None:
    """Writes the last picture that a decoder makes of these frames, or a black one."""
    clip = scratch / "gop.h264"
    clip.write_bytes(b"".join(b"\0\0\0\1" + unit for f in gop for unit in units(f.payloads)))
    picture.unlink(missing_ok=True)
    ffmpeg = ["ffmpeg", "-v", "quiet", "-y"]
    subprocess.run([*ffmpeg, "-f", "h264", "-i", clip, "-update", "1", picture], check=False)
    if not picture.exists():
        black = ["-f", "lavfi", "-i", f"color=black:size={SIZE}", "-frames:v", "1"]
        subprocess.run([*ffmpeg, *black, picture], check=True)


def compose(rows: dict[str, dict[str, Seen]], picture: Path) -> None:
    """Puts the pictures side by side: a row for each scheme, a column for each receiver."""
    inputs: list[str | Path] = []
    labels: list[str] = []
    for scheme, row in rows.items():
        for name, seen in row.items():
            label = f"text='{scheme}, {name}':x=6:y=h-22:fontsize=16:fontcolor=white:box=1"
            labels.append(f"[{len(labels)}]drawtext={label}:boxcolor=black@0.7:boxborderw=4")
            inputs += ["-i", seen.picture]
    width, height = (int(side) for side in SIZE.split("x"))
    columns = len(RECEIVERS)
    places = [f"{i % columns * width}_{i // columns * height}" for i in range(len(labels))]
    named = [f"{label}[p{i}]" for i, label in enumerate(labels)]
    stack = "".join(f"[p{i}]" for i in range(len(labels)))
    graph = f"{';'.join(named)};{stack}xstack=inputs={len(labels)}:layout={'|'.join(places)}"
    command = ["ffmpeg", "-v", "error", "-y", *inputs, "-filter_complex", graph, picture]
    subprocess.run(command, check=True)


def main(ncmesh: str, picture: str, *schemes: str) -> None:
    """Runs the schemes one after the other."""
    rows: dict[str, dict[str, Seen]] = {}
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        for scheme in schemes:
            frames, got = run(Path(ncmesh).resolve(), scheme, scratch)
            rows[scheme] = {
                name: judge(frames, packets, scratch, f"{scheme}-{name}")
                for name, packets in got.items()
            }
        compose(rows, Path(picture))
    print("| scheme | receiver | clean frames | stalls | delay, median and 99 % |")
    print("| --- | --- | --- | --- | --- |")
    for scheme, row in rows.items():
        for name, seen in row.items():
            delay = "-"
            if len(seen.delays) > 1:
                ranks = statistics.quantiles(seen.delays, n=100, method="inclusive")
                delay = f"{1000 * ranks[49]:.0f} and {1000 * ranks[98]:.0f} ms"
            share = f"{seen.clean} of {seen.sent}"
            print(f"| `{scheme}` | {name} | {share} | {seen.stalls} | {delay} |")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
