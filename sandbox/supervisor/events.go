package supervisor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Event is something that happened in a sandbox, one JSON line of events.jsonl.
type Event struct {
	Time time.Time `json:"time"`
	// Type is a short fixed word for programs, such as "machine.crashed".
	Type string `json:"type"`
	// Subject is what it happened to: a node, a backend, the sandbox.
	Subject string `json:"subject,omitempty"`
	// Message says it in words; Lines hold evidence, such as the last lines of a console.
	Message string   `json:"message"`
	Lines   []string `json:"lines,omitempty"`
}

// Event types.
const (
	EventSupervisorStarted = "supervisor.started"
	EventSupervisorStopped = "supervisor.stopped"
	EventMachineStarted    = "machine.started"
	EventMachineAdopted    = "machine.adopted"
	EventMachineEnded      = "machine.ended"
	EventMachineCrashed    = "machine.crashed"
	EventBackendChanged    = "backend.changed"
	EventSpecChanged       = "spec.changed"
	EventUplink            = "uplink"
)

// journal persists events and hands them to listeners.
type journal struct {
	log *slog.Logger

	mu        sync.Mutex
	file      *os.File
	listeners map[chan Event]struct{}
}

func openJournal(path string, log *slog.Logger) (*journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the event file: %w", err)
	}
	return &journal{log: log, file: file, listeners: map[chan Event]struct{}{}}, nil
}

// emit stamps, persists and hands on an event. A listener that does not keep up loses it: it can read the file.
func (j *journal) emit(event Event) {
	if event.Time.IsZero() {
		event.Time = time.Now()
	}
	j.log.Info(event.Message, "type", event.Type, "subject", event.Subject)
	data, err := json.Marshal(event)
	if err != nil { // strings and times always marshal
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(data, '\n')); err != nil {
		j.log.Warn("writing the event file", "error", err)
	}
	for listener := range j.listeners {
		select {
		case listener <- event:
		default:
		}
	}
}

const listenerRoom = 256

// listen returns a channel of the events from now on and a function to end it.
func (j *journal) listen() (<-chan Event, func()) {
	listener := make(chan Event, listenerRoom)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listeners[listener] = struct{}{}
	return listener, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.listeners, listener)
	}
}

func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.file.Close()
}
