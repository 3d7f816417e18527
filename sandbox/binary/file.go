package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileSource takes the binaries from a directory that the user fills. It is
// used as it is, never copied, and its versions are the user's affair.
type fileSource struct {
	dir    string
	pins   *Pins
	notify Progress
}

func (f fileSource) lookup(ctx context.Context) (Set, bool, error) {
	set, err := f.provide(ctx)
	return set, err == nil, err
}

func (f fileSource) provide(context.Context) (Set, error) {
	if f.dir == "" {
		return Set{}, errors.New("source \"file\" needs a directory\nname the directory that holds the binaries")
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return Set{}, err
	}
	if info, err := os.Stat(dir); err != nil {
		return Set{}, fmt.Errorf("reading the directory of node binaries: %w", err)
	} else if !info.IsDir() {
		return Set{}, fmt.Errorf("reading the directory of node binaries: %q is not a directory", dir)
	}
	set := Set{Dir: dir, Source: SourceFile}
	var problems, optional []string
	required := f.pins.names(nodeBinary)
	for _, name := range f.pins.names(everyBinary) {
		problem := executable(filepath.Join(dir, name))
		switch {
		case problem == "":
			set.Names = append(set.Names, name)
		case slices.Contains(required, name):
			problems = append(problems, name+" "+problem)
		default:
			optional = append(optional, name)
		}
	}
	if len(problems) > 0 {
		return Set{}, fmt.Errorf("directory %q lacks node binaries: %s\nput the missing files there, or choose another source",
			dir, strings.Join(problems, ", "))
	}
	if len(optional) > 0 {
		f.notify(Event{Stage: StageNote, Message: fmt.Sprintf(
			"directory %q has no %s: images that need them are pulled", dir, strings.Join(optional, ", "))})
	}
	return set, nil
}

// executable returns what is wrong with a file, or nothing.
func executable(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "is missing"
	case err != nil:
		return "cannot be read"
	case !info.Mode().IsRegular():
		return "is not a file"
	case info.Mode()&0o111 == 0:
		return "is not executable"
	case info.Size() == 0:
		return "is empty"
	}
	return ""
}
