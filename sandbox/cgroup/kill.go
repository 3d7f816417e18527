package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Kill ends every process in the group and below it with SIGKILL and waits until none is left. The calling process is
// spared. A missing group is fine.
func (h Hierarchies) Kill(ctx context.Context, group string) error {
	ticker := time.NewTicker(removePoll)
	defer ticker.Stop()
	for {
		pids := h.others(group)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("killing process %d of cgroup %q: %w", pid, group, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the processes %v of cgroup %q to end: %w", h.others(group), group, ctx.Err())
		case <-ticker.C:
		}
	}
}

func (h Hierarchies) others(group string) []int {
	var pids []int
	for _, pid := range h.Processes(group) {
		if pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
