package binary

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// autoOptions combines a release server and a module.
func autoOptions(t *testing.T) (*fixture, Options) {
	t.Helper()
	f := newFixture(t)
	o, _ := moduleOptions(t)
	for i := range f.pins.Projects {
		for j := range f.pins.Projects[i].Binaries {
			b := &f.pins.Projects[i].Binaries[j]
			b.Package = "x.test/m/" + b.Name
		}
	}
	fakeGo(t)
	o.Source, o.pins, o.Progress = SourceAuto, f.pins, f.recorder.progress
	return f, o
}

// fakeGo stands in for the go command: a build writes a file for each package.
func fakeGo(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, 0o755, map[string]string{"go": `#!/bin/sh
case $1 in
env) echo go1.99 ;;
build) for arg; do case $arg in
	*/) out=$arg ;;
	x.test/*) echo "$arg" >"$out${arg##*/}" ;;
	esac; done ;;
esac
`})
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func TestAutoTakesRelease(t *testing.T) {
	_, o := autoOptions(t)
	set, err := Ensure(t.Context(), o)
	if err != nil || set.Source != SourceRelease {
		t.Errorf("got %+v, %v", set, err)
	}
}

func TestAutoFallsBack(t *testing.T) {
	f, o := autoOptions(t)
	f.Close()
	set, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if set.Source != SourceGoMod || !set.Has("built") {
		t.Errorf("got %+v", set)
	}
	notes := f.recorder.notes()
	if len(notes) != 1 || !strings.Contains(notes[0], "connection refused): building the node binaries from source") {
		t.Errorf("notes: %q", notes)
	}
	// The second call neither probes nor builds.
	f.recorder.events = nil
	again, err := Ensure(t.Context(), o)
	if err != nil || again.Dir != set.Dir || len(f.recorder.events) != 1 {
		t.Errorf("second call: %+v, %v, %v", again, err, f.recorder.events)
	}
}

func TestAutoFallsBackWhenReleaseIsGone(t *testing.T) {
	f, o := autoOptions(t)
	f.setIntercept(func(w http.ResponseWriter, r *http.Request) bool {
		if gone := r.Method == http.MethodGet; gone {
			http.NotFound(w, r)
			return true
		}
		return false
	})
	set, err := Ensure(t.Context(), o)
	if err != nil || set.Source != SourceGoMod {
		t.Errorf("got %+v, %v", set, err)
	}
}

func TestAutoDoesNotHideBadChecksum(t *testing.T) {
	f, o := autoOptions(t)
	f.files["/v1/bare"] = []byte("tampered with")
	if _, err := Ensure(t.Context(), o); !errors.Is(err, errChecksum) {
		t.Errorf("got %v", err)
	}
}

func TestAutoWithoutWayOut(t *testing.T) {
	f, o := autoOptions(t)
	f.Close()
	o.ModuleDir = ""
	_, err := Ensure(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "connection refused") ||
		!strings.Contains(err.Error(), "\nrun inside a checkout, or choose another source") {
		t.Errorf("got %v", err)
	}
}

func TestEventString(t *testing.T) {
	tests := map[string]Event{
		"downloading kubelet: 1 of 4 MiB, 25% (0s)":                  {Stage: StageDownload, Name: "kubelet", Done: 1 << 20, Total: 4 << 20},
		"downloading kubelet: 1 MiB (0s)":                            {Stage: StageDownload, Name: "kubelet", Done: 1 << 20},
		"building: 3 of 9 packages compiled, at k8s.io/api (0s)":     {Stage: StageBuild, Name: "k8s.io/api", Done: 3, Total: 9},
		"preparing the build: downloading module k8s.io/api v1 (0s)": {Stage: StagePrepare, Name: "downloading module k8s.io/api v1"},
		"kubelet is ready, 3 of 18 (0s)":                             {Stage: StageBinary, Name: "kubelet", Done: 3, Total: 18},
		"18 node binaries are in /c (0s)":                            {Stage: StageReady, Name: "/c", Done: 18, Total: 18},
		"a note":                                                     {Stage: StageNote, Message: "a note"},
	}
	for want, event := range tests {
		if got := event.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
