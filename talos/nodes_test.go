package talos_test

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/cozydev/talos"
	"github.com/cozystack/cozydev/talos/node/api"
)

// kubeAPI serves the list of nodes, and a watch of it that ends when events is closed.
type kubeAPI struct {
	nodes  func() []corev1.Node
	events chan watch.Event
	lists  int
}

func (k *kubeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	if r.URL.Query().Get("watch") == "" {
		k.lists++

		_ = json.NewEncoder(w).Encode(corev1.NodeList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    k.nodes(),
		})

		return
	}

	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()

	for {
		select {
		case <-r.Context().Done():
			return
		case event, open := <-k.events:
			if !open {
				return
			}

			_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Object: event.Object}})
			w.(http.Flusher).Flush()
		}
	}
}

// serveKube starts the Kubernetes API with a certificate of the cluster's CA and a demand for one.
func (s *sandbox) serveKube(k *kubeAPI) {
	s.t.Helper()

	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(s.secrets.Certs.K8s)
	if err != nil {
		s.t.Fatal(err)
	}

	pair, err := x509.NewKeyPair(ca, x509.IPAddresses([]net.IP{net.ParseIP("127.77.0.1")}), x509.NotAfter(time.Now().Add(time.Hour)))
	if err != nil {
		s.t.Fatal(err)
	}

	roots := stdx509.NewCertPool()
	roots.AppendCertsFromPEM(s.secrets.Certs.K8s.Crt)

	server := httptest.NewUnstartedServer(k)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{*pair.Certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	s.t.Cleanup(server.Close)

	s.kube = server.Listener.Addr().String()
}

func node(name string, ready corev1.ConditionStatus, message string) corev1.Node {
	return corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", Message: message},
		}},
	}
}

func TestWaitNodesFollowsTheWatch(t *testing.T) {
	s := newSandbox(t, options(2, 0))
	k := &kubeAPI{events: make(chan watch.Event), nodes: func() []corev1.Node {
		return []corev1.Node{node("cp1", corev1.ConditionTrue, ""), node("stranger", corev1.ConditionFalse, "")}
	}}
	s.serveKube(k)

	go func() {
		for _, n := range []corev1.Node{
			node("stranger", corev1.ConditionTrue, ""),
			node("cp2", corev1.ConditionFalse, "cni plugin not initialized"),
			node("cp2", corev1.ConditionTrue, ""),
		} {
			k.events <- watch.Event{Type: watch.Modified, Object: &n}
		}
	}()

	if err := s.cluster().WaitNodes(within(t, 20*time.Second), s.admin(time.Hour)); err != nil {
		t.Fatal(err)
	}

	if k.lists != 1 {
		t.Errorf("the nodes were listed %d times", k.lists)
	}

	for _, state := range []string{"not registered yet", "not Ready: Kubelet: cni plugin not initialized", "Ready"} {
		if !s.reported(talos.StepNodes, "cp2", state) {
			t.Errorf("no report says %q: %+v", state, s.reports)
		}
	}
}

func TestWaitNodesSurvivesTheEndOfAWatch(t *testing.T) {
	s := newSandbox(t, options(1, 0))
	listed := 0
	k := &kubeAPI{events: make(chan watch.Event), nodes: func() []corev1.Node {
		if listed++; listed < 3 {
			return nil
		}

		return []corev1.Node{node("cp1", corev1.ConditionTrue, "")}
	}}
	close(k.events)
	s.serveKube(k)

	if err := s.cluster().WaitNodes(within(t, 20*time.Second), s.admin(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func TestWaitNodesTellsWhatHoldsThemUp(t *testing.T) {
	s := newSandbox(t, options(2, 0)).boot()
	c := s.applied()
	cp2 := s.machines["cp2"]
	cp2.change(func() { cp2.services = []api.Service{waiting("kubelet", "exit code 1")} })
	s.serveKube(&kubeAPI{events: make(chan watch.Event), nodes: func() []corev1.Node {
		return []corev1.Node{node("cp1", corev1.ConditionTrue, ""), node("cp2", corev1.ConditionFalse, "no network")}
	}})

	err := c.WaitNodes(within(t, 500*time.Millisecond), s.admin(time.Hour))
	wantError(t, err,
		"waiting for Kubernetes nodes: cp2: not Ready: Kubelet: no network: context deadline exceeded\n",
		"\ncp2: kubelet: Waiting: exit code 1\n", "\ncp2: kubelet log: no space left on device")
}

func TestWaitNodesWithoutAnAPI(t *testing.T) {
	s := newSandbox(t, options(1, 0))
	s.kube = "127.0.0.1:1"

	err := s.cluster().WaitNodes(within(t, 500*time.Millisecond), s.admin(time.Hour))
	wantError(t, err, "waiting for Kubernetes nodes: cp1: dial tcp 127.0.0.1:1: connect: connection refused: context deadline")
}
