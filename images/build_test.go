package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cozystack/cozydev/images"
)

const refDNS = "registry.k8s.io/coredns/coredns:v1.12.4"

func definition() images.Definition {
	return images.Definition{Ref: refDNS, Source: images.SourceNode, Binary: "coredns", Path: "/bin/coredns", User: "65532"}
}

func binary(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "coredns")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func build(t *testing.T, b images.Builder, def images.Definition, path string) v1.Image {
	t.Helper()
	img, err := b.FromBinary(def, path)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digest(t *testing.T, img v1.Image) string {
	t.Helper()
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func mustDigest(t *testing.T, l v1.Layer) v1.Hash {
	t.Helper()
	d, err := l.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readDigest(t *testing.T, l v1.Layer) v1.Hash {
	t.Helper()
	stream, err := l.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	d, _, err := v1.SHA256(stream)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFromBinary(t *testing.T) {
	path := binary(t, strings.Repeat("elf", 1000))
	img := build(t, images.Builder{Arch: "arm64"}, definition(), path)
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := readDigest(t, layers[0]), mustDigest(t, layers[0]); got != want {
		t.Errorf("the layer promises %s and yields %s", want, got)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532" || config.Config.Entrypoint[0] != "/bin/coredns" {
		t.Errorf("config is %+v", config)
	}

	copied := binary(t, strings.Repeat("elf", 1000))
	if got, want := digest(t, build(t, images.Builder{Arch: "arm64"}, definition(), copied)), digest(t, img); got != want {
		t.Errorf("a copy of the binary made %s, the binary itself %s", got, want)
	}
}

func TestLayerContent(t *testing.T) {
	def := definition()
	extra := binary(t, "certificates")
	def.Files = []images.File{
		{Path: "/etc/ssl/ca.crt", From: extra},
		{Path: "/etc/missing", From: filepath.Join(t.TempDir(), "missing"), Optional: true},
	}
	layers, err := build(t, images.Builder{}, def, binary(t, "elf")).Layers()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	want := "bin/ bin/coredns etc/ etc/passwd etc/ssl/ etc/ssl/ca.crt tmp/"
	if got := strings.Join(tarNames(t, stream), " "); got != want {
		t.Errorf("layer holds %s, want %s", got, want)
	}

	def.Files[1].Optional = false
	if _, err := (images.Builder{}).FromBinary(def, extra); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: error %v", err)
	}
}

func tarNames(t *testing.T, stream io.Reader) []string {
	t.Helper()
	var names []string
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) || header.Uid != 0 {
			t.Errorf("%s carries time %s and owner %d", header.Name, header.ModTime, header.Uid)
		}
		names = append(names, header.Name)
	}
}

func TestDigestCache(t *testing.T) {
	b := images.Builder{CacheDir: filepath.Join(t.TempDir(), "cache")}
	path := binary(t, "one")
	first := digest(t, build(t, b, definition(), path))
	if again := digest(t, build(t, b, definition(), path)); again != first {
		t.Errorf("from the cache %s, before %s", again, first)
	}
	if kept, _ := os.ReadDir(b.CacheDir); len(kept) != 1 {
		t.Errorf("the cache holds %d files, want 1", len(kept))
	}

	if err := os.WriteFile(path, []byte("two"), 0o755); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if changed := digest(t, build(t, b, definition(), path)); changed == first {
		t.Error("a changed binary has the digest of the old one")
	}
}

func TestBinaryThatShrinks(t *testing.T) {
	path := binary(t, "a longer content")
	img := build(t, images.Builder{}, definition(), path)
	if err := os.WriteFile(path, []byte("short"), 0o755); err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := io.Copy(io.Discard, stream); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("error %v", err)
	}
}
