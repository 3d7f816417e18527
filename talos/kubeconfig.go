package talos

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/cozystack/cozydev/talos/config"
)

// renewBefore is how long before its end the certificate of a kubeconfig is replaced.
const renewBefore = 30 * 24 * time.Hour

// Kubeconfig makes sure that the file path holds an admin's kubeconfig of this cluster whose server is the given URL,
// mode 0600, and returns its content. A file that is right is left alone, and then no node is asked; changed tells
// whether it was written.
func (c *Cluster) Kubeconfig(ctx context.Context, path, server string) (data []byte, changed bool, err error) {
	if data, err = os.ReadFile(path); err == nil && kubeconfigHolds(data, server, c.bundle.KubernetesCA(), time.Now()) {
		return data, false, nil
	}

	raw, err := c.fetchKubeconfig(ctx)
	if err != nil {
		return nil, false, err
	}

	if data, err = withServer(raw, server); err != nil {
		return nil, false, fmt.Errorf("reading the kubeconfig that the cluster gave: %w", err)
	}

	if err := renameio.WriteFile(path, data, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return nil, false, fmt.Errorf("writing %q: %w", path, err)
	}

	return data, true, nil
}

// fetchKubeconfig asks the control planes in turn until one has an answer.
func (c *Cluster) fetchKubeconfig(ctx context.Context) ([]byte, error) {
	var data []byte

	planes := c.controlPlanes()
	turn := 0
	w := c.start(StepKubeconfig)

	err := w.until(ctx, "", func(ctx context.Context) (string, bool, error) {
		node := planes[turn%len(planes)]
		turn++

		var err error
		if data, err = c.kubeconfigFrom(ctx, node); err != nil {
			state, done, fatal := outcome(err)

			return node.Name + ": " + state, done, fatal
		}

		return "from " + node.Name, true, nil
	})

	return data, w.result(ctx, err)
}

func (c *Cluster) kubeconfigFrom(ctx context.Context, node config.Node) ([]byte, error) {
	cl, err := c.client(ctx, node)
	if err != nil {
		return nil, err
	}

	data, err := cl.Kubeconfig(ctx)

	return data, final(err)
}

// withServer points every cluster of a kubeconfig at server.
func withServer(data []byte, server string) ([]byte, error) {
	cfg, err := clientcmd.Load(data)
	if err != nil {
		return nil, err
	}

	if len(cfg.Clusters) == 0 {
		return nil, errors.New("it names no cluster")
	}

	for _, cluster := range cfg.Clusters {
		cluster.Server = server
	}

	return clientcmd.Write(*cfg)
}

// kubeconfigHolds tells whether a kubeconfig is what Kubeconfig would write, but for the age of its certificate: it
// points at server, trusts ca, and holds a certificate of that CA which is good for a while.
func kubeconfigHolds(data []byte, server string, ca []byte, now time.Time) bool {
	cfg, err := clientcmd.Load(data)
	if err != nil {
		return false
	}

	cluster, user := current(cfg)
	if cluster == nil || user == nil || cluster.Server != server ||
		!bytes.Equal(bytes.TrimSpace(cluster.CertificateAuthorityData), bytes.TrimSpace(ca)) {
		return false
	}

	pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		return false
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)

	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return false
	}

	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now.Add(renewBefore), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})

	return err == nil
}

func current(cfg *api.Config) (*api.Cluster, *api.AuthInfo) {
	ctx := cfg.Contexts[cfg.CurrentContext]
	if ctx == nil {
		return nil, nil
	}

	return cfg.Clusters[ctx.Cluster], cfg.AuthInfos[ctx.AuthInfo]
}
