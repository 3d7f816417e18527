package release

import (
	"strings"
	"testing"
)

func hr(name string, ready bool, needs ...string) Item {
	item := Item{Ref: Ref{"HelmRelease", "ns", name}, Ready: ready, Reason: "Because", Message: "of " + name}
	for _, need := range needs {
		item.Needs = append(item.Needs, Ref{"HelmRelease", "ns", need})
	}
	return item
}

func TestExplain(t *testing.T) {
	cases := []struct {
		name   string
		items  []Item
		root   string
		chain  string
		blocks int
		stalls int
	}{
		{"all ready", []Item{hr("a", true), hr("b", true, "a")}, "", "", 0, 0},
		{"one alone", []Item{hr("a", false)}, "a", "a", 0, 1},
		{"chain of three", []Item{hr("a", false), hr("b", false, "a"), hr("c", false, "b")}, "a", "c b a", 2, 1},
		{"ready needs do not count", []Item{hr("a", true), hr("b", false, "a")}, "b", "b", 0, 1},
		{
			"the one that blocks most comes first",
			[]Item{hr("x", false), hr("a", false), hr("b", false, "a"), hr("c", false, "a")},
			"a", "c a", 2, 2,
		},
		{"a missing need is the root", []Item{hr("b", false, "gone")}, "gone", "b gone", 1, 1},
		{"diamond counts once", []Item{hr("a", false), hr("b", false, "a"), hr("c", false, "a"), hr("d", false, "b", "c")}, "a", "d b a", 3, 1},
		{"cycle", []Item{hr("a", false, "b"), hr("b", false, "a"), hr("c", false, "a")}, "a", "c a", 2, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stalls := Explain(c.items)
			if len(stalls) != c.stalls {
				t.Fatalf("got %d stalls, want %d: %+v", len(stalls), c.stalls, stalls)
			}
			if c.stalls == 0 {
				return
			}
			first := stalls[0]
			names := make([]string, len(first.Chain))
			for i, ref := range first.Chain {
				names[i] = ref.Name
			}
			if first.Root.Name != c.root || strings.Join(names, " ") != c.chain || first.Blocks != c.blocks {
				t.Fatalf("got root %s, chain %v, blocks %d", first.Root.Name, names, first.Blocks)
			}
		})
	}
}

func TestExplainNamesTheCycle(t *testing.T) {
	stalls := Explain([]Item{hr("a", false, "b"), hr("b", false, "a")})
	if got := stalls[0].Text(); !strings.Contains(got, "DependencyCycle: these need one another: a → b → a") {
		t.Fatalf("the text does not name the cycle:\n%s", got)
	}
}

func TestTextTellsRootChainAndEvidence(t *testing.T) {
	stall := Explain([]Item{hr("a", false), hr("b", false, "a")})[0]
	stall.Evidence = []string{"pod a-1: ImagePullBackOff"}
	want := "HelmRelease/ns/a is not ready: Because: of a\n  it blocks 1 more\n" +
		"  chain: HelmRelease/ns/b → HelmRelease/ns/a\n  pod a-1: ImagePullBackOff"
	if got := stall.Text(); got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}
