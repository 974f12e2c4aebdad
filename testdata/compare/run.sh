#!/bin/bash
# Compares the daemon with unbound: NSD serves a root, two TLDs and their zones on port 53 at addresses
# of lo, in a network namespace of their own, and both resolvers are asked the same questions. The
# daemon has nothing but --root-hints, --listen and --dnssec off. Needs root, or user namespaces, and
# Debian's packages nsd, unbound, dnsutils and iproute2. Exit status 0: all answers are the same.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

if [ "${COMPARE_IN_NAMESPACE:-}" = "" ]; then
	for tool in nsd unbound ip unshare; do
		command -v "$tool" >/dev/null || { echo "compare: $tool is not here; skipped"; exit 0; }
	done
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$root" && go build -o "$work/bonsai" ./cmd/bonsai && go test -c -o "$work/compare.test" ./cmd/bonsai)
	as_root=()
	[ "$(id -u)" = 0 ] || as_root=(--map-root-user)
	COMPARE_IN_NAMESPACE=1 COMPARE_WORK="$work" unshare --net "${as_root[@]}" "$0" "$@"
	exit
fi

# From here on there is nothing but lo: no packet can leave the machine.
work=$COMPARE_WORK
ip link set lo up
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait' EXIT

# serve NAME ADDRESSES -- ZONES: one NSD at these addresses with these zones.
serve() {
	local name=$1 conf=$work/$1.conf
	shift
	{
		echo "server:"
		while [ "$1" != -- ]; do
			case $1 in
			*:*) ip -6 address add "$1/128" dev lo nodad ;;
			*) ip address add "$1/32" dev lo ;;
			esac
			echo " ip-address: $1"
			shift
		done
		shift
		echo " username: \"\""
		echo " chroot: \"\""
		echo " pidfile: \"\""
		echo " database: \"\""
		echo " zonesdir: \"$here/zones\""
		echo " xfrdir: \"$work\""
		echo " xfrdfile: \"\""
		echo " zonelistfile: \"$work/$name.list\""
		echo " server-count: 1"
		echo "remote-control:"
		echo " control-enable: no"
		for zone; do
			echo "zone:"
			echo " name: \"$zone\""
			echo " zonefile: \"$([ "$zone" = . ] && echo root || echo "$zone").zone\""
		done
	} >"$conf"
	nsd -d -c "$conf" >"$work/$name.log" 2>&1 &
	pids+=($!)
}

serve root 198.18.0.1 198.18.0.2 2001:db8:0:1::1 -- .
serve example 198.18.1.1 2001:db8:1:1::1 -- example
serve other 198.18.2.1 -- other
serve kinds 198.18.3.1 2001:db8:3:1::1 -- kinds.example child.kinds.example
serve alias 198.18.4.1 -- alias.example
serve many 198.18.5.1 198.18.5.2 198.18.5.3 198.18.5.4 -- many.example
serve six 2001:db8:6:1::1 -- six.example
serve hosting 198.18.7.1 -- hosting.other glueless.example deep.example other.kinds.example

cat >"$work/named.root" <<-END
	. 86400 NS a.root-servers.example.
	. 86400 NS b.root-servers.example.
	a.root-servers.example. 86400 A 198.18.0.1
	a.root-servers.example. 86400 AAAA 2001:db8:0:1::1
	b.root-servers.example. 86400 A 198.18.0.2
END
cat >"$work/unbound.conf" <<-END
	server:
	  interface: 127.0.0.1@5301
	  directory: "$work"
	  chroot: ""
	  username: ""
	  pidfile: ""
	  use-syslog: no
	  num-threads: 1
	  module-config: "iterator"
	  root-hints: "$work/named.root"
	  # The daemon shuffles less than unbound does; the comparison looks at sets anyway.
	  rrset-roundrobin: no
	remote-control:
	  control-enable: no
END
unbound -d -c "$work/unbound.conf" >"$work/unbound.log" 2>&1 &
pids+=($!)
"$work/bonsai" --root-hints "$work/named.root" --listen 127.0.0.1:5302 --dnssec off 2>"$work/bonsai.log" &
pids+=($!)

if ! "$work/compare.test" -test.run '^TestSameAsReference$' -test.v \
	-compare.reference 127.0.0.1:5301 -compare.bonsai 127.0.0.1:5302 -compare.queries "$here/queries"; then
	tail -n 5 "$work"/*.log
	exit 1
fi
