package images

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Builder makes images out of binaries. The zero value works and remembers
// nothing. It may be used by several goroutines.
type Builder struct {
	// CacheDir keeps the digests of layers, so that making an image of an
	// unchanged binary does not read it again. It is made when needed.
	CacheDir string
	// Arch of the binaries, as Go names it; empty means this machine's.
	Arch string
}

// FromBinary makes the image that def describes out of the static binary at
// path. The same binary always gives the same digest. The binary is read while
// the image is pushed, and must stay as it is until then.
func (b Builder) FromBinary(def Definition, path string) (v1.Image, error) {
	img, err := b.build(def, path)
	if err != nil {
		return nil, fmt.Errorf("making image %q from %q: %w", def.Ref, path, err)
	}
	return img, nil
}

func (b Builder) build(def Definition, path string) (v1.Image, error) {
	entries, err := content(def, path)
	if err != nil {
		return nil, err
	}
	l, err := newLayer(entries, digestCache(b.CacheDir))
	if err != nil {
		return nil, err
	}

	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, b.config(def))
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, l)
}

func (b Builder) config(def Definition) *v1.ConfigFile {
	arch := b.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	return &v1.ConfigFile{
		OS:           "linux",
		Architecture: arch,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{def.Path},
			User:       def.User,
			WorkingDir: "/",
			Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin:/"},
		},
	}
}

// passwd names the users that our charts run as; programs that ask for the
// name of their user fail without it.
const passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"

func content(def Definition, path string) ([]entry, error) {
	binary, err := hostFile(def.Path, 0o755, path)
	if err != nil {
		return nil, err
	}
	entries := []entry{binary, text("/etc/passwd", passwd), directory("/tmp", 0o1777)}
	for _, file := range def.Files {
		e, err := hostFile(file.Path, 0o644, file.From)
		if file.Optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
