"""Contents of `pip install ncmesh`: the product, without the papers' figures and models."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

import ncmesh

# Modules and bindings of `papers`, which must not be part of the product.
PAPERS = ("core_nc", "mc2", "multirate", "reproduce", "tcp_model")
MODELS = ("cross_transmissions", "multirate_simulate", "multirate_trees", "multirate_utility")
# Packages that only figures and optima need.
HEAVY = {"cvxpy", "matplotlib", "networkx", "scipy"}


def test_the_product_carries_nothing_of_the_papers():
    package = Path(ncmesh.__file__).parent
    for name in PAPERS:
        assert importlib.util.find_spec(f"ncmesh.{name}") is None, name
        assert not (package / name).exists(), name
    assert not [name for name in MODELS if hasattr(ncmesh._ncmesh, name)]
    assert not list(package.rglob("*.csv"))


def test_the_product_needs_nothing_that_only_the_papers_need():
    declared = importlib.metadata.requires("ncmesh") or []
    # Pictures of the scoreboard are an extra.
    required = [line for line in declared if "extra ==" not in line]
    names = {line.replace(">", " ").replace("=", " ").split()[0] for line in required}
    assert not names & (HEAVY | {"ncmesh-papers"})


def test_importing_the_product_imports_no_papers():
    script = "import sys, ncmesh.__main__; print(*sys.modules)"
    modules = _python(script).split()
    assert not [name for name in modules if name.partition(".")[0] in HEAVY | {"ncmesh_papers"}]


def _python(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout
