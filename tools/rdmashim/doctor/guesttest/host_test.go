//go:build !guest

package guesttest

import (
	"testing"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestGuest runs this package's tests in a virtual machine, as subtests.
func TestGuest(t *testing.T) {
	vmtest.Tests(t, vm.TestConfig{Config: vmtest.Config(t), Packages: []string{"."}, Tags: "guest", Flags: []string{"-test.timeout=4m"}})
}
