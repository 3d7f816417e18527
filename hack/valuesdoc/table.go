package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// tables renders one table of parameters for each section.
func (d *document) tables() []byte {
	var buf bytes.Buffer
	for _, s := range d.sections {
		fmt.Fprintf(&buf, "### %s\n\n", s.title)
		buf.WriteString("| Name | Description | Type | Value |\n| --- | --- | --- | --- |\n")
		for _, p := range s.params {
			d.rows(&buf, p.name, p, d.values[p.name])
		}
		buf.WriteString("\n")
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// rows renders the row of a field and, below it, those of its parts.
func (d *document) rows(buf *bytes.Buffer, path string, f field, value any) {
	element, suffix := f.typ, ""
	for {
		if rest, ok := strings.CutPrefix(element, "[]"); ok {
			element, suffix = rest, suffix+"[i]"
		} else if rest, ok := strings.CutPrefix(element, "map[string]"); ok {
			element, suffix = rest, suffix+"[name]"
		} else {
			break
		}
	}
	named := d.types[element]
	parts := named != nil && named.base == "struct"

	shown := value
	if parts && suffix == "" {
		// Its parts say it, each in its own row.
		shown = nil
	}
	fmt.Fprintf(buf, "| `%s` | %s | `%s` | %s |\n", path, strings.ReplaceAll(f.description, "|", `\|`), f.typ, cell(shown))
	if !parts {
		return
	}
	inner, _ := value.(map[string]any)
	for _, part := range named.fields {
		var below any
		if suffix == "" {
			below = inner[part.name]
		}
		d.rows(buf, path+suffix+"."+part.name, part, below)
	}
}

func cell(value any) string {
	if value == nil {
		return ""
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	text := strings.ReplaceAll(string(raw), "|", `\|`)
	if s, ok := value.(string); ok && s != "" {
		text = strings.ReplaceAll(s, "|", `\|`)
	}
	return "`" + text + "`"
}

const parametersHeading = "## Parameters"

// replaceParameters puts the tables under the heading of parameters, which is
// added at the end where there is none. What follows the next heading of the
// same level stays.
func replaceParameters(readme, tables []byte) []byte {
	before, rest, found := bytes.Cut(readme, []byte("\n"+parametersHeading+"\n"))
	var after []byte
	if i := bytes.Index(rest, []byte("\n## ")); found && i >= 0 {
		after = rest[i:]
	}
	return assemble(bytes.TrimRight(before, "\n"), tables, bytes.TrimRight(after, "\n"))
}

func assemble(before, tables, after []byte) []byte {
	out := append([]byte{}, before...)
	out = append(out, "\n\n"+parametersHeading+"\n\n"...)
	out = append(out, tables...)
	out = append(out, '\n')
	if len(after) > 0 {
		out = append(append(out, after...), '\n')
	}
	return out
}
