// Package hack tests the scripts of this folder.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDebian runs the script on a machine made of stubs.
func TestDebian(t *testing.T) {
	const old, good = "echo go1.25.9", "echo go1.26.0"
	tests := map[string]struct {
		absent  string
		uid     string
		goSays  string
		aptFail bool
		want    string
		apt     string
	}{
		"all there":     {uid: "0", goSays: good},
		"all, not root": {uid: "1000", goSays: good},
		"one missing":   {absent: "runc", uid: "0", goSays: good, want: "installing Debian packages: runc", apt: "install -y -q --no-install-recommends runc\n"},
		"two missing": {absent: "runc nft", uid: "0", goSays: good, want: "packages: runc nftables",
			apt: "install -y -q --no-install-recommends runc nftables\n"},
		"stale lists": {absent: "runc", uid: "0", goSays: good, aptFail: true, want: "error: installing runc",
			apt: "install -y -q --no-install-recommends runc\nupdate -q\ninstall -y -q --no-install-recommends runc\n"},
		"not root":  {absent: "runc", uid: "1000", goSays: good, want: "sudo apt-get install --no-install-recommends runc"},
		"no apt":    {absent: "runc apt-get", uid: "0", goSays: good, want: "has no apt-get"},
		"no Go":     {absent: "go", uid: "0", want: "Go is missing"},
		"old Go":    {uid: "0", goSays: old, want: "go1.25.9 is too old"},
		"future Go": {uid: "0", goSays: "echo go2.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "apt.log")
			apt := "echo \"$*\" >>" + log
			if test.aptFail {
				apt += "\n[ $1 = update ]"
			}
			stubs := map[string]string{"id": "echo " + test.uid, "go": test.goSays, "apt-get": apt}
			for _, command := range []string{"runc", "nft", "iptables", "mount", "git", "make"} {
				stubs[command] = ":"
			}
			for _, command := range strings.Fields(test.absent) {
				delete(stubs, command)
			}
			for command, body := range stubs {
				if err := os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("/bin/sh", "debian.sh")
			cmd.Env = []string{"PATH=" + dir, "SBIN=" + dir, "CERTIFICATES=" + filepath.Join(dir, "id")}
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), test.want) || (test.want == "" && len(out) > 0) {
				t.Errorf("it said %q, want %q", out, test.want)
			}
			if failed := strings.Contains(string(out), "error:"); failed != (err != nil) {
				t.Errorf("it said %q and ended with %v", out, err)
			}
			called, _ := os.ReadFile(log)
			if string(called) != test.apt {
				t.Errorf("apt-get was called with %q, want %q", called, test.apt)
			}
		})
	}
}
