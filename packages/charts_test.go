package packages_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cozystack/cozydev/images/tree"
	"github.com/cozystack/cozydev/packages"
)

// render makes the manifests of one chart with the given values.
func render(t *testing.T, path, name, text string) string {
	t.Helper()
	component := tree.Component{Name: name, Path: path}
	var libraries []tree.Library
	if !strings.HasPrefix(path, "core/") {
		component.Libraries = []string{"cozy-lib"}
		libraries = []tree.Library{{Path: "library/cozy-lib"}}
	}
	objects, err := tree.Open(packages.Tree()).Render(tree.Release{
		Package: "test", Name: name, Namespace: "test",
		Component: component, Libraries: libraries, Values: values(t, text),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(raw))
	}
	return out.String()
}

// TestCharts compares charts, with values that switch on what is off by
// default, with golden files.
func TestCharts(t *testing.T) {
	for _, test := range []struct{ golden, path, name, values string }{
		{"installer.yaml", "core/installer", "cozystack-installer", `
flux: embedded
platformSource:
  url: oci://192.168.123.1:5000/cozystack/packages
  ref: digest=sha256:0123
  secret: login
  insecure: true
extraArgs: [--helmrelease-interval=1m]`},
		{"nats-cluster.yaml", "system/nats", "nats-system", `
fullname: nats
replicas: 3
external: true
jetstream: {enabled: true, storageClass: fast}
authSecret: nats-auth
config: {max_payload: 2097152}
resources: {cpu: "2"}`},
		{"nats-application.yaml", "apps/nats", "nats", `
users: {alice: {password: "it's"}}`},
		{"coredns-offline.yaml", "system/coredns", "coredns", `
upstreams: []`},
	} {
		t.Run(test.golden, func(t *testing.T) {
			golden(t, test.golden, render(t, test.path, test.name, test.values))
		})
	}
}

// TestMadePasswords gives a user without a password one.
func TestMadePasswords(t *testing.T) {
	out := render(t, "apps/nats", "nats", "users: {alice: {}, bob: {password: secret}}")
	if !strings.Contains(out, "bob: secret") || strings.Contains(out, `alice: ""`) || !strings.Contains(out, "alice: ") {
		t.Errorf("got:\n%s", out)
	}
}

// TestUnknownPreset refuses a size that there is not.
func TestUnknownPreset(t *testing.T) {
	component := tree.Component{Name: "coredns", Path: "system/coredns", Libraries: []string{"cozy-lib"}}
	_, err := tree.Open(packages.Tree()).Render(tree.Release{
		Package: "test", Name: "coredns", Namespace: "test", Component: component,
		Libraries: []tree.Library{{Path: "library/cozy-lib"}},
		Values:    values(t, "resourcesPreset: huge"),
	})
	if err == nil || !strings.Contains(err.Error(), "/resourcesPreset") {
		t.Errorf("got error %v", err)
	}
}
