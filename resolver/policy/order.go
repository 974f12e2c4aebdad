package policy

// Order is the list of rules, first decision wins.
type Order []Rule

// NewOrder builds the rules of a configuration. The order is this list and nothing else: who may
// ask comes before what is asked, and what no resolver resolves before what this one knows.
func NewOrder(c *Config) Order {
	order := Order{newAccess(c.Allow, c.Refuse)} // REFUSED to strangers
	if c.RateLimit.QPS > 0 {
		order = append(order, newRateLimit(c.RateLimit, c.RateClock, c.RateStats))
	}
	order = append(order,
		newChaos(c.Version, c.ServerID),
		kinds{}, // classes and types that are not resolved
		localData{c.LocalData},
	)
	if len(c.BlockLists) > 0 {
		order = append(order, &block{allow: c.AllowLists, lists: c.BlockLists})
	}
	if c.SpecialUse {
		order = append(order, newSpecialUse())
	}
	return append(order, newSnoop(c.AllowSnoop)) // RD=0
}
