#!/bin/sh
# After a removal. What bonsai learned goes with dpkg's purge alone, and the user stays: files may be its.
set -e
case "$1" in
purge) rm -rf /var/lib/bonsai /var/lib/private/bonsai ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
