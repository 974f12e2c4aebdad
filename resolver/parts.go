package resolver

import (
	"reflect"

	"bonsai/resolver/denial"
	"bonsai/resolver/iterate"
	"bonsai/resolver/validate"
)

// Parts are the counters of the packages below, of this Resolver and of all it succeeded: a change of
// the configuration makes none of them smaller. What is no count is the current one's.
type Parts struct {
	Validate validate.Stats
	Iterate  iterate.Stats
	Denial   denial.Stats
}

// Parts returns the counters; they are read one by one, not at one instant.
func (r *Resolver) Parts() Parts {
	r.stats.mu.Lock()
	defer r.stats.mu.Unlock()
	all := r.parts()
	addCounts(&all, &r.stats.ended)
	for _, other := range r.stats.resolvers {
		if other != r {
			more := other.parts()
			addCounts(&all, &more)
		}
	}
	return all
}

// parts are those of r alone.
func (r *Resolver) parts() (p Parts) {
	p.Iterate = r.iterator.Stats()
	if r.validator != nil {
		p.Validate = r.validator.Stats()
	}
	if r.denials != nil {
		p.Denial = r.denials.Stats()
	}
	return p
}

// enlist makes the counters of r count until leave.
func (r *Resolver) enlist() {
	r.stats.mu.Lock()
	defer r.stats.mu.Unlock()
	r.stats.resolvers = append(r.stats.resolvers, r)
}

// leave keeps the counters of a Resolver that has ended.
func (r *Resolver) leave() {
	r.stats.mu.Lock()
	defer r.stats.mu.Unlock()
	for i, other := range r.stats.resolvers {
		if other == r {
			r.stats.resolvers = append(r.stats.resolvers[:i:i], r.stats.resolvers[i+1:]...)
			last := r.parts()
			addCounts(&r.stats.ended, &last)
			return
		}
	}
}

// addCounts adds the unsigned fields of more, which are its counts, to those of sum.
func addCounts(sum, more *Parts) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(more).Elem()
	for i := range to.NumField() {
		for j := range to.Field(i).NumField() {
			if f := to.Field(i).Field(j); f.Kind() == reflect.Uint64 {
				f.SetUint(f.Uint() + from.Field(i).Field(j).Uint())
			}
		}
	}
}
