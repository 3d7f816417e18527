package api

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// eventCapacity is how many events a node remembers. Talos keeps 1000.
const eventCapacity = 1000

// Event is one thing that happened on the node.
type Event struct {
	// ID sorts by time as text.
	ID   string
	Time time.Time
	// ActorID is the ID of the request that caused it, if any.
	ActorID string
	// Payload is one of the machinery's machine.*Event messages.
	Payload proto.Message
}

// EventLog remembers a node's last events and hands new ones to its subscribers. Its zero value is ready.
type EventLog struct {
	mu     sync.Mutex
	events []Event
	first  int // the sequence number of events[0]
	grown  chan struct{}
}

// Publish adds an event whose payload is one of the machinery's machine.*Event messages. It never blocks.
func (l *EventLog) Publish(actorID string, payload proto.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := time.Now()
	l.events = append(l.events, Event{
		ID:      eventID(now, l.first+len(l.events)),
		Time:    now,
		ActorID: actorID,
		Payload: payload,
	})
	if surplus := len(l.events) - eventCapacity; surplus > 0 {
		l.events = append([]Event(nil), l.events[surplus:]...)
		l.first += surplus
	}
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// History returns the events remembered, oldest first.
func (l *EventLog) History() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Event(nil), l.events...)
}

// Follow calls each for the remembered events that past chooses among, then for every new one, until ctx ends or each fails.
// A follower slower than the log's capacity misses events.
func (l *EventLog) Follow(ctx context.Context, past func([]Event) []Event, each func(Event) error) error {
	l.mu.Lock()
	batch := past(append([]Event(nil), l.events...))
	next := l.first + len(l.events)
	l.mu.Unlock()

	for {
		for _, event := range batch {
			if err := each(event); err != nil {
				return err
			}
		}
		var more <-chan struct{}
		batch, next, more = l.since(next)
		if len(batch) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}

// since returns the events from sequence number next on, the number after them, and a channel closed at the next event.
func (l *EventLog) since(next int) ([]Event, int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	from := min(max(next-l.first, 0), len(l.events))
	return append([]Event(nil), l.events[from:]...), l.first + len(l.events), l.grown
}
