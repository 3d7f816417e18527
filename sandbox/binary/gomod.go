package binary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// modulePath is hack/node's place in a checkout of cozydev.
const modulePath = "hack/node"

// goModSource builds the binaries from the pinned Go module.
type goModSource struct {
	cachedSource
	dir string
}

func (o Options) goModSource() goModSource {
	maker := goModMaker{pins: o.pins, arch: runtime.GOARCH, dir: o.ModuleDir, notify: o.Progress}
	return goModSource{cachedSource: o.cached(SourceGoMod, maker), dir: o.ModuleDir}
}

// usable tells why the module cannot be built, before anything is tried.
func (g goModSource) usable() error {
	if g.dir == "" {
		return errors.New("source \"gomod\" needs the module " + modulePath + " of a checkout of cozydev\n" +
			"run inside a checkout, or choose another source of the node binaries")
	}
	if _, err := os.Stat(filepath.Join(g.dir, "go.mod")); err != nil {
		return fmt.Errorf("reading the module of the node binaries: %w\nname the folder %s of a checkout of cozydev", err, modulePath)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("source \"gomod\" needs Go: %w\ninstall Go 1.26 or later from https://go.dev/dl/ and put it in PATH", err)
	}
	return nil
}

func (g goModSource) lookup(ctx context.Context) (Set, bool, error) {
	if err := g.usable(); err != nil {
		return Set{}, false, err
	}
	return g.cachedSource.lookup(ctx)
}

// FindModule returns the module of the node binaries in the checkout of
// cozydev that one of the paths lies in, the first that does, or "". Useful
// paths are the package tree, the working directory and the program itself.
func FindModule(paths ...string) string {
	for _, start := range paths {
		dir, err := filepath.Abs(start)
		if err != nil || start == "" {
			continue
		}
		for {
			module := filepath.Join(dir, modulePath)
			if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
				return module
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return ""
}

// goModMaker runs the Go tool.
type goModMaker struct {
	pins   *Pins
	arch   string
	dir    string
	notify Progress
}

func (m goModMaker) names() []string { return m.pins.names(everyBinary) }

// goModInputs is what decides a build's result. Compiled code depends on no
// path and no time, thanks to -trimpath.
type goModInputs struct {
	Targets []target
	Arch    string
	Go      string
	// Files maps the module's own files to their sums.
	Files map[string]string
}

func (m goModMaker) inputs() (any, error) {
	version, err := goVersion()
	if err != nil {
		return nil, err
	}
	files, err := moduleFiles(m.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the module of the node binaries: %w", err)
	}
	return goModInputs{Targets: m.pins.targets(m.arch), Arch: m.arch, Go: version, Files: files}, nil
}

// moduleFiles sums what a build reads of the module itself. Its dependencies
// are covered by go.sum.
func moduleFiles(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name := entry.Name()
		source := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if !source && name != "go.mod" && name != "go.sum" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		sum := sha256.Sum256(data)
		files[relative] = hex.EncodeToString(sum[:])
		return err
	})
	return files, err
}

// goVersion reads the toolchain's version from its own file, since starting
// the go command costs more than all the rest of a warm call.
func goVersion() (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(real), "..", "VERSION"))
		if line, _, _ := strings.Cut(string(data), "\n"); err == nil && strings.HasPrefix(line, "go") {
			return line, nil
		}
	}
	out, err := exec.Command(path, "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("asking Go for its version: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
