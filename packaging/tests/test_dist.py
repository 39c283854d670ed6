"""Installs, runs and removes the packages of `make dist`. Tests of missing ones are skipped."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import venv
from contextlib import contextmanager
from pathlib import Path

import pytest
from skipping import skip

ROOT = Path(__file__).parents[2]
DIST = ROOT / "target" / "dist"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
EMULATORS = {"x86_64": [], "aarch64": ["qemu-aarch64-static"], "armv7": ["qemu-arm-static"]}


def made(pattern):
    found = sorted(DIST.glob(pattern))
    if not found:
        skip(f"make dist made no {pattern}")
    return found[-1]


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def demo(*command):
    """The address of `ncmesh demo`, while it runs."""
    process = subprocess.Popen(
        [*command, "demo", "--no-browser", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        words = process.stdout.readline().split()
        yield next(word for word in words if word.startswith("http://")).rstrip(":,;")
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


def shows_coding(address):
    """Whether the page is there and a demonstration runs."""
    with urllib.request.urlopen(address, timeout=30) as page:
        assert b"<html" in page.read().lower()
    wish = json.dumps({"demonstration": "cross", "loss": 0.1, "seed": 3}).encode()
    ask = urllib.request.Request(
        f"{address}demo/run", data=wish, headers={"Origin": address.rstrip("/")}
    )
    with urllib.request.urlopen(ask, timeout=120) as answer:
        assert [run["name"] for run in json.load(answer)["runs"]] == ["forward", "braid"]


def works(*command):
    """The program at the head of `command` runs: version, a built-in scenario, a demo."""
    assert output(*command, "--version").strip() == f"ncmesh {VERSION}"
    result = json.loads(output(*command, "simulate", "building", "--json"))
    assert all(receiver["verified"] for receiver in result["receivers"])
    with demo(*command) as address:
        shows_coding(address)


def test_the_sums_are_those_of_the_files():
    lines = made("SHA256SUMS").read_text().splitlines()
    assert lines
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((DIST / name).read_bytes()).hexdigest() == digest, name


def test_the_wheel_brings_the_program_and_the_module(tmp_path):
    wheel = made("ncmesh-*.whl")
    assert "-cp311-abi3-" in wheel.name
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    output(*pip, "--no-index", "--no-deps", str(wheel))
    # No compiler and nothing but the system's programs.
    env = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    command = python.with_name("ncmesh")
    assert output(str(command), "--version", env=env).strip() == f"ncmesh {VERSION}"
    works(str(command))
    # Exit codes and messages are the program's own.
    refused = subprocess.run([str(command), "simulate", "nowhere"], capture_output=True, text=True)
    assert refused.returncode == 3, refused.stderr
    assert "nowhere" in refused.stderr
    # The environment of the tests lends what Python needs.
    lent = env | {"PYTHONPATH": os.pathsep.join(sys.path[1:])}
    script = "import ncmesh; print(ncmesh.__file__, ncmesh.__version__)"
    file, version = output(str(python), "-I", "-c", script_with(sys.path[1:], script)).split()
    assert file.startswith(str(tmp_path))
    assert version == VERSION
    assert "campaign" in output(str(command), "campaign", "--help", env=lent)


def script_with(paths, script):
    """A script that finds packages on more paths, after those of its own environment."""
    return f"import sys; sys.path += {paths!r}; {script}"


@pytest.mark.parametrize("arch", EMULATORS)
def test_the_static_program_runs(arch, tmp_path):
    archive = made(f"ncmesh-*-linux-{arch}.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    assert (folder / "LICENSE-MIT").exists()
    assert (folder / "man" / "ncmesh-node.1").exists()
    program = folder / "ncmesh"
    kind = output("file", str(program))
    assert "statically linked" in kind or "static-pie linked" in kind, kind
    emulator = EMULATORS[arch]
    if emulator and not shutil.which(emulator[0]):
        skip(f"{emulator[0]} is missing (qemu-user-static)")
    if emulator:
        assert output(*emulator, str(program), "--version").strip() == f"ncmesh {VERSION}"
        own = output(*emulator, str(program), "simulate", "line", "--json")
        native = output(str(DIST / "bin" / "x86_64" / "ncmesh"), "simulate", "line", "--json")
        # The same run on every architecture, frame for frame.
        assert json.loads(own)["trace_hash"] == json.loads(native)["trace_hash"]
    else:
        works(str(program))


def test_the_router_s_node_is_small_and_runs():
    node = made("bin/router-aarch64/ncmesh")
    program = node.read_bytes()
    assert len(program) <= 4_000_000
    assert len(gzip.compress(program)) <= 2_500_000
    if not shutil.which("qemu-aarch64-static"):
        skip("qemu-aarch64-static is missing (qemu-user-static)")
    texts = output("qemu-aarch64-static", str(node), "--help")
    assert "send" in texts
    assert "simulate" not in texts
    assert len(output("qemu-aarch64-static", str(node), "keygen").strip()) == 64


def test_the_image_is_well_formed():
    archive = made("ncmesh-*-oci.tar")
    with tarfile.open(archive) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def follow(descriptor):
        content = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert len(content) == descriptor["size"]
        assert hashlib.sha256(content).hexdigest() == descriptor["digest"].removeprefix("sha256:")
        return content

    (named,) = json.loads(files["index.json"])["manifests"]
    assert named["annotations"]["org.opencontainers.image.ref.name"] == VERSION
    for manifest in json.loads(follow(named))["manifests"]:
        parts = json.loads(follow(manifest))
        config = json.loads(follow(parts["config"]))
        assert config["architecture"] == manifest["platform"]["architecture"]
        assert config["config"]["Entrypoint"] == ["/usr/bin/ncmesh"]
        (layer,) = parts["layers"]
        unpacked = gzip.decompress(follow(layer))
        digest = f"sha256:{hashlib.sha256(unpacked).hexdigest()}"
        assert config["rootfs"]["diff_ids"] == [digest]
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
            assert [(m.name, m.mode) for m in tar] == [("usr/bin/ncmesh", 0o755)]
    if shutil.which("skopeo"):
        shown = json.loads(output("skopeo", "inspect", f"oci-archive:{archive}"))
        assert shown["Os"] == "linux"


def test_the_image_s_root_has_all_that_the_program_needs(tmp_path):
    if os.geteuid() != 0:
        skip("chroot needs root")
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    shutil.copy2(made("bin/x86_64/ncmesh"), tmp_path / "usr" / "bin" / "ncmesh")
    inside = ("chroot", str(tmp_path), "/usr/bin/ncmesh")
    assert output(*inside, "--version").strip() == f"ncmesh {VERSION}"
    assert json.loads(output(*inside, "simulate", "line", "--json"))["receivers"]


def test_the_debian_package_is_installed_run_and_removed(tmp_path):
    package = made("ncmesh_*_amd64.deb")
    shown = output("dpkg-deb", "--contents", str(package))
    for path in (
        "./usr/bin/ncmesh",
        "./lib/systemd/system/ncmesh.service",
        "./etc/ncmesh/node.toml",
        "./usr/share/man/man1/ncmesh-node.1.gz",
        "./usr/share/bash-completion/completions/ncmesh",
        "./usr/share/zsh/vendor-completions/_ncmesh",
    ):
        assert path in shown or path.replace("./lib", "./usr/lib") in shown, f"{path}\n{shown}"
    if os.geteuid() != 0:
        skip("dpkg --install needs root")
    if subprocess.run(["dpkg", "--status", "ncmesh"], capture_output=True).returncode == 0:
        skip("ncmesh is installed on this machine")
    try:
        output("apt-get", "install", "--yes", "--no-install-recommends", str(package))
        works("/usr/bin/ncmesh")
        assert output("getent", "passwd", "ncmesh").startswith("ncmesh:")
        conffiles = output("dpkg-query", "--show", "--showformat=${Conffiles}", "ncmesh")
        assert "/etc/ncmesh/node.toml" in conffiles
        if shutil.which("systemd-analyze"):
            units = [*Path("/lib/systemd/system").glob("ncmesh.service")]
            output("systemd-analyze", "verify", *map(str, units))
        key = tmp_path / "key"
        output("/usr/bin/ncmesh", "keygen", str(key))
        # The shipped configuration lacks only the key.
        refused = subprocess.run(
            ["/usr/bin/ncmesh", "node", "--config", "/etc/ncmesh/node.toml"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert refused.returncode == 3
        assert "network.key" in refused.stderr
    finally:
        output("dpkg", "--purge", "ncmesh")
        if shutil.which("deluser"):
            output("deluser", "--system", "ncmesh")
    assert not Path("/usr/bin/ncmesh").exists()
    assert not Path("/etc/ncmesh/node.toml").exists()


def test_lintian_finds_no_error():
    package = made("ncmesh_*_amd64.deb")
    if not shutil.which("lintian"):
        skip("lintian is missing")
    output("lintian", "--fail-on", "error", "--allow-root", str(package))
