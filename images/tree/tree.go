package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// platformPath is where every tree keeps its platform chart.
const platformPath = "core/platform"

// Tree is a package tree: a file system with the folders core, system, apps,
// extra and library at its root.
type Tree struct {
	files fs.FS
}

// Open returns the tree that files hold.
func Open(files fs.FS) *Tree { return &Tree{files: files} }

// Platform renders the platform chart of one variant (`isp-full` and the like;
// `default` or empty has no values file of its own) with the user's values
// over it. A package that the values name but the tree does not have is an
// error.
func (t *Tree) Platform(variant string, values map[string]any) (*Platform, error) {
	component := Component{Name: "platform", Path: platformPath, ValuesFiles: []string{"values.yaml"}}
	if variant != "" && variant != "default" {
		file := "values-" + variant + ".yaml"
		if _, err := fs.Stat(t.files, path.Join(platformPath, file)); err != nil {
			return nil, fmt.Errorf("platform variant %q has no %s; use one of: %s", variant, file, t.variants())
		}
		component.ValuesFiles = append(component.ValuesFiles, file)
	}
	objects, err := t.Render(Release{
		Package:   "cozystack.cozystack-platform",
		Name:      "cozystack-platform",
		Namespace: "cozy-system",
		Component: component,
		Values:    values,
	})
	if err != nil {
		return nil, err
	}
	return newPlatform(objects)
}

// variants lists the platform's variants for an error.
func (t *Tree) variants() string {
	list := "default"
	files, _ := fs.Glob(t.files, path.Join(platformPath, "values-*.yaml"))
	for _, file := range files {
		name := path.Base(file)
		list += ", " + name[len("values-"):len(name)-len(".yaml")]
	}
	return list
}

// Check renders the platform and every release of it. The error joins one line
// for each thing that is wrong.
func (t *Tree) Check(variant string, values map[string]any) error {
	platform, err := t.Platform(variant, values)
	if err != nil {
		return err
	}
	releases, err := platform.Releases()
	errs := []error{err}
	for _, release := range releases {
		_, err := t.Render(release)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
