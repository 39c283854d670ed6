"""Tests of ncmesh on mac80211_hwsim radios. Runs as root in a machine of its own.

Three radios stand in a row, each in a network namespace: `a` and `c` hear `b`, not each other.
hwsim delivers every frame at once and loses none, so losses are made by nftables, and nothing is
said about speed. Daemons send as slowly as the standard allows, so that the time which the emulated
processor takes for a frame is small beside the frame's. Arguments: the program, a folder with
outcomes of the simulator (LOSS-SEED.json, loss in percent), and words of which a test's name must
contain one.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from radios import PATIENCE, Radio, run, wait

NCMESH, EXPECTED, WORDS = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
TMP = Path("/tmp/wifi")
KEY = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
NAMES = ["a", "b", "c"]
# Groups of radios that hear each other, as bits.
GROUPS = [1, 3, 2]
# Time within which a mesh has recovered, s. The machine is emulated, and so slow that its own
# share of that is large.
RECOVERY = 10.0
# Files whose packets are counted, for one alone varies by a tenth.
FILES = 3


class Node(Radio):
    """A radio with its namespace, and a daemon."""

    def __init__(self, index: int, kind: str) -> None:
        super().__init__(index, NAMES[index], kind)
        self.dir = TMP / self.name
        self.process: subprocess.Popen[bytes] | None = None

    def plug(self) -> None:
        group = Path(f"/sys/kernel/debug/ieee80211/{self.phy()}/hwsim/group")
        group.write_text(str(GROUPS[self.index]))
        super().plug()

    def lose(self, percent: int) -> None:
        self.inside("nft", "flush", "ruleset")
        if percent:
            self.inside(
                "nft",
                "add table ip loss; add chain ip loss arriving "
                "{ type filter hook prerouting priority -300; }; "
                f"add rule ip loss arriving udp dport 7117 numgen random mod 100 < {percent} drop",
            )

    # ---- the daemon

    def configure(self, more: str = "") -> None:
        (self.dir / "in").mkdir(parents=True, exist_ok=True)
        file = self.dir / "node.toml"
        file.touch(0o600)
        file.write_text(
            f'[node]\nid = {self.index + 1}\nname = "{self.name}"\nkey = "{KEY}"\n'
            f'state_dir = "state"\n[radio]\nkind = "udp"\ninterface = "{self.device}"\n'
            f'rate = "1M"\n[inbox]\ndir = "in"\n{more}'
        )

    def start(self) -> None:
        with (self.dir / "log").open("ab") as log:
            config = str(self.dir / "node.toml")
            command = ["ip", "netns", "exec", self.name, NCMESH, "node", "--config", config]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait(f"{self.name} answers", lambda: self.ask("status") is not None)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, *command: str) -> object | None:
        """Returns what the daemon answers as JSON; `None` if it does not."""
        api = str(self.dir / "state" / "api.sock")
        done = subprocess.run(
            [NCMESH, *command, "--json", "--api", api], capture_output=True, text=True, check=False
        )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def reaches(self, others: list["Node"]) -> bool:
        peers = self.ask("peers") or []
        assert isinstance(peers, list)
        known = {peer.get("name") for peer in peers if peer.get("etx") is not None}
        return all(other.name in known for other in others)

    def transmissions(self) -> int:
        status = self.ask("status")
        assert isinstance(status, dict)
        return int(status["transmissions"])

    def hints(self) -> str:
        status = self.ask("status")
        assert isinstance(status, dict)
        return "\n".join(status["hints"])


class Mesh:
    """The three nodes, of one kind of network."""

    def __init__(self, kind: str) -> None:
        self.nodes = [Node(index, kind) for index in range(3)]
        for node in self.nodes:
            node.plug()

    def start(self, percent: int = 0, more: Callable[[Node], str] = lambda _: "") -> None:
        """Starts all daemons afresh, and waits until they know each other."""
        run("rm", "-rf", str(TMP))
        for node in self.nodes:
            node.lose(percent)
            node.configure(more(node))
            node.start()
        self.wait_for_paths()

    def wait_for_paths(self, limit: float = PATIENCE) -> float:
        def all_reach_all() -> bool:
            return all(n.reaches([o for o in self.nodes if o is not n]) for n in self.nodes)

        return wait("all reach all", all_reach_all, limit)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()
            node.lose(0)

    def begin_file(self, size: int) -> tuple[bytes, str]:
        """Sends a file from `a` to the others. Returns its contents and the transfer's id."""
        contents = random.Random(size).randbytes(size)
        path = TMP / "file"
        path.write_bytes(contents)
        sent = self.nodes[0].ask("send", str(path), "--to", "b,c", "--no-wait")
        assert isinstance(sent, dict), "the file was not taken"
        return contents, str(sent["id"])

    def check_file(self, contents: bytes, transfer: str) -> None:
        """Waits for the end of the transfer, and compares what arrived."""

        def has_ended() -> bool:
            transfers = self.nodes[0].ask("transfers") or []
            assert isinstance(transfers, list)
            return any(t["id"] == transfer and t["ended"] for t in transfers)

        wait("the transfer ends", has_ended, 180)
        want = hashlib.sha256(contents).hexdigest()
        for node in self.nodes[1:]:
            found = (node.dir / "in" / "file").read_bytes()
            assert hashlib.sha256(found).hexdigest() == want, f"{node.name} has another file"

    def recover(self, what: str) -> None:
        took = self.wait_for_paths()
        print(f"    {what}: all reach all after {took:.1f} s", flush=True)
        assert took <= RECOVERY, f"{what}: {took:.1f} s"


