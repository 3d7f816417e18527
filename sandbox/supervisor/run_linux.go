package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/cgroup"
	"github.com/cozystack/cozydev/sandbox/registry"
	"github.com/cozystack/cozydev/sandbox/substrate"
)

// Run is the supervisor's process: what `cozydev supervise --state DIR` calls. It must have been started by Start,
// which hands it its listeners. It returns when the context ends or a client asks for the shutdown; machines run on.
func Run(ctx context.Context, stateDir string) error {
	ready := os.NewFile(fdReady, "ready")
	if ready == nil {
		return errors.New("running the supervisor: it is started by `cozydev up`, not by hand")
	}
	err := runIn(ctx, sandbox.StateAt(stateDir), ready)
	if err != nil {
		_, _ = fmt.Fprintln(ready, err) // nobody listens any more once Start has its answer
	}
	return err
}

func runIn(ctx context.Context, state sandbox.State, ready *os.File) error {
	unlock, err := state.TryLock(sandbox.LockSupervisor)
	if err != nil {
		return fmt.Errorf("another supervisor runs: %w", err)
	}
	defer unlock()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := assemble(state, log)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(fdHost)
	services, err := s.listen(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(ready, readyMessage)
	_ = ready.Close()
	return s.run(ctx, services)
}

// assemble reads the record, signs it with this process, and makes the supervisor.
func assemble(state sandbox.State, log *slog.Logger) (*Supervisor, error) {
	record, err := state.Read()
	if err != nil {
		return nil, err
	}
	if record.Supervisor, err = sandbox.FindProcess(os.Getpid()); err != nil {
		return nil, err
	}
	if err := state.Write(record); err != nil {
		return nil, err
	}
	machines, err := substrate.New(record.Spec.Substrate)
	if err != nil {
		return nil, err
	}
	cgroups, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	group := cgroup.Supervisor(record.Spec.Name)
	return newSupervisor(options{
		state: state, record: record, substrate: machines, log: log,
		memory: func() int64 { return cgroups.Memory(group) },
	})
}

// listen opens every port of the sandbox, so that one that cannot be had fails the start and not a later step.
func (s *Supervisor) listen(ctx context.Context) ([]service, error) {
	gateway := s.record.Spec.Gateway().Addr().String()
	socket, err := listenSocket(s.state.Socket())
	if err != nil {
		return nil, err
	}
	services := []service{{"api socket", func(ctx context.Context) error { return serveHTTP(ctx, socket, s.handler()) }}}
	images, err := s.openRegistry(ctx)
	if err != nil {
		return nil, err
	}
	for _, inside := range []struct {
		name string
		port int
		run  func(context.Context, net.Listener) error
	}{
		{"registry", sandbox.RegistryPort, func(ctx context.Context, l net.Listener) error { return serveHTTP(ctx, l, images) }},
		{"api load balancer", sandbox.APIServerPort, s.api.Serve},
	} {
		listener, err := net.Listen("tcp", net.JoinHostPort(gateway, fmt.Sprint(inside.port)))
		if err != nil {
			return nil, fmt.Errorf("opening the %s: %w", inside.name, err)
		}
		services = append(services, service{inside.name, func(ctx context.Context) error { return inside.run(ctx, listener) }})
	}
	for fd, serve := range map[uintptr]func(context.Context, net.Listener) error{fdAPI: s.api.Serve, fdTalos: s.talos.Serve} {
		listener, err := inheritedListener(fd)
		if err != nil {
			return nil, err
		}
		services = append(services, service{"loopback forward", func(ctx context.Context) error { return serve(ctx, listener) }})
	}
	return services, nil
}

func (s *Supervisor) openRegistry(ctx context.Context) (*registry.Registry, error) {
	dir := filepath.Join(s.record.Cache, "registry")
	var upstreams *registry.Upstreams
	if s.record.Uplink {
		upstreams = &registry.Upstreams{Dir: filepath.Join(dir, "proxy"), Context: ctx}
	}
	return registry.New(ctx, registry.Options{Dir: dir, Upstreams: upstreams, Log: s.log})
}

func inheritedListener(fd uintptr) (net.Listener, error) {
	file := os.NewFile(fd, "listener")
	if file == nil {
		return nil, fmt.Errorf("descriptor %d was not handed over", fd)
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("taking over listener %d: %w", fd, err)
	}
	return listener, nil
}
