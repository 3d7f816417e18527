package binary

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed pins.yaml
var pinFile []byte

// Use says what a binary is for, and so whether a source may lack it.
type Use string

// The uses of a binary.
const (
	// UseNode marks a binary that no node runs without.
	UseNode Use = "node"
	// UseTool marks a binary for people, taken along where the source has it.
	UseTool Use = "tool"
	// UseImage marks a binary that goes into an image of the package tree.
	UseImage Use = "image"
)

// Pins names every node binary, its version and where it comes from.
type Pins struct {
	Projects []Project `yaml:"projects"`
}

// Project is a set of binaries that share a version and a release.
type Project struct {
	// Name is what messages call it.
	Name string `yaml:"name"`
	// Version has its leading v.
	Version string `yaml:"version"`
	// Module is the Go module whose version must equal Version in hack/node.
	Module string `yaml:"module"`
	// Folder is where in hack/node that module's go.mod is; empty for
	// hack/node itself.
	Folder string `yaml:"folder"`
	// Release is nil where the project publishes no binaries.
	Release *Release `yaml:"release"`
	// LDFlags are linker flags for the gomod source, with placeholders.
	LDFlags  []string `yaml:"ldflags"`
	Binaries []Binary `yaml:"binaries"`
}

// Release says where a project publishes its binaries.
type Release struct {
	// URL is the address of a binary or of an archive, with placeholders.
	URL string `yaml:"url"`
	// Checksums is the address of the publisher's checksum file, used where
	// no figure is pinned.
	Checksums string `yaml:"checksums"`
	// SHA256 is the archive's checksum by architecture.
	SHA256 map[string]string `yaml:"sha256"`
}

// Binary is one file of a project.
type Binary struct {
	Name string `yaml:"name"`
	Use  Use    `yaml:"use"`
	// Package is the Go package of its main function.
	Package string `yaml:"package"`
	// Member is its path in the archive; empty where URL yields the binary.
	Member string `yaml:"member"`
	// SHA256 is the bare binary's checksum by architecture.
	SHA256 map[string]string `yaml:"sha256"`
}

// Pinned returns the pins that are embedded into the program.
func Pinned() (*Pins, error) { return ParsePins(pinFile) }

// ParsePins reads and validates a pin file. Unknown fields are errors.
func ParsePins(data []byte) (*Pins, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var pins Pins
	if err := decoder.Decode(&pins); err != nil {
		return nil, fmt.Errorf("reading the pin file: %w", err)
	}
	if err := pins.validate(); err != nil {
		return nil, fmt.Errorf("reading the pin file: %w", err)
	}
	return &pins, nil
}

// names lists the binaries for which keep is true, in the pin file's order.
func (p *Pins) names(keep func(Project, Binary) bool) []string {
	var names []string
	for _, project := range p.Projects {
		for _, b := range project.Binaries {
			if keep(project, b) {
				names = append(names, b.Name)
			}
		}
	}
	return names
}

func everyBinary(Project, Binary) bool        { return true }
func nodeBinary(_ Project, b Binary) bool     { return b.Use == UseNode }
func releasedBinary(p Project, _ Binary) bool { return p.Release != nil }

// expand replaces the placeholders of the pin file in s.
func (p Project) expand(s, name, arch string) string {
	number := strings.TrimPrefix(p.Version, "v")
	parts := append(strings.SplitN(number, ".", 3), "", "")
	return strings.NewReplacer(
		"{version}", p.Version, "{number}", number, "{arch}", arch, "{name}", name,
		"{major}", parts[0], "{minor}", parts[1],
	).Replace(s)
}

// asset is one file to download.
type asset struct {
	// Name is the last element of its URL.
	Name string
	URL  string
	// Checksums is the publisher's checksum file.
	Checksums string
	// SHA256 is the pinned checksum, or empty.
	SHA256 string
	// Binary is the file it becomes, or empty where it is an archive.
	Binary string
	// Members maps paths in the archive to binaries.
	Members map[string]string
}

// assets lists what the release source downloads for arch.
func (p *Pins) assets(arch string) []asset {
	var assets []asset
	for _, project := range p.Projects {
		if project.Release != nil {
			assets = append(assets, project.assets(arch)...)
		}
	}
	return assets
}

func (p Project) assets(arch string) []asset {
	members := map[string]string{}
	var assets []asset
	for _, b := range p.Binaries {
		if b.Member != "" {
			members[p.expand(b.Member, b.Name, arch)] = b.Name
			continue
		}
		a := p.asset(b.Name, arch)
		a.Binary, a.SHA256 = b.Name, b.SHA256[arch]
		assets = append(assets, a)
	}
	if len(members) > 0 {
		a := p.asset(p.Name, arch)
		a.Members, a.SHA256 = members, p.Release.SHA256[arch]
		assets = append(assets, a)
	}
	return assets
}

func (p Project) asset(name, arch string) asset {
	address := p.expand(p.Release.URL, name, arch)
	return asset{
		Name:      path.Base(address),
		URL:       address,
		Checksums: p.expand(p.Release.Checksums, name, arch),
	}
}

// target is one package to build.
type target struct {
	Binary  string
	Package string
	LDFlags string
	// Folder is the Go module's place below the module directory.
	Folder string
}

// targets lists what the gomod source builds. The symbol table is left out, as
// the projects' own release builds do.
func (p *Pins) targets(arch string) []target {
	var targets []target
	for _, project := range p.Projects {
		for _, b := range project.Binaries {
			flags := []string{"-s", "-w"}
			for _, f := range project.LDFlags {
				flags = append(flags, project.expand(f, b.Name, arch))
			}
			targets = append(targets, target{
				Binary: b.Name, Package: b.Package, LDFlags: strings.Join(flags, " "), Folder: project.Folder,
			})
		}
	}
	return targets
}
