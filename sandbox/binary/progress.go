package binary

import (
	"fmt"
	"time"
)

// Stage says what an Event tells.
type Stage string

// The stages of a call to Ensure.
const (
	// StageNote is a line that is told once: a decision or its reason.
	StageNote Stage = "note"
	// StageDownload counts bytes of one file.
	StageDownload Stage = "download"
	// StagePrepare is the time before a build's size is known.
	StagePrepare Stage = "prepare"
	// StageBuild counts compiled packages, Name being the last one begun.
	StageBuild Stage = "build"
	// StageBinary tells that a binary is finished, and how many are.
	StageBinary Stage = "binary"
	// StageReady tells that all are in place, Name being the directory.
	StageReady Stage = "ready"
)

// Event is one report of progress. Events of StageDownload and StageBuild come
// several times a second; a reader that prints lines should thin them out.
type Event struct {
	Stage Stage
	// Name is the subject: a file, a package, a binary.
	Name string
	// Done and Total are bytes, packages or binaries as the stage says. Total
	// is zero while it is unknown.
	Done, Total int64
	// Elapsed is the time since the work began.
	Elapsed time.Duration
	// Message is the text of a note.
	Message string
}

// Progress receives events, one at a time, from any goroutine. It must not
// block for long: the work waits for it.
type Progress func(Event)

// String is the event as one plain line.
func (e Event) String() string {
	elapsed := e.Elapsed.Round(time.Second)
	switch e.Stage {
	case StageDownload:
		return fmt.Sprintf("downloading %s: %s (%s)", e.Name, megabytes(e.Done, e.Total), elapsed)
	case StagePrepare:
		return fmt.Sprintf("preparing the build: %s (%s)", e.Name, elapsed)
	case StageBuild:
		return fmt.Sprintf("building: %d of %d packages compiled, at %s (%s)", e.Done, e.Total, e.Name, elapsed)
	case StageBinary:
		return fmt.Sprintf("%s is ready, %d of %d (%s)", e.Name, e.Done, e.Total, elapsed)
	case StageReady:
		return fmt.Sprintf("%d node binaries are in %s (%s)", e.Total, e.Name, elapsed)
	default:
		return e.Message
	}
}

func megabytes(done, total int64) string {
	const mega = 1 << 20
	if total <= 0 {
		return fmt.Sprintf("%d MiB", done/mega)
	}
	return fmt.Sprintf("%d of %d MiB, %d%%", done/mega, total/mega, done*100/total)
}
