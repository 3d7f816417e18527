package packages_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cozystack/cozydev/images"
	"github.com/cozystack/cozydev/images/tree"
	"github.com/cozystack/cozydev/packages"
)

var update = flag.Bool("update", false, "write the golden files anew")

// values makes chart values out of YAML.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVariants compares what each variant of the platform installs, package by
// package and object by object, with a golden file.
func TestVariants(t *testing.T) {
	repo := tree.Open(packages.Tree())
	for _, variant := range []string{"default", "isp-full", "isp-full-generic", "isp-hosted"} {
		t.Run(variant, func(t *testing.T) {
			platform, err := repo.Platform(variant, nil)
			if err != nil {
				t.Fatal(err)
			}
			releases, err := platform.Releases()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, object := range platform.Objects {
				if object.Kind() == "Package" {
					spec, _ := yaml.Marshal(object["spec"])
					fmt.Fprintf(&out, "Package %s\n%s", object.Name(), indent(string(spec)))
				}
			}
			for _, release := range releases {
				objects, err := repo.Render(release)
				if err != nil {
					t.Error(err)
				}
				fmt.Fprintf(&out, "HelmRelease %s/%s\n", release.Namespace, release.Name)
				for _, object := range objects {
					fmt.Fprintf(&out, "  %s %s\n", object.Kind(), object.Name())
				}
			}
			golden(t, variant+".txt", out.String())
		})
	}
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (refresh with -update); got:\n%s", file, got)
	}
}

// TestBadValues gives the platform values that it must refuse, each with one
// line that says what is wrong.
func TestBadValues(t *testing.T) {
	const known = "known packages: cozystack.coredns, cozystack.cozystack-basics, cozystack.metrics-server, cozystack.nats-application"
	for _, test := range []struct{ name, values, want string }{
		{"enabled", "bundles: {enabledPackages: [cozystack.nope]}", `bundles.enabledPackages: unknown package "cozystack.nope"; ` + known},
		{"disabled", "bundles: {disabledPackages: [cozystack.nope]}", `bundles.disabledPackages: unknown package "cozystack.nope"; ` + known},
		{"settings", "packages: {cozystack.nope: {variant: x}}", `packages: unknown package "cozystack.nope"; ` + known},
		{"typo", "bundles: {enabledPackage: []}", "additional properties 'enabledPackage' not allowed"},
		{"typo at the root", "bundle: {}", "additional properties 'bundle' not allowed"},
		{"variant", "bundles: {system: {variant: isp}}", "value must be one of 'isp-full', 'isp-full-generic', 'isp-hosted'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := tree.Open(packages.Tree()).Platform("isp-full", values(t, test.values))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %v, want one line with %s", err, test.want)
			}
		})
	}
}

// TestPackages changes what a bundle installs.
func TestPackages(t *testing.T) {
	for _, test := range []struct {
		name, variant, values string
		want                  []string
	}{
		{"nothing by default", "default", "{}", nil},
		{"added", "default", "bundles: {enabledPackages: [cozystack.coredns]}", []string{"coredns"}},
		{"removed", "isp-full", "bundles: {disabledPackages: [cozystack.nats-application]}", []string{"coredns", "cozystack-basics", "metrics-server"}},
		{"removing wins", "default", "bundles: {enabledPackages: [cozystack.coredns], disabledPackages: [cozystack.coredns]}", nil},
		{"brought by the host", "isp-hosted", "{}", []string{"cozystack-basics", "nats"}},
		{"added all the same", "isp-hosted", "bundles: {enabledPackages: [cozystack.coredns]}", []string{"coredns", "cozystack-basics", "nats"}},
		{"component off", "isp-full", "packages: {cozystack.nats-application: {components: {nats: {enabled: false}}}}", []string{"coredns", "cozystack-basics", "metrics-server"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			platform, err := tree.Open(packages.Tree()).Platform(test.variant, values(t, test.values))
			if err != nil {
				t.Fatal(err)
			}
			releases, err := platform.Releases()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, release := range releases {
				got = append(got, release.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestSources puts together the chart of every component of every variant,
// installed by default or not.
func TestSources(t *testing.T) {
	repo := tree.Open(packages.Tree())
	platform, err := repo.Platform("default", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(platform.Sources) == 0 {
		t.Fatal("the platform has no package sources")
	}
	for _, source := range platform.Sources {
		for _, variant := range source.Spec.Variants {
			for _, component := range variant.Components {
				if _, err := repo.Chart(component, variant.Libraries); err != nil {
					t.Errorf("%s, variant %s: %v", source.Metadata.Name, variant.Name, err)
				}
				if component.Install != nil && component.Install.Namespace == "" {
					t.Errorf("%s, variant %s: component %s has no namespace", source.Metadata.Name, variant.Name, component.Name)
				}
			}
		}
	}
}

// TestChartNames holds the charts to the names of their folders; those of core
// are named after the platform.
func TestChartNames(t *testing.T) {
	files, err := fs.Glob(packages.Tree(), "*/*/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := fs.ReadFile(packages.Tree(), file)
		if err != nil {
			t.Fatal(err)
		}
		var chart struct{ Name, Description string }
		if err := yaml.Unmarshal(raw, &chart); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		want := path.Base(path.Dir(file))
		if strings.HasPrefix(file, "core/") {
			want = "cozystack-" + want
		}
		if chart.Name != want || chart.Description == "" {
			t.Errorf("%s: the chart is called %q (%q), want %q and a description", file, chart.Name, chart.Description, want)
		}
	}
}

// TestImages compares the images that charts name with those that can be made
// here.
func TestImages(t *testing.T) {
	defs, err := images.Discover(packages.Tree())
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, def := range defs {
		made[def.Ref] = true
	}
	files, _ := fs.Glob(packages.Tree(), "*/*/values.yaml")
	for _, file := range files {
		raw, _ := fs.ReadFile(packages.Tree(), file)
		if image, ok := values(t, string(raw))["image"].(string); ok && !made[image] {
			t.Errorf("%s names image %q, which no file under images/ defines", file, image)
		}
	}
	checked, err := fs.Glob(packages.Tree(), "*/*/checks.yaml")
	if err != nil || len(checked) == 0 {
		t.Fatalf("found %d files of checks, error %v", len(checked), err)
	}
	for _, file := range checked {
		raw, _ := fs.ReadFile(packages.Tree(), file)
		var checks []struct{ Name, Description, Image, Timeout string }
		if err := yaml.Unmarshal(raw, &checks); err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if _, err := time.ParseDuration(check.Timeout); err != nil || !made[check.Image] || check.Description == "" {
				t.Errorf("%s: check %+v", file, check)
			}
		}
	}
}
