package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bonsai/resolver"
	"bonsai/resolver/iterate"
	"bonsai/wire"
)

// explained is an explanation for machines.
type explained struct {
	Name       string       `json:"name"`
	Type       string       `json:"type"`
	View       string       `json:"view,omitempty"`
	Source     string       `json:"source"`
	Rule       string       `json:"rule,omitempty"`
	Kind       string       `json:"kind,omitempty"`
	RCODE      string       `json:"rcode"`
	Status     string       `json:"status,omitempty"`
	Age        uint32       `json:"age_seconds"`
	Left       uint32       `json:"ttl_left_seconds"`
	Lifetime   uint32       `json:"lifetime_seconds_about"`
	EDE        []edeJSON    `json:"ede,omitempty"`
	Zone       string       `json:"zone,omitempty"`
	Servers    int          `json:"servers"`
	Configured bool         `json:"zone_is_configured"`
	Forward    bool         `json:"zone_is_forwarded"`
	Answer     []string     `json:"answer,omitempty"`
	Authority  []string     `json:"authority,omitempty"`
	PathKnown  bool         `json:"path_known"`
	PathAge    float64      `json:"path_age_seconds"`
	Took       float64      `json:"took_seconds"`
	Path       []step       `json:"path,omitempty"`
	Lost       int          `json:"path_events_lost,omitempty"`
	Chain      []trustLink  `json:"chain,omitempty"`
	Signatures []signatures `json:"signatures,omitempty"`
	Cause      string       `json:"cause,omitempty"`
}

type edeJSON struct {
	Code int    `json:"code"`
	Text string `json:"text,omitempty"`
}

type step struct {
	At        float64 `json:"at_ms"`
	Depth     int     `json:"depth"`
	Zone      string  `json:"zone,omitempty"`
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	Server    string  `json:"server,omitempty"`
	Transport string  `json:"transport,omitempty"`
	RTT       float64 `json:"rtt_ms,omitempty"`
	RCODE     string  `json:"rcode,omitempty"`
	What      string  `json:"what"`
}

type trustLink struct {
	Zone    string   `json:"zone"`
	Anchor  bool     `json:"trust_anchor"`
	DS      string   `json:"ds"`
	DSTags  []uint16 `json:"ds_key_tags,omitempty"`
	Keys    string   `json:"dnskey"`
	KeyTags []uint16 `json:"dnskey_key_tags,omitempty"`
}

