//go:build !guest && linux

package top

import (
	"testing"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestInGuest runs the tests that need a kernel device.
func TestInGuest(t *testing.T) {
	c := vmtest.Config(t)
	vmtest.Tests(t, vm.TestConfig{Config: c, Packages: []string{"."}, Tags: "guest", Flags: []string{"-test.run=TestKernelDevice", "-test.timeout=2m"}})
}
