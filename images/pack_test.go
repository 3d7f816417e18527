package images_test

import (
	"compress/gzip"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cozystack/cozydev/images"
)

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
