package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cozystack/cozydev/sandbox"
)

// LogOptions choose what of a log is read.
type LogOptions struct {
	// Tail is the number of last lines; negative means all.
	Tail int
	// Follow keeps reading until the context ends.
	Follow bool
}

// LogSources lists the logs of a sandbox: "supervisor", each node's console as "<node>", and each component's log as
// "<node>/<component>". It needs no running supervisor.
func LogSources(state sandbox.State) []string {
	var sources []string
	if _, err := os.Stat(state.SupervisorLog()); err == nil {
		sources = append(sources, "supervisor")
	}
	entries, err := os.ReadDir(filepath.Join(state.Dir(), "nodes"))
	if err != nil {
		return sources
	}
	for _, entry := range entries {
		node := entry.Name()
		if _, err := os.Stat(state.Console(node)); err == nil {
			sources = append(sources, node)
		}
		files, _ := filepath.Glob(filepath.Join(state.NodeDir(node), "logs", "*.log")) // the pattern is well formed
		for _, file := range files {
			sources = append(sources, node+"/"+strings.TrimSuffix(filepath.Base(file), ".log"))
		}
	}
	return sources
}

// ReadLog copies a log to the writer. It needs no running supervisor.
func ReadLog(ctx context.Context, state sandbox.State, source string, options LogOptions, to io.Writer) error {
	path, err := logPath(state, source)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening log %q: %w", source, err)
	}
	defer file.Close()
	if err := seekTail(file, options.Tail); err != nil {
		return fmt.Errorf("reading log %q: %w", source, err)
	}
	if _, err := io.Copy(to, file); err != nil {
		return fmt.Errorf("reading log %q: %w", source, err)
	}
	if !options.Follow {
		return nil
	}
	return follow(ctx, file, to)
}

func logPath(state sandbox.State, source string) (string, error) {
	if !slices.Contains(LogSources(state), source) {
		return "", fmt.Errorf("there is no log %q; there are: %s", source, strings.Join(LogSources(state), ", "))
	}
	if source == "supervisor" {
		return state.SupervisorLog(), nil
	}
	node, component, ok := strings.Cut(source, "/")
	if !ok {
		return state.Console(node), nil
	}
	return filepath.Join(state.NodeDir(node), "logs", component+".log"), nil
}

const followPoll = 200 * time.Millisecond

// follow copies what is appended to the file until the context ends, which is no error.
func follow(ctx context.Context, file *os.File, to io.Writer) error {
	ticker := time.NewTicker(followPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, err := io.Copy(to, file); err != nil {
			return fmt.Errorf("following the log: %w", err)
		}
		if flusher, ok := to.(interface{ Flush() }); ok {
			flusher.Flush()
		}
	}
}

const tailBlock = 64 << 10

// seekTail moves to the start of the last n lines, reading the file from its end.
func seekTail(file *os.File, n int) error {
	if n < 0 {
		return nil
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	position, newlines := end, 0
	buffer := make([]byte, tailBlock)
	for position > 0 {
		size := min(position, tailBlock)
		position -= size
		block := buffer[:size]
		if _, err := file.ReadAt(block, position); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for i := len(block) - 1; i >= 0; i-- {
			if block[i] != '\n' || position+int64(i) == end-1 { // the newline that ends the file separates nothing
				continue
			}
			if newlines++; newlines == n {
				_, err := file.Seek(position+int64(i)+1, io.SeekStart)
				return err
			}
		}
	}
	if n == 0 {
		return nil
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// lastLines returns the last n lines of a file.
func lastLines(path string, n int) ([]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := seekTail(file, n); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, tailBlock))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return strings.Split(string(bytes.TrimRight(data, "\n")), "\n"), nil
}
