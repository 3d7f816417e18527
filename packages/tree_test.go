package packages_test

import (
	"os"
	"testing"

	"github.com/cozystack/cozydev/images/tree"
)

func TestTry(t *testing.T) {
	tr := tree.Open(os.DirFS("."))
	p, err := tr.Platform("isp-full", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.Objects {
		t.Log(o)
	}
	rs, err := p.Releases()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		objs, err := tr.Render(r)
		if err != nil {
			t.Error(err)
		}
		for _, o := range objs {
			t.Log(r.Name, o)
		}
	}
	_, err = tr.Platform("isp-full", map[string]any{"bundles": map[string]any{"enabledPackages": []any{"cozystack.x"}}})
	t.Log(err)
}
