package talos_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	corev1 "k8s.io/api/core/v1"

	"github.com/cozystack/cozydev/talos"
	"github.com/cozystack/cozydev/talos/config"
	"github.com/cozystack/cozydev/talos/node/api"
)

func TestApplyOnceThenNothing(t *testing.T) {
	s := newSandbox(t, options(3, 1)).boot()
	c := s.cluster()

	for _, want := range []talos.Change{talos.Installed, talos.Unchanged, talos.Unchanged} {
		changes, err := c.Apply(within(t, 20*time.Second))
		if err != nil {
			t.Fatal(err)
		}

		for name, m := range s.machines {
			if got := changes[name]; got.Change != want || len(got.Warnings) != 1 {
				t.Errorf("%s: %+v, want %q and a warning", name, got, want)
			}

			if m.applied != 1 {
				t.Errorf("%s was given %d configs", name, m.applied)
			}
		}
	}
}

func TestApplyReplacesAnotherConfigOfTheCluster(t *testing.T) {
	opts := options(1, 0)
	s := newSandbox(t, opts).boot()
	s.applied()

	opts.DNSDomain = "other.local"

	changes, err := s.clusterOf(generate(t, opts, s.secrets)).Apply(within(t, 20*time.Second))
	if err != nil {
		t.Fatal(err)
	}

	m := s.machines["cp1"]
	if changes["cp1"].Change != talos.Updated || m.Config().Cluster().Network().DNSDomain() != "other.local" {
		t.Errorf("the change is %q, the domain %q", changes["cp1"].Change, m.Config().Cluster().Network().DNSDomain())
	}
}

func TestApplyWaitsForMachines(t *testing.T) {
	s := newSandbox(t, options(2, 0)).boot("cp1")

	late := time.AfterFunc(300*time.Millisecond, func() { s.boot("cp2") })
	defer late.Stop()

	if _, err := s.cluster().Apply(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}

	if !s.reported(talos.StepApply, "cp2", "connection refused") || !s.reported(talos.StepApply, "cp2", "installed") {
		t.Errorf("the reports do not tell what cp2 was waiting for: %+v", s.reports)
	}
}

func TestApplyNamesTheMachineThatNeverCame(t *testing.T) {
	s := newSandbox(t, options(2, 0)).boot("cp1")

	_, err := s.cluster().Apply(within(t, 700*time.Millisecond))
	wantError(t, err, "applying machine configs: cp2: ", "connection refused", "deadline exceeded")

	failed := (*talos.WaitError)(nil)
	if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) || len(failed.States) != 1 {
		t.Errorf("the error is %#v", err)
	}
}

func TestApplyRefusesAnotherClustersMachine(t *testing.T) {
	s := newSandbox(t, options(1, 0)).boot()
	s.applied()

	other, err := config.NewSecrets()
	if err != nil {
		t.Fatal(err)
	}

	_, err = s.clusterOf(generate(t, options(1, 0), other)).Apply(within(t, 20*time.Second))
	wantError(t, err, `applying machine configs: node "cp1": it runs with a config of another cluster`)
}

func TestApplyGivesUpAtOnceWhenTheConfigIsRefused(t *testing.T) {
	s := newSandbox(t, options(2, 0)).boot("cp1")
	s.machines["cp1"].refuse = fmt.Errorf("machine.disks: %w\nremove them", api.ErrUnsupported)

	_, err := s.cluster().Apply(within(t, 20*time.Second))
	wantError(t, err, `node "cp1": machine.disks: not supported by cozynode remove them`)
}

func TestBootstrapOnce(t *testing.T) {
	s := newSandbox(t, options(3, 0)).boot()
	c := s.applied()

	for _, want := range []bool{true, false} {
		changed, err := c.Bootstrap(within(t, 20*time.Second))
		if err != nil {
			t.Fatal(err)
		}

		if changed != want {
			t.Errorf("changed is %v, want %v", changed, want)
		}
	}
}

func TestBootstrapStartsNoSecondCluster(t *testing.T) {
	s := newSandbox(t, options(3, 0)).boot()
	c := s.applied()
	s.machines["cp3"].change(func() { s.machines["cp3"].services = []api.Service{running("etcd")} })

	changed, err := c.Bootstrap(within(t, 20*time.Second))
	if err != nil || changed || s.machines["cp1"].bootstrapped != 0 {
		t.Errorf("changed is %v, the error %v, cp1 was bootstrapped %d times", changed, err, s.machines["cp1"].bootstrapped)
	}
}

