#!/bin/sh
# After an installation or an upgrade, of .deb and .rpm alike.
set -e
# The user of bonsai.service. Where nothing makes it, the service makes one for each run (DynamicUser).
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers bonsai.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# One that runs goes on as the new one. It is not started unasked: port 53 may be another's.
	systemctl try-restart bonsai.service
fi
