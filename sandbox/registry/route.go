package registry

import (
	"net/http"
	"net/url"
	"strings"
)

// splitPath cuts /v2/<repository>/<kind>/<reference…> into repository and rest, where the kind is one of the object
// kinds of the OCI distribution specification. The last match counts: a repository may itself be called "blobs".
func splitPath(path string) (repository, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, "/v2/")
	if !ok {
		return "", "", false
	}
	at := -1
	for _, kind := range []string{"/manifests/", "/blobs/", "/tags/", "/referrers/"} {
		at = max(at, strings.LastIndex(path, kind))
	}
	if at <= 0 {
		return "", "", false
	}
	return path[:at], path[at:], true
}

// reference renders the end of an image name from the rest of a path: :tag or @digest.
func reference(rest string) string {
	name := rest[strings.LastIndex(rest, "/")+1:]
	if strings.Contains(name, ":") {
		return "@" + name
	}
	if strings.HasPrefix(rest, "/manifests/") {
		return ":" + name
	}
	return ""
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// rewrite returns the request with another path and without the ns parameter.
func rewrite(request *http.Request, path string) *http.Request {
	clone := request.Clone(request.Context())
	query := clone.URL.Query()
	query.Del("ns")
	clone.URL = &url.URL{Path: path, RawQuery: query.Encode()}
	clone.RequestURI = clone.URL.RequestURI()
	return clone
}

// statusRecorder keeps the status of an answer and drops the rest.
type statusRecorder struct {
	header http.Header
	status int
}

func (s *statusRecorder) Header() http.Header { return s.header }

func (s *statusRecorder) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
}

func (s *statusRecorder) Write(data []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return len(data), nil
}
