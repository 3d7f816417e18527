// Package supervisor runs a sandbox: one detached process per sandbox that lives in the sandbox's network namespace,
// starts and restarts its machines, serves its registry, its API load balancer and its resolver, and answers the CLI
// on a unix socket. Start makes one, Connect finds it, Down takes everything away.
//
// The supervisor is expendable: it keeps all it must know in state.json, its machines do not depend on it, and the
// next one adopts them.
package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/balancer"
	"github.com/cozystack/cozydev/sandbox/network"
	"github.com/cozystack/cozydev/sandbox/substrate"
)

// Supervisor is the running process's state. Run makes one.
type Supervisor struct {
	state     sandbox.State
	substrate substrate.Substrate
	journal   *journal
	log       *slog.Logger
	startedAt time.Time
	api       *balancer.Balancer
	talos     *balancer.Balancer
	// memory returns the supervisor's own resident bytes.
	memory func() int64
	// stop ends Run.
	stop context.CancelFunc

	mu       sync.Mutex
	record   sandbox.Record
	machines []*machine
	loops    sync.WaitGroup
	ctx      context.Context //nolint:containedctx // machines that a request adds live as long as Run, not the request
}

// options are what a Supervisor is made of; tests replace the parts that need root.
type options struct {
	state     sandbox.State
	record    sandbox.Record
	substrate substrate.Substrate
	memory    func() int64
	log       *slog.Logger
}

func newSupervisor(opts options) (*Supervisor, error) {
	events, err := openJournal(opts.state.Events(), opts.log)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		state: opts.state, record: opts.record, substrate: opts.substrate, memory: opts.memory,
		journal: events, log: opts.log, startedAt: time.Now(),
	}
	if s.record.Machines == nil {
		s.record.Machines = map[string]sandbox.MachineRecord{}
	}
	dial := balancer.Dialer((&net.Dialer{Timeout: time.Second}).DialContext)
	s.api = balancer.New(balancer.Options{
		Name: "kube-apiserver", Check: balancer.HTTPS(dial, "/readyz"), Changed: s.backendChanged("kube-apiserver"), Log: opts.log,
	})
	s.talos = balancer.New(balancer.Options{Name: "talos", First: true, Log: opts.log})
	return s, nil
}

// service is something that runs as long as the supervisor does.
type service struct {
	name string
	run  func(ctx context.Context) error
}

// run starts the machines and the services and returns when the context ends, stop was asked for, or a service failed.
func (s *Supervisor) run(ctx context.Context, services []service) error {
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	s.ctx = ctx
	defer s.journal.close()
	s.journal.emit(Event{Type: EventSupervisorStarted, Message: fmt.Sprintf("supervisor of sandbox %q started", s.record.Spec.Name)})
	s.startMachines()
	group, ctx := errgroup.WithContext(ctx)
	for _, service := range services {
		group.Go(func() error {
			if err := service.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", service.name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	s.stop()
	s.loops.Wait()
	s.journal.emit(Event{Type: EventSupervisorStopped, Message: "supervisor stopped; nodes keep running"})
	return err
}

// startMachines supervises every planned machine that is not supervised yet.
func (s *Supervisor) startMachines() {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]bool{}
	for _, m := range s.machines {
		known[m.spec.Node.Name] = true
	}
	for _, node := range s.record.Spec.Nodes() {
		if known[node.Name] {
			continue
		}
		m := &machine{spec: s.machineSpec(node), record: s.record.Machines[node.Name], state: MachineStarting}
		m.record.Node = node
		m.record.Stopped = false // a new supervisor means `up`, which wants every machine up
		s.machines = append(s.machines, m)
		s.loops.Go(func() { s.supervise(s.ctx, m) })
		if node.Role == sandbox.RoleControlPlane {
			s.api.Add(s.ctx, node.Name, hostPort(node, sandbox.APIServerPort))
			s.talos.Add(s.ctx, node.Name, hostPort(node, sandbox.TalosAPIPort))
		}
	}
}

func (s *Supervisor) machineSpec(node sandbox.Node) substrate.Machine {
	return substrate.Machine{
		Sandbox: s.record.Spec.Name, Node: node, Gateway: s.record.Spec.Gateway().Addr(),
		StateDir: s.state.NodeDir(node.Name), Console: s.state.Console(node.Name),
		Binaries: s.record.Binaries, Cozynode: s.record.Cozynode,
	}
}

func hostPort(node sandbox.Node, port int) string {
	return net.JoinHostPort(node.Address.Addr().String(), fmt.Sprint(port))
}

// update changes a machine and writes the record.
func (s *Supervisor) update(m *machine, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.record.Machines[m.spec.Node.Name] = m.record
	s.save()
}

// save writes the record; the mutex must be held. A record that cannot be written costs the next supervisor the
// adoption, but not this one its work.
func (s *Supervisor) save() {
	if err := s.state.Write(s.record); err != nil {
		s.log.Error("saving the state", "error", err)
	}
}

// follow takes on a changed spec: it starts the machines that are new in it.
func (s *Supervisor) follow(spec sandbox.Spec) {
	s.mu.Lock()
	s.record.Spec = spec
	s.save()
	s.mu.Unlock()
	s.journal.emit(Event{Type: EventSpecChanged, Message: fmt.Sprintf("spec changed: %d nodes", len(spec.Nodes()))})
	s.startMachines()
}

func (s *Supervisor) backendChanged(name string) func(balancer.BackendStatus) {
	return func(status balancer.BackendStatus) {
		s.journal.emit(Event{Type: EventBackendChanged, Subject: status.Name,
			Message: fmt.Sprintf("%s on %q is %s", name, status.Name, status.Health)})
	}
}

// Status describes the sandbox.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec := s.record.Spec
	status := Status{
		Name: spec.Name, Spec: spec, Substrate: spec.Substrate, Uplink: s.record.Uplink,
		PID: s.record.Supervisor.PID, CreatedAt: s.record.CreatedAt, StartedAt: s.startedAt,
		Namespace: network.Name(spec.Name), APIEndpoint: spec.APIEndpoint(), Registry: spec.RegistryAddress(),
		APIPort: s.record.APIPort, TalosPort: s.record.TalosPort,
		APIBackends: s.api.Status(), TalosBackends: s.talos.Status(),
	}
	if s.memory != nil {
		status.SupervisorMemory = s.memory()
	}
	status.Memory = status.SupervisorMemory
	for _, m := range s.machines {
		memory := s.substrate.Memory(m.spec)
		status.Memory += memory
		status.Machines = append(status.Machines, MachineStatus{
			Name: m.spec.Node.Name, Role: m.spec.Node.Role, Address: m.spec.Node.Address.Addr().String(),
			State: m.state, PID: m.record.Process.PID, Restarts: m.record.Restarts, LastExit: m.record.LastExit,
			StartedAt: m.record.StartedAt, Memory: memory,
		})
	}
	return status
}

// stopMachines asks every machine to shut down; their loops then end.
func (s *Supervisor) stopMachines() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		if m.instance == nil {
			continue
		}
		if err := m.instance.Stop(); err != nil {
			s.log.Warn("asking a node to shut down", "node", m.spec.Node.Name, "error", err)
		}
	}
}

// serveHTTP runs an HTTP server on a listener until the context ends.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
