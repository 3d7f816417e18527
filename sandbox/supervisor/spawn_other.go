//go:build !linux

package supervisor

import (
	"context"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/network"
)

type spawnOptions struct {
	state            sandbox.State
	name, executable string
	listeners        hostListeners
}

func spawn(context.Context, spawnOptions) error { return network.ErrUnsupported }

// Run returns an error: a supervisor needs Linux.
func Run(context.Context, string) error { return network.ErrUnsupported }
