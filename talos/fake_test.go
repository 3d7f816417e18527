package talos_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/cozystack/cozydev/talos/node/api"
)

// machine is a node in memory behind the real API server of cozynode.
type machine struct {
	hostname string
	address  netip.Addr
	events   api.EventLog
	// refuse, when set, is the answer to every config.
	refuse error

	mu           sync.Mutex
	config       config.Provider
	applied      int
	bootstrapped int
	services     []api.Service
	etcd         api.EtcdStatus
	kubeconfig   []byte
	kubeconfigs  int
}

// change does something to the machine while it is served.
func (m *machine) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *machine) Hostname() string        { return m.hostname }
func (m *machine) Addresses() []netip.Addr { return []netip.Addr{m.address} }
func (m *machine) Events() *api.EventLog   { return &m.events }

func (m *machine) Config() config.Provider {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.config
}

func (m *machine) Plan(config.Provider, api.ApplyMode) (api.Plan, error) {
	return api.Plan{Mode: api.ApplyNoReboot, Details: "Applied without a reboot", Warnings: []string{"no sysctls"}}, m.refuse
}

func (m *machine) Apply(_ context.Context, cfg config.Provider, mode api.ApplyMode) (api.Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	plan, err := m.Plan(cfg, mode)
	if err == nil {
		m.config = cfg
		m.applied++
	}

	return plan, err
}

func (m *machine) Services() []api.Service {
	m.mu.Lock()
	defer m.mu.Unlock()

	return append([]api.Service(nil), m.services...)
}

func (m *machine) RestartService(context.Context, string) error { return nil }

func (m *machine) LogIDs() []string { return []string{"kubelet"} }

func (m *machine) Logs(_ context.Context, id string, opts api.LogOptions) (io.ReadCloser, error) {
	if id != "kubelet" {
		return nil, api.ErrNotFound
	}

	return io.NopCloser(strings.NewReader(fmt.Sprintf("tail=%d\nno space left on device\n", opts.Tail))), nil
}

func (m *machine) Console(context.Context, api.LogOptions) (io.ReadCloser, error) {
	return nil, api.ErrUnsupported
}

func (m *machine) Bootstrap(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.bootstrapped > 0 {
		return fmt.Errorf("starting etcd: %w", api.ErrAlready)
	}

	m.bootstrapped++

	return nil
}

func (m *machine) EtcdMembers(context.Context, bool) ([]api.EtcdMember, error) { return nil, nil }

func (m *machine) EtcdStatus(context.Context) (api.EtcdStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.etcd, nil
}

func (m *machine) Kubeconfig(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.kubeconfigs++

	if m.kubeconfig == nil {
		return nil, fmt.Errorf("making a kubeconfig: %w", api.ErrNotReady)
	}

	return m.kubeconfig, nil
}

func (m *machine) Stop(context.Context, api.StopRequest) error { return nil }

// running, waiting and failed make services as a node shows them.
func running(id string) api.Service {
	return api.Service{ID: id, State: api.ServiceRunning, Health: api.Health{Healthy: true, LastChange: time.Unix(1, 0)}}
}

func waiting(id, why string) api.Service {
	return api.Service{
		ID: id, State: api.ServiceWaiting, Health: api.Health{Unknown: true},
		Events: []api.ServiceEvent{{State: api.ServiceWaiting, Message: why, Time: time.Unix(1, 0)}},
	}
}
