package validate

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"bonsai/wire"
)

// KeyTags returns the key tags of a zone's trust anchors in ascending order: what RFC 8145 §4.1
// signals and RFC 8509 asks for.
func (v *Validator) KeyTags(zone wire.Name) (tags []uint16) {
	for _, a := range v.trust.Load().anchors[zone.Canonical()] {
		switch {
		case a.Type == wire.TypeDS && len(a.RDATA) > dsFixed:
			tags = append(tags, binary.BigEndian.Uint16(a.RDATA))
		case a.Type == wire.TypeDNSKEY:
			tags = append(tags, keyTag(a.RDATA))
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// SignalName returns the name whose NULL query tells the servers of a zone which keys are trusted
// (RFC 8145 §5.1), "" where there is none to tell of.
func (v *Validator) SignalName(zone wire.Name) wire.Name {
	label := "_ta"
	for _, tag := range v.KeyTags(zone) {
		hex := strconv.FormatUint(uint64(tag), 16)
		label += "-" + strings.Repeat("0", 4-len(hex)) + hex
	}
	if name, ok := zone.Prepend(label); ok && label != "_ta" {
		return name
	}
	return ""
}

// The first labels that RFC 8509 §2 gives a meaning, before five digits of a key tag.
const (
	sentinelIs  = "root-key-sentinel-is-ta-"
	sentinelNot = "root-key-sentinel-not-ta-"
)

// SentinelFails says whether a secure answer to qname and qtype, asked without CD, is to be replaced
// by SERVFAIL, which tells the client whether a key of the root is trusted here (RFC 8509 §3.2).
func (v *Validator) SentinelFails(qname wire.Name, qtype wire.Type) bool {
	if qtype != wire.TypeA && qtype != wire.TypeAAAA {
		return false
	}
	label := qname.Label()
	if len(label) < len(sentinelIs)+5 {
		return false
	}
	label = strings.ToLower(label)
	digits, is := strings.CutPrefix(label, sentinelIs)
	if !is {
		var not bool
		if digits, not = strings.CutPrefix(label, sentinelNot); !not {
			return false
		}
	}
	tag, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) != 5 || digits[0] == '+' {
		return false
	}
	return slices.Contains(v.KeyTags(wire.Root), uint16(tag)) != is
}
