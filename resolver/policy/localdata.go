package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/miekg/dns"

	"bonsai/cache/entry"
	"bonsai/wire"
)

// LocalData are RRsets that are answered without asking anybody, by owner in canonical case.
type LocalData map[wire.Name][]wire.RRset

// Errors of LocalData.Add.
var (
	errLocalClass = errors.New("class must be IN")
	errLocalAlias = errors.New("an alias (CNAME, DNAME) can't be local data: its target would not be resolved")
	errLocalType  = errors.New("signatures and denials can't be local data, nor what is only for queries")
	errLocalTwo   = errors.New("more than one record; each is an item of its own")
	errLocalRDATA = errors.New("the data behind the type is missing")
	errLocalTTL   = errors.New("the TTL is above 2147483647")
	errLocalEmpty = errors.New("no record; a record is written like \"host.example. 3600 A 192.0.2.1\"")
)

// Add parses one record in presentation format (RFC 1035 §5.1) and adds it. TTL and class may be
// left out: 3600 and IN.
func (l LocalData) Add(line string) error {
	const defaultTTL, maxTTL = 3600, 1<<31 - 1 // RFC 2181 §8
	zone := dns.NewZoneParser(strings.NewReader(line+"\n"), ".", "")
	zone.SetDefaultTTL(defaultTTL)
	rr, _ := zone.Next()
	_, second := zone.Next()
	switch err := zone.Err(); {
	case err != nil:
		return fmt.Errorf("not a record in zone file format: %w", err)
	case rr == nil:
		return errLocalEmpty
	case second:
		return errLocalTwo
	case rr.Header().Ttl > maxTTL:
		return errLocalTTL
	}
	h := rr.Header()
	switch h.Rrtype {
	case dns.TypeCNAME, dns.TypeDNAME:
		return errLocalAlias
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3:
		return errLocalType
	}
	if wire.Type(h.Rrtype).IsMeta() {
		return errLocalType
	}
	if isBare(rr) {
		return errLocalRDATA
	}
	if h.Class != dns.ClassINET {
		return errLocalClass
	}
	buf := make([]byte, dns.Len(rr)+1)
	end, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return err
	}
	owner, off, err := wire.ReadName(buf[:end], 0)
	if err != nil {
		return err
	}
	const fixed = 10 // TYPE, CLASS, TTL, RDLENGTH
	if off+fixed == end {
		return errLocalRDATA
	}
	l.add(owner.Canonical(), wire.Type(h.Rrtype), h.Ttl, buf[off+fixed:end])
	return nil
}

// isBare says whether a type stands there without data, which the parser allows, for dynamic updates
// have it (RFC 2136 §2.4.1).
func isBare(rr dns.RR) bool {
	newRR, ok := dns.TypeToRR[rr.Header().Rrtype]
	if !ok {
		return false
	}
	bare := newRR()
	*bare.Header() = *rr.Header()
	return reflect.DeepEqual(rr, bare)
}

// add puts a record into its RRset. RFC 2181 §5.2: the TTLs of an RRset are the same; the least
// counts.
func (l LocalData) add(owner wire.Name, t wire.Type, ttl uint32, rdata []byte) {
	sets := l[owner]
	for i := range sets {
		if sets[i].Type == t {
			sets[i].TTL = min(sets[i].TTL, ttl)
			sets[i].RDATA = append(sets[i].RDATA, rdata)
			return
		}
	}
	l[owner] = append(sets, wire.RRset{Owner: owner, Type: t, Class: wire.ClassIN, TTL: ttl, RDATA: [][]byte{rdata}})
}

// AddHosts parses the lines of a hosts file (hosts(5)): an address and the names it has. It returns
// an error for each line that says something else, with its number.
func (l LocalData) AddHosts(text string) (errs []error) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := l.addHost(words); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", i+1, err))
		}
	}
	return errs
}

// localData answers for listed names. Types that a listed name does not have are NODATA; names
// below it are resolved as others are.
type localData struct{ data LocalData }

func (l localData) Judge(r *Request) Outcome {
	if len(l.data) == 0 {
		return Outcome{}
	}
	sets, ok := l.data[wire.BorrowName(r.Query.Name())]
	if !ok {
		return Outcome{}
	}
	name, t := wire.Name(r.Query.Name()), r.Query.QType
	c := &entry.Content{Kind: entry.KindAnswer, QName: name, QType: t, Status: wire.Insecure}
	for _, s := range sets {
		if s.Type == t || t == wire.TypeANY {
			c.Answer = append(c.Answer, s)
		}
	}
	if len(c.Answer) == 0 {
		c.Authority = []wire.RRset{localSOA(name)}
	}
	e, err := entry.Pack(nil, c, r.Now)
	if err != nil {
		return fail("local-data", wire.RCODEServFail, wire.EDEOther, "local data too large")
	}
	return Outcome{Action: Answer, Entry: e, EDE: wire.NoEDE, Rule: "local-data"}
}
