package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is one file or directory of a layer: given as content, or, where from
// is set, as a file of this machine.
type entry struct {
	path    string
	mode    int64
	dir     bool
	content []byte
	from    string
	size    int64
}

func directory(path string, mode int64) entry { return entry{path: path, mode: mode, dir: true} }

func text(path, content string) entry {
	return entry{path: path, mode: 0o644, content: []byte(content), size: int64(len(content))}
}

func hostFile(path string, mode int64, from string) (entry, error) {
	info, err := os.Stat(from)
	if err != nil {
		return entry{}, err
	}
	if !info.Mode().IsRegular() {
		return entry{}, fmt.Errorf("%q is not a regular file", from)
	}
	return entry{path: path, mode: mode, from: from, size: info.Size()}, nil
}

// withParents adds the directories that the entries need, and orders all.
func withParents(entries []entry) []entry {
	seen := map[string]bool{"/": true}
	for _, e := range entries {
		seen[e.path] = true
	}
	for _, e := range entries {
		for dir := path.Dir(e.path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			entries = append(entries, directory(dir, 0o755))
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].path < entries[j].path })
	return entries
}

// header renders the tar header of an entry. It carries no time and no owner
// but root, so that the same files always make the same layer.
func (e entry) header() ([]byte, error) {
	h := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     strings.TrimPrefix(e.path, "/"),
		Mode:     e.mode,
		Size:     e.size,
		Format:   tar.FormatPAX,
	}
	if e.dir {
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	}
	var buf bytes.Buffer
	if err := tar.NewWriter(&buf).WriteHeader(h); err != nil {
		return nil, fmt.Errorf("describing %q in a layer: %w", e.path, err)
	}
	return buf.Bytes(), nil
}

const tarBlock = 512

func (e entry) padding() int64 { return (tarBlock - e.size%tarBlock) % tarBlock }

// layer is an uncompressed layer that is put together each time it is read:
// in a registry next door, compressing costs more than it saves, and a copy of
// the binaries would cost their size again.
type layer struct {
	entries []entry
	digest  v1.Hash
	size    int64
}

var _ v1.Layer = (*layer)(nil)

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return openLayer(l.entries) }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return openLayer(l.entries) }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }

// newLayer takes the digest from the cache, or reads everything once.
func newLayer(entries []entry, cache digestCache) (*layer, error) {
	entries = withParents(entries)
	key, err := layerKey(entries)
	if err != nil {
		return nil, err
	}
	if l, ok := cache.get(key); ok {
		l.entries = entries
		return l, nil
	}

	content, err := openLayer(entries)
	if err != nil {
		return nil, err
	}
	digest, size, err := v1.SHA256(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, fmt.Errorf("reading a layer: %w", err)
	}
	l := &layer{entries: entries, digest: digest, size: size}
	return l, cache.put(key, l)
}

// openLayer streams the tar of the entries.
func openLayer(entries []entry) (io.ReadCloser, error) {
	stream := &layerStream{}
	var parts []io.Reader
	for _, e := range entries {
		header, err := e.header()
		if err != nil {
			return nil, errors.Join(err, stream.Close())
		}
		parts = append(parts, bytes.NewReader(header))
		if e.from == "" {
			parts = append(parts, bytes.NewReader(e.content))
		} else {
			file, err := os.Open(e.from)
			if err != nil {
				return nil, errors.Join(err, stream.Close())
			}
			stream.files = append(stream.files, file)
			parts = append(parts, &exactReader{file: file, left: e.size})
		}
		parts = append(parts, bytes.NewReader(make([]byte, e.padding())))
	}
	parts = append(parts, bytes.NewReader(make([]byte, 2*tarBlock)))
	stream.Reader = io.MultiReader(parts...)
	return stream, nil
}

type layerStream struct {
	io.Reader
	files []*os.File
}

func (s *layerStream) Close() error {
	var errs []error
	for _, file := range s.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// exactReader yields as many bytes as the header promises, and fails where the
// file has become shorter since.
type exactReader struct {
	file *os.File
	left int64
}

func (r *exactReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.file.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err == io.EOF && r.left > 0 {
		return n, fmt.Errorf("%q changed while it was read: %w; try again", r.file.Name(), io.ErrUnexpectedEOF)
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
