package binary

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// fixture is a release server with one bare binary, whose checksum is the
// publisher's, and one archive, whose checksum is pinned.
type fixture struct {
	*server
	pins     *Pins
	options  Options
	recorder *recorder
}

var bareContent = strings.Repeat("bare ", 50_000)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	archive := tarball(t, map[string]string{"./bin/one": "first", "bin/two": "second", "README": "text"})
	s := newServer(t, map[string][]byte{
		"/v1/bare":     []byte(bareContent),
		"/v1/bare.sum": []byte(hexSum([]byte(bareContent)) + "\n"),
		"/packed.tgz":  archive,
	})
	release := func(url string) *Release { return &Release{URL: s.URL + url, Checksums: s.URL + url + ".sum"} }
	packed := release("/packed.tgz")
	packed.SHA256 = map[string]string{runtime.GOARCH: hexSum(archive)}
	f := &fixture{server: s, recorder: &recorder{}, pins: &Pins{Projects: []Project{
		{Name: "bare", Version: "v1", Release: release("/{version}/{name}"), Binaries: []Binary{{Name: "bare", Use: UseNode}}},
		{Name: "packed", Version: "v1", Release: packed, Binaries: []Binary{
			{Name: "one", Use: UseNode, Member: "bin/one"}, {Name: "two", Use: UseTool, Member: "bin/two"},
		}},
		{Name: "unpublished", Version: "v1", Binaries: []Binary{{Name: "built", Use: UseImage, Package: "x/built"}}},
	}}}
	f.options = Options{
		Source: SourceRelease, CacheDir: t.TempDir(), Progress: f.recorder.progress, pins: f.pins, timing: quick,
	}
	return f
}

func TestReleaseThenCache(t *testing.T) {
	f := newFixture(t)
	set, err := Ensure(t.Context(), f.options)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bare": bareContent, "one": "first", "two": "second"} {
		if got := readFile(t, set.Path(name)); got != want {
			t.Errorf("%s holds %.20q, want %.20q", name, got, want)
		}
		if problem := executable(set.Path(name)); problem != "" || !set.Has(name) {
			t.Errorf("%s %s", name, problem)
		}
	}
	if set.Has("built") || set.Source != SourceRelease {
		t.Errorf("got %+v", set)
	}
	if notes := strings.Join(f.recorder.notes(), "\n"); !strings.Contains(notes, "bare: no checksum is pinned") ||
		strings.Contains(notes, "packed") {
		t.Errorf("notes: %s", notes)
	}
	assertOnlyKey(t, f.options.CacheDir, set.Dir)

	before := len(f.asked())
	again, err := Ensure(t.Context(), f.options)
	if err != nil || again.Dir != set.Dir {
		t.Errorf("second call: %+v, %v", again, err)
	}
	if asked := f.asked()[before:]; len(asked) > 0 {
		t.Errorf("the second call asked the network: %q", asked)
	}
}

// assertOnlyKey checks that nothing but the finished set and its lock is left.
func assertOnlyKey(t *testing.T, cache, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cache, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != filepath.Base(dir) && name != "."+filepath.Base(dir)+".lock" {
			t.Errorf("%s is left in the cache", name)
		}
	}
}

func TestReleaseIsMadeAgainAfterTampering(t *testing.T) {
	f := newFixture(t)
	set, err := Ensure(t.Context(), f.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(set.Path("one"), []byte("else!"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(set.Path("one"), time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if set, err = Ensure(t.Context(), f.options); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, set.Path("one")); got != "first" {
		t.Errorf("one holds %q", got)
	}
	assertOnlyKey(t, f.options.CacheDir, set.Dir)
}

func TestReleaseBadChecksum(t *testing.T) {
	f := newFixture(t)
	f.files["/v1/bare"] = []byte("tampered with")
	_, err := Ensure(t.Context(), f.options)
	if !errors.Is(err, errChecksum) || !strings.Contains(err.Error(), "expected "+hexSum([]byte(bareContent))) {
		t.Fatalf("got %v", err)
	}
	parts, _ := filepath.Glob(filepath.Join(f.options.CacheDir, "bin", ".*", "work", "bare.part"))
	finished, _ := filepath.Glob(filepath.Join(f.options.CacheDir, "bin", ".*", "bin", "bare"))
	if len(parts)+len(finished) > 0 {
		t.Errorf("the bad file is kept: %q %q", parts, finished)
	}
	// Once the server is right again, so is the next call.
	f.files["/v1/bare"] = []byte(bareContent)
	if _, err := Ensure(t.Context(), f.options); err != nil {
		t.Error(err)
	}
}

func TestReleaseWithoutMember(t *testing.T) {
	f := newFixture(t)
	f.pins.Projects[1].Binaries[0].Member = "bin/absent"
	_, err := Ensure(t.Context(), f.options)
	if err == nil || !strings.Contains(err.Error(), `unpacking`) || !strings.Contains(err.Error(), "bin/absent") {
		t.Errorf("got %v", err)
	}
}

func TestReleaseResumesAfterInterruption(t *testing.T) {
	f := newFixture(t)
	const sent = 100_000
	ctx, cancel := context.WithCancel(t.Context())
	f.setIntercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/bare" {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(bareContent)))
		_, _ = w.Write([]byte(bareContent[:sent]))
		_ = http.NewResponseController(w).Flush()
		waitForPart(f.options.CacheDir, sent)
		cancel()
		<-r.Context().Done()
		return true
	})
	if _, err := Ensure(ctx, f.options); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if sets, _ := filepath.Glob(filepath.Join(f.options.CacheDir, "bin", "release-*")); len(sets) != 0 {
		t.Errorf("a half-made set is in sight: %q", sets)
	}
	f.setIntercept(nil)
	set, err := Ensure(t.Context(), f.options)
	if err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, set.Path("bare")); got != bareContent {
		t.Error("the resumed file differs")
	}
	if !slices.Contains(f.asked(), fmt.Sprintf("GET /v1/bare bytes=%d-", sent)) {
		t.Errorf("it was not resumed: %q", f.asked())
	}
}

// waitForPart waits until the client has written what it was sent.
func waitForPart(cache string, size int64) {
	for range 500 {
		parts, _ := filepath.Glob(filepath.Join(cache, "bin", ".*", "work", "bare.part"))
		if len(parts) == 1 && fileSize(parts[0]) == size {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestPublishedSums(t *testing.T) {
	f := newFixture(t)
	f.files["/packed.tgz.sum"] = []byte(strings.Repeat("c", 64) + "  packed.tgz\n")
	var out strings.Builder
	if err := PublishedSums(t.Context(), f.options, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"amd64: " + hexSum([]byte(bareContent)), "arm64: " + strings.Repeat("c", 64)} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
