// Package packages is the package tree of this project: see README.md for its
// layout.
package packages

import (
	"embed"
	"io/fs"
)

//go:embed all:core all:system all:apps all:library
var files embed.FS

// Tree returns the tree as it was when the program was built.
func Tree() fs.FS { return files }
