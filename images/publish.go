package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

// Dialer opens a connection, for example into a sandbox.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Upload is an image and what it is to be called.
type Upload struct {
	// Ref is host/repository:tag. Where the host is not the registry that is
	// pushed to, the image goes where a mirror of that host is looked up:
	// <registry>/<host>/<repository>:<tag>.
	Ref   string
	Image v1.Image
}

// Result says what became of an upload.
type Result struct {
	Ref    string
	Digest v1.Hash
	// Pushed is false where the registry had the image already.
	Pushed bool
}

// Pinned is the reference with the digest, which no later push changes.
func (r Result) Pinned() string { return r.Ref + "@" + r.Digest.String() }

// Publisher pushes images to one registry over plain HTTP. It may be used by
// several goroutines.
type Publisher struct {
	registry string
	pusher   *remote.Pusher
	puller   *remote.Puller
}

// parallel uploads keep a registry next door busy without opening a
// connection for each image.
const parallel = 4

// NewPublisher makes a Publisher for the registry at address (host:port). A
// nil dial uses the network of this process.
func NewPublisher(address string, dial Dialer) (*Publisher, error) {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	options := []remote.Option{
		remote.WithTransport(plainHTTP{&http.Transport{DialContext: dial, MaxIdleConnsPerHost: parallel}}),
		remote.WithJobs(parallel),
	}
	pusher, err := remote.NewPusher(options...)
	if err != nil {
		return nil, err
	}
	puller, err := remote.NewPuller(options...)
	if err != nil {
		return nil, err
	}
	return &Publisher{registry: address, pusher: pusher, puller: puller}, nil
}

// Publish pushes what the registry does not have, several at a time, and
// returns the results in the order of the uploads. It may be called again with
// the same uploads, which then costs one request each.
func (p *Publisher) Publish(ctx context.Context, uploads []Upload) ([]Result, error) {
	results := make([]Result, len(uploads))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, upload := range uploads {
		group.Go(func() error {
			result, err := p.publish(ctx, upload)
			if err != nil {
				return fmt.Errorf("pushing image %q to %s: %w", upload.Ref, p.registry, err)
			}
			results[i] = result
			return nil
		})
	}
	return results, group.Wait()
}

func (p *Publisher) publish(ctx context.Context, upload Upload) (Result, error) {
	digest, err := upload.Image.Digest()
	if err != nil {
		return Result{}, err
	}
	ref, err := name.ParseReference(Mirror(p.registry, upload.Ref), name.Insecure)
	if err != nil {
		return Result{}, err
	}

	result := Result{Ref: upload.Ref, Digest: digest}
	if have, err := p.puller.Head(ctx, ref); err == nil && have.Digest == digest {
		return result, nil
	}
	result.Pushed = true
	return result, p.pusher.Push(ctx, ref, upload.Image)
}

// Mirror is the name under which registry serves the image ref of another
// registry. A reference to registry itself stays as it is.
func Mirror(registry, ref string) string {
	if strings.HasPrefix(ref, registry+"/") {
		return ref
	}
	return registry + "/" + ref
}

// plainHTTP refuses TLS at once, which saves the time that a client tries it
// on a registry that has none.
type plainHTTP struct{ http.RoundTripper }

var errPlainHTTP = errors.New("the registry speaks plain HTTP")

func (t plainHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" {
		return nil, errPlainHTTP
	}
	return t.RoundTripper.RoundTrip(req)
}
