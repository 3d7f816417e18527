package binary

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// moduleRoot is hack/node, which the pins must agree with.
const moduleRoot = "../../hack/node"

func TestPinnedIsValid(t *testing.T) {
	pins, err := Pinned()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kubelet", "kube-apiserver", "containerd", "containerd-shim-runc-v2", "bridge"} {
		if !slices.Contains(pins.names(nodeBinary), name) {
			t.Errorf("%s is not pinned as a node binary", name)
		}
	}
	for _, project := range pins.Projects {
		for _, b := range project.Binaries {
			if b.Use == UseNode && project.Release == nil {
				t.Errorf("%s has no release, so the release source could never make a node", b.Name)
			}
		}
	}
}

// TestPinsAgreeWithModule holds the versions that are fetched and the versions
// that are built together.
func TestPinsAgreeWithModule(t *testing.T) {
	pins, err := Pinned()
	if err != nil {
		t.Fatal(err)
	}
	for _, project := range pins.Projects {
		mod := readFile(t, filepath.Join(moduleRoot, project.Folder, "go.mod"))
		if !strings.HasPrefix(project.Module, "github.com/cozystack/cozydev/") &&
			!strings.Contains(mod, fmt.Sprintf("%s %s", project.Module, project.Version)) {
			t.Errorf("project %q: go.mod does not require %s %s", project.Name, project.Module, project.Version)
		}
		for _, b := range project.Binaries {
			own, isOwn := strings.CutPrefix(b.Package, "github.com/cozystack/cozydev/hack/node/")
			if isOwn {
				if _, err := os.Stat(filepath.Join(moduleRoot, own)); err != nil {
					t.Errorf("binary %q: %v", b.Name, err)
				}
			} else if !strings.Contains(mod, "\t"+b.Package+"\n") {
				t.Errorf("binary %q: go.mod has no tool line for %s", b.Name, b.Package)
			}
		}
	}
}

func TestParsePinsRejects(t *testing.T) {
	const project = "projects: [{name: p, version: %s, release: {url: %q, checksums: %q}, binaries: [%s]}]"
	const okURL, okBinary = "https://x.test/a", "{name: a, use: node, package: p/a}"
	tests := map[string]struct{ yaml, want string }{
		"unknown field": {"project: []", "field project not found"},
		"nothing":       {"projects: []", "names no binary"},
		"version":       {fmt.Sprintf(project, "1.2", okURL, okURL, okBinary), `version "1.2"`},
		"plain http":    {fmt.Sprintf(project, "v1.2.3", "http://x.test/a", okURL, okBinary), "not an https URL"},
		"no checksums":  {fmt.Sprintf(project, "v1.2.3", okURL, "", okBinary), "not an https URL"},
		"twice":         {fmt.Sprintf(project, "v1.2.3", okURL, okURL, okBinary+","+okBinary), `"a" is named twice`},
		"use":           {fmt.Sprintf(project, "v1.2.3", okURL, okURL, "{name: a, use: x, package: p}"), `use "x"`},
		"package":       {fmt.Sprintf(project, "v1.2.3", okURL, okURL, "{name: a, use: node}"), "package is missing"},
		"path as name":  {fmt.Sprintf(project, "v1.2.3", okURL, okURL, "{name: ../a, use: node, package: p}"), "plain file name"},
		"short sum":     {fmt.Sprintf(project, "v1.2.3", okURL, okURL, "{name: a, use: node, package: p, sha256: {amd64: ab}}"), "64 hex"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePins([]byte(test.yaml))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestAssets(t *testing.T) {
	pins, err := ParsePins([]byte(`
projects:
  - name: bare
    version: v1.2.3
    release: {url: "https://x.test/{version}/{arch}/{name}", checksums: "https://x.test/{name}.sha256"}
    ldflags: ["-X v={version}", "-X m={major}.{minor}"]
    binaries: [{name: one, use: node, package: x/one}, {name: two, use: tool, package: x/two}]
  - name: packed
    version: v2.0.0
    folder: sub
    release: {url: "https://x.test/packed-{number}.tgz", checksums: "https://x.test/SUMS", sha256: {arm64: "` + strings.Repeat("a", 64) + `"}}
    binaries: [{name: three, use: node, package: x/three, member: "dir-{arch}/three"}]
  - name: built
    version: v0.1.0
    binaries: [{name: four, use: image, package: x/four}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []asset{
		{Name: "one", URL: "https://x.test/v1.2.3/arm64/one", Checksums: "https://x.test/one.sha256", Binary: "one"},
		{Name: "two", URL: "https://x.test/v1.2.3/arm64/two", Checksums: "https://x.test/two.sha256", Binary: "two"},
		{
			Name: "packed-2.0.0.tgz", URL: "https://x.test/packed-2.0.0.tgz", Checksums: "https://x.test/SUMS",
			SHA256: strings.Repeat("a", 64), Members: map[string]string{"dir-arm64/three": "three"},
		},
	}
	if got := pins.assets("arm64"); !reflect.DeepEqual(got, want) {
		t.Errorf("assets:\n got %+v\nwant %+v", got, want)
	}
	wantTargets := []target{
		{Binary: "one", Package: "x/one", LDFlags: "-s -w -X v=v1.2.3 -X m=1.2"},
		{Binary: "two", Package: "x/two", LDFlags: "-s -w -X v=v1.2.3 -X m=1.2"},
		{Binary: "three", Package: "x/three", LDFlags: "-s -w", Folder: "sub"},
		{Binary: "four", Package: "x/four", LDFlags: "-s -w"},
	}
	if got := pins.targets("arm64"); !reflect.DeepEqual(got, wantTargets) {
		t.Errorf("targets:\n got %+v\nwant %+v", got, wantTargets)
	}
}
