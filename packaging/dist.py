#!/usr/bin/env python3
"""Makes the packages of a release in target/dist: `packaging/dist.py [PART...]`.

Parts: binaries, wheel, deb, openwrt, oci; all of them by default. One static program per
architecture goes into every package. What cannot be made here is skipped, and the last lines say
what and why; a build that fails, or a part that was named and skipped, is an error.
"""

from __future__ import annotations

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
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "target" / "dist"
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
VERSION = WORKSPACE["package"]["version"]
MAINTAINER = "The ncmesh developers <ncmesh@users.noreply.github.com>"
DESCRIPTION = "Network coding for wireless meshes"
# As files of archives are dated, so that a build gives the same bytes tomorrow: 2026-01-01.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1767225600"))
# A router's build has every engine: a relay serves what others choose.
ENGINES = "cascade,file,braid,forward,xor,core,mc2,delta,multirate,live"
ROUTER_LIMIT = 2_500_000


class Target:
    """An architecture: its Rust target, a C compiler that links for it, its names elsewhere."""

    def __init__(self, rust: str, compiler: str, oci: dict[str, str], flags: str = "") -> None:
        self.rust, self.compiler, self.oci, self.flags = rust, compiler, oci, flags


TARGETS = {
    "x86_64": Target("x86_64-unknown-linux-musl", "musl-gcc", {"architecture": "amd64"}),
    "aarch64": Target(
        "aarch64-unknown-linux-musl", "aarch64-linux-gnu-gcc", {"architecture": "arm64"}
    ),
    "armv7": Target(
        "armv7-unknown-linux-musleabihf",
        "arm-linux-gnueabihf-gcc",
        {"architecture": "arm", "variant": "v7"},
    ),
}
# Where musl's standard library cannot be had: a static program with the GNU C library.
INSTEAD = {
    "armv7": Target(
        "armv7-unknown-linux-gnueabihf",
        "arm-linux-gnueabihf-gcc",
        {"architecture": "arm", "variant": "v7"},
        "-C target-feature=+crt-static",
    ),
}


class SkippedError(Exception):
    """Why a part cannot be made on this machine."""


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
    """Runs a command; raises if it fails."""
    print("+", *command, flush=True)
    subprocess.run(command, check=True, cwd=cwd, env=os.environ | (env or {}))


def need(program: str, package: str) -> str:
    """Returns the path of a program."""
    if found := shutil.which(program):
        return found
    raise SkippedError(f"{program} is missing ({package})")


def has_target(name: str) -> bool:
    """Returns whether Rust's standard library for a target is here; asks rustup for it if not."""
    libdir = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", name], capture_output=True, text=True
    ).stdout.strip()
    if Path(libdir).is_dir():
        return True
    if shutil.which("rustup"):
        command = ["rustup", "target", "add", name]
        try:
            done = subprocess.run(command, capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0
    return False


def program(arch: str, profile: str = "release", *options: str, flags: str = "") -> Path:
    """Builds the static program for an architecture, with further flags of rustc."""
    target = TARGETS[arch]
    if not has_target(target.rust):
        target = INSTEAD.get(arch, target)
        if not has_target(target.rust):
            raise SkippedError(f"the Rust target {target.rust} is not installed")
    compiler = need(target.compiler, "a C compiler of that architecture")
    name = target.rust.replace("-", "_")
    # Programs in packages are without the symbols that debuggers read.
    env = {f"CC_{name}": compiler, "CARGO_PROFILE_RELEASE_STRIP": "symbols"}
    if arch != "x86_64":
        env[f"CARGO_TARGET_{name.upper()}_LINKER"] = compiler
    if flags := f"{target.flags} {flags}".strip():
        env[f"CARGO_TARGET_{name.upper()}_RUSTFLAGS"] = flags
    run(
        *("cargo", "build", "--locked", "--profile", profile, "--target", target.rust),
        *("-p", "ncmesh", *options),
        env=env,
    )
    return ROOT / "target" / target.rust / profile / "ncmesh"


def binaries() -> None:
    """bin/ARCH/ncmesh, and an archive of each with licences and man pages."""
    problems = []
    for arch in TARGETS:
        try:
            built = program(arch)
        except SkippedError as problem:
            problems.append(f"{arch}: {problem}")
            continue
        there = DIST / "bin" / arch / "ncmesh"
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, there)
        if arch == "x86_64":
            share()
        name = f"ncmesh-{VERSION}-linux-{arch}"
        files = [(there, f"{name}/ncmesh", 0o755)]
        files += [(ROOT / f, f"{name}/{f}", 0o644) for f in ("LICENSE-MIT", "LICENSE-APACHE")]
        for kind in ("man", "completions"):
            found = sorted((DIST / "share" / kind).glob("*"))
            files += [(f, f"{name}/{kind}/{f.name}", 0o644) for f in found]
        (DIST / f"{name}.tar.gz").write_bytes(gzip.compress(archive(files), mtime=0))
    if problems:
        raise SkippedError("; ".join(problems))


