package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestRouteOf(t *testing.T) {
	for _, test := range []struct {
		name   string
		md     metadata.MD
		method string
		want   route
		code   codes.Code
	}{
		{"nothing named", metadata.MD{}, machine.MachineService_Version_FullMethodName, route{}, codes.OK},
		{"one node", metadata.Pairs("node", "a"), "/cosi.resource.State/Get", route{nodes: []string{"a"}}, codes.OK},
		{"two under node", metadata.Pairs("node", "a", "node", "b"), machine.MachineService_Version_FullMethodName, route{}, codes.InvalidArgument},
		{"several", metadata.Pairs("nodes", "a", "nodes", "b"), machine.MachineService_Version_FullMethodName,
			route{nodes: []string{"a", "b"}, aggregate: true}, codes.OK},
		{"several of another service", metadata.Pairs("nodes", "a"), "/cosi.resource.State/Get", route{}, codes.InvalidArgument},
		{"routed before", metadata.Pairs("nodes", "a", proxyKey, "x"), machine.MachineService_Version_FullMethodName, route{}, codes.OK},
	} {
		got, err := routeOf(test.md, test.method)
		if status.Code(err) != test.code || !reflect.DeepEqual(got, test.want) && test.code == codes.OK {
			t.Errorf("%s: got %+v, %v", test.name, got, err)
		}
	}
}

