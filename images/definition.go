package images

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Source says where the binary of an image comes from.
type Source string

const (
	// SourceNode is the set of node binaries, pinned and built apart.
	SourceNode Source = "node"
	// SourceProject is the output folder of the project that holds the tree.
	SourceProject Source = "project"
)

// Definition describes an image that consists of one static binary.
type Definition struct {
	// File is where the definition stands in the tree. It is not in the file.
	File string `json:"-"`
	// Ref is the image as charts name it: host/repository:tag. An image that
	// is also published upstream goes by its upstream name, so that the same
	// chart works with either.
	Ref string `json:"ref"`
	// Source of the binary; empty means [SourceNode].
	Source Source `json:"source,omitempty"`
	// Binary is its name there.
	Binary string `json:"binary"`
	// Path of the binary in the image, and the image's entry point.
	Path string `json:"path"`
	// User that the image runs as, "uid" or "uid:gid"; empty means root.
	User string `json:"user,omitempty"`
	// Files to add.
	Files []File `json:"files,omitempty"`
}

// File is a file of this machine that becomes part of an image.
type File struct {
	// Path in the image.
	Path string `json:"path"`
	// From is the absolute path on this machine.
	From string `json:"from"`
	// Optional files are left out where the machine does not have them.
	Optional bool `json:"optional,omitempty"`
}

// Discover reads all image definitions of a tree, ordered by file name. Two
// definitions of the same reference are an error.
func Discover(tree fs.FS) ([]Definition, error) {
	files, err := fs.Glob(tree, "*/*/images/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing image definitions: %w", err)
	}

	seen := map[string]string{}
	defs := make([]Definition, 0, len(files))
	for _, file := range files {
		def, err := read(tree, file)
		if err != nil {
			return nil, fmt.Errorf("reading image definition %q: %w", file, err)
		}
		if other, ok := seen[def.Ref]; ok {
			return nil, fmt.Errorf("image %q is defined twice, in %q and %q; remove one", def.Ref, other, file)
		}
		seen[def.Ref] = file
		defs = append(defs, def)
	}
	return defs, nil
}

func read(tree fs.FS, file string) (Definition, error) {
	raw, err := fs.ReadFile(tree, file)
	if err != nil {
		return Definition{}, err
	}
	def := Definition{File: file, Source: SourceNode}
	if err := yaml.UnmarshalStrict(raw, &def); err != nil {
		return Definition{}, err
	}
	return def, def.validate()
}

var (
	refPattern  = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+:[\w][\w.-]*$`)
	userPattern = regexp.MustCompile(`^([0-9]+(:[0-9]+)?)?$`)
)

func (d Definition) validate() error {
	var errs []error
	if host, _, _ := strings.Cut(d.Ref, "/"); !refPattern.MatchString(d.Ref) || !strings.ContainsAny(host, ".:") {
		errs = append(errs, fmt.Errorf("ref %q is not of the form host/repository:tag", d.Ref))
	}
	if d.Source != SourceNode && d.Source != SourceProject {
		errs = append(errs, fmt.Errorf("source %q is neither %q nor %q", d.Source, SourceNode, SourceProject))
	}
	if d.Binary == "" || d.Binary != path.Base(d.Binary) {
		errs = append(errs, fmt.Errorf("binary %q is not a file name", d.Binary))
	}
	if !userPattern.MatchString(d.User) {
		errs = append(errs, fmt.Errorf("user %q is not uid or uid:gid", d.User))
	}
	paths := []string{d.Path}
	for _, file := range d.Files {
		paths = append(paths, file.Path, file.From)
	}
	for _, p := range paths {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			errs = append(errs, fmt.Errorf("path %q is not absolute and clean", p))
		}
	}
	return errors.Join(errs...)
}
