package talos

import (
	"context"
	"errors"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/cozystack/cozydev/talos/config"
)

// The IDs of the services that steps look at.
const (
	etcdService    = "etcd"
	kubeletService = "kubelet"
)

// Service is a component of a node as its service list shows it.
type Service struct {
	// ID names it: etcd, kubelet, …
	ID string
	// State is Talos' word for it: Waiting, Running, Failed, …
	State string
	// Checked tells whether the component has a health check; Healthy is its last result.
	Checked, Healthy bool
	// Message says why, in one line; it may be empty.
	Message string
}

// String gives the service in one line, such as "etcd: Waiting: learner not promoted".
func (s Service) String() string {
	text := s.ID + ": " + s.State
	if s.Checked && !s.Healthy && s.State == "Running" {
		text += ", unhealthy"
	}

	if s.Message != "" {
		text += ": " + s.Message
	}

	return text
}

// Running tells whether the component runs and nothing is known to be wrong with it.
func (s Service) Running() bool { return s.State == "Running" && (s.Healthy || !s.Checked) }

// services asks one node.
func (c *Cluster) services(ctx context.Context, node config.Node) ([]Service, error) {
	cl, err := c.client(ctx, node)
	if err != nil {
		return nil, err
	}

	reply, err := cl.ServiceList(ctx)
	if err != nil {
		return nil, final(err)
	}

	if len(reply.GetMessages()) == 0 {
		return nil, errors.New("the node's answer is empty")
	}

	var out []Service
	for _, info := range reply.GetMessages()[0].GetServices() {
		out = append(out, serviceOf(info))
	}

	return out, nil
}

func serviceOf(info *machine.ServiceInfo) Service {
	health := info.GetHealth()
	s := Service{ID: info.GetId(), State: info.GetState(), Checked: !health.GetUnknown(), Healthy: health.GetHealthy()}

	switch events := info.GetEvents().GetEvents(); {
	case s.Checked && !s.Healthy && health.GetLastMessage() != "":
		s.Message = health.GetLastMessage()
	case !s.Running() && len(events) > 0:
		s.Message = events[len(events)-1].GetMsg()
	}

	s.Message = strings.Join(strings.Fields(s.Message), " ")

	return s
}

// service picks one component; a node that does not have it, or not yet, gives one that says so.
func service(list []Service, id string) Service {
	for _, s := range list {
		if s.ID == id {
			return s
		}
	}

	return Service{ID: id, State: "not started"}
}
