package binary

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// errChecksum marks a download that is not what was pinned or published.
var errChecksum = errors.New("checksum mismatch")

// findSum looks up a file in a publisher's checksum file: a bare sum, or lines
// of a sum and a file name as sha256sum writes them.
func findSum(text, name string) (string, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) == 0 || !sumPattern.MatchString(strings.ToLower(fields[0])) {
			continue
		}
		bare := len(fields) == 1 && len(lines) == 1
		named := len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) == name
		if bare || named {
			return strings.ToLower(fields[0]), nil
		}
	}
	return "", fmt.Errorf("it has no sha256 of %q", name)
}

// verifyFile compares a file with its checksum.
func verifyFile(file, want string) error {
	got, err := sumFile(file)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: sha256 is %s, expected %s", errChecksum, got, want)
	}
	return nil
}

func sumFile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
