package sandbox

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Role is a node's part in the cluster.
type Role string

// The roles, as the Talos machine config spells them.
const (
	RoleControlPlane Role = "controlplane"
	RoleWorker       Role = "worker"
)

// ReservedAddresses is the number of host addresses at the start of the CIDR that no node gets: the gateway is the
// first of them, the rest are left to the user (virtual IPs, load balancer pools).
const ReservedAddresses = 10

// Node is one machine of a sandbox as planned from the spec.
type Node struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Address is the node's address with the sandbox network's prefix length.
	Address netip.Prefix `json:"address"`
}

// Nodes plans the nodes of a spec: cp1..cpN, then worker1..workerM, with rising addresses.
// The CIDR must have been validated.
func (s Spec) Nodes() []Node {
	prefix, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return nil
	}
	nodes := make([]Node, 0, s.ControlPlanes+s.Workers)
	add := func(name string, role Role) {
		nodes = append(nodes, Node{Name: name, Role: role, Address: hostAddress(prefix, ReservedAddresses+1+len(nodes))})
	}
	for i := range s.ControlPlanes {
		add(fmt.Sprintf("cp%d", i+1), RoleControlPlane)
	}
	for i := range s.Workers {
		add(fmt.Sprintf("worker%d", i+1), RoleWorker)
	}
	return nodes
}

// Gateway is the sandbox's own address in its network: bridge, registry, API load balancer and resolver.
func (s Spec) Gateway() netip.Prefix {
	prefix, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return netip.Prefix{}
	}
	return hostAddress(prefix, 1)
}

// APIEndpoint is the URL of the Kubernetes API inside the sandbox, as the machine configs name it.
func (s Spec) APIEndpoint() string {
	return fmt.Sprintf("https://%s", netip.AddrPortFrom(s.Gateway().Addr(), APIServerPort))
}

// RegistryAddress is host:port of the sandbox registry inside the sandbox.
func (s Spec) RegistryAddress() string {
	return netip.AddrPortFrom(s.Gateway().Addr(), RegistryPort).String()
}

// Ports inside the sandbox network.
const (
	APIServerPort = 6443
	RegistryPort  = 5000
	TalosAPIPort  = 50000
	ResolverPort  = 53
)

// hostAddress returns the n-th address of an IPv4 prefix (0 is the network address).
func hostAddress(prefix netip.Prefix, n int) netip.Prefix {
	base := prefix.Masked().Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+uint32(n))
	return netip.PrefixFrom(netip.AddrFrom4(base), prefix.Bits())
}
