package config

import (
	"fmt"
	"maps"
	"slices"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// Generate makes the machine config of every node. It has no effect outside its result, and the same arguments give
// the same configs. An error names the node, or the user's patch, that caused it.
func Generate(opts Options, secrets *Secrets) (*Bundle, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("generating machine configs: %w", err)
	}

	b := &Bundle{options: opts, secrets: secrets, configs: map[string][]byte{}}
	warned := map[string]bool{}

	for _, node := range opts.Nodes {
		cfg, err := opts.machineConfig(node, secrets)
		if err != nil {
			return nil, err
		}

		warnings, err := validate(cfg, opts.Mode)
		if err != nil {
			return nil, fmt.Errorf("generating the machine config of node %q: %w", node.Name, err)
		}

		for _, w := range warnings {
			if !warned[w] {
				warned[w] = true
				b.warnings = append(b.warnings, w)
			}
		}

		if b.configs[node.Name], err = encode(cfg); err != nil {
			return nil, fmt.Errorf("encoding the machine config of node %q: %w", node.Name, err)
		}
	}

	return b, nil
}

// Check tells whether Generate takes the options, patches included. It needs no secrets and writes nothing, so that bad
// input is found before a sandbox is begun.
func Check(opts Options) error {
	secrets, err := NewSecrets()
	if err != nil {
		return err
	}

	_, err = Generate(opts, secrets)

	return err
}

// encode leaves out the comments: the machinery's are longer than the config.
func encode(cfg machinery.Encoder) ([]byte, error) {
	return cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
}

// machineConfig makes the config of one node and applies the user's patches to it.
func (o Options) machineConfig(node Node, secrets *Secrets) (machinery.Provider, error) {
	cfg, err := o.base(node, secrets)
	if err != nil {
		return nil, fmt.Errorf("generating the machine config of node %q: %w", node.Name, oneLine(err))
	}

	stages := []machinery.Provider{cfg}
	patches := o.Patches.of(node.Role)

	for _, patch := range patches {
		if cfg, err = patch.apply(cfg); err != nil {
			return nil, fmt.Errorf("applying config patch %q to node %q: %w", patch.Source, node.Name, oneLine(err))
		}

		stages = append(stages, cfg)
	}

	if at, err := o.culprit(stages, node); err != nil {
		return nil, fmt.Errorf("config patch %q makes the machine config of node %q invalid: %w",
			patches[at].Source, node.Name, err)
	}

	return cfg, nil
}

// culprit finds the patch that broke a config: the first one after which it was never valid again. stages holds the
// config before the first patch and after each one.
func (o Options) culprit(stages []machinery.Provider, node Node) (at int, reason error) {
	for i := len(stages) - 1; i > 0; i-- {
		_, err := validate(stages[i], o.Mode)
		if err == nil {
			err = checkName(stages[i], node)
		}

		if err == nil {
			break
		}

		at, reason = i-1, err
	}

	return at, reason
}

// base is the config before the user's patches.
func (o Options) base(node Node, secrets *Secrets) (machinery.Provider, error) {
	input, err := generate.NewInput(o.Cluster, o.Endpoint, o.KubernetesVersion, o.generateOptions(secrets)...)
	if err != nil {
		return nil, err
	}

	input.PodNet, input.ServiceNet = o.PodSubnets, o.ServiceSubnets

	kind := machine.TypeControlPlane
	if node.Role == Worker {
		kind = machine.TypeWorker
	}

	cfg, err := input.Config(kind)
	if err != nil {
		return nil, err
	}

	return o.personalise(cfg, node)
}

func (o Options) generateOptions(secrets *Secrets) []generate.Option {
	opts := []generate.Option{
		generate.WithVersionContract(versionContract()),
		generate.WithSecretsBundle(secrets),
		generate.WithInstallDisk(o.InstallDisk),
		generate.WithInstallImage(o.InstallImage),
		generate.WithDNSDomain(o.DNSDomain),
		generate.WithClusterCNIConfig(&v1alpha1.CNIConfig{CNIName: string(o.CNI)}),
		generate.WithAllowSchedulingOnControlPlanes(true),
		// The discovery service is a public one on the internet; a sandbox has nothing to tell it.
		generate.WithClusterDiscovery(false),
	}

	for _, host := range slices.Sorted(maps.Keys(o.Mirrors)) {
		opts = append(opts, generate.WithRegistryMirror(host, o.Mirrors[host]...))
	}

	return opts
}

// personalise turns the config of a kind of node into that of one node.
func (o Options) personalise(cfg machinery.Provider, node Node) (machinery.Provider, error) {
	var docs []config.Document

	for _, doc := range cfg.Documents() {
		if main, isMain := doc.(*v1alpha1.Config); isMain {
			o.editMain(main, node)
		}

		docs = append(docs, o.named(doc, node))
	}

	return container.New(append(docs, o.networkDocuments(node)...)...)
}
