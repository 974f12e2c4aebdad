#!/bin/sh
# Before a removal, but not an upgrade: dpkg says "remove" then, rpm "0".
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl --now disable bonsai.service bonsai.socket
	fi
	;;
esac
