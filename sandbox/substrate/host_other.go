//go:build !linux

package substrate

import "errors"

func newHost() (Substrate, error) {
	return nil, errors.New("substrate \"host\" needs Linux; use --substrate container")
}
