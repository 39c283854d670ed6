"""Measures mesh software on mac80211_hwsim radios behind `ncmesh-medium`.

Runs as root in a machine of its own. Arguments: the programs ncmesh and ncmesh-medium, and a file
with the cells to measure (JSON, made by `compare`). Prints a line that begins with RESULT for each.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from radios import Radio, run, wait

NCMESH, MEDIUM, PLAN = sys.argv[1:4]
TMP = Path("/tmp/wifi")
KEY = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
# Time for paths to settle once the ends reach each other, and that of a connection, s.
SETTLE = 15.0
SECONDS = 20
# Pings of an idle mesh, and the time between two pings, s.
PINGS = 40
INTERVAL = 0.25


def popen(*command: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(command, stdout=out, stderr=out)


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Cell:
    """Radios in a row, one kind of software on them."""

    def __init__(self, cell: dict[str, Any]) -> None:
        self.cell = cell
        self.software = str(cell["software"])
        self.processes: list[subprocess.Popen[bytes]] = []
        shutil.rmtree(TMP, ignore_errors=True)
        TMP.mkdir(parents=True)
        count = int(cell["nodes"])
        run("modprobe", "mac80211_hwsim", f"radios={count}")
        self.radios = [Radio(at, f"n{at + 1}", "ibss") for at in range(count)]
        self.medium = self.start_medium()
        for radio in self.radios:
            self.plug(radio)
        for radio in self.radios:
            self.start(radio)

    # ---- the channel

    def start_medium(self) -> subprocess.Popen[bytes]:
        """Starts the medium of the row: hidden ends, or all in range of each other."""
        names = [radio.name for radio in self.radios]
        sense = "audible" if self.cell["hidden"] else "everyone"
        loss = float(self.cell["loss"])
        links = [
            f'{{ from = "{a}", to = "{b}", loss = {loss} }}' for a, b in itertools.pairwise(names)
        ]
        scenario = TMP / "row.toml"
        scenario.write_text(
            f'name = "row"\ndescription = "A row of radios"\nnodes = {json.dumps(names)}\n'
            f"link = [{', '.join(links)}]\n"
            f'[medium]\nphy = "{self.cell["phy"]}"\nbit_rate = "{self.cell["rate"]}"\n'
            f'sense = "{sense}"\n[traffic]\nfrom = "{names[0]}"\nto = ["{names[-1]}"]\n'
            'size = "1k"\n'
        )
        medium = popen(
            MEDIUM, str(scenario), "--seed", str(self.cell["seed"]), log=TMP / "medium.log"
        )
        wait("the medium", lambda: "radios" in (TMP / "medium.log").read_text())
        return medium

    def plug(self, radio: Radio) -> None:
        """Brings the radio up at the cell's rates."""
        radio.width = str(self.cell["width"])
        broadcast = str(self.cell["broadcast_rate"])
        radio.options = ["mcast-rate", broadcast] if broadcast else []
        radio.plug()
        legacy = str(self.cell["legacy_rate"])
        if legacy:
            radio.inside("iw", "dev", radio.device, "set", "bitrates", "legacy-2.4", legacy)

    # ---- the software

    def start(self, radio: Radio) -> None:
        """Starts the software. Whatever it is, the node is 10.44.0.N then."""
        if self.software.startswith("batman"):
            self.start_batman(radio)
        elif self.software == "babel":
            self.start_babel(radio)
        else:
            self.start_ncmesh(radio)

    def start_batman(self, radio: Radio) -> None:
        # Loop avoidance for bridges is on by default and makes a node mute for half a minute.
        radio.inside("ip", "link", "set", radio.device, "mtu", "1532", check=False)
        radio.inside("batctl", "meshif", "bat0", "interface", "-M", "create", check=False)
        if self.software == "batman":
            radio.inside("batctl", "meshif", "bat0", "bridge_loop_avoidance", "0", check=False)
        radio.inside("batctl", "meshif", "bat0", "interface", "add", radio.device)
        radio.inside("ip", "link", "set", "bat0", "up")
        radio.inside("ip", "address", "add", f"10.44.0.{radio.index + 1}/24", "dev", "bat0")

    def start_babel(self, radio: Radio) -> None:
        own = f"10.44.0.{radio.index + 1}/32"
        radio.inside("ip", "link", "set", "lo", "up")
        radio.inside("ip", "address", "add", own, "dev", "lo")
        for name in ("all", radio.device):
            radio.inside("sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
        radio.inside("sysctl", "-qw", "net.ipv4.ip_forward=1")
        # The route of an address is that of its host, so packets leave under that name.
        rules = f"redistribute ip 10.44.0.0/24 ge 32 allow\nredistribute local deny\n{BABEL_SOURCE}"
        config = TMP / f"{radio.name}.babel"
        config.write_text(rules.format(own=own.removesuffix("/32")))
        self.processes.append(
            popen(
                "ip",
                "netns",
                "exec",
                radio.name,
                "babeld",
                "-I",
                str(TMP / f"{radio.name}.pid"),
                "-S",
                "",
                "-c",
                str(config),
                radio.device,
                log=TMP / f"{radio.name}.log",
            )
        )

    def start_ncmesh(self, radio: Radio) -> None:
        folder = TMP / radio.name
        folder.mkdir()
        routes = "".join(
            f'"10.44.0.{other.index + 1}" = "{other.name}"\n'
            for other in self.radios
            if other is not radio
        )
        file = folder / "node.toml"
        file.touch(0o600)
        more = str(self.cell.get("radio", ""))
        file.write_text(
            f'[node]\nid = {radio.index + 1}\nname = "{radio.name}"\nkey = "{KEY}"\n'
            f'state_dir = "state"\n[radio]\ninterface = "{radio.device}"\n{more}'
            f'[inbox]\ndir = "in"\n[tunnel]\nscheme = "{self.software}"\ndevice = "ncmesh0"\n'
            f'address = ["10.44.0.{radio.index + 1}/24"]\n[tunnel.routes]\n{routes}'
        )
        command = ["ip", "netns", "exec", radio.name, NCMESH, "node", "--config", str(file)]
        self.processes.append(popen(*command, log=folder / "log"))

    def status(self, radio: Radio) -> Any:
        api = str(TMP / radio.name / "state" / "api.sock")
        done = subprocess.run(
            [NCMESH, "status", "--json", "--api", api], capture_output=True, text=True, check=False
        )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def told(self, radio: Radio) -> dict[str, Any]:
        """Returns what a daemon tells of its frames."""
        status = self.status(radio) or {}
        port, tunnel = (status.get("ports") or [{}])[0], status.get("tunnel") or {}
        words = {key: port.get(key) for key in ("airtime_s", "sent", "sent_bytes", "heard")}
        return words | {
            "transmissions": status.get("transmissions"),
            "drops": tunnel.get("drops"),
            "hints": status.get("hints"),
            "coding": status.get("coding"),
            "radio": status.get("radio"),
        }

    # ---- what is measured

    def measure(self) -> dict[str, Any]:
        first, last = self.radios[0], self.radios[-1]
        far = f"10.44.0.{last.index + 1}"

        def reaches() -> bool:
            said = first.inside("ping", "-c", "1", "-W", "1", far, check=False)
            return " 1 received" in said

        took = wait("the ends reach each other", reaches)
        time.sleep(SETTLE)
        result: dict[str, Any] = {"ready_s": round(took, 1)}
        result["idle_ping"] = pings(first, far, PINGS)
        flows = [(first, last)]
        if self.cell["load"] == "crossing":
            flows.append((last, first))
        result |= self.tcp(flows, first, far)
        if self.software not in ("babel", "batman", "batman-bla"):
            result["nodes"] = [self.told(radio) for radio in self.radios]
        return result

    def tcp(self, flows: list[tuple[Radio, Radio]], first: Radio, far: str) -> dict[str, Any]:
        """Carries connections at once, with pings beside them. Rates in kbit/s at the receivers."""
        servers = []
        for at, (_, to) in enumerate(flows):
            command = ["ip", "netns", "exec", to.name, "iperf3", "-s", "-1", "-p", str(5201 + at)]
            servers.append(popen(*command, log=TMP / f"server{at}"))
        time.sleep(1.0)
        before = self.busy()
        clients = []
        for at, (source, to) in enumerate(flows):
            log = TMP / f"client{at}.json"
            command = ["ip", "netns", "exec", source.name, "iperf3", "-J", "-t", str(SECONDS)]
            where = ["-c", f"10.44.0.{to.index + 1}", "-p", str(5201 + at)]
            clients.append(popen(*command, *where, log=log))
        time.sleep(2.0)
        loaded = pings(first, far, int((SECONDS - 4) / INTERVAL))
        rates = []
        for at, client in enumerate(clients):
            client.wait(SECONDS + 60)
            end(servers[at])
            said = json.loads((TMP / f"client{at}.json").read_text())
            rates.append(round(said["end"]["sum_received"]["bits_per_second"] / 1000, 1))
        after = self.busy()
        busy, all_time = after[0] - before[0], after[1] - before[1]
        return {
            "kbit_s": rates,
            "loaded_ping": loaded,
            "processor": round(busy / max(all_time, 1), 3),
        }

    def busy(self) -> tuple[int, int]:
        """Returns how long the processor worked, and all time, both in ticks."""
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(times) - times[3] - times[4], sum(times)

    def close(self) -> dict[str, Any]:
        for process in self.processes:
            end(process)
        for radio in self.radios:
            if self.software.startswith("batman"):
                radio.inside("batctl", "meshif", "bat0", "interface", "destroy", check=False)
            run("ip", "netns", "delete", radio.name)
        end(self.medium)
        time.sleep(0.5)
        run("modprobe", "-r", "mac80211_hwsim")
        lines = (TMP / "medium.log").read_text().splitlines()
        return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


BABEL_SOURCE = "install ip 10.44.0.0/24 pref-src {own}\n"


def pings(radio: Radio, to: str, count: int) -> dict[str, Any]:
    """Returns round-trip times, ms, and how many pings were answered."""
    said = radio.inside("ping", "-c", str(count), "-i", str(INTERVAL), "-W", "5", to, check=False)
    times = sorted(float(part.split()[0]) for part in said.split("time=")[1:])
    if not times:
        return {"sent": count, "answered": 0}
    return {
        "sent": count,
        "answered": len(times),
        "median_ms": times[len(times) // 2],
        "p95_ms": times[min(len(times) - 1, int(len(times) * 0.95))],
        "mean_ms": round(sum(times) / len(times), 2),
    }


def main() -> None:
    for cell in json.loads(Path(PLAN).read_text()):
        start = time.monotonic()
        opened = None
        try:
            opened = Cell(cell)
            result = opened.measure()
        except Exception:
            result = {"error": traceback.format_exc()}
            for log in sorted(TMP.glob("**/*log")):
                print(f"--- {log}\n{log.read_text()[-2000:]}", flush=True)
        if opened is not None:
            result["medium"] = opened.close()
        result["took_s"] = round(time.monotonic() - start)
        print("RESULT " + json.dumps({"cell": cell, "result": result}), flush=True)
        if opened is None:
            break
    print("measured", flush=True)


if __name__ == "__main__":
    os.environ.pop("NCMESH_API", None)
    for module in ("tun", "batman-adv"):
        run("modprobe", module)
    main()
