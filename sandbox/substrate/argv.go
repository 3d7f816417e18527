package substrate

import (
	"github.com/cozystack/cozydev/sandbox/cgroup"
)

// initArgs is the command line of a node's init: the contract between the sandbox and cozynode.
func initArgs(machine Machine) []string {
	return []string{
		machine.Cozynode, "init",
		"--hostname", machine.Node.Name,
		"--address", machine.Node.Address.String(),
		"--gateway", machine.Gateway.String(),
		"--state-dir", machine.StateDir,
		"--bin-dir", machine.Binaries,
		"--cgroup", cgroup.Node(machine.Sandbox, machine.Node.Name),
		"--nameserver", machine.Gateway.String(),
	}
}
