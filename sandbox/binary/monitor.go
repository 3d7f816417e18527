package binary

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// reportInterval is how often a build tells how far it is.
const reportInterval = 500 * time.Millisecond

// monitor turns what the go command prints into events.
type monitor struct {
	notify  Progress
	started time.Time
	out     string
	of      int

	// reporting guards what follows, and keeps reports in order.
	reporting sync.Mutex
	// awaited lists the targets whose files have not appeared in out.
	awaited []target
	ready   int

	mutex    sync.Mutex
	stale    map[string]bool
	done     int
	last     string
	building bool
}

func newMonitor(notify Progress, out string, missing []target, of int) *monitor {
	return &monitor{
		notify: notify, started: time.Now(), out: out,
		awaited: slices.Clone(missing), ready: of - len(missing), of: of,
		stale: map[string]bool{}, last: "reading the module",
	}
}

// count learns how many packages have to be compiled; it downloads the modules
// that are missing.
func (m *monitor) count(ctx context.Context, tool goTool, targets []target) error {
	return tool.run(ctx, listArgs(targets), func(line string) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.stale[line] = true
	}, func(line string) {
		if module, ok := strings.CutPrefix(line, "go: downloading "); ok {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.last = "downloading module " + module
		}
	})
}

// begin marks the end of counting.
func (m *monitor) begin() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.building, m.last = true, "the start"
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

// start reports at intervals until the returned function is called, which may
// be done twice.
func (m *monitor) start() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
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
	m.reporting.Lock()
	defer m.reporting.Unlock()
	m.notify(m.state())
	var awaited []target
	for _, t := range m.awaited {
		if _, err := os.Lstat(filepath.Join(m.out, execName(t.Package))); err != nil {
			awaited = append(awaited, t)
			continue
		}
		m.ready++
		m.notify(Event{
			Stage: StageBinary, Name: t.Binary, Elapsed: time.Since(m.started),
			Done: int64(m.ready), Total: int64(m.of),
		})
	}
	m.awaited = awaited
}

func (m *monitor) state() Event {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	event := Event{Stage: StagePrepare, Name: m.last, Elapsed: time.Since(m.started)}
	if m.building {
		event.Stage, event.Done, event.Total = StageBuild, int64(m.done), int64(m.done+len(m.stale))
	}
	return event
}
