package policy

// Order is the list of rules, first decision wins.
type Order []Rule

// Rules are the names that rules have in an Outcome. Counters go by them.
var Rules = [...]string{
	"access", "rate-limit", "chaos", "class", "type", "local-data", "block", "as112", "special-use", "snoop", "rebinding",
}

// RuleIndex returns where a rule's name stands in Rules, and for another name their number.
func RuleIndex(name string) int {
	for i := range Rules {
		if Rules[i] == name {
			return i
		}
	}
	return len(Rules)
}

// NewOrder builds the rules of a configuration. The order is this list and nothing else: who may
// ask comes before what is asked, and what no resolver resolves before what this one knows.
func NewOrder(c *Config) Order {
	order := Order{newAccess(c.Allow, c.Refuse)} // REFUSED to strangers
	if c.RateLimit.QPS > 0 {
		order = append(order, newRateLimit(c.RateLimit, c.RateTable))
	}
	order = append(order,
		newChaos(c.Version, c.ServerID),
		kinds{}, // classes and types that are not resolved
		localData{c.LocalData},
	)
	if len(c.BlockLists) > 0 {
		order = append(order, &block{allow: c.AllowLists, lists: c.BlockLists})
	}
	if c.AS112 {
		order = append(order, newConfigured(newAS112(c.ServerID), c.Zones)) // with authority, and not by special-use
	}
	if c.SpecialUse {
		order = append(order, newConfigured(newSpecialUse(), c.Zones))
	}
	return append(order, newSnoop(c.AllowSnoop)) // RD=0
}
