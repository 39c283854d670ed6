#!/usr/bin/env python3
"""Updates a mesh of 22 daemons over the mesh while five of its nodes have bad luck.

`fleet-demo.py NCMESH [RECORDING]` starts the mesh of scenarios/building.toml as daemons that take
part in roll-outs. One node is off while the release is pushed, one is killed while it stages, one
has a full disk, one is of another model, and one comes back with its old version after its update.
It prints in Markdown how each node fared, and fails unless the roll-out ends as it should. What the
operator's console showed is written to RECORDING, for `ncmesh replay`.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

OPERATOR = "n01"
FAILS = "n02"
KILLED = "n17"
FULL = "n12"
OTHER_MODEL = "n14"
OFF = "n20"
LUCK = {
    OPERATOR: "leads the roll-out",
    FAILS: "comes back with its old version",
    KILLED: "is killed while it stages",
    FULL: "has a full disk",
    OTHER_MODEL: "is of another model",
    OFF: "is off during the push",
}
# Bytes of an image.
SIZE = 150_000
# Longest time that each step may take.
WITHIN_S = 300.0
# A stream of one second: the lab wants some traffic before it holds the mesh.
TRAFFIC = """
[[stream]]
group = "first"
from = "n01"
packet = 100
layers = [{ name = "base", rate = "8k" }]
receivers = [{ node = "n05" }]
warm_up_s = 1
seconds = 1
"""
NODE = re.compile(r"ncmesh --api (\S+) peers +# (\w+), process (\d+)")


class Recorder(threading.Thread):
    """Keeps what a console of the operator's node is told."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.messages: list[str] = []

    def run(self) -> None:
        """Reads messages until the daemon ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/messages")
        with contextlib.suppress(OSError, http.client.HTTPException):
            for line in connection.getresponse():
                if line.startswith(b"data: "):
                    self.messages.append(line.removeprefix(b"data: ").decode().strip())

    def write(self, file: Path) -> None:
        """Writes a recording."""
        last = json.loads(self.messages[-1])
        end = {"type": "event", "time_s": last["time_s"], "node": None, "what": {"kind": "end"}}
        lines = [*self.messages, json.dumps(end)]
        file.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def free_port() -> int:
    """Returns a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Mesh:
    """The daemons of a lab, restarted with a section `[fleet]`."""

    def __init__(self, ncmesh: Path, scratch: Path, dirs: dict[str, Path]) -> None:
        self.ncmesh = ncmesh
        self.dirs = dirs
        self.scratch = scratch
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        placed = tomllib.loads((scratch / "building.toml").read_text())["node"]
        self.places = {node["name"]: (node["x"], node["y"], node["z"]) for node in placed}
        self.keys = {name: self.run("fleet", "keygen", name) for name in ["signer", "operator"]}

    def run(self, *args: str) -> str:
        """Runs a command in the scratch directory."""
        command = [str(self.ncmesh), *args]
        done = subprocess.run(
            command, cwd=self.scratch, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout.strip()

    def call(self, node: str, *args: str) -> str:
        """Returns the answer of a daemon as JSON."""
        return self.run("--api", str(self.dir(node) / "state" / "api.sock"), "--json", *args)

    def ask(self, node: str, *args: str) -> dict[str, Any]:
        """Returns the answer of a daemon, an object."""
        answer: dict[str, Any] = json.loads(self.call(node, *args))
        return answer

    def list(self, node: str, *args: str) -> list[dict[str, Any]]:
        """Returns the answer of a daemon, a list."""
        answer: list[dict[str, Any]] = json.loads(self.call(node, *args))
        return answer

    def dir(self, node: str) -> Path:
        """Returns the directory of a node."""
        return self.dirs[node]

    def configure(self, node: str) -> None:
        """Adds what makes the node take part in roll-outs."""
        at = self.dir(node)
        (at / "version").write_text("1.0\n")
        model = "cpe210" if node == OTHER_MODEL else "wdr4300"
        install = 'echo "$NCMESH_VERSION" >version'
        if node == FAILS:
            # It restarts, and its boot loader starts the old image.
            install = "touch restarts"
        lines = [
            "[fleet]",
            f'model = "{model}"',
            'version_file = "version"',
            'name = "town"',
            f'keys = ["{self.keys["signer"]}"]',
            f'operators = ["{self.keys["operator"]}"]',
            f"""apply = ["sh", "-c", 'cd "{at}" && {install}']""",
            f"""rollback = ["sh", "-c", 'cd "{at}" && echo 1.0 >version']""",
        ]
        if node == OPERATOR:
            lines.append(f'operator_key = "{self.scratch}/operator"')
            lines += ["[web]", f'listen = "127.0.0.1:{self.port}"', 'read = "anyone"']
        file = at / "node.toml"
        x, y, z = self.places[node]
        text = file.read_text().replace("[node]\n", f"[node]\nposition = [{x}, {y}, {z}]\n")
        if node == FULL:
            # More free space than any disk has.
            text = text.replace("[inbox]\n", '[inbox]\nreserve = "1000T"\n')
        file.write_text(text + "\n" + "\n".join(lines) + "\n")

    def start(self, node: str) -> None:
        """Starts a daemon."""
        config = str(self.dir(node) / "node.toml")
        with (self.dir(node) / "log").open("ab") as log:
            command = [str(self.ncmesh), "node", "--config", config]
            self.daemons[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, node: str) -> None:
        """Kills a daemon, as a power failure would."""
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()

    def rows(self) -> dict[str, dict[str, Any]]:
        """Returns what the operator knows of each node."""
        nodes = self.ask(OPERATOR, "fleet", "status")["rollout"]["nodes"]
        return {node["name"]: node for node in nodes}

    def stage(self) -> str:
        """Returns the stage of the roll-out."""
        return str(self.ask(OPERATOR, "fleet", "status")["rollout"]["stage"])


@contextlib.contextmanager
def lab(ncmesh: Path, scratch: Path) -> Iterator[dict[str, tuple[Path, int]]]:
    """Runs the lab. Returns the directory and the process of each node."""
    scenarios = Path(__file__).resolve().parent.parent / "scenarios"
    text = (scenarios / "building.toml").read_text()
    text = text.replace("data/building.csv", str(scenarios / "data" / "building.csv"))
    text = re.sub(r"\[traffic\].*?\n\n", "", text, flags=re.DOTALL) + TRAFFIC
    scenario = scratch / "building.toml"
    scenario.write_text(text)
    command = [str(ncmesh), "lab", str(scenario), "--hold", "--max-lag", "20"]
    # A slow channel, which leaves the machine time.
    command += ["--dir", str(scratch / "lab"), "--set", "medium.bit_rate=2M"]
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    nodes: dict[str, tuple[Path, int]] = {}
    said: list[str] = []
    try:
        assert running.stderr is not None
        for line in running.stderr:
            said.append(line)
            if found := NODE.search(line):
                # Its socket is in the directory `state` of the node's own.
                nodes[found[2]] = Path(found[1]).parents[1], int(found[3])
            if len(nodes) == text.count("[[node]]"):
                break
        else:
            raise SystemExit(f"the mesh did not start: {''.join(said[-3:])}")
        yield nodes
    finally:
        # A lab that has given up says why.
        has_ended = running.poll() is not None
        running.send_signal(signal.SIGINT)
        _, rest = running.communicate()
        if has_ended:
            print(rest, file=sys.stderr)


def wait(what: str, done: Callable[[], bool]) -> float:
    """Waits until something is done. Returns how long that took, in seconds."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > WITHIN_S:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.5)
    return time.monotonic() - began


def release(mesh: Mesh) -> str:
    """Makes a signed release with an image for each model. Returns its manifest."""
    for name in ["wdr4300", "cpe210"]:
        (mesh.scratch / f"{name}.bin").write_bytes(os.urandom(SIZE))
    images = ["--image", "wdr4300=wdr4300.bin", "--image", "cpe210=cpe210.bin"]
    mesh.run("fleet", "pack", "town", "1.1", *images, "--out", "town.manifest")
    mesh.run("fleet", "sign", "town.manifest", "--key", "signer")
    return str(mesh.scratch / "town.manifest")


def push(mesh: Mesh) -> dict[str, float]:
    """Stages the release everywhere. Returns when each node had it, s after the push."""
    began = time.monotonic()
    staged: dict[str, float] = {}
    mesh.ask(OPERATOR, "fleet", "push", release(mesh))
    lucky = set(mesh.daemons) | {OFF, KILLED}

    def look() -> None:
        for name, row in mesh.rows().items():
            if row["standing"] == "staged":
                staged.setdefault(name, time.monotonic() - began)

    def is_receiving() -> bool:
        look()
        if KILLED in staged:
            raise SystemExit(f"{KILLED} was faster than this program: take a larger image")
        return any(t["size"] == SIZE for t in mesh.list(KILLED, "transfers"))

    def have(names: set[str]) -> Callable[[], bool]:
        def done() -> bool:
            look()
            return names <= set(staged)

        return done

    wait(f"{KILLED} receives the image", is_receiving)
    mesh.kill(KILLED)
    time.sleep(3)
    mesh.start(KILLED)
    wait("all that run and have room", have(lucky - {FULL, OFF}))
    mesh.start(OFF)
    wait("the node that was off", have({OFF}))
    return staged


def update(mesh: Mesh) -> None:
    """Installs the release, until a node fails."""
    args = ["--without-missing", "--batch", "25%", "--canary", OTHER_MODEL]
    mesh.ask(OPERATOR, "fleet", "apply", *args)
    restarts = mesh.dir(FAILS) / "restarts"
    wait(f"{FAILS} restarts", restarts.exists)
    mesh.kill(FAILS)
    mesh.start(FAILS)
    wait("the roll-out stops", lambda: mesh.stage() == "stopped")


def versions(mesh: Mesh) -> dict[str, str]:
    """Returns the version that each node runs, from its own file."""
    names = [*mesh.daemons]
    return {name: (mesh.dir(name) / "version").read_text().strip() for name in names}


def main(program: str, recording: Path | None) -> None:
    """Runs the demonstration."""
    ncmesh = Path(program).resolve()
    with tempfile.TemporaryDirectory() as directory, lab(ncmesh, Path(directory)) as nodes:
        mesh = Mesh(ncmesh, Path(directory), {name: at for name, (at, _) in nodes.items()})
        recorder = Recorder(mesh.port)
        try:
            for name, (_, process) in nodes.items():
                os.kill(process, signal.SIGKILL)
                mesh.configure(name)
            for name in nodes:
                if name != OFF:
                    mesh.start(name)
            reached = {name for name in nodes if name not in (OFF, OPERATOR)}

            def all_there() -> bool:
                if not (mesh.dir(OPERATOR) / "state" / "api.sock").exists():
                    return False
                with contextlib.suppress(subprocess.CalledProcessError):
                    peers = mesh.list(OPERATOR, "peers")
                    return reached <= {p.get("name") for p in peers if p.get("etx")}
                return False

            wait("all nodes know each other", all_there)
            recorder.start()
            staged = push(mesh)
            update(mesh)
            stopped = mesh.ask(OPERATOR, "fleet", "status")["rollout"]
            before = {node["name"]: node for node in stopped["nodes"]}
            ran = versions(mesh)
            mesh.ask(OPERATOR, "fleet", "rollback")
            back = wait("all are back", lambda: mesh.stage() == "rolled_back")
            after = versions(mesh)
        except subprocess.CalledProcessError:
            log = (mesh.dir(OPERATOR) / "log").read_text().splitlines()
            print("the operator's node said last:", *log[-3:], sep="\n", file=sys.stderr)
            raise
        finally:
            for name in list(mesh.daemons):
                mesh.kill(name)

    if recording is not None:
        recorder.write(recording)
    print("| node | | staged after | when it stopped | version then | why |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, row in sorted(before.items()):
        took = f"{staged[name]:.0f} s" if name in staged else "-"
        state = str(row["standing"]).replace("_", " ")
        print(
            f"| {name} | {LUCK.get(name, '')} | {took} | {state} | {ran[name]} | "
            f"{row['why'] or ''} |"
        )
    print(
        f"\nIt {stopped['waits_for']}. After `ncmesh fleet rollback` all were back in {back:.0f} s."
    )

    expected = {FULL: ("staging", "1.0"), FAILS: ("failed", "1.0")}
    for name, (state, version) in expected.items():
        if (before[name]["standing"], ran[name]) != (state, version):
            raise SystemExit(f"{name}: {before[name]}")
    if "1.1" not in ran.values() or set(after.values()) != {"1.0"}:
        raise SystemExit(f"versions when it stopped {ran}, and at the end {after}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) == 3 else None)