def compares_with_the_simulator(mesh: Mesh, percent: int) -> None:
    mesh.start(percent)
    for _ in range(FILES):
        contents, transfer = mesh.begin_file(200_000)
        mesh.check_file(contents, transfer)
        for receiver in mesh.nodes[1:]:
            (receiver.dir / "in" / "file").unlink()
    sent = sum(node.transmissions() for node in mesh.nodes) / FILES
    outcomes = [json.loads(file.read_text()) for file in EXPECTED.glob(f"{percent}-*.json")]
    counts = [outcome["transmissions"] for outcome in outcomes]
    least, most, mean = min(counts), max(counts), sum(counts) / len(counts)
    simulated = f"in the simulator {mean:.0f} ({least} to {most})"
    print(f"    data packets sent for a file: {sent:.0f}, {simulated}", flush=True)
    assert abs(sent / mean - 1) <= 0.15, f"{sent / mean:.2f} times as many as simulated"


def file_without_loss(mesh: Mesh) -> None:
    compares_with_the_simulator(mesh, 0)


def file_at_20_percent(mesh: Mesh) -> None:
    compares_with_the_simulator(mesh, 20)


def each_role_is_killed(mesh: Mesh) -> None:
    mesh.start()
    for node, role in zip(mesh.nodes, ["source", "relay", "receiver"], strict=True):
        contents, transfer = mesh.begin_file(300_000 + node.index)
        time.sleep(1.0)
        node.kill()
        node.start()
        mesh.recover(f"the {role} was killed")
        mesh.check_file(contents, transfer)
        for receiver in mesh.nodes[1:]:
            (receiver.dir / "in" / "file").unlink()


def relay_leaves_and_rejoins(mesh: Mesh) -> None:
    mesh.start()
    relay = mesh.nodes[1]
    relay.leave()
    time.sleep(3.0)
    relay.join()
    mesh.recover("the relay left and joined again")


def link_goes_down_and_up(mesh: Mesh) -> None:
    mesh.start()
    relay = mesh.nodes[1]
    relay.down()
    wait("the hint about the link", lambda: f"{relay.device} is down" in relay.hints())
    relay.up()
    relay.join()
    relay.inside("ip", "address", "flush", "dev", relay.device)
    relay.address()
    mesh.recover("the relay's link went down and up")
    assert "is down" not in relay.hints(), relay.hints()


def address_is_lost(mesh: Mesh) -> None:
    mesh.start()
    relay = mesh.nodes[1]
    relay.inside("ip", "address", "flush", "dev", relay.device)
    wait("the hint about the address", lambda: "has no IPv4 address" in relay.hints())
    relay.address()
    mesh.recover("the relay's address was lost")


def tunnel(mesh: Mesh, scheme: str, percent: int) -> None:
    def section(node: Node) -> str:
        routes = "".join(
            f'"10.44.0.{other.index + 1}" = "{other.name}"\n'
            for other in mesh.nodes
            if other is not node
        )
        return (
            f'[tunnel]\nscheme = "{scheme}"\ndevice = "ncmesh0"\n'
            f'address = ["10.44.0.{node.index + 1}/24"]\n[tunnel.routes]\n{routes}'
        )

    mesh.start(percent, section)
    said = mesh.nodes[0].inside("ping", "-c", "40", "-i", "0.3", "-s", "1000", "10.44.0.3")
    arrived = int(said.split(" received")[0].split()[-1])
    print(f"    {arrived} of 40 pings were answered", flush=True)
    assert arrived >= 38


def tunnel_by_forward(mesh: Mesh) -> None:
    # It leaves losses to the MAC, and nftables drops frames that the MAC has acknowledged.
    tunnel(mesh, "forward", 0)


def tunnel_by_auto(mesh: Mesh) -> None:
    tunnel(mesh, "auto", 10)


TESTS = [
    file_without_loss,
    file_at_20_percent,
    each_role_is_killed,
    relay_leaves_and_rejoins,
    link_goes_down_and_up,
    address_is_lost,
    tunnel_by_forward,
    tunnel_by_auto,
]


def main() -> None:
    passed = failed = 0
    for kind in ["ibss", "mesh"]:
        chosen = [t for t in TESTS if not WORDS or any(w in f"{kind} {t.__name__}" for w in WORDS)]
        if not chosen:
            continue
        run("modprobe", "mac80211_hwsim", "radios=3")
        mesh = Mesh(kind)
        for test in chosen:
            start = time.monotonic()
            try:
                test(mesh)
                passed += 1
                result = "ok"
            except Exception:
                failed += 1
                result = "FAILED"
                traceback.print_exc()
                for node in mesh.nodes:
                    log = node.dir / "log"
                    print(f"--- {node.name}", log.read_text() if log.exists() else "", flush=True)
            mesh.stop()
            took = time.monotonic() - start
            print(f"{kind} {test.__name__} ... {result} ({took:.0f} s)", flush=True)
        for node in mesh.nodes:
            run("ip", "netns", "delete", node.name)
        run("modprobe", "-r", "mac80211_hwsim")
    print(f"{passed} passed, {failed} failed", flush=True)


if __name__ == "__main__":
    os.environ.pop("NCMESH_API", None)
    run("modprobe", "tun")
    main()
