package api

import (
	"fmt"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
)

// diffConfigs returns a unified diff of two machine configs, without their comments.
func diffConfigs(before, after config.Provider) (string, error) {
	var texts [2]string
	for i, cfg := range []config.Provider{before, after} {
		text, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
		if err != nil {
			return "", fmt.Errorf("encoding a machine config to compare it: %w", err)
		}
		texts[i] = string(text)
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(texts[0]), FromFile: "in force",
		B: difflib.SplitLines(texts[1]), ToFile: "applied",
		Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("comparing the machine configs: %w", err)
	}
	if diff == "" {
		return "No changes.", nil
	}
	return diff, nil
}
