//go:build !linux

package supervisor

import "context"

// removeTraces has nothing to remove where no sandbox can run.
func removeTraces(context.Context, string) error { return nil }
