package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cozystack/cozydev/talos/config"
)

func TestLoadSecretsKeepsThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "secrets.yaml")

	first, err := config.LoadSecrets(path)
	if err != nil {
		t.Fatal(err)
	}

	// A file copied with the wrong mode is put right.
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}

	second, err := config.LoadSecrets(path)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(first.Certs.OS.Key, second.Certs.OS.Key) || first.Cluster.Secret != second.Cluster.Secret {
		t.Error("the second call gave other secrets")
	}

	wantPrivate(t, path)
}

func TestLoadSecretsRefusesBrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.yaml")

	for _, content := range []string{"", "cluster: {}\n", "\tnot yaml"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}

		_, err := config.LoadSecrets(path)
		wantLine(t, err, "reading the cluster's secrets", path, "restore the file or remove the sandbox")

		if data, _ := os.ReadFile(path); string(data) != content {
			t.Errorf("the file was changed to %q", data)
		}
	}
}

func TestLoadSecretsSaysWhyItCannotWrite(t *testing.T) {
	occupied := filepath.Join(t.TempDir(), "occupied")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	_, err := config.LoadSecrets(filepath.Join(occupied, "secrets.yaml"))
	wantLine(t, err, "not a directory")
}

func wantPrivate(t *testing.T, path string) {
	t.Helper()

	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}

	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of %s is %v, want 0600", path, info.Mode().Perm())
	}
}
