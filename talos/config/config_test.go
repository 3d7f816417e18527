package config_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/cozystack/cozydev/talos/config"
)

var update = flag.Bool("update", false, "write the golden files")

// fixedSecrets are a throw-away cluster's, generated once: goldens must not change from run to run.
func fixedSecrets(t *testing.T) *config.Secrets {
	t.Helper()

	bundle, err := secrets.LoadBundle(filepath.Join("testdata", "secrets.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

func options() config.Options {
	return config.Options{
		Cluster:  "cozydev",
		Endpoint: "https://192.168.123.1:6443",
		Nodes: []config.Node{
			{Name: "cp1", Role: config.ControlPlane, Address: netip.MustParsePrefix("192.168.123.11/24")},
			{Name: "worker1", Role: config.Worker, Address: netip.MustParsePrefix("192.168.123.12/24")},
		},
		Mirrors: map[string][]string{
			"*":                  {"http://192.168.123.1:5000"},
			"192.168.123.1:5000": {"http://192.168.123.1:5000"},
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()

	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if string(want) != string(got) {
		t.Errorf("%s differs; run the test with -update and look at the change\n%s", path, got)
	}
}

func patches(t *testing.T, args ...string) []config.Patch {
	t.Helper()

	out, err := config.LoadPatches(args)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func TestGenerateGolden(t *testing.T) {
	full := options()
	full.CNI = config.CNINone
	full.Proxy = config.Proxy{Mode: "nftables"}
	full.CertSANs = []string{"api.example.org", "localhost"}
	full.PodSubnets, full.ServiceSubnets, full.DNSDomain = []string{"10.1.0.0/16"}, []string{"10.2.0.0/16"}, "cozy.local"
	full.Gateway, full.Nameservers = netip.MustParseAddr("192.168.123.1"), []netip.Addr{netip.MustParseAddr("192.168.123.1")}
	full.ExtraArgs = config.ExtraArgs{
		Kubelet:   map[string]string{"v": "4"},
		APIServer: map[string]string{"oidc-issuer-url": "https://keycloak.example.org"},
	}

	for i := range full.Nodes {
		full.Nodes[i].Interface = "eth0"
	}

	patched := options()
	patched.Patches = config.Patches{
		All:          patches(t, "@testdata/strategic.yaml", "@testdata/json.yaml"),
		ControlPlane: patches(t, `[{"op": "remove", "path": "/cluster/apiServer/auditPolicy"}]`),
		Worker:       patches(t, "machine:\n  nodeLabels:\n    role: worker\n"),
	}

	for name, opts := range map[string]config.Options{"default": options(), "full": full, "patched": patched} {
		t.Run(name, func(t *testing.T) {
			bundle, err := config.Generate(opts, fixedSecrets(t))
			if err != nil {
				t.Fatal(err)
			}

			for _, w := range bundle.Warnings() {
				t.Errorf("warning: %s", w)
			}

			for _, node := range bundle.Nodes() {
				golden(t, name+"-"+node.Name+".golden.yaml", bundle.MachineConfig(node.Name))

				if _, err := configloader.NewFromBytes(bundle.MachineConfig(node.Name)); err != nil {
					t.Errorf("the config of %s cannot be read back: %v", node.Name, err)
				}
			}
		})
	}
}

func TestGenerateIsDeterministicAndValidInEveryMode(t *testing.T) {
	for _, mode := range []config.Mode{config.Metal, config.Container} {
		opts := options()
		opts.Mode = mode

		first, err := config.Generate(opts, fixedSecrets(t))
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}

		second, err := config.Generate(opts, fixedSecrets(t))
		if err != nil {
			t.Fatal(err)
		}

		for _, node := range first.Nodes() {
			if string(first.MachineConfig(node.Name)) != string(second.MachineConfig(node.Name)) {
				t.Errorf("%s: two runs differ for %s", mode, node.Name)
			}
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	addr := netip.MustParsePrefix("192.168.123.11/24")

	for want, change := range map[string]func(*config.Options){
		"the cluster has no name":           func(o *config.Options) { o.Cluster = "" },
		`"http://x" is not an https URL`:    func(o *config.Options) { o.Endpoint = "http://x" },
		`unknown CNI "calico"`:              func(o *config.Options) { o.CNI = "calico" },
		`"10.0.0.0" is not in CIDR`:         func(o *config.Options) { o.PodSubnets = []string{"10.0.0.0"} },
		"has no control plane":              func(o *config.Options) { o.Nodes = o.Nodes[1:] },
		`two nodes are named "cp1"`:         func(o *config.Options) { o.Nodes[1].Name = "cp1" },
		`node "worker1" has no address`:     func(o *config.Options) { o.Nodes[1].Address = netip.Prefix{} },
		`"cp1" and "worker1" have the same`: func(o *config.Options) { o.Nodes[1].Address = addr },
		`unknown role "boss"`:               func(o *config.Options) { o.Nodes[1].Role = "boss" },
		`the node name "Worker" is not`:     func(o *config.Options) { o.Nodes[1].Name = "Worker" },
	} {
		opts := options()
		change(&opts)

		_, err := config.Generate(opts, fixedSecrets(t))
		wantLine(t, err, "generating machine configs: ", want)
	}
}

// wantLine checks that err is one line that holds every part.
func wantLine(t *testing.T, err error, parts ...string) {
	t.Helper()

	if err == nil {
		t.Errorf("no error, want %q", parts)

		return
	}

	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has more than one line: %q", err)
	}

	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}
