package binary

import (
	"context"
	"path/filepath"
)

// maker makes a set of binaries that the store keeps.
type maker interface {
	// inputs is everything that decides the content; its JSON is hashed.
	inputs() (any, error)
	// names lists what make yields.
	names() []string
	// make puts every binary that st does not have yet into it.
	make(ctx context.Context, st stage) error
}

// cachedSource is a source whose results are kept in the store.
type cachedSource struct {
	name  Source
	maker maker
	store store
}

func (o Options) cached(name Source, m maker) cachedSource {
	wait := func() {
		o.Progress(Event{Stage: StageNote, Message: "another cozydev is preparing the node binaries, waiting for it"})
	}
	return cachedSource{name: name, maker: m, store: store{root: filepath.Join(o.CacheDir, "bin"), wait: wait}}
}

func (c cachedSource) key() (string, error) {
	inputs, err := c.maker.inputs()
	if err != nil {
		return "", err
	}
	return keyOf(c.name, inputs)
}

func (c cachedSource) lookup(context.Context) (Set, bool, error) {
	key, err := c.key()
	if err != nil {
		return Set{}, false, err
	}
	dir, ok := c.store.lookup(key, c.maker.names())
	return c.set(dir), ok, nil
}

func (c cachedSource) provide(ctx context.Context) (Set, error) {
	key, err := c.key()
	if err != nil {
		return Set{}, err
	}
	dir, err := c.store.fill(ctx, key, c.maker.names(), func(st stage) error { return c.maker.make(ctx, st) })
	if err != nil {
		return Set{}, err
	}
	return c.set(dir), nil
}

func (c cachedSource) set(dir string) Set {
	return Set{Dir: dir, Source: c.name, Names: c.maker.names()}
}
