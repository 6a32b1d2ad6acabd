//go:build guest && linux

package guesttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/uapi"
)

// asUser makes the test binary do the part that it names instead of its tests.
const asUser = "RDMASHIM_GUESTTEST_AS"

const nobody = 65534

// again runs the test binary as the user nobody, to do the named part.
func again(what string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), asUser+"="+what)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}}
	return cmd
}

// user is the other process.
func user() int {
	var err error
	switch what := os.Getenv(asUser); what {
	case "hold":
		if _, err = hold(); err == nil {
			fmt.Println("holding")
			select {}
		}
	case "open":
		var d *uapi.Device
		if d, err = uapi.Open(device, uapi.OpenConfig{}); err == nil {
			err = d.Close()
		}
	case "lock":
		err = userLocks()
	default:
		err = errors.New(what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func hold() (d *uapi.Device, err error) {
	if d, err = uapi.Open(device, uapi.OpenConfig{}); err != nil {
		return nil, err
	}
	if _, err = d.RegMR(make([]byte, 1<<16), everything); err != nil {
		return nil, err
	}
	_, err = d.CreateQP(8, 8)
	return d, err
}

// userLocks registers more than it may lock, and less after that.
func userLocks() error {
	limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return err
	}
	d, err := uapi.Open(device, uapi.OpenConfig{})
	if err != nil {
		return err
	}
	_, err = d.RegMR(make([]byte, 2<<20), everything)
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "RLIMIT_MEMLOCK") {
		return fmt.Errorf("2 MiB: %w", err)
	}
	if _, err = d.RegMR(make([]byte, 1<<18), everything); err != nil {
		return err
	}
	return d.Close()
}

func runSelf(t *testing.T, what string) (stderr string, err error) {
	t.Helper()
	var out bytes.Buffer
	cmd := again(what)
	cmd.Stderr = &out
	err = cmd.Run()
	return out.String(), err
}

// TestOrdinaryUser: a user that may open the device file needs no privilege.
func TestOrdinaryUser(t *testing.T) {
	kernel(t)
	stderr, err := runSelf(t, "lock")
	require.NoError(t, err, stderr)

	const node = "/dev/infiniband/uverbs0"
	info, err := os.Stat(node)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(node, 0o600))
	stderr, err = runSelf(t, "open")
	require.NoError(t, os.Chmod(node, info.Mode().Perm()))
	require.Error(t, err)
	require.Contains(t, stderr, node)
	require.Contains(t, stderr, "permission denied")
	require.Contains(t, stderr, "udev")
}

// TestDemo: the tool's demonstration between two processes, as root and as an
// ordinary user.
func TestDemo(t *testing.T) {
	kernel(t)
	tool, err := exec.LookPath("rdmashim")
	require.NoError(t, err)
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("what travels\n"), 50000), 0o644))
	require.NoError(t, openPath(file))
	for _, uid := range []uint32{0, nobody} {
		cmd := exec.CommandContext(t.Context(), tool, "demo", "--device", device, "--json", file)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: true}}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Run(), errs.String())
		require.Contains(t, out.String(), `"device": "host:rxe0"`)
		require.Contains(t, out.String(), `"bytes": 650000`)
		require.Empty(t, errs.String())
	}
	// Its own program is more than an ordinary user may lock.
	cmd := exec.CommandContext(t.Context(), tool, "demo", "--device", device)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	require.NoError(t, err, errs.String())
	require.Contains(t, string(text), "all equal")
	require.Contains(t, errs.String(), "sending the first 4.0 MiB of")

	out, err := exec.CommandContext(t.Context(), tool, "devices", "--device", device).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "host:rxe0  host  10.77.0.1:4791  eth0    ACTIVE  1024")
}

// openPath lets every user reach a file of a test's directory.
func openPath(file string) error {
	for dir := file; dir != "/"; {
		dir = dir[:max(1, strings.LastIndexByte(dir, '/'))]
		if dir == "/" || dir == "/tmp" {
			return nil
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}
