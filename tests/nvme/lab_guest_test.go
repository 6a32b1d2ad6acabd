//go:build guest && linux

package nvme

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/lab/netpath"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
)

// patience bounds every wait: an emulated processor on a busy machine is slow.
const patience = 2 * time.Minute

// The two ends of the veth pair.
const (
	rxeAddr  = "10.77.0.1"
	softAddr = "10.77.0.2"
)

// space is the network namespace of the soft RNIC.
var space *netpath.Namespace

func TestMain(m *testing.M) {
	var err error
	if space, err = setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: set up the network:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// setUp makes the namespace of the soft RNIC and moves eth1 there.
func setUp() (*netpath.Namespace, error) {
	if err := os.Chmod(os.TempDir(), 0o1777); err != nil { // nobody's disks lie there
		return nil, err
	}
	s, err := netpath.NewNamespace()
	if err != nil {
		return nil, err
	}
	return s, s.Take("eth1", softAddr+"/24")
}

// longFrames has both ends of the veth pair take packets of 4 KiB, until the
// test's end.
func longFrames(t *testing.T) {
	t.Helper()
	set := func(name string, mtu int) error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(l, mtu)
	}
	both := func(mtu int) error {
		return errors.Join(set("eth0", mtu), space.Do(func() error { return set("eth1", mtu) }))
	}
	require.NoError(t, both(4500))
	t.Cleanup(func() { require.NoError(t, both(1500)) })
}

// newDisk makes a file that nobody may write.
func newDisk(t *testing.T, name string, size int64) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, size))
	require.NoError(t, os.Chown(file, 65534, 65534))
	return file
}

// target serves disks on the soft device, by the tool, as nobody.
func target(t *testing.T, options string, disks ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("rdmashim", append([]string{"sample", "nvme", "serve", "--device", "soft:" + softAddr + options}, disks...)...)
	cmd.Env = append(os.Environ(), "HOME=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, space.Do(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	require.Contains(t, line, "listening")
	return cmd
}

// connect has the kernel connect to the target, and returns the block device of
// each namespace, in their order. The test's end disconnects.
func connect(t *testing.T, namespaces int, options string) (controller string, devices []string) {
	t.Helper()
	controller, err := fabrics("transport=rdma,traddr=" + softAddr + ",trsvcid=4420,nqn=" + nvme.DefaultSubsystem + options)
	require.NoError(t, err)
	t.Cleanup(func() { disconnect(t, controller) })
	require.Eventually(t, func() bool {
		devices = nil
		for n := 1; n <= namespaces; n++ {
			found, _ := filepath.Glob(filepath.Join("/sys/class/nvme", controller, fmt.Sprintf("nvme*n%d", n)))
			for _, f := range found {
				if d := "/dev/" + filepath.Base(f); opens(d) {
					devices = append(devices, d)
				}
			}
		}
		return len(devices) == namespaces
	}, patience, 20*time.Millisecond, "block devices of %s", controller)
	return controller, devices
}

// opens reports whether a device can be opened: Linux shows one before it can
// (device_add_disk in block/genhd.c), and answers ENXIO until then.
func opens(device string) bool {
	f, err := os.Open(device)
	if err == nil {
		f.Close()
	}
	return err == nil
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// fabrics asks the kernel for a connection and returns the controller's name.
func fabrics(options string) (string, error) {
	f, err := os.OpenFile("/dev/nvme-fabrics", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.WriteString(options); err != nil {
		return "", err
	}
	b := make([]byte, 256)
	n, err := f.Read(b)
	instance, _, _ := strings.Cut(strings.TrimPrefix(string(b[:n]), "instance="), ",")
	return "nvme" + instance, err
}

// disconnect has the kernel give a controller up, if it is still there.
func disconnect(t *testing.T, controller string) {
	t.Helper()
	err := os.WriteFile(filepath.Join("/sys/class/nvme", controller, "delete_controller"), []byte("1"), 0)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
}
