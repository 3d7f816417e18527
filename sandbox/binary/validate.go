package binary

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// validate names everything that is wrong with the pins.
func (p *Pins) validate() error {
	var problems []error
	var seen []string
	for _, project := range p.Projects {
		if err := project.validate(); err != nil {
			problems = append(problems, fmt.Errorf("project %q: %w", project.Name, err))
		}
		for _, b := range project.Binaries {
			if slices.Contains(seen, b.Name) {
				problems = append(problems, fmt.Errorf("binary %q is named twice", b.Name))
			}
			seen = append(seen, b.Name)
		}
	}
	if len(seen) == 0 {
		problems = append(problems, errors.New("it names no binary"))
	}
	return errors.Join(problems...)
}

func (p Project) validate() error {
	var problems []error
	if !versionPattern.MatchString(p.Version) {
		problems = append(problems, fmt.Errorf("version %q is not of the form v1.2.3", p.Version))
	}
	for _, b := range p.Binaries {
		if err := b.validate(); err != nil {
			problems = append(problems, fmt.Errorf("binary %q: %w", b.Name, err))
		}
	}
	if p.Release != nil {
		problems = append(problems, p.Release.validate())
	}
	if p.Folder != "" && !filepath.IsLocal(p.Folder) {
		problems = append(problems, fmt.Errorf("folder %q is not below the module", p.Folder))
	}
	return errors.Join(problems...)
}

func (b Binary) validate() error {
	var problems []error
	if !namePattern.MatchString(b.Name) {
		problems = append(problems, errors.New("its name is not a plain file name"))
	}
	if !slices.Contains([]Use{UseNode, UseTool, UseImage}, b.Use) {
		problems = append(problems, fmt.Errorf("use %q is none of node, tool, image", b.Use))
	}
	if b.Package == "" {
		problems = append(problems, errors.New("its package is missing"))
	}
	return errors.Join(append(problems, validateSums(b.SHA256))...)
}

func (r *Release) validate() error {
	return errors.Join(validateURL(r.URL), validateURL(r.Checksums), validateSums(r.SHA256))
}

var (
	namePattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)
	versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+(\.[0-9]+)?([-+].*)?$`)
	sumPattern     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func validateSums(sums map[string]string) error {
	for arch, sum := range sums {
		if !slices.Contains(architectures(), arch) || !sumPattern.MatchString(sum) {
			return fmt.Errorf("sha256 %s: %q is not 64 hex digits for one of %s",
				arch, sum, strings.Join(architectures(), ", "))
		}
	}
	return nil
}

// validateURL demands https, since the publisher's checksum file is only as
// good as the connection it came over. Loopback may be plain.
func validateURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return err
	}
	if host, err := netip.ParseAddr(u.Hostname()); err == nil && host.IsLoopback() {
		return nil
	}
	if u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("address %q is not an https URL", s)
	}
	return nil
}

// architectures lists the supported ones, as Go calls them.
func architectures() []string { return []string{"amd64", "arm64"} }
