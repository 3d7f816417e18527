package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

// Mode is a set of validation rules of Talos.
type Mode string

const (
	// Metal is the default: the rules of a machine that installs itself to a disk. A config that satisfies them boots on
	// every substrate, and what the generator makes always does, so a sandbox can change its substrate.
	Metal Mode = "metal"
	// Container adds what Talos asks of a machine that is a container (host DNS), and drops the install section.
	Container Mode = "container"
)

// String implements validation.RuntimeMode.
func (m Mode) String() string { return string(m) }

// RequiresInstall implements validation.RuntimeMode.
func (m Mode) RequiresInstall() bool { return m == Metal }

// InContainer implements validation.RuntimeMode.
func (m Mode) InContainer() bool { return m == Container }

var _ validation.RuntimeMode = Metal

// validate runs Talos' own validator and returns its warnings.
func validate(cfg machinery.Provider, mode Mode) ([]string, error) {
	warnings, err := cfg.Validate(mode, validation.WithLocal())

	return warnings, oneLine(err)
}

// errorCount is the heading that hashicorp/go-multierror puts over a list.
var errorCount = regexp.MustCompile(`\d+ errors? occurred:`)

// oneLine gives err the text of one line: the machinery reports lists and YAML fragments over many.
func oneLine(err error) error {
	if err == nil {
		return nil
	}

	var b strings.Builder

	for line := range strings.Lines(errorCount.ReplaceAllString(err.Error(), "")) {
		item, isItem := strings.CutPrefix(strings.TrimSpace(line), "* ")

		switch {
		case item == "":
			continue
		case isItem && b.Len() > 0 && !strings.HasSuffix(b.String(), ":"):
			b.WriteString("; ")
		case b.Len() > 0:
			b.WriteString(" ")
		}

		b.WriteString(item)
	}

	text := b.String()
	if text == err.Error() {
		return err
	}

	return flattened{text: text, err: err}
}

// flattened is an error with a text of its own.
type flattened struct {
	text string
	err  error
}

func (f flattened) Error() string { return f.text }

func (f flattened) Unwrap() error { return f.err }

// checkName makes sure that no patch has renamed a node: everything else in the sandbox knows it by its name.
func checkName(cfg machinery.Provider, node Node) error {
	hostname := cfg.NetworkHostnameConfig()
	if hostname == nil || hostname.Hostname() != node.Name {
		return errors.New("the hostname was changed; a node's name is fixed, remove the hostname from the patch")
	}

	if kind := cfg.Machine().Type().String(); kind != string(node.Role) {
		return fmt.Errorf("the machine type was changed to %q; a node's role is fixed, remove the type from the patch", kind)
	}

	return nil
}
