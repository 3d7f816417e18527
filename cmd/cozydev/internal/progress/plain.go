package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// plainEvery bounds how often a running step repeats itself on plain output.
const plainEvery = 2 * time.Second

type plainRenderer struct {
	out  io.Writer
	mu   sync.Mutex
	last map[string]spoken
}

type spoken struct {
	message string
	at      time.Time
}

func (p *plainRenderer) Emit(event Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if event.State == Running && !p.worthSaying(event) {
		return
	}
	fmt.Fprintln(p.out, Line(event))
}

// worthSaying drops a running step's message that repeats the last one or
// follows it too closely.
func (p *plainRenderer) worthSaying(event Event) bool {
	if p.last == nil {
		p.last = map[string]spoken{}
	}
	before := p.last[event.Step]
	if before.message == event.Message || event.Time.Sub(before.at) < plainEvery {
		return false
	}
	p.last[event.Step] = spoken{message: event.Message, at: event.Time}
	return true
}

func (p *plainRenderer) Close() {}

// Line is the plain form of an event.
func Line(event Event) string {
	switch event.State {
	case Started:
		return fmt.Sprintf("   %-10s %s", event.Step, event.Message)
	case Done:
		return fmt.Sprintf("ok %-10s %s (%s)", event.Step, event.Message, seconds(event.Seconds))
	case Skipped:
		return fmt.Sprintf("-- %-10s %s", event.Step, event.Message)
	case Failed:
		return fmt.Sprintf("!! %-10s %s (%s)", event.Step, event.Message, seconds(event.Seconds))
	case Note:
		return fmt.Sprintf(" * %-10s %s", event.Step, event.Message)
	default:
		return fmt.Sprintf(" . %-10s %s", event.Step, event.Message)
	}
}

func seconds(s float64) string { return fmt.Sprintf("%.1fs", s) }

type jsonRenderer struct {
	out io.Writer
	mu  sync.Mutex
}

func (j *jsonRenderer) Emit(event Event) {
	line, err := json.Marshal(event)
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%s\n", line)
}

func (j *jsonRenderer) Close() {}
