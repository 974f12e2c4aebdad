package validate

// KeyTag returns the key tag of a DNSKEY's RDATA (RFC 4034 appendix B).
func KeyTag(rdata []byte) uint16 { return keyTag(rdata) }
