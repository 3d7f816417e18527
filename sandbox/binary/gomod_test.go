package binary

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// mains is a Go module with two programs, and one in a module of its own.
func mains() map[string]string {
	const program = "package main\n\nvar version string\n\nfunc main() { print(version) }\n"
	return map[string]string{
		"go.mod":         "module x.test/m\n\ngo 1.25\n",
		"one/main.go":    program,
		"srv/v2/main.go": program,
		"sub/go.mod":     "module x.test/sub\n\ngo 1.25\n",
		"sub/main.go":    program,
		"README.md":      "text\n",
	}
}

func modulePins() *Pins {
	return &Pins{Projects: []Project{
		{Name: "m", Version: "v1.2.3", LDFlags: []string{"-X main.version={version}"}, Binaries: []Binary{
			{Name: "one", Use: UseNode, Package: "x.test/m/one"}, {Name: "two", Use: UseNode, Package: "x.test/m/srv/v2"},
		}},
		{Name: "sub", Version: "v0.4.0", Folder: "sub", LDFlags: []string{"-X main.version={version}"}, Binaries: []Binary{
			{Name: "three", Use: UseImage, Package: "x.test/sub"},
		}},
	}}
}

func moduleOptions(t *testing.T) (Options, *recorder) {
	t.Helper()
	t.Setenv("GOPROXY", "off")
	dir, seen := t.TempDir(), &recorder{}
	writeFiles(t, dir, 0o644, mains())
	return Options{
		Source: SourceGoMod, ModuleDir: dir, CacheDir: t.TempDir(), Progress: seen.progress, pins: modulePins(), timing: quick,
	}, seen
}

func TestGoModThenCache(t *testing.T) {
	o, seen := moduleOptions(t)
	set, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"one": "v1.2.3", "two": "v1.2.3", "three": "v0.4.0"} {
		out, err := exec.Command(set.Path(name)).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s printed %q, %v, want %q", name, out, err, want)
		}
	}
	for _, name := range []string{"one", "two", "three"} {
		if !slices.ContainsFunc(seen.events, func(e Event) bool { return e.Stage == StageBinary && e.Name == name && e.Total == 3 }) {
			t.Errorf("no event tells that %s is finished", name)
		}
	}
	assertOnlyKey(t, o.CacheDir, set.Dir)

	seen.events = nil
	writeFiles(t, o.ModuleDir, 0o644, map[string]string{"README.md": "changed", "one/main_test.go": "package main"})
	again, err := Ensure(t.Context(), o)
	if err != nil || again.Dir != set.Dir {
		t.Errorf("second call: %+v, %v", again, err)
	}
	if len(seen.events) != 1 || seen.events[0].Stage != StageReady {
		t.Errorf("the second call worked: %v", seen.events)
	}
}

