package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"gopkg.in/yaml.v3"
)

// FileName is the file that Find looks for.
const FileName = "cozydev.yaml"

// Find returns the path of cozydev.yaml in dir or the nearest directory above it, or "" when there is none.
func Find(dir string) string {
	for {
		path := filepath.Join(dir, FileName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// Load reads the file over base and validates the result. Faults of the file name the file and the line. Relative
// paths in the file (tree, nodeDir) count from the file's directory.
func Load(path string, base Spec) (Spec, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return base, fmt.Errorf("reading the spec: no file %q; give its path with --file or leave the flag out", path)
	}
	if err != nil {
		return base, fmt.Errorf("reading the spec: %w", err)
	}
	spec, err := Parse(path, data, base)
	if err != nil {
		return base, err
	}
	for _, field := range []*string{&spec.Tree, &spec.NodeDir} {
		if *field != "" && !filepath.IsAbs(*field) {
			*field = filepath.Join(filepath.Dir(path), *field)
		}
	}
	return spec, nil
}

// Parse is Load on bytes; name stands for the file in faults.
func Parse(name string, data []byte, base Spec) (Spec, error) {
	spec := base
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&spec); err != nil && !errors.Is(err, io.EOF) {
		return base, joinFaults(decodeFaults(name, err))
	}
	faults := spec.Faults()
	lines := fieldLines(data)
	for i := range faults {
		if line, ok := lines[faults[i].Field]; ok {
			faults[i].File, faults[i].Line = name, line
		}
	}
	return spec, joinFaults(faults)
}

// These match the messages of yaml.v3, which has no typed errors for them.
var (
	atLine       = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type`)
	wrongType    = regexp.MustCompile("^cannot unmarshal \\S+ (`.*`) into (\\S+)$")
)

// decodeFaults turns an error of the YAML decoder into faults with file and line.
func decodeFaults(name string, err error) []Fault {
	messages := []string{err.Error()}
	if typed := new(yaml.TypeError); errors.As(err, &typed) {
		messages = typed.Errors
	}
	faults := make([]Fault, 0, len(messages))
	for _, message := range messages {
		fault := Fault{File: name, Field: "yaml", Message: message, Line: 1}
		if match := atLine.FindStringSubmatch(message); match != nil {
			fault.Line, _ = strconv.Atoi(match[1])
			fault.Message = match[2]
		}
		if match := unknownField.FindStringSubmatch(fault.Message); match != nil {
			fault.Field, fault.Message = match[1], "unknown field; see `cozydev up --help` for the fields there are"
		} else if match := wrongType.FindStringSubmatch(fault.Message); match != nil {
			fault.Message = fmt.Sprintf("%s must be of type %s", match[1], match[2])
		}
		faults = append(faults, fault)
	}
	return faults
}

// fieldLines maps the top-level keys of a YAML document to their lines.
func fieldLines(data []byte) map[string]int {
	lines := map[string]int{}
	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return lines
	}
	content := document.Content[0].Content
	for i := 0; i+1 < len(content); i += 2 {
		lines[content[i].Value] = content[i].Line
	}
	return lines
}
