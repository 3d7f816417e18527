package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/renameio/v2"
)

// digestCache remembers the digests of layers in a directory, one small file
// each. An empty path caches nothing.
type digestCache string

type cachedLayer struct {
	Digest v1.Hash `json:"digest"`
	Size   int64   `json:"size"`
}

func (c digestCache) get(key string) (*layer, bool) {
	if c == "" {
		return nil, false
	}
	raw, err := os.ReadFile(filepath.Join(string(c), key))
	if err != nil {
		return nil, false
	}
	var cached cachedLayer
	if json.Unmarshal(raw, &cached) != nil {
		return nil, false
	}
	return &layer{digest: cached.Digest, size: cached.Size}, true
}

func (c digestCache) put(key string, l *layer) error {
	if c == "" {
		return nil
	}
	raw, err := json.Marshal(cachedLayer{Digest: l.digest, Size: l.size})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return fmt.Errorf("making the image cache: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(string(c), key), raw, 0o644); err != nil {
		return fmt.Errorf("writing the image cache: %w", err)
	}
	return nil
}

// layerFormat is part of every key; raise it when a layer of the same entries
// comes out differently than before.
const layerFormat = 1

// layerKey identifies a layer's content without reading its files: a file that
// is changed gets another time of change, size or inode.
func layerKey(entries []entry) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, layerFormat)
	for _, e := range entries {
		fmt.Fprintf(sum, "%q %o %t %d %x\n", e.path, e.mode, e.dir, e.size, e.content)
		if e.from == "" {
			continue
		}
		info, err := os.Stat(e.from)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %d %s\n", e.from, info.ModTime().UnixNano(), identity(info))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
