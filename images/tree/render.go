package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

// Render makes the objects of a release, ordered by template, after checking
// the values against the chart's schema. Look-ups find nothing.
func (t *Tree) Render(r Release) ([]Object, error) {
	objects, err := t.render(r)
	if err != nil {
		return nil, fmt.Errorf("rendering release %q of package %q: %w", r.Name, r.Package, plain(err))
	}
	return objects, nil
}

func (t *Tree) render(r Release) ([]Object, error) {
	c, err := t.Chart(r.Component, r.Libraries)
	if err != nil {
		return nil, err
	}
	values := merged(nil, r.Values)
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	final, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, final)
	if err != nil {
		return nil, err
	}
	return parse(rendered)
}

// parse reads the rendered templates. Notes and partials make no object.
func parse(rendered map[string]string) ([]Object, error) {
	var objects []Object
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(file, ".yaml") && !strings.HasSuffix(file, ".yml") {
			continue
		}
		manifests := releaseutil.SplitManifests(rendered[file])
		keys := slices.Collect(maps.Keys(manifests))
		slices.SortFunc(keys, byNumber)
		for _, key := range keys {
			object := Object{}
			if err := yaml.Unmarshal([]byte(manifests[key]), &object); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if len(object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// byNumber orders the keys that Helm gives the parts of a file: manifest-0 and
// so on.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Chart puts together the chart of a component as the operator's artifact
// does: the component's folder, its libraries as subcharts, and its values
// files merged into one.
func (t *Tree) Chart(component Component, libraries []Library) (*chart.Chart, error) {
	files, err := t.load(component.Path, "")
	if err != nil {
		return nil, err
	}
	for _, name := range component.Libraries {
		i := slices.IndexFunc(libraries, func(l Library) bool { return l.called() == name })
		if i < 0 {
			return nil, fmt.Errorf("component %q uses library %q, which its variant does not have", component.Name, name)
		}
		more, err := t.load(libraries[i].Path, path.Join("charts", name))
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	if files, err = mergeValuesFiles(files, component.ValuesFiles); err != nil {
		return nil, err
	}
	return loader.LoadFiles(files)
}

func (l Library) called() string {
	if l.Name != "" {
		return l.Name
	}
	return path.Base(l.Path)
}

// load reads a folder of the tree, with prefix before the names.
func (t *Tree) load(folder, prefix string) ([]*loader.BufferedFile, error) {
	if _, err := fs.Stat(t.files, path.Join(folder, "Chart.yaml")); err != nil {
		return nil, fmt.Errorf("folder %q of the tree holds no chart: %w", folder, err)
	}
	var files []*loader.BufferedFile
	err := fs.WalkDir(t.files, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := fs.ReadFile(t.files, name)
		if err != nil {
			return err
		}
		inside := strings.TrimPrefix(name, folder+"/")
		files = append(files, &loader.BufferedFile{Name: path.Join(prefix, inside), Data: raw})
		return nil
	})
	return files, err
}

func mergeValuesFiles(files []*loader.BufferedFile, names []string) ([]*loader.BufferedFile, error) {
	if len(names) == 0 {
		return files, nil
	}
	values := map[string]any{}
	for _, name := range names {
		i := slices.IndexFunc(files, func(f *loader.BufferedFile) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("values file %q is not in the chart", name)
		}
		more := map[string]any{}
		if err := yaml.Unmarshal(files[i].Data, &more); err != nil {
			return nil, fmt.Errorf("values file %q: %w", name, err)
		}
		values = merged(values, more)
	}
	raw, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(files, func(f *loader.BufferedFile) bool { return f.Name == chartutil.ValuesfileName })
	return append(rest, &loader.BufferedFile{Name: chartutil.ValuesfileName, Data: raw}), nil
}

// merged lays over on base, map by map, and leaves both as they are.
func merged(base, over map[string]any) map[string]any {
	result := maps.Clone(base)
	if result == nil {
		result = map[string]any{}
	}
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, hasMap := result[key].(map[string]any)
		if isMap && hasMap {
			value = merged(below, inner)
		} else if isMap {
			value = merged(nil, inner)
		}
		result[key] = value
	}
	return result
}

// execution matches what Helm puts around the message of a template's `fail`.
var execution = regexp.MustCompile(`(?s)^execution error at \(([^)]*)\): (.*)$`)

// schemaHead is what Helm puts before the list of a schema's complaints.
const schemaHead = "values don't meet the specifications of the schema(s) in the following chart(s):\n"

// plain reduces an error of Helm to what its author said, in one line.
func plain(err error) error {
	text := err.Error()
	if match := execution.FindStringSubmatch(text); match != nil {
		return errors.New(match[2])
	}
	if details, ok := strings.CutPrefix(text, schemaHead); ok {
		_, details, _ = strings.Cut(details, ":\n- ")
		lines := strings.Split(strings.TrimSpace(details), "\n- ")
		slices.Sort(lines)
		return fmt.Errorf("values do not fit the chart: %s", strings.Join(lines, "; "))
	}
	return err
}