type signatures struct {
	Covers    string `json:"covers"`
	Signer    string `json:"signer"`
	KeyTag    uint16 `json:"key_tag"`
	Algorithm uint8  `json:"algorithm"`
	Until     string `json:"until"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func runExplain(ctx context.Context, d *daemon, args []string) (reply, error) {
	name, err := nameArg(args[0])
	if err != nil {
		return reply{}, err
	}
	t, err := typeArg(args[1])
	if err != nil {
		return reply{}, err
	}
	client, err := clientArg(args, 2)
	if err != nil {
		return reply{}, err
	}
	x := d.resolver.Current().Explain(ctx, name, t, client)
	out := toJSON(x)
	return reply{Text: out.text(), Data: out}, nil
}

func toJSON(x *resolver.Explanation) *explained {
	out := &explained{
		Name: x.Name.String(), Type: x.Type.String(), View: x.View, Source: x.Source, Rule: x.Rule, Kind: x.Kind, RCODE: x.RCODE.String(),
		Age: x.Age, Left: x.Left, Lifetime: x.Lifetime, Servers: x.Servers, Configured: x.Configured, Forward: x.Forward,
		PathKnown: x.PathKnown, PathAge: x.PathAge.Seconds(), Took: x.Took.Seconds(), Lost: x.Lost, Cause: x.Cause,
	}
	if x.Zone != "" {
		out.Zone = x.Zone.String()
	}
	for _, e := range x.EDE {
		out.EDE = append(out.EDE, edeJSON{int(e.Code), e.Text})
	}
	if c := x.Content; c != nil && x.Kind != "failure" {
		out.Status = x.Status.String()
		out.Answer, out.Authority = recordsOf(c.Answer), recordsOf(c.Authority)
		out.Signatures = append(signaturesOf(c.Answer), signaturesOf(c.Authority)...)
	}
	for i := range x.Path {
		out.Path = append(out.Path, stepOf(&x.Path[i]))
	}
	for i := range x.Chain {
		out.Chain = append(out.Chain, linkOf(&x.Chain[i]))
	}
	return out
}

func stepOf(e *iterate.Event) step {
	s := step{At: milliseconds(e.At), Depth: e.Depth, Name: e.Name.String(), Type: e.Type.String(), What: e.What}
	if e.Zone != "" {
		s.Zone = e.Zone.String()
	}
	if e.Server.IsValid() {
		s.Server, s.RTT, s.RCODE, s.Transport = e.Server.String(), milliseconds(e.RTT), e.RCODE.String(), "udp"
		switch {
		case e.TLS:
			s.Transport = "tls"
		case e.TCP:
			s.Transport = "tcp"
		}
	}
	return s
}

func linkOf(l *resolver.ChainLink) trustLink {
	t := trustLink{Zone: l.Zone.String(), Anchor: l.Anchor, DS: "not cached", DSTags: l.DSTags, Keys: "not cached", KeyTags: l.KeyTags}
	switch {
	case l.Insecure:
		t.DS = "not looked at: no trust anchor, or a negative one, covers the zone"
	case l.Anchor:
		t.DS = "trust anchor"
	case l.DSKnown && len(l.DSTags) == 0:
		t.DS = "none, " + l.DS.String()
	case l.DSKnown:
		t.DS = l.DS.String()
	}
	if len(l.KeyTags) > 0 {
		t.Keys = l.Keys.String()
	}
	return t
}

func signaturesOf(sets []wire.RRset) (out []signatures) {
	for i := range sets {
		for _, rdata := range sets[i].Sigs {
			if s, ok := wire.ParseRRSIG(rdata); ok {
				out = append(out, signatures{
					Covers: sets[i].Owner.String() + " " + s.Covered.String(), Signer: s.Signer.String(), KeyTag: s.KeyTag,
					Algorithm: s.Algorithm, Until: time.Unix(int64(s.Expiration), 0).UTC().Format(time.RFC3339),
				})
			}
		}
	}
	return out
}

// text is an explanation for people.
func (x *explained) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", x.Name, x.Type, x.RCODE)
	if x.Status != "" {
		fmt.Fprintf(&b, ", %s", x.Status)
	}
	if x.View != "" {
		fmt.Fprintf(&b, "\nview     %s", x.View)
	}
	fmt.Fprintf(&b, "\nfrom     %s", x.Source)
	if x.Rule != "" {
		fmt.Fprintf(&b, " %s", x.Rule)
	}
	if x.Kind != "" {
		fmt.Fprintf(&b, " (%s)", x.Kind)
	}
	if strings.Contains(x.Source, "cache") {
		fmt.Fprintf(&b, ", about %d s old, %d s left", x.Age, x.Left)
	}
	b.WriteByte('\n')
	if x.Cause != "" {
		fmt.Fprintf(&b, "cause    %s\n", x.Cause)
	}
	for _, e := range x.EDE {
		fmt.Fprintf(&b, "EDE      %d %s\n", e.Code, e.Text)
	}
	if x.Zone != "" {
		fmt.Fprintf(&b, "zone     %s, %d servers%s\n", x.Zone, x.Servers, x.zoneKind())
	}
	for _, line := range append(x.Answer, x.Authority...) {
		fmt.Fprintf(&b, "record   %s\n", line)
	}
	for _, s := range x.Signatures {
		fmt.Fprintf(&b, "signed   %s by %s key %d algorithm %d until %s\n", s.Covers, s.Signer, s.KeyTag, s.Algorithm, s.Until)
	}
	for _, l := range x.Chain {
		fmt.Fprintf(&b, "trust    %s DS %s%s, DNSKEY %s%s\n", l.Zone, l.DS, tagText(l.DSTags), l.Keys, tagText(l.KeyTags))
	}
	x.pathText(&b)
	return b.String()
}

func (x *explained) zoneKind() string {
	switch {
	case x.Forward:
		return ", forwarded by the configuration"
	case x.Configured:
		return ", by the configuration"
	}
	return ""
}

func tagText(tags []uint16) string {
	if len(tags) == 0 {
		return ""
	}
	return fmt.Sprint(" ", tags)
}

func (x *explained) pathText(b *strings.Builder) {
	switch {
	case x.Source == "rule":
		return
	case !x.PathKnown:
		b.WriteString("path     no longer remembered: the resolution was too long ago, or put together from other answers\n")
		return
	case x.PathAge > 0:
		fmt.Fprintf(b, "path     of the resolution %.1f s ago, which took %.1f ms\n", x.PathAge, 1000*x.Took)
	default:
		fmt.Fprintf(b, "path     of this resolution, which took %.1f ms\n", 1000*x.Took)
	}
	for _, s := range x.Path {
		fmt.Fprintf(b, "  %8.1f ms  %s%s %s", s.At, strings.Repeat("  ", s.Depth), s.Name, s.Type)
		if s.Server != "" {
			fmt.Fprintf(b, " at %s %s for %s: %s, %.1f ms", s.Server, s.Transport, s.Zone, s.RCODE, s.RTT)
		}
		if s.What != "response" {
			fmt.Fprintf(b, " - %s", s.What)
		}
		b.WriteByte('\n')
	}
	if x.Lost > 0 {
		fmt.Fprintf(b, "  and %d more\n", x.Lost)
	}
}

// runLookup tells of zones and servers above a name.
func runLookup(_ context.Context, d *daemon, args []string) (reply, error) {
	name, err := nameArg(args[0])
	if err != nil {
		return reply{}, err
	}
	var b strings.Builder
	asks, err := clientArg(args, 1)
	if err != nil {
		return reply{}, err
	}
	client := d.resolver.Current().Exchange()
	zones := d.resolver.Current().For(asks).ServersOf(name)
	var data []map[string]any
	for _, z := range zones {
		fmt.Fprintf(&b, "%s, for %d s\n", z.Zone, z.Left)
		servers := []map[string]any{}
		for _, s := range z.Servers {
			for _, a := range s.Addrs {
				row := map[string]any{"name": s.Name.String(), "address": a.String()}
				fmt.Fprintf(&b, "  %-24s %-28s", s.Name, a)
				if i, ok := client.Server(a); ok {
					fmt.Fprintf(&b, " RTT %.1f ms, waits %.0f ms, %d timeouts in a row", milliseconds(i.SRTT), milliseconds(i.RTO), i.Fails)
					row["rtt_ms"], row["rto_ms"], row["timeouts"] = milliseconds(i.SRTT), milliseconds(i.RTO), i.Fails
				} else {
					b.WriteString(" never asked")
				}
				b.WriteByte('\n')
				servers = append(servers, row)
			}
			if len(s.Addrs) == 0 {
				fmt.Fprintf(&b, "  %-24s no address known\n", s.Name)
				servers = append(servers, map[string]any{"name": s.Name.String()})
			}
		}
		data = append(data, map[string]any{"zone": z.Zone.String(), "seconds_left": z.Left, "configured": z.Configured,
			"forwarded": z.Forward, "servers": servers})
	}
	return reply{Text: b.String(), Data: data}, nil
}
