// Package registry is the sandbox's container registry: the CNCF distribution library over a directory that all
// sandboxes share. Nodes use it as the mirror of every upstream registry: containerd adds ?ns=<upstream host>, and a
// request is answered from the local repository <host>/<repository> when there is one (images built here are pushed
// to it), else through a pull-through cache of that upstream when there is an uplink, else with a 404 that says so.
package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the driver's factory registers itself
)

// Options configure a Registry.
type Options struct {
	// Dir holds the blobs; pushes go to Dir/local, pulled-through images to Dir/proxy/<host>.
	Dir string
	// Upstreams answers for hosts that are not local; nil without an uplink.
	Upstreams *Upstreams
	Log       *slog.Logger
}

// Registry is an http.Handler for the registry API (/v2/) and /healthz.
type Registry struct {
	options Options
	local   http.Handler
}

// New opens the registry. The context bounds its background work.
func New(ctx context.Context, options Options) (*Registry, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	local, err := newApp(ctx, filepath.Join(options.Dir, "local"), "")
	if err != nil {
		return nil, fmt.Errorf("opening the registry in %q: %w", options.Dir, err)
	}
	return &Registry{options: options, local: local}, nil
}

// ServeHTTP routes one request.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusOK)
		return
	}
	namespace := request.URL.Query().Get("ns")
	repository, rest, ok := splitPath(request.URL.Path)
	if namespace == "" || !ok {
		r.local.ServeHTTP(w, request)
		return
	}
	local := rewrite(request, "/v2/"+namespace+"/"+repository+rest)
	if !isRead(request.Method) {
		r.local.ServeHTTP(w, local)
		return
	}
	if r.has(local) {
		r.local.ServeHTTP(w, local)
		return
	}
	r.upstream(w, request, namespace)
}

// has asks the local registry for the object without its content.
func (r *Registry) has(request *http.Request) bool {
	probe := request.Clone(request.Context())
	probe.Method = http.MethodHead
	answer := &statusRecorder{header: http.Header{}}
	r.local.ServeHTTP(answer, probe)
	return answer.status < http.StatusBadRequest
}

func (r *Registry) upstream(w http.ResponseWriter, request *http.Request, host string) {
	repository, rest, _ := splitPath(request.URL.Path)
	name := host + "/" + repository + reference(rest)
	if r.options.Upstreams == nil {
		refuse(w, fmt.Sprintf("%s is not in the sandbox registry and the sandbox has no uplink; "+
			"push it to %s/%s/%s or start the sandbox with --uplink on", name, request.Host, host, repository))
		return
	}
	handler, err := r.options.Upstreams.handler(request.Context(), host)
	if err != nil {
		r.options.Log.Warn("upstream registry does not answer", "host", host, "error", err)
		refuse(w, fmt.Sprintf("%s is not in the sandbox registry and its upstream does not answer: %v", name, err))
		return
	}
	handler.ServeHTTP(w, rewrite(request, request.URL.Path))
}

// refuse answers 404 in the form of the OCI distribution specification, so that clients print the message.
func refuse(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	body := map[string]any{"errors": []map[string]string{{"code": "NAME_UNKNOWN", "message": message}}}
	_ = json.NewEncoder(w).Encode(body) // the client has gone when this errs
}

// newApp makes a registry application over a directory; with an upstream it is a pull-through cache.
func newApp(ctx context.Context, dir, upstream string) (app http.Handler, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config := &configuration.Configuration{
		Storage: configuration.Storage{
			"filesystem": configuration.Parameters{"rootdirectory": dir},
			"delete":     configuration.Parameters{"enabled": true},
			"cache":      configuration.Parameters{"blobdescriptor": "inmemory"},
			"maintenance": configuration.Parameters{
				"uploadpurging": map[any]any{"enabled": false},
			},
		},
	}
	config.HTTP.Secret = "one process serves every upload" // only guards upload state between several servers
	// An index may name platforms that nobody pulled; the sandbox needs one.
	config.Validation.Manifests.Indexes.Platforms = "none"
	if upstream != "" {
		forever := time.Duration(0)
		config.Proxy = configuration.Proxy{RemoteURL: upstream, TTL: &forever}
	}
	defer func() {
		if fault := recover(); fault != nil { // the library panics on a configuration that it cannot use
			err = fmt.Errorf("%v", fault)
		}
	}()
	return handlers.NewApp(ctx, config), nil
}
