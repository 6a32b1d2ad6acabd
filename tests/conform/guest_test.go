//go:build !guest

package conform

import (
	"testing"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestOnLinux runs the suite on rxe, in a guest.
func TestOnLinux(t *testing.T) {
	vmtest.Tests(t, vm.TestConfig{
		Config:   vmtest.Config(t),
		Packages: []string{"github.com/rdmashim/rdmashim/tests/conform"},
		Flags:    []string{"-test.run=^TestRXE$"},
		Tags:     "guest",
	})
}
