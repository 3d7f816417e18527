package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const annotated = `
## @section First

## @enum {string} Size - How big.
## @value small - a few
## @value large

## @typedef {struct} Limits - Bounds.
## @field {int} low - The lowest.
## @field {quantity} [high] - The highest | or none.

## @param {Size} size - How big.
size: small

## @param {Limits} limits - Bounds.
limits:
  low: 1

## @section Second

## @param {map[string]Limits} named - Bounds by name.
named: {}

## @param {[]string} [list] - Names.

## @param {bool} active - Whether at all.
active: false
`

const wantTables = "# chart\n\nText.\n\n## Parameters\n\n" +
	"### First\n\n| Name | Description | Type | Value |\n| --- | --- | --- | --- |\n" +
	"| `size` | How big. | `Size` | `small` |\n" +
	"| `limits` | Bounds. | `Limits` |  |\n" +
	"| `limits.low` | The lowest. | `int` | `1` |\n" +
	"| `limits.high` | The highest \\| or none. | `quantity` |  |\n\n" +
	"### Second\n\n| Name | Description | Type | Value |\n| --- | --- | --- | --- |\n" +
	"| `named` | Bounds by name. | `map[string]Limits` | `{}` |\n" +
	"| `named[name].low` | The lowest. | `int` |  |\n" +
	"| `named[name].high` | The highest \\| or none. | `quantity` |  |\n" +
	"| `list` | Names. | `[]string` |  |\n" +
	"| `active` | Whether at all. | `bool` | `false` |\n\n" +
	"## After\n\nKept.\n"

func TestTables(t *testing.T) {
	doc, err := parse([]byte(annotated))
	if err != nil {
		t.Fatal(err)
	}
	readme := "# chart\n\nText.\n\n## Parameters\n\nold\n\n## After\n\nKept.\n"
	got := string(replaceParameters([]byte(readme), doc.tables()))
	if got != wantTables {
		t.Errorf("got:\n%s\nwant:\n%s", got, wantTables)
	}
	if again := string(replaceParameters([]byte(got), doc.tables())); again != got {
		t.Errorf("the second time it comes out differently:\n%s", again)
	}
}

func TestSchema(t *testing.T) {
	doc, err := parse([]byte(annotated))
	if err != nil {
		t.Fatal(err)
	}
	open, err := doc.schema(strictness{})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := doc.schema(strictness{root: true, structs: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(open), `"additionalProperties": false`); n != 0 {
		t.Errorf("the open schema refuses unknown names in %d places", n)
	}
	if n := strings.Count(string(closed), `"additionalProperties": false`); n != 3 {
		t.Errorf("the strict schema refuses unknown names in %d places, want the root and each use of Limits", n)
	}
	for _, part := range []string{`"default": false`, `"x-kubernetes-int-or-string": true`, `"small",`} {
		if !strings.Contains(string(open), part) {
			t.Errorf("no %s in:\n%s", part, open)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct{ name, values, want string }{
		{"not described", "a: 1\n", `value "a" is not described`},
		{"no value", "## @section S\n## @param {int} a - A.\n", `parameter "a" has no value`},
		{"no section", "## @param {int} a - A.\na: 1\n", `line 1: parameter "a" stands before the first section`},
		{"lost field", "## @section S\n## @field {int} a - A.\n", `line 2: field "a" stands outside of a typedef`},
		{"no description", "## @section S\n## @param {int} a\na: 1\n", "line 2: annotation"},
		{"type twice", "## @enum {string} A - A.\n## @enum {string} A - A.\n", `line 2: type "A" is defined twice`},
		{"unknown type", "## @section S\n## @param {integer} a - A.\na: 1\n", `"a": type "integer" is unknown`},
		{"broken", "a: [", "yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc, err := parse([]byte(test.values))
			if err == nil {
				_, err = doc.schema(strictness{})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestTree holds the generated files of the package tree to their sources.
func TestTree(t *testing.T) {
	files, err := filepath.Glob("../../packages/*/*/values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d charts with values, error %v", len(files), err)
	}
	for _, file := range files {
		if err := generate(filepath.Dir(file), true); err != nil {
			t.Errorf("%s: %v", filepath.Dir(file), err)
		}
	}
}

// TestGenerate makes the files of a chart that has neither.
func TestGenerate(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "system", "chart")
	if err := os.MkdirAll(chart, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"values.yaml": annotated, "Chart.yaml": "name: chart\ndescription: Text.\n"} {
		if err := os.WriteFile(filepath.Join(chart, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := generate(chart, true); err == nil || !strings.Contains(err.Error(), "make generate") {
		t.Errorf("with --check: error %v", err)
	}
	if err := generate(chart, false); err != nil {
		t.Fatal(err)
	}
	if err := generate(chart, true); err != nil {
		t.Error(err)
	}
}
