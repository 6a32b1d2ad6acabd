//go:build !guest

package guesttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestGuest runs this package's tests in a virtual machine, as subtests.
func TestGuest(t *testing.T) {
	c := vmtest.Config(t)
	c.NoLink = true
	c.Timeout = 9 * time.Minute // a minute where nothing else runs
	c.Add = append(c.Add, vm.Add{Host: iproute2(t), Guest: "/usr/bin/rdma"})
	vmtest.Tests(t, vm.TestConfig{Config: c, Packages: []string{"."}, Tags: "guest", Flags: []string{"-test.timeout=8m"}})
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
