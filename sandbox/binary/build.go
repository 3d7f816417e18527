package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// make builds every target that is not finished yet, in one go build for each
// module, so that packages which several targets need are compiled once. What an
// interruption leaves behind is the finished binaries here and the compiled
// packages in the Go build cache.
func (m goModMaker) make(ctx context.Context, st stage) error {
	all := m.pins.targets(m.arch)
	var missing []target
	for _, t := range all {
		if !st.has(t.Binary) {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	temp, out, err := scratch(st)
	if err != nil {
		return err
	}
	monitor := newMonitor(m.notify, out, missing, len(all))
	stop := monitor.start()
	defer stop()
	groups := byFolder(missing)
	for _, g := range groups {
		if err := monitor.count(ctx, m.tool(g.folder, temp), g.targets); err != nil {
			return goHint(err)
		}
	}
	monitor.begin()
	for _, g := range groups {
		err := m.tool(g.folder, temp).run(ctx, buildArgs(out, g.targets), nil, monitor.compiled)
		monitor.report()
		if err := errors.Join(goHint(err), collect(st, out, g.targets, err)); err != nil {
			return err
		}
	}
	return nil
}

// buildGroup is the targets of one Go module.
type buildGroup struct {
	folder  string
	targets []target
}

// byFolder groups targets, keeping their order.
func byFolder(targets []target) []buildGroup {
	var groups []buildGroup
	for _, t := range targets {
		i := slices.IndexFunc(groups, func(g buildGroup) bool { return g.folder == t.Folder })
		if i < 0 {
			i, groups = len(groups), append(groups, buildGroup{folder: t.Folder})
		}
		groups[i].targets = append(groups[i].targets, t)
	}
	return groups
}

// scratch makes fresh folders for Go's temporary files and its output. They
// share a file system with the result, so that Go renames each finished binary
// into place and a half-written one never has its name.
func scratch(st stage) (temp, out string, err error) {
	temp, out = filepath.Join(st.work, "tmp"), filepath.Join(st.work, "out")
	for _, dir := range []string{temp, out} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return "", "", err
		}
	}
	return temp, out, nil
}

// tool is the go command in a module, set up to build static programs.
func (m goModMaker) tool(folder, temp string) goTool {
	return goTool{dir: filepath.Join(m.dir, folder), env: []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + m.arch, "GOWORK=off", "GOTMPDIR=" + temp,
	}}
}

// collect keeps what a build finished, also when the whole of it failed, unless
// Go itself was killed and may have left anything.
func collect(st stage, out string, targets []target, buildErr error) error {
	var killed killedError
	if errors.As(buildErr, &killed) {
		return nil
	}
	for _, t := range targets {
		file := filepath.Join(out, execName(t.Package))
		err := st.finish(file, t.Binary)
		if err != nil && !(buildErr != nil && errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// buildArgs is the go command for the targets. Flags of the linker are given
// per package, so that projects with different ones share a build.
func buildArgs(out string, targets []target) []string {
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-o", out + string(filepath.Separator)}
	for _, t := range targets {
		args = append(args, fmt.Sprintf("-ldflags=%s=%s", t.Package, t.LDFlags))
	}
	for _, t := range targets {
		args = append(args, t.Package)
	}
	return args
}

// staleFormat prints a package unless it is in the build cache. Go calls every
// program stale that is not in GOBIN, and says in these words that its package
// is compiled.
const staleFormat = `{{if and .Stale (ne .StaleReason "not installed but available in build cache")}}{{.ImportPath}}{{end}}`

// listArgs is the go command that lists the packages which have to be compiled.
func listArgs(targets []target) []string {
	args := []string{"list", "-deps", "-trimpath", "-buildvcs=false", "-f", staleFormat}
	for _, t := range targets {
		args = append(args, t.Package)
	}
	return args
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// execName is the file name that go build gives a package's program: its last
// path element that is not a major version.
func execName(pkg string) string {
	base := path.Base(pkg)
	if dir := path.Dir(pkg); majorVersion.MatchString(base) && dir != "." {
		return path.Base(dir)
	}
	return base
}
