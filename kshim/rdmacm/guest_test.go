package rdmacm_test

import (
	"testing"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestOnLinux runs the tests that need a kernel with rdma_cm, in a guest.
func TestOnLinux(t *testing.T) {
	vmtest.Tests(t, vm.TestConfig{
		Config:   vmtest.Config(t),
		Packages: []string{"github.com/rdmashim/rdmashim/kshim/rdmacm/guesttest"},
		Tags:     "guest",
	})
}
