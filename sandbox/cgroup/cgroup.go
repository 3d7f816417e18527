// Package cgroup makes, fills, measures and removes control groups on hosts with cgroup v1, v2 or both (hybrid).
// A group is named by one path, such as /cozydev/NAME/cp1, which stands for that directory under every hierarchy.
package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Root is the group that holds all sandboxes' groups.
const Root = "/cozydev"

// Sandbox returns the group of a sandbox.
func Sandbox(name string) string { return Root + "/" + name }

// Node returns the group of a node, which is also its kubelet's cgroupRoot.
func Node(sandbox, node string) string { return Sandbox(sandbox) + "/" + node }

// Supervisor returns the group of a sandbox's supervisor. No node can be called so: names of nodes are cpN or workerN.
func Supervisor(sandbox string) string { return Sandbox(sandbox) + "/supervisor" }

// Init returns the group inside a node's that its init is placed in: on v2 a group with children holds no processes.
func Init(group string) string { return group + "/init" }

// Hierarchies are the mounted cgroup trees that groups are made in.
type Hierarchies struct {
	v1 []hierarchy
	v2 string
}

type hierarchy struct {
	mount       string
	controllers []string
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// ErrNone is returned when no cgroup tree is mounted.
var ErrNone = errors.New("no cgroup tree is mounted; mount one: mount -t cgroup2 none /sys/fs/cgroup")

// Detect finds the mounted hierarchies.
func Detect() (Hierarchies, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Hierarchies{}, fmt.Errorf("finding the cgroup mounts: %w", err)
	}
	return parse(string(data))
}

// parse reads /proc/PID/mountinfo (proc(5)). On a hybrid host the v2 tree holds no controllers and is left out.
func parse(mountinfo string) (Hierarchies, error) {
	var found Hierarchies
	scanner := bufio.NewScanner(strings.NewReader(mountinfo))
	for scanner.Scan() {
		before, after, ok := strings.Cut(scanner.Text(), " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(tail) < 3 {
			continue
		}
		mount := fields[4]
		switch tail[0] {
		case "cgroup2":
			found.v2 = mount
		case "cgroup":
			found.v1 = append(found.v1, hierarchy{mount: mount, controllers: strings.Split(tail[2], ",")})
		}
	}
	if len(found.v1) > 0 {
		found.v2 = ""
	}
	if len(found.v1) == 0 && found.v2 == "" {
		return found, ErrNone
	}
	return found, nil
}

// Version is 1 or 2.
func (h Hierarchies) Version() int {
	if h.v2 != "" {
		return 2
	}
	return 1
}

// Controllers lists the controllers there are, sorted.
func (h Hierarchies) Controllers() []string {
	var names []string
	for _, tree := range h.v1 {
		for _, option := range tree.controllers {
			if isController(option) {
				names = append(names, option)
			}
		}
	}
	if h.v2 != "" {
		names = strings.Fields(read(filepath.Join(h.v2, "cgroup.controllers")))
	}
	slices.Sort(names)
	return names
}

// isController tells controllers from the other mount options of a v1 tree.
func isController(option string) bool {
	return option != "rw" && option != "ro" && option != "xattr" && option != "none" && !strings.Contains(option, "=")
}

// directories are the group's directories in every hierarchy.
func (h Hierarchies) directories(group string) []string {
	var dirs []string
	for _, tree := range h.v1 {
		dirs = append(dirs, filepath.Join(tree.mount, group))
	}
	if h.v2 != "" {
		dirs = append(dirs, filepath.Join(h.v2, group))
	}
	return dirs
}

// Make makes the group and those above it. An existing one is kept.
func (h Hierarchies) Make(group string) error {
	for _, tree := range h.v1 {
		if err := makeV1(tree, group); err != nil {
			return fmt.Errorf("making cgroup %q in %q: %w", group, tree.mount, err)
		}
	}
	if h.v2 != "" {
		if err := makeV2(h.v2, group); err != nil {
			return fmt.Errorf("making cgroup %q in %q: %w", group, h.v2, err)
		}
	}
	return nil
}

