#!/usr/bin/env python3
"""Checks the structure of the house: imports form no circle and point down only.

Three rules, each over the files that git knows:

- No import circle between files. An edge leads from a file to the file that defines what it
  imports; re-exports are followed. An edge from a module to one of its ancestors (`super::Type`)
  makes no circle here, since it is how an `impl` block is split over files.
- Such edges run upwards, and their number in a crate may not rise (`ratchet.py`).
- Crates import downwards only, in the order of `LAYERS`.

Prints each violation on a line of its own and exits with 1 if there is any. Prints a note on each
source file that a person writes and that has more than 1,000 lines: is it two? With `--record` it
writes lower numbers of upward edges down.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import ratchet

ROOT = Path(__file__).resolve().parent.parent

# Crates from the ground up; crates on one line do not import each other.
LAYERS = [
    {"ncmesh-gf", "ncmesh-wire", "ncmesh-medium", "ncmesh-console"},
    {"ncmesh-code", "ncmesh-fleet"},
    {"ncmesh-engine"},
    {"ncmesh-transfer"},
    {
        "ncmesh-engine-braid",
        "ncmesh-engine-cascade",
        "ncmesh-engine-core",
        "ncmesh-engine-delta",
        "ncmesh-engine-file",
        "ncmesh-engine-forward",
        "ncmesh-engine-live",
        "ncmesh-engine-mc2",
        "ncmesh-engine-multirate",
        "ncmesh-engine-xor",
    },
    {"ncmesh-engines", "ncmesh-stack", "ncmesh-web"},
    {"ncmesh-host"},
    {"ncmesh-sim", "ncmesh-node"},
    {"ncmesh-lab", "ncmesh-hwsim"},
    {"ncmesh", "ncmesh-ffi", "ncmesh-py"},
]

LONG = 1000
# Says in the first line of a file that a program writes it.
GENERATED = "Generated; do not edit"
SOURCES = (".rs", ".py", ".ts", ".svelte", ".lua", ".sh")


def tracked(*patterns: str) -> list[Path]:
    """Returns the files that git tracks and that exist, relative to the root."""
    out = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [Path(name) for name in out.split("\0") if name and (ROOT / name).is_file()]


# ---- Rust

USE = re.compile(r"(?:^|\n)\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
TEST_MODULE = re.compile(r"#\[cfg\((?:test|all\(test[^)]*\))\)\]\s*(?:pub\s+)?mod\s+\w+\s*\{")
COMMENT = re.compile(r"//[^\n]*")


def without_tests(text: str) -> str:
    """Returns the text without comments and without inline test modules."""
    text = COMMENT.sub("", text)
    while found := TEST_MODULE.search(text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end:]
    return text


def flatten(tree: str) -> Iterator[tuple[str, str]]:
    """Yields (path, name in scope) of each leaf of a `use` tree."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = tree.partition(" as ")
        path = re.sub(r"\s+", "", path)
        yield path, alias.strip() or path.split("::")[-1]
        return
    head, rest = tree.split("{", 1)
    body, depth, item = rest[: rest.rindex("}")], 0, ""
    for char in body + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if item.strip():
                for path, name in flatten(item):
                    full = head.strip() + path
                    local = full.split("::")[-2] if name == "self" else name
                    yield full.removesuffix("::self"), local
            item = ""
        else:
            item += char


# Path of a module or an item within its crate.
ModulePath = tuple[str, ...]


class Crate:
    """The modules of one crate: which file each is, and what each imports."""

    def __init__(self, src: Path) -> None:
        self.src = src
        self.files: dict[ModulePath, Path] = {}
        for file in tracked(f"{src}/*.rs"):
            parts = list(file.relative_to(src).with_suffix("").parts)
            if parts[-1] in ("mod", "lib", "main"):
                parts.pop()
            if "tests" in parts or (parts and parts[-1].endswith("_tests")):
                continue
            self.files.setdefault(tuple(parts), file)
        self.uses = {module: list(self._uses(module)) for module in self.files}

    def _uses(self, module: ModulePath) -> Iterator[tuple[ModulePath, str]]:
        text = without_tests((ROOT / self.files[module]).read_text())
        for tree in USE.findall(text):
            for path, name in flatten(tree):
                resolved = self._absolute(module, path.split("::"))
                if resolved is not None:
                    yield resolved, name

    def _absolute(self, module: ModulePath, path: list[str]) -> ModulePath | None:
        if path[0] == "crate":
            return tuple(path[1:])
        at = list(module)
        if path[0] == "self":
            return tuple(at + path[1:])
        if path[0] == "super":
            while path and path[0] == "super":
                at, path = at[:-1], path[1:]
            return tuple(at + path)
        # `use child::Name` without `self`.
        return tuple(at + path) if tuple(at + path[:1]) in self.files else None

    def defining(self, path: ModulePath, seen: frozenset[ModulePath] = frozenset()) -> ModulePath:
        """Returns the module that defines what `path` names; re-exports are followed."""
        for cut in range(len(path), -1, -1):
            module = path[:cut]
            if module not in self.files:
                continue
            rest = path[cut:]
            if rest and path not in seen:
                for target, name in self.uses[module]:
                    if name == rest[0] and target != path:
                        return self.defining(target + rest[1:], seen | {path})
            return module
        return ()

    def edges(self) -> dict[Path, set[Path]]:
        """Returns which files import which, but not those that import their ancestors."""
        graph: dict[Path, set[Path]] = {file: set() for file in self.files.values()}
        for module, target in self._imports():
            if not is_ancestor(target, module):
                graph[self.files[module]].add(self.files[target])
        return graph

    def upward_edges(self) -> int:
        """Returns the number of pairs of a module and an ancestor that it imports something of."""
        pairs = {(module, target) for module, target in self._imports() if module != target}
        return sum(is_ancestor(target, module) for module, target in pairs)

    def _imports(self) -> Iterator[tuple[ModulePath, ModulePath]]:
        """Yields a module and one that defines what it imports."""
        for module, uses in self.uses.items():
            for path, _ in uses:
                target = self.defining(path)
                if target in self.files:
                    yield module, target


