// Package sandbox describes a sandbox: what the user asked for (Spec), which nodes that makes, where its state lives
// on disk, and what the host must offer to run it. It starts nothing; the packages below it do.
package sandbox

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Substrates that a Spec may name. SubstrateAuto lets cozydev choose.
const (
	SubstrateAuto      = "auto"
	SubstrateHost      = "host"
	SubstrateQEMU      = "qemu"
	SubstrateContainer = "container"
)

// Settings of Spec.Uplink. UplinkAuto means: on when the host has a default route.
const (
	UplinkAuto = "auto"
	UplinkOn   = "on"
	UplinkOff  = "off"
)

// Settings of Spec.Flux.
const (
	FluxAuto         = "auto"
	FluxDistribution = "distribution"
	FluxEmbedded     = "embedded"
)

// Settings of Spec.NodeSource: where the node binaries come from.
const (
	NodeSourceAuto    = "auto"
	NodeSourceRelease = "release"
	NodeSourceGoMod   = "gomod"
	NodeSourceFile    = "file"
)

// Spec is what a user asks for: the content of cozydev.yaml with the flags laid over it. The zero value is not
// valid; begin with Default.
type Spec struct {
	// Name tells sandboxes of one user apart. It ends up in names of namespaces and cgroups.
	Name string `yaml:"name" json:"name"`
	// Substrate is what a machine is: auto, host, qemu or container.
	Substrate string `yaml:"substrate" json:"substrate"`
	// ControlPlanes is the number of control plane nodes; they also take workloads.
	ControlPlanes int `yaml:"controlPlanes" json:"controlPlanes"`
	// Workers is the number of further nodes.
	Workers int `yaml:"workers" json:"workers"`
	// CIDR is the sandbox network. Its first address is the gateway, its first ten are reserved.
	CIDR string `yaml:"cidr" json:"cidr"`
	// Uplink says whether the sandbox may reach the world: auto, on or off.
	Uplink string `yaml:"uplink" json:"uplink"`
	// Offline forces the uplink off and forbids every download.
	Offline bool `yaml:"offline" json:"offline"`
	// PodCIDR, ServiceCIDR and DNSDomain are the Kubernetes cluster's.
	PodCIDR     string `yaml:"podCIDR" json:"podCIDR"`
	ServiceCIDR string `yaml:"serviceCIDR" json:"serviceCIDR"`
	DNSDomain   string `yaml:"dnsDomain" json:"dnsDomain"`
	// KubernetesVersion is empty for the version that the node binaries are pinned to.
	KubernetesVersion string `yaml:"kubernetesVersion" json:"kubernetesVersion"`
	// Flux is auto, distribution or embedded.
	Flux string `yaml:"flux" json:"flux"`
	// Tree is the package tree's checkout; empty for the one that cozydev stands in.
	Tree string `yaml:"tree" json:"tree"`
	// Variant is the platform's variant.
	Variant string `yaml:"variant" json:"variant"`
	// Platform holds values for the platform chart.
	Platform map[string]any `yaml:"platform" json:"platform,omitempty"`
	// NodeSource is auto, release, gomod or file; NodeDir is the directory for file.
	NodeSource string `yaml:"nodeSource" json:"nodeSource"`
	NodeDir    string `yaml:"nodeDir" json:"nodeDir"`
	// ConfigPatches are machine config patches (text, or @file).
	ConfigPatches Patches `yaml:"configPatches" json:"configPatches"`
	// APIPort and TalosPort are loopback ports of the host for kubectl and talosctl; 0 takes a free one.
	APIPort   int `yaml:"apiPort" json:"apiPort"`
	TalosPort int `yaml:"talosPort" json:"talosPort"`
}

// Patches are machine config patches by the nodes they apply to.
type Patches struct {
	All          []string `yaml:"all" json:"all,omitempty"`
	ControlPlane []string `yaml:"controlPlane" json:"controlPlane,omitempty"`
	Worker       []string `yaml:"worker" json:"worker,omitempty"`
}

// Default returns the spec of `cozydev up` without flags or file.
func Default() Spec {
	return Spec{
		Name:          "cozydev",
		Substrate:     SubstrateAuto,
		ControlPlanes: 3,
		CIDR:          "192.168.123.0/24",
		Uplink:        UplinkAuto,
		PodCIDR:       "10.244.0.0/16",
		ServiceCIDR:   "10.96.0.0/12",
		DNSDomain:     "cluster.local",
		Flux:          FluxAuto,
		Variant:       "default",
		NodeSource:    NodeSourceAuto,
	}
}

// Change is one field in which two specs differ.
type Change struct {
	Field    string
	From, To string
	// Live tells that a running sandbox can follow the change.
	Live bool
}

// String renders the change as `field: from -> to`.
func (c Change) String() string { return fmt.Sprintf("%s: %s -> %s", c.Field, c.From, c.To) }

// Changes lists what differs between a running sandbox's spec and a wanted one, sorted by field. Only what shapes the
// machines is compared; all else (platform values, tree, Flux, patches) is applied by later steps of `up` anyway.
// More workers are Live; fewer are not, because a node must be drained first.
func Changes(running, wanted Spec) []Change {
	pairs := map[string][2]any{
		"substrate":     {running.Substrate, wanted.Substrate},
		"controlPlanes": {running.ControlPlanes, wanted.ControlPlanes},
		"workers":       {running.Workers, wanted.Workers},
		"cidr":          {running.CIDR, wanted.CIDR},
		"uplink":        {running.Uplink, wanted.Uplink},
		"offline":       {running.Offline, wanted.Offline},
		"podCIDR":       {running.PodCIDR, wanted.PodCIDR},
		"serviceCIDR":   {running.ServiceCIDR, wanted.ServiceCIDR},
		"dnsDomain":     {running.DNSDomain, wanted.DNSDomain},
	}
	for field, ports := range map[string][2]int{
		"apiPort":   {running.APIPort, wanted.APIPort},
		"talosPort": {running.TalosPort, wanted.TalosPort},
	} {
		if ports[1] != 0 { // 0 means any port, so the one in use is right
			pairs[field] = [2]any{ports[0], ports[1]}
		}
	}
	var changes []Change
	for _, field := range slices.Sorted(maps.Keys(pairs)) {
		pair := pairs[field]
		if reflect.DeepEqual(pair[0], pair[1]) {
			continue
		}
		changes = append(changes, Change{
			Field: field, From: fmt.Sprint(pair[0]), To: fmt.Sprint(pair[1]),
			Live: field == "workers" && wanted.Workers > running.Workers,
		})
	}
	return changes
}
