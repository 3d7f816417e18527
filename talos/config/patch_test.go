package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cozystack/cozydev/talos/config"
)

func TestLoadPatchesNamesTheCulprit(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}

		return "@" + path
	}

	for _, c := range []struct {
		arg  string
		want []string
	}{
		{"@" + dir + "/missing.yaml", []string{"missing.yaml", "no such file or directory"}},
		{file("empty.yaml", ""), []string{"empty.yaml", "it is empty"}},
		{file("comment.yaml", "# nothing\n"), []string{"comment.yaml", "it is empty"}},
		{file("key.yaml", "machine:\n  kubelett:\n    image: x\n"), []string{"key.yaml", "unknown keys", "kubelett"}},
		{file("yaml.yaml", "machine: [\n"), []string{"yaml.yaml"}},
		{file("kind.yaml", "apiVersion: v1alpha1\nkind: Nonsense\n"), []string{"kind.yaml", "Nonsense"}},
		{`[{"op": "add"`, []string{`[{\"op\": \"add\"`, "unexpected"}},
		{"patch.yaml", []string{`write "@patch.yaml"`}},
	} {
		_, err := config.LoadPatches([]string{"machine: {sysctls: {a: b}}", c.arg})
		wantLine(t, err, append(c.want, "loading config patch")...)
	}
}

func TestGenerateNamesThePatchThatBreaksTheConfig(t *testing.T) {
	for _, c := range []struct {
		name    string
		patches config.Patches
		want    []string
	}{
		{
			name:    "a path that is not there",
			patches: config.Patches{Worker: patches(t, `[{"op": "replace", "path": "/machine/nothing/here", "value": 1}]`)},
			want:    []string{`applying config patch "[{\"op\": \"replace\"`, `node "worker1"`, "/machine/nothing/here"},
		},
		{
			name:    "an unknown operation",
			patches: config.Patches{All: patches(t, `[{"op": "jump", "path": "/machine"}]`)},
			want:    []string{`node "cp1"`, "jump"},
		},
		{
			name: "the second of three",
			patches: config.Patches{All: patches(t,
				"machine: {sysctls: {a: b}}", "cluster: {network: {cni: {name: calico}}}", "machine: {sysctls: {c: d}}")},
			want: []string{`config patch "cluster: {network: {cni: {name: calico}}}" makes`, "cni name should be one of"},
		},
		{
			name:    "a hostname for all",
			patches: config.Patches{All: patches(t, "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: same\n")},
			want:    []string{"HostnameConfig", "a node's name is fixed"},
		},
		{
			name:    "another role",
			patches: config.Patches{ControlPlane: patches(t, "machine: {type: init}")},
			want:    []string{"machine: {type: init}", "a node's role is fixed"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := options()
			opts.Patches = c.patches

			_, err := config.Generate(opts, fixedSecrets(t))
			wantLine(t, err, c.want...)
			wantLine(t, config.Check(opts), c.want...)
		})
	}
}

func TestPatchesThatAreValidTogether(t *testing.T) {
	opts := options()
	opts.Patches.All = patches(t, "cluster: {network: {cni: {name: calico}}}", "cluster: {network: {cni: {name: none}}}")

	if err := config.Check(opts); err != nil {
		t.Fatal(err)
	}
}
