// Command fetch makes the node binaries available without the rest of cozydev
// and prints the directory they are in, which is what the Makefile calls. With
// -pin it prints the checksums of the published binaries instead, to be pasted
// into sandbox/binary/pins.yaml.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cozystack/cozydev/sandbox/binary"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	source := flag.String("source", "auto", "auto, release, gomod or file")
	dir := flag.String("dir", "", "the directory of -source file")
	module := flag.String("module", "", "the Go module to build (default: hack/node of this checkout)")
	cache := flag.String("cache", "", "the cache (default: $XDG_CACHE_HOME/cozydev)")
	pin := flag.Bool("pin", false, "print the publishers' checksums and end")
	flag.Parse()
	parsed, err := binary.ParseSource(*source)
	if err != nil {
		return err
	}
	if *module == "" {
		*module = binary.FindModule(".")
	}
	options := binary.Options{
		Source: parsed, Dir: *dir, CacheDir: *cache, ModuleDir: *module,
		Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Progress: plainLines(),
	}
	if *pin {
		return binary.PublishedSums(ctx, options, os.Stdout)
	}
	set, err := binary.Ensure(ctx, options)
	if err != nil {
		return err
	}
	fmt.Println(set.Dir)
	return nil
}

// plainLines prints counting events every few seconds and all others at once.
func plainLines() binary.Progress {
	last := map[binary.Stage]time.Time{}
	return func(e binary.Event) {
		switch e.Stage {
		case binary.StageDownload, binary.StagePrepare, binary.StageBuild:
			finished := e.Stage == binary.StageDownload && e.Done == e.Total
			if !finished && time.Since(last[e.Stage]) < 5*time.Second {
				return
			}
			last[e.Stage] = time.Now()
		}
		fmt.Fprintln(os.Stderr, e)
	}
}