func TestSignReply(t *testing.T) {
	reply, err := proto.Marshal(&machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signReply("10.0.0.1", false, reply)
	if err != nil {
		t.Fatal(err)
	}
	var response machine.HostnameResponse
	if err := proto.Unmarshal(signed, &response); err != nil {
		t.Fatal(err)
	}
	if m := response.Messages; len(m) != 1 || m[0].Hostname != "a" || m[0].Metadata.Hostname != "10.0.0.1" {
		t.Errorf("unary: %v", &response)
	}
	chunk, err := proto.Marshal(&common.Data{Bytes: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if chunk, err = signReply("10.0.0.1", true, chunk); err != nil {
		t.Fatal(err)
	}
	var data common.Data
	if err := proto.Unmarshal(chunk, &data); err != nil || string(data.Bytes) != "x" || data.Metadata.Hostname != "10.0.0.1" {
		t.Errorf("streamed: %v, %v", &data, err)
	}
	for _, broken := range [][]byte{nil, {0xff}, {0x0a, 0x7f}, {0x08, 0x01}} {
		if _, err := signReply("a", false, broken); err == nil {
			t.Errorf("%v was taken for an answer", broken)
		}
	}
}

func TestErrorReply(t *testing.T) {
	reply, err := errorReply("a", false, status.Error(codes.NotFound, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	var response machine.VersionResponse
	if err := proto.Unmarshal(reply, &response); err != nil {
		t.Fatal(err)
	}
	if got := response.Messages[0].Metadata; got.Hostname != "a" || got.Status.Code != int32(codes.NotFound) {
		t.Errorf("got %v", got)
	}
}

func TestResetOf(t *testing.T) {
	partitions := func(wipe bool, labels ...string) *machine.ResetRequest {
		request := &machine.ResetRequest{Reboot: true}
		for _, label := range labels {
			request.SystemPartitionsToWipe = append(request.SystemPartitionsToWipe, &machine.ResetPartitionSpec{Label: label, Wipe: wipe})
		}
		return request
	}
	for _, test := range []struct {
		name    string
		request *machine.ResetRequest
		refused string
	}{
		{"all", &machine.ResetRequest{Reboot: true}, ""},
		{"state and data", partitions(true, "EPHEMERAL", "STATE"), ""},
		{"data only", partitions(true, "EPHEMERAL"), "EPHEMERAL"},
		{"keeping", partitions(false, "META"), `"META"`},
		{"user disks", &machine.ResetRequest{Mode: machine.ResetRequest_USER_DISKS}, "user disks"},
		{"one disk", &machine.ResetRequest{UserDisksToWipe: []string{"/dev/sdb"}}, "user disks"},
	} {
		got, err := resetOf(test.request)
		if test.refused == "" {
			if err != nil || got.Halt || got.Action != StopReset {
				t.Errorf("%s: got %+v, %v", test.name, got, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestSelectPast(t *testing.T) {
	now := time.Unix(1000, 0)
	var past []Event
	for i := range 5 {
		past = append(past, Event{ID: fmt.Sprint(i), Time: now.Add(time.Duration(i-5) * 10 * time.Second)})
	}
	for _, test := range []struct {
		name    string
		request *machine.EventsRequest
		first   string
		count   int
	}{
		{"nothing asked", &machine.EventsRequest{}, "", 0},
		{"all", &machine.EventsRequest{TailEvents: -1}, "0", 5},
		{"the last two", &machine.EventsRequest{TailEvents: 2}, "3", 2},
		{"more than there are", &machine.EventsRequest{TailEvents: 9}, "0", 5},
		{"after an ID", &machine.EventsRequest{TailId: "1"}, "2", 3},
		{"after the last", &machine.EventsRequest{TailId: "4"}, "", 0},
		{"of 20 seconds", &machine.EventsRequest{TailSeconds: 20}, "3", 2},
	} {
		got := selectPast(past, test.request, now)
		if len(got) != test.count || test.count > 0 && got[0].ID != test.first {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}

func TestEventLogForgetsAndFollows(t *testing.T) {
	var log EventLog
	for range eventCapacity + 10 {
		log.Publish("", &machine.PhaseEvent{})
	}
	if got := len(log.History()); got != eventCapacity {
		t.Fatalf("remembers %d events", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var seen []string
	log.Publish("last", &machine.PhaseEvent{})
	err := log.Follow(ctx, func(past []Event) []Event { return past[len(past)-1:] }, func(event Event) error {
		seen = append(seen, event.ActorID)
		if event.ActorID == "last" {
			log.Publish("new", &machine.PhaseEvent{})
		} else {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || !reflect.DeepEqual(seen, []string{"last", "new"}) {
		t.Errorf("saw %v, %v", seen, err)
	}
}

func TestStatusOf(t *testing.T) {
	for err, want := range map[error]codes.Code{
		nil:                                   codes.OK,
		fmt.Errorf("x: %w", ErrUnsupported):   codes.Unimplemented,
		fmt.Errorf("x: %w", ErrNotFound):      codes.NotFound,
		fmt.Errorf("x: %w", ErrNotReady):      codes.FailedPrecondition,
		fmt.Errorf("x: %w", ErrAlready):       codes.AlreadyExists,
		fmt.Errorf("x: %w", ErrInvalid):       codes.InvalidArgument,
		fmt.Errorf("x: %w", context.Canceled): codes.Canceled,
		errors.New("x"):                       codes.Internal,
		status.Error(codes.Aborted, "x"):      codes.Aborted,
	} {
		if got := status.Code(statusOf(err)); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

// A rule that names no method would allow nothing; a method implemented without a rule would be refused.
func TestRulesNameMethodsOfTheService(t *testing.T) {
	described := map[string]bool{}
	for _, method := range machine.MachineService_ServiceDesc.Methods {
		described[machinePrefix+method.MethodName] = true
	}
	for _, stream := range machine.MachineService_ServiceDesc.Streams {
		described[machinePrefix+stream.StreamName] = true
	}
	for method := range rules() {
		if !described[method] {
			t.Errorf("the machine service has no method %s", method)
		}
	}
	if !streamed(machine.MachineService_Logs_FullMethodName) || streamed(machine.MachineService_Version_FullMethodName) {
		t.Error("streams are not told from single answers")
	}
}

type someone struct{ addresses []netip.Addr }

func (someone) Hostname() string          { return "cp1" }
func (s someone) Addresses() []netip.Addr { return s.addresses }

func TestCertificateNames(t *testing.T) {
	address := netip.MustParseAddr("10.0.0.1")
	for _, test := range []struct {
		name         string
		controlPlane bool
		names        string
		ips          string
	}{
		{"a control plane answers for the endpoint", true, "[api.example cp1 extra]", "[10.0.0.1 10.0.0.9]"},
		{"a worker does not", false, "[cp1 extra]", "[10.0.0.1 10.0.0.9]"},
	} {
		m := material{hostname: "cp1", endpoint: "api.example", controlPlane: test.controlPlane}
		m.addSANs(someone{[]netip.Addr{address}}, []string{"extra", "10.0.0.9", "10.0.0.1", "cp1"})
		if fmt.Sprint(m.names) != test.names || fmt.Sprint(m.ips) != test.ips {
			t.Errorf("%s: got %v, %v", test.name, m.names, m.ips)
		}
	}
}
