// Command valuesdoc makes a chart's values.schema.json and the table of
// parameters in its README.md from the annotations in its values.yaml, so that
// a value is described in one place only.
//
//	valuesdoc [--check] CHART...
//
// Each CHART is a folder <group>/<name>; whatever has no values is passed over,
// so that packages/*/* will do. With --check nothing is written, and a file that
// is not up to date is an error.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sigs.k8s.io/yaml"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is not up to date")
	flag.Parse()
	for _, chart := range flag.Args() {
		if err := generate(chart, *check); err != nil {
			fmt.Fprintf(os.Stderr, "valuesdoc: %s: %v\n", chart, err)
			os.Exit(1)
		}
	}
}

func generate(chart string, check bool) error {
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	doc, err := parse(values)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	schema, err := doc.schema(strictnessOf(chart))
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	readme, err := doc.readme(chart)
	if err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(chart, "values.schema.json"), schema, check),
		write(filepath.Join(chart, "README.md"), readme, check),
	)
}

// strictnessOf says which unknown values a chart refuses. The values of an
// application are an API object's spec, whose schema must be a structural one
// and cannot refuse anything. A chart outside of core also gets the platform's
// shared values and those of its libraries, at the root.
func strictnessOf(chart string) strictness {
	switch group := filepath.Base(filepath.Dir(filepath.Clean(chart))); group {
	case "core":
		return strictness{root: true, structs: true}
	case "system":
		return strictness{structs: true}
	default:
		return strictness{}
	}
}

// readme puts the tables into the chart's README.md, whose other parts stay,
// or makes a new one from Chart.yaml.
func (d *document) readme(chart string) ([]byte, error) {
	old, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if errors.Is(err, fs.ErrNotExist) {
		old, err = newReadme(chart)
	}
	if err != nil {
		return nil, err
	}
	return replaceParameters(old, d.tables()), nil
}

func newReadme(chart string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	var meta struct{ Name, Description string }
	if err := yaml.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	return fmt.Appendf(nil, "# %s\n\n%s\n", meta.Name, meta.Description), nil
}

func write(file string, content []byte, check bool) error {
	old, err := os.ReadFile(file)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is not up to date; run `make generate`", filepath.Base(file))
	}
	return os.WriteFile(file, content, 0o644)
}
