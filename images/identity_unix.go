//go:build unix

package images

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity tells a file from one that took its name.
func identity(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
	}
	return ""
}
