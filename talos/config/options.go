// Package config makes the machine configs of a sandbox's nodes, and the credentials that go with them, by Talos'
// own generator.
//
// Everything here but [LoadSecrets], [LoadPatches] and the Write methods is a function of values: the same options and
// secrets give the same bytes. What it makes is accepted by real Talos Linux as it is; nothing in it is known only to
// cozynode.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Defaults of [Options].
const (
	// DefaultKubernetesVersion is the newest Kubernetes that Talos 1.13 supports and whose binaries are pinned here.
	DefaultKubernetesVersion = "v1.36.3"
	// DefaultInstallDisk is the first virtio disk, which is what a QEMU machine has. The host substrate ignores it.
	DefaultInstallDisk = "/dev/vda"
	// DefaultInstallImage is the installer of the Talos release the configs are generated for.
	DefaultInstallImage = "ghcr.io/siderolabs/installer:v1.13.5"
	// DefaultDNSDomain is the domain of cluster services.
	DefaultDNSDomain = "cluster.local"
	// DefaultPodSubnet and DefaultServiceSubnet are the defaults of Talos itself.
	DefaultPodSubnet     = "10.244.0.0/16"
	DefaultServiceSubnet = "10.96.0.0/12"
)

// Role says what a node is for.
type Role string

// Roles of a node.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// CNI says who connects the pods.
type CNI string

// The two kinds of pod network a sandbox offers: the one Talos calls flannel, and none, for a package that brings its
// own.
const (
	CNIFlannel CNI = "flannel"
	CNINone    CNI = "none"
)

// Node is one machine.
type Node struct {
	// Name is the hostname and the name of the Kubernetes node.
	Name string
	// Role decides which config the node gets.
	Role Role
	// Address is the node's address with the length of its network's prefix.
	Address netip.Prefix
	// Interface, when set, makes the config give Address to that interface statically. Leave it empty where something
	// else (the host substrate, DHCP) has configured the address already.
	Interface string
}

// ExtraArgs are extra flags of the Kubernetes components, without leading dashes.
type ExtraArgs struct {
	Kubelet, APIServer, ControllerManager, Scheduler, Proxy, Etcd map[string]string
}

// Proxy configures kube-proxy.
type Proxy struct {
	// Disabled leaves kube-proxy out, for a pod network that replaces it.
	Disabled bool
	// Mode is kube-proxy's mode; empty means Talos' default.
	Mode string
}

// Options says what to generate. Only Cluster, Endpoint and Nodes are required.
type Options struct {
	// Cluster is the name of the cluster and of the talosconfig context.
	Cluster string
	// Endpoint is the URL of the Kubernetes API as the nodes reach it, for example https://192.168.123.1:6443.
	Endpoint string
	// Nodes are all machines; at least one is a control plane.
	Nodes []Node
	// KubernetesVersion is a version with or without a leading v.
	KubernetesVersion string
	// PodSubnets and ServiceSubnets are networks in CIDR notation.
	PodSubnets, ServiceSubnets []string
	// DNSDomain is the domain of cluster services.
	DNSDomain string
	// CNI is the pod network; empty means flannel.
	CNI CNI
	// Mirrors maps a registry host, or "*" for every host, to the URLs to pull from instead.
	Mirrors map[string][]string
	// CertSANs are names and addresses to be added to the API certificates, beside the endpoint's host, the node's
	// address, 127.0.0.1 and localhost.
	CertSANs []string
	// ExtraArgs are extra flags of the components.
	ExtraArgs ExtraArgs
	// Proxy configures kube-proxy.
	Proxy Proxy
	// Gateway and Nameservers are used by nodes that have an Interface.
	Gateway     netip.Addr
	Nameservers []netip.Addr
	// InstallDisk and InstallImage are what Talos installs itself from and to.
	InstallDisk, InstallImage string
	// Mode is the set of rules that the results must satisfy.
	Mode Mode
	// Patches are the user's changes, applied last.
	Patches Patches
}

func (o Options) withDefaults() Options {
	o.KubernetesVersion = strings.TrimPrefix(or(o.KubernetesVersion, DefaultKubernetesVersion), "v")
	o.DNSDomain = or(o.DNSDomain, DefaultDNSDomain)
	o.CNI = or(o.CNI, CNIFlannel)
	o.InstallDisk = or(o.InstallDisk, DefaultInstallDisk)
	o.InstallImage = or(o.InstallImage, DefaultInstallImage)
	o.Mode = or(o.Mode, Metal)

	if len(o.PodSubnets) == 0 {
		o.PodSubnets = []string{DefaultPodSubnet}
	}

	if len(o.ServiceSubnets) == 0 {
		o.ServiceSubnets = []string{DefaultServiceSubnet}
	}

	return o
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}

	return value
}

// check reports the first thing that makes the options unusable.
func (o Options) check() error {
	if o.Cluster == "" {
		return errors.New("the cluster has no name")
	}

	endpoint, err := url.Parse(o.Endpoint)
	if err != nil || endpoint.Scheme != "https" || endpoint.Hostname() == "" {
		return fmt.Errorf("the Kubernetes endpoint %q is not an https URL with a host", o.Endpoint)
	}

	if o.CNI != CNIFlannel && o.CNI != CNINone {
		return fmt.Errorf("unknown CNI %q: use %q or %q", o.CNI, CNIFlannel, CNINone)
	}

	for _, subnet := range append(append([]string(nil), o.PodSubnets...), o.ServiceSubnets...) {
		if _, err := netip.ParsePrefix(subnet); err != nil {
			return fmt.Errorf("the subnet %q is not in CIDR notation", subnet)
		}
	}

	return checkNodes(o.Nodes)
}

// nodeName is what Kubernetes takes as a node's name, less dots: a dot would make the name a domain.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkNodes(nodes []Node) error {
	names, addresses := map[string]bool{}, map[netip.Addr]string{}
	controlPlanes := 0

	for _, n := range nodes {
		addr := n.Address.Addr()

		switch other := addresses[addr]; {
		case !nodeName.MatchString(n.Name):
			return fmt.Errorf("the node name %q is not a host name of lower-case letters, digits and dashes", n.Name)
		case names[n.Name]:
			return fmt.Errorf("two nodes are named %q", n.Name)
		case !n.Address.IsValid():
			return fmt.Errorf("node %q has no address", n.Name)
		case other != "":
			return fmt.Errorf("nodes %q and %q have the same address %s", other, n.Name, addr)
		case n.Role != ControlPlane && n.Role != Worker:
			return fmt.Errorf("node %q has the unknown role %q: use %q or %q", n.Name, n.Role, ControlPlane, Worker)
		}

		names[n.Name], addresses[addr] = true, n.Name

		if n.Role == ControlPlane {
			controlPlanes++
		}
	}

	if controlPlanes == 0 {
		return errors.New("the cluster has no control plane: at least one is needed")
	}

	return nil
}
