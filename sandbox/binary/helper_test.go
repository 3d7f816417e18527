package binary

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// quick is the timing of tests: no real pauses.
var quick = timing{probe: time.Second, stall: 2 * time.Second, firstDelay: time.Millisecond}

// server is a release server on loopback.
type server struct {
	*httptest.Server
	files map[string][]byte

	mutex sync.Mutex
	// requests lists what was asked for, as "GET /path Range".
	requests []string
	// intercept may answer a request itself, by returning true.
	intercept func(http.ResponseWriter, *http.Request) bool
}

func newServer(t *testing.T, files map[string][]byte) *server {
	t.Helper()
	s := &server{files: files}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
	intercept := s.intercept
	s.mutex.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	data, ok := s.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func (s *server) asked() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]string(nil), s.requests...)
}

func (s *server) setIntercept(f func(http.ResponseWriter, *http.Request) bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.intercept = f
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// tarball packs files into a tar.gz.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// recorder keeps the events of a call.
type recorder struct {
	mutex  sync.Mutex
	events []Event
}

func (r *recorder) progress(e Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) notes() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var notes []string
	for _, e := range r.events {
		if e.Stage == StageNote {
			notes = append(notes, e.Message)
		}
	}
	return notes
}

func writeFiles(t *testing.T, dir string, mode os.FileMode, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
