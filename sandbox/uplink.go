package sandbox

import (
	"os"
	"strings"
)

// ResolveUplink tells what the spec's uplink comes to on this host, and why.
func (s Spec) ResolveUplink() (on bool, why string) {
	routes, err := os.ReadFile("/proc/net/route")
	return s.resolveUplink(err == nil && hasDefaultRoute(string(routes)))
}

func (s Spec) resolveUplink(defaultRoute bool) (on bool, why string) {
	switch {
	case s.Offline:
		return false, "offline is set"
	case s.Uplink == UplinkOn || s.Uplink == UplinkOff:
		return s.Uplink == UplinkOn, "as the spec says"
	case defaultRoute:
		return true, "the host has a default route"
	default:
		return false, "the host has no default route"
	}
}

// hasDefaultRoute reads /proc/net/route (proc(5)): destination and mask are the second and the eighth column.
func hasDefaultRoute(routes string) bool {
	for line := range strings.Lines(routes) {
		fields := strings.Fields(line)
		if len(fields) >= 8 && fields[1] == "00000000" && fields[7] == "00000000" {
			return true
		}
	}
	return false
}
