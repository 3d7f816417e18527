package api_test

import (
	"errors"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
)

func TestForwarding(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	second, _ := c.start("cp2", "127.0.0.3", c.config(machine.TypeControlPlane))
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)

	one, err := admin.MachineClient.Hostname(client.WithNode(ctx, "127.0.0.3"), &emptypb.Empty{})
	if err != nil || one.Messages[0].Hostname != "cp2" {
		t.Fatalf("one node: %v, %v", one, err)
	}
	many, err := admin.MachineClient.Hostname(client.WithNodes(ctx, "127.0.0.2", "127.0.0.3"), &emptypb.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, message := range many.Messages {
		answers[message.Metadata.Hostname] = message.Hostname
	}
	if len(answers) != 2 || answers["127.0.0.2"] != "cp1" || answers["127.0.0.3"] != "cp2" {
		t.Errorf("answers %v", answers)
	}

	// The far node decides by the caller's role, not by the forwarding node's.
	reader := c.client("127.0.0.2", role.Reader)
	wantCode(t, "a reader reboots another node", reader.Reboot(client.WithNode(ctx, "127.0.0.3")), codes.PermissionDenied)
	if len(second.stopped()) > 0 {
		t.Error("the reader rebooted the node")
	}
	wantCode(t, "an admin reboots another node", admin.Reboot(client.WithNode(ctx, "127.0.0.3")), codes.OK)
}

func TestForwardingReportsErrorsPerNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)

	version, err := admin.Version(client.WithNodes(ctx, "127.0.0.2", "127.0.0.9"))
	if version == nil || len(version.Messages) != 1 {
		t.Fatalf("the node that answers is missing: %v", version)
	}
	var failure *client.NodeError
	if !errors.As(err, &failure) || failure.Node != "127.0.0.9" {
		t.Errorf("the node that does not answer is not named: %v", err)
	}
}

func TestForwardingStreams(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	c.start("cp2", "127.0.0.3", c.config(machine.TypeControlPlane))
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)

	stream, err := admin.Logs(client.WithNode(ctx, "127.0.0.3"), "system", common.ContainerDriver_CONTAINERD, "kubelet", false, 3)
	wantStream(t, stream, err, "kubelet tail=3\n")
	if kubeconfig, err := admin.Kubeconfig(client.WithNode(ctx, "127.0.0.3")); err != nil || string(kubeconfig) != "kind: Config\n" {
		t.Errorf("Kubeconfig: %q, %v", kubeconfig, err)
	}
	many, err := admin.Dmesg(client.WithNodes(ctx, "127.0.0.2", "127.0.0.3"), false, false)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]bool{}
	for range 2 {
		data, err := many.Recv()
		if err != nil {
			t.Fatal(err)
		}
		from[data.Metadata.Hostname] = true
	}
	if !from["127.0.0.2"] || !from["127.0.0.3"] {
		t.Errorf("streams from %v", from)
	}
}

func TestWorkersDoNotForward(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	c.start("worker1", "127.0.0.4", c.config(machine.TypeWorker))
	ctx, admin := testContext(t), c.client("127.0.0.4", role.Admin)
	_, err := admin.Version(client.WithNode(ctx, "127.0.0.2"))
	wantCode(t, "forwarding by a worker", err, codes.PermissionDenied)
	if version, err := admin.Version(client.WithNodes(ctx, "127.0.0.4")); err != nil || version.Messages[0].Metadata.Hostname != "127.0.0.4" {
		t.Errorf("naming the worker itself: %v, %v", version, err)
	}
}
