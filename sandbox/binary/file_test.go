package binary

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	pins := &Pins{Projects: []Project{{Binaries: []Binary{
		{Name: "one", Use: UseNode}, {Name: "two", Use: UseNode}, {Name: "tool", Use: UseTool},
	}}}}
	good := map[string]string{"one": "x", "two": "x", "tool": "x"}
	tests := map[string]struct {
		files   map[string]string
		spoil   func(dir string) error
		names   []string
		wantErr string
		note    string
	}{
		"all there": {files: good, names: []string{"one", "two", "tool"}},
		"no tool": {
			files: map[string]string{"one": "x", "two": "x"}, names: []string{"one", "two"}, note: "has no tool",
		},
		"one missing":  {files: map[string]string{"one": "x"}, wantErr: "lacks node binaries: two is missing\n"},
		"both missing": {files: nil, wantErr: "one is missing, two is missing"},
		"not executable": {
			files: good, spoil: func(dir string) error { return os.Chmod(filepath.Join(dir, "two"), 0o644) },
			wantErr: "two is not executable",
		},
		"empty": {files: map[string]string{"one": "", "two": "x"}, wantErr: "one is empty"},
		"a folder": {
			files: map[string]string{"one": "x", "two/x": "x"}, wantErr: "two is not a file",
		},
		"no directory": {spoil: os.Remove, wantErr: "no such file or directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, 0o755, test.files)
			if test.spoil != nil {
				if err := test.spoil(dir); err != nil {
					t.Fatal(err)
				}
			}
			var seen recorder
			set, err := Ensure(t.Context(), Options{Source: SourceFile, Dir: dir, pins: pins, Progress: seen.progress})
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("got %v, want an error with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if set.Dir != dir || !slices.Equal(set.Names, test.names) {
				t.Errorf("got %+v", set)
			}
			if notes := strings.Join(seen.notes(), "\n"); !strings.Contains(notes, test.note) || (test.note == "") != (notes == "") {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
		})
	}
}

func TestFileNeedsDir(t *testing.T) {
	if _, err := Ensure(t.Context(), Options{Source: SourceFile}); err == nil ||
		!strings.Contains(err.Error(), "needs a directory") {
		t.Errorf("got %v", err)
	}
}

func TestParseSource(t *testing.T) {
	if s, err := ParseSource(""); s != SourceAuto || err != nil {
		t.Errorf("got %q, %v", s, err)
	}
	if s, err := ParseSource("gomod"); s != SourceGoMod || err != nil {
		t.Errorf("got %q, %v", s, err)
	}
	if _, err := ParseSource("apt"); err == nil || !strings.Contains(err.Error(), `"apt" is none of auto`) {
		t.Errorf("got %v", err)
	}
}
