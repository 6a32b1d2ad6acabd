//go:build newer

package guest

import (
	"testing"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// newer is a release of Linux that many users have, beside the distribution's.
const newer = "6.12"

// TestInteropNewer is TestInterop on a newer kernel, where the cache has one.
// CI depends on the distribution's alone: tools/test gives the tag elsewhere.
func TestInteropNewer(t *testing.T) {
	amount.Rest(t)
	t.Parallel()
	c := vmtest.Config(t)
	k := vm.CachedKernel(newer)
	if k == nil {
		t.Skipf("this machine has no Linux %s in its cache; 'rdmashim vm run --release %[1]s -- true' brings it", newer)
	}
	c.Image, c.Kernel, c.Modules = "", k.Image, k.Modules
	interop(t, c)
}
