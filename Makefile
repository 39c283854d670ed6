# ncmesh: `make demo` and `make test` need nothing but a Rust toolchain; the tests install the rest.
CARGO ?= cargo
FILE ?=
TO ?= n05,n09,n14,n20
# Seconds each fuzz target runs.
FUZZ_SECONDS ?= 10
# Where the Python package, its tools and MkDocs are installed, and the Python (3.11 or later)
# that makes it.
VENV ?= target/venv
PYTHON ?= python3
# Meshes on which the default tunnel scheme is compared with others by `make floor`.
TUNNEL_FLOOR := building dense-60-1 freifunk hidden-2-0 line-2-20 line-3-0 line-4-0 line-4-40 \
  line-6-20 mesh-1
# Scripts in Python that are run as they are.
SCRIPTS := packaging bench/fleet bench/fleet-crowd bench/peers bench/gateway bench/memory \
  bench/quick bench/streams bench/stream-input bench/tcp bench/validation bench/ns3/compare \
  bench/scale bench/scale/run bench/wifi/compare bench/wifi/inside.py bench/wifi/measure.py \
  bench/wifi/radios.py scenarios/data/movement.py scenarios/meshes/convert.py \
  scripts/check-columns.py scripts/check-house.py scripts/check-language.py \
  scripts/notebooks.py scripts/race_picture.py scripts/ratchet.py scripts/readme-picture.py \
  scripts/result-types.py scripts/fleet-demo.py scripts/site_hooks.py scripts/stream-demo.py \
  scripts/tests scripts/timing.py
# Runs tests of Rust or Python and keeps how long each took, for the end of `make test`.
TIMED := scripts/timing.py tests
REPORT_TIME := -Zunstable-options --report-time

.PHONY: all demo check test lint style clippy neon mipsel columns house language built unit live \
  lean fuzz bench bench-quick gateway doc docs clean test-deps python python-lint python-test soak \
  validation scale scoreboard scoreboard-quick floor fleet-demo stream-demo stream-demo-deps \
  wifi-bench wifi-test own-scheme console console-test header deny package-check dist dist-test

all:
	$(CARGO) build --release --workspace

# Builds everything, starts the mesh of scenarios/building.toml, sends a real file and verifies it.
# Then simulates the same transfer with other file schemes, but not `more`, which takes ten times as
# long. Without FILE it sends this source tree, packed, without tables of results.
demo:
	$(CARGO) build --profile demo -p ncmesh
	@tar -czf target/demo/ncmesh-source.tar.gz --exclude '*.parquet' crates docs scenarios
	target/demo/ncmesh lab scenarios/building.toml --from n01 --to $(TO) \
	  --send "$(or $(FILE),target/demo/ncmesh-source.tar.gz)"
	@echo
	target/demo/ncmesh simulate scenarios/building.toml --from n01 --to $(TO) \
	  --compare pacifier,etx_unicast,tree_flood \
	  --send "$(or $(FILE),target/demo/ncmesh-source.tar.gz)"

# Sends a video through the mesh of scenarios/building.toml by each of STREAM_SCHEMES. Prints what
# four receivers get of it, and writes the picture of the guide. Takes two minutes for each scheme.
STREAM_SCHEMES := delta multirate
stream-demo: stream-demo-deps
	$(CARGO) build --profile demo -p ncmesh
	scripts/stream-demo.py target/demo/ncmesh docs/pictures/stream-demo.png $(STREAM_SCHEMES)

# Updates the mesh of scenarios/building.toml over the mesh, while one node is off, one is killed,
# one has a full disk, one is of another model and one fails.
fleet-demo:
	$(CARGO) build --profile demo -p ncmesh
	scripts/fleet-demo.py target/demo/ncmesh target/demo/fleet.ncrec

# ffmpeg, and a font for the names in the picture.
stream-demo-deps:
	command -v ffmpeg >/dev/null || apt-get install -y --no-install-recommends ffmpeg \
	  fonts-dejavu-core

# For contributors before each commit: style, lints, and the unit tests of all libraries.
check: style clippy
	$(CARGO) test --workspace --lib --quiet

