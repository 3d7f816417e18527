package api_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cozystack/cozydev/talos/node/api"
)

func durationOf(text string) *durationpb.Duration {
	duration, _ := time.ParseDuration(text)
	return durationpb.New(duration)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// calls are requests of each level of power.
func calls() map[string]func(context.Context, *client.Client) error {
	return map[string]func(context.Context, *client.Client) error{
		"Version":     func(ctx context.Context, c *client.Client) error { _, err := c.Version(ctx); return err },
		"ServiceList": func(ctx context.Context, c *client.Client) error { _, err := c.ServiceList(ctx); return err },
		"EtcdStatus":  func(ctx context.Context, c *client.Client) error { _, err := c.EtcdStatus(ctx); return err },
		"Reboot":      func(ctx context.Context, c *client.Client) error { return c.Reboot(ctx) },
		"Kubeconfig":  func(ctx context.Context, c *client.Client) error { _, err := c.Kubeconfig(ctx); return err },
		"Reset":       func(ctx context.Context, c *client.Client) error { return c.Reset(ctx, false, true) },
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	for _, test := range []struct {
		role    role.Role
		allowed string
	}{
		{role.Reader, "Version ServiceList EtcdStatus"},
		{role.Operator, "Version ServiceList EtcdStatus Reboot"},
		{role.Admin, "Version ServiceList EtcdStatus Reboot Kubeconfig Reset"},
		{role.EtcdBackup, "EtcdStatus"},
		{"os:nobody", ""},
	} {
		caller := c.client("127.0.0.2", test.role)
		for name, call := range calls() {
			want := codes.PermissionDenied
			if strings.Contains(test.allowed, name) {
				want = codes.OK
			}
			wantCode(t, string(test.role)+" calls "+name, call(testContext(t), caller), want)
		}
	}
}

func TestRolesInMetadataCountForImpersonatorsOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	asAdmin := metadata.AppendToOutgoingContext(testContext(t), "talos-role", string(role.Admin))
	wantCode(t, "a reader who claims to be admin", c.client("127.0.0.2", role.Reader).Reboot(asAdmin), codes.PermissionDenied)
	wantCode(t, "an impersonator acting for an admin", c.client("127.0.0.2", role.Impersonator).Reboot(asAdmin), codes.OK)

	anyone := metadata.AppendToOutgoingContext(testContext(t), "cozynode-maintenance", "true")
	wantCode(t, "a reader who claims maintenance mode", c.client("127.0.0.2", role.EtcdBackup).Reboot(anyone), codes.PermissionDenied)
	_, err := c.client("127.0.0.2", role.EtcdBackup).Version(anyone)
	wantCode(t, "a reader who claims maintenance mode", err, codes.PermissionDenied)
}

func TestMethods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node, _ := c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)

	if info, err := admin.ServiceInfo(ctx, "kubelet"); err != nil || len(info) != 1 || !info[0].Service.Health.Healthy {
		t.Errorf("ServiceInfo: %v, %v", info, err)
	}
	if _, err := admin.ServiceRestart(ctx, "kubelet"); err != nil {
		t.Errorf("ServiceRestart: %v", err)
	}
	_, err := admin.ServiceRestart(ctx, "nonesuch")
	wantCode(t, "restarting an unknown service", err, codes.NotFound)
	_, err = admin.ServiceStop(ctx, "kubelet")
	wantCode(t, "stopping a service", err, codes.Unimplemented)
	members, err := admin.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil || members.Messages[0].Members[0].Hostname != "cp1" {
		t.Errorf("EtcdMemberList: %v, %v", members, err)
	}
	if kubeconfig, err := admin.Kubeconfig(ctx); err != nil || string(kubeconfig) != "kind: Config\n" {
		t.Errorf("Kubeconfig: %q, %v", kubeconfig, err)
	}
	wantCode(t, "the first Bootstrap", admin.Bootstrap(ctx, &machineapi.BootstrapRequest{}), codes.OK)
	wantCode(t, "a second Bootstrap", admin.Bootstrap(ctx, &machineapi.BootstrapRequest{}), codes.AlreadyExists)
	wantCode(t, "recovery", admin.Bootstrap(ctx, &machineapi.BootstrapRequest{RecoverEtcd: true}), codes.Unimplemented)
	hostname, err := admin.MachineClient.Hostname(ctx, &emptypb.Empty{})
	if err != nil || hostname.Messages[0].Hostname != "cp1" {
		t.Errorf("Hostname: %v, %v", hostname, err)
	}
	if err := admin.Reset(ctx, true, true); err != nil {
		t.Errorf("Reset: %v", err)
	}
	if stops := node.stopped(); len(stops) != 1 || stops[0].Action != api.StopReset || stops[0].Halt || stops[0].ActorID == "" {
		t.Errorf("stopped with %+v", stops)
	}
}

func TestMethodsMissingAreNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)
	_, unary := admin.Processes(ctx)
	_, other := admin.Disks(ctx)
	stream, err := admin.LS(ctx, &machineapi.ListRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	for name, err := range map[string]error{"MachineService/Processes": unary, "StorageService/Disks": other, "MachineService/List": err} {
		wantCode(t, name, err, codes.Unimplemented)
		if err != nil && (!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "cozynode")) {
			t.Errorf("the error does not name %s and cozynode: %v", name, err)
		}
	}
}

func TestLogStreams(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	ctx, reader := testContext(t), c.client("127.0.0.2", role.Reader)

	stream, err := reader.Logs(ctx, "system", common.ContainerDriver_CONTAINERD, "kubelet", false, -1)
	wantStream(t, stream, err, "kubelet tail=-1\n")
	dmesg, err := reader.Dmesg(ctx, false, true)
	wantStream(t, dmesg, err, "console tail=0\n")

	stream, err = reader.Logs(ctx, "k8s.io", common.ContainerDriver_CRI, "coredns", false, -1)
	if err == nil {
		_, err = stream.Recv()
	}
	wantCode(t, "the log of a container", err, codes.Unimplemented)

	following, leave := context.WithCancel(ctx)
	stream, err = reader.Logs(following, "system", common.ContainerDriver_CONTAINERD, "kubelet", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := stream.Recv(); err != nil || string(data.Bytes) != "first\n" {
		t.Errorf("following: %v, %v", data, err)
	}
	leave()
	_, err = stream.Recv()
	wantCode(t, "following after leaving", err, codes.Canceled)
}

func wantStream(t *testing.T, stream client.MachineStream, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	content, err := client.ReadStream(stream)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(content); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node, _ := c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)
	node.events.Publish("", &machineapi.MachineStatusEvent{Stage: machineapi.MachineStatusEvent_BOOTING})
	node.events.Publish("", &machineapi.MachineStatusEvent{Stage: machineapi.MachineStatusEvent_RUNNING})

	results := make(chan client.EventResult, 4)
	if err := admin.EventsWatchV2(ctx, results, client.WithTailEvents(1)); err != nil {
		t.Fatal(err)
	}
	past := next(ctx, t, results)
	if stage := past.Payload.(*machineapi.MachineStatusEvent).Stage; stage != machineapi.MachineStatusEvent_RUNNING {
		t.Errorf("the last event is %s", stage)
	}
	response, err := admin.RebootWithResponse(ctx)
	if err != nil {
		t.Fatal(err)
	}
	event := next(ctx, t, results)
	if sequence := event.Payload.(*machineapi.SequenceEvent).Sequence; sequence != "reboot" {
		t.Errorf("the new event is of sequence %q", sequence)
	}
	if event.ActorID == "" || event.ActorID != response.Messages[0].ActorId {
		t.Errorf("the event's actor is %q, the request's %q", event.ActorID, response.Messages[0].ActorId)
	}
	if event.ID <= past.ID {
		t.Errorf("event IDs do not ascend: %q, %q", past.ID, event.ID)
	}
}

func next(ctx context.Context, t *testing.T, results <-chan client.EventResult) client.Event {
	t.Helper()
	select {
	case result := <-results:
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		return result.Event
	case <-ctx.Done():
		t.Fatal("no event in time")
	}
	return client.Event{}
}
