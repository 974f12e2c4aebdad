#!/bin/bash
# Compares validation with unbound's: zones of every algorithm, with NSEC, NSEC3 and opt-out, signed by
# ldns-signzone and BIND's dnssec-signzone, served by NSD on port 53 at addresses of lo, in a network
# namespace of their own. Both resolvers, and delv for some, are asked for names that are there and
# that are not, in and below each zone, in secure, insecure and broken delegations; RCODE, AD and the
# answer must be the same. Needs root, or user namespaces, and Debian's packages bind9-utils,
# bind9-dnsutils, ldnsutils, nsd, unbound and iproute2. Exit status 0: all answers are the same.
#
#   run.sh [--small]      --small: fewer zones
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH=$PATH:/usr/sbin

if [ "${SIGNED_IN_NAMESPACE:-}" = "" ]; then
	for tool in nsd unbound ip unshare dnssec-signzone dnssec-keygen dnssec-dsfromkey ldns-signzone ldns-keygen delv; do
		command -v "$tool" >/dev/null || { echo "signed: $tool is not here; skipped"; exit 0; }
	done
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$root" && go build -o "$work/bonsai" ./cmd/bonsai && go test -c -o "$work/signed.test" ./cmd/bonsai)
	as_root=()
	[ "$(id -u)" = 0 ] || as_root=(--map-root-user)
	SIGNED_IN_NAMESPACE=1 SIGNED_WORK="$work" unshare --net "${as_root[@]}" "$0" "$@"
	exit
fi

# From here on there is nothing but lo: no packet can leave the machine.
work=$SIGNED_WORK
mkdir -p "$work/keys" "$work/zones"
cd "$work/keys"
ip link set lo up
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait' EXIT

# content ZONE writes what every zone holds: hosts, wildcards, aliases, empty non-terminals, and
# delegations of each kind to servers at 198.18.2.1, or beside itself at 198.18.1.1.
content() {
	cat <<-END
		\$ORIGIN $1
		\$TTL 3600
		@ SOA ns hostmaster 1 3600 900 86400 600
		@ NS ns
		@ TXT "apex"
		ns A 198.18.1.1
		www A 192.0.2.1
		www TXT "one" "two"
		Mixed.Case MX 10 Mail.WWW
		alias CNAME www
		chain CNAME alias
		dangling CNAME nothing
		away CNAME www.insecure
		inside CNAME www.secure
		ent.deep.er A 192.0.2.2
		*.wild A 192.0.2.3
		*.wild TXT "wild"
		there.wild A 192.0.2.4
		x.under.wild A 192.0.2.5
		*.cwild CNAME www
		*.dangling CNAME nothing
		dname DNAME dtarget
		www.dtarget A 192.0.2.6
		*.dtarget TXT "wild below a DNAME"
		last.zz A 192.0.2.7
		secure NS ns.secure
		ns.secure A 198.18.2.1
		hidden NS ns
		insecure NS ns.insecure
		ns.insecure A 198.18.2.1
		hiddenplain NS ns
		broken NS ns.broken
		ns.broken A 198.18.2.1
		expired NS ns.expired
		ns.expired A 198.18.2.1
		unsigned NS ns.unsigned
		ns.unsigned A 198.18.2.1
		unknown NS ns.unknown
		ns.unknown A 198.18.2.1
	END
}

# child ZONE ADDRESS writes what a delegated zone holds.
child() {
	cat <<-END
		\$ORIGIN $1
		\$TTL 3600
		@ SOA ns hostmaster 1 3600 900 86400 600
		@ NS ns
		ns A $2
		www A 192.0.2.20
		*.wild A 192.0.2.21
		alias CNAME www
		up CNAME www.${1#*.}
		a.b A 192.0.2.22
	END
}

# sign SIGNER ALGORITHM DENIAL ZONE EXPIRY signs zones/ZONE.zone and leaves ZONE.ds.
sign() {
	local signer=$1 algorithm=$2 denial=$3 zone=$4 end=$5 file key bits=() how=()
	file=$work/zones/${zone%.}.zone
	[ "$zone" = . ] && file=$work/zones/root.zone
	case $algorithm in RSA*) bits=(-b 1024) ;; esac
	if [ "$signer" = ldns ]; then
		case $denial in
		nsec3) how=(-n -t 0) ;;
		salted) how=(-n -s a1b2c3 -t 7) ;;
		optout) how=(-n -p -t 0) ;;
		esac
		key=$(ldns-keygen -a "$algorithm" "${bits[@]}" -k -r /dev/urandom "$zone" 2>/dev/null)
		ldns-signzone "${how[@]}" -i 20240101000000 -e "$end" -f "$file.signed" "$file" "$key"
	else
		case $denial in
		nsec3) how=(-3 - -H 0) ;;
		salted) how=(-3 a1b2c3 -H 7) ;;
		optout) how=(-3 - -H 0 -A) ;;
		esac
		key=$(dnssec-keygen -q -a "$algorithm" "${bits[@]}" -f KSK "$zone")
		dnssec-keygen -q -a "$algorithm" "${bits[@]}" "$zone" >/dev/null
		dnssec-signzone -q -S -K . -P -s 20240101000000 -e "$end" "${how[@]}" -o "$zone" -f "$file.signed" "$file" >/dev/null
	fi
	mv "$file.signed" "$file"
	rm -f "dsset-${zone%.}." "dsset-"
	dnssec-dsfromkey -2 "$key.key" >"$zone.ds"
}

