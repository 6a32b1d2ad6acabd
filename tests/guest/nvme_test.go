package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/cprograms"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestNVMe runs the kernel's NVMe over RDMA against the sample's, in a guest
// that has its modules and ext4.
func TestNVMe(t *testing.T) {
	t.Parallel()
	if amount.Race {
		t.Skip("the sample's own tests have the race detector; run this without -race")
	}
	c := vmtest.Config(t)
	c.Image, c.Memory = "", 1024 // an image of its own, for the modules
	c.Load = []string{"nvme_rdma", "nvmet_rdma", "brd", "ext4", "sch_netem"}
	programs, skip := []string{"/usr/sbin/mkfs.ext4", "/usr/sbin/e2fsck"}, "^TestFio$"
	if amount.All() { // fio takes minutes, and its disk memory
		programs, skip = append(programs, "/usr/bin/fio"), ""
		c.Memory, c.Timeout = 1536, 4*c.Timeout
	}
	for _, path := range programs {
		if exists(path) {
			c.Add = append(c.Add, vm.Add{Host: path, Guest: "/bin/" + filepath.Base(path)})
		} else { // its tests are skipped in the guest, where nobody counts
			require.NotEqual(t, "true", os.Getenv("CI"), "no %s: apt-get install e2fsprogs fio", path)
		}
	}
	cli, err := nvmeCLI(t.Context(), t.TempDir())
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "nvme-cli: %v", err)
		t.Log("without nvme-cli: ", err)
	}
	c.Add = append(c.Add, cli...)
	g := vmtest.Start(t, c)
	output := g.GoTest(t, "-run="+os.Getenv("NVME_RUN"), "-skip="+skip, module+"tests/nvme")
	if testing.Verbose() {
		t.Logf("output in the guest:\n%s", output)
	}
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// nvmeCLI says what the guest gets of the distribution's nvme-cli, which is
// fetched and not installed.
func nvmeCLI(ctx context.Context, dir string) ([]vm.Add, error) {
	if err := vm.UnpackPackages(ctx, dir, "nvme-cli", "libnvme1"); err != nil {
		return nil, err
	}
	bin := filepath.Join(dir, "usr/bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.Rename(filepath.Join(dir, "usr/sbin/nvme"), filepath.Join(bin, "nvme"))); err != nil {
		return nil, err
	}
	return cprograms.ProgramAdds(dir, "nvme")
}
