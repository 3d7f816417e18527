package talos

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cozystack/cozydev/talos/config"
)

// glance bounds the look at the other control planes before bootstrapping.
const glance = 500 * time.Millisecond

// Bootstrap makes the first control plane start the etcd cluster, unless there is one already. changed tells whether
// this call did it.
func (c *Cluster) Bootstrap(ctx context.Context) (changed bool, err error) {
	planes := c.controlPlanes()
	first := planes[0]
	w := c.start(StepBootstrap, first)

	err = w.until(ctx, first.Name, func(ctx context.Context) (string, bool, error) {
		// A first control plane that has lost its data must join the others, not start a second cluster beside them.
		if c.etcdRunsOnAny(ctx, planes) {
			return "done before", true, nil
		}

		switch err := c.bootstrapOn(ctx, first); {
		case err == nil:
			changed = true

			return "etcd is starting", true, nil
		case errors.Is(err, errBootstrapped):
			return "done before", true, nil
		default:
			return outcome(err)
		}
	})

	return changed, w.result(ctx, err)
}

var errBootstrapped = errors.New("bootstrapped before")

func (c *Cluster) bootstrapOn(ctx context.Context, node config.Node) error {
	cl, err := c.client(ctx, node)
	if err != nil {
		return err
	}

	err = cl.Bootstrap(ctx, &machine.BootstrapRequest{})
	if status.Code(err) == codes.AlreadyExists {
		return errBootstrapped
	}

	return final(err)
}

// etcdRunsOnAny asks all control planes at once; one that does not answer at once runs no etcd either.
func (c *Cluster) etcdRunsOnAny(ctx context.Context, planes []config.Node) bool {
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()

	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		found bool
	)

	for _, node := range planes {
		wg.Go(func() {
			list, err := c.services(ctx, node)
			if err != nil || service(list, etcdService).State != "Running" {
				return
			}

			mu.Lock()
			found = true
			mu.Unlock()
			// The others' answers no longer matter.
			cancel()
		})
	}

	wg.Wait()

	return found
}
