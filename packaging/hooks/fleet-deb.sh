#!/bin/sh
# Hooks of the section `[fleet]` for Debian hosts whose images are packages:
#   version_file = "/var/lib/ncmesh-fleet/version"   # its first line is written by this program
#   stage = ["/usr/share/ncmesh/fleet-deb.sh", "stage"]
# and so on for apply, confirm and rollback. dpkg needs root, so the service of the node needs a
# drop-in with `User=root` and without `ProtectSystem`.
# shellcheck shell=sh
set -eu

state=${NCMESH_FLEET_STATE:-/var/lib/ncmesh-fleet}

# Installs a package outside the daemon's service, which the package may restart: systemd ends all
# processes of a service with it.
hand_over() {
	systemd-run --quiet --collect --unit=ncmesh-fleet "$0" install "$1" "$2"
}

case "${1:-}" in
stage)
	# Reads the package to its end, and asks dpkg whether it could be installed.
	dpkg-deb --fsys-tarfile "$NCMESH_IMAGE" >/dev/null
	dpkg --no-act --install "$NCMESH_IMAGE" >/dev/null
	;;
apply)
	# The image's file goes once the node keeps it; a later rollback needs its package.
	cp "$NCMESH_IMAGE" "$state/next.deb"
	printf '%s\n' "$NCMESH_VERSION" >"$state/next"
	# Another roll-out holds dpkg's lock, or the last one has not ended: try again later.
	hand_over "$state/next.deb" "$NCMESH_VERSION" || exit 75
	;;
install)
	# Run by systemd. The version changes only if dpkg was content.
	if dpkg --install "$2"; then
		printf '%s\n' "$3" >"$state/version.new"
		mv "$state/version.new" "$state/version"
	fi
	# The daemon reads the version when it starts.
	systemctl restart ncmesh.service
	;;
confirm)
	[ ! -e "$state/next.deb" ] || {
		mv "$state/next.deb" "$state/kept.deb"
		mv "$state/next" "$state/kept"
	}
	;;
rollback)
	# Without the package of the version before there is nothing to go back to.
	[ -e "$state/kept.deb" ] || exit 1
	hand_over "$state/kept.deb" "$(cat "$state/kept")"
	;;
*)
	exit 2
	;;
esac
