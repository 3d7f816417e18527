// Package images makes the images and artifacts of a sandbox and pushes them
// to its registry.
//
// A package tree says in files `<group>/<package>/images/<image>.yaml` which
// of its images are a single static binary ([Discover]). [Builder] turns such
// a definition and the binary into an image of one layer, reproducibly and
// without copying the binary; [PackTree] turns the tree itself into a Flux OCI
// artifact; [Publisher] pushes what the registry does not have yet.
package images
