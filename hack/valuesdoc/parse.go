package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is what the annotations of one values.yaml say.
type document struct {
	sections []section
	types    map[string]*typedef
	values   map[string]any
}

// section groups parameters under a heading.
type section struct {
	title  string
	params []field
}

// typedef is a struct with fields, or an enum with values.
type typedef struct {
	name        string
	base        string
	description string
	fields      []field
	values      []string
}

// field of a struct, or a parameter.
type field struct {
	name        string
	typ         string
	optional    bool
	description string
}

// The annotations, one a line:
//
//	## @section TITLE
//	## @typedef {struct} NAME - DESCRIPTION
//	## @field {TYPE} NAME - DESCRIPTION          after its typedef
//	## @enum {string} NAME - DESCRIPTION
//	## @value VALUE [- DESCRIPTION]              after its enum
//	## @param {TYPE} NAME - DESCRIPTION
//
// NAME in brackets is optional. TYPE is string, int, number, bool, quantity,
// object, the name of a typedef or enum, []TYPE or map[string]TYPE.
var (
	sectionLine = regexp.MustCompile(`^## @section (.+)$`)
	typeLine    = regexp.MustCompile(`^## @(typedef|enum) \{(\w+)\} (\w+) - (.+)$`)
	fieldLine   = regexp.MustCompile(`^## @(field|param) \{([^}]+)\} (\[?[\w-]+\]?) - (.+)$`)
	valueLine   = regexp.MustCompile(`^## @value (\S+)(?: - .+)?$`)
)

func parse(raw []byte) (*document, error) {
	d := &document{types: map[string]*typedef{}}
	var open *typedef
	for i, line := range strings.Split(string(raw), "\n") {
		if !strings.HasPrefix(line, "## @") {
			continue
		}
		var err error
		if open, err = d.take(line, open); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if err := yaml.Unmarshal(raw, &d.values); err != nil {
		return nil, err
	}
	return d, d.complete()
}

// take reads one annotation; open is the type that fields and values belong to.
func (d *document) take(line string, open *typedef) (*typedef, error) {
	if m := sectionLine.FindStringSubmatch(line); m != nil {
		d.sections = append(d.sections, section{title: m[1]})
		return nil, nil
	}
	if m := typeLine.FindStringSubmatch(line); m != nil {
		if d.types[m[3]] != nil {
			return nil, fmt.Errorf("type %q is defined twice", m[3])
		}
		d.types[m[3]] = &typedef{name: m[3], base: m[2], description: m[4]}
		return d.types[m[3]], nil
	}
	if m := valueLine.FindStringSubmatch(line); m != nil && open != nil {
		open.values = append(open.values, m[1])
		return open, nil
	}
	m := fieldLine.FindStringSubmatch(line)
	if m == nil {
		return nil, fmt.Errorf("annotation %q is not understood", line)
	}
	name := strings.Trim(m[3], "[]")
	f := field{name: name, typ: m[2], optional: name != m[3], description: m[4]}
	switch {
	case m[1] == "field" && open == nil:
		return nil, fmt.Errorf("field %q stands outside of a typedef", name)
	case m[1] == "field":
		open.fields = append(open.fields, f)
		return open, nil
	case len(d.sections) == 0:
		return nil, fmt.Errorf("parameter %q stands before the first section", name)
	}
	last := &d.sections[len(d.sections)-1]
	last.params = append(last.params, f)
	return nil, nil
}

func (d *document) params() []field {
	var all []field
	for _, s := range d.sections {
		all = append(all, s.params...)
	}
	return all
}

// complete tells whether values and parameters are the same set.
func (d *document) complete() error {
	var errs []error
	described := map[string]bool{}
	for _, p := range d.params() {
		described[p.name] = true
		if _, ok := d.values[p.name]; !ok && !p.optional {
			errs = append(errs, fmt.Errorf("parameter %q has no value", p.name))
		}
	}
	for name := range d.values {
		if !described[name] {
			errs = append(errs, fmt.Errorf("value %q is not described by a `## @param`", name))
		}
	}
	return errors.Join(errs...)
}