// makeV1 makes each level; in the cpuset tree a new level is unusable until it is told its processors and memory.
func makeV1(tree hierarchy, group string) error {
	for _, level := range levels(group) {
		dir := filepath.Join(tree.mount, level)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if !tree.has("cpuset") {
			continue
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if strings.TrimSpace(read(filepath.Join(dir, file))) != "" {
				continue
			}
			value := read(filepath.Join(filepath.Dir(dir), file))
			if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeV2 makes each level and hands it every controller of the level above.
func makeV2(mount, group string) error {
	for _, level := range levels(group) {
		dir := filepath.Join(mount, level)
		enable(filepath.Dir(dir))
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// enable turns on what can be turned on, one by one: a controller in use elsewhere must not keep back the others.
func enable(dir string) {
	for _, controller := range strings.Fields(read(filepath.Join(dir, "cgroup.controllers"))) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// levels returns the group and those above it, from the top: /a/b gives /a, /a/b.
func levels(group string) []string {
	var all []string
	for level := filepath.Clean(group); level != "/" && level != "."; level = filepath.Dir(level) {
		all = append(all, level)
	}
	slices.Reverse(all)
	return all
}

// Place moves a process into the group.
func (h Hierarchies) Place(group string, pid int) error {
	for _, dir := range h.directories(group) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("placing process %d in cgroup %q: %w", pid, dir, err)
		}
	}
	return nil
}

// PlaceThread moves the calling thread into the group on v1, where threads are placed one by one; the processes it
// starts begin there. The thread must be locked and thrown away. On v2 use Open with SysProcAttr.CgroupFD instead.
func (h Hierarchies) PlaceThread(group string) error {
	for _, tree := range h.v1 {
		path := filepath.Join(tree.mount, group, "tasks")
		if err := os.WriteFile(path, []byte("0"), 0o644); err != nil { // 0 is the writing thread
			return fmt.Errorf("entering cgroup %q: %w", path, err)
		}
	}
	return nil
}

// Open opens the group's v2 directory for SysProcAttr.CgroupFD; nil on v1.
func (h Hierarchies) Open(group string) (*os.File, error) {
	if h.v2 == "" {
		return nil, nil
	}
	file, err := os.Open(filepath.Join(h.v2, group))
	if err != nil {
		return nil, fmt.Errorf("opening cgroup %q: %w", group, err)
	}
	return file, nil
}

// Processes lists the processes in the group and below it, each once.
func (h Hierarchies) Processes(group string) []int {
	var pids []int
	for _, dir := range h.directories(group) {
		for _, sub := range tree(dir) {
			for _, field := range strings.Fields(read(filepath.Join(sub, "cgroup.procs"))) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Memory returns the resident bytes of the group and below it: anonymous memory plus mapped files, each page counted
// once, the page cache left out. It is 0 where the memory controller is missing.
func (h Hierarchies) Memory(group string) int64 {
	if h.v2 != "" {
		stat := read(filepath.Join(h.v2, group, "memory.stat"))
		return sumStat(stat, "anon", "file_mapped")
	}
	for _, tree := range h.v1 {
		if tree.has("memory") {
			stat := read(filepath.Join(tree.mount, group, "memory.stat"))
			return sumStat(stat, "total_rss", "total_mapped_file")
		}
	}
	return 0
}

func sumStat(stat string, keys ...string) int64 {
	var sum int64
	for line := range strings.Lines(stat) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains(keys, key) {
			sum += n
		}
	}
	return sum
}

const removePoll = 10 * time.Millisecond

// Remove removes the group and everything below it, waiting for the last processes to leave until the context ends.
// A missing group is fine.
func (h Hierarchies) Remove(ctx context.Context, group string) error {
	ticker := time.NewTicker(removePoll)
	defer ticker.Stop()
	for {
		err := h.removeOnce(group)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("removing cgroup %q: %w (processes in it: %v)", group, err, h.Processes(group))
		case <-ticker.C:
		}
	}
}

func (h Hierarchies) removeOnce(group string) error {
	var errs []error
	for _, dir := range h.directories(group) {
		for _, sub := range slices.Backward(tree(dir)) { // children first
			if err := os.Remove(sub); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// RemoveRootIfEmpty removes Root when no sandbox is left in it.
func (h Hierarchies) RemoveRootIfEmpty() {
	for _, dir := range h.directories(Root) {
		_ = os.Remove(dir) // refused while there are children, which is what is wanted
	}
}

// tree lists a directory and those below it, parents first; nothing when it is missing.
func tree(dir string) []string {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // groups come and go while we look
	})
	return dirs
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}
