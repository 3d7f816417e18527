package api_test

import (
	"slices"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/cozystack/cozydev/talos/node/api"
)

func TestMaintenanceAllowsOnlyWhatMakesANodeOfIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", nil)
	ctx, anyone := testContext(t), c.insecure("127.0.0.2")

	version, err := anyone.Version(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := version.Messages[0].Platform.Name; got != "cozynode" {
		t.Errorf("platform %q", got)
	}
	wantCode(t, "Bootstrap", anyone.Bootstrap(ctx, &machineapi.BootstrapRequest{}), codes.Unimplemented)
	_, err = anyone.ServiceList(ctx)
	wantCode(t, "ServiceList", err, codes.Unimplemented)
	_, err = anyone.Kubeconfig(ctx)
	wantCode(t, "Kubeconfig", err, codes.Unimplemented)
	wantCode(t, "Reset", anyone.Reset(ctx, false, true), codes.Unimplemented)
}

func TestApplyInMaintenance(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	valid := c.bytes(machine.TypeControlPlane)
	noMachine := []byte("apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: cp1\n")
	for _, test := range []struct {
		name    string
		request *machineapi.ApplyConfigurationRequest
		code    codes.Code
		says    string
	}{
		{"garbage", apply([]byte("machine: ["), machineapi.ApplyConfigurationRequest_AUTO), codes.InvalidArgument, "reading the machine config"},
		{"an unknown field", apply([]byte("machine: {colour: red}"), machineapi.ApplyConfigurationRequest_AUTO), codes.InvalidArgument, "colour"},
		{"no machine", apply(noMachine, machineapi.ApplyConfigurationRequest_AUTO), codes.InvalidArgument, "v1alpha1"},
		{"incomplete", apply([]byte("machine: {type: worker}\ncluster: {}"), machineapi.ApplyConfigurationRequest_AUTO), codes.InvalidArgument, "validating"},
		{"staged", apply(valid, machineapi.ApplyConfigurationRequest_STAGED), codes.Unimplemented, `"staged"`},
		{"try", apply(valid, machineapi.ApplyConfigurationRequest_TRY), codes.Unimplemented, `"try"`},
		{"an unknown mode", apply(valid, 42), codes.Unimplemented, "42"},
	} {
		t.Run(test.name, func(t *testing.T) {
			node, _ := newClusterNode(t, c)
			_, err := c.insecure("127.0.0.2").ApplyConfiguration(testContext(t), test.request)
			wantCode(t, "ApplyConfiguration", err, test.code)
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error does not say %q: %v", test.says, err)
			}
			if len(node.modes()) > 0 {
				t.Error("the config was applied")
			}
		})
	}
}

func newClusterNode(t *testing.T, c *cluster) (*fakeMachine, *api.Server) {
	t.Helper()
	sub := *c
	sub.t = t
	return sub.start("cp1", "127.0.0.2", nil)
}

func TestConfigSwitchesToMutualTLS(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node, _ := c.start("cp1", "127.0.0.2", nil)
	ctx, anyone := testContext(t), c.insecure("127.0.0.2")

	dry := apply(c.bytes(machine.TypeControlPlane), machineapi.ApplyConfigurationRequest_AUTO)
	dry.DryRun = true
	response, err := anyone.ApplyConfiguration(ctx, dry)
	if err != nil {
		t.Fatal(err)
	}
	if details := response.Messages[0].ModeDetails; !strings.Contains(details, "maintenance mode") || len(node.modes()) > 0 {
		t.Errorf("dry run applied something or says %q", details)
	}
	events, err := anyone.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Recv(); err != nil {
		t.Fatal(err)
	}
	response, err = anyone.ApplyConfiguration(ctx, apply(c.bytes(machine.TypeControlPlane), machineapi.ApplyConfigurationRequest_AUTO))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Messages[0]; got.Mode != machineapi.ApplyConfigurationRequest_NO_REBOOT || len(got.Warnings) == 0 {
		t.Errorf("got %v", got)
	}

	// The connection that applied the config is worth nothing now, nor are its streams or a new one without a certificate.
	_, err = events.Recv()
	wantCode(t, "the event stream of maintenance mode", err, codes.Unauthenticated)
	_, err = anyone.Version(ctx)
	wantCode(t, "Version on the old connection", err, codes.Unauthenticated)
	_, err = c.insecure("127.0.0.2").Version(ctx)
	wantCode(t, "Version without a certificate", err, codes.Unavailable)

	admin := c.client("127.0.0.2", role.Admin)
	if _, err := admin.Version(ctx); err != nil {
		t.Errorf("Version with the admin certificate: %v", err)
	}
	stranger := strangerCA(t)
	pair, err := secrets.NewAdminCertificateAndKey(secrets.NewClock().Now(), stranger, role.MakeSet(role.Admin), secrets.CAValidityTime)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.clientWith("127.0.0.2", c.bundle.Certs.OS, pair).Version(ctx)
	wantCode(t, "Version with another cluster's certificate", err, codes.Unavailable)
	_, err = c.clientWith("127.0.0.2", stranger, pair).Version(ctx)
	wantCode(t, "Version trusting another cluster's CA", err, codes.Unavailable)
}

func TestApplyModes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	before := c.config(machine.TypeControlPlane)
	node, _ := c.start("cp1", "127.0.0.2", before)
	ctx, admin := testContext(t), c.client("127.0.0.2", role.Admin)
	other := c.bytes(machine.TypeControlPlane)

	dry := apply(other, machineapi.ApplyConfigurationRequest_NO_REBOOT)
	dry.DryRun = true
	response, err := admin.ApplyConfiguration(ctx, dry)
	if err != nil {
		t.Fatal(err)
	}
	if details := response.Messages[0].ModeDetails; !strings.Contains(details, "No changes.") {
		t.Errorf("dry run says %q", details)
	}

	trial := apply(other, machineapi.ApplyConfigurationRequest_TRY)
	trial.TryModeTimeout = durationOf("300ms")
	response, err = admin.ApplyConfiguration(ctx, trial)
	if err != nil {
		t.Fatal(err)
	}
	if details := response.Messages[0].ModeDetails; !strings.Contains(details, "reverted in 300ms") {
		t.Errorf("try says %q", details)
	}
	eventually(t, "the config before the trial is in force again", func() bool { return node.Config() == before })

	// A config applied during a trial ends it.
	trial.TryModeTimeout = durationOf("1h")
	if _, err := admin.ApplyConfiguration(ctx, trial); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ApplyConfiguration(ctx, apply(other, machineapi.ApplyConfigurationRequest_STAGED)); err != nil {
		t.Fatal(err)
	}
	if modes := node.modes(); !slices.Equal(modes, []api.ApplyMode{api.ApplyTry, api.ApplyNoReboot, api.ApplyTry, api.ApplyStaged}) {
		t.Errorf("applied with modes %v", modes)
	}
}
