package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/substrate"
)

// machine is one machine under supervision. The supervisor's mutex guards its record and state.
type machine struct {
	spec   substrate.Machine
	record sandbox.MachineRecord
	state  string
	// crashes counts the crashes in a row.
	crashes int
	// instance is set while it runs.
	instance substrate.Instance
}

// supervise keeps one machine running until the context ends or it is shut down. It leaves the machine running when
// the context ends: the next supervisor adopts it.
func (s *Supervisor) supervise(ctx context.Context, m *machine) {
	for ctx.Err() == nil {
		instance, err := s.obtain(ctx, m)
		if err != nil {
			if !s.pauseAfter(ctx, m, decide(substrate.Exit{Code: -1}, 0, m.crashes), err.Error()) {
				return
			}
			continue
		}
		exit, err := instance.Wait(ctx)
		if err != nil && ctx.Err() != nil {
			return
		}
		if err != nil {
			exit = substrate.Exit{Unknown: true}
		}
		ran := time.Since(m.record.StartedAt)
		if !s.pauseAfter(ctx, m, decide(exit, ran, m.crashes), exit.String()) {
			return
		}
	}
}

// obtain adopts the recorded process when it still runs, else starts the machine.
func (s *Supervisor) obtain(ctx context.Context, m *machine) (substrate.Instance, error) {
	if process := m.record.Process; process.PID != 0 && m.instance == nil {
		instance, err := s.substrate.Adopt(ctx, m.spec, process)
		if err == nil {
			s.update(m, func() { m.instance, m.state = instance, MachineRunning })
			s.journal.emit(Event{Type: EventMachineAdopted, Subject: m.spec.Node.Name,
				Message: fmt.Sprintf("node %q still runs as process %d", m.spec.Node.Name, process.PID)})
			return instance, nil
		}
		if !errors.Is(err, substrate.ErrGone) {
			return nil, err
		}
	}
	s.update(m, func() { m.state = MachineStarting })
	instance, err := s.substrate.Start(ctx, m.spec)
	if err != nil {
		return nil, err
	}
	s.update(m, func() {
		if !m.record.StartedAt.IsZero() {
			m.record.Restarts++
		}
		m.instance, m.state = instance, MachineRunning
		m.record.Process, m.record.StartedAt = instance.Process(), time.Now()
	})
	s.journal.emit(Event{Type: EventMachineStarted, Subject: m.spec.Node.Name,
		Message: fmt.Sprintf("node %q runs as process %d", m.spec.Node.Name, instance.Process().PID)})
	return instance, nil
}

// consoleLines is how much of a crashed machine's console goes into the event.
const consoleLines = 20

// pauseAfter records an end, reports it, and waits for the next start; false means that there is none.
func (s *Supervisor) pauseAfter(ctx context.Context, m *machine, next decision, how string) bool {
	s.update(m, func() {
		m.instance, m.record.Process, m.record.LastExit = nil, sandbox.Process{}, how
		m.record.Stopped = !next.restart
		m.state = MachineWaiting
		if m.record.Stopped {
			m.state = MachineStopped
		}
		if next.crash {
			m.crashes++
		} else {
			m.crashes = 0
		}
	})
	s.journal.emit(endEvent(m.spec, next, how))
	if !next.restart {
		return false
	}
	timer := time.NewTimer(next.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func endEvent(spec substrate.Machine, next decision, how string) Event {
	event := Event{Type: EventMachineEnded, Subject: spec.Node.Name, Message: fmt.Sprintf("node %q: %s", spec.Node.Name, how)}
	if next.crash {
		event.Type = EventMachineCrashed
		event.Message += fmt.Sprintf("; starting it again in %s", next.pause)
		event.Lines, _ = lastLines(spec.Console, consoleLines) // no console, no evidence
	}
	return event
}
