package binary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func testDownloader() downloader {
	return downloader{client: newClient(), log: slog.New(slog.DiscardHandler), timing: quick}
}

func noReport(int64, int64) {}

func TestFetch(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10_000)
	tests := map[string]struct {
		// part is what an earlier call left.
		part string
		// intercept answers the n-th request, from 0.
		intercept func(n int, w http.ResponseWriter, r *http.Request) bool
		requests  []string
		wantErr   string
	}{
		"from nothing": {requests: []string{"GET /f "}},
		"resumes":      {part: string(content[:700]), requests: []string{"GET /f bytes=700-"}},
		"already complete": {part: string(content), requests: []string{
			fmt.Sprintf("GET /f bytes=%d-", len(content))}},
		"longer than the file": {part: string(content) + "x", requests: []string{
			fmt.Sprintf("GET /f bytes=%d-", len(content)+1), "GET /f "}},
		"server without ranges": {
			part: "wrong",
			intercept: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write(content)
				return true
			},
			requests: []string{"GET /f bytes=5-"},
		},
		"busy at first": {
			intercept: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return n < 3
			},
			requests: []string{"GET /f ", "GET /f ", "GET /f ", "GET /f "},
		},
		"cut off again and again": {
			intercept: func(n int, w http.ResponseWriter, r *http.Request) bool {
				return n < 8 && cutOff(w, r, content, 10_000*n, 10_000)
			},
			requests: []string{"GET /f ", "GET /f bytes=10000-", "GET /f bytes=20000-", "GET /f bytes=30000-", "GET /f bytes=40000-",
				"GET /f bytes=50000-", "GET /f bytes=60000-", "GET /f bytes=70000-", "GET /f bytes=80000-"},
		},
		"gone": {
			intercept: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusNotFound)
				return true
			},
			requests: []string{"GET /f "},
			wantErr:  "404",
		},
		"always broken": {
			intercept: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusBadGateway)
				return true
			},
			requests: []string{"GET /f ", "GET /f ", "GET /f ", "GET /f ", "GET /f "},
			wantErr:  "502",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string][]byte{"/f": content})
			if n := 0; test.intercept != nil {
				s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					n++
					return test.intercept(n-1, w, r)
				}
			}
			part := filepath.Join(t.TempDir(), "f.part")
			if test.part != "" {
				writeFiles(t, filepath.Dir(part), 0o644, map[string]string{"f.part": test.part})
			}
			err := testDownloader().fetch(t.Context(), s.URL+"/f", part, noReport)
			if got := s.asked(); !slices.Equal(got, test.requests) {
				t.Errorf("requests:\n got %q\nwant %q", got, test.requests)
			}
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %v, want an error with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := readFile(t, part); got != string(content) {
				t.Errorf("got %d bytes that differ from the %d served", len(got), len(content))
			}
		})
	}
}

// cutOff promises the rest of content from offset, sends n bytes and hangs up.
func cutOff(w http.ResponseWriter, r *http.Request, content []byte, offset, n int) bool {
	w.Header().Set("Content-Length", fmt.Sprint(len(content)-offset))
	if offset > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(content[offset : offset+n])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestFetchNoticesSilence(t *testing.T) {
	s := newServer(t, map[string][]byte{"/f": []byte("content")})
	first := true
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !first {
			return false
		}
		first = false
		w.Header().Set("Content-Length", "7")
		_, _ = w.Write([]byte("con"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	d := testDownloader()
	d.timing.stall = 50 * time.Millisecond
	part := filepath.Join(t.TempDir(), "f.part")
	if err := d.fetch(t.Context(), s.URL+"/f", part, noReport); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, part); got != "content" {
		t.Errorf("got %q", got)
	}
}

func TestFetchEndsWithContext(t *testing.T) {
	s := newServer(t, nil)
	s.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	d := testDownloader()
	d.timing.firstDelay = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := d.fetch(ctx, s.URL+"/f", filepath.Join(t.TempDir(), "f"), noReport)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestFetchDoesNotRetryLocalTrouble(t *testing.T) {
	s := newServer(t, map[string][]byte{"/f": []byte("content")})
	err := testDownloader().fetch(t.Context(), s.URL+"/f", filepath.Join(t.TempDir(), "missing", "f"), noReport)
	if !errors.Is(err, os.ErrNotExist) || len(s.asked()) != 1 {
		t.Errorf("got %v after %d requests", err, len(s.asked()))
	}
}

func TestBackoff(t *testing.T) {
	tests := []struct {
		failures int
		random   float64
		want     time.Duration
	}{
		{1, 0, 500 * time.Millisecond},
		{2, 0, time.Second},
		{3, 1, 2500 * time.Millisecond},
		{9, 0, maxDelay},
	}
	for _, test := range tests {
		if got := backoff(500*time.Millisecond, test.failures, test.random); got != test.want {
			t.Errorf("backoff after %d failures: got %s, want %s", test.failures, got, test.want)
		}
	}
}

func TestFindSum(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	tests := map[string]struct{ text, want string }{
		"bare":             {a, a},
		"bare, new line":   {a + "\n", a},
		"upper case":       {strings.ToUpper(a), a},
		"named":            {b + "  other\n" + a + "  file\n", a},
		"binary mode":      {a + " *file", a},
		"with a path":      {a + "  release/file", a},
		"of another file":  {a + "  other", ""},
		"two bare":         {a + "\n" + b, ""},
		"not a sum":        {"<html>file</html>", ""},
		"nothing":          {"", ""},
		"similarly called": {a + "  file.sig", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := findSum(test.text, "file")
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
