#!/bin/bash
# Compares the daemon with unbound, kresd, named and pdns_recursor: NSD serves a root, TLDs and their zones,
# signed ones and broken ones among them, on port 53 at addresses of lo, in a network namespace of their
# own, and all are asked the same questions, without validation and with it. README.md here tells how to
# read it. Needs root, or user namespaces, and nsd, bind9-utils and iproute2. A peer that is not
# installed is left out, and named. Exit status 0: every difference is explained in peers.differs.
set -euo pipefail
. "$(dirname "$0")/namespace"
enter "nsd dnssec-keygen dnssec-signzone dnssec-dsfromkey ip unshare" "$@"
zones=$work/zones
mkdir -p "$zones" "$work/keys"
cp "$here"/zones/* "$zones"

# key ZONE: makes the one key of the zone.
key() { (cd "$work/keys" && dnssec-keygen -q -a ECDSAP256SHA256 -f KSK "$1" >/dev/null 2>>"$work/sign.log"); }

# ds ZONE: the DS record of the zone's key.
ds() { dnssec-dsfromkey -2 "$work/keys/K${1%.}".+*.key 2>>"$work/sign.log"; }

# sign ZONE FILE OPTIONS: signs it in place.
sign() {
	local zone=$1 file=$zones/$2.zone
	shift 2
	cat "$work/keys/K${zone%.}".+*.key >>"$file"
	dnssec-signzone -P -z -O full -d "$work/keys" -o "$zone" -f "$file" "$@" "$file" "$work/keys/K${zone%.}".+*.key >>"$work/sign.log" 2>&1 ||
		{ echo "signing of $zone failed"; tail -n 5 "$work/sign.log"; return 1; }
}

# safe NAME: a zone below safe., with the contents that all of them have, and its key.
safe() {
	sed "s/ZONE/$1/" "$here/zones/safe-child" >"$zones/$1.safe.zone"
	key "$1.safe"
}

# grant NAME [DS]: delegates it from safe., with its own DS record unless another is given.
grant() { printf '%s NS ns.%s\nns.%s A 198.18.9.2\n%s\n' "$1" "$1" "$1" "${2-$(ds "$1.safe")}" >>"$zones/safe.zone"; }

key .
key safe
for name in nsec nsec3 optout bogus expired future nosig unsigned island otherkey; do safe $name; done
sign nsec.safe nsec.safe
sign nsec3.safe nsec3.safe -3 c0ffee -H 0
sign optout.safe optout.safe -3 - -A
sign bogus.safe bogus.safe
sed -i 's/198\.18\.9\.80/198.18.9.90/' "$zones/bogus.safe.zone"
sign expired.safe expired.safe -s 20200101000000 -e 20200201000000
sign future.safe future.safe -s 20500101000000 -e 20500201000000
sign nosig.safe nosig.safe
sed -i -E '/^www\..*RRSIG\s+A /d' "$zones/nosig.safe.zone"
sign island.safe island.safe
sign otherkey.safe otherkey.safe
for name in nsec nsec3 optout bogus expired future nosig unsigned; do grant $name; done
grant island ""
grant otherkey "$(ds nsec.safe | sed s/nsec/otherkey/)"
sign safe safe -3 - -A
ds safe >>"$zones/root.zone"
sign . root

serve root "$zones" 198.18.0.1 198.18.0.2 2001:db8:0:1::1 -- .
serve example "$zones" 198.18.1.1 2001:db8:1:1::1 -- example
serve other "$zones" 198.18.2.1 -- other
serve kinds "$zones" 198.18.3.1 2001:db8:3:1::1 -- kinds.example child.kinds.example
serve alias "$zones" 198.18.4.1 -- alias.example
serve many "$zones" 198.18.5.1 198.18.5.2 198.18.5.3 198.18.5.4 -- many.example
serve six "$zones" 2001:db8:6:1::1 -- six.example
serve hosting "$zones" 198.18.7.1 -- hosting.other glueless.example deep.example half.example other.kinds.example insecure.safe
serve safe "$zones" 198.18.9.1 -- safe
serve children "$zones" 198.18.9.2 -- {nsec,nsec3,optout,bogus,expired,future,nosig,unsigned,island,otherkey}.safe
# What compare_odd_test.go serves.
for i in 1 2 3 4 5 6 7; do ip address add 198.18.6.$i/32 dev lo; done

cat >"$work/named.root" <<-END
	. 86400 NS a.root-servers.example.
	. 86400 NS b.root-servers.example.
	a.root-servers.example. 86400 A 198.18.0.1
	a.root-servers.example. 86400 AAAA 2001:db8:0:1::1
	b.root-servers.example. 86400 A 198.18.0.2
END
ds . >"$work/anchor"
. "$here/resolvers"
peers=
for peer in unbound kresd named pdns; do
	program=$peer
	[ $peer != pdns ] || program=pdns_recursor
	if command -v $program >/dev/null; then
		peers+="${peers:+,}$peer"
		start_$peer off
		start_$peer validate
	else
		echo "compare: $program is not here and is left out"
	fi
done
[ -n "$peers" ] || { echo "compare: left out, no peer is here"; exit 0; }
start_bonsai off
start_bonsai validate

if ! "$work/compare.test" -test.run '^TestSameAsPeers$' -test.v -compare.peers "$peers" -compare.ports "$ports" \
	-compare.queries "$here/queries" -compare.differs "$here/peers.differs"; then
	[ -z "${COMPARE_LOGS:-}" ] || cp "$work"/*.log "$COMPARE_LOGS"
	exit 1
fi
