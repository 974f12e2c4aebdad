package main

import (
	"context"
	"fmt"
	"strings"

	"bonsai/resolver"
	"bonsai/resolver/policy"
)

// ruleLine is one rule of a list, with what was decided by its names since the start. A view's rules are
// counted with those of all others.
type ruleLine struct {
	Rules   []string          `json:"rules"`
	Does    string            `json:"does"`
	Decided map[string]uint64 `json:"decided,omitempty"` // by action
}

// ruleLines is the list of a view.
type ruleLines struct {
	View    string     `json:"view,omitempty"`
	Queries []ruleLine `json:"queries"`
	Answers []ruleLine `json:"answers"`
}

func runRules(_ context.Context, d *daemon, _ []string) (reply, error) {
	current := d.resolver.Current()
	var text strings.Builder
	var data []ruleLines
	for _, list := range current.Rules() {
		counts := countsOf(current.Stats().Decisions)
		lines := ruleLines{list.View, counts.take(list.Queries), counts.take(list.Answers)}
		data = append(data, lines)
		if list.View != "" {
			fmt.Fprintf(&text, "view %s, counted with all others\n", list.View)
		}
		for i, l := range append(append([]ruleLine(nil), lines.Queries...), lines.Answers...) {
			fmt.Fprintf(&text, "%2d  %-12s %s%s\n", i+1, strings.Join(l.Rules, ", "), l.Does, l.counts())
		}
	}
	return reply{Text: text.String(), Data: data}, nil
}

// ruleCounts is what was decided, by rule and action.
type ruleCounts map[string]map[string]uint64

func countsOf(decisions []resolver.Decision) ruleCounts {
	counts := ruleCounts{}
	for _, d := range decisions {
		if counts[d.Rule] == nil {
			counts[d.Rule] = map[string]uint64{}
		}
		counts[d.Rule][d.Action.String()] = d.Count
	}
	return counts
}

// take gives each rule its counts. A rule of queries and one of answers that count by the same name are
// told together, where the first of them stands.
func (counts ruleCounts) take(rules []policy.Description) []ruleLine {
	lines := make([]ruleLine, len(rules))
	for i, rule := range rules {
		lines[i] = ruleLine{Rules: rule.Rules, Does: rule.Does, Decided: map[string]uint64{}}
		for _, name := range rule.Rules {
			for action, n := range counts[name] {
				lines[i].Decided[action] += n
			}
			delete(counts, name)
		}
	}
	return lines
}

// counts tells what was decided, in the order of the actions.
func (l *ruleLine) counts() string {
	var text strings.Builder
	for _, action := range policy.Actions {
		if n := l.Decided[action]; n > 0 {
			fmt.Fprintf(&text, "; %s: %d", action, n)
		}
	}
	return text.String()
}
