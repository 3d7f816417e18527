package balancer

import (
	"context"
	"net"
	"time"
)

// backend is one destination. The balancer's mutex guards it.
type backend struct {
	name, address string
	health        Health
	reason        string
	since         time.Time
	conns         map[net.Conn]struct{}
}

func (b *backend) status() BackendStatus {
	return BackendStatus{
		Name: b.name, Address: b.address, Health: b.health.String(), Reason: b.reason,
		Since: b.since, Connections: len(b.conns),
	}
}

// watch checks a backend until the context ends.
func (b *Balancer) watch(ctx context.Context, backend *backend) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		attempt, cancel := context.WithTimeout(ctx, checkTimeout)
		health, err := b.options.Check(attempt, backend.address)
		cancel()
		if ctx.Err() != nil {
			return
		}
		b.note(backend, health, err)
		pause := b.options.Interval
		if health != Ready {
			pause /= eagerFactor
		}
		timer.Reset(pause)
	}
}

// note records a health; when the backend went down its connections are closed, for nobody will answer on them.
func (b *Balancer) note(backend *backend, health Health, err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	b.mu.Lock()
	changed := backend.health != health
	backend.reason = reason
	var orphans []net.Conn
	if changed {
		backend.health, backend.since = health, time.Now()
		if health == Down {
			for conn := range backend.conns {
				orphans = append(orphans, conn)
			}
		}
	}
	status := backend.status()
	b.mu.Unlock()
	for _, conn := range orphans {
		_ = conn.Close()
	}
	if !changed {
		return
	}
	b.options.Log.Info("backend changed", "balancer", b.options.Name, "backend", backend.name, "health", status.Health, "reason", reason)
	if b.options.Changed != nil {
		b.options.Changed(status)
	}
}

func (b *Balancer) hold(backend *backend, conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	backend.conns[conn] = struct{}{}
}

func (b *Balancer) release(backend *backend, conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(backend.conns, conn)
}

// tracked is a connection that Dial gave out.
type tracked struct {
	net.Conn
	closed func()
}

func (t *tracked) Close() error {
	t.closed()
	return t.Conn.Close()
}
