package config

import (
	"net/url"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// editMain changes the main document where the generator has no option for it.
func (o Options) editMain(doc *v1alpha1.Config, node Node) {
	machine, cluster := doc.MachineConfig, doc.ClusterConfig

	machine.MachineCertSANs = o.certSANs(node)
	machine.MachineKubelet.KubeletExtraArgs = args(o.ExtraArgs.Kubelet)

	if node.Role == Worker {
		// Talos reads this on control planes only, and runs kube-proxy as a DaemonSet. cozynode runs it on each node, and
		// has nothing but the node's own config to know how.
		if o.customProxy() {
			cluster.ProxyConfig = &v1alpha1.ProxyConfig{}
			o.editProxy(cluster.ProxyConfig)
		}

		return
	}

	// Every control plane runs workloads here, so load balancers must reach those as well.
	delete(machine.MachineNodeLabels, constants.LabelExcludeFromExternalLB)

	cluster.APIServerConfig.CertSANs = o.certSANs(node)
	cluster.APIServerConfig.ExtraArgsConfig = args(o.ExtraArgs.APIServer)
	cluster.ControllerManagerConfig.ExtraArgsConfig = args(o.ExtraArgs.ControllerManager)
	cluster.SchedulerConfig.ExtraArgsConfig = args(o.ExtraArgs.Scheduler)
	cluster.EtcdConfig.EtcdExtraArgs = args(o.ExtraArgs.Etcd)

	o.editProxy(cluster.ProxyConfig)

	// The platform brings its own CoreDNS.
	cluster.CoreDNSConfig = &v1alpha1.CoreDNS{CoreDNSDisabled: new(true)}
}

func (o Options) customProxy() bool {
	return o.Proxy != Proxy{} || len(o.ExtraArgs.Proxy) > 0
}

func (o Options) editProxy(proxy *v1alpha1.ProxyConfig) {
	proxy.ExtraArgsConfig = args(o.ExtraArgs.Proxy)
	proxy.ModeConfig = o.Proxy.Mode

	if o.Proxy.Disabled {
		proxy.Disabled = new(true)
	}
}

// certSANs are the names under which the APIs of a node are reached: through the load balancer, directly, and through
// a port forwarded to the host.
func (o Options) certSANs(node Node) []string {
	sans := []string{node.Address.Addr().String(), "127.0.0.1", "localhost"}
	if endpoint, err := url.Parse(o.Endpoint); err == nil {
		sans = append([]string{endpoint.Hostname()}, sans...)
	}

	for _, san := range o.CertSANs {
		if !slices.Contains(sans, san) {
			sans = append(sans, san)
		}
	}

	return sans
}

func args(flags map[string]string) v1alpha1.Args {
	if len(flags) == 0 {
		return nil
	}

	out := v1alpha1.Args{}
	for name, value := range flags {
		out[name] = v1alpha1.NewArgValue(value, nil)
	}

	return out
}

// named gives the generator's hostname document, which asks for an automatic name, the node's name instead.
func (o Options) named(doc config.Document, node Node) config.Document {
	if _, isHostname := doc.(*network.HostnameConfigV1Alpha1); !isHostname {
		return doc
	}

	hostname := network.NewHostnameConfigV1Alpha1()
	hostname.ConfigHostname = node.Name

	return hostname
}

// networkDocuments configures the address of a node that is to do it itself.
func (o Options) networkDocuments(node Node) []config.Document {
	if node.Interface == "" {
		return nil
	}

	link := network.NewLinkConfigV1Alpha1(node.Interface)
	link.LinkAddresses = []network.AddressConfig{{AddressAddress: node.Address}}

	if o.Gateway.IsValid() {
		link.LinkRoutes = []network.RouteConfig{{RouteGateway: network.Addr{Addr: o.Gateway}}}
	}

	if len(o.Nameservers) == 0 {
		return []config.Document{link}
	}

	resolver := network.NewResolverConfigV1Alpha1()
	for _, server := range o.Nameservers {
		resolver.ResolverNameservers = append(resolver.ResolverNameservers,
			network.NameserverConfig{Address: network.Addr{Addr: server}})
	}

	return []config.Document{link, resolver}
}
