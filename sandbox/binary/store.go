package binary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// manifestName is the file that completes a folder of the store.
const manifestName = ".manifest.json"

// manifest records the files of a folder as they were when it was finished.
// Sizes and times stand for the content, so that checking hundreds of
// megabytes takes no time.
type manifest struct {
	Files []manifestFile `json:"files"`
}

type manifestFile struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
}

// store keeps finished sets of binaries, each in a folder named by its key.
// A folder appears complete or not at all.
type store struct {
	root string
	// wait is told once when another process holds the lock.
	wait func()
}

// stage is where a set is made.
type stage struct {
	// bin receives the finished binaries, and nothing else. A file in it is
	// complete, and is kept until the set is.
	bin string
	// work is scratch space that outlives an interruption.
	work string
}

// has tells whether a binary was finished, maybe by an earlier call.
func (s stage) has(name string) bool {
	info, err := os.Lstat(filepath.Join(s.bin, name))
	return err == nil && info.Mode().IsRegular()
}

// finish moves a complete file of the same file system into place.
func (s stage) finish(from, name string) error {
	if err := os.Chmod(from, 0o755); err != nil {
		return err
	}
	return os.Rename(from, filepath.Join(s.bin, name))
}

// lookup returns the folder of key if it is complete and untouched.
func (s store) lookup(key string, names []string) (string, bool) {
	dir := filepath.Join(s.root, key)
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return "", false
	}
	var m manifest
	if json.Unmarshal(data, &m) != nil {
		return "", false
	}
	intact := map[string]bool{}
	for _, f := range m.Files {
		info, err := os.Lstat(filepath.Join(dir, f.Name))
		intact[f.Name] = err == nil && info.Mode().IsRegular() && info.Mode()&0o100 != 0 &&
			info.Size() == f.Size && info.ModTime().Equal(f.ModTime)
	}
	for _, name := range names {
		if !intact[name] {
			return "", false
		}
	}
	return dir, true
}

// fill returns the folder of key, calling make for what is missing. Only one
// process makes a key at a time; the others wait and then find it made.
func (s store) fill(ctx context.Context, key string, names []string, make func(stage) error) (string, error) {
	if err := os.MkdirAll(s.root, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(s.root, "."+key+".lock"), s.wait)
	if err != nil {
		return "", err
	}
	defer unlock()
	if dir, ok := s.lookup(key, names); ok {
		return dir, nil
	}
	partial := filepath.Join(s.root, "."+key+".partial")
	st := stage{bin: filepath.Join(partial, "bin"), work: filepath.Join(partial, "work")}
	for _, dir := range []string{st.bin, st.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	if err := make(st); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return s.commit(key, names, partial, st)
}

// commit makes the finished stage visible.
func (s store) commit(key string, names []string, partial string, st stage) (string, error) {
	if err := writeManifest(st.bin, names); err != nil {
		return "", err
	}
	dir := filepath.Join(s.root, key)
	if _, err := os.Lstat(dir); err == nil {
		// Somebody changed a file of a finished set. Rename cannot replace a
		// folder, so the old one is moved out of the way first.
		stale := filepath.Join(partial, "stale")
		if err := errors.Join(os.RemoveAll(stale), os.Rename(dir, stale)); err != nil {
			return "", err
		}
	}
	if err := os.Rename(st.bin, dir); err != nil {
		return "", err
	}
	return dir, os.RemoveAll(partial)
}

// writeManifest records the named files of dir, all of which must be there.
func writeManifest(dir string, names []string) error {
	var m manifest
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the source yielded no %q", name)
		}
		if err != nil {
			return err
		}
		m.Files = append(m.Files, manifestFile{Name: name, Size: info.Size(), ModTime: info.ModTime()})
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), append(data, '\n'), 0o644)
}

// lockInterval is how often a held lock is tried again.
const lockInterval = 200 * time.Millisecond

// lock takes an exclusive lock on the file at path, which the kernel releases
// when the process ends, however it ends. The file stays.
func lock(ctx context.Context, path string, wait func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("locking %q: %w", path, err)
		}
		if !told {
			wait()
			told = true
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// keyOf names content by the first 24 hex digits of its hash, which is plenty
// against chance and short enough for a path.
func keyOf(source Source, inputs any) (string, error) {
	data, err := json.Marshal(inputs)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s-%s", source, hex.EncodeToString(sum[:])[:24]), nil
}
