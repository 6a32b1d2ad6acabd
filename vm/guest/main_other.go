//go:build !linux

package guest

import (
	"context"
	"errors"
)

// Main is the helper that runs in a guest; guests are Linux.
func Main(context.Context) error {
	return errors.New("the guest helper runs on Linux only: " + errors.ErrUnsupported.Error())
}
