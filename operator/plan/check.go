package plan

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// sourceAlias is what source-watcher takes as the alias of a source.
var sourceAlias = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`)

// CheckSource returns what is wrong with a PackageSource by itself, in any of its variants, one sentence each. An
// empty result means that Generator can be called.
func CheckSource(src *v1alpha1.PackageSource) []string {
	var problems []string
	if len(src.Name) > maxLabelValue {
		problems = append(problems, fmt.Sprintf("the name is longer than %d characters", maxLabelValue))
	}
	problems = append(problems, checkSourceRef(src)...)
	artifacts := map[string]string{}
	for i := range src.Spec.Variants {
		variant := &src.Spec.Variants[i]
		problems = append(problems, CheckVariant(variant)...)
		for _, component := range variant.Components {
			artifact := ArtifactName(src.Name, variant.Name, component.Name)
			here := fmt.Sprintf("component %q of variant %q", component.Name, variant.Name)
			if there, taken := artifacts[artifact]; taken {
				problems = append(problems, fmt.Sprintf("%s and %s both make the artifact %q", there, here, artifact))
			}
			artifacts[artifact] = here
		}
	}
	return problems
}

func checkSourceRef(src *v1alpha1.PackageSource) []string {
	ref := src.Spec.SourceRef
	if ref == nil {
		for _, variant := range src.Spec.Variants {
			if len(variant.Components) > 0 {
				return []string{"spec.sourceRef is missing: it names the Flux source that holds the charts"}
			}
		}
		return nil
	}
	var problems []string
	if !sourceAlias.MatchString(ref.Name) {
		problems = append(problems, fmt.Sprintf(
			"spec.sourceRef.name %q is not a name of lower-case letters, digits and dashes", ref.Name))
	}
	if escapes(ref.Path) {
		problems = append(problems, fmt.Sprintf("spec.sourceRef.path %q leaves the source by \"..\"", ref.Path))
	}
	return problems
}

// CheckVariant returns what is wrong with a variant by itself: paths that leave the source, unknown libraries,
// unknown or circular component dependencies, missing namespaces and release names claimed twice.
func CheckVariant(variant *v1alpha1.Variant) []string {
	var problems []string
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("variant %q: ", variant.Name)+fmt.Sprintf(format, args...))
	}
	for _, lib := range variant.Libraries {
		if !insideSource(lib.Path) {
			add("the path %q of library %q is not a path inside the source", lib.Path, libraryName(lib))
		}
	}
	for i := range variant.Components {
		for _, problem := range checkComponent(variant, &variant.Components[i]) {
			add("component %q %s", variant.Components[i].Name, problem)
		}
	}
	if cycle := componentCycle(variant); len(cycle) > 0 {
		add("components depend on each other in a circle: %s", strings.Join(cycle, " → "))
	}
	return problems
}

func checkComponent(variant *v1alpha1.Variant, component *v1alpha1.Component) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if !insideSource(component.Path) {
		add("has the path %q, which is not a path inside the source", component.Path)
	}
	for _, file := range component.ValuesFiles {
		if !insideSource(file) {
			add("has the values file %q, which is not a path inside its chart", file)
		}
	}
	for _, name := range component.Libraries {
		if findLibrary(variant, name) == nil {
			add("uses the library %q, which the variant does not list", name)
		}
	}
	if component.Install == nil {
		return problems
	}
	if component.Install.Namespace == "" {
		add("has no install.namespace")
	}
	for _, name := range component.Install.DependsOn {
		if findComponent(variant, name) == nil {
			add("depends on the component %q, which the variant does not have", name)
		}
	}
	return problems
}

func findComponent(variant *v1alpha1.Variant, name string) *v1alpha1.Component {
	for i := range variant.Components {
		if variant.Components[i].Name == name {
			return &variant.Components[i]
		}
	}
	return nil
}

// insideSource tells whether p is a relative path to something below where it starts, without glob characters.
func insideSource(p string) bool {
	return !path.IsAbs(p) && !escapes(p) && path.Clean(p) != "." && !strings.ContainsAny(p, `*?[]{}\`)
}

func escapes(p string) bool {
	for _, element := range strings.Split(p, "/") {
		if element == ".." {
			return true
		}
	}
	return false
}

// componentCycle returns one circle of component dependencies, its first name repeated at the end, or nil.
func componentCycle(variant *v1alpha1.Variant) []string {
	next := func(name string) []string {
		component := findComponent(variant, name)
		if component == nil || component.Install == nil {
			return nil
		}
		return component.Install.DependsOn
	}
	for i := range variant.Components {
		if cycle := cycleThrough(variant.Components[i].Name, next); cycle != nil {
			return cycle
		}
	}
	return nil
}

// cycleThrough returns the shortest way from start back to start along next, both ends included, or nil.
func cycleThrough(start string, next func(string) []string) []string {
	from := map[string]string{}
	queue := []string{start}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		for _, child := range next(name) {
			if child == start {
				return wayBack(start, name, from)
			}
			if _, seen := from[child]; !seen {
				from[child] = name
				queue = append(queue, child)
			}
		}
	}
	return nil
}

func wayBack(start, last string, from map[string]string) []string {
	cycle := []string{start}
	for name := last; name != start; name = from[name] {
		cycle = append([]string{name}, cycle...)
	}
	return append([]string{start}, cycle...)
}