func TestGoModKeyFollowsInputs(t *testing.T) {
	o, _ := moduleOptions(t)
	key := func() string {
		full, err := o.complete()
		if err != nil {
			t.Fatal(err)
		}
		key, err := full.goModSource().key()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	seen := []string{key()}
	for _, change := range []func(){
		func() {
			writeFiles(t, o.ModuleDir, 0o644, map[string]string{"one/main.go": "package main\nfunc main() {}\n"})
		},
		func() { writeFiles(t, o.ModuleDir, 0o644, map[string]string{"go.sum": "x\n"}) },
		func() { writeFiles(t, o.ModuleDir, 0o644, map[string]string{"sub/go.mod": "module x.test/sub\n"}) },
		func() { o.pins.Projects[0].Version = "v1.2.4" },
	} {
		change()
		if k := key(); slices.Contains(seen, k) {
			t.Errorf("key %d is one of before", len(seen))
		} else {
			seen = append(seen, k)
		}
	}
}

// TestGoModContinues breaks one program: the others are kept, and are not built
// again when it is mended.
func TestGoModContinues(t *testing.T) {
	o, _ := moduleOptions(t)
	full, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, o.ModuleDir, 0o644, map[string]string{"srv/v2/main.go": "package main\n\nfunc main() { broken }\n"})
	st := stage{bin: filepath.Join(t.TempDir(), "bin"), work: t.TempDir()}
	if err := os.MkdirAll(st.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	maker := full.goModSource().maker
	err = maker.make(t.Context(), st)
	if err == nil || !strings.Contains(err.Error(), "undefined: broken") {
		t.Fatalf("got %v", err)
	}
	if !st.has("one") || st.has("two") {
		t.Errorf("one: %t, two: %t", st.has("one"), st.has("two"))
	}
	before := readFile(t, filepath.Join(st.bin, "one"))
	writeFiles(t, o.ModuleDir, 0o644, mains())
	writeFiles(t, o.ModuleDir, 0o644, map[string]string{"one/main.go": "package main\n\nfunc main() { never built }\n"})
	if err := maker.make(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if !st.has("two") || !st.has("three") || readFile(t, filepath.Join(st.bin, "one")) != before {
		t.Error("the second call did not continue the first")
	}
}

func TestGoModEndsWithContext(t *testing.T) {
	o, _ := moduleOptions(t)
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(e Event) { cancel() }
	// The go command would end in an instant, so it is made to linger.
	slow := t.TempDir()
	writeFiles(t, slow, 0o755, map[string]string{"go": "#!/bin/sh\n[ $1 = env ] && echo go1.99 && exit\nexec sleep 60\n"})
	t.Setenv("PATH", slow+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if _, err := Ensure(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestGoModNeedsModule(t *testing.T) {
	o, _ := moduleOptions(t)
	o.ModuleDir = ""
	if _, err := Ensure(t.Context(), o); err == nil || !strings.Contains(err.Error(), "run inside a checkout") {
		t.Errorf("got %v", err)
	}
	o.ModuleDir = t.TempDir()
	if _, err := Ensure(t.Context(), o); err == nil || !strings.Contains(err.Error(), "name the folder hack/node") {
		t.Errorf("got %v", err)
	}
}

func TestGoModHints(t *testing.T) {
	tests := map[string]string{
		"go: x@v1: dial tcp: lookup p: no such host":  "set GOPROXY",
		"go: x@v1: module lookup disabled by GOPROXY": "set GOPROXY",
		"write /c/x: no space left on device":         "free 4 GiB",
		"go.mod requires go >= 1.99 (running go 1.2)": "install a newer Go",
	}
	for text, want := range tests {
		if got := withHint(goHint(errors.New(text))); !strings.Contains(got.Error(), want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestExecName(t *testing.T) {
	tests := map[string]string{
		"k8s.io/kubernetes/cmd/kubelet":        "kubelet",
		"go.etcd.io/etcd/server/v3":            "server",
		"github.com/nats-io/nats-server/v2":    "nats-server",
		"github.com/x/plugins/ipam/host-local": "host-local",
		"v2":                                   "v2",
	}
	for pkg, want := range tests {
		if got := execName(pkg); got != want {
			t.Errorf("%s: got %q, want %q", pkg, got, want)
		}
	}
}

func TestBuildArgs(t *testing.T) {
	got := buildArgs("/out", []target{{Package: "a/b", LDFlags: "-s -X v=1"}, {Package: "c", LDFlags: "-s"}})
	want := []string{
		"build", "-v", "-trimpath", "-buildvcs=false", "-o", "/out/",
		"-ldflags=a/b=-s -X v=1", "-ldflags=c=-s", "a/b", "c",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestMonitorCounts(t *testing.T) {
	m := newMonitor(func(Event) {}, t.TempDir(), []target{{Binary: "a"}}, 3)
	if e := m.state(); e.Stage != StagePrepare {
		t.Errorf("before: %+v", e)
	}
	m.stale = map[string]bool{"x/a": true, "x/b": true}
	m.begin()
	for _, line := range []string{"x/a", "# x/a", "x/a", "unrelated"} {
		m.compiled(line)
	}
	if e := m.state(); e.Stage != StageBuild || e.Done != 1 || e.Total != 2 || e.Name != "x/a" {
		t.Errorf("after: %+v", e)
	}
}

func TestFindModule(t *testing.T) {
	root := t.TempDir()
	writeFiles(t, root, 0o644, map[string]string{"hack/node/go.mod": "module m\n", "packages/core/x": ""})
	want := filepath.Join(root, "hack/node")
	for _, paths := range [][]string{{root}, {"", filepath.Join(root, "packages/core")}, {t.TempDir(), root}} {
		if got := FindModule(paths...); got != want {
			t.Errorf("from %q: got %q, want %q", paths, got, want)
		}
	}
	if got := FindModule("", t.TempDir()); got != "" {
		t.Errorf("got %q from nowhere", got)
	}
}

func TestGoVersion(t *testing.T) {
	got, err := goVersion()
	if err != nil || !strings.HasPrefix(got, "go1.") {
		t.Errorf("got %q, %v, running %s", got, err, runtime.Version())
	}
}
