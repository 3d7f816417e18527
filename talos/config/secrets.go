package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"
)

// private is the mode of every file that holds a key.
const private fs.FileMode = 0o600

// Secrets are the certificate authorities, keys and tokens of one cluster. All machine configs and credentials follow
// from them.
type Secrets = secrets.Bundle

// versionContract is the Talos release the configs are written for. The machinery shapes its output by it.
func versionContract() *machinery.VersionContract { return machinery.TalosVersion1_13 }

// secretsContract differs from the configs' in one thing: up to Talos 1.6 the key that signs service account tokens is
// an elliptic curve key, later a 4096-bit RSA key, which takes seconds of both cores to find. Every Talos takes either;
// RSA is for identity providers outside the cluster that know no other, and a sandbox has none.
func secretsContract() *machinery.VersionContract { return machinery.TalosVersion1_6 }

// NewSecrets makes the secrets of a new cluster, within milliseconds.
func NewSecrets() (*Secrets, error) {
	bundle, err := secrets.NewBundle(secrets.NewClock(), secretsContract())
	if err != nil {
		return nil, fmt.Errorf("making the cluster's secrets: %w", err)
	}

	return bundle, nil
}

// LoadSecrets reads the secrets in the file path, or makes new ones and writes them there when there is no such file.
// The file's format is that of `talosctl gen secrets`, its mode 0600. Calling it again gives the same secrets.
func LoadSecrets(path string) (*Secrets, error) {
	bundle, err := readSecrets(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createSecrets(path)
	}

	if err != nil {
		return nil, fmt.Errorf("reading the cluster's secrets %q: %w; without them the cluster is lost: "+
			"restore the file or remove the sandbox", path, oneLine(err))
	}

	return bundle, nil
}

func readSecrets(path string) (*Secrets, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}

	if info.Mode().Perm()&^private != 0 {
		if err := os.Chmod(path, private); err != nil {
			return nil, err
		}
	}

	bundle, err := secrets.LoadBundle(path)
	if err != nil {
		return nil, err
	}

	return bundle, bundle.Validate()
}

func createSecrets(path string) (*Secrets, error) {
	bundle, err := NewSecrets()
	if err != nil {
		return nil, err
	}

	data, err := yaml.Marshal(bundle)
	if err != nil {
		return nil, fmt.Errorf("encoding the cluster's secrets: %w", err)
	}

	return bundle, writePrivate(path, data)
}

// writePrivate puts data into path at once or not at all, readable by the owner only.
func writePrivate(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}

	if err := renameio.WriteFile(path, data, private, renameio.WithStaticPermissions(private)); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}

	return nil
}
