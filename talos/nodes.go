package talos

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// WaitNodes waits until every node of the cluster is Ready in Kubernetes, with the credentials of kubeconfig. The API is
// reached at the cluster's own endpoint through the Cluster's dialer, whatever server the kubeconfig names.
func (c *Cluster) WaitNodes(ctx context.Context, kubeconfig []byte) error {
	api, hangUp, err := c.nodesAPI(kubeconfig)
	if err != nil {
		return fmt.Errorf("%s: %w", StepNodes.doing(), err)
	}
	defer hangUp()

	w := c.start(StepNodes, c.bundle.Nodes()...)
	began := time.Now()

	for {
		err := watchNodes(ctx, api, w)

		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return c.withKubeletLogs(ctx, w.explain(context.Cause(ctx)))
		case !errors.Is(err, errWatchEnded):
			w.seeAll(brief(err))
		}

		if pause(ctx, pace(time.Since(began))) != nil {
			return c.withKubeletLogs(ctx, w.explain(context.Cause(ctx)))
		}
	}
}

// nodesAPI makes a client; hangUp ends its connections.
func (c *Cluster) nodesAPI(kubeconfig []byte) (api typedcorev1.NodeInterface, hangUp func(), err error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}

	cfg.Host = c.bundle.Endpoint()
	cfg.Dial = c.dial
	// Requests follow the wait's own pace.
	cfg.QPS = -1

	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, nil, err
	}

	core, err := typedcorev1.NewForConfigAndClient(cfg, http)
	if err != nil {
		return nil, nil, err
	}

	return core.Nodes(), func() { utilnet.CloseIdleConnectionsFor(http.Transport) }, nil
}

// errWatchEnded is the usual end of a watch: the server closes each after a while.
var errWatchEnded = errors.New("the watch ended")

// watchNodes looks at all nodes and then at each change, until all are ready. It returns an error when it has to be
// called again.
func watchNodes(ctx context.Context, api typedcorev1.NodeInterface, w *wait) error {
	bounded, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()

	list, err := api.List(bounded, metav1.ListOptions{})
	if err != nil {
		return err
	}

	pending := newPending(w, list.Items)
	if pending.empty() {
		return nil
	}

	changes, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer changes.Stop()

	for event := range changes.ResultChan() {
		node, isNode := event.Object.(*corev1.Node)
		if !isNode {
			return errWatchEnded
		}

		pending.update(node, event.Type == watch.Deleted)

		if pending.empty() {
			return nil
		}
	}

	return errWatchEnded
}

// pending are the nodes that are not ready.
type pending struct {
	wait *wait
	open map[string]bool
}

// newPending starts with what a list says; a node that was ready before and is no longer counts as open again.
func newPending(w *wait, nodes []corev1.Node) *pending {
	p := &pending{wait: w, open: map[string]bool{}}
	seen := map[string]bool{}

	for i := range nodes {
		seen[nodes[i].Name] = true
		p.update(&nodes[i], false)
	}

	for _, name := range w.order {
		if !seen[name] {
			p.open[name] = true
			w.see(name, "not registered yet")
		}
	}

	return p
}

func (p *pending) update(node *corev1.Node, deleted bool) {
	if !p.wait.knows(node.Name) {
		return
	}

	state, ready := nodeState(node)

	switch {
	case deleted:
		p.open[node.Name] = true
		p.wait.see(node.Name, "not registered yet")
	case ready:
		delete(p.open, node.Name)
		p.wait.done(node.Name, state)
	default:
		p.open[node.Name] = true
		p.wait.see(node.Name, state)
	}
}

func (p *pending) empty() bool { return len(p.open) == 0 }

// nodeState reads a node's Ready condition.
func nodeState(node *corev1.Node) (state string, ready bool) {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}

		if condition.Status == corev1.ConditionTrue {
			return "Ready", true
		}

		return fmt.Sprintf("not Ready: %s: %s", condition.Reason, condition.Message), false
	}

	return "registered, no status yet", false
}
