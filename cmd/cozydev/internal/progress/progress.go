// Package progress carries what long work says about itself to a renderer:
// live lines on a terminal, plain lines elsewhere, JSON events on request.
package progress

import (
	"io"
	"os"
	"time"
)

// State is where a step stands.
type State string

// The states of a step, in the order in which they occur.
const (
	Started State = "started"
	Running State = "running"
	Done    State = "done"
	Skipped State = "skipped"
	Failed  State = "failed"
	// Note is a message that belongs to a step but ends nothing, such as a
	// warning or a choice that was made.
	Note State = "note"
)

// Event is one thing that happened to one step. Seconds is the step's age, set
// on Done, Skipped and Failed.
type Event struct {
	Time    time.Time `json:"time"`
	Step    string    `json:"step"`
	State   State     `json:"state"`
	Message string    `json:"message,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
}

// Renderer shows events. Emit may be called from several goroutines. Close
// leaves the output in a clean state and may be called twice.
type Renderer interface {
	Emit(Event)
	Close()
}

// Format names a renderer.
type Format string

// The formats that New knows.
const (
	Auto  Format = "auto"
	Live  Format = "live"
	Plain Format = "plain"
	JSON  Format = "json"
)

// New gives the renderer for a format. Auto is Live when out is a terminal
// that understands cursor movement, else Plain.
func New(format Format, out io.Writer) Renderer {
	if format == Auto {
		format = detect(out)
	}
	switch format {
	case JSON:
		return &jsonRenderer{out: out}
	case Live:
		return newLive(out)
	default:
		return &plainRenderer{out: out}
	}
}

func detect(out io.Writer) Format {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return Plain
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return Plain
	}
	return Live
}