later=20370101000000
ago=20250101000000
zones=() hosted=() questions=$work/questions

# build ZONE SIGNER ALGORITHM DENIAL makes a zone with all its children.
build() {
	local zone=$1 signer=$2 algorithm=$3 denial=$4 sub end
	content "$zone" >"$work/zones/${zone%.}.zone"
	for sub in secure hidden broken expired; do
		end=$later
		[ $sub = expired ] && end=$ago
		child "$sub.$zone" "$([ $sub = hidden ] && echo 198.18.1.1 || echo 198.18.2.1)" >"$work/zones/$sub.${zone%.}.zone"
		sign "$signer" "$algorithm" "$denial" "$sub.$zone" $end
	done
	for sub in insecure hiddenplain unsigned unknown; do
		child "$sub.$zone" "$([ $sub = hiddenplain ] && echo 198.18.1.1 || echo 198.18.2.1)" >"$work/zones/$sub.${zone%.}.zone"
	done
	# The DS of one is wrong; one is not signed in spite of it; one has an algorithm that is none.
	sed 's/[0-9A-F]\{8\}$/00000000/' "broken.$zone.ds" >>"$work/zones/${zone%.}.zone"
	sed "s/^broken/unsigned/" "broken.$zone.ds" >>"$work/zones/${zone%.}.zone"
	sed "s/^broken\(.* DS [0-9]*\) [0-9]*/unknown\1 200/" "broken.$zone.ds" >>"$work/zones/${zone%.}.zone"
	cat "secure.$zone.ds" "hidden.$zone.ds" "expired.$zone.ds" >>"$work/zones/${zone%.}.zone"
	sign "$signer" "$algorithm" "$denial" "$zone" $later
	cat "$zone.ds" >>"$work/zones/root.zone"
	echo "$zone NS ns.$zone" >>"$work/zones/root.zone"
	echo "ns.$zone A 198.18.1.1" >>"$work/zones/root.zone"
	zones+=("${zone%.}" "hidden.${zone%.}" "hiddenplain.${zone%.}")
	for sub in secure broken expired insecure unsigned unknown; do hosted+=("$sub.${zone%.}"); done
	ask "$zone"
}

# ask ZONE lists the questions to a zone and its children.
ask() {
	local name sub
	for name in "" www. Mixed.Case. alias. chain. dangling. away. inside. deep.er. ent.deep.er. er. x.wild. a.b.wild. \
		there.wild. under.wild. y.under.wild. x.there.wild. wild. '\*.wild.' x.cwild. x.dangling. dname. www.dname. x.dname. \
		dtarget. nothing. a.nothing. '\000.' zzz. '~.' last.zz. zz. ns.secure. x.www.; do
		echo "$name$1 A"
		case $name in "" | www. | x.wild. | nothing. | er. | x.cwild. | dname. | dangling.) echo "$name$1 TXT" ; echo "$name$1 DS" ;; esac
	done
	for name in SOA NS DNSKEY MX CAA NSEC3PARAM CNAME; do echo "$1 $name"; done
	for sub in secure hidden broken expired insecure hiddenplain unsigned unknown; do
		for name in www. nothing. x.wild. wild. alias. b. up. x.www.; do echo "$name$sub.$1 A"; done
		echo "$sub.$1 DS"
		echo "$sub.$1 A"
		echo "www.$sub.$1 AAAA"
		echo "www.$sub.$1 DS"
		echo "$sub.$1 DNSKEY"
	done
}

