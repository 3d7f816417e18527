package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Process names a process without doubt: a pid can be reused, a pid with its start time cannot.
type Process struct {
	PID int `json:"pid,omitempty"`
	// StartTime is field 22 of /proc/PID/stat: clock ticks since boot.
	StartTime uint64 `json:"startTime,omitempty"`
}

// FindProcess names the process that has the pid now. The zero Process and an error mean that there is none.
func FindProcess(pid int) (Process, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	_, start, err := parseStat(data)
	if err != nil {
		return Process{}, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return Process{PID: pid, StartTime: start}, nil
}

// Alive tells whether this very process still runs. A zombie does not.
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	state, start, err := parseStat(data)
	return err == nil && start == p.StartTime && state != 'Z' && state != 'X'
}

// parseStat reads state and start time from the content of /proc/PID/stat (proc(5)). The second field is the command
// in parentheses and may itself hold spaces and parentheses, so counting starts behind the last one.
func parseStat(data []byte) (state byte, start uint64, err error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("no command in stat %q", data)
	}
	fields := bytes.Fields(data[end+1:])
	const stateField, startField = 0, 19 // fields 3 and 22, counted from the third
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("%d fields in stat %q", len(fields), data)
	}
	start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	return fields[stateField][0], start, err
}