func TestWaitEtcd(t *testing.T) {
	s := newSandbox(t, options(2, 1)).boot()
	c := s.applied()
	cp1, cp2 := s.machines["cp1"], s.machines["cp2"]

	cp1.change(func() {
		cp1.services, cp1.etcd = []api.Service{running("etcd")}, api.EtcdStatus{MemberID: 1, Leader: 1}
	})
	cp2.change(func() { cp2.services = []api.Service{waiting("etcd", "learner not promoted")} })

	err := c.WaitEtcd(within(t, 500*time.Millisecond))
	wantError(t, err, "waiting for etcd: cp2: etcd: Waiting: learner not promoted: context deadline exceeded")

	cp2.change(func() {
		cp2.services, cp2.etcd = []api.Service{running("etcd")}, api.EtcdStatus{Leader: 1, IsLearner: true}
	})

	promoted := time.AfterFunc(300*time.Millisecond, func() { cp2.change(func() { cp2.etcd.IsLearner = false }) })
	defer promoted.Stop()

	if err := c.WaitEtcd(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}

	if !s.reported(talos.StepEtcd, "cp2", "learner still") {
		t.Errorf("the reports do not tell what cp2 was waiting for: %+v", s.reports)
	}
}

// An up of a running sandbox goes through all steps; together they may take half a second on a busy machine.
func TestAllStepsOnARunningCluster(t *testing.T) {
	s := newSandbox(t, options(3, 0)).boot()
	s.serveKube(&kubeAPI{nodes: func() []corev1.Node {
		return []corev1.Node{node("cp1", corev1.ConditionTrue, ""), node("cp2", corev1.ConditionTrue, ""), node("cp3", corev1.ConditionTrue, "")}
	}})

	for _, m := range s.machines {
		m.services, m.etcd, m.kubeconfig = []api.Service{running("etcd")}, api.EtcdStatus{Leader: 1}, s.admin(time.Hour*9000)
	}

	s.applied()

	path := filepath.Join(t.TempDir(), "kubeconfig")
	for range 2 {
		// A new process knows nothing of the connections of the last one.
		c, began := s.cluster(), time.Now()
		ctx := within(t, 20*time.Second)
		_, errApply := c.Apply(ctx)
		_, errBootstrap := c.Bootstrap(ctx)
		kubeconfig, _, errKubeconfig := c.Kubeconfig(ctx, path, "https://127.0.0.1:1")
		err := errors.Join(errApply, errBootstrap, errKubeconfig, c.WaitEtcd(ctx), c.WaitNodes(ctx, kubeconfig))

		if took := time.Since(began); err != nil || took > 2*time.Second {
			t.Errorf("it took %v; %v", took, err)
		} else {
			t.Logf("it took %v", took)
		}
	}

	for name, m := range s.machines {
		if m.applied != 1 || m.bootstrapped != 0 {
			t.Errorf("%s was given %d configs and bootstrapped %d times", name, m.applied, m.bootstrapped)
		}
	}
}

func TestTalosconfigOpensTheAPI(t *testing.T) {
	s := newSandbox(t, options(1, 0)).boot()
	s.applied()

	path := filepath.Join(t.TempDir(), "talosconfig")
	if _, err := s.bundle.WriteTalosconfig(path, []string{"127.77.0.11:" + strconv.Itoa(s.ports["127.77.0.11"])}); err != nil {
		t.Fatal(err)
	}

	ctx := within(t, 20*time.Second)

	cl, err := client.New(ctx, client.WithConfigFromFile(path))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()

	reply, err := cl.Version(client.WithNodes(ctx, cl.GetConfigContext().Nodes...))
	if err != nil || reply.GetMessages()[0].GetMetadata().GetHostname() != "127.77.0.11" {
		t.Errorf("the answer is %v, the error %v", reply, err)
	}
}

func TestHealth(t *testing.T) {
	s := newSandbox(t, options(2, 2)).boot("cp1", "worker1")
	c := s.cluster()

	for _, h := range c.Health(within(t, 20*time.Second)) {
		if want := h.Node.Name == "cp1" || h.Node.Name == "worker1"; (h.Stage == talos.Maintenance) != want || h.Healthy() {
			t.Errorf("%s: %+v", h.Node.Name, h)
		}
	}

	s.boot("cp2", "worker2")
	s.applied()

	for _, name := range []string{"cp1", "worker1"} {
		m := s.machines[name]
		m.change(func() {
			m.services = []api.Service{running("etcd"), running("kubelet")}
			m.etcd = api.EtcdStatus{MemberID: 1, Leader: 1}
		})
	}

	for _, h := range c.Health(within(t, 20*time.Second)) {
		if want := h.Node.Name == "cp1" || h.Node.Name == "worker1"; h.Healthy() != want || h.Stage != talos.Configured {
			t.Errorf("%s: %+v", h.Node.Name, h)
		}
	}
}
