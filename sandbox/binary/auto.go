package binary

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// autoSource takes releases where they can be reached, else builds. What is in
// the cache already is used without asking the network.
type autoSource struct {
	release cachedSource
	build   goModSource
	probe   func(context.Context) error
	notify  Progress
}

func (o Options) autoSource() autoSource {
	return autoSource{
		release: o.releaseSource(),
		build:   o.goModSource(),
		notify:  o.Progress,
		probe: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, o.timing.probe)
			defer cancel()
			return probe(ctx, o.client, o.pins)
		},
	}
}

func (a autoSource) lookup(ctx context.Context) (Set, bool, error) {
	set, ok, err := a.release.lookup(ctx)
	if ok || err != nil || a.build.usable() != nil {
		return set, ok, err
	}
	return a.build.lookup(ctx)
}

func (a autoSource) provide(ctx context.Context) (Set, error) {
	reason := a.probe(ctx)
	if reason == nil {
		set, err := a.release.provide(ctx)
		if err == nil || !avoidable(ctx, err) {
			return set, err
		}
		reason = err
	}
	if err := ctx.Err(); err != nil {
		return Set{}, err
	}
	if err := a.build.usable(); err != nil {
		return Set{}, fmt.Errorf("releases cannot be had (%w), and building is no way out: %w", reason, err)
	}
	a.notify(Event{Stage: StageNote, Message: fmt.Sprintf(
		"releases cannot be had (%v): building the node binaries from source", reason)})
	return a.build.provide(ctx)
}

// avoidable tells whether another source could do better. A wrong checksum is
// for people to look at, and a full disk is as full for a build.
func avoidable(ctx context.Context, err error) bool {
	var refused permanentError
	local := permanent(err) && !errors.As(err, &refused)
	return ctx.Err() == nil && !errors.Is(err, errChecksum) && !errors.Is(err, syscall.ENOSPC) && !local
}

// probe asks each release server for one file's header.
func probe(ctx context.Context, client *http.Client, pins *Pins) error {
	group, ctx := errgroup.WithContext(ctx)
	asked := map[string]bool{}
	for _, a := range pins.assets("amd64") {
		u, err := url.Parse(a.URL)
		if err != nil {
			return err
		}
		if !asked[u.Host] {
			asked[u.Host] = true
			group.Go(func() error { return probeOne(ctx, client, u) })
		}
	}
	return group.Wait()
}

func probeOne(ctx context.Context, client *http.Client, u *url.URL) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		// The full text repeats the method and the URL.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return fmt.Errorf("%s: %w", u.Host, err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode < 400, response.StatusCode == http.StatusMethodNotAllowed:
		return nil
	default:
		return fmt.Errorf("%s answered %q", u.Host, response.Status)
	}
}
