#!/bin/sh
# Hooks of the section `fleet` for routers with one slot for an image:
#   option version_file '/etc/openwrt_version'
#   list stage '/usr/share/ncmesh/fleet.sh'
#   list stage 'stage'
# and so on for apply, confirm and rollback. `state_dir` must outlive an upgrade: list it in
# /etc/sysupgrade.conf, or the router does not know after it that it is on trial.
# shellcheck shell=sh

case "$1" in
stage)
	# Fails if the image is not for this board.
	sysupgrade -T "$NCMESH_IMAGE"
	;;
apply)
	# It ends all processes, this one among them, so it runs on its own.
	start-stop-daemon -S -b -x /sbin/sysupgrade -- "$NCMESH_IMAGE"
	;;
confirm)
	;;
rollback)
	# The old image is gone. Boards with two slots can have a program that starts the other one.
	[ -x /etc/ncmesh/rollback ] && exec /etc/ncmesh/rollback
	exit 1
	;;
*)
	exit 2
	;;
esac
