package talos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestBrief(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("two\n  lines"), "two lines"},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded), "no answer within 5s"},
		{status.Error(codes.DeadlineExceeded, "x"), "no answer within 5s"},
		{status.Error(codes.FailedPrecondition, "time is not in sync"), "time is not in sync"},
		{&url.Error{Op: "Get", URL: "https://x", Err: errors.New("refused")}, "refused"},
		{
			status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:50000: connect: connection refused"`),
			"dial tcp 10.0.0.1:50000: connect: connection refused",
		},
		{
			status.Error(codes.Unavailable, `last connection error: connection error: desc = "transport: authentication handshake failed: EOF"`),
			"EOF",
		},
	} {
		if got := brief(c.err); got != c.want {
			t.Errorf("brief(%v) is %q, want %q", c.err, got, c.want)
		}
	}
}

func TestMemberState(t *testing.T) {
	for _, c := range []struct {
		status *machine.EtcdMemberStatus
		want   string
		good   bool
	}{
		{&machine.EtcdMemberStatus{Leader: 1}, "member", true},
		{&machine.EtcdMemberStatus{Leader: 1, IsLearner: true}, "etcd: it is a learner still", false},
		{&machine.EtcdMemberStatus{}, "etcd: it sees no leader", false},
		{nil, "etcd: it sees no leader", false},
		{&machine.EtcdMemberStatus{Leader: 1, Errors: []string{"NOSPACE", "CORRUPT"}}, "etcd: NOSPACE, CORRUPT", false},
	} {
		if got, good := memberState(c.status); got != c.want || good != c.good {
			t.Errorf("%v: %q %v, want %q %v", c.status, got, good, c.want, c.good)
		}
	}
}

func TestServiceOf(t *testing.T) {
	event := &machine.ServiceEvents{Events: []*machine.ServiceEvent{{Msg: "started"}, {Msg: "exit code 1"}}}

	for _, c := range []struct {
		info    *machine.ServiceInfo
		want    string
		running bool
	}{
		{&machine.ServiceInfo{Id: "a", State: "Running", Events: event, Health: &machine.ServiceHealth{Unknown: true}}, "a: Running", true},
		{&machine.ServiceInfo{Id: "a", State: "Running", Health: &machine.ServiceHealth{Healthy: true, LastMessage: "ok"}}, "a: Running", true},
		{&machine.ServiceInfo{Id: "a", State: "Running", Health: &machine.ServiceHealth{LastMessage: "HTTP\n500"}}, "a: Running, unhealthy: HTTP 500", false},
		{&machine.ServiceInfo{Id: "a", State: "Failed", Events: event, Health: &machine.ServiceHealth{Unknown: true}}, "a: Failed: exit code 1", false},
	} {
		if got := serviceOf(c.info); got.String() != c.want || got.Running() != c.running {
			t.Errorf("%v: %q %v, want %q %v", c.info, got, got.Running(), c.want, c.running)
		}
	}

	if got := service(nil, "etcd").String(); got != "etcd: not started" {
		t.Errorf("a missing service is %q", got)
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines("a\nb\r\n\nc\n", 2); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("got %q", got)
	}
}

func TestPaceSlowsDown(t *testing.T) {
	last := time.Duration(0)
	for _, elapsed := range []time.Duration{0, 30 * time.Second, 2 * time.Minute} {
		if p := pace(elapsed); p <= last {
			t.Errorf("the pace after %v is %v, before it was %v", elapsed, p, last)
		} else {
			last = p
		}
	}
}
