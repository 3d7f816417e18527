package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/network"
)

// StartOptions say what to start.
type StartOptions struct {
	State sandbox.State
	// Spec is the wanted sandbox; its Substrate must be resolved (not "auto").
	Spec sandbox.Spec
	// Uplink is what Spec.Uplink came to; see sandbox.Spec.ResolveUplink.
	Uplink bool
	// Binaries is the directory of the node binaries, Cozynode the path of cozynode. Both absolute.
	Binaries, Cozynode string
	// Cache is the shared cache directory; the registry is in Cache/registry.
	Cache string
	// Executable is the cozydev binary that is run as `supervise --state DIR`; empty for the running one.
	Executable string
}

// Start returns a client of the sandbox's supervisor, starting it and its machines if need be. A supervisor that runs
// is used as it is, when the spec asks for nothing it cannot follow. One that died is replaced; its nodes are adopted.
func Start(ctx context.Context, options StartOptions) (*Client, error) {
	if client, err := reuse(ctx, options); err == nil || !errors.Is(err, ErrNotRunning) {
		return client, err
	}
	unlock, err := options.State.Lock(ctx, sandbox.LockChange)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if client, err := reuse(ctx, options); err == nil || !errors.Is(err, ErrNotRunning) {
		return client, err // another `up` was faster
	}
	if err := start(ctx, options); err != nil {
		return nil, fmt.Errorf("starting sandbox %q: %w", options.Spec.Name, err)
	}
	return Connect(ctx, options.State)
}

// answerTimeout is how long a supervisor may take to answer before it counts as hung.
const answerTimeout = 3 * time.Second

// reuse connects to a running supervisor and hands it the spec.
func reuse(ctx context.Context, options StartOptions) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	client := newClient(options.State)
	status, err := client.Status(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%w (it hangs)", ErrNotRunning)
		}
		return nil, err
	}
	wanted := settle(options.Spec, status.Spec)
	if err := refuseChanges(status.Spec, wanted); err != nil {
		return nil, err
	}
	if err := client.Update(ctx, wanted); err != nil {
		return nil, err
	}
	return client, nil
}

// settle fills what the wanted spec leaves open with what the running sandbox chose.
func settle(wanted, running sandbox.Spec) sandbox.Spec {
	if wanted.Uplink == sandbox.UplinkAuto && !wanted.Offline {
		wanted.Uplink = running.Uplink
	}
	if wanted.Substrate == sandbox.SubstrateAuto {
		wanted.Substrate = running.Substrate
	}
	if wanted.APIPort == 0 {
		wanted.APIPort = running.APIPort
	}
	if wanted.TalosPort == 0 {
		wanted.TalosPort = running.TalosPort
	}
	return wanted
}

// refuseChanges returns an error that names the changes that a running sandbox cannot follow.
func refuseChanges(running, wanted sandbox.Spec) error {
	var refused []string
	for _, change := range sandbox.Changes(running, wanted) {
		if !change.Live {
			refused = append(refused, change.String())
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("sandbox %q runs with another spec (%s)\nrun `cozydev down` first, or choose another --name",
		wanted.Name, strings.Join(refused, "; "))
}

// start prepares the host side and forks the supervisor. The change lock is held.
func start(ctx context.Context, options StartOptions) error {
	record, err := prepare(options)
	if err != nil {
		return err
	}
	if err := endSupervisor(ctx, record.Supervisor); err != nil {
		return err
	}
	listeners, err := openListeners(&record)
	if err != nil {
		return err
	}
	defer listeners.close()
	record.Spec.APIPort, record.Spec.TalosPort = record.APIPort, record.TalosPort
	if err := options.State.Write(record); err != nil {
		return err
	}
	if err := network.EnsureSandbox(network.Name(options.Spec.Name), options.Spec.Gateway()); err != nil {
		return err
	}
	executable := options.Executable
	if executable == "" {
		if executable, err = os.Executable(); err != nil {
			return fmt.Errorf("finding the cozydev binary: %w", err)
		}
	}
	return spawn(ctx, spawnOptions{state: options.State, name: options.Spec.Name, executable: executable, listeners: listeners})
}

// prepare makes the record to start with: the earlier one, if there is one, with the new wishes.
func prepare(options StartOptions) (sandbox.Record, error) {
	record, err := options.State.Read()
	switch {
	case errors.Is(err, sandbox.ErrNoState):
		record = sandbox.Record{CreatedAt: time.Now()}
	case err != nil:
		return record, err
	default:
		options.Spec = settle(options.Spec, record.Spec)
		if err := refuseChanges(record.Spec, options.Spec); err != nil {
			return record, err
		}
	}
	record.Spec, record.Uplink = options.Spec, options.Uplink
	record.Binaries, record.Cozynode, record.Cache = options.Binaries, options.Cozynode, options.Cache
	return record, nil
}

const killTimeout = 3 * time.Second

// endSupervisor kills an earlier supervisor that hangs, and waits for its end.
func endSupervisor(ctx context.Context, process sandbox.Process) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for process.Alive() {
		if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the supervisor (process %d): %w", process.PID, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the supervisor (process %d) to end: %w", process.PID, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// hostListeners are the loopback listeners that the supervisor inherits: in its own namespace it could not open them.
type hostListeners struct{ api, talos *net.TCPListener }

func (h hostListeners) close() {
	for _, listener := range []*net.TCPListener{h.api, h.talos} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// openListeners opens the ports that the spec names, else those used before, else free ones.
func openListeners(record *sandbox.Record) (hostListeners, error) {
	var listeners hostListeners
	for _, port := range []struct {
		field  string
		wanted int
		used   *int
		to     **net.TCPListener
	}{
		{"apiPort", record.Spec.APIPort, &record.APIPort, &listeners.api},
		{"talosPort", record.Spec.TalosPort, &record.TalosPort, &listeners.talos},
	} {
		if port.wanted != 0 {
			*port.used = port.wanted
		}
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: *port.used})
		if err != nil {
			listeners.close()
			return listeners, fmt.Errorf("opening %s: %w\nend what uses port %d of 127.0.0.1, or choose another %s", port.field, err, *port.used, port.field)
		}
		*port.used, *port.to = listener.Addr().(*net.TCPAddr).Port, listener
	}
	return listeners, nil
}
