// Package release watches what the platform installs and explains what holds
// it up: which object is the root of a stall, which chain leads to it and why
// it is not ready.
package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Ref names one object. Namespace is empty for cluster-scoped kinds.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is the form Kind/namespace/name, without an empty namespace.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// Item is one object of the platform as the wait sees it. Reason and Message
// come from its Ready condition. Needs are the objects that must be ready
// before it can be; those that are not in the snapshot count as missing.
type Item struct {
	Ref
	Ready     bool
	Failed    bool
	Suspended bool
	Reason    string
	Message   string
	Needs     []Ref
}

// Stall is one root that is not ready, and what waits for it.
type Stall struct {
	Root Item `json:"root"`
	// Chain runs from the object farthest away down to the root.
	Chain []Ref `json:"chain"`
	// Blocks counts the objects that wait for the root, itself excluded.
	Blocks int `json:"blocks"`
	// Evidence are lines on why the root is not ready: pods, events, logs.
	Evidence []string `json:"evidence,omitempty"`
}

// Explain finds the roots of what is not ready: the objects that wait for
// nothing else. The root that blocks most comes first. An object that is
// needed but does not exist is a root of its own; a cycle is reported as one
// root that names its members.
func Explain(items []Item) []Stall {
	g := newGraph(items)
	var stalls []Stall
	for _, root := range g.roots() {
		chain, blocks := g.blockedBy(root.Ref)
		stalls = append(stalls, Stall{Root: root, Chain: chain, Blocks: blocks})
	}
	slices.SortStableFunc(stalls, func(a, b Stall) int {
		if a.Root.Failed != b.Root.Failed && a.Blocks == b.Blocks {
			if a.Root.Failed {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Root.String(), b.Root.String()))
	})
	return stalls
}

type graph struct {
	unready map[Ref]Item
	order   []Ref
	// waiters are the reverse of needs, between objects that are not ready.
	waiters map[Ref][]Ref
}

func newGraph(items []Item) *graph {
	g := &graph{unready: map[Ref]Item{}, waiters: map[Ref][]Ref{}}
	known := map[Ref]bool{}
	for _, item := range items {
		known[item.Ref] = true
		if !item.Ready {
			g.add(item)
		}
	}
	for _, item := range items {
		if item.Ready {
			continue
		}
		for _, need := range item.Needs {
			if !known[need] {
				known[need] = true
				g.add(Item{Ref: need, Reason: "NotFound", Message: "it does not exist, and " + item.String() + " needs it"})
			}
			if _, waits := g.unready[need]; waits {
				g.waiters[need] = append(g.waiters[need], item.Ref)
			}
		}
	}
	return g
}

func (g *graph) add(item Item) {
	g.unready[item.Ref] = item
	g.order = append(g.order, item.Ref)
}

func (g *graph) unreadyNeeds(ref Ref) []Ref {
	var out []Ref
	for _, need := range g.unready[ref].Needs {
		if _, waits := g.unready[need]; waits {
			out = append(out, need)
		}
	}
	return out
}

// roots lists the objects that wait for nothing, or, for what no such root
// explains, the cycles.
func (g *graph) roots() []Item {
	var roots []Item
	explained := map[Ref]bool{}
	for _, ref := range g.order {
		if len(g.unreadyNeeds(ref)) == 0 {
			roots = append(roots, g.unready[ref])
			g.markWaiters(ref, explained)
		}
	}
	for _, ref := range g.order {
		if explained[ref] {
			continue
		}
		if cycle := g.cycleFrom(ref); cycle != nil {
			roots = append(roots, g.cycleItem(cycle))
			g.markWaiters(cycle[0], explained)
		}
	}
	return roots
}

func (g *graph) markWaiters(ref Ref, seen map[Ref]bool) {
	if seen[ref] {
		return
	}
	seen[ref] = true
	for _, waiter := range g.waiters[ref] {
		g.markWaiters(waiter, seen)
	}
}

// cycleFrom follows first needs until an object comes up again.
func (g *graph) cycleFrom(ref Ref) []Ref {
	var path []Ref
	at := map[Ref]int{}
	for {
		if start, again := at[ref]; again {
			return path[start:]
		}
		at[ref] = len(path)
		path = append(path, ref)
		needs := g.unreadyNeeds(ref)
		if len(needs) == 0 {
			return nil
		}
		ref = needs[0]
	}
}

func (g *graph) cycleItem(cycle []Ref) Item {
	names := make([]string, 0, len(cycle)+1)
	for _, ref := range append(slices.Clone(cycle), cycle[0]) {
		names = append(names, ref.Name)
	}
	item := g.unready[cycle[0]]
	item.Failed = true
	item.Reason = "DependencyCycle"
	item.Message = "these need one another: " + strings.Join(names, " → ")
	return item
}

// blockedBy walks the waiters of a root breadth first; the chain leads to the
// one found last, which is among the farthest.
func (g *graph) blockedBy(root Ref) ([]Ref, int) {
	parent := map[Ref]Ref{root: root}
	queue := []Ref{root}
	last := root
	for len(queue) > 0 {
		last, queue = queue[0], queue[1:]
		for _, waiter := range g.waiters[last] {
			if _, seen := parent[waiter]; !seen {
				parent[waiter] = last
				queue = append(queue, waiter)
			}
		}
	}
	chain := []Ref{last}
	for last != root {
		last = parent[last]
		chain = append(chain, last)
	}
	return chain, len(parent) - 1
}

// Text tells a stall to a person, the root first.
func (s Stall) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not ready: %s", s.Root.Ref, reason(s.Root))
	if s.Blocks > 0 {
		fmt.Fprintf(&b, "\n  it blocks %d more", s.Blocks)
	}
	if len(s.Chain) > 1 {
		names := make([]string, len(s.Chain))
		for i, ref := range s.Chain {
			names[i] = ref.String()
		}
		fmt.Fprintf(&b, "\n  chain: %s", strings.Join(names, " → "))
	}
	for _, line := range s.Evidence {
		fmt.Fprintf(&b, "\n  %s", line)
	}
	return b.String()
}

func reason(item Item) string {
	switch {
	case item.Suspended:
		return "suspended (spec.suspend is true)"
	case item.Reason == "" && item.Message == "":
		return "it has no Ready condition yet"
	case item.Message == "":
		return item.Reason
	default:
		return item.Reason + ": " + item.Message
	}
}
