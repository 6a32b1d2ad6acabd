//go:build !guest && linux

package doctor

import (
	"testing"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestInGuest breaks a real kernel's device, in a guest.
func TestInGuest(t *testing.T) {
	c := vmtest.Config(t)
	vmtest.Tests(t, vm.TestConfig{Config: c, Packages: []string{"."}, Tags: "guest", Flags: []string{"-test.run=^TestRealKernel$", "-test.timeout=4m"}})
}
