"""Packages before they are built: unit, default configuration, OpenWrt's files, versions."""

import importlib.util
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from skipping import skip

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
OPENWRT = PACKAGING / "openwrt"
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
COMMAND = tomllib.loads((ROOT / "crates" / "cli" / "Cargo.toml").read_text())

# Functions of OpenWrt's /lib/functions.sh, over variables instead of UCI's parser.
FUNCTIONS = """
config_get() { eval "$1=\\"\\${$2__$3:-}\\""; }
config_list_foreach() {
  eval "count=\\"\\${$1__$2__count:-0}\\""
  index=0
  while [ "$index" -lt "$count" ]; do
    eval "item=\\"\\${$1__$2__$index}\\""
    index=$((index + 1))
    "$3" "$item"
  done
}
config_foreach() { for section in $SECTIONS; do
  config_get type "$section" TYPE
  [ "$type" != "$2" ] || "$1" "$section"
done; }
"""
LINE = re.compile(r"\s*(config|option|list)\s+(\w+)(?:\s+'(.*)')?\s*")


def translated(uci):
    """node.toml of a UCI configuration, by the script that routers run."""
    env = {"PATH": os.environ["PATH"]}
    sections, section = [], ""
    for line in uci.splitlines():
        if not (found := LINE.fullmatch(line.split("#")[0] if "'" not in line else line)):
            continue
        word, name, value = found.groups()
        if word == "config":
            section = value or f"unnamed{len(sections)}"
            sections.append(section)
            env[f"{section}__TYPE"] = name
        elif word == "option":
            env[f"{section}__{name}"] = value
        else:
            count = int(env.get(f"{section}__{name}__count", "0"))
            env[f"{section}__{name}__{count}"] = value
            env[f"{section}__{name}__count"] = str(count + 1)
    script = f"{FUNCTIONS}\nSECTIONS='{' '.join(sections)}'\n. '{OPENWRT}/files/node-toml.sh'\n"
    shell = shutil.which("dash") or "sh"
    done = subprocess.run(
        [shell, "-c", f"{script}node_toml"], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_uci_is_translated():
    text = translated(
        """
config node 'node'
    option enabled '1'
    option id '3'
    option name 'roof-east'
    option key_file '/etc/ncmesh/network.key'
    option log 'warn'
config radio 'radio'
    option interface 'mesh0'
    option rate '6M'
    option port '7118'
config inbox 'inbox'
    option dir '/tmp/ncmesh'
    list allow_from 'barn'
    list allow_from 'with "quotes" and \\ and $(id)'
config tunnel 'tunnel'
    list address '10.44.0.3/24'
    list address 'fd44::3/64'
    option clamp_mss '0'
    option padding '1'
config route
    option prefix '192.168.7.0/24'
    option via '5'
config route
    option prefix '10.44.0.5'
    option via 'barn'
"""
    )
    assert tomllib.loads(text) == {
        "node": {
            "id": 3,
            "name": "roof-east",
            "key_file": "/etc/ncmesh/network.key",
            "log": "warn",
        },
        "radio": {"kind": "udp", "interface": "mesh0", "port": 7118, "rate": "6M"},
        "inbox": {
            "dir": "/tmp/ncmesh",
            "allow_from": ["barn", 'with "quotes" and \\ and $(id)'],
        },
        "tunnel": {
            "address": ["10.44.0.3/24", "fd44::3/64"],
            "clamp_mss": False,
            "padding": True,
            "routes": {"192.168.7.0/24": 5, "10.44.0.5": "barn"},
        },
    }


def test_kinds_of_ports_are_translated():
    def radio(options: str) -> object:
        text = translated(f"config radio 'radio'\n    option interface 'w*'\n{options}")
        return tomllib.loads(text)["radio"]

    link = "    option kind 'link'\n    option ethertype '34998'\n"
    assert radio(link) == {"kind": "link", "interface": "w*", "ethertype": 34998}
    assert radio("    option kind 'auto'\n") == {"interface": "w*"}
    peers = "    list peers 'a.b:7117'\n    list peers '[fd00::1]:7117'\n"
    udp: dict[str, object] = {"kind": "udp", "interface": "w*"}
    assert radio(peers) == udp | {"peers": ["a.b:7117", "[fd00::1]:7117"]}
    v6 = "    option group 'ff12::1'\n    option dscp '46'\n    option broadcast_rate '24M'\n"
    assert radio(v6) == udp | {"group": "ff12::1", "dscp": 46, "broadcast_rate": "24M"}
    assert radio("    option airtime_share '0.3'\n") == udp | {"airtime_share": 0.3}
    assert radio("    option airtime_share '0.3.1'\n") == udp | {"airtime_share": "0.3.1"}


def test_each_port_of_uci_is_a_table():
    text = translated(
        """
config port
    option interface 'wlan0'
config port
    option name 'roof'
    option interface 'eth1'
    option kind 'link'
    option mtu '1400'
"""
    )
    ports = tomllib.loads(text)["port"]
    roof = {"name": "roof", "interface": "eth1", "kind": "link", "mtu": 1400}
    assert ports == [{"interface": "wlan0"}, roof]


def test_a_router_takes_part_in_roll_outs():
    text = translated(
        """
config fleet 'fleet'
    option model 'tplink,archer-c7-v2'
    option version_file '/etc/openwrt_version'
    option name 'town'
    list keys 'aa'
    list keys 'bb'
    option need '2'
    list operators 'cc'
    list stage '/usr/share/ncmesh/fleet.sh'
    list stage 'stage'
"""
    )
    assert tomllib.loads(text)["fleet"] == {
        "model": "tplink,archer-c7-v2",
        "version_file": "/etc/openwrt_version",
        "name": "town",
        "keys": ["aa", "bb"],
        "need": 2,
        "operators": ["cc"],
        "stage": ["/usr/share/ncmesh/fleet.sh", "stage"],
    }


def test_the_hook_of_a_router_refuses_what_it_does_not_know():
    for word, code in [("confirm", 0), ("rollback", 1), ("dance", 2)]:
        hook = OPENWRT / "files" / "fleet.sh"
        assert subprocess.run(["sh", str(hook), word]).returncode == code


def debian_hook(tmp_path, word, **programs):
    """Runs the hook of Debian hosts with programs that only note how they were called."""
    fake = tmp_path / "bin"
    fake.mkdir(exist_ok=True)
    for name in ["dpkg", "dpkg-deb", "systemctl", "systemd-run"]:
        # systemd-run runs the rest of its arguments at once, from the name of the hook on.
        after = 'while [ "$1" != "$HOOK" ]; do shift; done; "$@"' if name == "systemd-run" else ""
        program = fake / name
        code = programs.get(name.replace("-", "_"), 0)
        calls = tmp_path / "calls"
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{calls}\n{after}\nexit {code}\n')
        program.chmod(0o755)
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    hook = str(PACKAGING / "hooks" / "fleet-deb.sh")
    env = {
        "PATH": f"{fake}:/usr/bin:/bin",
        "HOOK": hook,
        "NCMESH_FLEET_STATE": str(state),
        "NCMESH_IMAGE": str(tmp_path / "image"),
        "NCMESH_VERSION": programs.get("version", "1.1"),
    }
    return subprocess.run([hook, word], env=env, check=False).returncode


def test_the_hook_of_debian_installs_keeps_and_goes_back(tmp_path):
    state = tmp_path / "state"
    (tmp_path / "image").write_text("one")
    assert debian_hook(tmp_path, "stage") == 0
    assert debian_hook(tmp_path, "rollback") == 1
    for word in ["apply", "confirm"]:
        assert debian_hook(tmp_path, word) == 0
    assert (state / "version").read_text() == "1.1\n"

    # The next version goes back to the package that was kept.
    (tmp_path / "image").write_text("two")
    assert debian_hook(tmp_path, "apply", version="1.2") == 0
    assert (state / "version").read_text() == "1.2\n"
    assert debian_hook(tmp_path, "rollback", version="1.2") == 0
    assert (state / "version").read_text() == "1.1\n"
    assert (state / "kept.deb").read_text() == "one"
    calls = (tmp_path / "calls").read_text()
    assert "dpkg --no-act --install" in calls
    assert calls.count("systemctl restart ncmesh.service") == 3
    assert debian_hook(tmp_path, "dance") == 2


def test_the_hook_of_debian_says_what_failed(tmp_path):
    (tmp_path / "image").write_text("one")
    assert debian_hook(tmp_path, "stage", dpkg=1) != 0
    assert debian_hook(tmp_path, "stage", dpkg_deb=2) != 0
    # A unit that is still running asks for another attempt.
    assert debian_hook(tmp_path, "apply", systemd_run=1) == 75
    (tmp_path / "state" / "version").write_text("1.0\n")
    # A package that dpkg does not install leaves the version as it was.
    assert debian_hook(tmp_path, "apply", dpkg=1) == 0
    assert (tmp_path / "state" / "version").read_text() == "1.0\n"


def test_a_value_of_uci_cannot_add_settings():
    text = translated("config node 'node'\n    option id '3x'\n    option name 'a\"b'\n")
    assert tomllib.loads(text) == {"node": {"id": "3x", "name": 'a"b'}}


def test_the_shipped_uci_file_is_a_node():
    text = translated((OPENWRT / "files" / "ncmesh.config").read_text())
    node = tomllib.loads(text)
    assert node["node"]["key_file"] == "/etc/ncmesh/network.key"
    assert node["radio"] == {"kind": "udp", "interface": "mesh0"}
    assert node["limits"] == {"profile": "router"}


def test_every_package_has_the_version_of_the_workspace():
    version = WORKSPACE["package"]["version"]
    assert f"PKG_VERSION:={version}\n" in (OPENWRT / "Makefile").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_a_part_that_was_named_and_cannot_be_made_is_a_failure(monkeypatch, tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("dist", PACKAGING / "dist.py")
    dist = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dist)

    def wheel():
        raise dist.SkippedError("maturin is missing")

    monkeypatch.setattr(dist, "DIST", tmp_path)
    monkeypatch.setattr(dist, "PARTS", {"wheel": wheel})
    for names, code in [([], 0), (["wheel"], 1)]:
        monkeypatch.setattr("sys.argv", ["dist.py", *names])
        assert dist.main() == code
        assert "skipped wheel: maturin is missing" in capsys.readouterr().out


def test_a_router_has_every_engine_and_no_lab():
    features = COMMAND["features"]
    listed = re.search(r"RUST_PKG_FEATURES:=(\S+)", (OPENWRT / "Makefile").read_text())[1]
    left_out = {"journal", "lab", "manual", "top", "web"}
    assert set(listed.split(",")) == set(features["default"]) - left_out
    assert f'ENGINES = "{listed}"' in (PACKAGING / "dist.py").read_text()


def test_a_router_s_program_has_no_tables_to_unwind_its_stack():
    assert "$(CURDIR)/files/no-unwind.ld\n" in (OPENWRT / "Makefile").read_text()
    small = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]["small"]
    assert small["panic"] == "abort"
    assert (OPENWRT / "files" / "no-unwind.ld").exists()


