// Package network makes a sandbox's network: one network namespace with a bridge, one namespace per node with a veth
// to that bridge, and, when an uplink is wanted, one veth pair to the host with its NAT. Everything is idempotent:
// what is already right is left alone. Functions that need Linux return ErrUnsupported elsewhere.
package network

import (
	"errors"
	"net/netip"
	"path/filepath"
)

// ErrUnsupported is returned by everything that needs Linux on another system.
var ErrUnsupported = errors.New("network namespaces need Linux")

// Bridge is the name of a sandbox's bridge inside its namespace.
const Bridge = "cozy0"

// NodeInterface is the name of a node's interface inside its namespace.
const NodeInterface = "eth0"

// runDir is where iproute2 keeps named namespaces, so that `ip netns` shows ours too.
const runDir = "/run/netns"

// Name returns the namespace of a sandbox.
func Name(sandbox string) string { return "cozydev-" + sandbox }

// NodeName returns the namespace of a node.
func NodeName(sandbox, node string) string { return Name(sandbox) + "-" + node }

// Path returns the file of a named namespace.
func Path(namespace string) string { return filepath.Join(runDir, namespace) }

// Link describes a node's connection to the bridge.
type Link struct {
	// Sandbox and Namespace are the namespaces of the bridge and of the node.
	Sandbox, Namespace string
	// Port is the name of the veth's end at the bridge, at most 15 characters.
	Port string
	// Address is the node's, Gateway the bridge's.
	Address netip.Prefix
	Gateway netip.Addr
}

// PortName returns the name of a node's port on the bridge.
func PortName(node string) string {
	const longest = 15 // IFNAMSIZ less the end
	name := "v-" + node
	return name[:min(len(name), longest)]
}
