package api

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// Machine is everything the API server needs of a node. All methods may be called concurrently and at any time,
// in maintenance mode as well as configured.
//
// Errors that wrap one of the package's sentinels (ErrUnsupported, ErrNotFound, ErrNotReady, ErrAlready,
// ErrInvalid) are answered with the matching gRPC code; any other error is answered as an internal one.
type Machine interface {
	Identity
	Configurable
	Services
	Logs
	Cluster
	Lifecycle
}

// Identity says who the node is.
type Identity interface {
	// Hostname returns the node's current host name.
	Hostname() string
	// Addresses returns the node's own addresses, without loopback; they go into its certificates.
	Addresses() []netip.Addr
}

// Configurable is a node whose machine config can be read and replaced.
type Configurable interface {
	// Config returns the config in force, nil in maintenance mode. A changed config MUST be a new value: the
	// server compares it to know when to issue its certificates again.
	Config() config.Provider
	// Plan decides what applying cfg in this mode would do, and changes nothing. It names every part of cfg
	// the node does not support, as a warning or as an error that wraps ErrUnsupported. cfg was loaded and
	// validated by the caller.
	Plan(cfg config.Provider, mode ApplyMode) (Plan, error)
	// Apply does what Plan says and returns it. It returns when cfg is accepted (for every mode but
	// ApplyTry and ApplyStaged: also stored and returned by Config); the work it causes goes on after. A plan of
	// ApplyReboot reboots the node shortly after Apply returned.
	Apply(ctx context.Context, cfg config.Provider, mode ApplyMode) (Plan, error)
}

// ApplyMode is how a config is applied.
type ApplyMode string

// The apply modes, named as talosctl names them.
const (
	// ApplyAuto applies at once where that is possible and reboots where it is not.
	ApplyAuto ApplyMode = "auto"
	// ApplyNoReboot applies at once; Plan fails where the change needs a reboot.
	ApplyNoReboot ApplyMode = "no-reboot"
	// ApplyReboot stores the config and reboots.
	ApplyReboot ApplyMode = "reboot"
	// ApplyStaged only stores the config: it takes effect at the next boot.
	ApplyStaged ApplyMode = "staged"
	// ApplyTry applies at once like ApplyNoReboot and does not store the config. The server itself applies the
	// previous config again when the trial ends.
	ApplyTry ApplyMode = "try"
)

// Plan is what applying a config does.
type Plan struct {
	// Mode is the mode chosen: ApplyAuto is resolved to ApplyNoReboot or ApplyReboot, the others stay.
	Mode ApplyMode
	// Details says in one line what happens, for people.
	Details string
	// Warnings name the parts of the config the node does without.
	Warnings []string
}

// Services lists and steers the node's components (etcd, kubelet, …).
type Services interface {
	// Services returns the components sorted by ID.
	Services() []Service
	// RestartService restarts a component; it returns when the restart began. An unknown ID is ErrNotFound.
	RestartService(ctx context.Context, id string) error
}

// ServiceSwitch is an optional capability of a Machine: components that can be stopped and started.
type ServiceSwitch interface {
	StartService(ctx context.Context, id string) error
	StopService(ctx context.Context, id string) error
}

// Service is the state of one component.
type Service struct {
	ID     string
	State  ServiceState
	Health Health
	// Events are the last state changes, oldest first.
	Events []ServiceEvent
}

// ServiceState is a component's state; its values are Talos' own.
type ServiceState string

// The states of a component.
const (
	ServiceInitialized ServiceState = "Initialized"
	ServicePreparing   ServiceState = "Preparing"
	ServiceWaiting     ServiceState = "Waiting"
	ServiceStarting    ServiceState = "Starting"
	ServiceRunning     ServiceState = "Running"
	ServiceStopping    ServiceState = "Stopping"
	ServiceFinished    ServiceState = "Finished"
	ServiceFailed      ServiceState = "Failed"
	ServiceSkipped     ServiceState = "Skipped"
)

// Health is the last health check's result. Unknown means that the component has no check or had none yet.
type Health struct {
	Unknown     bool
	Healthy     bool
	LastMessage string
	LastChange  time.Time
}

// ServiceEvent is one state change of a component.
type ServiceEvent struct {
	State   ServiceState
	Message string
	Time    time.Time
}

// Logs gives access to the logs kept on the node.
type Logs interface {
	// LogIDs returns the IDs that Logs knows, sorted.
	LogIDs() []string
	// Logs opens a component's log. An unknown ID is ErrNotFound. With Follow the reader blocks for more until
	// ctx ends (then it returns io.EOF or ctx's error) or it is closed.
	Logs(ctx context.Context, id string, opts LogOptions) (io.ReadCloser, error)
	// Console opens the node's console log (what talosctl dmesg shows), under the same rules.
	Console(ctx context.Context, opts LogOptions) (io.ReadCloser, error)
}

// LogOptions chooses what of a log is read.
type LogOptions struct {
	// Follow goes on with what is written later.
	Follow bool
	// Tail starts that many lines before the end; negative means from the beginning.
	Tail int
}

// Cluster is the node's part in its Kubernetes cluster.
type Cluster interface {
	// Bootstrap makes this control plane start a new etcd cluster. A second call is ErrAlready; a node which
	// is no control plane, or has no config, is ErrNotReady.
	Bootstrap(ctx context.Context) error
	// EtcdMembers asks etcd for its members. local means what this member knows, without a linearized read.
	EtcdMembers(ctx context.Context, local bool) ([]EtcdMember, error)
	// EtcdStatus returns the state of this node's member.
	EtcdStatus(ctx context.Context) (EtcdStatus, error)
	// Kubeconfig returns an admin kubeconfig of the cluster; only control planes can make one.
	Kubeconfig(ctx context.Context) ([]byte, error)
}

// EtcdMember is one member of the etcd cluster.
type EtcdMember struct {
	ID         uint64
	Hostname   string
	PeerURLs   []string
	ClientURLs []string
	IsLearner  bool
}

// EtcdStatus is the state of one etcd member.
type EtcdStatus struct {
	MemberID         uint64
	Leader           uint64
	IsLearner        bool
	ProtocolVersion  string
	StorageVersion   string
	DBSize           int64
	DBSizeInUse      int64
	RaftIndex        uint64
	RaftTerm         uint64
	RaftAppliedIndex uint64
	Errors           []string
}

// Lifecycle ends the node's run and reports what happens during it.
type Lifecycle interface {
	// Stop begins an orderly end of the run and returns at once; the request's work is done after.
	Stop(ctx context.Context, req StopRequest) error
	// Events returns the node's event log, the same value at every call.
	Events() *EventLog
}

// StopAction is how a node's run ends.
type StopAction string

// The ways to end a run.
const (
	StopReboot   StopAction = "reboot"
	StopShutdown StopAction = "shutdown"
	// StopReset wipes the node's data; it comes back in maintenance mode, or halts (see StopRequest.Halt).
	StopReset StopAction = "reset"
)

// StopRequest says how to end the node's run.
type StopRequest struct {
	Action StopAction
	// Graceful leaves the etcd cluster before a reset.
	Graceful bool
	// Force skips what delays the end.
	Force bool
	// Halt keeps the node off after a reset instead of rebooting it.
	Halt bool
	// ActorID goes into the events the request causes, so that the caller finds them.
	ActorID string
}