def test_the_default_configuration_has_no_key():
    node = tomllib.loads((PACKAGING / "node.toml").read_text())
    assert "key" not in node["node"]
    assert node["api"] == {"socket": "/run/ncmesh/api.sock", "group": True}


def test_the_unit_and_the_configuration_agree():
    unit = (PACKAGING / "systemd" / "ncmesh.service").read_text().splitlines()
    node = tomllib.loads((PACKAGING / "node.toml").read_text())
    assert "Type=notify" in unit
    assert f"StateDirectory={Path(node['node']['state_dir']).name}" in unit
    assert f"RuntimeDirectory={Path(node['api']['socket']).parent.name}" in unit
    assert f"ConditionPathExists=/etc/ncmesh/{node['node']['key_file']}" in unit


def test_systemd_accepts_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is missing")
    unit = (PACKAGING / "systemd" / "ncmesh.service").read_text()
    # The program and its manual are not installed here.
    unit = unit.replace("/usr/bin/ncmesh", "/bin/true").replace("man:ncmesh-node(1) ", "")
    (tmp_path / "ncmesh.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "ncmesh.service")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Unknown key" not in done.stderr, done.stderr


def test_what_the_debian_package_names_is_there():
    metadata = COMMAND["package"]["metadata"]["deb"]
    folder = ROOT / "crates" / "cli"
    for source, _, _ in metadata["assets"]:
        if not source.startswith(("target/", "../../target/")):
            assert (folder / source).exists(), source
    assert f'MAINTAINER = "{metadata["maintainer"]}"' in (PACKAGING / "dist.py").read_text()
    for script in ("postinst", "postrm"):
        file = folder / metadata["maintainer-scripts"] / script
        subprocess.run(["sh", "-n", str(file)], check=True)


def test_scripts_are_shell():
    for file in OPENWRT.joinpath("files").iterdir():
        if file.name not in ("ncmesh.config", "no-unwind.ld"):
            subprocess.run(["sh", "-n", str(file)], check=True)
