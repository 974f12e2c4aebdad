package main

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"bonsai/resolver"
	"bonsai/wire"
)

// View is what clients of some prefixes get by other settings than all others.
type View struct {
	Name    string
	Clients []netip.Prefix
	Chosen  []string // fields of Config that the view has of its own, sorted
	Own     *Config  // where they are

	// Realm is where in the cache lies what the view's own zones say; 0 where it has none. It stays the
	// same over reloads, so that what is cached stays, too.
	Realm uint16
}

// views is a list of views that compares by all but the contents of lists of names, which ViewSums has.
type views []View

// viewSum tells the lists of names that a view has of its own apart from others.
type viewSum struct {
	name string
	sums [2]uint64
}

// viewFields are the settings that a view may choose, with the field of Config that each is kept in.
// Those that share one go together: where a view has one of them, it has nothing of the other from the file.
var viewFields = map[string]string{
	"allow": "Allow", "refuse": "Refuse", "allow-snoop": "AllowSnoop",
	"local-data": "LocalData", "hosts-files": "LocalData", "special-use": "SpecialUse", "as112": "AS112",
	"block-lists": "BlockLists", "allow-lists": "AllowLists",
	"private-address": "PrivateAddress", "private-domain": "PrivateDomain",
	"forward-zones": "Zones", "stub-zones": "Zones",
}

// viewOwn are the keys that views have besides.
var viewOwn = []setting{{key: "name", value: "NAME"}, {key: "clients", value: "CIDR", list: true}}

// viewSetting returns the setting of a key in a view, nil where there is none.
func viewSetting(key string) *setting {
	for i := range viewOwn {
		if viewOwn[i].key == key {
			return &viewOwn[i]
		}
	}
	if viewFields[key] == "" {
		return nil
	}
	return findSetting(key)
}

// viewKeys are all keys of a view.
func viewKeys() []string {
	return append([]string{"name", "clients"}, slices.Sorted(maps.Keys(viewFields))...)
}

// setViews makes the views of what the file says of them.
func (c *Config) setViews(said []givenView, file, dir string) (errs []error) {
	held := map[netip.Prefix]string{}
	for i := range said {
		g := &said[i]
		v, more := c.view(g, file, dir)
		errs = append(errs, more...)
		complain := func(key, format string, args ...any) {
			errs = append(errs, &problem{file: file, line: g.lineOf(key), key: "views." + key, text: fmt.Sprintf(format, args...)})
		}
		if slices.ContainsFunc(c.Views, func(o View) bool { return o.Name == v.Name }) {
			complain("name", "%q is the name of two views; give each its own", v.Name)
		}
		for _, p := range v.Clients {
			if other, ok := held[p]; ok {
				complain("clients", "%v is in view %q already; a client has one view", p, other)
			}
			held[p] = v.Name
		}
		c.Views = append(c.Views, v)
		if v.has("BlockLists") || v.has("AllowLists") {
			c.ViewSums = append(c.ViewSums, viewSum{v.Name, v.Own.ListSums})
		}
	}
	return errs
}

// view makes one of them. What its settings read is noted in c.
func (c *Config) view(g *givenView, file, dir string) (v View, errs []error) {
	own := *c
	own.ListSums = [2]uint64{}
	for key := range g.said {
		if field := viewFields[key]; field != "" && !v.has(field) {
			v.Chosen = append(v.Chosen, field)
			reflect.ValueOf(&own).Elem().FieldByName(field).SetZero()
		}
	}
	slices.Sort(v.Chosen)
	complain := func(key, text string) {
		errs = append(errs, &problem{file: file, line: g.lineOf(key), key: "views." + key, text: text})
	}
	if name := g.said["name"].values; len(name) == 0 || name[0] == "" {
		complain("name", "a view without a name; write - name: NAME")
	} else {
		v.Name = name[0]
	}
	clients := g.said["clients"]
	err := eachValue(clients.values, func(text string) error {
		p, err := prefix(text)
		v.Clients = append(v.Clients, p.Masked())
		return err
	})
	switch {
	case err != nil:
		errs = append(errs, &problem{file: file, line: clients.at(err), key: "views.clients", text: err.Error()})
	case len(clients.values) == 0:
		complain("clients", "a view of nobody; write clients: [192.0.2.0/24]")
	}
	errs = append(errs, own.apply(g.said, file, dir)...)
	errs = append(errs, own.together(file, g.said)...)
	c.Files, c.Lists, c.Notices = own.Files, own.Lists, own.Notices
	v.Own = &own
	return v, errs
}

func (v *View) has(field string) bool { return slices.Contains(v.Chosen, field) }

// over returns c with the settings that the view chooses.
func (v *View) over(c *Config) *Config {
	out := *c
	to, from := reflect.ValueOf(&out).Elem(), reflect.ValueOf(v.Own).Elem()
	for _, field := range v.Chosen {
		to.FieldByName(field).Set(from.FieldByName(field))
	}
	return &out
}

// same says whether two lists of views differ in nothing but the contents of lists of names.
func (vs views) same(others views) bool {
	return slices.EqualFunc(vs, others, func(a, b View) bool {
		if a.Name != b.Name || !slices.Equal(a.Clients, b.Clients) || !slices.Equal(a.Chosen, b.Chosen) {
			return false
		}
		x, y := reflect.ValueOf(a.Own).Elem(), reflect.ValueOf(b.Own).Elem()
		for _, field := range a.Chosen {
			if field != "BlockLists" && field != "AllowLists" && !alike(x.FieldByName(field), y.FieldByName(field)) {
				return false
			}
		}
		return true
	})
}

// byName returns the view of this name, or nil.
func (vs views) byName(name string) *View {
	for i := range vs {
		if vs[i].Name == name {
			return &vs[i]
		}
	}
	return nil
}

// withRealms returns the views, of which those with zones of their own have the realm
// that the view of their name has in old, and new ones a realm that is nobody's, there neither: what lies
// there is flushed behind the change.
func (vs views) withRealms(old views) views {
	vs = slices.Clone(vs)
	used := map[uint16]bool{0: true}
	for _, v := range old {
		used[v.Realm] = true
	}
	next := uint16(0)
	for i := range vs {
		v := &vs[i]
		v.Realm = 0
		if !v.has("Zones") {
			continue
		}
		if was := old.byName(v.Name); was != nil && was.Realm != 0 {
			v.Realm = was.Realm
			continue
		}
		for used[next] {
			next++
		}
		v.Realm, used[next] = next, true
	}
	return vs
}

// realms returns the zones of each realm that the views have.
func (vs views) realms() map[uint16]*Config {
	all := map[uint16]*Config{}
	for i := range vs {
		if vs[i].Realm != 0 {
			all[vs[i].Realm] = vs[i].Own
		}
	}
	return all
}

// flushViews forgets what views resolved by zones that they no longer have so.
func flushViews(d *daemon, old, changed *Config) {
	after := changed.Views.realms()
	for realm, before := range old.Views.realms() {
		names := []wire.Name{wire.Root}
		if now := after[realm]; now != nil {
			names = differing(configuredZones(before), configuredZones(now))
		}
		for _, name := range names {
			d.resolver.Current().FlushTreeIn(realm, name)
		}
	}
}

// resolverViews spreads the views over what the resolver wants to know of them.
func (d *daemon) resolverViews(c *Config) (out []resolver.View) {
	for i := range c.Views {
		v := &c.Views[i]
		own := v.over(c)
		out = append(out, resolver.View{
			Name: v.Name, Clients: v.Clients, Policy: d.policyConfig(own), Realm: v.Realm, Zones: own.Zones,
		})
	}
	return out
}
