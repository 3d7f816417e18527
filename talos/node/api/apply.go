package api

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// runtimeMode is what the machinery's validation must know of the platform: nothing is installed on a disk, and the kernel
// belongs to someone else.
type runtimeMode struct{}

// String implements validation.RuntimeMode.
func (runtimeMode) String() string { return "container" }

// RequiresInstall implements validation.RuntimeMode.
func (runtimeMode) RequiresInstall() bool { return false }

// InContainer implements validation.RuntimeMode.
func (runtimeMode) InContainer() bool { return true }

// ApplyConfiguration implements machine.MachineServiceServer.
func (s *service) ApplyConfiguration(ctx context.Context, request *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	mode, err := modeOf(request.GetMode())
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := loadConfig(request.GetData())
	if err != nil {
		return nil, err
	}
	wanted := application{cfg: cfg, mode: mode, timeout: tryTimeout(request), first: callerFrom(ctx).maintenance}
	var plan Plan
	if request.GetDryRun() {
		plan, err = s.dryRun(wanted)
	} else {
		plan, err = s.trials.apply(ctx, wanted)
	}
	if err != nil {
		return nil, err
	}
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{
		Warnings:    append(warnings, plan.Warnings...),
		Mode:        protoMode(plan.Mode),
		ModeDetails: plan.Details,
	}}}, nil
}

// loadConfig reads and validates a machine config; the warnings are those of the machinery.
func loadConfig(data []byte) (config.Provider, []string, error) {
	cfg, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the machine config: %w: %w", ErrInvalid, err)
	}
	if !configured(cfg) {
		return nil, nil, fmt.Errorf("reading the machine config: %w: it has no v1alpha1 document with machine and cluster", ErrInvalid)
	}
	warnings, err := cfg.Validate(runtimeMode{})
	if err != nil {
		return nil, nil, fmt.Errorf("validating the machine config: %w: %w", ErrInvalid, err)
	}
	return cfg, warnings, nil
}

// dryRun says what an application would do and how its config differs from the one in force.
func (s *service) dryRun(wanted application) (Plan, error) {
	current := s.machine.Config()
	if err := wanted.check(current); err != nil {
		return Plan{}, err
	}
	plan, err := s.machine.Plan(wanted.cfg, wanted.mode)
	if err != nil {
		return Plan{}, err
	}
	if current == nil {
		plan.Details = "Dry run summary:\n" + plan.Details + "\nThe node is in maintenance mode and does not have a config yet."
		return plan, nil
	}
	diff, err := diffConfigs(current, wanted.cfg)
	if err != nil {
		return Plan{}, err
	}
	plan.Details = "Dry run summary:\n" + plan.Details + "\nConfig diff:\n\n" + diff
	return plan, nil
}

// check refuses an application by anyone to a node that has a config, and the modes that need one while there is none.
func (a application) check(current config.Provider) error {
	if a.first && current != nil {
		return errConfigured
	}
	if current == nil && (a.mode == ApplyTry || a.mode == ApplyStaged) {
		return fmt.Errorf("applying a machine config with mode %q in maintenance mode: %w\nuse mode auto", a.mode, ErrUnsupported)
	}
	return nil
}

func tryTimeout(request *machine.ApplyConfigurationRequest) time.Duration {
	if timeout := request.GetTryModeTimeout().AsDuration(); timeout > 0 {
		return timeout
	}
	return constants.ConfigTryTimeout
}

func modeOf(mode machine.ApplyConfigurationRequest_Mode) (ApplyMode, error) {
	switch mode {
	case machine.ApplyConfigurationRequest_AUTO:
		return ApplyAuto, nil
	case machine.ApplyConfigurationRequest_NO_REBOOT:
		return ApplyNoReboot, nil
	case machine.ApplyConfigurationRequest_REBOOT:
		return ApplyReboot, nil
	case machine.ApplyConfigurationRequest_STAGED:
		return ApplyStaged, nil
	case machine.ApplyConfigurationRequest_TRY:
		return ApplyTry, nil
	}
	return "", fmt.Errorf("applying a machine config with mode %q: %w\nuse auto, no-reboot, reboot, staged or try", mode, ErrUnsupported)
}

func protoMode(mode ApplyMode) machine.ApplyConfigurationRequest_Mode {
	switch mode {
	case ApplyNoReboot:
		return machine.ApplyConfigurationRequest_NO_REBOOT
	case ApplyReboot:
		return machine.ApplyConfigurationRequest_REBOOT
	case ApplyStaged:
		return machine.ApplyConfigurationRequest_STAGED
	case ApplyTry:
		return machine.ApplyConfigurationRequest_TRY
	}
	return machine.ApplyConfigurationRequest_AUTO
}
