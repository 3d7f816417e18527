package talos

import (
	"context"
	"errors"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/cozystack/cozydev/talos/config"
)

// WaitEtcd waits until every control plane is a voting member of the etcd cluster, sees a leader and has no alarms. The
// Kubernetes API and the nodes are ready before that, so it is best run beside [Cluster.WaitNodes].
func (c *Cluster) WaitEtcd(ctx context.Context) error {
	planes := c.controlPlanes()
	w := c.start(StepEtcd, planes...)

	return w.each(ctx, planes, func(ctx context.Context, node config.Node) error {
		return w.until(ctx, node.Name, func(ctx context.Context) (string, bool, error) {
			state, healthy, err := c.etcdState(ctx, node)
			if err != nil {
				return outcome(err)
			}

			return state, healthy, nil
		})
	})
}

// etcdState looks at one member, through the service list first: while etcd does not run, that knows why.
func (c *Cluster) etcdState(ctx context.Context, node config.Node) (state string, healthy bool, err error) {
	list, err := c.services(ctx, node)
	if err != nil {
		return "", false, err
	}

	if s := service(list, etcdService); s.State != "Running" {
		return s.String(), false, nil
	}

	cl, err := c.client(ctx, node)
	if err != nil {
		return "", false, err
	}

	reply, err := cl.EtcdStatus(ctx)
	if err != nil {
		return "", false, final(err)
	}

	if len(reply.GetMessages()) == 0 {
		return "", false, errors.New("the node's answer is empty")
	}

	state, healthy = memberState(reply.GetMessages()[0].GetMemberStatus())

	return state, healthy, nil
}

// memberState judges what a member says of itself.
func memberState(s *machine.EtcdMemberStatus) (state string, healthy bool) {
	switch {
	case s.GetIsLearner():
		return "etcd: it is a learner still", false
	case s.GetLeader() == 0:
		return "etcd: it sees no leader", false
	case len(s.GetErrors()) > 0:
		return "etcd: " + strings.Join(s.GetErrors(), ", "), false
	default:
		return "member", true
	}
}
