package supervisor

import (
	"time"

	"github.com/cozystack/cozydev/sandbox/substrate"
)

// decision is what happens to a machine that has ended.
type decision struct {
	// restart tells to start it again, after the pause.
	restart bool
	pause   time.Duration
	// crash tells that nobody asked for the end.
	crash bool
}

const (
	firstPause = 250 * time.Millisecond
	longPause  = 10 * time.Second
	// steadyAfter is how long a machine must have run for its earlier crashes to be forgotten.
	steadyAfter = time.Minute
)

// decide applies the exit code contract of cozynode: a shutdown stays down, a reboot or reset restarts at once, and
// all else is a crash, restarted with a pause that doubles with each crash in a row. crashes counts those before this
// one; ran is how long the machine ran.
func decide(exit substrate.Exit, ran time.Duration, crashes int) decision {
	if exit.Signal == "" && !exit.Unknown {
		switch exit.Code {
		case substrate.CodeShutdown:
			return decision{}
		case substrate.CodeReboot, substrate.CodeReset:
			return decision{restart: true}
		}
	}
	if ran >= steadyAfter {
		crashes = 0
	}
	pause := firstPause
	for range crashes {
		pause = min(pause*2, longPause)
	}
	return decision{restart: true, crash: true, pause: pause}
}