def share() -> None:
    """share/man and share/completions, by the program itself."""
    native = DIST / "bin" / "x86_64" / "ncmesh"
    run(native, "man", DIST / "share" / "man")
    completions = DIST / "share" / "completions"
    completions.mkdir(parents=True, exist_ok=True)
    for shell, name in (("bash", "ncmesh"), ("zsh", "_ncmesh"), ("fish", "ncmesh.fish")):
        text = subprocess.run(
            [native, "completions", shell], check=True, capture_output=True
        ).stdout
        (completions / name).write_bytes(text)


def binary(arch: str = "x86_64") -> Path:
    """Returns the program of `binaries`, which is made first."""
    there = DIST / "bin" / arch / "ncmesh"
    if not there.exists():
        raise SkippedError(f"there is no program for {arch}: packaging/dist.py binaries")
    return there


def archive(files: list[tuple[Path, str, int]]) -> bytes:
    """Returns a tar archive of files by name and mode, the same bytes for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file, name, mode in files:
            info = tarfile.TarInfo(name)
            content = file.read_bytes()
            info.size, info.mode, info.mtime = len(content), mode, EPOCH
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def wheel() -> None:
    """The Python package with the program in it, for every Python from 3.11 on."""
    venv = ROOT / os.environ.get("VENV", "target/venv") / "bin" / "maturin"
    maturin = str(venv) if venv.exists() else need("maturin", "PyPI")
    inside = ROOT / "python" / "ncmesh_command" / "bin"
    inside.mkdir(exist_ok=True)
    try:
        shutil.copy2(binary(), inside / "ncmesh")
        run(maturin, "build", "--locked", "--release", "--strip", "--out", DIST)
    finally:
        # It would go stale beside an editable installation.
        shutil.rmtree(inside)


def deb() -> None:
    """The Debian package, by cargo-deb from the metadata in crates/cli/Cargo.toml."""
    need("cargo-deb", "cargo install cargo-deb")
    built = ROOT / "target" / TARGETS["x86_64"].rust / "release" / "ncmesh"
    if not built.exists():
        raise SkippedError("there is no program for x86_64: packaging/dist.py binaries")
    # Debian's form of a changelog, which leads to ours.
    date = format_datetime(datetime.fromtimestamp(EPOCH, UTC))
    (DIST / "share" / "changelog").write_text(
        f"ncmesh ({VERSION}-1) unstable; urgency=medium\n\n"
        f"  * {WORKSPACE['package']['repository']}/blob/v{VERSION}/CHANGELOG.md\n\n"
        f" -- {MAINTAINER}  {date}\n"
    )
    run(
        *("cargo", "deb", "--locked", "-p", "ncmesh", "--no-build", "--no-strip"),
        *("--target", TARGETS["x86_64"].rust, "--output", DIST),
        env={"SOURCE_DATE_EPOCH": str(EPOCH)},
    )


def openwrt() -> None:
    """The folder for OpenWrt's feed; and the node that it builds, for its size."""
    folder = ROOT / "packaging" / "openwrt"
    files = [
        (file, f"ncmesh/{file.relative_to(folder)}", file.stat().st_mode & 0o777)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    name = f"ncmesh-{VERSION}-openwrt-feed.tar.gz"
    (DIST / name).write_bytes(gzip.compress(archive(files), mtime=0))
    options = ("--no-default-features", "--features", ENGINES)
    script = folder / "files" / "no-unwind.ld"
    node = program("aarch64", "small", *options, flags=f"-C link-arg=-Wl,-T,{script}")
    there = DIST / "bin" / "router-aarch64" / "ncmesh"
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(node, there)
    # A router's packages and its file system hold it packed.
    packed = len(gzip.compress(there.read_bytes()))
    print(f"a node for routers: {there.stat().st_size:,} bytes, {packed:,} packed")
    if packed > ROUTER_LIMIT:
        raise SystemExit(f"error: more than {ROUTER_LIMIT:,} bytes packed")


def oci() -> None:
    """An OCI image (image-spec 1.1) for the architectures there are, as one archive."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    def text(value: object) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    created = "2026-01-01T00:00:00Z"
    manifests = []
    for arch, target in TARGETS.items():
        file = DIST / "bin" / arch / "ncmesh"
        if not file.exists():
            continue
        layer = archive([(file, "usr/bin/ncmesh", 0o755)])
        platform = {"os": "linux", **target.oci}
        config = platform | {
            "created": created,
            "config": {"Entrypoint": ["/usr/bin/ncmesh"], "Cmd": ["--help"]},
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
            },
            "history": [{"created": created, "created_by": "packaging/dist.py"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob(text(config), "config.v1+json"),
            "layers": [blob(gzip.compress(layer, mtime=0), "layer.v1.tar+gzip")],
            "annotations": {
                "org.opencontainers.image.title": "ncmesh",
                "org.opencontainers.image.description": DESCRIPTION,
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": WORKSPACE["package"]["license"],
                "org.opencontainers.image.source": WORKSPACE["package"]["repository"],
            },
        }
        manifests.append(blob(text(manifest), "manifest.v1+json") | {"platform": platform})
    if not manifests:
        raise SkippedError("there is no program: packaging/dist.py binaries")

    inner = blob(
        text(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.index.v1+json",
                "manifests": manifests,
            }
        ),
        "index.v1+json",
    )
    named = inner | {"annotations": {"org.opencontainers.image.ref.name": VERSION}}
    layout = {
        "oci-layout": text({"imageLayoutVersion": "1.0.0"}),
        "index.json": text({"schemaVersion": 2, "manifests": [named]}),
    }
    layout |= {f"blobs/sha256/{digest}": content for digest, content in sorted(blobs.items())}
    with tarfile.open(DIST / f"ncmesh-{VERSION}-oci.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in layout.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), 0o644, EPOCH
            tar.addfile(info, io.BytesIO(content))


def sums() -> None:
    """SHA256SUMS of what a release offers."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(DIST.iterdir())
        if file.is_file() and file.name != "SHA256SUMS"
    ]
    (DIST / "SHA256SUMS").write_text("".join(lines))


PARTS: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (binaries, wheel, deb, openwrt, oci)
}


def main() -> int:
    """Makes the parts that the command line names; all of them if it names none."""
    names = sys.argv[1:] or list(PARTS)
    if unknown := set(names) - set(PARTS):
        print(f"error: no part {', '.join(sorted(unknown))}: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    DIST.mkdir(parents=True, exist_ok=True)
    skipped = []
    for name in names:
        try:
            PARTS[name]()
        except SkippedError as problem:
            skipped.append(f"skipped {name}: {problem}")
        except subprocess.CalledProcessError as problem:
            print(f"error: {name}: {problem}", file=sys.stderr)
            return 1
    sums()
    print((DIST / "SHA256SUMS").read_text(), end="")
    print("\n".join(skipped) if skipped else "nothing was skipped")
    # A part that was asked for by name and is not there is a failure.
    return 1 if skipped and sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
