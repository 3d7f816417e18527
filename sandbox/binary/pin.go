package binary

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// PublishedSums writes the checksum that each publisher gives for each release
// file, for every architecture. A figure that goes into the pin file should be
// compared with a second place first: this trusts the publisher's server.
func PublishedSums(ctx context.Context, o Options, w io.Writer) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("reading published checksums: %w", err)
	}
	work, err := os.MkdirTemp("", "cozydev-sums-")
	if err != nil {
		return fmt.Errorf("reading published checksums: %w", err)
	}
	defer os.RemoveAll(work)
	download := downloader{client: o.client, log: o.Log, timing: o.timing}
	for _, arch := range architectures() {
		for _, a := range o.pins.assets(arch) {
			text, err := download.text(ctx, a.Checksums, filepath.Join(work, a.Name))
			if err != nil {
				return fmt.Errorf("reading published checksums: %w", err)
			}
			sum, err := findSum(text, a.Name)
			if err != nil {
				return fmt.Errorf("reading published checksums %q: %w", a.Checksums, err)
			}
			fmt.Fprintf(w, "%s: %s  # %s\n", arch, sum, a.URL)
		}
	}
	return nil
}
