package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Object is a rendered Kubernetes object.
type Object map[string]any

// Kind of the object.
func (o Object) Kind() string {
	kind, _ := o["kind"].(string)
	return kind
}

// Name of the object.
func (o Object) Name() string {
	meta, _ := o["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// PackageSource is what of the API object of that kind a tree is read for.
type PackageSource struct {
	Metadata struct{ Name string }
	Spec     struct{ Variants []Variant }
}

// Variant of a package.
type Variant struct {
	Name       string
	DependsOn  []string
	Libraries  []Library
	Components []Component
}

// Library is a chart that becomes a subchart of others.
type Library struct {
	Name string
	Path string
}

// Component of a package: a chart, and how it is installed, if at all.
type Component struct {
	Name        string
	Path        string
	Libraries   []string
	ValuesFiles []string
	Install     *struct {
		ReleaseName string
		Namespace   string
	}
}

// Package is what of the API object of that kind a tree is read for.
type Package struct {
	Metadata struct{ Name string }
	Spec     struct {
		Variant            string
		IgnoreDependencies []string
		Components         map[string]struct {
			Enabled *bool
			Values  map[string]any
		}
	}
}

// Release is one chart as it is to be installed.
type Release struct {
	Package   string
	Name      string
	Namespace string
	Component Component
	Libraries []Library
	Values    map[string]any
}

// Platform is what a platform chart renders to.
type Platform struct {
	Objects  []Object
	Sources  []PackageSource
	Packages []Package
	// Values are those that every chart of the platform gets.
	Values map[string]any
}

func newPlatform(objects []Object) (*Platform, error) {
	p := &Platform{Objects: objects}
	for _, object := range objects {
		var err error
		switch object.Kind() {
		case "PackageSource":
			p.Sources, err = appendAs(p.Sources, object)
		case "Package":
			p.Packages, err = appendAs(p.Packages, object)
		case "Secret":
			if object.Name() == "cozystack-values" {
				p.Values, err = sharedValues(object)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", object.Kind(), object.Name(), err)
		}
	}
	return p, nil
}

func appendAs[T any](list []T, object Object) ([]T, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var typed T
	if err := json.Unmarshal(raw, &typed); err != nil {
		return nil, err
	}
	return append(list, typed), nil
}

// sharedValues joins the keys of the Secret, as they are replicated and taken
// by each HelmRelease.
func sharedValues(secret Object) (map[string]any, error) {
	data, _ := secret["stringData"].(map[string]any)
	raw, _ := data["values.yaml"].(string)
	values := map[string]any{}
	return values, yaml.Unmarshal([]byte(raw), &values)
}

// Releases lists what the packages install, in their order. The error joins
// one line for each package that cannot be resolved; the rest is listed still.
func (p *Platform) Releases() ([]Release, error) {
	var (
		releases []Release
		errs     []error
	)
	for _, pkg := range p.Packages {
		variant, err := p.variant(pkg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, component := range variant.Components {
			if release, ok := pkg.release(component); ok {
				release.Libraries = variant.Libraries
				release.Values = merged(p.Values, release.Values)
				releases = append(releases, release)
			}
		}
	}
	return releases, errors.Join(errs...)
}

func (p *Platform) variant(pkg Package) (Variant, error) {
	name := pkg.Metadata.Name
	i := slices.IndexFunc(p.Sources, func(s PackageSource) bool { return s.Metadata.Name == name })
	if i < 0 {
		return Variant{}, fmt.Errorf("package %q has no package source", name)
	}
	want := pkg.Spec.Variant
	if want == "" {
		want = "default"
	}
	variants := p.Sources[i].Spec.Variants
	j := slices.IndexFunc(variants, func(v Variant) bool { return v.Name == want })
	if j < 0 {
		return Variant{}, fmt.Errorf("package %q has no variant %q", name, want)
	}
	return variants[j], nil
}

func (pkg Package) release(component Component) (Release, bool) {
	settings := pkg.Spec.Components[component.Name]
	if component.Install == nil || settings.Enabled != nil && !*settings.Enabled {
		return Release{}, false
	}
	name := component.Install.ReleaseName
	if name == "" {
		name = component.Name
	}
	return Release{
		Package:   pkg.Metadata.Name,
		Name:      name,
		Namespace: component.Install.Namespace,
		Component: component,
		Values:    settings.Values,
	}, true
}
