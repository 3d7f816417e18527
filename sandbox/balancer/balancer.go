// Package balancer is a small TCP load balancer: it spreads connections over the backends that are ready, notices
// within a second when one is not, and closes the connections of a backend that went down so that clients reconnect.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// Health is how far a backend has come.
type Health int

// The healths, worst first.
const (
	// Down: nothing answers.
	Down Health = iota
	// Reachable: it accepts connections, but says it is not ready.
	Reachable
	// Ready: it takes work.
	Ready
)

// String names the health for status output.
func (h Health) String() string {
	switch h {
	case Ready:
		return "ready"
	case Reachable:
		return "reachable"
	default:
		return "down"
	}
}

// Check finds out a backend's health. It MUST return when the context ends. The error says why it is not Ready.
type Check func(ctx context.Context, address string) (Health, error)

// Dialer opens a connection to a backend.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Options configure a Balancer.
type Options struct {
	// Name appears in logs.
	Name string
	// Check defaults to TCP.
	Check Check
	// Dial defaults to net.Dialer.
	Dial Dialer
	// Interval is the time between checks of a ready backend (default 1 s); one that is not ready is checked four
	// times as often.
	Interval time.Duration
	// First prefers the earliest healthy backend over spreading.
	First bool
	// Changed, if set, is called after each change of a backend's health, from the goroutine that checks it.
	Changed func(BackendStatus)
	Log     *slog.Logger
}

// BackendStatus is a backend as status output shows it.
type BackendStatus struct {
	Name        string    `json:"name"`
	Address     string    `json:"address"`
	Health      string    `json:"health"`
	Reason      string    `json:"reason,omitempty"`
	Since       time.Time `json:"since"`
	Connections int       `json:"connections"`
}

// Balancer spreads connections over backends. Make it with New.
type Balancer struct {
	options Options

	mu       sync.Mutex
	backends []*backend
	next     int
}

// New returns a balancer without backends.
func New(options Options) *Balancer {
	if options.Dial == nil {
		options.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive()}).DialContext
	}
	if options.Check == nil {
		options.Check = TCP(options.Dial)
	}
	if options.Interval == 0 {
		options.Interval = time.Second
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Balancer{options: options}
}

const (
	dialTimeout  = time.Second
	eagerFactor  = 4
	checkTimeout = 2 * time.Second
)

// keepAlive notices a peer that vanished without a word (its namespace was deleted) within seconds.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 3}
}

// Add adds a backend and checks it until the context ends. The name only labels it.
func (b *Balancer) Add(ctx context.Context, name, address string) {
	backend := &backend{name: name, address: address, since: time.Now(), conns: map[net.Conn]struct{}{}}
	b.mu.Lock()
	b.backends = append(b.backends, backend)
	b.mu.Unlock()
	go b.watch(ctx, backend)
}

// Status lists the backends in the order they were added.
func (b *Balancer) Status() []BackendStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]BackendStatus, len(b.backends))
	for i, backend := range b.backends {
		list[i] = backend.status()
	}
	return list
}

// Serve accepts connections until the context ends or the listener fails. It may be called for several listeners.
func (b *Balancer) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("balancer %q: accepting: %w", b.options.Name, err)
		}
		go b.handle(ctx, conn)
	}
}

// Dial connects to the best backend that answers.
func (b *Balancer) Dial(ctx context.Context) (net.Conn, error) {
	conn, backend, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tracked{Conn: conn, closed: sync.OnceFunc(func() { b.release(backend, conn) })}, nil
}

func (b *Balancer) handle(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, backend, err := b.connect(ctx)
	if err != nil {
		b.options.Log.Debug("no backend took the connection", "balancer", b.options.Name, "error", err)
		return
	}
	defer b.release(backend, server)
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = server.Close() })
	defer stop()
	Pipe(client, server)
}

// connect tries the backends best first. One that refuses is marked down at once, so that others do not try it.
func (b *Balancer) connect(ctx context.Context) (net.Conn, *backend, error) {
	var errs []error
	for _, backend := range b.candidates() {
		attempt, cancel := context.WithTimeout(ctx, dialTimeout)
		conn, err := b.options.Dial(attempt, "tcp", backend.address)
		cancel()
		if err == nil {
			b.hold(backend, conn)
			return conn, backend, nil
		}
		errs = append(errs, err)
		b.note(backend, Down, err)
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("it has no backends"))
	}
	return nil, nil, fmt.Errorf("balancer %q: no backend answers: %w", b.options.Name, errors.Join(errs...))
}

// candidates orders the backends: ready before reachable before down, and among equals the next in turn first.
func (b *Balancer) candidates() []*backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	ordered := slices.Clone(b.backends)
	if n := len(ordered); n > 0 && !b.options.First {
		turn := b.next % n
		b.next++
		ordered = append(ordered[turn:len(ordered):len(ordered)], ordered[:turn]...)
	}
	slices.SortStableFunc(ordered, func(x, y *backend) int { return int(y.health) - int(x.health) })
	return ordered
}
