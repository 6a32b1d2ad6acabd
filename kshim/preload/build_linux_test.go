package preload

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

// patience bounds a hang.
const patience = 2 * time.Minute

// TestKilledBuild: who is killed while the libraries are built leaves a build
// that goes on. The next one waits for it, and builds nothing. Scripts stand
// for the compilers.
func TestKilledBuild(t *testing.T) {
	bin, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	log, gate := filepath.Join(bin, "log"), filepath.Join(bin, "gate")
	require.NoError(t, unix.Mkfifo(gate, 0o600))
	output := `while [ "$1" != -o ]; do shift; done; echo made >"$2"` + "\n"
	for name, script := range map[string]string{
		"cc": output,
		"go": "echo go >>" + log + "; read word <" + gate + "; " + output,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("CC", filepath.Join(bin, "cc"))
	var says strings.Builder
	first := exec.Command("/proc/self/exe", "find", cache)
	first.Stderr = &says
	first.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, first.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(log); return err == nil }, patience, time.Millisecond)
	require.NoError(t, syscall.Kill(-first.Process.Pid, syscall.SIGKILL)) // as timeout does
	require.Error(t, first.Wait())
	require.Contains(t, says.String(), "building the libraries")
	found := make(chan error, 1)
	go func() {
		l, err := findIn(cache, io.Discard)
		if err == nil {
			_, err = os.Stat(l.Kernel)
		}
		found <- err
	}()
	w := must.Get(os.OpenFile(gate, os.O_RDWR, 0))(t)
	defer w.Close()
	must.Get(w.WriteString("on\n"))(t)
	require.NoError(t, <-found)
	builds := must.Get(os.ReadFile(log))(t)
	require.Equal(t, "go\n", string(builds))
	left := must.Get(filepath.Glob(filepath.Join(cache, building+"*")))(t)
	require.Empty(t, left)
}
