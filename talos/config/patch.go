package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	jsonpatch "github.com/evanphx/json-patch"
	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// Patch is a user's change of machine configs: a strategic merge patch (a piece of a machine config, one or more
// documents) or a JSON patch (RFC 6902, in JSON or YAML), which addresses the main document.
type Patch struct {
	// Source is the patch as the user gave it: "@file", or the beginning of an inline patch.
	Source string

	patch configpatcher.Patch
}

// Patches are the changes by the nodes they are for. Those for all nodes come first.
type Patches struct {
	All, ControlPlane, Worker []Patch
}

func (p Patches) of(role Role) []Patch {
	own := p.ControlPlane
	if role == Worker {
		own = p.Worker
	}

	return append(append([]Patch(nil), p.All...), own...)
}

// LoadPatches reads patches as the flag --config-patch takes them: "@file" names a file, all else is the patch itself.
// The error is one line that names the patch and the reason.
func LoadPatches(args []string) ([]Patch, error) {
	patches := make([]Patch, 0, len(args))

	for _, arg := range args {
		patch, err := loadPatch(arg)
		if err != nil {
			return nil, fmt.Errorf("loading config patch %q: %w", sourceOf(arg), oneLine(err))
		}

		patches = append(patches, Patch{Source: sourceOf(arg), patch: patch})
	}

	return patches, nil
}

func loadPatch(arg string) (configpatcher.Patch, error) {
	contents := []byte(arg)

	file, isFile := strings.CutPrefix(arg, "@")
	if isFile {
		var err error
		if contents, err = os.ReadFile(file); err != nil {
			// The caller names the file already.
			if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
				err = pathErr.Err
			}

			return nil, err
		}
	}

	patch, err := configpatcher.LoadPatch(contents)
	if err != nil && !isFile && !strings.ContainsAny(arg, "\n:{[") {
		return nil, fmt.Errorf("neither a machine config nor a JSON patch; to read it from a file, write %q", "@"+arg)
	}

	if err != nil {
		return nil, err
	}

	if list, isJSON := patch.(jsonpatch.Patch); isJSON && len(list) == 0 {
		return nil, errors.New("it is empty")
	}

	return patch, nil
}

// sourceOf shortens an inline patch so that it can stand in a message.
func sourceOf(arg string) string {
	const most = 60

	if strings.HasPrefix(arg, "@") {
		return arg
	}

	arg = strings.Join(strings.Fields(arg), " ")
	if runes := []rune(arg); len(runes) > most {
		return string(runes[:most]) + "…"
	}

	return arg
}

// apply makes one change.
func (p Patch) apply(cfg machinery.Provider) (machinery.Provider, error) {
	if operations, isJSON := p.patch.(jsonpatch.Patch); isJSON {
		return applyJSON(cfg, operations)
	}

	out, err := configpatcher.Apply(configpatcher.WithConfig(cfg), []configpatcher.Patch{p.patch})
	if err != nil {
		return nil, err
	}

	return out.Config()
}

// applyJSON changes the main document and leaves the others alone. The machinery refuses JSON patches of a config of
// several documents, and since Talos 1.12 every generated config is one: paths in such a patch have always meant the
// main document, so that is what they mean here.
func applyJSON(cfg machinery.Provider, operations jsonpatch.Patch) (machinery.Provider, error) {
	var main, others []config.Document

	for _, doc := range cfg.Documents() {
		if _, isMain := doc.(*v1alpha1.Config); isMain {
			main = append(main, doc)
		} else {
			others = append(others, doc)
		}
	}

	single, err := container.New(main...)
	if err != nil {
		return nil, err
	}

	data, err := encode(single)
	if err != nil {
		return nil, err
	}

	if data, err = configpatcher.JSON6902(data, operations); err != nil {
		return nil, err
	}

	patched, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, err
	}

	return container.New(append(patched.Documents(), others...)...)
}
