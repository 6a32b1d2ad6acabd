package guest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

const module = "github.com/rdmashim/rdmashim/"

// TestClients runs the suites of the kernel's clients. The link manager's is
// the last: it deletes rxe0 and unloads the modules.
func TestClients(t *testing.T) {
	t.Parallel()
	if amount.Race {
		t.Skip("TestInterop has the race detector; run this without -race")
	}
	c := vmtest.Config(t)
	c.Memory, c.Timeout = 640, 15*time.Minute // of the guest's time; it takes five
	c.Add = append(c.Add, vm.Add{Host: iproute2(t), Guest: "/usr/bin/rdma"})
	g := vmtest.Start(t, c)
	g.GoTest(t, "-p=1", module+"kshim/host/guesttest", module+"kshim/rdmacm/guesttest", module+"tools/rdmashim/doctor/guesttest")
	g.GoTest(t, "-run=TestKernelDevice", module+"tools/rdmashim/top")
	g.GoTest(t, module+"netlinkmgr/guesttest")
}

// iproute2 finds the distribution's rdma, which the guest's tests compare with.
func iproute2(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"rdma", "/usr/bin/rdma", "/usr/sbin/rdma", "/sbin/rdma"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if out, err := exec.Command(path, "-V").Output(); err == nil && strings.Contains(string(out), "iproute2") {
			return path
		}
	}
	const missing = "iproute2's rdma is not installed: apt-get install iproute2 (dnf install iproute)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
