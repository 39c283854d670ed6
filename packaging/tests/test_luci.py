"""The object of ncmesh on OpenWrt's ubus, and its page of LuCI, without a router."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from skipping import skip

APP = Path(__file__).parents[1] / "openwrt" / "luci-app-ncmesh"
OBJECT = APP / "root" / "usr" / "libexec" / "rpcd" / "ncmesh"
PAGE = APP / "htdocs" / "luci-static" / "resources" / "view" / "ncmesh" / "fleet.js"

# Functions of OpenWrt's jshn.sh that the object uses.
JSHN = """
json_load() {{ ARGUMENTS=$1; }}
json_get_var() {{ got=$({python} -c "$GET" "$ARGUMENTS" "$2"); eval "$1=\\$got"; }}
json_init() {{ :; }}
json_add_string() {{ TEXT=$2; }}
json_dump() {{ {python} -c "$PUT" "$TEXT"; }}
"""
PUT = 'import json, sys; print(json.dumps({"error": sys.argv[1]}))'
GET = """
import json, sys
value = json.loads(sys.argv[1]).get(sys.argv[2], "")
print(int(value) if isinstance(value, bool) else value)
"""


def ubus(tmp_path, *words, arguments=None, fails=False):
    """The answer of the object. The command that it runs answers with its own arguments."""
    jshn = tmp_path / "jshn.sh"
    jshn.write_text(JSHN.format(python=sys.executable))
    command = tmp_path / "ncmesh"
    show = 'import json, sys; print(json.dumps({"args": sys.argv[1:]}))'
    body = "echo first >&2; echo 'the reason' >&2; exit 1" if fails else f"{show!r}"
    run = body if fails else f'exec {sys.executable} -c {body} "$@"'
    command.write_text(f"#!/bin/sh\n{run}\n")
    command.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JSHN": str(jshn), "GET": GET, "PUT": PUT}
    done = subprocess.run(
        [shutil.which("dash") or "sh", str(OBJECT), *words],
        input=json.dumps(arguments or {}) + "\n",
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_object_runs_the_commands_of_fleet(tmp_path):
    for method in ["status", "confirm", "abort", "rollback"]:
        assert ubus(tmp_path, "call", method)["args"] == ["--json", "fleet", method]
    file = "/tmp/-town'; reboot.manifest"
    pushed = ubus(tmp_path, "call", "push", arguments={"manifest": file, "airtime": "10%"})
    assert pushed["args"] == ["--json", "fleet", "push", "--airtime=10%", "--", file]
    chosen = {"batch": "2", "canary": "barn", "without_missing": True}
    applied = ubus(tmp_path, "call", "apply", arguments=chosen)
    assert applied["args"][3:] == ["--batch=2", "--canary=barn", "--without-missing"]
    assert ubus(tmp_path, "call", "apply")["args"] == ["--json", "fleet", "apply"]
    assert ubus(tmp_path, "call", "status", fails=True) == {"error": "the reason"}


def test_access_menu_page_and_object_name_the_same_methods(tmp_path):
    methods = set(ubus(tmp_path, "list"))
    share = APP / "root" / "usr" / "share"
    access = json.loads((share / "rpcd" / "acl.d" / "luci-app-ncmesh.json").read_text())
    allowed = access["luci-app-ncmesh"]
    assert allowed["read"]["ubus"]["ncmesh"] == ["status"]
    assert {"status", *allowed["write"]["ubus"]["ncmesh"]} == methods
    assert set(re.findall(r"declare\('(\w+)'", PAGE.read_text())) == methods

    menu = json.loads((share / "luci" / "menu.d" / "luci-app-ncmesh.json").read_text())
    entry = menu["admin/services/ncmesh"]
    assert entry["action"]["path"] == f"{PAGE.parent.name}/{PAGE.stem}"
    assert entry["depends"]["acl"] == list(access)


def test_the_page_is_javascript(tmp_path):
    node = shutil.which("node")
    if node is None:
        skip("node is missing")
    # LuCI runs a page as the body of a function.
    script = tmp_path / "page.js"
    script.write_text(f"function page() {{\n{PAGE.read_text()}\n}}\n")
    subprocess.run([node, "--check", str(script)], check=True)
