package exchange

import (
	"bytes"
	"net/netip"
	"time"

	"bonsai/wire"
)

// Lengths of RFC 7873 §4, and for how long we keep one client cookie: not for ever, so that nobody
// can follow us by it (RFC 7873 §7.1).
const (
	clientCookieLen = 8
	minServerCookie = 8
	maxServerCookie = 32
	cookieAge       = 24 * time.Hour
)

// cookie is the pair that a server and we know each other by.
type cookie struct {
	client [clientCookieLen]byte
	server [maxServerCookie]byte
	length uint8 // of server; 0: no pair
	born   time.Duration
	local  netip.Addr // the address it was given to; invalid where the system chooses
}

// loadCookie takes what is known of the server for the next query. Where the server has not given a
// cookie yet, the client part is drawn for this query alone and kept if the server takes it up: as
// good as random, and not the same for two servers (RFC 9018 §3).
func (x *exchange) loadCookie() {
	x.cookie.length = 0
	if !x.sendsCookie() {
		return
	}
	s := x.s
	s.shard.mu.Lock()
	if s.cookie != nil && x.c.now()-s.cookie.born > cookieAge {
		s.cookie = nil
	}
	if s.cookie != nil {
		x.cookie = *s.cookie
	}
	s.shard.mu.Unlock()
	if x.cookie.length == 0 {
		x.cookie = cookie{client: [clientCookieLen]byte(x.draws.take(clientCookieLen))}
	}
}

func (x *exchange) sendsCookie() bool { return x.c.config.Cookies && x.edns && !x.noCookie }

// appendCookie appends the COOKIE option of the next query.
func (x *exchange) appendCookie(options []byte) []byte {
	if !x.sendsCookie() {
		return options
	}
	var both [clientCookieLen + maxServerCookie]byte
	n := copy(both[:], x.cookie.client[:])
	n += copy(both[n:], x.cookie.server[:x.cookie.length])
	return wire.AppendOption(options, wire.OptionCookie, both[:n])
}

// checkCookie says whether the response's cookie, or its lack, lets us believe it, and keeps the
// server's part (RFC 7873 §5.3).
func (x *exchange) checkCookie(r *Reply) bool {
	if !x.sendsCookie() {
		return true
	}
	data, ok := r.Message.EDNS.Option(wire.OptionCookie)
	if !ok {
		// A server that has sent cookies sends them always: either this is a forgery, or the server
		// has stopped, which only TCP can tell.
		if x.cookie.length != 0 && x.tcp {
			x.forgetCookie()
		}
		return x.cookie.length == 0 || x.tcp
	}
	if len(data) < clientCookieLen || !bytes.Equal(data[:clientCookieLen], x.cookie.client[:]) {
		return false
	}
	part := data[clientCookieLen:]
	// Departs from RFC 7873 §5.3: the client part alone is no legal response, but some servers send
	// back every option that they don't know. It proves as much as a whole one, and teaches nothing.
	if len(part) == 0 {
		return true
	}
	if len(part) < minServerCookie || len(part) > maxServerCookie {
		return false
	}
	if !bytes.Equal(part, x.cookie.server[:x.cookie.length]) {
		x.keepCookie(part)
	}
	return true
}

func (x *exchange) keepCookie(part []byte) {
	now := x.c.now()
	if x.cookie.length == 0 {
		x.cookie.born = now
	}
	x.cookie.length = uint8(copy(x.cookie.server[:], part))
	x.cookie.local = x.from
	s := x.s
	s.shard.mu.Lock()
	if s.cookie == nil {
		s.cookie = new(cookie)
	}
	*s.cookie = x.cookie
	s.shard.mu.Unlock()
	x.c.counters.cookies.Add(1)
}

func (x *exchange) forgetCookie() {
	x.s.shard.mu.Lock()
	x.s.cookie = nil
	x.s.shard.mu.Unlock()
}
