package policy

import (
	"fmt"
	"net/netip"
	"strings"
)

// Description says what a rule is, for people.
type Description struct {
	Rules []string // the names that its decisions are counted by, of Rules
	Does  string   // what it does by its settings
}

func (a *access) Describe() Description {
	does := "allow " + prefixList(a.allow)
	if len(a.refuse) > 0 {
		does += "; refuse " + prefixList(a.refuse)
	}
	return Description{[]string{"access"}, does + "; the longest prefix decides"}
}

func (l *rateLimit) Describe() Description {
	does := fmt.Sprintf("%d queries a second of a client, %d at once; every %d. over it gets TC", l.limit.QPS, l.limit.Burst, l.limit.Slip)
	if l.limit.Slip == 0 {
		does = fmt.Sprintf("%d queries a second of a client, %d at once; none over it gets an answer", l.limit.QPS, l.limit.Burst)
	}
	if l.limit.Only {
		does += "; only counted"
	}
	return Description{[]string{"rate-limit"}, does}
}

func (c *chaos) Describe() Description {
	return Description{[]string{"chaos"}, fmt.Sprintf("class CH: %d names that tell who answers", len(c.answers))}
}

func (kinds) Describe() Description {
	return Description{[]string{"class", "type"}, "classes other than IN and types that are not resolved"}
}

func (l localData) Describe() Description {
	return Description{[]string{"local-data"}, fmt.Sprintf("%d names of local-data and hosts-files", len(l.data))}
}

func (b *block) Describe() Description {
	return Description{[]string{"block"}, b.does("names")}
}

func (b *block) does(what string) string {
	labels, blocked, allowed := make([]string, len(b.lists)), 0, 0
	for i := range b.lists {
		labels[i] = b.lists[i].Label
		blocked += b.lists[i].Names.Len()
	}
	for _, set := range b.allow {
		allowed += set.Len()
	}
	return fmt.Sprintf("%s at or below %d blocked ones (%s), but for %d allowed", what, blocked, strings.Join(labels, ", "), allowed)
}

func (a *as112) Describe() Description {
	return Description{[]string{"as112"}, fmt.Sprintf("%d zones of an AS112 node", len(a.zones))}
}

func (s *specialUse) Describe() Description {
	return Description{[]string{"special-use"}, fmt.Sprintf("%d special-use zones", len(s.zones))}
}

func (s *snoop) Describe() Description {
	does := "RD=0: nobody"
	if len(s.allow) > 0 {
		does = "RD=0: from the cache for " + prefixList(s.allow)
	}
	return Description{[]string{"snoop"}, does}
}

func (b *aliasBlock) Describe() Description {
	return Description{[]string{"block"}, "answers with an alias: " + b.does("targets")}
}

func (r *rebinding) Describe() Description {
	return Description{[]string{"rebinding"}, "answers with addresses in private-address, but for those of private-domain"}
}

// prefixList lists some of them; there may be very many.
func prefixList(list []netip.Prefix) string {
	const most = 8
	var words []string
	for i, p := range list {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		words = append(words, p.String())
	}
	if words == nil {
		return "nobody"
	}
	return strings.Join(words, " ")
}
