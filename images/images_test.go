package images_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

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

func TestDiscover(t *testing.T) {
	good := "ref: registry.k8s.io/pause:3.10\nbinary: pause\npath: /pause\n"
	for _, test := range []struct {
		name, content, want string
	}{
		{"good", good, ""},
		{"user and group", good + "user: 1:2\n", ""},
		{"unknown field", good + "bin: x\n", `unknown field "bin"`},
		{"no host", "ref: pause:3.10\nbinary: pause\npath: /pause\n", `ref "pause:3.10" is not of the form`},
		{"no tag", "ref: registry.k8s.io/pause\nbinary: pause\npath: /pause\n", `is not of the form`},
		{"relative path", "ref: registry.k8s.io/pause:3.10\nbinary: pause\npath: pause\n", `path "pause" is not absolute`},
		{"binary outside", "ref: registry.k8s.io/pause:3.10\nbinary: ../pause\npath: /pause\n", `binary "../pause"`},
		{"user name", good + "user: nobody\n", `user "nobody"`},
		{"source", good + "source: moon\n", `source "moon"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree := fstest.MapFS{"core/talos/images/pause.yaml": {Data: []byte(test.content)}}
			defs, err := images.Discover(tree)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "core/talos/images/pause.yaml") {
					t.Fatalf("error %v, want the file and %q", err, test.want)
				}
				return
			}
			if err != nil || len(defs) != 1 || defs[0].Source != images.SourceNode {
				t.Fatalf("got %+v, %v", defs, err)
			}
		})
	}

	twice := fstest.MapFS{"a/b/images/1.yaml": {Data: []byte(good)}, "a/c/images/2.yaml": {Data: []byte(good)}}
	if _, err := images.Discover(twice); err == nil || !strings.Contains(err.Error(), "defined twice") {
		t.Errorf("two definitions of one image: error %v", err)
	}
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

func TestPackTree(t *testing.T) {
	tree := fstest.MapFS{
		"core/platform/Chart.yaml": {Data: []byte("name: platform\n"), ModTime: time.Now()},
		"core/hook.sh":             {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		".git/config":              {Data: []byte("secret")},
		"core/.gitignore":          {Data: []byte("*")},
		"README.md":                {Data: []byte("beside")},
		"testdata/x":               {Data: []byte("beside")},
		"core/link":                {Data: []byte("hook.sh"), Mode: fs.ModeSymlink},
	}
	origin := images.Origin{Source: "https://example.org/tree.git", Revision: "main@sha1:abc"}
	img, err := images.PackTree(tree, origin)
	if err != nil {
		t.Fatal(err)
	}

	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != images.FluxConfigMediaType || manifest.Layers[0].MediaType != images.FluxContentMediaType {
		t.Errorf("media types %s and %s", manifest.Config.MediaType, manifest.Layers[0].MediaType)
	}
	if got := manifest.Annotations["org.opencontainers.image.revision"]; got != origin.Revision {
		t.Errorf("revision %q", got)
	}
	layers, _ := img.Layers()
	stream, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(stream)
	if err != nil {
		t.Fatal(err)
	}
	want := "core/ core/hook.sh core/platform/ core/platform/Chart.yaml"
	if got := strings.Join(tarNames(t, unzipped), " "); got != want {
		t.Errorf("artifact holds %s, want %s", got, want)
	}

	tree["core/platform/Chart.yaml"].ModTime = time.Unix(0, 0)
	again, err := images.PackTree(tree, origin)
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, again) != digest(t, img) {
		t.Error("the digest depends on the time of a file")
	}
}

// server is a registry on loopback that counts its requests by method.
func server(t *testing.T) (address string, puts *atomic.Int32) {
	t.Helper()
	handler, puts := registry.New(registry.Logger(log.New(io.Discard, "", 0))), &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			puts.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), puts
}

func TestPublish(t *testing.T) {
	address, puts := server(t)
	// The name leads nowhere; only the dialer knows the way.
	const sandbox = "192.0.2.1:5000"
	publisher, err := images.NewPublisher(sandbox, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := images.PackTree(fstest.MapFS{"a": {Data: []byte("a")}}, images.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	uploads := []images.Upload{
		{Ref: refDNS, Image: build(t, images.Builder{}, definition(), binary(t, "elf"))},
		{Ref: sandbox + "/cozystack/packages:latest", Image: tree},
	}

	results, err := publisher.Publish(t.Context(), uploads)
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range results {
		if !result.Pushed || result.Ref != uploads[i].Ref || !strings.HasPrefix(result.Pinned(), result.Ref+"@sha256:") {
			t.Errorf("first push: %+v", result)
		}
	}
	for _, repo := range []string{"registry.k8s.io/coredns/coredns:v1.12.4", "cozystack/packages:latest"} {
		ref, _ := name.ParseReference(address + "/" + repo)
		if _, err := remote.Head(ref); err != nil {
			t.Errorf("%s is not there: %v", repo, err)
		}
	}

	before := puts.Load()
	again, err := publisher.Publish(t.Context(), uploads)
	if err != nil {
		t.Fatal(err)
	}
	if again[0].Pushed || again[1].Pushed || puts.Load() != before {
		t.Errorf("unchanged images were pushed again: %+v, %d writes", again, puts.Load()-before)
	}
}

func TestPublishToNobody(t *testing.T) {
	refused := errors.New("nobody listens")
	publisher, err := images.NewPublisher("192.0.2.1:5000", func(context.Context, string, string) (net.Conn, error) {
		return nil, refused
	})
	if err != nil {
		t.Fatal(err)
	}
	img := build(t, images.Builder{}, definition(), binary(t, "elf"))
	_, err = publisher.Publish(t.Context(), []images.Upload{{Ref: refDNS, Image: img}})
	if err == nil || !strings.Contains(err.Error(), refDNS) || !strings.Contains(err.Error(), refused.Error()) {
		t.Errorf("error %v", err)
	}
}
