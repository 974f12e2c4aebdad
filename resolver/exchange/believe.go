package exchange

import (
	"encoding/binary"

	"bonsai/wire"
)

// match is what the first look at a packet says, before any record is read.
type match uint8

const (
	matched    match = iota
	mismatched       // not the response to this query, or not surely
	truncated        // the response, with TC
)

// believe compares a response with the query it should answer (RFC 5452 §9.1: ID and question;
// address and port are the connected socket's). The question must come back in the letter case that
// was drawn, unless the packet came over TCP, where nobody off the path can write.
func believe(query, response []byte, tcp bool) match {
	if len(response) < wire.HeaderSize || [2]byte(query) != [2]byte(response) {
		return mismatched
	}
	flags := binary.BigEndian.Uint16(response[2:])
	if flags&wire.FlagQR == 0 || flags>>11&0xF != uint16(wire.OpcodeQuery) {
		return mismatched
	}
	if !sameQuestion(query, response, tcp) {
		return mismatched
	}
	if flags&wire.FlagTC != 0 {
		return truncated
	}
	return matched
}

// sameQuestion compares the question sections.
func sameQuestion(query, response []byte, tcp bool) bool {
	question := query[wire.HeaderSize:questionEnd(query)]
	switch binary.BigEndian.Uint16(response[4:]) {
	case 1:
	case 0:
		// Some servers return an error as a bare header. That is less than RFC 5452 §9.1 asks for,
		// and enough only where the connection vouches for the rest.
		return tcp && isError(response)
	default:
		return false
	}
	if len(response) < wire.HeaderSize+len(question) {
		return false
	}
	echo := response[wire.HeaderSize : wire.HeaderSize+len(question)]
	if string(echo) == string(question) {
		return true
	}
	name := len(question) - 4
	return tcp && string(echo[name:]) == string(question[name:]) && wire.EqualFold(echo[:name], question[:name])
}

// isError says whether a response's RCODE can go without a question.
func isError(response []byte) bool {
	switch wire.RCODE(response[3] & 0xF) {
	case wire.RCODEFormErr, wire.RCODEServFail, wire.RCODENotImp, wire.RCODERefused:
		return true
	}
	return false
}

// isBareError says whether a packet that was not believed is a header with our ID, no question and an
// error that a server from before EDNS gives.
func isBareError(query, response []byte) bool {
	if len(response) < wire.HeaderSize || [2]byte(query) != [2]byte(response) || response[2]&0x80 == 0 {
		return false
	}
	rcode := wire.RCODE(response[3] & 0xF)
	return response[4] == 0 && response[5] == 0 && (rcode == wire.RCODEFormErr || rcode == wire.RCODENotImp)
}

// questionEnd returns the offset behind the question of one of our own queries.
func questionEnd(query []byte) int {
	off := wire.HeaderSize
	for query[off] != 0 {
		off += 1 + int(query[off])
	}
	return off + 5
}