kinds=(ldns:ECDSAP256SHA256:nsec bind:ECDSAP256SHA256:nsec3 ldns:ED448:optout bind:RSASHA256:salted)
[ "${1:-}" = --small ] || kinds=(
	{ldns,bind}:{RSASHA256,RSASHA512,ECDSAP256SHA256,ECDSAP384SHA384,ED25519,ED448}:nsec
	{ldns,bind}:ECDSAP256SHA256:{nsec3,salted,optout}
	ldns:ED25519:salted bind:RSASHA256:optout ldns:RSASHA512:nsec3
)
cat >"$work/zones/root.zone" <<-END
	\$ORIGIN .
	\$TTL 86400
	. SOA a.root-server. hostmaster.root-server. 1 1800 900 604800 86400
	. NS a.root-server.
	a.root-server. A 198.18.0.1
END
{
	number=0
	for kind in "${kinds[@]}"; do
		IFS=: read -r signer algorithm denial <<<"$kind"
		build "k$((++number))-$signer-$denial." "$signer" "$algorithm" "$denial" 1>&3
	done
	echo "nothing. A"
	echo ". DNSKEY"
	echo ". SOA"
	echo "a.root-server. A"
	echo "k1-ldns-nsec. NS"
} 3>>"$questions.zones" >"$questions.root"
cat "$questions.zones" "$questions.root" >"$questions"
sign bind ECDSAP256SHA256 nsec . $later

# serve NAME ADDRESS ZONES: one NSD at this address with these zones.
serve() {
	local name=$1 address=$2 conf=$work/$1.conf zone
	shift 2
	ip address add "$address/32" dev lo
	cat >"$conf" <<-END
		server:
		  ip-address: $address
		  username: ""
		  chroot: ""
		  pidfile: ""
		  database: ""
		  zonesdir: "$work/zones"
		  xfrdir: "$work"
		  xfrdfile: ""
		  zonelistfile: "$work/$name.list"
		  server-count: 1
		remote-control:
		  control-enable: no
	END
	for zone; do
		printf 'zone:\n name: "%s"\n zonefile: "%s.zone"\n' "$zone" "$([ "$zone" = . ] && echo root || echo "$zone")" >>"$conf"
	done
	nsd -d -c "$conf" >"$work/$name.log" 2>&1 &
	pids+=($!)
}

serve root 198.18.0.1 .
serve parents 198.18.1.1 "${zones[@]}"
serve children 198.18.2.1 "${hosted[@]}"

echo ". 86400 NS a.root-server.
a.root-server. 86400 A 198.18.0.1" >"$work/named.root"
grep -h 'IN DNSKEY 257' K.+*.key >"$work/anchor"
sed 's/^/trust-anchor: "/; s/$/"/' "$work/anchor" >"$work/anchor.conf"
{ echo 'trust-anchors {'; sed 's/^\. *[0-9]* *IN DNSKEY \([0-9]* [0-9]* [0-9]*\) \(.*\)/. static-key \1 "\2";/' "$work/anchor"; echo '};'; } >"$work/delv.keys"
cat >"$work/unbound.conf" <<-END
	server:
	  interface: 127.0.0.1@5301
	  directory: "$work"
	  chroot: ""
	  username: ""
	  pidfile: ""
	  use-syslog: no
	  num-threads: 1
	  module-config: "validator iterator"
	  root-hints: "$work/named.root"
	  rrset-roundrobin: no
	  aggressive-nsec: no
	  qname-minimisation: no
	  val-sig-skew-min: 0
	  val-sig-skew-max: 0
	  infra-host-ttl: 1
	  include: "$work/anchor.conf"
	remote-control:
	  control-enable: no
END
unbound -d -c "$work/unbound.conf" >"$work/unbound.log" 2>&1 &
pids+=($!)
"$work/bonsai" --root-hints "$work/named.root" --listen 127.0.0.1:5302 --trust-anchor "$work/anchor" 2>"$work/bonsai.log" &
pids+=($!)

if ! "$work/signed.test" -test.run '^TestSignedSameAsReference$' -test.v -signed.reference 127.0.0.1:5301 \
	-signed.bonsai 127.0.0.1:5302 -signed.queries "$questions" -signed.delv "$work/delv.keys"; then
	tail -n 5 "$work"/*.log
	exit 1
fi
