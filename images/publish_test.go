package images_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/cozystack/cozydev/images"
)

// server is a registry on loopback that counts its requests by method.
func server(t *testing.T) (address string, puts *atomic.Int32) {
	t.Helper()
	handler, puts := registry.New(registry.Logger(log.New(io.Discard, "", 0))), &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			puts.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), puts
}

func TestPublish(t *testing.T) {
	address, puts := server(t)
	// The name leads nowhere; only the dialer knows the way.
	const sandbox = "192.0.2.1:5000"
	publisher, err := images.NewPublisher(sandbox, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := images.PackTree(fstest.MapFS{"a": {Data: []byte("a")}}, images.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	uploads := []images.Upload{
		{Ref: refDNS, Image: build(t, images.Builder{}, definition(), binary(t, "elf"))},
		{Ref: sandbox + "/cozystack/packages:latest", Image: tree},
	}

	results, err := publisher.Publish(t.Context(), uploads)
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range results {
		if !result.Pushed || result.Ref != uploads[i].Ref || !strings.HasPrefix(result.Pinned(), result.Ref+"@sha256:") {
			t.Errorf("first push: %+v", result)
		}
	}
	for _, repo := range []string{"registry.k8s.io/coredns/coredns:v1.12.4", "cozystack/packages:latest"} {
		ref, _ := name.ParseReference(address + "/" + repo)
		if _, err := remote.Head(ref); err != nil {
			t.Errorf("%s is not there: %v", repo, err)
		}
	}

	before := puts.Load()
	again, err := publisher.Publish(t.Context(), uploads)
	if err != nil {
		t.Fatal(err)
	}
	if again[0].Pushed || again[1].Pushed || puts.Load() != before {
		t.Errorf("unchanged images were pushed again: %+v, %d writes", again, puts.Load()-before)
	}
}

func TestPublishToNobody(t *testing.T) {
	refused := errors.New("nobody listens")
	publisher, err := images.NewPublisher("192.0.2.1:5000", func(context.Context, string, string) (net.Conn, error) {
		return nil, refused
	})
	if err != nil {
		t.Fatal(err)
	}
	img := build(t, images.Builder{}, definition(), binary(t, "elf"))
	_, err = publisher.Publish(t.Context(), []images.Upload{{Ref: refDNS, Image: img}})
	if err == nil || !strings.Contains(err.Error(), refDNS) || !strings.Contains(err.Error(), refused.Error()) {
		t.Errorf("error %v", err)
	}
}
