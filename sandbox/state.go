package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// State is a sandbox's directory: $XDG_STATE_HOME/cozydev/NAME. It is a handle; nothing is read or written before a
// method is called.
type State struct{ dir string }

// StateHome returns the directory that holds the states of all sandboxes of this user.
func StateHome() (string, error) {
	return userDir("XDG_STATE_HOME", ".local/state")
}

// CacheHome returns the directory that all sandboxes share for what can be fetched or built again.
func CacheHome() (string, error) {
	return userDir("XDG_CACHE_HOME", ".cache")
}

func userDir(variable, fallback string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cozydev"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the home directory: %w\nset %s to an absolute path", err, variable)
	}
	return filepath.Join(home, fallback, "cozydev"), nil
}

// OpenState returns the state of the sandbox of that name, which need not exist.
func OpenState(name string) (State, error) {
	home, err := StateHome()
	if err != nil {
		return State{}, err
	}
	return StateAt(filepath.Join(home, name)), nil
}

// StateAt returns the state in dir.
func StateAt(dir string) State { return State{dir: dir} }

// Dir is the directory itself.
func (s State) Dir() string { return s.dir }

// Exists tells whether the sandbox has been started and not yet taken down.
func (s State) Exists() bool {
	_, err := os.Stat(s.dir)
	return err == nil
}

// Paths inside the state directory. What holds secrets is written with mode 0600.
func (s State) recordPath() string { return filepath.Join(s.dir, "state.json") }

// Socket is the supervisor's unix socket.
func (s State) Socket() string { return filepath.Join(s.dir, "supervisor.sock") }

// SupervisorLog is what the supervisor logs.
func (s State) SupervisorLog() string { return filepath.Join(s.dir, "supervisor.log") }

// Events is the file of JSON lines that the supervisor appends to.
func (s State) Events() string { return filepath.Join(s.dir, "events.jsonl") }

// Secrets, Talosconfig and Kubeconfig are written by `cozydev up`.
func (s State) Secrets() string { return filepath.Join(s.dir, "secrets.yaml") }

// Talosconfig is the client configuration for talosctl.
func (s State) Talosconfig() string { return filepath.Join(s.dir, "talosconfig") }

// Kubeconfig is the client configuration for kubectl.
func (s State) Kubeconfig() string { return filepath.Join(s.dir, "kubeconfig") }

// MachineConfig is where `up` keeps the machine config of a node.
func (s State) MachineConfig(node string) string {
	return filepath.Join(s.dir, "machines", node+".yaml")
}

// NodeDir is the directory that a node owns: its persisted config, its /var, its logs.
func (s State) NodeDir(node string) string { return filepath.Join(s.dir, "nodes", node) }

// Console is the log of a node's init.
func (s State) Console(node string) string { return filepath.Join(s.NodeDir(node), "console.log") }

// Record is the content of state.json. The supervisor writes it while it lives; Start and Down write it otherwise.
type Record struct {
	Spec Spec `json:"spec"`
	// Uplink is what Spec.Uplink came to.
	Uplink bool `json:"uplink"`
	// APIPort and TalosPort are the loopback ports in use; they are kept over restarts.
	APIPort   int `json:"apiPort"`
	TalosPort int `json:"talosPort"`
	// Binaries is the directory of the node binaries, Cozynode the path of cozynode.
	Binaries string `json:"binaries"`
	Cozynode string `json:"cozynode"`
	// Cache is the shared cache directory.
	Cache      string    `json:"cache"`
	CreatedAt  time.Time `json:"createdAt"`
	Supervisor Process   `json:"supervisor"`
	// Machines is what runs, by node name.
	Machines map[string]MachineRecord `json:"machines,omitempty"`
}

// MachineRecord is what is known about one machine.
type MachineRecord struct {
	Node    Node    `json:"node"`
	Process Process `json:"process"`
	// Restarts counts the starts after the first.
	Restarts int `json:"restarts"`
	// Stopped tells that the machine was shut down by request and must stay down.
	Stopped   bool      `json:"stopped,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// LastExit says how it last ended; empty when it never has.
	LastExit string `json:"lastExit,omitempty"`
}

// ErrNoState is returned for a sandbox that does not exist.
var ErrNoState = errors.New("no such sandbox")

// Read returns the record, or an error that wraps ErrNoState when there is none.
func (s State) Read() (Record, error) {
	data, err := os.ReadFile(s.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("sandbox %q: %w; start it with `cozydev up`", filepath.Base(s.dir), ErrNoState)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the state of sandbox %q: %w", filepath.Base(s.dir), err)
	}
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		return Record{}, fmt.Errorf("reading %q: %w\nthe file is damaged: run `cozydev down` and then `cozydev up`", s.recordPath(), err)
	}
	return record, nil
}

// Write replaces the record atomically. It does not wait for the disk: after a power cut the sandbox is gone anyway.
func (s State) Write(record Record) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	temporary := s.recordPath() + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	if err := os.Rename(temporary, s.recordPath()); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}
