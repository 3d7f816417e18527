package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// strictness says where names that the schema does not know are refused.
type strictness struct {
	root    bool
	structs bool
}

// jsonSchema is the part of JSON Schema that the annotations can express.
type jsonSchema struct {
	Schema               string                 `json:"$schema,omitempty"`
	Title                string                 `json:"title,omitempty"`
	Description          string                 `json:"description,omitempty"`
	Type                 string                 `json:"type,omitempty"`
	IntOrString          bool                   `json:"x-kubernetes-int-or-string,omitempty"`
	AnyOf                []*jsonSchema          `json:"anyOf,omitempty"`
	Pattern              string                 `json:"pattern,omitempty"`
	Enum                 []string               `json:"enum,omitempty"`
	Default              any                    `json:"default,omitempty"`
	Required             []string               `json:"required,omitempty"`
	Properties           map[string]*jsonSchema `json:"properties,omitempty"`
	AdditionalProperties any                    `json:"additionalProperties,omitempty"`
	Items                *jsonSchema            `json:"items,omitempty"`
}

// quantityPattern is what Kubernetes accepts as a resource quantity.
const quantityPattern = `^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$`

func (d *document) schema(strict strictness) ([]byte, error) {
	root := &jsonSchema{
		Schema:     "http://json-schema.org/draft-07/schema#",
		Title:      "Chart Values",
		Type:       "object",
		Properties: map[string]*jsonSchema{},
	}
	if strict.root {
		root.AdditionalProperties = false
	}
	for _, p := range d.params() {
		property, err := d.property(p, strict)
		if err != nil {
			return nil, err
		}
		property.Default = d.values[p.name]
		root.Properties[p.name] = property
	}

	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)
	return buf.Bytes(), err
}

func (d *document) property(f field, strict strictness) (*jsonSchema, error) {
	s, err := d.typeSchema(f.typ, strict)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", f.name, err)
	}
	s.Description = f.description
	return s, nil
}

func (d *document) typeSchema(typ string, strict strictness) (*jsonSchema, error) {
	if element, ok := strings.CutPrefix(typ, "[]"); ok {
		items, err := d.typeSchema(element, strict)
		return &jsonSchema{Type: "array", Items: items}, err
	}
	if element, ok := strings.CutPrefix(typ, "map[string]"); ok {
		items, err := d.typeSchema(element, strict)
		return &jsonSchema{Type: "object", AdditionalProperties: items}, err
	}
	switch typ {
	case "string", "number", "object":
		return &jsonSchema{Type: typ}, nil
	case "int":
		return &jsonSchema{Type: "integer"}, nil
	case "bool":
		return &jsonSchema{Type: "boolean"}, nil
	case "quantity":
		return &jsonSchema{
			AnyOf:       []*jsonSchema{{Type: "integer"}, {Type: "string"}},
			Pattern:     quantityPattern,
			IntOrString: true,
		}, nil
	}
	named, ok := d.types[typ]
	if !ok {
		return nil, fmt.Errorf("type %q is unknown", typ)
	}
	return d.namedSchema(named, strict)
}

func (d *document) namedSchema(t *typedef, strict strictness) (*jsonSchema, error) {
	if t.base != "struct" {
		return &jsonSchema{Type: t.base, Enum: t.values}, nil
	}
	s := &jsonSchema{Type: "object", Properties: map[string]*jsonSchema{}}
	if strict.structs {
		s.AdditionalProperties = false
	}
	for _, f := range t.fields {
		property, err := d.property(f, strict)
		if err != nil {
			return nil, fmt.Errorf("type %q: %w", t.name, err)
		}
		s.Properties[f.name] = property
		if !f.optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}