# Everything, as continuous integration does. Tests of real daemons mostly wait, and so everything
# that computes is done meanwhile. Ends with the time of each step, and the ten slowest tests.
test:
	scripts/timing.py steps test-deps style built -- live console-test -- \
	  unit python clippy neon floor python-test python-lint docs doc lean package-check fuzz

test-deps:
	scripts/install-test-deps.sh

lint: style clippy neon

style: columns house language
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --manifest-path fuzz/Cargo.toml --check

clippy:
	$(CARGO) clippy --workspace --all-targets --test '*' -- -D warnings

# The kernels of another processor, in an emulator.
neon:
	scripts/check-neon.sh

# Small routers: 32 bits, and no 64-bit atomics.
mipsel:
	scripts/check-mipsel.sh

# No line of code, comments or Markdown is longer than 100 columns.
columns:
	scripts/check-columns.py

# Imports form no circle and point down only, and no more of them run upwards.
house:
	scripts/check-house.py

# Comments that readers find hard do not become more.
language:
	scripts/check-language.py

# The documents as a site in target/site; a link or an anchor that leads nowhere is an error.
# The tables of the wire format are made first, with the other files that come from the declarations
# of frames.
docs: $(VENV)/bin/mkdocs built
	target/debug/examples/frames
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# All tests in Rust, and the example that `docs` runs. Each step that runs some of it names the
# whole workspace: with one package alone crates would have other features, and be built twice.
built:
	$(CARGO) build --workspace --tests --test '*' --example frames

unit:
	$(TIMED) $(CARGO) test --workspace --tests -- $(REPORT_TIME)
	$(CARGO) test --workspace --doc

# Tests of real daemons, as root. They wait for radios and for each other, so many run at once.
live:
	$(TIMED) $(CARGO) test --workspace --test lab --test daemons -- $(REPORT_TIME) \
	  --test-threads $$((4 * $$(nproc)))

# A program with fewer engines: each is a Cargo feature of the command.
lean:
	$(CARGO) check -p ncmesh --no-default-features --features cascade,forward

# The command with schemes of its own, as a program outside of this workspace would have it.
OWN := $(CURDIR)/target/own-scheme
own-scheme:
	cd examples/own-scheme && CARGO_TARGET_DIR=$(OWN) $(CARGO) build --release
	$(OWN)/release/own-scheme simulate scenarios/line.toml --scheme even
	$(OWN)/release/own-scheme simulate scenarios/tunnel.toml --scheme twice
	$(OWN)/release/own-scheme simulate examples/own-scheme/stream.toml --scheme ripple

fuzz:
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh

# Both Python packages, editable, with what their tests need: the product, and the papers beside it.
python: $(VENV)/bin/maturin
	VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin develop --profile demo --quiet --extras test
	cd papers && VIRTUAL_ENV=$(abspath $(VENV)) \
	  $(abspath $(VENV))/bin/maturin develop --profile demo --quiet

$(VENV)/bin/maturin:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check "maturin>=1.9.4,<2"

$(VENV)/bin/mkdocs: $(VENV)/bin/maturin
	$(VENV)/bin/pip install --quiet --disable-pip-version-check "mkdocs-material>=9.6,<10" \
	  "mkdocs-jupyter>=0.25"

# Style, types, stubs against the compiled module.
python-lint: python
	$(VENV)/bin/ruff check --quiet python papers $(SCRIPTS)
	$(VENV)/bin/ruff format --check --quiet python papers $(SCRIPTS)
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m mypy.stubtest ncmesh._ncmesh
	cd papers && $(abspath $(VENV))/bin/mypy
	cd papers && $(abspath $(VENV))/bin/python -m mypy.stubtest ncmesh_papers._models

# The papers' tests include `reproduce cheap --check`.
python-test: python
	$(TIMED) $(VENV)/bin/pytest -n auto --durations=10
	cd papers && ../$(TIMED) $(abspath $(VENV))/bin/pytest -n auto --durations=10

# docs/results/validation.md, by running everything the channel is compared in.
validation: python
	$(VENV)/bin/python bench/validation

# docs/results/scale.md: what routing costs in meshes of up to 1,000 nodes, beside other protocols.
# As root, with babeld installed, that is measured too.
scale: python
	$(VENV)/bin/python bench/scale/run

