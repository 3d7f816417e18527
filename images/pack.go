package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of a Flux artifact; source-controller takes no other by default.
const (
	FluxConfigMediaType  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	FluxContentMediaType types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// Origin says what an artifact was made from. Flux shows it; both fields may
// be empty.
type Origin struct {
	// Source is the URL of the repository.
	Source string
	// Revision is a branch or tag and a commit: `main@sha1:…`.
	Revision string
}

func (o Origin) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.source":   o.Source,
		"org.opencontainers.image.revision": o.Revision,
	}
}

// PackTree makes a Flux OCI artifact of a package tree. Its root is the root
// of tree. The digest depends on the names, contents and executable bits of
// the files and on the origin, and on nothing else. Left out are what stands
// beside the groups of packages (core, system, apps, extra, library), Git's
// own files, and everything that is neither file nor directory.
func PackTree(tree fs.FS, origin Origin) (v1.Image, error) {
	packed, err := packFiles(tree)
	if err != nil {
		return nil, fmt.Errorf("packing the package tree: %w", err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), FluxConfigMediaType)
	img, err = mutate.AppendLayers(img, static.NewLayer(packed, FluxContentMediaType))
	if err != nil {
		return nil, fmt.Errorf("packing the package tree: %w", err)
	}
	return mutate.Annotations(img, origin.annotations()).(v1.Image), nil
}

func packFiles(tree fs.FS) ([]byte, error) {
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if ignored(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return packFile(archive, tree, name, d)
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func ignored(name string) bool {
	group, _, inside := strings.Cut(name, "/")
	switch group {
	case "core", "system", "apps", "extra", "library":
		return inside && strings.HasPrefix(path.Base(name), ".git")
	default:
		return true
	}
}

func packFile(archive *tar.Writer, tree fs.FS, name string, d fs.DirEntry) error {
	if d.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatPAX})
	}
	if !d.Type().IsRegular() {
		return nil
	}
	file, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), Format: tar.FormatPAX}
	if info.Mode()&0o100 != 0 {
		header.Mode = 0o755
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.Copy(archive, file); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}
