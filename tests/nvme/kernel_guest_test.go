//go:build guest && linux

package nvme

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
)

const mib = 1 << 20

// TestConnect: the kernel has both namespaces with their sizes, and what it
// writes to either is there. A target of another name is refused.
func TestConnect(t *testing.T) {
	disk := newDisk(t, "disk", 8*mib)
	target(t, "", disk, "4M")
	_, devices := connect(t, 2, "")
	for i, want := range []int64{8 * mib, 4 * mib} {
		text := must.Get(os.ReadFile(filepath.Join("/sys/block", filepath.Base(devices[i]), "size")))(t)
		require.Equal(t, strconv.FormatInt(want/512, 10), strings.TrimSpace(string(text)))
		l := newLoad(t, devices[i], 2*mib, uint64(i))
		require.NoError(t, l.write(t))
		l.verify(t)
	}
	_, err := fabrics("transport=rdma,traddr=" + softAddr + ",trsvcid=4420,nqn=nqn.2026-11.rdmashim:other")
	require.Error(t, err)
	info := must.Get(os.Stat(disk))(t)
	require.EqualValues(t, 8*mib, info.Size())
}

// TestLoss: with packets lost, reordered and doubled on the way to the kernel
// all bytes are right.
func TestLoss(t *testing.T) {
	target(t, "?loss=1%&reorder=2%&dup=0.5%&seed=7", newDisk(t, "disk", 8*mib))
	_, devices := connect(t, 1, ",keep_alive_tmo=5,reconnect_delay=1")
	before := gaps(t)
	l := newLoad(t, devices[0], 2*mib, 1)
	require.NoError(t, l.write(t))
	l.verify(t)
	require.Greater(t, gaps(t), before, "rxe has seen no gap")
}

// gaps is how many packets rxe has received behind a gap.
func gaps(t *testing.T) int {
	t.Helper()
	text := must.Get(os.ReadFile("/sys/class/infiniband/rxe0/ports/1/hw_counters/out_of_seq_request"))(t)
	return must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
}

// TestExt4: a file system on the disk has its files after it was mounted anew,
// and is clean.
func TestExt4(t *testing.T) {
	target(t, "", newDisk(t, "disk", 48*mib))
	_, devices := connect(t, 1, "")
	run(t, "mkfs.ext4", "-F", "-q", devices[0])
	mnt := t.TempDir()
	mount := func() { require.NoError(t, unix.Mount(devices[0], mnt, "ext4", 0, "")) }
	unmount := func() { require.NoError(t, unix.Unmount(mnt, 0)) }
	mount()
	sums := map[string][sha256.Size]byte{}
	for i := range 30 {
		name := filepath.Join(mnt, fmt.Sprint("d", i%5), fmt.Sprint("f", i))
		b := make([]byte, 1000+i*7919%100000)
		for at := range b {
			b[at] = byte(at*7 + i)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, b, 0o644))
		sums[name] = sha256.Sum256(b)
	}
	unmount()
	require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
	mount()
	for name, want := range sums {
		require.Equal(t, want, sha256.Sum256(must.Get(os.ReadFile(name))(t)), name)
	}
	unmount()
	run(t, "e2fsck", "-fn", devices[0])
}

// run runs a program of the host's that the guest was given, or skips.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skipf("the host has no %s, which the guest would get: install its package (e2fsprogs, nvme-cli, fio)", name)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// TestFio: fio writes pieces of all sizes at places of the disk that it draws,
// and reads back what it wrote, in packets of 4 KiB, which cost a guest least.
// It runs with tools/test --all (tests/guest).
func TestFio(t *testing.T) {
	longFrames(t)
	target(t, "", newDisk(t, "disk", 256*mib))
	// A request that was reset five times fails, and a busy host is late.
	_, devices := connect(t, 1, ",keep_alive_tmo=600")
	t.Log(run(t, "fio", "--name=verify", "--filename="+devices[0], "--rw=randwrite", "--bsrange=4k-256k", "--size=256m",
		"--direct=1", "--ioengine=libaio", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--thread"))
}

// TestKill: a target that is killed under writes and started again on the same
// file loses nothing, and the writes go on.
func TestKill(t *testing.T) {
	disk := newDisk(t, "disk", 8*mib)
	first := target(t, "", disk)
	controller, devices := connect(t, 1, ",keep_alive_tmo=5,reconnect_delay=1,ctrl_loss_tmo=120")
	l := newLoad(t, devices[0], 3*mib, 2)
	done := make(chan error, 1)
	go func() { done <- l.write(t) }()
	require.Eventually(t, func() bool { return l.wrote.Load() > 10 }, patience, 1e6)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	target(t, "", disk)
	require.NoError(t, <-done)
	l.verify(t)
	disconnect(t, controller) // before the target ends, or the kernel waits a minute for an answer
}

// TestDisconnect: a kernel that disconnects under writes leaves a target that
// it can connect to again.
func TestDisconnect(t *testing.T) {
	target(t, "", newDisk(t, "disk", 8*mib))
	controller, devices := connect(t, 1, "")
	l := newLoad(t, devices[0], 6*mib, 3)
	done := make(chan error, 1)
	go func() { done <- l.write(t) }()
	require.Eventually(t, func() bool { return l.wrote.Load() > 5 }, patience, 1e6)
	disconnect(t, controller)
	require.Error(t, <-done, "the load was over before")

	_, devices = connect(t, 1, "")
	l = newLoad(t, devices[0], mib, 4)
	require.NoError(t, l.write(t))
	l.verify(t)
}

// TestCommandLine: nvme-cli connects, sees the target and disconnects.
func TestCommandLine(t *testing.T) {
	const program = "/c/nvme" // the packages' programs come without permission
	if exists(program) {
		require.NoError(t, os.Chmod(program, 0o755))
	}
	t.Setenv("LD_LIBRARY_PATH", "/c/lib")
	target(t, "", newDisk(t, "disk", mib))
	// Linux 6.12 refuses another name with the identifier of the tests before.
	const id = "2cd2c43b-a90a-45c1-a8cd-86b33ab273b5"
	run(t, program, "connect", "-t", "rdma", "-a", softAddr, "-s", "4420", "-n", nvme.DefaultSubsystem, "-i", "1",
		"--hostnqn", "nqn.2014-08.org.nvmexpress:uuid:"+id, "--hostid", id)
	require.Contains(t, run(t, program, "list"), "rdmashim sample nvme")
	require.Contains(t, run(t, program, "disconnect", "-n", nvme.DefaultSubsystem), "disconnected 1 controller")
}