# docs/results/scoreboard.md: every scheme on every mesh. Takes hours, and goes on where it stopped.
scoreboard: python
	$(VENV)/bin/python -m ncmesh bench mesh
	$(VENV)/bin/python -m ncmesh bench mesh --output docs/results \
	  --figures target/scoreboard/scoreboard.parquet

# A small scoreboard in target/scoreboard-quick. FLOOR=0.9 fails if a default scheme is worse than
# that share of another one on any instance; ARGUMENTS are further options.
scoreboard-quick: python
	$(VENV)/bin/python -m ncmesh bench mesh --quick --output target/scoreboard-quick \
	  $(if $(FLOOR),--floor $(FLOOR)) $(ARGUMENTS)

# The default schemes are at least so many times as fast as any other on every instance of a small
# scoreboard: 0.9 for files, 0.75 for tunnels, where goodput changes by a tenth with the seed.
# `core_nc` gained a ninth over `building` 1 when losses to hidden senders were left out of links;
# `braid`, which carries what it did, is at 0.78 of it there.
floor:
	$(MAKE) scoreboard-quick FLOOR=0.9 ARGUMENTS="--service file"
	$(VENV)/bin/python -m ncmesh bench mesh --quick --output target/scoreboard-quick \
	  --service tunnel --meshes $(TUNNEL_FLOOR) --schemes auto forward xor core_nc mc2 --floor 0.75

# The console's page, built into crates/web/dist.
console: console/node_modules
	cd console && npm run build

# Its types, its model, the page in a browser; and that what is committed is what its source makes.
console-test: console/node_modules target/debug/ncmesh
	cd console && npm run check && npm test && npm run build && npm run test:browser
	git diff --exit-code --stat crates/web/dist

# One of these tests watches a lab of daemons.
target/debug/ncmesh:
	$(MAKE) built

console/node_modules: console/package-lock.json
	cd console && npm ci --no-audit --no-fund
	@touch console/node_modules

# The C library's header, from its source.
header:
	NCMESH_WRITE_HEADER=1 $(CARGO) test -p ncmesh-ffi --test c header

# Licences, advisories, duplicates and sources of dependencies; needs `cargo install cargo-deny`.
# CHECKS names some: licenses advisories bans sources. Advisories come from GitHub.
deny:
	$(CARGO) deny check --hide-inclusion-graph $(CHECKS)

# Packages before they are built (unit, OpenWrt's configuration, metadata), and our scripts.
package-check: python
	$(VENV)/bin/pytest packaging/tests/test_sources.py packaging/tests/test_skipping.py \
	  scripts/tests

# Packages of a release in target/dist; the last lines say what was skipped and why. PARTS names
# some: binaries wheel deb openwrt oci; one that is named and skipped is a failure.
dist: $(VENV)/bin/maturin
	VENV=$(VENV) packaging/dist.py $(PARTS)

# Installs and runs each of them, as root the .deb too.
dist-test: python
	$(VENV)/bin/pytest -rs packaging/tests/test_dist.py

# Daemons on Linux's Wi-Fi stack, in a virtual machine. As root. TESTS names some of its tests.
wifi-test:
	bench/wifi/run $(TESTS)

# ncmesh beside other mesh software on Linux's Wi-Fi stack, over the simulator's channel, in a
# virtual machine. Takes two minutes for each run; ARGS are options of the script.
wifi-bench:
	bench/wifi/compare $(ARGS)

# Hours of crashes: 1,000 kills, nodes that come and go, power cuts, shortages. As root.
# NCMESH_SOAK_KILLS, _SECONDS, _CUTS and _SHORTAGES set how many, NCMESH_SOAK_SEED the random seed.
soak:
	$(CARGO) test -p ncmesh --test daemons soak -- --ignored --nocapture --test-threads=1

# Cost of the way through the tunnel, beside a kernel bridge and a plain relay. As root.
gateway:
	$(CARGO) build --release -p ncmesh -p ncmesh-node --bins --examples
	bench/gateway

# Comparisons with other programs need more: bench/peers (root, uftp), and other coders as in
# docs/results/coder.md.
bench:
	$(CARGO) bench --workspace
	bench/ns3/compare

# Figures that a change may have made worse and that need no other program, in five minutes.
bench-quick:
	bench/quick

clean:
	$(CARGO) clean
	rm -rf fuzz/target
