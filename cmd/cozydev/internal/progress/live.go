package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// liveEvery is the redraw period of the spinner, fast enough to look alive.
const liveEvery = 120 * time.Millisecond

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// liveRenderer keeps the running steps as a block at the bottom of the
// terminal and prints what has ended above it.
type liveRenderer struct {
	out   io.Writer
	color bool

	mu      sync.Mutex
	running []*liveStep
	drawn   int
	frame   int

	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
}

type liveStep struct {
	name, message string
	since         time.Time
}

func newLive(out io.Writer) *liveRenderer {
	l := &liveRenderer{
		out:     out,
		color:   os.Getenv("NO_COLOR") == "",
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go l.spin()
	return l
}

func (l *liveRenderer) spin() {
	defer close(l.stopped)
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			l.mu.Lock()
			l.frame++
			l.redraw("")
			l.mu.Unlock()
		}
	}
}

func (l *liveRenderer) Emit(event Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch event.State {
	case Started:
		l.running = append(l.running, &liveStep{name: event.Step, message: event.Message, since: event.Time})
		l.redraw("")
	case Running:
		if step := l.find(event.Step); step != nil {
			step.message = event.Message
		}
	case Note:
		l.redraw(l.paint(event) + "\n")
	default:
		l.remove(event.Step)
		l.redraw(l.paint(event) + "\n")
	}
}

func (l *liveRenderer) Close() {
	l.once.Do(func() {
		close(l.stop)
		<-l.stopped
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running = nil
		l.redraw("")
	})
}

func (l *liveRenderer) find(name string) *liveStep {
	for _, step := range l.running {
		if step.name == name {
			return step
		}
	}
	return nil
}

func (l *liveRenderer) remove(name string) {
	kept := l.running[:0]
	for _, step := range l.running {
		if step.name != name {
			kept = append(kept, step)
		}
	}
	l.running = kept
}

// redraw wipes the block drawn last, prints above, and draws the block anew.
func (l *liveRenderer) redraw(above string) {
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", l.drawn)
	}
	b.WriteString(above)
	width := l.width()
	for _, step := range l.running {
		age := time.Since(step.since).Seconds()
		line := fmt.Sprintf("%s  %-10s %6s  %s", spinner[l.frame%len(spinner)], step.name, seconds(age), step.message)
		b.WriteString(clip(line, width) + "\n")
	}
	l.drawn = len(l.running)
	_, _ = io.WriteString(l.out, b.String())
}

func (l *liveRenderer) width() int {
	if file, ok := l.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 20 {
			return width
		}
	}
	return 120
}

// clip cuts a line to the terminal's width, so that one step is one row.
func clip(line string, width int) string {
	line = strings.ReplaceAll(line, "\n", " ")
	runes := []rune(line)
	if len(runes) < width {
		return line
	}
	return string(runes[:width-2]) + "…"
}

func (l *liveRenderer) paint(event Event) string {
	mark, color := "·", "8"
	switch event.State {
	case Done:
		mark, color = "✓", "2"
	case Skipped:
		mark, color = "–", "8"
	case Failed:
		mark, color = "✗", "1"
	case Note:
		mark, color = "•", "3"
	}
	if l.color {
		mark = lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Render(mark)
	}
	age := ""
	if event.Seconds > 0 {
		age = seconds(event.Seconds)
	}
	return fmt.Sprintf("%s  %-10s %6s  %s", mark, event.Step, age, event.Message)
}
