package images_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cozystack/cozydev/images"
)

func TestDiscover(t *testing.T) {
	good := "ref: registry.k8s.io/pause:3.10\nbinary: pause\npath: /pause\n"
	for _, test := range []struct {
		name, content, want string
	}{
		{"good", good, ""},
		{"user and group", good + "user: 1:2\n", ""},
		{"unknown field", good + "bin: x\n", `unknown field "bin"`},
		{"no host", "ref: pause:3.10\nbinary: pause\npath: /pause\n", `ref "pause:3.10" is not of the form`},
		{"no tag", "ref: registry.k8s.io/pause\nbinary: pause\npath: /pause\n", `is not of the form`},
		{"relative path", "ref: registry.k8s.io/pause:3.10\nbinary: pause\npath: pause\n", `path "pause" is not absolute`},
		{"binary outside", "ref: registry.k8s.io/pause:3.10\nbinary: ../pause\npath: /pause\n", `binary "../pause"`},
		{"user name", good + "user: nobody\n", `user "nobody"`},
		{"source", good + "source: moon\n", `source "moon"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree := fstest.MapFS{"core/talos/images/pause.yaml": {Data: []byte(test.content)}}
			defs, err := images.Discover(tree)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "core/talos/images/pause.yaml") {
					t.Fatalf("error %v, want the file and %q", err, test.want)
				}
				return
			}
			if err != nil || len(defs) != 1 || defs[0].Source != images.SourceNode {
				t.Fatalf("got %+v, %v", defs, err)
			}
		})
	}

	twice := fstest.MapFS{"a/b/images/1.yaml": {Data: []byte(good)}, "a/c/images/2.yaml": {Data: []byte(good)}}
	if _, err := images.Discover(twice); err == nil || !strings.Contains(err.Error(), "defined twice") {
		t.Errorf("two definitions of one image: error %v", err)
	}
}
