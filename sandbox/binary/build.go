package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// make builds every target that is not finished yet, in one go build, so that
// packages which several of them need are compiled once. What an interruption
// leaves behind is the finished binaries here and the compiled packages in the
// Go build cache.
func (m goModMaker) make(ctx context.Context, st stage) error {
	var targets []target
	for _, t := range m.pins.targets(m.arch) {
		if !st.has(t.Binary) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 {
		return nil
	}
	tool, out, err := m.workspace(st)
	if err != nil {
		return err
	}
	monitor := &monitor{notify: m.notify, started: time.Now(), out: out, targets: targets, of: len(m.names())}
	stop := monitor.start()
	defer stop()
	if err := monitor.count(ctx, tool, targets); err != nil {
		return goHint(err)
	}
	err = tool.run(ctx, buildArgs(out, targets), nil, monitor.compiled)
	stop()
	return errors.Join(goHint(err), m.collect(st, out, targets, err))
}

// workspace makes fresh folders for Go's temporary files and its output. They
// share a file system with the result, so that Go renames each finished binary
// into place and a half-written one never has its name.
func (m goModMaker) workspace(st stage) (goTool, string, error) {
	temp, out := filepath.Join(st.work, "tmp"), filepath.Join(st.work, "out")
	for _, dir := range []string{temp, out} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return goTool{}, "", err
		}
	}
	tool := goTool{dir: m.dir, env: []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + m.arch, "GOWORK=off", "GOTMPDIR=" + temp,
	}}
	return tool, out, nil
}

// collect keeps what a build finished, also when the whole of it failed, unless
// Go itself was killed and may have left anything.
func (m goModMaker) collect(st stage, out string, targets []target, buildErr error) error {
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

// listArgs is the go command that lists the packages which have to be compiled.
func listArgs(targets []target) []string {
	args := []string{"list", "-deps", "-trimpath", "-buildvcs=false", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}
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

// monitor turns what the go command prints into events.
type monitor struct {
	notify  Progress
	started time.Time
	out     string
	targets []target
	of      int

	mutex    sync.Mutex
	stale    map[string]bool
	done     int
	last     string
	building bool
	finished map[string]bool
}

// count learns how many packages have to be compiled; it downloads the modules
// that are missing.
func (m *monitor) count(ctx context.Context, tool goTool, targets []target) error {
	stale := map[string]bool{}
	m.set("reading the module")
	err := tool.run(ctx, listArgs(targets), func(line string) {
		stale[line] = true
	}, func(line string) {
		if module, ok := strings.CutPrefix(line, "go: downloading "); ok {
			m.set("downloading module " + module)
		}
	})
	m.mutex.Lock()
	m.stale, m.building = stale, err == nil
	m.mutex.Unlock()
	return err
}

func (m *monitor) set(last string) {
	m.mutex.Lock()
	m.last = last
	m.mutex.Unlock()
}

// compiled takes a line of go build -v, which names each package when its
// compilation begins.
func (m *monitor) compiled(line string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.stale[line] {
		delete(m.stale, line)
		m.done++
		m.last = line
	}
}

// start reports every half second until the returned function is called, which
// may be done twice.
func (m *monitor) start() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				m.report()
				return
			case <-ticker.C:
				m.report()
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

// report sends the state, and each binary that has appeared since.
func (m *monitor) report() {
	m.mutex.Lock()
	event := Event{Stage: StagePrepare, Name: m.last, Elapsed: time.Since(m.started)}
	if m.building {
		event.Stage, event.Done, event.Total = StageBuild, int64(m.done), int64(m.done+len(m.stale))
	}
	m.mutex.Unlock()
	m.notify(event)
	for _, t := range m.targets {
		if _, err := os.Lstat(filepath.Join(m.out, execName(t.Package))); err != nil || m.finished[t.Binary] {
			continue
		}
		if m.finished == nil {
			m.finished = map[string]bool{}
		}
		m.finished[t.Binary] = true
		m.notify(Event{
			Stage: StageBinary, Name: t.Binary, Elapsed: time.Since(m.started),
			Done: int64(m.of - len(m.targets) + len(m.finished)), Total: int64(m.of),
		})
	}
}
