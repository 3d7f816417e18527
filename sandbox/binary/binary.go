package binary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Source names where the binaries come from.
type Source string

// The sources.
const (
	// SourceAuto takes releases where they can be reached, else gomod.
	SourceAuto Source = "auto"
	// SourceRelease downloads the projects' published binaries.
	SourceRelease Source = "release"
	// SourceGoMod builds them from the pinned Go module hack/node.
	SourceGoMod Source = "gomod"
	// SourceFile takes them from a directory of the user's.
	SourceFile Source = "file"
)

// ParseSource reads a flag's value. The empty string is SourceAuto.
func ParseSource(s string) (Source, error) {
	sources := []Source{SourceAuto, SourceRelease, SourceGoMod, SourceFile}
	if s == "" {
		return SourceAuto, nil
	}
	if slices.Contains(sources, Source(s)) {
		return Source(s), nil
	}
	return "", fmt.Errorf("reading the source of the node binaries: %q is none of auto, release, gomod, file", s)
}

// Options says where the binaries come from and where they are kept. Its zero
// value, without a checkout of cozydev, downloads releases to the user's cache.
type Options struct {
	// Source is SourceAuto if empty.
	Source Source
	// Dir is the directory of SourceFile, which alone uses it.
	Dir string
	// CacheDir is cozydev's cache; empty means $XDG_CACHE_HOME/cozydev.
	CacheDir string
	// ModuleDir is the Go module that SourceGoMod builds, hack/node of a
	// checkout of cozydev; empty where there is none. See FindModule.
	ModuleDir string
	// Log receives what helps to find a fault; nil discards it.
	Log *slog.Logger
	// Progress receives what a user wants to see; nil discards it. Ensure
	// never calls it twice at once.
	Progress Progress

	pins   *Pins
	client *http.Client
	timing timing
}

// Set is a directory with every binary that could be had.
type Set struct {
	// Dir is absolute and holds the binaries flat. Nobody may write to it.
	Dir string
	// Source is the one that yielded it, never SourceAuto.
	Source Source
	// Names lists the binaries in Dir, in the pin file's order. Those of use
	// node are always among them.
	Names []string
}

// Path is where the named binary is, or would be if Has is false.
func (s Set) Path(name string) string { return filepath.Join(s.Dir, name) }

// Has tells whether the set holds the named binary.
func (s Set) Has(name string) bool { return slices.Contains(s.Names, name) }

// source is one way to get the binaries.
type source interface {
	// lookup returns what can be had at once, without network or build. It is
	// not an error that nothing can.
	lookup(context.Context) (Set, bool, error)
	// provide makes the binaries available, however long it takes. What an
	// earlier call left unfinished is continued.
	provide(context.Context) (Set, error)
}

// Ensure makes the node binaries available and returns where they are. It may
// be called again and by several processes at once: the work is done once, the
// others wait for it. A call that is cancelled leaves no half-made binary in
// sight, and the next one continues where it ended.
func Ensure(ctx context.Context, o Options) (Set, error) {
	started := time.Now()
	o, err := o.complete()
	if err != nil {
		return Set{}, fmt.Errorf("preparing node binaries: %w", err)
	}
	set, err := o.ensure(ctx)
	if err != nil {
		return Set{}, fmt.Errorf("preparing node binaries: %w", withHint(err))
	}
	o.Progress(Event{
		Stage: StageReady, Name: set.Dir, Elapsed: time.Since(started),
		Done: int64(len(set.Names)), Total: int64(len(set.Names)),
	})
	return set, nil
}

func (o Options) ensure(ctx context.Context) (Set, error) {
	s, err := o.source()
	if err != nil {
		return Set{}, err
	}
	set, ok, err := s.lookup(ctx)
	if err != nil || ok {
		return set, err
	}
	return s.provide(ctx)
}

// source chooses the implementation.
func (o Options) source() (source, error) {
	switch o.Source {
	case SourceFile:
		return fileSource{dir: o.Dir, pins: o.pins, notify: o.Progress}, nil
	case SourceRelease:
		return o.releaseSource(), nil
	case SourceGoMod:
		return o.goModSource(), nil
	case SourceAuto:
		return o.autoSource(), nil
	default:
		return nil, fmt.Errorf("source %q is none of auto, release, gomod, file", o.Source)
	}
}

// complete fills in the defaults.
func (o Options) complete() (Options, error) {
	if runtime.GOOS != "linux" || !slices.Contains(architectures(), runtime.GOARCH) {
		return o, fmt.Errorf("%s/%s is not supported, only linux on %s",
			runtime.GOOS, runtime.GOARCH, strings.Join(architectures(), ", "))
	}
	if o.Source == "" {
		o.Source = SourceAuto
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.client == nil {
		o.client = newClient()
	}
	o.timing = o.timing.complete()
	o.Progress = serialized(o.Progress)
	var err error
	if o.pins == nil {
		if o.pins, err = Pinned(); err != nil {
			return o, err
		}
	}
	if o.CacheDir == "" && o.Source != SourceFile {
		if o.CacheDir, err = defaultCacheDir(); err != nil {
			return o, err
		}
	}
	o.CacheDir, err = filepath.Abs(o.CacheDir)
	return o, err
}

// serialized makes p safe for concurrent use, and a nil one callable.
func serialized(p Progress) Progress {
	if p == nil {
		return func(Event) {}
	}
	var mutex sync.Mutex
	return func(e Event) {
		mutex.Lock()
		defer mutex.Unlock()
		p(e)
	}
}

// defaultCacheDir follows the XDG base directory specification.
func defaultCacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", errors.New("neither XDG_CACHE_HOME nor HOME is set\nset XDG_CACHE_HOME to a directory with 4 GiB of space")
	}
	return filepath.Join(base, "cozydev"), nil
}
