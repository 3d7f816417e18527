package api_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/cozystack/cozydev/talos/node/api"
)

// fakeMachine is a node in memory.
type fakeMachine struct {
	hostname string
	address  netip.Addr
	events   api.EventLog

	mu           sync.Mutex
	config       config.Provider
	applied      []api.ApplyMode
	stops        []api.StopRequest
	bootstrapped bool
}

func (f *fakeMachine) Hostname() string        { return f.hostname }
func (f *fakeMachine) Addresses() []netip.Addr { return []netip.Addr{f.address} }
func (f *fakeMachine) Events() *api.EventLog   { return &f.events }

func (f *fakeMachine) Config() config.Provider {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config
}

func (f *fakeMachine) Plan(_ config.Provider, mode api.ApplyMode) (api.Plan, error) {
	if mode == api.ApplyAuto {
		mode = api.ApplyNoReboot
	}
	return api.Plan{Mode: mode, Details: "Applied without a reboot", Warnings: []string{"machine.sysctls is ignored"}}, nil
}

func (f *fakeMachine) Apply(_ context.Context, cfg config.Provider, mode api.ApplyMode) (api.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = append(f.applied, mode)
	if mode != api.ApplyStaged {
		f.config = cfg
	}
	return f.Plan(cfg, mode)
}

func (f *fakeMachine) modes() []api.ApplyMode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]api.ApplyMode(nil), f.applied...)
}

func (f *fakeMachine) Services() []api.Service {
	return []api.Service{{
		ID: "kubelet", State: api.ServiceRunning,
		Health: api.Health{Healthy: true, LastChange: time.Unix(1, 0)},
		Events: []api.ServiceEvent{{State: api.ServiceRunning, Message: "Health check successful", Time: time.Unix(1, 0)}},
	}}
}

func (f *fakeMachine) RestartService(_ context.Context, id string) error {
	if id != "kubelet" {
		return api.ErrNotFound
	}
	return nil
}

func (f *fakeMachine) LogIDs() []string { return []string{"kubelet"} }

func (f *fakeMachine) Logs(_ context.Context, id string, options api.LogOptions) (io.ReadCloser, error) {
	if id != "kubelet" {
		return nil, api.ErrNotFound
	}
	if !options.Follow {
		return io.NopCloser(strings.NewReader(fmt.Sprintf("kubelet tail=%d\n", options.Tail))), nil
	}
	reader, writer := io.Pipe()
	go func() { _, _ = writer.Write([]byte("first\n")) }()
	return reader, nil
}

func (f *fakeMachine) Console(_ context.Context, options api.LogOptions) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(fmt.Sprintf("console tail=%d\n", options.Tail))), nil
}

func (f *fakeMachine) Bootstrap(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bootstrapped {
		return api.ErrAlready
	}
	f.bootstrapped = true
	return nil
}

func (f *fakeMachine) EtcdMembers(context.Context, bool) ([]api.EtcdMember, error) {
	return []api.EtcdMember{{ID: 7, Hostname: f.hostname, IsLearner: true}}, nil
}

func (f *fakeMachine) EtcdStatus(context.Context) (api.EtcdStatus, error) {
	return api.EtcdStatus{MemberID: 7, Leader: 7}, nil
}

func (f *fakeMachine) Kubeconfig(context.Context) ([]byte, error) {
	return []byte("kind: Config\n"), nil
}

func (f *fakeMachine) Stop(_ context.Context, request api.StopRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stops = append(f.stops, request)
	f.events.Publish(request.ActorID, &machineapi.SequenceEvent{Sequence: string(request.Action)})
	return nil
}

func (f *fakeMachine) stopped() []api.StopRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]api.StopRequest(nil), f.stops...)
}
