package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestGuest runs Linux's NFS client in a guest that has its modules.
func TestGuest(t *testing.T) {
	if amount.Race {
		t.Skip("the transport's own tests have the race detector; run this without -race")
	}
	c := vmtest.Config(t)
	c.Image, c.Memory = "", 1024 // an image of its own, for the modules
	c.Load = []string{"rpcrdma", "nfsv3"}
	program := filepath.Join(t.TempDir(), "nfs")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	c.Add = append(c.Add, vm.Add{Host: program, Guest: "/bin/nfs"})
	output := vmtest.Start(t, c).GoTest(t, "-run="+os.Getenv("NFS_RUN"), "./guesttest")
	if testing.Verbose() {
		t.Logf("output in the guest:\n%s", output)
	}
}
