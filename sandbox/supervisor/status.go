package supervisor

import (
	"time"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/balancer"
)

// Status is a running sandbox as its supervisor sees it.
type Status struct {
	Name string       `json:"name"`
	Spec sandbox.Spec `json:"spec"`
	// Substrate is what "auto" came to, Uplink what Spec.Uplink came to.
	Substrate string `json:"substrate"`
	Uplink    bool   `json:"uplink"`
	// PID is the supervisor's.
	PID       int       `json:"pid"`
	CreatedAt time.Time `json:"createdAt"`
	// StartedAt is when this supervisor started.
	StartedAt time.Time `json:"startedAt"`
	Namespace string    `json:"namespace"`
	// APIEndpoint and Registry are addresses inside the sandbox.
	APIEndpoint string `json:"apiEndpoint"`
	Registry    string `json:"registry"`
	// APIPort and TalosPort are loopback ports of the host.
	APIPort   int `json:"apiPort"`
	TalosPort int `json:"talosPort"`
	// Memory is resident bytes of the whole sandbox, the supervisor included.
	Memory           int64                    `json:"memory"`
	SupervisorMemory int64                    `json:"supervisorMemory"`
	Machines         []MachineStatus          `json:"machines"`
	APIBackends      []balancer.BackendStatus `json:"apiBackends"`
	TalosBackends    []balancer.BackendStatus `json:"talosBackends"`
}

// States of a machine.
const (
	MachineStarting = "starting"
	MachineRunning  = "running"
	MachineWaiting  = "waiting" // for its next start after a crash
	MachineStopped  = "stopped" // by request; stays down
)

// MachineStatus is one machine.
type MachineStatus struct {
	Name      string       `json:"name"`
	Role      sandbox.Role `json:"role"`
	Address   string       `json:"address"`
	State     string       `json:"state"`
	PID       int          `json:"pid,omitempty"`
	Restarts  int          `json:"restarts"`
	LastExit  string       `json:"lastExit,omitempty"`
	StartedAt time.Time    `json:"startedAt,omitzero"`
	Memory    int64        `json:"memory,omitempty"`
}
