package binary

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallelDownloads is enough to fill a line without being rude to a server.
const parallelDownloads = 4

// releaseMaker downloads what the projects publish.
type releaseMaker struct {
	pins     *Pins
	arch     string
	download downloader
	notify   Progress
}

func (o Options) releaseSource() cachedSource {
	return o.cached(SourceRelease, releaseMaker{
		pins:     o.pins,
		arch:     runtime.GOARCH,
		download: downloader{client: o.client, log: o.Log, timing: o.timing},
		notify:   o.Progress,
	})
}

func (r releaseMaker) inputs() (any, error) { return r.pins.assets(r.arch), nil }

func (r releaseMaker) names() []string { return r.pins.names(releasedBinary) }

func (r releaseMaker) make(ctx context.Context, st stage) error {
	started := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDownloads)
	for _, a := range r.pins.assets(r.arch) {
		if slices.ContainsFunc(a.binaries(), func(name string) bool { return !st.has(name) }) {
			group.Go(func() error { return r.fetch(ctx, a, st, started) })
		}
	}
	return group.Wait()
}

// binaries lists what an asset yields.
func (a asset) binaries() []string {
	if a.Members == nil {
		return []string{a.Binary}
	}
	var names []string
	for _, name := range a.Members {
		names = append(names, name)
	}
	return names
}

// fetch downloads, verifies and unpacks one asset.
func (r releaseMaker) fetch(ctx context.Context, a asset, st stage, started time.Time) error {
	want, err := r.sum(ctx, a, st)
	if err != nil {
		return err
	}
	part := filepath.Join(st.work, a.Name+".part")
	report := func(done, total int64) {
		r.notify(Event{Stage: StageDownload, Name: a.Name, Done: done, Total: total, Elapsed: time.Since(started)})
	}
	if err := r.fetchVerified(ctx, a, part, want, report); err != nil {
		return err
	}
	if a.Members == nil {
		return st.finish(part, a.Binary)
	}
	if err := unpack(part, a.Members, st); err != nil {
		return fmt.Errorf("unpacking %q: %w", a.URL, err)
	}
	return os.Remove(part)
}

// sum is the checksum the asset must have.
func (r releaseMaker) sum(ctx context.Context, a asset, st stage) (string, error) {
	if a.SHA256 != "" {
		return a.SHA256, nil
	}
	r.notify(Event{Stage: StageNote, Message: fmt.Sprintf(
		"%s: no checksum is pinned, verifying against the publisher's %s", a.Name, a.Checksums)})
	text, err := r.download.text(ctx, a.Checksums, filepath.Join(st.work, a.Name+".sums"))
	if err != nil {
		return "", err
	}
	sum, err := findSum(text, a.Name)
	if err != nil {
		return "", fmt.Errorf("reading the checksums %q: %w", a.Checksums, err)
	}
	return sum, nil
}

// fetchVerified leaves a verified file at part. What an earlier call left there
// may be of another file, so a mismatch after a resume gets one fresh start.
func (r releaseMaker) fetchVerified(ctx context.Context, a asset, part, want string, report func(done, total int64)) error {
	for resumed := fileSize(part) > 0; ; resumed = false {
		if err := r.download.fetch(ctx, a.URL, part, report); err != nil {
			return err
		}
		err := verifyFile(part, want)
		if err == nil || !errors.Is(err, errChecksum) {
			return err
		}
		if err := os.Remove(part); err != nil {
			return err
		}
		if !resumed {
			return fmt.Errorf("verifying %q: %w\nthe file was discarded; if it happens again, the download is tampered with or the pin is wrong", a.URL, err)
		}
	}
}

// unpack takes the members out of a tar.gz archive, each becoming a binary.
func unpack(archive string, members map[string]string, st stage) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	found := 0
	for reader := tar.NewReader(unzipped); found < len(members); {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it lacks some of %v", members)
		}
		if err != nil {
			return err
		}
		name, wanted := members[path.Clean(header.Name)]
		if !wanted || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := unpackOne(reader, name, st); err != nil {
			return err
		}
		found++
	}
	return nil
}

func unpackOne(reader io.Reader, name string, st stage) error {
	scratch := filepath.Join(st.work, name+".unpack")
	f, err := os.Create(scratch)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, reader)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return st.finish(scratch, name)
}