def is_ancestor(of: ModulePath, module: ModulePath) -> bool:
    """Whether `of` is `module`, its parent, or a parent of that."""
    return module[: len(of)] == of


# ---- Python


def python_edges(package: Path) -> dict[Path, set[Path]]:
    """Returns which files of a package import which, at run time."""
    modules: dict[str, Path] = {}
    for file in tracked(f"{package}/*.py"):
        parts = list(file.relative_to(package.parent).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        modules[".".join(parts)] = file
    graph: dict[Path, set[Path]] = {file: set() for file in modules.values()}
    for name, file in modules.items():
        for node in runtime_nodes(ast.parse((ROOT / file).read_text())):
            wanted: list[str] = []
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            for path in wanted:
                while path and path not in modules:
                    path = path.rpartition(".")[0]
                is_ancestor = name == path or name.startswith(f"{path}.")
                if path and not is_ancestor:
                    graph[file].add(modules[path])
    return graph


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields all nodes but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from runtime_nodes(node)


# ---- rules


def circles(graph: dict[Path, set[Path]]) -> list[list[Path]]:
    """Returns the strongly connected components of more than one file (Tarjan)."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[list[Path]] = []

    def visit(node: Path) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def named(found: list[list[Path]]) -> list[str]:
    """Returns a line for each circle."""
    return ["import circle: " + ", ".join(map(str, circle)) for circle in found]


def manifests() -> Iterable[Path]:
    """Returns the manifests of the product's crates."""
    members = [ROOT / "crates", ROOT / "crates/engines"]
    manifests = tracked("crates/*/Cargo.toml")
    return (file for file in manifests if (ROOT / file).parent.parent in members)


def upward_imports() -> Iterator[str]:
    """Yields a line for each import that does not point down."""
    height = {crate: level for level, crates in enumerate(LAYERS) for crate in crates}
    for manifest in manifests():
        table = tomllib.loads((ROOT / manifest).read_text())
        name = table["package"]["name"]
        if name not in height:
            yield f"{manifest}: {name} has no place in LAYERS of scripts/check-house.py"
            continue
        for other in table.get("dependencies", {}):
            if other in height and height[other] >= height[name]:
                yield f"{manifest}: {name} imports {other}, which does not lie below it"


def main() -> int:
    """Prints all violations; returns the exit code."""
    problems: list[str] = []
    upward: dict[str, int] = {}
    for manifest in tracked("Cargo.toml", "*/Cargo.toml", "**/Cargo.toml"):
        src = manifest.parent / "src"
        if (ROOT / src).is_dir() and not str(manifest).startswith("fuzz"):
            crate = Crate(src)
            problems += named(circles(crate.edges()))
            upward[str(manifest.parent)] = crate.upward_edges()
    packages = tracked("python/*/__init__.py", "papers/python/*/__init__.py")
    for package in sorted({file.parent for file in packages}):
        if package.parent.name == "python":
            problems += named(circles(python_edges(package)))
    problems += upward_imports()
    for file in tracked(*(f"*{suffix}" for suffix in SOURCES)):
        lines = (ROOT / file).read_text().splitlines()
        if len(lines) > LONG and GENERATED not in lines[0]:
            print(f"note: {file} has {len(lines)} lines; is it two?")
    for problem in problems:
        print(problem)
    each = ", ".join(f"{crate} {edges}" for crate, edges in sorted(upward.items()) if edges)
    print(f"imports of ancestors: {each}")
    held = ratchet.hold("imports of ancestors", upward)
    return 1 if problems or not held else 0


if __name__ == "__main__":
    sys.exit(main())
