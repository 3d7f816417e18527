package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Fault is one thing wrong with a spec.
type Fault struct {
	// Field is the path of the field in cozydev.yaml.
	Field string
	// Message says what is wrong and what would be right.
	Message string
	// Line is the line in the file, 0 when the value did not come from a file.
	Line int
	// File is the file, when Line is set.
	File string
}

// Error renders the fault in one line.
func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Field, f.Message)
	}
	return fmt.Sprintf("%s: %s", f.Field, f.Message)
}

// maxNameLength keeps `cozydev-NAME-worker99` a legal file name and the supervisor's socket path short.
const maxNameLength = 30

// Validate checks every field and returns all faults joined, one per line, or nil.
func (s Spec) Validate() error { return joinFaults(s.Faults()) }

// Faults lists what is wrong with the spec, in the order of the fields.
func (s Spec) Faults() []Fault {
	v := validator{}
	v.name(s.Name)
	v.oneOf("substrate", s.Substrate, SubstrateAuto, SubstrateHost, SubstrateQEMU, SubstrateContainer)
	v.counts(s.ControlPlanes, s.Workers)
	v.networks(s)
	v.oneOf("uplink", s.Uplink, UplinkAuto, UplinkOn, UplinkOff)
	if s.Offline && s.Uplink == UplinkOn {
		v.add("uplink", `"on" contradicts offline: true; set one of them`)
	}
	v.match("dnsDomain", s.DNSDomain, dnsDomain, `must be a DNS name such as "cluster.local"`)
	v.optional("kubernetesVersion", s.KubernetesVersion, version, `must look like "v1.36.3"`)
	v.oneOf("flux", s.Flux, FluxAuto, FluxDistribution, FluxEmbedded)
	v.match("variant", s.Variant, label, `must be lower case letters, digits and dashes`)
	v.oneOf("nodeSource", s.NodeSource, NodeSourceAuto, NodeSourceRelease, NodeSourceGoMod, NodeSourceFile)
	if s.NodeSource == NodeSourceFile && s.NodeDir == "" {
		v.add("nodeDir", `must name the directory of the node binaries when nodeSource is "file"`)
	}
	v.port("apiPort", s.APIPort)
	v.port("talosPort", s.TalosPort)
	if s.APIPort != 0 && s.APIPort == s.TalosPort {
		v.add("talosPort", fmt.Sprintf("%d is also apiPort; choose another", s.TalosPort))
	}
	return v.faults
}

// Warnings lists what is legal but probably not meant.
func (s Spec) Warnings() []string {
	var warnings []string
	if s.ControlPlanes%2 == 0 {
		warnings = append(warnings, fmt.Sprintf(
			"controlPlanes: %d survives no more failures than %d would; etcd wants an odd number", s.ControlPlanes, s.ControlPlanes-1))
	}
	if s.NodeDir != "" && s.NodeSource != NodeSourceFile {
		warnings = append(warnings, fmt.Sprintf("nodeDir: not used while nodeSource is %q", s.NodeSource))
	}
	return warnings
}

// These compile once; a regular expression holds no state.
var (
	label     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	dnsDomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	version   = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
)

type validator struct{ faults []Fault }

func (v *validator) add(field, message string) {
	v.faults = append(v.faults, Fault{Field: field, Message: message})
}

func (v *validator) match(field, value string, pattern *regexp.Regexp, rule string) {
	if !pattern.MatchString(value) {
		v.add(field, fmt.Sprintf("%q %s", value, rule))
	}
}

func (v *validator) optional(field, value string, pattern *regexp.Regexp, rule string) {
	if value != "" {
		v.match(field, value, pattern, rule)
	}
}

func (v *validator) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.add(field, fmt.Sprintf("%q must be one of %s", value, strings.Join(allowed, ", ")))
	}
}

func (v *validator) port(field string, port int) {
	if port != 0 && (port < 1024 || port > 65535) {
		v.add(field, fmt.Sprintf("%d must be 0 (a free port) or between 1024 and 65535", port))
	}
}

func (v *validator) name(name string) {
	switch {
	case !label.MatchString(name):
		v.add("name", fmt.Sprintf("%q must be lower case letters, digits and dashes", name))
	case len(name) > maxNameLength:
		v.add("name", fmt.Sprintf("%q must have at most %d characters", name, maxNameLength))
	}
}

// The counts are bounded so that a typing error does not start a thousand machines.
const maxNodesPerRole = 99

func (v *validator) counts(controlPlanes, workers int) {
	if controlPlanes < 1 || controlPlanes > maxNodesPerRole {
		v.add("controlPlanes", fmt.Sprintf("%d must be between 1 and %d", controlPlanes, maxNodesPerRole))
	}
	if workers < 0 || workers > maxNodesPerRole {
		v.add("workers", fmt.Sprintf("%d must be between 0 and %d", workers, maxNodesPerRole))
	}
}

func (v *validator) networks(s Spec) {
	prefixes := map[string]netip.Prefix{}
	for _, field := range []struct{ name, value string }{
		{"cidr", s.CIDR}, {"podCIDR", s.PodCIDR}, {"serviceCIDR", s.ServiceCIDR},
	} {
		prefix, err := netip.ParsePrefix(field.value)
		switch {
		case err != nil || !prefix.Addr().Is4():
			v.add(field.name, fmt.Sprintf("%q must be an IPv4 network such as %q", field.value, "192.168.123.0/24"))
			continue
		case prefix != prefix.Masked():
			v.add(field.name, fmt.Sprintf("%q has host bits set; write %q", field.value, prefix.Masked()))
		}
		for _, other := range []string{"cidr", "podCIDR", "serviceCIDR"} {
			if before, ok := prefixes[other]; ok && before.Overlaps(prefix) {
				v.add(field.name, fmt.Sprintf("%q overlaps %s %q", field.value, other, before))
			}
		}
		prefixes[field.name] = prefix
	}
	if prefix, ok := prefixes["cidr"]; ok {
		v.room(prefix, s.ControlPlanes+s.Workers)
	}
}

func (v *validator) room(prefix netip.Prefix, nodes int) {
	room := 1<<(32-prefix.Bits()) - 2 - ReservedAddresses // less the network and the broadcast address
	if room < nodes {
		v.add("cidr", fmt.Sprintf("%q has room for %d nodes, %d are wanted (the first %d addresses are reserved); use a shorter prefix",
			prefix, max(room, 0), nodes, ReservedAddresses))
	}
}

func joinFaults(faults []Fault) error {
	errs := make([]error, len(faults))
	for i, fault := range faults {
		errs[i] = fault
	}
	return errors.Join(errs...)
}
