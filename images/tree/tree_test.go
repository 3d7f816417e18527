package tree_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cozystack/cozydev/images/tree"
)

const (
	platformTemplate = `
apiVersion: v1
kind: Secret
metadata: {name: cozystack-values}
stringData:
  values.yaml: |
    _cluster: {domain: {{ .Values.domain }}}
---
apiVersion: cozystack.io/v1alpha1
kind: PackageSource
metadata: {name: a}
spec:
  variants:
    - name: default
      libraries: [{path: library/lib}]
      components:
        - {name: charts-only, path: system/a}
        - name: a
          path: system/a
          libraries: [lib]
          valuesFiles: [values.yaml, values-more.yaml]
          install: {namespace: ns}
---
apiVersion: cozystack.io/v1alpha1
kind: Package
metadata: {name: {{ .Values.package }}}
spec: {variant: {{ .Values.variant }}, components: {a: {values: {from: package}}}}
`
	chartTemplate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  said: {{ include "lib.said" . }}
  domain: {{ .Values._cluster.domain }}
  from: {{ .Values.from }}
  more: {{ .Values.more }}
`
)

func files() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"core/platform/Chart.yaml":          file("apiVersion: v2\nname: platform\nversion: 0.1.0\n"),
		"core/platform/values.yaml":         file("domain: base\npackage: a\nvariant: default\n"),
		"core/platform/values-big.yaml":     file("domain: big\n"),
		"core/platform/templates/all.yaml":  file(platformTemplate),
		"library/lib/Chart.yaml":            file("apiVersion: v2\nname: lib\nversion: 0.1.0\ntype: library\n"),
		"library/lib/templates/_said.tpl":   file(`{{ define "lib.said" }}hello{{ end }}`),
		"system/a/Chart.yaml":               file("apiVersion: v2\nname: a\nversion: 0.1.0\n"),
		"system/a/values.yaml":              file("from: chart\nmore: none\n"),
		"system/a/values-more.yaml":         file("more: file\n"),
		"system/a/templates/configmap.yaml": file(chartTemplate),
		"system/a/templates/NOTES.txt":      file("no object"),
	}
}

func TestRender(t *testing.T) {
	repo := tree.Open(files())
	platform, err := repo.Platform("big", map[string]any{"domain": "user"})
	if err != nil {
		t.Fatal(err)
	}
	releases, err := platform.Releases()
	if err != nil || len(releases) != 1 {
		t.Fatalf("releases %+v, error %v", releases, err)
	}
	objects, err := repo.Render(releases[0])
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %+v, error %v", objects, err)
	}
	data := objects[0]["data"].(map[string]any)
	for key, want := range map[string]string{"said": "hello", "domain": "user", "from": "package", "more": "file"} {
		if data[key] != want {
			t.Errorf("%s is %q, want %q", key, data[key], want)
		}
	}
}

// TestPlatformVariant merges the variant's own values, and refuses a variant
// that has none.
func TestPlatformVariant(t *testing.T) {
	platform, err := tree.Open(files()).Platform("big", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := platform.Values["_cluster"].(map[string]any)["domain"]; got != "big" {
		t.Errorf("domain is %q", got)
	}
	_, err = tree.Open(files()).Platform("huge", nil)
	if err == nil || !strings.Contains(err.Error(), "use one of: default, big") {
		t.Errorf("error %v", err)
	}
}

// TestBroken breaks the tree in one way each, and looks for the line that says
// which.
func TestBroken(t *testing.T) {
	for _, test := range []struct{ name, file, content, want string }{
		{"package without source", "core/platform/values.yaml", "domain: x\npackage: b\nvariant: default\n", `package "b" has no package source`},
		{"unknown variant", "core/platform/values.yaml", "domain: x\npackage: a\nvariant: other\n", `package "a" has no variant "other"`},
		{"template fails", "system/a/templates/configmap.yaml", `{{ fail "the reason" }}`, `rendering release "a" of package "a": the reason`},
		{"template is broken", "system/a/templates/configmap.yaml", "{{ if }}", "missing value for if"},
		{"no YAML", "system/a/templates/configmap.yaml", "a: b: c", "a/templates/configmap.yaml"},
		{"missing values file", "system/a/values-more.yaml", "", `values file "values-more.yaml" is not in the chart`},
		{"missing chart", "system/a/Chart.yaml", "", `folder "system/a" of the tree holds no chart`},
		{"missing library", "library/lib/Chart.yaml", "", `folder "library/lib" of the tree holds no chart`},
		{"missing platform", "core/platform/Chart.yaml", "", `folder "core/platform" of the tree holds no chart`},
		{
			"schema", "system/a/values.schema.json", `{"properties": {"from": {"type": "integer"}, "more": {"type": "integer"}}}`,
			"values do not fit the chart: at '/from': got string, want integer; at '/more': got string, want integer",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			broken := files()
			broken[test.file] = &fstest.MapFile{Data: []byte(test.content)}
			if test.content == "" {
				delete(broken, test.file)
			}
			if err := tree.Open(broken).Check("default", nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	if err := tree.Open(files()).Check("default", nil); err != nil {
		t.Errorf("the tree as it should be: %v", err)
	}
}
